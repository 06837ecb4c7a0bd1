/* What is larger than the machine's memory is refused before anything is taken: overcommitted, it would end in the kernel's
 * out-of-memory killer instead of an error. */
#ifndef TRT_PHYSICAL_MEMORY_H
#define TRT_PHYSICAL_MEMORY_H

#include <stdint.h>
#include <unistd.h>

/* Bytes of physical memory. */
static inline int64_t trt_physical(void) {
  static int64_t bytes = 0;
  if (!bytes) bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return bytes;
}

#endif
