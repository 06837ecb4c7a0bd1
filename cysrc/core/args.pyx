"""Conversion of Python arguments to what kernels take, with PyTorch's errors; and who overrides __torch_function__."""
import sys
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.dtype cimport Scalar, dtype, BOOL, I64, U64, F64, F32, C128, CAT_COMPLEX, CAT_FLOAT, CAT_INT, category, has_loops, dtype_label
from tensorrt_lite._C.core.tensor cimport TensorBase, number_tensor, data_of, MAX_DIMS, shape_text
from tensorrt_lite._C.core.dispatch cimport attach

cdef extern from "Python.h":
    bint PyFloat_Check(object)
    bint PyLong_Check(object)
    bint PyBool_Check(object)
    bint PyComplex_Check(object)
    bint PyIndex_Check(object)
    bint PyFloat_CheckExact(object)
    bint PyLong_CheckExact(object)
    double PyFloat_AS_DOUBLE(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    double PyComplex_RealAsDouble(object) except? -1
    double PyComplex_ImagAsDouble(object) except? -1

attach()


cdef inline bint is_numpy_scalar(object x) noexcept:
    return hasattr(type(x), "dtype") and hasattr(type(x), "item") and not isinstance(x, TensorBase) and getattr(x, "ndim", 1) == 0


cdef bint is_number(object x) noexcept:
    if PyFloat_Check(x) or PyLong_Check(x) or PyComplex_Check(x):
        return True
    if isinstance(x, TensorBase) or isinstance(x, (str, bytes, tuple, list)) or x is None:
        return False
    return is_numpy_scalar(x)


cdef int to_scalar(object x, Scalar* s) except -1:
    """A Python number, NumPy scalar or one-element tensor."""
    cdef int overflow = 0
    s.im = 0
    if PyFloat_Check(x):
        s.kind = 2
        s.d = PyFloat_AS_DOUBLE(x)
        s.i = <int64_t>s.d if -9.2e18 < s.d < 9.2e18 else 0
    elif PyBool_Check(x):
        s.kind = 0
        s.i = 1 if x is True else 0
        s.d = <double>s.i
    elif PyLong_Check(x):
        s.kind = 1
        s.i = PyLong_AsLongLongAndOverflow(x, &overflow)
        s.d = <double>s.i
        if overflow:
            large_number(x, s)
    elif PyComplex_Check(x):
        # by parts: made of re + im * I in C, an infinite part beside NaN would be NaN, too
        s.kind = 3
        s.d = PyComplex_RealAsDouble(x)
        s.im = PyComplex_ImagAsDouble(x)
        s.i = 0
    elif isinstance(x, TensorBase):
        return to_scalar(x.item(), s)
    elif is_numpy_scalar(x):
        return to_scalar(x.item(), s)
    else:
        raise TypeError(f"expected a number, got {type(x).__name__}")
    return 0


cdef int large_number(object x, Scalar* s) except -1:
    """A Python integer beyond int64: as PyTorch, which takes those that uint64 holds."""
    if x < 0 or x >> 64:
        raise OverflowError("can't convert negative int to unsigned" if x < 0 else "int too big to convert")
    s.kind = 4
    s.i = <int64_t><uint64_t>x
    s.d = <double><uint64_t>x
    return 0


cdef object scalar_object(const Scalar* s):
    if s.kind == 0:
        return s.i != 0
    if s.kind == 1:
        return s.i
    if s.kind == 2:
        return s.d
    if s.kind == 4:
        return <uint64_t>s.i
    return complex(s.d, s.im)


cdef int* _kind_code = [BOOL, I64, F64, C128, U64]


cdef TensorBase wrap_number(object x):
    """A 0-dimensional tensor that is weak in type promotion."""
    cdef Scalar s
    cdef TensorBase t
    to_scalar(x, &s)
    t = number_tensor(_kind_code[s.kind], &s)
    t.wrapped_number = 1
    return t


cdef TensorBase as_tensor_arg(object x, str op, str name):
    if isinstance(x, TensorBase):
        return <TensorBase>x
    raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {_type_name(x)}")


cdef TensorBase as_operand(object x, str op, str name):
    if isinstance(x, TensorBase):
        return <TensorBase>x
    if is_number(x):
        return wrap_number(x)
    raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {_type_name(x)}")


cdef str _type_name(object x):
    return f"PyTorch's {type(x).__name__} (tensorrt_lite.from_dlpack converts it)" if is_of_pytorch(x) else type(x).__name__


cdef int64_t parse_int(object x, str op, str name) except? -9187343239835811840:
    cdef int overflow = 0
    cdef int64_t v
    if PyLong_CheckExact(x):
        v = PyLong_AsLongLongAndOverflow(x, &overflow)
        if overflow:
            raise RuntimeError(f"{op}(): argument '{name}': Overflow when unpacking long {x}")
        return v
    if isinstance(x, TensorBase):
        t = <TensorBase>x
        if t.numel != 1 or category[t.dtype] >= 2:
            raise TypeError(f"{op}(): argument '{name}' must be int, not Tensor of shape {shape_text(t)}")
        return int(x.item())
    if PyFloat_Check(x) or not hasattr(type(x), "__index__"):
        raise TypeError(f"{op}(): argument '{name}' must be int, not {_type_name(x)}")
    v = PyLong_AsLongLongAndOverflow(x.__index__(), &overflow)
    if overflow:
        raise RuntimeError(f"{op}(): argument '{name}': Overflow when unpacking long {x}")
    return v


cdef double parse_double(object x, str op, str name) except? -1.1e308:
    if PyFloat_CheckExact(x):
        return PyFloat_AS_DOUBLE(x)
    if isinstance(x, (str, bytes)) or x is None or PyComplex_Check(x):
        raise TypeError(f"{op}(): argument '{name}' must be float, not {_type_name(x)}")
    try:
        return float(x)
    except TypeError:
        raise TypeError(f"{op}(): argument '{name}' must be float, not {_type_name(x)}") from None


cdef bint parse_bool(object x, str op, str name) except -1:
    if x is True:
        return True
    if x is False:
        return False
    if PyLong_Check(x) or is_numpy_scalar(x):
        return True if x else False
    raise TypeError(f"{op}(): argument '{name}' must be bool, not {_type_name(x)}")


cdef int parse_dims(object x, Dims* d, str op, str name) except -1:
    """An int or a sequence of ints."""
    cdef int i = 0
    if PyLong_CheckExact(x):
        d.n = 1
        d.v[0] = parse_int(x, op, name)
        return 0
    if isinstance(x, (tuple, list)):
        if len(x) > MAX_DIMS:
            raise RuntimeError(f"{op}(): argument '{name}' has {len(x)} entries, at most {MAX_DIMS} are supported")
        for v in x:
            if i == MAX_DIMS:   # what a subclass iterates over, or a list that grows meanwhile, need not agree with len
                raise RuntimeError(f"{op}(): argument '{name}' has more than {MAX_DIMS} entries")
            d.v[i] = parse_int(v, op, name)
            i += 1
        d.n = i
        return 0
    if hasattr(type(x), "__index__") or isinstance(x, TensorBase):
        d.n = 1
        d.v[0] = parse_int(x, op, name)
        return 0
    raise TypeError(f"{op}(): argument '{name}' must be tuple of ints, not {_type_name(x)}")


cdef int parse_size(object x, Dims* d, str op, str name) except -1:
    """Sizes given as one sequence or as separate ints: `f(2, 3)` and `f((2, 3))` (x is the tuple of positional arguments)."""
    if isinstance(x, tuple) and len(x) == 1 and not PyLong_CheckExact((<tuple>x)[0]):
        return parse_dims((<tuple>x)[0], d, op, name)
    return parse_dims(x, d, op, name)


cdef object _tags_of_row = None


def _set_row_tags(f):
    """f(operator's name): the tags of its row."""
    global _tags_of_row
    _tags_of_row = f


cdef bint takes_storage_only(str op, int code) except -1:
    """Whether an operator makes, fills, copies, casts or views tensors of a dtype without loops. Others would compute in it."""
    tags = _tags_of_row(op)
    return "stored_dtypes" in tags or category[code] == CAT_INT and "stored_ints" in tags or category[code] == CAT_COMPLEX and "stored_complex" in tags


cdef int parse_dtype(object x, str op) except -2:
    """The code of a dtype, -1 for None. Python's float, int, bool and complex stand for dtypes too."""
    if x is None:
        return -1
    if isinstance(x, dtype):
        if not has_loops((<dtype>x).code) and not takes_storage_only(op, (<dtype>x).code):
            raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_label((<dtype>x).code).decode()}': the type is only stored, moved and cast")
        return (<dtype>x).code
    if x is float:
        return F64
    if x is int:
        return I64
    if x is bool:
        return BOOL
    if x is complex:
        return C128
    raise TypeError(f"{op}(): argument 'dtype' must be torch.dtype, not {_type_name(x)}")


