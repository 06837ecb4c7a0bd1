"""The operators under comparison and their samples.

`operators.txt` lists OpInfo names; every OpInfo of a listed name is an entry here ("div.floor_rounding"). Samples are
PyTorch's, drawn after seeding all generators, so that two runs see the same values. Called by `kinds` and `runner`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import torch
import torch.testing._internal.common_utils
import torch.testing._internal.opinfo.core
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput

# For each iteration over samples PyTorch looks through the stack for the unittest that runs it, of which there is none here: up to a tenth of a
# second each, two thirds of the comparison's time.
for _module in (torch.testing._internal.common_utils, torch.testing._internal.opinfo.core):
    _module.extract_test_fn = lambda: None

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
# Of the database, what is no public operator of dense tensors of plain numbers, or of `torch.ops.aten` alone.
_NOT_PUBLIC = ("jiterator", "masked.", "sparse.", "torch.", "to_sparse", "_", "max_pool2d_with_indices_backward", "native_dropout_backward", "slice", "sspaddmm")
_PUBLIC = ("slice_scatter",)

# Operators whose values come from the generator: both libraries are seeded before every call.
RANDOM = {
    "rand_like", "randn", "randn_like", "randint", "randint_like", "normal", "bernoulli", "uniform", "exponential", "geometric", "cauchy", "log_normal",
    "multinomial", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
}  # fmt: skip
# Operators whose values are whatever the memory held: only shape, dtype and strides are compared.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# Their results hold vectors of which any multiple by a number of size one would do (singular vectors, eigenvectors): compared
# is what PyTorch's samples make of the results, absolute values and products in which the choice cancels.
FREE_VECTORS = {"svd", "linalg.svd", "linalg.eigh", "linalg.eig"}
# Operators that name positions, any of several equal elements': where their dimension stands among the arguments after the input.
SELECTIONS = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}
# OpInfo says that these have no out= though PyTorch accepts one.
OUT_WITHOUT_FLAG = {"sum", "prod"}

# The tests of PyTorch whose tolerance overrides speak of plain values on the CPU.
_TOLERANCE_CLASSES = {None, "TestCommon", "TestUnaryUfuncs", "TestUnaryUfuncsDevice", "TestBinaryUfuncsDevice"}
_TOLERANCE_TESTS = {
    None,
    "test_out",
    "test_noncontiguous_samples",
    "test_numpy_refs",
    "test_reference_numerics",
    "test_reference_numerics_normal",
}

# torch.testing.assert_close's defaults (rtol, atol); integers and bool compare exactly.
DEFAULT_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


def operator_names() -> list[str]:
    """The OpInfo names of operators.txt in their order."""
    lines = (Path(__file__).parent / "operators.txt").read_text().splitlines()
    return [name for line in lines for name in line.partition("#")[0].split()]


def database_names() -> list[str]:
    """The names of all operators of the database that users call: dense ones, with a public name."""
    names = {op.name for op in op_db if not op.name.startswith(_NOT_PUBLIC) or op.name.startswith(("__", *_PUBLIC))}
    return sorted(names | set(operator_names()))


def choose_dtypes(names: list[str]) -> None:
    """Compare in these dtypes from now on."""
    global DTYPES
    DTYPES = tuple(getattr(torch, name) for name in names)


def describe_dtypes() -> list[str]:
    return [str(dtype).removeprefix("torch.") for dtype in DTYPES]


def key(op: OpInfo) -> str:
    """The name under which an OpInfo is reported: its name, with a dot and the variant where it has one."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries(selection: list[str] | None = None) -> dict[str, OpInfo]:
    """OpInfos by key: those of operators.txt, or the selected ones. `selection` holds names or keys, "database" for all public ones; ValueError when one of
    them is unknown."""
    listed = operator_names() if selection is None else database_names()
    by_name: dict[str, list[OpInfo]] = {name: [] for name in listed}
    for op in op_db:
        if op.name in by_name and any(op.supports_dtype(dtype, "cpu") for dtype in DTYPES):
            by_name[op.name].append(op)
    absent = [name for name, found in by_name.items() if not found]
    if absent and selection is None:
        raise ValueError(f"operators.txt names what the OpInfo database lacks: {', '.join(absent)}")
    table = {key(op): op for name in listed for op in by_name[name]}
    if selection is None or "database" in selection:
        return table
    unknown = [item for item in selection if item not in table and item not in by_name]
    if unknown:
        raise ValueError(f"not among the compared operators: {', '.join(unknown)}")
    return {name: op for name, op in table.items() if name in selection or op.name in selection}


