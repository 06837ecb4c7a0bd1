/* What Python's objects need besides locks.h in an interpreter without the GIL (Py_GIL_DISABLED): another way to read and take reference
   counts, and locks for objects that have no room for one. */
#ifndef TRT_FREE_THREADING_H
#define TRT_FREE_THREADING_H
#include <Python.h>
#include "locks.h"
#ifdef TRT_LOCKS_WITHOUT_PYTHON
#error "Python.h comes before locks.h in what works on Python's objects"
#endif

#if TRT_FREE_THREADED
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
static inline int trt_held_at_most(PyObject* o, Py_ssize_t n) { return Py_REFCNT(o) <= n; }
static inline void trt_keep_for_ever(PyObject* o) { (void)o; }
static inline void trt_allow_finding(PyObject* o) { (void)o; }
static inline int trt_find(PyObject* o) { Py_INCREF(o); return 1; }
#endif

/* Locks for objects that have no room for one: a few for all of them. Who holds one waits for no other of them. */
enum { TRT_SHARED_LOCKS = 64 };
static trt_mutex trt_shared_locks[TRT_SHARED_LOCKS];
static inline trt_mutex* trt_lock_of(const void* o) { return &trt_shared_locks[((uintptr_t)o >> 4) * 0x9E3779B97F4A7C15u >> 58]; }
#endif
