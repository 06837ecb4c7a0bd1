/* Reductions of segments: one pass over each, elements beside each other in vectors, in the order of positions. */
/* Measured: trt.segment_reduce(row, 'sum', lengths=spans); trt.segment_reduce(row, 'max', lengths=spans) */
#include "kernel_base.h"
#include "segment_steps.h"

#define SEGMENT_LOOP(EXPR)                                                                                              \
    for (int64_t k = begin; k < end; k++) {                                                                             \
        const T* x = data + k * a->inner;                                                                               \
        VECTORIZE for (int64_t j = 0; j < a->inner; j++) to[j] = EXPR;                                                  \
    }                                                                                                                   \
    break

#define DEFINE_SEGMENTS(TYPE)                                                                                           \
    static void segment_reduce_##TYPE(const segment_call* a, int64_t first, int64_t last) {                             \
        typedef TYPE T;                                                                                                 \
        for (int64_t i = first; i < last; i++) {                                                                        \
            int64_t outer = i / a->segments, segment = i % a->segments;                                                 \
            const int64_t* places = a->offsets + outer * (a->segments + 1) + segment;                                   \
            int64_t begin = max_i64(places[0], 0), end = min_i64(places[1], a->n), count = places[1] - places[0];       \
            const T* data = (const T*)a->data + outer * a->n * a->inner;                                                \
            T *to = (T*)a->out + i * a->inner, initial = (T)a->initial;                                                 \
            for (int64_t j = 0; j < a->inner; j++) to[j] = initial;                                                     \
            switch (a->operation) {                                                                                     \
            case SEGMENT_MAX: SEGMENT_LOOP(x[j] > to[j] || x[j] != x[j] ? x[j] : to[j]);                                \
            case SEGMENT_MIN: SEGMENT_LOOP(x[j] < to[j] || x[j] != x[j] ? x[j] : to[j]);                                \
            case SEGMENT_PROD: SEGMENT_LOOP(to[j] * x[j]);                                                              \
            default: SEGMENT_LOOP(to[j] + x[j]);                                                                        \
            }                                                                                                           \
            if (a->operation != SEGMENT_MEAN) continue;                                                                 \
            if (count > 0)                                                                                              \
                for (int64_t j = 0; j < a->inner; j++) to[j] /= (T)count;                                               \
            else if (a->empty_mean)                                                                                     \
                for (int64_t j = 0; j < a->inner; j++) to[j] = NAN;                                                     \
        }                                                                                                               \
    }
SEGMENT_REDUCE_TYPES(DEFINE_SEGMENTS)
SEGMENT_REDUCE_TASK
