/* Connectionist temporal classification by the forward-backward recursion (Graves, Fernandez, Gomez and Schmidhuber 2006), a sample a task. A target of S
 * classes is a line of 2 S + 1 states, blanks at the even ones; all states of a step are vector lanes. Probabilities are logarithms forward; backward
 * sums posteriors themselves, which are at most 1. */
#include "kernel_base.h"
#include "loss_steps.h"

KERNEL_INLINE int64_t ctc_state_class(const ctc_args* a, const int64_t* target, int64_t s) { return s & 1 ? target[s >> 1] : a->blank; }

/* classes and whether a state may be reached from two before: as 0 or -inf to be added */
#define DEFINE_CTC(T)                                                                                                              \
    KERNEL_INLINE T ctc_sum_##T(T a, T b, T c) {                                                                                   \
        T top = a > b ? a : b;                                                                                                     \
        top = top > c ? top : c;                                                                                                   \
        T base = top == -INFINITY ? 0 : top;                                                                                       \
        return log_##T(exp_##T(a - base) + exp_##T(b - base) + exp_##T(c - base)) + base;                                          \
    }                                                                                                                              \
    /* the log probability of each state at a step */                                                                              \
    KERNEL_INLINE void ctc_emissions_##T(const ctc_args* a, const int64_t* target, int64_t states, const T* row, T* out) {         \
        for (int64_t s = 0; s < states; s++) out[s] = row[ctc_state_class(a, target, s)];                                          \
    }                                                                                                                              \
    KERNEL_INLINE void ctc_skips_##T(const int64_t* target, int64_t states, T* out) {                                              \
        for (int64_t s = 0; s < states; s++) out[s] = (s & 1) && s > 1 && target[s >> 1] != target[(s >> 1) - 1] ? 0 : -INFINITY;  \
    }                                                                                                                              \
    static void ctc_forward_##T(const ctc_args* a, int64_t n, T* scratch) {                                                        \
        const int64_t steps = a->input_lengths[n], length = a->target_lengths[n], states = 2 * length + 1, span = a->span;         \
        const int64_t* target = a->targets + a->offsets[n];                                                                        \
        const T* x = (const T*)a->log_probs + n * a->classes;                                                                      \
        T *emission = scratch, *skip = emission + span, *alpha = (T*)a->log_alpha + n * a->steps * span, *loss = (T*)a->loss + n;  \
        for (int64_t i = 0; i < a->steps * span; i++) alpha[i] = -INFINITY;                                                        \
        if (steps == 0) {                                                                                                          \
            *loss = length == 0 ? 0 : INFINITY;                                                                                    \
            return;                                                                                                                \
        }                                                                                                                          \
        ctc_skips_##T(target, states, skip);                                                                                       \
        alpha[0] = x[a->blank];                                                                                                    \
        if (length) alpha[1] = x[target[0]];                                                                                       \
        for (int64_t t = 1; t < steps; t++) {                                                                                      \
            T *now = alpha + t * span, *before = now - span;                                                                       \
            ctc_emissions_##T(a, target, states, x + t * a->batch * a->classes, emission);                                         \
            now[0] = before[0] + emission[0];                                                                                      \
            if (length) now[1] = ctc_sum_##T(before[1], before[0], -INFINITY) + emission[1];                                       \
            VECTORIZE for (int64_t s = 2; s < states; s++)                                                                         \
                now[s] = ctc_sum_##T(before[s], before[s - 1], before[s - 2] + skip[s]) + emission[s];                             \
        }                                                                                                                          \
        const T* last = alpha + (steps - 1) * span;                                                                                \
        *loss = -ctc_sum_##T(last[states - 1], length ? last[states - 2] : -INFINITY, -INFINITY);                                  \
    }                                                                                                                              \
    /* d loss / d log probability, as through a log_softmax: the probability less the posterior, times the incoming gradient */    \
    static void ctc_backward_##T(const ctc_args* a, int64_t n, T* scratch) {                                                       \
        const int64_t steps = a->input_lengths[n], length = a->target_lengths[n], states = 2 * length + 1, span = a->span, row = a->batch * a->classes; \
        const int64_t* target = a->targets + a->offsets[n];                                                                        \
        const T *x = (const T*)a->log_probs + n * a->classes, *alpha = (const T*)a->log_alpha + n * a->steps * span;               \
        T *emission = scratch, *skip = emission + span, *beta = skip + span + 2, *next = beta + span + 2, *posterior = next + span + 2; \
        T *out = (T*)a->out + n * a->classes, g = ((const T*)a->grad)[n * a->grad_stride], loss = ((const T*)a->loss)[n];          \
        for (int64_t t = 0; t < a->steps; t++) memset(out + t * row, 0, a->classes * sizeof(T));                                   \
        if (steps == 0 || a->zero_infinity && loss == INFINITY) return;                                                            \
        ctc_skips_##T(target, states, skip);                                                                                       \
        skip[states] = skip[states + 1] = -INFINITY;                                                                               \
        for (int64_t s = 0; s < span + 2; s++) beta[s] = next[s] = -INFINITY;                                                      \
        for (int64_t t = steps - 1; t >= 0; t--) {                                                                                 \
            const T *log_p = x + t * row, *forward = alpha + t * span;                                                             \
            T *to = out + t * row, *swap = beta;                                                                                   \
            ctc_emissions_##T(a, target, states, log_p, emission);                                                                 \
            beta = next;                                                                                                           \
            next = swap;                                                                                                           \
            if (t == steps - 1) {                                                                                                  \
                beta[states - 1] = emission[states - 1];                                                                           \
                if (length) beta[states - 2] = emission[states - 2];                                                               \
            } else {                                                                                                               \
                VECTORIZE for (int64_t s = 0; s < states; s++)                                                                     \
                    beta[s] = ctc_sum_##T(next[s], next[s + 1], next[s + 2] + skip[s + 2]) + emission[s];                          \
            }                                                                                                                      \
            VECTORIZE for (int64_t s = 0; s < states; s++) {                                                                       \
                T joint = forward[s] + beta[s];                                                                                    \
                posterior[s] = joint == -INFINITY ? 0 : exp_##T(joint - emission[s] + loss);                                       \
            }                                                                                                                      \
            for (int64_t s = 0; s < states; s++) to[ctc_state_class(a, target, s)] -= posterior[s];                                \
            T none = loss == INFINITY ? NAN : 0;                                                                                   \
            VECTORIZE for (int64_t c = 0; c < a->classes; c++) to[c] = (exp_##T(log_p[c]) + to[c] + none) * g;                     \
        }                                                                                                                          \
    }
DEFINE_CTC(f32)
DEFINE_CTC(f64)

/* items: samples; a task's scratch lies behind that of the tasks before it, CTC_SCRATCH lines of span + 2 elements by sample */
void ISA_NAME(ctc_forward)(void* context, int64_t begin, int64_t end) {
    const ctc_args* a = context;
    for (int64_t n = begin; n < end; n++) {
        char* scratch = a->scratch + n * CTC_SCRATCH * (a->span + 2) * (a->is_double ? 8 : 4);
        if (a->is_double) ctc_forward_f64(a, n, (f64*)scratch);
        else ctc_forward_f32(a, n, (f32*)scratch);
    }
}

void ISA_NAME(ctc_backward)(void* context, int64_t begin, int64_t end) {
    const ctc_args* a = context;
    for (int64_t n = begin; n < end; n++) {
        char* scratch = a->scratch + n * CTC_SCRATCH * (a->span + 2) * (a->is_double ? 8 : 4);
        if (a->is_double) ctc_backward_f64(a, n, (f64*)scratch);
        else ctc_backward_f32(a, n, (f32*)scratch);
    }
}
