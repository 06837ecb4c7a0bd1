"""What follows from sorting, counting and differences: orders, quantiles, histograms, finite differences. Gradients follow from the parts."""

from __future__ import annotations

import builtins

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.sorting import _count_numbers, _number_bins
from tensorrt_lite._C.ops.support import holds_elements
from tensorrt_lite._C.ops.support import (
    check_number_argument,
    check_output,
    check_outputs,
    deliver_result,
    deliver_unrecorded,
    float_argument,
    int_argument,
    tensor_argument,
    type_name,
    without_derivative,
    wrapped_dim,
)
from tensorrt_lite._C.core.return_types import result_type
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_elements = _LazyModule("tensorrt_lite._transforms.elements")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_int64, _float32, _float64 = (_dtype_by_name(name) for name in ("int64", "float32", "float64"))


def argsort(input: Any, dim: Any = -1, descending: Any = False, *, stable: Any = False) -> Tensor:
    """The positions that sort input along dim; equal elements keep their order."""
    tensor_argument(input, "argsort", "input")
    return _ops.sort(input, dim, descending, stable=stable)[1]


def msort(input: Any, *, out: Any = None) -> Tensor:
    """input sorted along its first dimension."""
    tensor_argument(input, "msort", "input")
    if out is not None:
        check_output(out, "msort")
    return deliver_result("msort", _ops.sort(input, 0)[0], out, True)


# ---- quantiles ------------------------------------------------------------------------------------------------------


def _levels(name: str, q: Any, x: Any) -> Any:
    """The numbers in [0, 1] that are asked for, as a tensor of x's dtype without or with one dimension."""
    if not isinstance(q, TensorBase):
        if not 0 <= float_argument(q, name, "q") <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return _ops.full((), q, dtype=x.dtype, device=x.device)
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not q.is_meta and q.numel() and not _ops.all((q.detach() >= 0) & (q.detach() <= 1)).item():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, input: Any, q: Any, dim: Any, keepdim: Any, interpolation: Any, out: Any, skip_nan: bool) -> Any:
    tensor_argument(input, name, "input")
    if input.dtype != _float32 and input.dtype != _float64:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    q = _levels(name, q, input)
    if out is not None and tensor_argument(out, name, "out").dtype != input.dtype:
        raise RuntimeError(f"{name}() out tensor must be same dtype as the input tensor")
    d = 0 if dim is None else wrapped_dim(int_argument(dim, name, "dim"), input.dim())
    ordered = _ops.sort(input.reshape(-1) if dim is None else input, d)[0]
    if ordered.dim() == 0:
        ordered = ordered.unsqueeze(0)
    ordered = ordered.movedim(d, -1)
    n = ordered.size(-1)
    # ranks (*, number of q) are positions in the ordered lines, with a fraction
    fractions = q.reshape(-1)
    missing = ordered.detach().isnan()
    if skip_nan:
        ranks = fractions * (n - 1 - missing.sum(-1, True)).clamp(min=0).to(q.dtype)
    else:
        # the last element of a line with a NaN is one
        ranks = (fractions * (n - 1)).expand((*missing.sum(-1).shape, fractions.numel()))
        ranks = ranks.masked_fill(missing[..., -1:], n - 1)
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.detach().floor().long()
    result = ordered.gather(-1, below)
    if interpolation == "linear" or interpolation == "midpoint":
        weights = _ops.full_like(ranks.detach(), 0.5) if interpolation == "midpoint" else ranks - below
        result = _ops.lerp(result, ordered.gather(-1, ranks.detach().ceil().long()), weights)
    # the q dimension first, or none for a number
    if keepdim:
        if dim is None:
            result = result.reshape((1,) * input.dim() + (-1,))
        elif input.dim():
            result = result.unsqueeze(d)
    result = result.movedim(-1, 0) if q.dim() else result.squeeze(-1)
    return deliver_result(name, result, out)


def quantile(input: Any, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = "linear", out: Any = None) -> Tensor:
    """The q-th quantiles (a number or a vector in [0, 1], whose dimension leads) of all elements or along dim."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out, False)


def nanquantile(input: Any, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = "linear", out: Any = None) -> Tensor:
    """quantile of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out, True)


# ---- histograms -----------------------------------------------------------------------------------------------------


def _check_same_device(name: str, input: Any, other: Any, argument: str) -> None:
    if input.device != other.device:
        raise RuntimeError(
            f"{name}(): Expected all tensors to be on the same device, but the input is on {input.device} and {argument} is on {other.device}"
        )


def for_each_element(*arguments: Any) -> Any:
    """What functional transforms make of a function that looks at numbers; they load when one is called."""
    return _elements.for_each_element(*arguments)


