/* Depthwise convolution of channels_last images, for an element type T (included once per type), or for images of ELEMENT that are converted to T as they are
 * copied: weights, bias and the weights' gradient are T.
 *
 * Forward and the input's gradient: an item is a band of rows of a sample and some vectors of channels. One vector of channels at a time, the
 * rows of the source under a band are copied next to each other between margins of zeros, so that all positions of a line meet the same taps,
 * and DEPTHWISE_WIDE of them share each load of a weight. In the gradient of a strided convolution, positions of one remainder by the stride
 * meet every stride-th tap, as a convolution of stride 1 does. The gradient of the weight sums rows of a sample, then samples. */
enum { FN(DEPTHWISE_BAND) = 384 << 10 /* bytes of the source under a band: all of its channels stay in L2 */, FN(DEPTHWISE_WIDE) = 8, FN(DEPTHWISE_AHEAD) = 4 /* vectors of channels: a pixel's next lines lie where no prefetcher looks */ };

enum { FN(DEPTHWISE_CONVERTS) = sizeof(ELEMENT) != sizeof(T), FN(DEPTHWISE_TILE) = 6 /* positions */ };

/* Lines of source and result of a pass, and the margins of the source's. */
typedef struct {
    int64_t from_h, from_w, to_h, to_w, left, columns; /* columns of a copied line, `left` of them before the image's */
    int64_t vectors, bands, parts;                     /* of channels; items of a sample, and those of a band */
} FN(depthwise_sizes);
KERNEL_INLINE FN(depthwise_sizes) FN(depthwise_sizes_of)(const conv_work* work) {
    const conv_problem* s = &work->s;
    const int input = work->pass == CONV_INPUT;
    const int64_t reach = (s->kernel_w - 1) * s->dilation_w;
    FN(depthwise_sizes) z = {.from_h = input ? s->out_h : s->in_h, .from_w = input ? s->out_w : s->in_w, .to_h = input ? s->in_h : s->out_h, .to_w = input ? s->in_w : s->out_w};
    /* the last tile of a line may read DEPTHWISE_WIDE - 1 positions beyond it */
    if (input) z.left = max_i64(conv_blocks(reach - s->pad_w, s->stride_w), 0), z.columns = z.left + conv_blocks(s->in_w + s->pad_w, s->stride_w) + FN(DEPTHWISE_WIDE);
    else z.left = max_i64(s->pad_w, 0), z.columns = z.left - s->pad_w + (s->out_w + FN(DEPTHWISE_WIDE) - 1) * s->stride_w + reach;
    z.columns = max_i64(z.columns, z.left + z.from_w);
    z.vectors = conv_blocks(s->c_in, LANES);
    z.bands = conv_blocks(z.to_h, work->block);
    z.parts = min_i64(conv_blocks(16, s->samples * z.bands), z.vectors);
    return z;
}
/* Rows [*lo, *hi) of the source that rows [begin, end) of the result meet. */
KERNEL_INLINE void FN(depthwise_source_rows)(const conv_work* work, const FN(depthwise_sizes)* z, int64_t begin, int64_t end, int64_t* lo, int64_t* hi) {
    const conv_problem* s = &work->s;
    const int64_t reach = (s->kernel_h - 1) * s->dilation_h;
    if (work->pass == CONV_INPUT) *lo = max_i64(begin + s->pad_h - reach, 0) / s->stride_h, *hi = max_i64(end - 1 + s->pad_h, -1) / s->stride_h + 1;
    else *lo = begin * s->stride_h - s->pad_h, *hi = (end - 1) * s->stride_h - s->pad_h + reach + 1;
    *lo = min_i64(max_i64(*lo, 0), z->from_h), *hi = max_i64(min_i64(*hi, z->from_h), *lo);
}
/* Elements that are converted are read once for the positions of a line that they meet. */
KERNEL_INLINE int FN(depthwise_slides)(const conv_problem* s) { return FN(DEPTHWISE_CONVERTS) && s->kernel_h == 3 && s->kernel_w == 3 && s->stride_w <= 2 && s->dilation_w == 1; }
/* 3x3 kernels, whose taps are too few to pay for copies, read lines of more than DEPTHWISE_WIDE positions where they lie. */
KERNEL_INLINE int FN(depthwise_is_direct)(const conv_work* work) {
    const conv_problem* s = &work->s;
    return work->pass == CONV_FORWARD && s->kernel_h == 3 && s->kernel_w == 3 && s->out_w > FN(DEPTHWISE_WIDE) && (!FN(DEPTHWISE_CONVERTS) || FN(depthwise_slides)(s));
}
KERNEL_FN void FN(depthwise_last_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES), size = conv_taps(s) * channels * (int64_t)(work->pass == CONV_WEIGHT ? sizeof(f64) : sizeof(T));
    work->phases = 2;
    work->shared_bytes = size * (work->pass == CONV_WEIGHT ? s->samples : 1);
    work->workspace_bytes = conv_taps(s) * channels * (int64_t)sizeof(T);
    if (work->pass == CONV_WEIGHT || FN(depthwise_is_direct)(work)) return;
    work->block = 1;
    FN(depthwise_sizes) z = FN(depthwise_sizes_of)(work);
    const int64_t line = z.from_w * s->c_in * (int64_t)sizeof(T), reach = (s->kernel_h - 1) * s->dilation_h + 1, lines = max_i64(FN(DEPTHWISE_BAND) / line - reach, 4);
    work->block = min_i64(z.to_h, work->pass == CONV_INPUT ? lines * s->stride_h : max_i64(lines / s->stride_h, 1));
    work->workspace_bytes = min_i64(z.from_h, (work->pass == CONV_INPUT ? conv_blocks(work->block + reach, s->stride_h) + 1 : work->block * s->stride_h + reach)) * z.columns * LANES * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(depthwise_last_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (work->pass == CONV_WEIGHT) return phase == 0 ? s->samples : 1;
    if (FN(depthwise_is_direct)(work)) return phase == 0 ? 1 : s->samples * s->out_h;
    FN(depthwise_sizes) z = FN(depthwise_sizes_of)(work);
    return phase == 0 ? 1 : s->samples * z.bands * z.parts;
}
/* weights[vector of channels][tap][LANES] */
KERNEL_FN void FN(depthwise_last_pack)(const conv_work* work) {
    const conv_problem* s = &work->s;
    const T* w = (const T*)work->b + s->w_first;
    T* to = (T*)work->shared;
    for (int64_t c = 0; c < s->c_in; c += LANES, to += conv_taps(s) * LANES) {
        const int64_t n = min_i64(LANES, s->c_in - c);
        if (s->w_tap == 1) {
            FN(conv_transpose)(w + c * s->w_group, s->w_group, to, LANES, n, conv_taps(s), 1);
            continue;
        }
        for (int64_t tap = 0; tap < conv_taps(s); tap++)
            for (int64_t i = 0; i < LANES; i++) to[tap * LANES + i] = i < n ? w[(c + i) * s->w_group + tap * s->w_tap] : 0;
    }
}
/* Taps of a line of the result: `rows` times `taps` of them, steps between their weights and between the sources of the first position. */
typedef struct {
    int64_t rows, taps, w_row, w_tap, x_row, x_tap;
} FN(depthwise_window);
KERNEL_INLINE void FN(depthwise_tile)(const FN(depthwise_window)* t, const T* w, const T* x, int64_t step, VECTOR start, ELEMENT* y, int64_t y_step, int64_t count, int64_t n, const int P) {
    VECTOR sum[FN(DEPTHWISE_WIDE)];
    UNROLL for (int i = 0; i < P; i++) sum[i] = start;
    for (int64_t row = 0; row < t->rows; row++) {
        const T *weight = w + row * t->w_row, *source = x + row * t->x_row;
        for (int64_t tap = 0; tap < t->taps; tap++, weight += t->w_tap, source += t->x_tap) {
            VECTOR v = *(const VECTOR_U*)weight;
            UNROLL for (int i = 0; i < P; i++) sum[i] = FMA(v, *(const VECTOR_U*)(source + i * step), sum[i]);
        }
    }
    UNROLL for (int i = 0; i < P; i++)
        if (i < count) __builtin_prefetch(y + i * y_step + FN(DEPTHWISE_AHEAD) * LANES, 1, 2), FN(conv_put)(y + i * y_step, sum[i], n);
}
KERNEL_INLINE void FN(depthwise_line_of)(const FN(depthwise_window)* t, const T* w, const T* x, int64_t step, VECTOR start, ELEMENT* y, int64_t y_step, int64_t count, int64_t n) {
    const int64_t wide = count % 7 ? FN(DEPTHWISE_WIDE) : 7; /* maps of 7x7, 14x14, 28x28, ... */
    for (; count > 0; count -= wide, x += wide * step, y += wide * y_step) {
        if (count <= 4) FN(depthwise_tile)(t, w, x, step, start, y, y_step, count, n, 4);
        else if (wide == 7) FN(depthwise_tile)(t, w, x, step, start, y, y_step, count, n, 7);
        else FN(depthwise_tile)(t, w, x, step, start, y, y_step, count, n, 8);
    }
}
KERNEL_ONCE void FN(depthwise_line)(const FN(depthwise_window)* t, const T* w, const T* x, int64_t stride, VECTOR start, ELEMENT* y, int64_t y_step, int64_t count, int64_t n) {
    if (stride == 1) FN(depthwise_line_of)(t, w, x, LANES, start, y, y_step, count, n);
    else if (stride == 2) FN(depthwise_line_of)(t, w, x, 2 * LANES, start, y, y_step, count, n);
    else FN(depthwise_line_of)(t, w, x, stride * LANES, start, y, y_step, count, n);
}
#ifndef CONV_PROGRESSION
#define CONV_PROGRESSION
/* The taps of one dimension that meet the result's positions of remainder `at` by the stride (at least one of `taps` is looked at): the first, from one to
 * the next, how many, and where the first one's source lies. */
