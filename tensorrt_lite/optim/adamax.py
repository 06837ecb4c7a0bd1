"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _add_quotient, _new_step, _value, _check_moments

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adamax"]


class Adamax(PerTensorOptimizer):
    """Adam with the infinity norm of past gradients (Kingma & Ba 2015, section 7.1).

    lr, eps, weight_decay: >= 0; betas: in [0, 1). Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.002): the learning rate
        betas (tuple of two floats, default (0.9, 0.999)): how fast the averages of gradients and of their squares decay
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients
        capturable (bool, default False): whether steps can be captured in a CUDA graph

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Adamax([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.9
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": _new_step(p, group), "exp_avg": trt.zeros_like(p), "exp_inf": trt.zeros_like(p)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        beta1, beta2 = group["betas"]
        exp_avg, exp_inf = state["exp_avg"], state["exp_inf"]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_inf.copy_(trt.maximum(exp_inf.mul_(beta2), grad.abs().add_(group["eps"])))
        _add_quotient(p, exp_avg, exp_inf, -lr / (1 - beta1 ** _value(state["step"], group)))
