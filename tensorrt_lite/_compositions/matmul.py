"""Products composed of mm, bmm, mv, dot and mul: outer products, contractions of named dimensions, chains, powers. Gradients follow from the parts."""

from __future__ import annotations

import math
from functools import lru_cache

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dtype import _dtype_by_name, can_cast_types, promote_types
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.support import check_number_argument, deliver_result, int_argument, tensor_argument, tensor_list_argument, type_name, wrapped_dim
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_backends = _LazyModule("tensorrt_lite.backends")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_bool = _dtype_by_name("bool")
_float16, _bfloat16, _float32 = (_dtype_by_name(name) for name in ("float16", "bfloat16", "float32"))


def _conj(x: Any) -> Any:
    return x.conj() if x.is_complex() else x


def _count(shape: Sequence[int], dims: Iterable[int]) -> int:
    """The number of elements over some dimensions."""
    n = 1
    for d in dims:
        n *= shape[d]
    return n


def _is_integral(x: Any) -> bool:
    return not (x.is_floating_point() or x.is_complex())


# ---- outer products -------------------------------------------------------------------------------------------------


def _check_vectors(name: str, a: Any, b: Any) -> None:
    if a.dim() != 1 or b.dim() != 1:
        raise RuntimeError(f"{name}: Expected 1-D argument {'self' if a.dim() != 1 else 'vec2'}, but got {a.dim() if a.dim() != 1 else b.dim()}-D")


def outer(input: Any, vec2: Any, *, out: Any = None) -> Tensor:
    """input: (n,), vec2: (m,) -> (n, m), the products of all pairs."""
    _check_vectors("outer", tensor_argument(input, "outer", "input"), tensor_argument(vec2, "outer", "vec2"))
    column = _ops.unsqueeze(input, 1)
    return _ops.mul(column, vec2) if out is None else _ops.mul(column, vec2, out=out)


def ger(input: Any, vec2: Any, *, out: Any = None) -> Tensor:
    """outer under its BLAS name."""
    return outer(input, vec2, out=out)


def _addr_value(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    tensor_argument(vec1, "addr", "vec1")
    tensor_argument(vec2, "addr", "vec2")
    tensor_argument(input, "addr", "input")
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"addr: Expected 1-D argument {'vec1' if vec1.dim() != 1 else 'vec2'}, but got {vec1.dim() if vec1.dim() != 1 else vec2.dim()}-D")
    input.expand(vec1.shape[0], vec2.shape[0])  # refuses sizes that do not broadcast
    tensors = (input, vec1, vec2)
    for value, what in ((alpha, "alpha"), (beta, "beta")):
        if isinstance(value, (float, complex)) and all(_is_integral(x) for x in tensors):
            raise RuntimeError(f"For integral input tensors, argument {what} must not be a floating point number.")
        if isinstance(value, bool) and any(x.dtype is not _bool for x in tensors):
            raise RuntimeError(f"Boolean {what} only supported for Boolean results.")
    result = promote_types(promote_types(vec1.dtype, vec2.dtype), input.dtype)
    check_number_argument(alpha, result), check_number_argument(beta, result)
    if result in (_float16, _bfloat16):  # rounded once
        return _addr_value(input.to(_float32), vec1.to(_float32), vec2.to(_float32), beta, alpha).to(result)
    pairs = _ops.mul(_ops.unsqueeze(vec1, 1), vec2)
    if all(x.dtype is _bool for x in tensors):
        pairs = pairs if alpha else _ops.zeros_like(pairs)
        return _ops.logical_or(input, pairs) if beta else pairs
    if alpha != 1:
        pairs = pairs * alpha
    if beta == 0:
        return pairs.to(promote_types(pairs.dtype, input.dtype))
    return _ops.add(input if beta == 1 else input * beta, pairs)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Tensor:
    """beta input + alpha outer(vec1, vec2). input: broadcasts to (n, m); vec1: (n,), vec2: (m,)."""
    return deliver_result("addr", _addr_value(input, vec1, vec2, beta, alpha), out)


