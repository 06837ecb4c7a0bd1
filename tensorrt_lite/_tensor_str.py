"""Printing of tensors, character for character like PyTorch's.

`Tensor.__repr__` is `tensor_repr`, `Parameter.__repr__` is `parameter_repr`; `set_printoptions` and its companions are
public in `tensorrt_lite`. Only the elements that are shown leave the tensor, by `tolist()`, and everything after that
is Python numbers, so printing needs nothing of the runtime but indexing.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.autograd.forward import get_tangent as _get_tangent
from tensorrt_lite._C.core.python_key import mode_stack as _mode_stack
from tensorrt_lite._C.core.python_key import has_key as _has_key
from tensorrt_lite._C.core.python_key import is_transformed as _is_transformed
from tensorrt_lite._C.core.python_key import materialize as _materialize

_nn = LazyModule("tensorrt_lite.nn")
_printing = LazyModule("tensorrt_lite._sparse.printing")
_transform = LazyModule("tensorrt_lite._C.core.transform")
_python_dispatch = LazyModule("tensorrt_lite.utils._python_dispatch")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

_PROFILES: dict[str, tuple[int, float, int, int]] = {
    # precision, threshold, edgeitems, linewidth
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


class _Options:
    """The options in force for the process."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision, self.threshold, self.edgeitems, self.linewidth = _PROFILES["default"]
        self.sci_mode: bool | None = None


_options = _Options()

