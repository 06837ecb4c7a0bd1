"""Hooks at the ends of a pass and histories that are lost in place, the same programs on PyTorch and on tensorrt_lite."""

from __future__ import annotations

import weakref

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("lib", [trt, torch], ids=["here", "torch"])


def chain(lib):
    """a -> b = 2 a -> c = 3 b, with hooks on tensors and on Nodes at a and b."""
    a = lib.ones(1, requires_grad=True)
    b = a * 2
    c = b * 3
    b.register_hook(lambda g: g * 100)
    b.grad_fn.register_prehook(lambda g: (g[0] * 10,))
    a.register_hook(lambda g: g * 7)
    b.grad_fn.next_functions[0][0].register_prehook(lambda g: (g[0] * 1000,))
    return a, b, c


@BOTH
def test_grad_does_not_run_prehooks_of_the_wanted_tensors_own_node(lib) -> None:
    a, _, c = chain(lib)
    assert lib.autograd.grad(c, a)[0].item() == 3 * 100 * 10 * 2 * 7
    _, b, c = chain(lib)
    assert lib.autograd.grad(c, b)[0].item() == 3 * 100


@BOTH
def test_backward_runs_all_prehooks(lib) -> None:
    a, _, c = chain(lib)
    c.backward()
    assert a.grad.item() == 3 * 100 * 10 * 2 * 7 * 1000
    a, b, c = chain(lib)
    c.backward(inputs=[a, b])
    assert (a.grad.item(), b.grad.item()) == (3 * 100 * 10 * 2 * 7 * 1000, 3 * 100)


def test_a_tensor_between_has_its_own_hooks_and_not_its_nodes() -> None:
    a, b, c = chain(trt)
    assert [g.item() for g in trt.autograd.grad(c, (a, b))] == [3 * 100 * 10 * 2 * 7, 3 * 100]


@BOTH
def test_a_post_accumulate_hook_may_return_its_tensor(lib) -> None:
    x = lib.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: p)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        (x * 2).sum().backward()


@pytest.mark.parametrize("split", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(3)], ids=["unbind", "split", "chunk"])
def test_hooks_of_results_without_gradient_get_none(split) -> None:
    def run(lib):
        seen = []
        parts = split(lib.ones(3, 2, requires_grad=True))
        for part in parts:
            part.register_hook(lambda g: seen.append(None if g is None else g.tolist()))
        parts[1].sum().backward()
        return seen

    assert run(trt) == run(torch)


# ---- detach_


def detached(lib, use, again=False):
    a = lib.ones(2, requires_grad=True).clone()
    y = use(lib, a)
    a.detach_()
    if again:
        a.requires_grad_()
    y.sum().backward()


SAVING = {
    "sin": lambda lib, a: a.sin(),
    "mul": lambda lib, a: a * a,
    "softplus": lambda lib, a: lib.nn.functional.softplus(a),
    "dot": lambda lib, a: a.dot(lib.ones(2, requires_grad=True)),
    "stack of squares": lambda lib, a: lib.stack([a, a]).sum() + a.pow(2).sum(),
}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", SAVING)
def test_a_saved_tensor_that_was_detached_in_place_is_noticed(name, again) -> None:
    for lib in (trt, torch):
        with pytest.raises(RuntimeError, match="detached in[- ]place"):
            detached(lib, SAVING[name], again)


@BOTH
def test_detaching_what_is_not_read_is_allowed(lib) -> None:
    detached(lib, lambda lib, a: a * 2)
    detached(lib, lambda lib, a: a.exp())  # reads its result
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    total = y.sum()
    y.detach_()  # a saved result
    total.backward()
    assert x.grad.tolist() == pytest.approx([2.718281828] * 2)
    a = lib.ones(2, requires_grad=True).clone().detach_().requires_grad_()
    a.sin().sum().backward()  # saved afterwards
    assert a.grad.tolist() == pytest.approx([0.5403023] * 2)


# ---- set_ and resize_


@BOTH
def test_set_without_gradients_cuts_a_leaf_from_older_graphs(lib) -> None:
    for source in (lib.rand(2), lib.rand(2).untyped_storage()):
        for read_before in (False, True):
            x = lib.rand(2, requires_grad=True)
            old = x.clone()
            if read_before:
                assert old.grad_fn.next_functions[0][0].variable is x
            with lib.no_grad():
                x.set_(source)
            with pytest.raises(RuntimeError, match="not have been used in the graph"):
                lib.autograd.grad(old.sum(), x)
            assert lib.autograd.grad((x * 3).sum(), x)[0].tolist() == [3.0, 3.0]
    x = lib.rand(2, requires_grad=True)
    old = x * 2
    with lib.no_grad():
        x.set_(lib.rand(2))
    old.sum().backward()  # still accumulates
    assert x.grad.tolist() == [2.0, 2.0]


