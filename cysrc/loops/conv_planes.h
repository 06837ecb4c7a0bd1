/* Convolution of NCHW images, for an element type T (included once per type).
 *
 * Rows of the GEMM are output channels, columns output positions: packed weights are broadcast against panels of the input
 * under the kernel, which are packed tile by tile and never for a whole image; a 1x1 convolution reads the input itself. */

enum { FN(PLANES_TILE_BYTES) = 1 << 18, FN(PLANES_PANELS) = 8, FN(PLANES_ROWS) = 144 };
#ifndef CONV_RUNS
#define CONV_RUNS
enum { CONV_PIXELS = 192 }; /* output positions at most that are packed at a time */
/* A run of output positions of a panel that share an output row. */
typedef struct {
    int64_t at, length, h, w; /* first column; input position of kernel element (0, 0) */
} conv_run;
KERNEL_INLINE int conv_runs(const conv_problem* s, int64_t p0, int64_t cols, conv_run* runs) {
    int count = 0;
    for (int64_t j = 0; j < cols;) {
        int64_t oh = (p0 + j) / s->out_w, ow = (p0 + j) % s->out_w, length = min_i64(cols - j, s->out_w - ow);
        runs[count++] = (conv_run){j, length, oh * s->stride_h - s->pad_h, ow * s->stride_w - s->pad_w};
        j += length;
    }
    return count;
}
#if VECTOR_BYTES == 32
/* Lanes 0, 2, 4, ... of 16 adjacent elements. */
KERNEL_INLINE vf32 conv_even_f32(const f32* p) {
    __m256 both = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), 0x88);
    return (vf32)_mm256_permute4x64_pd((__m256d)both, 0xd8);
}
#endif
#endif

/* dst[t] = row[start + t * stride], zero outside [0, size), for t < length; the same for each of `channels` planes */
KERNEL_INLINE void FN(conv_copy)(T* dst, int64_t ld, const T* row, int64_t plane, int64_t channels, int64_t start, int64_t stride, int64_t size,
                                 int64_t length) {
    int64_t lo = 0, hi = length;
    conv_range(start, stride, size, &lo, &hi);
    if (length == GEMM_COLS && hi - lo == length && stride == 1) { /* a panel's whole row, mostly */
        for (int64_t c = 0; c < channels; c++, row += plane, dst += ld)
            UNROLL for (int t = 0; t < 2; t++) *(VECTOR_U*)(dst + t * LANES) = *(const VECTOR_U*)(row + start + t * LANES);
        return;
    }
#if VECTOR_BYTES == 32
    if (length == 16 && sizeof(T) == 4 && hi - lo == length && stride == 2 && start + 32 <= size) {
        for (int64_t c = 0; c < channels; c++, row += plane, dst += ld)
            UNROLL for (int t = 0; t < 16; t += 8) *(vf32_u*)(dst + t) = conv_even_f32((const f32*)row + start + 2 * t);
        return;
    }
#endif
    for (int64_t c = 0; c < channels; c++, row += plane, dst += ld) {
        int64_t t = lo;
        for (int64_t i = 0; i < lo; i++) dst[i] = 0;
        if (stride == 1) {
            for (; t + LANES <= hi; t += LANES) *(VECTOR_U*)(dst + t) = *(const VECTOR_U*)(row + start + t);
        }
#if VECTOR_BYTES == 32
        else if (stride == 2 && sizeof(T) == 4) {
            for (; t + 8 <= hi && start + 2 * t + 15 < size; t += 8) *(vf32_u*)(dst + t) = conv_even_f32((const f32*)row + start + 2 * t);
        }
#endif
        for (; t < hi; t++) dst[t] = row[start + t * stride];
        for (int64_t i = hi; i < length; i++) dst[i] = 0;
    }
}
#if VECTOR_BYTES == 64
/* A run of a panel under all kernel elements: lanes inside the image depend on the column of the kernel alone. With stride 2, neighbouring columns are the
 * even and the odd elements of the same stretch. */
