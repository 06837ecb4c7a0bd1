"""Contents of files as objects, by the files' extensions."""

from __future__ import annotations

import io
import json
import os.path
import pickle
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

from .common import StreamWrapper

_serialization = LazyModule("tensorrt_lite.serialization")

__all__ = [
    "Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn", "handle_extension", "imagehandler", "mathandler",
    "videohandler",
]  # fmt: skip

_AUDIO = ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma")
_VIDEO = ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv")
_IMAGE = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")


def _required(module: str, package: str, purpose: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(f"Package `{package}` is required to be installed for {purpose}. Please use `pip install {package}` to install the package") from error


def basichandlers(extension: str, data: bytes) -> Any:
    """Text, numbers of classes, JSON, pickles (which may run code: of files that are trusted) and checkpoints; None for other files."""
    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return _serialization.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[bytes], Any]) -> Callable[[str, bytes], Any]:
    """A handler that calls f for files whose name ends in one of the extensions, words of a text ("jpg seg.png")."""
    endings = [ending.split(".") for ending in extensions.lower().split()]

    def handle(key: str, data: bytes) -> Any:
        parts = key.lower().split(".")
        return f(data) if any(parts[-len(ending) :] == ending for ending in endings) else None

    return handle


def _image_specs() -> dict[str, tuple[str, str | None, str]]:
    """{name: (library, type, mode)}: rgb8, torchl, pilrgba and their kin."""
    specs: dict[str, tuple[str, str | None, str]] = {}
    for mode in ("l", "rgb", "rgba"):
        specs |= {f"{mode}8": ("numpy", "uint8", mode), mode: ("numpy", "float", mode), f"pil{mode}": ("pil", None, mode)}
        specs |= {f"torch{mode}8": ("torch", "uint8", mode), f"torch{mode}": ("torch", "float", mode)}
    return specs | {"torch": specs["torchrgb"], "pil": specs["pilrgb"]}


imagespecs = _image_specs()


class ImageHandler:
    """Images as arrays (H, W, C), tensors (C, H, W) or Pillow's: imagespec is a library, none for NumPy, "torch" or "pil", a mode, and 8 for uint8."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in _IMAGE:
            return None
        numpy = _required("numpy", "numpy", "default image decoder")
        image = _required("PIL.Image", "Pillow", "default image decoder")
        library, kind, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            opened = image.open(stream)
            opened.load()
            opened = opened.convert(mode.upper())
        if library == "pil":
            return opened
        pixels = numpy.array(opened)
        if library == "numpy":
            return pixels if kind == "uint8" else pixels.astype("f") / 255.0
        tensor = trt.tensor(pixels.reshape(*pixels.shape[:2], -1).transpose(2, 0, 1).copy())
        return tensor if kind == "uint8" else tensor / 255.0


def imagehandler(imagespec: str) -> ImageHandler:
    """The handler of images."""
    return ImageHandler(imagespec)


def _by_file(extension: str, data: bytes, read: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return read(path)


def videohandler(extension: str, data: bytes) -> Any:
    """Videos, by torchvision. ModuleNotFoundError without it."""
    if extension not in _VIDEO:
        return None
    return _by_file(extension, data, _required("torchvision.io", "torchvision", "default video file loader").read_video)


def audiohandler(extension: str, data: bytes) -> Any:
    """Sound, by torchaudio. ModuleNotFoundError without it."""
    if extension not in _AUDIO:
        return None
    return _by_file(extension, data, _required("torchaudio", "torchaudio", "default audio file loader").load)


class MatHandler:
    """Matlab's files, by SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.sio = _required("scipy.io", "scipy", "mat file")
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """The handler of Matlab's files."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The extension without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """{path: object} of (path, content): by the first handler that gives something for the key, which key_fn makes of the path."""

    def __init__(self, *handler: Callable[[str, bytes], Any], key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler: Callable[[str, bytes], Any]) -> None:
        """Handlers to be asked before those there are."""
        self.handlers = [*handler, *self.handlers]

    def decode1(self, key: str, data: Any) -> Any:
        """The object of one content, bytes or an open binary file."""
        if not data:
            return data
        opened = data.file_obj if isinstance(data, StreamWrapper) else data
        if isinstance(opened, (io.BufferedIOBase, io.RawIOBase)):
            content = b"".join(data)
            data.close()
            data = content
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """The objects of one pair or several."""
        result: dict[str, Any] = {}
        for path, content in [data] if isinstance(data, tuple) else data or ():
            if path[0] == "_" and isinstance(content, bytes):
                result[path] = content.decode("utf-8")
            else:
                result[path] = self.decode1(self.key_fn(path), content)
        return result

    __call__ = decode
