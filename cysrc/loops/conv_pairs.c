/* The kernels of conv_pairs.h. A pair is two neighbouring terms of a sum in the 32 bits of a lane: channels of a pixel for outputs, positions for the
 * gradient of a weight. No bit depends on threads: an item sums in the order of the problem.
 * PAIRS_BY_FMA: the instructions as two FMAs and integer rounding, for tests where there are none.
 * Instruction sets: base, avx512 */
#include "conv_common.h"
#include "conv_pairs.h"

#if VECTOR_BYTES == 64
#include "gemm/pack.h"

typedef int32_t unaligned_pair __attribute__((aligned(2), may_alias));
typedef uint16_t halves_32 __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint16_t halves_16 __attribute__((vector_size(32), aligned(2), may_alias));
typedef vi32 vi32_u __attribute__((aligned(4), may_alias));
enum { PAIRS_WIDE = 32 /* columns of a panel, but for a last one of 16 */, PAIRS_PAIR = 4 /* bytes */ };

#ifdef PAIRS_BY_FMA
#define PAIRS_TARGET
KERNEL_INLINE vf32 pair_dot(vf32 sum, vi32 x, vi32 b) {
    const vi32 high = (vi32){0} + (int)0xffff0000;
    return FMA((vf32)(x & high), (vf32)(b & high), FMA((vf32)(x << 16), (vf32)(b << 16), sum));
}
KERNEL_INLINE __m256i rounded_halves(vf32 v) {
    half to[16];
    f32 from[16];
    memcpy(from, &v, sizeof v);
    f32_to_bf16_block(from, (bf16*)to, 16);
    return _mm256_loadu_si256((const __m256i*)to);
}
#else
#define PAIRS_TARGET __attribute__((target("avx512bf16")))
typedef int16_t pair_lanes __attribute__((vector_size(64)));
KERNEL_INLINE PAIRS_TARGET vf32 pair_dot(vf32 sum, vi32 x, vi32 b) { return __builtin_ia32_dpbf16ps_v16sf(sum, (pair_lanes)x, (pair_lanes)b); }
KERNEL_INLINE PAIRS_TARGET __m256i rounded_halves(vf32 v) { return (__m256i)__builtin_ia32_cvtneps2bf16_v16sf(v); }
#endif

KERNEL_INLINE vi32 splat_pair(int32_t pair) { return (vi32)_mm512_set1_epi32(pair); }
KERNEL_INLINE PAIRS_TARGET void store_halves(half* to, vf32 v, int64_t n) {
    if (n >= 16) _mm256_storeu_si256((__m256i*)to, rounded_halves(v));
    else if (n > 0) _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), rounded_halves(v));
}
/* to[i] = (from[i], from[i + apart]) for i < n, in vectors: up to 31 more are read and written. */
KERNEL_INLINE void interleave_runs(int32_t* to, const half* from, int64_t apart, int64_t n) {
    for (int64_t i = 0; i < n; i += 32) interleave_rows(to + i, (const char*)(from + i), (const char*)(from + i + apart));
}

/* ---- forward ---- */

/* The rows of one tile: positions of the output, whose inputs lie `row` bytes apart. */
typedef struct {
    const char* a;
    int64_t row;
    const int64_t *starts, *places;    /* of the segments, in bytes from a and b */
    int64_t segments, units;           /* whole pairs of a segment; odd: one more element */
    int odd;
    const char* b;
    const vf32* bias;
    half* out;
    int64_t out_row, rows, cols;
} pairs_tile;

/* R - 1 or R rows, of which a missing one is the one before again. Five rows share a pointer: addresses add once or three times the distance of rows. */
KERNEL_INLINE PAIRS_TARGET void pairs_body(const pairs_tile* t, const int R, const int V) {
    vf32 sum[16][2];
    const int64_t row = t->row;
    int64_t triple = 3 * row;
    __asm__("" : "+r"(triple));
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) sum[r][v] = t->bias[v];
    const int64_t last = (t->rows < R ? R - 2 : R - 1) * row;
#define ROW_AT(r) ((r) == R - 1 ? end : (r) < 5 ? p0 + ((r) == 3 ? triple : (r) * row) : (r) < 10 ? p5 + ((r) == 8 ? triple : ((r) - 5) * row) : p10 + ((r) == 13 ? triple : ((r) - 10) * row))
    for (int64_t s = 0; s < t->segments; s++) {
        const vi32* b = (const vi32*)(t->b + t->places[s]);
        const char *p0 = t->a + t->starts[s], *p5 = p0 + 5 * row, *p10 = p5 + 5 * row, *end = p0 + last;
        __asm__("" : "+r"(p5), "+r"(p10), "+r"(end));
        for (int64_t u = 0; u < t->units; u++) {
            const vi32 b0 = b[0], b1 = b[V - 1];
            UNROLL for (int r = 0; r < R; r++) {
                const vi32 x = splat_pair(*(const unaligned_pair*)ROW_AT(r));
                sum[r][0] = pair_dot(sum[r][0], x, b0);
                if (V == 2) sum[r][1] = pair_dot(sum[r][1], x, b1);
            }
            b += V, p0 += 4, p5 += 4, p10 += 4, end += 4;
        }
        if (t->odd) {
            const vi32 b0 = b[0], b1 = b[V - 1];
            UNROLL for (int r = 0; r < R; r++) {
                const vi32 x = splat_pair(*(const half*)ROW_AT(r));
                sum[r][0] = pair_dot(sum[r][0], x, b0);
                if (V == 2) sum[r][1] = pair_dot(sum[r][1], x, b1);
            }
        }
    }
