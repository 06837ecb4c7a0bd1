/* Matrices of few columns, a row of which is one vector of N >= n elements. Included once per type with T (the type) and KERNEL (the suffix of its
   functions).
   narrow: many rows of A by a B that stays in registers or L1. A row's sum runs over k in order, so that no result depends on how the rows are split.
   gram: A and B have many rows, C is their few columns' sums of products (Gram matrices, weight gradients of small layers). The sums are cut at
   GRAM_DEPTH, so that no result depends on how the depth is split. */
#define NAME2_(name, kernel) name##_##kernel
#define NAME2(name, kernel) NAME2_(name, kernel)
#define NAME3_(name, kernel, width) name##_##kernel##width
#define NAME3(name, kernel, width) NAME3_(name, kernel, width)
#define NARROW_ROWS(N) ((N) * sizeof(T) <= NATIVE ? 8 : (N) * sizeof(T) <= 2 * NATIVE ? 4 : 2)
#define NARROW_BYTES(N) ((N) * sizeof(T) <= NATIVE ? (N) * sizeof(T) : NATIVE)

#define DEFINE_NARROW(N)                                                                                                                  \
  typedef T NAME3(vec, KERNEL, N) __attribute__((vector_size(NARROW_BYTES(N))));                                                          \
  typedef NAME3(vec, KERNEL, N) NAME3(vec_u, KERNEL, N) __attribute__((aligned(sizeof(T)), may_alias));                                   \
  enum { NAME3(PARTS, KERNEL, N) = N * sizeof(T) / NARROW_BYTES(N), NAME3(WIDTH, KERNEL, N) = NARROW_BYTES(N) / sizeof(T) };              \
  typedef __typeof__((NAME3(vec, KERNEL, N)){0} == (NAME3(vec, KERNEL, N)){0}) NAME3(bits, KERNEL, N);                                    \
  /* c = alpha sum + beta times the bias, or C; a vector reaches into the following rows, whose own come after it (where C is added to, what lies there\
     is put back), not beyond the last one, nor between rows: there `whole` is 0 */                                                       \
  static __attribute__((noinline)) void NAME3(narrow_put, KERNEL, N)(NAME3(vec, KERNEL, N) * sum, const NAME3(vec, KERNEL, N) * bias,     \
      const NAME3(bits, KERNEL, N) * inside, T* c, int64_t n, int whole, T alpha, T beta) {                                               \
    T kept[N];                                                                                                                            \
    UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) {                                                                            \
      sum[v] *= alpha;                                                                                                                    \
      if (bias != NULL) sum[v] = FMA(SPLAT(NAME3(vec, KERNEL, N), beta), bias[v], sum[v]);                                                \
    }                                                                                                                                     \
    if (whole) {                                                                                                                          \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) {                                                                          \
        const NAME3(vec, KERNEL, N) old = *(const NAME3(vec_u, KERNEL, N)*)(c + v * NAME3(WIDTH, KERNEL, N));                             \
        const NAME3(vec, KERNEL, N) new = FMA(SPLAT(NAME3(vec, KERNEL, N), beta), old, sum[v]);                                           \
        *(NAME3(vec_u, KERNEL, N)*)(c + v * NAME3(WIDTH, KERNEL, N)) =                                                                    \
            (NAME3(vec, KERNEL, N))(((NAME3(bits, KERNEL, N))new & inside[v]) | ((NAME3(bits, KERNEL, N))old & ~inside[v]));              \
      }                                                                                                                                   \
      return;                                                                                                                             \
    }                                                                                                                                     \
    memcpy(kept, sum, sizeof kept);                                                                                                       \
    if (beta == 0 || bias != NULL) for (int64_t j = 0; j < n; j++) c[j] = kept[j];                                                        \
    else for (int64_t j = 0; j < n; j++) c[j] = FMA(beta, c[j], kept[j]);                                                                 \
  }                                                                                                                                       \
  INLINE void NAME3(narrow_block, KERNEL, N)(int rows, int64_t left, int64_t n, int64_t k, const T* a, int64_t ars,                       \
      NAME3(vec, KERNEL, N) (*panel)[NAME3(PARTS, KERNEL, N)], const NAME3(vec, KERNEL, N) * bias, const NAME3(bits, KERNEL, N) * inside, \
      T* c, int64_t crs, T alpha, T beta) {                                                                                               \
    NAME3(vec, KERNEL, N) sum[NARROW_ROWS(N)][NAME3(PARTS, KERNEL, N)];                                                                   \
    UNROLL for (int r = 0; r < rows; r++)                                                                                                 \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[r][v] = (NAME3(vec, KERNEL, N)){0};                                    \
    for (int64_t p = 0; p < k; p++)                                                                                                       \
      UNROLL for (int r = 0; r < rows; r++)                                                                                               \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++)                                                                          \
          sum[r][v] = FMA(SPLAT(NAME3(vec, KERNEL, N), a[r * ars + p]), panel[p][v], sum[r][v]);                                          \
    if (crs == n && (left - rows + 1) * n >= N && (beta == 0 || bias != NULL)) {                                                          \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++)                                                                            \
        UNROLL for (int r = 0; r < rows; r++) {                                                                                           \
          const NAME3(vec, KERNEL, N) product = sum[r][v] * alpha;                                                                        \
          sum[r][v] = bias != NULL ? FMA(SPLAT(NAME3(vec, KERNEL, N), beta), bias[v], product) : product;                                 \
        }                                                                                                                                 \
      UNROLL for (int r = 0; r < rows; r++)                                                                                               \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) *(NAME3(vec_u, KERNEL, N)*)(c + r * n + v * NAME3(WIDTH, KERNEL, N)) = sum[r][v];\
      return;                                                                                                                             \
    }                                                                                                                                     \
    UNROLL for (int r = 0; r < rows; r++) {                                                                                               \
      NAME3(vec, KERNEL, N) row[NAME3(PARTS, KERNEL, N)];                                                                                 \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) row[v] = sum[r][v];                                                        \
      NAME3(narrow_put, KERNEL, N)(row, bias, inside, c + r * crs, n, crs == n && (left - r) * n >= N && beta != 0 && bias == NULL, alpha, beta);\
    }                                                                                                                                     \
  }                                                                                                                                       \
  static void NAME3(narrow_rows, KERNEL, N)(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, const T* b, int64_t brs,            \
      int64_t bcs, const T* bias, T* c, int64_t crs, T alpha, T beta) {                                                                   \
    enum { ROWS = NARROW_ROWS(N) };                                                                                                       \
    NAME3(vec, KERNEL, N) panel[NARROW_DEPTH][NAME3(PARTS, KERNEL, N)];                                                                   \
    NAME3(vec, KERNEL, N) added[NAME3(PARTS, KERNEL, N)], *addend = bias != NULL ? added : NULL;                                          \
    NAME3(bits, KERNEL, N) inside[NAME3(PARTS, KERNEL, N)];                                                                               \
    memset(added, 0, sizeof added);                                                                                                       \
    if (bias != NULL) for (int64_t j = 0; j < n; j++) added[j / NAME3(WIDTH, KERNEL, N)][j % NAME3(WIDTH, KERNEL, N)] = bias[j];          \
    for (int j = 0; j < N; j++) inside[j / NAME3(WIDTH, KERNEL, N)][j % NAME3(WIDTH, KERNEL, N)] = j < n ? -1 : 0;                        \
    memset(panel, 0, sizeof panel[0] * k);                                                                                                \
    for (int64_t p = 0; p < k; p++)                                                                                                       \
      for (int64_t j = 0; j < n; j++) panel[p][j / NAME3(WIDTH, KERNEL, N)][j % NAME3(WIDTH, KERNEL, N)] = b[p * brs + j * bcs];          \
    int64_t i = 0;                                                                                                                        \
    for (; i + ROWS <= m; i += ROWS) NAME3(narrow_block, KERNEL, N)(ROWS, m - i, n, k, a + i * ars, ars, panel, addend, inside, c + i * crs, crs, alpha, beta);\
    for (; i < m; i++) NAME3(narrow_block, KERNEL, N)(1, m - i, n, k, a + i * ars, ars, panel, addend, inside, c + i * crs, crs, alpha, beta);    \
  }                                                                                                                                       \
  /* `rows` rows of C = alpha A' B + beta C over k <= GRAM_DEPTH rows of both. A vector reaches into the row of B that follows, whose products are not\
     kept; the last rows, behind which there may be nothing, are copied. A sum goes on in CHAINS parts, which hides the latency of an addition. */\
  INLINE void NAME3(gram_block, KERNEL, N)(const int rows, int64_t n, int64_t k, int64_t whole, const T* a, int64_t ars, int64_t acs, const T* b,\
      int64_t brs, T* c, int64_t crs, int64_t ccs, T alpha, T beta) {                                                                     \
    enum { CHAINS = N > 8 ? 2 : 4 };                                                                                                      \
    NAME3(vec, KERNEL, N) sum[CHAINS][8][NAME3(PARTS, KERNEL, N)];                                                                        \
    T kept[N];                                                                                                                            \
    int64_t p = 0;                                                                                                                        \
    UNROLL for (int s = 0; s < CHAINS; s++)                                                                                               \
      UNROLL for (int r = 0; r < rows; r++)                                                                                               \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[s][r][v] = (NAME3(vec, KERNEL, N)){0};                               \
    for (; p + CHAINS <= whole; p += CHAINS)                                                                                              \
      UNROLL for (int s = 0; s < CHAINS; s++)                                                                                             \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) {                                                                        \
          const NAME3(vec, KERNEL, N) row = *(const NAME3(vec_u, KERNEL, N)*)(b + (p + s) * brs + v * NAME3(WIDTH, KERNEL, N));           \
          UNROLL for (int r = 0; r < rows; r++) sum[s][r][v] = FMA(SPLAT(NAME3(vec, KERNEL, N), a[r * ars + (p + s) * acs]), row, sum[s][r][v]);\
        }                                                                                                                                 \
    for (; p < k; p++) {                                                                                                                  \
      NAME3(vec, KERNEL, N) row[NAME3(PARTS, KERNEL, N)];                                                                                 \
      memset(row, 0, sizeof row);                                                                                                         \
      memcpy(row, b + p * brs, n * sizeof(T));                                                                                            \
      UNROLL for (int r = 0; r < rows; r++)                                                                                               \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[0][r][v] = FMA(SPLAT(NAME3(vec, KERNEL, N), a[r * ars + p * acs]), row[v], sum[0][r][v]);\
    }                                                                                                                                     \
    UNROLL for (int r = 0; r < rows; r++) {                                                                                               \
      UNROLL for (int h = CHAINS / 2; h > 0; h /= 2)                                                                                      \
        UNROLL for (int s = 0; s < h; s++)                                                                                                \
          UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[s][r][v] += sum[s + h][r][v];                                      \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) *(NAME3(vec_u, KERNEL, N)*)(kept + v * NAME3(WIDTH, KERNEL, N)) = sum[0][r][v];\
      for (int64_t j = 0; j < n; j++) {                                                                                                   \
        T* to = c + r * crs + j * ccs;                                                                                                    \
        *to = beta != 0 ? FMA(beta, *to, alpha * kept[j]) : alpha * kept[j];                                                              \
      }                                                                                                                                   \
    }                                                                                                                                     \
  }                                                                                                                                       \
  static void NAME3(gram_rows, KERNEL, N)(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, const T* b, int64_t brs, \
      T* c, int64_t crs, int64_t ccs, T alpha, T beta) {                                                                                  \
    const int64_t reach = (k - 1) * brs + n - N, whole = reach < 0 ? 0 : reach / brs + 1;                                                 \
    while (m > 0) {                                                                                                                       \
      const int64_t rows = m >= 8 && sizeof(T) * N == NATIVE ? 8 : m >= 4 ? 4 : m;                                                        \
      switch (rows) {                                                                                                                     \
        case 1: NAME3(gram_block, KERNEL, N)(1, n, k, whole, a, ars, acs, b, brs, c, crs, ccs, alpha, beta); break;                       \
        case 2: NAME3(gram_block, KERNEL, N)(2, n, k, whole, a, ars, acs, b, brs, c, crs, ccs, alpha, beta); break;                       \
        case 3: NAME3(gram_block, KERNEL, N)(3, n, k, whole, a, ars, acs, b, brs, c, crs, ccs, alpha, beta); break;                       \
        case 4: NAME3(gram_block, KERNEL, N)(4, n, k, whole, a, ars, acs, b, brs, c, crs, ccs, alpha, beta); break;                       \
        case 8: NAME3(gram_block, KERNEL, N)(8, n, k, whole, a, ars, acs, b, brs, c, crs, ccs, alpha, beta); break;                       \
      }                                                                                                                                   \
      a += rows * ars;                                                                                                                    \
      c += rows * crs;                                                                                                                    \
      m -= rows;                                                                                                                          \
    }                                                                                                                                     \
  }