def replace(lib, leaf, *sizes):
    with lib.no_grad():
        leaf.set_(lib.zeros(*sizes))


@BOTH
@pytest.mark.parametrize("read_before", [False, True])
def test_hooks_of_a_leaf_after_set_see_the_whole_gradient_of_an_older_graph(lib, read_before) -> None:
    w = lib.ones(2, requires_grad=True)
    y = w * 4 + w * 3 + w * 2
    if read_before:  # the accumulator is there when set_ is called
        assert y.grad_fn.next_functions[1][0].next_functions[0][0].variable is w
    replace(lib, w, 2)
    seen, accumulated = [], []
    w.register_hook(lambda g: seen.append(g.tolist()))
    w.register_hook(lambda g: g.clamp(max=3))
    w.register_post_accumulate_grad_hook(lambda p: accumulated.append(p.grad.tolist()))
    y.sum().backward()
    assert (seen, accumulated, w.grad.tolist()) == ([[9.0, 9.0]], [[3.0, 3.0]], [3.0, 3.0])


@BOTH
def test_graphs_between_several_calls_of_set_have_an_accumulator_each(lib) -> None:
    w = lib.ones(2, requires_grad=True)
    y = w * 2 + w * 3
    replace(lib, w, 2)
    y = y + w * 4 + w * 5
    replace(lib, w, 2)
    y = y + w * 6 + w * 7
    seen = []
    w.register_hook(lambda g: seen.append(g[0].item()))
    y.sum().backward()
    assert sorted(seen) == [5.0, 9.0, 13.0]
    assert w.grad.tolist() == [27.0, 27.0]


@BOTH
def test_a_graph_from_before_set_keeps_the_sizes_of_that_time(lib) -> None:
    w = lib.ones(3, requires_grad=True)
    first = (w * 2).sum() + (w * 5).sum()
    replace(lib, w, 5)
    second = (w * 3).sum() + (w * 4).sum()
    replace(lib, w, 2)
    for y, expected in ((second, [7.0] * 5), (first, [7.0] * 3), ((w * 6).sum(), [6.0] * 2)):
        w.grad = None
        y.backward()
        assert w.grad.tolist() == expected


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_from_before_set_is_kept_in_its_own_sizes() -> None:
    for before, after in (((2, 3), (3, 4)), ((2, 3), (5,)), ((3,), (2, 3)), ((1, 1, 1, 1, 2), (2,))):
        for create_graph in (False, True):
            w = trt.ones(*before, requires_grad=True)
            y = (w * 2).sum()
            replace(trt, w, *after)
            y.backward(create_graph=create_graph)
            assert w.grad.tolist() == trt.full(before, 2.0).tolist()


@BOTH
def test_set_that_fails_leaves_a_leaf_in_its_graph(lib) -> None:
    w = lib.ones(3, requires_grad=True)
    y = (w * 2).sum()
    with lib.no_grad(), pytest.raises(RuntimeError):
        w.set_(w.untyped_storage(), 0, (2,), (-1,))
    with lib.no_grad(), pytest.raises(RuntimeError):
        w.set_(lib.zeros(3, dtype=lib.float64))
    assert lib.autograd.grad(y, w)[0].tolist() == [2.0] * 3


@BOTH
def test_a_leaf_that_set_has_changed_dies_and_swaps_like_others(lib) -> None:
    w = lib.ones(3, requires_grad=True)
    y = (w * 2).sum()
    replace(lib, w, 3)
    y.backward()
    other = lib.zeros(2)
    del y
    lib.utils.swap_tensors(w, other)
    assert (w.tolist(), other.tolist()) == ([0.0] * 2, [0.0] * 3)
    alive = weakref.ref(w)
    del w
    assert alive() is None


@BOTH
def test_resize_counts_a_version_where_sizes_change(lib) -> None:
    x = lib.rand(2, 3)
    versions = []
    for sizes in ((2, 3), (3, 2), (3, 2), (6,), (6,)):
        x.resize_(sizes)
        versions.append(x._version)
    x.resize_as_(lib.ones(6))
    x.resize_as_(lib.ones(2))
    versions.append(x._version)
    assert versions == [0, 1, 1, 2, 2, 3]
