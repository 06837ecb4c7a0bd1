"""Reductions, scans and normalizations over the elements that a mask lets in.

A masked-out element is replaced by what leaves the result alone (0 for a sum, minus infinity for a maximum), then the operator on
dense tensors runs; gradients of masked-out elements are therefore zero. Masks are of dtype bool or are converted to it, True means
that the element counts, and they broadcast to the input. A masked tensor brings its own mask.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite._functions.dtype_limits import iinfo
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.masked._tensor import LAYOUTS, is_masked_tensor, sparse_layouts

_nn = LazyModule("tensorrt_lite.nn")

_PROMOTED = ("torch.uint8", "torch.bool", "torch.int8", "torch.int16", "torch.int32")  # their sums are int64


def _data_and_mask(input: Any, mask: Any) -> tuple[Any, Any]:
    """The strided or sparse tensor and its mask; a masked tensor's own mask counts, whatever `mask` is."""
    return (input.get_data(), input.get_mask()) if is_masked_tensor(input) else (input, mask)


def _input_mask(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """The mask as a bool tensor of the input's shape and layout. ValueError without a mask or for other layouts than strided, sparse_coo and sparse_csr,
    IndexError where the mask has more dimensions than the input."""
    if input.layout not in LAYOUTS:
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if input.layout != trt.strided:
        return sparse_layouts().mask_in_layout(input, mask)
    if mask.layout != trt.strided:
        mask = mask.to_dense()
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
        mask = mask.expand(input.shape)
    return mask if mask.dtype == trt.bool else mask.to(trt.bool)


def _output_mask(op: Any, input: Any, *args: Any, mask: Any = None, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """Which elements of `op(input, ...)` have an element behind them that counts: any() of the mask for reductions, the input's mask for scans
    and normalizations. ValueError for other functions."""
    name = getattr(op, "__name__", "")
    if name in _REDUCTIONS:
        given = args[1:] if name == "norm" else args
        dim = given[0] if given else dim
        return _input_mask(input, mask=mask).any(dim=_canonical_dim(dim, input.ndim), keepdim=bool(keepdim))
    if name in _ELEMENTWISE:
        return _input_mask(input, mask=mask)
    raise ValueError(f"_output_mask expected masked operation (got {op!r})")


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions, sorted and not negative; all of them for None and (). RuntimeError for repeated, IndexError for absent ones."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        dims.append(d % ndim)
    return tuple(sorted(dims))


def _lowest(input: Any) -> Any:
    if input.is_floating_point():
        return float("-inf")
    if input.is_complex() or input.dtype == trt.bool:
        raise NotImplementedError(f"identity of amax on {input.dtype} input")
    return iinfo(input.dtype).min


def _highest(input: Any) -> Any:
    if input.is_floating_point():
        return float("inf")
    if input.is_complex() or input.dtype == trt.bool:
        raise NotImplementedError(f"identity of amin on {input.dtype} input")
    return iinfo(input.dtype).max


def _filled(input: Any, mask: Any, name: str, value: Any) -> Any:
    """The input with `value`, a number or a function of the input, where the mask is False. ValueError unless the input is strided."""
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        raise ValueError(f"masked {name} expects strided tensor (got {input.layout} tensor)")
    if mask is None:
        return input
    if callable(value):
        value = value(input)
    return trt.where(_input_mask(input, mask=mask), input, trt.full((), value, dtype=input.dtype, device=input.device))


def _sum_dtype(input: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return trt.int64 if str(input.dtype) in _PROMOTED else input.dtype


# ---- reductions ----------------------------------------------------------------------------------------------------


def sum(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sum over dim (an int, several, or all for None) of the elements that count, 0 where none does. dtype: the result's; int64 for
    narrower integers and bool.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.sum(x, mask=mask)
        tensor(3.)
    """
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        return sparse_layouts().reduced("sum", input, _canonical_dim(dim, input.ndim), bool(keepdim), _sum_dtype(input, dtype), mask)
    filled = _filled(input, mask, "sum", 0)
    return filled.sum(_canonical_dim(dim, input.ndim), bool(keepdim), dtype=_sum_dtype(input, dtype))


def prod(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The product over dim of the elements that count, 1 where none does. dtype as for `sum`.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([3.0, 4.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.prod(x, mask=mask)
        tensor(12.)
    """
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        return sparse_layouts().reduced("prod", input, _canonical_dim(dim, input.ndim), bool(keepdim), _sum_dtype(input, dtype), mask)
    result = _filled(input, mask, "prod", 1).to(dtype=_sum_dtype(input, dtype))
    for d in reversed(_canonical_dim(dim, input.ndim)):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def amax(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The largest over dim of the elements that count; where none does, minus infinity or the integers' least. Equal ones share the gradient.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.amax(x, mask=mask)
        tensor(2.)
    """
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        return sparse_layouts().reduced("amax", input, _canonical_dim(dim, input.ndim), bool(keepdim), dtype or input.dtype, mask)
    filled = _filled(input, mask, "amax", _lowest)
    return filled.amax(_canonical_dim(dim, input.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The least over dim of the elements that count; where none does, infinity or the integers' largest. Equal ones share the gradient.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([0.0, 2.0, 3.0]), trt.tensor([False, True, True])
        >>> trt.masked.amin(x, mask=mask)
        tensor(2.)
    """
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        return sparse_layouts().reduced("amin", input, _canonical_dim(dim, input.ndim), bool(keepdim), dtype or input.dtype, mask)
    filled = _filled(input, mask, "amin", _highest)
    return filled.amin(_canonical_dim(dim, input.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The position along dim (None: in the flattened input) of the largest element that counts, in `dtype`, the input's by default.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int or None, default None): the dimension that is reduced; None flattens the input
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.argmax(x, mask=mask).item()
        1.0
    """
    return _filled(input, mask, "argmax", _lowest).argmax(dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The position along dim (None: in the flattened input) of the least element that counts, in `dtype`, the input's by default.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int or None, default None): the dimension that is reduced; None flattens the input
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([0.0, 3.0, 2.0]), trt.tensor([False, True, True])
        >>> trt.masked.argmin(x, mask=mask).item()
        2.0
    """
    return _filled(input, mask, "argmin", _highest).argmin(dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    """How many elements count along dim, int64."""
    counted = trt.ones(input.shape, dtype=trt.int64, device=input.device) if mask is None else _input_mask(input, mask=mask)
    return counted.sum(_canonical_dim(dim, input.ndim), keepdim, dtype=trt.int64)


def mean(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The mean over dim of the elements that count, nan where none does. ValueError where neither dtype nor the input's is floating or complex.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.mean(x, mask=mask)
        tensor(1.5000)
    """
    source, kind = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {kind}")
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        return sparse_layouts().mean(input, _canonical_dim(dim, input.ndim), bool(keepdim), kind, mask)
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / _count(input, dim, bool(keepdim), mask)


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The median along dim of the elements that count, the lower one of two; nan where none does, ValueError then for integers.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, default -1): the dimension that is reduced
        keepdim (bool, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.median(x, 0, mask=mask)
        tensor(1.)
    """
    d = _canonical_dim(dim, input.ndim)[0]
    data, mask = _data_and_mask(input, mask)
    is_float = data.is_floating_point()
    output = _filled(data if is_float else data.to(trt.float32), mask, "median", float("nan")).nanmedian(d, keepdim).values
    if is_float:
        return output
    if output.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return output.to(dtype=dtype or input.dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """log(sum(exp(input))) over dim of the elements that count, minus infinity where none does.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([0.0, 0.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.logsumexp(x, 0, mask=mask)
        tensor(0.6931)
    """
    filled = _filled(input, mask, "logsumexp", lambda t: complex(float("-inf"), 0) if t.is_complex() else _lowest(t))
    return filled.logsumexp(_canonical_dim(dim, input.ndim), keepdim=keepdim).to(dtype=dtype or input.dtype)


def norm(input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The vector norm of order `ord` over dim of the elements that count; where none does 0, infinity for ord=-inf.

    Parameters:
        input (Tensor): any shape, (*)
        ord (float or None, default 2.0): the exponent of the norm
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([3.0, 4.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.norm(x, 2.0, 0, mask=mask)
        tensor(5.)
    """
    filled = _filled(input, mask, "norm", float("inf") if ord == float("-inf") else 0)
    return linalg.vector_norm(filled, ord, _canonical_dim(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)


def _variance(input: Any, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool, dtype: Any, mask: Any) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    input, mask = _data_and_mask(input, mask)
    if input.layout != trt.strided:
        raise ValueError(f"masked std/var expects strided tensor (got {input.layout} tensor)")
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        kind = trt.float32
    count = _count(input, dim, True, mask)
    deviation = input - sum(input, dim, keepdim=True, dtype=dtype or kind, mask=mask) / count
    total = sum(deviation * deviation.conj(), dim, keepdim=keepdim, dtype=kind, mask=mask)
    count = count.reshape(total.shape)
    if correction != 0:
        count = (count.to(trt.zeros((), dtype=kind).abs().dtype) - correction).clamp(min=0)
    return (total / count).to(dtype=dtype or kind)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """The variance over dim of the n elements that count: squared deviations divided by n - correction (1 by default, 0 with unbiased=False).
    nan where none counts. AssertionError for both unbiased and correction.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        unbiased (bool or None, default None): the older form of correction; True is 1, False 0
        correction (float or None, default None): what is subtracted from the number of elements in the divisor; None is
            1
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 3.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.var(x, 0, unbiased=False, mask=mask)
        tensor(1.)
    """
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask)


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """The square root of `var`.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        unbiased (bool or None, default None): the older form of correction; True is 1, False 0
        correction (float or None, default None): what is subtracted from the number of elements in the divisor; None is
            1
        keepdim (bool or None, default False): whether reduced dimensions stay, with size 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 3.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.std(x, 0, unbiased=False, mask=mask)
        tensor(1.)
    """
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask).sqrt()


# ---- scans and normalizations --------------------------------------------------------------------------------------


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running sums along dim in which masked-out elements count 0.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int): the dimension
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.cumsum(x, 0, mask=mask)
        tensor([1., 3., 3.])
    """
    return _filled(input, mask, "cumsum", 0).cumsum(_canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running products along dim in which masked-out elements count 1.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int): the dimension
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.cumprod(x, 0, mask=mask)
        tensor([1., 2., 2.])
    """
    return _filled(input, mask, "cumprod", 1).cumprod(_canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """softmax along dim of the elements that count: 0 for others, nan where none counts.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int): the dimension along which the result sums to 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 1.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.softmax(x, 0, mask=mask)
        tensor([0.5000, 0.5000, 0.0000])
    """
    return _filled(input, mask, "softmax", _lowest).softmax(_canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """log(softmax) along dim of the elements that count: minus infinity for others, nan where none counts.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int): the dimension
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 2.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.log_softmax(x, 0, mask=mask)
        tensor([-1.3133, -0.3133,    -inf])
    """
    return _filled(input, mask, "log_softmax", _lowest).log_softmax(_canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """softmax of the negated input along dim: 0 for elements that do not count.

    Parameters:
        input (Tensor): any shape, (*)
        dim (int): the dimension along which the result sums to 1
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([1.0, 1.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.softmin(x, 0, mask=mask)
        tensor([0.5000, 0.5000, 0.0000])
    """
    return _nn.functional.softmin(_filled(input, mask, "softmin", _highest), _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """The elements that count divided by their norm of order `ord` along dim, at least eps; others 0.

    Parameters:
        input (Tensor): any shape, (*)
        ord (float): the exponent of the norm
        dim (int): the dimension
        eps (float, default 1e-12): the smallest divisor
        dtype (dtype or None, default None): the type of the result; None is the default
        mask (Tensor or None, default None): the mask, of bool; True counts; None counts all

    Example:
        >>> import tensorrt_lite as trt
        >>> x, mask = trt.tensor([3.0, 4.0, 9.0]), trt.tensor([True, True, False])
        >>> trt.masked.normalize(x, 2.0, 0, mask=mask)
        tensor([0.6000, 0.8000, 0.0000])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, "normalize", 0) / length.maximum(length.new_full((), eps))


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """log(exp(input) + exp(other)) of the elements that count: where one of both is masked out the other, minus infinity where both are.

    Parameters:
        input (Tensor): any shape, (*)
        other (Tensor): the second operand
        dtype (dtype or None, default None): the type of the result; None is the default
        input_mask (Tensor or None, default None): the mask of the input, of bool; True counts
        other_mask (Tensor or None, default None): the mask of the other, of bool; True counts

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.masked.logaddexp(trt.tensor([0.0]), trt.tensor([0.0]))
        tensor([0.6931])
    """
    return _filled(input, input_mask, "logaddexp", _lowest).logaddexp(_filled(other, other_mask, "logaddexp", _lowest)).to(dtype=dtype or input.dtype)


_REDUCTIONS = {"sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "logsumexp", "norm", "var", "std"}
_ELEMENTWISE = {"cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize"}
