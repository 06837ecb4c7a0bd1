/* The packed GEMM (gemm/gemm.h): kernels per type, their blocking, epilogue and tasks. Compiled once per instruction set. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../core/isa.h"
#include "kernel_base.h"
#include "gemm/gemm.h"
#include "gemm/pack.h"

#define JOIN_NAMES(a, b) a##b
#define JOIN_EXPANDED(a, b) JOIN_NAMES(a, b)

/* Registers: the sums, two vectors of B, one unit of A. */
#if VECTOR_BYTES == 64
enum { GEMM_HEIGHT = 14 };
#define GEMM_HEIGHTS(DO) DO(2) DO(4) DO(6) DO(8) DO(10) DO(12) DO(14)
#else
enum { GEMM_HEIGHT = 6 };
#define GEMM_HEIGHTS(DO) DO(2) DO(4) DO(6)
#endif
enum {
    PANEL_AHEAD = 2048,           /* bytes of a panel of B that are fetched ahead from L2 */
    DEPTH_BYTES = VECTOR_BYTES == 32 ? 4096 : 2048, /* of a line of A in a block of the depth: a packed panel of A (24 KB with AVX2) stays in L1 */
    PANEL_BYTES = DEPTH_BYTES * (GEMM_HEIGHT + 2) + PANEL_SLACK, /* + 2: by steps of the depth, whole vectors */
    FAR_APART = 1024, GROUP = VECTOR_BYTES == 64 ? 4 : 8, /* bytes between steps of the depth of A from which on that many of its panels are packed at once */
    PACKED_BYTES = 4 << 20,       /* of B that are packed at once */
    PACKED_FOR_FEW = 1 << 20, FEW_PANELS = 20,
    COLUMN_TASK = 512,            /* columns of a task: their panels of one block of the depth stay in L2 */
    SCRATCH_COLUMNS = 256, SCRATCH_ROWS = 128, /* of a task whose partial sums do not fit C's type */
    PACKED_ROWS = 32,
    TILE_DEPTH = 384, TILE_COLUMN_TASK = 1024, TILE_SCRATCH_COLUMNS = 512, TILE_SCRATCH_ROWS = 256, /* of tiles: two panels of 24 KB stay in L1 */
    SPLIT_BLOCK = 256, SPLIT_GROUP = 8, SPLIT_PANEL_BYTES = SPLIT_BLOCK * 32 * 2 * 2, /* of parts: elements of the depth; panels of A in L2, past which B's go; 32 rows of two parts */
};

/* One tile of C at work. Sums between blocks of the depth lie at `partial`, in C itself where its type is theirs. */
typedef struct gemm_tile {
    const char *a, *b;            /* panels */
    int64_t a_row, a_step;        /* bytes from row to row and step to step, for tiles, which take A where it lies as well */
    int64_t units;                /* of the depth */
    const char* ahead;            /* rows of A that are fetched meanwhile */
    int64_t ahead_row, ahead_rows, ahead_bytes;
    char* partial;
    int64_t partial_row;          /* bytes */
    int rows, cols;
    int first, last;              /* block of the depth */
    int added;                    /* C, which the sums are added to, is the addend */
    int whole;                    /* the sums are stored or added as they are, in whole vectors */
    char* direct;                 /* not NULL: C's elements are the rounded sums, in whole vectors */
    int64_t direct_row;           /* bytes */
    const gemm_matrices* g;
    int64_t row, column;          /* in C */
    void (*finish)(const void* tile, const char* sums, int64_t sums_row);
} gemm_tile;
enum { PANEL_BY_LINES, PANEL_BY_STEPS, PANEL_IN_PLACE }; /* how a body finds the rows of A */
typedef void (*gemm_bodies[2])(const gemm_tile* t); /* of one vector of columns, and of two */

#define KERNEL f32
#define SUM f32
#define OPERAND f32
#define BROADCAST(x) splat_f32(x)
#define DOT(sum, x, b) FMA(x, b, sum)
#define TARGET
#if VECTOR_BYTES >= 32
#define BY_STEPS
#endif
#if VECTOR_BYTES == 32
#define IN_PLACE
#endif
#include "gemm/micro.h"

#define KERNEL f64
#define SUM f64
#define OPERAND f64
#define BROADCAST(x) splat_f64(x)
#define DOT(sum, x, b) FMA(x, b, sum)
#define TARGET
#if VECTOR_BYTES >= 32
#define BY_STEPS
#endif
#if VECTOR_BYTES == 32
#define IN_PLACE
#endif
#include "gemm/micro.h"

/* modulo 2^64; elements are packed as the bits they are */
typedef i64 vi64_u __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
#define KERNEL i64
#define SUM i64
#define OPERAND i64
#define BROADCAST(x) ((vi64){0} + (x))
#define DOT(sum, x, b) ((sum) + (x) * (b))
#define TARGET
#include "gemm/micro.h"

#if VECTOR_BYTES == 64
#include "gemm/tiles.h"

