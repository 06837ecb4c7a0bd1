"""Single steps as functions of custom devices: what there are, and their structs as `ctypes` types."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_declared_declarations = _LazyModule("tensorrt_lite._declared.declarations")

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["constants", "is_pointwise", "register", "steps", "struct"]

_MEMBERS = {"double": ctypes.c_double, "float": ctypes.c_float, "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint8_t": ctypes.c_uint8}


def _families() -> list[Any]:
    """The compiled modules of the operators' families."""
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("tensorrt_lite._C.ops.") and "STEP_STRUCTS" in vars(module)]


def is_pointwise(operator: str) -> bool:
    """Whether an operator, or a fused derivative, computes every element from those at its place."""
    return operator in _pointwise()


@functools.cache
def _pointwise() -> frozenset[str]:
    rows = {name for name in _declared_declarations.names() if _declared_declarations.of(name).kind == "pointwise"}
    fused = {name for name in _dispatch.operator_kernels() if (found := re.match(r"(\w+)_backward_\w+$", name)) and found[1] in rows}
    return frozenset(rows | fused)


@functools.cache
def constants() -> dict[str, int]:
    """What the operations of structs are called: {"REDUCE_SUM": 1, ...}."""
    return {name: value for module in _families() for name, value in module.STEP_CONSTANTS.items()}


def steps() -> dict[str, str]:
    """{step: its arguments as C declares them}. A step that takes a `TensorBase` gets a tensor or None, one that takes a struct its `ctypes` form."""
    return {name: _dispatch._step_arguments(name) for name in sorted(_dispatch.step_devices())}


@functools.cache
def struct(name: str) -> type[ctypes.Structure] | None:
    """The `ctypes` form of a struct that a step takes; None of one whose members only C knows."""
    for module in _families():
        if name in module.STEP_STRUCTS:
            fields = [(field, _member(kind) * count if count else _member(kind)) for field, kind, count in module.STEP_STRUCTS[name]]
            return type(name, (ctypes.Structure,), {"_fields_": fields})
    return None


def _member(kind: str) -> Any:
    return ctypes.c_void_p if kind.endswith("*") else _MEMBERS.get(kind) or struct(kind)


def _converter(declared: str) -> Callable[[Any], Any] | None:
    """How a pointer that comes as its address is handed on."""
    kind = declared.rpartition(" ")[0].replace("const ", "").strip()
    if not kind.endswith("*") or kind == "Scalar*":
        return None
    kind = kind.removesuffix("*").strip()
    if kind in _MEMBERS:
        pointer = ctypes.POINTER(_MEMBERS[kind])
        return lambda address: ctypes.cast(address, pointer) if address else None
    form = struct(kind)
    return form.from_address if form is not None else None


def register(code: int, name: str, function: Any) -> None:
    """Put a step of a device type in its place; see `Device.register_step`."""
    arguments = _dispatch._step_arguments(name)
    if function is None or isinstance(function, int):
        _dispatch._set_step(name, code, function)
        return
    converters = [_converter(declared.strip()) for declared in arguments.split(",")]
    if not any(converters):
        _dispatch._set_step(name, code, function)
        return

    @functools.wraps(function)
    def converted(*given: Any) -> Any:
        return function(*[x if f is None else f(x) for f, x in zip(converters, given, strict=True)])

    _dispatch._set_step(name, code, converted)
