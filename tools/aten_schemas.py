"""PyTorch's schemas of the operators that the rows name, for the census: tools/aten_schemas.txt.

    python -m tools.aten_schemas        # needs the PyTorch whose schemas are meant

A line is a schema as `str(op._schema)` prints it, without `aten::`; those of core operators begin with `core `. Kept are all overloads of core
operators and of every name that a row has. Run it again when a row gets a name that the file lacks: until then the census counts the name as
one outside of ATen. Nothing but tools and tests reads the file; the package does not.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from tools.codegen.schema import load, split_commas

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tools" / "aten_schemas.txt"


def names_of_rows() -> set[str]:
    """Names of operators, in place, too, that rows have now."""
    found: set[str] = set()
    for op in load(ROOT / "cysrc" / "ops"):
        for text in (op.row["signature"], *op.row.get("overloads", ())):
            found.add(text.partition("(")[0].partition(".")[0].strip())
        found |= {op.name, op.public_name}
    found |= {name + "_" for name in found} | {name.rstrip("_") for name in found}
    return found - {""}


@cache
def schemas() -> dict[str, str]:
    """{`sum.dim_IntList`: schema text} of the saved file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    texts = (line.removeprefix("core ") for line in lines)
    return {text.partition("(")[0]: text for text in texts}


@cache
def core() -> frozenset[str]:
    """Names of core operators' overloads: `sum.dim_IntList`."""
    return frozenset(line.removeprefix("core ").partition("(")[0] for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("core "))


@cache
def names() -> frozenset[str]:
    """Names of operators without those of overloads."""
    return frozenset(name.partition(".")[0] for name in schemas())


def overloads(name: str) -> list[str]:
    """The schema texts of a name's overloads."""
    return [text for full, text in schemas().items() if full.partition(".")[0] == name]


def arguments_of(text: str) -> list[str]:
    """`int[] dim` and the like: arguments without defaults and marks, sizes of lists left out, SymInt as int."""
    inside = text[text.index("(") + 1 : text.rindex(") ->")]
    found = []
    for part in split_commas(inside):
        part = re.sub(r"\((\w+!?|\w+ -> \*)\)", "", part.partition("=")[0].strip()).replace("SymInt", "int")
        found.append(re.sub(r"\[\d+\]", "[]", part))
    return found


def main() -> None:
    torch = importlib.import_module("torch")
    wanted = names_of_rows()
    lines = []
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        base, _, overload = name.partition(".")
        if space != "aten":
            continue
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        is_core = torch.Tag.core in op.tags
        if base in wanted or is_core or any(torch.Tag.core in getattr(getattr(torch.ops.aten, base), o).tags for o in getattr(torch.ops.aten, base).overloads()):
            lines.append(("core " if is_core else "") + str(op._schema).removeprefix("aten::"))
    FILE.write_text("\n".join(sorted(lines, key=lambda line: line.removeprefix("core "))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
