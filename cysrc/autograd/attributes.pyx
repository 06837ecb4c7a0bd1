"""Attributes and methods of tensors that read or set the object itself: geometry, gradient, version, hooks, storage.

Plain functions; the package attaches them to ``Tensor`` (properties are those listed in PROPERTIES).
"""
from tensorrt_lite._C.core.hints import hinted
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from tensorrt_lite._C.core.tensor cimport *
from tensorrt_lite._C.core.materialize cimport materialized
from tensorrt_lite._C.core.sparse cimport device_of_sparse
from tensorrt_lite._C.core.storage cimport Storage, expose, storage_resize
from tensorrt_lite._C.core.dtype cimport *
from tensorrt_lite._C.core.device cimport *
from tensorrt_lite._C.core.dispatch cimport tls, attach, intercepted
from tensorrt_lite._C.core.args cimport *
from tensorrt_lite._C.core.iterator cimport contiguous_of
from tensorrt_lite._C.autograd.node cimport *
from tensorrt_lite._C.core.python_key import dispatches
from tensorrt_lite._C.autograd.hooks import add_hook
from tensorrt_lite._C.autograd.node import retain_grad as _retain_grad
from tensorrt_lite._C.core.device import strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, contiguous_format, channels_last, channels_last_3d
from cpython.object cimport PyObject

cdef extern from *:
    bint times_overflows "__builtin_mul_overflow"(int64_t, int64_t, int64_t*) nogil
    bint plus_overflows "__builtin_add_overflow"(int64_t, int64_t, int64_t*) nogil

cdef extern from *:
    """
    /* TensorBase's own tp_new, for a subclass that may define __new__ in Python */
    #define trt_new_as(base, type, args) (((PyTypeObject*)(base))->tp_new((PyTypeObject*)(type), (args), NULL))
    """
    object trt_new_as(object base, object type, object args)

cdef extern from "Python.h":
    bint PyType_IsSubtype(PyTypeObject*, PyTypeObject*)

attach()

cdef tuple layouts = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)           # by LAYOUT_*


# ---- geometry ------------------------------------------------------------------------------------------------------

def shape(TensorBase self not None):
    """The sizes, as a Size."""
    return shape_of(self)


def size(TensorBase self not None, dim=None):
    """size() -> Size; size(dim) -> int."""
    if dim is None:
        return shape_of(self)
    cdef int64_t given = parse_int(dim, "size", "dim")
    if self.ndim == 0:
        raise IndexError("Dimension specified as {} but tensor has no dimensions".format(given))
    cdef int d = wrap_dim(given, self.ndim)
    return self.sizes[d]


def stride(TensorBase self not None, dim=None):
    """stride() -> tuple; stride(dim) -> int. In elements."""
    if dim is None:
        return strides_of(self)
    cdef int64_t given = parse_int(dim, "stride", "dim")
    if self.ndim == 0:
        raise IndexError("Dimension specified as {} but tensor has no dimensions".format(given))
    cdef int d = wrap_dim(given, self.ndim)
    return self.strides[d]


def ndim(TensorBase self not None):
    """The number of dimensions."""
    return self.ndim


def dim(TensorBase self not None):
    return self.ndim


def numel(TensorBase self not None):
    return self.numel


def storage_offset(TensorBase self not None):
    return self.offset


def element_size(TensorBase self not None):
    return ITEM_SIZE[self.dtype]


def itemsize(TensorBase self not None):
    """The size of one element in bytes."""
    return ITEM_SIZE[self.dtype]


def nbytes(TensorBase self not None):
    """The size of all elements in bytes: numel() * itemsize."""
    return self.numel * ITEM_SIZE[self.dtype]


def is_contiguous(TensorBase self not None, memory_format=contiguous_format):
    """Whether the elements lie in memory in the order of the given memory format."""
    if memory_format is channels_last:
        return is_channels_last(self)
    if memory_format is channels_last_3d:
        return is_channels_last_3d(self)
    return bool(self.contiguous)


def dtype_property(TensorBase self not None):
    """The type of the elements."""
    return dtype_of(self.dtype)


cdef object device_of_wrapped(TensorBase t):
    """Where the values of a tensor lie that stands for another inside a functional transform."""
    from tensorrt_lite._C.core.transform import value_of
    return value_of(t).device


