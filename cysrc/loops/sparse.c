/* Sparse matrices in compressed rows: products with dense ones. A row belongs to one thread and is summed in the order of its entries. */
#include "kernel_base.h"
#include "sparse_places.h"
#include "sparse_steps.h"

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif

#define NAMED(A, K) named_row((A)->col + (K), (A)->columns, (int*)&(A)->bad)

/* Rows of the dense matrix that no prefetcher foresees are on their way some entries before their turn. The column is not checked: fetching reads nothing. */
enum { ENTRIES_AHEAD = 8 };
KERNEL_INLINE void fetch_row(const void* dense, int64_t column, int64_t row_bytes, const int bytes) {
    const uintptr_t row = (uintptr_t)dense + (uintptr_t)column * (uintptr_t)row_bytes;
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const void*)(row + i));
}

/* N vectors of a row stay in registers while its entries go by: loads of dense are all that touches memory. */
#define DEFINE_TILE(T, N)                                                                                               \
    static void tile_##T##_##N(const T* values, const int64_t* col, int64_t count, int64_t columns, int* bad, const T* dense, int64_t n, T* out) { \
        enum { LANES = VECTOR / sizeof(T) };                                                                            \
        vector_##T acc[N];                                                                                              \
        for (int i = 0; i < N; i++) acc[i] = (vector_##T){0};                                                           \
        for (int64_t k = 0; k < count; k++) {                                                                           \
            const T* row = dense + named_row(col + k, columns, bad) * n;                                                \
            const T v = values ? values[k] : 1;                                                                         \
            if (k + ENTRIES_AHEAD < count) fetch_row(dense, col[k + ENTRIES_AHEAD], n * (int64_t)sizeof(T), N * VECTOR); \
            _Pragma("GCC unroll 8") for (int i = 0; i < N; i++) acc[i] += v * *(const vector_##T*)(row + i * LANES);    \
        }                                                                                                               \
        for (int i = 0; i < N; i++) *(vector_##T*)(out + i * LANES) = acc[i];                                           \
    }

#define DEFINE_REST(T)                                                                                                  \
    static void rest_##T(const T* values, const int64_t* col, int64_t count, int64_t columns, int* bad, const T* dense, int64_t n, int64_t width, T* out) { \
        for (int64_t j = 0; j < width; j++) out[j] = 0;                                                                 \
        for (int64_t k = 0; k < count; k++) {                                                                           \
            const T* row = dense + named_row(col + k, columns, bad) * n;                                                \
            const T v = values ? values[k] : (T)1;                                                                      \
            VECTORIZE for (int64_t j = 0; j < width; j++) out[j] += v * row[j];                                         \
        }                                                                                                               \
    }

#define DEFINE_REAL(T)                                                                                                  \
    typedef T vector_##T __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));                           \
    DEFINE_TILE(T, 8) DEFINE_TILE(T, 4) DEFINE_TILE(T, 2) DEFINE_TILE(T, 1) DEFINE_REST(T)                              \
    static void rows_##T(const sparse_call* a, int64_t first, int64_t last) {                                           \
        enum { LANES = VECTOR / sizeof(T) };                                                                            \
        for (int64_t i = first; i < last; i++) {                                                                        \
            int64_t begin = a->crow[i], count = a->crow[i + 1] - begin, n = a->n, j = 0;                                \
            const T *values = a->values ? (const T*)a->values + begin : NULL, *dense = (const T*)a->dense;              \
            const int64_t *col = a->col + begin, columns = a->columns;                                                  \
            int* bad = (int*)&a->bad;                                                                                   \
            T* out = (T*)a->out + i * n;                                                                                \
            if (n == 1) {                                                                                               \
                T sum = 0;                                                                                              \
                for (int64_t k = 0; k < count; k++) sum += (values ? values[k] : (T)1) * dense[named_row(col + k, columns, bad)]; \
                out[0] = sum;                                                                                           \
                continue;                                                                                               \
            }                                                                                                           \
            for (; j + 8 * LANES <= n; j += 8 * LANES) tile_##T##_8(values, col, count, columns, bad, dense + j, n, out + j); \
            if (j + 4 * LANES <= n) tile_##T##_4(values, col, count, columns, bad, dense + j, n, out + j), j += 4 * LANES; \
            if (j + 2 * LANES <= n) tile_##T##_2(values, col, count, columns, bad, dense + j, n, out + j), j += 2 * LANES; \
            if (j + LANES <= n) tile_##T##_1(values, col, count, columns, bad, dense + j, n, out + j), j += LANES;      \
            if (j < n) rest_##T(values, col, count, columns, bad, dense + j, n, n - j, out + j);                        \
        }                                                                                                               \
    }                                                                                                                   \
    static void sampled_##T(const sparse_call* a, int64_t first, int64_t last) {                                        \
        enum { LANES = VECTOR / sizeof(T) };                                                                            \
        for (int64_t i = first; i < last; i++) {                                                                        \
            const T* left = (const T*)a->values + i * a->n;                                                             \
            for (int64_t k = a->crow[i]; k < a->crow[i + 1]; k++) {                                                     \
                const T* right = (const T*)a->dense + NAMED(a, k) * a->n;                                               \
                vector_##T s = {0}, t = {0};                                                                            \
                T sum = 0;                                                                                              \
                int64_t j = 0;                                                                                          \
                for (; j + 2 * LANES <= a->n; j += 2 * LANES) {                                                         \
                    s += *(const vector_##T*)(left + j) * *(const vector_##T*)(right + j);                              \
                    t += *(const vector_##T*)(left + j + LANES) * *(const vector_##T*)(right + j + LANES);              \
                }                                                                                                       \
                s += t;                                                                                                 \
                for (int l = 0; l < LANES; l++) sum += s[l];                                                            \
                for (; j < a->n; j++) sum += left[j] * right[j];                                                        \
                ((T*)a->out)[k] = sum;                                                                                  \
            }                                                                                                           \
        }                                                                                                               \
    }                                                                                                                   \
    static void extremes_##T(const sparse_call* a, int64_t first, int64_t last) {                                       \
        const int largest = a->operation == SPARSE_LARGEST;                                                             \
        for (int64_t i = first; i < last; i++) {                                                                        \
            T* out = (T*)a->out + i * a->n;                                                                             \
            int64_t* which = a->which + i * a->n;                                                                       \
            for (int64_t j = 0; j < a->n; j++) out[j] = 0, which[j] = -1;                                               \
            for (int64_t k = a->crow[i]; k < a->crow[i + 1]; k++) {                                                     \
                const T *row = (const T*)a->dense + NAMED(a, k) * a->n, v = ((const T*)a->values)[k];                   \
                for (int64_t j = 0; j < a->n; j++) {                                                                    \
                    const T x = v * row[j];                                                                             \
                    if (which[j] < 0 || x != x || (largest ? x > out[j] : x < out[j])) out[j] = x, which[j] = k;        \
                }                                                                                                       \
            }                                                                                                           \
        }                                                                                                               \
    }

