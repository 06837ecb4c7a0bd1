"""Pointwise operators: C loops per dtype and instruction set, static descriptions, entries."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

from .expression import angles, compute_type, divisions, functions, names, to_c, to_composed, to_lanes
from .schema import COMPLEX, FLOATS, DeclarationError, Operator, autocast_letters, read_yaml, schema_text, stored_bits

_PROMOTE = {
    "same": "PROMOTE_SAME",
    "float": "PROMOTE_FLOAT",
    "bool": "PROMOTE_BOOL_OUT",
    "real": "PROMOTE_REAL_OUT",
    "int_to_float": "PROMOTE_INT_TO_FLOAT",
}


LOOPS = Path(__file__).resolve().parents[2] / "cysrc" / "loops"
HALVES = ("f16", "bf16")
CHEAP = {"abs", "sqrt", "rsqrt", "reciprocal", "maximum", "minimum", "fmax", "fmin", "floor", "ceil", "trunc", "round", "frac", "sign", "sgn", "copysign", "conj", "real",
         "isnan", "isinf", "isfinite", "signbit", "angle", "nextafter", "bitwise_not", "lshift", "rshift"}  # functions whose halves are converted in registers
MOST_ROWS = 4  # widened blocks of by_floats in lanes.h: the result's and the operands'
GUARDED = ("f16", "bf16", "f32", "f64")      # types with values beyond the range of the vector functions of angles and quotients


class Loop:
    """One family of loops: a name, operand names, an expression, dtypes."""

    def __init__(self, name: str, operands: list[str], params: list[str], op: Operator, dtypes: list[str], bool_out: bool, real_out: bool, text: str | None):
        self.name, self.operands, self.params, self.op = name, operands, params, op
        self.dtypes, self.bool_out, self.real_out, self.text = dtypes, bool_out, real_out, text
        self.index = -1

    def expression(self, dtype: str) -> str:
        if self.text is not None:
            return self.text
        row = self.op.row
        if dtype == "b8" and "bool_expr" in row:
            return row["bool_expr"]
        if dtype in COMPLEX and "complex_expr" in row:
            return row["complex_expr"]
        if dtype in ("b8", "u8", "i8", "i16", "i32", "i64") and "int_expr" in row:
            return row["int_expr"]
        if dtype in ("f16", "bf16") and "half_expr" in row:
            return row["half_expr"].replace("half", dtype)
        return row["expr"]

    def suffix(self, dtype: str) -> str:
        """Of the scalar function: the type that it computes in, or the half type whose expression is its own."""
        return dtype if self.text is None and "half_expr" in self.op.row and dtype in ("f16", "bf16") else compute_type(dtype)

    def operand_type(self, name: str, dtype: str) -> str:
        return "b8" if self.op.row.get("first_bool") and name == self.op.tensors[0].name else dtype

    def out_type(self, dtype: str) -> str:
        if self.bool_out:
            return "b8"
        if self.real_out and dtype in COMPLEX:
            return {"c64": "f32", "c128": "f64"}[dtype]
        return dtype


def loops_of(op: Operator) -> tuple[Loop, dict[str, Loop]]:
    """The forward loop and the fused backward loops by argument."""
    promote = op.row.get("promote", "same")
    tensors = [a.name for a in op.tensors]
    if wrong := [a for a in op.params if a.type != "Scalar"]:
        raise DeclarationError(f"{op.family}.yaml: {op.name}: a parameter of a pointwise operator is a Scalar, and {wrong[0].name} is declared as {wrong[0].type}")
    if not 1 <= len(tensors) <= 3:
        raise DeclarationError(f"{op.family}.yaml: {op.name} has {len(tensors)} tensors: a pointwise operator has one to three")
    unknown = [p for p in str(promote).split(",") if p.strip() not in _PROMOTE]
    if unknown:
        raise DeclarationError(f"{op.family}.yaml: {op.name}: unknown promotion {unknown[0].strip()!r}, choose from {', '.join(_PROMOTE)}")
    stray = names(str(op.row.get("expr", ""))) - set(tensors) - {a.name for a in op.params} - {"inf", "nan"}
    if stray:
        raise DeclarationError(f"{op.family}.yaml: the expression of {op.name} reads unknown names {sorted(stray)}")
    params = [a.name for a in op.params]
    forward = Loop(op.name, tensors, params, op, op.dtypes, promote == "bool", "real" in promote, None)
    fused: dict[str, Loop] = {}
    for target, formula in op.backward.items():
        used = names(formula)
        order = [n for n in ["grad", *tensors, "result"] if n in used]
        unknown = used - set(order) - set(params) - {"inf", "nan"}
        if unknown:
            raise DeclarationError(f"{op.family}.yaml: derivative of {op.name} reads unknown names {sorted(unknown)}")
        if formula.strip() == "grad":
            continue
        if "grad" not in order:
            order.insert(0, "grad")
        dtypes = [t for t in FLOATS + (COMPLEX if "c64" in op.dtypes else []) if t in op.dtypes or "float" in promote]
        if "backward_dtypes" in op.row:
            dtypes = [t for t in dtypes if t in op.row["backward_dtypes"]]
        if "real" in promote:
            dtypes = [t for t in dtypes if t not in COMPLEX]
        if not dtypes:
            continue
        fused[target] = Loop(f"{op.name}_backward_{target}", order, params, op, dtypes, False, False, formula)
    return forward, fused


def derivatives(op: Operator) -> list[Loop]:
    """The fused backward loops, each an operator of its own."""
    return list(loops_of(op)[1].values()) if op.kind == "pointwise" else []


def derivative_identifier(loop: Loop) -> str:
    return f"OP_{loop.name.upper()}"


def c_function(loop: Loop, dtype: str, exact: bool = False) -> str:
    """The scalar function of one compute type; `exact` for angles and quotients beyond the vector functions' range."""
    c = compute_type(dtype)
    out = compute_type(loop.out_type(dtype))
    args = [f"{compute_type(loop.operand_type(n, dtype))} v_{n}" for n in loop.operands] + [f"{c} v_{n}" for n in loop.params]
    body = to_c(loop.expression(dtype), dtype, exact)
    unused = "".join(f"(void)v_{n}; " for n in loop.operands + loop.params)
    value = f"(({body}) != 0)" if out == "b8" else f"({out})({body})"
    return f"INL {out} {'e' if exact else 'x'}_{loop.name}_{loop.suffix(dtype)}({', '.join(args) or 'void'}) {{ {unused}return {value}; }}"


