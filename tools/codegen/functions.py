"""Operators that are not pointwise: typed dispatchers, autograd wrappers, Nodes, entries.

C types of arguments: Tensor TensorBase, Tensor[] and Tensor?[] (of indices or None) list, int int64_t, bool bint, float double, Scalar const Scalar*, int[]
const Dims*, ScalarType? int (-1: none), everything else a Python object. With the variants out or inplace a kernel
takes two more arguments, `out` and the write mode.
"""

from __future__ import annotations

import ast
import re
import zlib

from . import shapes
from .expression import names
from .pointwise import camel, derivative_identifier, derivatives, emit_decomposition
from .schema import Argument, DeclarationError, Operator, autocast_letters, schema_text, stored_letters
from .steps import Family, structured_kernel

_C_TYPES = {
    "Tensor": "TensorBase",
    "Tensor?": "TensorBase",
    "Tensor[]": "list",
    "Tensor?[]": "list",
    "int": "int64_t",
    "bool": "bint",
    "float": "double",
    "Scalar": "const Scalar*",
    "Scalar?": "const Scalar*",
    "int[]": "const Dims*",
    "int[]?": "const Dims*",
    "ScalarType": "int",
    "ScalarType?": "int",
}
TABLE_SIZE = 4093  # MAX_OPERATORS in core/dispatch.pyx is at least this


def c_type(a: Argument) -> str:
    return _C_TYPES.get(a.type, "object")


def return_type(op: Operator) -> str:
    return "TensorBase" if op.returns == ["Tensor"] else "object"


def takes_out(op: Operator) -> bool:
    return bool(op.variants & {"out", "inplace"})


def parameters(op: Operator, named: bool = True) -> str:
    parts = [f"{c_type(a)} {a.name}" if named else c_type(a) for a in op.arguments]
    if takes_out(op):
        parts += [("TensorBase" if return_type(op) == "TensorBase" else "object") + (" out" if named else ""), "int mode" if named else "int"]
    return ", ".join(parts)


def call_arguments(op: Operator) -> str:
    return ", ".join([a.name for a in op.arguments] + (["out", "mode"] if takes_out(op) else []))


def operator_ids(names: list[str]) -> list[int]:
    """Rows in the dispatcher's table, by name: a new operator does not move the others, so their modules stay as they are."""
    taken: set[int] = set()
    ids = []
    for name in names:
        i = zlib.crc32(name.encode()) % TABLE_SIZE
        while i in taken:
            i = (i + 1) % TABLE_SIZE
        taken.add(i)
        ids.append(i)
    return ids


def c_parameters(op: Operator) -> list[tuple[str, str]]:
    """(C type, name) of a kernel's parameters; objects and structures are void pointers there."""
    parts = [({"int64_t": "int64_t", "bint": "int", "int": "int", "double": "double"}.get(c_type(a), "const void*" if "*" in c_type(a) else "void*"), a.name) for a in op.arguments]
    return parts + ([("void*", "out"), ("int", "mode")] if takes_out(op) else [])


