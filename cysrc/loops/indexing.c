/* Indexing kernels: rows and lines named by indices, positions of non-zeros, search in sorted rows.
 *
 * Writers own a range of destinations, never a range of indices: each element gets its contributions in the order of
 * the indices whatever the number of threads.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "../core/isa.h"
#include "indexing_steps.h"
#include "scalar_types.h"

typedef struct { u64 a, b; } w16;

/* An index as it is used: below limit, 0 (and *bad set) where it was not; `wrap` is added to negative ones. The barrier
 * makes one load serve the test and the use: another thread may write to the index meanwhile. */
INL i64 bounded(const i64 *x, u64 limit, i64 wrap, u64 *bad)
{
    i64 v = *x;
    __asm__("" : "+r"(v));
    if (__builtin_expect((u64)v >= limit, 0)) {
        v += v >> 63 & wrap;
        if ((u64)v >= limit) {
            *bad = 1;
            v = 0;
        }
    }
    return v;
}

INL i64 bounded_i32(const i32 *x, u64 limit, u64 *bad)
{
    i32 v = *x;
    __asm__("" : "+r"(v));
    if (__builtin_expect((u64)(i64)v >= limit, 0)) {
        *bad = 1;
        v = 0;
    }
    return v;
}

/* ---- element operators ---------------------------------------------------------------------------------------- */

#define SAME(x) (x)
#define ARITHMETIC(M, OP, EXPR)                                                                                      \
    M(OP, u8, u8, SAME, SAME, EXPR) M(OP, i8, i8, SAME, SAME, EXPR) M(OP, i16, i16, SAME, SAME, EXPR)                \
    M(OP, i32, i32, SAME, SAME, EXPR) M(OP, i64, i64, SAME, SAME, EXPR)                                              \
    M(OP, f16, f32, ld_f16, st_f16, EXPR) M(OP, bf16, f32, ld_bf16, st_bf16, EXPR)                                   \
    M(OP, f32, f32, SAME, SAME, EXPR) M(OP, f64, f64, SAME, SAME, EXPR)
#define COMPLEX_TOO(M, OP, EXPR) M(OP, c64, c64, SAME, SAME, EXPR) M(OP, c128, c128, SAME, SAME, EXPR)

#define ROW_FUNCTION(OP, T, C, LD, ST, EXPR)                                                                         \
    static void row_##OP##_##T(char *d, i64 sd, const char *s, i64 ss, i64 n)                                        \
    {                                                                                                                \
        if (sd == (i64)sizeof(T) && ss == (i64)sizeof(T)) {                                                          \
            T *p = (T *)d;                                                                                           \
            const T *q = (const T *)s;                                                                               \
            for (i64 i = 0; i < n; i++) {                                                                            \
                C a = LD(p[i]), b = LD(q[i]);                                                                        \
                p[i] = ST(EXPR);                                                                                     \
            }                                                                                                        \
            return;                                                                                                  \
        }                                                                                                            \
        for (i64 i = 0; i < n; i++) {                                                                                \
            T *p = (T *)(d + i * sd);                                                                                \
            C a = LD(*p), b = LD(*(const T *)(s + i * ss));                                                          \
            *p = ST(EXPR);                                                                                           \
        }                                                                                                            \
    }

#define EACH_OPERATOR(M)                                                                                             \
    M(add, b8, b8, SAME, SAME, a | b) ARITHMETIC(M, add, a + b) COMPLEX_TOO(M, add, a + b)                           \
    M(mul, b8, b8, SAME, SAME, a & b) ARITHMETIC(M, mul, a * b) COMPLEX_TOO(M, mul, a * b)                           \
    M(min, b8, b8, SAME, SAME, a & b) ARITHMETIC(M, min, __builtin_expect(a != a, 0) ? a : COMPUTED(a < b ? a : b))                    \
    M(max, b8, b8, SAME, SAME, a | b) ARITHMETIC(M, max, __builtin_expect(a != a, 0) ? a : COMPUTED(a > b ? a : b))

#define COMPUTED(x) (x)
EACH_OPERATOR(ROW_FUNCTION)

#define COPY_ROW(T)                                                                                                  \
    static void row_set_##T(char *d, i64 sd, const char *s, i64 ss, i64 n)                                           \
    {                                                                                                                \
        if (sd == (i64)sizeof(T) && ss == (i64)sizeof(T))                                                            \
            memcpy(d, s, n * sizeof(T));                                                                             \
        else if (sd == (i64)sizeof(T) && ss == 0) {                                                                  \
            const T v = *(const T *)s;                                                                               \
            for (i64 i = 0; i < n; i++)                                                                              \
                ((T *)d)[i] = v;                                                                                     \
        } else                                                                                                       \
            for (i64 i = 0; i < n; i++)                                                                              \
                *(T *)(d + i * sd) = *(const T *)(s + i * ss);                                                       \
    }
