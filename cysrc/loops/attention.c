/* The tasks of attention.h. A task reads keys in blocks of KEYS, packed once for the many rows of queries that meet them,
   and computes scores of ROWS x KEYS that stay in L1: softmax runs along, rescaling what was summed when a larger score
   appears. Which thread takes a task changes nothing: each writes its own rows, in a fixed order. */
#include <stdlib.h>
#include "../core/transpose.h"
#include "kernel_base.h"
#include "gemm_tile.h"
#include "attention.h"

DEFINE_TILED_PRODUCT(float, f)

enum { ROWS = 64, KEYS = ATTENTION_KEYS, QUERIES = ATTENTION_QUERIES };

static const float* at(const attention_operand* x, int64_t batch, int64_t head, int64_t row) {
    return (const float*)x->data + batch * x->batch + head * x->head + row * x->row;
}
static float* to(const attention_operand* x, int64_t batch, int64_t head, int64_t row) { return (float*)at(x, batch, head, row); }

/* packed[e][j] = x[j][e] for n <= KEYS rows of x */
static void pack_transposed(const float* x, int64_t row, int64_t n, int64_t width, float* packed) {
    enum { SIDE = VECTOR_BYTES / 4 };
    int64_t whole_rows = n / SIDE * SIDE, whole_columns = width / SIDE * SIDE;
    for (int64_t e = 0; e < whole_columns; e += SIDE)
        for (int64_t j = 0; j < whole_rows; j += SIDE) transpose_words((const uint32_t*)(x + j * row + e), row, (uint32_t*)(packed + e * KEYS + j), KEYS);
    for (int64_t j = 0; j < n; j++)
        for (int64_t e = j < whole_rows ? whole_columns : 0; e < width; e++) packed[e * KEYS + j] = x[j * row + e];
}

/* half: what a mask adds is bfloat16 */
static void mask_scores(const attention_args* a, int64_t batch, int64_t head, int64_t i0, int64_t rows, int64_t j0, int64_t keys, int half, float* s) {
    if (a->causal && j0 + keys > i0 + 1)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = max_i64(0, i0 + r + 1 - j0); j < keys; j++) s[r * KEYS + j] = -INFINITY;
    if (a->mask_kind == ATTENTION_UNMASKED) return;
    int64_t first = batch * a->mask_batch + head * a->mask_head + i0 * a->mask_row + j0 * a->mask_column, step = a->mask_column;
    for (int64_t r = 0; r < rows; r++, first += a->mask_row) {
        float* row = s + r * KEYS;
        if (a->mask_kind == ATTENTION_ALLOWED) {
            const char* allowed = a->mask + first;
            for (int64_t j = 0; j < keys; j++) row[j] = allowed[j * step] ? row[j] : -INFINITY;
        } else if (half) {
            const bf16* added = (const bf16*)a->mask + first;
            for (int64_t j = 0; j < keys; j++) row[j] += ld_bf16(added[j * step]);
        } else {
            const float* added = (const float*)a->mask + first;
            for (int64_t j = 0; j < keys; j++) row[j] += added[j * step];
        }
    }
}

/* The scores of `rows` queries from i0 on and `keys` keys from j0 on, masked; s: rows of KEYS. */
static void masked_scores(const attention_args* a, int64_t batch, int64_t head, int64_t i0, int64_t rows, int64_t j0, int64_t keys,
                          const float* packed, float* s) {
    f_tiled(rows, keys, a->width, at(&a->q, batch, head, i0), a->q.row, 1, packed, KEYS, 1, s, KEYS, a->scale, 0);
    mask_scores(a, batch, head, i0, rows, j0, keys, 0, s);
}
/* Of `keys` keys from j0 on, those that any of the queries sees; none or less: nothing to do. */
static int64_t seen(const attention_args* a, int64_t i0, int64_t rows, int64_t j0, int64_t keys) { return a->causal ? min_i64(keys, i0 + rows - j0) : keys; }

