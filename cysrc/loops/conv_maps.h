/* Convolution of small maps tap by tap, for an element type T (included once per type): nothing is multiplied by padding.
 *
 * A kernel of 5x5 on a map of 5x5 lies half in the padding, which every form that gives all output positions all taps multiplies. Here
 * each tap is a GEMM of its own over the positions for which it lies inside. Images become rows [position][sample][channel], so that
 * rows of samples fill the tile where a row of positions would not; the columns of a strided image are sorted by their remainder, so
 * that the positions under one tap are adjacent.
 *
 * One relation serves all passes: output position t meets input position t * stride - pad + tap * dilation. Forward sums the input into
 * outputs, the input's gradient outputs into the input, the weight's gradient products of both for each tap. */
enum { FN(MAPS_BYTES) = 768 << 10 /* of one chunk of channels of the samples that are taken at a time, and of its weights: both in L2 */, FN(MAPS_DEPTH) = 256, FN(MAPS_IN) = 48 /* channels of the input of a block of dw: whole tiles */ };

/* The rows of one image: [panel][block of samples][row][column][sample][width] */
typedef struct {
    int64_t channels, height, width, stride; /* of the image; stride: columns are sorted by their remainder */
    int64_t columns, positions, panel, panels; /* columns with those missing from the last remainders; channels of a panel */
} FN(maps_rows);
typedef struct {
    FN(maps_rows) in, out;
    int64_t samples, blocks; /* of a block, and how many */
} FN(maps_sizes);

KERNEL_INLINE FN(maps_rows) FN(maps_rows_of)(int64_t channels, int64_t height, int64_t width, int64_t stride, int64_t panel) {
    int64_t columns = conv_blocks(width, stride) * stride;
    return (FN(maps_rows)){channels, height, width, stride, columns, height * columns, panel, conv_blocks(channels, panel)};
}
/* One panel of all channels; rows an odd number of cache lines apart do not share sets. */
KERNEL_INLINE int64_t FN(maps_all)(int64_t channels) { return (conv_blocks(channels, LANES) | 1) * LANES; }
KERNEL_INLINE FN(maps_sizes) FN(maps_sizes_of)(const conv_work* work) {
    const conv_problem* s = &work->s;
    const int weight = work->pass == CONV_WEIGHT, input = work->pass == CONV_INPUT;
    FN(maps_sizes) z;
    z.in = FN(maps_rows_of)(s->c_in, s->in_h, s->in_w, s->stride_w, weight ? FN(MAPS_IN) : input ? GEMM_COLS : FN(maps_all)(s->c_in));
    z.out = FN(maps_rows_of)(s->c_out, s->out_h, s->out_w, 1, weight || !input ? GEMM_COLS : FN(maps_all)(s->c_out));
    int64_t fit = FN(MAPS_BYTES) / ((input ? z.out.positions : z.in.positions) * FN(MAPS_DEPTH) * (int64_t)sizeof(T));
    z.blocks = conv_blocks(s->samples, max_i64(fit, 1));
    z.samples = conv_blocks(s->samples, z.blocks);
    z.blocks = conv_blocks(s->samples, z.samples);
    return z;
}
KERNEL_INLINE int64_t FN(maps_elements)(const FN(maps_rows)* r, int64_t samples) { return r->panels * r->panel * r->positions * samples; }
KERNEL_INLINE int64_t FN(maps_column)(const FN(maps_rows)* r, int64_t w) { return w % r->stride * (r->columns / r->stride) + w / r->stride; }
/* Rows of the samples from n on, a panel's, where all samples are `samples` and a block has `count` of them at that place. */
KERNEL_INLINE int64_t FN(maps_block)(const FN(maps_rows)* r, int64_t panel, int64_t n, int64_t samples) { return (panel * samples + n) * r->positions * r->panel; }

