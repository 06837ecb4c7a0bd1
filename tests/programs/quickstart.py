"""Quickstart: a Dataset with transforms, a DataLoader, a model, training, saving the weights and classifying with them."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["stripe", "column", "diagonal", "disc", "frame"]


class Shapes(Dataset):
    """Noisy grey pictures (1, 28, 28) of five shapes and their classes."""

    def __init__(self, count, transform=None, target_transform=None):
        generator = torch.Generator().manual_seed(count)
        self.labels = torch.randint(len(CLASSES), (count,), generator=generator)
        self.noise = torch.randn(count, 28, 28, generator=generator)
        self.shifts = torch.randint(-4, 5, (count, 2), generator=generator)
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        y, x = torch.meshgrid(torch.arange(28) - 14, torch.arange(28) - 14, indexing="ij")
        y, x = y + self.shifts[index, 0], x + self.shifts[index, 1]
        shape = [y.abs() < 3, x.abs() < 3, (x - y).abs() < 3, x**2 + y**2 < 60, (torch.maximum(x.abs(), y.abs()) - 8).abs() < 2]
        image = shape[int(self.labels[index])].float()[None] + 0.7 * self.noise[index]
        label = self.labels[index].item()
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.stack = nn.Sequential(nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, len(CLASSES)))

    def forward(self, x):
        return self.stack(self.flatten(x))


def train(loader, model, loss_fn, optimizer):
    size = len(loader.dataset)
    model.train()
    for batch, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 5 == 0:
            print(f"loss: {loss.item():>7f}  [{(batch + 1) * len(x):>5d}/{size:>5d}]")


def test(loader, model, loss_fn):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            pred = model(x)
            total += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    print(f"accuracy: {100 * correct / len(loader.dataset):>0.1f}%, mean loss: {total / len(loader):>8f}")


def main():
    torch.manual_seed(0)
    normalise = lambda image: (image - 0.2) / 0.8  # noqa: E731
    train_loader = DataLoader(Shapes(960, transform=normalise), batch_size=64, shuffle=True)
    test_loader = DataLoader(Shapes(320, transform=normalise), batch_size=64)
    x, y = next(iter(test_loader))
    print(f"images {x.shape} {x.dtype}, labels {y.shape} {y.dtype}")
    device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
    model = Network().to(device)
    print(model)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=5e-2)
    for epoch in range(2):
        print(f"epoch {epoch + 1}")
        train(train_loader, model, loss_fn, optimizer)
        test(test_loader, model, loss_fn)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pth")
        torch.save(model.state_dict(), path)
        again = Network()
        print(again.load_state_dict(torch.load(path, weights_only=True)))
    again.eval()
    x, y = test_loader.dataset[0]
    with torch.no_grad():
        pred = again(x)
        print(f"predicted {CLASSES[pred[0].argmax(0)]}, is {CLASSES[y]}")


if __name__ == "__main__":
    main()
