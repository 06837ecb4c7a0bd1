/* Included by linalg_reflectors.c once for each type T, with its vectors and limits. */
#define SIDE ((int64_t)(VECTOR_BYTES / sizeof(T)))

KERNEL_INLINE T NAME(sum)(VECTOR v) {
    VECTOR_16 x = NAME(fold_to_16)(v);
    UNROLL for (int w = 8 / sizeof(T); w > 0; w /= 2) UNROLL for (int j = 0; j < w; j++) x[j] += x[j + w];
    return x[0];
}

#if VECTOR_BYTES == 64
/* The sums of 16 vectors cost 45 instructions together, alone 160: quarters of four vectors' partial sums side by side, then those of four such vectors
   transposed as they are added. w[p + q * ldw] becomes the sum of sums[p][q], q < 4. */
KERNEL_INLINE VECTOR NAME(quarters)(VECTOR a, VECTOR b, VECTOR c, VECTOR d) {
    const VECTOR ab = (VECTOR)(FOUR(a, b, 0, 1, 4, 5) + FOUR(a, b, 2, 3, 6, 7)), cd = (VECTOR)(FOUR(c, d, 0, 1, 4, 5) + FOUR(c, d, 2, 3, 6, 7));
    return FOUR(ab, cd, 0, 2, 4, 6) + FOUR(ab, cd, 1, 3, 5, 7);
}
KERNEL_INLINE void NAME(sums_of_16)(VECTOR sums[HIGH][COLUMNS], int from, T* w, int64_t ldw, const int wide) {
    VECTOR x[4];
    UNROLL for (int p = 0; p < 4; p++)
        x[p] = wide == 4 ? NAME(quarters)(sums[p][from], sums[p][from + 1], sums[p][from + 2], sums[p][from + 3])
                         : NAME(quarters)(sums[p][from], wide > 1 ? sums[p][from + 1] : sums[p][from], sums[p][from], sums[p][from]);
    VECTOR out[sizeof(T) / 4];
    TRANSPOSED_SUMS(x, out);
    UNROLL for (int q = 0; q < wide; q++)
        UNROLL for (int half = 0; half < (int)sizeof(T) / 4; half++)
            memcpy(w + q * ldw + half * 2, (const char*)&out[half] + 16 * q, 16);
}
#endif

/* ---- tiles: P columns of V by Q of C, or P vectors of rows by Q columns ---- */

/* w[p + q * ldw] = column p of v times column q of c, over m rows. */
KERNEL_INLINE void NAME(dot_tile)(int64_t m, const T* v, int64_t ldv, const T* c, int64_t ldc, T* w, int64_t ldw, const int P, const int Q) {
    VECTOR sums[HIGH][COLUMNS], x[HIGH];
    int64_t i = 0;
    UNROLL for (int p = 0; p < P; p++) UNROLL for (int q = 0; q < Q; q++) sums[p][q] = (VECTOR){0};
    for (; i + SIDE <= m; i += SIDE) {
        UNROLL for (int p = 0; p < P; p++) x[p] = *(const VECTOR_U*)(v + i + p * ldv);
        UNROLL for (int q = 0; q < Q; q++) {
            const VECTOR y = *(const VECTOR_U*)(c + i + q * ldc);
            UNROLL for (int p = 0; p < P; p++) sums[p][q] = FMA(x[p], y, sums[p][q]);
        }
    }
    if (i < m) {
        VECTOR last[HIGH];
        UNROLL for (int p = 0; p < P; p++) last[p] = NAME(partial)(v + i + p * ldv, m - i, 0);
        UNROLL for (int q = 0; q < Q; q++) {
            const VECTOR y = NAME(partial)(c + i + q * ldc, m - i, 0);
            UNROLL for (int p = 0; p < P; p++) sums[p][q] = FMA(last[p], y, sums[p][q]);
        }
    }
#if VECTOR_BYTES == 64
    if (P == 4) {
        NAME(sums_of_16)(sums, 0, w, ldw, Q < 4 ? Q : 4);
        if (Q > 4) NAME(sums_of_16)(sums, 4, w + 4 * ldw, ldw, Q - 4);
        return;
    }
#endif
    UNROLL for (int q = 0; q < Q; q++) UNROLL for (int p = 0; p < P; p++) w[p + q * ldw] = NAME(sum)(sums[p][q]);
}

