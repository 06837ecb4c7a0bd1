"""RMSprop: gradients over the root of their mean square."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _add, _add_quotient, _check_lr, _check_non_negative, _new_step

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["RMSprop"]


class RMSprop(PerTensorOptimizer):
    """RMSprop (Hinton, lecture 6e; centered: Graves 2013), with momentum.

    lr, alpha, eps, weight_decay, momentum: >= 0. Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.01): the learning rate
        alpha (float, default 0.99): how fast the average of squares decays
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        momentum (float, default 0): the share of past steps in the next one
        centered (bool, default False): whether the mean gradient is subtracted from the average of squares
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.RMSprop([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.0
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_non_negative("epsilon", eps)
        _check_non_negative("momentum", momentum)
        _check_non_negative("weight_decay", weight_decay)
        _check_non_negative("alpha", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": _new_step(p, group), "square_avg": trt.zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = trt.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = trt.zeros_like(p)
        return state

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        square_avg = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            grad_avg = state["grad_avg"].lerp_(grad, 1 - alpha)
            scale = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_().add_(group["eps"])
        else:
            scale = square_avg.sqrt().add_(group["eps"])
        if momentum > 0:
            _add(p, state["momentum_buffer"].mul_(momentum).addcdiv_(grad, scale), -lr)
        else:
            _add_quotient(p, grad, scale, -lr)
