/* LAPACK behind one table of function pointers: a routine has a row, the four element types its columns (float, double,
   complex float, complex double). All matrices are column-major and dense (the leading dimension is the number of rows).
   Included by ops/linalg/cpu.pyx alone; calls stand between blas_begin and blas_end of core/blas. */
#ifndef TRT_LAPACK_H
#define TRT_LAPACK_H
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "linalg.h"
#include "linalg_job.h"
#include "linalg_tridiagonal.h"

enum {
  GETRF, GETRS, GETRI, POTRF, POTRS, POTRI, TRSM, GEQRF, ORGQR, ORMQR, SYEVD, GEEV, GESDD, GELS, GELSY, GELSD, GELSS, SYTRF, SYTRS, HETRF, HETRS, STERF, STEDC, LAED1, LAIC1, TZRZF, ORMRZ,
  TRT_ROUTINES
};
static void* trt_lapack[TRT_ROUTINES][4];
static const trt_linalg_table* trt_small;       /* what takes LAPACK's place for up to TRT_SMALL rows */
static const trt_tridiagonal_kernels* trt_ql;   /* and for the leaves of divide and conquer, with AVX2 */

/* NULL, or the name of what is missing. A pair of names: of the real and of the complex routine. */
static const char* trt_lapack_open(const char* path) {
  static const char* const names[TRT_ROUTINES][2] = {
    {"getrf", "getrf"}, {"getrs", "getrs"}, {"getri", "getri"}, {"potrf", "potrf"}, {"potrs", "potrs"}, {"potri", "potri"}, {"trsm", "trsm"},
    {"geqrf", "geqrf"}, {"orgqr", "ungqr"}, {"ormqr", "unmqr"}, {"syevd", "heevd"}, {"geev", "geev"}, {"gesdd", "gesdd"}, {"gels", "gels"},
    {"gelsy", "gelsy"}, {"gelsd", "gelsd"}, {"gelss", "gelss"}, {"sytrf", "sytrf"}, {"sytrs", "sytrs"}, {"sytrf", "hetrf"}, {"sytrs", "hetrs"},
    {"sterf", "sterf"}, {"stedc", "stedc"}, {"laed1", "laed1"}, {"laic1", "laic1"}, {"tzrzf", "tzrzf"}, {"ormrz", "unmrz"}};
  /* those that are called for real matrices alone */
  static const int real_only = STERF;
  static char symbol[32];
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  for (int r = 0; r < TRT_ROUTINES; r++)
    for (int t = 0; t < (r < real_only ? 4 : 2); t++) {
      snprintf(symbol, sizeof symbol, "scipy_%c%s_", "sdcz"[t], names[r][t >= 2]);
      if (!(trt_lapack[r][t] = dlsym(library, symbol))) return symbol;
    }
  return NULL;
}

#define CALL(routine, ...) ((void (*)(__VA_ARGS__))trt_lapack[routine][t])
#define LEADING(n) ((n) > 1 ? (n) : 1)
typedef const char* text_p;
typedef const int* int_p;

static inline void trt_put(int t, void* x, int64_t i, double re, double im) {
  if (t == 0) ((float*)x)[i] = (float)re;
  else if (t == 1) ((double*)x)[i] = re;
  else if (t == 2) { ((float*)x)[2 * i] = (float)re; ((float*)x)[2 * i + 1] = (float)im; }
  else { ((double*)x)[2 * i] = re; ((double*)x)[2 * i + 1] = im; }
}

static int trt_getrf(int t, int m, int n, void* a, int* pivots) {
  int info = 0, lda = LEADING(m);
  if (m == n && n <= TRT_SMALL) return trt_small->lu[t](n, a, pivots);
  CALL(GETRF, int_p, int_p, void*, int_p, int*, int*)(&m, &n, a, &lda, pivots, &info);
  return info;
}