DEFINE_NARROW(4)
DEFINE_NARROW(8)
DEFINE_NARROW(16)

static void NAME2(narrow, KERNEL)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t brs, int64_t bcs, const void* bias,
                                  void* c, int64_t crs, double alpha, double beta) {
  void (*rows)(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, int64_t, const T*, T*, int64_t, T, T) =
      n <= 4 ? NAME3(narrow_rows, KERNEL, 4) : n <= 8 ? NAME3(narrow_rows, KERNEL, 8) : NAME3(narrow_rows, KERNEL, 16);
  rows(m, n, k, a, ars, b, brs, bcs, bias, c, crs, (T)alpha, (T)beta);
}

static void NAME2(gram, KERNEL)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t brs, void* c, int64_t crs,
                                int64_t ccs, double alpha, double beta) {
  void (*rows)(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, T*, int64_t, int64_t, T, T) =
      n <= 4 ? NAME3(gram_rows, KERNEL, 4) : n <= 8 ? NAME3(gram_rows, KERNEL, 8) : NAME3(gram_rows, KERNEL, 16);
  for (int64_t p = 0; p < k; p += GRAM_DEPTH, beta = 1)
    rows(m, n, k - p < GRAM_DEPTH ? k - p : GRAM_DEPTH, (const T*)a + p * acs, ars, acs, (const T*)b + p * brs, brs, c, crs, ccs, (T)alpha, (T)beta);
}
#undef DEFINE_NARROW
#undef NARROW_ROWS
#undef NARROW_BYTES
#undef NAME2
#undef NAME2_
#undef NAME3
#undef NAME3_
#undef KERNEL
#undef T
