"""The core's own C and Cython name no private part of the interpreter: a function that a later Python no longer declares would be called with an int as result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "cysrc"
# Declared by the headers of 3.11 to 3.14.
DECLARED = {"_PyType_Lookup"}
PRIVATE = re.compile(r"\b_Py[A-Z]\w*")


@pytest.mark.skipif(not SOURCES.is_dir(), reason="an installed package has no sources of the core")
def test_no_private_function():
    found = {}
    for path in SOURCES.rglob("*"):
        if path.suffix in (".pyx", ".pxd", ".pxi", ".h", ".c", ".yaml"):
            names = set(PRIVATE.findall(path.read_text(encoding="utf-8"))) - DECLARED
            if names:
                found[path.name] = names
    assert not found
