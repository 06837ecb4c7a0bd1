"""Every layer agrees with PyTorch's: same printed form, state dict, output and gradients for the same weights."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from nn_compare import array, assert_same, copy_state, leaves, loss_of, ours, theirs

import tensorrt_lite as trt


def normal(*shape):
    """Standard normal values of a shape."""
    return lambda: torch.randn(shape)


def integers(high, *shape):
    """Integers in [0, high)."""
    return lambda: torch.randint(high, shape)


def fixed(*values):
    """These integers."""
    return lambda: torch.tensor(values)


IMAGE = normal(2, 4, 8, 9)
SIGNAL = normal(2, 4, 11)
VOLUME = normal(2, 4, 5, 6, 7)
ROWS = normal(5, 6)

# (class, positional arguments, keyword arguments, inputs)
LAYERS = [
    ("Identity", (), {}, [ROWS]),
    ("Linear", (6, 3), {}, [ROWS]),
    ("Linear", (6, 3), {"bias": False}, [normal(2, 3, 6)]),
    ("Bilinear", (6, 4, 3), {}, [ROWS, normal(5, 4)]),
    ("Bilinear", (6, 4, 3), {"bias": False}, [normal(2, 5, 6), normal(2, 5, 4)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}, [SIGNAL]),
    ("Conv1d", (4, 6, 3), {"padding": "same", "dilation": 2}, [SIGNAL]),
    ("Conv1d", (4, 6, 4), {"padding": "same", "padding_mode": "replicate"}, [SIGNAL]),
    ("Conv2d", (4, 6, 3), {}, [IMAGE]),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "groups": 2, "bias": False}, [IMAGE]),
    ("Conv2d", (4, 4, 3), {"groups": 4, "padding": 1, "dilation": 2}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "circular"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": (2, 1), "padding_mode": "reflect"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": "valid"}, [normal(4, 8, 9)]),
    ("Conv3d", (4, 6, 3), {"padding": 1}, [VOLUME]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2}, [SIGNAL]),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, [IMAGE]),
    ("ConvTranspose3d", (4, 2, 2), {"dilation": 2}, [VOLUME]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [SIGNAL]),
    ("MaxPool2d", (2,), {}, [IMAGE]),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}, [IMAGE]),
    ("MaxPool2d", ((3, 2),), {"dilation": 2}, [normal(4, 8, 9)]),
    ("MaxPool3d", (2,), {}, [VOLUME]),
    ("AvgPool1d", (3,), {"padding": 1, "count_include_pad": False}, [SIGNAL]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, [IMAGE]),
    ("AvgPool2d", ((2, 3),), {"divisor_override": 5}, [IMAGE]),
    ("AvgPool3d", (2,), {}, [VOLUME]),
    ("LPPool1d", (2, 3), {}, [SIGNAL]),
    ("LPPool2d", (3, 2), {"stride": 1}, [lambda: torch.rand(2, 4, 8, 9)]),
    ("LPPool3d", (2, 2), {"ceil_mode": True}, [VOLUME]),
    ("AdaptiveAvgPool1d", (3,), {}, [SIGNAL]),
    ("AdaptiveAvgPool2d", ((3, None),), {}, [IMAGE]),
    ("AdaptiveAvgPool2d", (1,), {}, [IMAGE]),
    ("AdaptiveAvgPool3d", (2,), {}, [VOLUME]),
    ("AdaptiveMaxPool1d", (3,), {"return_indices": True}, [SIGNAL]),
    ("AdaptiveMaxPool2d", ((3, None),), {}, [IMAGE]),
    ("AdaptiveMaxPool3d", (2,), {}, [VOLUME]),
    ("ConstantPad1d", (2, 1.5), {}, [SIGNAL]),
    ("ConstantPad2d", ((1, 2, 0, 3), -1.0), {}, [IMAGE]),
    ("ConstantPad3d", (1, 0.5), {}, [VOLUME]),
    ("ZeroPad1d", (1,), {}, [SIGNAL]),
    ("ZeroPad2d", ((1, -1, 2, 0),), {}, [IMAGE]),
    ("ZeroPad3d", (1,), {}, [VOLUME]),
    ("ReflectionPad1d", (2,), {}, [SIGNAL]),
    ("ReflectionPad2d", ((1, 2, 3, 1),), {}, [IMAGE]),
    ("ReflectionPad3d", (1,), {}, [VOLUME]),
    ("ReplicationPad1d", ((3, 1),), {}, [SIGNAL]),
    ("ReplicationPad2d", (2,), {}, [IMAGE]),
    ("ReplicationPad3d", (1,), {}, [VOLUME]),
    ("CircularPad1d", (2,), {}, [SIGNAL]),
    ("CircularPad2d", ((1, 2, 3, 0),), {}, [IMAGE]),
    ("CircularPad3d", (1,), {}, [VOLUME]),
    ("LayerNorm", (6,), {}, [ROWS]),
    ("LayerNorm", ([8, 9],), {"bias": False, "eps": 1e-3}, [IMAGE]),
    ("LayerNorm", (6,), {"elementwise_affine": False}, [ROWS]),
    ("RMSNorm", (6,), {}, [ROWS]),
    ("RMSNorm", ((8, 9),), {"eps": 1e-3, "elementwise_affine": False}, [IMAGE]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
    ("GroupNorm", (4, 4), {"affine": False}, [SIGNAL]),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, [IMAGE]),
    ("LocalResponseNorm", (2,), {"alpha": 0.1, "k": 2.0}, [SIGNAL]),
    ("LocalResponseNorm", (2,), {}, [VOLUME]),
    ("BatchNorm1d", (6,), {}, [ROWS]),
    ("BatchNorm1d", (4,), {"momentum": None}, [SIGNAL]),
    ("BatchNorm2d", (4,), {}, [IMAGE]),
    ("BatchNorm2d", (4,), {"affine": False, "track_running_stats": False}, [IMAGE]),
    ("BatchNorm3d", (4,), {"eps": 1e-3, "bias": False}, [VOLUME]),
    ("InstanceNorm1d", (4,), {}, [SIGNAL]),
    ("InstanceNorm1d", (4,), {}, [normal(4, 11)]),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, [IMAGE]),
    ("InstanceNorm3d", (4,), {}, [VOLUME]),
    ("Embedding", (10, 3), {}, [integers(10, 4, 5)]),
    ("Embedding", (10, 3), {"padding_idx": -2}, [integers(10, 4, 5)]),
    ("Embedding", (10, 3), {"max_norm": 1.0, "norm_type": 1.0}, [integers(10, 4, 5)]),
    ("Embedding", (10, 3), {"scale_grad_by_freq": True}, [integers(10, 4, 5)]),
    ("EmbeddingBag", (10, 3), {"mode": "sum"}, [integers(10, 4, 5)]),
    ("EmbeddingBag", (10, 3), {"mode": "mean", "padding_idx": 2}, [integers(10, 4, 5)]),
    ("EmbeddingBag", (10, 3), {"mode": "max"}, [integers(10, 4, 5)]),
    ("EmbeddingBag", (10, 3), {}, [integers(10, 9), fixed(0, 3, 3, 7)]),
    ("EmbeddingBag", (10, 3), {"mode": "max"}, [integers(10, 9), fixed(0, 3, 3, 7)]),
    ("EmbeddingBag", (10, 3), {"mode": "sum", "include_last_offset": True}, [integers(10, 9), fixed(0, 4, 9)]),
    ("EmbeddingBag", (10, 3), {"mode": "sum"}, [integers(10, 9), fixed(0, 4), normal(9)]),
    ("ReLU", (), {}, [ROWS]),
    ("ReLU6", (), {}, [lambda: torch.randn(5, 6) * 6]),
    ("ELU", (1.5,), {}, [ROWS]),
    ("SELU", (), {}, [ROWS]),
    ("CELU", (0.7,), {}, [ROWS]),
    ("GELU", (), {}, [ROWS]),
    ("GELU", (), {"approximate": "tanh"}, [ROWS]),
    ("SiLU", (), {}, [ROWS]),
    ("Mish", (), {}, [ROWS]),
    ("Hardtanh", (-0.5, 0.7), {}, [ROWS]),
    ("Hardswish", (), {}, [lambda: torch.randn(5, 6) * 3]),
    ("Hardsigmoid", (), {}, [lambda: torch.randn(5, 6) * 3]),
    ("Hardshrink", (0.3,), {}, [ROWS]),
    ("Softshrink", (0.3,), {}, [ROWS]),
    ("Tanhshrink", (), {}, [ROWS]),
    ("LeakyReLU", (0.2,), {}, [ROWS]),
    ("Threshold", (0.1, 2.0), {}, [ROWS]),
    ("PReLU", (), {}, [ROWS]),
    ("PReLU", (4,), {"init": 0.1}, [IMAGE]),
    ("Sigmoid", (), {}, [ROWS]),
    ("Tanh", (), {}, [ROWS]),
    ("LogSigmoid", (), {}, [ROWS]),
    ("Softplus", (2.0, 1.0), {}, [ROWS]),
    ("Softsign", (), {}, [ROWS]),
    ("GLU", (), {}, [ROWS]),
    ("GLU", (1,), {}, [IMAGE]),
    ("Softmax", (-1,), {}, [ROWS]),
    ("Softmin", (0,), {}, [ROWS]),
    ("LogSoftmax", (1,), {}, [IMAGE]),
    ("Softmax2d", (), {}, [IMAGE]),
    ("Flatten", (), {}, [IMAGE]),
    ("Flatten", (0, 1), {}, [IMAGE]),
    ("Unflatten", (1, (2, 2)), {}, [IMAGE]),
    ("Unfold", (3,), {"padding": 1, "stride": 2}, [IMAGE]),
    ("Fold", ((4, 5), 2), {}, [normal(2, 12, 12)]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (2,), {}, [normal(2, 3, 8, 6)]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Upsample", (), {"scale_factor": 2}, [IMAGE]),
    ("Upsample", (), {"size": (5, 12), "mode": "bilinear"}, [IMAGE]),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "bicubic", "align_corners": True}, [IMAGE]),
    ("Upsample", (), {"size": 7, "mode": "linear"}, [SIGNAL]),
    ("Upsample", (), {"scale_factor": (2, 1, 2), "mode": "trilinear"}, [VOLUME]),
    ("Upsample", (), {"size": (3, 4), "mode": "area"}, [IMAGE]),
    ("Upsample", (), {"size": (3, 4), "mode": "nearest-exact"}, [IMAGE]),
    ("UpsamplingNearest2d", (), {"scale_factor": 3}, [IMAGE]),
    ("UpsamplingBilinear2d", (), {"size": (10, 4)}, [IMAGE]),
    ("PairwiseDistance", (), {"p": 1.0, "keepdim": True}, [ROWS, ROWS]),
    ("CosineSimilarity", (), {}, [ROWS, ROWS]),
    ("RNN", (6, 3), {"num_layers": 2, "nonlinearity": "relu"}, [normal(4, 2, 6)]),
    ("RNN", (6, 3), {"bias": False}, [normal(4, 6), normal(1, 3)]),
    ("LSTM", (6, 3), {"num_layers": 2, "bidirectional": True, "batch_first": True}, [normal(2, 4, 6)]),
    ("LSTM", (6, 5), {"proj_size": 2, "num_layers": 2}, [normal(4, 2, 6)]),
    ("GRU", (6, 3), {"bidirectional": True}, [normal(4, 2, 6), normal(2, 2, 3)]),
    ("RNNCell", (6, 3), {}, [ROWS]),
    ("LSTMCell", (6, 3), {"bias": False}, [ROWS]),
    ("GRUCell", (6, 3), {}, [ROWS, normal(5, 3)]),
    ("MultiheadAttention", (6, 2), {}, [normal(4, 2, 6), normal(5, 2, 6), normal(5, 2, 6)]),
    (
        "MultiheadAttention",
        (6, 3),
        {"kdim": 4, "vdim": 5, "batch_first": True, "add_bias_kv": True, "add_zero_attn": True, "bias": False},
        [normal(2, 4, 6), normal(2, 5, 4), normal(2, 5, 5)],
    ),
    ("TransformerEncoderLayer", (6, 2, 8), {"dropout": 0.0}, [normal(4, 2, 6)]),
    ("TransformerEncoderLayer", (6, 2, 8, 0.0, "gelu"), {"norm_first": True, "batch_first": True}, [normal(2, 4, 6)]),
    ("TransformerDecoderLayer", (6, 2, 8), {"dropout": 0.0}, [normal(4, 2, 6), normal(5, 2, 6)]),
    (
        "Transformer",
        (6, 2, 1, 1, 8),
        {"dropout": 0.0},
        [normal(5, 2, 6), normal(4, 2, 6)],
    ),
]


def label(entry):
    name, args, kwargs, _ = entry
    given = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{name}({','.join(given)})".replace(" ", "")


@pytest.fixture(params=LAYERS, ids=[label(entry) for entry in LAYERS])
def pair(request):
    """Our layer and PyTorch's with the same weights, and the drawn inputs."""
    name, args, kwargs, inputs = request.param
    torch.manual_seed(7)
    reference = getattr(torch.nn, name)(*args, **kwargs)
    layer = getattr(trt.nn, name)(*args, **kwargs)
    drawn = [draw() for draw in inputs]
    keys = list(layer.state_dict())
    assert keys == list(reference.state_dict())
    copy_state(layer, reference)
    return layer, reference, drawn


