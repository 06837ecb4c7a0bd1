/* Many rows by a matrix of few columns, which stays in registers or L1: a row of C is one vector of N >= n elements. Included once per type with T (the
   type) and KERNEL (the suffix of its functions). A row's sum runs over k in order, so that no result depends on how the rows are split. */
#define NAME2_(name, kernel) name##_##kernel
#define NAME2(name, kernel) NAME2_(name, kernel)
#define NAME3_(name, kernel, width) name##_##kernel##width
#define NAME3(name, kernel, width) NAME3_(name, kernel, width)
#define NARROW_ROWS(N) ((N) * sizeof(T) <= NATIVE ? 8 : (N) * sizeof(T) <= 2 * NATIVE ? 4 : 2)
#define NARROW_BYTES(N) ((N) * sizeof(T) <= NATIVE ? (N) * sizeof(T) : NATIVE)

#define DEFINE_NARROW(N)                                                                                                                  \
  typedef T NAME3(vec, KERNEL, N) __attribute__((vector_size(NARROW_BYTES(N))));                                                          \
  typedef NAME3(vec, KERNEL, N) NAME3(vec_u, KERNEL, N) __attribute__((aligned(sizeof(T)), may_alias));                                   \
  enum { NAME3(PARTS, KERNEL, N) = N * sizeof(T) / NARROW_BYTES(N), NAME3(LANES, KERNEL, N) = NARROW_BYTES(N) / sizeof(T) };              \
  typedef __typeof__((NAME3(vec, KERNEL, N)){0} == (NAME3(vec, KERNEL, N)){0}) NAME3(bits, KERNEL, N);                                    \
  INLINE void NAME3(narrow_put, KERNEL, N)(NAME3(vec, KERNEL, N) * sum, const NAME3(bits, KERNEL, N) * inside, T* c, int64_t n, int whole,\
                                           T alpha, T beta) {                                                                             \
    T kept[N];                                                                                                                            \
    UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[v] *= alpha;                                                             \
    if (whole && beta == 0) {                                                                                                             \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) *(NAME3(vec_u, KERNEL, N)*)(c + v * NAME3(LANES, KERNEL, N)) = sum[v];     \
      return;                                                                                                                             \
    }                                                                                                                                     \
    if (whole) {                                                                                                                          \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) {                                                                          \
        const NAME3(vec, KERNEL, N) old = *(const NAME3(vec_u, KERNEL, N)*)(c + v * NAME3(LANES, KERNEL, N));                             \
        const NAME3(vec, KERNEL, N) new = FMA(SPLAT(NAME3(vec, KERNEL, N), beta), old, sum[v]);                                           \
        *(NAME3(vec_u, KERNEL, N)*)(c + v * NAME3(LANES, KERNEL, N)) =                                                                    \
            (NAME3(vec, KERNEL, N))(((NAME3(bits, KERNEL, N))new & inside[v]) | ((NAME3(bits, KERNEL, N))old & ~inside[v]));              \
      }                                                                                                                                   \
      return;                                                                                                                             \
    }                                                                                                                                     \
    memcpy(kept, sum, sizeof kept);                                                                                                       \
    if (beta == 0) for (int64_t j = 0; j < n; j++) c[j] = kept[j];                                                                        \
    else for (int64_t j = 0; j < n; j++) c[j] = FMA(beta, c[j], kept[j]);                                                                 \
  }                                                                                                                                       \
  INLINE void NAME3(narrow_block, KERNEL, N)(int rows, int64_t left, int64_t n, int64_t k, const T* a, int64_t ars,                       \
      NAME3(vec, KERNEL, N) (*panel)[NAME3(PARTS, KERNEL, N)], const NAME3(bits, KERNEL, N) * inside, T* c, int64_t crs, T alpha, T beta) {\
    NAME3(vec, KERNEL, N) sum[NARROW_ROWS(N)][NAME3(PARTS, KERNEL, N)];                                                                   \
    UNROLL for (int r = 0; r < rows; r++)                                                                                                 \
      UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++) sum[r][v] = (NAME3(vec, KERNEL, N)){0};                                    \
    for (int64_t p = 0; p < k; p++)                                                                                                       \
      UNROLL for (int r = 0; r < rows; r++)                                                                                               \
        UNROLL for (int v = 0; v < NAME3(PARTS, KERNEL, N); v++)                                                                          \
          sum[r][v] = FMA(SPLAT(NAME3(vec, KERNEL, N), a[r * ars + p]), panel[p][v], sum[r][v]);                                          \
    /* a vector reaches into the following rows, whose own come after it (where C is added to, what lies there is put back);              \
       not beyond the last one, nor between rows */                                                                                       \
    UNROLL for (int r = 0; r < rows; r++)                                                                                                 \
      NAME3(narrow_put, KERNEL, N)(sum[r], inside, c + r * crs, n, crs == n && (left - r) * n >= N, alpha, beta);                         \
  }                                                                                                                                       \
  static void NAME3(narrow_rows, KERNEL, N)(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, const T* b, int64_t brs,            \
      int64_t bcs, T* c, int64_t crs, T alpha, T beta) {                                                                                  \
    enum { ROWS = NARROW_ROWS(N) };                                                                                                       \
    NAME3(vec, KERNEL, N) panel[NARROW_DEPTH][NAME3(PARTS, KERNEL, N)];                                                                   \
    NAME3(bits, KERNEL, N) inside[NAME3(PARTS, KERNEL, N)];                                                                               \
    for (int j = 0; j < N; j++) inside[j / NAME3(LANES, KERNEL, N)][j % NAME3(LANES, KERNEL, N)] = j < n ? -1 : 0;                        \
    memset(panel, 0, sizeof panel[0] * k);                                                                                                \
    for (int64_t p = 0; p < k; p++)                                                                                                       \
      for (int64_t j = 0; j < n; j++) panel[p][j / NAME3(LANES, KERNEL, N)][j % NAME3(LANES, KERNEL, N)] = b[p * brs + j * bcs];          \
    int64_t i = 0;                                                                                                                        \
    for (; i + ROWS <= m; i += ROWS) NAME3(narrow_block, KERNEL, N)(ROWS, m - i, n, k, a + i * ars, ars, panel, inside, c + i * crs, crs, alpha, beta);\
    for (; i < m; i++) NAME3(narrow_block, KERNEL, N)(1, m - i, n, k, a + i * ars, ars, panel, inside, c + i * crs, crs, alpha, beta);    \
  }
DEFINE_NARROW(4)
DEFINE_NARROW(8)
DEFINE_NARROW(16)

static void NAME2(narrow, KERNEL)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t brs, int64_t bcs, void* c, int64_t crs,
                                  double alpha, double beta) {
  void (*rows)(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, int64_t, T*, int64_t, T, T) =
      n <= 4 ? NAME3(narrow_rows, KERNEL, 4) : n <= 8 ? NAME3(narrow_rows, KERNEL, 8) : NAME3(narrow_rows, KERNEL, 16);
  rows(m, n, k, a, ars, b, brs, bcs, c, crs, (T)alpha, (T)beta);
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
