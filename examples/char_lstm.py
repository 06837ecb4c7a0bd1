"""A language model of characters: an LSTM reads parallel streams of Python's own documentation, by truncated backpropagation, and then writes."""

from __future__ import annotations

from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.figure import Figure
from torch import Tensor, nn

State = tuple[Tensor, Tensor]


class CharLSTM(nn.Module):
    """Logits of the next character and the state to go on from; `tokens: (N, T)` to `(N, T, vocabulary)`."""

    def __init__(self, vocabulary: int, width: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 32)
        self.lstm = nn.LSTM(32, width, num_layers=layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        hidden, after = self.lstm(self.embed(tokens), state)
        return self.head(hidden), after


def detach(state: State) -> State:
    """The state without its history: backpropagation ends at the window's beginning."""
    hidden, cell = state
    return hidden.detach(), cell.detach()


@torch.no_grad()
def write(model: CharLSTM, prompt: Tensor, length: int, temperature: float = 0.7) -> tuple[Tensor, Tensor]:
    """Continues `prompt: (T,)`; the tokens `(T + length,)` and the output of the upper layer at each new one, `(length, width)`."""
    logits, state = model(prompt.unsqueeze(0))
    written, outputs = [prompt], []
    for _ in range(length):
        chosen = torch.multinomial((logits[0, -1] / temperature).softmax(dim=0), num_samples=1)
        written.append(chosen)
        logits, state = model(chosen.unsqueeze(0), state)
        outputs.append(state[0][-1, 0])
    return torch.cat(written), torch.stack(outputs)


def draw_picture(losses: list[float], text: str, outputs: Tensor) -> Figure:
    """The losses, and what the most varied units of the upper layer do while the model writes."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    plot_losses(upper, losses, "nats a character")
    units = outputs.var(dim=0).topk(16).indices
    lower.imshow(outputs[:, units].T.numpy(), cmap="coolwarm", vmin=-1, vmax=1, aspect="auto")
    lower.set_xticks(range(len(text)), [repr(c)[1:-1] if c == "\n" else c for c in text], fontsize=6)
    lower.set(ylabel="unit", yticks=[], title="units of the upper layer while it writes")
    return figure


def main() -> None:
    options = parse_options(__file__, __doc__, steps=200)
    torch.manual_seed(options.seed)
    text = "\n\n".join(topics[name] for name in sorted(topics))
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    tokens = torch.tensor([index[character] for character in text])

    # Each row of the batch is a stream of its own, read window by window; the last tenth of every stream is held out.
    batch, window = 32, 48
    streams = tokens[: len(tokens) // batch * batch].view(batch, -1)
    boundary = streams.shape[1] * 9 // 10
    print(f"{len(tokens):,} characters, {len(characters)} different")

    model = CharLSTM(len(characters))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    progress = Progress(options.steps)
    state: State | None = None
    position = 0
    for _ in progress:
        if position + window >= boundary:
            state, position = None, 0
        inputs, targets = (streams[:, start : start + window] for start in (position, position + 1))
        logits, state = model(inputs, state if state is None else detach(state))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        position += window
        progress.record(loss.item())

    model.eval()
    with torch.no_grad():
        logits, _ = model(streams[:, boundary : boundary + 256])
        held_out = F.cross_entropy(logits.flatten(0, 1), streams[:, boundary + 1 : boundary + 257].flatten()).item()
    prompt = torch.tensor([index[character] for character in "The "])
    written, outputs = write(model, prompt, length=300)
    sample = "".join(characters[token] for token in written.tolist())
    print(f"\n{sample}\n")
    finish(options, progress, draw_picture(progress.losses, sample[4:84], outputs[:80]), "held-out nats a character", held_out)


if __name__ == "__main__":
    main()
