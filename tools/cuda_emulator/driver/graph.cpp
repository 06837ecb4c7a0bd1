#include "graph.h"
namespace cuemu {
CUresult refuse_during_capture(const char*) { return CUDA_SUCCESS; }
}
