"""torchvision's image files (`image::decode_jpeg`, `encode_png`, ...) by Pillow, which torchvision depends on.

Images are uint8 tensors (C, H, W). Decoders are Pillow's, so that pixels of JPEG files may differ from libjpeg's of another build by one.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite.library import Library

# ImageReadMode of torchvision: what the pixels are converted to
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _bytes_of(data: Any) -> bytes:
    if not isinstance(data, trt.Tensor) or data.dtype != trt.uint8 or data.dim() != 1 or data.numel() == 0:
        raise RuntimeError("image: expected a non empty 1-dimensional tensor of torch.uint8 with the bytes of a file")
    return data.contiguous().numpy().tobytes()


def _as_tensor(picture: Any) -> Any:
    """(C, H, W) of a picture."""
    import numpy as np

    array = np.asarray(picture)
    if picture.mode in ("I", "I;16", "I;16B"):
        array = array.astype(np.uint16)
    tensor = trt.from_numpy(np.array(array))
    return tensor[None] if tensor.dim() == 2 else tensor.permute(2, 0, 1).contiguous()


def _decode(data: Any, mode: int = 0, apply_exif_orientation: bool = False, formats: Any = None) -> Any:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        picture = Image.open(io.BytesIO(_bytes_of(data)), formats=formats)
        picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise RuntimeError(f"image: the file cannot be decoded: {error}") from None
    if apply_exif_orientation:
        picture = ImageOps.exif_transpose(picture)
    if mode in _MODES:
        picture = picture.convert(_MODES[mode])
    elif picture.mode in ("P", "1", "CMYK", "YCbCr"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "L" if picture.mode == "1" else "RGB")
    return _as_tensor(picture)


def decode_gif(data: Any) -> Any:
    """The frames: (N, 3, H, W), or (3, H, W) of one."""
    from PIL import Image, ImageSequence

    picture = Image.open(io.BytesIO(_bytes_of(data)), formats=["GIF"])
    frames = [_as_tensor(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)]
    return trt.stack(frames) if len(frames) > 1 else frames[0]


def _encode(data: Any, format: str, **options: Any) -> Any:
    from PIL import Image

    if data.dtype != trt.uint8 or data.dim() != 3 or data.shape[0] not in (1, 3):
        raise RuntimeError(f"image: expected an image (1 or 3, H, W) of torch.uint8, got {tuple(data.shape)} of {data.dtype}")
    array = data[0].numpy() if data.shape[0] == 1 else data.permute(1, 2, 0).contiguous().numpy()
    target = io.BytesIO()
    Image.fromarray(array).save(target, format, **options)
    return trt.frombuffer(bytearray(target.getvalue()), dtype=trt.uint8)


def read_file(filename: str) -> Any:
    """The bytes of a file. RuntimeError where it cannot be read."""
    try:
        data = Path(filename).read_bytes()
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{filename}'") from None
    if not data:
        raise RuntimeError(f"Expected a non empty file: '{filename}'")
    return trt.frombuffer(bytearray(data), dtype=trt.uint8)


def write_file(filename: str, data: Any) -> None:
    """Write bytes to a file."""
    Path(filename).write_bytes(_bytes_of(data))


_DECODE = "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor"
_SCHEMAS = {
    "read_file": ("(str filename) -> Tensor", read_file),
    "write_file": ("(str filename, Tensor data) -> ()", write_file),
    "decode_image": (_DECODE, _decode),
    "decode_jpeg": (_DECODE, lambda data, mode=0, apply_exif_orientation=False: _decode(data, mode, apply_exif_orientation, ["JPEG"])),
    "decode_png": (_DECODE, lambda data, mode=0, apply_exif_orientation=False: _decode(data, mode, apply_exif_orientation, ["PNG"])),
    "decode_webp": ("(Tensor encoded_data, int mode) -> Tensor", lambda encoded_data, mode=0: _decode(encoded_data, mode, False, ["WEBP"])),
    "decode_gif": ("(Tensor data) -> Tensor", decode_gif),
    "encode_png": ("(Tensor data, int compression_level) -> Tensor", lambda data, level: _encode(data, "PNG", compress_level=level)),
    "encode_jpeg": ("(Tensor data, int quality) -> Tensor", lambda data, quality: _encode(data, "JPEG", quality=quality)),
}


def _register() -> Library:
    library = Library("image", "DEF")
    for name, (schema, function) in _SCHEMAS.items():
        library.define(name + schema)
        library.impl(name, function, "CompositeImplicitAutograd")
    return library


_library = _register()
