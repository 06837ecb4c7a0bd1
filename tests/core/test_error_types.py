"""Errors have the types that PyTorch's have, whatever their words: programs tell them apart by type."""

from __future__ import annotations

import pytest
import torch

import tensorrt_lite as trt

five = lambda m: m.tensor([5])  # noqa: E731
whole = lambda m: m.eye(3).long()  # noqa: E731
complex_ones = lambda m: m.ones(2, dtype=m.complex64)  # noqa: E731


def bag(mode, *given, **rest):
    return lambda m: m.nn.EmbeddingBag(3, 2, mode=mode, **rest)(m.tensor([[0, 5]]), *given)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.ones(3).index_add(0, five(m), m.ones(1)),
        lambda m: m.ones(3).index_add_(0, -five(m), m.ones(1), alpha=2),
        lambda m: m.ones(3, 2).index_add(0, five(m), m.ones(1, 2)),
        lambda m: m.ones(3).index_reduce_(0, five(m), m.ones(1), "amax"),
        lambda m: m.ones(3, 2).index_reduce(0, five(m), m.ones(1, 2), "mean"),
        bag("sum"),
        bag("mean"),
        bag("max"),
        bag("sum", padding_idx=0),
        lambda m: m.nn.EmbeddingBag(3, 2, sparse=True)(-five(m)[None]),
        lambda m: m.eye(3).to_sparse().view(-1),
        lambda m: m.eye(3).to_sparse_csr().view(9),
        lambda m: m.eye(3).to_sparse().reshape(9),
        lambda m: m.linalg.eigh(whole(m)),
        lambda m: m.linalg.eigvalsh(m.eye(2).half()),
        lambda m: m.linalg.lu_factor(whole(m)),
        lambda m: m.linalg.inv(whole(m)),
        lambda m: complex_ones(m).max(),
        lambda m: complex_ones(m).min(),
        lambda m: complex_ones(m).max(0),
        lambda m: complex_ones(m).argmax(),
        lambda m: complex_ones(m).argmin(0),
    ],
)
def test_an_errors_type_is_pytorchs(call):
    found = []
    for library in (torch, trt):
        with pytest.raises(Exception) as info:  # noqa: PT011
            call(library)
        found.append(info.type)
    assert found[0] is found[1]


def test_bags_name_the_index():
    with pytest.raises(RuntimeError, match=r"Index 1 of input takes value 5 which is not in the valid range \[0, 3\)"):
        bag("sum")(trt)
    with pytest.raises(RuntimeError, match="found idx to be 5"):
        bag("max")(trt)
