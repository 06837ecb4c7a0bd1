"""Adadelta: steps in the units of past updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _add, _check_lr, _check_non_negative, _new_step

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adadelta"]


class Adadelta(PerTensorOptimizer):
    """Adadelta (Zeiler 2012): steps in proportion to the running size of past updates over that of gradients.

    lr, eps, weight_decay: >= 0; rho: in [0, 1]. Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 1.0): the learning rate
        rho (float, default 0.9): how fast the averages of squares decay
        eps (float, default 1e-06): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Adadelta([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    1.0
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_non_negative("epsilon", eps)
        _check_non_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": _new_step(p, group), "square_avg": trt.zeros_like(p), "acc_delta": trt.zeros_like(p)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        rho, eps = group["rho"], group["eps"]
        square_avg, acc_delta = state["square_avg"], state["acc_delta"]
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = acc_delta.add(eps).sqrt_().div_(square_avg.add(eps).sqrt_()).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        _add(p, delta, -lr)
