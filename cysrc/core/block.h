/* Memory blocks: a reference-counted header and the bytes behind it.
   Storages hold one reference; a kernel that runs without the GIL holds another, so that a resize in another
   thread swaps blocks instead of freeing the one in use. Counts are atomic; the pools rely on the GIL.
   The header is half a cache line, because a program of many small tensors pays it for each of them. */
#ifndef TRT_BLOCK_H
#define TRT_BLOCK_H
#include <stdint.h>
#include <stddef.h>

typedef struct trt_block trt_block;
struct trt_block {
  char* data;
  int64_t capacity;                     /* usable bytes at data */
  int32_t refs;
  int16_t size_class;                   /* of a slab, or one of TRT_SPAN and its kin in allocator.h */
  uint8_t flags;                        /* TRT_BLOCK_*; 0 for most */
  void* link;                           /* the next free block while it is free, the slab it belongs to while in use */
};

enum {
  TRT_BLOCK_EXTERNAL = 1,               /* data belongs to somebody else: a trt_external_block */
  TRT_BLOCK_READ_ONLY = 2,              /* who lent the memory says that it is not to be written to */
  TRT_BLOCK_LAZY = 4,                   /* several storages may hold it, each as a copy of its own: who writes takes its copy first */
  TRT_BLOCK_EXPOSED = 8,                /* its address has been given away: writes may come that nobody is told of */
  TRT_BLOCK_NOT_WRITABLE = TRT_BLOCK_READ_ONLY | TRT_BLOCK_LAZY
};

typedef struct {
  trt_block block;
  void (*release)(trt_block*);          /* gives the memory back; NULL: nothing to do */
  void* context;
} trt_external_block;

/* Whether the block is external and goes back by this function; what it was given to find it by. */
static inline int trt_block_returns_by(const trt_block* b, void (*release)(trt_block*)) {
  return b->flags & TRT_BLOCK_EXTERNAL && ((const trt_external_block*)b)->release == release;
}
static inline void* trt_block_context(const trt_block* b) { return ((const trt_external_block*)b)->context; }

static inline void trt_block_hold(trt_block* b) { __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED); }
#endif
