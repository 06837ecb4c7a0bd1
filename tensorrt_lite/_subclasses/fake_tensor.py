"""Fake tensors: what a program would compute, without memory or arithmetic. PyTorch's `torch._subclasses.fake_tensor`.

    with FakeTensorMode():
        x = trt.empty(1 << 20, 1 << 20, device="cuda")     # on a machine without a GPU
        y = x @ x
    y.shape, y.dtype, y.device

A fake tensor holds a meta tensor and the device that it pretends to be on. Operators run their kernels for meta tensors, so shapes, dtypes,
strides, aliases and errors are the real ones; what depends on elements (`item`, `nonzero`) raises. Numbers that the program wrote itself
(`tensor(2.0)`, an optimizer's count of steps) are kept as constants, and can be read.
"""

from __future__ import annotations

import contextlib
import weakref
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _C
from tensorrt_lite import _root as trt
from tensorrt_lite._C import FACTORIES
from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._functions.package_facts import Tag
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

_nn = LazyModule("tensorrt_lite.nn")

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "UnsupportedOperatorException",
    "is_fake", "maybe_get_fake_mode", "unset_fake_temporarily",
]  # fmt: skip

# Factories that may be given tensors without dimensions in place of numbers; no shape depends on these.
_FILLED = {"linspace", "logspace", "full"}
_CPU = trt.device("cpu")
# Operators whose tensors may be on different devices; the result is where the first one is.
_ACROSS = {"copy", "copy_", "index", "index_put", "index_put_"}


class UnsupportedFakeTensorException(RuntimeError):
    """What fake tensors cannot stand for; `reason` says why."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class DynamicOutputShapeException(RuntimeError):
    """An operator whose result's shape depends on elements; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the result's shape depends on elements, which fake tensors do not have")
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A number that depends on elements; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the result depends on elements, which fake tensors do not have")
        self.func = func


