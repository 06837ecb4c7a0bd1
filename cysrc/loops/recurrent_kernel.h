/* The loops of recurrent.c for one element type T (f32 or f64). */
#ifndef RECURRENT_KERNEL_H
#define RECURRENT_KERNEL_H
#define JOIN_NAMES(a, b) a##b
#define JOIN_EXPANDED(a, b) JOIN_NAMES(a, b)
#define FN(name) JOIN_EXPANDED(JOIN_EXPANDED(name, _), T)
#define VECTOR JOIN_EXPANDED(v, T)
#define VECTOR_U JOIN_EXPANDED(JOIN_EXPANDED(v, T), _u)
#define f32_of(name) name##_f32
#define f64_of(name) name##_f64

#if defined(__AVX512F__)
enum { TALL_ROWS = 8, WIDE_ROWS = 6 }; /* rows of a tile of three vectors and of four: what 32 registers hold */
#else
enum { TALL_ROWS = 4, WIDE_ROWS = 3 };
#endif
enum { TILE_ROWS = 8 };

KERNEL_INLINE int64_t rows_at(const recurrent_layer* l, int64_t step) { return l->sizes ? l->sizes[step] : l->batch; }
KERNEL_INLINE int64_t offset_at(const recurrent_layer* l, int64_t step) { return l->sizes ? l->offsets[step] : step * l->batch; }

/* One step of the recurrence: its rows of a task, and where their state before it lies. */
typedef struct {
    int64_t begin, end;       /* sequences */
    int64_t first;            /* row of sequence 0 in what lies by steps */
    int64_t continued;        /* sequences before this one have their state at `before`, others begin here */
    int64_t before;
} recurrent_place;

KERNEL_INLINE recurrent_place place_of_step(const recurrent_layer* l, int64_t s, int64_t begin, int64_t end) {
    int64_t step = l->reverse ? l->steps - 1 - s : s, last = l->reverse ? step + 1 : step - 1;
    recurrent_place p = {begin, min_i64(end, rows_at(l, step)), offset_at(l, step), 0, 0};
    if (s > 0) {
        p.continued = rows_at(l, last);
        p.before = offset_at(l, last);
    }
    return p;
}
#endif

enum { FN(WIDTH) = VECTOR_BYTES / sizeof(T) };
#define W FN(WIDTH)