def operators_header(operators: list[Operator]) -> str:
    """One C header: the rows' places in the table, `op_sum(...)`, which dispatches, and `below_sum(..., below)`, which goes on below a key."""
    text = ["/* Generated: typed dispatchers of all operators. */", "#ifndef TRT_OPERATORS_H", "#define TRT_OPERATORS_H", '#include "dispatch.h"']
    # the fused derivatives of pointwise operators come last, so that they do not move the declared ones
    identifiers = {op.name: op.identifier for op in operators} | {loop.name: derivative_identifier(loop) for op in operators for loop in derivatives(op)}
    text += [f"enum {{ {identifier} = {i} }};" for identifier, i in zip(identifiers.values(), operator_ids(list(identifiers)))]
    for op in operators:
        if op.kind == "pointwise":
            n = len(op.tensors)
            passed = ", ".join("abc"[:n])
            text.append(f"static inline void* op_{op.name}({', '.join('void* ' + x for x in 'abc'[:n])}, const void* params, void* out, int mode) {{ return trt_core->call{n}(trt_ops[{op.identifier}].info, {passed}, params, out, mode); }}")
            continue
        typed = c_parameters(op)
        declared = ", ".join(f"{t} {name}" for t, name in typed)
        keys = [f"TRT_KEYS({a.name})" if a.type == "Tensor" else f"TRT_OPTIONAL_KEYS({a.name})" for a in op.arguments if a.is_tensor]
        if takes_out(op) and return_type(op) == "TensorBase":
            keys.append("(mode ? TRT_KEYS(out) : 0)")
        lists = [f" if (trt_keys_of_list(op, {a.name}, &keys) < 0) return NULL;" for a in op.arguments if a.type == "Tensor[]"]
        prepare = f"trt_operator* op = &trt_ops[{op.identifier}]; uint64_t keys = {' | '.join(keys) or ('0' if lists else '2')};{''.join(lists)}"
        function = f"void* (*f)({', '.join(t for t, _ in typed)})"
        call = f"return f ? f({', '.join(name for _, name in typed)}) : NULL;"
        text.append(f"static inline void* op_{op.name}({declared}) {{ {prepare} {function} = trt_resolve(op, keys); {call} }}")
        text.append(f"static inline void* below_{op.name}({declared}, uint64_t below) {{ {prepare} {function} = trt_redispatch(op, keys, below); {call} }}")
    return "\n".join([*text, "#endif", ""])


def operators_pxd(operators: list[Operator]) -> str:
    """What Cython knows of `operators.h`."""
    text = ["# Generated: typed dispatchers of all operators.", "from libc.stdint cimport int64_t, uint64_t",
            "from tensorrt_lite._C.core.dtype cimport Scalar", "from tensorrt_lite._C.core.tensor cimport TensorBase",
            "from tensorrt_lite._C.core.args cimport Dims", "", 'cdef extern from "operators.h":']  # fmt: skip
    for op in operators:
        text += [f"    enum: {identifier}" for identifier in (op.identifier, *map(derivative_identifier, derivatives(op)))]
        if op.kind == "pointwise":
            args = ", ".join(f"TensorBase {x}" for x in "abc"[: len(op.tensors)])
            text.append(f"    TensorBase op_{op.name}({args}, const Scalar* params, TensorBase out, int mode)")
        else:
            text.append(f"    {return_type(op)} op_{op.name}({parameters(op)})")
            text.append(f"    {return_type(op)} below_{op.name}({parameters(op)}, uint64_t below)")
    return "\n".join(text) + "\n"


def kernel_types(ops: list[Operator]) -> str:
    """The types of a family's kernels."""
    return "".join(f"ctypedef {return_type(op)} (*fn_{op.name})({parameters(op, False)})\n" for op in ops if op.kind != "pointwise")


KINDS = {"TensorBase": "t", "int64_t": "i", "bint": "b", "double": "d", "const Scalar*": "s", "const Dims*": "v", "int": "y", "object": "o"}


def kind_letters(op: Operator) -> str:
    """A letter per argument, see core/dispatch.h."""
    return "".join("l" if a.type == "Tensor[]" else KINDS.get(c_type(a), "o") for a in op.arguments)


def emit_row(op: Operator) -> str:
    """The operator's row, its packer and its unpacker, in C."""
    typed = c_parameters(op)
    slot = {"t": "p", "l": "p", "o": "p", "s": "p", "v": "p", "i": "i", "b": "i", "y": "i", "d": "d"}
    letters = kind_letters(op)
    arguments = [name for _, name in typed[: len(op.arguments)]]
    stores = " ".join(f"v[{i}].{slot[k]} = {'(void*)' if slot[k] == 'p' else ''}{name};" for i, (k, name) in enumerate(zip(letters, arguments)))
    loads = [f"{'(int)' if k in 'by' else ''}v[{i}].{slot[k]}" for i, k in enumerate(letters)]
    if takes_out(op):
        loads += ["out", "mode"]
    returned = "t" if return_type(op) == "TensorBase" else "l" if op.returns == ["Tensor[]"] else "o"
    lines = [
        f"static void* pack_{op.name}({', '.join(f'{t} {name}' for t, name in typed)}) {{ trt_value v[{max(len(letters), 1)}]; {stores} return trt_core->box(&trt_ops[{op.identifier}], v, {'out, mode' if takes_out(op) else 'NULL, TRT_NO_OUT'}); }}",
        f"static void* unpack_{op.name}(trt_operator* op, const trt_value* v, void* out, int mode) {{ return op_{op.name}({', '.join(loads)}); }}",
        f"static void* invoke_{op.name}(trt_operator* op, void* kernel, const trt_value* v, void* out, int mode) {{ return ((void* (*)({', '.join(t for t, _ in typed)}))kernel)({', '.join(loads)}); }}",
        f"static const trt_row row_{op.name} = {{\"{schema_text(op)}\", \"{letters}\", '{returned}', {int(takes_out(op))}, {int(bool(op.row.get('view')))}, {sum(r.startswith('Tensor') for r in op.returns) if returned == 'o' else 0}, {autocast_letters(op)}, {stored_letters(op)}, (void*)pack_{op.name}, unpack_{op.name}, invoke_{op.name}}};",
    ]
    return "\n".join("    " + line for line in lines)