/* pairs of bfloat16, summed in float32 by an instruction that newer processors of this set have */
typedef int16_t bf16_pairs __attribute__((vector_size(64)));
#define KERNEL bf16
#define SUM f32
#define OPERAND i32
#define BROADCAST(x) ((vi32){0} + (x))
#define DOT(sum, x, b) bf16_dot(sum, (vi32)(x), (vi32)(b))
#define TARGET __attribute__((target("avx512bf16")))
#define STORE_RESULT(to, v) (*(bf16_results*)(to) = __builtin_ia32_cvtneps2bf16_v16sf(v))
KERNEL_INLINE TARGET vf32 bf16_dot(vf32 sum, vi32 x, vi32 b) { return __builtin_ia32_dpbf16ps_v16sf(sum, (bf16_pairs)x, (bf16_pairs)b); }
#include "gemm/micro.h"

#include "gemm/tiles.h"
/* Sums between blocks of the depth are loaded and stored as tiles; after the last one they pass through L1 into C's type, a row of 16 or 32
   at a time, with the addend that most products have: a vector, or elements of C's type in rows. */
/* `rows` rows of sums into C's at `to`, with those of D; row strides in bytes. */
KERNEL_INLINE TILES_TARGET void store_rows(char* to, int64_t to_row, const char* sums, int64_t sums_row, const char* d, int64_t d_row, int rows, const int wide,
                                           const int added, const int relu) {
    const vf32 zero = {0};
    for (int r = 0; r < rows; r++) {
        vf32 low = *(const vf32*)(sums + r * sums_row), high = wide ? *(const vf32*)(sums + r * sums_row + 64) : zero;
        if (added) {
            low += widen_bf16(d + r * d_row);
            if (wide) high += widen_bf16(d + r * d_row + 32);
        }
        if (relu) low = (vf32)((vi32)low & ~(low < zero)), high = (vf32)((vi32)high & ~(high < zero));
        store_bf16_row(to + r * to_row, low, high, wide);
    }
}
TILES_TARGET static void body_tiles(const gemm_tile* t) {
    vf32 summed[2 * TILE_SIDE][2], turned[2 * TILE_SIDE][2];
    const gemm_matrices* g = t->g;
    const int tall = t->rows > TILE_SIDE, wide = t->cols > TILE_SIDE, first = t->first, last = t->last;
    char* sums = t->partial;
    int64_t sums_row = t->partial_row;
    if (first && last) sums = (char*)summed, sums_row = sizeof summed[0];
    tile_sums(t->a, t->a_row, t->a_step, t->b, t->units / TILE_STEP, sums, sums_row, tall, wide, !first);
    if (!last) return;
    if (t->direct) {
        const int added = g->d != NULL, relu = g->activation == GEMM_RELU, columns = g->ccs != 1;
        const char* d = added ? g->d + (t->row * g->drs + t->column * g->dcs) * 2 : NULL;
        if (columns) {
            for (int r = 0; r < (tall ? 32 : 16); r += 16)
                for (int j = 0; j < (wide ? 32 : 16); j += 16) transpose_units_4((const uint32_t*)(sums + r * sums_row) + j, sums_row / 4, (uint32_t*)turned[j] + r, 32, 16);
            if (tall && !added && !relu) store_rows(t->direct, t->direct_row, (const char*)turned, sizeof turned[0], d, 0, t->cols, 1, 0, 0);
            else store_rows(t->direct, t->direct_row, (const char*)turned, sizeof turned[0], d, g->dcs * 2, t->cols, tall, added, relu);
        } else if (wide && !relu) {
            if (added) store_rows(t->direct, t->direct_row, sums, sums_row, d, g->drs * 2, t->rows, 1, 1, 0);
            else store_rows(t->direct, t->direct_row, sums, sums_row, d, 0, t->rows, 1, 0, 0);
        } else {
            store_rows(t->direct, t->direct_row, sums, sums_row, d, g->drs * 2, t->rows, wide, added, relu);
        }
        return;
    }
    gemm_tile whole = *t;
    whole.first = 1;
    t->finish(&whole, sums, sums_row);
}
static const gemm_bodies bodies_tiles[] = {{body_tiles, body_tiles}};

#include "gemm/split.h"
#endif

/* ---- epilogues: alpha times the sums, the addend, the activation, C's type ---- */