/* One row of scores becomes exponentials; what was summed in `out` is rescaled to the new maximum. */
static void absorb_row(float* s, int64_t keys, float* max, float* sum, float* out, int64_t width) {
    float block = block_max_f32(s, keys), top = block > *max || block != block ? block : *max;
    if (top == -INFINITY) {
        memset(s, 0, sizeof(float) * keys);
        return;
    }
    float factor = *max == -INFINITY ? 0 : exp_below_zero_f32(*max - top);
    VECTORIZE for (int64_t j = 0; j < keys; j++) s[j] = exp_below_zero_f32(s[j] - top);
    *sum = *sum * factor + block_sum_f32(s, s, 0, keys);
    *max = top;
    if (factor != 1)
        for (int64_t e = 0; e < width; e++) out[e] *= factor;
}

static void forward(attention_args* a, int64_t begin, int64_t end) {
    float* packed = malloc(sizeof(float) * (a->width * KEYS + ROWS * KEYS));
    float *s = packed + a->width * KEYS, max[QUERIES], sum[QUERIES];
    int64_t blocks = (a->queries + QUERIES - 1) / QUERIES, group = a->heads / a->key_heads, width = a->value_width;
    if (!packed) {
        a->failed = 1;
        return;
    }
    for (int64_t task = begin; task < end; task++) {
        int64_t q0 = task % blocks * QUERIES, q1 = min_i64(q0 + QUERIES, a->queries), head = task / blocks % a->heads;
        int64_t batch = task / blocks / a->heads, key_head = head / group, visible = a->causal ? min_i64(a->keys, q1) : a->keys;
        for (int64_t i = q0; i < q1; i++) {
            max[i - q0] = -INFINITY, sum[i - q0] = 0;
            memset(to(&a->out, batch, head, i), 0, sizeof(float) * width);
        }
        for (int64_t j0 = 0; j0 < visible; j0 += KEYS) {
            int64_t block = min_i64(KEYS, visible - j0);
            pack_transposed(at(&a->k, batch, key_head, j0), a->k.row, block, a->width, packed);
            for (int64_t i0 = q0; i0 < q1; i0 += ROWS) {
                int64_t rows = min_i64(ROWS, q1 - i0), keys = seen(a, i0, rows, j0, block);
                if (keys <= 0) continue;
                masked_scores(a, batch, head, i0, rows, j0, keys, packed, s);
                for (int64_t r = 0; r < rows; r++)
                    absorb_row(s + r * KEYS, keys, max + i0 - q0 + r, sum + i0 - q0 + r, to(&a->out, batch, head, i0 + r), width);
                f_tiled(rows, width, keys, s, KEYS, 1, at(&a->v, batch, key_head, j0), a->v.row, 1, to(&a->out, batch, head, i0), a->out.row, 1, 1);
            }
        }
        for (int64_t i = q0; i < q1; i++) {
            float total = sum[i - q0], *out = to(&a->out, batch, head, i);
            for (int64_t e = 0; e < width; e++) out[e] = total == 0 ? 0 : out[e] / total;
            a->lse[(batch * a->heads + head) * a->queries + i] = total == 0 ? INFINITY : max[i - q0] + logf(total);
        }
    }
    free(packed);
}

/* Gradients of the queries q0..q1 of one head and the keys k0..k1 of its key head, added to what dq, dk, dv hold. With
   P = exp(scores - lse), D = rowsum(grad * out): dV = P' grad, dS = P * (grad V' - D), dQ = dS K, dK = dS' Q. */
