"""Modes of tools/fuzz.py in which somebody else changes the tensors of a call while it runs.

`filters`: functions with out=, whose output has another shape, so that PyTorch's warning is given, under a filter of warnings that
resizes, sets, retypes and transposes the tensors of the call. `threads`: operators on tensors large enough that kernels release the
GIL, while another thread does the same and refills indices. `dispatch`: any operator under a TorchDispatchMode that does so whenever an operator
inside of it passes: what `threads` finds where Python runs within an operator, found at every such place, and found again by a replay. Values may
be any then; memory has to stay inside (docs/safety.md).
"""

from __future__ import annotations

import inspect
import random
import sys
import threading
import time
from typing import Any, Callable

from tools.fuzz_arguments import Arguments

LARGE = [(300, 300), (130, 130), (64, 300), (300, 64), (17000,), (300,), (2, 3, 70, 70), (4, 70, 70), (1, 3, 130, 130), (3, 1, 300, 20)]
REPEATS = 4  # calls with the same arguments: another thread needs time to meddle with them


class FilterArguments(Arguments):
    """Always an output, mostly of a shape that does not fit; one in ten is an operand."""

    always = frozenset({"out"})
    meddling = 1.0

    def named(self, name: str) -> Any:
        if name == "out":
            kind = self.draw.random()
            if kind < 0.1 and self.pool:
                return self.related(self.draw.choice(self.pool))
            dtype = self.dtype_of_most if kind < 0.9 else self.draw.choice(["float32", "int64", "bool"])
            made = self.values(dtype, self.draw.choice([(1,), (3,), (2, 3), (5, 1, 2), (64,)]))
            self.pool.append(made)
            return made if self.draw.random() < 0.8 else (made, self.values("int64", (3,)))
        return super().named(name)

    def meddle(self) -> None:
        for _ in range(self.draw.choice([1, 2, 5])):
            super().meddle()


class LargeArguments(Arguments):
    """Operands of some ten thousand elements, half of the time all of one shape."""

    def __init__(self, trt: Any, draw: random.Random) -> None:
        super().__init__(trt, draw)
        self.common = draw.choice(LARGE) if draw.random() < 0.7 else None
        self.sizes = []

    def shape(self) -> tuple[int, ...]:
        if self.draw.random() < 0.15:
            return super().shape()
        return self.common if self.common and self.draw.random() < 0.8 else self.draw.choice(LARGE)


def changeable(tensors: list[Any]) -> list[tuple[Any, tuple[int, ...]]]:
    """Tensors of a program that somebody else may change, with their shapes."""
    return [(t, tuple(t.shape)) for t in tensors if not t.is_nested and t.numel() < 10**6]


def change(trt: Any, draw: random.Random, t: Any, shape: tuple[int, ...]) -> None:
    """Give a tensor, which had `shape` once, another geometry, memory or values."""
    other = draw.choice([(1,), (2, 2), shape[::-1], (3, *shape), shape])
    with trt.no_grad():
        match draw.randrange(8):
            case 0:
                t.data = trt.zeros(other, dtype=t.dtype)
            case 1 | 2:
                t.data = trt.ones(shape, dtype=t.dtype)
            case 3:
                t.resize_(other)
            case 4:
                t.set_(trt.ones(other, dtype=t.dtype))
            case 5:
                t.untyped_storage().resize_(draw.choice([0, 400, 10**6]))
            case 6:
                t.transpose_(0, -1)
            case 7:
                t.fill_(draw.choice([0, 1, 299, 2**40, -(2**40)]))


class Meddler:
    """A thread that changes the tensors of whichever program runs."""

    def __init__(self, trt: Any) -> None:
        self.trt = trt
        self.tensors: list[tuple[Any, tuple[int, ...]]] = []
        self.draw = random.Random(0)
        self.work = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def start(self, tensors: list[Any], seed: int) -> None:
        self.tensors = changeable(tensors)
        self.draw = random.Random(seed)
        if self.tensors:
            self.work.set()

    def stop(self) -> None:
        self.work.clear()

    def run(self) -> None:
        while True:
            self.work.wait()
            try:
                change(self.trt, self.draw, *self.draw.choice(self.tensors))
            except Exception:
                pass
            time.sleep(0)


def with_out(table: list[tuple[str, Callable]]) -> list[tuple[str, Callable]]:
    """The rows whose function takes out=."""
    found = []
    for name, function in table:
        try:
            if "out" in inspect.signature(function).parameters:
                found.append((name, function))
        except (TypeError, ValueError):
            continue
    return found or table


meddlers: dict[int, Meddler] = {}


def beside_a_thread(trt: Any, arguments: Arguments, call: Callable[[], Any]) -> Any:
    """What the last of some calls returns or raises, while a thread meddles with the operands."""
    if not meddlers:
        sys.setswitchinterval(2e-5)
        meddlers[0] = Meddler(trt)
    meddlers[0].start(list(arguments.pool), arguments.draw.getrandbits(32))
    try:
        for _ in range(REPEATS - 1):
            try:
                call()
            except Exception:
                pass
        return call()
    finally:
        meddlers[0].stop()


def under_a_dispatch_mode(trt: Any, arguments: Arguments, call: Callable[[], Any]) -> Any:
    """What a call returns or raises under a mode that changes the operands before and after the operators that pass through it."""
    tensors, draw = changeable(list(arguments.pool)), random.Random(arguments.draw.getrandbits(32))

    def maybe_change() -> None:
        if tensors and draw.random() < 0.4:
            try:
                change(trt, draw, *draw.choice(tensors))
            except Exception:
                pass

    class Changing(trt.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            maybe_change()
            result = function(*args, **(kwargs or {}))
            maybe_change()
            return result

    with Changing():
        return call()
