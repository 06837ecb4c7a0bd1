"""Custom devices, tested with one whose memory faults when the host reads it (guarded.py). A device type lasts as long as its process, so each test is a
program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

START = """
import copy, ctypes, io, pickle, threading, warnings
import tensorrt_lite as trt
from tensorrt_lite import backend
from tests.backend.guarded import Guarded, add_elementwise, host, interface, npu, ran
F = trt.nn.functional

def refused(error, text, f):
    try:
        f()
    except error as e:
        assert text in str(e), str(e)
    else:
        raise AssertionError(f"nothing raised: {text}")

def near(a, b):
    assert a.device == b.device or b.is_cpu, (a.device, b.device)
    trt.testing.assert_close(a.detach().cpu(), b.detach().cpu())
"""


def run(program: str, expected: int = 0) -> None:
    done = subprocess.run([sys.executable, "-c", START + program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr[-3000:])


def test_the_memory_faults_when_the_host_reads_it() -> None:
    run("host(trt.ones(3, device='npu')).sum()", expected=-11)


def test_names_and_devices() -> None:
    run("""
for name, expected in (("npu", "npu"), ("npu:1", "npu:1"), ("privateuseone:1", "npu:1")):
    assert str(trt.device(name)) == expected
x = trt.empty(2, device="npu")
assert str(x.device) == "npu:0" and x.get_device() == 0 and x.is_npu and not x.is_cpu and not x.is_cuda and str(x.untyped_storage().device) == "npu:0"
assert str(x.npu(1).device) == str(x.to("npu:1").device) == "npu:1" and x.npu() is x and not x.cpu().is_npu
with trt.device("npu:1"):
    assert str(trt.ones(1).device) == "npu:1"
assert trt.get_device_module("npu:1") is trt.npu and trt.npu.device_count() == 2
m = trt.nn.Linear(2, 2).npu(1)
assert m.weight.is_npu and m.weight.get_device() == 1 and m.cpu().weight.is_cpu
refused(RuntimeError, "Invalid device, must be npu device", lambda: x.npu("cpu"))
refused(RuntimeError, "invalid device ordinal 2", lambda: trt.empty(1, device="npu:2"))
refused(RuntimeError, "Expected one of cpu, cuda, meta, npu device type", lambda: trt.device("gpu"))

# several types, each with its own devices and memory
other = backend.register_device("second", Guarded(3))
y = trt.arange(4.0).second(2)
assert str(y.device) == "second:2" and y.is_second and not y.is_npu and not x.is_second
assert str(y.npu(1).second(0).device) == "second:0" and y.npu(1).second(0).tolist() == [0, 1, 2, 3]
x4 = trt.ones(4, device="npu")
assert y.copy_(x4).tolist() == [1, 1, 1, 1] and x4.copy_(trt.zeros(4)).tolist() == [0, 0, 0, 0]
refused(RuntimeError, "same device", lambda: x4 + y)
refused(RuntimeError, "npu:0 and npu:1", lambda: x4 + x4.npu(1))
refused(RuntimeError, "cpu and npu:0", lambda: x4 + trt.ones(4))
refused(RuntimeError, "same device", lambda: trt.cat([x4, y]))
for i in range(6):
    backend.register_device(f"more{i}", Guarded(1))
refused(RuntimeError, "8 custom device types already", lambda: backend.register_device("ninth", Guarded(1)))
refused(RuntimeError, "registered already", lambda: backend.register_device("second", Guarded(1)))
refused(RuntimeError, "name of the package", lambda: backend.register_device("nn", Guarded(1)))
refused(RuntimeError, "has already been set", lambda: trt.utils.rename_privateuse1_backend("third"))
refused(RuntimeError, "already been registered", lambda: trt.utils.generate_methods_for_privateuse1_backend())
assert [d.name for d in backend.registered()][:3] == ["npu", "second", "more0"] and trt.ones(1, device="more5").tolist() == [1]
s = trt.arange(3, dtype=trt.uint8).untyped_storage()
refused(AttributeError, "no attribute 'npu'", lambda: s.npu)
trt.utils.generate_methods_for_privateuse1_backend(False, False, False, True, [trt.float64])
assert s.npu(1).is_npu and not s.is_npu and s.npu(1).npu(1).nbytes() == 3
typed = trt.TypedStorage(wrap_storage=trt.arange(3.0).untyped_storage(), dtype=trt.float32)
assert typed.npu().is_npu and typed.npu().dtype is trt.float32
refused(RuntimeError, "not supported by this backend", trt.TypedStorage(wrap_storage=s, dtype=trt.float64).npu)
""")


def test_the_accelerator_is_the_first_custom_device() -> None:
    run("""
