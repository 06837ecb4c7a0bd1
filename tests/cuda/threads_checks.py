"""Backward passes over several devices: each device's Nodes run in its own thread, the CPU's in the caller's."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from collections.abc import Callable

os.environ["CUEMU_DEVICES"] = "2"
DEVICES = 2

import tensorrt_lite as torch
from device_checks import raises
from tensorrt_lite import backend

backend.register_device("npu", backend.HostMemoryInterface("npu")).fall_back_to_cpu()

PATIENCE = 60  # seconds that a hook waits for another thread before it gives up: only a failure takes them
PLACES = ("cpu", "cuda:0", "cuda:1", "npu:0")  # the last a custom device


def leaf(place: str, value: float = 1.0) -> torch.Tensor:
    return torch.full((3,), value, device=place, requires_grad=True)


def watch(x: torch.Tensor, note: Callable[[], object], into: list) -> torch.Tensor:
    x.register_hook(lambda g: into.append(note()))
    return x


def quietly(function: Callable, *arguments: object) -> None:
    """For hooks, whose result would take the gradient's place."""
    function(*arguments)


def check_threads_of_nodes() -> None:
    """The CPU's Nodes, and what copies from it, in the calling thread; leaves and results of a device in one thread of it, whose current device it is."""
    seen: dict[str, list] = {place: [] for place in PLACES}
    note = lambda: (threading.get_ident(), torch.cuda.current_device())
    for _ in range(2):
        total = torch.zeros(3)
        for place in PLACES:
            x = watch(leaf(place), note, seen[place])
            total = total + watch(x * 2, note, seen[place]).cpu()
        watch(total * 1, note, seen["cpu"]).sum().backward()
    assert set(seen["cpu"]) == {(threading.get_ident(), 0)}
    assert len(set(seen["cuda:0"])) == len(set(seen["cuda:1"])) == 1
    assert seen["cuda:0"][0][1] == 0 and seen["cuda:1"][0][1] == 1
    assert len({seen[place][0][0] for place in PLACES}) == len(PLACES)
    assert torch.cuda.current_device() == 0


def check_devices_overlap() -> None:
    """A hook on each device, and one on the CPU, waits until all of them run."""
    together = threading.Barrier(len(PLACES))
    total = torch.zeros(3)
    leaves = [leaf(place) for place in PLACES]
    for x in leaves:
        y = x * 3
        y.register_hook(lambda g: quietly(together.wait, PATIENCE))
        total = total + y.cpu()
    total.sum().backward()
    assert [x.grad.tolist() for x in leaves] == [[3.0] * 3] * len(PLACES)


def check_multithreading_disabled() -> None:
    seen: list = []
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
        watch(leaf("cuda:1") * 2, threading.get_ident, seen).sum().backward()

    @torch.autograd.set_multithreading_enabled(False)
    def run() -> None:
        watch(leaf("cuda:0") * 2, threading.get_ident, seen).sum().backward()

    assert torch.autograd.is_multithreading_enabled()
    run()
    assert torch.autograd.is_multithreading_enabled() and set(seen) == {threading.get_ident()}
    other: list = []
    with torch.autograd.set_multithreading_enabled(False):
        thread = threading.Thread(target=lambda: other.append(torch.autograd.is_multithreading_enabled()))
        thread.start()
        thread.join()
    assert other == [True]


def check_exceptions_reach_the_caller() -> None:
    """The first one, with what the hook's frames were; other lanes stop, a hook that waits for a dead one is not waited for; the state stays usable."""

    def fail(g: torch.Tensor) -> None:
        raise KeyError("from the device")

    x, y = leaf("cuda:0"), leaf("cuda:1")
    a, b = x * 2, y * 2
    never = threading.Event()
    entered = threading.Event()
    a.register_hook(lambda g: entered.wait(PATIENCE) and fail(g))
    b.register_hook(lambda g: entered.set() or quietly(never.wait, 5))
    loss = a.sum().cpu() + b.sum().cpu()
    try:
        loss.backward()
    except KeyError as error:
        frames, at = [], error.__traceback__
        while at is not None:
            frames.append(at.tb_frame.f_code.co_name)
            at = at.tb_next
        assert "fail" in frames and "from the device" in str(error)
    else:
        raise AssertionError("no exception")
    never.set()
    assert torch.is_grad_enabled() and x.grad is None
    z = leaf("cuda:1")
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2.0] * 3


def check_anomaly_mode_in_workers() -> None:
    with torch.autograd.detect_anomaly(check_nan=True), warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        x = leaf("cuda:1", 0.0)
        loss = (x.sqrt() * 0).sum()
        raises(RuntimeError, "SqrtBackward0' returned nan values", loss.backward)
    text = "".join(str(w.message) for w in given)
    assert "check_anomaly_mode_in_workers" in text, text


class Nested(torch.autograd.Function):
    """Identity, whose backward runs a pass through a level less on the next device."""

    @staticmethod
    def forward(ctx, x, level):
        ctx.level = level
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.level == 0:
            return g, None
        with torch.enable_grad():
            x = g.detach().requires_grad_()
            there = x.to(PLACES[ctx.level % len(PLACES)])
            y = Nested.apply(there, ctx.level - 1).to(x.device) + Nested.apply(x, 0)
            (inner,) = torch.autograd.grad(y, x, torch.ones_like(x))
        return g * inner / 2, None


def check_passes_nest_across_devices() -> None:
    """Nodes of an inner pass lie on the device whose worker waits for it; deeper than one stack, and from several threads at once."""
    for depth in (1, 2, 5, 70):
        x = leaf("cuda:0")
        Nested.apply(x * 3, depth).sum().backward()
        assert x.grad.tolist() == [3.0] * 3, depth
    results: list = []

    def work(place: str) -> None:
        for _ in range(5):
            x = leaf(place)
            Nested.apply(x * 3, 9).sum().backward()
            results.append(x.grad.tolist())

    threads = [threading.Thread(target=work, args=(place,)) for place in PLACES * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[3.0] * 3] * (10 * len(PLACES))


