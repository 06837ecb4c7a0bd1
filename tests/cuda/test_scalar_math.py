"""Every function of cuda_src/scalar_math.cuh, run on the emulator against NumPy, and accepted by nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from scalar_cases import INTEGER, REAL

from tools.cuda_emulator import compiler

if TYPE_CHECKING:
    from conftest import EmulatorProcess

TYPES = {"real": {"f32": "float", "f64": "double"}, "integer": {"u8": "unsigned char", "i8": "signed char", "i32": "int", "i64": "long long"}}
CASES = {"real": REAL, "integer": INTEGER}


def kernel(name: str, expression: str, nin: int, suffix: str, ctype: str) -> str:
    """`extern "C" case_NAME_SUFFIX(out, x, y, z, numel)`, whose elements are the expression's values."""
    inputs = "xyz"[:nin]
    return f"""
namespace trt {{
static __device__ __forceinline__ {ctype} {name}_of({", ".join(f"{ctype} {v}" for v in inputs)}) {{
    using T = {ctype};
    return static_cast<T>({expression});
}}
}}
extern "C" __global__ void case_{name}_{suffix}({ctype}* out, {"".join(f"const {ctype}* {v}, " for v in inputs)}unsigned long long numel) {{
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < numel; i += gridDim.x * blockDim.x) {{
        out[i] = trt::{name}_of({", ".join(f"{v}[i]" for v in inputs)});
    }}
}}
"""


SOURCES = {
    kind: '#include "scalar_math.cuh"\n'
    + "".join(kernel(name, case.expression, case.nin, *pair) for name, case in cases.items() for pair in TYPES[kind].items())
    for kind, cases in CASES.items()
}


@pytest.mark.parametrize("kind", CASES)
def test_functions_equal_the_reference(emulator: EmulatorProcess, cache: Path, kind: str) -> None:
    """float32 within 5e-6, float64 within 1e-12, integers exactly."""
    module = compiler.compile_module(SOURCES[kind], cache, include=[ROOT / "cuda_src"], flags=["-O0"])
    emulator.check("scalar_functions", module, kind)


@pytest.mark.parametrize("kind", CASES)
def test_nvcc_compiles_every_function(tmp_path: Path, kind: str) -> None:
    """The overloads resolve for nvcc as they do for g++."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source = tmp_path / "functions.cu"
    source.write_text(SOURCES[kind])
    # -G: names and types are what is tested, so the optimiser may rest.
    command = [
        nvcc,
        "-std=c++17",
        "-arch=sm_80",
        "-G",
        "-ptx",
        f"-I{ROOT / 'cuda_src'}",
        "-o",
        str(tmp_path / "out.ptx"),
    ]
    result = subprocess.run([*command, str(source)], check=False, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


def test_every_function_has_a_case() -> None:
    """A function added to the header without a case here fails."""
    header = (ROOT / "cuda_src" / "scalar_math.cuh").read_text()
    names = set(re.findall(r"TRT_(?:UNARY|BINARY|BINARY_C)\((\w+)", header)) - {"name"}
    names |= set(re.findall(r"TRT_DEVICE [\w<>, ]+? (\w+)\(", header)) - {"name"}
    assert len(names) > 70
    expressions = " ".join(case.expression for cases in CASES.values() for case in cases.values())
    assert names <= set(re.findall(r"\w+", expressions)), sorted(names - set(re.findall(r"\w+", expressions)))
