/* Argument blocks of the resampling kernels, declared again in ops/resize/resize.pyx and defined in resize.c. */
#ifndef TRT_RESIZE_H
#define TRT_RESIZE_H
#include <stdint.h>

enum { RESIZE_NEAREST, RESIZE_NEAREST_EXACT, RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_LANCZOS };

/* One dimension as a sparse matrix: result i is the sum over k in [start[i], start[i + 1]) of weight[k] * source[index[k]].
 * Weights are of the kernel's type of arithmetic (float, double); used marks the sources that occur; span is the largest
 * range of sources of one result. */
typedef struct {
    int64_t in, out, span;
    int64_t taps; /* of every result, 0 where they differ */
    const int64_t *start;
    const int32_t *index;
    const void *weight;
    const char *used;
} ResizeAxis;

typedef struct {
    int kind, align_corners, antialias, is_double;
    double scale; /* as given, in/out where not positive */
    int64_t in, out;
} ResizeRule;

/* Planes (depth, height, width, inner) of dtype; inner > 1: channels last. */
typedef struct {
    const char *x;
    char *y;
    char *scratch; /* resize_scratch bytes a worker */
    int64_t worker_bytes, workers, planes, inner;
    ResizeAxis axis[3]; /* depth, height, width */
    int dtype;
} ResizeArgs;

enum { GRID_BILINEAR, GRID_NEAREST, GRID_BICUBIC };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

/* x (N, C, [depth,] height, width), grid (N, positions, dims), y (N, C, positions); contiguous. Backward reads gy, and adds to
 * gx (zeroed) or writes ggrid. */
typedef struct {
    const char *x, *grid, *gy;
    char *y, *gx, *ggrid;
    int64_t samples, channels, positions, size[3];
    int dims, mode, padding, align_corners;
} GridArgs;

/* Windows of images (N * C, height, width) as columns (N * C, kh * kw, lh * lw). */
typedef struct {
    const char *from;
    char *to;
    int64_t height, width, kh, kw, dh, dw, ph, pw, sh, sw, lh, lw;
    int item, dtype;
} WindowArgs;

#endif
