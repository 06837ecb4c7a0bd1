"""Which names PyTorch has that are not here, for programs that run under the alias: tensorrt_lite/compat/pytorch_names.tsv, class_homes.tsv
and settings.tsv.

    python -m tools.pytorch_names        # needs the PyTorch whose names are meant

settings.tsv has the names and defaults of the compiler's settings, which programs set.
pytorch_names.tsv has a row for each module of PyTorch's that programs may import: public ones, those that define a public class, and the
private ones of tests/compat/package_names.tsv. Behind it stand the names that the module here lacks: `name:kind` (c class, f function, m module,
d dtype or layout, v value), or `name=path` where another public path here holds what PyTorch has there. class_homes.tsv says which classes
PyTorch defines in a module of another name.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import typing
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tensorrt_lite" / "compat"
USED = ROOT / "tests" / "compat" / "package_names.tsv"
# Private modules that programs import, for names that are here or only to annotate with.
_PRIVATE = (
    *(f"utils.data._utils{part}" for part in ("", ".collate", ".fetch", ".pin_memory", ".worker")),
    *("_decomp", "_functorch.aot_autograd", "_functorch.vmap", "_inductor.utils", "jit._trace", "nn.modules._functions", "optim._functional"),
)
_SETTINGS = ("_dynamo.config", "_functorch.config", "_inductor.config")
# PyTorch's own tools and tests, which no program imports.
_LEFT_OUT = ("testing._internal", "utils.hipify", "utils.benchmark.examples", "distributed.flight_recorder", "utils.data.datapipes.gen_pyi")


def import_or_none(name: str) -> ModuleType | None:
    """A module, None where it is not there or wants packages that are not."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def is_private(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))


def kind_of(value: Any) -> str:
    torch = sys.modules["torch"]
    if isinstance(value, ModuleType):
        return "m"
    if isinstance(value, (torch.dtype, torch.layout)):
        return "d"
    return "c" if isinstance(value, type) or typing.get_origin(value) is not None else "f" if callable(value) else "v"


def names_defined(module: ModuleType, submodules: set[str]) -> list[str]:
    """Names of a module that are its own: listed in `__all__`, or defined in PyTorch and without an underscore."""
    listed = set(getattr(module, "__all__", ()))
    own = {n for n, v in vars(module).items() if not n.startswith("_") and str(getattr(v, "__module__", "") or "").partition(".")[0] == "torch"}
    own |= {n for n, v in vars(module).items() if not n.startswith("_") and not hasattr(typing, n) and typing.get_origin(v) is not None}  # types of annotations
    return sorted((listed | own | {n for n, v in vars(module).items() if isinstance(v, ModuleType) and f"{module.__name__}.{n}" in submodules}))


def names_in_source(path: str) -> list[str] | None:
    """`name:kind` of what a module's file defines and imports, for one that cannot be imported here; None where there is no file."""
    folder = Path(importlib.import_module("torch").__path__[0], *path.split("."))
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    if not file.exists():
        return None
    found = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = "c" if isinstance(node, ast.ClassDef) else "f"
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.update((alias.asname or alias.name, "c" if alias.name[0].isupper() else "f") for alias in node.names)
    return [f"{name}:{kind}" for name, kind in sorted(found.items()) if not name.startswith("_")]


def used_names() -> dict[str, set[str]]:
    """{module: private names and names of private modules} that packages use."""
    used: dict[str, set[str]] = {}
    for line in USED.read_text(encoding="utf-8").splitlines()[1:]:
        name = line.partition("\t")[0].removeprefix("torch").removeprefix(".")
        if is_private(name):
            owner, _, last = name.rpartition(".")
            used.setdefault(owner, set()).add(last)
    return used


