/* Implicit QL with Wilkinson's shift (Dubrulle, Martin and Wilkinson 1968), of one type. Included by linalg_tridiagonal.c. */

/* The length of (f, g), and both divided by it: a rotation that takes (g, f) to (length, 0). */
KERNEL_INLINE T NAME(rotation)(T f, T g, T* c, T* s) {
    if (f == 0) {
        *c = 1, *s = 0;
        return g;
    }
    T unit = 1;
    if (ABS(f) < TINY && ABS(g) < TINY) unit = TINY * TINY, f /= unit, g /= unit;
    const T length = SQRT(FMA(f, f, g * g));
    *c = g / length, *s = f / length;
    return length * unit;
}

/* The rotations to - 1 .. from of columns j and j + 1, one after the other: the column that two of them share stays in registers. */
static void NAME(rotate_columns)(int64_t rows, T* z, int64_t ldz, int from, int to, const T* c, const T* s) {
    enum { SIDE = VECTOR_BYTES / sizeof(T), HIGH = STRIP / SIDE };
    for (int64_t i = 0; i < rows; i += STRIP) {
        VECTOR shared[HIGH];
        T* column = z + i + to * ldz;
        UNROLL for (int k = 0; k < HIGH; k++) shared[k] = ((const VECTOR*)column)[k];
        for (int j = to - 1; j >= from; j--, column -= ldz) {
            const VECTOR cosine = (VECTOR){0} + c[j], sine = (VECTOR){0} + s[j];
            const VECTOR* left = (const VECTOR*)(column - ldz);
            UNROLL for (int k = 0; k < HIGH; k++) {
                const VECTOR x = left[k];
                ((VECTOR*)column)[k] = FMA(cosine, shared[k], sine * x);
                shared[k] = FMA(cosine, x, -(sine * shared[k]));
            }
        }
        UNROLL for (int k = 0; k < HIGH; k++) ((VECTOR*)column)[k] = shared[k];
    }
}

/* Whether e between two elements of the diagonal is nothing beside them. */
KERNEL_INLINE int NAME(negligible)(T e, T left, T right) { return e * e <= EPSILON * EPSILON * ABS(left) * ABS(right) + LEAST; }

static int NAME(implicit_ql)(int n, void* diagonal, void* subdiagonal, void* vectors, int64_t ldq, void* work) {
    T *d = diagonal, *e = subdiagonal, *q = vectors, *z = work, c[QL_MOST], s[QL_MOST];
    const int64_t rows = ((int64_t)n + STRIP - 1) / STRIP * STRIP;
    /* QL is exact to the least eigenvalues of a matrix that grows downwards; another one is taken from its other end */
    const int flipped = ABS(d[n - 1]) < ABS(d[0]);
    if (flipped) {
        for (int i = 0; i < n / 2; i++) { const T x = d[i]; d[i] = d[n - 1 - i]; d[n - 1 - i] = x; }
        for (int i = 0; i < (n - 1) / 2; i++) { const T x = e[i]; e[i] = e[n - 2 - i]; e[n - 2 - i] = x; }
    }
    memset(z, 0, (size_t)(rows * n) * sizeof(T));
    for (int i = 0; i < n; i++) z[(flipped ? n - 1 - i : i) + i * rows] = 1;
    int left = SWEEPS * n;
    for (int first = 0; first < n; first++)
        for (;;) {
            int last = first;
            while (last < n - 1 && !NAME(negligible)(e[last], d[last], d[last + 1])) last++;
            if (last < n - 1) e[last] = 0;
            if (last == first) break;
            if (left-- == 0) {
                int lost = 0;
                for (int i = 0; i < n - 1; i++) lost += e[i] != 0;
                return lost;
            }
            T p = d[first], g = (d[first + 1] - p) / (2 * e[first]);
            const T length = SQRT(FMA(g, g, (T)1));
            g = d[last] - p + e[first] / (g + SIGN_OF(length, g));
            T cosine = 1, sine = 1;
            p = 0;
            for (int i = last - 1; i >= first; i--) {
                const T f = sine * e[i], b = cosine * e[i];
                const T r = NAME(rotation)(f, g, &cosine, &sine);
                if (i != last - 1) e[i + 1] = r;
                g = d[i + 1] - p;
                const T x = FMA(d[i] - g, sine, 2 * cosine * b);
                p = sine * x;
                d[i + 1] = g + p;
                g = FMA(cosine, x, -b);
                c[i] = cosine;
                s[i] = sine;
            }
            NAME(rotate_columns)(rows, z, rows, first, last, c, s);
            d[first] -= p;
            e[first] = g;
        }
    /* in ascending order */
    int order[QL_MOST];
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && d[order[at - 1]] > d[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < n; i++) {
        c[i] = d[order[i]];
        memcpy(q + i * ldq, z + order[i] * rows, (size_t)n * sizeof(T));
    }
    memcpy(d, c, (size_t)n * sizeof(T));
    return 0;
}
