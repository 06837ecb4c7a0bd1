/* Loops of the fused optimizer steps. Every element is independent, so results do not depend on how a run is cut.
 * The order of operations is that of PyTorch's plain implementation (one tensor operation after the other); half types
 * compute in float, block by block. Without an instruction set (ISA undefined) this file is its own header,
 * which ops/optim/optim.pyx includes.
 * Instruction sets: base, avx2 (roots and divisions set the time within the caches, memory beyond them). */
#ifndef TRT_OPTIM
#define TRT_OPTIM
#include <stdint.h>

typedef struct {
    double lr, weight_decay, momentum, dampening;
    double grad_scale; /* gradients are divided by it; 1: none */
    int nesterov, maximize, first, scaled;
} sgd_params;

typedef struct {
    double lr, beta1, beta2, weight_decay, eps;
    double bias1, bias2_sqrt; /* 1 - beta1^t and sqrt(1 - beta2^t) */
    double grad_scale;
    int amsgrad, maximize, decoupled, scaled;
} adam_params;

/* tensors: parameter, gradient (written only when scaled), momentum buffer or NULL; elements [0, n) */
typedef void (*sgd_fn)(char *p, char *g, char *buffer, int64_t n, const sgd_params *s);
/* tensors: parameter, gradient, first and second moment, largest second moment or NULL */
typedef void (*adam_fn)(char *p, char *g, char *m, char *v, char *largest, int64_t n, const adam_params *s);

/* multiplies n gradients; returns whether one was infinite or NaN before */
typedef int (*unscale_fn)(char *g, int64_t n, float factor);

typedef struct {
    sgd_fn sgd[4]; /* f16, bf16, f32, f64 */
    adam_fn adam[4];
    unscale_fn unscale[4];
} optim_kernels;

/* One tensor of a step, and a step: what ops/optim/optim.pyx prepares and a device's kernels take over. */
typedef struct {
    char *data[5]; /* parameter, gradient, state */
    struct trt_block *blocks[5];
    int64_t n;
    int64_t first_chunk;
    int code;   /* place in the tables: f16, bf16, f32, f64 */
    int device; /* -1: the CPU */
    double bias1, bias2_sqrt;
    const float *step; /* on a device: the counter there that gives the two, or NULL */
} optim_update;

typedef struct {
    optim_update *updates;
    int count;
    int64_t chunks;
    const sgd_params *sgd; /* one of the two */
    const adam_params *adam;
    const float *lr, *grad_scale, *found_inf; /* on a device: numbers there in place of the parameters', or NULL */
} optim_step;

#endif

#ifdef ISA
#include <math.h>
#include "../core/isa.h"
#include "scalar_types.h"

#define SQRT_f32 sqrtf
#define SQRT_f64 sqrt
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define BLOCK 512

/* Every form of a step is a loop of its own, which vectorises; the sign of `maximize` is a factor. */
#define DEFINE_SGD(T)                                                                                          \
    INL void sgd_body_##T(T *restrict p, T *restrict g, T *restrict b, i64 n, const sgd_params *s,             \
                          int has_decay, int has_momentum, int first, int nesterov, int scaled)                \
    {                                                                                                          \
        const T lr = (T)s->lr, decay = (T)s->weight_decay, momentum = (T)s->momentum;                          \
        const T keep = (T)(1.0 - s->dampening), scale = (T)s->grad_scale, sign = s->maximize ? -1 : 1;         \
        for (i64 i = 0; i < n; i++) {                                                                          \
            T grad = g[i];                                                                                     \
            if (scaled) {                                                                                      \
                grad = grad / scale;                                                                           \
                g[i] = grad;                                                                                   \
            }                                                                                                  \
            grad = grad * sign;                                                                                \
            if (has_decay)                                                                                     \
                grad = grad + decay * p[i];                                                                    \
            if (has_momentum) {                                                                                \
                T kept = first ? grad : b[i] * momentum + keep * grad;                                         \
                b[i] = kept;                                                                                   \
                grad = nesterov ? grad + momentum * kept : kept;                                               \
            }                                                                                                  \
            p[i] = p[i] - lr * grad;                                                                           \
        }                                                                                                      \
    }                                                                                                          \
    INL void sgd_forms_##T(T *p, T *g, T *b, i64 n, const sgd_params *s, int has_decay, int scaled)            \
    {                                                                                                          \
        if (!b)                                                                                                \
            sgd_body_##T(p, g, 0, n, s, has_decay, 0, 0, 0, scaled);                                           \
        else if (s->first)                                                                                     \
            sgd_body_##T(p, g, b, n, s, has_decay, 1, 1, s->nesterov, scaled);                                 \
        else if (s->nesterov)                                                                                  \
            sgd_body_##T(p, g, b, n, s, has_decay, 1, 0, 1, scaled);                                           \
        else                                                                                                   \
            sgd_body_##T(p, g, b, n, s, has_decay, 1, 0, 0, scaled);                                           \
    }                                                                                                          \
    static void sgd_##T(char *p, char *g, char *b, i64 n, const sgd_params *s)                                 \
    {                                                                                                          \
        if (s->scaled)                                                                                         \
            sgd_forms_##T((T *)p, (T *)g, (T *)b, n, s, s->weight_decay != 0, 1);                              \
        else if (s->weight_decay != 0)                                                                         \
            sgd_forms_##T((T *)p, (T *)g, (T *)b, n, s, 1, 0);                                                 \
        else                                                                                                   \
            sgd_forms_##T((T *)p, (T *)g, (T *)b, n, s, 0, 0);                                                 \
    }