class Plan:
    """What a Node of one operator saves, from the names its formulas read."""

    def __init__(self, op: Operator):
        used: set[str] = set()
        for f in op.backward.values():
            used |= names(f)
        tensors = {a.name: a for a in op.arguments if a.type in ("Tensor", "Tensor?")}
        lists = {a.name for a in op.arguments if a.type in ("Tensor[]", "Tensor?[]")}
        params = {a.name: a for a in op.arguments if not a.is_tensor and a.name not in lists}
        results = ["result"] if len(op.returns) == 1 else [f"result{i}" for i in range(len(op.returns))]
        self.tensors = [t for t in tensors if t in used]
        self.results = [r for r in results if r in used]
        self.lists = [x for x in lists if x in used]
        self.params = [p for p in params if p in used]
        self.shapes = [t for t in tensors if f"{t}_shape" in used]
        self.metas = [t for t in tensors if f"{t}_meta" in used]
        self.strided = [t for t in tensors if f"{t}_strided" in used]
        self.list_shapes = [x for x in lists if f"{x}_shape" in used]
        known = set(tensors) | set(params) | set(results) | lists | {"grad", "grads", "needs_input", "node", "True", "False", "None"}
        known |= {f"{t}_shape" for t in list(tensors) + list(lists)} | {f"{t}_{x}" for t in tensors for x in ("meta", "strided")}
        unknown = {u for u in used if u not in known and not u.startswith("_ops")}
        if unknown:
            raise DeclarationError(f"{op.family}.yaml: the derivative of {op.name} reads unknown names {sorted(unknown)}")
        if len(self.tensors) + len(self.results) > 6:
            raise DeclarationError(f"{op.family}.yaml: {op.name} saves more than six tensors")
        stated = op.row.get("saved_for") or {}
        readers = {t for value in stated.values() if isinstance(value, list) for t in value}
        if unknown := (set(stated) - set(self.tensors + self.results)) | (readers - set(op.backward)):
            raise DeclarationError(f"{op.family}.yaml: saved_for of {op.name} names {sorted(unknown)}, not a saved tensor or not differentiable")
        self.read_by = {s: stated.get(s) or [t for t, f in op.backward.items() if s in names(f)] for s in self.tensors + self.results}

    def saving(self, op: Operator, name: str, call: str) -> str:
        """The line that saves a tensor where one of the gradients that read it is wanted."""
        if isinstance(self.read_by[name], str):
            return f"    if {self.read_by[name]}:\n        {call}"
        readers = [a for a in op.arguments if a.name in self.read_by[name]]
        if len(readers) == len(op.backward):
            return f"    {call}"
        return f"    if {' or '.join(wants_gradient(a) for a in readers)}:\n        {call}"

    @property
    def args(self) -> list[str]:
        return self.params + [f"{t}_shape" for t in self.shapes] + [f"{t}_meta" for t in self.metas] + [f"{t}_strided" for t in self.strided] + [f"{t}_shape" for t in self.list_shapes]


def wants_gradient(a: Argument) -> str:
    """The condition under which an argument requires grad."""
    if a.type == "Tensor":
        return f"{a.name}.requires_grad"
    if a.type == "Tensor?":
        return f"({a.name} is not None and {a.name}.requires_grad)"
    return f"any_requires_grad({a.name})"


