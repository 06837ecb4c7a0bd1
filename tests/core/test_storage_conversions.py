"""Untyped and typed storages move, convert and are made of buffers as PyTorch's are."""

from __future__ import annotations

from typing import Any

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
BOTH = (trt, torch)


def made(lib: Any) -> Any:
    return lib.tensor([1.0, -2.5, 3.0, 0.0]).untyped_storage()


def outcome(use: Any, lib: Any) -> Any:
    try:
        value = use(lib)
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error), str(error).removeprefix("memoryview: ")
    return (value.tolist(), str(getattr(value, "dtype", None))) if hasattr(value, "tolist") else value


CONVERSIONS = ("double", "float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "complex_double", "complex_float")
FLOAT8 = ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")


@pytest.mark.parametrize("name", [*CONVERSIONS, *FLOAT8])
def test_bytes_and_elements_as_numbers_of_a_dtype(name: str):
    for storage in (made, lambda lib: lib.tensor([1.0, 2.5, 0.0]).storage()):
        assert outcome(lambda lib: getattr(storage(lib), name)(), trt) == outcome(lambda lib: getattr(storage(lib), name)(), torch)


@pytest.mark.parametrize("name", ["cpu", "new", "get_device", "is_pinned", "resizable", "type"])
def test_questions(name: str):
    assert outcome(lambda lib: getattr(made(lib), name)(), trt) == outcome(lambda lib: getattr(made(lib), name)(), torch)
    if name != "new":
        kind = lambda lib: getattr(lib.FloatStorage([1, 2]), name)()  # noqa: E731
        assert outcome(kind, trt) == outcome(kind, torch)


def test_a_storage_on_its_device_is_itself():
    for lib in BOTH:
        storage = made(lib)
        assert storage.cpu() is storage and storage.to(device="cpu") is storage and not storage.is_sparse and not storage.is_sparse_csr
        assert storage.pin_memory is not None and not storage.is_pinned()
    with pytest.raises(TypeError, match="positional"):
        made(trt).to("cpu")
    with pytest.raises(NotImplementedError, match="bytes have no dtype"):
        made(trt).type(trt.float64)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64", "complex128", "bool"])
def test_bytes_are_swapped_in_place(dtype: str):
    swapped = []
    for lib in BOTH:
        storage = lib.arange(32, dtype=lib.uint8).untyped_storage()
        storage.byteswap(getattr(lib, dtype))
        swapped.append(storage.tolist())
    assert swapped[0] == swapped[1]


BUFFERS = {
    "native": lambda lib: lib.UntypedStorage.from_buffer(bytes(range(16)), "native", dtype=lib.float32),
    "big": lambda lib: lib.UntypedStorage.from_buffer(bytes(range(16)), byte_order="big", dtype=lib.float32, count=2, offset=4),
    "big complex": lambda lib: lib.UntypedStorage.from_buffer(bytes(range(16)), "big", dtype=lib.complex64),
    "booleans": lambda lib: lib.UntypedStorage.from_buffer(bytes([0, 1, 2]), "native", dtype=lib.bool),
    "one of them": lambda lib: lib.UntypedStorage.from_buffer(bytearray(b"abcd"), "native", 1, 0, dtype=lib.uint8),
    "none": lambda lib: lib.UntypedStorage.from_buffer(b"", "native", dtype=lib.uint8),
    "behind the end": lambda lib: lib.UntypedStorage.from_buffer(b"abcd", "native", dtype=lib.float32, offset=4),
    "bytes alone": lambda lib: lib.ByteStorage.from_buffer(b"abc"),
    "floats": lambda lib: lib.FloatStorage.from_buffer(bytes(range(16)), byte_order="little"),
    "typed": lambda lib: lib.TypedStorage.from_buffer(b"abcd", dtype=lib.int16, byte_order="big"),
    "no dtype": lambda lib: lib.UntypedStorage.from_buffer(b"abcd"),
    "no whole number": lambda lib: lib.UntypedStorage.from_buffer(b"abc", "native", dtype=lib.float32),
    "too many": lambda lib: lib.UntypedStorage.from_buffer(b"abcd", "native", dtype=lib.float32, count=2),
    "another order": lambda lib: lib.UntypedStorage.from_buffer(b"abcd", "weird", dtype=lib.float32),
    "a negative offset": lambda lib: lib.UntypedStorage.from_buffer(b"abcd", "native", dtype=lib.float32, offset=-1),
    "no buffer": lambda lib: lib.UntypedStorage.from_buffer(3, "native", dtype=lib.float32),
    "a dtype of its own": lambda lib: lib.FloatStorage.from_buffer(b"abcd", "native", dtype=lib.float32),
    "another device": lambda lib: lib.TypedStorage.from_buffer(b"abcd", dtype=lib.int16, byte_order="little", device="meta"),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_storages_of_a_buffers_elements(name: str):
    assert outcome(BUFFERS[name], trt) == outcome(BUFFERS[name], torch)


def test_a_buffer_is_copied():
    given = bytearray(b"abcd")
    storage = trt.UntypedStorage.from_buffer(given, "native", dtype=trt.uint8)
    given[0] = 0
    assert storage.tolist() == list(b"abcd")
