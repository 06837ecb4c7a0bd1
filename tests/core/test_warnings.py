"""Warnings that PyTorch gives: their text, how often they come, and the line that they point to."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tensorrt_lite as trt
from tensorrt_lite import nn

F = nn.functional


@pytest.fixture
def always():
    trt.set_warn_always(True)
    yield
    trt.set_warn_always(False)


def given(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return found


def complex_ones():
    return trt.ones(2, dtype=trt.complex64)


def leaf():
    return trt.ones(2, requires_grad=True)


_TEXTS = {
    "degrees": "degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel).",
    "imaginary": "Casting complex values to real discards the imaginary part",
    "cycle": "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient",
    "meshgrid": "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
    "T": "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated",
    "identity": "is deprecated on 0-D tensors. This function is the identity in these cases.",
    "conj": "is deprecated on 0-D tensors. Consider using x.conj().",
    "same": "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created",
    "arrays": "Creating a tensor from a list of numpy.ndarrays is extremely slow.",
    "resized": "An output with one or more elements was resized since it had shape [3]",
    "copy construct": "To copy construct from a tensor",
    "grad": "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
    "norm_first": "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.norm_first was True",
    "batch_first": "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.self_attn.batch_first was not True"
    "(use batch_first for better inference performance)",
    "odd": "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.self_attn.num_heads is odd",
    "bias": "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.self_attn was passed bias=False",
}


def encoder(width=4, heads=2, nested=True, **rest):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, 8, **rest), 1, enable_nested_tensor=nested)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("degrees", lambda: trt.ones(1).var()),
        ("degrees", lambda: trt.ones(3, 1).std(1)),
        ("degrees", lambda: trt.ones(0).var(correction=0)),
        ("degrees", lambda: trt.std_mean(trt.ones(3, 2), 1, correction=2)),
        ("degrees", lambda: trt.var(trt.ones(1), 0, out=trt.ones(()))),
        ("imaginary", lambda: complex_ones().float()),
        ("imaginary", lambda: complex_ones().to(trt.int32)),
        ("imaginary", lambda: trt.ones(2).copy_(complex_ones())),
        ("cycle", lambda: leaf().sum().backward(create_graph=True)),
        ("cycle", lambda: trt.autograd.backward(leaf().sum(), create_graph=True)),
        ("meshgrid", lambda: trt.meshgrid(trt.ones(2), trt.ones(3))),
        ("T", lambda: trt.ones(1, 2, 3).T),
        ("T", lambda: trt.ones(3).T),
        ("identity", lambda: trt.ones(()).T),
        ("identity", lambda: trt.ones(()).mT),
        ("conj", lambda: trt.ones(()).H),
        ("conj", lambda: trt.ones(()).mH),
        ("same", lambda: F.conv1d(trt.ones(1, 1, 5), trt.ones(1, 1, 2), padding="same")),
        ("same", lambda: nn.Conv2d(1, 1, (3, 4), padding="same", dilation=3)(trt.ones(1, 1, 9, 9))),
        ("arrays", lambda: trt.tensor([np.ones(2)])),
        ("arrays", lambda: trt.as_tensor([[1.0, 2.0], np.ones(2)])),
        ("resized", lambda: trt.add(trt.ones(2), 1, out=trt.ones(3))),
        ("copy construct", lambda: trt.tensor(trt.ones(1))),
        ("grad", lambda: (leaf() * 2).grad),
        ("norm_first", lambda: encoder(norm_first=True)),
        ("batch_first", lambda: nn.Transformer(4, 2, 1, 1, 8)),
        ("odd", lambda: encoder(3, 3, batch_first=True)),
        ("bias", lambda: encoder(batch_first=True, bias=False)),
    ],
)
def test_a_warning_is_pytorchs_and_points_to_the_users_line(always, text, function):
    (found,) = given(function)
    assert found.category is UserWarning and _TEXTS[text] in str(found.message)
    assert found.filename == __file__ and found.lineno in (function.__code__.co_firstlineno, encoder.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda: (trt.ones(2).var(), trt.ones(1).var(correction=0), trt.ones(1, device="meta").var()),
        lambda: (complex_ones().bool(), complex_ones()[:0].float(), complex_ones().to(trt.complex128), trt.ones(2).cfloat()),
        lambda: trt.autograd.grad(leaf().sum(), leaf(), create_graph=True, allow_unused=True),
        lambda: trt.meshgrid(trt.ones(2), trt.ones(3), indexing="ij"),
        lambda: trt.cartesian_prod(trt.ones(2), trt.ones(3)),
        lambda: (trt.ones(2, 3).T, trt.ones(2, 3, 4).mT),
        lambda: F.conv1d(trt.ones(1, 1, 5), trt.ones(1, 1, 2), padding="same", dilation=2),
        lambda: F.conv1d(trt.ones(1, 1, 5), trt.ones(1, 1, 3), padding="same"),
        lambda: (trt.tensor([np.float32(1)]), trt.tensor(np.ones(2)), trt.tensor([np.array(1.0)])),
        lambda: (encoder(batch_first=True), encoder(nested=False)),
        lambda: F.batch_norm(trt.ones(2, 3), trt.ones(3), trt.ones(3), training=True),
    ],
)
def test_what_pytorch_does_without_a_warning_gives_none(always, function):
    assert given(function) == []


def test_some_warnings_come_once_in_a_process_and_those_of_var_each_time():
    program = (
        "import warnings, tensorrt_lite as trt\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    for i in range(2):\n"
        "        trt.ones(1).var(), trt.meshgrid(trt.ones(1)), trt.ones(3).T, trt.ones(1, dtype=trt.complex64).float()\n"
        "print(len(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.split() == ["5"]
