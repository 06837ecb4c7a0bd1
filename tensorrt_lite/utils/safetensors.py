"""The safetensors file format: a length, a JSON header of names, dtypes, shapes and offsets, then the tensors' bytes.

A header is checked in full before any tensor is made: sizes, overlaps and gaps, so that a file can neither reach beyond
itself nor hide bytes. No dependency on the package of that name; files go both ways.
"""

from __future__ import annotations

import math
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.python_key import materialize
from tensorrt_lite._checkpoint.budget import Budget
from tensorrt_lite._checkpoint.replace import replacing

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_MAX_HEADER = 100_000_000
# What a tensor takes beyond its bytes, and at most what stands behind each of these characters of a header.
_TENSOR_COST = 800
_COSTS = {b"[": 90, b"{": 240, b'"': 28, b":": 160, b",": 40}
_MAX_INT64 = (1 << 63) - 1


class SafetensorError(RuntimeError):
    """A file or a set of tensors that the format does not allow."""


def _dtype_name(dtype: Any) -> str:
    wanted = str(dtype).rpartition(".")[2]
    for name, known in _NAMES.items():
        if known == wanted:
            return name
    raise SafetensorError(f"the safetensors format has no dtype {dtype}")


def _check_sharing(tensors: dict[str, Tensor]) -> None:
    """Raise SafetensorError when tensors share memory, which the format would silently undo."""
    spans = []
    for name, tensor in tensors.items():
        if tensor.numel():
            start = tensor.data_ptr()
            spans.append((start, start + tensor.numel() * tensor.element_size(), str(tensor.device), name))
    spans.sort()
    for (_, end, device, name), (start, _, next_device, other) in pairwise(spans):
        if start < end and device == next_device:
            raise SafetensorError(f"tensors {name!r} and {other!r} share memory, which the format cannot express: save a clone of one")


def _block(tensor: Tensor) -> Any:
    """A tensor's bytes, of one on the CPU its own memory."""
    if not tensor.numel():
        return b""
    tensor = materialize(tensor.detach(), "safetensors").cpu()
    if sys.byteorder != "little":
        import ctypes

        return _swapped(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()), tensor)
    return memoryview(tensor.reshape(-1).view(trt.uint8).numpy())


def _swapped(data: bytes, tensor: Tensor) -> bytes:
    import numpy

    width = tensor.element_size() // (2 if tensor.is_complex() else 1)
    return numpy.frombuffer(data, dtype=f"u{width}").byteswap().tobytes()


def _encoded(tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> tuple[bytes, list[Tensor]]:
    import json

    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(part, str) for item in metadata.items() for part in item):
            raise SafetensorError("metadata must map text to text")
        header["__metadata__"] = dict(metadata)
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise SafetensorError(f"{name!r} cannot be the name of a tensor")
        if not isinstance(tensor, trt.Tensor):
            raise SafetensorError(f"{name!r} is a {type(tensor).__name__}, not a tensor")
        if not tensor.is_contiguous():
            raise SafetensorError(f"tensor {name!r} is not contiguous: save its contiguous() copy")
    _check_sharing(tensors)
    # Widest elements first, so that every tensor starts at a multiple of its element size.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    offset = 0
    for name in order:
        tensor = tensors[name]
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _dtype_name(tensor.dtype),
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [tensors[name] for name in order]


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """A file's bytes for named tensors; metadata: text to text. Raises SafetensorError as `save_file` does."""
    head, ordered = _encoded(tensors, metadata)
    return head + b"".join(map(_block, ordered))


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Write named tensors to a file; metadata: text to text.

    Raises SafetensorError for tensors that are not contiguous, share memory, or have a dtype the format lacks.
    """
    head, ordered = _encoded(tensors, metadata)
    with replacing(filename) as file:
        file.write(head)
        file.writelines(map(_block, ordered))


def _header_of(data: Any, size: int, budget: Budget) -> tuple[dict[str, Any], int]:
    """The checked header of a file of `size` bytes that begins with data, and where the tensors' bytes start."""
    import json

    if size < 8:
        raise SafetensorError(f"header too small: the file has {size} bytes")
    length = int.from_bytes(data[:8], "little")
    if length > _MAX_HEADER:
        raise SafetensorError(f"header too large: {length} bytes")
    if 8 + length > size:
        raise SafetensorError(f"invalid header length: {length} bytes in a file of {size}")
    raw = bytes(data[8 : 8 + length])
    # The bytes and their text, of which one character that is not ASCII makes each take four bytes.
    budget.spend(length * (6 if b"\\u" in raw or not raw.isascii() else 3) + sum(cost * raw.count(mark) for mark, cost in _COSTS.items()))
    try:
        header = json.loads(raw.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"invalid header: {str(error)[:200]}") from error
    if not isinstance(header, dict):
        raise SafetensorError("invalid header: not an object")
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name appears twice")
    return result


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_INT64