def compare_run(layer, reference, drawn):
    x, y = ours(drawn, requires_grad=True), theirs(drawn, requires_grad=True)
    actual, expected = layer(*x), reference(*y)
    assert_same(actual, expected, what="output")
    if not any(leaf.requires_grad for leaf in leaves(expected)):
        return
    loss_of(actual).backward()
    loss_of(expected).backward()
    for position, (a, e) in enumerate(zip(x, y, strict=True)):
        assert_same(a.grad, e.grad, rtol=1e-3, atol=1e-4, what=f"gradient of input {position}")
    for (name, a), (_, e) in zip(layer.named_parameters(), reference.named_parameters(), strict=True):
        assert_same(a.grad, e.grad, rtol=1e-3, atol=1e-4, what=f"gradient of {name}")


@pytest.mark.filterwarnings("ignore")
def test_layer_prints_like_pytorch(pair):
    layer, reference, _ = pair
    assert repr(layer) == repr(reference)


@pytest.mark.filterwarnings("ignore")
def test_layer_agrees_in_training(pair):
    layer, reference, drawn = pair
    compare_run(layer, reference, drawn)
    for (name, a), (_, e) in zip(layer.named_buffers(), reference.named_buffers(), strict=True):
        assert_same(a, e, what=f"buffer {name}")


