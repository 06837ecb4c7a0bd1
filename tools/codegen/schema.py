"""Reads declarations. One `Operator` per yaml row; signatures are in PyTorch's schema language.

<family>/<family>.yaml has the rows with generated code: pointwise, structured and function. <family>/composed.yaml has the public functions that are
written by hand over these: `composed` (a body in Cython or Python) and `factory` (makes tensors out of none, or like its first argument). Their `op` may
be the dotted path of what PyTorch has no operator for (nn.functional.relu). Types are PyTorch's, and in signatures (not in overloads) also several of them (`Tensor|Scalar`), `Ints` and `Tensors` (lists of
any length that do not say where to compute) and `PyObject` (what is no value of operators: data, functions).

| key | rows | says |
|---|---|---|
| op | all | PyTorch's name of the operator, or `trtl::name` of one that ATen lacks |
| kind | all | pointwise, structured, function, composed or factory; told by `expr` and `step` where it is missing |
| signature | all | arguments and results of the row |
| overload | all | PyTorch's name of the overload that the signature is closest to |
| overloads | all | PyTorch's schemas where they are several, or others than the signature |
| forms | generated | {overload: {argument of the overload: the row's, or a constant; argument of the row: a constant}} where names don't tell, or a list of such alternatives; `all` of every overload. `scales[0]` is an element of the row's list, `sizes(grad)[2:]` a tensor's sizes, `= 10.0 ** abs(decimals)` what a row's argument is made of; `length` and `dimensions`: {argument of the row: how many}, for the overload to stand for a call |
| wraps | generated | the Tensor overloads take Python numbers, as those of add do |
| doc | all | the docstring of all forms: first what the result is; `input` is the first argument. Without it the body has the docstring |
| variants | all | function, method, inplace, out, nn; of composed rows also the modules linalg, fft and special |
| aliases | all | other public names |
| spellings | all | {PyTorch's keyword: the argument here, or "*" for what stands for all positional arguments} |
| by_name | all | overrides get required arguments by position and all others by name, as from PyTorch's functions in Python; `method`: of the method alone |
| starred | all | the last argument by position where it takes the numbers that follow, as in `permute(2, 0, 1)` |
| opaque | composed | lists among the arguments are data, which are not searched for objects that override |
| tags | all | what passes over operators ask, PyTorch's where it has them: core, reduction, data_dependent_output, dynamic_output_shape, inplace_view; `core.Tensor` is of one overload. random: draws numbers; host_sync: the host waits for a device's data; reshapes: a view of the same elements in the same order; stored_dtypes, stored_ints, stored_complex: `dtype` may be one without loops. `pointwise` follows from the kind, `random` from an argument `generator` |
| view | all | the result shares the first argument's memory |
| multi_view | function | a list of views is the result |
| public | generated | the public function's schema, where it is another than the operator's |
| body | generated | the function in Cython that takes its arguments, `out` and whether the call is in place, and chooses between operators |
| entry | generated | `none` or `manual`: there is no generated entry |
| symbol | generated | `add`: the operator symbols `__add__`, `__radd__`, `__iadd__` |
| shape | generated | the results' sizes (shapes.py); pointwise rows have it implicitly |
| dtype | generated | the results' dtypes (shapes.py); pointwise rows have it implicitly |
| require | generated | [condition -> message] of what is refused (shapes.py) |
| let | generated | {name: expression} for parts of shape, dtype and require (shapes.py) |
| dims | generated | which dimension of which operand goes where, `n k, k m -> n m` (tensorrt_lite/_transforms/rules_rows.py); vmap follows it. Pointwise rows and structured ones with `self` and `dim` need none |
| autocast | all | how arguments are cast under autocast (autograd/autocast.pyx): lower, float32, promote, float32_sum or banned, also by device |
| decompose | generated | what modes and subclasses see in the row's place: a formula over `_ops` and the arguments, or a function of tensorrt_lite/_decompositions (`loss.cross_entropy`) with the row's arguments; a `trtl::` row has one |
| backward | generated | {argument: formula of its gradient}, or `none` |
| forward | generated | how tangents pass: `linear` in all differentiable arguments together, or by argument `linear` or a formula over the arguments, `<argument>_t` and `result`. Without it the derivative comes from the Node's. Of a pointwise row `self_adjoint` where the function of complex numbers is not holomorphic |
| composed | function | true: its gradients are those of the operators that its kernel calls, so modes and subclasses see those in its place |
| nondiff | function | results without a gradient, or `joint` |
| node | generated | the Node's class, where its name is another than PyTorch's rule gives |
| saved_for | generated | by saved tensor the arguments whose gradients read it, or a condition over the arguments, where the formulas do not tell; what was not saved is None |
| saved_as | generated | by result PyTorch's name of it in `_saved_*` |
| recorded | function | a function that takes calls with gradients in the place of the generated one and may hand them on to `autograd_<op>` |
| kernel | function | the kernel's name, where it is not the rule's |
| held | function | whether the CPU kernel sees held operands (core/tensor.pyx): as a rule that of an operator with a derivative does, because one without may be composed of operators that record |
| out_needs | generated | an argument that must be given beside out= |
| moves | generated | the operator moves elements and computes with none; it takes types without loops as views do |
| stored | generated | {type or set of STORED_SETS: policy}: how types without loops are taken (core/storage_types.pyx). A pointwise row computes in the loop of the type's compute type, or chooses between elements by their `bits`; `own`: the kernels look at the type themselves |
| selects | generated | an argument that chooses elements: it has a type of its own where the others' bits are moved |
| step | structured | a step of the family's steps.yaml, or the row's own: `fields` of its struct beside the pointers to its tensors, and what loop_steps.py says of a loop; then the meta function gets the struct, the name and the arguments and makes a contiguous result, and there is no operation |
| operation | structured | one of the family's enumerations, or those among which the meta function chooses |
| meta | structured | the function that checks, fills in the step's struct and makes the result, for all devices; it computes nothing |
| meta: generated | function | `meta_<op>`, which checks `require` and makes the result of `shape` and `dtype`, is written for the kernel |
| input_dtype | structured | the dtype to which the kernel casts the operand (shapes.py) |
| step_dtype | structured | the dtype that the step computes, where it is not the result's (shapes.py) |
| contiguous | structured | true, or the condition under which the step wants a contiguous operand |
| complex_kernel | structured | the function that computes of complex numbers, by other operators |
| called | structured | the name in messages, where it is not the row's |
| expr | pointwise | the element, in Python's syntax over the arguments (expression.py) |
| int_expr, bool_expr, complex_expr, half_expr | pointwise | for types that expr does not fit; in half_expr `half` in a function's name stands for f16 or bf16 |
| half_bits | pointwise | of a half type's bits as an integer |
| promote | pointwise | float (integers in the default floating type), bool, real |
| dtypes | pointwise | the types with loops: a name of DTYPE_SETS or a list |
| backward_dtypes | pointwise | the types of the fused gradient |
| scalar | pointwise | operands that get a scalar loop |
| cases | pointwise | by parameter the numbers that get a loop of their own |
| wide_number | pointwise | a number as `other` beside halves is not rounded to them |
| wide_params | pointwise | {parameter: half, where beside halves it need only go into float32; single, where beside float32 it is a double; any, where it is not checked} |
| tensor_only | pointwise | operands that are no Python numbers, or true |
| two_numbers | pointwise | both operands may be numbers |
| first_bool | pointwise | the first operand is a condition |
| exact_out | pointwise | out= must have the result's dtype |
| flat | pointwise | second derivatives by what was saved are zeros, not absent, as those of PyTorch's relu and others are |
| checks | pointwise | named checks of the arguments |
| bool_error, int_error | pointwise | the message where such types are refused |
| cost | pointwise | the work of an element in additions, for threads |
| samples | pointwise | what the tests draw |
| reference | pointwise | PyTorch's function |
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dtypes

DTYPES = [row.type for row in dtypes.ALL if row.has_loops]
FLOATS = [row.type for row in dtypes.ALL if row.has_loops and row.category == "FLOAT"]
INTS = [row.type for row in dtypes.ALL if row.has_loops and row.category == "INT"]
COMPLEX = [row.type for row in dtypes.ALL if row.has_loops and row.category == "COMPLEX"]
DTYPE_SETS = {
    "all": DTYPES,
    "number": INTS + FLOATS + COMPLEX,
    "real": INTS + FLOATS,
    "real_bool": ["b8"] + INTS + FLOATS,
    "float": FLOATS,
    "float_complex": FLOATS + COMPLEX,
    "int": INTS,
    "int_bool": ["b8"] + INTS,
    "complex": COMPLEX,
}
VARIANTS = {"function", "method", "inplace", "out", "nn"}
MODULES = {"linalg", "fft", "special"}  # variants that name the module in which a row `<module>_<name>` is public
KNOWN_KEYS = {
    "tags", "selects", "op", "signature", "kind", "variants", "expr", "int_expr", "complex_expr", "bool_expr", "promote", "dtypes", "backward", "scalar", "wide_number", "wide_params", "checks",
    "half_expr", "half_bits", "cost", "kernel", "view", "entry", "samples", "reference", "aliases", "doc", "first_bool", "nondiff", "backward_dtypes", "node",
    "multi_view", "bool_error", "int_error", "tensor_only", "symbol", "cases",
    "overload", "autocast", "two_numbers", "exact_out", "out_needs", "public", "body", "forward", "flat", "saved_for", "saved_as", "recorded", "held", "moves", "stored", "composed", "decompose",
    "step", "operation", "meta", "called",
    "overloads", "spellings", "by_name", "starred", "dims", "forms", "wraps",
    "shape", "dtype", "require", "let", "input_dtype", "step_dtype", "contiguous", "complex_kernel",
}  # fmt: skip
TAGS = {
    "core", "pointwise", "reduction", "random", "data_dependent_output", "dynamic_output_shape", "host_sync", "inplace_view", "reshapes", "stored_dtypes",
    "stored_ints", "stored_complex",
}  # fmt: skip
COMPOSED_KEYS = {
    "autocast", "tags", "op", "kind", "signature", "overload", "overloads", "starred", "variants", "aliases", "doc", "by_name", "opaque", "spellings", "view",
}  # fmt: skip


class DeclarationError(ValueError):
    """A row that the generator can't use; the message names the file and the operator."""


