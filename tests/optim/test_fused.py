"""The fused steps and the _foreach_ operators against PyTorch's plain implementations."""

from __future__ import annotations

import random
from itertools import product

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops

SHAPES = [(3,), (4, 5), (), (0,), (300,), (2, 3, 4)]


def values(shape: tuple, seed: int, low: float = -1.0) -> list | float:
    n = 1
    for s in shape:
        n *= s
    r = random.Random(seed)
    return [r.uniform(low, 1.0) for _ in range(n)]


def make(lib, shape, seed, dtype, low=-1.0):
    return lib.tensor(values(shape, seed, low), dtype=lib.float64).to(getattr(lib, dtype)).reshape(shape)


def train(lib, build, dtype: str, steps: int = 4, transpose: bool = False, big: bool = False):
    shapes = [(70_000,), *SHAPES] if big else SHAPES
    params = [make(lib, s, i, dtype) for i, s in enumerate(shapes)]
    if transpose:
        params = [p.t().contiguous().t() if p.dim() == 2 else p for p in params]
    params = [p.requires_grad_() for p in params]
    optimizer = build(lib, params)
    for step in range(steps):
        for i, p in enumerate(params):
            p.grad = make(lib, tuple(p.shape), 100 * step + i, dtype)
        optimizer.step()
    return [p.detach().to(lib.float64).reshape(-1).tolist() for p in params]


def close(a: list, b: list, tolerance: float) -> None:
    for x, y in zip(a, b, strict=True):
        assert x == pytest.approx(y, rel=tolerance, abs=tolerance)


ADAM = [dict(zip(("amsgrad", "weight_decay", "maximize"), v, strict=True)) for v in product((False, True), (0.0, 0.1), (False, True))]
SGD = [{"momentum": m, "weight_decay": w, "nesterov": n, "dampening": 0.0 if n else d, "maximize": x}
       for m, w, n, d, x in product((0.0, 0.9), (0.0, 0.1), (False, True), (0.0, 0.3), (False, True)) if m or not (n or d)]  # fmt: skip


@pytest.mark.parametrize("options", ADAM, ids=str)
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_adam(name, options) -> None:
    torch = pytest.importorskip("torch")

    def build(lib, params):
        return getattr(lib.optim, name)(params, lr=0.01, **options)

    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        close(train(trt, build, dtype), train(torch, build, dtype), tolerance)


@pytest.mark.parametrize("options", SGD, ids=str)
def test_sgd(options) -> None:
    torch = pytest.importorskip("torch")

    def build(lib, params):
        return lib.optim.SGD(params, lr=0.01, **options)

    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        close(train(trt, build, dtype), train(torch, build, dtype), tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_compute_in_float(dtype) -> None:
    """One step: the result is the float32 step rounded once, so it is within one unit of the half type."""
    unit = 2.0**-10 if dtype == "float16" else 2.0**-7

    def adam(lib, params):
        return lib.optim.AdamW(params, lr=0.01)

    half = train(trt, adam, dtype, steps=1)
    params = [make(trt, s, i, dtype).float().requires_grad_() for i, s in enumerate(SHAPES)]
    optimizer = adam(trt, params)
    for i, p in enumerate(params):
        p.grad = make(trt, tuple(p.shape), i, dtype).float()
    optimizer.step()
    close(half, [p.detach().double().reshape(-1).tolist() for p in params], unit)


@pytest.mark.usefixtures("split_small_work")
def test_strided_parameters_and_many_chunks() -> None:
    def build(lib, params):
        return lib.optim.Adam(params, lr=0.01, weight_decay=0.1)

    expected = train(trt, build, "float64", big=True)
    assert train(trt, build, "float64", big=True, transpose=True) == expected
    before = trt.get_num_threads()
    try:
        trt.set_num_threads(1 if before > 1 else 2)
        assert train(trt, build, "float64", big=True) == expected
    finally:
        trt.set_num_threads(before)


def test_gradient_scale_and_overflow() -> None:
    p, g = trt.ones(3), trt.full((3,), 8.0)
    state = [trt.zeros(3), trt.zeros(3)]
    arguments = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 0.0, "amsgrad": False, "maximize": False}

    def step(found):
        _ops._fused_adam_([p], [g], [state[0]], [state[1]], [], [trt.ones(())], **arguments, grad_scale=trt.tensor(4.0), found_inf=trt.tensor(found))

    step(1.0)
    assert p.tolist() == [1.0] * 3 and g.tolist() == [8.0] * 3 and p._version == 0
    step(0.0)
    assert p.tolist() == pytest.approx([0.9] * 3) and g.tolist() == [2.0] * 3 and p._version == 1 and state[0].tolist() == pytest.approx([0.2] * 3)


