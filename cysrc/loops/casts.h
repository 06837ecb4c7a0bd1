/* Conversion between any two dtypes: cast_<from>_<to>(x) for one element and cast_table[from][to] for a strided run, where there is a loop for the
 * pair; a type without loops is converted from and to the type it computes in, and through it to the others (trt_cast_via in core/stage.h).
 * PyTorch's rules: to bool is x != 0 (NaN is true), complex to real drops the imaginary part, narrowing integers wrap.
 * A float out of an integer type's range gives whatever the conversion instruction gives, and never traps.
 * Included by iteration_casts.c, which is compiled once per instruction set. */
#ifndef TRT_CASTS_H
#define TRT_CASTS_H

#include "scalar_types.h"

/* Each dtype is described by its compute type: LOAD brings an element there, STORE back. */
#define LOAD_b8(x) ((x) != 0)
#define LOAD_u8(x) (x)
#define LOAD_i8(x) (x)
#define LOAD_i16(x) (x)
#define LOAD_i32(x) (x)
#define LOAD_i64(x) (x)
#define LOAD_f16(x) ld_f16(x)
#define LOAD_bf16(x) ld_bf16(x)
#define LOAD_f32(x) (x)
#define LOAD_f64(x) (x)
#define LOAD_c64(x) (x)
#define LOAD_c128(x) (x)

/* from an integer or bool (any width) */
#define FROM_INT_b8(x) ((b8)((x) != 0))
#define FROM_INT_u8(x) ((u8)(x))
#define FROM_INT_i8(x) ((i8)(x))
#define FROM_INT_i16(x) ((i16)(x))
#define FROM_INT_i32(x) ((i32)(x))
#define FROM_INT_i64(x) ((i64)(x))
#define FROM_INT_f16(x) st_f16((f32)(x))
#define FROM_INT_bf16(x) st_bf16((f32)(x))
#define FROM_INT_f32(x) ((f32)(x))
#define FROM_INT_f64(x) ((f64)(x))
#define FROM_INT_c64(x) make_c64((f32)(x), 0.0f)
#define FROM_INT_c128(x) make_c128((f64)(x), 0.0)

/* From a real float. The narrow integers go through i32: -1.0 becomes 255 as uint8, and the loop vectorises. */
#define FROM_REAL_b8(x) ((b8)((x) != 0))
#define FROM_REAL_u8(x) ((u8)(i32)(x))
#define FROM_REAL_i8(x) ((i8)(i32)(x))
#define FROM_REAL_i16(x) ((i16)(i32)(x))
#define FROM_REAL_i32(x) ((i32)(x))
#define FROM_REAL_i64(x) ((i64)(x))
#define FROM_REAL_f16(x) st_f16((f32)(x))
#define FROM_REAL_bf16(x) st_bf16((f32)(x))
#define FROM_REAL_f32(x) ((f32)(x))
#define FROM_REAL_f64(x) ((f64)(x))
#define FROM_REAL_c64(x) make_c64((f32)(x), 0.0f)
#define FROM_REAL_c128(x) make_c128((f64)(x), 0.0)

/* from a complex number */
#define FROM_COMPLEX_b8(x) ((b8)((__real__(x) != 0) | (__imag__(x) != 0)))
#define FROM_COMPLEX_u8(x) FROM_REAL_u8(__real__(x))
#define FROM_COMPLEX_i8(x) FROM_REAL_i8(__real__(x))
#define FROM_COMPLEX_i16(x) FROM_REAL_i16(__real__(x))
#define FROM_COMPLEX_i32(x) FROM_REAL_i32(__real__(x))
#define FROM_COMPLEX_i64(x) FROM_REAL_i64(__real__(x))
#define FROM_COMPLEX_f16(x) FROM_REAL_f16(__real__(x))
#define FROM_COMPLEX_bf16(x) FROM_REAL_bf16(__real__(x))
#define FROM_COMPLEX_f32(x) FROM_REAL_f32(__real__(x))
#define FROM_COMPLEX_f64(x) FROM_REAL_f64(__real__(x))
#define FROM_COMPLEX_c64(x) make_c64((f32)__real__(x), (f32)__imag__(x))
#define FROM_COMPLEX_c128(x) make_c128((f64)__real__(x), (f64)__imag__(x))

typedef void (*cast_loop)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n);

/* One conversion and its loop. Strides are in bytes; elements may be unaligned, hence memcpy in the strided path. The
 * operands do not overlap, or are one and the same run of equal element size: the caller's check. A run that casts onto
 * itself reads each element before it writes it, so `omp simd` holds there too. */
