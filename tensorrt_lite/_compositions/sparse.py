"""Sparse tensors in the flat namespace: each function hands over to tensorrt_lite/_sparse, which is imported with the first sparse tensor."""

from __future__ import annotations

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.ops.support import deliver_result, int_argument, tensor_argument
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_sparse = _LazyModule("tensorrt_lite._sparse")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor


_ops = namespace()


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """A sparse tensor in coordinates."""
    return _sparse.construct.sparse_coo_tensor(indices, values, size, **options)


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """A sparse tensor of a compressed layout."""
    return _sparse.construct.sparse_compressed_tensor(compressed_indices, plain_indices, values, size, **options)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """Compressed rows."""
    return _sparse.construct.sparse_compressed_tensor(crow_indices, col_indices, values, size, named="csr", **options)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """Compressed columns."""
    return _sparse.construct.sparse_compressed_tensor(ccol_indices, row_indices, values, size, named="csc", **options)


def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """Compressed rows of blocks."""
    return _sparse.construct.sparse_compressed_tensor(crow_indices, col_indices, values, size, named="bsr", **options)


def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any = None, size: Any = None, **options: Any) -> Tensor:
    """Compressed columns of blocks."""
    return _sparse.construct.sparse_compressed_tensor(ccol_indices, row_indices, values, size, named="bsc", **options)


def coalesce(self: Any) -> Tensor:
    return _sparse.parts.coalesce(self)


def is_coalesced(self: Any) -> bool:
    return _sparse.parts.is_coalesced(self)


def _coalesced_(self: Any, coalesced: bool) -> Tensor:
    return _sparse.parts.declare_coalesced(self, coalesced)


def indices(self: Any) -> Tensor:
    return _sparse.parts.indices(self)


def values(self: Any) -> Tensor:
    return _sparse.parts.values(self)


def _indices(self: Any) -> Tensor:
    return _sparse.parts.raw_indices(self)


def _values(self: Any) -> Tensor:
    return _sparse.parts.raw_values(self)


def crow_indices(self: Any) -> Tensor:
    return _sparse.parts.compressed_indices(self, "crow_indices")


def col_indices(self: Any) -> Tensor:
    return _sparse.parts.compressed_indices(self, "col_indices")


def ccol_indices(self: Any) -> Tensor:
    return _sparse.parts.compressed_indices(self, "ccol_indices")


def row_indices(self: Any) -> Tensor:
    return _sparse.parts.compressed_indices(self, "row_indices")


def _nnz(self: Any) -> int:
    return _sparse.parts.nnz(self)


def sparse_dim(self: Any) -> int:
    return _sparse.parts.dims(self)[0]


def dense_dim(self: Any) -> int:
    return _sparse.parts.dims(self)[1]


def _dimI(self: Any) -> int:  # noqa: N802 (PyTorch's name)
    return _sparse.parts.dims(self)[0]


def _dimV(self: Any) -> int:  # noqa: N802 (PyTorch's name)
    return _sparse.parts.dims(self)[1]


def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    return _sparse.convert.to_dense(self, dtype, masked_grad)


