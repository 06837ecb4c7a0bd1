"""Trains one model in this library and in PyTorch from the same seed and data, and compares the loss of every step.

    python -m tools.seed_parity [cnn|cnn-sgd|cnn-smooth|gpt] [--steps 50] [--seeds 1] [--threads 1] [--json FILE]

Beside PyTorch's loss stand four others that say how well posed the question is: PyTorch with two threads, PyTorch with
every initial weight moved to a neighbouring float32, and both libraries in float64. Where PyTorch is that far from
itself, float32 training is chaotic and no second implementation can be nearer (docs/decisions/seed_parity.md).
`--kinks` names the first step at which a ReLU or a max pool decides differently in the two libraries.

Each library works in one process of its own, one run at a time. The tests import `train` and `first_kink`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tensorrt_lite.bench import models

OURS, PYTORCH = "tensorrt_lite", "torch"
TASKS = {
    "cnn": "digits CNN, batch 64, AdamW, lr 1e-3",
    "cnn-sgd": "digits CNN, batch 64, the example's SGD: lr 0.05, Nesterov momentum 0.9, weight decay 5e-4",
    "cnn-smooth": "digits CNN with GELU and average pooling, batch 64, AdamW, lr 1e-3",
    "gpt": "char GPT of 4 layers, width 128, 4 heads, batch 16 of 64 characters, dropout 0.1, AdamW, lr 3e-4",
    "gpt-small": "char GPT of 2 layers, width 64, 4 heads, batch 8 of 32 characters, dropout 0.1, AdamW, lr 3e-4",
}
GPT_SHAPES = {"gpt": (4, 128, 16, 64), "gpt-small": (2, 64, 8, 32)}  # layers, width, batch, context


@dataclass(frozen=True)
class Job:
    """One training run; `nudge` above 0 moves every initial weight to a neighbour, up or down by this generator seed."""

    library: str
    task: str
    steps: int = 50
    seed: int = 0
    dtype: str = "float32"
    threads: int = 1
    nudge: int = 0


@dataclass
class Run:
    """Of every step the loss, and without the drawing of its batch the seconds and the seconds of processor time."""

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)


def build(lib: Any, job: Job) -> tuple[Any, Any, Any]:
    """Model, optimizer and a function that draws the next batch, made in this order from the job's seed."""
    lib.manual_seed(job.seed)
    dtype = getattr(lib, job.dtype)
    if job.task in GPT_SHAPES:
        model, draw = _gpt(lib, *GPT_SHAPES[job.task])
    else:
        model, draw = _cnn(lib, dtype, smooth=job.task == "cnn-smooth")
    # Weights are drawn in float32 in any case: the float64 run begins at the same numbers.
    model = model.to(dtype)
    if job.nudge:
        _move_to_neighbours(lib, model, job.nudge)
    if job.task == "cnn-sgd":
        return model, lib.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True), draw
    return model, lib.optim.AdamW(model.parameters(), lr=3e-4 if job.task in GPT_SHAPES else 1e-3), draw


def train(job: Job) -> Run:
    """Run the job in this process."""
    lib = importlib.import_module(job.library)
    lib.set_num_threads(job.threads)
    model, optimizer, draw = build(lib, job)
    run = Run()
    for _ in range(job.steps):
        x, target = draw()
        start, used = time.perf_counter(), time.process_time()
        run.losses.append(training_step(lib, model, optimizer, x, target))
        run.seconds.append(time.perf_counter() - start)
        run.processor_seconds.append(time.process_time() - used)
    return run


def training_step(lib: Any, model: Any, optimizer: Any, x: Any, target: Any) -> float:
    """One step of the optimizer; the loss before it."""
    optimizer.zero_grad()
    logits = model(x)
    loss = lib.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


def distance(losses: list[float], reference: list[float]) -> list[float]:
    """The relative difference of every step."""
    return [abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True)]


def gradients(job: Job) -> dict[str, Any]:
    """The gradient of every parameter at the first step, as float64 arrays, by name."""
    import numpy as np

    lib = importlib.import_module(job.library)
    lib.set_num_threads(job.threads)
    model, _, draw = build(lib, job)
    x, target = draw()
    logits = model(x)
    lib.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1)).backward()
    return {name: np.asarray(p.grad.tolist(), dtype=np.float64) for name, p in model.named_parameters()}


