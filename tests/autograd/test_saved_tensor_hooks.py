"""Hooks on what Nodes save, of compiled operators and custom Functions: the same programs here and in PyTorch."""

from __future__ import annotations

import gc
import importlib
import threading
import weakref

import pytest

import tensorrt_lite as trt


def raised(f):
    try:
        f()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error)
    return None


def refused_call(f):
    """The kind of the error alone, where the text lists pybind11's signatures."""
    result = raised(f)
    return result and result[0]


def leaves(lib):
    return [lib.tensor(v, requires_grad=True) for v in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0])]


class Log:
    """Hooks that keep numbers and write down what they were given."""

    def __init__(self, lib):
        self.lib, self.seen = lib, []

    def pack(self, t):
        self.seen.append(("pack", t.tolist(), self.lib.is_grad_enabled()))
        return t.dtype, t.tolist()

    def unpack(self, packed):
        dtype, values = packed
        self.seen.append(("unpack", values, self.lib.is_grad_enabled()))
        return self.lib.tensor(values, dtype=dtype)

    def hooks(self):
        return self.lib.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)


def pointwise_operators(lib):
    found = []
    for f in (
        lambda a, b, c: a * b,
        lambda a, b, c: a / b,
        lambda a, b, c: a + b,
        lambda a, b, c: a * 2.0,
        lambda a, b, c: a**2,
        lambda a, b, c: a.exp(),
        lambda a, b, c: a.relu(),
        lambda a, b, c: a.sigmoid() * b,
        lambda a, b, c: lib.addcmul(a, b, c, value=0.5),
        lambda a, b, c: lib.addcdiv(a, b, c),
        lambda a, b, c: lib.where(a > 1, b, c),
        lambda a, b, c: lib.lerp(a, b, 0.25),
        lambda a, b, c: a.clamp(1.5, 2.5),
        lambda a, b, c: a.clone().mul_(b),
        lambda a, b, c: a.clone().sqrt_(),
        lambda a, b, c: lib.hypot(a, b),
        lambda a, b, c: a.detach() * b,
    ):
        a, b, c = leaves(lib)
        log = Log(lib)
        with log.hooks():
            y = f(a, b, c)
        packed = sorted(log.seen, key=str)
        y.sum().backward()
        found.append((packed, [None if x.grad is None else [round(v, 4) for v in x.grad.tolist()] for x in (a, b, c)]))
    return found


def other_operators(lib):
    found = []
    for f in (
        lambda m, v: m @ v,
        lambda m, v: m @ m,
        lambda m, v: lib.nn.functional.linear(v, m),
        lambda m, v: m.prod(1),
        lambda m, v: lib.softmax(m, 1),
        lambda m, v: m[lib.tensor([0, 1])],
        lambda m, v: lib.cat([m, m]),
        lambda m, v: m.cumprod(0),
        lambda m, v: m.masked_fill(m > 2, 0.0),
    ):
        m = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        v = lib.tensor([5.0, 6.0], requires_grad=True)
        log = Log(lib)
        with log.hooks():
            y = f(m, v)
        packed = len(log.seen)
        (y * y.detach()).sum().backward()
        found.append((packed, [(x[0], x[2]) for x in log.seen[packed:]], m.grad.tolist(), v.grad is None or v.grad.tolist()))
    return found


def order(lib):
    """Of packing."""
    a, b, c = leaves(lib)
    log = Log(lib)
    with log.hooks():
        a * b
        a / b
        lib.addcmul(a, b, c)
        lib.outer(a, b)
        (a * b).sigmoid()
    return log.seen


def nested(lib):
    a, b, _ = leaves(lib)
    outer, inner = Log(lib), Log(lib)
    with outer.hooks():
        x = a * b
        with inner.hooks():
            y = x * a
        z = y * b
    w = z * z
    w.sum().backward()
    return outer.seen, inner.seen, a.grad.tolist(), b.grad.tolist()


def of_one_thread(lib):
    a, b, _ = leaves(lib)
    log = Log(lib)
    with log.hooks():
        thread = threading.Thread(target=lambda: a * b)
        thread.start()
        thread.join()
    return log.seen


def every_pass_unpacks(lib):
    a, b, _ = leaves(lib)
    log = Log(lib)
    with log.hooks():
        y = (a.exp() * b).sum()
    y.backward(retain_graph=True)
    y.backward()
    return sorted(log.seen, key=str), a.grad.tolist(), b.grad.tolist(), raised(y.backward)


