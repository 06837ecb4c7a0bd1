/* Whether another process has the cores that a region's threads would run on.

   A region ends when its last thread does, and a thread that shares its core may not run for a time slice of some milliseconds: two
   threads took 100 ms for a step that one does in 0.53. A region that is watched measures the processor time of its threads, which is
   what one thread would have taken, and the time on the clock. Two in short succession that lost time by being split start a pause in
   which regions run in one thread; then the next ones try again. (One alone happens on any machine some times a second, and the first
   after a pause wakes threads that sleep.) A pause lasts twice what was lost, and longer each time that the try fails, up to twenty
   times, so that losing costs a twentieth. All regions are watched after a loss, otherwise one of four, since the question for a thread's processor
   time is a system call, 0.4 us. Results do not depend on the number of threads, so nothing else changes.
   Python threads without the GIL share these figures: they are hints, read and written without order. */
#ifndef TRT_SHARED_CORES_H
#define TRT_SHARED_CORES_H
#include <stdint.h>
#include <time.h>

enum {
  GOOD_REGIONS = 50,                    /* regions in a row that halve the next pause */
  WATCH_EVERY = 4,                      /* a power of two */
  SUSPICIOUS_REGIONS = 64,              /* after a loss: a second one among them starts a pause */
};
#define LOSS_NS 50000                   /* what waiting for a thread that spins may cost */
#define WAKE_NS 500000                  /* the same for one that sleeps, on a virtual processor that sleeps, too */
#define SHORTEST_PAUSE_NS 10000000
#define LONGEST_PAUSE_NS 2000000000

typedef struct { int64_t work, idle; } trt_region;      /* ns: processor time of all threads; most that one was kept from running */

typedef struct {
  int64_t until, pause;                 /* ns; until 0: no pause */
  int64_t split, serial, lost;          /* regions: run by several threads, by one because of a pause, and those that lost time */
  int failures, good, suspicion, waking;      /* waking: the next region is the first, or the first after a pause */
  int divisor;                          /* tests split small work, too, and whoever has the cores; 0: no */
} trt_cores_figures;
static trt_cores_figures trt_cores = {.waking = 1};      /* the first region makes the threads */

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
  TRT_WRITE(trt_cores.waking, 1);
  return 0;
}

/* Whether the region that begins now is to be measured. Counts it. */
static int trt_watch_region(void) {
  int64_t split = TRT_READ(trt_cores.split);
  TRT_WRITE(trt_cores.split, split + 1);
  return TRT_READ(trt_cores.failures) || TRT_READ(trt_cores.suspicion) || (split & (WATCH_EVERY - 1)) == 0;
}

/* After a watched region that took `wall` ns, `lost` more than one thread would have. */
static void trt_judge_region(int64_t wall, int64_t lost) {
  int failures = TRT_READ(trt_cores.failures), suspicion = TRT_READ(trt_cores.suspicion);
  int64_t most = LOSS_NS;
  if (TRT_READ(trt_cores.waking)) { most = WAKE_NS; TRT_WRITE(trt_cores.waking, 0); }
  if (lost < most || lost < wall / 4) {
    if (suspicion) TRT_WRITE(trt_cores.suspicion, suspicion - 1);
    int good = TRT_READ(trt_cores.good) + 1;
    if (good >= GOOD_REGIONS && failures > 0) { TRT_WRITE(trt_cores.failures, failures - 1); good = 0; }
    TRT_WRITE(trt_cores.good, good);
    return;
  }
  TRT_WRITE(trt_cores.lost, TRT_READ(trt_cores.lost) + 1);
  TRT_WRITE(trt_cores.suspicion, SUSPICIOUS_REGIONS);
  if (!failures && !suspicion) return;
  int64_t shortest = (int64_t)SHORTEST_PAUSE_NS << failures, pause = (failures < 3 ? 2 << failures : 20) * lost;
  if (pause < shortest) pause = shortest;
  if (pause > LONGEST_PAUSE_NS) pause = LONGEST_PAUSE_NS;
  if (failures < 7) TRT_WRITE(trt_cores.failures, failures + 1);
  TRT_WRITE(trt_cores.good, 0);
  TRT_WRITE(trt_cores.pause, pause);
  TRT_WRITE(trt_cores.until, trt_now_ns() + pause);
}
#endif