cdef object dims_tuple(const Dims* d):
    cdef int i
    if d == NULL:
        return None
    return tuple([d.v[i] for i in range(d.n)])


cdef int wrap_dim(int64_t dim, int ndim) except -1:
    """A dimension counted from either end; IndexError outside of [-ndim, ndim). A scalar accepts 0 and -1."""
    cdef int n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return <int>(dim + n if dim < 0 else dim)


cdef list tensor_list(object x, str op, str name):
    cdef list result
    cdef int i = 0
    if not isinstance(x, (tuple, list)):
        if isinstance(x, TensorBase):
            raise TypeError(f"{op}(): argument '{name}' (position 1) must be tuple of Tensors, not Tensor")
        raise TypeError(f"{op}(): argument '{name}' (position 1) must be tuple of Tensors, not {_type_name(x)}")
    result = list(x)
    for v in result:
        if not isinstance(v, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {_type_name(v)}" if name == "tensors" else
                            f"{op}(): argument '{name}' must be tuple of Tensors, but found element of type {_type_name(v)} at pos {i}")
        i += 1
    return result


# ---- __torch_function__ --------------------------------------------------------------------------------------------

cdef bint is_of_pytorch(object x) noexcept:
    """Whether x is a tensor of PyTorch beside this package: each library would hand the call to the other without end."""
    tensors = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(tensors, type) and not issubclass(tensors, TensorBase) and isinstance(x, tensors)


cdef bint has_function(object x) noexcept:
    """Whether the argument's class overrides __torch_function__ (a plain tensor does not)."""
    if is_plain(x) or x is None or PyLong_Check(x) or PyFloat_Check(x) or isinstance(x, (str, dtype)):
        return False
    f = getattr(type(x), "__torch_function__", None)
    if f is None or is_of_pytorch(x):
        return False
    return getattr(f, "__func__", f) is not _disabled and f is not _disabled


cdef object _disabled = None


def _set_disabled_function(f):
    """The function that stands for 'no override' in subclasses."""
    global _disabled
    _disabled = f