static int trt_getrs(int t, char trans, int n, int k, const void* lu, const int* pivots, void* b) {
  int info = 0, ld = LEADING(n);
  if (n == 0 || k == 0) return 0;  /* OpenBLAS reads the factors all the same */
  if (trans == 'N' && n <= TRT_SMALL) {
    trt_small->solve[t](n, k, lu, pivots, b);
    return 0;
  }
  CALL(GETRS, text_p, int_p, int_p, const void*, int_p, int_p, void*, int_p, int*, size_t)(&trans, &n, &k, lu, &ld, pivots, b, &ld, &info, 1);
  return info;
}

static int trt_getri(int t, int n, void* a, const int* pivots, void* work, int lwork) {
  int info = 0, ld = LEADING(n);
  if (n <= TRT_SMALL) {  /* the solutions of the unit vectors; work holds the factors */
    size_t size = (t >= 2 ? 2 : 1) * (t & 1 ? 8 : 4), bytes = n * n * size;
    memcpy(work, a, bytes);
    memset(a, 0, bytes);
    for (int i = 0; i < n; i++) trt_put(t, a, (int64_t)i * (n + 1), 1, 0);
    trt_small->solve[t](n, n, work, pivots, a);
    return 0;
  }
  CALL(GETRI, int_p, void*, int_p, int_p, void*, int_p, int*)(&n, a, &ld, pivots, work, &lwork, &info);
  return info;
}

static int trt_potrf(int t, char uplo, int n, void* a) {
  int info = 0, ld = LEADING(n);
  if (uplo == 'L' && n <= TRT_SMALL) return trt_small->cholesky[t](n, a);
  CALL(POTRF, text_p, int_p, void*, int_p, int*, size_t)(&uplo, &n, a, &ld, &info, 1);
  return info;
}

static int trt_potrs(int t, char uplo, int n, int k, const void* a, void* b) {
  int info = 0, ld = LEADING(n);
  if (n == 0 || k == 0) return 0;  /* OpenBLAS reads the factors all the same */
  CALL(POTRS, text_p, int_p, int_p, const void*, int_p, void*, int_p, int*, size_t)(&uplo, &n, &k, a, &ld, b, &ld, &info, 1);
  return info;
}

static int trt_potri(int t, char uplo, int n, void* a) {
  int info = 0, ld = LEADING(n);
  CALL(POTRI, text_p, int_p, void*, int_p, int*, size_t)(&uplo, &n, a, &ld, &info, 1);
  return info;
}

/* b: (m, n) becomes op(a)^-1 b or, with side 'R', b op(a)^-1. */
static void trt_trsm(int t, char side, char uplo, char trans, char diag, int m, int n, const void* a, void* b) {
  static const float one_f[2] = {1, 0};
  static const double one_d[2] = {1, 0};
  int lda = LEADING(side == 'L' ? m : n), ldb = LEADING(m);
  CALL(TRSM, text_p, text_p, text_p, text_p, int_p, int_p, const void*, const void*, int_p, void*, int_p, size_t, size_t, size_t, size_t)
  (&side, &uplo, &trans, &diag, &m, &n, t & 1 ? (const void*)one_d : one_f, a, &lda, b, &ldb, 1, 1, 1, 1);
}

