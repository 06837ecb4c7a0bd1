"""The models that the training rows and the seed-parity tests run, built from whichever library is passed.

`lib` is a module with PyTorch's API. A class is made per call because its base, `lib.nn.Module`, is the library's own.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any


def mlp(lib: Any, sizes: tuple[int, ...] = (16, 32, 32, 4)) -> Any:
    """Linear layers with ReLU between them; `x: (N, sizes[0])` to `(N, sizes[-1])`."""
    nn, layers = lib.nn, []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def small_cnn(lib: Any, classes: int = 10, width: int = 32, dropout: float = 0.25) -> Any:
    """Three conv-norm-ReLU blocks and a linear layer; `x: (N, 1, 8, 8)` to logits `(N, classes)`."""
    nn = lib.nn

    def block(inputs: int, outputs: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *block(1, width),
        *block(width, width),
        nn.MaxPool2d(2),
        *block(width, 2 * width),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * width * 4, classes),
    )


def char_gpt(lib: Any, vocabulary: int, context: int, layers: int, width: int, heads: int, dropout: float = 0.0) -> Any:
    """A decoder-only transformer; `tokens: (N, T)` with T at most `context` to logits `(N, T, vocabulary)`."""
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.dropout = nn.Dropout(dropout)

        def attend(self, x: Any, mask: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2)
                for part in self.qkv(x).split(width, dim=2)
            )
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(width // heads))
            weights = self.dropout(scores.masked_fill(mask, float("-inf")).softmax(-1))
            return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))

        def forward(self, x: Any, mask: Any) -> Any:
            x = x + self.dropout(self.attend(self.norm1(x), mask))
            return x + self.dropout(self.contract(functional.gelu(self.expand(self.norm2(x)))))

    class CharGPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("mask", lib.ones(context, context, dtype=lib.bool).triu(1))

        def forward(self, tokens: Any) -> Any:
            length = tokens.shape[1]
            x = self.token(tokens) + self.position.weight[:length]
            for block in self.blocks:
                x = block(x, self.mask[:length, :length])
            return self.head(self.norm(x))

    return CharGPT()


def resnet18(lib: Any, classes: int = 10) -> Any:
    """ResNet-18 for images of 32 x 32 (He 2015; a 3x3 stem without pooling); `x: (N, 3, 32, 32)` to logits `(N, classes)`."""
    nn = lib.nn

    def conv(inputs: int, outputs: int, kernel: int, stride: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.main = nn.Sequential(*conv(inputs, outputs, 3, stride), nn.ReLU(), *conv(outputs, outputs, 3, 1))
            self.side = nn.Identity() if inputs == outputs else nn.Sequential(*conv(inputs, outputs, 1, stride))

        def forward(self, x: Any) -> Any:
            return (self.main(x) + self.side(x)).relu()

    layers, inputs = [*conv(3, 64, 3, 1), nn.ReLU()], 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if outputs == 64 else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def word_lstm(lib: Any, vocabulary: int, width: int, layers: int = 2) -> Any:
    """A language model of LSTM layers; `tokens: (N, T)` to logits `(N, T, vocabulary)`."""
    nn = lib.nn

    class WordLSTM(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, layers, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embedding(tokens))[0])

    return WordLSTM()
