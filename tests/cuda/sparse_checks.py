"""Sparse tensors on CUDA beside the CPU's; run by test_families.py through device_checks.py. What is compared is made sparse on each device from the same
strided tensor, so that conversions and gradients are part of each check."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as torch
from device_checks import agree, raises

EMPTY = ((0, 3), (3, 0), (0, 0), (4, 5))
LAYOUTS = {"csr": (), "csc": (), "coo": (), "bsr": ((2, 3),), "bsc": ((2, 3),)}


def some(*size: int, dtype: Any = torch.float32, of: int = 3, grad: bool = False) -> torch.Tensor:
    """A strided tensor of which one element of `of` is not zero."""
    x = torch.randn(*size) if not dtype.is_complex else torch.randn(*size, dtype=dtype)
    x = torch.where(torch.randint(0, of, size) == 0, x, torch.zeros((), dtype=x.dtype))
    x = (x * 4).round().to(dtype) if not (dtype.is_floating_point or dtype.is_complex) else x.to(dtype)
    return x.requires_grad_() if grad else x


def in_layout(x: torch.Tensor, layout: str) -> torch.Tensor:
    return getattr(x, f"to_sparse_{layout}")(*LAYOUTS[layout])


def strided(x: Any) -> Any:
    """The results of a call as strided tensors."""
    return tuple(strided(y) for y in x) if isinstance(x, (tuple, list)) else x if x.layout is torch.strided else x.to_dense()


def check_products(order: str) -> None:
    """Compressed rows by dense matrices of one, few and many columns, rows short and long, all types."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64):
        grad = dtype in (torch.float32, torch.float64, torch.complex128)
        for m, k, n, of in ((5, 7, 1, 2), (6, 70, 1, 1), (9, 40, 3, 1), (4, 6, 33, 2), (3, 5, 150, 2)):
            dense = torch.randn(k, n, dtype=dtype) if dtype.is_complex else torch.randn(k, n).to(dtype)
            agree(lambda a, b: a.to_sparse_csr() @ b, some(m, k, dtype=dtype, of=of, grad=grad), dense.requires_grad_(grad))


def check_layouts() -> None:
    """Every layout, on both sides, with mv, addmm, bmm, linear and second operands that are sparse."""
    for layout in LAYOUTS:
        a, b = some(6, 12, grad=True), torch.randn(12, 4, requires_grad=True)
        agree(lambda a, b, k=layout: torch.mm(in_layout(a, k), b), a, b)
        agree(lambda a, b, k=layout: torch.mm(a, in_layout(b, k)), torch.randn(4, 6, requires_grad=True), a)
        agree(lambda a, x, k=layout: torch.mv(in_layout(a, k), x), a, torch.randn(12, requires_grad=True))
        agree(lambda c, a, b, k=layout: torch.addmm(c, in_layout(a, k), b, beta=0.5, alpha=2), torch.randn(6, 4, requires_grad=True), a, b)
        agree(lambda a, x, k=layout: torch.nn.functional.linear(x, in_layout(a, k)), a, torch.randn(2, 12, requires_grad=True))
        agree(lambda a, b, k=layout: strided(in_layout(a, k) @ in_layout(b, k)), a, some(12, 6, grad=True))
        agree(lambda a, k=layout: strided(in_layout(a, k).t()), a)
        agree(lambda a, b, k=layout: strided(in_layout(a, k) * b), a, torch.randn(6, 12, requires_grad=True))
        agree(lambda a, b, k=layout: strided(in_layout(a, k) + in_layout(b, k)), a, some(6, 12, grad=True))
        agree(lambda a, k=layout: in_layout(a, k).sum(), a)
        agree(lambda a, k=layout: in_layout(a, k).values(), a)
        for other in LAYOUTS:
            agree(lambda a, k=layout, o=other: strided(in_layout(in_layout(a, k), o)), a)
    agree(lambda a, b: torch.bmm(a.to_sparse(), b), some(3, 4, 5, grad=True), torch.randn(3, 5, 2, requires_grad=True))
    agree(lambda c, a, b: strided(torch.sspaddmm(c.to_sparse(), a.to_sparse(), b)), some(6, 4), some(6, 9), torch.randn(9, 4))
    agree(lambda a, b: strided((torch.smm(a.to_sparse(), b), torch.hspmm(a.to_sparse(), b))), some(6, 9), torch.randn(9, 4))


