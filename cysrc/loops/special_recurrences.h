/* Orthogonal polynomials by their recurrences (DLMF 18.9), 32 elements at a time: all go to the highest degree among them, each keeps its own. float32 in
 * double; float64 with the rounding errors of each step carried through the same recurrence as second numbers. Degrees above 512 by the scalar functions of
 * special_functions.h. Included by special_math.h. */
#ifndef TRT_SPECIAL_RECURRENCES_H
#define TRT_SPECIAL_RECURRENCES_H

enum { CHEBYSHEV, HERMITE, LAGUERRE, LEGENDRE, LANES_AT_ONCE = 32, HIGHEST_DEGREE = 512 };

/* The step from degrees k - 1 and k to k + 1, written over the former. `scale`: 2 for Hermite's H; `ratio` k / (k + 1), `inverse` 1 / (k + 1). */
INL summed_f64 next_degree(int family, b8 careful, summed_f64 before, summed_f64 current, f64 x, f64 x_lo, f64 k, f64 scale, summed_f64 ratio, summed_f64 inverse)
{
    f64 p = x * current.value, lost = careful ? product_error_f64(x, current.value, p) + fma_f64(x, current.error, x_lo * current.value) : 0;
    summed_f64 r;
    if (family == CHEBYSHEV) { /* 2 x current - before */
        r.value = 2 * p - before.value;
        r.error = careful ? 2 * lost - before.error + sum_error(2 * p, -before.value, r.value) : 0;
    } else if (family == HERMITE) { /* scale (x current - k before) */
        f64 q = k * before.value, d = p - q;
        r.value = scale * d;
        r.error = careful ? scale * (lost - fma_f64(k, before.error, product_error_f64(k, before.value, q)) + sum_error(p, -q, d)) : 0;
    } else if (family == LAGUERRE) { /* current + ratio (current - before) - inverse x current */
        f64 d = current.value - before.value, q = ratio.value * d, s = current.value + q, t = inverse.value * p;
        r.value = s - t;
        r.error = 0;
        if (careful) {
            f64 d_lo = current.error - before.error + sum_error(current.value, -before.value, d);
            f64 q_lo = fma_f64(ratio.value, d_lo, fma_f64(ratio.error, d, product_error_f64(ratio.value, d, q)));
            f64 t_lo = fma_f64(inverse.value, lost, fma_f64(inverse.error, p, product_error_f64(inverse.value, p, t)));
            r.error = current.error + q_lo - t_lo + sum_error(current.value, q, s) + sum_error(s, -t, r.value);
        }
    } else { /* x current + ratio (x current - before) */
        f64 d = p - before.value, q = ratio.value * d;
        r.value = p + q;
        r.error = 0;
        if (careful) {
            f64 d_lo = lost - before.error + sum_error(p, -before.value, d);
            f64 q_lo = fma_f64(ratio.value, d_lo, fma_f64(ratio.error, d, product_error_f64(ratio.value, d, q)));
            r.error = lost + q_lo + sum_error(p, q, r.value);
        }
    }
    return r;
}

INL summed_f64 quotient(f64 a, f64 b)
{
    f64 q = a / b, back = q * b;
    summed_f64 r = {q, ((a - back) - product_error_f64(q, b, back)) / b};
    return r;
}

/* Values of degree n[i] at x[i] + x_lo[i], count <= LANES_AT_ONCE. The polynomial of degree 1 is slope x + offset. Degrees that are none give 0, those above HIGHEST_DEGREE what
 * the caller replaces. */
