"""Super-resolution by sub-pixel convolution: a network doubles the size of scikit-learn's photographs, beside bicubic interpolation."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image
from torch import Tensor, nn

SCALE = 2


class SubPixelNetwork(nn.Module):
    """What bicubic interpolation misses: `small: (N, 3, H, W)` to `(N, 3, SCALE * H, SCALE * W)` (Shi et al. 2016)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=5, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, kernel_size=3, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 3 * SCALE**2, kernel_size=3, padding=1),
            nn.PixelShuffle(SCALE),
        )

    def forward(self, small: Tensor) -> Tensor:
        detail: Tensor = self.layers(small - 0.5)
        return enlarge(small) + detail


def enlarge(small: Tensor) -> Tensor:
    return F.interpolate(small, scale_factor=float(SCALE), mode="bicubic", align_corners=False)


def shrink(images: Tensor) -> Tensor:
    """Each pixel the mean of a square of SCALE by SCALE."""
    return F.avg_pool2d(images, SCALE)


def load_photographs() -> tuple[Tensor, Tensor]:
    """A temple and a flower: the columns to train on, `(2, 3, 426, 480)`, and those held out, `(2, 3, 426, 160)`, from 0 to 1."""
    photographs = torch.stack([torch.tensor(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")])
    photographs = photographs.permute(0, 3, 1, 2)[:, :, :426].float() / 255
    return photographs[..., :480], photographs[..., 480:]


def draw_crops(images: Tensor, count: int, size: int) -> Tensor:
    """Random squares, `(count, 3, size, size)`, half of them mirrored."""
    crops = []
    for _ in range(count):
        which, flipped = int(torch.randint(0, len(images), ())), torch.rand(()).item() < 0.5
        top = int(torch.randint(0, images.shape[2] - size + 1, ()))
        left = int(torch.randint(0, images.shape[3] - size + 1, ()))
        crop = images[which, :, top : top + size, left : left + size]
        crops.append(crop.flip(-1) if flipped else crop)
    return torch.stack(crops)


def psnr(images: Tensor, truth: Tensor) -> float:
    """Peak signal-to-noise ratio in decibels."""
    return -10 * math.log10(F.mse_loss(images.clamp(0, 1), truth).item())


def main() -> None:
    options = parse_options(__file__, __doc__, steps=300)
    torch.manual_seed(options.seed)
    training, held_out = load_photographs()
    model = SubPixelNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.steps, eta_min=1e-4)
    progress = Progress(options.steps)
    for _ in progress:
        crops = draw_crops(training, count=16, size=48)
        loss = F.l1_loss(model(shrink(crops)), crops)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        progress.record(loss.item())

    model.eval()
    small = shrink(held_out)
    with torch.no_grad():
        bicubic, sharpened = enlarge(small), model(small)
    before, after = psnr(bicubic, held_out), psnr(sharpened, held_out)
    print(f"bicubic interpolation: {before:.2f} dB, the network: {after:.2f} dB")

    figure = Figure(figsize=(13, 4), layout="constrained")
    axes = figure.subplots(1, 5)
    plot_losses(axes[0], progress.losses, "mean absolute error")
    for place, images, title in zip(axes[1:], (small, bicubic, sharpened, held_out), ("given", f"bicubic, {before:.1f} dB", f"network, {after:.1f} dB", "truth")):
        scale = held_out.shape[2] // images.shape[2]
        top, size = 150 // scale, 120 // scale
        place.imshow(images[0, :, top : top + size, :size].permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="nearest")
        place.set(title=title, xticks=[], yticks=[])
    finish(options, progress, figure, "held-out dB above bicubic interpolation", after - before)


if __name__ == "__main__":
    main()
