/* Gradient of the weight of channels_last images, for an element type T (included once per type): a kernel's row is a contiguous stretch of kernel_w * channels
 * elements of a line, whose products with the output's gradient are summed over positions where both lie, without a copy for each tap.
 *
 * An item of phase 0 is (group, block of channels, block of outputs, chunk of rows of all samples), whose sums are [kernel row][kernel column][channel][output]; lines
 * are copied between margins of zeros, and the gradient where its outputs do not fill vectors. Phase 1 adds the chunks. */

typedef struct {
    int64_t channels, blocks, outs, out_blocks, rows, per_sample, units, chunks, size, line, lines;
} FN(last_weight_sizes);
KERNEL_INLINE FN(last_weight_sizes) FN(last_weight_sizes_of)(const conv_problem* s) {
    enum { CHANNELS = 64, OUTS = 128, BAND = (64 << 10) / sizeof(T), LEAST = 4 /* rows */, SUMS = (1 << 20) / sizeof(T), CHUNKS = 16 };
    FN(last_weight_sizes) z;
    z.blocks = conv_blocks(conv_group_in(s), CHANNELS);
    z.channels = conv_blocks(conv_group_in(s), z.blocks);
    z.outs = conv_rounded(conv_blocks(conv_group_out(s), conv_blocks(conv_group_out(s), OUTS)), GEMM_COLS);
    z.out_blocks = conv_blocks(conv_group_out(s), z.outs);
    const int64_t reach_h = (s->kernel_h - 1) * s->dilation_h + 1;
    z.line = ((s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1) * z.channels;
    z.rows = min_i64(max_i64((BAND / z.line - reach_h) / s->stride_h + 1, LEAST), s->out_h);
    z.per_sample = conv_blocks(s->out_h, z.rows);
    z.rows = conv_blocks(s->out_h, z.per_sample);
    z.lines = (z.rows - 1) * s->stride_h + reach_h;
    z.units = s->samples * z.per_sample;
    z.size = conv_taps(s) * z.channels * z.outs;
    z.chunks = min_i64(min_i64(conv_blocks(CHUNKS, s->groups * z.blocks * z.out_blocks), max_i64(SUMS / z.size, 1)), max_i64(z.units, 1)); /* one of zeros without samples */
    return z;
}
KERNEL_INLINE int FN(last_weight_fits)(const conv_problem* s) { return s->last && s->kernel_w > 1; }
KERNEL_FN int64_t FN(last_weight_items)(const conv_work* work, int64_t phase) {
    const FN(last_weight_sizes) z = FN(last_weight_sizes_of)(&work->s);
    return work->s.groups * z.blocks * z.out_blocks * (phase == 0 ? z.chunks : 1);
}
KERNEL_FN void FN(last_weight_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    const FN(last_weight_sizes) z = FN(last_weight_sizes_of)(s);
    work->phases = 2;
    work->shared_bytes = FN(last_weight_items)(work, 0) * z.size * (int64_t)sizeof(T);
    work->workspace_bytes = (z.lines * z.line + GEMM_ROWS + z.rows * s->out_w * GEMM_COLS) * (int64_t)sizeof(T) + 64;
}
KERNEL_INLINE void FN(last_weight_add)(const conv_work* work, T* workspace, int64_t item) {
    const conv_problem* s = &work->s;
    const FN(last_weight_sizes) z = FN(last_weight_sizes_of)(s);
    const int64_t chunk = item % z.chunks, block = item / z.chunks, g = block / (z.out_blocks * z.blocks), o0 = block % z.out_blocks * z.outs, i0 = block / z.out_blocks % z.blocks * z.channels;
    const int64_t channels = min_i64(z.channels, conv_group_in(s) - i0), outs = min_i64(z.outs, conv_group_out(s) - o0), pixels = conv_pixels(s);
    const int64_t joined = s->dilation_w == 1, runs = joined ? 1 : s->kernel_w, length = joined ? s->kernel_w * channels : channels;
    const int64_t across = (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1, line = across * channels;
    T *gradient = (T*)(((uintptr_t)(workspace + z.lines * z.line + GEMM_ROWS) + 63) / 64 * 64), *sums = (T*)work->shared + item * z.size;
    memset(sums, 0, (size_t)z.size * sizeof(T));
    for (int64_t unit = z.units * chunk / z.chunks; unit < z.units * (chunk + 1) / z.chunks; unit++) {
        const int64_t n = unit / z.per_sample, oh = unit % z.per_sample * z.rows, rows = min_i64(z.rows, s->out_h - oh);
        if (rows <= 0) continue;
        const int64_t lines = (rows - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1;
        const T *x = (const T*)work->b + n * s->in_h * s->in_w * s->c_in + g * conv_group_in(s) + i0, *dy = (const T*)work->a + (n * pixels + oh * s->out_w) * s->c_out + g * conv_group_out(s) + o0;
        FN(last_copy_lines)(s, x, oh * s->stride_h - s->pad_h, -s->pad_w, lines, across, channels, workspace);
        FN(gemm_tile) t = {.a_row = 1, .a_depth = s->stride_w * channels, .a_segment = s->stride_h * line, .c_row = z.outs, .depth = s->out_w, .segments = rows, .add = 1};
        for (int64_t o = 0; o < outs; o += GEMM_COLS) {
            const int64_t left = outs - o;
            t.cols = left > LANES ? GEMM_COLS : LANES;
            const T* from = dy + o;
            t.b_depth = s->c_out;
            if (left < t.cols) { /* vectors would reach into the next position */
                for (int64_t p = 0; p < rows * s->out_w; p++)
                    for (int64_t v = 0; v < t.cols; v += LANES) *(VECTOR_U*)(gradient + p * t.cols + v) = FN(conv_load)(dy + p * s->c_out + o + v, max_i64(left - v, 0));
                from = gradient, t.b_depth = t.cols;
            }
            for (int64_t kh = 0; kh < s->kernel_h; kh++)
                for (int64_t run = 0; run < runs; run++)
                    for (int64_t k = 0; k < length; k += GEMM_ROWS) {
                        t.rows = min_i64(GEMM_ROWS, length - k);
                        t.a = workspace + kh * s->dilation_h * line + run * s->dilation_w * channels + k;
                        t.b = from;
                        t.c = sums + ((kh * s->kernel_w + run) * channels + k) * z.outs + o;
                        FN(gemm_by_column)(&t);
                    }
        }
    }
}
KERNEL_INLINE void FN(last_weight_sum)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    const FN(last_weight_sizes) z = FN(last_weight_sizes_of)(s);
    const int64_t g = item / (z.out_blocks * z.blocks), o0 = item % z.out_blocks * z.outs, i0 = item / z.out_blocks % z.blocks * z.channels;
    const int64_t channels = min_i64(z.channels, conv_group_in(s) - i0), outs = min_i64(z.outs, conv_group_out(s) - o0), count = conv_taps(s) * channels;
    T *sums = (T*)work->shared + item * z.chunks * z.size, *dw = (T*)work->out + s->w_first + g * s->w_group + o0 * s->w_out + i0 * s->w_in;
    for (int64_t chunk = 1; chunk < z.chunks; chunk++)
        for (int64_t i = 0; i < count * z.outs; i++) sums[i] += sums[chunk * z.size + i];
    if (s->w_in == 1)
        for (int64_t tap = 0; tap < conv_taps(s); tap++) FN(conv_transpose)(sums + tap * channels * z.outs, z.outs, dw + tap * s->w_tap, s->w_out, channels, outs, 0);
    else
        for (int64_t k = 0; k < count; k++)
            for (int64_t o = 0; o < outs; o++) dw[o * s->w_out + k % channels * s->w_in + k / channels * s->w_tap] = sums[k * z.outs + o];
}
KERNEL_FN void FN(last_weight_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(last_weight_add)(work, (T*)workspace, item);
        else FN(last_weight_sum)(work, item);
    }
}