def first_kink(job: Job) -> tuple[int | None, list[float]]:
    """Train both libraries side by side in one thread. The first step, from 0, at which a ReLU's sign or what a max pool
    takes differs (None: no step), and the distance of the losses at every step."""
    libraries = [importlib.import_module(name) for name in (OURS, PYTORCH)]
    for lib in libraries:
        lib.set_num_threads(1)
    built = [build(lib, job) for lib in libraries]
    seen: list[list[list]] = [_decisions(lib, model) for lib, (model, _, _) in zip(libraries, built)]
    first, apart = None, []
    for step in range(job.steps):
        losses = [training_step(lib, model, optimizer, *draw()) for lib, (model, optimizer, draw) in zip(libraries, built)]
        apart += distance(losses[:1], losses[1:])
        if first is None and any(_differ(ours, theirs) for ours, theirs in zip(*seen, strict=True)):
            first = step
        for decisions in seen:
            decisions.clear()
    return first, apart


def _differ(ours: Any, theirs: Any) -> bool:
    """Other signs, or another place that is not exactly as large: equal patches of an image tie, and rounding chooses among them."""
    if not isinstance(ours, tuple):
        return bool((ours != theirs).any())
    places, (best, values) = ours[0], theirs
    import numpy as np

    rows = values.reshape(*values.shape[:2], -1)
    taken, largest = (np.take_along_axis(rows, at.reshape(*at.shape[:2], -1), 2) for at in (places, best))
    return bool((taken != largest).any())


def _decisions(lib: Any, model: Any) -> list:
    """Fill the returned list, at each forward, with what ReLU and max pool layers decide."""
    import numpy as np

    found: list = []

    def relu(module: Any, inputs: Any, output: Any) -> None:
        found.append(np.asarray((output.detach() > 0).numpy()))

    def pool(module: Any, inputs: Any, output: Any) -> None:
        with lib.no_grad():
            places = lib.nn.functional.max_pool2d(inputs[0], module.kernel_size, return_indices=True)[1]
            found.append((np.asarray(places.numpy()), np.asarray(inputs[0].detach().numpy())))

    for module in model.modules():
        if isinstance(module, lib.nn.ReLU):
            module.register_forward_hook(relu)
        elif isinstance(module, lib.nn.MaxPool2d):
            module.register_forward_hook(pool)
    return found


def _cnn(lib: Any, dtype: Any, smooth: bool) -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = lib.tensor(digits.images.tolist(), dtype=dtype).unsqueeze(1) / 16
    labels = lib.tensor(digits.target.tolist())
    model = models.small_cnn(lib)
    if smooth:
        for index, layer in enumerate(model):
            if isinstance(layer, lib.nn.ReLU):
                model[index] = lib.nn.GELU()
            elif isinstance(layer, lib.nn.MaxPool2d):
                model[index] = lib.nn.AvgPool2d(layer.kernel_size)

    def draw() -> tuple[Any, Any]:
        index = lib.randperm(len(labels))[:64]
        return images[index], labels[index]

    return model, draw


def _gpt(lib: Any, layers: int, width: int, batch: int, context: int) -> tuple[Any, Any]:
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    index = {character: token for token, character in enumerate(sorted(set(text)))}
    tokens = lib.tensor([index[character] for character in text])
    model = models.char_gpt(lib, len(index), context, layers, width, heads=4, dropout=0.1)

    def draw() -> tuple[Any, Any]:
        places = lib.randint(0, len(tokens) - context, (batch, 1)) + lib.arange(context)
        return tokens[places], tokens[places + 1]

    return model, draw


def _move_to_neighbours(lib: Any, model: Any, seed: int) -> None:
    generator = lib.Generator().manual_seed(seed)
    with lib.no_grad():
        for parameter in model.parameters():
            up = lib.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.copy_(lib.nextafter(parameter, up * float("inf")))


