"""Schemas of operators are PyTorch's text, and calls by them reach the rows."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tools import contract

torch = pytest.importorskip("torch")
aten = trt.ops.aten


def test_texts_are_pytorchs_but_for_one_in_a_hundred():
    compared, different = 0, []
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        base, _, overload = name.partition(".")
        packet = getattr(aten, base, None) if space == "aten" else None
        if packet is not None and (overload or "default") in packet.overloads():
            compared += 1
            ours, theirs = getattr(packet, overload or "default")._schema, getattr(getattr(torch.ops.aten, base), overload or "default")._schema
            different += [f"{full}: {ours}"] if str(ours) != str(theirs) else []
    assert compared > 1400 and len(different) <= compared // 100, different


def test_no_row_has_an_argument_without_a_type():
    assert contract.COUNTS["generated rows with Any"]() == contract.COUNTS["composed rows with Any"]() == []


def test_what_is_written_and_shared_is_marked():
    assert str(aten.add_.Tensor._schema) == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert aten.sort.values._schema.written == [3, 4] and aten.add_.Tensor._schema.is_mutable and not aten.add.Tensor._schema.is_mutable
    assert str(aten.view.default._schema) == "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"
    assert str(aten._fused_adam_.default._schema).startswith("aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs")


def test_calls_by_schema_reach_the_row():
    x = trt.arange(6.0).reshape(2, 3)
    assert aten._upsample_nearest_exact1d.default(x[None], [6]).shape == (1, 2, 6)
    assert aten.upsample_bilinear2d.default(x[None, None], [4, 6], False, 2.0, 2.0).shape == (1, 1, 4, 6)
    values, inverse, counts = aten._unique2.default(x)
    assert values.tolist() == [0, 1, 2, 3, 4, 5] and inverse.numel() == counts.numel() == 0
    assert aten.round.decimals(trt.tensor([1.26]), decimals=1).item() == pytest.approx(1.3)
    assert aten.copy_.default(trt.zeros(2), trt.ones(2), True).tolist() == [1, 1]
    assert aten.normal_.default(trt.zeros(2), 3.0, 0.0).tolist() == [3, 3]
    assert aten.polygamma.default(1, trt.ones(1)).item() == pytest.approx(torch.polygamma(1, torch.ones(1)).item())
    assert aten.nan_to_num.default(trt.tensor([float("nan")]), 2.0, 3.0, 4.0).tolist() == [2]
    values, indices = trt.empty(2), trt.empty(2, dtype=trt.int64)
    assert aten.max.dim_max(x, 1, max=values, max_values=indices)[0] is values and indices.tolist() == [2, 2]


def test_several_results_are_given_by_name_or_together():
    x, values, indices = trt.tensor([3.0, 1.0]), trt.empty(0), trt.empty(0, dtype=trt.int64)
    aten.sort.values(x, values=values, indices=indices)
    assert values.tolist() == [1, 3] and indices.tolist() == [1, 0]
    with pytest.raises(TypeError, match=r"aten.sort.values: missing the argument 'values'"):
        aten.sort.values(x)
