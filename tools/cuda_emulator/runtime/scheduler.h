// Runs one kernel launch to its end: block after block, the threads of a block as fibers that are switched only at
// barriers and warp collectives. Called by the driver under its lock; there is one launch at a time in a process.
#pragma once

#include <string>

#include "../include/cuemu_runtime.h"

namespace cuemu {

struct LaunchShape {
    dim3 grid, block;
    size_t dynamic_shared;
};

// Returns the empty string, or what went wrong: kernel, block, thread and reason.
std::string run_grid(const Kernel& kernel, const LaunchShape& shape, const char* packed_parameters);

// True on the host thread that runs a kernel at this moment.
bool inside_kernel();

// Called from a signal handler on a faulting fiber: ends the launch with `message`.
void fault_current_thread(const char* message);

// Threads run since the library was loaded.
unsigned long long threads_run();

}  // namespace cuemu
