// cuGetProcAddress: the symbol behind a call's plain name in a version of the API.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "state.h"

namespace cuemu {
namespace {

// Calls whose meaning changed after version 3.2, which is where nearly all `_v2` symbols come from.
struct Since { const char *name, *symbol; int version; };
constexpr Since kChanged[] = {
    {"cuCtxCreate", "cuCtxCreate_v4", 12050},
    {"cuCtxGetDevice", "cuCtxGetDevice_v2", 13000},
    {"cuCtxSynchronize", "cuCtxSynchronize_v2", 13000},
    {"cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040},
    {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 11000},
    {"cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2", 11000},
    {"cuEventElapsedTime", "cuEventElapsedTime_v2", 12080},
    {"cuGetProcAddress", "cuGetProcAddress_v2", 12000},
    {"cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000},
    {"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000},
    {"cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000},
    {"cuMemHostRegister", "cuMemHostRegister_v2", 6050},
    {"cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCtx", "cuStreamGetCtx_v2", 12050},
};

void* lookup(const std::string& symbol) {
    static void* self = [] {
        Dl_info info;
        dladdr(reinterpret_cast<void*>(&lookup), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    return self ? dlsym(self, symbol.c_str()) : nullptr;
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t, int* status) {
    enum { kFound = 0, kNotFound = 1 };
    void* symbol = nullptr;
    bool changed = false;
    for (const Since& entry : kChanged) {
        if (std::strcmp(entry.name, name)) continue;
        changed = true;
        if (!symbol && version >= entry.version) symbol = lookup(entry.symbol);
    }
    if (!symbol && !changed) symbol = lookup(std::string(name) + "_v2");
    if (!symbol) symbol = lookup(name);
    *function = symbol;
    if (status) *status = symbol ? kFound : kNotFound;
    return symbol ? CUDA_SUCCESS : error(CUDA_ERROR_NOT_FOUND, std::string("cuGetProcAddress: no call ") + name);
}
CUEMU_API cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
