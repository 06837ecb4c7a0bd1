"""Averages of weights over training: AveragedModel (stochastic or exponential), SWALR, update_bn."""

# Imported on first use, since it needs `nn`, which optimizers do not.

from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite import nn

from ._scheduler_base import LRScheduler, _per_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorrt_lite import Tensor

    from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Function of (average, current, count) that gives the exponential moving average; decay: in [0, 1]."""
    _check_decay(decay)

    def ema_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * average + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Function of (average, current, count) that gives the equally weighted average."""

    def swa_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return average + (current - average) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """As `get_ema_avg_fn`, for lists of tensors and in place."""
    single = get_ema_avg_fn(decay)

    def ema_update(averages: list[Tensor], currents: list[Tensor], num_averaged: Any) -> None:
        _update_all(averages, currents, lambda a, c: single(a, c, num_averaged), 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """As `get_swa_avg_fn`, for lists of tensors and in place."""
    single = get_swa_avg_fn()

    def swa_update(averages: list[Tensor], currents: list[Tensor], num_averaged: Any) -> None:
        weight = 1 / (float(num_averaged) + 1)
        _update_all(averages, currents, lambda a, c: single(a, c, num_averaged), weight)

    return swa_update


def _update_all(
    averages: list[Tensor], currents: list[Tensor], single: Callable[[Tensor, Tensor], Tensor], weight: float
) -> None:
    """Interpolate each pair in place; integers, which cannot be interpolated in their dtype, go through `single`."""
    with no_grad():
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, weight)
            else:
                average.copy_(single(average, current))


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are an average over the calls of `update_parameters`.

    avg_fn(average, current, count) gives one new average, multi_avg_fn updates lists in place; equal weights by
    default. use_buffers: average buffers too, otherwise they are copied. Raises AssertionError when both are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: nn.Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[list[Tensor], list[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", trt.tensor(0, dtype=trt.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: nn.Module) -> None:
        """Take the model's parameters into the average; the first call copies them."""
        own: Iterable[Tensor] = self.module.parameters()
        new: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own, new = chain(own, self.module.buffers()), chain(new, model.buffers())
        averages = [p.detach() for p in own]
        currents = [p.detach().to(a.device) for p, a in zip(new, averages, strict=True)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(self.avg_fn(average, current, self.n_averaged.to(average.device)))
        elif averages:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, currents, self.n_averaged)
        if not self.use_buffers:
            for own_buffer, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own_buffer.detach().copy_(buffer.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: nn.Module, device: Any = None) -> None:
    """Recompute the running statistics of batch normalisation by one pass over the data.

    loader: batches, or tuples whose first element is the batch.
    """
    kinds = tuple(getattr(nn, f"BatchNorm{n}d") for n in (1, 2, 3) if hasattr(nn, f"BatchNorm{n}d"))
    momenta = {}
    for module in model.modules():
        if isinstance(module, kinds):
            module.reset_running_stats()
            momenta[module] = module.momentum
            # No momentum means the plain mean over all batches.
            module.momentum = None
    if not momenta:
        return
    was_training = model.training
    model.train()
    try:
        with no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneal each group's rate to swa_lr in anneal_epochs, then hold it; anneal_strategy: `cos` or `linear`."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, lr in zip(optimizer.param_groups, _per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """Share of swa_lr in the rate after so many steps."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self) -> list[Any]:
        """Rates for the current epoch, one per group."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            # Recover the unannealed rate, which other schedules may drive, from the mixture of the last step.
            target = group["swa_lr"]
            plain = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + plain * (1 - now))
        return rates
