"""Classes of operators' named results: `isinstance(x.sort(), torch.return_types.sort)`. Each is a tuple, `torch.return_types.sort((values, indices))`, whose
elements have names; programs meet them in annotations."""

from __future__ import annotations

import functools
import re
from typing import Any

import tensorrt_lite._declared.declarations as _declarations
from tensorrt_lite._C.core.return_types import result_type

_NAMED = re.compile(r"-> \(([^ ,]+ \w+(?:, [^ ,]+ \w+)+)\)$")


@functools.cache
def _types() -> dict[str, type]:
    """By an operator's name the class of its results, for all whose schema names them. Arguments of `out=` have the same class."""
    found = {}
    for name in _declarations.names():
        row = _declarations.of(name)
        if not {"function", "method", "linalg"} & {*row.variants, name.partition("_")[0]}:
            continue  # an operator that public functions call
        for schema in (row.schema, *row.overloads):
            named = _NAMED.search(schema)
            if named and "." not in name and not name.startswith("_"):
                found[name] = result_type(name, tuple(part.split()[-1] for part in named[1].split(", ")))
    return found


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return list(_types().values())
    try:
        return _types()[name.removesuffix("_out")]
    except KeyError:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'") from None


def __dir__() -> list[str]:
    return sorted([*_types(), "all_return_types"])
