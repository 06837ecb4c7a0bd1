"""The public names of PyTorch's modules, as PyTorch's own modules state them.

A module's names are those of its `__all__`, and the functions and classes that it defines besides; without `__all__`, all that come from PyTorch. Tensor's are
its attributes without an underscore in front. Not counted, and listed apart: modules, what stands in the namespace by an import of the standard library, texts of
docstrings, and what torch/__init__.py copies out of `torch._C` in one loop that is bound by pybind11: the classes and functions of TorchScript's compiler.
"""

from __future__ import annotations

import importlib
from types import BuiltinFunctionType, ModuleType
from typing import Any

MODULES = (
    "torch", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data", "autograd", "multiprocessing", "linalg", "fft", "special",
)  # fmt: skip


def owner(library: Any, module: str) -> Any:
    """The module or class of a name of MODULES in a library."""
    if module == "torch":
        return library
    if module == "Tensor":
        return library.Tensor
    return importlib.import_module(f"{library.__name__}.{module}")


def _is_pybind(value: Any) -> bool:
    kinds = (type(value).__name__, type(type(value)).__name__)
    return "pybind11_type" in kinds or isinstance(value, BuiltinFunctionType) and "pybind11" in type(value.__self__).__module__ + repr(value.__self__)


def _is_foreign(value: Any) -> bool:
    """Whether it stands there by an import: a class or function of another package, or text."""
    home = getattr(value, "__module__", None)
    return isinstance(value, (str, dict)) or callable(value) and isinstance(home, str) and home.partition(".")[0] not in ("torch", "builtins")


def _is_imported(name: str, value: Any) -> bool:
    """Whether another module of PyTorch's defines it, which a module without `__all__` imports."""
    homes = ("torch", "torch.overrides", "torch.types", "torch._jit_internal", "torch.autograd", "typing")
    return name == "TYPE_CHECKING" or type(value).__module__ in homes[1:] or isinstance(value, type) and value.__module__ in homes or (
        getattr(value, "__module__", None) in homes[1:] and getattr(value, "__name__", "") == name
    )  # fmt: skip


def names(library: Any, module: str) -> tuple[list[str], list[str]]:
    """(names that count, others with no underscore in front), sorted, of a module of PyTorch."""
    space = owner(library, module)
    present = {n for n in dir(space) if not n.startswith("_")}
    if module == "Tensor":
        return sorted(present), []
    listed = {n for n in getattr(space, "__all__", ()) if not n.startswith("_")}
    compiled = (
        any(isinstance(getattr(space, n), BuiltinFunctionType) for n in listed) and module != "torch"
    )  # then those that it does not list are its own, too
    counted = set()
    for name in present | listed:
        value = getattr(space, name)
        if isinstance(value, ModuleType) or _is_pybind(value):
            continue
        own = f"{getattr(value, '__module__', None)}.".startswith(f"{space.__name__}.") or compiled and isinstance(value, BuiltinFunctionType)
        own = own or module == "torch" and isinstance(value, (library.dtype, library.layout, library.memory_format, library.qscheme))
        if name in listed or own or not hasattr(space, "__all__") and not _is_foreign(value) and not _is_imported(name, value):
            counted.add(name)
    return sorted(counted), sorted(present - counted)


def plain(value: Any) -> Any:
    """A result without its library: tensors as (dtype, shape, numbers), dtypes and devices as text, classes by name, containers of these."""
    if hasattr(value, "detach") and hasattr(value, "tolist"):
        return _PlainTensor(str(value.dtype), tuple(value.shape), value.detach().tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, type):
        return value.__name__
    if type(value).__name__ in ("dtype", "device", "layout", "memory_format", "qscheme"):
        return str(value)
    if isinstance(value, BaseException):
        return type(value).__name__
    return value


class _PlainTensor(tuple):
    def __new__(cls, *parts: Any) -> Any:
        return super().__new__(cls, parts)


def difference(actual: Any, expected: Any, rtol: float = 1e-4, atol: float = 1e-5) -> str:
    """Where two results differ, in words; nothing where they agree: equal structure, shapes and dtypes, numbers within the tolerance, NaN like NaN."""
    mine, theirs = plain(actual), plain(expected)
    return "" if _close(mine, theirs, rtol, atol) else f"{str(mine)[:300]} instead of {str(theirs)[:300]}"


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y, rtol, atol) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k], rtol, atol) for k in a)
    if isinstance(a, (float, complex)) or isinstance(b, (float, complex)):
        try:
            return a == b or a != a and b != b or abs(a - b) <= atol + rtol * abs(b)
        except TypeError:
            return False
    return type(a) is type(b) and bool(a == b)
