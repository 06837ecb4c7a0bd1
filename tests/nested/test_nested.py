"""Jagged tensors: construction, geometry, gradients, layers, refusals; beside PyTorch's where both have it."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tensorrt_lite as trt  # noqa: E402
from tensorrt_lite.nested import NestedInt  # noqa: E402
from tensorrt_lite._ops import _namespace  # noqa: E402
from tests.nested import njt  # noqa: E402

LENGTHS = (3, 1, 4)
# A sample of each way to run; `python -m tests.nested.njt` runs all of PyTorch's database.
OPERATORS = [
    "sin", "nn.functional.relu", "add", "where", "sum", "mean", "amax", "argmax", "std", "all", "linalg.vector_norm", "matmul", "bmm", "nn.functional.linear",
    "nn.functional.rms_norm", "nn.functional.embedding", "nn.functional.embedding_bag", "chunk", "narrow", "select", "split_with_sizes", "squeeze", "unflatten", "unsqueeze", "masked_select",
    "to", "fill", "index_put", "nn.functional.prelu",
]  # fmt: skip
# Of them, those whose backward pass PyTorch survives for all samples.
DIFFERENTIATED = {"sin", "nn.functional.relu", "add", "where", "matmul", "nn.functional.linear", "chunk", "unflatten", "unsqueeze", "to"}


def lists(seed=0, width=6):
    random = np.random.default_rng(seed)
    return [random.standard_normal((n, width)) for n in LENGTHS]


def both(seed=0, width=6, requires_grad=True):
    data = lists(seed, width)
    theirs = torch.nested.nested_tensor([torch.tensor(t) for t in data], layout=torch.jagged, requires_grad=requires_grad)
    ours = trt.nested.nested_tensor([trt.tensor(t) for t in data], layout=trt.jagged, requires_grad=requires_grad)
    return theirs, ours


def assert_same(actual, expected, tolerance=1e-9):
    assert njt.differences(expected, actual, tolerance) is None


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("gradient", [False, True])
def test_samples_of_the_database_equal_pytorch(name, gradient):
    op = njt.operators()[name]
    if gradient and (not op.supports_autograd or name not in DIFFERENTIATED):
        return
    counted = njt.run(op, gradient)
    assert not counted.failures
    assert counted.passed or counted.refused


def test_construction_and_geometry():
    theirs, ours = both()
    assert ours.is_nested and ours.layout == trt.jagged and ours.is_leaf and ours.requires_grad and not ours.values().is_leaf
    assert ours.offsets().tolist() == [0, 3, 4, 8] and ours.lengths() is None
    assert (
        ours.size(0) == 3 and ours.size(-1) == 6 and isinstance(ours.size(1), NestedInt) and ours.dim() == 3 and len(ours) == 3 and ours.numel() == 48
    )
    assert [tuple(t.shape) for t in ours.unbind()] == [(3, 6), (1, 6), (4, 6)]
    assert ours.shape == (ours * 2).shape != both()[1].shape
    assert_same(ours, theirs)
    wide = trt.nested.nested_tensor([[1, 2], [3]], layout=trt.jagged, dtype=trt.float32)
    assert wide.dtype == trt.float32 and [t.tolist() for t in wide.unbind()] == [[1, 2], [3]]
    assert trt.nested.as_nested_tensor(trt.ones(2, 3, 4), layout=trt.jagged).offsets().tolist() == [0, 3, 6]
    assert not trt.ones(2).is_nested


def test_ragged_sizes_compare_as_pytorchs():
    j, other = both()[1].size(1), both()[1].size(1)
    k = both()[0].size(1)
    for a in (j, k):
        assert a == a and a != 3 and a >= 2 and not a < 2 and a * 2 != a and a * 2 >= a
    assert j != other
    with pytest.raises(ValueError, match="indeterminate"):
        j >= 3  # noqa: B015


def test_views_of_dense_tensors():
    values = trt.arange(12.0).reshape(6, 2).requires_grad_()
    nt = trt.nested.nested_tensor_from_jagged(values, trt.tensor([0, 2, 6]))
    nt.sum(1)[1].sum().backward()
    assert values.grad.tolist() == [[0, 0]] * 2 + [[1, 1]] * 4
    holes = trt.nested.nested_tensor_from_jagged(values.detach(), trt.tensor([0, 2, 6]), trt.tensor([1, 2]))
    assert [t.tolist() for t in holes.unbind()] == [[[0, 1]], [[4, 5], [6, 7]]] and not holes.is_contiguous()
    assert holes.contiguous().values().tolist() == [[0, 1], [4, 5], [6, 7]] and holes.sum(1).tolist() == [[0, 1], [10, 12]]
    dense = trt.arange(8.0).reshape(2, 4)
    assert [t.tolist() for t in trt.nested.narrow(dense, 1, trt.tensor([0, 1]), trt.tensor([1, 3]), layout=trt.jagged).unbind()] == [[0], [5, 6, 7]]
    assert [t.tolist() for t in trt.nested.masked_select(dense, dense % 2 == 0).unbind()] == [[0, 2], [4, 6]]


def test_padding_there_and_back():
    theirs, ours = both()
    assert_same(trt.nested.to_padded_tensor(ours, -1.0), torch.nested.to_padded_tensor(theirs, -1.0))
    assert ours.to_padded_tensor(0.0, (3, 5, 7)).shape == (3, 5, 7)
    assert_same(ours + ours.to_padded_tensor(0.0), theirs * 2)
    with pytest.raises(RuntimeError, match="output_size"):
        ours.to_padded_tensor(0.0, (3, 2, 6))


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_and_its_gradient(name, dim):
    ours = both()[1]
    mine = getattr(ours, name)(dim)
    (mine * mine).values().sum().backward()
    leaves = [torch.tensor(t, requires_grad=True) for t in lists()]
    expected = [getattr(t, name)(dim - 1) for t in leaves]
    sum((t**2).sum() for t in expected).backward()
    for part, t in zip(mine.unbind(), expected, strict=True):
        np.testing.assert_allclose(part.tolist(), t.tolist(), atol=1e-9)
    for part, t in zip(ours.grad.unbind(), leaves, strict=True):
        np.testing.assert_allclose(part.tolist(), t.grad.tolist(), atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradient(causal):
    data = [lists(i, 8) for i in range(3)]
    ours = [trt.nested.nested_tensor([trt.tensor(t) for t in d], layout=trt.jagged, requires_grad=True) for d in data]
    first = ours[0]
    ours[1:] = [trt.nested.nested_tensor_from_jagged(t.values().detach(), first.offsets()).requires_grad_() for t in ours[1:]]
    heads = [t.unflatten(-1, (2, 4)).transpose(1, 2) for t in ours]
    out = trt.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)
    assert out.shape == heads[0].shape
    out.transpose(1, 2).flatten(2).sin().values().sum().backward()
    for i in range(len(LENGTHS)):
        leaves = [torch.tensor(d[i], requires_grad=True) for d in data]
        split = [t.unflatten(-1, (2, 4)).transpose(0, 1)[None] for t in leaves]
        reference = torch.nn.functional.scaled_dot_product_attention(*split, is_causal=causal)
        reference.sin().sum().backward()
        np.testing.assert_allclose(out.unbind()[i].tolist(), reference[0].tolist(), atol=1e-9)
        for mine, leaf in zip(ours, leaves, strict=True):
            np.testing.assert_allclose(mine.grad.unbind()[i].tolist(), leaf.grad.tolist(), atol=1e-9)


def test_modules():
    ours = both()[1]
    trt.manual_seed(0)
    model = trt.nn.Sequential(trt.nn.Linear(6, 8), trt.nn.LayerNorm(8), trt.nn.GELU(), trt.nn.Dropout(0.1), trt.nn.Linear(8, 2)).double().eval()
    out = model(ours)
    for part, t in zip(out.unbind(), ours.unbind(), strict=True):
        np.testing.assert_allclose(part.tolist(), model(t).tolist(), atol=1e-12)
    attention = trt.nn.MultiheadAttention(6, 2, batch_first=True).double()
    with pytest.raises(RuntimeError, match="pass need_weights=False"):
        attention(ours, ours, ours)
    out, weights = attention(ours, ours, ours, need_weights=False)
    assert weights is None
    for part, t in zip(out.unbind(), ours.unbind(), strict=True):
        np.testing.assert_allclose(part.tolist(), attention(t[None], t[None], t[None], need_weights=False)[0][0].tolist(), atol=1e-12)
    out.values().sum().backward()
    assert ours.grad.is_nested and all(p.grad is not None for p in attention.parameters())


def test_a_training_step_by_the_functions_of_autograd():
    ours = both()[1]
    (grad,) = trt.autograd.grad((ours**2).sum(), ours)
    assert grad.is_nested and trt.allclose(grad, ours.detach() * 2)
    seen = []
    ours.register_hook(lambda g: seen.append(g.is_nested))
    trt.autograd.backward((ours * 3).sum())
    assert seen == [True] and trt.equal(ours.grad, trt.full_like(ours.detach(), 3))
    ours.grad = None
    assert ours.grad is None
    assert trt.autograd.gradcheck(
        lambda v: trt.nested.nested_tensor_from_jagged(v, trt.tensor([0, 2, 5])).softmax(1).values(),
        (trt.randn(5, 2, dtype=trt.float64, requires_grad=True),),
    )


def test_views_select_and_join():
    theirs, ours = both(requires_grad=False)
    for text in (
        "x.transpose(1, 2)", "x.permute(0, 2, 1)", "x.unsqueeze(1)", "x.unsqueeze(-1)", "x[1]", "x[-1]", "x.select(2, 1)", "x.split(2, -1)[1]", "x.chunk(3, -1)[2]",
        "x.unflatten(-1, (2, 3))", "x.unflatten(-1, (2, 3)).flatten(2, 3)", "m.cat([x, x], 2)", "m.stack([x, x], 2)", "x.view(3, -1, 2, 3)", "x.chunk(2)[0]", "x.max(2)[1]",
        "x.to(m.float32)", "x.clone()", "x.detach()", "m.zeros_like(x)", "x.expand(3, x.size(1), 6)", "x.mean((0, 1))", "x > 0", "-x", "2 - x", "2 ** x", "x @ m.ones(6, 2, dtype=m.float64)",
    ):  # fmt: skip
        assert_same(eval(text, {"x": ours, "m": trt}), eval(text, {"x": theirs, "m": torch}))


def test_copies_and_files():
    ours = both()[1].transpose(1, 2).detach().requires_grad_()
    buffer = io.BytesIO()
    trt.save(ours, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), trt.load(buffer, weights_only=False)):
        assert other.requires_grad and other.is_leaf and other._ragged_idx == 2 and trt.equal(other, ours)


def test_printing():
    ours = both()[1]
    assert repr(ours) == f"NestedTensor(size=(3, {ours.size(1)}, 6), offsets=tensor([0, 3, 4, 8]), requires_grad=True, contiguous=True)"


def test_refusals():
    ours, other = both()[1], both()[1]
    x = trt.ones
    for error, call in (
        (RuntimeError, lambda: ours + other),
        (RuntimeError, lambda: ours + x(4, 6)),
        (RuntimeError, lambda: ours.sum(0)),
        (IndexError, lambda: ours.sum(3)),
        (RuntimeError, lambda: ours.transpose(0, 1)),
        (RuntimeError, lambda: ours.transpose(1, 2).matmul(x(3, 2))),
        (RuntimeError, lambda: trt.nn.functional.linear(ours.transpose(1, 2), x(2, 2))),
        (RuntimeError, lambda: ours.view(6, -1)),
        (IndexError, lambda: ours[3]),
        (RuntimeError, lambda: trt.nested.nested_tensor([x(2, 3), x(4, 5)], layout=trt.jagged)),
        (RuntimeError, lambda: trt.nested.nested_tensor([x(2), x(2, 3)], layout=trt.jagged)),
        (RuntimeError, lambda: trt.nested.nested_tensor([], layout=trt.jagged)),
        (RuntimeError, lambda: trt.nested.nested_tensor_from_jagged(x(3, 2), trt.tensor([0, 5]))),
        (RuntimeError, lambda: trt.nested.nested_tensor_from_jagged(x(3, 2), trt.tensor([0, 2, 1]))),
        (RuntimeError, lambda: trt.nested.nested_tensor_from_jagged(x(3, 2))),
        (RuntimeError, lambda: trt.nested.narrow(x(2, 3), 1, 2, 2, layout=trt.jagged)),
        (NotImplementedError, lambda: trt.nn.functional.conv1d(ours, x(2, 6, 3))),
        (NotImplementedError, lambda: trt.linalg.svd(ours)),
    ):  # fmt: skip
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("name", ["coalesce", "is_coalesced", "indices", "_indices", "_values", "crow_indices", "ccol_indices", "col_indices", "row_indices", "_nnz"])
def test_what_sparse_tensors_alone_have_is_refused(name):
    x = trt.nested.nested_tensor([trt.ones(2, 3), trt.ones(1, 3)], layout=trt.jagged)
    with pytest.raises((RuntimeError, NotImplementedError)):
        getattr(_namespace, name)(x)


def test_views_need_sizes():
    for call in (lambda x: x.reshape(), lambda x: x.expand()):
        found = []
        for library in (trt, torch):
            with pytest.raises(TypeError) as caught:
                call(library.nested.nested_tensor([library.ones(2), library.ones(3)], layout=library.jagged))
            found.append(str(caught.value))
        assert found[0] == found[1]


@pytest.mark.parametrize("layout", [trt.jagged, trt.strided])
def test_checkpointed_blocks(layout):
    linear = trt.nn.Linear(3, 3)
    parts = [trt.randn(2, 3), trt.randn(4, 3)]

    def block(t, scale):
        return linear(t).sin() * scale["by"]

    found = []
    for run in (block, lambda t, scale: trt.utils.checkpoint.checkpoint(block, t, scale, use_reentrant=False)):
        linear.zero_grad()
        x = trt.nested.nested_tensor(parts, layout=layout, requires_grad=True)
        y = run(run(x * 2, {"by": 3.0}), {"by": trt.ones(3)})
        assert type(y) is type(x)
        y.to_padded_tensor(0.0).square().sum().backward()
        found.append([linear.weight.grad, *x.grad.unbind()])
    for a, b in zip(*found, strict=True):
        assert trt.equal(a, b)


def test_a_checkpointed_masked_tensor():
    x = trt.masked.masked_tensor(trt.ones(2, 3), trt.eye(2, 3) > 0, requires_grad=True)
    y = trt.utils.checkpoint.checkpoint(lambda t: (t * 2).sin(), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.get_mask().tolist() == x.get_mask().tolist()


def test_gather_takes_its_index_by_position():
    x = trt.nested.nested_tensor([trt.randn(2, 4), trt.randn(3, 4)], layout=trt.jagged, requires_grad=True)
    index = trt.nested.nested_tensor_from_jagged(trt.tensor([[3], [0], [1], [2], [0]]), x.offsets())
    found = x.gather(-1, index)
    assert trt.equal(found.values(), x.values().gather(-1, index.values()))
    assert trt.equal(trt.gather(x, -1, index=index).values(), found.values())
    found.sum().backward()
    assert trt.equal(x.grad.values(), trt.zeros(5, 4).scatter(1, index.values(), 1.0))
    rows = trt.nested.nested_tensor([trt.tensor([[1, 1, 1, 1]]), trt.tensor([[2, 0, 2, 1]])], layout=trt.jagged)
    for part, whole, places in zip(x.gather(1, rows).unbind(), x.unbind(), rows.unbind(), strict=True):
        assert trt.equal(part, whole.gather(0, places))
    other = trt.nested.nested_tensor([trt.tensor([[3]] * 3), trt.tensor([[0]] * 2)], layout=trt.jagged)
    with pytest.raises(RuntimeError, match="gather"):
        x.gather(-1, other)
    with pytest.raises(RuntimeError):
        x.gather(-1, trt.zeros(2, 3, 1, dtype=trt.int64))
