"""RAdam: Adam with a rectified variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _new_step, _value, _check_moments

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["RAdam"]


class RAdam(PerTensorOptimizer):
    """Adam with a rectified variance of the adaptive rate (Liu et al. 2020).

    lr, eps, weight_decay: >= 0; betas: in [0, 1). Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.001): the learning rate
        betas (tuple of two floats, default (0.9, 0.999)): how fast the averages of gradients and of their squares decay
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        decoupled_weight_decay (bool, default False): whether weight decay is applied to parameters, as AdamW does, not
            to gradients
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        differentiable (bool, default False): whether steps themselves record gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.RAdam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.8
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": _new_step(p, group), "exp_avg": trt.zeros_like(p), "exp_avg_sq": trt.zeros_like(p)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        beta1, beta2 = group["betas"]
        step = _value(state["step"], group)
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        corrected_lr = lr / (1 - beta1**step)
        bias_correction2 = 1 - beta2**step
        # Length of the simple moving average that the exponential one stands for, now and in the limit.
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / bias_correction2
        if isinstance(rho, trt.Tensor):
            variance = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho) * bias_correction2
            adaptive = variance.clamp(min=0).sqrt() / exp_avg_sq.sqrt().add_(group["eps"])
            p.sub_(exp_avg * trt.where(rho > 5.0, adaptive, 1.0) * corrected_lr)
        elif rho > 5.0:
            rectify = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
            denom = exp_avg_sq.sqrt().add_(group["eps"])
            p.addcdiv_(exp_avg, denom, value=-corrected_lr * rectify * bias_correction2**0.5)
        else:
            # Too few gradients for a variance: plain momentum.
            p.add_(exp_avg, alpha=-corrected_lr)
