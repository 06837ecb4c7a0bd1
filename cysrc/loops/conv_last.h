/* Convolution of channels_last images, for an element type T (included once per type).
 *
 * Rows of the GEMM are output positions, columns output channels: the input under one kernel row is a contiguous stretch of
 * kernel_w * channels elements, which gemm_by_row reads in place. Only padding needs a copy, tile by tile. */

KERNEL_INLINE int64_t FN(last_panels)(const conv_problem* s) { return conv_blocks(conv_group_out(s), GEMM_COLS); }

/* Whether kernels reach beyond the image: over padding, or at the end of a transposed convolution's output with an output_padding. */
KERNEL_INLINE int FN(last_hangs_over)(const conv_problem* s) {
    return s->pad_h || s->pad_w || (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h >= s->in_h ||
           (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w >= s->in_w;
}

/* ---- forward: phase 0 packs weights [group][panel][tap][in][GEMM_COLS] and the bias behind them; an item of phase 1 is
 * (sample, group, tile of block x chunk output positions) ---- */

KERNEL_FN void FN(last_plan)(conv_work* work) {
    conv_problem* s = &work->s;
    if (conv_is_pointwise(s)) { /* one long row */
        s->in_w = s->out_w = s->samples * s->in_h * s->in_w;
        s->samples = s->in_h = s->out_h = 1;
    }
    int64_t channels = conv_group_in(s), reach_h = (s->kernel_h - 1) * s->dilation_h + 1, reach_w = (s->kernel_w - 1) * s->dilation_w + 1;
    int64_t fit = (128 << 10) / (int64_t)sizeof(T), across = fit / (channels * reach_h);
    work->chunk = min_i64(s->out_w, max_i64((across - reach_w) / s->stride_w, 4 * GEMM_ROWS));
    if (work->chunk < s->out_w) work->chunk = conv_rounded(work->chunk, GEMM_ROWS);
    int64_t row = ((work->chunk - 1) * s->stride_w + reach_w) * channels;
    work->block = max_i64(min_i64((fit / row - reach_h) / s->stride_h + 1, conv_blocks(s->out_h * s->samples, 8)), 1);
    work->block = min_i64(work->block, s->out_h);
    work->phases = 2;
    work->shared_bytes = s->groups * FN(last_panels)(s) * GEMM_COLS * (conv_taps(s) * channels + 1) * (int64_t)sizeof(T);
    work->workspace_bytes = FN(last_hangs_over)(s) ? ((work->block - 1) * s->stride_h + reach_h) * row * (int64_t)sizeof(T) : 0;
}
KERNEL_FN int64_t FN(last_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (phase == 0) return s->groups * FN(last_panels)(s);
    return s->samples * s->groups * conv_blocks(s->out_h, work->block) * conv_blocks(s->out_w, work->chunk);
}
KERNEL_INLINE void FN(last_pack)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t panels = FN(last_panels)(s), g = item / panels, first = item % panels * GEMM_COLS, depth = conv_taps(s) * conv_group_in(s);
    int64_t count = min_i64(GEMM_COLS, conv_group_out(s) - first);
    const T* w = (const T*)work->b + s->w_first + g * s->w_group + first * s->w_out;
    T *to = (T*)work->shared + item * depth * GEMM_COLS, *bias = (T*)work->shared + s->groups * panels * depth * GEMM_COLS + item * GEMM_COLS;
    if (s->w_tap > 0 && s->w_out >= depth && (s->w_in == 1 || conv_taps(s) == 1)) {
        FN(conv_transpose)(w, s->w_out, to, GEMM_COLS, count, depth, 0);
        for (int64_t k = 0; k < depth && count < GEMM_COLS; k++)
            for (int64_t o = count; o < GEMM_COLS; o++) to[k * GEMM_COLS + o] = 0;
    } else {
        for (int64_t tap = 0; tap < conv_taps(s); tap++)
            for (int64_t i = 0; i < conv_group_in(s); i++, to += GEMM_COLS)
                for (int64_t o = 0; o < GEMM_COLS; o++) to[o] = o < count ? w[o * s->w_out + i * s->w_in + tap * s->w_tap] : 0;
    }
    for (int64_t o = 0; o < GEMM_COLS; o++) bias[o] = o < count && work->bias ? ((const T*)work->bias)[g * conv_group_out(s) + first + o] : 0;
}
/* tile[row][col][channels] = the input from (h, w) on, zero outside; x: at the first of the channels */
KERNEL_ONCE void FN(last_copy_lines)(const conv_problem* s, const T* x, int64_t h, int64_t w, int64_t rows, int64_t cols, int64_t channels, T* tile) {
    int64_t lo = 0, hi = cols;
    conv_range(w, 1, s->in_w, &lo, &hi);
    for (int64_t row = 0; row < rows; row++, tile += cols * channels) {
        if (h + row < 0 || h + row >= s->in_h || hi <= lo) {
            memset(tile, 0, (size_t)(cols * channels) * sizeof(T));
            continue;
        }
        const T* from = x + ((h + row) * s->in_w + w + lo) * s->c_in;
        memset(tile, 0, (size_t)(lo * channels) * sizeof(T));
        memset(tile + hi * channels, 0, (size_t)((cols - hi) * channels) * sizeof(T));
        if (channels == s->c_in) memcpy(tile + lo * channels, from, (size_t)((hi - lo) * channels) * sizeof(T));
        else
            for (int64_t col = lo; col < hi; col++, from += s->c_in) memcpy(tile + col * channels, from, (size_t)channels * sizeof(T));
    }
}
KERNEL_INLINE void FN(last_forward_item)(const conv_work* work, T* tile, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_group_in(s), outputs = conv_group_out(s), panels = FN(last_panels)(s), depth = conv_taps(s) * channels;
    int64_t tiles_w = conv_blocks(s->out_w, work->chunk), tiles_h = conv_blocks(s->out_h, work->block);
    int64_t ow = item % tiles_w * work->chunk, oh = item / tiles_w % tiles_h * work->block, g = item / (tiles_w * tiles_h) % s->groups;
    int64_t sample = item / (tiles_w * tiles_h * s->groups), cols = min_i64(work->chunk, s->out_w - ow), rows = min_i64(work->block, s->out_h - oh);
    int64_t reach_h = (s->kernel_h - 1) * s->dilation_h + 1, reach_w = (s->kernel_w - 1) * s->dilation_w + 1;
    int64_t pixel = s->c_in, line = s->in_w * s->c_in;
    const T* x = (const T*)work->a + sample * s->in_h * line + g * channels;
    if (FN(last_hangs_over)(s)) {
        int64_t across = (cols - 1) * s->stride_w + reach_w;
        FN(last_copy_lines)(s, x, oh * s->stride_h - s->pad_h, ow * s->stride_w - s->pad_w, (rows - 1) * s->stride_h + reach_h, across, channels, tile);
        x = tile, pixel = channels, line = across * channels;
    } else {
        x += oh * s->stride_h * line + ow * s->stride_w * pixel;
    }
    /* one stretch per kernel row where its taps are adjacent, else one per tap */
    int joined = s->dilation_w == 1 && pixel == channels;
    int64_t stretches = joined ? s->kernel_h : 1, parts = joined ? 1 : s->kernel_h;
    FN(gemm_tile) t = {.a_row = s->stride_w * pixel, .a_depth = 1, .b_depth = GEMM_COLS, .c_row = s->c_out};
    t.depth = joined ? s->kernel_w * channels : channels;
    t.segments = joined ? stretches : s->kernel_w;
    t.a_segment = joined ? s->dilation_h * line : s->dilation_w * pixel;
    const T *packed = (const T*)work->shared + g * panels * depth * GEMM_COLS;
    const T* bias = (const T*)work->shared + s->groups * panels * depth * GEMM_COLS + g * panels * GEMM_COLS;
    T* y = (T*)work->out + (sample * s->out_h + oh) * s->out_w * s->c_out + ow * s->c_out + g * outputs;
    for (int64_t panel = 0; panel < panels; panel++) {
        t.cols = min_i64(GEMM_COLS, outputs - panel * GEMM_COLS);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t col = 0; col < cols; col += GEMM_ROWS) {
                t.rows = min_i64(GEMM_ROWS, cols - col);
                t.c = y + (row * s->out_w + col) * s->c_out + panel * GEMM_COLS;
                for (int64_t part = 0; part < parts; part++) {
                    t.a = x + (row * s->stride_h + part * s->dilation_h) * line + col * s->stride_w * pixel;
                    t.b = packed + (panel * depth + part * s->kernel_w * channels) * GEMM_COLS;
                    t.add = part > 0;
                    t.column_start = part > 0 ? 0 : bias + panel * GEMM_COLS;
                    FN(gemm_by_row)(&t);
                }
            }
    }
}
KERNEL_FN void FN(last_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(last_pack)(work, item);
        else FN(last_forward_item)(work, (T*)workspace, item);
    }
}

