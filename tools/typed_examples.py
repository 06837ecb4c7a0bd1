"""Copies of the examples that import tensorrt_lite where they import torch, for type checkers: `python -m tools.typed_examples FOLDER`.

Programs of both libraries are checked against this package's types; PyTorch's own are another matter.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def as_ours(text: str) -> str:
    """The program with its imports of torch renamed."""
    text = re.sub(r"^( *)from torch(?=[. ])", r"\1from tensorrt_lite", text, flags=re.M)
    text = re.sub(r"^( *)import torch\.([\w.]+) as ", r"\1import tensorrt_lite.\2 as ", text, flags=re.M)
    return re.sub(r"^( *)import torch$", r"\1import tensorrt_lite as torch", text, flags=re.M)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py"):
        path.unlink()
    for path in sorted(EXAMPLES.glob("*.py")):
        (folder / path.name).write_text(as_ours(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
