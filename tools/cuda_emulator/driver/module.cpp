// Modules are the shared objects that compiler.py makes, handed over as a file or as the bytes of one. Kernels and
// launches.
#include "../include/cuemu_runtime.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "../runtime/scheduler.h"
#include "memory.h"
#include "state.h"

// Handed out as CUfunction. Modules keep theirs until they are unloaded.
struct CUfunc_st {
    const cuemu::Kernel* kernel;
    size_t dynamic_shared_limit;
};

struct CUmod_st {
    void* library;
    int file;  // stays open: the loader identifies a library by its path, and the path names this descriptor
    std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

namespace cuemu {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr size_t kDefaultSharedLimit = 49152;
constexpr size_t kOptInSharedLimit = 166912;

CUresult open_module(CUmodule* module, const char* path, int file) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* reason = dlerror();
        if (file >= 0) close(file);
        return error(CUDA_ERROR_INVALID_IMAGE, reason ? reason : "dlopen failed");
    }
    *module = new CUmod_st{library, file, {}};
    return CUDA_SUCCESS;
}

// The section headers end an ELF file that a linker wrote, so the header tells how long the image is.
size_t image_size(const unsigned char* image) {
    uint64_t section_headers;
    uint16_t entry_size, entries;
    std::memcpy(&section_headers, image + 40, 8);
    std::memcpy(&entry_size, image + 58, 2);
    std::memcpy(&entries, image + 60, 2);
    return section_headers + static_cast<size_t>(entry_size) * entries;
}

CUresult check_shape(CUfunction function, const LaunchShape& shape) {
    const dim3 &grid = shape.grid, &block = shape.block;
    uint64_t block_size = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535 || !block_size ||
        block.x > 1024 || block.y > 1024 || block.z > 64 || block_size > kMaxThreads) {
        char text[200];
        std::snprintf(text, sizeof text, "cuLaunchKernel %s: grid (%u,%u,%u), block (%u,%u,%u) are out of range",
                      function->kernel->name, grid.x, grid.y, grid.z, block.x, block.y, block.z);
        return error(CUDA_ERROR_INVALID_VALUE, text);
    }
    if (shape.dynamic_shared > function->dynamic_shared_limit) {
        return error(CUDA_ERROR_INVALID_VALUE, std::string("cuLaunchKernel ") + function->kernel->name + ": " +
                                                   std::to_string(shape.dynamic_shared) +
                                                   " bytes of dynamic shared memory, the limit is " +
                                                   std::to_string(function->dynamic_shared_limit));
    }
    return CUDA_SUCCESS;
}

// Copies the arguments into one aligned buffer, from either of the two forms of cuLaunchKernel.
CUresult pack_parameters(const Kernel& kernel, void** pointers, void** extra, std::vector<double>& packed) {
    packed.assign(kernel.parameter_bytes / sizeof(double) + 2, 0.0);
    // A vector of doubles is aligned to 16 by the allocator, which is the largest alignment of an argument.
    char* out = reinterpret_cast<char*>(packed.data());
    const char* buffer = nullptr;
    size_t buffer_size = 0;
    for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[i + 1]);
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) buffer_size = *static_cast<size_t*>(extra[i + 1]);
    }
    if (buffer) {
        if (buffer_size < kernel.parameter_bytes) {
            std::string sizes = std::to_string(kernel.parameter_bytes) + " bytes of parameters, the buffer holds " +
                                std::to_string(buffer_size);
            return error(CUDA_ERROR_INVALID_VALUE, std::string("cuLaunchKernel ") + kernel.name + " takes " + sizes);
        }
        std::memcpy(out, buffer, kernel.parameter_bytes);
        return CUDA_SUCCESS;
    }
    if (kernel.parameter_count && !pointers) {
        return error(CUDA_ERROR_INVALID_VALUE, std::string("cuLaunchKernel ") + kernel.name + ": no parameters given");
    }
    for (size_t i = 0; i < kernel.parameter_count; i++) {
        std::memcpy(out + kernel.parameter_offsets[i], pointers[i], kernel.parameter_sizes[i]);
    }
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuModuleLoad(CUmodule* module, const char* path) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuModuleLoad")) return status;
    if (access(path, R_OK)) return error(CUDA_ERROR_FILE_NOT_FOUND, path);
    return open_module(module, path, -1);
}

CUEMU_API cuModuleLoadData(CUmodule* module, const void* image) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuModuleLoadData")) return status;
    const unsigned char* bytes = static_cast<const unsigned char*>(image);
    const unsigned char magic[] = {0x7F, 'E', 'L', 'F', 2, 1};  // 64 bit, little endian
    if (std::memcmp(bytes, magic, sizeof magic)) {
        return error(CUDA_ERROR_INVALID_IMAGE, "the emulator loads modules made by its own compiler.py only");
    }
    int file = memfd_create("cuemu_module", MFD_CLOEXEC);
    size_t size = image_size(bytes);
    for (size_t done = 0; file >= 0 && done < size;) {
        ssize_t written = write(file, bytes + done, size - done);
        if (written <= 0) return error(CUDA_ERROR_INVALID_IMAGE, "cannot copy the module image");
        done += static_cast<size_t>(written);
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open_module(module, path, file);
}

CUEMU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int*, void**) {
    return cuModuleLoadData(module, image);
}

CUEMU_API cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }

CUEMU_API cuModuleUnload(CUmodule module) {
    Guard guard(driver_mutex);
    if (!module) return error(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: null module");
    dlclose(module->library);
    if (module->file >= 0) close(module->file);
    delete module;
    return CUDA_SUCCESS;
}

CUEMU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    Guard guard(driver_mutex);
    void* symbol = dlsym(module->library, (std::string("cuemu_kernel_") + name).c_str());
    if (!symbol) return error(CUDA_ERROR_NOT_FOUND, std::string("no kernel named ") + name + " in the module");
    auto& entry = module->functions[name];
    if (!entry) entry.reset(new CUfunc_st{static_cast<const Kernel*>(symbol), kDefaultSharedLimit});
    *function = entry.get();
    return CUDA_SUCCESS;
}

CUEMU_API cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value < 0 || static_cast<size_t>(value) > kOptInSharedLimit) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute: more dynamic shared memory than the device has");
    }
    function->dynamic_shared_limit = static_cast<size_t>(value);
    return CUDA_SUCCESS;
}

CUEMU_API cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
    *value = 0;  // registers, local and static shared memory are not known here
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = kMaxThreads;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        *value = static_cast<int>(function->dynamic_shared_limit);
    }
    return CUDA_SUCCESS;
}

CUEMU_API cuFuncSetCacheConfig(CUfunction, int) { return CUDA_SUCCESS; }
// Deprecated, but PyCUDA still calls it; cuLaunchKernel brings its own shape.
CUEMU_API cuFuncSetBlockShape(CUfunction, int, int, int) { return CUDA_SUCCESS; }

CUEMU_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned dynamic_shared, CUstream, void** pointers,
                         void** extra) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuLaunchKernel")) return status;
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuLaunchKernel: null function");
    LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared};
    if (CUresult status = check_shape(function, shape)) return status;
    static std::vector<double> packed;  // under the driver's lock
    if (CUresult status = pack_parameters(*function->kernel, pointers, extra, packed)) return status;
    DeviceMemoryWindow window;
    std::string failure = run_grid(*function->kernel, shape, reinterpret_cast<const char*>(packed.data()));
    if (failure.empty()) return CUDA_SUCCESS;
    bool illegal = failure.find("illegal memory access") != std::string::npos;
    return error(illegal ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED, failure);
}
