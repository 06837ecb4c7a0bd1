"""Which of its tensors a call counts as written: `_version` of every argument and `out=` before and after, beside PyTorch's, over its operator database.
How often it counts one is left open: PyTorch's `normal(out=)` fills, multiplies and adds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from torch.testing._internal.opinfo.core import OpInfo, SampleInput  # noqa: E402

import tensorrt_lite as trt  # noqa: E402
from tests.conformance import kinds, opinfo  # noqa: E402
from tests.conformance.library import Library  # noqa: E402

REFERENCE, OURS = Library(torch), Library(trt)
SAMPLES = 2
# Written memory counts here; PyTorch's kernels write without counting, or have nothing to write.
COUNTED_HERE_ALONE = {("empty", "out"), ("fft.ihfft2", "out"), ("fft.ihfftn", "out"), ("nn.functional.batch_norm", "plain")}

Resolve = Callable[[Library], Callable[..., Any]]
OPERATORS = opinfo.entries()
CHUNKS = [list(OPERATORS)[i : i + 40] for i in range(0, len(OPERATORS), 40)]


def tensors_in(library: Library, value: Any) -> Iterator[Any]:
    if isinstance(value, library.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(library, item)


def written(library: Library, resolve: Resolve, sample: SampleInput, target: Any) -> list[bool]:
    first, args, kwargs, out = library.arguments(sample.input, list(sample.args), dict(sample.kwargs), target)
    kwargs = kwargs if target is None else {**kwargs, "out": out}
    given = list(tensors_in(library, (first, args, kwargs)))
    before = [t._version for t in given]
    with library.module.no_grad():
        resolve(library)(first, *args, **kwargs)
    return [t._version > version for t, version in zip(given, before, strict=True)]


def forms(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, Resolve, Any]]:
    yield "plain", lambda library: library.function(op), None
    if op.inplace_variant is not None:
        yield "in place", lambda library: library.method(op.inplace_variant), None
    target = out_of_garbage(op, sample) if op.supports_out else None
    if target is not None:
        yield "out", lambda library: library.function(op), target


def out_of_garbage(op: OpInfo, sample: SampleInput) -> Any:
    plain = kinds.plain_result(op, sample, REFERENCE)
    leaves = plain.result if isinstance(plain.result, list) else [plain.result]
    if plain.error is not None or not leaves or not all(isinstance(leaf, kinds.Leaf) for leaf in leaves):
        return None
    made = [kinds.garbage(leaf) for leaf in leaves]
    return tuple(made) if isinstance(plain.result, list) else made[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("names", CHUNKS, ids=lambda names: f"{names[0]} to {names[-1]}")
def test_a_call_counts_what_it_writes(names: list[str]) -> None:
    compared, different = 0, []
    for name in names:
        op = OPERATORS[name]
        dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else opinfo.dtypes(op)[0]
        for sample in itertools.islice(opinfo.samples(op, dtype), SAMPLES):
            for form, resolve, target in forms(op, sample):
                try:
                    theirs = written(REFERENCE, resolve, sample, target)
                except Exception:  # noqa: BLE001  what PyTorch refuses, the conformance run compares
                    continue
                compared += 1
                if theirs != (ours := written(OURS, resolve, sample, target)) and (op.name, form) not in COUNTED_HERE_ALONE:
                    different.append(f"{name}, {form}, {opinfo.describe(sample)}: {ours}, PyTorch {theirs}")
    assert compared > len(names)
    assert not different, "\n".join(different)
