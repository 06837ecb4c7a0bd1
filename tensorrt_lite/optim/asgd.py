"""ASGD: averaged stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _add, _check_lr, _check_non_negative, _new_step, _scalar, _value

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["ASGD"]


class ASGD(PerTensorOptimizer):
    """Averaged stochastic gradient descent (Polyak & Juditsky 1992); the average is in `state[p]["ax"]`.

    lr, weight_decay: >= 0; lambd: decay; alpha: power of the rate's fall; t0: step at which averaging starts.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.01): the learning rate
        lambd (float, default 0.0001): how fast the rate decays
        alpha (float, default 0.75): the power of the rate's fall
        t0 (float, default 1000000.0): the step at which averaging starts
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        differentiable (bool, default False): whether steps themselves record gradients
        capturable (bool, default False): whether steps can be captured in a CUDA graph

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.ASGD([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.8
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_non_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": _new_step(p, group),
            "eta": _new_step(p, group).add_(_scalar(group["lr"])),
            "mu": _new_step(p, group).add_(1),
            "ax": trt.zeros_like(p),
        }

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        lambd, step = group["lambd"], _value(state["step"], group)
        eta, mu, average = _value(state["eta"], group), _value(state["mu"], group), state["ax"]
        p.mul_(1 - lambd * eta)
        _add(p, grad, -eta)
        new_eta = lr / (1 + lambd * lr * step) ** group["alpha"]
        if isinstance(mu, trt.Tensor):
            average.copy_(trt.where(mu == 1, p, average + (p - average) * mu))
            state["eta"].copy_(new_eta)
            state["mu"].copy_(1 / (step - group["t0"]).clamp(min=1))
            return
        if mu == 1:
            average.copy_(p)
        else:
            average.add_(p.sub(average), alpha=mu)
        state["eta"].fill_(new_eta)
        state["mu"].fill_(1 / max(1, step - group["t0"]))