/* The rows of one sample from its image, or with `store` the image from its rows (a panel's channels from `first` on), with a bias added. */
KERNEL_ONCE void FN(maps_move)(const FN(maps_rows)* r, const FN(conv_image)* image, T* rows, int64_t panel_step, int64_t count, int64_t first, const T* bias, int store) {
    T strip[FN(CONV_NARROW_ROWS) * 16 * VECTOR_BYTES / sizeof(T)];
    for (int64_t c = 0; c < image->channels; c += LANES) {
        T* to = rows + (first + c) / r->panel * panel_step + (first + c) % r->panel;
        VECTOR start = bias ? FN(conv_load)(bias + c, min_i64(LANES, image->channels - c)) : (VECTOR){0};
        for (int64_t h = 0; h < r->height; h += FN(CONV_NARROW_ROWS))
            for (int64_t w = 0; w < r->width; w += 16) {
                int64_t lines = min_i64(FN(CONV_NARROW_ROWS), r->height - h), cols = min_i64(16, r->width - w);
                if (!store) FN(conv_load_strip)(image, c, h, w, lines, cols, strip);
                for (int64_t line = 0; line < lines; line++)
                    for (int64_t col = 0; col < cols; col++) {
                        VECTOR_U* at = (VECTOR_U*)(to + ((h + line) * r->columns + FN(maps_column)(r, w + col)) * count * r->panel);
                        VECTOR_U* pixel = (VECTOR_U*)(strip + (line * cols + col) * LANES);
                        if (store) *pixel = (VECTOR)*at + start;
                        else *at = *pixel;
                    }
                if (store) FN(conv_store_strip)(image, c, h, w, lines, cols, strip, cols * LANES);
            }
    }
}
/* Phase 0 of a pass: the rows of one sample. */
KERNEL_INLINE void FN(maps_load)(const conv_work* work, const FN(maps_sizes)* z, const FN(maps_rows)* r, const void* data, T* rows, int64_t sample) {
    int64_t first = sample / z->samples * z->samples, count = min_i64(z->samples, work->s.samples - first);
    FN(conv_image) image = FN(conv_image_of)(data, work->s.last, sample, r->height, r->width, r->channels, 0, r->channels);
    FN(maps_move)(r, &image, rows + FN(maps_block)(r, 0, first, work->s.samples) + (sample - first) * r->panel, FN(maps_block)(r, 1, 0, work->s.samples), count, 0, 0, 0);
}
/* Positions t in [*lo, *hi) of a line of outputs for which a tap lies inside, and where the first of them lies. */
KERNEL_INLINE int64_t FN(maps_range)(int64_t start, int64_t stride, int64_t size, int64_t* lo, int64_t* hi) {
    conv_range(start, stride, size, lo, hi);
    return start + *lo * stride;
}

/* ---- forward and gradient of the input: an item of phase 1 is (panel of the result's channels, part of the blocks of samples), which
 * packs its weights for itself ---- */
enum { FN(MAPS_PART) = 64 }; /* samples that pay for packing weights once more */