a = trt.accelerator
assert str(a.current_accelerator()) == "npu" and a.device_count() == 2 and a.is_available() and str(trt.device(1)) == "npu:1"
a.set_device_index(1)
assert a.current_device_index() == trt.npu.current_device() == 1 and str(trt.empty(1, device="npu").device) == "npu:1"
with a.device_index(0):
    assert trt.npu.current_device() == 0
with trt.npu.device("npu:0"):
    assert str(trt.empty(1, device="npu").device) == "npu:0"
seen = []
thread = threading.Thread(target=lambda: seen.append(trt.npu.current_device()))
thread.start(); thread.join()
assert seen == [0] and trt.npu.current_device() == 1                # a thread's own
a.synchronize()
refused(ValueError, "doesn't match the current accelerator npu", lambda: a.synchronize("cuda"))
""")


def test_the_host_never_reads_the_memory() -> None:
    run("""
x = trt.arange(6, dtype=trt.float32).reshape(2, 3).npu(1)
assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[1, 2].item() == 5 and float(x[0, 1]) == 1 and bool(x[0, 1]) and not x[0, 0]
assert str(x) == "tensor([[0., 1., 2.],\\n        [3., 4., 5.]], device='npu:1')" and "npu:1" in repr(x.t()[1:]) and repr(x.untyped_storage())
assert x.t()[1:, 0].tolist() == [1, 2] and x[:, ::2].cpu().tolist() == [[0, 2], [3, 5]]
assert x.t().contiguous().tolist() == [[0, 3], [1, 4], [2, 5]] and x[:, 1].clone().tolist() == [1, 4]
assert x.double().dtype is trt.float64 and x.half().to("cpu", trt.int64).tolist() == [[0, 1, 2], [3, 4, 5]]
assert x.to("npu:0").tolist() == x.tolist() and x.to(memory_format=trt.contiguous_format) is x

# writes, also between the elements of a view
y = trt.zeros(3, 4, device="npu")
y[1] = 2
y[:, 3] = trt.arange(3.0)
y[0, :2].fill_(7)
y.t()[2].copy_(trt.tensor([4, 5, 6]))
assert y.tolist() == [[7, 7, 4, 0], [2, 2, 5, 1], [0, 0, 6, 2]]
y[:2].zero_()
assert y.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 6, 2]]
assert trt.empty(0, 3, device="npu").tolist() == [] and trt.empty(0, device="npu").cpu().shape == (0,)
y.resize_(4, 5)
assert y.tolist()[0][:4] == [0, 0, 0, 0] and y.flatten()[:12].tolist()[8:] == [0, 0, 6, 2]
b = trt.tensor([1.5, -2]).to(trt.float8_e5m2).npu()
assert b.dtype is trt.float8_e5m2 and b.cpu().float().tolist() == [1.5, -2]

# factories
for made, expected in (
    (trt.ones(2, device="npu"), [1, 1]), (trt.full((2,), 3.5, device="npu:1"), [3.5, 3.5]), (trt.arange(3, device="npu"), [0, 1, 2]), (trt.linspace(0, 1, 3, device="npu"), [0, 0.5, 1]),
    (trt.tensor([1, 2], device="npu"), [1, 2]), (trt.zeros_like(x[0]), [0, 0, 0]), (x.new_ones(2), [1, 1]), (trt.eye(2, device="npu")[0], [1, 0]),
):
    assert made.is_npu and made.tolist() == expected, (made, expected)
assert sorted(trt.randperm(5, device="npu").tolist()) == [0, 1, 2, 3, 4]

# files, pickles, copies of objects
state = {"w": x, "v": x[:, 1]}
file = io.BytesIO()
trt.save(state, file)
for where, device in ((None, "npu:1"), ("cpu", "cpu"), ("npu:0", "npu:0"), ({"npu:1": "npu:0"}, "npu:0")):
    file.seek(0)
    found = trt.load(file, map_location=where)
    assert str(found["w"].device) == device and found["w"].tolist() == x.tolist() and found["v"].tolist() == [1, 4], (where, found)
assert pickle.loads(pickle.dumps(x)).tolist() == copy.deepcopy(x).tolist() == x.tolist() and copy.deepcopy(x).is_npu

