/* The interface of a CPU allocator that replaces the built-in one. Offer one in three ways:
     a shared library with two functions      trt.cpu.memory.CPUPluggableAllocator("lib.so", "allocate_name", "free_name")
     two Python callables                     trt.cpu.memory.CPUPluggableAllocator(allocate, free)
     a library named in the environment       TENSORRT_LITE_CPU_ALLOCATOR=/path/lib.so, which exports `trt_allocator trt_cpu_allocator`;
                                              it then serves the first block already
   Calls come with Python's GIL held, from any thread. A block goes back to the allocator that it came from, with the size that
   was asked for, also after another allocator was made the current one. */
#ifndef TRT_ALLOCATOR_H
#define TRT_ALLOCATOR_H
#include <stddef.h>

typedef struct trt_allocator {
  /* At least `bytes` bytes (never 0) at a multiple of `alignment` (64), or NULL: the operator raises RuntimeError. */
  void* (*allocate)(size_t bytes, size_t alignment, void* context);
  void (*free)(void* address, size_t bytes, void* context);
  void* context;
} trt_allocator;
#endif
