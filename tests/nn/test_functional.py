"""nn.functional: what no layer covers, and that every public name of PyTorch's operators is here."""

from __future__ import annotations

import inspect

import pytest
import torch
from nn_compare import assert_same, copy_state, loss_of, ours, theirs

import tensorrt_lite as trt

# Private helpers, typing names, and the scaled matrix products and fused linear loss of accelerators.
ABSENT = {
    "Callable",
    "DType",
    "Optional",
    "ScalingType",
    "SwizzleType",
    "Tensor",
    "assert_int_or_pair",
    "boolean_dispatch",
    "grouped_mm",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "linear_cross_entropy",
    "scaled_grouped_mm",
    "scaled_mm",
}
PUBLIC = sorted(
    name
    for name, value in vars(torch.nn.functional).items()
    if callable(value) and not name.startswith("_") and name not in ABSENT
)


@pytest.mark.parametrize("name", PUBLIC)
def test_name_exists_with_pytorchs_arguments(name):
    function = getattr(trt.nn.functional, name)
    assert callable(function)
    reference = getattr(torch.nn.functional, name)
    try:
        expected = inspect.signature(reference)
        actual = inspect.signature(function)
    except ValueError:
        return  # A compiled operator on either side states its arguments in its schema.
    if "args" in expected.parameters or "args" in actual.parameters:
        return
    assert list(actual.parameters) == list(expected.parameters)
    for key, parameter in expected.parameters.items():
        assert actual.parameters[key].default == parameter.default, key


CASES = {
    "normalize": lambda F, x: F.normalize(x[0], p=3.0, dim=-1),
    "pdist": lambda F, x: F.pdist(x[0]),
    "cosine_similarity broadcasts": lambda F, x: F.cosine_similarity(x[0].unsqueeze(1), x[1].unsqueeze(0), dim=-1),
    "pairwise_distance": lambda F, x: F.pairwise_distance(x[0], x[1], p=float("inf")),
    "affine_grid": lambda F, x: F.affine_grid(x[2], (2, 1, 4, 5), align_corners=False),
    "affine_grid aligned": lambda F, x: F.affine_grid(x[2], (2, 1, 4, 5), align_corners=True),
    "affine_grid 3d": lambda F, x: F.affine_grid(x[3], (2, 1, 3, 4, 5), align_corners=False),
    "grid_sample": lambda F, x: F.grid_sample(x[4], x[5].tanh(), align_corners=False),
    "grid_sample nearest": lambda F, x: F.grid_sample(x[4], x[5], "nearest", "border", align_corners=True),
    "grid_sample bicubic": lambda F, x: F.grid_sample(x[4], x[5], "bicubic", "reflection", align_corners=False),
    "interpolate antialias": lambda F, x: F.interpolate(x[4], size=(3, 2), mode="bilinear", antialias=True),
    "interpolate recomputed": lambda F, x: F.interpolate(
        x[4], scale_factor=1.3, mode="bilinear", recompute_scale_factor=True
    ),
    "scaled_dot_product_attention": lambda F, x: F.scaled_dot_product_attention(x[4], x[4], x[4], is_causal=True),
    "log_softmax dtype": lambda F, x: F.log_softmax(x[0], 1, dtype=x[0].double().dtype),
    "pad negative": lambda F, x: F.pad(x[4], (-1, 2), value=3.0),
}


@pytest.mark.parametrize("call", CASES.values(), ids=CASES)
def test_function_agrees_with_pytorch(call):
    torch.manual_seed(4)
    shapes = [(5, 6), (5, 6), (2, 2, 3), (2, 3, 4), (2, 3, 6, 5), (2, 4, 3, 2)]
    drawn = [torch.randn(shape) for shape in shapes]
    x, y = ours(drawn, requires_grad=True), theirs(drawn, requires_grad=True)
    actual, expected = call(trt.nn.functional, x), call(torch.nn.functional, y)
    assert_same(actual, expected, what="output")
    loss_of(actual).backward()
    loss_of(expected).backward()
    for position, (a, e) in enumerate(zip(x, y, strict=True)):
        assert_same(a.grad, e.grad, rtol=1e-3, atol=1e-4, what=f"gradient of input {position}")


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_draws_pytorchs_noise(hard):
    logits = torch.randn(4, 6)
    torch.manual_seed(2)
    expected = torch.nn.functional.gumbel_softmax(logits, tau=0.7, hard=hard)
    trt.manual_seed(2)
    assert_same(trt.nn.functional.gumbel_softmax(ours(logits), tau=0.7, hard=hard), expected)