cdef object wrapper_device(TensorBase t):
    """The device that a tensor without memory of its own claims, None of other tensors."""
    if t.keys & K_SPARSE:
        return device_of_sparse(t)
    if t.keys & K_WRAPPED:
        return device_of_wrapped(t)
    return (<dict>t.attributes).get("_wrapper_device") if t.keys & K_PYTHON and t.attributes != NULL else None


def device_property(TensorBase self not None):
    """Where the memory is."""
    if self.keys & K_PYTHON:
        claimed = wrapper_device(self)
        if claimed is not None:
            return claimed
    return make_device(self.device_type, self.device_index if has_index(self.device_type) else None)


def layout_property(TensorBase self not None):
    """How elements lie in memory: strided, or which of them are stored: sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc."""
    return layouts[self.layout]


def is_floating_point(TensorBase self not None):
    return is_floating_type(self.dtype)


def is_complex(TensorBase self not None):
    return is_complex_type(self.dtype)


def is_signed(TensorBase self not None):
    return is_signed_type(self.dtype)


def is_cpu(TensorBase self not None):
    """Whether the tensor is on the CPU."""
    return self.device_type == DEV_CPU if wrapper_device(self) is None else wrapper_device(self).type == "cpu"


def is_cuda(TensorBase self not None):
    """Whether the tensor is on a CUDA device."""
    return self.device_type == DEV_CUDA if wrapper_device(self) is None else wrapper_device(self).type == "cuda"


def is_meta(TensorBase self not None):
    """Whether the tensor has a shape and a dtype, and no elements."""
    return self.device_type == DEV_META if wrapper_device(self) is None else wrapper_device(self).type == "meta"


def is_sparse(TensorBase self not None):
    """Whether the layout is sparse_coo."""
    return self.layout == LAYOUT_COO


def is_sparse_csr(TensorBase self not None):
    """Whether the layout is sparse_csr."""
    return self.layout == LAYOUT_CSR


def get_device(TensorBase self not None):
    if self.keys & K_SPARSE:
        return -1 if wrapper_device(self).index is None else wrapper_device(self).index
    return -1 if self.device_type == DEV_CPU else self.device_index


def false_property(TensorBase self not None):
    """False: there are no such tensors here (docs/gaps.md)."""
    return False


# ---- storage -------------------------------------------------------------------------------------------------------

def data_ptr(TensorBase self not None):
    """The address of the first element; 0 for empty and meta tensors."""
    self = materialized(self, "data_ptr")
    if self.storage.block == NULL or self.numel == 0:
        return 0
    expose(self.storage)
    return <size_t>data_of(self)


def untyped_storage(TensorBase self not None):
    """The storage that this tensor views."""
    return materialized(self, "untyped_storage").storage


def cdata(TensorBase self not None):
    return <size_t><void*>self


def set_(TensorBase self not None, source=None, storage_offset=0, size=None, stride=None):
    """Make the tensor view another storage (or another tensor's), with the given geometry in elements."""
    if (self.keys | ((<TensorBase>source).keys if isinstance(source, TensorBase) else 0)) & K_SPARSE:
        raise RuntimeError("set_(): sparse tensors have no storage to set")
    cdef Storage s, old = self.storage   # released last: its owner may run Python, which must not meet half a change
    cdef TensorBase t
    cdef Dims sizes, strides
    cdef int64_t offset
    cdef int i
    if source is None:
        source = Storage(0)
    if isinstance(source, TensorBase):
        t = <TensorBase>source
        if t.dtype != self.dtype:
            raise RuntimeError(f"set_(): the source has dtype {dtype_of(t.dtype)!r}, the tensor {dtype_of(self.dtype)!r}")
        if size is None:
            check_set(self, t.storage)
            view_memory(self, t.storage, t.offset, t.ndim, t.sizes, t.strides)
            return self
        s = t.storage
    elif isinstance(source, Storage):
        s = <Storage>source
    elif hasattr(source, "_untyped_storage"):
        s = <Storage?>source._untyped_storage
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor or UntypedStorage, not {type(source).__name__}")
    offset = parse_int(storage_offset, "set_", "storage_offset")
    if size is None:
        sizes.n = 1
        sizes.v[0] = s.length // ITEM_SIZE[self.dtype] - offset
    else:
        parse_dims(size, &sizes, "set_", "size")
    if stride is None:
        contiguous_strides(sizes.n, sizes.v, strides.v)
    else:
        parse_dims(stride, &strides, "set_", "stride")
        if strides.n != sizes.n:
            raise RuntimeError(f"set_(): mismatch in length of strides and shape: {strides.n} and {sizes.n}")
    if s.block == NULL and s.device_type == DEV_CPU:
        raise RuntimeError("set_(): the storage has not been initialised")
    check_set(self, s)
    if s.can_resize:
        grow_storage(s, sizes.n, sizes.v, strides.v, offset, ITEM_SIZE[self.dtype])
    check_geometry(s, sizes.n, sizes.v, strides.v, offset, ITEM_SIZE[self.dtype], "set_")
    view_memory(self, s, offset, sizes.n, sizes.v, strides.v)
    return self