/* w (p, q) = v' c for q <= COLUMNS. */
KERNEL_ONCE void NAME(dots)(int64_t m, int64_t p, const T* v, int64_t ldv, const T* c, int64_t ldc, T* w, int64_t ldw, int64_t q) {
    int64_t i = 0;
    if (q == COLUMNS) {
        for (; i + HIGH <= p; i += HIGH) NAME(dot_tile)(m, v + i * ldv, ldv, c, ldc, w + i, ldw, HIGH, COLUMNS);
        for (; i < p; i++) NAME(dot_tile)(m, v + i * ldv, ldv, c, ldc, w + i, ldw, 1, COLUMNS);
        return;
    }
    int64_t j = 0;
    if (p == 1)                         /* a sum alone waits for itself */
        for (; j + COLUMNS / 2 <= q; j += COLUMNS / 2) NAME(dot_tile)(m, v, ldv, c + j * ldc, ldc, w + j * ldw, ldw, 1, COLUMNS / 2);
    for (; j < q; j++) {
        for (i = 0; i + HIGH <= p; i += HIGH) NAME(dot_tile)(m, v + i * ldv, ldv, c + j * ldc, ldc, w + i + j * ldw, ldw, HIGH, 1);
        for (; i < p; i++) NAME(dot_tile)(m, v + i * ldv, ldv, c + j * ldc, ldc, w + i + j * ldw, ldw, 1, 1);
    }
}

/* c += v w for P vectors of rows, the last of which has `rest` rows. */
KERNEL_INLINE void NAME(add_tile)(int64_t p, const T* v, int64_t ldv, const T* w, int64_t ldw, T* c, int64_t ldc, int64_t rest, const int P, const int Q) {
    VECTOR sums[2 * HIGH][COLUMNS], x[2 * HIGH];
    UNROLL for (int q = 0; q < Q; q++)
        UNROLL for (int r = 0; r < P; r++)
            sums[r][q] = r < P - 1 || rest == SIDE ? (VECTOR) * (const VECTOR_U*)(c + r * SIDE + q * ldc) : NAME(partial)(c + r * SIDE + q * ldc, rest, 0);
    for (int64_t k = 0; k < p; k++) {
        UNROLL for (int r = 0; r < P; r++)
            x[r] = r < P - 1 || rest == SIDE ? (VECTOR) * (const VECTOR_U*)(v + r * SIDE + k * ldv) : NAME(partial)(v + r * SIDE + k * ldv, rest, 0);
        UNROLL for (int q = 0; q < Q; q++) {
            const VECTOR f = NAME(splat)(w[k + q * ldw]);
            UNROLL for (int r = 0; r < P; r++) sums[r][q] = FMA(x[r], f, sums[r][q]);
        }
    }
    UNROLL for (int q = 0; q < Q; q++)
        UNROLL for (int r = 0; r < P; r++) {
            T* to = c + r * SIDE + q * ldc;
            if (r < P - 1 || rest == SIDE) *(VECTOR_U*)to = sums[r][q];
            else memcpy(to, &sums[r][q], (size_t)rest * sizeof(T));
        }
}

/* c (m, q) += v (m, p) w for q <= COLUMNS. */
KERNEL_ONCE void NAME(add)(int64_t m, int64_t p, const T* v, int64_t ldv, const T* w, int64_t ldw, T* c, int64_t ldc, int64_t q) {
    int64_t i = 0;
    if (q == COLUMNS) {
        for (; i + HIGH * SIDE <= m; i += HIGH * SIDE) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, SIDE, HIGH, COLUMNS);
        for (; i + SIDE <= m; i += SIDE) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, SIDE, 1, COLUMNS);
        if (i < m) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, m - i, 1, COLUMNS);
        return;
    }
    for (int64_t j = 0; j < q; j++, w += ldw, c += ldc) {
        for (i = 0; i + 2 * HIGH * SIDE <= m; i += 2 * HIGH * SIDE) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, SIDE, 2 * HIGH, 1);
        for (; i + HIGH * SIDE <= m; i += HIGH * SIDE) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, SIDE, HIGH, 1);
        for (; i + SIDE <= m; i += SIDE) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, SIDE, 1, 1);
        if (i < m) NAME(add_tile)(p, v + i, ldv, w, ldw, c + i, ldc, m - i, 1, 1);
    }
}

