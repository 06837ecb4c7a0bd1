/* A thread for the backward passes that are nested too deeply for one stack, made with a stack of its own size: Python's threading
   gives every thread the size that the program has chosen for all. The waiting thread lends it nothing but the word to stop. */
#ifndef TRT_NESTED_THREAD_H
#define TRT_NESTED_THREAD_H
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define TRT_NESTED_STACK (16 << 20)   /* bytes, of address space */

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
  pthread_attr_t attributes;
  int error;
  pthread_mutex_init(&n->mutex, NULL);
  pthread_cond_init(&n->ended, NULL);
  n->done = n->cancelled = 0;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, TRT_NESTED_STACK);
  error = pthread_create(thread, &attributes, trt_nested_main, n);
  pthread_attr_destroy(&attributes);
  return error;
}

/* Waits for the end, at most so long; without the GIL. Returns whether it has come. */
static int trt_nested_wait(trt_nested* n, int milliseconds) {
  struct timespec until;
  int done;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += milliseconds * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
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