def check_index_types() -> None:
    """int32 indices as int64 ones; entries of equal places add up."""
    crow, col, values, b = torch.tensor([0, 2, 2, 5]), torch.tensor([1, 3, 0, 1, 1]), torch.randn(5), torch.randn(4, 3)
    for kind in (torch.int32, torch.int64):
        agree(lambda r, c, v, b: torch.sparse_csr_tensor(r, c, v, (3, 4)) @ b, crow.to(kind), col.to(kind), values, b)


def check_empty() -> None:
    """No rows, no columns, no entries."""
    for m, k in EMPTY:
        for n in (0, 1, 3):
            agree(lambda a, b: a.to_sparse_csr() @ b, torch.zeros(m, k, requires_grad=True), torch.randn(k, n, requires_grad=True))
            agree(lambda a, b: strided(a.to_sparse() @ b.to_sparse()), torch.zeros(m, k), torch.zeros(k, n))
        agree(lambda a: strided(a.to_sparse().coalesce()), torch.zeros(m, k))
        agree(lambda a: a.to_sparse().sum(), torch.zeros(m, k))


def check_reduced(order: str) -> None:
    """sparse.mm with each reduction, its gradients, rows without entries; NaN wins."""
    a, b = some(7, 9, of=4, grad=True), torch.randn(9, 37)
    b[3, 5] = float("nan")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for reduce in ("sum", "mean", "amax", "amin"):
            agree(lambda a, b, r=reduce: torch.sparse.mm(a.to_sparse_csr(), b, r), a.detach().to(dtype).requires_grad_(), b.to(dtype).requires_grad_())


def check_sampled(order: str) -> None:
    """sampled_addmm and the gradient of products by their sparse factor: dense lines of several lengths, batches."""
    for dtype in (torch.float32, torch.float64, torch.complex128):
        for n in (1, 3, 40):
            left, right = (torch.randn(6, n, dtype=dtype, requires_grad=True), torch.randn(n, 9, dtype=dtype, requires_grad=True))
            agree(lambda t, x, y: strided(torch.sparse.sampled_addmm(t.to_sparse_csr(), x, y, beta=0.5, alpha=2)), some(6, 9, dtype=dtype, grad=True), left, right)
    mask = torch.eye(4).expand(2, 4, 4).contiguous()
    agree(lambda t, x, y: strided(torch.sparse.sampled_addmm(t.to_sparse_csr(), x, y)), mask, torch.randn(2, 4, 3), torch.randn(2, 3, 4))


def check_coordinates(order: str) -> None:
    """coalesce with entries of equal places, hybrid tensors; sums, softmax, index_select, sparse_mask, cat."""
    at = torch.tensor([[0, 2, 0, 1, 2, 0], [1, 0, 1, 2, 0, 1]])
    for values in (torch.randn(6, requires_grad=True), torch.randn(6, 5, dtype=torch.float64, requires_grad=True), torch.randn(6).half()):
        agree(lambda v, i: torch.sparse_coo_tensor(i, v, (3, 4, *v.shape[1:])).coalesce().values(), values, at)
        agree(lambda v, i: torch.sparse_coo_tensor(i, v, (3, 4, *v.shape[1:])).to_dense(), values, at)
    a = some(5, 6, dtype=torch.float64, grad=True)
    for dim in (0, 1):
        agree(lambda a, d=dim: strided(torch.sparse.sum(a.to_sparse(), d)), a)
        agree(lambda a, d=dim: strided(torch.sparse.softmax(a.to_sparse(), d)), a)
        agree(lambda a, d=dim: torch.sparse.log_softmax(a.to_sparse(), d).values(), a)
        agree(lambda a, i, d=dim: strided(a.to_sparse().index_select(d, i)), a, torch.tensor([3, 0, 3]))
        agree(lambda a, b, d=dim: strided(torch.cat([a.to_sparse(), b.to_sparse()], d)), a, some(5, 6, dtype=torch.float64, grad=True))
    for layout in LAYOUTS:
        if layout[0] == "b":
            agree(lambda x, m: strided(x.sparse_mask(in_layout(m, "bsr"))), torch.randn(6, 6, requires_grad=True), some(6, 6))
        else:
            agree(lambda x, m, k=layout: strided(x.sparse_mask(in_layout(m, k))), torch.randn(5, 6, requires_grad=True), some(5, 6))
    agree(lambda a: strided((a.to_sparse()[1:4], a.to_sparse().select(0, 2), a.to_sparse().t())), a)


