"""What the cases share: a register, training loops, times, results as flat lists of numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

Result = tuple[Any, float]
CASES: dict[str, Callable[[], Any]] = {}


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a function that returns numbers and tensors, or these and seconds."""

    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        CASES[name] = function
        return function

    return register


def least_time(call: Callable[[], Any], count: int = 3) -> Result:
    """What the call returns, and the least of its times."""
    least = float("inf")
    for _ in range(count):
        start = time.process_time()
        result = call()
        least = min(least, time.process_time() - start)
    return result, least


def train(model: torch.nn.Module, loss_of: Callable[[], torch.Tensor], steps: int, lr: float = 1e-3) -> Result:
    """The losses of AdamW's steps, and the least time of one."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []

    def step() -> None:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    return losses, least_time(step, steps)[1]


def numbers(value: Any) -> list[float]:
    """All numbers of nested results; complex ones as two."""
    if torch.is_tensor(value):
        value = torch.view_as_real(value) if value.is_complex() else value
        return value.detach().double().flatten().tolist()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [x for part in value for x in numbers(part)]
    return [] if value is None else [float(value)]