def bincount(input: Any, weights: Any = None, minlength: Any = 0) -> Tensor:
    """How often (or with which total weight) each value of a vector of non-negative integers occurs."""
    x = tensor_argument(input, "bincount", "input")
    n = int_argument(minlength, "bincount", "minlength")
    if n < 0:
        raise RuntimeError("minlength should be >= 0")
    if (x.is_floating_point() or x.is_complex() or x.dtype == _dtype_by_name("bool")) and not x.is_meta:
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{type_name(x.dtype)}'")
    if x.dim() != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if x.is_meta:
        raise NotImplementedError("bincount(): the result's shape depends on the data, which meta tensors do not have")
    if weights is not None:
        tensor_argument(weights, "bincount", "weights")
        if weights.dim() != 1 or weights.numel() != x.numel():
            raise RuntimeError("weights should be 1-d and have the same length as input")
        _check_same_device("bincount", x, weights, "weights")
    if is_transformed([x] if weights is None else [x, weights]):
        counts = for_each_element("bincount", lambda x, w: bincount(x, w, n), x, weights)
        return without_derivative(counts, "aten::bincount", (weights,))
    if x.numel():
        low, high = (int(bound.item()) for bound in _ops.aminmax(x))
        if low < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        if high >= 1 << 58:
            raise RuntimeError(f"bincount(): a value of {high} would need as many bins")
        n = max(n, high + 1)
    # where another thread raises a value from here on, it is not counted
    counts = _count_numbers(x, weights, n)
    return without_derivative(counts.float() if weights is not None and weights.dtype == _float32 else counts, "aten::bincount", (weights,))


_COUNTED_AT_ONCE = 1 << 15


def _check_range(name: str, low: float, high: float) -> None:
    if not (-1e400 < low < 1e400 and -1e400 < high < 1e400):
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")


def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Tensor:
    """How many elements fall into each of `bins` equal bins between min and max (those of the data when equal)."""
    x = tensor_argument(input, "histc", "input")
    n = int_argument(bins, "histc", "bins")
    counted = x.is_floating_point() or x.is_cuda and not x.is_complex() and x.dtype != _dtype_by_name("bool")
    if not counted:
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_name(x.dtype)}'")
    if n <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension 0")
    if x.is_meta:
        return _ops.empty(n, dtype=x.dtype, device="meta")
    if is_transformed([x]):
        return deliver_unrecorded("histc", for_each_element("histc", lambda x: histc(x, n, min, max), x.detach()), out)
    low, high = float_argument(min, "histc", "min"), float_argument(max, "histc", "max")
    check_number_argument(low, x.dtype), check_number_argument(high, x.dtype)
    if low == high and x.numel() and holds_elements(x):
        low, high = float(x.amin().item()), float(x.amax().item())
    _check_range("histc", low, high)
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high:
        low, high = low - 1, high + 1
    edges = _ops.linspace(low, high, n + 1, dtype=_float64, device=x.device)
    # on the CPU block by block: each element's number of a bin stays in a cache, and scratch memory does not grow with the data
    at_once = builtins.max(_COUNTED_AT_ONCE, n)
    blocks = x.reshape(-1).split(at_once) if x.is_cpu and x.numel() > at_once else (x,)
    counts = None
    for block in blocks:
        numbers = _number_bins(_ops.zeros(block.numel(), dtype=_int64, device=x.device), block, edges, True, False)
        now = _count_numbers(numbers, None, n)
        counts = now if counts is None else counts.add_(now)
    return deliver_unrecorded("histc", counts.to(x.dtype), out)


