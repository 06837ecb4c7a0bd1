"""Steps: what a family does per device beneath its checks, declared in cysrc/ops/<family>/steps.yaml.

A row's kernel is the same for all devices: it checks, makes the result and calls `run_<step>(device_type, ...)`. A module of a device puts its own function
in the place by `set_<step>(DEV_CUDA, f)`, which Cython checks against the declared type. Meta tensors have no elements, so a step that returns nothing is
nothing there; a device without the step is an error that names both (core/dispatch.pyx).

What a step takes besides tensors is declared here too, once for the loops in C, the Cython modules and the text of the CUDA units: `structs`, `constants`,
and `operations`, the enumerations that choose a loop or a functor. They become <family>_steps.h and part of steps/<family>.pxd. Of an operation X
the header has X_SUM, X_COUNT and X_FOR_EACH(ROW), over which a table of loops and the check of the functors are written: an operation that one of
them lacks does not compile. A row of the kind `structured` (schema.py) names a step and an operation; its kernel is written by `structured_kernel`.
A step that is one loop (`loop`) has its functions written too: loop_steps.py.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dtypes, loop_steps, schema, shapes
from .loop_steps import Loop
from .schema import DTYPE_SETS, Argument, DeclarationError, Operator, read_yaml

STEP_PLACES = 1021  # TRT_STEPS in core/dispatch.h is at least this
_KEYS = {"step", "arguments", "returns", "doc", "loop"}
_ARGUMENT = re.compile(r"^(?P<type>[\w ]+?[\s*]+)(?P<name>\w+)$")


@dataclass
class Step:
    """One typed function per device."""

    name: str
    arguments: list[tuple[str, str]]  # (Cython type, name)
    returns: str
    doc: str
    loop: Loop | None = None
    place: int = -1

    @property
    def parameters(self) -> str:
        return ", ".join(f"{t} {n}" for t, n in self.arguments)


@dataclass
class Operations:
    """An enumeration: (name, types that it takes, what it computes) in the order of the kernels' tables; results: of some, what they give (RESULTS)."""

    prefix: str
    rows: list[tuple[str, str, str]]
    doc: str
    results: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.rows]


@dataclass
class Field:
    """A member of a struct, `count` of them side by side where that is not 0."""

    type: str
    name: str
    count: str
    doc: str


@dataclass
class Struct:
    """What a step, a loop or a CUDA kernel takes, with its size in bytes."""

    name: str
    fields: list[Field]
    doc: str
    size: int
    align: int
    offsets: list[int]


@dataclass
class Family:
    """The steps of one family, what they take, and the cimport lines of types from elsewhere."""

    name: str
    cimports: list[str]
    steps: list[Step]
    constants: list[tuple[str, int, str]] = field(default_factory=list)
    operations: list[Operations] = field(default_factory=list)
    structs: list[Struct] = field(default_factory=list)

    @property
    def has_header(self) -> bool:
        return bool(self.constants or self.operations or self.structs)


def parse_step(row: dict[str, Any], family: str) -> Step:
    name = row.get("step")
    if not name or set(row) - _KEYS or "arguments" not in row or not row.get("doc"):
        raise DeclarationError(f"{family}/steps.yaml: {name or row}: a step has 'step', 'arguments', 'doc' and may have 'returns' and 'loop'")
    arguments = []
    for part in row["arguments"].split(","):
        found = _ARGUMENT.match(part.strip())
        if not found:
            raise DeclarationError(f"{family}/steps.yaml: {name}: not an argument: {part.strip()!r}")
        arguments.append((found["type"].strip(), found["name"]))
    returns = row.get("returns", "int")
    if returns not in ("int", "object", "TensorBase"):
        raise DeclarationError(f"{family}/steps.yaml: {name} returns {returns!r}: choose from int, object, TensorBase")
    loop = loop_steps.parse_loop(row["loop"], f"{family}: {name}") if "loop" in row else None
    return Step(name, arguments, returns, " ".join(row["doc"].split()), loop)