def python_value(a: Argument) -> str:
    """The Python object of a C argument, for saving and boxing."""
    t = c_type(a)
    if t == "const Scalar*":
        return f"(scalar_object({a.name}) if {a.name} != NULL else None)"
    if t == "const Dims*":
        return f"dims_tuple({a.name})"
    if a.type in ("ScalarType", "ScalarType?"):
        return f"(None if {a.name} < 0 else dtype_of({a.name}))"
    return a.name


def emit(family: str, ops: list[Operator], steps: Family | None = None) -> str:
    text: list[str] = []
    init: list[str] = []
    if ops:
        text += ["cdef extern from *:", '    """', *(emit_row(op) for op in ops), '    """', *(f"    const trt_row row_{op.name}" for op in ops), ""]
    if any(op.row.get("meta") == "generated" for op in ops):
        text.append(shapes.HELPERS)
    for op in ops:
        emit_operator(op, text, init, steps)
    text += [f"cdef int _register_functions_{family}() except -1:"] + ["    " + line for line in init] + ["    return 0", "", f"_register_functions_{family}()", ""]
    return "\n".join(text)


def emit_operator(op: Operator, text: list[str], init: list[str], family: Family | None = None) -> None:
    kernel = op.row.get("kernel", f"{op.name}_kernel")
    if op.kind == "structured":
        kernel = f"structured_{op.name}"
        text.append(structured_kernel(op, parameters(op), op.arguments, family))
    if op.row.get("meta") == "generated":
        text.append(shapes.meta_function(op, ", ".join(f"{c_type(a)} {a.name}" for a in op.arguments)))
    kernels = kernel if isinstance(kernel, dict) else {"CPU": kernel, "META": kernel}
    if op.row.get("view"):
        kernels = {key: kernel for key in ("CPU", "META", "CUDA", "CUSTOM")}
    if not isinstance(kernel, dict):
        # made of other operators and of what the core does on every device
        kernels = {**kernels, "CUDA": kernels["CPU"]}
    own = dict(kernels)
    if op.row.get("held", bool(op.backward) and not op.row.get("view")):
        emit_held(op, own["CPU"], text)
        kernels = {**kernels, "CPU": f"held_{op.name}"}
    if "out" in op.variants and not op.row.get("composed"):
        for i, function in enumerate(dict.fromkeys(own[key] for key in own if kernels[key] == own[key])):
            emit_late(op, function, f"late{i or ''}_{op.name}", text)
            kernels = {key: f"late{i or ''}_{op.name}" if used == function else used for key, used in kernels.items()}
    for key, function in kernels.items():
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_{key}, <void*><fn_{op.name}>{function})")
    boxed = ["PYTHON"] * (not op.row.get("composed")) + ["AUTOCAST"] * ("autocast" in op.row) + ["FORWARD_AD"] * bool(op.backward and not op.row.get("view")) + [key for key in ("CUSTOM", "CUDA") if key not in kernels] + ["STORAGE_ONLY"] * (not op.row.get("view") and not op.row.get("moves") and op.row.get("stored") != "own")
    init.append(f"register_row({op.identifier}, b\"{op.name}\", &row_{op.name}, {' | '.join('K_' + key for key in boxed) or '0'})")
    emit_decomposition(op, text, init)
    if not op.row.get("view"):
        emit_forward(op, text, init)
    if op.backward or op.row.get("view"):
        emit_autograd(op, text)
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_AUTOGRAD, <void*><fn_{op.name}>{op.row.get('recorded', 'autograd_' + op.name)})")
    elif "recorded" in op.row:
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_AUTOGRAD, <void*><fn_{op.name}>{op.row['recorded']})")
    if op.row.get("view") or op.row.get("moves") or op.row.get("stored") == "own":
        init.append(f"take_storage_only({op.identifier})")


