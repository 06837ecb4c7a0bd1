"""Calls of names that PyTorch's own databases of samples know: operators (OpInfo), modules (ModuleInfo)."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from tests.conformance import opinfo, runner
from tests.conformance.library import Library

from . import surface

# Samples of each dtype that stand for a name here; tests/conformance runs them all.
SAMPLES = 1


@functools.cache
def operators() -> dict[tuple[str, str], tuple[Any, str]]:
    """{(module, name): (OpInfo, kind of call)} of the functions, methods and in-place forms that the database has samples of."""
    found: dict[tuple[str, str], tuple[Any, str]] = {}
    for op in op_db:
        if op.name.startswith(("jiterator", "masked.", "sparse.", "torch.", "ops.")) or not any(op.supports_dtype(d, "cpu") for d in opinfo.DTYPES):
            continue
        for path in (op.name, *(alias.name for alias in op.aliases)):
            head, _, last = path.rpartition(".")
            if path == op.name:
                found.setdefault((head or "torch", last), (op, "forward"))
        for variant, kind in ((op.method_variant, "method"), (op.inplace_variant, "inplace")):
            name = getattr(variant, "__name__", "")
            if name and getattr(torch.Tensor, name, None) is variant:
                found.setdefault(("Tensor", name), (op, kind))
        for alias in op.aliases:
            head, _, last = alias.name.rpartition(".")
            found.setdefault((head or "torch", last), (_renamed(op, alias), "forward"))
            for variant, kind in ((alias.method_variant, "method"), (alias.inplace_variant, "inplace")):
                name = getattr(variant, "__name__", "")
                if name and getattr(torch.Tensor, name, None) is variant:
                    found.setdefault(("Tensor", name), (_renamed(op, alias), kind))
    return found


def _renamed(op: Any, alias: Any) -> Any:
    """The operator's samples under an alias of its name."""
    import copy

    copied = copy.copy(op)
    copied.name, copied.op = alias.name, alias.op
    copied.method_variant, copied.inplace_variant = alias.method_variant, alias.inplace_variant
    return copied


def run_operator(ours: Any, op: Any, kind: str) -> str:
    """Compare some samples; what differed, or nothing."""
    before = opinfo.DTYPES
    opinfo.DTYPES = next(((d,) for d in (torch.float32, torch.complex64, torch.int64, torch.bool) if op.supports_dtype(d, "cpu")), before)
    try:
        report = runner.run(op, kind, ours, limit=SAMPLES)
    finally:
        opinfo.DTYPES = before
    return "" if report.status == "ok" and report.total > 0 else f"{report.text()} {report.failures[:2]}"


@functools.cache
def modules() -> dict[str, Any]:
    """{name in nn: ModuleInfo}."""
    return {info.module_cls.__name__: info for info in module_db if getattr(torch.nn, info.module_cls.__name__, None) is info.module_cls}


def run_module(ours: Any, info: Any) -> str:
    """Modules of the database's arguments with PyTorch's parameters, called on its inputs: outputs and the inputs' gradients."""
    library = Library(ours)
    compared = 0
    for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=True)[: SAMPLES + 1]:
        if sample.forward_input is None:
            continue
        given = sample.constructor_input
        if any(callable(v) and not isinstance(v, torch.Tensor) for v in (*given.args, *given.kwargs.values())):
            continue  # a function or module of PyTorch's
        theirs = info.module_cls(*given.args, **{"dtype": torch.float64, **given.kwargs} if _takes_dtype(info.module_cls) else given.kwargs)
        args, kwargs = library.arguments(list(given.args), dict(given.kwargs))
        inputs = sample.forward_input
        call, named = library.arguments(list(inputs.args), dict(inputs.kwargs))
        mine = getattr(ours.nn, info.module_cls.__name__)(*args, **{"dtype": ours.float64, **kwargs} if _takes_dtype(info.module_cls) else kwargs)
        theirs, mine = theirs.double(), mine.double()
        if "Lazy" in info.module_cls.__name__:  # has parameters after a call
            theirs(*inputs.args, **inputs.kwargs)
            mine(*call, **named)
        state = {k: _value(v) for k, v in theirs.state_dict().items()}
        mine.load_state_dict({k: ours.tensor(v.tolist(), dtype=getattr(ours, str(v.dtype).rpartition(".")[2])) for k, v in state.items()})
        torch.manual_seed(7)
        ours.manual_seed(7)
        expected = theirs(*inputs.args, **inputs.kwargs)
        actual = mine(*call, **named)
        if difference := surface.difference(actual, expected):
            return difference
        compared += 1
    return "" if compared else "no sample"


def _takes_dtype(cls: type) -> bool:
    import inspect

    return "dtype" in inspect.signature(cls).parameters


def _value(v: Any) -> Any:
    return v.detach()
