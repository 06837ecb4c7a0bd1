/* Gradient of the weight, for an element type T (included once per type): dw[k][o] = sum over output positions of the input under
 * kernel element k times the output gradient o. Rows of the GEMM are kernel elements, columns output channels.
 *
 * An item of phase 0 is (group, block of input channels, block of output channels, chunk of units), a unit being CONV_PIXELS
 * output positions of a sample; its sums go to `shared`. An item of phase 1 adds up the chunks of one block, in their order. */
enum { FN(WEIGHT_ROWS) = 288, FN(WEIGHT_COLS) = 64, FN(WEIGHT_MAX_COLS) = 256 };

typedef struct {
    int64_t block, blocks, outs, out_blocks, units, chunks; /* input channels and output channels of one item, and how many such blocks */
    int64_t rows, row; /* kernel elements of an item, and from one row of A to the next */
} FN(weight_sizes);

KERNEL_INLINE FN(weight_sizes) FN(weight_sizes_of)(const conv_problem* s) {
    FN(weight_sizes) z;
    z.block = min_i64(max_i64(FN(WEIGHT_ROWS) / conv_taps(s), 1), conv_group_in(s));
    z.blocks = conv_blocks(conv_group_in(s), z.block);
    z.block = conv_blocks(conv_group_in(s), z.blocks);
    if (z.blocks > 1) z.block = conv_rounded(z.block, LANES), z.blocks = conv_blocks(conv_group_in(s), z.block);
    z.outs = FN(WEIGHT_ROWS) / (z.block * conv_taps(s)) * FN(WEIGHT_COLS); /* few rows: more columns, so that the input is packed less often */
    z.outs = min_i64(max_i64(z.outs, FN(WEIGHT_COLS)), FN(WEIGHT_MAX_COLS));
    z.outs = min_i64(conv_rounded(conv_group_out(s), GEMM_COLS), z.outs);
    z.out_blocks = conv_blocks(conv_group_out(s), z.outs);
    z.units = s->samples * conv_blocks(conv_pixels(s), CONV_PIXELS);
    z.chunks = max_i64(min_i64(z.units, conv_blocks(16, s->groups * z.blocks * z.out_blocks)), 1);
    z.rows = z.block * conv_taps(s);
    /* no power of two: the rows of a column would share the sets of the cache */
    z.row = s->last ? conv_rounded(z.rows + GEMM_ROWS, 2 * GEMM_COLS) + GEMM_COLS : CONV_PIXELS + GEMM_COLS;
    return z;
}
KERNEL_FN int64_t FN(weight_items)(const conv_work* work, int64_t phase) {
    FN(weight_sizes) z = FN(weight_sizes_of)(&work->s);
    return work->s.groups * z.blocks * z.out_blocks * (phase == 0 ? z.chunks : 1);
}
KERNEL_FN void FN(weight_plan)(conv_work* work) {
    FN(weight_sizes) z = FN(weight_sizes_of)(&work->s);
    work->phases = 2;
    work->shared_bytes = FN(weight_items)(work, 0) * z.rows * z.outs * (int64_t)sizeof(T);
    work->workspace_bytes = ((work->s.last ? CONV_PIXELS : z.rows) * z.row + CONV_PIXELS * z.outs) * (int64_t)sizeof(T);
}
/* The last vector overlaps the one before. */
KERNEL_INLINE void FN(weight_copy)(T* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(VECTOR_U*)(to + i) = *(const VECTOR_U*)(from + i);
    if (i < n && n >= LANES) *(VECTOR_U*)(to + n - LANES) = *(const VECTOR_U*)(from + n - LANES);
    else
        for (; i < n; i++) to[i] = from[i];
}
/* a[p][(tap, channel)] = the input under each tap of `cols` output positions */
KERNEL_INLINE void FN(weight_pack_last)(const conv_problem* s, const T* x, int64_t channels, int64_t p0, int64_t cols, T* a, int64_t row) {
    int joined = channels == s->c_in && s->dilation_w == 1; /* taps of a kernel row are adjacent */
    int64_t oh = p0 / s->out_w, ow = p0 % s->out_w;
    for (int64_t p = 0; p < cols; p++, a += row, ow++) {
        if (ow == s->out_w) ow = 0, oh++;
        int64_t h0 = oh * s->stride_h - s->pad_h, w0 = ow * s->stride_w - s->pad_w;
        T* to = a;
        for (int64_t kh = 0; kh < s->kernel_h; kh++, to += s->kernel_w * channels) {
            int64_t h = h0 + kh * s->dilation_h, lo = 0, hi = s->kernel_w;
            if (h < 0 || h >= s->in_h) hi = 0;
            conv_range(w0, s->dilation_w, s->in_w, &lo, &hi);
            const T* from = x + (h * s->in_w + w0) * s->c_in;
            for (int64_t i = 0; i < lo * channels; i++) to[i] = 0;
            for (int64_t i = hi * channels; i < s->kernel_w * channels; i++) to[i] = 0;
            if (joined) {
                FN(weight_copy)(to + lo * channels, from + lo * channels, (hi - lo) * channels);
            } else {
                for (int64_t kw = lo; kw < hi; kw++)
                    FN(weight_copy)(to + kw * channels, from + kw * s->dilation_w * s->c_in, channels);
            }
        }
    }
}
#if VECTOR_BYTES == 32
/* Few output channels would leave most columns of a GEMM empty: vectors of positions are multiplied and summed, O outputs by E kernel elements at a
 * time. c[e * c_row + o] is the sum of a[e][p] dy[o][p] over m positions, or grows by it. */