def emit_held(op: Operator, kernel: str, text: list[str]) -> None:
    """The CPU kernel on operands whose geometry and memory stay. A kernel of large operands may let other threads run between its
    checks and its loops; `out` may be an operand, and the warning that it was resized runs Python, so that comes last."""
    tensors = [a for a in op.arguments if a.is_tensor and not a.written]
    lists = [a for a in op.arguments if a.type in ("Tensor[]", "Tensor?[]")]
    if not tensors and not lists:
        raise DeclarationError(f"{op.family}.yaml: {op.name} has no operand to hold")
    single = takes_out(op) and return_type(op) == "TensorBase"
    large = " or ".join([f"{a.name}.numel >= HELD_NUMEL" if a.type == "Tensor" else f"is_large({a.name})" for a in tensors] + [f"any_large({a.name})" for a in lists])
    result, call = return_type(op), call_arguments(op)
    # three functions: what assigns to arguments counts references to them, and the usual case should cost one call
    text.append(f"cdef {result} large_{op.name}({parameters(op)}):")
    if single:
        text.append("    cdef TensorBase target = out")
    if single and "inplace" in op.variants:
        text.append("    if mode == INPLACE:\n        out = held(out)")
        text += [f"    {a.name} = out if mode == INPLACE and {a.name} is target else held({a.name})" for a in tensors]
    else:
        text += [f"    {a.name} = held({a.name})" for a in tensors]
    text += [f"    {a.name} = held_list({a.name})" for a in lists]
    if single:
        text.append(f"    if mode != FRESH:\n        {kernel}({call})\n        return target")
    text.append(f"    return {kernel}({call})\n")
    if "out" in op.variants:
        same = [f"{a.name} is out" if single else f"is_listed(out, {a.name})" for a in tensors] + [f"is_listed({a.name}, out)" for a in lists if single]
        emit_out(op, f"out_{op.name}", f"large_{op.name}({call}) if {' or '.join([large, *same])} else {kernel}({call})", text)
    text.append(f"cdef {result} held_{op.name}({parameters(op)}):")
    if "out" in op.variants:
        text.append(f"    if mode == OUT:\n        return out_{op.name}({call})")
    text.append(f"    if {large}:\n        return large_{op.name}({call})\n    return {kernel}({call})\n")


def emit_out(op: Operator, name: str, call: str, text: list[str]) -> None:
    """A kernel that writes to `out`. The warning that it was resized runs Python, which may change the operands: it is given at the end."""
    result = return_type(op)
    text.append(f"cdef {result} {name}({parameters(op)}):\n    cdef LateWarnings late\n    cdef {result} r\n    begin_late_warnings(&late)\n    try:")
    text.append(f"        r = {call}\n    except:\n        drop_late_warnings(&late)\n        raise\n    end_late_warnings(&late)\n    return r\n")


def emit_late(op: Operator, kernel: str, name: str, text: list[str]) -> None:
    """A kernel whose operands are not held, with the warning about `out` at its end."""
    call = call_arguments(op)
    emit_out(op, f"out_{name}", f"{kernel}({call})", text)
    text.append(f"cdef {return_type(op)} {name}({parameters(op)}):\n    return out_{name}({call}) if mode == OUT else {kernel}({call})\n")


def emit_forward(op: Operator, text: list[str], init: list[str]) -> None:
    """How tangents pass: the call from boxed arguments, the rule of each argument, the sum of the declared formulas."""
    name = op.name
    if not any(a.is_tensor or a.type == "Tensor[]" for a in op.arguments):
        return
    if not op.backward:
        if op.returns == ["Tensor"]:
            text.append(f"cdef TensorBase underived_{name}({parameters(op)}):")
            text.append(f"    return underived(&OPS[{op.identifier}], below_{name}({', '.join(filter(None, [call_arguments(op), 'BELOW(KEY_FORWARD_AD)']))}))\n")
            init.append(f"register_kernel({op.identifier}, b\"{name}\", KEY_FORWARD_AD, <void*><fn_{name}>underived_{name})")
        return
    rules, formulas = forward_rules(op)
    results = {"result"} if len(op.returns) == 1 else {f"result{i}" for i in range(len(op.returns))}
    used = set().union(*(names(f) for f in formulas.values()))
    known = {a.name for a in op.arguments} | {f"{t}_t" for t in op.backward} | results | {"True", "False", "None", "FRESH"}
    if unknown := {u for u in used if u not in known and not u.startswith(("_ops", "OP_"))}:
        raise DeclarationError(f"{op.family}.yaml: the forward rule of {name} reads unknown names {sorted(unknown)}")
    if formulas:
        text.append(f"cdef object jvp_{name}(tuple a, tuple t, object result):")
        text += [f"    cdef object {a.name} = a[{i}]" for i, a in enumerate(op.arguments) if a.name in used]
        text += [f"    cdef object {r} = result[{r[6:]}]" for r in sorted(results & used - {"result"})]
        text.append("    cdef object value = None")
        for i, a in enumerate(op.arguments):
            if a.name in formulas:
                text.append(f"    cdef object {a.name}_t = t[{i}]\n    if {a.name}_t is not None:\n        value = added(value, {formulas[a.name]})")
        text.append("    return value\n")
    flags = " | ".join((["WRITES_ONLY"] if op.variants == {"inplace"} else []) + (["READS_RESULT"] if used & results else [])) or "0"
    init.append(f"register_forward({op.identifier}, b\"{rules}\", {flags}, {'jvp_' + name if formulas else 'NULL'})")


