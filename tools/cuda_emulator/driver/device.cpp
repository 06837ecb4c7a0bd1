// Initialisation, devices and contexts. Every device reports the limits of compute capability 8.0.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "memory.h"
#include "work.h"

namespace cuemu {
namespace {

bool initialized;
int primary_references[kMaxDevices];
thread_local std::vector<CUcontext> context_stack;

int setting(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text && *text ? std::atoi(text) : otherwise;
}

std::set<CUcontext>& live_contexts() {
    static auto* contexts = new std::set<CUcontext>;
    return *contexts;
}

}  // namespace

int device_count() {
    static const int count = std::clamp(setting("CUEMU_DEVICES", 1), 0, kMaxDevices);
    return count;
}

CUresult check_device(const char* call, CUdevice device) {
    if (!initialized) return error(CUDA_ERROR_NOT_INITIALIZED, std::string(call) + " before cuInit");
    if (device >= 0 && device < device_count()) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_DEVICE, std::string(call) + ": no such device");
}

CUcontext primary_context(CUdevice device) {
    static CUcontext contexts[kMaxDevices];
    if (!contexts[device]) contexts[device] = new CUctx_st{device, true};
    return contexts[device];
}

CUcontext current_context() { return context_stack.empty() ? nullptr : context_stack.back(); }

bool is_live_context(CUcontext context) { return live_contexts().count(context); }

