/* Spans: runs of pages from the kernel that split, join and serve nearby sizes. allocator.h carves slabs of small blocks out of
   them; blocks above its classes are spans of their own.

   Two heaps, so that a small block that lives long does not cut up the large ones: spans below 1 MiB on ordinary pages, and the
   rest on huge pages (a 16M-element add takes 38 ms into fresh 4 KiB pages and 8 ms into a reused block).
   A free span stays mapped and is given back to the kernel (munmap) when one of these holds:
     - free bytes exceed the bound: a quarter of the recent peak of the live ones plus 64 MB, or what the program chose;
     - fresh pages are needed and live and free bytes together would exceed the peak of the live ones: a cache that could not
       serve a request must not raise the process's peak;
     - they were not needed for a second: each second the least that was free within it goes back;
     - the kernel refuses memory, or the control group's limit is near.
   What went back and is needed again within seconds (training steps that last longer than a second) was given back too soon: then the
   second doubles, up to sixteen, and the quarter of the peak up to the whole; a minute without such a miss halves them again.
   A process that stops allocating is served by a thread that sleeps for a second, returns what is left and ends; it is
   started when more than IDLE_BYTES are free, so that small programs have none. Everything here is called with the GIL; the mutex
   keeps that thread out, and forking waits for it. A child starts a thread of its own when it needs one. Without a GIL the mutex is
   between all threads. */
#ifndef TRT_HEAP_H
#define TRT_HEAP_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "block.h"
#include "locks.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MiB ((int64_t)1 << 20)
enum {
  SPAN_UNIT = 4096,                     /* of the bins of free spans */
  SPAN_BINS = 320,                      /* eight per doubling of the size */
  BIN_SEARCH = 64,                      /* spans of a bin that best fit looks at */
  WINDOW_MS = 1000,
  MOST_PATIENCE = 4,                    /* doublings of the window; of the bound two */
  MISS_MS = 16000,                      /* what is needed again within this time went back too soon */
  PATIENCE_MS = 60000,                  /* without a miss until a doubling is taken back */
};
#define MISSED_BYTES (1024 * MiB)       /* returned too soon, before it counts: the kernel clears that many in some tenths of a second */
#define LARGE_SPAN (1 * MiB)
#define HUGE_PAGE (2 * MiB)
#define IDLE_BYTES (16 * MiB)
#define PEAK_SLACK (8 * MiB)
#define CACHE_SLACK (64 * MiB)
#define CGROUP_CHECK (16 * MiB)         /* mappings of this size are worth reading the control group's usage, some microseconds */

typedef struct trt_span trt_span;
struct trt_span {
  trt_block block;                      /* data and capacity are the span's, in use or free */
  trt_span *below, *above;              /* neighbours in address within what is mapped; NULL: a gap */
  trt_span *next, *previous;            /* in the list of its bin while it is free */
  int64_t freed_at;                     /* ms */
  uint8_t free, small;                  /* small: of SMALL_HEAP */
};

typedef struct {
  int64_t unit, growth;                 /* sizes of spans and of fresh mappings are multiples of these */
  int huge;
  int64_t cached, least_cached;         /* free bytes; the least of them within the running window */
  trt_span* bottom;                     /* the lowest span of the last mapping: the kernel places the next one below it */
  uint64_t nonempty[SPAN_BINS / 64];
  trt_span* bins[SPAN_BINS];
  unsigned operations;
} trt_heap;

static trt_heap trt_heaps[2] = {{.unit = 65536, .growth = HUGE_PAGE, .huge = 1}, {.unit = SPAN_UNIT, .growth = MiB}};
#define LARGE_HEAP (&trt_heaps[0])
#define SMALL_HEAP (&trt_heaps[1])
#define HEAP_OF(span) (&trt_heaps[(span)->small])

