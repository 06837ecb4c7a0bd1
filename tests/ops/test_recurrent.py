"""lstm, gru, rnn_tanh, rnn_relu and their cells beside PyTorch: values, gradients, packed sequences, errors; derivatives beside finite differences."""

from __future__ import annotations

from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import forward_ad, gradcheck, gradgradcheck
from torch_compare import ours, same, torch

FUNCTIONS = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
LAYERS: list[dict[str, Any]] = [{}, {"directions": 2}, {"layers": 2, "biases": False}, {"layers": 2, "directions": 2, "batch_first": True}]
# (hidden, features, batch, steps): a step alone, tails of vectors and of tiles, one sequence
SIZES = [(5, 3, 4, 6), (16, 7, 1, 3), (40, 20, 13, 5), (70, 9, 7, 1), (3, 2, 9, 2)]


def operands(function, size, dtype, layers=1, directions=1, biases=True, projection=0, batch_first=False):
    """(input, [states], parameters) of PyTorch, which require gradients."""
    hidden, features, batch, steps = size
    rng = torch.Generator().manual_seed(sum(size))

    def draw(*shape):
        return (torch.rand(*shape, generator=rng, dtype=torch.float64) - 0.5).to(dtype).requires_grad_()

    width, rows = projection or hidden, GATES[function] * hidden
    parameters = []
    for layer in range(layers):
        for _ in range(directions):
            parameters += [draw(rows, width * directions if layer else features), draw(rows, width)]
            parameters += [draw(rows), draw(rows)] if biases else []
            parameters += [draw(width, hidden)] if projection else []
    states = [draw(layers * directions, batch, width)]
    if function == "lstm":
        states.append(draw(layers * directions, batch, hidden))
    return draw(batch, steps, features) if batch_first else draw(steps, batch, features), states, parameters


def both(function, x, states, parameters, *settings, sizes=None):
    """The results of PyTorch's function and of ours, and the leaves of each."""
    found = []
    for lib, convert in ((torch, lambda t: t), (trt, ours)):
        first, *rest = [convert(t) for t in [x, *states, *parameters]]
        hx, weights = rest[: len(states)], rest[len(states) :]
        lengths = () if sizes is None else (convert(sizes),)
        results = getattr(lib, function)(first, *lengths, hx if function == "lstm" else hx[0], weights, *settings)
        found.append((results, [first, *rest]))
    return found


