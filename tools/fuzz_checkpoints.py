"""Loads mutated and hand-made hostile checkpoints: none may crash the process, raise an undocumented exception, take more memory
than twice the file's size and 16 MB, or more of the processor's time than two seconds and one for each megabyte.

    python -m tools.fuzz_checkpoints [--count 50000] [--first 0] [--seed 0]
    python -m tools.fuzz_checkpoints --hostile [--only REGEX]   # the 800 hand-made files, each in a process of its own
    python -m tools.fuzz_checkpoints --replay 0:1818      # one mutated file again, in this process

Mutated files start from valid ones of every kind (zip, zip with the pickle changed and packed again, mapped, PyTorch's older format,
safetensors; sparse and nested tensors, subclasses, and PyTorch's conjugated and negated views in both formats). They run in child processes, which note the number of each before they load it; the peak of the resident memory is the
kernel's (VmHWM, reset before each file). Everything is drawn from (seed, number).
"""

from __future__ import annotations

import argparse
import collections
import gc
import io
import json
import os
import pickle
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite import serialization
from tensorrt_lite._checkpoint.archive import ArchiveReader, ArchiveWriter
from tensorrt_lite._checkpoint.budget import Budget
from tensorrt_lite.utils import safetensors

DOCUMENTED = (RuntimeError, pickle.UnpicklingError, EOFError)  # SafetensorError is a RuntimeError
FIXED = 16 << 20
MEMORY = 3 << 30  # address space of a child: a runaway is an error, not the machine's end
BATCH = 250  # files of one child
FRESH_AFTER = 2 << 20  # a child that grew by this much makes room for a fresh one, so that its free memory hides nothing
# Whatever the machine does besides: the processor's time of the child, of which most files take some ms.
SECONDS, SECONDS_A_MEGABYTE = 2.0, 1.0
# "parts": tensors that are made of others or of values; "views": what PyTorch alone writes, conjugated and negated views.
KINDS = ("zip", "pickle", "mapped", "legacy", "safetensors", "parts", "legacy parts", "views", "legacy views")
OPCODES = b"(.012FIJKLMNPQRSTUVXabcdehgjpqlrstu}]){\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x8e\x8f\x90\x91\x92\x93\x94\x95\x96"


# ---- valid files -----------------------------------------------------------------------------------------------------


def contents() -> dict:
    base = trt.arange(48, dtype=trt.float32)
    return {
        "weight": base.view(6, 8),
        "transposed": base.view(6, 8).t(),
        "half": trt.ones(5, dtype=trt.float16),
        "flag": trt.tensor([True, False]),
        "complex": trt.ones(3, dtype=trt.complex64),
        "parameter": trt.nn.Parameter(trt.randn(4, 3)),
        "meta": trt.empty(3, 2, device="meta"),
        "plain": {"epoch": 7, "name": "net", "lr": 1e-3, "steps": [1, 2, 70000, -5], "t": (1, None, True), "s": {1, 2}, "b": b"bytes"},
        "ordered": collections.OrderedDict(a=1, b=trt.zeros(2)),
        "counter": collections.Counter("hello"),
        "size": trt.Size([1, 2]),
        "dtype": trt.bfloat16,
    }


# PyTorch writes its older format, in a process of its own: its pages would make each measurement here slow.
LEGACY = """
import collections, sys, torch
state = {"weight": torch.randn(4, 5), "bias": torch.zeros(3), "steps": [1, 2, 3], "name": "net", "view": torch.arange(6).view(2, 3).t()}
torch.save(collections.OrderedDict(state), sys.stdout.buffer, _use_new_zipfile_serialization=False)
"""


VIEWS = """
import sys, torch
z, w = torch.arange(12).view(3, 4) + 1j, torch.randn(2, 3)
state = {"conj": z.conj(), "neg": torch._neg_view(w), "both": torch._neg_view(z.conj()), "expanded": torch._neg_view(w[:1]).expand(5, 3), "base": z}
torch.save(state, sys.stdout.buffer, _use_new_zipfile_serialization=sys.argv[1] == "zip")
"""


class Marked(trt.Tensor):
    """A subclass that the loading program allows."""


class Kept(trt.Tensor):
    """One that restores its own state."""

    def __getstate__(self) -> dict:
        return {"mark": getattr(self, "mark", 0)}

    def __setstate__(self, state: dict) -> None:
        self.mark = state["mark"]