class UnsupportedOperatorException(RuntimeError):
    """An operator without a kernel for meta tensors; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: has no kernel for meta tensors")
        self.func = func


class FakeTensor(trt.Tensor):
    """A tensor with shape, strides, dtype and device, but no elements.

    constant: the real tensor, of a number that the program wrote itself; None of others.
    """

    fake_mode: FakeTensorMode
    meta: trt.Tensor
    constant: trt.Tensor | None
    _holds_no_elements = True  # what kernels and compositions ask that would read some
    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[attr-defined]

    @staticmethod
    def __new__(cls, fake_mode: FakeTensorMode, elem: trt.Tensor, device: Any, constant: trt.Tensor | None = None, requires_grad: bool = False) -> FakeTensor:
        made = _attributes.make_wrapper_subclass(cls, elem, device if isinstance(device, trt.device) else trt.device(device), requires_grad)
        made.meta, made.fake_mode, made.constant = elem, fake_mode, constant
        if constant is not None:
            fake_mode._note_constant(made)
        return made  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @staticmethod
    def from_tensor(tensor: trt.Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake tensor of a real one."""
        return fake_mode.from_tensor(tensor)

    @property
    def fake_device(self) -> Any:
        """The device that the tensor pretends to be on."""
        return self.device

    def untyped_storage(self) -> Any:
        """The storage without memory that the tensor shares with its views."""
        return self.meta.untyped_storage()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        mode = next(t.fake_mode for t in _tensors((args, kwargs)) if isinstance(t, FakeTensor))
        return mode.dispatch(func, args, kwargs or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> FakeTensor:
        if id(self) not in memo:
            copied = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
            rest = {name: value for name, value in self.__dict__.items() if name not in ("meta", "fake_mode", "constant")}
            copied.__dict__.update(deepcopy(rest, memo))
        return memo[id(self)]  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FakeTensor(..., {'' if self.device == _CPU else f'device={str(self.device)!r}, '}size={tuple(self.shape)}, dtype={self.dtype})"

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")


def _tensors(x: Any) -> Any:
    if isinstance(x, trt.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from _tensors(y)
    elif isinstance(x, dict):
        for y in x.values():
            yield from _tensors(y)


def _mapped(x: Any, function: Any) -> Any:
    if isinstance(x, trt.Tensor):
        return function(x)
    if isinstance(x, (list, tuple)) and not hasattr(x, "numel"):
        parts = [_mapped(y, function) for y in x]
        return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
    return {k: _mapped(y, function) for k, y in x.items()} if type(x) is dict else x


class FakeTensorMode(TorchDispatchMode):
    """Inside, all tensors that are made are fake, and operators on fake tensors compute shapes alone.

    allow_non_fake_inputs: real tensors among the arguments become fake ones instead of raising.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: symbolic shapes are not implemented (docs/gaps.md)")
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = None
        self.static_shapes = True
        self._converted: dict[int, tuple[Any, FakeTensor]] = {}
        self._storages: dict[int, tuple[Any, Any]] = {}  # of real tensors: the storage, and the one without memory
        self._constants: dict[int, list[weakref.ref[FakeTensor]]] = {}  # fake tensors with a constant, by the storage of their meta tensors

    def is_our_fake(self, t: Any) -> bool:
        """Whether t is a fake tensor of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    # ---- real tensors

    def from_tensor(self, tensor: trt.Tensor, *, static_shapes: bool | None = None, source: Any = None, symbolic_context: Any = None, trace: bool = True) -> FakeTensor:
        """The fake tensor of a real one; the same for the same. Tensors that share a storage share one afterwards.

        Raises UnsupportedFakeTensorException for tensors that have no strides.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return tensor
        found = self._converted.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        if tensor.layout is not trt.strided:
            raise UnsupportedFakeTensorException(f"fake tensors do not stand for tensors of layout {tensor.layout}")
        with _disable_current_modes():  # the mode itself, inside of which this may be called, would make the meta tensor a fake one
            fake = FakeTensor(self, self._meta_like(tensor), tensor.device, None, tensor.requires_grad)
        if isinstance(tensor, _nn.Parameter):
            fake._is_param = True
        self._converted[id(tensor)] = (weakref.ref(tensor), fake)
        if tensor.is_leaf and tensor.grad is not None:
            fake.grad = self.from_tensor(tensor.grad)
        return fake

    def _meta_like(self, t: trt.Tensor) -> trt.Tensor:
        """A meta tensor of a tensor's geometry, over a storage that stands for the tensor's."""
        t = t.detach()
        source = t.untyped_storage() if type(t) is trt.Tensor else None
        if source is None or source.nbytes() == 0:
            meta = trt.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")
        else:
            found = self._storages.get(id(source))
            if found is None or found[0]() is not source:
                found = self._storages[id(source)] = weakref.ref(source), trt.empty(source.nbytes(), dtype=trt.uint8, device="meta").untyped_storage()
            meta = trt.empty(0, dtype=t.dtype, device="meta").set_(found[1], t.storage_offset(), tuple(t.shape), t.stride())
        meta = meta._conj() if t.is_conj() else meta
        return meta._neg_view() if t.is_neg() else meta

    # ---- operators

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator on the meta tensors of its arguments."""
        name = getattr(func, "_name", str(func))
        every = list(_tensors((args, kwargs)))
        given = [t for t in every if isinstance(t, FakeTensor)]
        if name in FACTORIES and not given:
            return self._make(func, args, kwargs)
        for t in every:
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError("Mixing fake modes NYI")
            elif not self.allow_non_fake_inputs and not (t.dim() == 0 and t.device == _CPU):
                raise AssertionError(
                    f"Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in {func}(*{args}, **{kwargs})"
                )
        if name in _FILLED:
            # ends of linspace, what full fills with: numbers that change no shape
            args, kwargs = (_mapped(x, lambda t: 0 if t.dim() == 0 and isinstance(t, FakeTensor) else t) for x in (args, kwargs))
            return self._make(func, args, kwargs)
        constants = bool(given) and all(t.constant is not None for t in given) and len(given) == len(every)
        tags = getattr(func, "tags", ())
        dynamic = Tag.dynamic_output_shape in tags and _depends_on_elements(func, args)
        if constants and (dynamic or Tag.data_dependent_output in tags):
            return self._of_constants(func, args, kwargs)
        if Tag.data_dependent_output in tags:
            raise DataDependentOutputException(func)
        if constants and not _is_random(func) and kwargs.get("device") is None:
            return self._on_constants(func, args, kwargs)
        if dynamic:
            raise DynamicOutputShapeException(func)
        return self._on_meta(func, name, args, kwargs, given)

    def _on_meta(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], given: list[FakeTensor]) -> Any:
        device = self._device_of(func, name, given) if kwargs.get("device") is None else trt.device(kwargs["device"])
        if name == "_to_copy" or kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": "meta"}
        owners: dict[int, FakeTensor] = {}

        def meta_of(t: trt.Tensor) -> trt.Tensor:
            fake = t if isinstance(t, FakeTensor) else self.from_tensor(t)
            if fake.shape != fake.meta.shape or fake.stride() != fake.meta.stride():  # squeeze_ and the like change the tensor alone
                fake.meta = fake.meta.as_strided(tuple(fake.shape), fake.stride(), fake.storage_offset())
            owners[id(fake.meta)] = fake
            return fake.meta

        def fake_of(t: trt.Tensor) -> FakeTensor:
            return owners[id(t)] if id(t) in owners else FakeTensor(self, t, device)

        called_args = _mapped(args, meta_of)
        called_kwargs = _mapped(kwargs, meta_of)
        try:
            result = func(*called_args, **called_kwargs)
        except NotImplementedError as error:
            if "meta tensors do not have" in str(error):
                raise DynamicOutputShapeException(func) from error
            raise
        for t in owners.values():
            if t.meta.shape != t.shape or t.meta.stride() != t.stride() or t.meta.storage_offset() != t.storage_offset():
                _attributes.take_geometry(t, t.meta)
        mode = getattr(func, "mode", 0)
        for t in self._written(func, mode, args, kwargs) if self._constants else ():
            self._forget_constants(t)
        if mode == 1:
            return kwargs["out"] if "out" in kwargs else tuple(kwargs[name] for name in func.out_names)
        return _mapped(result, fake_of)

    def _on_constants(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator on numbers that are known, and beside that on their meta tensors."""
        name = getattr(func, "_name", str(func))
        mode = getattr(func, "mode", 0)
        result = self._on_meta_alone(func, name, args, kwargs)
        real = func(*_mapped(args, lambda t: t.constant), **_mapped(kwargs, lambda t: t.constant))
        if mode:
            return result
        for fake, value in zip(_tensors(result), _tensors(real)):
            if fake.constant is None and value.numel() <= 1:
                fake.constant = value
                self._note_constant(fake)
        return result

    def _of_constants(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operator on numbers that are known, of which not even the shape is known without."""
        real = func(*_mapped(args, lambda t: t.constant), **_mapped(kwargs, lambda t: t.constant))
        return _mapped(real, lambda t: FakeTensor(self, self._meta_like(t), t.device, t if t.numel() <= 1 else None))

    def _on_meta_alone(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kept, self._constants = self._constants, {}  # what is written stays known
        try:
            return self._on_meta(func, name, args, kwargs, [t for t in _tensors((args, kwargs)) if isinstance(t, FakeTensor)])
        finally:
            self._constants = kept

    def _make(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device, name = kwargs.get("device"), func._name
        if name in ("tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "frombuffer"):
            real = func(*args, **{**kwargs, "device": None} if "device" in kwargs else kwargs)
            return FakeTensor(self, self._meta_like(real), _device(device), real if real.numel() <= 1 else None)
        kwargs = {k: v for k, v in kwargs.items() if k not in ("pin_memory", "generator")}
        return FakeTensor(self, func(*args, **{**kwargs, "device": "meta"}), _device(device))

    @staticmethod
    def _device_of(func: Any, name: str, given: list[FakeTensor]) -> Any:
        """The device of the result: that of the arguments; a scalar on the CPU goes with any."""
        found = None
        for t in given:
            if found is None or found == _CPU and t.device != _CPU and all(x.dim() == 0 for x in given if x.device == _CPU):
                found = t.device
            elif t.device != found and not (t.device == _CPU and t.dim() == 0) and name not in _ACROSS:
                raise RuntimeError(f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {found}, {t.device}")
        return _CPU if found is None else found

    # ---- constants

    def _note_constant(self, t: FakeTensor) -> None:
        self._constants.setdefault(id(t.meta.untyped_storage()), []).append(weakref.ref(t))

    def _forget_constants(self, t: trt.Tensor) -> None:
        """The tensor's memory has been written with what is not known."""
        if isinstance(t, FakeTensor):
            for reference in self._constants.pop(id(t.meta.untyped_storage()), ()):
                other = reference()
                if other is not None:
                    other.constant = None

    @staticmethod
    def _written(func: Any, mode: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[trt.Tensor]:
        if mode == 1:
            yield from _tensors(kwargs["out"] if "out" in kwargs else [kwargs[name] for name in func.out_names])
        elif mode == 2 and args:
            yield from _tensors(args[0])
        elif str(getattr(func, "_name", "")).endswith("_"):  # operators over lists of tensors
            yield from _tensors((args, kwargs))


def _is_random(func: Any) -> bool:
    return Tag.nondeterministic_seeded in getattr(func, "tags", ())


def _depends_on_elements(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether the result's shape depends on elements: of an operator that takes indices, where one is a mask."""
    indices = [x for x in args if isinstance(x, (list, tuple)) and any(isinstance(y, trt.Tensor) for y in x)]
    return not indices or any(y.dtype in (trt.bool, trt.uint8) for x in indices for y in x if isinstance(y, trt.Tensor))


def _device(device: Any) -> Any:
    if device is None:
        default = getattr(trt, "get_default_device", None)
        return _CPU if default is None else default()
    return device if isinstance(device, trt.device) else trt.device(device)


def is_fake(x: Any) -> bool:
    """Whether a tensor is fake, or made of fake ones."""
    return maybe_get_fake_mode(x) is not None


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor, or of the tensors that a wrapper is made of; None of other values."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if isinstance(t, trt.Tensor) and type(t) is not trt.Tensor and hasattr(t, "__tensor_flatten__"):
        names, _ = t.__tensor_flatten__()
        return next((mode for mode in (maybe_get_fake_mode(getattr(t, name)) for name in names) if mode is not None), None)
    return None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Without the innermost fake mode, which is what `as` gives; operators run on real tensors."""
    with _disable_current_modes() as modes:
        yield next((mode for mode in reversed(modes) if isinstance(mode, FakeTensorMode)), None)


def active_fake_mode() -> FakeTensorMode | None:
    """The fake mode that is active in this thread, or None."""
    return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)), None)
