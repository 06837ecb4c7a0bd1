"""Every loss agrees with PyTorch's in value and gradient, for every reduction."""

from __future__ import annotations

import pytest
import torch
from nn_compare import assert_same, loss_of, ours, theirs

import tensorrt_lite as trt


def scores():
    return torch.randn(5, 4)


def probabilities():
    return torch.rand(5, 4) * 0.9 + 0.05


def classes():
    return torch.tensor([0, 3, 1, 1, 2])


def signs(*shape):
    return torch.randint(0, 2, shape) * 2 - 1


CLASS_WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 0.25])

# (class, keyword arguments, inputs)
LOSSES = [
    ("L1Loss", {}, lambda: [scores(), scores()]),
    ("MSELoss", {}, lambda: [scores(), scores()]),
    ("SmoothL1Loss", {}, lambda: [scores(), scores()]),
    ("SmoothL1Loss", {"beta": 0.3}, lambda: [scores(), scores()]),
    ("SmoothL1Loss", {"beta": 0.0}, lambda: [scores(), scores()]),
    ("HuberLoss", {"delta": 0.4}, lambda: [scores(), scores()]),
    ("CrossEntropyLoss", {}, lambda: [scores(), classes()]),
    ("CrossEntropyLoss", {"weight": CLASS_WEIGHTS, "label_smoothing": 0.1}, lambda: [scores(), classes()]),
    ("CrossEntropyLoss", {"ignore_index": 1}, lambda: [scores(), classes()]),
    ("CrossEntropyLoss", {}, lambda: [scores(), scores().softmax(1)]),
    ("CrossEntropyLoss", {"weight": CLASS_WEIGHTS}, lambda: [scores(), scores().softmax(1)]),
    ("CrossEntropyLoss", {}, lambda: [torch.randn(2, 4, 3, 5), torch.randint(4, (2, 3, 5))]),
    ("CrossEntropyLoss", {}, lambda: [torch.randn(4), torch.tensor(2)]),
    ("NLLLoss", {}, lambda: [scores().log_softmax(1), classes()]),
    ("NLLLoss", {"weight": CLASS_WEIGHTS, "ignore_index": 3}, lambda: [scores().log_softmax(1), classes()]),
    ("NLLLoss", {}, lambda: [torch.randn(2, 4, 3, 5).log_softmax(1), torch.randint(4, (2, 3, 5))]),
    ("BCELoss", {}, lambda: [probabilities(), probabilities().round()]),
    ("BCELoss", {"weight": CLASS_WEIGHTS}, lambda: [probabilities(), probabilities()]),
    ("BCEWithLogitsLoss", {}, lambda: [scores() * 20, probabilities().round()]),
    ("BCEWithLogitsLoss", {"weight": CLASS_WEIGHTS, "pos_weight": CLASS_WEIGHTS}, lambda: [scores(), probabilities()]),
    ("KLDivLoss", {}, lambda: [scores().log_softmax(1), scores().softmax(1)]),
    ("KLDivLoss", {"log_target": True}, lambda: [scores().log_softmax(1), scores().log_softmax(1)]),
    ("PoissonNLLLoss", {}, lambda: [scores(), torch.randint(0, 6, (5, 4)).float()]),
    ("PoissonNLLLoss", {"log_input": False}, lambda: [probabilities(), torch.randint(0, 6, (5, 4)).float()]),
    ("PoissonNLLLoss", {"full": True}, lambda: [scores(), torch.randint(2, 6, (5, 4)).float()]),
    ("GaussianNLLLoss", {}, lambda: [scores(), scores(), probabilities()]),
    ("GaussianNLLLoss", {"full": True, "eps": 0.5}, lambda: [scores(), scores(), torch.rand(5, 1)]),
    ("GaussianNLLLoss", {}, lambda: [scores(), scores(), torch.rand(5)]),
    ("SoftMarginLoss", {}, lambda: [scores(), signs(5, 4)]),
    ("HingeEmbeddingLoss", {"margin": 0.7}, lambda: [scores(), signs(5, 4)]),
    ("MarginRankingLoss", {"margin": 0.2}, lambda: [torch.randn(6), torch.randn(6), signs(6)]),
    ("CosineEmbeddingLoss", {"margin": 0.1}, lambda: [scores(), scores(), signs(5)]),
    ("CosineEmbeddingLoss", {}, lambda: [torch.randn(4), torch.randn(4), torch.tensor(-1)]),
    ("MultiLabelMarginLoss", {}, lambda: [torch.randn(2, 4), torch.tensor([[3, 0, -1, 1], [2, -1, -1, -1]])]),
    ("MultiLabelMarginLoss", {}, lambda: [torch.randn(4), torch.tensor([1, 2, -1, 0])]),
    ("MultiLabelSoftMarginLoss", {"weight": CLASS_WEIGHTS}, lambda: [scores(), probabilities().round()]),
    ("MultiMarginLoss", {}, lambda: [scores(), classes()]),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5, "weight": CLASS_WEIGHTS}, lambda: [scores(), classes()]),
    ("TripletMarginLoss", {}, lambda: [scores(), scores(), scores()]),
    ("TripletMarginLoss", {"swap": True, "p": 1.0, "margin": 2.0}, lambda: [scores(), scores(), scores()]),
    ("TripletMarginWithDistanceLoss", {"swap": True}, lambda: [scores(), scores(), scores()]),
]


