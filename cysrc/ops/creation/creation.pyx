# Factories: new tensors from sizes, numbers, sequences, buffers and arrays.
from cpython.buffer cimport PyObject_GetBuffer, PyBuffer_Release, PyBUF_SIMPLE, PyBUF_WRITABLE, Py_buffer, PyBUF_ANY_CONTIGUOUS
from tensorrt_lite._C.core.dtype import dtype as dtype_type
from tensorrt_lite._C.core.device import strided
from tensorrt_lite._C.core.storage cimport external_storage, expose, is_read_only, set_read_only
from tensorrt_lite._C.core.device cimport memory_format as memory_format_type
from tensorrt_lite._C.core.dtype import table as dtype_table

cdef extern from "stage.h" nogil:
    void store_scalar(char* destination, int dtype, const Scalar* value)

cdef extern from "Python.h":
    bint PyFloat_CheckExact(object)
    bint PyLong_CheckExact(object)
    bint PyBool_Check(object)
    double PyFloat_AS_DOUBLE(object)
    Py_buffer* PyMemoryView_GET_BUFFER(object)
    int Py_REFCNT(object)


cdef int set_number(Scalar* s, double v) noexcept:
    s.kind = 2
    s.d = v
    s.im = 0
    s.i = <int64_t>v
    return 0


cdef TensorBase fill_new(TensorBase t, const Scalar* s):
    check_number(s, t.dtype)
    fill_elements(t, s)
    return t


cdef int sizes_of(tuple args, object size, Dims* d, str op) except -1:
    """Sizes as separate ints, as one sequence, or as size=."""
    if size is not None:
        if args:
            raise TypeError(f"{op}() got multiple values for argument 'size'")
        parse_dims(size, d, op, "size")
        return 0
    if not args:
        raise TypeError(f"{op}() missing 1 required positional arguments: \"size\"")
    if len(args) == 1 and PyBool_Check(args[0]):
        raise TypeError(f"{op}(): argument 'size' (position 1) must be tuple of ints, not bool")
    return parse_size(args, d, op, "size")


def empty(*args, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None):
    """A tensor with undefined contents. size: ints or one sequence."""
    cdef Dims d
    cdef Options o
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase t
    sizes_of(args, size, &d, "empty")
    factory_options(&o, "empty", dtype, device, layout, pin_memory, default_float_code())
    if out is not None:
        return factory_out(out, "empty", &d, dtype)
    if memory_format is not None and (<memory_format_type?>memory_format).code >= MF_CHANNELS_LAST:
        if d.n != (4 if (<memory_format_type>memory_format).code == MF_CHANNELS_LAST else 5):
            raise RuntimeError(f"required rank {4 if (<memory_format_type>memory_format).code == MF_CHANNELS_LAST else 5} tensor to use channels_last format")
        checked_numel(d.n, d.v)
        channels_last_strides(d.n, d.v, strides)
        t = empty_strided_tensor(d.n, d.v, strides, o.dtype, o.device)
    else:
        t = factory_tensor(&d, &o)
    return finish_factory(t, requires_grad)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with undefined contents and the given strides (in elements)."""
    cdef Dims d, s
    cdef Options o
    parse_dims(size, &d, "empty_strided", "size")
    parse_dims(stride, &s, "empty_strided", "stride")
    if d.n != s.n:
        raise RuntimeError(f"dimensionality of sizes ({d.n}) must match dimensionality of strides ({s.n})")
    factory_options(&o, "empty_strided", dtype, device, layout, pin_memory, default_float_code())
    return finish_factory(empty_strided_tensor(d.n, d.v, s.v, o.dtype, o.device), requires_grad)


cdef object filled(tuple args, object size, str op, const Scalar* value, object out, object dtype, object layout, object device, object pin_memory, object requires_grad, int default_code):
    cdef Dims d
    cdef Options o
    sizes_of(args, size, &d, op)
    factory_options(&o, op, dtype, device, layout, pin_memory, default_code)
    if out is not None:
        return fill_new(factory_out(out, op, &d, dtype), value)
    return finish_factory(fill_new(factory_tensor(&d, &o), value), requires_grad)


def zeros(*args, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of zeros. size: ints or one sequence."""
    cdef Scalar s
    set_number(&s, 0)
    return filled(args, size, "zeros", &s, out, dtype, layout, device, pin_memory, requires_grad, default_float_code())


