"""Steps with `differentiable=True`: gradients to initial values, gradients, rates and states, beside PyTorch's.

PyTorch writes states in place, and its graphs refuse several steps of some rules, or a rate that requires a gradient.
There the gradients are compared with finite differences.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from decimal import Context, Decimal

import pytest

import tensorrt_lite as trt
from tensorrt_lite import optim

torch = pytest.importorskip("torch")

START = [0.5, -1.0, 2.0, 0.3]
GRADIENTS = ([1.0, -2.0, 0.5, 0.25], [0.4, -1.0, -0.75, 0.5], [-0.3, 2.0, 0.5, 1.0])
WEIGHTS = [1.0, 2.0, 3.0, 4.0]

# Rules and options with which PyTorch differentiates three steps.
RECORDED = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"foreach": True}),
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1, "maximize": True}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.6, 0.7)}),
    ("AdamW", {}),
    ("AdamW", {"maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.3, 0.4), "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {"t0": 1, "lambd": 0.1}),
    ("ASGD", {"weight_decay": 0.1, "maximize": True}),
]
# Those with which it differentiates one.
FIRST_STEP_ALONE = [
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"amsgrad": True, "maximize": True}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"maximize": True}),
]
RATES = {
    "number": lambda T: 0.1,
    "tensor": lambda T: T.tensor(0.1, dtype=T.float64),
    "required": lambda T: T.tensor(0.1, dtype=T.float64, requires_grad=True),
    "required, one dimension": lambda T: T.tensor([0.1], dtype=T.float64, requires_grad=True),
}


def tensor(T, values, dtype="float64"):
    if dtype == "complex128" and isinstance(values, list):
        values = [complex(value, 0.3 - value) for value in values]
    return T.tensor(values, dtype=getattr(T, dtype), requires_grad=True)


def outcome(T, name, steps=3, dtype="float64", state=None, **options):
    """Values after the steps and every gradient of a weighted sum of them; options: built by `options[key](T)` if callable."""
    options = {key: value(T) if callable(value) else value for key, value in options.items()}
    start = tensor(T, START, dtype)
    gradients = [tensor(T, values, dtype) for values in GRADIENTS[:steps]]
    p = start.clone()
    optimizer = getattr(T.optim, name)([p], differentiable=True, **options)
    leaves = {key: make(T) for key, make in (state or {}).items()}
    if leaves:
        optimizer.state[p].update({key: leaf.clone() for key, leaf in leaves.items()})
    for gradient in gradients:
        p.grad = gradient * 1.5 + 0.1 * start
        optimizer.step()
    assert optimizer.param_groups[0]["params"][0] is p
    loss = (p * T.tensor(WEIGHTS, dtype=getattr(T, dtype))).sum()
    (loss.abs() if loss.is_complex() else loss).backward()
    values = [p, start.grad, *(gradient.grad for gradient in gradients)]
    for option in options.values():
        for value in option if isinstance(option, tuple) else (option,):
            if isinstance(value, T.Tensor) and value.requires_grad:
                values.append(value.grad)
    values += [leaf.grad for leaf in leaves.values() if leaf.requires_grad]
    values += [value for _, value in sorted(optimizer.state[p].items())]
    return [None if value is None else value.detach().tolist() for value in values]


def assert_same(name, **options):
    mine, theirs = outcome(trt, name, **options), outcome(torch, name, **options)
    assert len(mine) == len(theirs)
    dtype = trt.complex128 if "dtype" in options else trt.float64
    # Counters and products of the state are float32; rounded in another order, they show.
    rtol = 1e-6 if name in ("Adam", "AdamW", "NAdam") else 1e-9
    for value, wanted in zip(mine, theirs, strict=True):
        if wanted is None:
            assert value is None
        else:
            trt.testing.assert_close(trt.tensor(value, dtype=dtype), trt.tensor(wanted, dtype=dtype), rtol=rtol, atol=rtol)


def pytorch_takes(name, options, rate):
    """Whether PyTorch differentiates several steps with a rate that requires a gradient."""
    if "required" not in rate:
        return True
    if name == "SGD":
        return not options.get("foreach") and (not options.get("momentum") or options.get("nesterov"))
    return name in ("Adam", "AdamW", "RAdam", "ASGD")


@pytest.mark.parametrize(
    ("name", "options", "rate"),
    [(name, options, rate) for (name, options), rate in itertools.product(RECORDED, RATES) if pytorch_takes(name, options, rate)],
)
def test_three_steps(name, options, rate):
    assert_same(name, lr=RATES[rate], **options)


@pytest.mark.parametrize(("name", "options"), FIRST_STEP_ALONE)
def test_the_first_step(name, options):
    assert_same(name, steps=1, lr=0.1, **options)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "ASGD"])
def test_complex_parameters(name):
    assert_same(name, steps=2, dtype="complex128", lr=0.1, weight_decay=0.1)


def number(value, **options):
    return lambda T: T.tensor(value, dtype=T.float64, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"weight_decay": number(0.1, requires_grad=True)}),
        ("SGD", {"lr": number(0.1, requires_grad=True), "weight_decay": number(0.1)}),
        ("Adam", {"weight_decay": number(0.1, requires_grad=True)}),
        ("AdamW", {"lr": number(0.1, requires_grad=True), "weight_decay": number(0.1, requires_grad=True)}),
        (
            "Adam",
            {
                "lr": number(0.1),
                "betas": lambda T: (number(0.8, requires_grad=True)(T), number(0.7, requires_grad=True)(T)),
            },
        ),
    ],
)
def test_decay_and_betas_as_tensors(name, options):
    assert_same(name, **{"lr": 0.1, **options})


def ones(scale):
    return lambda T: (T.tensor(WEIGHTS, dtype=T.float64) * scale).requires_grad_()


def count(value):
    return lambda T: T.tensor(value)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("SGD", {"momentum_buffer": ones(0.3)}),
        ("Adam", {"step": count(5.0), "exp_avg": ones(0.3), "exp_avg_sq": ones(0.2), "max_exp_avg_sq": ones(0.1)}),
        (
            "RMSprop",
            {"step": count(5.0), "square_avg": ones(2.0), "grad_avg": ones(0.1), "momentum_buffer": ones(0.3)},
        ),
        ("Adagrad", {"step": count(5.0), "sum": ones(0.3)}),
        ("Adadelta", {"step": count(5.0), "square_avg": ones(0.3), "acc_delta": ones(0.2)}),
        ("NAdam", {"step": count(5.0), "mu_product": count(0.5), "exp_avg": ones(0.3), "exp_avg_sq": ones(0.2)}),
        ("RAdam", {"step": count(5.0), "exp_avg": ones(0.3), "exp_avg_sq": ones(0.2)}),
        ("Adamax", {"step": count(5.0), "exp_avg": ones(0.3), "exp_inf": ones(0.2)}),
        ("Rprop", {"step": count(5.0), "prev": ones(0.3), "step_size": ones(0.2)}),
        ("ASGD", {"step": count(5.0), "eta": count(0.125), "mu": count(0.5), "ax": ones(0.3)}),
    ],
)
def test_gradients_reach_the_state(name, state):
    options = {
        "SGD": {"momentum": 0.9, "dampening": 0.3},
        "Adam": {"amsgrad": True},
        "RMSprop": {"centered": True, "momentum": 0.9},
    }
    assert_same(name, steps=1, lr=0.1, state=state, **options.get(name, {}))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name, options in RECORDED + FIRST_STEP_ALONE
        # The first momentum buffer is a copy without history, and so is ASGD's rate.
        if name != "ASGD" and not options.get("momentum")
    ],
)
def test_gradients_are_those_of_finite_differences(name, options):
    def updated(start, lr, *gradients):
        p = start.clone()
        optimizer = getattr(optim, name)([p], lr=lr, differentiable=True, **options)
        for gradient in gradients:
            p.grad = gradient * 1.5
            optimizer.step()
        return p

    # Numbers away from the kinks of Rprop, Adamax and AMSGrad. The counters' float32 rounds values alone.
    inputs = [tensor(trt, START), tensor(trt, 0.1), *(tensor(trt, values) for values in GRADIENTS)]
    trt.autograd.gradcheck(updated, inputs, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options"), [("SGD", {"momentum": 0.9}), ("RMSprop", {"momentum": 0.9, "centered": True})]
)
def test_rates_with_momentum(name, options):
    def updated(lr):
        p = tensor(trt, START).clone()
        optimizer = getattr(optim, name)([p], lr=lr, differentiable=True, **options)
        for values in GRADIENTS:
            p.grad = trt.tensor(values, dtype=trt.float64) + p.clone()
            optimizer.step()
        return p

    trt.autograd.gradcheck(updated, [tensor(trt, 0.1)], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, options in RECORDED + FIRST_STEP_ALONE if "foreach" not in options]
)
def test_values_are_those_of_ordinary_steps(name, options):
    results = []
    for differentiable in (False, True):
        p = trt.tensor(START, dtype=trt.float64)
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=differentiable, **options)
        for values in GRADIENTS:
            p.grad = trt.tensor(values, dtype=trt.float64)
            optimizer.step()
        results.append((p, optimizer.state_dict()["state"]))
    # Adam's corrections come from a float32 counter, as in PyTorch.
    trt.testing.assert_close(results[1], results[0], rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_sparse_gradients(name):
    results = []
    for T in (trt, torch):
        start = tensor(T, START)
        p = start.clone()
        optimizer = getattr(T.optim, name)([p], lr=0.1, differentiable=True)
        p.grad = T.sparse_coo_tensor([[3, 1, 3]], T.tensor([1.0, 2.0, 0.5], dtype=T.float64), (4,))
        optimizer.step()
        p.sum().backward()
        results.append((p.tolist(), start.grad.tolist()))
    assert results[0][0] == pytest.approx(results[1][0])
    assert results[0][1] == results[1][1]


def test_hypergradient_of_a_training_loop():
    """A rate is learned through five steps of another model's training."""
    results = []
    for T in (trt, torch):
        lr = tensor(T, 0.05)
        w = T.zeros(3, dtype=T.float64, requires_grad=True).clone()
        x = T.arange(12, dtype=T.float64).reshape(4, 3) / 10
        optimizer = T.optim.Adam([w], lr=lr, differentiable=True)

        def closure(T=T, w=w, x=x, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x @ w - 1) ** 2).mean()
            (w.grad,) = T.autograd.grad(loss, w, create_graph=True)
            return loss

        with T.no_grad():
            losses = [optimizer.step(closure) for _ in range(5)]
        losses[-1].backward()
        results.append((losses[-1].item(), lr.grad.item()))
    # Adam's corrections are float32, as PyTorch's. Their square roots are rounded correctly here; PyTorch's vectors of AVX-512 are an ulp (2 ** -23) off for a
    # number in five, and each of the five steps is as long as that number says.
    assert results[0] == pytest.approx(results[1], rel=5 * 2**-23)
    assert results[0][1] != 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_square_roots_are_rounded_correctly(dtype):
    """What the comparison above rests on: beside the root in twice the precision, of many numbers and of single ones."""
    numbers = trt.arange(1, 20001, dtype=getattr(trt, dtype)) / 20011
    steps = numbers.sqrt().tolist()
    exact = [Decimal(x).sqrt(Context(prec=60)) for x in numbers.tolist()]
    rounded = trt.tensor([float(x) for x in exact], dtype=getattr(trt, dtype)).tolist()
    assert steps == rounded
    assert [trt.tensor(x, dtype=getattr(trt, dtype)).sqrt().item() for x in numbers.tolist()[::500]] == rounded[::500]


