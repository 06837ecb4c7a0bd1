"""TENSORRT_LITE_ISA chooses the loops: every level of this machine computes the same, any other is refused by name.

The suite itself runs on the highest level; here a slice of it runs again on each level below.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt

ROOT = Path(trt.__file__).resolve().parents[1]
LEVELS = ("base", "avx2", "avx512")
SLICE = ("tests/ops/test_conv.py", "tests/ops/test_norm.py", "tests/ops/test_pool.py", "tests/ops/test_fft.py")  # 30 s of processor time
TELL = "import tensorrt_lite as trt; print(trt._build_info()['instruction_set'])"


def python(*arguments: str, level: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("TENSORRT_LITE_ISA", "KERNEL_TEST_ISA")}
    environment["PYTHONPATH"] = str(ROOT)
    if level is not None:
        environment |= {"TENSORRT_LITE_ISA": level, "KERNEL_TEST_ISA": level}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def highest() -> int:
    return LEVELS.index(python("-c", TELL).stdout.strip())


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_used_or_refused(highest, level):
    told = python("-c", TELL, level=level)
    if LEVELS.index(level) <= highest:
        assert told.stdout.strip() == level, told.stderr
    else:
        assert told.stderr.endswith(f"ImportError: TENSORRT_LITE_ISA={level}: this processor has no more than {LEVELS[highest]}\n")


def test_an_unknown_level_is_refused(highest):
    told = python("-c", TELL, level="sse9")
    assert "ImportError: TENSORRT_LITE_ISA=sse9: there is no such instruction set; choose from base" in told.stderr


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_lower_levels_pass_the_tests_of_kernels(highest, level):
    if LEVELS.index(level) >= highest:
        pytest.skip("the suite runs on this level" if LEVELS.index(level) == highest else "the processor lacks this level")
    ran = python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SLICE, level=level)
    assert ran.returncode == 0, ran.stdout[-4000:]


CHAIN = """
import tensorrt_lite as trt
trt.manual_seed(3)
x = trt.randn(64, 333)
y = [x.exp(), (x * x).sum(1), x.softmax(1), x @ x.T, trt.nn.functional.gelu(x), x.cumsum(0), x.sigmoid().log()]
print([float(f(v.double())) for v in y for f in (trt.mean, trt.std)])
"""


def test_levels_agree(highest):
    """Rounding may differ between levels (fused products, order of sums), by a few units of float32."""
    values = [json.loads(python("-c", CHAIN, level=level).stdout) for level in LEVELS[:highest + 1]]
    for other in values[1:]:
        assert other == pytest.approx(values[0], rel=2e-5, abs=2e-6)
