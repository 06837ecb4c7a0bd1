"""GradScaler beside PyTorch's on the CPU: the scale over iterations, skipped steps, several optimizers, states, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import tensorrt_lite as trt

BOTH = pytest.mark.parametrize("library", [trt, torch], ids=["ours", "theirs"])


def setting(library, optimizer="SGD", fused=None, **options):
    parameter = library.nn.Parameter(library.tensor([1.0, 2.0, 3.0]))
    return parameter, getattr(library.optim, optimizer)([parameter], lr=0.1, fused=fused), library.amp.GradScaler("cpu", **options)


def iterations(library, bad, **options):
    """The scale, the growth tracker and the parameter after each iteration; in those of `bad` a gradient is not finite."""
    parameter, optimizer, scaler = setting(library, **options)
    found = []
    for i in range(9):
        optimizer.zero_grad()
        factor = library.tensor([1.0, bad.get(i, 1.0), 1.0])
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append([scaler.get_scale(), scaler._get_growth_tracker(), *parameter.tolist()])
    return found


@pytest.mark.parametrize("bad", [{}, {2: float("inf")}, {0: float("nan"), 1: float("-inf"), 7: float("inf")}])
@pytest.mark.parametrize("options", [{}, {"growth_interval": 3}, {"init_scale": 4.0, "growth_factor": 1.5, "backoff_factor": 0.25, "growth_interval": 1}])
@pytest.mark.parametrize("fused", [None, True])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_the_scale_follows_pytorch(bad, options, optimizer, fused):
    ours, theirs = (iterations(library, bad, optimizer=optimizer, fused=fused, **options) for library in (trt, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@BOTH
def test_a_scale_that_would_be_infinite_stays(library):
    parameter, optimizer, scaler = setting(library, init_scale=2.0**127, growth_interval=1)
    scaler.scale((parameter * 1e-38).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


@BOTH
def test_gradients_are_unscaled_once(library):
    parameter, optimizer, scaler = setting(library)
    scaler.scale(parameter.sum()).backward()
    assert parameter.grad.tolist() == [65536.0] * 3
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    assert scaler.step(optimizer) is None
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called since the last update"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="unscale_\\(\\) is being called after step\\(\\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    assert parameter.tolist() == pytest.approx([0.9, 1.9, 2.9])


@BOTH
def test_optimizers_skip_steps_apart_and_share_the_scale(library):
    a, b = (library.nn.Parameter(library.ones(2)) for _ in range(2))
    first, second = (library.optim.SGD([p], lr=1.0) for p in (a, b))
    scaler = library.amp.GradScaler("cpu", init_scale=8.0)
    for loss in scaler.scale([(a * float("inf")).sum(), [b.sum()]])[:1] + [scaler.scale(b.sum())]:
        loss.backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (a.tolist(), b.tolist(), scaler.get_scale()) == ([1.0, 1.0], [0.0, 0.0], 4.0)


@BOTH
def test_outputs_keep_their_structure(library):
    scaler = library.amp.GradScaler("cpu", init_scale=2.0)
    one = library.ones(())
    scaled = scaler.scale((one, [one, one]))
    assert isinstance(scaled, tuple) and isinstance(scaled[1], list) and scaled[1][1].item() == 2.0
    assert [x.item() for x in scaler.scale(x for x in [one, one])] == [2.0, 2.0]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


@BOTH
def test_wrong_uses_are_refused(library):
    with pytest.raises(AssertionError, match="growth factor"):
        library.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        library.amp.GradScaler("cpu", backoff_factor=1.0)
    parameter, optimizer, scaler = setting(library)
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        scaler.update()
    scaler.scale(parameter.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)


@BOTH
def test_gradients_of_float16_are_refused(library):
    parameter = library.nn.Parameter(library.ones(2, dtype=library.float16))
    optimizer, scaler = library.optim.SGD([parameter], lr=0.1), library.amp.GradScaler("cpu")
    scaler.scale(library.ones(()))
    parameter.grad = library.ones(2, dtype=library.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(optimizer)


@BOTH
def test_the_scale_can_be_set(library):
    scaler = library.amp.GradScaler("cpu")
    scaler.scale(library.ones(()))
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(library.tensor(32.0))
    assert scaler.get_scale() == 32.0
    with pytest.raises(AssertionError, match="new_scale should be a float"):
        scaler.update(library.ones(2))
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.125)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.125, 7)


def test_states_are_pytorchs():
    parameter, optimizer, scaler = setting(trt, growth_interval=5)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(parameter.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    state = scaler.state_dict()
    theirs = torch.amp.GradScaler("cpu")
    theirs.load_state_dict(state)
    assert theirs.state_dict() == state == {"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 5, "_growth_tracker": 2}
    fresh = trt.amp.GradScaler("cpu")
    fresh.load_state_dict(theirs.state_dict())
    assert fresh.state_dict() == state
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == state
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        fresh.load_state_dict({})


@BOTH
def test_one_that_is_switched_off_is_transparent(library):
    parameter, optimizer, scaler = setting(library, enabled=False)
    assert (scaler.is_enabled(), scaler.get_scale(), scaler.state_dict(), scaler._get_growth_tracker()) == (False, 1.0, {}, 0)
    loss = parameter.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == pytest.approx([0.9, 1.9, 2.9])
    if not library.cuda.is_available():
        with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
            assert not library.amp.GradScaler().is_enabled()


@BOTH
def test_optimizers_that_unscale_themselves_get_the_scale(library):
    seen = []

    class Own(library.optim.SGD):
        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    parameter = library.nn.Parameter(library.ones(2))
    optimizer, scaler = Own([parameter], lr=0.1), library.amp.GradScaler("cpu", init_scale=8.0)
    optimizer._step_supports_amp_scaling = True
    scaler.scale((parameter * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert seen == [(8.0, 1.0)] and "grad_scale" not in vars(optimizer) and scaler.get_scale() == 4.0


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_the_operators_of_the_scaler(library, dtype):
    kind = getattr(library, dtype)
    grads = [library.tensor([1.0, 2.0], dtype=kind), library.tensor([[4.0]], dtype=kind)]
    found, inverse = library.zeros(()), library.tensor(0.5)
    library._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert ([g.tolist() for g in grads], found.item()) == ([[0.5, 1.0], [[2.0]]], 0.0)
    grads[1].fill_(float("inf"))
    library._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found.item() == 1.0
    scale, tracker = library.tensor(8.0), library.tensor(3, dtype=library.int32)
    assert library._amp_update_scale_(scale, tracker, library.zeros(()), 2.0, 0.5, 4) is scale
    assert (scale.item(), tracker.item()) == (16.0, 0)
    library._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 4)
    assert (scale.item(), tracker.item()) == (8.0, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_gradients_of_any_size_and_layout_are_unscaled_as_pytorchs(dtype):
    """Several chunks of threads, strided and empty ones, each of infinity and NaN at any place."""
    shapes = [(3,), (70_000,), (0,), (31, 17)]
    for place, bad in (((1, 69_999), float("inf")), ((1, 12_345), float("nan")), ((3, 100), float("-inf")), ((0, 0), 1e30), (None, 0.0)):
        found = []
        for library in (trt, torch):
            kind = getattr(library, dtype)
            values = [np.random.default_rng(int(np.prod(s)) + 1).normal(size=s) for s in shapes]
            if place is not None:
                values[place[0]].reshape(-1)[place[1]] = bad
            grads = [library.tensor(v.tolist(), dtype=kind).reshape(v.shape) for v in values]
            grads[3] = grads[3].t()
            grads.append(library.tensor(values[3].tolist(), dtype=kind)[::2, 1::3])
            flag = library.zeros(1)
            library._amp_foreach_non_finite_check_and_unscale_(grads, flag, library.tensor(0.37))
            found.append(([g.double().tolist() for g in grads], flag.item()))
        for ours, theirs in zip(found[0][0], found[1][0], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert found[0][1] == found[1][1]


@BOTH
def test_wrong_arguments_of_the_operators(library):
    one, counter = library.ones(()), library.zeros((), dtype=library.int32)
    for call in (
        lambda: library._amp_foreach_non_finite_check_and_unscale_([library.ones(2)], library.zeros(2), one),
        lambda: library._amp_foreach_non_finite_check_and_unscale_([library.ones(2)], one, library.ones(2)),
        lambda: library._amp_foreach_non_finite_check_and_unscale_([library.ones(2)], one.double(), one),
        lambda: library._amp_update_scale_(one, counter.long(), one, 2.0, 0.5, 3),
        lambda: library._amp_update_scale_(one.double(), counter, one, 2.0, 0.5, 3),
        lambda: library._amp_update_scale_(one, counter, library.ones(2), 2.0, 0.5, 3),
    ):
        with pytest.raises(RuntimeError):
            call()


def convolutional(library):
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
    )  # fmt: skip


def stripes(count):
    """Images of stripes in one of four directions, with noise: what a small convolutional network learns in seconds."""
    y, x = trt.meshgrid(trt.arange(12.0), trt.arange(12.0), indexing="ij")
    waves = [trt.sin(1.6 * direction) for direction in (x, y, (x + y) / 2**0.5, (x - y) / 2**0.5)]
    labels = trt.randint(0, 4, (count,))
    return trt.stack([waves[k] for k in labels.tolist()]).unsqueeze(1) + 0.5 * trt.randn(count, 1, 12, 12), labels


class Text(trt.nn.Module):
    """A language model of characters: two blocks of causal attention."""

    def __init__(self, size=17, width=32):
        super().__init__()
        nn = trt.nn
        self.tokens, self.places = nn.Embedding(size, width), nn.Embedding(32, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True, norm_first=True) for _ in range(2))
        self.last = nn.Linear(width, size)

    def forward(self, index):
        n = index.shape[1]
        x = self.tokens(index) + self.places(trt.arange(n))
        mask = trt.nn.Transformer.generate_square_subsequent_mask(n)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.last(x)


def learning(make, batch, lr, steps, dtype, scaled):
    """The mean loss of the last ten steps, from the same weights and data whatever the dtype."""
    trt.manual_seed(0)
    model = make()
    optimizer = trt.optim.AdamW(model.parameters(), lr=lr)
    scaler = trt.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=20, enabled=scaled)
    losses, scales = [], []
    for step in range(steps):
        x, y = batch(step)
        with trt.autocast("cpu", dtype=dtype or trt.bfloat16, enabled=dtype is not None):
            logits = model(x)
            loss = trt.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        trt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    return losses[0], sum(losses[-10:]) / 10, scales


@pytest.mark.parametrize("kind", ["cnn", "text"])
def test_half_types_converge_like_float32(kind):
    """float16 with scaling, whose first scale overflows, and bfloat16 reach the loss that float32 reaches."""
    trt.manual_seed(5)
    if kind == "cnn":
        images, labels = stripes(256)
        make, lr, steps = (lambda: convolutional(trt)), 0.01, 60

        def batch(step):
            at = (step * 64) % 256
            return images[at : at + 64], labels[at : at + 64]
    else:
        text = trt.tensor([(k * k + 3 * k // 2) % 17 for k in range(400)])
        make, lr, steps = Text, 0.01, 60

        def batch(step):
            rows = [(step * 37 + 41 * k) % 370 for k in range(16)]
            return trt.stack([text[r : r + 24] for r in rows]), trt.stack([text[r + 1 : r + 25] for r in rows])

    first, exact, _ = learning(make, batch, lr, steps, None, False)
    assert exact < 0.35 * first
    for dtype, scaled in ((trt.bfloat16, False), (trt.float16, True)):
        start, end, scales = learning(make, batch, lr, steps, dtype, scaled)
        assert abs(start - first) < 0.05 * first
        assert end < 1.25 * exact + 0.03, (dtype, end, exact)
        if scaled:
            assert min(scales) < 2.0**24 and scales[-1] >= 1.0, scales  # it has backed off
