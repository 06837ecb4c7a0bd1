"""Direct slots for Tensor's operator symbols: `a + b` calls the function behind ``__add__`` without looking the name up.

A slot of a class made in Python searches the class for the name on every use, a tenth of a small operator's time. These
slots call the function that had the name when `install` ran, for operands whose type is exactly one of the installed
classes; anything else (a subclass, a number on the left) takes the general slot. Assigning ``Tensor.__add__`` later makes
Python put the general slot back by itself. Where neither a mode nor the other operand can override, a slot calls what is
behind the public function (``impl``).
"""
from sys import modules
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED, keep_for_ever
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.dispatch cimport attach

attach()

cdef extern from *:
    """
    #include "thread_state.h"
    static PyTypeObject* trt_symbol_types[2];
    #define TRT_OURS(o) (Py_TYPE(o) == trt_symbol_types[0] || Py_TYPE(o) == trt_symbol_types[1])
    /* an operand or an index without a __torch_function__ of its own */
    #define TRT_MUTE(o) (TRT_OURS(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PySlice_Check(o))

    typedef struct { PyObject *asks, *runs; } trt_symbol;
    static inline PyObject* trt_call_symbol(const trt_symbol* s, PyObject** operands, PyObject* other) {
      return PyObject_Vectorcall(TRT_MUTE(other) && !trt_tls()->function_modes ? s->runs : s->asks, operands, 2, NULL);
    }
    static int trt_find_symbol(trt_symbol* s, PyTypeObject* type, const char* name) {
      if (s->asks) return 0;
      if (!(s->asks = PyObject_GetAttrString((PyObject*)type, name))) return -1;
      return (s->runs = PyObject_GetAttrString(s->asks, "impl")) ? 0 : -1;
    }

    /* Python's general slot serves the reflected name only where the class has the general slot: so that is here, too. */
    #define TRT_BINARY(slot, name, reflected)                                                   \\
      static trt_symbol trt_function_##slot;                                                       \\
      static trt_symbol trt_reflected_##slot;                                                      \\
      static binaryfunc trt_general_##slot;                                                     \\
      static PyObject* trt_##slot(PyObject* a, PyObject* b) {                                   \\
        PyObject* operands[2] = {a, b};                                                         \\
        PyObject* turned[2] = {b, a};                                                           \\
        if (TRT_OURS(a)) return trt_call_symbol(&trt_function_##slot, operands, b);            \\
        if (TRT_OURS(b)) return trt_call_symbol(&trt_reflected_##slot, turned, a);             \\
        return trt_general_##slot(a, b);                                                        \\
      }
    #define TRT_LEFT(slot, name)                                                                \\
      static trt_symbol trt_function_##slot;                                                       \\
      static binaryfunc trt_general_##slot;                                                     \\
      static PyObject* trt_##slot(PyObject* a, PyObject* b) {                                   \\
        PyObject* operands[2] = {a, b};                                                         \\
        return TRT_OURS(a) ? trt_call_symbol(&trt_function_##slot, operands, b) : trt_general_##slot(a, b); \\
      }
    #define TRT_UNARY(slot, name)                                                               \\
      static trt_symbol trt_function_##slot;                                                       \\
      static unaryfunc trt_general_##slot;                                                      \\
      static PyObject* trt_##slot(PyObject* a) {                                                \\
        if (!TRT_OURS(a)) return trt_general_##slot(a);                                          \\
        return PyObject_Vectorcall(trt_tls()->function_modes ? trt_function_##slot.asks : trt_function_##slot.runs, &a, 1, NULL); \\
      }
    #define TRT_BINARY_SLOTS(X)                                                                 \\
      X(nb_add, "__add__", "__radd__") X(nb_subtract, "__sub__", "__rsub__") X(nb_multiply, "__mul__", "__rmul__") \\
      X(nb_true_divide, "__truediv__", "__rtruediv__") X(nb_floor_divide, "__floordiv__", "__rfloordiv__") \\
      X(nb_remainder, "__mod__", "__rmod__") X(nb_matrix_multiply, "__matmul__", "__rmatmul__") \\
      X(nb_and, "__and__", "__rand__") X(nb_or, "__or__", "__ror__") X(nb_xor, "__xor__", "__rxor__")
    #define TRT_LEFT_SLOTS(X)                                                                   \\
      X(nb_inplace_add, "__iadd__") X(nb_inplace_subtract, "__isub__") X(nb_inplace_multiply, "__imul__") \\
      X(nb_inplace_true_divide, "__itruediv__")
    #define TRT_UNARY_SLOTS(X) X(nb_negative, "__neg__") X(nb_invert, "__invert__") X(nb_absolute, "__abs__")
    TRT_BINARY_SLOTS(TRT_BINARY)
    TRT_UNARY_SLOTS(TRT_UNARY)
    TRT_LEFT_SLOTS(TRT_LEFT)
    TRT_LEFT(mp_subscript, "__getitem__")

    /* in the order of Py_LT .. Py_GE */
    static const char* const trt_comparisons[6] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
    static trt_symbol trt_function_compare[6];
    static richcmpfunc trt_general_compare;
    static PyObject* trt_compare(PyObject* a, PyObject* b, int op) {
      PyObject* operands[2] = {a, b};
      return TRT_OURS(a) ? trt_call_symbol(&trt_function_compare[op], operands, b) : trt_general_compare(a, b, op);
    }

    #define TRT_FIND(slot, name)                                                                \\
      if (trt_find_symbol(&trt_function_##slot, type, name) < 0) return -1;
    #define TRT_SET(slot, name)                                                                 \\
      if (number->slot != trt_##slot) { trt_general_##slot = number->slot; number->slot = trt_##slot; }
    #define TRT_FIND_BOTH(slot, name, reflected)                                                \\
      TRT_FIND(slot, name)                                                                      \\
      if (trt_find_symbol(&trt_reflected_##slot, type, reflected) < 0) return -1;
    #define TRT_SET_BOTH(slot, name, reflected) TRT_SET(slot, name)
    static int trt_install_symbols(PyTypeObject* type, int which) {
      PyNumberMethods* number = type->tp_as_number;
      TRT_BINARY_SLOTS(TRT_FIND_BOTH)
      TRT_LEFT_SLOTS(TRT_FIND)
      TRT_UNARY_SLOTS(TRT_FIND)
      TRT_FIND(mp_subscript, "__getitem__")
      for (int op = 0; op < 6; op++)
        if (trt_find_symbol(&trt_function_compare[op], type, trt_comparisons[op]) < 0) return -1;
      TRT_BINARY_SLOTS(TRT_SET_BOTH)
      TRT_LEFT_SLOTS(TRT_SET)
      TRT_UNARY_SLOTS(TRT_SET)
      if (type->tp_as_mapping->mp_subscript != trt_mp_subscript) {
        trt_general_mp_subscript = type->tp_as_mapping->mp_subscript;
        type->tp_as_mapping->mp_subscript = trt_mp_subscript;
      }
      if (type->tp_richcompare != trt_compare) {
        trt_general_compare = type->tp_richcompare;
        type->tp_richcompare = trt_compare;
      }
      trt_symbol_types[which] = type;
      return 0;
    }
    """
    int trt_install_symbols(PyTypeObject* type, int which) except -1


def install(tensor, parameter):
    """Give both classes, whose symbols are the same functions, direct slots."""
    if not (isinstance(tensor, type) and isinstance(parameter, type) and issubclass(tensor, TensorBase) and tensor is not TensorBase and issubclass(parameter, tensor)):
        raise TypeError("install() takes the class of tensors and a subclass of it")
    trt_install_symbols(<PyTypeObject*>tensor, 0)
    trt_install_symbols(<PyTypeObject*>parameter, 1)


def keep_functions():
    """Count no references to the functions of the core's modules: without the GIL threads that call one would hand its count around."""
    if not FREE_THREADED:
        return
    for name, module in list(modules.items()):
        if name.startswith("tensorrt_lite._C"):
            for value in vars(module).values():
                if type(value) is type(keep_functions):
                    keep_for_ever(value)
