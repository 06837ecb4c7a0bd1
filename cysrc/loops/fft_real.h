/* Fourier transforms of one real type: REAL, F(name), LANES numbers a vector. Included by fft.c.
 *
 * Everything rests on one kernel: V lines at once, one per lane of a vector, by Stockham's self-sorting passes (Stockham 1966; Van Loan,
 * "Computational Frameworks for the FFT", 1.7) of radix 2, 3, 4, 5, 7, 8 and odd primes to 31. A long line by itself becomes such
 * a batch: as a matrix of n1 rows and n2 columns, columns first, then twiddle factors, then rows (Bailey's four steps). A length with a larger prime
 * factor is a convolution with a chirp of a convenient length (Bluestein). The inverse swaps real and imaginary parts on both ends. */

typedef REAL F(vec) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef INDEX F(ivec) __attribute__((vector_size(LANES * sizeof(REAL))));
typedef REAL F(uvec) __attribute__((vector_size(LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef struct { F(vec) re, im; } F(cell);
#define vec F(vec)
#define ivec F(ivec)
#define uvec F(uvec)
#define cell F(cell)
#define V LANES

/* ---- lanes ----------------------------------------------------------------------------------------------------------------- */

/* V vectors of V numbers transposed, by shuffles that are an instruction each on every set: in each 16 bytes first, then of 16 bytes as a whole.
 * Both steps put the even elements of two vectors into one and the odd ones into another, twice where there are four elements. */
#define PAIR(a, b, KEPT) __builtin_shuffle(a, b, (ivec){EACH_LANE(KEPT, 0)})
#define TURN2(v, H, EVEN, ODD)                                                                                    \
    {                                                                                                             \
        vec a = (v)[0], b = (v)[H];                                                                               \
        (v)[0] = PAIR(a, b, EVEN), (v)[H] = PAIR(a, b, ODD);                                                      \
    }
#define TURN4(v, H, EVEN, ODD)                                                                                    \
    {                                                                                                             \
        vec a = PAIR((v)[0], (v)[H], EVEN), b = PAIR((v)[0], (v)[H], ODD);                                        \
        vec c = PAIR((v)[2 * (H)], (v)[3 * (H)], EVEN), d = PAIR((v)[2 * (H)], (v)[3 * (H)], ODD);                \
        (v)[0] = PAIR(a, c, EVEN), (v)[H] = PAIR(b, d, EVEN), (v)[2 * (H)] = PAIR(a, c, ODD), (v)[3 * (H)] = PAIR(b, d, ODD); \
    }
INL void F(transpose)(vec *v)
{
    enum { Q = 16 / sizeof(REAL) };
    _Pragma("GCC unroll 16") for (int i = 0; i < V; i += Q)
        if (Q == 4)
            TURN4(v + i, 1, EVEN_INSIDE, ODD_INSIDE)
        else
            TURN2(v + i, 1, EVEN_INSIDE, ODD_INSIDE)
#if VECTOR_BYTES == 64
    _Pragma("GCC unroll 16") for (int i = 0; i < Q; i++) TURN4(v + i, Q, EVEN_WHOLE, ODD_WHOLE)
#elif VECTOR_BYTES == 32
    _Pragma("GCC unroll 16") for (int i = 0; i < Q; i++) TURN2(v + i, Q, EVEN_WHOLE, ODD_WHOLE)
#endif
}
#undef TURN2
#undef TURN4

/* V complex numbers <-> real and imaginary parts. */
INL cell F(part_cell)(vec a, vec b)
{
    return (cell){__builtin_shuffle(a, b, (ivec){EACH_LANE(EVEN_OF, 0)}), __builtin_shuffle(a, b, (ivec){EACH_LANE(ODD_OF, 0)})};
}

INL vec F(first_half)(cell c) { return __builtin_shuffle(c.re, c.im, (ivec){EACH_LANE(FIRST_OF, 0)}); }
INL vec F(second_half)(cell c) { return __builtin_shuffle(c.re, c.im, (ivec){EACH_LANE(SECOND_OF, 0)}); }
INL cell F(load_cell)(const REAL *p) { return F(part_cell)(*(const uvec *)p, *(const uvec *)(p + V)); }
INL void F(store_cell)(cell c, REAL *p)
{
    *(uvec *)p = F(first_half)(c);
    *(uvec *)(p + V) = F(second_half)(c);
}

/* The first `count` numbers of a vector in memory, 0 < count < V; nothing beyond them is read or written. */
INL vec F(load_part)(const REAL *p, i64 count)
{
#if VECTOR_BYTES == 64
    const __mmask16 mask = (__mmask16)((1u << count) - 1);
    return sizeof(REAL) == 4 ? (vec)_mm512_maskz_loadu_ps(mask, p) : (vec)_mm512_maskz_loadu_pd((__mmask8)mask, p);
#elif VECTOR_BYTES == 32
    const ivec mask = (ivec){EACH_LANE(NEXT_OF, 0)} < (ivec){0} + (INDEX)count;
    return sizeof(REAL) == 4 ? (vec)_mm256_maskload_ps((const float *)p, (__m256i)mask) : (vec)_mm256_maskload_pd((const double *)p, (__m256i)mask);
#else
    vec v = {0};
    for (i64 i = 0; i < count; i++)
        v[i] = p[i];
    return v;
#endif
}
INL void F(store_part)(vec v, REAL *p, i64 count)
{
#if VECTOR_BYTES == 64
    if (sizeof(REAL) == 4)
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), (__m512)v);
    else
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << count) - 1), (__m512d)v);
#else /* AVX2's masked stores take some twenty cycles on some processors */
    if (V / 2 > 2 && count & 4) {
        memcpy(p, &v, 4 * sizeof(REAL));
        v = __builtin_shuffle(v, (ivec){EACH_LANE(NEXT_OF, 4)});
        p += 4;
    }
    if (V / 2 > 1 && count & 2) {
        memcpy(p, &v, 2 * sizeof(REAL));
        v = __builtin_shuffle(v, (ivec){EACH_LANE(NEXT_OF, 2)});
        p += 2;
    }
    if (count & 1)
        *p = v[0];
#endif
}

