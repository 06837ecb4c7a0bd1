/* The table of conv.c's kernels: two-dimensional convolution of float and double (halves are staged to float by the caller,
 * but for depthwise ones of bfloat16 in channels_last, which the third row serves: images are bfloat16, weights, bias and the weights' gradient float),
 * forward, gradient of the input and gradient of the weight; groups, stride, padding, dilation; NCHW and channels_last.
 *
 * The caller fills a conv_work up to `out` and calls `plan`, which chooses the method and writes the rest; then it allocates
 * `shared`, and for each phase in turn runs the items [0, items(work, phase)), in any split between threads, each thread with
 * a workspace of its own (both 64-byte aligned). Sums run in an order fixed by the problem, so results do not depend on threads. */
#ifndef TRT_CONV_H
#define TRT_CONV_H
#include <stdint.h>

typedef struct {
    int64_t samples, c_in, in_h, in_w, c_out, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
    int64_t last;                                      /* images are channels_last */
    int64_t w_first, w_group, w_out, w_in, w_tap;      /* element (g, o, i, tap) of the weight, o and i within the group */
} conv_problem;

/* y(x, w); dx(dy, w); dw(dy, x); and im2col of all samples, [channel][kh][kw] of [sample][oh][ow], of NCHW images */
enum { CONV_FORWARD, CONV_INPUT, CONV_WEIGHT, CONV_COLUMNS };

/* Pairs of an output position and a tap of one dimension that meet the input. */
static inline int64_t conv_pairs(int64_t in, int64_t out, int64_t taps, int64_t stride, int64_t pad, int64_t dilation) {
    int64_t pairs = 0;
    for (int64_t k = 0; k < taps; k++) {
        const int64_t start = k * dilation - pad, first = start < 0 ? (stride - 1 - start) / stride : 0, end = in > start ? (in - start + stride - 1) / stride : 0;
        const int64_t last = end < out ? end : out;
        if (last > first) pairs += last - first;
    }
    return pairs;
}
/* Whether a pass is faster tap by tap (conv_maps.h): where much of what kernels cover is padding, and where other forms pack weights for few positions. Measured,
 * with AVX-512, on maps of 2x2 to 56x56, kernels of 2x2 to 7x7, 16 to 512 channels and batches of 1 to 64. */
static inline int conv_suits_maps(const conv_problem* s, int64_t pass) {
    enum { FEW_ROWS = 16, LARGE_ROWS = 256, LARGE = 1 << 17 /* elements of a tap */, MOST_ROWS = 56 * 56, DEEP = 64, DEEPER = 128 };
    const int64_t taps = s->kernel_h * s->kernel_w;
    if (pass > CONV_WEIGHT || s->groups != 1 || s->c_in < 16 || s->c_out < 16 || taps == 1) return 0;
    const int strided = s->stride_h * s->stride_w > 1, input = pass == CONV_INPUT, last = s->last != 0;
    const int64_t rows = input && !strided ? s->in_h * s->in_w : s->out_h * s->out_w, total = s->samples * rows, summed = input ? s->c_out : s->c_in, size = s->c_in * s->c_out;
    const double inside = (double)conv_pairs(s->in_h, s->out_h, s->kernel_h, s->stride_h, s->pad_h, s->dilation_h) *
                          (double)conv_pairs(s->in_w, s->out_w, s->kernel_w, s->stride_w, s->pad_w, s->dilation_w) / (double)(rows * taps);
    /* other forms of channels_last read a large weight once for each line of a map */
    if (last && strided && (taps >= 9 || input) && rows <= LARGE_ROWS && size >= (pass == CONV_WEIGHT ? LARGE / 4 : LARGE) && (pass != CONV_FORWARD || rows <= DEEP)) return 1;
    if (pass == CONV_WEIGHT) {
        if (!strided && taps < 9) return 0;
        if (last && strided) return (total <= 1024 && size >= DEEP * DEEP) || inside <= 0.8 || rows <= FEW_ROWS;
        if (last) return rows <= MOST_ROWS;
        if (strided) return inside <= 0.86 && total >= 96 && rows >= 4;
        return rows <= MOST_ROWS && (total >= 48 || (total >= 24 && inside <= 0.6));
    }
    if (input && strided) return last ? total <= 512 || inside <= 0.8 || rows <= FEW_ROWS : inside <= 0.86 && total >= 48 && rows >= 4;
    if (!last) return total >= (input ? 32 : 8) && (inside <= 0.86 || rows <= FEW_ROWS || (input && taps >= 9 && inside <= 0.94 && summed >= DEEP));
    return inside <= 0.8 || rows <= FEW_ROWS || (input && taps >= 9 && inside <= 0.92 && summed >= DEEP) || (total <= 64 && summed >= DEEPER);
}

typedef struct {
    conv_problem s;
    int64_t pass;
    const char *a, *b, *bias; /* operands in the order above; bias of the forward pass or null */
    char* out;
    int64_t method, phases, shared_bytes, workspace_bytes, block, chunk, splits; /* written by plan */
    char* shared;
} conv_work;

typedef struct {
    void (*plan)(conv_work* work);
    int64_t (*items)(const conv_work* work, int64_t phase);
    void (*run)(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end);
} conv_kernels;

#endif
