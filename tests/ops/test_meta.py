"""What meta tensors give is what the same call gives on the CPU: shapes, dtypes, and strides where the result is a fresh tensor."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensorrt_lite as trt  # noqa: E402
from tests.conformance import opinfo  # noqa: E402
from tests.conformance.library import Library, Missing  # noqa: E402

SAMPLES = 3
# The result's shape depends on the elements, or a number is read from a tensor.
NEED_DATA = {
    "histogram", "histogramdd", "index_put", "nn.functional.ctc_loss", "item", "linspace.tensor_overload", "logspace.tensor_overload", "masked_select", "narrow", "nonzero", "to", "unique", "unique_consecutive",
}  # fmt: skip
# Shapes and dtypes alone: the layout of the result is the kernel's that the processor chooses.
LAYOUT_OF_KERNEL = {"nn.functional.scaled_dot_product_attention"}


def on_meta(value: Any) -> Any:
    if isinstance(value, trt.Tensor):
        return value.detach().to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(on_meta(v) for v in value)
    return value


def described(result: Any, strides: bool) -> Any:
    if isinstance(result, trt.Tensor):
        return (tuple(result.shape), result.dtype, result.stride() if strides else None)
    if isinstance(result, (list, tuple)):
        return [described(r, strides) for r in result]
    return type(result)


def samples() -> Iterator[tuple[str, Any, Any]]:
    """(name, the call on the CPU, the call on meta tensors)."""
    library = Library(trt)
    for name, op in opinfo.entries().items():
        if not op.supports_dtype(torch.float32, "cpu"):
            continue
        try:
            function = library.function(op)
        except Missing:
            continue
        for number, sample in zip(range(SAMPLES), opinfo.samples(op, torch.float32)):
            first, args, kwargs, _ = library.arguments(sample.input, list(sample.args), dict(sample.kwargs), None)
            yield f"{name}[{number}]", functools.partial(function, first, *args, **kwargs), functools.partial(function, on_meta(first), *map(on_meta, args), **{k: on_meta(v) for k, v in kwargs.items()})


def test_meta_tensors_give_what_the_cpu_gives() -> None:
    differing, compared, declined = [], 0, set()
    for name, on_cpu, without_data in samples():
        strides = name.partition("[")[0] not in LAYOUT_OF_KERNEL
        with trt.no_grad():
            try:
                expected = described(on_cpu(), strides)
            except Exception:  # what the CPU refuses is the business of other tests
                continue
            try:
                found = described(without_data(), strides)
            except (NotImplementedError, RuntimeError) as error:
                if isinstance(error, NotImplementedError) or "meta tensor" in str(error):
                    declined.add(name.partition("[")[0])
                    continue
                found = error
        compared += 1
        if found != expected:
            differing.append(f"{name}: {found} where the CPU has {expected}")
    assert not differing, "\n".join(differing)
    assert declined <= NEED_DATA and compared > 800