def to_sparse(self: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    return _sparse.convert.to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_coo(self: Any) -> Tensor:
    return _sparse.convert.to_sparse(self)


def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Tensor:
    return _sparse.convert.to_layout(self, "csr", None, dense_dim)


def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Tensor:
    return _sparse.convert.to_layout(self, "csc", None, dense_dim)


def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    return _sparse.convert.to_layout(self, "bsr", blocksize, dense_dim)


def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    return _sparse.convert.to_layout(self, "bsc", blocksize, dense_dim)


def sparse_mask(self: Any, mask: Any) -> Tensor:
    return _sparse.convert.sparse_mask(self, mask)


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    return _sparse.construct.resize(self, size, sparse_dim, dense_dim, False)


def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    return _sparse.construct.resize(self, size, sparse_dim, dense_dim, True)


def resize_as_sparse_(self: Any, the_template: Any) -> Tensor:
    return _sparse.construct.resize_as(self, the_template)


def smm(self: Any, mat2: Any) -> Tensor:
    return _sparse.matmul.smm(self, mat2)


def sspaddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _sparse.matmul.sspaddmm(self, mat1, mat2, beta, alpha)


def hspmm(mat1: Any, mat2: Any) -> Tensor:
    return _sparse.matmul.hspmm(mat1, mat2)


# ---- older names ----------------------------------------------------------------------------------------------------


def hsmm(mat1: Any, mat2: Any) -> Tensor:
    return hspmm(mat1, mat2)


def saddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


def spmm(self: Any, mat2: Any, *, out: Any = None) -> Tensor:
    return _ops.mm(self, mat2, out=out)


dsmm = spmm


def indices_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("indices_copy", _sparse.parts.indices(self).clone(), out)


def values_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("values_copy", _sparse.parts.values(self).clone(), out)


def crow_indices_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("crow_indices_copy", _sparse.parts.compressed_indices(self, "crow_indices").clone(), out)


def col_indices_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("col_indices_copy", _sparse.parts.compressed_indices(self, "col_indices").clone(), out)


def ccol_indices_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("ccol_indices_copy", _sparse.parts.compressed_indices(self, "ccol_indices").clone(), out)


def row_indices_copy(self: Any, *, out: Any = None) -> Tensor:
    return deliver_result("row_indices_copy", _sparse.parts.compressed_indices(self, "row_indices").clone(), out)


def _index_dtype(name: str, out_int32: Any, *indices: Any) -> Any:
    for x in indices:
        if x.dtype.is_floating_point or x.dtype.is_complex or str(x.dtype).endswith("bool"):
            raise NotImplementedError(f"{name}: not implemented for indices of {x.dtype}")
    return _dtype_by_name("int32" if out_int32 else "int64")


def _convert_indices_from_csr_to_coo(
    crow_indices: Any, col_indices: Any, *, out_int32: Any = False, transpose: Any = False, out: Any = None
) -> Tensor:
    """Compressed rows as coordinates, those of batches with the batches' first."""
    name = "_convert_indices_from_csr_to_coo"
    crow, col = tensor_argument(crow_indices, name, "crow_indices"), tensor_argument(col_indices, name, "col_indices")
    dtype = _index_dtype(name, out_int32, crow, col)
    if crow.dim() < 1 or col.dim() != crow.dim() or crow.shape[:-1] != col.shape[:-1] or not crow.size(-1):
        raise RuntimeError(f"{name}: crow_indices of shape {list(crow.shape)} and col_indices of shape {list(col.shape)} don't fit each other")
    lines = crow.reshape(-1, crow.size(-1)).to(_dtype_by_name("int64"))
    lengths = lines[:, 1:] - lines[:, :-1]
    falls = lengths.numel() and int(lengths.amin()) < 0
    if falls or bool(lines[:, 0].any()) or bool((lines[:, -1] != col.size(-1)).any()):
        raise RuntimeError(f"{name}: crow_indices must lead from 0 to the {col.size(-1)} columns without falling")
    rows = _ops.repeat_interleave(_ops.arange(lengths.size(1), device=crow.device).repeat(lines.size(0)), lengths.reshape(-1))
    columns = col.reshape(-1).to(rows.dtype)
    batches = _ops.ones(crow.shape[:-1], dtype=rows.dtype, device=crow.device).nonzero().t().repeat_interleave(col.size(-1), 1)
    pair = [columns, rows] if transpose else [rows, columns]
    return deliver_result(name, _ops.cat([batches, _ops.stack(pair)]).to(dtype), out)


def _convert_indices_from_coo_to_csr(self: Any, size: Any, *, out_int32: Any = False, out: Any = None) -> Tensor:
    """Row indices in ascending order as compressed ones."""
    name = "_convert_indices_from_coo_to_csr"
    rows, count = tensor_argument(self, name, "self"), int_argument(size, name, "size")
    dtype = _index_dtype(name, out_int32, rows)
    if rows.dim() != 1:
        raise RuntimeError(f"{name}: expected indices of one dimension, but got shape {list(rows.shape)}")
    if count < 0:
        raise RuntimeError(f"{name}: the number of rows must not be negative, but got {count}")
    ends = _ops.arange(count + 1, dtype=rows.dtype, device=rows.device)
    return deliver_result(name, _ops.searchsorted(rows.contiguous(), ends).to(dtype), out)


# methods that users see in programs of PyTorch and that are no part of its documented interface: without a row
EXPORTS = dict.fromkeys(("_coalesced_", "_dimI", "_dimV", "_indices", "_nnz", "_values"), "m")
