"""Twenty small models and their training steps, in code that runs with PyTorch and with this library.

`build(torch, name)` gives a `Program`: `step()` is one forward pass, backward pass and step of the optimizer. Weights and data come from NumPy's
generator, so they are the same whatever module `torch` is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Loss = Callable[[], Any]
MODELS: dict[str, Callable[[Any, Any, Any, Any], tuple[Any, Loss, str]]] = {}


class Program:
    """A model with its optimizer; `loss()` is the forward pass."""

    def __init__(self, torch: Any, name: str) -> None:
        self.torch = torch
        numbers = np.random.default_rng(0)

        def data(*shape: int, high: int | None = None) -> Any:
            values = numbers.standard_normal(shape).astype(np.float32) if high is None else numbers.integers(0, high, shape)
            return torch.from_numpy(np.asarray(values))

        torch.manual_seed(0)
        self.model, self.loss, kind = MODELS[name](torch, torch.nn, torch.nn.functional, data)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(data(*parameter.shape) / math.sqrt(max(parameter.shape[-1], 1)))
        made = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}[kind]
        options = {"lr": 1e-3} | ({"momentum": 0.9} if kind == "sgd" else {})
        self.optimizer = made(self.model.parameters(), **options)

    def step(self) -> Any:
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


def model(function: Any) -> Any:
    MODELS[function.__name__] = function
    return function


def build(torch: Any, name: str) -> Program:
    return Program(torch, name)


@model
def mlp(torch, nn, F, data):
    net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
    x, y = data(6, 12), data(6, high=4)
    return net, lambda: F.cross_entropy(net(x), y), "sgd"


@model
def cnn(torch, nn, F, data):
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(8 * 16, 5)
    )
    x, y = data(2, 3, 12, 12), data(2, high=5)
    return net, lambda: F.cross_entropy(net(x), y), "sgd"


@model
def resnet(torch, nn, F, data):
    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outside)
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)) if stride > 1 else nn.Identity()

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)), inplace=True)
            y = self.norm2(self.conv2(y))
            y += self.short(x)
            return F.relu(y, inplace=True)

    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Block(4, 4, 1), Block(4, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    x, y = data(2, 3, 8, 8), data(2, high=5)
    return net, lambda: F.cross_entropy(net(x), y, label_smoothing=0.1), "sgd"


@model
def vit(torch, nn, F, data):
    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, c)
            x = x + self.out(y)
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 4, 4)
            self.token = nn.Parameter(torch.zeros(1, 1, 16))
            self.place = nn.Parameter(torch.zeros(1, 5, 16))
            self.layers = nn.Sequential(Layer(16, 2), Layer(16, 2))
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
            return self.head(self.norm(self.layers(x))[:, 0])

    net = ViT()
    x, y = data(2, 3, 8, 8), data(2, high=5)
    return net, lambda: F.cross_entropy(net(x), y), "adamw"


@model
def gpt(torch, nn, F, data):
    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            n, t, c = x.size()
            q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
            q, k, v = (z.view(n, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.drop(self.out(y.transpose(1, 2).contiguous().view(n, t, c)))
            return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
            self.layers = nn.ModuleList([Layer(16, 2), Layer(16, 2)])
            self.norm = nn.LayerNorm(16)
            self.head = nn.Linear(16, 20, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens):
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    net = GPT()
    tokens = data(2, 8, high=20)

    def loss():
        logits = net(tokens[:, :-1])
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), tokens[:, 1:].reshape(-1), ignore_index=0)

    return net, loss, "adamw"


@model
def bert(torch, nn, F, data):
    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.kinds, self.norm = nn.Embedding(20, 16, padding_idx=0), nn.Embedding(2, 16), nn.LayerNorm(16)
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(16, 20)

        def forward(self, tokens, kinds):
            x = self.norm(self.words(tokens) + self.kinds(kinds))
            return self.head(self.layers(x, src_key_padding_mask=tokens == 0))

    net = Bert()
    tokens, kinds, labels, chosen = data(2, 6, high=20), data(2, 6, high=2), data(2, 6, high=20), data(2, 6) > 1

    def loss():
        masked = tokens.masked_fill(chosen, 3)
        wanted = torch.where(chosen, labels, torch.full_like(labels, -100))
        return F.cross_entropy(net(masked, kinds).flatten(0, 1), wanted.flatten())

    return net, loss, "adamw"


@model
def lstm(torch, nn, F, data):
    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 8)
            self.recurrent = nn.LSTM(8, 12, num_layers=2, dropout=0.1, batch_first=True)
            self.head = nn.Linear(12, 20)

        def forward(self, tokens):
            y, (h, c) = self.recurrent(self.words(tokens))
            return self.head(y), h, c

    net = LanguageModel()
    tokens = data(3, 6, high=20)

    def loss():
        logits, h, c = net(tokens[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:]) + 1e-3 * (h.pow(2).mean() + c.pow(2).mean())

    return net, loss, "adamw"


@model
def gru(torch, nn, F, data):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.recurrent = nn.GRU(5, 8, bidirectional=True)
            self.head = nn.Linear(16, 3)

        def forward(self, x):
            return F.log_softmax(self.head(self.recurrent(x)[0]), dim=-1)

    net = Tagger()
    x, y = data(6, 2, 5), data(6, 2, high=3)
    return net, lambda: F.nll_loss(net(x).view(-1, 3), y.view(-1)), "sgd"


@model
def unet(torch, nn, F, data):
    def block(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = block(1, 4), block(4, 8), block(8, 16)
            self.up2, self.up1 = nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)
            self.merge2, self.merge1 = block(16, 8), block(8, 4)
            self.head = nn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            c = self.bottom(F.max_pool2d(b, 2))
            c = self.merge2(torch.cat([self.up2(c), b], dim=1))
            c = self.merge1(torch.cat([self.up1(c), a], dim=1))
            return self.head(c)

    net = UNet()
    x, mask = data(2, 1, 8, 8), (data(2, 1, 8, 8) > 0).float()

    def loss():
        logits = net(x)
        chance = torch.sigmoid(logits)
        dice = 1 - (2 * (chance * mask).sum() + 1) / (chance.sum() + mask.sum() + 1)
        return F.binary_cross_entropy_with_logits(logits, mask) + dice

    return net, loss, "adamw"


@model
def vae(torch, nn, F, data):
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
            self.mean, self.spread = nn.Linear(16, 3), nn.Linear(16, 3)
            self.decode = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 12))

        def forward(self, x):
            h = self.encode(x)
            mean, spread = self.mean(h), self.spread(h)
            z = mean + torch.exp(0.5 * spread) * torch.randn_like(mean)
            return torch.sigmoid(self.decode(z)), mean, spread

    net = Vae()
    x = data(5, 12).sigmoid()

    def loss():
        y, mean, spread = net(x)
        return F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())

    return net, loss, "adamw"


@model
def mobilenet(torch, nn, F, data):
    class Squeeze(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inward, self.outward = nn.Conv2d(width, 4, 1), nn.Conv2d(4, width, 1)

        def forward(self, x):
            y = F.adaptive_avg_pool2d(x, 1)
            return x * F.hardsigmoid(self.outward(F.relu(self.inward(y))))

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), Squeeze(8),
        nn.Conv2d(8, 12, 1, bias=False), nn.BatchNorm2d(12), nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(48, 5),
    )  # fmt: skip
    x, y = data(2, 3, 8, 8), data(2, high=5)
    return net, lambda: F.cross_entropy(net(x), y, weight=torch.tensor([1.0, 2.0, 1.0, 1.0, 0.5])), "sgd"


@model
def autoencoder(torch, nn, F, data):
    net = nn.Sequential(
        nn.Conv1d(2, 6, 3, stride=2, padding=1), nn.ELU(), nn.Conv1d(6, 4, 3, stride=2, padding=1), nn.Softplus(), nn.Upsample(scale_factor=2, mode="linear"),
        nn.ConvTranspose1d(4, 6, 4, stride=2, padding=1), nn.LeakyReLU(0.1), nn.Conv1d(6, 2, 1),
    )  # fmt: skip
    x = data(3, 2, 16)

    def loss():
        y = net(x + 0.1 * torch.randn(3, 2, 16))
        return F.mse_loss(y, x) + 1e-3 * sum(p.abs().sum() for p in net.parameters())

    return net, loss, "sgd"


@model
def gan(torch, nn, F, data):
    generator = nn.Sequential(nn.ConvTranspose2d(4, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())
    judge = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4), nn.Flatten(), nn.Linear(8, 1))
    net = nn.ModuleList([generator, judge])
    real = data(3, 1, 8, 8)

    def loss():
        made = generator(torch.randn(3, 4, 1, 1))
        truth, lie = judge(real), judge(made.detach())
        wanted = F.binary_cross_entropy_with_logits(truth, torch.ones_like(truth)) + F.binary_cross_entropy_with_logits(lie, torch.zeros_like(lie))
        fooled = judge(made)
        return wanted + F.binary_cross_entropy_with_logits(fooled, torch.ones_like(fooled))

    return net, loss, "adam"


@model
def translator(torch, nn, F, data):
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(15, 16), nn.Embedding(15, 16)
            self.body = nn.Transformer(16, 2, 1, 1, 32, dropout=0.1, batch_first=True)
            self.head = nn.Linear(16, 15)

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            return self.head(self.body(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=True))

    net = Translator()
    source, target = data(2, 6, high=15), data(2, 5, high=15)
    return net, lambda: F.cross_entropy(net(source, target[:, :-1]).permute(0, 2, 1), target[:, 1:]), "adamw"


@model
def convnext(torch, nn, F, data):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width, eps=1e-6)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = self.mix(x).permute(0, 2, 3, 1)
            y = self.scale * self.down(F.gelu(self.up(self.norm(y))))
            return x + y.permute(0, 3, 1, 2)

    net = nn.Sequential(nn.Conv2d(3, 8, 4, 4), Block(8), nn.GroupNorm(1, 8), nn.Conv2d(8, 12, 2, 2))
    head = nn.Linear(12, 5)
    every = nn.ModuleList([net, head])
    x, y = data(2, 3, 16, 16), data(2, high=5)
    return every, lambda: F.cross_entropy(head(net(x).mean([-2, -1])), y), "adamw"


@model
def llama(torch, nn, F, data):
    def rotate(x, angles):
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), dim=-1).type_as(x)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.k, self.v, self.o = (nn.Linear(width, n, bias=False) for n in (width, width // 2, width // 2, width))
            self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, 24), (width, 24), (24, width)))

        def forward(self, x, angles):
            n, t, c = x.shape
            y = self.norm1(x)
            q, k, v = (z(y).view(n, t, -1, 4).transpose(1, 2) for z in (self.q, self.k, self.v))
            q, k = rotate(q, angles), rotate(k, angles)
            k, v = (z.repeat_interleave(2, dim=1) for z in (k, v))
            x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 16)
            self.layers = nn.ModuleList([Layer(16), Layer(16)])
            self.norm, self.head = nn.RMSNorm(16), nn.Linear(16, 20, bias=False)
            self.register_buffer("steps", 1.0 / (100.0 ** (torch.arange(0, 4, 2).float() / 4)))

        def forward(self, tokens):
            x = self.words(tokens)
            angles = torch.outer(torch.arange(tokens.shape[1], dtype=torch.float32), self.steps)
            for layer in self.layers:
                x = layer(x, angles)
            return self.head(self.norm(x))

    net = Llama()
    tokens = data(2, 7, high=20)
    return net, lambda: F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()), "adamw"


@model
def siamese(torch, nn, F, data):
    net = nn.Sequential(nn.Linear(10, 16), nn.SELU(), nn.Linear(16, 6))
    a, b, c = data(4, 10), data(4, 10), data(4, 10)

    def loss():
        x, y, z = (F.normalize(net(t), dim=1) for t in (a, b, c))
        return F.triplet_margin_loss(x, y, z, margin=0.5) + (1 - F.cosine_similarity(x, y)).mean() + F.smooth_l1_loss(x, z)

    return net, loss, "sgd"


@model
def word_vectors(torch, nn, F, data):
    inside, outside = nn.EmbeddingBag(20, 8, mode="mean"), nn.Embedding(20, 8)
    net = nn.ModuleList([inside, outside])
    context, word, others = data(4, 3, high=20), data(4, high=20), data(4, 5, high=20)

    def loss():
        x = inside(context)
        near = F.logsigmoid((x * outside(word)).sum(1))
        far = F.logsigmoid(-torch.bmm(outside(others), x.unsqueeze(2)).squeeze(2)).sum(1)
        return -(near + far).mean()

    return net, loss, "sgd"


@model
def diffusion(torch, nn, F, data):
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.inward, self.outward = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
            self.time = nn.Sequential(nn.Linear(8, 8), nn.SiLU())
            self.norm, self.body = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x, t):
            waves = torch.exp(-math.log(100.0) * torch.arange(4) / 4)
            angles = t[:, None].float() * waves[None]
            when = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
            x = self.inward(x) + when[:, :, None, None]
            x = x + self.body(F.silu(self.norm(x)))
            return self.outward(F.interpolate(F.avg_pool2d(x, 2), scale_factor=2.0, mode="nearest"))

    net = Denoiser()
    x, kept = data(3, 1, 8, 8), torch.linspace(0.99, 0.1, 10)

    def loss():
        t = torch.randint(0, 10, (3,))
        noise = torch.randn_like(x)
        share = kept[t].view(-1, 1, 1, 1)
        return F.mse_loss(net(share.sqrt() * x + (1 - share).sqrt() * noise, t), noise)

    return net, loss, "adamw"


@model
def graph(torch, nn, F, data):
    first, second = nn.Linear(5, 8), nn.Linear(8, 3)
    net = nn.ModuleList([first, second])
    x, edges, y = data(7, 5), data(2, 12, high=7), data(7, high=3)

    def spread(h):
        source, target = edges[0], edges[1]
        degree = torch.zeros(7).index_add_(0, target, torch.ones(12)).clamp(min=1)
        return torch.zeros(7, h.shape[1]).scatter_add(0, target[:, None].expand(-1, h.shape[1]), h[source]) / degree[:, None]

    def loss():
        h = F.dropout(F.relu(spread(first(x))), 0.3)
        logits = spread(second(h))
        rows = torch.tensor([0, 2, 3, 5])
        return F.cross_entropy(logits[rows], y[rows])

    return net, loss, "adamw"
