// Device memory: for each device a reserved range of addresses that is inaccessible except while a kernel or a copy runs,
// so that host code which follows a device pointer faults instead of reading a plausible value. Page-locked host memory
// is ordinary memory that is remembered.
#pragma once

#include "abi.h"

namespace cuemu {

constexpr unsigned kAllDevices = ~0u;

// Opens the memory of some devices (bit d: device d) for the lifetime of the object.
class DeviceMemoryWindow {
  public:
    explicit DeviceMemoryWindow(unsigned devices = kAllDevices);
    ~DeviceMemoryWindow();
    DeviceMemoryWindow(const DeviceMemoryWindow&) = delete;

  private:
    unsigned opened_;
};

// False with CUEMU_GUARD=0: what was opened stays open, which saves the time of closing and opening.
bool memory_is_guarded();

// A live range of device memory.
struct Range {
    CUdeviceptr address = 0;
    size_t size = 0;
    int device = -1;
    explicit operator bool() const { return size != 0; }
};
Range device_range(CUdeviceptr address);

// Device memory outside the reserved addresses.
void add_foreign_range(const Range& range);
void remove_foreign_range(CUdeviceptr address);

// True if [address, address + size) is live memory of one device.
bool is_device_range(CUdeviceptr address, size_t size);

// True for every address reserved for device memory, live or not.
bool is_device_address(CUdeviceptr address);

// CUDA_SUCCESS, or an error that says what does not lie in live device memory.
CUresult check_range(const char* call, CUdeviceptr address, size_t size);

// Memory of a device. What is asked for is handed out poisoned unless `fill` is false.
CUresult take_memory(CUdevice device, size_t size, CUdeviceptr* address, bool fill = true);
CUresult give_memory_back(CUdeviceptr address);
void fill_fresh_memory(CUdeviceptr address, size_t size);

// Adds to what is in use on a device, or takes away; "out of memory" where it does not fit.
CUresult count_memory(CUdevice device, long long bytes);

// Puts the pages of an allocation into a file in memory, if they are not there yet, until it is freed.
struct SharedMemory {
    int file;
    CUdevice device;
    size_t size;
    unsigned long long serial;
};
CUresult share_memory(CUdeviceptr address, SharedMemory* shared);

// virtual_memory.cpp: mapped memory that some device may use, reserved addresses, and the windows on mappings.
Range mapped_range(CUdeviceptr address);
bool is_reserved(CUdeviceptr address);
void set_mappings_accessible(unsigned devices, bool accessible);

// stream.cpp
bool is_interprocess(CUevent event);

// True if all of [address, address + size) is page-locked.
bool is_pinned(const void* address, size_t size);

// The size of a device's memory: CUEMU_MEMORY_MB, 2,048 by default.
size_t device_memory_capacity(CUdevice device);

// Turns faults on device memory into messages and faults of kernels into errors. Called by cuInit.
void install_fault_handler();

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cuemu
