/* Two sparse matrices of one size in compressed rows, whose entries are in order: which they have together, or where each goes in their sum. One pass, in one thread:
 * it costs less than the scattered copies that follow it.
 * Instruction sets: base (comparisons that depend on one another). */
/* Measured: sparse + sparse; sparse * sparse */
#include "kernel_base.h"
#include "sparse_steps.h"

static int ascends(const int64_t* col, int64_t begin, int64_t end) {
    int64_t wrong = 0;
    for (int64_t k = begin + 1; k < end; k++) wrong |= col[k] <= col[k - 1];
    return !wrong;
}

/* One load serves both comparisons: another thread may write to the index meanwhile. */
static inline int64_t column_of(const int64_t* entry) {
    int64_t c = *entry;
    __asm__("" : "+r"(c));
    return c;
}

/* Whether the entries of row i are in order; if so, it is merged, and `count` grows by its entries. */
static int merge_row(sparse_merge_call* a, int64_t i) {
    int64_t l = a->left_crow[i], r = a->right_crow[i], at = a->count;
    const int64_t left_end = a->left_crow[i + 1], right_end = a->right_crow[i + 1];
    if (!ascends(a->left_col, l, left_end) || !ascends(a->right_col, r, right_end)) return 0;
    while (l < left_end && r < right_end) {
        const int64_t x = column_of(a->left_col + l), y = column_of(a->right_col + r);
        if (a->common) a->left[at] = l, a->right[at] = r; /* the last one written stays */
        else a->left[l] = at, a->right[r] = at;
        at += a->common ? x == y : 1;
        l += x <= y;
        r += y <= x;
    }
    if (!a->common) {
        while (l < left_end) a->left[l++] = at++;
        while (r < right_end) a->right[r++] = at++;
    }
    a->crow[i + 1] = a->count = at;
    return 1;
}

/* Whether all rows are in order. */
int ISA_NAME(sparse_merge)(sparse_merge_call* a) {
    a->crow[0] = a->count = 0;
    for (int64_t i = 0; i < a->rows; i++)
        if (!merge_row(a, i)) return 0;
    return 1;
}
