"""One table of element types (cysrc/core/dtype_table.h): C, the generator, CUDA and Python read it, what it says is what PyTorch says, and
no code takes an order of codes for a property of types."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorrt_lite as trt
from tensorrt_lite._C.core import dtype as core
from tests.loops import kernel_library
from tools.codegen import dtypes, schema

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for folder in ("cysrc", "cuda_src") for p in sorted((ROOT / folder).rglob("*")) if p.suffix in {".pyx", ".pxd", ".pxi", ".h", ".c", ".cuh"}]
WITH_LOOPS = [row for row in dtypes.ALL if row.has_loops]
CATEGORIES = ("BOOL", "INT", "FLOAT", "COMPLEX")


def named(row, module):
    return getattr(module, row.name)


def same(ours, theirs):
    return str(ours) == str(theirs)


@pytest.mark.skipif(not SOURCES, reason="needs the sources")
def test_the_core_has_the_generators_table():
    for row, (type_, name, cuda, compute, real, has_loops, numpy) in zip(dtypes.ALL, core.table(), strict=True):
        assert (type_, name, cuda, has_loops, numpy) == (row.type, row.name, row.cuda, row.has_loops, "NUMPY" in row.properties)
        assert (dtypes.ALL[compute].type, dtypes.ALL[real].type) == (row.compute, row.real)


def test_types_with_loops_come_first():
    assert [row.has_loops for row in dtypes.ALL] == sorted((row.has_loops for row in dtypes.ALL), reverse=True)
    assert schema.DTYPES == kernel_library.DTYPES == [row.type for row in WITH_LOOPS]


@pytest.mark.parametrize("row", dtypes.ALL, ids=lambda row: row.name)
def test_rows_are_what_pytorch_says(row):
    theirs = named(row, torch)
    assert row.size == theirs.itemsize
    assert ("SIGNED" in row.properties) == theirs.is_signed or row.name == "bool"
    assert (row.category == "FLOAT", row.category == "COMPLEX") == (theirs.is_floating_point, theirs.is_complex)
    assert row.real == next(other.type for other in dtypes.ALL if same(named(other, torch), theirs.to_real()))
    if row.category in ("FLOAT", "INT"):
        info = torch.finfo(theirs) if row.category == "FLOAT" else torch.iinfo(theirs)
        assert row.largest == float(info.max)
        if row.category == "FLOAT":
            assert 2.0 ** (1 - row.digits) == info.eps * (2 if row.name == "float8_e5m2fnuz" else 1)  # PyTorch's constant is the next finer format's
    if "NUMPY" in row.properties:
        assert np.dtype(row.name).itemsize == row.size


@pytest.mark.parametrize("row", WITH_LOOPS, ids=lambda row: row.name)
def test_dtype_objects_answer_from_the_table(row):
    ours, theirs = named(row, trt), named(row, torch)
    assert (ours.itemsize, ours.is_signed, ours.is_floating_point, ours.is_complex) == (theirs.itemsize, theirs.is_signed, theirs.is_floating_point, theirs.is_complex)
    assert same(ours.to_real(), theirs.to_real())
    assert trt.zeros(1, dtype=ours).is_signed() == theirs.is_signed


def test_promotion_is_pytorchs_lattice():
    for a, b in itertools.product(WITH_LOOPS, repeat=2):
        assert same(trt.promote_types(named(a, trt), named(b, trt)), torch.promote_types(named(a, torch), named(b, torch))), (a.name, b.name)


# ---- no order of codes -------------------------------------------------------------------------------------------------

CODES = "|".join([*(row.type.upper() for row in dtypes.ALL), *(f"DT_{row.type}" for row in dtypes.ALL)])
# `dtype >= C64`, `C64 <= dtype`, `t.dtype < 6`. A category has an order; of the comparisons with 0 one means "none given".
ORDERED = re.compile(
    rf"(?:[^<>]|^)(?:<|>|<=|>=)\s*(?:{CODES})\b(?!\s*\*)"
    rf"|(?<![\w.])(?:{CODES})\s*(?:<|>|<=|>=)(?![<>])"
    r"|\b(?:\w+\.)?\w*dtype\s*(?:<|>|<=|>=)\s*[1-9]"
)


def ordered(text):
    """Lines with an ordering comparison of dtype codes. Casts (`<F32>`), preprocessor lines and comments are none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = re.split(r"(?:^|\s)#\s|//|/\*", line)[0]
        if not line.lstrip().startswith(("#", "*", "/*", "//")) and ORDERED.search(code):
            found.append((number, line.strip()))
    return found


@pytest.mark.parametrize(
    "line", ["if x.dtype >= C64:", "return I64 if self.dtype <= I64 else 1", "p.dtype < F16 or 1", "F16 <= code", "if (t > DT_i64)", "dtype <= 5", "if a.dtype > 0 and x.dtype<C64:"]
)
def test_the_search_finds_a_comparison(line):
    assert ordered(line)


@pytest.mark.parametrize(
    "line", ["if x.dtype == C64:", "dtype < 0", "category[x.dtype] >= CAT_FLOAT", "n << F32_BITS", "is_complex_type(dtype)", "# dtype >= C64", "std::vector<u8> x"]
)
def test_the_search_leaves_other_lines_alone(line):
    assert not ordered(line)


@pytest.mark.skipif(not SOURCES, reason="needs the sources")
def test_no_ordering_comparison_of_codes():
    found = [f"{path.relative_to(ROOT)}:{number}: {line}" for path in SOURCES for number, line in ordered(path.read_text())]
    assert not found, "\n".join(["dtype.h's predicates say what a type is like:", *found])
