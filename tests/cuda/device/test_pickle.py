"""Pickled tensors come back where they were."""

from __future__ import annotations

import pickle

import pytest

import tensorrt_lite as trt


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_tensor_comes_back_on_its_device(protocol):
    x = trt.arange(6.0, device="cuda").reshape(2, 3).requires_grad_()
    back = pickle.loads(pickle.dumps(x, protocol))
    assert (back.device, back.requires_grad, back.is_leaf) == (trt.device("cuda:0"), True, True)
    assert back.tolist() == x.tolist()


def test_views_with_gaps_and_parameters():
    view = trt.arange(12.0, device="cuda").reshape(3, 4)[:, 1:3]
    back = pickle.loads(pickle.dumps(view))
    assert back.is_cuda
    assert back.tolist() == view.tolist()
    parameter = pickle.loads(pickle.dumps(trt.nn.Parameter(trt.ones(2, device="cuda"))))
    assert type(parameter) is trt.nn.Parameter
    assert parameter.device == trt.device("cuda:0")
    assert pickle.loads(pickle.dumps(trt.empty(0, 3, device="cuda"))).device == trt.device("cuda:0")
