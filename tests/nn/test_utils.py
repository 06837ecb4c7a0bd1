"""nn.utils: clipping, parameter vectors and padded sequences agree with PyTorch's."""

from __future__ import annotations

import pytest
import torch
from nn_compare import array, assert_same, ours

import tensorrt_lite as trt

SIDES = pytest.mark.parametrize("lib", [torch, trt], ids=["pytorch", "ours"])


def parameters_with_gradients():
    """Equal parameters with equal gradients on both sides, the last one without."""
    torch.manual_seed(0)
    expected = [torch.nn.Parameter(torch.randn(shape)) for shape in [(3, 4), (5,), (), (2,)]]
    actual = [trt.nn.Parameter(ours(p)) for p in expected]
    for a, e in zip(actual[:-1], expected[:-1], strict=True):
        e.grad = torch.randn(e.shape)
        a.grad = ours(e.grad)
    return actual, expected


def assert_same_gradients(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        assert_same(a.grad, e.grad)


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("norm_type", [1, 2.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(max_norm, norm_type, foreach):
    actual, expected = parameters_with_gradients()
    norm = trt.nn.utils.clip_grad_norm_(actual, max_norm, norm_type, foreach=foreach)
    assert_same(norm, torch.nn.utils.clip_grad_norm_(expected, max_norm, norm_type, foreach=foreach))
    assert_same_gradients(actual, expected)


@pytest.mark.parametrize("foreach", [None, False, True])
def test_clip_grad_value(foreach):
    actual, expected = parameters_with_gradients()
    trt.nn.utils.clip_grad_value_(actual, 0.3, foreach=foreach)
    torch.nn.utils.clip_grad_value_(expected, 0.3, foreach=foreach)
    assert_same_gradients(actual, expected)


def test_clipping_takes_a_generator_and_a_single_tensor():
    actual, expected = parameters_with_gradients()
    trt.nn.utils.clip_grad_norm_((p for p in actual), 0.1)
    torch.nn.utils.clip_grad_norm_((p for p in expected), 0.1)
    trt.nn.utils.clip_grad_norm_(actual[0], 0.01)
    torch.nn.utils.clip_grad_norm_(expected[0], 0.01)
    assert_same_gradients(actual, expected)


def test_clipping_in_two_steps():
    actual, expected = parameters_with_gradients()
    total = trt.nn.utils.get_total_norm([p.grad for p in actual[:-1]])
    assert_same(total, torch.nn.utils.get_total_norm([p.grad for p in expected[:-1]]))
    trt.nn.utils.clip_grads_with_norm_(actual, 0.2, total)
    torch.nn.utils.clip_grad_norm_(expected, 0.2)
    assert_same_gradients(actual, expected)


@SIDES
def test_a_norm_that_is_not_finite_may_raise(lib):
    parameter = lib.nn.Parameter(lib.ones(2))
    parameter.grad = lib.tensor([1.0, float("inf")])
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        lib.nn.utils.clip_grad_norm_([parameter], 1.0, error_if_nonfinite=True)


@SIDES
def test_clipping_without_gradients_returns_zero(lib):
    assert float(lib.nn.utils.clip_grad_norm_([lib.nn.Parameter(lib.ones(2))], 1.0)) == 0
    assert float(lib.nn.utils.get_total_norm([])) == 0


@SIDES
def test_parameters_as_a_vector_and_back(lib):
    layer = lib.nn.Linear(3, 2)
    vector = lib.nn.utils.parameters_to_vector(layer.parameters())
    assert tuple(vector.shape) == (8,)
    assert vector[:6].tolist() == layer.weight.flatten().tolist()
    lib.nn.utils.vector_to_parameters(lib.arange(8.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert layer.bias.tolist() == [6, 7]
    with pytest.raises(TypeError):
        lib.nn.utils.vector_to_parameters([1.0], layer.parameters())


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pad_sequence(batch_first, side):
    sequences = [torch.randn(length, 2) for length in (3, 5, 1)]
    actual = trt.nn.utils.rnn.pad_sequence(ours(sequences), batch_first, -1.0, side)
    expected = torch.nn.utils.rnn.pad_sequence(sequences, batch_first, -1.0, side)
    assert_same(actual, expected)
    if side == "right":
        lengths = trt.tensor([3, 5, 1])
        for a, e in zip(trt.nn.utils.rnn.unpad_sequence(actual, lengths, batch_first), sequences, strict=True):
            assert_same(a, e)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [2, 5, 1, 4]])
def test_packing_and_padding(lengths, batch_first):
    torch.manual_seed(0)
    padded = torch.randn((4, 5, 2) if batch_first else (5, 4, 2))
    enforce = lengths == sorted(lengths, reverse=True)
    actual = trt.nn.utils.rnn.pack_padded_sequence(ours(padded), trt.tensor(lengths), batch_first, enforce)
    expected = torch.nn.utils.rnn.pack_padded_sequence(padded, torch.tensor(lengths), batch_first, enforce)
    for field in ("data", "batch_sizes", "sorted_indices", "unsorted_indices"):
        assert_same(getattr(actual, field), getattr(expected, field), what=field)
    assert_same(
        tuple(trt.nn.utils.rnn.pad_packed_sequence(actual, batch_first, 9.0, 6)),
        tuple(torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first, 9.0, 6)),
    )
    for a, e in zip(
        trt.nn.utils.rnn.unpack_sequence(actual), torch.nn.utils.rnn.unpack_sequence(expected), strict=True
    ):
        assert_same(a, e)


@SIDES
def test_packing_refuses_unsorted_lengths(lib):
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(3, 2, 1), lib.tensor([1, 3]))
    with pytest.raises(RuntimeError, match="greater than 0"):
        lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(3, 2, 1), lib.tensor([3, 0]))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_take_packed_sequences(kind, bidirectional):
    torch.manual_seed(0)
    reference = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=bidirectional)
    layer = getattr(trt.nn, kind)(3, 4, num_layers=2, bidirectional=bidirectional)
    layer.load_state_dict({name: ours(value) for name, value in reference.state_dict().items()})
    sequences = [torch.randn(length, 3) for length in (2, 5, 4)]
    packed = trt.nn.utils.rnn.pack_sequence(ours(sequences), enforce_sorted=False)
    actual, state = layer(packed)
    expected, expected_state = reference(torch.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False))
    assert_same(actual.data, expected.data)
    assert_same(actual.batch_sizes, expected.batch_sizes)
    assert_same(state, expected_state)
    actual.data.sum().backward()
    expected.data.sum().backward()
    for (name, a), (_, e) in zip(layer.named_parameters(), reference.named_parameters(), strict=True):
        assert_same(a.grad, e.grad, rtol=1e-3, what=name)
    assert array(actual.data).shape == (11, 8 if bidirectional else 4)


