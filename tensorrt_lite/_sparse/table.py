"""Which function stands for an operator where an argument is sparse.

Operators come here by the dispatch key Sparse, with the arguments of their row; public functions that are made of several operators by
`__torch_function__` of the class of sparse tensors, with the arguments of the call. What neither table knows is refused, or goes on to the operators that
it is made of.
"""

from __future__ import annotations

from typing import Any, Callable

from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.dtype import can_cast_types
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._sparse.batches import innermost_batch, run_operator
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_device = _LazyModule("tensorrt_lite._C.core.device")
_parts = _LazyModule("tensorrt_lite._sparse.parts")

is_sparse = _core.is_sparse
OPERATORS: dict[str, Callable[..., Any]] = {}
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def operator(*names: str) -> Callable[[Any], Any]:
    """The function runs these rows: it is called with all arguments of the row, numbers as numbers, and returns a new result."""

    def register(function: Any) -> Any:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def public(*names: str) -> Callable[[Any], Any]:
    """The function stands for these public functions and methods: it is called as they are."""

    def register(function: Any) -> Any:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def refusal(name: str, arguments: Any) -> NotImplementedError:
    """The error of an operator that has nothing for sparse tensors."""
    found = next((x for x in _flat(arguments) if is_sparse(x)), None)
    backend = "Sparse"
    if found is not None:
        backend = ("" if found.layout is _coo() else "Csr").join(("Sparse", found.device.type.upper()))
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend: the operator has no kernel for sparse tensors (docs/sparse.md). "
        f"Arguments: {', '.join(_described(x) for x in arguments)}"
    )


def _coo() -> Any:
    return _device.sparse_coo


def _flat(arguments: Any) -> Any:
    for x in arguments:
        if isinstance(x, (list, tuple)):
            yield from _flat(x)
        else:
            yield x


def _type_name(t: Any) -> str:
    """`Float`, `Long`: PyTorch's word for a tensor's type."""
    return t.type().rpartition(".")[2].removesuffix("Tensor") if not is_sparse(t) else _type_name(t.new_empty_dense())


def _described(x: Any) -> str:
    if isinstance(x, TensorBase):
        return f"{x.layout} {x.dtype} {list(x.shape)}"
    return repr(x) if isinstance(x, (int, float, complex, bool, str, type(None))) else type(x).__name__


def run(name: str, arguments: tuple[Any, ...], target: Any, mode: int) -> Any:
    """What the dispatch key calls. mode: 0 a new result, 1 into `target`, 2 in place."""
    level = innermost_batch(arguments)
    if level is not None:
        return run_operator(level, name, arguments, target, mode)
    function = OPERATORS.get(name)
    if function is None:
        raise refusal(name + ("_" if mode == 2 else ""), arguments)
    if mode == 2 and is_sparse(target):
        arguments = _parts.before_writing(target, arguments)
    result = function(*arguments)
    if result is NotImplemented:
        raise refusal(name + ("_" if mode == 2 else ""), arguments)
    return result if target is None else write_to(name, target, result, mode)


def write_to(name: str, target: Any, result: Any, mode: int) -> Any:
    """Hand a result over to the tensor that the caller gave."""
    if isinstance(target, (list, tuple)):
        return [write_to(name, t, r, mode) for t, r in zip(target, result)]
    if mode == 1 and is_grad_enabled() and isinstance(result, TensorBase) and (result.requires_grad or target.requires_grad):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    if isinstance(result, TensorBase) and not can_cast_types(result.dtype, target.dtype):
        raise RuntimeError(f"{name}{'_' * (mode == 2)}: result type {_type_name(result)} can't be cast to the desired output type {_type_name(target)}")
    if is_sparse(target):
        return _parts.assign(target, result, name)
    if is_sparse(result) and mode == 2 and target.shape == result.shape:
        return target.copy_(result.to_dense())
    if is_sparse(result):
        raise RuntimeError(f"{name}: a sparse result cannot be written to a strided tensor")
    if target.shape != result.shape:
        if mode == 2:
            raise RuntimeError(f"{name}_: the result of shape {list(result.shape)} doesn't match the tensor of shape {list(target.shape)}")
        target.resize_(result.shape)
    return target.copy_(result)
