"""Sparse tensors of both packages from the same parts, and comparisons of what they make of them."""

from __future__ import annotations

import torch

import tensorrt_lite as trt

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
ROWS = ("sparse_csr", "sparse_bsr")


def name_of(layout):
    return str(layout).rpartition(".")[2]


def ours(x, grad=False):
    """A tensor of PyTorch, or what contains some, as ours."""
    if isinstance(x, torch.Tensor):
        name, t = name_of(x.layout), x.detach()
        if name == "sparse_coo":
            made = trt.sparse_coo_tensor(ours(t._indices()), ours(t._values()), tuple(t.shape), is_coalesced=t.is_coalesced())
        elif name in LAYOUTS:
            first, second = (t.crow_indices(), t.col_indices()) if name in ROWS else (t.ccol_indices(), t.row_indices())
            made = trt.sparse_compressed_tensor(ours(first), ours(second), ours(t.values()), tuple(t.shape), layout=getattr(trt, name))
        elif t.dtype == torch.bfloat16:
            made = trt.from_numpy(t.float().numpy().copy()).bfloat16()
        else:
            made = trt.from_numpy(t.resolve_conj().contiguous().numpy().copy())
        return made.requires_grad_(grad and x.requires_grad)
    if isinstance(x, (list, tuple)):
        return type(x)(ours(y, grad) for y in x)
    if isinstance(x, dict):
        return {k: ours(v, grad) for k, v in x.items()}
    if isinstance(x, torch.dtype):
        return getattr(trt, name_of(x))
    if isinstance(x, torch.layout):
        return getattr(trt, name_of(x))
    if isinstance(x, torch.device):
        return trt.device(str(x))
    return x


def dense_of(x):
    """The elements of a tensor of either package as one of PyTorch, contiguous."""
    x = x.detach()
    x = x.to_dense() if name_of(x.layout) != "strided" else x
    if isinstance(x, torch.Tensor):
        return x.resolve_conj().contiguous()
    return torch.from_numpy(x.float().numpy() if x.dtype == trt.bfloat16 else x.contiguous().numpy())


def check(mine, theirs, exact_layout=True, pattern=True, **tolerances):
    """AssertionError unless both have the same layout, dtype, shape and elements, and, where asked, store the same number of them."""
    if isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            check(a, b, exact_layout, pattern, **tolerances)
        return
    if not isinstance(theirs, torch.Tensor):
        assert mine == theirs, (mine, theirs)
        return
    if exact_layout:
        assert name_of(mine.layout) == name_of(theirs.layout), (mine.layout, theirs.layout)
    assert name_of(mine.dtype) == name_of(theirs.dtype), (mine.dtype, theirs.dtype)
    assert tuple(mine.shape) == tuple(theirs.shape), (mine.shape, theirs.shape)
    if exact_layout and pattern and name_of(theirs.layout) != "strided":
        assert mine._nnz() == theirs._nnz(), (mine._nnz(), theirs._nnz())
        if theirs.layout == torch.sparse_coo:
            assert (mine.sparse_dim(), mine.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())
    a, b = dense_of(mine), dense_of(theirs)
    torch.testing.assert_close(a, b.to(a.dtype), equal_nan=True, **tolerances)
