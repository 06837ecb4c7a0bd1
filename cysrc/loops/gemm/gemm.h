/* The packed GEMM: C = act(alpha A B + beta D), batched, for matrices of any strides.
 *
 * B is packed into panels of some columns, then blocks of C are independent tasks, each of which packs a panel of A at a time into
 * L1 and takes it past the panels of B, which stream from L2. Where C is low and wide the roles are exchanged, so that the small
 * operand is the one that is written to memory. The caller shares panels and tasks out to threads: blocks of the depth follow the
 * shape alone, and each sum is that of one thread in the order of the depth, so no bit depends on how. */
#ifndef TRT_GEMM_H
#define TRT_GEMM_H
#include <stdint.h>

enum { GEMM_F32, GEMM_F64, GEMM_BF16, GEMM_F16, GEMM_I64, GEMM_TYPES };                        /* of A, B, C and D */
enum { GEMM_BF16_PAIRS = GEMM_TYPES, GEMM_BF16_TILES, GEMM_F16_SPLIT, GEMM_F32_SPLIT, GEMM_F32_ROUNDED, GEMM_KERNELS }; /* the kernels beyond one for each type */
enum { GEMM_IDENTITY, GEMM_RELU };

typedef struct {
  int64_t m, n, k;
  const char *a, *b, *d;              /* d: the addend, NULL without one; it may be c where its strides are c's */
  char* c;
  int64_t ars, acs, brs, bcs, crs, ccs, drs, dcs; /* strides of rows and columns, in elements; one of C's is 1 */
  double alpha, beta;
  int activation;
  int64_t integer_alpha, integer_beta;            /* of integers, beside the nearest doubles */
} gemm_matrices;

typedef struct {
  int type, load;                     /* load: what packing does to elements */
  int element, group, unit;           /* bytes of an element; elements and bytes of a unit of the depth */
  int sum;                            /* bytes of a sum */
  int height, width;                  /* rows of a panel of A at most, columns of a panel of B */
  int64_t depth;                      /* elements in a block of the depth at most */
  const void* bodies;
  void (*finish)(const void* tile, const char* sums, int64_t sums_row);
  int step;                           /* units of the depth, and rows, that a kernel of tiles takes at once; else 0 */
  const void* bodies_by_steps;        /* for a panel of A by steps of the depth; or NULL */
  const void* bodies_in_place;        /* for rows of A that are adjacent units, where they lie; or NULL */
  int parts;                          /* bfloat16 that an element is the sum of; else 0 */
} gemm_kernel;

/* Magnitudes in a packed panel of parts, as the bits of float32: the least but zero, less one, and the greatest. */
typedef struct { uint32_t least, greatest; } gemm_range;
#define GEMM_RANGE_OF_ZEROS ((gemm_range){UINT32_MAX, 0})

/* How a kernel blocks a shape, and the columns and blocks of the depth that are at work. */
typedef struct {
  gemm_matrices g;
  const gemm_kernel* kernel;
  int64_t depth_block, depth_blocks;  /* equal but for the last */
  int64_t column_block;               /* columns whose packed B is held at once */
  int64_t blocks_at_once;             /* of the depth: all, unless C holds the sums meanwhile */
  int64_t packed_bytes;               /* for them */
  int64_t row_panels, column_tasks;
  int64_t column, columns;            /* at work; no columns: nothing has been yet */
  int64_t block, blocks;              /* of the depth, at work */
  char* packed;
  int negated;                        /* alpha is -1: A is packed with the other sign, and g.alpha is 1 */
  int by_steps;                       /* A's rows are adjacent: its panels are copied by steps of the depth, not transposed */
  int failed;                         /* for want of memory */
} gemm_plan;

typedef struct {
  const gemm_kernel* kernels[GEMM_KERNELS];  /* NULL: not in this instruction set */
  void (*plan)(gemm_plan* plan, const gemm_kernel* kernel, const gemm_matrices* g, int threads);
  int (*next)(gemm_plan* plan);                            /* move to the next columns and blocks of the depth; 0 behind the last */
  void (*pack)(void* plan, int64_t begin, int64_t end);    /* the panels begin .. end of B's columns at work */
  void (*run)(void* plan, int64_t begin, int64_t end);     /* the tasks begin .. end of row_panels * column_tasks */
  void (*whole)(gemm_plan* plan);                          /* all of it by one thread; plan.packed has packed_bytes */
} gemm_table;
#endif
