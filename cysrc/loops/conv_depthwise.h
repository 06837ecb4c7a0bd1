/* Depthwise convolution (one input channel per group), for an element type T (included once per type): direct loops over vectors
 * of output positions of a padded plane of an NCHW image. */

/* ---- NCHW: a plane padded by zeros on all sides, so that every vector of every output row can be loaded whole ---- */
enum { FN(DEPTHWISE_DOTS) = 7, FN(DEPTHWISE_ROWS) = 4 }; /* kernel columns; output rows at a time */
KERNEL_INLINE int64_t FN(padded_h)(const conv_problem* s) { return (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1; }
KERNEL_INLINE int64_t FN(padded_w)(const conv_problem* s) {
    return (conv_blocks(s->out_w, LANES) + 1) * LANES * s->stride_w + (s->kernel_w - 1) * s->dilation_w;
}
/* `spread`: distance of the plane's elements in the padded one, zeros between them. */
KERNEL_INLINE void FN(pad_plane)(const conv_problem* s, const T* plane, T* padded, int64_t rows, int64_t columns, int64_t spread_h, int64_t spread_w) {
    int64_t height = FN(padded_h)(s), width = FN(padded_w)(s), lo = 0, hi = columns;
    conv_range(s->pad_w, spread_w, width, &lo, &hi);
    memset(padded, 0, (size_t)(height * width) * sizeof(T));
    for (int64_t h = 0; h < rows; h++) {
        int64_t i = h * spread_h + s->pad_h;
        if (i < 0 || i >= height || hi <= lo) continue;
        T* to = padded + i * width + s->pad_w;
        if (spread_w == 1) memcpy(to + lo, plane + h * columns + lo, (size_t)(hi - lo) * sizeof(T));
        else for (int64_t w = lo; w < hi; w++) to[w * spread_w] = plane[h * columns + w];
    }
}
/* Where the weight of output channel oc begins. */
KERNEL_INLINE int64_t FN(depthwise_offset)(const conv_problem* s, int64_t oc) {
    int64_t multiplier = s->c_out / s->c_in;
    return s->w_first + oc / multiplier * s->w_group + oc % multiplier * s->w_out;
}
/* lane t = p[t * stride] */
KERNEL_INLINE VECTOR FN(strided)(const T* p, int64_t stride) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    if (stride == 1) return *(const VECTOR_U*)p;
    if (stride == 2) {
        JOIN_EXPANDED(v, BITS) even;
        UNROLL for (int t = 0; t < W; t++) even[t] = 2 * t;
        return __builtin_shuffle((VECTOR)(*(const VECTOR_U*)p), (VECTOR)(*(const VECTOR_U*)(p + W)), even);
    }
    VECTOR v;
    for (int t = 0; t < W; t++) v[t] = p[t * stride];
    return v;
}
/* y = start + sum of taps over the padded plane; kernel size and stride are constants where this is inlined */
KERNEL_INLINE void FN(depthwise_taps)(const conv_problem* s, const T* padded, const T* taps, T start, int add, T* y, int64_t kernel_h,
                                      int64_t kernel_w, int64_t stride) {
    int64_t width = FN(padded_w)(s);
    for (int64_t oh = 0; oh < s->out_h; oh++)
        for (int64_t ow = 0; ow < s->out_w; ow += LANES) {
            const T* p = padded + oh * s->stride_h * width + ow * stride;
            T* out = y + oh * s->out_w + ow;
            VECTOR sum = FN(splat)(start);
            for (int64_t kh = 0; kh < kernel_h; kh++)
                for (int64_t kw = 0; kw < kernel_w; kw++)
                    sum = FMA(FN(splat)(taps[kh * kernel_w + kw]), FN(strided)(p + kh * s->dilation_h * width + kw * s->dilation_w, stride), sum);
            int64_t m = min_i64(LANES, s->out_w - ow);
            if (m == LANES) *(VECTOR_U*)out = add ? (VECTOR)(*(VECTOR_U*)out) + sum : sum;
            else
                for (int64_t j = 0; j < m; j++) out[j] = add ? out[j] + sum[j] : sum[j];
        }
}
/* The same for a square kernel without dilation, R output rows at a time: each vector of the plane is loaded once for all of them, and
   their sums hide each other's latency. Kernel, stride and R are constants where this is inlined. */
