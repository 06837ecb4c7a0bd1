/* Convolution of NCHW images whose kernels move by one along a row, for an element type T (included once per type).
 *
 * Rows of the GEMM are output channels, columns adjacent positions of an output row. What an element of the kernel meets there is a stretch of an input
 * row, so vectors of B are read from the rows themselves, copied once with their padding; a panel (conv_planes.h) has each element once for every tap. */

enum { FN(LINES_COLUMNS) = 256, FN(LINES_BYTES) = 1 << 18, FN(LINES_MOST) = 1 << 20 };

/* Lanes that vectors of positions have for an output row. */
KERNEL_INLINE int64_t FN(lines_lanes)(const conv_problem* s) { return conv_rounded(s->out_w, LANES); }
/* Elements of a copied row for `cols` positions. */
KERNEL_INLINE int64_t FN(lines_width)(const conv_problem* s, int64_t cols) { return conv_rounded(cols, GEMM_COLS) + (s->kernel_w - 1) * s->dilation_w; }
KERNEL_INLINE int64_t FN(lines_columns)(const conv_problem* s) {
    const int64_t blocks = conv_blocks(s->out_w, FN(LINES_COLUMNS));
    return conv_rounded(conv_blocks(s->out_w, blocks), GEMM_COLS);
}
KERNEL_INLINE int64_t FN(lines_row)(const conv_problem* s) { return conv_group_in(s) * FN(lines_width)(s, FN(lines_columns)(s)); }

/* Where a panel's copies, PANEL_COST outputs' multiplications an element, cost more than the lanes that stay empty at the end of a row. */
KERNEL_INLINE int FN(lines_fits)(const conv_problem* s) {
    enum { PANEL_COST = 14, MOST_OUTPUTS = 128 };
    if (s->last || s->stride_w != 1 || s->kernel_w == 1 || (s->dilation_h != 1 && s->kernel_h > 1) || conv_is_depthwise(s) || s->out_w == 0) return 0;
    const int64_t outputs = conv_group_out(s), empty = FN(lines_lanes)(s) - s->out_w;
    return outputs <= MOST_OUTPUTS && outputs * empty < PANEL_COST * s->out_w && s->kernel_h * FN(lines_row)(s) * (int64_t)sizeof(T) <= FN(LINES_MOST);
}

/* Phase 0 packs weights [group][block][kh][channel][kw][GEMM_ROWS], an item for each block of output channels; an item of phase 1 is
 * (sample, group, block of output rows, block of their positions). */
