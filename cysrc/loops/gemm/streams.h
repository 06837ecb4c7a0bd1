/* GEMMs of at most four rows by a transposed B, or twelve by rows of B: it is streamed once. Included once per type of B with
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
static void STREAM(rows_by_cols)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                                 int64_t ccs, double alpha, double beta) {
  switch (m) {
    case 1: STREAM(combine)(1, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 2: STREAM(combine)(2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 3: STREAM(combine)(3, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 4: STREAM(combine)(4, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 5: STREAM(combine)(5, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 6: STREAM(combine)(6, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 7: STREAM(combine)(7, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 8: STREAM(combine)(8, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 9: STREAM(combine)(9, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 10: STREAM(combine)(10, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 11: STREAM(combine)(11, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
    case 12: STREAM(combine)(12, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;
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