KERNEL_INLINE void NAME(exchange)(int64_t n, T* restrict x, int64_t xs, T* restrict y, int64_t ys) {
    for (int64_t i = 0; i < n; i++) {
        const T kept = x[i * xs];
        x[i * xs] = y[i * ys];
        y[i * ys] = kept;
    }
}

/* ---- one reflector ---- */

KERNEL_INLINE f64 NAME(row_squares)(const T* x, int64_t n) {
    f64 total = 0;
    for (int64_t i = 0; i < n; i += REDUCE_BLOCK) total += JOIN(block_sq_sum, T)(x + i, x, 0, min_i64(REDUCE_BLOCK, n - i));
    return total;
}

/* larfg: H = I - tau v v' takes x, m elements, to (beta, 0, ..); v but for its leading 1 takes the place of the rest of x. Returns tau. */
KERNEL_ONCE T NAME(reflector)(int64_t m, T* x, T* beta) {
    const T alpha = x[0];
    T first = alpha, squares = (T)NAME(row_squares)(x + 1, m - 1), norm = SQRT(FMA(alpha, alpha, squares));
    int shift = 0;
    *beta = alpha;
    if (!(norm * norm > SAFE_LEAST && norm * norm < SAFE_MOST)) {
        /* in units of a power of two near the largest element */
        T most = ABS(alpha);
        for (int64_t i = 1; i < m; i++) most = ABS(x[i]) > most ? ABS(x[i]) : most;
        if (most - most == 0) (void)__builtin_frexp((double)most, &shift);
        for (int64_t i = 1; i < m; i++) x[i] = LDEXP(x[i], -shift);
        first = LDEXP(alpha, -shift);
        squares = (T)NAME(row_squares)(x + 1, m - 1);
        norm = SQRT(FMA(first, first, squares));
    }
    if (squares == 0) { /* what is left of elements far below alpha is no reflection */
        if (m > 1) memset(x + 1, 0, (size_t)(m - 1) * sizeof(T));
        return 0;
    }
    norm = first > 0 ? -norm : norm;
    *beta = shift ? LDEXP(norm, shift) : norm;
    const T tau = (norm - first) / norm, inverse = 1 / (first - norm);
    VECTORIZE for (int64_t i = 1; i < m; i++) x[i] *= inverse;
    return tau;
}

/* Without their signs, the bits of numbers are ordered as these are, infinity and NaN above. */
static f64 NAME(largest)(int64_t n, const void* x) {
    const NAME(lane)* bits = x;
    NAME(lane) most = 0;
    _Pragma("omp simd reduction(max : most)") for (int64_t i = 0; i < n; i++) {
        const NAME(lane) size = bits[i] & NOT_SIGN;
        most = size > most ? size : most;
    }
    T number;
    memcpy(&number, &most, sizeof number);
    return number;
}

/* ---- blocks of reflectors: V (m, p) with its unit triangle, S = -T (p, p) ---- */

/* Where `work` holds what belongs to a block; V's columns are at boundaries of 64 bytes. */
typedef struct {
    T *v, *s, *turned;                  /* S' */
    int64_t ldv;
} NAME(block);

KERNEL_INLINE int64_t NAME(padded)(int64_t rows) { return (rows + REFLECTOR_ROWS - 1) / REFLECTOR_ROWS * REFLECTOR_ROWS; }

/* V, S and S', or PAIRS pairs of columns */
static int64_t NAME(work_size)(int64_t rows) { return NAME(padded)(rows) * max_i64(BLOCK, 2 * PAIRS) + 2 * BLOCK * BLOCK; }

