"""`tools.instructions`: its calls run; where valgrind can run the build, the same build is counted alike twice."""

from __future__ import annotations

import shutil

import pytest

from tensorrt_lite._C.core import isa
from tools import instructions


def test_every_case_runs():
    for name, call in instructions.cases().items():
        assert call() is not None or name.endswith("backward()"), name


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.skipif(isa.COMPILED == ("avx512",), reason="valgrind knows no AVX-512")
def test_two_counts_of_one_build_agree():
    first, second = (instructions.count(instructions.ROOT, r"shape|a \+ b") for _ in range(2))
    assert list(first) == list(second) and 500 < first["a.shape"] < first["a + b"]
    for name, count in first.items():
        assert count == pytest.approx(second[name], rel=0.02), name
