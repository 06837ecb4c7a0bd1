/* Winograd's minimal filtering for 3x3 kernels of stride 1 in float: F(4x4, 3x3), 36 products for 16 outputs instead of 144.
 *
 * A tile of 4x4 outputs reads 6x6 inputs. With V = B' d B of the input tile, U = G g G' of the kernel and M = sum_c U V, the
 * outputs are A' M A. The gradient of the kernel is the adjoint: with W = A dy A', dU = sum_tiles V W and dw = G' dU G.
 * The gradient of the input is the forward pass of the reversed problem. Each of the 36 sums over channels (or tiles) is a
 * product of matrices for gemm_kernel.h.
 *
 * The interpolation points 0, +-a, +-b and infinity with a = 5/8, b = 3/2 keep the error at about 1.6 times (forward) and 1.2
 * times (gradient of the kernel) that of one chain of fused additions over all terms; 0, +-1, +-2 would give 4 and 2.7.
 *
 * Maps of 2x2 and 5x5 with a padding of 1 are one tile each, of forms of their own, which know that the border is zero. In one dimension the two outputs
 * of two inputs are (x0 + x1) g1 + x1 (g2 - g1) and (x0 + x1) g1 + x0 (g0 - g1): 9 products for a map instead of 36. Five outputs are F(4, 3) and
 * x3 g0 + x4 g1: 64 products for a map instead of the 144 of four tiles of 4x4. */
#define WINO_A 0.625f
#define WINO_B 1.5f
#define WINO_A2 (WINO_A * WINO_A)
#define WINO_B2 (WINO_B * WINO_B)
enum { WINO_OUT = 4, WINO_IN = 6, WINO_POINTS = 36, WINO_MOST_SIDE = 8, WINO_DEPTH = 128, WINO_RUN = 32, WINO_CHANNELS = 64, WINO_TAKEN = 16, WINO_STREAMED = 16 << 20 /* bytes: half of a last-level cache */, WINO_SHARED = 12 << 20, WINO_CHUNK = 3 << 20 };
#define WINO_W (VECTOR_BYTES / 4)
#define WINO_PANEL (2 * WINO_W)

/* A tile of out x out outputs reads in x in inputs, which begin `margin` inside of the padding, and has side x side points. */
typedef struct {
    int64_t out, in, margin, side, points;
} wino_form;
KERNEL_ONCE const wino_form* wino_form_of(const conv_problem* s) {
    static const wino_form tile_4 = {WINO_OUT, WINO_IN, 0, WINO_IN, WINO_POINTS}, map_2 = {2, 2, 1, 3, 9}, map_5 = {5, 6, 0, 8, 64};
    const int whole = s->in_h == s->in_w && s->pad_h == 1 && s->pad_w == 1 && s->samples >= 4;
    return whole && s->in_h == 2 ? &map_2 : whole && s->in_h == 5 ? &map_5 : &tile_4;
}

KERNEL_INLINE int64_t wino_tiles_h(const conv_problem* s) { return conv_blocks(s->out_h, wino_form_of(s)->out); }
KERNEL_INLINE int64_t wino_tiles_w(const conv_problem* s) { return conv_blocks(s->out_w, wino_form_of(s)->out); }
KERNEL_INLINE int64_t wino_all_tiles(const conv_problem* s) { return s->samples * wino_tiles_h(s) * wino_tiles_w(s); }
KERNEL_INLINE int64_t wino_panels(int64_t channels) { return conv_blocks(channels, WINO_PANEL); }

/* Elements from one point's matrix to the next: an odd number of cache lines, so that the stores of a tile do not share sets. */
KERNEL_INLINE int64_t wino_apart(int64_t elements) { return (conv_blocks(elements, 16) | 1) * 16; }

/* Where it saves more than its transforms cost: enough channels, enough tiles to pay for the kernel's, few outputs beyond the edge. */
KERNEL_INLINE int wino_fits(const conv_problem* s) {
    int64_t tiles = wino_all_tiles(s);
    return s->kernel_h == 3 && s->kernel_w == 3 && s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 && s->dilation_w == 1 &&
           s->groups == 1 && s->c_in >= 16 && s->c_out >= 16 && s->c_in * s->c_out <= 1 << 20 && tiles >= 4 &&
           wino_form_of(s)->points * wino_tiles_h(s) * wino_tiles_w(s) * 4 <= 9 * s->out_h * s->out_w * 3;
}