INL cell F(backward)(cell c)
{
    const ivec lanes = {EACH_LANE(BACK_OF, 0)};
    return (cell){__builtin_shuffle(c.re, lanes), __builtin_shuffle(c.im, lanes)};
}
INL cell F(swap)(cell c, int on) { return on ? (cell){c.im, c.re} : c; }
INL cell F(add)(cell a, cell b) { return (cell){a.re + b.re, a.im + b.im}; }
INL cell F(sub)(cell a, cell b) { return (cell){a.re - b.re, a.im - b.im}; }
INL cell F(times)(cell a, REAL re, REAL im)
{
    const vec x = SPLAT(vec, re), y = SPLAT(vec, im);
    return (cell){FMA(a.re, x, -(a.im * y)), FMA(a.re, y, a.im * x)};
}
INL cell F(turned)(cell a) { return (cell){a.im, -a.re}; } /* by -i */
#define add F(add)
#define sub F(sub)
#define times F(times)
#define turned F(turned)

/* ---- passes ---------------------------------------------------------------------------------------------------------------- */

/* x: r blocks of m rows of s cells; y: m rows of r by s. w: r - 1 twiddle factors a row; the first row's are 1. INLINE(NAME) is for callers whose m and s
 * are constants. */
#define INLINE(NAME) F(inline_##NAME)
#define PASS(NAME, R, BODY)                                                                                       \
    INL void INLINE(NAME)(const cell *restrict x, cell *restrict y, const i64 m, const i64 s, const REAL *w)      \
    {                                                                                                             \
        for (i64 p = 0; p < m; p++, w += 2 * (R - 1)) {                                                           \
            const cell *from = x + s * p;                                                                         \
            cell *to = y + s * (R) * p;                                                                           \
            if (p == 0)                                                                                           \
                for (i64 q = 0; q < s; q++) { BODY(UNIT) }                                                        \
            else                                                                                                  \
                for (i64 q = 0; q < s; q++) { BODY(TWIDDLE) }                                                     \
        }                                                                                                         \
    }                                                                                                             \
    KERNEL_FN void F(NAME)(const cell *restrict x, cell *restrict y, i64 m, i64 s, const REAL *w) { INLINE(NAME)(x, y, m, s, w); }
#define IN(j) from[q + s * m * (j)]
#define UNIT(k, value) to[q + s * (k)] = value;
#define TWIDDLE(k, value) to[q + s * (k)] = times(value, w[2 * (k) - 2], w[2 * (k) - 1]);

#define RADIX2(OUT)                                                                                               \
    cell a = IN(0), b = IN(1);                                                                                    \
    UNIT(0, add(a, b)) OUT(1, sub(a, b))
PASS(pass2, 2, RADIX2)

#define RADIX3(OUT)                                                                                               \
    cell a = IN(0), b = IN(1), c = IN(2), t = add(b, c), u = sub(b, c);                                           \
    const vec half = SPLAT(vec, (REAL)-0.5), k3 = SPLAT(vec, (REAL)0.86602540378443864676);                       \
    cell h = {FMA(half, t.re, a.re), FMA(half, t.im, a.im)};                                                      \
    cell g = {FMA(k3, u.im, h.re), FMA(-k3, u.re, h.im)}, l = {FMA(-k3, u.im, h.re), FMA(k3, u.re, h.im)};        \
    UNIT(0, add(a, t)) OUT(1, g) OUT(2, l)
PASS(pass3, 3, RADIX3)

#define RADIX4(OUT)                                                                                               \
    cell a = IN(0), b = IN(1), c = IN(2), d = IN(3);                                                              \
    cell t = add(a, c), u = sub(a, c), v = add(b, d), z = turned(sub(b, d));                                      \
    UNIT(0, add(t, v)) OUT(1, add(u, z)) OUT(2, sub(t, v)) OUT(3, sub(u, z))
PASS(pass4, 4, RADIX4)

#define RADIX5(OUT)                                                                                               \
    const vec c1 = SPLAT(vec, (REAL)0.30901699437494742410), c2 = SPLAT(vec, (REAL)-0.80901699437494742410);      \
    const vec s1 = SPLAT(vec, (REAL)0.95105651629515357212), s2 = SPLAT(vec, (REAL)0.58778525229247312917);       \
    cell a = IN(0), b = IN(1), c = IN(2), d = IN(3), e = IN(4);                                                   \
    cell t1 = add(b, e), t2 = add(c, d), t3 = sub(b, e), t4 = sub(c, d);                                          \
    cell h1 = {FMA(c2, t2.re, FMA(c1, t1.re, a.re)), FMA(c2, t2.im, FMA(c1, t1.im, a.im))};                       \
    cell h2 = {FMA(c1, t2.re, FMA(c2, t1.re, a.re)), FMA(c1, t2.im, FMA(c2, t1.im, a.im))};                       \
    cell g1 = {FMA(s2, t4.im, s1 * t3.im), -FMA(s2, t4.re, s1 * t3.re)};                                          \
    cell g2 = {FMA(-s1, t4.im, s2 * t3.im), FMA(s1, t4.re, -(s2 * t3.re))};                                       \
    UNIT(0, add(add(a, t1), t2)) OUT(1, add(h1, g1)) OUT(2, add(h2, g2)) OUT(3, sub(h2, g2)) OUT(4, sub(h1, g1))
PASS(pass5, 5, RADIX5)

/* One real or imaginary part of an even and an odd sum. */
#define SUM7(c, d, e, PART) FMA(e, t3.PART, FMA(d, t2.PART, FMA(c, t1.PART, a0.PART)))
#define ODD7(c, d, e, PART) FMA(e, u3.PART, FMA(d, u2.PART, (c) * u1.PART))
#define RADIX7(OUT)                                                                                               \
    const vec c1 = SPLAT(vec, (REAL)0.62348980185873353053), s1 = SPLAT(vec, (REAL)0.78183148246802980871);       \
    const vec c2 = SPLAT(vec, (REAL)-0.22252093395631440429), s2 = SPLAT(vec, (REAL)0.97492791218182360702);      \
    const vec c3 = SPLAT(vec, (REAL)-0.90096886790241912624), s3 = SPLAT(vec, (REAL)0.43388373911755812048);      \
    cell a0 = IN(0), a1 = IN(1), a2 = IN(2), a3 = IN(3), a4 = IN(4), a5 = IN(5), a6 = IN(6);                      \
    cell t1 = add(a1, a6), t2 = add(a2, a5), t3 = add(a3, a4), u1 = sub(a1, a6), u2 = sub(a2, a5), u3 = sub(a3, a4); \
    UNIT(0, add(add(a0, t1), add(t2, t3)))                                                                        \
    {                                                                                                             \
        cell h = {SUM7(c1, c2, c3, re), SUM7(c1, c2, c3, im)}, g = {ODD7(s1, s2, s3, im), -ODD7(s1, s2, s3, re)}; \
        OUT(1, add(h, g)) OUT(6, sub(h, g))                                                                       \
    }                                                                                                             \
    {                                                                                                             \
        cell h = {SUM7(c2, c3, c1, re), SUM7(c2, c3, c1, im)}, g = {ODD7(s2, -s3, -s1, im), -ODD7(s2, -s3, -s1, re)}; \
        OUT(2, add(h, g)) OUT(5, sub(h, g))                                                                       \
    }                                                                                                             \
    {                                                                                                             \
        cell h = {SUM7(c3, c1, c2, re), SUM7(c3, c1, c2, im)}, g = {ODD7(s3, -s1, s2, im), -ODD7(s3, -s1, s2, re)}; \
        OUT(3, add(h, g)) OUT(4, sub(h, g))                                                                       \
    }
