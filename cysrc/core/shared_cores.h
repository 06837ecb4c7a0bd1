/* Whether another process has the cores that a region's threads would run on.

   A region ends when its last thread does, and a thread that shares its core may not run for a time slice of some milliseconds: two
   threads took 100 ms for a step that one does in 0.53. Each region measures the processor time of its threads, which is what
   one thread would have taken, and the time on the clock. One that lost time by being split starts a pause in which regions run
   in one thread; then the next one tries again. A pause lasts twenty times what was lost, and longer each time that the try
   fails, so that losing costs a twentieth. Results do not depend on the number of threads, so nothing else changes.
   Python threads without the GIL share these figures: they are hints, read and written without order. */
#ifndef TRT_SHARED_CORES_H
#define TRT_SHARED_CORES_H
#include <stdint.h>
#include <time.h>

enum { GOOD_REGIONS = 50 };             /* regions in a row that halve the next pause */
#define LOSS_NS 50000                   /* what a wake-up may cost */
#define SHORTEST_PAUSE_NS 10000000
#define LONGEST_PAUSE_NS 2000000000

typedef struct { int64_t work, idle; } trt_region;      /* ns: processor time of all threads; most that one was kept from running */

typedef struct {
  int64_t until, pause;                 /* ns; until 0: no pause */
  int64_t split, serial, lost;          /* regions: run by several threads, by one because of a pause, and those that lost time */
  int failures, good;
  int divisor;                          /* tests split small work, too, and whoever has the cores; 0: no */
} trt_cores_figures;
static trt_cores_figures trt_cores;

#define TRT_READ(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define TRT_WRITE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

static inline int64_t trt_clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline int64_t trt_now_ns(void) { return trt_clock_ns(CLOCK_MONOTONIC); }
static inline int64_t trt_thread_ns(void) { return trt_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/* Asked once for each region that would be split. */
static int trt_cores_shared(void) {
  int64_t until = TRT_READ(trt_cores.until);
  if (!until || trt_cores.divisor) return 0;
  if (trt_now_ns() < until) { TRT_WRITE(trt_cores.serial, TRT_READ(trt_cores.serial) + 1); return 1; }
  TRT_WRITE(trt_cores.until, 0);
  return 0;
}

/* After a split region that took `wall` ns, `lost` more than one thread would have. */
static void trt_judge_region(int64_t wall, int64_t lost) {
  TRT_WRITE(trt_cores.split, TRT_READ(trt_cores.split) + 1);
  int failures = TRT_READ(trt_cores.failures);
  if (lost < LOSS_NS || lost < wall / 4) {
    int good = TRT_READ(trt_cores.good) + 1;
    if (good >= GOOD_REGIONS && failures > 0) { TRT_WRITE(trt_cores.failures, failures - 1); good = 0; }
    TRT_WRITE(trt_cores.good, good);
    return;
  }
  int64_t shortest = (int64_t)SHORTEST_PAUSE_NS << failures, pause = 20 * lost;
  if (pause < shortest) pause = shortest;
  if (pause > LONGEST_PAUSE_NS) pause = LONGEST_PAUSE_NS;
  if (failures < 7) TRT_WRITE(trt_cores.failures, failures + 1);
  TRT_WRITE(trt_cores.good, 0);
  TRT_WRITE(trt_cores.lost, TRT_READ(trt_cores.lost) + 1);
  TRT_WRITE(trt_cores.pause, pause);
  TRT_WRITE(trt_cores.until, trt_now_ns() + pause);
}
#endif
