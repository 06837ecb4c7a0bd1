"""Signatures of public functions and methods in PyTorch's terms, computed when they are asked for: from the row, or from the body where the entry is
written by hand and has no row that says how it is called.
"""

from __future__ import annotations

import ast
from inspect import Parameter, Signature, signature
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from tensorrt_lite._names import listing as _listing
from tensorrt_lite._declared.declarations import INPLACE, Declaration, find, path_of
from tensorrt_lite._C.core.row_schema import split_arguments as split

if TYPE_CHECKING:
    from tensorrt_lite._C.core.overrides import PublicFunction


def signature_of(function: PublicFunction) -> Signature:
    """What `inspect.signature` answers for a public function.

    A method's first parameter is `self` and it has no `out`; a function's is `input` where rows say self. PyTorch's names stand for
    parameters that the implementation calls otherwise.
    """
    method = hasattr(function, "__objclass__")
    path = path_of(function)
    found = find(path)
    if found is None or found[0].manual and found[0].starred is None:
        stated = signature(function.impl)
        parameters = list(stated.parameters.values())
    else:
        stated = Signature()
        parameters = parameters_of(found[0])
        if found[1] == INPLACE or method:
            parameters = [p for p in parameters if p.name != "out"]
    if path not in _DOCUMENTED and (found is None or found[0].kind not in ("composed", "factory")):  # whose rows have PyTorch's names
        names = {ours: theirs for theirs, ours in reversed((function.spellings or {}).items()) if ours != "*"}
        parameters = [p.replace(name=names.get(p.name, p.name)) for p in parameters]
    if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL and (method or parameters[0].name == "self"):
        parameters[0] = parameters[0].replace(name="self" if method else "input")
    return stated.replace(parameters=[p for p in parameters if not (method and p.name == "out")])


# A function of several overloads, whose documented name stands for all.
_DOCUMENTED = {"split"}


def parameters_of(row: Declaration) -> list[Parameter]:
    """The parameters that a row's schema names, with `out` where it has that form."""
    parameters: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in split(row.schema[row.schema.index("(") + 1 : row.schema.rindex(") ->")]):
        if part == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        name, _, default = part.partition(" ")[2].partition("=")
        name = name.strip()
        if iskeyword(name):  # `from`, which a call can name by ** alone
            name += "_"
        if name == row.starred:
            parameters.append(Parameter(name, Parameter.VAR_POSITIONAL))
            kind = Parameter.KEYWORD_ONLY
        else:
            parameters.append(Parameter(name, kind, default=value_of(default.strip()) if default else Parameter.empty))
    if "out" in row.variants:
        parameters.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None))
    return parameters


def value_of(text: str) -> Any:
    """A default's value; lists of numbers are tuples, `torch.contiguous_format` is this package's."""
    if text.startswith("torch."):
        return getattr(_listing.root(), text.removeprefix("torch."))
    value = ast.literal_eval(text)
    return tuple(value) if isinstance(value, list) else value