typedef struct {
  int64_t live, peak, live_peak;        /* bytes of spans in use; their peak since the start and since reset_peak_memory_stats */
  int64_t window_peak, last_window_peak;
  int64_t mapped, mapped_peak;
  int64_t bound;                        /* chosen by the program; -1: by the rule above */
  int64_t window_start, last_use;       /* ms */
  int64_t patience, patience_since;     /* doublings of window and bound; ms of the last change */
  int64_t unneeded, unneeded_at;        /* bytes returned because nothing needed them, and when; */
  int64_t missed;                       /* of these, mapped again soon after */
  int64_t segments, mappings, splits, joins, returned, returned_idle, returned_pressure;
} trt_memory_figures;
static trt_memory_figures trt_memory = {.bound = -1};

static pthread_mutex_t trt_memory_lock = PTHREAD_MUTEX_INITIALIZER;
static int trt_idle_running = 0;

/* The mutex is between the holder of the GIL and the thread, so a program without that does not pay for it. The thread ends by
   clearing the flag, after which it touches nothing but the mutex. */
static inline int trt_lock(void) {
  int running = TRT_FREE_THREADED || __atomic_load_n(&trt_idle_running, __ATOMIC_ACQUIRE);
  if (running) pthread_mutex_lock(&trt_memory_lock);
  return running;
}
static inline void trt_unlock(int locked) { if (locked) pthread_mutex_unlock(&trt_memory_lock); }
static trt_span* trt_span_pool = NULL;

static int64_t trt_milliseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t trt_round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
static inline int64_t trt_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t trt_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t trt_cached_bytes(void) { return trt_heaps[0].cached + trt_heaps[1].cached; }

static inline int64_t trt_window(void) { return (int64_t)WINDOW_MS << trt_memory.patience; }

static int64_t trt_cache_bound(void) {
  if (trt_memory.bound >= 0) return trt_memory.bound;
  return (trt_larger(trt_memory.window_peak, trt_memory.last_window_peak) >> trt_larger(2 - trt_memory.patience, 0)) + CACHE_SLACK;
}

/* ---- span objects and bins ---- */

static trt_span* trt_new_span(void) {
  trt_span* s = trt_span_pool;
  if (!s) {
    enum { COUNT = 64 };
    s = malloc(COUNT * sizeof(trt_span));
    if (!s) return NULL;
    for (int i = 0; i < COUNT; i++) s[i].next = i + 1 < COUNT ? s + i + 1 : NULL;
  }
  trt_span_pool = s->next;
  memset(s, 0, sizeof *s);
  return s;
}

static void trt_drop_span(trt_span* s) { s->next = trt_span_pool; trt_span_pool = s; }

static inline int trt_bin_of(int64_t size) {
  uint64_t pages = (uint64_t)size / SPAN_UNIT;
  if (pages < 8) return (int)pages;
  int e = 63 - __builtin_clzll(pages);
  int bin = (e - 2) * 8 + (int)((pages >> (e - 3)) & 7);
  return bin < SPAN_BINS ? bin : SPAN_BINS - 1;
}

static void trt_bin_insert(trt_heap* h, trt_span* s) {
  int i = trt_bin_of(s->block.capacity);
  s->free = 1;
  s->previous = NULL;
  s->next = h->bins[i];
  if (s->next) s->next->previous = s;
  h->bins[i] = s;
  h->nonempty[i / 64] |= (uint64_t)1 << i % 64;
  h->cached += s->block.capacity;
}

static void trt_bin_remove(trt_heap* h, trt_span* s) {
  int i = trt_bin_of(s->block.capacity);
  if (s->previous) s->previous->next = s->next; else h->bins[i] = s->next;
  if (s->next) s->next->previous = s->previous;
  if (!h->bins[i]) h->nonempty[i / 64] &= ~((uint64_t)1 << i % 64);
  s->free = 0;
  h->cached -= s->block.capacity;
}

/* The first bin from `i` on that holds a span, or -1. */
static int trt_next_bin(const trt_heap* h, int i) {
  if (i >= SPAN_BINS) return -1;
  int word = i / 64;
  uint64_t bits = h->nonempty[word] & ~(uint64_t)0 << i % 64;
  while (!bits) {
    if (++word == SPAN_BINS / 64) return -1;
    bits = h->nonempty[word];
  }
  return word * 64 + __builtin_ctzll(bits);
}