def _shown(value: Any) -> str:
    """A part of a header in an error: it may be anything, of any size."""
    if isinstance(value, list):
        return repr([part if isinstance(part, (int, float)) else type(part).__name__ for part in value[:64]])
    return repr(value[:80]) if isinstance(value, str) else type(value).__name__


def _checked_entries(header: dict[str, Any], available: int) -> list[tuple[str, Any, list[int], int, int]]:
    """Name, dtype, shape, start and end of each tensor in the file's order. Raises SafetensorError otherwise."""
    entries = []
    for name, entry in header.items():
        if name == "__metadata__":
            if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
                raise SafetensorError("invalid header: metadata must map text to text")
            continue
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise SafetensorError(f"invalid header: tensor {name[:80]!r} needs dtype, shape and data_offsets")
        dtype = getattr(trt, _NAMES[entry["dtype"]], None) if isinstance(entry["dtype"], str) and entry["dtype"] in _NAMES else None
        if dtype is None:
            raise SafetensorError(f"tensor {name[:80]!r} has the unsupported dtype {_shown(entry['dtype'])}")
        shape, offsets = entry["shape"], entry["data_offsets"]
        if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
            raise SafetensorError(f"invalid header: tensor {name[:80]!r} has the shape {_shown(shape)}")
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
            raise SafetensorError(f"invalid header: tensor {name[:80]!r} has the offsets {_shown(offsets)}")
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        start, end = offsets
        if size != end - start:
            raise SafetensorError(f"tensor {name[:80]!r} of shape {shape} needs {size} bytes, its offsets are {offsets}")
        entries.append((name, dtype, shape, start, end))
    position = 0
    for name, _, _, start, end in sorted(entries, key=lambda entry: entry[3:]):
        if start != position:
            raise SafetensorError(f"invalid offsets: tensor {name[:80]!r} starts at {start}, the one before ends at {position}")
        position = end
    if position != available:
        raise SafetensorError(f"the tensors take {position} bytes, the file holds {available}: it is not complete")
    return entries


def _tensor(source: Any, offset: int, dtype: Any, shape: list[int]) -> Tensor:
    count = 1
    for extent in shape:
        count *= extent
    if count == 0:
        return trt.empty(shape, dtype=dtype)
    if sys.byteorder == "big":
        size = count * dtype.itemsize
        source, offset = bytearray(_swapped(bytes(source[offset : offset + size]), trt.empty(0, dtype=dtype))), 0
    return trt.frombuffer(source, dtype=dtype, count=count, offset=offset).reshape(shape)


def load(data: bytes, memory_limit: int | None = None) -> dict[str, Tensor]:
    """Named tensors from a file's bytes. Raises SafetensorError for anything that is not a whole, valid file.

    memory_limit: bytes that the result may take instead of twice the file's size and 16 MB.
    """
    budget = Budget(len(data), memory_limit, SafetensorError)
    header, start = _header_of(data, len(data), budget)
    entries = _checked_entries(header, len(data) - start)
    budget.spend(len(entries) * _TENSOR_COST + len(data) - start)
    view = memoryview(data)
    # A tensor of its own each, since views of one block would keep all of it alive.
    return {name: _tensor(bytearray(view[start + first : start + last]), 0, dtype, shape) for name, dtype, shape, first, last in entries}