cdef int view_memory(TensorBase self, Storage s, int64_t offset, int ndim, const int64_t* sizes, const int64_t* strides) except -1:
    """What set_ does when everything has been checked."""
    if self.requires_grad and self.grad_fn_ is None:
        leave_history(self, REPLACED)
    set_storage(self, s)
    self.offset = offset
    set_geometry(self, ndim, sizes, strides)
    bump_version(self)
    return 0


cdef int grow_storage(Storage s, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int64_t itemsize) except -1:
    """Enlarge a storage that a valid geometry goes beyond; what is not valid is left to check_geometry."""
    cdef int64_t last = offset, step
    cdef int i
    if offset < 0:
        return 0
    for i in range(ndim):
        if sizes[i] <= 0 or strides[i] < 0:
            return 0
    for i in range(ndim):
        if times_overflows(sizes[i] - 1, strides[i], &step) or plus_overflows(last, step, &last):
            return 0
    if plus_overflows(last, 1, &last) or times_overflows(last, itemsize, &last) or last <= s.length:
        return 0
    return storage_resize(s, last)


cdef int check_set(TensorBase self, Storage s) except -1:
    if (s.device_type != self.device_type or s.device_index != self.device_index) and s.device_type != DEV_META and self.device_type != DEV_META:
        raise RuntimeError(f"set_(): attempted to set the storage of a tensor on device \"{(<object>self).device}\" to a storage on a different device; the devices must match")
    if tls().grad_mode:
        check_inplace(self, "set_")
    return 0


def resize_(TensorBase self not None, *size, memory_format=None):
    """Change the sizes in place; new elements are undefined, the storage grows when needed."""
    cdef Dims d
    cdef bint changed
    cdef int i
    if self.keys & K_SPARSE:
        raise RuntimeError("resize_(): a sparse tensor changes its size by sparse_resize_")
    parse_size(size, &d, "resize_", "size")
    if self.requires_grad and tls().grad_mode:
        raise RuntimeError("cannot resize variables that require grad")
    checked_numel(d.n, d.v)
    cdef int64_t before = self.storage.length
    changed = d.n != self.ndim
    for i in range(0 if changed else d.n):
        changed = changed or d.v[i] != self.sizes[i]
    resize_tensor(self, d.n, d.v, -1 if memory_format is None else (<type_memory_format?>memory_format).code)
    if changed:
        bump_version(self)
    if _fill_added is not None and self.storage.length > before:
        _fill_added(self, before)
    return self


cdef object _fill_added = None


def _set_fill_added(f):
    """f(tensor, bytes) fills what `resize_` gave a tensor's storage beyond so many bytes; None where that stays undefined."""
    global _fill_added
    _fill_added = f


from tensorrt_lite._C.core.device cimport memory_format as type_memory_format
from tensorrt_lite._C.core.device import channels_last, channels_last_3d, contiguous_format


def resize_as_(TensorBase self not None, TensorBase other not None, memory_format=None):
    """resize_ to the sizes of another tensor."""
    if self.keys & K_SPARSE and other.keys & K_SPARSE:
        return (<object>self).resize_as_sparse_(other)
    if memory_format is not None and (<type_memory_format?>memory_format).code == MF_PRESERVE:
        memory_format = contiguous_format if other.contiguous else channels_last if is_channels_last(other) else channels_last_3d if is_channels_last_3d(other) else contiguous_format
    return self.resize_(shape_of(other), memory_format=memory_format)


