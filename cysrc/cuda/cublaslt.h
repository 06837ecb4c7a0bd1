/* The part of cuBLASLt's interface (NVIDIA's cublasLt.h, versions 12 and 13) that is called: numbers, the layout of two structures and the calls'
   signatures. cublas.pyx fills the table from the library; tools/cuda_emulator/cublaslt implements it; tests/cuda/cublaslt_header.cpp compares every
   line with NVIDIA's header where that is installed. */
#ifndef TRT_CUBLASLT_H
#define TRT_CUBLASLT_H
#include <stddef.h>
#include <stdint.h>

/* name in NVIDIA's headers, number */
#define TRT_LT_NUMBERS(X)                                                                                                     \
  X(CUDA_R_32F, 0) X(CUDA_R_64F, 1) X(CUDA_R_16F, 2) X(CUDA_R_8I, 3) X(CUDA_C_32F, 4) X(CUDA_C_64F, 5) X(CUDA_R_32I, 10)      \
  X(CUDA_R_16BF, 14)                                                                                                          \
  X(CUBLAS_COMPUTE_16F, 64) X(CUBLAS_COMPUTE_32F, 68) X(CUBLAS_COMPUTE_64F, 70) X(CUBLAS_COMPUTE_32I, 72)                     \
  X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                                                                         \
  X(CUBLAS_OP_N, 0) X(CUBLAS_OP_T, 1)                                                                                         \
  X(CUBLAS_STATUS_SUCCESS, 0) X(CUBLAS_STATUS_NOT_INITIALIZED, 1) X(CUBLAS_STATUS_INVALID_VALUE, 7)                           \
  X(CUBLAS_STATUS_ARCH_MISMATCH, 8) X(CUBLAS_STATUS_EXECUTION_FAILED, 13) X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                  \
  X(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0) X(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 1) X(CUBLASLT_MATMUL_DESC_TRANSA, 3)             \
  X(CUBLASLT_MATMUL_DESC_TRANSB, 4) X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)               \
  X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)                                  \
  X(CUBLASLT_EPILOGUE_DEFAULT, 1) X(CUBLASLT_EPILOGUE_RELU, 2) X(CUBLASLT_EPILOGUE_BIAS, 4) X(CUBLASLT_EPILOGUE_GELU, 32)     \
  X(CUBLASLT_EPILOGUE_RELU_BIAS, 6) X(CUBLASLT_EPILOGUE_GELU_BIAS, 36)                                                        \
  X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)                             \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                           \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                           \
  X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) X(CUBLASLT_REDUCTION_SCHEME_MASK, 7)

enum {
#define X(name, number) TRT_##name = number,
  TRT_LT_NUMBERS(X)
#undef X
};

typedef struct { uint64_t data[8]; } trt_lt_algo;
typedef struct {
  trt_lt_algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} trt_lt_result;

/* member, symbol, parameters; handles are pointers to structures of the library's, enumerations are ints; every call returns a status */
#define TRT_LT_CALLS(X)                                                                                                       \
  X(create, cublasLtCreate, (void** handle))                                                                                  \
  X(desc_create, cublasLtMatmulDescCreate, (void** desc, int compute, int scale))                                             \
  X(desc_destroy, cublasLtMatmulDescDestroy, (void* desc))                                                                    \
  X(desc_set, cublasLtMatmulDescSetAttribute, (void* desc, int attribute, const void* value, size_t size))                    \
  X(layout_create, cublasLtMatrixLayoutCreate, (void** layout, int type, uint64_t rows, uint64_t cols, int64_t ld))           \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, (void* layout))                                                              \
  X(layout_set, cublasLtMatrixLayoutSetAttribute, (void* layout, int attribute, const void* value, size_t size))              \
  X(preference_create, cublasLtMatmulPreferenceCreate, (void** preference))                                                   \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy, (void* preference))                                                  \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute, (void* preference, int attribute, const void* value, size_t size))  \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                                \
    (void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int wanted, trt_lt_result* results,      \
     int* found))                                                                                                             \
  X(matmul, cublasLtMatmul,                                                                                                   \
    (void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,               \
     const void* beta, const void* c, void* c_layout, void* d, void* d_layout, const trt_lt_algo* algo, void* workspace,      \
     size_t workspace_size, void* stream))

typedef struct {
#define X(member, symbol, parameters) int(*member) parameters;
  TRT_LT_CALLS(X)
#undef X
  size_t (*version)(void);             /* cublasLtGetVersion */
} trt_lt;

static const char* const trt_lt_symbols[] = {
#define X(member, symbol, parameters) #symbol,
  TRT_LT_CALLS(X)
#undef X
  "cublasLtGetVersion",
};
#endif
