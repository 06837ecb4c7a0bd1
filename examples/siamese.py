"""A siamese network with a contrastive loss: one network embeds both images of a pair, near each other where they show the same digit."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, finish, load_digits, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Embedding(nn.Module):
    """A place in space for each image; `images: (N, 1, 8, 8)` to `(N, size)`."""

    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.PReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.PReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.PReLU(),
            nn.Linear(64, size),
        )

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(images)
        return features


class Pairs(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Pairs of images, half of them of the same digit: the images, each (1, 8, 8), and 1 for the same digit, 0 for different ones."""

    def __init__(self, images: Tensor, labels: Tensor, count: int) -> None:
        self.images = images
        members = [(labels == digit).nonzero().squeeze(1) for digit in labels.unique()]
        self.same = (torch.arange(count) % 2 == 0).float()
        pairs = []
        for same in self.same.bool().tolist():
            first, second = torch.randperm(len(members))[:2].tolist()
            pool = (members[first], members[first if same else second])
            pairs.append([digits[torch.randint(0, len(digits), ())].item() for digits in pool])
        self.pairs = torch.tensor(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        first, second = self.pairs[index]
        return self.images[first], self.images[second], self.same[index]


def contrastive_loss(first: Tensor, second: Tensor, same: Tensor, margin: float = 1.0) -> Tensor:
    """Pulls the same together and pushes the different apart up to the margin (Hadsell, Chopra and LeCun 2006)."""
    distance = F.pairwise_distance(first, second)
    return (same * distance.square() + (1 - same) * F.relu(margin - distance).square()).mean()


@torch.no_grad()
def pair_accuracy(model: nn.Module, pairs: Pairs) -> float:
    """How many pairs the distance 1/2 divides rightly."""
    first, second, same = next(iter(DataLoader(pairs, batch_size=len(pairs))))
    near: Tensor = F.pairwise_distance(model(first), model(second)) < 0.5
    return float((near == same.bool()).float().mean())


def main() -> None:
    options = parse_options(__file__, __doc__, steps=400)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    batch = 64
    images, labels = training_data.tensors
    pairs = Pairs(images, labels, count=batch * options.steps)
    model = Embedding()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    progress = Progress(options.steps)
    for _, (first, second, same) in zip(progress, DataLoader(pairs, batch_size=batch)):
        loss = contrastive_loss(model(first), model(second), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.record(loss.item())

    model.eval()
    images, labels = held_out.tensors
    accuracy = pair_accuracy(model, Pairs(images, labels, count=1000))
    with torch.no_grad():
        places = model(images)
    figure = Figure(figsize=(11, 5), layout="constrained")
    plot_losses(figure.add_subplot(1, 2, 1), progress.losses, "contrastive loss")
    axes = figure.add_subplot(1, 2, 2, projection="3d")
    for digit in range(10):
        own = places[labels == digit]
        axes.plot(*own.T.numpy(), linestyle="", marker="o", markersize=3, label=str(digit))
    axes.legend(fontsize=7, ncols=2)
    axes.set_title("held-out digits where the network puts them")
    finish(options, progress, figure, "accuracy on held-out pairs", accuracy)


if __name__ == "__main__":
    main()
