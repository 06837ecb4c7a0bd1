/* Inner loops of core/random_streams.h. Every loop runs over a staged block in L1, has no branch in its body and no call, and is
 * written for the compiler's vectoriser.
 *
 * Note [Fused multiply-add in random transforms]
 * PyTorch's streams were recorded on machines with fused multiply-add, where `x * scale + shift` rounds once. The
 * result near zero (uniform_(-1, 1)) differs by far more than 2 ulp when it rounds twice, so the fused form is
 * spelled out here instead of being left to -ffp-contract. Without the instruction, float32 goes through float64,
 * where the product is exact; float64 calls libm's fma.
 */
#include <math.h>

#include "../core/random_kernels.h"

/* The kernels spell out every fused operation themselves. Build with -fno-math-errno too, or the loops that hold a square root stay
 * scalar: gcc ignores that option in a pragma. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3,no-trapping-math,fp-contract=off")
#endif

#if defined(__FMA__)
#define RS_FMAF(a, b, c) __builtin_fmaf((a), (b), (c))
#define RS_FMA(a, b, c) __builtin_fma((a), (b), (c))
#define RS_FMA_FAST(a, b, c) __builtin_fma((a), (b), (c))
#else
#define RS_FMAF(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))
#define RS_FMA(a, b, c) fma((a), (b), (c))
/* Inside polynomials one rounding more is below the 2 ulp that are promised. */
#define RS_FMA_FAST(a, b, c) ((a) * (b) + (c))
#endif

/* The Mersenne twister's recurrence and its tempering (Matsumoto and Nishimura 1998). The three loops split the 624
 * words where the index k + 397 wraps, so that each reads words which it writes 227 or more steps away: vectors of
 * any width stay within that distance. */
#define RS_TWIST(u, v) ((((u) & 0x80000000u) | ((v) & 0x7fffffffu)) >> 1 ^ ((0u - ((v) & 1u)) & 0x9908b0dfu))

static void rs_next_block(uint32_t *mt, uint32_t *out) {
    int k;
    for (k = 0; k < 227; k++) mt[k] = mt[k + 397] ^ RS_TWIST(mt[k], mt[k + 1]);
    for (k = 227; k < 623; k++) mt[k] = mt[k - 227] ^ RS_TWIST(mt[k], mt[k + 1]);
    mt[623] = mt[396] ^ RS_TWIST(mt[623], mt[0]);
    for (k = 0; k < 624; k++) {
        uint32_t y = mt[k];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        out[k] = y ^ (y >> 18);
    }
}
#undef RS_TWIST

/* r64 draws: the first word is the high half. */
static void rs_pair_words(const uint32_t *restrict w, uint64_t *restrict r, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t pair;
        memcpy(&pair, w + 2 * i, 8);
        r[i] = RS_BIG_ENDIAN ? pair : (pair << 32 | pair >> 32);
    }
}

/* A value that rounding has pushed onto the excluded bound becomes `from`, as in PyTorch. */
static void rs_uniform_f32(const uint32_t *restrict w, float *restrict p, int n, float from, float to) {
    float width = to - from;
    for (int i = 0; i < n; i++) {
        float u = (float)(int32_t)(w[i] & 0xffffffu) * 0x1p-24f;
        float x = RS_FMAF(u, width, from);
        p[i] = x == to ? from : x;
    }
}

/* k in [0, 2^53) to k / 2^53, exactly: the two halves of k fill mantissas under fixed exponents, which needs no
 * conversion from 64-bit integers (AVX2 has none). */
static inline double rs_u53_of(uint64_t r) {
    uint64_t low = (r & 0xffffffffu) | 0x4330000000000000u; /* 2^52 + low */
    uint64_t high = (r >> 32 & 0x1fffffu) | 0x4530000000000000u; /* 2^84 + high * 2^32 */
    double a, b;
    memcpy(&a, &low, 8);
    memcpy(&b, &high, 8);
    return ((b - 0x1p84) + (a - 0x1p52)) * 0x1p-53;
}

static void rs_u53(const uint64_t *restrict r, double *restrict p, int n) {
    for (int i = 0; i < n; i++) p[i] = rs_u53_of(r[i]);
}

static void rs_uniform_f64(const uint64_t *restrict r, double *restrict p, int n, double from, double to) {
    double width = to - from;
    for (int i = 0; i < n; i++) {
        double x = RS_FMA(rs_u53_of(r[i]), width, from);
        p[i] = x == to ? from : x;
    }
}