def addr_(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addr into input."""
    tensor_argument(input, "addr_", "input")
    r = _addr_value(input, vec1, vec2, beta, alpha)
    if r.shape != input.shape:
        raise RuntimeError(f"The input tensor must be a matrix with size {list(r.shape)}, but got a {input.dim()}-D tensor with size {list(input.shape)}")
    if not can_cast_types(r.dtype, input.dtype):
        raise RuntimeError(f"result type {type_name(r.dtype)} can't be cast to the desired output type {type_name(input.dtype)}")
    return input.copy_(r)


def kron(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """The Kronecker product: sizes multiply, missing leading dimensions count 1."""
    tensor_argument(input, "kron", "input")
    tensor_argument(other, "kron", "other")
    n = max(input.dim(), other.dim())
    a = (1,) * (n - input.dim()) + tuple(input.shape)
    b = (1,) * (n - other.dim()) + tuple(other.shape)
    left = input.reshape([s for x in a for s in (x, 1)])
    right = other.reshape([s for x in b for s in (1, x)])
    return deliver_result("kron", _ops.mul(left, right).reshape([x * y for x, y in zip(a, b)]), out, True)


# ---- sums of products over dimensions -------------------------------------------------------------------------------


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Tensor:
    """Sum over dims (a number: the last of a with the first of b; or two lists) of the products of a and b."""
    tensor_argument(a, "tensordot", "a")
    tensor_argument(b, "tensordot", "b")
    if isinstance(dims, TensorBase):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = [list(x) if isinstance(x, (list, tuple)) else [x] for x in dims]
        if len(left) != len(right):
            raise RuntimeError("both dimension lists should have same length")
    left = [wrapped_dim(d, a.dim()) for d in left]
    right = [wrapped_dim(d, b.dim()) for d in right]
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise RuntimeError("tensordot: a dim appears multiple times in the list of dims")
    for x, y in zip(left, right):
        if a.shape[x] == 1 and b.shape[y] != 1:
            b = b.sum(y, keepdim=True, dtype=b.dtype)
        elif b.shape[y] == 1 and a.shape[x] != 1:
            a = a.sum(x, keepdim=True, dtype=a.dtype)
        elif a.shape[x] != b.shape[y]:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[x]} in dim {x} and second has size {b.shape[y]} in dim {y}")
    keep_a = [d for d in range(a.dim()) if d not in left]
    keep_b = [d for d in range(b.dim()) if d not in right]
    depth = _count(a.shape, left)
    rows, cols = _count(a.shape, keep_a), _count(b.shape, keep_b)
    pa = a.permute(keep_a + left).reshape((rows, depth))
    pb = b.permute(right + keep_b).reshape((depth, cols))
    # one number is PyTorch's dot product, too: autocast on the CPU casts products of matrices alone
    result = _ops.dot(pa.reshape(-1), pb.reshape(-1)) if left and rows == cols == 1 else _ops.mm(pa, pb)
    result = result.reshape([a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b])
    return deliver_result("tensordot", result, out, True)


def inner(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """Dot products of the last dimensions: (..., n) and (..., n) -> all pairs; with a number, its multiple."""
    tensor_argument(input, "inner", "input")
    tensor_argument(other, "inner", "other")
    if input.dim() == 0 or other.dim() == 0:
        return deliver_result("inner", _ops.mul(input, other), out, True)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}")
    return tensordot(input, other, ([-1], [-1]), out)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """input1: (..., in1), input2: (..., in2), weight: (out, in1, in2), bias: (out,) -> (..., out)."""
    tensor_argument(input1, "bilinear", "input1")
    tensor_argument(input2, "bilinear", "input2")
    tensor_argument(weight, "bilinear", "weight")
    if bias is not None:
        tensor_argument(bias, "bilinear", "bias")
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for i in range(input1.dim() - 1):
        if input1.shape[i] != input2.shape[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {input1.shape[i]} and {input2.shape[i]}")
    for i, x in enumerate((input1, input2)):
        if x.shape[-1] != weight.shape[i + 1]:
            raise RuntimeError(f"bilinear(): input{i + 1} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[i + 1]}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}")
    shape = tuple(input1.shape[:-1])
    n = _count(shape, range(len(shape)))
    result = _ops._bilinear(input1.reshape((n, input1.shape[-1])), input2.reshape((n, input2.shape[-1])), weight)
    result = result.reshape((*shape, weight.shape[0]))
    return result if bias is None else result + bias


# ---- batches, chains, powers ----------------------------------------------------------------------------------------


def _joined_batches(batch1: Any, batch2: Any) -> tuple[Any, Any]:
    """The sum over the batch of products as one product: (n, b m) and (b m, p)."""
    tensor_argument(batch1, "addbmm", "batch1")
    tensor_argument(batch2, "addbmm", "batch2")
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if x.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    b, n, m = batch1.shape
    if b != batch2.shape[0] or m != batch2.shape[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {m}] but got: [{batch2.shape[0]}, {batch2.shape[1]}].")
    if batch1.dtype is not batch2.dtype:
        raise RuntimeError(f"expected scalar type {type_name(batch1.dtype)} but found {type_name(batch2.dtype)}")
    return batch1.permute(1, 0, 2).reshape((n, b * m)), batch2.reshape((b * m, batch2.shape[2]))


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Tensor:
    """beta input + alpha (the sum over the batch of batch1 @ batch2). batch1: (b, n, m), batch2: (b, m, p) -> (n, p)."""
    a, b = _joined_batches(batch1, batch2)
    return _ops.addmm(input, a, b, beta=beta, alpha=alpha) if out is None else _ops.addmm(input, a, b, beta=beta, alpha=alpha, out=out)


def addbmm_(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addbmm into input."""
    a, b = _joined_batches(batch1, batch2)
    return input.addmm_(a, b, beta=beta, alpha=alpha)


def linalg_multi_dot(tensors: Any, *, out: Any = None) -> Tensor:
    """The product of two or more matrices (the first and the last may be vectors) in the cheapest order."""
    ts = tensor_list_argument(tensors, "multi_dot", "tensors")
    n = len(ts)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    first, last = ts[0].dim(), ts[-1].dim()
    for i, t in enumerate(ts):
        if i in (0, n - 1):
            if t.dim() not in (1, 2):
                raise RuntimeError(f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {t.dim()}D")
        elif t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
        if t.dtype != ts[0].dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {ts[0].dtype} and tensor {i} {t.dtype}")
    if first == 1:
        ts[0] = ts[0].unsqueeze(0)
    if last == 1:
        ts[-1] = ts[-1].unsqueeze(-1)
    for i in range(n - 1):
        if ts[i].shape[1] != ts[i + 1].shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(ts[i].shape)} and {list(ts[i + 1].shape)} cannot be multiplied")
    dims = [t.shape[0] for t in ts] + [ts[-1].shape[1]]
    best = {(i, i): (0, 0) for i in range(n)}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            costs = [(best[i, k][0] + best[k + 1, j][0] + dims[i] * dims[k + 1] * dims[j + 1], k) for k in range(i, j)]
            # of equal costs PyTorch takes the first split, but of three matrices the left product
            least = min(cost for cost, _ in costs)
            best[i, j] = [split for split in costs if split[0] == least][-1 if n == 3 else 0]
    result = _chain_product(ts, best, 0, n - 1)
    if first == 1:
        result = result.squeeze(0)
    if last == 1:
        result = result.squeeze(-1)
    return deliver_result("multi_dot", result, out, True)


def _chain_product(ts: list[Any], best: dict[tuple[int, int], tuple[int, int]], i: int, j: int) -> Any:
    if i == j:
        return ts[i]
    k = best[i, j][1]
    return _ops.mm(_chain_product(ts, best, i, k), _chain_product(ts, best, k + 1, j))


def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """The product of matrices in the cheapest order (older name of linalg.multi_dot)."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    for t in matrices:
        tensor_argument(t, "chain_matmul", "matrices")
        if t.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {t.dim()}, expected 2 instead. (chain_matmul)")
    if len(matrices) == 1:
        return deliver_result("chain_matmul", matrices[0], out, True)
    return linalg_multi_dot(list(matrices), out=out)


def matrix_power(input: Any, n: Any, *, out: Any = None) -> Tensor:
    """input: (..., m, m) multiplied n times with itself; a negative n powers the inverse."""
    tensor_argument(input, "matrix_power", "input")
    if input.dim() < 2:
        raise RuntimeError(f"linalg.matrix_power: The input tensor A must have at least 2 dimensions, but got shape {list(input.shape)}")
    m = input.shape[-1]
    if m != input.shape[-2]:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {input.shape[-2]} by {m} matrices")
    base = input
    n = int_argument(n, "matrix_power", "n")  # a plain int: what answers comparisons by code of its own may never become 0 below
    if n < 0:
        base = _ops.linalg_inv(input)
        n = -n
    # a last product goes into `out` of its own type, what is only copied may be converted
    exact = n in (2, 3) or n & (n - 1) != 0
    if n == 0:
        # of the input's graph, as PyTorch's is: the derivative is zero
        result = input.clone().copy_(_ops.eye(m, dtype=input.dtype, device=input.device).expand(tuple(input.shape)))
    else:
        result = None
        while True:
            if n & 1:
                result = base if result is None else _ops.matmul(result, base)
            n >>= 1
            if not n:
                break
            base = _ops.matmul(base, base)
        if result is input:
            result = input.clone()
    return deliver_result("matrix_power", result, out, exact)


def linalg_vecdot(x: Any, y: Any, *, dim: Any = -1, out: Any = None) -> Tensor:
    """Dot products along a dimension, x conjugated; other dimensions broadcast."""
    tensor_argument(x, "linalg_vecdot", "x")
    tensor_argument(y, "linalg_vecdot", "y")
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {type_name(x.dtype)}")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {type_name(x.dtype)} and y of type {type_name(y.dtype)} instead"
        )
    if x.dim() == y.dim() == 1:  # without the products as a tensor
        return deliver_result("linalg_vecdot", _ops.vdot(x, y), out, True)
    return deliver_result("linalg_vecdot", _ops.mul(_conj(x), y).sum(dim), out, True)


def linalg_cross(input: Any, other: Any, *, dim: Any = -1, out: Any = None) -> Tensor:
    """The cross product along a dimension of size 3; other dimensions broadcast."""
    tensor_argument(input, "linalg_cross", "input")
    tensor_argument(other, "linalg_cross", "other")
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    dim = wrapped_dim(dim, input.dim())
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}")
    a, b = input.unbind(dim), other.unbind(dim)
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return deliver_result("linalg_cross", _ops.stack(parts, dim), out, True)


def cross(input: Any, other: Any, dim: Any = None, *, out: Any = None) -> Tensor:
    """linalg.cross along dim, by default the first dimension of size 3."""
    tensor_argument(input, "cross", "input")
    tensor_argument(other, "cross", "other")
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim, out=out)


# ---- sums of products over named dimensions -------------------------------------------------------------------------

_ELLIPSIS = -1  # the label of an ellipsis; letters are 0..51
_EXACT_OPERANDS = 6  # operands up to which every order is weighed; more: the cheapest pair first
_SMALL_CONTRACTION = 100000  # multiplications from left to right below which another order is not worth looking for


def _pair_product(a: Any, b: Any, summed: list[int]) -> Any:
    """Two operands aligned to the same dimensions, multiplied and summed over `summed` (which stay as size 1)."""
    n = a.dim()
    batch, left, right, both, sum_a, sum_b = [], [], [], [], [], []
    for i, (x, y) in enumerate(zip(a.shape, b.shape)):
        if i in summed:
            if x != 1 and y != 1:
                both.append(i)
            elif x != 1:
                sum_a.append(i)
            elif y != 1:
                sum_b.append(i)
        elif x != 1 and y != 1:
            batch.append(i)
        elif y != 1:
            right.append(i)
        else:
            left.append(i)
    if sum_a:
        a = a.sum(sum_a, keepdim=True)
    if sum_b:
        b = b.sum(sum_b, keepdim=True)
    if not both:
        return a * b
    rest = [i for i in range(n) if i in summed]
    others = [i for i in rest if i not in both]
    shape_a, shape_b = a.shape, b.shape
    if left and right and right[-1] < left[0]:  # the result lies as its labels are ordered
        a, b, shape_a, shape_b, left, right = b, a, shape_b, shape_a, right, left
    batches, rows, depth, cols = _count(shape_a, batch), _count(shape_a, left), _count(shape_a, both), _count(shape_b, right)
    pa = a.permute(batch + left + both + right + others).reshape((batches, rows, depth))
    pb = b.permute(batch + both + right + left + others).reshape((batches, depth, cols))
    r = _ops.bmm(pa, pb) if batch else _ops.mm(pa.squeeze(0), pb.squeeze(0))
    order = batch + left + right + rest
    r = r.reshape([shape_a[i] for i in batch + left] + [shape_b[i] for i in right] + [1] * len(rest))
    if order == list(range(n)):
        return r
    back = [0] * n
    for i, d in enumerate(order):
        back[d] = i
    return r.permute(back)


def _label_text(label: int) -> str:
    return chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)


def _parse_labels(text: str, start: int) -> list[int]:
    """The labels of one operand; start: where the text begins in the equation."""
    labels: list[int] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError("einsum(): found '.' for an operand for which an ellipsis was already found")
            if text[i : i + 3] != "...":
                raise RuntimeError("einsum(): found '.' that is not part of any ellipsis")
            labels.append(_ELLIPSIS)
            i += 2
        elif "A" <= c <= "Z":
            labels.append(ord(c) - ord("A"))
        elif "a" <= c <= "z":
            labels.append(ord(c) - ord("a") + 26)
        elif c != " ":
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in [a-zA-Z]")
        i += 1
    return labels


def _sublist_labels(sublist: Iterable[Any]) -> list[int]:
    labels = []
    for x in sublist:
        if x is Ellipsis:
            labels.append(_ELLIPSIS)
        elif not 0 <= x < 52:
            raise RuntimeError(f"einsum(): expected subscripts to be within range [0, 52), but got {x}")
        else:
            labels.append(x)
    return labels


@lru_cache(maxsize=1024)
def _pair_plan(equation: str, shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Two operands of these shapes as factors of one (batched) product: order and shape of the first and the second, shape and order of the
    result, None for an order that is there already, whether anything is summed, and whether the second operand is the first factor. For equations where each label is once in an operand and has
    one size, and each summed one is of both; None for all others, also wrong ones."""
    before, arrow, output = equation.replace(" ", "").partition("->")
    a, comma, b = before.partition(",")
    letters = "".join(labels.replace("...", "", 1) for labels in (a, b, output))
    if not comma or letters and not (letters.isascii() and letters.isalpha()):
        return None
    # dimensions of an ellipsis are labelled by digits, the last one of all operands by the last digit
    dots = [len(shape) - len(labels) + 3 if "..." in labels else 0 for labels, shape in ((a, shape_a), (b, shape_b))]
    if not 0 <= min(dots) <= max(dots) <= 10:
        return None
    names = "0123456789"[: max(dots)]
    a, b = (labels.replace("...", names[max(dots) - own :]) for labels, own in ((a, dots[0]), (b, dots[1])))
    output = output.replace("...", names) if arrow else names + "".join(sorted((set(a) ^ set(b)) - set(names)))
    if len(a) != len(shape_a) or len(b) != len(shape_b) or any(len(set(labels)) != len(labels) for labels in (a, b, output)) or not set(output) <= set(a + b):
        return None
    size = dict(zip(a, shape_a))
    if any(size.setdefault(x, n) != n for x, n in zip(b, shape_b)):
        return None
    summed = [x for x in a if x not in output]
    if set(summed) != {x for x in b if x not in output}:
        return None
    batch = [x for x in output if x in a and x in b]
    left, right = [x for x in output if x not in b], [x for x in output if x not in a]
    if not summed and not (left and right):
        return None  # an elementwise product, which broadcasts as it lies

    swapped = bool(left and right) and output.index(right[-1]) < output.index(left[0])
    if swapped:  # the result lies as its labels are ordered: PyTorch's programs take view() of it
        a, b, left, right = b, a, right, left

    def order(have: str, want: list[str]) -> tuple[int, ...] | None:
        return None if list(have) == want else tuple(have.index(x) for x in want)

    batches, rows, depth, cols = (math.prod(size[x] for x in group) for group in (batch, left, summed, right))
    product = batch + left + right
    heads = (batches,) if batch else ()
    return (order(a, batch + left + summed), (*heads, rows, depth), order(b, batch + summed + right), (*heads, depth, cols),
            tuple(size[x] for x in product), order("".join(product), list(output)), bool(summed), swapped)  # fmt: skip


def _multiply_pair(plan: tuple[Any, ...], a: Any, b: Any) -> Any:
    order_a, shape_a, order_b, shape_b, shape, order, summed, swapped = plan
    if swapped:
        a, b = b, a
    a = (a if order_a is None else a.permute(order_a)).reshape(shape_a)
    b = (b if order_b is None else b.permute(order_b)).reshape(shape_b)
    r = (a * b if not summed else _ops.bmm(a, b) if len(shape_a) == 3 else _ops.mm(a, b)).reshape(shape)
    return r if order is None else r.permute(order)


def _one_plan(labels: str, output: str) -> tuple[Any, ...] | None:
    """How one operand becomes `output`: pairs of dimensions of which a diagonal is taken (it becomes the last dimension), dimensions that are summed,
    the order of the rest; None for nothing."""
    diagonals = []
    for x in sorted(set(labels)):
        while labels.count(x) > 1:
            i = labels.index(x)
            j = labels.index(x, i + 1)
            diagonals.append((i, j))
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + x
    summed = [i for i, x in enumerate(labels) if x not in output]
    left = [x for x in labels if x in output]
    order = None if "".join(left) == output else tuple(left.index(x) for x in output)
    return (tuple(diagonals), summed, order) if diagonals or summed or order else None


def _rearrange(plan: tuple[Any, ...] | None, t: Any) -> Any:
    if plan is None:
        return t
    diagonals, summed, order = plan
    for i, j in diagonals:
        t = t.diagonal(0, i, j)
    if summed:
        t = t.sum(summed)
    if order is None:
        return t
    t = t.permute(order)
    return t.contiguous() if summed else t  # a sum is no view, and lies as its labels are ordered; summing a permuted operand takes longer than the copy


@lru_cache(maxsize=1024)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...], ordered: bool) -> tuple[Any, ...] | None:
    """How each operand is prepared, and the products of pairs: positions among what is left, to which the product is appended, and its
    `_pair_plan`. For equations of letters, each of one size, without products that sum nothing; None for all others, also wrong ones."""
    before, arrow, output = equation.replace(" ", "").partition("->")
    parts = before.split(",")
    letters = "".join(parts)
    if letters and not (letters.isascii() and letters.isalpha()) or len(parts) != len(shapes):
        return None
    output = output if arrow else "".join(x for x in sorted(set(letters)) if letters.count(x) == 1)
    if len(set(output)) != len(output) or not set(output) <= set(letters):
        return None
    size: dict[str, int] = {}
    for part, shape in zip(parts, shapes):
        if len(part) != len(shape) or any(size.setdefault(x, n) != n for x, n in zip(part, shape)):
            return None
    if len(parts) == 1:
        return [_one_plan(parts[0], output)], ()
    prepared = []
    for i, part in enumerate(parts):
        kept = set(output).union(*parts[:i], *parts[i + 1 :])
        wanted = "".join(x for x in dict.fromkeys(part) if x in kept)
        prepared.append(_one_plan(part, wanted))
        parts[i] = wanted
    names = list(dict.fromkeys(output + "".join(parts)))
    bits = [sum(1 << names.index(x) for x in part) for part in parts]
    products = []
    for i, j in _cheapest_pairs(bits, [size[x] for x in names], (1 << len(output)) - 1, ordered):
        a, b = parts[i], parts[j]
        parts = [part for k, part in enumerate(parts) if k not in (i, j)]
        kept = set(output).union(*parts)
        product = output if not parts else "".join([x for x in a if x in b and x in kept] + [x for x in a if x not in b] + [x for x in b if x not in a])
        pair = _pair_plan(f"{a},{b}->{product}", tuple(size[x] for x in a), tuple(size[x] for x in b))
        if pair is None:
            return None
        products.append((i, j, pair))
        parts.append(product)
    return prepared, products


