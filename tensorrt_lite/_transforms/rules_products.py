"""Rules of matrix products and of linear algebra on matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._transforms.batching import Call, Plain, by_elements, flattened, loop, names_of, padded, rule

_nn = LazyModule("tensorrt_lite.nn")

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor


def _product(call: Call, a: str, b: str) -> Tensor:
    """The matrix product of two matrices of which one at least is batched."""
    if not call.batched(b):
        left = call.front(a)
        rows = flattened(left, 0, 2)
        return trt.mm(rows, call[b]).view(call.size, left.shape[1], call[b].shape[1])
    return trt.bmm(call.front(a), call.front(b))


def _scaled_sum(call: Call, product: Tensor, rank: int) -> Tensor:
    """beta * self + alpha * product, where a beta of zero ignores self."""
    alpha, beta = call["alpha"], call["beta"]
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    i = call.position("self")
    other = padded(call.front("self"), rank) if call.dims[i] is not None else call.values[i]
    return product + (other if beta == 1 else other * beta)


@rule("mm")
def _mm(call: Call) -> Tensor:
    return _product(call, "self", "mat2")


@rule("addmm")
def _addmm(call: Call) -> Tensor:
    return _scaled_sum(call, _product(call, "mat1", "mat2"), 2)


@rule("_addmm_activation")
def _addmm_activation(call: Call) -> Tensor:
    total = _scaled_sum(call, _product(call, "mat1", "mat2"), 2)
    return _nn.functional.gelu(total, approximate="tanh") if call["use_gelu"] else total.relu()


@rule("mv")
def _mv(call: Call) -> Tensor:
    return _matrix_vector(call, "self", "vec")


@rule("addmv")
def _addmv(call: Call) -> Tensor:
    return _scaled_sum(call, _matrix_vector(call, "mat", "vec"), 1)


def _matrix_vector(call: Call, matrix: str, vector: str) -> Tensor:
    if not call.batched(matrix):
        return trt.mm(call.front(vector), call[matrix].t())
    if not call.batched(vector):
        return trt.matmul(call.front(matrix), call[vector])
    return trt.bmm(call.front(matrix), call.front(vector).unsqueeze(2)).squeeze(2)


@rule("dot")
def _dot(call: Call) -> Tensor:
    return trt.bmm(call.front("self").unsqueeze(1), call.front("tensor").unsqueeze(2)).view(-1)


@rule("vdot")
def _vdot(call: Call) -> Tensor:
    return trt.bmm(call.front("self").conj().unsqueeze(1), call.front("other").unsqueeze(2)).view(-1)


def _batched_product(call: Call, a: str, b: str) -> Tensor:
    left, right = call.front(a), call.front(b)
    if left.dim() != 4 or right.dim() != 4:
        raise RuntimeError(f"{call.name}: batch1 and batch2 must be 3D tensors")
    if left.shape[1] != right.shape[1] or left.shape[3] != right.shape[2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{left.shape[1]}, {left.shape[3]}] but got: [{right.shape[1]}, {right.shape[2]}]."
        )
    return trt.bmm(flattened(left, 0, 2), flattened(right, 0, 2)).view(call.size, left.shape[1], left.shape[2], right.shape[3])


@rule("bmm")
def _bmm(call: Call) -> Tensor:
    return _batched_product(call, "self", "mat2")


@rule("baddbmm")
def _baddbmm(call: Call) -> Tensor:
    return _scaled_sum(call, _batched_product(call, "batch1", "batch2"), 3)


@rule("linear")
def _linear(call: Call) -> Tensor:
    if not call.batched("weight") and not call.batched("bias"):
        return call.run(input=call.front("input"))
    x, w, rank = call.front("input"), call["weight"], call.rank("input")
    if call.batched("weight"):
        w = call.front("weight")
        if w.dim() == 2:
            result = (x * padded(w, rank)).sum(-1)
        else:
            rows = flattened(x, 1, x.dim() - 2)
            result = trt.bmm(rows, w.transpose(1, 2)).view(*x.shape[:-1], w.shape[1])
    else:
        result = _nn.functional.linear(x, w)
    bias = call.front("bias")
    if bias is None:
        return result
    return result + (padded(bias, rank) if bias.dim() > 1 else bias.reshape(-1, *[1] * (result.dim() - 1)))


@rule("_bilinear")
def _bilinear(call: Call) -> Tensor:
    a, b, w = call.front("input1"), call.front("input2"), call.front("weight")
    flat_a, flat_b = flattened(a, 1, a.dim() - 2), flattened(b, 1, b.dim() - 2)
    outer = flat_a.unsqueeze(3) * flat_b.unsqueeze(2)
    result = trt.bmm(flattened(outer, 2, 2), flattened(w, 2, 2).transpose(1, 2))
    return result.view(*a.shape[:-1], w.shape[1])


@rule("_int_mm")
def _int_mm(call: Call) -> Tensor:
    return trt.bmm(call.front("self").to(trt.int32), call.front("mat2").to(trt.int32))


# ---- linear algebra --------------------------------------------------------------------------------------------------


def by_matrices(*ranks: tuple[str, int]) -> Callable[[Call], Any]:
    """The rule of an operator on matrices and vectors, which takes any dimensions before them. ranks: tensors and how many of their last dimensions count."""

    def run(call: Call) -> Any:
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

    return run


def _without_absent(call: Call, result: Any) -> Any:
    """Results in which what was not asked for, an empty vector, is the same for all of the batch."""
    if isinstance(result, tuple):
        return tuple(Plain(x) if x.dim() == 1 and x.shape[0] == 0 and call.size else x for x in result)
    return result


@rule("_linalg_solve_ex", "linalg_solve", "linalg_solve_ex")
def _solve(call: Call) -> Any:
    a, b = call.front("A"), call.front("B")
    rank_a, rank_b = call.rank("A"), call.rank("B")
    vector = rank_b == 1 or (rank_b == rank_a - 1 and b.shape[1:] == a.shape[1:-1])
    if vector:
        b = b.unsqueeze(-1)
        rank_b += 1
    rank = max(rank_a, rank_b)
    result = call.run(A=padded(a, rank), B=padded(b, rank))
    if not vector:
        return result
    if isinstance(result, tuple):
        return (result[0].squeeze(-1), *result[1:])
    return result.squeeze(-1)


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