PASS(pass7, 7, RADIX7)

#define RADIX8(OUT)                                                                                               \
    const vec k8 = SPLAT(vec, (REAL)0.70710678118654752440);                                                      \
    cell a0 = IN(0), a1 = IN(1), a2 = IN(2), a3 = IN(3), a4 = IN(4), a5 = IN(5), a6 = IN(6), a7 = IN(7);          \
    cell b0 = add(a0, a4), b4 = sub(a0, a4), b1 = add(a1, a5), b5 = sub(a1, a5);                                  \
    cell b2 = add(a2, a6), b6 = turned(sub(a2, a6)), b3 = add(a3, a7), b7 = sub(a3, a7);                          \
    cell c0 = add(b0, b2), c2 = sub(b0, b2), c1 = add(b1, b3), c3 = turned(sub(b1, b3));                          \
    cell d5 = {b5.re + b5.im, b5.im - b5.re}, d7 = {k8 * (b7.im - b7.re), -k8 * (b7.re + b7.im)};                 \
    cell e4 = add(b4, b6), e6 = sub(b4, b6), e5 = {FMA(k8, d5.re, d7.re), FMA(k8, d5.im, d7.im)};                 \
    cell e7 = turned((cell){FMA(k8, d5.re, -d7.re), FMA(k8, d5.im, -d7.im)});                                     \
    UNIT(0, add(c0, c1)) OUT(1, add(e4, e5)) OUT(2, add(c2, c3)) OUT(3, add(e6, e7))                              \
    OUT(4, sub(c0, c1)) OUT(5, sub(e4, e5)) OUT(6, sub(c2, c3)) OUT(7, sub(e6, e7))
PASS(pass8, 8, RADIX8)

/* An odd prime r: sums and differences of the inputs j and r - j meet cosines and sines, so that two outputs share their products.
 * w: r cosines, r sines, then the twiddle factors. */
KERNEL_FN void F(pass_odd)(const cell *restrict x, cell *restrict y, i64 m, i64 s, int r, const REAL *w)
{
    const REAL *cosine = w, *sine = w + r;
    int half = (r - 1) / 2;
    cell sum[16], difference[16];
    w += 2 * r;
    for (i64 p = 0; p < m; p++, w += 2 * (r - 1)) {
        for (i64 q = 0; q < s; q++) {
            const cell *from = x + s * p;
            cell *to = y + s * r * p;
            cell first = IN(0), total = first;
            for (int j = 1; j <= half; j++) {
                cell a = IN(j), b = IN(r - j);
                sum[j] = add(a, b);
                difference[j] = sub(a, b);
                total = add(total, sum[j]);
            }
            UNIT(0, total)
            for (int k = 1; k <= half; k++) {
                cell h = first;
                vec re = {0}, im = {0};
                int at = 0;
                for (int j = 1; j <= half; j++) {
                    at += k;
                    if (at >= r)
                        at -= r;
                    const vec c = SPLAT(vec, cosine[at]), d = SPLAT(vec, sine[at]);
                    h.re = FMA(sum[j].re, c, h.re);
                    h.im = FMA(sum[j].im, c, h.im);
                    re = FMA(difference[j].im, d, re);
                    im = FMA(-difference[j].re, d, im);
                }
                TWIDDLE(k, ((cell){h.re + re, h.im + im}))
                TWIDDLE(r - k, ((cell){h.re - re, h.im - im}))
            }
        }
    }
}

/* s groups of V lines of plan's length in `a`, number k of all groups side by side; `b` is room of the same size. Returns whichever of the two
 * holds the result. */
KERNEL_FN cell *F(run_passes)(const FftPlan *plan, cell *a, cell *b, i64 s)
{
    i64 m = plan->n;
    for (int i = 0; i < plan->passes; i++) {
        int r = plan->radix[i];
        const REAL *w = plan->twiddles[i];
        m /= r;
        switch (r) {
        case 2: F(pass2)(a, b, m, s, w); break;
        case 3: F(pass3)(a, b, m, s, w); break;
        case 4: F(pass4)(a, b, m, s, w); break;
        case 5: F(pass5)(a, b, m, s, w); break;
        case 7: F(pass7)(a, b, m, s, w); break;
        case 8: F(pass8)(a, b, m, s, w); break;
        default: F(pass_odd)(a, b, m, s, r, w);
        }
        s *= r;
        cell *t = a;
        a = b;
        b = t;
    }
    return a;
}

INL cell F(conjugate)(cell a) { return (cell){a.re, -a.im}; }

/* The same for any length: Bluestein's convolution, of one group, where a prime factor is too large. `a` and `b` hold s times plan->room cells. */
KERNEL_FN cell *F(run_lanes)(const FftPlan *plan, cell *a, cell *b, i64 s)
{
    const FftPlan *wide = plan->wide;
    if (!wide)
        return F(run_passes)(plan, a, b, s);
    const REAL *chirp = plan->chirp, *spectrum = plan->spectrum;
    for (i64 k = 0; k < plan->n; k++)
        a[k] = times(a[k], chirp[2 * k], chirp[2 * k + 1]);
    memset(a + plan->n, 0, (wide->n - plan->n) * sizeof(cell));
    cell *c = F(run_passes)(wide, a, b, 1), *d = c == a ? b : a;
    for (i64 k = 0; k < wide->n; k++) /* conjugated, so that the second transform is an inverse one */
        c[k] = F(conjugate)(times(c[k], spectrum[2 * k], spectrum[2 * k + 1]));
    c = F(run_passes)(wide, c, d, 1);
    for (i64 k = 0; k < plan->n; k++)
        c[k] = times(F(conjugate)(c[k]), chirp[2 * k], chirp[2 * k + 1]);
    return c;
}