NAMES = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Rprop", "ASGD", "Adamax"]


@pytest.mark.parametrize("T", [trt, torch])
@pytest.mark.parametrize("name", NAMES)
def test_refusals(name, T):
    kind = getattr(T.optim, name)
    leaf = tensor(T, START)
    leaf.grad = leaf.detach()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        kind([leaf], differentiable=True).step()
    if name != "SGD":
        p = leaf.clone()
        p.grad = leaf.detach()
        with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
            kind([p], foreach=True, differentiable=True).step()
    if name in ("SGD", "Adam", "AdamW", "Adagrad"):
        for foreach in (None, True):
            with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
                kind([leaf], fused=True, foreach=foreach, differentiable=True)
    if name not in ("SGD", "Adagrad"):
        p = leaf.clone()
        p.grad = leaf.detach().to_sparse()
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            kind([p], differentiable=True).step()


@pytest.mark.parametrize("T", [trt, torch])
def test_a_counter_that_requires_a_gradient_is_refused(T):
    p = tensor(T, START).clone()
    p.grad = p.detach()
    optimizer = T.optim.Adam([p], differentiable=True)
    step = T.tensor(1.0, requires_grad=True)
    optimizer.state[p].update(step=step, exp_avg=T.zeros_like(p), exp_avg_sq=T.zeros_like(p))
    with pytest.raises(RuntimeError, match="`requires_grad` is not supported for `step`"):
        optimizer.step()