/* u53 < p in integers: k / 2^53 < p exactly when k < ceil(p * 2^53), which is `threshold`. */
static void rs_below(const uint64_t *restrict r, uint8_t *restrict p, int n, int64_t threshold) {
    for (int i = 0; i < n; i++) p[i] = (int64_t)(r[i] & 0x1fffffffffffffu) < threshold;
}

/* w % range for range below 2^31 without a division: the quotient from float64 is off by one at most. */
static void rs_remainder(const uint32_t *restrict w, uint32_t *restrict p, int n, uint32_t range) {
    double inverse = 1.0 / (double)range;
    for (int i = 0; i < n; i++) {
        double value = (double)(int32_t)(w[i] ^ 0x80000000u) + 0x1p31;
        /* The magic addition rounds the quotient to the nearest integer; its low word is that integer. */
        double shifted = value * inverse + 0x1.8p52;
        uint64_t bits;
        memcpy(&bits, &shifted, 8);
        int64_t rest = (int64_t)(uint64_t)w[i] - (int64_t)((bits & 0xffffffffu) * (uint64_t)range);
        p[i] = (uint32_t)(rest + (rest < 0 ? (int64_t)range : 0));
    }
}

/* Natural logarithm of a normal float32, in the operation order of the Cephes single precision routine, which
 * PyTorch's vector path uses too: an exactly rounded logarithm ends up 3 ulp away from PyTorch's normals. Which of two
 * products an addition fuses with is PyTorch's choice as well; with it float32 normals equal PyTorch's to the bit. */
static inline float rs_logf(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    float e = (float)((int32_t)(bits >> 23) - 126);
    bits = (bits & 0x7fffffu) | 0x3f000000u;
    float x;
    memcpy(&x, &bits, 4);
    /* Below sqrt(1/2) the mantissa is doubled; a bit mask, because a conditional here keeps gcc from vectorising. */
    uint32_t small = 0u - (uint32_t)(bits < 0x3f3504f3u), added = bits & small;
    e -= (float)(int32_t)(small & 1u);
    float doubled;
    memcpy(&doubled, &added, 4);
    x = x - 1.0f + doubled;
    float z = x * x;
    float y = 7.0376836292e-2f;
    y = RS_FMAF(y, x, -1.1514610310e-1f);
    y = RS_FMAF(y, x, 1.1676998740e-1f);
    y = RS_FMAF(y, x, -1.2420140846e-1f);
    y = RS_FMAF(y, x, 1.4249322787e-1f);
    y = RS_FMAF(y, x, -1.6668057665e-1f);
    y = RS_FMAF(y, x, 2.0000714765e-1f);
    y = RS_FMAF(y, x, -2.4999993993e-1f);
    y = RS_FMAF(y, x, 3.3333331174e-1f);
    y = RS_FMAF(y * x, z, e * -2.12194440e-4f);
    y = RS_FMAF(z, -0.5f, y);
    return RS_FMAF(e, 0.693359375f, x + y);
}

