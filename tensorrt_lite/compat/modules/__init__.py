"""Names of PyTorch's that published packages use and that belong to no public module here: found by the alias alone.

A file has the path that PyTorch gives the module. Where this package has a module of that path, the file supplements it; this one
supplements the package. tests/compat/package_names.tsv says which packages use which names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorrt_lite as torch
from tensorrt_lite.compiler import warn_uncompiled

_UNSAID = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """The function itself, or an OptimizedModule around a module, with a warning once in a process: it runs as Python code calls it. As
    `@torch.compile(...)`, a decorator."""
    if model is None:
        return lambda function: compile(function, **options)
    if not callable(model):
        raise TypeError(f"torch.compile expects a callable, but got {type(model).__name__}")
    modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")
    if options.get("mode") not in (None, *modes):
        raise RuntimeError(f"Unrecognized mode={options['mode']}, should be one of: {', '.join(modes)}")
    if not options.get("disable"):
        warn_uncompiled(2)
    if not isinstance(model, torch.nn.Module):
        return model
    from tensorrt_lite.compat.modules._dynamo import OptimizedModule

    return OptimizedModule(model)


def _raise_unless(error: type[Exception], cond: Any, message: Any = None) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error(_UNSAID if message is None else str(message() if callable(message) else message))


def _check(cond: bool, message: Any = None) -> None:
    """RuntimeError, with the text that `message()` gives, unless cond."""
    _raise_unless(RuntimeError, cond, message)


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], str]) -> None:
    """An error of the type unless cond."""
    _raise_unless(error_type, cond, message)


def _check_index(cond: bool, message: Any = None) -> None:
    _raise_unless(IndexError, cond, message)


def _check_value(cond: bool, message: Any = None) -> None:
    _raise_unless(ValueError, cond, message)


def _check_type(cond: bool, message: Any = None) -> None:
    _raise_unless(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Any = None) -> None:
    _raise_unless(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """An error of the type unless all elements of a bool tensor are true."""
    if not isinstance(cond, torch.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != torch.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _raise_unless(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: str) -> None:
    """AssertionError unless the condition, which may be a tensor, holds."""
    assert condition, message


def _assert_async(tensor: Any, message: str | None = None) -> None:
    """RuntimeError unless the one element is not zero."""
    if not bool(tensor):
        raise RuntimeError(message or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(tensor: Any) -> Any:
    return torch.tensor(tensor.shape)


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of softmax's input by that of its output."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)
