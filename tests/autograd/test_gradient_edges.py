"""GradientEdges in place of tensors, and what a Node knows of its gradients, beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
LIBRARIES = [trt, torch]


def edge(lib, t):
    return lib.autograd.graph.get_gradient_edge(t)


def graph(lib):
    a = lib.arange(1.0, 4.0).requires_grad_()
    b = lib.full((3,), 2.0, requires_grad=True)
    low, high = (a * b).split([1, 2])
    return a, b, low, high, (low.sum() * high).sum()


def both(run):
    """The numbers of `run(lib)` with each library."""
    ours, theirs = (run(lib) for lib in LIBRARIES)
    assert [None if g is None else g.tolist() for g in ours] == [None if g is None else g.tolist() for g in theirs]
    return ours


def test_gradients_with_respect_to_edges():
    def leaf_and_inner(lib):
        a, b, low, high, out = graph(lib)
        return lib.autograd.grad(out, [edge(lib, a), high, edge(lib, low), edge(lib, high), b])

    found = both(leaf_and_inner)
    assert found[1].tolist() == found[3].tolist() and len(found[2]) == 1


def test_one_edge_is_one_input():
    def one(lib):
        a, _, _, _, out = graph(lib)
        return lib.autograd.grad(out, edge(lib, a))

    assert len(both(one)) == 1


def test_edges_as_outputs():
    def roots(lib):
        a, b, low, high, out = graph(lib)
        first = lib.autograd.grad(edge(lib, out), a, retain_graph=True)
        return *first, *lib.autograd.grad([edge(lib, low), edge(lib, high)], [a, b], [lib.ones(1), lib.arange(2.0)])

    both(roots)


def test_backward_from_and_to_edges():
    def accumulate(lib):
        a, b, _, high, out = graph(lib)
        out.backward(inputs=[edge(lib, a), edge(lib, high)], retain_graph=True)
        assert b.grad is None
        lib.autograd.backward(edge(lib, out), inputs=edge(lib, a), retain_graph=True)
        lib.autograd.backward([edge(lib, high)], [lib.ones(2)])
        return a.grad, b.grad

    both(accumulate)


def test_unused_edges():
    def unused(lib):
        *_, out = graph(lib)
        other = lib.ones(2, requires_grad=True)
        return lib.autograd.grad(out, edge(lib, other), allow_unused=True)

    assert both(unused) == (None,)


def test_batches_of_gradients():
    def batched(lib):
        a, _, low, high, _ = graph(lib)
        return lib.autograd.grad([high, edge(lib, low)], edge(lib, a), [lib.eye(2), lib.ones(2, 1)], is_grads_batched=True)

    both(batched)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, a, high, out: lib.autograd.grad(edge(lib, high), a),
        lambda lib, a, high, out: lib.autograd.grad(edge(lib, high), a, lib.ones(3)),
        lambda lib, a, high, out: lib.autograd.grad(out, edge(lib, lib.ones(2, requires_grad=True))),
        lambda lib, a, high, out: lib.autograd.grad(out, edge(lib, lib.ones(2, requires_grad=True)), materialize_grads=True),
    ],
    ids=["not a scalar", "shape", "unused", "materialize"],
)
def test_errors(call):
    said = []
    for lib in LIBRARIES:
        a, _, _, high, out = graph(lib)
        with pytest.raises(RuntimeError) as error:
            call(lib, a, high, out)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_an_edge_to_no_output_is_refused():
    a, _, _, high, out = graph(trt)
    wrong = edge(trt, high)._replace(output_nr=7)
    with pytest.raises(IndexError, match="SplitWithSizesBackward0 has no output 7"):
        trt.autograd.grad(out, wrong, retain_graph=True)
    with pytest.raises(RuntimeError, match="SplitWithSizesBackward0 has no output 7"):
        trt.autograd.grad(wrong, a, trt.ones(2))


def test_nodes_know_the_gradients_they_take():
    def known(lib):
        a, _, _, high, out = graph(lib)
        nodes = [edge(lib, t).node for t in (a, high, out)]
        return [[(tuple(m.shape), str(m.dtype).split(".")[1], str(m.device), m.is_nested_tensor) for m in node._input_metadata] for node in nodes]

    assert known(trt) == known(torch)
    assert len(known(trt)[1]) == 2


def test_the_level_of_forward_mode_can_be_read():
    for lib in LIBRARIES:
        forward = lib.autograd.forward_ad
        assert forward._current_level == -1
        with forward.dual_level():
            assert forward._current_level == 0
        assert forward._current_level == -1
