"""What a benchmark row is, and how the rows of all suites are found.

A row says what is timed, not how: its builder receives a library and a thread count and returns a callable that does
the work once. `build` speaks PyTorch's API and serves torch and tensorrt_lite alike; `numpy` is the same computation in
NumPy where that makes sense. Builders run once per library and thread count, outside the timed part.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Work = Callable[[], object]
    Builder = Callable[[Any, int], Work]

SUITES = ("startup", "overhead", "pointwise", "operators", "reduction", "indexing", "sorting", "images", "fft", "gemm", "conv", "nn", "layers", "vision", "train", "loading", "cuda")

# measured only where they are named: searches for rows that take longer than PyTorch's
SWEEPS = ("classes",)

NO_COUNTERPART = "has no counterpart"


@dataclass(frozen=True)
class Row:
    """One thing to time.

    name: unique within its suite. unit: "s" when the row is a time, else what its figure counts ("modules", "bytes").
    own_clock: the callable returns its figure (seconds or a count) instead of being timed. subtract_loop: the cost of
    calling an empty callable is taken off, for rows of a microsecond and less. limit: the ratio to PyTorch's time that
    the project holds itself to. limit_seconds: the same as an absolute time. slow: left out by `--quick`. processor: timed
    in the process's processor time, on which other work of the machine counts little; for one thread.
    """

    name: str
    suite: str
    build: Builder
    numpy: Builder | None = None
    unit: str = "s"
    own_clock: bool = False
    subtract_loop: bool = False
    limit: float | None = None
    limit_seconds: float | None = None
    slow: bool = False
    processor: bool = False

    @property
    def key(self) -> str:
        return f"{self.suite}/{self.name}"

    def builder(self, library: str) -> Builder:
        """The builder for a library; raises NotImplementedError when the row makes no sense there."""
        if library != "numpy":
            return self.build
        if self.numpy is None:
            raise NotImplementedError(f"numpy {NO_COUNTERPART}")
        return self.numpy


def load(suites: Iterable[str] = SUITES, pattern: str | None = None, quick: bool = False) -> list[Row]:
    """The rows of the named suites whose `suite/name` matches the regular expression, in the suites' order."""
    wanted = re.compile(pattern or "")
    rows: list[Row] = []
    for suite in suites:
        if suite not in (*SUITES, *SWEEPS):
            raise ValueError(f"unknown suite {suite!r}; suites are {', '.join((*SUITES, *SWEEPS))}")
        rows.extend(importlib.import_module(f"{__package__}.suites.{suite}").rows())
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys)), "two rows share a name"
    return [row for row in rows if wanted.search(row.key) and not (quick and row.slow)]


def of_operands(make: Callable[[Any], tuple[Any, ...]], call: Callable[..., object]) -> Builder:
    """A builder from `make(lib)`, the operands, and `call(lib, *operands)`, the work."""

    def build(lib: Any, threads: int) -> Work:
        operands = make(lib)
        return lambda: call(lib, *operands)

    return build


def gradient_of(make: Callable[[Any], tuple[Any, ...]], call: Callable[..., Any]) -> Builder:
    """As `of_operands`, for the backward pass alone with respect to the operands that require gradients."""

    def build(lib: Any, threads: int) -> Work:
        operands = make(lib)
        y = call(lib, *operands)
        inputs = [operand for operand in operands if getattr(operand, "requires_grad", False)]
        incoming, grad = lib.ones_like(y), lib.autograd.grad
        return lambda: grad(y, inputs, incoming, retain_graph=True, allow_unused=True)

    return build
