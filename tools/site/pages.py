"""Copies the pages of docs for the site: what only a repository's reader can follow or a checkout's test needs is rewritten.

Links that lead out of docs become names of files, words behind the language of a code block (which tests read) its title.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def copy(source: Path, target: Path) -> None:
    """Copy every page and picture of `source` to `target`, with the same relative paths."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.suffix == ".md":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(rewritten(path.read_text(encoding="utf-8"), path, source), encoding="utf-8")
        elif path.suffix in (".svg", ".png"):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def rewritten(text: str, path: Path, docs: Path) -> str:
    """The text of the page at `path` as the site shows it."""

    def link(found: re.Match[str]) -> str:
        name, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        place = (path.parent / target.partition("#")[0]).resolve()
        if place.is_relative_to(docs.resolve()) and place.suffix in (".md", ".svg", ".png"):
            return found[0]
        root = docs.resolve().parent
        return f"{name} (`{place.relative_to(root)}`)" if place.is_relative_to(root) else name

    parts = _CODE.split(text)
    return "".join(_fence(part) if i % 2 else _LINK.sub(link, part) for i, part in enumerate(parts))


def _fence(block: str) -> str:
    """A code block, whose second word becomes its title."""
    return re.sub(r"\A```(\w+) ([^\n]+)\n", lambda m: f'```{m[1]} title="{m[2]}"\n', block)
