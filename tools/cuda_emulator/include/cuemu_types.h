// CUDA's built-in vector types with the sizes and alignments of the programming guide, and their make_ functions.
#pragma once

#define CUEMU_VECTORS(T, name, align2, align4)                                                        \
    struct name##1 { T x; };                                                                          \
    struct alignas(align2) name##2 { T x, y; };                                                       \
    struct name##3 { T x, y, z; };                                                                    \
    struct alignas(align4) name##4 { T x, y, z, w; };                                                 \
    static inline name##1 make_##name##1(T x) { return {x}; }                                         \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                 \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                         \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define CUEMU_VECTORS_WITHOUT_3(T, name, align2, align4)                                              \
    struct name##1 { T x; };                                                                          \
    struct alignas(align2) name##2 { T x, y; };                                                       \
    struct alignas(align4) name##4 { T x, y, z, w; };                                                 \
    static inline name##1 make_##name##1(T x) { return {x}; }                                         \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                 \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUEMU_VECTORS(signed char, char, 2, 4)
CUEMU_VECTORS(unsigned char, uchar, 2, 4)
CUEMU_VECTORS(short, short, 4, 8)
CUEMU_VECTORS(unsigned short, ushort, 4, 8)
CUEMU_VECTORS(int, int, 8, 16)
CUEMU_VECTORS_WITHOUT_3(unsigned, uint, 8, 16)  // uint3 is in cuemu_runtime.h: threadIdx has that type
CUEMU_VECTORS(long long, longlong, 16, 16)
CUEMU_VECTORS(unsigned long long, ulonglong, 16, 16)
CUEMU_VECTORS(float, float, 8, 16)
CUEMU_VECTORS(double, double, 16, 16)

#undef CUEMU_VECTORS
#undef CUEMU_VECTORS_WITHOUT_3

static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
