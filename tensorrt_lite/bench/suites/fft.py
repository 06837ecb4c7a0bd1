"""Fourier transforms: one line and batches of lines, powers of two, products of small primes and primes, images, complex and real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05
_SHAPES = [(64,), (1024,), (1000,), (4096,), (65536,), (1009,), (30030,), (1000, 32), (256, 64), (1000, 128), (64, 1024), (64, 1000), (8, 1009), (16, 4096)]
_IMAGES = [(3, 224, 224), (512, 512), (4, 96, 100)]


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
    made.append(Row("fft double 64x1024", "fft", _of((64, 1024), "complex128", lambda f, x: f.fft(x)), limit=_AT_OR_UNDER))
    made.append(Row("fft columns 1024x512", "fft", _of((1024, 512), "complex64", lambda f, x: f.fft(x, dim=0)), limit=_AT_OR_UNDER))
    return made
