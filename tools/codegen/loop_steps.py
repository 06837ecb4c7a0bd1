"""Steps that are one loop over items: between their declaration and their kernels nothing is written by hand.

`loop:` of a step (steps.yaml), or a structured row's own `step:` (schema.py), says

    types    which the loops and the CUDA kernel take: a set of schema.DTYPE_SETS or a list
    items    how many there are, an expression over `call` and the step's tensors: threads of the CPU share them out
    work     elements that all of them touch, from which the number of threads follows (items when left out)
    threads  of the CUDA kernel, each of which makes one element (items when left out)

The struct has a pointer by the name of each tensor and `int dtype`, that of the first; the functions written here fill them in. What is left to write is

    cysrc/loops/<family>*.c   static void <step>_f32(const <struct>*, int64_t begin, int64_t end) for each type, and on a line of its own <STEP>_TASK
    cuda_src/<step>.cuh       template <class T> __device__ void <step>(const <struct>&, long long at) in namespace trt; or in <family>.cuh

A source that is not there is named. The family's generated module has the CPU's functions, the module cuda.loop_steps CUDA's of all families.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import dtypes
from .schema import DTYPE_SETS, DTYPES, DeclarationError

if TYPE_CHECKING:
    from .steps import Family, Step, Struct

MOST_TENSORS = 4  # run_held of ops/support.pyx


class Loop(NamedTuple):
    """What a step of one loop says of it."""

    types: list[str]
    items: str
    work: str
    threads: str


KEYS = {"types", "items", "work", "threads"}


def parse_loop(declared: Any, where: str) -> Loop:
    if not isinstance(declared, dict) or set(declared) - KEYS or not {"types", "items"} <= set(declared):
        given = ", ".join(declared) if isinstance(declared, dict) else repr(declared)
        raise DeclarationError(f"{where}: a loop has 'types' and 'items' and may have 'work' and 'threads', here are {given}")
    named = declared["types"]
    types = DTYPE_SETS.get(named, []) if isinstance(named, str) else list(named)
    if not types or not set(types) <= set(DTYPES):
        raise DeclarationError(f"{where}: unknown types {named!r}, choose from {', '.join(DTYPE_SETS)} or give a list of {', '.join(DTYPES)}")
    items = str(declared["items"])
    return Loop(types, items, str(declared.get("work", items)), str(declared.get("threads", items)))


def tensors_of(step: Step) -> list[str]:
    return [name for kind, name in step.arguments if kind == "TensorBase"]


def struct_of(step: Step) -> str:
    return step.arguments[0][0].removesuffix("*").strip()


def check_loop(step: Step, structs: dict[str, Struct], family: str) -> None:
    """The struct has what the functions fill in."""
    where = f"{family}: {step.name}"
    struct = structs.get(struct_of(step))
    tensors = tensors_of(step)
    if struct is None or len(tensors) + 1 != len(step.arguments) or not 2 <= len(tensors) <= MOST_TENSORS:
        raise DeclarationError(f"{where}: a step that is a loop takes a struct of the family and two to {MOST_TENSORS} tensors")
    members = {f.name: f.type for f in struct.fields}
    lacking = [name for name in tensors if not members.get(name, "").endswith("*")]
    if lacking or members.get("dtype") != "int":
        raise DeclarationError(f"{where}: {struct.name} needs a pointer by the name of each tensor and 'int dtype', it has no {', '.join(lacking) or 'dtype'}")


def check_kernels(step: Step, root: Path, family: str) -> None:
    """The sources of the step are there."""
    task = re.compile(rf"^{step.name.upper()}_TASK$", re.M)
    if not any(task.search(p.read_text()) for p in (root / "cysrc" / "loops").glob(f"{family}*.c")):
        raise DeclarationError(f"{family}: {step.name}: no source cysrc/loops/{family}*.c has its loops, with the line {step.name.upper()}_TASK behind them")
    path = root / "cuda_src" / header_of(step, root, family)
    if not path.exists() or not re.search(rf"\b{step.name}\(const {struct_of(step)}&", path.read_text()):
        raise DeclarationError(f"{family}: {step.name}: neither cuda_src/{step.name}.cuh nor cuda_src/{family}.cuh has its kernel, {step.name}(const {struct_of(step)}&, long long)")


def header_of(step: Step, root: Path, family: str) -> str:
    """The file of cuda_src with the kernel."""
    return f"{step.name}.cuh" if (root / "cuda_src" / f"{step.name}.cuh").exists() else f"{family}.cuh"


def header(step: Step) -> list[str]:
    """The task of the CPU, for the source that has its loops."""
    assert step.loop is not None
    upper, struct = step.name.upper(), struct_of(step)
    # by its address: a call of a function that is not there would only be found when the module is loaded
    cases = " ".join(f"case DT_{t}: run = {step.name}_{t}; break;" for t in step.loop.types)
    return ["#ifndef __cplusplus", f"/* {step.doc} */", f"#define {upper}_TYPES(ROW) {' '.join(f'ROW({t})' for t in step.loop.types)}", f"#define {upper}_TASK \\",
            f"  void ISA_NAME({step.name})(void* context, int64_t begin, int64_t end) {{ \\", f"    const {struct}* call = context; \\",
            f"    void (*run)(const {struct}*, int64_t, int64_t) = NULL; \\", f"    switch (call->dtype) {{ {cases} }} \\", "    if (run) run(call, begin, end); \\", "  }", "#endif"]  # fmt: skip


def filled(step: Step, struct: Struct) -> list[str]:
    """The lines that fill in the struct."""
    tensors = tensors_of(step)
    kinds = {f.name: f.type for f in struct.fields}
    cast = {name: "" if kinds[name].removeprefix("const ").removesuffix("*").strip() in ("char", "void") else f"<{kinds[name]}>" for name in tensors}
    lines = [f"    call.dtype = {tensors[0]}.dtype", f"    call.{tensors[0]} = {cast[tensors[0]]}data_of({tensors[0]})"]
    return lines + [f"    call.{name} = NULL if {name} is None else {cast[name]}data_of({name})" for name in tensors[1:]]


def cpu(family: Family) -> str:
    """The CPU's functions of a family's loops, for its module."""
    text: list[str] = []
    structs = {struct.name: struct for struct in family.structs}
    for step in (s for s in family.steps if s.loop is not None):
        assert step.loop is not None
        text += ["cdef extern from *:", '    """', f"    ISA_TASK({step.name})", '    """', f'    task_fn task_of_{step.name} "{step.name}"()', "",
                 f"from tensorrt_lite._C.steps.{family.name} cimport {struct_of(step)}, set_{step.name}",
                 f"cdef task_fn loop_of_{step.name} = task_of_{step.name}()", f"cdef int step_{step.name}({step.parameters}) except -1:", *filled(step, structs[struct_of(step)]),
                 f"    return run_held(loop_of_{step.name}, call, {step.loop.items}, {step.loop.work}, {', '.join(tensors_of(step))})", f"set_{step.name}(DEV_CPU, step_{step.name})", ""]  # fmt: skip
    return "\n".join(text)


_CUDA = '''"""Steps that are one loop, on CUDA (tools/codegen/loop_steps.py): a thread makes an element."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport NUM_DTYPES
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.cuda.backend cimport blocks_for, kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.source import storage_type
{cimports}

