"""Steps of SGD and Adam in single operators, one parameter after the other: what a dispatch mode or fake tensors see of a step that is not `fused`.

The operators and their order are PyTorch's. `optimizer.py` imports this module when the first such step is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .adam import Adam
from .optimizer import FusedOptimizer, _add, _add_quotient, _check_flags, _sparse_refusal, _to_float, _value
from .sgd import SGD

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def step(optimizer: FusedOptimizer, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> bool:
    """Update a group's parameters; False where there is no such form of the rule or of the gradients."""
    rule = _adam if isinstance(optimizer, Adam) else _sgd if isinstance(optimizer, SGD) else None
    if rule is None or optimizer.found_inf is not None or optimizer.grad_scale is not None:
        return False
    _check_flags(group)
    for grad in grads:
        if grad.is_sparse:
            if not optimizer._takes_sparse:
                raise RuntimeError(_sparse_refusal(type(optimizer)))
            return False
    if rule is _adam:
        for p in params:
            optimizer._init_state(group, p, optimizer.state)
    for p, grad in zip(params, grads, strict=True):
        rule(p, -grad if group["maximize"] else grad, optimizer.state[p] if optimizer._keeps_state(group) else {}, group)
    return True


def _real(t: Tensor) -> Tensor:
    """A complex tensor as the pair of its parts."""
    return trt.view_as_real(t) if t.is_complex() else t


def _sgd(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    is_complex, momentum, lr = p.is_complex(), group["momentum"], group["lr"]
    p, grad = _real(p), _real(grad)
    if group["weight_decay"] != 0:
        grad = grad.add(p, alpha=_to_float(group["weight_decay"]))
    if momentum != 0:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = grad.detach().clone()
            state["momentum_buffer"] = trt.view_as_complex(buffer) if is_complex else buffer
        else:
            buffer = _real(buffer)
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
    _add(p, grad, -lr)


def _adam(p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    capturable = group["capturable"]
    lr = group["lr"] if capturable else _to_float(group["lr"])
    beta1, beta2 = map(_to_float, group["betas"])
    state["step"].add_(1)
    if group["weight_decay"] != 0:
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            grad = grad.add(p, alpha=group["weight_decay"])
    p, grad, mean, square = _real(p), _real(grad), _real(state["exp_avg"]), _real(state["exp_avg_sq"])
    mean.lerp_(grad, 1 - beta1)
    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    count = _value(state["step"], group)
    if group["amsgrad"]:
        largest = _real(state["max_exp_avg_sq"])
        trt.maximum(largest, square, out=largest)
        square = largest
    scale = square.sqrt().div((1 - beta2**count) ** 0.5).to(p.dtype).add_(group["eps"])
    _add_quotient(p, mean, scale, -(lr / (1 - beta1**count)))
