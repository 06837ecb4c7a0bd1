"""Learning rate schedules: each sets the rates of an optimizer's groups. Call `step()` once an epoch, behind `optimizer.step()`.

Schedules can be chained, and saved by `state_dict()`. A rate that is a tensor is written in place.
"""

# A schedule is recursive (the new rate from the present one, so that schedules can be chained) and, where PyTorch has
# one, also has a closed form in `_get_closed_form_lr`, used by `step(epoch)`. Attribute names are part of `state_dict`
# and equal PyTorch's. Cyclic schedules are in `_cyclic_schedules`.

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from ._cyclic_schedules import CyclicLR, OneCycleLR
from ._scheduler_base import _LRScheduler  # noqa: F401 (older programs name the base so)
from ._scheduler_base import _EPOCH_WARNING, LRScheduler, _check_optimizer, _set_group_value
from .optimizer import Optimizer
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; lr_lambda: one function, or one per group.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        lr_lambda (function or list of functions): the factor of an epoch: one function, or one for each group
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch)), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 0.333, 0.25, 0.2]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of the functions only the state of callable objects is kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy() for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the functions stay this object's own."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for fn, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                fn.__dict__.update(saved)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        return [lr * fn(self.last_epoch) for lr, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The present rate times `lr_lambda(epoch)`.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        lr_lambda (function or list of functions): the factor of an epoch: one function, or one for each group
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 0.25, 0.125, 0.062]
    """

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [group["lr"] * fn(self.last_epoch) for group, fn in zip(groups, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """The rate times gamma every step_size epochs.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        step_size (int): how many epochs there are between two changes
        gamma (float, default 0.1): the factor
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._present()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the milestones (epochs; a repeated one counts again).

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        milestones (iterable of ints): the epochs of the changes
        gamma (float, default 0.1): the factor
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._present()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times factor (in [0, 1]) for the first total_iters epochs.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        factor (float, default 0.3333333333333333): the factor until then
        total_iters (int, default 5): how many epochs it holds
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 1.0, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return self._present()
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [lr * factor for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes linearly from start_factor (0, 1] to end_factor [0, 1] in total_iters.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        start_factor (float, default 0.3333333333333333): the factor of the first epoch
        end_factor (float, default 1.0): the factor at the end
        total_iters (int, default 5): how many epochs it takes
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.75, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        return self._scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (self.start_factor + (self.end_factor - self.start_factor) * done) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times gamma every epoch.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        gamma (float): the factor
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 0.25, 0.125, 0.062]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        return self._present() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times `(1 - epoch / total_iters) ** power`.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        total_iters (int, default 5): how many epochs it takes
        power (float, default 1.0): the exponent
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.75, 0.5, 0.25, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to eta_min in T_max epochs, and back (Loshchilov & Hutter 2017).

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        T_max (int): how many epochs the fall takes
        eta_min (float, default 0.0): the lowest rate
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.854, 0.5, 0.146, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups, low = self.optimizer.param_groups, self.eta_min
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The present rate is eta_min, from where the ratio below would be 0 / 0.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [group["lr"] + (lr - low) * rise for group, lr in zip(groups, self.base_lrs, strict=True)]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines of T_0, T_0 * T_mult, ... epochs, each from the initial rate (Loshchilov & Hutter 2017).

    `step(epoch)` takes fractions, for a schedule per batch.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        T_0 (int): how many epochs the first period takes
        T_mult (int, default 1): the factor of each period after it
        eta_min (float, default 0.0): the lowest rate
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule, rates = trt.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance by one epoch, or to a given one (a fraction is a batch within it). Raises ValueError below 0."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # Number of whole cycles that lie before the epoch, from the sum of a geometric series.
            cycles = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycles - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**cycles
        self.last_epoch = math.floor(epoch)
        self._apply(self.get_lr)


def _check_members(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
    for index, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
            )
        if optimizer is not scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {index} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _SchedulerGroup(LRScheduler):
    """A schedule made of others: its state dict holds theirs."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, with the state dicts of the schedules inside."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)


class SequentialLR(_SchedulerGroup):
    """One schedule after the other; milestones: the epochs at which the next one takes over.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        schedulers (list of schedules): the schedules
        milestones (list of ints): the epochs at which the next schedule begins
        last_epoch (int, default -1): the epoch that was the last one; -1 begins

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> warmup = trt.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
    >>> decay = trt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule, rates = trt.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2]), []
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    >>> rates
    [0.1, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        _check_members(type(self).__name__, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule made its first step when it was constructed: take those back, then let the first one start.
        for group in optimizer.param_groups:
            _set_group_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take one step back from the epoch counters of all schedules inside."""
        target = self if sched is None else sched
        if hasattr(target, "_schedulers"):
            for scheduler in target._schedulers:
                self.recursive_undo(scheduler)
        elif hasattr(target, "last_epoch"):
            target.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Advance the schedule whose turn it is; at its milestone it starts at its epoch 0."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_SchedulerGroup):
    """All schedules at once, each applied to the rate that the one before left.

    Parameters:
        schedulers (sequence of schedules): the schedules
        optimizer (Optimizer or None, default None): the optimizer of all; None takes that of the schedules

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> first = trt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> second = trt.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=1)
    >>> schedule = trt.optim.lr_scheduler.ChainedScheduler([first, second])
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        _check_members(type(self).__name__, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]
        """Advance all schedules by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()


class ReduceLROnPlateau(LRScheduler):
    """The rate times factor (< 1) when a metric has not improved for `patience` epochs.

    mode: `min` or `max`; threshold_mode: `rel` or `abs`; min_lr: bound, one or per group. Raises ValueError otherwise.

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        mode (str, default 'min'): 'min' where the metric should fall, 'max' where it should rise
        factor (float, default 0.1): the factor of the rate, below 1
        patience (int, default 10): how many epochs without improvement are allowed
        threshold (float, default 0.0001): how much counts as an improvement
        threshold_mode (str, default 'rel'): 'rel' for a part of the best value, 'abs' for a difference
        cooldown (int, default 0): how many epochs to wait after a change
        min_lr (list of floats or float, default 0): the lowest rate, one or for each group
        eps (float, default 1e-08): smaller changes of the rate are left out

    >>> import tensorrt_lite as trt
    >>> optimizer = trt.optim.SGD([trt.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = trt.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._present()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the epoch's metric (a number or one-element tensor) and reduce the rates if it is time."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._present()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                _set_group_value(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are ignored after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


def __dir__() -> list[str]:
    return _listing.public(globals())
