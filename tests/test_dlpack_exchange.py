"""DLPack's table of C functions (`__dlpack_c_exchange_api__`), called as a consumer in C would, also crosswise with PyTorch's; versions, devices, flags."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import tensorrt_lite as trt


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
]  # fmt: skip
SET_ERROR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
OUT = ctypes.POINTER(ctypes.POINTER(Managed))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("earlier", ctypes.c_void_p),
        ("allocate", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), OUT, ctypes.c_void_p, SET_ERROR)),
        ("export_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, OUT)),
        ("import_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object))),
        ("describe_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    ]  # fmt: skip


def api_of(kind: type) -> Api:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Api.from_address(get(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


OURS = api_of(trt.Tensor)


def exported(api: Api, tensor: object) -> ctypes.POINTER(Managed):
    managed = ctypes.POINTER(Managed)()
    assert api.export_object(tensor, ctypes.byref(managed)) == 0
    return managed


def imported(api: Api, managed: object) -> object:
    made = ctypes.py_object()
    assert api.import_object(managed, ctypes.byref(made)) == 0
    value = made.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(value))  # the reference that the function handed over
    return value


def test_the_table():
    assert (OURS.major, OURS.minor, OURS.earlier) == (1, 3, None)
    assert trt.nn.Parameter.__dlpack_c_exchange_api__ is trt.Tensor.__dlpack_c_exchange_api__
    stream = ctypes.c_void_p(1)
    assert OURS.current_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None


def test_a_tensor_there_and_back():
    x = trt.arange(12.0).reshape(3, 4).t()
    before = trt.cpu.memory_allocated()
    managed = exported(OURS, x)
    t = managed.contents.tensor
    assert (managed.contents.major, managed.contents.flags, t.ndim, t.shape[:2], t.strides[:2]) == (1, 0, 2, [4, 3], [1, 4])
    assert (t.data, t.code, t.bits, t.lanes, t.device_type) == (x.data_ptr(), 2, 32, 1, 1)
    y = imported(OURS, managed)
    assert type(y) is trt.Tensor and y.data_ptr() == x.data_ptr() and y.tolist() == x.tolist()
    address = x.data_ptr()
    del x, managed, t
    gc.collect()
    assert y.data_ptr() == address and y[1, 1].item() == 5.0
    del y
    gc.collect()
    assert trt.cpu.memory_allocated() <= before


def test_unused_exports_are_released_by_their_deleter():
    before = trt.cpu.memory_allocated()
    for _ in range(50):
        managed = exported(OURS, trt.ones(1 << 16))
        managed.contents.deleter(managed)
    gc.collect()
    assert trt.cpu.memory_allocated() <= before + (1 << 18)


def test_a_description_without_ownership():
    x = trt.ones(2, 3, 5, dtype=trt.bfloat16)[:, 1:]
    t = DLTensor()
    assert OURS.describe_object(x, ctypes.byref(t)) == 0
    assert (t.data, t.ndim, t.shape[:3], t.strides[:3], t.code, t.bits) == (x.data_ptr(), 3, [2, 2, 5], [15, 5, 1], 4, 16)
    for describe, api in ((True, OURS.describe_object), (False, OURS.export_object)):
        target = DLTensor() if describe else ctypes.POINTER(Managed)()
        with pytest.raises(TypeError):
            api([1.0], ctypes.byref(target))
        with pytest.raises(BufferError, match="meta"):
            api(trt.ones(2, device="meta"), ctypes.byref(target))


def test_tensors_without_memory_are_refused():
    managed, described = ctypes.POINTER(Managed)(), DLTensor()
    refused = []

    def look(x):
        for call in (lambda: OURS.export_object(x, ctypes.byref(managed)), lambda: OURS.describe_object(x, ctypes.byref(described)), x.__dlpack__):
            with pytest.raises(BufferError, match="here is a batch|no memory of its own|layout"):
                call()
            refused.append(type(x))
        return x

    look(trt.eye(2).to_sparse())
    look(trt.eye(2).to_sparse_csr())
    trt.vmap(look)(trt.ones(2, 3))
    assert len(refused) == 9


def test_allocation():
    errors = []
    report = SET_ERROR(lambda context, kind, message: errors.append((kind, message)))
    sizes = (ctypes.c_int64 * 2)(3, 5)
    prototype = DLTensor(None, 1, 0, 2, 5, 64, 1, sizes, None, 0)
    managed = ctypes.POINTER(Managed)()
    assert OURS.allocate(ctypes.byref(prototype), ctypes.byref(managed), None, report) == 0 and errors == []
    x = imported(OURS, managed)
    assert x.dtype == trt.complex64 and x.shape == (3, 5) and x.is_contiguous()
    for change in ({"code": 99}, {"ndim": 65}, {"ndim": -1}, {"device_type": 8}, {"lanes": 2}):
        wrong = DLTensor(None, 1, 0, 2, 5, 64, 1, sizes, None, 0)
        for name, value in change.items():
            setattr(wrong, name, value)
        assert OURS.allocate(ctypes.byref(wrong), ctypes.byref(managed), None, report) == -1 and not managed
        assert errors.pop()[0] == b"BufferError" and not errors
    sizes[0] = -1
    assert OURS.allocate(ctypes.byref(prototype), ctypes.byref(managed), None, report) == -1 and errors.pop()[0] == b"RuntimeError"


DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_with_pytorch(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.tensor([[0, 1, 2], [4, 8, 16]], dtype=torch.uint8 if dtype == "bool" else torch.float32).to(getattr(torch, dtype))
    ours = trt.from_dlpack(theirs)
    assert ours.dtype == getattr(trt, dtype) and ours.data_ptr() == theirs.data_ptr()
    assert torch.equal(torch.from_dlpack(ours).view(torch.uint8), theirs.view(torch.uint8))
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        api = api_of(torch.Tensor)
        across = imported(OURS, exported(api, theirs))
        assert type(across) is trt.Tensor and across.dtype == ours.dtype and across.data_ptr() == theirs.data_ptr()
        back = imported(api, exported(OURS, across))
        assert type(back) is torch.Tensor and back.dtype == theirs.dtype and back.data_ptr() == theirs.data_ptr()


def version_of(capsule: object) -> tuple[int, int]:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    managed = Managed.from_address(get(capsule, b"dltensor_versioned"))
    return managed.major, managed.minor


def flags_of(capsule: object) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Managed.from_address(get(capsule, b"dltensor_versioned")).flags


def test_the_version_is_not_above_what_is_asked():
    x = trt.ones(2)
    for asked, given in (((1, 0), (1, 0)), ((1, 2), (1, 2)), ((1, 9), (1, 3)), ((2, 0), (1, 3))):
        assert version_of(x.__dlpack__(max_version=asked)) == given
    for asked in (None, (0, 8)):
        assert "dltensor_versioned" not in repr(x.__dlpack__(max_version=asked))


def test_copies_devices_and_flags():
    x = trt.ones(2)
    assert flags_of(x.__dlpack__(max_version=(1, 0))) == 0 == flags_of(x.__dlpack__(max_version=(1, 0), copy=False, dl_device=(1, 0)))
    assert flags_of(x.__dlpack__(max_version=(1, 0), copy=True)) == 2
    assert flags_of(trt.frombuffer(b"1234", dtype=trt.uint8).__dlpack__(max_version=(1, 0))) == 1
    assert x.__dlpack__(stream=-1) is not None and x.__dlpack__(stream=None) is not None
    with pytest.raises(ValueError, match="without copying"):
        x.__dlpack__(dl_device=(2, 0), copy=False)
    with pytest.raises(ValueError, match="without copying"):
        trt.from_dlpack(x, device="cuda", copy=False)
    with pytest.raises(TypeError, match="stream"):
        x.__dlpack__(stream="1")
    assert trt.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr() != trt.from_dlpack(x, device="cpu", copy=True).data_ptr()
    capsule = x.__dlpack__()
    assert trt.from_dlpack(capsule, device="cpu", copy=True).data_ptr() != x.data_ptr()


def test_producers_that_know_some_keywords():
    class Producer:
        def __init__(self, *known):
            self.known, self.calls, self.tensor = set(known), [], trt.ones(3)

        def __dlpack__(self, **options):
            self.calls.append(sorted(options))
            if set(options) - self.known:
                raise TypeError("unexpected keyword")
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    for known in ((), ("max_version",), ("copy",), ("max_version", "copy")):
        for copy in (None, True, False):
            producer = Producer(*known)
            made = trt.from_dlpack(producer, copy=copy)
            assert (made.data_ptr() == producer.tensor.data_ptr()) == (not copy), (known, copy, producer.calls)


def test_numpy_takes_versioned_capsules():
    a = np.from_dlpack(trt.arange(3), copy=True)
    assert a.tolist() == [0, 1, 2] and a.flags.writeable
    b = np.from_dlpack(trt.arange(3), device="cpu", copy=False)
    assert b.tolist() == [0, 1, 2]
