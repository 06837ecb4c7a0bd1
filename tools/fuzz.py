"""Calls every operator with random arguments, good and bad: no call may crash or hang the process, and every refusal is
an exception of a kind that PyTorch raises.

    python -m tools.fuzz [--seconds 60] [--batch 400] [--only REGEX] [--seed 0]
    python -m tools.fuzz --replay SEED:NUMBER        # one call again, in this process, its arguments printed first

A batch of calls runs in a child process, which notes the number of each call before making it; a child that dies by a
signal or overruns the time of a call names its culprit. Every call draws its operator and arguments from (seed, number)
alone, so that `--replay` needs nothing else. The child's memory is limited: a huge size is answered with MemoryError or
RuntimeError, not with the machine's memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Callable

ALLOWED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, OverflowError, MemoryError)
CALL_SECONDS = 20
MEMORY_BYTES = 3 << 30  # address space: the libraries' own mappings take about half a GiB of it

# Not operators, or outside of the promise (README): raw pointers, files, other processes, printing of unbounded size.
LEFT_OUT = {"from_blob", "data_ptr", "set_printoptions", "save", "load", "manual_seed", "seed"}

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"]
SHAPES: list[tuple[int, ...]] = [
    (), (0,), (1,), (2,), (3,), (17,), (2, 3), (3, 2), (3, 3), (1, 3), (3, 1), (2, 0), (0, 3), (4, 4), (2, 3, 4), (2, 4, 3), (3, 1, 5), (2, 0, 3),
    (1, 2, 5, 5), (2, 3, 5, 5), (2, 2, 3, 3), (2, 1, 4, 6), (1, 2, 4, 4, 4), (2, 2, 3, 3, 3), (1, 1, 1, 1, 1, 1), (300,), (40, 30), (1, 1, 70, 9),
]  # fmt: skip
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 4, 5, 7, 16, -7, 100, 1000, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 0.1, 2.5, -3.7, 1e-8, 1e8, 1e38, 1e300, -1e300, 1e-320, float("inf"), float("-inf"), float("nan")]


class Arguments:
    """Draws arguments from one random state."""

    def __init__(self, trt: Any, draw: random.Random) -> None:
        self.trt, self.draw = trt, draw

    def tensor(self, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Any:
        draw = self.draw
        dtype = dtype or (draw.choice(DTYPES) if draw.random() < 0.35 else draw.choice(["float32", "float32", "float64", "int64", "bool"]))
        shape = draw.choice(SHAPES) if shape is None else shape
        made = self._values(dtype, self._storage_shape(shape))
        made = self._layout(made, shape)
        if draw.random() < 0.015:
            made = made.to("meta")
        if made.is_floating_point() and draw.random() < 0.3:
            made.requires_grad_()
            if draw.random() < 0.5:
                made = made * 1
        return made

    def _storage_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        self._kind = self.draw.choice(["plain", "plain", "plain", "transposed", "strided", "offset", "expanded", "channels_last"])
        if self._kind == "transposed":
            return shape[::-1]
        if self._kind == "strided" and shape:
            return (*shape[:-1], 2 * shape[-1])
        if self._kind == "offset" and shape:
            return (shape[0] + 1, *shape[1:])
        if self._kind == "expanded" and shape:
            return (1, *shape[1:])
        return shape

    def _layout(self, made: Any, shape: tuple[int, ...]) -> Any:
        if self._kind == "transposed":
            return made.permute(tuple(range(made.dim()))[::-1])
        if self._kind == "strided" and shape:
            return made[..., ::2]
        if self._kind == "offset" and shape:
            return made[1:]
        if self._kind == "expanded" and shape:
            return made.expand(shape)
        if self._kind == "channels_last" and len(shape) == 4:
            return made.contiguous(memory_format=self.trt.channels_last)
        return made

    def _values(self, dtype: str, shape: tuple[int, ...]) -> Any:
        trt, draw = self.trt, self.draw
        wanted = getattr(trt, dtype)
        kind = draw.random()
        if dtype == "bool":
            return trt.rand(shape) > 0.5
        if "int" in dtype:
            low, high = (0, 3) if kind < 0.6 else (0, 100) if dtype == "uint8" or kind < 0.7 else (-100, 100) if kind < 0.9 else (-(2**62), 2**62)
            return trt.randint(low, high, shape).to(wanted)
        made = trt.randn(shape, dtype=trt.float64)
        if kind > 0.7:
            made = made * draw.choice([0.0, 1e-30, 1e30, 1e200, float("inf"), float("nan")])
        elif kind > 0.5:
            made = made.abs()
        return made.to(wanted)

    def integer(self) -> Any:
        return self.draw.choice(INTEGERS[:10] if self.draw.random() < 0.75 else INTEGERS)

    def number(self) -> Any:
        return self.draw.choice([self.integer, lambda: self.draw.choice(FLOATS), lambda: self.draw.choice([True, False, 1j, 2.0 - 1j])])()

    def integers(self) -> Any:
        values = [self.integer() for _ in range(self.draw.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7]))]
        return self.draw.choice([tuple, list, self.trt.Size if all(abs(v) < 2**63 for v in values) else tuple])(values)

    def dtype(self) -> Any:
        return getattr(self.trt, self.draw.choice(DTYPES))

    def index(self) -> Any:
        draw = self.draw
        if draw.random() < 0.3:
            return tuple(self.index() for _ in range(draw.choice([0, 1, 2, 3])))
        return draw.choice(
            [
                self.integer,
                lambda: slice(*(draw.choice([None, self.integer()]) for _ in range(3))),
                lambda: None,
                lambda: Ellipsis,
                lambda: self.tensor("int64"),
                lambda: self.tensor("bool"),
                lambda: draw.choice([True, False]),
                lambda: [0, 1, -1],
            ]
        )()

    def anything(self) -> Any:
        """Whatever the operator does not expect."""
        trt, draw = self.trt, self.draw
        return draw.choice(
            [
                self.tensor, self.number, self.integers, self.dtype, self.index, lambda: None, lambda: "sum", lambda: "\x00\ud800", object, dict,
                lambda: [self.tensor() for _ in range(draw.choice([0, 1, 2, 3]))], lambda: [[1, 2], [3]], lambda: b"bytes", lambda: trt.device("cpu"),
                lambda: trt.device("meta"), lambda: "cuda", lambda: trt.strided, lambda: trt.channels_last, lambda: {1: 2}, lambda: lambda *a: 1 / 0,
                lambda: range(3), lambda: trt.Generator(), lambda: type, lambda: self.tensor().to("meta"), lambda: float("nan"), lambda: 10**400,
                lambda: [None, 1], lambda: [1.5, "x"], lambda: trt.nn.Parameter(trt.ones(2)), lambda: Ellipsis,
            ]
        )()  # fmt: skip

    def named(self, name: str) -> Any:
        """A likely value of a parameter of this name; one in eight is of any kind."""
        draw = self.draw
        if draw.random() < 0.12:
            return self.anything()
        for pattern, make in RULES:
            if re.fullmatch(pattern, name):
                return make(self)
        return draw.choice([self.tensor, self.number, self.integers, self.anything])()


RULES: list[tuple[str, Callable[[Arguments], Any]]] = [
    (r"tensors?|arrays|operands|tensorlist|xs", lambda a: [a.tensor() for _ in range(a.draw.choice([0, 1, 2, 2, 3]))] if a.draw.random() < 0.8 else a.tensor()),
    (r"indices|index|target|targets", lambda a: a.index() if a.draw.random() < 0.3 else a.tensor(a.draw.choice(["int64", "int64", "int64", "int32", "float32", "bool"]))),
    (r"condition|mask|attn_mask", lambda a: a.tensor("bool")),
    (r"size|shape|kernel_size|stride|padding|dilation|output_size|dims?|repeats|sizes|normalized_shape|output_padding|shifts|split_sizes?.*|sections|pad|tile",
     lambda a: a.integer() if a.draw.random() < 0.5 else a.integers()),
    (r"dim\d|axis\d?|start_dim|end_dim|source|destination|k|n|m|groups?|num_.*|reduction|diagonal|offset|storage_offset|step|start|end|length|chunks|"
     r"ignore_index|padding_idx|steps|ndim|N|C|HxW|ord|decimals|upscale_factor|downscale_factor|minlength|num_samples",
     lambda a: a.integer() if a.draw.random() < 0.9 else a.number()),
    (r"dtype", lambda a: a.dtype() if a.draw.random() < 0.6 else None),
    (r"out", lambda a: a.tensor()),
    (r"generator", lambda a: a.trt.Generator() if a.draw.random() < 0.5 else None),
    (r"device", lambda a: a.draw.choice([None, "cpu", "meta", "cuda:0", "cpu:5"])),
    (r"layout", lambda a: a.trt.strided),
    (r"memory_format", lambda a: a.draw.choice([a.trt.contiguous_format, a.trt.channels_last, a.trt.preserve_format])),
    (r".*mode|approximate|rounding_mode|reduce|equation|align", lambda a: a.draw.choice(
        ["none", "tanh", "trunc", "floor", "constant", "reflect", "replicate", "circular", "sum", "mean", "amax", "prod", "ij,jk->ik", "i->", "bij,bjk", "...i,i", ""])),
    (r"keepdim|train|training|inplace|unbiased|descending|sorted|largest|ceil_mode|count_include_pad|sparse|scale_grad_by_freq|right|accumulate|"
     r"requires_grad|pin_memory|as_tuple|equal_nan|replacement|.*_input_stats|log_target|full|zero_infinity|return_.*|is_causal|non_blocking|copy",
     lambda a: a.draw.choice([True, False])),
    (r"p|alpha|beta|eps|momentum|value|negative_slope|lower|upper|threshold|min|max|exponent|std|mean|weight_decay|lr|fill_value|rtol|atol|margin|delta|"
     r"label_smoothing|correction|lambd|sigma|nan|posinf|neginf|scale|base|q|low|high|from_|to|probability|median|weight\d?",
     lambda a: a.number() if a.draw.random() < 0.7 else a.tensor()),
    (r"bias|weight|running_mean|running_var", lambda a: a.tensor("float32") if a.draw.random() < 0.6 else None),
]  # fmt: skip


def targets() -> list[tuple[str, Callable]]:
    """Every operator by name: the declared and hand-written functions, the methods, the symbols (`__add__`, ...)."""
    from tensorrt_lite import _ops

    found: dict[str, Callable] = {}
    for name in dir(_ops._namespace):
        if not name.startswith("__"):
            found[name] = getattr(_ops._namespace, name)
    for kind, table in (("function", _ops.FUNCTIONS), ("method", _ops.METHODS), ("symbol", _ops.SYMBOLS)):
        for name, function in table.items():
            if found.get(name) is not function:
                found[f"{kind}:{name}"] = function
    return [(name, function) for name, function in sorted(found.items()) if name.split(":")[-1] not in LEFT_OUT and callable(function)]


def selected(only: str) -> list[tuple[str, Callable]]:
    """The targets whose name holds the regular expression."""
    return [row for row in targets() if re.search(only, row[0])]


def make_call(trt: Any, table: list[tuple[str, Callable]], seed: int, number: int) -> tuple[str, Callable, list, dict]:
    """The call of this number: name, function, positional and named arguments."""
    draw = random.Random(f"{seed}:{number}")
    name, function = draw.choice(table)
    trt.manual_seed(draw.getrandbits(32))
    arguments = Arguments(trt, draw)
    args: list = []
    kwargs: dict = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    common = draw.choice(SHAPES)  # half of all calls have tensors of one shape: most refusals are about shapes
    alike = draw.random() < 0.5
    for position, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [arguments.named("size" if draw.random() < 0.5 else "value") for _ in range(draw.choice([0, 1, 1, 2, 3]))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        else:
            optional = parameter.default is not parameter.empty
            if optional and draw.random() < 0.5:
                if parameter.kind is not parameter.KEYWORD_ONLY and draw.random() < 0.3:
                    break
                continue
            plain_tensor = parameter.name in ("input", "self", "other", "x", "y", "mat2", "grad", "grad_output", "a", "b", "tensor1", "tensor2")
            if (position == 0 or plain_tensor) and parameter.name not in ("tensors", "size", "equation", "data", "condition") and draw.random() < 0.93:
                value = arguments.tensor(shape=common if alike else None)
            else:
                value = arguments.named(parameter.name)
            if parameter.kind is parameter.KEYWORD_ONLY or len(args) < position:
                kwargs[parameter.name] = value
            else:
                args.append(value)
    if draw.random() < 0.02:
        args.append(arguments.anything())
    if draw.random() < 0.02:
        kwargs["nonsense"] = 1
    return name, function, args, kwargs


def use(trt: Any, result: Any, depth: int = 0) -> None:
    """Read what came back, all of it, and walk the graph behind it."""
    if isinstance(result, (tuple, list)) and depth < 3:
        for part in result[:50]:
            use(trt, part, depth + 1)
        return
    if not isinstance(result, trt.Tensor) or result.device.type != "cpu" or result.numel() > 10**6:
        return
    result.detach().clone()
    repr(result)
    if result.requires_grad and result.dtype in (trt.float32, trt.float64):
        loss = result.sum()
        loss.backward()


def run_call(trt: Any, table: list, seed: int, number: int) -> str | None:
    """Make the call; what is wrong if its exception is not of an allowed kind."""
    name, function, args, kwargs = make_call(trt, table, seed, number)
    try:
        use(trt, function(*args, **kwargs))
    except ALLOWED:
        return None
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"
    return None


def child(seed: int, first: int, count: int, only: str, notes: Path) -> None:
    """Make the calls `first` to `first + count - 1`, writing each number down before the call."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import tensorrt_lite as trt

    trt.set_num_threads(2)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    table = selected(only)
    faulthandler.enable()
    with open(notes, "w", buffering=1) as file:
        for number in range(first, first + count):
            os.pwrite(file.fileno(), f"{number:12d}\n".encode(), 0)
            faulthandler.dump_traceback_later(CALL_SECONDS, exit=True)
            if str(number) == os.environ.get("TENSORRT_LITE_FUZZ_DIE_AT"):  # for the test of this tool
                os.abort()
            error = run_call(trt, table, seed, number)
            if error is not None:
                print(f"FAILURE {number} {error}".replace("\n", " ")[:300], flush=True)
    faulthandler.cancel_dump_traceback_later()


