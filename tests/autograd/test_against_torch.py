"""Scenarios of autograd that give the same numbers, flags and errors on PyTorch and on tensorrt_lite.

Each takes the library and returns plain numbers and texts; one that expects an error returns what `raised` gives.
"""

from __future__ import annotations

import warnings

import pytest

import tensorrt_lite as trt


def raised(action, length: int = 60) -> tuple[str, str]:
    """(exception type, start of its text) of a call that must fail."""
    try:
        action()
    except Exception as error:
        return type(error).__name__, str(error)[:length]
    return "no error", ""


def node(tensor) -> str | None:
    return None if tensor.grad_fn is None else type(tensor.grad_fn).__name__


def accumulation_in_place(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).backward(lib.ones(2))
    first = x.grad
    (x * x).backward(lib.ones(2))
    return first is x.grad, x.grad.tolist()


def accumulation_under_create_graph(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(lib.ones(2), create_graph=True)
    first = x.grad
    (x * x * x).backward(lib.ones(2), create_graph=True)
    return first is x.grad, x.grad.tolist(), x.grad.requires_grad, first.tolist()


def gradient_of_expanded_root(lib):
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    g = lib.ones(1).expand(3)
    (x * 1).backward(g)
    x.grad.mul_(2)
    return x.grad.tolist(), g.tolist(), x.grad.stride()


def same_tensor_twice_as_gradient(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = lib.tensor([1.0, 2.0], requires_grad=True)
    (x + y).backward(lib.ones(2))
    x.grad.mul_(5)
    return x.grad.tolist(), y.grad.tolist()


def roots(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y, z = x * 2, x * x
    first = lib.autograd.grad([y, z, y], x, [lib.ones(2), lib.ones(2), lib.ones(2)], retain_graph=True)[0].tolist()
    return first, [g.tolist() for g in lib.autograd.grad(z, [x, z], lib.ones(2))]


def errors_of_arguments(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    plain = lib.ones(2)
    complex_root = lib.tensor([1j], requires_grad=True) * 1
    return [
        raised(lambda: (x * 2).backward()),
        raised(lambda: plain.backward(lib.ones(2))),
        raised(lambda: (x * 2).backward(lib.ones(3))),
        raised(lambda: (x * 2).backward(3)),
        raised(lambda: lib.autograd.grad(x * 2, plain, lib.ones(2))),
        raised(lambda: lib.autograd.grad(x * 2, lib.ones(2, requires_grad=True), lib.ones(2))),
        raised(lambda: lib.autograd.grad(x * 2, x, lib.ones(2), allow_unused=False, materialize_grads=True)),
        raised(lambda: lib.autograd.backward(x * 2, lib.ones(2), inputs=[])),
        raised(complex_root.backward),
    ]


def unused_inputs(lib):
    x = lib.tensor([1.0], requires_grad=True)
    w = lib.tensor([2.0, 3.0], requires_grad=True)
    a = lib.autograd.grad(x * 2, [x, w], lib.ones(1), allow_unused=True)
    b = lib.autograd.grad(x * 2, [x, w], lib.ones(1), materialize_grads=True)
    return a[1], b[1].tolist(), b[1].requires_grad


def backward_inputs(lib):
    x = lib.tensor([2.0], requires_grad=True)
    w = lib.tensor([3.0], requires_grad=True)
    h = x * w
    y = h * h
    y.backward(inputs=[w, h])
    return x.grad, w.grad.tolist(), h.grad.tolist()


def grad_keeps_the_rest_of_the_graph(lib):
    x = lib.tensor([2.0], requires_grad=True)
    h = x * x
    y = h * h
    g = lib.autograd.grad(y, h)[0].tolist()
    # what lies behind h did not run, so its saved tensors are still there
    h.backward()
    return g, x.grad.tolist()


def second_backward(lib):
    x = lib.tensor([2.0], requires_grad=True)
    y = x + x
    y.backward()
    y.backward()
    z = x * x
    z.backward(retain_graph=True)
    z.backward()
    return x.grad.tolist(), raised(z.backward)


def hooks(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    log = []
    y = x * 3
    y.retain_grad()
    first = y.register_hook(lambda g: log.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: log.append(("third", g.tolist())))
    x.register_hook(lambda g: log.append(("leaf", g.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("post", t.grad.tolist())))
    z = y * y
    z.backward(lib.ones(2), retain_graph=True)
    first.remove()
    x.grad = None
    z.backward(lib.ones(2))
    return log, y.grad.tolist(), x.grad.tolist()


def hook_errors(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: g.narrow(0, 0, 1))
    return raised(lambda: y.backward(lib.ones(2)), 40), raised(lambda: lib.ones(2).register_hook(print), 50), raised(lambda: lib.ones(1).retain_grad(), 30)


def node_hooks(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    log = []
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: log.append([g.tolist() for g in gs]))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 10, *ins[1:]))
    y.backward(lib.ones(2))
    return log, x.grad.tolist()


def hooks_follow_writes_in_place(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    log = []
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: log.append(("old", g.tolist())))
    y.mul_(2)
    y.register_hook(lambda g: log.append(("new", g.tolist())))
    (y * 5).backward(lib.ones(2))
    return log, y.grad.tolist(), x.grad.tolist()


def hook_inside_backward_runs_backward(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def hook(g):
        with lib.enable_grad():
            t = lib.tensor([3.0, 4.0], requires_grad=True)
            (t * t * x).backward(lib.ones(2))
        return g + t.grad

    y = x * 2
    y.register_hook(hook)
    (y * y).backward(lib.ones(2))
    return x.grad.tolist()


def view_written_through(lib):
    x = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    w = lib.tensor([10.0, 20.0], requires_grad=True)
    b = x * 1
    row = b.select(0, 0)
    part = row.narrow(0, 1, 2)
    part.mul_(w)
    names = node(b), part.tolist(), row.tolist(), b.tolist()
    (b * b).backward(lib.ones(2, 3))
    return names, x.grad.tolist(), w.grad.tolist()


def gradient_through_another_view(lib):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = x * 1
    row, column = b.select(0, 1), b.select(1, 1)
    row.mul_(3)
    (column * column).backward(lib.ones(2))
    return x.grad.tolist(), column.tolist()


def base_written_after_view(lib):
    x = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    b = x * 1
    v = b.narrow(0, 1, 2)
    b.mul_(b.detach() * 2)
    (v * v).backward(lib.ones(2))
    return x.grad.tolist(), v.tolist()


def transposed_view_written(lib):
    x = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    w = lib.tensor([[2.0], [3.0], [4.0]], requires_grad=True)
    b = x * 1
    t = b.t()
    t.mul_(w)
    (b * b).backward(lib.ones(2, 3))
    return x.grad.tolist(), w.grad.tolist()


def buffer_filled_by_parts(lib):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    buffer = lib.zeros(3, 2)
    rows = [buffer.select(0, i) for i in range(3)]
    for i, row in enumerate(rows):
        # PyTorch refuses the second write unless the view's history was looked at before
        assert (row.grad_fn is None) == (i == 0)
        row.add_(w * (i + 1))
    buffer.select(0, 1).mul_(w)
    (buffer * buffer).backward(lib.ones(3, 2))
    return buffer.tolist(), w.grad.tolist(), rows[2].requires_grad, buffer.is_leaf


def double_backward_through_a_written_view(lib):
    x = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, requires_grad=True)
    b = x * x
    b.narrow(0, 0, 2).mul_(x.narrow(0, 1, 2))
    (g,) = lib.autograd.grad(b * b, x, lib.ones(3, dtype=lib.float64), create_graph=True)
    (h,) = lib.autograd.grad(g, x, lib.ones(3, dtype=lib.float64))
    return g.tolist(), h.tolist()


def complex_parts_written(lib):
    x = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    b = x * (2 + 1j)
    lib.view_as_real(b).select(-1, 0).mul_(3)
    b.backward(lib.tensor([1 + 1j, 2 - 1j]))
    return b.tolist(), x.grad.tolist()


def refused_writes(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    split = (x * 1).unbind(0)
    with lib.no_grad():
        view = x.narrow(0, 0, 1)
        inner = (x * 1).narrow(0, 0, 1)
    return [
        raised(lambda: x.mul_(2)),
        raised(lambda: x.narrow(0, 0, 1).mul_(2)),
        raised(lambda: split[0].mul_(2)),
        raised(lambda: view.mul_(x.narrow(0, 1, 1))),
        inner.mul_(2).tolist(),
    ]


def leaf_written_under_no_grad(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    v = x.narrow(0, 0, 1)
    with lib.no_grad():
        x.narrow(0, 0, 1).mul_(5)
        x.add_(1)
    v.backward()
    return x.tolist(), x.grad.tolist(), x.is_leaf, x._version, v.tolist()


def saved_tensor_modified(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    detached = x * 1
    w = detached * detached
    detached.detach().add_(1)
    data = x * 1
    u = data * data
    data.data.add_(1)
    u.backward(lib.ones(2))
    return raised(lambda: z.backward(lib.ones(2)), 90), raised(lambda: w.backward(lib.ones(2)), 90), x.grad.tolist()


def version_counters(lib):
    x = lib.ones(2)
    view, detached, data = x.view(2), x.detach(), x.data
    view.add_(1)
    detached.add_(1)
    data.add_(1)
    x.data = lib.zeros(2)
    with lib.no_grad():
        x.add_(1)
    return x._version, view._version, detached._version, data._version, x.tolist()


def detach_and_flags(lib):
    x = lib.tensor([1.0], requires_grad=True)
    y = x * 2
    z = y.detach()
    w = (x * 2).detach_()
    return (
        z.requires_grad, z.is_leaf, w.requires_grad, w.is_leaf, y.is_leaf, x.is_leaf,
        raised(lambda: y.requires_grad_(False)), raised(lambda: lib.tensor([1]).requires_grad_(), 30), raised(lambda: (x * 1).view(1).detach_()),
    )  # fmt: skip


def assigned_gradients(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    x.grad = lib.ones(2)
    (x * 2).backward(lib.ones(2))
    return (
        x.grad.tolist(), raised(lambda: setattr(x, "grad", 3), 50), raised(lambda: setattr(x, "grad", lib.ones(3)), 40),
        raised(lambda: setattr(x, "grad", lib.ones(2, dtype=lib.float64)), 40), raised(lambda: setattr(x, "grad", x)),
    )  # fmt: skip


def decorated_classes(lib):
    """The class is warned about and made a function that constructs in the mode; its methods are as they were."""

    class Plain:
        def __init__(self, value):
            self.value, self.inside = value, (lib.is_grad_enabled(), lib.is_inference_mode_enabled())

        def later(self):
            return lib.is_grad_enabled()

    log = []
    for decorate in (lib.no_grad(), lib.no_grad, lib.enable_grad(), lib.set_grad_enabled(False), lib.inference_mode()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = decorate(Plain)
        instance = made(3)
        log.append((isinstance(made, type), type(instance) is Plain, instance.value, instance.inside, instance.later()))
        log += [(w.category, str(w.message)) for w in caught]
    return log


def modes(lib):
    log = [lib.is_grad_enabled()]

    @lib.no_grad()
    def decorated():
        return lib.is_grad_enabled()

    @lib.no_grad
    def bare():
        return lib.is_grad_enabled()

    @lib.no_grad()
    def generator():
        for _ in range(2):
            received = yield lib.is_grad_enabled()
            log.append(received)
        return "end"

    @lib.set_grad_enabled(False)
    def switched():
        return lib.is_grad_enabled()

    @lib.inference_mode()
    def inferred():
        return lib.ones(1).is_inference(), lib.is_inference_mode_enabled(), lib.is_grad_enabled()

    log += [decorated(), bare(), switched(), inferred(), lib.is_grad_enabled()]
    g = generator()
    log.append(next(g))
    log.append(lib.is_grad_enabled())
    log.append(g.send("sent"))
    log.append(lib.is_grad_enabled())
    with lib.no_grad():
        with lib.enable_grad():
            log.append(lib.is_grad_enabled())
        lib.set_grad_enabled(True)
        log.append(lib.is_grad_enabled())
    log.append(lib.is_grad_enabled())
    try:
        with lib.no_grad():
            raise ValueError
    except ValueError:
        log.append(lib.is_grad_enabled())
    with lib.set_grad_enabled(False):
        log.append(lib.is_grad_enabled())
    with lib.inference_mode(), lib.inference_mode(False):
        log.append((lib.is_inference_mode_enabled(), lib.is_grad_enabled()))
    return log


def inference_tensors(lib):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    normal = lib.ones(2)
    with lib.inference_mode():
        made = lib.ones(2)
        result = w * 2
        view = normal.narrow(0, 0, 1)
        normal.add_(1)
        result.add_(1)
    flags = made.is_inference(), result.is_inference(), view.is_inference(), normal.is_inference(), result.requires_grad
    (w * made.clone()).backward(lib.ones(2))
    return (
        flags, w.grad.tolist(), normal._version, lib.ones(1).is_inference(), raised(lambda: made.add_(1), 50), raised(lambda: w * made, 50),
        raised(lambda: made._version, 40), raised(lambda: made.requires_grad_(), 40), made.view(2).is_inference(),
    )  # fmt: skip


def copies_of_leaves(lib):
    from copy import deepcopy
    from pickle import dumps, loads

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward(lib.ones(2))
    y = deepcopy(x)
    z = loads(dumps(x))
    y.grad.add_(1)
    return y.tolist(), y.requires_grad, y.grad.tolist(), x.grad.tolist(), z.tolist(), z.requires_grad, raised(lambda: deepcopy(x * 2), 40)


def graph_of_nodes(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 2).exp()
    n = y.grad_fn
    edge = lib.autograd.graph.get_gradient_edge(x)
    before = x._version
    lib.autograd.graph.increment_version(x)
    return (
        n.name(), n.next_functions[0][0].name(), n.next_functions[0][0].next_functions[0][0] is edge.node, edge.output_nr, edge.node.variable is x,
        x._version - before, isinstance(n, lib.autograd.graph.Node), n.metadata,
    )  # fmt: skip


SCENARIOS = [f for name, f in sorted(globals().items()) if callable(f) and getattr(f, "__module__", "") == __name__ and name not in ("raised", "node")]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(scenario) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scenario(trt) == scenario(torch)