/* d -> B' d, six vectors `step` apart */
KERNEL_INLINE void wino_input(const f32* d, int64_t step, f32* v, int64_t out_step) {
    vf32 d0 = *(const vf32_u*)d, d1 = *(const vf32_u*)(d + step), d2 = *(const vf32_u*)(d + 2 * step);
    vf32 d3 = *(const vf32_u*)(d + 3 * step), d4 = *(const vf32_u*)(d + 4 * step), d5 = *(const vf32_u*)(d + 5 * step);
    const vf32 a2 = splat_f32(WINO_A2), b2 = splat_f32(WINO_B2);
    vf32 even = FMA(-b2, d2, d4), odd = FMA(-b2, d1, d3);
    vf32 even_b = FMA(-a2, d2, d4), third = FMA(-a2, d1, d3), a = splat_f32(WINO_A), b = splat_f32(WINO_B);
    *(vf32_u*)v = FMA(b2, FMA(a2, d0, -d2), even_b);
    *(vf32_u*)(v + out_step) = FMA(a, odd, even);
    *(vf32_u*)(v + 2 * out_step) = FMA(-a, odd, even);
    *(vf32_u*)(v + 3 * out_step) = FMA(b, third, even_b);
    *(vf32_u*)(v + 4 * out_step) = FMA(-b, third, even_b);
    *(vf32_u*)(v + 5 * out_step) = FMA(-b2, third, FMA(-a2, d3, d5));
}
/* m -> A' m, six to four */
KERNEL_INLINE void wino_output(const f32* m, int64_t step, f32* y, int64_t out_step, vf32 start) {
    vf32 m0 = *(const vf32_u*)m, m1 = *(const vf32_u*)(m + step), m2 = *(const vf32_u*)(m + 2 * step);
    vf32 m3 = *(const vf32_u*)(m + 3 * step), m4 = *(const vf32_u*)(m + 4 * step), m5 = *(const vf32_u*)(m + 5 * step);
    vf32 sum_a = m1 + m2, sum_b = m3 + m4, difference_a = WINO_A * (m1 - m2), difference_b = WINO_B * (m3 - m4);
    *(vf32_u*)y = (m0 + (sum_a + sum_b)) + start;
    *(vf32_u*)(y + out_step) = (difference_a + difference_b) + start;
    *(vf32_u*)(y + 2 * out_step) = FMA(splat_f32(WINO_A2), sum_a, WINO_B2 * sum_b) + start;
    *(vf32_u*)(y + 3 * out_step) = (m5 + FMA(splat_f32(WINO_A2), difference_a, WINO_B2 * difference_b)) + start;
}
/* y -> A y, four to six */
KERNEL_INLINE void wino_gradient(const f32* y, int64_t step, f32* m, int64_t out_step) {
    vf32 y0 = *(const vf32_u*)y, y1 = *(const vf32_u*)(y + step), y2 = *(const vf32_u*)(y + 2 * step), y3 = *(const vf32_u*)(y + 3 * step);
    const vf32 a2 = splat_f32(WINO_A2), b2 = splat_f32(WINO_B2);
    vf32 even_a = FMA(a2, y2, y0), odd_a = FMA(a2, y3, y1), a = splat_f32(WINO_A);
    vf32 even_b = FMA(b2, y2, y0), odd_b = FMA(b2, y3, y1), b = splat_f32(WINO_B);
    *(vf32_u*)m = y0;
    *(vf32_u*)(m + out_step) = FMA(a, odd_a, even_a);
    *(vf32_u*)(m + 2 * out_step) = FMA(-a, odd_a, even_a);
    *(vf32_u*)(m + 3 * out_step) = FMA(b, odd_b, even_b);
    *(vf32_u*)(m + 4 * out_step) = FMA(-b, odd_b, even_b);
    *(vf32_u*)(m + 5 * out_step) = y3;
}
#define WINO_SCALE_0 (1 / (WINO_A2 * WINO_B2))
#define WINO_SCALE_A (1 / (2 * WINO_A2 * (WINO_A2 - WINO_B2)))
#define WINO_SCALE_B (1 / (2 * WINO_B2 * (WINO_B2 - WINO_A2)))
/* g -> G g, three to six, and u -> G' u, six to three */
KERNEL_INLINE void wino_kernel(const vf32* g, int step, vf32* u, int out_step) {
    vf32 even_a = WINO_SCALE_A * FMA(splat_f32(WINO_A2), g[2 * step], g[0]), odd_a = WINO_SCALE_A * WINO_A * g[step];
    vf32 even_b = WINO_SCALE_B * FMA(splat_f32(WINO_B2), g[2 * step], g[0]), odd_b = WINO_SCALE_B * WINO_B * g[step];
    u[0] = WINO_SCALE_0 * g[0];
    u[5 * out_step] = g[2 * step];
    u[out_step] = even_a + odd_a, u[2 * out_step] = even_a - odd_a;
    u[3 * out_step] = even_b + odd_b, u[4 * out_step] = even_b - odd_b;
}
KERNEL_INLINE void wino_kernel_gradient(const vf32* u, int step, vf32* g, int out_step) {
    vf32 sum_a = WINO_SCALE_A * (u[step] + u[2 * step]), sum_b = WINO_SCALE_B * (u[3 * step] + u[4 * step]);
    g[0] = FMA(splat_f32(WINO_SCALE_0), u[0], sum_a + sum_b);
    g[out_step] = FMA(splat_f32(WINO_SCALE_A * WINO_A), u[step] - u[2 * step], WINO_SCALE_B * WINO_B * (u[3 * step] - u[4 * step]));
    g[2 * out_step] = u[5 * step] + FMA(splat_f32(WINO_A2), sum_a, WINO_B2 * sum_b);
}

