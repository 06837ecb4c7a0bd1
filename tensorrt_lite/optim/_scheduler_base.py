"""LRScheduler, the base of every schedule, and what schedules share: reading and writing a group's values, checks."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from weakref import ref

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad

from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler."
)


def _set_group_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Assign an option; a tensor option keeps its identity, since compiled steps may hold it."""
    if isinstance(group[key], trt.Tensor):
        with no_grad():
            group[key].fill_(value.item() if isinstance(value, trt.Tensor) else value)
    else:
        group[key] = _own(value)


def _own(value: Any) -> Any:
    """An option that nobody else changes: a tensor is copied."""
    return value.clone() if isinstance(value, trt.Tensor) else value


def _group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """One option of all groups; tensors are copied so that callers cannot change the schedule through them."""
    return [_own(group[key]) for group in optimizer.param_groups]


def _per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group from one value or a sequence; tensors are copied. Raises ValueError when the lengths differ."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return list(map(_own, value))


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Base of the schedules: a subclass gives `get_lr`.

    last_epoch: -1 to start; otherwise the groups must hold `initial_lr` (KeyError if not).

    Parameters:
        optimizer (Optimizer): the optimizer whose rates are set
        last_epoch (int, default -1): the epoch that was the last one; -1 begins
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", _own(lr))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state first, or leave last_epoch at -1 for a fresh run"
                )
        self.base_lrs = _group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_optimizer_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Rates that the last step set, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group; called by `step`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Advance by one epoch; an explicit epoch is deprecated. Call it after the optimizer's step."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                    "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result "
                    "in skipping the first value of the learning rate schedule.",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = getattr(self, "_get_closed_form_lr", None) if epoch is not None else None
        self._apply(closed_form or self.get_lr)

    def _apply(self, compute: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            values = compute()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _set_group_value(group, "lr", lr)
        self._last_lr = _group_values(self.optimizer, "lr")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _scaled(self, factor: float) -> list[Any]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _present(self) -> list[Any]:
        return _group_values(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """The base's name in old programs."""


def _track_optimizer_steps(optimizer: Optimizer) -> None:
    """Make the optimizer note that it stepped, for the warning about the order of the two `step` calls."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    # A weak reference, since the optimizer holds this wrapper: a strong one would make a cycle.
    optimizer_ref, func = ref(optimizer), step.__func__

    def tracked(*args: Any, **kwargs: Any) -> Any:
        target = optimizer_ref()
        target._opt_called = True  # type: ignore[union-attr]
        return func(target, *args, **kwargs)

    tracked.__name__, tracked.__doc__ = step.__name__, step.__doc__
    tracked._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = tracked  # type: ignore[method-assign]
