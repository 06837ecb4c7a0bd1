"""Adversarial examples by the sign of the gradient of the data: accuracy against epsilon."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 6 * 6, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2))
        return F.log_softmax(self.fc2(F.relu(self.fc1(torch.flatten(x, 1)))), dim=1)


def quadrants(count):
    """Pictures (1, 16, 16) of noise from 0 to 1, brighter in one quadrant, which is the class."""
    labels = torch.randint(4, (count,))
    images = 0.6 * torch.rand(count, 1, 16, 16)
    for image, label in zip(images, labels.tolist()):
        image[:, 8 * (label // 2) :, 8 * (label % 2) :][:, :8, :8] += 0.2
    return images, labels


def denorm(batch, mean=(0.3,), std=(0.2,)):
    mean, std = torch.tensor(mean), torch.tensor(std)
    return batch * std.view(1, -1, 1, 1) + mean.view(1, -1, 1, 1)


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def attack(model, images, labels, epsilon):
    correct, kept = 0, []
    for image, target in zip(images.split(1), labels.split(1)):
        data = (image - 0.3) / 0.2
        data.requires_grad = True
        output = model(data)
        init_pred = output.max(1, keepdim=True)[1]
        if init_pred.item() != target.item():
            continue
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(denorm(data), epsilon, data.grad.data)
        final = model((perturbed - 0.3) / 0.2).max(1, keepdim=True)[1]
        if final.item() == target.item():
            correct += 1
        elif len(kept) < 5:
            kept.append((init_pred.item(), final.item(), perturbed.squeeze().detach().cpu().numpy()))
    print(f"epsilon {epsilon:.2f}: accuracy {correct / len(images):.3f}", [(a, b, round(float(c.mean()), 3)) for a, b, c in kept[:2]])


def main():
    torch.manual_seed(42)
    images, labels = quadrants(512)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for step in range(24):
        x, y = images[step * 16 : step * 16 + 16], labels[step * 16 : step * 16 + 16]
        optimizer.zero_grad()
        loss = F.nll_loss(model((x - 0.3) / 0.2), y)
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            print(f"step {step + 1}: {loss.item():.5f}")
    model.eval()
    for epsilon in (0, 0.05, 0.1, 0.2):
        attack(model, images[-64:], labels[-64:], epsilon)


if __name__ == "__main__":
    main()
