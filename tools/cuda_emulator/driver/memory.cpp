#include "memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "../runtime/sanitizer.h"
#include "../runtime/scheduler.h"
#include "graph.h"

namespace cuemu {
namespace {

constexpr size_t kPage = 4096;               // an allocation has its pages for itself: they may be shared
constexpr size_t kPitch = 512;
constexpr size_t kRedZone = 512;             // never part of an allocation
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kReturnToSystem = 8 << 20;  // free blocks from this size on give their pages back
constexpr size_t kFillWhole = 64 << 20;      // larger allocations are filled at both ends: pages cost time when touched
constexpr size_t kFillEnd = 4 << 20;
constexpr int kAllocFill = 0xFF;             // NaN in every floating type, -1 in every integer type
constexpr int kFreeFill = 0xDD;

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }
size_t block_size(size_t size) { return round_up(size + kRedZone, kPage); }

struct Arena {
    const CUdevice device;
    char* base = nullptr;
    size_t capacity = 0;
    size_t high_water = 0;                        // bytes from base that were ever handed out
    size_t used = 0;                              // sum of live sizes
    int open = 0;                                 // nested windows
    int key = -1;                                 // memory protection key, where the processor has them
    std::map<CUdeviceptr, size_t> allocated;      // address -> size asked for
    std::map<CUdeviceptr, SharedMemory> shared;   // allocations whose pages other processes may map
    std::map<CUdeviceptr, size_t> free_blocks;    // address -> size, red zone included

