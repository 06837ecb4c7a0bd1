/* Products of two sparse matrices in compressed rows (Gustavson 1978): rows of the right one, weighted by the entries of a left row, meet in a line of accumulators.
 * Which columns a row has is a bit set of three levels, so that they come out in order without a sort.
 * Instruction sets: base (scattered reads and writes set the time). */
#include <stdlib.h>
#include "kernel_base.h"
#include "sparse_places.h"
#include "sparse_steps.h"

typedef struct {
    uint64_t *bits, *words, *tops; /* a bit of words: 64 columns of which one is there; of tops: 64 words */
    int64_t n_tops;
} column_set;

static int make_set(column_set* s, int64_t columns) {
    int64_t bits = columns / 64 + 1, words = bits / 64 + 1;
    s->n_tops = words / 64 + 1;
    s->bits = calloc((size_t)(bits + words + s->n_tops), sizeof(uint64_t));
    if (!s->bits) return 0;
    s->words = s->bits + bits, s->tops = s->words + words;
    return 1;
}

static inline void put(column_set* s, int64_t c) {
    s->bits[c >> 6] |= (uint64_t)1 << (c & 63);
    s->words[c >> 12] |= (uint64_t)1 << (c >> 6 & 63);
    s->tops[c >> 18] |= (uint64_t)1 << (c >> 12 & 63);
}

/* All columns in order; nothing is left in the set. */
#define EACH_COLUMN(S, C, ...)                                                                                          \
    for (int64_t t_ = 0; t_ < (S)->n_tops; t_++) {                                                                      \
        for (uint64_t top_ = (S)->tops[t_]; top_; top_ &= top_ - 1) {                                                   \
            const int64_t w_ = t_ * 64 + __builtin_ctzll(top_);                                                         \
            for (uint64_t word_ = (S)->words[w_]; word_; word_ &= word_ - 1) {                                          \
                const int64_t b_ = w_ * 64 + __builtin_ctzll(word_);                                                    \
                for (uint64_t bits_ = (S)->bits[b_]; bits_; bits_ &= bits_ - 1) {                                       \
                    const int64_t C = b_ * 64 + __builtin_ctzll(bits_);                                                 \
                    __VA_ARGS__;                                                                                         \
                }                                                                                                       \
                (S)->bits[b_] = 0;                                                                                      \
            }                                                                                                           \
            (S)->words[w_] = 0;                                                                                         \
        }                                                                                                               \
        (S)->tops[t_] = 0;                                                                                              \
    }

static inline int64_t right_row(const sparse_product_call* a, int64_t k) { return named_row(a->left_col + k, a->right_rows, (int*)&a->bad); }
static inline int64_t column(const sparse_product_call* a, int64_t m) { return named_row(a->right_col + m, a->columns, (int*)&a->bad); }

/* seen: of each column the last row that had it, counted from 1 */
static void count_rows(const sparse_product_call* a, int64_t* seen, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        int64_t count = 0;
        for (int64_t k = a->left_crow[i]; k < a->left_crow[i + 1]; k++) {
            for (int64_t row = right_row(a, k), m = a->right_crow[row]; m < a->right_crow[row + 1]; m++) {
                const int64_t c = column(a, m);
                count += seen[c] != i + 1;
                seen[c] = i + 1;
            }
        }
        a->crow[i + 1] = count;
    }
}

/* Every pair of entries that meet in row I. */
#define EACH_PAIR(I, C, ...)                                                                                            \
    for (int64_t k = a->left_crow[I]; k < a->left_crow[I + 1]; k++) {                                                   \
        const T v = left[k];                                                                                            \
        for (int64_t row = right_row(a, k), m = a->right_crow[row]; m < a->right_crow[row + 1]; m++) {                  \
            const int64_t C = column(a, m);                                                                             \
            __VA_ARGS__;                                                                                                \
        }                                                                                                               \
    }

/* sums, marks: zeros. A row that has many of the columns marks them in bytes, which depend less on one another than the bits of a word. Columns may have been
   written to since they were counted: no more than that are stored. */
#define DEFINE_FILL(TYPE)                                                                                               \
    static void fill_##TYPE(const sparse_product_call* a, column_set* s, char* marks, TYPE* sums, int64_t first, int64_t last) { \
        typedef TYPE T;                                                                                                 \
        const T *left = (const T*)a->left_values, *right = (const T*)a->right_values;                                   \
        T* values = (T*)a->values;                                                                                      \
        for (int64_t i = first; i < last; i++) {                                                                        \
            const int64_t end = a->crow[i + 1];                                                                         \
            int64_t at = a->crow[i], found = 0;                                                                         \
            if (end - at > a->columns / 4) {                                                                            \
                EACH_PAIR(i, c, marks[c] = 1; sums[c] += v * right[m])                                                  \
                for (int64_t c = 0; c < a->columns; c++) {                                                              \
                    if (!marks[c]) continue;                                                                            \
                    if (at < end) a->col[at] = c, values[at++] = sums[c];                                               \
                    sums[c] = 0, marks[c] = 0, found++;                                                                 \
                }                                                                                                       \
            } else {                                                                                                    \
                EACH_PAIR(i, c, put(s, c); sums[c] += v * right[m])                                                     \
                EACH_COLUMN(s, c, if (at < end) a->col[at] = c, values[at++] = sums[c]; sums[c] = 0; found++)           \
            }                                                                                                           \
            if (found != end - a->crow[i]) __atomic_store_n((int*)&a->bad, 1, __ATOMIC_RELAXED);                        \
        }                                                                                                               \
    }

DEFINE_FILL(f32)
DEFINE_FILL(f64)
DEFINE_FILL(c64)
DEFINE_FILL(c128)
DEFINE_FILL(i64)

/* items: rows */
void ISA_NAME(sparse_product)(void* context, int64_t begin, int64_t end) {
    sparse_product_call* a = context;
    const size_t size = a->counting || a->dtype == DT_i64 || a->dtype == DT_f64 || a->dtype == DT_c64 ? 8 : a->dtype == DT_f32 ? 4 : 16;
    column_set set = {0};
    void* line = calloc((size_t)a->columns + 1, size + !a->counting);
    char* marks = line ? (char*)line + ((size_t)a->columns + 1) * size : NULL;
    if (!line || (!a->counting && !make_set(&set, a->columns))) __atomic_store_n(&a->failed, 1, __ATOMIC_RELAXED);
    else if (a->counting) count_rows(a, line, begin, end);
    else if (a->dtype == DT_f32) fill_f32(a, &set, marks, line, begin, end);
    else if (a->dtype == DT_f64) fill_f64(a, &set, marks, line, begin, end);
    else if (a->dtype == DT_c64) fill_c64(a, &set, marks, line, begin, end);
    else if (a->dtype == DT_c128) fill_c128(a, &set, marks, line, begin, end);
    else fill_i64(a, &set, marks, line, begin, end);
    free(line);
    free(set.bits);
}
