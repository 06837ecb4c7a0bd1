"""Tags of operators: what a pass over them asks, declared in the rows, by PyTorch's names."""

from __future__ import annotations

from functools import cache

import pytest

import tensorrt_lite as trt
from tensorrt_lite._declared import declarations

torch = pytest.importorskip("torch")

COMPARED = ("core", "data_dependent_output", "dynamic_output_shape", "inplace_view", "nondeterministic_seeded", "pointwise", "reduction")
# Overloads whose `core` differs: they are calls of a row whose other overload is core, or PyTorch marks one that writes.
CORE = {"atan2.out", "grid_sampler_3d.default", "resize_.default", "rsub.Scalar", "std.correction"}
KNOWN_SHAPE = {"_ctc_loss.default", "linalg_lstsq.default", "linalg_lstsq.out"}  # their results' sizes follow from the arguments' here
WITH_EXPRESSION = {"isreal", "log_sigmoid", "_dirichlet_grad", "_standard_gamma_grad"}  # PyTorch has no tag
WIDER = ("pointwise", "reduction")  # PyTorch leaves these off many overloads that write, and off some operators


@cache
def pairs() -> dict[str, tuple[set[str], set[str]]]:
    """{overload: (our tags, PyTorch's)} of the operators that both have."""
    found = {}
    for name in sorted({full[6:].partition(".")[0] for full in torch._C._dispatch_get_all_op_names() if full.startswith("aten::")}):
        theirs = getattr(torch.ops.aten, name)
        mine = None if name.startswith("__") or not hasattr(theirs, "overloads") else getattr(trt.ops.aten, name, None)
        if mine is None:
            continue
        for overload in set(theirs.overloads()) & set(mine.overloads()):
            found[f"{name}.{overload}"] = ({t.name for t in getattr(mine, overload).tags}, {t.name for t in getattr(theirs, overload).tags})
    return found


@pytest.mark.parametrize("tag", COMPARED)
def test_tags_are_pytorchs(tag) -> None:
    assert len(pairs()) > 1000
    missing = {name for name, (ours, theirs) in pairs().items() if tag in theirs and tag not in ours}
    more = {name for name, (ours, theirs) in pairs().items() if tag in ours and tag not in theirs}
    if tag == "core":
        missing, more = missing - CORE, more - CORE
    if tag == "dynamic_output_shape":
        missing -= KNOWN_SHAPE
    if tag in WIDER:
        named = {name.partition(".")[0].rstrip("_") for name, (_, theirs) in pairs().items() if tag in theirs}
        more = {name for name in more if (base := name.partition(".")[0].rstrip("_")) not in named | WITH_EXPRESSION and declarations.of(base).kind != "pointwise"}
    assert not missing and not more


@pytest.mark.parametrize("name, tags", {
    "_local_scalar_dense": {"host_sync", "data_dependent_output", "core"}, "nonzero": {"host_sync", "dynamic_output_shape"}, "view": {"view", "reshapes", "stored_dtypes"}, "exponential_": {"random", "nondeterministic_seeded"},
    "exp": {"pointwise", "core"}, "amax": {"reduction", "core"}, "rand": {"random", "stored_complex"},
}.items())  # fmt: skip
def test_rows_say_what_passes_ask(name, tags) -> None:
    assert tags <= declarations.of(name).tags


def test_overloads_of_one_row_have_their_own_tags() -> None:
    aten, tag = trt.ops.aten, trt.Tag
    assert tag.core in aten.sum.dim_IntList.tags and tag.core not in aten.sum.default.tags
    assert tag.reduction in aten.sum.default.tags
    assert {tag.inplace, tag.pointwise} <= set(aten.add_.Tensor.tags) and tag.out in aten.add.out.tags and tag.core not in aten.add.out.tags
    assert all(isinstance(t, tag) for t in aten.add.Tensor.tags)


@pytest.mark.parametrize("dtype", [trt.uint16, trt.float8_e4m3fn, trt.complex32])
def test_what_takes_a_dtype_without_loops_is_the_rows_say(dtype) -> None:
    assert trt.zeros(2, dtype=dtype).dtype == trt.ones(2).to(dtype).dtype == trt.eye(2, dtype=dtype).dtype == dtype
    with pytest.raises(NotImplementedError, match="sum"):
        trt.ones(2).sum(dtype=dtype)
    assert (trt.randint(0, 3, (2,), dtype=trt.uint16).dtype, trt.rand(2, dtype=trt.complex32).dtype) == (trt.uint16, trt.complex32)
    x = trt.ones(2, 2).to(dtype)
    assert trt.equal(x.gather(0, trt.tensor([[1, 0]])).float(), trt.ones(1, 2)) if not dtype.is_complex else True
    assert x.masked_fill(trt.tensor([True, False]), 1).dtype == dtype