/* ---- gradient of the input where the forward pass of the reversed problem does not serve (strides, few channels): products
 * of the output gradient with the weights of one kernel row, added where they came from. Phase 0 packs the weights
 * [group][kernel row][panel of (kw, in)][out][GEMM_COLS]; an item of phase 1 is (sample, block of input rows). ---- */
enum { FN(LAST_POSITIONS) = 48 }; /* output positions at a time */
KERNEL_INLINE int64_t FN(last_row_panels)(const conv_problem* s) { return conv_blocks(s->kernel_w * conv_group_in(s), GEMM_COLS); }

KERNEL_FN void FN(last_plan_input)(conv_work* work) {
    const conv_problem* s = &work->s;
    work->block = min_i64(max_i64(conv_blocks(s->in_h * s->samples, 16), 1), s->in_h);
    work->phases = 2;
    work->shared_bytes = s->groups * s->kernel_h * FN(last_row_panels)(s) * conv_group_out(s) * GEMM_COLS * (int64_t)sizeof(T);
    work->workspace_bytes = FN(LAST_POSITIONS) * FN(last_row_panels)(s) * GEMM_COLS * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(last_items_input)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    return phase == 0 ? s->groups * s->kernel_h : s->samples * conv_blocks(s->in_h, work->block);
}
KERNEL_INLINE void FN(last_pack_input)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t g = item / s->kernel_h, kh = item % s->kernel_h, channels = conv_group_in(s), width = s->kernel_w * channels;
    T* to = (T*)work->shared + item * FN(last_row_panels)(s) * conv_group_out(s) * GEMM_COLS;
    const T* w = (const T*)work->b + s->w_first + g * s->w_group + kh * s->kernel_w * s->w_tap;
    for (int64_t first = 0; first < width; first += GEMM_COLS)
        for (int64_t o = 0; o < conv_group_out(s); o++, to += GEMM_COLS)
            for (int64_t j = 0; j < GEMM_COLS; j++)
                to[j] = first + j < width ? w[o * s->w_out + (first + j) / channels * s->w_tap + (first + j) % channels * s->w_in] : 0;
}
KERNEL_INLINE void FN(last_add_run)(T* to, const T* from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(VECTOR_U*)(to + i) = (VECTOR)(*(VECTOR_U*)(to + i)) + *(const VECTOR_U*)(from + i);
    for (; i < n; i++) to[i] += from[i];
}
KERNEL_INLINE void FN(last_input_item)(const conv_work* work, T* sums, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t blocks = conv_blocks(s->in_h, work->block), sample = item / blocks, h0 = item % blocks * work->block, h1 = min_i64(h0 + work->block, s->in_h);
    int64_t channels = conv_group_in(s), outputs = conv_group_out(s), panels = FN(last_row_panels)(s), width = panels * GEMM_COLS;
    int64_t reach = (s->kernel_w - 1) * s->dilation_w + 1, apart = conv_blocks(reach, s->stride_w);
    T* dx = (T*)work->out + sample * s->in_h * s->in_w * s->c_in;
    memset(dx + h0 * s->in_w * s->c_in, 0, (size_t)((h1 - h0) * s->in_w * s->c_in) * sizeof(T));
    FN(gemm_tile) t = {.a_row = s->c_out, .a_depth = 1, .b_depth = GEMM_COLS, .c_row = width, .depth = outputs, .segments = 1};
    for (int64_t oh = 0; oh < s->out_h; oh++)
        for (int64_t kh = 0; kh < s->kernel_h; kh++) {
            int64_t h = oh * s->stride_h - s->pad_h + kh * s->dilation_h;
            if (h < h0 || h >= h1) continue;
            for (int64_t g = 0; g < s->groups; g++)
                for (int64_t first = 0; first < s->out_w; first += FN(LAST_POSITIONS)) {
                    int64_t count = min_i64(FN(LAST_POSITIONS), s->out_w - first);
                    const T* dy = (const T*)work->a + ((sample * s->out_h + oh) * s->out_w + first) * s->c_out + g * outputs;
                    for (int64_t panel = 0; panel < panels; panel++) {
                        t.b = (const T*)work->shared + ((g * s->kernel_h + kh) * panels + panel) * outputs * GEMM_COLS;
                        t.cols = min_i64(GEMM_COLS, s->kernel_w * channels - panel * GEMM_COLS);
                        t.cols = t.cols > LANES ? GEMM_COLS : LANES;
                        for (int64_t p = 0; p < count; p += GEMM_ROWS) {
                            t.rows = min_i64(GEMM_ROWS, count - p);
                            t.a = dy + p * s->c_out;
                            t.c = sums + p * width + panel * GEMM_COLS;
                            FN(gemm_by_row)(&t);
                        }
                    }
                    /* positions whose windows do not overlap in turn: a load must not meet a store that is under way */
                    for (int64_t turn = 0; turn < apart; turn++)
                        for (int64_t p = turn; p < count; p += apart) {
                            int64_t w = (first + p) * s->stride_w - s->pad_w, lo = 0, hi = s->kernel_w;
                            conv_range(w, s->dilation_w, s->in_w, &lo, &hi);
                            T* to = dx + (h * s->in_w + w) * s->c_in + g * channels;
                            const T* from = sums + p * width;
                            if (s->groups == 1 && s->dilation_w == 1) FN(last_add_run)(to + lo * channels, from + lo * channels, (hi - lo) * channels);
                            else
                                for (int64_t kw = lo; kw < hi; kw++)
                                    FN(last_add_run)(to + kw * s->dilation_w * s->c_in, from + kw * channels, channels);
                        }
                }
        }
}
KERNEL_FN void FN(last_run_input)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(last_pack_input)(work, item);
        else FN(last_input_item)(work, (T*)workspace, item);
    }
}
