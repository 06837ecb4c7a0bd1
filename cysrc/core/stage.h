/* Staging for TensorIterator: transposes of tiles, fills, and the conversion of one number. */
#ifndef TRT_STAGE_H
#define TRT_STAGE_H
#include <stdint.h>
#include <string.h>
#include <wchar.h>
#include "scalar_types.h"
#include "transpose.h"

/* dst[r][c] = src[r * item + c * src_col_stride]: rows run along memory in src, columns in dst. Squares
 * are transposed in registers; some columns at a time, because columns a power of two apart share the sets of a cache. */
enum { TRANSPOSE_PANEL = 8 };

/* Rows [r0, r1) and columns [c0, c1) one element at a time: the edges. */
#define TRT_TRANSPOSE(type, r0, r1, c0, c1)                                                          \
  for (int64_t r = r0; r < r1; r++) {                                                                \
    type* d = (type*)(dst + r * dst_row);                                                            \
    for (int64_t c = c0; c < c1; c++) d[c] = *(const type*)(src + r * sizeof(type) + c * src_col_stride); \
  }
#define TRT_TRANSPOSE_SQUARES(type, square, side)                                                    \
  {                                                                                                  \
    enum { SIDE = side, PANEL = SIDE > TRANSPOSE_PANEL ? SIDE : TRANSPOSE_PANEL };                   \
    int64_t whole_rows = rows - rows % SIDE, whole_cols = cols - cols % SIDE;                        \
    for (int64_t c0 = 0; c0 < whole_cols; c0 += PANEL) {                                             \
      int64_t c1 = c0 + PANEL < whole_cols ? c0 + PANEL : whole_cols;                                \
      for (int64_t r = 0; r < whole_rows; r += SIDE)                                                 \
        for (int64_t c = c0; c < c1; c += SIDE)                                                      \
          square((const type*)(src + r * sizeof(type) + c * src_col_stride), src_col_stride / (int64_t)sizeof(type), (type*)(dst + r * dst_row) + c, dst_row / (int64_t)sizeof(type)); \
    }                                                                                                \
    TRT_TRANSPOSE(type, 0, whole_rows, whole_cols, cols)                                             \
    TRT_TRANSPOSE(type, whole_rows, rows, 0, cols)                                                   \
  }

static void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col_stride, int64_t rows, int64_t cols, int item) {
  switch (item) {
    case 1: TRT_TRANSPOSE_SQUARES(uint8_t, transpose_bytes, 16) break;
    case 2: TRT_TRANSPOSE_SQUARES(uint16_t, transpose_halves, 8) break;
    case 4: TRT_TRANSPOSE_SQUARES(uint32_t, transpose_words, SQUARE_BYTES / 4) break;
    case 8: TRT_TRANSPOSE_SQUARES(uint64_t, transpose_longs, SQUARE_BYTES / 8) break;
  }
}

/* Write n copies of one value; `value` may be dst itself. The C library's memset and wmemset have the widest stores of the processor. */
static void fill_words(uint32_t* dst, uint32_t v, int64_t n) {
  _Static_assert(sizeof(wchar_t) == 4, "wmemset fills words of 4 bytes");
  if (n < 32) for (int64_t i = 0; i < n; i++) dst[i] = v;
  else wmemset((wchar_t*)dst, (wchar_t)v, (size_t)n);
}
/* A KB, and copies of it by memcpy's wide stores. */
static void fill_by_copies(char* dst, const char* value, int64_t n, int item) {
  const int64_t first = n < 1024 / item ? n : 1024 / item;
  for (int64_t i = 0; i < first; i++) memcpy(dst + i * item, value, item);
  for (int64_t i = first; i < n; i += first) memcpy(dst + i * item, dst, item * (n - i < first ? n - i : first));
}
static void fill_block(char* dst, const char* value, int64_t n, int item) {
  if (item < 8 && ((uintptr_t)dst & (item - 1))) {  /* a view of bytes from an odd one on: wmemset steps over words of aligned memory alone */
    char v[4];
    memcpy(v, value, item);
    fill_by_copies(dst, v, n, item);
    return;
  }
  switch (item) {
    case 1: memset(dst, *(const uint8_t*)value, n); break;
    case 2: {
      uint16_t v;
      memcpy(&v, value, 2);
      if (n > 0 && ((uintptr_t)dst & 2)) { memcpy(dst, &v, 2); dst += 2; n--; }
      if (n & 1) memcpy(dst + 2 * (n - 1), &v, 2);
      fill_words((uint32_t*)dst, v | (uint32_t)v << 16, n / 2);
      break;
    }
    case 4: { uint32_t v; memcpy(&v, value, 4); fill_words((uint32_t*)dst, v, n); break; }
    default: {
      uint64_t v[2] = {0, 0};
      memcpy(v, value, item);
      if (!(v[0] | v[1])) memset(dst, 0, item * n);
      else {  /* a KB, and copies of it by memcpy's wide stores */
        const int64_t first = n < 1024 / item ? n : 1024 / item;
        for (int64_t i = 0; i < first; i++) memcpy(dst + i * item, v, item == 8 ? 8 : 16);
        for (int64_t i = first; i < n; i += first) memcpy(dst + i * item, dst, item * (n - i < first ? n - i : first));
      }
    }
  }
}