def guards(loop: Loop, dtype: str, load: Callable[[str, str], str]) -> list[str]:
    """Conditions on element i under which the vector functions do not serve."""
    c, text = compute_type(dtype), loop.expression(dtype)
    element = {name: load(loop.operand_type(name, dtype), f"a{i}[i]") for i, name in enumerate(loop.operands)}
    tests = [f"(abs_{c}({value}) > ({c})1e5)" for name, value in element.items() if name in angles(text) and dtype != "f16"]
    return tests + [f"!quotient_within_{c}({element[x]}, {element[y]})" for x, y in sorted(divisions(text))]


@functools.cache
def forms() -> set[tuple[str, str]]:
    """Functions that AVX-512 has an own form of, with their types."""
    found = re.findall(r"INL lanes_\S+ (\w+)_lanes_(f32|f64|##T)\(lanes_\S+ x\)", (LOOPS / "vector_math_avx512.h").read_text())
    return {(name, kind) for name, kinds in found for kind in (("f32", "f64") if kinds == "##T" else (kinds,))}


@functools.cache
def blocks() -> set[str]:
    """Functions that come as whole loops over their operands, NAME_block_f32 and NAME_block_f64, which several operators share."""
    text = (LOOPS / "special_vector.h").read_text()
    found = set(re.findall(r"^DEFINE_(?:BOTH|WIDE)\((\w+),", text, re.M))
    scaled = re.findall(r"^DEFINE_SCALED\((\w+),", text, re.M)
    found |= set(re.findall(r"^DEFINE_RECURRENCE\((\w+),", (LOOPS / "special_recurrences.h").read_text(), re.M))
    return {f"special_{name}" for name in found | {f"{name}{e}" for name in scaled for e in ("", "e")}}


