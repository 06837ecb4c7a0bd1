// Calls that tune or advise, and have nothing to act on here.
#include "state.h"

CUEMU_API cuCtxSetCacheConfig(int) { return CUDA_SUCCESS; }
CUEMU_API cuCtxGetCacheConfig(int* config) {
    *config = 0;
    return CUDA_SUCCESS;
}
CUEMU_API cuCtxSetSharedMemConfig(int) { return CUDA_SUCCESS; }
CUEMU_API cuCtxGetSharedMemConfig(int* config) {
    *config = 1;  // banks of four bytes
    return CUDA_SUCCESS;
}
CUEMU_API cuFuncSetSharedMemConfig(CUfunction, int) { return CUDA_SUCCESS; }
CUEMU_API cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }
CUEMU_API cuStreamSetAttribute(CUstream, int, const void*) { return CUDA_SUCCESS; }
CUEMU_API cuStreamCopyAttributes(CUstream, CUstream) { return CUDA_SUCCESS; }
CUEMU_API cuMemAdvise_v2(CUdeviceptr, size_t, int, CUmemLocation) { return CUDA_SUCCESS; }
CUEMU_API cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) { return CUDA_SUCCESS; }
CUEMU_API cuProfilerStart() { return CUDA_SUCCESS; }
CUEMU_API cuProfilerStop() { return CUDA_SUCCESS; }
