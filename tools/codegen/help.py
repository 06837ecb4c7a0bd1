"""`_C/help.json`: what `help()` adds to the docstrings of rows, descriptions of parameters and an example, read at the first question.

cysrc/ops/parameters.yaml has what a parameter of a name means everywhere. <family>/help.yaml has `parameters`, where the family means something else, and
`functions`: by a row's name, or a public path for one form (`Tensor.eq_`), what its own parameters mean and `example`, statements with what they print.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .declarations import public_paths
from .schema import DeclarationError, Operator, read_yaml


def read_help(folder: Path, operators: Iterable[Operator]) -> dict[str, Any]:
    """What the files say: `parameters` of all, by `family`, and by `function`. DeclarationError for a function that no row has."""
    rows = {op.public_name: op for op in operators}
    paths = {path: op for op in rows.values() for path in public_paths(op)}
    families: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for path in sorted(folder.glob("*/help.yaml")):
        read = read_yaml(path) or {}
        if set(read) - {"parameters", "functions"}:
            raise DeclarationError(f"{path.parent.name}/help.yaml has 'parameters' and 'functions', not {sorted(read)}")
        families[path.parent.name] = read.get("parameters") or {}
        for name, said in (read.get("functions") or {}).items():
            op = rows.get(name) or paths.get(name) or paths.get(name.removesuffix("_"))
            if op is None or name in functions:
                raise DeclarationError(f"{path.parent.name}/help.yaml: {name} is no function, or there twice")
            if not isinstance(said, dict):
                raise DeclarationError(f"{path.parent.name}/help.yaml: {name} has no text for its parameters and no example")
            functions[name] = said
    return {"parameters": read_yaml(folder / "parameters.yaml"), "families": families, "functions": functions}


def help_source(folder: Path, operators: Iterable[Operator]) -> str:
    return json.dumps(read_help(folder, operators), ensure_ascii=False, separators=(",", ":"))
