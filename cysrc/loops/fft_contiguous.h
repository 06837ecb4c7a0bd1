/* Contiguous complex lines of one real type that need no room beside the stack: of one pass, and with AVX-512 of two passes or as matrices of a vector's
 * width. Included by fft_real.h. */

/* Contiguous complex lines of one pass, a group of V: to registers and back, without scratch. The bits are run_together's.
 * Lines are read and written as by load_lines and store_lines, whose loops have no constant bounds and took 1.06 to 1.36 times as long here. */
#undef IN
#undef UNIT
#define IN(j) ((cell){number[2 * (j) + swapped], number[2 * (j) + !swapped]})
#define UNIT(k, value)                                                                                            \
    {                                                                                                             \
        cell out = value;                                                                                         \
        number[2 * (k) + swapped] = out.re * scale, number[2 * (k) + !swapped] = out.im * scale;                  \
    }
#define ONE_PASS(NAME, R, BODY)                                                                                   \
    INL void F(NAME)(const REAL *x, REAL *y, const F(Lines) *at, const int swapped, REAL scale)                   \
    {                                                                                                             \
        enum { NUMBERS = 2 * (R) };                                                                               \
        vec number[NUMBERS < V ? V : NUMBERS];                                                                    \
        if (NUMBERS < V) {                                                                                        \
            _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) number[i] = F(load_part)(x + at->x[i], NUMBERS); \
            F(transpose)(number);                                                                                 \
        } else                                                                                                    \
            _Pragma("GCC unroll 16") for (int k = 0; k < NUMBERS; k += V) {                                       \
                const int first = k + V > NUMBERS ? NUMBERS - V : k;                                              \
                vec t[V];                                                                                         \
                _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) t[i] = *(const uvec *)(x + at->x[i] + first); \
                F(transpose)(t);                                                                                  \
                _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) number[first + i] = t[i];                    \
            }                                                                                                     \
        {                                                                                                         \
            BODY(UNIT)                                                                                            \
        }                                                                                                         \
        if (NUMBERS < V) {                                                                                        \
            F(transpose)(number);                                                                                 \
            for (int i = 0; i < at->count; i++)                                                                   \
                F(store_part)(number[i], y + at->y[i], NUMBERS);                                                  \
        } else                                                                                                    \
            _Pragma("GCC unroll 16") for (int k = 0; k < NUMBERS; k += V) {                                       \
                const int first = k + V > NUMBERS ? NUMBERS - V : k;                                              \
                vec t[V];                                                                                         \
                _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) t[i] = number[first + i];                    \
                F(transpose)(t);                                                                                  \
                if (at->count == V)                                                                               \
                    _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) *(uvec *)(y + at->y[i] + first) = t[i];  \
                else                                                                                              \
                    for (int i = 0; i < at->count; i++)                                                           \
                        *(uvec *)(y + at->y[i] + first) = t[i];                                                   \
            }                                                                                                     \
    }
ONE_PASS(line2, 2, RADIX2)
ONE_PASS(line3, 3, RADIX3)
ONE_PASS(line4, 4, RADIX4)
ONE_PASS(line5, 5, RADIX5)
ONE_PASS(line7, 7, RADIX7)
ONE_PASS(line8, 8, RADIX8)
#undef ONE_PASS
#undef UNIT
#undef IN

#if VECTOR_BYTES == 64
INL void F(scale_cells)(cell *c, const int n, REAL scale)
{
    for (int i = 0; i < n; i++)
        c[i] = (cell){c[i].re * scale, c[i].im * scale};
}

/* Rows of V lines <-> numbers k and k + 1 of all of them, which are the parts of a cell: one is 1, or -1 where they are swapped. */
INL void F(put_numbers)(vec *t, vec *to, const int one)
{
    F(transpose)(t);
    _Pragma("GCC unroll 16") for (int i = 0; i < V; i += 2, to += 2) to[0] = t[i], to[one] = t[i + 1];
}
INL void F(take_numbers)(const vec *from, vec *t, const int one)
{
    _Pragma("GCC unroll 16") for (int i = 0; i < V; i += 2, from += 2) t[i] = from[0], t[i + 1] = from[one];
    F(transpose)(t);
}

/* The same of two passes, over scratch that stays in the nearest cache. Lines of two vectors are read and written whole, one after another: in the order
 * of memory they took 0.88 of the time that halves of all lines did. */