KERNEL_FN void FN(lines_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t row = FN(lines_row)(s) * (int64_t)sizeof(T), fitting = (FN(LINES_BYTES) / row - s->kernel_h) / s->stride_h + 1;
    work->chunk = FN(lines_columns)(s);
    work->block = max_i64(min_i64(fitting, s->samples < 4 ? (s->out_h + 3) / 4 : s->out_h), 1);
    work->phases = 2;
    work->shared_bytes = s->groups * conv_rounded(conv_group_out(s), GEMM_ROWS) * conv_group_in(s) * conv_taps(s) * (int64_t)sizeof(T);
    work->workspace_bytes = ((work->block - 1) * s->stride_h + s->kernel_h) * row;
}
KERNEL_FN int64_t FN(lines_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (phase == 0) return s->groups * conv_blocks(conv_group_out(s), GEMM_ROWS);
    return s->samples * s->groups * conv_blocks(s->out_h, work->block) * conv_blocks(s->out_w, work->chunk);
}
KERNEL_INLINE void FN(lines_pack_weight)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    const int64_t blocks = conv_blocks(conv_group_out(s), GEMM_ROWS), o = item % blocks * GEMM_ROWS, rows = min_i64(conv_group_out(s) - o, GEMM_ROWS);
    const T* w = (const T*)work->b + s->w_first + item / blocks * s->w_group + o * s->w_out;
    T* to = (T*)work->shared + item * conv_group_in(s) * conv_taps(s) * GEMM_ROWS;
    for (int64_t kh = 0; kh < s->kernel_h; kh++)
        for (int64_t i = 0; i < conv_group_in(s); i++)
            for (int64_t kw = 0; kw < s->kernel_w; kw++)
                for (int64_t r = 0; r < GEMM_ROWS; r++) *to++ = r < rows ? w[r * s->w_out + i * s->w_in + (kh * s->kernel_w + kw) * s->w_tap] : 0;
}
/* lines[row][channel][width] = the input from row h and column w on, zero outside of it */
KERNEL_INLINE void FN(lines_copy)(const conv_problem* s, const T* x, int64_t h, int64_t rows, int64_t w, int64_t width, T* lines) {
    const int64_t channels = conv_group_in(s), plane = s->in_h * s->in_w;
    int64_t lo = 0, hi = width;
    conv_range(w, 1, s->in_w, &lo, &hi);
    for (int64_t r = h; r < h + rows; r++)
        for (int64_t c = 0; c < channels; c++, lines += width) {
            if (r < 0 || r >= s->in_h) {
                memset(lines, 0, (size_t)width * sizeof(T));
                continue;
            }
            const T* row = x + c * plane + r * s->in_w + w;
            int64_t i = lo;
            for (int64_t j = 0; j < lo; j++) lines[j] = 0;
            for (; i + LANES <= hi; i += LANES) *(VECTOR_U*)(lines + i) = *(const VECTOR_U*)(row + i);
            for (; i < hi; i++) lines[i] = row[i];
            for (; i < width; i++) lines[i] = 0;
        }
}
KERNEL_INLINE void FN(lines_item)(const conv_work* work, T* lines, int64_t item) {
    const conv_problem* s = &work->s;
    const int64_t channels = conv_group_in(s), per_group = conv_group_out(s), depth = channels * conv_taps(s), blocks = conv_blocks(per_group, GEMM_ROWS);
    const int64_t across = conv_blocks(s->out_w, work->chunk), down = conv_blocks(s->out_h, work->block), image = item / (across * down);
    const int64_t left = item % across * work->chunk, cols = min_i64(work->chunk, s->out_w - left), width = FN(lines_width)(s, cols), row = channels * width;
    const int64_t top = item / across % down * work->block, bottom = min_i64(top + work->block, s->out_h);
    const T* packed = (const T*)work->shared + image % s->groups * blocks * depth * GEMM_ROWS;
    T* y = (T*)work->out + image * per_group * conv_pixels(s) + left;
    FN(lines_copy)(s, (const T*)work->a + image * channels * s->in_h * s->in_w, top * s->stride_h - s->pad_h, (bottom - 1 - top) * s->stride_h + s->kernel_h, left - s->pad_w, width, lines);
    FN(gemm_tile) t = {.a_row = 1, .a_depth = GEMM_ROWS, .a_segment = s->kernel_w * GEMM_ROWS, .b_depth = s->dilation_w, .b_skip = width - s->kernel_w * s->dilation_w,
                       .c_row = conv_pixels(s), .depth = s->kernel_w, .segments = s->kernel_h * channels};
    for (int64_t block = 0; block < blocks; block++) {
        t.a = packed + block * depth * GEMM_ROWS;
        t.rows = min_i64(GEMM_ROWS, per_group - block * GEMM_ROWS);
        t.row_start = work->bias ? (const T*)work->bias + image % s->groups * per_group + block * GEMM_ROWS : 0;
        for (int64_t h = top; h < bottom; h++)
            for (int64_t j = 0; j < cols; j += GEMM_COLS) {
                t.cols = min_i64(GEMM_COLS, cols - j);
                t.b = lines + (h - top) * s->stride_h * row + j;
                t.c = y + block * GEMM_ROWS * conv_pixels(s) + h * s->out_w + j;
                FN(gemm_by_column)(&t);
            }
    }
}
KERNEL_FN void FN(lines_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(lines_pack_weight)(work, item);
        else FN(lines_item)(work, (T*)workspace, item);
    }
}