#define ADD_SCALED_f32(x, beta, y) FMA(beta, y, x)
#define ADD_SCALED_f64(x, beta, y) FMA(beta, y, x)
#define ADD_SCALED_i64(x, beta, y) ((x) + (beta) * (y))
#define DEFINE_FINISH(T, SUM, SCALE)                                                                                                \
    KERNEL_INLINE void finish_row_##T(const gemm_tile* t, int64_t r, const SUM* s, int64_t n) {                              \
        const gemm_matrices* g = t->g;                                                                                       \
        const int64_t item = sizeof(T);                                                                                      \
        SUM x[2 * VECTOR_BYTES / sizeof(SUM)], y[2 * VECTOR_BYTES / sizeof(SUM)];                                            \
        const SUM alpha = (SUM)g->SCALE##alpha, beta = (SUM)g->SCALE##beta;                                                  \
        SUM* partial = (SUM*)(t->partial + r * t->partial_row);                                                              \
        if (t->first) for (int64_t j = 0; j < n; j++) x[j] = s[j];                                                           \
        else for (int64_t j = 0; j < n; j++) x[j] = partial[j] + s[j];                                                       \
        if (!t->last) {                                                                                                      \
            memcpy(partial, x, sizeof(SUM) * n);                                                                             \
            return;                                                                                                          \
        }                                                                                                                    \
        if (alpha != 1) for (int64_t j = 0; j < n; j++) x[j] *= alpha;                                                       \
        if (g->d && !t->added) {                                                                                             \
            const char* d = g->d + ((t->row + r) * g->drs + t->column * g->dcs) * item;                                      \
            if (g->dcs == 1) for (int64_t j = 0; j < n; j++) y[j] = load_##T(d + j * item);                                  \
            else for (int64_t j = 0; j < n; j++) y[j] = load_##T(d + j * g->dcs * item);                                     \
            for (int64_t j = 0; j < n; j++) x[j] = ADD_SCALED_##SUM(x[j], beta, y[j]);                                       \
        }                                                                                                                    \
        if (g->activation == GEMM_RELU) for (int64_t j = 0; j < n; j++) x[j] = x[j] < 0 ? 0 : x[j];                          \
        char* c = g->c + ((t->row + r) * g->crs + t->column * g->ccs) * item;                                                \
        if (g->ccs == 1) for (int64_t j = 0; j < n; j++) store_##T(c + j * item, x[j]);                                      \
        else for (int64_t j = 0; j < n; j++) store_##T(c + j * g->ccs * item, x[j]);                                         \
    }                                                                                                                        \
    /* whole rows have a constant length, for which loops become vectors */                                                  \
    static void finish_##T(const void* tile, const char* sums, int64_t sums_row) {                                           \
        enum { WHOLE = 2 * VECTOR_BYTES / sizeof(SUM) };                                                                     \
        const gemm_tile* t = tile;                                                                                           \
        if (t->cols == WHOLE) for (int64_t r = 0; r < t->rows; r++) finish_row_##T(t, r, (const SUM*)(sums + r * sums_row), WHOLE); \
        else for (int64_t r = 0; r < t->rows; r++) finish_row_##T(t, r, (const SUM*)(sums + r * sums_row), t->cols);         \
    }
KERNEL_INLINE i64 load_i64(const char* p) { return *(const i64*)p; }
KERNEL_INLINE void store_i64(char* p, i64 v) { *(i64*)p = v; }
DEFINE_FINISH(f32, f32, )
DEFINE_FINISH(f64, f64, )
DEFINE_FINISH(bf16, f32, )
DEFINE_FINISH(f16, f32, )
DEFINE_FINISH(i64, i64, integer_)

#if VECTOR_BYTES >= 32 /* without gain before */
#define STEPPED(kernel) bodies_by_steps_##kernel
#else
#define STEPPED(kernel) NULL
#endif
#if VECTOR_BYTES == 32 /* more rows than six want more pointers than there are registers */
#define IN_PLACE(kernel) bodies_in_place_##kernel
#else
#define IN_PLACE(kernel) NULL
#endif
enum { WIDTH = 2 * VECTOR_BYTES / 4, WIDTH_F64 = 2 * VECTOR_BYTES / 8 };
static const gemm_kernel kernel_f32 = {GEMM_F32, LOAD_F32, 4, 1, 4, 4, GEMM_HEIGHT, WIDTH, DEPTH_BYTES / 4, bodies_f32, finish_f32, 0, STEPPED(f32), IN_PLACE(f32)};
static const gemm_kernel kernel_f64 = {GEMM_F64, LOAD_F64, 8, 1, 8, 8, GEMM_HEIGHT, WIDTH_F64, DEPTH_BYTES / 8, bodies_f64, finish_f64, 0, STEPPED(f64), IN_PLACE(f64)};
static const gemm_kernel kernel_bf16 = {GEMM_BF16, LOAD_BF16, 2, 1, 4, 4, GEMM_HEIGHT, WIDTH, DEPTH_BYTES / 4, bodies_f32, finish_bf16};
static const gemm_kernel kernel_f16 = {GEMM_F16, LOAD_F16, 2, 1, 4, 4, GEMM_HEIGHT, WIDTH, DEPTH_BYTES / 4, bodies_f32, finish_f16};
static const gemm_kernel kernel_i64 = {GEMM_I64, LOAD_F64, 8, 1, 8, 8, GEMM_HEIGHT, WIDTH_F64, DEPTH_BYTES / 8, bodies_i64, finish_i64};
#if VECTOR_BYTES == 64
static const gemm_kernel kernel_bf16_pairs = {GEMM_BF16, LOAD_PAIR, 2, 2, 4, 4, GEMM_HEIGHT, WIDTH, DEPTH_BYTES / 2, bodies_bf16, finish_bf16};
static const gemm_kernel kernel_bf16_tiles = {GEMM_BF16, LOAD_PAIR, 2, 2, 4, 4, 2 * TILE_SIDE, 2 * TILE_SIDE, TILE_DEPTH, bodies_tiles, finish_bf16, TILE_STEP};
static const gemm_kernel kernel_f16_split = {GEMM_F16, LOAD_F16, 2, 2, 2 * 4, 4, 2 * TILE_SIDE, 2 * TILE_SIDE, SPLIT_BLOCK, NULL, finish_f16, TILE_STEP, NULL, NULL, 2};
static const gemm_kernel kernel_f32_split = {GEMM_F32, LOAD_F32, 4, 2, 2 * 4, 4, 2 * TILE_SIDE, 2 * TILE_SIDE, SPLIT_BLOCK, NULL, finish_f32, TILE_STEP, NULL, NULL, 2};
static const gemm_kernel kernel_f32_rounded = {GEMM_F32, LOAD_F32, 4, 2, 4, 4, 2 * TILE_SIDE, 2 * TILE_SIDE, SPLIT_BLOCK, NULL, finish_f32, TILE_STEP, NULL, NULL, 1};
#endif

