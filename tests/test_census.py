"""What the house wants less of does not grow: `python -m tools.census`."""

from __future__ import annotations

import json

import pytest

from tools import census


@pytest.mark.parametrize("name", census.COUNTS)
def test_no_count_grows(name: str) -> None:
    saved = json.loads(census.SAVED.read_text())[name]
    things = list(census.COUNTS[name]())
    assert len(things) <= saved, f"{name}: {len(things)}, saved {saved}: {things}"


def test_a_saved_count_for_each() -> None:
    assert json.loads(census.SAVED.read_text()).keys() == census.COUNTS.keys()


def test_functions_end_where_the_next_begins() -> None:
    text = "cdef int f(int x) except -1:\n    if x.device_type == DEV_CUDA:\n        return g(x)\n\n    return 0\n\n\ndef g(x):\n    return 1\n"
    found = census.bodies(text)
    assert list(found) == ["f", "g"] and "DEV_CUDA" in found["f"] and "DEV_CUDA" not in found["g"]
