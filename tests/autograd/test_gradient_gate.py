"""Every gradient agrees with the shape, type and device of the output that it belongs to before its Node runs, whoever made it."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import OrderedDict

import pytest

import tensorrt_lite as trt
import tensorrt_lite.nn.functional as F


class Returns(trt.autograd.Function):
    """y = 2 x; backward returns what `make` makes of its gradient."""

    make = staticmethod(lambda g: g)

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return Returns.make(g)


def leaf(*shape: int, **options) -> trt.Tensor:
    return trt.rand(*shape, requires_grad=True, **options)


# One program for each fused or saving backward kernel that trusts its gradient's geometry.
OPERATORS = {
    "mul": lambda: leaf(8, 8) * leaf(8, 8),
    "exp": lambda: leaf(8, 8).exp(),
    "sigmoid": lambda: leaf(8, 8).sigmoid(),
    "gelu": lambda: F.gelu(leaf(8, 8)),
    "relu": lambda: F.relu(leaf(8, 8)),
    "pow": lambda: leaf(8, 8) ** leaf(8, 8),
    "div": lambda: leaf(8, 8) / leaf(8, 8),
    "where": lambda: trt.where(trt.rand(8, 8) > 0.5, leaf(8, 8), leaf(8, 8)),
    "addcmul": lambda: trt.addcmul(leaf(8, 8), leaf(8, 8), leaf(8, 8)),
    "mul_": lambda: (leaf(8, 8) * 1).mul_(leaf(8, 8)),
    "sum": lambda: leaf(8, 8, 8).sum(0),
    "linear": lambda: F.linear(leaf(8, 8), leaf(8, 8), leaf(8)),
    "mm": lambda: leaf(8, 8) @ leaf(8, 8),
    "bmm": lambda: leaf(2, 4, 8) @ leaf(2, 8, 8),
    "layer_norm": lambda: F.layer_norm(leaf(8, 8), (8,), leaf(8), leaf(8)),
    "rms_norm": lambda: F.rms_norm(leaf(8, 8), (8,), leaf(8)),
    "group_norm": lambda: F.group_norm(leaf(2, 4, 8), 2, leaf(4), leaf(4)),
    "batch_norm": lambda: F.batch_norm(leaf(8, 8), None, None, leaf(8), leaf(8), training=True),
    "max_pool2d": lambda: F.max_pool2d(leaf(1, 2, 8, 8), 2),
    "conv2d": lambda: F.conv2d(leaf(1, 2, 8, 8), leaf(3, 2, 3, 3)),
    "softmax": lambda: F.softmax(leaf(8, 8), -1),
    "embedding_bag": lambda: F.embedding_bag(trt.tensor([[0, 1], [2, 3]]), leaf(8, 8), mode="sum"),
    "prelu": lambda: F.prelu(leaf(8, 8) - 0.5, leaf(8)),
    "attention": lambda: F.scaled_dot_product_attention(leaf(1, 2, 8, 8), leaf(1, 2, 8, 8), leaf(1, 2, 8, 8)),
    "cross_entropy": lambda: F.cross_entropy(leaf(8, 8), trt.arange(8), reduction="none"),
    "mse_loss": lambda: F.mse_loss(leaf(8, 8), trt.rand(8, 8), reduction="none"),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(leaf(8, 8), trt.rand(8, 8), reduction="none"),
    "kl_div": lambda: F.kl_div(leaf(8, 8), trt.rand(8, 8), reduction="none"),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(leaf(8, 8), trt.rand(8, 8), reduction="none"),
    "view": lambda: leaf(8, 8).view(4, 16),
    "as_strided": lambda: leaf(8, 8).as_strided((4, 4), (8, 1), 2),
    "index": lambda: leaf(8, 8)[trt.tensor([0, 2, 2])],
    "cat": lambda: trt.cat([leaf(2, 3), leaf(4, 3)]),
    "unbind": lambda: leaf(3, 5).unbind()[1],
    "split": lambda: leaf(6, 5).split(2)[1],
    "qr": lambda: trt.linalg.qr(leaf(5, 5) + trt.eye(5))[1],
    "std_mean": lambda: trt.std_mean(leaf(5, 5), 0)[0],
    "view+write": lambda: written_view(),
    "five dimensions": lambda: leaf(1, 2, 1, 2, 3).exp(),
    "function": lambda: Returns.apply(leaf(8, 8)),
}  # fmt: skip


def written_view() -> trt.Tensor:
    y = leaf(8, 8) * 1
    y[2:4].mul_(leaf(2, 8))
    return y


def shape_of_another(g: trt.Tensor) -> trt.Tensor:
    return trt.ones(*g.shape, 3)


LIES = {
    "shape": shape_of_another,
    "larger": lambda g: trt.ones(100_000),
    "smaller": lambda g: trt.ones([max(n - 1, 0) for n in g.shape]),
    "type": lambda g: g.to(trt.complex64),
    "integers": lambda g: trt.ones(g.shape, dtype=trt.int64),
    "device": lambda g: g.to("meta"),
    "scalar": lambda g: trt.ones(()),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("lie", LIES)
def test_hooks_of_tensors_cannot_change_what_a_gradient_is(operator, lie) -> None:
    y = OPERATORS[operator]()
    y.register_hook(LIES[lie])
    with pytest.raises(RuntimeError, match="has changed the (size|type) of value"):
        y.sum().backward()


@pytest.mark.parametrize("operator", OPERATORS)
def test_hooks_of_nodes_cannot_either(operator) -> None:
    for lie in LIES.values():
        y = OPERATORS[operator]()
        y.grad_fn.register_prehook(lambda grads, lie=lie: tuple(None if g is None else lie(g) for g in grads))
        with pytest.raises(RuntimeError, match="has changed the (size|type) of value"):
            y.sum().backward()
        y = OPERATORS[operator]()
        y.grad_fn.register_hook(lambda grads, _, lie=lie: tuple(None if g is None else lie(g) for g in grads))
        with pytest.raises(RuntimeError, match="has changed the (size|type) of value"):
            y.sum().backward()


IN_PLACE = {
    "data": lambda g: setattr(g, "data", trt.zeros(2, 2, 2, 2)),
    "data of another type": lambda g: setattr(g, "data", trt.zeros(g.shape, dtype=trt.int64)),
    "resize to nothing": lambda g: g.resize_(0),
    "resize to more": lambda g: g.resize_(100_000),
    "set": lambda g: g.set_(),
    "transpose": lambda g: g.unsqueeze_(0),
}


def after(change):
    """A hook that returns nothing."""

    def hook(g: trt.Tensor) -> None:
        change(g)

    return hook


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("change", IN_PLACE)
def test_a_gradient_changed_in_place_is_refused_at_the_node(operator, change) -> None:
    y = OPERATORS[operator]()
    y.register_hook(after(IN_PLACE[change]))
    with pytest.raises(RuntimeError, match="gradient of output"):
        (y * 2).sum().backward()


def test_a_hook_cannot_change_the_gradient_that_waits_at_another_node() -> None:
    """`+` hands one gradient to both sides; the hook of one side shrinks it before the other one runs."""
    a, b = leaf(64, 64), leaf(64, 64)
    late = F.layer_norm(a, (64,))
    early = b.exp()
    early.register_hook(after(lambda g: g.resize_(0)))
    with pytest.raises(RuntimeError, match="gradient of output 0"):
        (late + early).sum().backward()


def test_a_gradient_without_memory_is_refused() -> None:
    y = leaf(64, 64).exp()
    y.register_hook(after(lambda g: g.untyped_storage().resize_(0)))
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        (y * 2).sum().backward()
    y = leaf(3).exp()
    y.register_hook(lambda g: setattr(g, "data", g.new_zeros(3)))
    y.sum().backward()


def test_gradients_of_functions_are_fitted_as_pytorch_does() -> None:
    def gradient(make) -> trt.Tensor:
        Returns.make = staticmethod(make)
        x = trt.zeros(8, requires_grad=True)
        Returns.apply(x.exp()).sum().backward()
        return x.grad

    try:
        assert gradient(lambda g: trt.ones(3, 8)).tolist() == [3.0] * 8
        assert gradient(lambda g: trt.ones(8, dtype=trt.int64)).tolist() == [1.0] * 8
        assert gradient(lambda g: trt.ones(8, dtype=trt.float64)).dtype is trt.float32
        with pytest.raises(RuntimeError, match=r"Function ReturnsBackward returned an invalid gradient at index 0 - expected device cpu but got meta"):
            gradient(lambda g: trt.ones(8, device="meta"))
        for wrong in (trt.ones(5), trt.ones(()), trt.ones((), device="meta")):
            text = rf"returned an invalid gradient at index 0 - got \[{'5' if wrong.ndim else ''}\] but expected shape compatible with \[8\]"
            with pytest.raises(RuntimeError, match=text):
                gradient(lambda g, wrong=wrong: wrong)
        with pytest.raises(RuntimeError, match="complex"):
            gradient(lambda g: trt.ones(8, dtype=trt.complex64))
        for wrong in (3, [trt.ones(8)]):
            with pytest.raises(RuntimeError, match="expected Variable or None"):
                gradient(lambda g, wrong=wrong: wrong)
    finally:
        Returns.make = staticmethod(lambda g: g)


def test_lists_of_hooks_are_not_within_reach() -> None:
    x = leaf(3)
    handle = x.register_hook(lambda g: g * 2)
    x._backward_hooks.clear()
    assert not hasattr(handle, "_hooks") and not hasattr(handle, "hooks")
    for make in (lambda: type(handle)(OrderedDict()), lambda: type(handle).__new__(type(handle))):
        with make() as empty:
            empty.remove()
    x.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_hooks_behind_an_accumulation_return_nothing() -> None:
    for value, error, text in ((3, TypeError, "expected Variable, but hook returned 'int'"), (trt.ones(3), RuntimeError, "should return None")):
        x = leaf(3)
        x.register_post_accumulate_grad_hook(lambda p, value=value: value)
        with pytest.raises(error, match=text):
            x.sum().backward()


def test_what_hooks_may_return() -> None:
    def run(hook, kind: str) -> None:
        x = leaf(4)
        y = x.exp()
        if kind == "tensor":
            y.register_hook(hook)
        elif kind == "leaf":
            x.register_hook(hook)
        elif kind == "pre":
            y.grad_fn.register_prehook(hook)
        else:
            y.grad_fn.register_hook(lambda ins, outs: hook(ins))
        y.sum().backward()

    for kind in ("tensor", "leaf"):
        with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
            run(lambda g: 3, kind)
    for kind in ("pre", "post"):
        for wrong in (3, trt.ones(4), [trt.ones(4)]):
            with pytest.raises(TypeError, match="expected tuple, but hook returned"):
                run(lambda g, wrong=wrong: wrong, kind)
        with pytest.raises(TypeError, match="expected Variable, but hook returned 'str'"):
            run(lambda g: ("a",), kind)
        for wrong in ((), (trt.ones(4), trt.ones(4))):
            with pytest.raises(RuntimeError, match=rf"incorrect number of values \(got {len(wrong)}, but expected 1\)"):
                run(lambda g, wrong=wrong: wrong, kind)
        run(lambda g: (None,), kind)
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        y = leaf(3, 4).unbind()[1]
        y.grad_fn.register_prehook(lambda grads: (trt.ones(4), *grads[1:]))
        y.sum().backward()


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_node_called_by_hand_takes_any_arguments(operator) -> None:
    y = OPERATORS[operator]()
    node = y.grad_fn
    outputs = 1
    for outputs in range(1, 8):
        try:
            node(*[None] * outputs)
            break
        except TypeError as error:
            assert f"got {outputs} instead" in str(error)
    right = [trt.ones(y.shape) if i == y.output_nr else None for i in range(outputs)]
    for mode in (trt.no_grad, trt.enable_grad):
        with mode():
            result = node(*right)
            assert result is None or isinstance(result, (tuple, trt.Tensor))
            with pytest.raises(TypeError, match="instead"):
                node(*right, None)
            for lie in LIES.values():
                try:
                    node(*[None if g is None else lie(g) for g in right])
                except RuntimeError as error:
                    assert "invalid gradient" in str(error)
            for junk in (3, "a", [trt.ones(y.shape)]):
                with pytest.raises(TypeError, match="is not a Variable"):
                    node(*[junk] * outputs)
    # outputs that no gradient has ever come for alone
    for i in range(outputs):
        node(*[trt.ones(y.shape) if k == i != y.output_nr else None for k in range(outputs)] if operator in ("unbind", "split") else [None] * outputs)


def test_calling_nodes_by_hand_gives_what_pytorch_gives() -> None:
    a, b = leaf(3), leaf(3)
    y = a * b
    assert y.grad_fn(None) == (None, None)
    first, second = y.grad_fn(trt.ones(3))
    assert first.tolist() == b.tolist() and second.tolist() == a.tolist()
    assert y.grad_fn(trt.ones(3, dtype=trt.float64))[0].tolist() == b.tolist()
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 instead"):
        y.grad_fn()
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.grad_fn(trt.ones(100, 1000).to("meta"))
    rows = leaf(3, 4)
    assert rows.unbind()[0].grad_fn(trt.ones(4), None, trt.ones(4)).tolist() == [[1.0] * 4, [0.0] * 4, [1.0] * 4]
    accumulator = (a * 1).grad_fn.next_functions[0][0]
    assert accumulator(trt.ones(3)) == () and accumulator(None) == ()
    accumulator(trt.ones(3))
    assert a.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="invalid gradient"):
        accumulator(trt.ones(2))


def test_the_shape_of_a_result_changed_after_the_forward_call() -> None:
    x = leaf(8, 8)
    y = x.exp()
    y.data = trt.zeros(2, 2)
    with pytest.raises(RuntimeError, match=r"got \[2, 2\] but expected shape compatible with \[8, 8\]"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.backward(trt.ones(2, 2))
    p = leaf(3)
    q = p * 2
    p.data = trt.rand(5)
    with pytest.raises(RuntimeError, match=r"got \[3\] but expected shape compatible with \[5\]"):
        q.sum().backward()


def test_nodes_cannot_be_made() -> None:
    x = leaf(4)
    view = (x * 1)[1:]
    view.mul_(2)
    nodes = [(x * x).grad_fn, (x @ x).grad_fn, (x * 1).grad_fn.next_functions[0][0], view.grad_fn, view._base.grad_fn, x.unbind()[0].grad_fn]
    for node in nodes:
        cls = type(node)
        for base in cls.__mro__[: cls.__mro__.index(trt.autograd.graph.Node)]:
            for make in (base, lambda base=base: base.__new__(base), lambda base=base: trt.autograd.graph.Node.__new__(base),
                         lambda base=base: object.__new__(base), lambda base=base: type("Sub", (base,), {})(),
                         lambda base=base: type("Sub", (base,), {"__new__": lambda cls: base.__new__(cls)})()):  # fmt: skip
                with pytest.raises(TypeError):
                    make()
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                copied(node)
    with pytest.raises(TypeError, match="cannot create"):
        trt.autograd.graph.Node()
    context = type(Returns.apply(x).grad_fn)()  # as in PyTorch; it has no outputs, so no gradient
    assert not context(trt.ones(4))


def test_several_outputs_and_all_kinds_of_arguments() -> None:
    class Several(trt.autograd.Function):
        @staticmethod
        def forward(ctx, n, x, name):
            ctx.mark_non_differentiable(marked := x.round())
            return x * n, name, x + 1, marked

        @staticmethod
        def backward(ctx, g, name, h, marked):
            assert name is None and marked.shape == (4,)
            return None, g + h, None

    x = leaf(4)
    a, name, b, marked = Several.apply(3, x, "name")
    b.register_hook(lambda g: g * 10)
    a.retain_grad()
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [11.0] * 4 and a.grad.tolist() == [1.0] * 4
    for k, lie in [(k, lie) for k in (0, 2, 3) for lie in LIES.values()]:
        a, name, b, marked = Several.apply(3, x, "name")
        a.grad_fn.register_prehook(lambda grads, k=k, lie=lie: tuple(lie(trt.ones(4)) if i == k else g for i, g in enumerate(grads)))
        with pytest.raises(RuntimeError, match="has changed the|can't replace a None"):
            (a.sum() + b.sum()).backward()
    with pytest.raises(RuntimeError, match="invalid gradient"):
        Several.apply(3, x, "name")[0].grad_fn(trt.ones(5), None, None, None)


def test_an_input_written_in_place_is_the_output_at_its_own_position() -> None:
    class Writes(trt.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(b.mul_(2))
            return a * 3, b

        @staticmethod
        def backward(ctx, g, h):
            return g * 3, h * 2

    a, b = leaf(4), leaf(3)
    written = b * 1
    written.retain_grad()
    first, second = Writes.apply(a, written)
    assert (first.output_nr, second.output_nr) == (0, 1)
    (second * 5).sum().backward()
    assert b.grad.tolist() == [10.0] * 3
    assert written.grad.tolist() == [5.0] * 3 and a.grad.tolist() == [0.0] * 4


def test_retained_gradients_and_captures_agree_too() -> None:
    x = leaf(4)
    y = x.exp()
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (g,) = trt.autograd.grad(y.sum(), y, retain_graph=True)
    assert g.tolist() == [2.0] * 4
    y.register_hook(after(lambda g: g.resize_(2)))
    with pytest.raises(RuntimeError, match="gradient of output 0"):
        trt.autograd.grad(y.sum(), y)
    x.register_hook(after(lambda g: g.resize_(2)))
    with pytest.raises(RuntimeError, match="gradient of output 0"):
        x.exp().sum().backward()
    assert x.grad is None


def test_second_derivatives_pass_through_hooks() -> None:
    x = trt.tensor([2.0], requires_grad=True)
    y = x**3
    y.register_hook(lambda g: g * 2)
    v = trt.ones(1, requires_grad=True)
    (first,) = trt.autograd.grad(y, x, v, create_graph=True)
    by_x, by_v = trt.autograd.grad(first, (x, v))
    assert (first.item(), by_x.item(), by_v.item()) == (24.0, 24.0, 24.0)


def test_a_thread_resizes_the_gradients_that_a_hook_has_seen() -> None:
    seen: list[trt.Tensor] = []
    stop = threading.Event()

    def shrink() -> None:
        while not stop.is_set():
            for g in seen[-4:]:
                g.resize_(0)
                g.resize_(1)

    thread = threading.Thread(target=shrink)
    thread.start()
    try:
        for _ in range(200):
            y = F.layer_norm(F.linear(leaf(32, 32), leaf(32, 32)), (32,))
            y.register_hook(seen.append)
            try:
                ((y + 1) * (y + 2)).sum().backward()
            except RuntimeError:
                pass
            del seen[:-4]
    finally:
        stop.set()
        thread.join()


def test_nodes_do_not_ask_torch_function() -> None:
    """As in PyTorch: it sees the calls of the program and of its hooks, not those of which a backward pass is made."""

    class Watched(trt.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            names.append(getattr(function, "__name__", str(function)))
            return super().__torch_function__(function, types, args, kwargs)

    names: list[str] = []
    x = trt.rand(3, 4).as_subclass(Watched).requires_grad_()
    loss = (x * x).std() + trt.linalg.vector_norm(x, dim=0).prod() + (x @ x.T).logsumexp(0).sum()
    names.clear()
    (expected,) = trt.autograd.grad(loss.as_subclass(trt.Tensor), x, retain_graph=True)
    assert set(names) <= {"as_subclass", "__get__", "grad"}, names  # grad itself is a call of the program
    loss.grad_fn.register_prehook(lambda grads: (grads[0].as_subclass(Watched),))
    names.clear()
    (g,) = trt.autograd.grad(loss.as_subclass(trt.Tensor), x)
    assert set(names) <= {"as_subclass", "__get__", "grad"}, names  # grad itself is a call of the program
    assert g.tolist() == expected.tolist()


def test_gradients_of_strided_complex_views() -> None:
    torch = pytest.importorskip("torch")

    def gradients(lib) -> tuple:
        x = lib.tensor([1 + 2j, 3 - 1j, -2 + 0.5j, 0.25j, 1.0, -1 - 1j], dtype=lib.complex128, requires_grad=True)
        return [lib.autograd.grad(x.as_strided((2, 2), strides, 1).abs().sum(), x)[0].tolist() for strides in ((1, 2), (1, 1), (0, 2))]

    for ours, theirs in zip(gradients(trt), gradients(torch)):
        assert ours == pytest.approx(theirs)


def test_second_derivative_of_ldexp() -> None:
    torch = pytest.importorskip("torch")

    def derivatives(lib) -> list:
        x = lib.tensor([0.5, -1.0, 3.0], dtype=lib.float64, requires_grad=True)
        n = lib.tensor([1.0, 2.0, -1.5], dtype=lib.float64, requires_grad=True)
        first = lib.autograd.grad(lib.ldexp(x, n).sum(), (x, n), create_graph=True)
        return [g.tolist() for g in lib.autograd.grad((first[0] * 2 + first[1] * x).sum(), (x, n))]

    for ours, theirs in zip(derivatives(trt), derivatives(torch)):
        assert ours == pytest.approx(theirs)


def test_private_setters_refuse_junk() -> None:
    from tensorrt_lite._C.core import dispatch, symbols, tensor

    before = dispatch._set_anomaly(-1)
    try:
        with pytest.raises(RuntimeError, match="nan"):
            (leaf(1) * 0).log().mul(0).sum().backward()
    finally:
        assert dispatch._set_anomaly(before) == 3
    for arguments in ((None, None), (3, int), (int, int)):
        with pytest.raises(TypeError):
            symbols.install(*arguments)
    for arguments in ((None, None, Returns), (int, None, None), (None, 3, None), (Returns, None, None)):
        with pytest.raises(TypeError):
            tensor._register_types(*arguments)