COPY_ROW(u8) COPY_ROW(i16) COPY_ROW(u32) COPY_ROW(u64) COPY_ROW(w16)

typedef void (*row_fn)(char *, i64, const char *, i64, i64);

/* What is only moved goes by its size. */
#define row_set_1 row_set_u8
#define row_set_2 row_set_i16
#define row_set_4 row_set_u32
#define row_set_8 row_set_u64
#define row_set_16 row_set_w16
#define ROW_OF_SIZE(type, name, label, cpp, size, ...) [DT_##type] = row_set_##size,

static const row_fn row_table[PUT_OPS][NUM_DTYPES] = {
    [PUT_SET] = {TRT_DTYPES(ROW_OF_SIZE)},
    [PUT_ADD] = {row_add_b8, row_add_u8, row_add_i8, row_add_i16, row_add_i32, row_add_i64, row_add_f16, row_add_bf16, row_add_f32, row_add_f64, row_add_c64, row_add_c128},
    [PUT_MUL] = {row_mul_b8, row_mul_u8, row_mul_i8, row_mul_i16, row_mul_i32, row_mul_i64, row_mul_f16, row_mul_bf16, row_mul_f32, row_mul_f64, row_mul_c64, row_mul_c128},
    [PUT_MIN] = {row_min_b8, row_min_u8, row_min_i8, row_min_i16, row_min_i32, row_min_i64, row_min_f16, row_min_bf16, row_min_f32, row_min_f64},
    [PUT_MAX] = {row_max_b8, row_max_u8, row_max_i8, row_max_i16, row_max_i32, row_max_i64, row_max_f16, row_max_bf16, row_max_f32, row_max_f64},
};

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* Apply `f` to the inner block at table position t and dense position d; to_table chooses the direction. */
static void inner_block(const RowArgs *a, row_fn f, char *t, char *d, int to_table)
{
    int last = a->n_inner - 1;
    i64 pos[INDEX_DIMS];
    if (last < 0) {
        to_table ? f(t, 0, d, 0, 1) : f(d, 0, t, 0, 1);
        return;
    }
    if (last == 0) {
        if (to_table)
            f(t, a->inner_table[0], d, a->inner_dense[0], a->inner_size[0]);
        else
            f(d, a->inner_dense[0], t, a->inner_table[0], a->inner_size[0]);
        return;
    }
    for (int k = 0; k < last; k++)
        pos[k] = 0;
    for (;;) {
        int k;
        if (to_table)
            f(t, a->inner_table[last], d, a->inner_dense[last], a->inner_size[last]);
        else
            f(d, a->inner_dense[last], t, a->inner_table[last], a->inner_size[last]);
        for (k = last - 1; k >= 0; k--) {
            t += a->inner_table[k];
            d += a->inner_dense[k];
            if (++pos[k] < a->inner_size[k])
                break;
            t -= a->inner_size[k] * a->inner_table[k];
            d -= a->inner_size[k] * a->inner_dense[k];
            pos[k] = 0;
        }
        if (k < 0)
            return;
    }
}

enum { INDEX_BLOCK = 1024 }; /* indices that are bounded at a time, just before their rows are read */

/* The offsets of the indices [first, last). */
static void bound_block(const RowArgs *a, i64 first, i64 last, i64 *offset, u64 *bad)
{
    const u64 limit = a->limit;
    const i64 step = a->table_step;
    if (a->index_item == sizeof(i32))
        for (i64 i = first; i < last; i++)
            offset[i - first] = bounded_i32((const i32 *)a->index + i, limit, bad) * step;
    else
        for (i64 i = first; i < last; i++)
            offset[i - first] = bounded((const i64 *)a->index + i, limit, 0, bad) * step;
}

static void outer_position(const RowArgs *a, i64 q, char **t, char **d)
{
    *t = a->table;
    *d = a->dense;
    for (int k = a->n_outer - 1; k >= 0; k--) {
        i64 p = q % a->outer_size[k];
        q /= a->outer_size[k];
        *t += p * a->outer_table[k];
        *d += p * a->outer_dense[k];
    }
}

#define GATHER_ELEMENTS(T)                                                                                           \
    if (step == sizeof(T))                                                                                           \
        for (i64 i = 0; i < n; i++)                                                                                  \
            ((T *)d)[i] = *(const T *)(t + offset[i]);                                                               \
    else                                                                                                             \
        for (i64 i = 0; i < n; i++)                                                                                  \
            *(T *)(d + i * step) = *(const T *)(t + offset[i]);

/* Short rows as two pieces of N bytes, which may overlap: a call of memcpy would take longer than they do. */
#define GATHER_PAIRS(N)                                                                                              \
    for (i64 i = 0; i < n; i++) {                                                                                    \
        const char *from = t + offset[i];                                                                            \
        char *to = d + i * step;                                                                                     \
        struct { char piece[N]; } head, tail;                                                                        \
        memcpy(&head, from, N);                                                                                      \
        memcpy(&tail, from + bytes - N, N);                                                                          \
        memcpy(to, &head, N);                                                                                        \
        memcpy(to + bytes - N, &tail, N);                                                                            \
    }

