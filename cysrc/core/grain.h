/* How much work is worth a thread. A region costs some microseconds where cores are free and a time slice, milliseconds, where another
   process has the core; the second is what shared_cores.h looks after. What one thread does in some 10 us is not split. With grains
   of 50 us a step of a small CNN took half as long again in two threads, one of a small transformer a third. */
#ifndef TRT_GRAIN_H
#define TRT_GRAIN_H
enum {
  GRAIN = 32768,             /* elements of an addition that lies in the cache; divided by the cost of what is done */
  COPY_GRAIN = 1 << 19,      /* bytes copied */
};
#endif