INL void by_recurrence(int family, b8 careful, f64 *out, const f64 *x, const f64 *x_lo, const f64 *n, f64 slope, f64 offset, f64 scale)
{
    f64 before[LANES_AT_ONCE], before_lo[LANES_AT_ONCE], current[LANES_AT_ONCE], current_lo[LANES_AT_ONCE];
    f64 highest = 0, lowest = HIGHEST_DEGREE;
    _Pragma("omp simd reduction(max : highest) reduction(min : lowest)") for (int i = 0; i < LANES_AT_ONCE; i++) {
        const f64 degree = n[i] <= HIGHEST_DEGREE ? n[i] : 0;
        highest = degree > highest ? degree : highest;
        lowest = degree < lowest ? degree : lowest;
    }
    _Pragma("GCC ivdep") for (int i = 0; i < LANES_AT_ONCE; i++) {
        f64 p = slope * x[i], first = p + offset;
        before[i] = 1;
        before_lo[i] = 0;
        current[i] = first;
        current_lo[i] = careful ? slope * x_lo[i] + sum_error(p, offset, first) : 0;
        out[i] = n[i] < 0 ? 0 : n[i] == 0 ? 1 : first + current_lo[i];
    }
    f64 k = 1;
    if (lowest == highest) /* two steps for one pass over memory, which takes longer than their arithmetic */
        for (; k + 1 < highest; k += 2) {
            summed_f64 ratio = {0, 0}, inverse = {0, 0}, ratio_2 = {0, 0}, inverse_2 = {0, 0};
            if (family == LAGUERRE || family == LEGENDRE)
                ratio = quotient(k, k + 1), ratio_2 = quotient(k + 1, k + 2);
            if (family == LAGUERRE)
                inverse = quotient(1, k + 1), inverse_2 = quotient(1, k + 2);
            _Pragma("GCC ivdep") for (int i = 0; i < LANES_AT_ONCE; i++) {
                summed_f64 old = {before[i], careful ? before_lo[i] : 0}, now = {current[i], careful ? current_lo[i] : 0};
                old = next_degree(family, careful, old, now, x[i], x_lo[i], k, scale, ratio, inverse);
                now = next_degree(family, careful, now, old, x[i], x_lo[i], k + 1, scale, ratio_2, inverse_2);
                before[i] = old.value;
                current[i] = now.value;
                if (careful)
                    before_lo[i] = old.error, current_lo[i] = now.error;
            }
        }
    for (; k < highest; k += 1) {
        summed_f64 ratio = {0, 0}, inverse = {0, 0};
        if (family == LAGUERRE || family == LEGENDRE)
            ratio = quotient(k, k + 1);
        if (family == LAGUERRE)
            inverse = quotient(1, k + 1);
        _Pragma("GCC ivdep") for (int i = 0; i < LANES_AT_ONCE; i++) {
            summed_f64 old = {before[i], careful ? before_lo[i] : 0}, now = {current[i], careful ? current_lo[i] : 0};
            summed_f64 r = next_degree(family, careful, old, now, x[i], x_lo[i], k, scale, ratio, inverse);
            before[i] = now.value;
            current[i] = r.value;
            if (careful)
                before_lo[i] = now.error, current_lo[i] = r.error;
            out[i] = n[i] == k + 1 ? r.value + (r.error - r.error == 0 ? r.error : 0) : out[i];
        }
    }
    if (lowest == highest && highest > 1)
        for (int i = 0; i < LANES_AT_ONCE; i++)
            out[i] = n[i] == highest ? current[i] + (careful && current_lo[i] - current_lo[i] == 0 ? current_lo[i] : 0) : out[i];
}

/* Where the recurrence overflowed: the sign that x and the degree's parity say. `negative`: the polynomial's sign for odd degrees is that of -x. */
INL f64 overflowed(f64 y, f64 x, f64 n, b8 negative)
{
    b8 odd = n - 2 * floor_f64(0.5 * n) == 1, below = negative ? x > 0 : x < 0;
    return y - y == 0 || x != x || n < 1 ? y : odd && below ? -INF_f64 : INF_f64;
}

#define DEFINE_LANES_OF(name, family, careful)                                                                                                    \
    static __attribute__((unused, noinline)) void name(f64 *out, const f64 *x, const f64 *x_lo, const f64 *n, f64 slope, f64 offset, f64 scale)    \
    {                                                                                                                                              \
        by_recurrence(family, careful, out, x, x_lo, n, slope, offset, scale);                                                                      \
    }
#ifdef __AVX2__
#define DEFINE_LANES(name, family) DEFINE_LANES_OF(name##_f64, family, 1) DEFINE_LANES_OF(name##_f32, family, 0)
#else /* without vectors one serves both types */
#define DEFINE_LANES(name, family) DEFINE_LANES_OF(name##_f64, family, 1)
#define chebyshev_lanes_f32 chebyshev_lanes_f64
#define hermite_lanes_f32 hermite_lanes_f64
#define laguerre_lanes_f32 laguerre_lanes_f64
#define legendre_lanes_f32 legendre_lanes_f64
#endif
DEFINE_LANES(chebyshev_lanes, CHEBYSHEV)
DEFINE_LANES(hermite_lanes, HERMITE)
DEFINE_LANES(laguerre_lanes, LAGUERRE)
DEFINE_LANES(legendre_lanes, LEGENDRE)
#undef DEFINE_LANES
#undef DEFINE_LANES_OF