def _follow(plan: tuple[Any, ...], operands: Sequence[Any]) -> Any:
    prepared, products = plan
    left = [_rearrange(one, t) for one, t in zip(prepared, operands)]
    for i, j, pair in products:
        product = _multiply_pair(pair, left[i], left[j])
        left = [t for k, t in enumerate(left) if k not in (i, j)]
        left.append(product)
    return left[0].view(left[0].shape) if left[0] is operands[0] else left[0]


def einsum(*args: Any) -> Tensor:
    """einsum(equation, *operands) or einsum(op1, sublist1, ..., [out]): sums of products over labelled dimensions."""
    if len(args) == 3 and isinstance(args[0], str):
        equation, a, b = args
        plan = _pair_plan(equation, tuple(tensor_argument(a, "einsum", "operands").shape), tuple(tensor_argument(b, "einsum", "operands").shape))
        if plan is not None:
            return _multiply_pair(plan, a, b)
    if len(args) > 1 and isinstance(args[0], str) and not isinstance(args[1], (list, tuple)):
        plan = _plan(args[0], tuple([tuple(tensor_argument(t, "einsum", "operands").shape) for t in args[1:]]), len(args) > 3 and _in_order())
        if plan is not None:
            return _follow(plan, args[1:])
    inputs: list[list[int]] = []
    output = None
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], str):
        equation = args[0]
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        if not operands:
            raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
        before, arrow, after = equation.partition("->")
        position = 0
        for part in before.split(","):
            inputs.append(_parse_labels(part, position))
            position += len(part) + 1
        if arrow:
            output = _parse_labels(after, len(before) + 2)
    else:
        operands = list(args[0::2]) if len(args) % 2 == 0 else list(args[0:-1:2])
        inputs = [_sublist_labels(x) for x in args[1::2]]
        if len(args) % 2:
            output = _sublist_labels(args[-1])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    for t in operands:
        tensor_argument(t, "einsum", "operands")
    if len(inputs) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(inputs) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return _contract(operands, inputs, output)


