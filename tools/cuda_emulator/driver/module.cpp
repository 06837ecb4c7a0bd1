// Modules are the shared objects that compiler.py makes, handed over as a file or as the bytes of one. Kernels and
// launches.
#include "../include/cuemu_runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "../runtime/scheduler.h"
#include "graph.h"
#include "memory.h"
#include "work.h"

// Handed out as CUfunction. Modules keep theirs until they are unloaded.
struct CUfunc_st {
    const cuemu::Kernel* kernel;
    CUmodule module;
    size_t dynamic_shared_limit;
    int carveout;
};

struct CUmod_st {
    CUcontext context;
    void* library;
    int file;  // stays open: the loader identifies a library by its path, and the path names this descriptor
    std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
    std::map<std::string, cuemu::Range> variables;
};

namespace cuemu {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr size_t kDefaultSharedLimit = 49152;
constexpr size_t kOptInSharedLimit = 166912;
constexpr size_t kSharedPerMultiprocessor = 167936;
constexpr size_t kReservedShared = 1024;  // of each block
constexpr int kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;

CUresult open_module(CUmodule* module, const char* path, int file) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* reason = dlerror();
        if (file >= 0) close(file);
        return error(CUDA_ERROR_INVALID_IMAGE, reason ? reason : "dlopen failed");
    }
    *module = new CUmod_st{current_context(), library, file, {}, {}};
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
CUresult pack_parameters(const Kernel& kernel, void** pointers, void** extra, char* out) {
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

// Appends the kernel's name to the file of CUEMU_LAUNCHED, once per process.
void note_launch(const char* name) {
    static auto* noted = new std::set<std::string>;
    const char* path = std::getenv("CUEMU_LAUNCHED");
    if (!path || !noted->insert(name).second) return;
    std::string line = std::string(name) + "\n";
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    ssize_t written = write(file, line.data(), line.size());
    static_cast<void>(written);
    close(file);
}

CUresult run_kernel(CUcontext context, const Kernel* kernel, const LaunchShape& shape, const char* parameters) {
    note_launch(kernel->name);
    DeviceMemoryWindow window(context->peers | 1u << context->device);
    std::string failure = run_grid(*kernel, shape, parameters);
    if (failure.empty()) return CUDA_SUCCESS;
    auto says = [&](const char* text) { return failure.find(text) != std::string::npos; };
    CUresult code = says("illegal memory access") ? CUDA_ERROR_ILLEGAL_ADDRESS
                    : says("device-side assert")  ? CUDA_ERROR_ASSERT
                    : says("misaligned address")  ? CUDA_ERROR_MISALIGNED_ADDRESS
                                                  : CUDA_ERROR_LAUNCH_FAILED;
    return error(code, failure);
}

// Parameters at an address aligned to 16, the largest alignment of an argument.
struct alignas(16) Parameters { char bytes[16]; };

// CUEMU_LAUNCH=skip: what a program costs on the host besides its launches.
bool launches_are_skipped() {
    static const bool skipped = [] {
        const char* setting = std::getenv("CUEMU_LAUNCH");
        return setting && !std::strcmp(setting, "skip");
    }();
    return skipped;
}

CUresult launch(CUfunction function, const LaunchShape& shape, CUstream handle, void** pointers, void** extra) {
    if (launches_are_skipped()) return CUDA_SUCCESS;
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuLaunchKernel", handle, &stream)) return status;
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuLaunchKernel: null function");
    const Kernel* kernel = function->kernel;
    if (function->module->context != stream->context) {
        return error(CUDA_ERROR_INVALID_HANDLE, std::string("cuLaunchKernel ") + kernel->name +
                                                    ": the function and the stream belong to different contexts");
    }
    if (CUresult status = check_shape(function, shape)) return status;
    std::shared_ptr<Parameters[]> packed(new Parameters[kernel->parameter_bytes / sizeof(Parameters) + 1]);
    if (CUresult status = pack_parameters(*kernel, pointers, extra, packed[0].bytes)) return status;
    CUcontext context = stream->context;
    return submit(stream, {Kind::kKernel, kernel->name, [=] {
        return run_kernel(context, kernel, shape, packed[0].bytes);
    }});
}

int active_blocks(CUfunction function, int block_size, size_t dynamic_shared) {
    if (block_size < 1 || block_size > static_cast<int>(kMaxThreads)) return 0;
    if (dynamic_shared > function->dynamic_shared_limit) return 0;
    int by_threads = kThreadsPerMultiprocessor / ((block_size + 31) / 32 * 32);
    int by_shared = static_cast<int>(kSharedPerMultiprocessor / (dynamic_shared + kReservedShared));
    return std::min({by_threads, by_shared, kBlocksPerMultiprocessor});
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuDeviceGetAttribute(int* value, int attribute, CUdevice device);

CUEMU_API cuModuleLoad(CUmodule* module, const char* path) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuModuleLoad")) return status;
    if (CUresult status = refuse_during_capture("cuModuleLoad")) return status;
    if (access(path, R_OK)) return error(CUDA_ERROR_FILE_NOT_FOUND, path);
    return open_module(module, path, -1);
}

CUEMU_API cuModuleLoadData(CUmodule* module, const void* image) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuModuleLoadData")) return status;
    if (CUresult status = refuse_during_capture("cuModuleLoadData")) return status;
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

// Waits for the device: queued work may use the module's code.
CUEMU_API cuModuleUnload(CUmodule module) {
    Guard guard(driver_mutex);
    if (!module) return error(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: null module");
    finish_device(module->context->device);
    for (auto& variable : module->variables) remove_foreign_range(variable.second.address);
    dlclose(module->library);
    if (module->file >= 0) close(module->file);
    delete module;
    return CUDA_SUCCESS;
}

CUEMU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    Guard guard(driver_mutex);
    if (!module) return error(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetFunction: null module");
    void* symbol = dlsym(module->library, (std::string("cuemu_kernel_") + name).c_str());
    if (!symbol) return error(CUDA_ERROR_NOT_FOUND, std::string("no kernel named ") + name + " in the module");
    auto& entry = module->functions[name];
    if (!entry) {  // code is loaded when it is first asked for, as with CUDA_MODULE_LOADING=LAZY
        if (CUresult status = refuse_during_capture("cuModuleGetFunction")) return status;
        entry.reset(new CUfunc_st{static_cast<const Kernel*>(symbol), module, kDefaultSharedLimit, -1});
    }
    *function = entry.get();
    return CUDA_SUCCESS;
}

// The variable is an exported symbol, which knows its size.
CUEMU_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
    Guard guard(driver_mutex);
    if (!module) return error(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetGlobal: null module");
    Dl_info info;
    ElfW(Sym)* symbol = nullptr;
    void* found = dlsym(module->library, name);
    if (!found || !dladdr1(found, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) || !symbol) {
        return error(CUDA_ERROR_NOT_FOUND, std::string("no variable named ") + name + " in the module");
    }
    Range range{reinterpret_cast<CUdeviceptr>(found), symbol->st_size, module->context->device};
    module->variables[name] = range;
    add_foreign_range(range);
    if (address) *address = range.address;
    if (size) *size = range.size;
    return CUDA_SUCCESS;
}

CUEMU_API cuModuleGetLoadingMode(int* mode) {
    *mode = 1;  // eager
    return CUDA_SUCCESS;
}

CUEMU_API cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    Guard guard(driver_mutex);
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuFuncSetAttribute: null function");
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) function->carveout = value;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value < 0 || static_cast<size_t>(value) > kOptInSharedLimit) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute: more dynamic shared memory than the device has");
    }
    function->dynamic_shared_limit = static_cast<size_t>(value);
    return CUDA_SUCCESS;
}

