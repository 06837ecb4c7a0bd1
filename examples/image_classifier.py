"""A convolutional network that reads handwritten digits: DataLoader, dropout, AdamW with a one-cycle schedule, accuracy on held-out images."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses, show_images
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


class DigitClassifier(nn.Module):
    """Logits of ten classes; `images: (N, 1, 8, 8)` to `(N, 10)`."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(2 * width * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classify(self.features(images))
        return logits


def train(model: nn.Module, data: TensorDataset, progress: Progress) -> None:
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = OneCycleLR(optimizer, max_lr=5e-3, total_steps=progress.steps)
    model.train()
    for _, (images, labels) in zip(progress, endless(loader)):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        progress.record(loss.item())


@torch.no_grad()
def predict(model: nn.Module, images: Tensor) -> Tensor:
    """The probability of each class, `(N, 10)`."""
    model.eval()
    logits: Tensor = model(images)
    return logits.softmax(dim=1)


def draw_picture(losses: list[float], images: Tensor, labels: Tensor, probabilities: Tensor) -> Figure:
    """The losses, and the images whose label the network finds least likely."""
    given = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    hardest = given.argsort()[:20]
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_losses(left, losses, "cross entropy")
    show_images(right, images[hardest], columns=5, title="the hardest of the held-out images")
    said = probabilities[hardest].argmax(dim=1)
    for i, (label, guess) in enumerate(zip(labels[hardest].tolist(), said.tolist())):
        right.text(i % 5 * 9, i // 5 * 9 + 1, f"{label}" if label == guess else f"{label}, not {guess}", color="yellow", fontsize=7)
    return figure


def main() -> None:
    options = parse_options(__file__, __doc__, steps=300)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    model = DigitClassifier()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(training_data)} images to train on")

    progress = Progress(options.steps)
    train(model, training_data, progress)

    images, labels = held_out.tensors
    probabilities = predict(model, images)
    accuracy = (probabilities.argmax(dim=1) == labels).float().mean().item()
    finish(options, progress, draw_picture(progress.losses, images, labels, probabilities), "held-out accuracy", accuracy)


if __name__ == "__main__":
    main()