def tied(lib):
    """Two layers with one weight, and a buffer that counts the calls."""

    class Module(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("calls", lib.zeros(1))

        def forward(self, x, scale=1):
            self.calls = self.calls + 1
            return self.b(self.a(x)) * scale * getattr(self, "extra", 1)

    module = Module()
    for p in module.parameters():
        p.data.fill_(0.5)
    return module


CALLS = {
    "tied": lambda m: {"a.weight": m.ones(2, 2)},
    "untied": lambda m: {"a.weight": m.ones(2, 2), "b.weight": m.zeros(2, 2)},
    "buffer": lambda m: {"calls": m.ones(1)},
    "new attribute": lambda m: {"extra": m.ones(1) * 3},
    "no module": lambda m: {"q.weight": m.ones(1)},
    "no tensor": lambda m: {"a.bias": 3},
    "all": lambda m: {"a.weight": m.ones(2, 2), "a.bias": m.zeros(2), "b.bias": m.zeros(2), "calls": m.zeros(1)},
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("options", [{}, {"tie_weights": False}, {"strict": True}])
@pytest.mark.parametrize("name", CALLS)
def test_functional_call(name, options):
    def outcome(lib):
        module = tied(lib)
        given = CALLS[name](lib)
        try:
            y = lib.nn.utils.stateless.functional_call(module, given, lib.ones(1, 2), {"scale": 2}, **options)
        except Exception as error:
            return type(error).__name__
        assert not hasattr(module, "extra") and module.b.weight is module.a.weight
        return y.tolist(), module.calls.tolist(), {k: v.tolist() for k, v in given.items()}

    assert outcome(trt) == outcome(torch)


def test_functional_call_differentiates_by_what_was_given():
    module = tied(trt)
    w = trt.ones(2, 2, requires_grad=True)
    trt.nn.utils.stateless.functional_call(module, {"a.weight": w}, trt.ones(1, 2)).sum().backward()
    assert w.grad is not None and module.a.weight.grad is None


def test_skip_init():
    module = trt.nn.utils.skip_init(trt.nn.Linear, 3, 2, dtype=trt.float64)
    assert module.weight.shape == (2, 3) and module.weight.dtype == trt.float64 and module.weight.is_cpu and module.weight.requires_grad
    assert trt.nn.utils.skip_init(trt.nn.Linear, 3, 2, device="meta").weight.is_meta
    for wrong, text in ((int, "Expected a Module"), (trt.nn.ReLU, "must support a 'device' arg")):
        with pytest.raises(RuntimeError, match=text):
            trt.nn.utils.skip_init(wrong)
