"""MaskedTensor beside PyTorch's: values under the mask, the mask, gradients, printing, refusals."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tensorrt_lite as trt  # noqa: E402

MASK = [[True, False, True], [False, False, False]]
DATA = [[0.25, 1.5, -0.5], [0.75, -2.0, 3.0]]

SAME = [
    "x.sin()", "x.exp().log()", "x.abs()", "x.clamp(0, 1)", "x.round()", "x.isnan()", "-x", "x ** 2", "x.pow(3)", "x + 2", "x * x", "x / 3", "x - x", "x + d", "d + x",
    "x.maximum(x)", "x < 1", "x == x", "x.logaddexp(x)", "x.atan2(x)", "x.sum()", "x.sum(1)", "x.sum(1, keepdim=True)", "x.sum(dim=0)", "x.mean(1)", "x.mean()",
    "x.prod()", "x.amax()", "x.amax(1)", "x.amin(0)", "x.argmax()", "x.argmin(1)", "x.var(1)", "x.std()", "(x > 0).all()", "(x > 0).all(1)", "x.t()", "x.transpose(0, 1)",
    "x[0]", "x[:, 1:]", "x.select(1, 2)", "x.reshape(3, 2)", "x.view(6)", "x.flatten()", "x.unsqueeze(1)", "x.expand(2, 2, 3)", "x.split(1)[1]", "x.chunk(3, 1)[2]",
    "torch.cat([x, x], 1)", "torch.stack([x, x])", "x.softmax(1)", "torch.where(w, x, x)", "torch.where(w, d, x)", "torch.ones_like(x)", "x.clone()", "x.contiguous()",
    "x.detach()", "x.to(torch.float64)", "x.half().float()", "x.detach().sin_()",
]  # fmt: skip
DIFFERENTIABLE = [
    "(x * x).sum()",
    "x.sin().mean()",
    "x.amax()",
    "x.prod()",
    "(x.softmax(1) * x).sum()",
    "x.t().sum(0).sum()",
    "x.std()",
    "(x + d).sum()",
    "x[0].sum()",
]


def build(module, requires_grad=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = module.tensor(DATA)
        return module.masked.masked_tensor(data, module.tensor(MASK), requires_grad), data


def run(module, text, requires_grad=False):
    x, d = build(module, requires_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x, eval(text, {"torch": module, "x": x, "d": d, "w": module.tensor([[True, True, False], [False, True, False]])})


@pytest.mark.parametrize("text", SAME)
def test_operators_equal_pytorch(text):
    expected, actual = run(torch, text)[1], run(trt, text)[1]
    assert trt.masked.is_masked_tensor(actual)
    assert actual.get_mask().tolist() == expected.get_mask().tolist()
    assert str(actual.dtype).rpartition(".")[2] == str(expected.dtype).rpartition(".")[2]
    np.testing.assert_allclose(np.asarray(actual.to_tensor(0).tolist()), np.asarray(expected.to_tensor(0).tolist()), rtol=1e-6)


@pytest.mark.parametrize("text", DIFFERENTIABLE)
def test_gradients_equal_pytorch(text):
    (theirs, loss), (ours, our_loss) = run(torch, text, True), run(trt, text, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss.backward()
    our_loss.backward()
    assert trt.masked.is_masked_tensor(ours.grad) and ours.grad.get_mask().tolist() == MASK
    np.testing.assert_allclose(ours.grad.to_tensor(0).tolist(), theirs.grad.to_tensor(0).tolist(), rtol=1e-6)
    x, again = run(trt, text, True)
    (grad,) = trt.autograd.grad(again, x)
    assert grad.to_tensor(0).tolist() == ours.grad.to_tensor(0).tolist()


def test_gradients_flow_back_to_the_data_of_as_masked_tensor():
    data = trt.tensor(DATA, requires_grad=True)
    trt.masked.as_masked_tensor(data, trt.tensor(MASK)).sum().get_data().backward()
    assert data.grad.tolist() == [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("text", ["x", "x[0]", "x[0, 0]", "x[0, 1]", "x > 0", "x.unsqueeze(0)", "(x * 10).long()"])
def test_printing_equals_pytorch(text):
    assert repr(run(trt, text)[1]) == repr(run(torch, text)[1])


def test_gradients_at_masked_out_slots_are_zero():
    mask = trt.tensor([True, False])
    x = trt.tensor([1.0, 0.0], requires_grad=True)
    trt.masked.as_masked_tensor(x, mask).sqrt().sum().backward()  # the derivative at 0 is infinite
    assert x.grad.tolist() == [0.5, 0.0]
    x, w, scale = (trt.tensor(v, requires_grad=True) for v in ([1.0, float("nan")], [2.0, 3.0], [4.0]))
    (trt.masked.as_masked_tensor(x, mask) * w * scale).sum().backward()  # of dense operands, too, broadcast ones among them
    assert (x.grad.tolist(), w.grad.tolist(), scale.grad.tolist()) == ([8.0, 0.0], [4.0, 0.0], [2.0])
    scale.grad = None
    written = trt.masked.as_masked_tensor(trt.tensor([1.0, float("nan")]), mask)
    written *= scale
    written.sqrt().sum().backward()
    assert scale.grad.tolist() == [0.25]
    per_sample = trt.func.vmap(trt.func.grad(lambda row: trt.masked.as_masked_tensor(row, mask).sqrt().sum().get_data()))
    assert per_sample(trt.tensor([[1.0, 0.0], [4.0, 0.0]])).tolist() == [[0.5, 0.0], [0.25, 0.0]]


def test_refusals():
    x, d = build(trt)
    mask = trt.tensor(MASK)
    with pytest.raises(ValueError, match="masks must match"):
        x + trt.masked.masked_tensor(d, ~mask)
    with pytest.raises(TypeError, match="dtype bool"):
        trt.masked.masked_tensor(d, mask.int())
    with pytest.raises(ValueError, match="dim"):
        trt.masked.masked_tensor(d, mask[0])
    with pytest.raises(ValueError, match="size"):
        trt.masked.masked_tensor(d, mask.t())
    with pytest.raises(TypeError, match="not supported"):
        trt.masked.masked_tensor(d.to(trt.complex64), mask)
    with pytest.raises(TypeError, match="must be a Tensor"):
        trt.masked.masked_tensor(DATA, mask)
    with pytest.raises(NotImplementedError, match="matmul"):
        x @ x.t()
    with pytest.raises(ValueError, match="masked out"):
        x[0, 1].item()
    assert x[0, 0].item() == 0.25
    with pytest.raises(NotImplementedError, match="masked tensors"), trt._C.DisableTorchFunctionSubclass():
        trt.add(x, 1)


def test_copies_keep_data_mask_and_leaf():
    x, _ = build(trt, True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad and other.is_leaf and other is not x
        assert other.get_mask().tolist() == MASK and other.to_tensor(0).tolist() == x.to_tensor(0).tolist()
    assert x.shape == (2, 3) and x.numel() == 6 and x.dim() == 2 and len(x) == 2 and x.size(1) == 3