class Workers:
    """One process a library; they work in turns, so that neither measures the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pools = {name: ProcessPoolExecutor(1, mp_context=context) for name in (OURS, PYTORCH)}

    def train(self, job: Job) -> Run:
        return self._pools[job.library].submit(train, job).result()

    def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown()


def compare(workers: Workers, job: Job) -> dict[str, Run]:
    """Every variant of the job, by what the report calls it."""
    ours, theirs = replace(job, library=OURS), replace(job, library=PYTORCH)
    variants = {
        "ours": ours,
        "PyTorch": theirs,
        "PyTorch, other threads": replace(theirs, threads=2 if job.threads == 1 else 1),
        "PyTorch, 1 ulp": replace(theirs, nudge=1),
        "ours, float64": replace(ours, dtype="float64"),
        "PyTorch, float64": replace(theirs, dtype="float64"),
    }
    return {name: workers.train(variant) for name, variant in variants.items()}


PAIRS = [
    ("ours", "PyTorch"),
    ("PyTorch, other threads", "PyTorch"),
    ("PyTorch, 1 ulp", "PyTorch"),
    ("ours", "PyTorch, float64"),
    ("PyTorch", "PyTorch, float64"),
    ("ours, float64", "PyTorch, float64"),
]


def largest_distances(runs: dict[str, Run]) -> dict[str, float]:
    """The largest relative difference of a step, by pair."""
    return {f"{a} - {b}": max(distance(runs[a].losses, runs[b].losses)) for a, b in PAIRS}


def median_ms(seconds: list[float]) -> float:
    """Of all steps but the first, which allocates."""
    return 1000 * statistics.median(seconds[1:] or seconds)


def print_steps(runs: dict[str, Run]) -> None:
    print(f"{'step':>5} {'ours':>14} {'PyTorch':>14} {'relative':>10}")
    ours, theirs = runs["ours"].losses, runs["PyTorch"].losses
    for step, (a, b, apart) in enumerate(zip(ours, theirs, distance(ours, theirs)), 1):
        print(f"{step:5d} {a:14.9f} {b:14.9f} {apart:10.1e}")


def print_summary(found: list[dict[str, float]]) -> None:
    """Over all seeds: the distances in order, and how many are within 1e-4."""
    print(f"\n{'largest relative difference of a loss':42s} {'median':>9} {'worst':>9}   within 1e-4")
    for pair in found[0]:
        values = sorted(row[pair] for row in found)
        within = sum(value <= 1e-4 for value in values)
        print(f"{pair:42s} {statistics.median(values):9.1e} {values[-1]:9.1e}   {within} of {len(values)}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"{', '.join(TASKS)}; cnn and gpt when left out")
    parser.add_argument("--steps", type=int, default=50, help="optimizer steps")
    parser.add_argument("--seeds", type=int, default=1, help="runs with the seeds from 0; above 1 the steps are not listed")
    parser.add_argument("--threads", type=int, default=1, help="threads of both libraries")
    parser.add_argument("--kinks", action="store_true", help="find where ReLU and max pool first decide differently")
    parser.add_argument("--json", type=Path, default=None, help="write losses, seconds and distances there")
    options = parser.parse_args(argv)
    if unknown := set(options.tasks) - set(TASKS):
        parser.error(f"unknown task {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")

    workers, record = Workers(), []
    for task in options.tasks or ["cnn", "gpt"]:
        print(f"\n{TASKS[task]}; {options.steps} steps, {options.threads} thread(s)")
        found, times = [], []
        for seed in range(options.seeds):
            job = Job(OURS, task, options.steps, seed, threads=options.threads)
            runs = compare(workers, job)
            if options.seeds == 1:
                print_steps(runs)
            found.append(largest_distances(runs))
            times.append([median_ms(seconds) for name in ("ours", "PyTorch") for seconds in (runs[name].seconds, runs[name].processor_seconds)])
            row = {"job": asdict(job), "largest": found[-1], "runs": {name: asdict(run) for name, run in runs.items()}}
            if options.kinks:
                step, apart = first_kink(job)
                end = options.steps if step is None else step + 1  # the loss of a step is from before its decisions
                where = "no kink is decided differently" if step is None else f"first kink decided differently at step {step + 1}"
                print(f"seed {seed}: {where}; distance until then {max(apart[:end]):.1e}, after {max(apart[end:], default=0.0):.1e}")
                row["first_kink"] = step
            record.append(row)
        print_summary(found)
        ours, ours_cpu, theirs, theirs_cpu = (statistics.median(column) for column in zip(*times))
        print(f"step time: ours {ours:.2f} ms, PyTorch {theirs:.2f} ms, ratio {ours / theirs:.2f}; of processor time {ours_cpu / theirs_cpu:.2f}")
    workers.close()
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