/* The same in one dimension for maps of 2x2 (side 3) and of 5x5 (side 8) */
KERNEL_ONCE void wino_map_input(int64_t side, const f32* d, int64_t step, f32* v, int64_t out_step) {
    if (side == 3) {
        vf32 d0 = *(const vf32_u*)d, d1 = *(const vf32_u*)(d + step);
        *(vf32_u*)v = d0 + d1, *(vf32_u*)(v + out_step) = d0, *(vf32_u*)(v + 2 * out_step) = d1;
        return;
    }
    wino_input(d, step, v, out_step);
    *(vf32_u*)(v + 6 * out_step) = *(const vf32_u*)(d + 4 * step), *(vf32_u*)(v + 7 * out_step) = *(const vf32_u*)(d + 5 * step);
}
KERNEL_ONCE void wino_map_output(int64_t side, const f32* m, int64_t step, f32* y, int64_t out_step, vf32 start) {
    if (side == 3) {
        vf32 m0 = *(const vf32_u*)m, m1 = *(const vf32_u*)(m + step), m2 = *(const vf32_u*)(m + 2 * step);
        *(vf32_u*)y = (m0 + m2) + start, *(vf32_u*)(y + out_step) = (m0 + m1) + start;
        return;
    }
    wino_output(m, step, y, out_step, start);
    *(vf32_u*)(y + 4 * out_step) = (*(const vf32_u*)(m + 6 * step) + *(const vf32_u*)(m + 7 * step)) + start;
}
KERNEL_ONCE void wino_map_gradient(int64_t side, const f32* y, int64_t step, f32* m, int64_t out_step) {
    if (side == 3) {
        vf32 y0 = *(const vf32_u*)y, y1 = *(const vf32_u*)(y + step);
        *(vf32_u*)m = y0 + y1, *(vf32_u*)(m + out_step) = y1, *(vf32_u*)(m + 2 * out_step) = y0;
        return;
    }
    wino_gradient(y, step, m, out_step);
    *(vf32_u*)(m + 6 * out_step) = *(vf32_u*)(m + 7 * out_step) = *(const vf32_u*)(y + 4 * step);
}
KERNEL_INLINE void wino_map_kernel(const int side, const vf32* g, int64_t step, vf32* u) {
    if (side == 3) {
        u[0] = g[step], u[1] = g[0] - g[step], u[2] = g[2 * step] - g[step];
        return;
    }
    wino_kernel(g, (int)step, u, 1);
    u[6] = g[0], u[7] = g[step];
}
KERNEL_INLINE void wino_map_kernel_gradient(const int side, const vf32* u, vf32* g, int64_t step) {
    if (side == 3) {
        g[0] = u[1], g[step] = u[0] - (u[1] + u[2]), g[2 * step] = u[2];
        return;
    }
    wino_kernel_gradient(u, 1, g, (int)step);
    g[0] += u[6], g[step] += u[7];
}

/* ---- forward: phase 0 transforms the kernel, an item for each panel of output channels; an item of phase 1 is a block of
 * tiles (and a part of the output channels where there are few blocks) ---- */