def check_training() -> None:
    """Gradients of embeddings are sparse, and what SparseAdam and SGD make of them is the CPU's."""
    for name in ("SparseAdam", "SGD", "Adagrad"):
        found = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(1)
            e = torch.nn.Embedding(12, 3, sparse=True)
            bag = torch.nn.EmbeddingBag(12, 3, sparse=True, mode="sum")
            e, bag = e.to(device), bag.to(device)
            optimizer = getattr(torch.optim, name)([*e.parameters(), *bag.parameters()], lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                i = torch.tensor([[1, 1, 7], [2, step, 7]]).to(device)
                (e(i).square().sum() + bag(i).square().sum()).backward()
                assert e.weight.grad.layout is torch.sparse_coo and e.weight.grad.device.type == device
                optimizer.step()
            found.append([e.weight.detach().cpu(), bag.weight.detach().cpu()])
        assert all(torch.allclose(x, y, atol=1e-6) for x, y in zip(*found)), name


def check_same_bits() -> None:
    """Two runs of the same sums have the same bits."""
    a, b = some(40, 300, of=2).cuda(), torch.randn(300, 5).cuda()
    values, at = torch.randn(500).cuda(), torch.randint(0, 7, (2, 500)).cuda()
    first, second = ((a.to_sparse_csr() @ b, torch.sparse_coo_tensor(at, values, (7, 7)).coalesce().values()) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, second))


def check_wrong_places() -> None:
    """Indices that lead outside are an error, at the latest where the host next waits."""
    b = torch.randn(4, 3, device="cuda")
    for crow, col in (([0, 1, 2], [0, 9]), ([0, 3, 2], [0, 1]), ([0, 1, 2], [-1, 1]), ([1, 1, 2], [0, 1])):
        for n in (1, 3):
            t = torch.sparse_csr_tensor(torch.tensor(crow), torch.tensor(col), torch.ones(2), (2, 4), check_invariants=False).cuda()
            raises(IndexError, "out of", lambda t=t, n=n: (t @ b[:, :n].contiguous()).cpu())
    raises(RuntimeError, "same device", lambda: torch.eye(4).to_sparse_csr() @ b)


def check_sparse_products(order: str) -> None:
    """Two sparse matrices of all types: long and short rows, columns that meet often and never, entries that stand twice, gradients by both."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64):
        grad = dtype in (torch.float64, torch.complex128)
        a, b = some(5, 60, dtype=dtype, of=2, grad=grad), some(60, 40, dtype=dtype, of=2, grad=grad)
        agree(lambda a, b: strided(a.to_sparse_csr() @ b.to_sparse_csr()), a, b)
    a = torch.eye(6)
    agree(lambda a, b: (lambda c: (c.crow_indices(), c.col_indices(), c.values()))(a.to_sparse_csr() @ b.to_sparse_csr()), a, some(6, 70, of=9))
    agree(lambda a, b: (lambda c: (c.indices(), c.values()))(a.to_sparse() @ b.to_sparse()), some(6, 6), some(6, 5))
    crow, col, values = torch.tensor([0, 3, 5]), torch.tensor([1, 1, 1, 0, 1]), torch.randn(5, dtype=torch.float64, requires_grad=True)
    for left in (torch.ones(3, 2), torch.zeros(3, 2)):
        agree(lambda x, r, c, v: strided(x.double().to_sparse_csr() @ torch.sparse_csr_tensor(r, c, v, (2, 3))), left, crow, col, values)