def higher_derivatives(lib):
    a, b, _ = leaves(lib)
    log = Log(lib)
    with log.hooks():
        y = (a * b).exp().sum() + (a / b).sigmoid().sum() + (a.unsqueeze(0) @ b.unsqueeze(1)).tanh().sum()
    (g,) = lib.autograd.grad(y, a, create_graph=True)
    h = lib.autograd.grad(g.sum(), (a, b))
    return [f"{v:.3g}" for x in (g, *h) for v in x.tolist()]


def packed_in_a_backward_pass(lib):
    a, b, _ = leaves(lib)
    y = (a * b * b).sum()
    log = Log(lib)
    with log.hooks():
        (g,) = lib.autograd.grad(y, b, create_graph=True)
    h = lib.autograd.grad(g.sum(), (a, b))
    return [x.tolist() for x in (g, *h)]


def writes_in_pack(lib):
    a, b, _ = leaves(lib)

    def write(t):
        return t.mul_(2)

    def run(f):
        with lib.autograd.graph.saved_tensors_hooks(write, lambda t: t):
            f()

    c = b.detach().clone()
    m = lib.ones(2, 2, requires_grad=True)
    return (
        raised(lambda: run(lambda: a * c)),
        raised(lambda: run(lambda: a.exp())),
        raised(lambda: run(lambda: m @ lib.ones(2, 2))),
        raised(lambda: run(lambda: a.clone().mul_(c))),
    )


def errors_of_hooks(lib):
    a, b, _ = leaves(lib)
    graph = lib.autograd.graph

    def fail(t):
        raise ValueError("of the hook")

    def run(pack, unpack, f=lambda a, b: a * b):
        with graph.saved_tensors_hooks(pack, unpack):
            y = f(a, b)
        y.sum().backward()

    found = [
        raised(lambda: run(fail, lambda t: t)),
        raised(lambda: run(lambda t: t.detach(), fail)),
        raised(lambda: run(lambda t: t.detach(), lambda t: 3)),
        raised(lambda: run(lambda t: t.detach(), lambda t: None, lambda a, b: a @ b)),
        refused_call(lambda: run(1, lambda t: t)),
        refused_call(lambda: run(lambda t: t, None)),
    ]
    y = a * b                              # nothing is left behind
    y.sum().backward()
    return found, a.grad.tolist()


def disabled(lib):
    graph = lib.autograd.graph
    a, b, _ = leaves(lib)
    found = []

    def enter():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    def disable():
        with graph.disable_saved_tensors_hooks("not inside"):
            pass

    with graph.disable_saved_tensors_hooks("not here"):
        found.append(raised(enter))
        with graph.disable_saved_tensors_hooks("nor here"):
            found.append(raised(enter))
        found.append(raised(enter))
        a * b
    found.append(raised(enter))
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        found.append(raised(disable))
    found.append(raised(enter))
    return found


def hooks_of_one_tensor(lib):
    a, b, _ = leaves(lib)
    found = []
    y = a * b
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: (found.append((t.tolist(), t.requires_grad)), t.tolist())[1], lambda v: lib.tensor(v) * 2)
    found.append(y.grad_fn._saved_self.tolist())
    found.append(raw.data)
    found.append(raised(lambda: raw.register_hooks(lambda t: t, lambda t: t)))
    found.append(raised(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)))
    found.append(refused_call(lambda: y.grad_fn._raw_saved_other.register_hooks(lambda t: t, 3)))
    found.append(refused_call(lambda: y.grad_fn._raw_saved_other.register_hooks(lambda t: t)))
    y.sum().backward()
    found.append([a.grad.tolist(), b.grad.tolist()])
    found.append(raised(lambda: raw.register_hooks(lambda t: t, lambda t: t)))
    found.append(raised(lambda: y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)))
    y = a * b.detach()
    found.append(raised(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)))
    y = a * b
    found.append(raised(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), lambda t: t)))
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach().clone(), lambda t: t)
    found.append(type(y.grad_fn._saved_result.grad_fn).__name__)
    (g,) = lib.autograd.grad(y.sum(), a, create_graph=True)
    found.append([round(v, 3) for v in lib.autograd.grad(g.sum(), a)[0].tolist()])
    return found


def hooks_of_saved_lists(lib):
    m = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = m[lib.tensor([0, 1]), lib.tensor([1, 0])]
    found = [type(y.grad_fn).__name__, len(y.grad_fn._raw_saved_indices), [i.tolist() for i in y.grad_fn._saved_indices]]
    y.grad_fn._raw_saved_indices[1].register_hooks(lambda t: t.tolist(), lambda v: lib.tensor(v))
    y.sum().backward()
    return [*found, m.grad.tolist()]


