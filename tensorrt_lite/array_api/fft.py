"""Discrete Fourier transforms of the array API standard. norm: 'backward' divides the inverse by n, 'ortho' both ways by its root, 'forward' the other one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorrt_lite import fft as _fft
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api._dtypes import require_array

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform along an axis, cut or padded with zeros to n. x: (*, m, *) -> (*, n, *), complex."""
    return _fft.fft(require_array("fft", x), n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of fft(). x: (*, m, *) -> (*, n, *), complex."""
    return _fft.ifft(require_array("ifft", x), n, axis, norm)


def fftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
    """The transform along several axes (all, or the last ones where only s is given), of sizes s. -> complex."""
    return _fft.fftn(require_array("fftn", x), s, axes, norm)


def ifftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
    """The inverse of fftn(). -> complex."""
    return _fft.ifftn(require_array("ifftn", x), s, axes, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The first half of the transform of real numbers. x: (*, m, *), real -> (*, n // 2 + 1, *), complex."""
    return _fft.rfft(require_array("rfft", x), n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of rfft(). x: (*, m, *), complex -> (*, n, *), real; n: 2 * (m - 1) by default."""
    return _fft.irfft(require_array("irfft", x), n, axis, norm)


def rfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
    """rfft() along the last of several axes, fft() along the others. x: real -> complex."""
    return _fft.rfftn(require_array("rfftn", x), s, axes, norm)


def irfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
    """The inverse of rfftn(). x: complex -> real."""
    return _fft.irfftn(require_array("irfftn", x), s, axes, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of a signal with Hermitian symmetry, of which x is the first half. x: (*, m, *), complex -> (*, n, *), real."""
    return _fft.hfft(require_array("hfft", x), n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of hfft(). x: (*, m, *), real -> (*, n // 2 + 1, *), complex."""
    return _fft.ihfft(require_array("ihfft", x), n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft() of n samples at distance d, in cycles per unit of d. -> (n)."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft() of n samples at distance d, in cycles per unit of d. -> (n // 2 + 1)."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Frequency 0 moved to the middle of axes (all where None)."""
    return _fft.fftshift(require_array("fftshift", x), axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The inverse of fftshift()."""
    return _fft.ifftshift(require_array("ifftshift", x), axes)