#define DEFINE_CAST(KIND, FROM, TO)                                                                                  \
    INL TO cast_##FROM##_##TO(FROM x)                                                                                \
    {                                                                                                                \
        return FROM_##KIND##_##TO(LOAD_##FROM(x));                                                                   \
    }                                                                                                                \
    DEFINE_CAST_LOOP(FROM, TO)
#define DEFINE_CAST_LOOP(FROM, TO)                                                                                   \
    static void cast_loop_##FROM##_##TO(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n) \
    {                                                                                                                \
        if (dst_stride == (int64_t)sizeof(TO) && src_stride == (int64_t)sizeof(FROM)                                 \
            && (uintptr_t)dst % _Alignof(TO) == 0 && (uintptr_t)src % _Alignof(FROM) == 0) {                         \
            TO *d = (TO *)dst;                                                                                       \
            const FROM *s = (const FROM *)src;                                                                       \
            _Pragma("omp simd")                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                          \
                d[i] = cast_##FROM##_##TO(s[i]);                                                                     \
            return;                                                                                                  \
        }                                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            FROM x;                                                                                                  \
            memcpy(&x, src + i * src_stride, sizeof x);                                                              \
            TO y = cast_##FROM##_##TO(x);                                                                            \
            memcpy(dst + i * dst_stride, &y, sizeof y);                                                              \
        }                                                                                                            \
    }

#define DEFINE_CASTS_FROM(KIND, FROM)                                                                                \
    DEFINE_CAST(KIND, FROM, b8)                                                                                      \
    DEFINE_CAST(KIND, FROM, u8)                                                                                      \
    DEFINE_CAST(KIND, FROM, i8)                                                                                      \
    DEFINE_CAST(KIND, FROM, i16)                                                                                     \
    DEFINE_CAST(KIND, FROM, i32)                                                                                     \
    DEFINE_CAST(KIND, FROM, i64)                                                                                     \
    DEFINE_CAST(KIND, FROM, f16)                                                                                     \
    DEFINE_CAST(KIND, FROM, bf16)                                                                                    \
    DEFINE_CAST(KIND, FROM, f32)                                                                                     \
    DEFINE_CAST(KIND, FROM, f64)                                                                                     \
    DEFINE_CAST(KIND, FROM, c64)                                                                                     \
    DEFINE_CAST(KIND, FROM, c128)

DEFINE_CASTS_FROM(INT, b8)
DEFINE_CASTS_FROM(INT, u8)
DEFINE_CASTS_FROM(INT, i8)
DEFINE_CASTS_FROM(INT, i16)
DEFINE_CASTS_FROM(INT, i32)
DEFINE_CASTS_FROM(INT, i64)
DEFINE_CASTS_FROM(REAL, f16)
DEFINE_CASTS_FROM(REAL, bf16)
DEFINE_CASTS_FROM(REAL, f32)
DEFINE_CASTS_FROM(REAL, f64)
DEFINE_CASTS_FROM(COMPLEX, c64)
DEFINE_CASTS_FROM(COMPLEX, c128)

/* A type without loops and the type it computes in; the rest of what uint64 needs, whose upper half int64 has not. */
#define DEFINE_CASTS_OF(type, name, label, cpp, size, category, compute, ...)                                        \
    INL compute cast_##type##_##compute(type x) { return ld_##type(x); }                                             \
    INL type cast_##compute##_##type(compute x) { return st_##type(x); }                                             \
    DEFINE_CAST_LOOP(type, compute)                                                                                  \
    DEFINE_CAST_LOOP(compute, type)
TRT_STORAGE_DTYPES(DEFINE_CASTS_OF)
INL f32 cast_u64_f32(u64 x) { return (f32)x; }
INL f64 cast_u64_f64(u64 x) { return (f64)x; }
INL u64 cast_f64_u64(f64 x) { return real_as_u64(x); }
DEFINE_CAST_LOOP(u64, f32)
DEFINE_CAST_LOOP(u64, f64)
DEFINE_CAST_LOOP(f64, u64)

/* Copies, by size of the element: what no conversion changes is moved as bits. */
typedef struct { u64 low, high; } cast_bits_16;
#define DEFINE_MOVE(T, SIZE)                                                                                         \
    static void cast_move_##SIZE(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n)      \
    {                                                                                                                \
        if (dst_stride == SIZE && src_stride == SIZE)                                                                \
            memmove(dst, src, (size_t)n * SIZE);                                                                     \
        else if (dst_stride == SIZE && src_stride == -SIZE && (uintptr_t)dst % _Alignof(T) == 0                      \
                 && (uintptr_t)src % _Alignof(T) == 0) {                                                             \
            T *d = (T *)dst;                                                                                         \
            const T *s = (const T *)src;                                                                             \
            _Pragma("omp simd")                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                          \
                d[i] = s[-i];                                                                                        \
        } else                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                          \
                memcpy(dst + i * dst_stride, src + i * src_stride, SIZE);                                            \
    }
