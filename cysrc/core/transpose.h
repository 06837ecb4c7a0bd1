/* Transposition of squares, a vector of the widest kind that the file is compiled for a side: quarters of 16 bytes are gathered by loads, and transposed
   inside. Rows are `from_row` and `to_row` elements apart, of any alignment that elements have. */
#ifndef TRT_TRANSPOSE_H
#define TRT_TRANSPOSE_H
#include <stdint.h>

#if defined(__AVX512F__)
#define SQUARE_BYTES 64
#elif defined(__AVX2__)
#define SQUARE_BYTES 32
#else
#define SQUARE_BYTES 16
#endif
#define SQUARE_INLINE static inline __attribute__((always_inline, unused))
#define SQUARE_UNROLL _Pragma("GCC unroll 16")

typedef uint32_t square_quarter __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t square_words __attribute__((vector_size(SQUARE_BYTES), may_alias));
typedef square_words square_words_u __attribute__((aligned(4)));
typedef uint64_t square_longs __attribute__((vector_size(SQUARE_BYTES), may_alias));

/* The quarters at p, p + row, ... bytes, as one vector. */
SQUARE_INLINE square_words gather_quarters(const char* p, int64_t row) {
#if SQUARE_BYTES == 16
  return (square_words) * (const square_quarter*)p;
#else
  /* inserted by name: shuffles of vectors become two instructions each */
  typedef long long two_longs __attribute__((vector_size(16))), four_longs __attribute__((vector_size(32)));
  typedef int four_ints __attribute__((vector_size(16))), ints __attribute__((vector_size(SQUARE_BYTES)));
#if SQUARE_BYTES == 32
  four_longs v = (four_longs)__builtin_ia32_si256_si((four_ints) * (const square_quarter*)p);
  return (square_words)__builtin_ia32_insert128i256(v, (two_longs) * (const square_quarter*)(p + row), 1);
#else
  ints v = __builtin_ia32_broadcasti32x4_512((four_ints) * (const square_quarter*)p, (ints){0}, -1);
  v = __builtin_ia32_inserti32x4_mask(v, (four_ints) * (const square_quarter*)(p + row), 1, v, -1);
  v = __builtin_ia32_inserti32x4_mask(v, (four_ints) * (const square_quarter*)(p + 2 * row), 2, v, -1);
  return (square_words)__builtin_ia32_inserti32x4_mask(v, (four_ints) * (const square_quarter*)(p + 3 * row), 3, v, -1);
#endif
#endif
}

/* Within each 16 bytes: the low (high) elements of a and b by turns. */
SQUARE_INLINE square_words interleave_words(square_words a, square_words b, const int high) {
  square_words order;
  SQUARE_UNROLL for (int i = 0; i < SQUARE_BYTES / 4; i++) order[i] = i / 4 * 4 + 2 * high + i % 4 / 2 + (i & 1) * (SQUARE_BYTES / 4);
  return __builtin_shuffle(a, b, order);
}
SQUARE_INLINE square_words interleave_longs(square_words a, square_words b, const int high) {
  square_longs order;
  SQUARE_UNROLL for (int i = 0; i < SQUARE_BYTES / 8; i++) order[i] = i / 2 * 2 + high + (i & 1) * (SQUARE_BYTES / 8);
  return (square_words)__builtin_shuffle((square_longs)a, (square_longs)b, order);
}

SQUARE_INLINE void transpose_words(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row) {
  const int64_t bytes = 4 * from_row;
  SQUARE_UNROLL for (int j = 0; j < SQUARE_BYTES / 4; j += 4) {
    square_words v[4];
    SQUARE_UNROLL for (int i = 0; i < 4; i++) v[i] = gather_quarters((const char*)(from + j) + i * bytes, 4 * bytes);
    square_words a = interleave_words(v[0], v[1], 0), b = interleave_words(v[0], v[1], 1), c = interleave_words(v[2], v[3], 0), d = interleave_words(v[2], v[3], 1);
    *(square_words_u*)(to + j * to_row) = interleave_longs(a, c, 0);
    *(square_words_u*)(to + (j + 1) * to_row) = interleave_longs(a, c, 1);
    *(square_words_u*)(to + (j + 2) * to_row) = interleave_longs(b, d, 0);
    *(square_words_u*)(to + (j + 3) * to_row) = interleave_longs(b, d, 1);
  }
}
SQUARE_INLINE void transpose_longs(const uint64_t* from, int64_t from_row, uint64_t* to, int64_t to_row) {
  const int64_t bytes = 8 * from_row;
  SQUARE_UNROLL for (int j = 0; j < SQUARE_BYTES / 8; j += 2) {
    square_words a = gather_quarters((const char*)(from + j), 2 * bytes), b = gather_quarters((const char*)(from + j) + bytes, 2 * bytes);
    *(square_words_u*)(to + j * to_row) = interleave_longs(a, b, 0);
    *(square_words_u*)(to + (j + 1) * to_row) = interleave_longs(a, b, 1);
  }
}

/* Squares of 16 bytes a side: interleaving the upper with the lower half of the rows, as often as the side can be halved, transposes. */
#define TRT_DEFINE_SMALL_SQUARE(NAME, T, SIDE)                                                                       \
  SQUARE_INLINE void NAME(const T* from, int64_t from_row, T* to, int64_t to_row) {                                  \
    typedef T row __attribute__((vector_size(16), may_alias));                                                       \
    typedef T row_u __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));                                 \
    row v[SIDE], w[SIDE], low, high;                                                                                 \
    SQUARE_UNROLL for (int i = 0; i < SIDE; i++) low[i] = i / 2 + (i & 1) * SIDE, high[i] = low[i] + SIDE / 2;       \
    SQUARE_UNROLL for (int i = 0; i < SIDE; i++) v[i] = *(const row_u*)(from + i * from_row);                        \
    SQUARE_UNROLL for (int side = SIDE; side > 1; side /= 2) {                                                       \
      SQUARE_UNROLL for (int i = 0; i < SIDE / 2; i++) {                                                             \
        w[2 * i] = __builtin_shuffle(v[i], v[i + SIDE / 2], low);                                                    \
        w[2 * i + 1] = __builtin_shuffle(v[i], v[i + SIDE / 2], high);                                               \
      }                                                                                                              \
      SQUARE_UNROLL for (int i = 0; i < SIDE; i++) v[i] = w[i];                                                      \
    }                                                                                                                \
    SQUARE_UNROLL for (int i = 0; i < SIDE; i++) *(row_u*)(to + i * to_row) = v[i];                                  \
  }
TRT_DEFINE_SMALL_SQUARE(transpose_bytes, uint8_t, 16)
TRT_DEFINE_SMALL_SQUARE(transpose_halves, uint16_t, 8)
#endif
