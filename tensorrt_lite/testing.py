"""Comparison and creation of tensors for tests, with PyTorch's semantics and messages (`torch.testing`)."""

# Nothing in the package imports this module; NumPy is touched only when a caller hands in NumPy values.

from __future__ import annotations

import cmath
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite._functions.dtype_limits import iinfo
from tensorrt_lite.tensor import Tensor
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")

__all__ = ["assert_close", "make_tensor"]

# Default (rtol, atol); all other dtypes compare exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_NUMBER_DTYPES = {int: "int64", float: "float64", complex: "complex128"}


class _Mismatch(Exception):
    """A failed comparison before the caller's `msg` is applied; `item` is the path into nested containers."""

    def __init__(self, kind: type[Exception], text: str, item: tuple[Any, ...]) -> None:
        super().__init__(text)
        self.kind, self.text, self.item = kind, text, item

    def error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.item:
            text += f"\n\nThe failure occurred for item {''.join(f'[{part!r}]' for part in self.item)}"
        return self.kind(msg(text) if msg is not None else text)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Asserts `|actual - expected| <= atol + rtol * |expected|` and equal shape, dtype, device and layout.

    actual, expected: tensors, numbers, bools, None, NumPy values, or sequences and mappings of these, nested.
    Tolerances left out are chosen by dtype (float32: rtol 1.3e-6, atol 1e-5; float64: 1e-7, 1e-7; float16: 1e-3, 1e-5;
    bfloat16: 1.6e-2, 1e-5; integers and bool: exact). Of sparse tensors the indices are compared exactly, as they are
    stored, and the values within the tolerances; of nested ones the values. `msg` replaces the message, or makes it of the generated one.
    AssertionError when they are not close; ValueError when only one tolerance is given; TypeError when the inputs are
    of unrelated types.

    Parameters:
        actual: (object) the result
        expected: (object) what it should be
        allow_subclasses (bool, default True): whether inputs may be of different classes
        rtol (float or None, default None): the relative tolerance; None chooses by dtype
        atol (float or None, default None): the absolute tolerance; None chooses by dtype
        equal_nan (bool, default False): whether NaN equals NaN
        check_device (bool, default True): whether devices must agree
        check_dtype (bool, default True): whether dtypes must agree
        check_layout (bool, default True): whether layouts must agree
        check_stride (bool, default False): whether strides must agree
        msg (str, function or None, default None): the message of the error, or what makes it of the generated one

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.testing.assert_close(trt.tensor([1.0]), trt.tensor([1.0 + 1e-7]))
    """
    __tracebackhide__ = True

    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
    }
    # All inputs are paired before any is compared, so that a wrong structure is reported first.
    error: Exception | None = None
    try:
        comparisons = _pair(actual, expected, (), options)
    except _Mismatch as mismatch:
        error = mismatch.error()
    else:
        for compare in comparisons:
            try:
                compare()
            except _Mismatch as mismatch:
                error = mismatch.error(msg)
                break
    if error is not None:
        raise error


def _pair(actual: Any, expected: Any, item: tuple[Any, ...], options: dict[str, Any]) -> list[Callable[[], None]]:
    """The comparisons that two possibly nested inputs ask for."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _Mismatch(AssertionError, text, item)
        return [compare for i in range(len(actual)) for compare in _pair(actual[i], expected[i], (*item, i), options)]
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        keys, wanted = set(actual), set(expected)
        if keys != wanted:
            text = (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(wanted - keys)}\n"
                f"Additional keys in the actual mapping: {sorted(keys - wanted)}"
            )
            raise _Mismatch(AssertionError, text, item)
        try:
            ordered: Sequence[Any] = sorted(keys)
        except TypeError:
            ordered = list(actual)
        return [compare for key in ordered for compare in _pair(actual[key], expected[key], (*item, key), options)]
    for kind in (_none_pair, _bool_pair, _number_pair, _tensor_pair):
        compare = kind(actual, expected, item, options)
        if compare is not None:
            return [compare]
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise _Mismatch(TypeError, text, item)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _numpy_type(name: str) -> tuple[type, ...]:
    """The NumPy type of that name, if the program has imported NumPy; without it no value can be of that type."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


def _none_pair(actual: Any, expected: Any, item: tuple[Any, ...], options: dict[str, Any]) -> Callable[[], None] | None:
    if actual is not None and expected is not None:
        return None

    def compare() -> None:
        if actual is not expected:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", item)

    return compare


def _bool_pair(actual: Any, expected: Any, item: tuple[Any, ...], options: dict[str, Any]) -> Callable[[], None] | None:
    types = (bool, *_numpy_type("bool_"))
    if not isinstance(actual, types) or not isinstance(expected, types):
        return None
    mine, theirs = bool(actual), bool(expected)

    def compare() -> None:
        if mine is not theirs:
            raise _Mismatch(AssertionError, f"Booleans mismatch: {mine} is not {theirs}", item)

    return compare


def _number_pair(
    actual: Any, expected: Any, item: tuple[Any, ...], options: dict[str, Any]
) -> Callable[[], None] | None:
    from_numpy = _numpy_type("number")
    types = (int, float, complex, *from_numpy)
    if not isinstance(actual, types) or not isinstance(expected, types):
        return None
    mine = actual.item() if isinstance(actual, from_numpy) else actual
    theirs = expected.item() if isinstance(expected, from_numpy) else expected
    dtypes = []
    for number in (mine, theirs):
        # A bool that stands against a number has no dtype among numbers.
        if type(number) not in _NUMBER_DTYPES:
            return None
        dtypes.append(_NUMBER_DTYPES[type(number)])
    rtol, atol = _tolerances(dtypes, item, options)

    def compare() -> None:
        if options["check_dtype"] and type(mine) is not type(theirs):
            text = f"The (d)types do not match: {type(mine)} != {type(theirs)}."
            raise _Mismatch(AssertionError, text, item)
        if mine == theirs or (options["equal_nan"] and cmath.isnan(mine) and cmath.isnan(theirs)):
            return
        difference = abs(mine - theirs)
        if cmath.isfinite(difference) and difference <= atol + rtol * abs(theirs):
            return
        _fail_scalars(mine, theirs, rtol, atol, item)

    return compare


def _tensor_pair(
    actual: Any, expected: Any, item: tuple[Any, ...], options: dict[str, Any]
) -> Callable[[], None] | None:
    if not isinstance(actual, type(expected)) and not isinstance(expected, type(actual)):
        return None
    if not options["allow_subclasses"] and _class(actual) is not _class(expected):
        return None
    tensors = []
    for value in (actual, expected):
        if not isinstance(value, Tensor):
            try:
                value = trt.as_tensor(value)
            except (TypeError, ValueError, RuntimeError):
                return None
        tensors.append(value.detach())
    mine, theirs = tensors
    rtol, atol = _tolerances([_dtype_name(mine), _dtype_name(theirs)], item, options)

    def compare() -> None:
        _compare_attributes(mine, theirs, item, options)
        if "meta" not in (mine.device.type, theirs.device.type):
            _compare_values(mine, theirs, rtol, atol, item, options)

    return compare


def _class(value: Any) -> type:
    """The class of a value; of a sparse tensor, which PyTorch knows by its layout alone, Tensor."""
    sparse = sys.modules.get("tensorrt_lite._sparse.tensor")
    return Tensor if sparse is not None and type(value) is sparse.SparseTensor else type(value)


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _tolerances(dtypes: list[str], item: tuple[Any, ...], options: dict[str, Any]) -> tuple[float, float]:
    """(rtol, atol) as given, or the loosest defaults of the dtypes."""
    rtol, atol = options["rtol"], options["atol"]
    if (rtol is None) != (atol is None):
        absent = "rtol" if rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}."
        raise _Mismatch(ValueError, text, item)
    if rtol is not None:
        return rtol, atol
    defaults = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(pair[0] for pair in defaults), max(pair[1] for pair in defaults)


def _compare_attributes(actual: Tensor, expected: Tensor, item: tuple[Any, ...], options: dict[str, Any]) -> None:
    def differ(name: str, mine: Any, theirs: Any) -> NoReturn:
        text = f"The values for attribute '{name}' do not match: {mine} != {theirs}."
        raise _Mismatch(AssertionError, text, item)

    if actual.shape != expected.shape:
        differ("shape", actual.shape, expected.shape)
    if actual.layout != expected.layout:
        if options["check_layout"]:
            differ("layout", actual.layout, expected.layout)
    elif actual.layout == trt.strided and options["check_stride"] and actual.stride() != expected.stride():
        differ("stride()", actual.stride(), expected.stride())
    if options["check_device"] and actual.device != expected.device:
        differ("device", actual.device, expected.device)
    if options["check_dtype"] and actual.dtype != expected.dtype:
        differ("dtype", actual.dtype, expected.dtype)


def _compare_values(
    actual: Tensor, expected: Tensor, rtol: float, atol: float, item: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """actual, expected: equal shapes, any dtypes, devices and layouts."""
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = trt.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.layout != expected.layout:
        actual, expected = (x if x.layout == trt.strided else x.to_dense() for x in (actual, expected))

    equal_nan = options["equal_nan"]
    if actual.layout == trt.strided:
        if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (rtol != 0 or atol != 0):
            text = f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional floats."
            raise _Mismatch(AssertionError, f"{text} Please use rtol=0.0 and atol=0.0.", item)
        _compare_elements(actual, expected, rtol, atol, item, equal_nan)
    elif actual.layout == trt.jagged:
        _compare_elements(actual.values(), expected.values(), rtol, atol, item, equal_nan)
    else:
        _compare_sparse(actual, expected, rtol, atol, item, equal_nan)


# What a message calls a compressed layout, and the accessors of its compressed and its plain indices.
_COMPRESSED = {
    trt.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    trt.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    trt.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    trt.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}


def _compare_sparse(
    actual: Tensor, expected: Tensor, rtol: float, atol: float, item: tuple[Any, ...], equal_nan: bool
) -> None:
    """Indices must be equal as they are stored (COO tensors are not coalesced first), values close."""

    def same_number(what: str, mine: int, theirs: int) -> None:
        if mine != theirs:
            raise _Mismatch(AssertionError, f"The number of {what} tensors does not match: {mine} != {theirs}", item)

    if actual.layout == trt.sparse_coo:
        same_number("sparse dimensions in sparse COO", actual.sparse_dim(), expected.sparse_dim())
        same_number("specified values in sparse COO", actual._nnz(), expected._nnz())
        _compare_elements(actual._indices(), expected._indices(), 0, 0, item, False, "Sparse COO indices")
        _compare_elements(actual._values(), expected._values(), rtol, atol, item, equal_nan, "Sparse COO values")
        return
    name, *accessors = _COMPRESSED[actual.layout]
    same_number(f"specified values in sparse {name}", actual._nnz(), expected._nnz())
    for accessor in accessors:
        # Indices may be int32 in one tensor and int64 in the other.
        mine, theirs = (getattr(x, accessor)().to(trt.int64) for x in (actual, expected))
        _compare_elements(mine, theirs, 0, 0, item, False, f"Sparse {name} {accessor}")
    _compare_elements(actual.values(), expected.values(), rtol, atol, item, equal_nan, f"Sparse {name} values")


def _compare_elements(
    actual: Tensor,
    expected: Tensor,
    rtol: float,
    atol: float,
    item: tuple[Any, ...],
    equal_nan: bool,
    subject: str | None = None,
) -> None:
    """actual, expected: strided, of equal shapes, dtypes and devices; subject: what a message calls them."""
    matches = actual == expected
    inexact = actual.dtype.is_floating_point or actual.dtype.is_complex
    if equal_nan and inexact:
        matches = matches | ((actual != actual) & (expected != expected))
    if bool(matches.all()):
        return
    if inexact and actual.dtype.itemsize == 1:  # float8 has no arithmetic
        if actual.dim() == 0:
            _fail_scalars(actual.item(), expected.item(), rtol, atol, item, subject or "Scalars")
        text = f"{subject or 'Tensor-likes'} are not 'equal'!\n\n{_mismatched(matches)}"
        text += f"The first mismatched element is at index {tuple((~matches).nonzero()[0].tolist())}."
        raise _Mismatch(AssertionError, text, item)
    # The differences of integers are taken in int64, where those of narrower dtypes do not wrap.
    mine, theirs = (actual, expected) if inexact else (actual.to(trt.int64), expected.to(trt.int64))
    difference = (mine - theirs).abs()
    if rtol != 0 or atol != 0:
        allowed = atol + (rtol * theirs).abs()
        matches = matches | (trt.isfinite(difference) & (difference <= allowed))
        if bool(matches.all()):
            return
    if actual.dim() == 0:
        _fail_scalars(actual.item(), expected.item(), rtol, atol, item, subject or "Scalars")

    relative = difference / theirs.abs()
    difference, relative = difference.masked_fill(matches, 0).flatten(), relative.masked_fill(matches, 0).flatten()
    text = f"{subject or 'Tensor-likes'} are not {_closeness(rtol, atol)}!\n\n"
    text += _mismatched(matches)
    for name, values, tolerance in (("absolute", difference, atol), ("relative", relative, rtol)):
        place = int(values.argmax())
        index = _unravel(place, tuple(matches.shape))
        text += f"Greatest {name} difference: {values[place].item()} at index {index}"
        text += f"{_allowance(tolerance, rtol, atol)}\n"
    raise _Mismatch(AssertionError, text.strip(), item)


def _fail_scalars(
    actual: complex, expected: complex, rtol: float, atol: float, item: tuple[Any, ...], subject: str = "Scalars"
) -> NoReturn:
    absolute = abs(actual - expected)
    relative = math.inf if expected == 0 else absolute / abs(expected)
    text = f"{subject} are not {_closeness(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
    text += f"Absolute difference: {absolute}{_allowance(atol, rtol, atol)}\n"
    text += f"Relative difference: {relative}{_allowance(rtol, rtol, atol)}"
    raise _Mismatch(AssertionError, text, item)


def _mismatched(matches: Tensor) -> str:
    count, wrong = matches.numel(), int((~matches).sum())
    return f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})\n"


def _closeness(rtol: float, atol: float) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowance(tolerance: float, rtol: float, atol: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        place, within = divmod(place, size)
        index.append(within)
    return tuple(reversed(index))


def make_tensor(
    *shape: int | Sequence[int],
    dtype: trt.dtype,
    device: str | trt.device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: trt.memory_format | None = None,
) -> Tensor:
    """A tensor of values drawn uniformly from [low, high).

    Defaults: [-9, 9) for floating and complex dtypes, [-9, 10) for integers, [0, 10) for uint8, [0, 2) for bool.
    noncontiguous: every second element of a larger tensor, from the second on. exclude_zero: zeros become 1, or the
    smallest normal number. ValueError for an empty interval, NaN bounds, `requires_grad` of integers, or
    `noncontiguous` together with `memory_format`.

    Parameters:
        *shape (int or tuple of ints): the shape
        dtype (dtype): the type of the result
        device (device or str): where the result is
        low (float or None, default None): the smallest number; None chooses by dtype
        high (float or None, default None): the number above the largest; None chooses by dtype
        requires_grad (bool, default False): whether the result records gradients
        noncontiguous (bool, default False): whether elements are not next to each other in memory
        exclude_zero (bool, default False): whether zeros are replaced
        memory_format (default None): (memory_format or None) the order of dimensions in memory

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.testing.make_tensor(2, 3, dtype=trt.float32, device="cpu", low=0, high=1).shape
        torch.Size([2, 3])
    """
    sizes: list[int] = list(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)  # type: ignore[arg-type]
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not inexact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    strided = noncontiguous and math.prod(sizes) > 1
    if strided:
        sizes[-1] *= 2

    if inexact:
        info = finfo(dtype)
        bounds = _interval(low, high, -9, 9, info.min, info.max, dtype)
        result = trt.empty(sizes, device=device, dtype=dtype)
        _fill_uniform(trt.view_as_real(result) if dtype.is_complex else result, *bounds)
    else:
        if dtype == trt.bool:
            bounds = _interval(low, high, 0, 2, 0, 2, dtype)
        else:
            limits = iinfo(dtype)
            # randint's exclusive bound is an int64, so 2**63 cannot be said.
            end = limits.max + (dtype != trt.int64)
            bounds = _interval(low, high, -9, 10, limits.min, end, dtype)
        result = trt.randint(math.ceil(bounds[0]), math.ceil(bounds[1]), sizes, device=device, dtype=dtype)

    if strided:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if inexact else 1
    return result.requires_grad_() if requires_grad else result


def _interval(
    low: float | None, high: float | None, default_low: float, default_high: float, least: float, end: float, dtype: Any
) -> tuple[float, float]:
    """[low, high) with defaults, checked and clamped to what the dtype holds."""
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `make_tensor` for floating or complex types is deprecated. Use `full` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{least}, {end})"
        )
    return min(max(low, least), end), min(max(high, least), end)


def _fill_uniform(tensor: Tensor, low: float, high: float) -> None:
    # uniform_ cannot span more than the largest number; half of such an interval it can.
    if high - low >= finfo(tensor.dtype).max:
        tensor.uniform_(low / 2, high / 2).mul_(2)
    else:
        tensor.uniform_(low, high)


def __dir__() -> list[str]:
    return _listing.public(globals())
