"""L-BFGS over all parameters as one vector, with an optional line search (Nocedal & Wright, ch. 3 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite.autograd.grad_mode import no_grad

from .optimizer import Optimizer, _check_lr, _to_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor

    from .optimizer import ParamsT

__all__ = ["LBFGS"]


def _cubic_minimum(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None) -> Any:
    """Minimum of the cubic with values f and slopes g at x1 and x2, kept within bounds (equation 3.59)."""
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:  # a NaN, too
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        minimum = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        minimum = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(minimum, low), high) if minimum == minimum else (low + high) / 2.0


class _Point:
    """A trial step: its length, the loss there, the gradient, and the slope along the direction."""

    __slots__ = ("grad", "loss", "slope", "step")

    def __init__(self, step: Any, loss: float, grad: Tensor, slope: Any) -> None:
        self.step = step
        self.loss = loss
        self.grad = grad
        self.slope = slope


def _interpolated(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    return _cubic_minimum(a.step, a.loss, a.slope, b.step, b.loss, b.slope, bounds)


def _strong_wolfe(
    evaluate: Callable[[Any], tuple[float, Tensor]],
    direction: Tensor,
    step: Any,
    start: _Point,
    max_evals: int,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[_Point, int]:
    """A step that meets the strong Wolfe conditions, or the best one found, and the number of evaluations."""

    def trial(length: Any) -> _Point:
        loss, grad = evaluate(length)
        return _Point(length, loss, grad, grad.dot(direction))

    def too_high(point: _Point) -> bool:
        return not point.loss <= start.loss + c1 * point.step * start.slope

    def order(a: _Point, b: _Point) -> tuple[int, int]:
        """Places of the lower and the higher of two losses; a NaN is higher than all."""
        return (1, 0) if b.loss < a.loss or a.loss != a.loss else (0, 1)

    scale = direction.abs().max()
    point, previous = trial(step), start
    rounds, done = 0, False
    bracket: list[_Point] = []
    # First phase: lengthen the step until an interval holds a point that meets the conditions.
    while rounds < max_evals:
        if too_high(point) or (rounds > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if abs(point.slope) <= -c2 * start.slope:
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        shortest = point.step + 0.01 * (point.step - previous.step)
        longer = _interpolated(previous, point, (shortest, point.step * 10))
        previous, point = point, trial(longer)
        rounds += 1
    if rounds == max_evals:
        bracket = [start, point]
    # Second phase: shrink the interval around the lowest point.
    stalled = False
    low, high = order(bracket[0], bracket[-1])
    while not done and rounds < max_evals:
        if abs(bracket[1].step - bracket[0].step) * scale < tolerance_change:
            break
        left, right = sorted((bracket[0].step, bracket[1].step))
        length = _interpolated(bracket[0], bracket[1])
        # A trial close to an end of the interval twice in a row, or on it, is moved a tenth of it inwards.
        margin = 0.1 * (right - left)
        if min(right - length, length - left) < margin:
            if stalled or length >= right or length <= left:
                length = right - margin if abs(length - right) < abs(length - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = trial(length)
        rounds += 1
        if too_high(point) or not point.loss < bracket[low].loss:
            bracket[high] = point
            low, high = order(*bracket)
        else:
            if abs(point.slope) <= -c2 * start.slope:
                done = True
            elif point.slope * (bracket[high].step - bracket[low].step) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    return bracket[low if len(bracket) > 1 else 0], rounds + 1


class LBFGS(Optimizer):
    """Limited-memory BFGS; `step` needs a closure that clears the gradients, recomputes the loss and returns it.

    line_search_fn: None for a fixed step of lr, or `strong_wolfe`. Raises ValueError for more than one group.

    Parameters:
        params (iterable of Tensors or dicts): the parameters, or groups of them with options of their own
        lr (float or Tensor, default 1): the learning rate
        max_iter (int, default 20): how many iterations a step takes at most
        max_eval (int or None, default None): how often a step calls the closure at most; None is 1.25 max_iter
        tolerance_grad (float, default 1e-07): a step ends where no gradient is larger
        tolerance_change (float, default 1e-09): a step ends where nothing changes by more
        history_size (int, default 100): how many past steps approximate the Hessian
        line_search_fn (str or None, default None): 'strong_wolfe', or None for fixed steps of lr

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([3.0], requires_grad=True)
    >>> optimizer = trt.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> abs(x.item()) < 1e-4
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            part = trt.zeros_like(p) if p.grad is None else p.grad
            if part.layout is not trt.strided:
                part = part.to_dense()
            if part.is_complex():
                part = trt.view_as_real(part)
            parts.append(part.reshape(-1))
        return trt.cat(parts, 0)

    def _move(self, step: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            if p.is_complex():
                p = trt.view_as_real(p)
            count = p.numel()
            p.add_(direction[offset : offset + count].view(p.shape), alpha=_to_float(step))
            offset += count

    def _direction(self, state: dict[str, Any], flat_grad: Tensor, history_size: int) -> Tensor:
        """The quasi-Newton direction by two loops (algorithm 7.4), after the memory took in the last move."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return flat_grad.neg()
        old_dirs, old_stps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = flat_grad.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(old_dirs) == history_size:
                for memory in (old_dirs, old_stps, ro):
                    memory.pop(0)
            old_dirs.append(y)
            old_stps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        weights = state.setdefault("al", [None] * history_size)
        q = flat_grad.neg()
        for i in range(len(old_dirs) - 1, -1, -1):
            weights[i] = old_stps[i].dot(q) * ro[i]
            q.add_(old_dirs[i], alpha=-weights[i].item())
        r = trt.mul(q, state["H_diag"])
        for i in range(len(old_dirs)):
            r.add_(old_stps[i], alpha=(weights[i] - old_dirs[i].dot(r) * ro[i]).item())
        return r

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to max_iter iterations; returns the loss before the first."""
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        def loss_with_grad() -> Any:
            with enable_grad():
                return closure()

        group = self.param_groups[0]
        lr = _to_float(group["lr"])
        # The rule has one state for all parameters: it is kept with the first, so that loading casts it.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = loss_with_grad()
        loss, evals = float(first_loss), 1
        state["func_evals"] += 1
        flat_grad = self._flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, flat_grad, group["history_size"])
            state["prev_flat_grad"] = flat_grad.clone()
            previous_loss = state["prev_loss"] = loss
            step = min(1.0, 1.0 / flat_grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            state["t"] = step
            slope = flat_grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            new_evals = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                origin = [p.clone() for p in self._params]

                def evaluate(length: Any, direction: Tensor = direction, origin: list[Tensor] = origin) -> Any:
                    self._move(length, direction)
                    value, grad = float(loss_with_grad()), self._flat_grad()
                    for p, start in zip(self._params, origin, strict=True):
                        p.copy_(start)
                    return value, grad

                start = _Point(0, loss, flat_grad, slope)
                best, new_evals = _strong_wolfe(evaluate, direction, step, start, group["max_eval"] - evals)
                step, loss, flat_grad = best.step, best.loss, best.grad
                state["t"] = step
                self._move(step, direction)
            else:
                self._move(step, direction)
                if iteration != group["max_iter"]:
                    loss, flat_grad, new_evals = float(loss_with_grad()), self._flat_grad(), 1
            evals += new_evals
            state["func_evals"] += new_evals
            if (
                evals >= group["max_eval"]
                or flat_grad.abs().max() <= group["tolerance_grad"]
                or direction.mul(step).abs().max() <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss
