"""How far rows are from being the contract of ATen's operators: counts for `python -m tools.census`.

What PyTorch has comes from tools/aten_schemas.txt (tools/aten_schemas.py makes it), so a count needs no PyTorch.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tools import aten_schemas
from tools.codegen.schema import Operator, load, schema_text

ROOT = Path(__file__).resolve().parent.parent
# Lists of operators' names that stand for what a row could say.
NAME_LISTS = {
    "_DYNAMIC": "tensorrt_lite/_subclasses/fake_tensor.py",
    "SIZED": "cysrc/core/python_key.pyx",
    "CHOOSERS": "cysrc/core/storage_types.pyx",
    "TAKE_STORAGE_ONLY": "cysrc/core/args.pyx",
    "_RANDOM": "tensorrt_lite/_transforms/functionalize.py",
    "_RESHAPING": "tensorrt_lite/_transforms/functionalize.py",
    "_RANDOM ": "tensorrt_lite/_transforms/rules_views.py",
}
# Schemas that differ from PyTorch's, and why.
DIFFERENT: dict[str, str] = {}


@cache
def rows() -> tuple[Operator, ...]:
    """The rows that a dispatch mode sees: those with a kernel of their own."""
    return tuple(op for op in load(ROOT / "cysrc" / "ops") if op.kind not in ("composed", "factory") and not op.row.get("composed"))


def schemas_of(op: Operator) -> list[str]:
    """The schemas of a row's functional forms, the row's own where it declares no overloads."""
    return list(op.row.get("overloads") or [schema_text(op)])


def outside_aten() -> list[str]:
    """Rows whose name ATen lacks, and that are in no namespace."""
    found = []
    for op in rows():
        names = {text.partition("(")[0].partition(".")[0] for text in schemas_of(op)}
        if not any(name in aten_schemas.names() or name.startswith("trtl_") for name in names):
            found.append(op.name)
    return found


def other_arguments() -> list[str]:
    """Schemas of rows whose arguments, by types and names, are not those of PyTorch's overload."""
    found = []
    for op in rows():
        for text in schemas_of(op):
            name = text.partition("(")[0]
            known = aten_schemas.schemas()
            inplace = name.partition(".")[0] + "_" + "".join(name.partition(".")[1:])
            theirs = known.get(name) or known.get(inplace)
            if theirs is None and name.partition(".")[0] not in aten_schemas.names():
                continue
            if theirs is None or aten_schemas.arguments_of(text) != aten_schemas.arguments_of(theirs):
                found.append(f"{op.name}: {text}")
    return found


def core_missing() -> list[str]:
    """Names of core ATen operators that no row with a kernel and no factory has."""
    present = {name for op in rows() for text in schemas_of(op) for name in [text.partition("(")[0].partition(".")[0]]}
    present |= {op.public_name for op in rows()} | {name + "_" for name in present}
    present |= {op.name for op in load(ROOT / "cysrc" / "ops") if op.kind == "factory"}
    return sorted({name.partition(".")[0] for name in aten_schemas.core()} - present)


def _with_any(generated: bool) -> list[str]:
    found = []
    for op in load(ROOT / "cysrc" / "ops"):
        if (op.kind not in ("composed", "factory")) == generated:
            texts = (op.row["signature"], op.row.get("public", ""), *op.row.get("overloads", ()))
            found += [op.name] if any(re.search(r"\bAny\b", text) for text in texts) else []
    return found


def name_lists() -> list[str]:
    """Lists of names by hand that are still there."""
    return [f"{path}: {name.strip()}" for name, path in NAME_LISTS.items() if re.search(rf"^(cdef \w+ )?{name.strip()}\b.*=", (ROOT / path).read_text(encoding="utf-8"), re.M)]


def other_schemas() -> list[str]:
    """Overloads that PyTorch has, too, whose schema is another text than PyTorch's, but for the listed ones."""
    from tensorrt_lite._declared import aten as _aten
    from tensorrt_lite._declared import declarations

    found = []
    for name in sorted({n for row in declarations.names() if "." not in row for n in (row, row + "_")} & aten_schemas.names()):
        packet = _aten.packet(name)
        for overload in packet.overloads() if packet is not None else ():
            full = name if overload == "default" else f"{name}.{overload}"
            theirs = aten_schemas.schemas().get(full)
            form = getattr(packet, overload, None)
            if theirs is None or form is None or full in DIFFERENT:
                continue
            try:
                ours = str(_aten.schema_of(form)).removeprefix("aten::")
            except (AttributeError, RuntimeError) as error:
                ours = str(error)
            if ours != theirs:
                found.append(f"{full}\n        {ours}\n        {theirs}")
    return found


COUNTS = {
    "names outside ATen without a namespace": outside_aten,
    "schemas of rows with other arguments than ATen's": other_arguments,
    "core ATen operators that are none here": core_missing,
    "generated rows with Any": lambda: _with_any(True),
    "composed rows with Any": lambda: _with_any(False),
    "lists of operators' names by hand": name_lists,
    "schemas that differ from PyTorch's text": other_schemas,
}
