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
