"""Trains for thousands of steps without Python's garbage collector and watches the process's resident memory.

    python -m tools.soak [cnn|cnn-sgd|cnn-adam|gpt-small|loader] [--steps 2000] [--from 200] [--tolerance 0.01]

The steps of `loader` are epochs of a DataLoader with two worker processes, some left early, and tensors sent through queues: no open file, process or
file in /dev/shm may be left of them either.

A graph that is kept alive by a reference cycle, a buffer that is never given back or an optimizer that allocates its
state anew grows by step; nothing here may. Each run has a process of its own. The tests import `in_own_process` for short runs.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tools.seed_parity import OURS, Job, build, training_step

KINDS = {"cnn": "cnn", "cnn-adam": "cnn", "cnn-sgd": "cnn-sgd", "gpt-small": "gpt-small"}  # a run's name: the job's task
LOADER = "loader"


def resident_bytes() -> int:
    """What the process holds of the machine's memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def left_behind() -> int:
    """Open files, children and files of shared memory that this process has."""
    children = sum(len(Path(task, "children").read_text().split()) for task in Path("/proc/self/task").iterdir())
    return len(os.listdir("/proc/self/fd")) + children + sum(name.startswith(("tensorrt_lite", "torch_")) for name in os.listdir("/dev/shm"))


def echo(inbox: Any, outbox: Any) -> None:
    """A process that sends tensors back until it is sent None."""
    while (x := inbox.get()) is not None:
        outbox.put(x)


def watch_loader(epochs: int, first: int, library: str = OURS) -> tuple[int, int, int]:
    """Epochs of a loader with worker processes. Resident bytes after `first` epochs and after the last one, and how many files and processes are left
    beyond those before."""
    lib, data, processes = (importlib.import_module(f"{library}{name}") for name in ("", ".utils.data", ".multiprocessing"))
    lib.set_num_threads(1)
    dataset = data.TensorDataset(lib.rand(12, 3, 64, 64), lib.arange(12))
    persistent = data.DataLoader(dataset, 2, shuffle=True, num_workers=2, persistent_workers=True)
    context = processes.get_context("fork")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=echo, args=(inbox, outbox), daemon=True)
    process.start()
    for _ in range(2):
        inbox.put(lib.ones(5000))
        outbox.get()
        list(persistent)
    gc.collect()
    memory, left = 0, left_behind()
    for epoch in range(1, epochs + 1):
        loader = persistent if epoch % 4 else data.DataLoader(dataset, 2, shuffle=True, num_workers=2)
        for images, _ in loader:
            assert images.shape == (2, 3, 64, 64)
            inbox.put(images)
            if outbox.get()[0, 0, 0, 0] != images[0, 0, 0, 0]:
                raise RuntimeError("the queue gave another tensor")
            if epoch % 3 == 0:
                break
        del images, loader
        if epoch == first:
            memory = resident_bytes()
    return memory, resident_bytes(), left_behind() - left


def watch(kind: str, steps: int, first: int, library: str = OURS) -> tuple[int, int, int]:
    """Train with the collector off. Resident bytes after `first` steps and after the last one, and how many objects the
    collector tracks now beyond those after `first`."""
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    model, optimizer, draw = build(lib, Job(library, KINDS[kind]))
    if kind == "cnn-adam":
        optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    gc.collect()
    gc.disable()
    try:
        before = objects = 0
        for step in range(1, steps + 1):
            training_step(lib, model, optimizer, *draw())
            if step == first:
                objects = len(gc.get_objects())
                before = resident_bytes()
        return before, resident_bytes(), len(gc.get_objects()) - objects
    finally:
        gc.enable()


def in_own_process(kind: str, steps: int, first: int, library: str = OURS) -> tuple[int, int, int]:
    """`watch` where no other work has touched the memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        work = pool.submit(watch_loader, steps, first, library) if kind == LOADER else pool.submit(watch, kind, steps, first, library)
        return work.result()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"{', '.join((*KINDS, LOADER))}; all when left out")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--from", dest="first", type=int, default=200, help="the step whose memory the last one is compared with")
    parser.add_argument("--tolerance", type=float, default=0.01, help="growth that is allowed, as a share")
    parser.add_argument("--library", default=OURS, help="or torch, to compare")
    options = parser.parse_args(argv)
    if unknown := set(options.kinds) - {*KINDS, LOADER}:
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; there are {', '.join((*KINDS, LOADER))}")
    failed = False
    for kind in options.kinds or (*KINDS, LOADER):
        start = time.perf_counter()
        before, after, objects = in_own_process(kind, options.steps, options.first, options.library)
        growth = after / before - 1
        failed |= growth > options.tolerance or kind == LOADER and objects > 0
        print(
            f"{kind:10s} step {options.first}: {before / 2**20:7.1f} MiB, step {options.steps}: {after / 2**20:7.1f} MiB, growth {growth:+.2%}, "
            f"{objects:+d} {'files and processes' if kind == LOADER else 'objects'}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