def block_of(loop: Loop, dtype: str) -> str | None:
    """The function of which a loop is nothing but the block."""
    called = re.fullmatch(r"(\w+)\(([\w, ]+)\)", loop.expression(dtype))
    return called[1] if called and called[1] in blocks() and loop.operands == called[2].split(", ") and dtype in ("f32", "f64") else None


def has_form(loop: Loop, dtype: str) -> bool:
    """Whether the loop of a type is written over registers with AVX-512: all functions of its expression have a form, and it has some."""
    called = functions(loop.expression(dtype))
    return bool(called - {"abs"}) and compute_type(dtype) in ("f32", "f64") and loop.out_type(dtype) == dtype and all((f, compute_type(dtype)) in forms() for f in called)


def lanes_function(loop: Loop, dtype: str) -> str:
    """The same function as c_function's, of registers."""
    c = compute_type(dtype)
    args = ", ".join(f"lanes_{c} v_{n}" for n in [*loop.operands, *loop.params])
    return f"#ifdef __AVX512F__\nINL lanes_{c} l_{loop.name}_{loop.suffix(dtype)}({args}) {{ return {to_lanes(loop.expression(dtype), dtype)}; }}\n#endif"


def by_floats(loop: Loop, dtype: str) -> bool:
    """Whether the loop of halves runs that of float32 on widened blocks with AVX2 (by_floats_bf16 in lanes.h): its functions cost more than the conversions."""
    own = "half_expr" in loop.op.row and loop.text is None
    alike = loop.out_type(dtype) == dtype and all(loop.operand_type(n, dtype) == dtype for n in loop.operands)
    return len(loop.operands) < MOST_ROWS and bool(functions(loop.expression(dtype)) - CHEAP) and not own and alike and "f32" in loop.dtypes and highest_sets().get(loop.name, {}).get("f32") != "base"


def load(t: str, text: str) -> str:
    return f"ld_{t}({text})" if t in HALVES else text


