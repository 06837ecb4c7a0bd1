/* Sorting, selection, runs of equals, lexicographic order of rows, histograms.
 *
 * Elements become unsigned keys that order as they do: NaN last, -0 and 0 equal. Keys of a line span max - min, so few bits
 * are sorted; a 64-bit type whose keys span 32 bits is sorted as a 32-bit one. Short lines are ranked by comparing all
 * pairs, longer ones sorted by radix passes.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "../core/isa.h"
#include "sorting.h"
#include "scalar_types.h"

enum { DIGITS = 2048, TILE = 16, MERGED = 2048 }; /* up to MERGED elements merging is faster than radix passes */

typedef struct { u64 key, at; } Wide;

/* A contiguous line, the memory it is worked on in, and where its results go. */
typedef struct {
    const SortArgs *s;
    const char *x;
    char *v, *i; /* NULL: not wanted */
    i64 vs, is, n;
    int item, blocks, shift, digit;
    char *keys, *a, *b;
    u32 *counts;
    u64 low, high, subtracted; /* extremes of the keys, after `subtracted` was taken off them */
    u64 lows[SORT_BLOCKS], highs[SORT_BLOCKS];
} Line;

INL i64 block_begin(const Line *l, i64 b) { return b == l->blocks ? l->n : l->n / l->blocks * b; }

static void over_blocks(Line *l, sort_task task)
{
    if (l->blocks == 1)
        task(l, 0, 1);
    else
        l->s->run(l->blocks, 1, 1, task, l);
}

INL int bit_length(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }

/* Keys that a selection may set aside: most bins have far fewer, and those that do not are read among all. */
INL i64 spare_keys(i64 n) { return n / 4 + 64; }

/* ---- keys --------------------------------------------------------------------------------------------------------- */

/* The key of a float with the given sign bit and infinity. */
#define FLOAT_KEY(NAME, K)                                                                                           \
    INL K NAME(K bits, K sign, K inf)                                                                                \
    {                                                                                                                \
        K magnitude = bits & (sign - 1);                                                                             \
        K key = bits & sign ? ~bits & (2 * sign - 1) : bits | sign;                                                  \
        key = magnitude == 0 ? sign : key;                                                                           \
        return magnitude > inf ? 2 * sign - 1 : key;                                                                 \
    }
FLOAT_KEY(float_key32, u32)
FLOAT_KEY(float_key64, u64)

INL u64 nan_key(int dtype)
{
    return dtype == DT_f64 ? ~(u64)0 : dtype == DT_f32 ? 0xffffffffu : dtype == DT_f16 || dtype == DT_bf16 ? 0xffffu : 0;
}
INL int is_nan_key(int dtype, u64 key) { return trt_is_floating_type(dtype) && key == nan_key(dtype); }

#define KEYS(S, K, EXPR)                                                                                             \
    do {                                                                                                             \
        const S *p = (const S *)x;                                                                                   \
        K *out = keys, least = ~(K)0, most = 0;                                                                      \
        for (i64 i = 0; i < n; i++) {                                                                                \
            K u = p[i];                                                                                              \
            u = (EXPR) ^ (K)down;                                                                                    \
            out[i] = u;                                                                                              \
            least = u < least ? u : least;                                                                           \
            most = u > most ? u : most;                                                                              \
        }                                                                                                            \
        *low = least;                                                                                                \
        *high = most;                                                                                                \
    } while (0)

/* The keys of n contiguous elements, and their extremes; u32 for types up to 4 bytes, u64 for the others. */
static void load_keys(int dtype, const char *x, i64 n, int descending, void *keys, u64 *low, u64 *high)
{
    u64 down = 0;
    if (descending)
        down = ~(u64)0 >> (64 - 8 * trt_item_size[dtype]);
    switch (dtype) {
    case DT_b8:
    case DT_u8: KEYS(u8, u32, u); break;
    case DT_i8: KEYS(u8, u32, u ^ 0x80u); break;
    case DT_i16: KEYS(uint16_t, u32, u ^ 0x8000u); break;
    case DT_i32: KEYS(u32, u32, u ^ 0x80000000u); break;
    case DT_i64: KEYS(u64, u64, u ^ (u64)1 << 63); break;
    case DT_f16: KEYS(uint16_t, u32, float_key32(u, 0x8000u, 0x7c00u)); break;
    case DT_bf16: KEYS(uint16_t, u32, float_key32(u, 0x8000u, 0x7f80u)); break;
    case DT_f32: KEYS(u32, u32, float_key32(u, 0x80000000u, 0x7f800000u)); break;
    default: KEYS(u64, u64, float_key64(u, (u64)1 << 63, (u64)0x7ff << 52));
    }
}

