"""Rules of matrix products and of linear algebra on matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._declared import declarations
from tensorrt_lite._C.core import transform
from tensorrt_lite._transforms.batching import WRITERS, Call, Plain, by_elements, flattened, loop, names_of, padded, refuse_inplace, rule, to_front

_INPLACE = 2


_nn = LazyModule("tensorrt_lite.nn")
_rules_rows = LazyModule("tensorrt_lite._transforms.rules_rows")

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor


@rule("_addmm_activation")
def _addmm_activation(call: Call) -> Tensor:
    total = _rules_rows.by_pattern(_rules_rows.pattern_of(call.name, declarations.of("addmm").dims))(call)
    return _nn.functional.gelu(total, approximate="tanh") if call["use_gelu"] else total.relu()


@rule("_bilinear")
def _bilinear(call: Call) -> Tensor:
    a, b, w = call.front("input1"), call.front("input2"), call.front("weight")
    flat_a, flat_b = flattened(a, 1, a.dim() - 2), flattened(b, 1, b.dim() - 2)
    outer = flat_a.unsqueeze(3) * flat_b.unsqueeze(2)
    result = trt.bmm(flattened(outer, 2, 2), flattened(w, 2, 2).transpose(1, 2))
    return result.view(*a.shape[:-1], w.shape[1])


# ---- linear algebra --------------------------------------------------------------------------------------------------


def by_matrices(*ranks: tuple[str, int]) -> Callable[[Call], Any]:
    """The rule of an operator on matrices and vectors, which takes any dimensions before them. ranks: tensors and how many of their last dimensions count."""

    def run(call: Call) -> Any:
        if call.mode == _INPLACE and run in WRITERS:
            return _in_place(call)
        if any(call[name] is not None and call.rank(name) < rank for name, rank in ranks):
            return by_elements(call)  # the operator says what it makes of fewer dimensions; the batch's is none of them
        values = list(call.values)
        outer = max(call.rank(name) - rank for name, rank in ranks if call[name] is not None)
        for name, rank in ranks:
            i = call.position(name)
            if values[i] is not None:
                values[i] = padded(call.front(name), outer + rank)
        for name, computed in (("values_only", False), ("compute_v", True)):
            if call.name in ("_linalg_svd", "_linalg_eig", "_linalg_eigh") and name in names_of(call.name) and values[call.position(ranks[0][0])].requires_grad:
                values[call.position(name)] = computed  # the values' derivatives take the vectors
        return _without_absent(call, call.run(*values))

    def _in_place(call: Call) -> Any:
        """Elements are written to where they are: of operators without matrices, by the operator itself."""
        value, dim = transform.unwrap(call.target, call.level)
        if dim is None:
            refuse_inplace(call.name)
        rank = value.dim() - 1
        given = [padded(call.expanded(x, d), rank) if isinstance(x, trt.Tensor) else x for x, d in zip(call.values, call.dims)]
        given[0] = to_front(value, dim)
        return transform.call_row(call.place, given, given[0], _INPLACE)

    if all(rank == 0 for _, rank in ranks):
        WRITERS.add(run)
    return run


def _without_absent(call: Call, result: Any) -> Any:
    """Results in which what was not asked for, an empty vector, is the same for all of the batch."""
    if isinstance(result, tuple):
        return tuple(Plain(x) if x.dim() == 1 and x.shape[0] == 0 and call.size else x for x in result)
    return result


# ---- sparse matrices in compressed rows --------------------------------------------------------------------------------


def _along_the_diagonal(call: Call, columns: int) -> tuple[Tensor, Tensor]:
    """(crow, col) of a matrix that has the pattern once for each element of the batch, one below and beside the other."""
    crow, col = call["crow"], call["col"]
    shift = trt.arange(call.size, device=crow.device).unsqueeze(1)
    starts = flattened(crow[:-1] + shift * col.size(0), 0, 2)
    return trt.cat([starts, crow.new_full((1,), call.size * col.size(0))]), flattened(col + shift * columns, 0, 2)


@rule("_csr_mm")
def _csr_mm(call: Call) -> Tensor:
    if call.batched("crow") or call.batched("col"):
        return loop(call)
    dense = call.front("dense")  # (batch, columns, n)
    size, columns, n = dense.shape
    if not call.batched("values"):
        found = call.run(dense=flattened(dense.movedim(0, 1), 1, 2))
        return found.reshape(found.size(0), size, n).movedim(1, 0)
    crow, col = _along_the_diagonal(call, columns)
    found = call.run(crow, col, flattened(call.front("values"), 0, 2), flattened(dense, 0, 2))
    return found.reshape(size, call["crow"].size(0) - 1, n)


@rule("_csr_sampled")
def _csr_sampled(call: Call) -> Tensor:
    if call.batched("crow") or call.batched("col"):
        return loop(call)
    left, right = call.front("left"), call.front("right")
    found = call.run(*_along_the_diagonal(call, right.size(1)), flattened(left, 0, 2), flattened(right, 0, 2))
    return found.reshape(call.size, call["col"].size(0))