/* ---- panels of rows: the last two share what would leave the last one low, but for tiles, half of which may be absent ---- */

static inline int64_t row_panels_of(int64_t m, int64_t height) { return (m + height - 1) / height; }
static inline int64_t row_panel_begin(int64_t m, int64_t height, int64_t i) {
    const int64_t panels = row_panels_of(m, height), rest = m % height;
    if (i >= panels) return m;
    if (i == panels - 1 && panels > 1 && height <= GEMM_HEIGHT && rest && rest <= height / 2) return (i - 1) * height + (height + rest + 2) / 4 * 2;
    return i * height;
}

KERNEL_INLINE int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
/* of a packed depth: whole steps, filled up with zeros */
KERNEL_INLINE int64_t units_of(const gemm_kernel* K, int64_t depth) {
    const int64_t units = (depth + K->group - 1) / K->group;
    return K->step ? round_up(units, K->step) : units;
}

/* Whether C cannot hold sums between blocks of the depth: for its type, its strides, or because it is the addend. */
static inline int sums_lie_apart(const gemm_plan* p) {
    const gemm_matrices* g = &p->g;
    return p->depth_blocks > 1 && (p->kernel->element != p->kernel->sum || g->ccs != 1 || (g->d == g->c && (g->beta != 1 || g->alpha != 1)));
}

static inline int64_t ranges_bytes(const gemm_plan* p) { return p->column_block / p->kernel->width * p->blocks_at_once * (int64_t)sizeof(gemm_range); }

static void gemm_make_plan(gemm_plan* p, const gemm_kernel* K, const gemm_matrices* given, int threads) {
    gemm_matrices g = *given;
    /* the transposed GEMM's C has adjacent columns; where both operands' depth is adjacent, tiles pack the smaller one by transposition */
    if (g.ccs != 1 || (K->step && !K->parts && g.acs == 1 && g.brs == 1 && g.crs != 1 && g.n >= 2 * g.m && g.k > 1)) {
        g.m = given->n, g.n = given->m, g.a = given->b, g.b = given->a;
        g.ars = given->bcs, g.acs = given->brs, g.brs = given->acs, g.bcs = given->ars;
        g.crs = given->ccs, g.ccs = given->crs, g.drs = given->dcs, g.dcs = given->drs;
    }
    /* minus the product is that of minus A, which is packed anyway */
    p->negated = g.alpha == -1 && (K == &kernel_f32 || K == &kernel_f64);
    if (p->negated) g.alpha = 1;
    p->g = g;
    p->kernel = K;
    p->by_steps = K->bodies_by_steps && g.ars == 1 && g.acs != 1;
    p->depth_blocks = max_i64((g.k + K->depth - 1) / K->depth, 1);
    p->depth_block = round_up(max_i64((g.k + p->depth_blocks - 1) / p->depth_blocks, 1), K->group * max_i64(K->step, 1));
    const int64_t column_bytes = p->depth_blocks * units_of(K, p->depth_block) * K->unit;
    /* for few rows, what is packed is used at once, and stays in L2 until then */
    const int64_t bytes = g.m <= FEW_PANELS * K->height ? PACKED_FOR_FEW : PACKED_BYTES, blocks = max_i64((g.n * column_bytes + bytes - 1) / bytes, 1);
    p->column_block = round_up(max_i64((g.n + blocks - 1) / blocks, 4 * K->width), K->width);
    if (p->column_block > g.n) p->column_block = round_up(g.n, K->width);
    p->packed_bytes = p->column_block * column_bytes;
    p->blocks_at_once = p->depth_blocks;
    /* a deep B in blocks of few columns would have A packed for each: a part of the depth of many columns, where C can hold the sums meanwhile */
    const int64_t wanted = min_i64(round_up(g.n, K->width), COLUMN_TASK);
    if (p->depth_blocks > 1 && p->column_block < wanted && !sums_lie_apart(p)) {
        const int64_t block_bytes = units_of(K, p->depth_block) * K->unit, parts = (g.n + wanted - 1) / wanted;
        p->column_block = round_up((g.n + parts - 1) / parts, K->width);
        p->blocks_at_once = min_i64(max_i64(bytes / (p->column_block * block_bytes), 1), p->depth_blocks);
        p->packed_bytes = p->column_block * block_bytes * p->blocks_at_once;
    }
    if (K->parts) p->packed_bytes += ranges_bytes(p);
    p->columns = 0;
    p->row_panels = row_panels_of(g.m, K->height);
    p->column_tasks = 1;
    const int64_t panels = p->column_block / K->width;
    while (threads > 1 && p->row_panels * p->column_tasks < 4 * threads && p->column_tasks * 2 <= panels) p->column_tasks *= 2;
    p->failed = 0;
}

static inline int64_t block_depth(const gemm_plan* p, int64_t block) { return min_i64(p->depth_block, p->g.k - block * p->depth_block); }
/* The next columns and blocks of the depth; whether there are any. */
static int gemm_next(gemm_plan* p) {
    if (!p->columns) p->column = p->block = 0;
    else if ((p->block += p->blocks) >= p->depth_blocks) p->block = 0, p->column += p->columns;
    p->columns = min_i64(p->column_block, p->g.n - p->column);
    p->blocks = min_i64(p->blocks_at_once, p->depth_blocks - p->block);
    return p->columns > 0;
}

