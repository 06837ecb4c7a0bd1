/* How much work is worth a thread. A region costs some microseconds where cores are free and a time slice, milliseconds, where another
   process has the core, so what one thread does in about 100 us is not split: a grain is half of that, about 50 us. */
#ifndef TRT_GRAIN_H
#define TRT_GRAIN_H
enum {
  GRAIN = 524288,            /* elements of an addition that lies in the cache; divided by the cost of what is done */
  COPY_GRAIN = 1 << 21,      /* bytes copied */
};
#endif