DEFINE_MOVE(u8, 1)
DEFINE_MOVE(i16, 2)
DEFINE_MOVE(u32, 4)
DEFINE_MOVE(u64, 8)
DEFINE_MOVE(cast_bits_16, 16)

/* The conversions with an instruction of their own. */
static void cast_loop_f16_f32_block(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n)
{
    if (dst_stride == 4 && src_stride == 2 && (uintptr_t)dst % 4 == 0 && (uintptr_t)src % 2 == 0)
        f16_to_f32_block((const f16 *)src, (f32 *)dst, n);
    else
        cast_loop_f16_f32(dst, dst_stride, src, src_stride, n);
}

static void cast_loop_f32_f16_block(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n)
{
    if (dst_stride == 2 && src_stride == 4 && (uintptr_t)dst % 2 == 0 && (uintptr_t)src % 4 == 0)
        f32_to_f16_block((const f32 *)src, (f16 *)dst, n);
    else
        cast_loop_f32_f16(dst, dst_stride, src, src_stride, n);
}

/* A complex half is two halves. */
static void cast_loop_c32_c64_block(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n)
{
    if (dst_stride == 8 && src_stride == 4 && (uintptr_t)dst % 4 == 0 && (uintptr_t)src % 2 == 0)
        f16_to_f32_block((const f16 *)src, (f32 *)dst, 2 * n);
    else
        cast_loop_c32_c64(dst, dst_stride, src, src_stride, n);
}

static void cast_loop_c64_c32_block(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n)
{
    if (dst_stride == 4 && src_stride == 8 && (uintptr_t)dst % 2 == 0 && (uintptr_t)src % 4 == 0)
        f32_to_f16_block((const f32 *)src, (f16 *)dst, 2 * n);
    else
        cast_loop_c64_c32(dst, dst_stride, src, src_stride, n);
}

#define CAST_CELL(FROM, TO) [DT_##FROM][DT_##TO] = cast_loop_##FROM##_##TO
#define CAST_ROW_OF(FROM)                                                                                            \
    CAST_CELL(FROM, b8), CAST_CELL(FROM, u8), CAST_CELL(FROM, i8), CAST_CELL(FROM, i16), CAST_CELL(FROM, i32),       \
        CAST_CELL(FROM, i64), CAST_CELL(FROM, f16), CAST_CELL(FROM, bf16), CAST_CELL(FROM, f32), CAST_CELL(FROM, f64), \
        CAST_CELL(FROM, c64), CAST_CELL(FROM, c128)
#define CAST_CELLS_OF(type, name, label, cpp, size, category, compute, ...)                                          \
    CAST_CELL(type, compute), CAST_CELL(compute, type), [DT_##type][DT_##type] = cast_move_##size,

__attribute__((unused)) static const cast_loop cast_table[NUM_DTYPES][NUM_DTYPES] = {
    CAST_ROW_OF(b8), CAST_ROW_OF(u8), CAST_ROW_OF(i8), CAST_ROW_OF(i16), CAST_ROW_OF(i32), CAST_ROW_OF(i64),
    CAST_ROW_OF(f16), CAST_ROW_OF(bf16), CAST_ROW_OF(f32), CAST_ROW_OF(f64), CAST_ROW_OF(c64), CAST_ROW_OF(c128),
    [DT_b8][DT_b8] = cast_move_1, [DT_u8][DT_u8] = cast_move_1, [DT_i8][DT_i8] = cast_move_1,
    [DT_i16][DT_i16] = cast_move_2, [DT_f16][DT_f16] = cast_move_2, [DT_bf16][DT_bf16] = cast_move_2,
    [DT_i32][DT_i32] = cast_move_4, [DT_f32][DT_f32] = cast_move_4, [DT_i64][DT_i64] = cast_move_8,
    [DT_f64][DT_f64] = cast_move_8, [DT_c64][DT_c64] = cast_move_8, [DT_c128][DT_c128] = cast_move_16,
    [DT_f16][DT_f32] = cast_loop_f16_f32_block, [DT_f32][DT_f16] = cast_loop_f32_f16_block,
    TRT_STORAGE_DTYPES(CAST_CELLS_OF)
    [DT_c32][DT_c64] = cast_loop_c32_c64_block, [DT_c64][DT_c32] = cast_loop_c64_c32_block,
    CAST_CELL(u64, f32), CAST_CELL(u64, f64), CAST_CELL(f64, u64),
};

#endif
