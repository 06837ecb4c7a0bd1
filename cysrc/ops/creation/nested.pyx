"""Tensors from Python numbers and nested sequences: sizes follow the first elements, the dtype is promoted over all of them, values are stored in a third pass.

Each pass runs the caller's code (`__len__`, `__iter__`), so the last one counts what it writes. A tensor inside a sequence is a number: it has one element,
whatever its dimensions.
"""
from cpython.sequence cimport PySequence_Check
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.args cimport Dims, is_number, to_scalar
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport (
    BOOL, C64, C128, CAT_COMPLEX, CAT_INT, F16, F32, F64, I8, I16, I32, I64, LARGEST, Scalar, U8, U16, U32, U64, category, default_complex_code,
    NO_PROMOTION, default_float_code, dtype, dtype_of, dtypes, is_floating_type, is_signed_type, promotion, raise_promotion)
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, MAX_DIMS, TensorBase, data_of, empty_tensor

cdef extern from "stage.h" nogil:
    void store_scalar(char* destination, int dtype, const Scalar* value)


# NumPy's own types by their text, those that the package ml_dtypes adds to NumPy by name
cdef dict _added_codes = {(<dtype>t).name: (<dtype>t).code for t in dtypes if is_floating_type((<dtype>t).code)}
cdef dict _numpy_codes = {"b1": BOOL, "u1": U8, "i1": I8, "i2": I16, "i4": I32, "i8": I64, "f2": F16, "f4": F32, "f8": F64, "c8": C64, "c16": C128, "u2": U16, "u4": U32, "u8": U64}

cdef int numpy_code(object dt) except -1:
    cdef object text = dt.str
    if text[0] == ">":
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.")
    code = _numpy_codes.get(text[1:])
    if code is None and dt.type.__module__ == "ml_dtypes":
        code = _added_codes.get(dt.name)
    if code is None:
        raise TypeError(f"can't convert np.ndarray of type numpy.{dt.type.__name__}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")
    return code


cdef extern from "Python.h":
    bint PyFloat_CheckExact(object)
    bint PyLong_CheckExact(object)
    bint PyBool_Check(object)
    double PyFloat_AS_DOUBLE(object)
    bint PyLong_Check(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


cdef bint is_array_or_scalar(object x):
    """Whether x is a NumPy array or scalar; a pandas object, which has a dtype, too, is neither."""
    return hasattr(type(x), "__array_interface__") and hasattr(type(x), "dtype")


cdef bint is_sequence(object x):
    if isinstance(x, (list, tuple)):
        return True
    if isinstance(x, TensorBase) or not PySequence_Check(x):
        return False
    return not (is_array_or_scalar(x) and x.ndim == 0)


cdef int infer_shape(object x, Dims* d) except -1:
    """Sizes of a nested sequence, following the first elements."""
    d.n = 0
    while is_sequence(x):
        if d.n == MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(x).__name__}'")
        d.v[d.n] = len(x)
        d.n += 1
        if d.v[d.n - 1] == 0:
            return 0
        if isinstance(x, (list, tuple)):
            x = x[0]
        elif getattr(x, "ndim", 1) != 1 and not is_array_or_scalar(x):
            raise ValueError(f"could not determine the shape of object type '{type(x).__name__}'")  # a table: its keys are not its rows
        else:
            x = next(iter(x))  # by position: [0] of a pandas Series asks for a label
    return 0


cdef int labelled_code(object x) except -2:
    """The dtype of a pandas Series or Index that holds NumPy's numbers, -1 otherwise."""
    if not hasattr(type(x), "__array__") or not hasattr(type(x), "dtype") or is_array_or_scalar(x) or x.ndim != 1:
        return -1
    text = getattr(x.dtype, "str", "")
    return _numpy_codes.get(text[1:], -1) if isinstance(text, str) else -1


cdef bint is_table(object x):
    """Whether x is what NumPy alone can make an array of: a pandas DataFrame, a picture of Pillow's, an Arrow table. A Series is a sequence."""
    cdef object kind = type(x)
    if not hasattr(kind, "__array__") and not hasattr(kind, "__array_interface__") or is_array_or_scalar(x):
        return False
    return getattr(x, "ndim", 0) != 1


cdef int promoted(int code, int other) except -2:
    if code >= 0 and promotion[code][other] == NO_PROMOTION:
        raise_promotion(code, other)
    return other if code < 0 else promotion[code][other]


cdef int infer_code(object x, int code, int depth) except -2:
    """`code` (-1: none yet) promoted with the dtypes of what x holds."""
    if PyFloat_CheckExact(x):
        return promoted(code, default_float_code())
    if PyBool_Check(x):
        return promoted(code, BOOL)
    if PyLong_CheckExact(x):
        return promoted(code, I64)
    if isinstance(x, (list, tuple)):
        return infer_items(x, code, depth)
    if isinstance(x, TensorBase):
        return promoted(code, (<TensorBase>x).dtype)
    if is_array_or_scalar(x):
        return promoted(code, numpy_code(x.dtype))
    if isinstance(x, complex):
        return promoted(code, default_complex_code())
    if isinstance(x, float):
        return promoted(code, default_float_code())
    if isinstance(x, int):
        return promoted(code, I64)
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if not is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")
    if labelled_code(x) >= 0:
        return promoted(code, labelled_code(x))
    return infer_items(x, code, depth)


cdef int infer_items(object x, int code, int depth) except -2:
    cdef int float_code = default_float_code()
    if depth == MAX_DIMS:
        raise ValueError(f"too many dimensions '{type(x).__name__}'")
    if len(x) == 0:
        return promoted(code, float_code)
    for v in x:
        if not (code == float_code and PyFloat_CheckExact(v) or code == I64 and PyLong_CheckExact(v)):   # which would change nothing
            code = infer_code(v, code, depth + 1)
    return code


