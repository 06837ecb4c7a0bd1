// Device memory: a reserved range of addresses that is inaccessible except while a kernel or a copy runs, so that host
// code which follows a device pointer faults instead of reading a plausible value.
#pragma once

#include "abi.h"

namespace cuemu {

// Opens the device memory in use for the lifetime of the object.
class DeviceMemoryWindow {
  public:
    DeviceMemoryWindow();
    ~DeviceMemoryWindow();
    DeviceMemoryWindow(const DeviceMemoryWindow&) = delete;
};

// True if [address, address + size) lies in one live allocation.
bool is_device_range(CUdeviceptr address, size_t size);

// The size of the emulated device's memory: CUEMU_MEMORY_MB, 2,048 by default.
size_t device_memory_capacity();

// Turns faults on device memory into messages and faults of kernels into errors. Called by cuInit.
void install_fault_handler();

}  // namespace cuemu
