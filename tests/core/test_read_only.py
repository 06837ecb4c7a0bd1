"""Memory that somebody declared read-only is never written to: not by an operator in place, not through out=, not by a step of an
optimizer or a running statistic. The census goes through all operators; what is written to is compared with what it was."""

from __future__ import annotations

import copy
import ctypes
import mmap
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import tensorrt_lite as trt
from tests.conformance import opinfo
from tests.conformance.library import Library

HERE = Library(trt)


def frozen(tensor):
    """The tensor's values over memory that may not be written to."""
    raw = bytes(tensor.detach().contiguous().untyped_storage().tobytes()[: tensor.numel() * tensor.element_size()])
    if not raw:
        return tensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trt.frombuffer(raw, dtype=tensor.dtype).reshape(tensor.shape)


def bytes_of(tensor):
    return tensor.untyped_storage().tobytes()[tensor.storage_offset() * tensor.element_size() :][: tensor.numel() * tensor.element_size()]


def array(values, writeable=False):
    a = np.array(values, dtype=np.float32)
    a.flags.writeable = writeable
    return a


def over(a):
    with pytest.warns(UserWarning, match="not writable"):
        return trt.from_numpy(a)


class ReadOnly:
    """A producer of DLPack capsules that says its memory is read-only."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **kwargs):
        return self.a.__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self):
        return (1, 0)


def tensors_over_read_only_memory(tmp_path):
    (tmp_path / "file").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    mapped = np.memmap(tmp_path / "file", mode="r", dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open(tmp_path / "file", "rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return {
            "memmap": trt.from_numpy(mapped),
            "as_tensor": trt.as_tensor(mapped),
            "asarray": trt.asarray(mapped),
            "array": trt.from_numpy(array([0, 1, 2, 3])),
            "broadcast": trt.from_numpy(np.broadcast_to(np.float32(1), (4,))),
            "bytes": trt.frombuffer(bytes(16), dtype=trt.float32),
            "memoryview": trt.frombuffer(memoryview(bytearray(16)).toreadonly(), dtype=trt.float32),
            "mmap": trt.frombuffer(pages, dtype=trt.float32),
            "dlpack": trt.from_dlpack(ReadOnly(array([0, 1, 2, 3]))),
            "array's dlpack": trt.from_dlpack(array([0, 1, 2, 3])),
        }


@pytest.mark.filterwarnings("ignore")
def test_writing_raises_whoever_lent_the_memory(tmp_path):
    for name, x in tensors_over_read_only_memory(tmp_path).items():
        before = x.tolist()
        views = [x, x[1:], x.view(2, 2).t(), x.detach(), x.data, copy.copy(x), trt.empty(0).set_(x.untyped_storage(), 0, (1,))]
        other = trt.ones(4)
        other.data = x
        for view in [*views, other]:
            for write in (lambda v: v.fill_(9), lambda v: v.zero_(), lambda v: v.__setitem__(0, 9), lambda v: v.copy_(trt.ones(())), lambda v: v.uniform_()):
                with pytest.raises(RuntimeError, match="read-only"):
                    write(view)
            with pytest.raises(RuntimeError, match="read-only"):
                trt.add(trt.ones(view.shape), 1, out=view)
        storage = x.untyped_storage()
        for write in (lambda s: s.fill_(1), lambda s: s.copy_(s.clone())):
            with pytest.raises(RuntimeError, match="read-only"):
                write(storage)
        assert x.tolist() == before, name
        assert not x.numpy().flags.writeable
        assert x.clone().fill_(2).tolist() == [2, 2, 2, 2]
        assert (x + 1).add_(1).tolist() == [v + 2 for v in before]


def test_reading_and_new_geometry_go_on():
    x = over(array([3, 1, 2, 0]))
    assert x.sort().values.tolist() == [0, 1, 2, 3]
    assert x.unsqueeze_(0).shape == (1, 4)
    assert x.t_().shape == (4, 1)
    assert trt.nn.Linear(1, 2)(x).shape == (4, 2)
    assert trt.tensor(array([1, 2])).fill_(3).tolist() == [3, 3]
    x.set_(trt.ones(2))
    assert x.fill_(5).tolist() == [5, 5]


@pytest.mark.filterwarnings("ignore:The given DLPack tensor is read-only")
def test_the_flag_goes_on_through_dlpack():
    x = over(array([1, 2]))
    assert not np.from_dlpack(x).flags.writeable
    y = trt.from_dlpack(x)
    with pytest.raises(RuntimeError, match="read-only"):
        y.add_(1)
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    assert trt.from_dlpack(x, copy=True).add_(1).tolist() == [2, 3]


def test_gradients_optimizers_and_running_statistics():
    w = trt.nn.Parameter(over(array([1, 2])))
    w.grad = trt.ones(2)
    for kind in (trt.optim.SGD, trt.optim.Adam, trt.optim.AdamW, trt.optim.RMSprop):
        for options in [{"foreach": False}, {"foreach": True}, {"fused": True}][: 2 + (kind is not trt.optim.RMSprop)]:
            with pytest.raises(RuntimeError, match="read-only"):
                kind([w], lr=0.1, **options).step()
    assert w.tolist() == [1, 2]
    v = trt.ones(2, requires_grad=True)
    v.grad = over(array([1, 2]))
    with pytest.raises(RuntimeError, match="read-only"):
        (v * v).sum().backward()
    assert v.grad.tolist() == [1, 2]
    mean, var = over(array([0, 0])), trt.ones(2)
    with pytest.raises(RuntimeError, match="read-only"):
        trt.nn.functional.batch_norm(trt.randn(4, 2), mean, var, training=True)
    assert mean.tolist() == [0, 0]


def writes_of(op):
    """(how, call, targets) of an operator that writes to given memory: call(targets) writes, or refuses to."""
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else opinfo.dtypes(op)[0]
    opinfo.seed_sampling()
    # Not through OpInfo's own iterator, which looks at the whole Python stack for each sample.
    samples = op.sample_inputs_func(op, "cpu", dtype, False)
    first, args, kwargs = HERE.sample(next(s for s in samples if not isinstance(s.input, torch.Tensor) or s.input.numel()))
    if not isinstance(first, trt.Tensor):
        return
    if op.supports_out or op.name in opinfo.OUT_WITHOUT_FLAG:
        function = HERE.function(op)
        result = function(first, *args, **kwargs)
        results = [result] if isinstance(result, trt.Tensor) else list(result)
        single = isinstance(result, trt.Tensor)
        if all(isinstance(r, trt.Tensor) for r in results):
            yield "out", lambda out: function(first, *args, **kwargs, out=out[0] if single else tuple(out)), results
    if op.inplace_variant is not None:
        method = HERE.method(op.inplace_variant)
        yield "in place", lambda out: method(out[0], *args, **kwargs), [first]


@pytest.mark.filterwarnings("ignore")
def test_census_of_operators_that_write():
    refused, wrong = 0, []
    for name, op in opinfo.entries().items():
        for how, call, results in writes_of(op):
            targets = [frozen(r) for r in results]
            before = [bytes_of(t) for t in targets]
            try:
                call(targets)
            except Exception as error:
                refused += "read-only" in str(error)
                if "read-only" not in str(error) and "needs dim" not in str(error):
                    wrong.append(f"{name} {how}: {type(error).__name__}: {error}")
            else:
                copies = [r.clone() for r in results]
                call(copies)
                if [bytes_of(t) for t in copies] != before:
                    wrong.append(f"{name} {how}: not refused")
            if [bytes_of(t) for t in targets] != before:
                wrong.append(f"{name} {how}: written to")
    assert not wrong, "\n".join(wrong)
    assert refused > 200


def test_a_mapped_file_is_not_a_signal(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    program = f"""
import warnings, numpy as np, tensorrt_lite as t
warnings.simplefilter("ignore")
for make in (t.from_numpy, t.as_tensor, t.from_dlpack, lambda a: t.frombuffer(a, dtype=t.uint8)):
    x = make(np.memmap({str(path)!r}, mode="r", dtype="u1"))
    try:
        x.fill_(1)
    except RuntimeError as error:
        assert "read-only" in str(error)
    else:
        raise SystemExit("written")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0


