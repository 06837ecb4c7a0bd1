"""What one call costs when there is next to nothing to compute: four elements, 4x4 matrices, an MLP at batch 4.

The cost of the measuring loop and of the wrapping callable is subtracted, so a row reads as the statement alone.
"""

from __future__ import annotations

from types import SimpleNamespace as _SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import models
from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Builder, Work

_QUARTER = 0.25


def _add(lib: Any, threads: int) -> Work:
    a, b = lib.ones(4), lib.ones(4)
    return lambda: a + b


def _add_recorded(lib: Any, threads: int) -> Work:
    a, b = lib.ones(4, requires_grad=True), lib.ones(4)
    return lambda: a + b


def _add_function(lib: Any, threads: int) -> Work:
    a, b, add = lib.ones(4), lib.ones(4), lib.add
    return lambda: add(a, b)


def _multiply_scalar(lib: Any, threads: int) -> Work:
    a = lib.ones(4)
    return lambda: a * 2.0


def _relu(lib: Any, threads: int) -> Work:
    a, relu = lib.ones(4), lib.relu
    return lambda: relu(a)


def _relu_numpy(np: Any, threads: int) -> Work:
    a, maximum = np.ones(4, np.float32), np.maximum
    return lambda: maximum(a, 0)


def _view(lib: Any, threads: int) -> Work:
    a = lib.ones(4)
    return lambda: a.view(2, 2)


def _view_numpy(np: Any, threads: int) -> Work:
    a = np.ones(4, np.float32)
    return lambda: a.reshape(2, 2)


def _index(lib: Any, threads: int) -> Work:
    x = lib.ones(4)
    return lambda: x[0]


def _slice(lib: Any, threads: int) -> Work:
    x = lib.ones(4, 4)
    return lambda: x[1:3]


def _slice_numpy(np: Any, threads: int) -> Work:
    x = np.ones((4, 4), np.float32)
    return lambda: x[1:3]


def _matmul(lib: Any, threads: int) -> Work:
    a, b = lib.ones(4, 4), lib.ones(4, 4)
    return lambda: a @ b


def _matmul_numpy(np: Any, threads: int) -> Work:
    a, b = np.ones((4, 4), np.float32), np.ones((4, 4), np.float32)
    return lambda: a @ b


def _sum(lib: Any, threads: int) -> Work:
    a = lib.ones(4)
    return lambda: a.sum()


def _empty(lib: Any, threads: int) -> Work:
    empty = lib.empty
    return lambda: empty(4)


def _empty_numpy(np: Any, threads: int) -> Work:
    empty, float32 = np.empty, np.float32
    return lambda: empty(4, float32)


def _backward(lib: Any, threads: int) -> Work:
    a = lib.ones(4, requires_grad=True)
    return lambda: (a * 2.0).sum().backward()


def _mlp_step(lib: Any, threads: int) -> Work:
    lib.manual_seed(0)
    model = models.mlp(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    x, target = lib.randn(4, 16), lib.randn(4, 4)
    loss_function = lib.nn.functional.mse_loss

    def step() -> None:
        optimizer.zero_grad()
        loss_function(model(x), target).backward()
        optimizer.step()

    return step


def _float32(builder: Builder) -> Builder:
    """The same statement on NumPy, whose `ones` is float64 unless told otherwise."""

    def build(np: Any, threads: int) -> Work:
        names = _SimpleNamespace(ones=lambda *shape: np.ones(shape, np.float32), add=np.add)
        return builder(names, threads)

    return build


def rows() -> list[Row]:
    def row(
        name: str,
        build: Builder,
        numpy: Builder | None = None,
        limit: float | None = None,
        limit_seconds: float | None = None,
    ) -> Row:
        return Row(name, "overhead", build, numpy, subtract_loop=True, limit=limit, limit_seconds=limit_seconds)

    return [
        row("add, 4 elements", _add, _float32(_add), limit=_QUARTER, limit_seconds=120e-9),
        row("add, recorded node", _add_recorded, limit=_QUARTER, limit_seconds=190e-9),
        row("add as function", _add_function, _float32(_add_function), limit=_QUARTER),
        row("multiply by scalar", _multiply_scalar, _float32(_multiply_scalar), limit=_QUARTER),
        row("relu", _relu, _relu_numpy, limit=_QUARTER),
        row("view", _view, _view_numpy, limit=_QUARTER),
        row("x[0]", _index, _float32(_index), limit=_QUARTER),
        row("x[1:3]", _slice, _slice_numpy),
        row("matmul 4x4", _matmul, _matmul_numpy, limit=_QUARTER),
        row("sum", _sum, _float32(_sum), limit=_QUARTER),
        row("empty", _empty, _empty_numpy),
        row("(a * 2).sum().backward()", _backward),
        row("MLP training step, batch 4", _mlp_step, limit=0.2),
    ]