/* The loop of a copy whose rows are runs of a few bytes on both sides: `bytes`, moved by a first and a last piece that may overlap. */
#define TRT_MOVE(type, at) (*(type*)(dst + (at)) = *(const type*)(src + (at)))
#define TRT_SHORT_ROWS(type, condition)                                                              \
  if (condition) {                                                                                   \
    const int64_t last = bytes - (int64_t)sizeof(type);                                              \
    for (int64_t i = 0; i < n; i++, dst += stride[0], src += stride[1]) {                            \
      const type head = *(const type*)src, tail = *(const type*)(src + last);                        \
      *(type*)dst = head;                                                                            \
      for (int64_t at = sizeof(type); at < last; at += sizeof(type)) TRT_MOVE(type, at);             \
      *(type*)(dst + last) = tail;                                                                   \
    }                                                                                                \
    return;                                                                                          \
  }
static void short_rows_run(char** data, const int64_t* stride, int64_t n, const Scalar* row) {
  typedef uint64_t vector __attribute__((vector_size(16), aligned(1), may_alias));
  typedef uint64_t word8 __attribute__((aligned(1), may_alias));
  typedef uint32_t word4 __attribute__((aligned(1), may_alias));
  typedef uint16_t word2 __attribute__((aligned(1), may_alias));
  char* dst = data[0];
  const char* src = data[1];
  const int64_t bytes = row->i;
  TRT_SHORT_ROWS(vector, bytes == 32)
  TRT_SHORT_ROWS(vector, bytes >= 16)
  TRT_SHORT_ROWS(word8, bytes >= 8)
  TRT_SHORT_ROWS(word4, bytes >= 4)
  TRT_SHORT_ROWS(word2, bytes >= 2)
  TRT_SHORT_ROWS(char, 1)
}

/* The loop of a copy whose rows repeat an element, of `kind` bytes `i` times, and follow one another: stores of 16 bytes reach into the next row, whose own
 * follow, but for the last rows, which end where they end. */
enum { REPEATED_BYTES = 128 /* of a row at most: a longer one is a loop of its own */, REPEATED_ROWS = 3 /* repeats of a row up to which all rows are copied that often */ };
#define TRT_REPEAT(type)                                                                             \
  {                                                                                                  \
    typedef type vector __attribute__((vector_size(16)));                                            \
    typedef vector vector_u __attribute__((aligned(sizeof(type)), may_alias));                       \
    const int64_t row = count * (int64_t)sizeof(type), whole = n - (15 + row) / row;                 \
    int64_t i = 0;                                                                                   \
    for (; i < whole; i++, dst += row, src += src_stride) {                                          \
      const vector v = (vector){0} + *(const type*)src;                                              \
      for (int64_t at = 0; at < row; at += 16) *(vector_u*)(dst + at) = v;                           \
    }                                                                                                \
    for (; i < n; i++, dst += row, src += src_stride)                                                \
      for (int64_t j = 0; j < count; j++) ((type*)dst)[j] = *(const type*)src;                       \
  }
static int is_repeated(int64_t count, int item, int64_t dst_stride, int64_t dst_row, int64_t src_stride) {
  return item <= 8 && src_stride == 0 && dst_stride == item && dst_row == count * item && dst_row <= REPEATED_BYTES;
}
static void repeat_run(char** data, const int64_t* stride, int64_t n, const Scalar* repeated) {
  char* dst = data[0];
  const char* src = data[1];
  const int64_t src_stride = stride[1], count = repeated->i;
  switch (repeated->kind) {
    case 1: TRT_REPEAT(uint8_t) break;
    case 2: TRT_REPEAT(uint16_t) break;
    case 4: TRT_REPEAT(uint32_t) break;
    case 8: TRT_REPEAT(uint64_t) break;
  }
}