def agree(found, tolerance):
    (want, leaves), (got, own) = found
    same(got, want, "result", tolerance)
    seeds = [torch.rand(w.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(w.dtype) for w in want]
    gradients = torch.autograd.grad(want, leaves, seeds, allow_unused=True)
    same(trt.autograd.grad(list(got), own, [ours(s) for s in seeds], allow_unused=True), gradients, "gradient", tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_layers(function):
    for kind in LAYERS:
        for size in SIZES:
            for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
                x, states, parameters = operands(function, size, dtype, **kind)
                settings = (kind.get("biases", True), kind.get("layers", 1), 0.0, True, kind.get("directions", 1) == 2, kind.get("batch_first", False))
                agree(both(function, x, states, parameters, *settings), tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_packed_sequences(function):
    """Sequences of several lengths, both directions: forward they end, backward they join."""
    for sizes in ([4, 4, 2, 2, 1], [9, 3], [1, 1, 1]):
        for directions in (1, 2):
            size = (6, 3, sizes[0], len(sizes))
            x, states, parameters = operands(function, size, torch.float64, layers=2, directions=directions)
            data = torch.cat([x[t, :n] for t, n in enumerate(sizes)]).detach().requires_grad_()
            agree(both(function, data, states, parameters, True, 2, 0.0, True, directions == 2, sizes=torch.tensor(sizes)), 1e-12)


def test_projections_of_an_lstm():
    for size in [(8, 3, 5, 4), (33, 4, 7, 1)]:
        for directions in (1, 2):
            x, states, parameters = operands("lstm", size, torch.float64, layers=2, directions=directions, projection=3)
            agree(both("lstm", x, states, parameters, True, 2, 0.0, True, directions == 2, False), 1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_cells(function):
    for biases in (True, False):
        x, states, parameters = operands(function, (11, 4, 5, 1), torch.float64, biases=biases)
        results = []
        for lib, convert in ((torch, lambda t: t), (trt, ours)):
            first, *rest = [convert(t.detach()) for t in (x[0], *(s[0] for s in states), *parameters)]
            hx = rest[: len(states)]
            results.append(getattr(lib, function + "_cell")(first, hx if function == "lstm" else hx[0], *rest[len(states) :]))
        same(results[1], results[0], "result", 1e-12)
    assert getattr(trt, function + "_cell").__doc__


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives(function):
    """First and second ones, and forward mode, of layers with two directions."""
    x, states, parameters = operands(function, (3, 2, 2, 3), torch.float64, directions=2)
    leaves = [ours(t) for t in (x, *states, *parameters)]

    def call(first, *rest):
        hx = list(rest[: len(states)])
        return getattr(trt, function)(first, hx if function == "lstm" else hx[0], list(rest[len(states) :]), True, 1, 0.0, True, True, False)

    assert gradcheck(call, leaves, check_forward_ad=True)
    assert gradgradcheck(call, leaves)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(leaves[0].detach(), trt.ones_like(leaves[0]))
        assert forward_ad.unpack_dual(call(dual, *leaves[1:])[0]).tangent is not None


def test_second_derivatives_of_packed_projections():
    x, states, parameters = operands("lstm", (4, 2, 3, 2), torch.float64, projection=2)
    leaves = [ours(t) for t in (x[:, :2].reshape(4, 2).detach().requires_grad_(), *(s.detach().requires_grad_() for s in states), *parameters)]
    sizes = trt.tensor([3, 1])

    def call(first, h, c, *weights):
        return trt.lstm(first, sizes, [h, c], list(weights), True, 1, 0.0, True, False)

    assert gradcheck(call, leaves)
    assert gradgradcheck(call, leaves)


def test_state_that_depends_on_the_input():
    """The composed derivative must not follow a second path through the operands."""
    x = ours(torch.rand(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_())
    w = [trt.randn(4, 4, dtype=trt.float64, requires_grad=True) for _ in range(2)]
    assert gradgradcheck(lambda x, a, b: trt.rnn_tanh(x, x.sum(0, True).sin(), [a, b], False, 1, 0.0, True, False, False), (x, *w))


def test_dropout_between_layers_is_pytorchs():
    for function in FUNCTIONS:
        x, states, parameters = operands(function, (6, 3, 4, 5), torch.float32, layers=3)
        torch.manual_seed(7)
        trt.manual_seed(7)
        (want, _), (got, _) = both(function, x, states, parameters, True, 3, 0.4, True, False, False)
        same(got, want, "result", 1e-5)


def test_half_types_compute_in_float32():
    lstm = trt.nn.LSTM(24, 40, 2)
    x = trt.randn(9, 37, 24)
    expected = lstm(x)[0]
    for dtype in (trt.bfloat16, trt.float16):
        half, (h, c) = lstm.to(dtype)(x.to(dtype))
        assert half.dtype is h.dtype is c.dtype is dtype
        assert (half.float() - expected).abs().max() < 0.03


def test_bits_do_not_depend_on_threads():
    """Inputs and their weights are eighths, so that the input's product is exact however it is summed."""
    x, (h, c) = trt.randint(-8, 8, (9, 37, 24)) / 8, (trt.randn(37, 40), trt.randn(37, 40))
    weights = [trt.randint(-8, 8, (160, 24)) / 8, trt.randn(160, 40) / 6]
    threads = trt.get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            trt.set_num_threads(n)
            results.append(trt.lstm(x, [h.unsqueeze(0), c.unsqueeze(0)], weights, False, 1, 0.0, False, False, False)[0])
    finally:
        trt.set_num_threads(threads)
    assert trt.equal(results[0], results[1]) and trt.equal(results[0], results[2])


def test_meta():
    lstm = trt.nn.LSTM(3, 4, 2, bidirectional=True, device="meta")
    output, (h, c) = lstm(trt.empty(5, 2, 3, device="meta"))
    assert output.shape == (5, 2, 8) and h.shape == c.shape == (4, 2, 4)
    output.sum().backward()
    assert lstm.weight_hh_l1.grad.shape == (16, 4)


def test_keywords_name_the_overload():
    x, states, parameters = (ours(t) if not isinstance(t, list) else [ours(u) for u in t] for t in operands("gru", (3, 2, 2, 4), torch.float32))
    settings = {"params": parameters, "has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    whole, _ = trt.gru(input=x, hx=states[0], batch_first=False, **settings)
    packed, _ = trt.gru(data=x.reshape(8, 2), batch_sizes=trt.tensor([2, 2, 2, 2]), hx=states[0], **settings)
    assert trt.equal(whole.reshape(8, 3), packed)


def test_errors():
    x, (h, c), parameters = (ours(t) if not isinstance(t, list) else [ours(u) for u in t] for t in operands("lstm", (4, 3, 2, 5), torch.float32))
    settings = (True, 1, 0.0, False, False, False)
    cases = [
        (lambda: trt.lstm(x, [h], parameters, *settings), RuntimeError, "lstm expects two hidden states"),
        (lambda: trt.lstm(x, [h, c], parameters[:3], *settings), RuntimeError, "incorrect number of RNN parameters"),
        (lambda: trt.lstm(x[:0], [h, c], parameters, *settings), RuntimeError, "sequence length to be larger than 0"),
        (lambda: trt.lstm(x.double(), [h, c], parameters, *settings), RuntimeError, "same dtype"),
        (lambda: trt.lstm(x, [h[:, :1], c], parameters, *settings), RuntimeError, "hidden state of size"),
        (lambda: trt.lstm(x, [h, c], parameters), TypeError, "missing required argument: 'has_biases'"),
        (lambda: trt.lstm(x.reshape(10, 3), trt.tensor([2, 3]), [h, c], parameters, *settings[:-1]), RuntimeError, "batch sizes"),
        (lambda: trt.lstm_cell(x[0], [h[0, :1], c[0]], *parameters), RuntimeError, "doesn't match hidden0 batch size 1"),
        (lambda: trt.gru_cell(x[0], h[0], *parameters), RuntimeError, "weight_ih first dim must be 3"),
        (lambda: trt.lstm_cell(x[0][:, :2], [h[0], c[0]], *parameters), RuntimeError, "inconsistent input_size: got 2 expected 3"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
