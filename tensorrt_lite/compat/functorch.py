"""`functorch` under the alias: what is `torch.func` today, each with the warning that it is, and its functional modules.

Packages from the time before `torch.func` (torchopt) import it. `make_functional` gives a function of the parameters, over `torch.func.functional_call`.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite import func, nn
from tensorrt_lite.compat.metadata import VERSION

__all__ = ["combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
           "vjp", "vmap", "FunctionalModule", "FunctionalModuleWithBuffers"]  # fmt: skip
__version__ = VERSION


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"functorch.{name} is deprecated: use {instead}", FutureWarning, stacklevel=3)


def _moved(name: str, instead: str) -> Callable[..., Any]:
    function = getattr(func, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _deprecated(name, instead)
        return function(*args, **kwargs)

    return call


vmap = _moved("vmap", "torch.vmap")
functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (
    _moved(name, f"torch.func.{name}") for name in ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp")
)


class FunctionalModuleWithBuffers(nn.Module):
    """A module without tensors of its own: `f(params, buffers, *args)`, both in the order of `named_parameters` and `named_buffers`."""

    def __init__(self, stateless_model: nn.Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, tuple(param_names), tuple(buffer_names)

    def forward(self, params: Sequence[trt.Tensor], buffers: Sequence[trt.Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """`f(params, *args)` of a module that has no buffers."""

    def forward(self, params: Sequence[trt.Tensor], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return super().forward(params, (), *args, **kwargs)


def _split(kind: type, model: nn.Module, disable_autograd_tracking: bool) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    own = [p.detach().clone().requires_grad_(p.requires_grad and not disable_autograd_tracking) for p in params.values()]
    return kind(copy.deepcopy(model).to("meta"), tuple(params), tuple(buffers)), tuple(own), tuple(b.detach().clone() for b in buffers.values())


def make_functional(model: nn.Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """(function, copies of the parameters). RuntimeError: the module has buffers."""
    _deprecated("make_functional", "torch.func.functional_call")
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers; use make_functional_with_buffers(model) instead")
    function, params, _ = _split(FunctionalModule, model, disable_autograd_tracking)
    return function, params


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """(function, copies of the parameters, copies of the buffers)."""
    _deprecated("make_functional_with_buffers", "torch.func.functional_call")
    return _split(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[nn.Module]) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A function of stacked parameters and buffers of models of one class. RuntimeError: no models, or of several classes."""
    _deprecated("combine_state_for_ensemble", "torch.func.stack_module_state")
    if not models:
        raise RuntimeError("combine_state_for_ensemble: expected at least one model, got 0")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError(
            f"combine_state_for_ensemble: expected all models to be of one class, got {sorted({type(model).__name__ for model in models})}"
        )
    parts = [_split(FunctionalModuleWithBuffers, model, False) for model in models]
    stacked = [tuple(trt.stack(column).detach() for column in zip(*(part[i] for part in parts), strict=True)) for i in (1, 2)]
    return parts[0][0], tuple(p.requires_grad_(q.requires_grad) for p, q in zip(stacked[0], parts[0][1], strict=True)), stacked[1]
