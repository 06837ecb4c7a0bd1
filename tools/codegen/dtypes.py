"""The element types, read from cysrc/core/dtype_table.h: the one table that C, Cython, CUDA and this generator share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "cysrc" / "core" / "dtype_table.h"
_ROW = re.compile(r"^ {2}X\((.*)\)(?: \\)?$", re.M)


@dataclass(frozen=True)
class DType:
    """A row; the header's comment says what its columns mean. `type` is the loops' name, `name` Python's."""

    code: int
    type: str
    name: str
    label: str
    cpp: str
    size: int
    category: str
    compute: str
    real: str
    complex: str
    digits: int
    largest: float
    properties: frozenset[str]
    dlpack: int
    encoding: str
    cuda: str

    @property
    def has_loops(self) -> bool:
        return "LOOPS" in self.properties


def read(path: Path = TABLE) -> tuple[DType, ...]:
    """The rows in the order of their codes. ValueError for a row that is not understood."""
    rows = []
    for code, text in enumerate(_ROW.findall(path.read_text())):
        cells = [cell.strip() for cell in text.split(", ")]
        if len(cells) != 15:
            raise ValueError(f"{path.name}: a row of {len(cells)} columns: {text}")
        kind, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda = cells
        marks = frozenset(p.removeprefix("TRT_") for p in properties.split(" | ") if p != "0")
        rows.append(DType(code, kind, name.strip('"'), label.strip('"'), cpp.strip('"'), int(size), category, compute, real, complex_, int(digits), float(largest), marks, int(dlpack), encoding, cuda))
    if not rows:
        raise ValueError(f"{path.name}: no rows")
    return tuple(rows)


ALL = read()
