"""Peak memory of some thirty programs above what the import takes, beside PyTorch's.

    python -m tools.memory_workloads [name ...] [--library both] [--json FILE]

Each workload runs in a process of its own per library with one thread. A workload passes when its peak is at most 1.1 of PyTorch's, or 16 MB more.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OURS, THEIRS = "tensorrt_lite", "torch"
FACTOR, ALLOWANCE_MB = 1.1, 16.0
WORKLOADS: dict[str, Callable[[Any], object]] = {}


def workload(f: Callable[[Any], object]) -> Callable[[Any], object]:
    WORKLOADS[f.__name__] = f
    return f


def train(lib: Any, model: Any, draw: Callable[[int], tuple[Any, Any]], steps: int, loss: str = "cross_entropy", optimizer: str = "Adam", **options: float) -> None:
    opt = getattr(lib.optim, optimizer)(model.parameters(), **options)
    criterion = getattr(lib.nn.functional, loss)
    for step in range(steps):
        x, y = draw(step)
        opt.zero_grad()
        criterion(model(x), y).backward()
        opt.step()


def classes(lib: Any, *shape: int, count: int = 10) -> Callable[[int], tuple[Any, Any]]:
    return lambda step: (lib.randn(*shape), lib.randint(0, count, shape[:1]))


# ---- models ----------------------------------------------------------------------------------------------------------


@workload
def mlp_small(lib: Any) -> None:
    nn = lib.nn
    train(lib, nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), classes(lib, 64, 64), 300)


@workload
def mlp_wide(lib: Any) -> None:
    nn = lib.nn
    train(lib, nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 10)), classes(lib, 512, 1024), 8)


@workload
def cnn(lib: Any) -> None:
    nn = lib.nn
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 10))
    train(lib, model, classes(lib, 64, 3, 32, 32), 10, optimizer="SGD", lr=0.01)


@workload
def cnn_batch_norm(lib: Any) -> None:
    nn = lib.nn
    layers: list[Any] = []
    for i, o in ((3, 32), (32, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    train(lib, nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), classes(lib, 16, 3, 48, 48), 6, optimizer="SGD", lr=0.01, momentum=0.9)


@workload
def unet(lib: Any) -> None:
    nn, F = lib.nn, lib.nn.functional
    down, mid, up = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1), nn.ConvTranspose2d(32, 16, 2, 2)
    last = nn.Conv2d(32, 1, 1)
    parameters = [p for m in (down, mid, up, last) for p in m.parameters()]
    opt = lib.optim.Adam(parameters)
    for _ in range(6):
        x = lib.randn(8, 1, 128, 128)
        a = F.relu(down(x))
        b = F.relu(mid(F.max_pool2d(a, 2)))
        y = last(lib.cat([a, up(b)], 1))
        opt.zero_grad()
        ((y - x) ** 2).mean().backward()
        opt.step()


@workload
def conv1d_audio(lib: Any) -> None:
    nn = lib.nn
    model = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.Conv1d(16, 16, 9, padding=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 10))
    train(lib, model, classes(lib, 8, 1, 16000), 6)


@workload
def lstm(lib: Any) -> None:
    nn = lib.nn
    model, head = nn.LSTM(64, 128, 2, batch_first=True), nn.Linear(128, 10)
    opt = lib.optim.Adam([*model.parameters(), *head.parameters()])
    for _ in range(5):
        out, _ = model(lib.randn(16, 60, 64))
        opt.zero_grad()
        lib.nn.functional.cross_entropy(head(out[:, -1]), lib.randint(0, 10, (16,))).backward()
        opt.step()


@workload
def gru_lengths(lib: Any) -> None:
    """Batches of another length each."""
    model = lib.nn.GRU(64, 96, batch_first=True)
    opt = lib.optim.SGD(model.parameters(), lr=0.01)
    for step in range(12):
        out, _ = model(lib.randn(16, 20 + step * 13 % 60, 64))
        opt.zero_grad()
        out.square().mean().backward()
        opt.step()


@workload
def transformer(lib: Any) -> None:
    nn = lib.nn
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0), 3)
    opt = lib.optim.AdamW(model.parameters())
    for step in range(6):
        opt.zero_grad()
        model(lib.randn(8, 64 + 16 * (step % 3), 128)).square().mean().backward()
        opt.step()


@workload
def attention_inference(lib: Any) -> None:
    F = lib.nn.functional
    with lib.no_grad():
        for length in (128, 512, 1024, 700, 300):
            q, k, v = (lib.randn(2, 8, length, 64) for _ in range(3))
            F.scaled_dot_product_attention(q, k, v, is_causal=True)


@workload
def embedding_model(lib: Any) -> None:
    nn = lib.nn
    model = nn.Sequential(nn.Embedding(20000, 64), nn.Flatten(), nn.Linear(64 * 16, 10))
    train(lib, model, lambda step: (lib.randint(0, 20000, (128, 16)), lib.randint(0, 10, (128,))), 10)


@workload
def autoencoder_generation(lib: Any) -> None:
    """Growing prefixes, as text is generated."""
    nn = lib.nn
    model = nn.Linear(256, 256)
    with lib.no_grad():
        x = lib.randn(4, 1, 256)
        for _ in range(400):
            x = lib.cat([x, model(x[:, -1:]).tanh()], 1)


# ---- sizes that grow and shrink ----------------------------------------------------------------------------------------


@workload
def growing_80_to_108_mb(lib: Any) -> None:
    for i in range(8):
        x = lib.randn(20_000_000 + i * 1_000_000) * 2 + 1
        x = x.relu() * 0.5
        del x


@workload
def shrinking(lib: Any) -> None:
    for i in range(12):
        x = lib.randn(16_000_000 - i * 1_100_000)
        (x * 2 + 1).sum().item()


@workload
def zigzag(lib: Any) -> None:
    for i in range(40):
        n = 1_000_000 + (i * 7919) % 13 * 700_000
        (lib.ones(n) * 3 - 1).relu_().mean().item()


@workload
def nearby_large_kept(lib: Any) -> None:
    kept = []
    for i in range(20):
        x = lib.ones(1_500_000 + i * 30_000)
        y = x * 2
        kept.append(y if i % 2 else x)
        if len(kept) > 5:
            kept.pop(0)


@workload
def many_sizes(lib: Any) -> None:
    """One tensor of each of many sizes, thrown away at once."""
    for n in range(1000, 600_000, 1717):
        (lib.ones(n) + 1).sum()


@workload
def medium_kept(lib: Any) -> None:
    kept = [lib.ones(20_000 + 37 * i) for i in range(600)]
    kept = [x * 2 for x in kept]
    for x in kept:
        x.add_(1)


@workload
def matrix_sizes(lib: Any) -> None:
    for n in range(100, 1500, 117):
        a = lib.randn(n, n)
        (a @ a.T).trace().item()


@workload
def concatenation(lib: Any) -> None:
    parts = []
    for i in range(60):
        parts.append(lib.ones(50_000 + 1000 * i))
    lib.cat(parts)
    for _ in range(5):
        lib.stack([lib.ones(100_000) for _ in range(20)]).mean(0)


# ---- loaders and long loops --------------------------------------------------------------------------------------------


@workload
def loader(lib: Any) -> None:
    data = lib.utils.data.TensorDataset(lib.randn(20_000, 64), lib.randint(0, 10, (20_000,)))
    model = lib.nn.Linear(64, 10)
    opt = lib.optim.SGD(model.parameters(), lr=0.1)
    for x, y in lib.utils.data.DataLoader(data, batch_size=256, shuffle=True):
        opt.zero_grad()
        lib.nn.functional.cross_entropy(model(x), y).backward()
        opt.step()


@workload
def loader_ragged(lib: Any) -> None:
    data = [lib.randn(50 + i % 200, 32) for i in range(2000)]
    pad = lib.nn.utils.rnn.pad_sequence
    for batch in lib.utils.data.DataLoader(data, batch_size=64, collate_fn=lambda rows: pad(rows, batch_first=True)):
        batch.mean(1)


@workload
def long_loop_fresh_outputs(lib: Any) -> None:
    a, b = lib.ones(4_000_000), lib.ones(4_000_000)
    for _ in range(150):
        c = a + b
    c.sum()


@workload
def long_loop_graphs(lib: Any) -> None:
    w = lib.randn(100, 100).requires_grad_()
    for _ in range(500):
        y = (lib.ones(50, 100) @ w).tanh().sum()
        y.backward()
        w.grad = None


@workload
def recurrence(lib: Any) -> None:
    x = lib.ones(1000).requires_grad_()
    y = x
    for _ in range(2000):
        y = y * 1.0001 + 0.001
    y.sum().backward()


# ---- many small tensors ------------------------------------------------------------------------------------------------


@workload
def many_small(lib: Any) -> None:
    kept = [lib.ones(10) for _ in range(200_000)]
    assert len(kept) == 200_000


@workload
def chain(lib: Any) -> None:
    y = lib.ones(10).requires_grad_()
    for _ in range(200_000):
        y = y * 1.0


@workload
def views(lib: Any) -> None:
    base = lib.randn(1000, 100)
    kept = [base[i % 1000] for i in range(100_000)]
    assert len(kept) == 100_000


# ---- exceptions in between ---------------------------------------------------------------------------------------------


@workload
def exceptions(lib: Any) -> None:
    for i in range(30):
        x = lib.randn(1_000_000 + 50_000 * (i % 7))
        y = (x * 2).relu()
        try:
            y @ lib.ones(3, 3)
        except RuntimeError:
            pass
        try:
            lib.nn.functional.cross_entropy(lib.randn(4, 3), lib.tensor([0, 1, 2, 9]))
        except (RuntimeError, IndexError):
            pass


@workload
def exceptions_in_backward(lib: Any) -> None:
    def refuse(gradient: Any) -> None:
        raise ValueError("no")

    for i in range(12):
        x = lib.randn(500_000 + 40_000 * i).requires_grad_()
        y = (x * 2).exp()
        y.register_hook(refuse)
        try:
            (y * x).sum().backward()
        except ValueError:
            pass


@workload
def impossible_sizes(lib: Any) -> None:
    for i in range(20):
        lib.randn(1_000_000 + 100_000 * i)
        try:
            lib.empty(1 << 50)
        except (RuntimeError, MemoryError):
            pass


# ---- measuring ---------------------------------------------------------------------------------------------------------


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def run_here(name: str, library: str) -> dict[str, float]:
    """MB above the import: the peak, and what is resident at the end and after a second and a half without work."""
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    lib.manual_seed(0)
    for module in ("nn.functional", "optim", "utils.data", "nn.utils.rnn"):
        importlib.import_module(f"{library}.{module}")
    gc.collect()
    before = resident_mb()
    Path("/proc/self/clear_refs").write_text("5")      # the peak from here on
    begin = time.perf_counter()
    WORKLOADS[name](lib)
    seconds = time.perf_counter() - begin
    end = resident_mb()
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    time.sleep(1.5)
    return {"peak": peak - before, "end": end - before, "idle": resident_mb() - before, "seconds": seconds}


def run(name: str, library: str) -> dict[str, float]:
    """The same in a process of its own."""
    found = subprocess.run([sys.executable, "-m", "tools.memory_workloads", "--child", library, name], capture_output=True, text=True)
    if found.returncode:
        raise RuntimeError(f"{name} with {library}: {found.stderr}")
    return json.loads(found.stdout.splitlines()[-1])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(WORKLOADS)}; all when left out")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--child", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    if options.child:
        print(json.dumps(run_here(options.names[0], options.child)))
        return 0
    rows, failed = {}, []
    print(f"{'MB above the import':26s} {'peak':>8s} {'PyTorch':>8s} {'ratio':>6s} {'end':>8s} {'PyTorch':>8s} {'idle':>8s}")
    for name in options.names or WORKLOADS:
        ours, theirs = run(name, OURS), run(name, THEIRS)
        rows[name] = {OURS: ours, THEIRS: theirs}
        passed = ours["peak"] <= max(FACTOR * theirs["peak"], theirs["peak"] + ALLOWANCE_MB)
        failed += [] if passed else [name]
        print(
            f"{name:26s} {ours['peak']:8.1f} {theirs['peak']:8.1f} {ours['peak'] / max(theirs['peak'], 0.1):6.2f} {ours['end']:8.1f} {theirs['end']:8.1f} "
            f"{ours['idle']:8.1f}{'' if passed else '  over'}",
            flush=True,
        )
    print(f"{len(rows) - len(failed)} of {len(rows)} within {FACTOR} of PyTorch's peak or {ALLOWANCE_MB:.0f} MB")
    if options.json:
        record = {"python": platform.python_version(), "machine": platform.machine(), "rows": rows}
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
