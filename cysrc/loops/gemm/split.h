/* float16, and float32 of less precision, by AMX: a number is the sum of two bfloat16 (16 bits of float32's 24, all of float16's 11), or rounded to one. Of the four products of
   parts float32's take the three that reach those bits, float16's all, so that they are exact; sums are float32.

   What a part below float32's range would lose is not left to chance: packing notes the magnitudes in each panel in a block of the depth. Where products of two panels could leave
   the range, or a number has no such parts (infinities, NaN, those next to the greatest or the least), FMAs take the same panels, in truncated parts: these
   add up to float16's numbers and to as many bits of float32's as are kept, whatever they are. */
#ifndef TRT_GEMM_SPLIT_H
#define TRT_GEMM_SPLIT_H
#include <immintrin.h>
#include "tiles.h"

enum {
    SPLIT_DEPTH = 2 * TILE_STEP,             /* elements of a step */
    SPLIT_COLUMNS_PART = TILE_STEP * 2 * 64, /* bytes of a part of B in a step */
    SPLIT_LEAST = 24, SPLIT_GREATEST = 252,  /* exponents, biased by 127, of numbers whose parts are normal and finite */
    PRODUCT_LEAST = 2 * 127 - 100,           /* the sum of two biased exponents: what is 2^-24 of the product is normal */
    PRODUCT_GREATEST = 2 * 127 + 112,        /* the sums of a block of the depth are finite */
};

static inline int splits_evenly(gemm_range r) { return r.greatest >> 23 <= SPLIT_GREATEST && (r.least == UINT32_MAX || (r.least + 1) >> 23 >= SPLIT_LEAST); }
/* Whether tiles multiply two panels as exactly as FMAs do. */
static inline int tiles_serve(gemm_range a, gemm_range b) {
    if (!splits_evenly(a) || !splits_evenly(b)) return 0;
    if (a.least == UINT32_MAX || b.least == UINT32_MAX) return 1; /* zeros */
    return ((a.least + 1) >> 23) + ((b.least + 1) >> 23) >= PRODUCT_LEAST && (a.greatest >> 23) + (b.greatest >> 23) <= PRODUCT_GREATEST;
}

/* ---- two vectors of float32, and the lines of 32 bfloat16 that add up to them ---- */