/* ---- real lines ------------------------------------------------------------------------------------------------------------ */

/* Twice the spectrum of a real line of even length n = 2m from that of its m pairs: Z = E + i O, X[k] = E[k] + w^k O[k], X[m - k] the conjugate of
 * E[k] - w^k O[k]. z: m rows of s cells; x: m + 1. */
KERNEL_FN void F(unpack_real)(const cell *restrict z, cell *restrict x, i64 m, i64 s, const REAL *w)
{
    for (i64 k = 0; 2 * k <= m; k++)
        for (i64 q = 0; q < s; q++) {
            cell a = z[k * s + q], b = F(conjugate)(z[(k ? m - k : 0) * s + q]);
            cell e = add(a, b), t = times(turned(sub(a, b)), w[2 * k], w[2 * k + 1]);
            x[k * s + q] = add(e, t);
            x[(m - k) * s + q] = F(conjugate)(sub(e, t));
        }
}

/* The reverse, for the inverse transform: twice Z from X, real and imaginary parts swapped. z: m + 1 rows, the last of which means nothing. */
KERNEL_FN void F(pack_real)(const cell *restrict x, cell *restrict z, i64 m, i64 s, const REAL *w)
{
    for (i64 k = 0; 2 * k <= m; k++)
        for (i64 q = 0; q < s; q++) {
            cell a = x[k * s + q], b = F(conjugate)(x[(m - k) * s + q]);
            cell e = add(a, b), t = times(sub(a, b), w[2 * k], -w[2 * k + 1]);
            z[k * s + q] = (cell){e.im + t.re, e.re - t.im};
            z[(m - k) * s + q] = (cell){t.re - e.im, e.re + t.im};
        }
}

/* Bins k and m - k, for each k <= m / 2, of a real line of 2m numbers from z, the spectrum of its m pairs; conjugated for `inverse`. */
KERNEL_FN void F(unpack_line)(const REAL *z, REAL *y, i64 m, i64 ys, const REAL *w, REAL scale, int inverse)
{
    const REAL conjugated = inverse ? -scale : scale;
    i64 first = 1;
#if VECTOR_BYTES == 64
    for (i64 last = (m + 1) / 2 - V; ys == 1 && first < last + V && last > 0; first += V) { /* the last two vectors of bins meet at most */
        if (first > last) {
            if (z == y) /* what both vectors hold is no longer what it was */
                break;
            first = last;
        }
        cell p = F(load_cell)(z + 2 * first), q = F(backward)(F(load_cell)(z + 2 * (m - first - V + 1))), r = F(load_cell)(w + 2 * first);
        const vec half = SPLAT(vec, (REAL)0.5);
        cell e = {half * (p.re + q.re), half * (p.im - q.im)}, o = {half * (p.im + q.im), half * (q.re - p.re)};
        cell t = {FMA(o.re, r.re, -(o.im * r.im)), FMA(o.re, r.im, o.im * r.re)};
        F(store_cell)((cell){scale * (e.re + t.re), conjugated * (e.im + t.im)}, y + 2 * first);
        F(store_cell)(F(backward)((cell){scale * (e.re - t.re), conjugated * (t.im - e.im)}), y + 2 * (m - first - V + 1));
    }
#endif
    for (i64 k = 0; k <= m / 2; k = k ? k + 1 : first) {
        i64 j = m - k; /* which reads the same two */
        REAL ar = z[2 * k], ai = z[2 * k + 1], br = k ? z[2 * j] : ar, bi = k ? z[2 * j + 1] : ai;
        REAL er = (REAL)0.5 * (ar + br), ei = (REAL)0.5 * (ai - bi), or_ = (REAL)0.5 * (ai + bi), oi = (REAL)0.5 * (br - ar);
        REAL tr = FMA(or_, w[2 * k], -(oi * w[2 * k + 1])), ti = FMA(or_, w[2 * k + 1], oi * w[2 * k]);
        y[2 * k * ys] = scale * (er + tr);
        y[2 * k * ys + 1] = conjugated * (ei + ti);
        y[2 * j * ys] = scale * (er - tr);
        y[2 * j * ys + 1] = conjugated * (ti - ei);
    }
}

/* The reverse: m pairs from the bins of a real line; sign: -1 conjugates them. */
KERNEL_FN void F(pack_line)(const REAL *x, REAL *z, i64 m, i64 xs, const REAL *w, REAL sign)
{
    i64 first = 1;
#if VECTOR_BYTES == 64
    for (; xs == 1 && first < m && m > V; first += V) {
        first = min_i64(first, m - V);
        cell a = F(load_cell)(x + 2 * first), b = F(backward)(F(load_cell)(x + 2 * (m - first - V + 1))), r = F(load_cell)(w + 2 * first);
        a.im *= sign, b.im *= -sign;
        cell d = sub(a, b), s = add(a, b), t = {FMA(d.re, r.re, d.im * r.im), FMA(d.im, r.re, -(d.re * r.im))};
        F(store_cell)((cell){s.re - t.im, s.im + t.re}, z + 2 * first);
    }
#endif
    for (i64 k = 0; k < m; k = k ? k + 1 : first) {
        i64 j = m - k;
        REAL ar = x[2 * k * xs], ai = k ? sign * x[2 * k * xs + 1] : 0, br = x[2 * j * xs], bi = j < m ? -sign * x[2 * j * xs + 1] : 0;
        REAL dr = ar - br, di = ai - bi;
        REAL tr = FMA(dr, w[2 * k], di * w[2 * k + 1]), ti = FMA(di, w[2 * k], -(dr * w[2 * k + 1]));
        z[2 * k] = ar + br - ti;
        z[2 * k + 1] = ai + bi + tr;
    }
}

/* ---- groups of lines ------------------------------------------------------------------------------------------------------- */

typedef struct { i64 x[LANES], y[LANES]; int count, x_adjacent, y_adjacent; } F(Lines);

