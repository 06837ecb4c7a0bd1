"""Optimizers and the gradient scaler where gradients are sparse or losses are NaN; schedules whose arguments are tensors."""

from __future__ import annotations

import math

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


def barrier(w):
    """Beyond the line w.sum() = 1 it is NaN."""
    return -(1 - w.sum()).log() + ((w - 3) ** 2).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lr", [1, 5, 50, 1000])
@pytest.mark.parametrize("history", [1, 5])
def test_a_line_search_steps_back_from_nan(dtype, lr, history):
    w = trt.zeros(2, dtype=getattr(trt, dtype), requires_grad=True)
    optimizer = trt.optim.LBFGS([w], lr=lr, max_iter=20, history_size=history, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = barrier(w)
        loss.backward()
        return loss

    start = barrier(w).item()
    for _ in range(4):
        optimizer.step(closure)
    assert w.isfinite().all()
    assert barrier(w).item() < start
    # the minimum on the line of symmetry: 1 / (1 - 2 v) = 2 (3 - v)
    v = (7 - math.sqrt(29)) / 4
    assert w.detach().sub(v).abs().max().item() < 0.05


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_line_searches_without_nan_are_as_in_pytorch(search):
    found = []
    for m in (trt, torch):
        w = m.tensor([-1.2, 1.0], dtype=m.float64, requires_grad=True)
        optimizer = m.optim.LBFGS([w], lr=0.5, max_iter=10, line_search_fn=search)

        def closure(w=w, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (1 - w[0]) ** 2 + 5 * (w[1] - w[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        found.append(w.tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_lbfgs_takes_sparse_gradients(layout):
    w, dense = (trt.ones(2, 2, requires_grad=True) for _ in range(2))
    gradient = trt.tensor([[0.0, 2.0], [1.0, 0.0]])
    convert = getattr(gradient, "to_sparse" + ("" if layout == "coo" else f"_{layout}"))
    w.grad, dense.grad = convert(*((1, 1),) if layout[0] == "b" else ()), gradient
    for p in (w, dense):
        trt.optim.LBFGS([p], lr=0.1, max_iter=3).step(lambda: 1.0)
    assert w.tolist() == dense.tolist()
    assert w.tolist() != [[1, 1], [1, 1]]


OPTIMIZERS = {"SGD": lambda m, p: m.optim.SGD(p, lr=0.1), "momentum": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9), "Adagrad": lambda m, p: m.optim.Adagrad(p, lr=0.1), "SparseAdam": lambda m, p: m.optim.SparseAdam(p, lr=0.1)}


def trained(m, name, dtype, indices, scaled, break_at=None):
    weight = m.nn.Parameter(m.arange(6, dtype=getattr(m, dtype)).view(3, 2))
    optimizer = OPTIMIZERS[name](m, [weight])
    scaler = m.amp.GradScaler("cpu", enabled=scaled, init_scale=1024.0)
    for step in range(3):
        optimizer.zero_grad()
        loss = (m.nn.functional.embedding(m.tensor(indices, dtype=m.int64), weight, sparse=True) ** 2).sum()
        loss = loss * (math.inf if step == break_at else 1)
        scaler.scale(loss).backward()
        assert weight.grad.is_sparse
        scaler.step(optimizer)
        scaler.update()
    return weight.tolist(), scaler.get_scale()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("indices", [[0, 2], [1, 1, 0, 1], []])
def test_the_scaler_unscales_sparse_gradients(name, dtype, indices):
    scaled, plain, theirs = trained(trt, name, dtype, indices, True), trained(trt, name, dtype, indices, False), trained(torch, name, dtype, indices, True)
    for row, other, expected in zip(scaled[0], plain[0], theirs[0]):
        assert row == pytest.approx(other, rel=1e-6)
        assert row == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_with_infinite_sparse_gradients_are_skipped(name):
    skipped = trained(trt, name, "float32", [0, 2], True, break_at=1)
    assert all(math.isfinite(x) for row in skipped[0] for x in row)
    assert skipped[1] == 512
    theirs = trained(torch, name, "float32", [0, 2], True, break_at=1)
    assert skipped[0][0] == pytest.approx(theirs[0][0], rel=1e-5)


def test_unscaled_values_are_the_gradients():
    weight = trt.nn.Parameter(trt.ones(3, 2))
    optimizer, scaler = trt.optim.SGD([weight], lr=0.1), trt.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(trt.nn.functional.embedding(trt.tensor([1, 1]), weight, sparse=True).sum()).backward()
    assert weight.grad.to_dense()[1].tolist() == [16, 16]
    scaler.unscale_(optimizer)
    assert weight.grad.to_dense()[1].tolist() == [2, 2]


SCHEDULES = {
    "OneCycleLR": lambda m, o, v: m.optim.lr_scheduler.OneCycleLR(o, max_lr=v(0.2), total_steps=6, base_momentum=v(0.8), max_momentum=v(0.9)),
    "OneCycleLR of a list": lambda m, o, v: m.optim.lr_scheduler.OneCycleLR(o, max_lr=[v(0.2)], total_steps=6),
    "SWALR": lambda m, o, v: m.optim.swa_utils.SWALR(o, swa_lr=v(0.05), anneal_epochs=3),
    "CyclicLR": lambda m, o, v: m.optim.lr_scheduler.CyclicLR(o, base_lr=v(0.1), max_lr=v(0.4), step_size_up=2, base_momentum=v(0.7), max_momentum=v(0.9)),
    "CyclicLR of lists": lambda m, o, v: m.optim.lr_scheduler.CyclicLR(o, base_lr=[v(0.1)], max_lr=[v(0.4)], step_size_up=2, cycle_momentum=False),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("tensor_lr", [False, True])
def test_schedules_copy_their_tensor_arguments(name, tensor_lr):
    rates = []
    for change in (False, True):
        given = []

        def value(number, given=given):
            given.append(trt.tensor(number, dtype=trt.float64))
            return given[-1]

        p = trt.nn.Parameter(trt.ones(1))
        optimizer = trt.optim.SGD([p], lr=trt.tensor(0.1, dtype=trt.float64) if tensor_lr else 0.1, momentum=0.9)
        schedule = SCHEDULES[name](trt, optimizer, value)
        seen = []
        for _ in range(5):
            seen.append((float(optimizer.param_groups[0]["lr"]), float(optimizer.param_groups[0]["momentum"])))
            if change:
                for t in given:
                    t.mul_(0.5)
            optimizer.step()
            schedule.step()
        rates.append(seen)
    assert given
    assert rates[0] == rates[1]
    p = trt.nn.Parameter(trt.ones(1))
    optimizer = trt.optim.SGD([p], lr=0.1, momentum=0.9)
    schedule = SCHEDULES[name](trt, optimizer, lambda number: number)
    numbers = []
    for _ in range(5):
        numbers.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        optimizer.step()
        schedule.step()
    assert [x for pair in rates[0] for x in pair] == pytest.approx([x for pair in numbers for x in pair], rel=1e-6)
