// Stream capture and graphs.
#pragma once

#include "work.h"

namespace cuemu {

// CUDA_SUCCESS unless a capture forbids calls like this one (allocation, blocking copies, loading) to this thread; then
// the capture is invalid from here on.
CUresult refuse_during_capture(const char* call);

}  // namespace cuemu
