"""Operators of C++ libraries that published packages bring, written over this package's operators.

Such a library is linked with PyTorch's C++ runtime and cannot be loaded. `torch.ops.load_library` of one of them registers the operators here instead.
"""

from __future__ import annotations

import importlib
import os

__all__ = ["load_replacement"]

# (package, file without its endings) -> the module that registers the operators
_MODULES = {("torchvision", "_C"): "vision", ("torchvision", "image"): "vision_image"}


def load_replacement(path: str) -> bool:
    """Register the operators of the library at `path`, where there is a replacement; whether there is."""
    folder, file = os.path.split(path)
    module = _MODULES.get((os.path.basename(folder), file.partition(".")[0]))
    if module is None:
        return False
    importlib.import_module(f"{__name__}.{module}")
    return True