def ones(*args, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of ones. size: ints or one sequence."""
    cdef Scalar s
    set_number(&s, 1)
    return filled(args, size, "ones", &s, out, dtype, layout, device, pin_memory, requires_grad, default_float_code())


cdef int code_of_number(const Scalar* s) noexcept:
    if s.kind == 0:
        return BOOL
    if s.kind == 1:
        return I64
    return default_float_code() if s.kind == 2 else default_complex_code()


cdef int fill_number(object x, Scalar* s, str op) except -1:
    if x is None or isinstance(x, (str, bytes, tuple, list)):
        raise TypeError(f"{op}(): argument 'fill_value' (position 2) must be Number, not {type(x).__name__}")
    return to_scalar(x, s)


def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor filled with one number; its kind gives the dtype when none is named (a tensor's dtype gives it too)."""
    cdef Scalar s
    cdef int code
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    fill_number(fill_value, &s, "full")
    code = (<TensorBase>fill_value).dtype if isinstance(fill_value, TensorBase) else code_of_number(&s)
    return filled((), size, "full", &s, out, dtype, layout, device, pin_memory, requires_grad, code)


def empty_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """An uninitialised tensor of the same sizes (and strides, when dense), dtype and device."""
    return finish_factory(factory_like(input, "empty_like", dtype, layout, device, memory_format, pin_memory), requires_grad)


def zeros_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Zeros of the same sizes, dtype and device."""
    cdef Scalar s
    set_number(&s, 0)
    return finish_factory(fill_new(factory_like(input, "zeros_like", dtype, layout, device, memory_format, pin_memory), &s), requires_grad)


def ones_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Ones of the same sizes, dtype and device."""
    cdef Scalar s
    set_number(&s, 1)
    return finish_factory(fill_new(factory_like(input, "ones_like", dtype, layout, device, memory_format, pin_memory), &s), requires_grad)


def full_like(TensorBase input not None, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """One number in a tensor of the same sizes, dtype and device."""
    cdef Scalar s
    fill_number(fill_value, &s, "full_like")
    return finish_factory(fill_new(factory_like(input, "full_like", dtype, layout, device, memory_format, pin_memory), &s), requires_grad)


cdef object make_new(TensorBase self, tuple size, str op, const Scalar* value, object dtype, object device, object requires_grad, object pin_memory):
    cdef Dims d
    cdef Options o
    parse_size(size, &d, op, "size")
    o.dtype = parse_dtype(dtype, op)
    if o.dtype < 0:
        o.dtype = self.dtype
    o.device = factory_place(device, place_of(self), pin_memory)
    t = factory_tensor(&d, &o)
    if value != NULL:
        fill_new(t, value)
    return finish_factory(t, requires_grad)


def new_empty(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    return make_new(self, size, "new_empty", NULL, dtype, device, requires_grad, pin_memory)


def new_zeros(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    set_number(&s, 0)
    return make_new(self, size, "new_zeros", &s, dtype, device, requires_grad, pin_memory)


def new_ones(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    set_number(&s, 1)
    return make_new(self, size, "new_ones", &s, dtype, device, requires_grad, pin_memory)


def new_full(TensorBase self not None, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    fill_number(fill_value, &s, "new_full")
    return make_new(self, (size,), "new_full", &s, dtype, device, requires_grad, pin_memory)


def new_empty_strided(TensorBase self not None, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Dims d, s
    cdef int code = parse_dtype(dtype, "new_empty_strided")
    parse_dims(size, &d, "new_empty_strided", "size")
    parse_dims(stride, &s, "new_empty_strided", "stride")
    if d.n != s.n:
        raise RuntimeError(f"dimensionality of sizes ({d.n}) must match dimensionality of strides ({s.n})")
    return finish_factory(empty_strided_tensor(d.n, d.v, s.v, self.dtype if code < 0 else code, factory_place(device, place_of(self), pin_memory)), requires_grad)


# ---- from Python data ----------------------------------------------------------------------------------------------

include "sequence.pxi"


cdef dict _numpy_codes = {"b1": BOOL, "u1": U8, "i1": I8, "i2": I16, "i4": I32, "i8": I64, "f2": F16, "f4": F32, "f8": F64, "c8": C64, "c16": C128, "u2": U16, "u4": U32, "u8": U64}
cdef tuple _numpy_names = tuple([row[1] if row[6] else None for row in dtype_table()])


cdef int numpy_code(object dt) except -1:
    cdef object text = dt.str
    if text[0] == ">":
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.")
    code = _numpy_codes.get(text[1:])
    if code is None:
        raise TypeError(f"can't convert np.ndarray of type numpy.{dt.type.__name__}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")
    return code


def numpy_dtype_name(code):
    return _numpy_names[code]


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor that copies data: a number, nested sequences, a NumPy array, another tensor."""
    cdef int code = parse_dtype(dtype, "tensor")
    cdef TensorBase t
    if isinstance(data, TensorBase):
        import warnings
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).", UserWarning, stacklevel=2)
        t = cast_to(<TensorBase>data, code if code >= 0 else (<TensorBase>data).dtype)
        if t is data:
            t = <TensorBase>data.detach().clone()
    elif isinstance(data, (list, tuple, float, int)):
        t = from_sequence(data, code)
    elif hasattr(type(data), "__array_interface__") and getattr(data, "ndim", 0) > 0 or labelled_code(data) >= 0:
        t = <TensorBase>from_numpy(_writable_copy(data))
        t = cast_to(t, code) if code >= 0 else t
    elif hasattr(type(data), "__dlpack__") and not hasattr(type(data), "__array_interface__"):
        t = <TensorBase>_from_dlpack(data)
        t = cast_to(t, code if code >= 0 else t.dtype)
        t = <TensorBase>(<object>t).clone()
    else:
        t = from_sequence(data, code)
    if device is not None or default_device().code != DEV_CPU:
        t = t.to(device=parse_device(device))
    if pin_memory:
        t = t.pin_memory()
    return finish_factory(t, requires_grad)


cdef object _from_dlpack(object a):
    from tensorrt_lite._C.core.dlpack import read
    return read(a)


cdef object _writable_copy(object a):
    import numpy
    return numpy.array(a, order="C")


def as_tensor(data, dtype=None, device=None):
    """A tensor over the data where that is possible without a copy (tensors, NumPy arrays), otherwise tensor(data)."""
    if isinstance(data, TensorBase):
        return data.to(dtype=dtype, device=device)
    if is_array(data) and data.ndim > 0:
        return from_numpy(data).to(dtype=dtype, device=device)
    if hasattr(type(data), "__dlpack__") and not hasattr(type(data), "__array_interface__"):
        return _from_dlpack(data).to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor over obj where possible; copy=True always copies, copy=False never does. requires_grad: a tensor's own by default."""
    if isinstance(obj, TensorBase) or hasattr(type(obj), "__array_interface__"):
        t = as_tensor(obj, dtype=dtype, device=device)
        if copy:
            t = t.clone() if t is obj or not isinstance(obj, TensorBase) else t
        if requires_grad is None or requires_grad and t.requires_grad:
            return t
        t = t if requires_grad else t.detach()
    elif hasattr(type(obj), "__dlpack__"):
        t = _from_dlpack(obj).to(dtype=dtype, device=device)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        t = frombuffer(obj, dtype=dtype_of(default_float_code()) if dtype is None else dtype)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        t = tensor(obj, dtype=dtype, device=device)
    return finish_factory(t, requires_grad)


def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A 0-dimensional tensor of the default dtype."""
    return full((), s, dtype=dtype_of(default_float_code()) if dtype is None else dtype, device=device, pin_memory=pin_memory, requires_grad=requires_grad)


cdef bint is_array(object x):
    """Whether x is a NumPy array; NumPy is not imported to find out."""
    import sys
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def from_numpy(ndarray):
    """A tensor over the array's memory (no copy). TypeError for dtypes without a counterpart, ValueError for negative strides."""
    cdef int code, i, n
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t span = 0, item
    cdef size_t address
    cdef TensorBase t
    if not is_array(ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    import numpy
    ndarray = numpy.ndarray.view(ndarray, numpy.ndarray)   # a subclass may answer as it likes where its memory lies
    code = numpy_code(ndarray.dtype)
    if not ndarray.flags.writeable:
        import warnings
        warnings.warn("The given NumPy array is not writable: writing to this tensor raises a RuntimeError. Copy the array, or clone() the tensor, to get "
                      "one that can be written to.", UserWarning, stacklevel=2)
    n = ndarray.ndim
    if n > MAX_DIMS:
        raise ValueError(f"an array of {n} dimensions can't become a tensor (at most {MAX_DIMS})")
    item = ITEM_SIZE[code]
    for i in range(n):
        sizes[i] = ndarray.shape[i]
        strides[i] = ndarray.strides[i]
        if strides[i] < 0:
            raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
                             "(You can probably work around this by making a copy of your array  with array.copy().) ")
        if strides[i] % item:
            raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.")
        strides[i] //= item
        if ndarray.size:
            span += (sizes[i] - 1) * strides[i]
    address = ndarray.__array_interface__["data"][0]
    t = empty_tensor(0, NULL, code, DEV_CPU)
    set_storage(t, external_storage(<void*>address, (span + 1) * item if ndarray.size else 0, ndarray))
    if not ndarray.flags.writeable:
        set_read_only(t.storage)
    set_geometry(t, n, sizes, strides)
    return finish_factory(t, False)


cdef bint holds_pointers(str format) except -1:
    """Whether a buffer's format (PEP 3118) names elements that are addresses: of Python objects, data, functions or text."""
    cdef Py_UCS4 c, before = 0
    cdef bint in_name = False
    for c in format:
        if before == u"Z" and c not in u"fdg" or not in_name and c in u"OP&Xz":      # Z: text, or the first letter of a complex number
            return True
        if c == u":":
            in_name = not in_name
        before = 0 if in_name else c
    return before == u"Z"


def frombuffer(buffer, *, dtype, int64_t count=-1, int64_t offset=0, requires_grad=False):
    """A one-dimensional tensor over the memory of an object with the buffer protocol. TypeError for elements that are Python objects or other
    addresses; where the buffer is read-only, writing to the tensor raises a RuntimeError."""
    cdef Py_buffer* view
    cdef int code = parse_dtype(dtype, "frombuffer")
    cdef int64_t item, n, skip = offset, one = 1, sizes[1]
    cdef TensorBase t
    if code < 0:
        raise TypeError("frombuffer(): argument 'dtype' must be torch.dtype, not NoneType")
    item = ITEM_SIZE[code]
    # one export, which the storage holds: an object may give out other memory the next time
    holder = memoryview(buffer)
    if not holder.c_contiguous:
        raise ValueError("frombuffer(): the buffer is not C-contiguous")
    if holds_pointers(holder.format):
        raise TypeError(f"frombuffer(): can't make a tensor of a buffer of format {holder.format!r}, whose elements are addresses of objects")
    view = PyMemoryView_GET_BUFFER(holder)
    n = view.len
    if view.readonly:
        import warnings
        warnings.warn("The given buffer is not writable: writing to this tensor raises a RuntimeError. Use a bytearray, or clone() the tensor, to get one "
                      "that can be written to.", UserWarning, stacklevel=2)
    if n <= 0:
        raise ValueError(f"both buffer length ({n}) and count ({count}) must not be 0")
    if count == 0:
        raise ValueError(f"both buffer length ({n}) and count (0) must not be 0")
    if skip < 0 or skip >= n:
        raise ValueError(f"offset ({skip} bytes) must be non-negative and no greater than buffer length ({n} bytes) minus 1")
    if count < 0:
        if (n - skip) % item:
            raise ValueError(f"buffer length ({n - skip} bytes) after offset ({skip} bytes) must be a multiple of element size ({item})")
        sizes[0] = (n - skip) // item
    else:
        sizes[0] = count
        if count > (n - skip) // item:
            raise ValueError(f"requested buffer length ({count} * {item} bytes) after offset ({skip} bytes) must not be greater than actual buffer length ({n} bytes)")
    t = empty_tensor(0, NULL, code, DEV_CPU)
    set_storage(t, external_storage(<char*>view.buf + skip, sizes[0] * item, holder))
    if view.readonly:
        set_read_only(t.storage)
    set_geometry(t, 1, sizes, &one)
    return finish_factory(t, requires_grad)


def numpy(TensorBase self not None, *, force=False):
    """A NumPy array over the tensor's memory (no copy)."""
    cdef TensorBase t = self
    if self.requires_grad:
        if not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        t = <TensorBase>self.detach()
    if t.device_type != DEV_CPU:
        if t.device_type == DEV_META:
            raise TypeError("can't convert meta device type tensor to numpy.")
        if not force:
            raise TypeError(f"can't convert {make_device(t.device_type, None)} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        t = <TensorBase>t.cpu()
    if _numpy_names[t.dtype] is None:
        raise TypeError(f"Got unsupported ScalarType {dtype_label(t.dtype).decode()}")
    import numpy
    return numpy.asarray(_ArrayView(t))


class _ArrayView:
    """Gives NumPy an address and keeps the storage alive for as long as the array lives."""

    def __init__(self, TensorBase t not None):
        cdef int64_t item = ITEM_SIZE[t.dtype]
        import numpy
        expose(t.storage)
        self.storage = t.storage
        t.storage.can_resize = False
        self.__array_interface__ = {
            "shape": tuple(shape_of(t)), "strides": tuple([s * item for s in strides_of(t)]), "typestr": numpy.dtype(_numpy_names[t.dtype]).str,
            "data": (<size_t>data_of(t), bool(is_read_only(t.storage))), "version": 3,
        }


include "ranges.pxi"
include "windows.pxi"

EXTRA_EXPORTS = {n: "f" for n in (
    "empty", "empty_strided", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "tensor", "as_tensor", "asarray",
    "scalar_tensor", "from_numpy", "frombuffer", "empty_permuted", "arange", "linspace", "logspace", "eye", "vander", "hann_window", "hamming_window",
    "blackman_window", "bartlett_window", "kaiser_window")}
EXTRA_EXPORTS.update({n: "m" for n in ("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "numpy")})

# Named so here because the module itself uses the builtin.
FUNCTION_ALIASES = {"range": range_inclusive}