@dataclass
class Argument:
    type: str
    name: str
    default: str | None = None
    keyword: bool = False
    written: bool = False  # `Tensor(a!)`: an argument that the operator changes beside its result

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")


@dataclass
class Operator:
    name: str
    family: str
    kind: str
    arguments: list[Argument]
    returns: list[str]
    variants: set[str]
    row: dict[str, Any] = field(default_factory=dict)
    result_names: list[str] = field(default_factory=list)

    @property
    def tensors(self) -> list[Argument]:
        return [a for a in self.arguments if a.is_tensor]

    @property
    def params(self) -> list[Argument]:
        return [a for a in self.arguments if not a.is_tensor]

    @property
    def backward(self) -> dict[str, str]:
        declared = self.row.get("backward")
        return {k: str(v) for k, v in declared.items()} if isinstance(declared, dict) else {}

    @property
    def dtypes(self) -> list[str]:
        text = self.row.get("dtypes", "float_complex" if "float" in str(self.row.get("promote", "")).replace("int_to_float", "") else "all")
        if isinstance(text, list):
            return text
        if text not in DTYPE_SETS:
            raise DeclarationError(f"{self.family}.yaml: {self.name}: unknown dtypes {text!r}, choose from {', '.join(DTYPE_SETS)} or give a list")
        return DTYPE_SETS[text]

    @property
    def public_name(self) -> str:
        """`normal_` of a row that has an in-place form alone."""
        return self.name + "_" if self.variants == {"inplace"} else self.name

    @property
    def identifier(self) -> str:
        return "OP_" + self.name.upper()


