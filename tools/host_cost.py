"""What small operators cost on the host when their tensors are on CUDA, without a GPU: the emulator returns from launches at once.

    python -m tools.host_cost [--markdown] [NAME ...]

Nanoseconds of a call, the least of 40 rounds, beside the same call on the CPU where that computes 64 elements. On a GPU the driver's launch
comes on top for each kernel.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS, CALLS = 40, 200


def cases(device: str) -> dict[str, Callable[[], Any]]:
    """Calls by name."""
    import tensorrt_lite as trt

    F = trt.nn.functional
    x, y, w, out = (trt.randn(8, 8, device=device) for _ in range(4))
    a, b = (trt.randn(64, 64, device=device) for _ in range(2))
    v, i = trt.ones(8, device=device), trt.randint(0, 8, (8,), device=device)
    image, kernel = trt.randn(1, 3, 8, 8, device=device), trt.randn(4, 3, 3, 3, device=device)
    r = x.clone().requires_grad_()
    return {
        "empty_like(x)": lambda: trt.empty_like(x), "x + y": lambda: x + y, "add(x, y, out=)": lambda: trt.add(x, y, out=out), "x.add_(y)": lambda: out.add_(y),
        "x * 2.0": lambda: x * 2.0, "x + y, recorded": lambda: r + y, "x.t() + y": lambda: x.t() + y, "relu(x)": lambda: trt.relu(x), "where(x > 0, x, y)": lambda: trt.where(x > 0, x, y),
        "x.clone()": lambda: x.clone(), "x.half()": lambda: x.half(), "zeros(8, 8)": lambda: trt.zeros(8, 8, device=device), "arange(8)": lambda: trt.arange(8, device=device),
        "x.sum()": lambda: x.sum(), "x.sum(1)": lambda: x.sum(1), "x.amax(1)": lambda: x.amax(1), "softmax(x, -1)": lambda: trt.softmax(x, -1),
        "layer_norm(x)": lambda: F.layer_norm(x, (8,), v, v), "mm(64x64)": lambda: trt.mm(a, b), "linear(x, w, b)": lambda: F.linear(x, w, v), "addmm(64x64)": lambda: trt.addmm(a, a, b),
        "conv2d 3x3": lambda: F.conv2d(image, kernel), "max_pool2d": lambda: F.max_pool2d(image, 2), "x[i]": lambda: x[i], "embedding": lambda: F.embedding(i, x),
        "cat((x, y))": lambda: trt.cat((x, y)), "cumsum(x, 0)": lambda: x.cumsum(0), "rand(8, 8)": lambda: trt.rand(8, 8, device=device), "dropout(x)": lambda: F.dropout(x, 0.5),
    }  # fmt: skip


def measure(device: str, names: list[str]) -> None:
    """One line for each call: nanoseconds and name."""
    for name, call in cases(device).items():
        if names and name not in names:
            continue
        for _ in range(50):
            call()
        rounds = []
        for _ in range(ROUNDS):
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            rounds.append((time.perf_counter_ns() - start) / CALLS)
        print(f"{min(rounds):.0f} {name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(options.inside, options.names)
        return
    found: dict[str, dict[str, int]] = {}
    for device in ("cuda", "cpu"):
        environment = os.environ | {"TENSORRT_LITE_CUDA": "emulate", "CUEMU_LAUNCH": "skip", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tools.host_cost", "--inside", device, *options.names]
        text = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in text.splitlines():
            time_, _, name = line.partition(" ")
            found.setdefault(name, {})[device] = int(time_)
    line = "| `{}` | {} | {} |" if options.markdown else "{:22} {:>8} {:>8}"
    print(line.format("call", "cuda, ns", "cpu, ns") + ("\n|---|---|---|" if options.markdown else ""))
    for name, by_device in found.items():
        print(line.format(name, by_device["cuda"], by_device["cpu"]))


if __name__ == "__main__":
    main()
