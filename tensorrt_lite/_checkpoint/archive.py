"""The zip container of a checkpoint: a reader that trusts no size before it has checked it, and an aligning writer.

Records are stored, never compressed, and may not overlap, so that a record's bytes can be read or mapped in place and no
file can grow when it is opened. Used by `reader` and `writer`.
"""

from __future__ import annotations

import bisect
import io
import struct
import zlib
from array import array
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budget import Budget

__all__ = ["ArchiveReader", "ArchiveWriter", "is_plain_file", "write_whole"]

ALIGNMENT = 64

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_CENTRAL_HEADER = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_END64_LOCATOR = struct.Struct("<4sIQI")
_MAX16 = 0xFFFF
_MAX32 = 0xFFFFFFFF
# Sizes and offsets from here on are written in 64 bits, and _MAX32 in their place.
_ZIP64_FROM = _MAX32
# 1980-01-01: a checkpoint's bytes depend on its contents only.
_DOS_DATE = 0x21
# Checksums of larger records are not verified: at about 1 GB/s that would take several times as long as reading them.
# PyTorch verifies none; here everything that decides how a file is understood is verified.
_VERIFIED_SIZE = 1 << 20
# What a file object written in Python is given to fill, and is given to write, at a time.
_CHUNK = 1 << 20
# A dict's entry for one record: its name's object beyond the text, its position, its slot, its offset.
_ENTRY_COST = 200


def damaged(why: object) -> RuntimeError:
    """The error for a file that is not a whole archive."""
    return RuntimeError(f"failed reading zip archive: {why}")


def is_plain_file(file: Any) -> bool:
    """Whether reading and writing run no code but the interpreter's own, which keeps no view of the memory it is given."""
    kind = type(file)
    if kind is io.BytesIO or kind is io.FileIO:
        return True
    return kind in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom) and type(file.raw) is io.FileIO


def read_exactly(file: IO[bytes], target: memoryview) -> bool:
    """Fill target from the file's position on; False when the file ends before."""
    size, done = len(target), 0
    if is_plain_file(file):
        while done < size:
            count = file.readinto(target[done:])  # type: ignore[attr-defined]
            if not count:
                return False
            done += count
        return True
    # Another file object may keep what it is given to fill: it gets memory of its own, never a tensor's.
    buffer = bytearray(min(size, _CHUNK))
    while done < size:
        wanted = min(len(buffer), size - done)
        if hasattr(file, "readinto"):
            count = file.readinto(memoryview(buffer)[:wanted])
            chunk = memoryview(buffer)[:count] if isinstance(count, int) and 0 <= count <= wanted else None
        else:
            chunk = file.read(wanted)
            chunk = memoryview(chunk) if isinstance(chunk, (bytes, bytearray)) and len(chunk) <= wanted else None
        if chunk is None:
            raise damaged(f"the {type(file).__name__} answered a read of {wanted} bytes with something else")
        if not len(chunk):
            return False
        target[done : done + len(chunk)] = chunk
        done += len(chunk)
    return True


