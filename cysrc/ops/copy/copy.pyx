# Copies, conversions and fills; reading tensors out into Python numbers.
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.device import contiguous_format, preserve_format, channels_last, channels_last_3d
from tensorrt_lite._C.core.dtype import dtype as dtype_type
from tensorrt_lite._C.core.device cimport LAST_CUSTOM, has_index
from tensorrt_lite._C.core.materialize cimport materialized
from tensorrt_lite._C.core.storage cimport Storage, hooks_of, lazy_clone_of
from tensorrt_lite._C.steps.copy cimport run_non_blocking, run_zero_elements, set_zero_elements
from tensorrt_lite._C.core.device cimport memory_format as memory_format_type
from tensorrt_lite._C.core.device cimport device as device_class


cdef int format_code(object memory_format, str op) except -1:
    if memory_format is None:
        return MF_PRESERVE
    if not isinstance(memory_format, memory_format_type):
        raise TypeError(f"{op}(): argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    return (<memory_format_type>memory_format).code


cdef TensorBase empty_formatted(TensorBase like, int dtype, int place, int fmt):
    """An empty tensor of like's sizes in a memory format, at a place (see tensor.pxd)."""
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase r
    if fmt == MF_PRESERVE:
        if place == place_of(like):
            return empty_like_tensor(like, dtype)
        if non_overlapping_dense(like):
            return empty_strided_tensor(like.ndim, like.sizes, like.strides, dtype, place)
        fmt = MF_CONTIGUOUS
    if fmt == MF_CHANNELS_LAST or fmt == MF_CHANNELS_LAST_3D:
        if like.ndim != (4 if fmt == MF_CHANNELS_LAST else 5):
            raise RuntimeError(f"required rank {4 if fmt == MF_CHANNELS_LAST else 5} tensor to use channels_last{'_3d' if fmt == MF_CHANNELS_LAST_3D else ''} format")
        channels_last_strides(like.ndim, like.sizes, strides)
        return empty_strided_tensor(like.ndim, like.sizes, strides, dtype, place)
    return empty_tensor(like.ndim, like.sizes, dtype, place)


cdef inline int move(TensorBase destination, TensorBase source) except -1:
    """Between any two devices: the core asks the one with memory of its own (core/storage.pxd, DeviceHooks)."""
    return copy_elements(destination, source)


cdef TensorBase clone_impl(TensorBase self, object memory_format):
    cdef TensorBase r = empty_formatted(self, self.dtype, place_of(self), format_code(memory_format, "clone"))
    move(r, self)
    return r


cdef TensorBase lazy_clone_kernel(TensorBase self):
    cdef Storage s = lazy_clone_of(self.storage)
    cdef TensorBase r
    if s is None:
        r = empty_like_tensor(self, self.dtype)
        copy_elements(r, self)
        return r
    r = new_tensor()
    set_storage(r, s)
    set_dtype(r, self.dtype)
    r.offset = self.offset
    set_geometry(r, self.ndim, self.sizes, self.strides)
    return r


cdef TensorBase contiguous_kernel(TensorBase self, object memory_format):
    return clone_impl(self, contiguous_format if memory_format is None else memory_format)


cdef object contiguous_in(object input, object memory_format, object out, bint inplace):
    """The tensor itself when it already lies in the memory format, otherwise a copy that does."""
    cdef TensorBase self = as_tensor_arg(input, "contiguous", "self")
    cdef int fmt = format_code(memory_format, "contiguous")
    if fmt == MF_PRESERVE:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if fmt == MF_CONTIGUOUS and self.contiguous:
        return self
    if fmt == MF_CHANNELS_LAST and is_channels_last(self) or fmt == MF_CHANNELS_LAST_3D and is_channels_last_3d(self):
        return self
    return op_contiguous(self, memory_format)


cdef TensorBase to_copy_impl(TensorBase self, int dtype, object device, object memory_format):
    cdef int target = place_of(self) if device is None else place_of_device(parse_device(device))
    cdef TensorBase r
    if self.storage.block == NULL and target != DEV_META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device.")
    r = empty_formatted(self, self.dtype if dtype < 0 else dtype, target, format_code(memory_format, "to"))
    move(r, self)
    return r


cdef object to_meta(object grad, object meta):
    """The gradient of a copy, back in the type and on the device it came from, summed where it was spread."""
    return reduce_gradient(<TensorBase?>grad, meta)


cdef TensorBase copy_impl(TensorBase self, TensorBase src, TensorBase out, int mode):
    check_internal_overlap("copy_", self)
    if self.storage.block == src.storage.block and (self.dtype == src.dtype or self.offset != src.offset):       # bits of another type are the same elements
        check_no_overlap("copy_", self, src, True)
    move(self, src)
    return self


cdef int imaginary_part_lost(TensorBase self, int code) except -1:
    """Warns of a conversion of a complex tensor to a real type, which whoever wants it writes as x.real."""
    if category[code] < CAT_COMPLEX and code != BOOL and self.numel and self.device_type != DEV_META:
        from tensorrt_lite._C.core.warning import warn_once
        warn_once("Casting complex values to real discards the imaginary part", direct=True)
    return 0


cdef object copied(object input, object src, object non_blocking, object out, bint inplace):
    """self[...] = src, broadcast and converted to self's dtype; returns self."""
    cdef TensorBase self = as_tensor_arg(input, "copy_", "self"), s
    cdef uint64_t keys
    cdef int device
    if non_blocking and isinstance(src, TensorBase) and has_index(self.device_type) != has_index((<TensorBase>src).device_type):
        device = self.device_type if has_index(self.device_type) else (<TensorBase>src).device_type
        run_non_blocking(device, True)
        try:
            return copied(self, src, False, None, True)
        finally:
            run_non_blocking(device, False)
    s = as_operand(src, "copy_", "other")
    check_inplace(self, "copy_")
    if s is self:
        return self
    if category[s.dtype] == CAT_COMPLEX:
        imaginary_part_lost(s, self.dtype)
    keys = ((self.keys | s.keys) & (K_DERIVATIVES | K_PYTHON) | tls().included) & ~tls().excluded
    if keys:
        # the devices may differ
        return finish_inplace(below_copy(self, s, self, INPLACE, ~<uint64_t>0), keys)
    copy_impl(self, s, self, INPLACE)
    bump_version(self)
    return self


cdef object filled_with(object input, object value, object out, bint inplace):
    """All elements one value. A number has to go into the dtype, a tensor's is converted."""
    cdef TensorBase self = as_tensor_arg(input, "fill", "input")
    cdef Scalar s
    if inplace:
        check_inplace(self, "fill_")
    if isinstance(value, TensorBase) and (<TensorBase>value).ndim == 0 and not (<TensorBase>value).requires_grad and (<TensorBase>value).dtype != self.dtype:
        value = _ops.to(value, dtype_of(self.dtype))
    param(value, &s, "fill", "value")
    if inplace:
        return finish_inplace(op_fill(self, &s, self, INPLACE), self.keys)
    return op_fill(self, &s, None, FRESH)


cdef TensorBase fill_impl(TensorBase self, const Scalar* value, TensorBase out, int mode):
    cdef TensorBase r = self
    if mode == FRESH:
        r = empty_like_tensor(self, self.dtype)
    check_filling(value, r)
    fill_elements(r, value)
    return r


cdef int zero_by_fill(TensorBase t) except -1:
    cdef Scalar s
    s.kind = 1
    s.d = 0
    s.im = 0
    s.i = 0
    return fill_elements(t, &s)


cdef int zero_cpu(TensorBase t) except -1:
    memset(data_of(t), 0, t.numel * ITEM_SIZE[t.dtype])
    return 0


set_zero_elements(DEV_CPU, zero_cpu)
set_zero_elements(DEV_CUDA, zero_by_fill)
for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_zero_elements(_device, zero_by_fill)


cdef TensorBase zero_impl(TensorBase self, TensorBase out, int mode):
    if self.contiguous:
        run_zero_elements(self.device_type, self)
    else:
        zero_by_fill(self)
    return self


# ---- to ------------------------------------------------------------------------------------------------------------

cdef bint lies_in(TensorBase self, object memory_format) except -1:
    """Whether a conversion to a memory format leaves the tensor as it lies: whatever isn't channels-last counts as contiguous."""
    if memory_format is None or memory_format is preserve_format:
        return True
    if memory_format is contiguous_format:
        return self.contiguous or not (is_channels_last(self) or is_channels_last_3d(self))
    return self.is_contiguous(memory_format=memory_format)


def to(TensorBase self not None, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """to(dtype), to(device), to(other), to(device, dtype): a converted copy, or the tensor itself when nothing changes."""
    cdef int code, target, owner, flags = 0
    for a in args:
        if isinstance(a, dtype_type) or a in (float, int, bool, complex):
            dtype = a
        elif isinstance(a, TensorBase):
            dtype = dtype_of((<TensorBase>a).dtype)
            device = (<object>a).device
        elif isinstance(a, bool):
            # the first bool is non_blocking, whatever its value
            if flags == 0:
                non_blocking = a
            else:
                copy = a
            flags += 1
        elif isinstance(a, (str, int, device_class)):
            device = a
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({', '.join([type(b).__name__ for b in args])}), but expected a dtype of this library "
                            f"(float32, not a NumPy type), a device or a Tensor; self: {dtype_text(self.dtype)} {shape_text(self)}")
    code = parse_dtype(dtype, "to")
    if code < 0:
        code = self.dtype
    target = place_of(self) if device is None else place_of_device(parse_device(device))
    if code == self.dtype and target == place_of(self) and not copy and lies_in(self, memory_format):
        return self
    if category[self.dtype] == CAT_COMPLEX:
        imaginary_part_lost(self, code)
    if non_blocking and (has_index(self.device_type) or has_index(target & 0xFF)):
        owner = target & 0xFF if has_index(target & 0xFF) else self.device_type
        hooks_of(owner)
        run_non_blocking(owner, True)
        try:
            return op__to_copy(self, code, None if target == place_of(self) else device, memory_format)
        finally:
            run_non_blocking(owner, False)
    return op__to_copy(self, code, None if target == place_of(self) else device, memory_format)


cdef object convert(TensorBase self, int code, object memory_format):
    if self.dtype == code and lies_in(self, memory_format):
        return self
    if category[self.dtype] == CAT_COMPLEX:
        imaginary_part_lost(self, code)
    return op__to_copy(self, code, None, memory_format)


def float_(TensorBase self not None, memory_format=None):
    return convert(self, F32, memory_format)


def double(TensorBase self not None, memory_format=None):
    return convert(self, F64, memory_format)


def half(TensorBase self not None, memory_format=None):
    return convert(self, F16, memory_format)


def bfloat16(TensorBase self not None, memory_format=None):
    return convert(self, BF16, memory_format)


def long_(TensorBase self not None, memory_format=None):
    return convert(self, I64, memory_format)


def int_(TensorBase self not None, memory_format=None):
    return convert(self, I32, memory_format)


def short_(TensorBase self not None, memory_format=None):
    return convert(self, I16, memory_format)


def char_(TensorBase self not None, memory_format=None):
    return convert(self, I8, memory_format)


def byte(TensorBase self not None, memory_format=None):
    return convert(self, U8, memory_format)


def bool_(TensorBase self not None, memory_format=None):
    return convert(self, BOOL, memory_format)


def cfloat(TensorBase self not None, memory_format=None):
    return convert(self, C64, memory_format)


def chalf(TensorBase self not None, memory_format=None):
    return convert(self, C32, memory_format)


def cdouble(TensorBase self not None, memory_format=None):
    return convert(self, C128, memory_format)


def type_as(TensorBase self not None, TensorBase other not None):
    """to(other)."""
    return to(self, other)


def cpu(TensorBase self not None, memory_format=None):
    return to(self, device="cpu", memory_format=memory_format)


def cuda(TensorBase self not None, device=None, non_blocking=False, memory_format=None):
    return to(self, device="cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


# ---- out into Python -----------------------------------------------------------------------------------------------

cdef extern from "stage.h" nogil:
    void load_scalar "trt_load_scalar"(const char* p, int dtype, Scalar* number)


cdef object read_element(const char* p, int code):
    cdef Scalar number
    if code == BOOL:
        return p[0] != 0
    if code == U8:
        return (<const uint8_t*>p)[0]
    if code == I8:
        return (<const int8_t*>p)[0]
    if code == I16:
        return (<const int16_t*>p)[0]
    if code == I32:
        return (<const int32_t*>p)[0]
    if code == I64:
        return (<const int64_t*>p)[0]
    if code == F32:
        return <double>(<const float*>p)[0]
    if code == F64:
        return (<const double*>p)[0]
    if code == C64:
        return complex((<const float*>p)[0], (<const float*>p)[1])
    if code == C128:
        return complex((<const double*>p)[0], (<const double*>p)[1])
    load_scalar(p, code, &number)
    if number.kind == CAT_COMPLEX:
        return complex(number.d, number.im)
    if number.kind == CAT_FLOAT:
        return number.d
    return <uint64_t>number.i if code == U64 else number.i


cdef TensorBase readable(TensorBase t, str op):
    t = materialized(t, op)
    if t.device_type == DEV_META:
        raise RuntimeError(f"Tensor.{op}() cannot be called on meta tensors") if op == "item" else NotImplementedError("Cannot copy out of meta tensor; no data!")
    if t.device_type != DEV_CPU:
        return cpu(t)
    return t


def item(TensorBase self not None):
    """The value of a one-element tensor as a Python number."""
    if self.numel != 1:
        raise hinted("one element", RuntimeError(f"a Tensor with {self.numel} elements cannot be converted to Scalar"))
    return op__local_scalar_dense(materialized(self, "item"))


cdef object number_of(TensorBase self):
    if self.numel != 1:
        raise RuntimeError(f"a Tensor with {self.numel} elements cannot be converted to Scalar")
    return read_element(data_of(self), self.dtype)


cdef object copied_number(TensorBase self):
    return number_of(cpu(self))


cdef object refused_number(TensorBase self):
    raise RuntimeError("Tensor.item() cannot be called on meta tensors")


cdef object nested_list(TensorBase t, int dim, const char* p):
    cdef int64_t i
    cdef int64_t step
    if dim == t.ndim:
        return read_element(p, t.dtype)
    step = t.strides[dim] * ITEM_SIZE[t.dtype]
    if dim == t.ndim - 1:
        return [read_element(p + i * step, t.dtype) for i in range(t.sizes[dim])]
    return [nested_list(t, dim + 1, p + i * step) for i in range(t.sizes[dim])]


def tolist(TensorBase self not None):
    """Nested lists of Python numbers (a number for a 0-dimensional tensor)."""
    cdef int i
    self = materialized(self, "tolist")
    if (self.keys | tls().included) & ~tls().excluded & K_PYTHON:
        return item(self) if self.ndim == 0 else [tolist(<TensorBase?>_ops.select(self, 0, i)) for i in range(self.sizes[0])]
    self = readable(self, "tolist")
    for i in range(self.ndim):
        if self.sizes[i] >= <int64_t>1 << 31:
            raise MemoryError(f"tolist: a list of {self.sizes[i]} elements is too long")
        if self.sizes[i] == 0:
            break
    if self.numel == 0:
        return empty_list(self, 0)
    return nested_list(self, 0, data_of(self))


cdef object empty_list(TensorBase t, int dim):
    cdef int64_t i
    if dim == t.ndim - 1 or t.sizes[dim] == 0:
        return []
    return [empty_list(t, dim + 1) for i in range(t.sizes[dim])]


cdef TensorBase one_element(TensorBase self, str what):
    if self.numel != 1:
        raise hinted("one element", ValueError("only one element tensors can be converted to Python scalars"))
    return self


def to_bool(TensorBase self not None):
    if self.numel == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if self.numel != 1:
        raise hinted("ambiguous", RuntimeError("Boolean value of Tensor with more than one value is ambiguous"))
    return bool(item(materialized(self, "bool")))


cdef object real_item(TensorBase self, str name, str kind):
    """The element, which is real or has no imaginary part."""
    x = item(one_element(self, name))
    if isinstance(x, complex):
        if x.imag != 0:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow ({name}() of a {dtype_text(self.dtype)} tensor whose imaginary part is {x.imag})")
        return x.real
    return x


def to_float(TensorBase self not None):
    return float(real_item(self, "float", "double"))


def to_int(TensorBase self not None):
    x = real_item(self, "int", "int64_t")
    if category[self.dtype] == CAT_COMPLEX and not -9223372036854775808.0 <= x < 9223372036854775808.0:
        raise RuntimeError(f"value cannot be converted to type int64_t without overflow (int() of a {dtype_text(self.dtype)} tensor of value {x})")
    return int(x)


def to_complex_number(TensorBase self not None):
    return complex(item(one_element(self, "complex")))


def to_index(TensorBase self not None):
    if self.numel != 1 or category[self.dtype] > CAT_INT:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


METHOD_ALIASES = {
    "float": float_, "long": long_, "int": int_, "short": short_, "char": char_, "bool": bool_, "__bool__": to_bool, "__float__": to_float,
    "__int__": to_int, "__index__": to_index, "__complex__": to_complex_number,
}