def hooks_of_a_function(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            b = a * 2
            ctx.save_for_backward(a, b)
            return b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * a * b

    a, _, _ = leaves(lib)
    y = Double.apply(a)
    raw = y.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda t: t.tolist(), lambda v: lib.tensor(v) + 1)
    raw[1].register_hooks(lambda t: t.tolist(), lambda v: lib.tensor(v))
    y.sum().backward()
    log = Log(lib)
    with log.hooks():
        z = Double.apply(a)
    (z * 3.0).sum().backward()
    return len(raw), a.grad.tolist(), log.seen, raised(lambda: y.grad_fn._raw_saved_tensors)[0]


def with_checkpointing(lib):
    """The function's own tensors are not packed, its arguments are."""
    found = []
    for reentrant in (True, False):
        a, b, _ = leaves(lib)
        log = Log(lib)
        with log.hooks():
            y = lib.utils.checkpoint.checkpoint(lambda u: (u.exp() * u).sin(), a * 0.5, use_reentrant=reentrant)
            z = y * b
        z.sum().backward()
        found.append(([round(v, 3) for v in a.grad.tolist()], sorted({str(v) for kind, v, _ in log.seen if kind == "pack" and v in ([0.5, 1.0, 1.5], [4.0, 5.0, 6.0])})))
    return found


SCENARIOS = [f for name, f in sorted(globals().items()) if callable(f) and getattr(f, "__module__", "") == __name__ and name not in ("raised", "refused_call", "leaves", "Log")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(scenario) -> None:
    torch = pytest.importorskip("torch")
    for lib in (torch, trt):
        importlib.import_module(f"{lib.__name__}.utils.checkpoint")
    assert scenario(trt) == scenario(torch)


def test_packed_memory_is_freed_and_there_are_no_cycles() -> None:
    class Packed:
        def __init__(self, tensor):
            self.tensor = tensor

    alive = weakref.WeakSet()

    def pack(t):
        packed = Packed(t)                 # holds even an output itself: the Node gave it no way back
        alive.add(packed)
        return packed

    gc.collect()
    gc.disable()
    try:
        a = trt.ones(3, requires_grad=True)
        with trt.autograd.graph.saved_tensors_hooks(pack, lambda p: p.tensor):
            y = (a.exp() * a).sigmoid().sum()
            z = (a.softmax(0) @ a).exp()
        assert len(alive) > 3
        y.backward()
        count = len(alive)
        z.backward()
        assert len(alive) < count and not alive
        with trt.autograd.graph.saved_tensors_hooks(pack, lambda p: p.tensor):
            y = (a.exp() * a.softmax(0)).sigmoid().sum()
        assert alive
        del y
        assert not alive
    finally:
        gc.enable()


def test_what_is_unpacked_for_kernels_must_fit() -> None:
    m = trt.ones(4, 4, requires_grad=True)
    for wrong in (trt.ones(2, 2), trt.ones(4, 4, dtype=trt.float64), trt.ones(4, 4, device="meta")):
        with trt.autograd.graph.saved_tensors_hooks(lambda t: None, lambda _, wrong=wrong: wrong):
            y = (m @ trt.ones(4, 4)).sum()
        with pytest.raises(RuntimeError, match="the unpack hook returned a"):
            y.backward()


def test_forward_derivatives_go_through_packed_tensors() -> None:
    x = trt.tensor([0.5, 1.0], dtype=trt.float64, requires_grad=True)

    def gradient(hooks):
        with trt.autograd.forward_ad.dual_level():
            d = trt.autograd.forward_ad.make_dual(x, trt.ones(2, dtype=trt.float64))
            if hooks:
                with trt.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda v: trt.tensor(v, dtype=trt.float64)):
                    y = (d.exp() * d).softmax(0)
            else:
                y = (d.exp() * d).softmax(0)
            (g,) = trt.autograd.grad(y[0], d, create_graph=True)
            return trt.autograd.forward_ad.unpack_dual(g).tangent.tolist()

    assert gradient(True) == gradient(False)


def test_saved_tensors_are_made_by_nodes_alone() -> None:
    raw = (trt.ones(2, requires_grad=True) * trt.ones(2, requires_grad=True)).grad_fn._raw_saved_self
    with pytest.raises(TypeError, match="SavedTensor"):
        type(raw)()
