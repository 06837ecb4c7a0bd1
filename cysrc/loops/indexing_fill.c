/* Masked writes: the loop of indexing that gains by every instruction set. */
#include "../core/isa.h"
#include "indexing_steps.h"
#include "scalar_types.h"

typedef struct { u64 a, b; } w16;

/* Rows of n elements, by the strides of rows and elements of d, s and m. */
typedef struct { i64 row, element; } Steps;
#define MASK_ROWS(T)                                                                                                 \
    static void mask_rows_##T(char *d, Steps td, const char *s, Steps ts, const char *m, Steps tm, i64 rows, i64 n, const char *v) \
    {                                                                                                                \
        T value;                                                                                                     \
        memcpy(&value, v, sizeof value);                                                                             \
        for (i64 r = 0; r < rows; r++, d += td.row, s += ts.row, m += tm.row) {                                      \
            T *p = (T *)d;                                                                                           \
            const T *q = (const T *)s;                                                                               \
            if (td.element != (i64)sizeof(T) || ts.element != (i64)sizeof(T)) {                                      \
                for (i64 i = 0; i < n; i++)                                                                          \
                    *(T *)(d + i * td.element) = m[i * tm.element] ? value : *(const T *)(s + i * ts.element);       \
            } else if (tm.element == 1) {                                                                            \
                for (i64 i = 0; i < n; i++)                                                                          \
                    p[i] = m[i] ? value : q[i];                                                                      \
            } else if (tm.element == 0) {                                                                            \
                const int fills = *m != 0;                                                                           \
                for (i64 i = 0; i < n; i++)                                                                          \
                    p[i] = fills ? value : q[i];                                                                     \
            } else {                                                                                                 \
                for (i64 i = 0; i < n; i++)                                                                          \
                    p[i] = m[i * tm.element] ? value : q[i];                                                         \
            }                                                                                                        \
        }                                                                                                            \
    }
MASK_ROWS(u8) MASK_ROWS(i16) MASK_ROWS(u32) MASK_ROWS(u64) MASK_ROWS(w16)

typedef void (*mask_fn)(char *, Steps, const char *, Steps, const char *, Steps, i64, i64, const char *);

/* Flattened elements [begin, end): whole rows along the next dimension go together. */
void ISA_NAME(index_masked_fill)(void *context, int64_t begin, int64_t end)
{
    const MaskArgs *a = context;
    mask_fn f = a->item == 1 ? mask_rows_u8 : a->item == 2 ? mask_rows_i16 : a->item == 4 ? mask_rows_u32 : a->item == 8 ? mask_rows_u64 : mask_rows_w16;
    const int last = a->nd - 1;
    const i64 length = a->size[last];
    const i64 lines = last ? a->size[last - 1] : 1;
    Steps td = {0, a->d[last]}, ts = {0, a->s[last]}, tm = {0, a->m[last]};
    if (last)
        td.row = a->d[last - 1], ts.row = a->s[last - 1], tm.row = a->m[last - 1];
    i64 at = begin;
    while (at < end) {
        i64 q = at, n = length - at % length, rows = 1;
        char *d = a->dst, *s = a->src, *m = a->mask;
        if (n > end - at)
            n = end - at;
        if (n == length) {
            rows = lines - at / length % lines;
            if (rows > (end - at) / length)
                rows = (end - at) / length;
        }
        for (int k = last; k >= 0; k--) {
            i64 p = q % a->size[k];
            q /= a->size[k];
            d += p * a->d[k];
            s += p * a->s[k];
            m += p * a->m[k];
        }
        f(d, td, s, ts, m, tm, rows, n, (const char *)a->value);
        at += rows * n;
    }
}