def forward_rules(op: Operator) -> tuple[str, dict[str, str]]:
    """(a letter per argument, see autograd/forward.pyx; the formulas by argument)."""
    declared = op.row.get("forward", {})
    rules, formulas = "", {}
    for a in op.arguments:
        if a.name not in op.backward:
            rules += "-"
        elif declared == "linear":
            rules += "j"
        elif a.name in declared:
            rules += "f"
            formula = str(declared[a.name])
            if formula == "linear":
                formula = f"recall({op.identifier}, ({''.join((b.name + '_t' if b is a else b.name) + ', ' for b in op.arguments)}), None, FRESH)"
            formulas[a.name] = formula
        else:
            rules += "z" if op.backward[a.name] == "_ops.zeros_like(grad)" else "d"
    if isinstance(declared, dict) and (unknown := set(declared) - set(op.backward)):
        raise DeclarationError(f"{op.family}.yaml: {op.name} has a forward rule for {sorted(unknown)}, which no derivative is declared for")
    return rules, formulas


def emit_autograd(op: Operator, text: list[str]) -> None:
    plan = Plan(op)
    name = op.name
    view = bool(op.row.get("view"))
    differentiable = [a for a in op.arguments if a.name in op.backward]
    stated = op.row.get("saved_as", {})
    results = [stated.get(r) or (op.result_names[int(r[6:])] if op.result_names else r) for r in plan.results]
    saved_names = plan.tensors + results + [re.sub("_shape$", "_sym_sizes", a) for a in plan.args] + plan.lists
    node = op.row.get("node", camel(name) + "Backward0")
    # --- backward function
    text.append(f"cdef object backward_{name}(OpNode node, object grad_):")
    if len(op.returns) > 1 or op.returns == ["Tensor[]"]:
        # a list of one comes as it is
        text.append("    cdef object grads = grad_ if isinstance(grad_, list) else [grad_]")
        text.append("    cdef object grad = grads[0]")
        if op.returns != ["Tensor[]"] and not any(re.search(r"\bgrads\b", str(op.backward[a.name])) for a in differentiable):
            text.append("    if grad is None:\n        return None")
    else:
        text.append("    cdef object grad = grad_")
    for t, i in sorted((t, i) for i, t in enumerate(plan.tensors + plan.results)):
        text.append(f"    cdef object {t} = saved(node, {i})")
    for i, t in enumerate(plan.lists):
        text.append(f"    cdef list {t} = saved_tensors(node, {i})")
    for i, a in enumerate(plan.args):
        text.append(f"    cdef object {a} = (<tuple>node.args)[{i}]")
    position = 0
    outputs = []
    if len(differentiable) == 1 and differentiable[0].type == "Tensor[]":
        text.append(f"    return {op.backward[differentiable[0].name]}\n")
    else:
        for a in op.arguments:
            if a.name not in op.backward:
                continue
            formula = op.backward[a.name]
            # one formula text for several arguments is a joint call that returns a tuple
            if ast.parse(formula, mode="eval").body and op.row.get("nondiff") == "joint":
                outputs.append(formula)
                continue
            text.append(f"    cdef object r{position} = None")
            text.append(f"    if wants(node, {position}):" if len(differentiable) > 1 else f"    if node.edge({position}) is not None:")
            text.append(f"        r{position} = {formula}")
            outputs.append(f"r{position}")
            position += 1
        if op.row.get("nondiff") == "joint":
            text.append(f"    return {outputs[0]}\n")
        else:
            text.append(f"    return {outputs[0]}\n" if len(outputs) == 1 else f"    return ({', '.join(outputs)})\n")
    text.append("cdef extern from *:\n    \"\"\"")
    text.append(f"    static OpNodeInfo node_{name} = {{\"{node}\", \"{','.join(saved_names)}\", {len(plan.tensors) + len(plan.results)}, 0, 0}};")
    text.append(f"    \"\"\"\n    OpNodeInfo node_{name}")
    text.append(f"node_{name}.apply = <void*><op_apply>backward_{name}\n")
    # --- autograd wrapper
    text.append(f"cdef {return_type(op)} autograd_{name}({parameters(op)}):")
    text.append(f"    cdef {return_type(op)} result")
    text.append("    cdef OpNode node")
    below = f"below_{name}({', '.join(filter(None, [call_arguments(op), 'BELOW(KEY_AUTOGRAD)']))})"
    conditions = [wants_gradient(a) for a in differentiable]
    modes = takes_out(op)
    inplace = "inplace" in op.variants
    text.append(f"    if not tls().grad_mode or not ({' or '.join(conditions) or 'False'}):")
    text.append(f"        result = {below}")
    if modes:
        text.append("        if mode == INPLACE:\n            bump_version(<TensorBase>out)")
    if view:
        text.append("        note_view(result)")
    text.append("        return result")
    if modes:
        text.append(f"    if mode == OUT:\n        refuse_out(\"{name}\")")
    if modes and inplace and op.returns == ["Tensor"]:
        text.append("    if mode == INPLACE:\n        check_recorded_write(<TensorBase>out)")
    text.append(f"    node = new_op_node(&node_{name})")
    if op.returns == ["Tensor[]"]:
        pass
    elif len(op.returns) > 1:
        text.append(f"    node.n_inputs = {len(op.returns)}")
    if len(differentiable) == 1 and differentiable[0].type == "Tensor[]":
        text.append(f"    set_list_edges(node, {differentiable[0].name})")
    else:
        for i, a in enumerate(differentiable):
            text.append(f"    node.set_edge({i}, {a.name})")
    # hooks on saved tensors see them in the order of their names, as in PyTorch
    for t, i in sorted((t, i) for i, t in enumerate(plan.tensors)):
        value = f"<TensorBase>_ops.clone({t}) if mode == INPLACE else {t}" if inplace and t == op.tensors[0].name else t
        text.append(plan.saving(op, t, f"save(node, {i}, {value})"))
    for t in plan.lists:
        text.append(f"    save_tensors(node, {t})")
    if plan.args:
        by_name = {a.name: a for a in op.arguments}
        values = [python_value(by_name[p]) for p in plan.params]
        values += [f"(shape_of({t}) if {t} is not None else None)" for t in plan.shapes]
        values += [f"(input_meta({t}) if {t} is not None else None)" for t in plan.metas]
        values += [f"(shape_of({t}), strides_of({t}), {t}.offset)" for t in plan.strided]
        values += [f"shapes_of_list({t})" for t in plan.list_shapes]
        text.append(f"    node.args = ({', '.join(values)},)")
    text.append(f"    result = {below}")
    if op.returns == ["Tensor"]:
        if modes:
            text.append("    if mode == INPLACE:\n        bump_version(result)")
        for i, r in enumerate(plan.results):
            text.append(plan.saving(op, r, f"save_output(node, {len(plan.tensors) + i}, result)"))
        if modes and inplace:
            text.append("    if mode == INPLACE:\n        rebase_history(result, node)\n    elif differentiable(result):\n        set_history(result, node, 0)")
        else:
            text.append("    if differentiable(result):\n        set_history(result, node, 0)")
    elif op.returns == ["Tensor[]"]:
        text.append("    set_list_history(result, node, " + ("True" if op.row.get("multi_view") else "False") + ")")
    else:
        text.append("    set_tuple_history(result, node)")
        for i, r in enumerate(plan.results):
            text.append(plan.saving(op, r, f"save_output(node, {len(plan.tensors) + i}, <TensorBase>result[{int(r[6:])}])"))
    text.append("    return result\n")