/* n strided elements, one after the other; steps of two to four elements are shuffles of whole vectors. */
static void gather_run(char* dst, const char* src, int64_t stride, int64_t n, int item) {
#define TRT_STEP(type, step)                                                                         \
  if (stride == step * (int64_t)sizeof(type)) {                                                      \
    for (int64_t i = 0; i < n; i++) ((type*)dst)[i] = ((const type*)src)[step * i];                  \
    return;                                                                                          \
  }
#define TRT_STEPS(type)                                                                              \
  TRT_STEP(type, 2) TRT_STEP(type, 3) TRT_STEP(type, 4)                                              \
  for (int64_t i = 0; i < n; i++) ((type*)dst)[i] = *(const type*)(src + i * stride);                \
  return;
  typedef struct { uint64_t half[2]; } pair;
  switch (item) {
    case 1: TRT_STEPS(uint8_t)
    case 2: TRT_STEPS(uint16_t)
    case 4: TRT_STEPS(uint32_t)
    case 8: TRT_STEPS(uint64_t)
    default: TRT_STEPS(pair)
  }
#undef TRT_STEP
#undef TRT_STEPS
}

/* Rows of n elements, strided in both ways, one after the other. */
static void gather_rows(char* dst, const char* src, int64_t row_stride, int64_t stride, int64_t rows, int64_t n, int item) {
#define TRT_GATHER(type)                                                                             \
  for (int64_t r = 0; r < rows; r++, src += row_stride, dst += n * (int64_t)sizeof(type))            \
    for (int64_t i = 0; i < n; i++) ((type*)dst)[i] = *(const type*)(src + i * stride);
  typedef struct { uint64_t half[2]; } pair;
  switch (item) {
    case 1: TRT_GATHER(uint8_t) break;
    case 2: TRT_GATHER(uint16_t) break;
    case 4: TRT_GATHER(uint32_t) break;
    case 8: TRT_GATHER(uint64_t) break;
    default: TRT_GATHER(pair)
  }
#undef TRT_GATHER
}

/* The loop of a copy with fixed strides: a run of one element. */
static void fill_run(char** data, const int64_t* stride, int64_t n, const Scalar* row) {
  (void)stride;
  fill_block(data[0], data[1], n, row->kind);
}

static void swap_dimensions(int64_t* sizes, int64_t* to, int64_t* from, int a, int b) {
  int64_t kept = sizes[a];
  sizes[a] = sizes[b], sizes[b] = kept;
  kept = to[a], to[a] = to[b], to[b] = kept;
  kept = from[a], from[a] = from[b], from[b] = kept;
}

/* A loop for what a copy's fastest dimensions look like, with `row` as its parameter; NULL where none fits better than that of the types. Where the loop
 * has dimension 0 to itself, it is taken out. */
static void (*choose_copy_loop(int* ndim, int64_t* sizes, int64_t* to, int64_t* from, int item, int same_type, Scalar* row))(char**, const int64_t*, int64_t, const Scalar*) {
  void (*loop)(char**, const int64_t*, int64_t, const Scalar*) = NULL;
  const int more = *ndim > 1;
  row->i = sizes[0];
  row->kind = item;
  if (*ndim > 2 && same_type && to[0] == item && from[0] == item && sizes[0] * item <= REPEATED_BYTES && from[1] == 0 && from[2] && sizes[1] <= REPEATED_ROWS && sizes[2] >= sizes[1])
    swap_dimensions(sizes, to, from, 1, 2);  /* a short row a few times: all rows once, and again */
  if (more && same_type && is_repeated(sizes[0], item, to[0], to[1], from[0])) loop = repeat_run;
  else if (more && same_type && to[0] == item && from[0] == item && sizes[0] * item <= REPEATED_BYTES) {
    row->i *= item;
    loop = short_rows_run;
  } else if (more && sizes[0] < 8 && sizes[1] >= 4 * sizes[0] && sizes[1] <= 4096) {
    /* rows of a few elements: the next dimension, strided, costs less than a call for each of them, and its cache lines stay near */
    swap_dimensions(sizes, to, from, 0, 1);
  }
  if (loop) {
    (*ndim)--;
    for (int k = 0; k < *ndim; k++) sizes[k] = sizes[k + 1], to[k] = to[k + 1], from[k] = from[k + 1];
  } else if (same_type && from[0] == 0 && to[0] == item) loop = fill_run;
  return loop;
}

typedef void (*trt_cast_fn)(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n);
typedef trt_cast_fn trt_cast_row[NUM_DTYPES];

/* The loop of a copy: a conversion or a move, passed in the place of parameters. */
static void convert_run(char** data, const int64_t* stride, int64_t n, const Scalar* conversion) {
  ((trt_cast_fn)(void*)conversion)(data[0], stride[0], data[1], stride[1], n);
}