KERNEL_FN void wino_plan(conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t inputs = conv_rounded(s->c_in, WINO_W), panels = wino_panels(s->c_out), tiles = wino_all_tiles(s);
    int64_t fit = (600 << 10) / (points * 4 * (inputs + panels * WINO_PANEL));
    work->block = min_i64(max_i64(fit / GEMM_ROWS * GEMM_ROWS, 48), 96);
    work->splits = max_i64(min_i64(8 / conv_blocks(tiles, work->block), s->c_out / WINO_CHANNELS), 1);
    int64_t split = conv_blocks(panels, work->splits);
    int64_t strip = WINO_IN * (work->block * WINO_OUT + 2) * WINO_W;
    work->phases = 2;
    work->shared_bytes = points * wino_apart(panels * WINO_PANEL * s->c_in) * 4;
    work->workspace_bytes = (strip + points * (wino_apart(work->block * inputs) + wino_apart(work->block * split * WINO_PANEL))) * 4;
}
KERNEL_FN int64_t wino_items(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    if (phase == 0) return wino_panels(s->c_out);
    return conv_blocks(wino_all_tiles(s), work->block) * work->splits;
}
/* taps[9][WINO_W]: a lane for each of the n output channels from w on */
KERNEL_INLINE void wino_gather_taps(const conv_problem* s, const f32* w, int64_t n, vf32* taps) {
    f32 lanes[(9 + WINO_W) * WINO_W], copied[10 * WINO_W];
    if (s->w_out == 1) { /* channels_last, reversed */
        for (int tap = 0; tap < 9; tap++) taps[tap] = conv_load_f32(w + tap * s->w_tap, n);
        return;
    }
    if (s->w_tap == 1 || s->w_tap == -1) {
        /* whole squares are faster than nine columns: copies may be read beyond them */
        const f32* from = w + (s->w_tap < 0 ? -8 : 0);
        if (s->w_out == 9) {
            for (int line = 0; line < 9; line++) __builtin_prefetch(from + 2 * s->w_in + line * WINO_W);
            from = memcpy(copied, from, (size_t)n * 9 * sizeof(f32));
        }
        conv_transpose_f32(from, s->w_out, lanes, WINO_W, n, conv_rounded(9, WINO_W), 1);
    } else {
        for (int tap = 0; tap < 9; tap++)
            for (int64_t o = 0; o < WINO_W; o++) lanes[tap * WINO_W + o] = o < n ? w[o * s->w_out + tap * s->w_tap] : 0;
    }
    for (int tap = 0; tap < 9; tap++) taps[tap] = *(const vf32_u*)(lanes + (s->w_tap == -1 ? 8 - tap : tap) * WINO_W);
}
/* Stores past the caches: a transformed kernel larger than they are would be read before it is written. They are ordered for other threads at the end. */
#if VECTOR_BYTES == 64
KERNEL_INLINE void wino_stream(f32* to, vf32 v) { _mm512_stream_ps(to, (__m512)v); }
KERNEL_INLINE void wino_streams_end(void) { _mm_sfence(); }
#elif VECTOR_BYTES == 32
KERNEL_INLINE void wino_stream(f32* to, vf32 v) { _mm256_stream_ps(to, (__m256)v); }
KERNEL_INLINE void wino_streams_end(void) { _mm_sfence(); }
#else
KERNEL_INLINE void wino_stream(f32* to, vf32 v) { *(vf32_u*)to = v; }
KERNEL_INLINE void wino_streams_end(void) {}
#endif
/* A map's: rows[side][3] = G g, all[side][side] */
KERNEL_INLINE void wino_transform_map_kernel(const int side, const vf32* g, vf32* rows, vf32* all) {
    UNROLL for (int j = 0; j < 3; j++) {
        vf32 column[WINO_MOST_SIDE];
        wino_map_kernel(side, g + j, 3, column);
        UNROLL for (int r = 0; r < side; r++) rows[3 * r + j] = column[r];
    }
    UNROLL for (int r = 0; r < side; r++) wino_map_kernel(side, rows + 3 * r, 1, all + side * r);
}
/* u[xi][i - begin][WINO_PANEL] of input channels `begin` to `end` and a panel of output channels; a point's matrix is `point` after the one before */
KERNEL_ONCE void wino_transform_kernel(const conv_work* work, int64_t panel, int64_t begin, int64_t end, f32* u, int64_t point, int streamed) {
    const conv_problem* s = &work->s;
    const wino_form* form = wino_form_of(s);
    int64_t outputs = min_i64(WINO_PANEL, s->c_out - panel * WINO_PANEL);
    const f32* weight = (const f32*)work->b + s->w_first + panel * WINO_PANEL * s->w_out;
    /* kernels of successive input channels are adjacent, so that the taps of several are transposed together: 9 squares for 16 channels */
    f32 taken[WINO_PANEL * 9 * WINO_TAKEN];
    const int far = s->w_in == 9 && (s->w_tap == 1 || s->w_tap == -1), last = s->w_in == 1, back = s->w_tap < 0 && far ? 8 : 0;
    for (int64_t i0 = begin; i0 < end; i0 += WINO_TAKEN) {
        int64_t channels = min_i64(WINO_TAKEN, end - i0);
        const f32* from = weight + i0 * s->w_in;
        for (int64_t lane = 0; (far || last) && lane < WINO_PANEL; lane += WINO_W) {
            f32* to = taken + lane * 9 * WINO_TAKEN;
            const f32* w = from + lane * s->w_out - back;
            int64_t n = min_i64(outputs - lane, WINO_W);
            if (n <= 0) memset(to, 0, (size_t)(9 * channels * WINO_W) * sizeof(f32));
            else if (far) conv_transpose_f32(w, s->w_out, to, WINO_W, n, 9 * channels, 1);
            else for (int tap = 0; tap < 9; tap++) conv_transpose_f32(w + tap * s->w_tap, s->w_out, to + tap * WINO_W, 9 * WINO_W, n, channels, 1);
        }
        for (int64_t i = 0; i < channels; i++, u += WINO_PANEL)
            for (int64_t lane = 0; lane < WINO_PANEL; lane += WINO_W) {
                vf32 g[9], rows[3 * WINO_MOST_SIDE], all[WINO_MOST_SIDE * WINO_MOST_SIDE];
                const f32* taps = taken + lane * 9 * WINO_TAKEN + 9 * i * WINO_W;
                if (far || last) for (int tap = 0; tap < 9; tap++) g[tap] = *(const vf32_u*)(taps + (back ? 8 - tap : tap) * WINO_W);
                else wino_gather_taps(s, from + lane * s->w_out + i * s->w_in, max_i64(min_i64(outputs - lane, WINO_W), 0), g);
                if (form->points != WINO_POINTS) {
                    if (form->side == 3) wino_transform_map_kernel(3, g, rows, all);
                    else wino_transform_map_kernel(8, g, rows, all);
                    if (streamed) for (int64_t xi = 0; xi < form->points; xi++) wino_stream(u + xi * point + lane, all[xi]);
                    else for (int64_t xi = 0; xi < form->points; xi++) *(vf32_u*)(u + xi * point + lane) = all[xi];
                    continue;
                }
                UNROLL for (int j = 0; j < 3; j++) wino_kernel(g + j, 3, rows + j, 3);
                UNROLL for (int j = 0; j < WINO_IN; j++) wino_kernel(rows + 3 * j, 1, all + WINO_IN * j, 1);
                if (streamed) UNROLL for (int xi = 0; xi < WINO_POINTS; xi++) wino_stream(u + xi * point + lane, all[xi]);
                else UNROLL for (int xi = 0; xi < WINO_POINTS; xi++) *(vf32_u*)(u + xi * point + lane) = all[xi];
            }
    }
}
/* One run of tiles of a tile row, LANES channels: strip -> v[xi][tile]. A map is one tile. */
KERNEL_ONCE void wino_transform_input(const wino_form* form, f32* strip, int64_t tiles, f32* v, int64_t point, int64_t tile) {
    if (form->points != WINO_POINTS) {
        const int64_t side = form->side, in = form->in;
        f32 columns[WINO_MOST_SIDE * WINO_IN * WINO_W];
        for (int64_t col = 0; col < in; col++) wino_map_input(side, strip + col * WINO_W, in * WINO_W, columns + col * WINO_W, in * WINO_W);
        for (int64_t r = 0; r < side; r++) wino_map_input(side, columns + r * in * WINO_W, WINO_W, v + r * side * point, point);
        return;
    }
    int64_t cols = tiles * WINO_OUT + 2, row = cols * WINO_W;
    for (int64_t col = 0; col < cols; col++) wino_input(strip + col * WINO_W, row, strip + col * WINO_W, row);
    for (int64_t t = 0; t < tiles; t++, v += tile)
        UNROLL for (int r = 0; r < WINO_IN; r++)
            wino_input(strip + r * row + t * WINO_OUT * WINO_W, WINO_W, v + r * WINO_IN * point, point);
}
KERNEL_ONCE void wino_transform_output(const wino_form* form, const f32* m, int64_t point, int64_t tile, int64_t tiles, f32* strip, vf32 start) {
    if (form->points != WINO_POINTS) {
        const int64_t side = form->side, out = form->out;
        f32 columns[WINO_MOST_SIDE * WINO_IN * WINO_W];
        for (int64_t r = 0; r < side; r++) wino_map_output(side, m + r * side * point, point, columns + r * out * WINO_W, WINO_W, (vf32){0});
        for (int64_t col = 0; col < out; col++) wino_map_output(side, columns + col * WINO_W, out * WINO_W, strip + col * WINO_W, out * WINO_W, start);
        return;
    }
    int64_t cols = tiles * WINO_OUT, row = cols * WINO_W;
    for (int64_t t = 0; t < tiles; t++, m += tile)
        UNROLL for (int r = 0; r < WINO_IN; r++)
            wino_output(m + r * WINO_IN * point, point, strip + r * row + t * WINO_OUT * WINO_W, WINO_W, (vf32){0});
    for (int64_t col = 0; col < cols; col++) wino_output(strip + col * WINO_W, row, strip + col * WINO_W, row, start);
}
KERNEL_ONCE void wino_transform_gradient(const wino_form* form, f32* strip, int64_t tiles, f32* w, int64_t point, int64_t tile) {
    if (form->points != WINO_POINTS) {
        const int64_t side = form->side, out = form->out;
        f32 columns[WINO_MOST_SIDE * WINO_IN * WINO_W];
        for (int64_t col = 0; col < out; col++) wino_map_gradient(side, strip + col * WINO_W, out * WINO_W, columns + col * WINO_W, out * WINO_W);
        for (int64_t r = 0; r < side; r++) wino_map_gradient(side, columns + r * out * WINO_W, WINO_W, w + r * side * point, point);
        return;
    }
    int64_t cols = tiles * WINO_OUT, row = cols * WINO_W;
    for (int64_t col = 0; col < cols; col++) wino_gradient(strip + col * WINO_W, row, strip + col * WINO_W, row);
    for (int64_t t = 0; t < tiles; t++, w += tile)
        UNROLL for (int r = 0; r < WINO_IN; r++)
            wino_gradient(strip + r * row + t * WINO_OUT * WINO_W, WINO_W, w + r * WINO_IN * point, point);
}