@pytest.mark.filterwarnings("ignore")
def test_layer_agrees_in_evaluation(pair):
    layer, reference, drawn = pair
    compare_run(layer.eval(), reference.eval(), drawn)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", LAYERS, ids=[label(entry) for entry in LAYERS])
def test_layer_starts_from_pytorchs_weights(entry):
    name, args, kwargs, _ = entry
    torch.manual_seed(3)
    reference = getattr(torch.nn, name)(*args, **kwargs)
    trt.manual_seed(3)
    layer = getattr(trt.nn, name)(*args, **kwargs)
    for (key, a), (_, e) in zip(layer.state_dict().items(), reference.state_dict().items(), strict=True):
        assert_same(a, e, rtol=1e-6, atol=1e-7, what=key)


INPLACE = ["ReLU", "ReLU6", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardtanh", "Hardswish", "Hardsigmoid", "LeakyReLU"]


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_activation_overwrites_its_input(name):
    torch.manual_seed(0)
    values = torch.randn(4, 5)
    x = ours(values)
    result = getattr(trt.nn, name)(inplace=True)(x)
    assert result is x
    assert_same(x, getattr(torch.nn, name)()(values))


DROPOUTS = [
    ("Dropout", (6, 40)),
    ("Dropout1d", (4, 9, 5)),
    ("Dropout2d", (4, 9, 3, 3)),
    ("Dropout3d", (4, 9, 2, 3, 2)),
    ("AlphaDropout", (6, 40)),
    ("FeatureAlphaDropout", (4, 9, 3)),
]


@pytest.mark.parametrize(("name", "shape"), DROPOUTS)
def test_dropout_draws_pytorchs_mask(name, shape):
    torch.manual_seed(1)
    values = torch.randn(shape)
    torch.manual_seed(5)
    expected = getattr(torch.nn, name)(0.3)(values)
    trt.manual_seed(5)
    assert_same(getattr(trt.nn, name)(0.3)(ours(values)), expected)


@pytest.mark.parametrize(("name", "shape"), DROPOUTS)
def test_dropout_is_the_identity_in_evaluation(name, shape):
    values = torch.randn(shape)
    assert_same(getattr(trt.nn, name)(0.3).eval()(ours(values)), values)


def test_rrelu_draws_pytorchs_slopes():
    torch.manual_seed(1)
    values = torch.randn(6, 9)
    torch.manual_seed(5)
    expected = torch.nn.RReLU()(values)
    trt.manual_seed(5)
    assert_same(trt.nn.RReLU()(ours(values)), expected)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_unpool_undoes_max_pool(dims):
    torch.manual_seed(0)
    values = torch.randn(2, 3, *[6] * dims)
    pool = getattr(trt.nn, f"MaxPool{dims}d")(2, return_indices=True)
    unpool = getattr(trt.nn, f"MaxUnpool{dims}d")(2)
    reference_pool = getattr(torch.nn, f"MaxPool{dims}d")(2, return_indices=True)
    reference = getattr(torch.nn, f"MaxUnpool{dims}d")(2)
    assert repr(unpool) == repr(reference)
    assert_same(unpool(*pool(ours(values))), reference(*reference_pool(values)))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_unpool_names_an_index_outside_of_the_output(dims):
    for wrong in (4**dims, -1):
        said = []
        for library in (torch, trt):
            indices = library.zeros(1, 1, *[2] * dims, dtype=library.int64)
            indices[(0, 0, *[1] * dims)] = wrong
            with pytest.raises(RuntimeError) as error:
                getattr(library.nn.functional, f"max_unpool{dims}d")(library.ones(1, 1, *[2] * dims), indices, 2)
            said.append(str(error.value))
        assert said[1].startswith("Found an invalid max index: ") and said[0].startswith(said[1]), said


def test_conv_transpose_takes_an_output_size():
    torch.manual_seed(0)
    reference = torch.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1)
    layer = trt.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1)
    copy_state(layer, reference)
    values = torch.randn(2, 3, 6, 6)
    assert_same(layer(ours(values), output_size=[12, 11]), reference(values, output_size=[12, 11]))
    with pytest.raises(ValueError, match="requested an output size"):
        layer(ours(values), output_size=[14, 11])