KERNEL_INLINE int64_t FN(maps_depth)(const conv_problem* s, int64_t summed) {
    int64_t most = min_i64(FN(MAPS_BYTES) / (conv_taps(s) * GEMM_COLS * (int64_t)sizeof(T)), FN(MAPS_DEPTH));
    return conv_blocks(summed, conv_blocks(summed, max_i64(most, 16)));
}
/* An odd number of cache lines from one tap's weights to the next: the stores of a channel's taps do not share sets. */
KERNEL_INLINE int64_t FN(maps_tap)(int64_t depth) { return depth * GEMM_COLS + LANES; }
KERNEL_FN void FN(maps_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    const int input = work->pass == CONV_INPUT;
    const FN(maps_rows) *from = input ? &z.out : &z.in, *to = input ? &z.in : &z.out;
    work->phases = 2;
    work->splits = min_i64(conv_blocks(16, to->panels), max_i64(s->samples / FN(MAPS_PART), 1));
    work->splits = min_i64(work->splits, z.blocks);
    work->block = conv_blocks(z.blocks, work->splits);
    work->chunk = FN(maps_depth)(s, from->channels);
    work->shared_bytes = (FN(maps_elements)(from, s->samples) + FN(maps_elements)(to, s->samples)) * (int64_t)sizeof(T);
    work->workspace_bytes = conv_taps(s) * FN(maps_tap)(work->chunk) * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(maps_items)(const conv_work* work, int64_t phase) {
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    return phase == 0 ? work->s.samples : (work->pass == CONV_INPUT ? z.in.panels : z.out.panels) * work->splits;
}
/* to[tap][i][GEMM_COLS] of `depth` summed channels and up to GEMM_COLS of the result, whose weights lie o, i and tap apart */
KERNEL_ONCE void FN(maps_pack)(const T* w, int64_t o_step, int64_t i_step, int64_t tap_step, int64_t outs, int64_t depth, int64_t taps, T* to) {
    const int64_t apart = FN(maps_tap)(depth);
    if (tap_step == 1 || tap_step == -1) { /* lines of (channel, tap) of one output are turned into columns */
        const int64_t joined = tap_step == 1 && i_step == taps, length = joined ? depth * taps : taps;
        const T* first = tap_step == 1 ? w : w - (taps - 1);
        for (int64_t i0 = 0; i0 < (joined ? 1 : depth); i0++, first += i_step)
            for (int64_t lane = 0; lane < GEMM_COLS; lane += LANES) {
                int64_t tap = 0, i = i0, rows = min_i64(LANES, outs - lane);
                for (int64_t k = 0; k < length; k += LANES) {
                    VECTOR turned[VECTOR_BYTES / sizeof(T)];
                    int64_t n = min_i64(LANES, length - k);
                    if (rows > 0) FN(conv_turned)(first + lane * o_step + k, o_step, rows, n, turned);
                    for (int64_t j = 0; j < n; j++) {
                        *(VECTOR_U*)(to + (tap_step == 1 ? tap : taps - 1 - tap) * apart + i * GEMM_COLS + lane) = rows > 0 ? turned[j] : (VECTOR){0};
                        if (++tap == taps) tap = 0, i++;
                    }
                }
            }
        return;
    }
    for (int64_t tap = 0; tap < taps; tap++, to += apart, w += tap_step)
        for (int64_t lane = 0; lane < GEMM_COLS; lane += LANES) {
            int64_t n = min_i64(LANES, outs - lane);
            const T* from = w + lane * o_step;
            if (n > 0 && i_step == 1) {
                FN(conv_transpose)(from, o_step, to + lane, GEMM_COLS, n, depth, 1);
            } else {
                for (int64_t i = 0; i < depth; i++) {
                    VECTOR v = {0};
                    if (n > 0 && o_step == 1) v = FN(conv_load)(from + i * i_step, n);
                    else
                        for (int64_t o = 0; o < n; o++) v[o] = from[o * o_step + i * i_step];
                    *(VECTOR_U*)(to + i * GEMM_COLS + lane) = v;
                }
            }
        }
}
/* All taps of `depth` summed channels for a block of `count` samples: from and to are its rows. */
KERNEL_ONCE void FN(maps_sum)(const conv_work* work, const FN(maps_sizes)* z, const T* weights, int64_t depth, int64_t count, const T* from, T* to, int64_t cols) {
    const conv_problem* s = &work->s;
    const int input = work->pass == CONV_INPUT;
    const FN(maps_rows) *in = &z->in, *out = &z->out;
    FN(gemm_tile) t = {.a_row = input ? out->panel : in->panel, .a_depth = 1, .b_depth = GEMM_COLS, .c_row = GEMM_COLS, .depth = depth, .segments = 1, .cols = cols, .add = 1};
    for (int64_t kh = 0; kh < s->kernel_h; kh++)
        for (int64_t kw = 0; kw < s->kernel_w; kw++, weights += FN(maps_tap)(depth)) {
            int64_t top = 0, bottom = s->out_h, left = 0, right = s->out_w;
            int64_t h = FN(maps_range)(kh * s->dilation_h - s->pad_h, s->stride_h, s->in_h, &top, &bottom);
            int64_t w = FN(maps_range)(kw * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &left, &right);
            if (left >= right) continue;
            t.b = weights;
            for (int64_t oh = top; oh < bottom; oh++, h += s->stride_h) {
                int64_t rows = (right - left) * count, in_row = (h * in->columns + FN(maps_column)(in, w)) * count, out_row = (oh * out->columns + left) * count;
                t.a = from + (input ? out_row : in_row) * t.a_row;
                t.c = to + (input ? in_row : out_row) * GEMM_COLS;
                for (; rows > 0; rows -= GEMM_ROWS, t.a += GEMM_ROWS * t.a_row, t.c += GEMM_ROWS * GEMM_COLS) {
                    t.rows = min_i64(rows, GEMM_ROWS);
                    FN(gemm_by_row)(&t);
                }
            }
        }
}
KERNEL_INLINE void FN(maps_item)(const conv_work* work, T* weights, int64_t item) {
    const conv_problem* s = &work->s;
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    const int input = work->pass == CONV_INPUT;
    const FN(maps_rows) *from = input ? &z.out : &z.in, *to = input ? &z.in : &z.out;
    const int64_t panel = item / work->splits, begin = item % work->splits * work->block * z.samples, end = min_i64(begin + work->block * z.samples, s->samples);
    const int64_t o_step = input ? s->w_in : s->w_out, i_step = input ? s->w_out : s->w_in, first = panel * GEMM_COLS, outs = min_i64(GEMM_COLS, to->channels - first);
    const T *w = (const T*)work->b + s->w_first + first * o_step, *source = (const T*)work->shared;
    T* sums = (T*)work->shared + FN(maps_elements)(from, s->samples);
    if (begin >= end) return;
    memset(sums + FN(maps_block)(to, panel, begin, s->samples), 0, (size_t)((end - begin) * to->positions * GEMM_COLS) * sizeof(T));
    for (int64_t i = 0; i < from->channels; i += work->chunk) {
        int64_t depth = min_i64(work->chunk, from->channels - i);
        FN(maps_pack)(w + i * i_step, o_step, i_step, s->w_tap, outs, depth, conv_taps(s), weights);
        for (int64_t n = begin; n < end; n += z.samples)
            FN(maps_sum)(work, &z, weights, depth, min_i64(z.samples, s->samples - n), source + FN(maps_block)(from, 0, n, s->samples) + i,
                         sums + FN(maps_block)(to, panel, n, s->samples), outs > LANES ? GEMM_COLS : LANES);
    }
    for (int64_t n = begin; n < end; n++) {
        int64_t block = n / z.samples * z.samples, count = min_i64(z.samples, s->samples - block);
        FN(conv_image) image = FN(conv_image_of)(work->out, s->last, n, to->height, to->width, to->channels, first, outs);
        FN(maps_move)(to, &image, sums + FN(maps_block)(to, panel, block, s->samples) + (n - block) * GEMM_COLS, 0, count, 0, work->bias ? (const T*)work->bias + first : 0, 1);
    }
}
KERNEL_FN void FN(maps_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(maps_load)(work, &z, work->pass == CONV_INPUT ? &z.out : &z.in, work->a, (T*)work->shared, item);
        else FN(maps_item)(work, (T*)workspace, item);
    }
}

