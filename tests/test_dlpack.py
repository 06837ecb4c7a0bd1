"""DLPack both ways with NumPy and PyTorch: shared memory, lifetimes, dtypes, errors."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import tensorrt_lite as trt

NUMPY_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_both_ways(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    t = trt.from_dlpack(a)
    assert str(t.dtype) == f"torch.{dtype}" and t.tolist() == a.tolist() and t.data_ptr() == a.ctypes.data
    t.zero_()
    assert not a.any()
    back = np.from_dlpack(t)
    assert back.dtype == a.dtype and back.shape == (2, 3) and back.ctypes.data == a.ctypes.data


@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "bfloat16"])
def test_torch_both_ways(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    ours = trt.from_dlpack(theirs)
    assert ours.dtype == getattr(trt, dtype) and ours.tolist() == theirs.tolist() and ours.data_ptr() == theirs.data_ptr()
    back = torch.from_dlpack(ours)
    assert back.dtype == theirs.dtype and back.data_ptr() == theirs.data_ptr()
    ours.fill_(1)
    assert bool((theirs == 1).all()) and bool((back == 1).all())
    assert torch.from_dlpack(trt.utils.dlpack.to_dlpack(ours)).tolist() == theirs.tolist()
    assert trt.from_dlpack(torch.utils.dlpack.to_dlpack(theirs)).tolist() == theirs.tolist()


def test_layouts():
    a = np.arange(24.0).reshape(2, 3, 4)
    for view in (a.T, a[:, ::2], a[1:, :, 1], a[:, :, :0], a[0, 0, 0:1], np.array(3.0), np.broadcast_to(a[0], (2, 3, 4)).copy().swapaxes(0, 2)):
        t = trt.from_dlpack(view)
        assert t.shape == view.shape and t.tolist() == view.tolist()
    t = trt.ones(2, 3, 4)
    for view in (t.permute(2, 0, 1), t[:, 1:], t[1], t.expand(5, 2, 3, 4), trt.ones(()), trt.ones(0, 3)):
        b = np.from_dlpack(view)
        assert b.shape == tuple(view.shape) and b.tolist() == view.tolist()
        assert view.numel() == 0 or b.ctypes.data == view.data_ptr()


def test_numpy_memory_lives_as_long_as_the_tensor():
    class Array(np.ndarray):
        pass

    a = np.arange(1000.0).view(Array)
    gone = weakref.ref(a)
    t = trt.from_dlpack(a)
    piece = t[500:]
    del a, t
    gc.collect()
    assert gone() is not None
    assert piece[0].item() == 500.0
    del piece
    gc.collect()
    assert gone() is None


def test_tensor_memory_lives_as_long_as_the_consumer():
    gc.collect()
    before = trt.cpu.memory_allocated()
    t = trt.full((1 << 18,), 7.0)
    a = np.from_dlpack(t)
    del t
    gc.collect()
    assert trt.cpu.memory_allocated() >= before + (1 << 20)
    trt.full((1 << 18,), 1.0)
    assert (a == 7).all()
    del a
    gc.collect()
    assert trt.cpu.memory_allocated() < before + (1 << 20)


def test_unconsumed_capsules_release_their_tensor():
    before = trt.cpu.memory_allocated()
    for _ in range(100):
        trt.ones(1 << 16).__dlpack__()
        trt.ones(1 << 16).__dlpack__(max_version=(1, 0))
        trt.to_dlpack(trt.ones(1 << 16))
    gc.collect()
    assert trt.cpu.memory_allocated() <= before + (1 << 18)


def test_a_capsule_is_consumed_once():
    capsule = trt.to_dlpack(trt.ones(3))
    assert trt.from_dlpack(capsule).tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="consumed only once"):
        trt.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        trt.from_dlpack(5)


def test_exported_storage_cannot_be_resized():
    t = trt.ones(3)
    a = np.from_dlpack(t)
    with pytest.raises(RuntimeError):
        t.resize_(100)
    assert a.tolist() == [1.0] * 3


def test_versions_and_copies():
    t = trt.ones(3)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0))) and "dltensor_versioned" not in repr(t.__dlpack__())
    assert trt.from_dlpack(t).data_ptr() == t.data_ptr()
    assert trt.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    assert trt.from_dlpack(t, device="cpu", copy=False).data_ptr() == t.data_ptr()
    assert t.__dlpack_device__() == (1, 0)


def test_producers_without_keywords():
    class Old:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self):
            return self.tensor.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    t = trt.ones(4)
    assert trt.from_dlpack(Old(t)).data_ptr() == t.data_ptr()
    assert trt.from_dlpack(Old(t), copy=True).data_ptr() != t.data_ptr()


def test_errors():
    with pytest.raises(BufferError, match="require gradient"):
        trt.ones(3, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        trt.ones(3, device="meta").__dlpack__()
    with pytest.raises(ValueError, match="meta"):
        trt.ones(3, device="meta").__dlpack_device__()
    with pytest.raises(AssertionError):
        trt.ones(3).__dlpack__(stream=1)
    with pytest.raises(BufferError):
        trt.ones(3).__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="negative"):
        trt.from_dlpack(np.arange(3.0)[::-1])
    with pytest.raises(BufferError):
        trt.from_dlpack(np.ones(2), device="meta")
    with pytest.raises(TypeError):
        trt.to_dlpack([1])

    class Gpu:
        def __dlpack__(self, **kwargs):
            raise AssertionError("the device is looked at first")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(BufferError, match="device"):
        trt.from_dlpack(Gpu())


def test_read_only_arrays_warn():
    a = np.arange(3.0)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        t = trt.from_dlpack(a)
    assert t.tolist() == [0.0, 1.0, 2.0]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


def capsule_of(shape, strides=None, code=2, bits=32, lanes=1, device=1, offset=0, deleter=None, data=None, ndim=None):
    """A capsule made by hand, as a foreign producer would; what it points to is returned with it."""
    memory = (ctypes.c_float * 16)(*range(16))
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * max(len(shape), 1))(*strides)
    d = _Tensor(
        ctypes.addressof(memory) if data is None else data, device, 0, len(shape) if ndim is None else ndim, code, bits, lanes, sizes, steps, offset, None,
        None if deleter is None else ctypes.cast(deleter, ctypes.c_void_p),
    )  # fmt: skip
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(d), b"dltensor", None), (memory, sizes, steps, d)


def test_foreign_capsules():
    calls = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
    capsule, kept = capsule_of((2, 3), offset=8, deleter=deleter)
    t = trt.from_dlpack(capsule)
    assert t.tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]] and calls == []
    view = t[1]
    del t
    gc.collect()
    assert calls == []
    del view
    gc.collect()
    assert calls == [ctypes.addressof(kept[3])]
    for bad in (
        {"shape": (-1,)}, {"shape": (2**40, 2**40)}, {"shape": (3,), "strides": (2**60,)}, {"shape": (3,), "lanes": 4}, {"shape": (3,), "bits": 4},
        {"shape": (3,), "device": 2}, {"shape": (3,), "code": 9}, {"shape": (3,), "data": 0}, {"shape": (3,), "ndim": 65}, {"shape": (3,), "ndim": -1},
    ):  # fmt: skip
        calls.clear()
        capsule, kept = capsule_of(deleter=deleter, **bad)
        with pytest.raises((BufferError, RuntimeError)):
            trt.from_dlpack(capsule)
        assert calls == []
