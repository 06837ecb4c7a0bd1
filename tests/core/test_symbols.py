"""Operator symbols keep Python's rules though Tensor's slots call the functions directly."""

from __future__ import annotations

import copy
import gc
import sys
import weakref

import pytest

import tensorrt_lite as trt
from tests.free_threading import FREE_THREADED


class Doubling(trt.Tensor):
    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"


class Plain(trt.Tensor):
    pass


def test_numbers_on_either_side():
    t = trt.tensor([1.0, 2.0])
    assert (1 + t).tolist() == [2, 3] and (2 - t).tolist() == [1, 0] and (2 / t).tolist() == [2, 1]
    assert (7 // t).tolist() == [7, 3] and (5 % trt.tensor([3, 4])).tolist() == [2, 1] and (t == 1).tolist() == [True, False]
    assert (6 & trt.tensor([3])).tolist() == [2] and (-t).tolist() == [-1, -2]


def test_subclasses_come_first():
    t, d = trt.ones(2), trt.ones(2).as_subclass(Doubling)
    assert (d + 1, d + t, t + d, 1 + d) == ("add", "add", "radd", "radd")
    p = trt.ones(2).as_subclass(Plain)
    assert type(t + p) is Plain and type(p - t) is Plain and (t - p).tolist() == [0, 0] and type(3 - p) is Plain


def test_subclasses_keep_their_class_through_operators():
    p = trt.arange(4.0).as_subclass(Plain)
    results = [p * 2, 1 - p, p[0], p.sum(), p.view(2, 2), p.split(2)[0], p.max(0).values, trt.cat([p, trt.ones(1)]), trt.nn.functional.gelu(p)]
    assert {type(r) for r in results} == {Plain}
    w = trt.nn.Parameter(trt.ones(4))
    assert type(w * 2) is trt.Tensor and type(w + p) is Plain


def test_foreign_operands():
    class Foreign:
        def __radd__(self, other):
            return "foreign"

    assert trt.ones(2) + Foreign() == "foreign"
    with pytest.raises(TypeError):
        trt.ones(2) + "text"
    with pytest.raises(TypeError):
        "text" - trt.ones(2)


def test_assigning_a_symbol_takes_effect(monkeypatch):
    with monkeypatch.context() as m:
        m.setattr(trt.Tensor, "__add__", lambda self, other: "patched")
        assert trt.ones(1) + 1 == "patched"
    assert (trt.ones(1) + 1).item() == 2 and (1 + trt.ones(1)).item() == 2


def test_attributes_and_their_cycles():
    t = trt.ones(2)
    assert vars(t) == {}
    t.mark = t
    assert vars(t) == {"mark": t.mark}
    gone = weakref.ref(t)
    del t
    gc.collect()
    assert gone() is None
    t = trt.ones(2)
    t.tag = "x"
    assert copy.copy(vars(t)) == {"tag": "x"}


def test_classes_are_neither_kept_nor_lost():
    before = sys.getrefcount(trt.Tensor)
    for _ in range(1000):
        trt.ones(1)
    assert abs(sys.getrefcount(trt.Tensor) - before) < 10

    def make():
        class Local(trt.Tensor):
            pass

        for _ in range(10):
            trt.ones(1).as_subclass(Local)
        return weakref.ref(Local)

    gone = make()
    gc.collect()
    assert gone() is None or FREE_THREADED and sys.version_info < (3, 14)  # which keeps all classes once there are threads