static int trt_top_bin(const trt_heap* h) {
  for (int word = SPAN_BINS / 64 - 1; word >= 0; word--)
    if (h->nonempty[word]) return word * 64 + 63 - __builtin_clzll(h->nonempty[word]);
  return -1;
}

static trt_span* trt_best_fit(const trt_heap* h, int64_t size) {
  for (int i = trt_next_bin(h, trt_bin_of(size)); i >= 0; i = trt_next_bin(h, i + 1)) {
    trt_span* best = NULL;
    int looked = 0;
    for (trt_span* s = h->bins[i]; s && looked < BIN_SEARCH; s = s->next, looked++) {
      if (s->block.capacity < size || (best && s->block.capacity >= best->block.capacity)) continue;
      best = s;
      if (s->block.capacity == size) break;
    }
    if (best) return best;
  }
  return NULL;
}

/* ---- giving back ---- */

/* Unmap the end of a free span from `cut` on, all of it where that is its beginning. 0: the kernel refused (too many mappings). */
static int trt_unmap_tail(trt_heap* h, trt_span* s, char* cut) {
  int64_t bytes = s->block.data + s->block.capacity - cut;
  if (munmap(cut, bytes)) return 0;
  trt_memory.segments += (s->above != NULL) + (s->below != NULL || cut != s->block.data) - 1;
  if (s->above) s->above->below = NULL;
  trt_bin_remove(h, s);
  if (cut == s->block.data) {
    if (s->below) s->below->above = NULL;
    if (h->bottom == s) h->bottom = s->above;
    trt_drop_span(s);
  } else {
    s->block.capacity -= bytes;
    s->above = NULL;
    trt_bin_insert(h, s);
  }
  trt_memory.mapped -= bytes;
  trt_memory.returned += bytes;
  return 1;
}

/* Give back at least `bytes` free bytes, those freed before `before` alone; returns how many went. */
static int64_t trt_release_older(trt_heap* h, int64_t bytes, int64_t before) {
  int64_t released = 0;
  for (int i = trt_top_bin(h); i > 0 && released < bytes; i--) {
    trt_span* following;
    for (trt_span* s = h->bins[i]; s && released < bytes; s = following) {
      following = s->next;
      if (s->freed_at > before) continue;
      char *begin = s->block.data, *end = begin + s->block.capacity, *cut = begin;
      if (s->block.capacity > bytes - released) {       /* hot blocks come from the beginning of a span: its end goes */
        int64_t unit = h->huge ? HUGE_PAGE : 65536;
        cut = (char*)((uintptr_t)(end - (bytes - released)) / unit * unit);
        if (cut < begin + h->unit) cut = begin;
      }
      if (!trt_unmap_tail(h, s, cut)) return released;
      released += end - cut;
    }
  }
  return released;
}

static int64_t trt_release_from(trt_heap* h, int64_t bytes, int64_t now) {
  int64_t released = trt_release_older(h, bytes, now - trt_window());
  if (released < bytes) released += trt_release_older(h, bytes - released, INT64_MAX);
  h->least_cached = trt_smaller(h->least_cached, h->cached);
  return released;
}

static int64_t trt_release(int64_t bytes, int64_t now) {
  int64_t released = trt_release_from(LARGE_HEAP, bytes, now);
  if (released < bytes) released += trt_release_from(SMALL_HEAP, bytes - released, now);
  return released;
}

/* Fresh pages are mapped: whether as many went back shortly before. */
static void trt_count_missed(int64_t bytes, int64_t now) {
  if (!trt_memory.unneeded) return;
  if (now - trt_memory.unneeded_at > MISS_MS) {
    trt_memory.unneeded = trt_memory.missed = 0;
    return;
  }
  bytes = trt_smaller(bytes, trt_memory.unneeded);
  trt_memory.unneeded -= bytes;
  trt_memory.missed += bytes;
  if (trt_memory.missed < MISSED_BYTES) return;
  trt_memory.missed = trt_memory.unneeded = 0;
  trt_memory.patience = trt_smaller(trt_memory.patience + 1, MOST_PATIENCE);
  trt_memory.patience_since = now;
}

