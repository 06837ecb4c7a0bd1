/* The loops of recurrent layers: what cysrc/ops/recurrent/cpu.pyx calls. Sizes in elements. */
#ifndef TRT_RECURRENT_H
#define TRT_RECURRENT_H
#include <stdint.h>
#include "recurrent_steps.h"

typedef struct {
  const recurrent_layer* layer;
  recurrent_loops a;
} recurrent_run;

/* How a matrix is packed into panels of `vectors` vectors for each of `depth` terms: of rows (a weight that is multiplied transposed), where vector v of a panel
   is of gate v if there are `gates`, else one of neighbouring rows; or of columns. */
typedef struct {
  const char* source;
  char* packed;
  int64_t depth, count;                            /* count: rows (of one gate) or columns */
  int64_t vectors;
  int gated;
} recurrent_pack;

typedef struct {
  void (*forward)(void* run, int64_t begin, int64_t end);            /* tasks: sequences */
  void (*backward)(void* run, int64_t begin, int64_t end);
  void (*pack_rows)(void* pack, int64_t begin, int64_t end);         /* tasks: panels */
  void (*pack_columns)(void* pack, int64_t begin, int64_t end);
  int64_t lanes;
} recurrent_kernels;

#endif
