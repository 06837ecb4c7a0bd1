"""What the compiled core is made of, as one digest: the builder leaves it in the core, `tensorrt_lite.info` compares a checkout with it.

Imports nothing of this project, so that an installed package can run it from the checkout that it lies in.
"""

import hashlib
from pathlib import Path

_FOLDERS = ("cysrc", "cuda_src", "tools/codegen")
_SUFFIXES = frozenset((".pyx", ".pxd", ".py", ".h", ".c", ".yaml", ".cu", ".cuh"))


def core_sources_digest(root: Path) -> str:
    """A digest of the names and texts of all files below `root` that a build reads."""
    found = hashlib.sha256()
    for path in sorted([root / "tools" / "build_core.py", *(p for folder in _FOLDERS for p in (root / folder).rglob("*") if p.suffix in _SUFFIXES)]):
        found.update(f"{path.relative_to(root)}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:32]