static int64_t trt_return_unneeded(int64_t released, int64_t now) {
  trt_memory.unneeded += released;
  if (released) trt_memory.unneeded_at = now;
  return released;
}

/* Once a window: what was free all the time goes back, and the peak that bounds the cache is forgotten a window later. */
static void trt_tick(int64_t now) {
  const int64_t window = trt_window();
  if (now - trt_memory.window_start < window) return;
  for (int i = 0; i < 2; i++) {
    trt_heap* h = &trt_heaps[i];
    if (h->least_cached > h->growth / 4) trt_memory.returned_idle += trt_return_unneeded(trt_release_from(h, h->least_cached, now), now);
    h->least_cached = h->cached;
  }
  if (trt_memory.patience && now - trt_memory.patience_since > PATIENCE_MS) {
    trt_memory.patience--;
    trt_memory.patience_since = now;
  }
  trt_memory.last_window_peak = now - trt_memory.window_start < 2 * window ? trt_memory.window_peak : trt_memory.live;
  trt_memory.window_peak = trt_memory.live;
  trt_memory.window_start = now;
  int64_t excess = trt_cached_bytes() - trt_cache_bound();
  if (excess > 0) trt_return_unneeded(trt_release(excess, now), now);
}

static void* trt_idle_thread(void* unused) {
  (void)unused;
  int64_t wait = trt_window();
  for (;;) {
    struct timespec pause = {wait / 1000, wait % 1000 * 1000000};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&trt_memory_lock);
    int64_t now = trt_milliseconds();
    if (now - trt_memory.last_use >= trt_window()) trt_memory.returned_idle += trt_return_unneeded(trt_release(INT64_MAX / 2, now), now);
    else trt_tick(now);
    if (trt_cached_bytes() <= IDLE_BYTES) break;
    wait = trt_larger(20, trt_smaller(trt_memory.last_use, trt_memory.window_start) + trt_window() - now + 5);
    pthread_mutex_unlock(&trt_memory_lock);
  }
  __atomic_store_n(&trt_idle_running, 0, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&trt_memory_lock);
  return NULL;
}

/* Signals are for the program's own threads; where no thread can be had, the next request looks at the clock. */
static void trt_start_idle_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_attr_init(&attributes)) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!__atomic_exchange_n(&trt_idle_running, 1, __ATOMIC_ACQ_REL) && pthread_create(&thread, &attributes, trt_idle_thread, NULL))
    __atomic_store_n(&trt_idle_running, 0, __ATOMIC_RELEASE);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

static void trt_memory_prepare_fork(void) { pthread_mutex_lock(&trt_memory_lock); }
static void trt_memory_parent(void) { pthread_mutex_unlock(&trt_memory_lock); }
static void trt_memory_child(void) { trt_idle_running = 0; pthread_mutex_unlock(&trt_memory_lock); }

/* ---- limits ---- */

static char trt_cgroup_usage[512];
static int64_t trt_cgroup_limit = -1;   /* bytes; 0: none; -1: not read yet */

static int64_t trt_read_number(const char* path) {
  char text[32];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  if (n <= 0) return -1;
  text[n] = 0;
  return text[0] >= '0' && text[0] <= '9' ? strtoll(text, NULL, 10) : -1;
}

static void trt_find_cgroup(void) {
  char line[384], path[512];
  trt_cgroup_limit = 0;
  FILE* file = fopen("/proc/self/cgroup", "re");
  if (!file) return;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char* name = !strncmp(line, "0::", 3) ? line + 3 : strstr(line, ":memory:") ? strstr(line, ":memory:") + 8 : NULL;
    if (!name) continue;
    /* inside a container the group's own path is often not visible: its files lie at the root then */
    const char* roots[2] = {name, ""};
    for (int i = 0; i < 2 && trt_cgroup_limit == 0; i++) {
      int v2 = line[0] == '0';
      snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", v2 ? "" : "/memory", roots[i], v2 ? "memory.max" : "memory.limit_in_bytes");
      int64_t limit = trt_read_number(path);
      if (limit <= 0 || limit >= (int64_t)1 << 60) continue;
      trt_cgroup_limit = limit;
      snprintf(trt_cgroup_usage, sizeof trt_cgroup_usage, "/sys/fs/cgroup%s%s/%s", v2 ? "" : "/memory", roots[i],
               v2 ? "memory.current" : "memory.usage_in_bytes");
    }
  }
  fclose(file);
}