class ArchiveReader:
    """Records of the zip archive in a seekable binary file, by name below the archive's top folder.

    The archive starts at `base` and ends where the file does. Records lie one after the other before the directory.
    """

    def __init__(self, file: IO[bytes], base: int, size: int, budget: Budget) -> None:
        self._file = file
        self._base = base
        self._size = size
        self._directory, self._records_end = self._read_directory(budget)
        # Where each entry stands in the directory, and where records begin, in the file's order.
        self._entries: dict[str, int] = {}
        self._starts = array("Q")
        self.prefix = ""
        self._index(budget)

    def _read(self, offset: int, size: int) -> bytes:
        """Bytes of the archive. Raises RuntimeError when they are not all there."""
        if offset < 0 or offset + size > self._size:
            raise damaged("the file is shorter than it says (is it truncated?)")
        self._file.seek(self._base + offset)
        data = self._file.read(size)
        while type(data) is bytes and len(data) < size:  # an unbuffered file may answer in parts
            more = self._file.read(size - len(data))
            if not more:
                break
            data += more
        if type(data) is not bytes or len(data) != size:
            raise damaged(f"{size} bytes were read from a {type(self._file).__name__}, which gave something else (is the file truncated?)")
        return data

    def _read_directory(self, budget: Budget) -> tuple[bytes, int]:
        """The central directory and its offset."""
        length = min(self._size, _END.size + _MAX16)
        tail = self._read(self._size - length, length)
        found = tail.rfind(b"PK\x05\x06")
        if found < 0 or found + _END.size > length:
            raise damaged("there is no end of the directory (is the file truncated?)")
        end = self._size - length + found
        _, disk, first_disk, _, count, size, offset, _ = _END.unpack_from(tail, found)
        at = end - _END64_LOCATOR.size
        locator = self._read(at, _END64_LOCATOR.size) if at >= 0 else b""
        if locator.startswith(b"PK\x06\x07"):
            end = _END64_LOCATOR.unpack(locator)[2]
            fields = self._read(end, _END64.size)
            if not fields.startswith(b"PK\x06\x06"):
                raise damaged("the 64-bit end of the directory is not where the file says")
            _, _, _, _, disk, first_disk, _, count, size, offset = _END64.unpack(fields)
        if disk or first_disk:
            raise damaged("the archive has several volumes")
        if offset + size != end:
            raise damaged(f"the directory of {size} bytes at offset {offset} does not end at {end} (is the file truncated or damaged?)")
        budget.spend(size + min(count, size // _CENTRAL_HEADER.size) * _ENTRY_COST)
        return self._read(offset, size), offset

    def _index(self, budget: Budget) -> None:
        directory, position, size = self._directory, 0, len(self._directory)
        width, unpack = _CENTRAL_HEADER.size, _CENTRAL_HEADER.unpack_from
        starts, ends = self._starts, array("Q")
        while position < size:
            if position + width > size:
                raise damaged("the directory is cut off")
            fields = unpack(directory, position)
            if fields[0] != b"PK\x01\x02":
                raise damaged("an entry of the directory is damaged")
            name_length, extra_length, comment_length = fields[10], fields[11], fields[12]
            end = position + width + name_length
            raw = directory[position + width : end]
            if end + extra_length + comment_length > size:
                raise damaged("the directory is cut off")
            try:
                name = raw.decode("utf-8" if fields[3] & 0x800 or raw.isascii() else "cp437")
            except UnicodeDecodeError:
                raise damaged(f"the name {raw[:80]!r} of a record is not text") from None
            if name in self._entries:
                raise damaged(f"record {name[:80]!r} is listed twice")
            if not self._entries:
                self.prefix = name.partition("/")[0]
            self._entries[name] = position
            compressed, _, offset = self._sizes(position)
            starts.append(min(offset, self._size + 1))
            # No record is shorter than its header, its name and its bytes.
            ends.append(min(offset + _LOCAL_HEADER.size + name_length + compressed, self._size + 1))
            budget.left -= name_length if raw.isascii() else 4 * name_length
            position = end + extra_length + comment_length
        budget.check()
        if any(map(int.__gt__, starts, starts[1:])):
            # not in the order of the directory, which no writer of checkpoints does
            budget.spend(_ENTRY_COST * len(starts))
            order = sorted(range(len(starts)), key=starts.__getitem__)
            starts, ends = array("Q", [starts[i] for i in order]), array("Q", [ends[i] for i in order])
            self._starts = starts
        if any(map(int.__gt__, ends, starts[1:])):
            raise damaged("records overlap, or reach beyond the end of the file")
        if ends and ends[-1] > self._records_end:
            raise damaged("a record reaches into the directory or beyond the end of the file")

    def _sizes(self, position: int) -> tuple[int, int, int]:
        """Stored size, size and offset of the entry at a position of the directory."""
        fields = _CENTRAL_HEADER.unpack_from(self._directory, position)
        compressed, size, name_length, extra_length, offset = fields[8], fields[9], fields[10], fields[11], fields[16]
        if _MAX32 in (compressed, size, offset):
            start = position + _CENTRAL_HEADER.size + name_length
            values = _zip64_values(self._directory[start : start + extra_length])
            try:
                size = next(values) if size == _MAX32 else size
                compressed = next(values) if compressed == _MAX32 else compressed
                offset = next(values) if offset == _MAX32 else offset
            except StopIteration:
                raise damaged("the 64-bit sizes of a record are missing") from None
        return compressed, size, offset

    def __contains__(self, name: str) -> bool:
        return f"{self.prefix}/{name}" in self._entries

    def location(self, name: str) -> tuple[int, int, int]:
        """Offset in the file, size and CRC of a record's bytes. Raises RuntimeError when they are not all there."""
        position = self._entries.get(f"{self.prefix}/{name}")
        if position is None:
            raise damaged(f"file not found: {self.prefix}/{name}")
        fields = _CENTRAL_HEADER.unpack_from(self._directory, position)
        compressed, size, offset = self._sizes(position)
        if fields[4] or compressed != size or fields[3] & 1:
            raise damaged(f"record {name} is compressed or encrypted; checkpoints store their records as they are")
        header = self._read(offset, _LOCAL_HEADER.size)
        if not header.startswith(b"PK\x03\x04"):
            raise damaged(f"no local header for record {name}")
        name_length, extra_length = _LOCAL_HEADER.unpack(header)[-2:]
        start = offset + _LOCAL_HEADER.size + name_length + extra_length
        following = bisect.bisect_right(self._starts, offset)
        end = self._starts[following] if following < len(self._starts) else self._records_end
        if start + size > end:
            raise damaged(f"record {name} of {size} bytes reaches beyond the end of the file or into the next record")
        return self._base + start, size, fields[7]

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        start, size, expected = self.location(name)
        data = self._read(start - self._base, size)
        check_record(name, data, expected)
        return data

    def fill(self, name: str, start: int, expected: int, target: memoryview) -> None:
        """Fill target with the record whose offset and CRC `location` gave. Raises RuntimeError when it is truncated, or small and damaged."""
        self._file.seek(start)
        if not read_exactly(self._file, target):
            raise damaged(f"record {name} is truncated")
        check_record(name, target, expected)


def check_record(name: str, data: bytes | memoryview, expected: int) -> None:
    """Raise RuntimeError for a small record whose checksum does not match; 0 stands for none, as a writer leaves it that computes none."""
    if expected and len(data) <= _VERIFIED_SIZE and zlib.crc32(data) != expected:
        raise damaged(f"record {name} is damaged: its checksum does not match")


def _zip64_values(extra: bytes) -> Any:
    """The numbers of a header's 64-bit field."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        if kind == 1:
            whole = extra[position + 4 : position + 4 + length]
            yield from struct.unpack(f"<{len(whole) // 8}Q", whole[: len(whole) // 8 * 8])
            return
        position += 4 + length


def write_whole(file: IO[bytes], data: Any, plain: bool) -> None:
    """Write all of `data`; plain: whether `is_plain_file` says so."""
    if plain:
        done = file.write(data)
        while done < len(data):  # an unbuffered file may take a part
            done += file.write(data[done:])
    elif type(data) is bytes:
        file.write(data)
    else:
        # Another file object may keep what it is given: it gets copies, never a view of a tensor's memory.
        for start in range(0, len(data), _CHUNK):
            file.write(bytes(data[start : start + _CHUNK]))


class ArchiveWriter:
    """Writes records one after the other to a binary file that need not be seekable; `close` adds the directory."""

    def __init__(self, file: IO[bytes], prefix: str, checksums: bool = True) -> None:
        self._file = file
        self._plain = is_plain_file(file)
        self._prefix = prefix
        self._checksums = checksums
        self._position = 0
        self._entries: list[tuple[bytes, int, int, int]] = []

    def _write(self, data: Any) -> None:
        write_whole(self._file, data, self._plain)
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
        self._begin(name, len(data), zlib.crc32(data) if self._checksums else 0)
        self._write(data)

    def add_hole(self, name: str, size: int) -> None:
        """Append a record of so many zeros, which take no room on a disk where the file can have holes, without a checksum."""
        self._begin(name, size, 0)
        if self._plain and self._file.seekable() and size:
            self._file.seek(size, 1)
            self._position += size
        else:
            for start in range(0, size, _CHUNK):
                self._write(bytes(min(_CHUNK, size - start)))

    def _begin(self, name: str, size: int, crc: int) -> None:
        """Write the header of a record."""
        path, offset = f"{self._prefix}/{name}".encode(), self._position
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
