"""Adam for sparse gradients: moments and parameters change where a gradient has entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite.autograd.grad_mode import no_grad

from .optimizer import Optimizer, _to_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam (Kingma and Ba 2015) for parameters with sparse_coo gradients, as `nn.Embedding(sparse=True)` has them.

    Moments decay in the rows alone that a step has gradients of. lr, eps: > 0; betas in [0, 1). ValueError out of range and for sparse parameters,
    RuntimeError for strided gradients.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 0.001): the learning rate
        betas (tuple of two floats, default (0.9, 0.999)): how fast the averages of gradients and of their squares decay
        eps (float, default 1e-08): added to the divisor, for stability
        maximize (bool, default False): whether steps go up, not down

    >>> import tensorrt_lite as trt
    >>> table = trt.nn.Embedding(3, 2, sparse=True)
    >>> optimizer = trt.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(trt.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight - before).abs().sum(1) > 0
    tensor([False,  True, False])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, trt.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < _to_float(lr):
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = []
        complex_ones = []
        for i, group in enumerate(self.param_groups):
            for k, p in enumerate(group["params"]):
                if p.layout is not trt.strided:
                    sparse.append([i, k])
                if p.is_complex():
                    complex_ones.append([i, k])
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complex_ones:
            raise ValueError(f"Complex params at indices {complex_ones}: SparseAdam does not support complex parameters")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients; closure: recomputes and returns the loss, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(p, p.grad, group)
        return loss

    def _update(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=trt.zeros_like(p), exp_avg_sq=trt.zeros_like(p))
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        at, g = tuple(grad._indices()), grad._values()
        g = -g if group["maximize"] else g
        beta1, beta2 = group["betas"]
        first, second = state["exp_avg"], state["exp_avg_sq"]
        m = trt.lerp(first[at], g, 1 - beta1)
        v = trt.lerp(second[at], g * g, 1 - beta2)
        first.index_put_(at, m)
        second.index_put_(at, v)
        rate = _to_float(group["lr"]) * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        p.index_put_(at, p[at] - rate * m / (v.sqrt() + group["eps"]))