/* The run of tiles from `tile` on that share a tile row: where it starts in the image, and how many of `left` it holds. */
typedef struct {
    int64_t sample, h, w, count;
} wino_run;
KERNEL_INLINE wino_run wino_run_at(const conv_problem* s, int64_t tile, int64_t left) {
    int64_t across = wino_tiles_w(s), row = tile / across, col = tile % across, out = wino_form_of(s)->out;
    return (wino_run){row / wino_tiles_h(s), row % wino_tiles_h(s) * out, col * out, min_i64(left, across - col)};
}

/* v[xi][tile][channel] of tiles first to first + tiles */
KERNEL_INLINE void wino_read_tiles(const conv_work* work, int64_t first, int64_t tiles, f32* strip, f32* v, int64_t v_point, int64_t v_tile) {
    const conv_problem* s = &work->s;
    const wino_form* form = wino_form_of(s);
    for (int64_t t = 0; t < tiles;) {
        wino_run run = wino_run_at(s, first + t, tiles - t);
        conv_image_f32 x = conv_image_of_f32(work->a, s->last, run.sample, s->in_h, s->in_w, s->c_in, 0, s->c_in);
        for (int64_t c = 0; c < s->c_in; c += WINO_W) {
            conv_load_strip_f32(&x, c, run.h - s->pad_h + form->margin, run.w - s->pad_w + form->margin, form->in, (run.count - 1) * form->out + form->in, strip);
            wino_transform_input(form, strip, run.count, v + t * v_tile + c, v_point, v_tile);
        }
        t += run.count;
    }
}
/* The outputs of those tiles and of `width` channels from o0 on, from m[xi][tile][width] */
KERNEL_INLINE void wino_write_tiles(const conv_work* work, int64_t first, int64_t tiles, int64_t o0, int64_t width, f32* strip, const f32* m, int64_t m_point) {
    const conv_problem* s = &work->s;
    const wino_form* form = wino_form_of(s);
    for (int64_t t = 0; t < tiles;) {
        wino_run run = wino_run_at(s, first + t, tiles - t);
        conv_image_f32 y = conv_image_of_f32(work->out, s->last, run.sample, s->out_h, s->out_w, s->c_out, 0, s->c_out);
        for (int64_t c = 0; c < width && o0 + c < s->c_out; c += WINO_W) {
            int64_t o = o0 + c;
            vf32 start = work->bias ? conv_load_f32((const f32*)work->bias + o, s->c_out - o) : (vf32){0};
            wino_transform_output(form, m + t * width + c, m_point, width, run.count, strip, start);
            conv_store_strip_f32(&y, o, run.h, run.w, form->out, run.count * form->out, strip, run.count * form->out * WINO_W);
        }
        t += run.count;
    }
}
KERNEL_INLINE void wino_forward_item(const conv_work* work, f32* workspace, int64_t item) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t all = wino_all_tiles(s), panels = wino_panels(s->c_out), inputs = conv_rounded(s->c_in, WINO_W);
    int64_t first = item / work->splits * work->block, tiles = min_i64(work->block, all - first);
    int64_t split = conv_blocks(panels, work->splits), panel0 = item % work->splits * split, count = min_i64(split, panels - panel0);
    if (count <= 0) return;
    int64_t width = count * WINO_PANEL, v_point = wino_apart(work->block * inputs), m_point = wino_apart(work->block * width);
    int64_t u_point = wino_apart(panels * WINO_PANEL * s->c_in);
    f32 *v = workspace, *m = v + points * v_point, *strip = m + points * m_point;
    wino_read_tiles(work, first, tiles, strip, v, v_point, inputs);
    gemm_tile_f32 g = {.a_row = inputs, .a_depth = 1, .b_depth = WINO_PANEL, .c_row = width, .depth = s->c_in, .segments = 1, .cols = WINO_PANEL};
    for (int64_t xi = 0; xi < points; xi++)
        for (int64_t panel = 0; panel < count; panel++) {
            g.b = (const f32*)work->shared + xi * u_point + (panel0 + panel) * s->c_in * WINO_PANEL;
            for (int64_t t = 0; t < tiles; t += GEMM_ROWS) {
                g.rows = min_i64(GEMM_ROWS, tiles - t);
                g.a = v + xi * v_point + t * inputs;
                g.c = m + xi * m_point + t * width + panel * WINO_PANEL;
                gemm_by_row_f32(&g);
            }
        }
    wino_write_tiles(work, first, tiles, panel0 * WINO_PANEL, width, strip, m, m_point);
}
KERNEL_FN void wino_run_forward(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    int64_t point = wino_apart(wino_panels(s->c_out) * WINO_PANEL * s->c_in);
    const int streamed = work->shared_bytes > WINO_STREAMED && (uintptr_t)work->shared % VECTOR_BYTES == 0;
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) {
            wino_transform_kernel(work, item, 0, s->c_in, (f32*)work->shared + item * s->c_in * WINO_PANEL, point, streamed);
            wino_streams_end();
        } else wino_forward_item(work, (f32*)workspace, item);
    }
}

