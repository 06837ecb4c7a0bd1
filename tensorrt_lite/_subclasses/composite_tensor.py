"""The base of tensor classes that are made of dense tensors and whose operators are Python functions: nested and masked tensors.

An instance is a wrapper without memory. `__torch_function__` looks the operator's name up in the class's table, and the function found there works on the dense
parts, so that each operator of them records its own gradient; autograd's attributes (`requires_grad`, `grad`, `backward()`, hooks) are those of the
one part that is differentiated. What the table lacks raises NotImplementedError and touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.overrides import PublicProperty

Handler = Callable[..., Any]  # (the public function, its arguments as a tuple, as a dict) -> result

# What an operator's symbol means where its method has another name.
_SYMBOLS = {"__eq__": "eq", "__rsub__": "sub", "__rtruediv__": "div", "__rdiv__": "div", "__floordiv__": "floor_divide", "__rfloordiv__": "floor_divide", "__pow__": "pow",
            "__rpow__": "pow", "__rmod__": "remainder", "__rmatmul__": "matmul", "__invert__": "bitwise_not", "__and__": "bitwise_and", "__or__": "bitwise_or",
            "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift", "__rlshift__": "bitwise_left_shift",
            "__rrshift__": "bitwise_right_shift", "__ipow__": "pow_"}  # fmt: skip
_SYMBOLS_IN_PLACE = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__"}


def writes_in_place(name: str) -> bool:
    """Whether an operator of this name writes to its first argument: `add_`, `__iadd__`."""
    return name.endswith("_") and not name.endswith("__") or name in _SYMBOLS_IN_PLACE


class CompositeTensor(trt.Tensor):
    """A tensor made of dense ones. Subclasses have a table of functions by the operators' names, and `_part`, `_with_part`, `_noun`."""

    _table: dict[str, Handler] = {}
    _noun = "composite tensors"
    _made_of_parts = True

    @property
    def _part(self) -> Any:
        """The dense tensor that autograd sees."""
        raise NotImplementedError

    def _with_part(self, part: Any) -> Any:
        """The same structure around another differentiable part."""
        raise NotImplementedError

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = name_of(func)
        handler = cls._table.get(_SYMBOLS.get(name, name)) or _AUTOGRAD.get(name)
        if handler is None:
            if name in _OBJECT_METHODS:
                return func.impl(*args, **(kwargs or {}))
            raise NotImplementedError(f"{name}() is not implemented for {cls._noun} (docs/gaps.md)")
        return handler(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{func} is not implemented for {cls._noun} where __torch_function__ is off (docs/gaps.md)")

    @property
    def requires_grad(self) -> bool:
        return bool(self._part.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._part.requires_grad = value

    @property
    def grad(self) -> Any:
        grad = self._part.grad
        return None if grad is None else self._with_part(grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._part.grad = None if value is None else dense_part(value)

    @grad.deleter
    def grad(self) -> None:
        self._part.grad = None

    @property
    def grad_fn(self) -> Any:
        return self._part.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._part.is_leaf)

    @property
    def retains_grad(self) -> bool:
        return bool(self._part.retains_grad)

    @property
    def _version(self) -> int:
        return int(self._part._version)

    @property
    def data(self) -> Any:
        return self._with_part(self._part.detach())

    @property
    def dtype(self) -> Any:
        return self._part.dtype

    @property
    def device(self) -> Any:
        return self._part.device

    @property
    def is_cuda(self) -> bool:
        return bool(self._part.is_cuda)

    @property
    def is_cpu(self) -> bool:
        return bool(self._part.is_cpu)

    @property
    def itemsize(self) -> int:
        return int(self._part.itemsize)


def name_of(func: Any) -> str:
    """The name by which a table finds a public function; that of a property for its accessor."""
    name = func.__name__
    if name in ("__get__", "__set__", "__delete__") and isinstance(owner := getattr(func, "__self__", None), PublicProperty):
        return f"{owner.__name__}.{name}"
    return str(name)


def registering(table: dict[str, Handler]) -> Callable[..., Any]:
    """A decorator `@operator(*names)` that enters a function (func, *arguments) in a class's table as what operators of these names do; `func` is the public
    function that was called."""

    def operator(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            def handler(func: Any, args: Any, kwargs: Any) -> Any:
                return function(func, *args, **kwargs)

            for name in names:
                table[name] = handler
            return function

        return register

    return operator


def dense_part(value: Any) -> Any:
    """The differentiable part of a composite tensor, other values as they are."""
    return value._part if isinstance(value, CompositeTensor) else value


# ---- autograd ------------------------------------------------------------------------------------------------------


def _requires_grad_(func: Any, args: Any, kwargs: Any) -> Any:
    args[0]._part.requires_grad_(*args[1:], **kwargs)
    return args[0]


def _backward(func: Any, args: Any, kwargs: Any) -> Any:
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    given = dict(zip(names, args[1:], strict=False)) | kwargs
    gradient, inputs = given.pop("gradient", None), given.pop("inputs", None)
    if inputs is not None:
        inputs = [dense_part(t) for t in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    return dense_part(args[0]).backward(dense_part(gradient), inputs=inputs, **given)


def _register_hook(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, hook = args[0], args[1] if len(args) > 1 else kwargs["hook"]

    def on_part(grad: Any) -> Any:
        return dense_part(hook(tensor._with_part(grad)))

    return tensor._part.register_hook(on_part)


def _retain_grad(func: Any, args: Any, kwargs: Any) -> Any:
    args[0]._part.retain_grad()


def _detach(func: Any, args: Any, kwargs: Any) -> Any:
    return args[0]._with_part(args[0]._part.detach())


def _detach_(func: Any, args: Any, kwargs: Any) -> Any:
    args[0]._part.detach_()
    return args[0]


def _of_part(func: Any, args: Any, kwargs: Any) -> Any:
    """Questions about type and place that the part answers."""
    return func(args[0]._part, *args[1:], **kwargs)


_AUTOGRAD: dict[str, Handler] = {
    "requires_grad_": _requires_grad_, "backward": _backward, "register_hook": _register_hook, "retain_grad": _retain_grad, "detach": _detach, "detach_": _detach_,
    **dict.fromkeys(("element_size", "is_floating_point", "is_complex", "is_signed", "get_device", "is_inference", "is_pinned"), _of_part),
}  # fmt: skip
_OBJECT_METHODS = {"__format__", "__str__", "__hash__", "__dir__", "__iter__"}