/* Packed B: its panels one after the other, block of the depth by block. */
static inline char* packed_panel(const gemm_plan* p, int64_t block, int64_t panel) {
    const gemm_kernel* K = p->kernel;
    const int64_t full = units_of(K, p->depth_block) * K->unit, columns = round_up(p->columns, K->width);
    return p->packed + (block - p->block) * full * columns + panel * units_of(K, block_depth(p, block)) * K->unit * K->width;
}

static inline gemm_range* packed_range(const gemm_plan* p, int64_t block, int64_t panel) {
    gemm_range* ranges = (gemm_range*)(p->packed + p->packed_bytes - ranges_bytes(p));
    return ranges + (block - p->block) * (p->column_block / p->kernel->width) + panel;
}

static void pack_one(const gemm_kernel* K, int by_line, char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t available, int64_t width,
                     int64_t depth) {
#define PACK(load)                                                                                                           \
    case load: by_line ? pack_panel(load, 1, to, from, ls, ds, lines, available, width, depth) : pack_panel(load, 0, to, from, ls, ds, lines, available, width, depth); break
    switch (K->load) {
        PACK(LOAD_F32);
        PACK(LOAD_F64);
        PACK(LOAD_BF16);
        PACK(LOAD_F16);
        PACK(LOAD_PAIR);
    }
#undef PACK
    const int64_t units = (depth + K->group - 1) / K->group;
    if (!by_line) memset(to + units * width * K->unit, 0, (units_of(K, depth) - units) * width * K->unit);
}

#if VECTOR_BYTES == 64
/* [float16, float32, float32 rounded][exact] */
static void (*const split_rows[3][2])(char*, const char*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, gemm_range*) = {
    {split_f16_rows, split_f16_exactly_rows}, {split_f32_rows, split_f32_exactly_rows}, {round_f32_rows, round_f32_exactly_rows}};
static void (*const split_columns[3][2])(char*, const char*, int64_t, int64_t, int64_t, int64_t, gemm_range*) = {
    {split_f16_columns, split_f16_exactly_columns}, {split_f32_columns, split_f32_exactly_columns}, {round_f32_columns, round_f32_exactly_columns}};
static inline int split_kind(const gemm_kernel* K) { return K->type == GEMM_F16 ? 0 : K->parts == 2 ? 1 : 2; }
static inline void split_panel_columns(const gemm_plan* p, int exact, char* to, const char* from, int64_t lines, int64_t depth, gemm_range* range) {
    const gemm_kernel* K = p->kernel;
    split_columns[split_kind(K)][exact](to, from, p->g.bcs * K->element, p->g.brs * K->element, lines, depth, range);
}
/* A packed panel of B once more, where rounded parts do not add up to its numbers. */
static void mend_panel(const gemm_plan* p, int64_t block, int64_t panel) {
    const gemm_kernel* K = p->kernel;
    gemm_range* range = packed_range(p, block, panel);
    if (splits_evenly(*range)) return;
    const char* from = p->g.b + ((p->column + panel * K->width) * p->g.bcs + block * p->depth_block * p->g.brs) * K->element;
    split_panel_columns(p, 1, packed_panel(p, block, panel), from, min_i64(K->width, p->columns - panel * K->width), block_depth(p, block), range);
}
#endif

static void gemm_pack(void* plan, int64_t begin, int64_t end) {
    const gemm_plan* p = plan;
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    /* rows of B are read in runs through several panels, some rows at a time: each panel by itself would take 64 bytes of each */
    const int64_t rows = g->bcs == 1 ? PACKED_ROWS : K->depth;
    for (int64_t block = p->block; block < p->block + p->blocks; block++) {
        const int64_t depth = block_depth(p, block);
        for (int64_t row = 0; row < depth; row += rows)
            for (int64_t j = begin; j < end; j++) {
                char* to = packed_panel(p, block, j) + row / K->group * K->unit * K->width;
                const char* from = g->b + ((p->column + j * K->width) * g->bcs + (block * p->depth_block + row) * g->brs) * K->element;
                const int64_t lines = min_i64(K->width, p->columns - j * K->width), deep = min_i64(rows, depth - row);
#if VECTOR_BYTES == 64
                if (K->parts) {
                    if (row == 0) *packed_range(p, block, j) = GEMM_RANGE_OF_ZEROS;
                    split_panel_columns(p, 0, to, from, lines, deep, packed_range(p, block, j));
                    if (row + rows >= depth) mend_panel(p, block, j);
                    continue;
                }
#endif
                pack_one(K, 0, to, from, g->bcs * K->element, g->brs * K->element, lines, 0, K->width, deep);
            }
    }
}

static inline int whole_vectors(int n, int64_t vector) { return n == vector || n == 2 * vector; }
/* Whether tiles take these rows of bfloat16 where they lie: whole tiles, whose lines of L1's 64 sets of 12 do not displace one another while
   they meet many panels. */
static inline int serves_as_panel(const gemm_matrices* g, const char* a, int64_t rows, int64_t height, int64_t depth, int64_t panels) {
    return g->acs == 1 && rows == height && depth % 32 == 0 && (panels <= 2 || ((uintptr_t)a % 64 == 0 && g->ars % 32 == 0 && g->ars % 512));
}

