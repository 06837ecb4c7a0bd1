"""Views of tensors that require gradients, made in inference mode: they say what PyTorch's say."""

from __future__ import annotations

import pytest
import torch

import tensorrt_lite as trt

VIEWS = {
    "view": lambda x: x.view(1, 2),
    "view of a view": lambda x: x.view(1, 2).view(2),
    "slice": lambda x: x[:1],
    "element": lambda x: x[0],
    "transpose": lambda x: x.t(),
    "expand": lambda x: x.expand(3, 2),
    "unbind": lambda x: x.unbind()[0],
    "split": lambda x: x.split(1)[1],
    "diagonal": lambda x: x.unsqueeze(0).diagonal(),
    "as_strided": lambda x: x.as_strided((1,), (1,)),
    "reshape": lambda x: x.reshape(1, 2),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "clone": lambda x: x.clone(),
    "product": lambda x: x * 2,
    "index": lambda x: x[[0]],
}


def found(library, view, leaf):
    x = library.ones(2, requires_grad=True)
    x = x if leaf else x * 2
    with library.inference_mode():
        v = view(x)
        inside = v.requires_grad, v.is_leaf, v.grad_fn is None, v.is_inference()
    plain = library.ones(2)
    with library.inference_mode():
        w = view(plain)
    return inside, v.requires_grad, w.requires_grad


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_made_in_inference_mode_requires_gradients_where_its_base_does(name, leaf):
    assert found(trt, VIEWS[name], leaf) == found(torch, VIEWS[name], leaf)


def test_a_write_through_such_a_view_names_the_mode_it_was_made_in():
    x = trt.ones(2, requires_grad=True) * 2
    with trt.inference_mode():
        v = x.view(1, 2)
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
        v.add_(1)