#define DEFINE_POLYNOMIALS(T)                                                                                                                          \
    typedef void lanes_function_##T(f64 *, const f64 *, const f64 *, const f64 *, f64, f64, f64);                                                      \
    typedef T polynomial_##T(T, T);                                                                                                                    \
    static __attribute__((unused, noinline)) void polynomials_##T(T *o, const T *x, const T *n, i64 count, lanes_function_##T *lanes, polynomial_##T *scalar, \
                                                                  b8 shifted, b8 negative, f64 slope, f64 offset, f64 scale)                           \
    {                                                                                                                                                 \
        f64 wide[LANES_AT_ONCE] = {0}, low[LANES_AT_ONCE] = {0}, degree[LANES_AT_ONCE] = {0}, out[LANES_AT_ONCE];                                      \
        for (i64 start = 0; start < count; start += LANES_AT_ONCE) {                                                                                  \
            const i64 left = count - start < LANES_AT_ONCE ? count - start : LANES_AT_ONCE;                                                           \
            f64 high = 0;                                                                                                                             \
            _Pragma("omp simd reduction(max : high)") for (i64 i = 0; i < left; i++) {                                                                                                      \
                const f64 v = (f64)x[start + i], d = trunc_f64((f64)n[start + i]);                                                                     \
                wide[i] = shifted ? 2 * v - 1 : v;                                                                                                    \
                low[i] = shifted && v - v == 0 ? sum_error(2 * v, -1, wide[i]) : 0;                                                                   \
                degree[i] = d > -1 ? d + 0.0 : -1;                                                                                                    \
                high = d > high ? d : high;                                                                                                           \
            }                                                                                                                                         \
            lanes(out, wide, low, degree, slope, offset, scale);                                                                                      \
            _Pragma("GCC ivdep") for (i64 i = 0; i < left; i++)                                                                                       \
                o[start + i] = (T)overflowed(out[i], wide[i], degree[i], negative);                                                                   \
            if (__builtin_expect(high > HIGHEST_DEGREE, 0))                                                                                                            \
                for (i64 i = 0; i < left; i++)                                                                                                        \
                    if (degree[i] > HIGHEST_DEGREE)                                                                                                   \
                        o[start + i] = scalar(x[start + i], n[start + i]);                                                                            \
        }                                                                                                                                             \
    }
DEFINE_POLYNOMIALS(f32)
DEFINE_POLYNOMIALS(f64)
#undef DEFINE_POLYNOMIALS

#define DEFINE_RECURRENCE(name, family, shifted, negative, slope, offset, scale)                                                                       \
    DEFINE_RECURRENCE_OF(name, family, f32, shifted, negative, slope, offset, scale)                                                                   \
    DEFINE_RECURRENCE_OF(name, family, f64, shifted, negative, slope, offset, scale)
/* o may be x or n: a block is read before it is written, but high degrees */
#define DEFINE_RECURRENCE_OF(name, family, T, shifted, negative, slope, offset, scale)                                                                 \
    INL void special_##name##_block_##T(T *o, const T *x, const T *n, i64 count)                                                                       \
    {                                                                                                                                                 \
        polynomials_##T(o, x, n, count, family##_lanes_##T, special_##name##_##T, shifted, negative, slope, offset, scale);                            \
    }
DEFINE_RECURRENCE(chebyshev_t, chebyshev, 0, 0, 1, 0, 0)
DEFINE_RECURRENCE(chebyshev_u, chebyshev, 0, 0, 2, 0, 0)
DEFINE_RECURRENCE(chebyshev_v, chebyshev, 0, 0, 2, -1, 0)
DEFINE_RECURRENCE(chebyshev_w, chebyshev, 0, 0, 2, 1, 0)
DEFINE_RECURRENCE(shifted_chebyshev_t, chebyshev, 1, 0, 1, 0, 0)
DEFINE_RECURRENCE(shifted_chebyshev_u, chebyshev, 1, 0, 2, 0, 0)
DEFINE_RECURRENCE(shifted_chebyshev_v, chebyshev, 1, 0, 2, -1, 0)
DEFINE_RECURRENCE(shifted_chebyshev_w, chebyshev, 1, 0, 2, 1, 0)
DEFINE_RECURRENCE(hermite_h, hermite, 0, 0, 2, 0, 2)
DEFINE_RECURRENCE(hermite_he, hermite, 0, 0, 1, 0, 1)
DEFINE_RECURRENCE(laguerre, laguerre, 0, 1, -1, 1, 0)
DEFINE_RECURRENCE(legendre, legendre, 0, 0, 1, 0, 0)
#undef DEFINE_RECURRENCE
#undef DEFINE_RECURRENCE_OF

#endif
