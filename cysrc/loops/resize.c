/* Resampling of images: interpolation as a sparse matrix per dimension (its transpose is the backward pass), sampling at a
 * grid of positions, windows as columns.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include <math.h>
#include "../core/isa.h"
#include "resize.h"
#include "scalar_types.h"

enum { GRID_BLOCK = 64, GRID_TAPS = 16 };

/* Room for the taps of one result. */
static i64 resize_room(const ResizeRule *r)
{
    double scale = r->align_corners ? (r->out > 1 ? (double)(r->in - 1) / (r->out - 1) : 0) : r->scale > 0 ? 1.0 / r->scale : (double)r->in / r->out;
    double reach = (r->kind == RESIZE_LANCZOS ? 3 : 2) * (scale > 1 ? scale : 1);
    return r->antialias ? (2 * reach + 3 < r->in + 4 ? (i64)(2 * reach) + 4 : r->in + 4) : 4;
}

#define REAL float
#define F(name) name##_f32
#define F_FLOOR floorf
#define F_SIN sinf
#define F_NEARBY nearbyintf
#ifdef __AVX2__
#include <immintrin.h>
#define GATHERED /* masked loads of eight floats */
#define UNROLL _Pragma("GCC unroll 4") /* arrays of registers must not end up in memory */
#endif
#include "resize_real.h"
#ifdef GATHERED
#include "resize_bytes.h"
#endif
#undef GATHERED

#define REAL double
#define F(name) name##_f64
#define F_FLOOR floor
#define F_SIN sin
#define F_NEARBY nearbyint
#include "resize_real.h"

/* Room that a table needs in index and weight, with one result's beyond it. */
int64_t ISA_NAME(resize_taps)(const ResizeRule *r) { return (r->out + 1) * resize_room(r); }

int64_t ISA_NAME(resize_table)(const ResizeRule *r, int transposed, int64_t *start, int32_t *index, void *weight)
{
    return r->is_double ? table_f64(r, transposed, start, index, weight) : table_f32(r, transposed, start, index, weight);
}

int64_t ISA_NAME(resize_scratch)(const ResizeArgs *a)
{
    i64 in_row = a->axis[2].in * a->inner, out_row = a->axis[2].out * a->inner, plane = out_row * a->axis[1].out;
#ifdef __AVX2__
    if (bytes_fit(a))
        return (bytes_scratch(a) + 63) & ~(i64)63;
#endif
    i64 blended = a->axis[0].in == 1 && a->axis[0].out == 1 ? 0 : a->axis[0].span * plane;
    return ((in_row + plane + a->axis[1].span * out_row + blended) * (a->dtype == DT_f64 ? 8 : 4) + 127) & ~(i64)63;
}

/* Workers [begin, end), each its share of the planes. */
void ISA_NAME(resize_planes)(void *context, int64_t begin, int64_t end)
{
    const ResizeArgs *a = context;
    void (*lines)(const ResizeArgs *, i64, i64, char *) = a->dtype == DT_f64 ? resize_lines_f64 : resize_lines_f32;
#ifdef __AVX2__
    if (bytes_fit(a))
        lines = resize_bytes;
#endif
    for (i64 w = begin; w < end; w++)
        lines(a, a->planes * w / a->workers, a->planes * (w + 1) / a->workers, a->scratch + w * a->worker_bytes);
}