/* sin and cos of t in [0, 2 pi], Cephes single precision order (see rs_logf). */
static inline void rs_sincosf(float t, float *sine, float *cosine) {
    int32_t j = ((int32_t)(t * 1.27323954473516f) + 1) & ~1;
    float y = (float)j;
    float x = RS_FMAF(y, -0.78515625f, t);
    x = RS_FMAF(y, -2.4187564849853515625e-4f, x);
    x = RS_FMAF(y, -3.77489497744594108e-8f, x);
    float z = x * x;
    float c = RS_FMAF(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = RS_FMAF(c, z, 4.166664568298827e-2f);
    c = RS_FMAF(c * z, z, z * -0.5f) + 1.0f;
    float s = RS_FMAF(-1.9515295891e-4f, z, 8.3321608736e-3f);
    s = RS_FMAF(s, z, -1.6666654611e-1f);
    s = RS_FMAF(s * z, x, x);
    int swap = (j & 2) != 0;
    float sin_value = swap ? c : s, cos_value = swap ? s : c;
    *sine = (j & 4) ? -sin_value : sin_value;
    *cosine = ((j + 2) & 4) ? -cos_value : cos_value;
}

/* Box and Muller on blocks of 16 uniforms in place: the first eight make radii, the last eight angles. The staged
 * halves let one loop of 64 run at full vector width. `blocks` is at most RS_STAGE / 16. */
static void rs_normal_blocks_f32(float *p, int blocks, float mean, float std) {
    float radius[RS_STAGE / 2], angle[RS_STAGE / 2];
    for (int b = 0; b < blocks; b++) {
        memcpy(radius + 8 * b, p + 16 * b, 8 * sizeof(float));
        memcpy(angle + 8 * b, p + 16 * b + 8, 8 * sizeof(float));
    }
    int n = 8 * blocks;
    for (int i = 0; i < n; i++) radius[i] = sqrtf(-2.0f * rs_logf(1.0f - radius[i]));
    for (int i = 0; i < n; i++) {
        float s, c;
        rs_sincosf(6.283185307179586f * angle[i], &s, &c);
        angle[i] = RS_FMAF(radius[i] * s, std, mean);
        radius[i] = RS_FMAF(radius[i] * c, std, mean);
    }
    for (int b = 0; b < blocks; b++) {
        memcpy(p + 16 * b, radius + 8 * b, 8 * sizeof(float));
        memcpy(p + 16 * b + 8, angle + 8 * b, 8 * sizeof(float));
    }
}

/* Natural logarithm of a normal float64 (fdlibm's reduction and coefficients, below 1 ulp). */
static inline double rs_log(double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    /* The exponent and mantissa relative to sqrt(1/2), so that m is in [sqrt(1/2), sqrt(2)). */
    uint64_t shifted = bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    uint64_t biased = shifted >> 52;
    bits = (shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double m, k;
    memcpy(&m, &bits, 8);
    biased |= 0x4330000000000000u;
    memcpy(&k, &biased, 8);
    k -= 0x1p52 + 1023.0;
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double poly = 1.479819860511658591e-01;
    poly = RS_FMA_FAST(poly, z, 1.531383769920937332e-01);
    poly = RS_FMA_FAST(poly, z, 1.818357216161805012e-01);
    poly = RS_FMA_FAST(poly, z, 2.222219843214978396e-01);
    poly = RS_FMA_FAST(poly, z, 2.857142874366239149e-01);
    poly = RS_FMA_FAST(poly, z, 3.999999999940941908e-01);
    poly = RS_FMA_FAST(poly, z, 6.666666666666735130e-01);
    double rest = RS_FMA_FAST(s, half + z * poly, k * 1.90821492927058770002e-10);
    return k * 6.93147180369123816490e-01 - ((half - rest) - f);
}

/* sin and cos for |t| up to a few turns: reduction by multiples of pi / 2 in three parts, fdlibm's polynomials. */
static inline void rs_sincos(double t, double *sine, double *cosine) {
    double shifted = t * 6.36619772367581382433e-01 + 0x1.8p52;
    uint64_t quadrant;
    memcpy(&quadrant, &shifted, 8);
    double q = shifted - 0x1.8p52;
    /* The first difference is exact (33 bits of pi / 2 times a small integer); `tail` keeps what y rounds away. */
    double high = t - q * 1.57079632673412561417e+00, low = q * 6.07710050650619224932e-11;
    double y = high - low, tail = (high - y) - low, z = y * y;
    double s = 1.58969099521155010221e-10;
    s = RS_FMA_FAST(s, z, -2.50507602534068634195e-08);
    s = RS_FMA_FAST(s, z, 2.75573137070700676789e-06);
    s = RS_FMA_FAST(s, z, -1.98412698298579493134e-04);
    s = RS_FMA_FAST(s, z, 8.33333333332248946124e-03);
    s = RS_FMA_FAST(s, z, -1.66666666666666324348e-01);
    s = y + RS_FMA_FAST(s * z, y, tail);
    double c = -1.13596475577881948265e-11;
    c = RS_FMA_FAST(c, z, 2.08757232129817482790e-09);
    c = RS_FMA_FAST(c, z, -2.75573143513906633035e-07);
    c = RS_FMA_FAST(c, z, 2.48015872894767294178e-05);
    c = RS_FMA_FAST(c, z, -1.38888888888741095749e-03);
    c = RS_FMA_FAST(c, z, 4.16666666666666019037e-02);
    double half = 0.5 * z, head = 1.0 - half;
    c = head + (((1.0 - head) - half) + (z * z * c - y * tail));
    double sin_value = (quadrant & 1) ? c : s, cos_value = (quadrant & 1) ? s : c;
    *sine = (quadrant & 2) ? -sin_value : sin_value;
    *cosine = ((quadrant + 1) & 2) ? -cos_value : cos_value;
}

/* exp; the argument is clamped where the result has long been 0 or infinite. */
static inline double rs_exp(double x) {
    x = x < -1500.0 ? -1500.0 : (x > 1500.0 ? 1500.0 : x);
    double shifted = x * 1.44269504088896338700 + 0x1.8p52;
    double k = shifted - 0x1.8p52;
    double y = x - k * 6.93147180369123816490e-01;
    y = RS_FMA_FAST(k, -1.90821492927058770002e-10, y);
    double poly = 1.0 / 6227020800.0;
    poly = RS_FMA_FAST(poly, y, 1.0 / 479001600.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 39916800.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 3628800.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 362880.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 40320.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 5040.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 720.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 120.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 24.0);
    poly = RS_FMA_FAST(poly, y, 1.0 / 6.0);
    poly = RS_FMA_FAST(poly, y, 0.5);
    double e = 1.0 + RS_FMA_FAST(poly * y, y, y);
    /* 2^k as 2^a * 2^b, a + b = k, so that neither factor leaves the range of exponents. */
    double half = (k * 0.5 + 0x1.8p52) - 0x1.8p52, rest = k - half;
    double a = half + (0x1p52 + 1023.0), b = rest + (0x1p52 + 1023.0);
    uint64_t abits, bbits;
    memcpy(&abits, &a, 8);
    memcpy(&bbits, &b, 8);
    abits <<= 52;
    bbits <<= 52;
    memcpy(&a, &abits, 8);
    memcpy(&b, &bbits, 8);
    return e * a * b;
}

/* Standard normal pairs of the serial path: r[2i] makes the angle, r[2i + 1] the radius; out[2i] and out[2i + 1] are
 * the cosine's and the sine's value. log1p(-u) is log(1 - u), since 1 - k / 2^53 is exact. */
static void rs_normal_pairs(const uint64_t *restrict r, double *restrict out, int pairs) {
    double first[RS_STAGE / 2], second[RS_STAGE / 2];
    for (int i = 0; i < pairs; i++) {
        first[i] = rs_u53_of(r[2 * i]);
        second[i] = 1.0 - rs_u53_of(r[2 * i + 1]);
    }
    for (int i = 0; i < pairs; i++) second[i] = sqrt(-2.0 * rs_log(second[i]));
    for (int i = 0; i < pairs; i++) {
        double s, c;
        rs_sincos(6.283185307179586477 * first[i], &s, &c);
        first[i] = second[i] * c;
        second[i] = second[i] * s;
    }
    for (int i = 0; i < pairs; i++) {
        out[2 * i] = first[i];
        out[2 * i + 1] = second[i];
    }
}

static void rs_scale_f64(double *p, int n, double mean, double std) {
    for (int i = 0; i < n; i++) p[i] = RS_FMA(p[i], std, mean);
}

static void rs_exp_block(double *p, int n) {
    for (int i = 0; i < n; i++) p[i] = rs_exp(p[i]);
}

static void rs_exponential(const uint64_t *restrict r, double *restrict p, int n, double lambd) {
    double factor = -1.0 / lambd;
    for (int i = 0; i < n; i++) p[i] = factor * rs_log(1.0 - rs_u53_of(r[i]));
}

/* ceil(log(u) / log_q), log_q = log1p(-p). u = 0 has no logarithm and gives +inf, which the caller's cast saturates. */
static void rs_geometric(const uint64_t *restrict r, double *restrict p, int n, double log_q) {
    for (int i = 0; i < n; i++) {
        double u = rs_u53_of(r[i]);
        double x = rs_log(u == 0.0 ? 0x1p-1022 : u) / log_q;
        p[i] = u == 0.0 ? (double)INFINITY : x;
    }
    for (int i = 0; i < n; i++) p[i] = ceil(p[i]);
}

static void rs_cauchy(const uint64_t *restrict r, double *restrict p, int n, double median, double sigma) {
    for (int i = 0; i < n; i++) {
        double s, c;
        rs_sincos(3.14159265358979323846 * (rs_u53_of(r[i]) - 0.5), &s, &c);
        p[i] = RS_FMA(sigma, s / c, median);
    }
}

const rs_kernels ISA_NAME(rs_kernel_table) = {
    rs_next_block, rs_pair_words, rs_uniform_f32, rs_u53, rs_uniform_f64,
    rs_below, rs_remainder, rs_normal_blocks_f32, rs_normal_pairs, rs_scale_f64,
    rs_exp_block, rs_exponential, rs_geometric, rs_cauchy,
};