/* ---- forward of few tiles, whose kernel is larger than they are: phase 0 transforms the tiles (an item is a tile row); an item of phase 1 is a panel of
 * output channels, whose kernel is transformed by depths of WINO_DEPTH and multiplied while it lies in the cache, so that no transformed kernel goes through
 * memory: four times the kernel's bytes, twice. ---- */

KERNEL_INLINE int wino_is_narrow(const conv_problem* s) { return wino_all_tiles(s) <= s->c_out && s->c_in >= WINO_CHANNELS; }

KERNEL_FN void wino_plan_narrow(conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t inputs = conv_rounded(s->c_in, WINO_W), tiles = wino_all_tiles(s), strip = WINO_IN * (wino_tiles_w(s) * WINO_OUT + 2) * WINO_W;
    work->phases = 2;
    work->shared_bytes = points * wino_apart(tiles * inputs) * 4;
    work->workspace_bytes = (strip + points * (wino_apart(WINO_DEPTH * WINO_PANEL) + wino_apart(tiles * WINO_PANEL))) * 4;
}
KERNEL_FN int64_t wino_items_narrow(const conv_work* work, int64_t phase) {
    return phase == 0 ? work->s.samples * wino_tiles_h(&work->s) : wino_panels(work->s.c_out);
}
KERNEL_INLINE void wino_narrow_item(const conv_work* work, f32* workspace, int64_t panel) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t inputs = conv_rounded(s->c_in, WINO_W), tiles = wino_all_tiles(s);
    int64_t v_point = wino_apart(tiles * inputs), u_point = wino_apart(WINO_DEPTH * WINO_PANEL), m_point = wino_apart(tiles * WINO_PANEL);
    f32 *u = workspace, *m = u + points * u_point, *strip = m + points * m_point;
    gemm_tile_f32 g = {.a_row = inputs, .a_depth = 1, .b_depth = WINO_PANEL, .c_row = WINO_PANEL, .segments = 1, .cols = WINO_PANEL};
    for (int64_t i = 0; i < s->c_in; i += WINO_DEPTH) {
        g.depth = min_i64(WINO_DEPTH, s->c_in - i);
        g.add = i > 0;
        wino_transform_kernel(work, panel, i, i + g.depth, u, u_point, 0);
        for (int64_t xi = 0; xi < points; xi++) {
            g.b = u + xi * u_point;
            for (int64_t t = 0; t < tiles; t += GEMM_ROWS) {
                g.rows = min_i64(GEMM_ROWS, tiles - t);
                g.a = (const f32*)work->shared + xi * v_point + t * inputs + i;
                g.c = m + xi * m_point + t * WINO_PANEL;
                gemm_by_row_f32(&g);
            }
        }
    }
    wino_write_tiles(work, 0, tiles, panel * WINO_PANEL, WINO_PANEL, strip, m, m_point);
}
KERNEL_FN void wino_run_narrow(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    int64_t inputs = conv_rounded(s->c_in, WINO_W), point = wino_apart(wino_all_tiles(s) * inputs), across = wino_tiles_w(s);
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) wino_read_tiles(work, item * across, across, (f32*)workspace, (f32*)work->shared + item * across * inputs, point, inputs);
        else wino_narrow_item(work, (f32*)workspace, item);
    }
}

/* ---- gradient of the kernel: the tile rows come in chunks whose transforms fit the last-level cache. Of the phases 2k and
 * 2k + 1 of chunk k, the first transforms (an item is a tile row), the second adds to dU (an item is a point and a block of
 * input channels); the last phase transforms dU (an item is a few input channels). V and W are kept in panels of channels. ---- */

