"""Schedules that move learning rate and momentum against each other: CyclicLR and OneCycleLR.

Part of `lr_scheduler`, which re-exports both.
"""

from __future__ import annotations

import math
import types
from typing import TYPE_CHECKING, Any

from ._scheduler_base import LRScheduler, _check_optimizer, _own, _per_group, _set_group_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from .optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


class _MomentumCycle(LRScheduler):
    """A schedule that also drives the momentum, or Adam's first beta, of each group."""

    use_beta1: bool

    def _start_momentum(self, optimizer: Optimizer, base: list[float], top: list[float], last_epoch: int) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, base, top, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (_own(value), *group["betas"][1:])
        else:
            group["momentum"] = _own(value)


class CyclicLR(_MomentumCycle):
    """The rate up from base_lr to max_lr and down again, cycle by cycle (Smith 2017).

    mode: `triangular`, `triangular2` (height halves) or `exp_range` (height falls by gamma per step); scale_fn replaces
    it and is called with the cycle or the step, as scale_mode (`cycle`, `iterations`) says.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        base_lr (float or list of floats): the lowest rate, one or for each group
        max_lr (float or list of floats): the highest rate, one or for each group
        step_size_up (int, default 2000): how many steps the rise takes
        step_size_down (int or None, default None): how many steps the fall takes; None is step_size_up
        mode (str, default 'triangular'): 'triangular', 'triangular2' (the height halves) or 'exp_range' (it falls by
            gamma each step)
        gamma (float, default 1.0): the factor of 'exp_range'
        scale_fn (function or None, default None): the height of a cycle, instead of mode
        scale_mode (str, default 'cycle'): what scale_fn is called with: 'cycle' or 'iterations'
        cycle_momentum (bool, default True): whether momentum moves against the rate
        base_momentum (float or list of floats, default 0.8): the lowest momentum
        max_momentum (float or list of floats, default 0.9): the highest momentum
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2, cycle_momentum=False), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                _set_group_value(group, "lr", lr)
        self.max_lrs = _per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = _per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = _per_group("max_momentum", optimizer, max_momentum)
            self._start_momentum(optimizer, self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Height of a cycle in units of `max_lr - base_lr`; x: cycle (from 1) or step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """Rates for the current step, one per group; sets the momentum too when it is cycled."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        position = 1.0 + self.last_epoch / self.total_size - cycle
        if position <= self.step_ratio:
            height = position / self.step_ratio
        else:
            height = (position - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of a custom scale function only the state of a callable object is kept."""
        state = super().state_dict()
        custom = state["_scale_fn_custom"]
        is_object = custom is not None and not isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = custom.__dict__.copy() if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the scale function stays this object's own."""
        saved = state_dict.get("_scale_fn_custom")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(_MomentumCycle):
    """One cycle over the whole run (Smith & Topin 2018): up to max_lr, then far below the start.

    The rate starts at `max_lr / div_factor` and ends at that over final_div_factor; pct_start: part of the run that
    rises; three_phase: fall symmetrically to the start first. Raises ValueError for steps beyond the total.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        max_lr (float or list of floats): the highest rate, one or for each group
        total_steps (int or None, default None): how many steps the run has; None is epochs times steps_per_epoch
        epochs (int or None, default None): how many epochs
        steps_per_epoch (int or None, default None): how many steps each epoch has
        pct_start (float, default 0.3): the part of the run that rises
        anneal_strategy (str, default 'cos'): the shape: 'cos' or 'linear'
        cycle_momentum (bool, default True): whether momentum moves against the rate
        base_momentum (float or list of floats, default 0.85): the lowest momentum
        max_momentum (float or list of floats, default 0.95): the highest momentum
        div_factor (float, default 25.0): the first rate is max_lr divided by it
        final_div_factor (float, default 10000.0): the last rate is the first divided by it
        three_phase (bool, default False): whether the rate falls to the first one before it falls further
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule, rates = trt.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.95, 0.611, 0.188, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        rise = float(pct_start * self.total_steps)
        phases = [(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases.append((2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases = [dict(zip(names, phase, strict=True)) for phase in phases]
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, _per_group("max_lr", optimizer, max_lr), strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            top = _per_group("max_momentum", optimizer, max_momentum)
            base = _per_group("base_momentum", optimizer, base_momentum)
            self._start_momentum(optimizer, base, top, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)

    def get_lr(self) -> list[Any]:
        """Rates for the current step, one per group; sets the momentum too when it is cycled."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start: Any = 0.0
        phase: dict[str, Any] = self._schedule_phases[-1]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], done)
                self._set_momentum(group, momentum)
        return rates


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    for name, value in (("total_steps", total_steps), ("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if value is not None and (not isinstance(value, int) or value <= 0):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    if total_steps is not None:
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return epochs * steps_per_epoch