# (bytes, what C calls it); the CUDA compiler's kernels have long long, and no <stdint.h>
_MEMBERS = {"double": (8, "double"), "float": (4, "float"), "int": (4, "int"), "int32_t": (4, "int"), "int64_t": (8, "TRT_INT64"), "uint8_t": (1, "unsigned char")}
_FIELD = re.compile(r"^(?P<type>[\w ]+?[\s*]+)(?P<name>\w+)(?:\[(?P<count>\w+)\])?$")


def described(entry: Any, where: str) -> list[tuple[str, str]]:
    """[(name, text)] of a list of names and of `name: text`."""
    found = []
    for item in entry or []:
        pairs = item.items() if isinstance(item, dict) else [(item, "")]
        found += [(str(name), " ".join(str(text or "").split())) for name, text in pairs]
    if len({name for name, _ in found}) != len(found):
        raise DeclarationError(f"{where}: a name is declared twice")
    return found


# What an operation gives where that is declared: the type of the result by the type of the operand
RESULTS = {"same": lambda row: row.type, "real": lambda row: row.real, "bool": lambda row: "b8", "int64": lambda row: "i64"}


def parse_operations(prefix: str, declared: dict[str, Any], family: str) -> Operations:
    rows, results = [], {}
    for name, text in described(declared.get("names"), f"{family}/steps.yaml: operations of {prefix}"):
        kinds, _, doc = text.partition(";")
        types, arrow, result = (part.strip() for part in kinds.partition("->"))
        types = types or "all"
        if types not in DTYPE_SETS or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or arrow and result not in RESULTS:
            raise DeclarationError(f"{family}/steps.yaml: {prefix}_{name}: an operation is 'NAME: types -> result; what it computes', with types of {', '.join(DTYPE_SETS)} "
                                   f"and, where there is one, a result of {', '.join(RESULTS)}")  # fmt: skip
        rows.append((name, types, doc.strip()))
        if arrow:
            results[name] = result
    return Operations(prefix, rows, " ".join(str(declared.get("doc", "")).split()), results)


def parse_struct(declared: dict[str, Any], family: str, constants: dict[str, int], structs: dict[str, Struct]) -> Struct:
    """A struct without holes, so that its size tells whether two compilers agree on it."""
    name = declared.get("struct")
    where = f"{family}/steps.yaml: {name or declared}"
    if not name or set(declared) - {"struct", "doc", "fields"} or not declared.get("doc"):
        raise DeclarationError(f"{where}: a struct has 'struct', 'doc' and 'fields'")
    fields, offsets, size, align = [], [], 0, 1
    for text, doc in described(declared.get("fields"), where):
        found = _FIELD.match(text)
        kind = found["type"].strip() if found else ""
        if found and kind.endswith("*"):
            each, alignment = 8, 8
        elif kind in _MEMBERS:
            each = alignment = _MEMBERS[kind][0]
        elif kind in structs:
            each, alignment = structs[kind].size, structs[kind].align
        else:
            raise DeclarationError(f"{where}: not a member: {text!r}; types are {', '.join(_MEMBERS)}, structs from above and pointers")
        count = found["count"] or ""
        if count and not count.isdigit() and count not in constants:
            raise DeclarationError(f"{where}: {found['name']}[{count}]: not a number nor a constant of the file")
        if size % alignment:
            raise DeclarationError(f"{where}: {found['name']} would leave a hole after {size} bytes: order the members by size")
        fields.append(Field(kind, found["name"], count, doc))
        offsets.append(size)
        size += each * (int(constants.get(count, count)) if count else 1)
        align = max(align, alignment)
    return Struct(name, fields, " ".join(declared["doc"].split()), -(-size // align) * align, align, offsets)


def parse_family(name: str, declared: Any) -> Family:
    if not isinstance(declared, dict):
        raise DeclarationError(f"{name}/steps.yaml: {'the file is empty' if declared is None else 'not a mapping'}; it declares steps, structs, operations or constants")
    for key in ("steps", "structs"):
        for row in declared.get(key) or ():
            if not isinstance(row, dict):
                raise DeclarationError(f"{name}/steps.yaml: {row!r} below {key} is no row, which begins with '- {key[:-1]}: name'")
    if unknown := set(declared) - {"cimport", "steps", "constants", "operations", "structs"}:
        raise DeclarationError(f"{name}/steps.yaml: unknown keys {sorted(unknown)}")
    constants = []
    for constant, text in described(declared.get("constants"), f"{name}/steps.yaml: constants"):
        value, _, doc = text.partition(";")
        constants.append((constant, int(value), doc.strip()))
    values = {constant: value for constant, value, _ in constants}
    structs: dict[str, Struct] = {}
    for row in declared.get("structs", []):
        struct = parse_struct(row, name, values, structs)
        structs[struct.name] = struct
    operations = [parse_operations(prefix, row, name) for prefix, row in declared.get("operations", {}).items()]
    return Family(name, declared.get("cimport", []), [parse_step(row, name) for row in declared.get("steps", [])], constants, operations, list(structs.values()))


def add_own_steps(declared: dict[str, Any], operators: list[Operator], family: str) -> None:
    """Add the steps that rows declare themselves to what the family's steps.yaml has."""
    for op in operators:
        if isinstance(op.row.get("step"), dict):
            struct, step = loop_steps.own_declaration(op.name, op.row["step"], [a.name for a in op.tensors], f"{family}.yaml: {op.name}")
            declared.setdefault("structs", []).append(struct)
            declared.setdefault("steps", []).append(step)


def load(folder: Path, operators: list[Operator] | None = None) -> list[Family]:
    """The steps of all families below `folder`, each with its place in the table: by name, so that a new one does not move the others."""
    families = []
    taken: set[int] = set()
    names: set[str] = set()
    by_family: dict[str, list[Operator]] = {}
    for op in schema.load(folder) if operators is None else operators:
        by_family.setdefault(op.family, []).append(op)
    for name in schema.families(folder):
        path = folder / name / "steps.yaml"
        declared = read_yaml(path) if path.exists() else {}
        if isinstance(declared, dict):
            add_own_steps(declared, by_family.get(name, []), name)
        if declared == {}:
            continue
        family = parse_family(name, declared)
        structs = {struct.name: struct for struct in family.structs}
        for step in family.steps:
            if step.loop is not None:
                loop_steps.check_loop(step, structs, name)
            if step.name in names:
                raise DeclarationError(f"{name}/steps.yaml: the step {step.name} is declared twice")
            names.add(step.name)
            step.place = zlib.crc32(step.name.encode()) % STEP_PLACES
            while step.place in taken:
                step.place = (step.place + 1) % STEP_PLACES
            taken.add(step.place)
        families.append(family)
    return families


def pxd(family: Family) -> str:
    """Of each step its type, the function that puts a device's in its place, the one that calls it, and whether a device has one."""
    text = [f"# Generated from cysrc/ops/{family.name}/steps.yaml: the steps of the family, one typed function per device.", "from libc.stdint cimport int64_t, uint64_t",
            "from tensorrt_lite._C.core.tensor cimport TensorBase", "from tensorrt_lite._C.core.device cimport DEV_META",
            "from tensorrt_lite._C.core.dispatch cimport CORE, set_step, step_of", *family.cimports, ""]  # fmt: skip
    text += pxd_of_header(family)
    for step in family.steps:
        failing = " except -1" if step.returns == "int" else ""
        types = ", ".join(t for t, _ in step.arguments)
        passed = ", ".join(n for _, n in step.arguments)
        text += [f"# {step.doc}",
                 f"ctypedef {step.returns} (*{step.name}_step)({types}){failing}",
                 f"cdef inline void set_{step.name}(int device_type, {step.name}_step function) noexcept:",
                 f"    set_step({step.place}, b\"{step.name}\", device_type, <void*>function)",
                 f"cdef inline bint has_{step.name}(int device_type) noexcept:",
                 f"    return CORE.steps[{step.place}].functions[device_type] != NULL",
                 f"cdef inline {step.returns} run_{step.name}(int device_type, {step.parameters}){failing}:"]  # fmt: skip
        if step.returns == "int":
            text += ["    if device_type == DEV_META:", "        return 0"]
        text += [f"    return (<{step.name}_step>step_of({step.place}, b\"{step.name}\", device_type))({passed})", ""]
    return "\n".join(text)


def pxd_of_header(family: Family) -> list[str]:
    """What Cython knows of <family>_steps.h."""
    if not family.has_header:
        return []
    text = [f'cdef extern from "{family.name}_steps.h" nogil:']
    enumerators = [constant for constant, _, _ in family.constants]
    for o in family.operations:
        enumerators += [*(f"{o.prefix}_{name}" for name in o.names), f"{o.prefix}_COUNT"]
    if enumerators:
        text += ["    enum:", *(f"        {name}" for name in enumerators)]
    for o in family.operations:
        text += [f"    const char* const* {o.prefix.lower()}_functors", f"    bint {o.prefix.lower()}_takes(int operation, int dtype)"]
        text += [f"    int {o.prefix.lower()}_gives(int operation, int dtype)"] if o.results else []
    for struct in family.structs:
        text.append(f"    ctypedef struct {struct.name}:")
        text += [f"        {member(f, {'uint8_t': 'unsigned char'})}" for f in struct.fields]
    return [*text, ""]


def member(f: Field, types: dict[str, str]) -> str:
    """`const char* x`, `long long size[12]`: a member as C and Cython write it, with `types` in the place of those of the declaration."""
    kind = re.sub(r"\w+", lambda word: types.get(word[0], word[0]), f.type).replace(" *", "*")
    return f"{kind} {f.name}" + (f"[{f.count}]" if f.count else "")


_BOXED = {"TensorBase": "(alias_of({0}) if {0} is not None else None)", "const Scalar*": "(scalar_object({0}) if {0} != NULL else None)"}


def boxed(family: Family) -> str:
    """Of each step the function of its type that calls a custom device's Python function, for the family's module; and what its structs hold."""
    names = ", ".join([f"{step.name}_step" for step in family.steps] + [struct.name for struct in family.structs])
    text = ["# ---- steps as Python functions of custom devices", "from tensorrt_lite._C.core.args cimport scalar_object", "from tensorrt_lite._C.core.dispatch cimport box_step, call_step",
            "from tensorrt_lite._C.core.tensor cimport alias_of", *family.cimports, f"from tensorrt_lite._C.steps.{family.name} cimport {names}", ""]  # fmt: skip
    init = []
    for step in family.steps:
        values = [_BOXED.get(t, "<size_t>{0}" if t.endswith("*") else "{0}").format(n) for t, n in step.arguments]
        call = f"call_step({step.place}, ({', '.join(values)},))"
        text.append(f"cdef {step.returns} box_{step.name}({step.parameters}){' except -1' if step.returns == 'int' else ''}:")
        text += [f"    result = {call}", "    return 0 if result is None else <int>result", ""] if step.returns == "int" else [f"    return {'<TensorBase?>' * (step.returns == 'TensorBase')}{call}", ""]
        init.append(f'box_step({step.place}, b"{step.name}", b"{step.parameters}", <void*><{step.name}_step>box_{step.name})')
    structs = {struct.name: [(f.name, f.type, int(dict((n, v) for n, v, _ in family.constants).get(f.count, f.count or 0))) for f in struct.fields] for struct in family.structs}
    enumerators = [name for name, _, _ in family.constants]
    for o in family.operations:
        enumerators += [f"{o.prefix}_{name}" for name in o.names]
    if enumerators:
        text.append(f"from tensorrt_lite._C.steps.{family.name} cimport {', '.join(enumerators)}")
    return "\n".join([*text, *init, f"STEP_STRUCTS = {structs!r}", f"STEP_CONSTANTS = {{{', '.join(f'{n!r}: {n}' for n in enumerators)}}}", ""])


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def header(family: Family) -> str:
    """<family>_steps.h: for C, and for the CUDA compiler, which has no headers of the system."""
    guard = f"TRT_{family.name.upper()}_STEPS_H"
    text = [f"/* Generated from cysrc/ops/{family.name}/steps.yaml: what the family's steps, loops and CUDA kernels take. */", f"#ifndef {guard}", f"#define {guard}",
            "#ifdef __cplusplus", "#define TRT_INT64 long long", "#define TRT_SAME_LAYOUT(CONDITION, TEXT) static_assert(CONDITION, TEXT)", "#else", "#include <stddef.h>",
            "#include <stdint.h>", "#define TRT_INT64 int64_t",
            "#define TRT_SAME_LAYOUT(CONDITION, TEXT) _Static_assert(CONDITION, TEXT)", "#endif", ""]  # fmt: skip
    text += [f"enum {{ {name} = {value} }};" + (f" /* {doc} */" if doc else "") for name, value, doc in family.constants]
    for o in family.operations:
        lower = o.prefix.lower()
        text += ["", f"/* {o.doc or lower}. */", "enum {"]
        text += [f"  {o.prefix}_{name}," + (f" /* {doc} */" if doc else "") for name, _, doc in o.rows]
        text += [f"  {o.prefix}_COUNT", "};", "/* ROW(OPERATION, loops, Functor, TYPES) of each, in this order. */"]
        text += [f"#define {o.prefix}_FOR_EACH(ROW) " + " ".join(f"ROW({name}, {name.lower()}, {camel(name)}, {types.upper()})" for name, types, _ in o.rows)]
        masks = [sum(1 << row.code for row in dtypes.ALL if row.type in DTYPE_SETS[types]) for _, types, _ in o.rows]
        text += ["#ifndef __cplusplus", f"static const char *const {lower}_functors[] = {{{', '.join(chr(34) + camel(name) + chr(34) for name in o.names)}}};",
                 f"static inline int {lower}_takes(int operation, int dtype) {{ /* bits by the code of the type */",
                 f"  static const unsigned types[] = {{{', '.join(map(hex, masks))}}};", "  return types[operation] >> dtype & 1;", "}"]  # fmt: skip
        if o.results:
            code_of = {row.type: row.code for row in dtypes.ALL}
            codes = [[code_of[RESULTS[o.results[name]](row)] if name in o.results else -1 for row in dtypes.ALL] for name in o.names]
            text += [f"static inline int {lower}_gives(int operation, int dtype) {{ /* the code of the result's type, or -1 where it is the caller's choice */",
                     f"  static const signed char results[][{len(dtypes.ALL)}] = {{{', '.join('{' + ', '.join(map(str, row)) + '}' for row in codes)}}};",
                     "  return results[operation][dtype];", "}"]  # fmt: skip
        text.append("#endif")
    for struct in family.structs:
        text += ["", f"/* {struct.doc} */", "typedef struct {"]
        for f in struct.fields:
            text.append(f"  {member(f, {name: c for name, (_, c) in _MEMBERS.items()})};" + (f" /* {f.doc} */" if f.doc else ""))
        text += [f"}} {struct.name};", f'TRT_SAME_LAYOUT(sizeof({struct.name}) == {struct.size}, "{struct.name} differs from its declaration");', "#ifndef __cplusplus"]
        text += [f'TRT_SAME_LAYOUT(offsetof({struct.name}, {f.name}) == {at}, "{struct.name}.{f.name} lies elsewhere than declared");' for f, at in zip(struct.fields, struct.offsets)]
        text.append("#endif")
    for step in family.steps:
        text += ["", *loop_steps.header(step)] if step.loop is not None else []
    return "\n".join([*text, "", "#undef TRT_SAME_LAYOUT", "#undef TRT_INT64", "#endif", ""])


# ---- structured rows -------------------------------------------------------------------------------------------------


def check_structured(families: list[Family], operators: list[Operator]) -> None:
    """Each structured row names a step and operations that are declared, each operation has a row, and what has no gradient says so."""
    by_name = {family.name: family for family in families}
    used: dict[str, set[str]] = {family.name: set() for family in families}
    for op in (op for op in operators if op.kind == "structured"):
        where = f"{op.family}.yaml: {op.name}"
        family = by_name.get(op.family)
        step = next((s for s in family.steps if s.name == step_of(op)), None) if family else None
        if family is None or step is None:
            raise DeclarationError(f"{where} has the step {op.row.get('step')!r}, which {op.family}/steps.yaml does not declare")
        if not step.arguments or not step.arguments[0][0].endswith("*") or [t for t, _ in step.arguments[1:3]] != ["TensorBase", "TensorBase"]:
            raise DeclarationError(f"{where}: the step {step.name} of a structured row takes (its struct*, TensorBase self, TensorBase result, ...)")
        if op.returns != ["Tensor"] or not op.arguments or op.arguments[0].type != "Tensor":
            raise DeclarationError(f"{where}: a structured row has a tensor first and returns one; rows of other forms have kernels of their own")
        declared = {f"{o.prefix}_{name}" for o in family.operations for name in o.names}
        for operation in operations_of(op):
            if operation not in declared:
                raise DeclarationError(f"{where} has the operation {operation}, which {op.family}/steps.yaml does not declare")
            used[op.family].add(operation)
        if not op.backward and op.row.get("backward") != "none":
            raise DeclarationError(f"{where} has no backward; a row without a gradient says 'backward: none'")
        if not op.row.get("meta"):
            raise DeclarationError(f"{where} has no meta: the function that checks, chooses the dtype and makes the result")
    for op in (op for op in operators if op.kind == "function"):
        used.setdefault(op.family, set()).update(operations_of(op))
    for family in families:
        for o in family.operations:
            for name in o.names:
                if f"{o.prefix}_{name}" not in used[family.name]:
                    raise DeclarationError(f"{family.name}/steps.yaml: no row of {family.name}.yaml has the operation {o.prefix}_{name}")


def step_of(op: Operator) -> str:
    """The name of a structured row's step: the row's where it declares the step itself."""
    stated = op.row.get("step")
    return op.name if isinstance(stated, dict) else str(stated)


def operations_of(op: Operator) -> list[str]:
    """`operation: REDUCE_SUM`, or a list of those among which the meta function chooses."""
    stated = op.row.get("operation", [])
    return [stated] if isinstance(stated, str) else list(stated)


def structured_kernel(op: Operator, parameters: str, arguments: list[Argument], family: Family) -> str:
    """The kernel of a structured row, for all devices: the meta function fills in the call and makes the result, the device's step computes."""
    if isinstance(op.row["step"], dict):
        return own_kernel(op, parameters, arguments, next(s for s in family.steps if s.name == op.name))
    step = next(s for s in family.steps if s.name == op.row["step"])
    struct = step.arguments[0][0].removesuffix("*").strip()
    self_, takes_out = arguments[0].name, bool(op.variants & {"out", "inplace"})
    passed = [a.name for a in arguments] + ["out", "mode"] * takes_out + ["step_dtype"] * ("step_dtype" in op.row)
    absent = ", None" * (len(step.arguments) - 3)
    text = [f"cdef TensorBase structured_{op.name}({parameters}):", f"    cdef {struct} call", "    cdef TensorBase result"]
    dtypes = dtype_lines(op) if {"input_dtype", "step_dtype"} & set(op.row) else []
    text += [line for line in dtypes if line.startswith("    cdef ")] + shapes.checks_in_cython(op)
    if "complex_kernel" in op.row:
        text += [f"    if category[{self_}.dtype] == CAT_COMPLEX:", f"        return {op.row['complex_kernel']}({', '.join(passed)})"]
    text += [line for line in dtypes if not line.startswith("    cdef ")]
    if wanted := op.row.get("contiguous"):
        condition = "" if wanted is True else f"{shapes.to_cython(wanted, op)} and "
        text += [f"    if {condition}not {self_}.contiguous:", f"        {self_} = contiguous_of({self_})"]
    text += [f"    call.operation = {operations_of(op)[0]}",
             f"    result = {op.row['meta']}(&call, \"{op.row.get('called', op.name)}\", {', '.join(passed)})",
             "    if result.numel:", f"        run_{step.name}({self_}.device_type, &call, {self_}, result{absent})"]  # fmt: skip
    if "step_dtype" in op.row:
        text += ["    if result.dtype != result_dtype and result is not out:" if takes_out else "    if result.dtype != result_dtype:", "        result = cast_to(result, result_dtype)"]
    return "\n".join([*text, *delivery(op), ""])


def dtype_lines(op: Operator) -> list[str]:
    """The dtypes of a structured row's operand, step and result, and the operand's cast."""
    local: list[str] = []
    text = []
    for name, expression in (op.row.get("let") or {}).items():
        text += [f"    cdef int {name}", f"    {name} = {shapes.to_cython(expression, op, local)}"]
        local.append(name)
    self_ = op.arguments[0].name
    if "step_dtype" in op.row:
        for name, key in (("result_dtype", "dtype"), ("step_dtype", "step_dtype")):
            text += [f"    cdef int {name}", f"    {name} = {shapes.to_cython(op.row[key], op, local)}"]
    if "input_dtype" in op.row:
        text += ["    cdef int input_dtype", f"    input_dtype = {shapes.to_cython(op.row['input_dtype'], op, local)}",
                 f"    if {self_}.dtype != input_dtype:", f"        {self_} = cast_to({self_}, input_dtype)"]  # fmt: skip
    return text


def delivery(op: Operator) -> list[str]:
    """The end of a kernel: the result goes to `out` where the call has one that the meta function did not take."""
    text = []
    if "inplace" in op.variants:
        text += ["    if mode == INPLACE:", "        copy_elements(out, result)", "        return out"]
    if op.variants & {"out", "inplace"}:
        text += ["    if mode == OUT and result is not out:", f"        return write_to_out(\"{op.row.get('called', op.name)}\", result, out, mode)"]
    return [*text, "    return result"]


def own_kernel(op: Operator, parameters: str, arguments: list[Argument], step: Step) -> str:
    """The same of a row that declares its step: the meta function fills in the call and makes a contiguous result, operands become contiguous."""
    assert step.loop is not None
    first, *others = [a for a in arguments if a.is_tensor]
    name = op.row.get("called", op.name)
    text = [f"cdef TensorBase structured_{op.name}({parameters}):", f"    cdef {op.name}_call call", "    cdef TensorBase result",
            f"    if not {loop_steps.type_set(step.loop.types)} >> {first.name}.dtype & 1:",
            f"        raise NotImplementedError(f\"\\\"{name}\\\" not implemented for '{{dtype_text({first.name}.dtype)}}'\")"]  # fmt: skip
    pointers = {f.split()[-1]: f for f in map(field_text, op.row["step"].get("fields") or []) if "*" in f}
    for a in others:
        wanted, said = ("I64", "int64") if "int64_t" in pointers.get(a.name, "") else (f"{first.name}.dtype", f"{{dtype_text({first.name}.dtype)}}")
        given = f"{a.name} is not None and " if a.type == "Tensor?" else ""
        text += [f"    if {given}{a.name}.dtype != {wanted}:", f"        raise RuntimeError(f\"{name}(): expected {a.name} to be {said}, got {{dtype_text({a.name}.dtype)}}\")"]
    passed = [f"contiguous_of({a.name})" if a.type == "Tensor" else f"None if {a.name} is None else contiguous_of({a.name})" for a in (first, *others)]
    text += [f"    result = {op.row['meta']}(&call, \"{name}\", {', '.join(a.name for a in arguments)})",
             "    if result.numel:", f"        run_{step.name}({first.name}.device_type, &call, {', '.join(passed)}, result)"]  # fmt: skip
    return "\n".join([*text, *delivery(op), ""])


def field_text(declared: Any) -> str:
    return str(next(iter(declared)) if isinstance(declared, dict) else declared)
