/* A register of numbers as the loops over halves, and over AVX-512's forms of functions, read and write it: half types convert on the way.
 * `n`: elements that are left; fewer than LANES_<type> fill the register with zeros, and only they are written. */
#ifndef TRT_LANES_H
#define TRT_LANES_H

#include "fused.h"
#include "scalar_types.h"

#ifdef __AVX2__
#ifdef __AVX512F__
#define LANE_BYTES 64
#else
#define LANE_BYTES 32
#endif
enum { LANES_f32 = LANE_BYTES / 4, LANES_f64 = LANE_BYTES / 8, LANES_f16 = LANES_f32, LANES_bf16 = LANES_f32 };

typedef f32 lanes_f32 __attribute__((vector_size(LANE_BYTES)));
typedef f64 lanes_f64 __attribute__((vector_size(LANE_BYTES)));
typedef i32 lanes_i32 __attribute__((vector_size(LANE_BYTES)));
typedef u32 lanes_u32 __attribute__((vector_size(LANE_BYTES)));
typedef long long lanes_i64 __attribute__((vector_size(LANE_BYTES)));
typedef short lanes_half __attribute__((vector_size(LANE_BYTES / 2)));
typedef i32 lanes_eight __attribute__((vector_size(LANE_BYTES / 2)));

#if LANE_BYTES == 64
/* the first n lanes of a register of 16-bit numbers, for n < 16 */
INL lanes_half first_halves(const void *p, i64 n) { return __builtin_ia32_loaddquhi256_mask(p, (lanes_half){0}, (unsigned short)((1u << n) - 1)); }
INL void store_first_halves(void *p, lanes_half v, i64 n) { __builtin_ia32_storedquhi256_mask(p, v, (unsigned short)((1u << n) - 1)); }
#else
INL lanes_half first_halves(const void *p, i64 n)
{
    lanes_half v = {0};
    for (i64 i = 0; i < n; i++)
        v[i] = ((const short *)p)[i];
    return v;
}
INL void store_first_halves(void *p, lanes_half v, i64 n)
{
    for (i64 i = 0; i < n; i++)
        ((short *)p)[i] = v[i];
}
#endif

INL lanes_half read_halves(const void *p, i64 n)
{
    lanes_half v;
    if (__builtin_expect(n < LANES_f16, 0))
        return first_halves(p, n);
    memcpy(&v, p, sizeof v);
    return v;
}
INL void write_halves(void *p, lanes_half v, i64 n)
{
    if (__builtin_expect(n < LANES_f16, 0))
        store_first_halves(p, v, n);
    else
        memcpy(p, &v, sizeof v);
}

#if LANE_BYTES == 64
INL lanes_f32 read_f16(const f16 *p, i64 n) { return __builtin_ia32_vcvtph2ps512_mask(read_halves(p, n), (lanes_f32){0}, -1, 4); }
INL void write_f16(f16 *p, lanes_f32 v, i64 n) { write_halves(p, __builtin_ia32_vcvtps2ph512_mask(v, 0, (lanes_half){0}, -1), n); }
#else
INL lanes_f32 read_f16(const f16 *p, i64 n) { return __builtin_ia32_vcvtph2ps256(read_halves(p, n)); }
INL void write_f16(f16 *p, lanes_f32 v, i64 n) { write_halves(p, __builtin_ia32_vcvtps2ph256(v, 0), n); }
#endif

