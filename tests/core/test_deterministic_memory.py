"""Deterministic mode: memory that nobody has written is NaN, the largest integer or true."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


@pytest.fixture(autouse=True)
def deterministic():
    for m in (trt, torch):
        m.use_deterministic_algorithms(True)
    yield
    for m in (trt, torch):
        m.use_deterministic_algorithms(False)
        m.utils.deterministic.fill_uninitialized_memory = True


def resized(m, dtype):
    x = m.zeros(2, dtype=dtype)
    x.resize_(50, 20)
    return x


MAKERS = {
    "empty": lambda m, dtype: m.empty(3, 4, dtype=dtype),
    "channels_last": lambda m, dtype: m.empty(1, 2, 3, 4, dtype=dtype, memory_format=m.channels_last),
    "out": lambda m, dtype: m.empty(5, out=m.zeros(0, dtype=dtype)),
    "empty_like": lambda m, dtype: m.empty_like(m.zeros(3, 4, dtype=dtype).t()),
    "empty_strided": lambda m, dtype: m.empty_strided((3, 4), (1, 3), dtype=dtype),
    "empty_permuted": lambda m, dtype: m.empty_permuted((3, 4), (1, 0), dtype=dtype),
    "new_empty": lambda m, dtype: m.zeros(1, dtype=dtype).new_empty((3,)),
    "new_empty_strided": lambda m, dtype: m.zeros(1, dtype=dtype).new_empty_strided((3,), (1,)),
    "resize_": resized,
    "resize_as_": lambda m, dtype: m.zeros(2, dtype=dtype).resize_as_(m.zeros(40)),
}


def values(x):
    return [str(v) for v in x.flatten().tolist()]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_undefined_elements_are_as_in_pytorch(name, dtype):
    ours, theirs = (MAKERS[name](m, getattr(m, dtype)) for m in (trt, torch))
    assert values(ours) == values(theirs)
    assert ours.stride() == theirs.stride()


def test_the_constructor_and_meta():
    assert trt.Tensor(3).isnan().all()
    assert trt.empty(3, device="meta").shape == (3,)
    assert trt.empty(0).shape == (0,)


def test_it_can_be_turned_off():
    trt.utils.deterministic.fill_uninitialized_memory = False
    x = trt.zeros(1000).resize_(100_000)
    assert not x[50_000:].isnan().any()
    trt.utils.deterministic.fill_uninitialized_memory = True
    assert trt.empty(3).isnan().all()
    trt.use_deterministic_algorithms(False)
    assert not trt.zeros(1000).resize_(100_000)[50_000:].isnan().any()