/* A's rows side by side, whose steps of the depth are pages apart: a panel by itself would take 56 bytes of each page, which cost more than the transposition. */
static inline int lies_apart(const gemm_kernel* K, const gemm_matrices* g) { return g->ars == 1 && g->acs * K->element >= FAR_APART; }

/* Bytes of a packed panel of A's in a step of the depth. */
static inline int64_t panel_row(const gemm_plan* p, int64_t height) { return p->by_steps ? round_up(height * p->kernel->unit, VECTOR_BYTES) : height * p->kernel->unit; }

/* A packed panel of A's, of `height` rows. */
static void pack_row_panel(const gemm_plan* p, char* to, const char* from, int64_t lines, int64_t available, int64_t height, int64_t depth) {
    const gemm_kernel* K = p->kernel;
    if (p->by_steps) pack_steps(to, from, p->g.acs * K->element, lines * K->element, available * K->element, depth);
    else pack_one(K, 1, to, from, p->g.ars * K->element, p->g.acs * K->element, lines, available, height, depth);
    if (!p->negated) return;
    const int64_t n = panel_row(p, height) * round_up(depth, p->by_steps ? 1 : 64 / K->unit) / K->unit; /* whole lines */
    if (K->unit == 4) VECTORIZE for (int64_t i = 0; i < n; i++) ((f32*)to)[i] = -((f32*)to)[i];
    else VECTORIZE for (int64_t i = 0; i < n; i++) ((f64*)to)[i] = -((f64*)to)[i];
}

/* The panels begin .. end of A, a line of the depth of all after the other. */
static void pack_rows(const gemm_plan* p, char* panels, int64_t begin, int64_t end, int64_t block) {
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    const int64_t depth = block_depth(p, block), line = 64 / K->unit * K->group;
    for (int64_t k = 0; k < depth; k += line)
        for (int64_t i = begin; i < end; i++) {
            const int64_t row = row_panel_begin(g->m, K->height, i), rows = row_panel_begin(g->m, K->height, i + 1) - row, height = round_up(rows, K->step ? K->step : 2);
            pack_row_panel(p, panels + (i - begin) * PANEL_BYTES + k / K->group * panel_row(p, height), g->a + (row * g->ars + (block * p->depth_block + k) * g->acs) * K->element, rows,
                           g->m - row, height, min_i64(line, depth - k));
        }
}

/* A tile brings its part of what the panels from `begin` on read of A to L2, some lines between its steps: no prefetcher of the processor follows from page to page. */
static void fetch_rows(const gemm_plan* p, gemm_tile* t, int64_t begin, int64_t end, int64_t block, int64_t part, int64_t parts) {
    const gemm_matrices* g = &p->g;
    const int64_t height = p->kernel->height, element = p->kernel->element, depth = block_depth(p, block), from = depth * part / parts;
    const int64_t row = row_panel_begin(g->m, height, begin);
    t->ahead = g->a + (row + (block * p->depth_block + from) * g->acs) * element;
    t->ahead_row = g->acs * element;
    t->ahead_bytes = (row_panel_begin(g->m, height, min_i64(begin + GROUP, end)) - row) * element;
    t->ahead_rows = depth * (part + 1) / parts - from;
}

/* The part of the next panel's rows, which will be read in place, that a tile brings to L2 before it begins. */
static inline void fetch_next_rows(const gemm_plan* p, const char* next, int64_t rows, int64_t depth, int64_t part, int64_t parts) {
    const int64_t row = p->g.ars * p->kernel->element, from = depth * p->kernel->element * part / parts, to = depth * p->kernel->element * (part + 1) / parts;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = from; at < to; at += 64) __builtin_prefetch(next + r * row + at, 0, 2);
}

/* Where a tile's sums lie between blocks of the depth: in scratch memory, of which tiles store whole panels, or in C. plain: they are C's elements at last. */
static inline void place_sums(const gemm_plan* p, gemm_tile* t, char* scratch, int64_t scratch_row, int plain) {
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    if (scratch) {
        t->partial = scratch, t->partial_row = scratch_row;
        t->whole = !t->last;
    } else {
        t->partial = K->element == K->sum && g->ccs == 1 ? g->c + (t->row * g->crs + t->column) * K->sum : NULL;
        t->partial_row = g->crs * K->sum;
        t->whole = (plain || !t->last) && whole_vectors(t->cols, K->width / 2);
    }
}

