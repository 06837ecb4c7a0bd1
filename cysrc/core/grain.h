/* How much work is worth a thread. A region costs some microseconds where cores are free and a time slice, milliseconds, where another
   process has the core; the second is what shared_cores.h looks after. What one thread does in some 25 us is not split. With grains
   four times as large a step of a small CNN took half as long again in two threads. */
#ifndef TRT_GRAIN_H
#define TRT_GRAIN_H
enum {
  GRAIN = 131072,            /* elements of an addition that lies in the cache; divided by the cost of what is done */
  COPY_GRAIN = 1 << 21,      /* bytes copied */
};
#endif