def seed_sampling() -> None:
    """Puts every generator that OpInfo's samplers draw from into a fixed state."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def dtypes(op: OpInfo) -> list[torch.dtype]:
    return [dtype for dtype in DTYPES if op.supports_dtype(dtype, "cpu")]


def samples(op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> Iterator[SampleInput]:
    seed_sampling()
    # Seeding before every sample, OpInfo's default, takes longer than most operators on their samples.
    yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad, set_seed=False)


def error_samples(op: OpInfo) -> Iterator[SampleInput]:
    """Arguments for which PyTorch's database states an error."""
    seed_sampling()
    for error_input in op.error_inputs("cpu", set_seed=False):
        yield error_input.sample_input


def _bessel(function: str, order: int) -> Callable[[Any], float]:
    def value(x: Any) -> float:
        if function == "bessely" and not x > 0:
            return float("nan") if x != 0 else float("-inf")
        return float(getattr(mpmath, function)(order, mpmath.mpf(x)))

    return value


def _polygamma(x: Any, n: int) -> float:
    try:
        return float(mpmath.psi(n, mpmath.mpf(x)))
    except (ValueError, ZeroDivisionError):
        return -math.inf if n % 2 == 0 else math.inf


# Functions that PyTorch computes in float64 with errors of 1e-7: their exact values, by element and the sample's arguments.
EXACT: dict[str, Callable[..., float]] = {
    f"special.bessel_{letter}{order}": _bessel(f"bessel{letter}", order) for letter in "jy" for order in (0, 1)
}
EXACT |= {"polygamma": _polygamma, "special.polygamma": _polygamma}  # at its poles


def selected_dimension(op: OpInfo, sample: SampleInput) -> int | None:
    """The dimension along which equal elements may stand for each other; None for other operators and for stable sorting."""
    if op.name not in SELECTIONS or sample.kwargs.get("stable"):
        return None
    place = SELECTIONS[op.name]
    return int(sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1))


def tolerances(op: OpInfo) -> dict[torch.dtype, tuple[float, float]]:
    """(rtol, atol) by dtype: assert_close's defaults, widened where PyTorch's own tests of this operator are."""
    table = dict(DEFAULT_TOLERANCES)
    for decorate in op.decorators:
        if not isinstance(decorate, DecorateInfo) or decorate.device_type not in (None, "cpu"):
            continue
        if decorate.cls_name not in _TOLERANCE_CLASSES or decorate.test_name not in _TOLERANCE_TESTS:
            continue
        for override in decorate.decorators:
            if isinstance(override, toleranceOverride):
                for dtype, tol in override.d.items():
                    rtol, atol = table.get(dtype, (0.0, 0.0))
                    table[dtype] = (max(rtol, tol.rtol), max(atol, tol.atol))
    return table


def describe(value: Any) -> str:
    """One line that identifies a sample's arguments: tensors as dtype, shape and, where not contiguous, strides."""
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f", strides={value.stride()}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{strides}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(describe(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, SampleInput):
        parts = [describe(value.input), *(describe(item) for item in value.args)]
        parts += [f"{name}={describe(item)}" for name, item in value.kwargs.items()]
        return ", ".join(parts)
    return repr(value)