static void add_gradients(const attention_args* a, int64_t batch, int64_t head, int64_t q0, int64_t q1, int64_t k0, int64_t k1, float* buffer) {
    float *packed_k = buffer, *packed_v = packed_k + a->width * KEYS, *p = packed_v + a->value_width * KEYS, *ds = p + ROWS * KEYS;
    int64_t key_head = head / (a->heads / a->key_heads);
    if (a->causal) k1 = min_i64(k1, q1);
    for (int64_t j0 = k0; j0 < k1; j0 += KEYS) {
        int64_t block = min_i64(KEYS, k1 - j0);
        const float* k = at(&a->k, batch, key_head, j0);
        pack_transposed(k, a->k.row, block, a->width, packed_k);
        pack_transposed(at(&a->v, batch, key_head, j0), a->v.row, block, a->value_width, packed_v);
        for (int64_t i0 = q0; i0 < q1; i0 += ROWS) {
            int64_t rows = min_i64(ROWS, q1 - i0), keys = seen(a, i0, rows, j0, block);
            if (keys <= 0) continue;
            const float *grad = at(&a->grad, batch, head, i0), *out = at(&a->out, batch, head, i0);
            const float* lse = a->lse + (batch * a->heads + head) * a->queries + i0;
            masked_scores(a, batch, head, i0, rows, j0, keys, packed_k, p);
            for (int64_t r = 0; r < rows; r++)
                VECTORIZE for (int64_t j = 0; j < keys; j++) p[r * KEYS + j] = exp_below_zero_f32(p[r * KEYS + j] - lse[r]);
            if (a->dv.data)
                f_tiled(keys, a->value_width, rows, p, 1, KEYS, grad, a->grad.row, 1, to(&a->dv, batch, key_head, j0), a->dv.row, 1, 1);
            if (!a->dq.data && !a->dk.data) continue;
            f_tiled(rows, keys, a->value_width, grad, a->grad.row, 1, packed_v, KEYS, 1, ds, KEYS, 1, 0);
            for (int64_t r = 0; r < rows; r++) {
                float mean = (float)row_dot_f32(grad + r * a->grad.row, out + r * a->out.row, a->value_width), scale = a->scale;
                float *x = ds + r * KEYS, *y = p + r * KEYS;
                VECTORIZE for (int64_t j = 0; j < keys; j++) x[j] = y[j] == 0 ? 0 : y[j] * (x[j] - mean) * scale;
            }
            if (a->dq.data) f_tiled(rows, a->width, keys, ds, KEYS, 1, k, a->k.row, 1, to(&a->dq, batch, head, i0), a->dq.row, 1, 1);
            if (a->dk.data)
                f_tiled(keys, a->width, rows, ds, 1, KEYS, at(&a->q, batch, head, i0), a->q.row, 1, to(&a->dk, batch, key_head, j0), a->dk.row, 1, 1);
        }
    }
}

static float* gradient_buffer(attention_args* a) {
    float* buffer = malloc(sizeof(float) * ((a->width + a->value_width) * KEYS + 2 * ROWS * KEYS));
    if (!buffer) a->failed = 1;
    return buffer;
}

static void backward(attention_args* a, int64_t begin, int64_t end) {
    int64_t group = a->heads / a->key_heads;
    float* buffer = gradient_buffer(a);
    for (int64_t task = begin; buffer && task < end; task++)
        for (int64_t head = task % a->key_heads * group, h = 0; h < group; h++)
            add_gradients(a, task / a->key_heads, head + h, 0, a->queries, 0, a->keys, buffer);
    free(buffer);
}

static void backward_keys(attention_args* whole, int64_t begin, int64_t end) {
    attention_args part = *whole, *a = &part;
    int64_t group = a->heads / a->key_heads, blocks = (a->keys + KEYS - 1) / KEYS;
    float* buffer = gradient_buffer(whole);
    part.dq.data = NULL;
    for (int64_t task = begin; buffer && task < end; task++) {
        int64_t k0 = task % blocks * KEYS, head = task / blocks % a->key_heads * group, batch = task / blocks / a->key_heads;
        for (int64_t h = 0; h < group; h++) add_gradients(a, batch, head + h, 0, a->queries, k0, min_i64(k0 + KEYS, a->keys), buffer);
    }
    free(buffer);
}

static void backward_queries(attention_args* whole, int64_t begin, int64_t end) {
    attention_args part = *whole, *a = &part;
    int64_t blocks = (a->queries + QUERIES - 1) / QUERIES;
    float* buffer = gradient_buffer(whole);
    part.dk.data = part.dv.data = NULL;
    for (int64_t task = begin; buffer && task < end; task++) {
        int64_t q0 = task % blocks * QUERIES, head = task / blocks;
        add_gradients(a, head / a->heads, head % a->heads, q0, min_i64(q0 + QUERIES, a->queries), 0, a->keys, buffer);
    }
    free(buffer);
}

#if VECTOR_BYTES == 64
#include "attention_tiles.h"
#else
#define forward_tiles NULL
#define backward_tiles NULL
#endif

const attention_kernels ISA_NAME(attention) = {forward, forward_tiles, backward_tiles, backward, backward_keys, backward_queries};
