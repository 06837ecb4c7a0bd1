"""Steps that autograd records (`differentiable=True`), for gradients through an update, to initial values and rates.

A rule is a function of values to values: it takes the parameter, the gradient and the state, and returns the new
parameter and the state entries it replaces. Nothing that the graph has saved is written over, so any number of steps
can be differentiated. `optimizer.py` imports this module when the first such step is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite.autograd.grad_mode import no_grad

from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .asgd import ASGD
from .nadam import NAdam
from .optimizer import FusedOptimizer, Optimizer, _scalar, _sparse_refusal, _to_float
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor

    Updated = tuple[Tensor, dict[str, Tensor]]
    Rule = Callable[[Tensor, Tensor, dict[str, Any], dict[str, Any], Any], Updated]


def step(optimizer: Optimizer) -> None:
    """One recorded step of all parameters that have a gradient.

    Parameters are written in place and keep their identity; entries of the state, but counters, are replaced. Raises
    AssertionError for `foreach`, RuntimeError for leaves that require gradients, counters that do, and sparse gradients
    of rules that take none.
    """
    rule = next(_RULES[kind] for kind in type(optimizer).__mro__ if kind in _RULES)
    with enable_grad():
        for group in optimizer.param_groups:
            # SGD's lists are plain arithmetic, which PyTorch records.
            if group.get("foreach") and rule is not _sgd:
                raise AssertionError("_foreach ops don't support autograd")
            for p in group["params"]:
                if p.grad is not None:
                    _update(rule, p, _dense(optimizer, group, p.grad), _state_of(optimizer, group, p), group)


def _dense(optimizer: Any, group: dict[str, Any], grad: Tensor) -> Tensor:
    if not grad.is_sparse:
        return grad
    if not optimizer._takes_sparse:
        raise RuntimeError(_sparse_refusal(type(optimizer)))
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    # Where a sparse gradient has no element, the rules that take one change nothing, as for a zero.
    return grad.to_dense()


def _state_of(optimizer: Any, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
    """The state of p, with this step counted."""
    if isinstance(optimizer, SGD):
        # The first buffer is the first gradient: the rule makes it.
        return optimizer.state[p] if group["momentum"] != 0 else {}
    state = optimizer.state[p]
    with no_grad():
        if isinstance(optimizer, FusedOptimizer):
            optimizer._init_state(group, p, optimizer.state)
        elif not state:
            state.update(optimizer._init_state(p, group))
    if state["step"].requires_grad:
        raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
    state["step"].add_(1)
    return state


def _update(rule: Rule, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Apply the rule to p and its state; a complex parameter is updated as the pair of its parts."""
    lr = _scalar(group["lr"])
    if group["maximize"]:
        grad = -grad
    # What the graph saves of p must not be p itself, which is written below.
    value, operands = p.clone(), state
    if p.is_complex():
        value, grad = trt.view_as_real(value), trt.view_as_real(grad)
        operands = {
            k: trt.view_as_real(v) if isinstance(v, trt.Tensor) and v.is_complex() else v for k, v in state.items()
        }
    weight_decay = _scalar(group.get("weight_decay", 0))
    if weight_decay != 0:
        if group.get("decoupled_weight_decay"):
            value = value * (1 - lr * weight_decay)
        else:
            grad = grad + value * weight_decay
    value, replaced = rule(value, grad, operands, group, lr)
    if p.is_complex():
        value = trt.view_as_complex(value)
        replaced = {k: trt.view_as_complex(v) for k, v in replaced.items()}
    p.copy_(value)
    state.update(replaced)


def _average(old: Tensor, new: Tensor, decay: Any) -> Tensor:
    """The exponential moving average, for a decay that may be a tensor."""
    return old * decay + new * (1 - decay)


