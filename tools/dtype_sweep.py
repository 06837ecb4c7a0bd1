"""Every operator of PyTorch's database with operands of every element type, those that PyTorch refuses too: no call may end the process.

    python -m tools.dtype_sweep [--ops add,sort] [--samples 6] [--jobs 2]

The tensors of a sample are cast, all of one kind of number (floating-point, integers) or the first alone, and the operator is called on them, in place where it
can be, and with a gradient where the result has one. What it returns or raises is of no interest here (`tests/conformance` compares that); a table of kernels that
lacks one for some type is. Each operator has a process of its own; prints the calls that ended one, and the operators that could not be run, and fails if there
are any.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

SECONDS = 120  # of one operator
TYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
)  # fmt: skip


def cast(value: Any, dtype: Any, kinds: tuple[bool, ...], first: bool) -> Any:
    """A sample's values with tensors as `dtype`: those whose being floating-point is among kinds; `first`: no more than one."""
    import torch

    done = [False]

    def convert(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            if (x.is_floating_point() or x.is_complex()) in kinds and not (first and done[0]):
                done[0] = True
                return x.detach().to(torch.float64 if x.is_complex() and not dtype.is_complex else x.dtype).to(dtype)
            return x.detach()
        if isinstance(x, (list, tuple)):
            return type(x)(map(convert, x)) if not hasattr(x, "_make") else x
        return {k: convert(v) for k, v in x.items()} if isinstance(x, dict) else x

    return convert(value)


def calls(op: Any, count: int) -> Iterator[tuple[str, Any]]:
    """(description, call) of each call of an operator."""
    import torch

    import tensorrt_lite as trt
    from tests.conformance import opinfo
    from tests.conformance.library import Library

    library = Library(trt)
    function = library.function(op)
    in_place = [library.method(op.inplace_variant)] if hasattr(op.inplace_variant, "__name__") else []
    known = opinfo.dtypes(op)
    base = torch.float32 if torch.float32 in known else next(iter(known))
    drawn = list(islice(opinfo.samples(op, base), 40))
    chosen = drawn[:: max(len(drawn) // count, 1)][:count]
    for number, sample in enumerate(chosen):
        whole = (sample.input, list(sample.args), dict(sample.kwargs))
        for name in TYPES:
            dtype = getattr(torch, name)
            for kinds, first in (((True,), False), ((True,), True), ((False,), False), ((True, False), False)):
                try:
                    values = cast(whole, dtype, kinds, first)
                except (RuntimeError, NotImplementedError, TypeError):
                    continue
                for f in (function, *in_place):

                    def call(f: Any = f, values: Any = values) -> None:
                        x, args, kwargs = library.arguments(*values)
                        if isinstance(x, trt.Tensor) and (x.is_floating_point() or x.is_complex()) and f is function:
                            x = x.detach().requires_grad_()
                        result = f(x, *args, **kwargs)
                        for t in library.tensors(result):
                            if t.requires_grad:
                                t.sum().abs().backward()
                                break

                    which = {(True,): "floats", (False,): "integers"}.get(kinds, "all")
                    yield f"{opinfo.key(op)} sample {number}: {which} as {name}{', the first' if first else ''}{', in place' if f is not function else ''}", call


def child(op: Any, count: int, note: int) -> None:
    """Calls an operator in every way; the description of the call that runs is in the file `note`."""
    signal.alarm(SECONDS)
    for description, call in calls(op, count):
        os.pwrite(note, description.encode().ljust(400), 0)
        with contextlib.suppress(Exception):
            call()


def swept(op: Any, count: int) -> str | None:
    """The call that ended an operator's process, with how, or that the operator could not be run; None where all calls were made."""
    note = os.memfd_create("call")
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            child(op, count, note)
        except BaseException as error:  # a sample that cannot be made
            print(f"{op.name}: {type(error).__name__}: {error}", file=sys.stderr)
            code = 3
        os._exit(code)
    status = os.waitpid(pid, 0)[1]
    said = os.pread(note, 400, 0).decode().strip()
    os.close(note)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"{said}: {'over time' if name == 'SIGALRM' else name}"
    return f"{op.name}: not run" if os.WEXITSTATUS(status) else None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.dtype_sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default="", help="names, separated by commas; all without")
    parser.add_argument("--samples", type=int, default=6, help="samples of an operator")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    warnings.simplefilter("ignore")
    faulthandler.disable()
    from tests.conformance import opinfo
    import tensorrt_lite as trt

    trt.set_num_threads(1)
    entries = opinfo.entries(options.ops.split(",") if options.ops else None)
    found = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for ended in pool.map(lambda op: swept(op, options.samples), entries.values()):
            if ended is not None:
                found.append(ended)
                print(ended, flush=True)
    print(f"{len(entries)} operators, {len(found)} ended their process or were not run")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