# what cannot be had says so
refused(TypeError, "can't convert npu:1 device type tensor to numpy", x.numpy)
refused(TypeError, "can't convert npu:1 device type tensor to numpy", lambda: memoryview(x.__array__()))
refused(Exception, "npu", lambda: x.__dlpack__())
refused(NotImplementedError, "not in host memory", lambda: x.untyped_storage().tobytes())
refused(NotImplementedError, "not in host memory", lambda: x.untyped_storage()[0])
refused(RuntimeError, "cannot address the memory", lambda: backend.as_cpu(x))
assert x.data_ptr() != 0

# copies that do not wait are those of a program's own memory
interface.calls.clear()
trt.ones(3).to("npu", non_blocking=True)
x.contiguous().to("cpu", non_blocking=True)
x.copy_(trt.ones(2, 3), non_blocking=True)
x.copy_(trt.ones(3), non_blocking=True)
assert [c[2] for c in interface.calls] == [True, True, True, False], interface.calls
n = len(interface.regions)
del x, y, b, state, found
import gc; gc.collect()
assert len(interface.regions) < n                                        # memory goes back
""")


def test_streams_events_and_generators() -> None:
    run("""
s = trt.npu.Stream()
assert s.device == trt.device("npu:0") and s.query() and s == s and s != trt.npu.Stream() and isinstance(s, trt.Stream) and s.stream_id != 0
with trt.npu.stream(s):
    assert trt.npu.current_stream() == s == trt.accelerator.current_stream()
    start, end = trt.npu.Event(enable_timing=True), trt.Event(device="npu", enable_timing=True)
    start.record()
    s.record_event(end)
    end.wait()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(trt.npu.current_stream()))
    thread.start(); thread.join()
    assert seen == [trt.npu.default_stream()]                            # a thread's own
assert interface.streams == [(0, s.stream_id), (0, 0)] and trt.npu.current_stream() == trt.npu.default_stream()
used = []
interface.record_stream = lambda *arguments: used.append(arguments)
x = trt.ones(3, device="npu")
x.record_stream(s)
assert used == [(x.data_ptr(), 12, 0, s.stream_id)]
end.synchronize(); s.synchronize(); trt.npu.synchronize(); s.wait_stream(trt.npu.current_stream())
assert start.query() and start.elapsed_time(end) >= 0
refused(ValueError, "enable_timing=True", lambda: trt.npu.Event().elapsed_time(end))
with trt.Stream(device="npu:1") as there:
    assert trt.npu.current_device() == 1 and trt.npu.current_stream() == there
assert trt.npu.current_device() == 0 and trt.npu.current_stream(1) == trt.npu.default_stream(1)
trt.accelerator.set_stream(there)
assert trt.npu.current_device() == 1 and trt.npu.current_stream() == there
trt.npu.set_device(0)

# each device draws from its own generator, which manual_seed reaches
trt.manual_seed(3)
a = [trt.rand(4, device="npu").tolist() for _ in range(2)]
trt.manual_seed(3)
assert [trt.rand(4, device="npu").tolist() for _ in range(2)] == a and trt.rand(4, device="npu:1").tolist() == a[0] == trt.Tensor.tolist(trt.rand(4, generator=trt.Generator().manual_seed(3)))
g = trt.Generator(device="npu:1").manual_seed(3)
assert g.device == trt.device("npu:1") and trt.rand(4, device="npu:1", generator=g).tolist() == a[0]
assert trt.Generator("npu").device == trt.device("npu:0")
refused(RuntimeError, "Expected a 'npu:0' device type for generator but found 'cpu'", lambda: trt.rand(4, device="npu", generator=trt.Generator()))
refused(RuntimeError, "Expected a 'npu:0' device type for generator but found 'npu:1'", lambda: trt.rand(4, device="npu", generator=g))
state = trt.npu.get_rng_state()
with trt.random.fork_rng(device_type="npu"):
    b = trt.randn(5, device="npu").tolist()
assert trt.randn(5, device="npu").tolist() == b
trt.npu.set_rng_state(state)
assert trt.randn(5, device="npu").tolist() == b
cpu = trt.get_rng_state()
trt.rand(3, device="npu"); trt.randperm(3, device="npu"); trt.npu.manual_seed_all(1)
assert trt.get_rng_state().tolist() == cpu.tolist() and trt.npu.initial_seed() == 1                 # and not from the CPU's
""")


def test_kernels_and_steps() -> None:
    run("""
x = trt.arange(6.0).reshape(2, 3).npu().requires_grad_()
refused(NotImplementedError, "Could not run 'sin' with arguments from the 'npu' backend", x.sin)
refused(NotImplementedError, "Could not run 'sum' with arguments from the 'npu' backend: 'reduce' is not implemented for the device 'npu'", x.sum)
refused(ValueError, "no operator 'no_such'", lambda: npu.register_kernel("no_such", len))
refused(ValueError, "no step 'no_such'", lambda: npu.register_step("no_such", len))

