// The C library's mathematics: nvcc takes it from math.h; NVRTC knows the functions without a header and has no math.h, whose
// constants stand here (usable in constant expressions, which __int_as_float is not).
#pragma once

#ifdef __CUDACC_RTC__
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#define NAN (__builtin_bit_cast(float, 0x7fffffff))
#else
#include <math.h>
#endif
