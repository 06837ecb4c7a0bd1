/* The tasks of conv_tiles.h. Sums are float32 and rounded once; no bit depends on threads, as a task sums in the order of taps and samples.
 * Instruction sets: base, avx512 */
#include "kernel_base.h"
#include "conv_tiles.h"

#if VECTOR_BYTES == 64
#include "gemm/pack.h"
#include "gemm/tiles.h"

enum { STEP_BYTES = TILE_STEP * 2 * 64 };

/* The sums of 16 or 32 positions over all taps and channels, which stay in tiles. */
KERNEL_INLINE void tap_sums(const conv_tiles* p, const char* a, int64_t a_row, const char* panel, char* sums, const int tall) {
    const int64_t pixel = p->c_in * 2, steps = p->c_in / CONV_TILE, half = TILE_SIDE * a_row, sums_row = 2 * 64;
    TILE_ZERO(0);
    TILE_ZERO(1);
    if (tall) TILE_ZERO(2);
    if (tall) TILE_ZERO(3);
    for (int64_t t = 0; t < p->taps; t++) {
        const char *at = a + p->shift[t] * pixel, *b = panel + p->place[t] * steps * STEP_BYTES;
        for (int64_t i = 0; i < steps; i++, at += 64, b += STEP_BYTES) {
            TILE_LOAD(4, at, a_row);
            TILE_LOAD(6, b, 128);
            TILE_DOT(0, 4, 6);
            TILE_LOAD(7, b + 64, 128);
            TILE_DOT(1, 4, 7);
            if (tall) {
                TILE_LOAD(5, at + half, a_row);
                TILE_DOT(2, 5, 6);
                TILE_DOT(3, 5, 7);
            }
        }
    }
    TILE_STORE(0, sums, sums_row);
    TILE_STORE(1, sums + 64, sums_row);
    if (tall) TILE_STORE(2, sums + TILE_SIDE * sums_row, sums_row);
    if (tall) TILE_STORE(3, sums + TILE_SIDE * sums_row + 64, sums_row);
}

TILES_TARGET static void forward(void* call, int64_t begin, int64_t end) {
    const conv_tiles* p = call;
    const int64_t panels = p->c_out / CONV_TILE, flat = p->stride_h == 1 && p->stride_w == 1, pixel = p->c_in * 2;
    const int64_t runs = flat ? 1 : p->out_h, count = flat ? (p->out_h - 1) * p->row + p->out_w : p->out_w;
    vf32 sums[CONV_TILE][2];
    tiles_begin();
    for (int64_t task = begin; task < end; task++) {
        const int64_t sample = task / panels, panel = task % panels;
        const char *image = p->image + sample * p->image_bytes, *weight = p->weight + panel * p->places * (p->c_in / CONV_TILE) * STEP_BYTES;
        char* out = p->out + sample * p->out_sample + panel * CONV_TILE * 2;
        vf32 bias[2] = {{0}};
        if (p->bias) memcpy(bias, p->bias + panel * CONV_TILE, sizeof bias);
        for (int64_t r = 0; r < runs; r++)
            for (int64_t i = 0; i < count; i += CONV_TILE) {
                const int64_t rows = min_i64(CONV_TILE, count - i);
                const char* a = image + (r * p->stride_h * p->row + i * p->stride_w) * pixel;
                if (rows > TILE_SIDE) tap_sums(p, a, pixel * p->stride_w, weight, (char*)sums, 1);
                else tap_sums(p, a, pixel * p->stride_w, weight, (char*)sums, 0);
                int64_t h = flat ? i / p->row : r, w = flat ? i % p->row : i;
                for (int64_t j = 0; j < rows; j++) {
                    if (w < p->out_w) store_bf16_row(out + h * p->out_row + w * p->out_pixel, sums[j][0] + bias[0], sums[j][1] + bias[1], 1);
                    if (++w == p->row && flat) h++, w = 0;
                }
            }
    }
    tiles_end();
}

static void weight(void* call, int64_t begin, int64_t end) {
    const conv_tiles* p = call;
    const int64_t tiles = p->c_in / CONV_TILE, panels = p->c_out / CONV_TILE;
    tiles_begin();
    for (int64_t task = begin; task < end; task++) {
        const int64_t tap = task / tiles, channel = task % tiles * CONV_TILE;
        for (int64_t sample = 0; sample < p->samples; sample++)
            for (int64_t j = 0; j < panels; j++)
                tile_sums(p->planes + ((sample * p->c_in + channel) * p->plane + p->shift[tap]) * 2, p->plane * 2, 64, p->grad + (sample * panels + j) * p->steps * STEP_BYTES, p->steps,
                          (char*)(p->dw + (tap * p->c_in + channel) * p->c_out + j * CONV_TILE), p->c_out * 4, 1, 1, sample > 0);
    }
    tiles_end();
}

static void pack(void* call, int64_t begin, int64_t end) {
    const conv_tiles* p = call;
    const int64_t panels = p->c_out / CONV_TILE;
    for (int64_t i = begin; i < end; i++)
        pack_panel(LOAD_PAIR, 0, p->panels + i * (p->depth / CONV_TILE) * STEP_BYTES, p->rows + (i / panels * p->depth * p->c_out + i % panels * CONV_TILE) * 2, 2, p->c_out * 2,
                   CONV_TILE, 0, CONV_TILE, p->depth);
}
const conv_tiles_table ISA_NAME(trt_conv_tiles) = {forward, weight, pack};
#else
const conv_tiles_table ISA_NAME(trt_conv_tiles) = {0};
#endif
