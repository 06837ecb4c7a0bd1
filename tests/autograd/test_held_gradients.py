"""A gradient that a program still holds never becomes `.grad` itself: the core counts references, and from 3.14 on an argument in a local variable has one less."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt


def by_backward(leaf, kept):
    given = trt.full((3,), 2.0)
    leaf.backward(given)
    kept.append(given)


def by_list(leaf, kept):
    given = [trt.full((3,), 2.0)]
    trt.autograd.backward([leaf], given)
    kept.append(given[0])


def by_edge(leaf, kept):
    given = trt.full((3,), 2.0)
    (leaf * 1).backward(given)
    kept.append(given)


def by_node(leaf, kept):
    given = trt.full((3,), 2.0)
    node = leaf.view(3).grad_fn.next_functions[0][0]
    node(given)
    kept.append(given)


def by_function(leaf, kept):
    class Keeps(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            held = grad * 2
            kept.append(held)
            return held

    Keeps.apply(leaf).sum().backward()


def by_hook(leaf, kept):
    leaf.register_hook(kept.append)
    (leaf * 2).sum().backward()


def by_result_of_hook(leaf, kept):
    held = trt.full((3,), 2.0)
    leaf.register_hook(lambda grad: held)
    leaf.sum().backward()
    kept.append(held)


@pytest.mark.parametrize("way", [by_backward, by_list, by_edge, by_node, by_function, by_hook, by_result_of_hook])
def test_what_is_held_is_not_the_gradient(way):
    leaf, kept = trt.zeros(3, requires_grad=True), []
    way(leaf, kept)
    assert leaf.grad.tolist() == [2, 2, 2]
    for held in kept:
        held.fill_(7)
    assert kept and leaf.grad.tolist() == [2, 2, 2]
    leaf.grad.fill_(1)
    assert all(held.tolist() == [7, 7, 7] for held in kept)
