/* Classes of Nodes have two constructors: the core's own, which fills in the tables right after, and Python's, which raises. */
#ifndef TRT_NODE_CLASS_H
#define TRT_NODE_CLASS_H
#include <Python.h>

static inline PyObject* trt_refuse_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)args; (void)kwargs;
  PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
  return NULL;
}

static inline newfunc trt_take_new(PyTypeObject* type) {
  newfunc own = type->tp_new;
  type->tp_new = trt_refuse_new;
  return own;
}

/* Without the GIL other threads may be looking for an accumulator whose last reference is gone: it is taken out of its leaf before the deallocator, which
   counts references again while it runs, does anything. */
#ifdef Py_GIL_DISABLED
static destructor trt_own_dealloc;
static void (*trt_forget)(PyObject*);
static void trt_forget_and_dealloc(PyObject* o) {
  trt_forget(o);
  trt_own_dealloc(o);
}
#define trt_forget_first(type, forget) (trt_own_dealloc = (type)->tp_dealloc, trt_forget = (void (*)(PyObject*))(forget), (void)((type)->tp_dealloc = trt_forget_and_dealloc))
#else
#define trt_forget_first(type, forget) ((void)(type), (void)(forget))
#endif

#define trt_make(own, type, args) (own)((type), (args), NULL)
#endif