typedef uint32_t vu32 __attribute__((vector_size(64)));
typedef uint16_t bf16_half_line __attribute__((vector_size(32), aligned(32), may_alias));
typedef uint16_t bf16_line __attribute__((vector_size(64), aligned(64), may_alias));
#define LOW_HALF(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define HIGH_HALF(x) __builtin_shufflevector(x, x, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)
KERNEL_INLINE bf16_line join_halves(bf16_half_line low, bf16_half_line high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}
KERNEL_INLINE vf32 widen_half_line(bf16_half_line x) { return (vf32)(__builtin_convertvector(x, vi32) << 16); }
/* pairs of the depth from a row of elements and the next one, and back */
KERNEL_INLINE bf16_line interleave_halves(bf16_line x) {
    return __builtin_shufflevector(x, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
KERNEL_INLINE bf16_line separate_halves(bf16_line x) {
    return __builtin_shufflevector(x, x, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#ifdef GEMM_TILES
KERNEL_INLINE bf16_line round_to_bf16(vf32 low, vf32 high) {
    bf16_line line;
    for (int j = 0; j < 16; j++) store_bf16((char*)&line + 2 * j, low[j]), store_bf16((char*)&line + 32 + 2 * j, high[j]);
    return line;
}
#else
KERNEL_INLINE TILES_TARGET bf16_line round_to_bf16(vf32 low, vf32 high) { return (bf16_line)__builtin_ia32_cvtne2ps2bf16_v32hi(high, low); }
#endif
/* The upper half of each number's bits, a bfloat16; of a NaN a NaN. */
KERNEL_INLINE bf16_half_line truncate_to_bf16(vf32 x) { return __builtin_convertvector((vu32)((vi32)x | ((x != x) & 0x400000)) >> 16, bf16_half_line); }
/* Each part rounds what the ones before left, which is exact: remainders of either sign halve what the products leave out. Truncated parts (`exact`) exist of any number. */
KERNEL_INLINE TILES_TARGET void split_vectors(vf32 low, vf32 high, bf16_line* parts, const int count, const int exact) {
    UNROLL for (int p = 0; p < count; p++) {
        if (!exact) {
            parts[p] = round_to_bf16(low, high);
            low -= widen_half_line(LOW_HALF(parts[p])), high -= widen_half_line(HIGH_HALF(parts[p]));
            continue;
        }
        const bf16_half_line a = truncate_to_bf16(low), b = truncate_to_bf16(high);
        parts[p] = join_halves(a, b);
        /* nothing is left of infinities and NaN */
        low = (vf32)((vi32)(low - widen_half_line(a)) & (((vi32)low & 0x7f800000) != 0x7f800000));
        high = (vf32)((vi32)(high - widen_half_line(b)) & (((vi32)high & 0x7f800000) != 0x7f800000));
    }
}

/* ---- packing: a step of the depth is [part][line][32 elements] of A, [part][16 pairs][32 columns] of B ---- */

typedef struct { vu32 least, greatest; } range_lanes;
KERNEL_INLINE void meet_range(range_lanes* lanes, vf32 x) {
    const vu32 magnitude = (vu32)x & 0x7fffffff;
    lanes->least = (vu32)_mm512_min_epu32((__m512i)lanes->least, (__m512i)(magnitude - 1)); /* of zero the greatest number */
    lanes->greatest = (vu32)_mm512_max_epu32((__m512i)lanes->greatest, (__m512i)magnitude);
}
KERNEL_INLINE void reduce_range(const range_lanes* lanes, gemm_range* range) {
    for (int j = 0; j < 16; j++) {
        if (lanes->least[j] < range->least) range->least = lanes->least[j];
        if (lanes->greatest[j] > range->greatest) range->greatest = lanes->greatest[j];
    }
}
/* 16 elements side by side */
KERNEL_INLINE vf32 load_elements(const char* from, const int load) {
    if (load == LOAD_F32) return *(const vf32_u*)from;
    f32 x[16] __attribute__((aligned(64)));
    f16_to_f32_block((const f16*)from, x, 16);
    return *(const vf32*)x;
}
/* Elements as float32 where they do not lie as a step wants them; what is missing is zero. */
KERNEL_ONCE void stage_step(int load, int by_line, char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t available, int64_t width, int64_t depth) {
    if (depth < SPLIT_DEPTH) memset(to, 0, SPLIT_DEPTH * width * 4);
    if (load == LOAD_F32) by_line ? pack_panel(LOAD_F32, 1, to, from, ls, ds, lines, available, width, depth) : pack_panel(LOAD_F32, 0, to, from, ls, ds, lines, available, width, depth);
    else by_line ? pack_panel(LOAD_F16, 1, to, from, ls, ds, lines, available, width, depth) : pack_panel(LOAD_F16, 0, to, from, ls, ds, lines, available, width, depth);
}

/* `lines` rows of A into `parts`, of which there is room for `height`; `range` takes them in. */
KERNEL_INLINE TILES_TARGET void split_rows_of(const int load, const int parts, char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t available, int64_t height,
                                              int64_t depth, const int exact, gemm_range* range) {
    const int element = load == LOAD_F32 ? 4 : 2;
    char staged[SPLIT_DEPTH * 2 * TILE_SIDE * 4 + PANEL_SLACK] __attribute__((aligned(64)));
    range_lanes lanes = {(vu32){0} - 1, {0}};
    bf16_line part[2];
    for (int64_t k = 0; k < depth; k += SPLIT_DEPTH, from += SPLIT_DEPTH * ds, to += parts * height * 64) {
        const int direct = depth - k >= SPLIT_DEPTH && ds == element;
        if (!direct) stage_step(load, 1, staged, from, ls, ds, lines, available, height, depth - k < SPLIT_DEPTH ? depth - k : SPLIT_DEPTH);
        for (int64_t r = 0; r < lines; r++) {
            const vf32 low = direct ? load_elements(from + r * ls, load) : *(const vf32*)(staged + r * 64);
            const vf32 high = direct ? load_elements(from + r * ls + 16 * element, load) : *(const vf32*)(staged + (height + r) * 64);
            meet_range(&lanes, low), meet_range(&lanes, high);
            split_vectors(low, high, part, parts, exact);
            UNROLL for (int p = 0; p < parts; p++) *(bf16_line*)(to + (p * height + r) * 64) = part[p];
        }
        if (lines < height) for (int p = 0; p < parts; p++) memset(to + (p * height + lines) * 64, 0, (height - lines) * 64);
    }
    reduce_range(&lanes, range);
}
/* the same of 32 columns of B */
KERNEL_INLINE TILES_TARGET void split_columns_of(const int load, const int parts, char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t depth, const int exact,
                                                 gemm_range* range) {
    enum { LINES = 2 * TILE_SIDE };
    const int element = load == LOAD_F32 ? 4 : 2;
    char staged[SPLIT_DEPTH * LINES * 4 + PANEL_SLACK] __attribute__((aligned(64)));
    range_lanes lanes = {(vu32){0} - 1, {0}};
    bf16_line part[2];
    for (int64_t k = 0; k < depth; k += SPLIT_DEPTH, from += SPLIT_DEPTH * ds, to += parts * SPLIT_COLUMNS_PART) {
        const int direct = depth - k >= SPLIT_DEPTH && ls == element && lines == LINES;
        if (!direct) stage_step(load, 0, staged, from, ls, ds, lines, 0, LINES, depth - k < SPLIT_DEPTH ? depth - k : SPLIT_DEPTH);
        for (int u = 0; u < TILE_STEP; u++) {
            const char *first = direct ? from + 2 * u * ds : staged + 2 * u * LINES * 4, *second = direct ? first + ds : first + LINES * 4;
            if (direct) __builtin_prefetch(first + ROWS_AHEAD), __builtin_prefetch(second + ROWS_AHEAD);
            UNROLL for (int h = 0; h < 2; h++) {
                const vf32 x = direct ? load_elements(first + h * 16 * element, load) : *(const vf32*)(first + h * 64);
                const vf32 y = direct ? load_elements(second + h * 16 * element, load) : *(const vf32*)(second + h * 64);
                meet_range(&lanes, x), meet_range(&lanes, y);
                split_vectors(x, y, part, parts, exact);
                UNROLL for (int p = 0; p < parts; p++) *(bf16_line*)(to + p * SPLIT_COLUMNS_PART + u * 128 + h * 64) = interleave_halves(part[p]);
            }
        }
    }
    reduce_range(&lanes, range);
}
#define DEFINE_SPLIT(name, load, parts, exact)                                                                                                                    \
    KERNEL_ONCE TILES_TARGET void name##_rows(char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t available, int64_t height, int64_t depth, \
                                              gemm_range* range) {                                                                                                \
        split_rows_of(load, parts, to, from, ls, ds, lines, available, height, depth, exact, range);                                                              \
    }                                                                                                                                                             \
    KERNEL_ONCE TILES_TARGET void name##_columns(char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t depth, gemm_range* range) {           \
        split_columns_of(load, parts, to, from, ls, ds, lines, depth, exact, range);                                                                              \
    }
DEFINE_SPLIT(split_f32, LOAD_F32, 2, 0)
DEFINE_SPLIT(split_f32_exactly, LOAD_F32, 2, 1)
DEFINE_SPLIT(round_f32, LOAD_F32, 1, 0)
DEFINE_SPLIT(round_f32_exactly, LOAD_F32, 1, 1)
DEFINE_SPLIT(split_f16, LOAD_F16, 2, 0)
DEFINE_SPLIT(split_f16_exactly, LOAD_F16, 2, 1)
#undef DEFINE_SPLIT

/* ---- the sums of one tile of C ---- */

/* 32 x 32 sums in four registers of tiles, as in tiles.h; two registers hold a part of A's rows, two of B's columns. From one product of parts to the next one operand changes. */
KERNEL_INLINE void split_sums_of(const char* a, const char* b, int64_t steps, char* sums, int64_t sums_row, const int parts, const int all, const int tall, const int wide, const int adds) {
    const int64_t a_part = (tall ? 2 : 1) * TILE_SIDE * 64, b_row = 2 * 64;
#define LOAD_ROWS(p) do { TILE_LOAD(4, a + (p) * a_part, 64); if (tall) TILE_LOAD(5, a + (p) * a_part + TILE_SIDE * 64, 64); } while (0)
#define LOAD_COLUMNS(p) do { TILE_LOAD(6, b + (p) * SPLIT_COLUMNS_PART, b_row); if (wide) TILE_LOAD(7, b + (p) * SPLIT_COLUMNS_PART + 64, b_row); } while (0)
#define ADD_PRODUCT() do { TILE_DOT(0, 4, 6); if (wide) TILE_DOT(1, 4, 7); if (tall) TILE_DOT(2, 5, 6); if (tall && wide) TILE_DOT(3, 5, 7); } while (0)
    BEGIN_SUMS(adds, tall, wide);
    for (; steps > 0; steps--, a += parts * a_part, b += parts * SPLIT_COLUMNS_PART) {
        LOAD_ROWS(0);
        LOAD_COLUMNS(parts - 1);
        ADD_PRODUCT();
        if (parts == 2) {
            LOAD_COLUMNS(0);
            ADD_PRODUCT();
            LOAD_ROWS(1);
            ADD_PRODUCT();
        }
        if (all) {
            LOAD_COLUMNS(1);
            ADD_PRODUCT();
        }
    }
    TILE_EACH(TILE_STORE, tall, wide);
#undef LOAD_ROWS
#undef LOAD_COLUMNS
#undef ADD_PRODUCT
}
#define DEFINE_SPLIT_SUMS(name, parts, all)                                                                                                                     \
    KERNEL_ONCE void split_sums_##name(const char* a, const char* b, int64_t steps, char* sums, int64_t sums_row, int tall, int wide, int adds) { \
        switch (tall * 4 + wide * 2 + adds) {                                                                                                        \
            case 0: split_sums_of(a, b, steps, sums, sums_row, parts, all, 0, 0, 0); break;                                                              \
            case 1: split_sums_of(a, b, steps, sums, sums_row, parts, all, 0, 0, 1); break;                                                              \
            case 2: split_sums_of(a, b, steps, sums, sums_row, parts, all, 0, 1, 0); break;                                                              \
            case 3: split_sums_of(a, b, steps, sums, sums_row, parts, all, 0, 1, 1); break;                                                              \
            case 4: split_sums_of(a, b, steps, sums, sums_row, parts, all, 1, 0, 0); break;                                                              \
            case 5: split_sums_of(a, b, steps, sums, sums_row, parts, all, 1, 0, 1); break;                                                              \
            case 6: split_sums_of(a, b, steps, sums, sums_row, parts, all, 1, 1, 0); break;                                                              \
            case 7: split_sums_of(a, b, steps, sums, sums_row, parts, all, 1, 1, 1); break;                                                              \
        }                                                                                                                                            \
    }
DEFINE_SPLIT_SUMS(f16, 2, 1)
DEFINE_SPLIT_SUMS(f32, 2, 0)
DEFINE_SPLIT_SUMS(rounded, 1, 0)
#undef DEFINE_SPLIT_SUMS

/* The same by FMAs, for any numbers: the elements of each step again, then 32 columns of eight rows at a time. */
KERNEL_ONCE void widened_sums(const char* a, const char* b, int64_t steps, vf32 (*sums)[2], int parts, int tall) {
    enum { LINES = 2 * TILE_SIDE, ROWS = 8 };
    const int height = tall ? LINES : TILE_SIDE;
    f32 rows[LINES][SPLIT_DEPTH] __attribute__((aligned(64)));
    vf32 columns[SPLIT_DEPTH][2];
    memset(sums, 0, height * sizeof sums[0]);
    for (; steps > 0; steps--, a += parts * height * 64, b += parts * SPLIT_COLUMNS_PART) {
        for (int r = 0; r < height; r++) {
            vf32 low = {0}, high = {0};
            for (int p = 0; p < parts; p++) {
                const bf16_line x = *(const bf16_line*)(a + (p * height + r) * 64);
                low += widen_half_line(LOW_HALF(x)), high += widen_half_line(HIGH_HALF(x));
            }
            *(vf32*)rows[r] = low, *(vf32*)(rows[r] + 16) = high;
        }
        for (int u = 0; u < TILE_STEP; u++)
            for (int h = 0; h < 2; h++) {
                vf32 first = {0}, second = {0};
                for (int p = 0; p < parts; p++) {
                    const bf16_line x = separate_halves(*(const bf16_line*)(b + p * SPLIT_COLUMNS_PART + u * 128 + h * 64));
                    first += widen_half_line(LOW_HALF(x)), second += widen_half_line(HIGH_HALF(x));
                }
                columns[2 * u][h] = first, columns[2 * u + 1][h] = second;
            }
        for (int r = 0; r < height; r += ROWS) {
            vf32 sum[ROWS][2];
            UNROLL for (int i = 0; i < ROWS; i++) sum[i][0] = sums[r + i][0], sum[i][1] = sums[r + i][1];
            for (int k = 0; k < SPLIT_DEPTH; k++)
                UNROLL for (int i = 0; i < ROWS; i++) {
                    const vf32 x = splat_f32(rows[r + i][k]);
                    sum[i][0] = FMA(x, columns[k][0], sum[i][0]), sum[i][1] = FMA(x, columns[k][1], sum[i][1]);
                }
            UNROLL for (int i = 0; i < ROWS; i++) sums[r + i][0] = sum[i][0], sums[r + i][1] = sum[i][1];
        }
    }
}
#endif
