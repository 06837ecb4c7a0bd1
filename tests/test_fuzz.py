"""No call with bad arguments crashes, hangs or raises an unusual exception: some seconds of tools/fuzz.py."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tools import fuzz


@pytest.mark.parametrize("seed", [11, 12])
def test_random_calls_end_in_a_result_or_in_an_exception_of_the_usual_kinds(seed):
    calls, failures = fuzz.fuzz(seconds=4, batch=1500, only="", seed=seed)
    assert calls >= 1500
    assert not failures, "\n".join(failures)


def test_a_call_is_drawn_from_its_seed_and_number_alone():
    table = fuzz.targets()
    for number in range(30):
        first, second = (fuzz.make_call(trt, table, 5, number) for _ in range(2))
        assert first[0] == second[0]
        assert [fuzz.describe(a) for a in first[2] if not callable(a)] == [fuzz.describe(a) for a in second[2] if not callable(a)]


def test_an_unusual_exception_is_a_failure():
    def divides(input):
        return 1 // 0

    def refuses(input):
        raise TypeError("no")

    assert "ZeroDivisionError" in fuzz.run_call(trt, [("divides", divides)], 0, 0)
    assert fuzz.run_call(trt, [("refuses", refuses)], 0, 0) is None


def test_a_child_that_dies_names_its_call(monkeypatch):
    """The child is made to die at its third call; the two behind it run in a second child."""
    monkeypatch.setenv("TENSORRT_LITE_FUZZ_DIE_AT", "2")
    failures = fuzz.run_batch(seed=1, first=0, count=5, only="^abs$")
    assert len(failures) == 1
    assert failures[0].startswith("1:2 abs: signal SIGABRT")