/* Offsets, in real numbers, of the next `count` lines; lanes beyond repeat the first line. Adjacent: line i begins one element after line i - 1. */
KERNEL_FN void F(locate)(const FftArgs *a, Cursor *next, int count, F(Lines) *at)
{
    i64 xu = a->kind == FFT_R2C ? 1 : 2, yu = a->kind == FFT_C2R ? 1 : 2;
    int inner = a->dims - 1;
    at->count = count;
    if (count == V && next->index[inner] + V <= a->size[inner]) { /* all along the innermost dimension */
        i64 x = xu * next->x, dx = xu * a->x_strides[inner], y = yu * next->y, dy = yu * a->y_strides[inner];
        _Pragma("GCC unroll 16") for (int lane = 0; lane < V; lane++, x += dx, y += dy) at->x[lane] = x, at->y[lane] = y;
        at->x_adjacent = dx == xu;
        at->y_adjacent = dy == yu;
        advance(a, next, V);
        return;
    }
    at->x_adjacent = at->y_adjacent = count == V;
    for (int lane = 0; lane < V; lane++) {
        at->x[lane] = lane < count ? xu * next->x : at->x[0];
        at->y[lane] = lane < count ? yu * next->y : at->y[0];
        at->x_adjacent &= at->x[lane] == at->x[0] + xu * lane;
        at->y_adjacent &= at->y[lane] == at->y[0] + yu * lane;
        if (lane < count)
            advance(a, next, 1);
    }
}

/* Asks for a group's lines of `numbers` numbers, the elements of `unit` numbers and `stride` elements apart. */
KERNEL_FN void F(fetch_lines)(const char *p, const i64 *offset, int count, int adjacent, i64 numbers, int unit, i64 stride)
{
    if (adjacent)
        for (i64 k = 0; k < numbers / unit; k++)
            for (i64 byte = 0; byte < unit * V * (i64)sizeof(REAL); byte += 64)
                __builtin_prefetch(p + (offset[0] + unit * k * stride) * sizeof(REAL) + byte);
    else if (stride == 1) {
        int one_run = count == V && offset[V - 1] - offset[0] == (V - 1) * numbers;
        for (int lane = 0; lane < (one_run ? 1 : count); lane++)
            for (i64 byte = 0; byte < (one_run ? V : 1) * numbers * (i64)sizeof(REAL); byte += 64)
                __builtin_prefetch(p + offset[lane] * sizeof(REAL) + byte);
    }
}

/* The group after the one that is computed now: short lines, and the rows of columns, end before a processor sees where they lead. */
KERNEL_FN void F(fetch)(const FftArgs *a, const F(Lines) *at)
{
    i64 spectrum = a->kind == FFT_C2C ? 2 * a->n : 2 * (a->n / 2 + 1);
    F(fetch_lines)(a->x, at->x, at->count, at->x_adjacent, a->kind == FFT_R2C ? a->n : spectrum, a->kind == FFT_R2C ? 1 : 2, a->x_stride);
    if (at->y_adjacent || a->far > 1) /* rows are written far apart */
        F(fetch_lines)(a->y, at->y, at->count, at->y_adjacent, a->kind == FFT_C2R ? a->n : spectrum, a->kind == FFT_C2R ? 1 : 2, a->y_stride);
}

/* The contiguous lines, of `numbers` numbers, of s groups <-> vectors of one number of V lines. Blocks of V numbers; the last one begins so early
 * that it is whole. Number k of a group is at v[k / 2 * two + k % 2 * one], or at v[k * one], where two is twice that and `numbers` may be odd; the
 * next group is two vectors on. */
KERNEL_FN void F(load_lines)(const REAL *x, const F(Lines) *at, i64 s, i64 numbers, vec *v, i64 one, i64 two)
{
    vec t[V];
    for (; s > 0; s--, at++, v += 2) {
        const REAL *line[V];
        vec *to = v;
        _Pragma("GCC unroll 16") for (int lane = 0; lane < V; lane++) line[lane] = x + at->x[lane];
        if (numbers < V) {
            for (int lane = 0; lane < V; lane++)
                t[lane] = F(load_part)(line[lane], numbers);
            F(transpose)(t);
            for (int i = 0; i < numbers; i++)
                v[i / 2 * two + i % 2 * one] = t[i];
            continue;
        }
        for (i64 k = 0; k < numbers; k += V) {
            if (numbers - k < V) {
                k = numbers - V;
                to = v + (k >> 1) * two + (k & 1) * one;
            }
            _Pragma("GCC unroll 16") for (int lane = 0; lane < V; lane++) t[lane] = *(const uvec *)(line[lane] + k);
            F(transpose)(t);
            _Pragma("GCC unroll 16") for (int i = 0; i < V; i += 2, to += two) to[0] = t[i], to[one] = t[i + 1];
        }
    }
}

KERNEL_FN void F(store_lines)(const vec *v, REAL *y, const F(Lines) *at, i64 s, i64 numbers, i64 one, i64 two, REAL scale)
{
    vec t[V];
    for (; s > 0; s--, at++, v += 2) {
        REAL *line[V];
        const vec *from = v;
        const int count = at->count;
        _Pragma("GCC unroll 16") for (int lane = 0; lane < V; lane++) line[lane] = y + at->y[lane];
        if (numbers < V) {
            for (int i = 0; i < V; i++)
                t[i] = i < numbers ? v[i / 2 * two + i % 2 * one] * scale : (vec){0};
            F(transpose)(t);
            for (int lane = 0; lane < count; lane++)
                F(store_part)(t[lane], line[lane], numbers);
            continue;
        }
        for (i64 k = 0; k < numbers; k += V) {
            if (numbers - k < V) {
                k = numbers - V;
                from = v + (k >> 1) * two + (k & 1) * one;
            }
            _Pragma("GCC unroll 16") for (int i = 0; i < V; i += 2, from += two) t[i] = from[0] * scale, t[i + 1] = from[one] * scale;
            F(transpose)(t);
            if (count == V)
                _Pragma("GCC unroll 16") for (int lane = 0; lane < V; lane++) *(uvec *)(line[lane] + k) = t[lane];
            else
                for (int lane = 0; lane < count; lane++)
                    *(uvec *)(y + at->y[lane] + k) = t[lane];
        }
    }
}

#include "fft_contiguous.h"

/* Whether s groups of adjacent lines, columns of a matrix, are read and written a row of all of them after the other: the runs of memory are longer. */
INL int F(by_rows)(const FftArgs *a, const F(Lines) *at, i64 s)
{
    int adjacent = a->by_rows;
    for (i64 q = 0; q < s; q++)
        adjacent &= at[q].x_adjacent & at[q].y_adjacent;
    return adjacent;
}