# ---- autograd ------------------------------------------------------------------------------------------------------

def grad(TensorBase self not None):
    """The accumulated gradient, or None."""
    if self.grad_ is None and self.grad_fn_ is not None and not self.retains_grad and self.requires_grad:
        from tensorrt_lite._C.core.warning import warn
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
            "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.")
    return self.grad_


def set_grad(TensorBase self not None, value):
    cdef TensorBase g
    if value is not None:
        if not isinstance(value, TensorBase):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        g = <TensorBase>value
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if g.dtype != self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtype_of(g.dtype)!r}' to a tensor with grad_dtype '{dtype_of(self.dtype)!r}'. The gradient must "
                "match the tensor's dtype")
        if (g.keys | self.keys) & K_SPARSE:
            if (<object>g).device != (<object>self).device:
                raise RuntimeError("assigned grad has data located on a different device")
        elif g.device_type != self.device_type or g.device_index != self.device_index:
            raise RuntimeError("assigned grad has data located on a different device")
        if not same_sizes(g, self):
            raise RuntimeError(
                f"attempting to assign a gradient of size '{shape_text(g)}' to a tensor of size '{shape_text(self)}'. Please ensure that the gradient and "
                "the tensor are the same size")
    self.grad_ = value


def del_grad(TensorBase self not None):
    self.grad_ = None


def grad_fn(TensorBase self not None):
    """The Node that made this tensor, None for leaves."""
    return grad_fn_of(self)


def requires_grad(TensorBase self not None):
    """Whether operators on the tensor record a history. Set it on leaves alone, of floating or complex dtype: RuntimeError otherwise."""
    if self.creation_meta == CREATED_INFERENCE and self.base is not None and category[self.dtype] >= CAT_FLOAT:
        return bool(self.base.requires_grad)        # as in PyTorch, though nothing is recorded of what such a view goes into
    return bool(self.requires_grad)


def set_requires_grad(TensorBase self not None, bint value):
    if self.grad_fn_ is not None:
        if value:
            return
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require "
            "differentiation use var_no_grad = var.detach().")
    if value and self.keys & K_WRAPPED:
        from tensorrt_lite._C.core.transform import check_may_require_grad
        check_may_require_grad(self)
    if value and category[self.dtype] < CAT_FLOAT:
        raise hinted("float gradient", RuntimeError("only Tensors of floating point and complex dtype can require gradients"))
    if value and self.inference and not tls().inference_mode:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    self.requires_grad = value
    if value:
        self.keys |= K_AUTOGRAD
    else:
        self.keys &= ~<uint64_t>K_AUTOGRAD


def requires_grad_(TensorBase self not None, requires_grad=True):
    """Set whether gradients are accumulated for this leaf."""
    if requires_grad is not True and requires_grad is not False and type(requires_grad).__name__ != "bool_":  # NumPy's
        raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}")
    if self.keys & K_WRAPPED:
        from tensorrt_lite._C.core.transform import check_may_require_grad
        check_may_require_grad(self, True)
    set_requires_grad(self, requires_grad)
    return self


def is_leaf(TensorBase self not None):
    """Whether no operator recorded how the tensor was made; backward() accumulates gradients of leaves."""
    return grad_fn_of(self) is None


def output_nr(TensorBase self not None):
    """Which result of its grad_fn the tensor is."""
    return self.output_nr


def version(TensorBase self not None):
    """How often the memory was written to since the tensor was made."""
    if self.inference:
        raise RuntimeError("Inference tensors do not track version counter.")
    return version_of(self)


def is_inference(TensorBase self not None):
    return bool(self.inference)


def base(TensorBase self not None):
    return self.base


def is_view(TensorBase self not None):
    return self.base is not None


def detach(TensorBase self not None):
    """A tensor that shares this one's memory and version counter and has no history."""
    return ops_namespace().detach(self) if intercepted(self.keys) else alias_of(self)


def detach_(TensorBase self not None):
    """Cut this tensor from its history."""
    if self.base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                           "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. "
                           "To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution.")
    if self.grad_fn_ is not None:
        leave_history(self, DETACHED)
    self.grad_fn_ = None
    self.output_nr = 0
    self.requires_grad = 0
    self.keys &= ~<uint64_t>K_AUTOGRAD
    return self


