"""Five vision models, forward and backward, on images of 128 x 128; and the shapes of their convolutions that the suite `conv` has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row
from ..vision import MODELS
from .conv import Shape, backward_pass, forward_pass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_SIDE = 128
SHAPES = (
    Shape(8, 512, 512, 4, 3),
    Shape(8, 512, 512, 2, 3),
    Shape(8, 512, 512, 7, 3),
    Shape(8, 256, 512, 14, 3, stride=2),
    Shape(8, 2048, 512, 7, 1),
    Shape(8, 960, 240, 1, 1),
    Shape(8, 240, 240, 28, 5, stride=2, groups=240),
    Shape(8, 672, 672, 14, 5, groups=672),
    Shape(8, 960, 960, 7, 5, groups=960),
    Shape(8, 96, 96, 56, 7, groups=96),
    Shape(8, 768, 768, 7, 7, groups=768),
    Shape(8, 96, 192, 56, 2, stride=2),
    Shape(2, 3, 384, 224, 16, stride=16),
    Shape(1, 96, 192, 56, 4, stride=4),
    Shape(16, 128, 256, 16, 4, stride=2),
    Shape(2, 64, 1, 128, 1),
    Shape(4, 128, 3, 64, 1),
)


def _training(model: Callable[[Any], Any], batch: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        lib.manual_seed(0)
        network = model(lib)
        x = lib.randn(batch, 3, _SIDE, _SIDE)
        parameters = list(network.parameters())

        def step() -> None:
            for p in parameters:
                p.grad = None
            network(x).square().mean().backward()

        return step

    return build


def rows() -> list[Row]:
    found = [Row(f"{name}, batch {batch}", "vision", _training(model, batch), limit=0.9, slow=batch > 1) for name, model in MODELS.items() for batch in (1, 8)]
    found += [Row(shape.label, "vision", forward_pass(shape, False), limit=1.05) for shape in SHAPES]
    return [*found, *(Row(f"{shape.label}, backward", "vision", backward_pass(shape, False), limit=1.05) for shape in SHAPES)]
