"""What calls of modules cost on the host, beside PyTorch in one process, in turns: an empty Module, a small Linear, a small Transformer's training step.

    python -m tools.module_cost [--rounds 25] [--json docs/benchmarks/module_cost.json]

Nanoseconds, the least of all rounds, with one thread. Bounds: an empty Module at most half of PyTorch's, a Linear a sixth, the step 0.15.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OURS, THEIRS = "tensorrt_lite", "torch"
BOUNDS = {"empty Module": 1 / 2, "Linear(4, 4)": 1 / 6, "Linear(4, 4), no_grad": 1 / 6, "Transformer step": 0.15}


def cases(lib: Any) -> dict[str, tuple[Callable[[], object], int]]:
    """By name: a call and how often a round makes it."""
    nn = lib.nn
    lib.manual_seed(0)

    class Empty(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x

    empty, x = Empty(), lib.ones(1)
    linear, rows = nn.Linear(4, 4), lib.ones(2, 4)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    body, head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 4)
    words, classes = lib.randn(2, 8, 16), lib.tensor([0, 3])
    optimizer = lib.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(body(words).mean(1)), classes).backward()
        optimizer.step()

    return {"empty Module": (lambda: empty(x), 2000), "Linear(4, 4)": (lambda: linear(rows), 500), "Linear(4, 4), no_grad": (lambda: frozen(rows), 500), "Transformer step": (step, 2)}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    calls: dict[str, dict[str, tuple[Callable[[], object], int]]] = {}
    for library in (OURS, THEIRS):
        lib = importlib.import_module(library)
        lib.set_num_threads(1)
        calls[library] = cases(lib)
    found: dict[str, dict[str, float]] = {}
    for name in BOUNDS:
        least = dict.fromkeys(calls, float("inf"))
        for i in range(rounds + 1):
            for library in calls:
                call, count = calls[library][name]
                gc.disable()
                start = time.perf_counter_ns()
                for _ in range(count):
                    call()
                taken = (time.perf_counter_ns() - start) / count
                gc.enable()
                if i:  # the first round warms up
                    least[library] = min(least[library], taken)
        found[name] = least
        print(f"{name:24s} {least[OURS]:10.0f} ns, PyTorch {least[THEIRS]:10.0f} ns, ratio {least[OURS] / least[THEIRS]:.3f} (bound {BOUNDS[name]:.3f})", flush=True)
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args(argv)
    found = measure(options.rounds)
    if options.json:
        options.json.write_text(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "nanoseconds": found}, indent=1) + "\n")
    return int(any(row[OURS] > BOUNDS[name] * row[THEIRS] for name, row in found.items()))


if __name__ == "__main__":
    sys.exit(main())