def data(TensorBase self not None):
    """A tensor over the same memory that autograd does not connect with this one, with a version counter of its own."""
    cdef TensorBase r = None
    if (self.keys | tls().included) & ~tls().excluded & K_PYTHON and not self.keys & K_STANDS_IN:
        r = <TensorBase?>(<object>self).detach()
    if r is None or r is self:
        r = alias_of(self)
    if r.version != NULL and r.version == self.version:
        drop_version(r)
    return r


def set_data(TensorBase self not None, TensorBase value not None):
    """Let the tensor view other memory; the version counter and the history stay."""
    if (value.keys | self.keys) & K_SPARSE and value.layout != self.layout:
        raise RuntimeError(f"incompatible tensor type: the data is {(<object>value).layout}, the tensor {(<object>self).layout}")
    if value.device_type != self.device_type and self.requires_grad and self.grad_fn_ is not None:
        raise RuntimeError("incompatible tensor type: the data lies on another device")
    if category[value.dtype] < CAT_FLOAT and self.requires_grad:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    cdef Storage old = self.storage
    if value.dtype != self.dtype or value.device_type != self.device_type or value.device_index != self.device_index or not same_sizes(self, value):
        bump_version(self)   # a graph that saved the tensor counts on its sizes
    set_storage(self, value.storage)
    self.offset = value.offset
    set_dtype(self, value.dtype)
    set_geometry(self, value.ndim, value.sizes, value.strides)


def retain_grad(TensorBase self not None):
    """Keep the gradient of a tensor that is not a leaf in its ``grad``."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    _retain_grad(self)


def retains_grad(TensorBase self not None):
    """Whether backward() keeps the gradient of this tensor, which is no leaf, in `grad`."""
    return bool(self.retains_grad)


def register_hook(TensorBase self not None, hook):
    """Call ``hook(grad)`` when the gradient of this tensor is known; it may return another one. Returns a handle."""
    cdef Node n
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    n = grad_fn_of(self)
    if n is None:
        if self.hooks is None:
            self.hooks = []
        return add_hook(self.hooks, hook)
    if n.pre_hooks is None:
        n.pre_hooks = []
    return add_hook(n.pre_hooks, (self.output_nr, hook))


def register_post_accumulate_grad_hook(TensorBase self not None, hook):
    """Call ``hook(tensor)`` after a gradient was added to this leaf's ``grad``."""
    if not self.requires_grad or self.grad_fn_ is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self.post_accumulate is None:
        self.post_accumulate = []
    return add_hook(self.post_accumulate, hook)


def backward_hooks(TensorBase self not None):
    """{number: hook} of a leaf, None without: a copy, as the executor trusts its own list."""
    return None if self.hooks is None else dict(enumerate([entry.value for entry in self.hooks]))


# ---- other classes -------------------------------------------------------------------------------------------------

def make_subclass(cls, TensorBase data not None, require_grad=False):
    """An instance of a Tensor subclass over the same memory as `data`, detached."""
    cdef TensorBase r
    if not isinstance(cls, type) or not issubclass(cls, TensorBase):
        raise TypeError(f"_make_subclass(): cls must be a subclass of Tensor, got {cls!r}")
    r = instance_of(cls, data)
    set_requires_grad(r, require_grad)
    return r


cdef TensorBase instance_of(cls, TensorBase data):
    cdef TensorBase r = <TensorBase?>trt_new_as(TensorBase, cls, ())
    set_storage(r, data.storage)
    r.keys = data.keys & ~<uint64_t>(K_AUTOGRAD | K_DISPATCHED) | (K_DISPATCHED if dispatches(cls) else K_PYTHON if data.keys & K_STANDS_IN else 0)
    r.layout = data.layout
    r.offset = data.offset
    set_dtype(r, data.dtype)
    set_geometry(r, data.ndim, data.sizes, data.strides)
    return r