KERNEL_INLINE void FN(planes_pack_run)(const conv_problem* s, const T* x, int64_t channels, const conv_run* run, T* panel, int64_t ld, const int stride) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const int64_t plane = s->in_h * s->in_w, kernel = conv_taps(s);
    const int joined = stride == 2 && s->dilation_w == 1;
    for (int64_t kw = 0; kw < s->kernel_w; kw += 1 + joined)
        for (int64_t t = 0; t < run->length; t += 16) {
            const int64_t at = run->w + kw * s->dilation_w + stride * t;
            const __mmask16 first = lanes_inside(at, s->in_w), second = stride == 2 ? lanes_inside(at + 16, s->in_w) : 0, write = lanes_inside(0, run->length - t);
            const __mmask16 write_odd = joined && kw + 1 < s->kernel_w ? write : 0;
            for (int64_t kh = 0; kh < s->kernel_h; kh++) {
                const int64_t h = run->h + kh * s->dilation_h;
                const int inside = h >= 0 && h < s->in_h;
                const T* p = x + (inside ? h * s->in_w : 0) + at;
                T* q = panel + (kh * s->kernel_w + kw) * ld + run->at + t;
                for (int64_t c = 0; c < channels; c++, p += plane, q += kernel * ld) {
                    const __m512 low = _mm512_maskz_loadu_ps(inside ? first : 0, p);
                    if (stride == 1) {
                        _mm512_mask_storeu_ps(q, write, low);
                        continue;
                    }
                    const __m512 high = _mm512_maskz_loadu_ps(inside ? second : 0, p + 16);
                    _mm512_mask_storeu_ps(q, write, _mm512_permutex2var_ps(low, even, high));
                    if (joined) _mm512_mask_storeu_ps(q + ld, write_odd, _mm512_permutex2var_ps(low, odd, high));
                }
            }
        }
}
#endif
/* panel[k][j] = the input under kernel element k = (ic, kh, kw) of output position p0 + j, zero up to `width` */
KERNEL_ONCE void FN(planes_pack)(const conv_problem* s, const T* x, int64_t channels, int64_t p0, int64_t cols, T* panel, int64_t ld, int64_t width) {
    conv_run runs[CONV_PIXELS];
    int count = conv_runs(s, p0, cols, runs);
    int64_t kernel = conv_taps(s), plane = s->in_h * s->in_w;
    int vectors = 0;
#if VECTOR_BYTES == 64
    vectors = sizeof(T) == 4 && s->stride_w <= 2;
    for (int i = 0; vectors && i < count; i++) {
        if (s->stride_w == 1) FN(planes_pack_run)(s, x, channels, runs + i, panel, ld, 1);
        else FN(planes_pack_run)(s, x, channels, runs + i, panel, ld, 2);
    }
#endif
    for (int64_t kh = 0; kh < s->kernel_h; kh++)
        for (int64_t kw = 0; kw < s->kernel_w; kw++, panel += ld)
            for (int i = 0; !vectors && i < count; i++) {
                int64_t h = runs[i].h + kh * s->dilation_h, w = runs[i].w + kw * s->dilation_w;
                int64_t size = h >= 0 && h < s->in_h ? s->in_w : 0;
                FN(conv_copy)(panel + runs[i].at, kernel * ld, x + (size ? h * s->in_w : 0), plane, channels, w, s->stride_w, size, runs[i].length);
            }
    panel -= kernel * ld;
    if (cols < width)
        for (int64_t k = 0; k < channels * kernel; k++)
            for (int64_t j = cols; j < width; j++) panel[k * ld + j] = 0;
}

