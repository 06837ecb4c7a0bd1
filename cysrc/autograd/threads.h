/* Threads of the executor: one that goes on with a backward pass that is nested too deeply for one stack, and the devices' workers. Each has a stack of its
   own size: Python's threading gives every thread the size that the program has chosen for all. */
#ifndef TRT_THREADS_H
#define TRT_THREADS_H
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define TRT_STACK_SIZE (16 << 20)     /* bytes, of address space */

static struct timespec trt_in_milliseconds(int milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += milliseconds * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  return until;
}

static int trt_start_thread(pthread_t* thread, void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  int error;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, TRT_STACK_SIZE);
  error = pthread_create(thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

/* ---- where a thread sleeps until it is woken; a call that comes first is not lost */

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t woken;
  int called;
} trt_bed;

static trt_bed* trt_new_bed(void) {
  trt_bed* b = malloc(sizeof *b);
  if (!b) return NULL;
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->woken, NULL);
  b->called = 0;
  return b;
}

static void trt_free_bed(trt_bed* b) {
  if (!b) return;
  pthread_mutex_destroy(&b->mutex);
  pthread_cond_destroy(&b->woken);
  free(b);
}

static void trt_wake(trt_bed* b) {
  pthread_mutex_lock(&b->mutex);
  b->called = 1;
  pthread_cond_signal(&b->woken);
  pthread_mutex_unlock(&b->mutex);
}

/* Without the GIL; for at most so long, negative: however long. */
static void trt_sleep(trt_bed* b, int milliseconds) {
  struct timespec until;
  if (milliseconds >= 0) until = trt_in_milliseconds(milliseconds);
  pthread_mutex_lock(&b->mutex);
  if (milliseconds < 0) while (!b->called) pthread_cond_wait(&b->woken, &b->mutex);
  else while (!b->called && pthread_cond_timedwait(&b->woken, &b->mutex, &until) != ETIMEDOUT) {}
  b->called = 0;
  pthread_mutex_unlock(&b->mutex);
}

/* ---- a device's worker: it lives as long as the process */

static void* trt_worker_main(void* work) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallNoArgs((PyObject*)work);
  if (!result) PyErr_WriteUnraisable((PyObject*)work);
  Py_XDECREF(result);
  PyGILState_Release(state);
  return NULL;
}

/* work: a callable that the caller keeps for good. */
static int trt_start_worker(PyObject* work, const char* name) {
  pthread_t thread;
  int error = trt_start_thread(&thread, trt_worker_main, work);
  if (error) return error;
  pthread_setname_np(thread, name);
  pthread_detach(thread);
  return 0;
}

/* ---- a nested pass: the waiting thread lends it nothing but the word to stop */

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  PyObject* work;                     /* borrowed: the waiting thread keeps it; raises nothing */
  int done;
  volatile int cancelled;
} trt_nested;

static void* trt_nested_main(void* given) {
  trt_nested* n = (trt_nested*)given;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallNoArgs(n->work);
  if (!result) PyErr_WriteUnraisable(n->work);
  Py_XDECREF(result);
  PyGILState_Release(state);
  pthread_mutex_lock(&n->mutex);
  n->done = 1;
  pthread_cond_signal(&n->ended);
  pthread_mutex_unlock(&n->mutex);
  return NULL;
}

static int trt_nested_start(trt_nested* n, pthread_t* thread) {
  pthread_mutex_init(&n->mutex, NULL);
  pthread_cond_init(&n->ended, NULL);
  n->done = n->cancelled = 0;
  return trt_start_thread(thread, trt_nested_main, n);
}

/* Waits for the end, at most so long; without the GIL. Returns whether it has come. */
static int trt_nested_wait(trt_nested* n, int milliseconds) {
  struct timespec until = trt_in_milliseconds(milliseconds);
  int done;
  pthread_mutex_lock(&n->mutex);
  while (!n->done && pthread_cond_timedwait(&n->ended, &n->mutex, &until) != ETIMEDOUT) {}
  done = n->done;
  pthread_mutex_unlock(&n->mutex);
  return done;
}

static void trt_nested_join(trt_nested* n, pthread_t thread) {
  pthread_join(thread, NULL);
  pthread_mutex_destroy(&n->mutex);
  pthread_cond_destroy(&n->ended);
}
#endif
