// State shared by the files of the driver: one lock over everything, the message of the last error, the current
// context of each host thread.
#pragma once

#include <mutex>
#include <string>

#include "abi.h"

namespace cuemu {

// Calls from several host threads take turns; recursive, since driver calls are built from one another.
extern std::recursive_mutex driver_mutex;
using Guard = std::lock_guard<std::recursive_mutex>;

// Records what went wrong; cuGetErrorString appends the text to the name of this code until the next error.
CUresult error(CUresult code, const std::string& message);

// CUDA_SUCCESS when this thread has a current context, as almost every call requires.
CUresult require_context(const char* call);

}  // namespace cuemu