def _extent(dims: int, sizes: list[int]) -> int:
    """The number of elements over a set of dimensions, a bit of an integer each."""
    return _count(sizes, [p for p in range(len(sizes)) if dims >> p & 1])


def _kept(dims: int, others: Iterable[int], out: int) -> int:
    """The dimensions that the output or another operand has too."""
    for x in others:
        out |= x
    return dims & out


def _in_order() -> bool:
    """Whether operands are multiplied as they come, whatever it costs."""
    return not _backends.opt_einsum.enabled


def _cheapest_pairs(dims: list[int], sizes: list[int], out: int, ordered: bool) -> list[tuple[int, int]]:
    """The pairs to multiply, each by positions in the list of what is left, to which its product is appended. The cost of a pair
    is the number of its multiplications. `ordered`: from left to right."""
    n = len(dims)
    left_to_right, first = 0, dims[0]
    for i in range(1, n):
        left_to_right += _extent(first | dims[i], sizes)
        first = _kept(first | dims[i], dims[i + 1 :], out)
    if n < 3 or left_to_right < _SMALL_CONTRACTION or ordered:
        return [(0, 1)] + [(i, 0) for i in range(n - 2, 0, -1)]
    if n > _EXACT_OPERANDS:
        return _greedy_pairs(dims, sizes, out)
    # by subset of the operands: dimensions of its product; cost and first part
    reach: dict[int, int] = {}
    ways: dict[int, tuple[int, int]] = {}
    for subset in range(1, 1 << n):
        inside = [dims[k] for k in range(n) if subset >> k & 1]
        outside = [dims[k] for k in range(n) if not subset >> k & 1]
        if len(inside) == 1:
            reach[subset], ways[subset] = inside[0], (0, 0)
            continue
        union = 0
        for x in inside:
            union |= x
        reach[subset] = _kept(union, outside, out)
        best = None
        part = (subset - 1) & subset
        while part > subset ^ part:  # each pair of parts once
            cost = ways[part][0] + ways[subset ^ part][0] + _extent(reach[part] | reach[subset ^ part], sizes)
            if best is None or cost < best[0]:
                best = (cost, part)
            part = (part - 1) & subset
        assert best is not None
        ways[subset] = best
    pairs: list[tuple[int, int]] = []
    order: list[tuple[int, int]] = []
    present = [1 << k for k in range(n)]
    _append_pairs((1 << n) - 1, ways, order)
    for part, subset in order:
        pairs.append((present.index(part), present.index(subset)))
        present = [x for x in present if x not in (part, subset)] + [part | subset]
    return pairs


