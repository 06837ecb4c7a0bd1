"""Writes the generated sources into the build folder: one Cython module and some C loop files per family, and CUDA's steps that are one loop."""

from __future__ import annotations

import json
from pathlib import Path

from . import entries, functions, loop_steps, pointwise, steps
from .schema import Operator, aliases, families, load, parts

PRELUDE = """# Generated from {family}.yaml and {family}.pyx of cysrc/ops/{family}: entries, dispatch, Nodes.
# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, auto_pickle=False, binding=True, initializedcheck=False
cimport cython
from libc.stdint cimport int64_t, uint64_t, int32_t, int16_t, int8_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset, memmove
from libc.stdlib cimport malloc, free
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport *
from tensorrt_lite._C.core.device cimport *
from tensorrt_lite._C.core.storage cimport *
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop, block_alloc
from tensorrt_lite._C.core.tensor cimport *
from tensorrt_lite._C.core.dispatch cimport *
from tensorrt_lite._C.core.args cimport *
from tensorrt_lite._C.core.boxing cimport recall
from tensorrt_lite._C.core.python_key import set_decomposition
from tensorrt_lite._C.core.iterator cimport *
from tensorrt_lite._C.core.text cimport dtype_text, cpp_type_text, sizes_text
from tensorrt_lite._C.core.parallel cimport *
from tensorrt_lite._C.autograd.node cimport *
from tensorrt_lite._C.autograd.operator_nodes cimport *
from tensorrt_lite._C.autograd.pointwise cimport *
from tensorrt_lite._C.autograd.forward cimport *
from tensorrt_lite._C.ops.support cimport *
from tensorrt_lite._C.operators cimport *

cdef extern from "isa.h":
    pass

attach()
cdef object _ops = ops_namespace()

"""


def exports(ops: list[Operator]) -> dict[str, str]:
    """{public name: flags}: f function, m method, n only in nn.functional's namespace."""
    table: dict[str, str] = {}
    for op in ops:
        flags = ("f" if "function" in op.variants else "") + ("m" if "method" in op.variants else "") + ("n" if "nn" in op.variants else "")
        if flags or op.variants - {"inplace"}:
            table[op.name] = flags
        for alias in aliases(op):
            table[alias] = flags
            if "inplace" in op.variants:
                table[alias + "_"] = "m"
        if "inplace" in op.variants:
            table[op.name + "_"] = "" if op.variants <= {"nn", "inplace", "out"} and "nn" in op.variants else "fm" if "function" in op.variants else "m"
    return table


def write(path: Path, text: str, written: set[Path]) -> None:
    """Write only what changed, so that the build recompiles only that."""
    written.add(path)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def generate(root: Path, out: Path, declared_rows: list[Operator] | None = None) -> dict[str, list[Path]]:
    """Generate everything below ``out`` from the rows (those of ``root``); returns {family: [C loop files]}. What an earlier run wrote and this one does not is removed."""
    source = root / "cysrc" / "ops"
    declared_rows = load(source) if declared_rows is None else declared_rows
    written: set[Path] = set()
    operators = [op for op in declared_rows if op.kind in ("pointwise", "structured", "function")]
    write(out / "operators.pxd", functions.operators_pxd(operators), written)
    write(out / "include" / "operators.h", functions.operators_header(operators), written)
    declared_steps = {declared.name: declared for declared in steps.load(source, operators)}
    steps.check_structured(list(declared_steps.values()), operators)
    for name, of_family in declared_steps.items():
        write(out / "steps" / f"{name}.pxd", steps.pxd(of_family), written)
        if of_family.has_header:
            write(out / "include" / f"{name}_steps.h", steps.header(of_family), written)
    write(out / "steps" / "__init__.pxd", "", written)
    for of_family in declared_steps.values():
        for step in (s for s in of_family.steps if s.loop is not None):
            loop_steps.check_kernels(step, root, of_family.name)
    write(out / "cuda" / "loop_steps.pyx", loop_steps.cuda(list(declared_steps.values()), root), written)
    loops: dict[str, list[Path]] = {}
    for family in families(source):
        mine = [op for op in operators if op.family == family]
        kernels = source / family / f"{family}.pyx"
        derivatives = functions.emit(family, [op for op in mine if op.kind != "pointwise"], declared_steps.get(family))
        text = PRELUDE.format(family=family)
        taken = [p for p in (*parts(source / family), kernels) if p.exists()]
        if "wants(node" in derivatives or any("wants(node" in p.read_text() for p in taken):
            text += "from tensorrt_lite._C.autograd.wanted cimport wants\n\n"  # others need not be translated anew
        text += functions.kernel_types(mine)
        text += entries.emit(family, mine, "\n".join(p.read_text() for p in sorted((source / family).glob("*.p[xy][xi]"))))
        own = [op.name for op in mine if isinstance(op.row.get("step"), dict)]
        for op in mine:
            if isinstance(op.row.get("step"), dict) and kernels.exists():
                loop_steps.check_meta(str(op.row.get("meta")), op.row["step"], kernels.read_text(), f"{family}.yaml: {op.name}")
        if own:
            text += f"from tensorrt_lite._C.steps.{family} cimport {', '.join(f'{name}_call, run_{name}' for name in own)}\n\n"
        text += "".join(f'include "kernels/{family}/{p.name}"\n' for p in taken) + "\n"
        loops[family] = []
        declared = [op for op in mine if op.kind == "pointwise"]
        if declared:
            cython, files = pointwise.emit(family, declared)
            text += cython
            for k, body in enumerate(files):
                path = out / "loops" / f"loops_{family}_{k}.c"
                write(path, body, written)
                loops[family].append(path)
        text += derivatives
        text += entries.emit_bodies(family, mine)
        if family in declared_steps:
            text += "\n" + loop_steps.cpu(declared_steps[family])
            text += "\n" + steps.boxed(declared_steps[family]) + "\n"
        if declared:
            text += "SYMBOLS = {" + ", ".join(f"\"{s}\": {f}" for s, f in pointwise.symbols(declared).items()) + "}\n"
            if kernels.exists() and "EXTRA_SYMBOLS" in kernels.read_text():
                text += "SYMBOLS.update(EXTRA_SYMBOLS)\n"
        text += f"\nEXPORTS = {json.dumps(exports([op for op in mine if entries.has_entry(op)]))}\n"
        # other rows, composed ones and factories among them, are public where the module defines their function
        others = [op for op in declared_rows if op.family == family and not (op in mine and entries.has_entry(op))]
        text += f"for _name, _flags in {json.dumps(exports(others))}.items():\n    if _name in globals():\n        EXPORTS[_name] = _flags\n"
        if kernels.exists() and "WITHOUT_ROW" in kernels.read_text():
            text += "EXPORTS.update(WITHOUT_ROW)\n"
        write(out / "ops" / f"{family}.pyx", text, written)
    for folder in ("include", "steps", "loops", "ops", "cuda"):
        for path in (out / folder).iterdir() if (out / folder).exists() else ():
            if path not in written:
                path.unlink()
    return loops