def make_wrapper_subclass(cls, TensorBase like not None, device, require_grad=False):
    """An instance of a class with __torch_dispatch__ that has the geometry and type of the meta tensor `like`, no memory, and claims a device."""
    cdef TensorBase r
    if not isinstance(cls, type) or not issubclass(cls, TensorBase):
        raise TypeError(f"_make_wrapper_subclass(): cls must be a subclass of Tensor, got {cls!r}")
    if not dispatches(cls):
        raise RuntimeError(f"_make_wrapper_subclass(): {cls.__name__} has no __torch_dispatch__: nothing could run on its instances")
    r = instance_of(cls, like)
    (<object>r)._wrapper_device = device
    set_requires_grad(r, require_grad)
    return r


def take_geometry(TensorBase self not None, TensorBase other not None):
    """Have the sizes, strides, offset and storage of `other`, which an operator has changed in place for this one; type, history and class stay."""
    cdef Storage old = self.storage
    set_storage(self, other.storage)
    self.offset = other.offset
    set_geometry(self, other.ndim, other.sizes, other.strides)


def as_subclass(TensorBase self not None, cls):
    """The same tensor as an instance of a subclass; keeps the history.

    Parameters:
        cls (type): a subclass of Tensor

    Example:
        >>> import tensorrt_lite as trt
        >>> class Named(trt.Tensor):
        ...     pass
        >>> type(trt.ones(2).as_subclass(Named)).__name__
        'Named'
    """
    if not isinstance(cls, type) or not issubclass(cls, TensorBase):
        raise TypeError(f"as_subclass(): cls must be a subclass of Tensor, got {cls!r}")
    cdef TensorBase r = instance_of(cls, self)
    if self.requires_grad:
        r.grad_fn_ = gradient_node(self)
        r.output_nr = self.output_nr if grad_fn_of(self) is not None else 0
        r.requires_grad = 1
        r.keys |= K_AUTOGRAD
    return r


def assign_from(TensorBase self not None, TensorBase other not None):
    """Take over another tensor's geometry, storage and type (the constructor of Tensor and unpickling use it)."""
    cdef Storage old = self.storage
    set_storage(self, other.storage)
    self.keys = other.keys & ~<uint64_t>(K_AUTOGRAD | K_DISPATCHED) | (K_DISPATCHED if dispatches(type(self)) else K_PYTHON if other.keys & K_STANDS_IN else 0)
    self.layout = other.layout
    self.offset = other.offset
    set_dtype(self, other.dtype)
    set_geometry(self, other.ndim, other.sizes, other.strides)


def mark_inference(TensorBase self not None):
    self.inference = 1
    return self


def same_object_memory(TensorBase a not None, TensorBase b not None):
    """Whether two tensors are the same elements of the same storage in the same order."""
    return memory_overlap(a, b) == 1


PROPERTIES = {
    "shape": (shape,), "ndim": (ndim,), "itemsize": (itemsize,), "nbytes": (nbytes,), "dtype": (dtype_property,), "device": (device_property,),
    "layout": (layout_property,), "is_cpu": (is_cpu,), "is_cuda": (is_cuda,), "is_meta": (is_meta,), "is_sparse": (is_sparse,), "is_sparse_csr": (is_sparse_csr,),
    "is_quantized": (false_property,), "is_mkldnn": (false_property,), "is_nested": (false_property,), "is_mps": (false_property,), "is_xpu": (false_property,),
    "grad": (grad, set_grad, del_grad), "_grad": (grad, set_grad, del_grad), "grad_fn": (grad_fn,), "requires_grad": (requires_grad, set_requires_grad), "is_leaf": (is_leaf,),
    "output_nr": (output_nr,), "_version": (version,), "_base": (base,), "data": (data, set_data), "retains_grad": (retains_grad,), "_cdata": (cdata,),
    "_backward_hooks": (backward_hooks,),
}
METHODS = {
    "size": size, "stride": stride, "dim": dim, "ndimension": dim, "numel": numel, "nelement": numel, "storage_offset": storage_offset,
    "element_size": element_size, "is_contiguous": is_contiguous, "is_floating_point": is_floating_point, "is_complex": is_complex,
    "is_signed": is_signed, "get_device": get_device, "data_ptr": data_ptr, "untyped_storage": untyped_storage, "set_": set_, "resize_": resize_,
    "resize_as_": resize_as_, "requires_grad_": requires_grad_, "is_inference": is_inference, "_is_view": is_view, "detach": detach,
    "detach_": detach_, "retain_grad": retain_grad, "register_hook": register_hook, "as_subclass": as_subclass,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
