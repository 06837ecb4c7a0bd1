/* Masked writes: the loop of indexing that gains by every instruction set. */
#include "../core/isa.h"
#include "indexing_steps.h"
#include "scalar_types.h"

typedef struct { u64 a, b; } w16;

#define MASK_ROW(T)                                                                                                  \
    static void mask_row_##T(char *d, i64 sd, const char *s, i64 ss, const char *m, i64 sm, i64 n, const char *v)    \
    {                                                                                                                \
        T value;                                                                                                     \
        memcpy(&value, v, sizeof value);                                                                             \
        if (sd == (i64)sizeof(T) && ss == (i64)sizeof(T) && sm == 1) {                                               \
            T *p = (T *)d;                                                                                           \
            const T *q = (const T *)s;                                                                               \
            for (i64 i = 0; i < n; i++)                                                                              \
                p[i] = m[i] ? value : q[i];                                                                          \
            return;                                                                                                  \
        }                                                                                                            \
        for (i64 i = 0; i < n; i++)                                                                                  \
            *(T *)(d + i * sd) = m[i * sm] ? value : *(const T *)(s + i * ss);                                       \
    }
MASK_ROW(u8) MASK_ROW(i16) MASK_ROW(u32) MASK_ROW(u64) MASK_ROW(w16)

typedef void (*mask_fn)(char *, i64, const char *, i64, const char *, i64, i64, const char *);

/* Flattened elements [begin, end). */
void ISA_NAME(index_masked_fill)(void *context, int64_t begin, int64_t end)
{
    const MaskArgs *a = context;
    mask_fn f = a->item == 1 ? mask_row_u8 : a->item == 2 ? mask_row_i16 : a->item == 4 ? mask_row_u32 : a->item == 8 ? mask_row_u64 : mask_row_w16;
    int last = a->nd - 1;
    i64 at = begin;
    while (at < end) {
        i64 q = at, first = at % a->size[last], n = a->size[last] - first;
        char *d = a->dst, *s = a->src, *m = a->mask;
        if (n > end - at)
            n = end - at;
        for (int k = last; k >= 0; k--) {
            i64 p = q % a->size[k];
            q /= a->size[k];
            d += p * a->d[k];
            s += p * a->s[k];
            m += p * a->m[k];
        }
        f(d, a->d[last], s, a->s[last], m, a->m[last], n, (const char *)a->value);
        at += n;
    }
}
