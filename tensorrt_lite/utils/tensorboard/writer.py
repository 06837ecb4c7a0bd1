"""`SummaryWriter` and the file that it writes."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tensorrt_lite.utils.tensorboard import summary
from tensorrt_lite.utils.tensorboard._protobuf import data, double, integer, record
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_graph = _LazyModule("tensorrt_lite.utils.tensorboard._graph")

__all__ = ["FileWriter", "SummaryWriter"]

_numbers = count()


class FileWriter:
    """An event file in a folder, which is made. Events are kept until there are `max_queue` of them or `flush_secs` seconds have passed."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._folder, self._suffix = Path(log_dir), filename_suffix
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{self._suffix}"
        self._file = (self._folder / name).open("ab")
        self._waiting: list[bytes] = []
        self._flushed = time.monotonic()
        self._waiting.append(record(double(1, time.time()) + data(3, "brain.Event:2")))
        self.flush()

    def get_logdir(self) -> str:
        return str(self._folder)

    def add_event(self, event: bytes, step: Any = None, walltime: float | None = None) -> None:
        """event: an encoded Event without its time and step."""
        head = double(1, time.time() if walltime is None else walltime) + (b"" if step is None else integer(2, int(step)))
        with self._lock:
            self._waiting.append(record(head + event))
            full = len(self._waiting) >= self._max_queue or time.monotonic() - self._flushed >= self._flush_secs
        if full:
            self.flush()

    def add_summary(self, summary: bytes, global_step: Any = None, walltime: float | None = None) -> None:
        self.add_event(data(5, summary), global_step, walltime)

    def add_graph(self, graph: bytes, walltime: float | None = None) -> None:
        self.add_event(data(4, graph), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            if not self._file.closed:
                self._file.write(b"".join(self._waiting))
                self._file.flush()
            self._waiting.clear()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self.flush()
        self._file.close()

    def reopen(self) -> None:
        """A new file after `close`."""
        if self._file.closed:
            self._open()


class SummaryWriter:
    """Writes what training produces into event files under `log_dir` (``runs/<time>_<host><comment>`` where it is None).

    tag: the name of a series, whose parts `/` divides; global_step: the place in it; walltime: seconds since 1970 in place of the time now. `purge_step` hides
    what an earlier run wrote from that step on. Nothing but NumPy is needed; figures want matplotlib, videos Pillow.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        if not log_dir:
            log_dir = Path("runs") / f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = {}
        self._purge_step = purge_step
        self._get_file_writer()

    def _writer_of(self, folder: str) -> FileWriter:
        if self.all_writers is None:
            self.all_writers = {}
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
        return self.all_writers[folder]

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._writer_of(self.log_dir)
            if self._purge_step is not None:
                # the start of a session, and an event of no content: between them the reader drops what is at the step and beyond
                self.file_writer.add_event(data(7, integer(1, 1)), self._purge_step)
                self._purge_step = None
        return self.file_writer

    def _add(self, content: bytes, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(content, step, walltime)

    def get_logdir(self) -> str:
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None, new_style: bool = False, double_precision: bool = False
    ) -> None:
        """A number, or a tensor of one element."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None) -> None:
        """Numbers that are drawn in one chart; each is a run of its own in a folder beside the others."""
        walltime = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            writer = self._writer_of(f"{base}/{main_tag.replace('/', '_')}_{tag}")
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self._add(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None, max_bins: int | None = None
    ) -> None:
        """bins: limits, their number, a rule of numpy.histogram, or TensorBoard's usual ones. ValueError for no values."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any, global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that is computed already; bucket_limits: the upper ends. ValueError where limits and counts are not as many."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """An image of bytes, or of numbers in [0, 1]. dataformats: the order of channels (1, 3 or 4), height and width; "HW" without channels."""
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """A batch of images, side by side."""
        if isinstance(img_tensor, (list, tuple)):
            img_tensor = np.stack([summary.make_np(image) for image in img_tensor])
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Any = None, walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:  # fmt: skip
        """box_tensor: (boxes, 4), left, top, right, bottom in pixels. labels: a text for each (needs Pillow)."""
        labels = [labels] if isinstance(labels, str) else labels
        self._add(summary.boxes(tag, img_tensor, box_tensor, dataformats, labels, rescale), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None) -> None:
        """A figure of matplotlib, or a list of them, which are closed unless `close` is False."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures, pictures = figure if isinstance(figure, list) else [figure], []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1))
            if close:
                pyplot.close(one)
        if isinstance(figure, list):
            self.add_image(tag, np.stack(pictures), global_step, walltime, dataformats="NCHW")
        else:
            self.add_image(tag, pictures[0], global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4, walltime: float | None = None) -> None:
        """Frames (batch, time, channels, height, width) of bytes or numbers in [0, 1]. NotImplementedError without Pillow."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100, walltime: float | None = None) -> None:
        """Sound in [-1, 1]: (samples) or (1, samples)."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Text, which TensorBoard reads as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """The operators of one call ``model(*input_to_model)`` under the names of their modules. use_strict_trace has no effect: nothing is traced."""
        self._get_file_writer().add_graph(_graph.graph_of(model, () if input_to_model is None else input_to_model, verbose))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """NotImplementedError."""
        raise NotImplementedError("add_onnx_graph: it is not implemented (docs/gaps.md)")

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None, global_step: Any = None, walltime: float | None = None) -> None:
        """NotImplementedError."""
        raise NotImplementedError("add_mesh: it is not implemented (docs/gaps.md)")

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default", metadata_header: Any = None
    ) -> None:
        """Vectors (count, size) for the projector. metadata: a label, or a list of columns that `metadata_header` names, for each; label_img: an image of each
        (count, channels, height, width)."""
        vectors = summary.make_np(mat)
        if vectors.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        step = "00000" if global_step is None else str(global_step)
        inner = Path(step.zfill(5)) / "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in tag)
        folder = Path(self._get_file_writer().get_logdir()) / inner
        folder.mkdir(parents=True, exist_ok=True)
        entry = [f'tensor_name: "{tag}:{step.zfill(5)}"', f'tensor_path: "{(inner / "tensors.tsv").as_posix()}"']
        if metadata is not None:
            if len(metadata) != len(vectors):
                raise AssertionError("#labels should equal with #data points")
            rows = ["\t".join(map(str, row)) for row in metadata] if metadata_header else [str(label) for label in metadata]
            (folder / "metadata.tsv").write_text("\n".join((["\t".join(metadata_header)] if metadata_header else []) + rows) + "\n", encoding="utf-8")
            entry.append(f'metadata_path: "{(inner / "metadata.tsv").as_posix()}"')
        if label_img is not None:
            images = summary.make_np(label_img)
            if len(images) != len(vectors):
                raise AssertionError("#images should equal with #data points")
            side = int(np.ceil(len(images) ** 0.5))
            square = np.zeros((side * side, *images.shape[1:]), images.dtype)
            square[: len(images)] = images
            (folder / "sprite.png").write_bytes(summary.png(summary.as_bytes(summary.arranged(summary.grid(square, side), "CHW"))))
            sizes = f"single_image_dim: {images.shape[3]}\n    single_image_dim: {images.shape[2]}"
            entry.append(f'sprite {{\n    image_path: "{(inner / "sprite.png").as_posix()}"\n    {sizes}\n  }}')
        (folder / "tensors.tsv").write_text("".join("\t".join(map(repr, row)) + "\n" for row in vectors.tolist()), encoding="utf-8")
        with (Path(self._get_file_writer().get_logdir()) / "projector_config.pbtxt").open("a", encoding="utf-8") as config:
            config.write("embeddings {\n  " + "\n  ".join(entry) + "\n}\n")

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127, weights: Any = None, walltime: float | None = None
    ) -> None:
        """Precision and recall of predictions in [0, 1] of labels 0 and 1, at up to 127 thresholds."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
        global_step: Any = None, num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A curve that is computed already."""
        counts = [true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall]
        self._add(summary.pr_curve_raw(tag, counts, num_thresholds, weights), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Charts of several scalars: ``{category: {chart: ["Multiline", tags]}}`` or ``["Margin", [value, lower, upper]]``."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: list[str], category: str = "default", title: str = "untitled") -> None:
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: list[str], category: str = "default", title: str = "untitled") -> None:
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None, run_name: str | None = None,
        global_step: Any = None,
    ) -> None:  # fmt: skip
        """Hyperparameters (bools, numbers, texts) and the results that were had with them, as a run of its own. TypeError for what is no dict."""
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = str(Path(self._get_file_writer().get_logdir()) / (run_name or json.dumps(time.time())))
        with SummaryWriter(folder) as writer:
            for part in parts:
                writer._add(part, None, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Write what waits in all files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Flush and close; a call of `add_...` after it begins a new file."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()
