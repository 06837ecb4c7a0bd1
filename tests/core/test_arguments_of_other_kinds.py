"""Constructors and queries that are given capsules, NumPy's scalars, meta and nested tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [trt, torch], ids=["ours", "pytorch"])


@BOTH
def test_asarray_takes_capsules(m):
    x = m.arange(3.0)
    capsule = lambda: m.utils.dlpack.to_dlpack(x)
    assert m.asarray(capsule()).data_ptr() == x.data_ptr()
    copied, converted = m.asarray(capsule(), copy=True), m.asarray(capsule(), dtype=m.float64)
    assert copied.data_ptr() != x.data_ptr()
    assert copied.tolist() == converted.tolist() == x.tolist()
    with pytest.raises(ValueError, match="dtype"):
        m.asarray(capsule(), dtype=m.float64, copy=False)
    used = capsule()
    m.asarray(used)
    with pytest.raises(RuntimeError):
        m.asarray(used)


@BOTH
@pytest.mark.parametrize("value", [np.float64(1.5), np.int32(2), np.bool_(True)])
def test_scalars_of_numpy_have_no_memory_to_share(m, value):
    with pytest.raises(RuntimeError, match="NumPy scalars"):
        m.asarray(value, copy=False)
    assert m.asarray(value).item() == value


@BOTH
@pytest.mark.parametrize("value", [[1, 2], 3, None, "abcd"])
def test_frombuffer_needs_a_buffer(m, value):
    with pytest.raises(ValueError, match="buffer protocol"):
        m.frombuffer(value, dtype=m.int32)


@BOTH
def test_constructors_of_a_tensor_take_no_device(m):
    x = m.ones(2)
    for call in (lambda: m.Tensor(x, device="cpu"), lambda: m.FloatTensor(x, device="cpu"), lambda: x.new(x, device="cpu")):
        with pytest.raises(RuntimeError, match="is not supported"):
            call()
    assert m.Tensor([1.0], device="cpu").tolist() == x.new([1.0], device="cpu").tolist() == [1]


@BOTH
@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_sizes_of_storages_may_be_numpys(m, kind):
    size = getattr(np, kind)(3)
    assert m.FloatStorage(size).size() == m.TypedStorage(size).size() == m.UntypedStorage(size).size() == 3


@BOTH
@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("value", [3.0, np.float64(3), np.array([3, 4]), np.array(3)])
def test_other_data_of_storages_are_refused(m, value):
    with pytest.raises(TypeError):
        m.FloatStorage(value)


@BOTH
def test_meta_tensors_are_formatted_by_their_repr(m):
    x = m.ones((), device="meta")
    assert f"{x}" == repr(x)
    with pytest.raises(TypeError):
        f"{x:.2f}"
    assert f"{m.tensor(2.0):.2f}" == "2.00"


@BOTH
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_nested_and_plain_tensors_are_not_compared_in_size(m, layout):
    nested = m.nested.nested_tensor([m.ones(2), m.ones(3)], layout=getattr(m, layout))
    for a, b in ((nested, m.ones(2)), (m.ones(2), nested)):
        with pytest.raises((RuntimeError, ValueError)):
            a.is_same_size(b)
        with pytest.raises((RuntimeError, ValueError)):
            m.is_same_size(a, b)
    assert nested.is_same_size(nested)
