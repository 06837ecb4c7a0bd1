/* Results that consist of pieces of their source, the adjoint (sums into the source), and interleaved parts. Ranges are
 * elements of the result, so that one long line is shared out as well as many.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "../core/isa.h"
#include "joining_steps.h"
#include "scalar_types.h"

typedef struct { u64 a, b; } w16;

/* memcpy of some kB may move bytes one by one (rep movsb), which takes 12 times as long where the target lies a few bytes
 * behind the source modulo 4096, as in a row that is shifted: runs of up to LOOP_BYTES are a loop. */
enum { LOOP_BYTES = 1 << 16 };
typedef u8 v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef u8 v32 __attribute__((vector_size(32), aligned(1), may_alias));

INL void copy_bytes(char *d, const char *s, i64 n)
{
    if (n > LOOP_BYTES) {
        memcpy(d, s, n);
        return;
    }
    if (n < 16) { /* both ends of a constant size each */
        if (n >= 8)
            memcpy(d, s, 8), memcpy(d + n - 8, s + n - 8, 8);
        else if (n >= 4)
            memcpy(d, s, 4), memcpy(d + n - 4, s + n - 4, 4);
        else if (n >= 2)
            memcpy(d, s, 2), memcpy(d + n - 2, s + n - 2, 2);
        else if (n)
            *d = *s;
        return;
    }
    if (n < 32) { /* both ends, which may overlap */
        *(v16 *)d = *(const v16 *)s;
        *(v16 *)(d + n - 16) = *(const v16 *)(s + n - 16);
        return;
    }
    for (i64 i = 0; i < n - 32; i += 32) {
        *(v32 *)(d + i) = *(const v32 *)(s + i);
        __asm__ volatile("" ::: "memory"); /* keeps the compiler from calling memcpy */
    }
    *(v32 *)(d + n - 32) = *(const v32 *)(s + n - 32);
}

/* ---- runs along the last dimension ------------------------------------------------------------------------------ */

typedef void (*run_fn)(char *r, i64 sr, char *s, i64 ss, i64 n);

#define COPY_RUN(T)                                                                                                  \
    INL void copy_run_##T(char *r, i64 sr, char *s, i64 ss, i64 n)                                                   \
    {                                                                                                                \
        T *restrict p = (T *)r;                                                                                      \
        const T *restrict q = (const T *)s;                                                                          \
        if (n < 4) {                                                                                                 \
            *(T *)r = *q;                                                                                            \
            if (n > 1)                                                                                               \
                *(T *)(r + sr) = *(const T *)(s + ss);                                                               \
            if (n > 2)                                                                                               \
                *(T *)(r + 2 * sr) = *(const T *)(s + 2 * ss);                                                       \
            return;                                                                                                  \
        }                                                                                                            \
        if (sr == (i64)sizeof(T) && ss == (i64)sizeof(T))                                                            \
            copy_bytes(r, s, n * (i64)sizeof(T));                                                                    \
        else if (sr == (i64)sizeof(T) && ss == -(i64)sizeof(T))                                                      \
            for (i64 i = 0; i < n; i++)                                                                              \
                p[i] = q[-i];                                                                                        \
        else if (sr == (i64)sizeof(T) && ss == 0) {                                                                  \
            T v = *q;                                                                                                \
            for (i64 i = 0; i < n; i++)                                                                              \
                p[i] = v;                                                                                            \
        } else                                                                                                       \
            for (i64 i = 0; i < n; i++, r += sr, s += ss)                                                            \
                *(T *)r = *(const T *)s;                                                                             \
    }
COPY_RUN(u8) COPY_RUN(i16) COPY_RUN(u32) COPY_RUN(u64) COPY_RUN(w16)

#define SAME(x) (x)
#define ADD_RUN(T, LD, ST)                                                                                           \
    static void add_run_##T(char *r, i64 sr, char *s, i64 ss, i64 n)                                                 \
    {                                                                                                                \
        const T *restrict p = (const T *)r;                                                                          \
        T *restrict q = (T *)s;                                                                                      \
        if (sr == (i64)sizeof(T) && n >= 4 && ss == (i64)sizeof(T))                                                  \
            for (i64 i = 0; i < n; i++)                                                                              \
                q[i] = ST(LD(q[i]) + LD(p[i]));                                                                      \
        else                                                                                                         \
            for (i64 i = 0; i < n; i++, r += sr, s += ss)                                                            \
                *(T *)s = ST(LD(*(T *)s) + LD(*(const T *)r));                                                       \
    }
ADD_RUN(f16, ld_f16, st_f16) ADD_RUN(bf16, ld_bf16, st_bf16) ADD_RUN(f32, SAME, SAME)
ADD_RUN(f64, SAME, SAME) ADD_RUN(c64, SAME, SAME) ADD_RUN(c128, SAME, SAME)

