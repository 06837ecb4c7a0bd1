/* What stands in front of public names (core/overrides.pyx), as the calls of entries see it (ops/entry.h). */
#ifndef TRT_PUBLIC_H
#define TRT_PUBLIC_H
#include <Python.h>
#include "thread_state.h"

/* PublicFunction's first members */
typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  vectorcallfunc run;              /* of impl */
  PyObject* impl;
  int opaque;                      /* lists among the arguments are data, not arguments */
  int factory;                     /* makes tensors out of none, or like its first argument: no kernel stands under the key Python */
  PyObject* spellings;             /* {keyword: name that impl knows it by, or "*"}, or NULL */
} trt_public;

/* Modes to ask; -1 (some) in a thread whose state this module has not met. */
static inline int trt_cached_modes(void) { return trt_state_cached ? trt_state_cached->function_modes : -1; }

/* Of no class that could override: the first two are plain tensors and parameters. */
static inline int trt_is_basic_type(PyTypeObject* t, PyTypeObject* tensor, PyTypeObject* parameter) {
  return t == tensor || t == &PyLong_Type || t == parameter || t == Py_TYPE(Py_None) || t == &PyBool_Type || t == &PyFloat_Type || t == &PyUnicode_Type;
}

/* Such a thing or a sequence of them. */
static inline int trt_is_basic_argument(PyObject* x, PyTypeObject* tensor, PyTypeObject* parameter) {
  if (trt_is_basic_type(Py_TYPE(x), tensor, parameter)) return 1;
  if (!PyTuple_CheckExact(x) && !PyList_CheckExact(x)) return 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++)
    if (!trt_is_basic_type(Py_TYPE(PySequence_Fast_GET_ITEM(x, i)), tensor, parameter)) return 0;
  return 1;
}
#endif
