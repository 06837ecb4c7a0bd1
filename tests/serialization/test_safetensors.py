"""The safetensors format: files round trip, follow the published layout, and are checked before they are believed."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import safetensors
from tensorrt_lite.utils.safetensors import SafetensorError, load_file, safe_open, save_file

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype, tmp_path):
    values = {
        "matrix": trt.tensor([[0, 1, 2], [3, 0, 5]]).to(getattr(trt, dtype)),
        "scalar": trt.tensor(1).to(getattr(trt, dtype)),
        "empty": trt.zeros(0, 3).to(getattr(trt, dtype)),
    }
    path = tmp_path / "model.safetensors"
    safetensors.save_file(values, path, metadata={"format": "pt"})
    for loaded in (safetensors.load_file(path), safetensors.load(path.read_bytes())):
        assert set(loaded) == set(values)
        for name, tensor in values.items():
            assert loaded[name].dtype == tensor.dtype
            assert tuple(loaded[name].shape) == tuple(tensor.shape)
            assert loaded[name].tolist() == tensor.tolist()
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    header = json.loads(raw[8 : 8 + length])
    assert header["__metadata__"] == {"format": "pt"}
    assert header["matrix"]["dtype"] == DTYPES[dtype]
    assert header["matrix"]["shape"] == [2, 3]


def test_the_published_package_agrees(tmp_path):
    published = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    safetensors.save_file({"x": trt.arange(6.0).view(2, 3), "y": trt.arange(3)}, tmp_path / "ours")
    theirs = published.load_file(tmp_path / "ours")
    assert theirs["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    published.save_file({"z": numpy.arange(4, dtype="float32")}, tmp_path / "theirs")
    assert safetensors.load_file(tmp_path / "theirs")["z"].tolist() == [0, 1, 2, 3]


def test_mixed_widths_are_aligned():
    raw = safetensors.save({"a": trt.zeros(3, dtype=trt.uint8), "b": trt.zeros(2, dtype=trt.float64), "c": trt.zeros(1)})
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    for item in header.values():
        assert item["data_offsets"][0] % {"U8": 1, "F64": 8, "F32": 4}[item["dtype"]] == 0


def test_loaded_tensors_are_writable_and_independent():
    loaded = safetensors.load(safetensors.save({"a": trt.zeros(2), "b": trt.zeros(2)}))
    loaded["a"].fill_(1.0)
    assert loaded["b"].tolist() == [0, 0]


def test_what_the_format_cannot_hold():
    base = trt.arange(6.0)
    for tensors, match in (
        ({"a": base, "b": base[2:]}, "share memory"),
        ({"a": base.view(2, 3).t()}, "not contiguous"),
        ({"a": [1.0]}, "is a list, not a tensor"),
        ({"__metadata__": base}, "cannot be the name"),
        ({"a": trt.zeros(1, dtype=trt.complex128)}, "no dtype"),
    ):
        with pytest.raises(SafetensorError, match=match):
            safetensors.save(tensors)
    with pytest.raises(SafetensorError, match="metadata must map text to text"):
        safetensors.save({}, metadata={"a": 1})


HOSTILE = {
    "short": (b"\x01\x02", "header too small"),
    "huge header": ((1 << 60).to_bytes(8, "little") + b"{}", "header too large"),
    "header beyond the file": ((99).to_bytes(8, "little") + b"{}", "invalid header length"),
    "not json": (file_of(b"nope"), "invalid header"),
    "not text": (file_of(b"\xff\xfe"), "invalid header"),
    "deep json": (file_of(b"[" * 100_000), "invalid header"),
    "not an object": (file_of([]), "not an object"),
    "twice": (file_of(b'{"a":{},"a":{}}'), "appears twice"),
    "missing field": (file_of({"a": {"dtype": "U8"}}), "needs dtype, shape and data_offsets"),
    "dtype": (file_of({"a": entry("X9")}, bytes(4)), "unsupported dtype 'X9'"),
    "dtype not text": (file_of({"a": {**entry(), "dtype": [5]}}, bytes(4)), "unsupported dtype"),
    "negative shape": (file_of({"a": entry(shape=(-4,))}, bytes(4)), "has the shape"),
    "float shape": (file_of({"a": entry(shape=(4.0,))}, bytes(4)), "has the shape"),
    "overflow": (file_of({"a": entry(shape=(1 << 40, 1 << 40))}, bytes(4)), "needs .* bytes"),
    "size differs": (file_of({"a": entry(shape=(5,))}, bytes(4)), "needs 5 bytes"),
    "offsets reversed": (file_of({"a": entry(shape=(0,), offsets=(4, 0))}, bytes(4)), "needs 0 bytes"),
    "offsets negative": (file_of({"a": entry(offsets=(-4, 0))}, bytes(4)), "has the offsets"),
    "overlap": (file_of({"a": entry(), "b": entry(offsets=(2, 6))}, bytes(6)), "invalid offsets"),
    "gap": (file_of({"a": entry(), "b": entry(offsets=(6, 10))}, bytes(10)), "invalid offsets"),
    "truncated": (file_of({"a": entry()}, bytes(3)), "not complete"),
    "trailing": (file_of({"a": entry()}, bytes(5)), "not complete"),
    "metadata": (file_of({"__metadata__": {"a": 1}}), "metadata must map text to text"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    data, match = HOSTILE[name]
    with pytest.raises(SafetensorError, match=match):
        safetensors.load(data)
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(SafetensorError, match=match):
        safetensors.load_file(path)


def test_a_file_opened_part_by_part(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        "b": trt.arange(12.0).reshape(4, 3),
        "a": trt.tensor([1, -2], dtype=trt.int8),
        "half": trt.ones(3, dtype=trt.bfloat16),
        "none": trt.empty(0, 2),
    }
    save_file(tensors, path, {"format": "pt"})
    with safe_open(path, framework="pt") as file:
        assert file.keys() == ["a", "b", "half", "none"] and set(file.offset_keys()) == set(tensors) and file.metadata() == {"format": "pt"}
        for name, tensor in tensors.items():
            found = file.get_tensor(name)
            assert found.dtype == tensor.dtype and found.shape == tensor.shape and trt.equal(found, tensor)
        part = file.get_slice("b")
        assert part.get_shape() == [4, 3] and part.get_dtype() == "F32" and part[1:3, 0].tolist() == [3.0, 6.0]
        first, second = file.get_tensor("b"), file.get_tensor("b")
        assert first.data_ptr() == second.data_ptr() == part[:].data_ptr()
        with pytest.raises(SafetensorError, match="no tensor 'c'"):
            file.get_tensor("c")
    with pytest.raises(SafetensorError, match="closed"):
        file.get_tensor("b")
    first.zero_()  # in memory alone, and also when the file is closed
    assert trt.equal(load_file(path)["b"], tensors["b"]) and second.sum().item() == 0
    with pytest.raises(SafetensorError, match="framework"):
        safe_open(path, framework="np")


def test_mapped_files(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {"x": trt.arange(6.0).reshape(2, 3), "y": trt.tensor(3)}
    save_file(tensors, path)
    mapped = load_file(path, mmap=True)
    assert {name: t.tolist() for name, t in mapped.items()} == {name: t.tolist() for name, t in tensors.items()}
    mapped["x"].add_(1)
    assert load_file(path, mmap=True)["x"].tolist() == tensors["x"].tolist()
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 1)
    for call in (lambda: load_file(path, mmap=True), lambda: safe_open(path)):
        with pytest.raises(SafetensorError):
            call()


def test_unaligned_tensors_are_copied(tmp_path):
    path = tmp_path / "model.safetensors"
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}'
    header += b" " * (-len(header) % 8)
    data = np.array([1.5, 2.5], np.float32).tobytes()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x07" + data)
    assert {name: t.tolist() for name, t in load_file(path, mmap=True).items()} == {"a": [7], "b": [1.5, 2.5]}


def test_the_published_package_and_safe_open_agree(tmp_path):
    published = pytest.importorskip("safetensors")
    path = tmp_path / "model.safetensors"
    save_file({"x": trt.arange(6.0).reshape(2, 3), "n": trt.tensor([1], dtype=trt.int16)}, path, {"a": "b"})
    with published.safe_open(path, framework="np") as theirs, safe_open(path) as ours:
        assert theirs.keys() == ours.keys() and theirs.metadata() == ours.metadata() and theirs.offset_keys() == ours.offset_keys()
        assert (
            theirs.get_slice("x").get_shape() == ours.get_slice("x").get_shape()
            and theirs.get_slice("n").get_dtype() == ours.get_slice("n").get_dtype()
        )
        assert theirs.get_slice("x")[:, 1:].tolist() == ours.get_slice("x")[:, 1:].tolist()