def c_loop(loop: Loop, dtype: str, scalar_forms: list[int]) -> str:
    """The contiguous loop of one dtype, and a second form where an operand is one number."""
    c = compute_type(dtype)
    out = loop.out_type(dtype)
    name = f"{loop.name}_{loop.suffix(dtype)}"
    lines = [f"static void k_{loop.name}_{dtype}(char** d, const int64_t* s, int64_t n, const Scalar* p) {{"]
    lines.append(f"  (void)s; (void)p; {out}* restrict o = ({out}*)d[0];")
    for i, operand in enumerate(loop.operands):
        t = loop.operand_type(operand, dtype)
        lines.append(f"  const {t}* a{i} = (const {t}*)d[{i + 1}];")
    for i in range(len(loop.params)):
        lines.append(f"  const {c} q{i} = par_{c}(p + {i});")

    tests = guards(loop, dtype, load) if dtype in GUARDED else []
    if dtype in HALVES and "half_bits" in loop.op.row and loop.text is None:
        lines.append(f"  IVDEP for (int64_t i = 0; i < n; i++) {{ const i16 v_{loop.operands[0]} = (i16)a0[i].v; o[i].v = (u16){to_c(loop.op.row['half_bits'], 'i16')}; }}\n}}")
        return "\n".join(lines)
    block = block_of(loop, dtype)
    if staged := dtype in HALVES and highest_sets().get(loop.name, {}).get(dtype) != "base" and by_floats(loop, dtype):
        f32 = f"k_{loop.name}_f32"
        lines[:0] = ["#if defined(__AVX2__) && !defined(__AVX512F__)", f"static void {f32}(char** d, const int64_t* s, int64_t n, const Scalar* p);",
                     f"static void k_{loop.name}_{dtype}(char** d, const int64_t* s, int64_t n, const Scalar* p) {{ by_floats_{dtype}({f32}, {len(loop.operands)}, d, s, n, p); }}", "#else"]  # fmt: skip
    registers, form = dtype in HALVES and highest_sets().get(loop.name, {}).get(dtype) != "base", has_form(loop, dtype)

    def call(function: str, element: Callable[[int, str], str], one: Callable[[str], str], scalar: int | None, constant: dict[int, str]) -> str:
        args = [one(f"b{i}") if i == scalar else element(i, loop.operand_type(operand, dtype)) for i, operand in enumerate(loop.operands)]
        return f"{function}_{name}({', '.join(args + [one(constant.get(i, f'q{i}')) for i in range(len(loop.params))])})"

    def elements(scalar: int | None, constant: dict[int, str], function: str, first: str, count: str) -> str:
        """Numbers one by one, of which the compiler makes vectors."""
        if block and function == "x":
            return f"{block}_block_{dtype}(o + {first}, {', '.join(f'a{i} + {first}' for i in range(len(loop.operands)))}, {count} - {first});"
        value = call(function, lambda i, t: load(t, f"a{i}[i]"), str, scalar, constant)
        value = f"st_{out}({value})" if out in HALVES else value
        return f"{'IVDEP ' if function == 'x' else ''}for (int64_t i = {first}; i < {count}; i++) o[i] = {value};"

    def chunks(scalar: int | None, constant: dict[int, str], first: str, count: str) -> str:
        """A register or two at a time: halves are widened and narrowed by instructions that the compiler does not find."""
        of = lambda t: f"b8_{dtype}" if t == "b8" else t  # noqa: E731
        text = f"for (int64_t i = {first}; i < {count}; i += RUN_{dtype}) {{ const int64_t left = {count} - i; {compute_type(out)} r[RUN_{dtype}];"
        for i, operand in enumerate(loop.operands):
            t = loop.operand_type(operand, dtype)
            text += f" {compute_type(t)} t{i}[RUN_{dtype}]; take_{of(t)}(t{i}, a{i} + i, left);" if i != scalar else ""
        return f"{text}\n    IVDEP for (int j = 0; j < RUN_{dtype}; j++) r[j] = {call('x', lambda i, t: f't{i}[j]', str, scalar, constant)};\n    put_{of(out)}(o + i, r, left); }}"

    def lanes(scalar: int | None, constant: dict[int, str], first: str, count: str) -> str:
        value = call("l", lambda i, t: f"read_{t}(a{i} + i, {count} - i)", lambda text: f"ALL_{c}({text})", scalar, constant)
        return f"for (int64_t i = {first}; i < {count}; i += LANES_{dtype}) write_{dtype}(o + i, {value}, {count} - i);"

    def body(scalar: int | None, function: str = "x", first: str = "0", count: str = "n", constant: dict[int, str] | None = None) -> str:
        by_element = elements(scalar, constant or {}, function, first, count)
        better = [("defined(__AVX512F__)", lanes)] * form + [("defined(__AVX2__)", chunks)] * registers
        if function == "e" or not better:
            return by_element
        text = "".join(f"#{word} {condition}\n{write(scalar, constant or {}, first, count)}\n" for word, (condition, write) in zip(("if", "elif"), better))
        return f"\n{text}#else\n{by_element}\n#endif\n"

    if takes_wide_number(loop) and dtype in (*HALVES, "f32"):
        # halves that are computed by the float32 loop bring it there
        exact = compute_type(dtype) in GUARDED and bool(angles(loop.expression(dtype)) or divisions(loop.expression(dtype)))
        lines.append(f"  if (p) {{ const f32 b1 = par_f32(p); {body(1, 'e' if exact else 'x')} return; }}")
    for operand in scalar_forms:
        t = loop.operand_type(loop.operands[operand], dtype)
        lines.append(f"  if (s[{operand + 1}] == 0) {{ const {compute_type(t)} b{operand} = {load(t, f'a{operand}[0]')};")
        lines.append("    " + body(operand) + " return; }")
    for param, values in (loop.op.row.get("cases") or {}).items():
        i = loop.params.index(param)
        for v in values:
            # the number becomes a constant of the inlined expression, which folds what depends on it
            lines.append(f"  if (p[{i}].kind != SCALAR_COMPLEX && (f64)par_f64(p + {i}) == {float(v)!r}) {{")
            lines.append("    " + body(None, constant={i: f"({c}){v!r}"}) + " return; }")
    if tests:
        lines.append("  for (int64_t begin = 0; begin < n; begin += 256) {")
        lines.append("    const int64_t end = begin + 256 < n ? begin + 256 : n; int large = 0;")
        lines.append(f"    for (int64_t i = begin; i < end; i++) large |= {' | '.join(tests)};")
        lines.append("    if (__builtin_expect(large, 0)) { " + body(None, "e", "begin", "end") + " }")
        lines.append("    else { " + body(None, "x", "begin", "end") + " } }")
    else:
        lines.append("  " + body(None))
    lines.append("}")
    return "\n".join([*lines, *["#endif"] * staged])


