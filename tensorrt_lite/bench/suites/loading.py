"""An epoch of a DataLoader with two worker processes: 256 images of 3x64x64 with augmentations in NumPy, in batches of 16.

Cost of the samples aside, what is timed is starting workers, handing out indices and passing batches; a persistent loader has only the latter two.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05


class _Images:
    """Flipped, shifted and normalised images, as vision programs make them."""

    def __init__(self, lib: Any) -> None:
        numpy = sys.modules["numpy"]
        self.lib, self.numpy = lib, numpy
        self.images = numpy.random.default_rng(0).integers(0, 255, (256, 64, 64, 3), dtype=numpy.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        numpy, image = self.numpy, self.images[index]
        if numpy.random.rand() < 0.5:
            image = image[:, ::-1]
        image = numpy.pad(image, ((4, 4), (4, 4), (0, 0)))
        row, column = numpy.random.randint(0, 8, 2)
        image = image[row : row + 64, column : column + 64].transpose(2, 0, 1)
        return self.lib.from_numpy(numpy.ascontiguousarray(image)).float().div_(255).sub_(0.5).div_(0.25), index % 10


def _epoch(dataset: Callable[[Any], Any], **options: Any) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        import numpy  # noqa: F401 (before workers are forked)

        data = dataset(lib)
        loader = lib.utils.data.DataLoader(data, 16, shuffle=True, num_workers=2, **options)

        def epoch() -> None:
            for images, _ in loader:
                images.sum()

        epoch()
        return epoch

    return build


def _tensors(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.rand(256, 3, 64, 64), lib.arange(256))


def rows() -> list[Row]:
    return [
        Row("images, 2 workers", "loading", _epoch(_Images), limit=_AT_OR_UNDER, slow=True),
        Row("images, 2 persistent workers", "loading", _epoch(_Images, persistent_workers=True), limit=_AT_OR_UNDER, slow=True),
        Row("tensors, 2 workers", "loading", _epoch(_tensors), limit=_AT_OR_UNDER, slow=True),
        Row("tensors, 2 persistent workers", "loading", _epoch(_tensors, persistent_workers=True), limit=_AT_OR_UNDER, slow=True),
    ]
