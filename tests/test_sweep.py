"""tools/sweep.py: its everyday calls run, and give the same, in both libraries; its clockwork tells slow from fast."""

from __future__ import annotations

import argparse
import itertools

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from tests.conformance.library import Library
from tools import sweep

import tensorrt_lite as trt

RANDOM = ("torch.randn", "torch.randperm", "torch.rand(")
FREE = ("svd", "eigh", "qr(")  # signs of vectors are the routine's


@pytest.mark.parametrize("text", [text for text in sweep.CALLS if not text.startswith(RANDOM)])
def test_everyday_call(text):
    torch.manual_seed(0)
    named = {name: sweep.tensor_of(what, "float32") for name, what in sweep.CALLS[text].items()}
    libraries = [Library(trt), Library(torch)]
    runs = [lambda named, module=library.module: eval(text, {"torch": module, "F": module.nn.functional, **named}) for library in libraries]
    _, pair = next(sweep.rows_of(libraries, runs, (named,)))
    results = [library.tensors(call()) for library, call in zip(libraries, pair, strict=True)]
    assert len(results[0]) == len(results[1]) > 0
    for mine, theirs in zip(*results, strict=True):
        found = libraries[0].to_torch(mine)
        if not any(name in text for name in FREE):
            # that it is the same call: float32 sums of up to 65,536 elements run in other orders
            torch.testing.assert_close(found, theirs.detach(), rtol=1e-3, atol=1e-3, equal_nan=True)


def test_gradients_of_a_call():
    """All floating inputs of a call are differentiated, and calls of integers are not."""
    libraries = [Library(trt), Library(torch)]
    runs = [lambda x, i: x[i] * 2, lambda x, i: x[i] * 2]
    rows = dict(sweep.rows_of(libraries, runs, (torch.ones(3, 2), torch.tensor([0, 0]))))
    for library, call in zip(libraries, rows["gradient"], strict=True):
        assert library.to_torch(call())[0].tolist() == [[4, 4], [0, 0], [0, 0]]
    assert list(dict(sweep.rows_of(libraries, runs, (torch.tensor([1, 2]), torch.tensor([0, 0]))))) == ["value"]


def test_the_least_of_blocks_in_turns():
    """A clock that calls advance: one takes 3 units, the other 2 and, once, 50."""
    now, calls = [0.0], itertools.count()

    def slow():
        now[0] += 3e-3

    def fast():
        now[0] += 50e-3 if next(calls) == 4 else 2e-3

    assert sweep.least((slow, fast), 0.05, lambda: now[0]) == pytest.approx((3e-3, 2e-3))


def test_rows_above_the_limit_are_measured_again(monkeypatch):
    found = iter([(2.0, 1.0), (3.0, 2.0), (1.2, 1.0)])
    monkeypatch.setattr(sweep, "least", lambda pair, seconds, clock: next(found))
    assert sweep.compare((None, None), argparse.Namespace(threads=1, limit=1.05)) == (1.2, 1.0)
    with pytest.raises(StopIteration):
        next(found)
