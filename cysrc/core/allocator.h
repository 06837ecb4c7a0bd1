/* Blocks: 64-byte aligned size classes carved from slabs, spans above them, memory of others, and a replaced allocator.

   A slab is a span: its head, one header per slot, then the slots. Headers and slots are first touched when they are first used,
   so a slab of a rare size costs a page or two. Taking a slot is a pop from the slab's list; a slab that has no slot left is
   taken off its class's list when it is next looked at, an empty one goes back to its heap unless it is its class's only one.

   The slabs of one thread, with the figures of what it took and gave back, are a set. With the GIL there is one. Without, each thread has
   its own, so that small operators of several threads share nothing: a slot that another thread gives back waits on a list of its set,
   whose owner takes it in when a class has none left. The set of a thread that has ended is the next new thread's.
   Included by allocator.pyx alone. */
#ifndef TRT_CPU_ALLOCATOR_H
#define TRT_CPU_ALLOCATOR_H
#include <dlfcn.h>
#include <errno.h>
#include "heap.h"
#include "physical_memory.h"
#include "trt_allocator.h"

enum {
  FINE_LIMIT = 1024, FINE_CLASSES = 16,             /* steps of 64 bytes */
  SLOT_LIMIT = 32768, SLOT_CLASSES = FINE_CLASSES + 5 * 8,   /* then eight per doubling */
  TRT_EXTERNAL = -1, TRT_SPAN = -2, TRT_REPLACED = -3,
};

typedef struct trt_slab trt_slab;
typedef struct trt_slab_set trt_slab_set;
struct trt_slab {
  trt_block* free;
  int32_t used, carved, slots;
  int16_t size_class;
  int16_t listed;
  trt_slab *next, *previous;
  trt_span* span;
  char* slot;                           /* the first slot */
  trt_slab_set* set;
};

static const trt_allocator* trt_replacement = NULL;

typedef struct {
  int64_t allocated, peak, requests;
  int64_t slab_bytes;
  int64_t replaced;                     /* bytes in use of other allocators than the built-in one */
} trt_block_figures;

struct trt_slab_set {
  trt_slab* slabs[SLOT_CLASSES + 1];    /* those that may have a slot left, by class */
  trt_external_block* header_pool;
  trt_block_figures stats;              /* of blocks that its threads took less those that they gave back: below zero where they freed others' */
  int64_t reported;                     /* how much of stats.allocated trt_common has been told */
  trt_block* foreign;                   /* slots that other threads gave back, chained by their first bytes */
  trt_slab_set *following, *idle;       /* all sets; those without a thread */
};

#if TRT_FREE_THREADED
static struct {
  pthread_mutex_t lock;                 /* of both lists */
  trt_slab_set *all, *idle;
  int64_t allocated, peak;              /* bytes, up to REPORT_BYTES a thread behind */
} trt_common = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define REPORT_BYTES 65536
static __thread trt_slab_set* trt_own_set __attribute__((tls_model("initial-exec")));
static trt_slab_set* trt_adopt_set(void);
static inline trt_slab_set* trt_set(void) { return __builtin_expect(trt_own_set != NULL, 1) ? trt_own_set : trt_adopt_set(); }
#else
static trt_slab_set trt_only_set;
static inline trt_slab_set* trt_set(void) { return &trt_only_set; }
#endif

