// Memory allocated and freed in stream order, and its pools. A pool gives everything back at once, so its threshold
// changes nothing; its statistics are kept.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "graph.h"
#include "memory.h"
#include "work.h"

struct CUmemPoolHandle_st {
    CUdevice device;
    uint64_t threshold = 0, used = 0, used_high = 0;
    std::map<int, int> switches;  // attributes 1 to 3: what may be reused
};

namespace cuemu {
namespace {

struct DevicePools {
    CUmemPoolHandle_st standard;
    CUmemoryPool current;
};

DevicePools& pools_of(CUdevice device) {
    static DevicePools* pools[kMaxDevices];
    if (!pools[device]) {
        pools[device] = new DevicePools{{device, 0, 0, 0, {{1, 1}, {2, 1}, {3, 1}}}, nullptr};
        pools[device]->current = &pools[device]->standard;
    }
    return *pools[device];
}

// The pool of each stream-ordered allocation that is not freed yet.
std::map<CUdeviceptr, CUmemoryPool>& owners() {
    static auto* map = new std::map<CUdeviceptr, CUmemoryPool>;
    return *map;
}

std::set<CUmemoryPool>& created_pools() {
    static auto* pools = new std::set<CUmemoryPool>;
    return *pools;
}

CUresult check(const char* call, CUmemoryPool pool) {
    bool standard = false;
    for (int device = 0; device < device_count(); device++) standard |= pool == &pools_of(device).standard;
    if (standard || created_pools().count(pool)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_HANDLE, std::string(call) + ": not a live memory pool");
}

CUresult refuse_in_capture(const char* call, CUstream stream) {
    return spoil_capture(stream->capture, CUDA_ERROR_NOT_SUPPORTED,
                         std::string(call) + ": the emulator's graphs have no nodes for memory");
}

// The address is known at once; the memory gets its fresh contents when the stream comes to it, so that work of another
// stream that uses it too early is undone.
CUresult allocate(const char* call, CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream stream) {
    if (stream->capture) return refuse_in_capture(call, stream);
    if (!size) return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": size is 0");
    CUresult status = take_memory(pool->device, size, address, false);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {  // frees may be outstanding
        finish_device(pool->device);
        status = take_memory(pool->device, size, address, false);
    }
    if (status) return status;
    owners()[*address] = pool;
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
    CUdeviceptr fresh = *address;
    return submit(stream, {Kind::kMemory, call, [=] {
        fill_fresh_memory(fresh, size);
        return CUresult(CUDA_SUCCESS);
    }});
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuMemAllocFromPoolAsync", handle, &stream)) return status;
    if (CUresult status = check("cuMemAllocFromPoolAsync", pool)) return status;
    return allocate("cuMemAllocFromPoolAsync", address, size, pool, stream);
}

CUEMU_API cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuMemAllocAsync", handle, &stream)) return status;
    return allocate("cuMemAllocAsync", address, size, pools_of(stream->context->device).current, stream);
}

CUEMU_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuMemFreeAsync", handle, &stream)) return status;
    if (stream->capture) return refuse_in_capture("cuMemFreeAsync", stream);
    Range range = device_range(address);
    if (!range || range.address != address) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuMemFreeAsync: not the start of a live allocation");
    }
    return submit(stream, {Kind::kMemory, "cuMemFreeAsync", [=] {
        auto owner = owners().find(address);
        if (owner != owners().end()) {
            owner->second->used -= range.size;
            owners().erase(owner);
        }
        return give_memory_back(address);
    }});
}

CUEMU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDeviceGetDefaultMemPool", device)) return status;
    *pool = &pools_of(device).standard;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDeviceGetMemPool", device)) return status;
    *pool = pools_of(device).current;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDeviceSetMemPool", device)) return status;
    if (CUresult status = check("cuDeviceSetMemPool", pool)) return status;
    pools_of(device).current = pool;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuMemPoolCreate", properties->location.id)) return status;
    *pool = new CUmemPoolHandle_st{properties->location.id, 0, 0, 0, {{1, 1}, {2, 1}, {3, 1}}};
    created_pools().insert(*pool);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemPoolDestroy(CUmemoryPool pool) {
    Guard guard(driver_mutex);
    if (!created_pools().count(pool)) return error(CUDA_ERROR_INVALID_HANDLE, "cuMemPoolDestroy: not a created pool");
    finish_device(pool->device);
    if (pools_of(pool->device).current == pool) pools_of(pool->device).current = &pools_of(pool->device).standard;
    for (auto& owner : owners()) {
        if (owner.second != pool) continue;
        owner.second = &pools_of(pool->device).standard;
        owner.second->used += device_range(owner.first).size;
    }
    created_pools().erase(pool);
    delete pool;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuMemPoolGetAttribute", pool)) return status;
    uint64_t number = 0;
    switch (attribute) {
        case 1: case 2: case 3: std::memcpy(value, &pool->switches[attribute], sizeof(int)); return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: number = pool->threshold; break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: number = pool->used; break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: case CU_MEMPOOL_ATTR_USED_MEM_HIGH: number = pool->used_high; break;
        default: return error(CUDA_ERROR_INVALID_VALUE, "cuMemPoolGetAttribute: unknown attribute");
    }
    std::memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuMemPoolSetAttribute", pool)) return status;
    switch (attribute) {
        case 1: case 2: case 3: std::memcpy(&pool->switches[attribute], value, sizeof(int)); return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: std::memcpy(&pool->threshold, value, 8); return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            pool->used_high = pool->used;
            return CUDA_SUCCESS;
        default: return error(CUDA_ERROR_INVALID_VALUE, "cuMemPoolSetAttribute: unknown attribute");
    }
}

CUEMU_API cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
    Guard guard(driver_mutex);
    return check("cuMemPoolTrimTo", pool);
}
CUEMU_API cuMemPoolSetAccess(CUmemoryPool pool, const void*, size_t) {
    Guard guard(driver_mutex);
    return check("cuMemPoolSetAccess", pool);
}
