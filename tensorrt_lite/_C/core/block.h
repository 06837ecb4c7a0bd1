/* Memory blocks: a reference-counted header and the bytes behind it.
   Storages hold one reference; a kernel that runs without the GIL holds another, so that a resize in another
   thread swaps blocks instead of freeing the one in use. Counts are atomic; the pools rely on the GIL. */
#ifndef TRT_BLOCK_H
#define TRT_BLOCK_H
#include <stdint.h>
#include <stddef.h>

typedef struct trt_block trt_block;
struct trt_block {
  char* data;
  int64_t capacity;                     /* usable bytes at data */
  int64_t refs;
  int32_t size_class;                   /* pool to return to; -1: not pooled */
  int32_t external;                     /* data belongs to somebody else */
  void (*release)(trt_block*);          /* external memory: gives it back */
  void* context;
  trt_block* next;                      /* free list */
};

static inline void trt_block_hold(trt_block* b) { __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED); }
#endif
