"""The declarations that the built package brings: `_C/declarations.py` and `_C/declared_loops.py`, imported by the first that asks, and what `_C` itself says of calls at start.

Text that can be told from a row (dtypes, promotion, broadcasting) is added to its docstring here.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterable
from typing import Any

from .entries import has_entry
from .pointwise import loops_of
from .schema import COMPLEX, DTYPES, MODULES, Operator, aliases, autocast_letters, contract, schema_text, tags_of

_EXPRESSIONS = {"expr": "", "int_expr": "integer", "complex_expr": "complex", "bool_expr": "bool"}
_KEPT = ("overloads", "starred", "by_name", "opaque", "spellings", "promote", "autocast", "forward", "samples", "symbol", "node", "dims", "shape", "dtype", "require", "let", "forms", "wraps", "selects")


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def types_of(op: Operator) -> str:
    """The dtypes that a pointwise operator takes, in words; "" where it takes all."""
    types = set(op.dtypes)
    if types == set(DTYPES) or "float" in str(op.row.get("promote", "")):  # integers and bools are converted
        return ""
    if types <= {"f32", "f64"}:
        return "float32 and float64"
    kinds = (("bool", "b8"), ("integers", "i32"), ("floats", "f32"), ("complex numbers", "c64"))
    return listed([word for word, some in kinds if some in types])


def facts(op: Operator) -> str:
    """What the row of a pointwise operator says about shapes and dtypes."""
    tensors = ["input" if a.name == "self" else a.name for a in op.tensors]
    promote, only, types = str(op.row.get("promote", "")), op.row.get("tensor_only"), types_of(op)
    said = []
    if len(tensors) == 1:
        said.append(f"input: (*), of {types.replace(' and', ' or') or 'any dtype'}; the result has its shape")
    else:
        result = "bool" if promote == "bool" else "" if op.row.get("first_bool") or "same_dtype" in str(op.row.get("checks", "")) else "of their promoted dtype"
        said.append(f"{listed(tensors)} broadcast, RuntimeError where they cannot; the result is {result}" if result else f"{listed(tensors)} broadcast, RuntimeError where they cannot")
        numbers = [n for n, a in zip(tensors, op.tensors) if a.name not in str(only or "").split(", ")]
        if only is not True and numbers and op.row.get("entry") != "manual" and "public" not in op.row:
            said.append(f"{' or '.join(numbers)} may be a number")
    if len(tensors) == 1 and promote == "bool":
        said.append("The result is bool")
    if "float" in promote:
        said.append("Integers and bools give the default floating dtype")
        if not set(op.dtypes) & set(COMPLEX):
            said.append("NotImplementedError for complex numbers")
    if "real" in promote:
        said.append("Complex numbers give real ones")
    if types and not (op.row.get("bool_error") or op.row.get("int_error") or "subtraction" in str(op.row.get("checks", ""))):
        said.append("NotImplementedError for other dtypes" if len(tensors) == 1 else f"NotImplementedError for other dtypes than {types}")
    return ". ".join(said) + "."


def documentation(op: Operator) -> str | None:
    """A row's docstring, None where the body has it."""
    text = op.row.get("doc")
    if text is None:
        return None
    public = op.variants and not op.name.startswith("_")
    return "\n".join([text.strip(), *([facts(op)] if op.kind == "pointwise" and public else [])])


def declaration(op: Operator) -> dict[str, Any]:
    """What stands in the table: only what the row has."""
    found: dict[str, Any] = {"kind": op.kind, "family": op.family, "schema": op.row.get("public") or schema_text(op).replace(op.name, op.name.rpartition(".")[2], 1)}
    found["variants"] = tuple(sorted(op.variants - {""}))
    if aliases(op):
        found["aliases"] = tuple(aliases(op))
    if text := documentation(op):
        found["doc"] = text
    if op.kind not in ("composed", "factory") and not has_entry(op):
        found["manual"] = True
    if op.row.get("view"):
        found["view"] = True
    if op.kind == "pointwise":
        found["dtypes"] = tuple(op.dtypes)
        found["expressions"] = {kind: str(op.row[key]) for key, kind in _EXPRESSIONS.items() if key in op.row}
    if op.backward:
        found["derivatives"] = op.backward
    if "overloads" not in op.row and contract(op) != [found["schema"]]:
        found["overloads"] = tuple(contract(op))
    if tags := tags_of(op):
        found["tagged"] = tuple(tags)
    for key in _KEPT:
        if op.row.get(key):
            value = op.row[key]
            found[key] = tuple(value) if isinstance(value, list) else value
    return found


