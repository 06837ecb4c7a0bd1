# Factories: new tensors from sizes, numbers, sequences, buffers and arrays; ranges, identity matrices, windows. nested.pyx reads nested sequences; what numbers
# ranges and windows hold are steps: cpu.pyx has the CPU's, cysrc/cuda/indexing.pyx CUDA's.
from libc.math cimport NAN, ceil, floor
from libc.stdint cimport INT64_MAX
from cpython.buffer cimport Py_buffer
from tensorrt_lite._C.core.dtype import dtype as dtype_type
from tensorrt_lite._C.core.device import layout as layout_type, sparse_coo, sparse_csc, sparse_csr, strided
from tensorrt_lite._C.core.materialize cimport materialized
from tensorrt_lite._C.core.storage cimport external_storage, expose, is_read_only, set_read_only
from tensorrt_lite._C.core.device cimport memory_format as memory_format_type
from tensorrt_lite._C.core.dtype import table as dtype_table

from tensorrt_lite._C.ops.creation import cpu as _cpu_steps
from tensorrt_lite._C.ops.creation.kinds cimport BARTLETT, COSINES, KAISER, round_half
from tensorrt_lite._C.steps.creation cimport run_complex_sequence, run_half_sequence, run_powers, run_sequence, run_window

cdef extern from "Python.h":
    bint PyBool_Check(object)
    Py_buffer* PyMemoryView_GET_BUFFER(object)
    int Py_REFCNT(object)


cdef int set_number(Scalar* s, double v) noexcept:
    s.kind = 2
    s.d = v
    s.im = 0
    s.i = <int64_t>v
    return 0


cdef TensorBase fill_new(TensorBase t, const Scalar* s):
    check_filling(s, t)
    fill_elements(t, s)
    return t


cdef bint fills_undefined = False


def _fill_undefined(bint on):
    """Whether the contents of `empty` and its kin are what `fill_undefined` writes, in deterministic mode."""
    global fills_undefined
    fills_undefined = on


def fill_undefined(TensorBase t not None):
    """NaN, the largest integer, or true in all elements; returns the tensor."""
    cdef Scalar s
    if t.device_type == DEV_META or not t.numel:
        return t
    set_number(&s, <double>NAN)
    if category[t.dtype] < CAT_FLOAT:
        s.kind = 1
        s.i = -1 if t.dtype == U64 else 1 if t.dtype == BOOL else INT64_MAX if t.dtype == I64 else <int64_t>LARGEST[t.dtype]
        s.d = <double>s.i
    fill_elements(t, &s)
    return t


cdef inline TensorBase undefined(TensorBase t):
    """A tensor whose elements nobody has written, as it is handed out."""
    return fill_undefined(t) if fills_undefined else t


cdef bint is_sparse_layout(object layout) except -1:
    return layout is not None and layout is not strided and isinstance(layout, layout_type)


