"""Summaries: the messages that hold a tag and its value, one function for each kind of data."""

from __future__ import annotations

import io
import math
import struct
import wave
import zlib
from typing import Any

import numpy as np

from tensorrt_lite.utils.tensorboard._protobuf import data, double, doubles, entries, integer, single

__all__: list[str] = []

# TensorProto's numbers of element types
_TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "bfloat16": 14, "float16": 19}


def make_np(x: Any) -> Any:
    """Numbers, lists, arrays and tensors as arrays of NumPy. NotImplementedError for others."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        return x.float().numpy() if str(x.dtype).endswith("bfloat16") else x.numpy()
    if isinstance(x, (int, float, complex, list, tuple, np.ndarray, np.generic)):
        return np.atleast_1d(np.asarray(x))
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _value(tag: str, content: bytes) -> bytes:
    return data(1, data(1, tag.lstrip("/")) + content)


def _metadata(plugin: str, content: bytes = b"", description: str = "", data_class: int = 0) -> bytes:
    message = data(1, data(1, plugin) + (data(2, content) if content else b""))
    return data(9, message + (data(3, description) if description else b"") + (integer(4, data_class) if data_class else b""))


def _shape(sizes: Any) -> bytes:
    return data(2, b"".join(data(2, integer(1, n)) for n in sizes))


def _texts(texts: list[str | bytes]) -> bytes:
    return data(8, integer(1, 7) + _shape([len(texts)]) + b"".join(data(8, text) for text in texts))


def _array(array: Any) -> bytes:
    array = np.asarray(array, order="C")
    return data(8, integer(1, _TYPES[array.dtype.name]) + _shape(array.shape) + data(4, array.tobytes()))


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> bytes:
    """One number: in the old style a float, in the new one a tensor of no dimensions."""
    if isinstance(value, (list, tuple)):  # PyTorch's error, which packages that log whatever they find suppress
        raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")
    if isinstance(value, str):
        value = float(value)  # ValueError where it spells no number
    number = make_np(value).reshape(-1)
    if number.size != 1:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {number.size} and {make_np(value).ndim} dimensions.")
    if not new_style:
        return _value(tag, single(2, float(number[0])))
    return _value(tag, _array(np.asarray(number[0], dtype="f8" if double_precision else "f4")) + _metadata("scalars", data_class=1))


def tensor(tag: str, value: Any) -> bytes:
    return _value(tag, _array(value.detach().cpu().numpy()) + _metadata("tensor", data_class=2))


def default_bins() -> Any:
    """Limits that grow by a tenth from 1e-12 to 1e20, on both sides of 0: finer than TensorBoard shows, whatever the scale."""
    positive = 1e-12 * 1.1 ** np.arange(math.ceil(math.log(1e32, 1.1)))
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> bytes:
    """ValueError for no values."""
    values = make_np(values).reshape(-1).astype("f8")
    if values.size == 0:
        raise ValueError("The input has no element.")
    limits = default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(values, bins=limits)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.concatenate([counts, np.zeros(-len(counts) % step, counts.dtype)]).reshape(-1, step).sum(-1)
        limits = np.append(limits[:-1][::step], limits[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, len(counts))
    # a bucket has its upper limit alone: an empty one below tells where the first begins
    return histogram_raw(tag, values.min(), values.max(), values.size, values.sum(), values @ values, limits[first : last + 1], [0, *counts[first:last]])


def histogram_raw(tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any) -> bytes:
    numbers = b"".join(double(i, float(v)) for i, v in enumerate((min, max, num, sum, sum_squares), 1))
    return _value(tag, data(5, numbers + doubles(6, bucket_limits) + doubles(7, bucket_counts)))


def png(image: Any) -> bytes:
    """An image of bytes (height, width, 1, 3 or 4 channels) as a PNG file."""
    height, width, channels = image.shape
    if channels not in (1, 2, 3, 4):
        raise TypeError(f"Cannot handle this data type: (1, 1, {channels}), |u1 (an image of shape {tuple(image.shape)}, height first)")
    rows = np.concatenate([np.zeros((height, 1), np.uint8), np.ascontiguousarray(image).reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks)


def grid(images: Any, columns: int = 8) -> Any:
    """Images (count, channels, height, width) side by side, as one (channels, height, width)."""
    count, channels, height, width = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    canvas = np.zeros((rows * columns, channels, height, width), images.dtype)
    canvas[:count] = images
    return canvas.reshape(rows, columns, channels, height, width).transpose(2, 0, 3, 1, 4).reshape(channels, rows * height, columns * width)


def arranged(array: Any, formats: str) -> Any:
    """An image of three channels, last, out of one whose dimensions are named N, C, H and W; a batch becomes a grid."""
    if len(set(formats)) != len(formats):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {formats}")
    if array.ndim != len(formats):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {formats}")
    formats = formats.upper()
    if len(formats) == 2:
        array, formats = array[None], "C" + formats
    if len(formats) == 4:
        array = grid(array.transpose([formats.index(c) for c in "NCHW"]))
    else:
        array = array.transpose([formats.index(c) for c in "CHW"])
    if array.shape[0] == 1:
        array = np.concatenate([array] * 3)
    return array.transpose(1, 2, 0)


def as_bytes(array: Any, rescale: float = 1) -> Any:
    """Bytes as they are, numbers in [0, 1] times 255. rescale: the size, by repeating or leaving out pixels."""
    image = array if array.dtype == np.uint8 else (array.astype("f4") * 255.0).clip(0, 255).astype(np.uint8)
    if rescale != 1:
        height, width = image.shape[:2]
        rows, columns = (np.minimum((np.arange(max(1, int(n * rescale))) / rescale).astype(int), n - 1) for n in (height, width))
        image = image[rows][:, columns]
    return image


def _image_value(tag: str, pixels: Any, encoded: bytes | None = None) -> bytes:
    height, width, channels = pixels.shape
    return _value(tag, data(4, integer(1, height) + integer(2, width) + integer(3, channels) + data(4, encoded or png(pixels))))


def image(tag: str, array: Any, formats: str = "NCHW", rescale: float = 1) -> bytes:
    pixels = as_bytes(arranged(make_np(array), formats), rescale)
    return _image_value(tag, pixels)


def boxes(tag: str, array: Any, corners: Any, formats: str, labels: list[str] | None, rescale: float) -> bytes:
    """An image with frames of red lines at (left, top, right, bottom); labels need Pillow."""
    pixels = as_bytes(arranged(make_np(array), formats)).copy()
    corners = make_np(corners).reshape(-1, 4)
    for left, top, right, bottom in corners.astype(int).tolist():
        for rows, columns in (
            (slice(top, top + 2), slice(left, right + 1)), (slice(bottom - 1, bottom + 1), slice(left, right + 1)),
            (slice(top, bottom + 1), slice(left, left + 2)), (slice(top, bottom + 1), slice(right - 1, right + 1)),
        ):  # fmt: skip
            pixels[rows, columns] = (255, 0, 0)
    if labels is not None:
        from PIL import Image, ImageDraw

        picture = Image.fromarray(pixels)
        draw = ImageDraw.Draw(picture)
        for (left, top, *_), label in zip(corners.tolist(), labels, strict=True):
            draw.text((left + 3, top + 3), label, fill="red")
        pixels = np.asarray(picture)
    pixels = as_bytes(pixels, rescale)
    return _image_value(tag, pixels)


def video(tag: str, frames: Any, fps: float) -> bytes:
    """Frames (batch, time, channels, height, width) as an animated GIF, by Pillow; the clips of a batch side by side."""
    try:
        from PIL import Image
    except ImportError as error:
        raise NotImplementedError("add_video needs Pillow to encode the frames") from error
    frames = as_bytes(make_np(frames))
    pictures = [Image.fromarray(arranged(frames[:, t], "NCHW")) for t in range(frames.shape[1])]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=1000 / fps, loop=0)
    return _image_value(tag, np.asarray(pictures[0]), file.getvalue())


def audio(tag: str, samples: Any, rate: int) -> bytes:
    """Sound in [-1, 1], one channel, as a WAV file of 16 bits."""
    samples = make_np(samples).squeeze()
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    message = single(1, rate) + integer(2, 1) + integer(3, samples.size) + data(4, file.getvalue()) + data(5, "audio/wav")
    return _value(tag, data(6, message))


def text(tag: str, content: str) -> bytes:
    return _value(f"{tag}/text_summary", _texts([content]) + _metadata("text"))


def pr_curve_raw(tag: str, counts: list[Any], num_thresholds: int, weights: Any = None) -> bytes:
    """counts: true and false positives, true and false negatives, precision and recall, each at all thresholds."""
    table = np.stack([make_np(c).astype("f4") for c in counts])
    return _value(tag, _array(table) + _metadata("pr_curves", integer(1, 0) + integer(2, min(num_thresholds, 127))))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> bytes:
    """Of labels 0 and 1 and predictions in [0, 1], at evenly spaced thresholds."""
    n = min(num_thresholds, 127)
    labels, predictions = make_np(labels).reshape(-1).astype("f8"), make_np(predictions).reshape(-1)
    weights = np.ones_like(labels) if weights is None else make_np(weights).reshape(-1)
    places = np.floor(predictions * (n - 1)).astype(int).clip(0, n - 1)

    def above(weight: Any) -> Any:
        return np.cumsum(np.bincount(places, weights=weight, minlength=n)[::-1])[::-1]

    tp, fp = above(weights * labels), above(weights * (1 - labels))
    fn, tn = tp[0] - tp, fp[0] - fp
    precision = tp / np.maximum(1e-7, tp + fp)
    recall = tp / np.maximum(1e-7, tp + fn)
    return pr_curve_raw(tag, [tp, fp, tn, fn, precision, recall], n)


def _json_value(value: Any) -> bytes:
    """google.protobuf.Value of a bool, number or text."""
    if isinstance(value, (bool, np.bool_)):
        return integer(4, int(value))
    if isinstance(value, (int, float, np.number)):
        return double(2, float(value))
    if isinstance(value, str):
        return data(3, value)
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hparams(parameters: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None = None) -> list[bytes]:
    """The experiment, the start and the end of a session, as the plugin of hyperparameters reads them."""
    for given, name in ((parameters, "hparam_dict"), (metrics, "metric_dict")):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    values = {key: make_np(v).item() if hasattr(v, "detach") else v for key, v in parameters.items() if v is not None}
    infos = b""
    for key, value in values.items():
        kind = 2 if isinstance(value, (bool, np.bool_)) else 1 if isinstance(value, str) else 3
        domain = (domains or {}).get(key)
        listed = data(5, b"".join(data(1, _json_value(v)) for v in domain)) if domain else b""
        infos += data(4, data(1, key) + integer(4, kind) + listed)
    experiment = infos + b"".join(data(5, data(1, data(2, tag))) for tag in metrics)
    start = entries(1, {key: _json_value(value) for key, value in values.items()})
    parts = (("experiment", 2, experiment), ("session_start_info", 3, start), ("session_end_info", 4, integer(1, 1)))
    return [_value(f"_hparams_/{name}", _metadata("hparams", data(field, message))) for name, field, message in parts]


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> bytes:
    """{category: {chart: ["Multiline" or "Margin", tags]}}."""
    categories = b""
    for title, charts in layout.items():
        content = b""
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"A margin chart takes three tags (value, lower, upper), got {len(tags)}")
                lines = data(3, data(1, data(1, tags[0]) + data(2, tags[1]) + data(3, tags[2])))
            else:
                lines = data(2, b"".join(data(1, tag) for tag in tags))
            content += data(2, data(1, name) + lines)
        categories += data(2, data(1, title) + content)
    return _value("custom_scalars__config__", _texts([categories]) + _metadata("custom_scalars"))
