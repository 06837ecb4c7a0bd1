/* Implicit QL (linalg_tridiagonal.h); one text for both types. */
/* Measured: trt.linalg.eigh(symmetric) */
#include <string.h>
#include "kernel_base.h"
#include "linalg_tridiagonal.h"

#if VECTOR_BYTES == 16 /* LAPACK serves processors before AVX2: a wheel is small */
const trt_tridiagonal_kernels ISA_NAME(trt_linalg_tridiagonal) = {{0}};
#else
enum {
    STRIP = 16,                         /* rows of eigenvectors that a sweep's rotations pass while one of its columns is in registers */
    SWEEPS = 30,                        /* for each eigenvalue, at most; two are usual */
};

#define T f32
#define NAME(x) x##_f32
#define VECTOR vf32
#define EPSILON 0x1p-24f
#define LEAST 0x1p-126f                 /* normal number */
#define TINY 0x1p-50f                   /* numbers below have squares that lose digits, and are taken in a unit of */
#define SQRT __builtin_sqrtf
#define ABS __builtin_fabsf
#define SIGN_OF __builtin_copysignf
#include "linalg_tridiagonal_typed.h"
#undef T
#undef NAME
#undef VECTOR
#undef EPSILON
#undef LEAST
#undef TINY
#undef SQRT
#undef ABS
#undef SIGN_OF

#define T f64
#define NAME(x) x##_f64
#define VECTOR vf64
#define EPSILON 0x1p-53
#define LEAST 0x1p-1022
#define TINY 0x1p-480
#define SQRT __builtin_sqrt
#define ABS __builtin_fabs
#define SIGN_OF __builtin_copysign
#include "linalg_tridiagonal_typed.h"

const trt_tridiagonal_kernels ISA_NAME(trt_linalg_tridiagonal) = {{implicit_ql_f32, implicit_ql_f64}};
#endif