@functools.cache
def highest_sets() -> dict[str, dict[str, str]]:
    """{loop: {dtype: the highest instruction set that it gains by}} where that is not the last one: the measured list of loops/sets.yaml."""
    listed = read_yaml(LOOPS / "sets.yaml")
    return {name: {t: s for s, types in sets.items() for t in types.split()} for name, sets in listed.items()}


def when(loop: Loop, dtype: str, text: str) -> list[str]:
    """C text of a loop that is left out of the builds for instruction sets by which it gains nothing."""
    highest = highest_sets().get(loop.name, {}).get(dtype)
    return [text] if highest is None else [f"#if ISA_HAS(ISA_{highest.upper()})", text, "#endif"]


def loops_source(family: str, part: int, loops: list[Loop]) -> str:
    """One C file of loops; compiled once per instruction set with -DISA=<name>."""
    own = [f'#include "../loops/{family}_math.h"'] if (LOOPS / f"{family}_math.h").exists() else []
    text = ['#include "../core/isa.h"', '#include "../loops/lanes.h"', '#include "../loops/vector_math.h"', '#include "../loops/vector_math_avx512.h"', *own, '#include "../core/pointwise.h"', "#if defined(__AVX2__) && !defined(__AVX512F__)\nDEFINE_BY_FLOATS(f16)\nDEFINE_BY_FLOATS(bf16)\n#endif", '#define IVDEP _Pragma("GCC ivdep")']
    table = []
    for loop in loops:
        seen = set()
        forms = scalar_forms_of(loop)
        for t in loop.dtypes:
            key = (loop.suffix(t), loop.out_type(t) == "b8")
            if key not in seen:
                seen.add(key)
                text.append(c_function(loop, t))
                if compute_type(t) in GUARDED and (angles(loop.expression(t)) or divisions(loop.expression(t))):
                    text.append(c_function(loop, t, True))
                if has_form(loop, t):
                    text.append(lanes_function(loop, t))
            text += when(loop, t, c_loop(loop, t, forms))
        table += ["  {", *(line for t in loop.dtypes for line in when(loop, t, f"    [DT_{t}] = k_{loop.name}_{t},")), "  },"]
    text.append(f"const loop_t ISA_NAME(loops_{family}_{part})[][NUM_DTYPES] = {{")
    text += table + ["};"]
    return "\n".join(text) + "\n"


def scalar_forms_of(loop: Loop) -> list[int]:
    wanted = loop.op.row.get("scalar")
    if not wanted or loop.text is not None:
        return []
    return [loop.operands.index(n.strip()) for n in str(wanted).split(",")]


def takes_wide_number(loop: Loop) -> bool:
    """Whether `other`, the second operand, may be a number beside halves that is not rounded to them."""
    return bool(loop.op.row.get("wide_number")) and len(loop.operands) == 2 and loop.operands[1] == "other" and not loop.params


def checks_of(op: Operator) -> str:
    """`checks: alpha, zero_divisor` as C flags."""
    found = [c.strip() for c in str(op.row.get("checks", "")).split(",") if c.strip()]
    return " | ".join("CHECK_" + c.upper() for c in found) or "0"


def c_string(text: str) -> str:
    return "b\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\""


def camel(name: str) -> str:
    return "".join(w[:1].upper() + w[1:] for w in name.split("_") if w)


LOOPS_PER_FILE = 40