KERNEL_INLINE NAME(block) NAME(new_block)(int64_t rows, void* work) {
    T* w = work;
    return (NAME(block)){w + 2 * BLOCK * BLOCK, w, w + BLOCK * BLOCK, NAME(padded)(rows)};
}

KERNEL_ONCE void NAME(load_block)(const NAME(block) * b, int64_t m, int64_t p, const T* a, int64_t lda) {
    for (int64_t j = 0; j < p; j++) {
        T* v = b->v + j * b->ldv;
        memset(v, 0, (size_t)j * sizeof(T));
        v[j] = 1;
        memcpy(v + j + 1, a + j * lda + j + 1, (size_t)(m - j - 1) * sizeof(T));
    }
}

/* S: column j is -tau[j] times (S V' v_j above the diagonal, 1 on it). Columns are of BLOCK elements, zeros below the diagonal. */
KERNEL_ONCE void NAME(triangle)(const NAME(block) * b, int64_t m, int64_t p, const T* tau) {
    T g[BLOCK * COLUMNS];
    memset(b->s, 0, BLOCK * BLOCK * sizeof(T));
    for (int64_t begin = 0; begin < p; begin += COLUMNS) {
        const int64_t wide = min_i64(COLUMNS, p - begin);
        NAME(dots)(m, begin + wide, b->v, b->ldv, b->v + begin * b->ldv, b->ldv, g, BLOCK, wide);
        for (int64_t j = begin; j < begin + wide; j++) {
            VECTOR sums[BLOCK * sizeof(T) / VECTOR_BYTES];
            UNROLL for (int r = 0; r < BLOCK / SIDE; r++) sums[r] = (VECTOR){0};
            for (int64_t k = 0; k < j; k++) {
                const VECTOR f = NAME(splat)(g[k + (j - begin) * BLOCK]);
                UNROLL for (int r = 0; r < BLOCK / SIDE; r++) sums[r] = FMA(((const VECTOR*)(b->s + k * BLOCK))[r], f, sums[r]);
            }
            UNROLL for (int r = 0; r < BLOCK / SIDE; r++) ((VECTOR*)(b->s + j * BLOCK))[r] = sums[r] * -tau[j];
            b->s[j + j * BLOCK] = -tau[j];
        }
    }
}

KERNEL_ONCE void NAME(turn_triangle)(const NAME(block) * b) {
    for (int64_t j = 0; j < BLOCK; j++)
        for (int64_t i = 0; i < BLOCK; i++) b->turned[j + i * BLOCK] = b->s[i + j * BLOCK];
}

/* c (m, q) += V s w */
KERNEL_ONCE void NAME(finish)(const NAME(block) * b, int64_t m, int64_t p, const T* s, const T* w, T* c, int64_t ldc, int64_t q) {
    T product[BLOCK * COLUMNS] = {0};
    NAME(add)(p, p, s, BLOCK, w, BLOCK, product, BLOCK, q);
    NAME(add)(m, p, b->v, b->ldv, product, BLOCK, c, ldc, q);
}

/* c (m, n) becomes (I + V s V') c: s is S or S'. */
KERNEL_ONCE void NAME(apply)(const NAME(block) * b, int64_t m, int64_t p, const T* s, T* c, int64_t ldc, int64_t n) {
    T w[BLOCK * COLUMNS];
    for (int64_t j = 0; j < n; j += COLUMNS) {
        const int64_t wide = min_i64(COLUMNS, n - j);
        NAME(dots)(m, p, b->v, b->ldv, c + j * ldc, ldc, w, BLOCK, wide);
        NAME(finish)(b, m, p, s, w, c + j * ldc, ldc, wide);
    }
}

/* ---- QR ---- */