def _greedy_pairs(dims: list[int], sizes: list[int], out: int) -> list[tuple[int, int]]:
    pairs = []
    while len(dims) > 1:
        _, i, j = min((_extent(dims[i] | dims[j], sizes), i, j) for j in range(len(dims)) for i in range(j))
        pairs.append((i, j))
        union = dims[i] | dims[j]
        dims = [x for k, x in enumerate(dims) if k not in (i, j)]
        dims.append(_kept(union, dims, out))
    return pairs


def _append_pairs(subset: int, ways: dict[int, tuple[int, int]], order: list[tuple[int, int]]) -> None:
    part = ways[subset][1]
    if part:
        _append_pairs(part, ways, order)
        _append_pairs(subset ^ part, ways, order)
        order.append((part, subset ^ part))


def _multiply_out(operands: list[Any], sizes: list[int], n_out: int) -> Any:
    """The product of operands aligned to `sizes`, summed over the dimensions from n_out on, which stay as size 1."""
    n = len(sizes)
    if len(operands) == 1:
        return operands[0].sum(list(range(n_out, n)), keepdim=True) if n_out < n else operands[0]
    dims = [sum(1 << p for p in range(n) if t.shape[p] != 1) for t in operands]
    out = (1 << n_out) - 1
    for i, j in _cheapest_pairs(dims, sizes, out, _in_order()):
        a, b, union = operands[i], operands[j], dims[i] | dims[j]
        operands = [t for k, t in enumerate(operands) if k not in (i, j)]
        dims = [x for k, x in enumerate(dims) if k not in (i, j)]
        left = _kept(union, dims, out)
        operands.append(_pair_product(a, b, [p for p in range(n_out, n) if not left >> p & 1]))
        dims.append(left)
    return operands[0]


