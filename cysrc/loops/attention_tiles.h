/* Attention over heads of bfloat16 by AMX's tiles: attention.c includes this for instruction sets that can have them. Tiles read whole rows of 64
   bytes, so widths are multiples of TILE; the last rows of queries are copied and filled up. Weights and their gradients are rounded to bfloat16
   before they are multiplied, sums are float32. */
#include "gemm/pack.h"
#include "gemm/tiles.h"

/* What a task of forward_tiles works with: blocks of keys and values as panels of tiles, scores, weights, and the sums of its rows. */
typedef struct {
    char *keys, *values;          /* panels of 32 keys by the width, of 32 columns of values by the keys */
    float *scores, *sums;         /* (TILE, KEYS); (QUERIES, value_width) */
    bf16 *weights, *last;         /* (TILE, KEYS); the last rows of queries, filled up to a tile */
    float max[QUERIES], sum[QUERIES];
} tile_buffers;

enum { TILE = ATTENTION_TILE, STEP_BYTES = TILE_STEP * 2 * 64 };

static tile_buffers* make_tile_buffers(int64_t width, int64_t value_width) {
    const int64_t parts[] = {sizeof(tile_buffers), KEYS * width * 2, KEYS * value_width * 2, TILE * KEYS * 4, QUERIES * value_width * 4, TILE * KEYS * 2, TILE * width * 2};
    int64_t at[7], total = 0;
    for (int i = 0; i < 7; i++) at[i] = total, total += (parts[i] + 63) / 64 * 64;
    char* all = aligned_alloc(64, total);
    if (!all) return NULL;
    tile_buffers* b = (tile_buffers*)all;
    b->keys = all + at[1], b->values = all + at[2], b->scores = (float*)(all + at[3]), b->sums = (float*)(all + at[4]), b->weights = (bf16*)(all + at[5]), b->last = (bf16*)(all + at[6]);
    return b;
}

static const char* bf16_at(const attention_operand* x, int64_t batch, int64_t head, int64_t row) {
    return (const char*)x->data + 2 * (batch * x->batch + head * x->head + row * x->row);
}

/* `n` rows of x as panels of 32 of them by their width: what meets other rows. */
static void pack_as_columns(const char* x, int64_t row_bytes, int64_t n, int64_t width, char* to) {
    for (int64_t j = 0; j < n; j += TILE)
        pack_panel(LOAD_PAIR, 0, to + j / TILE * (width / TILE * STEP_BYTES), x + j * row_bytes, row_bytes, 2, min_i64(TILE, n - j), 0, TILE, width);
}

/* `n` rows of x as panels of 32 columns by the rows: what meets weights. Rows are filled up to `steps` whole tiles with zeros. */
static void pack_as_rows(const char* x, int64_t row_bytes, int64_t n, int64_t width, int64_t steps, char* to) {
    for (int64_t e = 0; e < width; e += TILE, to += steps * STEP_BYTES) {
        const int64_t units = (n + 1) / 2;
        pack_panel(LOAD_PAIR, 0, to, x + 2 * e, 2, row_bytes, TILE, 0, TILE, n);
        memset(to + units * 128, 0, steps * STEP_BYTES - units * 128);
    }
}

/* Rows that tiles may read as a whole one: x, or a copy of its `rows` rows in `filled`, whose others are zero. */
static const char* whole_tile(const char* x, int64_t* row_bytes, int64_t rows, int64_t width, bf16* filled) {
    if (rows == TILE) return x;
    for (int64_t r = 0; r < rows; r++) memcpy(filled + r * width, x + r * *row_bytes, width * 2);
    *row_bytes = width * 2;
    return (const char*)filled;
}

/* The weights of up to TILE queries for a block of keys, after what they have seen before: b->weights, and the rows' sums rescaled. */
TILES_TARGET static void weigh_keys(const attention_args* a, int64_t batch, int64_t head, int64_t i0, int64_t rows, int64_t j0, int64_t keys, int64_t done, tile_buffers* b) {
    const int64_t whole = (keys + TILE - 1) / TILE * TILE;
    for (int64_t r = 0; r < rows; r++)
        VECTORIZE for (int64_t j = 0; j < keys; j++) b->scores[r * KEYS + j] *= a->scale;
    mask_scores(a, batch, head, i0, rows, j0, keys, 1, b->scores);
    for (int64_t r = 0; r < rows; r++) {
        float* s = b->scores + r * KEYS;
        absorb_row(s, keys, b->max + done + r, b->sum + done + r, b->sums + (done + r) * a->value_width, a->value_width);
        for (int64_t j = keys; j < whole; j++) s[j] = 0;
        for (int64_t j = 0; j < whole; j += TILE) store_bf16_row((char*)(b->weights + r * KEYS + j), *(const vf32*)(s + j), *(const vf32*)(s + j + 16), 1);
    }
}