def test_groups_closures_and_parameters_without_gradient():
    start = tensor(trt, START)
    p, q, idle = start.clone(), start.clone(), start.clone()
    groups = [{"params": [p, idle]}, {"params": [q], "lr": 0.5}]
    optimizer = optim.SGD(groups, lr=0.1, differentiable=True)
    p.grad, q.grad = start * 2, start * 2
    seen = []
    with trt.no_grad():
        assert optimizer.step(lambda: seen.append(trt.is_grad_enabled()) or 7) == 7
    assert seen == [True]
    assert idle.equal(start)
    (p + q).sum().backward()
    assert start.grad.tolist() == pytest.approx([0.8 + 0.0] * 4)
    assert optimizer.state_dict()["state"] == {}


def test_ordinary_steps_do_not_load_the_rules():
    code = """
import sys
import tensorrt_lite as trt
for name in ("SGD", "Adam", "RMSprop"):
    p = trt.ones(2)
    p.grad = trt.ones(2)
    getattr(trt.optim, name)([p]).step()
assert "tensorrt_lite.optim._differentiable" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("name", "rate"), list(itertools.product(("Rprop", "ASGD"), ("tensor", "required, one dimension"))))
def test_ordinary_steps_take_rates_of_one_dimension(name, rate):
    p = trt.tensor(START, dtype=trt.float64)
    p.grad = trt.tensor(GRADIENTS[0], dtype=trt.float64)
    getattr(optim, name)([p], lr=RATES[rate](trt)).step()
    assert not p.requires_grad
    assert not p.equal(trt.tensor(START, dtype=trt.float64))
