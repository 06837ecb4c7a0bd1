"""Recurrent layers on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as torch
from device_checks import agree

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def draw(*shape: int, dtype: Any = torch.float64) -> torch.Tensor:
    return (torch.rand(*shape) - 0.5).to(dtype).requires_grad_()


def parameters(function: str, hidden: int, features: int, directions: int, projection: int = 0, dtype: Any = torch.float64) -> list[torch.Tensor]:
    rows, width = GATES[function] * hidden, projection or hidden
    one = [(rows, features), (rows, width), (rows,), (rows,)] + [(width, hidden)] * bool(projection)
    return [draw(*shape, dtype=dtype) for _ in range(directions) for shape in one]


def states(function: str, batch: int, hidden: int, directions: int, projection: int = 0, dtype: Any = torch.float64) -> Any:
    h = draw(directions, batch, projection or hidden, dtype=dtype)
    return [h, draw(directions, batch, hidden, dtype=dtype)] if function == "lstm" else h


def check_layers(order: str) -> None:
    """Both directions, sequences and packed ones, float32, float64 and halves."""
    for function in GATES:
        call = getattr(torch, function)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            hx, weights = states(function, 3, 5, 2, dtype=dtype), parameters(function, 5, 4, 2, dtype=dtype)
            agree(call, draw(4, 3, 4, dtype=dtype), hx, weights, True, 1, 0.0, False, True, False)
        sizes = torch.tensor([3, 3, 1])
        agree(lambda x, hx, *w, call=call, sizes=sizes: call(x, sizes, hx, list(w), True, 1, 0.0, False, True), draw(7, 4), states(function, 3, 40, 2), *parameters(function, 40, 4, 2))


def check_projection(order: str) -> None:
    """An LSTM whose state is projected."""
    agree(torch.lstm, draw(3, 2, 4), states("lstm", 2, 6, 1, 3), parameters("lstm", 6, 4, 1, 3), True, 1, 0.0, False, False, False)


def check_cells(order: str) -> None:
    """One step."""
    for function in GATES:
        hx = states(function, 2, 5, 1)
        hx = [s[0] for s in hx] if function == "lstm" else hx[0]
        agree(getattr(torch, function + "_cell"), draw(2, 4), hx, *parameters(function, 5, 4, 1))