/* n rows of `bytes` bytes at the offsets, to places `step` apart. */
static void gather_contiguous(const char *t, const i64 *offset, char *d, i64 step, i64 n, i64 bytes)
{
    if (bytes >= 4 && bytes <= 8)
        GATHER_PAIRS(4)
    else if (bytes > 8 && bytes <= 16)
        GATHER_PAIRS(8)
    else if (bytes > 16 && bytes <= 32)
        GATHER_PAIRS(16)
    else
        for (i64 i = 0; i < n; i++)
            memcpy(d + i * step, t + offset[i], bytes);
}

/* dense <- table for the flattened (outer, m) positions [begin, end). */
void ISA_NAME(index_gather_rows)(void *context, int64_t begin, int64_t end)
{
    RowArgs *a = context;
    row_fn f = row_table[PUT_SET][a->dtype];
    const i64 step = a->dense_step;
    i64 row = begin, block[INDEX_BLOCK];
    u64 bad = 0;
    while (row < end) {
        i64 first = row % a->m, n = end - row < a->m - first ? end - row : a->m - first;
        const i64 *offset = a->offset + first;
        char *t, *d;
        if (!a->offset) {
            n = n < INDEX_BLOCK ? n : INDEX_BLOCK;
            bound_block(a, first, first + n, block, &bad);
            offset = block;
        }
        outer_position(a, row / a->m, &t, &d);
        d += first * step;
        if (a->n_inner == 0) {
            switch (a->item) {
            case 1: GATHER_ELEMENTS(u8) break;
            case 2: GATHER_ELEMENTS(i16) break;
            case 4: GATHER_ELEMENTS(u32) break;
            case 8: GATHER_ELEMENTS(u64) break;
            default: GATHER_ELEMENTS(w16) break;
            }
        } else if (a->n_inner == 1 && a->inner_table[0] == a->item && a->inner_dense[0] == a->item) {
            gather_contiguous(t, offset, d, step, n, a->inner_size[0] * a->item);
        } else
            for (i64 i = 0; i < n; i++)
                inner_block(a, f, t + offset[i], d + i * step, 0);
        row += n;
    }
    if (bad)
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}

/* table <op>= dense for the positions whose offset lies in [begin, end), in the order of the indices. */
void ISA_NAME(index_scatter_rows)(void *context, int64_t begin, int64_t end)
{
    const RowArgs *a = context;
    row_fn f = row_table[a->op][a->dtype];
    i64 outers = 1;
    for (int k = 0; k < a->n_outer; k++)
        outers *= a->outer_size[k];
    for (i64 o = 0; o < outers; o++) {
        char *t, *d;
        outer_position(a, o, &t, &d);
        for (i64 i = 0; i < a->m; i++)
            if (a->offset[i] >= begin && a->offset[i] < end)
                inner_block(a, f, t + a->offset[i], d + i * a->dense_step, 1);
    }
}

/* The first position whose index is outside of [low, high), or -1. */
int64_t ISA_NAME(index_out_of_range)(const int64_t *x, int64_t n, int64_t low, int64_t high)
{
    for (i64 at = 0; at < n; at += 1024) {
        i64 stop = at + 1024 < n ? at + 1024 : n;
        u64 bad = 0; /* the sign of either difference; one that overflows is of an index outside */
        for (i64 i = at; i < stop; i++)
            bad |= ((u64)x[i] - (u64)low) | ((u64)high - 1 - (u64)x[i]);
        if (bad >> 63)
            for (i64 i = at; i < stop; i++)
                if (x[i] < low || x[i] >= high)
                    return i;
    }
    return -1;
}

