/* Thread-local state of the dispatcher: dispatch key sets, grad mode, modes.
   One C structure per thread lives in the core (initial-exec TLS); every other module caches its address
   (a call across modules costs 2.2 ns, the cached pointer 0.2 ns). */
#ifndef TRT_THREAD_STATE_H
#define TRT_THREAD_STATE_H
#include <Python.h>
#include <stdint.h>

typedef struct {
  uint64_t included, excluded;     /* dispatch keys forced on and off in this thread */
  int grad_mode;                   /* record Nodes */
  int inference_mode;
  int function_modes;              /* __torch_function__ modes to ask: the stack's depth, 0 while all are disabled */
  int function_disabled;           /* whether subclasses are asked (core/overrides.pyx) */
  int notes;                       /* what new Nodes write down: NOTE_TRACEBACK and its kin in node.pxd */
  int in_backward;
  int python_ran;                  /* in a backward pass: Python code may hold gradients of it */
  const volatile int* cancelled;   /* in a thread that goes on with a nested backward pass: the waiting thread's word to stop */
  const char* operator_name;       /* whose boxed kernel runs, for errors of a device that are reported later */
  int composed;                    /* a backward function runs whose tensors no kernel may read: formulas are made of operators */
  int key;                         /* the dispatch key whose kernel was looked up last */
  int step_device;                 /* the custom device whose step was looked up last */
  PyObject* called_overloads;      /* overload objects whose calls have not come to a mode yet, a list; NULL: there were none yet */
  PyObject* dispatch_modes;        /* the stack of TorchDispatchModes, a list; NULL: there were none yet */
  PyObject* dying;                 /* Nodes whose last reference goes while others are freed, a list; NULL: there were none yet */
  int draining;                    /* that is going on */
  uint64_t newest_sequence;        /* of the Nodes that this thread made; with the GIL all threads count together (autograd/node.pxd) */
  PyObject** late_warnings;        /* where a resized output's warning waits until the kernel has run: a list or NULL; NULL: it is given at once */
} trt_thread_state;

static trt_thread_state* (*trt_state_getter)(void);
static __thread trt_thread_state* trt_state_cached __attribute__((tls_model("initial-exec")));
static inline trt_thread_state* trt_tls(void) {
  trt_thread_state* s = trt_state_cached;
  if (__builtin_expect(!s, 0)) s = trt_state_cached = trt_state_getter();
  return s;
}

#define trt_top_bit(keys) (63 - __builtin_clzll((keys) | 1))
#define trt_new(type, args) ((PyObject*)((PyTypeObject*)(type))->tp_new((PyTypeObject*)(type), (args), NULL))
#endif
