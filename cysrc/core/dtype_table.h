/* The element types, a row each: all that the program knows of a type is derived from here, in C and Cython (dtype.h, dtype.pxd), CUDA
 * (iteration.cuh), the generator (tools/codegen/dtypes.py) and Python (core/dtype.pyx). A row's position is the type's code.
 *
 * X(type        the loops' name of it; DT_<type> is its code
 *   name        Python's
 *   label       in messages; a storage of it is pickled as <label>Storage
 *   cpp         in PyTorch's C++ messages
 *   size        bytes of an element
 *   category    BOOL < INT < FLOAT < COMPLEX
 *   compute     the type that arithmetic is done in, through which a type without loops is converted to all others
 *   real        the type of the parts of a complex number, itself otherwise
 *   complex     the complex type that a number of it goes into
 *   digits      bits that are exact: of an integer without its sign, of a significand with the leading one; 0 for complex types
 *   largest     the largest finite value; 0 for complex types
 *   properties  SIGNED, NUMPY (NumPy has the type under the same name), LOOPS (operators compute with it; the others are stored, copied and cast)
 *   dlpack      DLPack's type code, -1 without one
 *   encoding    how elements are read and written: NATIVE (the type and its conversions are written out in scalar_types.h), INTEGER (C's), PAIR (two
 *               halves), and eight bits of sign, exponent and significand as IEEE has them (infinity and NaNs above the largest exponent), FN (finite, NaN
 *               is all ones), FNUZ (finite, one zero, NaN in the place of the other) or an exponent alone (POWER)
 *   cuda)       storage type in CUDA C++ (iteration.cuh)
 *
 * Types with loops come first. No code may compare codes by order: what a type is like, dtype.h's predicates tell. */
#ifndef TRT_DTYPE_TABLE_H
#define TRT_DTYPE_TABLE_H

#define TRT_KERNEL_DTYPES(X) \
  X(b8, "bool", "Bool", "bool", 1, BOOL, b8, b8, c64, 1, 1, TRT_NUMPY | TRT_LOOPS, 6, NATIVE, bool) \
  X(u8, "uint8", "Byte", "uint8_t", 1, INT, u8, u8, c64, 8, 255, TRT_NUMPY | TRT_LOOPS, 1, NATIVE, unsigned char) \
  X(i8, "int8", "Char", "int8_t", 1, INT, i8, i8, c64, 7, 127, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 0, NATIVE, signed char) \
  X(i16, "int16", "Short", "int16_t", 2, INT, i16, i16, c64, 15, 32767, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 0, NATIVE, short) \
  X(i32, "int32", "Int", "int", 4, INT, i32, i32, c64, 31, 2147483647, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 0, NATIVE, int) \
  X(i64, "int64", "Long", "int64_t", 8, INT, i64, i64, c64, 63, 9223372036854775807.0, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 0, NATIVE, long long) \
  X(f16, "float16", "Half", "c10::Half", 2, FLOAT, f32, f16, c32, 11, 65504, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 2, NATIVE, __half) \
  X(bf16, "bfloat16", "BFloat16", "c10::BFloat16", 2, FLOAT, f32, bf16, c64, 8, 3.3895313892515355e38, TRT_SIGNED | TRT_LOOPS, 4, NATIVE, __nv_bfloat16) \
  X(f32, "float32", "Float", "float", 4, FLOAT, f32, f32, c64, 24, 3.4028234663852886e38, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 2, NATIVE, float) \
  X(f64, "float64", "Double", "double", 8, FLOAT, f64, f64, c128, 53, 1.7976931348623157e308, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 2, NATIVE, double) \
  X(c64, "complex64", "ComplexFloat", "c10::complex<float>", 8, COMPLEX, c64, f32, c64, 0, 0, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 5, NATIVE, complex<float>) \
  X(c128, "complex128", "ComplexDouble", "c10::complex<double>", 16, COMPLEX, c128, f64, c128, 0, 0, TRT_SIGNED | TRT_NUMPY | TRT_LOOPS, 5, NATIVE, complex<double>)

#define TRT_STORAGE_DTYPES(X) \
  X(u16, "uint16", "UInt16", "uint16", 2, INT, i32, u16, c64, 16, 65535, TRT_NUMPY, 1, INTEGER, unsigned short) \
  X(u32, "uint32", "UInt32", "uint32", 4, INT, i64, u32, c64, 32, 4294967295.0, TRT_NUMPY, 1, INTEGER, unsigned int) \
  X(u64, "uint64", "UInt64", "uint64", 8, INT, i64, u64, c64, 64, 18446744073709551615.0, TRT_NUMPY, 1, INTEGER, unsigned long long) \
  X(f8e4m3, "float8_e4m3fn", "Float8_e4m3fn", "c10::Float8_e4m3fn", 1, FLOAT, f32, f8e4m3, c64, 4, 448, TRT_SIGNED, 10, FN, f8e4m3) \
  X(f8e5m2, "float8_e5m2", "Float8_e5m2", "c10::Float8_e5m2", 1, FLOAT, f32, f8e5m2, c64, 3, 57344, TRT_SIGNED, 12, IEEE, f8e5m2) \
  X(c32, "complex32", "ComplexHalf", "c10::complex<c10::Half>", 4, COMPLEX, c64, f16, c32, 0, 0, TRT_SIGNED, 5, PAIR, c32) \
  X(f8e4m3fnuz, "float8_e4m3fnuz", "Float8_e4m3fnuz", "c10::Float8_e4m3fnuz", 1, FLOAT, f32, f8e4m3fnuz, c64, 4, 240, TRT_SIGNED, 11, FNUZ, f8e4m3fnuz) \
  X(f8e5m2fnuz, "float8_e5m2fnuz", "Float8_e5m2fnuz", "c10::Float8_e5m2fnuz", 1, FLOAT, f32, f8e5m2fnuz, c64, 3, 57344, TRT_SIGNED, 13, FNUZ, f8e5m2fnuz) \
  X(f8e8m0, "float8_e8m0fnu", "Float8_e8m0fnu", "c10::Float8_e8m0fnu", 1, FLOAT, f32, f8e8m0, c64, 1, 1.7014118346046923e38, 0, 14, POWER, f8e8m0)

#define TRT_DTYPES(X) TRT_KERNEL_DTYPES(X) TRT_STORAGE_DTYPES(X)

#endif
