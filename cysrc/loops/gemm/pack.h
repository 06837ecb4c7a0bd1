/* Packing: `width` lines (rows of A, columns of B) of any strides become a panel of units of the kernel's type.
   by_line: [depth / LINE][width][LINE], as A's panels are, otherwise [depth][width], as B's. What is missing in either direction is
   zero. Units are read in runs along whichever direction is adjacent in memory; a tile of LINE runs is transposed in registers where
   the panel wants the other. */
#ifndef TRT_GEMM_PACK_H
#define TRT_GEMM_PACK_H
#include "../../core/transpose.h"
#include "../kernel_base.h"
#include "gemm.h"

/* what a unit is: an element as it lies, a half converted to float32, or two bfloat16 of successive depth */
enum { LOAD_F32, LOAD_F64, LOAD_BF16, LOAD_F16, LOAD_PAIR };

/* A square of 64 bytes a side, by squares of a vector a side; at least the first `wanted` rows of the result. */
KERNEL_ONCE void transpose_units_4(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row, int64_t wanted) {
    enum { N = VECTOR_BYTES / 4 };
    for (int j = 0; j < wanted; j += N)
        for (int i = 0; i < 16; i += N) transpose_words(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
}
KERNEL_ONCE void transpose_units_8(const uint64_t* from, int64_t from_row, uint64_t* to, int64_t to_row, int64_t wanted) {
    enum { N = VECTOR_BYTES / 8 };
    for (int j = 0; j < wanted; j += N)
        for (int i = 0; i < 8; i += N) transpose_longs(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
}

/* A line of a panel of A, or a row of one of B: known lengths become moves of vectors, where calls of memcpy were a tenth of 128x2048 by 2048x512. */
KERNEL_INLINE void copy_run(void* to, const void* from, int64_t bytes) {
    if (bytes == 64) memcpy(to, from, 64);
    else if (bytes == 128) memcpy(to, from, 128);
    else memcpy(to, from, bytes);
}

/* ---- runs: `n` units, the rest of the `padded` ones zero ---- */
/* along the depth: `elements` elements at byte stride ds */
KERNEL_INLINE void read_depth(const int load, void* to, const char* from, int64_t ds, int64_t elements, int64_t padded) {
    int64_t i = 0;
    if (load == LOAD_F64) {
        f64* out = to;
        if (ds == 8 && elements == padded) { copy_run(out, from, 8 * padded); return; }
        for (; i < elements; i++) out[i] = load_f64(from + i * ds);
        for (; i < padded; i++) out[i] = 0;
    } else if (load == LOAD_PAIR) {
        uint16_t* out = to;
        if (ds == 2 && elements == 2 * padded) { copy_run(out, from, 4 * padded); return; }
        for (; i < elements; i++) out[i] = *(const uint16_t*)(from + i * ds);
        for (; i < 2 * padded; i++) out[i] = 0;
    } else {
        f32* out = to;
        if (load == LOAD_F32) {
            if (ds == 4 && elements == padded) { copy_run(out, from, 4 * padded); return; }
            for (; i < elements; i++) out[i] = load_f32(from + i * ds);
        } else if (load == LOAD_BF16) {
            if (ds == 2) bf16_to_f32_block((const bf16*)from, out, i = elements);
            for (; i < elements; i++) out[i] = load_bf16(from + i * ds);
        } else {
            if (ds == 2) f16_to_f32_block((const f16*)from, out, i = elements);
            for (; i < elements; i++) out[i] = load_f16(from + i * ds);
        }
        for (; i < padded; i++) out[i] = 0;
    }
}
/* across lines: one unit of each of `lines` lines at byte stride ls; of a pair, the second element may not exist */
KERNEL_INLINE void read_lines(const int load, void* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t padded, int whole) {
    if (load == LOAD_PAIR) {
        uint32_t* out = to;
        int64_t i = 0;
        if (ls == 2 && lines == 16 && whole) { /* a constant length becomes vectors */
            for (; i < 16; i++) out[i] = *(const uint16_t*)(from + 2 * i) | (uint32_t) * (const uint16_t*)(from + ds + 2 * i) << 16;
        } else if (ls == 2)
            for (; i < lines; i++) out[i] = *(const uint16_t*)(from + 2 * i) | (whole ? (uint32_t) * (const uint16_t*)(from + ds + 2 * i) << 16 : 0);
        for (; i < lines; i++) out[i] = *(const uint16_t*)(from + i * ls) | (whole ? (uint32_t) * (const uint16_t*)(from + ds + i * ls) << 16 : 0);
        for (; i < padded; i++) out[i] = 0;
    } else {
        read_depth(load, to, from, ls, lines, padded);
    }
}

#if VECTOR_BYTES == 64
/* Pairs of 32 adjacent columns: two rows of 64 bytes become one row of units, by a permutation of both for each half. */
KERNEL_INLINE void interleave_rows(void* to, const char* first, const char* second) {
    typedef uint16_t halves __attribute__((vector_size(64), aligned(2), may_alias));
    static const halves low = {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const halves a = *(const halves*)first, b = *(const halves*)second;
    ((halves*)to)[0] = __builtin_shuffle(a, b, low);
    ((halves*)to)[1] = __builtin_shuffle(a, b, low + 16);
}
#endif

/* `available`: lines that may be read, those beyond `lines` to be dropped. A panel by lines is followed by PANEL_SLACK bytes. */
enum { PANEL_SLACK = 16 * 64, ROWS_AHEAD = 4 * 64 };
KERNEL_INLINE void pack_panel(const int load, const int by_line, char* to, const char* from, int64_t ls, int64_t ds, int64_t lines, int64_t available,
                              int64_t width, int64_t depth) {
    const int element = load == LOAD_F64 ? 8 : load == LOAD_F32 ? 4 : 2, group = load == LOAD_PAIR ? 2 : 1, unit = load == LOAD_F64 ? 8 : 4;
    const int plain = load == LOAD_F32 || load == LOAD_F64; /* an element is a unit */
    const int line = 64 / unit;
    const int64_t units = (depth + group - 1) / group;
    const int along_lines = ls == element && ds != element; /* adjacent */
    if (along_lines && !by_line) {
        int64_t u = 0;
#if VECTOR_BYTES == 64
        if (load == LOAD_PAIR && width == 32 && lines == 32)
            for (; (u + 1) * 2 <= depth; u++) interleave_rows(to + u * 128, from + u * 2 * ds, from + (u * 2 + 1) * ds);
#endif
        for (; u < units; u++) {
            __builtin_prefetch(from + u * group * ds + ROWS_AHEAD);
            read_lines(load, to + u * width * unit, from + u * group * ds, ls, ds, lines, width, (u + 1) * group <= depth);
        }
        return;
    }
    if (!along_lines && by_line) {
        for (int64_t u = 0; u < units; u += line) {
            char* out = to + u * width * unit;
            const int64_t left = min_i64(depth - u * group, line * group);
            for (int64_t l = 0; l < lines; l++) read_depth(load, out + l * 64, from + l * ls + u * group * ds, ds, left, line);
            if (lines < width) memset(out + lines * 64, 0, (width - lines) * 64);
        }
        return;
    }
    char square[16 * 64] __attribute__((aligned(64)));
    char turned[16 * 64] __attribute__((aligned(64)));
    for (int64_t u = 0; u < units; u += line) {
        const int64_t deep = min_i64(units - u, line), left = min_i64(depth - u * group, line * group);
        for (int64_t l = 0; l < width; l += line) {
            const int64_t have = max_i64(min_i64(lines - l, line), 0), wide = min_i64(width - l, line);
            const int64_t readable = by_line && available - l >= line ? line : have;
            const char* at = from + l * ls + u * group * ds;
            const char* source = square;
            int64_t row = line;
            const int as_it_lies = by_line ? plain && readable == line && deep == line && ls == unit && ds % unit == 0
                                           : (plain || load == LOAD_PAIR) && ds == element && have == line && left == line * group && ls % unit == 0;
            if (as_it_lies && (uintptr_t)at % unit == 0) {
                source = at;
                row = (by_line ? ds : ls) / unit;
            } else if (by_line) {
                for (int64_t i = 0; i < deep; i++) {
                    if (readable == line) read_lines(load, square + i * 64, at + i * group * ds, ls, ds, line, line, (u + i + 1) * group <= depth);
                    else read_lines(load, square + i * 64, at + i * group * ds, ls, ds, have, line, (u + i + 1) * group <= depth);
                }
                if (deep < line) memset(square + deep * 64, 0, (line - deep) * 64);
            } else {
                for (int64_t i = 0; i < have; i++) read_depth(load, square + i * 64, at + i * ls, ds, left, line);
                if (have < line) memset(square + have * 64, 0, (line - have) * 64);
            }
            /* lines beyond the panel's are overwritten by the next ones; rows of units are written where they belong if they are whole */
            const int fits = by_line || (deep == line && wide == line);
            char* out = by_line ? to + u * width * unit + l * 64 : to + (u * width + l) * unit;
            const int64_t out_row = by_line ? line : width;
            if (unit == 4) transpose_units_4((const uint32_t*)source, row, (uint32_t*)(fits ? out : turned), fits ? out_row : line, by_line ? wide : line);
            else transpose_units_8((const uint64_t*)source, row, (uint64_t*)(fits ? out : turned), fits ? out_row : line, by_line ? wide : line);
            if (!fits) for (int64_t i = 0; i < deep; i++) memcpy(out + i * width * unit, turned + i * 64, wide * unit);
        }
    }
}

/* Steps of the depth, `vectors` vectors each: a constant where it is inlined, so that no loop runs within a step. */
KERNEL_INLINE void copy_steps(char* to, const char* from, int64_t ds, const int vectors, int64_t depth) {
    typedef char bytes __attribute__((vector_size(VECTOR_BYTES), aligned(1)));
    _Pragma("GCC unroll 4") for (int64_t k = 0; k < depth; k++)
        UNROLL for (int v = 0; v < vectors; v++) *(bytes*)(to + (k * vectors + v) * VECTOR_BYTES) = *(const bytes*)(from + k * ds + v * VECTOR_BYTES);
}

/* `lines` adjacent units of each step of the depth into whole vectors, of which the lines beyond count for nothing; `available`: units that may be read there. */
KERNEL_INLINE void pack_steps(char* to, const char* from, int64_t ds, int64_t lines_bytes, int64_t available_bytes, int64_t depth) {
    const int64_t row = (lines_bytes + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
    if (available_bytes >= row && row == VECTOR_BYTES) copy_steps(to, from, ds, 1, depth);
    else if (available_bytes >= row && row == 2 * VECTOR_BYTES) copy_steps(to, from, ds, 2, depth);
    else
        for (int64_t k = 0; k < depth; k++) {
            memcpy(to + k * row, from + k * ds, lines_bytes);
            memset(to + k * row + lines_bytes, 0, row - lines_bytes);
        }
}
#endif