typedef struct {
    int64_t first, step, count, source;
} conv_progression;
KERNEL_INLINE conv_progression conv_progression_of(int64_t at, int64_t taps, int64_t stride, int64_t pad, int64_t dilation, int64_t limit) {
    conv_progression p = {0, 1, 0, 0};
    for (int64_t k = 0; k < taps; k++) {
        const int64_t from = at + pad - k * dilation;
        if (from % stride || (limit >= 0 && (from < 0 || from / stride >= limit))) continue;
        if (p.count == 0) p.first = k, p.source = from / stride;
        else if (p.count == 1) p.step = k - p.first;
        p.count++;
    }
    return p;
}
#endif
/* One vector of channels of a band; copied: the rows of the source from `top` on. */
KERNEL_INLINE void FN(depthwise_band_forward)(const conv_work* work, const FN(depthwise_sizes)* z, const T* w, const T* copied, int64_t top, VECTOR start, ELEMENT* y, int64_t begin, int64_t end, int64_t n) {
    const conv_problem* s = &work->s;
    const int64_t line = z->columns * LANES;
    for (int64_t oh = begin; oh < end; oh++, y += s->out_w * s->c_in) {
        int64_t h = oh * s->stride_h - s->pad_h, lo = 0, hi = s->kernel_h;
        conv_range(h, s->dilation_h, s->in_h, &lo, &hi);
        FN(depthwise_window) t = {hi - lo, s->kernel_w, s->kernel_w * LANES, LANES, s->dilation_h * line, s->dilation_w * LANES};
        const T* x = copied + (hi > lo ? (h + lo * s->dilation_h - top) * line : 0) + (z->left - s->pad_w) * LANES;
        FN(depthwise_line)(&t, w + lo * s->kernel_w * LANES, x, s->stride_w, start, y, s->c_in, s->out_w, n);
    }
}
KERNEL_INLINE void FN(depthwise_band_input)(const conv_work* work, const FN(depthwise_sizes)* z, const T* w, const T* copied, int64_t top, ELEMENT* dx, int64_t begin, int64_t end, int64_t n) {
    const conv_problem* s = &work->s;
    const int64_t line = z->columns * LANES;
    for (int64_t h = begin; h < end; h++, dx += s->in_w * s->c_in) {
        const conv_progression rows = conv_progression_of(h, s->kernel_h, s->stride_h, s->pad_h, s->dilation_h, s->out_h);
        for (int64_t at = 0; at < min_i64(s->stride_w, s->in_w); at++) {
            const conv_progression cols = conv_progression_of(at, s->kernel_w, s->stride_w, s->pad_w, s->dilation_w, -1);
            const int meets = rows.count > 0 && cols.count > 0;
            FN(depthwise_window) t = {meets ? rows.count : 0, cols.count, rows.step * s->kernel_w * LANES, cols.step * LANES,
                                    -(rows.step * s->dilation_h / s->stride_h) * line, -(cols.step * s->dilation_w / s->stride_w) * LANES};
            const T* x = copied + (meets ? (rows.source - top) * line + (z->left + cols.source) * LANES : 0);
            FN(depthwise_line)(&t, w + (rows.first * s->kernel_w + cols.first) * LANES, x, 1, (VECTOR){0}, dx + at * s->c_in, s->stride_w * s->c_in,
                               conv_blocks(s->in_w - at, s->stride_w), n);
        }
    }
}
KERNEL_FN void FN(depthwise_last_item)(const conv_work* work, T* copied, int64_t item) {
    const conv_problem* s = &work->s;
    FN(depthwise_sizes) z = FN(depthwise_sizes_of)(work);
    const int64_t part = item % z.parts, band = item / z.parts % z.bands, sample = item / (z.parts * z.bands);
    const int64_t begin = band * work->block, end = min_i64(begin + work->block, z.to_h);
    int64_t top, bottom;
    FN(depthwise_source_rows)(work, &z, begin, end, &top, &bottom);
    const ELEMENT* source = (const ELEMENT*)work->a + (sample * z.from_h + top) * z.from_w * s->c_in;
    ELEMENT* result = (ELEMENT*)work->out + (sample * z.to_h + begin) * z.to_w * s->c_in;
    for (int64_t row = 0; row < bottom - top; row++) {
        memset(copied + row * z.columns * LANES, 0, (size_t)(z.left * LANES) * sizeof(T));
        memset(copied + (row * z.columns + z.left + z.from_w) * LANES, 0, (size_t)((z.columns - z.left - z.from_w) * LANES) * sizeof(T));
    }
    for (int64_t vector = z.vectors * part / z.parts; vector < z.vectors * (part + 1) / z.parts; vector++) {
        const int64_t c = vector * LANES, n = min_i64(LANES, s->c_in - c);
        const ELEMENT* x = source + c;
        const T* w = (const T*)work->shared + vector * conv_taps(s) * LANES;
        for (int64_t row = 0; row < bottom - top; row++) {
            T* to = copied + (row * z.columns + z.left) * LANES;
            if (n == LANES)
                for (int64_t col = 0; col < z.from_w; col++, x += s->c_in) {
                    __builtin_prefetch(x + FN(DEPTHWISE_AHEAD) * LANES, 0, 2);
                    *(VECTOR_U*)(to + col * LANES) = FN(conv_take)(x, LANES);
                }
            else
                for (int64_t col = 0; col < z.from_w; col++, x += s->c_in) *(VECTOR_U*)(to + col * LANES) = FN(conv_take)(x, n);
        }
        if (work->pass == CONV_FORWARD) FN(depthwise_band_forward)(work, &z, w, copied, top, work->bias ? FN(conv_load)((const T*)work->bias + c, n) : (VECTOR){0}, result + c, begin, end, n);
        else FN(depthwise_band_input)(work, &z, w, copied, top, result + c, begin, end, n);
    }
}
/* The 3x3 kernel's inner positions, two at a time, all channels of whole vectors: memory is read and written in one direction. */
KERNEL_INLINE void FN(depthwise_last_3x3)(const conv_problem* s, const T* x, const T* w, const T* bias, T* y, int64_t count) {
    int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->dilation_w * s->c_in, step = s->stride_w * s->c_in, channels = s->c_in / LANES * LANES;
    for (int64_t i = 0; i + 2 <= count; i += 2, x += 2 * step, y += 2 * s->c_in)
        for (int64_t c = 0; c < channels; c += LANES) {
            VECTOR first = bias ? (VECTOR)(*(const VECTOR_U*)(bias + c)) : (VECTOR){0}, second = first;
            UNROLL for (int k = 0; k < 9; k++) {
                VECTOR tap = *(const VECTOR_U*)(w + 9 * c + k * LANES);
                const T* p = x + k / 3 * line + k % 3 * pixel + c;
                first = FMA(tap, *(const VECTOR_U*)p, first);
                second = FMA(tap, *(const VECTOR_U*)(p + step), second);
            }
            *(VECTOR_U*)(y + c) = first;
            *(VECTOR_U*)(y + s->c_in + c) = second;
        }
}
/* `count` positions of a line, under `rows` rows of a 3x3 kernel, of one vector of channels. */
KERNEL_INLINE void FN(depthwise_slide)(const conv_problem* s, const ELEMENT* x, const T* w, VECTOR start, ELEMENT* y, int64_t count, int64_t n, const int rows, const int stride) {
    const int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->c_in;
    VECTOR tap[3][3], column[3][3];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < 3; k++) {
        tap[r][k] = *(const VECTOR_U*)(w + (3 * r + k) * LANES);
        if (k < 3 - stride) column[k][r] = FN(conv_take)(x + r * line + k * pixel, n);
    }
    for (int64_t i = 0; i < count; i++, x += stride * pixel, y += pixel) {
        VECTOR sum = start;
        UNROLL for (int k = 3 - stride; k < 3; k++) UNROLL for (int r = 0; r < rows; r++) column[k][r] = FN(conv_take)(x + r * line + k * pixel, n);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < 3; k++) sum = FMA(tap[r][k], column[k][r], sum);
        FN(conv_put)(y, sum, n);
        UNROLL for (int k = 0; k < 3 - stride; k++) UNROLL for (int r = 0; r < rows; r++) column[k][r] = column[k + stride][r];
    }
}
KERNEL_ONCE void FN(depthwise_sliding_line)(const conv_problem* s, const ELEMENT* x, const T* w, VECTOR start, ELEMENT* y, int64_t count, int64_t n, int64_t rows) {
    if (rows == 3 && s->stride_w == 1) FN(depthwise_slide)(s, x, w, start, y, count, n, 3, 1);
    else if (rows == 3) FN(depthwise_slide)(s, x, w, start, y, count, n, 3, 2);
    else if (rows == 2 && s->stride_w == 1) FN(depthwise_slide)(s, x, w, start, y, count, n, 2, 1);
    else if (rows == 2) FN(depthwise_slide)(s, x, w, start, y, count, n, 2, 2);
    else if (s->stride_w == 1) FN(depthwise_slide)(s, x, w, start, y, count, n, 1, 1);
    else FN(depthwise_slide)(s, x, w, start, y, count, n, 1, 2);
}
/* An item is one row of the output. */
KERNEL_FN void FN(depthwise_last_forward)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t sample = item / s->out_h, oh = item % s->out_h;
    int64_t h = oh * s->stride_h - s->pad_h, kh0 = 0, kh1 = s->kernel_h, lo = 0, hi = s->out_w;
    conv_range(h, s->dilation_h, s->in_h, &kh0, &kh1);
    /* output positions [lo, hi) have all their columns inside */
    conv_range(-s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    conv_range((s->kernel_w - 1) * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    const ELEMENT* row = (const ELEMENT*)work->a + (sample * s->in_h + h) * s->in_w * s->c_in;
    ELEMENT* y = (ELEMENT*)work->out + item * s->out_w * s->c_in;
    int64_t whole = kh1 - kh0 == 3 ? (hi - lo) / 2 * 2 : 0, vectors = s->c_in / LANES * LANES; /* positions from lo on, and channels, that are done at once */
    if (FN(DEPTHWISE_CONVERTS)) {
        whole = kh1 > kh0 ? max_i64(hi - lo, 0) : 0, vectors = s->c_in;
        for (int64_t c = 0; c < s->c_in && whole; c += LANES) {
            const int64_t n = min_i64(LANES, s->c_in - c);
            FN(depthwise_sliding_line)(s, row + kh0 * s->dilation_h * s->in_w * s->c_in + (lo * s->stride_w - s->pad_w) * s->c_in + c, (const T*)work->shared + 9 * c + kh0 * 3 * LANES,
                                       work->bias ? FN(conv_load)((const T*)work->bias + c, n) : (VECTOR){0}, y + lo * s->c_in + c, whole, n, kh1 - kh0);
        }
    } else if (whole) {
        FN(depthwise_last_3x3)(s, (const T*)row + (lo * s->stride_w - s->pad_w) * s->c_in, (const T*)work->shared, (const T*)work->bias, (T*)y + lo * s->c_in, whole);
    }
    for (int64_t ow = 0; ow < s->out_w; ow++) {
        int64_t w0 = ow * s->stride_w - s->pad_w, kw0 = 0, kw1 = s->kernel_w, done = whole && ow >= lo && ow < lo + whole;
        if (done && vectors == s->c_in) {
            ow = lo + whole - 1;
            continue;
        }
        conv_range(w0, s->dilation_w, s->in_w, &kw0, &kw1);
        for (int64_t c = done ? vectors : 0; c < s->c_in; c += LANES) {
            int64_t n = min_i64(LANES, s->c_in - c);
            VECTOR sum = work->bias ? FN(conv_load)((const T*)work->bias + c, n) : (VECTOR){0};
            for (int64_t kh = kh0; kh < kh1; kh++)
                for (int64_t kw = kw0; kw < kw1; kw++)
                    sum = FMA(*(const VECTOR_U*)((const T*)work->shared + 9 * c + (kh * 3 + kw) * LANES),
                              FN(conv_take)(row + (kh * s->dilation_h * s->in_w + w0 + kw * s->dilation_w) * s->c_in + c, n), sum);
            FN(conv_put)(y + ow * s->c_in + c, sum, n);
        }
    }
}
/* sums[k][c] += dy x for `count` output positions inside and the 3x3 kernel, all channels of whole vectors */
KERNEL_INLINE void FN(depthwise_last_dots)(const conv_problem* s, const ELEMENT* x, const ELEMENT* dy, int64_t count, T* sums, int64_t row) {
    int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->dilation_w * s->c_in, step = s->stride_w * s->c_in;
    for (int64_t c = 0; c + LANES <= s->c_in; c += LANES) {
        VECTOR sum[9];
        UNROLL for (int k = 0; k < 9; k++) sum[k] = *(const VECTOR_U*)(sums + k * row + c);
        for (int64_t i = 0; i < count; i++) {
            VECTOR g = FN(conv_take)(dy + i * s->c_in + c, LANES);
            const ELEMENT* p = x + i * step + c;
            UNROLL for (int k = 0; k < 9; k++) sum[k] = FMA(g, FN(conv_take)(p + k / 3 * line + k % 3 * pixel, LANES), sum[k]);
        }
        UNROLL for (int k = 0; k < 9; k++) *(VECTOR_U*)(sums + k * row + c) = sum[k];
    }
}
KERNEL_INLINE void FN(depthwise_sliding_dots)(const conv_problem* s, const ELEMENT* x, const ELEMENT* dy, int64_t count, T* sums, int64_t row, int64_t n, const int rows, const int stride) {
    const int64_t line = s->dilation_h * s->in_w * s->c_in, pixel = s->c_in;
    VECTOR sum[3][3], column[3][3];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < 3; k++) {
        sum[r][k] = *(const VECTOR_U*)(sums + (3 * r + k) * row);
        if (k < 3 - stride) column[k][r] = FN(conv_take)(x + r * line + k * pixel, n);
    }
    for (int64_t i = 0; i < count; i++, x += stride * pixel, dy += pixel) {
        const VECTOR g = FN(conv_take)(dy, n);
        UNROLL for (int k = 3 - stride; k < 3; k++) UNROLL for (int r = 0; r < rows; r++) column[k][r] = FN(conv_take)(x + r * line + k * pixel, n);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < 3; k++) sum[r][k] = FMA(g, column[k][r], sum[r][k]);
        UNROLL for (int k = 0; k < 3 - stride; k++) UNROLL for (int r = 0; r < rows; r++) column[k][r] = column[k + stride][r];
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < 3; k++) *(VECTOR_U*)(sums + (3 * r + k) * row) = sum[r][k];
}
KERNEL_ONCE void FN(depthwise_sliding_sums)(const conv_problem* s, const ELEMENT* x, const ELEMENT* dy, int64_t count, T* sums, int64_t row, int64_t n, int64_t rows) {
    if (rows == 3 && s->stride_w == 1) FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 3, 1);
    else if (rows == 3) FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 3, 2);
    else if (rows == 2 && s->stride_w == 1) FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 2, 1);
    else if (rows == 2) FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 2, 2);
    else if (s->stride_w == 1) FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 1, 1);
    else FN(depthwise_sliding_dots)(s, x, dy, count, sums, row, n, 1, 2);
}
/* sums[tap][c] of one sample: an output row in T, rows in double */
KERNEL_FN void FN(depthwise_last_weight)(const conv_work* work, T* part, int64_t sample) {
    const conv_problem* s = &work->s;
    int64_t channels = conv_rounded(s->c_in, LANES), row = s->in_w * s->c_in, size = conv_taps(s) * channels, lo = 0, hi = s->out_w;
    f64* sums = (f64*)work->shared + sample * size;
    memset(sums, 0, (size_t)size * sizeof(f64));
    conv_range(-s->pad_w, s->stride_w, s->in_w, &lo, &hi); /* output positions with all columns inside */
    conv_range((s->kernel_w - 1) * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &lo, &hi);
    const int slides = FN(depthwise_slides)(s);
    for (int64_t oh = 0; oh < s->out_h; oh++) {
        const ELEMENT* dy = (const ELEMENT*)work->a + (sample * s->out_h + oh) * s->out_w * s->c_in;
        int64_t h = oh * s->stride_h - s->pad_h, kh0 = 0, kh1 = s->kernel_h;
        conv_range(h, s->dilation_h, s->in_h, &kh0, &kh1);
        const ELEMENT* x = (const ELEMENT*)work->b + (sample * s->in_h + h) * row;
        int small = s->kernel_h == 3 && s->kernel_w == 3 && kh1 - kh0 == 3;
        int64_t whole = small || (slides && kh1 > kh0) ? max_i64(hi - lo, 0) : 0, vectors = slides ? s->c_in : s->c_in / LANES * LANES;
        memset(part, 0, (size_t)size * sizeof(T));
        if (slides && whole)
            for (int64_t c = 0; c < s->c_in; c += LANES)
                FN(depthwise_sliding_sums)(s, x + kh0 * s->dilation_h * row + (lo * s->stride_w - s->pad_w) * s->c_in + c, dy + lo * s->c_in + c, whole, part + 3 * kh0 * channels + c, channels,
                                           min_i64(LANES, s->c_in - c), kh1 - kh0);
        else
            for (int64_t ow = lo; ow < lo + whole; ow += FN(DEPTHWISE_TILE))
                FN(depthwise_last_dots)(s, x + (ow * s->stride_w - s->pad_w) * s->c_in, dy + ow * s->c_in, min_i64(FN(DEPTHWISE_TILE), lo + whole - ow), part, channels);
        for (int64_t kh = kh0; kh < kh1; kh++)
            for (int64_t kw = 0; kw < s->kernel_w; kw++) { /* the rest, tap by tap */
                int64_t first = kw * s->dilation_w - s->pad_w, at = 0, last = s->out_w;
                T* sum = part + (kh * s->kernel_w + kw) * channels;
                conv_range(first, s->stride_w, s->in_w, &at, &last);
                for (int64_t ow = at; ow < last; ow++) {
                    if (whole && ow == lo && vectors == s->c_in) ow += whole;
                    if (ow >= last) break;
                    const ELEMENT *g = dy + ow * s->c_in, *p = x + kh * s->dilation_h * row + (first + ow * s->stride_w) * s->c_in;
                    int64_t c = whole && ow >= lo && ow < lo + whole ? vectors : 0;
                    for (; c + LANES <= s->c_in; c += LANES) *(VECTOR_U*)(sum + c) = FMA(FN(conv_take)(g + c, LANES), FN(conv_take)(p + c, LANES), *(VECTOR_U*)(sum + c));
                    if (c < s->c_in) *(VECTOR_U*)(sum + c) = FMA(FN(conv_take)(g + c, s->c_in - c), FN(conv_take)(p + c, s->c_in - c), *(VECTOR_U*)(sum + c));
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
        } else if (FN(depthwise_is_direct)(work)) {
            FN(depthwise_last_forward)(work, item);
        } else {
            FN(depthwise_last_item)(work, (T*)workspace, item);
        }
    }
}
