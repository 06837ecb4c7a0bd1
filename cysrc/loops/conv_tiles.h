/* Convolutions of bfloat16 images by AMX's tiles, without im2col: pixels of a padded image in channels_last are rows of A where they lie, shifted by
   the tap. With stride 1 the positions of all rows of the output are one run over the padded width, of which those at its edge are not stored. */
#ifndef TRT_CONV_TILES_H
#define TRT_CONV_TILES_H
#include <stdint.h>

enum { CONV_TILE = 32, CONV_TAPS = 64 };        /* channels are multiples of the first; taps at most */

typedef struct {
  int64_t samples, c_in, c_out, taps, row;      /* row: pixels of a padded row */
  int64_t shift[CONV_TAPS];                     /* of a tap, in pixels */
  int64_t place[CONV_TAPS], places;             /* of its weights in a panel, of so many: a call may take some of the taps */
  /* forward: tasks are samples by panels of outputs' channels */
  int64_t out_h, out_w, stride_h, stride_w;
  const char* image;                            /* (samples, image_bytes) in channels_last, and 32 pixels more */
  int64_t image_bytes;
  const char* weight;                           /* (taps * c_in, c_out) as panels */
  const float* bias;                            /* NULL: none */
  char* out;                                    /* (samples, out_h, out_w, c_out) by strides in bytes */
  int64_t out_sample, out_row, out_pixel;
  /* gradient of the weight: tasks are taps by tiles of inputs' channels */
  const char* planes;                           /* (samples, c_in, plane): padded images, channel by channel, zeros at the end; `shift` is in elements of a plane */
  int64_t plane, steps;                         /* elements of one; of 32 positions */
  const char* grad;                             /* (samples, c_out / 32, steps) as panels: the output's gradient, zeros between its rows */
  float* dw;                                    /* (taps, c_in, c_out) */
  /* packing: tasks are panels of the weight, or samples of the gradient */
  const char* rows;                             /* (taps * c_in, c_out); (samples, steps * 32, c_out) */
  char* panels;
  int64_t depth;
} conv_tiles;

typedef struct {
  void (*forward)(void* call, int64_t begin, int64_t end);
  void (*weight)(void* call, int64_t begin, int64_t end);
  void (*pack)(void* call, int64_t begin, int64_t end);      /* panel by panel: (samples of) rows by 32 columns */
} conv_tiles_table;
#endif
