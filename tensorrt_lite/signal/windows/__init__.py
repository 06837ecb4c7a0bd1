"""torch.signal.windows: M weights (M,) by which a signal's frame is multiplied before its spectrum is computed.

All take `sym`: symmetric windows, for filters; without it the window is periodic, M of the M + 1 numbers of a symmetric one. dtype: float32, float64 or None, the
default dtype; layout: strided; device, requires_grad: as everywhere. ValueError for a negative M and for other dtypes and layouts. Definitions: F. J. Harris, "On
the use of windows for harmonic analysis with the discrete Fourier transform", Proc. IEEE 66 (1978).
"""

from __future__ import annotations

from math import pi, sqrt

from tensorrt_lite import _ops
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.dtype import get_default_dtype as _default_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tensorrt_lite import Tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]
_FLOATS = (_dtype_by_name("float32"), _dtype_by_name("float64"))


def _options(name: str, M: int, dtype: Any, layout: Any, device: Any) -> dict[str, Any]:
    """What the window's factories are given; ValueError for what no window is made of."""
    dtype = _default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in _FLOATS:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {"dtype": dtype, "layout": layout, "device": device}


def _line(M: int, start: float, step: float, options: dict[str, Any]) -> Tensor:
    """M numbers from start on."""
    return _ops.linspace(start, start + (M - 1) * step, M, **options)


def _finished(window: Tensor, requires_grad: bool) -> Tensor:
    return window.requires_grad_() if requires_grad else window


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False
) -> Tensor:
    """exp(-|k - center| / tau), center the middle unless given. ValueError for tau of 0 or less, and for a center of a symmetric window.

    Parameters:
        M (int): how many values there are
        center (float or None, default None): where the maximum is; None is the middle
        tau (float, default 1.0): how slowly it falls
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    options = _options("exponential", M, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    return _finished(_ops.exp(-_ops.abs(_line(M, -middle / tau, 1 / tau, options))), requires_grad)


def cosine(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """sin(pi (k + 1/2) / M).

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    options = _options("cosine", M, dtype, layout, device)
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    step = pi / (M + 1 if not sym and M > 1 else M)
    return _finished(_ops.sin(_line(M, 0.5 * step, step, options)), requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """exp(-(k - middle)^2 / (2 std^2)). ValueError for std of 0 or less.

    Parameters:
        M (int): how many values there are
        std (float, default 1.0): the standard deviation
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.gaussian(5)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    options = _options("gaussian", M, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    step, middle = 1 / (std * sqrt(2)), (M if not sym and M > 1 else M - 1) / 2.0
    k = _line(M, -middle * step, step, options)
    return _finished(_ops.exp(-(k * k)), requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1. ValueError for a negative beta.

    Parameters:
        M (int): how many values there are
        beta (float, default 12.0): the shape: the greater it is, the narrower is the window
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.kaiser(5, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    options = _options("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    if M == 1:
        return _ops.ones((1,), requires_grad=requires_grad, **options)
    end = min(beta, -beta + 2.0 * beta * (M - 1) / (M - 1 if sym else M))
    size = _ops.full((), beta, **options)
    k = _ops.linspace(-beta, end, M, **options)
    return _finished(_ops.i0(_ops.sqrt(size * size - k * k)) / _ops.i0(size), requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """a_0 - a_1 cos(x) + a_2 cos(2 x) - ..., x from 0 to 2 pi. TypeError for coefficients that are no sequence, ValueError for none.

    Parameters:
        M (int): how many values there are
        a (sequence of floats): the coefficients
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _options("general_cosine", M, dtype, layout, device)
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    if M == 1:
        return _ops.ones((1,), requires_grad=requires_grad, **options)
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    signed = [(-1) ** i * w for i, w in enumerate(a)]
    if not signed:
        raise ValueError("Coefficients cannot be empty")
    x = _line(M, 0.0, 2 * pi / (M - 1 if sym else M), options)
    weights = _ops.tensor(signed, dtype=options["dtype"], device=device)
    orders = _ops.arange(len(signed), dtype=options["dtype"], device=device)
    return _finished((weights.unsqueeze(-1) * _ops.cos(orders.unsqueeze(-1) * x)).sum(0), requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """alpha - (1 - alpha) cos(x), x from 0 to 2 pi.

    Parameters:
        M (int): how many values there are
        alpha (float, default 0.54): the first coefficient
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.general_hamming(5, alpha=0.5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """0.54 - 0.46 cos(x), x from 0 to 2 pi.

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """0.5 - 0.5 cos(x), x from 0 to 2 pi.

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """0.42 - 0.5 cos(x) + 0.08 cos(2 x), x from 0 to 2 pi.

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.blackman(5).abs().round(decimals=2)
        tensor([0.0000, 0.3400, 1.0000, 0.3400, 0.0000])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """Nuttall's minimum of four terms: coefficients 0.3635819, 0.4891775, 0.1365995 and 0.0106411.

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.nuttall(5).round(decimals=3)
        tensor([0.0000, 0.2270, 1.0000, 0.2270, 0.0000])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype=None, layout=None, device=None, requires_grad: bool = False) -> Tensor:
    """A triangle: 1 - |x|, x from -1 to 1.

    Parameters:
        M (int): how many values there are
        sym (bool, default True): whether the window is symmetric; else it is one period, as transforms need it
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _options("bartlett", M, dtype, layout, device)
    if M == 0:
        return _ops.empty((0,), requires_grad=requires_grad, **options)
    if M == 1:
        return _ops.ones((1,), requires_grad=requires_grad, **options)
    return _finished(1 - _ops.abs(_line(M, -1.0, 2 / (M - 1 if sym else M), options)), requires_grad)


def __dir__() -> list[str]:
    return sorted(__all__)
