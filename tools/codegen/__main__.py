"""`python -m tools.codegen docs | sources FOLDER | stubs FOLDER`

docs writes docs/operators.md; sources writes the generated sources into FOLDER, for reading; stubs writes
FOLDER/tensorrt_lite/_operators.pyi for the package built in FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .generate import generate
from .schema import load
from .stubs import write_documentation, write_stubs

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["docs"]:
        print(write_documentation(ROOT, load(ROOT / "cysrc" / "ops")))
        return 0
    if len(arguments) == 2 and arguments[0] == "stubs":
        print(write_stubs(ROOT, Path(arguments[1]).resolve()))
        return 0
    if len(arguments) == 2 and arguments[0] == "sources":
        for family, files in generate(ROOT, Path(arguments[1]).resolve()).items():
            print(family, len(files), "loop files")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
