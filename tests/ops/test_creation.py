"""Factories beside PyTorch: values, dtypes, strides, and the errors' types and words."""

import math
import warnings

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


def name(dtype):
    return str(dtype).rpartition(".")[2]


def assert_same(call, rtol=1e-6, atol=1e-6):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = call(trt), call(torch)
    assert name(ours.dtype) == name(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.stride() == theirs.stride()
    assert ours.requires_grad == theirs.requires_grad
    a, b = np.array(ours.detach().tolist()), np.array(theirs.detach().tolist())
    if a.dtype.kind in "fc":
        assert np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    else:
        assert np.array_equal(a, b)


SAME = {
    "arange": [
        lambda m: m.arange(5), lambda m: m.arange(5.0), lambda m: m.arange(True), lambda m: m.arange(1, 5, 2), lambda m: m.arange(1, 2.5, 0.5),
        lambda m: m.arange(5, 0, -1), lambda m: m.arange(0, 0), lambda m: m.arange(2**63 - 1, 2**63 - 1), lambda m: m.arange(m.tensor(4)),
        lambda m: m.arange(2**63 - 5, 2**63 - 1), lambda m: m.arange(-(2**63), -(2**63) + 7, 3), lambda m: m.arange(m.tensor(4.0)),
        lambda m: m.arange(3, dtype=m.float16), lambda m: m.arange(300, dtype=m.uint8), lambda m: m.arange(1.5, dtype=m.int64),
        lambda m: m.arange(0.5, 4.5, dtype=m.int64), lambda m: m.arange(3, out=m.zeros(2)), lambda m: m.arange(start=2, end=5), lambda m: m.arange(end=5),
        lambda m: m.arange(1, end=5, step=2), lambda m: m.arange(1, 5, step=2), lambda m: m.arange(2.5, dtype=m.int32), lambda m: m.arange(0, 10, 0.1),
        lambda m: m.arange(10, 0, -0.3), lambda m: m.arange(100000, dtype=m.float32), lambda m: m.arange(100000), lambda m: m.arange(0, 1, 1e-5, dtype=m.float64),
        lambda m: m.arange(6, out=m.zeros(2, 3)), lambda m: m.arange(3, out=m.zeros(6)[::2]), lambda m: m.arange(300, dtype=m.bfloat16),
        lambda m: m.arange(3.0, requires_grad=True),
    ],
    "linspace": [
        lambda m: m.linspace(0, 1, 5), lambda m: m.linspace(0, 1, 0), lambda m: m.linspace(3, 1, 1), lambda m: m.linspace(0, 10, 4, dtype=m.int64),
        lambda m: m.linspace(0, 1, 5, dtype=m.complex64), lambda m: m.linspace(0, 1j, 5), lambda m: m.linspace(1 + 2j, -3j, 6, dtype=m.complex128),
        lambda m: m.linspace(m.tensor(0.0), 1, 3), lambda m: m.linspace(-10, 10, 7, dtype=m.int32), lambda m: m.linspace(0, 1, 5, out=m.zeros(2, dtype=m.float64)),
        lambda m: m.linspace(-3, 7, 10001), lambda m: m.linspace(-3, 7, 10001, dtype=m.float64), lambda m: m.linspace(5, -5, 11, dtype=m.float16),
        lambda m: m.linspace(0, 1, 5, requires_grad=True), lambda m: m.linspace(0, 255, 9, dtype=m.uint8),
    ],
    "logspace": [
        lambda m: m.logspace(0, 2, 3), lambda m: m.logspace(0, 2, 3, 2), lambda m: m.logspace(0, 2, 3, base=2.0, dtype=m.int64), lambda m: m.logspace(0, 1j, 3),
        lambda m: m.logspace(0, 3, 7, dtype=m.int32), lambda m: m.logspace(1, 1, 1), lambda m: m.logspace(-2, 2, 100, dtype=m.float64), lambda m: m.logspace(0, 1, 0),
    ],
    "eye": [
        lambda m: m.eye(2), lambda m: m.eye(2, 3), lambda m: m.eye(4, 2), lambda m: m.eye(2, dtype=m.bool), lambda m: m.eye(0),
        lambda m: m.eye(2, out=m.zeros(1, dtype=m.int64)), lambda m: m.eye(2, 3, dtype=m.complex64), lambda m: m.eye(n=2, m=3), lambda m: m.eye(3, 3, out=m.zeros(3, 3).t()),
    ],
    "range": [
        lambda m: m.range(1, 4), lambda m: m.range(1, 4, 0.5), lambda m: m.range(4, 1, -1), lambda m: m.range(1, 4, dtype=m.int64),
    ],
    "full": [
        lambda m: m.full((2,), -1, dtype=m.uint8), lambda m: m.full((2,), 1.5, dtype=m.int64), lambda m: m.full((2,), 1j), lambda m: m.full((2,), True),
        lambda m: m.full((2,), 3), lambda m: m.full((2,), 3.0), lambda m: m.full((2,), math.inf), lambda m: m.full((2,), 2, dtype=m.bool),
        lambda m: m.full((2,), m.tensor(3.0)), lambda m: m.full((2,), m.tensor(3)), lambda m: m.full(size=(2,), fill_value=3), lambda m: m.full((2,), 3, out=m.zeros(1)),
        lambda m: m.full_like(m.zeros(2, dtype=m.int64), 1.5), lambda m: m.full_like(m.zeros(2), True), lambda m: m.zeros(2, 3).new_full((4,), 3),
        lambda m: m.full((), 7), lambda m: m.full((2, 0), 7.0), lambda m: m.full((2,), 1 - 2j, dtype=m.complex128),
    ],
    "zeros and ones": [
        lambda m: m.zeros([]), lambda m: m.zeros(()), lambda m: m.zeros(m.tensor(3)), lambda m: m.zeros(size=(2,)), lambda m: m.ones(2, dtype=float),
        lambda m: m.ones(2, 3, dtype=m.bool), lambda m: m.zeros(2, out=m.zeros(3, dtype=m.int64)), lambda m: m.ones(2, 3, dtype=m.complex64),
        lambda m: m.zeros(2, requires_grad=True), lambda m: m.ones((2, 3)), lambda m: m.ones([2, 3]), lambda m: m.ones(m.Size((2, 3))),
        lambda m: m.zeros_like(m.zeros(2, 3).t()), lambda m: m.ones_like(m.zeros(2, 3), dtype=m.int64),
        lambda m: m.zeros_like(m.zeros(2, 3, 4, 5), memory_format=m.channels_last), lambda m: m.zeros(2).new_zeros(3, 4), lambda m: m.zeros(2).new_ones((3,), dtype=m.int8),
    ],
    "windows": [
        lambda m, f=f, n=n, p=p, d=d: getattr(m, f)(n, p, dtype=getattr(m, d))
        for f in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
        for n in (0, 1, 2, 5, 64) for p in (True, False) for d in ("float32", "float64")
    ] + [
        lambda m: m.hamming_window(5, True, 0.6), lambda m: m.hamming_window(5, True, 0.6, 0.3), lambda m: m.kaiser_window(6, False, 5.0),
        lambda m: m.kaiser_window(30, True, beta=300.0, dtype=m.float64), lambda m: m.hann_window(5, False, requires_grad=True), lambda m: m.kaiser_window(9, True, 0.0),
    ],
    "vander": [
        lambda m: m.vander(m.tensor([1, 2, 3])), lambda m: m.vander(m.tensor([1.0, 2, 3]), 2), lambda m: m.vander(m.tensor([1.0, 2, 3]), 2, increasing=True),
        lambda m: m.vander(m.tensor([1.0, 2]), 0), lambda m: m.vander(m.tensor([1.0, 2]), 1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", SAME)
def test_values(group):
    for call in SAME[group]:
        assert_same(call)


def test_bfloat16_ranges():
    assert trt.arange(300, dtype=trt.bfloat16).tolist() == torch.arange(300, dtype=torch.bfloat16).tolist()


def test_half_types_round_as_pytorchs():
    for call in (lambda m, d: m.linspace(-2, 4, 50, dtype=d), lambda m, d: m.logspace(0, 4.3, 30, dtype=d), lambda m, d: m.linspace(1, 0, 400, dtype=d)):
        for d in ("float16", "bfloat16"):
            ours, theirs = np.array(call(trt, getattr(trt, d)).tolist()), np.array(call(torch, getattr(torch, d)).tolist())
            assert np.allclose(ours, theirs, rtol=2e-3 if d == "float16" else 1e-2, atol=1e-3)


def test_last_value_of_linspace_is_the_end():
    for start, end, n in [(0.1, 0.7, 1000003), (-1.0, 3.3, 77)]:
        assert trt.linspace(start, end, n, dtype=trt.float64)[n - 1].item() == end


@pytest.mark.usefixtures("split_small_work")
def test_results_do_not_depend_on_threads():
    before = trt.get_num_threads()
    try:
        got = []
        for threads in (1, 2, 3):
            trt.set_num_threads(threads)
            got.append((trt.arange(0, 1, 1e-6).numpy().tobytes(), trt.linspace(0, 1, 700001).numpy().tobytes(), trt.arange(500000).numpy().tobytes()))
        assert got[0] == got[1] == got[2]
    finally:
        trt.set_num_threads(before)


def test_empty():
    assert trt.empty((2, 3)).shape == (2, 3) and trt.empty(size=(2,)).shape == (2,)
    assert trt.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    assert trt.empty(2, 3, device="meta").is_meta and trt.arange(3, device="meta").shape == (3,) and trt.eye(3, device="meta").is_meta
    assert trt.empty(2, 3, 4, 5, memory_format=trt.channels_last).stride() == (60, 1, 15, 3)


def test_default_device():
    with trt.device("meta"):
        for t in (trt.zeros(2), trt.empty(2), trt.full((2,), 1), trt.arange(3), trt.linspace(0, 1, 3), trt.eye(2), trt.rand(2), trt.randn(2), trt.randint(3, (2,)),
                  trt.randperm(3), trt.hann_window(3), trt.empty_permuted((2,), (0,)), trt.normal(0.0, 1.0, (2,))):  # fmt: skip
            assert t.is_meta
    assert trt.zeros(2).is_cpu


def test_default_dtype():
    trt.set_default_dtype(trt.float64)
    try:
        for t in (trt.zeros(2), trt.arange(3.0), trt.linspace(0, 1, 3), trt.rand(2), trt.randn(2), trt.full((1,), 0.5), trt.hann_window(3), trt.eye(2)):
            assert t.dtype == trt.float64
        assert trt.full((1,), 1j).dtype == trt.complex128
    finally:
        trt.set_default_dtype(trt.float32)


ERRORS = [
    lambda m: m.arange(0, 5, -1), lambda m: m.arange(0, 5, 0), lambda m: m.arange(float("inf")), lambda m: m.arange(float("nan")), lambda m: m.arange(0, 1e30),
    lambda m: m.arange(-1), lambda m: m.arange(3, dtype=m.bool), lambda m: m.arange(3, dtype=m.complex64), lambda m: m.arange(3j), lambda m: m.arange(),
    lambda m: m.arange(1, 2, 3, 4), lambda m: m.arange(0, 1, 1e-20), lambda m: m.arange(3, requires_grad=True), lambda m: m.linspace(0, 1, -1),
    lambda m: m.linspace(0, 1), lambda m: m.linspace(m.tensor([0.0]), 1, 3), lambda m: m.linspace(0, 1, 3, dtype=m.bool), lambda m: m.linspace(0, 1j, 5, dtype=m.float32),
    lambda m: m.linspace(0, 1, 2.5), lambda m: m.linspace(5, 300, 5, dtype=m.uint8), lambda m: m.linspace(0, 1, 5, out=m.zeros(2, dtype=m.float64), dtype=m.float32),
    lambda m: m.logspace(0, 2, -1), lambda m: m.eye(-1), lambda m: m.eye(2, -1), lambda m: m.eye(2.5), lambda m: m.eye(2, None), lambda m: m.range(0, 4, 0),
    lambda m: m.range(4), lambda m: m.range(4, 1), lambda m: m.full((2,), 300, dtype=m.uint8), lambda m: m.full((2,), -300, dtype=m.uint8),
    lambda m: m.full((2,), 1j, dtype=m.float32), lambda m: m.full((2,), 2**63), lambda m: m.full((2,), 1e39, dtype=m.float32), lambda m: m.full((2,), 70000.0, dtype=m.float16),
    lambda m: m.full((2,), float("nan"), dtype=m.int64), lambda m: m.full((2,), "a"), lambda m: m.full((2,), None), lambda m: m.full(2, 3), lambda m: m.full((-1,), 3),
    lambda m: m.zeros(2).fill_(1e39), lambda m: m.zeros(2, dtype=m.uint8).fill_(300), lambda m: m.full((2,), 40000, dtype=m.int16), lambda m: m.full((2,), 1e10, dtype=m.int32),
    lambda m: m.zeros(2**40, 2**40), lambda m: m.zeros(2**62), lambda m: m.empty(2**45), lambda m: m.zeros(-2), lambda m: m.zeros(2.5), lambda m: m.zeros("a"),
    lambda m: m.zeros(), lambda m: m.zeros(2, None), lambda m: m.zeros(True), lambda m: m.empty(), lambda m: m.ones(2, dtype="float"), lambda m: m.zeros(2, device="foo"),
    lambda m: m.zeros_like([1]), lambda m: m.empty_like(3), lambda m: m.zeros(2, dtype=m.float32, out=m.zeros(3, dtype=m.int64)),
    lambda m: m.zeros(2, dtype=m.int64, requires_grad=True), lambda m: m.empty_permuted((2, 3), (0, 0)), lambda m: m.empty_permuted((2, 3), (0,)),
    lambda m: m.empty_permuted((2, 3), (0, 5)), lambda m: m.zeros_like(m.zeros(2, 3), memory_format=m.channels_last), lambda m: m.full_like(m.zeros(2, dtype=m.uint8), 300),
    lambda m: m.hann_window(-1), lambda m: m.hann_window(5, dtype=m.int64), lambda m: m.vander(m.tensor([[1.0]])), lambda m: m.vander(m.tensor([1.0, 2]), -1),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_pytorchs(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            ERRORS[number](torch)
        with pytest.raises(type(theirs.value)) as ours:
            ERRORS[number](trt)
    first = str(theirs.value).split("\n")[0]
    if theirs.type is RuntimeError and not any(w in first for w in ("device type", "enforce fail", "Dimension size", "TensorOptions", "negative dimension")):
        assert str(ours.value).startswith(first), (first, str(ours.value))


def test_refused_allocation_names_bytes():
    with pytest.raises(RuntimeError, match="140737488355328 bytes"):
        trt.empty(2**45)