/* Bytes that the calling thread took (or gave back, below zero), for the figures. */
static inline void trt_count_bytes(trt_slab_set* set, int64_t bytes) {
  set->stats.allocated += bytes;
#if TRT_FREE_THREADED
  int64_t change = set->stats.allocated - set->reported;
  if (__builtin_expect(change >= REPORT_BYTES || change <= -REPORT_BYTES, 0)) {
    int64_t now = __atomic_add_fetch(&trt_common.allocated, change, __ATOMIC_RELAXED), peak = __atomic_load_n(&trt_common.peak, __ATOMIC_RELAXED);
    while (now > peak && !__atomic_compare_exchange_n(&trt_common.peak, &peak, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    set->reported = set->stats.allocated;
  }
#else
  if (set->stats.allocated > set->stats.peak) set->stats.peak = set->stats.allocated;
#endif
}

static inline int trt_slot_class(int64_t n) {
  if (n <= FINE_LIMIT) return n <= 64 ? 1 : (int)((n + 63) >> 6);
  int e = 63 - __builtin_clzll((uint64_t)n - 1);  /* 2^e < n <= 2^(e + 1) */
  return FINE_CLASSES + (e - 10) * 8 + (int)((n - 1 - ((int64_t)1 << e)) >> (e - 3)) + 1;
}

static int64_t trt_class_size(int c) {
  if (c <= FINE_CLASSES) return 64 * c;
  int e = 10 + (c - FINE_CLASSES - 1) / 8;
  return ((int64_t)1 << e) + ((int64_t)((c - FINE_CLASSES - 1) % 8 + 1) << (e - 3));
}

static void trt_slab_unlist(trt_slab* s) {
  if (s->previous) s->previous->next = s->next; else s->set->slabs[s->size_class] = s->next;
  if (s->next) s->next->previous = s->previous;
  s->listed = 0;
}

static void trt_slab_list(trt_slab* s) {
  s->previous = NULL;
  s->next = s->set->slabs[s->size_class];
  if (s->next) s->next->previous = s;
  s->set->slabs[s->size_class] = s;
  s->listed = 1;
}

static trt_slab* trt_new_slab(trt_slab_set* set, int c) {
  int64_t size = trt_class_size(c);
  int64_t bytes = size <= 2048 ? 65536 : 262144;
  trt_span* span = trt_span_take(bytes);
  if (!span) return NULL;
  trt_slab* s = (trt_slab*)span->block.data;
  memset(s, 0, sizeof *s);
  s->span = span;
  s->set = set;
  s->size_class = (int16_t)c;
  s->slots = (int32_t)((span->block.capacity - (int64_t)sizeof *s - 63) / (size + (int64_t)sizeof(trt_block)));
  s->slot = (char*)trt_round_up((intptr_t)((trt_block*)(s + 1) + s->slots), 64);
  trt_slab_list(s);
  set->stats.slab_bytes += span->block.capacity;
  return s;
}

static void trt_free_slab(trt_slab* s) {
  if (s->listed) trt_slab_unlist(s);
  s->set->stats.slab_bytes -= s->span->block.capacity;
  trt_span_give(s->span);
}

static inline void trt_slot_give_own(trt_block* b) {
  trt_slab* s = (trt_slab*)b->link;
  b->link = s->free;
  s->free = b;
  if (__builtin_expect(--s->used == 0 || !s->listed, 0)) {
    if (!s->listed) trt_slab_list(s);
    if (s->used == 0 && (s->next || s->previous)) trt_free_slab(s);
  }
}

#if TRT_FREE_THREADED
/* The first bytes of a slot are the chain's: nobody uses them any more, and the header is needed to find the slab. */
static void trt_slot_give_foreign(trt_block* b) {
  trt_slab_set* owner = ((trt_slab*)b->link)->set;
  trt_block* first = __atomic_load_n(&owner->foreign, __ATOMIC_RELAXED);
  do *(trt_block**)b->data = first; while (!__atomic_compare_exchange_n(&owner->foreign, &first, b, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* What other threads gave back. */
static int trt_take_foreign(trt_slab_set* set) {
  if (!__atomic_load_n(&set->foreign, __ATOMIC_RELAXED)) return 0;
  for (trt_block *b = __atomic_exchange_n(&set->foreign, NULL, __ATOMIC_ACQUIRE), *following; b; b = following) {
    following = *(trt_block**)b->data;
    trt_slot_give_own(b);
  }
  return 1;
}
#else
static inline int trt_take_foreign(trt_slab_set* set) { (void)set; return 0; }
#endif

/* A slot where the first slab of the class has none on its list: one that was never used, of another slab, or of a fresh one. */
static __attribute__((noinline)) trt_block* trt_slot_slow(trt_slab_set* set, int c) {
  trt_slab* s;
  trt_take_foreign(set);
  while ((s = set->slabs[c]) && !s->free && s->carved == s->slots) trt_slab_unlist(s);
  if (!s && !(s = trt_new_slab(set, c))) return NULL;
  trt_block* b = s->free;
  if (b) {
    s->free = (trt_block*)b->link;
  } else {
    b = (trt_block*)(s + 1) + s->carved;
    b->capacity = trt_class_size(c);
    b->data = s->slot + b->capacity * s->carved++;
    b->size_class = (int16_t)c;
    b->flags = 0;
  }
  s->used++;
  b->link = s;
  return b;
}

static inline trt_block* trt_slot(trt_slab_set* set, int c) {
  trt_slab* s = set->slabs[c];
  trt_block* b;
  if (__builtin_expect(!s || !(b = s->free), 0)) return trt_slot_slow(set, c);
  s->free = (trt_block*)b->link;
  s->used++;
  b->link = s;
  return b;
}

static inline void trt_slot_give(trt_slab_set* set, trt_block* b) {
#if TRT_FREE_THREADED
  if (__builtin_expect(((trt_slab*)b->link)->set != set, 0)) { trt_slot_give_foreign(b); return; }
#else
  (void)set;
#endif
  trt_slot_give_own(b);
}

/* Slabs without a block in use, which their classes keep for the next one. */
static void trt_free_empty_slabs_of(trt_slab_set* set) {
  trt_take_foreign(set);
  for (int c = 1; c <= SLOT_CLASSES; c++) {
    trt_slab* following;
    for (trt_slab* s = set->slabs[c]; s; s = following) {
      following = s->next;
      if (s->used == 0) trt_free_slab(s);
    }
  }
}

#if TRT_FREE_THREADED
static pthread_key_t trt_set_key;
static pthread_once_t trt_set_once = PTHREAD_ONCE_INIT;

/* The end of a thread: its set waits for another one. */
static void trt_leave_set(void* p) {
  trt_slab_set* set = p;
  trt_own_set = NULL;
  trt_free_empty_slabs_of(set);
  pthread_mutex_lock(&trt_common.lock);
  set->idle = trt_common.idle;
  trt_common.idle = set;
  pthread_mutex_unlock(&trt_common.lock);
}

static void trt_sets_before_fork(void) { pthread_mutex_lock(&trt_common.lock); }
static void trt_sets_after_fork(void) { pthread_mutex_unlock(&trt_common.lock); }

static void trt_prepare_sets(void) {
  pthread_key_create(&trt_set_key, trt_leave_set);
  pthread_atfork(trt_sets_before_fork, trt_sets_after_fork, trt_sets_after_fork);
}

/* The first block of a thread. Where there is no memory for a set, all such threads would have to share one: the process can't go on. */
static __attribute__((noinline)) trt_slab_set* trt_adopt_set(void) {
  pthread_once(&trt_set_once, trt_prepare_sets);
  pthread_mutex_lock(&trt_common.lock);
  trt_slab_set* set = trt_common.idle;
  if (set) {
    trt_common.idle = set->idle;
  } else if ((set = calloc(1, sizeof *set))) {
    set->following = trt_common.all;
    trt_common.all = set;
  }
  pthread_mutex_unlock(&trt_common.lock);
  if (!set) {
    fputs("tensorrt_lite: no memory for a thread's allocator\n", stderr);
    abort();
  }
  pthread_setspecific(trt_set_key, set);
  return trt_own_set = set;
}

static void trt_free_empty_slabs(void) {
  trt_free_empty_slabs_of(trt_set());
  pthread_mutex_lock(&trt_common.lock);
  for (trt_slab_set* set = trt_common.idle; set; set = set->idle) trt_free_empty_slabs_of(set);
  pthread_mutex_unlock(&trt_common.lock);
}

static trt_block_figures trt_figures(void) {
  trt_block_figures all = {.peak = __atomic_load_n(&trt_common.peak, __ATOMIC_RELAXED)};
  pthread_mutex_lock(&trt_common.lock);
  for (trt_slab_set* set = trt_common.all; set; set = set->following) {
    all.allocated += set->stats.allocated;
    all.requests += set->stats.requests;
    all.slab_bytes += set->stats.slab_bytes;
    all.replaced += set->stats.replaced;
  }
  pthread_mutex_unlock(&trt_common.lock);
  if (all.allocated > all.peak) all.peak = all.allocated;
  return all;
}

static void trt_start_peak(void) { __atomic_store_n(&trt_common.peak, trt_figures().allocated, __ATOMIC_RELAXED); }
#else
static void trt_free_empty_slabs(void) { trt_free_empty_slabs_of(&trt_only_set); }
static trt_block_figures trt_figures(void) { return trt_only_set.stats; }
static void trt_start_peak(void) { trt_only_set.stats.peak = trt_only_set.stats.allocated; }
#endif

static void trt_empty_cache(void) {
  trt_free_empty_slabs();
  int locked = trt_lock();
  trt_release(INT64_MAX / 2, trt_milliseconds());
  trt_unlock(locked);
}

static void trt_set_cache_bound(int64_t nbytes) {
  int locked = trt_lock();
  trt_memory.bound = nbytes;
  int64_t excess = trt_cached_bytes() - trt_cache_bound();
  if (excess > 0) trt_release(excess, trt_milliseconds());
  trt_unlock(locked);
}

/* The figures' peaks; the peak that fresh pages are held to is the process's and stays. */
static void trt_reset_peaks(void) {
  int locked = trt_lock();
  trt_memory.live_peak = trt_memory.live;
  trt_memory.mapped_peak = trt_memory.mapped;
  trt_unlock(locked);
}

/* ---- headers of memory from elsewhere ---- */

static trt_external_block* trt_new_header(void) {
  trt_slab_set* set = trt_set();
  trt_external_block* b = set->header_pool;
  if (b) set->header_pool = (trt_external_block*)b->block.link;
  else if (!(b = malloc(sizeof *b))) return NULL;
  memset(b, 0, sizeof *b);
  b->block.refs = 1;
  return b;
}

static void trt_drop_header(trt_external_block* b) {
  trt_slab_set* set = trt_set();
  b->block.link = set->header_pool;
  set->header_pool = b;
}

static trt_block* trt_replaced_alloc(const trt_allocator* a, int64_t nbytes) {
  trt_external_block* b = trt_new_header();
  if (!b) return NULL;
  if (nbytes == 0) nbytes = 1;
  b->block.data = a->allocate((size_t)nbytes, 64, a->context);
  if (!b->block.data) { trt_drop_header(b); return NULL; }
  b->block.capacity = nbytes;
  b->block.size_class = TRT_REPLACED;
  b->context = (void*)a;
  trt_set()->stats.replaced += nbytes;
  return &b->block;
}

/* Every block its own allocation of exactly its bytes, so that sanitizers and guard allocators see overruns. */
static void* trt_system_allocate(size_t bytes, size_t alignment, void* context) {
  /* a pointer, because gcc takes the allocation functions that it knows for not setting errno (-fno-math-errno) */
  static void* (*volatile allocate)(size_t, size_t) = aligned_alloc;
  (void)context;
  errno = 0;
  void* p = allocate(alignment, bytes);
  if (p || errno != EINVAL) return p;
  return posix_memalign(&p, alignment, bytes) ? NULL : p;    /* the address sanitizer refuses other sizes than multiples to aligned_alloc */
}
static void trt_system_free(void* address, size_t bytes, void* context) { (void)bytes; (void)context; free(address); }
static const trt_allocator trt_system_allocator = {trt_system_allocate, trt_system_free, NULL};

/* ---- blocks ---- */

static __attribute__((noinline)) trt_block* trt_block_slow(int64_t nbytes) {
  if (nbytes > trt_physical()) return NULL;
  if (trt_replacement) return trt_replaced_alloc(trt_replacement, nbytes);
  trt_span* span = trt_span_take(nbytes);
  if (!span && (trt_free_empty_slabs(), !(span = trt_span_take(nbytes)))) return NULL;
  span->block.size_class = TRT_SPAN;
  span->block.flags = 0;
  return &span->block;
}

static int64_t trt_slot_limit = SLOT_LIMIT;         /* -1 while another allocator is the current one */

static inline trt_block* trt_block_alloc(int64_t nbytes) {
  trt_slab_set* set = trt_set();
  trt_block* b = __builtin_expect(nbytes <= trt_slot_limit, 1) ? trt_slot(set, trt_slot_class(nbytes)) : trt_block_slow(nbytes);
  if (__builtin_expect(!b, 0)) return NULL;
  b->refs = 1;
  set->stats.requests++;
  trt_count_bytes(set, b->capacity);
  return b;
}

static __attribute__((noinline)) void trt_block_free_slow(trt_block* b) {
  trt_external_block* e = (trt_external_block*)b;
  switch (b->size_class) {
    case TRT_SPAN: trt_span_give((trt_span*)b); break;
    case TRT_REPLACED: {
      const trt_allocator* a = e->context;
      trt_set()->stats.replaced -= b->capacity;
      a->free(b->data, (size_t)b->capacity, a->context);
      trt_drop_header(e);
      break;
    }
    default:
      if (e->release) e->release(b);
      trt_drop_header(e);
  }
}

static inline void trt_block_drop(trt_block* b) {
  if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL)) return;
  if (__builtin_expect(b->flags, 0)) b->flags &= TRT_BLOCK_EXTERNAL;      /* marks end with the last reference */
  trt_slab_set* set = trt_set();
  if (!b->flags) trt_count_bytes(set, -b->capacity);
  if (__builtin_expect(b->size_class > 0, 1)) trt_slot_give(set, b);
  else trt_block_free_slow(b);
}

/* ---- choosing the allocator ---- */

static void trt_set_allocator(const trt_allocator* a) {
  trt_replacement = a;
  trt_slot_limit = a ? -1 : SLOT_LIMIT;
}

/* NULL, or why what TENSORRT_LITE_CPU_ALLOCATOR names can't be used. */
static const char* trt_choose_allocator(const char* name) {
  if (!name || !*name || !strcmp(name, "caching")) return NULL;
  if (!strcmp(name, "system")) { trt_set_allocator(&trt_system_allocator); return NULL; }
  if (!strchr(name, '/')) return "it is none of caching, system and the path of a shared library";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  const trt_allocator* a = dlsym(library, "trt_cpu_allocator");
  if (!a || !a->allocate || !a->free) return "the library exports no complete `trt_allocator trt_cpu_allocator`";
  trt_set_allocator(a);
  return NULL;
}
#endif
