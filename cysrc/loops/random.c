/* Multiplication by a mask of bytes (0 or 1) and a scale: what dropout does to its input and to the gradient.
 * A kept element is x * scale rounded once, a dropped one x * 0, so that infinities and NaN come out as in
 * PyTorch's product with a noise tensor. Contiguous runs; half types compute in float.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "../core/isa.h"
#include "scalar_types.h"

static void masked_scale_f32(const f32 *x, const uint8_t *m, f32 *r, i64 n, double scale)
{
    f32 s = (f32)scale;
    for (i64 i = 0; i < n; i++) r[i] = x[i] * ((f32)m[i] * s);
}

static void masked_scale_f64(const f64 *x, const uint8_t *m, f64 *r, i64 n, double s)
{
    for (i64 i = 0; i < n; i++) r[i] = x[i] * ((f64)m[i] * s);
}

#define HALF(type, load, store) \
    static void masked_scale_##type(const type *x, const uint8_t *m, type *r, i64 n, double scale) \
    { \
        f32 s = (f32)scale, a[256]; \
        for (i64 at = 0; at < n; at += 256) { \
            i64 k = n - at < 256 ? n - at : 256; \
            load(x + at, a, k); \
            for (i64 i = 0; i < k; i++) a[i] *= (f32)m[at + i] * s; \
            store(a, r + at, k); \
        } \
    }
HALF(f16, f16_to_f32_block, f32_to_f16_block)
HALF(bf16, bf16_to_f32_block, f32_to_bf16_block)

typedef void (*masked_scale_fn)(const void *, const uint8_t *, void *, i64, double);
#define OF(type) (masked_scale_fn)masked_scale_##type
const masked_scale_fn ISA_NAME(trt_masked_scale)[4] = {OF(f16), OF(bf16), OF(f32), OF(f64)};