KERNEL_FN void wino_plan_weight(conv_work* work) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t tile_rows = s->samples * wino_tiles_h(s), channels = (wino_panels(s->c_in) + wino_panels(s->c_out)) * WINO_PANEL;
    /* small ones, which other cores' work does not drive out of the cache; but no smaller than dU, which each of them reads and writes */
    int64_t row_bytes = points * 4 * channels * wino_tiles_w(s), du_bytes = points * 4 * s->c_in * wino_panels(s->c_out) * WINO_PANEL;
    int64_t chunks = conv_blocks(tile_rows * row_bytes, min_i64(max_i64(WINO_CHUNK, du_bytes), WINO_SHARED));
    work->chunk = conv_blocks(tile_rows, max_i64(min_i64(chunks, tile_rows), 1));
    work->phases = 2 * conv_blocks(tile_rows, work->chunk) + 1;
    work->shared_bytes = work->chunk * row_bytes + points * (s->c_in * wino_panels(s->c_out) * WINO_PANEL + 64) * 4;
    work->workspace_bytes = WINO_IN * (WINO_RUN * WINO_OUT + 2) * WINO_W * 4;
}
KERNEL_FN int64_t wino_items_weight(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    if (phase == work->phases - 1) return conv_blocks(s->c_in, WINO_TAKEN);
    if (phase % 2) return points * conv_blocks(s->c_in, WINO_CHANNELS);
    return min_i64(work->chunk, s->samples * wino_tiles_h(s) - phase / 2 * work->chunk);
}
/* du[i - i0][o - o0] += sum over tiles of V[xi][tile][i] W[xi][tile][o], of input channels i0 to i1 and panels p0 to p1 of output channels */
KERNEL_INLINE void wino_add_products(const conv_problem* s, const f32* v, const f32* w, int64_t tiles, int64_t xi, int64_t i0, int64_t i1, int64_t p0, int64_t p1,
                                     f32* du, int64_t du_row, int add) {
    int64_t in_panels = wino_panels(s->c_in), out_panels = wino_panels(s->c_out);
    gemm_tile_f32 g = {.a_row = 1, .a_depth = WINO_PANEL, .b_depth = WINO_PANEL, .c_row = du_row, .segments = 1, .cols = WINO_PANEL};
    for (int64_t t = 0; t < tiles; t += WINO_DEPTH) {
        g.depth = min_i64(WINO_DEPTH, tiles - t);
        g.add = add || t > 0;
        for (int64_t panel = p0; panel < p1; panel++) {
            g.b = w + xi * wino_apart(out_panels * tiles * WINO_PANEL) + (panel * tiles + t) * WINO_PANEL;
            for (int64_t p = i0; p < i1; p += WINO_PANEL)
                for (int64_t i = p; i < min_i64(p + WINO_PANEL, i1); i += GEMM_ROWS) {
                    g.rows = min_i64(GEMM_ROWS, min_i64(p + WINO_PANEL, i1) - i);
                    g.a = v + xi * wino_apart(in_panels * tiles * WINO_PANEL) + (p / WINO_PANEL * tiles + t) * WINO_PANEL + (i - p);
                    g.c = du + (i - i0) * du_row + (panel - p0) * WINO_PANEL;
                    gemm_by_column_f32(&g);
                }
        }
    }
}
/* V and W of a tile row, in panels of channels: v[xi][panel][tile][WINO_PANEL] of `tiles`, the row's first being `tile` */
KERNEL_ONCE void wino_read_tile_row(const conv_work* work, int64_t row, f32* strip, f32* v, f32* w, int64_t tiles, int64_t tile) {
    const conv_problem* s = &work->s;
    const wino_form* form = wino_form_of(s);
    int64_t across = wino_tiles_w(s), v_point = wino_apart(wino_panels(s->c_in) * tiles * WINO_PANEL), w_point = wino_apart(wino_panels(s->c_out) * tiles * WINO_PANEL);
    for (int64_t col = 0; col < across; col += WINO_RUN) {
        wino_run run = wino_run_at(s, row * across + col, WINO_RUN);
        conv_image_f32 x = conv_image_of_f32(work->b, s->last, run.sample, s->in_h, s->in_w, s->c_in, 0, s->c_in);
        conv_image_f32 dy = conv_image_of_f32(work->a, s->last, run.sample, s->out_h, s->out_w, s->c_out, 0, s->c_out);
        for (int64_t c = 0; c < s->c_in; c += WINO_W) {
            conv_load_strip_f32(&x, c, run.h - s->pad_h + form->margin, run.w - s->pad_w + form->margin, form->in, (run.count - 1) * form->out + form->in, strip);
            wino_transform_input(form, strip, run.count, v + (c / WINO_PANEL * tiles + tile + col) * WINO_PANEL + c % WINO_PANEL, v_point, WINO_PANEL);
        }
        for (int64_t c = 0; c < s->c_out; c += WINO_W) {
            conv_load_strip_f32(&dy, c, run.h, run.w, form->out, run.count * form->out, strip);
            wino_transform_gradient(form, strip, run.count, w + (c / WINO_PANEL * tiles + tile + col) * WINO_PANEL + c % WINO_PANEL, w_point, WINO_PANEL);
        }
    }
}
/* A map's: columns[side][3] = u G, g[3][3] = G' of them */
KERNEL_INLINE void wino_transform_map_kernel_gradient(const int side, const vf32* all, vf32* columns, vf32* g) {
    UNROLL for (int r = 0; r < side; r++) wino_map_kernel_gradient(side, all + side * r, columns + 3 * r, 1);
    UNROLL for (int j = 0; j < 3; j++) {
        vf32 row[WINO_MOST_SIDE];
        UNROLL for (int r = 0; r < side; r++) row[r] = columns[3 * r + j];
        wino_map_kernel_gradient(side, row, g + j, 3);
    }
}
/* The gradients of the kernels of input channels i0 to i1 and output channels o0 to o1, from du[xi][i - i0][o - o0] with rows of du_row. Those of
 * successive input channels are adjacent, so that several are transposed and written together. */
