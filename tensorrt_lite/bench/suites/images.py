"""Resampling of images: interpolation, grids, windows, margins; forward, and forward with backward (names ending in +)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05
# (N, C, H, W) by name, small feature maps and a photograph
_IMAGES: dict[str, tuple[int, ...]] = {"features": (4, 32, 64, 64), "photo": (1, 3, 512, 512), "volume": (1, 8, 16, 32, 32), "columns": (4, 288, 4096)}


def _of(image: str, last: bool, backward: bool, call: Callable[[Any, Any], Any]) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x = lib.randn(*_IMAGES[image])
        if last:
            x = x.contiguous(memory_format=lib.channels_last)
        functional = lib.nn.functional
        if not backward:
            return lambda: call(functional, x)
        x.requires_grad_()
        g = lib.ones_like(call(functional, x))

        def step() -> None:
            x.grad = None
            call(functional, x).backward(g)

        return step

    return build


def _grid_sample(mode: str) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, grid = lib.randn(4, 32, 64, 64), lib.rand(4, 64, 64, 2) * 2.2 - 1.1
        return lambda: lib.nn.functional.grid_sample(x, grid, mode, align_corners=False)

    return build


def _grid_sample_backward(lib: Any, threads: int) -> Work:
    x, grid = lib.randn(4, 32, 64, 64).requires_grad_(), (lib.rand(4, 64, 64, 2) * 2.2 - 1.1).requires_grad_()

    def step() -> None:
        x.grad = grid.grad = None
        lib.nn.functional.grid_sample(x, grid, align_corners=False).sum().backward()

    return step


_ROWS: list[tuple[str, str, bool, Callable[[Any, Any], Any]]] = [
    ("nearest 2x", "features", False, lambda f, x: f.interpolate(x, scale_factor=2)),
    ("nearest 2x last", "features", True, lambda f, x: f.interpolate(x, scale_factor=2)),
    ("nearest 3d 2x", "volume", False, lambda f, x: f.interpolate(x, scale_factor=2)),
    ("bilinear 2x", "features", False, lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear")),
    ("bilinear 2x last", "features", True, lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear")),
    ("bilinear 512 to 224", "photo", False, lambda f, x: f.interpolate(x, size=224, mode="bilinear")),
    ("bilinear 512 to 1024", "photo", False, lambda f, x: f.interpolate(x, size=1024, mode="bilinear")),
    ("antialias 512 to 224", "photo", False, lambda f, x: f.interpolate(x, size=224, mode="bilinear", antialias=True)),
    ("bicubic 2x", "features", False, lambda f, x: f.interpolate(x, scale_factor=2, mode="bicubic")),
    ("trilinear 2x", "volume", False, lambda f, x: f.interpolate(x, scale_factor=2, mode="trilinear")),
    ("area 64 to 20", "features", False, lambda f, x: f.interpolate(x, size=20, mode="area")),
    ("unfold 3", "features", False, lambda f, x: f.unfold(x, 3, padding=1)),
    ("fold 3", "columns", False, lambda f, x: f.fold(x, (64, 64), 3, padding=1)),
    ("pad constant", "features", False, lambda f, x: f.pad(x, (2, 2, 2, 2))),
    ("pad reflect", "features", False, lambda f, x: f.pad(x, (2, 2, 2, 2), "reflect")),
    ("pad replicate", "features", False, lambda f, x: f.pad(x, (2, 2, 2, 2), "replicate")),
    ("pad circular", "features", False, lambda f, x: f.pad(x, (2, 2, 2, 2), "circular")),
    ("pixel_shuffle 2", "features", False, lambda f, x: f.pixel_shuffle(x, 2)),
    ("pixel_unshuffle 2", "features", False, lambda f, x: f.pixel_unshuffle(x, 2)),
]


def rows() -> list[Row]:
    found = [
        Row(name + "+" * backward, "images", _of(image, last, backward, call), limit=_AT_OR_UNDER)
        for name, image, last, call in _ROWS
        for backward in (False, True)
    ]
    found += [Row(f"grid_sample {mode}", "images", _grid_sample(mode), limit=_AT_OR_UNDER) for mode in ("bilinear", "nearest", "bicubic")]
    return [*found, Row("grid_sample bilinear+", "images", _grid_sample_backward, limit=_AT_OR_UNDER)]
