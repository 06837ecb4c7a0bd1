"""Sparse gradients: of embeddings, and the optimizers that take them, beside PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tensorrt_lite as trt  # noqa: E402

from sparse_compare import check, ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def weights(rows=20, width=4):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(1))


def grad_of(lib, make, *inputs):
    e = make(lib)
    with lib.no_grad():
        e.weight.copy_(weights() if lib is torch else ours(weights()))
    (e(*(x if lib is torch else ours(x) for x in inputs)) ** 2).sum().backward()
    return e.weight.grad


def test_embedding_gradients_are_sparse():
    i = torch.tensor([[1, 3, 3], [0, 7, 1]])
    for options in ({}, {"padding_idx": 3}, {"max_norm": 1.0}):
        theirs, mine = (grad_of(lib, lambda lib: lib.nn.Embedding(20, 4, sparse=True, **options), i) for lib in (torch, trt))
        check(mine, theirs)
        assert mine._indices().tolist() == theirs._indices().tolist() and not mine.is_coalesced()
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        grad_of(trt, lambda lib: lib.nn.Embedding(20, 4, sparse=True, scale_grad_by_freq=True), i)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_gradients_are_sparse(mode):
    i, offsets = torch.tensor([1, 3, 3, 0, 7, 1, 2]), torch.tensor([0, 2, 5])
    theirs, mine = (grad_of(lib, lambda lib: lib.nn.EmbeddingBag(20, 4, mode=mode, sparse=True), i, offsets) for lib in (torch, trt))
    check(mine, theirs)


RULES = {
    "SparseAdam": {}, "SparseAdam_maximize": {"maximize": True, "betas": (0.8, 0.95)}, "SGD": {}, "SGD_momentum": {"momentum": 0.9}, "SGD_nesterov": {"momentum": 0.9, "nesterov": True},
    "SGD_maximize": {"maximize": True}, "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.2},
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_fifty_steps(rule):
    g = torch.Generator().manual_seed(0)
    indices = torch.randint(0, 20, (50, 7), generator=g)
    targets = torch.randn(50, 7, 4, generator=g, dtype=torch.float64)
    results = []
    for lib in (torch, trt):
        e = lib.nn.Embedding(20, 4, sparse=True, dtype=lib.float64)
        with lib.no_grad():
            e.weight.copy_(weights().double() if lib is torch else ours(weights().double()))
        optimizer = getattr(lib.optim, rule.partition("_")[0])(e.parameters(), lr=0.01, **RULES[rule])
        for i, t in zip(indices, targets):
            optimizer.zero_grad()
            ((e(i if lib is torch else ours(i)) - (t if lib is torch else ours(t))) ** 2).sum().backward()
            assert e.weight.grad.is_sparse
            optimizer.step()
        results.append(e.weight)
    check(results[1], results[0], rtol=1e-6, atol=1e-6)


def test_optimizers_refuse_what_pytorchs_do():
    e = trt.nn.Embedding(5, 2, sparse=True)
    e(trt.tensor([1])).sum().backward()
    for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
        with pytest.raises(RuntimeError, match="sparse"):
            getattr(trt.optim, name)(e.parameters(), lr=0.1).step()
    with pytest.raises(RuntimeError, match="weight_decay"):
        trt.optim.Adagrad(e.parameters(), weight_decay=0.1).step()
    dense = trt.ones(2, requires_grad=True)
    dense.sum().backward()
    with pytest.raises(RuntimeError, match="dense gradients"):
        trt.optim.SparseAdam([dense]).step()
    with pytest.raises(ValueError, match="Sparse params"):
        trt.optim.SparseAdam([trt.ones(2, 2).to_sparse().requires_grad_()])
    with pytest.raises(ValueError, match="learning rate"):
        trt.optim.SparseAdam([dense], lr=-1.0)


def test_a_plain_leaf_takes_a_sparse_gradient():
    weight = trt.ones(2, 2, requires_grad=True)
    weight.grad = trt.eye(2).to_sparse()
    assert weight.grad.layout == trt.sparse_coo and weight.grad.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
