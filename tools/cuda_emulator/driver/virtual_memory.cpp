// Virtual memory management: addresses are reserved, physical memory is created apart from them, mapped and made
// accessible. Physical memory is a file in memory (memfd), which is also what allocations become when they are shared
// with other processes: a handle names the process and its file descriptor.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "graph.h"
#include "memory.h"
#include "work.h"

namespace cuemu {
namespace {

constexpr size_t kGranularity = 2 << 20;
constexpr int kFreshFill = 0xFF;
constexpr int kPosixFile = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct Physical {
    CUdevice device;
    int file;
    size_t size;
    bool fresh;
    int handles = 1;  // outstanding references by handle; mappings hold it too, by shared pointer
    ~Physical() {
        close(file);
        count_memory(device, -static_cast<long long>(size));
    }
};
using PhysicalPtr = std::shared_ptr<Physical>;

struct Mapping {
    size_t size;
    PhysicalPtr physical;
    unsigned devices = 0;  // that may use it
};

// By the process that made it and its file descriptor there: memory opened from another process.
struct Opened {
    CUdeviceptr address;
    int references;
};

std::map<CUdeviceptr, size_t>& reservations() {
    static auto* map = new std::map<CUdeviceptr, size_t>;
    return *map;
}
std::map<CUdeviceptr, Mapping>& mappings() {
    static auto* map = new std::map<CUdeviceptr, Mapping>;
    return *map;
}
std::map<Physical*, PhysicalPtr>& physicals() {
    static auto* map = new std::map<Physical*, PhysicalPtr>;
    return *map;
}

struct IpcHandle {
    char magic[8];
    int process, file, device, padding;
    unsigned long long size, serial;
    char rest[24];
};
static_assert(sizeof(IpcHandle) == 64, "CU_IPC_HANDLE_SIZE");
constexpr char kMemoryMagic[8] = "cuemuM1", kEventMagic[8] = "cuemuE1";

std::map<std::pair<int, unsigned long long>, Opened>& opened() {
    static auto* map = new std::map<std::pair<int, unsigned long long>, Opened>;
    return *map;
}

// The entry of a map from addresses to things with a size that holds `address`, or end().
template <class M, class S>
auto holder(M& map, CUdeviceptr address, S size_of) {
    auto it = map.upper_bound(address);
    if (it == map.begin()) return map.end();
    --it;
    return address - it->first < size_of(it->second) ? it : map.end();
}
auto find_mapping(CUdeviceptr address) {
    return holder(mappings(), address, [](const Mapping& mapping) { return mapping.size; });
}
auto find_reservation(CUdeviceptr address) {
    return holder(reservations(), address, [](size_t size) { return size; });
}

CUresult invalid(const char* call, const char* what) {
    return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": " + what);
}

CUresult reserve(CUdeviceptr* address, size_t size, size_t alignment) {
    if (alignment < kGranularity) alignment = kGranularity;
    void* range = mmap(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return error(CUDA_ERROR_OUT_OF_MEMORY, "no addresses left");
    CUdeviceptr start = reinterpret_cast<CUdeviceptr>(range), aligned = (start + alignment - 1) / alignment * alignment;
    if (aligned != start) munmap(range, aligned - start);
    munmap(pointer(aligned + size), start + alignment - aligned);
    reservations()[aligned] = size;
    *address = aligned;
    return CUDA_SUCCESS;
}

void release_addresses(CUdeviceptr address) {
    munmap(pointer(address), reservations()[address]);
    reservations().erase(address);
}

// The pages lie at the address from here on, closed.
CUresult map(const char* call, CUdeviceptr address, size_t size, const PhysicalPtr& physical) {
    int access = physical->fresh ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mmap(pointer(address), size, access, MAP_SHARED | MAP_FIXED, physical->file, 0) == MAP_FAILED) {
        return error(CUDA_ERROR_OUT_OF_MEMORY, std::string(call) + ": mmap failed");
    }
    if (physical->fresh) {
        std::memset(pointer(address), kFreshFill, size);
        mprotect(pointer(address), size, PROT_NONE);
        physical->fresh = false;
    }
    mappings()[address] = {size, physical};
    return CUDA_SUCCESS;
}

void unmap(std::map<CUdeviceptr, Mapping>::iterator it) {
    mmap(pointer(it->first), it->second.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    mappings().erase(it);
}

// True if mappings cover the range; `visit` gets each.
template <class F>
bool for_each_mapping(CUdeviceptr address, size_t size, F visit) {
    CUdeviceptr end = address + size;
    while (address < end) {
        auto it = mappings().find(address);
        if (it == mappings().end() || it->second.size > end - address) return false;
        address += it->second.size;
        visit(it);
    }
    return true;
}

}  // namespace

Range mapped_range(CUdeviceptr address) {
    auto it = find_mapping(address);
    if (it == mappings().end() || !it->second.devices) return {};
    return {it->first, it->second.size, it->second.physical->device};
}

bool is_reserved(CUdeviceptr address) { return find_reservation(address) != reservations().end(); }

void set_mappings_accessible(unsigned devices, bool accessible) {
    if (!accessible && !memory_is_guarded()) return;
    for (auto& entry : mappings()) {
        if (!(entry.second.devices & devices)) continue;
        mprotect(pointer(entry.first), entry.second.size, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

}  // namespace cuemu

using namespace cuemu;

struct AllocationProperties {
    int type, handle_types;
    CUmemLocation location;
    void* metadata;
    unsigned char flags[8];
};
struct AccessDescription {
    CUmemLocation location;
    int flags;  // 0 none, 1 reading, 3 reading and writing
};

CUEMU_API cuMemGetAllocationGranularity(size_t* granularity, const AllocationProperties*, int) {
    *granularity = kGranularity;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr, uint64_t flags) {
    Guard guard(driver_mutex);
    if (!size || size % kGranularity || flags || alignment & (alignment - 1)) {
        return invalid("cuMemAddressReserve", "the size is no multiple of 2 MiB, or flags or alignment are wrong");
    }
    return reserve(address, size, alignment);
}

CUEMU_API cuMemAddressFree(CUdeviceptr address, size_t size) {
    Guard guard(driver_mutex);
    auto it = reservations().find(address);
    if (it == reservations().end() || it->second != size) return invalid("cuMemAddressFree", "not a reserved range");
    auto mapped = mappings().lower_bound(address);
    if (mapped != mappings().end() && mapped->first < address + size) {
        return invalid("cuMemAddressFree", "memory is still mapped there");
    }
    release_addresses(address);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemCreate(Physical** handle, size_t size, const AllocationProperties* properties, uint64_t flags) {
    Guard guard(driver_mutex);
    CUdevice device = properties->location.id;
    if (CUresult status = check_device("cuMemCreate", device)) return status;
    if (CUresult status = refuse_during_capture("cuMemCreate")) return status;
    if (!size || size % kGranularity || flags) return invalid("cuMemCreate", "the size is no multiple of 2 MiB");
    if (CUresult status = count_memory(device, static_cast<long long>(size))) return status;
    int file = memfd_create("cuemu_memory", MFD_CLOEXEC);
    auto physical = PhysicalPtr(new Physical{device, file, size, true});
    if (file < 0 || ftruncate(file, static_cast<off_t>(size))) {
        return error(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate: no file in memory");
    }
    *handle = physical.get();
    physicals()[*handle] = physical;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemRelease(Physical* handle) {
    Guard guard(driver_mutex);
    if (!physicals().count(handle)) return invalid("cuMemRelease", "not a live handle");
    if (!--handle->handles) physicals().erase(handle);  // mappings keep the memory
    return CUDA_SUCCESS;
}

CUEMU_API cuMemMap(CUdeviceptr address, size_t size, size_t offset, Physical* handle, uint64_t flags) {
    Guard guard(driver_mutex);
    if (!physicals().count(handle)) return invalid("cuMemMap", "not a live handle");
    auto range = find_reservation(address);
    bool fits = range != reservations().end() && size <= range->second - (address - range->first);
    if (!fits || offset || flags || size != handle->size || address % kGranularity) {
        return invalid("cuMemMap", "not whole memory to a reserved range, or flags or offset are not 0");
    }
    auto next = mappings().lower_bound(address);
    if (find_mapping(address) != mappings().end() || (next != mappings().end() && next->first < address + size)) {
        return invalid("cuMemMap", "the addresses are in use");
    }
    return map("cuMemMap", address, size, physicals()[handle]);
}

CUEMU_API cuMemUnmap(CUdeviceptr address, size_t size) {
    Guard guard(driver_mutex);
    if (CUresult status = refuse_during_capture("cuMemUnmap")) return status;
    std::vector<std::map<CUdeviceptr, Mapping>::iterator> found;
    if (!for_each_mapping(address, size, [&](auto it) { found.push_back(it); })) {
        return invalid("cuMemUnmap", "the range does not consist of whole mappings");
    }
    for (auto it : found) unmap(it);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemSetAccess(CUdeviceptr address, size_t size, const AccessDescription* descriptions, size_t count) {
    Guard guard(driver_mutex);
    unsigned allowed = 0, denied = 0;
    for (size_t i = 0; i < count; i++) {
        if (CUresult status = check_device("cuMemSetAccess", descriptions[i].location.id)) return status;
        (descriptions[i].flags ? allowed : denied) |= 1u << descriptions[i].location.id;
    }
    auto set = [=](auto it) { it->second.devices = (it->second.devices & ~denied) | allowed; };
    if (for_each_mapping(address, size, set)) return CUDA_SUCCESS;
    return invalid("cuMemSetAccess", "the range does not consist of whole mappings");
}

CUEMU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    Guard guard(driver_mutex);
    auto it = find_mapping(address);
    if (it == mappings().end()) return invalid("cuMemGetAccess", "nothing is mapped there");
    *flags = it->second.devices >> location->id & 1 ? 3 : 0;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemRetainAllocationHandle(Physical** handle, void* address) {
    Guard guard(driver_mutex);
    auto it = find_mapping(reinterpret_cast<CUdeviceptr>(address));
    if (it == mappings().end()) return invalid("cuMemRetainAllocationHandle", "nothing is mapped there");
    *handle = it->second.physical.get();
    bool known = physicals().count(*handle);
    physicals()[*handle] = it->second.physical;
    (*handle)->handles = known ? (*handle)->handles + 1 : 1;
    return CUDA_SUCCESS;
}

CUEMU_API cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties, Physical* handle) {
    Guard guard(driver_mutex);
    if (!physicals().count(handle)) return invalid("cuMemGetAllocationPropertiesFromHandle", "not a live handle");
    *properties = {1, kPosixFile, {1, handle->device}, nullptr, {}};
    return CUDA_SUCCESS;
}

CUEMU_API cuMemExportToShareableHandle(int* file, Physical* handle, int type, uint64_t) {
    Guard guard(driver_mutex);
    if (!physicals().count(handle) || type != kPosixFile) {
        return invalid("cuMemExportToShareableHandle", "not a live handle, or not as a file descriptor");
    }
    *file = fcntl(handle->file, F_DUPFD_CLOEXEC, 0);
    return CUDA_SUCCESS;
}

CUEMU_API cuMemImportFromShareableHandle(Physical** handle, void* os_handle, int type) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuMemImportFromShareableHandle")) return status;
    int file = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)), F_DUPFD_CLOEXEC, 0);
    struct stat information;
    if (type != kPosixFile || file < 0 || fstat(file, &information)) {
        return invalid("cuMemImportFromShareableHandle", "not a file descriptor");
    }
    size_t size = static_cast<size_t>(information.st_size);
    CUdevice device = current_context()->device;
    if (CUresult status = count_memory(device, static_cast<long long>(size))) return status;
    auto physical = PhysicalPtr(new Physical{device, file, size, false});
    *handle = physical.get();
    physicals()[*handle] = physical;
    return CUDA_SUCCESS;
}

CUEMU_API cuIpcGetMemHandle(IpcHandle* handle, CUdeviceptr address) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuIpcGetMemHandle")) return status;
    SharedMemory shared;
    if (CUresult status = share_memory(address, &shared)) return status;
    *handle = {};
    std::memcpy(handle->magic, kMemoryMagic, sizeof kMemoryMagic);
    handle->process = getpid();
    handle->file = shared.file;
    handle->device = shared.device;
    handle->size = shared.size;
    handle->serial = shared.serial;
    return CUDA_SUCCESS;
}

CUEMU_API cuIpcOpenMemHandle_v2(CUdeviceptr* address, IpcHandle handle, unsigned) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuIpcOpenMemHandle")) return status;
    if (std::memcmp(handle.magic, kMemoryMagic, sizeof kMemoryMagic)) {
        return invalid("cuIpcOpenMemHandle", "not a memory handle");
    }
    if (handle.process == getpid()) {
        return error(CUDA_ERROR_INVALID_CONTEXT, "cuIpcOpenMemHandle: the memory belongs to this process");
    }
    auto& entry = opened()[{handle.process, handle.serial}];
    if (entry.references++) {
        *address = entry.address;
        return CUDA_SUCCESS;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    size_t size = (handle.size + kGranularity - 1) / kGranularity * kGranularity;
    CUresult status = CUDA_SUCCESS;
    if (file < 0) status = error(CUDA_ERROR_MAP_FAILED, std::string("cuIpcOpenMemHandle: cannot open ") + path);
    if (!status) status = reserve(&entry.address, size, 0);
    if (!status) {
        CUdevice device = current_context()->device;
        PhysicalPtr physical(new Physical{device, file, 0, false});  // its size counts in the other process
        status = map("cuIpcOpenMemHandle", entry.address, handle.size, physical);
        if (!status) mappings()[entry.address].devices = 1u << device;
    }
    if (status) {
        opened().erase({handle.process, handle.serial});
        return status;
    }
    *address = entry.address;
    return CUDA_SUCCESS;
}
CUEMU_API cuIpcOpenMemHandle(CUdeviceptr* address, IpcHandle handle, unsigned flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUEMU_API cuIpcCloseMemHandle(CUdeviceptr address) {
    Guard guard(driver_mutex);
    for (auto it = opened().begin(); it != opened().end(); ++it) {
        if (it->second.address != address) continue;
        if (--it->second.references) return CUDA_SUCCESS;
        finish_device(mappings()[address].physical->device);
        unmap(mappings().find(address));
        release_addresses(address);
        opened().erase(it);
        return CUDA_SUCCESS;
    }
    return invalid("cuIpcCloseMemHandle", "not opened memory");
}

// Recording an event for other processes runs its stream up to there, so that the event is complete wherever anybody can
// know of it.
CUEMU_API cuIpcGetEventHandle(IpcHandle* handle, CUevent event) {
    Guard guard(driver_mutex);
    if (!is_interprocess(event)) return error(CUDA_ERROR_INVALID_HANDLE, "cuIpcGetEventHandle: not made for this");
    *handle = {};
    std::memcpy(handle->magic, kEventMagic, sizeof kEventMagic);
    handle->process = getpid();
    return CUDA_SUCCESS;
}

CUEMU_API cuEventCreate(CUevent* event, unsigned flags);
CUEMU_API cuIpcOpenEventHandle(CUevent* event, IpcHandle handle) {
    if (std::memcmp(handle.magic, kEventMagic, sizeof kEventMagic)) {
        return invalid("cuIpcOpenEventHandle", "not an event handle");
    }
    if (handle.process == getpid()) {
        return error(CUDA_ERROR_INVALID_CONTEXT, "cuIpcOpenEventHandle: the event belongs to this process");
    }
    return cuEventCreate(event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
}