def _histogram_edges(x: Any, bins: Any, range: Any, name: str, dimension: int) -> tuple[Any, bool]:
    """(edges in x's type, whether they are equally spaced)."""
    if isinstance(bins, TensorBase):
        if bins.dim() != 1 or bins.numel() < 1:
            raise RuntimeError(
                f"torch.{name}(): bins tensor should have one dimension, but got {bins.dim()} dimensions in the bins tensor for dimension {dimension}"
            )
        _check_same_device(name, x, bins, "bins")
        if bins.dtype != x.dtype:
            raise RuntimeError(
                f"torch.{name}(): input tensor and bins tensors should have the same dtype, but got input with dtype {type_name(x.dtype)} and bins for dimension "
                f"{dimension} with dtype {type_name(bins.dtype)}"
            )
        return bins, False
    n = int_argument(bins, name, "bins")
    if n <= 0:
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {n} for dimension {dimension}")
    if range is None:
        low, high = (x.amin().item(), x.amax().item()) if x.numel() and holds_elements(x) else (0.0, 1.0)
    else:
        low, high = range
        if low > high:
            raise RuntimeError(f"torch.{name}: dimension {dimension} of leftmost edge {low} must be smaller than the rightmost edge {high}")
    if not (-1e400 < low < 1e400 and -1e400 < high < 1e400):
        raise RuntimeError(f"torch.{name}: dimension {dimension}'s range [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _ops.linspace(low, high, n + 1, dtype=x.dtype, device=x.device), True


def _histogram(x: Any, bins: list[Any], range: Any, weight: Any, density: Any, name: str) -> tuple[Any, list[Any]]:
    """(counts, [edges of each dimension]) of samples x (n, dimensions)."""
    if x.dtype != _float32 and x.dtype != _float64:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{type_name(x.dtype)}'")
    if x.is_meta:
        raise NotImplementedError(f"{name}(): the edges depend on the data, which meta tensors do not have")
    if weight is not None:
        _check_same_device(name, x, weight, "weight")
        if weight.dtype != x.dtype:
            raise RuntimeError(
                f"torch.{name}(): if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input({type_name(x.dtype)}), "
                f"and weight({type_name(weight.dtype)})"
            )
        if weight.numel() != x.size(0):
            raise RuntimeError(
                f"torch.{name}(): if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got input "
                f"with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
            )
    if is_transformed([t for t in (x, weight, *bins) if isinstance(t, TensorBase)]):
        given = (x, weight, [b if isinstance(b, TensorBase) else None for b in bins])
        return for_each_element(
            name, lambda x, w, edges: _histogram(x, [n if e is None else e for n, e in zip(bins, edges)], range, w, density, name), *given
        )
    numbers = _ops.zeros(x.size(0), dtype=_int64, device=x.device)
    shape, edges, total = [], [], 1
    for k in builtins.range(len(bins)):
        column = x[:, k]
        e, uniform = _histogram_edges(column, bins[k], None if range is None else (range[2 * k], range[2 * k + 1]), name, k)
        _number_bins(numbers, column, e, uniform, True)
        shape.append(e.numel() - 1)
        edges.append(e)
        total *= shape[k]
        if total >= 1 << 63:
            raise RuntimeError(f"torch.{name}(): a histogram of {' x '.join(map(str, shape))} bins or more is too large")
    counts = _count_numbers(numbers, weight, total).to(x.dtype).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for k, e in enumerate(edges):
            counts = counts / e.diff().reshape([-1 if i == k else 1 for i in builtins.range(len(bins))])
    return counts, edges


def _flat_weight(weight: Any, name: str) -> Any:
    return None if weight is None else tensor_argument(weight, name, "weight").detach().reshape(-1)


def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: Any = False, out: Any = None) -> Any:
    """(hist, bin_edges): counts or weights of elements in `bins` equal bins over range, or between the edges in the tensor bins."""
    if range is not None and not isinstance(range, (tuple, list)):
        raise TypeError(f"histogram(): argument 'range' must be tuple of floats, not {type(range).__name__}")
    tensor_argument(input, "histogram", "input")
    counts, edges = _histogram(input.detach().reshape(-1, 1), [bins], range, _flat_weight(weight, "histogram"), density, "histogram")
    if isinstance(bins, TensorBase):
        edges[0] = edges[0].clone()
    if out is not None:
        check_outputs(out, "histogram", 2)
        deliver_unrecorded("histogram", counts, out[0])
        deliver_unrecorded("histogram", edges[0], out[1])
        return out
    without_derivative((counts, edges[0]), "aten::histogram", (input, weight, bins if isinstance(bins, TensorBase) else None))
    return result_type("histogram", ("hist", "bin_edges"))((counts, edges[0]))


def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: Any = False) -> Any:
    """(hist, bin_edges) of points input (*, D): counts of shape bins, and a tuple of D vectors of edges."""
    x = tensor_argument(input, "histogramdd", "input")
    if x.dim() < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {x.dim()}")
    dimensions = x.size(-1)
    wanted = list(bins) if isinstance(bins, (list, tuple)) else [bins] * dimensions
    if len(wanted) != dimensions:
        raise RuntimeError(f"torch.histogramdd: expected {dimensions} bin counts or sequences of bin edges, but got {len(wanted)}")
    if range is not None and len(range) != 2 * dimensions:
        raise RuntimeError(
            f"torch.histogramdd: for a {dimensions}-dimensional histogram range should have {2 * dimensions} elements, but got {len(range)}"
        )
    counts, edges = _histogram(x.detach().reshape(-1, dimensions), wanted, range, _flat_weight(weight, "histogramdd"), density, "histogramdd")
    without_derivative(counts, "aten::_histogramdd_from_bin_cts", (input, weight))
    return result_type("histogramdd", ("hist", "bin_edges"))((counts, tuple(edges)))


# ---- differences ----------------------------------------------------------------------------------------------------