/* Bytes that must go before `bytes` more fit well below the control group's limit. */
static int64_t trt_cgroup_excess(int64_t bytes) {
  if (trt_cgroup_limit < 0) trt_find_cgroup();
  if (trt_cgroup_limit == 0) return 0;
  int64_t used = trt_read_number(trt_cgroup_usage);
  return used < 0 ? 0 : used + bytes - (trt_cgroup_limit - trt_cgroup_limit / 16);
}

/* Before `bytes` of fresh pages for a request of `size`. */
static void trt_make_room(int64_t bytes, int64_t size, int64_t now) {
  if (!trt_cached_bytes()) return;
  if (trt_memory.bound < 0) {
    int64_t excess = trt_memory.mapped + bytes - trt_larger(trt_memory.peak, trt_memory.live + size) - PEAK_SLACK;
    if (excess > 0) trt_release(excess, now);
  }
  if (bytes >= CGROUP_CHECK) {
    int64_t excess = trt_cgroup_excess(bytes);
    if (excess > 0) trt_memory.returned_pressure += trt_release(excess, now);
  }
}

/* ---- taking ---- */

static char* trt_map(const trt_heap* h, char* at, int64_t bytes, int fixed) {
  char* p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (fixed && p != at) { munmap(p, bytes); return NULL; }
  if (h->huge) madvise(p, bytes, MADV_HUGEPAGE);
  trt_memory.mappings++;
  return p;
}

/* A fresh mapping that begins at a huge page where the heap has them. */
static char* trt_map_aligned(const trt_heap* h, int64_t bytes) {
  char* p = h->bottom ? trt_map(h, h->bottom->block.data - bytes, bytes, 1) : NULL;
  if (p || !(p = trt_map(h, NULL, bytes, 0)) || !h->huge || (uintptr_t)p % HUGE_PAGE == 0) return p;
  munmap(p, bytes);
  if (!(p = trt_map(h, NULL, bytes + HUGE_PAGE, 0))) return trt_map(h, NULL, bytes, 0);
  char* aligned = (char*)trt_round_up((intptr_t)p, HUGE_PAGE);
  if (aligned > p) munmap(p, aligned - p);
  munmap(aligned + bytes, p + HUGE_PAGE - aligned);
  return aligned;
}

static void trt_count_mapped(int64_t bytes) {
  trt_memory.mapped += bytes;
  trt_memory.mapped_peak = trt_larger(trt_memory.mapped_peak, trt_memory.mapped);
}

/* A span takes over the one above it; both are in no bin. */
static void trt_join(trt_span* s, trt_span* above) {
  s->block.capacity += above->block.capacity;
  if ((s->above = above->above)) s->above->below = s;
  trt_drop_span(above);
  trt_memory.joins++;
}

/* Lengthen the largest free span to `size` by fresh pages before it: sizes that grow reuse what the last one left. Not behind it,
   where the stack may be the next to grow. */
static trt_span* trt_extend(trt_heap* h, int64_t size, int64_t now) {
  int top = trt_top_bin(h);
  trt_span* s = top < 0 ? NULL : h->bins[top];
  if (!s || s->block.capacity < size / 4 || s->below) return NULL;
  int64_t bytes = trt_round_up(size - s->block.capacity, h->growth);
  trt_count_missed(bytes, now);
  trt_bin_remove(h, s);
  trt_make_room(bytes, size, now);
  char* p = trt_map(h, s->block.data - bytes, bytes, 1);
  if (p) {
    s->block.data = p;
    s->block.capacity += bytes;
    trt_count_mapped(bytes);
  }
  trt_bin_insert(h, s);
  return p ? s : NULL;
}

