/* GEMMs of at most four rows by a transposed B, or twelve by rows of B or by short columns: it is streamed once. Included once per type of B with
     T          float or double, the type of A, C and the sums
     B          the type of B's elements
     LOAD(p), LOAD_ONE(p)   B's elements as a vector of T, and one of them
     KERNEL     the name that functions end with */
#define STREAM(name) STREAM_JOINED(name, KERNEL)
#define STREAM_JOINED(name, kernel) STREAM_JOIN(name, kernel)
#define STREAM_JOIN(name, kernel) name##_##kernel

typedef T STREAM(lanes) __attribute__((vector_size(NATIVE), aligned(sizeof(T)), may_alias));
enum { STREAM(LANES) = NATIVE / sizeof(T) };

INLINE T STREAM(add_lanes)(STREAM(lanes) v) {
  T lane[STREAM(LANES)];
  *(STREAM(lanes)*)lane = v;
  UNROLL for (int h = STREAM(LANES) / 2; h > 0; h /= 2) UNROLL for (int i = 0; i < h; i++) lane[i] += lane[i + h];
  return lane[0];
}

/* C[i, j] = A[i, :] . B[j, :] for one row j of a transposed B, which is a single stream of memory (several at a time take longer), in
   `runs` vectors at a time: eight sums hide the latency of an addition. */