/* ---- im2col: an item is some channels of all samples, few enough that both sides stay in the inner caches ---- */
enum { FN(COLUMN_CHANNELS) = 8 };
KERNEL_FN void FN(columns_plan)(conv_work* work) { work->phases = 1, work->shared_bytes = work->workspace_bytes = 0; }
KERNEL_FN int64_t FN(columns_items)(const conv_work* work, int64_t phase) {
    (void)phase;
    return conv_blocks(work->s.c_in, FN(COLUMN_CHANNELS));
}
/* Images of a few positions, where runs are too short for vectors: the places of all elements of a channel are the same in each image. */
enum { FN(COLUMN_PLACES) = 256, FN(COLUMN_FEW) = 16 };
KERNEL_ONCE void FN(columns_by_place)(const conv_work* work, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    const int64_t pixels = conv_pixels(s), row = s->samples * pixels, plane = s->in_h * s->in_w, taps = conv_taps(s);
    int64_t to[FN(COLUMN_PLACES)], outside[FN(COLUMN_PLACES)], places = 0, zeros = 0;
    int32_t from[FN(COLUMN_PLACES)];
    for (int64_t e = 0; e < taps * pixels; e++) {
        const int64_t tap = e / pixels, p = e % pixels, at = tap * row + p;
        const int64_t h = p / s->out_w * s->stride_h - s->pad_h + tap / s->kernel_w * s->dilation_h;
        const int64_t w = p % s->out_w * s->stride_w - s->pad_w + tap % s->kernel_w * s->dilation_w;
        if (h >= 0 && h < s->in_h && w >= 0 && w < s->in_w) to[places] = at, from[places++] = (int32_t)(h * s->in_w + w);
        else outside[zeros++] = at;
    }
    for (int64_t c = begin; c < end; c++)
        for (int64_t n = 0; n < s->samples; n++) {
            const T* x = (const T*)work->a + (n * s->c_in + c) * plane;
            T* y = (T*)work->out + c * taps * row + n * pixels;
            for (int64_t e = 0; e < places; e++) y[to[e]] = x[from[e]];
            for (int64_t e = 0; e < zeros; e++) y[outside[e]] = 0;
        }
}
KERNEL_FN void FN(columns_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    (void)phase, (void)workspace;
    const conv_problem* s = &work->s;
    int64_t pixels = conv_pixels(s), row = s->samples * pixels, last = min_i64(end * FN(COLUMN_CHANNELS), s->c_in);
    if (pixels <= FN(COLUMN_FEW) && conv_taps(s) * pixels <= FN(COLUMN_PLACES) && s->in_h * s->in_w <= INT32_MAX) {
        FN(columns_by_place)(work, begin * FN(COLUMN_CHANNELS), last);
        return;
    }
    for (int64_t c = begin * FN(COLUMN_CHANNELS); c < last; c += FN(COLUMN_CHANNELS))
        for (int64_t n = 0; n < s->samples; n++)
            for (int64_t p = 0; p < pixels; p += CONV_PIXELS) {
                int64_t cols = min_i64(CONV_PIXELS, pixels - p);
                FN(planes_pack)(s, (const T*)work->a + (n * s->c_in + c) * s->in_h * s->in_w, min_i64(FN(COLUMN_CHANNELS), last - c), p, cols,
                                (T*)work->out + c * conv_taps(s) * row + n * pixels + p, row, cols);
            }
}

/* ---- forward: phase 0 packs weights [group][block][k][GEMM_ROWS], an item for each block of output channels; an item of
 * phase 1 is (sample, group, tile of output positions). Where weights and panels of all input channels would take much memory, both phases come
 * again for every `chunk` channels of a group, whose products are added to those before: the sums then are a thousand terms long at least,
 * beside which reading and writing the outputs once more is nothing. ---- */
enum { FN(PLANES_MOST_BYTES) = 4 << 20, FN(PLANES_CHUNK_BYTES) = 1 << 20, FN(PLANES_CHUNK_DEPTH) = 1024 };
KERNEL_INLINE int64_t FN(planes_depth)(const conv_problem* s) { return conv_group_in(s) * conv_taps(s); }