# ---- buffers of objects ----------------------------------------------------------------------------------------------


class Texts(ctypes.Structure):
    _fields_ = [("Z", ctypes.c_double), ("s", ctypes.c_wchar_p), ("x", ctypes.c_double)]


class Pair(ctypes.Structure):
    _fields_ = [("o", ctypes.py_object), ("x", ctypes.c_double)]


@pytest.mark.parametrize(
    "buffer",
    [
        np.array([object(), object()]),
        np.zeros(2, dtype=[("a", "f8"), ("b", "O")]),
        (ctypes.py_object * 2)(1, 2),
        (Pair * 2)(),
        (ctypes.c_char_p * 2)(b"a", b"b"),
        (ctypes.POINTER(ctypes.c_int) * 2)(),
        (ctypes.CFUNCTYPE(None) * 2)(),
        (ctypes.c_void_p * 2)(),
        (Texts * 2)(),
        (ctypes.c_wchar_p * 2)(),
    ],
    ids=["objects", "field", "ctypes", "structure", "text", "pointer", "function", "address", "texts", "wide text"],
)
def test_buffers_of_addresses_are_refused(buffer):
    with pytest.raises(TypeError, match="elements are addresses|can't make a tensor"):
        trt.frombuffer(buffer, dtype=trt.uint8)


def test_object_arrays_are_refused_as_in_pytorch():
    for make in (trt.from_numpy, trt.as_tensor, trt.tensor, trt.asarray):
        with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.object_"):
            make(np.array([object()]))


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "c8", "c16", "i2", "?", [("Object", "f4"), ("Z", "f4")]])
def test_buffers_of_numbers_are_taken(dtype):
    a = np.zeros(4, dtype=dtype)
    t = trt.frombuffer(a, dtype=trt.uint8)
    t.fill_(1)
    assert a.tobytes() == b"\1" * a.nbytes
    assert trt.frombuffer(bytearray(8), dtype=trt.float64, offset=0).tolist() == [0.0]


class Fickle:
    """Gives out other memory each time it is asked, as `__buffer__` allows from Python 3.12 on."""

    def __init__(self):
        self.asked = 0

    def __buffer__(self, flags):
        self.asked += 1
        return memoryview(bytearray(64 if self.asked == 1 else 1))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes export buffers from Python 3.12 on")
def test_a_buffer_is_asked_for_once():
    fickle = Fickle()
    assert trt.frombuffer(fickle, dtype=trt.uint8).numel() == 64
    assert fickle.asked == 1
