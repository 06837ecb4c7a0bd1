"""LoRA fine-tuning: a small Transformer learns English from Python's documentation; matrices of rank four then teach it to write Python."""

from __future__ import annotations

import argparse
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable
from itertools import islice
from pydoc_data.topics import topics
from typing import Any

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn

CONTEXT = 48


class LoRALinear(nn.Module):
    """A frozen linear layer and a trained update of low rank beside it: `W x + scale * B A x` (Hu et al. 2021)."""

    def __init__(self, linear: nn.Linear, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(torch.empty(rank, linear.in_features))
        self.lora_b = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scale

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        """A plain layer that computes the same."""
        self.linear.weight += self.scale * self.lora_b @ self.lora_a
        return self.linear


class Block(nn.Module):
    """Causal attention and an MLP beside a residual; `x: (N, T, width)`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.project = (nn.Linear(width, width) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        query, key, value = (layer(normed).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).flatten(2))
        change: Tensor = self.mlp(self.norm2(x))
        return x + change


class CharTransformer(nn.Module):
    """Logits of the next character; `tokens: (N, T)` to `(N, T, 128)`, one for each of ASCII."""

    def __init__(self, width: int = 96, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(128, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 128))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.token(tokens) + self.position.weight[: tokens.shape[1]]))
        return logits


def replace_modules(module: nn.Module, old: type[nn.Module], make: Callable[[Any], nn.Module]) -> None:
    """Puts `make(child)` in the place of every module of the class `old` inside `module`, at any depth."""
    for name, child in module.named_children():
        if isinstance(child, old):
            setattr(module, name, make(child))
        else:
            replace_modules(child, old, make)


def encode(text: str) -> tuple[Tensor, Tensor]:
    """The ASCII characters of the text as numbers: nine tenths to train on, and the rest."""
    tokens = torch.tensor(list(text.encode("ascii", "ignore")))
    boundary = len(tokens) * 9 // 10
    return tokens[:boundary], tokens[boundary:]


def text_loss(model: nn.Module, tokens: Tensor, batch: int) -> Tensor:
    """Nats a character on random windows of the text."""
    rows = tokens[torch.randint(0, len(tokens) - CONTEXT, (batch, 1)) + torch.arange(CONTEXT + 1)]
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def train(model: nn.Module, tokens: Tensor, steps: Iterable[int], progress: Progress, lr: float) -> None:
    """Trains what requires gradients."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in steps:
        optimizer.zero_grad()
        (loss := text_loss(model, tokens, batch=24)).backward()
        optimizer.step()
        progress.record(loss.item())


@torch.no_grad()
def held_out_loss(model: nn.Module, tokens: Tensor) -> float:
    return text_loss(model, tokens, batch=128).item()


@torch.no_grad()
def write(model: nn.Module, prompt: str, length: int = 160) -> str:
    """Continues the prompt, by the likelier characters."""
    tokens = torch.tensor(list(prompt.encode()))
    for _ in range(length):
        logits = model(tokens[-CONTEXT:].unsqueeze(0))[0, -1]
        tokens = torch.cat([tokens, torch.multinomial((logits / 0.6).softmax(dim=0), num_samples=1)])
    return bytes(tokens.tolist()).decode()


def main() -> None:
    options = parse_options(__file__, __doc__, steps=500)
    torch.manual_seed(options.seed)
    english, english_held_out = encode("\n\n".join(topics[name] for name in sorted(topics)))
    python, python_held_out = encode("\n\n".join(inspect.getsource(module) for module in (argparse, inspect, textwrap)))
    model = CharTransformer()
    progress = Progress(options.steps)
    steps = iter(progress)

    pretraining = options.steps * 3 // 5
    train(model, english, islice(steps, pretraining), progress, lr=3e-3)
    before = held_out_loss(model, python_held_out)
    print(f"after English: {held_out_loss(model, english_held_out):.3f} nats a character of English, {before:.3f} of Python")

    model.requires_grad_(False)
    replace_modules(model, nn.Linear, LoRALinear)
    total, trained = (sum(p.numel() for p in model.parameters() if p.requires_grad or every) for every in (True, False))
    print(f"{trained:,} of {total:,} parameters are trained from here on")
    train(model, python, steps, progress, lr=1e-2)
    updates = {name: module.scale * module.lora_b @ module.lora_a for name, module in model.named_modules() if isinstance(module, LoRALinear)}
    replace_modules(model, LoRALinear, LoRALinear.merge)
    after = held_out_loss(model, python_held_out)
    print(f"after LoRA, merged: {held_out_loss(model, english_held_out):.3f} nats a character of English, {after:.3f} of Python")
    print(f"\n{write(model, '    def __init__(self')}\n")

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_losses(left, progress.losses, "nats a character: English, then Python")
    left.axvline(pretraining, color="black", linestyle=":")
    right.barh(list(updates), [update.norm().item() for update in updates.values()])
    right.set(title="norm of each layer's update")
    right.tick_params(axis="y", labelsize=7)
    finish(options, progress, figure, "held-out nats a character of Python", after)


if __name__ == "__main__":
    main()
