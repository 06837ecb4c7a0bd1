"""A residual network on handwritten digits: batch norm, shifted copies of the images, Nesterov momentum, label smoothing, averaged weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, endless, finish, load_digits, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut; `x: (N, inputs, H, W)` to `(N, outputs, H / stride, W / stride)`."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    """Three stages of residual blocks, each of half the size and twice the channels; `images: (N, 1, 8, 8)` to logits `(N, classes)`."""

    def __init__(self, blocks: int = 1, width: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        stages: list[nn.Module] = []
        channels = width
        for stage in range(3):
            for block in range(blocks):
                outputs = width * 2**stage
                stages.append(ResidualBlock(channels, outputs, stride=2 if stage > 0 and block == 0 else 1))
                channels = outputs
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.pool(self.stages(self.stem(images))).flatten(1))


def shift(images: Tensor, distance: int = 1) -> Tensor:
    """Each image moved by at most `distance` pixels in both directions; `images: (N, 1, H, W)`, the same shape comes back."""
    count, _, height, width = images.shape
    padded = F.pad(images, [distance] * 4)
    down, right = torch.randint(0, 2 * distance + 1, (2, count, 1))
    rows = (down + torch.arange(height)).view(count, 1, height, 1)
    columns = (right + torch.arange(width)).view(count, 1, 1, width)
    return padded[torch.arange(count).view(-1, 1, 1, 1), 0, rows, columns]


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    model.eval()
    logits: Tensor = model(images)
    correct = (logits.argmax(dim=1) == labels).float().mean().item()
    model.train()
    return correct


def main() -> None:
    options = parse_options(__file__, __doc__, steps=250)
    torch.manual_seed(options.seed)
    training_data, held_out = load_digits()
    images_apart, labels_apart = held_out.tensors
    model = ResNet()
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=options.steps)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    loader = DataLoader(training_data, batch_size=64, shuffle=True, drop_last=True)
    progress = Progress(options.steps)
    measured: list[tuple[int, float, float]] = []
    for step, (images, labels) in zip(progress, endless(loader)):
        loss = criterion(model(shift(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        averaged.update_parameters(model)
        progress.record(loss.item())
        if (step + 1) % 25 == 0 or step + 1 == options.steps:
            measured.append((step, accuracy(model, images_apart, labels_apart), accuracy(averaged, images_apart, labels_apart)))

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_losses(left, progress.losses, "cross entropy, labels smoothed")
    steps, own, mean = zip(*measured)
    right.plot(steps, own, label="weights of the step")
    right.plot(steps, mean, label="averaged weights")
    right.set(xlabel="step", title="accuracy on held-out images", ylim=(0, 1.02))
    right.legend()
    finish(options, progress, figure, "held-out accuracy", mean[-1])


if __name__ == "__main__":
    main()
