"""NumPy and tensors: conversions with NumPy 2's arguments, functions and ufuncs, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def same_memory(a: np.ndarray, t: trt.Tensor) -> bool:
    return a.__array_interface__["data"][0] == t.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_shares_memory_or_copies_as_asked(dtype):
    t = trt.ones(2, 3).to(getattr(trt, dtype)).t()
    for make, shared in (
        (np.asarray, True),
        (lambda t: np.array(t, copy=False), True),
        (lambda t: np.array(t, copy=None), True),
        (np.array, False),
        (np.copy, False),
    ):
        a = make(t)
        assert type(a) is np.ndarray and a.dtype == dtype and a.shape == (3, 2) and same_memory(a, t) == shared


def test_a_copy_is_the_arrays_own():
    t = trt.zeros(3)
    np.array(t)[:] = 1
    np.asarray(t, dtype=np.float64)[:] = 1
    assert t.tolist() == [0, 0, 0]
    np.asarray(t)[:] = 1
    assert t.tolist() == [1, 1, 1]


def test_array_of_another_dtype():
    t = trt.tensor([1.5, 2.5])
    a = np.asarray(t, dtype=np.int16)
    assert a.dtype == np.int16 and a.tolist() == [1, 2] and np.asarray(t, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="avoid copy.*float32.*float64"):
        np.asarray(t, dtype=np.float64, copy=False)
    assert t.__array__(np.float64, copy=True).dtype == np.float64


def test_what_numpy_is_not_given():
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(trt.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="meta"):
        np.asarray(trt.ones(2, device="meta"))
    # as of PyTorch's tensors: NumPy asks for __array__, and nothing goes around its checks
    t = trt.ones(2)
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(t)
    assert not hasattr(t, "__array_interface__") and not hasattr(t, "__array_struct__")
    assert not hasattr(t, "__array_function__") and not hasattr(t, "__array_ufunc__")
    with pytest.raises(AttributeError, match="CUDA"):
        t.__cuda_array_interface__


def test_ufuncs_and_functions_beside_pytorch():
    torch = pytest.importorskip("torch")
    values = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.5]]
    ours, theirs = trt.tensor(values), torch.tensor(values)
    for call in (
        lambda t: np.sin(t), lambda t: np.add(t, np.ones(3)), lambda t: np.add(np.ones(3), t), lambda t: np.multiply.reduce(t), lambda t: np.isnan(t), lambda t: t * np.ones(3),
        lambda t: np.concatenate([t, t]), lambda t: np.where(t > 1, t, 0), lambda t: np.dot(t, t.T), lambda t: np.linalg.norm(t), lambda t: np.stack([t[0], t[1]]),
        lambda t: np.einsum("ij->j", t), lambda t: np.array([t[0], t[1]]), lambda t: np.float64(2) * t, lambda t: np.float32(2) ** t,
    ):  # fmt: skip
        made, expected = call(ours), call(theirs)
        assert isinstance(made, trt.Tensor) == isinstance(expected, torch.Tensor) and isinstance(made, np.ndarray) == isinstance(expected, np.ndarray)
        np.testing.assert_allclose(np.asarray(made), np.asarray(expected), rtol=1e-6)
        assert str(made.dtype) == str(expected.dtype)
    for t in (ours, theirs):
        with pytest.raises(TypeError):
            np.ones(3) * t
        with pytest.raises(RuntimeError, match="requires grad"):
            np.sin(t.clone().requires_grad_())


def test_ml_dtypes_both_ways():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        kind = np.dtype(getattr(ml_dtypes, name))
        t = trt.tensor([0.5, 1.0, 2.0, 4.0]).to(getattr(trt, name))
        a = t.numpy()
        assert a.dtype == kind and same_memory(a, t) and a.astype(np.float32).tolist() == [0.5, 1.0, 2.0, 4.0] and np.asarray(t).dtype == kind
        back = trt.from_numpy(a[::2])
        assert back.dtype == t.dtype and back.data_ptr() == t.data_ptr() and back.float().tolist() == [0.5, 2.0]
        assert trt.tensor(a).dtype == t.dtype and trt.asarray(a, copy=True).data_ptr() != t.data_ptr()


def test_typed_conversion_of_a_list_of_tensors():
    assert np.asarray([trt.tensor(1.0), trt.tensor(2.0)], dtype=np.float64).tolist() == [1.0, 2.0]
    assert np.array([trt.arange(2), trt.arange(2)]).tolist() == [[0, 1], [0, 1]]


def test_random_state_and_testing_take_tensors():
    t = trt.arange(4.0)
    np.testing.assert_array_equal(t, [0, 1, 2, 3])
    assert np.allclose(t, t + 1e-9) and np.array_equal(t, t) and np.random.default_rng(0).permutation(t).shape == (4,)
    assert np.interp(t, [0, 4], [0, 8]).tolist() == [0, 2, 4, 6] and np.unique(t).tolist() == [0, 1, 2, 3]
