"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _add_quotient, _check_non_negative, _new_step, _value, _check_moments

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["NAdam"]


class NAdam(PerTensorOptimizer):
    """Adam with Nesterov momentum (Dozat 2016).

    lr, eps, weight_decay, momentum_decay: >= 0; betas: in [0, 1). Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.002): the learning rate
        betas (tuple of two floats, default (0.9, 0.999)): how fast the averages of gradients and of their squares decay
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        momentum_decay (float, default 0.004): how fast momentum decays
        decoupled_weight_decay (bool, default False): whether weight decay is applied to parameters, as AdamW does, not
            to gradients
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        differentiable (bool, default False): whether steps themselves record gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.NAdam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.894
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        _check_non_negative("momentum_decay", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": _new_step(p, group),
            "mu_product": _new_step(p, group).add_(1),
            "exp_avg": trt.zeros_like(p),
            "exp_avg_sq": trt.zeros_like(p),
        }

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        beta1, beta2 = group["betas"]
        step, decay = _value(state["step"], group), group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        mu_product = _value(state["mu_product"].mul_(mu), group)
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = exp_avg_sq.div(1 - beta2**step).sqrt_().add_(group["eps"])
        _add_quotient(p, grad, denom, -lr * (1.0 - mu) / (1.0 - mu_product))
        _add_quotient(p, exp_avg, denom, -lr * mu_next / (1.0 - mu_product * mu_next))
