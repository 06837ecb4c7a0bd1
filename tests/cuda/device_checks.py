"""What the tests of the operator families on CUDA share: a call on the device beside the same call on the CPU.

`python device_checks.py FILE` runs every function `check_*` of a file in this process, whose driver is the emulator with TENSORRT_LITE_CUDA=emulate
(test_families.py), otherwise the machine's own (tools/gpu_check.py). A file with EMULATOR_ONLY = True is left out there, one with DEVICES = n where
there are fewer.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import tensorrt_lite as torch

ORDERS = ("forward", "reverse", "random")
HALF = {torch.float16: 2e-2, torch.bfloat16: 8e-2}
EMULATED = os.environ.get("TENSORRT_LITE_CUDA") == "emulate"
# Kernels on a card contract products and sums to fused multiply-adds and add trees in another order than the CPU; the emulator does neither.
SINGLE, DOUBLE = (1e-5, 1e-11) if EMULATED else (1e-4, 1e-10)


def on_device(x: Any) -> Any:
    """Tensors (also in lists and tuples) on the device, with their strides; anything else as it is."""
    if isinstance(x, torch.Tensor):
        extent = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride())) if x.numel() else 0
        memory = x.detach().as_strided((extent,), (1,)).cuda()
        moved = memory.as_strided(x.shape, x.stride()) if extent else memory.reshape(x.shape)
        return moved.requires_grad_() if x.requires_grad else moved
    if isinstance(x, (list, tuple)):
        return type(x)(on_device(y) for y in x)
    return x


def flat(x: Any) -> list[Any]:
    """The tensors of a result."""
    return [x] if isinstance(x, torch.Tensor) else [t for y in x for t in flat(y)] if isinstance(x, (list, tuple)) else []


def assert_same(result: Any, expected: Any, what: str, exact: bool = False) -> None:
    """Same shapes, dtypes, device and (within rounding) values."""
    got, want = flat(result), flat(expected)
    assert len(got) == len(want), what
    for a, b in zip(got, want):
        assert a.device.type == "cuda", what
        assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.shape} {a.dtype}, expected {b.shape} {b.dtype}"
        a, b = a.detach().cpu(), b.detach()
        relative, absolute = tolerances(b, exact)
        assert torch.allclose(a, b, rtol=relative, atol=absolute, equal_nan=True), f"{what}: {a} expected {b}"


def tolerances(expected: torch.Tensor, exact: bool = False) -> tuple[float, float]:
    """(relative, absolute). On a card the absolute one grows with the tensor's largest element: where a sum of many terms cancels, its error is
    that of the terms."""
    dtype = expected.dtype
    if exact or not (dtype.is_floating_point or dtype.is_complex):
        return 0.0, 0.0
    tolerance = HALF.get(dtype, SINGLE if dtype in (torch.float32, torch.complex64) else DOUBLE)
    if EMULATED or not expected.numel():
        return tolerance, tolerance
    size = expected.abs().double()
    largest = size[size.isfinite()]
    return tolerance, tolerance * max(1.0, largest.max().item() if largest.numel() else 1.0)


def agree(call: Any, *args: Any, exact: bool = False, gradient: bool = True, **kwargs: Any) -> Any:
    """The call's result on both devices, and its gradients where an argument requires one."""
    what = f"{getattr(call, '__name__', call)}({[tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]}, {kwargs})"
    moved, moved_kwargs = on_device(list(args)), {k: on_device(v) for k, v in kwargs.items()}
    result, expected = call(*moved, **moved_kwargs), call(*args, **kwargs)
    assert_same(result, expected, what, exact)
    inputs = [(m, a) for m, a in zip(flat(moved), flat(list(args))) if a.requires_grad]
    if gradient and inputs:
        outs = [(r, e) for r, e in zip(flat(result), flat(expected)) if e.requires_grad]
        seeds = [torch.randn(e.shape, dtype=e.dtype) for _, e in outs]
        ours = torch.autograd.grad([r for r, _ in outs], [m for m, _ in inputs], on_device(seeds), allow_unused=True)
        theirs = torch.autograd.grad([e for _, e in outs], [a for _, a in inputs], seeds, allow_unused=True)
        assert [g is None for g in ours] == [g is None for g in theirs], what
        assert_same([g for g in ours if g is not None], [g for g in theirs if g is not None], f"gradient of {what}", exact)
    return result


def raises(kind: type[BaseException], words: str, call: Any, *args: Any, **kwargs: Any) -> None:
    """The call must raise this kind of error, with these words in its message."""
    try:
        call(*args, **kwargs)
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")


def main(path: str, *names: str) -> None:
    """Run the checks of a file, in every thread order those that say so by an argument."""
    spec = importlib.util.spec_from_file_location("checks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if not EMULATED and ("EMULATOR_ONLY = True" in Path(path).read_text()):
        print(f"{Path(path).name}: for the emulator alone")
        return
    texts = note_units() if EMULATED and not names else []
    spec.loader.exec_module(module)
    if not EMULATED and torch.cuda.device_count() < getattr(module, "DEVICES", 1):
        print(f"{Path(path).name}: needs {module.DEVICES} devices")
        return
    for name, check in list(vars(module).items()):  # a warning puts its registry there
        if name.startswith("check_") and (not names or name in names):
            start = time.time()
            for order in ORDERS if EMULATED and check.__code__.co_argcount else ORDERS[:1]:
                os.environ["CUEMU_ORDER"] = order
                torch.manual_seed(0)
                check(*[order] * check.__code__.co_argcount)
            print(f"{name}: {time.time() - start:.1f} s", flush=True)
    if os.environ.get("UNITS_USED"):
        with open(os.environ["UNITS_USED"], "a") as file:
            file.writelines(json.dumps(text) + "\n" for text in texts)


def note_units() -> list[str]:
    """The library's units that are compiled in this process from here on (not those of programs, which include folders of their own)."""
    from tensorrt_lite.cuda import _compiler

    texts: list[str] = []
    compile_unit = _compiler.compile_unit

    def noting(source: str, device: int, include: Any = None) -> bytes:
        if include is None:
            texts.append(source)
        return compile_unit(source, device, include or ())

    _compiler.compile_unit = noting
    return texts


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main(*sys.argv[1:])