def label(entry):
    return f"{entry[0]}({','.join(entry[1])})"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("entry", LOSSES, ids=[label(entry) for entry in LOSSES])
def test_loss_agrees_with_pytorch(entry, reduction):
    name, kwargs, draw = entry
    torch.manual_seed(11)
    drawn = draw()
    reference = getattr(torch.nn, name)(reduction=reduction, **kwargs)
    loss = getattr(trt.nn, name)(reduction=reduction, **{key: ours(value) for key, value in kwargs.items()})
    assert repr(loss) == repr(reference)
    assert list(loss.state_dict()) == list(reference.state_dict())
    x, y = ours(drawn, requires_grad=True), theirs(drawn, requires_grad=True)
    actual, expected = loss(*x), reference(*y)
    assert_same(actual, expected, what="loss")
    loss_of(actual).backward()
    loss_of(expected).backward()
    for position, (a, e) in enumerate(zip(x, y, strict=True)):
        assert_same(a.grad, e.grad, what=f"gradient of input {position}")


def test_kl_div_batchmean_divides_by_the_batch():
    torch.manual_seed(0)
    log_p, q = scores().log_softmax(1), scores().softmax(1)
    actual = trt.nn.KLDivLoss(reduction="batchmean")(ours(log_p), ours(q))
    assert_same(actual, torch.nn.KLDivLoss(reduction="batchmean")(log_p, q))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_elementwise_loss_weights(name, reduction):
    torch.manual_seed(0)
    drawn = [scores(), scores()]
    weight = probabilities()
    actual = getattr(trt.nn.functional, name)(*ours(drawn), reduction=reduction, weight=ours(weight))
    assert_same(actual, getattr(torch.nn.functional, name)(*drawn, reduction=reduction, weight=weight))


@pytest.mark.parametrize(
    ("flags", "expected"), [((True, None), "mean"), ((False, True), "sum"), ((None, False), "none")]
)
def test_deprecated_flags_choose_the_reduction(flags, expected):
    with pytest.warns(UserWarning, match=f"please use reduction='{expected}' instead"):
        loss = trt.nn.MSELoss(*flags)
    assert loss.reduction == expected


def test_a_target_of_another_size_warns():
    with pytest.warns(UserWarning, match="Using a target size"):
        trt.nn.functional.mse_loss(trt.zeros(3, 1), trt.zeros(3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda F, z: F.mse_loss(z, z, reduction="average"), ValueError, "average is not a valid value for reduction"),
        (lambda F, z: F.binary_cross_entropy(z, z[:, :1]), ValueError, "Using a target size"),
        (lambda F, z: F.binary_cross_entropy_with_logits(z, z[:1]), ValueError, "must be the same as input size"),
        (lambda F, z: F.margin_ranking_loss(z, z, z[0]), RuntimeError, "margin_ranking_loss"),
        (lambda F, z: F.gaussian_nll_loss(z, z, z - 1), ValueError, "var has negative entry/entries"),
        (lambda F, z: F.triplet_margin_loss(z, z, z, margin=-1), ValueError, "margin must be greater than 0"),
    ],
)
def test_wrong_arguments_raise_as_in_pytorch(call, error, message):
    for functional, zeros in ((torch.nn.functional, torch.zeros(3, 4)), (trt.nn.functional, trt.zeros(3, 4))):
        with pytest.raises(error, match=message):
            call(functional, zeros)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("shape", "target"), [((), ()), ((), (1,)), ((5,), ()), ((5,), (1,)), ((1, 5), (1,)), ((3, 5), (3,)), ((3, 1), (3,))])
