"""Muon: momentum whose matrix is made orthogonal (Jordan 2024)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .optimizer import PerTensorOptimizer, _check_lr, _check_non_negative

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["Muon"]


class Muon(PerTensorOptimizer):
    """Steps along the orthogonal part of the momentum, which ns_steps Newton-Schulz iterations approach in bfloat16, with decoupled weight decay.

    params: matrices alone (ValueError otherwise). ns_coefficients: of the iteration's polynomial, a x + b x^3 + c x^5. eps: the least norm that is divided by.
    adjust_lr_fn: what the rate is multiplied with, for a matrix of A by B: "original" or None sqrt(max(1, A / B)), "match_rms_adamw" 0.2 sqrt(max(A, B)).

    Parameters:
        params (iterable of Tensors or dicts): matrices
        lr (float or Tensor, default 0.001): the learning rate
        weight_decay (float, default 0.1): the factor of the parameters that is added to gradients, or with decoupled
            decay subtracted from them
        momentum (float, default 0.95): the share of past steps in the next one
        nesterov (bool, default True): whether the gradient is taken a step ahead, Nesterov's variant
        ns_coefficients (tuple of three floats, default (3.4445, -4.775, 2.0315)): the coefficients a, b, c of the
            iteration a x + b x^3 + c x^5
        eps (float, default 1e-07): the least norm that is divided by
        ns_steps (int, default 5): how many iterations
        adjust_lr_fn (str or None, default None): how the rate follows from a matrix's shape: 'original' or
            'match_rms_adamw'; None is 'original'

    >>> import tensorrt_lite as trt
    >>> x = trt.eye(2).requires_grad_()
    >>> optimizer = trt.optim.Muon([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, trt.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        _check_lr(lr)
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        _check_non_negative("weight_decay", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _decays_itself(self, group: dict[str, Any]) -> bool:
        return True

    def _init_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": trt.zeros_like(p, memory_format=trt.preserve_format)}

    def _update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], lr: Any) -> None:
        momentum = group["momentum"]
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        direction = _orthogonal_part(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape[:2]
        scale = 0.2 * math.sqrt(max(rows, columns)) if group["adjust_lr_fn"] == "match_rms_adamw" else math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(direction, alpha=-lr * scale)


def _orthogonal_part(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """About U V' of the singular value decomposition U S V', in bfloat16."""
    a, b, c = coefficients
    x = matrix.bfloat16()
    wide = matrix.size(0) <= matrix.size(1)
    if not wide:
        x = x.T
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = trt.addmm(x, trt.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T
