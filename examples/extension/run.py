"""Operators in C, C++ and Cython, compiled when the program starts: `python examples/extension/run.py`.

Compares each with the same made of the library's operators, and trains through the one that has a gradient. Compiling takes some seconds the first time.
"""

from __future__ import annotations

import time
from pathlib import Path

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite.utils.cpp_extension import load

HERE = Path(__file__).resolve().parent


class GatedLinear(nn.Module):
    """(N, width) -> (N, width) through a hidden layer that is gated by silu."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: trt.Tensor) -> trt.Tensor:
        return self.down(trt.ops.example.silu_mul(self.up(x), self.gate(x)))


def main() -> None:
    start = time.perf_counter()
    module = load("silu_mul", [str(HERE / "silu_mul.cpp")], extra_cflags=["-O3", "-ffast-math"])
    load("running_max", [str(HERE / "running_max.c")], is_python_module=False)
    print(f"compiled or found in {time.perf_counter() - start:.1f} s: trt.ops.example has {dir(trt.ops.example)}")

    trt.manual_seed(0)
    x, gate = trt.randn(512, 1024), trt.randn(512, 1024)
    expected = nn.functional.silu(x) * gate
    print("C++:", "the same" if trt.allclose(trt.ops.example.silu_mul(x, gate), expected, atol=1e-6) and trt.allclose(module.silu_mul(x, gate), expected, atol=1e-6) else "different")
    y = trt.randn(4, 100, dtype=trt.float64)
    print("C:", "the same" if trt.equal(trt.ops.example.running_max(y), y.cummax(1).values) else "different")

    for name, function in (("operators", lambda: nn.functional.silu(x) * gate), ("extension", lambda: trt.ops.example.silu_mul(x, gate))):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        print(f"{name}: {sorted(times)[10] * 1e3:.3f} ms")

    model = GatedLinear(8, 32)
    optimizer = trt.optim.Adam(model.parameters(), lr=1e-2)
    inputs = trt.randn(256, 8)
    target = inputs.flip(1).tanh()
    for step in range(101):
        loss = nn.functional.mse_loss(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