cdef object sparse_factory(str op, const Dims* d, object layout, object dtype, object device, object requires_grad):
    """No entries in a sparse layout. RuntimeError for the blocked layouts, whose blocks have no size, and for compressed ones of less than two dimensions."""
    cdef tuple size = tuple([d.v[i] for i in range(d.n)]), batch = size[:len(size) - 2]
    cdef dict index = {"dtype": dtype_of(I64), "device": device}
    cdef str name = str(layout).rpartition(".")[2]
    cdef int64_t lines
    if layout is sparse_coo:
        return _ops.sparse_coo_tensor(size=size, dtype=dtype, device=device, requires_grad=requires_grad)
    if d.n < 2:
        raise RuntimeError(f"{op}(): only batched sparse compressed (non-block) tensors are supported, but got size {list(size)} for {name}")
    if layout is not sparse_csr and layout is not sparse_csc:
        raise RuntimeError(f"{op}(): expected sparse compressed (non-block) tensor layout but got {name}")
    lines = d.v[d.n - 2] if layout is sparse_csr else d.v[d.n - 1]
    return _ops.sparse_compressed_tensor(
        _ops.zeros((*batch, lines + 1), **index), _ops.zeros((*batch, 0), **index), _ops.zeros((*batch, 0), dtype=dtype, device=device), size, layout=layout,
        requires_grad=requires_grad, check_invariants=False)


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
    if is_sparse_layout(layout) and out is None:
        return sparse_factory("empty", &d, layout, dtype, device, requires_grad)
    factory_options(&o, "empty", dtype, device, layout, pin_memory, default_float_code())
    if out is not None:
        return undefined(factory_out(out, "empty", &d, dtype))
    if memory_format is not None and (<memory_format_type?>memory_format).code >= MF_CHANNELS_LAST:
        if d.n != (4 if (<memory_format_type>memory_format).code == MF_CHANNELS_LAST else 5):
            raise RuntimeError(f"required rank {4 if (<memory_format_type>memory_format).code == MF_CHANNELS_LAST else 5} tensor to use channels_last format")
        checked_numel(d.n, d.v)
        channels_last_strides(d.n, d.v, strides)
        t = empty_strided_tensor(d.n, d.v, strides, o.dtype, o.device)
    else:
        t = factory_tensor(&d, &o)
    return finish_factory(undefined(t), requires_grad)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with undefined contents and the given strides (in elements)."""
    cdef Dims d, s
    cdef Options o
    parse_dims(size, &d, "empty_strided", "size")
    parse_dims(stride, &s, "empty_strided", "stride")
    if d.n != s.n:
        raise RuntimeError(f"dimensionality of sizes ({d.n}) must match dimensionality of strides ({s.n})")
    factory_options(&o, "empty_strided", dtype, device, layout, pin_memory, default_float_code())
    return finish_factory(undefined(empty_strided_tensor(d.n, d.v, s.v, o.dtype, o.device)), requires_grad)


cdef object filled(tuple args, object size, str op, const Scalar* value, object out, object dtype, object layout, object device, object pin_memory, object requires_grad, int default_code):
    cdef Dims d
    cdef Options o
    sizes_of(args, size, &d, op)
    if is_sparse_layout(layout) and out is None:
        if op != "zeros":
            raise RuntimeError(f"{op}(...) is not implemented for sparse layout")
        return sparse_factory(op, &d, layout, dtype, device, requires_grad)
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
    if s.kind == 1 or s.kind == 4:
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
    return finish_factory(undefined(factory_like(input, "empty_like", dtype, layout, device, memory_format, pin_memory)), requires_grad)


def zeros_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Zeros of the same sizes, dtype and device."""
    cdef Scalar s
    cdef Dims d
    set_number(&s, 0)
    if is_sparse_layout(layout):
        return sparse_factory("zeros_like", shape_dims(input, &d), layout, dtype_of(input.dtype) if dtype is None else dtype, (<object>input).device if device is None else device, requires_grad)
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


cdef object make_new(TensorBase self, tuple size, str op, const Scalar* value, object dtype, object device, object requires_grad, object pin_memory, object layout):
    cdef Dims d
    cdef Options o
    parse_size(size, &d, op, "size")
    if is_sparse_layout(layout):
        if value != NULL and op != "new_zeros":
            raise RuntimeError(f"{op}(...) is not implemented for sparse layout")
        return sparse_factory(op, &d, layout, dtype_of(self.dtype) if dtype is None else dtype, (<object>self).device if device is None else device, requires_grad)
    o.dtype = parse_dtype(dtype, op)
    if o.dtype < 0:
        o.dtype = self.dtype
    o.device = factory_place(device, place_of(self), pin_memory)
    t = factory_tensor(&d, &o)
    if value != NULL:
        fill_new(t, value)
    else:
        undefined(t)
    return finish_factory(t, requires_grad)


