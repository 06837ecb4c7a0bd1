// Initialisation, the one device, contexts and errors. The device reports the limits of compute capability 8.0.
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "memory.h"
#include "state.h"

struct CUctx_st { bool primary; };

namespace cuemu {

std::recursive_mutex driver_mutex;

namespace {

std::string last_message, error_text;
CUresult last_code = CUDA_SUCCESS;
bool initialized;
CUctx_st primary_context{true};
int primary_references;
thread_local std::vector<CUcontext> context_stack;

struct ErrorName { const char *name, *meaning; };

const std::map<CUresult, ErrorName>& error_names() {
    static const auto* names = new std::map<CUresult, ErrorName>{
        {CUDA_SUCCESS, {"CUDA_SUCCESS", "no error"}},
        {CUDA_ERROR_INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
        {CUDA_ERROR_OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
        {CUDA_ERROR_NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
        {CUDA_ERROR_INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
        {CUDA_ERROR_INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
        {CUDA_ERROR_INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
        {CUDA_ERROR_FILE_NOT_FOUND, {"CUDA_ERROR_FILE_NOT_FOUND", "file not found"}},
        {CUDA_ERROR_INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
        {CUDA_ERROR_NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
        {CUDA_ERROR_NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
        {CUDA_ERROR_ILLEGAL_ADDRESS, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
        {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
         {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"}},
        {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
         {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"}},
        {CUDA_ERROR_LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
        {CUDA_ERROR_NOT_SUPPORTED, {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}},
    };
    return *names;
}

}  // namespace

CUresult error(CUresult code, const std::string& message) {
    Guard guard(driver_mutex);
    last_code = code;
    last_message = message;
    return code;
}

CUresult require_context(const char* call) {
    if (!context_stack.empty() && context_stack.back()) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_CONTEXT, std::string(call) + ": no context is current on this thread");
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuGetErrorName(CUresult code, const char** name) {
    auto it = error_names().find(code);
    *name = it == error_names().end() ? nullptr : it->second.name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The text stays valid until the next error is described.
CUEMU_API cuGetErrorString(CUresult code, const char** text) {
    Guard guard(driver_mutex);
    auto it = error_names().find(code);
    if (it == error_names().end()) {
        *text = nullptr;
        return CUDA_ERROR_INVALID_VALUE;
    }
    error_text = it->second.meaning;
    if (code == last_code && code != CUDA_SUCCESS) error_text += " (" + last_message + ")";
    *text = error_text.c_str();
    return CUDA_SUCCESS;
}

CUEMU_API cuInit(unsigned flags) {
    Guard guard(driver_mutex);
    if (flags) return error(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
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
    *count = kDeviceCount;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGet(CUdevice* device, int ordinal) {
    if (!initialized) return error(CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGet before cuInit");
    if (ordinal < 0 || ordinal >= kDeviceCount) return error(CUDA_ERROR_INVALID_DEVICE, "cuDeviceGet: no such device");
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetName(char* name, int length, CUdevice) {
    std::snprintf(name, static_cast<size_t>(length), "CUDA emulator (CPU)");
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetUuid_v2(char* uuid, CUdevice) {
    std::memcpy(uuid, "cuda-emulator-00", 16);
    return CUDA_SUCCESS;
}
CUEMU_API cuDeviceGetUuid(char* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUEMU_API cuDeviceGetPCIBusId(char* text, int length, CUdevice) {
    std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
    *major = 8;
    *minor = 0;
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
    static const std::map<int, int> values{
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912},
    };
    auto it = values.find(attribute);
    *value = it == values.end() ? 0 : it->second;  // every other feature is absent
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
    *bytes = device_memory_capacity();
    return CUDA_SUCCESS;
}

CUEMU_API cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
    *can = 0;
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    Guard guard(driver_mutex);
    if (!initialized) return error(CUDA_ERROR_NOT_INITIALIZED, "cuDevicePrimaryCtxRetain before cuInit");
    if (device < 0 || device >= kDeviceCount) return error(CUDA_ERROR_INVALID_DEVICE, "cuDevicePrimaryCtxRetain");
    primary_references++;
    *context = &primary_context;
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxRelease_v2(CUdevice) {
    Guard guard(driver_mutex);
    if (!primary_references) return error(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease: not retained");
    primary_references--;
    return CUDA_SUCCESS;
}

CUEMU_API cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    *flags = 0;
    *active = primary_references > 0;
    return CUDA_SUCCESS;
}

// The toolkit's headers map cuCtxCreate to _v2 up to version 12 and to _v4 from 13 on.
CUEMU_API cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice) {
    Guard guard(driver_mutex);
    if (!initialized) return error(CUDA_ERROR_NOT_INITIALIZED, "cuCtxCreate before cuInit");
    *context = new CUctx_st{false};
    context_stack.push_back(*context);
    return CUDA_SUCCESS;
}
CUEMU_API cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, CUdevice device) {
    return cuCtxCreate_v2(context, flags, device);
}

CUEMU_API cuCtxDestroy_v2(CUcontext context) {
    Guard guard(driver_mutex);
    if (!context || context->primary) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: not a created context");
    if (!context_stack.empty() && context_stack.back() == context) context_stack.pop_back();
    delete context;
    return CUDA_SUCCESS;
}

// Deprecated; PyCUDA calls it for every context it lets go, retained primary ones included.
CUEMU_API cuCtxDetach(CUcontext context) {
    return context && context->primary ? cuDevicePrimaryCtxRelease_v2(0) : cuCtxDestroy_v2(context);
}

CUEMU_API cuCtxPushCurrent_v2(CUcontext context) {
    if (!context) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent: null context");
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
    if (!context_stack.empty()) context_stack.pop_back();
    if (context) context_stack.push_back(context);
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetCurrent(CUcontext* context) {
    *context = context_stack.empty() ? nullptr : context_stack.back();
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetDevice(CUdevice* device) {
    if (CUresult status = require_context("cuCtxGetDevice")) return status;
    *device = 0;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetApiVersion(CUcontext, unsigned* version) {
    *version = kDriverVersion;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetFlags(unsigned* flags) {
    *flags = 0;
    return CUDA_SUCCESS;
}