static const run_fn add_runs[NUM_DTYPES] = {
    [DT_f16] = add_run_f16, [DT_bf16] = add_run_bf16, [DT_f32] = add_run_f32,
    [DT_f64] = add_run_f64, [DT_c64] = add_run_c64, [DT_c128] = add_run_c128,
};

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* Where a dimension stands: the source's offset, what a step adds to it, and how many steps stay in the piece. */
typedef struct { i64 at, offset, delta, left; int taken; } Place;

INL void place_at(const PieceArgs *a, int k, i64 at, Place *p)
{
    const Piece *e = a->along[k].piece;
    p->at = at;
    while (at >= e->count)
        at -= e++->count;
    p->taken = e->step != PIECE_CONSTANT;
    p->delta = p->taken ? e->step * a->source[k] : 0;
    p->offset = p->taken ? e->at * a->source[k] + at * p->delta : 0;
    p->left = e->count - at;
}

/* Apply `run` to every piece of the result's elements [begin, end). */
INL void walk_pieces(PieceArgs *a, run_fn run, i64 begin, i64 end)
{
    const int last = a->nd - 1;
    const i64 width = a->size[last], step = a->result[last];
    struct { i64 start, n, from, delta; int taken; } line[MOST_PIECES];
    Place place[PIECE_DIMS];
    i64 q = begin / width, first = begin % width, start = 0;
    char *r = a->to;
    int count = 0; /* of pieces that something is written to */
    for (int e = 0; e < a->pieces[last]; e++) {
        const Piece *piece = &a->along[last].piece[e];
        const int taken = piece->step != PIECE_CONSTANT;
        line[count].start = start;
        line[count].n = piece->count;
        line[count].taken = taken;
        line[count].delta = taken ? piece->step * a->source[last] : 0;
        line[count].from = piece->at * a->source[last];
        count += piece->count && (taken || !a->filled);
        start += piece->count;
    }
    for (int k = last - 1; k >= 0; k--) {
        place_at(a, k, q % a->size[k], &place[k]);
        q /= a->size[k];
        r += place[k].at * a->result[k];
    }
    for (i64 at = begin; at < end;) {
        i64 stop = width - first < end - at ? width : first + end - at, rows = 1, down = 0, over = 0;
        char *s = a->from_data;
        int taken = 1;
        if (last > 0 && stop - first == width) { /* all lines of a piece of the dimension above */
            rows = (end - at) / width;
            if (place[last - 1].left < rows)
                rows = place[last - 1].left;
            down = a->result[last - 1];
            over = place[last - 1].delta;
        }
        for (int k = 0; k < last; k++) {
            s += place[k].offset;
            taken &= place[k].taken;
        }
        char *to = r;
        for (i64 row = 0; row < rows && !(a->filled && !taken); row++, to += down, s += over) {
            if (!taken)
                run(to + first * step, step, (char *)a->constant, 0, stop - first);
            else if (stop - first == width)
                for (int e = 0; e < count; e++)
                    run(to + line[e].start * step, step, line[e].taken ? s + line[e].from : (char *)a->constant, line[e].delta, line[e].n);
            else
                for (int e = 0; e < count; e++) {
                    i64 skip = first > line[e].start ? first - line[e].start : 0, n = stop - line[e].start;
                    n = (n < line[e].n ? n : line[e].n) - skip;
                    if (n > 0)
                        run(to + (line[e].start + skip) * step, step, line[e].taken ? s + line[e].from + skip * line[e].delta : (char *)a->constant, line[e].delta, n);
                }
        }
        at += (stop - first) * rows;
        first = 0;
        for (int k = last - 1; k >= 0; k--, rows = 1) {
            Place *p = &place[k];
            r += a->result[k] * rows;
            p->left -= rows;
            if (p->left > 0) {
                p->at += rows;
                p->offset += p->delta * rows;
                break;
            }
            if (p->at + rows < a->size[k]) {
                place_at(a, k, p->at + rows, p);
                break;
            }
            r -= a->size[k] * a->result[k];
            place_at(a, k, 0, p);
        }
    }
}

/* Elements [begin, end) of the result. */
void ISA_NAME(piece_copies)(void *context, int64_t begin, int64_t end)
{
    PieceArgs *a = context;
    switch (a->item) {
    case 1: walk_pieces(a, copy_run_u8, begin, end); break;
    case 2: walk_pieces(a, copy_run_i16, begin, end); break;
    case 4: walk_pieces(a, copy_run_u32, begin, end); break;
    case 8: walk_pieces(a, copy_run_u64, begin, end); break;
    default: walk_pieces(a, copy_run_w16, begin, end); break;
    }
}

/* The adjoint: the source's elements grow by what was taken from them, for groups [begin, end) of the result. */
void ISA_NAME(piece_sums)(void *context, int64_t begin, int64_t end)
{
    PieceArgs *a = context;
    walk_pieces(a, add_runs[a->dtype], begin * a->group, end * a->group);
}