static void load_blocks(void *context, i64 begin, i64 end)
{
    Line *l = context;
    i64 width = l->item == 8 ? 8 : 4;
    for (i64 b = begin; b < end; b++) {
        i64 first = block_begin(l, b);
        load_keys(l->s->dtype, l->x + first * l->item, block_begin(l, b + 1) - first, l->s->descending, l->keys + first * width, &l->lows[b], &l->highs[b]);
    }
}

static void narrow_blocks(void *context, i64 begin, i64 end)
{
    Line *l = context;
    u64 low = l->low;
    const u64 *from = (const u64 *)l->keys;
    u32 *to = (u32 *)l->b;
    for (i64 i = block_begin(l, begin); i < block_begin(l, end); i++)
        to[i] = (u32)(from[i] - low);
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

enum { FEW_KEPT = 4, SHORT_LINE = 512 }; /* of topk: so few of so few are found by a pass for each */

#define WIDE_KEYS 0
#define KEY u32
#define ELEMENT u64
#define F(name) name##_32
#define PACK(key, at) ((u64)(key) << 32 | (u32)(at))
#define KEY_OF(e) ((u32)((e) >> 32))
#define AT(e) ((i64)(u32)(e))
#define COMPARED(e) (e)
#define RANKED(key, at) ((i64)(PACK(key, at) ^ (u64)1 << 63))
#define RANKS_BEFORE(x, j, y, i) ((x) < (y))
#include "sorting_lines.h"

#define WIDE_KEYS 1
#define KEY u64
#define ELEMENT Wide
#define F(name) name##_64
#define PACK(key, at) ((Wide){(key), (u64)(at)})
#define KEY_OF(e) ((e).key)
#define AT(e) ((i64)(e).at)
#define COMPARED(e) ((e).key)
#define RANKED(key, at) ((i64)((key) ^ (u64)1 << 63))
#define RANKS_BEFORE(x, j, y, i) (((x) < (y)) | (((x) == (y)) & ((j) < (i))))
#include "sorting_lines.h"

static void any_line(Line *l)
{
    l->low = ~(u64)0;
    l->high = l->subtracted = 0;
    over_blocks(l, load_blocks);
    for (int b = 0; b < l->blocks; b++) {
        l->low = l->lows[b] < l->low ? l->lows[b] : l->low;
        l->high = l->highs[b] > l->high ? l->highs[b] : l->high;
    }
    if (l->item < 8) {
        one_line_32(l);
    } else if (l->high - l->low <= 0xffffffffu) {
        char *t = l->keys;
        over_blocks(l, narrow_blocks);
        l->keys = l->b; /* as large as the keys' own memory, at least */
        l->b = t;
        l->subtracted = l->low;
        l->high -= l->low;
        l->low = 0;
        one_line_32(l);
    } else {
        one_line_64(l);
    }
}

#define TRANSPOSE(T)                                                                                                 \
    for (i64 i = 0; i < n; i++)                                                                                      \
        for (i64 w = 0; w < lines; w++)                                                                              \
            *(T *)(to + i * ts + w * tw) = *(const T *)(from + i * fs + w * fw);

/* Move lines between memory orders: element i of line w. */
static void move_lines(int item, char *to, i64 ts, i64 tw, const char *from, i64 fs, i64 fw, i64 n, i64 lines)
{
    switch (item) {
    case 1: TRANSPOSE(u8) break;
    case 2: TRANSPOSE(uint16_t) break;
    case 4: TRANSPOSE(u32) break;
    default: TRANSPOSE(u64)
    }
}

static i64 aligned(i64 bytes) { return (bytes + 63) & ~(i64)63; }

static i64 tile_of(const SortArgs *s, int item)
{
    i64 fit = ((i64)1 << 18) / (s->n + 1);
    return s->xs == item || s->n == 1 ? 1 : fit > TILE ? TILE : fit < 1 ? 1 : fit;
}

/* Where a worker's scratch has the keys of a line and two buffers of elements. */
typedef struct {
    i64 keys, a, b, bytes;
    int a_is_indices; /* elements of 8 bytes lie where the positions will */
} Room;

static Room room_of(const SortArgs *s, int item)
{
    i64 element = item == 8 ? 16 : 8, key = item == 8 ? 8 : 4, n = s->n + 64, keys = n * key, a = n * element, b = a;
    Room r = {0};
    if (s->what >= SORT_KTH && s->what != SORT_MODE) {
        a = 0;
        b = spare_keys(s->n) * key;
        b = item == 8 && b < n * 4 ? n * 4 : b; /* narrowed keys */
    } else if ((s->what == SORT_ALL || s->what == SORT_MODE) && item < 8 && s->n > MERGED) {
        keys = 0; /* packed into a before b is written, whose memory they take */
        r.a_is_indices = s->what == SORT_ALL && s->indices && s->is == 8 && s->xs == item;
        a = r.a_is_indices ? 0 : a;
    }
    r.a = keys ? aligned(keys) : 0;
    r.b = r.a + aligned(a);
    r.keys = keys ? 0 : r.b;
    r.bytes = r.b + aligned(b);
    return r;
}

/* Bytes of scratch a worker needs; s->values and s->indices say which results are staged. */
int64_t ISA_NAME(sort_scratch)(const SortArgs *s, int item, int64_t blocks)
{
    i64 tile = tile_of(s, item);
    i64 staged = s->xs == item ? 0 : tile * aligned(s->n * item + 64) + tile * (aligned(s->keep * item + 64) + aligned(s->keep * 8 + 64));
    return room_of(s, item).bytes + aligned(blocks * DIGITS * 4) + staged;
}

static void line_offsets(const SortArgs *s, i64 line, i64 *x, i64 *v, i64 *i)
{
    *x = *v = *i = 0;
    for (int d = s->nd - 1; d >= 0; d--) {
        i64 p = line % s->size[d];
        line /= s->size[d];
        *x += p * s->xo[d];
        *v += p * s->vo[d];
        *i += p * s->io[d];
    }
}

/* Workers [begin, end): each its share of the lines, a tile of neighbours at a time where lines are strided. */
void ISA_NAME(sort_lines)(void *context, int64_t begin, int64_t end)
{
    const SortArgs *s = context;
    static const int items[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
    int item = items[s->dtype];
    const Room room = room_of(s, item);
    i64 tile = tile_of(s, item), inner = s->nd ? s->size[s->nd - 1] : 1;
    i64 x_step = s->nd ? s->xo[s->nd - 1] : 0, v_step = s->nd ? s->vo[s->nd - 1] : 0, i_step = s->nd ? s->io[s->nd - 1] : 0;
    int blocks = s->lines == 1 && s->what == SORT_ALL ? (int)s->workers : 1, strided = s->xs != item;
    for (i64 w = begin; w < end; w++) {
        i64 first = blocks > 1 ? 0 : s->lines * w / s->workers, last = blocks > 1 ? 1 : s->lines * (w + 1) / s->workers;
        char *p = s->scratch + w * s->worker_bytes;
        Line l = {.s = s, .item = item, .blocks = blocks};
        l.counts = (u32 *)(p + room.bytes);
        char *x = (char *)l.counts + aligned(blocks * DIGITS * 4);
        i64 x_line = aligned(s->n * item + 64), v_line = aligned(s->keep * item + 64), i_line = aligned(s->keep * 8 + 64);
        char *v = x + tile * x_line, *i = v + tile * v_line;
        for (i64 line = first; line < last;) {
            i64 xo, vo, io, count = inner - line % inner;
            line_offsets(s, line, &xo, &vo, &io);
            count = count < last - line ? count : last - line;
            count = count < tile ? count : tile;
            int staged = strided && count > 1 && s->what <= SORT_FIRST;
            if (strided)
                move_lines(item, x, item, x_line, s->x + xo, s->xs, x_step, s->n, count);
            for (i64 c = 0; c < count; c++) {
                l.n = s->n;
                l.keys = p + room.keys;
                l.b = p + room.b;
                l.x = strided ? x + c * x_line : s->x + xo;
                l.v = !s->values ? 0 : staged ? v + c * v_line : s->values + vo + c * v_step;
                l.i = !s->indices ? 0 : staged ? i + c * i_line : s->indices + io + c * i_step;
                l.vs = staged ? item : s->vs;
                l.is = staged ? 8 : s->is;
                l.a = room.a_is_indices ? l.i : p + room.a;
                any_line(&l);
            }
            if (staged && s->values)
                move_lines(item, s->values + vo, s->vs, v_step, v, item, v_line, s->keep, count);
            if (staged && s->indices)
                move_lines(8, s->indices + io, s->is, i_step, i, 8, i_line, s->keep, count);
            line += count;
        }
    }
}

/* ---- runs of equals ----------------------------------------------------------------------------------------------- */

#define SAME(x) (x)
#define RUNS(T, LD)                                                                                                  \
    {                                                                                                                \
        const T *x = (const T *)r->x;                                                                                \
        T *v = (T *)r->values;                                                                                       \
        if (!r->inverse && !r->counts) {                                                                             \
            for (i64 i = 0; i + 1 < n; i++) {                                                                        \
                v[m] = x[i];                                                                                         \
                m += LD(x[i + 1]) != LD(x[i]);                                                                       \
            }                                                                                                        \
            v[m++] = x[n - 1];                                                                                       \
            break;                                                                                                   \
        }                                                                                                            \
        i64 start = 0;                                                                                               \
        for (i64 i = 0; i < n; i++) {                                                                                \
            if (i && LD(x[i]) != LD(x[i - 1])) {                                                                     \
                if (r->counts)                                                                                       \
                    r->counts[m] = i - start;                                                                        \
                start = i;                                                                                           \
                m++;                                                                                                 \
            }                                                                                                        \
            if (i == start)                                                                                          \
                v[m] = x[i];                                                                                         \
            if (r->inverse)                                                                                          \
                r->inverse[r->order ? r->order[i] : i] = m;                                                          \
        }                                                                                                            \
        if (r->counts)                                                                                               \
            r->counts[m] = n - start;                                                                                \
        m++;                                                                                                         \
        break;                                                                                                       \
    }

/* The number of runs. Every output has room for n; each NaN is a run of its own. */
int64_t ISA_NAME(sort_runs)(const RunArgs *r)
{
    i64 n = r->n, m = 0;
    if (n == 0)
        return 0;
    switch (r->dtype) {
    case DT_b8:
    case DT_u8:
    case DT_i8: RUNS(u8, SAME)
    case DT_i16: RUNS(i16, SAME)
    case DT_i32: RUNS(i32, SAME)
    case DT_i64: RUNS(i64, SAME)
    case DT_f16: RUNS(f16, ld_f16)
    case DT_bf16: RUNS(bf16, ld_bf16)
    case DT_f32: RUNS(f32, SAME)
    default: RUNS(f64, SAME)
    }
    return m;
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

/* Negative, 0 or positive as row a is before, equal to or after row b. */
static int compare_rows(const RowsArgs *r, i64 a, i64 b)
{
    i64 c = r->c;
    if (r->dtype == DT_i64 || r->dtype == DT_f64) {
        const u64 *p = (const u64 *)r->keys + a * c, *q = (const u64 *)r->keys + b * c;
        for (i64 i = 0; i < c; i++)
            if (p[i] != q[i])
                return p[i] < q[i] ? -1 : 1;
        return 0;
    }
    const u32 *p = (const u32 *)r->keys + a * c, *q = (const u32 *)r->keys + b * c;
    for (i64 i = 0; i < c; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Keys of all rows, and, when `sorted`, a stable merge sort of their numbers. order receives numbers in either case. */
void ISA_NAME(sort_rows)(const RowsArgs *r, int sorted)
{
    u64 low, high;
    u32 *from = r->order, *to = r->spare;
    load_keys(r->dtype, r->x, r->n * r->c, 0, r->keys, &low, &high);
    for (i64 i = 0; i < r->n; i++)
        from[i] = (u32)i;
    for (i64 width = 1; sorted && width < r->n; width *= 2) {
        for (i64 begin = 0; begin < r->n; begin += 2 * width) {
            i64 i = begin, middle = begin + width < r->n ? begin + width : r->n, j = middle;
            i64 end = middle + width < r->n ? middle + width : r->n;
            for (i64 k = begin; k < end; k++)
                to[k] = j == end || (i < middle && compare_rows(r, from[i], from[j]) <= 0) ? from[i++] : from[j++];
        }
        u32 *t = from;
        from = to;
        to = t;
    }
    if (from != r->order)
        memcpy(r->order, from, r->n * sizeof(u32));
}

static int holds_nan(const RowsArgs *r, i64 a)
{
    u64 nan = nan_key(r->dtype);
    for (i64 i = 0; nan && i < r->c; i++)
        if ((r->dtype == DT_f64 ? ((const u64 *)r->keys)[a * r->c + i] : ((const u32 *)r->keys)[a * r->c + i]) == nan)
            return 1;
    return 0;
}

/* Which run of equal rows (no row with a NaN equals another) each ordered row is in; returns the number of runs. starts and inverse hold n numbers. */
int64_t ISA_NAME(sort_row_runs)(const RowsArgs *r, int64_t *starts, int64_t *inverse)
{
    i64 m = -1;
    for (i64 i = 0; i < r->n; i++) {
        if (i == 0 || compare_rows(r, r->order[i], r->order[i - 1]) || holds_nan(r, r->order[i]))
            starts[++m] = i;
        inverse[r->order[i]] = m;
    }
    return m + 1;
}

/* ---- histograms --------------------------------------------------------------------------------------------------- */

void ISA_NAME(sort_bins)(const BinArgs *h)
{
    const double *edges = h->edges;
    i64 bins = h->bins;
    double low = edges[0], high = edges[bins], width = high - low;
    for (i64 i = 0; i < h->n; i++) {
        double x = h->x[i];
        i64 at;
        if (!(x >= low && x <= high)) {
            h->flat[i] = -1;
            continue;
        }
        if (h->uniform) {
            at = (i64)((x - low) * bins / width);
            if (h->adjust) {
                i64 last = at + 1 < bins ? at + 1 : bins - 1;
                for (at = at > 0 ? at - 1 : 0; at < last && x >= edges[at + 1];)
                    at++;
            }
        } else {
            i64 end = bins + 1; /* the first edge beyond x */
            for (at = 0; at < end;) {
                i64 middle = (at + end) / 2;
                if (edges[middle] <= x)
                    at = middle + 1;
                else
                    end = middle;
            }
            at--;
        }
        at = at >= bins ? bins - 1 : at < 0 && bins ? 0 : at; /* a width that overflows gives any number */
        h->flat[i] = h->flat[i] < 0 ? -1 : h->flat[i] * bins + at;
    }
}

/* Count ones (int64), or add up weights (double), at the numbered places; numbers outside of 0 .. bins - 1 count nowhere. Few bins
 * are counted in four tables in turn: in one, a number that repeats would wait for its own last store. */
void ISA_NAME(sort_count)(const i64 *flat, const double *weight, i64 n, i64 bins, void *counts)
{
    enum { FEW = 2048, TABLES = 4, PART = 1 << 30 };
    i64 *total = counts;
    if (weight) {
        for (i64 i = 0; i < n; i++)
            if ((u64)flat[i] < (u64)bins)
                ((double *)counts)[flat[i]] += weight[i];
    } else if (bins > FEW || n < 4 * bins) {
        for (i64 i = 0; i < n; i++)
            if ((u64)flat[i] < (u64)bins)
                total[flat[i]]++;
    } else {
        u32 part[TABLES][FEW + 1]; /* the last for what counts nowhere */
        for (i64 first = 0; first < n; first += PART) {
            i64 end = n - first < PART ? n : first + PART, i = first;
            for (int t = 0; t < TABLES; t++)
                memset(part[t], 0, (size_t)(bins + 1) * sizeof(u32));
            for (; i + TABLES <= end; i += TABLES)
                for (int t = 0; t < TABLES; t++)
                    part[t][(u64)flat[i + t] < (u64)bins ? flat[i + t] : bins]++;
            for (; i < end; i++)
                part[0][(u64)flat[i] < (u64)bins ? flat[i] : bins]++;
            for (i64 b = 0; b < bins; b++)
                total[b] += (i64)part[0][b] + part[1][b] + part[2][b] + part[3][b];
        }
    }
}
