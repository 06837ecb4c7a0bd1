"""Streams of backward passes. On the emulator they run late: what does not wait for another stream reads what is not there yet."""

from __future__ import annotations

import os

import pytest

import tensorrt_lite as trt

cuda = trt.cuda


@pytest.fixture(autouse=True, params=range(3))
def late(request, monkeypatch):
    """Every test under several random orders of the streams' work."""
    cuda.synchronize()
    monkeypatch.setenv("CUEMU_STREAMS", "late")
    monkeypatch.setenv("CUEMU_SEED", str(request.param))
    yield
    cuda.synchronize()


def values(n=1000):
    return trt.arange(n, dtype=trt.float32) / n + 0.5


class Here(trt.autograd.Function):
    """The identity; notes the current stream of its backward."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.seen.append(cuda.current_stream())
        return g * 1, None


def test_nodes_run_on_the_streams_of_their_forward():
    a, b, seen = cuda.Stream(), cuda.Stream(), []
    x = values().cuda().requires_grad_()
    with cuda.stream(a):
        a.wait_stream(cuda.default_stream())
        y = Here.apply(x, seen)
    with cuda.stream(b):
        b.wait_stream(a)
        z = Here.apply(y * 3, seen)
    cuda.current_stream().wait_stream(b)
    Here.apply(z, seen).sum().backward()
    assert seen == [cuda.default_stream(), b, a] and cuda.current_stream() == cuda.default_stream()
    assert x.grad.tolist() == [3.0] * 1000


def test_branches_on_streams_meet_again():
    main, a, b = cuda.current_stream(), cuda.Stream(), cuda.Stream()
    for _ in range(3):
        host = values().requires_grad_()
        x = host.detach().cuda().requires_grad_()
        a.wait_stream(main)
        b.wait_stream(main)
        with cuda.stream(a):
            left = (x * x).exp().sin()
        with cuda.stream(b):
            right = (x * 2).cos() * x
        main.wait_stream(a)
        main.wait_stream(b)
        left.record_stream(main)
        right.record_stream(main)
        (left * right).sum().backward()
        ((host * host).exp().sin() * ((host * 2).cos() * host)).sum().backward()
        # used on the caller's stream without any wait; of sin(exp(x * x)) a card's last bits make more
        trt.testing.assert_close((x.grad * 2).cpu(), host.grad * 2, rtol=1e-4, atol=1e-4)


def test_a_leaf_used_on_several_streams_sums_its_gradients():
    main, streams = cuda.current_stream(), [cuda.Stream() for _ in range(4)]
    w = values().cuda().requires_grad_()
    for step in range(1, 4):
        parts = []
        for i, s in enumerate(streams):
            s.wait_stream(main)
            with cuda.stream(s):
                parts.append((w * (i + 1)).sum())
        for s, part in zip(streams, parts):
            main.wait_stream(s)
            part.record_stream(main)
        sum(parts).backward()
        assert (w.grad + 0).tolist() == [10.0 * step] * 1000


def test_the_pass_begins_and_ends_on_the_callers_stream():
    side, caller = cuda.Stream(), cuda.Stream()
    x = values().cuda().requires_grad_()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x.exp() * x
    caller.wait_stream(side)
    with cuda.stream(caller):
        seed = (values().cuda() * 2 - values().cuda()).sqrt()  # queued on the caller's stream alone
        (g,) = trt.autograd.grad(y, x, seed)
        result = (g * 1 + 0) * 1
        del g
        with cuda.stream(side):  # whose memory the gradient was: it must not be given out yet
            others = [trt.full((1000,), 7.0, device="cuda") for _ in range(8)]
        result = result.cpu()
    x, seed = values(), values().sqrt()
    trt.testing.assert_close(result, x.exp() * (1 + x) * seed)
    side.synchronize()
    assert all(t.tolist() == [7.0] * 1000 for t in others)


def test_second_derivatives():
    side, main = cuda.Stream(), cuda.current_stream()
    host = values().requires_grad_()
    x = host.detach().cuda().requires_grad_()
    side.wait_stream(main)
    with cuda.stream(side):
        y = x.exp() * x
    main.wait_stream(side)
    (g,) = trt.autograd.grad(y.sum(), x, create_graph=True)
    (g * g).sum().backward()
    (expected,) = trt.autograd.grad((host.exp() * host).sum(), host, create_graph=True)
    (expected * expected).sum().backward()
    trt.testing.assert_close(x.grad.cpu(), host.grad)


def test_a_thread_has_streams_of_its_own():
    import threading

    side, found = cuda.Stream(), []

    def work():
        x = values().cuda().requires_grad_()
        found.append(cuda.current_stream())
        (x * 3).sum().backward()
        found.append(x.grad.cpu())

    with cuda.stream(side):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found[0] == cuda.default_stream() and found[1].tolist() == [3.0] * 1000


def test_a_pass_may_be_recorded():
    """Forward on one stream, backward in a graph of another: the forward's stream joins the recording and comes back."""
    static = values().cuda().requires_grad_()
    for _ in range(2):  # kernels are loaded before
        trt.autograd.grad((static.exp() * static).sum(), static)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        (grad,) = trt.autograd.grad((static.exp() * static).sum(), static)
    with trt.no_grad():
        static.copy_(values() * 2)
    g.replay()
    trt.testing.assert_close(grad.cpu(), (values() * 2).exp() * (1 + values() * 2))


@pytest.mark.skipif(os.environ.get("TENSORRT_LITE_CUDA") != "emulate", reason="late streams are the emulator's")
def test_late_streams_are_late():
    """What these tests rely on: what no stream waits for may not have run."""
    wrong = 0
    for i in range(20):
        side = cuda.Stream()
        x = (values() + i).cuda()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x * 3
            for _ in range(5):
                y = y + 1
        wrong += (y + 0).cpu().tolist() != ((values() + i) * 3 + 5).tolist()
        cuda.synchronize()
    assert wrong


TWO_DEVICES = """
import tensorrt_lite as trt
cuda = trt.cuda

class Where(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.seen.append((cuda.current_device(), g.get_device(), trt.zeros(1, device="cuda").get_device()))
        return g * 1, None

for step in range(4):
    x = (trt.arange(1000.0) / 1000 + step).cuda().requires_grad_()
    side, seen = cuda.Stream("cuda:1"), []
    with cuda.device(1), cuda.stream(side):
        y = Where.apply(x.to("cuda:1"), seen).exp()
    y.record_stream(cuda.current_stream(1))
    cuda.current_stream(1).wait_stream(side)
    z = (y * 2).to("cuda:0") * x
    z.sum().backward()
    host = x.detach().cpu()
    trt.testing.assert_close((x.grad + 0).cpu(), 2 * host.exp() * (host + 1))
    assert seen == [(1, 1, 1)] and cuda.current_device() == 0, seen
    # copies between devices: neither side's memory is reused too early
    a = trt.full((1000,), 1.0, device="cuda:0")
    b = a.to("cuda:1")
    del a
    c = trt.full((1000,), 2.0, device="cuda:0")
    d = b.to("cuda:0")
    del b
    e = trt.full((1000,), 3.0, device="cuda:1")
    assert d.tolist() == [1.0] * 1000 and c.tolist() == [2.0] * 1000 and e.tolist() == [3.0] * 1000
assert cuda.can_device_access_peer(0, 1) and cuda.device_count() == 2
"""


@pytest.mark.skipif(os.environ.get("TENSORRT_LITE_CUDA") != "emulate", reason="needs two devices")
def test_two_devices():
    import subprocess
    import sys

    environment = os.environ | {"CUEMU_DEVICES": "2"}
    result = subprocess.run([sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
