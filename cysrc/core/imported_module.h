/* What PyImport_ImportModule is in the modules' C. For a.b.c, Python's makes sure that a has finished, by a function in Python and a lock; a module of ours does
   that for every one that it cimports, 1,500 times while the package is being imported, a tenth of the import. PyImport_GetModule makes sure of
   the module itself. */
#ifndef TRT_IMPORTED_MODULE_H
#define TRT_IMPORTED_MODULE_H
#include <Python.h>

static inline PyObject* trt_imported_module(const char* name) {
  PyObject *key = PyUnicode_FromString(name), *module;
  if (!key) return NULL;
  module = PyImport_GetModule(key);
  Py_DECREF(key);
  return module || PyErr_Occurred() ? module : PyImport_ImportModule(name);
}
#define PyImport_ImportModule(name) trt_imported_module(name)
#endif
