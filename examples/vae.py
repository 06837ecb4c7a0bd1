"""A variational autoencoder of handwritten digits with a plane of latent variables, and what it draws across that plane."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses, show_images
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.data import DataLoader


class VAE(nn.Module):
    """Encodes images (N, 1, 8, 8) as normal distributions over `latent` numbers, and decodes such numbers as logits of grey values."""

    def __init__(self, latent: int = 2, width: int = 256) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2 * latent))
        self.decoder = nn.Sequential(
            nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64), nn.Unflatten(1, (1, 8, 8))
        )

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance, each `(N, latent)`."""
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        return mean, log_variance

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encode(images)
        drawn = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decoder(drawn), mean, log_variance


def negative_elbo(model: VAE, images: Tensor) -> Tensor:
    """The bound on an image's negative log-likelihood: reconstruction plus divergence from the standard normal, in nats (Kingma and Welling 2013)."""
    logits, mean, log_variance = model(images)
    reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.square() - log_variance.exp())
    return (reconstruction + divergence) / len(images)


@torch.no_grad()
def draw_picture(model: VAE, losses: list[float], images: Tensor, labels: Tensor) -> Figure:
    """The losses, where held-out digits lie in the latent plane, and what the decoder draws across it."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    plot_losses(left, losses, "nats an image")
    mean, _ = model.encode(images)
    points = middle.scatter(mean[:, 0].numpy(), mean[:, 1].numpy(), c=labels.numpy(), cmap="tab10", s=8)
    middle.legend(*points.legend_elements(), fontsize=7, ncols=2)
    middle.set(title="held-out digits in the latent plane", xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
    # Places with equal mass of the normal distribution between them.
    side = torch.special.ndtri(torch.linspace(0.03, 0.97, 15))
    plane = torch.stack(torch.meshgrid(side, -side, indexing="xy"), dim=-1).flatten(0, 1)
    show_images(right, model.decoder(plane).sigmoid(), columns=15, title="drawn across the plane")
    return figure


def main() -> None:
    options = parse_options(__file__, __doc__, steps=1200)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    images, labels = held_out.tensors
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    loader = DataLoader(training_data, batch_size=128, shuffle=True, drop_last=True)
    progress = Progress(options.steps)
    for _, (batch, _) in zip(progress, endless(loader)):
        loss = negative_elbo(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        progress.record(loss.item())

    with torch.no_grad():
        bound = torch.stack([negative_elbo(model, images) for _ in range(10)]).mean().item()
    finish(options, progress, draw_picture(model, progress.losses, images, labels), "held-out nats an image", bound)


if __name__ == "__main__":
    main()