_MARK = re.compile(r"\([a-z](!?|\|[a-z]!?| -> \*)\)")  # of what is shared or written: `(a)`, `(a!)`
_ARGUMENT = re.compile(r"^(?P<type>[A-Za-z]+(\??\[\d*\])?\??(\|[A-Za-z]+(\??\[\d*\])?\??)*)\s+(?P<name>\w+)(\s*=\s*(?P<default>.+))?$")


def split_commas(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts


def parse_signature(text: str) -> tuple[str | None, list[Argument], list[str], list[str]]:
    """`name(Tensor self, *, Scalar alpha=1) -> Tensor` into its name, arguments, results and the results' names, where all have one."""
    m = re.match(r"^\s*(?P<name>\w+(?:\.\w+)?)?\s*\((?P<args>.*)\)\s*->\s*(?P<ret>.+)$", text.strip(), re.S)
    if not m:
        raise DeclarationError(f"not a signature: {text!r}")
    arguments: list[Argument] = []
    keyword = False
    for part in split_commas(m["args"]):
        if part == "*":
            keyword = True
            continue
        marks = _MARK.findall(part)
        a = _ARGUMENT.match(_MARK.sub("", part))
        if not a:
            raise DeclarationError(f"not an argument: {part!r} in {text!r}")
        if a["type"] == "Any":
            raise DeclarationError(f"{text!r}: {a['name']} is Any: name its type, or several as in Tensor|Scalar")
        kind = re.sub(r"\[\d+\]", "[]", a["type"]).replace("SymInt", "int")  # sizes are ints here
        arguments.append(Argument(kind, a["name"], a["default"], keyword, "!" in marks))
    ret = _MARK.sub("", m["ret"].strip()).replace("SymInt", "int")
    returns = split_commas(ret[1:-1]) if ret.startswith("(") else [ret]
    parts = [r.split() for r in returns]
    return m["name"], arguments, [r[0] for r in parts], [r[1] for r in parts] if all(len(r) == 2 for r in parts) else []


def schema_text(op: Operator) -> str:
    """PyTorch's notation, with defaults."""
    parts: list[str] = []
    written = 0
    for a in op.arguments:
        if a.keyword and "*" not in parts:
            parts.append("*")
        default = "" if a.default is None else "=" + a.default.replace('"', "'")  # stands in a C string
        parts.append(f"{a.type}{'(' + chr(ord('a') + written) + '!)' if a.written else ''} {a.name}{default}")
        written += a.written
    returned = op.returns[0] if len(op.returns) == 1 and not op.result_names else "(" + ", ".join(" ".join(x) for x in zip(op.returns, op.result_names or [""] * len(op.returns))).replace(" ,", ",").strip() + ")"
    return f"{op.name}{'.' + op.row['overload'] if 'overload' in op.row else ''}({', '.join(parts)}) -> {returned}"


def contract(op: Operator) -> list[str]:
    """The schemas that a row stands for, as it writes them: marks of what is shared and written, SymInt, sizes of lists."""
    if "overloads" in op.row:
        return list(op.row["overloads"])
    text = op.row["signature"].strip()
    name = op.name.rpartition(".")[2] + ("." + op.row["overload"] if "overload" in op.row else "")
    return [name + text[text.index("(") :]]


def aliases(op: Operator) -> list[str]:
    """Other public names of the same functions."""
    return [a.strip() for a in str(op.row.get("aliases", "")).split(",") if a.strip()]


def tags_of(op: Operator) -> list[str]:
    """What the row declares, and what follows from its kind: `pointwise`, and `random` of what takes a generator. `core.Tensor` is of one overload."""
    found = [word.strip() for word in str(op.row.get("tags", "")).split(",") if word.strip()]
    if unknown := {word.partition(".")[0] for word in found} - TAGS:
        raise DeclarationError(f"{op.family}.yaml: {op.name} has unknown tags {sorted(unknown)}, choose from {', '.join(sorted(TAGS))}")
    if op.kind == "pointwise":
        found.append("pointwise")
    if any(a.name == "generator" for a in op.arguments) and "random" not in found:
        found.append("random")
    return found


AUTOCAST_POLICIES = {"lower": "l", "float32": "f", "promote": "p", "float32_sum": "s", "banned": "b"}


def autocast_letters(op: Operator) -> str:
    """`autocast: lower` for both devices, or `{cpu: float32, cuda: lower}`, as a C string of two letters."""
    declared = op.row.get("autocast")
    if declared is None:
        return "NULL"
    by_device = declared if isinstance(declared, dict) else {"cpu": declared, "cuda": declared}
    unknown = set(by_device) - {"cpu", "cuda"} | set(by_device.values()) - set(AUTOCAST_POLICIES)
    if unknown:
        raise DeclarationError(f"{op.family}.yaml: autocast of {op.name} has unknown devices or policies {sorted(unknown)}")
    return '"' + "".join(AUTOCAST_POLICIES.get(by_device.get(device, ""), "-") for device in ("cpu", "cuda")) + '"'


STORED_SETS = {
    "unsigned": [row.type for row in dtypes.ALL if row.encoding == "INTEGER"],
    "complex": [row.type for row in dtypes.ALL if row.encoding == "PAIR"],
    "float8": [row.type for row in dtypes.ALL if not row.has_loops and row.category == "FLOAT"],
    "all": [row.type for row in dtypes.ALL if not row.has_loops],
}
STORED_POLICIES = {"bits": "b", "compute": "c", "ordered": "o", "positions": "p", "int64": "i", "named": "d", "float": "f", "truth": "t", "none": "."}


def stored_policies(op: Operator) -> dict[str, str]:
    """`stored: {all: bits, f8e8m0: none}` as {type: policy}; later entries go before earlier ones."""
    found: dict[str, str] = {}
    if op.row.get("stored") == "own":
        return found
    for wanted, policy in (op.row.get("stored") or {}).items():
        if policy not in STORED_POLICIES or (op.kind == "pointwise" and policy not in ("bits", "compute", "none")):
            raise DeclarationError(f"{op.family}.yaml: stored of {op.name} has the unknown policy {policy!r}")
        if wanted not in STORED_SETS and wanted not in STORED_SETS["all"]:
            raise DeclarationError(f"{op.family}.yaml: stored of {op.name} has the unknown type {wanted!r}")
        found.update(dict.fromkeys(STORED_SETS.get(wanted, [wanted]), policy))
    return {t: policy for t, policy in found.items() if policy != "none"}


def stored_letters(op: Operator) -> str:
    """The policies as a C string with a letter by dtype code."""
    policies = stored_policies(op)
    return '"' + "".join(STORED_POLICIES[policies.get(row.type, "none")] for row in dtypes.ALL) + '"' if policies else "NULL"


def stored_bits(op: Operator) -> tuple[str, bool]:
    """Of a pointwise row: the types as a set of bits by code, and whether their elements are moved as bits."""
    policies = stored_policies(op)
    if len(set(policies.values())) > 1:
        raise DeclarationError(f"{op.family}.yaml: stored of {op.name} has several policies: a pointwise operator has one")
    return hex(sum(1 << row.code for row in dtypes.ALL if row.type in policies)), "bits" in policies.values()


_DIMS_WORD = re.compile(r"[a-z0-9]|\[[a-z]\]|\*|\.\.\.|conj|\[?(?P<argument>\w{2,})\]?|(perm|sizes|strides)\((?P<whole>\w+)\)")


def check_dims(row: dict[str, Any], arguments: list[Argument], where: str) -> None:
    """The row's `dims` has words of the notation, no more operands than there are tensors, and names arguments that there are."""
    text = row.get("dims")
    if text is None:
        return
    left, arrow, right = str(text).partition("->")
    found = [_DIMS_WORD.fullmatch(word) for word in f"{left} {right}".replace(",", " ").split()]
    names = {m["argument"] or m["whole"] for m in found if m} - {None, "conj"}
    if not arrow or None in found or names - {a.name for a in arguments} or len(left.split(",")) > len([a for a in arguments if a.type.startswith("Tensor")]):
        raise DeclarationError(f"{where}: dims {text!r} is not in the notation of tensorrt_lite/_transforms/rules_rows.py, or names no argument: {sorted(names - {a.name for a in arguments})}")


def parse_row(row: dict[str, Any], family: str, composed: bool = False) -> Operator:
    name = row.get("op")
    if isinstance(name, str) and name.startswith("trtl::"):
        if "decompose" not in row:
            raise DeclarationError(f"{family}.yaml: {name} is no operator of ATen and has no decompose")
        name = "trtl_" + name[6:]
    unknown = set(row) - (COMPOSED_KEYS if composed else KNOWN_KEYS)
    if not name or unknown:
        raise DeclarationError(f"{family}.yaml: row {name!r} has unknown keys {sorted(unknown)}" if name else f"{family}.yaml: a row has no 'op'")
    if "signature" not in row:
        raise DeclarationError(f"{family}.yaml: {name} has no signature")
    declared, arguments, returns, result_names = parse_signature(row["signature"])
    if declared not in (None, name.rpartition(".")[2], name.removeprefix("trtl_")):
        raise DeclarationError(f"{family}.yaml: {name} has the signature of {declared}")
    check_dims(row, arguments, f"{family}.yaml: {name}")
    variants = row.get("variants", "" if "." in name else "function, method")
    chosen = {v.strip() for v in variants.split(",")} if isinstance(variants, str) else set(variants)
    if not chosen <= VARIANTS | MODULES | {""}:
        raise DeclarationError(f"{family}.yaml: {name} has unknown variants {sorted(chosen - VARIANTS)}")
    kind = row.get("kind", "composed" if composed else "pointwise" if "expr" in row else "structured" if "step" in row else "function")
    if (kind in ("composed", "factory")) != composed:
        raise DeclarationError(f"{family}: {name} of kind {kind} is in the wrong file: composed.yaml has composed rows and factories, the others are the family's")
    for overload in row.get("overloads", ()):
        parse_signature(overload)
    derivatives = row.get("backward") or {}
    if not isinstance(derivatives, dict) and derivatives != "none":
        raise DeclarationError(f"{family}.yaml: {name}: backward is 'none' or has a formula by argument")
    if kind == "function" and row.get("meta", "generated") != "generated":
        raise DeclarationError(f"{family}.yaml: {name} has a meta function and no step")
    if kind == "function" and "backward" not in row and not row.get("composed"):
        raise DeclarationError(f"{family}.yaml: {name} has no backward; a row without a gradient says 'backward: none', one whose kernel calls operators with gradients 'composed: true'")
    for target in derivatives if isinstance(derivatives, dict) else ():
        if target not in {a.name for a in arguments}:
            raise DeclarationError(f"{family}.yaml: {name} has a derivative for {target!r}, which is not an argument")
    return Operator(name, family, kind, arguments, returns, chosen, row, result_names)


def read_yaml(path: Path) -> Any:
    """A file of declarations. libyaml reads them in a tenth of the time, where PyYAML was built with it."""
    import yaml

    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def families(folder: str | Path) -> list[str]:
    """The operator families below ``folder``: <family>/<family>.yaml declares each."""
    for p in sorted(Path(folder).iterdir()):
        if not (p / f"{p.name}.yaml").exists() and ((p / f"{p.name}.pyx").exists() or (p / "steps.yaml").exists()):
            raise DeclarationError(f"{p.name}: no {p.name}.yaml in the folder, which declares the family's operators")
    return sorted(p.stem for p in Path(folder).glob("*/*.yaml") if p.stem == p.parent.name)


def parts(folder: Path) -> list[Path]:
    """The sources of a family's folder that its module takes in before <family>.pyx: what nobody cimports (there is no .pxd of the name). Each module costs a second to compile."""
    return [p for p in sorted(folder.glob("*.pyx")) if p.stem != folder.name and not p.with_suffix(".pxd").exists()]


def load(folder: str | Path) -> list[Operator]:
    """All declarations below ``folder``, in a fixed order: those with generated code, then the composed ones."""
    operators: list[Operator] = []
    seen: dict[str, str] = {}
    generated = [Path(folder) / family / f"{family}.yaml" for family in families(folder)]
    for path in [*generated, *sorted(Path(folder).glob("*/composed.yaml"))]:
        for row in read_yaml(path) or []:
            if not isinstance(row, dict):
                raise DeclarationError(f"{path.parent.name}/{path.name}: {row!r} is no row, which begins with '- op: name'")
            op = parse_row(row, path.parent.name, path.name == "composed.yaml")
            here = f"{path.parent.name}/{path.name}"
            if op.public_name in seen:
                raise DeclarationError(f"{op.name} is declared in {seen[op.public_name]} and in {here}")
            seen[op.public_name] = here
            operators.append(op)
    return operators