def _sgd(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    momentum = group["momentum"]
    if momentum == 0:
        return p - grad * lr, {}
    buffer = state.get("momentum_buffer")
    if buffer is None:
        # As in PyTorch, the buffer starts without the history of the first gradient.
        buffer = grad.detach().clone()
    else:
        buffer = buffer * momentum + grad * (1 - group["dampening"])
    direction = grad + buffer * momentum if group["nesterov"] else buffer
    return p - direction * lr, {"momentum_buffer": buffer}


def _adam(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    beta1, beta2 = map(_scalar, group["betas"])
    # A tensor, as in PyTorch, so that corrections are rounded alike; a copy, because the next step counts it up.
    count = state["step"].clone()
    mean = _average(state["exp_avg"], grad, beta1)
    square = _average(state["exp_avg_sq"], grad * grad, beta2)
    replaced = {"exp_avg": mean, "exp_avg_sq": square}
    if group["amsgrad"]:
        square = replaced["max_exp_avg_sq"] = trt.maximum(state["max_exp_avg_sq"], square)
    denom = square.sqrt() / (1 - beta2**count).sqrt() + group["eps"]
    return p - mean / denom * (lr / (1 - beta1**count)), replaced


def _rmsprop(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    alpha, momentum = group["alpha"], group["momentum"]
    variance = square = _average(state["square_avg"], grad * grad, alpha)
    replaced = {"square_avg": square}
    if group["centered"]:
        mean = replaced["grad_avg"] = _average(state["grad_avg"], grad, alpha)
        variance = square - mean * mean
    direction = grad / (variance.sqrt() + group["eps"])
    if momentum > 0:
        direction = replaced["momentum_buffer"] = state["momentum_buffer"] * momentum + direction
    return p - direction * lr, replaced


def _adagrad(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    lr = lr / (1 + (state["step"].item() - 1) * group["lr_decay"])
    total = state["sum"] + grad * grad
    return p - grad / (total.sqrt() + group["eps"]) * lr, {"sum": total}


def _adadelta(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    rho, eps, acc_delta = group["rho"], group["eps"], state["acc_delta"]
    square = _average(state["square_avg"], grad * grad, rho)
    delta = (acc_delta + eps).sqrt() / (square + eps).sqrt() * grad
    return p - delta * lr, {"square_avg": square, "acc_delta": _average(acc_delta, delta * delta, rho)}


def _nadam(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    beta1, beta2 = group["betas"]
    count, decay = state["step"].item(), group["momentum_decay"]
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (count * decay))
    mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((count + 1) * decay))
    mu_product = state["mu_product"].mul_(mu)
    mean = _average(state["exp_avg"], grad, beta1)
    square = _average(state["exp_avg_sq"], grad * grad, beta2)
    denom = (square / (1 - beta2**count)).sqrt() + group["eps"]
    now = grad * (lr * (1.0 - mu) / (1.0 - mu_product))
    ahead = mean * (lr * mu_next / (1.0 - mu_product * mu_next))
    return p - now / denom - ahead / denom, {"exp_avg": mean, "exp_avg_sq": square}


def _radam(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    beta1, beta2 = group["betas"]
    count = state["step"].item()
    mean = _average(state["exp_avg"], grad, beta1)
    square = _average(state["exp_avg_sq"], grad * grad, beta2)
    update = mean / (1 - beta1**count)
    correction2 = 1 - beta2**count
    # Length of the simple moving average that the exponential one stands for, in the limit and now.
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * count * beta2**count / correction2
    if rho > 5.0:
        rectify = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        update = update / (square.sqrt() + group["eps"]) * (rectify * correction2**0.5)
    return p - update * lr, {"exp_avg": mean, "exp_avg_sq": square}


def _adamax(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    beta1, beta2 = group["betas"]
    mean = _average(state["exp_avg"], grad, beta1)
    norm = trt.maximum(state["exp_inf"] * beta2, grad.abs() + group["eps"])
    return p - mean / norm * (lr / (1 - beta1 ** state["step"].item())), {"exp_avg": mean, "exp_inf": norm}


def _rprop(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    shrink, grow = group["etas"]
    step_size = state["step_size"]
    if isinstance(lr, trt.Tensor) and state["step"].item() == 1:
        # The rate is the first step size and nothing else: through it gradients reach the rate.
        step_size = trt.zeros_like(p) + lr
    # Made of the sign, through which gradients are zeros: gradients without such a path would be None.
    agreement = (grad * state["prev"]).sign()
    turned = agreement < 0
    factor = agreement.masked_fill(agreement > 0, grow).masked_fill(turned, shrink).masked_fill(agreement == 0, 1)
    step_size = (step_size * factor).clamp(*group["step_sizes"])
    grad = grad.masked_fill(turned, 0)
    return p - grad.sign() * step_size, {"prev": grad, "step_size": step_size}


def _asgd(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Updated:
    # The rate of a step is a number of the state, as in PyTorch: no gradient reaches lr.
    lambd, eta, mu = group["lambd"], state["eta"].item(), state["mu"].item()
    count, lr = state["step"].item(), _to_float(lr)
    p = p * (1 - lambd * eta) - grad * eta
    average = p if mu == 1 else state["ax"] + (p - state["ax"]) * mu
    state["eta"].fill_(lr / (1 + lambd * lr * count) ** group["alpha"])
    state["mu"].fill_(1 / max(1, count - group["t0"]))
    return p, {"ax": average}


_RULES: dict[type, Rule] = {
    SGD: _sgd,
    Adam: _adam,
    RMSprop: _rmsprop,
    Adagrad: _adagrad,
    Adadelta: _adadelta,
    NAdam: _nadam,
    RAdam: _radam,
    Adamax: _adamax,
    Rprop: _rprop,
    ASGD: _asgd,
}
