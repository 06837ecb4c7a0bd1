/* The 8-bit formats of floating-point numbers, by the encodings of dtype_table.h: for the loops, and as text for CUDA. Whoever includes it defines
 * TRT_FLOAT8_FUNCTION (what stands before a function) and has trt_bits_of_float, trt_float_of_bits. Branch free, so that loops vectorise. */
#ifndef TRT_FLOAT8_H
#define TRT_FLOAT8_H

/* Eight bits of sign, exponent and significand. IEEE: as the halves (Micikevicius et al., "FP8 Formats for Deep Learning", 2022); FN and FNUZ: without
 * infinity, the latter with a bias that is greater by one. `digits` counts the leading one. The steps are those of the halves: the value is the bits read
 * as a float, scaled by a power of two. */
enum { FLOAT8_IEEE, FLOAT8_FN, FLOAT8_FNUZ };
#define FLOAT8_BIAS(digits, encoding) ((1 << (7 - (digits))) - 1 + ((encoding) == FLOAT8_FNUZ))

TRT_FLOAT8_FUNCTION float ld_float8(uint32_t x, int digits, int encoding)
{
    uint32_t magnitude = (x & 0x7fu) << (24 - digits), sign = (x & 0x80u) << 24;
    uint32_t bits = trt_bits_of_float(trt_float_of_bits(magnitude) * trt_float_of_bits((uint32_t)(254 - FLOAT8_BIAS(digits, encoding)) << 23));
    uint32_t infinity = (encoding == FLOAT8_FN ? 0x7fu : 0x80u - (1u << (digits - 1))) << (24 - digits);
    if (encoding == FLOAT8_FNUZ)
        return trt_float_of_bits(x == 0x80u ? 0x7f800001u : bits | sign);
    bits |= magnitude >= infinity ? 0x7f800000u : 0u;
    bits |= magnitude > infinity ? 0x00400000u : 0u;
    return trt_float_of_bits(bits | sign);
}

/* Rounded to the nearest, ties to even. What is too large becomes infinity under IEEE, the largest number under FN (infinity too, as in PyTorch), NaN under
 * FNUZ. */
TRT_FLOAT8_FUNCTION uint32_t st_float8(float x, int digits, int encoding)
{
    int bias = FLOAT8_BIAS(digits, encoding), shift = 24 - digits;
    uint32_t bits = trt_bits_of_float(x), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    uint32_t smallest = (uint32_t)(128 - bias) << 23, aligned = (uint32_t)(152 - bias - digits) << 23; /* 2^(1 - bias); 2^23 of the smallest steps */
    uint32_t normal = (magnitude - ((uint32_t)(127 - bias) << 23) + (1u << (shift - 1)) - 1u + ((magnitude >> shift) & 1u)) >> shift;
    uint32_t subnormal = trt_bits_of_float(trt_float_of_bits(magnitude) + trt_float_of_bits(aligned)) - aligned;
    uint32_t byte = magnitude < smallest ? subnormal : normal;
    uint32_t most = encoding == FLOAT8_IEEE ? 0x80u - (1u << (digits - 1)) : encoding == FLOAT8_FN ? 0x7eu : 0x7fu;
    if (encoding == FLOAT8_FNUZ) {
        byte = byte > most ? 0x80u : byte;
        return (byte & 0x7fu) == 0u ? byte : byte | sign;
    }
    byte = byte > most ? most : byte;
    byte = magnitude > 0x7f800000u ? 0x7fu : byte;
    return byte | sign;
}

/* An exponent alone: 2^(x - 127), NaN is all ones. Halves round up, except below the least power; signs are dropped; infinity is NaN. */
TRT_FLOAT8_FUNCTION float ld_power(uint32_t x) { return trt_float_of_bits(x == 0u ? 0x00400000u : x == 0xffu ? 0x7f800001u : x << 23); }
TRT_FLOAT8_FUNCTION uint32_t st_power(float x)
{
    uint32_t magnitude = trt_bits_of_float(x) & 0x7fffffffu;
    uint32_t power = (magnitude + 0x00400000u - (magnitude < 0x00800000u)) >> 23;
    return magnitude >= 0x7f800000u ? 0xffu : power;
}

#endif
