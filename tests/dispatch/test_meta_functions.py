"""Meta functions check, choose and make results. They compute nothing: what a step or an operator computes, a tracer could not ask."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "cysrc"
FUNCTION = re.compile(r"^cdef [^\n(]*\b(meta_\w+)\(.*?(?=^\S|\Z)", re.M | re.S)
FOUND = [(path, m[1], m[0]) for path in sorted((ROOT / "ops").rglob("*.pyx")) for m in FUNCTION.finditer(path.read_text())]
COMPUTING = re.compile(r"\brun_\w+|\bcast_to\b|\bcontiguous_of\b|\bcopy_elements\b|\bwrite_to_out\b|\bstructured_\w+|\b_ops\.|\bop_\w+\(")


def test_there_are_meta_functions():
    assert len(FOUND) >= 12


@pytest.mark.parametrize(("path", "name", "text"), FOUND, ids=[name for _, name, _ in FOUND])
def test_meta_functions_compute_nothing(path, name, text):
    assert COMPUTING.findall(text) == []