def test_output_padding_of_conv_transpose_is_pytorch_s_function():
    """unfoldNd and others call it with an object of their own in place of the layer."""
    for shape, size in (((1, 3, 6, 5), [12, 11]), ((3, 6, 5), [3, 13, 11]), ((3, 6, 5), [12, 11]), ((1, 3, 6, 5), [14, 11]), ((1, 3, 6, 5), [12]), ((1, 3, 6, 5), None)):
        found = []
        for m in (trt, torch):
            owner = SimpleNamespace(output_padding=(1, 0))
            try:
                found.append(list(m.nn.modules.conv._ConvTransposeNd._output_padding(owner, m.zeros(shape), size, (2, 2), (0, 0), (2, 3), 2, dilation=(1, 1))))
            except ValueError as error:
                found.append(str(error).replace("torch.Size", "").replace("tensorrt_lite.Size", ""))
        assert found[0] == found[1], (shape, size)


def test_batch_norm_needs_more_than_one_value_per_channel():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        trt.nn.BatchNorm1d(3)(trt.zeros(1, 3))


MASKS = ["none", "causal", "boolean", "padding"]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kind", MASKS)
def test_attention_masks(kind, need_weights):
    torch.manual_seed(0)
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    layer = trt.nn.MultiheadAttention(8, 2, batch_first=True)
    copy_state(layer, reference)
    values = torch.randn(3, 5, 8)
    masks = {}
    if kind == "causal":
        masks["attn_mask"] = torch.nn.Transformer.generate_square_subsequent_mask(5)
    elif kind == "boolean":
        masks["attn_mask"] = torch.ones(5, 5).triu(1).bool()
    elif kind == "padding":
        masks["key_padding_mask"] = torch.tensor([[False] * 5, [False] * 4 + [True], [False] * 2 + [True] * 3])
    x = ours(values)
    actual = layer(x, x, x, need_weights=need_weights, **{k: ours(v) for k, v in masks.items()})
    assert_same(actual, reference(values, values, values, need_weights=need_weights, **masks))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder_with_a_causal_mask(norm_first):
    torch.manual_seed(0)

    def build(nn):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
        return nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)

    reference, model = build(torch.nn), build(trt.nn)
    copy_state(model, reference)
    values = torch.randn(3, 5, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    assert_same(trt.nn.Transformer.generate_square_subsequent_mask(5), mask)
    assert_same(model(ours(values), mask=ours(mask)), reference(values, mask=mask))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda nn: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda nn: nn.Conv2d(3, 4, 3, padding="full"), ValueError, "Invalid padding string"),
        (lambda nn: nn.Conv2d(3, 4, 3, stride=2, padding="same"), ValueError, "padding='same' is not supported"),
        (lambda nn: nn.Conv2d(3, 4, 3, padding_mode="mirror"), ValueError, "padding_mode must be one of"),
        (lambda nn: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda nn: nn.GroupNorm(3, 4), ValueError, "must be divisible by num_groups"),
        (lambda nn: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda nn: nn.GRU(3, 4, proj_size=1), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
        (lambda nn: nn.RNN(3, 4, proj_size=0), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
        (lambda nn: nn.RNN(3, 4, nonlinearity="sine"), ValueError, "Unknown nonlinearity 'sine'"),
        (lambda nn: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
        (lambda nn: nn.Embedding(4, 2, padding_idx=4), AssertionError, "Padding_idx must be within num_embeddings"),
        (lambda nn: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2 supported"),
    ],
)
def test_wrong_arguments_raise_as_in_pytorch(build, error, message):
    for nn in (torch.nn, trt.nn):
        with pytest.raises(error, match=message):
            build(nn)


def test_embedding_from_pretrained_is_frozen():
    table = torch.randn(4, 3)
    layer = trt.nn.Embedding.from_pretrained(ours(table))
    assert not layer.weight.requires_grad
    assert array(layer(ours(torch.tensor([2]))))[0].tolist() == table[2].tolist()


@pytest.mark.parametrize("name", [
    *(f"{lazy}Conv{kind}{n}d" for lazy in ("", "Lazy") for kind in ("", "Transpose") for n in (1, 2, 3)), "BatchNorm2d", "AvgPool2d", "AvgPool3d", "MaxUnpool1d",
    "FractionalMaxPool2d", "ConstantPad1d", "ReflectionPad2d", "ReplicationPad3d", "CircularPad1d",
])  # fmt: skip
def test_missing_arguments_are_named_as_pytorchs(name):
    for given in ((), (1,)):
        messages = []
        for library in (torch, trt):
            try:
                getattr(library.nn, name)(*given)
                messages.append("")
            except (TypeError, ValueError) as error:
                messages.append(str(error))
        assert messages[0] == messages[1]
