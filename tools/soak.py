"""Trains for thousands of steps without Python's garbage collector and watches the process's resident memory.

    python -m tools.soak [cnn|cnn-sgd|cnn-adam|gpt-small] [--steps 2000] [--from 200] [--tolerance 0.01]

A graph that is kept alive by a reference cycle, a buffer that is never given back or an optimizer that allocates its
state anew grows by step; nothing here may. Each run has a process of its own. The tests import `in_own_process` for short runs.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools.seed_parity import OURS, Job, build, training_step

KINDS = {"cnn": "cnn", "cnn-adam": "cnn", "cnn-sgd": "cnn-sgd", "gpt-small": "gpt-small"}  # a run's name: the job's task


def resident_bytes() -> int:
    """What the process holds of the machine's memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


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
        return pool.submit(watch, kind, steps, first, library).result()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"{', '.join(KINDS)}; all when left out")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--from", dest="first", type=int, default=200, help="the step whose memory the last one is compared with")
    parser.add_argument("--tolerance", type=float, default=0.01, help="growth that is allowed, as a share")
    parser.add_argument("--library", default=OURS, help="or torch, to compare")
    options = parser.parse_args(argv)
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    failed = False
    for kind in options.kinds or KINDS:
        start = time.perf_counter()
        before, after, objects = in_own_process(kind, options.steps, options.first, options.library)
        growth = after / before - 1
        failed |= growth > options.tolerance
        print(
            f"{kind:10s} step {options.first}: {before / 2**20:7.1f} MiB, step {options.steps}: {after / 2**20:7.1f} MiB, growth {growth:+.2%}, "
            f"{objects:+d} objects, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
