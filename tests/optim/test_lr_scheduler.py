"""Schedules follow PyTorch's curves, warnings, state dicts and errors."""

from __future__ import annotations

import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite import optim

torch = pytest.importorskip("torch")

ours, theirs = optim.lr_scheduler, torch.optim.lr_scheduler
LENGTH = 40


def optimizer_of(lib, optim_module, name="SGD", lr=(0.4, 0.1)):
    groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": rate} for rate in lr]
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(optim_module, name)(groups, **options)


SCHEDULES = {
    "LambdaLR": lambda m, o: m.LambdaLR(o, lambda e: 0.95**e),
    "LambdaLR per group": lambda m, o: m.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: 0.5]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05),
    "StepLR": lambda m, o: m.StepLR(o, 7, gamma=0.5),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [3, 8, 8, 20], gamma=0.3),
    "ConstantLR": lambda m, o: m.ConstantLR(o, factor=0.25, total_iters=6),
    "LinearLR": lambda m, o: m.LinearLR(o, 0.2, 0.9, total_iters=9),
    "LinearLR default": lambda m, o: m.LinearLR(o),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, total_iters=12, power=1.7),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 10, eta_min=0.01),
    "CosineAnnealingLR odd": lambda m, o: m.CosineAnnealingLR(o, 7),
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 5),
    "CosineAnnealingWarmRestarts growing": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.02),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.01, 0.3, step_size_up=4, step_size_down=7),
    "CyclicLR triangular2": lambda m, o: m.CyclicLR(o, [0.01, 0.02], [0.3, 0.4], 5, mode="triangular2"),
    "CyclicLR exp_range": lambda m, o: m.CyclicLR(o, 0.01, 0.3, 5, mode="exp_range", gamma=0.97),
    "CyclicLR custom": lambda m, o: m.CyclicLR(o, 0.01, 0.3, 5, scale_fn=lambda x: 0.7**x, scale_mode="iterations"),
    "CyclicLR plain": lambda m, o: m.CyclicLR(o, 0.01, 0.3, 5, cycle_momentum=False),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, 0.5, total_steps=LENGTH),
    "OneCycleLR linear": lambda m, o: m.OneCycleLR(
        o, [0.5, 0.6], epochs=5, steps_per_epoch=8, anneal_strategy="linear"
    ),
    "OneCycleLR three phases": lambda m, o: m.OneCycleLR(o, 0.5, total_steps=LENGTH, three_phase=True, pct_start=0.4),
    "SequentialLR": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=5), m.CosineAnnealingLR(o, 20), m.ExponentialLR(o, 0.9)], [5, 25]
    ),
    "SequentialLR nested": lambda m, o: m.SequentialLR(
        o,
        [m.SequentialLR(o, [m.StepLR(o, 3), m.PolynomialLR(o, 9)], [6]), m.ConstantLR(o, 0.5, 3)],
        [12],
    ),
    "ChainedScheduler": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
}
SIMPLE = [n for n in SCHEDULES if n.split()[0] not in ("SequentialLR", "ChainedScheduler")]


def curve(lib, optim_module, scheduler_module, make, name="SGD", length=LENGTH, lr=(0.4, 0.1)):
    optimizer = optimizer_of(lib, optim_module, name, lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = make(scheduler_module, optimizer)
        rows = []
        for _ in range(length):
            rows.append([*map(float, scheduler.get_last_lr())])
            rows.append([float(group["lr"]) for group in optimizer.param_groups])
            rows.append([g.get("momentum", g.get("betas", (0,))[0]) for g in optimizer.param_groups])
            optimizer.step()
            scheduler.step()
    return rows, scheduler, optimizer


def flat(rows):
    return [x for row in rows for x in row]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_curve_equals_pytorchs(name, optimizer):
    mine, _, _ = curve(trt, optim, ours, SCHEDULES[name], optimizer)
    other, _, _ = curve(torch, torch.optim, theirs, SCHEDULES[name], optimizer)
    assert flat(mine) == pytest.approx(flat(other), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "custom" not in n and "Lambda" not in n])
