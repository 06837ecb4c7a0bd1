"""Averaged models, their schedule and the renewal of batch statistics agree with PyTorch."""

from __future__ import annotations

import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn, optim
from tensorrt_lite.optim import swa_utils

torch = pytest.importorskip("torch")
reference = torch.optim.swa_utils

SIDES = ((trt, nn, swa_utils), (torch, torch.nn, reference))

AVERAGES = {
    "equal": lambda m: {},
    "ema": lambda m: {"avg_fn": m.get_ema_avg_fn(0.9)},
    "ema lists": lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.9)},
    "equal single": lambda m: {"avg_fn": m.get_swa_avg_fn()},
    "equal lists": lambda m: {"multi_avg_fn": m.get_swa_multi_avg_fn()},
    "custom": lambda m: {"avg_fn": lambda average, current, count: 0.25 * average + 0.75 * current},
}


def model_of(lib, modules, start):
    model = modules.Sequential(modules.Linear(2, 3), modules.BatchNorm1d(3))
    with lib.no_grad():
        for index, p in enumerate(model.parameters()):
            p.copy_(lib.arange(p.numel(), dtype=p.dtype).view(p.shape) * 0.1 + index + start)
    return model


def values(model):
    return [x for p in model.parameters() for x in p.detach().reshape(-1).tolist()]


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("name", AVERAGES)
def test_averages(name, use_buffers):
    if use_buffers and name == "equal lists":
        pytest.skip("PyTorch divides no integer buffers here")
    results = []
    for lib, modules, utils in SIDES:
        averaged = utils.AveragedModel(model_of(lib, modules, 0), use_buffers=use_buffers, **AVERAGES[name](utils))
        for step in range(4):
            model = model_of(lib, modules, step * step)
            model[1].running_mean.fill_(float(step))
            averaged.update_parameters(model)
        buffers = [x for b in averaged.module.buffers() for x in b.reshape(-1).tolist()]
        results.append((values(averaged), buffers, averaged.n_averaged.item(), sorted(averaged.state_dict())))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    assert results[0][1] == pytest.approx(results[1][1], rel=1e-5)
    assert results[0][2:] == results[1][2:]


def test_averaged_model_runs_and_is_a_copy():
    model = model_of(trt, nn, 1)
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    model.eval()
    averaged.eval()
    x = trt.ones(4, 2)
    assert averaged(x).tolist() == model(x).tolist()
    with trt.no_grad():
        next(model.parameters()).fill_(0.0)
    assert averaged(x).tolist() != model(x).tolist()
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=1, multi_avg_fn=2)
    with pytest.raises(ValueError, match="Invalid decay value 1.5"):
        swa_utils.get_ema_avg_fn(1.5)


def test_update_bn():
    results = []
    for lib, modules, utils in SIDES:
        model = model_of(lib, modules, 0)
        model.eval()
        batches = [lib.arange(8.0).view(4, 2) * scale for scale in (1, 2, 3)]
        utils.update_bn([(batch, "label") for batch in batches], model)
        assert not model.training
        assert model[1].momentum == 0.1
        results.append(model[1].running_mean.tolist() + model[1].running_var.tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-5)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_swalr(strategy, epochs):
    results = []
    for lib, optim_module, utils in ((trt, optim, swa_utils), (torch, torch.optim, reference)):
        groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.5, 0.1)]
        optimizer = optim_module.SGD(groups, lr=0.1)
        scheduler = utils.SWALR(optimizer, [0.05, 0.2], anneal_epochs=epochs, anneal_strategy=strategy)
        rates = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(8):
                scheduler.step()
                rates += scheduler.get_last_lr()
        results.append(rates)
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_swalr_refuses_unknown_options():
    optimizer = optim.SGD([trt.zeros(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match="instead got square"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="square")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got -1"):
        swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)
