"""Sparse tensors in Python: their class, constructors, conversions, and what operators do with them.

`parts` has the primitives that everything else is composed of, differentiable in both directions: the values of a sparse tensor as a strided tensor, and a sparse
tensor over given indices and values. `table` says which function stands for an operator; the others fill it. Compiled parts: cysrc/core/sparse.pyx,
cysrc/ops/sparse.
"""

from __future__ import annotations

from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.tensor import _register_sparse_type
from tensorrt_lite._sparse import batches, parts, table
from tensorrt_lite._sparse.tensor import SparseTensor

_register_sparse_type(SparseTensor)
_core.set_operators(table.run)

from tensorrt_lite._sparse import construct, convert, matmul, pointwise, reduction, shape  # noqa: E402

__all__ = ["SparseTensor", "batches", "construct", "convert", "matmul", "parts", "pointwise", "reduction", "shape", "table"]
