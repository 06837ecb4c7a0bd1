#include "memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "../runtime/sanitizer.h"
#include "../runtime/scheduler.h"
#include "state.h"

namespace cuemu {
namespace {

constexpr size_t kAlignment = 512;           // what cuMemAlloc guarantees, with a margin
constexpr size_t kRedZone = 512;             // never part of an allocation
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kReturnToSystem = 8 << 20;  // free blocks from this size on give their pages back
constexpr int kAllocFill = 0xFF;             // NaN in every floating type, -1 in every integer type
constexpr int kFreeFill = 0xDD;

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

struct Arena {
    char* base = nullptr;
    size_t capacity = 0;
    size_t high_water = 0;                        // bytes from base that were ever handed out
    size_t used = 0;                              // sum of live sizes
    int open = 0;                                 // nested windows
    int key = -1;                                 // memory protection key, where the processor has them
    std::map<CUdeviceptr, size_t> allocated;      // address -> size asked for
    std::map<CUdeviceptr, size_t> free_blocks;    // address -> size, red zone included

    Arena() {
        const char* megabytes = std::getenv("CUEMU_MEMORY_MB");
        size_t requested = megabytes ? std::strtoul(megabytes, nullptr, 10) : 0;
        capacity = (requested ? requested : 2048) << 20;
        // Sizes are checked against `capacity`; the range is twice that, for red zones and fragmentation.
        size_t size = 2 * capacity + kHugePage;
        void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) {
            capacity = 0;
            return;
        }
        base = reinterpret_cast<char*>(round_up(reinterpret_cast<size_t>(range), kHugePage));
        madvise(base, 2 * capacity, MADV_HUGEPAGE);
        const char* use_keys = std::getenv("CUEMU_PROTECTION_KEYS");
        if (!use_keys || std::strcmp(use_keys, "0")) key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
        if (key >= 0 && pkey_mprotect(base, 2 * capacity, PROT_READ | PROT_WRITE, key)) key = -1;
    }

    bool contains(const void* address) const {
        return base && address >= base && address < base + 2 * capacity;
    }

    // A protection key opens the whole range for this thread in nanoseconds. mprotect opens it for every thread, and
    // takes 0.4 us for each page in use (measured: half a millisecond for 5 MB); hence the huge pages.
    void set_accessible(bool accessible) {
        if (key >= 0) {
            pkey_set(key, accessible ? 0 : PKEY_DISABLE_ACCESS);
        } else if (high_water) {
            mprotect(base, round_up(high_water, kHugePage), accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
        }
    }

    // First fit among the freed blocks, else fresh addresses; a new block lies under the window if one is open.
    CUdeviceptr take(size_t block) {
        for (auto it = free_blocks.begin(); it != free_blocks.end(); ++it) {
            if (it->second < block) continue;
            CUdeviceptr address = it->first;
            size_t rest = it->second - block;
            free_blocks.erase(it);
            if (rest) free_blocks[address + block] = rest;
            return address;
        }
        if (high_water + block > 2 * capacity) return 0;
        CUdeviceptr address = reinterpret_cast<CUdeviceptr>(base) + high_water;
        high_water += block;
        if (open) set_accessible(true);
        return address;
    }

    void give_back(CUdeviceptr address, size_t block) {
        auto next = free_blocks.lower_bound(address);
        if (next != free_blocks.end() && address + block == next->first) {
            block += next->second;
            next = free_blocks.erase(next);
        }
        if (next != free_blocks.begin()) {
            auto previous = std::prev(next);
            if (previous->first + previous->second == address) {
                previous->second += block;
                return;
            }
        }
        free_blocks[address] = block;
    }
};

// Never destroyed: interpreters free device memory from destructors that run after static destruction.
Arena& arena() {
    static Arena* instance = new Arena;
    return *instance;
}

std::set<void*>& registered_host_memory() {
    static auto* instance = new std::set<void*>;
    return *instance;
}

CUresult out_of_memory(size_t size) {
    return error(CUDA_ERROR_OUT_OF_MEMORY, "tried to allocate " + std::to_string(size) + " bytes, " +
                                               std::to_string(arena().used) + " of " +
                                               std::to_string(arena().capacity) + " are in use");
}

CUresult check_range(const char* call, CUdeviceptr address, size_t size) {
    if (is_device_range(address, size)) return CUDA_SUCCESS;
    char text[160];
    std::snprintf(text, sizeof text, "%s: %zu bytes at %#llx are not inside one device allocation", call, size,
                  address);
    return error(CUDA_ERROR_INVALID_VALUE, text);
}

template <class T>
CUresult fill(const char* call, CUdeviceptr address, T value, size_t count) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context(call)) return status;
    if (CUresult status = check_range(call, address, count * sizeof(T))) return status;
    DeviceMemoryWindow window;
    T* out = reinterpret_cast<T*>(address);
    for (size_t i = 0; i < count; i++) out[i] = value;
    return CUDA_SUCCESS;
}