/* Items: blocks of GRID_BLOCK positions of a sample, or planes (sample, channel) for the gradient of the input. */
#define GRID(NAME)                                                                                                   \
    void ISA_NAME(NAME##_f32)(void *a, int64_t begin, int64_t end) { NAME##_f32(a, begin, end); }                      \
    void ISA_NAME(NAME##_f64)(void *a, int64_t begin, int64_t end) { NAME##_f64(a, begin, end); }
GRID(grid_forward)
GRID(grid_backward_input)
GRID(grid_backward_grid)

void (*const ISA_NAME(trt_grid_tasks)[])(void *, i64, i64) = {
    grid_forward_f32, grid_forward_f64, grid_backward_input_f32, grid_backward_input_f64, grid_backward_grid_f32, grid_backward_grid_f64};

/* ---- windows ------------------------------------------------------------------------------------------------------ */

/* The windows [*first, *last) whose tap at `offset` lies in [0, size). */
INL void window_range(i64 offset, i64 stride, i64 size, i64 count, i64 *first, i64 *last)
{
    *first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *last = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
    *last = *last < count ? *last : count;
    *first = *first < *last ? *first : *last;
}

#define IM2COL(T)                                                                                                    \
    for (i64 i = first; i < last; i++)                                                                               \
        ((T *)to)[i] = ((const T *)from)[i * a->sw];

typedef struct { u64 a, b; } Pair;

/* Rows (plane, tap) of lh * lw elements of the columns */
static void window_rows(const WindowArgs *a, i64 begin, i64 end)
{
    for (i64 r = begin; r < end; r++) {
        i64 taps = a->kh * a->kw, plane = r / taps, ky = r % taps / a->kw, kx = r % a->kw, first, last, x = kx * a->dw - a->pw;
        window_range(x, a->sw, a->width, a->lw, &first, &last);
        for (i64 h = 0; h < a->lh; h++) {
            i64 y = h * a->sh + ky * a->dh - a->ph;
            char *to = a->to + (r * a->lh + h) * a->lw * a->item;
            if (y < 0 || y >= a->height || first == last) {
                memset(to, 0, a->lw * a->item);
                continue;
            }
            const char *from = a->from + ((plane * a->height + y) * a->width + x) * a->item;
            memset(to, 0, first * a->item);
            memset(to + last * a->item, 0, (a->lw - last) * a->item);
            if (a->sw == 1) {
                memcpy(to + first * a->item, from + first * a->item, (last - first) * a->item);
                continue;
            }
            switch (a->item) {
            case 1: IM2COL(u8) break;
            case 2: IM2COL(i16) break;
            case 4: IM2COL(u32) break;
            case 8: IM2COL(u64) break;
            default: IM2COL(Pair)
            }
        }
    }
}

enum { WINDOW_TABLE = 2048, WINDOW_NARROW = 16, WINDOW_PLANES = 8 };

#define GATHER_WINDOWS(T)                                                                                            \
    for (i64 plane = begin; plane < end; plane++) {                                                                  \
        const T *from = (const T *)a->from + plane * a->height * a->width;                                           \
        T *to = (T *)a->to + plane * columns;                                                                        \
        for (i64 i = 0; i < columns; i++)                                                                            \
            to[i] = from[pixel[i]];                                                                                  \
        for (i64 i = 0; i < outside; i++)                                                                            \
            to[zero[i]] = (T){0};                                                                                    \
    }

/* All columns of whole planes, whose rows of a few elements would cost a call of memcpy each: where each of them lies is looked up once. */
static void window_planes(const WindowArgs *a, i64 begin, i64 end)
{
    int32_t pixel[WINDOW_TABLE], zero[WINDOW_TABLE];
    i64 columns = 0, outside = 0;
    for (i64 k = 0; k < a->kh * a->kw; k++)
        for (i64 h = 0; h < a->lh; h++)
            for (i64 w = 0; w < a->lw; w++, columns++) {
                i64 y = h * a->sh + k / a->kw * a->dh - a->ph, x = w * a->sw + k % a->kw * a->dw - a->pw;
                int inside = y >= 0 && y < a->height && x >= 0 && x < a->width;
                pixel[columns] = inside ? (int32_t)(y * a->width + x) : 0;
                zero[outside] = (int32_t)columns;
                outside += !inside;
            }
    switch (a->item) {
    case 1: GATHER_WINDOWS(u8) break;
    case 2: GATHER_WINDOWS(i16) break;
    case 4: GATHER_WINDOWS(u32) break;
    case 8: GATHER_WINDOWS(u64) break;
    default: GATHER_WINDOWS(Pair)
    }
}

/* Items are rows (plane, tap). */
void ISA_NAME(window_columns)(void *context, int64_t begin, int64_t end)
{
    const WindowArgs *a = context;
    i64 taps = a->kh * a->kw, first = (begin + taps - 1) / taps, last = end / taps;
    if (a->lw > WINDOW_NARROW || taps * a->lh * a->lw > WINDOW_TABLE || last - first < WINDOW_PLANES || a->height * a->width > INT32_MAX) {
        window_rows(a, begin, end);
        return;
    }
    window_rows(a, begin, first * taps);
    window_planes(a, first, last);
    window_rows(a, last * taps, end);
}

#define COL2IM(T)                                                                                                    \
    {                                                                                                                \
        T *restrict image = (T *)to;                                                                                 \
        const T *c = (const T *)from;                                                                                \
        if (a->sw == 1)                                                                                              \
            for (i64 i = first; i < last; i++)                                                                       \
                image[i] += c[i];                                                                                    \
        else                                                                                                         \
            for (i64 i = first; i < last; i++)                                                                       \
                image[i * a->sw] += c[i];                                                                            \
    }

/* Items are planes, of zeros before: columns add up in the order of taps. */
void ISA_NAME(window_images)(void *context, int64_t begin, int64_t end)
{
    const WindowArgs *a = context;
    for (i64 plane = begin; plane < end; plane++)
        for (i64 k = 0; k < a->kh * a->kw; k++) {
            i64 first, last, x = k % a->kw * a->dw - a->pw;
            window_range(x, a->sw, a->width, a->lw, &first, &last);
            for (i64 h = 0; h < a->lh && first < last; h++) {
                i64 y = h * a->sh + k / a->kw * a->dh - a->ph;
                if (y < 0 || y >= a->height)
                    continue;
                char *to = a->to + ((plane * a->height + y) * a->width + x) * a->item;
                const char *from = a->from + ((plane * a->kh * a->kw + k) * a->lh + h) * a->lw * a->item;
                switch (a->dtype) {
                case DT_f32: COL2IM(f32) break;
                case DT_f64: COL2IM(f64) break;
                case DT_c64: COL2IM(c64) break;
                default: COL2IM(c128)
                }
            }
        }
}
