"""Tensor and Parameter: the Python classes over the compiled TensorBase.

Operators are attached as class attributes (the function `trt.add` is the method `Tensor.add`); what follows here is
construction, printing, pickling, conversion and the operator symbols.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module as _import_module

from tensorrt_lite import _C, _ops, _public
from tensorrt_lite._legacy import tensor_methods as _older_methods
from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.core import args as _args
from tensorrt_lite._C.core import dlpack as _dlpack_core
from tensorrt_lite._C.core import overrides as _overrides
from tensorrt_lite._C.core import python_key as _python_key
from tensorrt_lite._C.core import storage_types as _storage_types
from tensorrt_lite._C.core import symbols as _symbols
from tensorrt_lite._C.core.overrides import DisableTorchFunction, DisableTorchFunctionSubclass, PublicProperty
from tensorrt_lite._C.core.storage import Storage as UntypedStorage  # noqa: F401 (the package's name for it)
from tensorrt_lite._C.core.storage import _set_device_loader
from tensorrt_lite._C.core.storage import exported as _exported
from tensorrt_lite._C.core.tensor import TensorBase, _register_types, _set_constructor, attributes_of
from tensorrt_lite._C.core.warning import warn_once as _warn_once
from tensorrt_lite._size import Size
from tensorrt_lite._C.core.device import device as _kind
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_array_api = _LazyModule("tensorrt_lite.array_api")
_backend = _LazyModule("tensorrt_lite.backend")
_cuda = _LazyModule("tensorrt_lite.cuda")
_declarations = _LazyModule("tensorrt_lite._declared.declarations")  # which dtypes without loops ask for
_declared_aten = _LazyModule("tensorrt_lite._declared.aten")  # which modes alone ask for
_overloads = _LazyModule("tensorrt_lite._declared.overloads")  # which modes alone ask for
_dlpack = _LazyModule("tensorrt_lite._interop.dlpack")
_legacy_typed_tensors = _LazyModule("tensorrt_lite._legacy.typed_tensors")
_reductions = _LazyModule("tensorrt_lite.multiprocessing.reductions")
_rich_display = _LazyModule("tensorrt_lite._interop.rich_display")
_tensor_str = _LazyModule("tensorrt_lite._tensor_str")
_typed_storage = _LazyModule("tensorrt_lite._legacy.typed_storage")
_backward = None


def _load_backward():
    """`autograd.backward`, kept: reading it from a lazy module would cost a tenth of a microsecond a call."""
    global _backward
    _backward = _import_module("tensorrt_lite.autograd").backward
    return _backward


def _load_cuda() -> None:
    """Fills in the core's hooks of CUDA."""
    _import_module("tensorrt_lite.cuda._kernels")


def _read_dlpack(array):
    """A tensor over the memory of an object with ``__dlpack__``."""
    return _dlpack.from_dlpack(array)


def _current_stream(device: int) -> int:
    """The address of a CUDA device's current stream."""
    return _dlpack.current_stream(device)


_set_device_loader(_load_cuda)
_dlpack_core._set_reader(_read_dlpack, _current_stream)


def _warn_of_transpose(name: str, dim: int) -> None:
    """PyTorch's warning, once in a process, of `x.T` and the like of tensors that aren't matrices."""
    if dim:
        _warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future release. "
            "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    else:
        instead = "Consider using x.conj()." if "H" in name else "This function is the identity in these cases."
        _warn_once(f"Tensor.{name} is deprecated on 0-D tensors. {instead}")


def _rebuild_tensor(data: bytes, dtype, size, stride, requires_grad: bool, device=None):
    """Unpickling: `data` holds the bytes of the storage from the tensor's first element on."""
    if data:
        storage = _ops.frombuffer(bytearray(data), dtype=_ops_dtype("uint8")).untyped_storage()
        t = _ops.empty(0, dtype=dtype).set_(storage, 0, size, stride)
        t = t if device is None else t.to(device)
    else:
        t = _ops.empty_strided(size, stride, dtype=dtype, device=device)
    return t.requires_grad_(requires_grad)


