/* Householder reflectors by blocks (linalg_reflectors.h); one text for both types. */
/* Measured: trt.linalg.qr(m); trt.linalg.eigh(symmetric) */
#include "kernel_base.h"
#include "linalg_reflectors.h"

#if VECTOR_BYTES == 16 /* LAPACK serves processors before AVX2: a wheel is small */
const trt_reflector_kernels ISA_NAME(trt_linalg_reflectors)[2] = {{0}};
#else
enum {
    COLUMNS = 6,
    BLOCK = REFLECTOR_BLOCK,
    PAIRS = 8,                          /* columns of a symmetric matrix that become tridiagonal before the rest is brought up to date */
    PIVOTED = 16,                       /* and columns of QR with pivots */
};
#if VECTOR_BYTES == 64
enum { HIGH = 4 };                      /* vectors of rows, and columns of V, of a tile: 24 sums in 32 registers */
#else
enum { HIGH = 2 };                      /* 12 sums in 16 registers */
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, T)
#define JOIN3_(a, b, c) a##b##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define VECTOR JOIN3(v, T, )
#define VECTOR_U JOIN3(v, T, _u)
#define VECTOR_16 JOIN3(v, T, _16)

typedef i32 lane_f32 __attribute__((may_alias));
typedef i64 lane_f64 __attribute__((may_alias));
typedef vi32 lanes_f32;
typedef vi64 lanes_f64;

/* Quarters of two vectors (of a 0 to 3, of b 4 to 7), and pairs of elements within them. */
#define FOUR(a, b, i, j, k, l) (VECTOR)__builtin_shuffle((vi64)(a), (vi64)(b), (vi64){2 * i, 2 * i + 1, 2 * j, 2 * j + 1, 2 * k, 2 * k + 1, 2 * l, 2 * l + 1})
#define LOW_LONGS(a, b) __builtin_shuffle(a, b, (vi64){0, 8, 2, 10, 4, 12, 6, 14})
#define HIGH_LONGS(a, b) __builtin_shuffle(a, b, (vi64){1, 9, 3, 11, 5, 13, 7, 15})
#define LOW_WORDS(a, b) __builtin_shuffle(a, b, (vi32){0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29})
#define HIGH_WORDS(a, b) __builtin_shuffle(a, b, (vi32){2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31})

#define T f32
#define TRANSPOSED_SUMS(x, out)                                                                                                                        \
    const vf32 left = LOW_WORDS(x[0], x[1]) + HIGH_WORDS(x[0], x[1]), right = LOW_WORDS(x[2], x[3]) + HIGH_WORDS(x[2], x[3]);                          \
    out[0] = (vf32)LOW_LONGS((vf64)left, (vf64)right) + (vf32)HIGH_LONGS((vf64)left, (vf64)right)
#define SAFE_LEAST 0x1p-80f             /* sums of squares between these lose nothing to underflow or overflow */
#define SAFE_MOST 0x1p120f
#define HALF_DIGITS 0x1p-12f           /* the root of the unit roundoff */
#define SQRT __builtin_sqrtf
#define ABS __builtin_fabsf
#define LDEXP __builtin_ldexpf
#define NOT_SIGN 0x7fffffff
#include "linalg_reflectors_typed.h"
#undef T
#undef TRANSPOSED_SUMS
#undef SAFE_LEAST
#undef SAFE_MOST
#undef HALF_DIGITS
#undef SQRT
#undef ABS
#undef LDEXP
#undef NOT_SIGN

#define T f64
#define TRANSPOSED_SUMS(x, out)                             \
    out[0] = LOW_LONGS(x[0], x[1]) + HIGH_LONGS(x[0], x[1]); \
    out[1] = LOW_LONGS(x[2], x[3]) + HIGH_LONGS(x[2], x[3])
#define SAFE_LEAST 0x1p-900
#define SAFE_MOST 0x1p1000
#define HALF_DIGITS 0x1.6a09e6p-27
#define SQRT __builtin_sqrt
#define ABS __builtin_fabs
#define LDEXP __builtin_ldexp
#define NOT_SIGN 0x7fffffffffffffffLL
#include "linalg_reflectors_typed.h"

#define KERNELS(T) \
    { largest_##T, work_size_##T, qr_##T, generate_q_##T, multiply_q_##T, tridiagonal_##T, pivoted_work_size_##T, pivoted_qr_##T }
const trt_reflector_kernels ISA_NAME(trt_linalg_reflectors)[] = {KERNELS(f32), KERNELS(f64)};
#endif
