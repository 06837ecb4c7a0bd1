"""What an installed wheel must do: train, save and load, use several threads, tell about itself. Needs the package alone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite._C.core.parallel import runtime
from tensorrt_lite.info import openmp_runtimes


def check(claim: bool, what: str) -> None:
    if not claim:
        raise SystemExit(f"smoke test: {what}")


def train() -> None:
    trt.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    optimizer = trt.optim.AdamW(model.parameters(), lr=1e-2)
    x = trt.randn(256, 1, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).long()
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    check(losses[-1] < losses[0] / 2, f"the loss went from {losses[0]} to {losses[-1]}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        trt.save(model.state_dict(), path)
        other = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
        other.load_state_dict(trt.load(path))
    check(trt.equal(model(x), other(x)), "a loaded model computes something else")
    print(f"training: loss {losses[0]:.3f} to {losses[-1]:.3f}, saved and loaded")


def use_threads() -> None:
    a, results = trt.randn(600, 600), []
    for threads in (1, 4):
        trt.set_num_threads(threads)
        results.append((trt.nn.functional.gelu(a), a.softmax(1), a.sum(), a @ a))
    started = len(os.listdir("/proc/self/task"))
    check(started >= 4, f"{started} threads exist where 4 were asked for")
    check(all(trt.equal(x, y) for x, y in zip(results[0][:3], results[1][:3])), "results depend on the number of threads")
    check(trt.allclose(results[0][3], results[1][3], rtol=1e-4, atol=1e-4), "products depend on the number of threads")
    check(openmp_runtimes() == [runtime()], f"OpenMP runtimes: {openmp_runtimes()}")
    print(f"threads: {started}, OpenMP runtime {runtime()}")


def main() -> None:
    if "--without-compiler" in sys.argv:
        found = [name for name in ("cc", "gcc", "clang", "ld") if shutil.which(name)]
        check(not found, f"{found} on PATH")
    check("site-packages" in trt.__file__, f"{trt.__file__} is not an installed package")
    check(os.path.exists(os.path.join(os.path.dirname(trt.__file__), "_C", "libgomp.so.1")), "the wheel has no OpenMP runtime")
    train()
    use_threads()
    program = os.path.join(sysconfig.get_path("scripts"), "tensorrt-lite")
    told = subprocess.run([program, "info"], capture_output=True, text=True)
    check(told.returncode == 0 and "instruction set" in told.stdout, f"tensorrt-lite info: {told.stdout}{told.stderr}")
    print(told.stdout, end="")


main()