def _rebuild_with_type(kind, args, state):
    """Unpickling of a subclass, or of a tensor with attributes."""
    requires_grad = args[4]
    t = _rebuild_tensor(*args[:4], False, *args[5:])
    t = t.requires_grad_(requires_grad) if kind is Tensor else _attributes.make_subclass(kind, t, requires_grad)
    return _restored(t, state)


def _state_of(t):
    """What pickling keeps of a tensor beside its data: what a ``__getstate__`` of its class returns, else a dict of its attributes; (attributes, slots) where the
    class has slots that are set."""
    kind = type(t)
    getstate = getattr(kind, "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return t.__getstate__()
    state = dict(getattr(t, "__dict__", None) or {})
    slots = {} if kind is Tensor or kind is Parameter else {name: getattr(t, name) for name in _slots_of(kind) if hasattr(t, name)}
    return (state, slots) if slots else state


def _slots_of(kind):
    from copyreg import _slotnames

    return _slotnames(kind)


def _restored(t, state):
    """A tensor with the state that `_state_of` gave: by a ``__setstate__`` of its class, else as attributes."""
    if hasattr(type(t), "__setstate__"):
        t.__setstate__(state)
    elif state:
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        t.__dict__.update(attributes or {})
        for name, value in slots.items():
            setattr(t, name, value)
    return t


def _device_of(device):
    """The device of an argument; the CPU where it is left out."""
    return device if isinstance(device, _kind) else _kind("cpu" if device is None else device)


def _ops_dtype(name: str):
    return _dtype_by_name(name)


def _is_of_pytorch(function) -> bool:
    """Whether the function belongs to PyTorch, which is loaded beside this package: each would hand the call to the other without end."""
    tensors = getattr(sys.modules.get("torch"), "Tensor", Tensor)
    owner = getattr(function, "__objclass__", None) or type(getattr(function, "__self__", None))
    module = getattr(function, "__module__", None) or owner.__module__
    return not issubclass(tensors, TensorBase) and module.partition(".")[0] == "torch"


def _fill(tensor, args, kwargs):
    """What `Tensor(*args, **kwargs)` makes of a bare tensor: sizes, data or another tensor. Returns what stands for it, if that is another object."""
    if kwargs:
        given = _legacy_typed_tensors.construct(args, kwargs)
    elif type(args[0]) is int:
        given = _ops.empty(*args)
    elif len(args) == 1 and isinstance(args[0], TensorBase):
        given = args[0]
        if given.requires_grad:  # an alias with the same history
            return given.as_subclass(type(tensor))
    else:
        given = _legacy_typed_tensors.construct(args, {})
    _attributes.assign_from(tensor, given)


_set_constructor(_fill)


class Tensor(TensorBase):
    """A multi-dimensional array of elements of one dtype on one device, with automatic differentiation."""

    __slots__ = ()
    __dict__ = property(attributes_of)
    _made_of_parts = False  # true of nested and masked tensors; asked for in every backward pass, where a missing name costs 250 ns

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        # A class that defines __torch_dispatch__ alone gets what that returns: the __torch_function__ below would make it the class's, without what its __init__ sets.
        own = {name for base in cls.__mro__[: cls.__mro__.index(Tensor)] for name in ("__torch_dispatch__", "__torch_function__") if name in base.__dict__}
        if own == {"__torch_dispatch__"}:
            cls.__torch_function__ = _run_without_overrides

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Run ``func`` with overrides off and give results the subclass's type."""
        kwargs = kwargs or {}
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        if _is_of_pytorch(func):
            raise TypeError(f"{getattr(func, '__name__', func)}() is PyTorch's and got tensors of tensorrt_lite: torch.from_dlpack converts them")
        with DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        return _convert(result, cls) if func not in _KEEP_TYPE else result

    def __repr__(self, *, tensor_contents=None) -> str:
        return _tensor_str.tensor_repr(self)

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, format_spec: str) -> str:
        if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
            return format(self.item(), format_spec)
        return object.__format__(self, format_spec)

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.size(0)

    def __iter__(self):
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element) -> bool:
        if isinstance(element, (TensorBase, int, float, complex)):
            return bool((element == self).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __reversed__(self):
        return self if self.dim() == 0 else self.flip(0)

    __array_priority__ = 1000  # an operation with a NumPy scalar or array on the left is the tensor's

    def __array__(self, dtype=None, copy=None):
        """NumPy's array over the memory; copied where dtype is another one or copy is True. ValueError where copy=False cannot be met."""
        shared = self.numpy()
        array = shared if dtype is None else shared.astype(dtype, copy=False)
        if array is shared:
            return shared.copy() if copy else shared
        if copy is False:
            raise ValueError(f"Unable to avoid copy while creating an array as requested: the tensor is {self.dtype}, the array {array.dtype}")
        return array

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """What a NumPy function makes of this tensor, as a tensor."""
        return _ops.from_numpy(array.astype("uint8") if array.dtype == bool else array)

    def __arrow_array__(self, type=None):
        """Arrow's array (`pyarrow.array(tensor)`) over the memory of a tensor of one dimension on the CPU. ValueError for other numbers of dimensions."""
        import pyarrow

        if self.dim() != 1:
            raise ValueError(f"a tensor of {self.dim()} dimensions can't become an Arrow array, only one of 1 can; use pyarrow.Tensor.from_numpy(tensor.numpy())")
        return pyarrow.array(self.numpy(), type=type)

    def _repr_html_(self) -> str:
        return _rich_display.tensor_html(self)

    def _repr_pretty_(self, printer, cycle) -> None:
        _rich_display.tensor_pretty(self, printer, cycle)

    def __dir__(self):
        return sorted(set(object.__dir__(self)))

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
                "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        kind = type(self)
        if kind is not Tensor and type(self.new_empty(())) is not kind:
            raise RuntimeError(
                "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that properly implement new_empty() and for "
                f"which that function returns another instance of the same subclass, but {kind.__name__}'s returns a {type(self.new_empty(())).__name__}: "
                "implement new_empty() or __deepcopy__()"
            )
        copied = self._over_copied_storage(memo) if self.is_cpu or self.is_meta else self.detach().clone()
        if kind is not Tensor:
            copied = copied.as_subclass(kind)
            for name in _slots_of(kind):
                if hasattr(self, name):
                    from copy import deepcopy

                    setattr(copied, name, deepcopy(getattr(self, name), memo))
        copied.requires_grad_(self.requires_grad)
        memo[id(self)] = copied
        if self.grad is not None:
            copied.grad = self.grad.__deepcopy__(memo)
        if state := getattr(self, "__dict__", None):
            from copy import deepcopy

            copied.__dict__.update(deepcopy(state, memo))
        return copied

    def _over_copied_storage(self, memo):
        """The same geometry over a copy of the storage; tensors that share one share its copy, too."""
        storage = self.untyped_storage()
        values = self.detach().new_empty(0)
        return values.set_(storage.__deepcopy__(memo), self.storage_offset(), self.size(), self.stride())

    def __copy__(self):
        """A leaf over the same memory: what a history led to is a value like any other for `copy`, as it is for `pickle`."""
        self._warn_of_hooks()
        data = _attributes.data(self)
        if type(self) is Tensor:
            copied = data.requires_grad_() if self.requires_grad else data
        else:
            # a subclass of Parameter comes out as Parameter, as from a pickle
            kind = Parameter if issubclass(type(self), Parameter) else type(self)
            copied = _attributes.make_subclass(kind, data.as_subclass(Tensor), self.requires_grad)
        if state := getattr(self, "__dict__", None):
            copied.__dict__.update(state)
        return copied

    def _warn_of_hooks(self):
        if hooks := self._backward_hooks:
            for hook in hooks.values():
                warnings.warn(
                    f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                    "@torch.utils.hooks.unserializable_hook to suppress this warning",
                    stacklevel=3,
                )

    def __reduce_ex__(self, proto):
        if (reduced := _reduced_for_process(self)) is not None:
            return reduced
        if (value := _python_key.materialize(self, "pickle")) is not self:
            return value.detach().requires_grad_(self.requires_grad and self.is_leaf).__reduce_ex__(proto)
        self._warn_of_hooks()
        t = self.detach() if type(self) is Tensor else self.detach().as_subclass(Tensor)
        place = () if t.is_cpu else (t.device,)
        if t.is_meta:
            args = (b"", self.dtype, tuple(self.shape), self.stride(), self.requires_grad, *place)
        else:
            t = t.cpu()
            span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) if t.numel() else 0
            start = t.storage_offset() * t.element_size()
            data = bytes(_exported(t.untyped_storage())[start : start + span * t.element_size()]) if span else b""
            args = (data, self.dtype, tuple(self.shape), t.stride(), self.requires_grad, *place)
        state = _state_of(self)
        if type(self) is Tensor and not state:
            return _rebuild_tensor, args
        return _rebuild_with_type, (type(self), args, state)

    # ---- autograd

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """Accumulate the gradients of this tensor's leaves; ``gradient`` is needed unless it has one element."""
        (_backward or _load_backward())(self, gradient, retain_graph, create_graph, inputs=inputs)

    # ---- shapes

    @property
    def T(self) -> Tensor:
        """The tensor with all dimensions reversed."""
        n = self.dim()
        if n != 2:
            _warn_of_transpose("T", n)
        return self.permute(tuple(range(n - 1, -1, -1)))

    @property
    def mT(self) -> Tensor:
        """The matrices in the last two dimensions transposed."""
        if self.dim() < 2:
            if self.dim():
                raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
            _warn_of_transpose("mT", 0)
            return self
        return self.transpose(-2, -1)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        if self.dim() not in (0, 2):
            raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor.")
        if not self.dim():
            _warn_of_transpose("H", 0)
            return self.conj()
        return self.transpose(0, 1).conj()

    @property
    def mH(self) -> Tensor:
        """The matrices in the last two dimensions, conjugated and transposed."""
        if not self.dim():
            _warn_of_transpose("mH", 0)
            return self.conj()
        return self.mT.conj()

    @property
    def real(self) -> Tensor:
        """The real part: a view of complex tensors, the tensor itself otherwise."""
        return self.view_as_real().select(-1, 0) if self.is_complex() else self

    @real.setter
    def real(self, value) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The imaginary part of a complex tensor, as a view."""
        if not self.is_complex():
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return self.view_as_real().select(-1, 1)

    @imag.setter
    def imag(self, value) -> None:
        self.imag.copy_(value)

    def type(self, dtype=None, non_blocking=False):
        """The type's name, or a copy converted to a dtype, a class such as `LongTensor`, or its name, 'torch.LongTensor'."""
        return _legacy_typed_tensors.type_string(self) if dtype is None else _legacy_typed_tensors.converted(self, dtype, non_blocking)

    def storage(self):
        """The storage as elements of the tensor's dtype (deprecated: use untyped_storage)."""
        _typed_storage.warn_once(2)
        return _typed_storage.TypedStorage._of(self.untyped_storage(), self.dtype)

    def dim_order(self, *, ambiguity_check: bool | list[object] = False) -> tuple[int, ...]:
        """Dimensions from the slowest to the fastest in memory.

        Where a dimension has size 1, or the strides of two are equal, there are several such orders: ambiguity_check refuses that (RuntimeError),
        a list of memory formats unless the tensor is contiguous in exactly one of them. TypeError for what is neither bool nor such a list.
        """
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, _C.core.device.memory_format) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
        strides = self.stride()
        several = 1 in self.shape or any(a == b for a, b in zip(strides, strides[1:]))
        if ambiguity_check and several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
        return tuple(sorted(range(self.dim()), key=lambda d: -self.stride(d)))

    def is_shared(self) -> bool:
        """Whether other processes can be given the memory as it is: always on CUDA, after `share_memory_` and of mapped files on the CPU."""
        return self.is_cuda or self.untyped_storage().is_shared()

    def share_memory_(self) -> Tensor:
        """Move the storage to memory that other processes can be given. Nothing on CUDA, RuntimeError for meta tensors.

        ``multiprocessing`` then passes the tensor without copying, and each process sees what the others write.
        """
        self.untyped_storage().share_memory_()
        return self

    def is_pinned(self, device=None) -> bool:
        """Whether the tensor lies in page-locked host memory, which devices copy without waiting."""
        return _cuda.is_initialized() and _cuda._backend()._is_pinned(self)

    def pin_memory(self, device=None) -> Tensor:
        """A copy in page-locked host memory; the tensor itself when it lies there. RuntimeError without a CUDA device."""
        if not _cuda.is_available():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if not self.is_cpu:
            raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
        if self.is_pinned():
            return self
        return _ops.empty_like(self, pin_memory=True, requires_grad=False).copy_(self.detach())

    def record_stream(self, stream) -> None:
        """The memory is used by work on a stream other than its own: it is not given out again before that work has run."""
        if not self.is_cuda:
            _backend.device_of(self).record_stream(self, stream)
            return

        _cuda._backend()._record_stream(self, stream.cuda_stream)

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero. RuntimeError unless there is one element."""
        return bool(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Whether both have the same shape. RuntimeError for a nested tensor and one that is not."""
        if self.is_nested != other.is_nested:
            names = ["nested" if t.is_nested else "not nested" for t in (self, other)]
            raise RuntimeError(f"Expected both self and other to be nested tensors. Self is {names[0]}. While Other is {names[1]}.")
        return self.shape == other.shape

    def is_set_to(self, tensor: Tensor) -> bool:
        return _attributes.same_object_memory(self, tensor)

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False) -> Tensor:
        """A copy of data in this tensor's dtype and device."""
        if isinstance(data, TensorBase):
            data = data.detach().clone().to(dtype=dtype or self.dtype)
            data.requires_grad = requires_grad
            return data
        return _ops.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    def new(self, *args, **kwargs) -> Tensor:
        """A tensor of the same dtype from sizes or data. device: of the same type as this tensor's."""
        return _legacy_typed_tensors.construct(args, kwargs, self.dtype, self.device.type)

    __dlpack_c_exchange_api__ = _dlpack_core.exchange_api()

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        return _dlpack.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self)

    def __array_namespace__(self, *, api_version=None):
        """The namespace of the array API standard's functions: ``tensorrt_lite.array_api``. ValueError for versions of the standard that it does not conform to."""
        return _array_api._namespace(api_version)

    def to_device(self, device, /, *, stream=None) -> Tensor:
        """The tensor on a device: the array API's name for ``to``. stream: None, the current one; ValueError for another.

        Parameters:
            device (device): where the result is
            stream (None, default None): not supported

        Example:
            >>> import tensorrt_lite as trt
            >>> trt.ones(2).to_device("cpu")
            tensor([1., 1.])
        """
        if stream is not None:
            raise ValueError("to_device(): only stream=None, the current one, is supported")
        return self.to(device)

    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        return _attributes.make_subclass(cls, data, require_grad)

    @staticmethod
    def _make_wrapper_subclass(cls, size, strides=None, storage_offset=0, memory_format=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **kwargs):
        """A tensor of a class with ``__torch_dispatch__`` that has a shape, a dtype and a device, but no memory: the class keeps what it is made of."""
        options = {"dtype": dtype, "device": "meta"}
        if strides is not None:
            like = _ops.empty_strided(size, strides, **options)
        else:
            like = _ops.empty(size, memory_format=memory_format, **options)
        if storage_offset:
            like = _ops.empty(storage_offset + like.untyped_storage().nbytes() // like.element_size(), **options).as_strided(size, like.stride(), storage_offset)
        return _attributes.make_wrapper_subclass(cls, like, _device_of(device), requires_grad)

    @property
    def __cuda_array_interface__(self):
        """Version 2 of the interface: other libraries read and write the memory in place, on the current stream."""
        if not self.is_cuda:
            raise AttributeError(f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use tensor.cuda() to copy tensor to device memory.")
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use var.detach() to get Variable that doesn't require grad.")
        name, size = str(self.dtype).rpartition(".")[2], self.element_size()
        kind = {"bool": "b", "uint": "u", "int": "i", "float": "f", "complex": "c", "bfloat": "V"}.get(name.rstrip("0123456789"))
        if kind is None or name == "complex32":
            raise TypeError(f"__cuda_array_interface__ has no type for {name}: use DLPack")
        strides = None if self.is_contiguous() else tuple(s * size for s in self.stride())
        data = (self.data_ptr() if self.numel() else 0, False)
        return {"typestr": f"{'|' if size == 1 else '<'}{kind}{size}", "shape": tuple(self.shape), "strides": strides, "data": data, "version": 2}

    @property
    def names(self):
        """The dimensions' names: None for each, as they have none here."""
        return (None,) * self.dim()

    @property
    def is_nested(self) -> bool:
        """Whether it is one of `nested`: False for dense tensors."""
        return False

    def has_names(self) -> bool:
        return False

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def resolve_conj(self) -> Tensor:
        return self

    def resolve_neg(self) -> Tensor:
        return self


def _convert(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not isinstance(result, Size):
        converted = [_convert(r, cls) for r in result]
        return result._make(converted) if hasattr(result, "_make") else type(result)(converted)
    return result


def _packet_of(operator):
    return _declared_aten.packet_of(operator)


def _schema_of(operator):
    return _declared_aten.schema_of(operator)


def _tags_of(operator):
    return _declared_aten.tags_of(operator)


def _tags_of_row(name):
    return _declarations.tags(name)


def _selector_of(name):
    return _declarations.of(name).selects


def _forms_of(name, which, schema):
    return _overloads.names_of_row(name, which, schema) if isinstance(which, int) else _overloads.ways_of(name, which)


def _run_without_dispatch(cls, func, types, args=(), kwargs=None):
    """The __torch_dispatch__ that stands for none: runs the operator below the key Python."""
    return _python_key.run_below(func, args, kwargs or {})


def _run_without_overrides(cls, func, types, args=(), kwargs=None):
    """The __torch_function__ that stands for no override: results are plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class _ParameterMeta(type(TensorBase)):
    """isinstance(x, Parameter) also holds for tensors that carry the mark `_is_param`."""

    def __instancecheck__(cls, instance) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module registers as its parameter. data: any tensor; requires_grad: bool."""

    __slots__ = ()

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = _ops.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return _attributes.make_subclass(cls, data.detach(), requires_grad)
        t = data.detach()
        t.requires_grad = requires_grad
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents=None) -> str:
        return _tensor_str.parameter_repr(self)

    def __reduce_ex__(self, proto):
        if (reduced := _reduced_for_process(self)) is not None:
            return reduced
        self._warn_of_hooks()
        state = getattr(self, "__dict__", None)
        return _rebuild_parameter, (self.data, self.requires_grad, *((dict(state),) if state else ()))

    __torch_function__ = classmethod(_run_without_overrides)


def _rebuild_parameter(data, requires_grad, state=None):
    parameter = Parameter(data, requires_grad)
    if state:
        parameter.__dict__.update(state)
    return parameter


def _reduced_for_process(tensor):
    """What is sent where it is multiprocessing that pickles, in a program that has not imported this package's `multiprocessing`; else None."""
    if "multiprocessing.reduction" not in sys.modules or "tensorrt_lite.multiprocessing" in sys.modules:
        return None
    caller = sys._getframe(2)
    if caller.f_globals.get("__name__") != "multiprocessing.reduction" or type(tensor) not in (Tensor, Parameter):
        return None

    return _reductions.reduce_tensor_unregistered(tensor)


_TYPE_NAMES: dict = {}
_KEEP_TYPE: set = set()


# Methods of the class body that run without asking, as PyTorch's; `__iter__` asks by what it calls.
_UNASKED = {
    "__init__", "__new__", "__hash__", "__iter__", "__torch_function__", "__init_subclass__", "__module__", "__doc__", "__dict__", "__slots__",
    "__array_priority__", "__dlpack_c_exchange_api__", "as_subclass", "_make_subclass", "_over_copied_storage", "_warn_of_hooks",
}  # fmt: skip
# What overrides get for a symbol where it is not the symbol's own method.
_SYMBOL_METHODS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_",
    "__truediv__": "div", "__itruediv__": "div_", "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__imod__": "remainder_",
    "__matmul__": "matmul", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
}  # fmt: skip
# Symbols that are the method itself under a second name, as PyTorch's: tables that overrides look up find them under both.
_SAME_METHODS = {"__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__rtruediv__": "__rdiv__"}


def _attach() -> None:
    """Give Tensor its operators, attributes and symbols, each asking overrides first."""
    for name, value in list(Tensor.__dict__.items()):
        if name in _UNASKED:
            continue
        if isinstance(value, property):
            setattr(Tensor, name, PublicProperty(name, Tensor, value.fget, value.fset, value.fdel))
        elif callable(value) and not isinstance(value, (staticmethod, classmethod, type)):
            setattr(Tensor, name, _public.method(value, name, Tensor, by_name=name.startswith("_")))
    for name, accessors in (_older_methods.PROPERTIES | _attributes.PROPERTIES).items():
        setattr(Tensor, name, PublicProperty(name, Tensor, *accessors))
    for name, method in (_older_methods.METHODS | _attributes.METHODS | _ops.METHODS).items():
        setattr(Tensor, name, method if name in _UNASKED else _public.method(method, name, Tensor))
    for symbol, function in _ops.SYMBOLS.items():
        setattr(Tensor, symbol, _public.method(function, symbol, Tensor))
    for symbol, name in _SYMBOL_METHODS.items():
        Tensor.__dict__[symbol].handed = Tensor.__dict__[name]
    for symbol, name in _SAME_METHODS.items():
        setattr(Tensor, symbol, Tensor.__dict__[name])
    _KEEP_TYPE.update((Tensor._base.__get__, Tensor.grad.__get__))
    _C.DisableTorchFunction, _C.DisableTorchFunctionSubclass = DisableTorchFunction, DisableTorchFunctionSubclass  # their place in PyTorch
    _args._set_disabled_function(_run_without_overrides)
    _overrides.install(Tensor, Parameter, Parameter.__dict__["__torch_function__"], _public.signature_of, _public.documentation_of, _public.range_name_of)
    _C._disabled_torch_function_impl = _run_without_overrides
    _C._disabled_torch_dispatch_impl = _run_without_dispatch
    _python_key._set_disabled_dispatch(_run_without_dispatch)
    _python_key.set_packet_functions(_packet_of, _schema_of, _forms_of, _tags_of)
    _args._set_row_tags(_tags_of_row)
    _storage_types._set_selectors(_selector_of)
    Tensor.__torch_dispatch__ = classmethod(_run_without_dispatch)
    _register_types(Tensor, Parameter, Size)
    _symbols.install(Tensor, Parameter)
    _symbols.keep_functions()


_attach()