def parts() -> dict:
    """Tensors that are made of other tensors, and subclasses."""
    matrix = trt.eye(6).roll(1, 0)
    marked = trt.arange(3.0).as_subclass(Marked)
    marked.label = "x"
    blocks = {layout: getattr(matrix, f"to_sparse_{layout}")(*((2, 3),) if layout[0] == "b" else ()) for layout in ("csr", "csc", "bsr", "bsc")}
    parameter = trt.nn.Parameter(trt.ones(2))
    parameter.note = [1, 2]
    return {
        "coo": matrix.to_sparse(),
        "twice": trt.sparse_coo_tensor([[0, 0, 1]], trt.ones(3, 2), (4, 2)),
        "batch": trt.stack([matrix, matrix]).to_sparse_csr(),
        **blocks,
        "nested": trt.nested.nested_tensor([trt.ones(2, 3), trt.ones(1, 3)]),
        "marked": marked,
        "kept": trt.ones(2).as_subclass(Kept),
        "parameter": parameter,
        "sparse parameter": trt.nn.Parameter(matrix.to_sparse()),
        "keys": {(1, (2, frozenset((3, 4)))): 0, frozenset(((1, 2), (3, 4))): 1, 1.5: 2, 1 << 80: 3},
        "many": trt.ones((1,) * 20),
    }


def from_torch(program: str, *arguments: str) -> bytes:
    return subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.PIPE).stdout


@cache
def valid(kind: str) -> bytes:
    trt.manual_seed(0)
    if kind == "safetensors":
        return safetensors.save({"a": trt.randn(3, 4), "b": trt.arange(5), "c": trt.ones(2, dtype=trt.bfloat16)}, metadata={"format": "pt", "note": "x" * 40})
    if kind == "legacy":
        return from_torch(LEGACY)
    if kind.endswith("views"):
        return from_torch(VIEWS, "legacy" if kind.startswith("legacy") else "zip")
    buffer = io.BytesIO()
    if kind.endswith("parts"):
        serialization.save(parts(), buffer, _use_new_zipfile_serialization=kind == "parts")
    else:
        serialization.save(contents(), buffer, pickle_protocol=2 if kind == "zip" else 4)
    return buffer.getvalue()


@cache
def records(kind: str) -> dict[str, bytes]:
    data = valid(kind)
    archive = ArchiveReader(io.BytesIO(data), 0, len(data), Budget(len(data)))
    return {name.partition("/")[2]: archive.read(name.partition("/")[2]) for name in archive._entries}


def packed(parts: dict[str, bytes]) -> bytes:
    """An archive whose checksums are right whatever its records hold."""
    buffer = io.BytesIO()
    writer = ArchiveWriter(buffer, "archive")
    for name, data in parts.items():
        writer.add(name, data)
    writer.close()
    return buffer.getvalue()


def with_pickle(body: bytes, **others: bytes) -> bytes:
    return packed({"data.pkl": body, "byteorder": b"little", "version": b"3\n", **others})


# ---- mutations -------------------------------------------------------------------------------------------------------