// Registers, local and static shared memory are not known here.
CUEMU_API cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
    Guard guard(driver_mutex);
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuFuncGetAttribute: null function");
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = kMaxThreads; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 80; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = static_cast<int>(function->dynamic_shared_limit);
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
        default: *value = 0;
    }
    return CUDA_SUCCESS;
}

CUEMU_API cuFuncGetModule(CUmodule* module, CUfunction function) {
    *module = function->module;
    return CUDA_SUCCESS;
}
CUEMU_API cuFuncGetName(const char** name, CUfunction function) {
    *name = function->kernel->name;
    return CUDA_SUCCESS;
}
CUEMU_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
    if (index >= function->kernel->parameter_count) return error(CUDA_ERROR_INVALID_VALUE, "cuFuncGetParamInfo");
    *offset = function->kernel->parameter_offsets[index];
    if (size) *size = function->kernel->parameter_sizes[index];
    return CUDA_SUCCESS;
}
CUEMU_API cuFuncIsLoaded(int* state, CUfunction) {
    *state = 1;
    return CUDA_SUCCESS;
}
CUEMU_API cuFuncLoad(CUfunction) { return CUDA_SUCCESS; }
CUEMU_API cuFuncSetCacheConfig(CUfunction, int) { return CUDA_SUCCESS; }
// Deprecated, but PyCUDA still calls it; cuLaunchKernel brings its own shape.
CUEMU_API cuFuncSetBlockShape(CUfunction, int, int, int) { return CUDA_SUCCESS; }

