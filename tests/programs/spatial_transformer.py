"""A spatial transformer network: affine_grid and grid_sample undo the turning of pictures, initialised to the identity."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5)
        self.conv2 = nn.Conv2d(6, 8, kernel_size=5)
        self.conv2_drop = nn.Dropout2d(0.2)
        self.fc1 = nn.Linear(8 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 3)
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=7),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
            nn.Conv2d(4, 6, kernel_size=5),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
        )
        self.fc_loc = nn.Sequential(nn.Linear(6 * 3 * 3, 16), nn.ReLU(True), nn.Linear(16, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def stn(self, x):
        theta = self.fc_loc(self.localization(x).view(-1, 6 * 3 * 3)).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=False), align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 8 * 4 * 4)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def pictures(count):
    """An L, a T and an I, each turned, moved and scaled."""
    base = torch.zeros(3, 1, 28, 28)
    base[0, 0, 6:22, 8:11] = base[0, 0, 19:22, 8:20] = 1
    base[1, 0, 6:9, 6:22] = base[1, 0, 6:22, 13:16] = 1
    base[2, 0, 6:22, 13:16] = 1
    labels = torch.randint(3, (count,))
    angle = (torch.rand(count) - 0.5) * math.pi / 2
    scale = 0.9 + 0.5 * torch.rand(count)
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = angle.cos() * scale
    theta[:, 0, 1], theta[:, 1, 0] = -angle.sin() * scale, angle.sin() * scale
    theta[:, :, 2] = 0.3 * torch.randn(count, 2)
    return F.grid_sample(
        base[labels], F.affine_grid(theta, (count, 1, 28, 28), align_corners=False), padding_mode="zeros", align_corners=False
    ), labels


def main():
    torch.manual_seed(5)
    data, target = pictures(320)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        model.train()
        for i, chosen in enumerate(torch.randperm(256).split(32)):
            optimizer.zero_grad()
            loss = F.nll_loss(model(data[chosen]), target[chosen])
            loss.backward()
            optimizer.step()
            if i % 4 == 0:
                print(f"epoch {epoch} batch {i} loss {loss.item():.5f}")
    model.eval()
    with torch.no_grad():
        output = model(data[256:])
        loss = F.nll_loss(output, target[256:], reduction="sum").item()
        pred = output.max(1, keepdim=True)[1]
        print(f"test loss {loss / 64:.4f}, right {pred.eq(target[256:].view_as(pred)).sum().item()} of 64")
        moved = model.stn(data[:4])
        print("transformed", tuple(moved.shape), f"{(moved - data[:4]).abs().mean().item():.6f}")


if __name__ == "__main__":
    main()
