"""The distribution "torch" that `importlib.metadata` finds while the alias is in force."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution
from typing import Any

__all__ = ["METADATA", "VERSION", "find_distributions"]

# PyTorch's version whose names and numbers are meant, with a local part that says who answers.
VERSION = "2.13.0+trtlite"

METADATA = f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nSummary: tensorrt_lite, answering to PyTorch's name\n"
_FILES = {"METADATA": METADATA, "top_level.txt": "torch\n"}


class _Torch(Distribution):
    def read_text(self, filename: str) -> str | None:
        return _FILES.get(filename)

    def locate_file(self, path: Any) -> Any:
        from pathlib import Path

        import tensorrt_lite

        return Path(tensorrt_lite.__file__).parent.parent / path


def find_distributions(context: Any = None) -> Iterable[Distribution]:
    """The distribution, where the question is for it or for all."""
    name = getattr(context, "name", None)
    return [_Torch()] if name is None or name.lower() == "torch" else []