KERNEL_INLINE void FN(depthwise_rows)(const conv_problem* s, const T* padded, const T* taps, T start, int add, T* y, const int kernel, const int stride,
                                      const int R) {
    int64_t width = FN(padded_w)(s);
    for (int64_t ow = 0; ow < s->out_w; ow += LANES) {
        VECTOR sum[FN(DEPTHWISE_ROWS)];
        const T* p = padded + ow * stride;
        UNROLL for (int r = 0; r < R; r++) sum[r] = FN(splat)(start);
        UNROLL for (int i = 0; i < (R - 1) * stride + kernel; i++, p += width)
            for (int kw = 0; kw < kernel; kw++) {
                VECTOR v = FN(strided)(p + kw, stride);
                UNROLL for (int r = 0; r < R; r++)
                    if (i >= r * stride && i < r * stride + kernel) sum[r] = FMA(FN(splat)(taps[(i - r * stride) * kernel + kw]), v, sum[r]);
            }
        int64_t m = min_i64(LANES, s->out_w - ow);
        UNROLL for (int r = 0; r < R; r++) {
            T* out = y + r * s->out_w + ow;
            FN(conv_store)(out, add ? FN(conv_load)(out, m) + sum[r] : sum[r], m);
        }
    }
}
KERNEL_INLINE void FN(depthwise_square)(const conv_problem* s, const T* padded, const T* taps, T start, int add, T* y, const int kernel, const int stride) {
    enum { R = FN(DEPTHWISE_ROWS) };
    int64_t oh = 0, step = FN(padded_w)(s) * stride;
    for (; oh + R <= s->out_h; oh += R) FN(depthwise_rows)(s, padded + oh * step, taps, start, add, y + oh * s->out_w, kernel, stride, R);
    for (; oh < s->out_h; oh++) FN(depthwise_rows)(s, padded + oh * step, taps, start, add, y + oh * s->out_w, kernel, stride, 1);
}
/* columns: of the plane; spread as in pad_plane */
KERNEL_ONCE void FN(depthwise_plane)(const conv_problem* s, const T* plane, const T* taps, T start, int add, T* y, T* padded, int64_t rows, int64_t columns,
                                     int64_t spread_h, int64_t spread_w) {
    FN(pad_plane)(s, plane, padded, rows, columns, spread_h, spread_w);
    int square = s->kernel_h == s->kernel_w && s->stride_h == s->stride_w && s->dilation_h == 1 && s->dilation_w == 1 && s->stride_w <= 2;
    switch (square ? s->kernel_h * 2 + s->stride_w - 1 : 0) {
        case 3 * 2: FN(depthwise_square)(s, padded, taps, start, add, y, 3, 1); return;
        case 3 * 2 + 1: FN(depthwise_square)(s, padded, taps, start, add, y, 3, 2); return;
        case 5 * 2: FN(depthwise_square)(s, padded, taps, start, add, y, 5, 1); return;
        case 5 * 2 + 1: FN(depthwise_square)(s, padded, taps, start, add, y, 5, 2); return;
        case 7 * 2: FN(depthwise_square)(s, padded, taps, start, add, y, 7, 1); return;
    }
    if (s->stride_w == 1) FN(depthwise_taps)(s, padded, taps, start, add, y, s->kernel_h, s->kernel_w, 1);
    else if (s->stride_w == 2) FN(depthwise_taps)(s, padded, taps, start, add, y, s->kernel_h, s->kernel_w, 2);
    else FN(depthwise_taps)(s, padded, taps, start, add, y, s->kernel_h, s->kernel_w, s->stride_w);
}
/* The problem whose forward pass over a plane of spread gradients is the input's gradient. */
KERNEL_INLINE conv_problem FN(depthwise_reversed)(const conv_problem* s) {
    conv_problem r = conv_reversed(s);
    r.in_h = (s->out_h - 1) * s->stride_h + 1, r.in_w = (s->out_w - 1) * s->stride_w + 1;
    r.stride_h = r.stride_w = 1;
    return r;
}
KERNEL_FN void FN(depthwise_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    conv_problem r = FN(depthwise_reversed)(s);
    int64_t plane = FN(padded_h)(s) * FN(padded_w)(s), reversed = FN(padded_h)(&r) * FN(padded_w)(&r);
    work->phases = 1;
    work->shared_bytes = 0;
    work->workspace_bytes = (max_i64(plane, reversed) + 2 * conv_taps(s)) * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(depthwise_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    return work->pass == CONV_FORWARD ? s->samples * s->c_out : work->pass == CONV_INPUT ? s->samples * s->c_in : s->c_out;
}
KERNEL_INLINE void FN(depthwise_forward)(const conv_work* work, T* taps, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t oc = item % s->c_out, ic = oc / (s->c_out / s->c_in), kernel = conv_taps(s);
    const T *w = (const T*)work->b + FN(depthwise_offset)(s, oc), *x = (const T*)work->a + (item / s->c_out * s->c_in + ic) * s->in_h * s->in_w;
    for (int64_t k = 0; k < kernel; k++) taps[k] = w[k * s->w_tap];
    FN(depthwise_plane)(s, x, taps, work->bias ? ((const T*)work->bias)[oc] : 0, 0, (T*)work->out + item * conv_pixels(s), taps + kernel, s->in_h, s->in_w, 1, 1);
}
/* the taps backwards over the output gradient, spread by the stride */
KERNEL_INLINE void FN(depthwise_input)(const conv_work* work, T* taps, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t multiplier = s->c_out / s->c_in, sample = item / s->c_in, ic = item % s->c_in, kernel = conv_taps(s);
    T* plane = (T*)work->out + item * s->in_h * s->in_w;
    conv_problem r = FN(depthwise_reversed)(s);
    for (int64_t oc = ic * multiplier; oc < (ic + 1) * multiplier; oc++) {
        const T *dy = (const T*)work->a + (sample * s->c_out + oc) * conv_pixels(s), *w = (const T*)work->b + FN(depthwise_offset)(s, oc);
        for (int64_t k = 0; k < kernel; k++) taps[k] = w[(kernel - 1 - k) * s->w_tap];
        FN(depthwise_plane)(&r, dy, taps, 0, oc > ic * multiplier, plane, taps + kernel, s->out_h, s->out_w, s->stride_h, s->stride_w);
    }
}
/* One pass over a plane for `columns` kernel columns of one kernel row; sums[j] += sum dy * input. */
KERNEL_INLINE void FN(depthwise_dots)(const conv_problem* s, const T* padded, const T* dy, f64* sums, int64_t columns, int64_t stride) {
    enum { W = VECTOR_BYTES / sizeof(T), DOTS = FN(DEPTHWISE_DOTS) };
    int64_t width = FN(padded_w)(s);
    VECTOR sum[DOTS];
    for (int j = 0; j < DOTS; j++) sum[j] = (VECTOR){0};
    for (int64_t oh = 0; oh < s->out_h; oh++)
        for (int64_t ow = 0; ow < s->out_w; ow += W) {
            const T *g = dy + oh * s->out_w + ow, *p = padded + oh * s->stride_h * width + ow * stride;
            VECTOR a = ow + W <= s->out_w ? (VECTOR)(*(const VECTOR_U*)g) : FN(partial)(g, s->out_w - ow, 0);
            UNROLL for (int j = 0; j < DOTS; j++)
                if (j < columns) sum[j] = FMA(a, FN(strided)(p + j * s->dilation_w, stride), sum[j]);
        }
    for (int64_t j = 0; j < columns; j++) {
        T lanes[W];
        memcpy(lanes, &sum[j], sizeof lanes);
        sums[j] += FN(block_sum)(lanes, lanes, 0, W);
    }
}
KERNEL_INLINE void FN(depthwise_weight)(const conv_work* work, char* workspace, int64_t oc) {
    const conv_problem* s = &work->s;
    int64_t multiplier = s->c_out / s->c_in, kernel = conv_taps(s), width = FN(padded_w)(s);
    f64* sums = (f64*)workspace;
    T* padded = (T*)(sums + kernel);
    for (int64_t k = 0; k < kernel; k++) sums[k] = 0;
    for (int64_t n = 0; n < s->samples; n++) {
        const T* dy = (const T*)work->a + (n * s->c_out + oc) * conv_pixels(s);
        FN(pad_plane)(s, (const T*)work->b + (n * s->c_in + oc / multiplier) * s->in_h * s->in_w, padded, s->in_h, s->in_w, 1, 1);
        for (int64_t kh = 0; kh < s->kernel_h; kh++)
            for (int64_t kw = 0; kw < s->kernel_w; kw += FN(DEPTHWISE_DOTS)) {
                int64_t columns = min_i64(FN(DEPTHWISE_DOTS), s->kernel_w - kw);
                const T* p = padded + kh * s->dilation_h * width + kw * s->dilation_w;
                f64* out = sums + kh * s->kernel_w + kw;
                if (columns == 3 && s->stride_w == 1) FN(depthwise_dots)(s, p, dy, out, 3, 1);
                else if (columns == 5 && s->stride_w == 1) FN(depthwise_dots)(s, p, dy, out, 5, 1);
                else if (columns == 7 && s->stride_w == 1) FN(depthwise_dots)(s, p, dy, out, 7, 1);
                else if (columns == 3 && s->stride_w == 2) FN(depthwise_dots)(s, p, dy, out, 3, 2);
                else if (columns == 5 && s->stride_w == 2) FN(depthwise_dots)(s, p, dy, out, 5, 2);
                else FN(depthwise_dots)(s, p, dy, out, columns, s->stride_w);
            }
    }
    for (int64_t k = 0; k < kernel; k++) ((T*)work->out)[FN(depthwise_offset)(s, oc) + k * s->w_tap] = (T)sums[k];
}
KERNEL_FN void FN(depthwise_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (work->pass == CONV_FORWARD) FN(depthwise_forward)(work, (T*)workspace, item);
        else if (work->pass == CONV_INPUT) FN(depthwise_input)(work, (T*)workspace, item);
        else FN(depthwise_weight)(work, workspace, item);
    }
}
