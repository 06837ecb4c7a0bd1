"""The layout of a leaf's gradient, and which results are views, beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

LEAVES = {
    "contiguous": lambda lib: lib.arange(6.0).view(2, 3),
    "transposed": lambda lib: lib.arange(6.0).view(3, 2).t(),
    "expanded": lambda lib: lib.arange(3.0).expand(2, 3),
    "of one element": lambda lib: lib.tensor(2.0).expand(2, 3),
    "overlapping": lambda lib: lib.arange(4.0).as_strided((2, 3), (1, 1)),
    "with gaps": lambda lib: lib.arange(12.0).as_strided((2, 3), (6, 2)),
}
LOSSES = {
    "exp": lambda lib, x: (x.exp() * 2).sum(),
    "a transposed factor": lambda lib, x: (x * lib.arange(6.0).view(3, 2).t()).sum(),
    "diagonal matrices": lambda lib, x: lib.diag_embed(x).mul(lib.arange(18.0).view(2, 3, 3)).sum(),
    "sum": lambda lib, x: x.sum(),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradients_of_leaves_of_any_layout(leaf: str, loss: str):
    """A leaf whose elements share memory or leave gaps has a contiguous gradient; two passes add up."""
    grads = []
    for lib in (trt, torch):
        x = LEAVES[leaf](lib).detach().requires_grad_()
        for _ in range(2):
            LOSSES[loss](lib, x).backward()
        grads.append(x.grad)
    ours, theirs = grads
    assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist(), rel=1e-6)

    assert ours.stride() == theirs.stride()


@pytest.mark.parametrize(
    "shapes",
    [((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((2, 2, 3, 4), (2, 2, 4, 3)), ((2, 1, 3, 4), (5, 4, 3))],
    ids=str,
)
def test_products_of_batches_are_no_views(shapes):
    """They can be written to and detached in place, with the gradients of what is no view."""
    found = []
    for lib in (trt, torch):
        a, b = (lib.arange(1.0, 1 + lib.Size(s).numel()).view(s).requires_grad_() for s in shapes)
        product = a @ b
        assert not product._is_view() and product._base is None
        product.mul_(2).add_(1)
        product.square().sum().backward()
        other = lib.matmul(a, b)
        assert other.detach_() is other and not other.requires_grad
        found.append([a.grad.tolist(), b.grad.tolist(), product.tolist()])
    assert found[0] == found[1]
