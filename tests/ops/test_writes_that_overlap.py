"""Writes into memory that several elements share: one value goes into expanded tensors, what would depend on an order is refused, as in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

ONE_VALUE = {
    "fill_": lambda m, x: x.fill_(2.0),
    "zero_": lambda m, x: x.zero_(),
    "data": lambda m, x: (x.data.zero_(), x)[1],
    "fill_diagonal_": lambda m, x: x.fill_diagonal_(2.0),
    "threshold_": lambda m, x: m.nn.functional.threshold_(x, 1.0, 2.0),
    "threshold": lambda m, x: m.nn.functional.threshold(x, 1.0, 2.0, inplace=True),
    "constant_": lambda m, x: m.nn.init.constant_(x, 3.0),
    "zeros_": lambda m, x: m.nn.init.zeros_(x),
    "ones_": lambda m, x: m.nn.init.ones_(x),
    "eye_": lambda m, x: m.nn.init.eye_(x),
    "zeros": lambda m, x: m.zeros(3, 3, out=x),
    "ones": lambda m, x: m.ones(3, 3, out=x),
    "full": lambda m, x: m.full((3, 3), 2.0, out=x),
}
BY_POSITION = {
    "masked_fill_": lambda m, x: x.masked_fill_(m.eye(3, dtype=m.bool)[:, :1].expand(3, 3), 2.0),
    "masked_fill_ with a tensor": lambda m, x: x.masked_fill_(m.tensor([False, True, False]), m.tensor(2.0)),
    "masked_fill_ of the last": lambda m, x: x.masked_fill_(m.tensor([[False], [False], [True]]), 2.0),
    "index_fill_": lambda m, x: x.index_fill_(0, m.tensor([1]), 2.0),
    "index_put_": lambda m, x: x.index_put_((m.tensor([1]),), m.tensor(2.0)),
    "x[index]": lambda m, x: (x.__setitem__(m.tensor([1]), 2.0), x)[1],
}
REFUSED = {
    "add_": lambda m, x: x.add_(1),
    "copy_": lambda m, x: x.copy_(m.ones(3, 3)),
    "relu_": lambda m, x: x.relu_(),
    "clamp_": lambda m, x: x.clamp_(1),
    "normal_": lambda m, x: x.normal_(),
    "index_copy_": lambda m, x: x.index_copy_(0, m.tensor([0]), m.ones(1, 3)),
    "index_add_": lambda m, x: x.index_add_(0, m.tensor([0]), m.ones(1, 3)),
    "scatter_": lambda m, x: x.scatter_(0, m.tensor([[0]]), 1.0),
    "put_": lambda m, x: x.put_(m.tensor([0]), m.ones(1)),
    "x[:] = number": lambda m, x: x.__setitem__(slice(None), 4.0),
    "cumsum_": lambda m, x: x.cumsum_(0),
    "linspace": lambda m, x: m.linspace(0, 1, 9, out=x),
    "logspace": lambda m, x: m.logspace(0, 1, 9, out=x),
    "cat": lambda m, x: m.cat([m.ones(3, 3)], out=x),
    "mm": lambda m, x: m.mm(m.ones(3, 3), m.ones(3, 3), out=x),
    "cumsum(out=)": lambda m, x: m.cumsum(m.ones(3, 3), 0, out=x),
}


def expanded(m: Any, shape: tuple[int, ...]) -> Any:
    return m.arange(shape[0] * shape[1], dtype=m.float32).reshape(shape).expand(3, 3)


def outcome(call: Any, m: Any, shape: tuple[int, ...]) -> tuple[Any, list[str]]:
    x = expanded(m, shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(m, x)
    return x.tolist(), [str(w.message).partition(" (Triggered")[0] for w in caught]


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3)], ids=str)
@pytest.mark.parametrize("name", ONE_VALUE)
def test_one_value_goes_into_an_expanded_tensor(name: str, shape: tuple[int, ...]) -> None:
    assert outcome(ONE_VALUE[name], trt, shape)[0] == outcome(ONE_VALUE[name], torch, shape)[0]


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3)], ids=str)
@pytest.mark.parametrize("name", BY_POSITION)
def test_one_value_by_positions_is_written_with_a_warning(name: str, shape: tuple[int, ...]) -> None:
    (ours, warned), (theirs, expected) = outcome(BY_POSITION[name], trt, shape), outcome(BY_POSITION[name], torch, shape)
    assert ours == theirs
    assert warned[:1] == expected[:1] and "expanded tensors is deprecated" in warned[0]


@pytest.mark.parametrize("name", REFUSED)
def test_other_writes_into_an_expanded_tensor_are_refused(name: str) -> None:
    for m in (trt, torch):
        x = expanded(m, (1, 1))
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
            REFUSED[name](m, x)
        assert x.tolist() == [[0.0] * 3] * 3


OVERLAPPING = {
    "copy_": lambda m, x: x[1:4].copy_(x[:3]),
    "copy_ transposed": lambda m, x: x[:4].view(2, 2).t().copy_(x[:4].view(2, 2)),
    "x[1:4] = x[:3]": lambda m, x: x.__setitem__(slice(1, 4), x[:3]),
    "index_copy_": lambda m, x: x.index_copy_(0, m.tensor([0, 1]), x[1:3]),
    "index_put_": lambda m, x: x.index_put_((m.tensor([0, 1]),), x[1:3]),
    "index_put_ added": lambda m, x: x.index_put_((m.tensor([0, 1]),), x[:2], accumulate=True),
    "index_add_": lambda m, x: x.index_add_(0, m.tensor([0, 1]), x[1:3]),
    "put_": lambda m, x: x.put_(m.tensor([0, 1]), x[1:3]),
    "scatter_": lambda m, x: x.scatter_(0, m.tensor([0, 1]), x[1:3]),
    "add_": lambda m, x: x[1:4].add_(x[:3]),
    "add(out=)": lambda m, x: m.add(x[:3], 1, out=x[1:4]),
    "cumsum(out=)": lambda m, x: m.cumsum(x[:3], 0, out=x[1:4]),
    "cumprod(out=)": lambda m, x: m.cumprod(x[:3], 0, out=x[1:4]),
    "cat(out=)": lambda m, x: m.cat([x[:3]], out=x[1:4]),
    "logcumsumexp(out=)": lambda m, x: m.logcumsumexp(x[:3], 0, out=x[1:4]),
    "sort(out=)": lambda m, x: m.sort(x[:3], 0, out=(x[1:4], m.zeros(3, dtype=m.int64))),
    "topk(out=)": lambda m, x: m.topk(x[:3], 3, out=(x[1:4], m.zeros(3, dtype=m.int64))),
    "max(out=)": lambda m, x: m.max(x.view(3, 2), 1, out=(x[1:4], m.zeros(3, dtype=m.int64))),
    "scatter(out=)": lambda m, x: m.scatter(x[:3], 0, m.tensor([0]), 1.0, out=x[1:4]),
    "index_add(out=)": lambda m, x: m.index_add(x[:3], 0, m.tensor([0]), m.ones(1), out=x[1:4]),
    "index_copy(out=)": lambda m, x: m.index_copy(x[:3], 0, m.tensor([0]), m.ones(1), out=x[1:4]),
    "addmv(out=)": lambda m, x: m.addmv(x[:2], x[:4].view(2, 2), x[:2], out=x[1:3]),
    "gather(out=)": lambda m, x: m.gather(x[:3], 0, m.tensor([0, 1, 1]), out=x[1:4]),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_source_that_overlaps_the_target_is_refused(name: str) -> None:
    for m in (trt, torch):
        x = m.arange(6.0)
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory location"):
            OVERLAPPING[name](m, x)
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_indices_that_overlap_the_target_are_refused() -> None:
    for m in (trt, torch):
        x = m.arange(6)
        for call in (lambda x: x.index_copy_(0, x[:2], x.new_ones(2)), lambda x: x.put_(x[:2], x.new_ones(2)), lambda x: x.index_put_((x[:2],), x.new_ones(2))):
            with pytest.raises(RuntimeError, match="refer to a single memory location"):
                call(x)
        assert x.tolist() == list(range(6))


def test_copies_onto_the_same_or_other_elements_are_carried_out() -> None:
    for m in (trt, torch):
        x = m.arange(6.0)
        x[1:4].copy_(x[1:4])
        x[:3].copy_(x[3:])
        assert x.tolist() == [3.0, 4.0, 5.0, 3.0, 4.0, 5.0]
        x[::2].copy_(x[1::2])
        assert x.tolist() == [4.0, 4.0, 3.0, 3.0, 5.0, 5.0]
        x.view(m.int32).copy_(x)
        assert x.view(m.int32).tolist() == [4, 4, 3, 3, 5, 5]


@pytest.mark.parametrize("index", [[-1], [0, -2], [3], [-4]])
@pytest.mark.parametrize("dim", [0, 1])
def test_index_copy_refuses_negative_indices(index: list[int], dim: int) -> None:
    for m in (trt, torch):
        x, i = m.zeros(3, 3), m.tensor(index)
        source = m.ones(3, 3).narrow(dim, 0, len(index))
        for call in (m.index_copy, m.Tensor.index_copy, m.Tensor.index_copy_):
            with pytest.raises(IndexError):
                call(x, dim, i, source)
        assert m is torch or not x.any()
