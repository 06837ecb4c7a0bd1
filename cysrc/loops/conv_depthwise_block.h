/* Depthwise convolution of NCHW images in blocks of a vector of channels, for an element type T (included once per type): a block's planes
 * are transposed into a padded plane of vectors, so that no lane is lost to narrow planes, and the results back. Forward, and the
 * gradient of the input as the same over spread gradients. One output channel per group. */
enum { FN(BLOCK_POSITIONS) = 7 }; /* output positions whose sums are in registers at a time; planes are mostly 7, 14, 28 or 56 wide */

KERNEL_INLINE int FN(depthwise_block_fits)(const conv_problem* s, int64_t pass) {
    int64_t width = pass == CONV_INPUT ? s->in_w : s->out_w;
    return pass != CONV_WEIGHT && s->c_in == s->c_out && s->c_in >= LANES / 2 && s->in_h * s->in_w >= LANES && (width < 2 * LANES || conv_taps(s) > 9);
}
/* what one pass does to planes: its forward problem, and how far the elements of its input are apart */
KERNEL_INLINE conv_problem FN(depthwise_block_problem)(const conv_work* work, int64_t* spread_h, int64_t* spread_w) {
    const conv_problem* s = &work->s;
    *spread_h = work->pass == CONV_INPUT ? s->stride_h : 1;
    *spread_w = work->pass == CONV_INPUT ? s->stride_w : 1;
    return work->pass == CONV_INPUT ? FN(depthwise_reversed)(s) : *s;
}
KERNEL_INLINE int64_t FN(block_height)(const conv_problem* s) { return (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1; }
KERNEL_INLINE int64_t FN(block_width)(const conv_problem* s) { return (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1; }
KERNEL_FN void FN(depthwise_block_plan)(conv_work* work) {
    int64_t spread_h, spread_w;
    conv_problem s = FN(depthwise_block_problem)(work, &spread_h, &spread_w);
    work->phases = 2;
    work->shared_bytes = conv_blocks(s.c_in, LANES) * conv_taps(&s) * VECTOR_BYTES;
    work->workspace_bytes = (FN(block_height)(&s) * FN(block_width)(&s) + conv_rounded(s.out_h * s.out_w, LANES)) * VECTOR_BYTES;
}
/* phase 0 packs the weight as [block of channels][tap][lane], which an item of phase 1, a block of a sample, reads */
KERNEL_FN int64_t FN(depthwise_block_items)(const conv_work* work, int64_t phase) {
    return phase == 0 ? 1 : work->s.samples * conv_blocks(work->s.c_in, LANES);
}
KERNEL_FN void FN(depthwise_block_pack)(const conv_work* work) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    const conv_problem* s = &work->s;
    const int64_t kernel = conv_taps(s);
    for (int64_t c = 0; c < conv_rounded(s->c_in, W); c++) {
        T* to = (T*)work->shared + c / W * kernel * W + c % W;
        const T* from = (const T*)work->b + (c < s->c_in ? FN(depthwise_offset)(s, c) : 0);
        for (int64_t k = 0; k < kernel; k++) to[k * W] = c < s->c_in ? from[(work->pass == CONV_INPUT ? kernel - 1 - k : k) * s->w_tap] : 0;
    }
}

/* `count` channels of `rows` x `columns` elements into the padded plane. */
KERNEL_INLINE void FN(block_gather)(const conv_problem* s, const T* planes, int64_t count, int64_t rows, int64_t columns, int64_t spread_h, int64_t spread_w,
                                    VECTOR* padded) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    const int64_t height = FN(block_height)(s), width = FN(block_width)(s), positions = rows * columns, right = width - s->pad_w - columns;
    int64_t h = s->pad_h, w = s->pad_w;
    if (spread_h == 1 && spread_w == 1 && s->pad_h >= 0 && s->pad_w >= 0 && right >= 0) { /* zeros around the plane, but none beneath */
        for (int64_t i = 0; i < height; i++) {
            const int inside = i >= s->pad_h && i < s->pad_h + rows;
            memset(padded + i * width, 0, (size_t)(inside ? s->pad_w : width) * sizeof *padded);
            if (inside) memset(padded + (i + 1) * width - right, 0, (size_t)right * sizeof *padded);
        }
    } else {
        memset(padded, 0, (size_t)(height * width) * sizeof *padded);
    }
    VECTOR* line = h >= 0 && h < height ? padded + h * width : NULL;
    for (int64_t p = 0; p < positions; p += W) {
        VECTOR square[W];
        const int64_t n = min_i64(W, positions - p);
        FN(conv_turned)(planes + p, positions, count, n, square);
        for (int64_t i = 0; i < n; i++) {
            if (line && w >= 0 && w < width) line[w] = square[i];
            w += spread_w;
            if (w == s->pad_w + columns * spread_w) {
                w = s->pad_w, h += spread_h;
                line = h >= 0 && h < height ? padded + h * width : NULL;
            }
        }
    }
}
/* The positions ow .. ow + R of an output row. */
KERNEL_INLINE void FN(block_positions)(const conv_problem* s, const VECTOR* row, int64_t width, const VECTOR* taps, VECTOR start, VECTOR* out, const int R) {
    VECTOR sum[FN(BLOCK_POSITIONS)];
    UNROLL for (int r = 0; r < R; r++) sum[r] = start;
    for (int64_t kh = 0; kh < s->kernel_h; kh++)
        for (int64_t kw = 0; kw < s->kernel_w; kw++) {
            const VECTOR* x = row + kh * s->dilation_h * width + kw * s->dilation_w;
            VECTOR tap = taps[kh * s->kernel_w + kw];
            UNROLL for (int r = 0; r < R; r++) sum[r] = FMA(tap, x[r * s->stride_w], sum[r]);
        }
    UNROLL for (int r = 0; r < R; r++) out[r] = sum[r];
}
/* The same for a kernel of K columns without dilation: a vector of the row is loaded once for all positions that it lies under. K and STRIDE are constants. */
KERNEL_INLINE void FN(block_columns)(const conv_problem* s, const VECTOR* row, int64_t width, const VECTOR* taps, VECTOR start, VECTOR* out, const int K, const int STRIDE) {
    enum { R = FN(BLOCK_POSITIONS) };
    VECTOR sum[R];
    UNROLL for (int r = 0; r < R; r++) sum[r] = start;
    for (int64_t kh = 0; kh < s->kernel_h; kh++, row += s->dilation_h * width, taps += K)
        UNROLL for (int i = 0; i < (R - 1) * STRIDE + K; i++) {
            const VECTOR v = row[i];
            UNROLL for (int r = 0; r < R; r++)
                if (i >= r * STRIDE && i < r * STRIDE + K) sum[r] = FMA(taps[i - r * STRIDE], v, sum[r]);
        }
    UNROLL for (int r = 0; r < R; r++) out[r] = sum[r];
}
KERNEL_ONCE void FN(block_row)(const conv_problem* s, const VECTOR* row, int64_t width, const VECTOR* taps, VECTOR start, VECTOR* to) {
    enum { R = FN(BLOCK_POSITIONS) };
    const int64_t whole = s->out_w / R * R;
#define COLUMNS_OF(K, STRIDE) for (int64_t ow = 0; ow < whole; ow += R) FN(block_columns)(s, row + ow * STRIDE, width, taps, start, to + ow, K, STRIDE)
    switch (s->dilation_w == 1 && s->stride_w <= 2 ? 2 * s->kernel_w + s->stride_w - 1 : 0) {
        case 2 * 3: COLUMNS_OF(3, 1); break;
        case 2 * 3 + 1: COLUMNS_OF(3, 2); break;
        case 2 * 5: COLUMNS_OF(5, 1); break;
        case 2 * 5 + 1: COLUMNS_OF(5, 2); break;
        case 2 * 7: COLUMNS_OF(7, 1); break;
        default:
            for (int64_t ow = 0; ow < whole; ow += R) FN(block_positions)(s, row + ow * s->stride_w, width, taps, start, to + ow, R);
    }
#undef COLUMNS_OF
    for (int64_t ow = whole; ow < s->out_w; ow++) FN(block_positions)(s, row + ow * s->stride_w, width, taps, start, to + ow, 1);
}
KERNEL_FN void FN(depthwise_block_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    int64_t spread_h, spread_w;
    const conv_problem s = FN(depthwise_block_problem)(work, &spread_h, &spread_w);
    const int64_t blocks = conv_blocks(s.c_in, W), kernel = conv_taps(&s), width = FN(block_width)(&s), positions = s.out_h * s.out_w;
    const int64_t rows = work->pass == CONV_INPUT ? work->s.out_h : s.in_h, columns = work->pass == CONV_INPUT ? work->s.out_w : s.in_w;
    VECTOR *out = (VECTOR*)workspace, *padded = out + conv_rounded(positions, W);
    if (phase == 0) {
        FN(depthwise_block_pack)(work);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t sample = item / blocks, first = item % blocks * W, count = min_i64(W, s.c_in - first);
        const VECTOR* taps = (const VECTOR*)work->shared + item % blocks * kernel;
        VECTOR start = {0};
        if (work->pass == CONV_FORWARD && work->bias) start = FN(conv_load)((const T*)work->bias + first, count);
        FN(block_gather)(&s, (const T*)work->a + (sample * s.c_in + first) * rows * columns, count, rows, columns, spread_h, spread_w, padded);
        for (int64_t oh = 0; oh < s.out_h; oh++) FN(block_row)(&s, padded + oh * s.stride_h * width, width, taps, start, out + oh * s.out_w);
        T* result = (T*)work->out + (sample * s.c_in + first) * positions;
        FN(conv_transpose)((const T*)out, W, result, positions, positions, count, 0);
    }
}
