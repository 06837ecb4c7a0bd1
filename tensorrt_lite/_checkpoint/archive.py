"""The zip container of a checkpoint: a reader that trusts no size before it has checked it, and an aligning writer.

Records are stored, never compressed, so that a record's bytes can be read or mapped in place and no file can grow when
it is opened. Used by `reader` and `writer`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO, Any

__all__ = ["ArchiveReader", "ArchiveWriter"]

ALIGNMENT = 64

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_CENTRAL_HEADER = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_END64_LOCATOR = struct.Struct("<4sIQI")
_MAX32 = 0xFFFFFFFF
# Sizes and offsets from here on are written in 64 bits, and _MAX32 in their place.
_ZIP64_FROM = _MAX32
# 1980-01-01: a checkpoint's bytes depend on its contents only.
_DOS_DATE = 0x21
# Checksums of larger records are not verified: at about 1 GB/s that would take several times as long as reading them.
# PyTorch verifies none; here everything that decides how a file is understood is verified.
_VERIFIED_SIZE = 1 << 20


def damaged(why: object) -> RuntimeError:
    """The error for a file that is not a whole archive."""
    return RuntimeError(f"failed reading zip archive: {why}")


class ArchiveReader:
    """Records of the zip archive in a seekable binary file, by name below the archive's top folder."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError) as error:
            raise damaged(f"{error} (is the file truncated?)") from error
        self._size = file.seek(0, 2)
        names = self._zip.namelist()
        self.prefix = names[0].partition("/")[0] if names else ""

    def __contains__(self, name: str) -> bool:
        return f"{self.prefix}/{name}" in self._zip.NameToInfo

    def location(self, name: str) -> tuple[int, int, int]:
        """Offset, size and CRC of a record's bytes in the file. Raises RuntimeError when they are not all there."""
        info = self._zip.NameToInfo.get(f"{self.prefix}/{name}")
        if info is None:
            raise damaged(f"file not found: {self.prefix}/{name}")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise damaged(f"record {name} is compressed or encrypted; checkpoints store their records as they are")
        header = b""
        if 0 <= info.header_offset <= self._size:
            self._file.seek(info.header_offset)
            header = self._file.read(_LOCAL_HEADER.size)
        if len(header) != _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise damaged(f"no local header for record {name}")
        name_length, extra_length = _LOCAL_HEADER.unpack(header)[-2:]
        start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if start + info.file_size > self._size:
            raise damaged(f"record {name} of {info.file_size} bytes reaches beyond the end of the file")
        return start, info.file_size, info.CRC

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        _, size, _ = self.location(name)
        buffer = bytearray(size)
        self.read_into(name, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, name: str, target: memoryview) -> None:
        """Fill target with a record of its size. Raises RuntimeError when it is truncated, or small and damaged."""
        start, size, expected = self.location(name)
        if size != len(target):
            raise damaged(f"record {name} has {size} bytes where {len(target)} are needed")
        self._file.seek(start)
        done = 0
        while done < size:
            count = self._read_some(target[done:])
            if not count:
                raise damaged(f"record {name} is truncated")
            done += count
        if size <= _VERIFIED_SIZE and zlib.crc32(target) != expected:
            raise damaged(f"record {name} is damaged: its checksum does not match")

    def _read_some(self, piece: memoryview) -> int:
        if hasattr(self._file, "readinto"):
            return self._file.readinto(piece)
        chunk = self._file.read(len(piece))
        piece[: len(chunk)] = chunk
        return len(chunk)


class ArchiveWriter:
    """Writes records one after the other to a binary file that need not be seekable; `close` adds the directory."""

    def __init__(self, file: IO[bytes], prefix: str) -> None:
        self._file = file
        self._prefix = prefix
        self._position = 0
        self._entries: list[tuple[bytes, int, int, int]] = []

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._position += len(data)

    @property
    def checksum(self) -> int:
        """One number for all records written so far."""
        total = 0
        for name, crc, _, _ in self._entries:
            total = zlib.crc32(struct.pack("<I", crc), zlib.crc32(name, total))
        return total

    def add(self, name: str, data: bytes | memoryview) -> None:
        """Append a record; its bytes start at a multiple of 64."""
        path, size = f"{self._prefix}/{name}".encode(), len(data)
        crc, offset = zlib.crc32(data), self._position
        zip64 = struct.pack("<HHQQ", 1, 16, size, size) if size >= _ZIP64_FROM else b""
        # Alignment comes from a padding field of the header; a field has at least its own four bytes.
        used = offset + _LOCAL_HEADER.size + len(path) + len(zip64) + 4
        padding = -used % ALIGNMENT
        extra = zip64 + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        short = _MAX32 if zip64 else size
        version = 45 if zip64 else 20
        # Bit 11: names are UTF-8.
        header = (b"PK\x03\x04", version, 0x800, 0, 0, _DOS_DATE, crc, short, short, len(path), len(extra))
        self._write(_LOCAL_HEADER.pack(*header) + path + extra)
        self._write(data)
        self._entries.append((path, crc, size, offset))

    def close(self) -> None:
        """Write the central directory."""
        start = self._position
        for path, crc, size, offset in self._entries:
            big_size, big_offset = size >= _ZIP64_FROM, offset >= _ZIP64_FROM
            values = ([size, size] if big_size else []) + ([offset] if big_offset else [])
            extra = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values) if values else b""
            short = _MAX32 if big_size else size
            where = _MAX32 if big_offset else offset
            version = 45 if values else 20
            header = (b"PK\x01\x02", version, version, 0x800, 0, 0, _DOS_DATE, crc, short, short, len(path), len(extra))
            self._write(_CENTRAL_HEADER.pack(*header, 0, 0, 0, 0, where) + path + extra)
        length, count, end = self._position - start, len(self._entries), self._position
        if start >= _ZIP64_FROM or length >= _ZIP64_FROM or count >= 0xFFFF:
            self._write(_END64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, start))
            self._write(_END64_LOCATOR.pack(b"PK\x06\x07", 0, end, 1))
        short_count = min(count, 0xFFFF)
        self._write(
            _END.pack(b"PK\x05\x06", 0, 0, short_count, short_count, min(length, _MAX32), min(start, _MAX32), 0)
        )