#define DEFINE_OTHER(T)                                                                                                 \
    DEFINE_REST(T)                                                                                                      \
    static void rows_##T(const sparse_call* a, int64_t first, int64_t last) {                                           \
        for (int64_t i = first; i < last; i++)                                                                          \
            rest_##T(a->values ? (const T*)a->values + a->crow[i] : NULL, a->col + a->crow[i], a->crow[i + 1] - a->crow[i], a->columns, (int*)&a->bad, \
                     (const T*)a->dense, a->n, a->n, (T*)a->out + i * a->n);                                            \
    }                                                                                                                   \
    static void sampled_##T(const sparse_call* a, int64_t first, int64_t last) {                                        \
        for (int64_t i = first; i < last; i++)                                                                          \
            for (int64_t k = a->crow[i]; k < a->crow[i + 1]; k++) {                                                     \
                const T *left = (const T*)a->values + i * a->n, *right = (const T*)a->dense + NAMED(a, k) * a->n;       \
                T sum = 0;                                                                                              \
                for (int64_t j = 0; j < a->n; j++) sum += left[j] * right[j];                                           \
                ((T*)a->out)[k] = sum;                                                                                  \
            }                                                                                                           \
    }

DEFINE_REAL(f32)
DEFINE_REAL(f64)
DEFINE_OTHER(c64)
DEFINE_OTHER(c128)
DEFINE_OTHER(i64)

/* The first row that begins at or behind a position of the sequence in which every row and every entry is a step: shares of equal work. */
static int64_t row_at(const sparse_call* a, int64_t position) {
    int64_t low = 0, high = a->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (a->crow[middle] + middle < position) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* items: rows + count, of which a thread gets whole rows */
void ISA_NAME(sparse_rows)(void* context, int64_t begin, int64_t end) {
    const sparse_call* a = context;
    int64_t first = row_at(a, begin), last = end >= a->rows + a->count ? a->rows : row_at(a, end);
#define RUN(T)                                                                                                          \
    {                                                                                                                   \
        if (a->operation == SPARSE_SAMPLED) sampled_##T(a, first, last);                                                \
        else rows_##T(a, first, last);                                                                                  \
        return;                                                                                                         \
    }
    if (a->operation == SPARSE_LARGEST || a->operation == SPARSE_SMALLEST) {
        if (a->dtype == DT_f32) extremes_f32(a, first, last);
        else extremes_f64(a, first, last);
        return;
    }
    if (a->dtype == DT_f32) RUN(f32)
    if (a->dtype == DT_f64) RUN(f64)
    if (a->dtype == DT_c64) RUN(c64)
    if (a->dtype == DT_c128) RUN(c128)
    RUN(i64)
}

/* Copy crow, which other threads may write to, and let the loops read the copy: whether it leads from 0 to count without falling. */
int ISA_NAME(sparse_take_rows)(sparse_call* a, int64_t* rows) {
    memcpy(rows, a->crow, (size_t)(a->rows + 1) * sizeof(int64_t));
    int64_t wrong = rows[0] != 0 || rows[a->rows] != a->count || (a->count && !a->columns);
    for (int64_t i = 0; i < a->rows; i++) wrong |= rows[i + 1] < rows[i];
    a->crow = rows;
    a->bad = 0;
    return !wrong;
}