def _contract(operands: list[Any], inputs: list[list[int]], output: list[int] | None) -> Any:
    """Align all operands to (output labels, summed labels), then multiply them in pairs, summing what is used up."""
    ellipsis = 0
    counts: dict[int, int] = {}
    for i, (t, labels) in enumerate(zip(operands, inputs)):
        n = t.dim() - len([x for x in labels if x != _ELLIPSIS])
        if _ELLIPSIS in labels:
            if n < 0:
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(labels) - 1}) is more than the number of dimensions ({t.dim()}) for operand {i}")
            ellipsis = max(ellipsis, n)
        elif n != 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the number of dimensions ({t.dim()}) for operand {i} and no ellipsis was given"
            )
        for x in labels:
            if x != _ELLIPSIS:
                counts[x] = counts.get(x, 0) + 1
    if output is None:
        output = ([_ELLIPSIS] if any(_ELLIPSIS in x for x in inputs) else []) + sorted(x for x in counts if counts[x] == 1)
    places, n_out = _places(counts, output, ellipsis)
    n = len(places)
    aligned = []
    sizes = [1] * n
    for i, (t, labels) in enumerate(zip(operands, inputs)):
        t, used = _aligned(t, labels, places, ellipsis, i)
        for p, size in zip(used, t.shape):
            if size != 1:
                if sizes[p] not in (1, size):
                    raise _unequal(next(x for x, place in places.items() if place == p), labels, sizes[p], size, i, operands[i].dim(), ellipsis)
                sizes[p] = size
        for p in range(n):
            if p not in used:
                t = t.unsqueeze(p)
        aligned.append(t)
    r = _multiply_out(aligned, sizes, n_out)
    if n > n_out:
        r = r.reshape(r.shape[:n_out])
    elif r is operands[0]:
        r = r.view(r.shape)
    return r