/* ---- gradient of the weight: an item of phase 1 is a block of MAPS_IN by GEMM_COLS channels, all of its taps ---- */
KERNEL_FN void FN(maps_plan_weight)(conv_work* work) {
    const conv_problem* s = &work->s;
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    work->phases = 2;
    work->shared_bytes = (FN(maps_elements)(&z.in, s->samples) + FN(maps_elements)(&z.out, s->samples)) * (int64_t)sizeof(T);
    work->workspace_bytes = conv_taps(s) * FN(maps_tap)(FN(MAPS_IN)) * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(maps_items_weight)(const conv_work* work, int64_t phase) {
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    return phase == 0 ? 2 * work->s.samples : z.in.panels * z.out.panels;
}
/* dw from sums[tap][i][GEMM_COLS] of `ins` by `outs` channels */
KERNEL_ONCE void FN(maps_unpack)(const conv_problem* s, const T* sums, int64_t ins, int64_t outs, T* dw) {
    const int64_t taps = conv_taps(s), apart = FN(maps_tap)(FN(MAPS_IN));
    if (s->w_tap != 1) { /* channels_last: w_in is 1 */
        for (int64_t tap = 0; tap < taps; tap++) FN(conv_transpose)(sums + tap * apart, GEMM_COLS, dw + tap * s->w_tap, s->w_out, ins, outs, 0);
        return;
    }
    for (int64_t lane = 0; lane < outs; lane += LANES) {
        int64_t tap = 0, i = 0, length = ins * taps;
        for (int64_t k = 0; k < length; k += LANES) {
            VECTOR lines[VECTOR_BYTES / sizeof(T)], turned[VECTOR_BYTES / sizeof(T)];
            int64_t n = min_i64(LANES, length - k);
            for (int64_t j = 0; j < LANES; j++) {
                lines[j] = j < n ? (VECTOR)(*(const VECTOR_U*)(sums + tap * apart + i * GEMM_COLS + lane)) : (VECTOR){0};
                if (++tap == taps) tap = 0, i++;
            }
            FN(conv_square)((const T*)lines, LANES, (T*)turned, LANES);
            for (int64_t o = 0; o < min_i64(LANES, outs - lane); o++) FN(conv_store)(dw + (lane + o) * s->w_out + k, turned[o], n);
        }
    }
}
KERNEL_INLINE void FN(maps_weight_item)(const conv_work* work, T* sums, int64_t item) {
    const conv_problem* s = &work->s;
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    const FN(maps_rows) *in = &z.in, *out = &z.out;
    const int64_t panel_in = item / out->panels, panel_out = item % out->panels, ins = min_i64(FN(MAPS_IN), s->c_in - panel_in * FN(MAPS_IN));
    const int64_t outs = min_i64(GEMM_COLS, s->c_out - panel_out * GEMM_COLS);
    const T *x = (const T*)work->shared, *dy = x + FN(maps_elements)(in, s->samples);
    FN(gemm_tile) t = {.a_row = 1, .a_depth = FN(MAPS_IN), .b_depth = GEMM_COLS, .c_row = GEMM_COLS, .cols = outs > LANES ? GEMM_COLS : LANES};
    memset(sums, 0, (size_t)(conv_taps(s) * FN(maps_tap)(FN(MAPS_IN))) * sizeof(T));
    for (int64_t n = 0; n < s->samples; n += z.samples) {
        int64_t count = min_i64(z.samples, s->samples - n);
        const T *a = x + FN(maps_block)(in, panel_in, n, s->samples), *b = dy + FN(maps_block)(out, panel_out, n, s->samples);
        for (int64_t tap = 0; tap < conv_taps(s); tap++) {
            int64_t top = 0, bottom = s->out_h, left = 0, right = s->out_w;
            int64_t h = FN(maps_range)(tap / s->kernel_w * s->dilation_h - s->pad_h, s->stride_h, s->in_h, &top, &bottom);
            int64_t w = FN(maps_range)(tap % s->kernel_w * s->dilation_w - s->pad_w, s->stride_w, s->in_w, &left, &right);
            if (left >= right || top >= bottom) continue;
            t.depth = (right - left) * count, t.segments = bottom - top, t.add = n > 0;
            t.a_segment = s->stride_h * in->columns * count * FN(MAPS_IN);
            t.b_skip = (out->columns - (right - left)) * count * GEMM_COLS;
            t.b = b + (top * out->columns + left) * count * GEMM_COLS;
            for (int64_t i = 0; i < ins; i += GEMM_ROWS) {
                t.a = a + (h * in->columns + FN(maps_column)(in, w)) * count * FN(MAPS_IN) + i;
                t.c = sums + tap * FN(maps_tap)(FN(MAPS_IN)) + i * GEMM_COLS;
                t.rows = min_i64(GEMM_ROWS, ins - i);
                FN(gemm_by_column)(&t);
            }
        }
    }
    FN(maps_unpack)(s, sums, ins, outs, (T*)work->out + s->w_first + panel_out * GEMM_COLS * s->w_out + panel_in * FN(MAPS_IN) * s->w_in);
}
KERNEL_FN void FN(maps_run_weight)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    FN(maps_sizes) z = FN(maps_sizes_of)(work);
    const int64_t samples = work->s.samples;
    for (int64_t item = begin; item < end; item++) {
        if (phase == 1) FN(maps_weight_item)(work, (T*)workspace, item);
        else if (item < samples) FN(maps_load)(work, &z, &z.in, work->b, (T*)work->shared, item);
        else FN(maps_load)(work, &z, &z.out, work->a, (T*)work->shared + FN(maps_elements)(&z.in, samples), item - samples);
    }
}