TILES_TARGET static void forward_tiles(attention_args* a, int64_t begin, int64_t end) {
    const int64_t blocks = (a->queries + QUERIES - 1) / QUERIES, group = a->heads / a->key_heads, width = a->value_width;
    tile_buffers* b = make_tile_buffers(a->width, width);
    if (!b) {
        a->failed = 1;
        return;
    }
    memset(b->weights, 0, TILE * KEYS * 2);
    memset(b->last, 0, TILE * a->width * 2);
    tiles_begin();
    for (int64_t task = begin; task < end; task++) {
        const int64_t q0 = task % blocks * QUERIES, q1 = min_i64(q0 + QUERIES, a->queries), head = task / blocks % a->heads;
        const int64_t batch = task / blocks / a->heads, key_head = head / group, visible = a->causal ? min_i64(a->keys, q1) : a->keys;
        for (int64_t i = 0; i < q1 - q0; i++) b->max[i] = -INFINITY, b->sum[i] = 0;
        memset(b->sums, 0, sizeof(float) * (q1 - q0) * width);
        for (int64_t j0 = 0; j0 < visible; j0 += KEYS) {
            const int64_t keys = min_i64(KEYS, visible - j0), steps = (keys + TILE - 1) / TILE;
            pack_as_columns(bf16_at(&a->k, batch, key_head, j0), a->k.row * 2, keys, a->width, b->keys);
            pack_as_rows(bf16_at(&a->v, batch, key_head, j0), a->v.row * 2, keys, width, steps, b->values);
            for (int64_t i0 = q0; i0 < q1; i0 += TILE) {
                const int64_t rows = min_i64(TILE, q1 - i0);
                if (seen(a, i0, rows, j0, 1) <= 0) continue;
                int64_t q_row = a->q.row * 2;
                const char* q = whole_tile(bf16_at(&a->q, batch, head, i0), &q_row, rows, a->width, b->last);
                for (int64_t j = 0; j < steps; j++)
                    tile_sums(q, q_row, 64, b->keys + j * (a->width / TILE * STEP_BYTES), a->width / TILE, (char*)(b->scores + j * TILE), KEYS * 4, 1, 1, 0);
                weigh_keys(a, batch, head, i0, rows, j0, keys, i0 - q0, b);
                for (int64_t e = 0; e < width; e += TILE)
                    tile_sums((const char*)b->weights, KEYS * 2, 64, b->values + e / TILE * steps * STEP_BYTES, steps, (char*)(b->sums + (i0 - q0) * width + e), width * 4, 1, 1, 1);
            }
        }
        for (int64_t i = q0; i < q1; i++) {
            const float total = b->sum[i - q0], *from = b->sums + (i - q0) * width;
            char* out = (char*)bf16_at(&a->out, batch, head, i);
            const vf32 factor = (vf32){0} + (total == 0 ? 0 : 1 / total);
            for (int64_t e = 0; e < width; e += TILE) store_bf16_row(out + 2 * e, *(const vf32*)(from + e) * factor, *(const vf32*)(from + e + 16) * factor, 1);
            a->lse[(batch * a->heads + head) * a->queries + i] = total == 0 ? INFINITY : b->max[i - q0] + logf(total);
        }
    }
    tiles_end();
    free(b);
}

/* ---- backward ---- */

/* What a task of backward_tiles works with. Of one head: queries and gradients as panels that weights meet, rowsum(grad * out), sums of dQ; of one block of
   keys: keys and values as panels, sums of dK and dV; of one tile of queries: weights and the gradient of the scores, as they are and transposed. */
typedef struct {
    char *q_rows, *grad_rows, *k_columns, *v_columns, *k_rows;
    float *mean, *dq, *dk, *dv, *p, *ds;
    float (*turned)[TILE];
    bf16 *weights, *last_q, *last_grad;
} gradient_buffers;

static char* make_gradient_buffers(const attention_args* a, gradient_buffers* b) {
    const int64_t queries = (a->queries + TILE - 1) / TILE * TILE, group = a->heads / a->key_heads, block = TILE * KEYS;
    struct { void** to; int64_t bytes; } parts[] = {
        {(void**)&b->q_rows, queries * a->width * 2}, {(void**)&b->grad_rows, queries * a->value_width * 2}, {(void**)&b->k_columns, KEYS * a->width * 2},
        {(void**)&b->v_columns, KEYS * a->value_width * 2}, {(void**)&b->k_rows, KEYS * a->width * 2}, {(void**)&b->mean, queries * 4}, {(void**)&b->dq, group * queries * a->width * 4},
        {(void**)&b->dk, KEYS * a->width * 4}, {(void**)&b->dv, KEYS * a->value_width * 4}, {(void**)&b->p, block * 4}, {(void**)&b->ds, block * 4}, {(void**)&b->turned, block * 4},
        {(void**)&b->weights, block * 2}, {(void**)&b->last_q, TILE * a->width * 2}, {(void**)&b->last_grad, TILE * a->value_width * 2},
    };
    const int count = sizeof parts / sizeof parts[0];
    int64_t total = 0;
    for (int i = 0; i < count; i++) total += (parts[i].bytes + 63) / 64 * 64;
    char* all = aligned_alloc(64, total);
    if (!all) return NULL;
    char* at = all;
    for (int i = 0; i < count; i++) *parts[i].to = at, at += (parts[i].bytes + 63) / 64 * 64;
    return all;
}