attach()
cdef enum:
    COUNT = {count}
# name, header, struct, codes of the types
cdef tuple STEPS = (
{rows}
)
cdef FunctionHandle handles[COUNT][64][NUM_DTYPES]


cdef FunctionHandle load(int which, int index, int dtype) except NULL:
    cdef FunctionHandle* slot = &handles[which][index][dtype]
    if slot[0] == NULL:
        name, header, struct, _ = STEPS[which]
        text = f"""#include "{{header}}"

extern "C" __global__ void __launch_bounds__(256) kernel(const {{struct}} call, long long threads) {{{{
    for (long long at = blockIdx.x * 256LL + threadIdx.x; at < threads; at += gridDim.x * 256LL) trt::{{name}}<{{storage_type(dtype)}}>(call, at);
}}}}
"""
        slot[0] = kernel_of(text, "kernel", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    for which in range(<int>COUNT):
        for dtype in STEPS[which][3]:
            load(which, index, dtype)


cdef int launch(int which, void* call, TensorBase first, int64_t threads) except -1:
    cdef void* arguments[2]
    arguments[0], arguments[1] = call, &threads
    return run(load(which, first.device_index, first.dtype), first.device_index, blocks_for(threads, 256), 256, 0, arguments)
'''


def cuda(families: list[Family], root: Path) -> str:
    """The module of CUDA's functions of all families' loops."""
    chosen = [(family, step) for family in families for step in family.steps if step.loop is not None]
    cimports, rows, functions = [], [], []
    codes = {row.type: row.code for row in dtypes.ALL}
    for family in families:
        mine = [step for step in family.steps if step.loop is not None]
        if mine:
            names = sorted({struct_of(step) for step in mine} | {f"set_{step.name}" for step in mine})
            cimports.append(f"from tensorrt_lite._C.steps.{family.name} cimport {', '.join(names)}")
    for i, (family, step) in enumerate(chosen):
        assert step.loop is not None
        struct = next(s for s in family.structs if s.name == struct_of(step))
        rows.append(f'    ("{step.name}", "{header_of(step, root, family.name)}", "{struct.name}", ({", ".join(str(codes[t]) for t in step.loop.types)},)),')
        functions.append("\n".join(["", "", f"cdef int {step.name}({step.parameters}) except -1:", *filled(step, struct),
                                    f"    return launch({i}, call, {tensors_of(step)[0]}, {step.loop.threads})", "", "", f"set_{step.name}(DEV_CUDA, {step.name})"]))  # fmt: skip
    return _CUDA.format(cimports="\n".join(cimports), count=len(chosen), rows="\n".join(rows)) + "\n".join(functions) + "\n"


# ---- a row's own step ------------------------------------------------------------------------------------------------


def own_declaration(name: str, declared: dict[str, Any], tensors: list[str], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the struct, the step) of a row that declares its step itself, as steps.yaml would have them: pointers of its tensors and of the result `out`,
    the row's fields, the dtype."""
    if unknown := set(declared) - KEYS - {"fields"}:
        raise DeclarationError(f"{where}: unknown keys {sorted(unknown)} of the row's step, which has 'fields', {', '.join(sorted(KEYS))}")
    fields = list(declared.get("fields") or [])
    texts = [next(iter(f)) if isinstance(f, dict) else f for f in fields]
    given = {found[1] for text in texts if (found := re.search(r"(\w+)(\[\w+\])?$", str(text)))}
    pointers = [f"const char* {t}" for t in tensors if t not in given] + ["char* out"] * ("out" not in given)
    struct = {"struct": f"{name}_call", "doc": f"What the loops and the CUDA kernel of {name} take.", "fields": [*pointers, *fields, "int dtype"]}
    arguments = ", ".join([f"{name}_call* call", *(f"TensorBase {t}" for t in tensors), "TensorBase out"])
    step = {"step": name, "arguments": arguments, "doc": f"{name} of contiguous tensors of one type.", "loop": {k: v for k, v in declared.items() if k in KEYS}}
    return struct, step


def check_meta(meta: str, declared: dict[str, Any], kernels: str, where: str) -> None:
    """The meta function fills in all fields of the row: what it forgets would be the loop's length or a pointer from nowhere."""
    body = re.search(rf"^cdef \w+ {meta}\((\w+)\* (\w+),.*?(?=^cdef |^def |^# ---|\Z)", kernels, re.S | re.M)
    if body is None:
        return  # Cython names it
    for f in declared.get("fields") or []:
        field = re.sub(r"\[\w+\]$", "", str(next(iter(f)) if isinstance(f, dict) else f)).split()[-1].lstrip("*")
        if "*" not in str(f) and not re.search(rf"\b{body[2]}\.{field}\b", body[0]):
            raise DeclarationError(f"{where}: {meta} does not fill in {body[2]}.{field}")


def type_set(types: list[str]) -> str:
    """Bits by dtype code."""
    return hex(sum(1 << row.code for row in dtypes.ALL if row.type in types))
