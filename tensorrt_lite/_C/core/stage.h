/* Staging for TensorIterator: transposes of tiles, fills, and the conversion of one number. */
#ifndef TRT_STAGE_H
#define TRT_STAGE_H
#include <stdint.h>
#include <string.h>
#include "../loops/scalar_types.h"

/* dst[r][c] = src[r * item + c * src_col_stride]: rows run along memory in src, columns in dst. */
#define TRT_TRANSPOSE(type)                                                                          \
  for (int64_t c0 = 0; c0 < cols; c0 += 16) {                                                        \
    int64_t c1 = c0 + 16 < cols ? c0 + 16 : cols;                                                    \
    for (int64_t r0 = 0; r0 < rows; r0 += 16) {                                                      \
      int64_t r1 = r0 + 16 < rows ? r0 + 16 : rows;                                                  \
      for (int64_t r = r0; r < r1; r++) {                                                            \
        type* d = (type*)(dst + r * dst_row);                                                        \
        for (int64_t c = c0; c < c1; c++) d[c] = *(const type*)(src + r * sizeof(type) + c * src_col_stride); \
      }                                                                                              \
    }                                                                                                \
  }

static void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col_stride, int64_t rows, int64_t cols, int item) {
  switch (item) {
    case 1: TRT_TRANSPOSE(uint8_t) break;
    case 2: TRT_TRANSPOSE(uint16_t) break;
    case 4: TRT_TRANSPOSE(uint32_t) break;
    case 8: TRT_TRANSPOSE(uint64_t) break;
  }
}

/* Write n copies of one value; `value` may be dst itself. */
static void fill_block(char* dst, const char* value, int64_t n, int item) {
  switch (item) {
    case 1: memset(dst, *(const uint8_t*)value, n); break;
    case 2: { uint16_t v; memcpy(&v, value, 2); for (int64_t i = 0; i < n; i++) ((uint16_t*)dst)[i] = v; break; }
    case 4: { uint32_t v; memcpy(&v, value, 4); for (int64_t i = 0; i < n; i++) ((uint32_t*)dst)[i] = v; break; }
    case 8: { uint64_t v; memcpy(&v, value, 8); for (int64_t i = 0; i < n; i++) ((uint64_t*)dst)[i] = v; break; }
    case 16: { uint64_t v[2]; memcpy(v, value, 16); for (int64_t i = 0; i < n; i++) { ((uint64_t*)dst)[2 * i] = v[0]; ((uint64_t*)dst)[2 * i + 1] = v[1]; } break; }
  }
}

static void store_scalar(char* d, int dtype, const Scalar* v) {
  switch (dtype) {
    case 0: *(uint8_t*)d = v->kind <= 1 ? v->i != 0 : (v->d != 0 || v->im != 0); break;
    case 1: *(uint8_t*)d = (uint8_t)(v->kind <= 1 ? v->i : (int64_t)v->d); break;
    case 2: *(int8_t*)d = (int8_t)(v->kind <= 1 ? v->i : (int64_t)v->d); break;
    case 3: *(int16_t*)d = (int16_t)(v->kind <= 1 ? v->i : (int64_t)v->d); break;
    case 4: *(int32_t*)d = (int32_t)(v->kind <= 1 ? v->i : (int64_t)v->d); break;
    case 5: *(int64_t*)d = v->kind <= 1 ? v->i : (int64_t)v->d; break;
    case 6: { f16 h = st_f16((float)v->d); memcpy(d, &h, 2); break; }
    case 7: { bf16 h = st_bf16((float)v->d); memcpy(d, &h, 2); break; }
    case 8: *(float*)d = (float)v->d; break;
    case 9: *(double*)d = v->d; break;
    case 10: ((float*)d)[0] = (float)v->d; ((float*)d)[1] = (float)v->im; break;
    case 11: ((double*)d)[0] = v->d; ((double*)d)[1] = v->im; break;
  }
}
static inline float trt_read_f16(const char* p) { f16 h; memcpy(&h, p, 2); return ld_f16(h); }
static inline float trt_read_bf16(const char* p) { bf16 h; memcpy(&h, p, 2); return ld_bf16(h); }
#endif