/* The columns of a panel, one reflector after the other. */
KERNEL_ONCE void NAME(panel)(int64_t m, int64_t p, T* a, int64_t lda, T* tau) {
    for (int64_t j = 0; j < p; j++) {
        T *x = a + j + j * lda, beta, w[COLUMNS];
        tau[j] = NAME(reflector)(m - j, x, &beta);
        x[0] = 1;
        for (int64_t c = j + 1; c < p && tau[j] != 0; c += COLUMNS) {
            const int64_t wide = min_i64(COLUMNS, p - c);
            NAME(dots)(m - j, 1, x, lda, a + j + c * lda, lda, w, 1, wide);
            for (int64_t q = 0; q < wide; q++) w[q] *= -tau[j];
            NAME(add)(m - j, 1, x, lda, w, 1, a + j + c * lda, lda, wide);
        }
        x[0] = beta;
    }
}

static void NAME(qr)(int64_t m, int64_t n, void* matrix, int64_t lda, void* taus, void* triangles, void* work) {
    T *a = matrix, *tau = taus, *s = triangles;
    const int64_t least = min_i64(m, n);
    const NAME(block) b = NAME(new_block)(m, work);
    for (int64_t j = 0; j < least; j += BLOCK) {
        const int64_t p = min_i64(BLOCK, least - j);
        NAME(panel)(m - j, p, a + j + j * lda, lda, tau + j);
        if (!s && j + p == n) break;
        NAME(load_block)(&b, m - j, p, a + j + j * lda, lda);
        NAME(triangle)(&b, m - j, p, tau + j);
        if (s) memcpy(s + j * BLOCK, b.s, BLOCK * BLOCK * sizeof(T));
        NAME(turn_triangle)(&b);
        NAME(apply)(&b, m - j, p, b.turned, a + j + (j + p) * lda, lda, n - j - p);
    }
}

static void NAME(generate_q)(int64_t m, int64_t n, int64_t k, void* result, int64_t ldq, const void* taus, const void* triangles, void* work) {
    T* q = result;
    const T *tau = taus, *triangle = triangles;
    const NAME(block) b = NAME(new_block)(m, work);
    for (int64_t c = k; c < n; c++) {
        memset(q + c * ldq, 0, (size_t)m * sizeof(T));
        q[c + c * ldq] = 1;
    }
    for (int64_t j = (k - 1) / BLOCK * BLOCK; j >= 0 && k; j -= BLOCK) {
        const int64_t p = min_i64(BLOCK, k - j);
        const T* s = b.s;
        T* here = q + j + j * ldq;
        NAME(load_block)(&b, m - j, p, here, ldq);
        if (triangle) s = triangle + j * BLOCK;
        else NAME(triangle)(&b, m - j, p, tau + j);
        NAME(apply)(&b, m - j, p, s, here + p * ldq, ldq, n - j - p);
        /* the block's own columns are those of I + V S V': V' times unit vectors are rows of V */
        for (int64_t c = 0; c < p; c++) {
            memset(q + (j + c) * ldq, 0, (size_t)m * sizeof(T));
            here[c + c * ldq] = 1;
        }
        for (int64_t begin = 0; begin < p; begin += COLUMNS) {
            const int64_t wide = min_i64(COLUMNS, p - begin);
            T w[BLOCK * COLUMNS];
            for (int64_t c = 0; c < wide; c++)
                for (int64_t r = 0; r < p; r++) w[r + c * BLOCK] = b.v[begin + c + r * b.ldv];
            NAME(finish)(&b, m - j, p, s, w, here + begin * ldq, ldq, wide);
        }
    }
}

static void NAME(multiply_q)(int transposed, int64_t m, int64_t n, int64_t k, const void* reflectors, int64_t lda, const void* taus, void* matrix, int64_t ldc,
                             void* work) {
    const T *a = reflectors, *tau = taus;
    T* c = matrix;
    const NAME(block) b = NAME(new_block)(m, work);
    const int64_t blocks = (k + BLOCK - 1) / BLOCK;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t j = (transposed ? i : blocks - 1 - i) * BLOCK, p = min_i64(BLOCK, k - j);
        NAME(load_block)(&b, m - j, p, a + j + j * lda, lda);
        NAME(triangle)(&b, m - j, p, tau + j);
        if (transposed) NAME(turn_triangle)(&b);
        NAME(apply)(&b, m - j, p, transposed ? b.turned : b.s, c + j, ldc, n);
    }
}

