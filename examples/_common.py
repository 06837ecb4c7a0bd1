"""What the programs of this folder share, so that each shows its subject alone: options, data, a progress bar, pictures, the last line.

The module is plain PyTorch, as the programs are: `import torch` is PyTorch, or tensorrt_lite under `tensorrt-lite run`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.utils.data import TensorDataset
from tqdm import tqdm

Batch = TypeVar("Batch")


def parse_options(program: str, description: str | None, steps: int) -> argparse.Namespace:
    """`--steps`, `--seed` and `--out`; the folder `out` exists afterwards. program: the `__file__` of the caller, which names folder and picture."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--steps", type=int, default=steps, help="optimizer steps")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and noise")
    parser.add_argument("--out", type=Path, default=Path("out") / Path(program).stem, help="folder for the picture and the losses")
    options = parser.parse_args()
    options.name = Path(program).stem
    options.out.mkdir(parents=True, exist_ok=True)
    return options


class Progress:
    """Counts steps from 0 on the terminal and keeps the loss of each: a bar at a terminal, elsewhere a line now and then.

    `for step in progress: ...; progress.record(loss.item())`
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.losses: list[float] = []
        self.seconds = self.cpu_seconds = 0.0
        self.memory = 0.0
        self._before = resident_mb("VmRSS")

    def __iter__(self) -> Iterator[int]:
        reset_peak()
        start, cpu_start = time.perf_counter(), time.process_time()
        with tqdm(total=self.steps, desc="training", unit="step", disable=None) as bar:
            for step in range(self.steps):
                yield step
                bar.update()
                bar.set_postfix(loss=f"{self.losses[-1]:.4f}", refresh=False)
                if bar.disable and (step + 1) % max(1, self.steps // 10) == 0:
                    print(f"step {step + 1:5d} of {self.steps}: loss {self.losses[-1]:.4f}", flush=True)
        self.seconds, self.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        self.memory = resident_mb("VmHWM") - self._before

    def record(self, loss: float) -> None:
        self.losses.append(loss)


def finish(options: argparse.Namespace, progress: Progress, figure: Figure, name: str, value: float) -> None:
    """Writes the picture and the losses, and prints what the run came to; the last line is `name: value`."""
    picture = options.out / f"{options.name}.png"
    figure.savefig(picture, dpi=120)
    (options.out / "losses.txt").write_text("".join(f"{loss!r}\n" for loss in progress.losses))
    print(f"picture: {picture}")
    print(f"{progress.steps} steps in {progress.seconds:.2f} s ({progress.cpu_seconds:.2f} s of CPU), at most {progress.memory:.1f} MB more than before")
    print(f"{name}: {value:.6f}")


def resident_mb(field: str) -> float:
    """The process's resident memory: VmRSS is that of now, VmHWM the peak. 0 where there is no /proc."""
    status = Path("/proc/self/status")
    return int(status.read_text().split(f"{field}:")[1].split()[0]) / 1024 if status.exists() else 0.0


def reset_peak() -> None:
    """VmHWM counts from here on."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def endless(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Epoch after epoch of a DataLoader, which shuffles anew for each."""
    while True:
        yield from batches


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """scikit-learn's handwritten digits, (N, 1, 8, 8) from 0 to 1 and their labels (N,): 1,437 to train on, 360 held out."""
    from sklearn.datasets import load_digits as load

    pixels, targets = load(return_X_y=True)
    images = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    labels = torch.tensor(targets)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, held_out = order[:1437], order[1437:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[held_out], labels[held_out])


def plot_losses(axes: Axes, losses: list[float], title: str = "loss") -> None:
    """The loss of every step, and its running mean."""
    window = max(1, len(losses) // 30)
    mean = [sum(part) / len(part) for i in range(len(losses)) if (part := losses[max(0, i - window + 1) : i + 1])]
    axes.plot(losses, color="tab:blue", alpha=0.3, linewidth=0.8)
    axes.plot(mean, color="tab:blue")
    axes.set(xlabel="step", title=title)
    axes.grid(alpha=0.3)


def show_images(axes: Axes, images: torch.Tensor, columns: int, title: str = "") -> None:
    """Grey images (N, 1, H, W) from 0 to 1 as one picture, `columns` in a row, with a black line between them."""
    rows = -(-len(images) // columns)
    height, width = images.shape[2] + 1, images.shape[3] + 1
    sheet = torch.zeros(rows * height - 1, columns * width - 1)
    for i, image in enumerate(images.detach()):
        top, left = i // columns * height, i % columns * width
        sheet[top : top + height - 1, left : left + width - 1] = image[0]
    axes.imshow(sheet.numpy(), cmap="gray", vmin=0, vmax=1)
    axes.set(title=title, xticks=[], yticks=[])
