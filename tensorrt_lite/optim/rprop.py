"""Rprop: resilient backpropagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _check_lr, _new_step, _to_float

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Rprop"]


class Rprop(PerTensorOptimizer):
    """Resilient backpropagation (Riedmiller & Braun 1993): a step size per element, moved by the gradient's sign.

    lr: the first step size; etas: (shrink in (0, 1), grow > 1); step_sizes: bounds. Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.01): the first step size
        etas (tuple of two floats, default (0.5, 1.2)): the factors of a step size, when signs differ and when they
            agree
        step_sizes (tuple of two floats, default (1e-06, 50)): the smallest and largest step size
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Rprop([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.9
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = _to_float(group["lr"])
        start = complex(lr, lr) if p.is_complex() else lr
        return {"step": _new_step(p, group), "prev": trt.zeros_like(p), "step_size": trt.full_like(p, start)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        shrink, grow = group["etas"]
        low, high = group["step_sizes"]
        prev, step_size = state["prev"], state["step_size"]
        agreement = grad.mul(prev)
        turned = agreement.lt(0)
        factor = trt.ones_like(agreement).masked_fill_(agreement.gt(0), grow).masked_fill_(turned, shrink)
        step_size.mul_(factor).clamp_(low, high)
        # Where the sign turned the minimum was jumped over: no move now, and no comparison in the next step.
        grad = grad.masked_fill(turned, 0)
        p.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
