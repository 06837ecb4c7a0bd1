"""Sine waves continued by two LSTM cells in double precision, trained on whole batches by LBFGS with a line search."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn


def make_waves(count: int, length: int, period: float = 20.0) -> Tensor:
    """Sines with a random phase each, `(count, length)`."""
    phase = torch.randint(-80, 80, (count, 1))
    return torch.sin(2 * math.pi * (torch.arange(length) + phase).double() / period)


class WavePredictor(nn.Module):
    """The next value after each given one, then `future` more, each fed back; `waves: (N, T)` to `(N, T + future)`."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.width = width
        self.cell1 = nn.LSTMCell(1, width)
        self.cell2 = nn.LSTMCell(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, waves: Tensor, future: int = 0) -> Tensor:
        state1 = state2 = (waves.new_zeros(len(waves), self.width), waves.new_zeros(len(waves), self.width))
        outputs: list[Tensor] = []
        given = waves.shape[1]
        for step in range(given + future):
            value = waves[:, step : step + 1] if step < given else outputs[-1]
            state1 = self.cell1(value, state1)
            state2 = self.cell2(state1[0], state2)
            outputs.append(self.head(state2[0]))
        return torch.cat(outputs, dim=1)


def main() -> None:
    options = parse_options(__file__, __doc__, steps=12)
    torch.manual_seed(options.seed)
    waves = make_waves(count=32, length=80)
    training, held_out = waves[3:], waves[:3]
    model = WavePredictor().double()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=8, line_search_fn="strong_wolfe")
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(training)} waves of {training.shape[1]} values")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(training[:, :-1]), training[:, 1:])
        loss.backward()
        return loss

    progress = Progress(options.steps)
    for _ in progress:
        # LBFGS evaluates the closure several times in a step; what it returns is the loss before the step.
        progress.record(float(optimizer.step(closure)))

    future = 120
    given = held_out[:, :-1]
    with torch.no_grad():
        predicted = model(given, future)
        error = F.mse_loss(predicted[:, : given.shape[1]], held_out[:, 1:]).item()

    figure = Figure(figsize=(11, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    plot_losses(upper, progress.losses, "mean squared error")
    upper.set_yscale("log")
    for i, colour in enumerate(("tab:red", "tab:green", "tab:blue")):
        lower.plot(range(given.shape[1]), given[i].numpy(), color=colour)
        lower.plot(range(given.shape[1], given.shape[1] + future), predicted[i, given.shape[1] :].numpy(), color=colour, linestyle=":")
    lower.set(xlabel="time", title="held-out waves, and how the network continues them (dotted)", ylim=(-1.5, 1.5))
    finish(options, progress, figure, "held-out squared error", error)


if __name__ == "__main__":
    main()
