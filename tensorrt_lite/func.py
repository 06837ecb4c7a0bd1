"""Functional transforms: functions made of functions (``torch.func``).

>>> import tensorrt_lite as trt
>>> from tensorrt_lite.func import grad, vmap
>>> per_sample = vmap(grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))
>>> per_sample(trt.ones(2), trt.tensor([[1.0, 0.0], [1.0, 1.0]])).tolist()
[[2.0, 0.0], [4.0, 4.0]]

Transforms nest in any order, with each other and with autograd outside. docs/func.md says what is batched how, and what is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite._transforms.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from tensorrt_lite._transforms.functionalize import functionalize
from tensorrt_lite._transforms.mapping import vmap
from tensorrt_lite._C.core import transform as _transform
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_batchnorm = _LazyModule("tensorrt_lite.nn.modules.batchnorm")
_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
_stateless = _LazyModule("tensorrt_lite.nn.utils.stateless")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorrt_lite import Tensor
    from tensorrt_lite.nn import Module

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def functional_call(
    module: Module, parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers than its own, which stay as they are.

    parameter_and_buffer_dicts: {name: tensor}, or several such dicts without common names. args: the positional arguments, one or a tuple. tie_weights: what replaces
    one of several tied parameters replaces all of them. strict: ValueError or RuntimeError unless the names are exactly the module's. The arguments are those of
    nn.utils.stateless.functional_call.

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.Linear(2, 1)
    >>> trt.func.functional_call(layer, {"weight": trt.ones(1, 2), "bias": trt.zeros(1)}, trt.ones(2)).tolist()
    [2.0]
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        replaced = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        replaced = {}
        for part in parameter_and_buffer_dicts:
            if not isinstance(part, dict):
                raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
            if repeated := set(part) & set(replaced):
                raise ValueError(f"{sorted(repeated)} appeared in multiple dictionaries; behavior of functional call is ambiguous")
            replaced.update(part)
    else:
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(parameter_and_buffer_dicts)}")
    return _stateless._functional_call(module, replaced, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of modules of one class, each {name: tensor with the modules along dimension 0}, for vmap over an ensemble.

    The parameters are new leaves that require gradients where the modules' do. RuntimeError for no modules, several classes, or modes that differ.

    >>> import tensorrt_lite as trt
    >>> params, buffers = trt.func.stack_module_state([trt.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    torch.Size([3, 1, 2])
    """

    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    kind = type(models[0])
    if not all(type(m) is kind for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(trees: list[dict[str, Any]], leaves: bool) -> dict[str, Any]:
        found = {}
        for name in trees[0]:
            parts = [tree[name] for tree in trees]
            if leaves and len({p.requires_grad for p in parts}) > 1:
                raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
            value = trt.stack([p.detach() for p in parts]) if leaves else trt.stack(parts)
            found[name] = value.requires_grad_(parts[0].requires_grad) if leaves else value
        return found

    parameters = stacked([dict(m.named_parameters()) for m in models], True)
    return parameters, stacked([dict(m.named_buffers()) for m in models], False)


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside a transform stands for, to look at; other tensors as they are. recurse: through all levels.

    >>> import tensorrt_lite as trt
    >>> trt.vmap(lambda x: (print(trt.func.debug_unwrap(x).shape), x)[1])(trt.ones(3, 2)).shape
    torch.Size([3, 2])
    torch.Size([3, 2])
    """
    while _transform.is_wrapper(tensor):
        tensor = _transform.value_of(tensor)
        if not recurse:
            break
    return tensor


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch normalisation of a module go without running statistics, which vmap cannot update; in place. Returns the module.

    >>> import tensorrt_lite as trt
    >>> trt.func.replace_all_batch_norm_modules_(trt.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def __getattr__(name: str) -> Any:
    raise _missing.error("func", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