def in_files(loops: list[Loop]) -> list[list[Loop]]:
    return [loops[i:i + LOOPS_PER_FILE] for i in range(0, len(loops), LOOPS_PER_FILE)]


def loops_of_family(ops: list[Operator]) -> list[list[Loop]]:
    """The loops of a family's pointwise operators as they lie in its C files."""
    return in_files([loop for op in ops for forward, fused in [loops_of(op)] for loop in (forward, *fused.values())])


def emit(family: str, ops: list[Operator]) -> tuple[str, list[str]]:
    """Cython text of a family's pointwise operators and its C loop files."""
    planned = [(op, *loops_of(op)) for op in ops]
    loops = [loop for _, forward, fused in planned for loop in (forward, *fused.values())]
    for i, loop in enumerate(loops):
        loop.index = i
    parts = in_files(loops)
    files = [loops_source(family, k, part) for k, part in enumerate(parts)]
    c: list[str] = ['#include "pointwise.h"']
    c += [f"ISA_ROWS(loop_t, loops_{family}_{k}, {len(part)} * NUM_DTYPES)" for k, part in enumerate(parts)]
    c.append(f"static PointwiseInfo pw_{family}[{max(len(loops), 1)}];")
    c.append(f"static void trt_fill_loops_{family}(void) {{")
    for k, part in enumerate(parts):
        c.append(f"  {{ const loop_t* t = loops_{family}_{k}();")
        c.append(f"    for (int i = 0; i < {len(part)}; i++) memcpy(pw_{family}[{k * LOOPS_PER_FILE} + i].loops, t + NUM_DTYPES * i, NUM_DTYPES * sizeof *t); }}")
    c.append("}")
    c += [row_of(op) for op, _, _ in planned]
    py: list[str] = [FLAT_IN] if any(op.row.get("flat") for op in ops) else []
    init: list[str] = []
    for op, forward, fused in planned:
        emit_operator(family, op, forward, fused, py, init)
    constants = ["    enum:"] + [f"        PW_{op.name.upper()} \"{forward.index}\"" for op, forward, _ in planned] if planned else []
    text = ['cdef extern from *:', '    """'] + ["    " + line for line in c] + ['    """',
            f"    PointwiseInfo* pw_{family}", *(f"    trt_row row_{op.name}" for op, _, _ in planned), *constants, f"    void trt_fill_loops_{family}()", ""]  # fmt: skip
    text += py
    text += [f"cdef int _register_pointwise_{family}() except -1:", f"    trt_fill_loops_{family}()"]
    text += ["    " + line for line in init] + ["    return 0", "", f"_register_pointwise_{family}()", ""]
    return "\n".join(text), files


def row_of(op: Operator) -> str:
    """The row of core/dispatch.h: tensors first, then parameters."""
    if [a for a in op.arguments if a.is_tensor] != op.arguments[: len(op.tensors)]:
        raise DeclarationError(f"{op.family}.yaml: {op.name} has a tensor behind a parameter")
    return f'static trt_row row_{op.name} = {{"{schema_text(op)}", "{"t" * len(op.tensors)}{"s" * len(op.params)}", \'t\', 1, 0, 0, {autocast_letters(op)}, NULL, NULL, NULL}};'


