"""Puts the objects that ask overrides (`_C.core.overrides`) in front of functions: by them operators become public.

What overrides get depends on the manner of PyTorch's function of the same name, which the rows of cysrc/ops say: the build writes what calls
need of them into `_C`.
"""

from __future__ import annotations

from tensorrt_lite import _C
from tensorrt_lite._C import FACTORIES
from tensorrt_lite._C.core.overrides import AS_CALLED, BY_NAME, PublicFunction, method_descriptor
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_declarations = _LazyModule("tensorrt_lite._declared.declarations")
_signatures = _LazyModule("tensorrt_lite._declared.signatures")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def function(impl: Callable[..., Any], name: str, module: str, by_name: bool = False) -> PublicFunction:
    """A public function of a module; one that is public already stays as it is. by_name: its manner where no row says it."""
    if isinstance(impl, PublicFunction):
        return impl
    space = module.removeprefix("tensorrt_lite").removeprefix(".")
    return _public(impl, name, module, f"{space}.{name}" if space else name, by_name, not space and name in FACTORIES)


def functions(table: dict[str, Callable[..., Any]], module: str) -> dict[str, PublicFunction]:
    """The public functions of a module over those of a table."""
    return {name: function(impl, name, module) for name, impl in table.items()}


def method(impl: Callable[..., Any], name: str, owner: type, by_name: bool = False) -> PublicFunction:
    """A public method of a class."""
    return _public(impl, name, owner, f"Tensor.{name}", by_name, name in FACTORIES)


def _public(impl: Callable[..., Any], name: str, owner: str | type, path: str, by_name: bool, factory: bool) -> PublicFunction:
    manner = BY_NAME if by_name or path in _C.BY_NAME else AS_CALLED
    spellings = _C.SPELLINGS.get(path, _POWER if name == "__rpow__" else None)
    kind = method_descriptor if isinstance(owner, type) else PublicFunction
    return kind(impl, name, owner, manner=manner, opaque=path in _C.OPAQUE, spellings=spellings, factory=factory)


_POWER = {"other": "base"}  # of __rpow__, which is no row's


def signature_of(function: PublicFunction) -> Any:
    """What `inspect.signature` answers; the module that knows is imported by the first question."""
    return _signatures.signature_of(function)


def documentation_of(function: PublicFunction) -> str | None:
    """What `__doc__` answers: the row's text, or that of the body."""
    return _declarations.documentation_of(function)


def range_name_of(function: PublicFunction) -> str | None:
    """What calls of a function over operators are named in a profile; None for queries and other functions that have no range of their own."""
    module = function.__module__.rpartition(".")[2]
    name = f"{module}_{function.__name__}" if module in ("linalg", "fft", "special") else function.__name__
    composed = any(name in names for family, names in _C.COMPOSED.items() if family != "tensor")
    return f"aten::{name}" if composed or name in FACTORIES else None


def publish(namespace: dict[str, Any], names: Iterable[str], by_name: bool = False) -> None:
    """Make a module's functions of these names public in place."""
    for name in names:
        impl = namespace.get(name)
        if callable(impl) and not isinstance(impl, (type, PublicFunction)):
            namespace[name] = function(impl, name, namespace["__name__"], by_name)