CUresult require_context(const char* call) {
    CUcontext context = current_context();
    if (!context) return error(CUDA_ERROR_INVALID_CONTEXT, std::string(call) + ": no context is current on this thread");
    if (in_host_function()) {
        return error(CUDA_ERROR_NOT_PERMITTED, std::string(call) + ": a host function of a stream must not call CUDA");
    }
    Guard guard(driver_mutex);
    if (!is_live_context(context)) {
        return error(CUDA_ERROR_INVALID_CONTEXT, std::string(call) + ": the current context has been destroyed");
    }
    return context_is_lost(context) ? take_fault(context) : CUDA_SUCCESS;
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuInit(unsigned flags) {
    Guard guard(driver_mutex);
    if (flags) return error(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
    if (!device_count()) return error(CUDA_ERROR_NO_DEVICE, "cuInit: CUEMU_DEVICES is 0");
    if (!initialized) install_fault_handler();
    initialized = true;
    return CUDA_SUCCESS;
}

CUEMU_API cuDriverGetVersion(int* version) {
    *version = kDriverVersion;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetCount(int* count) {
    if (!initialized) return error(CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGetCount before cuInit");
    *count = device_count();
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGet(CUdevice* device, int ordinal) {
    if (CUresult status = check_device("cuDeviceGet", ordinal)) return status;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetName(char* name, int length, CUdevice device) {
    if (CUresult status = check_device("cuDeviceGetName", device)) return status;
    std::snprintf(name, static_cast<size_t>(length), "CUDA emulator (CPU)");
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetUuid_v2(char* uuid, CUdevice device) {
    if (CUresult status = check_device("cuDeviceGetUuid", device)) return status;
    std::memcpy(uuid, "cuda-emulator-00", 16);
    uuid[15] = static_cast<char>('0' + device);
    return CUDA_SUCCESS;
}
CUEMU_API cuDeviceGetUuid(char* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUEMU_API cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    if (CUresult status = check_device("cuDeviceGetPCIBusId", device)) return status;
    std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
    unsigned bus = 0;
    const char* colon = std::strchr(text, ':');
    std::sscanf(colon && std::strchr(colon + 1, ':') ? colon + 1 : text, "%x", &bus);
    *device = static_cast<int>(bus) - 1;
    return check_device("cuDeviceGetByPCIBusId", *device);
}

CUEMU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    *major = 8;
    *minor = 0;
    return check_device("cuDeviceComputeCapability", device);
}

// An A100's answers, except that it has few multiprocessors: grids are sized by them, and blocks take their time here.
CUEMU_API cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
    static const std::map<int, int> values{
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1215000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    };
    if (CUresult status = check_device("cuDeviceGetAttribute", device)) return status;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
        *value = std::max(setting("CUEMU_MULTIPROCESSORS", 4), 1);
    } else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
        *value = device + 1;
    } else {
        auto it = values.find(attribute);
        *value = it == values.end() ? 0 : it->second;  // every other feature is absent
    }
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (CUresult status = check_device("cuDeviceTotalMem", device)) return status;
    *bytes = device_memory_capacity(device);
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    CUresult status = check_device("cuDeviceCanAccessPeer", device);
    if (!status) status = check_device("cuDeviceCanAccessPeer", peer);
    *can = !status && device != peer && setting("CUEMU_PEER_ACCESS", 1);
    return status;
}

CUEMU_API cuDeviceGetP2PAttribute(int* value, int attribute, CUdevice device, CUdevice peer) {
    constexpr int kAccessSupported = 2;
    CUresult status = cuDeviceCanAccessPeer(value, device, peer);
    if (attribute != kAccessSupported) *value = 0;
    return status;
}

CUEMU_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDevicePrimaryCtxRetain", device)) return status;
    primary_references[device]++;
    *context = primary_context(device);
    live_contexts().insert(*context);
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDevicePrimaryCtxRelease", device)) return status;
    if (!primary_references[device]) {
        return error(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease: not retained");
    }
    primary_references[device]--;
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDevicePrimaryCtxGetState", device)) return status;
    *flags = primary_context(device)->flags;
    *active = primary_references[device] > 0;
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDevicePrimaryCtxSetFlags", device)) return status;
    primary_context(device)->flags = flags;
    return CUDA_SUCCESS;
}

// Forgets the error a fault left. Memory and modules stay, unlike on hardware.
CUEMU_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuDevicePrimaryCtxReset", device)) return status;
    finish_device(device);
    primary_context(device)->fault = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

// The toolkit's headers map cuCtxCreate to _v2 up to version 12 and to _v4 from 13 on.
CUEMU_API cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    Guard guard(driver_mutex);
    if (CUresult status = check_device("cuCtxCreate", device)) return status;
    *context = new CUctx_st{device, false};
    (*context)->flags = flags;
    live_contexts().insert(*context);
    context_stack.push_back(*context);
    return CUDA_SUCCESS;
}
CUEMU_API cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

CUEMU_API cuCtxDestroy_v2(CUcontext context) {
    Guard guard(driver_mutex);
    if (!is_live_context(context) || context->primary) {
        return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: not a created context");
    }
    finish_context(context);
    if (current_context() == context) context_stack.pop_back();
    live_contexts().erase(context);
    return CUDA_SUCCESS;
}

// Deprecated; PyCUDA calls it for every context it lets go, retained primary ones included.
CUEMU_API cuCtxDetach(CUcontext context) {
    return context && context->primary ? cuDevicePrimaryCtxRelease_v2(context->device) : cuCtxDestroy_v2(context);
}

CUEMU_API cuCtxPushCurrent_v2(CUcontext context) {
    Guard guard(driver_mutex);
    if (!is_live_context(context)) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent: not a live context");
    context_stack.push_back(context);
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxPopCurrent_v2(CUcontext* context) {
    if (context_stack.empty()) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent: the stack is empty");
    if (context) *context = context_stack.back();
    context_stack.pop_back();
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxSetCurrent(CUcontext context) {
    Guard guard(driver_mutex);
    if (context && !is_live_context(context)) {
        return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxSetCurrent: not a live context");
    }
    if (!context_stack.empty()) context_stack.pop_back();
    if (context) context_stack.push_back(context);
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetCurrent(CUcontext* context) {
    *context = current_context();
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetDevice(CUdevice* device) {
    if (CUresult status = require_context("cuCtxGetDevice")) return status;
    *device = current_context()->device;
    return CUDA_SUCCESS;
}
CUEMU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
    Guard guard(driver_mutex);
    if (!context) return cuCtxGetDevice(device);
    if (!is_live_context(context)) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxGetDevice: not a live context");
    *device = context->device;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetApiVersion(CUcontext, unsigned* version) {
    *version = kDriverVersion;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetFlags(unsigned* flags) {
    if (CUresult status = require_context("cuCtxGetFlags")) return status;
    *flags = current_context()->flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxSetFlags(unsigned flags) {
    if (CUresult status = require_context("cuCtxSetFlags")) return status;
    current_context()->flags = flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetId(CUcontext context, unsigned long long* id) {
    *id = reinterpret_cast<unsigned long long>(context ? context : current_context());
    return CUDA_SUCCESS;
}

// Limits are remembered and have no effect; fibers' stacks are set by CUEMU_STACK_KB.
CUEMU_API cuCtxSetLimit(int limit, size_t value) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuCtxSetLimit")) return status;
    if (limit < 0 || limit > 6) return error(CUDA_ERROR_UNSUPPORTED_LIMIT, "cuCtxSetLimit: no such limit");
    current_context()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetLimit(size_t* value, int limit) {
    // Stack size, printf buffer, malloc heap, nesting depth, pending launches, L2 fetch granularity, persisting L2.
    constexpr size_t defaults[] = {1024, 1 << 20, 8 << 20, 0, 0, 64, 0};
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuCtxGetLimit")) return status;
    if (limit < 0 || limit > 6) return error(CUDA_ERROR_UNSUPPORTED_LIMIT, "cuCtxGetLimit: no such limit");
    auto it = current_context()->limits.find(limit);
    *value = it == current_context()->limits.end() ? defaults[limit] : it->second;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuCtxEnablePeerAccess")) return status;
    if (flags || !is_live_context(peer)) return error(CUDA_ERROR_INVALID_VALUE, "cuCtxEnablePeerAccess");
    int can = 0;
    cuDeviceCanAccessPeer(&can, current_context()->device, peer->device);
    if (!can) return error(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "cuCtxEnablePeerAccess");
    unsigned bit = 1u << peer->device;
    if (current_context()->peers & bit) return error(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "cuCtxEnablePeerAccess");
    current_context()->peers |= bit;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxDisablePeerAccess(CUcontext peer) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuCtxDisablePeerAccess")) return status;
    unsigned bit = is_live_context(peer) ? 1u << peer->device : 0;
    if (!(current_context()->peers & bit)) return error(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "cuCtxDisablePeerAccess");
    current_context()->peers &= ~bit;
    return CUDA_SUCCESS;
}