/* n complex numbers, `stride` apart, of s groups of V lines into cells. */
KERNEL_FN void F(load_complex)(const REAL *x, const F(Lines) *at, i64 s, i64 n, i64 stride, int swapped, int by_rows, cell *c)
{
    if (stride == 1) {
        F(load_lines)(x, at, s, 2 * n, (vec *)c + swapped, swapped ? -1 : 1, 2 * s);
        return;
    }
    if (by_rows) {
        for (i64 k = 0; k < n; k++, x += 2 * stride)
            for (i64 q = 0; q < s; q++)
                *c++ = F(swap)(F(load_cell)(x + at[q].x[0]), swapped);
        return;
    }
    for (const cell *end = c + s; c < end; c++, at++) {
        cell *to = c;
        const REAL *from = x + (at->x_adjacent ? at->x[0] : 0);
        if (at->x_adjacent)
            for (i64 k = 0; k < n; k++, to += s, from += 2 * stride)
                *to = F(swap)(F(load_cell)(from), swapped);
        else
            for (i64 k = 0; k < n; k++, to += s, from += 2 * stride)
                for (int lane = 0; lane < V; lane++) {
                    to->re[lane] = from[at->x[lane] + swapped];
                    to->im[lane] = from[at->x[lane] + !swapped];
                }
    }
}

KERNEL_FN void F(store_complex)(const cell *c, REAL *y, const F(Lines) *at, i64 s, i64 n, i64 stride, int swapped, int by_rows, REAL scale)
{
    if (stride == 1) {
        F(store_lines)((const vec *)c + swapped, y, at, s, 2 * n, swapped ? -1 : 1, 2 * s, scale);
        return;
    }
    if (by_rows) {
        for (i64 k = 0; k < n; k++, y += 2 * stride)
            for (i64 q = 0; q < s; q++, c++)
                F(store_cell)(F(swap)((cell){c->re * scale, c->im * scale}, swapped), y + at[q].y[0]);
        return;
    }
    for (const cell *end = c + s; c < end; c++, at++) {
        const cell *from = c;
        REAL *to = y + (at->y_adjacent ? at->y[0] : 0);
        if (at->y_adjacent)
            for (i64 k = 0; k < n; k++, from += s, to += 2 * stride)
                F(store_cell)(F(swap)((cell){from->re * scale, from->im * scale}, swapped), to);
        else
            for (i64 k = 0; k < n; k++, from += s, to += 2 * stride)
                for (int lane = 0; lane < at->count; lane++) {
                    to[at->y[lane] + swapped] = from->re[lane] * scale;
                    to[at->y[lane] + !swapped] = from->im[lane] * scale;
                }
    }
}

/* n real numbers: every second one (`pairs`) as the imaginary part of the one before it, or alone. */
KERNEL_FN void F(load_real)(const REAL *x, const F(Lines) *at, i64 s, i64 n, i64 stride, int pairs, int by_rows, cell *c)
{
    i64 count = pairs ? n / 2 : n, step = pairs ? 2 * stride : stride;
    if (!pairs)
        for (i64 k = 0; k < n * s; k++)
            c[k].im = (vec){0};
    if (stride == 1) {
        F(load_lines)(x, at, s, n, (vec *)c, pairs ? 1 : 2 * s, pairs ? 2 * s : 4 * s);
        return;
    }
    if (by_rows) {
        for (i64 k = 0; k < count; k++, x += step)
            for (i64 q = 0; q < s; q++, c++) {
                c->re = *(const uvec *)(x + at[q].x[0]);
                if (pairs)
                    c->im = *(const uvec *)(x + at[q].x[0] + stride);
            }
        return;
    }
    for (const cell *end = c + s; c < end; c++, at++) {
        cell *to = c;
        const REAL *from = x + (at->x_adjacent ? at->x[0] : 0);
        if (at->x_adjacent)
            for (i64 k = 0; k < count; k++, to += s, from += step) {
                to->re = *(const uvec *)from;
                if (pairs)
                    to->im = *(const uvec *)(from + stride);
            }
        else
            for (i64 k = 0; k < count; k++, to += s, from += step)
                for (int lane = 0; lane < V; lane++) {
                    to->re[lane] = from[at->x[lane]];
                    if (pairs)
                        to->im[lane] = from[at->x[lane] + stride];
                }
    }
}

/* Cells whose parts are swapped. */
KERNEL_FN void F(store_real)(const cell *c, REAL *y, const F(Lines) *at, i64 s, i64 n, i64 stride, int pairs, int by_rows, REAL scale)
{
    i64 count = pairs ? n / 2 : n, step = pairs ? 2 * stride : stride;
    if (stride == 1) {
        F(store_lines)((const vec *)c + 1, y, at, s, n, pairs ? -1 : 2 * s, pairs ? 2 * s : 4 * s, scale);
        return;
    }
    if (by_rows) {
        for (i64 k = 0; k < count; k++, y += step)
            for (i64 q = 0; q < s; q++, c++) {
                *(uvec *)(y + at[q].y[0]) = c->im * scale;
                if (pairs)
                    *(uvec *)(y + at[q].y[0] + stride) = c->re * scale;
            }
        return;
    }
    for (const cell *end = c + s; c < end; c++, at++) {
        const cell *from = c;
        REAL *to = y + (at->y_adjacent ? at->y[0] : 0);
        if (at->y_adjacent)
            for (i64 k = 0; k < count; k++, from += s, to += step) {
                *(uvec *)to = from->im * scale;
                if (pairs)
                    *(uvec *)(to + stride) = from->re * scale;
            }
        else
            for (i64 k = 0; k < count; k++, from += s, to += step)
                for (int lane = 0; lane < at->count; lane++) {
                    to[at->y[lane]] = from->im[lane] * scale;
                    if (pairs)
                        to[at->y[lane] + stride] = from->re[lane] * scale;
                }
    }
}