/* Weights of (TILE, KEYS), of which whole tiles of keys are there, as bfloat16: as they are, or rows of keys by TILE queries. */
TILES_TARGET static void round_weights(const float* x, int64_t keys, bf16* to) {
    for (int64_t r = 0; r < TILE; r++)
        for (int64_t j = 0; j < keys; j += TILE) store_bf16_row((char*)(to + r * KEYS + j), *(const vf32*)(x + r * KEYS + j), *(const vf32*)(x + r * KEYS + j + 16), 1);
}
TILES_TARGET static void round_transposed(const float* x, int64_t keys, float (*turned)[TILE], bf16* to) {
    for (int64_t r = 0; r < TILE; r += 16)
        for (int64_t j = 0; j < keys; j += 16) transpose_units_4((const uint32_t*)(x + r * KEYS + j), KEYS, (uint32_t*)(turned[j] + r), TILE, 16);
    for (int64_t j = 0; j < keys; j++) store_bf16_row((char*)(to + j * TILE), *(const vf32*)turned[j], *(const vf32*)(turned[j] + 16), 1);
}

/* sums (rows, width) += weights (rows, 32 steps) by panels of rows; rows is a multiple of TILE. */
static void add_weighted(const bf16* weights, int64_t weights_row, int64_t rows, int64_t steps, const char* panels, int64_t panel_bytes, int64_t width, float* sums) {
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t e = 0; e < width; e += TILE)
            tile_sums((const char*)(weights + r * weights_row), weights_row * 2, 64, panels + e / TILE * panel_bytes, steps, (char*)(sums + r * width + e), width * 4, 1, 1, 1);
}

/* One tile of queries and one block of keys. P = exp(scores - lse), dS = P * (grad V' - mean); dV += P' grad, dQ += dS K, dK += dS' Q. */
TILES_TARGET static void add_tile_gradients(const attention_args* a, int64_t batch, int64_t head, int64_t i0, int64_t rows, int64_t j0, int64_t keys, float* dq, gradient_buffers* b) {
    const int64_t whole = (keys + TILE - 1) / TILE * TILE, query_steps = (a->queries + TILE - 1) / TILE, tile = i0 / TILE;
    int64_t q_row = a->q.row * 2, grad_row = a->grad.row * 2;
    const char *q = whole_tile(bf16_at(&a->q, batch, head, i0), &q_row, rows, a->width, b->last_q), *grad = whole_tile(bf16_at(&a->grad, batch, head, i0), &grad_row, rows, a->value_width, b->last_grad);
    const float* lse = a->lse + (batch * a->heads + head) * a->queries + i0;
    for (int64_t j = 0; j < whole; j += TILE) tile_sums(q, q_row, 64, b->k_columns + j / TILE * (a->width / TILE * STEP_BYTES), a->width / TILE, (char*)(b->p + j), KEYS * 4, 1, 1, 0);
    for (int64_t r = 0; r < rows; r++)
        VECTORIZE for (int64_t j = 0; j < keys; j++) b->p[r * KEYS + j] *= a->scale;
    mask_scores(a, batch, head, i0, rows, j0, keys, 1, b->p);
    for (int64_t r = 0; r < rows; r++) {
        float* p = b->p + r * KEYS;
        VECTORIZE for (int64_t j = 0; j < keys; j++) p[j] = exp_below_zero_f32(p[j] - lse[r]);
        for (int64_t j = keys; j < whole; j++) p[j] = 0;
    }
    for (int64_t r = rows; r < TILE; r++) memset(b->p + r * KEYS, 0, whole * 4);
    if (a->dv.data) {
        round_transposed(b->p, whole, b->turned, b->weights);
        add_weighted(b->weights, TILE, whole, 1, b->grad_rows + tile * STEP_BYTES, query_steps * STEP_BYTES, a->value_width, b->dv);
    }
    if (!a->dq.data && !a->dk.data) return;
    for (int64_t j = 0; j < whole; j += TILE)
        tile_sums(grad, grad_row, 64, b->v_columns + j / TILE * (a->value_width / TILE * STEP_BYTES), a->value_width / TILE, (char*)(b->ds + j), KEYS * 4, 1, 1, 0);
    for (int64_t r = 0; r < TILE; r++) {
        float *x = b->ds + r * KEYS, *y = b->p + r * KEYS;
        const float mean = r < rows ? b->mean[i0 + r] : 0, scale = a->scale;
        VECTORIZE for (int64_t j = 0; j < whole; j++) x[j] = y[j] == 0 ? 0 : y[j] * (x[j] - mean) * scale;
    }
    if (a->dq.data) {
        round_weights(b->ds, whole, b->weights);
        add_weighted(b->weights, KEYS, TILE, whole / TILE, b->k_rows, whole / TILE * STEP_BYTES, a->width, dq);
    }
    if (a->dk.data) {
        round_transposed(b->ds, whole, b->turned, b->weights);
        add_weighted(b->weights, TILE, whole, 1, b->q_rows + tile * STEP_BYTES, query_steps * STEP_BYTES, a->width, b->dk);
    }
}

