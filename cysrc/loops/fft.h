/* Argument blocks of the Fourier transforms, declared again in ops/fft/cpu.pyx and defined in fft.c. */
#ifndef TRT_FFT_H
#define TRT_FFT_H
#include <stdint.h>
#include "fft_steps.h" /* kinds */

enum { FFT_MAX_PASSES = 64, FFT_MAX_DIMS = 64 };

/* What a length needs, made once and shared by threads: factors, twiddle factors, the split of a long line, the chirp of a length with
 * a large prime factor. */
typedef struct FftPlan FftPlan;

/* Transforms of length n along one dimension of a strided array. Strides are in elements of x and y (complex or real). */
typedef struct {
    const FftPlan *plan;  /* of n; a real transform of even length also uses plan's half */
    const char *x;
    char *y;
    int64_t n, x_stride, y_stride; /* along the dimension */
    int64_t lines;                 /* product of the other sizes */
    int dims;                      /* the other dimensions, outermost first */
    int64_t size[FFT_MAX_DIMS], x_strides[FFT_MAX_DIMS], y_strides[FFT_MAX_DIMS];
    int kind, inverse, twosided, is_double;
    double scale;
    char *scratch; /* fft_scratch bytes a worker */
    int64_t worker_bytes, workers, groups, group_lines;
    int64_t line_cells; /* of a line by itself: room of the line in order, in cells of two vectors */
    int far;      /* the arrays outgrow a near cache: the next group's lines are fetched while one is computed */
    int together; /* groups of short lines that are run side by side */
    int by_rows;  /* of groups of adjacent columns, a row of all is read and written after the other */
    int short_lines; /* contiguous lines of a pass or two, which need no scratch */
    int split_lines; /* contiguous lines that are matrices of as many columns as a vector has lanes */
    int by_lines; /* each line by itself, in vectors along it; otherwise groups of lines, one per lane */
} FftArgs;

#endif