enum { FN(WEIGHT_FEW) = GEMM_COLS / 2 };
KERNEL_INLINE void FN(weight_dot_tile)(int64_t m, const T* a, int64_t a_row, const T* dy, int64_t dy_row, T* c, int64_t c_row, int add, const int O, const int E) {
    VECTOR sums[4][8], x[8];
    UNROLL for (int o = 0; o < O; o++) UNROLL for (int e = 0; e < E; e++) sums[o][e] = (VECTOR){0};
    for (int64_t p = 0; p < m; p += LANES) {
        const int64_t left = m - p;
        UNROLL for (int e = 0; e < E; e++) x[e] = FN(conv_load)(a + e * a_row + p, left);
        UNROLL for (int o = 0; o < O; o++) {
            const VECTOR v = FN(conv_load)(dy + o * dy_row + p, left);
            UNROLL for (int e = 0; e < E; e++) sums[o][e] = FMA(v, x[e], sums[o][e]);
        }
    }
    UNROLL for (int e = 0; e < E; e++)
        UNROLL for (int o = 0; o < O; o++) {
            T sum[16 / sizeof(T)];
            const __typeof__(FN(fold_to_16)(sums[o][e])) folded = FN(fold_to_16)(sums[o][e]);
            memcpy(sum, &folded, sizeof sum);
            const T all = sizeof(T) == 8 ? sum[0] + sum[1] : (sum[0] + sum[2 % (16 / sizeof(T))]) + (sum[1] + sum[3 % (16 / sizeof(T))]);
            c[e * c_row + o] = add ? c[e * c_row + o] + all : all;
        }
}
KERNEL_ONCE void FN(weight_dots)(int64_t rows, int64_t outs, int64_t m, const T* a, int64_t a_row, const T* dy, int64_t dy_row, T* c, int64_t c_row, int add) {
#define DOTS(O, E)                                                                                        \
    for (; k + E <= rows; k += E) FN(weight_dot_tile)(m, a + k * a_row, a_row, from, dy_row, c + k * c_row + o, c_row, add, O, E);
    for (int64_t o = 0; o < outs; o += 4) {
        const T* from = dy + o * dy_row;
        int64_t k = 0;
        if (outs - o >= 4) { DOTS(4, 3) DOTS(4, 1) }
        else if (outs - o == 3) { DOTS(3, 4) DOTS(3, 1) }
        else if (outs - o == 2) { DOTS(2, 6) DOTS(2, 1) }
        else { DOTS(1, 8) DOTS(1, 1) }
    }
#undef DOTS
}
#endif
KERNEL_INLINE void FN(weight_add_item)(const conv_work* work, T* workspace, int64_t item) {
    const conv_problem* s = &work->s;
    FN(weight_sizes) z = FN(weight_sizes_of)(s);
    int64_t in_group = conv_group_in(s), per_group = conv_group_out(s), pixels = conv_pixels(s), taps = conv_taps(s);
    int64_t chunk = item % z.chunks, block = item / z.chunks, o0 = block % z.out_blocks * z.outs, i0 = block / z.out_blocks % z.blocks * z.block;
    int64_t g = block / (z.out_blocks * z.blocks), channels = min_i64(z.block, in_group - i0), outs = min_i64(z.outs, per_group - o0);
    int64_t rows = channels * taps, per_sample = conv_blocks(pixels, CONV_PIXELS);
    int64_t begin = z.units * chunk / z.chunks, end = z.units * (chunk + 1) / z.chunks;
    T *a = workspace, *b = a + (s->last ? CONV_PIXELS : z.rows) * z.row, *c = (T*)work->shared + item * z.rows * z.outs;
    int pointwise = conv_is_pointwise(s);
    if (begin == end) memset(c, 0, (size_t)(z.rows * z.outs) * sizeof(T));
    FN(gemm_tile) t = {.b_depth = GEMM_COLS, .c_row = z.outs, .segments = 1, .cols = GEMM_COLS};
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t n = unit / per_sample, p0 = unit % per_sample * CONV_PIXELS, m = min_i64(CONV_PIXELS, pixels - p0);
        t.depth = m;
        t.add = unit > begin;
        const T* source = a;
        if (s->last) {
            const T* x = (const T*)work->b + n * s->in_h * s->in_w * s->c_in + g * in_group + i0;
            const T* dy = (const T*)work->a + (n * pixels + p0) * s->c_out + g * per_group + o0;
            FN(weight_pack_last)(s, x, channels, p0, m, a, z.row);
            for (int64_t p = 0; p < m; p++, dy += s->c_out)
                for (int64_t o = 0; o < outs; o += GEMM_COLS) {
                    VECTOR_U* to = (VECTOR_U*)(b + (o * m + p * GEMM_COLS));
                    if (o + GEMM_COLS <= outs) to[0] = *(const VECTOR_U*)(dy + o), to[1] = *(const VECTOR_U*)(dy + o + LANES);
                    else to[0] = FN(conv_load)(dy + o, outs - o), to[1] = FN(conv_load)(dy + o + LANES, max_i64(outs - o - LANES, 0));
                }
            t.a_row = 1, t.a_depth = z.row;
        } else {
            const T* x = (const T*)work->b + ((n * s->groups + g) * in_group + i0) * s->in_h * s->in_w;
            const T* dy = (const T*)work->a + ((n * s->groups + g) * per_group + o0) * pixels + p0;
            if (pointwise) source = x + p0;
            else FN(planes_pack)(s, x, channels, p0, m, a, z.row, m);
#if VECTOR_BYTES == 32
            if (per_group <= FN(WEIGHT_FEW) - pointwise) {
                FN(weight_dots)(rows, outs, m, source, pointwise ? pixels : z.row, dy, pixels, c, z.outs, t.add);
                continue;
            }
#endif
            for (int64_t o = 0; o < outs; o += GEMM_COLS)
                FN(conv_transpose)(dy + o * pixels, pixels, b + o * m, GEMM_COLS, min_i64(GEMM_COLS, outs - o), m, 1);
            t.a_row = pointwise ? pixels : z.row, t.a_depth = 1;
        }
        for (int64_t o = 0; o < outs; o += GEMM_COLS)
            for (int64_t k = 0; k < rows; k += GEMM_ROWS) {
                t.a = source + k * t.a_row;
                t.b = b + o * m;
                t.c = c + k * z.outs + o;
                t.rows = min_i64(GEMM_ROWS, rows - k);
                if (s->last) FN(gemm_by_column)(&t);
                else FN(gemm_by_row)(&t);
            }
    }
}
KERNEL_INLINE void FN(weight_sum_item)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    FN(weight_sizes) z = FN(weight_sizes_of)(s);
    int64_t taps = conv_taps(s), o0 = item % z.out_blocks * z.outs, i0 = item / z.out_blocks % z.blocks * z.block, g = item / (z.out_blocks * z.blocks);
    int64_t channels = min_i64(z.block, conv_group_in(s) - i0), outs = min_i64(z.outs, conv_group_out(s) - o0), size = z.rows * z.outs;
    T *sums = (T*)work->shared + item * z.chunks * size, *dw = (T*)work->out + s->w_first + g * s->w_group + o0 * s->w_out + i0 * s->w_in;
    for (int64_t chunk = 1; chunk < z.chunks; chunk++)
        for (int64_t i = 0; i < channels * taps * z.outs; i++) sums[i] += sums[chunk * size + i];
    for (int64_t k = 0; k < channels * taps; k++) {
        int64_t i = s->last ? k % channels : k / taps, tap = s->last ? k / channels : k % taps;
        for (int64_t o = 0; o < outs; o++) dw[o * s->w_out + i * s->w_in + tap * s->w_tap] = sums[k * z.outs + o];
    }
}
KERNEL_FN void FN(weight_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(weight_add_item)(work, (T*)workspace, item);
        else FN(weight_sum_item)(work, item);
    }
}
