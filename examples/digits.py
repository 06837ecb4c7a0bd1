"""Trains a small convolutional network on scikit-learn's handwritten digits and proves what it learned.

The data are 1,797 grey images of 8x8 pixels; a fifth is held out. `make demo` runs it, or `python examples/digits.py`.
It writes `learning_curve.png`, `confusion_matrix.png` and the checkpoint `digits.pt` into `--output`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import tensorrt_lite as trt
import tensorrt_lite.nn.functional as F
from tensorrt_lite import nn
from tensorrt_lite.optim import SGD
from tensorrt_lite.optim.lr_scheduler import CosineAnnealingLR
from tensorrt_lite.utils.data import DataLoader, TensorDataset


class ConvNormReLU(nn.Sequential):
    """A 3x3 convolution that keeps the size, batch norm, ReLU; `x: (N, inputs, H, W)` to `(N, outputs, H, W)`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


class DigitsCNN(nn.Module):
    """Logits of the ten digits; `x: (N, 1, 8, 8)` to `(N, 10)`."""

    def __init__(self, width: int = 24, dropout: float = 0.25) -> None:
        super().__init__()
        self.features = nn.Sequential(
            ConvNormReLU(1, width),
            ConvNormReLU(width, width),
            nn.MaxPool2d(2),
            ConvNormReLU(width, 2 * width),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(dropout)
        self.classify = nn.Linear(2 * width * 2 * 2, 10)

    def forward(self, x: trt.Tensor) -> trt.Tensor:
        scores: trt.Tensor = self.classify(self.dropout(self.features(x).flatten(1)))
        return scores


@dataclass
class History:
    """One figure an epoch: mean training loss, held-out loss, held-out accuracy (0 to 1)."""

    train_loss: list[float] = field(default_factory=list)
    held_out_loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Training and held-out `(images: (N, 1, 8, 8) from 0 to 1, labels: (N,))`, each digit in proportion."""
    digits: Any = load_digits()
    parts = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=seed, shuffle=True, stratify=digits.target
    )
    train_images, held_out_images = (trt.tensor(part, dtype=trt.float32).unsqueeze(1) / 16 for part in parts[:2])
    train_labels, held_out_labels = (trt.tensor(part, dtype=trt.int64) for part in parts[2:])
    return TensorDataset(train_images, train_labels), TensorDataset(held_out_images, held_out_labels)


def train_epoch(
    model: nn.Module, loader: DataLoader, optimizer: SGD, scheduler: CosineAnnealingLR, device: str, progress: tqdm
) -> float:
    """One pass over the training data; the mean loss."""
    model.train()
    total, count = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total, count = total + loss.item() * len(labels), count + len(labels)
        progress.update()
    return total / count


@trt.no_grad()
def evaluate(model: nn.Module, data: TensorDataset, device: str) -> tuple[float, trt.Tensor]:
    """Mean loss and predicted digits `(N,)` on a data set that fits in one batch."""
    model.eval()
    images, labels = data.tensors
    logits = model(images.to(device))
    return F.cross_entropy(logits, labels.to(device)).item(), logits.argmax(1).cpu()


def accuracy(predicted: trt.Tensor, labels: trt.Tensor) -> float:
    """The share of equal entries, 0 to 1."""
    return (predicted == labels).float().mean().item()


def train(
    model: nn.Module,
    training: TensorDataset,
    held_out: TensorDataset,
    epochs: int,
    batch_size: int,
    lr: float,
    device: str,
) -> History:
    """Train with momentum, weight decay and a cosine schedule; losses and accuracy of every epoch."""
    loader = DataLoader(training, batch_size=batch_size, shuffle=True)
    optimizer = SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    history = History()
    # disable=None: a bar on a terminal; elsewhere the line of each epoch is all.
    with tqdm(total=epochs * len(loader), desc="training", unit="step", disable=None) as progress:
        for epoch in range(1, epochs + 1):
            loss = train_epoch(model, loader, optimizer, scheduler, device, progress)
            held_out_loss, predicted = evaluate(model, held_out, device)
            history.train_loss.append(loss)
            history.held_out_loss.append(held_out_loss)
            history.accuracy.append(accuracy(predicted, held_out.tensors[1]))
            progress.set_postfix(loss=f"{loss:.4f}", accuracy=f"{history.accuracy[-1]:.1%}")
            if progress.disable:
                print(f"epoch {epoch:3d} of {epochs}: loss {loss:.4f}, held-out accuracy {history.accuracy[-1]:.1%}")
    return history


def plot_learning_curve(history: History, path: Path) -> None:
    """Both losses and the held-out accuracy by epoch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    epochs = range(1, len(history.train_loss) + 1)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    losses, accuracies = figure.subplots(1, 2)
    losses.plot(epochs, history.train_loss, marker=".", label="training")
    losses.plot(epochs, history.held_out_loss, marker=".", label="held out")
    losses.set(xlabel="epoch", ylabel="cross entropy", yscale="log", title="Loss")
    losses.legend()
    accuracies.plot(epochs, [100 * value for value in history.accuracy], marker=".", color="tab:green")
    accuracies.axhline(97, color="grey", linewidth=0.8, linestyle="--")
    accuracies.set(xlabel="epoch", ylabel="%", ylim=(min(90.0, 100 * min(history.accuracy)) - 1, 100.5))
    accuracies.set_title("Held-out accuracy")
    for axes in (losses, accuracies):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def plot_confusion_matrix(predicted: trt.Tensor, labels: trt.Tensor, path: Path) -> None:
    """Counts of true digit (rows) against predicted digit (columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=range(10))
    figure = Figure(figsize=(5.2, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(counts, cmap="Blues")
    for row in range(10):
        for column in range(10):
            count = counts[row, column]
            colour = "white" if count > counts.max() / 2 else "black" if count else "lightgrey"
            axes.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=9)
    axes.set(xticks=range(10), yticks=range(10), xlabel="predicted digit", ylabel="true digit")
    axes.set_title(f"{len(labels)} held-out digits")
    figure.savefig(path, dpi=150)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the weights, the order and dropout")
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training data")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate at the start of the cosine")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads; all cores when left out")
    parser.add_argument("--output", type=Path, default=Path("out/digits"), help="folder for images and checkpoint")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    """Train, report, save, reload and verify; the held-out accuracy, 0 to 1."""
    options = parse_arguments(argv)
    if options.threads is not None:
        trt.set_num_threads(options.threads)
    trt.manual_seed(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)

    training, held_out = load_data(options.seed)
    model = DigitsCNN().to(options.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(training)} training and {len(held_out)} held-out images, {parameters:,} parameters")
    start = time.perf_counter()
    history = train(model, training, held_out, options.epochs, options.batch_size, options.lr, options.device)
    print(f"trained {options.epochs} epochs in {time.perf_counter() - start:.1f} s")

    labels = held_out.tensors[1]
    _, predicted = evaluate(model, held_out, options.device)
    reached = accuracy(predicted, labels)
    print(f"held-out accuracy: {100 * reached:.1f} %")

    plot_learning_curve(history, options.output / "learning_curve.png")
    plot_confusion_matrix(predicted, labels, options.output / "confusion_matrix.png")

    checkpoint = options.output / "digits.pt"
    trt.save({"model": model.state_dict(), "accuracy": reached}, checkpoint)
    restored = DigitsCNN().to(options.device)
    restored.load_state_dict(trt.load(checkpoint)["model"])
    _, again = evaluate(restored, held_out, options.device)
    if not trt.equal(again, predicted):
        raise SystemExit(f"{checkpoint}: the reloaded model predicts differently")
    print(f"checkpoint reloaded, {len(again)} predictions equal: {checkpoint}")
    print(f"learning curve and confusion matrix: {options.output}")
    return reached


if __name__ == "__main__":
    main()
