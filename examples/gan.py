"""A generative adversarial network of handwritten digits: two networks, two optimizers, transposed convolutions, spectral norm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses, show_images
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import DataLoader

LATENT = 24


def make_generator(width: int = 32) -> nn.Sequential:
    """From noise `(N, LATENT)` to images `(N, 1, 8, 8)` with values from 0 to 1."""
    return nn.Sequential(
        nn.Unflatten(1, (LATENT, 1, 1)),
        nn.ConvTranspose2d(LATENT, 2 * width, kernel_size=2, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, kernel_size=4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, kernel_size=4, stride=2, padding=1),
        nn.Sigmoid(),
    )


def make_discriminator(width: int = 32) -> nn.Sequential:
    """From images `(N, 1, 8, 8)` to a score `(N, 1)`, positive for a true image; spectral norm bounds how fast it may change."""
    return nn.Sequential(
        spectral_norm(nn.Conv2d(1, width, kernel_size=4, stride=2, padding=1)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Conv2d(width, 2 * width, kernel_size=4, stride=2, padding=1)),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        spectral_norm(nn.Linear(2 * width * 4, 1)),
    )


def discriminator_loss(discriminator: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """How badly it tells the two apart: below 2 log 2, 1.386, it is better than chance."""
    scores, scores_made = discriminator(real), discriminator(made)
    return F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores)) + F.binary_cross_entropy_with_logits(scores_made, torch.zeros_like(scores_made))


def generator_loss(discriminator: nn.Module, made: Tensor) -> Tensor:
    """The non-saturating loss: the generator wants its images taken for true ones (Goodfellow et al. 2014)."""
    scores = discriminator(made)
    return F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))


def main() -> None:
    options = parse_options(__file__, __doc__, steps=600)
    torch.manual_seed(options.seed)
    training_data, _ = load_digits()
    generator, discriminator = make_generator(), make_discriminator()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=4e-3, betas=(0.5, 0.999))
    probe = torch.randn(25, LATENT)
    drawn: list[tuple[int, Tensor]] = []
    judged: list[float] = []

    loader = DataLoader(training_data, batch_size=64, shuffle=True, drop_last=True)
    progress = Progress(options.steps)
    for step, (real, _) in zip(progress, endless(loader)):
        made = generator(torch.randn(len(real), LATENT))

        loss_d = discriminator_loss(discriminator, real, made.detach())
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()

        loss_g = generator_loss(discriminator, made)
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()

        progress.record(loss_g.item())
        judged.append(loss_d.item())
        if (step + 1) % max(1, options.steps // 3) == 0:
            with torch.no_grad():
                drawn.append((step + 1, generator(probe)))

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    axes = figure.subplots(1, 5)
    plot_losses(axes[0], progress.losses, "generator's loss")
    plot_losses(axes[1], judged, "discriminator's loss")
    for place, (step, images) in zip(axes[2:], drawn):
        show_images(place, images, columns=5, title=f"after {step} steps")
    for place in axes[2 + len(drawn) :]:
        place.set_axis_off()
    finish(options, progress, figure, "discriminator's last loss", judged[-1])


if __name__ == "__main__":
    main()
