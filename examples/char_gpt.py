"""Trains a character-level GPT on the English text that ships with CPython and lets it write.

The text is the language reference in `pydoc_data.topics`, about 700,000 characters. After training the model continues
`--prompt`; the checkpoint `char_gpt.pt` in `--output` is saved, reloaded and verified, beside `learning_curve.png`.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import TYPE_CHECKING

from tqdm import tqdm

import tensorrt_lite as trt
import tensorrt_lite.nn.functional as F
from tensorrt_lite import nn
from tensorrt_lite.optim import AdamW
from tensorrt_lite.optim.lr_scheduler import LambdaLR

if TYPE_CHECKING:
    from collections.abc import Callable


class CausalSelfAttention(nn.Module):
    """Every position attends to itself and the positions before it; `x: (N, T, width)` to the same shape."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: trt.Tensor) -> trt.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.query_key_value(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        projected: trt.Tensor = self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return projected


class Block(nn.Module):
    """Attention and a GELU MLP, each behind a layer norm and beside a residual; `x: (N, T, width)`."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, dropout)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: trt.Tensor) -> trt.Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        x = x + self.dropout(self.mlp(self.mlp_norm(x)))
        return x


class CharGPT(nn.Module):
    """Logits of the next character; `tokens: (N, T)`, T at most `context`, to `(N, T, vocabulary)`."""

    def __init__(self, vocabulary: int, context: int, layers: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.context = context
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens: trt.Tensor) -> trt.Tensor:
        positions = trt.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.token(tokens) + self.position(positions))
        for block in self.blocks:
            x = block(x)
        scores: trt.Tensor = self.head(self.norm(x))
        return scores


class Corpus:
    """The text as tokens, one a character: `train: (n,)` and `held_out: (m,)`, the last tenth."""

    def __init__(self, text: str) -> None:
        self.characters = "".join(sorted(set(text)))
        self._index = {character: index for index, character in enumerate(self.characters)}
        tokens = self.encode(text)
        boundary = len(text) * 9 // 10
        self.train, self.held_out = tokens[:boundary], tokens[boundary:]

    @classmethod
    def from_pydoc(cls) -> Corpus:
        return cls("\n\n".join(topics[name] for name in sorted(topics)))

    def encode(self, text: str) -> trt.Tensor:
        """Tokens `(len(text),)`; KeyError for a character that the text does not hold."""
        return trt.tensor([self._index[character] for character in text], dtype=trt.int64)

    def decode(self, tokens: trt.Tensor) -> str:
        return "".join(self.characters[token] for token in tokens.tolist())


def draw_batch(tokens: trt.Tensor, batch: int, context: int, device: str) -> tuple[trt.Tensor, trt.Tensor]:
    """Random windows and the same windows one character later, each `(batch, context)`."""
    starts = trt.randint(0, len(tokens) - context, (batch, 1))
    index = starts + trt.arange(context)
    return tokens[index].to(device), tokens[index + 1].to(device)


def next_character_loss(model: CharGPT, inputs: trt.Tensor, targets: trt.Tensor) -> trt.Tensor:
    """Mean cross entropy in nats a character."""
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def cosine_with_warmup(steps: int, warmup: int, floor: float = 0.1) -> Callable[[int], float]:
    """The factor of the learning rate by step: linear from 0 to 1 over `warmup`, then a half cosine to `floor`."""

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, steps - warmup))
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))

    return factor


def train(model: CharGPT, corpus: Corpus, options: argparse.Namespace) -> list[float]:
    """Train for `options.steps`; the loss of every step."""
    optimizer = AdamW(model.parameters(), lr=options.lr, weight_decay=0.1, betas=(0.9, 0.99))
    scheduler = LambdaLR(optimizer, cosine_with_warmup(options.steps, options.warmup))
    losses: list[float] = []
    model.train()
    # disable=None: a bar on a terminal; elsewhere a line now and then.
    with tqdm(total=options.steps, desc="training", unit="step", disable=None) as progress:
        for step in range(1, options.steps + 1):
            inputs, targets = draw_batch(corpus.train, options.batch, options.context, options.device)
            optimizer.zero_grad()
            loss = next_character_loss(model, inputs, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            progress.update()
            progress.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            if progress.disable and (step % max(1, options.steps // 20) == 0 or step == 1):
                print(f"step {step:5d} of {options.steps}: loss {losses[-1]:.3f}", flush=True)
    return losses


@trt.no_grad()
def held_out_loss(model: CharGPT, corpus: Corpus, options: argparse.Namespace, batches: int = 10) -> float:
    """Mean loss on random windows of the held-out text."""
    model.eval()
    losses = []
    for _ in range(batches):
        inputs, targets = draw_batch(corpus.held_out, options.batch, options.context, options.device)
        losses.append(next_character_loss(model, inputs, targets).item())
    return sum(losses) / len(losses)


@trt.no_grad()
def sample(model: CharGPT, prompt: trt.Tensor, length: int, temperature: float, top_k: int | None) -> trt.Tensor:
    """Continue `prompt: (T,)` by `length` characters; temperature 0 takes the likeliest, top_k limits the choice."""
    model.eval()
    tokens = prompt.unsqueeze(0)
    for _ in range(length):
        logits = model(tokens[:, -model.context :])[:, -1]
        if temperature == 0:
            chosen = logits.argmax(-1, keepdim=True)
        else:
            logits = logits / temperature
            if top_k is not None:
                smallest = sorted(logits[0].tolist(), reverse=True)[:top_k][-1]
                logits = logits.masked_fill(logits < smallest, float("-inf"))
            chosen = trt.multinomial(logits.softmax(-1), num_samples=1)
        tokens = trt.cat([tokens, chosen], dim=1)
    return tokens[0]


def save_checkpoint(model: CharGPT, corpus: Corpus, shape: dict[str, float], path: Path) -> None:
    """Weights, alphabet and the model's shape, so that `load_checkpoint` needs nothing else."""
    trt.save({"model": model.state_dict(), "characters": corpus.characters, "shape": shape}, path)


