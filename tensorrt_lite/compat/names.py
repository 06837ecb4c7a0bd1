"""PyTorch's modules and the names of them that are not here: the tables that tools/pytorch_names.py writes, read when the alias is put in force."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


def _lines(file: str) -> list[list[str]]:
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


@cache
def _rows() -> dict[str, str]:
    return {row[0]: row[1] if len(row) > 1 else "" for row in _lines("pytorch_names.tsv")}


@cache
def packages() -> frozenset[str]:
    """Paths of PyTorch's modules that hold others."""
    return frozenset(path.rpartition(".")[0] for path in _rows()) | {"testing"}  # which holds private modules alone


def is_module(path: str) -> bool:
    """Whether PyTorch has a module torch.`path`, which programs may import."""
    return path in _rows() or path in packages()


@cache
def absent(path: str) -> dict[str, str]:
    """{name: kind} of what the module lacks here; the kind is a letter, or the public path, behind "=", of the same object."""
    names = {}
    for entry in _rows().get(path, "").split():
        name, colon, kind = entry.partition(":")
        if not colon:
            name, _, kind = entry.partition("=")
            kind = "=" + kind
        names[name] = kind
    return names


@cache
def class_homes() -> dict[tuple[str, str], str]:
    """{(module here, class): the module that PyTorch defines it in}, where that has another path."""
    return {(module, name): home for module, name, home in _lines("class_homes.tsv")}
