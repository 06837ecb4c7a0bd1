"""Stochastic gradient descent: one fused call per parameter group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

from .optimizer import FusedOptimizer, _check_lr, _check_non_negative, _to_float

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["SGD"]


class SGD(FusedOptimizer):
    """SGD with momentum, dampening, Nesterov's variant and L2 weight decay (Sutskever et al. 2013).

    lr, weight_decay, momentum: >= 0. Raises ValueError out of range, or for Nesterov without plain momentum.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.001): the learning rate
        momentum (float, default 0): the share of past steps in the next one
        dampening (float, default 0): the share of the gradient that momentum leaves out
        weight_decay (float or Tensor, default 0): the factor of the parameters that is added to gradients
        nesterov (bool, default False): whether the gradient is taken a step ahead, Nesterov's variant
        maximize (bool, default False): whether steps go up, not down
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        differentiable (bool, default False): whether steps themselves record gradients
        fused (bool or None, default None): whether one kernel does the whole step; None lets the optimizer choose

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.SGD([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.8
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        _check_non_negative("momentum", momentum)
        _check_non_negative("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)

    _takes_sparse = True

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        return group["momentum"] != 0

    def _plan_key(self, group: dict[str, Any]) -> bool:
        return group["momentum"] != 0

    def _init_state(self, group: dict[str, Any], p: Tensor, state: dict[Tensor, Any]) -> bool:
        if group["momentum"] == 0:
            return False
        entry = state[p]
        if entry.get("momentum_buffer") is not None:
            return False
        entry["momentum_buffer"] = trt.zeros_like(p)  # defined also where the first step is skipped
        return True

    def _update_bucket(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        first: bool,
    ) -> None:
        momentum = group["momentum"]
        _ops._fused_sgd_(
            params,
            grads,
            [state["momentum_buffer"] for state in states] if momentum != 0 else [],
            weight_decay=_to_float(group["weight_decay"]),
            momentum=momentum,
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
            grad_scale=self.grad_scale,
            found_inf=self.found_inf,
        )