def new_empty(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    return make_new(self, size, "new_empty", NULL, dtype, device, requires_grad, pin_memory, layout)


def new_zeros(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    set_number(&s, 0)
    return make_new(self, size, "new_zeros", &s, dtype, device, requires_grad, pin_memory, layout)


def new_ones(TensorBase self not None, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    set_number(&s, 1)
    return make_new(self, size, "new_ones", &s, dtype, device, requires_grad, pin_memory, layout)


def new_full(TensorBase self not None, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Scalar s
    fill_number(fill_value, &s, "new_full")
    return make_new(self, (size,), "new_full", &s, dtype, device, requires_grad, pin_memory, layout)


def new_empty_strided(TensorBase self not None, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    cdef Dims d, s
    cdef int code = parse_dtype(dtype, "new_empty_strided")
    parse_dims(size, &d, "new_empty_strided", "size")
    parse_dims(stride, &s, "new_empty_strided", "stride")
    if d.n != s.n:
        raise RuntimeError(f"dimensionality of sizes ({d.n}) must match dimensionality of strides ({s.n})")
    return finish_factory(undefined(empty_strided_tensor(d.n, d.v, s.v, self.dtype if code < 0 else code, factory_place(device, place_of(self), pin_memory))), requires_grad)


# ---- from Python data ----------------------------------------------------------------------------------------------

cdef tuple _numpy_names = tuple([row[1] if row[6] else None for row in dtype_table()])


def numpy_dtype_name(code):
    return _numpy_names[code]


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor that copies data: a number, nested sequences, a NumPy array, another tensor."""
    cdef int code = parse_dtype(dtype, "tensor")
    cdef TensorBase t
    if isinstance(data, TensorBase):
        from tensorrt_lite._C.core.warning import warn
        warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
             "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).")
        t = cast_to(<TensorBase>data, code if code >= 0 else (<TensorBase>data).dtype)
        if t is data:
            t = <TensorBase?>data.detach().clone()
    elif isinstance(data, (list, tuple, float, int)):
        t = from_sequence(data, code)
    elif hasattr(type(data), "__array_interface__") and getattr(data, "ndim", 0) > 0 or labelled_code(data) >= 0:
        t = <TensorBase>from_numpy(_writable_copy(data))
        t = cast_to(t, code) if code >= 0 else t
    elif hasattr(type(data), "__dlpack__") and not hasattr(type(data), "__array_interface__"):
        t = <TensorBase>_from_dlpack(data)
        t = cast_to(t, code if code >= 0 else t.dtype)
        t = <TensorBase?>(<object>t).clone()
    elif is_table(data):
        t = <TensorBase>from_numpy(_writable_copy(data))
        t = cast_to(t, code) if code >= 0 else t
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
    """A tensor over obj where possible; copy=True always copies, copy=False never does (ValueError where it would have to).
    requires_grad: a tensor's own by default."""
    if isinstance(obj, TensorBase):
        source = obj
    elif is_array(obj):
        source = from_numpy(obj)
    elif hasattr(type(obj), "__dlpack__") and not hasattr(type(obj), "__array_interface__"):
        source = _from_dlpack(obj)
    elif type(obj).__name__ == "PyCapsule":
        source = _from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=dtype_of(default_float_code()) if dtype is None else dtype)
    else:
        if copy is False and hasattr(type(obj), "__array_interface__"):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finish_factory(tensor(obj, dtype=dtype, device=device), requires_grad)
    t = source.to(dtype=dtype, device=device)
    if t is source:
        t = t.clone() if copy else t
    elif copy is False:
        if t.device != source.device:
            raise ValueError(f"can't alias tensor from device '{source.device}' to '{t.device}'.")
        raise ValueError(f"can't alias tensor with dtype '{label_of(source)}' into dtype '{label_of(t)}'.")
    if source is obj:
        if requires_grad is None or requires_grad and t.requires_grad:
            return t
        t = t if requires_grad else t.detach()
    return finish_factory(t, requires_grad)


cdef str label_of(TensorBase t):
    return dtype_label(t.dtype).decode()


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
        from tensorrt_lite._C.core.warning import warn
        warn("The given NumPy array is not writable: writing to this tensor raises a RuntimeError. Copy the array, or clone() the tensor, to get "
             "one that can be written to.")
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
    try:
        holder = memoryview(buffer)
    except TypeError:
        raise ValueError(f"frombuffer(): object of type {type(buffer).__name__} does not implement Python buffer protocol.") from None
    if not holder.c_contiguous:
        raise ValueError("frombuffer(): the buffer is not C-contiguous")
    if holds_pointers(holder.format):
        raise TypeError(f"frombuffer(): can't make a tensor of a buffer of format {holder.format!r}, whose elements are addresses of objects")
    view = PyMemoryView_GET_BUFFER(holder)
    n = view.len
    if view.readonly:
        from tensorrt_lite._C.core.warning import warn
        warn("The given buffer is not writable: writing to this tensor raises a RuntimeError. Use a bytearray, or clone() the tensor, to get one "
             "that can be written to.")
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
    """A NumPy array over the tensor's memory (no copy). Of bfloat16 and the float8 types where the package ml_dtypes is installed; TypeError otherwise."""
    cdef TensorBase t = self
    cdef object added = None
    if self.requires_grad:
        if not force and tls().grad_mode:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        t = <TensorBase?>self.detach()
    t = materialized(t, "numpy")
    if t.device_type != DEV_CPU:
        if t.device_type == DEV_META:
            raise TypeError("can't convert meta device type tensor to numpy.")
        if not force:
            raise TypeError(f"can't convert {(<object>t).device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        t = <TensorBase?>t.cpu()
    if _numpy_names[t.dtype] is None:
        added = added_type(t.dtype)
    import numpy
    array = numpy.asarray(_ArrayView(t))
    return array if added is None else array.view(added)


cdef object added_type(int code):
    """NumPy's type from the package ml_dtypes."""
    try:
        import ml_dtypes
        return getattr(ml_dtypes, dtype_of(code).name)
    except (ImportError, AttributeError):
        raise TypeError(f"Got unsupported ScalarType {dtype_label(code).decode()}") from None


class _ArrayView:
    """Gives NumPy an address and keeps the storage alive for as long as the array lives."""

    def __init__(self, TensorBase t not None):
        cdef int64_t item = ITEM_SIZE[t.dtype]
        import numpy
        expose(t.storage)
        self.storage = t.storage
        t.storage.can_resize = False
        self.__array_interface__ = {
            "shape": tuple(shape_of(t)), "strides": tuple([s * item for s in strides_of(t)]), "typestr": numpy.dtype(_numpy_names[t.dtype] or f"u{item}").str,
            "data": (<size_t>data_of(t), bool(is_read_only(t.storage))), "version": 3,
        }


# ---- ranges, identity matrices, layouts by permutation -----------------------------------------------------------------

cdef int range_number(object x, Scalar* s, str op, str name) except -1:
    if x is None or isinstance(x, (str, bytes, tuple, list)):
        raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(x).__name__}")
    to_scalar(x, s)
    if s.kind == 3:
        raise RuntimeError("value cannot be converted to type double without overflow")
    return 0


cdef int check_range(double start, double stop, double step) except -1:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if start - start != 0 or stop - stop != 0:
        raise RuntimeError(f"unsupported range: {start:g} -> {stop:g}")
    if step > 0 and stop < start or step < 0 and stop > start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return 0


cdef int64_t truncated(const Scalar* s) noexcept:
    return s.i if s.kind < 2 else <int64_t>s.d


cdef object sequence(str op, const Scalar* start, const Scalar* stop, const Scalar* step, bint inclusive, object out, object dtype, object layout, object device, object pin_memory, object requires_grad, int default_code):
    cdef Dims d
    cdef Options o
    cdef TensorBase r
    cdef double length, first = start.d, apart = step.d
    cdef int kind, k
    factory_options(&o, op, dtype, device, layout, pin_memory, default_code)
    if out is not None:
        check_out(out, op)
        o.dtype = (<TensorBase>out).dtype
    if o.dtype == BOOL or category[o.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"{op}_cpu\" not implemented for '{dtype_text(o.dtype)}'")
    d.n = 1
    for k in range(3):      # as wide as what steps are counted in
        check_number(start if k == 0 else stop if k == 1 else step, I64 if category[o.dtype] == CAT_INT else F64 if o.dtype == F64 or o.dtype == F32 else F32)
    if o.dtype == I64 and not inclusive:
        check_range(start.d, stop.d, step.d)
        if truncated(step) == 0:
            raise ValueError("step must be nonzero")
        # Python's integers: the distance of two int64 may exceed int64
        distance = <object>truncated(stop) - <object>truncated(start)
        count = -(-distance // truncated(step))
        length = <double>count
    else:
        check_range(start.d, stop.d, step.d)
        length = floor((stop.d - start.d) / step.d + 1) if inclusive else ceil((stop.d - start.d) / step.d)
    if not 0 <= length < 9223372036854775808.0:
        raise RuntimeError("invalid size, possible overflow?")
    d.v[0] = count if o.dtype == I64 and not inclusive else <int64_t>length
    if out is not None:
        r = sized_out(out, op, &d, dtype)
    else:
        r = factory_tensor(&d, &o)
    kind = I64 if category[o.dtype] == CAT_INT and start.kind < 2 and step.kind < 2 or o.dtype == I64 else F64 if o.dtype != F32 else F32
    if kind == F64 and category[o.dtype] == CAT_INT:
        # integers step from the truncated start, as in PyTorch
        first = <double>truncated(start)
        apart = <double>truncated(step)
    if r.numel:
        run_sequence(r.device_type, r, kind, first, 0, apart, truncated(start), truncated(step), False)
    return finish_factory(r, requires_grad)


cdef TensorBase sized_out(object out, str op, const Dims* d, object dtype):
    """factory_out, with PyTorch's warning when elements are lost."""
    cdef TensorBase t = <TensorBase>out
    if dtype is not None and parse_dtype(dtype, op) != t.dtype:
        raise RuntimeError(f"dtype {dtype_text(parse_dtype(dtype, op))} does not match dtype of out parameter ({dtype_text(t.dtype)})")
    if t.numel != d.v[0]:
        if t.numel > 0:
            from tensorrt_lite._C.core.warning import warn
            warn(
                f"The number of elements in the out tensor of shape {shape_text(t)} is {t.numel} which does not match the computed number of elements {d.v[0]}. "
                f"Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({d.v[0]},).")
        resize_tensor(t, d.n, d.v, -1)
    check_internal_overlap(op, t)
    bump_version(t)
    return t


def arange(*args, start=None, end=None, step=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """arange(end), arange(start, end, step=1): numbers from [start, end); int64 when all arguments are integers."""
    cdef Scalar s, e, p
    cdef int code, n = len(args)
    if n == 1 and end is None:
        end = args[0]
    elif n == 1 and start is None:
        start = args[0]
    elif n == 2 and end is None and start is None:
        start, end = args
    elif n == 3 and end is None and start is None and step is None:
        start, end, step = args
    elif n > 0 or end is None:
        raise TypeError(f"arange() received an invalid combination of arguments - got ({', '.join([type(x).__name__ for x in args])}), but expected (end), (start, end) or (start, end, step)")
    range_number(0 if start is None else start, &s, "arange", "start")
    range_number(end, &e, "arange", "end")
    range_number(1 if step is None else step, &p, "arange", "step")
    code = I64 if number_category(&s) < 2 and number_category(&e) < 2 and number_category(&p) < 2 else default_float_code()
    result = sequence("arange", &s, &e, &p, False, out, dtype, layout, device, pin_memory, requires_grad, code)
    return result if out is None else out


def range_inclusive(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Numbers from start to end, both included where the step allows; arange is what Python's range is."""
    cdef Scalar s, e, p
    if end is None:
        raise TypeError("range() missing 1 required positional arguments: \"end\"")
    from tensorrt_lite._C.core.warning import warn
    warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. "
         "Instead, use torch.arange, which produces values in [start, end).")
    range_number(start, &s, "range", "start")
    range_number(end, &e, "range", "end")
    range_number(step, &p, "range", "step")
    result = sequence("range", &s, &e, &p, True, out, dtype, layout, device, pin_memory, requires_grad, default_float_code())
    return result if out is None else out


cdef int end_number(object x, Scalar* s, str op, str name) except -1:
    if isinstance(x, TensorBase) and (<TensorBase>x).ndim != 0:
        raise RuntimeError(f"{op} only supports 0-dimensional start and end tensors, but got {name} with {(<TensorBase>x).ndim} dimension(s).")
    if x is None or isinstance(x, (str, bytes, tuple, list)):
        raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(x).__name__}")
    return to_scalar(x, s)


cdef TensorBase spaced(str op, object start, object end, object steps, Scalar* s, Scalar* e, object out, object dtype, object layout, object device, object pin_memory):
    """The tensor to fill, after the checks that linspace and logspace share."""
    cdef Dims d
    cdef Options o
    end_number(start, s, op, "start")
    end_number(end, e, op, "end")
    d.n = 1
    d.v[0] = parse_int(steps, op, "steps")
    if d.v[0] < 0:
        raise RuntimeError("number of steps must be non-negative")
    factory_options(&o, op, dtype, device, layout, pin_memory, default_complex_code() if s.kind == 3 or e.kind == 3 else default_float_code())
    if (s.kind == 3 or e.kind == 3) and category[o.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"torch.{op}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {dtype_text(o.dtype)}")
    if out is not None:
        check_out(out, op)
        o.dtype = (<TensorBase>out).dtype
    if o.dtype == BOOL and d.v[0] > 0:
        raise NotImplementedError(f"\"{op}_cpu\" not implemented for 'Bool'")
    if d.v[0] > 0:
        check_number(s, o.dtype)
        check_number(e, o.dtype)
    if out is None:
        return factory_tensor(&d, &o)
    if (<TensorBase>out).numel == d.v[0]:
        # as many elements: PyTorch keeps the shape, whatever it is
        shape_dims(<TensorBase>out, &d)
    factory_out(out, op, &d, dtype)
    check_internal_overlap(op, <TensorBase>out)
    return <TensorBase>out


cdef Dims* shape_dims(TensorBase t, Dims* d) noexcept:
    cdef int i
    d.n = t.ndim
    for i in range(t.ndim):
        d.v[i] = t.sizes[i]
    return d


def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """`steps` numbers from start to end, both included, equally far apart."""
    cdef Scalar s, e
    cdef TensorBase r
    cdef double first, last
    r = spaced("linspace", start, end, steps, &s, &e, out, dtype, layout, device, pin_memory)
    if r.numel == 0:
        return finish_factory(r, requires_grad)
    if category[r.dtype] == CAT_COMPLEX:
        run_complex_sequence(r.device_type, r, &s, &e, 0, False)
    elif r.dtype == F16 or r.dtype == BF16:
        run_half_sequence(r.device_type, r, s.d, e.d)
    else:
        first = s.d if category[r.dtype] != CAT_INT else <double>truncated(&s)
        last = e.d if category[r.dtype] != CAT_INT else <double>truncated(&e)
        run_sequence(r.device_type, r, F32 if r.dtype == F32 else F64, first, last, (last - first) / <double>(r.numel - 1) if r.numel > 1 else 0, 0, 0, r.numel > 1)
    return finish_factory(r, requires_grad)


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """base to the powers linspace(start, end, steps)."""
    cdef Scalar s, e
    cdef TensorBase r
    cdef double b = parse_double(base, "logspace", "base")
    r = spaced("logspace", start, end, steps, &s, &e, out, dtype, layout, device, pin_memory)
    if r.numel == 0:
        return finish_factory(r, requires_grad)
    if category[r.dtype] == CAT_COMPLEX:
        run_complex_sequence(r.device_type, r, &s, &e, b, True)
        return finish_factory(r, requires_grad)
    if category[r.dtype] == CAT_INT:
        # the ends are integers then
        s.d = <double>truncated(&s)
        e.d = <double>truncated(&e)
    elif r.numel > 1 and (r.dtype == F16 or r.dtype == BF16):
        # the ends are numbers of the type, what lies between is not rounded before the power; one number alone is not
        s.d = round_half(<float>s.d, r.dtype)
        e.d = round_half(<float>e.d, r.dtype)
    run_powers(r.device_type, r, b, s.d, e.d, (e.d - s.d) / (r.numel - 1) if r.numel > 1 else 0)
    return finish_factory(r, requires_grad)


cdef object _no_columns = object()


def eye(n, m=_no_columns, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Ones on the diagonal of an (n, m) matrix, zeros elsewhere; m is n when it is left out."""
    cdef Scalar s
    cdef Dims d
    cdef Options o
    cdef TensorBase r
    cdef int64_t k, step[1]
    d.n = 2
    d.v[0] = parse_int(n, "eye", "n")
    if d.v[0] < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {d.v[0]}")
    if m is _no_columns:
        d.v[1] = d.v[0]
    else:
        d.v[1] = parse_int(m, "eye", "m")
        if d.v[1] < 0:
            raise RuntimeError(f"m must be greater or equal to 0, got {d.v[1]}")
    factory_options(&o, "eye", dtype, device, layout, pin_memory, default_float_code())
    r = factory_tensor(&d, &o) if out is None else factory_out(out, "eye", &d, dtype)
    set_number(&s, 0)
    fill_elements(r, &s)
    k = min(d.v[0], d.v[1])
    step[0] = r.strides[0] + r.strides[1]
    set_number(&s, 1)
    fill_elements(make_view(r, 1, &k, step, r.offset), &s)
    return finish_factory(r, requires_grad)


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with undefined contents, dense, whose dimensions lie in memory in the order physical_layout (slowest first)."""
    cdef Dims d, p
    cdef Options o
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = 1
    cdef bint seen[MAX_DIMS]
    cdef int i, k
    parse_dims(size, &d, "empty_permuted", "size")
    parse_dims(physical_layout, &p, "empty_permuted", "physical_layout")
    if d.n != p.n:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {d.n} is not equal to len(physical_layout) = {p.n}")
    factory_options(&o, "empty_permuted", dtype, device, layout, pin_memory, default_float_code())
    checked_numel(d.n, d.v)
    for i in range(d.n):
        seen[i] = False
    for i in range(d.n):
        if p.v[i] < 0 or p.v[i] >= d.n:
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {d.n - 1}, but got {p.v[i]} at index {i}).  NB: negative dims not currently supported; file an issue if you want it.")
        if seen[p.v[i]]:
            raise RuntimeError("Duplicate dim not allowed")
        seen[p.v[i]] = True
    for i in range(d.n - 1, -1, -1):
        k = <int>p.v[i]
        strides[k] = step
        step *= max(d.v[k], <int64_t>1)
    return finish_factory(undefined(empty_strided_tensor(d.n, d.v, strides, o.dtype, o.device)), requires_grad)


# ---- windows of signal processing --------------------------------------------------------------------------------------

cdef object window(function, str op, object window_length, object periodic, int kind, double a, double b, double c, object dtype, object layout, object device, object pin_memory, object requires_grad):
    """a - b cos(x) + c cos(2 x), a triangle, or Kaiser's window of parameter a over `window_length` points."""
    cdef Dims d
    cdef Options o
    cdef TensorBase r
    cdef int64_t n
    factory_options(&o, op, dtype, device, layout, pin_memory, default_float_code())
    d.n = 1
    n = d.v[0] = parse_int(window_length, op, "window_length")
    if category[o.dtype] != CAT_FLOAT:
        raise RuntimeError(f"{op} expects floating point dtypes, got: {dtype_text(o.dtype)}")
    if n < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={n}")
    r = factory_tensor(&d, &o)
    if n:
        run_window(r.device_type, r, kind, parse_bool(periodic, op, "periodic"), a, b, c)
    return finish_factory(r, requires_grad)


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """sin^2(pi n / N) over window_length points; periodic: N = window_length, symmetric: window_length - 1."""
    return window(hann_window, "hann_window", window_length, periodic, COSINES, 0.5, 0.5, 0, dtype, layout, device, pin_memory, requires_grad)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """alpha - beta cos(2 pi n / N) over window_length points."""
    return window(hamming_window, "hamming_window", window_length, periodic, COSINES, parse_double(alpha, "hamming_window", "alpha"), parse_double(beta, "hamming_window", "beta"), 0,
                  dtype, layout, device, pin_memory, requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N) over window_length points."""
    return window(blackman_window, "blackman_window", window_length, periodic, COSINES, 0.42, 0.5, 0.08, dtype, layout, device, pin_memory, requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A triangle over window_length points."""
    return window(bartlett_window, "bartlett_window", window_length, periodic, BARTLETT, 0, 0, 0, dtype, layout, device, pin_memory, requires_grad)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Kaiser's window of shape parameter beta over window_length points."""
    return window(kaiser_window, "kaiser_window", window_length, periodic, KAISER, parse_double(beta, "kaiser_window", "beta"), 0, 0, dtype, layout, device, pin_memory, requires_grad)


# Named so here because the module itself uses the builtin.
FUNCTION_ALIASES = {"range": range_inclusive}
