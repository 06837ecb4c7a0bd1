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

#define trt_make(own, type, args) (own)((type), (args), NULL)
#endif
