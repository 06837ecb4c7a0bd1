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


_SLOT = {"t": "p", "l": "p", "o": "p", "s": "p", "v": "p", "i": "i", "b": "i", "y": "i", "d": "d"}


def c_stores(op: Operator) -> str:
    """C that puts an operator's arguments into an array of values."""
    letters = kind_letters(op)
    stores = (f"v[{i}].{_SLOT[k]} = {'(void*)' if _SLOT[k] == 'p' else ''}{a.name};" for i, (k, a) in enumerate(zip(letters, op.arguments)))
    return f"trt_value v[{max(len(letters), 1)}]; {' '.join(stores)}"


def c_loads(op: Operator) -> list[str]:
    """The way back: the arguments of a call, from the values."""
    return [f"{'(int)' if k in 'by' else ''}v[{i}].{_SLOT[k]}" for i, k in enumerate(kind_letters(op))] + ["out", "mode"] * takes_out(op)


def c_signature(op: Operator) -> str:
    return ", ".join(f"{t} {name}" for t, name in c_parameters(op))


def c_output(op: Operator) -> str:
    """Output and write mode, as those get them who take all operators."""
    return "out, mode" if takes_out(op) else "Py_None, TRT_NO_OUT"


def emit_row(op: Operator) -> str:
    """The operator's row, its packer and its unpacker, in C."""
    typed = c_parameters(op)
    letters = kind_letters(op)
    loads = c_loads(op)
    returned = "t" if return_type(op) == "TensorBase" else "l" if op.returns == ["Tensor[]"] else "o"
    lines = [
        f"static void* pack_{op.name}({c_signature(op)}) {{ {c_stores(op)} return trt_core->box(&trt_ops[{op.identifier}], v, {'out, mode' if takes_out(op) else 'NULL, TRT_NO_OUT'}); }}",
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
        self.transposed = [t for t in tensors if f"{t}_transposed" in used]  # whether a matrix is stored by columns
        known = set(tensors) | set(params) | set(results) | lists | {"grad", "grads", "needs_input", "node", "True", "False", "None"}
        known |= {f"{t}_shape" for t in list(tensors) + list(lists)} | {f"{t}_{x}" for t in tensors for x in ("meta", "strided", "transposed")}
        unknown = {u for u in used if u not in known and not u.startswith(("_ops", "PW_"))}
        if unknown:
            raise DeclarationError(f"{op.family}.yaml: the derivative of {op.name} reads unknown names {sorted(unknown)}")
        if len(self.tensors) + len(self.results) > 6:
            raise DeclarationError(f"{op.family}.yaml: {op.name} saves more than six tensors")
        stated = op.row.get("saved_for") or {}
        readers = {t for value in stated.values() if isinstance(value, list) for t in value}
        if unknown := (set(stated) - set(self.tensors + self.results)) | (readers - set(op.backward)):
            raise DeclarationError(f"{op.family}.yaml: saved_for of {op.name} names {sorted(unknown)}, not a saved tensor or not differentiable")
        self.read_by = {s: stated.get(s) or [t for t, f in op.backward.items() if s in names(f)] for s in self.tensors + self.results}

    def readers(self, op: Operator, name: str) -> int:
        """The arguments, by bits, one of whose gradients must be wanted for a tensor to be saved; 0: all of them read it, or the row states a condition."""
        readers = self.read_by[name]
        if isinstance(readers, str) or len(readers) == len(op.backward):
            return 0
        return sum(1 << i for i, a in enumerate(op.arguments) if a.name in readers)

    @property
    def args(self) -> list[str]:
        return self.params + [f"{t}_shape" for t in self.shapes] + [f"{t}_meta" for t in self.metas] + [f"{t}_strided" for t in self.strided] + [f"{t}_shape" for t in self.list_shapes] + [f"{t}_transposed" for t in self.transposed]


def wants_gradient(a: Argument) -> str:
    """The condition in C under which an argument requires grad."""
    if a.type in ("Tensor", "Tensor?"):
        return f"trt_{'perhaps_' if a.type == 'Tensor?' else ''}wants({a.name})"
    return f"trt_list_wants({a.name})"


def c_condition(text: str) -> str:
    """A condition over flags and the write mode, in C."""
    return re.sub(r"\bINPLACE\b", "2", re.sub(r"\band\b", "&&", re.sub(r"\bor\b", "||", re.sub(r"\bnot\b", "!", text))))


def emit(family: str, ops: list[Operator], steps: Family | None = None) -> str:
    text: list[str] = []
    init: list[str] = []
    c: list[str] = []
    declared: list[str] = []
    if any(op.row.get("meta") == "generated" for op in ops):
        text.append(shapes.HELPERS)
    for op in ops:
        c.append(emit_row(op))
        declared.append(f"const trt_row row_{op.name}")
        emit_operator(op, text, init, c, declared, steps)
    if ops:
        head = ["from tensorrt_lite._C.ops.recording cimport trt_held", "cdef extern from *:", '    """', *c, '    """', *("    " + line for line in declared), ""]
        text = head + text
    text += [f"cdef int _register_functions_{family}() except -1:"] + ["    " + line for line in init] + ["    return 0", "", f"_register_functions_{family}()", ""]
    return "\n".join(text)


def emit_operator(op: Operator, text: list[str], init: list[str], c: list[str], declared: list[str], family: Family | None = None) -> None:
    """One operator: Cython for what its formulas say; `c` gets C, `declared` what Cython knows of that, `init` the registration."""
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
        emit_held(op, own["CPU"], init, c, declared)
        kernels = {**kernels, "CPU": f"held_{op.name}"}
    if "out" in op.variants and not op.row.get("composed"):
        for i, function in enumerate(dict.fromkeys(own[key] for key in own if kernels[key] == own[key])):
            emit_around(op, function, f"late{i or ''}_{op.name}", [], [], init, c, declared)
            kernels = {key: f"late{i or ''}_{op.name}" if used == function else used for key, used in kernels.items()}
    for key, function in kernels.items():
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_{key}, <void*><fn_{op.name}>{function})")
    boxed = ["PYTHON"] * (not op.row.get("composed")) + ["AUTOCAST"] * ("autocast" in op.row) + ["FORWARD_AD"] * bool(op.backward and not op.row.get("view")) + [key for key in ("CUSTOM", "CUDA") if key not in kernels] + ["STORAGE_ONLY"] * (not op.row.get("view") and not op.row.get("moves") and op.row.get("stored") != "own")
    init.append(f"register_row({op.identifier}, b\"{op.name}\", &row_{op.name}, {' | '.join('K_' + key for key in boxed) or '0'})")
    emit_decomposition(op, text, init)
    if not op.row.get("view"):
        emit_forward(op, text, init)
    if op.backward or op.row.get("view"):
        emit_autograd(op, text, init, c, declared)
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_AUTOGRAD, <void*><fn_{op.name}>{op.row.get('recorded', 'autograd_' + op.name)})")
    elif "recorded" in op.row:
        init.append(f"register_kernel({op.identifier}, b\"{op.name}\", KEY_AUTOGRAD, <void*><fn_{op.name}>{op.row['recorded']})")
    if op.row.get("view") or op.row.get("moves") or op.row.get("stored") == "own":
        init.append(f"take_storage_only({op.identifier})")


