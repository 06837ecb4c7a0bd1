"""A language model of words: a causal Transformer encoder with sinusoidal positions and tied weights, on Python's own documentation."""

from __future__ import annotations

import math
import re
from collections import Counter
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

UNKNOWN = "<unknown>"


class SinusoidalPositions(nn.Module):
    """Adds sines and cosines of the position to `x: (N, T, width)` (Vaswani et al. 2017, section 3.5)."""

    table: Tensor

    def __init__(self, width: int, longest: int = 512) -> None:
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class WordTransformer(nn.Module):
    """Logits of the next word; `tokens: (N, T)` to `(N, T, vocabulary)`."""

    def __init__(self, vocabulary: int, width: int = 96, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(vocabulary, width)
        self.positions = SinusoidalPositions(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)
        nn.init.normal_(self.embed.weight, std=width**-0.5)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.positions(self.embed(tokens) * math.sqrt(self.width))
        return self.head(self.encoder(x, mask=mask, is_causal=True))


def load_words(size: int) -> tuple[list[str], Tensor]:
    """The vocabulary, most frequent words first, and the text as numbers of words."""
    words = re.findall(r"\w+|[^\w\s]", "\n".join(topics[name] for name in sorted(topics)).lower())
    vocabulary = [UNKNOWN, *(word for word, _ in Counter(words).most_common(size - 1))]
    index = {word: i for i, word in enumerate(vocabulary)}
    return vocabulary, torch.tensor([index.get(word, 0) for word in words])


@torch.no_grad()
def write(model: WordTransformer, prompt: Tensor, length: int, context: int, temperature: float = 0.8) -> Tensor:
    """Continues `prompt: (T,)` by `length` words, never by the unknown one."""
    tokens = prompt
    for _ in range(length):
        logits = model(tokens[-context:].unsqueeze(0))[0, -1] / temperature
        logits[0] = -math.inf
        tokens = torch.cat([tokens, torch.multinomial(logits.softmax(dim=0), num_samples=1)])
    return tokens


def draw_picture(losses: list[float], vocabulary: list[str], weight: Tensor) -> Figure:
    """The losses, and the frequent words on the two main axes of their vectors."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_losses(left, losses, "nats a word")
    frequent = weight.detach()[1:121]
    frequent = frequent - frequent.mean(dim=0)
    _, _, axes = torch.linalg.svd(frequent, full_matrices=False)
    places = frequent @ axes[:2].T
    right.scatter(places[:, 0].numpy(), places[:, 1].numpy(), s=2)
    for word, (x, y) in zip(vocabulary[1:], places.tolist()):
        right.text(x, y, word.replace("$", r"\$"), fontsize=6)
    right.set(title="vectors of frequent words", xticks=[], yticks=[])
    return figure


def main() -> None:
    options = parse_options(__file__, __doc__, steps=120)
    torch.manual_seed(options.seed)
    vocabulary, tokens = load_words(2000)
    batch, context = 16, 48
    boundary = len(tokens) * 9 // 10
    model = WordTransformer(len(vocabulary))
    print(f"{len(tokens):,} words, {sum(p.numel() for p in model.parameters()):,} parameters")

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    warmup = 20
    scheduler = LambdaLR(optimizer, lambda step: min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5))
    windows = torch.arange(context + 1)
    progress = Progress(options.steps)
    for _ in progress:
        rows = tokens[torch.randint(0, boundary - context - 1, (batch, 1)) + windows]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        progress.record(loss.item())

    model.eval()
    rows = tokens[boundary:][: 64 * (context + 1)].view(64, context + 1)
    with torch.no_grad():
        held_out = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).item()
    prompt = torch.tensor([vocabulary.index(word) for word in ("the", "value", "of")])
    print("\n" + " ".join(vocabulary[token] for token in write(model, prompt, 60, context).tolist()) + "\n")
    finish(options, progress, draw_picture(progress.losses, vocabulary, model.embed.weight), "held-out nats a word", held_out)


if __name__ == "__main__":
    main()
