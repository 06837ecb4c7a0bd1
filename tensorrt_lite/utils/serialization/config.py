"""Defaults of `save` and `load`, as attributes: those of tensorrt_lite.serialization by the names that PyTorch's configuration has.

>>> import tensorrt_lite as trt
>>> trt.utils.serialization.config.load.mmap
False
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import serialization as _serialization

__all__ = ["load", "save"]


class _Load:
    """What `load` does where its arguments do not say."""

    @property
    def mmap(self) -> bool:
        """Whether tensors of a path are mapped instead of read."""
        return _serialization._mmap_by_default

    @mmap.setter
    def mmap(self, value: bool) -> None:
        _serialization._mmap_by_default = bool(value)

    @property
    def endianness(self) -> Any:
        """The byte order of files that do not say theirs."""
        return _serialization.get_default_load_endianness()

    @endianness.setter
    def endianness(self, value: Any) -> None:
        _serialization.set_default_load_endianness(value)

    @property
    def mmap_flags(self) -> Any:
        """The flags of mappings: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
        return _serialization.get_default_mmap_options()

    @mmap_flags.setter
    def mmap_flags(self, value: Any) -> None:
        _serialization.set_default_mmap_options(value)


class _Save:
    """What `save` does."""

    @property
    def compute_crc32(self) -> bool:
        """Whether the checksums of the file's entries are computed."""
        return _serialization.get_crc32_options()

    @compute_crc32.setter
    def compute_crc32(self, value: bool) -> None:
        _serialization.set_crc32_options(value)

    @property
    def storage_alignment(self) -> int:
        """Tensors begin at multiples of 64 bytes in a file. NotImplementedError for another number."""
        return 64

    @storage_alignment.setter
    def storage_alignment(self, value: int) -> None:
        if value != 64:
            raise NotImplementedError(f"serialization.config.save.storage_alignment = {value}: files align tensors to 64 bytes")


load = _Load()
save = _Save()
