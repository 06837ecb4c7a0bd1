/* Locks and atomics, without Python's headers: what allocates and computes also links into programs that have no interpreter.
   With the GIL every lock below is nothing and every atomic a plain access, as whoever runs this holds it. In an interpreter without
   the GIL locks are the interpreter's, which let go of it while they wait; without an interpreter they are the system's.
   docs/state.md says what is under which lock. */
#ifndef TRT_LOCKS_H
#define TRT_LOCKS_H
#include <stdint.h>

#ifndef Py_PYTHON_H
#define TRT_LOCKS_WITHOUT_PYTHON 1
#endif

#if defined(TRT_LOCKS_WITHOUT_PYTHON) || defined(Py_GIL_DISABLED)
#define TRT_FREE_THREADED 1

#ifdef TRT_LOCKS_WITHOUT_PYTHON
#include <pthread.h>
typedef pthread_mutex_t trt_mutex;      /* zero bytes are an open one */
#define trt_mutex_lock(m) pthread_mutex_lock(m)
#define trt_mutex_unlock(m) pthread_mutex_unlock(m)
#else
typedef PyMutex trt_mutex;
#define trt_mutex_lock(m) PyMutex_Lock(m)
#define trt_mutex_unlock(m) PyMutex_Unlock(m)
#endif

#define TRT_ADD(place, n) __atomic_add_fetch(&(place), (n), __ATOMIC_ACQ_REL)
#define TRT_LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define trt_count_up(place) __atomic_add_fetch((place), 1, __ATOMIC_RELAXED)
#define trt_read_shared(place) __atomic_load_n((place), __ATOMIC_RELAXED)
#define trt_write_shared(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)
#define TRT_PUBLISH(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

#else
#define TRT_FREE_THREADED 0

typedef char trt_mutex;
#define trt_mutex_lock(m) ((void)(m))
#define trt_mutex_unlock(m) ((void)(m))

#define TRT_ADD(place, n) ((place) += (n))
#define TRT_LOAD(place) (place)
#define trt_count_up(place) (++*(place))
#define trt_read_shared(place) (*(place))
#define trt_write_shared(place, value) (*(place) = (value))
#define TRT_PUBLISH(place, value) ((place) = (value))
#endif
#endif
