/* Number sequences: start + step * i, the values computed in double (integers: in 64 bits) and rounded once, so that a
 * sequence does not depend on how threads or vectors cut it. [begin, end) are indices of the whole sequence. */
#include "../core/isa.h"
#include "scalar_types.h"

static void range_i64(void *out, i64 begin, i64 end, i64 start, i64 step)
{
    u64 v = (u64)start + (u64)begin * (u64)step, s = (u64)step;
    u64 *p = (u64 *)out + begin;
    for (i64 i = 0; i < end - begin; i++) p[i] = v + (u64)i * s;
}

/* Indices are converted in blocks whose offsets fit 32 bits: those conversions vectorise everywhere. */
#define FLOATS(type) \
    static void range_##type(void *out, i64 begin, i64 end, f64 start, f64 step) \
    { \
        type *p = (type *)out; \
        for (i64 at = begin; at < end; at += 1024) { \
            int k = end - at < 1024 ? (int)(end - at) : 1024; \
            f64 base = (f64)at; \
            for (int j = 0; j < k; j++) p[at + j] = (type)(start + step * (base + (f64)j)); \
        } \
    } \
    /* From both ends towards the middle, so that the last value is exactly `stop`. */ \
    static void linspace_##type(void *out, i64 begin, i64 end, i64 n, f64 start, f64 stop, f64 step) \
    { \
        type *p = (type *)out; \
        i64 half = n / 2, first = end < half ? end : half; \
        if (begin < first) range_##type(out, begin, first, start, step); \
        for (i64 at = begin > half ? begin : half; at < end; at += 1024) { \
            int k = end - at < 1024 ? (int)(end - at) : 1024; \
            f64 left = (f64)(n - 1 - at); \
            for (int j = 0; j < k; j++) p[at + j] = (type)(stop - step * (left - (f64)j)); \
        } \
    }
FLOATS(f32)
FLOATS(f64)

const struct {
    void (*range_int)(void *, i64, i64, i64, i64);
    void (*range[2])(void *, i64, i64, f64, f64);
    void (*linspace[2])(void *, i64, i64, i64, f64, f64, f64);
} ISA_NAME(trt_sequences) = {range_i64, {range_f32, range_f64}, {linspace_f32, linspace_f64}};