/* s groups side by side, so that short lines, too, have loops of some length. */
KERNEL_FN void F(run_together)(const FftArgs *a, const F(Lines) *at, i64 s, const F(Lines) *following, i64 following_count)
{
    const FftPlan *plan = a->plan, *half = plan->half, *core = a->kind != FFT_C2C && half ? half : plan;
    const REAL *x = (const REAL *)a->x;
    REAL *y = (REAL *)a->y;
    cell *c = (cell *)a->scratch, *d = c + a->together * plan->room, *r;
    i64 n = a->n, spectrum = n / 2 + 1;
    const int by_rows = F(by_rows)(a, at, s);
    const REAL scale = (REAL)(a->kind == FFT_R2C && half ? a->scale / 2 : a->scale);
    if (a->kind == FFT_R2C)
        F(load_real)(x, at, s, n, a->x_stride, half != NULL, by_rows, c);
    else
        F(load_complex)(x, at, s, a->kind == FFT_C2C ? n : spectrum, a->x_stride, a->kind == FFT_C2C && a->inverse, by_rows, c);
    if (a->far)
        for (i64 q = 0; q < following_count; q++)
            F(fetch)(a, following + q);
    if (a->kind == FFT_C2R) { /* conjugated for the forward direction: the passes run the inverse by swapped parts */
        if (!a->inverse)
            for (i64 k = 0; k < spectrum * s; k++)
                c[k] = F(conjugate)(c[k]);
        for (i64 q = 0; q < s; q++) { /* of a Hermitian spectrum these are zero; what is given there is ignored */
            c[q].im = (vec){0};
            if (n % 2 == 0)
                c[n / 2 * s + q].im = (vec){0};
        }
        if (half) {
            F(pack_real)(c, d, n / 2, s, plan->quarter);
            cell *t = c;
            c = d;
            d = t;
        } else {
            for (i64 k = spectrum; k < n; k++)
                for (i64 q = 0; q < s; q++)
                    c[k * s + q] = F(swap)(F(conjugate)(c[(n - k) * s + q]), 1);
            for (i64 k = 0; k < spectrum * s; k++)
                c[k] = F(swap)(c[k], 1);
        }
    }
    r = F(run_lanes)(core, c, d, s);
    if (a->kind == FFT_R2C) {
        cell *other = r == c ? d : c;
        if (half) {
            F(unpack_real)(r, other, n / 2, s, plan->quarter);
            cell *t = r;
            r = other;
            other = t;
        }
        if (a->inverse)
            for (i64 k = 0; k < spectrum * s; k++)
                r[k] = F(conjugate)(r[k]);
        F(store_complex)(r, y, at, s, spectrum, a->y_stride, 0, by_rows, scale);
        if (a->twosided && n > 2) {
            for (i64 k = spectrum; k < n; k++)
                for (i64 q = 0; q < s; q++)
                    other[(k - spectrum) * s + q] = F(conjugate)(r[(n - k) * s + q]);
            F(store_complex)(other, y + 2 * spectrum * a->y_stride, at, s, n - spectrum, a->y_stride, 0, by_rows, scale);
        }
    } else if (a->kind == FFT_C2C)
        F(store_complex)(r, y, at, s, n, a->y_stride, a->inverse, by_rows, scale);
    else
        F(store_real)(r, y, at, s, n, a->y_stride, half != NULL, by_rows, scale);
}

/* Groups [begin, end). */
KERNEL_FN void F(run_groups)(const FftArgs *a, i64 begin, i64 end)
{
    F(Lines) at[2][FFT_COLUMNS_TOGETHER];
    Cursor next;
    i64 line = begin * V, limit = min_i64(end * V, a->lines), made = 0, running;
    place(a, line, &next);
    for (int turn = 0;; turn ^= 1) {
        running = made;
        for (made = 0; line < limit && made < a->together; made++, line += V)
            F(locate)(a, &next, (int)min_i64(limit - line, V), &at[turn][made]);
        if (running)
            F(run_together)(a, at[turn ^ 1], running, at[turn], made);
        else if (!made)
            break;
    }
}

/* ---- one long line --------------------------------------------------------------------------------------------------------- */

/* Columns [begin, end) in groups of V of the n1 x n2 matrix x: transformed, twiddled, each group's n1 cells stored one after another in `t`. */
KERNEL_FN void F(run_columns)(const FftPlan *plan, const REAL *x, cell *t, i64 begin, i64 end, int swapped, cell *c)
{
    const FftPlan *p1 = plan->columns;
    i64 n1 = p1->n, n2 = plan->rows->n;
    cell *d = c + p1->room;
    for (i64 g = begin; g < end; g++) {
        i64 first = g * V;
        int count = n2 - first < V ? (int)(n2 - first) : V;
        if (count == V)
            for (i64 k = 0; k < n1; k++)
                c[k] = F(swap)(F(load_cell)(x + 2 * (k * n2 + first)), swapped);
        else
            for (i64 k = 0; k < n1; k++) {
                REAL padded[2 * LANES] = {0};
                memcpy(padded, x + 2 * (k * n2 + first), 2 * count * sizeof(REAL));
                c[k] = F(swap)(F(load_cell)(padded), swapped);
            }
        cell *r = F(run_passes)(p1, c, d, 1);
        const cell *w = (const cell *)plan->twist + g * n1;
        for (i64 k = 0; k < n1; k++)
            t[g * n1 + k] = (cell){FMA(r[k].re, w[k].re, -(r[k].im * w[k].im)), FMA(r[k].re, w[k].im, r[k].im * w[k].re)};
    }
}

/* Rows [begin, end) in groups of V from `t`: transformed and stored in order, y[k2 * n1 + k1]. */
KERNEL_FN void F(run_rows)(const FftPlan *plan, const cell *t, REAL *y, i64 begin, i64 end, int swapped, REAL scale, cell *c)
{
    const FftPlan *p2 = plan->rows;
    i64 n1 = plan->columns->n, n2 = p2->n;
    cell *d = c + p2->room;
    for (i64 g = begin; g < end; g++) {
        i64 first = g * V;
        int count = n1 - first < V ? (int)(n1 - first) : V;
        for (i64 j = 0; j * V < n2; j++) {
            const cell *from = t + j * n1 + first;
            vec re[V], im[V];
            for (int i = 0; i < V; i++) {
                int at = i < count ? i : 0;
                re[i] = from[at].re;
                im[i] = from[at].im;
            }
            F(transpose)(re);
            F(transpose)(im);
            for (int i = 0; i < V && j * V + i < n2; i++)
                c[j * V + i] = (cell){re[i], im[i]};
        }
        cell *r = F(run_passes)(p2, c, d, 1);
        for (i64 k = 0; k < n2; k++) {
            cell v = F(swap)((cell){r[k].re * scale, r[k].im * scale}, swapped);
            REAL *to = y + 2 * (k * n1 + first);
            if (count == V)
                F(store_cell)(v, to);
            else {
                REAL padded[2 * LANES];
                F(store_cell)(v, padded);
                memcpy(to, padded, 2 * count * sizeof(REAL));
            }
        }
    }
}

