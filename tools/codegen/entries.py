"""Entries: a line of a table for each public form of an operator; cysrc/ops/entry.pyx makes the callable objects."""

from __future__ import annotations

import re

from .schema import DeclarationError, Operator, aliases, parse_signature

_FLAGS = {"inplace": "TRT_ENTRY_INPLACE", "out": "TRT_ENTRY_OUT", "pointwise": "TRT_ENTRY_POINTWISE", "varargs": "TRT_ENTRY_VARARGS", "named": "TRT_ENTRY_NAMED"}


def has_entry(op: Operator) -> bool:
    """Whether the row makes entries: `entry: manual` says that they are written by hand, `entry: none` that kernels and formulas alone call the operator."""
    return op.row.get("entry") not in ("manual", "none")


def forms(op: Operator) -> list[bool]:
    """The forms of an operator with an entry of their own: False what returns a new tensor or writes to out, True in place."""
    return [False] * bool(op.variants - {"inplace"}) + [True] * ("inplace" in op.variants)


def c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def needed_place(op: Operator) -> int:
    """The argument that must be given beside out=, or -1."""
    needed = op.row.get("out_needs")
    if needed is None:
        return -1
    names = [a.name for a in op.arguments]
    if needed not in names:
        raise DeclarationError(f"{op.family}.yaml: out_needs of {op.name} is {needed!r}, which is not an argument")
    return names.index(needed)


def spec(op: Operator, inplace: bool) -> str:
    """The line of one form."""
    flags = [name for name, set_ in (("inplace", inplace), ("out", "out" in op.variants and not inplace), ("pointwise", op.kind == "pointwise"),
                                     ("varargs", bool(op.row.get("starred"))), ("named", bool(op.result_names) and not inplace)) if set_]  # fmt: skip
    suffix = "_" if inplace else ""
    others = " ".join(name + suffix for name in aliases(op))
    public = op.row.get("public")
    return f"{{{op.identifier}, {' | '.join(_FLAGS[f] for f in flags) or '0'}, {-1 if inplace else needed_place(op)}, \"{op.name}{suffix}\", {c_string(others) if others else 'NULL'}, {c_string(public) if public else 'NULL'}}},"


def emit(family: str, ops: list[Operator], kernels: str) -> str:
    """Cython text that makes a family's entries; `kernels` is the family's own file, which may call some by name."""
    lines = [spec(op, inplace) for op in ops if has_entry(op) for inplace in forms(op)]
    if not lines:
        return ""
    names = [name for op in ops if has_entry(op) for inplace in forms(op) for name in (op.name + "_" * inplace, *(a + "_" * inplace for a in aliases(op)))]
    calls = set(re.findall(r"(?<![\w.])(\w+)\(", kernels))
    called = [name for name in names if name in calls]
    text = ["from tensorrt_lite._C.ops.entry cimport trt_entry_spec, add_entries", "cdef extern from *:", '    """',
            f"    static trt_entry_spec entries_{family}[] = {{", *(f"      {line}" for line in lines), "    };", '    """',
            f"    trt_entry_spec* entries_{family}", *(f"{name} = None" for name in called), f"add_entries(globals(), entries_{family}, {len(lines)})", ""]  # fmt: skip
    return "\n".join(text)


def emit_bodies(family: str, ops: list[Operator]) -> str:
    """What calls the function that a row names as `body`: it takes the public arguments as they are, `out` and whether the call is in place."""
    text: list[str] = []
    numbered = [(op, inplace) for op in ops if has_entry(op) for inplace in forms(op)]
    for op in ops:
        body = op.row.get("body")
        if not body:
            continue
        if "public" not in op.row:
            raise DeclarationError(f"{op.family}.yaml: {op.name} has a body and no public signature")
        count = len(parse_signature(op.row["public"])[1])
        given = ", ".join(f"<object>v[{i}].p" for i in range(count))
        text += [f"cdef object body_{op.name}(const trt_value* v, PyObject* out, int inplace):",
                 f"    return {body}({given}, None if out == NULL else <object>out, inplace)"]  # fmt: skip
        text += [f"entries_{family}[{i}].body = <void*>body_{op.name}" for i, (other, _) in enumerate(numbered) if other is op]
    return "\n".join([*text, ""])
