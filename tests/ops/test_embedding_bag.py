"""embedding_bag and embedding_renorm_ outside nn.functional, beside PyTorch: all results, gradients, errors."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from torch_compare import ours, same, torch


def test_all_results_and_gradients():
    rng = torch.Generator().manual_seed(0)
    w, weights = torch.randn(6, 3, generator=rng, dtype=torch.float64), torch.rand(6, generator=rng, dtype=torch.float64)
    for kind in (torch.int64, torch.int32):
        i, o = torch.tensor([1, 2, 4, 5, 4, 3], dtype=kind), torch.tensor([0, 2, 2, 5], dtype=kind)
        for mode in (0, 1, 2):
            for last in (False, True):
                for padding in (None, 4, -1):
                    for per_sample in (None, weights) if mode == 0 else (None,):
                        ends = torch.cat([o, torch.tensor([6], dtype=kind)]) if last else o
                        found = []
                        for lib, convert in ((torch, lambda t: t), (trt, ours)):
                            leaf = convert(w.clone().requires_grad_())
                            given = None if per_sample is None else convert(per_sample)
                            rest = () if padding is None else (padding,)
                            results = lib.embedding_bag(leaf, convert(i), convert(ends), False, mode, False, given, last, *rest)
                            found.append((results, lib.autograd.grad(results[0].sin().sum(), leaf)[0]))
                        (theirs, of_theirs), (mine, of_mine) = found
                        same(of_mine, of_theirs, "gradient", 1e-12)
                        # sums leave sizes and places undetermined
                        same(mine[:1] if mode == 0 else mine, theirs[:1] if mode == 0 else theirs, f"{mode} {last} {padding}", 1e-12)


def test_rows_are_scaled_in_place():
    w, i = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([[1, 2], [2, 5]])
    mine = ours(w)
    assert trt.embedding_renorm_(mine, ours(i), 0.5, 1.0) is mine
    same(mine, torch.embedding_renorm_(w.clone(), i, 0.5, 1.0))


def test_many_indices_scale_each_row_once_and_a_bad_one_none():
    generator = torch.Generator().manual_seed(2)
    w, i = torch.randn(300, 64, generator=generator), torch.randint(0, 300, (3000,), generator=generator)
    i[i == 7] = 8
    mine = trt.embedding_renorm_(ours(w), ours(i), 1.0, 2.0)
    same(mine, torch.embedding_renorm_(w.clone(), i, 1.0, 2.0))
    assert trt.equal(mine[7], ours(w)[7])
    i[-1], mine = 300, ours(w)
    with pytest.raises(IndexError):
        trt.embedding_renorm_(mine, ours(i), 1.0, 2.0)
    assert trt.equal(mine, ours(w))


def test_lesser_names():
    x = trt.arange(16.0).reshape(1, 4, 4)
    assert trt.equal(trt.native_channel_shuffle(x, 2), trt.channel_shuffle(x, 2))
    parts = trt.unsafe_split_with_sizes(x, [1, 3], 1)
    assert [p.shape[1] for p in parts] == [1, 3] and parts[0]._version == 0


def test_meta_and_errors():
    w, i, o = trt.zeros(6, 3), trt.tensor([1, 2, 4]), trt.tensor([0, 2])
    assert [tuple(t.shape) for t in trt.embedding_bag(w.to("meta"), i.to("meta"), o.to("meta"), mode=1)] == [(2, 3), (3,), (2,), (2,)]
    cases = [
        (lambda: trt.embedding_bag(w, i, trt.tensor([1, 2])), "has to be 0"),
        (lambda: trt.embedding_bag(w, i, trt.tensor([0, 4])), "stay within the input's length 3"),
        (lambda: trt.embedding_bag(w, i.float(), o), "scalar types: Long, Int"),
        (lambda: trt.embedding_bag(w, i, o, mode=3), "must be sum, mean, or max"),
        (lambda: trt.embedding_bag(w, i, o, padding_idx=6), "padding_idx must be within"),
        (lambda: trt.embedding_bag(w, i, o, mode=1, per_sample_weights=trt.ones(3)), "only supported for mode='sum'"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.mark.parametrize("dtype", [trt.int32, trt.int64])
@pytest.mark.parametrize("width", [1, 3, 5, 8, 70])
def test_indices_are_checked_as_they_are_used(dtype, width):
    """Blocks of indices, rows of all lengths, an index out of range behind the first block; no rows at all."""
    w = trt.randn(50, width)
    good = trt.randint(0, 50, (5000,), dtype=dtype)
    picked = w.tolist()
    assert F.embedding(good, w).tolist() == [picked[i] for i in good.tolist()]
    assert (F.embedding(good, w.t().contiguous().t()) == F.embedding(good, w)).all()
    torch.testing.assert_close(
        torch.from_numpy(F.embedding_bag(good.view(50, 100), w, mode="sum").numpy()),
        torch.nn.functional.embedding_bag(torch.from_numpy(good.view(50, 100).numpy()), torch.from_numpy(w.numpy()), mode="sum"),
    )
    for wrong in (50, -1):
        bad = good.clone()
        bad[3000] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} at position 3000, dimension 0 has size 50"):
            F.embedding(bad, w)
        with pytest.raises(RuntimeError, match=f"Index 3000 of input takes value {wrong} which is not in the valid range"):
            F.embedding_bag(bad.view(50, 100), w, mode="sum")
    with pytest.raises(IndexError):
        F.embedding(good, w[:0])
    with pytest.raises(RuntimeError):
        F.embedding_bag(good.view(50, 100), w[:0], mode="sum")
    assert F.embedding(good[:0], w[:0]).shape == (0, width)


def test_maxima_of_no_indices_keep_the_graph():
    weight = trt.ones(3, 2, requires_grad=True)
    result = F.embedding_bag(trt.tensor([], dtype=trt.int64), weight, trt.tensor([0, 0]), mode="max")
    assert result.tolist() == [[0.0, 0.0]] * 2
    result.sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("padding", [None, 3])
def test_maxima_and_their_gradients(dtype, padding):
    """Bags of none, of one and of many rows, more columns than are taken at a time, ties, padding."""
    rng = torch.Generator().manual_seed(4)
    w, i = torch.randn(9, 70, generator=rng).mul(2).round().to(dtype), torch.randint(0, 9, (60,), generator=rng)
    o = torch.tensor([0, 0, 1, 20, 20, 60])
    found = []
    for lib, convert in ((torch, lambda t: t), (trt, ours)):
        leaf = convert(w.clone().requires_grad_())
        results = lib.embedding_bag(leaf, convert(i), convert(o), False, 2, False, None, False, *(() if padding is None else (padding,)))
        g = (lib.arange(results[0].numel()) % 4).to(results[0].dtype).reshape(results[0].shape)
        recorded = lib.autograd.grad(results[0], leaf, g, create_graph=lib is trt, retain_graph=True)[0]
        found.append((*results, lib.autograd.grad(results[0], leaf, g)[0], recorded))
    same(found[1], found[0], "results and gradients")


def test_second_derivatives_and_batches_of_maxima():
    w, i, o = trt.randn(5, 3, dtype=trt.float64, requires_grad=True), trt.tensor([0, 2, 4, 1, 3]), trt.tensor([0, 2, 2])
    call = lambda t: F.embedding_bag(i, t, o, mode="max").sin()  # noqa: E731
    assert trt.autograd.gradcheck(call, (w,), check_forward_ad=True, check_batched_grad=True) and trt.autograd.gradgradcheck(call, (w,))
    many = trt.randn(4, 5, 3)
    assert trt.equal(trt.func.vmap(call)(many), trt.stack([call(each) for each in many]))


def test_nan_is_the_largest_of_a_bag():
    w = trt.tensor([[1.0, float("nan")], [float("nan"), 2.0], [3.0, 4.0]])
    result = F.embedding_bag(trt.tensor([[0, 1, 2], [2, 2, 2]]), w, mode="max")
    assert result[0].isnan().all() and result[1].tolist() == [3.0, 4.0]


def test_maxima_take_no_rows_aside():
    w, i = trt.randn(300, 500, requires_grad=True), trt.randint(0, 300, (2000,))
    trt.cpu.reset_peak_memory_stats()
    before = trt.cpu.memory_allocated()
    F.embedding_bag(i, w, trt.arange(0, 2000, 20), mode="max").sum().backward()
    assert trt.cpu.max_memory_allocated() - before < 2_500_000  # rows of all indices would take 4 MB


def test_maxima_do_not_depend_on_threads():
    w, i, before, found = trt.randn(300, 100, requires_grad=True), trt.randint(0, 300, (5000,)), trt.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            trt.set_num_threads(threads)
            y = F.embedding_bag(i, w, trt.arange(0, 5000, 7), mode="max")
            found.append((y, trt.autograd.grad(y.square().sum(), w)[0]))
    finally:
        trt.set_num_threads(before)
    assert all(trt.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_an_index_out_of_range_is_named_by_maxima():
    for wrong in (-1, 6):
        with pytest.raises(RuntimeError, match="not in the valid range|to be"):
            F.embedding_bag(trt.tensor([[0, wrong]]), trt.randn(6, 3), mode="max")
