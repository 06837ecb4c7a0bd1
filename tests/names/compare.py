"""Which names have a call, and the comparison of a name's results."""

from __future__ import annotations

from typing import Any

import torch

from . import database, surface, written, written_nn, written_tensor, written_training  # noqa: F401 (they register their cases)


def callable_names(module: str) -> list[str]:
    """Names of a module that some call here stands for."""
    counted, _ = surface.names(torch, module)
    return [n for n in counted if (module, n) in written.CASES or (module, n) in database.operators() or module == "nn" and n in database.modules()]


def run(ours: Any, module: str, name: str) -> str:
    """Call a name in both libraries: what differs in words, nothing where all agrees."""
    space = surface.owner(ours, module)
    if not hasattr(space, name):
        return "absent"
    try:
        if (module, name) in written.CASES:
            call = written.CASES[module, name]
            results = []
            for library in (ours, torch):
                library.manual_seed(0)
                results.append(surface.plain(call(library, getattr(surface.owner(library, module), name))))
            return surface.difference(*results)
        if module == "nn":
            return database.run_module(ours, database.modules()[name])
        return database.run_operator(ours, *database.operators()[module, name])
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
