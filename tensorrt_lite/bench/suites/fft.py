"""Fourier transforms: one line and batches of long and short lines, powers of two, products of 3, 5 and 7, primes, images, complex and real, both precisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05
_SHORT_DOUBLE = 1.5  # batches of short lines in double: the work of a group of four lines is mostly that of moving them
_SHAPES = [(64,), (1024,), (1000,), (4096,), (65536,), (1009,), (30030,), (1000, 32), (256, 64), (1000, 128), (64, 1024), (64, 1000), (8, 1009), (16, 4096)]
_IMAGES = [(3, 224, 224), (512, 512), (4, 96, 100)]
# in both precisions, forward and back
_PAIRS = [(105,), (2187,), (3125,), (2401,), (127,), (100003,), (10000, 8), (4096, 15), (512, 31), (300, 105), (100, 127), (20, 3125)]
# many short lines: that lie in a near cache, and that do not
_SHORT = [(2000, 2), (375, 8), (3000, 10), (5714, 35), (12500, 16), (28571, 7), (100000, 2)]


def _of(shape: tuple[int, ...], dtype: str, call: Callable[[Any, Any], Any]) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x = lib.randn(*shape, dtype=getattr(lib, dtype))
        return lambda: call(lib.fft, x)

    return build


def rows() -> list[Row]:
    made = []
    for shape in _SHAPES:
        name = "x".join(map(str, shape))
        made.append(Row(f"fft {name}", "fft", _of(shape, "complex64", lambda f, x: f.fft(x)), limit=_AT_OR_UNDER))
        made.append(Row(f"rfft {name}", "fft", _of(shape, "float32", lambda f, x: f.rfft(x)), limit=_AT_OR_UNDER))
    for shape in _IMAGES:
        name = "x".join(map(str, shape))
        made.append(Row(f"fft2 {name}", "fft", _of(shape, "complex64", lambda f, x: f.fft2(x)), limit=_AT_OR_UNDER))
        made.append(Row(f"rfft2 {name}", "fft", _of(shape, "float32", lambda f, x: f.rfft2(x)), limit=_AT_OR_UNDER))
    for shape in _PAIRS:
        name = "x".join(map(str, shape))
        for real, spectrum, kind in (("float32", "complex64", ""), ("float64", "complex128", " double")):
            limit = _SHORT_DOUBLE if kind and shape[-1] < 16 and len(shape) > 1 else _AT_OR_UNDER
            made.append(Row(f"ifft{kind} {name}", "fft", _of(shape, spectrum, lambda f, x: f.ifft(x)), limit=limit))
            made.append(Row(f"rfft{kind} {name}", "fft", _of(shape, real, lambda f, x: f.rfft(x)), limit=limit))
            made.append(Row(f"irfft{kind} {name}", "fft", _of(shape, spectrum, lambda f, x: f.irfft(x)), limit=limit))
    for shape in _SHORT:
        name = "x".join(map(str, shape))
        made.append(Row(f"fft {name}", "fft", _of(shape, "complex64", lambda f, x: f.fft(x)), limit=_AT_OR_UNDER))
        made.append(Row(f"fft double {name}", "fft", _of(shape, "complex128", lambda f, x: f.fft(x)), limit=_SHORT_DOUBLE))
    made.append(Row("fft double columns 15x13333", "fft", _of((15, 13333), "complex128", lambda f, x: f.fft(x, dim=0)), limit=_SHORT_DOUBLE))
    made.append(Row("fft double 64x1024", "fft", _of((64, 1024), "complex128", lambda f, x: f.fft(x)), limit=_AT_OR_UNDER))
    made.append(Row("fft columns 1024x512", "fft", _of((1024, 512), "complex64", lambda f, x: f.fft(x, dim=0)), limit=_AT_OR_UNDER))
    return made
