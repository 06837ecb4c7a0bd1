/* NumPy's names of arguments, as PyTorch takes them: axis for dim, keepdims for keepdim, x, a and x1 for input, x2 for other.
 * Cython's functions know one name for each argument, so the entry of a function is replaced by one that renames keywords where
 * the function has the one name and not the other. A call without keywords costs a comparison more. */
#ifndef TRT_NUMPY_NAMES_H
#define TRT_NUMPY_NAMES_H
#include <Python.h>

enum { TRT_NUMPY_NAMES = 6 };
static const char* const trt_numpy_spelling[TRT_NUMPY_NAMES][2] = {
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"a", "input"}, {"x1", "input"}, {"x2", "other"}};
static PyObject *trt_numpy_name[TRT_NUMPY_NAMES], *trt_torch_name[TRT_NUMPY_NAMES];
static vectorcallfunc trt_entry; /* of every compiled function that takes keywords */
static vectorcallfunc trt_python_entry; /* of functions written in Python */

/* Which of the names this is, or -1. Names written in a call are interned, so that pointers tell. */
static inline int trt_numpy_index(PyObject* name) {
    for (int k = 0; k < TRT_NUMPY_NAMES; k++)
        if (name == trt_numpy_name[k]) return k;
    if (!PyUnicode_CHECK_INTERNED(name))
        for (int k = 0; k < TRT_NUMPY_NAMES; k++)
            if (PyUnicode_CompareWithASCIIString(name, trt_numpy_spelling[k][0]) == 0) return k;
    return -1;
}

/* 1 or 0: whether the function has an argument of this name; -1 with an error. */
static int trt_has_argument(PyObject* function, PyObject* name) {
    int found = -1;
    PyObject *code = PyObject_GetAttrString(function, "__code__"), *names = NULL, *count = NULL, *more = NULL;
    if (code && (names = PyObject_GetAttrString(code, "co_varnames")) && (count = PyObject_GetAttrString(code, "co_argcount")) &&
        (more = PyObject_GetAttrString(code, "co_kwonlyargcount"))) {
        Py_ssize_t n = PyLong_AsSsize_t(count) + PyLong_AsSsize_t(more);
        found = 0;
        for (Py_ssize_t i = 0; i < n && i < PyTuple_GET_SIZE(names) && found == 0; i++)
            found = PyObject_RichCompareBool(PyTuple_GET_ITEM(names, i), name, Py_EQ);
    }
    Py_XDECREF(code);
    Py_XDECREF(names);
    Py_XDECREF(count);
    Py_XDECREF(more);
    return found;
}

/* The keywords with PyTorch's names, where they are not given as well; a new reference. */
static PyObject* trt_renamed(PyObject* function, PyObject* keywords) {
    Py_ssize_t n = PyTuple_GET_SIZE(keywords), i = 0;
    while (i < n && trt_numpy_index(PyTuple_GET_ITEM(keywords, i)) < 0) i++;
    if (i == n) return Py_NewRef(keywords);
    PyObject* names = PyTuple_New(n);
    for (i = 0; names && i < n; i++) {
        PyObject* name = PyTuple_GET_ITEM(keywords, i);
        int k = trt_numpy_index(name);
        if (k >= 0) {
            int known = trt_has_argument(function, name), other = known == 0 ? trt_has_argument(function, trt_torch_name[k]) : 0;
            if (known < 0 || other < 0) {
                Py_CLEAR(names);
                break;
            }
            if (other && !PySequence_Contains(keywords, trt_torch_name[k])) name = trt_torch_name[k];
        }
        PyTuple_SET_ITEM(names, i, Py_NewRef(name));
    }
    return names;
}

static inline PyObject* trt_call_renamed(vectorcallfunc entry, PyObject* function, PyObject* const* arguments, size_t count, PyObject* keywords) {
    if (keywords == NULL) return entry(function, arguments, count, NULL);
    PyObject* names = trt_renamed(function, keywords);
    if (names == NULL) return NULL;
    PyObject* result = entry(function, arguments, count, names);
    Py_DECREF(names);
    return result;
}

static PyObject* trt_renaming_entry(PyObject* function, PyObject* const* arguments, size_t count, PyObject* keywords) {
    return trt_call_renamed(trt_entry, function, arguments, count, keywords);
}

static PyObject* trt_python_renaming_entry(PyObject* function, PyObject* const* arguments, size_t count, PyObject* keywords) {
    return trt_call_renamed(trt_python_entry, function, arguments, count, keywords);
}

/* Let a function take NumPy's names, too. The first that has a `dim` shows the entry of those that take keywords; functions with
 * another entry stay as they are. */
static int trt_take_numpy_names(PyObject* function) {
    PyTypeObject* type = Py_TYPE(function);
    if (!(type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL)) return 0;
    for (int k = 0; k < TRT_NUMPY_NAMES && !trt_torch_name[k]; k++) {
        trt_numpy_name[k] = PyUnicode_InternFromString(trt_numpy_spelling[k][0]);
        trt_torch_name[k] = PyUnicode_InternFromString(trt_numpy_spelling[k][1]);
        if (!trt_numpy_name[k] || !trt_torch_name[k]) return -1;
    }
    vectorcallfunc* entry = (vectorcallfunc*)((char*)function + type->tp_vectorcall_offset);
    if (type == &PyFunction_Type) {
        if (*entry != trt_python_renaming_entry) trt_python_entry = *entry;
        *entry = trt_python_renaming_entry;
        return 0;
    }
    if (!trt_entry) {
        int dim = trt_has_argument(function, trt_torch_name[0]);
        if (dim <= 0) return dim;
        trt_entry = *entry;
    }
    if (*entry == trt_entry) *entry = trt_renaming_entry;
    return 0;
}
#endif