#define TWO_PASSES(NAME, R1, R2)                                                                                  \
    KERNEL_FN void F(NAME)(const FftPlan *plan, const REAL *x, REAL *y, const F(Lines) *at, int swapped, REAL scale) \
    {                                                                                                             \
        enum { N = (R1) * (R2), NUMBERS = 2 * N };                                                                \
        cell a[N], b[N];                                                                                          \
        vec *number = (vec *)a + swapped, t[V], u[V];                                                             \
        const int one = swapped ? -1 : 1, pairs = NUMBERS == 2 * V;                                               \
        if (pairs) {                                                                                              \
            _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) t[i] = *(const uvec *)(x + at->x[i]), u[i] = *(const uvec *)(x + at->x[i] + V); \
            F(put_numbers)(t, number, one);                                                                       \
            F(put_numbers)(u, number + V, one);                                                                   \
        } else                                                                                                    \
            _Pragma("GCC unroll 16") for (int k = 0; k < NUMBERS; k += V) {                                       \
                const int first = k + V > NUMBERS ? NUMBERS - V : k;                                              \
                _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) t[i] = *(const uvec *)(x + at->x[i] + first); \
                F(put_numbers)(t, number + first, one);                                                           \
            }                                                                                                     \
        INLINE(pass##R1)(a, b, R2, 1, plan->twiddles[0]);                                                         \
        INLINE(pass##R2)(b, a, 1, R1, plan->twiddles[1]);                                                         \
        if (scale != 1) /* the common one takes no multiplication */                                              \
            F(scale_cells)(a, N, scale);                                                                          \
        if (pairs && at->count == V) {                                                                            \
            F(take_numbers)(number, t, one);                                                                      \
            F(take_numbers)(number + V, u, one);                                                                  \
            _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) *(uvec *)(y + at->y[i]) = t[i], *(uvec *)(y + at->y[i] + V) = u[i]; \
        } else                                                                                                    \
            _Pragma("GCC unroll 16") for (int k = 0; k < NUMBERS; k += V) {                                       \
                const int first = k + V > NUMBERS ? NUMBERS - V : k;                                              \
                F(take_numbers)(number + first, t, one);                                                          \
                if (at->count == V)                                                                               \
                    _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) *(uvec *)(y + at->y[i] + first) = t[i];  \
                else                                                                                              \
                    for (int i = 0; i < at->count; i++)                                                           \
                        *(uvec *)(y + at->y[i] + first) = t[i];                                                   \
            }                                                                                                     \
    }
TWO_PASSES(line10, 2, 5)
TWO_PASSES(line12, 4, 3)
TWO_PASSES(line15, 3, 5)
TWO_PASSES(line16, 4, 4)
TWO_PASSES(line32, 8, 4)
#undef TWO_PASSES

#endif

/* Groups [begin, end) of such lines. */
KERNEL_FN void F(run_short)(const FftArgs *a, i64 begin, i64 end)
{
    F(Lines) at;
    Cursor next;
    const REAL scale = (REAL)a->scale;
    i64 line = begin * V, limit = min_i64(end * V, a->lines);
    place(a, line, &next);
#define LINES_OF(R)                                                                                               \
    for (; line < limit; line += V) {                                                                             \
        F(locate)(a, &next, (int)min_i64(limit - line, V), &at);                                                  \
        if (a->inverse)                                                                                           \
            F(line##R)((const REAL *)a->x, (REAL *)a->y, &at, 1, scale);                                          \
        else                                                                                                      \
            F(line##R)((const REAL *)a->x, (REAL *)a->y, &at, 0, scale);                                          \
    }                                                                                                             \
    break;
    switch (a->n) {
    case 2: LINES_OF(2)
    case 3: LINES_OF(3)
    case 4: LINES_OF(4)
    case 5: LINES_OF(5)
    case 7: LINES_OF(7)
    case 8: LINES_OF(8)
    }
#undef LINES_OF
#if VECTOR_BYTES == 64
#define LINES_OF(N)                                                                                               \
    for (; line < limit; line += V) {                                                                             \
        F(locate)(a, &next, (int)min_i64(limit - line, V), &at);                                                  \
        F(line##N)(a->plan, (const REAL *)a->x, (REAL *)a->y, &at, a->inverse, scale);                            \
    }                                                                                                             \
    break;
    switch (a->n) {
    case 10: LINES_OF(10)
    case 12: LINES_OF(12)
    case 15: LINES_OF(15)
    case 16: LINES_OF(16)
    case 32: LINES_OF(32)
    }
#undef LINES_OF
#endif
}

#if VECTOR_BYTES == 64
/* A column or a row of 4, 8 or 16 cells, whose passes' bounds are constants. */
INL cell *F(run_side)(const FftPlan *plan, const int n, cell *c, cell *d)
{
    if (n == 4)
        INLINE(pass4)(c, d, 1, 1, plan->twiddles[0]);
    else if (n == 8)
        INLINE(pass8)(c, d, 1, 1, plan->twiddles[0]);
    else {
        INLINE(pass4)(c, d, 4, 1, plan->twiddles[0]);
        INLINE(pass4)(d, c, 1, 4, plan->twiddles[1]);
    }
    return n == 16 ? c : d;
}

/* Lines as matrices of n1 rows and V columns, so that vectors lie along a line: columns are transformed where they lie, rows after one transposition of
 * V of them, and what they give is stored as it comes. A line per lane takes a second transposition, and passes between caches. V rows are those of
 * several lines, or a line has several times as many. */
INL void F(run_split_lines)(const FftPlan *plan, const REAL *const *x, REAL *const *y, const int n1, int count, int swapped, REAL scale)
{
    enum { ROOM = 2 * V };
    const int lines = n1 < V ? V / n1 : 1, rows = n1 < V ? V : n1;
    cell c[ROOM], d[ROOM], t[ROOM];
    for (int l = 0; l < lines; l++) {
        const REAL *from = x[l < count ? l : 0];
        _Pragma("GCC unroll 16") for (int k = 0; k < n1; k++) c[k] = F(swap)(F(load_cell)(from + 2 * V * k), swapped);
        const cell *r = F(run_side)(plan->columns, n1, c, d), *w = plan->twist;
        _Pragma("GCC unroll 16") for (int k = 0; k < n1; k++)
            t[l * n1 + k] = (cell){FMA(r[k].re, w[k].re, -(r[k].im * w[k].im)), FMA(r[k].re, w[k].im, r[k].im * w[k].re)};
    }
    for (int first = 0; first < rows; first += V) {
        vec re[V], im[V];
        _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) re[i] = t[first + i].re;
        F(transpose)(re);
        _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) c[i].re = re[i];
        _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) im[i] = t[first + i].im;
        F(transpose)(im);
        _Pragma("GCC unroll 16") for (int i = 0; i < V; i++) c[i].im = im[i];
        cell *r = F(run_side)(plan->rows, V, c, d);
        if (scale != 1)
            F(scale_cells)(r, V, scale);
        _Pragma("GCC unroll 4") for (int k = 0; k < V; k++) {
            const cell v = F(swap)(r[k], swapped);
            const vec half[2] = {F(first_half)(v), F(second_half)(v)};
            for (int h = 0; h < 2; h++) {
                const int lane = h * V / 2; /* of which the line and the row */
                if (n1 >= V / 2) {
                    if (lane / n1 < count)
                        *(uvec *)(y[lane / n1] + 2 * (k * n1 + first + lane % n1)) = half[h];
                } else { /* n1 is V / 4 */
                    if (lane / n1 < count)
                        _mm256_storeu_ps((float *)(y[lane / n1] + 2 * k * n1), _mm512_castps512_ps256((__m512)half[h]));
                    if (lane / n1 + 1 < count)
                        _mm256_storeu_ps((float *)(y[lane / n1 + 1] + 2 * k * n1), _mm512_extractf32x8_ps((__m512)half[h], 1));
                }
            }
        }
    }
}

