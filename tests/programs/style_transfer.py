"""A picture is optimised to keep one picture's features and another's Gram matrices: LBFGS over pixels, losses as layers."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def assemble(cnn, mean, std, style, content):
    model = nn.Sequential(Normalization(mean, std))
    content_losses, style_losses, i = [], [], 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = f"conv_{i}"
        elif isinstance(layer, nn.ReLU):
            name, layer = f"relu_{i}", nn.ReLU(inplace=False)
        elif isinstance(layer, nn.AvgPool2d):
            name = f"pool_{i}"
        else:
            raise RuntimeError(f"Unrecognized layer: {layer.__class__.__name__}")
        model.add_module(name, layer)
        if name == "conv_3":
            content_losses.append(ContentLoss(model(content).detach()))
            model.add_module(f"content_loss_{i}", content_losses[-1])
        if name.startswith("conv"):
            style_losses.append(StyleLoss(model(style).detach()))
            model.add_module(f"style_loss_{i}", style_losses[-1])
    for i in range(len(model) - 1, -1, -1):
        if isinstance(model[i], ContentLoss | StyleLoss):
            break
    return model[: i + 1], style_losses, content_losses


def main():
    torch.manual_seed(6)
    torch.set_default_dtype(torch.float64)  # line searches of float32 part where rounding decides
    y, x = torch.meshgrid(torch.linspace(0, 1, 32), torch.linspace(0, 1, 32), indexing="ij")
    content = torch.stack([((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1).double(), x, y])[None]
    style = torch.stack([(20 * x).sin().abs(), (20 * y).cos().abs(), ((x + y) * 15).sin().abs()])[None]
    cnn = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(True),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(True),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(True),
    ).eval()
    input_img = content.clone()
    model, style_losses, content_losses = assemble(
        copy.deepcopy(cnn), torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225]), style, content
    )
    print([name for name, _ in model.named_children()])
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.LBFGS([input_img])
    run = [0]
    while run[0] <= 30:

        def closure():
            with torch.no_grad():
                input_img.clamp_(0, 1)
            optimizer.zero_grad()
            model(input_img)
            style_score = sum(sl.loss for sl in style_losses) * 1e4
            content_score = sum(cl.loss for cl in content_losses)
            loss = style_score + content_score
            loss.backward()
            run[0] += 1
            if run[0] % 10 == 1:
                print(f"run {run[0]}: style {style_score.item():.4f} content {content_score.item():.4f}")
            return style_score + content_score

        optimizer.step(closure)
    with torch.no_grad():
        input_img.clamp_(0, 1)
    print(f"mean {input_img.mean().item():.3f}")


if __name__ == "__main__":
    main()
