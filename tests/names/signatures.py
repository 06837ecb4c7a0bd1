"""Signatures beside PyTorch's: by `inspect` where PyTorch's is Python, by its schemas where it is compiled (tests/test_declarations.py compares those)."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from . import surface

# Modules whose compiled functions have schemas.
BY_SCHEMA = ("torch", "Tensor", "nn.functional", "linalg", "fft", "special")


def parameters(value: Any) -> list[tuple[str, bool, bool]] | None:
    """(name, keyword only, has a default) of each parameter but *args and **kwargs; None where nothing can be inspected."""
    value = getattr(value, "__wrapped__", value)
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    found = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and not p.name.startswith("_")]
    return [(p.name, p.kind is p.KEYWORD_ONLY, p.default is not p.empty) for p in found]


def difference(ours: Any, module: str, name: str) -> str | None:
    """How a name's parameters differ; "" where they are PyTorch's, None where there is nothing to compare. Further keywords with defaults are no difference."""
    theirs = getattr(surface.owner(torch, module), name)
    mine = getattr(surface.owner(ours, module), name)
    if not callable(theirs) or not callable(mine):
        return None
    expected = parameters(theirs)
    if expected is None or inspect.isbuiltin(theirs) or inspect.ismethoddescriptor(theirs):
        return None
    actual = parameters(mine)
    if actual is None:
        return f"no signature, PyTorch's is {expected}"
    names = [p[0] for p in actual]
    lacking = [p[0] for p in expected if p[0] not in names and p[0] not in ("self", "input")]
    if lacking:
        return f"without {', '.join(lacking)}"
    shared = [n for n, keyword, _ in expected if n in names and not keyword]
    if shared != sorted(shared, key=names.index):
        return f"in the order {names}"
    required = [n for n, _, default in actual if not default and (n, False) in [(e[0], not e[2]) for e in expected]]
    return f"{', '.join(required)} without a default" if [r for r in required if dict((e[0], e[2]) for e in expected).get(r)] else ""