def test_one_hot():
    labels = torch.tensor([[0, 3], [2, 1]])
    assert_same(trt.nn.functional.one_hot(ours(labels), 5), torch.nn.functional.one_hot(labels, 5))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_loss(reduction):
    torch.manual_seed(0)
    log_probs = torch.randn(12, 3, 5).log_softmax(2)
    targets = torch.randint(1, 5, (3, 4))
    lengths = (torch.tensor([12, 10, 9]), torch.tensor([4, 3, 2]))
    x, y = ours(log_probs, requires_grad=True), theirs(log_probs, requires_grad=True)
    actual = trt.nn.CTCLoss(reduction=reduction)(x, ours(targets), *ours(lengths))
    expected = torch.nn.CTCLoss(reduction=reduction)(y, targets, *lengths)
    assert_same(actual, expected)
    loss_of(actual).backward()
    loss_of(expected).backward()
    assert_same(x.grad, y.grad)


def test_adaptive_log_softmax():
    torch.manual_seed(0)
    reference = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 12], div_value=2.0, head_bias=True)
    layer = trt.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 12], div_value=2.0, head_bias=True)
    assert repr(layer) == repr(reference)
    copy_state(layer, reference)
    values, labels = torch.randn(9, 16), torch.tensor([0, 3, 4, 5, 11, 12, 19, 7, 1])
    x, y = ours(values, requires_grad=True), theirs(values, requires_grad=True)
    actual, expected = layer(x, ours(labels)), reference(y, labels)
    assert_same(actual.output, expected.output)
    assert_same(actual.loss, expected.loss)
    actual.loss.backward()
    expected.loss.backward()
    assert_same(x.grad, y.grad)
    for (name, a), (_, e) in zip(layer.named_parameters(), reference.named_parameters(), strict=True):
        assert_same(a.grad, e.grad, what=name)
    assert_same(layer.log_prob(ours(values)), reference.log_prob(values))
    assert_same(layer.predict(ours(values)), reference.predict(values))
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 19\]"):
        layer(x, ours(labels + 5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda F, z: F.interpolate(z, size=2, scale_factor=2), ValueError, "only one of size or scale_factor"),
        (lambda F, z: F.interpolate(z), ValueError, "either size or scale_factor should be defined"),
        (lambda F, z: F.interpolate(z, size=2, mode="linear"), NotImplementedError, "Got 4D input, but linear mode"),
        (lambda F, z: F.interpolate(z, size=2, align_corners=True), ValueError, "align_corners option can only be set"),
        (lambda F, z: F.dropout(z, 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda F, z: F.pixel_shuffle(z, 3), RuntimeError, "divisible by the square of upscale_factor"),
        (lambda F, z: F.grid_sample(z, z, mode="cubic"), ValueError, "expected mode to be 'bilinear'"),
        (lambda F, z: F.adaptive_avg_pool2d(z[0, 0], (1, 1)), ValueError, "Input dimension should be at least 3"),
        (lambda F, z: F.hardtanh(z, 1, -1), ValueError, "min_val cannot be greater than max_val"),
        (lambda F, z: F.no_such_function, AttributeError, "has no attribute 'no_such_function'"),
    ],
)
def test_wrong_arguments_raise_as_in_pytorch(call, error, message):
    for functional, zeros in (
        (torch.nn.functional, torch.zeros(2, 4, 6, 6)),
        (trt.nn.functional, trt.zeros(2, 4, 6, 6)),
    ):
        with pytest.raises(error, match=message):
            call(functional, zeros)


def test_softmax_without_a_dimension_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        trt.nn.functional.softmax(trt.zeros(2, 3))