def check_state_travels() -> None:
    """Grad mode, autocast, hooks on saved tensors, default device, dtype of autocast: as in the calling thread; nothing stays in the worker."""
    from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

    names: list = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            names.append((threading.get_ident(), str(function)))
            return function(*args, **(kwargs or {}))

    packed: list = []
    seen: list = []

    def look(g: torch.Tensor) -> None:
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"), str(torch.get_default_device()),
                     torch.is_inference_mode_enabled(), threading.get_ident()))  # fmt: skip
        with torch.enable_grad():
            leaf("cuda:0").exp()

    x = leaf("cuda:0")
    y = x * 2
    y.register_hook(look)
    y.sum().backward(retain_graph=True)
    with torch.device("meta"), torch.autocast("cuda", dtype=torch.bfloat16), torch.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(threading.get_ident()) or t, lambda t: t
    ):  # fmt: skip
        y.sum().backward(retain_graph=True, gradient=torch.ones((), device="cuda:0"))
    y.sum().backward(create_graph=True)
    with Names():
        y.backward(torch.ones(3, device="cuda:0"))
    assert [entry[:5] for entry in seen[:3]] == [
        (False, False, torch.float16, "cpu", False), (False, True, torch.bfloat16, "meta", False), (True, False, torch.float16, "cpu", False)
    ], seen  # fmt: skip
    assert len({entry[5] for entry in seen}) == 1 and seen[0][5] != threading.get_ident()
    assert set(packed) == {seen[0][5]}
    assert any(thread == seen[0][5] for thread, _ in names)


def check_final_callbacks() -> None:
    """Queued by a hook in a worker, called in the calling thread once all lanes are done; a hook knows its pass."""
    called: list = []
    ids: list = []
    x, y = leaf("cuda:0"), leaf("cuda:1")

    def queue(g: torch.Tensor) -> None:
        ids.append(torch._C._current_graph_task_id() if hasattr(torch, "_C") and hasattr(torch._C, "_current_graph_task_id") else 0)
        torch.autograd.Variable._execution_engine.queue_callback(
            lambda: called.append((threading.get_ident(), x.grad is not None and y.grad is not None))
        )

    a, b = x * 2, y * 2
    a.register_hook(queue)
    b.register_hook(queue)
    (a.sum().cpu() + b.sum().cpu()).backward()
    assert called == [(threading.get_ident(), True)] * 2 and len(set(ids)) == 1


def random_graph(rng: random.Random, leaves: list[torch.Tensor]) -> torch.Tensor:
    """Small integers only, so that sums in any order agree to the last bit."""
    tensors = list(leaves)
    for _ in range(rng.randrange(3, 14)):
        kind = rng.randrange(4)
        a = rng.choice(tensors)
        if kind == 0:
            tensors.append(a * rng.choice([-1.0, 2.0]))
        elif kind == 1:
            tensors.append(a.to(rng.choice(PLACES)))
        elif kind == 2:
            tensors.append(a + rng.choice(tensors).to(a.device))
        else:
            tensors.append(torch.stack(list(a.unbind())).flip(0))
    total = torch.zeros(())
    for t in tensors[-4:]:
        total = total + t.sum().cpu()
    return total


def check_random_graphs() -> None:
    """A thousand graphs: gradients of the pass with threads and of the one without; also with an interpreter that switches threads all the time."""
    before = sys.getswitchinterval()
    try:
        for seed in range(1000):
            if seed == 500:
                sys.setswitchinterval(1e-6)
            rng = random.Random(seed)
            leaves = [leaf(rng.choice(PLACES), float(i + 1)) for i in range(3)]
            loss = random_graph(rng, leaves)
            if not loss.requires_grad:
                continue
            with torch.autograd.set_multithreading_enabled(False):
                expected = torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)
            got = torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)
            loss.backward()
            for x, g, e in zip(leaves, got, expected):
                assert (g is None) == (e is None) == (x.grad is None), seed
                if e is not None:
                    assert g.device == x.device and g.tolist() == e.tolist() == x.grad.tolist(), seed
    finally:
        sys.setswitchinterval(before)


def check_lanes_meet_at_a_node() -> None:
    """Two lanes sum a Node's gradient at once: in place in a sum of their own, never in the gradients of `sum`, whose elements share memory."""
    before = sys.getswitchinterval()
    x = leaf("npu:0")
    y = x * 1.0
    loss = torch.zeros(())
    for _ in range(12):
        for part in (y.sum().cpu(), (y.cpu() * 1.0).sum(), (y.cpu() * 1.0).sum()):
            loss = loss + part * 1.0 * 1.0
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(800):       # one in a few hundred met it
            (grad,) = torch.autograd.grad(loss, x, retain_graph=True)
            assert grad.tolist() == [36.0] * 3
    finally:
        sys.setswitchinterval(before)


def check_threads_share_a_graph() -> None:
    """Several callers run one graph at once: each pass has its own gradients, and leaves get the sum of all."""
    leaves = [leaf(place) for place in PLACES]
    total = torch.zeros(3)
    for x in leaves:
        y = x
        for _ in range(10):
            y = y * 2 - y
        total = total + y.cpu()
    loss = total.sum()
    failures: list = []

    def work() -> None:
        try:
            for _ in range(10):
                loss.backward(retain_graph=True)
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures, failures
    assert [x.grad.tolist() for x in leaves] == [[40.0] * 3] * len(PLACES)
