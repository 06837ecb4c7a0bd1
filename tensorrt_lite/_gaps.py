"""The command `tensorrt-lite missing`: docs/gaps.md, which the build puts beside the core, and what it says of one name."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tensorrt_lite import _missing

_USAGE = "usage: tensorrt-lite missing [NAME]\n\nWhat of PyTorch is not here: everything, or what is known of NAME (stft, nn.utils.prune, torch.export).\n"


def text() -> str:
    """The list of what is missing, as Markdown."""
    from tensorrt_lite import _C

    return (Path(_C.__file__).parent / "gaps.md").read_text(encoding="utf-8")


def missing_paths(name: str) -> list[str]:
    """The dotted names that are known to be missing and end in `name`."""
    paths = [f"{module}.{n}".lstrip(".") for module, names in _missing._NAMES.items() for n in names.split()]
    return sorted(path for path in paths if f".{path}".endswith(f".{name}"))


def exists(name: str) -> bool:
    """Whether a dotted name of the package leads to something."""
    import tensorrt_lite

    found: object = tensorrt_lite
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True


def homes(name: str) -> list[str]:
    """Where a name without a module is found in the modules that programs import."""
    modules = ("nn", "nn.functional", "optim", "optim.lr_scheduler", "linalg", "fft", "special", "utils.data", "distributions", "autograd", "func", "Tensor")
    return [f"{module}.{name}" for module in modules if exists(f"{module}.{name}")] if "." not in name else []


def paragraphs(name: str) -> list[str]:
    """The items and rows of the list that name `name`."""
    word = re.compile(rf"`[^`]*\b{re.escape(name)}\b[^`]*`")
    return [part for part in re.split(r"\n(?=- |\||\n)", text()) if word.search(part) and part.startswith(("- ", "|"))]


def main(arguments: list[str]) -> int:
    """Print; the exit status: 0, or 1 for a name of which nothing is known."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="", file=sys.stderr if len(arguments) > 1 else sys.stdout)
        return 2 if len(arguments) > 1 else 0
    try:
        return _tell(arguments)
    except BrokenPipeError:  # `| head` has read enough; the interpreter must not meet the closed pipe again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _tell(arguments: list[str]) -> int:
    if not arguments:
        print(text(), end="", flush=True)
        return 0
    name = re.sub(r"^(torch|tensorrt_lite|trt)\.", "", arguments[0])
    known = missing_paths(name)
    here = [name] if name not in known and exists(name) else homes(name)
    # the list names members without their module; of a path that leads nowhere its last word says nothing
    said = paragraphs(name.rpartition(".")[2] if known or here else name)
    for path in here:
        print(f"{path}: is here" + (", but for what is said below" if said else ""))
    for path in known:
        print(f"{path}: not implemented")
    if said:
        print(*said, sep="\n", flush=True)
    if not (known or here or said):
        print(f"tensorrt-lite: nothing is known of {arguments[0]!r}", file=sys.stderr)
        return 1
    return 0