# a whole operator
@npu.kernel("neg")
def neg(t, out):
    result = trt.empty_like(t) if out is None else out
    with interface.running():
        host(result).copy_(-host(t))
    return result
y = -x
assert y.tolist() == [[0, -1, -2], [-3, -4, -5]] and y.grad_fn is not None and y.device == x.device

# one pointwise operator: the package promotes, broadcasts, resizes, converts
seen = []
@npu.step("add")
def add(result, a, b, alpha):
    seen.append((a.dtype if isinstance(a, trt.Tensor) else type(a), tuple(a.shape) if isinstance(a, trt.Tensor) else None, b if isinstance(b, float) else None, alpha))
    assert not isinstance(a, trt.Tensor) or not a.requires_grad
    with interface.running():
        host(result).copy_(trt.add(host(a), host(b), alpha=alpha))
d = x.detach()
assert (d + trt.ones(3, device="npu", dtype=trt.int32)).tolist() == [[1, 2, 3], [4, 5, 6]] and seen[-1][:2] == (trt.float32, (2, 3))
assert (d + 2.5).tolist() == [[2.5, 3.5, 4.5], [5.5, 6.5, 7.5]] and seen[-1][2] == 2.5
assert trt.add(d, d[0], alpha=2).tolist() == [[0, 3, 6], [3, 6, 9]] and seen[-1][3] == 2
out = trt.empty(0, device="npu", dtype=trt.float64)
assert trt.add(d, 1, out=out) is out and out.tolist() == [[1, 2, 3], [4, 5, 6]] and out.dtype is trt.float64
version = out._version
out[:, 1].add_(10)
assert out.tolist() == [[1, 12, 3], [4, 15, 6]] and out._version == version + 1

# copies, conversions and fills on the device
moved = []
@npu.step("copy")
def copy_on_device(result, source):
    moved.append(source if isinstance(source, (int, float)) else source.dtype)
    with interface.running():
        host(result).copy_(host(source) if isinstance(source, trt.Tensor) else trt.tensor(source))
interface.calls.clear()
t = trt.empty(2, 2, device="npu").fill_(3)
t.t().contiguous(), t.to(trt.int32), t[:, 0].clone()
assert moved == [3, trt.float32, trt.float32, trt.float32] and not any(c[0] == "copy" for c in interface.calls), (moved, interface.calls)
npu.register_step("copy", None)

# a step of a family, its struct as ctypes shows it
calls = []
@npu.step("reduce")
def reduce(call, source, result, second):
    operation = next(name for name, value in backend.constants().items() if name.startswith("REDUCE_") and name in ("REDUCE_SUM", "REDUCE_MAX") and value == call.operation)
    calls.append(operation)
    dims = [i for i in range(source.dim()) if call.reduced[i]]
    with interface.running():
        value = (trt.sum if operation == "REDUCE_SUM" else trt.amax)(host(source), dims)
        host(result).copy_(value.reshape(result.shape))
assert d.sum().item() == 15 and d.sum(0).tolist() == [3, 5, 7] and d.amax(1).tolist() == [2, 5], calls
assert calls == ["REDUCE_SUM", "REDUCE_SUM", "REDUCE_MAX"]
x.sum().backward()
assert x.grad.tolist() == [[1, 1, 1], [1, 1, 1]] and x.grad.is_npu
assert "reduce_call* call" in backend.steps()["reduce"] and backend.struct("reduce_call")
npu.register_step("reduce", None)
refused(NotImplementedError, "'reduce'", d.sum)

# C functions in their places: of the step's own type, and of all pointwise operators' (cysrc/core/device_interface.h)
TRIANGLE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.c_int64, ctypes.c_int)
@TRIANGLE
def triangle(t, result, diagonal, upper):
    with interface.running():
        host(result).copy_(trt.triu(host(t), diagonal) if upper else trt.tril(host(t), diagonal))
    return 0
npu.register_step("triangle", triangle)
assert d.tril().tolist() == [[0, 0, 0], [3, 4, 0]] and trt.triu(d, 1).tolist() == [[0, 1, 2], [0, 0, 5]]