KERNEL_INLINE int64_t FN(planes_channels)(const conv_problem* s) {
    const int64_t channel = conv_taps(s) * (s->groups * conv_rounded(conv_group_out(s), GEMM_ROWS) + GEMM_COLS) * (int64_t)sizeof(T);
    if (conv_group_in(s) * channel <= FN(PLANES_MOST_BYTES)) return conv_group_in(s);
    const int64_t chunk = max_i64(FN(PLANES_CHUNK_BYTES) / channel, conv_blocks(FN(PLANES_CHUNK_DEPTH), conv_taps(s)));
    return conv_blocks(conv_group_in(s), conv_blocks(conv_group_in(s), chunk));
}
KERNEL_FN void FN(planes_plan)(conv_work* work) {
    const conv_problem* s = &work->s;
    work->chunk = FN(planes_channels)(s);
    int64_t depth = work->chunk * conv_taps(s), panel = depth * GEMM_COLS * (int64_t)sizeof(T);
    int64_t panels = min_i64(max_i64(FN(PLANES_TILE_BYTES) / panel, 1), min_i64(FN(PLANES_PANELS), CONV_PIXELS / GEMM_COLS));
    work->block = panels * GEMM_COLS;
    work->phases = 2 * conv_blocks(conv_group_in(s), work->chunk);
    work->shared_bytes = s->groups * conv_rounded(conv_group_out(s), GEMM_ROWS) * depth * (int64_t)sizeof(T);
    work->workspace_bytes = panels * panel;
}
KERNEL_FN int64_t FN(planes_items)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (phase % 2 == 0) return s->groups * conv_blocks(conv_group_out(s), GEMM_ROWS);
    return s->samples * s->groups * conv_blocks(conv_pixels(s), work->block);
}
/* Of the channels begin .. end of a group. */
KERNEL_INLINE void FN(planes_pack_weight)(const conv_work* work, int64_t item, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    int64_t blocks = conv_blocks(conv_group_out(s), GEMM_ROWS), g = item / blocks, o = item % blocks * GEMM_ROWS;
    const T* w = (const T*)work->b + s->w_first + g * s->w_group + o * s->w_out;
    T* to = (T*)work->shared + item * (end - begin) * conv_taps(s) * GEMM_ROWS;
    for (int64_t i = begin; i < end; i++)
        for (int64_t tap = 0; tap < conv_taps(s); tap++)
            for (int64_t r = 0; r < GEMM_ROWS; r++) *to++ = o + r < conv_group_out(s) ? w[r * s->w_out + i * s->w_in + tap * s->w_tap] : 0;
}
KERNEL_INLINE void FN(planes_forward_item)(const conv_work* work, T* panel, int64_t item, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    int64_t channels = end - begin, depth = channels * conv_taps(s), per_group = conv_group_out(s), pixels = conv_pixels(s), blocks = conv_blocks(per_group, GEMM_ROWS);
    int64_t tiles = conv_blocks(pixels, work->block), image = item / tiles, p0 = item % tiles * work->block, p1 = min_i64(p0 + work->block, pixels);
    int64_t group = image % s->groups;
    const T* x = (const T*)work->a + (image * conv_group_in(s) + begin) * s->in_h * s->in_w;
    const T* packed = (const T*)work->shared + group * blocks * depth * GEMM_ROWS;
    T* y = (T*)work->out + image * per_group * pixels;
    int pointwise = conv_is_pointwise(s) && per_group < 2 * depth; /* many rows pay for a panel in one place: its rows are pages apart */
    for (int64_t p = p0; p < p1; p += GEMM_COLS) {
        int64_t cols = min_i64(GEMM_COLS, p1 - p);
        if (!pointwise || cols < GEMM_COLS) FN(planes_pack)(s, x, channels, p, cols, panel + (p - p0) * depth, GEMM_COLS, GEMM_COLS);
    }
    FN(gemm_tile) t = {.a_row = 1, .a_depth = GEMM_ROWS, .c_row = pixels, .depth = depth, .segments = 1, .add = begin > 0};
    for (int64_t block = 0; block < blocks; block++) {
        t.a = packed + block * depth * GEMM_ROWS;
        t.rows = min_i64(GEMM_ROWS, per_group - block * GEMM_ROWS);
        t.row_start = work->bias && begin == 0 ? (const T*)work->bias + group * per_group + block * GEMM_ROWS : 0;
        for (int64_t p = p0; p < p1; p += GEMM_COLS) {
            t.cols = min_i64(GEMM_COLS, p1 - p);
            int direct = pointwise && t.cols == GEMM_COLS;
            t.b = direct ? x + p : panel + (p - p0) * depth;
            t.b_depth = direct ? pixels : GEMM_COLS;
            t.c = y + block * GEMM_ROWS * pixels + p;
            FN(gemm_by_column)(&t);
        }
    }
}
KERNEL_FN void FN(planes_run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    const int64_t first = phase / 2 * work->chunk, last = min_i64(first + work->chunk, conv_group_in(&work->s));
    for (int64_t item = begin; item < end; item++) {
        if (phase % 2 == 0) FN(planes_pack_weight)(work, item, first, last);
        else FN(planes_forward_item)(work, (T*)workspace, item, first, last);
    }
}