# Stands in a nested list of elements for those left out.
_GAP = object()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print; what is not given stays, except `sci_mode`, which returns to automatic.

    precision: digits after the point. threshold: tensors with more elements show `edgeitems` at both ends of every
    dimension. linewidth: characters a line. profile: "default", "short" or "full", applied before the rest.
    sci_mode: scientific notation always (True), never (False) or as the values ask for (None).

    Parameters:
        precision (int or None, default None): digits after the point, 4 at first
        threshold (float or None, default None): tensors of more elements are abbreviated, 1000 at first
        edgeitems (int or None, default None): how many elements abbreviated ones show at both ends of each
            dimension, 3 at first
        linewidth (int or None, default None): characters in a line, 80 at first
        profile (str or None, default None): "default", "short" or "full", applied before the rest
        sci_mode (bool or None, default None): scientific notation always, never, or as the values ask for

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_printoptions(precision=2)
        >>> trt.tensor([3.14159])
        tensor([3.14])
        >>> trt.set_printoptions(profile="default")
    """
    if profile in _PROFILES:
        _options.precision, _options.threshold, _options.edgeitems, _options.linewidth = _PROFILES[profile]
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = threshold
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keywords for `set_printoptions`.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_printoptions()["precision"]
        4
    """
    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    return {name: getattr(_options, name) for name in names}


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Within the block tensors print with these options (those of `set_printoptions`).

    Parameters:
        **kwargs: the options, as set_printoptions() takes them

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.printoptions(precision=2):
        ...     print(trt.tensor([3.14159]))
        tensor([3.14])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Column:
    """How the numbers of one tensor are written: one width and one notation for all of them."""

    def __init__(self, values: list[Any], is_float: bool) -> None:
        self.is_float = is_float
        self.integral = True
        self.scientific = False
        self.width = 1
        if not is_float:
            self.width = max([1, *(len(str(value)) for value in values)])
            return
        # Zeros and non-finite numbers have no say in notation or width.
        telling = [value for value in values if value != 0 and math.isfinite(value)]
        if not telling:
            return
        sizes = [abs(value) for value in telling]
        low, high = min(sizes), max(sizes)
        self.integral = all(value.is_integer() for value in telling)
        if _options.sci_mode is None:
            self.scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            self.scientific = _options.sci_mode
        # An integral number carries a point without digits.
        point = 1 if self.integral and not self.scientific else 0
        self.width = max(len(self._number(value)) + point for value in telling)

    def _number(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        return f"{value:.0f}" if self.integral else f"{value:.{_options.precision}f}"

    def __call__(self, value: Any) -> str:
        if not self.is_float:
            return str(value).rjust(self.width)
        text = self._number(value)
        if self.integral and not self.scientific and math.isfinite(value):
            text += "."
        return text.rjust(self.width)


class _ComplexColumn:
    """Real and imaginary parts have a notation and a width each."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Column([value.real for value in values], True)
        self.imag = _Column([value.imag for value in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _shown(tensor: Tensor, summarize: bool) -> Any:
    """The elements to show as nested lists, with _GAP where some are left out."""
    if not summarize or tensor.dim() == 0:
        return tensor.tolist()
    edge, size = _options.edgeitems, tensor.size(0)
    gap = size > 2 * edge
    if tensor.dim() == 1:
        if not edge:
            return [_GAP]
        return [*tensor[:edge].tolist(), _GAP, *tensor[size - edge :].tolist()] if gap else tensor.tolist()
    if not gap:
        return [_shown(tensor[i], summarize) for i in range(size)]
    head = [_shown(tensor[i], summarize) for i in range(edge)]
    tail = [_shown(tensor[i], summarize) for i in range(size - edge, size)]
    return [*head, _GAP, *tail]


def _numbers(shown: Any) -> list[Any]:
    if isinstance(shown, list):
        return [number for item in shown for number in _numbers(item)]
    return [] if shown is _GAP else [shown]


def _layout(shown: Any, dim: int, indent: int, column: _Column | _ComplexColumn) -> str:
    if dim == 0:
        return column(shown)
    if dim == 1:
        # An omission within a vector takes the place of an element, with the space that would pad one.
        gap = "..." if shown == [_GAP] else " ..."
        cells = [gap if value is _GAP else column(value) for value in shown]
        count = max(1, (_options.linewidth - indent) // (column.width + 2))
        lines = [", ".join(cells[i : i + count]) for i in range(0, len(cells), count)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    blocks = ["..." if item is _GAP else _layout(item, dim - 1, indent + 1, column) for item in shown]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(blocks) + "]"


def _elements(tensor: Tensor, indent: int) -> str:
    shown = _shown(tensor, summarize=tensor.numel() > _options.threshold)
    numbers = _numbers(shown)
    is_float = tensor.dtype.is_floating_point
    column = _ComplexColumn(numbers) if tensor.dtype.is_complex else _Column(numbers, is_float)
    return _layout(shown, tensor.dim(), indent, column)


def _join(text: str, suffixes: list[str], indent: int) -> str:
    """Appends the suffixes, each on the last line while it fits."""
    # PyTorch counts two characters more than the last line has.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def _wrapper_repr(tensor: Tensor) -> str:
    """A tensor inside a functional transform: its level, and the value that it stands for (at a level of vmap the whole batch)."""
    value, level, dim = _transform.wrapper_parts(tensor)
    name, place = ("BatchedTensor", f", bdim={dim}") if level.kind == "vmap" else ("GradTrackingTensor", "")
    with ExitStack() as below:
        for _ in _transform.all_levels():
            below.enter_context(_transform.lowered())
        inner = tensor_repr(value)
    return f"{name}(lvl={level.number}{place}, value=\n{textwrap.indent(inner, '    ')}\n)"


def name_of_history(tensor: Tensor) -> str | None:
    """The name of the tensor's grad_fn, None without one. "Invalid" of a view whose base was written to, and that cannot be differentiated since."""
    try:
        return None if tensor.grad_fn is None else type(tensor.grad_fn).__name__
    except RuntimeError:
        return "Invalid"


def tensor_repr(tensor: Tensor) -> str:
    """The text of `repr(tensor)` and `str(tensor)`. Dispatch modes do not see what it reads."""
    if _mode_stack():
        with _python_dispatch._disable_current_modes():
            return tensor_repr(tensor)

    if _is_transformed([tensor]):
        return _wrapper_repr(tensor)
    if tensor.layout is not trt.strided:
        return _printing.sparse_repr(tensor)
    plain = type(tensor) is trt.Tensor or type(tensor) is _nn.Parameter
    prefix = "tensor(" if plain else f"{type(tensor).__name__}("
    values = _materialize(tensor, "repr") if _has_key(tensor) else tensor.detach()
    foreign = _has_key(values)  # its class runs its operators and knows its elements
    dtype, default = values.dtype, trt.get_default_dtype()
    default_complex = trt.complex128 if default == trt.float64 else trt.complex64
    size = f"size={tuple(values.shape)}"

    suffixes = []
    if values.device.type != "cpu":
        suffixes.append(f"device='{values.device}'")
    if foreign or values.device.type == "meta" or values.numel() == 0:
        text = "..." if foreign or values.device.type == "meta" else "[]"
        if text == "..." or values.dim() != 1:
            suffixes.append(size)
        # Without elements nothing else tells the dtype, so int64 and bool are named too.
        if dtype != default:
            suffixes.append(f"dtype={dtype}")
    else:
        if not _options.edgeitems:
            suffixes.append(size)
        if dtype not in (default, default_complex, trt.int64, trt.bool):
            suffixes.append(f"dtype={dtype}")
        text = _elements(values, len(prefix))
    name = name_of_history(tensor)
    if name is not None:
        suffixes.append(f"grad_fn=<{name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = _get_tangent(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_repr(tangent)}")
    return _join(prefix + text, suffixes, len(prefix))


def parameter_repr(parameter: Tensor) -> str:
    """The text of `repr(parameter)`."""
    return "Parameter containing:\n" + tensor_repr(parameter)