/* sums[r][v] = row r of A (its last row again beyond `rows`) times the panel b of V vectors a term. R and V are constants where inlined. */
KERNEL_INLINE void FN(tile_body)(const T* a, int64_t a_row, int64_t rows, const T* b, int64_t depth, T* sums, const int R, const int V) {
    VECTOR sum[TILE_ROWS][RECURRENT_COLUMNS];
    const T* row[TILE_ROWS];
    UNROLL for (int r = 0; r < R; r++) {
        row[r] = a + min_i64(r, rows - 1) * a_row;
        UNROLL for (int v = 0; v < V; v++) sum[r][v] = (VECTOR){0};
    }
    for (int64_t k = 0; k < depth; k++, b += V * W) {
        VECTOR term[RECURRENT_COLUMNS];
        UNROLL for (int v = 0; v < V; v++) term[v] = *(const VECTOR_U*)(b + v * W);
        UNROLL for (int r = 0; r < R; r++) {
            VECTOR x = FN(splat)(row[r][k]);
            UNROLL for (int v = 0; v < V; v++) sum[r][v] = FMA(x, term[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) *(VECTOR_U*)(sums + (r * V + v) * W) = sum[r][v];
}

KERNEL_ONCE void FN(wide_tile)(const T* a, int64_t a_row, int64_t rows, const T* b, int64_t depth, T* sums) {
    if (WIDE_ROWS > 5 && rows > 5) FN(tile_body)(a, a_row, rows, b, depth, sums, WIDE_ROWS, 4);
    else if (WIDE_ROWS > 4 && rows > 4) FN(tile_body)(a, a_row, rows, b, depth, sums, 5, 4);
    else if (WIDE_ROWS > 3 && rows > 3) FN(tile_body)(a, a_row, rows, b, depth, sums, 4, 4);
    else if (rows > 2) FN(tile_body)(a, a_row, rows, b, depth, sums, 3, 4);
    else if (rows > 1) FN(tile_body)(a, a_row, rows, b, depth, sums, 2, 4);
    else FN(tile_body)(a, a_row, rows, b, depth, sums, 1, 4);
}

KERNEL_ONCE void FN(tall_tile)(const T* a, int64_t a_row, int64_t rows, const T* b, int64_t depth, T* sums) {
    if (TALL_ROWS > 4 && rows > 4) FN(tile_body)(a, a_row, rows, b, depth, sums, TALL_ROWS, 3);
    else if (rows > 2) FN(tile_body)(a, a_row, rows, b, depth, sums, 4, 3);
    else if (rows > 1) FN(tile_body)(a, a_row, rows, b, depth, sums, 2, 3);
    else FN(tile_body)(a, a_row, rows, b, depth, sums, 1, 3);
}

/* Rows of the next tile of `rows`: even ones rather than full ones and a rest. */
KERNEL_INLINE int64_t FN(tile_rows)(int64_t rows, int64_t most) {
    int64_t tiles = (rows + most - 1) / most;
    return (rows + tiles - 1) / tiles;
}

/* out (rows, columns) = A times packed panels, or plus what is there. */
static void FN(product)(const T* a, int64_t a_row, int64_t rows, const T* packed, int64_t depth, int64_t columns, T* out, int64_t out_row, int add) {
    T sums[TILE_ROWS * 4 * W];
    for (int64_t j = 0; j < columns; j += 4 * W, packed += depth * 4 * W) {
        int64_t n = min_i64(4 * W, columns - j);
        for (int64_t r = 0, count; r < rows; r += count) {
            count = FN(tile_rows)(rows - r, WIDE_ROWS);
            FN(wide_tile)(a + r * a_row, a_row, count, packed, depth, sums);
            for (int64_t i = 0; i < count; i++) {
                T* to = out + (r + i) * out_row + j;
                const T* from = sums + i * 4 * W;
                if (add) { VECTORIZE for (int64_t x = 0; x < n; x++) to[x] += from[x]; }
                else memcpy(to, from, n * sizeof(T));
            }
        }
    }
}

/* ---- forward: n hidden units of one row, whose sums come by vectors ---- */

#ifndef IN_LANES
KERNEL_INLINE void FN(lstm_units)(const T* restrict sums, T* restrict gates, int64_t hidden, const T* restrict before, T* restrict cell, T* restrict out, int64_t n) {
    VECTORIZE for (int64_t j = 0; j < n; j++) {
        T i = FN(sigmoid)(gates[j] + sums[j]), f = FN(sigmoid)(gates[hidden + j] + sums[W + j]);
        T g = FN(tanh)(gates[2 * hidden + j] + sums[2 * W + j]), o = FN(sigmoid)(gates[3 * hidden + j] + sums[3 * W + j]);
        T c = f * before[j] + i * g;
        gates[j] = i;
        gates[hidden + j] = f;
        gates[2 * hidden + j] = g;
        gates[3 * hidden + j] = o;
        cell[j] = c;
        out[j] = o * FN(tanh)(c);
    }
}

/* gates: reset, update, new, and what the hidden state adds to new */
KERNEL_INLINE void FN(gru_units)(const T* restrict sums, T* restrict gates, int64_t hidden, const T* restrict addend, const T* restrict before, T* restrict out, int64_t n) {
    VECTORIZE for (int64_t j = 0; j < n; j++) {
        T r = FN(sigmoid)(gates[j] + (sums[j] + addend[j])), z = FN(sigmoid)(gates[hidden + j] + (sums[W + j] + addend[hidden + j]));
        T h = sums[2 * W + j] + addend[2 * hidden + j], x = FN(tanh)(gates[2 * hidden + j] + r * h);
        gates[j] = r;
        gates[hidden + j] = z;
        gates[2 * hidden + j] = x;
        gates[3 * hidden + j] = h;
        out[j] = (before[j] - x) * z + x;
    }
}

KERNEL_INLINE void FN(tanh_units)(const T* restrict sums, T* restrict out, int64_t n) {
    VECTORIZE for (int64_t j = 0; j < n; j++) out[j] = FN(tanh)(out[j] + sums[j]);
}
#endif

KERNEL_INLINE void FN(relu_units)(const T* restrict sums, T* restrict out, int64_t n) {
    VECTORIZE for (int64_t j = 0; j < n; j++) {
        T x = out[j] + sums[j];
        out[j] = x < 0 ? 0 : x;
    }
}

/* The step's state h of sequence r before it. */
KERNEL_INLINE const T* FN(state_before)(const recurrent_place* p, const char* by_steps, const char* initial, int64_t r, int64_t row) {
    return r < p->continued ? (const T*)by_steps + (p->before + r) * row : (const T*)initial + r * row;
}

KERNEL_INLINE void FN(activate)(const recurrent_run* run, const recurrent_place* p, int64_t r, int64_t j, int64_t n, const T* sums) {
    const recurrent_layer* l = run->layer;
    const recurrent_loops* a = &run->a;
    int64_t hidden = l->hidden, at = p->first + r;
    T* gates = (T*)a->reserve + at * a->gates_row + j;
    T* out = (T*)(a->unprojected ? a->unprojected : a->out) + at * (a->unprojected ? l->reserve_row : l->width) + j;
    switch (l->mode) {
    case RECURRENT_LSTM: {
        const T* before = r < p->continued ? (const T*)a->cells + (p->before + r) * l->reserve_row : (const T*)a->c0 + r * hidden;
        T* cell = (T*)a->cells + at * l->reserve_row + j;
        if (n == W) FN(lstm_units)(sums, gates, hidden, before + j, cell, out, W);
        else FN(lstm_units)(sums, gates, hidden, before + j, cell, out, n);
        return;
    }
    case RECURRENT_GRU: {
        const T *before = FN(state_before)(p, a->out, a->h0, r, l->width) + j, *addend = (const T*)a->addend + r * a->addend_row + j;
        if (n == W) FN(gru_units)(sums, gates, hidden, addend, before, out, W);
        else FN(gru_units)(sums, gates, hidden, addend, before, out, n);
        return;
    }
    case RECURRENT_TANH: FN(tanh_units)(sums, out, n); return;
    default: FN(relu_units)(sums, out, n);
    }
}

static void FN(forward)(void* context, int64_t begin, int64_t end) {
    const recurrent_run* run = context;
    const recurrent_layer* l = run->layer;
    const recurrent_loops* a = &run->a;
    const int gated = l->mode == RECURRENT_LSTM || l->mode == RECURRENT_GRU, vectors = l->mode == RECURRENT_GRU ? 3 : 4;
    const int64_t span = gated ? W : 4 * W, most = vectors == 3 ? TALL_ROWS : WIDE_ROWS, depth = a->weight ? l->width : 0;
    T sums[TILE_ROWS * 4 * W];
    for (int64_t s = 0; s < l->steps; s++) {
        recurrent_place p = place_of_step(l, s, begin, end);
        if (p.end <= p.begin) continue;
        const T* panel = (const T*)a->weight;
        for (int64_t j = 0; j < l->hidden; j += span, panel += depth * vectors * W) {
            for (int64_t r = p.begin, count; r < p.end; r += count) {
                int64_t joined = r < p.continued ? min_i64(p.continued, p.end) : p.end;
                count = FN(tile_rows)(joined - r, most);
                const T* h = FN(state_before)(&p, a->out, a->h0, r, l->width);
                if (vectors == 3) FN(tall_tile)(h, l->width, count, panel, depth, sums);
                else FN(wide_tile)(h, l->width, count, panel, depth, sums);
                for (int64_t i = 0; i < count; i++) FN(activate)(run, &p, r + i, j, min_i64(span, l->hidden - j), sums + i * vectors * W);
            }
        }
        if (a->projection)
            FN(product)((const T*)a->unprojected + (p.first + p.begin) * l->reserve_row, l->reserve_row, p.end - p.begin, (const T*)a->projection, l->hidden,
                        l->width, (T*)a->out + (p.first + p.begin) * l->width, l->width, 0);
    }
}

/* ---- backward: one row; dh is the gradient of its state h ---- */

#ifndef IN_LANES
KERNEL_INLINE void FN(lstm_gradients)(const T* restrict gates, int64_t hidden, const T* restrict cell, const T* restrict before, const T* restrict dh,
                                      T* restrict dc, T* restrict dgates) {
    VECTORIZE for (int64_t j = 0; j < hidden; j++) {
        T i = gates[j], f = gates[hidden + j], g = gates[2 * hidden + j], o = gates[3 * hidden + j], t = FN(tanh)(cell[j]), d = dh[j];
        T of_cell = dc[j] + d * o * (1 - t * t);
        dc[j] = of_cell * f;
        dgates[j] = of_cell * g * (i * (1 - i));
        dgates[hidden + j] = of_cell * before[j] * (f * (1 - f));
        dgates[2 * hidden + j] = of_cell * i * (1 - g * g);
        dgates[3 * hidden + j] = d * t * (o * (1 - o));
    }
}
#endif

/* dh becomes what goes past the gates */
KERNEL_INLINE void FN(gru_gradients)(const T* restrict gates, int64_t hidden, const T* restrict before, T* restrict dh, T* restrict dgates, T* restrict dhidden) {
    VECTORIZE for (int64_t j = 0; j < hidden; j++) {
        T r = gates[j], z = gates[hidden + j], x = gates[2 * hidden + j], h = gates[3 * hidden + j], d = dh[j];
        T of_new = d * (1 - z) * (1 - x * x), of_reset = of_new * h * (r * (1 - r)), of_update = d * (before[j] - x) * (z * (1 - z));
        dh[j] = d * z;
        dgates[j] = dhidden[j] = of_reset;
        dgates[hidden + j] = dhidden[hidden + j] = of_update;
        dgates[2 * hidden + j] = of_new;
        dhidden[2 * hidden + j] = of_new * r;
    }
}

KERNEL_INLINE void FN(tanh_gradients)(const T* restrict out, int64_t hidden, const T* restrict dh, T* restrict dgates) {
    VECTORIZE for (int64_t j = 0; j < hidden; j++) dgates[j] = dh[j] * (1 - out[j] * out[j]);
}

KERNEL_INLINE void FN(relu_gradients)(const T* restrict out, int64_t hidden, const T* restrict dh, T* restrict dgates) {
    VECTORIZE for (int64_t j = 0; j < hidden; j++) dgates[j] = out[j] <= 0 ? 0 : dh[j];
}

static void FN(row_gradients)(const recurrent_run* run, const recurrent_place* p, int64_t r) {
    const recurrent_layer* l = run->layer;
    const recurrent_loops* a = &run->a;
    int64_t hidden = l->hidden, at = p->first + r;
    const T* gates = (const T*)a->reserve + at * a->gates_row;
    T* dh = a->projection ? (T*)a->scratch + r * hidden : (T*)a->dh + r * hidden;
    switch (l->mode) {
    case RECURRENT_LSTM: {
        const T* before = r < p->continued ? (const T*)a->cells + (p->before + r) * l->reserve_row : (const T*)a->c0 + r * hidden;
        FN(lstm_gradients)(gates, hidden, (const T*)a->cells + at * l->reserve_row, before, dh, (T*)a->dc + r * hidden, (T*)a->dgates + at * 4 * hidden);
        return;
    }
    case RECURRENT_GRU:
        FN(gru_gradients)(gates, hidden, FN(state_before)(p, a->out, a->h0, r, hidden), dh, (T*)a->dgates + at * 3 * hidden, (T*)a->dhidden + at * 3 * hidden);
        return;
    case RECURRENT_TANH: FN(tanh_gradients)((const T*)a->out + at * hidden, hidden, dh, (T*)a->dgates + at * hidden); return;
    default: FN(relu_gradients)((const T*)a->out + at * hidden, hidden, dh, (T*)a->dgates + at * hidden);
    }
}

static void FN(backward)(void* context, int64_t begin, int64_t end) {
    const recurrent_run* run = context;
    const recurrent_layer* l = run->layer;
    const recurrent_loops* a = &run->a;
    const int64_t width = l->width, depth = (l->mode == RECURRENT_LSTM ? 4 : l->mode == RECURRENT_GRU ? 3 : 1) * l->hidden;
    for (int64_t s = l->steps - 1; s >= 0; s--) {
        recurrent_place p = place_of_step(l, s, begin, end);
        int64_t rows = p.end - p.begin, first = p.first + p.begin;
        T* dh = (T*)a->dh + p.begin * width;
        if (rows <= 0) continue;
        if (a->grad) {
            const T* grad = (const T*)a->grad + first * width;
            VECTORIZE for (int64_t x = 0; x < rows * width; x++) dh[x] += grad[x];
        }
        if (a->projection) {
            memcpy((T*)a->dstate + first * width, dh, rows * width * sizeof(T));
            FN(product)(dh, width, rows, (const T*)a->projection, width, l->hidden, (T*)a->scratch + p.begin * l->hidden, l->hidden, 0);
        }
        for (int64_t r = p.begin; r < p.end; r++) FN(row_gradients)(run, &p, r);
        if (a->weight)
            FN(product)((const T*)a->dhidden + first * depth, depth, rows, (const T*)a->weight, depth, width, dh, width, l->mode == RECURRENT_GRU);
    }
}

/* ---- packing ---- */

static void FN(pack_rows)(void* context, int64_t begin, int64_t end) {
    const recurrent_pack* k = context;
    const T* source = (const T*)k->source;
    int64_t step = k->vectors * W;
    for (int64_t p = begin; p < end; p++) {
        T* panel = (T*)k->packed + p * k->depth * step;
        for (int64_t v = 0; v < k->vectors; v++) {
            int64_t unit = k->gated ? p * W : (p * k->vectors + v) * W, row = (k->gated ? v * k->count : 0) + unit, n = max_i64(0, min_i64(W, k->count - unit));
            for (int64_t d0 = 0; d0 < k->depth; d0 += 16) {
                int64_t d1 = min_i64(d0 + 16, k->depth);
                for (int64_t i = 0; i < n; i++)
                    for (int64_t d = d0; d < d1; d++) panel[d * step + v * W + i] = source[(row + i) * k->depth + d];
                for (int64_t i = n; i < W; i++)
                    for (int64_t d = d0; d < d1; d++) panel[d * step + v * W + i] = 0;
            }
        }
    }
}

static void FN(pack_columns)(void* context, int64_t begin, int64_t end) {
    const recurrent_pack* k = context;
    int64_t step = k->vectors * W;
    for (int64_t p = begin; p < end; p++) {
        T* panel = (T*)k->packed + p * k->depth * step;
        const T* source = (const T*)k->source + p * step;
        int64_t n = min_i64(step, k->count - p * step);
        for (int64_t d = 0; d < k->depth; d++) {
            memcpy(panel + d * step, source + d * k->count, n * sizeof(T));
            if (n < step) memset(panel + d * step + n, 0, (step - n) * sizeof(T));
        }
    }
}
#undef W
