"""Transfer learning: a network trained on one task, its body frozen under a new head, then all of it tuned at a lower rate; best weights kept."""

import copy

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset, random_split


def waves(classes, count, seed):
    """Pictures (3, 16, 16) of plane waves, whose frequency is the class."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=g)
    grid = torch.stack(torch.meshgrid(torch.linspace(0, 1, 16), torch.linspace(0, 1, 16), indexing="xy"))
    angle = torch.rand(count, generator=g) * 3.14159
    direction = torch.stack([angle.cos(), angle.sin()], 1)
    phase = torch.einsum("nc,chw->nhw", direction, grid) * (labels + 1)[:, None, None] * 6.0
    images = torch.sin(phase + torch.rand(count, 1, 1, generator=g) * 6.28)[:, None].expand(-1, 3, -1, -1)
    return TensorDataset(images + 0.3 * torch.randn(count, 3, 16, 16, generator=g), labels)


class Block(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.layers = nn.ModuleList([Block(8, 8), Block(8, 16, 2), Block(16, 16)])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


def train_model(model, loaders, criterion, optimizer, scheduler, epochs):
    best, best_acc = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            model.train() if phase == "train" else model.eval()
            running_loss, running_corrects, seen = 0.0, 0, 0
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
                seen += inputs.size(0)
            if phase == "train":
                scheduler.step()
            acc = running_corrects.double() / seen
            print(f"{epoch} {phase}: loss {running_loss / seen:.4f} acc {acc:.2f} lr {scheduler.get_last_lr()[0]:.5f}")
            if phase == "val" and acc >= best_acc:
                best_acc, best = acc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return model


def loaders_of(data):
    train, val = random_split(data, [0.75, 0.25], generator=torch.Generator().manual_seed(5))
    return {"train": DataLoader(train, batch_size=32, shuffle=True), "val": DataLoader(val, batch_size=32)}


def main():
    torch.manual_seed(1)
    criterion = nn.CrossEntropyLoss()
    base = Net(4)
    optimizer = optim.SGD(base.parameters(), lr=0.02, momentum=0.9)
    base = train_model(base, loaders_of(waves(4, 256, 1)), criterion, optimizer, lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5), 2)
    model = copy.deepcopy(base)
    for param in model.parameters():
        param.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, 2)
    print("trained:", [n for n, p in model.named_parameters() if p.requires_grad], sum(p.numel() for p in model.parameters()))
    optimizer = optim.Adam(model.fc.parameters(), lr=5e-3)
    model = train_model(model, loaders_of(waves(2, 128, 2)), criterion, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9), 2)
    model.requires_grad_(True)
    groups = [{"params": [p for n, p in model.named_parameters() if not n.startswith("fc")], "lr": 1e-4}, {"params": model.fc.parameters()}]
    optimizer = optim.AdamW(groups, lr=1e-3)
    train_model(model, loaders_of(waves(2, 128, 2)), criterion, optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 4), 1)


if __name__ == "__main__":
    main()
