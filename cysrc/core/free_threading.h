/* What an interpreter without the GIL (Py_GIL_DISABLED) needs besides: locks, atomics, and another way to read reference counts.
   With the GIL every lock below is nothing and every atomic a plain access, as whoever runs this holds it. docs/state.md says what is under which lock. */
#ifndef TRT_FREE_THREADING_H
#define TRT_FREE_THREADING_H
#include <Python.h>
#include <stdint.h>

#ifdef Py_GIL_DISABLED
#define TRT_FREE_THREADED 1

typedef PyMutex trt_mutex;
#define trt_mutex_lock(m) PyMutex_Lock(m)
#define trt_mutex_unlock(m) PyMutex_Unlock(m)

#define TRT_ADD(place, n) __atomic_add_fetch(&(place), (n), __ATOMIC_ACQ_REL)
#define TRT_LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define trt_count_up(place) __atomic_add_fetch((place), 1, __ATOMIC_RELAXED)
#define trt_read_shared(place) __atomic_load_n((place), __ATOMIC_RELAXED)
#define trt_write_shared(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)
#define TRT_PUBLISH(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

/* Whether there are no more than n references to an object. A thread sees that of its own objects alone and says no of all others: who asks then makes a copy. */
static inline int trt_held_at_most(PyObject* o, Py_ssize_t n) {
  return o->ob_tid == _Py_ThreadId() && __atomic_load_n(&o->ob_ref_local, __ATOMIC_RELAXED) <= (uint32_t)n &&
         __atomic_load_n(&o->ob_ref_shared, __ATOMIC_RELAXED) >> _Py_REF_SHARED_SHIFT == 0;
}

/* An object of the process's whole life that every call meets: its reference count is nobody's any more, as threads would hand the line of memory around. */
static inline void trt_keep_for_ever(PyObject* o) {
  o->ob_tid = 0;
  o->ob_ref_local = UINT32_MAX;
  o->ob_ref_shared = 0;
}

#else
#define TRT_FREE_THREADED 0

static inline void trt_keep_for_ever(PyObject* o) { (void)o; }

typedef char trt_mutex;
#define trt_mutex_lock(m) ((void)(m))
#define trt_mutex_unlock(m) ((void)(m))

#define TRT_ADD(place, n) ((place) += (n))
#define TRT_LOAD(place) (place)
#define trt_count_up(place) (++*(place))
#define trt_read_shared(place) (*(place))
#define trt_write_shared(place, value) (*(place) = (value))
#define TRT_PUBLISH(place, value) ((place) = (value))

static inline int trt_held_at_most(PyObject* o, Py_ssize_t n) { return Py_REFCNT(o) <= n; }
#endif

/* Locks for objects that have no room for one: a few for all of them. Who holds one waits for no other of them. */
enum { TRT_SHARED_LOCKS = 64 };
static trt_mutex trt_shared_locks[TRT_SHARED_LOCKS];
static inline trt_mutex* trt_lock_of(const void* o) { return &trt_shared_locks[((uintptr_t)o >> 4) * 0x9E3779B97F4A7C15u >> 58]; }

#if TRT_FREE_THREADED
/* Pointers without a reference, kept in a place that the object's deallocator clears under a lock before it does anything else: whoever holds that lock may
   take a reference if there still is one. An object that other threads may find so says it when it is made. */
static inline void trt_allow_finding(PyObject* o) {
  Py_ssize_t none = 0;
  __atomic_compare_exchange_n(&o->ob_ref_shared, &none, _Py_REF_MAYBE_WEAKREF, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static inline int trt_find(PyObject* o) {
  if (o->ob_tid == _Py_ThreadId()) { Py_INCREF(o); return 1; }
  Py_ssize_t shared = __atomic_load_n(&o->ob_ref_shared, __ATOMIC_RELAXED);
  do if (shared == 0 || shared == _Py_REF_MERGED) return 0;
  while (!__atomic_compare_exchange_n(&o->ob_ref_shared, &shared, shared + (1 << _Py_REF_SHARED_SHIFT), 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return 1;
}
#else
static inline void trt_allow_finding(PyObject* o) { (void)o; }
static inline int trt_find(PyObject* o) { Py_INCREF(o); return 1; }
#endif
#endif