KERNEL_ONCE void wino_write_kernels(const conv_work* work, int64_t i0, int64_t i1, int64_t o0, int64_t o1, const f32* du, int64_t du_row, int64_t point) {
    const conv_problem* s = &work->s;
    const wino_form* form = wino_form_of(s);
    vf32 all[WINO_MOST_SIDE * WINO_MOST_SIDE], rows[3 * WINO_MOST_SIDE], taken[9 * WINO_TAKEN];
    for (int64_t first = i0; first < i1; first += WINO_TAKEN, du += WINO_TAKEN * du_row)
        for (int64_t o = o0; o < o1; o += WINO_W) {
            int64_t channels = min_i64(WINO_TAKEN, i1 - first), outputs = min_i64(WINO_W, o1 - o);
            for (int64_t i = 0; i < channels; i++) {
                const f32* from = du + i * du_row + (o - o0);
                vf32* g = taken + 9 * i;
                if (form->points != WINO_POINTS) {
                    for (int64_t xi = 0; xi < form->points; xi++) all[xi] = *(const vf32_u*)(from + xi * point);
                    if (form->side == 3) wino_transform_map_kernel_gradient(3, all, rows, g);
                    else wino_transform_map_kernel_gradient(8, all, rows, g);
                    continue;
                }
                UNROLL for (int xi = 0; xi < WINO_POINTS; xi++) all[xi] = *(const vf32_u*)(from + xi * point);
                UNROLL for (int j = 0; j < WINO_IN; j++) wino_kernel_gradient(all + j, WINO_IN, rows + j, WINO_IN);
                UNROLL for (int j = 0; j < 3; j++) wino_kernel_gradient(rows + WINO_IN * j, 1, g + 3 * j, 1);
            }
            f32* out = (f32*)work->out + s->w_first + first * s->w_in + o * s->w_out;
            if (s->w_tap == 1 && s->w_in == 9) {
                conv_transpose_f32((const f32*)taken, WINO_W, out, s->w_out, 9 * channels, outputs, 0);
                continue;
            }
            for (int64_t i = 0; i < channels; i++)
                for (int tap = 0; tap < 9; tap++)
                    for (int64_t lane = 0; lane < outputs; lane++) out[i * s->w_in + lane * s->w_out + tap * s->w_tap] = taken[9 * i + tap][lane];
        }
}
KERNEL_FN void wino_run_weight(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t out_channels = wino_panels(s->c_out) * WINO_PANEL, across = wino_tiles_w(s), blocks = conv_blocks(s->c_in, WINO_CHANNELS);
    int64_t first = phase / 2 * work->chunk, tiles = min_i64(work->chunk, s->samples * wino_tiles_h(s) - first) * across;
    f32 *du = (f32*)work->shared, *v = du + points * s->c_in * out_channels, *w = v + points * wino_apart(wino_panels(s->c_in) * tiles * WINO_PANEL);
    for (int64_t item = begin; item < end; item++) {
        if (phase == work->phases - 1) {
            int64_t i0 = item * WINO_TAKEN;
            wino_write_kernels(work, i0, min_i64(i0 + WINO_TAKEN, s->c_in), 0, s->c_out, du + i0 * out_channels, out_channels, s->c_in * out_channels);
        } else if (phase % 2) {
            int64_t xi = item / blocks, i0 = item % blocks * WINO_CHANNELS, i1 = min_i64(i0 + WINO_CHANNELS, s->c_in);
            wino_add_products(s, v, w, tiles, xi, i0, i1, 0, out_channels / WINO_PANEL, du + (xi * s->c_in + i0) * out_channels, out_channels, phase > 1);
        } else {
            wino_read_tile_row(work, first + item, (f32*)workspace, v, w, tiles, item * across);
        }
    }
}

/* The same where V and W of all tiles fit into the last-level cache: phase 0 transforms, an item of phase 1 is a block of input channels and a panel of output
 * channels, whose dU stays in the inner caches. */
KERNEL_INLINE int64_t wino_bytes_of_tiles(const conv_problem* s) {
    return wino_form_of(s)->points * 4 * (wino_apart(wino_panels(s->c_in) * wino_all_tiles(s) * WINO_PANEL) + wino_apart(wino_panels(s->c_out) * wino_all_tiles(s) * WINO_PANEL));
}
KERNEL_INLINE int wino_is_narrow_weight(const conv_problem* s) { return wino_bytes_of_tiles(s) <= WINO_SHARED; }

KERNEL_FN void wino_plan_weight_narrow(conv_work* work) {
    const int64_t points = wino_form_of(&work->s)->points;
    work->phases = 2;
    work->shared_bytes = wino_bytes_of_tiles(&work->s);
    work->workspace_bytes = max_i64(WINO_IN * (WINO_RUN * WINO_OUT + 2) * WINO_W, points * wino_apart(WINO_CHANNELS * WINO_PANEL)) * 4;
}
KERNEL_FN int64_t wino_items_weight_narrow(const conv_work* work, int64_t phase) {
    const conv_problem* s = &work->s;
    return phase == 0 ? s->samples * wino_tiles_h(s) : conv_blocks(s->c_in, WINO_CHANNELS) * wino_panels(s->c_out);
}
KERNEL_FN void wino_run_weight_narrow(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) {
    const conv_problem* s = &work->s;
    const int64_t points = wino_form_of(s)->points;
    int64_t across = wino_tiles_w(s), tiles = wino_all_tiles(s), panels = wino_panels(s->c_out), point = wino_apart(WINO_CHANNELS * WINO_PANEL);
    f32 *v = (f32*)work->shared, *w = v + points * wino_apart(wino_panels(s->c_in) * tiles * WINO_PANEL), *du = (f32*)workspace;
    for (int64_t item = begin; item < end; item++) {
        if (phase == 0) {
            wino_read_tile_row(work, item, (f32*)workspace, v, w, tiles, item * across);
            continue;
        }
        int64_t panel = item % panels, i0 = item / panels * WINO_CHANNELS, i1 = min_i64(i0 + WINO_CHANNELS, s->c_in);
        for (int64_t xi = 0; xi < points; xi++) wino_add_products(s, v, w, tiles, xi, i0, i1, panel, panel + 1, du + xi * point, WINO_PANEL, 0);
        wino_write_kernels(work, i0, i1, panel * WINO_PANEL, min_i64((panel + 1) * WINO_PANEL, s->c_out), du, WINO_PANEL, point);
    }
}
