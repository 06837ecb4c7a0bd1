/* Convolutions of bfloat16 images by AVX512-BF16's sums of pairs, forward and both gradients; images in NCHW are turned as they are copied
 * below margins of zeros. A table as conv.h's, with operands of bfloat16 and a bias of float32; sums are float32 and rounded once. */
#ifndef TRT_CONV_PAIRS_H
#define TRT_CONV_PAIRS_H
#include "conv.h"

enum { PAIRS_SEGMENTS = 64 };    /* rows of a kernel (with a dilation: taps) at most */

/* One empty row where the instruction set has none. */
typedef conv_kernels conv_pairs_table;
#endif