class Operands(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("index", ctypes.c_int), ("compute", ctypes.c_int), ("count", ctypes.c_int), ("ndim", ctypes.c_int), ("n_params", ctypes.c_int),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64) * 7), ("data", ctypes.c_void_p * 7), ("dtype", ctypes.c_int * 7),
                ("on_host", ctypes.c_uint), ("params", ctypes.POINTER(ctypes.c_double))]

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Operands))
def subtract(given):
    o = given[0]
    assert o.name == b"sub" and o.count == 3 and o.n_params == 1
    with interface.running():
        for i in range(o.sizes[0]):
            for j in range(o.sizes[1]):
                a, b = (ctypes.c_float.from_address(o.data[k] + i * o.strides[k][0] + j * o.strides[k][1]).value for k in (1, 2))
                ctypes.c_float.from_address(o.data[0] + i * o.strides[0][0] + j * o.strides[0][1]).value = a - o.params[0] * b
    return 0
npu.register_step("sub", subtract)
assert (d - d[0]).tolist() == [[0, 0, 0], [3, 3, 3]] and trt.sub(d, 2, alpha=2).tolist() == [[-4, -3, -2], [-1, 0, 1]]
""")


def test_c_functions_for_memory() -> None:
    run("""
libc = ctypes.CDLL(None)
copied = []
class InC(backend.DeviceInterface):
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)(lambda n, i: Guarded.allocate(interface, n, i))
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)(lambda a, n, i: Guarded.release(interface, a, n, i))
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_int)
    def to_host(to, source, n, i, non_blocking):
        copied.append(n)
        with interface.running():
            ctypes.memmove(to, source, n)
        return 1 if n == 20 else 0
    to_device = within = to_host
backend.register_device("inc", InC())
x = trt.arange(6.0).reshape(2, 3).inc()
assert x.clone().t().tolist() == [[0, 3], [1, 4], [2, 5]] and copied == [24, 24, 24], copied
refused(RuntimeError, "copying 20 bytes failed", lambda: trt.zeros(5).inc())
class Exhausted(backend.DeviceInterface):
    def allocate(self, nbytes, index):
        return 0
backend.register_device("exhausted", Exhausted())
refused(MemoryError, "exhausted out of memory", lambda: trt.empty(3, device="exhausted"))
assert trt.empty(0, device="exhausted").shape == (0,)
class Raises(Guarded):
    def to_device(self, *arguments):
        raise KeyError("bus")
backend.register_device("raises", Raises(1))
refused(KeyError, "bus", lambda: trt.ones(3).to("raises"))
""")


def test_the_fallback_to_the_cpu() -> None:
    run("""