def diff(input: Any, n: Any = 1, dim: Any = -1, prepend: Any = None, append: Any = None, *, out: Any = None) -> Tensor:
    """The n-th difference along dim, of input with prepend before and append after it."""
    x = tensor_argument(input, "diff", "input")
    order = int_argument(n, "diff", "n")
    if x.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    d = wrapped_dim(int_argument(dim, "diff", "dim"), x.dim())
    for name, part in (("prepend", prepend), ("append", append)):
        if part is not None and tensor_argument(part, "diff", name).dim() != x.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if order < 0:
        raise RuntimeError(f"order must be non-negative but got {order}")
    if order == 0:
        if out is not None:
            check_output(out, "diff")
        return deliver_result("diff", x.clone(), out, True)
    subtract = _ops.logical_xor if x.dtype == _dtype_by_name("bool") else _ops.sub
    if prepend is not None or append is not None:
        x = _ops.cat([t for t in (prepend, x, append) if t is not None], d)
    size = x.size(d)
    if x.numel() == 0:  # a dimension without elements may be beside one of 2**62, which no loop counts down
        part = x.narrow(d, 0, max(size - order, 0))
        return subtract(part, part, out=out)
    for remaining in builtins.range(min(order, max(size, 1)) - 1, -1, -1):  # nothing is left to subtract afterwards
        size -= 1
        after, before = x.narrow(d, 1 if size >= 0 else 0, max(size, 0)), x.narrow(d, 0, max(size, 0))
        x = subtract(after, before, out=out if remaining == 0 else None)
    return x


def _gradient_along(x: Any, d: int, spacing: Any, edge_order: int) -> Any:
    """Central differences inside, one-sided ones at the ends; `spacing` a number or a vector of coordinates."""
    n = x.size(d)
    before, here, after = x.narrow(d, 0, n - 2), x.narrow(d, 1, n - 2), x.narrow(d, 2, n - 2)
    first = [x.narrow(d, i, 1) for i in range(edge_order + 1)]
    last = [x.narrow(d, n - 1 - i, 1) for i in range(edge_order + 1)]
    if not isinstance(spacing, TensorBase):
        inside = (after - before) / (2 * spacing)
        if edge_order == 1:
            low, high = (first[1] - first[0]) / spacing, (last[0] - last[1]) / spacing
        else:
            low = (4 * first[1] - 3 * first[0] - first[2]) / (2 * spacing)
            high = (3 * last[0] - 4 * last[1] + last[2]) / (2 * spacing)
        return _ops.cat([low, inside, high], d)
    shape = [1] * x.dim()
    shape[d] = n - 1
    h = spacing.diff().reshape(shape)
    a, b = h.narrow(d, 0, n - 2), h.narrow(d, 1, n - 2)
    inside = before * (-b / (a * (a + b))) + here * ((b - a) / (a * b)) + after * (a / (b * (a + b)))
    a, b = h.narrow(d, 0, 1), h.narrow(d, n - 2, 1)
    if edge_order == 1:
        return _ops.cat([(first[1] - first[0]) / a, inside, (last[0] - last[1]) / b], d)
    c, e = h.narrow(d, 1, 1), h.narrow(d, n - 3, 1)
    low = first[0] * (-(2 * a + c) / (a * (a + c))) + first[1] * ((a + c) / (a * c)) - first[2] * (a / (c * (a + c)))
    high = last[0] * ((2 * b + e) / (b * (b + e))) - last[1] * ((b + e) / (b * e)) + last[2] * (b / (e * (b + e)))
    return _ops.cat([low, inside, high], d)


def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: Any = 1) -> tuple[Tensor, ...]:
    """The derivative along each of the dimensions dim (all), by second-order differences; spacing: a number, a list of
    numbers or of vectors of coordinates."""
    x = tensor_argument(input, "gradient", "input")
    order = int_argument(edge_order, "gradient", "edge_order")
    if order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if dim is None:
        dims = list(range(x.dim()))
    else:
        dims = [wrapped_dim(d, x.dim()) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"dim {dims} names a dimension more than once (gradient)")
    if isinstance(spacing, (list, tuple)):
        spaces = list(spacing)
        if len(spaces) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {len(dims)}', since dim argument is {'None' if dim is None else 'given'}, but got a list of length {len(spaces)}"
            )
    elif isinstance(spacing, TensorBase):
        raise TypeError("gradient(): argument 'spacing' must be a number or a list, not Tensor")
    else:
        spaces = [1 if spacing is None else spacing] * len(dims)
    result = []
    for d, space in zip(dims, spaces):
        if x.size(d) < order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(space, TensorBase) and space.dim() != 1:
            raise RuntimeError(f"torch.gradient expected each element of spacing to have one dimension, but got {space.dim()}")
        if isinstance(space, TensorBase) and space.numel() != x.size(d):
            raise RuntimeError(f"torch.gradient expected spacing to have {x.size(d)} coordinates for dimension {d}, but got {space.numel()}")
        result.append(_gradient_along(input, d, space, order))
    return tuple(result)