TILES_TARGET static void store_sums(const attention_operand* to, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t width, const float* sums) {
    if (!to->data) return;
    for (int64_t r = 0; r < rows; r++) {
        char* out = (char*)bf16_at(to, batch, head, first + r);
        for (int64_t e = 0; e < width; e += TILE) store_bf16_row(out + 2 * e, *(const vf32*)(sums + r * width + e), *(const vf32*)(sums + r * width + e + 16), 1);
    }
}

static float row_mean(const bf16* grad, const bf16* out, int64_t width) {
    vf32 sum = {0};
    for (int64_t e = 0; e < width; e += 16) sum = FMA(widen_bf16((const char*)(grad + e)), widen_bf16((const char*)(out + e)), sum);
    float total = 0;
    for (int i = 0; i < 16; i++) total += sum[i];
    return total;
}

static void backward_tiles(attention_args* a, int64_t begin, int64_t end) {
    const int64_t group = a->heads / a->key_heads, queries = (a->queries + TILE - 1) / TILE * TILE;
    gradient_buffers buffers, *b = &buffers;
    char* memory = make_gradient_buffers(a, b);
    if (!memory) {
        a->failed = 1;
        return;
    }
    memset(b->last_q, 0, TILE * a->width * 2);
    memset(b->last_grad, 0, TILE * a->value_width * 2);
    tiles_begin();
    for (int64_t task = begin; task < end; task++) {
        const int64_t batch = task / a->key_heads, key_head = task % a->key_heads;
        memset(b->dq, 0, group * queries * a->width * 4);
        for (int64_t j0 = 0; j0 < a->keys; j0 += KEYS) {
            const int64_t keys = min_i64(KEYS, a->keys - j0), steps = (keys + TILE - 1) / TILE;
            pack_as_columns(bf16_at(&a->k, batch, key_head, j0), a->k.row * 2, keys, a->width, b->k_columns);
            pack_as_columns(bf16_at(&a->v, batch, key_head, j0), a->v.row * 2, keys, a->value_width, b->v_columns);
            pack_as_rows(bf16_at(&a->k, batch, key_head, j0), a->k.row * 2, keys, a->width, steps, b->k_rows);
            memset(b->dk, 0, KEYS * a->width * 4);
            memset(b->dv, 0, KEYS * a->value_width * 4);
            for (int64_t head = key_head * group; head < (key_head + 1) * group; head++) {
                if (j0 == 0 || group > 1) { /* of a head alone they serve all blocks of keys */
                    pack_as_rows(bf16_at(&a->q, batch, head, 0), a->q.row * 2, a->queries, a->width, queries / TILE, b->q_rows);
                    pack_as_rows(bf16_at(&a->grad, batch, head, 0), a->grad.row * 2, a->queries, a->value_width, queries / TILE, b->grad_rows);
                    for (int64_t i = 0; i < a->queries; i++)
                        b->mean[i] = row_mean((const bf16*)bf16_at(&a->grad, batch, head, i), (const bf16*)bf16_at(&a->out, batch, head, i), a->value_width);
                }
                for (int64_t i0 = 0; i0 < a->queries; i0 += TILE) {
                    const int64_t rows = min_i64(TILE, a->queries - i0);
                    if (seen(a, i0, rows, j0, 1) > 0) add_tile_gradients(a, batch, head, i0, rows, j0, keys, b->dq + ((head - key_head * group) * queries + i0) * a->width, b);
                }
            }
            store_sums(&a->dk, batch, key_head, j0, keys, a->width, b->dk);
            store_sums(&a->dv, batch, key_head, j0, keys, a->value_width, b->dv);
        }
        for (int64_t h = 0; h < group; h++) store_sums(&a->dq, batch, key_head * group + h, 0, a->queries, a->width, b->dq + h * queries * a->width);
    }
    tiles_end();
    free(memory);
}
