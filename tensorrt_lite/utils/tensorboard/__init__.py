"""Event files for TensorBoard: scalars, histograms, images, figures, audio, text, embeddings, hyperparameters, precision-recall curves and graphs of models.

The files are encoded here; TensorBoard itself is needed to look at them, not to write them.

>>> import tempfile
>>> from tensorrt_lite.utils.tensorboard import SummaryWriter
>>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
...     for step in range(3):
...         writer.add_scalar("loss", 1 / (step + 1), step)
"""

from __future__ import annotations

from tensorrt_lite.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