def load_checkpoint(path: Path, device: str) -> tuple[CharGPT, str]:
    """The model and its alphabet."""
    checkpoint = trt.load(path)
    model = CharGPT(len(checkpoint["characters"]), **checkpoint["shape"]).to(device)
    model.load_state_dict(checkpoint["model"])
    return model, checkpoint["characters"]


def plot_learning_curve(losses: list[float], held_out: float, path: Path) -> None:
    """The loss of every step, its running mean, and the held-out loss at the end."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    window = max(1, len(losses) // 50)
    mean = [sum(losses[max(0, i - window) : i + 1]) / len(losses[max(0, i - window) : i + 1]) for i in range(len(losses))]
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    steps = range(1, len(losses) + 1)
    axes.plot(steps, losses, color="tab:blue", alpha=0.3, linewidth=0.8, label="a batch")
    axes.plot(steps, mean, color="tab:blue", label="running mean")
    axes.axhline(held_out, color="tab:green", linestyle="--", linewidth=1, label="held out, at the end")
    axes.set(xlabel="step", ylabel="nats a character", title="Loss")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--layers", type=int, default=4, help="transformer blocks")
    parser.add_argument("--width", type=int, default=128, help="size of a position's vector")
    parser.add_argument("--heads", type=int, default=4, help="attention heads, a divisor of the width")
    parser.add_argument("--context", type=int, default=64, help="characters the model sees")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=1000, help="optimizer steps")
    parser.add_argument("--warmup", type=int, default=50, help="steps until the full learning rate")
    parser.add_argument("--batch", type=int, default=32, help="windows a step")
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--clip", type=float, default=1.0, help="largest gradient norm")
    parser.add_argument("--prompt", default="The ", help="text to continue")
    parser.add_argument("--length", type=int, default=400, help="characters to write")
    parser.add_argument("--temperature", type=float, default=0.8, help="0 takes the likeliest character")
    parser.add_argument("--top-k", type=int, default=20, help="choose among so many characters; 0 for all")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=None, help="CPU threads; all cores when left out")
    parser.add_argument("--output", type=Path, default=Path("out/char_gpt"), help="folder for the checkpoint and the curve")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    """Train, save, reload, verify and write a sample; the held-out loss in nats a character."""
    options = parse_arguments(argv)
    if options.threads is not None:
        trt.set_num_threads(options.threads)
    trt.manual_seed(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)

    corpus = Corpus.from_pydoc()
    shape = {name: getattr(options, name) for name in ("context", "layers", "width", "heads", "dropout")}
    model = CharGPT(len(corpus.characters), **shape).to(options.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = len(corpus.train) + len(corpus.held_out)
    print(f"{size:,} characters, {len(corpus.characters)} different; {parameters:,} parameters")
    start = time.perf_counter()
    losses = train(model, corpus, options)
    seconds = time.perf_counter() - start
    print(f"trained {options.steps} steps in {seconds:.1f} s ({1000 * seconds / options.steps:.1f} ms a step)")
    reached = held_out_loss(model, corpus, options)
    print(f"held-out loss: {reached:.3f} nats a character")

    path = options.output / "char_gpt.pt"
    save_checkpoint(model, corpus, shape, path)
    restored, characters = load_checkpoint(path, options.device)
    probe = corpus.held_out[: options.context].unsqueeze(0).to(options.device)
    with trt.no_grad():
        equal = trt.equal(model.eval()(probe), restored.eval()(probe))
    if characters != corpus.characters or not equal:
        raise SystemExit(f"{path}: the reloaded model differs")
    print(f"checkpoint reloaded, logits equal: {path}")
    plot_learning_curve(losses, reached, options.output / "learning_curve.png")
    print(f"learning curve: {options.output / 'learning_curve.png'}\n")

    prompt = corpus.encode(options.prompt).to(options.device)
    written = sample(restored, prompt, options.length, options.temperature, options.top_k or None)
    print(corpus.decode(written))
    return reached


if __name__ == "__main__":
    main()