static int trt_geqrf(int t, int m, int n, void* a, void* tau, void* work, int lwork) {
  int info = 0, lda = LEADING(m);
  CALL(GEQRF, int_p, int_p, void*, int_p, void*, void*, int_p, int*)(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}

static int trt_orgqr(int t, int m, int n, int k, void* a, const void* tau, void* work, int lwork) {
  int info = 0, lda = LEADING(m);
  CALL(ORGQR, int_p, int_p, int_p, void*, int_p, const void*, void*, int_p, int*)(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}

static int trt_ormqr(int t, char side, char trans, int m, int n, int k, const void* a, const void* tau, void* c, void* work, int lwork) {
  int info = 0, lda = LEADING(side == 'L' ? m : n), ldc = LEADING(m);
  CALL(ORMQR, text_p, text_p, int_p, int_p, int_p, const void*, int_p, const void*, void*, int_p, void*, int_p, int*, size_t, size_t)
  (&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
  return info;
}

static int trt_syevd(int t, char job, char uplo, int n, void* a, void* w, void* work, int lwork, void* rwork, int lrwork, int* iwork, int liwork) {
  int info = 0, ld = LEADING(n);
  if (t < 2)
    CALL(SYEVD, text_p, text_p, int_p, void*, int_p, void*, void*, int_p, int*, int_p, int*, size_t, size_t)
    (&job, &uplo, &n, a, &ld, w, work, &lwork, iwork, &liwork, &info, 1, 1);
  else
    CALL(SYEVD, text_p, text_p, int_p, void*, int_p, void*, void*, int_p, void*, int_p, int*, int_p, int*, size_t, size_t)
    (&job, &uplo, &n, a, &ld, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  return info;
}

static double trt_get(int t, const void* x, int64_t i) { return t ? ((const double*)x)[i] : ((const float*)x)[i]; }

/* The largest magnitude in the diagonal and the subdiagonal of a tridiagonal matrix. */
static double trt_tridiagonal_largest(int t, int n, const void* d, const void* e) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs(trt_get(t, d, i)));
  for (int i = 0; i < n - 1; i++) most = fmax(most, fabs(trt_get(t, e, i)));
  return most;
}

static void trt_scale_by_power(int t, int64_t n, void* x, int exponent) {
  for (int64_t i = 0; i < n; i++) trt_put(t, x, i, ldexp(trt_get(t, x, i), exponent), 0);
}

/* Whether it falls apart into several, which are cheaper by themselves. */
static int trt_falls_apart(int t, int n, const void* d, const void* e) {
  const double epsilon = t ? 0x1p-53 : 0x1p-24;
  for (int i = 0; i < n - 1; i++)
    if (fabs(trt_get(t, e, i)) <= epsilon * sqrt(fabs(trt_get(t, d, i))) * sqrt(fabs(trt_get(t, d, i + 1)))) return 1;
  return 0;
}

/* Divide and conquer (Cuppen 1981; laed0): q, zeros, becomes the eigenvectors of the matrix d, e of n rows; index, counted from 1, sorts the eigenvalues d. `work` is of
   n * n + 4 * n elements, and for the leaves' QL; iwork of 4 n. */
static int trt_conquer(int t, int n, char* d, char* e, char* q, int ldq, int* index, char* work, int* iwork) {
  const size_t size = t ? 8 : 4;
  int half = n / 2, info = 0;
  if (n <= QL_MOST) {
    for (int i = 0; i < n; i++) index[i] = i + 1;
    return trt_ql->ql[t](n, d, e, q, ldq, work + (-(uintptr_t)work & 63));
  }
  const double torn = fabs(trt_get(t, e, half - 1));
  trt_put(t, d, half - 1, trt_get(t, d, half - 1) - torn, 0);
  trt_put(t, d, half, trt_get(t, d, half) - torn, 0);
  info = trt_conquer(t, half, d, e, q, ldq, index, work, iwork);
  if (!info) info = trt_conquer(t, n - half, d + half * size, e + half * size, q + half * (ldq + 1) * size, ldq, index + half, work, iwork);
  if (!info) CALL(LAED1, int_p, void*, void*, int_p, int*, void*, int_p, void*, int*, int*)(&n, d, q, &ldq, index, e + (half - 1) * size, &half, work, iwork, &info);
  return info;
}

/* A symmetric tridiagonal matrix of real type: its diagonal d becomes the eigenvalues, and z, unless NULL, (n, n), the eigenvectors. */
static int trt_tridiagonal_eigenvalues(int t, int n, void* d, void* e, void* z, void* work, int lwork, int* iwork, int liwork) {
  const size_t size = t ? 8 : 4;
  int info = 0, ld = LEADING(n), exponent;
  char job = 'I', *q = work, *rest = q + (size_t)n * n * size;
  if (!z) {
    CALL(STERF, int_p, void*, void*, int*)(&n, d, e, &info);
    return info;
  }
  const double largest = trt_tridiagonal_largest(t, n, d, e);
  if (!trt_ql->ql[t] || largest == 0 || (n > QL_MOST && trt_falls_apart(t, n, d, e))) {
    CALL(STEDC, text_p, int_p, void*, void*, void*, int_p, void*, int_p, int*, int_p, int*, size_t)
    (&job, &n, d, e, z, &ld, work, &lwork, iwork, &liwork, &info, 1);
    return info;
  }
  frexp(largest, &exponent);
  trt_scale_by_power(t, n, d, -exponent);
  trt_scale_by_power(t, n - 1, e, -exponent);
  memset(q, 0, (size_t)n * n * size);
  info = trt_conquer(t, n, d, e, q, ld, iwork, rest, iwork + n);
  if (info) return info;
  for (int i = 0; i < n; i++) {
    trt_put(t, rest, i, ldexp(trt_get(t, d, iwork[i] - 1), exponent), 0);
    memcpy((char*)z + (size_t)i * n * size, q + (size_t)(iwork[i] - 1) * n * size, n * size);
  }
  memcpy(d, rest, n * size);
  return 0;
}

/* Real types: w is n real parts, then n imaginary ones. v: (n, n) eigenvectors with job 'V'; rwork: complex types alone. */
static int trt_geev(int t, char job, int n, void* a, void* w, void* v, void* work, int lwork, void* rwork) {
  int info = 0, ld = LEADING(n), one = 1;
  char no = 'N';
  if (t < 2)
    CALL(GEEV, text_p, text_p, int_p, void*, int_p, void*, void*, void*, int_p, void*, int_p, void*, int_p, int*, size_t, size_t)
    (&no, &job, &n, a, &ld, w, (char*)w + (size_t)n * (t ? 8 : 4), NULL, &one, v, &ld, work, &lwork, &info, 1, 1);
  else
    CALL(GEEV, text_p, text_p, int_p, void*, int_p, void*, void*, int_p, void*, int_p, void*, int_p, void*, int*, size_t, size_t)
    (&no, &job, &n, a, &ld, w, NULL, &one, v, &ld, work, &lwork, rwork, &info, 1, 1);
  return info;
}

/* job: 'N' values only, 'S' reduced, 'A' full; ldvt: rows of vt. rwork: complex types alone. */
static int trt_gesdd(int t, char job, int m, int n, void* a, void* s, void* u, void* vt, int ldvt, void* work, int lwork, void* rwork, int* iwork) {
  int info = 0, ld = LEADING(m);
  ldvt = LEADING(ldvt);
  if (t < 2)
    CALL(GESDD, text_p, int_p, int_p, void*, int_p, void*, void*, int_p, void*, int_p, void*, int_p, int*, int*, size_t)
    (&job, &m, &n, a, &ld, s, u, &ld, vt, &ldvt, work, &lwork, iwork, &info, 1);
  else
    CALL(GESDD, text_p, int_p, int_p, void*, int_p, void*, void*, int_p, void*, int_p, void*, int_p, void*, int*, int*, size_t)
    (&job, &m, &n, a, &ld, s, u, &ld, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);
  return info;
}

/* The least squares solution of a x = b over b: (max(m, n), k) by routine GELS, GELSY, GELSD or GELSS. s: singular values. */
static int trt_least_squares(int t, int routine, int m, int n, int k, void* a, void* b, void* s, int* pivots, double tolerance, int* rank, void* work,
                             int lwork, void* rwork, int* iwork) {
  int info = 0, lda = LEADING(m), ldb = LEADING(m > n ? m : n);
  float single = (float)tolerance;
  const void* rcond = t & 1 ? (const void*)&tolerance : &single;
  char no = 'N';
  if (routine == GELS)
    CALL(GELS, text_p, int_p, int_p, int_p, void*, int_p, void*, int_p, void*, int_p, int*, size_t)
    (&no, &m, &n, &k, a, &lda, b, &ldb, work, &lwork, &info, 1);
  else if (routine == GELSY && t < 2)
    CALL(GELSY, int_p, int_p, int_p, void*, int_p, void*, int_p, int*, const void*, int*, void*, int_p, int*)
    (&m, &n, &k, a, &lda, b, &ldb, pivots, rcond, rank, work, &lwork, &info);
  else if (routine == GELSY)
    CALL(GELSY, int_p, int_p, int_p, void*, int_p, void*, int_p, int*, const void*, int*, void*, int_p, void*, int*)
    (&m, &n, &k, a, &lda, b, &ldb, pivots, rcond, rank, work, &lwork, rwork, &info);
  else if (routine == GELSD && t < 2)
    CALL(GELSD, int_p, int_p, int_p, void*, int_p, void*, int_p, void*, const void*, int*, void*, int_p, int*, int*)
    (&m, &n, &k, a, &lda, b, &ldb, s, rcond, rank, work, &lwork, iwork, &info);
  else if (routine == GELSD)
    CALL(GELSD, int_p, int_p, int_p, void*, int_p, void*, int_p, void*, const void*, int*, void*, int_p, void*, int*, int*)
    (&m, &n, &k, a, &lda, b, &ldb, s, rcond, rank, work, &lwork, rwork, iwork, &info);
  else if (t < 2)
    CALL(GELSS, int_p, int_p, int_p, void*, int_p, void*, int_p, void*, const void*, int*, void*, int_p, int*)
    (&m, &n, &k, a, &lda, b, &ldb, s, rcond, rank, work, &lwork, &info);
  else
    CALL(GELSS, int_p, int_p, int_p, void*, int_p, void*, int_p, void*, const void*, int*, void*, int_p, void*, int*)
    (&m, &n, &k, a, &lda, b, &ldb, s, rcond, rank, work, &lwork, rwork, &info);
  return info;
}

/* Real types: whether the largest and the smallest singular value of a triangle with one more column, the first i elements of `column` and its diagonal
   element, stay within 1 / rcond of each other (Bischof 1990); then `values`, of both, and `vectors`, n elements each, become that triangle's. */
static int trt_column_counts(int t, int i, int n, const void* column, double rcond, void* values, void* vectors) {
  const size_t size = t ? 8 : 4;
  const void* diagonal = (const char*)column + i * size;
  double found[2], sine[2], cosine[2];
  for (int which = 0; which < 2; which++) {       /* the largest, the smallest */
    int job = which + 1;
    CALL(LAIC1, int_p, int_p, const void*, const void*, const void*, const void*, void*, void*, void*)
    (&job, &i, (char*)vectors + which * n * size, (char*)values + which * size, column, diagonal, found + which, sine + which, cosine + which);
  }
  if (t ? found[0] * rcond > found[1] : *(float*)found * (float)rcond > *(float*)(found + 1)) return 0;
  for (int which = 0; which < 2; which++) {
    char* x = (char*)vectors + which * n * size;
    for (int j = 0; j < i; j++) {
      if (t) ((double*)x)[j] *= sine[which];
      else ((float*)x)[j] *= *(float*)(sine + which);
    }
    memcpy(x + i * size, cosine + which, size);
    memcpy((char*)values + which * size, found + which, size);
  }
  return 1;
}

/* Real types: a, (m, n), m < n, upper trapezoidal, becomes (T 0) Y; c, (ldc, k), its first n rows, becomes Y' c. */
static void trt_tzrzf(int t, int m, int n, void* a, void* tau, void* work, int lwork) {
  int info = 0, lda = LEADING(m);
  CALL(TZRZF, int_p, int_p, void*, int_p, void*, void*, int_p, int*)(&m, &n, a, &lda, tau, work, &lwork, &info);
}
static void trt_ormrz(int t, int m, int n, int k, const void* a, const void* tau, void* c, int ldc, void* work, int lwork) {
  int info = 0, lda = LEADING(m), rest = n - m;
  char left = 'L', transposed = 'T';
  CALL(ORMRZ, text_p, text_p, int_p, int_p, int_p, int_p, const void*, int_p, const void*, void*, int_p, void*, int_p, int*, size_t, size_t)
  (&left, &transposed, &n, &k, &m, &rest, a, &lda, tau, c, &ldc, work, &lwork, &info, 1, 1);
}

static int trt_ldl_factor(int t, int hermitian, int n, void* a, int* pivots, void* work, int lwork) {
  int info = 0, ld = LEADING(n);
  char lower = 'L';
  CALL(hermitian ? HETRF : SYTRF, text_p, int_p, void*, int_p, int*, void*, int_p, int*, size_t)(&lower, &n, a, &ld, pivots, work, &lwork, &info, 1);
  return info;
}

static int trt_ldl_solve(int t, int hermitian, int n, int k, const void* a, const int* pivots, void* b) {
  int info = 0, ld = LEADING(n);
  if (n == 0 || k == 0) return 0;  /* OpenBLAS reads the factors all the same */
  char lower = 'L';
  CALL(hermitian ? HETRS : SYTRS, text_p, int_p, int_p, const void*, int_p, int_p, void*, int_p, int*, size_t)
  (&lower, &n, &k, a, &ld, pivots, b, &ld, &info, 1);
  return info;
}

/* ---- stacks of matrices with any strides ---- */

static inline const char* trt_stack_item(const trt_stack* s, int64_t i, int size) {
  int64_t offset = 0;
  for (int d = s->batch_dims - 1; d > 0; d--) {
    offset += i % s->sizes[d] * s->strides[d];
    i /= s->sizes[d];
  }
  return s->data + (offset + (s->batch_dims ? i * s->strides[0] : 0)) * size;
}

/* to[r * trs + c * tcs] = from[r * frs + c * fcs], in tiles whose lines stay in the first cache. */
#define COPY(type)                                                                                               \
  for (int64_t c0 = 0; c0 < cols; c0 += 16)                                                                      \
    for (int64_t r0 = 0; r0 < rows; r0 += 64)                                                                    \
      for (int64_t c = c0; c < c0 + 16 && c < cols; c++) {                                                       \
        type* x = (type*)to + c * tcs;                                                                           \
        const type* y = (const type*)from + c * fcs;                                                             \
        for (int64_t r = r0; r < r0 + 64 && r < rows; r++) x[r * trs] = y[r * frs];                              \
      }
typedef struct { double re, im; } trt_complex128;
static void trt_copy_matrix(int size, int64_t rows, int64_t cols, char* to, int64_t trs, int64_t tcs, const char* from, int64_t frs, int64_t fcs) {
  if (size == 4) { COPY(float) } else if (size == 8) { COPY(double) } else { COPY(trt_complex128) }
}

static int trt_all_finite(int t, int64_t n, const void* x) {
  n *= t >= 2 ? 2 : 1;
  if (t & 1) {
    const double* d = (const double*)x;
    for (int64_t i = 0; i < n; i++) if (!(d[i] - d[i] == 0)) return 0;
  } else {
    const float* f = (const float*)x;
    for (int64_t i = 0; i < n; i++) if (!(f[i] - f[i] == 0)) return 0;
  }
  return 1;
}

static int trt_any_nan(int t, int64_t n, const void* x) {
  n *= t >= 2 ? 2 : 1;
  if (t & 1) {
    const double* d = (const double*)x;
    for (int64_t i = 0; i < n; i++) if (d[i] != d[i]) return 1;
  } else {
    const float* f = (const float*)x;
    for (int64_t i = 0; i < n; i++) if (f[i] != f[i]) return 1;
  }
  return 0;
}

/* A diagonal element of a dense (n, n) matrix as (real, imaginary). */
static inline void trt_diagonal_item(int t, const void* a, int64_t n, int64_t i, double* value) {
  int64_t at = i * (n + 1);
  value[1] = 0;
  if (t == 0) value[0] = ((const float*)a)[at];
  else if (t == 1) value[0] = ((const double*)a)[at];
  else if (t == 2) { value[0] = ((const float*)a)[2 * at]; value[1] = ((const float*)a)[2 * at + 1]; }
  else { value[0] = ((const double*)a)[2 * at]; value[1] = ((const double*)a)[2 * at + 1]; }
}

static inline int trt_work_size(int t, const void* work) { return (int)(t & 1 ? *(const double*)work : *(const float*)work) + 1; }

/* Sets the triangle above (upper 1) or below (upper 0) the diagonal of a dense (n, n) matrix to zero. */
static void trt_clear_triangle(int size, int64_t n, char* a, int upper) {
  for (int64_t c = 0; c < n; c++) {
    if (upper) memset(a + c * n * size, 0, (size_t)(c * size));
    else memset(a + (c * n + c + 1) * size, 0, (size_t)((n - 1 - c) * size));
  }
}
#undef CALL
#endif
