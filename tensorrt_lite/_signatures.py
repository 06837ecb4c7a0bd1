"""Signatures of public functions and methods in PyTorch's terms, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any


def signature_of(function: Callable[..., Any], name: str, method: bool, spellings: dict[str, str] | None) -> Signature:
    """What `inspect.signature` answers for a public function over `function`.

    A method's first parameter is `self` and it has no `out`; a function's is `input` where rows say self. `spellings` are PyTorch's names
    for parameters that the implementation calls otherwise.
    """
    stated = signature(function)
    parameters = list(stated.parameters.values())
    if name.endswith("_copy") and any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        parameters = _of_copy(name, parameters)
    names = {ours: theirs for theirs, ours in reversed((spellings or {}).items()) if ours != "*"}
    parameters = [p.replace(name=names.get(p.name, p.name)) if name not in _DOCUMENTED else p for p in parameters]
    if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL and (method or parameters[0].name == "self"):
        parameters[0] = parameters[0].replace(name="self" if method else "input")
    return stated.replace(parameters=[p for p in parameters if not (method and p.name == "out")])


# Functions of several overloads, whose documented names stand for all.
_DOCUMENTED = {"result_type", "tensor_split", "hsplit", "vsplit", "dsplit", "split"}


def _of_copy(name: str, parameters: list[Parameter]) -> list[Parameter]:
    """`permute_copy` has the parameters of `permute` and `out`."""
    from tensorrt_lite import _ops

    viewed = list(signature(getattr(_ops, name.removesuffix("_copy"))).parameters.values())
    return viewed + [p for p in parameters if p.name == "out"]
