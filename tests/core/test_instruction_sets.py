"""TENSORRT_LITE_ISA chooses the loops: every level of this machine computes the same, any other is refused by name.

The suite itself runs on the highest level; here a slice of it runs again on each level below. A core of one level alone
(TENSORRT_LITE_NATIVE=1) refuses all others; TENSORRT_LITE_WHEEL names a wheel to test in place of the package at hand.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite._C.core.isa import refusal

CHECKOUT = Path(__file__).resolve().parents[2]
LEVELS = ("base", "avx2", "avx512")
SLICE = ("tests/ops/test_conv.py", "tests/ops/test_norm.py", "tests/ops/test_pool.py", "tests/ops/test_fft.py")  # 30 s of processor time
TELL = "import tensorrt_lite as trt; print(trt._build_info()['instruction_set'])"


def package() -> Path:
    """The folder that holds the package under test."""
    wheel = os.environ.get("TENSORRT_LITE_WHEEL")
    if not wheel:
        return Path(trt.__file__).resolve().parents[1]
    folder = Path(tempfile.mkdtemp(prefix="trt_wheel_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name in ("tests", "cysrc", "tools", "pyproject.toml"):  # what the slice reads, without the checkout's own package
        (folder / name).symlink_to(CHECKOUT / name)
    return folder


@functools.cache
def root() -> Path:
    return package()


def python(*arguments: str, level: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("TENSORRT_LITE_ISA", "KERNEL_TEST_ISA")}
    environment["PYTHONPATH"] = str(root())
    if level is not None:
        environment |= {"TENSORRT_LITE_ISA": level, "KERNEL_TEST_ISA": level}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=root(), capture_output=True, text=True)


@pytest.fixture(scope="module")
def highest() -> int:
    return LEVELS.index(python("-c", TELL).stdout.strip())


@pytest.fixture(scope="module")
def compiled() -> list[str]:
    return json.loads(python("-c", "import json, tensorrt_lite as trt; print(json.dumps(trt._build_info()['instruction_sets']))").stdout)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_used_or_refused(highest, compiled, level):
    told = python("-c", TELL, level=level)
    if LEVELS.index(level) <= highest and level in compiled:
        assert told.stdout.strip() == level, told.stderr
    elif LEVELS.index(level) <= highest:
        assert f"ImportError: TENSORRT_LITE_ISA={level}: this core was compiled for {compiled[0]} alone (TENSORRT_LITE_NATIVE=1)" in told.stderr
    else:
        assert told.stderr.endswith(f"ImportError: TENSORRT_LITE_ISA={level}: this processor has no more than {LEVELS[highest]}\n")


def test_an_unknown_level_is_refused(highest):
    told = python("-c", TELL, level="sse9")
    assert "ImportError: TENSORRT_LITE_ISA=sse9: there is no such instruction set; choose from" in told.stderr


def test_a_core_of_one_level_is_refused_by_a_lesser_processor():
    """At import and in words, where the first loop would end the process."""
    told = refusal("", "avx2", ("avx512",))
    assert told.startswith("this core was compiled for avx512 alone (TENSORRT_LITE_NATIVE=1 on another machine), and this processor has no more than avx2")
    assert refusal("", "avx512", ("avx2",)) is None and refusal("avx2", "avx512", ("avx2",)) is None
    assert refusal("", "avx2", LEVELS) is None and refusal("base", "avx512", LEVELS) is None
    assert "no more than base" in refusal("avx2", "base", LEVELS) and "compiled for avx2 alone" in refusal("base", "avx512", ("avx2",))


def test_a_wheel_has_every_level(compiled):
    if "TENSORRT_LITE_WHEEL" not in os.environ:
        pytest.skip("the package at hand is no wheel")
    assert compiled == list(LEVELS)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_lower_levels_pass_the_tests_of_kernels(highest, compiled, level):
    if level not in compiled:
        pytest.skip("the core is compiled for this machine alone")
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


def test_levels_agree(highest, compiled):
    """Rounding may differ between levels (fused products, order of sums), by a few units of float32."""
    values = [json.loads(python("-c", CHAIN, level=level).stdout) for level in LEVELS[:highest + 1] if level in compiled]
    for other in values[1:]:
        assert other == pytest.approx(values[0], rel=2e-5, abs=2e-6)
