"""Initialisation draws PyTorch's numbers from PyTorch's seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from nn_compare import array, assert_same

import tensorrt_lite as trt

# (function, keyword arguments, shape)
DRAWS = [
    ("uniform_", {}, (5, 7)),
    ("uniform_", {"a": -2.0, "b": 3.0}, (40,)),
    ("normal_", {}, (5, 7)),
    ("normal_", {"mean": 1.0, "std": 0.2}, (3,)),
    ("trunc_normal_", {}, (5, 7)),
    ("trunc_normal_", {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 1.0}, (40,)),
    ("constant_", {"val": 0.3}, (2, 3)),
    ("ones_", {}, (2, 3)),
    ("zeros_", {}, (2, 3)),
    ("eye_", {}, (3, 5)),
    ("dirac_", {}, (6, 4, 3, 3)),
    ("dirac_", {"groups": 2}, (6, 4, 5)),
    ("xavier_uniform_", {}, (5, 7)),
    ("xavier_uniform_", {"gain": 2.0}, (4, 3, 3, 3)),
    ("xavier_normal_", {}, (4, 3, 3)),
    ("kaiming_uniform_", {}, (5, 7)),
    ("kaiming_uniform_", {"a": 0.2, "mode": "fan_out"}, (4, 3, 3, 3)),
    ("kaiming_normal_", {"nonlinearity": "relu"}, (5, 7)),
    ("kaiming_normal_", {"nonlinearity": "tanh", "mode": "fan_out"}, (5, 7)),
    ("orthogonal_", {}, (4, 6)),
    ("orthogonal_", {"gain": 1.5}, (6, 2, 2)),
    ("sparse_", {"sparsity": 0.4}, (7, 3)),
]


@pytest.mark.parametrize(("name", "kwargs", "shape"), DRAWS)
def test_values_agree_for_a_seed(name, kwargs, shape):
    torch.manual_seed(5)
    expected = getattr(torch.nn.init, name)(torch.empty(shape), **kwargs)
    trt.manual_seed(5)
    tensor = trt.empty(shape)
    result = getattr(trt.nn.init, name)(tensor, **kwargs)
    assert result is tensor
    assert_same(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "kwargs", "shape"), DRAWS)
def test_no_gradient_is_recorded(name, kwargs, shape):
    parameter = trt.nn.Parameter(trt.zeros(shape))
    getattr(trt.nn.init, name)(parameter, **kwargs)
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert parameter.grad_fn is None


def test_a_generator_can_be_given():
    generator, reference = trt.Generator(), torch.Generator()
    generator.manual_seed(9)
    reference.manual_seed(9)
    actual = trt.nn.init.kaiming_uniform_(trt.empty(4, 4), generator=generator)
    assert_same(actual, torch.nn.init.kaiming_uniform_(torch.empty(4, 4), generator=reference))


NONLINEARITIES = ["linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_gain(name):
    assert trt.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_gain_of_leaky_relu_depends_on_the_slope():
    assert trt.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda nn, t: nn.init.calculate_gain("cosine"), "Unsupported nonlinearity cosine"),
        (lambda nn, t: nn.init.xavier_uniform_(t), "fewer than 2 dimensions"),
        (lambda nn, t: nn.init.eye_(t), "Only tensors with 2 dimensions are supported"),
        (lambda nn, t: nn.init.kaiming_uniform_(t.view(2, 2), mode="fan"), "Mode fan not supported"),
        (lambda nn, t: nn.init.dirac_(t), "Only tensors with 3, 4, or 5 dimensions are supported"),
    ],
)
def test_wrong_arguments_raise_as_in_pytorch(call, message):
    for nn, tensor in ((torch.nn, torch.zeros(4)), (trt.nn, trt.zeros(4))):
        with pytest.raises(ValueError, match=message):
            call(nn, tensor)


def test_orthogonal_rows_are_orthonormal():
    q = array(trt.nn.init.orthogonal_(trt.empty(4, 9)))
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-5)


def test_zero_element_tensors_warn():
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        trt.nn.init.kaiming_uniform_(trt.empty(0, 3))


def test_names_without_underscore_are_deprecated():
    with pytest.warns(FutureWarning, match="deprecated in favor of"):
        trt.nn.init.uniform(trt.empty(3))


def test_default_weights_of_a_bias_follow_the_fan_in():
    trt.manual_seed(0)
    bias = array(trt.nn.Linear(100, 5000).bias)
    assert np.abs(bias).max() <= 0.1
    assert np.abs(bias).max() > 0.099