/* ---- gradient of the input of a strided convolution: rows k = (ic, kh, kw) of weights' products with the output gradient,
 * added where they came from. Phase 0 packs weights [group][block of rows k][out][GEMM_ROWS]; an item of phase 1 is (sample,
 * group, block of input channels), which it writes completely. ---- */
KERNEL_FN void FN(planes_plan_input)(conv_work* work) {
    const conv_problem* s = &work->s;
    work->block = min_i64(max_i64(FN(PLANES_ROWS) / conv_taps(s), 1), conv_group_in(s));
    work->phases = 2;
    work->shared_bytes = s->groups * conv_rounded(FN(planes_depth)(s), GEMM_ROWS) * conv_group_out(s) * (int64_t)sizeof(T);
    work->workspace_bytes = (work->block * conv_taps(s) + GEMM_ROWS + conv_group_out(s)) * GEMM_COLS * (int64_t)sizeof(T);
}
KERNEL_FN int64_t FN(planes_items_input)(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (phase == 0) return s->groups * conv_blocks(FN(planes_depth)(s), GEMM_ROWS);
    return s->samples * s->groups * conv_blocks(conv_group_in(s), work->block);
}
KERNEL_INLINE void FN(planes_pack_input)(const conv_work* work, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t depth = FN(planes_depth)(s), blocks = conv_blocks(depth, GEMM_ROWS), k = item % blocks * GEMM_ROWS, taps = conv_taps(s);
    const T* w = (const T*)work->b + s->w_first + item / blocks * s->w_group;
    T* to = (T*)work->shared + item * conv_group_out(s) * GEMM_ROWS;
    for (int64_t o = 0; o < conv_group_out(s); o++)
        for (int64_t r = 0; r < GEMM_ROWS; r++)
            *to++ = k + r < depth ? w[o * s->w_out + (k + r) / taps * s->w_in + (k + r) % taps * s->w_tap] : 0;
}
#if VECTOR_BYTES == 64
/* planes_add of one run at stride 2: the sums of two neighbouring columns of the kernel are the even and the odd elements of a stretch. */
KERNEL_INLINE void FN(planes_add_run)(const conv_problem* s, const T* panel, int64_t channels, const conv_run* run, T* dx) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const int64_t plane = s->in_h * s->in_w, kernel = conv_taps(s) * GEMM_COLS;
    const int joined = s->dilation_w == 1;
    for (int64_t kw = 0; kw < s->kernel_w; kw += 1 + joined)
        for (int64_t t = 0; t < run->length; t += 16) {
            const int64_t at = run->w + kw * s->dilation_w + 2 * t, left = 2 * (run->length - t);
            const int both = joined && kw + 1 < s->kernel_w;
            const __mmask16 terms = lanes_inside(0, run->length - t), lanes = both ? 0xffff : 0x5555;
            const __mmask16 first = lanes & lanes_inside(at, s->in_w) & lanes_inside(0, left), second = lanes & lanes_inside(at + 16, s->in_w) & lanes_inside(0, left - 16);
            for (int64_t kh = 0; kh < s->kernel_h; kh++) {
                const int64_t h = run->h + kh * s->dilation_h;
                if (h < 0 || h >= s->in_h) continue;
                const T* from = panel + (kh * s->kernel_w + kw) * GEMM_COLS + run->at + t;
                T* to = dx + h * s->in_w + at;
                for (int64_t c = 0; c < channels; c++, from += kernel, to += plane) {
                    const __m512 even = _mm512_maskz_loadu_ps(terms, from), odd = _mm512_maskz_loadu_ps(both ? terms : 0, from + GEMM_COLS);
                    _mm512_mask_storeu_ps(to, first, _mm512_add_ps(_mm512_maskz_loadu_ps(first, to), _mm512_permutex2var_ps(even, low, odd)));
                    _mm512_mask_storeu_ps(to + 16, second, _mm512_add_ps(_mm512_maskz_loadu_ps(second, to + 16), _mm512_permutex2var_ps(even, high, odd)));
                }
            }
        }
}
#endif
KERNEL_INLINE void FN(planes_add)(const conv_problem* s, const T* panel, int64_t channels, int64_t p0, int64_t cols, T* dx) {
    conv_run runs[GEMM_COLS];
    int count = conv_runs(s, p0, cols, runs);
    int64_t stride = s->stride_w;
#if VECTOR_BYTES == 64
    if (stride == 2 && sizeof(T) == 4) {
        for (int i = 0; i < count; i++) FN(planes_add_run)(s, panel, channels, runs + i, dx);
        return;
    }
#endif
    for (int64_t ic = 0; ic < channels; ic++, dx += s->in_h * s->in_w)
        for (int64_t kh = 0; kh < s->kernel_h; kh++)
            for (int64_t kw = 0; kw < s->kernel_w; kw++, panel += GEMM_COLS)
                for (int i = 0; i < count; i++) {
                    int64_t h = runs[i].h + kh * s->dilation_h, w = runs[i].w + kw * s->dilation_w, lo = 0, hi = runs[i].length;
                    if (h < 0 || h >= s->in_h) continue;
                    conv_range(w, stride, s->in_w, &lo, &hi);
                    T* row = dx + h * s->in_w + w;
                    for (int64_t t = lo; t < hi; t++) row[t * stride] += panel[runs[i].at + t];
                }
}
KERNEL_INLINE void FN(planes_input_item)(const conv_work* work, T* panel, int64_t item) {
    const conv_problem* s = &work->s;
    int64_t depth = FN(planes_depth)(s), per_group = conv_group_out(s), in_group = conv_group_in(s), pixels = conv_pixels(s), taps = conv_taps(s);
    int64_t blocks = conv_blocks(in_group, work->block), image = item / blocks, ic = item % blocks * work->block;
    int64_t channels = min_i64(work->block, in_group - ic), k0 = ic * taps, k1 = k0 + channels * taps;
    const T* packed = (const T*)work->shared + image % s->groups * conv_blocks(depth, GEMM_ROWS) * per_group * GEMM_ROWS;
    const T* dy = (const T*)work->a + image * per_group * pixels;
    T *dx = (T*)work->out + (image * in_group + ic) * s->in_h * s->in_w, *tail = panel + (work->block * taps + GEMM_ROWS) * GEMM_COLS;
    FN(gemm_tile) t = {.a_row = 1, .a_depth = GEMM_ROWS, .c_row = GEMM_COLS, .depth = per_group, .segments = 1, .cols = GEMM_COLS};
    /* blocks of GEMM_ROWS rows start at multiples of GEMM_ROWS: the first may begin before k0 */
    int64_t first = k0 / GEMM_ROWS * GEMM_ROWS, lead = k0 - first;
    memset(dx, 0, (size_t)(channels * s->in_h * s->in_w) * sizeof(T));
    for (int64_t p = 0; p < pixels; p += GEMM_COLS) {
        int64_t cols = min_i64(GEMM_COLS, pixels - p);
        t.b = dy + p, t.b_depth = pixels;
        if (cols < GEMM_COLS) {
            for (int64_t o = 0; o < per_group; o++)
                for (int64_t j = 0; j < GEMM_COLS; j++) tail[o * GEMM_COLS + j] = j < cols ? dy[o * pixels + p + j] : 0;
            t.b = tail, t.b_depth = GEMM_COLS;
        }
        for (int64_t k = first; k < k1; k += GEMM_ROWS) {
            t.a = packed + k / GEMM_ROWS * per_group * GEMM_ROWS;
            t.c = panel + (k - first) * GEMM_COLS;
            t.rows = min_i64(GEMM_ROWS, k1 - k);
            FN(gemm_by_column)(&t);
        }
        FN(planes_add)(s, panel + lead * GEMM_COLS, channels, p, cols, dx);
    }
}
KERNEL_FN void FN(planes_run_input)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) FN(planes_pack_input)(work, item);
        else FN(planes_input_item)(work, (T*)workspace, item);
    }
}