CUEMU_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned dynamic_shared, CUstream stream, void** pointers,
                         void** extra) {
    return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared}, stream, pointers,
                  extra);
}

// Attributes other than these are hints.
CUEMU_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** pointers, void** extra) {
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const CUlaunchAttribute& attribute = config->attributes[i];
        unsigned value[3];
        std::memcpy(value, attribute.value, sizeof value);
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && value[0]) {
            return error(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchKernelEx: the emulator has no cooperative launches");
        }
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && value[0] * value[1] * value[2] > 1) {
            return error(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchKernelEx: the emulator has no clusters");
        }
    }
    return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x, config->block_y,
                          config->block_z, config->dynamic_shared, config->stream, pointers, extra);
}

CUEMU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                      size_t dynamic_shared) {
    Guard guard(driver_mutex);
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *blocks = active_blocks(function, block_size, dynamic_shared);
    return CUDA_SUCCESS;
}
CUEMU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block_size,
                                                               size_t dynamic_shared, unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared);
}

CUEMU_API cuOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, CUfunction function,
                                           size_t (*shared_of)(int), size_t dynamic_shared, int limit) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuOccupancyMaxPotentialBlockSize")) return status;
    if (!function) return error(CUDA_ERROR_INVALID_HANDLE, "cuOccupancyMaxPotentialBlockSize: null function");
    if (limit <= 0 || limit > static_cast<int>(kMaxThreads)) limit = kMaxThreads;
    int best = 0;
    *grid_size = *block_size = 0;
    for (int size = limit / 32 * 32; size >= 32; size -= 32) {
        int blocks = active_blocks(function, size, shared_of ? shared_of(size) : dynamic_shared);
        if (blocks * size <= best) continue;
        best = blocks * size;
        *block_size = size;
        *grid_size = blocks;
    }
    int multiprocessors = 0;
    cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, current_context()->device);
    *grid_size *= multiprocessors;
    return CUDA_SUCCESS;
}

CUEMU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks, int) {
    if (!function || blocks < 1) return error(CUDA_ERROR_INVALID_VALUE, "cuOccupancyAvailableDynamicSMemPerBlock");
    *bytes = std::min(kSharedPerMultiprocessor / static_cast<size_t>(blocks) - kReservedShared, kOptInSharedLimit);
    return CUDA_SUCCESS;
}