/* offset[i] (+)= byte position of index x[i], negative ones with `wrap` added; whether one was outside of [0, size) */
int64_t ISA_NAME(index_offsets)(int64_t *offset, const int64_t *x, int64_t n, int64_t size, int64_t wrap, int64_t stride, int add)
{
    u64 bad = 0;
    for (i64 i = 0; i < n; i++)
        offset[i] = (add ? offset[i] : 0) + bounded(x + i, size, wrap, &bad) * stride;
    return bad;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* SIZE: elements of contiguous lines lie so far apart, which then have a loop of their own; 0: no such loop. */
#define LINES(A, begin, end, SIZE, ELEMENT)                                                                          \
    {                                                                                                                \
        i64 pos[INDEX_DIMS], q = begin, line = begin;                                                                \
        int last = (A)->nd - 1;                                                                                      \
        char *t = (A)->table, *d = (A)->dense;                                                                       \
        const i64 *x = (A)->index;                                                                                   \
        const i64 tj = (A)->t[last], dj = (A)->d[last], xj = (A)->x[last], ts = (A)->ts, ds = (A)->ds;               \
        const i64 xs = (A)->xs, n = (A)->n, limit = (A)->limit, wrap = (A)->wrap;                                    \
        u64 bad = 0;                                                                                                 \
        for (int k = last; k >= 0; k--) {                                                                            \
            pos[k] = q % (A)->size[k];                                                                               \
            q /= (A)->size[k];                                                                                       \
            t += pos[k] * (A)->t[k];                                                                                 \
            d += pos[k] * (A)->d[k];                                                                                 \
            x += pos[k] * (A)->x[k];                                                                                 \
        }                                                                                                            \
        while (line < end) {                                                                                         \
            i64 run = (A)->size[last] - pos[last] < end - line ? (A)->size[last] - pos[last] : end - line;           \
            if (SIZE && n > 1 && xs == 1 && ts == SIZE && ds == SIZE) {                                              \
                const i64 xs = 1, ts = SIZE, ds = SIZE;                                                              \
                for (i64 j = 0; j < run; j++)                                                                        \
                    _Pragma("GCC unroll 4") for (i64 i = 0; i < n; i++) {                                            \
                        ELEMENT                                                                                      \
                    }                                                                                                \
            } else if (n > 1 && (xs <= xj || run == 1 || (xj == 0 && ds <= dj))) {                                          \
                for (i64 j = 0; j < run; j++)                                                                        \
                    for (i64 i = 0; i < n; i++) {                                                                    \
                        ELEMENT                                                                                      \
                    }                                                                                                \
            } else {                                                                                                 \
                for (i64 i = 0; i < n; i++)                                                                          \
                    for (i64 j = 0; j < run; j++) {                                                                  \
                        ELEMENT                                                                                      \
                    }                                                                                                \
            }                                                                                                        \
            line += run;                                                                                             \
            pos[last] += run;                                                                                        \
            t += run * tj;                                                                                           \
            d += run * dj;                                                                                           \
            x += run * xj;                                                                                           \
            for (int k = last; k > 0 && pos[k] == (A)->size[k]; k--) {                                               \
                t += (A)->t[k - 1] - (A)->size[k] * (A)->t[k];                                                       \
                d += (A)->d[k - 1] - (A)->size[k] * (A)->d[k];                                                       \
                x += (A)->x[k - 1] - (A)->size[k] * (A)->x[k];                                                       \
                pos[k] = 0;                                                                                          \
                pos[k - 1]++;                                                                                        \
            }                                                                                                        \
        }                                                                                                            \
        if (bad)                                                                                                     \
            __atomic_store_n(&(A)->bad, 1, __ATOMIC_RELAXED);                                                        \
    }

#define POSITION (bounded(x + j * xj + i * xs, limit, wrap, &bad) * ts)
#define LINE_COPIES(T)                                                                                               \
    static void gather_lines_##T(LineArgs *a, i64 begin, i64 end)                                                    \
    LINES(a, begin, end, (i64)sizeof(T), *(T *)(d + j * dj + i * ds) = *(const T *)(t + j * tj + POSITION);)                         \
    static void set_lines_##T(LineArgs *a, i64 begin, i64 end)                                                       \
    LINES(a, begin, end, (i64)sizeof(T), *(T *)(t + j * tj + POSITION) = *(const T *)(d + j * dj + i * ds);)
LINE_COPIES(u8) LINE_COPIES(i16) LINE_COPIES(u32) LINE_COPIES(u64) LINE_COPIES(w16)

#define LINES_TOGETHER_add 1
#define LINES_TOGETHER_mul 0
#define LINES_TOGETHER_min 0
#define LINES_TOGETHER_max 0
#define LINE_FUNCTION(OP, T, C, LD, ST, EXPR)                                                                        \
    static void OP##_lines_##T(LineArgs *args, i64 begin, i64 end)                                                   \
    LINES(args, begin, end, LINES_TOGETHER_##OP * (i64)sizeof(T), T *p = (T *)(t + j * tj + POSITION); C a = LD(*p);                                       \
          C b = LD(*(const T *)(d + j * dj + i * ds)); *p = ST(EXPR);)
/* Which of two random elements is larger is no branch to predict: the minimum is computed, then stored. */
#undef COMPUTED
#define COMPUTED(x) ({ __typeof__(x) computed_ = (x); __asm__("" : "+rx"(computed_)); computed_; })
EACH_OPERATOR(LINE_FUNCTION)

typedef void (*line_fn)(LineArgs *, i64, i64);
#define set_lines_1 set_lines_u8
#define set_lines_2 set_lines_i16
#define set_lines_4 set_lines_u32
#define set_lines_8 set_lines_u64
#define set_lines_16 set_lines_w16
#define LINES_OF_SIZE(type, name, label, cpp, size, ...) [DT_##type] = set_lines_##size,
static const line_fn line_table[PUT_OPS][NUM_DTYPES] = {
    [PUT_SET] = {TRT_DTYPES(LINES_OF_SIZE)},
    [PUT_ADD] = {add_lines_b8, add_lines_u8, add_lines_i8, add_lines_i16, add_lines_i32, add_lines_i64, add_lines_f16, add_lines_bf16, add_lines_f32, add_lines_f64, add_lines_c64, add_lines_c128},
    [PUT_MUL] = {mul_lines_b8, mul_lines_u8, mul_lines_i8, mul_lines_i16, mul_lines_i32, mul_lines_i64, mul_lines_f16, mul_lines_bf16, mul_lines_f32, mul_lines_f64, mul_lines_c64, mul_lines_c128},
    [PUT_MIN] = {min_lines_b8, min_lines_u8, min_lines_i8, min_lines_i16, min_lines_i32, min_lines_i64, min_lines_f16, min_lines_bf16, min_lines_f32, min_lines_f64},
    [PUT_MAX] = {max_lines_b8, max_lines_u8, max_lines_i8, max_lines_i16, max_lines_i32, max_lines_i64, max_lines_f16, max_lines_bf16, max_lines_f32, max_lines_f64},
};

/* Whether neighbouring lines share their indices (an expanded index) and are closer together than the elements of a line: rows of them are then moved as one. */
static int moves_rows(const LineArgs *a)
{
    const int last = a->nd - 1;
    return a->x[last] == 0 && a->size[last] > 1 && (a->n == 1 || a->t[last] + a->d[last] <= a->ts + a->ds);
}

static void lines_by_rows(LineArgs *a, i64 begin, i64 end, row_fn f, int to_table)
{
    const int last = a->nd - 1;
    const i64 tj = a->t[last], dj = a->d[last], ts = a->ts, ds = a->ds, xs = a->xs, n = a->n, limit = a->limit, wrap = a->wrap;
    i64 pos[INDEX_DIMS], q = begin, line = begin, block[INDEX_BLOCK];
    char *t = a->table, *d = a->dense;
    const i64 *x = a->index;
    u64 bad = 0;
    for (int k = last; k >= 0; k--) {
        pos[k] = q % a->size[k];
        q /= a->size[k];
        t += pos[k] * a->t[k];
        d += pos[k] * a->d[k];
        x += pos[k] * a->x[k];
    }
    while (line < end) {
        const i64 run = a->size[last] - pos[last] < end - line ? a->size[last] - pos[last] : end - line;
        if (to_table)
            for (i64 i = 0; i < n; i++)
                f(t + bounded(x + i * xs, limit, wrap, &bad) * ts, tj, d + i * ds, dj, run);
        else if (tj == a->item && dj == a->item)
            for (i64 first = 0; first < n; first += INDEX_BLOCK) {
                const i64 count = n - first < INDEX_BLOCK ? n - first : INDEX_BLOCK;
                for (i64 i = 0; i < count; i++)
                    block[i] = bounded(x + (first + i) * xs, limit, wrap, &bad) * ts;
                gather_contiguous(t, block, d + first * ds, ds, count, run * a->item);
            }
        else
            for (i64 i = 0; i < n; i++)
                f(d + i * ds, dj, t + bounded(x + i * xs, limit, wrap, &bad) * ts, tj, run);
        line += run;
        pos[last] += run;
        t += run * tj;
        d += run * dj;
        for (int k = last; k > 0 && pos[k] == a->size[k]; k--) {
            t += a->t[k - 1] - a->size[k] * a->t[k];
            d += a->d[k - 1] - a->size[k] * a->d[k];
            x += a->x[k - 1] - a->size[k] * a->x[k];
            pos[k] = 0;
            pos[k - 1]++;
        }
    }
    if (bad)
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}

void ISA_NAME(index_gather_lines)(void *context, int64_t begin, int64_t end)
{
    LineArgs *a = context;
    if (moves_rows(a)) {
        lines_by_rows(a, begin, end, row_table[PUT_SET][a->dtype], 0);
        return;
    }
    switch (a->item) {
    case 1: gather_lines_u8(a, begin, end); break;
    case 2: gather_lines_i16(a, begin, end); break;
    case 4: gather_lines_u32(a, begin, end); break;
    case 8: gather_lines_u64(a, begin, end); break;
    default: gather_lines_w16(a, begin, end); break;
    }
}

void ISA_NAME(index_scatter_lines)(void *context, int64_t begin, int64_t end)
{
    LineArgs *a = context;
    if (moves_rows(a))
        lines_by_rows(a, begin, end, row_table[a->op][a->dtype], 1);
    else
        line_table[a->op][a->dtype](a, begin, end);
}

/* ---- positions of non-zeros ------------------------------------------------------------------------------------- */

#define BY_DTYPE(M)                                                                                                  \
    switch (dtype) {                                                                                                 \
    case DT_b8: case DT_u8: case DT_i8: M(u8, v != 0) break;                                                         \
    case DT_i16: M(i16, v != 0) break;                                                                               \
    case DT_i32: M(i32, v != 0) break;                                                                               \
    case DT_i64: M(i64, v != 0) break;                                                                               \
    case DT_f16: case DT_bf16: M(i16, (v & 0x7fff) != 0) break;                                                      \
    case DT_f32: M(f32, v != 0) break;                                                                               \
    case DT_f64: M(f64, v != 0) break;                                                                               \
    case DT_c64: M(c64, v != 0) break;                                                                               \
    default: M(c128, v != 0) break;                                                                                  \
    }

int64_t ISA_NAME(index_count_nonzero)(const char *data, int dtype, int64_t n)
{
    i64 count = 0;
#define COUNT(T, TEST)                                                                                               \
    for (i64 i = 0; i < n; i++) {                                                                                    \
        T v = ((const T *)data)[i];                                                                                  \
        count += (TEST);                                                                                             \
    }
    BY_DTYPE(COUNT)
    return count;
}

/* The positions of the first `count` non-zeros of n elements; 0 for those that another thread cleared since they were counted. */
void ISA_NAME(index_write_nonzero)(const char *data, int dtype, int64_t n, int64_t count, int64_t *out)
{
    i64 k = 0;
#define WRITE(T, TEST)                                                                                               \
    for (i64 i = 0; k < count && i < n; i++) {                                                                       \
        T v = ((const T *)data)[i];                                                                                  \
        out[k] = i;                                                                                                  \
        k += (TEST);                                                                                                 \
    }
    BY_DTYPE(WRITE)
    for (; k < count; k++)
        out[k] = 0;
}

/* Flat positions to coordinates: out[i * row + k * column] along dimension k. */
void ISA_NAME(index_unravel)(const int64_t *flat, int64_t n, int nd, const int64_t *sizes, int64_t *out, int64_t row, int64_t column)
{
    for (i64 i = 0; i < n; i++) {
        i64 q = flat[i];
        for (int k = nd - 1; k > 0; k--) {
            out[i * row + k * column] = q % sizes[k];
            q /= sizes[k];
        }
        if (nd)
            out[i * row] = q;
    }
}

/* ---- search ----------------------------------------------------------------------------------------------------- */

enum { SEARCHED = 8 }; /* values whose steps through the boundaries are interleaved, so that their loads overlap */

#define BEFORE(x, v) (right ? !((x) > (v)) : !((x) >= (v)))
/* A sorter was checked, but another thread may have written to it since: what it names beyond the row is read at the row's ends. */
INL i64 sorted_place(const i64 *order, i64 i, i64 length)
{
    i64 place = order[i];
    return place < 0 ? 0 : place < length ? place : length - 1;
}
#define SEARCH(T)                                                                                                    \
    INL void search_few_##T(const T *s, const i64 *order, i64 n, int right, const T *values, i64 count, i64 *at)     \
    {                                                                                                                \
        T v[SEARCHED];                                                                                               \
        const i64 length = n;                                                                                        \
        for (int q = 0; q < SEARCHED; q++) {                                                                         \
            v[q] = values[q < count ? q : 0];                                                                        \
            at[q] = 0;                                                                                               \
        }                                                                                                            \
        for (i64 half; n > 1; n -= half) {                                                                           \
            half = n / 2;                                                                                            \
            for (int q = 0; q < SEARCHED; q++) {                                                                     \
                i64 middle = at[q] + half - 1;                                                                       \
                T x = s[order ? sorted_place(order, middle, length) : middle];                                       \
                at[q] += BEFORE(x, v[q]) ? half : 0;                                                                 \
            }                                                                                                        \
        }                                                                                                            \
        for (int q = 0; q < SEARCHED && n; q++)                                                                      \
            at[q] += BEFORE(s[order ? sorted_place(order, at[q], length) : at[q]], v[q]);                             \
    }                                                                                                                \
    static void search_##T(const SearchArgs *a, i64 begin, i64 end)                                                  \
    {                                                                                                                \
        for (i64 i = begin; i < end;) {                                                                              \
            i64 row = a->row_step ? i / a->count : 0, left = a->row_step ? (row + 1) * a->count - i : end - i;       \
            i64 count = left < end - i ? left : end - i, at[SEARCHED];                                               \
            const T *s = (const T *)a->sorted + row * a->row_step, *v = (const T *)a->values + i;                    \
            count = count < SEARCHED ? count : SEARCHED;                                                             \
            if (a->sorter)                                                                                           \
                search_few_##T(s, a->sorter + row * a->row_step, a->n, a->right, v, count, at);                      \
            else if (a->right)                                                                                       \
                search_few_##T(s, 0, a->n, 1, v, count, at);                                                         \
            else                                                                                                     \
                search_few_##T(s, 0, a->n, 0, v, count, at);                                                         \
            for (i64 q = 0; q < count; q++, i++) {                                                                   \
                if (a->out_int32)                                                                                    \
                    ((i32 *)a->out)[i] = (i32)at[q];                                                                 \
                else                                                                                                 \
                    ((i64 *)a->out)[i] = at[q];                                                                      \
            }                                                                                                        \
        }                                                                                                            \
    }
SEARCH(i32) SEARCH(i64) SEARCH(f32) SEARCH(f64)

void ISA_NAME(index_search_sorted)(void *context, int64_t begin, int64_t end)
{
    const SearchArgs *a = context;
    (a->dtype == DT_i32 ? search_i32 : a->dtype == DT_i64 ? search_i64 : a->dtype == DT_f32 ? search_f32 : search_f64)(a, begin, end);
}

/* ---- bags of rows ----------------------------------------------------------------------------------------------- */

enum { BAG_COLUMNS = 64 }; /* sums that stay in registers */

/* The row of index j, or -1 where it counts nothing. */
INL i64 bag_row(const BagArgs *a, i64 j, u64 *bad)
{
    i64 row = a->index_item == sizeof(i32) ? bounded_i32((const i32 *)a->index + j, a->limit, bad) : bounded((const i64 *)a->index + j, a->limit, 0, bad);
    return row == a->skipped ? -1 : row;
}

/* Rows as wide as the numbers that they are chosen by; tables of floats have fewer than 2^32. */
#define BAG_PLACE_f32 u32
#define BAG_PLACE_f64 i64
#define BAGS(T, C, LD, ST)                                                                                           \
    INL void bag_block_##T(const BagArgs *a, i64 first, i64 end, i64 column, i64 n, T *out, u64 *bad)                \
    {                                                                                                                \
        C sum[BAG_COLUMNS] = {0};                                                                                    \
        for (i64 j = first; j < end; j++) {                                                                          \
            const i64 at = bag_row(a, j, bad);                                                                       \
            if (at < 0)                                                                                              \
                continue;                                                                                            \
            const T *row = (const T *)a->table + at * a->columns + column;                                           \
            if (a->scale) {                                                                                          \
                const C scale = LD(((const T *)a->scale)[j]);                                                        \
                for (i64 c = 0; c < n; c++)                                                                          \
                    sum[c] += LD(row[c]) * scale;                                                                    \
            } else                                                                                                   \
                for (i64 c = 0; c < n; c++)                                                                          \
                    sum[c] += LD(row[c]);                                                                            \
        }                                                                                                            \
        for (i64 c = 0; c < n; c++)                                                                                  \
            out[c] = ST(sum[c]);                                                                                     \
    }                                                                                                                \
    static u64 bag_sums_##T(const BagArgs *a, i64 begin, i64 end)                                                    \
    {                                                                                                                \
        u64 bad = 0;                                                                                                 \
        for (i64 b = begin; b < end; b++) {                                                                          \
            i64 first = a->ends[b], stop = a->ends[b + 1];                                                           \
            first = first < 0 ? 0 : first;                                                                           \
            stop = stop > a->count ? a->count : stop;                                                                \
            T *out = (T *)a->dense + b * a->columns;                                                                 \
            i64 c = 0;                                                                                               \
            for (; c + BAG_COLUMNS <= a->columns; c += BAG_COLUMNS)                                                  \
                bag_block_##T(a, first, stop, c, BAG_COLUMNS, out + c, &bad);                                        \
            if (c < a->columns)                                                                                      \
                bag_block_##T(a, first, stop, c, a->columns - c, out + c, &bad);                                     \
        }                                                                                                            \
        return bad;                                                                                                  \
    }                                                                                                                \
    static u64 bag_largest_##T(const BagArgs *a, i64 begin, i64 end)                                                 \
    {                                                                                                                \
        u64 bad = 0;                                                                                                 \
        for (i64 b = begin; b < end; b++) {                                                                          \
            i64 first = a->ends[b], stop = a->ends[b + 1];                                                           \
            first = first < 0 ? 0 : first;                                                                           \
            stop = stop > a->count ? a->count : stop;                                                                \
            for (i64 column = 0; column < a->columns; column += BAG_COLUMNS) {                                       \
                const i64 n = a->columns - column < BAG_COLUMNS ? a->columns - column : BAG_COLUMNS;                 \
                T *out = (T *)a->dense + b * a->columns + column;                                                    \
                i64 *from = a->largest + b * a->columns + column;                                                    \
                C most[BAG_COLUMNS] = {0};                                                                           \
                BAG_PLACE_##C place[BAG_COLUMNS];                                                                    \
                int some = 0;                                                                                        \
                for (i64 j = first; j < stop; j++) {                                                                 \
                    const i64 at = bag_row(a, j, &bad);                                                              \
                    if (at < 0)                                                                                      \
                        continue;                                                                                    \
                    const T *row = (const T *)a->table + at * a->columns + column;                                   \
                    const BAG_PLACE_##C here = (BAG_PLACE_##C)at;                                                    \
                    if (!some)                                                                                       \
                        for (i64 c = 0; c < n; c++)                                                                  \
                            most[c] = LD(row[c]), place[c] = here;                                                   \
                    else                                                                                             \
                        for (i64 c = 0; c < n; c++) {                                                                \
                            const C v = LD(row[c]);                                                                  \
                            const int larger = (v > most[c]) | ((v != v) & (most[c] == most[c]));                    \
                            most[c] = larger ? v : most[c];                                                          \
                            place[c] = larger ? here : place[c];                                                     \
                        }                                                                                            \
                    some = 1;                                                                                        \
                }                                                                                                    \
                for (i64 c = 0; c < n; c++) {                                                                        \
                    out[c] = ST(most[c]);                                                                            \
                    from[c] = some ? (i64)place[c] : -1;                                                                 \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
        return bad;                                                                                                  \
    }                                                                                                                \
    static void bag_largest_gradient_##T(const BagArgs *a, i64 begin, i64 end)                                       \
    {                                                                                                                \
        for (i64 b = 0; b < a->bags; b++) {                                                                          \
            const T *g = (const T *)a->dense + b * a->columns;                                                       \
            const i64 *from = a->largest + b * a->columns;                                                           \
            for (i64 c = begin; c < end; c++) {                                                                      \
                const u64 at = (u64)from[c];                                                                         \
                if (at < (u64)a->limit) {                                                                            \
                    T *to = (T *)a->table + at * a->columns + c;                                                     \
                    *to = ST(LD(*to) + LD(g[c]));                                                                    \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    static u64 bag_gradient_##T(const BagArgs *a, i64 begin, i64 end)                                                \
    {                                                                                                                \
        u64 bad = 0;                                                                                                 \
        for (i64 j = 0; j < a->count; j++) {                                                                         \
            const u64 bag = (u64)a->bag[j];                                                                          \
            const i64 at = bag_row(a, j, &bad);                                                                      \
            if (at < 0 || bag >= (u64)a->bags)                                                                       \
                continue;                                                                                            \
            const T *restrict g = (const T *)a->dense + bag * a->columns;                                            \
            T *restrict row = (T *)a->table + at * a->columns;                                                       \
            const C scale = a->scale ? LD(((const T *)a->scale)[j]) : 1;                                             \
            for (i64 c = begin; c < end; c++)                                                                        \
                row[c] = ST(LD(row[c]) + LD(g[c]) * scale);                                                          \
        }                                                                                                            \
        return bad;                                                                                                  \
    }
BAGS(f16, f32, ld_f16, st_f16) BAGS(bf16, f32, ld_bf16, st_bf16) BAGS(f32, f32, SAME, SAME) BAGS(f64, f64, SAME, SAME)

/* Bags [begin, end). */
void ISA_NAME(index_bag_sums)(void *context, int64_t begin, int64_t end)
{
    BagArgs *a = context;
    if ((a->dtype == DT_f16 ? bag_sums_f16 : a->dtype == DT_bf16 ? bag_sums_bf16 : a->dtype == DT_f32 ? bag_sums_f32 : bag_sums_f64)(a, begin, end))
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}

/* Columns [begin, end) of the table: a row may be in many bags. */
void ISA_NAME(index_bag_gradient)(void *context, int64_t begin, int64_t end)
{
    BagArgs *a = context;
    if ((a->dtype == DT_f16 ? bag_gradient_f16 : a->dtype == DT_bf16 ? bag_gradient_bf16 : a->dtype == DT_f32 ? bag_gradient_f32 : bag_gradient_f64)(a, begin, end))
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}

/* The largest elements of bags [begin, end). */
void ISA_NAME(index_bag_largest)(void *context, int64_t begin, int64_t end)
{
    BagArgs *a = context;
    if ((a->dtype == DT_f16 ? bag_largest_f16 : a->dtype == DT_bf16 ? bag_largest_bf16 : a->dtype == DT_f32 ? bag_largest_f32 : bag_largest_f64)(a, begin, end))
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}

/* Columns [begin, end) of the table: an element may be the largest of many bags. */
void ISA_NAME(index_bag_largest_gradient)(void *context, int64_t begin, int64_t end)
{
    const BagArgs *a = context;
    (a->dtype == DT_f16 ? bag_largest_gradient_f16 : a->dtype == DT_bf16 ? bag_largest_gradient_bf16 : a->dtype == DT_f32 ? bag_largest_gradient_f32
                                                                                                     : bag_largest_gradient_f64)(a, begin, end);
}

/* ---- classes as rows of zeros with a one ------------------------------------------------------------------------ */

void ISA_NAME(index_one_hot)(void *context, int64_t begin, int64_t end)
{
    OneHotArgs *a = context;
    u64 bad = 0;
    for (i64 i = begin; i < end; i++) {
        i64 *row = a->out + i * a->classes;
        memset(row, 0, a->classes * sizeof *row);
        row[bounded(a->index + i, a->classes, 0, &bad)] = 1;
    }
    if (bad)
        __atomic_store_n(&a->bad, 1, __ATOMIC_RELAXED);
}