/* bfloat16 is the upper half of a float. To the nearest, ties to even: half of the last kept bit, less one where that is even; PyTorch's NaN. */
#if LANE_BYTES == 64
typedef short lane_words __attribute__((vector_size(64)));
INL lanes_f32 read_bf16(const bf16 *p, i64 n)
{
    const lane_words upper = {0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    lane_words words = (lane_words)__builtin_ia32_si512_256si((lanes_eight)read_halves(p, n));
    return (lanes_f32)__builtin_ia32_permvarhi512_mask(words, upper, (lane_words){0}, 0xaaaaaaaa);
}
INL void write_bf16(bf16 *p, lanes_f32 v, i64 n)
{
    const lane_words upper = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    lanes_u32 bits = (lanes_u32)v, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    rounded = (lanes_u32)__builtin_ia32_blendmd_512_mask((lanes_i32)rounded, (lanes_i32){0} + 0x7fc00000, __builtin_ia32_cmpps512_mask(v, v, 3, -1, 4));
    lane_words words = __builtin_ia32_permvarhi512_mask((lane_words)rounded, upper, (lane_words){0}, -1);
    lanes_half lower;
    memcpy(&lower, &words, sizeof lower);
    write_halves(p, lower, n);
}
#else
INL lanes_f32 read_bf16(const bf16 *p, i64 n) { return (lanes_f32)((lanes_u32)__builtin_ia32_pmovzxwd256(read_halves(p, n)) << 16); }
INL lanes_u32 rounded_bf16(lanes_f32 v)
{
    lanes_u32 bits = (lanes_u32)v, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (lanes_u32)__builtin_ia32_blendvps256((lanes_f32)rounded, (lanes_f32)((lanes_u32){0} + 0x7fc00000u), (lanes_f32)(v != v));
}
INL void write_bf16(bf16 *p, lanes_f32 v, i64 n)
{
    lanes_i32 upper = (lanes_i32)(rounded_bf16(v) >> 16); /* as many bits as the words have: nothing saturates */
    lanes_i64 words = __builtin_shuffle((lanes_i64)__builtin_ia32_packusdw256(upper, upper), (lanes_i64){0, 2, 1, 3});
    lanes_half lower;
    memcpy(&lower, &words, sizeof lower);
    write_halves(p, lower, n);
}
#endif

#if LANE_BYTES == 64
INL lanes_f32 read_f32(const f32 *p, i64 n)
{
    lanes_f32 v;
    if (__builtin_expect(n < LANES_f32, 0))
        return __builtin_ia32_loadups512_mask(p, (lanes_f32){0}, (unsigned short)((1u << n) - 1));
    memcpy(&v, p, sizeof v);
    return v;
}
INL void write_f32(f32 *p, lanes_f32 v, i64 n)
{
    if (__builtin_expect(n < LANES_f32, 0))
        __builtin_ia32_storeups512_mask(p, v, (unsigned short)((1u << n) - 1));
    else
        memcpy(p, &v, sizeof v);
}
INL lanes_f64 read_f64(const f64 *p, i64 n)
{
    lanes_f64 v;
    if (__builtin_expect(n < LANES_f64, 0))
        return __builtin_ia32_loadupd512_mask(p, (lanes_f64){0}, (unsigned char)((1u << n) - 1));
    memcpy(&v, p, sizeof v);
    return v;
}
INL void write_f64(f64 *p, lanes_f64 v, i64 n)
{
    if (__builtin_expect(n < LANES_f64, 0))
        __builtin_ia32_storeupd512_mask(p, v, (unsigned char)((1u << n) - 1));
    else
        memcpy(p, &v, sizeof v);
}
#endif

/* The same as numbers of a loop that the compiler makes vectors of, RUN_<type> at a time, and the bools beside them. With AVX2 bfloat16 is two registers,
 * of the even and of the odd ones of 16 numbers: a shift and a mask take them apart and a blend joins them, six instructions fewer than in order. */
INL void take_f16(f32 *to, const f16 *p, i64 n) { lanes_f32 v = read_f16(p, n); memcpy(to, &v, sizeof v); }
INL void put_f16(f16 *p, const f32 *from, i64 n) { lanes_f32 v; memcpy(&v, from, sizeof v); write_f16(p, v, n); }
INL void take_b8_f16(b8 *to, const b8 *p, i64 n)
{
    memset(to, 0, LANES_f16);
    if (__builtin_expect(n < LANES_f16, 0))
        for (i64 i = 0; i < n; i++)
            to[i] = p[i];
    else
        memcpy(to, p, LANES_f16);
}
INL void put_b8_f16(b8 *p, const b8 *from, i64 n)
{
    if (__builtin_expect(n < LANES_f16, 0))
        for (i64 i = 0; i < n; i++)
            p[i] = from[i];
    else
        memcpy(p, from, LANES_f16);
}
#if LANE_BYTES == 64
enum { RUN_f16 = LANES_f16, RUN_bf16 = LANES_bf16 };
INL void take_bf16(f32 *to, const bf16 *p, i64 n) { lanes_f32 v = read_bf16(p, n); memcpy(to, &v, sizeof v); }
INL void put_bf16(bf16 *p, const f32 *from, i64 n) { lanes_f32 v; memcpy(&v, from, sizeof v); write_bf16(p, v, n); }
#define take_b8_bf16 take_b8_f16
#define put_b8_bf16 put_b8_f16
#else
enum { RUN_f16 = LANES_f16, RUN_bf16 = 2 * LANES_bf16 };
typedef short lanes_words __attribute__((vector_size(32)));
typedef short lanes_bools __attribute__((vector_size(16)));
typedef char lanes_bytes __attribute__((vector_size(16)));
INL void take_bf16(f32 *to, const bf16 *p, i64 n)
{
    lanes_u32 pairs = (lanes_u32){0} + 0x3f803f80u, even, odd; /* ones behind the last number: no function minds them */
    if (__builtin_expect(n < RUN_bf16, 0)) {
        bf16 last[RUN_bf16];
        memcpy(last, &pairs, sizeof last);
        for (i64 i = 0; i < n; i++)
            last[i] = p[i];
        memcpy(&pairs, last, sizeof last);
    } else
        memcpy(&pairs, p, sizeof pairs);
    even = pairs << 16, odd = pairs & 0xffff0000u;
    memcpy(to, &even, sizeof even);
    memcpy(to + LANES_f32, &odd, sizeof odd);
}
INL void put_bf16(bf16 *p, const f32 *from, i64 n)
{
    lanes_f32 even, odd;
    memcpy(&even, from, sizeof even);
    memcpy(&odd, from + LANES_f32, sizeof odd);
    lanes_words pairs = __builtin_ia32_pblendw256((lanes_words)(rounded_bf16(even) >> 16), (lanes_words)rounded_bf16(odd), 0xaa);
    if (__builtin_expect(n < RUN_bf16, 0))
        for (i64 i = 0; i < n; i++)
            ((short *)p)[i] = pairs[i];
    else
        memcpy(p, &pairs, sizeof pairs);
}
INL void take_b8_bf16(b8 *to, const b8 *p, i64 n)
{
    lanes_bools pairs = {0};
    if (__builtin_expect(n < RUN_bf16, 0))
        for (i64 i = 0; i < n; i++)
            ((b8 *)&pairs)[i] = p[i];
    else
        memcpy(&pairs, p, sizeof pairs);
    lanes_bytes apart = __builtin_ia32_packuswb128(pairs & 0xff, (pairs >> 8) & 0xff);
    memcpy(to, &apart, sizeof apart);
}
INL void put_b8_bf16(b8 *p, const b8 *from, i64 n)
{
    typedef long long halves_of_bytes __attribute__((vector_size(16)));
    halves_of_bytes even = {0}, odd = {0};
    memcpy(&even, from, 8);
    memcpy(&odd, from + 8, 8);
    lanes_bytes joined = __builtin_ia32_punpcklbw128((lanes_bytes)even, (lanes_bytes)odd);
    if (__builtin_expect(n < RUN_bf16, 0))
        for (i64 i = 0; i < n; i++)
            p[i] = (b8)joined[i];
    else
        memcpy(p, &joined, sizeof joined);
}
#endif

/* What costs more than the conversions, with AVX2: the loop over floats on blocks of widened halves, which keeps the constants of a long expression in
 * registers and is compiled once for three types. At most three operands (MOST_ROWS of tools/codegen/pointwise.py). Of operand i, s[i + 1] == 0: one number for all. */
#if LANE_BYTES == 32
enum { HALVES_AT_ONCE = 256 };
#define PLACES_f16(n) (n)
#define PLACES_bf16(n) (((n) + RUN_bf16 - 1) / RUN_bf16 * RUN_bf16) /* that the first n numbers are spread over */
#define DEFINE_BY_FLOATS(T)                                                                                                       \
    static __attribute__((noinline, unused)) void by_floats_##T(loop_t loop, int operands, char **d, const int64_t *s, int64_t n, \
                                                                const Scalar *p)                                                  \
    {                                                                                                                             \
        f32 numbers[4][HALVES_AT_ONCE] __attribute__((aligned(32)));                                                              \
        char *rows[4] = {(char *)numbers[0], (char *)numbers[1], (char *)numbers[2], (char *)numbers[3]};                         \
        for (i64 begin = 0; begin < n; begin += HALVES_AT_ONCE) {                                                                 \
            const i64 count = n - begin < HALVES_AT_ONCE ? n - begin : HALVES_AT_ONCE;                                            \
            for (int i = 1; i <= operands; i++)                                                                                   \
                for (i64 j = 0; j < count; j += RUN_##T)                                                                          \
                    if (s[i] == 0)                                                                                                \
                        for (int k = 0; k < RUN_##T; k++)                                                                         \
                            numbers[i][j + k] = ld_##T(*(const T *)d[i]);                                                         \
                    else                                                                                                          \
                        take_##T(numbers[i] + j, (const T *)d[i] + begin + j, count - j);                                         \
            loop(rows, s, PLACES_##T(count), p);                                                                                  \
            for (i64 j = 0; j < count; j += RUN_##T)                                                                              \
                put_##T((T *)d[0] + begin + j, numbers[0] + j, count - j);                                                        \
        }                                                                                                                         \
    }
#endif

#endif
#endif
