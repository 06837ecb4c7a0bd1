"""What autograd keeps, in programs: writes in place between forward and backward that PyTorch takes, and frozen layers.

tests/conformance/test_saved.py compares every operator with PyTorch; here are the programs that people write.
"""

from __future__ import annotations

import gc
import math

import pytest

import tensorrt_lite as trt

F = trt.nn.functional


def leaf(*shape):
    trt.manual_seed(0)
    return trt.randn(*shape, requires_grad=True)


def attention_scores(x):
    scores = x @ x.T / math.sqrt(x.shape[1])
    scores.masked_fill_(trt.ones(x.shape[0], x.shape[0], dtype=trt.bool).triu(1), float("-inf"))
    return scores.softmax(-1)


def additive_mask(x):
    s = x @ x.T
    s /= 8
    s += trt.ones(x.shape[0], x.shape[0]).triu(1)
    return s


def contrastive_similarities(x):
    z = F.normalize(x, dim=1)
    sim = z @ z.T / 0.5
    sim.fill_diagonal_(-1e9)
    return F.cross_entropy(sim, trt.arange(x.shape[0]).roll(1))


def standardized(x):
    y = (x - x.mean(0)) / x.std(0)
    y *= trt.arange(1.0, x.shape[1] + 1)
    return y


def variance_and_epsilon(x):
    v = x.var(0)
    v += 1e-5
    return (x - x.mean(0)) * v.rsqrt()


def first_row_of_a_unit_vector(x):
    y = x / x.norm()
    y[0] = 0
    return y * y


def softsign_written(x):
    y = F.softsign(x)
    y += 1
    return y


def mean_of_numbers_written(x):
    y = x.nanmean(0)
    y *= 2
    return y


def batch_mean_divergence_written(x):
    loss = F.kl_div(x.log_softmax(-1), trt.full(x.shape, 1 / x.shape[1]), reduction="batchmean")
    loss += 1
    return loss


PROGRAMS = [
    attention_scores, additive_mask, contrastive_similarities, standardized, variance_and_epsilon, first_row_of_a_unit_vector, softsign_written,
    mean_of_numbers_written, batch_mean_divergence_written,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_result_may_be_written_to_before_the_backward_pass(program):
    x = leaf(4, 3).double().detach().requires_grad_()
    weights = trt.linspace(0.5, 1.5, program(x).numel(), dtype=trt.float64)

    def value(t):
        return (program(t).reshape(-1) * weights).sum()

    [gradient] = trt.autograd.grad(value(x), x)
    step = 1e-6
    for place in ((0, 0), (1, 2), (3, 1)):
        shift = trt.zeros_like(x)
        shift[place] = step
        with trt.no_grad():
            slope = (value(x + shift) - value(x - shift)) / (2 * step)
        assert abs(float(slope) - float(gradient[place])) < 1e-6 * max(1.0, abs(float(slope)))


@pytest.mark.parametrize("layer", [trt.nn.Linear(3, 5), trt.nn.Linear(3, 5, bias=False)])
def test_the_input_of_a_frozen_layer_may_be_written_to(layer):
    layer.requires_grad_(False)
    x = leaf(4, 3)
    h = x * 1
    y = layer(h)
    with trt.no_grad():
        h += 1
    y.sum().backward()
    # a sum of the weights may cancel
    assert trt.allclose(x.grad, layer.weight.sum(0).expand(4, 3), atol=1e-6)


def test_a_weight_whose_input_is_frozen_may_be_written_to():
    x = trt.ones(4, 3)
    w = leaf(5, 3)
    y = x @ w.T
    with trt.no_grad():
        w += 1
    y.sum().backward()
    assert w.grad.tolist() == [[4.0] * 3] * 5


@pytest.mark.parametrize("shape", [(1,), (2, 5), (1, 5), ()])
def test_the_gradient_of_a_broadcast_bias_has_its_shape(shape):
    bias = trt.zeros(shape, requires_grad=True)
    F.linear(trt.ones(2, 3), trt.ones(5, 3), bias).sum().backward()
    assert bias.grad.shape == shape and float(bias.grad.sum()) == 10


def test_a_vector_as_weight_has_every_gradient():
    x, w, b = leaf(4, 3), leaf(3), trt.zeros((), requires_grad=True)
    F.linear(x, w, b).sum().backward()
    assert trt.allclose(x.grad, w.detach().expand(4, 3)) and trt.allclose(w.grad, x.detach().sum(0)) and float(b.grad) == 4


@pytest.mark.parametrize("function", [F.leaky_relu, F.elu, F.celu, F.selu, F.rrelu])
def test_activations_in_place_keep_one_tensor(function):
    x = leaf(64, 64)
    before = allocated()
    y = function(x * 1, inplace=True)
    assert allocated() - before <= nbytes(y) + 1024
    y.sum().backward()
    reference = x.detach().clone().requires_grad_()
    function(reference).sum().backward()
    assert trt.allclose(x.grad, reference.grad, atol=1e-6)


def test_an_index_that_is_written_to_is_refused():
    x, index = leaf(4, 3), trt.tensor([0, 1])
    y = x[index]
    index += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_mask_is_kept_as_it_is():
    x = leaf(64, 64)
    mask = x.detach() > 0
    before = allocated()
    y = x[mask]
    assert allocated() - before <= nbytes(y) + 1024
    y.sum().backward()
    assert trt.equal(x.grad, mask.float())


ROWS, WIDTH, LAYERS = 256, 128, 24


def allocated() -> int:
    gc.collect()
    return trt.cpu.memory_stats()["allocated_bytes.current"]


def nbytes(t) -> int:
    return t.numel() * t.element_size()


def kept_by(model) -> int:
    """Bytes that the graph of one forward pass holds, its result included."""
    x = trt.randn(ROWS, WIDTH)
    model(x).sum()      # what the first call prepares is no part of a graph
    before = allocated()
    result = model(x).sum()
    assert result.requires_grad
    return allocated() - before


class LowRank(trt.nn.Module):
    """A frozen layer and a trained product of rank 4 beside it."""

    def __init__(self):
        super().__init__()
        self.frozen = trt.nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down = trt.nn.Linear(WIDTH, 4, bias=False)
        self.up = trt.nn.Linear(4, WIDTH, bias=False)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


def test_frozen_layers_after_a_trained_one_keep_nothing():
    """One activation is kept for none of 24 frozen layers: only the last result is alive."""
    model = trt.nn.Sequential(trt.nn.Linear(WIDTH, WIDTH), *[trt.nn.Linear(WIDTH, WIDTH).requires_grad_(False) for _ in range(LAYERS)])
    assert kept_by(model) <= 8192


def test_low_rank_layers_keep_their_inputs_once():
    """PyTorch's graph holds the input of each layer, for `down`, and its product of rank 4, for `up`."""
    model = trt.nn.Sequential(*[LowRank() for _ in range(LAYERS)])
    inputs = (LAYERS - 1) * ROWS * WIDTH * 4  # that of the first layer is the caller's
    assert inputs <= kept_by(model) <= inputs + LAYERS * ROWS * 4 * 4 + 16384