/* Rows (panels) begin .. end of C by the packed panels first .. last. `group`: memory for GROUP panels of A, or NULL. */
static void gemm_block(gemm_plan* p, int64_t begin, int64_t end, int64_t first, int64_t last, char* scratch, int64_t scratch_row, char* group) {
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    const int in_place = K->bodies_in_place && g->acs == 1 && !p->negated;
    const gemm_bodies* bodies = p->by_steps ? K->bodies_by_steps : in_place ? K->bodies_in_place : K->bodies;
    char panel[PANEL_BYTES] __attribute__((aligned(64)));
    const int64_t half = K->width / 2;
    /* C holds the sums themselves, and nothing happens to them afterwards */
    const int in_c = K->element == K->sum && g->ccs == 1;
    const int accumulates = in_c && g->d == g->c && g->beta == 1 && g->alpha == 1;
    const int untouched = g->alpha == 1 && g->activation == GEMM_IDENTITY && (!g->d || accumulates), plain = in_c && untouched;
    /* tiles add rows (of a transposed C: columns) of C's type and clamp as they store */
    const int columns = g->ccs != 1, simple = g->alpha == 1 && (!g->d || (g->beta == 1 && (columns ? g->drs : g->dcs) == 1));
#if VECTOR_BYTES == 64
    if (K->step) tiles_begin();
#endif
    for (int64_t block = p->block; block < p->block + p->blocks; block++) {
        const int64_t depth = block_depth(p, block);
        gemm_tile t = {.units = units_of(K, depth), .last = block == p->depth_blocks - 1, .first = block == 0 && !accumulates, .added = accumulates, .g = g, .finish = K->finish};
        for (int64_t i = begin; i < end; i++) {
            t.row = row_panel_begin(g->m, K->height, i);
            t.rows = (int)(row_panel_begin(g->m, K->height, i + 1) - t.row);
            const int64_t height = round_up(t.rows, K->step ? K->step : 2);
            const char* a = g->a + (t.row * g->ars + block * p->depth_block * g->acs) * K->element;
            if (group) {
                const int64_t at = (i - begin) % GROUP;
                if (at == 0) pack_rows(p, group, i, min_i64(i + GROUP, end), block);
                t.a = group + at * PANEL_BYTES, t.a_row = 64, t.a_step = height * 64;
            } else if (in_place) {
                t.a = a, t.a_row = g->ars * K->element;
            } else if (K->step && serves_as_panel(g, a, t.rows, height, depth, last - first)) {
                t.a = a, t.a_row = g->ars * K->element, t.a_step = 64;
            } else {
                pack_row_panel(p, panel, a, t.rows, g->m - t.row, height, depth);
                t.a = panel, t.a_row = 64, t.a_step = height * 64;
            }
            for (int64_t j = first; j < last; j++) {
                t.column = p->column + j * K->width;
                t.cols = (int)min_i64(K->width, p->columns - j * K->width);
                t.b = packed_panel(p, block, j);
                t.ahead_rows = 0;
                if (in_place && i + 1 < end) fetch_next_rows(p, a + t.rows * t.a_row, row_panel_begin(g->m, K->height, i + 2) - t.row - t.rows, depth, j - first, last - first);
                if (group && p->by_steps) {
                    const int64_t at = (i - begin) % GROUP, next = i - at + GROUP, parts = (min_i64(next, end) - (i - at)) * (last - first), part = at * (last - first) + j - first;
                    if (next < end) fetch_rows(p, &t, next, end, block, part, parts);
                    else if (block + 1 < p->block + p->blocks) fetch_rows(p, &t, begin, end, block + 1, part, parts);
                }
                place_sums(p, &t, scratch ? scratch + (i - begin) * K->height * scratch_row + (j - first) * K->width * K->sum : NULL, scratch_row, plain);
                if (K->step) t.direct = simple && t.last && whole_vectors(columns ? t.rows : t.cols, half) ? g->c + (t.row * g->crs + t.column * g->ccs) * K->element : NULL;
                else t.direct = untouched && !in_c && t.last && g->ccs == 1 && whole_vectors(t.cols, half) ? g->c + (t.row * g->crs + t.column) * K->element : NULL;
                t.direct_row = (columns ? g->ccs : g->crs) * K->element;
                bodies[K->step ? 0 : height / 2][t.cols > half](&t);
            }
        }
    }
#if VECTOR_BYTES == 64
    if (K->step) tiles_end();
#endif
}

#if VECTOR_BYTES == 64
static gemm_range split_row_panel(const gemm_plan* p, char* to, int64_t row, int64_t rows, int64_t block) {
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    const char* from = g->a + (row * g->ars + block * p->depth_block * g->acs) * K->element;
    gemm_range range = GEMM_RANGE_OF_ZEROS;
    for (int exact = 0; exact < 2 && (!exact || !splits_evenly(range)); exact++)
        split_rows[split_kind(K)][exact](to, from, g->ars * K->element, g->acs * K->element, rows, g->m - row, round_up(rows, TILE_SIDE), block_depth(p, block), &range);
    return range;
}

/* Whole tiles go from and to where sums lie between blocks of the depth, C itself or scratch; others, and those of FMAs, are added row by row. */
static void split_tile(const gemm_kernel* K, const gemm_tile* t, int serves, int apart) {
    static void (*const split_sums[3])(const char*, const char*, int64_t, char*, int64_t, int, int, int) = {split_sums_f16, split_sums_f32, split_sums_rounded};
    vf32 summed[2 * TILE_SIDE][2];
    const int tall = t->rows > TILE_SIDE, wide = t->cols > TILE_SIDE;
    const int64_t steps = t->units / TILE_STEP;
    if (!serves) {
        widened_sums(t->a, t->b, steps, summed, K->parts, tall);
    } else {
        const int whole = t->whole && (apart || t->rows % TILE_SIDE == 0);
        char* sums = whole ? t->partial : (char*)summed;
        const int64_t sums_row = whole ? t->partial_row : (int64_t)sizeof summed[0];
        split_sums[split_kind(K)](t->a, t->b, steps, sums, sums_row, tall, wide, whole && !t->first);
        if (whole) return;
    }
    t->finish(t, (const char*)summed, sizeof summed[0]);
}