def _unequal(label: Any, labels: list[int], seen: int, size: int, operand: int, dims: int, ellipsis: int) -> RuntimeError:
    """The error for an operand whose size of a label is another than before."""
    if not isinstance(label, tuple):
        return RuntimeError(f"einsum(): subscript {_label_text(label)} has size {size} for operand {operand} which does not broadcast with previously seen size {seen}")
    dim = labels.index(_ELLIPSIS) + label[1] - ellipsis + dims - len(labels) + 1
    return RuntimeError(
        f"einsum(): dimension {dim} covered by ellipsis in operand {operand}has size {size} which does not broadcast with previously seen ellipsis with size {seen} for the "
        "respective dimension"
    )  # "operand 1has" is PyTorch's


def _places(counts: dict[int, int], output: list[int], ellipsis: int) -> tuple[dict[Any, int], int]:
    """A place for every dimension: output labels first, ellipsis dimensions where the output has them, summed ones behind; and the number of
    the output's. Dimensions of an ellipsis are labelled ("...", number)."""
    places: dict[Any, int] = {}
    dots = [("...", i) for i in range(ellipsis)]
    for x in output:
        if x == _ELLIPSIS:
            places.update({label: len(places) + i for i, label in enumerate(dots)})
            continue
        if x in places:
            raise RuntimeError(f"einsum(): output subscript {_label_text(x)} appears more than once in the output")
        if x not in counts:
            raise RuntimeError(f"einsum(): output subscript {_label_text(x)} does not appear in the equation for any input operand")
        places[x] = len(places)
    n_out = len(places)
    for label in (*dots, *counts):
        places.setdefault(label, len(places))
    return places, n_out


def _aligned(t: Any, labels: list[int], places: dict[Any, int], ellipsis: int, operand: int) -> tuple[Any, list[int]]:
    """An operand with its dimensions in the order of their places, diagonals of repeated labels taken; the places that it has."""
    names: list[Any] = []
    for x in labels:
        if x == _ELLIPSIS:
            extent = t.dim() - len(labels) + 1
            names += [("...", ellipsis - extent + j) for j in range(extent)]
        else:
            names.append(x)
    j = 0
    while j < len(names):
        first = names.index(names[j])
        if first < j:
            if t.shape[first] != t.shape[j]:
                raise RuntimeError(f"einsum(): subscript {_label_text(names[j])} is repeated for operand {operand} but the sizes don't match, {t.shape[j]} != {t.shape[first]}")
            t = t.diagonal(0, first, j).movedim(-1, first)
            del names[j]
        else:
            j += 1
    order = sorted(range(len(names)), key=lambda d: places[names[d]])
    if order != list(range(len(names))):
        t = t.permute(order)
    return t, [places[names[d]] for d in order]


