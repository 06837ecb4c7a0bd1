"""Which kernels of cuda_src no test has launched.

    TENSORRT_LITE_CUDA_TRACE=trace <tests>; python tests/cuda/entry_points.py trace

The list is made from the headers: device functions that return nothing, are no members and that no other
device function calls are the bodies of kernels. Each
has to be called by an entry that the traced tests have loaded. Exit status 1 names those that are not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "cuda_src"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BODY = re.compile(r"(?<!static )__device__\s+(?:__forceinline__\s+|inline\s+|__noinline__\s+)?void\s+(\w+)\s*\(")


def kernel_bodies() -> dict[str, str]:
    """{function: header} of all bodies of kernels."""
    texts = {path.name: _COMMENT.sub("", path.read_text()) for path in sorted(SOURCES.glob("*.cuh"))}
    defined = {name: header for header, text in texts.items() for name in _BODY.findall(text)}
    every = "\n".join(texts.values())
    # one mention is the definition; a forward declaration or a call makes another
    return {name: header for name, header in defined.items() if len(re.findall(rf"\b{name}\b(?=\s*[<(])", every)) == len(re.findall(rf"void\s+{name}\s*\(", every))}


def main(trace: Path) -> int:
    launched = set(trace.read_text().split())
    bodies = kernel_bodies()
    missing = {name: header for name, header in bodies.items() if name not in launched}
    print(f"{len(bodies) - len(missing)} of {len(bodies)} kernels of cuda_src were launched")
    for name, header in sorted(missing.items(), key=lambda item: item[::-1]):
        print(f"not launched: {name} ({header})")
    return 1 if missing or not bodies else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
