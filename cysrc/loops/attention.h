/* Attention over heads of float32, or of bfloat16 by tiles, in memory linear in the length (Dao et al. 2022; Rabe and Staats 2021). Strides are in elements,
   the innermost dimension of every operand but the mask is contiguous. */
#ifndef TRT_ATTENTION_H
#define TRT_ATTENTION_H
#include <stdint.h>

enum { ATTENTION_UNMASKED, ATTENTION_ALLOWED, ATTENTION_ADDED };   /* mask: none, bool (nonzero: attend), float */
enum { ATTENTION_QUERIES = 512, ATTENTION_KEYS = 128, ATTENTION_TILE = 32 }; /* rows of queries and of keys of one task */

typedef struct {
  const void* data;
  int64_t batch, head, row;                        /* strides */
} attention_operand;

typedef struct {
  int64_t batches, heads, key_heads;               /* `heads` is a multiple of `key_heads`: neighbours share a key head */
  int64_t queries, keys, width, value_width;
  float scale;
  int causal, mask_kind;                           /* causal: query i sees the keys 0..i; what is added has the operands' type */
  const char* mask;
  int64_t mask_batch, mask_head, mask_row, mask_column;   /* strides, zero where broadcast */
  attention_operand q, k, v, out, grad, dq, dk, dv;        /* the last four: backward, NULL data where not wanted */
  float* lse;                                      /* (batches, heads, queries): log of the sum of exponentials, inf: nothing seen */
  int failed;                                      /* no memory for the buffers of a task */
} attention_args;

typedef struct {
  void (*forward)(attention_args*, int64_t begin, int64_t end);      /* tasks: batch x head x block of queries */
  void (*forward_tiles)(attention_args*, int64_t begin, int64_t end);    /* bfloat16, widths of whole tiles (ATTENTION_TILE); NULL: not in this instruction set */
  void (*backward_tiles)(attention_args*, int64_t begin, int64_t end);   /* tasks: batch x key head; all gradients are written, not added to */
  void (*backward)(attention_args*, int64_t begin, int64_t end);     /* tasks: batch x key head; all gradients */
  void (*backward_keys)(attention_args*, int64_t begin, int64_t end);    /* tasks: batch x key head x block of keys; dk, dv */
  void (*backward_queries)(attention_args*, int64_t begin, int64_t end); /* tasks: batch x head x block of queries; dq */
} attention_kernels;

#endif