def emit_operator(family: str, op: Operator, forward: Loop, fused: dict[str, Loop], py: list[str], init: list[str]) -> None:
    tensors = [a.name for a in op.tensors]
    params = op.params
    n = len(tensors)
    info = f"pw_{family}[{forward.index}]"
    slots = {"grad": 0, "result": 4, **{t: i + 1 for i, t in enumerate(tensors)}}
    row = op.row
    promote = " | ".join(_PROMOTE[p.strip()] for p in str(row.get("promote", "same")).split(","))
    if row.get("first_bool"):
        promote += " | PROMOTE_FIRST_BOOL"
    init.append(f"{info}.name = b\"{op.name}\"")
    init.append(f"{info}.node_name = b\"{row.get('node', camel(op.name) + 'Backward0')}\"")
    init.append(f"{info}.nin = {n}; {info}.nparams = {len(params)}; {info}.promote = {promote}; {info}.cost = {row.get('cost', 1)}")
    forms = 0
    for i in scalar_forms_of(forward):
        forms |= 1 << (i + 1)
    if row.get("forward") == "self_adjoint":
        init.append(f"{info}.self_adjoint = 1")
    init.append(f"{info}.scalar_forms = {forms}; {info}.checks = {checks_of(op)}")
    stored, as_bits = stored_bits(op)
    if takes_wide_number(forward):
        init.append(f"{info}.wide_number = 1")
    if wide := row.get("wide_params"):
        bits = {"half": 0, "single": 4, "any": 8}
        init.append(f"{info}.wide_params = {sum(1 << forward.params.index(p) + bits[w] for p, w in wide.items())}")
    if "stored" in row:
        init.append(f"{info}.stored = {stored}; {info}.stored_as_bits = {int(as_bits)}")
    if row.get("bool_error"):
        init.append(f"{info}.bool_error = {c_string(row['bool_error'])}")
    if row.get("int_error"):
        init.append(f"{info}.int_error = {c_string(row['int_error'])}")
    only = row.get("tensor_only", False)
    no_numbers = tensors if only is True else [t.strip() for t in str(only or "").split(",") if t.strip()]
    init.append(f"{info}.tensor_only = {sum(1 << tensors.index(t) for t in no_numbers)}")
    init.append(f"{info}.two_numbers = {int(bool(row.get('two_numbers')))}; {info}.exact_out = {int(bool(row.get('exact_out')))}")
    if row.get("first_bool"):
        init.append(f"{info}.in_type[0] = IN_BOOL")
    if op.backward:
        mask = 0
        init.append(f"{info}.differentiable = 1")
        for i, t in enumerate(tensors):
            formula = op.backward.get(t)
            if formula is None:
                continue
            for used in names(formula):
                if used in slots and used != "grad":
                    # any derivative reads it, and that of operand i
                    mask |= 1 << slots[used] | 1 << (8 + 8 * i + slots[used] - 1)
            emit_formula(family, op, t, formula, slots, py)
            init.append(f"{info}.formula[{i}] = formula_{op.name}_{t}")
            if t in fused:
                loop = fused[t]
                if formula.replace(" ", "") in [f"grad*{p}" for a in params[:1] for p in (a.name, f"conj({a.name})")]:
                    init.append(f"{info}.unit_pass |= {1 << i}")
                b = f"pw_{family}[{loop.index}]"
                init.append(f"{info}.fused[{i}] = &{b}; {info}.n_used[{i}] = {len(loop.operands)}")
                init += [f"{info}.used[{i}][{j}] = {slots[x]}" for j, x in enumerate(loop.operands)]
                init.append(f"{b}.name = b\"{loop.name}\"; {b}.nin = {len(loop.operands)}; {b}.nparams = {len(params)}; {b}.cost = {row.get('cost', 1)}")
                if takes_wide_number(loop):
                    init.append(f"{b}.wide_number = 1")
                if "wide_params" in row:
                    init.append(f"{b}.wide_params = {info}.wide_params")
                if "stored" in row and not as_bits:
                    init.append(f"{b}.stored = {stored}")
                if row.get("first_bool") and tensors[0] in loop.operands:
                    init.append(f"{b}.in_type[{loop.operands.index(tensors[0])}] = IN_BOOL")
                init.append(f"register_derivative(&{b}, &{info}, {i}, {derivative_identifier(loop)})")
        init.append(f"{info}.save_mask = {mask}")
    emit_symbols(op, info, py)
    read = set().union(*(names(formula) for formula in op.backward.values()))
    saved_params = ",".join(a.name if a.name in read else "" for a in params)
    init.append(f"row_{op.name}.unpack = unpack_pointwise; row_{op.name}.invoke = invoke_pointwise; register_pointwise(&{info}, {op.identifier}, &row_{op.name}, \"{','.join(tensors)}\", \"{saved_params}\")")
    emit_decomposition(op, py, init)