x = trt.tensor([[3.0, 1, 2], [6, 5, 4]]).npu()
refused(NotImplementedError, "Could not run 'sort' with arguments from the 'npu' backend", x.sort)
npu.fall_back_to_cpu("sort")
values, indices = x.sort()
assert values.is_npu and values.tolist() == [[1, 2, 3], [4, 5, 6]] and indices.tolist() == [[1, 2, 0], [2, 1, 0]]
refused(NotImplementedError, "Could not run 'cumsum'", lambda: x.cumsum(0))
npu.fall_back_to_cpu(warn=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert x.cumsum(0).tolist() == [[3, 1, 2], [9, 6, 6]] and x.cumsum(1).is_npu
assert len(seen) == 1 and "'cumsum' is not currently supported on the npu backend and will fall back to run on the CPU" in str(seen[0].message)
npu.fall_back_to_cpu()

# what is written: in place, views, out= that is resized, arguments beside the result, lists
version = x._version
x[:, 1].mul_(10)
assert x.tolist() == [[3, 10, 2], [6, 50, 4]] and x._version == version + 1
out = trt.empty(0, device="npu")
assert trt.cumsum(x, 1, out=out) is out and out.tolist() == [[3, 13, 15], [6, 56, 60]]
x.t().clamp_(max=6)
assert x.tolist() == [[3, 6, 2], [6, 6, 4]]
pair = trt.empty(0, device="npu"), trt.empty(0, device="npu", dtype=trt.int64)
trt.sort(x, 1, out=pair)
assert pair[0].tolist() == [[2, 3, 6], [4, 6, 6]] and pair[1][0].tolist() == [2, 0, 1]
mean, var = trt.zeros(3, device="npu"), trt.ones(3, device="npu")
F.batch_norm(x, mean, var, training=True, momentum=0.5)
near(mean, trt.tensor([2.25, 3.0, 1.5]))
with trt.no_grad():
    assert x.index_put_((trt.tensor([0]).npu(), trt.tensor([1]).npu()), trt.tensor(9.0).npu()) is x and x[0, 1].item() == 9
assert x[x > 5].tolist() == [9, 6, 6] and x.nonzero().shape == (6, 2) and F.one_hot(trt.tensor([1, 0]).npu()).tolist() == [[0, 1], [1, 0]]
assert trt.histc(x, 2).is_npu and trt.bincount(trt.tensor([1, 1, 0]).npu()).tolist() == [1, 2] and trt.unique(x).tolist() == [2, 3, 4, 6, 9]
assert x.contiguous() is x and x.view(6).data_ptr() == x.data_ptr()
trt.manual_seed(0); a = F.dropout(trt.ones(8, device="npu")).tolist(); b = trt.multinomial(trt.ones(8, device="npu"), 3).tolist()
trt.manual_seed(0); assert a == F.dropout(trt.ones(8, device="npu")).tolist() and b == trt.multinomial(trt.ones(8, device="npu"), 3).tolist()

# operators that are made of others keep their gradients
w = trt.tensor([[2.0, 1], [0, 3]]).npu().requires_grad_()
trt.linalg.solve(w, trt.ones(2, device="npu")).sum().backward()
v = w.detach().cpu().requires_grad_()
trt.linalg.solve(v, trt.ones(2)).sum().backward()
near(w.grad, v.grad)
assert w.grad.is_npu

npu.no_fallback()
refused(NotImplementedError, "'sort'", x.sort)
asked = []
npu.register_fallback(lambda operator, *arguments: asked.append(operator) or arguments[0])
assert x.sin() is x and asked == ["sin"]
""")


def test_autograd_and_training() -> None:
    run("""
add_elementwise()
def gradients(device, *values):
    a, b = [trt.tensor(v).to(device).requires_grad_() for v in values]
    y = (a * b).sigmoid() + (a / b).tanh() * a.exp() + (a - b).relu() + b.log()
    ran.clear()
    y.backward(trt.ones(3).to(device))
    return a.grad, b.grad
values = [0.5, 1.0, -2.0], [1.0, 0.25, 3.0]
expected = gradients("cpu", *values)
got = gradients("npu:1", *values)
for g, e in zip(got, expected):
    near(g, e)
    assert str(g.device) == "npu:1"
assert {"mul", "add"} <= set(ran) and not any("backward" in name for name in ran), ran

# a device may bring the fused derivative itself, as a kernel or as a step
used = []
@npu.step("sigmoid_backward_self")
def sigmoid_backward(result, grad, y):
    used.append("step")
    with interface.running():
        host(result).copy_(host(grad) * host(y) * (1 - host(y)))
for g, e in zip(gradients("npu", *values), expected):
    near(g, e)
assert used == ["step"]

# second derivatives, forward mode
a = trt.tensor([0.3, 0.7]).npu().requires_grad_()
(g,) = trt.autograd.grad(a.sin() * a, a, trt.ones(2).npu(), create_graph=True)
(h,) = trt.autograd.grad(g, a, trt.ones(2).npu())
c = trt.tensor([0.3, 0.7])
near(h, 2 * c.cos() - c * c.sin())
with trt.autograd.forward_ad.dual_level():
    d = trt.autograd.forward_ad.make_dual(a.detach(), trt.ones(2).npu())
    near(trt.autograd.forward_ad.unpack_dual(d.sin()).tangent, c.cos())

# passes of several threads
def work(results, i):
    results[i] = gradients_of(i)
def gradients_of(i):
    p = trt.full((3,), float(i + 1)).npu(i % 2).requires_grad_()
    for _ in range(5):
        (p * p).backward(trt.ones(3).npu(i % 2))
    return p.grad
results = {}
threads = [threading.Thread(target=work, args=(results, i)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert {i: g.tolist() for i, g in results.items()} == {i: [10.0 * (i + 1)] * 3 for i in range(4)}

# a model and its optimizers, beside the CPU
npu.fall_back_to_cpu()
for make in (lambda p: trt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01), lambda p: trt.optim.Adam(p, lr=0.1, amsgrad=True), lambda p: trt.optim.AdamW(p, lr=0.1),
             lambda p: trt.optim.RMSprop(p, lr=0.01)):
    trt.manual_seed(0)
    models = [trt.nn.Sequential(trt.nn.Linear(3, 4), trt.nn.ReLU(), trt.nn.BatchNorm1d(4), trt.nn.Linear(4, 2)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    models[1].npu()
    x, y = trt.randn(8, 3), trt.randint(0, 2, (8,))
    optimizers = [make(m.parameters()) for m in models]
    for _ in range(3):
        for m, o, device in zip(models, optimizers, ("cpu", "npu")):
            o.zero_grad()
            F.cross_entropy(m(x.to(device)), y.to(device)).backward()
            o.step()
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        assert q.is_npu and q.grad.is_npu
        trt.testing.assert_close(q.detach().cpu(), p.detach(), rtol=1e-3, atol=1e-4)
file = io.BytesIO()
trt.save({"model": models[1].state_dict(), "optimizer": optimizers[1].state_dict()}, file)
file.seek(0)
found = trt.load(file, map_location="cpu")
models[0].load_state_dict(found["model"]); optimizers[0].load_state_dict(found["optimizer"])
assert trt.nn.utils.clip_grad_norm_(models[1].parameters(), 1.0).is_npu
""")


OPERATORS = """
add_elementwise()
npu.fall_back_to_cpu()
trt.manual_seed(0)
x, y, w = trt.randn(4, 6), trt.rand(4, 6) + 0.5, trt.randn(6, 6)
i, m, image = trt.tensor([[0, 2, 1]] * 4), trt.randn(4, 6) > 0, trt.randn(2, 3, 8, 8)
calls = {
    "add": lambda x, y, w, i, m, c: x + y, "pow": lambda x, y, w, i, m, c: y ** 2.5, "where": lambda x, y, w, i, m, c: trt.where(m, x, y), "lerp": lambda x, y, w, i, m, c: trt.lerp(x, y, 0.3),
    "mm": lambda x, y, w, i, m, c: x @ w, "addmm": lambda x, y, w, i, m, c: trt.addmm(x, y, w, alpha=2), "bmm": lambda x, y, w, i, m, c: trt.einsum("ij,kj->ik", x, y), "linear": lambda x, y, w, i, m, c: F.linear(x, w, w[0]),
    "sum": lambda x, y, w, i, m, c: x.sum(1), "mean": lambda x, y, w, i, m, c: x.mean(), "max": lambda x, y, w, i, m, c: x.max(1)[0], "argmax": lambda x, y, w, i, m, c: x.argmax(1), "var": lambda x, y, w, i, m, c: x.var(0),
    "std": lambda x, y, w, i, m, c: x.std(1), "norm": lambda x, y, w, i, m, c: x.norm(), "cumsum": lambda x, y, w, i, m, c: x.cumsum(1), "logsumexp": lambda x, y, w, i, m, c: x.logsumexp(1), "prod": lambda x, y, w, i, m, c: y.prod(1),
    "softmax": lambda x, y, w, i, m, c: x.softmax(1), "log_softmax": lambda x, y, w, i, m, c: F.log_softmax(x, 1), "cross_entropy": lambda x, y, w, i, m, c: F.cross_entropy(x, i[:, 0]), "mse": lambda x, y, w, i, m, c: F.mse_loss(x, y),
    "gelu": lambda x, y, w, i, m, c: F.gelu(x), "elu": lambda x, y, w, i, m, c: F.elu(x), "layer_norm": lambda x, y, w, i, m, c: F.layer_norm(x, (6,)), "group_norm": lambda x, y, w, i, m, c: F.group_norm(c, 3), "batch_norm": lambda x, y, w, i, m, c: F.batch_norm(c, None, None, training=True),
    "conv2d": lambda x, y, w, i, m, c: F.conv2d(c, w.flatten()[:27].reshape(1, 3, 3, 3)), "max_pool2d": lambda x, y, w, i, m, c: F.max_pool2d(c, 2), "avg_pool2d": lambda x, y, w, i, m, c: F.avg_pool2d(c, 2), "adaptive": lambda x, y, w, i, m, c: F.adaptive_avg_pool2d(c, 2),
    "interpolate": lambda x, y, w, i, m, c: F.interpolate(c, scale_factor=2), "pad": lambda x, y, w, i, m, c: F.pad(c, (1, 2)), "unfold": lambda x, y, w, i, m, c: F.unfold(c, 3), "attention": lambda x, y, w, i, m, c: F.scaled_dot_product_attention(c, c, c),
    "gather": lambda x, y, w, i, m, c: x.gather(1, i), "scatter": lambda x, y, w, i, m, c: x.scatter(1, i, y), "scatter_add": lambda x, y, w, i, m, c: x.scatter_add(1, i, y), "index_select": lambda x, y, w, i, m, c: x.index_select(1, i[0]), "take": lambda x, y, w, i, m, c: x[i[0], 1:],
    "index_put": lambda x, y, w, i, m, c: x.index_put((i[0],), y[:3]), "masked_fill": lambda x, y, w, i, m, c: x.masked_fill(m, 2), "masked_select": lambda x, y, w, i, m, c: x[m], "embedding": lambda x, y, w, i, m, c: F.embedding(i, w),
    "cat": lambda x, y, w, i, m, c: trt.cat([x, y], 1), "stack": lambda x, y, w, i, m, c: trt.stack([x, y]), "split": lambda x, y, w, i, m, c: x.split(2)[1], "flip": lambda x, y, w, i, m, c: x.flip(1), "roll": lambda x, y, w, i, m, c: x.roll(1, 0), "tril": lambda x, y, w, i, m, c: x.tril(),
    "sort": lambda x, y, w, i, m, c: x.sort(1)[0], "topk": lambda x, y, w, i, m, c: x.topk(2)[0], "repeat": lambda x, y, w, i, m, c: x.repeat(2, 1), "clone": lambda x, y, w, i, m, c: x.t().clone(), "fft": lambda x, y, w, i, m, c: trt.fft.rfft(x).abs(),
    "inverse": lambda x, y, w, i, m, c: trt.linalg.inv(w), "svd": lambda x, y, w, i, m, c: trt.linalg.svdvals(x), "det": lambda x, y, w, i, m, c: trt.linalg.det(w), "half": lambda x, y, w, i, m, c: (x.half() * 2).float(), "int": lambda x, y, w, i, m, c: (x * 3).int() // 2,
}
for name, call in calls.items():
    results = []
    for device in ("cpu", "npu"):
        given = [t.detach().to(device).clone().requires_grad_(t.is_floating_point()) for t in (x, y, w, i, m, image)]
        r = call(*given)
        if r.requires_grad:
            r.backward(trt.linspace(-1, 1, r.numel()).reshape(r.shape).to(device))
        assert str(r.device).partition(":")[0] == device, (name, r.device)
        results.append([r, *(t.grad for t in given if t.is_leaf)])
    for a, b in zip(*results):
        assert (a is None) == (b is None), name
        if a is not None:
            trt.testing.assert_close(b.detach().cpu(), a.detach(), rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
"""


def test_operators_of_every_family_agree_with_the_cpu() -> None:
    """Forward and backward; a host read of the device's memory in any of them ends the program."""
    run(OPERATORS)


def test_operators_without_any_kernel_are_refused() -> None:
    """None of them reads the memory before it says so."""
    run(OPERATORS.replace("add_elementwise()\nnpu.fall_back_to_cpu()\n", "").replace("        r = call(*given)\n", """        try:
            r = call(*given)
        except NotImplementedError as e:
            assert device == "npu" and "npu" in str(e), (name, e)
            continue
        r = r.detach()
""").replace("for a, b in zip(*results):", "for a, b in ():"))


def test_autocast() -> None:
    run("""
add_elementwise()
npu.fall_back_to_cpu()
x, w = trt.randn(4, 3).npu(), trt.randn(3, 3).npu().requires_grad_()
with trt.autocast("npu"):
    y = x @ w
    assert y.dtype is trt.float16 and (x + x).dtype is trt.float32 and x.exp().dtype is trt.float32 and F.mse_loss(y, x).dtype is trt.float32
    assert (x.cpu() @ w.detach().cpu()).dtype is trt.float32            # another device's
with trt.autocast("npu", trt.bfloat16):
    assert (x @ w).dtype is trt.bfloat16
with trt.autocast("cpu"):
    assert (x @ w).dtype is trt.float32
y.sum().backward()
assert w.grad.dtype is trt.float32 and w.grad.is_npu
assert trt.amp.is_autocast_available("npu") and not trt.is_autocast_enabled("npu") and trt.npu.get_amp_supported_dtype() == [trt.float16, trt.bfloat16]
refused(RuntimeError, "unsupported autocast device_type 'other'", lambda: trt.autocast("other"))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert not trt.autocast("npu", trt.float32)._enabled and "NPU Autocast only supports dtypes of" in str(seen[0].message)
""")


def test_types_without_loops() -> None:
    run("""
add_elementwise()
npu.fall_back_to_cpu()
for dtype, values in ((trt.uint16, [3, 1, 2]), (trt.float8_e5m2, [1.5, -2, 0.5])):
    for call in (lambda t: t.flip(0), lambda t: trt.cat([t, t]), lambda t: t.clone(), lambda t: t[1:], lambda t: t.float() * 2, lambda t: trt.where(t.float() > 0, t, t), lambda t: t.unsqueeze(0).repeat(2, 1),
                 lambda t: t.masked_fill(t.float() > 1, 1), lambda t: t.sum(), lambda t: t.sort()[0], lambda t: t == t):
        results = []
        for device in ("cpu", "npu"):
            try:
                r = call(trt.tensor(values, dtype=trt.float32).to(dtype).to(device))
                results.append((r.dtype, r.float().tolist()))
            except NotImplementedError as e:
                results.append(NotImplementedError)
        assert results[0] == results[1], (dtype, results)
""")