    explicit Arena(CUdevice owner) : device(owner) {
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

    // Other processes that mapped the pages keep them; here, fresh ones take their place.
    void unshare(CUdeviceptr address, size_t block) {
        auto it = shared.find(address);
        if (it == shared.end()) return;
        close(it->second.file);
        shared.erase(it);
        place(address, block, -1);
    }

    // Maps a block's pages anew: to a file in memory, or without one.
    bool place(CUdeviceptr address, size_t block, int file) {
        int access = key >= 0 || open ? PROT_READ | PROT_WRITE : PROT_NONE;
        int flags = MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
        if (mmap(pointer(address), block, access, flags, file, 0) == MAP_FAILED) return false;
        return key < 0 || !pkey_mprotect(pointer(address), block, access, key);
    }

    // A protection key opens the whole range for this thread in nanoseconds. mprotect opens it for every thread, and
    // takes 0.4 us for each page in use (measured: half a millisecond for 5 MB); hence the huge pages.
    void set_accessible(bool accessible) {
        if (!accessible && !memory_is_guarded()) return;
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

// Made at first use and never destroyed: interpreters free device memory from destructors that run after static
// destruction.
Arena* arenas[kMaxDevices];

Arena& arena(CUdevice device) {
    if (!arenas[device]) arenas[device] = new Arena(device);
    return *arenas[device];
}

int open_windows;
unsigned mapping_window;  // the devices of the outermost window

// Device memory that lies elsewhere: variables of loaded modules. The host can touch it, by accident too.
std::map<CUdeviceptr, Range>& foreign_ranges() {
    static auto* ranges = new std::map<CUdeviceptr, Range>;
    return *ranges;
}

Range foreign_range(CUdeviceptr address) {
    auto it = foreign_ranges().upper_bound(address);
    if (it == foreign_ranges().begin()) return {};
    --it;
    return address - it->first < it->second.size ? it->second : Range{};
}

// The device whose addresses these are; null for host addresses.
Arena* arena_of(CUdeviceptr address) {
    for (Arena* candidate : arenas) {
        if (candidate && candidate->contains(pointer(address))) return candidate;
    }
    return nullptr;
}

CUresult out_of_memory(const Arena& memory, size_t size) {
    return error(CUDA_ERROR_OUT_OF_MEMORY, "tried to allocate " + std::to_string(size) + " bytes, " +
                                               std::to_string(memory.used) + " of " +
                                               std::to_string(memory.capacity) + " are in use");
}

struct sigaction previous_segv, previous_bus, previous_fpe, previous_ill;

// A fault inside a kernel ends the launch; a fault of the host on device memory is explained, then left to whoever
// handled it before (in the end the default action, which ends the process).
void on_fault(int signal_number, siginfo_t* info, void*) {
    constexpr const char* host_access = "cuemu: host code accessed device memory at %p; copy it with cuMemcpy\n";
    char text[160];
    if (inside_kernel()) {
        if (signal_number == SIGILL) {
            std::snprintf(text, sizeof text, "misaligned address: an access needs more alignment than its address has");
        } else if (signal_number == SIGFPE) {
            std::snprintf(text, sizeof text, "arithmetic fault (integer division by zero or overflow)");
        } else {
            std::snprintf(text, sizeof text, "an illegal memory access was encountered: address %p", info->si_addr);
        }
        fault_current_thread(text);  // switches away from this stack for good
    }
    CUdeviceptr address = reinterpret_cast<CUdeviceptr>(info->si_addr);
    if ((signal_number == SIGSEGV || signal_number == SIGBUS) && (arena_of(address) || is_reserved(address))) {
        int length = std::snprintf(text, sizeof text, host_access, info->si_addr);
        ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(length));
        static_cast<void>(written);
    }
    const struct sigaction& previous = signal_number == SIGFPE   ? previous_fpe
                                       : signal_number == SIGILL ? previous_ill
                                       : signal_number == SIGBUS ? previous_bus
                                                                 : previous_segv;
    sigaction(signal_number, &previous, nullptr);  // the instruction runs again and meets the previous handler
}

}  // namespace

DeviceMemoryWindow::DeviceMemoryWindow(unsigned devices) : opened_(devices) {
    if (!open_windows++) set_mappings_accessible(mapping_window = devices, true);
    for (Arena* memory : arenas) {
        if (memory && devices >> memory->device & 1 && !memory->open++) memory->set_accessible(true);
    }
}

DeviceMemoryWindow::~DeviceMemoryWindow() {
    for (Arena* memory : arenas) {
        if (memory && opened_ >> memory->device & 1 && !--memory->open) memory->set_accessible(false);
    }
    if (!--open_windows) set_mappings_accessible(mapping_window, false);
}

Range device_range(CUdeviceptr address) {
    Arena* memory = arena_of(address);
    if (!memory) {
        Range mapped = mapped_range(address);
        return mapped ? mapped : foreign_range(address);
    }
    auto it = memory->allocated.upper_bound(address);
    if (it == memory->allocated.begin()) return {};
    --it;
    if (address - it->first >= it->second) return {};
    return {it->first, it->second, memory->device};
}

bool memory_is_guarded() {
    static const bool guarded = [] {
        const char* setting = std::getenv("CUEMU_GUARD");
        return !setting || std::strcmp(setting, "0");
    }();
    return guarded;
}

bool is_device_range(CUdeviceptr address, size_t size) {
    while (size) {  // neighbouring mappings are one range; allocations have a red zone between them
        Range range = device_range(address);
        if (!range) return false;
        size_t rest = range.size - (address - range.address);
        if (size <= rest) return true;
        size -= rest;
        address += rest;
    }
    return true;
}

bool is_device_address(CUdeviceptr address) {
    return arena_of(address) || is_reserved(address) || foreign_range(address);
}

void add_foreign_range(const Range& range) { foreign_ranges()[range.address] = range; }
void remove_foreign_range(CUdeviceptr address) { foreign_ranges().erase(address); }

CUresult check_range(const char* call, CUdeviceptr address, size_t size) {
    if (is_device_range(address, size)) return CUDA_SUCCESS;
    char text[160];
    std::snprintf(text, sizeof text, "%s: %zu bytes at %#llx are not inside one device allocation", call, size,
                  address);
    return error(CUDA_ERROR_INVALID_VALUE, text);
}

void fill_fresh_memory(CUdeviceptr address, size_t size) {
    DeviceMemoryWindow window;
    bool whole = size <= kFillWhole;
    std::memset(pointer(address), kAllocFill, whole ? size : kFillEnd);
    if (!whole) std::memset(pointer(address + size - kFillEnd), kAllocFill, kFillEnd);
}

CUresult take_memory(CUdevice device, size_t size, CUdeviceptr* address, bool fill) {
    Arena& memory = arena(device);
    if (size > memory.capacity - memory.used) return out_of_memory(memory, size);
    size_t block = block_size(size);
    CUdeviceptr taken = memory.take(block);
    if (!taken) return out_of_memory(memory, size);
    memory.allocated[taken] = size;
    memory.used += size;
    sanitizer_unpoison(pointer(taken), size);
    sanitizer_poison(pointer(taken + size), block - size);
    if (fill) fill_fresh_memory(taken, size);
    *address = taken;
    return CUDA_SUCCESS;
}

CUresult give_memory_back(CUdeviceptr address) {
    Range range = device_range(address);
    if (!range || range.address != address || !arena_of(address)) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuMemFree: not the start of a live allocation");
    }
    Arena& memory = arena(range.device);
    size_t size = range.size, block = block_size(size);
    memory.allocated.erase(address);
    memory.used -= size;
    {
        DeviceMemoryWindow window(1u << range.device);
        CUdeviceptr end = address + size, first = end, last = end;
        if (size >= kReturnToSystem) first = round_up(address, kPage), last = end / kPage * kPage;
        std::memset(pointer(address), kFreeFill, first - address);
        if (first != last) madvise(pointer(first), last - first, MADV_DONTNEED);
        std::memset(pointer(last), kFreeFill, end - last);
    }
    memory.unshare(address, block);
    sanitizer_poison(pointer(address), size);
    memory.give_back(address, block);
    return CUDA_SUCCESS;
}

CUresult count_memory(CUdevice device, long long bytes) {
    Arena& memory = arena(device);
    if (bytes > 0 && static_cast<size_t>(bytes) > memory.capacity - memory.used) {
        return out_of_memory(memory, static_cast<size_t>(bytes));
    }
    memory.used += static_cast<size_t>(bytes);
    return CUDA_SUCCESS;
}

CUresult share_memory(CUdeviceptr address, SharedMemory* result) {
    static unsigned long long serials;
    Arena* memory = arena_of(address);
    Range range = device_range(address);
    if (!range || !memory) return error(CUDA_ERROR_INVALID_VALUE, "only memory of cuMemAlloc can be shared");
    finish_device(range.device);
    auto it = memory->shared.find(range.address);
    if (it == memory->shared.end()) {
        DeviceMemoryWindow window;
        size_t block = block_size(range.size);
        int file = memfd_create("cuemu_memory", MFD_CLOEXEC);
        ssize_t copied = file < 0 ? -1 : pwrite(file, pointer(range.address), range.size, 0);
        if (copied != static_cast<ssize_t>(range.size) || ftruncate(file, static_cast<off_t>(block)) ||
            !memory->place(range.address, block, file)) {
            return error(CUDA_ERROR_OUT_OF_MEMORY, "no file in memory");
        }
        it = memory->shared.emplace(range.address, SharedMemory{file, range.device, block, ++serials}).first;
    }
    *result = it->second;
    return CUDA_SUCCESS;
}

size_t device_memory_capacity(CUdevice device) {
    Guard guard(driver_mutex);
    return arena(device).capacity;
}

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
    sigaction(SIGILL, &action, &previous_ill);
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemAlloc")) return status;
    if (CUresult status = refuse_during_capture("cuMemAlloc")) return status;
    if (!size) return error(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc: size is 0");
    return take_memory(current_context()->device, size, address);
}

// Waits for the device, as the driver does: nothing queued may use the memory afterwards.
CUEMU_API cuMemFree_v2(CUdeviceptr address) {
    Guard guard(driver_mutex);
    if (!address) return CUDA_SUCCESS;
    Range range = device_range(address);
    if (CUresult status = refuse_during_capture("cuMemFree")) return status;
    if (range) finish_device(range.device);
    return give_memory_back(address);
}

CUEMU_API cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemGetInfo")) return status;
    const Arena& memory = arena(current_context()->device);
    *total = memory.capacity;
    *free_bytes = memory.capacity - memory.used;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    Guard guard(driver_mutex);
    Range range = device_range(address);
    if (!range) return error(CUDA_ERROR_NOT_FOUND, "cuMemGetAddressRange: not device memory");
    if (base) *base = range.address;
    if (size) *size = range.size;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
    *pitch = round_up(width, kPitch);
    return cuMemAlloc_v2(address, *pitch * height);
}