#define DEFINE_ADAM(T)                                                                                         \
    INL void adam_body_##T(T *restrict p, T *restrict g, T *restrict m, T *restrict v, T *restrict top, i64 n, \
                           const adam_params *s, int has_decay, int decoupled, int amsgrad, int scaled)        \
    {                                                                                                          \
        const T decay = (T)s->weight_decay, shrink = (T)(1.0 - s->lr * s->weight_decay);                       \
        const T w1 = (T)(1.0 - s->beta1), beta2 = (T)s->beta2, w2 = (T)(1.0 - s->beta2), eps = (T)s->eps;      \
        const T step = (T)(s->lr / s->bias1), root = (T)(1.0 / s->bias2_sqrt), scale = (T)s->grad_scale;       \
        const T sign = s->maximize ? -1 : 1;                                                                   \
        for (i64 i = 0; i < n; i++) {                                                                          \
            T grad = g[i], x = p[i];                                                                           \
            if (scaled) {                                                                                      \
                grad = grad / scale;                                                                           \
                g[i] = grad;                                                                                   \
            }                                                                                                  \
            grad = grad * sign;                                                                                \
            if (has_decay && decoupled)                                                                        \
                x = x * shrink;                                                                                \
            else if (has_decay)                                                                                \
                grad = grad + decay * x;                                                                       \
            T m1 = m[i] + w1 * (grad - m[i]);                                                                  \
            T m2 = v[i] * beta2 + w2 * grad * grad;                                                            \
            m[i] = m1;                                                                                         \
            v[i] = m2;                                                                                         \
            if (amsgrad) {                                                                                     \
                T kept = top[i];                                                                               \
                m2 = MAX(m2, kept);                                                                            \
                top[i] = m2;                                                                                   \
            }                                                                                                  \
            p[i] = x - step * (m1 / (SQRT_##T(m2) * root + eps));                                              \
        }                                                                                                      \
    }                                                                                                          \
    INL void adam_forms_##T(T *p, T *g, T *m, T *v, T *top, i64 n, const adam_params *s, int amsgrad, int scaled)\
    {                                                                                                          \
        if (s->weight_decay == 0)                                                                              \
            adam_body_##T(p, g, m, v, top, n, s, 0, 0, amsgrad, scaled);                                       \
        else if (s->decoupled)                                                                                 \
            adam_body_##T(p, g, m, v, top, n, s, 1, 1, amsgrad, scaled);                                       \
        else                                                                                                   \
            adam_body_##T(p, g, m, v, top, n, s, 1, 0, amsgrad, scaled);                                       \
    }                                                                                                          \
    static void adam_##T(char *p, char *g, char *m, char *v, char *top, i64 n, const adam_params *s)           \
    {                                                                                                          \
        if (s->amsgrad && s->scaled)                                                                           \
            adam_forms_##T((T *)p, (T *)g, (T *)m, (T *)v, (T *)top, n, s, 1, 1);                              \
        else if (s->amsgrad)                                                                                   \
            adam_forms_##T((T *)p, (T *)g, (T *)m, (T *)v, (T *)top, n, s, 1, 0);                              \
        else if (s->scaled)                                                                                    \
            adam_forms_##T((T *)p, (T *)g, (T *)m, (T *)v, 0, n, s, 0, 1);                                     \
        else                                                                                                   \
            adam_forms_##T((T *)p, (T *)g, (T *)m, (T *)v, 0, n, s, 0, 0);                                     \
    }

DEFINE_SGD(f32)
DEFINE_SGD(f64)
DEFINE_ADAM(f32)
DEFINE_ADAM(f64)

#define DEFINE_HALF(H)                                                                                         \
    static void sgd_##H(char *p, char *g, char *b, i64 n, const sgd_params *s)                                 \
    {                                                                                                          \
        f32 fp[BLOCK], fg[BLOCK], fb[BLOCK];                                                                   \
        for (i64 i = 0; i < n; i += BLOCK) {                                                                   \
            i64 k = n - i < BLOCK ? n - i : BLOCK;                                                             \
            H##_to_f32_block((H *)p + i, fp, k);                                                               \
            H##_to_f32_block((H *)g + i, fg, k);                                                               \
            if (b)                                                                                             \
                H##_to_f32_block((H *)b + i, fb, k);                                                           \
            sgd_f32((char *)fp, (char *)fg, b ? (char *)fb : 0, k, s);                                         \
            f32_to_##H##_block(fp, (H *)p + i, k);                                                             \
            if (s->scaled)                                                                                     \
                f32_to_##H##_block(fg, (H *)g + i, k);                                                         \
            if (b)                                                                                             \
                f32_to_##H##_block(fb, (H *)b + i, k);                                                         \
        }                                                                                                      \
    }                                                                                                          \
    static void adam_##H(char *p, char *g, char *m, char *v, char *top, i64 n, const adam_params *s)           \
    {                                                                                                          \
        f32 fp[BLOCK], fg[BLOCK], fm[BLOCK], fv[BLOCK], ft[BLOCK];                                             \
        for (i64 i = 0; i < n; i += BLOCK) {                                                                   \
            i64 k = n - i < BLOCK ? n - i : BLOCK;                                                             \
            H##_to_f32_block((H *)p + i, fp, k);                                                               \
            H##_to_f32_block((H *)g + i, fg, k);                                                               \
            H##_to_f32_block((H *)m + i, fm, k);                                                               \
            H##_to_f32_block((H *)v + i, fv, k);                                                               \
            if (s->amsgrad)                                                                                    \
                H##_to_f32_block((H *)top + i, ft, k);                                                         \
            adam_f32((char *)fp, (char *)fg, (char *)fm, (char *)fv, (char *)ft, k, s);                        \
            f32_to_##H##_block(fp, (H *)p + i, k);                                                             \
            f32_to_##H##_block(fm, (H *)m + i, k);                                                             \
            f32_to_##H##_block(fv, (H *)v + i, k);                                                             \
            if (s->scaled)                                                                                     \
                f32_to_##H##_block(fg, (H *)g + i, k);                                                         \
            if (s->amsgrad)                                                                                    \
                f32_to_##H##_block(ft, (H *)top + i, k);                                                       \
        }                                                                                                      \
    }

DEFINE_HALF(f16)
DEFINE_HALF(bf16)

/* A difference with itself is 0 but of what is not finite, which leaves no branch in the loop. */
#define DEFINE_UNSCALE(T)                                                                                      \
    static int unscale_##T(char *g, i64 n, float factor)                                                       \
    {                                                                                                          \
        T *x = (T *)g;                                                                                         \
        int bad = 0;                                                                                           \
        for (i64 i = 0; i < n; i++) {                                                                          \
            T v = x[i];                                                                                        \
            bad |= !(v - v == 0);                                                                              \
            x[i] = v * (T)factor;                                                                              \
        }                                                                                                      \
        return bad;                                                                                            \
    }
#define DEFINE_UNSCALE_HALF(H)                                                                                 \
    static int unscale_##H(char *g, i64 n, float factor)                                                       \
    {                                                                                                          \
        f32 x[BLOCK];                                                                                          \
        int bad = 0;                                                                                           \
        for (i64 i = 0; i < n; i += BLOCK) {                                                                   \
            i64 k = n - i < BLOCK ? n - i : BLOCK;                                                             \
            H##_to_f32_block((H *)g + i, x, k);                                                                \
            bad |= unscale_f32((char *)x, k, factor);                                                          \
            f32_to_##H##_block(x, (H *)g + i, k);                                                              \
        }                                                                                                      \
        return bad;                                                                                            \
    }
DEFINE_UNSCALE(f32)
DEFINE_UNSCALE(f64)
DEFINE_UNSCALE_HALF(f16)
DEFINE_UNSCALE_HALF(bf16)

const optim_kernels ISA_NAME(optim_table) = {
    {sgd_f16, sgd_bf16, sgd_f32, sgd_f64},
    {adam_f16, adam_bf16, adam_f32, adam_f64},
    {unscale_f16, unscale_bf16, unscale_f32, unscale_f64},
};
#endif
