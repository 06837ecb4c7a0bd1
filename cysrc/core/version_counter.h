/* What views share with their base: the number of writes in place, and the list of the differentiable views.
   Counters that nobody needs any more are kept for the next one; without the GIL they go back to malloc, which has a cache for each thread. */
#ifndef TRT_VERSION_COUNTER_H
#define TRT_VERSION_COUNTER_H
#include "free_threading.h"
#include <stdlib.h>

typedef struct trt_version_counter trt_version_counter;
struct trt_version_counter {
  int64_t refs, value;
  trt_version_counter* next;            /* while it is kept */
  PyObject* views;                      /* borrowed: head of the list of differentiable views */
#if TRT_FREE_THREADED
  trt_mutex lock;                       /* of that list */
#endif
};

#if TRT_FREE_THREADED
#define trt_lock_views(v) trt_mutex_lock(&(v)->lock)
#define trt_unlock_views(v) trt_mutex_unlock(&(v)->lock)

/* The counter that `place` holds, made with the value `own` by whoever first needs it: threads that view one tensor may come at once. NULL: no memory. */
static trt_version_counter* trt_share_version(trt_version_counter** place, int64_t own) {
  trt_version_counter *v = TRT_LOAD(*place), *fresh;
  if (v) return v;
  if (!(fresh = calloc(1, sizeof *fresh))) return NULL;
  fresh->refs = 1;
  fresh->value = own;
  if (__atomic_compare_exchange_n(place, &v, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return fresh;
  free(fresh);
  return v;
}

static inline void trt_drop_version(trt_version_counter* v) { if (TRT_ADD(v->refs, -1) == 0) free(v); }
#else
#define trt_lock_views(v) ((void)(v))
#define trt_unlock_views(v) ((void)(v))

static trt_version_counter* trt_version_cache;

static inline trt_version_counter* trt_share_version(trt_version_counter** place, int64_t own) {
  trt_version_counter* v = *place;
  if (v) return v;
  if ((v = trt_version_cache)) trt_version_cache = v->next;
  else if (!(v = malloc(sizeof *v))) return NULL;
  v->refs = 1;
  v->views = NULL;
  v->value = own;
  return *place = v;
}

static inline void trt_drop_version(trt_version_counter* v) {
  if (--v->refs) return;
  v->next = trt_version_cache;
  trt_version_cache = v;
}
#endif

static inline void trt_hold_version(trt_version_counter* v) { TRT_ADD(v->refs, 1); }
static inline void trt_bump_version(trt_version_counter* v) { TRT_ADD(v->value, 1); }
#endif
