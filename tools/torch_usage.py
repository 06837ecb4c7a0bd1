"""Which names of PyTorch published packages use: tests/compat/package_names.tsv, by reading their sources.

    python -m tools.torch_usage FOLDER [--packages transformers timm ...] > tests/compat/package_names.tsv

FOLDER holds installed packages (`pip install --target FOLDER --no-deps ...`); nothing of them is imported. A row is a dotted name that the
installed PyTorch has, whether some package imports it by an import statement that runs when its file is imported, and the packages.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

Uses = dict[str, set[str]]


class _Names(ast.NodeVisitor):
    """Dotted names that start at an import of torch, of one file."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.used: set[str] = set()
        self.imported: set[str] = set()
        self._guards = 0  # functions, `try` blocks and `if TYPE_CHECKING` around the statement

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self.bound[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                self._note(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or (node.module or "").partition(".")[0] != "torch":
            return
        self._note(str(node.module))
        for alias in node.names:
            if alias.name != "*":
                self.bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                self._note(f"{node.module}.{alias.name}")

    def _note(self, name: str) -> None:
        self.used.add(name)
        if not self._guards:
            self.imported.add(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.bound:
            self.used.add(".".join([self.bound[inner.id], *reversed(parts)]))
        else:
            self.generic_visit(node)

    def _guarded(self, node: ast.AST) -> None:
        self._guards += 1
        self.generic_visit(node)
        self._guards -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Try = _guarded

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self._guarded(node)
        else:
            self.generic_visit(node)


def resolved(name: str) -> str | None:
    """The part of a dotted name that leads to the first object that is no plain module; None where PyTorch does not have it."""
    parts = name.split(".")
    found: Any = importlib.import_module("torch")
    for i, part in enumerate(parts[1:], 1):
        path = ".".join(parts[: i + 1])
        if type(found) is not ModuleType and i > 1:  # torch.ops and torch.classes make their contents
            return ".".join(parts[:i])
        try:
            if not hasattr(found, part):
                importlib.import_module(path)
            found = getattr(found, part)
        except Exception:  # what a module raises without the packages that it wants
            return path if path.startswith("torch.utils.tensorboard") else None
    return name


def names_of(folder: Path) -> tuple[set[str], set[str]]:
    """(names used, of them those imported at the files' own import) of a package's files."""
    used: set[str] = set()
    imported: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        visitor = _Names()
        try:
            visitor.visit(ast.parse(path.read_bytes()))
        except (SyntaxError, ValueError, RecursionError):
            continue
        used |= visitor.used
        imported |= visitor.imported
    return used, imported


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", nargs="*", help="import names; all that use torch by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    users: Uses = defaultdict(set)
    importers: Uses = defaultdict(set)
    cache: dict[str, str | None] = {}
    for folder in sorted(options.folder.iterdir()):
        if not (folder / "__init__.py").exists() or options.packages and folder.name not in options.packages:
            continue
        used, imported = names_of(folder)
        for name in used:
            if name not in cache:
                cache[name] = resolved(name)
            if cache[name] is not None:
                users[str(cache[name])].add(folder.name)
                if name in imported:
                    importers[str(cache[name])].add(folder.name)
    print("# Written by tools/torch_usage.py. name, whether an import statement at the top of a file names it, packages that use it")
    for name in sorted(users):
        print(name, "import" if name in importers else "use", " ".join(sorted(users[name])), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
