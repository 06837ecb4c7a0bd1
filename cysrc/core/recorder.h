/* What the profiler writes while a program runs: a buffer of fixed records per thread, and words of detail (shapes, stacks) beside them. Nothing here
   makes a Python object; core/profiler.pyx does at the end. Everything happens under the GIL; without one the end of a recording waits for threads that write. */
#ifndef TRT_RECORDER_H
#define TRT_RECORDER_H
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sched.h>
#include <sys/syscall.h>
#include "free_threading.h"
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

typedef struct {
  int64_t begin, end;                   /* ticks; end 0: not yet */
  void* what;                           /* by kind: a trt_operator, or an object that the record owns; of memory its address */
  int64_t sequence;                     /* the newest Node's number at the beginning; a Node's own; of memory the bytes, negative when freed */
  int64_t after;                        /* the newest Node's number at the end; of memory what is in use then */
  int64_t detail, stack;                /* where the words of the arguments and of the Python frames begin; 0: none */
  int32_t mark;                         /* the first of two marks on the device, or -1 */
  uint8_t kind, device, in_place;       /* the kind of work; the type of the device that does it; whether it writes to the first argument */
} trt_record;

typedef struct trt_recorder {
  struct trt_recorder* next;            /* of another thread, in the same recording */
  trt_record* records;
  int64_t count, capacity, dropped;
  int64_t* words;
  int64_t used, room;                   /* of words */
  int64_t thread;                       /* the system's number of the thread */
  unsigned long python_thread;
  int* writing;                         /* the thread's word, without the GIL */
} trt_recorder;

/* A thread's recorder is valid while the recording that it belongs to is the one that runs. */
static __thread trt_recorder* trt_own_recorder __attribute__((tls_model("initial-exec")));
static __thread int64_t trt_own_recording __attribute__((tls_model("initial-exec")));

#if TRT_FREE_THREADED
/* How many functions of this thread write to its buffer now, one inside the other. It outlives the thread, since the end of a recording looks at it. */
static __thread int* trt_own_writing __attribute__((tls_model("initial-exec")));
static inline int trt_begin_writing(void) {
  if (!trt_own_writing && !(trt_own_writing = calloc(1, sizeof(int)))) return 0;
  __atomic_store_n(trt_own_writing, *trt_own_writing + 1, __ATOMIC_SEQ_CST);
  return 1;
}
static inline void trt_end_writing(void) { __atomic_store_n(trt_own_writing, *trt_own_writing - 1, __ATOMIC_RELEASE); }
static void trt_wait_for_writers(trt_recorder* r) {
  for (; r; r = r->next)
    while (r->writing != trt_own_writing && __atomic_load_n(r->writing, __ATOMIC_SEQ_CST)) sched_yield();
}
#else
static int* const trt_own_writing = NULL;
static inline int trt_begin_writing(void) { return 1; }
static inline void trt_end_writing(void) {}
static inline void trt_wait_for_writers(trt_recorder* r) { (void)r; }
#endif

static int64_t trt_nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int trt_counts_cycles;           /* whether the processor's counter runs at one speed on all cores */

static void trt_choose_clock(void) {
#ifdef __x86_64__
  unsigned a, b, c, d;
  trt_counts_cycles = __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#endif
}

static inline int64_t trt_ticks(void) {
#ifdef __x86_64__
  if (__builtin_expect(trt_counts_cycles, 1)) return (int64_t)__rdtsc();
#endif
  return trt_nanoseconds();
}

static trt_recorder* trt_new_recorder(trt_recorder* next) {
  trt_recorder* r = calloc(1, sizeof(trt_recorder));
  if (!r) return NULL;
  r->capacity = 1 << 14;
  r->records = malloc(r->capacity * sizeof(trt_record));
  if (!r->records) { free(r); return NULL; }
  r->used = 1;                          /* a place of 0 is none */
  r->thread = syscall(SYS_gettid);
  r->python_thread = PyThread_get_thread_ident();
  r->writing = trt_own_writing;
  r->next = next;
  return r;
}

static void trt_free_recorder(trt_recorder* r) {
  free(r->records);
  free(r->words);
  free(r);
}

/* A new record, or NULL where memory is short: it is counted as dropped. */
static inline trt_record* trt_add_record(trt_recorder* r, int kind) {
  if (__builtin_expect(r->count == r->capacity, 0)) {
    trt_record* more = realloc(r->records, 2 * r->capacity * sizeof(trt_record));
    if (!more) { r->dropped++; return NULL; }
    r->records = more;
    r->capacity *= 2;
  }
  trt_record* x = &r->records[r->count++];
  x->end = 0;
  x->detail = x->stack = 0;
  x->mark = -1;
  x->kind = (uint8_t)kind;
  x->device = 1;
  x->in_place = 0;
  return x;
}

/* Room for `n` more words; NULL where memory is short. */
static inline int64_t* trt_more_words(trt_recorder* r, int64_t n) {
  if (__builtin_expect(r->used + n > r->room, 0)) {
    int64_t room = r->room ? 2 * r->room : 1 << 15;
    while (room < r->used + n) room *= 2;
    int64_t* more = realloc(r->words, room * sizeof(int64_t));
    if (!more) return NULL;
    r->words = more;
    r->room = room;
  }
  return r->words + r->used;
}

/* The Python frames of this thread, the innermost first: their number, then code object and line of each. The codes are kept alive by `codes`. */
static int64_t trt_write_stack(trt_recorder* r, PyObject* codes) {
  int64_t n = 0, place = r->used;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (!frame || !trt_more_words(r, 1)) { Py_XDECREF(frame); return 0; }
  r->used++;
  while (frame) {
    PyFrameObject* back = PyFrame_GetBack(frame);
    PyCodeObject* code = PyFrame_GetCode(frame);
    int64_t* w = trt_more_words(r, 2);
    if (w && PyDict_SetItem(codes, (PyObject*)code, Py_None) == 0) {
      w[0] = (int64_t)(intptr_t)code;
      w[1] = PyFrame_GetLineNumber(frame);
      r->used += 2;
      n++;
    }
    Py_DECREF(code);
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  r->words[place] = n;
  return place;
}
#endif