/* ---- symmetric matrices ---- */

/* What lies below row `row` of the vector at `begin`, zeros above it. */
KERNEL_INLINE VECTOR NAME(below)(VECTOR v, int64_t begin, int64_t row) {
    NAME(lanes) at;
    UNROLL for (int i = 0; i < (int)(VECTOR_BYTES / sizeof(T)); i++) at[i] = i;
    return (VECTOR)((NAME(lanes))v & (at + (NAME(lane))begin > (NAME(lane))row));
}

/* y = A x in the rows and columns from `first` on, by A's lower triangle: a few columns at once give their part of y and their own elements, so that A is read
   once. Rows are taken in vectors from row 0 on, because a load of y that spans two stores waits for both. x is zero before `first` and from n on to the
   next `padded` row, A is in the latter; y is defined from `first` on. */
KERNEL_ONCE void NAME(symmetric_product)(int64_t n, int64_t first, const T* a, int64_t lda, const T* x, T* y) {
    enum { WIDE = VECTOR_BYTES / sizeof(T) < 4 ? VECTOR_BYTES / sizeof(T) : 4 };
    const int64_t rows = NAME(padded)(n), from = first / SIDE * SIDE;
    memset(y + from, 0, (size_t)(rows - from) * sizeof(T));
    for (int64_t j = first / WIDE * WIDE; j < n; j += WIDE) {
        const int64_t last = min_i64(WIDE, n - j) - 1;
        VECTOR sums[WIDE], f[WIDE];
        const T* c[WIDE];
        UNROLL for (int q = 0; q < WIDE; q++) {
            c[q] = a + (j + min_i64(q, last)) * lda;       /* no columns beyond n */
            f[q] = NAME(splat)(q <= last ? x[j + q] : 0);
        }
        int64_t i = j / SIDE * SIDE;
        VECTOR xi = *(const VECTOR*)(x + i), yi = *(const VECTOR*)(y + i);
        UNROLL for (int q = 0; q < WIDE; q++) {
            const VECTOR v = NAME(below)(*(const VECTOR*)(c[q] + i), i, j + q);
            yi = FMA(v, f[q], yi);
            sums[q] = v * xi;
        }
        *(VECTOR*)(y + i) = yi;
        for (i += SIDE; i < rows; i += SIDE) {
            xi = *(const VECTOR*)(x + i);
            yi = *(const VECTOR*)(y + i);
            UNROLL for (int q = 0; q < WIDE; q++) {
                const VECTOR v = *(const VECTOR*)(c[q] + i);
                yi = FMA(v, f[q], yi);
                sums[q] = FMA(v, xi, sums[q]);
            }
            *(VECTOR*)(y + i) = yi;
        }
        for (int q = 0; q <= last; q++) y[j + q] += FMA(c[q][j + q], x[j + q], NAME(sum)(sums[q]));
    }
}