def test_wrong_arguments() -> None:
    p = trt.ones(3)
    sgd = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}
    with pytest.raises(RuntimeError, match="expected 1"):
        _ops._fused_sgd_([p], [], [], **sgd)
    with pytest.raises(RuntimeError, match="shape"):
        _ops._fused_sgd_([p], [trt.ones(4)], [], **sgd)
    with pytest.raises(RuntimeError, match="floating point"):
        _ops._fused_sgd_([trt.ones(3, dtype=trt.int64)], [trt.ones(3, dtype=trt.int64)], [], **sgd)


def foreach_calls(lib):
    a = [make(lib, (3,), 1, "float64", 0.1), make(lib, (2, 2), 2, "float64", 0.1)]
    b = [make(lib, (3,), 3, "float64", 0.1), make(lib, (2, 2), 4, "float64", 0.1)]
    scalar = lib.tensor(2.0, dtype=lib.float64)
    yield "add", (a, b), {"alpha": 2}
    yield "add", (a, 3), {}
    yield "add", (a, [1.0, 2.0]), {}
    yield "sub", (a, b), {}
    yield "mul", (a, 2.5), {}
    yield "mul", (a, scalar), {}
    yield "mul", (a, b), {}
    yield "div", (a, [2.0, 4.0]), {}
    yield "div", (a, b), {}
    for name in ("sqrt", "neg", "abs", "exp", "sign", "reciprocal", "log", "tanh"):
        yield name, (a,), {}
    for name in ("maximum", "minimum", "clamp_min", "clamp_max"):
        yield name, (a, b), {}
        yield name, (a, 0.5), {}
    yield "pow", (a, 2), {}
    yield "pow", (a, b), {}
    yield "addcmul", (a, b, b), {"value": 0.5}
    yield "addcdiv", (a, b, b, [1.0, 2.0]), {}
    yield "addcdiv", (a, b, b, lib.tensor([3.0, 4.0], dtype=lib.float64)), {}
    yield "lerp", (a, b, 0.3), {}
    yield "lerp", (a, b, b), {}
    yield "norm", (a, 2), {}
    yield "norm", (a, 1), {}


def run_foreach(lib, inplace: bool) -> list:
    found = []
    for name, args, kwargs in foreach_calls(lib):
        if inplace and name == "norm":
            continue
        if inplace:
            result = [t.clone() for t in args[0]]
            returned = getattr(lib, f"_foreach_{name}_")(result, *args[1:], **kwargs)
            found.append((name, returned is None or lib.__name__ == "torch"))
        else:
            result = getattr(lib, f"_foreach_{name}")(*args, **kwargs)
        found.append((name, [t.reshape(-1).tolist() for t in result]))
    return found


@pytest.mark.parametrize("inplace", [False, True])
def test_foreach(inplace) -> None:
    torch = pytest.importorskip("torch")
    for (name, got), (_, expected) in zip(run_foreach(trt, inplace), run_foreach(torch, inplace), strict=True):
        assert got == expected or [x for t in got for x in t] == pytest.approx([x for t in expected for x in t], rel=1e-13), name


def test_foreach_zero_and_copy_and_errors() -> None:
    a, b = [trt.ones(2), trt.ones(3)], [trt.full((2,), 4.0), trt.full((3,), 5.0)]
    trt._foreach_copy_(a, b)
    assert [t.tolist() for t in a] == [[4.0] * 2, [5.0] * 3]
    trt._foreach_zero_(a)
    assert [t.tolist() for t in a] == [[0.0] * 2, [0.0] * 3]
    with pytest.raises(RuntimeError, match="same number of"):
        trt._foreach_add(a, [trt.ones(2)])
    with pytest.raises(RuntimeError, match="at least one"):
        trt._foreach_add([], 1)