def declarations_source(operators: Iterable[Operator]) -> str:
    """`_C/declarations.py`: ROWS {name: what the row says}, as JSON: a string is read in a tenth of the time that Python takes to compile such a table."""
    table = {op.public_name: declaration(op) for op in operators}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(what)}" for key, what in sorted(table.items()))
    assert "'''" not in lines
    return f'"""Generated from cysrc/ops: what the rows say. Read it by tensorrt_lite._declared.declarations."""\n\nfrom json import loads\n\nROWS = loads(r\'\'\'{{\n{lines}\n}}\'\'\')\n'


def loops_source(operators: Iterable[Operator]) -> str:
    """`_C/declared_loops.py`: LOOPS, from which the kernels of devices are rendered."""
    lines = "\n".join(f"    {key!r}: {what!r}," for key, what in sorted(loops(operators).items()))
    return f'"""Generated from cysrc/ops: the loops of pointwise operators, from which kernels of devices are rendered."""\n\nLOOPS = {{\n{lines}\n}}\n'


def loops(operators: Iterable[Operator]) -> dict[str, Any]:
    """{loop: (operands, parameters, operands that are bool, {dtypes: expression}, output: "same", "bool" or "real")} of pointwise operators and of their
    fused gradients."""
    table = {}
    for op in operators:
        if op.kind != "pointwise":
            continue
        forward, fused = loops_of(op)
        for loop in (forward, *fused.values()):
            texts: dict[str, list[str]] = {}
            for dtype in loop.dtypes:
                texts.setdefault(loop.expression(dtype), []).append(dtype)
            output = "bool" if loop.bool_out else "real" if loop.real_out else "same"
            conditions = tuple(n for n in loop.operands if loop.operand_type(n, "f32") == "b8")
            table[loop.name] = (tuple(loop.operands), tuple(loop.params), conditions, {tuple(v): k for k, v in texts.items()}, output)
    return table


def public_paths(op: Operator) -> list[str]:
    """Where users find the operator: `add`, `Tensor.add`, `linalg.norm`, `nn.functional.relu`."""
    if "." in op.name:
        return [op.name]
    names = [op.public_name, *aliases(op)]
    paths = [*names, *(f"Tensor.{n}" for n in names)] if op.variants & {"function", "method", "inplace", ""} or not op.variants else []
    for module in sorted(MODULES):
        if module in op.variants or op.name.startswith(f"{module}_"):
            paths += [f"{module}.{n.removeprefix(module + '_')}" for n in names]
    return paths + [f"nn.functional.{n}" for n in names] if "nn" in op.variants else paths


def public_source(operators: Iterable[Operator]) -> str:
    """Lines of `_C/__init__.py`: by public path what calls need to know before anybody asks for a declaration."""
    operators = list(operators)
    manners: dict[str, set[str]] = {"BY_NAME": set(), "OPAQUE": set()}
    spellings = {}
    factories = set()
    for op in operators:
        paths = public_paths(op)
        if op.kind == "factory":
            factories.add(op.name)
        for key, found in manners.items():
            said = op.row.get(key.lower())
            found.update(p for p in paths if said is True or said == "method" and p.startswith("Tensor."))
        if "spellings" in op.row:
            spellings.update(dict.fromkeys(paths, op.row["spellings"]))
    text = "# What the rows say of calls: by public path, factories by name.\n"
    for name, found in (*manners.items(), ("FACTORIES", factories)):
        text += f"{name} = {pprint.pformat(found, width=160, compact=True)}\n"
    text += f"SPELLINGS = {pprint.pformat(spellings, width=160, compact=True)}\n"
    text += f"AUTOCAST = {pprint.pformat(composed_autocast(operators), width=160, compact=True)}\n"
    return text + f"COMPOSED = {pprint.pformat(composed_names(operators), width=160, compact=True)}\n"


def composed_autocast(operators: Iterable[Operator]) -> dict[str, str]:
    """{composed row: its policies under autocast, a letter for the CPU and one for CUDA}."""
    return {op.name: autocast_letters(op).strip('"') for op in operators if op.kind == "composed" and "autocast" in op.row}


def composed_names(operators: Iterable[Operator]) -> dict[str, dict[str, str]]:
    """{family: {name of a function without generated code: f function of the package, m method of Tensor}}."""
    found: dict[str, dict[str, str]] = {}
    for op in operators:
        if op.kind in ("composed", "factory") and "." not in op.name:
            found.setdefault(op.family, {})[op.name] = "f" * ("function" in op.variants) + "m" * ("method" in op.variants)
    return found
