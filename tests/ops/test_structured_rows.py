"""Structured rows: what a step takes is declared once, and the generator names what a row or an operation lacks."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

import tensorrt_lite as trt
from tools.codegen import dtypes, generate, schema, steps

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "cysrc" / "ops"
ROW = """
- op: cube_sum
  step: reduce
  operation: REDUCE_CUBE_SUM
  meta: meta_same
  signature: "cube_sum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"
  variants: function, method, out
  backward: none
"""
OPERATION = "    - LOGSUMEXP: float -> same; log of the sum of exponentials\n"


def copy_sources(folder: Path) -> None:
    for sources in ("cysrc/ops", "cysrc/loops", "cuda_src"):
        shutil.copytree(ROOT / sources, folder / sources)


def said_by_the_generator(folder: Path) -> str:
    try:
        generate.generate(folder, folder / "out")
    except schema.DeclarationError as error:
        return str(error)
    return ""


def said_by_the_compiler(folder: Path, source: Path) -> str:
    """What gcc refuses of a source of loops beside the headers that were generated."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    include = [f"-I{folder / 'out' / 'include'}", f"-I{ROOT / 'cysrc' / 'core'}", f"-I{ROOT / 'cysrc' / 'loops'}"]
    done = subprocess.run([compiler, "-fsyntax-only", "-w", "-fopenmp", "-DISA=base", *include, str(source)], check=False, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def refusal(folder: Path, row: str = ROW, operation: str = "    - CUBE_SUM: float -> same; of cubes\n", struct: str = "") -> str:
    """What the generator says of the declarations with a row and an operation more."""
    copy_sources(folder)
    reduction = folder / "cysrc" / "ops" / "reduction"
    with open(reduction / "reduction.yaml", "a") as f:
        f.write(row)
    text = (reduction / "steps.yaml").read_text()
    assert OPERATION in text
    (reduction / "steps.yaml").write_text(text.replace(OPERATION, OPERATION + operation).replace("steps:\n", struct + "steps:\n"))
    return said_by_the_generator(folder)


OWN_STEP = """
- op: leaky_sum
  step: {fields: [int64_t rows, int64_t length, double decay], types: [f32, f64], items: call.rows, work: self.numel}
  meta: meta_leaky_sum
  signature: "leaky_sum(Tensor self, float decay=0.9) -> Tensor"
  variants: function, method, out
  backward: none
"""
LOOP = "LEAKY_SUM_TYPES(DEFINE)\nLEAKY_SUM_TASK\n"
KERNEL = "void leaky_sum(const leaky_sum_call& call, long long row) {}\n"


META = """

cdef TensorBase meta_leaky_sum(leaky_sum_call* call, str name, TensorBase self, double decay):
    call.rows = 1
    call.length, call.decay = 1, decay
    return self
"""


def refusal_of_own_step(folder: Path, row: str = OWN_STEP, loop: str = LOOP, kernel: str = KERNEL, meta: str = META) -> str:
    """The same of a row that declares its step, a meta function, a source of loops and a CUDA kernel."""
    copy_sources(folder)
    with open(folder / "cysrc" / "ops" / "reduction" / "reduction.yaml", "a") as f:
        f.write(row)
    with open(folder / "cysrc" / "ops" / "reduction" / "reduction.pyx", "a") as f:
        f.write(meta)
    (folder / "cysrc" / "loops" / "reduction_leaky_sum.c").write_text(loop)
    (folder / "cuda_src" / "leaky_sum.cuh").write_text(kernel)
    return said_by_the_generator(folder)


def test_a_row_that_declares_its_step_gets_struct_task_and_launch(tmp_path: Path) -> None:
    assert refusal_of_own_step(tmp_path) == ""
    header = (tmp_path / "out" / "include" / "reduction_steps.h").read_text()
    assert "case DT_f32: run = leaky_sum_f32; break;" in header and "const char* self;\n  char* out;\n  TRT_INT64 rows;" in header
    module = (tmp_path / "out" / "ops" / "reduction.pyx").read_text()
    assert "result = meta_leaky_sum(&call, \"leaky_sum\", self, decay)" in module and "ISA_TASK(leaky_sum)" in module
    assert '("leaky_sum", "leaky_sum.cuh", "leaky_sum_call", (8, 9,))' in (tmp_path / "out" / "cuda" / "loop_steps.pyx").read_text()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"row": OWN_STEP.replace("  meta: meta_leaky_sum\n", "")}, "leaky_sum has no meta"),
        ({"row": OWN_STEP.replace("  backward: none\n", "")}, "leaky_sum has no backward"),
        ({"row": OWN_STEP.replace("items: call.rows, ", "")}, "leaky_sum: a loop has 'types' and 'items' and may have 'work' and 'threads', here are types, work"),
        ({"row": "\n".join(line for line in OWN_STEP.split("\n") if "step:" not in line)}, "leaky_sum has a meta function and no step"),
        ({"meta": META.replace("call.rows = 1", "pass")}, "leaky_sum: meta_leaky_sum does not fill in call.rows"),
        ({"row": OWN_STEP.replace("items:", "item:")}, "unknown keys ['item'] of the row's step"),
        ({"row": OWN_STEP.replace("[f32, f64]", "[f32, f128]")}, "unknown types ['f32', 'f128']"),
        ({"row": OWN_STEP.replace("double decay", "int steps, double decay")}, "decay would leave a hole"),
        ({"row": OWN_STEP.replace("int64_t rows, ", "int64_t self, ")}, "leaky_sum_call needs a pointer by the name of each tensor"),
        ({"loop": "LEAKY_SUM_TYPES(DEFINE)\n"}, "no source cysrc/loops/reduction*.c has its loops, with the line LEAKY_SUM_TASK"),
        ({"kernel": "\n"}, "neither cuda_src/leaky_sum.cuh nor cuda_src/reduction.cuh has its kernel"),
    ],
)
def test_what_a_loop_step_lacks_is_named(tmp_path: Path, changes: dict[str, str], says: str) -> None:
    assert says in refusal_of_own_step(tmp_path, **changes)