#undef ROW_AT
    UNROLL for (int r = 0; r < R; r++) {
        if (r >= t->rows) break;
        half* to = t->out + r * t->out_row;
        if (V == 2) store_halves(to, sum[r][0], 16);
        store_halves(to + (V - 1) * 16, sum[r][V - 1], t->cols - (V - 1) * 16);
    }
}
#define PAIRS_BODIES(DO) DO(2) DO(4) DO(6) DO(8) DO(10) DO(12) DO(14)
#define DEFINE_BODY(R)                                                                                   \
    KERNEL_ONCE PAIRS_TARGET void pairs_body_##R##_1(const pairs_tile* t) { pairs_body(t, R, 1); }      \
    KERNEL_ONCE PAIRS_TARGET void pairs_body_##R##_2(const pairs_tile* t) { pairs_body(t, R, 2); }
PAIRS_BODIES(DEFINE_BODY)
KERNEL_ONCE PAIRS_TARGET void pairs_body_16_1(const pairs_tile* t) { pairs_body(t, 16, 1); }
#define LIST_BODY(R) {pairs_body_##R##_1, pairs_body_##R##_2},
static void (*const pairs_bodies[9][2])(const pairs_tile*) = {{0}, PAIRS_BODIES(LIST_BODY) {pairs_body_16_1}};

