"""Which rooms of the house import from which: `python -m tools.arrows` prints the arrows, and those that point up.

Rooms lie above each other (docs/architecture.md); a file may import from its own room and from those below. All import, cimport and #include lines count,
those inside functions, of generated modules (the generator's prelude) and of `cdef extern from` too; lines under `if TYPE_CHECKING` do not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# From the bottom up. cuda_src, text for the CUDA compiler, stands on core (dtype_table.h) and loops (special_functions.h), whose texts both compilers read.
ROOMS = ("core", "loops", "autograd", "ops", "cuda", "tensorrt_lite", "tools")

_CYTHON = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import\b\s*(.*)|c?import\s+([\w.]+))")
_INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from|include)\s+"([^"]+)"')


class Arrow(NamedTuple):
    """One line of `source` (a path in the repository) that needs `target` (a module or a path)."""

    source: str
    target: str
    upper: str  # the room of the source
    lower: str  # the room of the target


def room_of(path: Path) -> str:
    """The room of a file of the repository."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "cysrc" else parts[0]


def room_of_module(name: str) -> str | None:
    """The room of an absolute module name; None for what is not of this repository."""
    parts = name.split(".")
    if parts[0] == "tools":
        return "tools"
    if parts[0] != "tensorrt_lite":
        return None
    if parts[1:2] != ["_C"]:
        return "tensorrt_lite"
    if parts[2:3] in (["operators"], ["steps"]):
        return "ops"  # operators.pxd and steps/<family>.pxd, which the generator writes from the declarations of ops
    return parts[2] if parts[2:3] and parts[2] in ROOMS else None  # else names of the package itself: its version, its families


def sources() -> list[Path]:
    """All files whose lines are read."""
    folders = {"cysrc": ("pyx", "pxd", "pxi", "h", "c"), "tensorrt_lite": ("py",), "cuda_src": ("cuh", "h"), "tools": ("py",)}
    found = [p for folder, endings in folders.items() for e in endings for p in (ROOT / folder).rglob(f"*.{e}")]
    return sorted(p for p in found if not {"_C", "__pycache__"} & set(p.relative_to(ROOT).parts))


def _headers() -> dict[str, Path]:
    return {p.name: p for folder in ("cysrc", "cuda_src") for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cuh", ".pxi")}


def _python_imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {id(n) for branch in ast.walk(tree) if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test) for n in ast.walk(branch)}
    package = list(path.relative_to(ROOT).with_suffix("").parts[:-1])
    names = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(x for x in (base, node.module or "") if x)
            names += [f"{module}.{a.name}" if module == "tensorrt_lite._C" else module for a in node.names[:1]]
    return names


def _cython_imports(text: str) -> list[str]:
    names = []
    for line in text.splitlines():
        if m := _CYTHON.match(line):
            module = m[1] or m[3]
            # `from tensorrt_lite._C.cuda import backend` names a room by its package, `from tensorrt_lite import nn` a module
            names.append(f"{module}.{m[2].split()[0].strip(',()')}" if module in ("tensorrt_lite", "tensorrt_lite._C") and m[2] else module)
    return names


def arrows() -> list[Arrow]:
    """Every line that leads from one room to another."""
    from tools.codegen.generate import PRELUDE

    headers, found = _headers(), []
    for path in sources():
        room, name = room_of(path), str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        modules = _python_imports(path) if path.suffix == ".py" else _cython_imports(text) if path.suffix in (".pyx", ".pxd", ".pxi") else []
        targets = [(m, room_of_module(m)) for m in modules]
        for line in text.splitlines() if path.suffix != ".py" else ():
            if (m := _INCLUDE.match(line)) and (header := headers.get(m[1].rpartition("/")[2])):
                targets.append((str(header.relative_to(ROOT)), room_of(header)))
        found += [Arrow(name, target, room, to) for target, to in targets if to not in (None, room)]
    prelude = [(m, room_of_module(m)) for m in _cython_imports(PRELUDE)]
    found += [Arrow("tools/codegen/generate.py:PRELUDE", target, "ops", to) for target, to in prelude if to not in (None, "ops")]
    return found


def points_up(arrow: Arrow) -> bool:
    """Whether the target's room is not below the source's."""
    below = {room: i for i, room in enumerate((*ROOMS[:2], "cuda_src", *ROOMS[2:]))}
    return below[arrow.lower] > below[arrow.upper]


def up() -> dict[str, list[str]]:
    """{source: targets in rooms above it}."""
    table: dict[str, set[str]] = {}
    for arrow in filter(points_up, arrows()):
        table.setdefault(arrow.source, set()).add(arrow.target)
    return {source: sorted(targets) for source, targets in sorted(table.items())}


def main() -> int:
    """Print both tables."""
    counts = Counter((a.upper, a.lower) for a in arrows())
    for (upper, lower), n in sorted(counts.items()):
        print(f"{upper:>14} -> {lower:<14} {n:4}")
    for source, targets in up().items():
        print(f"up: {source}: {', '.join(targets)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