def emit_decomposition(op: Operator, text: list[str], init: list[str]) -> None:
    """What modes see in the row's place: a function of tensorrt_lite/_decompositions by its name, or the row's formula."""
    declared = op.row.get("decompose")
    if declared is None:
        return
    if re.fullmatch(r"\w+\.\w+", declared) and not declared.startswith("_ops."):
        init.append(f'set_decomposition({op.identifier}, "{declared}")')
        return
    if unknown := {u for u in names(declared) if u not in {a.name for a in op.arguments} | {"True", "False", "None"} and not u.startswith("_ops")}:
        raise DeclarationError(f"{op.family}.yaml: decompose of {op.name} reads unknown names {sorted(unknown)}")
    text.append(f"def decompose_{op.name}({', '.join(a.name for a in op.arguments)}):\n    return {declared}\n")
    init.append(f"set_decomposition({op.identifier}, decompose_{op.name})")


def emit_formula(family: str, op: Operator, target: str, formula: str, slots: dict[str, int], py: list[str]) -> None:
    used = names(formula) | {"grad"}
    py.append(f"cdef object formula_{op.name}_{target}(PyObject** slots, const Scalar* params):")
    for name, slot in sorted(slots.items(), key=lambda kv: kv[1]):
        if name in used:
            py.append(f"    cdef object {name} = <object>slots[{slot}]")
    for i, a in enumerate(op.params):
        if a.name in used:
            py.append(f"    cdef object {a.name} = scalar_object(&params[{i}])")
    composed = to_composed(formula, [a.name for a in op.params])
    saved = next((name for name in (*(t.name for t in op.tensors), "result") if name in used), None) if op.row.get("flat") else None
    py.append(f"    return flat_in({saved}, {composed})\n" if saved else f"    return {composed}\n")


# Second derivatives of a function of straight pieces: autograd sees no way from its gradient to the input, PyTorch has zeros there.
FLAT_IN = """cdef object flat_in(object saved, object grad):
    return _ops.where(_ops.ones_like(saved, dtype=dtype_of(BOOL)), grad, saved) if saved.requires_grad and saved.dtype is grad.dtype else grad
"""


def symbols(ops: list[Operator]) -> dict[str, str]:
    """{"__add__": "symbol_add"}: the operator symbols that rows declare as `symbol: add` (with `reflected` forms) or `symbol: eq`."""
    table: dict[str, str] = {}
    for op in ops:
        s = op.row.get("symbol")
        if not s:
            continue
        table[f"__{s}__"] = f"symbol_{s}"
        if len(op.tensors) == 2 and s not in _COMPARISONS:
            table[f"__r{s}__"] = f"symbol_r{s}"
            table[f"__i{s}__"] = f"symbol_i{s}"
    return table


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def emit_symbols(op: Operator, info: str, py: list[str]) -> None:
    """`a + b`, `2 + b`, `a += b`: NotImplemented where the other side is nothing that the operator takes, as Python expects."""
    for symbol, function in symbols([op]).items():
        if len(op.tensors) == 1:
            py += [f"def {function}(self):", f"    return entry1(&{info}, self, NULL, None, False)\n"]
            continue
        py.append(f"def {function}(self, other):")
        py.append("    if not isinstance(self, TensorBase):")
        if symbol == "__rsub__":
            # written in Python there, and its errors become this
            py.append("        return NotImplemented")
        else:
            py.append(f"        raise TypeError(f\"descriptor '{symbol}' for 'Tensor' objects doesn't apply to a '{{type(self).__name__}}' object\")")
        if op.params:
            py.append("    cdef Scalar p[1]")
            py.append("    unit_scalar(&p[0])")
        if symbol in ("__eq__", "__ne__"):
            # Python would answer for two that both decline; comparison.pyx
            py.append("    if not is_operand(other):\n        other = array_operand(other)\n        if other is None:\n            return NotImplemented")
        else:
            py.append("    if not is_operand(other):\n        return NotImplemented")
        # a product with a number is the tensor's by the number, as PyTorch's
        order = "other, self" if symbol.startswith("__r") and symbol not in ("__rshift__", "__rmul__") else "self, other"
        inplace = symbol.startswith("__i")
        py.append(f"    return entry2(&{info}, {order}, {'p' if op.params else 'NULL'}, None, {inplace})\n")
