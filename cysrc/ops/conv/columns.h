/* im2col of small images, one row for each output position: [sample][oh][ow] of [channel][kh][kw]; and the sums back. Not the operator im2col's
   layout, which has columns for positions and a matrix for each sample: here the rows of all samples form one matrix, so that the weight is packed
   once for them and images of few positions fill the GEMM's tiles. The element types are those of the bits alone in the one direction, float and
   double in the other. */
#ifndef TRT_CONV_COLUMNS_H
#define TRT_CONV_COLUMNS_H
#include <stdint.h>
#include <string.h>

typedef struct {
  int64_t channels, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  const char* image;
  char* columns;
  int item;                          /* bytes of an element */
} conv_columns;

/* Kernel positions [*lo, *hi) that lie inside for one output position. */
static inline void columns_range(int64_t start, int64_t dilation, int64_t size, int64_t taps, int64_t* lo, int64_t* hi) {
  *lo = 0;
  *hi = taps;
  while (*lo < taps && start + *lo * dilation < 0) ++*lo;
  while (*hi > *lo && start + (*hi - 1) * dilation >= size) --*hi;
}

#define DEFINE_COLUMNS(T, NAME, MOVE)                                                                                              \
  static void NAME(const conv_columns* g, int64_t begin, int64_t end) {                                                            \
    const int64_t taps = g->kernel_h * g->kernel_w, length = g->channels * taps, positions = g->out_h * g->out_w;                  \
    for (int64_t at = begin; at < end; at++) {                                                                                     \
      const int64_t sample = at / positions, oh = at % positions / g->out_w, ow = at % g->out_w;                                   \
      const int64_t h = oh * g->stride_h - g->pad_h, w = ow * g->stride_w - g->pad_w;                                              \
      T* row = (T*)g->columns + at * length;                                                                                       \
      T* image = (T*)g->image + sample * g->channels * g->in_h * g->in_w;                                                          \
      int64_t h0, h1, w0, w1;                                                                                                      \
      columns_range(h, g->dilation_h, g->in_h, g->kernel_h, &h0, &h1);                                                             \
      columns_range(w, g->dilation_w, g->in_w, g->kernel_w, &w0, &w1);                                                             \
      for (int64_t c = 0; c < g->channels; c++, row += taps, image += g->in_h * g->in_w)                                           \
        for (int64_t kh = h0; kh < h1; kh++) {                                                                                     \
          T *line = image + (h + kh * g->dilation_h) * g->in_w + w, *to = row + kh * g->kernel_w;                                  \
          for (int64_t kw = w0; kw < w1; kw++) { MOVE(to[kw], line[kw * g->dilation_w]); }                                         \
        }                                                                                                                          \
    }                                                                                                                              \
  }
#define COLUMNS_TAKE(column, pixel) column = pixel
#define COLUMNS_ADD(column, pixel) pixel += column
DEFINE_COLUMNS(uint16_t, columns_of_16, COLUMNS_TAKE)
DEFINE_COLUMNS(uint32_t, columns_of_32, COLUMNS_TAKE)
DEFINE_COLUMNS(uint64_t, columns_of_64, COLUMNS_TAKE)
DEFINE_COLUMNS(float, columns_into_float, COLUMNS_ADD)
DEFINE_COLUMNS(double, columns_into_double, COLUMNS_ADD)

/* The rows begin .. end (output positions), zero where the kernel hangs over. */
static void columns_gather(void* context, int64_t begin, int64_t end) {
  const conv_columns* g = context;
  const int64_t row = g->channels * g->kernel_h * g->kernel_w * g->item;
  if (g->pad_h || g->pad_w) memset(g->columns + begin * row, 0, (size_t)((end - begin) * row));
  if (g->item == 2) columns_of_16(g, begin, end);
  else if (g->item == 4) columns_of_32(g, begin, end);
  else columns_of_64(g, begin, end);
}
/* The samples begin .. end: each pixel is the sum over the columns that it lies in. */
static void columns_scatter(void* context, int64_t begin, int64_t end) {
  const conv_columns* g = context;
  const int64_t image = g->channels * g->in_h * g->in_w * g->item, positions = g->out_h * g->out_w;
  memset((char*)g->image + begin * image, 0, (size_t)((end - begin) * image));
  if (g->item == 4) columns_into_float(g, begin * positions, end * positions);
  else columns_into_double(g, begin * positions, end * positions);
}
#endif
