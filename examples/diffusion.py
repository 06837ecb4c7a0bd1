"""A denoising diffusion model of handwritten digits: a small U-Net told the time and the digit learns the noise, and draws each digit from noise."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses, show_images
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.data import DataLoader

TIMES = 100


class ConditionedBlock(nn.Module):
    """Two convolutions with group norm beside a shortcut; the condition `(N, C)` shifts the channels between them."""

    def __init__(self, inputs: int, outputs: int, condition: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inputs, outputs, kernel_size=3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU())
        self.shift = nn.Linear(condition, outputs)
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, kernel_size=3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU())
        self.shortcut = nn.Conv2d(inputs, outputs, kernel_size=1)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        hidden = self.first(x) + self.shift(condition)[:, :, None, None]
        change: Tensor = self.second(hidden)
        return change + self.shortcut(x)


class UNet(nn.Module):
    """The noise in `x: (N, 1, 8, 8)` at the times `(N,)`, of images of the digits `(N,)`."""

    frequencies: Tensor

    def __init__(self, width: int = 24, condition: int = 64) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.arange(condition // 2) * (-math.log(1000.0) / (condition // 2))))
        self.time = nn.Sequential(nn.Linear(condition, condition), nn.SiLU(), nn.Linear(condition, condition))
        self.digit = nn.Embedding(10, condition)
        self.down = ConditionedBlock(1, width, condition)
        self.middle = ConditionedBlock(width, 2 * width, condition)
        self.up = ConditionedBlock(3 * width, width, condition)
        self.out = nn.Conv2d(width, 1, kernel_size=3, padding=1)

    def forward(self, x: Tensor, times: Tensor, digits: Tensor) -> Tensor:
        angles = times.unsqueeze(1) * self.frequencies
        condition = F.silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=1)) + self.digit(digits))
        fine = self.down(x, condition)
        coarse = self.middle(F.avg_pool2d(fine, 2), condition)
        joined = torch.cat([fine, F.interpolate(coarse, scale_factor=2.0, mode="nearest")], dim=1)
        return self.out(self.up(joined, condition))


class Diffusion:
    """The cosine schedule: how much of the image is left at each time (Nichol and Dhariwal 2021), and the steps both ways (Ho et al. 2020)."""

    def __init__(self, times: int = TIMES) -> None:
        curve = torch.cos((torch.arange(times + 1) / times + 0.008) / 1.008 * math.pi / 2).square()
        self.betas = (1 - curve[1:] / curve[:-1]).clamp(max=0.999)
        self.alphas = 1 - self.betas
        self.kept = self.alphas.cumprod(dim=0)

    def add_noise(self, images: Tensor, noise: Tensor, times: Tensor) -> Tensor:
        kept = self.kept[times].view(-1, 1, 1, 1)
        return kept.sqrt() * images + (1 - kept).sqrt() * noise

    @torch.no_grad()
    def sample(self, model: nn.Module, digits: Tensor) -> list[Tensor]:
        """Images of the digits, drawn from noise; also what they were on the way."""
        x = torch.randn(len(digits), 1, 8, 8)
        states = []
        for time in reversed(range(len(self.betas))):
            predicted = model(x, torch.full((len(digits),), time), digits)
            x = (x - self.betas[time] / (1 - self.kept[time]).sqrt() * predicted) / self.alphas[time].sqrt()
            if time > 0:
                x = x + self.betas[time].sqrt() * torch.randn_like(x)
            if time % (len(self.betas) // 4) == 0:
                states.append(x)
        return states


def noise_loss(model: nn.Module, diffusion: Diffusion, images: Tensor, digits: Tensor) -> Tensor:
    """Mean squared error of the predicted noise; 1 would be to predict none."""
    times, noise = torch.randint(0, TIMES, (len(images),)), torch.randn_like(images)
    return F.mse_loss(model(diffusion.add_noise(images, noise, times), times, digits), noise)


def main() -> None:
    options = parse_options(__file__, __doc__, steps=500)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    model, diffusion = UNet(), Diffusion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(training_data, batch_size=64, shuffle=True, drop_last=True)
    progress = Progress(options.steps)
    for _, (images, digits) in zip(progress, endless(loader)):
        loss = noise_loss(model, diffusion, 2 * images - 1, digits)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        progress.record(loss.item())

    model.eval()
    images, digits = held_out.tensors
    with torch.no_grad():
        final = torch.stack([noise_loss(model, diffusion, 2 * images - 1, digits) for _ in range(4)]).mean().item()
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.4])
    plot_losses(left, progress.losses, "error of the predicted noise")
    states = diffusion.sample(model, torch.arange(10).repeat(3))
    sheet = torch.cat([*(state[:10] for state in states[:-1]), states[-1]])
    show_images(right, ((sheet + 1) / 2).clamp(0, 1), columns=10, title="from noise to digits; two more of each")
    finish(options, progress, figure, "held-out error of the predicted noise", final)


if __name__ == "__main__":
    main()