CUresult copy(const char* call, void* to, const void* from, size_t size) {
    if (CUresult status = require_context(call)) return status;
    DeviceMemoryWindow window;
    std::memmove(to, from, size);
    return CUDA_SUCCESS;
}

void* device(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

struct sigaction previous_segv, previous_bus, previous_fpe;

// A fault inside a kernel ends the launch; a fault of the host on device memory is explained, then left to whoever
// handled it before (in the end the default action, which ends the process).
void on_fault(int signal_number, siginfo_t* info, void*) {
    constexpr const char* host_access = "cuemu: host code accessed device memory at %p; copy it with cuMemcpy\n";
    char text[160];
    if (inside_kernel()) {
        if (signal_number == SIGFPE) {
            std::snprintf(text, sizeof text, "arithmetic fault (integer division by zero or overflow)");
        } else {
            std::snprintf(text, sizeof text, "an illegal memory access was encountered: address %p", info->si_addr);
        }
        fault_current_thread(text);  // switches away from this stack for good
    }
    if (signal_number != SIGFPE && arena().contains(info->si_addr)) {
        int length = std::snprintf(text, sizeof text, host_access, info->si_addr);
        ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(length));
        static_cast<void>(written);
    }
    const struct sigaction& previous =
        signal_number == SIGFPE ? previous_fpe : signal_number == SIGBUS ? previous_bus : previous_segv;
    sigaction(signal_number, &previous, nullptr);  // the instruction runs again and meets the previous handler
}

}  // namespace

DeviceMemoryWindow::DeviceMemoryWindow() {
    if (!arena().open++) arena().set_accessible(true);
}

DeviceMemoryWindow::~DeviceMemoryWindow() {
    if (!--arena().open) arena().set_accessible(false);
}

bool is_device_range(CUdeviceptr address, size_t size) {
    if (!size) return true;
    const auto& allocated = arena().allocated;
    auto it = allocated.upper_bound(address);
    if (it == allocated.begin()) return false;
    --it;
    return size <= it->second && address - it->first <= it->second - size;
}

size_t device_memory_capacity() { return arena().capacity; }

void install_fault_handler() {
    if (sanitizer_active()) return;  // the sanitizer reports faults itself, with the line
    // Faults on a fiber's guard page leave no stack to handle them on.
    stack_t present{};
    sigaltstack(nullptr, &present);
    if (present.ss_flags & SS_DISABLE) {
        stack_t alternate{};
        alternate.ss_size = 1 << 16;
        alternate.ss_sp = std::malloc(alternate.ss_size);
        sigaltstack(&alternate, nullptr);
    }
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
    sigaction(SIGFPE, &action, &previous_fpe);
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemAlloc")) return status;
    if (!size) return error(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc: size is 0");
    Arena& memory = arena();
    if (size > memory.capacity - memory.used) return out_of_memory(size);
    size_t block = round_up(size, kAlignment) + kRedZone;
    CUdeviceptr taken = memory.take(block);
    if (!taken) return out_of_memory(size);
    memory.allocated[taken] = size;
    memory.used += size;
    DeviceMemoryWindow window;
    sanitizer_unpoison(device(taken), size);
    std::memset(device(taken), kAllocFill, size);
    sanitizer_poison(device(taken + size), block - size);
    *address = taken;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemFree_v2(CUdeviceptr address) {
    Guard guard(driver_mutex);
    if (!address) return CUDA_SUCCESS;
    Arena& memory = arena();
    auto it = memory.allocated.find(address);
    if (it == memory.allocated.end()) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuMemFree: not the start of a live allocation");
    }
    size_t size = it->second, block = round_up(size, kAlignment) + kRedZone;
    memory.allocated.erase(it);
    memory.used -= size;
    {
        DeviceMemoryWindow window;
        std::memset(device(address), kFreeFill, size);
        if (size >= kReturnToSystem) {
            CUdeviceptr first = round_up(address, 4096), last = (address + size) / 4096 * 4096;
            madvise(device(first), last - first, MADV_DONTNEED);
        }
    }
    sanitizer_poison(device(address), size);
    memory.give_back(address, block);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemGetInfo")) return status;
    *total = arena().capacity;
    *free_bytes = arena().capacity - arena().used;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    Guard guard(driver_mutex);
    if (!is_device_range(address, 1)) return error(CUDA_ERROR_NOT_FOUND, "cuMemGetAddressRange: not device memory");
    auto it = std::prev(arena().allocated.upper_bound(address));
    if (base) *base = it->first;
    if (size) *size = it->second;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream) { return cuMemAlloc_v2(address, size); }
CUEMU_API cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }

CUEMU_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
    *pitch = round_up(width, kAlignment);
    return cuMemAlloc_v2(address, *pitch * height);
}

CUEMU_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    Guard guard(driver_mutex);
    CUresult status = check_range("cuMemcpyHtoD", to, size);
    return status ? status : copy("cuMemcpyHtoD", device(to), from, size);
}

CUEMU_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    Guard guard(driver_mutex);
    CUresult status = check_range("cuMemcpyDtoH", from, size);
    return status ? status : copy("cuMemcpyDtoH", to, device(from), size);
}

CUEMU_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    Guard guard(driver_mutex);
    CUresult status = check_range("cuMemcpyDtoD", to, size);
    if (!status) status = check_range("cuMemcpyDtoD", from, size);
    return status ? status : copy("cuMemcpyDtoD", device(to), device(from), size);
}

// Unified addressing: either side may be host or device memory.
CUEMU_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    Guard guard(driver_mutex);
    for (CUdeviceptr end : {to, from}) {
        if (!arena().contains(device(end))) continue;
        if (CUresult status = check_range("cuMemcpy", end, size)) return status;
    }
    return copy("cuMemcpy", device(to), device(from), size);
}

CUEMU_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream) {
    return cuMemcpyHtoD_v2(to, from, size);
}
CUEMU_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream) {
    return cuMemcpyDtoH_v2(to, from, size);
}
CUEMU_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) {
    return cuMemcpyDtoD_v2(to, from, size);
}
CUEMU_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) { return cuMemcpy(to, from, size); }

CUEMU_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fill("cuMemsetD8", to, value, count);
}
CUEMU_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
    return cuMemsetD8_v2(to, value, count);
}
CUEMU_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fill("cuMemsetD16", to, value, count);
}
CUEMU_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
    return cuMemsetD16_v2(to, value, count);
}
CUEMU_API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    return fill("cuMemsetD32", to, value, count);
}
CUEMU_API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
    return cuMemsetD32_v2(to, value, count);
}

// Page-locked host memory is ordinary memory here, and kernels may use its address.
CUEMU_API cuMemHostAlloc(void** address, size_t size, unsigned) {
    if (CUresult status = require_context("cuMemHostAlloc")) return status;
    *address = std::aligned_alloc(4096, round_up(size ? size : 1, 4096));
    return *address ? CUDA_SUCCESS : out_of_memory(size);
}
CUEMU_API cuMemAllocHost_v2(void** address, size_t size) { return cuMemHostAlloc(address, size, 0); }
CUEMU_API cuMemFreeHost(void* address) {
    std::free(address);
    return CUDA_SUCCESS;
}
CUEMU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* to, void* address, unsigned) {
    *to = reinterpret_cast<CUdeviceptr>(address);
    return CUDA_SUCCESS;
}
CUEMU_API cuMemHostRegister_v2(void* address, size_t, unsigned) {
    Guard guard(driver_mutex);
    if (registered_host_memory().insert(address).second) return CUDA_SUCCESS;
    return error(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "cuMemHostRegister: registered twice");
}
CUEMU_API cuMemHostUnregister(void* address) {
    Guard guard(driver_mutex);
    if (registered_host_memory().erase(address)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "cuMemHostUnregister: not registered");
}
