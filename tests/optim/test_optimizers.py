"""Optimizers follow PyTorch's trajectories, state dicts and errors."""

from __future__ import annotations

import copy
import itertools
import pickle
import random

import pytest

import tensorrt_lite as trt
from tensorrt_lite import optim

torch = pytest.importorskip("torch")

SHAPES = ((3, 4), (5,), (), (2, 3, 2))
STEPS = 20

VARIANTS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.02}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.02}),
    ("LBFGS", {"lr": 0.3, "max_iter": 4}),
    ("LBFGS", {"lr": 1.0, "max_iter": 5, "history_size": 3, "line_search_fn": "strong_wolfe"}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.1, "weight_decay": 0.02, "initial_accumulator_value": 0.3}),
    ("Adagrad", {"lr": 0.05, "maximize": True, "eps": 1e-3}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.02}),
    ("Adadelta", {"lr": 1.0, "maximize": True}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.6, "weight_decay": 0.02}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.6, "maximize": True}),
    ("Rprop", {"lr": 0.05}),
    ("Rprop", {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.05, "t0": 5, "lambd": 0.01}),
    ("ASGD", {"lr": 0.05, "weight_decay": 0.02, "maximize": True}),
    ("Adafactor", {"lr": 0.05}),
    ("Adafactor", {"lr": 0.05, "weight_decay": 0.1, "maximize": True, "eps": (1e-10, 1e-2), "d": 1.5}),
    ("NAdam", {"lr": 0.05, "momentum_decay": 0.01}),
    ("RAdam", {"lr": 0.05, "betas": (0.9, 0.95)}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.02, "maximize": True}),
]
for _name in ("NAdam", "RAdam"):
    for _decoupled, _maximize in itertools.product((False, True), repeat=2):
        VARIANTS.append(
            (_name, {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": _decoupled, "maximize": _maximize})
        )
for _name in ("Adam", "AdamW"):
    for _decay, _amsgrad, _maximize in itertools.product((0.0, 0.1), (False, True), (False, True)):
        VARIANTS.append(
            (
                _name,
                {
                    "lr": 0.05,
                    "betas": (0.8, 0.99),
                    "weight_decay": _decay,
                    "amsgrad": _amsgrad,
                    "maximize": _maximize,
                },
            )
        )
IDS = [f"{name}-{'-'.join(f'{k}={v}' for k, v in options.items())}" for name, options in VARIANTS]
ONE_EACH = dict(VARIANTS)
LOOPING = sorted(set(ONE_EACH) - {"LBFGS"})


def numbers(shape, rng):
    if not shape:
        return rng.uniform(-1, 1)
    return [numbers(shape[1:], rng) for _ in range(shape[0])]


def parameters(lib, seed=0, dtype="float64", shapes=SHAPES):
    rng = random.Random(seed)
    return [lib.tensor(numbers(s, rng), dtype=getattr(lib, dtype), requires_grad=True) for s in shapes]


def set_gradients(lib, params, seed, skip=()):
    """The same gradients on both sides; those in skip stay without one."""
    rng = random.Random(seed)
    for index, p in enumerate(params):
        values = numbers(tuple(p.shape), rng)
        p.grad = None if index in skip else lib.tensor(values, dtype=p.dtype)


def flat(value):
    return list(itertools.chain.from_iterable(map(flat, value))) if isinstance(value, (list, tuple)) else [value]


def assert_close(ours, theirs, tolerance=1e-9):
    assert flat(ours.detach().tolist()) == pytest.approx(flat(theirs.detach().tolist()), rel=tolerance, abs=tolerance)


def assert_same_params(ours, theirs, tolerance=1e-9):
    for p, q in zip(ours, theirs, strict=True):
        assert_close(p, q, tolerance)


def quartic_closure(lib, params, optimizer):
    """A loss that is not quadratic, so that a line search has work to do."""

    def closure():
        optimizer.zero_grad()
        loss = sum((((p - 0.3) ** 2).sum() + 0.5 * (p**4).sum()) for p in params)
        loss.backward()
        return loss

    return closure


def run(lib, make, params, steps=STEPS, start=0, optimizer=None):
    optimizer = optimizer or make(params)
    for step in range(start, start + steps):
        if type(optimizer).__name__ == "LBFGS":
            optimizer.step(quartic_closure(lib, params, optimizer))
        else:
            set_gradients(lib, params, 100 + step)
            optimizer.step()
    return optimizer


def pair(name, options):
    # foreach=False selects PyTorch's plain per-tensor formulas.
    extra = {} if name == "LBFGS" else {"foreach": False}
    return (
        lambda params: getattr(optim, name)(params, **options),
        lambda params: getattr(torch.optim, name)(params, **options, **extra),
    )


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_trajectory_equals_pytorchs(name, options):
    ours, theirs = parameters(trt), parameters(torch)
    make_ours, make_theirs = pair(name, options)
    mine, other = run(trt, make_ours, ours), run(torch, make_theirs, theirs)
    # Hyperparameters that PyTorch keeps in float32 tensors (ASGD's eta, NAdam's mu_product) bound the agreement.
    tolerance = 1e-7 if name in ("ASGD", "NAdam") else 1e-9
    assert_same_params(ours, theirs, tolerance)
    assert set(mine.state_dict()["state"]) == set(other.state_dict()["state"])
    for p, q in zip(ours, theirs, strict=True):
        entry, reference = mine.state.get(p, {}), other.state.get(q, {})
        assert set(entry) == set(reference)
        for key, value in reference.items():
            if isinstance(value, torch.Tensor):
                assert_close(trt.as_tensor(entry[key]), value, max(tolerance, 1e-7))
                if name != "LBFGS":
                    assert str(entry[key].dtype).split(".")[1] == str(value.dtype).split(".")[1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_float32_trajectory_is_within_1e_6(name):
    ours, theirs = parameters(trt, dtype="float32"), parameters(torch, dtype="float32")
    make_ours, make_theirs = pair(name, {"lr": 0.01, "weight_decay": 0.1})
    run(trt, make_ours, ours)
    run(torch, make_theirs, theirs)
    assert_same_params(ours, theirs, 1e-6)


@pytest.mark.parametrize("name", [n for n in LOOPING if n != "Adafactor"])
def test_complex_parameters_are_updated_as_pairs(name):
    def build(lib):
        return [lib.tensor([1 + 2j, -0.5 + 0.25j, 3j], dtype=lib.complex128, requires_grad=True)]

    def grads(lib, params, step):
        params[0].grad = lib.tensor([0.1 * step + 1j, -0.3j * step, 0.2 + 0.1j], dtype=lib.complex128)

    ours, theirs = build(trt), build(torch)
    options = {"lr": 0.05, **({"momentum": 0.9} if name == "SGD" else {})}
    make_ours, make_theirs = pair(name, options)
    mine, other = make_ours(ours), make_theirs(theirs)
    for step in range(5):
        grads(trt, ours, step)
        grads(torch, theirs, step)
        mine.step()
        other.step()
    mixed = [(c.real, c.imag) for c in ours[0].tolist()]
    expected = [(c.real, c.imag) for c in theirs[0].tolist()]
    assert flat(mixed) == pytest.approx(flat(expected), rel=1e-6)


@pytest.mark.parametrize("name", LOOPING)
def test_state_dict_goes_to_pytorch_and_back(name):
    options = ONE_EACH[name]
    make_ours, make_theirs = pair(name, options)
    ours, theirs = parameters(trt), parameters(torch)
    mine, other = run(trt, make_ours, ours, 5), run(torch, make_theirs, theirs, 5)

    saved = copy.deepcopy(mine.state_dict())
    reference = other.state_dict()
    assert list(saved) == list(reference)
    assert saved["param_groups"] == [{**g, "foreach": None} for g in reference["param_groups"]]

    def convert(value, lib):
        if isinstance(value, dict):
            return {k: convert(v, lib) for k, v in value.items()}
        if isinstance(value, (trt.Tensor, torch.Tensor)):
            return lib.tensor(value.tolist(), dtype=getattr(lib, str(value.dtype).split(".")[1]))
        return value

    continued, from_us = parameters(trt, seed=7), parameters(torch, seed=7)
    with trt.no_grad():
        for p, q, source in zip(continued, from_us, theirs, strict=True):
            p.copy_(trt.tensor(source.tolist(), dtype=p.dtype))
            q.data.copy_(source)
    mine2, other2 = make_ours(continued), make_theirs(from_us)
    mine2.load_state_dict({"state": convert(reference["state"], trt), "param_groups": reference["param_groups"]})
    other2.load_state_dict({"state": convert(saved["state"], torch), "param_groups": saved["param_groups"]})
    run(trt, None, continued, 5, start=5, optimizer=mine2)
    run(torch, None, from_us, 5, start=5, optimizer=other2)
    assert_same_params(continued, from_us, 1e-7)


def test_loading_casts_state_to_the_parameters_dtype_but_not_the_step():
    params = parameters(trt, dtype="float32")
    optimizer = run(trt, optim.Adam, params, 2)
    wide = parameters(trt, dtype="float64")
    loaded = optim.Adam(wide)
    loaded.load_state_dict(optimizer.state_dict())
    entry = loaded.state[wide[0]]
    assert entry["exp_avg"].dtype == trt.float64
    assert entry["step"].dtype == trt.float32
    set_gradients(trt, wide, 1)
    loaded.step()
    assert entry["step"].item() == 3


def test_numeric_steps_of_old_state_dicts_load():
    params = parameters(trt)
    optimizer = run(trt, optim.Adam, params, 3)
    state = copy.deepcopy(optimizer.state_dict())
    for entry in state["state"].values():
        entry["step"] = 3
    fresh = optim.Adam(params)
    fresh.load_state_dict(state)
    run(trt, None, params, 1, optimizer=fresh)
    assert fresh.state[params[0]]["step"].item() == 4


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_gradients_may_come_and_go(name):
    options = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    make_ours, make_theirs = pair(name, options)
    ours, theirs = parameters(trt), parameters(torch)
    mine, other = make_ours(ours), make_theirs(theirs)
    for step, skip in enumerate([(), (0,), (0, 2), (), (1,), (0, 1, 2, 3), (3,), ()]):
        for lib, params, optimizer in ((trt, ours, mine), (torch, theirs, other)):
            set_gradients(lib, params, step, skip)
            optimizer.step()
        assert_same_params(ours, theirs)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_options_may_change_between_steps(name):
    ours, theirs = parameters(trt), parameters(torch)
    make_ours, make_theirs = pair(name, {"lr": 0.1})
    mine, other = make_ours(ours), make_theirs(theirs)
    changes = [{}, {"lr": 0.01}, {"momentum": 0.9} if name == "SGD" else {"weight_decay": 0.1}, {}, {"momentum": 0}, {}]
    for step, change in enumerate(changes):
        for lib, params, optimizer in ((trt, ours, mine), (torch, theirs, other)):
            optimizer.param_groups[0].update(change)
            set_gradients(lib, params, step)
            optimizer.step()
        assert_same_params(ours, theirs)


def test_replaced_state_is_seen_by_the_next_step():
    p = parameters(trt)[:1]
    optimizer = optim.SGD(p, lr=1.0, momentum=0.5)
    for _ in range(2):
        set_gradients(trt, p, 3)
        optimizer.step()
    optimizer.state[p[0]]["momentum_buffer"] = trt.zeros_like(p[0])
    before, grad = p[0].detach().clone(), p[0].grad
    optimizer.step()
    assert_close(p[0], before - grad)
    optimizer.state[p[0]] = {"momentum_buffer": trt.ones_like(p[0])}
    before = p[0].detach().clone()
    optimizer.step()
    assert_close(p[0], before - (grad + 0.5))
    optimizer.state.clear()
    before = p[0].detach().clone()
    optimizer.step()
    assert_close(p[0], before - grad)


def test_replaced_parameter_in_a_group_is_seen_by_the_next_step():
    params = parameters(trt)
    optimizer = run(trt, lambda ps: optim.SGD(ps, lr=1.0, momentum=0.5), params, 2)
    swapped = parameters(trt, seed=9)[0]
    old = optimizer.param_groups[0]["params"][0]
    optimizer.param_groups[0]["params"][0] = swapped
    before, old_before = swapped.detach().clone(), old.detach().clone()
    set_gradients(trt, optimizer.param_groups[0]["params"], 4)
    optimizer.step()
    assert_close(swapped, before - swapped.grad)
    assert_close(old, old_before)


def test_parameters_of_two_dtypes_share_a_group():
    def build(lib):
        return parameters(lib, 1, "float64")[:2] + parameters(lib, 2, "float32")[:2]

    ours, theirs = build(trt), build(torch)
    make_ours, make_theirs = pair("SGD", {"lr": 0.1, "momentum": 0.9})
    run(trt, make_ours, ours)
    run(torch, make_theirs, theirs)
    assert_same_params(ours, theirs, 1e-6)


def test_groups_have_their_own_options():
    def build(lib, params):
        return lib.SGD([{"params": params[:2]}, {"params": params[2], "lr": 0.5}], lr=0.1, momentum=0.9)

    ours, theirs = parameters(trt), parameters(torch)
    mine, other = build(optim, ours), build(torch.optim, theirs)
    mine.add_param_group({"params": ours[3:], "lr": 0.01})
    other.add_param_group({"params": theirs[3:], "lr": 0.01})
    run(trt, None, ours, optimizer=mine)
    run(torch, None, theirs, optimizer=other)
    assert_same_params(ours, theirs)
    assert repr(mine) == repr(other)


def test_named_parameters_keep_their_names():
    params = parameters(trt)
    optimizer = optim.SGD([(f"p{i}", p) for i, p in enumerate(params)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["p0", "p1", "p2", "p3"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["p0", "p1", "p2", "p3"]
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("p0", params[0]), params[1]], lr=0.1)
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": parameters(trt, seed=3)})


def test_tensor_learning_rate():
    ours, theirs = parameters(trt), parameters(torch)
    run(trt, lambda ps: optim.Adam(ps, lr=trt.tensor(0.05)), ours)
    run(torch, lambda ps: torch.optim.Adam(ps, lr=torch.tensor(0.05), foreach=False), theirs)
    assert_same_params(ours, theirs, 1e-7)


def test_closure_runs_with_gradients_on_and_its_loss_is_returned():
    p = parameters(trt)[:1]
    optimizer = optim.SGD(p, lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p[0] ** 2).sum()
        loss.backward()
        return loss

    expected = (p[0].detach() ** 2).sum()
    with trt.no_grad():
        assert_close(optimizer.step(closure), expected)
    assert p[0].grad is not None


def test_step_does_not_record_a_graph():
    p = parameters(trt)[:1]
    optimizer = run(trt, lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9), p, 3)
    assert p[0].grad_fn is None
    assert p[0].requires_grad
    assert not optimizer.state[p[0]]["momentum_buffer"].requires_grad


def test_zero_grad_drops_or_fills():
    params = parameters(trt)
    optimizer = optim.SGD(params, lr=0.1)
    set_gradients(trt, params, 1)
    optimizer.zero_grad(set_to_none=False)
    assert all(set(flat(p.grad.tolist())) == {0.0} for p in params)
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


def test_hooks_run_in_order_and_may_replace_arguments():
    params = parameters(trt)
    set_gradients(trt, params, 1)
    optimizer = optim.SGD(params, lr=0.1)
    calls = []
    handles = [
        optim.optimizer.register_optimizer_step_pre_hook(lambda *a: calls.append("global pre")),
        optimizer.register_step_pre_hook(lambda *a: calls.append("pre")),
        optimizer.register_step_post_hook(lambda *a: calls.append("post")),
        optim.optimizer.register_optimizer_step_post_hook(lambda *a: calls.append("global post")),
    ]
    optimizer.step()
    assert calls == ["global pre", "pre", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 4
    with optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((lambda: 42,), {})):
        assert optimizer.step() == 42
    with (
        optimizer.register_step_pre_hook(lambda *a: 1),
        pytest.raises(RuntimeError, match="must return None or a tuple"),
    ):
        optimizer.step()


def test_state_dict_hooks():
    optimizer = optim.SGD(parameters(trt), lr=0.1)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("pre"))
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: {k: v for k, v in state.items() if k != "extra"})
    optimizer.register_load_state_dict_post_hook(lambda opt: seen.append("loaded"))
    state = optimizer.state_dict()
    assert state["extra"] == 1
    optimizer.load_state_dict(state)
    assert seen == ["pre", "loaded"]


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["deepcopy", "pickle"])
def test_copies_continue_alike(copier):
    params = parameters(trt)
    optimizer = run(trt, lambda ps: optim.Adam(ps, lr=0.1), params, 3)
    twin = copier(optimizer)
    twins = twin.param_groups[0]["params"]
    run(trt, None, params, 3, optimizer=optimizer)
    run(trt, None, twins, 3, optimizer=twin)
    assert_same_params(params, twins, 0)
    assert twins[0] is not params[0]


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda p: optim.SGD(p[0], lr=0.1), TypeError, "iterable of Tensors or dicts"),
        (lambda p: optim.SGD([1.0], lr=0.1), TypeError, "can only optimize Tensors"),
        (lambda p: optim.SGD([{"params": set(p)}], lr=0.1), TypeError, "ordered collections"),
        (lambda p: optim.SGD([p[0] * 2], lr=0.1), ValueError, "non-leaf"),
        (lambda p: optim.SGD([{"params": p}, {"params": p[:1]}], lr=0.1), ValueError, "more than one parameter group"),
        (lambda p: optim.SGD(p, lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD(p, momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: optim.SGD(p, weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: optim.SGD(p, nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: optim.SGD(p, fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda p: optim.Adam(p, eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.Adam(p, betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda p: optim.Adam(p, lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda p: optim.Adadelta(p, rho=2), ValueError, "Invalid rho value: 2"),
        (lambda p: optim.Rprop(p, etas=(1.1, 1.2)), ValueError, "Invalid eta values: 1.1, 1.2"),
        (lambda p: optim.LBFGS([{"params": p[:1]}, {"params": p[1:]}]), ValueError, "parameter groups"),
        (lambda p: optim.Adafactor(p, d=0.5), ValueError, "Clipping threshold"),
    ],
)
def test_bad_arguments(build, error, match):
    with pytest.raises(error, match=match):
        build(parameters(trt))


def test_state_dict_of_other_groups_is_refused():
    params = parameters(trt)
    optimizer = optim.SGD(params, lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict(optim.SGD([{"params": params[:1]}, {"params": params[1:]}]).state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict(optim.SGD(params[:2]).state_dict())


def test_defaults_equal_pytorchs():
    for name in ONE_EACH:
        mine = getattr(optim, name)(parameters(trt)).defaults
        assert mine == getattr(torch.optim, name)(parameters(torch)).defaults, name


def test_a_user_defined_optimizer_gets_hooks_and_state():
    class SignDescent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with trt.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        self.state[p]["count"] = self.state[p].get("count", 0) + 1
                        p.sub_(p.grad.sign(), alpha=group["lr"])

    params = parameters(trt)
    optimizer = SignDescent(params, 0.5)
    called = []
    optimizer.register_step_post_hook(lambda *a: called.append(1))
    set_gradients(trt, params, 1)
    before = params[0].detach().clone()
    optimizer.step()
    assert_close(params[0], before - 0.5 * params[0].grad.sign())
    assert called == [1]
    assert optimizer.state_dict()["state"][0] == {"count": 1}