def test_multi_margin_loss_of_any_dimension(shape, target, reduction):
    torch.manual_seed(0)
    x, y, weight = torch.randn(shape), torch.randint(0, shape[-1] if shape else 1, target), torch.rand(shape[-1] if shape else 1)
    for options in ({}, {"p": 2, "margin": 0.3}, {"weight": weight}):
        expected = torch.nn.functional.multi_margin_loss(x, y, reduction=reduction, **options)
        assert_same(trt.nn.functional.multi_margin_loss(ours(x), ours(y), reduction=reduction, **{k: ours(v) for k, v in options.items()}), expected)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("shape", "target"), [((), ()), ((), (1,)), ((5,), (5,)), ((1, 5), (1, 5)), ((3, 5), (3, 5))])
def test_multilabel_margin_loss_of_any_dimension(shape, target, reduction):
    torch.manual_seed(0)
    x, y = torch.randn(shape), torch.randint(-1, shape[-1] if shape else 1, target)
    expected = torch.nn.functional.multilabel_margin_loss(x, y, reduction=reduction)
    assert_same(trt.nn.functional.multilabel_margin_loss(ours(x), ours(y), reduction=reduction), expected)


MARGIN_ERRORS = [
    lambda F, m: F.multi_margin_loss(m.zeros(5, 4), m.zeros(5), reduction="abc"),
    lambda F, m: F.multi_margin_loss(m.zeros(5, 4), m.zeros(5, dtype=m.int64), p=3),
    lambda F, m: F.multi_margin_loss(m.zeros(5, 4), m.zeros(4, dtype=m.int64)),
    lambda F, m: F.multi_margin_loss(m.zeros(5, 4), m.zeros(5, 4, dtype=m.int64)),
    lambda F, m: F.multi_margin_loss(m.zeros(5, 4), m.zeros(5, dtype=m.int64), weight=m.zeros(3)),
    lambda F, m: F.multi_margin_loss(m.zeros(5, 0), m.zeros(5, dtype=m.int64)),
    lambda F, m: F.multi_margin_loss(m.zeros(0), m.zeros(0, dtype=m.int64)),
    lambda F, m: F.multilabel_margin_loss(m.zeros(5, 4), m.zeros(5, 4), reduction="abc"),
    lambda F, m: F.multilabel_margin_loss(m.zeros(5, 4), m.zeros(4, dtype=m.int64)),
    lambda F, m: F.multilabel_margin_loss(m.zeros(4), m.zeros(1, 4, dtype=m.int64)),
    lambda F, m: F.multilabel_margin_loss(m.zeros(0), m.zeros(0)),
    lambda F, m: F.rrelu(m.ones(2), 0.3, 0.1),
    lambda F, m: F.rrelu(m.ones(2), 0.3, 0.1, True),
]


@pytest.mark.parametrize("call", MARGIN_ERRORS)
def test_margins_raise_pytorchs_types(call):
    with pytest.raises((RuntimeError, ValueError)) as expected:
        call(torch.nn.functional, torch)
    with pytest.raises(expected.type):
        call(trt.nn.functional, trt)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("value", [255.0, -0.5, 2.0, float("nan")])
def test_binary_cross_entropy_checks_the_range_of_targets(dtype, value):
    kind = getattr(trt, dtype)
    half, target = trt.full((2, 3), 0.5, dtype=kind), trt.zeros(2, 3, dtype=kind)
    target[1, 2] = value
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        trt.nn.functional.binary_cross_entropy(half, target)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        trt.nn.functional.binary_cross_entropy(target, half)
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        trt.func.vmap(trt.nn.functional.binary_cross_entropy)(half, target)


@pytest.mark.parametrize("target", ["float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("input", ["float32", "int64", "bool"])
@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_cross_entropy_of_other_dtypes(name, input, target):

    def outcome(lib):
        try:
            return getattr(lib.nn.functional, name)(lib.ones(2).to(getattr(lib, input)), lib.ones(2).to(getattr(lib, target))).item()
        except (RuntimeError, NotImplementedError) as error:
            return error

    theirs, ours = outcome(torch), outcome(trt)
    assert type(ours) is type(theirs)
    if type(theirs) is RuntimeError:
        # Behind PyTorch's text stands the operator.
        assert str(ours).startswith(str(theirs))