static trt_span* trt_grow(trt_heap* h, int64_t size, int64_t now) {
  trt_span* s = trt_extend(h, size, now);
  if (s) return s;
  if (!(s = trt_new_span())) return NULL;
  int64_t bytes = trt_round_up(size, h->growth);
  trt_count_missed(bytes, now);
  trt_make_room(bytes, size, now);
  char* p = trt_map_aligned(h, bytes);
  if (!p) {
    trt_memory.returned_pressure += trt_release(INT64_MAX / 2, now);
    bytes = trt_round_up(size, h->unit);
    p = trt_map(h, NULL, bytes, 0);
    if (!p) { trt_drop_span(s); return NULL; }
  }
  s->block.data = p;
  s->block.capacity = bytes;
  s->freed_at = now;
  s->small = h == SMALL_HEAP;
  trt_span* lowest = h->bottom;
  trt_memory.segments++;
  if (lowest && p + bytes == lowest->block.data) {
    trt_memory.segments--;
    s->above = lowest;
    lowest->below = s;
    if (lowest->free) { trt_bin_remove(h, lowest); trt_join(s, lowest); }
  }
  h->bottom = s;
  trt_count_mapped(bytes);
  trt_bin_insert(h, s);
  return s;
}

/* A span of at least `size` bytes, or NULL. */
static trt_span* trt_span_take(int64_t size) {
  trt_heap* h = size >= LARGE_SPAN ? LARGE_HEAP : SMALL_HEAP;
  size = trt_round_up(size, h->unit);
  int locked = trt_lock();
  int64_t now = trt_memory.last_use;
  if (h->huge || h->operations++ % 32 == 0) trt_tick(now = trt_memory.last_use = trt_milliseconds());
  trt_span* s = trt_best_fit(h, size);
  if (!s && !(s = trt_grow(h, size, now))) {
    trt_unlock(locked);
    return NULL;
  }
  trt_bin_remove(h, s);
  trt_span* rest;
  if (s->block.capacity - size >= h->unit && (rest = trt_new_span())) {
    rest->block.data = s->block.data + size;
    rest->block.capacity = s->block.capacity - size;
    rest->freed_at = s->freed_at;
    rest->small = s->small;
    rest->below = s;
    if ((rest->above = s->above)) rest->above->below = rest;
    s->above = rest;
    s->block.capacity = size;
    trt_bin_insert(h, rest);
    trt_memory.splits++;
  }
  trt_memory.live += s->block.capacity;
  trt_memory.peak = trt_larger(trt_memory.peak, trt_memory.live);
  trt_memory.live_peak = trt_larger(trt_memory.live_peak, trt_memory.live);
  trt_memory.window_peak = trt_larger(trt_memory.window_peak, trt_memory.live);
  h->least_cached = trt_smaller(h->least_cached, h->cached);
  trt_unlock(locked);
  return s;
}

static void trt_span_give(trt_span* s) {
  trt_heap* h = HEAP_OF(s);
  trt_span* other;
  int locked = trt_lock();
  int64_t now = trt_memory.last_use;
  if (h->huge || h->operations++ % 32 == 0) trt_tick(now = trt_memory.last_use = trt_milliseconds());
  trt_memory.live -= s->block.capacity;
  if ((other = s->below) && other->free) { trt_bin_remove(h, other); trt_join(other, s); s = other; }
  if ((other = s->above) && other->free) { trt_bin_remove(h, other); trt_join(s, other); }
  s->freed_at = now;
  trt_bin_insert(h, s);
  int64_t excess = trt_cached_bytes() - trt_cache_bound();
  if (excess > 0) trt_return_unneeded(trt_release(excess, now), now);
  int idle = trt_cached_bytes() > IDLE_BYTES && !__atomic_load_n(&trt_idle_running, __ATOMIC_ACQUIRE);
  trt_unlock(locked);
  if (idle) trt_start_idle_thread();
}

static void trt_heap_init(void) {
  trt_memory.window_start = trt_memory.last_use = trt_milliseconds();
  pthread_atfork(trt_memory_prepare_fork, trt_memory_parent, trt_memory_child);
}
#endif