/* Groups [begin, end) of such lines. */
KERNEL_FN void F(run_split)(const FftArgs *a, i64 begin, i64 end)
{
    const FftPlan *core = a->kind == FFT_C2C ? a->plan : a->plan->half;
    const int n1 = (int)core->columns->n, lines = (int)a->group_lines;
    const i64 xu = a->kind == FFT_R2C ? 1 : 2, yu = a->kind == FFT_C2R ? 1 : 2;
    const int swapped = a->kind == FFT_C2R || (a->kind == FFT_C2C && a->inverse);
    const REAL scale = a->kind == FFT_R2C ? 1 : (REAL)a->scale;
    const REAL *x[4];
    REAL *y[4], *result[4];
    Cursor at;
    i64 line = begin * lines, limit = min_i64(end * lines, a->lines);
    place(a, line, &at);
    for (; line < limit; line += lines) {
        const int count = (int)min_i64(lines, limit - line);
        for (int l = 0; l < count; l++, advance(a, &at, 1)) {
            REAL *half = (REAL *)a->scratch + 2 * core->n * l; /* of a real line: its pairs, or their spectrum */
            x[l] = (const REAL *)a->x + xu * at.x;
            y[l] = result[l] = (REAL *)a->y + yu * at.y;
            if (a->kind == FFT_R2C)
                y[l] = half;
            if (a->kind == FFT_C2R) {
                F(pack_line)(x[l], half, core->n, 1, a->plan->quarter, a->inverse ? 1 : -1);
                x[l] = half;
            }
        }
        switch (n1) {
        case 4: F(run_split_lines)(core, x, y, 4, count, swapped, scale); break;
        case 8: F(run_split_lines)(core, x, y, 8, count, swapped, scale); break;
        default: F(run_split_lines)(core, x, y, 16, count, swapped, scale);
        }
        for (int l = 0; l < count && a->kind == FFT_R2C; l++) {
            F(unpack_line)(y[l], result[l], core->n, 1, a->plan->quarter, (REAL)a->scale, a->inverse);
            for (i64 k = core->n + 1; a->twosided && k < a->n; k++) {
                result[l][2 * k] = result[l][2 * (a->n - k)];
                result[l][2 * k + 1] = -result[l][2 * (a->n - k) + 1];
            }
        }
    }
}
#endif
