"""Messages in protocol buffers' wire format, and the records that event files are made of.

A message is bytes: fields one after the other, each a key (number and kind of encoding) and a value. The numbers of the fields are those of TensorBoard's
schemas (event.proto, summary.proto, tensor.proto, graph.proto, plugins).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(int(value))


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def data(field: int, value: bytes | str) -> bytes:
    """Bytes, text or a message."""
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def doubles(field: int, values: Iterable[float]) -> bytes:
    return data(field, np.asarray(list(values), dtype="<f8").tobytes())


def entries(field: int, items: Mapping[str, bytes]) -> bytes:
    """A map from text to messages."""
    return b"".join(data(field, data(1, key) + data(2, value)) for key, value in items.items())


@cache
def _crc_table() -> Any:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> np.uint32(1) ^ np.uint32(0x82F63B78), table >> np.uint32(1))
    return table


@cache
def _shift(count: int) -> Any:
    """The columns of the matrix over bits that carries a checksum over `count` bytes of zeros (a power of two)."""
    if count == 1:
        columns = np.uint32(1) << np.arange(32, dtype=np.uint32)
        return columns >> np.uint32(8) ^ _crc_table()[columns & 255]
    half = _shift(count // 2)
    return _apply(half, half)


def _apply(matrix: Any, values: Any) -> Any:
    bits = (np.asarray(values, dtype=np.uint32)[..., None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return np.bitwise_xor.reduce(np.where(bits == 1, matrix, np.uint32(0)), axis=-1)


LANE = 1024


def crc32c(buffer: bytes) -> int:
    """The checksum of Castagnoli. Long buffers are cut into lanes of 1,024 bytes, which advance together and are joined by what zeros would have done."""
    table, state, view = _crc_table(), 0xFFFFFFFF, np.frombuffer(buffer, dtype=np.uint8)
    lanes = len(view) // LANE
    if lanes > 3:
        columns = view[: lanes * LANE].reshape(lanes, LANE)
        states = np.zeros(lanes, dtype=np.uint32)
        for k in range(LANE):
            states = states >> np.uint32(8) ^ table[(states ^ columns[:, k]) & 255]
        matrix = _shift(LANE)
        for lane in states.tolist():
            state = int(_apply(matrix, state)) ^ lane
        view = view[lanes * LANE :]
    values = table.tolist() if len(view) > 32 else table
    for byte in view.tolist():
        state = state >> 8 ^ int(values[(state ^ byte) & 255])
    return state ^ 0xFFFFFFFF


def _masked(buffer: bytes) -> bytes:
    crc = crc32c(buffer)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(event: bytes) -> bytes:
    """The length and the event, each with its checksum."""
    length = struct.pack("<Q", len(event))
    return length + _masked(length) + event + _masked(event)
