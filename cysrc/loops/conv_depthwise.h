/* Depthwise convolution (one input channel per group), for an element type T (included once per type): direct loops over vectors
 * of output positions of a padded plane (NCHW), or over vectors of channels (channels_last, one output channel per group). */

/* ---- NCHW: a plane padded by zeros on all sides, so that every vector of every output row can be loaded whole ---- */
enum { FN(DEPTHWISE_DOTS) = 7, FN(DEPTHWISE_TILE) = 6, FN(DEPTHWISE_ROWS) = 4 }; /* kernel columns; output positions; output rows at a time */
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

/* ---- channels_last: an item is one row of the output (forward) or of the input (its gradient); phase 0 packs weights
 * [tap][channel]. The gradient of the weight sums rows of a sample (an item of phase 0), then samples (phase 1). ---- */
KERNEL_FN void FN(depthwise_last_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES), size = conv_taps(s) * channels * (int64_t)(work->pass == CONV_WEIGHT ? sizeof(f64) : sizeof(T));
    work->phases = 2;
    work->shared_bytes = size * (work->pass == CONV_WEIGHT ? s->samples : 1);
    work->workspace_bytes = work->pass == CONV_WEIGHT ? conv_taps(s) * channels * (int64_t)sizeof(T) : 0;
}
KERNEL_FN int64_t FN(depthwise_last_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (work->pass == CONV_WEIGHT) return phase == 0 ? s->samples : 1;
    return phase == 0 ? 1 : s->samples * (work->pass == CONV_FORWARD ? s->out_h : s->in_h);
}
KERNEL_FN void FN(depthwise_last_pack)(const conv_work* work) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES);
    const T* w = (const T*)work->b + s->w_first;
    T* to = (T*)work->shared;
    for (int64_t tap = 0; tap < conv_taps(s); tap++)
        for (int64_t c = 0; c < channels; c++) *to++ = c < s->c_in ? w[c * s->w_group + tap * s->w_tap] : 0;
}
/* The 3x3 kernel's inner positions, two at a time, all channels of whole vectors: memory is read and written in one direction. */
KERNEL_INLINE void FN(depthwise_last_3x3)(const conv_problem* s, const T* x, const T* w, int64_t row, const T* bias, T* y, int64_t count) {
    int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->dilation_w * s->c_in, step = s->stride_w * s->c_in, channels = s->c_in / LANES * LANES;
    for (int64_t i = 0; i + 2 <= count; i += 2, x += 2 * step, y += 2 * s->c_in)
        for (int64_t c = 0; c < channels; c += LANES) {
            VECTOR first = bias ? (VECTOR)(*(const VECTOR_U*)(bias + c)) : (VECTOR){0}, second = first;
            UNROLL for (int k = 0; k < 9; k++) {
                VECTOR tap = *(const VECTOR_U*)(w + k * row + c);
                const T* p = x + k / 3 * line + k % 3 * pixel + c;
                first = FMA(tap, *(const VECTOR_U*)p, first);
                second = FMA(tap, *(const VECTOR_U*)(p + step), second);
            }
            *(VECTOR_U*)(y + c) = first;
            *(VECTOR_U*)(y + s->c_in + c) = second;
        }
}
KERNEL_FN void FN(depthwise_last_forward)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t sample = item / s->out_h, oh = item % s->out_h, channels = conv_rounded(s->c_in, LANES);
    int64_t h = oh * s->stride_h - s->pad_h, kh0 = 0, kh1 = s->kernel_h, lo = 0, hi = s->out_w;
    conv_range(h, s->dilation_h, s->in_h, &kh0, &kh1);
    /* output positions [lo, hi) have all their columns inside */
    conv_range(-s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    conv_range((s->kernel_w - 1) * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    const T* row = (const T*)work->a + (sample * s->in_h + h) * s->in_w * s->c_in;
    T* y = (T*)work->out + item * s->out_w * s->c_in;
    int small = s->kernel_h == 3 && s->kernel_w == 3 && kh0 == 0 && kh1 == 3;
    int64_t whole = small ? (hi - lo) / 2 * 2 : 0; /* positions from lo on that are done at once */
    if (whole)
        FN(depthwise_last_3x3)(s, row + (lo * s->stride_w - s->pad_w) * s->c_in, (const T*)work->shared, channels, (const T*)work->bias, y + lo * s->c_in, whole);
    for (int64_t ow = 0; ow < s->out_w; ow++) {
        int64_t w0 = ow * s->stride_w - s->pad_w, kw0 = 0, kw1 = s->kernel_w, done = whole && ow >= lo && ow < lo + whole;
        conv_range(w0, s->dilation_w, s->in_w, &kw0, &kw1);
        for (int64_t c = done ? s->c_in / LANES * LANES : 0; c < s->c_in; c += LANES) {
            int64_t n = min_i64(LANES, s->c_in - c);
            VECTOR sum = work->bias ? FN(conv_load)((const T*)work->bias + c, n) : (VECTOR){0};
            for (int64_t kh = kh0; kh < kh1; kh++)
                for (int64_t kw = kw0; kw < kw1; kw++)
                    sum = FMA(*(const VECTOR_U*)((const T*)work->shared + (kh * s->kernel_w + kw) * channels + c),
                              FN(conv_load)(row + (kh * s->dilation_h * s->in_w + w0 + kw * s->dilation_w) * s->c_in + c, n), sum);
            FN(conv_store)(y + ow * s->c_in + c, sum, n);
        }
    }
}
KERNEL_FN void FN(depthwise_last_input)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t sample = item / s->in_h, h = item % s->in_h, channels = conv_rounded(s->c_in, LANES);
    for (int64_t w = 0; w < s->in_w; w++)
        for (int64_t c = 0; c < s->c_in; c += LANES) {
            int64_t n = min_i64(LANES, s->c_in - c);
            VECTOR sum = {0};
            for (int64_t kh = 0; kh < s->kernel_h; kh++) {
                int64_t up = h + s->pad_h - kh * s->dilation_h;
                if (up < 0 || up % s->stride_h || up / s->stride_h >= s->out_h) continue;
                for (int64_t kw = 0; kw < s->kernel_w; kw++) {
                    int64_t left = w + s->pad_w - kw * s->dilation_w;
                    if (left < 0 || left % s->stride_w || left / s->stride_w >= s->out_w) continue;
                    const T* dy = (const T*)work->a + ((sample * s->out_h + up / s->stride_h) * s->out_w + left / s->stride_w) * s->c_in + c;
                    sum = FMA(*(const VECTOR_U*)((const T*)work->shared + (kh * s->kernel_w + kw) * channels + c), FN(conv_load)(dy, n), sum);
                }
            }
            FN(conv_store)((T*)work->out + (item * s->in_w + w) * s->c_in + c, sum, n);
        }
}
/* sums[k][c] += dy x for DEPTHWISE_TILE output positions inside and the 3x3 kernel, all channels of whole vectors */
KERNEL_INLINE void FN(depthwise_last_dots)(const conv_problem* s, const T* x, const T* dy, T* sums, int64_t row) {
    int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->dilation_w * s->c_in, step = s->stride_w * s->c_in;
    for (int64_t c = 0; c + LANES <= s->c_in; c += LANES) {
        VECTOR sum[9];
        UNROLL for (int k = 0; k < 9; k++) sum[k] = *(const VECTOR_U*)(sums + k * row + c);
        for (int64_t i = 0; i < FN(DEPTHWISE_TILE); i++) {
            VECTOR g = *(const VECTOR_U*)(dy + i * s->c_in + c);
            const T* p = x + i * step + c;
            UNROLL for (int k = 0; k < 9; k++) sum[k] = FMA(g, *(const VECTOR_U*)(p + k / 3 * line + k % 3 * pixel), sum[k]);
        }
        UNROLL for (int k = 0; k < 9; k++) *(VECTOR_U*)(sums + k * row + c) = sum[k];
    }
}
/* sums[tap][c] of one sample: an output row in T, rows in double */
KERNEL_FN void FN(depthwise_last_weight)(const conv_work* work, T* part, int64_t sample) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES), row = s->in_w * s->c_in, size = conv_taps(s) * channels, lo = 0, hi = s->out_w;
    f64* sums = (f64*)work->shared + sample * size;
    memset(sums, 0, (size_t)size * sizeof(f64));
    conv_range(-s->pad_w, s->stride_w, s->in_w, &lo, &hi); /* output positions with all columns inside */
    conv_range((s->kernel_w - 1) * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    for (int64_t oh = 0; oh < s->out_h; oh++) {
        const T* dy = (const T*)work->a + (sample * s->out_h + oh) * s->out_w * s->c_in;
        int64_t h = oh * s->stride_h - s->pad_h, kh0 = 0, kh1 = s->kernel_h;
        conv_range(h, s->dilation_h, s->in_h, &kh0, &kh1);
        const T* x = (const T*)work->b + (sample * s->in_h + h) * row;
        int small = s->kernel_h == 3 && s->kernel_w == 3 && kh1 - kh0 == 3;
        int64_t whole = small ? (hi - lo) / FN(DEPTHWISE_TILE) * FN(DEPTHWISE_TILE) : 0;
        memset(part, 0, (size_t)size * sizeof(T));
        for (int64_t ow = lo; ow < lo + whole; ow += FN(DEPTHWISE_TILE))
            FN(depthwise_last_dots)(s, x + (ow * s->stride_w - s->pad_w) * s->c_in, dy + ow * s->c_in, part, channels);
        for (int64_t kh = kh0; kh < kh1; kh++)
            for (int64_t kw = 0; kw < s->kernel_w; kw++) { /* the rest, tap by tap */
                int64_t first = kw * s->dilation_w - s->pad_w, at = 0, last = s->out_w;
                T* sum = part + (kh * s->kernel_w + kw) * channels;
                conv_range(first, s->stride_w, s->in_w, &at, &last);
                for (int64_t ow = at; ow < last; ow++) {
                    const T *g = dy + ow * s->c_in, *p = x + kh * s->dilation_h * row + (first + ow * s->stride_w) * s->c_in;
                    int64_t c = whole && ow >= lo && ow < lo + whole ? s->c_in / LANES * LANES : 0;
                    for (; c + LANES <= s->c_in; c += LANES) *(VECTOR_U*)(sum + c) = FMA(*(const VECTOR_U*)(g + c), *(const VECTOR_U*)(p + c), *(VECTOR_U*)(sum + c));
                    for (; c < s->c_in; c++) sum[c] = FMA(g[c], p[c], sum[c]);
                }
            }
        for (int64_t k = kh0 * s->kernel_w * channels; k < kh1 * s->kernel_w * channels; k++) sums[k] += part[k];
    }
}
KERNEL_FN void FN(depthwise_last_sum)(const conv_work* work) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES);
    const f64* sums = (const f64*)work->shared;
    for (int64_t tap = 0; tap < conv_taps(s); tap++)
        for (int64_t c = 0; c < s->c_in; c++) {
            f64 sum = 0;
            for (int64_t n = 0; n < s->samples; n++) sum += sums[(n * conv_taps(s) + tap) * channels + c];
            ((T*)work->out)[s->w_first + c * s->w_group + tap * s->w_tap] = (T)sum;
        }
}
KERNEL_FN void FN(depthwise_last_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (work->pass == CONV_WEIGHT) {
            if (phase == 0) FN(depthwise_last_weight)(work, (T*)workspace, item);
            else FN(depthwise_last_sum)(work);
        } else if (phase == 0) {
            FN(depthwise_last_pack)(work);
        } else if (work->pass == CONV_FORWARD) {
            FN(depthwise_last_forward)(work, item);
        } else {
            FN(depthwise_last_input)(work, item);
        }
    }
}