/* Columns of reflectors v alternate with w in `pairs`, so that A - v w' - w v' is one product with them. Rows are taken in vectors from row 0 on. */
static void NAME(tridiagonal)(int64_t n, void* matrix, int64_t lda, void* diagonal, void* subdiagonal, void* taus, void* work) {
    T *a = matrix, *d = diagonal, *e = subdiagonal, *tau = taus, *pairs = work, f[2 * PAIRS * COLUMNS], dots[2 * PAIRS];
    const int64_t rows = NAME(padded)(n);
    for (int64_t from = 0; from < n; from += PAIRS) {
        const int64_t to = min_i64(n, from + PAIRS);
        for (int64_t j = from; j < to; j++) {
            const int64_t before = 2 * (j - from), below = n - j - 1, grid = j / SIDE * SIDE;
            T *x = a + j * lda, *v = pairs + before * rows, *w = v + rows, *known = pairs + j + 1;
            for (int64_t k = 0; k < before; k += 2) {
                f[k] = -pairs[j + (k + 1) * rows];
                f[k + 1] = -pairs[j + k * rows];
            }
            NAME(add)(rows - grid, before, pairs + grid, rows, f, 2 * PAIRS, x + grid, lda, 1);
            d[j] = x[j];
            if (!below) break;
            tau[j] = NAME(reflector)(below, x + j + 1, e + j);
            memset(v + from, 0, (size_t)(j + 1 - from) * sizeof(T));
            v[j + 1] = 1;
            memcpy(v + j + 2, x + j + 2, (size_t)(rows - j - 2) * sizeof(T));
            NAME(symmetric_product)(n, j + 1, a, lda, v, w);
            for (int64_t k = 0; k < before; k += COLUMNS)
                NAME(dots)(below, 1, v + j + 1, rows, known + k * rows, rows, dots + k, 1, min_i64(COLUMNS, before - k));
            for (int64_t k = 0; k < before; k += 2) {
                f[k] = -dots[k + 1];
                f[k + 1] = -dots[k];
            }
            NAME(add)(rows - grid, before, pairs + grid, rows, f, 2 * PAIRS, w + grid, rows, 1);
            NAME(dots)(below, 1, v + j + 1, rows, w + j + 1, rows, dots, 1, 1);
            const T scale = tau[j], shift = -tau[j] * tau[j] * dots[0] / 2;
            VECTORIZE for (int64_t i = j + 1; i < n; i++) w[i] = FMA(shift, v[i], scale * w[i]);
        }
        for (int64_t c = to; c < n; c += COLUMNS) {
            const int64_t wide = min_i64(COLUMNS, n - c), count = 2 * (to - from), grid = c / SIDE * SIDE;
            for (int64_t q = 0; q < wide; q++)
                for (int64_t k = 0; k < count; k += 2) {
                    f[k + q * 2 * PAIRS] = -pairs[c + q + (k + 1) * rows];
                    f[k + 1 + q * 2 * PAIRS] = -pairs[c + q + k * rows];
                }
            NAME(add)(rows - grid, count, pairs + grid, rows, f, 2 * PAIRS, a + grid + c * lda, lda, wide);
        }
    }
}

/* ---- QR with column pivots ---- */

/* A block of columns (Quintana-Orti, Sun and Bischof 1998): the columns behind are brought up to date at its end, A + V f', but for the row that each reflector
   completes, whose elements lessen the norms. It ends early where a norm has lost half of its digits. Returns how many columns it took.
   f: (n, PIVOTED); v: of m rows, padded and at a boundary of 64 bytes; row: n elements. */