def mutated(data: bytes, draw: random.Random) -> bytes:
    """The bytes with one to six random changes."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        at = draw.randrange(len(changed) + 1)
        length = draw.choice((1, 2, 4, 8, 30, 200))
        way = draw.randrange(9)
        if way == 0 and changed:
            changed[at % len(changed)] ^= 1 << draw.randrange(8)
        elif way == 1 and changed:
            changed[at % len(changed)] = draw.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, draw.randrange(256)))
        elif way == 2:
            changed[at : at + draw.choice((2, 4, 8))] = struct.pack("<q", draw.choice((0, 1, -1, 2**31, 2**32 - 1, 2**62, len(data), draw.randrange(2**32))))[: draw.choice((2, 4, 8))]
        elif way == 3:
            del changed[at : at + length]
        elif way == 4:
            source = draw.randrange(len(data))
            changed[at:at] = data[source : source + length] * draw.choice((1, 1, 2, 20))
        elif way == 5:
            source = draw.randrange(len(data))
            changed[at : at + length] = data[source : source + length]
        elif way == 6:
            changed[at:at] = bytes(draw.choice(OPCODES) for _ in range(draw.choice((1, 1, 2, 5))))
        elif way == 7:
            changed[at:at] = bytes([draw.choice(OPCODES)]) * draw.choice((10, 1000, 30000))
        else:
            del changed[at:]
    return bytes(changed)


def drawn(seed: int, number: int) -> tuple[str, bytes]:
    """Kind and content of a mutated file."""
    draw = random.Random(f"{seed}:{number}")
    kind = KINDS[number % len(KINDS)]
    if kind in ("pickle", "parts", "views"):
        changed = dict(records(draw.choice(("zip", "pickle")) if kind == "pickle" else kind))
        name = "data.pkl" if draw.random() < (0.9 if kind == "pickle" else 0.6) else draw.choice(list(changed))
        changed[name] = mutated(changed[name], draw)
        return kind, packed(changed)
    data = valid(kind)
    if kind in ("zip", "mapped") and draw.random() < 0.5:
        # the directory at the end, where most of what an archive says stands
        start = data.index(b"PK\1\2")
        return kind, data[:start] + mutated(data[start:], draw)
    return kind, mutated(data, draw)


# ---- hand-made files -------------------------------------------------------------------------------------------------


def integer(n: int) -> bytes:
    return b"J" + struct.pack("<i", n)


def amplified(function: bytes, argument: bytes, count: int) -> bytes:
    """A list of `count` calls of a function on one memoised argument."""
    return b"\x80\x02" + argument + b"q\0" + b"0" + function + b"q\x01" + b"0" + b"(" + b"h\x01h\0\x85R" * count + b"l."


def many(item: Callable[[int], bytes], n: int, close: bytes) -> bytes:
    return b"(" + b"".join(map(item, range(n))) + close


def hostile() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name and maker of each hand-made file; the maker is for the time until the next one is asked for."""
    functions = {
        "OrderedDict": b"ccollections\nOrderedDict\n",
        "Counter": b"ccollections\nCounter\n",
        "set": b"c__builtin__\nset\n",
        "frozenset": b"cbuiltins\nfrozenset\n",
        "bytearray": b"c__builtin__\nbytearray\n",
        "bytes": b"c__builtin__\nbytes\n",
        "Size": b"ctorch\nSize\n",
        "defaultdict": b"ccollections\ndefaultdict\n",
    }
    for size in (10, 200, 2_000, 20_000):
        pairs = many(lambda i: integer(i) + b"N\x86", size, b"l")
        numbers = many(integer, size, b"l")
        text = b"X" + struct.pack("<I", 50 * size) + b"a" * (50 * size)
        raw = b"B" + struct.pack("<I", 50 * size) + b"a" * (50 * size)
        for name, function in functions.items():
            for kind, argument in {"pairs": pairs, "numbers": numbers, "tuple": numbers[:-1] + b"t", "text": text, "bytes": raw, "dict": many(lambda i: integer(i) + b"N", size, b"d")}.items():
                for count in (30, 1_500):
                    yield f"{name} of {kind} {size} x {count}", lambda: with_pickle(amplified(function, argument, count))
        encode = b"\x80\x02" + text + b"q\x00" + b"0c_codecs\nencode\nq\x01" + b"0X\x06\0\0\0latin1q\x02" + b"0("
        yield f"encode {size}", lambda: with_pickle(encode + b"h\x01h\0h\x02\x86R" * 1500 + b"l.")
        state = b"\x80\x02" + many(lambda i: b"X\x05\0\0\0%05d" % i + b"N", size, b"d") + b"q\0" + b"0ccollections\nOrderedDict\nq\x01" + b"0("
        yield f"attributes {size}", lambda: with_pickle(state + b"h\x01)Rh\0b" * 1500 + b"l.")
        yield f"lists extended {size}", lambda: with_pickle(b"\x80\x02" + b"(" + (b"](" + b"N" * size + b"e") * 20 + b"l.")
        yield f"sets {size}", lambda: with_pickle(b"\x80\x04" + b"(" + (b"\x8f(" + b"".join(integer(i) for i in range(size)) + b"\x90") * 5 + b"l.")
        yield f"frozensets {size}", lambda: with_pickle(b"\x80\x04" + b"(" + (b"(" + b"".join(integer(i) for i in range(size)) + b"\x91") * 5 + b"l.")
    for count in (10_000, 200_000, 1_000_000):
        for opcode in b"]})\x8f(N2\x880K":
            body = b"K\x01" * count if opcode == ord("K") else b"N" + bytes([opcode]) * count
            yield f"opcode {bytes([opcode])!r} x {count}", lambda: with_pickle(b"\x80\x04" + body + b"l.")
        for opcode in (b"\x85", b"2\x86", b"2N\x87", b"\x94", b"]\x94", b"N\x94", b")\x94"):
            yield f"opcodes {opcode!r} x {count}", lambda: with_pickle(b"\x80\x04(N" + opcode * (count // len(opcode)) + b"l.")
        yield f"floats x {count}", lambda: with_pickle(b"\x80\x02(" + (b"G" + b"\x3f" * 8) * (count // 9) + b"l.")
        yield f"short ints x {count}", lambda: with_pickle(b"\x80\x02(" + b"M\xff\xff" * (count // 3) + b"l.")
        yield f"empty text x {count}", lambda: with_pickle(b"\x80\x04(" + b"\x8c\x01\xc3"[:2] * 0 + b"\x8c\x02\xc3\xa9" * (count // 4) + b"l.")
        yield f"wide text {count}", lambda: with_pickle(b"\x80\x04X" + struct.pack("<I", count + 4) + b"a" * count + "\U0001f600".encode() + b".")
        yield f"escaped text {count}", lambda: with_pickle(b"\x80\x04V" + b"a" * count + b"\\U0001f600\n.")
        yield f"globals x {count}", lambda: with_pickle(b"\x80\x02(" + b"ctorch\nFloatStorage\n" * (count // 20) + b"l.")
        yield f"dtypes x {count}", lambda: with_pickle(b"\x80\x02(" + b"ctorch\nint8\n" * (count // 12) + b"l.")
        yield f"sparse memo x {count}", lambda: with_pickle(b"\x80\x02N" + b"".join(b"r" + struct.pack("<I", 3 * i + 5) for i in range(count // 5)) + b".")
        yield f"long ints {count}", lambda: with_pickle(b"\x80\x02(" + (b"\x8a\xff" + b"\x7f" * 255) * (count // 257) + b"l.")
        yield f"metas x {count}", lambda: with_pickle(
            b"\x80\x02ctorch._utils\n_rebuild_meta_tensor_no_storage\nq\x01" + b"0ctorch\nint8\nq\x02" + b"0(" + b"h\x01(h\x02))\x89tR" * (count // 11) + b"l.")  # fmt: skip
    yield from hostile_archives()
    yield from hostile_safetensors()
    yield from hostile_tensors()
    yield from hostile_keys()
    for name in ("os.system", "builtins.eval", "builtins.getattr", "builtins.exec", "subprocess.Popen", "operator.attrgetter", "numpy.load", "tensorrt_lite.load", "torch.load",
                 "collections.deque", "builtins.map", "pickle.loads", "copyreg._reconstructor", "types.FunctionType", "importlib.import_module"):  # fmt: skip
        module, _, function = name.rpartition(".")
        for call in (b"X\x04\0\0\0true\x85R.", b")\x81.", b".", b")\x81}b.", b"(S'true'\nl\x85R."):
            yield f"global {name} {call!r}", lambda: with_pickle(f"c{module}\n{function}\n".encode() + call)


def hostile_archives() -> Iterator[tuple[str, Callable[[], bytes]]]:
    def directory(entries: list[tuple[str, int, int, int]], head: bytes) -> bytes:
        """An archive of the given (name, offset, size, crc) entries after `head`."""
        central = b""
        for name, offset, size, crc in entries:
            path = name.encode()
            central += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 33, crc, size, size, len(path), 0, 0, 0, 0, 0, offset) + path
        return head + central + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, min(len(entries), 65535), min(len(entries), 65535), len(central), len(head), 0)

    def record(name: str, data: bytes) -> bytes:
        return struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0) + name.encode() + data

    tensor = "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nByteStorage\nX{}{}X\x03\0\0\0cpuJ{}tQK\0K\x01\x85K\x01\x85\x89NtR"
    for size, count in ((1 << 16, 300), (1 << 20, 300), (1 << 20, 3)):
        data = bytes(size)
        body = b"\x80\x02("
        for i in range(count):
            key = str(i).encode()
            head, _, tail = tensor.partition("X{}{}")
            body += head.encode("latin1") + b"X" + struct.pack("<I", len(key)) + key + tail.replace("{}", "").encode("latin1").replace(b"J", b"J" + struct.pack("<i", size), 1)
        body += b"l."
        first = record("a/data.pkl", body)
        shared = record("a/data/0", data)
        entries = [("a/data.pkl", 0, len(body), zlib.crc32(body))]
        yield f"{count} records of {size} over each other", lambda: directory(entries + [(f"a/data/{i}", len(first), size, zlib.crc32(data)) for i in range(count)], first + shared)
        shifted = [(f"a/data/{i}", len(first) + 64 * i, size, zlib.crc32(data)) for i in range(count)]
        yield f"{count} records of {size} shifted", lambda: directory(entries + shifted, first + shared + bytes(64 * count))
    for count in (1_000, 60_000):
        yield f"{count} empty records", lambda: directory([("a/data.pkl", 0, 2, zlib.crc32(b"N."))] + [(f"a/{i:x}", 0, 0, 0) for i in range(count)], record("a/data.pkl", b"N."))
        yield f"{count} names twice", lambda: directory([("a/data.pkl", 0, 2, zlib.crc32(b"N."))] * count, record("a/data.pkl", b"N."))
    yield "record beyond the end", lambda: directory([("a/data.pkl", 0, 1 << 30, 0)], record("a/data.pkl", b"N."))
    yield "record in the directory", lambda: directory([("a/data.pkl", 0, 200, 0)], record("a/data.pkl", b"N."))
    yield "long name", lambda: directory([("a/" + "x" * 60_000, 0, 2, 0)], record("a/data.pkl", b"N."))
    yield "no directory", lambda: record("a/data.pkl", b"N.")
    yield "only an end", lambda: struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0, 0, 0, 0, 0)
    yield "offsets of 64 bits", lambda: struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1 << 60, 1 << 60, 1 << 62, 1 << 62) + struct.pack(
        "<4sIQI", b"PK\6\7", 0, 0, 1) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 65535, 65535, 0xFFFFFFFF, 0xFFFFFFFF, 0)  # fmt: skip


def hostile_safetensors() -> Iterator[tuple[str, Callable[[], bytes]]]:
    def file(text: bytes) -> bytes:
        return len(text).to_bytes(8, "little") + text

    for count in (10_000, 300_000):
        for name, part in {"lists": b"[],", "objects": b"{},", "numbers": b"1,", "text": b'"ab",', "nested": b"[[1],{}],"}.items():
            yield f"safetensors {name} x {count}", lambda: file(b'{"a":[' + part * count + b"0]}")
        yield f"safetensors names x {count}", lambda: file(json.dumps({f"{i:x}": 0 for i in range(count)}).encode())
        yield f"safetensors empty tensors x {count // 10}", lambda: file(
            json.dumps({f"{i:x}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(count // 10)}).encode())  # fmt: skip
        yield f"safetensors wide text {count}", lambda: file(b'{"__metadata__":{"a":"' + b"a" * count + b'\\ud83d\\ude00"}}')
        yield f"safetensors long name {count}", lambda: file(b'{"' + b"a" * count + b'":1}')
        yield f"safetensors nested {count}", lambda: file(b'{"a":' + b"[" * count + b"]" * count + b"}")


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(n: int) -> bytes:
    size = n.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + n.to_bytes(size, "little", signed=True) if size < 256 else b"\x8b" + struct.pack("<i", size) + n.to_bytes(size, "little", signed=True)


def numbers(values: Any) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(size: Any, stride: Any, kind: str = "Float", count: int = 1, key: str = "0", metadata: bytes = b"", offset: int = 0) -> bytes:
    """The opcodes of a tensor over a storage of `count` elements."""
    storage = b"(" + text("storage") + f"ctorch\n{kind}Storage\n".encode() + text(key) + text("cpu") + number(count) + b"tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(size) + numbers(stride) + b"\x89ccollections\nOrderedDict\n)R" + metadata + b"tR"


def many_calls(function: str, arguments: bytes, count: int) -> bytes:
    """A list of calls of a function with one tuple of arguments."""
    module, _, name = function.rpartition(".")
    return b"\x80\x02" + arguments + b"r\xff\0\0\0" + b"0" + f"c{module}\n{name}\n".encode() + b"r\xfe\0\0\0" + b"0(" + b"h\xfeh\xffR" * count + b"l."


def hostile_tensors() -> Iterator[tuple[str, Callable[[], bytes]]]:
    flags = {"neg": text("neg") + b"\x88", "conj": text("conj") + b"\x88"}
    for n in (1 << 20, 1 << 28, 1 << 40):
        for names in (("neg",), ("conj",), ("conj", "neg")):
            metadata = b"(" + b"".join(flags[name] for name in names) + b"d"
            yield f"{' and '.join(names)} expanded {n}", lambda: with_pickle(b"\x80\x02" + tensor((n,), (0,), "ComplexFloat", metadata=metadata) + b".", **{"data/0": bytes(8)})
            call = tensor((1 << 16, 9), (1, 0), "ComplexFloat", 1 << 16, metadata=metadata)
            yield f"{' and '.join(names)} of a memoised call {n}", lambda: with_pickle(
                b"\x80\x02(" + call * min(n >> 14, 2000) + b"l.", **{"data/0": bytes(8 << 16)})  # fmt: skip

    def sparse(layout: str, parts: list[bytes], size: Any, *more: bytes) -> bytes:
        head = b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n" + text(f"torch.sparse_{layout}") + b"\x85R("
        return head + b"".join(parts) + numbers(size) + b"".join(more) + b"ttR"

    eight = {"data/0": bytes(8), "data/1": bytes(4)}
    for n in (1 << 18, 1 << 21, 1 << 27, 1 << 34):
        values = tensor((n,), (0,), key="1")
        for kind in ("Int", "Long"):
            width = {"data/0": bytes(8 if kind == "Long" else 4), "data/1": bytes(4)}
            for coalesced in (b"\x88", b"\x89"):
                indices = tensor((2, n), (0, 0), kind)
                yield f"coo of {kind} indices with stride 0 {n} {coalesced!r}", lambda: with_pickle(b"\x80\x02" + sparse("coo", [indices, values], (3, 3), coalesced) + b".", **width)
        one = tensor((n + 1,), (0,), "Long")
        for layout in ("csr", "csc"):
            yield f"{layout} with stride 0 {n}", lambda: with_pickle(b"\x80\x02" + sparse(layout, [one, tensor((n,), (0,), "Long"), values], (n, n)) + b".", **eight)
            few = [tensor((n, 2), (0, 0), "Long"), tensor((n, 0), (0, 0), "Long"), tensor((n, 0), (0, 0), key="1")]
            yield f"batched {layout} with stride 0 {n}", lambda: with_pickle(b"\x80\x02" + sparse(layout, few, (n, 1, 1)) + b".", **eight)
        blocks = [tensor((n + 1,), (0,), "Long"), tensor((0,), (1,), "Long"), tensor((0, 1, 1), (1, 1, 1), key="1")]
        for layout in ("bsr", "bsc"):
            yield f"{layout} with stride 0 {n}", lambda: with_pickle(b"\x80\x02" + sparse(layout, blocks, (n, n)) + b".", **eight)
    ones = (1,) * 64
    for count in (1_000, 20_000, 200_000):
        call = lambda function, arguments: with_pickle(many_calls(function, arguments, count), **eight)  # noqa: E731
        storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("1") + text("cpu") + number(1) + b"tQ"
        for size in ((1,), (1,) * 9, ones):
            rebuild = b"(" + storage + number(0) + numbers(size) + numbers(size) + b"\x89ccollections\nOrderedDict\n)RtR"[:-1]
            yield f"tensors of {len(size)} dimensions x {count}", lambda: call("torch._utils._rebuild_tensor_v2", rebuild)
            yield f"meta tensors of {len(size)} dimensions x {count}", lambda: call("torch._utils._rebuild_meta_tensor_no_storage", b"(ctorch\nint8\n" + numbers(size) * 2 + b"\x89t")
            parameter = b"(" + tensor(size, size, key="1") + b"\x88ccollections\nOrderedDict\n)Rt"
            yield f"parameters of {len(size)} dimensions x {count}", lambda: call("torch._utils._rebuild_parameter", parameter)
            named = b"(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n" + rebuild + b"Nt"
            yield f"from type of {len(size)} dimensions x {count}", lambda: call("torch._tensor._rebuild_from_type_v2", named)
        head = b"(ctorch.serialization\n_get_layout\n" + text("torch.sparse_coo") + b"\x85R("
        for dims in (1, 64):
            empty = tensor((dims, 0), (1, 1), "Long") + tensor((0,), (1,), key="1") + numbers((1,) * dims)
            yield f"empty coo of {dims} dimensions x {count}", lambda: call("torch._utils._rebuild_sparse_tensor", head + empty + b"\x88tt")
        empty = tensor((1,), (1,), "Long") + tensor((0,), (1,), "Long") + tensor((0,), (1,), key="1") + numbers((0, 0))
        yield f"empty csr x {count}", lambda: call("torch._utils._rebuild_sparse_tensor", head.replace(b"\x10\0\0\0torch.sparse_coo", b"\x10\0\0\0torch.sparse_csr") + empty + b"tt")
    for size in (10, 300, 3000):
        state = many(lambda i: text(f"a{i}") + b"N", size, b"d")
        for count in (100, 2_000, 20_000):
            body = b"(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n(" + tensor((1,), (1,), key="1").partition(b"\n(")[2][:-1] + state + b"t"
            yield f"attributes of from type {size} x {count}", lambda: with_pickle(many_calls("torch._tensor._rebuild_from_type_v2", body, count), **eight)
            body = b"(" + tensor((1,), (1,), key="1") + b"\x88ccollections\nOrderedDict\n)R" + state + b"t"
            yield f"attributes of parameters {size} x {count}", lambda: with_pickle(many_calls("torch._utils._rebuild_parameter_with_state", body, count), **eight)
    for count in (200_000, 1_000_000):
        held = b"\x80\x02(" + text("storage") + b"ctorch\nFloatStorage\n" + text("1") + text("cpu") + number(1) + b"tQq\x010"
        yield f"a storage in a list x {count}", lambda: with_pickle(held + b"](" + b"h\x01" * count + b"e.", **eight)
        yield f"a storage in a list one by one x {count}", lambda: with_pickle(held + b"]" + b"h\x01a" * count + b".", **eight)
        yield f"a storage in a tuple x {count}", lambda: with_pickle(held + b"(" + b"h\x01" * 1000 + b"tq\x020](" + b"h\x02" * count + b"e.", **eight)
        yield f"storages in tuples x {count}", lambda: with_pickle(held + b"](" + b"h\x01\x85" * (count // 3) + b"e.", **eight)
        yield f"storages in a dict x {count}", lambda: with_pickle(held + b"}(" + b"".join(number(i) + b"h\x01" for i in range(count // 4)) + b"u.", **eight)
    rows = 1 << 17
    many_rows = [tensor((rows + 1,), (1,), "Long", rows + 1), tensor((0,), (1,), "Long", 1, "1"), tensor((0,), (1,), "Long", 1, "1"), ]
    for count in (100, 20_000):
        arguments = b"(ctorch.serialization\n_get_layout\n" + text("torch.sparse_csr") + b"\x85R(" + b"".join(many_rows) + numbers((rows, 1)) + b"tt"
        yield f"csr of {rows} rows x {count}", lambda: with_pickle(many_calls("torch._utils._rebuild_sparse_tensor", arguments, count), **{"data/0": bytes(8 * (rows + 1)), "data/1": bytes(8)})


def hostile_keys() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Keys that take long to hash or to compare."""

    def nest(make: Callable[[bytes], bytes], depth: int, slot: int) -> bytes:
        body = b"(K\x01K\x02\x91q" + bytes([slot])
        for _ in range(depth):
            body += b"0" + make(b"h" + bytes([slot])) + b"q" + bytes([slot])
        return body

    ways = {
        "frozensets": lambda last: b"(" + last + b"K\x00\x86" + last + b"K\x01\x86\x91",
        "tuples": lambda last: last + last + b"\x86",
        "frozensets of tuples": lambda last: b"(" + last + last + b"\x86" + last + b"\x85\x91",
    }
    for name, way in ways.items():
        for depth in (5, 10, 24, 45, 60):
            yield f"two equal {name} of depth {depth} as keys", lambda: with_pickle(b"\x80\x04}(" + nest(way, depth, 0) + b"N" + nest(way, depth, 1) + b"Nu.")
            yield f"{name} of depth {depth} in sets", lambda: with_pickle(b"\x80\x04\x8f(" + nest(way, depth, 0) + nest(way, depth, 1) + b"\x90.")
            yield f"{name} of depth {depth} as key again and again", lambda: with_pickle(b"\x80\x04" + nest(way, depth, 0) + nest(way, depth, 1) + b"00}" + b"h\0Nsh\1Ns" * 50_000 + b".")
    prime = (1 << 61) - 1
    for count in (30, 1_000, 100_000):
        made = {
            "integers": lambda i: number(i * prime),
            "tuples": lambda i: number(i * prime) + b"K\x01\x86",
            "complex": lambda i: b"c__builtin__\ncomplex\nG" + struct.pack(">d", -1000003.0 * i) + b"G" + struct.pack(">d", float(i)) + b"\x86R",
            "frozensets": lambda i: b"(" + number(i * prime) + b"\x91",
        }
        for name, make in made.items():
            yield f"{count} {name} of one hash in a dict", lambda: with_pickle(b"\x80\x04}(" + b"".join(make(i) + b"N" for i in range(count)) + b"u.")
            yield f"{count} {name} of one hash one by one", lambda: with_pickle(b"\x80\x04}" + b"".join(make(i) + b"Ns" for i in range(count)) + b".")
            yield f"{count} {name} of one hash in a set", lambda: with_pickle(b"\x80\x04\x8f(" + b"".join(make(i) for i in range(count)) + b"\x90.")
            yield f"{count} {name} of one hash in pairs", lambda: with_pickle(
                b"\x80\x04ccollections\nOrderedDict\n(" + b"".join(make(i) + b"N\x86" for i in range(count)) + b"l\x85R.")  # fmt: skip
    long = {"integer": number((1 << 4_000_000) + 1), "text": b"X" + struct.pack("<I", 500_000) + b"a" * 500_000, "bytes": b"B" + struct.pack("<I", 500_000) + b"a" * 500_000}
    for name, key in long.items():
        yield f"long {name} as key again and again", lambda: with_pickle(b"\x80\x04" + key + b"q\0" + key + b"q\x01" + b"00}" + b"h\0Nsh\x01Ns" * 60_000 + b".")
        yield f"long {name} in a key again and again", lambda: with_pickle(b"\x80\x04" + key + b"\x85q\0" + key + b"\x85q\x01" + b"00}" + b"h\0Nsh\x01Ns" * 60_000 + b".")


# ---- loading and measuring -------------------------------------------------------------------------------------------


def load(kind: str, data: bytes, folder: str) -> str:
    """What loading does: 'loaded', or the name of a documented exception. Other exceptions come out."""
    path = os.path.join(folder, "file")
    with open(path, "wb") as file:
        file.write(data)
    size = len(data)
    del data
    try:
        if kind == "safetensors":
            safetensors.load_file(path)
        else:
            with serialization.safe_globals([Marked, Kept]):
                serialization.load(path, mmap=kind == "mapped")
    except DOCUMENTED as error:
        kind = type(error).__name__
        return kind if kind in ("UnpicklingError", "RuntimeError", "EOFError", "SafetensorError") else f"RuntimeError ({kind})"
    assert size == os.path.getsize(path)
    return "loaded"


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field + ":"))


def measured(kind: str, data: bytes, folder: str) -> tuple[str, int, float]:
    """What loading does, by how much the resident memory grew meanwhile, and how many seconds of the processor it took."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, started = status("VmRSS"), time.process_time()
    try:
        outcome = load(kind, data, folder)
    except Exception as error:
        outcome = f"undocumented {type(error).__name__}: {error}"[:300]
    return outcome, max(0, status("VmHWM") - before), time.process_time() - started


@dataclass
class Report:
    """What came of the files that were loaded."""

    outcomes: collections.Counter = field(default_factory=collections.Counter)
    bad: list[str] = field(default_factory=list)
    worst: float = 0.0
    worst_name: str = ""
    most: int = 0
    slowest: float = 0.0
    slowest_name: str = ""

    def add(self, name: str, kind: str, size: int, outcome: str, grown: int, seconds: float = 0.0) -> None:
        self.outcomes[kind, outcome.partition(":")[0]] += 1
        share = grown / (2 * size + FIXED)
        self.most = max(self.most, grown)
        if share > self.worst:
            self.worst, self.worst_name = share, f"{name} ({kind}, {size} bytes: {grown >> 10} KB)"
        if share > 1:
            self.bad.append(f"{name}: {kind} of {size} bytes took {grown >> 10} KB")
        if seconds > self.slowest:
            self.slowest, self.slowest_name = seconds, f"{name} ({kind}, {size} bytes)"
        if seconds > SECONDS + SECONDS_A_MEGABYTE * size / 1e6:
            self.bad.append(f"{name}: {kind} of {size} bytes took {seconds:.1f} s")
        if outcome.startswith("undocumented"):
            self.bad.append(f"{name}: {kind}: {outcome}")

    def text(self) -> str:
        lines = [f"{count:7} {kind:12} {outcome}" for (kind, outcome), count in sorted(self.outcomes.items())]
        lines.append(f"{sum(self.outcomes.values())} files; most memory {self.most >> 10} KB; worst share of 2 x size + 16 MB: {self.worst:.2f} of {self.worst_name}")
        lines.append(f"slowest: {self.slowest:.2f} s of {self.slowest_name}")
        return "\n".join(lines + [f"BAD {text}" for text in self.bad])


def in_child(files: Callable[[], Iterator[tuple[str, str, bytes]]], report: Report) -> int:
    """Load files in a child process until it has grown; the number that are done. A child that dies leaves its culprit in the report."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            gc.collect()  # touches the pages of every module here, not while a file is read
            with tempfile.TemporaryDirectory() as folder, open(write, "w", buffering=1) as notes:
                total = 0
                for name, kind, data in files():
                    notes.write(json.dumps([name, kind, len(data)]) + "\n")
                    outcome, grown, seconds = measured(kind, data, folder)
                    notes.write(json.dumps([outcome, grown, seconds]) + "\n")
                    total += grown
                    if total > FRESH_AFTER:
                        break
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as notes:
        lines = [json.loads(line) for line in notes]
    state = os.waitpid(child, 0)[1]
    for started, ended in zip(lines[::2], lines[1::2], strict=False):
        report.add(*started, *ended)
    if state or len(lines) % 2:
        name, kind, size = lines[-1] if lines else ("?", "?", 0)
        report.bad.append(f"{name}: {kind} of {size} bytes ended the process ({state})")
        return len(lines) // 2 + 1
    return len(lines) // 2


def fuzz(count: int, seed: int, report: Report, first: int = 0) -> Report:
    warm_up()
    number = first
    while number < first + count:
        end = min(number + BATCH, first + count)
        number += max(1, in_child(lambda: ((f"{seed}:{i}", *drawn(seed, i)) for i in range(number, end)), report))
    return report


def warm_up() -> None:
    """Load a valid file of each kind here, so that no import is measured as a file's memory."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            assert load(kind, valid(kind), folder) == "loaded"
    for kind in ("zip", "pickle", "parts", "views"):
        records(kind)


def try_hostile(report: Report, only: str = "") -> Report:
    warm_up()
    for name, make in hostile():
        if re.search(only, name):
            in_child(lambda: iter([(name, "safetensors" if name.startswith("safetensors") else "zip", make())]), report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file, for runs that share the work")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--only", default="", help="of the hand-made files those whose name matches")
    parser.add_argument("--replay")
    given = parser.parse_args()
    if given.replay:
        seed, _, number = given.replay.partition(":")
        kind, data = drawn(int(seed), int(number))
        Path("replayed").write_bytes(data)
        with tempfile.TemporaryDirectory() as folder:
            print(kind, len(data), *measured(kind, data, folder))
        return 0
    report = Report()
    try_hostile(report, given.only) if given.hostile else fuzz(given.count, given.seed, report, given.first)
    print(report.text())
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
