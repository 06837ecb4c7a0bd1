"""Adam and AdamW: a step-counter increment and one fused call per parameter group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

from .optimizer import FusedOptimizer, _check_betas, _check_lr, _check_non_negative, _new_step, _to_float
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_optim = _LazyModule("tensorrt_lite._C.cuda.optim")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adam", "AdamW"]


class Adam(FusedOptimizer):
    """Adam (Kingma & Ba 2015), with AMSGrad (Reddi et al. 2018) and optionally decoupled weight decay.

    lr, eps, weight_decay: >= 0; betas: in [0, 1). Raises ValueError out of range.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.001): the learning rate
        betas (tuple of two numbers, default (0.9, 0.999)): how fast the averages of gradients and of their squares
            decay
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        amsgrad (bool, default False): whether the largest average of squares so far is used
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        differentiable (bool, default False): whether steps themselves record gradients
        fused (bool or None, default None): whether one kernel does the whole step; None lets the optimizer choose
        decoupled_weight_decay (bool, default False): whether weight decay is applied to parameters, as AdamW does, not
            to gradients

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Adam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.9
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, trt.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        _check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        _check_non_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in (
                ("amsgrad", False),
                ("maximize", False),
                ("foreach", None),
                ("capturable", False),
                ("differentiable", False),
                ("fused", None),
                ("decoupled_weight_decay", False),
            ):
                group.setdefault(name, default)

    def _plan_key(self, group: dict[str, Any]) -> bool:
        return group["amsgrad"]

    def _init_state(self, group: dict[str, Any], p: Tensor, state: dict[Tensor, Any]) -> bool:
        entry = state[p]
        if not entry:
            entry["step"] = _new_step(p, group)
            entry["exp_avg"] = trt.zeros_like(p)
            entry["exp_avg_sq"] = trt.zeros_like(p)
        if group["amsgrad"] and "max_exp_avg_sq" not in entry:
            entry["max_exp_avg_sq"] = trt.zeros_like(p)
        return False

    def _update_bucket(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        first: bool,
    ) -> None:
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        steps = [state["step"] for state in states]
        found_inf = self.found_inf
        on_device = steps[0].is_cuda
        if on_device:
            _optim.count_steps(steps, found_inf)
        else:
            trt._foreach_add_(steps, 1)
        fused = _ops._fused_adamw_ if group["decoupled_weight_decay"] else _ops._fused_adam_
        fused(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
            steps,
            lr=group["lr"] if on_device else _to_float(group["lr"]),
            beta1=_to_float(beta1),
            beta2=_to_float(beta2),
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
            grad_scale=self.grad_scale,
            found_inf=found_inf,
        )
        if found_inf is not None and not on_device:
            # The operator leaves parameters alone when the scaler found an overflow: that step does not count.
            for step in steps:
                step.sub_(found_inf.to(step.device))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); arguments as Adam's.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.001): the learning rate
        betas (tuple of two numbers, default (0.9, 0.999)): how fast the averages of gradients and of their squares
            decay
        eps (float, default 1e-08): added to the divisor, for stability
        weight_decay (float, default 0.01): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        amsgrad (bool, default False): whether the largest average of squares so far is used
        maximize (bool, default False): whether steps go up, not down
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        capturable (bool, default False): whether steps can be captured in a CUDA graph
        differentiable (bool, default False): whether steps themselves record gradients
        fused (bool or None, default None): whether one kernel does the whole step; None lets the optimizer choose

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.AdamW([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.899
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # State dicts from before the two classes shared their update do not name the kind of decay.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
