"""Rules that divide by accumulated squares of gradients: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorrt_lite as trt

from .optimizer import PerTensorOptimizer, _add, _add_quotient, _check_lr, _check_non_negative, _new_step

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


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
