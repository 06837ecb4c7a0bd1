"""Which modules of the package import which: `python -m tools.package_arrows` prints its floors, cycles and what points up.

All import statements count, those inside functions too; lines under `if TYPE_CHECKING` do not. A module that must stay unloaded is a `LazyModule`
at the top of those that use it: a name that is resolved when it is first read, which may lead to any floor. `python -m tools.census` counts them.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tensorrt_lite"

# From the bottom up: prefixes of module names, of which the longest that fits counts. A module imports from its own floor and those below.
FLOORS = (
    ("_names", "_size", "_public", "_ops", "_compositions", "_legacy.tensor_methods", "utils._exception_wrapper"),
    ("tensor",),
    ("_root",),
    (
        "_functions", "_legacy", "_checkpoint.names", "_interop", "_tensor_str", "_declared", "linalg", "fft", "special", "signal", "random", "autograd", "futures",
        "monitor", "amp", "accelerator", "profiler", "utils._python_dispatch", "utils.hooks", "utils._pytree", "hub", "_decompositions", "quasirandom",
    ),
    ("cuda", "backend", "backends", "cpu", "multiprocessing"),
    ("library", "_extension", "_declared.opcheck", "return_types", "_checkpoint", "serialization", "_sparse", "sparse", "utils", "_subclasses", "_transforms", "func"),
    ("nn", "masked", "nested", "cuda.comm", "utils.module_tracker", "utils.flop_counter"),
    ("optim", "distributions", "array_api", "distributed", "testing"),
    ("overrides", "info", "_commands", "profiler.command", "utils.benchmark", "utils.collect_env", "compat", "bench"),  # and the root, and what is not named here
)  # fmt: skip


class Import(NamedTuple):
    """One import statement, or one lazy module."""

    source: str
    target: str
    line: int
    inside: bool  # of a function
    lazy: bool


def modules(root: Path = ROOT) -> dict[str, Path]:
    """{name without the package's: file}."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / PACKAGE).with_suffix("").parts
        if parts[0] != "_C" and "__pycache__" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _name(full: str) -> str | None:
    """A module's name without the package's; None for a foreign one, and for compiled ones."""
    package, _, rest = full.partition(".")
    return rest if package == PACKAGE and rest.partition(".")[0] != "_C" else None


@cache
def imports(root: Path = ROOT) -> list[Import]:
    """All of the package's, foreign targets by their full name."""
    known, found = modules(root), []
    for source, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)}
        typing = {id(n) for b in ast.walk(tree) if isinstance(b, ast.If) and "TYPE_CHECKING" in ast.unparse(b.test) for n in ast.walk(b)}
        parts = [PACKAGE, *filter(None, source.split("."))]
        package = parts if path.name == "__init__.py" else parts[:-1]
        for node in ast.walk(tree):
            if id(node) in typing:
                continue
            if isinstance(node, ast.Import):
                targets = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                module = ".".join([*base, *filter(None, [node.module])])
                names = [f"{module}.{a.name}" for a in node.names]
                targets = sorted({n if _name(n) in known or n.startswith(f"{PACKAGE}._C") else module for n in names})
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.lstrip("_") == "LazyModule":
                targets = [ast.literal_eval(node.args[0])]
            else:
                continue
            found += [Import(source, t, node.lineno, id(node) in inside, isinstance(node, ast.Call)) for t in targets]
    return found


def inside_functions(found: list[Import]) -> list[str]:
    """Import statements inside functions."""
    return sorted({f"{i.source}:{i.line}" for i in found if i.inside and not i.lazy})


def graph(found: list[Import], lazy: bool = False) -> dict[str, set[str]]:
    """{module: modules of the package that it imports}."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for i in found:
        target = "" if i.target == PACKAGE else _name(i.target)
        if target is not None and target != i.source and (lazy or not i.lazy):
            arrows[i.source].add(target)
    return arrows


def cycles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Modules that reach each other (Tarjan's strongly connected components), the largest first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []

    def visit(x: str) -> None:
        index[x] = low[x] = len(index)
        stack.append(x)
        for y in sorted(arrows.get(x, ())):
            if y not in index:
                visit(y)
                low[x] = min(low[x], low[y])
            elif y in stack:
                low[x] = min(low[x], index[y])
        if low[x] == index[x]:
            at = stack.index(x)
            result.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(arrows):
        if module not in index:
            visit(module)
    return sorted((c for c in result if len(c) > 1), key=len, reverse=True)


def floor_of(module: str) -> int:
    """The floor of a module; the highest for what no prefix names, and for the root."""
    fits = [(len(prefix), floor) for floor, prefixes in enumerate(FLOORS) for prefix in prefixes if module == prefix or module.startswith(prefix + ".")]
    return max(fits)[1] if fits else len(FLOORS) - 1


def up(found: list[Import]) -> list[str]:
    """Imports from a floor above."""
    return sorted(f"{s}: {t or PACKAGE}" for s, targets in graph(found).items() for t in targets if floor_of(t) > floor_of(s))


def main() -> int:
    """Print it."""
    found = imports()
    print(len(inside_functions(found)), "imports inside functions;", sum(i.lazy for i in found), "lazy modules")
    print("largest cycles:", *cycles(graph(found))[:3], sep="\n  ")
    print("with lazy modules:", [len(c) for c in cycles(graph(found, lazy=True))[:3]])
    print("up:", *up(found), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