INLINE void STREAM(dots)(const int m, const int runs, int64_t k, const T* a, int64_t ars, const B* b, T* c, int64_t crs, T alpha, T beta) {
  enum { W = STREAM(LANES) };
  STREAM(lanes) acc[4][8];
  int64_t p = 0;
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int r = 0; r < runs; r++) acc[i][r] = (STREAM(lanes)){0};
  for (; p + runs * W <= k; p += runs * W)
    UNROLL for (int r = 0; r < runs; r++) {
      STREAM(lanes) bv = LOAD(b + p + r * W);
      UNROLL for (int i = 0; i < m; i++) acc[i][r] = FMA(*(const STREAM(lanes)*)(a + i * ars + p + r * W), bv, acc[i][r]);
    }
  for (; p + W <= k; p += W) {
    STREAM(lanes) bv = LOAD(b + p);
    UNROLL for (int i = 0; i < m; i++) acc[i][0] = FMA(*(const STREAM(lanes)*)(a + i * ars + p), bv, acc[i][0]);
  }
  UNROLL for (int i = 0; i < m; i++) {
    UNROLL for (int h = runs / 2; h > 0; h /= 2) UNROLL for (int r = 0; r < h; r++) acc[i][r] += acc[i][r + h];
    T s = STREAM(add_lanes)(acc[i][0]), *to = c + i * crs;
    for (int64_t q = p; q < k; q++) s = FMA(a[i * ars + q], LOAD_ONE(b + q), s);
    *to = beta != 0 ? FMA(beta, *to, alpha * s) : alpha * s;
  }
}
INLINE void STREAM(dots_all)(const int m, const int runs, int64_t n, int64_t k, const T* a, int64_t ars, const B* b, int64_t ldb, T* c, int64_t crs,
                             int64_t ccs, T alpha, T beta) {
  for (int64_t j = 0; j < n; j++) STREAM(dots)(m, runs, k, a, ars, b + j * ldb, c + j * ccs, crs, alpha, beta);
}
static void STREAM(rows_by_rows)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                                 int64_t ccs, double alpha, double beta) {
  switch (m) {
    case 1: STREAM(dots_all)(1, 8, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 2: STREAM(dots_all)(2, 4, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 3: STREAM(dots_all)(3, 2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 4: STREAM(dots_all)(4, 2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
  }
}

/* C[i, :] = sum over p of A[i, p] B[p, :], eight rows of B at a time into sums that stay in L1. */
INLINE void STREAM(combine)(const int m, int64_t n, int64_t k, const T* a, int64_t ars, const B* b, int64_t ldb, T* c, int64_t crs, int64_t ccs, T alpha,
                            T beta) {
  enum { W = STREAM(LANES) };
  const int64_t block = 4096 / (m == 3 ? 4 : m > 8 ? 16 : m > 4 ? 8 : m);
  T sums[4096] __attribute__((aligned(64)));
  for (int64_t j0 = 0; j0 < n; j0 += block) {
    int64_t w = n - j0 < block ? n - j0 : block, p = 0;
    for (int i = 0; i < m; i++) memset(sums + i * block, 0, sizeof(T) * w);
    for (; p + 8 <= k; p += 8) {
      const B* q = b + p * ldb + j0;
      int64_t j = 0;
      for (; j + W <= w; j += W) {
        STREAM(lanes) acc[12];
        UNROLL for (int i = 0; i < m; i++) acc[i] = *(STREAM(lanes)*)(sums + i * block + j);
        UNROLL for (int r = 0; r < 8; r++) {
          STREAM(lanes) bv = LOAD(q + r * ldb + j);
          UNROLL for (int i = 0; i < m; i++) acc[i] = FMA(SPLAT(STREAM(lanes), a[i * ars + p + r]), bv, acc[i]);
        }
        UNROLL for (int i = 0; i < m; i++) *(STREAM(lanes)*)(sums + i * block + j) = acc[i];
      }
      for (; j < w; j++)
        for (int i = 0; i < m; i++) {
          T s = sums[i * block + j];
          for (int r = 0; r < 8; r++) s = FMA(a[i * ars + p + r], LOAD_ONE(q + r * ldb + j), s);
          sums[i * block + j] = s;
        }
    }
    for (; p < k; p++)
      for (int i = 0; i < m; i++) {
        T x = a[i * ars + p];
        const B* q = b + p * ldb + j0;
        for (int64_t j = 0; j < w; j++) sums[i * block + j] = FMA(x, LOAD_ONE(q + j), sums[i * block + j]);
      }
    for (int i = 0; i < m; i++)
      for (int64_t j = 0; j < w; j++) {
        T* to = c + i * crs + (j0 + j) * ccs;
        *to = beta != 0 ? FMA(beta, *to, alpha * sums[i * block + j]) : alpha * sums[i * block + j];
      }
  }
}
/* The same for a B of few rows: C's vectors are summed in registers, in the same order, and written once. */
static __attribute__((noinline)) void STREAM(put_lanes)(STREAM(lanes) sum, T* to, int64_t step, T beta) {
  T lane[STREAM(LANES)];
  *(STREAM(lanes)*)lane = sum;
  for (int l = 0; l < STREAM(LANES); l++, to += step) *to = beta != 0 ? FMA(beta, *to, lane[l]) : lane[l];
}
INLINE void STREAM(shallow_block)(const int m, const int vectors, int64_t j, int64_t k, const T* a, int64_t ars, const B* b, int64_t ldb, T* c, int64_t crs,
                                  int64_t ccs, T alpha, T beta) {
  enum { W = STREAM(LANES) };
  STREAM(lanes) acc[4][2];
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = (STREAM(lanes)){0};
  for (int64_t p = 0; p < k; p++) {
    STREAM(lanes) bv[2];
    UNROLL for (int v = 0; v < vectors; v++) {
      bv[v] = LOAD(b + p * ldb + j + v * W);
      __builtin_prefetch(b + p * ldb + j + (v + 8) * W);
    }
    UNROLL for (int i = 0; i < m; i++) {
      const STREAM(lanes) x = SPLAT(STREAM(lanes), a[i * ars + p]);
      UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = FMA(x, bv[v], acc[i][v]);
    }
  }
  UNROLL for (int i = 0; i < m; i++)
    UNROLL for (int v = 0; v < vectors; v++) {
      T* to = c + i * crs + (j + v * W) * ccs;
      STREAM(lanes) sum = alpha * acc[i][v];
      if (ccs != 1) {
        STREAM(put_lanes)(sum, to, ccs, beta);
        continue;
      }
      if (beta != 0) sum = FMA(SPLAT(STREAM(lanes), beta), *(STREAM(lanes)*)to, sum);
      *(STREAM(lanes)*)to = sum;
    }
}
INLINE void STREAM(combine_shallow)(const int m, int64_t n, int64_t k, const T* a, int64_t ars, const B* b, int64_t ldb, T* c, int64_t crs, int64_t ccs,
                                    T alpha, T beta) {
  enum { W = STREAM(LANES) };
  int64_t j = 0;
  for (; j + 2 * W <= n; j += 2 * W) STREAM(shallow_block)(m, 2, j, k, a, ars, b, ldb, c, crs, ccs, alpha, beta);
  for (; j + W <= n; j += W) STREAM(shallow_block)(m, 1, j, k, a, ars, b, ldb, c, crs, ccs, alpha, beta);
  for (; j < n; j++)
    for (int i = 0; i < m; i++) {
      T s = 0, *to = c + i * crs + j * ccs;
      for (int64_t p = 0; p < k; p++) s = FMA(a[i * ars + p], LOAD_ONE(b + p * ldb + j), s);
      *to = beta != 0 ? FMA(beta, *to, alpha * s) : alpha * s;
    }
}
/* all rows for some columns, whose part of B stays in L1 */
static void STREAM(shallow)(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, const B* b, int64_t ldb, T* c, int64_t crs, int64_t ccs, T alpha, T beta) {
  const int64_t block = m <= 4 ? n : 4096 / k & -64;
  for (int64_t j = 0; j < n; j += block)
    for (int64_t i = 0; i < m; i += 4) {
      const T* rows = a + i * ars;
      T* to = c + i * crs + j * ccs;
      const int64_t w = n - j < block ? n - j : block;
      switch (m - i) {
        case 1: STREAM(combine_shallow)(1, w, k, rows, ars, b + j, ldb, to, crs, ccs, alpha, beta); break;
        case 2: STREAM(combine_shallow)(2, w, k, rows, ars, b + j, ldb, to, crs, ccs, alpha, beta); break;
        case 3: STREAM(combine_shallow)(3, w, k, rows, ars, b + j, ldb, to, crs, ccs, alpha, beta); break;
        default: STREAM(combine_shallow)(4, w, k, rows, ars, b + j, ldb, to, crs, ccs, alpha, beta);
      }
    }
}

#define STREAM_CASE(M) case M: STREAM(combine)(M, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
static void STREAM(rows_by_cols)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                                 int64_t ccs, double alpha, double beta) {
  if (k <= SHALLOW) {
    STREAM(shallow)(m, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta);
    return;
  }
  switch (m) {
    STREAM_CASE(1) STREAM_CASE(2) STREAM_CASE(3) STREAM_CASE(4) STREAM_CASE(5) STREAM_CASE(6)
    STREAM_CASE(7) STREAM_CASE(8) STREAM_CASE(9) STREAM_CASE(10) STREAM_CASE(11) STREAM_CASE(12)
  }
}
#undef STREAM_CASE

typedef __typeof__(__builtin_choose_expr(sizeof(B) == 2, (uint16_t)0, __builtin_choose_expr(sizeof(B) == 4, (uint32_t)0, (uint64_t)0))) STREAM(bits);
typedef STREAM(bits) STREAM(element) __attribute__((may_alias));
typedef STREAM(bits) STREAM(quad) __attribute__((vector_size(4 * sizeof(B)), aligned(sizeof(B)), may_alias));
/* rows[p][j] = B[j][p] for w columns of k elements. A constant k makes it loads and shuffles of whole vectors. */
INLINE void STREAM(turn_columns_of)(const int k, int64_t w, const STREAM(element)* b, int64_t ldb, STREAM(element)* rows, int64_t row) {
  if (ldb == k)
    for (int64_t j = 0; j < w; j++) UNROLL for (int p = 0; p < k; p++) rows[p * row + j] = b[j * k + p];
  else
    for (int64_t j = 0; j < w; j++) UNROLL for (int p = 0; p < k; p++) rows[p * row + j] = b[j * ldb + p];
}
static void STREAM(turn_columns)(int64_t k, int64_t w, const STREAM(element)* b, int64_t ldb, STREAM(element)* rows, int64_t row) {
  const int64_t quads = w & -4;
  switch (k) {
    case 2: STREAM(turn_columns_of)(2, w, b, ldb, rows, row); return;
    case 3: STREAM(turn_columns_of)(3, w, b, ldb, rows, row); return;
    case 4: STREAM(turn_columns_of)(4, w, b, ldb, rows, row); return;
  }
  for (int64_t j = 0; j < quads; j += 4, b += 4 * ldb, rows += 4) {
    for (int64_t next = 0; next < k; next += 4) {
      const int64_t p = next < k - 4 ? next : k - 4;        /* the last ones may be moved twice */
      const STREAM(quad) x0 = *(const STREAM(quad)*)(b + p), x1 = *(const STREAM(quad)*)(b + ldb + p);
      const STREAM(quad) x2 = *(const STREAM(quad)*)(b + 2 * ldb + p), x3 = *(const STREAM(quad)*)(b + 3 * ldb + p);
      const STREAM(quad) low01 = __builtin_shufflevector(x0, x1, 0, 4, 1, 5), high01 = __builtin_shufflevector(x0, x1, 2, 6, 3, 7);
      const STREAM(quad) low23 = __builtin_shufflevector(x2, x3, 0, 4, 1, 5), high23 = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
      *(STREAM(quad)*)(rows + p * row) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      *(STREAM(quad)*)(rows + (p + 1) * row) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      *(STREAM(quad)*)(rows + (p + 2) * row) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      *(STREAM(quad)*)(rows + (p + 3) * row) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }
  }
  for (int64_t j = quads; j < w; j++, b += ldb, rows++)
    for (int64_t p = 0; p < k; p++) rows[p * row] = b[p];
}

/* Columns of 2 to SHALLOW elements, for which dot products are too short: some of them become rows in L1 at a time. */
static void STREAM(rows_by_short_cols)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                                       int64_t ccs, double alpha, double beta) {
  B rows[4096] __attribute__((aligned(64)));
  const int64_t block = 4096 / k & -64;
  for (int64_t j = 0; j < n; j += block) {
    const int64_t w = n - j < block ? n - j : block;
    STREAM(turn_columns)(k, w, (const STREAM(element)*)b + j * ldb, ldb, (STREAM(element)*)rows, block);
    STREAM(shallow)(m, w, k, a, ars, rows, block, (T*)c + j * ccs, crs, ccs, (T)alpha, (T)beta);
  }
}
#undef STREAM
#undef STREAM_JOINED
#undef STREAM_JOIN
#undef T
#undef B
#undef LOAD
#undef LOAD_ONE
#undef KERNEL
