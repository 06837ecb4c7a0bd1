// Page-locked and managed host memory, which is ordinary memory that kernels may use by its address, and what is asked
// about pointers.
#include <cstdlib>
#include <cstring>
#include <map>

#include "graph.h"
#include "memory.h"
#include "work.h"

namespace cuemu {
namespace {

constexpr size_t kPage = 4096;
constexpr int kFreshFill = 0xFF;

struct HostBlock {
    size_t size;
    unsigned flags;
    bool registered;  // the memory is the caller's
    bool managed;
    CUcontext context;
};

std::map<CUdeviceptr, HostBlock>& host_blocks() {
    static auto* blocks = new std::map<CUdeviceptr, HostBlock>;
    return *blocks;
}

// The block that holds the address, or end().
std::map<CUdeviceptr, HostBlock>::iterator host_block(CUdeviceptr address) {
    auto it = host_blocks().upper_bound(address);
    if (it == host_blocks().begin()) return host_blocks().end();
    --it;
    return address - it->first < it->second.size ? it : host_blocks().end();
}

CUresult allocate(const char* call, void** address, size_t size, unsigned flags, bool managed) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context(call)) return status;
    if (CUresult status = refuse_during_capture(call)) return status;
    if (!size) return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": size is 0");
    *address = std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
    if (!*address) return error(CUDA_ERROR_OUT_OF_MEMORY, std::string(call) + ": the host has no memory left");
    std::memset(*address, kFreshFill, size);
    host_blocks()[reinterpret_cast<CUdeviceptr>(*address)] = {size, flags, false, managed, current_context()};
    return CUDA_SUCCESS;
}

// Writes one attribute; false if the pointer has none.
bool pointer_attribute(void* data, int attribute, CUdeviceptr address) {
    Range device = device_range(address);
    auto host = host_block(address);
    bool is_host = host != host_blocks().end();
    if (!device && !is_host) return false;
    auto put = [data](auto value) { std::memcpy(data, &value, sizeof value); };
    CUcontext context = is_host ? host->second.context : nullptr;
    if (device) context = primary_context(device.device);
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: put(context); return true;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            put(device || host->second.managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
            return true;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: put(address); return true;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (device) return false;
            put(address);
            return true;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: put(0); return true;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            put(static_cast<unsigned long long>(device ? device.address : host->first));
            return true;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: put(is_host && host->second.managed ? 1 : 0); return true;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put(device ? device.device : context->device); return true;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: put(device ? 1 : 0); return true;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: put(device ? device.address : host->first); return true;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: put(device ? device.size : host->second.size); return true;
        case CU_POINTER_ATTRIBUTE_MAPPED: put(1); return true;
        default: return false;
    }
}

}  // namespace

bool is_pinned(const void* address, size_t size) {
    CUdeviceptr start = reinterpret_cast<CUdeviceptr>(address);
    auto it = host_block(start);
    return it != host_blocks().end() && size <= it->second.size - (start - it->first);
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuMemHostAlloc(void** address, size_t size, unsigned flags) {
    return allocate("cuMemHostAlloc", address, size, flags, false);
}
CUEMU_API cuMemAllocHost_v2(void** address, size_t size) {
    return allocate("cuMemAllocHost", address, size, 0, false);
}
CUEMU_API cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags) {
    return allocate("cuMemAllocManaged", reinterpret_cast<void**>(address), size, flags, true);
}

// Waits for everything, since anything may use the memory.
CUEMU_API cuMemFreeHost(void* address) {
    Guard guard(driver_mutex);
    auto it = host_blocks().find(reinterpret_cast<CUdeviceptr>(address));
    if (it == host_blocks().end() || it->second.registered) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost: not the start of memory from cuMemHostAlloc");
    }
    for (int device = 0; device < device_count(); device++) finish_device(device);
    host_blocks().erase(it);
    std::free(address);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* to, void* address, unsigned) {
    Guard guard(driver_mutex);
    *to = reinterpret_cast<CUdeviceptr>(address);
    if (host_block(*to) != host_blocks().end()) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_VALUE, "cuMemHostGetDevicePointer: not page-locked memory");
}

CUEMU_API cuMemHostGetFlags(unsigned* flags, void* address) {
    Guard guard(driver_mutex);
    auto it = host_block(reinterpret_cast<CUdeviceptr>(address));
    if (it == host_blocks().end()) return error(CUDA_ERROR_INVALID_VALUE, "cuMemHostGetFlags: not page-locked memory");
    *flags = it->second.flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemHostRegister_v2(void* address, size_t size, unsigned flags) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemHostRegister")) return status;
    CUdeviceptr start = reinterpret_cast<CUdeviceptr>(address);
    if (!size || !address) return error(CUDA_ERROR_INVALID_VALUE, "cuMemHostRegister: size or address is 0");
    auto next = host_blocks().lower_bound(start);
    bool overlaps = host_block(start) != host_blocks().end() ||
                    (next != host_blocks().end() && next->first - start < size);
    if (overlaps) {
        return error(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "cuMemHostRegister: registered twice");
    }
    host_blocks()[start] = {size, flags, true, false, current_context()};
    return CUDA_SUCCESS;
}

CUEMU_API cuMemHostUnregister(void* address) {
    Guard guard(driver_mutex);
    auto it = host_blocks().find(reinterpret_cast<CUdeviceptr>(address));
    if (it == host_blocks().end() || !it->second.registered) {
        return error(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "cuMemHostUnregister: not registered");
    }
    for (int device = 0; device < device_count(); device++) finish_device(device);
    host_blocks().erase(it);
    return CUDA_SUCCESS;
}

CUEMU_API cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address) {
    Guard guard(driver_mutex);
    if (pointer_attribute(data, attribute, address)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_VALUE, "cuPointerGetAttribute: the pointer is unknown or lacks the attribute");
}

// Attributes that the pointer lacks become 0.
CUEMU_API cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr address) {
    Guard guard(driver_mutex);
    for (unsigned i = 0; i < count; i++) {
        if (pointer_attribute(data[i], attributes[i], address)) continue;
        bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT || attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
        int missing = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2 : 0;
        if (wide) {
            std::memset(data[i], 0, 8);
        } else {
            std::memcpy(data[i], &missing, 4);
        }
    }
    return CUDA_SUCCESS;
}

CUEMU_API cuPointerSetAttribute(const void*, int, CUdeviceptr) { return CUDA_SUCCESS; }