/* A contiguous line of any length to another (x and y may be one). `room`: fft_line_room cells. */
KERNEL_FN void F(run_line)(const FftPlan *plan, const REAL *x, REAL *y, int swapped, REAL scale, cell *room)
{
    i64 n = plan->n;
    if (plan->wide) {
        const FftPlan *wide = plan->wide;
        const REAL *chirp = plan->chirp, *spectrum = plan->spectrum;
        REAL *z = (REAL *)room;
        room += (2 * wide->n + 2 * V - 1) / (2 * V) + 1;
        for (i64 k = 0; k < n; k++) {
            REAL re = x[2 * k + swapped], im = x[2 * k + !swapped];
            z[2 * k] = FMA(re, chirp[2 * k], -(im * chirp[2 * k + 1]));
            z[2 * k + 1] = FMA(re, chirp[2 * k + 1], im * chirp[2 * k]);
        }
        memset(z + 2 * n, 0, 2 * (wide->n - n) * sizeof(REAL));
        F(run_line)(wide, z, z, 0, 1, room);
        for (i64 k = 0; k < wide->n; k++) {
            REAL re = z[2 * k], im = z[2 * k + 1];
            z[2 * k] = FMA(re, spectrum[2 * k], -(im * spectrum[2 * k + 1]));
            z[2 * k + 1] = -FMA(re, spectrum[2 * k + 1], im * spectrum[2 * k]);
        }
        F(run_line)(wide, z, z, 0, 1, room);
        for (i64 k = 0; k < n; k++) {
            REAL re = z[2 * k] * scale, im = -z[2 * k + 1] * scale;
            y[2 * k + swapped] = FMA(re, chirp[2 * k], -(im * chirp[2 * k + 1]));
            y[2 * k + !swapped] = FMA(re, chirp[2 * k + 1], im * chirp[2 * k]);
        }
    } else if (plan->columns) {
        i64 n1 = plan->columns->n, n2 = plan->rows->n, groups = (n2 + V - 1) / V;
        cell *t = room, *c = room + groups * n1 + V;
        F(run_columns)(plan, x, t, 0, groups, swapped, c);
        F(run_rows)(plan, t, y, 0, (n1 + V - 1) / V, swapped, scale, c);
    } else {
        /* one lane: lengths that do not split */
        for (i64 k = 0; k < n; k++)
            room[k] = (cell){(vec){x[2 * k + swapped]}, (vec){x[2 * k + !swapped]}};
        cell *r = F(run_passes)(plan, room, room + n, 1);
        for (i64 k = 0; k < n; k++) {
            y[2 * k + swapped] = r[k].re[0] * scale;
            y[2 * k + !swapped] = r[k].im[0] * scale;
        }
    }
}

KERNEL_FN void F(run_by_line)(const FftArgs *a, i64 line)
{
    const FftPlan *plan = a->plan, *half = plan->half, *core = a->kind != FFT_C2C && half ? half : plan;
    Cursor at;
    place(a, line, &at);
    const REAL *x = (const REAL *)a->x + (a->kind == FFT_R2C ? 1 : 2) * at.x;
    REAL *y = (REAL *)a->y + (a->kind == FFT_C2R ? 1 : 2) * at.y, scale = (REAL)a->scale;
    /* the line in order, which may lie in the result, then the transform's own room */
    REAL *z = a->line_cells ? (REAL *)a->scratch : y;
    cell *room = (cell *)a->scratch + a->line_cells;
    i64 n = a->n, m = n / 2, spectrum = m + 1, xs = a->x_stride, ys = a->y_stride;
    if (a->kind == FFT_C2C) {
        const REAL *from = x;
        if (xs != 1) {
            for (i64 k = 0; k < n; k++) {
                z[2 * k] = x[2 * k * xs];
                z[2 * k + 1] = x[2 * k * xs + 1];
            }
            from = z;
        }
        F(run_line)(plan, from, ys == 1 ? y : z, a->inverse, scale, room);
        if (ys != 1)
            for (i64 k = 0; k < n; k++) {
                y[2 * k * ys] = z[2 * k];
                y[2 * k * ys + 1] = z[2 * k + 1];
            }
    } else if (a->kind == FFT_R2C) {
        if (half) {
            const REAL *w = plan->quarter;
            if (xs != 1) {
                for (i64 k = 0; k < n; k++)
                    z[k] = x[k * xs];
                x = z;
            }
            F(run_line)(core, x, z, 0, 1, room);
            F(unpack_line)(z, y, m, ys, w, scale, a->inverse);
        } else {
            for (i64 k = 0; k < n; k++) {
                z[2 * k] = x[k * xs];
                z[2 * k + 1] = 0;
            }
            F(run_line)(core, z, z, 0, scale, room);
            for (i64 k = 0; k < spectrum; k++) {
                y[2 * k * ys] = z[2 * k];
                y[2 * k * ys + 1] = a->inverse ? -z[2 * k + 1] : z[2 * k + 1];
            }
        }
        if (a->twosided)
            for (i64 k = spectrum; k < n; k++) {
                y[2 * k * ys] = y[2 * (n - k) * ys];
                y[2 * k * ys + 1] = -y[2 * (n - k) * ys + 1];
            }
    } else {
        REAL sign = a->inverse ? 1 : -1;
        if (half) {
            F(pack_line)(x, z, m, xs, plan->quarter, sign);
            F(run_line)(core, z, ys == 1 ? y : z, 1, scale, room);
            if (ys != 1)
                for (i64 k = 0; k < n; k++)
                    y[k * ys] = z[k];
        } else {
            for (i64 k = 0; k < spectrum; k++) {
                i64 j = n - k;
                REAL re = x[2 * k * xs], im = k && 2 * k != n ? sign * x[2 * k * xs + 1] : 0;
                z[2 * k] = re;
                z[2 * k + 1] = im;
                if (k && j != k) {
                    z[2 * j] = re;
                    z[2 * j + 1] = -im;
                }
            }
            F(run_line)(core, z, z, 1, scale, room);
            for (i64 k = 0; k < n; k++)
                y[k * ys] = z[2 * k];
        }
    }
}

#undef vec
#undef ivec
#undef uvec
#undef cell
#undef add
#undef sub
#undef times
#undef turned
#undef V
#undef PAIR
#undef REAL
#undef F
#undef LANES
#undef INDEX
#undef EACH_LANE
