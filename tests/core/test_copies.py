"""copy, deepcopy and pickle of tensors do what PyTorch's do: values, classes, attributes, sharing, messages."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import tensorrt_lite as trt


class Here(trt.Tensor):
    pass


class There(torch.Tensor):
    pass


class HereParameter(trt.nn.Parameter):
    pass


class ThereParameter(torch.nn.Parameter):
    pass


CLASSES = {trt: (Here, HereParameter), torch: (There, ThereParameter)}


def pickled(t):
    return pickle.loads(pickle.dumps(t))


def subjects(m):
    leaf = m.arange(6.0).view(2, 3).requires_grad_()
    leaf.grad = m.ones(2, 3)
    result = leaf * 2
    marked = leaf * 3
    marked.mark = [1]
    subclass, parameter_class = CLASSES[m]
    ours = (leaf * 4).as_subclass(subclass)
    ours.mark = "s"
    parameter = m.nn.Parameter(m.ones(2))
    parameter.mark = 5
    return {
        "leaf": leaf, "result": result, "view": result[1:].t(), "marked": marked, "subclass": ours, "parameter": parameter,
        "frozen": m.nn.Parameter(m.ones(2), False), "own parameter": parameter_class(m.ones(2)), "integers": m.arange(3), "detached": result.detach(),
        "meta": m.empty(2, 3, device="meta"), "empty": m.zeros(0, 3),
    }  # fmt: skip


def described(way, t):
    """What came of it, by things that both libraries have."""
    try:
        r = way(t)
    except RuntimeError as error:
        return str(error)
    kind = type(r).__name__.replace("There", "Here")
    values = None if r.device.type == "meta" else r.tolist()
    shares = r.device.type != "meta" and r.numel() > 0 and r.data_ptr() == t.data_ptr()
    return kind, values, tuple(r.shape), r.stride(), str(r.dtype), r.requires_grad, r.grad is None if t.is_leaf else None, shares, dict(r.__dict__)


@pytest.mark.parametrize("name", subjects(trt))
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled])
def test_copies_are_pytorchs(name, way):
    assert described(way, subjects(trt)[name]) == described(way, subjects(torch)[name])


def test_a_copy_shares_memory_and_has_its_own_version():
    y = trt.ones(3, requires_grad=True) * 2
    r = copy.copy(y)
    with trt.no_grad():
        r[0] = 7
    assert y.tolist() == [7, 2, 2]
    assert y._version == 0
    assert r.is_leaf
    y.mark = []
    assert copy.copy(y).mark is y.mark


def test_hooks_are_named_when_they_are_left_behind():
    def messages(m):
        x = m.ones(2, requires_grad=True)
        x.register_hook(messages)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            copy.copy(x), pickle.dumps(x)
        return [str(w.message) for w in caught]

    assert messages(trt) == messages(torch)
    assert len(messages(trt)) == 2


def test_a_pickle_holds_the_elements_of_a_view_alone():
    assert len(pickle.dumps(trt.zeros(100_000)[5:8])) < 1000


@pytest.mark.parametrize("convert", [np.asarray, np.array, lambda t: t.numpy(), lambda t: np.array([t, t]), lambda t: np.asarray(copy.copy(t))])
def test_conversion_to_numpy_names_detach(convert):
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead"):
        convert(trt.ones(2, requires_grad=True) * 2)


def test_tensors_that_share_memory_share_its_copy() -> None:
    a = trt.arange(6.0)
    whole, part = copy.deepcopy([a, a[2:]])
    part.zero_()
    assert whole.tolist() == [0, 1, 0, 0, 0, 0] and a.tolist() == [0, 1, 2, 3, 4, 5]
    strided = copy.deepcopy(trt.arange(10.0)[1::2])
    assert strided.stride() == (2,) and strided.storage_offset() == 1 and strided.tolist() == [1, 3, 5, 7, 9]
    tagged = trt.ones(2)
    tagged.tag = ["x"]
    copied = copy.deepcopy(tagged)
    assert copied.tag == ["x"] and copied.tag is not tagged.tag
    empty, twin = copy.deepcopy([trt.empty(0), trt.empty(0)])
    assert empty.shape == twin.shape == (0,)


def test_conversion_to_numpy_without_gradients():
    """Under no_grad nothing could be lost, so nothing is refused; the array shares the memory."""
    parameter = trt.nn.Parameter(trt.ones(3))
    with trt.no_grad():
        parameter.numpy()[0] = 5
        assert parameter.__array__().tolist() == parameter.view(-1).numpy().tolist() == [5, 1, 1]
