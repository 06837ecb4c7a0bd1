/* Fractional max pooling (Graham 2014): windows of one size whose steps a random number of each plane chooses. Planes have up to three dimensions. */
/* Measured: F.fractional_max_pool2d(image, 2, output_ratio=0.5) */
#include "kernel_base.h"
#include "pool_steps.h"

/* Numbers of half types are rounded after each operation, as PyTorch's are. */
#define ROUND_f32(a, v) ((a)->rounding == DT_f16 ? ld_f16(st_f16(v)) : (a)->rounding == DT_bf16 ? ld_bf16(st_bf16(v)) : (v))
#define ROUND_f64(a, v) (v)

#define DEFINE_FRACTIONAL(T)                                                                                                                     \
    static int64_t fractional_start_##T(const fractional_call* a, int d, T sample, int64_t i) {                                                  \
        if (i == a->out[d] - 1) return a->size[d] - a->kernel[d];                                                                                  \
        T alpha = ROUND_##T(a, ROUND_##T(a, (T)(a->size[d] - a->kernel[d])) / ROUND_##T(a, (T)(a->out[d] - 1)));                                   \
        return (int64_t)ROUND_##T(a, ROUND_##T(a, (T)i + sample) * alpha) - (int64_t)ROUND_##T(a, sample * alpha);                               \
    }                                                                                                                                            \
    static void fractional_max_##T(const fractional_call* a, int64_t begin, int64_t end) {                                                       \
        int64_t in_plane = a->size[0] * a->size[1] * a->size[2], out_plane = a->out[0] * a->out[1] * a->out[2];                                        \
        for (int64_t p = begin; p < end; p++) {                                                                                                  \
            const T *x = (const T*)a->x + p * in_plane, *sample = (const T*)a->samples + p * a->dims;                                            \
            T* y = (T*)a->y + p * out_plane;                                                                                                     \
            int64_t* indices = a->indices + p * out_plane;                                                                                       \
            for (int64_t i0 = 0; i0 < a->out[0]; i0++) {                                                                                         \
                int64_t s0 = a->dims == 3 ? fractional_start_##T(a, 0, sample[0], i0) : 0;                                                       \
                for (int64_t i1 = 0; i1 < a->out[1]; i1++) {                                                                                     \
                    int64_t s1 = fractional_start_##T(a, 1, sample[1], i1);                                                                      \
                    for (int64_t i2 = 0; i2 < a->out[2]; i2++) {                                                                                 \
                        int64_t s2 = fractional_start_##T(a, 2, sample[a->dims == 3 ? 2 : 0], i2), best = (s0 * a->size[1] + s1) * a->size[2] + s2;  \
                        T most = -INFINITY;                                                                                                      \
                        for (int64_t k0 = s0; k0 < s0 + a->kernel[0]; k0++)                                                                      \
                            for (int64_t k1 = s1; k1 < s1 + a->kernel[1]; k1++)                                                                  \
                                for (int64_t k2 = s2; k2 < s2 + a->kernel[2]; k2++) {                                                            \
                                    int64_t at = (k0 * a->size[1] + k1) * a->size[2] + k2;                                                           \
                                    if (x[at] > most || x[at] != x[at]) {                                                                        \
                                        most = x[at];                                                                                            \
                                        best = at;                                                                                               \
                                    }                                                                                                            \
                                }                                                                                                                \
                        *y++ = most;                                                                                                             \
                        *indices++ = best;                                                                                                       \
                    }                                                                                                                            \
                }                                                                                                                                \
            }                                                                                                                                    \
        }                                                                                                                                        \
    }
FRACTIONAL_MAX_TYPES(DEFINE_FRACTIONAL)
FRACTIONAL_MAX_TASK