/* How the sum over taps and channels is cut: rows of a kernel where their taps are adjacent, else taps. */
typedef struct {
    int64_t taps, segments, length, units, panels; /* taps of a segment; units of all */
} pairs_sizes;
KERNEL_INLINE pairs_sizes pairs_sizes_of(const conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t taps = s->dilation_w == 1 && work->pass == CONV_FORWARD ? s->kernel_w : 1;
    pairs_sizes z = {taps, conv_taps(s) / taps, taps * s->c_in, 0, conv_blocks(s->c_out, PAIRS_WIDE)};
    z.units = z.segments * ((z.length + 1) / 2);
    return z;
}
/* `count` positions of a line of outputs as tiles. */
KERNEL_INLINE void pairs_line(pairs_tile* t, const half* x, int64_t x_step, half* y, int64_t count) {
    const int wide = t->cols > 16;
    const int64_t tiles = conv_blocks(count, wide ? 14 : 16);
    t->row = x_step * 2;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t begin = count * i / tiles;
        t->rows = count * (i + 1) / tiles - begin;
        t->a = (const char*)(x + begin * x_step);
        t->out = y + begin * t->out_row;
        pairs_bodies[(t->rows + 1) / 2][wide](t);
    }
}
KERNEL_INLINE int pairs_hang_over(const conv_problem* s) {
    return s->pad_h || s->pad_w || (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h >= s->in_h ||
           (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w >= s->in_w;
}
KERNEL_INLINE int pairs_turns_weight(const conv_problem* s) { return conv_taps(s) > 1 && (s->w_tap == 1 || s->w_tap == -1) && s->c_in > 1 && s->c_out > 1; }
KERNEL_INLINE int pairs_copies(const conv_problem* s) { return !s->last || pairs_hang_over(s); }
/* Of the input under a block of outputs. */
KERNEL_INLINE int64_t pairs_copied_bytes(const conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t rows = (work->block - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1, columns = (work->chunk - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1;
    return conv_rounded(rows * columns * s->c_in * 2, 64);
}
static void pairs_plan_forward(conv_work* work) {
    conv_problem* s = &work->s;
    enum { FIT = 32 << 10 /* elements of the input under a block */, LEAST = 56 /* positions in a row of a block */ };
    if (s->last && conv_is_pointwise(s)) { /* one long row */
        s->in_w = s->out_w = s->samples * s->in_h * s->in_w;
        s->samples = s->in_h = s->out_h = 1;
    }
    const pairs_sizes z = pairs_sizes_of(work);
    const int64_t reach_h = (s->kernel_h - 1) * s->dilation_h + 1, reach_w = (s->kernel_w - 1) * s->dilation_w + 1;
    work->chunk = min_i64(s->out_w, max_i64((FIT / (s->c_in * reach_h) - reach_w) / s->stride_w, LEAST));
    work->chunk = conv_blocks(s->out_w, conv_blocks(s->out_w, work->chunk)); /* alike */
    const int64_t row = ((work->chunk - 1) * s->stride_w + reach_w) * s->c_in;
    work->block = max_i64(min_i64((FIT / row - reach_h) / s->stride_h + 1, conv_blocks(s->out_h * s->samples, 8)), 1);
    work->block = min_i64(work->block, s->out_h);
    work->phases = 2;
    work->shared_bytes = z.panels * PAIRS_WIDE * (z.units + 1) * PAIRS_PAIR;
    work->workspace_bytes = pairs_copies(s) ? pairs_copied_bytes(work) : 0;
    if (!s->last) work->workspace_bytes += work->block * work->chunk * PAIRS_WIDE * 2;
    if (pairs_turns_weight(s)) work->workspace_bytes = max_i64(work->workspace_bytes, PAIRS_WIDE * s->c_in * conv_taps(s) * 2);
}
/* shared: panels of weights [segment][pair][16 or 32], and the bias behind all of them. Weights in the order of NCHW, whose taps are adjacent, are turned
 * in the workspace first: to [output][tap][channel], or for the gradient of the input, whose outputs' channels are adjacent but for taps, to [channel][tap][output]. */
static void pairs_pack(const conv_work* work, half* turned, int64_t panel) {
    const conv_problem* s = &work->s;
    const pairs_sizes z = pairs_sizes_of(work);
    const int64_t first = panel * PAIRS_WIDE, count = min_i64(PAIRS_WIDE, s->c_out - first), width = count > 16 ? 32 : 16, taps = z.taps;
    const half* w = (const half*)work->b + s->w_first + first * s->w_out;
    char* to = work->shared + panel * PAIRS_WIDE * z.units * PAIRS_PAIR;
    f32* bias = (f32*)(work->shared + z.panels * PAIRS_WIDE * z.units * PAIRS_PAIR) + first;
    for (int64_t i = 0; i < PAIRS_WIDE; i++) bias[i] = i < count && work->bias ? ((const f32*)work->bias)[first + i] : 0;
    int64_t w_out = s->w_out, w_in = s->w_in, w_tap = s->w_tap;
    if (pairs_turns_weight(s)) {
        const int64_t all = conv_taps(s), lowest = w_tap > 0 ? 0 : 1 - all; /* the first tap in memory */
        const int by_outputs = s->w_in == all;
        const int64_t lines = by_outputs ? count : s->c_in, inner = by_outputs ? s->c_in : count, step = by_outputs ? s->w_out : s->w_in;
        for (int64_t i = 0; i < lines; i++) turn_halves(w + i * step + lowest, all, turned + i * all * inner, inner, inner, all);
        w_tap *= inner, w = turned - lowest * inner;
        w_out = by_outputs ? all * inner : 1, w_in = by_outputs ? 1 : all * inner;
    }
    const int natural = w_in == 1 && w_tap == s->c_in;
    for (int64_t segment = 0; segment < z.segments; segment++, w += taps * w_tap) {
        if (natural || taps == 1) {
            pack_panel(LOAD_PAIR, 0, to, (const char*)w, w_out * 2, w_in * 2, count, count, width, z.length);
            to += (z.length + 1) / 2 * width * PAIRS_PAIR;
        } else if (s->c_in % 2 == 0) {
            for (int64_t tap = 0; tap < taps; tap++, to += s->c_in / 2 * width * PAIRS_PAIR)
                pack_panel(LOAD_PAIR, 0, to, (const char*)(w + tap * w_tap), w_out * 2, w_in * 2, count, count, width, s->c_in);
        } else {
            half* out = (half*)to;
            memset(to, 0, (size_t)((z.length + 1) / 2 * width * PAIRS_PAIR));
            for (int64_t k = 0; k < z.length; k++)
                for (int64_t o = 0; o < count; o++) out[(k / 2 * width + o) * 2 + k % 2] = w[o * w_out + k / s->c_in * w_tap + k % s->c_in * w_in];
            to += (z.length + 1) / 2 * width * PAIRS_PAIR;
        }
    }
}
/* Columns [w, w + cols) of line h of some channels of an image, in channels_last, zero outside it. */
KERNEL_INLINE void pairs_copy_line(const conv_problem* s, const half* image, int64_t h, int64_t w, int64_t cols, int64_t channels, half* to) {
    int64_t lo = 0, hi = cols;
    conv_range(w, 1, s->in_w, &lo, &hi);
    if (h < 0 || h >= s->in_h || hi <= lo) {
        memset(to, 0, (size_t)(cols * channels) * 2);
        return;
    }
    const half* from = image + (h * s->in_w + w + lo) * (s->last ? s->c_in : 1);
    memset(to, 0, (size_t)(lo * channels) * 2);
    memset(to + hi * channels, 0, (size_t)((cols - hi) * channels) * 2);
    if (!s->last) turn_halves(from, s->in_h * s->in_w, to + lo * channels, channels, channels, hi - lo);
    else if (channels == s->c_in) memcpy(to + lo * channels, from, (size_t)((hi - lo) * channels) * 2);
    else
        for (int64_t col = lo; col < hi; col++, from += s->c_in) memcpy(to + col * channels, from, (size_t)channels * 2);
}
static void pairs_forward_item(const conv_work* work, half* copied, int64_t item) {
    half* const sums = copied + (pairs_copies(&work->s) ? pairs_copied_bytes(work) / 2 : 0); /* of a panel, where outputs' planes are apart */
    const conv_problem* s = &work->s;
    const pairs_sizes z = pairs_sizes_of(work);
    const int64_t tiles_w = conv_blocks(s->out_w, work->chunk), tiles_h = conv_blocks(s->out_h, work->block);
    const int64_t ow = item % tiles_w * work->chunk, oh = item / tiles_w % tiles_h * work->block, sample = item / (tiles_w * tiles_h);
    const int64_t cols = min_i64(work->chunk, s->out_w - ow), rows = min_i64(work->block, s->out_h - oh);
    const int64_t reach_h = (s->kernel_h - 1) * s->dilation_h + 1, reach_w = (s->kernel_w - 1) * s->dilation_w + 1;
    int64_t line = s->in_w * s->c_in, starts[PAIRS_SEGMENTS], places[PAIRS_SEGMENTS];
    const half* x = (const half*)work->a + sample * s->in_h * line;
    if (pairs_copies(s)) {
        const int64_t across = (cols - 1) * s->stride_w + reach_w, lines = (rows - 1) * s->stride_h + reach_h;
        for (int64_t i = 0; i < lines; i++) pairs_copy_line(s, x, oh * s->stride_h - s->pad_h + i, ow * s->stride_w - s->pad_w, across, s->c_in, copied + i * across * s->c_in);
        x = copied, line = across * s->c_in;
    } else {
        x += oh * s->stride_h * line + ow * s->stride_w * s->c_in;
    }
    for (int64_t i = 0; i < z.segments; i++)
        starts[i] = z.taps == s->kernel_w ? i * s->dilation_h * line * 2 : (i / s->kernel_w * s->dilation_h * line + i % s->kernel_w * s->dilation_w * s->c_in) * 2;
    pairs_tile t = {.starts = starts, .places = places, .segments = z.segments, .units = z.length / 2, .odd = z.length % 2, .out_row = s->last ? s->c_out : PAIRS_WIDE};
    const char* bias = work->shared + z.panels * PAIRS_WIDE * z.units * PAIRS_PAIR;
    const int64_t pixels = conv_pixels(s), out_line = s->last ? s->out_w : cols; /* in positions */
    half* y = s->last ? (half*)work->out + ((sample * s->out_h + oh) * s->out_w + ow) * s->c_out : sums;
    for (int64_t panel = 0; panel < z.panels; panel++) {
        t.cols = min_i64(PAIRS_WIDE, s->c_out - panel * PAIRS_WIDE);
        t.b = work->shared + panel * PAIRS_WIDE * z.units * PAIRS_PAIR;
        t.bias = (const vf32*)(bias + panel * PAIRS_WIDE * 4);
        for (int64_t i = 0; i < z.segments; i++) places[i] = i * ((z.length + 1) / 2) * (t.cols > 16 ? 128 : 64);
        for (int64_t row = 0; row < rows; row++)
            pairs_line(&t, x + row * s->stride_h * line, s->stride_w * s->c_in, y + row * out_line * t.out_row + (s->last ? panel * PAIRS_WIDE : 0), cols);
        if (s->last) continue;
        half* planes = (half*)work->out + (sample * s->c_out + panel * PAIRS_WIDE) * pixels + oh * s->out_w + ow;
        if (cols == s->out_w) turn_halves(sums, PAIRS_WIDE, planes, pixels, rows * cols, t.cols);
        else
            for (int64_t row = 0; row < rows; row++) turn_halves(sums + row * cols * PAIRS_WIDE, PAIRS_WIDE, planes + row * s->out_w, pixels, cols, t.cols);
    }
}

/* ---- gradient of the input of a strided convolution: inputs of each remainder by the stride are a convolution of stride 1 over the output's gradient, with
 * the taps that meet them. The plan exchanged channels and planes: `in` is the gradient, `out` the input's. An item is (sample, block of rows). ---- */

/* The lines (or columns) of the source that any tap may meet, from that of the result's divided by the stride on. */
KERNEL_INLINE int64_t pairs_offset(int64_t at, int64_t tap, int64_t stride, int64_t pad, int64_t dilation, int* meets) {
    const int64_t from = at + pad - tap * dilation;
    *meets = from % stride == 0;
    return from / stride;
}
static void pairs_reach(int64_t taps, int64_t stride, int64_t pad, int64_t dilation, int64_t* lo, int64_t* hi) {
    int meets;
    *lo = INT64_MAX, *hi = INT64_MIN;
    for (int64_t at = 0; at < stride; at++)
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t offset = pairs_offset(at, tap, stride, pad, dilation, &meets);
            if (meets) *lo = min_i64(*lo, offset), *hi = max_i64(*hi, offset);
        }
}
static void pairs_plan_input(conv_work* work) {
    conv_problem* s = &work->s;
    enum { FIT = 32 << 10 };
    int64_t lo_h, hi_h, lo_w, hi_w;
    const conv_problem r = *s;
    s->c_in = r.c_out, s->in_h = r.out_h, s->in_w = r.out_w, s->w_in = r.w_out;
    s->c_out = r.c_in, s->out_h = r.in_h, s->out_w = r.in_w, s->w_out = r.w_in;
    pairs_reach(s->kernel_h, s->stride_h, s->pad_h, s->dilation_h, &lo_h, &hi_h);
    pairs_reach(s->kernel_w, s->stride_w, s->pad_w, s->dilation_w, &lo_w, &hi_w);
    const pairs_sizes z = pairs_sizes_of(work);
    const int64_t row = (conv_blocks(s->out_w, s->stride_w) + hi_w - lo_w) * s->c_in, rows = conv_blocks(s->out_h, s->stride_h);
    work->block = min_i64(max_i64(min_i64(FIT / row - (hi_h - lo_h), conv_blocks(rows * s->samples, 8)), 1), rows);
    work->phases = 2;
    work->shared_bytes = z.panels * PAIRS_WIDE * (z.units + 1) * PAIRS_PAIR;
    work->workspace_bytes = conv_rounded((work->block + hi_h - lo_h) * row * 2, 64) + (s->last ? 0 : work->block * s->stride_h * s->out_w * PAIRS_WIDE * 2);
    if (pairs_turns_weight(s)) work->workspace_bytes = max_i64(work->workspace_bytes, PAIRS_WIDE * s->c_in * conv_taps(s) * 2);
}
static void pairs_input_item(const conv_work* work, half* copied, int64_t item) {
    const conv_problem* s = &work->s;
    const pairs_sizes z = pairs_sizes_of(work);
    const int64_t all = conv_blocks(s->out_h, s->stride_h), blocks = conv_blocks(all, work->block), sample = item / blocks, first = item % blocks * work->block;
    const int64_t rows = min_i64(work->block, all - first), top = first * s->stride_h, lines = min_i64(rows * s->stride_h, s->out_h - top), pixels = conv_pixels(s), units = (s->c_in + 1) / 2;
    int64_t lo_h, hi_h, lo_w, hi_w, starts[PAIRS_SEGMENTS], places[PAIRS_SEGMENTS];
    pairs_reach(s->kernel_h, s->stride_h, s->pad_h, s->dilation_h, &lo_h, &hi_h);
    pairs_reach(s->kernel_w, s->stride_w, s->pad_w, s->dilation_w, &lo_w, &hi_w);
    const int64_t across = conv_blocks(s->out_w, s->stride_w) + hi_w - lo_w, line = across * s->c_in;
    const half* source = (const half*)work->a + sample * s->in_h * s->in_w * s->c_in;
    for (int64_t i = 0; i < rows + hi_h - lo_h; i++) pairs_copy_line(s, source, first + lo_h + i, lo_w, across, s->c_in, copied + i * line);
    half* sums = copied + conv_rounded((work->block + hi_h - lo_h) * line * 2, 64) / 2;
    const int64_t pixel = s->last ? s->c_out : PAIRS_WIDE;
    pairs_tile t = {.starts = starts, .places = places, .units = s->c_in / 2, .odd = s->c_in % 2, .out_row = s->stride_w * pixel};
    const char* bias = work->shared + z.panels * PAIRS_WIDE * z.units * PAIRS_PAIR;
    for (int64_t panel = 0; panel < z.panels; panel++) {
        half* y = s->last ? (half*)work->out + (sample * pixels + top * s->out_w) * s->c_out + panel * PAIRS_WIDE : sums;
        t.cols = min_i64(PAIRS_WIDE, s->c_out - panel * PAIRS_WIDE);
        t.b = work->shared + panel * PAIRS_WIDE * z.units * PAIRS_PAIR;
        t.bias = (const vf32*)(bias + panel * PAIRS_WIDE * 4);
        for (int64_t a = 0; a < min_i64(s->stride_h, lines); a++)
            for (int64_t b = 0; b < min_i64(s->stride_w, s->out_w); b++) {
                t.segments = 0;
                for (int64_t kh = 0; kh < s->kernel_h; kh++)
                    for (int64_t kw = 0; kw < s->kernel_w; kw++) {
                        int down, right;
                        const int64_t dh = pairs_offset(a, kh, s->stride_h, s->pad_h, s->dilation_h, &down), dw = pairs_offset(b, kw, s->stride_w, s->pad_w, s->dilation_w, &right);
                        if (!down || !right) continue;
                        starts[t.segments] = ((dh - lo_h) * line + (dw - lo_w) * s->c_in) * 2;
                        places[t.segments++] = (kh * s->kernel_w + kw) * units * (t.cols > 16 ? 128 : 64);
                    }
                for (int64_t h = a; h < lines; h += s->stride_h)
                    pairs_line(&t, copied + h / s->stride_h * line, s->c_in, y + (h * s->out_w + b) * pixel, conv_blocks(s->out_w - b, s->stride_w));
            }
        if (!s->last) turn_halves(sums, PAIRS_WIDE, (half*)work->out + (sample * s->c_out + panel * PAIRS_WIDE) * pixels + top * s->out_w, pixels, lines * s->out_w, t.cols);
    }
}

/* ---- gradient of the weight: an item of phase 0 is (block of channels, block of outputs, chunk of rows of all samples), whose sums lie in `shared` as
 * [kernel row][kernel column][channel][output]. The input's lines become pairs of each element with that one step of the stride on, the gradient's of
 * neighbouring positions; kernel elements are rows of tiles, broadcast from the lines where they lie. ---- */

typedef struct {
    int64_t channels, blocks, outs, out_blocks, rows, per_sample, units, chunks, size, width;  /* width: pixels of a line */
} pairs_weight_sizes;
KERNEL_INLINE pairs_weight_sizes pairs_weight_sizes_of(const conv_problem* s) {
    enum { CHANNELS = 64, OF_1X1 = 256, OUTS = 256, BAND = 96 << 10, LEAST = 4 /* rows */, SUMS = 1 << 20, CHUNKS = 16 };
    pairs_weight_sizes z;
    z.blocks = conv_blocks(s->c_in, conv_taps(s) == 1 ? OF_1X1 : CHANNELS);
    z.channels = conv_blocks(s->c_in, z.blocks);
    z.out_blocks = conv_blocks(s->c_out, OUTS);
    z.outs = conv_rounded(conv_blocks(s->c_out, z.out_blocks), PAIRS_WIDE);
    z.out_blocks = conv_blocks(s->c_out, z.outs);
    const int64_t reach_h = (s->kernel_h - 1) * s->dilation_h + 1, reach_w = (s->kernel_w - 1) * s->dilation_w + 1;
    z.width = (s->out_w - 1) * s->stride_w + reach_w;
    const int64_t line = z.width * z.channels * PAIRS_PAIR;
    z.rows = min_i64(max_i64((BAND / line - reach_h) / s->stride_h + 1, LEAST), s->out_h);
    z.per_sample = conv_blocks(s->out_h, z.rows);
    z.rows = conv_blocks(s->out_h, z.per_sample);
    z.units = s->samples * z.per_sample;
    z.size = conv_taps(s) * z.channels * z.outs;
    z.chunks = min_i64(min_i64(conv_blocks(CHUNKS, z.blocks * z.out_blocks), max_i64(SUMS / (z.size * 4), 1)), z.units);
    return z;
}
KERNEL_INLINE int64_t pairs_line_bytes(const pairs_weight_sizes* z, const conv_problem* s) { return conv_rounded((z->width + s->stride_w) * z->channels * 2 + 128, 64); }
KERNEL_INLINE int64_t pairs_band_lines(const pairs_weight_sizes* z, const conv_problem* s) { return (z->rows - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1; }
KERNEL_INLINE int64_t pairs_band_line(const pairs_weight_sizes* z) { return conv_rounded(z->width * z->channels * PAIRS_PAIR, 128); }
static void pairs_plan_weight(conv_work* work) {
    const conv_problem* s = &work->s;
    const pairs_weight_sizes z = pairs_weight_sizes_of(s);
    work->phases = 2;
    work->shared_bytes = z.blocks * z.out_blocks * z.chunks * z.size * 4;
    work->workspace_bytes = max_i64(2 * conv_taps(s) * z.channels * 16 * 2, pairs_line_bytes(&z, s) + pairs_band_lines(&z, s) * pairs_band_line(&z) + 128 + (z.rows * conv_blocks(s->out_w, 2) + 16) * PAIRS_WIDE * PAIRS_PAIR);
}
static int64_t pairs_items_weight(const conv_work* work, int64_t phase) {
    const pairs_weight_sizes z = pairs_weight_sizes_of(&work->s);
    return z.blocks * z.out_blocks * (phase == 0 ? z.chunks : 1);
}
/* sums[r][o] += the products of kernel element a[r] and gradient b[o] over all lines and steps (pairs of positions) */
typedef struct {
    const char* a;
    int64_t step, line;                /* bytes */
    int64_t steps, lines;
    const vi32* b;
    f32* sums;
    int64_t sums_row, rows;
} pairs_outer;
KERNEL_INLINE PAIRS_TARGET void pairs_outer_body(const pairs_outer* t, const int R, const int V) {
    vf32 sum[16][2];
    const vi32* b = t->b;
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) sum[r][v] = (vf32){0};
    for (int64_t line = 0; line < t->lines; line++) {
        const char* a = t->a + line * t->line;
        for (int64_t i = 0; i < t->steps; i++, a += t->step, b += V) {
            const vi32 b0 = b[0], b1 = b[V - 1];
            UNROLL for (int r = 0; r < R; r++) {
                const vi32 x = splat_pair(((const unaligned_pair*)a)[r]);
                sum[r][0] = pair_dot(sum[r][0], x, b0);
                if (V == 2) sum[r][1] = pair_dot(sum[r][1], x, b1);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        if (r >= t->rows) break;
        vf32_u* to = (vf32_u*)(t->sums + r * t->sums_row);
        UNROLL for (int v = 0; v < V; v++) to[v] = (vf32)to[v] + sum[r][v];
    }
}
#define DEFINE_OUTER(R)                                                                                       \
    KERNEL_ONCE PAIRS_TARGET void pairs_outer_##R##_1(const pairs_outer* t) { pairs_outer_body(t, R, 1); }   \
    KERNEL_ONCE PAIRS_TARGET void pairs_outer_##R##_2(const pairs_outer* t) { pairs_outer_body(t, R, 2); }
PAIRS_BODIES(DEFINE_OUTER)
KERNEL_ONCE PAIRS_TARGET void pairs_outer_16_1(const pairs_outer* t) { pairs_outer_body(t, 16, 1); }
#define LIST_OUTER(R) {pairs_outer_##R##_1, pairs_outer_##R##_2},
static void (*const pairs_outers[9][2])(const pairs_outer*) = {{0}, PAIRS_BODIES(LIST_OUTER) {pairs_outer_16_1}};

/* Pairs of neighbouring positions of a line of the gradient, 16 or 32 outputs of them. */
static void pairs_of_planes(const half* dy, int64_t plane, int64_t positions, int64_t count, vi32* to) {
    uint32_t square[16 * 16] __attribute__((aligned(64)));
    const int vectors = count > 16 ? 2 : 1;
    for (int64_t o = 0; o < count; o += 16)
        for (int64_t p = 0; p < positions; p += 32) {
            const int64_t left = min_i64(positions - p, 32), outs = min_i64(16, count - o);
            const __mmask32 mask = left == 32 ? 0xffffffffu : (__mmask32)((1u << left) - 1);
            for (int64_t i = 0; i < outs; i++) _mm512_store_si512(square + i * 16, _mm512_maskz_loadu_epi16(mask, dy + (o + i) * plane + p));
            if (outs < 16) memset(square + outs * 16, 0, (size_t)(16 - outs) * 64);
            transpose_units_4(square, 16, (uint32_t*)(to + p / 2 * vectors + o / 16), 16 * vectors, (left + 1) / 2);
        }
}
static void pairs_of_gradient(const half* dy, int64_t c_out, int64_t positions, int64_t count, vi32* to) {
    const int wide = count > 16;
    const __mmask32 mask = count >= 32 ? 0xffffffffu : (__mmask32)((1u << count) - 1);
    for (int64_t p = 0; p < positions; p += 2, dy += 2 * c_out) {
        const __m512i first = _mm512_maskz_loadu_epi16(mask, dy), second = p + 1 < positions ? _mm512_maskz_loadu_epi16(mask, dy + c_out) : _mm512_setzero_si512();
        vi32 out[2];
        interleave_rows(out, (const char*)&first, (const char*)&second);
        *to++ = out[0];
        if (wide) *to++ = out[1];
    }
}
static void pairs_weight_item(const conv_work* work, char* workspace, int64_t item) {
    const conv_problem* s = &work->s;
    const pairs_weight_sizes z = pairs_weight_sizes_of(s);
    const int64_t chunk = item % z.chunks, block = item / z.chunks, o0 = block % z.out_blocks * z.outs, i0 = block / z.out_blocks * z.channels;
    const int64_t channels = min_i64(z.channels, s->c_in - i0), outs = min_i64(z.outs, s->c_out - o0);
    const int64_t begin = z.units * chunk / z.chunks, end = z.units * (chunk + 1) / z.chunks, line = pairs_band_line(&z);
    half* copied = (half*)workspace;
    char* band = workspace + pairs_line_bytes(&z, s);
    vi32* gradient = (vi32*)(band + conv_rounded(pairs_band_lines(&z, s) * line + 128, 64));
    f32* sums = (f32*)work->shared + item * z.size;
    const int joined = s->dilation_w == 1;
    const int64_t pixels = conv_pixels(s);
    const int64_t runs = joined ? 1 : s->kernel_w, length = joined ? s->kernel_w * channels : channels, steps = conv_blocks(s->out_w, 2);
    memset(sums, 0, (size_t)z.size * 4);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t sample = unit / z.per_sample, oh = unit % z.per_sample * z.rows, rows = min_i64(z.rows, s->out_h - oh);
        const half* x = (const half*)work->b + sample * s->in_h * s->in_w * s->c_in + i0 * (s->last ? 1 : s->in_h * s->in_w);
        const half* dy = (const half*)work->a + (s->last ? (sample * pixels + oh * s->out_w) * s->c_out + o0 : (sample * s->c_out + o0) * pixels + oh * s->out_w);
        const int64_t lines = (rows - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1;
        if (rows <= 0) continue;
        for (int64_t i = 0; i < lines; i++) {
            pairs_copy_line(s, x, oh * s->stride_h - s->pad_h + i, -s->pad_w, z.width + s->stride_w, channels, copied);
            interleave_runs((int32_t*)(band + i * line), copied, s->stride_w * channels, z.width * channels);
        }
        for (int64_t o = 0; o < outs; o += PAIRS_WIDE) {
            const int64_t count = min_i64(PAIRS_WIDE, outs - o);
            const int wide = count > 16;
            for (int64_t r = 0; r < rows; r++) {
                if (s->last) pairs_of_gradient(dy + r * s->out_w * s->c_out + o, s->c_out, s->out_w, count, gradient + r * steps * (1 + wide));
                else pairs_of_planes(dy + o * pixels + r * s->out_w, pixels, s->out_w, count, gradient + r * steps * (1 + wide));
            }
            pairs_outer t = {.step = 2 * s->stride_w * channels * PAIRS_PAIR, .line = s->stride_h * line, .steps = steps, .lines = rows, .b = gradient, .sums_row = z.outs};
            const int64_t tiles = conv_blocks(length, wide ? 14 : 16);
            for (int64_t kh = 0; kh < s->kernel_h; kh++)
                for (int64_t run = 0; run < runs; run++)
                    for (int64_t i = 0; i < tiles; i++) {
                        const int64_t first = length * i / tiles;
                        t.rows = length * (i + 1) / tiles - first;
                        t.a = band + kh * s->dilation_h * line + (run * s->dilation_w * channels + first) * PAIRS_PAIR;
                        t.sums = sums + (kh * s->kernel_w * channels + run * channels + first) * z.outs + o;
                        pairs_outers[(t.rows + 1) / 2][wide](&t);
                    }
        }
    }
}
/* The sum over chunks, rounded, [tap][channel][output] to [output][tap][channel] or, in the order of NCHW, [output][channel][tap]. */
static PAIRS_TARGET void pairs_weight_sum(const conv_work* work, char* workspace, int64_t item) {
    const conv_problem* s = &work->s;
    const pairs_weight_sizes z = pairs_weight_sizes_of(s);
    const int64_t o0 = item % z.out_blocks * z.outs, i0 = item / z.out_blocks * z.channels, channels = min_i64(z.channels, s->c_in - i0), outs = min_i64(z.outs, s->c_out - o0), taps = conv_taps(s);
    f32* sums = (f32*)work->shared + item * z.chunks * z.size;
    half *dw = (half*)work->out + s->w_first + o0 * s->w_out + i0 * s->w_in, *rounded = (half*)workspace, *turned = rounded + taps * channels * 16;
    for (int64_t chunk = 1; chunk < z.chunks; chunk++)
        for (int64_t i = 0; i < taps * channels * z.outs; i++) sums[i] += sums[chunk * z.size + i];
    for (int64_t o = 0; o < outs; o += 16) {
        const int64_t count = min_i64(16, outs - o);
        for (int64_t i = 0; i < taps * channels; i++) store_halves(rounded + i * 16, *(const vf32_u*)(sums + i * z.outs + o), 16);
        if (s->w_in == 1) {
            for (int64_t tap = 0; tap < taps; tap++) turn_halves(rounded + tap * channels * 16, 16, dw + o * s->w_out + tap * s->w_tap, s->w_out, channels, count);
            continue;
        }
        turn_halves(rounded, 16, turned, taps * channels, taps * channels, count);
        for (int64_t i = 0; i < count; i++) turn_halves(turned + i * taps * channels, channels, dw + (o + i) * s->w_out, taps, taps, channels);
    }
}

static void pairs_plan(conv_work* work) {
    if (work->pass == CONV_INPUT && conv_is_reversible(&work->s)) work->s = conv_reversed(&work->s), work->pass = CONV_FORWARD;
    if (work->pass == CONV_FORWARD) pairs_plan_forward(work);
    else if (work->pass == CONV_INPUT) pairs_plan_input(work);
    else pairs_plan_weight(work);
}
static int64_t pairs_items(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (work->pass == CONV_WEIGHT) return pairs_items_weight(work, phase);
    if (phase == 0) return conv_blocks(s->c_out, PAIRS_WIDE);
    if (work->pass == CONV_INPUT) return s->samples * conv_blocks(conv_blocks(s->out_h, s->stride_h), work->block);
    return s->samples * conv_blocks(s->out_h, work->block) * conv_blocks(s->out_w, work->chunk);
}
static void pairs_run(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (work->pass == CONV_WEIGHT && phase == 0) pairs_weight_item(work, workspace, item);
        else if (work->pass == CONV_WEIGHT) pairs_weight_sum(work, workspace, item);
        else if (phase == 0) pairs_pack(work, (half*)workspace, item);
        else if (work->pass == CONV_INPUT) pairs_input_item(work, (half*)workspace, item);
        else pairs_forward_item(work, (half*)workspace, item);
    }
}
const conv_pairs_table ISA_NAME(trt_conv_pairs) = {pairs_plan, pairs_items, pairs_run};
#else
const conv_pairs_table ISA_NAME(trt_conv_pairs) = {0};
#endif
