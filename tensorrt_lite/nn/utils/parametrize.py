"""Parameters that are functions of others: what a module reads as `weight` is computed from `parametrizations.weight`."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

_cache_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within it a parametrized tensor is computed once, when it is first read. Contexts nest; the last one to end forgets the tensors.

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> with trt.nn.utils.parametrize.cached():
        ...     print(linear.weight is linear.weight)
        True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _write_to(tensor: Any, value: Any) -> None:
    """`tensor` takes the memory of `value`: who holds it, an optimizer say, goes on."""
    tensor.data = value.detach()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, with the tensors that they start from: `original`, or `original0`, `original1`, ... where
    the first one's right_inverse returns several.

    modules: at least one. original: the tensor, which becomes what right_inverse makes of it. unsafe: do not check that the result has the
    tensor's shape and dtype (ValueError otherwise).
    """

    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (trt.Tensor, Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, trt.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            if original.device != new.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: {new.device}"
                )
            _write_to(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, trt.Tensor):
                    raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element {i} of the sequence with type {type(part).__name__}.")
                part = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part.detach().requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            result = self()
            if not isinstance(result, trt.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            if result.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
                    f"unparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}"
                )
            if result.shape != shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
                    f"unparametrized shape: {shape}\nparametrized shape: {result.shape}"
                )

    def right_inverse(self, value: Any) -> None:
        """Give the originals the values from which `value` is computed. RuntimeError where a parametrization has no right_inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, trt.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}")
                _write_to(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value)}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(value)}.")
            for i, part in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(part, trt.Tensor):
                    raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(part).__name__}")
                if part.dtype != original.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype {original.dtype}")
                _write_to(original, part)

    def forward(self) -> Any:
        steps = iter(self)
        first = next(steps)
        value = first(self.original) if self.is_tensor else first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for step in steps:
            value = step(value)
        return value


def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). Save the state dict of the module, and load it into one that was "
        "parametrized the same way."
    )


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    made = memo[id(self)] = self.__new__(type(self))
    made.__setstate__(copy.deepcopy(Module.__getstate__(self), memo))
    return made


def _inject_new_class(module: Module) -> None:
    """A class of its own for the module, which properties can be put on."""
    cls = type(module)
    made = type(f"Parametrized{cls.__name__}", (cls,), {"__getstate__": _refuse_pickle, "__deepcopy__": _deepcopy, "__module__": cls.__module__})
    module.__class__ = made


def _inject_property(module: Module, tensor_name: str) -> None:
    def get(self: Any) -> Any:
        if not _cache_depth:
            return self.parametrizations[tensor_name]()
        key = id(self), tensor_name
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, put))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Make a parameter or buffer of the module a function of a new parameter, `parametrizations.<tensor_name>.original`.

    parametrization: a module that is called with the original. Its right_inverse(value), where there is one, turns the present value, and later ones that are
    assigned, into the original; it may return several tensors. Several parametrizations of one tensor are applied one after another. ValueError when the
    module has no such tensor, or (unless `unsafe`) when shape or dtype would change. Returns the module.

    Parameters:
        module (Module): the layer
        tensor_name (str): the name of its parameter
        parametrization (Module): makes the value from the stored one
        unsafe (bool, default False): whether dtype and shape are not checked

    Example:
        >>> import tensorrt_lite as trt
        >>> class Symmetric(trt.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).t()
        >>> linear = trt.nn.Linear(3, 3)
        >>> _ = trt.nn.utils.parametrize.register_parametrization(linear, "weight", Symmetric())
        >>> trt.equal(linear.weight, linear.weight.t())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_kept(before, after, "Registering a parametrization")
            if hasattr(parametrization, "right_inverse"):
                inverse = parametrization.right_inverse(after)
                if not isinstance(inverse, trt.Tensor):
                    raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
                _check_kept(before, inverse, "The tensor returned by parametrization.right_inverse")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def _check_kept(before: Any, after: Any, what: str) -> None:
    if not isinstance(after, trt.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    if before.dtype != after.dtype:
        raise ValueError(f"{what} may not change the dtype of the tensor, unless the `unsafe` flag is enabled.\nbefore: {before.dtype}\nafter: {after.dtype}")
    if before.shape != after.shape:
        raise ValueError(f"{what} may not change the shape of the tensor, unless the `unsafe` flag is enabled.\nbefore: {before.shape}\nafter: {after.shape}")


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has a parametrized tensor, or one of this name.

    Parameters:
        module (Module): the layer
        tensor_name (str or None, default None): the name of a parameter; None asks for any

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> trt.nn.utils.parametrize.is_parametrized(linear, "weight")
        True
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary parameter or buffer again, with its present value, or (not leave_parametrized) with that of the original.

    ValueError when it is not parametrized, or when there are several originals and leave_parametrized is false. Returns the module.

    Parameters:
        module (Module): the layer
        tensor_name (str): the name of its parameter
        leave_parametrized (bool, default True): whether the parameter keeps its present value, not the stored one

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> linear = trt.nn.utils.parametrize.remove_parametrizations(linear, "weight")
        >>> trt.nn.utils.parametrize.is_parametrized(linear)
        False
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _write_to(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before tensors of it were parametrized.

    Parameters:
        module (Module): the layer

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> trt.nn.utils.parametrize.type_before_parametrizations(linear) is trt.nn.Linear
        True
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Register the parametrizations of `from_module` (of one tensor, or of all) on `to_module`, with copies of the originals. Returns `to_module`.

    Parameters:
        from_module (Module): the layer that has them
        to_module (Module): the layer that gets them
        tensor_name (str or None, default None): the name of a parameter; None is all

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> other = trt.nn.utils.parametrize.transfer_parametrizations_and_params(linear, trt.nn.Linear(3, 2))
        >>> trt.equal(other.weight, linear.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        given = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for step in given:
            register_parametrization(to_module, name, copy.deepcopy(step), unsafe=True)
        taken = to_module.parametrizations[name]
        for key, tensor in (*given._parameters.items(), *given._buffers.items()):
            if tensor is not None:
                _write_to(getattr(taken, key), tensor.detach().clone())
    return to_module
