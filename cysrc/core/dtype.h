/* Codes, tables and predicates of the element types (dtype_table.h). A predicate is a shift of a constant: what an ordering
   comparison of codes costs, and right for every type that is still to come. The names are those of PyTorch's ScalarType.h. */
#ifndef TRT_DTYPE_H
#define TRT_DTYPE_H
#include "dtype_table.h"

enum { TRT_CAT_BOOL, TRT_CAT_INT, TRT_CAT_FLOAT, TRT_CAT_COMPLEX };
enum { TRT_SIGNED = 1, TRT_NUMPY = 2, TRT_LOOPS = 4 };

#define TRT_ROW_CODE(type, ...) DT_##type,
enum { TRT_DTYPES(TRT_ROW_CODE) NUM_DTYPES };
#undef TRT_ROW_CODE

#define TRT_ROW_SIZE(type, name, label, cpp, size, ...) size,
static const int trt_item_size[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_SIZE)};
#undef TRT_ROW_SIZE

#define TRT_ROW_CATEGORY(type, name, label, cpp, size, category, ...) TRT_CAT_##category,
static const int trt_category[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_CATEGORY)};
#undef TRT_ROW_CATEGORY

#define TRT_ROW_COMPUTE(type, name, label, cpp, size, category, compute, ...) DT_##compute,
static const signed char trt_compute_type[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_COMPUTE)};
#undef TRT_ROW_COMPUTE

#define TRT_ROW_REAL(type, name, label, cpp, size, category, compute, real, ...) DT_##real,
static const signed char trt_real_type[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_REAL)};
#undef TRT_ROW_REAL

#define TRT_ROW_COMPLEX(type, name, label, cpp, size, category, compute, real, complex_, ...) DT_##complex_,
static const signed char trt_complex_type[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_COMPLEX)};
#undef TRT_ROW_COMPLEX

#define TRT_ROW_DIGITS(type, name, label, cpp, size, category, compute, real, complex_, digits, ...) digits,
static const int trt_digits[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_DIGITS)};
#undef TRT_ROW_DIGITS

#define TRT_ROW_LARGEST(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, ...) largest,
static const double trt_largest[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_LARGEST)};
#undef TRT_ROW_LARGEST

#define TRT_ROW_DLPACK(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, ...) dlpack,
static const signed char trt_dlpack_code[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_DLPACK)};
#undef TRT_ROW_DLPACK

/* Sets of types as bits by code. */
#define TRT_ROW_OF(type, name, label, cpp, size, category, ...) (1u << DT_##type) * (TRT_CAT_##category == TRT_WANTED) |
enum { TRT_NUM_DTYPES_FITS_A_SET = 1 / (NUM_DTYPES <= 32) };
#define TRT_WANTED TRT_CAT_INT
static const unsigned trt_integral_types = TRT_DTYPES(TRT_ROW_OF) 0;
#undef TRT_WANTED
#define TRT_WANTED TRT_CAT_FLOAT
static const unsigned trt_floating_types = TRT_DTYPES(TRT_ROW_OF) 0;
#undef TRT_WANTED
#define TRT_WANTED TRT_CAT_COMPLEX
static const unsigned trt_complex_types = TRT_DTYPES(TRT_ROW_OF) 0;
#undef TRT_WANTED
#undef TRT_ROW_OF
#define TRT_ROW_WITH(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, ...) \
  (1u << DT_##type) * (((properties) & TRT_WANTED) != 0) |
#define TRT_WANTED TRT_SIGNED
static const unsigned trt_signed_types = TRT_DTYPES(TRT_ROW_WITH) 0;
#undef TRT_WANTED
#define TRT_WANTED TRT_LOOPS
static const unsigned trt_loop_types = TRT_DTYPES(TRT_ROW_WITH) 0;
#undef TRT_WANTED
#undef TRT_ROW_WITH
#define TRT_ROW_REDUCED(type, name, label, cpp, size, category, compute, ...) (1u << DT_##type) * (DT_##compute != DT_##type) |
static const unsigned trt_converted_types = TRT_DTYPES(TRT_ROW_REDUCED) 0;
#undef TRT_ROW_REDUCED
/* The type of the loops that serve a type: its own where it has any, otherwise those of the type it computes in. */
#define TRT_ROW_LOOP(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, ...) \
  (properties) & TRT_LOOPS ? DT_##type : DT_##compute,
static const signed char trt_loop_type[NUM_DTYPES] = {TRT_DTYPES(TRT_ROW_LOOP)};
#undef TRT_ROW_LOOP

static inline int trt_is_integral_type(int dtype) { return trt_integral_types >> dtype & 1; }                       /* bool is none */
static inline int trt_is_integral_or_bool_type(int dtype) { return (trt_integral_types | 1u << DT_b8) >> dtype & 1; }
static inline int trt_is_floating_type(int dtype) { return trt_floating_types >> dtype & 1; }                       /* real ones */
static inline int trt_is_complex_type(int dtype) { return trt_complex_types >> dtype & 1; }
static inline int trt_is_reduced_floating_type(int dtype) { return (trt_floating_types & trt_converted_types) >> dtype & 1; } /* computes in float */
static inline int trt_is_signed_type(int dtype) { return trt_signed_types >> dtype & 1; }
static inline int trt_has_loops(int dtype) { return trt_loop_types >> dtype & 1; }
/* Floats and complex numbers that compute in themselves: what BLAS and LAPACK have routines for. */
static inline int trt_is_blas_type(int dtype) { return ((trt_floating_types | trt_complex_types) & ~trt_converted_types) >> dtype & 1; }
/* The type that a conversion without a loop of its own passes through: what one of the two computes in. An unsigned integer that is wider than that goes to
   and from floating-point types by one of theirs. */
static inline int trt_cast_via(int from, int to) {
  int stored = trt_has_loops(from) ? to : from, other = stored == from ? to : from;
  if (trt_digits[stored] <= trt_digits[trt_compute_type[stored]] || trt_is_integral_or_bool_type(other)) return trt_compute_type[stored];
  return stored == to ? DT_f64 : trt_real_type[trt_loop_type[other]] == DT_f64 ? DT_f64 : DT_f32;
}

#endif