def describe(value: Any) -> str:
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        grad = ", requires_grad" if value.requires_grad else ""
        place = "" if value.device.type == "cpu" else f"{value.device.type} "
        return f"<{place}{value.dtype} {tuple(value.shape)} stride {tuple(value.stride())}{grad}>"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(describe, value))})"
    return repr(value)[:80]


def replay(seed: int, number: int, only: str) -> None:
    """Print the call, then make it in this process."""
    import tensorrt_lite as trt

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    table = selected(only)
    name, function, args, kwargs = make_call(trt, table, seed, number)
    shown = [describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()]
    print(f"{name}({', '.join(shown)})", flush=True)
    result = function(*args, **kwargs)
    print("returned", describe(result), flush=True)
    use(trt, result)


def name_of(seed: int, number: int, only: str) -> str:
    """The operator that a call is of."""
    return random.Random(f"{seed}:{number}").choice(selected(only))[0]


def run_batch(seed: int, first: int, count: int, only: str) -> list[str]:
    """Run the calls in children; a line for each failure. A child that dies is followed by one that takes up behind its call."""
    failures: list[str] = []
    end = first + count
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "call"
        while first < end:
            notes.write_text("")
            command = [sys.executable, "-m", "tools.fuzz", "--child", f"{seed}:{first}:{end - first}", "--only", only, "--notes", str(notes)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=CALL_SECONDS * 20, errors="replace")
                status, output, errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as expired:
                status, output, errors = -signal.SIGKILL, str(expired.stdout or ""), "the batch hangs"
            failures += [f"{seed}:{line.split(' ', 1)[1]}" for line in output.splitlines() if line.startswith("FAILURE ")]
            if status == 0:
                break
            text = notes.read_text().strip()
            if not text:
                failures.append(f"{seed}:{first} the child does not start: {errors[-600:]}")
                break
            culprit = int(text.split()[0])
            what = f"signal {signal.Signals(-status).name}" if status < 0 else f"overran {CALL_SECONDS} s" if "Timeout" in errors else f"exit {status}"
            failures.append(f"{seed}:{culprit} {name_of(seed, culprit, only)}: {what}\n{errors[-1500:]}")
            first = culprit + 1
    return failures


def fuzz(seconds: float, batch: int, only: str, seed: int) -> tuple[int, list[str]]:
    """Batches until the time is up: how many calls were made, and the failures."""
    start, first, failures = time.monotonic(), 0, []
    while True:
        failures += run_batch(seed, first, batch, only)
        first += batch
        if time.monotonic() - start >= seconds:
            return first, failures


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="no batch begins later")
    parser.add_argument("--batch", type=int, default=4000, help="calls of one child process")
    parser.add_argument("--only", default="", help="operators whose name holds this regular expression")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", default=None, metavar="SEED:NUMBER", help="make one call again (with the same --only)")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.replay is not None:
        replay(*map(int, options.replay.split(":")), options.only)
        return 0
    if options.child is not None:
        child(*map(int, options.child.split(":")), options.only, options.notes)
        return 0
    calls, failures = fuzz(options.seconds, options.batch, options.only, options.seed)
    for failure in failures:
        print(failure)
    print(f"{calls} calls, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
