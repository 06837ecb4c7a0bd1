"""Kernels of custom devices over their other operators: steps of optimizers, one parameter after the other, where a device has no fused ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorrt_lite.tensor import Tensor

__all__ = ["KERNELS"]


def _number(x: Any) -> float:
    return float(x)


def _overflowed(found_inf: Any) -> bool:
    return found_inf is not None and bool(_number(found_inf))


def _gradient(grad: Tensor, grad_scale: Any, maximize: bool) -> Tensor:
    """The gradient as the rule takes it; a scale is taken out of `.grad` itself, as fused steps do."""
    if grad_scale is not None:
        grad.div_(_number(grad_scale))
    return -grad if maximize else grad


def _fused_sgd(
    params: list[Tensor], grads: list[Tensor], buffers: list[Tensor], weight_decay: float, momentum: float, lr: Any, dampening: float, nesterov: bool, maximize: bool,
    first: bool, grad_scale: Any, found_inf: Any,
) -> tuple[()]:  # fmt: skip
    if _overflowed(found_inf):
        return ()
    for i, p in enumerate(params):
        g = _gradient(grads[i], grad_scale, maximize)
        if weight_decay:
            g = g.add(p, alpha=weight_decay)
        if momentum:
            if first:
                buffers[i].copy_(g)
            else:
                buffers[i].mul_(momentum).add_(g, alpha=1 - dampening)
            g = g.add(buffers[i], alpha=momentum) if nesterov else buffers[i]
        p.add_(g, alpha=-_number(lr))
    return ()


def _adam_step(decoupled: bool) -> Any:
    def step(
        params: list[Tensor], grads: list[Tensor], averages: list[Tensor], squares: list[Tensor], largest: list[Tensor], steps: list[Tensor], lr: Any, beta1: float,
        beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: Any, found_inf: Any,
    ) -> tuple[()]:  # fmt: skip
        if _overflowed(found_inf):
            return ()
        rate = _number(lr)
        for i, p in enumerate(params):
            g = _gradient(grads[i], grad_scale, maximize)
            t = _number(steps[i])
            if weight_decay:
                if decoupled:
                    p.mul_(1 - rate * weight_decay)
                else:
                    g = g.add(p, alpha=weight_decay)
            averages[i].mul_(beta1).add_(g, alpha=1 - beta1)
            squares[i].mul_(beta2).add_(g * g, alpha=1 - beta2)
            root = squares[i]
            if amsgrad:
                largest[i].copy_(largest[i].maximum(squares[i]))
                root = largest[i]
            scale = root.sqrt().div_((1 - beta2**t) ** 0.5).add_(eps)
            p.add_(averages[i] / scale, alpha=-rate / (1 - beta1**t))
        return ()

    return step


def _unscale(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> tuple[()]:
    for grad in grads:
        found_inf.masked_fill_(grad.isfinite().all().logical_not().reshape(found_inf.shape), 1.0)
        grad.mul_(inv_scale.to(grad.dtype))
    return ()


def _update_scale(scale: Tensor, tracker: Tensor, found_inf: Tensor, growth: float, backoff: float, interval: int) -> tuple[()]:
    steps = int(tracker.item()) + 1
    if _overflowed(found_inf):
        scale.mul_(backoff)
    elif steps == interval and bool((scale * growth).isfinite()):
        scale.mul_(growth)
    tracker.fill_(0 if steps == interval or _overflowed(found_inf) else steps)
    return ()


KERNELS = {
    "_fused_sgd_": _fused_sgd, "_fused_adam_": _adam_step(False), "_fused_adamw_": _adam_step(True), "_amp_foreach_non_finite_check_and_unscale_": _unscale,
    "_amp_update_scale_": _update_scale,
}  # fmt: skip
