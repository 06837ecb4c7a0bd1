/* Cross entropy over class indices with many positions side by side: logits (outer, classes, inner), LANES positions at a
 * time, a class a vector. For images (inner > 1) the classes of a position lie apart; rows of few classes (inner 1) are
 * turned round in a buffer. The formula, and rows of many classes, are in softmax.h. Compiled once per instruction set. */
#include "kernel_base.h"
#include "loss.h"

enum { LANES = ENTROPY_LANES, GROUP = 32 };

/* First position and number of positions of a block. */
INL i64 block_at(const entropy_args *a, i64 block, i64 *count)
{
    i64 blocks = (a->span + LANES - 1) / LANES, first = block % blocks * LANES;
    *count = min_i64(LANES, a->span - first);
    return block / blocks * a->span + first;
}

#define DEFINE_LANES(T)                                                                                              \
    /* the logits of positions [at, at + count), a class each `stride`; rows are turned round into `buffer` */       \
    INL const T *lanes_##T(const entropy_args *a, i64 at, i64 count, T *buffer, i64 *stride)                          \
    {                                                                                                                \
        if (a->inner > 1) {                                                                                          \
            *stride = a->inner;                                                                                      \
            return (const T *)a->x + at / a->inner * a->classes * a->inner + at % a->inner;                          \
        }                                                                                                            \
        const T *x = (const T *)a->x + at * a->classes;                                                              \
        for (i64 c = 0; c < count; c++)                                                                              \
            for (i64 k = 0; k < a->classes; k++)                                                                     \
                buffer[k * LANES + c] = x[c * a->classes + k];                                                       \
        *stride = LANES;                                                                                             \
        return buffer;                                                                                               \
    }                                                                                                                \
    /* loss, logsumexp and weight of blocks [begin, end) */                                                          \
    static void entropy_##T(entropy_args *a, i64 begin, i64 end)                                                      \
    {                                                                                                                \
        T buffer[ENTROPY_FEW * LANES], max[LANES], part[LANES], dots[LANES];                                         \
        f64 sum[LANES], dot[LANES], log_sum[LANES], weights = (f64)a->classes;                                       \
        const T *weight = (const T *)a->weight;                                                                      \
        if (weight) {                                                                                                \
            weights = 0;                                                                                             \
            for (i64 k = 0; k < a->classes; k++)                                                                     \
                weights += weight[k];                                                                                \
        }                                                                                                            \
        for (i64 block = begin; block < end; block++) {                                                              \
            i64 stride, count, at = block_at(a, block, &count);                                                      \
            const T *x = lanes_##T(a, at, count, buffer, &stride);                                                   \
            for (i64 c = 0; c < count; c++) {                                                                        \
                max[c] = a->classes ? x[c] : 0;                                                                      \
                sum[c] = dot[c] = 0;                                                                                 \
            }                                                                                                        \
            for (i64 k = 1; k < a->classes; k++)                                                                     \
                VECTORIZE for (i64 c = 0; c < count; c++) {                                                          \
                    T v = x[k * stride + c];                                                                         \
                    max[c] = v > max[c] ? v : max[c];                                                                \
                }                                                                                                    \
            for (i64 first = 0; first < a->classes; first += GROUP) {                                                \
                for (i64 c = 0; c < count; c++)                                                                      \
                    part[c] = dots[c] = 0;                                                                           \
                for (i64 k = first; k < min_i64(first + GROUP, a->classes); k++) {                                   \
                    VECTORIZE for (i64 c = 0; c < count; c++)                                                        \
                        part[c] += exp_below_zero_##T(x[k * stride + c] - max[c]);                                   \
                    T w = weight ? weight[k] : 1;                                                                    \
                    if (a->smoothing > 0)                                                                            \
                        VECTORIZE for (i64 c = 0; c < count; c++)                                                    \
                            dots[c] += w * x[k * stride + c];                                                        \
                }                                                                                                    \
                for (i64 c = 0; c < count; c++) {                                                                    \
                    sum[c] += part[c];                                                                               \
                    dot[c] += dots[c];                                                                               \
                }                                                                                                    \
            }                                                                                                        \
            VECTORIZE for (i64 c = 0; c < count; c++)                                                                \
                log_sum[c] = log_f64(sum[c]);                                                                        \
            for (i64 c = 0; c < count; c++) {                                                                        \
                i64 t = a->target[at + c];                                                                           \
                T *loss = (T *)a->loss + at + c, *lse = (T *)a->lse + at + c, *row_weight = (T *)a->row_weight + at + c; \
                __asm__("" : "+r"(t)); /* one load: another thread may write to the target */                        \
                *loss = *lse = *row_weight = 0;                                                                      \
                if (t == a->ignore_index)                                                                            \
                    continue;                                                                                        \
                if ((u64)t >= (u64)a->classes) {                                                                     \
                    __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);                                                  \
                    continue;                                                                                        \
                }                                                                                                    \
                f64 all = isinf(max[c]) ? NAN : max[c] + log_sum[c], w = weight ? weight[t] : 1;   \
                f64 value = w * (all - x[t * stride + c]);                                                           \
                if (a->smoothing > 0)                                                                                \
                    value = (1 - a->smoothing) * value + a->smoothing / (f64)a->classes * (weights * all - dot[c]);  \
                *loss = (T)value;                                                                                    \
                *lse = (T)all;                                                                                       \
                *row_weight = (T)w;                                                                                  \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    /* the gradient of the logits in blocks [begin, end) */                                                          \
    static void entropy_backward_##T(entropy_args *a, i64 begin, i64 end)                                             \
    {                                                                                                                \
        T buffer[ENTROPY_FEW * LANES], all[LANES], mass[LANES], lift[LANES], own[LANES];                             \
        i64 chosen[LANES];                                                                                           \
        const T *weight = (const T *)a->weight;                                                                      \
        f64 spread = a->smoothing / (f64)a->classes, weights = (f64)a->classes;                                      \
        if (weight) {                                                                                                \
            weights = 0;                                                                                             \
            for (i64 k = 0; k < a->classes; k++)                                                                     \
                weights += weight[k];                                                                                \
        }                                                                                                            \
        for (i64 block = begin; block < end; block++) {                                                              \
            i64 stride, count, at = block_at(a, block, &count);                                                      \
            const T *x = lanes_##T(a, at, count, buffer, &stride);                                                   \
            T *d = a->inner > 1 ? (T *)a->out + (x - (const T *)a->x) : buffer;                                      \
            for (i64 c = 0; c < count; c++) {                                                                        \
                i64 t = a->target[at + c];                                                                           \
                __asm__("" : "+r"(t));                                                                               \
                chosen[c] = t != a->ignore_index && (u64)t < (u64)a->classes ? t : -1;                               \
                f64 g = chosen[c] < 0 ? 0 : *(const T *)(a->grad + (at + c) * a->grad_stride) * a->scale;            \
                f64 w = weight && chosen[c] >= 0 ? weight[t] : 1;                                                    \
                all[c] = ((const T *)a->lse)[at + c];                                                                \
                mass[c] = (T)(g * ((1 - a->smoothing) * w + spread * weights));                                      \
                lift[c] = (T)(g * spread);                                                                           \
                own[c] = (T)(g * (1 - a->smoothing) * w);                                                            \
            }                                                                                                        \
            for (i64 k = 0; k < a->classes; k++) {                                                                   \
                T w = weight ? weight[k] : 1;                                                                        \
                VECTORIZE for (i64 c = 0; c < count; c++)                                                            \
                    d[k * stride + c] = exp_below_zero_##T(x[k * stride + c] - all[c]) * mass[c] - lift[c] * w;      \
            }                                                                                                        \
            for (i64 c = 0; c < count; c++) {                                                                        \
                for (i64 k = 0; chosen[c] < 0 && k < a->classes; k++)                                                \
                    d[k * stride + c] = 0;                                                                           \
                if (chosen[c] >= 0)                                                                                  \
                    d[chosen[c] * stride + c] -= own[c];                                                             \
            }                                                                                                        \
            for (i64 c = 0; c < count && a->inner == 1; c++)                                                         \
                for (i64 k = 0; k < a->classes; k++)                                                                 \
                    ((T *)a->out)[(at + c) * a->classes + k] = buffer[k * LANES + c];                                \
        }                                                                                                            \
    }                                                                                                                \
    static f64 total_##T(const T *x, i64 n)                                                                          \
    {                                                                                                                \
        f64 sums[8] = {0}, total = 0;                                                                                \
        for (i64 i = 0; i + 8 <= n; i += 8)                                                                          \
            for (int k = 0; k < 8; k++)                                                                              \
                sums[k] += x[i + k];                                                                                 \
        for (i64 i = n & ~(i64)7; i < n; i++)                                                                        \
            total += x[i];                                                                                           \
        for (int k = 0; k < 8; k++)                                                                                  \
            total += sums[k];                                                                                        \
        return total;                                                                                                \
    }
DEFINE_LANES(f32)
DEFINE_LANES(f64)

void ISA_NAME(entropy_lanes)(void *context, int64_t begin, int64_t end)
{
    entropy_args *a = context;
    (a->is_double ? entropy_f64 : entropy_f32)(a, begin, end);
}

void ISA_NAME(entropy_lanes_backward)(void *context, int64_t begin, int64_t end)
{
    entropy_args *a = context;
    (a->is_double ? entropy_backward_f64 : entropy_backward_f32)(a, begin, end);
}

/* The sum in float64, in an order that n alone decides. */
double ISA_NAME(loss_total)(const char *x, int is_double, int64_t n)
{
    return is_double ? total_f64((const f64 *)x, n) : total_f32((const f32 *)x, n);
}
