"""Calling a module with other tensors than its own: for meta-learning, and for gradients with respect to given parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorrt_lite.tensor import Tensor
from tensorrt_lite.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the tensors (None: without the parameter) of `parameters_and_buffers` in the places that its keys ("0.weight") name.

    The module has its own tensors again afterwards; a buffer that the call assigns anew is left in the dict. args: a tuple, or one
    argument. tie_weights: a tensor that the module has under several names is replaced under all of them; ValueError for
    different replacements. strict: RuntimeError unless all names, and no others, are given.
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights, strict)


def _functional_call(module: Module, parameters_and_buffers: dict[str, Any], args: Any, kwargs: Any, tie_weights: bool, strict: bool) -> Any:
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **kwargs or {})


def _names_of_tensors(module: Module) -> dict[str, Any]:
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _with_tied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The given tensors, each under all names of the tensor that it replaces."""
    result = dict(given)
    for name, value in given.items():
        tied = [other for other, tensor in own.items() if name in own and tensor is own[name]]
        if any(other in given and given[other] is not value for other in tied):
            raise ValueError(f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using tie_weights=False")
        result.update(dict.fromkeys(tied, value))
    return result


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """The dict of a submodule that holds what has this name, and its key there. AttributeError: there is no such submodule."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    for held in (owner._parameters, owner._buffers):
        if last in held:
            return held, last
    return owner.__dict__, last  # a new attribute for the time of the call


@contextmanager
def _reparametrize_module(
    module: Module, given: dict[str, Any], tie_weights: bool = False, strict: bool = False, stack_weights: bool = False
) -> Iterator[None]:
    """The module with the given tensors in place of its own for a block of code. Packages (zuko) call it; tensors go back in reverse order, `stack_weights` or not."""
    own = _names_of_tensors(module) if tie_weights or strict else {}  # which a module that contains itself has no end of
    wanted = _with_tied(own, given) if tie_weights else dict(given)
    if strict:
        unexpected, missing = [n for n in wanted if n not in own], [n for n in own if n not in wanted]
        problems = [f"{what} key(s): {', '.join(map(repr, names))}." for what, names in (("Unexpected", unexpected), ("Missing", missing)) if names]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    for value in wanted.values():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    places = {name: _place(module, name) for name in wanted}
    before = {name: held[key] for name, (held, key) in places.items() if key in held}
    try:
        for name, (held, key) in places.items():
            held[key] = wanted[name]
        yield
    finally:
        for name, (held, key) in reversed(places.items()):
            if name in given and held.get(key, wanted[name]) is not wanted[name]:
                given[name] = held[key]
            if name in before:
                held[key] = before[name]
            else:
                held.pop(key, None)
