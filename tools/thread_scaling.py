"""How many small operators a second several Python threads call together, as a multiple of what one calls.

    python -m tools.thread_scaling [--threads 2] [--seconds 0.3] [--rounds 5]

With the GIL that is about 1. Without it (a free-threaded interpreter) it is what threads lose to each other in the core. Each round measures one thread and several in turn;
the median of the rounds is printed: by the clock, where waiting for locks and for other programs counts, and by the threads' processor time, where it does not. The first row, a call of a Python function that does nothing, is what the interpreter and the machine allow.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time

import tensorrt_lite as trt


LAYER = trt.nn.Linear(8, 8).requires_grad_(False)
TWO = "a=trt.ones(8, 8), b=trt.ones(8, 8)"
# Lambdas that every thread makes for itself. Tensors are defaults, since cells of a closure have locks and counts.
CALLS = {
    "nothing": ": None",
    **{text: f"{TWO}: {text}" for text in ("a + b", "a * 2.0", "a.exp()", "a @ b", "a.sum()", "a[2:5]", "a.t()")},
    "zeros": ": trt.zeros(8, 8)",
    "Linear, shared weights": "x=trt.ones(2, 8): LAYER(x)",
    "forward and backward": "x=trt.ones(4, 4), w=trt.ones(4, 4, requires_grad=True): (x @ w).relu().sum().backward()",
}


def rate(text: str, threads: int, seconds: float) -> tuple[float, float]:
    """Calls of all threads in a second, and in a second of a thread's processor time."""
    counts, barrier = [0] * threads, threading.Barrier(threads + 1)
    elapsed, used = [0.0] * threads, [0.0] * threads

    def body(number: int) -> None:
        call = eval(f"lambda {text}")
        call()
        barrier.wait()
        start, used_before, n = time.perf_counter(), time.thread_time(), 0
        while (now := time.perf_counter()) - start < seconds:
            for _ in range(200):
                call()
            n += 200
        counts[number], elapsed[number], used[number] = n, now - start, time.thread_time() - used_before

    workers = [threading.Thread(target=body, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    for worker in workers:
        worker.join()
    return sum(n / t for n, t in zip(counts, elapsed, strict=True)), sum(n / t for n, t in zip(counts, used, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    trt.set_num_threads(1)
    print(f"Python {sys.version.split()[0]}, the GIL is {'on' if getattr(sys, '_is_gil_enabled', lambda: True)() else 'off'}")
    for name, text in CALLS.items():
        rounds = [(rate(text, 1, options.seconds), rate(text, options.threads, options.seconds)) for _ in range(options.rounds)]
        alone = statistics.median(one[0] for one, _ in rounds)
        by_clock, by_use = (statistics.median(many[i] / one[i] for one, many in rounds) for i in (0, 1))
        print(
            f"{name:24} {1e6 / alone:6.2f} us alone; {options.threads} threads: {by_clock:5.2f} times as many calls, by processor time {by_use:5.2f}"
        )


if __name__ == "__main__":
    main()
