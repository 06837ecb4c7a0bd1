/* The table of conv.c's kernels: two-dimensional convolution of float and double (halves are staged to float by the caller),
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