def emit_held(op: Operator, kernel: str, init: list[str], c: list[str], declared: list[str]) -> None:
    """The CPU kernel on operands whose geometry and memory stay where one of them is large, or is written."""
    tensors = [a for a in op.arguments if a.is_tensor and not a.written]
    lists = [a for a in op.arguments if a.type in ("Tensor[]", "Tensor?[]")]
    if not tensors and not lists:
        raise DeclarationError(f"{op.family}.yaml: {op.name} has no operand to hold")
    emit_around(op, kernel, f"held_{op.name}", tensors, lists, init, c, declared)


def emit_around(op: Operator, kernel: str, name: str, tensors: list[Argument], lists: list[Argument], init: list[str], c: list[str], declared: list[str]) -> None:
    """A kernel in C around another one: ops/recording.pyx runs that where it is to hold operands, or to give the warning that `out` was resized at the end."""
    when = ["mode == 1"] * ("out" in op.variants) + [f"trt_is_large({a.name})" for a in tensors] + [f"trt_list_is_large({a.name})" for a in lists]
    masks = [sum(1 << op.arguments.index(a) for a in kind) for kind in (tensors, lists)]
    types = ", ".join(t for t, _ in c_parameters(op))
    c.append(f"    static trt_held of_{name} = {{{op.identifier}, {masks[0]}, {masks[1]}, NULL}};")
    c.append(f"    static void* {name}({c_signature(op)}) {{ if ({' || '.join(when)}) {{ {c_stores(op)} return trt_core->hold(&of_{name}, v, {c_output(op)}); }} return ((void* (*)({types}))of_{name}.kernel)({call_arguments(op)}); }}")
    declared += [f"trt_held of_{name}", f"{return_type(op)} {name}({parameters(op)})"]
    init.append(f"of_{name}.kernel = <void*><fn_{op.name}>{kernel}")


def emit_forward(op: Operator, text: list[str], init: list[str]) -> None:
    """How tangents pass: the call from boxed arguments, the rule of each argument, the sum of the declared formulas."""
    name = op.name
    if not any(a.is_tensor or a.type == "Tensor[]" for a in op.arguments):
        return
    if not op.backward:
        if op.returns == ["Tensor"] and "recorded" in op.row:  # composed where an argument has a tangent, too
            init.append(f"register_kernel({op.identifier}, b\"{name}\", KEY_FORWARD_AD, <void*><fn_{name}>{op.row['recorded']})")
        elif op.returns == ["Tensor"]:
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