# ---- grouped and scaled products ------------------------------------------------------------------------------------------


def _check_grouped(a: Any, b: Any, offs: Any, bias: Any, out_dtype: Any) -> None:
    names = ("float32", "bfloat16", "float16")
    for what, t in (("mat_a", a), ("mat_b", b)):
        if t.dtype not in [_dtype_by_name(n) for n in names]:
            raise RuntimeError(f"Expected {what} to be Float32, BFloat16 or Float16 matrix, got {type_name(t.dtype)}")
        if t.dim() not in (2, 3):
            raise RuntimeError(f"{what} has to be 2 or 3d")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected mat_a and mat_b to have the same dtype, got {type_name(a.dtype)} and {type_name(b.dtype)}")
    if a.size(-1) != b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is not None) != (a.dim() == 2 or b.dim() == 2):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and (offs.dim() != 1 or offs.dtype != _dtype_by_name("int32")):
        raise RuntimeError("Offsets have to be int32" if offs.dim() == 1 else "offs has to be 1D")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


def _grouped_mm(input: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    """Products of groups of rows, columns or depths that offs ends, or of batches."""
    a, b = tensor_argument(input, "_grouped_mm", "input"), tensor_argument(mat2, "_grouped_mm", "mat2")
    if offs is not None:
        tensor_argument(offs, "_grouped_mm", "offs")
    _check_grouped(a, b, offs, bias, out_dtype)
    if offs is None:
        return _ops.bmm(a, b)
    ends = [0, *offs.tolist()]
    limit = a.size(1) if a.dim() == b.dim() else a.size(0) if a.dim() == 2 else b.size(1)
    if any(e < s for s, e in zip(ends, ends[1:])) or ends[-1] > limit:
        raise RuntimeError(f"_grouped_mm: offsets have to rise and stay within {limit}, got {ends[1:]}")
    if a.dim() == 3 or b.dim() == 3:
        batch = (a if a.dim() == 3 else b).size(0)
        if len(ends) != batch + 1:
            raise RuntimeError(f"matrix batch sizes have to match: {batch} matrices and {len(ends) - 1} offsets")
    spans = list(zip(ends, ends[1:]))
    if a.dim() == 2 and b.dim() == 2:
        return _ops.stack([_ops.mm(a[:, s:e], b[s:e]) for s, e in spans])
    if a.dim() == 2:
        parts = [_ops.mm(a[s:e], b[i]) for i, (s, e) in enumerate(spans)]
        rest = a.new_zeros((a.size(0) - ends[-1], b.size(2)))
        return _ops.cat([*parts, rest], 0)
    parts = [_ops.mm(a[i], b[:, s:e]) for i, (s, e) in enumerate(spans)]
    return _ops.cat([*parts, a.new_zeros((a.size(1), b.size(1) - ends[-1]))], 1)


def _scaled_mm(
    input: Any, mat2: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None, out_dtype: Any = None, use_fast_accum: bool = False
) -> Tensor:
    """The product of float8 matrices, computed in float32 and rounded once."""
    a, b = tensor_argument(input, "_scaled_mm", "input"), tensor_argument(mat2, "_scaled_mm", "mat2")
    for what, t in (("scale_a", scale_a), ("scale_b", scale_b), ("bias", bias), ("scale_result", scale_result)):
        if t is not None or what in ("scale_a", "scale_b"):
            tensor_argument(t, "_scaled_mm", what)
    float32 = _dtype_by_name("float32")
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"_scaled_mm: expected matrices, got {a.dim()}D and {b.dim()}D tensors")
    if a.size(1) != b.size(0):
        raise hinted("shapes", RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.size(0)}x{a.size(1)} and {b.size(0)}x{b.size(1)})"))
    whole = scale_a.numel() == 1 and scale_b.numel() == 1
    by_rows = tuple(scale_a.shape) == (a.size(0), 1) and tuple(scale_b.shape) == (1, b.size(1))
    small = all(str(t.dtype).rpartition(".")[2].startswith("float8_e") for t in (a, b))
    if not small or scale_a.dtype != float32 or scale_b.dtype != float32 or not (whole or by_rows):
        raise ValueError(
            "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
            f"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({a.size(0)}, 1) and scale_b should be (1, {b.size(1)})"
        )
    if bias is not None and (bias.dim() != 1 or bias.numel() != b.size(1)):
        raise RuntimeError(f"Bias must be size {b.size(1)} but got {bias.numel()}")
    result = _ops.mm(a.to(float32), b.to(float32)) * (scale_a.reshape(()) * scale_b.reshape(()) if whole else scale_a * scale_b)
    if bias is not None:
        result = result + bias.to(float32)
    wanted = a.dtype if out_dtype is None else out_dtype
    if scale_result is not None and str(wanted).rpartition(".")[2].startswith("float8_e"):
        result = result * scale_result
    return result.to(wanted)


EXPORTS = {"_grouped_mm": "f", "_scaled_mm": "f"}
