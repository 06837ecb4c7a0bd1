"""RemovableHandle: one class, whatever the hook belongs to."""

from __future__ import annotations

import copy

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite.utils.hooks import RemovableHandle


def handles() -> list[RemovableHandle]:
    x = trt.ones(2, requires_grad=True)
    y = x * 2
    layer = nn.Linear(2, 2)
    optimizer = trt.optim.SGD(layer.parameters(), lr=0.1)
    nothing = lambda *args: None
    return [
        x.register_hook(nothing),
        x.register_post_accumulate_grad_hook(nothing),
        y.grad_fn.register_hook(nothing),
        y.grad_fn.register_prehook(nothing),
        layer.register_forward_hook(nothing, with_kwargs=True),
        layer.register_state_dict_pre_hook(nothing),
        optimizer.register_step_pre_hook(nothing),
    ]


def test_every_registration_returns_the_class():
    assert all(type(h) is RemovableHandle for h in handles())
    assert trt.autograd.graph.RemovableHandle is RemovableHandle


def test_a_handle_removes_once_and_outlives_its_owner():
    for handle in handles():  # the owners are gone
        handle.remove()
        handle.remove()


def test_a_handle_removes_its_own_hook():
    seen = []
    layer = nn.ReLU()
    first = layer.register_forward_hook(lambda *args: seen.append("first"))
    with layer.register_forward_hook(lambda *args: seen.append("second")) as second:
        assert second.id > first.id
        layer(trt.ones(1))
    layer(trt.ones(1))
    assert seen == ["first", "second", "first"]

    x = trt.ones(1, requires_grad=True)
    hook = lambda grad: seen.append("gradient")
    one, two = x.register_hook(hook), x.register_hook(hook)
    one.remove()
    one.remove()
    x.sum().backward()
    two.remove()
    x.sum().backward()
    assert seen[3:] == ["gradient"]


def test_a_copied_module_has_handles_of_its_own():
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.handle = self.register_forward_hook(Watched.count)

        def count(self, *args):
            self.calls += 1

        def forward(self, x):
            return x

    original = Watched()
    copied = copy.deepcopy(original)
    copied.handle.remove()
    original(trt.ones(1))
    copied(trt.ones(1))
    assert (original.calls, copied.calls) == (1, 0)


def test_a_handle_is_made_of_a_table():
    from collections import OrderedDict

    table, extra = OrderedDict(), {}
    handle = RemovableHandle(table, extra_dict=extra)
    table[handle.id] = extra[handle.id] = print
    handle.remove()
    assert not table and not extra
    with pytest.raises(TypeError):
        RemovableHandle({})  # a plain dict cannot be held weakly
