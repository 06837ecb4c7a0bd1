"""Whole training steps: forward, loss, backward, optimizer, as the examples run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import models
from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Builder, Work


def _digits_cnn(batch: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        lib.manual_seed(0)
        model = models.small_cnn(lib)
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
        x, target = lib.randn(batch, 1, 8, 8), lib.randint(0, 10, (batch,))
        return _step(lib, model, optimizer, x, target)

    return build


def _digits_cnn_inference(lib: Any, threads: int) -> Work:
    lib.manual_seed(0)
    model = models.small_cnn(lib).eval()
    x = lib.randn(64, 1, 8, 8)

    def infer() -> Any:
        with lib.no_grad():
            return model(x)

    return infer


def _char_gpt(layers: int, width: int, heads: int, batch: int, context: int, vocabulary: int = 96, half: bool = False, autocast: bool = False) -> Builder:
    """half: all weights are bfloat16. autocast: they are float32, and what autocast casts is bfloat16."""

    def build(lib: Any, threads: int) -> Work:
        lib.manual_seed(0)
        model = models.char_gpt(lib, vocabulary, context, layers, width, heads, dropout=0.1)
        if half:
            model = model.bfloat16()
        optimizer = lib.optim.AdamW(model.parameters(), lr=3e-4)
        tokens = lib.randint(0, vocabulary, (batch, context + 1))
        inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)
        if not autocast:
            return _step(lib, model, optimizer, inputs, targets)

        def forward(x: Any) -> Any:
            with lib.autocast("cpu", dtype=lib.bfloat16):
                return model(x)

        return _step(lib, forward, optimizer, inputs, targets)

    return build


def _resnet18(batch: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        lib.manual_seed(0)
        model = models.resnet18(lib)
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        return _step(lib, model, optimizer, lib.randn(batch, 3, 32, 32), lib.randint(0, 10, (batch,)))

    return build


def _word_lstm(width: int, batch: int, length: int, vocabulary: int = 200) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        lib.manual_seed(0)
        model = models.word_lstm(lib, vocabulary, width)
        optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
        return _step(lib, model, optimizer, lib.randint(0, vocabulary, (batch, length)), lib.randint(0, vocabulary, (batch * length,)))

    return build


def _step(lib: Any, model: Any, optimizer: Any, x: Any, target: Any) -> Work:
    cross_entropy = lib.nn.functional.cross_entropy

    def step() -> None:
        optimizer.zero_grad()
        logits = model(x)
        cross_entropy(logits.reshape(-1, logits.shape[-1]), target).backward()
        optimizer.step()

    return step


def rows() -> list[Row]:
    gpt = "char GPT"
    return [
        Row("digits CNN, batch 64", "train", _digits_cnn(64), limit=1.0),
        Row("digits CNN, batch 64, inference", "train", _digits_cnn_inference, limit=1.0),
        Row(f"{gpt} 2 layers, width 64, batch 16x64", "train", _char_gpt(2, 64, 4, 16, 64), limit=1.0),
        Row(f"{gpt} 6 layers, width 384, batch 16x256", "train", _char_gpt(6, 384, 6, 16, 256), limit=0.7, slow=True),
        Row(f"{gpt} 6 layers, width 384, batch 16x256, bfloat16", "train", _char_gpt(6, 384, 6, 16, 256, half=True), limit=1.0, slow=True),
        Row(f"{gpt} 6 layers, width 384, batch 16x256, autocast", "train", _char_gpt(6, 384, 6, 16, 256, autocast=True), limit=1.0, slow=True),
        Row("ResNet-18 on 32x32, batch 32", "train", _resnet18(32), limit=0.5, slow=True),
        Row("LSTM 2 layers, width 128, batch 32x64", "train", _word_lstm(128, 32, 64), limit=0.7),
    ]
