"""Devices, memory, streams, events, copies and graphs, as a program sees them."""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec

import pytest

import tensorrt_lite as trt

cuda = trt.cuda


def test_a_device_describes_itself():
    assert cuda.device_count() >= 1 and cuda.is_available()
    properties = cuda.get_device_properties(0)
    assert properties.name == cuda.get_device_name() and (properties.major, properties.minor) == cuda.get_device_capability("cuda:0")
    assert properties.total_memory > 1 << 30 and properties.warp_size == 32 and properties.multi_processor_count > 0
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    assert cuda.get_arch_list() == [f"sm_{properties.major}{properties.minor}"]


def test_the_current_device():
    assert cuda.current_device() == 0
    with cuda.device(0), cuda.device(None), cuda.device(-1):
        assert cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        cuda.set_device(63)
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda.synchronize("cpu")
    x = trt.ones(2).cuda()
    with cuda.device_of(x):
        assert cuda.current_device() == x.get_device()


def test_tensors_move_and_convert():
    x = trt.arange(24.0).reshape(2, 3, 4)
    on = x.cuda()
    assert on.is_cuda and on.device == trt.device("cuda", 0) and on.to("cuda") is on and on.to("cuda:0") is on
    for view in (on, on.transpose(0, 2), on[:, 1], on[..., ::2], on[1, 2, 3], on[:0]):
        for dtype in (trt.float32, trt.float64, trt.float16, trt.bfloat16, trt.int64, trt.uint8, trt.bool, trt.complex64):
            back = view.to(dtype).cpu()
            assert back.dtype == dtype and back.device.type == "cpu"
    assert trt.equal(on.transpose(0, 2).cpu(), x.transpose(0, 2)) and on.transpose(0, 2).cpu().stride() == x.transpose(0, 2).stride()
    target = trt.zeros(4, 3, 2, device="cuda")
    target.transpose(0, 2).copy_(x)
    assert trt.equal(target.cpu(), x.transpose(0, 2))
    target.copy_(trt.tensor([5, 7]))  # converted and spread
    assert target[3, 2].tolist() == [5.0, 7.0]
    host = trt.zeros(3, 4)
    host.copy_(on[1])
    assert trt.equal(host, x[1])
    assert on.to(trt.device("cpu"), trt.float64).dtype == trt.float64 and float(on[0, 1, 2]) == 6.0


def test_mixed_devices_are_refused():
    x = trt.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="same device.*cpu.*cuda|same device.*cuda.*cpu"):
        x + trt.ones(3)
    assert (x + trt.tensor(2.0)).tolist() == [3.0] * 3  # a number may come from the host
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="not in host memory"):
        x.untyped_storage().tobytes()


def test_gradients_cross_devices():
    w = trt.ones(3, requires_grad=True)
    (w.cuda() * trt.tensor([1.0, 2.0, 3.0], device="cuda")).cpu().sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [1.0, 2.0, 3.0]


def test_memory_comes_back_to_its_pool():
    cuda.empty_cache()
    before, reserved = cuda.memory_allocated(), cuda.memory_reserved()
    x = trt.empty(1000, 1000, device="cuda")
    assert cuda.memory_allocated() - before == 4_000_256 and cuda.memory_reserved() - reserved >= 4_000_256
    address = x.data_ptr()
    del x
    assert cuda.memory_allocated() == before
    x = trt.empty(1000, 1000, device="cuda")
    assert x.data_ptr() == address
    assert cuda.memory_stats()["requested_bytes.all.current"] > 0 and "GPU reserved memory" in cuda.memory_summary()
    del x
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    states = {block["state"] for segment in cuda.memory_snapshot() for block in segment["blocks"]}
    assert states <= {"active_allocated", "active_awaiting_free", "inactive"}


def test_blocks_split_and_join():
    cuda.empty_cache()
    reserved = cuda.memory_reserved()
    held = [trt.empty((i * 7919) % 300_000 + 1, dtype=trt.uint8, device="cuda") for i in range(300)]
    addresses = sorted((t.data_ptr(), t.numel()) for t in held)
    assert all(a + n <= b for (a, n), (b, _) in zip(addresses, addresses[1:]))  # no two share a byte
    del held[::2]
    held += [trt.empty((i * 104_729) % 500_000 + 1, dtype=trt.uint8, device="cuda") for i in range(150)]
    addresses = sorted((t.data_ptr(), t.numel()) for t in held)
    assert all(a + n <= b for (a, n), (b, _) in zip(addresses, addresses[1:]))
    del held
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved


def test_out_of_memory_says_what_is_held_and_recovers():
    total = cuda.mem_get_info()[1]
    with pytest.raises(cuda.OutOfMemoryError, match=r"Tried to allocate .* GPU 0 has a total capacity of .* is allocated by tensors"):
        trt.empty(4 * total, dtype=trt.uint8, device="cuda")
    # what is cached goes back before a request fails
    pieces = [trt.empty(total // 4, dtype=trt.uint8, device="cuda") for _ in range(3)]
    del pieces
    gc.collect()
    whole = trt.empty(total // 10 * 8, dtype=trt.uint8, device="cuda")
    assert cuda.memory_stats()["num_alloc_retries"] >= 1
    del whole
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction(0.25)
    try:
        with pytest.raises(cuda.OutOfMemoryError, match="allowed"):
            trt.empty(total // 2, dtype=trt.uint8, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)


def test_streams_events_and_record_stream():
    side = cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream() != side
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    x = trt.ones(1000, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() == side
        start.record()
        y = x * 3
        end.record()
    x.record_stream(side)
    address = x.data_ptr()
    del x
    cuda.current_stream().wait_stream(side)
    assert y[999].item() == 3.0
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and end.query() and side.query()
    again = trt.empty(1000, device="cuda")  # the event has passed: the block may be used again
    assert address and again.numel() == 1000
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(end)
    least, greatest = cuda.Stream.priority_range()
    assert greatest <= least and cuda.Stream(priority=greatest).query()
    assert cuda.ExternalStream(side.cuda_stream) == side


def test_pinned_memory():
    x = trt.arange(10.0).pin_memory()
    assert x.is_pinned() and not trt.ones(2).is_pinned() and x.pin_memory() is x
    y = x.to("cuda", non_blocking=True)
    back = trt.empty(10).pin_memory()
    back.copy_(y, non_blocking=True)
    cuda.synchronize()
    assert trt.equal(back, trt.arange(10.0))
    for _ in range(10):  # the memory outlives the queued copies
        y = trt.full((100_000,), 3.0).pin_memory().to("cuda", non_blocking=True)
    assert (y.cpu() == 3).all()
    with pytest.raises(RuntimeError, match="cannot pin"):
        y.pin_memory()
    x = trt.ones(2, 3)
    made = [trt.empty(3, pin_memory=True), trt.zeros(2, 2, pin_memory=True), trt.full((2,), 3, pin_memory=True), trt.arange(4, pin_memory=True),
            trt.tensor([1.0], pin_memory=True), trt.randn(3, pin_memory=True), trt.empty_like(x, pin_memory=True), trt.zeros_like(y, device="cpu", pin_memory=True),
            trt.rand_like(x, pin_memory=True), x.new_ones(3, pin_memory=True), x.new_full((2,), 1.0, pin_memory=True), trt.empty_strided((2, 2), (1, 2), pin_memory=True),
            trt.eye(3, pin_memory=True), trt.scalar_tensor(2.0, pin_memory=True), x.t().pin_memory()]  # fmt: skip
    assert all(t.is_pinned() and t.is_cpu for t in made) and made[-1].stride() == (1, 3)
    assert made[3].tolist() == [0, 1, 2, 3] and trt.equal(made[12], trt.eye(3)) and not trt.zeros(3).is_pinned()
    for call in (lambda: trt.zeros(2, device="cuda", pin_memory=True), lambda: trt.empty_like(y, pin_memory=True)):
        with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
            call()


def test_graphs_replay_on_new_values():
    a, g = trt.ones(4, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        b = a * 2 + 1
        c = b * b
    assert not cuda.is_current_stream_capturing()
    for values in ([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 1.0]):
        a.copy_(trt.tensor(values))
        g.replay()
        assert c.tolist() == [(2 * v + 1) ** 2 for v in values]
    # a second graph may share the pool; what it holds is given to nobody else meanwhile
    h = cuda.CUDAGraph()
    with cuda.graph(h, pool=g.pool()):
        d = c + 1
    others = [trt.empty(4, device="cuda") for _ in range(50)]
    assert not {c.data_ptr(), d.data_ptr()} & {t.data_ptr() for t in others}
    with pytest.raises(RuntimeError, match="already owns"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="non-default stream"):
        cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="without a preceding"):
        cuda.CUDAGraph().replay()


def test_graphed_callables_train():
    def f(x):
        return (x * x + 1).sin()

    graphed = cuda.make_graphed_callables(f, (trt.ones(3, device="cuda", requires_grad=True),))
    for values in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        x = trt.tensor(values, device="cuda", requires_grad=True)
        y = trt.tensor(values, requires_grad=True)
        out, expected = graphed(x), f(y)
        out.backward(trt.ones_like(out))
        expected.backward(trt.ones_like(expected))
        trt.testing.assert_close(out.cpu(), expected)
        trt.testing.assert_close(x.grad.cpu(), y.grad)


def test_exchange_with_other_libraries():
    x = trt.arange(6.0).reshape(2, 3).cuda()
    assert x.__dlpack_device__() == (2, 0)
    y = trt.from_dlpack(x.t())
    assert y.data_ptr() == x.data_ptr() and trt.equal(y.cpu(), x.t().cpu())
    interface = x.t().__cuda_array_interface__
    assert interface["shape"] == (3, 2) and interface["strides"] == (4, 12) and interface["typestr"] == "<f4" and interface["data"][0] == x.data_ptr()
    with pytest.raises(AttributeError):
        trt.ones(1).__cuda_array_interface__
    address = cuda.caching_allocator_alloc(1000)
    cuda.caching_allocator_delete(address)
    with pytest.raises(RuntimeError, match="was not allocated"):
        cuda.caching_allocator_delete(address)


def test_queries_of_the_runtime():
    runtime = cuda.cudart()
    assert runtime.cudaGetDeviceCount() == cuda.device_count() and runtime.cudaMemGetInfo(0)[1] == cuda.mem_get_info()[1]
    assert runtime.cudaDeviceSynchronize() == int(runtime.cudaError.success) and cuda.cudaStatus.SUCCESS == 0
    x = trt.zeros(10_000)
    assert runtime.cudaHostRegister(x.data_ptr(), 40_000, 0) == 0 and x.is_pinned() and x[5:].is_pinned() and not trt.zeros(3).is_pinned()
    with pytest.raises(cuda.CudaError):
        cuda.check_error(runtime.cudaHostRegister(x.data_ptr(), 40_000, 0))
    x.copy_(trt.ones(10_000, device="cuda"), non_blocking=True)
    cuda.synchronize()
    assert x.sum() == 10_000 and runtime.cudaHostUnregister(x.data_ptr()) == 0 and not x.is_pinned()
    assert cuda.check_error(0) is None
    with cuda.profiler.profile():
        pass
    assert cuda.get_gencode_flags().startswith("-gencode compute=compute_")
    assert not cuda.is_current_stream_capturing() and cuda.get_stream_from_external(0) == cuda.default_stream()


def test_waits_can_be_found():
    x = trt.ones(3, device="cuda")
    assert cuda.get_sync_debug_mode() == 0
    cuda.set_sync_debug_mode("warn")
    try:
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            x.cpu()
        cuda.set_sync_debug_mode(2)
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            x.sum().item()
        y = (x + 1) * x  # does not wait
    finally:
        cuda.set_sync_debug_mode("default")
    assert y.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        cuda.set_sync_debug_mode("loud")


_NVML = (cuda.utilization, cuda.temperature, cuda.memory_usage, cuda.power_draw, cuda.clock_rate, cuda.device_memory_used)


@pytest.mark.skipif(find_spec("pynvml") is None or cuda.get_device_name().startswith("CUDA emulator"), reason="needs a card and nvidia-ml-py")
def test_what_the_management_library_tells():
    assert all(isinstance(call(), int) for call in _NVML) and cuda.device_memory_used() > 1 << 20 and 0 <= cuda.utilization() <= 100
    assert cuda.clock_rate() > 100 and "GPU:0" in cuda.list_gpu_processes()


def test_what_needs_other_libraries_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    for call in _NVML:
        with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py does not seem to be installed"):
            call()
    assert "please install" in cuda.list_gpu_processes()