def load_file(filename: str | os.PathLike[str], device: Any = "cpu", memory_limit: int | None = None, mmap: bool = False) -> dict[str, Tensor]:
    """Named tensors from a file, moved to device. Raises SafetensorError as `load` does, and takes no more memory.

    mmap: the tensors lie in the mapped file: nothing is read before it is used, processes share the pages, and what is written stays in memory. The
    file must not become shorter while they live.
    """
    if mmap:
        with safe_open(filename, device=device) as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    size = os.path.getsize(filename)
    budget = Budget(size, memory_limit, SafetensorError)
    with open(filename, "rb") as file:
        header, start = _header_of(_head_of(file, size), size, budget)
        result = {}
        for name, dtype, shape, first, last in _checked_entries(header, size - start):
            budget.spend(_TENSOR_COST + last - first)
            block = bytearray(last - first)
            file.seek(start + first)
            if file.readinto(block) != len(block):
                raise SafetensorError(f"the file ended within tensor {name!r}")
            tensor = _tensor(block, 0, dtype, shape)
            result[name] = tensor if str(device) == "cpu" else tensor.to(device)
    return result


def _head_of(file: Any, size: int) -> bytes:
    head = file.read(8)
    return head + file.read(min(int.from_bytes(head, "little"), _MAX_HEADER, size))


class safe_open:  # noqa: N801 (the name of the published package)
    """A file whose tensors are taken one by one, in the mapped memory of the file; what is written to them stays in memory.

    filename: path; framework: "pt", or its other names, for tensors; device: where they are moved. SafetensorError as `load` raises it. The file must not
    become shorter while tensors of it live. A context manager.

    >>> from tensorrt_lite.utils.safetensors import safe_open, save_file
    >>> save_file({"weight": trt.eye(2)}, "layer.safetensors")
    >>> with safe_open("layer.safetensors") as file:
    ...     file.keys(), file.get_slice("weight")[1].tolist()
    (['weight'], [0.0, 1.0])
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu") -> None:
        import mmap

        if framework not in ("pt", "torch", "pytorch", "tensorrt_lite"):
            raise SafetensorError(f"framework {framework!r} is not there: tensors are made, framework='pt'")
        self._device = device
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header, self._start = _header_of(_head_of(file, size), size, Budget(size, None, SafetensorError))
            self._metadata = header.get("__metadata__")
            entries = _checked_entries(header, size - self._start)
            self._entries = {name: (dtype, shape, first) for name, dtype, shape, first, _ in entries}
            self._names = {name: header[name]["dtype"] for name in self._entries}
            self._map: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._map = None  # the mapping goes with the last tensor

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """The tensors' names in the order of the file."""
        return sorted(self._entries, key=lambda name: self._entries[name][2])

    def metadata(self) -> dict[str, str] | None:
        """The file's texts, None where it has none."""
        return self._metadata

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a name, on the device. SafetensorError for a name that is not there, or after the context."""
        tensor = self._mapped(name)
        return tensor if str(self._device) == "cpu" else tensor.to(self._device)

    def get_slice(self, name: str) -> _Slice:
        """The tensor of a name to be indexed: `file.get_slice(name)[2:5]` reads and moves these rows alone."""
        return _Slice(self, name)

    def _mapped(self, name: str) -> Tensor:
        if self._map is None:
            raise SafetensorError("the file is closed: tensors are taken within the context")
        if name not in self._entries:
            raise SafetensorError(f"the file has no tensor {name!r}")
        dtype, shape, first = self._entries[name]
        offset = self._start + first
        if offset % dtype.itemsize:  # written by a program that aligns nothing
            size = dtype.itemsize * math.prod(shape)
            return _tensor(bytearray(self._map[offset : offset + size]), 0, dtype, shape)
        return _tensor(self._map, offset, dtype, shape)


class _Slice:
    """A tensor of an open file that is not read yet."""

    def __init__(self, file: safe_open, name: str) -> None:
        self._file, self._name = file, name
        self._tensor = file._mapped(name)

    def get_shape(self) -> list[int]:
        """The sizes of the whole tensor."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """The format's name of the dtype: "F32", "BF16", ..."""
        return self._file._names[self._name]

    def __getitem__(self, index: Any) -> Tensor:
        part = self._tensor[index]
        return part if str(self._file._device) == "cpu" else part.to(self._file._device)