/* A conversion, by blocks through another type where the table has none for the pair. Strides in bytes. */
static void trt_convert(const trt_cast_fn (*table)[NUM_DTYPES], int to, char* dst, int64_t dst_stride, int from, const char* src, int64_t src_stride, int64_t n) {
  enum { BLOCK = 256 };
  if (table[from][to]) {
    table[from][to](dst, dst_stride, src, src_stride, n);
    return;
  }
  char stage[BLOCK * 16] __attribute__((aligned(64)));
  const int via = trt_cast_via(from, to), item = trt_item_size[via];
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t count = n - i < BLOCK ? n - i : BLOCK;
    trt_convert(table, via, stage, item, from, src + i * src_stride, src_stride, count);
    trt_convert(table, to, dst + i * dst_stride, dst_stride, via, stage, item, count);
  }
}

/* A number in a type without loops, by way of the type it computes in. */
static void trt_store_converted(char* d, int dtype, const Scalar* v) {
  switch (dtype) {
#define TRT_ROW_PUT(type, name, label, cpp, size, category, compute, ...) \
    case DT_##type: { type x = st_##type(par_##compute(v)); memcpy(d, &x, size); break; }
    TRT_STORAGE_DTYPES(TRT_ROW_PUT)
#undef TRT_ROW_PUT
  }
}

static inline int64_t trt_whole(const Scalar* v) { return v->kind <= 1 || v->kind == SCALAR_UNSIGNED ? v->i : (int64_t)v->d; }

static void store_scalar(char* d, int dtype, const Scalar* v) {
  switch (dtype) {
    case DT_b8: *(uint8_t*)d = v->kind <= 1 ? v->i != 0 : (v->d != 0 || v->im != 0); break;
    case DT_u8: *(uint8_t*)d = (uint8_t)trt_whole(v); break;
    case DT_i8: *(int8_t*)d = (int8_t)trt_whole(v); break;
    case DT_i16: *(int16_t*)d = (int16_t)trt_whole(v); break;
    case DT_i32: *(int32_t*)d = (int32_t)trt_whole(v); break;
    case DT_i64: *(int64_t*)d = trt_whole(v); break;
    case DT_f16: { f16 h = st_f16((float)v->d); memcpy(d, &h, 2); break; }
    case DT_bf16: { bf16 h = st_bf16((float)v->d); memcpy(d, &h, 2); break; }
    case DT_f32: *(float*)d = (float)v->d; break;
    case DT_f64: *(double*)d = v->d; break;
    case DT_c64: ((float*)d)[0] = (float)v->d; ((float*)d)[1] = (float)v->im; break;
    case DT_c128: ((double*)d)[0] = v->d; ((double*)d)[1] = v->im; break;
    case DT_u64: *(uint64_t*)d = v->kind <= 1 || v->kind == SCALAR_UNSIGNED ? (uint64_t)v->i : real_as_u64(v->d); break;
    default: trt_store_converted(d, dtype, v);
  }
}

/* One element as a number: of uint64 the bits, as an int64. */
static void trt_load_scalar(const char* p, int dtype, Scalar* v) {
  v->kind = trt_category[dtype];
  v->d = v->im = 0;
  v->i = 0;
  switch (dtype) {
    case DT_b8: v->i = *(const uint8_t*)p != 0; break;
    case DT_u8: v->i = *(const uint8_t*)p; break;
    case DT_i8: v->i = *(const int8_t*)p; break;
    case DT_i16: v->i = *(const int16_t*)p; break;
    case DT_i32: v->i = *(const int32_t*)p; break;
    case DT_i64: v->i = *(const int64_t*)p; break;
    case DT_f16: { f16 h; memcpy(&h, p, 2); v->d = ld_f16(h); break; }
    case DT_bf16: { bf16 h; memcpy(&h, p, 2); v->d = ld_bf16(h); break; }
    case DT_f32: v->d = *(const float*)p; break;
    case DT_f64: v->d = *(const double*)p; break;
    case DT_c64: v->d = ((const float*)p)[0]; v->im = ((const float*)p)[1]; break;
    case DT_c128: v->d = ((const double*)p)[0]; v->im = ((const double*)p)[1]; break;
#define TRT_NUMBER_INT(x) v->i = (int64_t)(x)
#define TRT_NUMBER_FLOAT(x) v->d = (x)
#define TRT_NUMBER_COMPLEX(x) v->d = __real__(x), v->im = __imag__(x)
#define TRT_ROW_LOAD(type, name, label, cpp, size, category, ...) \
    case DT_##type: { type x; memcpy(&x, p, size); TRT_NUMBER_##category(ld_##type(x)); break; }
    TRT_STORAGE_DTYPES(TRT_ROW_LOAD)
#undef TRT_ROW_LOAD
  }
  /* store_scalar reads an integer by either member */
  if (v->kind <= 1) v->d = dtype == DT_u64 ? (double)(uint64_t)v->i : (double)v->i;
}
#endif