KERNEL_ONCE int64_t NAME(pivoted_block)(int64_t m, int64_t n, int64_t from, int64_t wide, T* a, int64_t lda, T* tau, int* pivots, T* norms, T* exact, T* f,
                                        int64_t ldf, T* v, T* row) {
    const int64_t rows = NAME(padded)(m);
    int64_t k = 0;
    int lost = 0;
    T w[PIVOTED + COLUMNS];
    for (; k < wide && !lost; k++) {
        const int64_t j = from + k, grid = j / SIDE * SIDE, behind = n - j - 1;
        T *x = a + j * lda, beta;
        int64_t best = j;
        T most = norms[j];
        _Pragma("omp simd reduction(max : most)") for (int64_t c = j; c < n; c++) most = norms[c] > most ? norms[c] : most;
        while (best < n - 1 && !(norms[best] == most)) best++;
        if (best != j) {
            NAME(exchange)(m, x, 1, a + best * lda, 1);
            NAME(exchange)(k, f + j, ldf, f + best, ldf);
            const int kept = pivots[j];
            pivots[j] = pivots[best];
            pivots[best] = kept;
            norms[best] = norms[j];
            exact[best] = exact[j];
        }
        for (int64_t i = 0; i < k; i++) w[i] = f[j + i * ldf];
        NAME(add)(m - j, k, a + j + from * lda, lda, w, PIVOTED, x + j, lda, 1);
        tau[j] = NAME(reflector)(m - j, x + j, &beta);
        memset(v + grid, 0, (size_t)(j - grid) * sizeof(T));
        v[j] = 1;
        memcpy(v + j + 1, x + j + 1, (size_t)(m - j - 1) * sizeof(T));
        memset(v + m, 0, (size_t)(rows - m) * sizeof(T));
        /* column k of f: -tau (A + V f')' v */
        T* g = f + k * ldf;
        const int64_t groups = (behind + COLUMNS - 1) / COLUMNS;
        for (int64_t i = 0; i < groups; i++) {
            /* every other time from the last on: what a cache holds of a larger matrix is what was read last */
            const int64_t c = j + 1 + (j & 1 ? groups - 1 - i : i) * COLUMNS;
            NAME(dots)(rows - grid, 1, v + grid, lda, a + grid + c * lda, lda, g + c, 1, min_i64(COLUMNS, n - c));
        }
        for (int64_t i = 0; i < k; i += COLUMNS)
            NAME(dots)(m - j, 1, v + j, lda, a + j + (from + i) * lda, lda, w + i, 1, min_i64(COLUMNS, k - i));
        NAME(add)(behind, k, f + j + 1, ldf, w, PIVOTED, g + j + 1, ldf, 1);
        for (int64_t c = j + 1; c < n; c++) g[c] *= -tau[j];
        g[j] = 0;
        x[j] = 1;
        /* the row that is complete, and norms without it */
        for (int64_t i = 0; i <= k; i++) w[i] = a[j + (from + i) * lda];
        memset(row, 0, (size_t)behind * sizeof(T));
        NAME(add)(behind, k + 1, f + j + 1, ldf, w, PIVOTED, row, ldf, 1);
        for (int64_t c = 0; c < behind; c++) row[c] = a[j + (j + 1 + c) * lda] += row[c];
        T *size = norms + j + 1, *whole = exact + j + 1, lowest = 1;
        _Pragma("omp simd reduction(min : lowest)") for (int64_t c = 0; c < behind; c++) {
            const T part = ABS(row[c]) / (size[c] > 0 ? size[c] : 1), left = part < 1 ? (1 + part) * (1 - part) : 0;
            const T ratio = size[c] / (whole[c] > 0 ? whole[c] : 1), kept = size[c] > 0 ? left * ratio * ratio : 1;
            size[c] = kept > HALF_DIGITS ? size[c] * SQRT(left) : size[c];
            whole[c] = kept > HALF_DIGITS ? whole[c] : -1;
            lowest = kept < lowest ? kept : lowest;
        }
        lost = !(lowest > HALF_DIGITS);
        x[j] = beta;
    }
    return k;
}

static void NAME(pivoted_qr)(int64_t m, int64_t n, void* matrix, int64_t lda, void* taus, int* pivots, void* work) {
    const int64_t rows = NAME(padded)(m), ldf = NAME(padded)(n), least = min_i64(m, n);
    T *a = matrix, *tau = taus, *v = work, *norms = v + rows, *exact = norms + ldf, *row = exact + ldf, *f = row + ldf, w[PIVOTED * COLUMNS];
    for (int64_t c = 0; c < n; c++) {
        norms[c] = exact[c] = SQRT((T)NAME(row_squares)(a + c * lda, m));
        pivots[c] = (int)c + 1;
    }
    for (int64_t j = 0; j < least;) {
        const int64_t took = NAME(pivoted_block)(m, n, j, min_i64(PIVOTED, least - j), a, lda, tau, pivots, norms, exact, f, ldf, v, row), from = j;
        j += took;
        for (int64_t c = j; c < n; c += COLUMNS) {
            const int64_t wide = min_i64(COLUMNS, n - c);
            for (int64_t q = 0; q < wide; q++)
                for (int64_t k = 0; k < took; k++) w[k + q * PIVOTED] = f[c + q + k * ldf];
            NAME(add)(m - j, took, a + j + from * lda, lda, w, PIVOTED, a + j + c * lda, lda, wide);
        }
        for (int64_t c = j; c < n; c++)
            if (exact[c] < 0) norms[c] = exact[c] = SQRT((T)NAME(row_squares)(a + j + c * lda, m - j));
    }
}

static int64_t NAME(pivoted_work_size)(int64_t m, int64_t n) { return NAME(padded)(m) + NAME(padded)(n) * (PIVOTED + 3); }