def test_state_dict_resumes_pytorchs_schedule(name):
    make = SCHEDULES[name]
    _, reference, source = curve(torch, torch.optim, theirs, make, length=15)
    optimizer = optimizer_of(trt, optim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = make(ours, optimizer)
        scheduler.load_state_dict(reference.state_dict())
        optimizer.load_state_dict(source.state_dict())
        for _ in range(15):
            scheduler.step()
            reference.step()
            expected = [group["lr"] for group in source.param_groups]
            assert [group["lr"] for group in optimizer.param_groups] == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", [n for n in SIMPLE if "Cyclic" not in n and "OneCycle" not in n])
def test_resuming_by_last_epoch(name):
    def resumed(lib, optim_module, module):
        optimizer = optimizer_of(lib, optim_module)
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        make = SCHEDULES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            class Resumed:
                def __getattr__(self, attribute):
                    kind = getattr(module, attribute)
                    return lambda *args, **kwargs: kind(*args, **kwargs, last_epoch=6)

            scheduler = make(Resumed(), optimizer)
            rows = [[g["lr"] for g in optimizer.param_groups]]
            for _ in range(8):
                scheduler.step()
                rows.append([g["lr"] for g in optimizer.param_groups])
        return flat(rows)

    assert resumed(trt, optim, ours) == pytest.approx(resumed(torch, torch.optim, theirs), rel=1e-12)


@pytest.mark.parametrize("name", [n for n in SIMPLE if "Cyclic" not in n and "OneCycle" not in n])
def test_explicit_epoch_uses_the_closed_form(name):
    def jumped(lib, optim_module, module):
        optimizer = optimizer_of(lib, optim_module)
        scheduler = SCHEDULES[name](module, optimizer)
        rows = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in (3, 1, 12, 0):
                scheduler.step(epoch)
                rows.append(scheduler.get_last_lr())
        return flat(rows)

    assert jumped(trt, optim, ours) == pytest.approx(jumped(torch, torch.optim, theirs), rel=1e-12)


def test_fractional_epochs_of_warm_restarts():
    def fractions(lib, optim_module, module):
        scheduler = module.CosineAnnealingWarmRestarts(optimizer_of(lib, optim_module), 2, T_mult=2)
        rows = []
        for step in range(40):
            scheduler.step(step / 4)
            rows.append(scheduler.get_last_lr())
        return flat(rows)

    assert fractions(trt, optim, ours) == pytest.approx(fractions(torch, torch.optim, theirs), rel=1e-12)


PLATEAUS = [
    {"patience": 2},
    {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.1},
    {"patience": 1, "cooldown": 3, "factor": 0.5},
    {"mode": "max", "patience": 0, "min_lr": [0.05, 0.01]},
    {"patience": 1, "threshold_mode": "abs", "threshold": 0.05, "min_lr": 0.02},
]


@pytest.mark.parametrize("options", PLATEAUS)
def test_reduce_on_plateau(options):
    metrics = [1.0, 0.8, 0.85, 0.79, 0.79, 0.79, 0.79, 0.9, 0.9, 0.5, 0.5, 0.5, 0.49, 0.6, 0.6, 0.6, 0.6]

    def rates(lib, optim_module, module):
        optimizer = optimizer_of(lib, optim_module)
        scheduler = module.ReduceLROnPlateau(optimizer, **options)
        rows = []
        for metric in metrics:
            scheduler.step(lib.tensor(metric))
            rows.append(scheduler.get_last_lr())
        state = {k: v for k, v in scheduler.state_dict().items() if k != "_last_lr"}
        return flat(rows), state

    mine, other = rates(trt, optim, ours), rates(torch, torch.optim, theirs)
    assert mine[0] == pytest.approx(other[0], rel=1e-12)
    assert mine[1] == other[1]


def test_tensor_learning_rate_is_written_in_place():
    rate = trt.tensor(0.5, dtype=trt.float64)
    optimizer = optim.SGD([trt.zeros(1, requires_grad=True)], lr=rate)
    scheduler = ours.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25
    scheduler.get_last_lr()[0].fill_(9.0)
    assert rate.item() == 0.25


def test_order_of_the_two_steps_is_watched():
    optimizer = optimizer_of(trt, optim)
    scheduler = ours.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    optimizer = optimizer_of(trt, optim)
    scheduler = ours.StepLR(optimizer, 3)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
    optimizer = optimizer_of(trt, optim)
    scheduler = ours.StepLR(optimizer, 3)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden"):
        scheduler.step()


def test_get_lr_outside_a_step_warns():
    scheduler = ours.StepLR(optimizer_of(trt, optim), 3)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_lambda_objects_keep_their_state():
    class Factor:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    first = ours.LambdaLR(optimizer_of(trt, optim), [Factor(0.5), lambda e: 1.0])
    second = ours.LambdaLR(optimizer_of(trt, optim), [Factor(0.9), lambda e: 1.0])
    state = first.state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}, None]
    second.load_state_dict(state)
    assert second.lr_lambdas[0].base == 0.5


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda o: ours.StepLR(object(), 3), TypeError, "object is not an Optimizer"),
        (lambda o: ours.StepLR(o, 3, last_epoch=4), KeyError, "param 'initial_lr' is not specified"),
        (lambda o: ours.LambdaLR(o, [lambda e: 1.0]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (lambda o: ours.ConstantLR(o, factor=1.5), ValueError, "between 0 and 1"),
        (lambda o: ours.LinearLR(o, start_factor=0), ValueError, "Starting multiplicative factor"),
        (lambda o: ours.LinearLR(o, end_factor=2), ValueError, "Ending multiplicative factor"),
        (lambda o: ours.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0, but got 0"),
        (lambda o: ours.CosineAnnealingWarmRestarts(o, 1, T_mult=0), ValueError, "T_mult >= 1, but got 0"),
        (lambda o: ours.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: ours.SequentialLR(o, [ours.StepLR(o, 1)], [3]), ValueError, "one more than the number of milestone"),
        (lambda o: ours.SequentialLR(o, [ours.ReduceLROnPlateau(o)], []), ValueError, "does not support"),
        (
            lambda o: ours.ChainedScheduler([ours.StepLR(o, 1), ours.StepLR(optimizer_of(trt, optim), 1)]),
            ValueError,
            "belong to the same optimizer",
        ),
        (lambda o: ours.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: ours.ReduceLROnPlateau(o, mode="low"), ValueError, "mode low is unknown"),
        (lambda o: ours.CyclicLR(o, 0.1, 0.2, mode="square"), ValueError, "mode is invalid"),
        (lambda o: ours.CyclicLR(o, [0.1], 0.2), ValueError, "base_lr must have the same length"),
        (lambda o: ours.OneCycleLR(o, 0.1), ValueError, "total_steps OR"),
        (lambda o: ours.OneCycleLR(o, 0.1, total_steps=-1), ValueError, "positive integer total_steps, but got -1"),
        (lambda o: ours.OneCycleLR(o, 0.1, 5, pct_start=2.0), ValueError, "between 0 and 1 pct_start, but got 2.0"),
        (lambda o: ours.OneCycleLR(o, 0.1, 5, anneal_strategy="x"), ValueError, "instead got x"),
    ],
)
def test_bad_arguments(build, error, match):
    with pytest.raises(error, match=match):
        build(optimizer_of(trt, optim))


def test_one_cycle_ends():
    optimizer = optimizer_of(trt, optim)
    scheduler = ours.OneCycleLR(optimizer, 0.1, total_steps=3)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
