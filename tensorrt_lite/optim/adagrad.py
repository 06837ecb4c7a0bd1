"""Adagrad: rates that fall with the sum of squared gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _check_lr, _check_non_negative, _new_step

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adagrad"]


class Adagrad(PerTensorOptimizer):
    """Adagrad (Duchi et al. 2011): the rate of each element falls with the sum of its squared gradients.

    lr, lr_decay, weight_decay, initial_accumulator_value, eps: >= 0. Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.01): the learning rate
        lr_decay (float, default 0): how fast the rate falls with steps
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        initial_accumulator_value (float, default 0): the first sum of squares
        eps (float, default 1e-10): added to the divisor, for stability
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients
        fused (bool or None, default None): whether one kernel does the whole step; None lets the optimizer choose

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Adagrad([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.9
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        _check_non_negative("lr_decay", lr_decay)
        _check_non_negative("weight_decay", weight_decay)
        _check_non_negative("initial_accumulator_value", initial_accumulator_value)
        _check_non_negative("epsilon", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        # The accumulators exist from the start: programs share them between processes before the first step.
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._init_state(p, group)

    def share_memory(self) -> None:
        """Move the accumulators to shared memory."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        return {"step": _new_step(), "sum": trt.full_like(p, complex(start, start) if p.is_complex() else start)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: float) -> None:
        lr = lr / (1 + (state["step"].item() - 1) * group["lr_decay"])
        total = state["sum"].addcmul_(grad, grad, value=1)
        p.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-lr)

    _takes_sparse = True

    def _update_sparse(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: float) -> None:
        lr = lr / (1 + (state["step"].item() - 1) * group["lr_decay"])
        at, g = tuple(grad._indices()), grad._values()
        if not g.numel():
            return
        total = state["sum"][at] + g * g
        state["sum"].index_put_(at, total)
        p.index_put_(at, p[at] - lr * (g / (total.sqrt() + group["eps"])))