def emit_autograd(op: Operator, text: list[str], init: list[str], c: list[str], declared: list[str]) -> None:
    """The backward function in Cython, what the Node saves as a table, and the kernel under Autograd."""
    plan = Plan(op)
    name = op.name
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
    computed: list[tuple[str, list[str]]] = []  # in the order of the arguments' names, as PyTorch computes them
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
            condition = f"wants(node, {position})" if len(differentiable) > 1 else f"node.edge({position}) is not None"
            text.append(f"    cdef object r{position} = None")
            computed.append((a.name, [f"    if {condition}:", f"        r{position} = {formula}"]))
            outputs.append(f"r{position}")
            position += 1
        for _, lines in sorted(computed):
            text += lines
        if op.row.get("nondiff") == "joint":
            text.append(f"    return {outputs[0]}\n")
        else:
            text.append(f"    return {outputs[0]}\n" if len(outputs) == 1 else f"    return ({', '.join(outputs)})\n")
    init.append(f"node_{name}.apply = <void*><op_apply>backward_{name}")
    declared.append(f"OpNodeInfo node_{name}")
    c.append(f"    static OpNodeInfo node_{name} = {{\"{node}\", \"{','.join(saved_names)}\", {len(plan.tensors) + len(plan.results)}, 0, 0}};")
    emit_record(op, plan, c, declared)


def letters_of(op: Operator, names: list[str]) -> str:
    """Arguments by name as letters: a is the first one."""
    places = {a.name: chr(ord("a") + i) for i, a in enumerate(op.arguments)}
    return "".join(places[name] for name in names)


def emit_record(op: Operator, plan: Plan, c: list[str], declared: list[str]) -> None:
    """What `record` in ops/recording.pyx needs to know, and the kernel under Autograd, which calls it where a gradient is wanted."""
    name = op.name
    differentiable = [a for a in op.arguments if a.name in op.backward]
    places = {a.name: i for i, a in enumerate(op.arguments)}
    inplace = "inplace" in op.variants
    # hooks on saved tensors see them in the order of their names, as in PyTorch
    tensors = [f"{{{i}, {places[t]}, {plan.readers(op, t)}}}" for t, i in sorted((t, i) for i, t in enumerate(plan.tensors))]
    results = [f"{{{len(plan.tensors) + i}, {r[6:] or 0}, {plan.readers(op, r)}}}" for i, r in enumerate(plan.results)]
    values = "".join(kind + place for kind, group in (("v", plan.params), ("s", plan.shapes), ("m", plan.metas), ("t", plan.strided), ("l", plan.list_shapes), ("c", plan.transposed))
                     for place in letters_of(op, group))  # fmt: skip
    skipped = [f"(unsigned)!({c_condition(condition)}) << {i}" for i, t in enumerate(plan.tensors + plan.results) if isinstance(condition := plan.read_by[t], str)]
    outputs = 0 if op.returns == ["Tensor[]"] else len(op.returns)
    list_edges = len(differentiable) == 1 and differentiable[0].type == "Tensor[]"
    cloned = places[op.tensors[0].name] if inplace and op.tensors and op.tensors[0].name in plan.tensors else -1
    flags = [outputs, int(inplace), int(list_edges), int(bool(op.row.get("multi_view"))), cloned]
    call, output = ", ".join(filter(None, [call_arguments(op), "TRT_BELOW(TRT_KEY_AUTOGRAD)"])), c_output(op)
    below = f"below_{name}({call})"
    if takes_out(op) or op.row.get("view"):
        below = f"trt_unrecorded({below}, {output}, {int(bool(op.row.get('view')))})"
    c += [
        "    " + line
        for line in (
            f"static const trt_saving tensors_{name}[] = {{{', '.join([*tensors, '{-1, 0, 0}'])}}}, results_{name}[] = {{{', '.join([*results, '{-1, 0, 0}'])}}};",
            f"static void* under_{name}(const trt_value* v, void* out, int mode) {{ return below_{name}({', '.join([*c_loads(op), 'TRT_BELOW(TRT_KEY_AUTOGRAD)'])}); }}",
            f"static const trt_record record_{name} = {{&node_{name}, {op.identifier}, {', '.join(map(str, flags))}, \"{letters_of(op, [a.name for a in differentiable])}\", tensors_{name}, results_{name}, \"{letters_of(op, plan.lists)}\", \"{values}\", under_{name}}};",
            f"static void* autograd_{name}({c_signature(op)}) {{ if (!trt_tls()->grad_mode || !({' || '.join(map(wants_gradient, differentiable)) or '0'})) return {below}; {c_stores(op)} return trt_core->record(&record_{name}, v, {output}, {' | '.join(skipped) or '0'}); }}",
        )
    ]
    declared.append(f"{return_type(op)} autograd_{name}({parameters(op)})")