/* ---- parts one after another ------------------------------------------------------------------------------------ */

enum { CAT_NARROW = 1 << 10 /* bytes of a row up to which its parts are copied as columns */, CAT_BLOCK = 1 << 13 /* bytes of the rows whose columns are copied in turn */ };

#define CAT_COLUMN(N)                                                                                                \
    case N:                                                                                                          \
        for (i64 i = 0; i < rows; i++, d += row, s += N)                                                             \
            memcpy(d, s, N);                                                                                         \
        return;

/* A part of `bytes` of each of some rows */
static void cat_column(char *d, i64 row, const char *s, i64 bytes, i64 rows)
{
    switch (bytes) {
        CAT_COLUMN(1) CAT_COLUMN(2) CAT_COLUMN(3) CAT_COLUMN(4) CAT_COLUMN(6) CAT_COLUMN(8) CAT_COLUMN(12) CAT_COLUMN(16) CAT_COLUMN(24) CAT_COLUMN(32) CAT_COLUMN(64)
    }
    for (i64 i = 0; i < rows; i++, d += row, s += bytes)
        copy_bytes(d, s, bytes);
}

/* Bytes [begin, end) of the result, part by part of each row. */
static void cat_bytes(const CatArgs *a, i64 begin, i64 end)
{
    i64 outer = begin / a->row, within = begin % a->row, k = 0;
    while (within >= a->bytes[k])
        within -= a->bytes[k++];
    for (i64 at = begin; at < end; within = 0) {
        i64 count = a->bytes[k] - within < end - at ? a->bytes[k] - within : end - at;
        copy_bytes(a->out + at, a->part[k] + outer * a->bytes[k] + within, count);
        at += count;
        if (++k == a->n) {
            k = 0;
            outer++;
        }
    }
}

/* Bytes [begin, end) of the result: whole narrow rows in blocks, column by column. */
void ISA_NAME(cat_rows)(void *context, int64_t begin, int64_t end)
{
    const CatArgs *a = context;
    const i64 first = (begin + a->row - 1) / a->row, last = end / a->row, block = CAT_BLOCK / a->row;
    if (a->row > CAT_NARROW || last <= first) {
        cat_bytes(a, begin, end);
        return;
    }
    cat_bytes(a, begin, first * a->row);
    for (i64 at = first; at < last; at += block) {
        char *d = a->out + at * a->row;
        for (i64 k = 0; k < a->n; d += a->bytes[k++])
            cat_column(d, a->row, a->part[k] + at * a->bytes[k], a->bytes[k], at + block < last ? block : last - at);
    }
    cat_bytes(a, last * a->row, end);
}

/* ---- interleaved parts ------------------------------------------------------------------------------------------ */

#define INTERLEAVE(T)                                                                                                \
    INL void interleave_few_##T(T *restrict out, const char **part, i64 n, i64 begin, i64 end)                       \
    {                                                                                                                \
        const T *restrict p[4];                                                                                      \
        for (i64 k = 0; k < n; k++)                                                                                  \
            p[k] = (const T *)part[k];                                                                               \
        for (i64 i = begin; i < end; i++)                                                                            \
            for (i64 k = 0; k < n; k++)                                                                              \
                out[i * n + k] = p[k][i];                                                                            \
    }                                                                                                                \
    static void interleave_##T(const CatArgs *a, i64 begin, i64 end)                                          \
    {                                                                                                                \
        T *out = (T *)a->out;                                                                                        \
        i64 n = a->n;                                                                                                \
        if (n <= 4) {                                                                                                \
            n == 2 ? interleave_few_##T(out, a->part, 2, begin, end) : n == 3 ? interleave_few_##T(out, a->part, 3, begin, end) \
                : interleave_few_##T(out, a->part, 4, begin, end);                                                   \
            return;                                                                                                  \
        }                                                                                                            \
        for (i64 at = begin; at < end; at += 64)                                                                     \
            for (i64 k = 0; k < n; k++) {                                                                            \
                const T *p = (const T *)a->part[k];                                                                  \
                for (i64 i = at; i < (at + 64 < end ? at + 64 : end); i++)                                           \
                    out[i * n + k] = p[i];                                                                           \
            }                                                                                                        \
    }
INTERLEAVE(u8) INTERLEAVE(i16) INTERLEAVE(u32) INTERLEAVE(u64) INTERLEAVE(w16)

/* Rows [begin, end) of the result. */
void ISA_NAME(interleave_parts)(void *context, int64_t begin, int64_t end)
{
    const CatArgs *a = context;
    switch (a->bytes[0]) {
    case 1: interleave_u8(a, begin, end); break;
    case 2: interleave_i16(a, begin, end); break;
    case 4: interleave_u32(a, begin, end); break;
    case 8: interleave_u64(a, begin, end); break;
    default: interleave_w16(a, begin, end); break;
    }
}