def test_a_whole_declaration_becomes_a_kernel(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ""
    text = (tmp_path / "out" / "ops" / "reduction.pyx").read_text()
    assert "call.operation = REDUCE_CUBE_SUM" in text and "meta_same(&call, \"cube_sum\", self, dim, keepdim, out, mode)" in text
    header = (tmp_path / "out" / "include" / "reduction_steps.h").read_text()
    assert "ROW(CUBE_SUM, cube_sum, CubeSum, FLOAT)" in header
    [results] = re.findall(r"reduce_gives.*?results\[\]\[\d+\] = \{\{(.*?)\}\};", header, re.S)
    gives = dict(zip(re.findall(r"ROW\((\w+)", header.split("REDUCE_FOR_EACH")[1].split("\n")[0]), results.split("}, {"), strict=True))
    code = {row.type: row.code for row in dtypes.ALL}
    assert [int(x) for x in gives["ABS_SUM"].split(",")][code["c128"]] == code["f64"] and set(gives["SUM"].split(", ")) == {"-1"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"operation": ""}, "cube_sum has the operation REDUCE_CUBE_SUM, which reduction/steps.yaml does not declare"),
        ({"row": ""}, "no row of reduction.yaml has the operation REDUCE_CUBE_SUM"),
        ({"row": ROW.replace("  backward: none\n", "")}, "cube_sum has no backward; a row without a gradient says 'backward: none'"),
        ({"row": ROW.replace("  meta: meta_same\n", "")}, "cube_sum has no meta"),
        ({"row": ROW.replace("step: reduce", "step: reduction")}, "cube_sum has the step 'reduction', which reduction/steps.yaml does not declare"),
        ({"row": ROW.replace("-> Tensor\"", "-> (Tensor, Tensor)\"")}, "cube_sum: a structured row has a tensor first and returns one"),
        ({"row": ROW.replace("backward: none", "backward: nothing")}, "cube_sum: backward is 'none' or has a formula by argument"),
        ({"operation": "    - CUBE_SUM: floats; of cubes\n"}, "REDUCE_CUBE_SUM: an operation is 'NAME: types -> result; what it computes'"),
        ({"operation": "    - CUBE_SUM: float -> reals; of cubes\n"}, "and, where there is one, a result of same, real, bool, int64"),
        ({"struct": '- struct: holed\n  doc: x\n  fields:\n  - "int a": one\n  - "double b": two\n'}, "holed: b would leave a hole after 4 bytes"),
    ],
)
def test_what_is_left_out_is_named(tmp_path: Path, changes: dict[str, str], says: str) -> None:
    assert says in refusal(tmp_path, **changes)


def test_a_forgotten_loop_does_not_compile(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ""
    said = said_by_the_compiler(tmp_path, ROOT / "cysrc" / "loops" / "reduction_reduce.c")
    assert "cube_sum_f32_rows" in said and "undeclared" in said


def test_the_header_and_ctypes_agree_on_a_struct() -> None:
    family = next(f for f in steps.load(SOURCES) if f.name == "reduction")
    types = {"double": ctypes.c_double, "int": ctypes.c_int, "int64_t": ctypes.c_longlong, "uint8_t": ctypes.c_ubyte}
    values = {name: value for name, value, _ in family.constants}
    for struct in family.structs:
        members = []
        for f in struct.fields:
            kind = ctypes.c_void_p if f.type.endswith("*") else types[f.type]
            members.append((f.name, kind * int(values.get(f.count, f.count)) if f.count else kind))
        made = type(struct.name, (ctypes.Structure,), {"_fields_": members})
        assert ctypes.sizeof(made) == struct.size and [getattr(made, f.name).offset for f in struct.fields] == struct.offsets


def test_steps_of_loaded_families_have_the_cpu() -> None:
    from tensorrt_lite._C.core.dispatch import step_devices

    assert all("cpu" in step_devices()[step] for step in ("reduce", "scan", "softmax", "softmax_backward"))


def test_meta_tensors_have_no_step_and_the_same_checks() -> None:
    x = trt.empty(2, 3, dtype=trt.complex64, device="meta")
    with pytest.raises(NotImplementedError, match="amax"):
        x.amax(1)
    assert x.real.sum(1).shape == (2,) and x.sum(0, keepdim=True).dtype == trt.complex64


def test_a_forgotten_type_of_a_loop_does_not_compile(tmp_path: Path) -> None:
    loop = """#include "kernel_base.h"
#include "reduction_steps.h"
static void leaky_sum_f32(const leaky_sum_call* call, int64_t begin, int64_t end) {}
LEAKY_SUM_TASK
"""
    assert refusal_of_own_step(tmp_path, loop=loop) == ""
    said = said_by_the_compiler(tmp_path, tmp_path / "cysrc" / "loops" / "reduction_leaky_sum.c")
    assert "leaky_sum_f64" in said and "undeclared" in said