cdef object one_element(TensorBase t, int code):
    if t.numel != 1:
        if category[code] <= CAT_INT:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        raise ValueError("only one element tensors can be converted to Python scalars")
    return t.item()


cdef object number_from(object x, int code):
    """The Python number that an object stands for in a tensor of this dtype."""
    if category[code] <= CAT_INT:
        if not hasattr(type(x), "__index__"):
            raise TypeError(f"'{type(x).__name__}' object cannot be interpreted as an integer")
        return x.__index__()
    if category[code] == CAT_COMPLEX and hasattr(type(x), "__complex__"):
        return complex(x)
    if not hasattr(type(x), "__float__") and not hasattr(type(x), "__index__"):
        raise TypeError(f"must be real number, not {type(x).__name__}")
    return float(x)


cdef int element_of(object x, int code, Scalar* s) except -1:
    """The number that x is for a tensor of this dtype."""
    cdef int overflow = 0
    if PyLong_CheckExact(x):
        s.i = PyLong_AsLongLongAndOverflow(x, &overflow)
        if not overflow and (code != U64 or s.i >= 0):
            s.kind = 1
            s.d = <double>s.i
            s.im = 0
            return check_integer(s, code) if category[code] == CAT_INT else 0
    if isinstance(x, TensorBase):
        x = one_element(<TensorBase>x, code)
    elif not is_number(x):
        x = number_from(x, code)
    if code == U64:
        return unsigned_element(x, s)
    if PyLong_Check(x):
        PyLong_AsLongLongAndOverflow(x, &overflow)
        if overflow:
            if category[code] == CAT_INT:
                raise ValueError("Overflow when unpacking long long")
            x = float(x) if code != BOOL else True
    to_scalar(x, s)
    if category[code] == CAT_INT:
        check_integer(s, code)
    elif category[code] != CAT_COMPLEX and s.kind == 3 and code != BOOL:
        raise TypeError("can't convert complex to float")
    return 0


cdef int unsigned_element(object x, Scalar* s) except -1:
    """uint64, whose numbers are not cut nor wrapped: integers from 0 to 2**64 - 1."""
    if not hasattr(type(x), "__index__"):
        raise TypeError(f"an integer is required for a uint64 tensor (got {type(x).__name__})")
    x = x.__index__()
    if x < 0:
        raise OverflowError(f"can't convert negative int to unsigned: {x} for a uint64 tensor")
    if x >= 1 << 64:
        raise OverflowError(f"int too big to convert: {x} for a uint64 tensor")
    s.kind = 1
    s.i = <int64_t><uint64_t>x
    s.d = <double><uint64_t>x
    s.im = 0
    return 0


cdef int check_integer(const Scalar* s, int code) except -1:
    """Numbers too large for the dtype are refused; negative integers wrap in an unsigned one, negative floats don't."""
    cdef double lowest = -LARGEST[code] - 1 if is_signed_type(code) else 0, largest = LARGEST[code]
    if s.kind == 3:
        raise TypeError("'complex' object cannot be interpreted as an integer (can't convert complex to int)")
    if s.kind == 2 and not lowest <= s.d <= largest or s.kind == 1 and ITEM_SIZE[code] < 8 and not (lowest if lowest else -largest) <= <double>s.i <= largest:
        raise RuntimeError(f"value cannot be converted to type {dtype_of(code).name} without overflow")
    return 0


cdef object wrong_length(int64_t expected, int depth, int64_t found):
    raise ValueError(f"expected sequence of length {expected} at dim {depth} (got {found})")


cdef char* store_nested(object x, const Dims* d, int depth, char* p, int code) except NULL:
    """Write x from p on: at each depth exactly as many elements as the sizes say, whatever a sequence of the caller's yields now."""
    cdef Scalar s
    cdef int item = ITEM_SIZE[code]
    cdef int64_t n = 0, expected
    cdef bint flat
    if depth == d.n:
        element_of(x, code, &s)
        store_scalar(p, code, &s)
        return p + item
    expected = d.v[depth]
    flat = depth == d.n - 1 and code == F32
    if not isinstance(x, (list, tuple)) and (isinstance(x, (TensorBase, str)) or not hasattr(type(x), "__iter__") and not PySequence_Check(x)):
        raise TypeError(f"expected sequence of length {expected} at dim {depth}, got {type(x).__name__}")
    if depth and not isinstance(x, (list, tuple)) and is_array_or_scalar(x):
        from tensorrt_lite._C.core.warning import warn_once
        warn_once("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single numpy.ndarray with "
                  "numpy.array() before converting to a tensor.")
    for v in x:
        if n == expected:
            wrong_length(expected, depth, max(len(x), n + 1) if hasattr(type(x), "__len__") else n + 1)
        n += 1
        if flat and PyFloat_CheckExact(v):
            (<float*>p)[0] = <float>PyFloat_AS_DOUBLE(v)
            p += 4
        else:
            p = store_nested(v, d, depth + 1, p, code)
    if n != expected:
        wrong_length(expected, depth, n)
    return p


cdef TensorBase from_sequence(object data, int code):
    cdef Dims d
    cdef TensorBase t
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    infer_shape(data, &d)
    if code < 0:
        code = infer_code(data, -1, 0)
    t = empty_tensor(d.n, d.v, code, DEV_CPU)
    if t.numel:
        store_nested(data, &d, 0, data_of(t), code)
    return t