def settings() -> list[str]:
    """`module, name, default` of the compiler's settings: None for what is no literal, `=name` for another name of a setting."""
    lines = []
    for path in _SETTINGS:
        for name, entry in sorted(importlib.import_module(f"torch.{path}")._config.items()):
            default = entry.default
            text = f"{{{', '.join(map(repr, sorted(default)))}}}" if isinstance(default, set) and default else repr(default)
            alias = (entry.alias or "").removeprefix(f"torch.{path}.")
            lines.append(f"{path}\t{name}\t{'=' + alias if alias and not alias.startswith('torch.') else text if is_literal(text) else None}")
    return lines


def is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return str(Path.cwd().anchor) not in text and "\t" not in text  # no path of this machine


def main() -> int:
    warnings.simplefilter("ignore")
    head = "# Written by tools/pytorch_names.py\n"
    (FOLDER / "settings.tsv").write_text(head + "\n".join(settings()) + "\n", encoding="utf-8")
    torch = importlib.import_module("torch")
    everything = [m.name.removeprefix("torch.") for m in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None)]
    used = used_names()
    wanted = {""} | {m for m in everything if not is_private(m) and not m.startswith(_LEFT_OUT)}
    wanted |= {path for owner, names in used.items() for path in (owner, *(f"{owner}.{n}".strip(".") for n in names)) if path in everything}
    wanted |= set(_PRIVATE)
    ours: dict[str, ModuleType | None] = {}
    theirs: dict[str, ModuleType] = {}
    homes: dict[tuple[str, str], str] = {}
    unreadable: dict[str, list[str] | None] = {}
    for path in sorted(wanted):
        there = import_or_none(f"torch.{path}".rstrip("."))
        if there is None:
            unreadable[path] = names_in_source(path)
        else:
            theirs[path] = there
            ours[path] = import_or_none(f"tensorrt_lite.{path}".rstrip("."))
    # objects of PyTorch's that a public path leads to here, and the modules in which PyTorch defines our public classes
    reached: dict[int, str] = {}
    for path, here in ours.items():
        for name in names_defined(theirs[path], set()) if here is not None and not is_private(path) else ():
            value = getattr(theirs[path], name, None)
            if callable(value) and hasattr(here, name):
                reached.setdefault(id(value), f"{path}.{name}".strip("."))
                mine = getattr(here, name)
                if isinstance(value, type) and isinstance(mine, type) and mine.__module__.startswith("tensorrt_lite") and value.__module__.startswith("torch"):
                    if value.__module__ != mine.__module__.replace("tensorrt_lite", "torch", 1) and value.__qualname__ == mine.__qualname__:
                        homes[mine.__module__, mine.__qualname__] = value.__module__
    for home in set(homes.values()):
        path = home.removeprefix("torch").removeprefix(".")
        if path not in theirs:
            theirs[path], ours[path] = importlib.import_module(home), import_or_none(f"tensorrt_lite.{path}".rstrip("."))
    submodules = {f"torch.{path}" for path in theirs if path}
    rows = ["\t".join([path, " ".join(names)]) for path, names in unreadable.items() if names is not None]
    for path in sorted(theirs):
        entries = []
        own = () if is_private(path) and path in used else names_defined(theirs[path], submodules)
        for name in sorted({*own, *used.get(path, ())}):
            if not hasattr(theirs[path], name) or ours[path] is not None and hasattr(ours[path], name):
                continue
            value = getattr(theirs[path], name)
            if f"{path}.{name}".strip(".") in theirs:
                continue  # a module with a row of its own
            same = reached.get(id(value)) if callable(value) else None
            if isinstance(value, type) and value.__module__ == "builtins" or isinstance(value, ModuleType):
                continue
            entries.append(f"{name}={same}" if same else f"{name}:{kind_of(value)}")
        rows.append("\t".join([path, " ".join(entries)]).rstrip("\t"))
    (FOLDER / "pytorch_names.tsv").write_text(head + "\n".join(sorted(rows)) + "\n", encoding="utf-8")
    lines = [f"{module}\t{name}\t{home}" for (module, name), home in sorted(homes.items())]
    (FOLDER / "class_homes.tsv").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"PyTorch {torch.__version__}: {len(rows)} modules, {sum(row.count(':') for row in rows)} absent names, {len(lines)} classes with other homes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
