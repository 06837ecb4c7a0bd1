"""Adafactor: Adam's second moment in memory that grows with rows plus columns (Shazeer & Stern 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo

from .optimizer import PerTensorOptimizer, _check_lr, _check_non_negative, _new_step

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Adafactor"]


class Adafactor(PerTensorOptimizer):
    """Adafactor with decoupled weight decay and relative step sizes.

    beta2_decay: <= 0, power of the step that is one minus beta2; eps: (of squares, of the parameter's scale); d: bound
    of the update's root mean square. Raises ValueError out of range, RuntimeError for complex parameters.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.01): the learning rate
        beta2_decay (float, default -0.8): the power of the step that is one minus beta2
        eps (tuple of two floats, default (None, 0.001)): added to squares, and the least scale of a parameter; None
            depends on the dtype
        d (float, default 1.0): the bound of the update's root mean square
        weight_decay (float, default 0.0): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        foreach (bool or None, default None): whether all parameters are stepped in one call; None lets the optimizer
            choose
        maximize (bool, default False): whether steps go up, not down

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0], requires_grad=True)
    >>> optimizer = trt.optim.Adafactor([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)
    0.9
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        _check_non_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _decays_itself(self, group: dict[str, Any]) -> bool:
        return True

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = {"step": _new_step()}
        shape = list(p.shape)
        if len(shape) > 1:
            state["row_var"] = p.new_zeros([*shape[:-1], 1])
            state["col_var"] = p.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = trt.zeros_like(p)
        return state

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: float) -> None:
        eps_square, eps_scale = group["eps"]
        if eps_square is None:
            eps_square = finfo(p.dtype).eps
        step = state["step"].item()
        one_minus_beta2 = step ** group["beta2_decay"]
        # The step is relative to the parameter's size, which is measured before weight decay shrinks it.
        alpha = max(eps_scale, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if p.dim() > 1:
            row_var = state["row_var"].lerp_(grad.square().mean(dim=-1, keepdim=True), one_minus_beta2)
            col_var = state["col_var"].lerp_(grad.square().mean(dim=-2, keepdim=True), one_minus_beta2)
            variance = (row_var @ col_var).div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps_square))
        else:
            variance = state["variance"].lerp_(grad * grad, one_minus_beta2).clone()
        update = variance.clamp_(min=eps_square * eps_square).rsqrt_().mul_(grad)
        rms = update.norm(2).item() / update.numel() ** 0.5
        p.add_(update, alpha=-alpha / max(1.0, rms / group["d"]))
