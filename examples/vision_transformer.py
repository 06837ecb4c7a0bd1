"""A vision transformer that reads handwritten digits in patches of 2x2 pixels, and where it looks while it decides."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.data import DataLoader


class Block(nn.Module):
    """Attention and an MLP, each behind a layer norm and beside a residual; `x: (N, T, width)`, also the weights of attention `(N, T, T)`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        normed = self.norm1(x)
        attended, weights = self.attention(normed, normed, normed, need_weights=need_weights)
        x = x + attended
        return x + self.mlp(self.norm2(x)), weights


class VisionTransformer(nn.Module):
    """Logits of ten classes; `images: (N, 1, 8, 8)` to `(N, 10)`."""

    def __init__(self, size: int = 8, patch: int = 2, width: int = 64, heads: int = 4, depth: int = 3) -> None:
        super().__init__()
        self.to_patches = nn.Conv2d(1, width, kernel_size=patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)
        nn.init.trunc_normal_(self.positions, std=0.02)

    def embed(self, images: Tensor) -> Tensor:
        patches = self.to_patches(images).flatten(2).transpose(1, 2)
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1) + self.positions

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images)
        for block in self.blocks:
            x, _ = block(x)
        return self.head(self.norm(x[:, 0]))

    @torch.no_grad()
    def look(self, images: Tensor) -> Tensor:
        """How much the class token of the last block attends to each patch, `(N, 4, 4)`, each image's largest being 1."""
        x, weights = self.embed(images), None
        for block in self.blocks:
            x, weights = block(x, need_weights=True)
        assert weights is not None
        seen: Tensor = weights[:, 0, 1:]
        return (seen / seen.amax(dim=1, keepdim=True)).view(len(images), 4, 4)


def draw_picture(model: VisionTransformer, losses: list[float], images: Tensor) -> Figure:
    figure = Figure(figsize=(11, 4), layout="constrained")
    parts = figure.subfigures(1, 2, squeeze=False)
    left, right = parts[0]
    plot_losses(left.subplots(), losses, "cross entropy")
    right.suptitle("digits, and what the class token attends to")
    for axes, image, seen in zip(right.subplots(3, 5).flat, images, model.look(images)):
        axes.imshow(image[0].numpy(), cmap="gray_r", extent=(0, 8, 8, 0))
        axes.imshow(seen.numpy(), cmap="hot", alpha=0.5, extent=(0, 8, 8, 0), interpolation="bilinear", vmin=0, vmax=1)
        axes.set_axis_off()
    return figure


def main() -> None:
    options = parse_options(__file__, __doc__, steps=400)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    model = VisionTransformer()
    # Weight decay for matrices alone, as usual with transformers.
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=2e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, options.steps - 20))
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[20])

    loader = DataLoader(training_data, batch_size=64, shuffle=True, drop_last=True)
    progress = Progress(options.steps)
    for _, (images, labels) in zip(progress, endless(loader)):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        progress.record(loss.item())

    model.eval()
    images, labels = held_out.tensors
    with torch.no_grad():
        accuracy = (model(images).argmax(dim=1) == labels).float().mean().item()
    finish(options, progress, draw_picture(model, progress.losses, images[:15]), "held-out accuracy", accuracy)


if __name__ == "__main__":
    main()