/* gemm_block for parts. Packing costs more and a tile takes longer, so panels of A are packed once for all columns, and a panel of B meets some of them. */
static void split_block(gemm_plan* p, int64_t begin, int64_t end, int64_t first, int64_t last, char* scratch, int64_t scratch_row, char* panels) {
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    gemm_range ranges[SPLIT_GROUP];
    const int in_c = K->element == K->sum && g->ccs == 1, accumulates = in_c && g->d == g->c && g->beta == 1 && g->alpha == 1;
    const int plain = in_c && g->alpha == 1 && g->activation == GEMM_IDENTITY && (!g->d || accumulates);
    tiles_begin();
    for (int64_t block = p->block; block < p->block + p->blocks; block++) {
        gemm_tile t = {.units = units_of(K, block_depth(p, block)), .last = block == p->depth_blocks - 1, .first = block == 0 && !accumulates, .added = accumulates, .g = g, .finish = K->finish};
        for (int64_t group = begin; group < end; group += SPLIT_GROUP) {
            const int64_t stop = min_i64(group + SPLIT_GROUP, end);
            for (int64_t i = group; i < stop; i++)
                ranges[i - group] = split_row_panel(p, panels + (i - group) * SPLIT_PANEL_BYTES, i * K->height, min_i64(K->height, g->m - i * K->height), block);
            for (int64_t j = first; j < last; j++) {
                const gemm_range columns = *packed_range(p, block, j);
                t.column = p->column + j * K->width;
                t.cols = (int)min_i64(K->width, p->columns - j * K->width);
                t.b = packed_panel(p, block, j);
                for (int64_t i = group; i < stop; i++) {
                    t.row = i * K->height;
                    t.rows = (int)min_i64(K->height, g->m - t.row);
                    t.a = panels + (i - group) * SPLIT_PANEL_BYTES;
                    place_sums(p, &t, scratch ? scratch + (i - begin) * K->height * scratch_row + (j - first) * K->width * K->sum : NULL, scratch_row, plain);
                    split_tile(K, &t, tiles_serve(ranges[i - group], columns), scratch != NULL);
                }
            }
        }
    }
    tiles_end();
}
#endif

static void gemm_run(void* plan, int64_t begin, int64_t end) {
    gemm_plan* p = plan;
    const gemm_kernel* K = p->kernel;
    const gemm_matrices* g = &p->g;
    const int apart = sums_lie_apart(p);
    const int64_t panels = (p->columns + K->width - 1) / K->width;
    const int64_t scratch_rows = K->step ? TILE_SCRATCH_ROWS : SCRATCH_ROWS, scratch_columns = K->step ? TILE_SCRATCH_COLUMNS : SCRATCH_COLUMNS;
    const int64_t rows_at_once = apart ? scratch_rows / K->height : p->row_panels;
    const int64_t panels_at_once = max_i64((apart ? scratch_columns : K->parts ? p->column_block : K->step ? TILE_COLUMN_TASK : COLUMN_TASK) / K->width, 1);
    const int64_t scratch_row = panels_at_once * K->width * K->sum;
    char *scratch = NULL, *group = NULL;
    if (K->parts) group = aligned_alloc(64, SPLIT_GROUP * SPLIT_PANEL_BYTES);
    else if (lies_apart(K, g) && p->row_panels > 1) group = aligned_alloc(64, GROUP * PANEL_BYTES); /* without it each panel is packed by itself */
    if ((K->parts && !group) || (apart && !(scratch = aligned_alloc(64, scratch_rows * scratch_row)))) {
        __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
        free(group);
        return;
    }
#if VECTOR_BYTES == 64
    void (*block)(gemm_plan*, int64_t, int64_t, int64_t, int64_t, char*, int64_t, char*) = K->parts ? split_block : gemm_block;
#else
    void (*block)(gemm_plan*, int64_t, int64_t, int64_t, int64_t, char*, int64_t, char*) = gemm_block;
#endif
    while (begin < end) { /* within one task of columns */
        const int64_t task = begin / p->row_panels, stop = min_i64(end, (task + 1) * p->row_panels);
        const int64_t left = task * panels / p->column_tasks, right = (task + 1) * panels / p->column_tasks;
        for (int64_t j = left; j < right; j += panels_at_once)
            for (int64_t i = begin; i < stop; i += rows_at_once)
                block(p, i - task * p->row_panels, min_i64(i + rows_at_once, stop) - task * p->row_panels, j, min_i64(j + panels_at_once, right), scratch, scratch_row, group);
        begin = stop;
    }
    free(scratch);
    free(group);
}

static void gemm_whole(gemm_plan* p) {
    while (gemm_next(p)) {
        gemm_pack(p, 0, (p->columns + p->kernel->width - 1) / p->kernel->width);
        gemm_run(p, 0, p->row_panels * p->column_tasks);
    }
}

const gemm_table ISA_NAME(trt_gemm)[] = {{
    {&kernel_f32, &kernel_f64, &kernel_bf16, &kernel_f16, &kernel_i64,
#if VECTOR_BYTES == 64
     &kernel_bf16_pairs, &kernel_bf16_tiles, &kernel_f16_split, &kernel_f32_split, &kernel_f32_rounded,
#endif
    },
    gemm_make_plan, gemm_next, gemm_pack, gemm_run, gemm_whole,
}};
