"""Tests that every declared pointwise operator gets from its row: the same values in every variant, gradients, meta, types."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops
from tensorrt_lite.autograd.gradcheck import gradcheck, gradgradcheck
from tests.ops.samples import draw
from tools.codegen.schema import DTYPES, FLOATS, Operator, load

ROWS = [op for op in load(Path(__file__).resolve().parents[2] / "cysrc" / "ops") if op.kind == "pointwise" and "samples" in op.row]
NAMES = {
    "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128", "b8": "bool",
}  # fmt: skip
declared = pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)


def scalar_type(op: Operator) -> str:
    """The widest type that the operator has a loop for."""
    return next(t for t in ("f64", "i64", "b8") if t in op.dtypes)


def tensors_of(op: Operator, sample: tuple, kind: str | None = None) -> list:
    made = []
    dtype = getattr(trt, NAMES[kind or scalar_type(op)])
    for values in sample[0]:
        t = trt.tensor(values, dtype=trt.float64)
        made.append(t.to(dtype))
    if op.row.get("first_bool"):
        made.insert(0, trt.tensor(sample[0][0], dtype=trt.float64) > 0)
    return made


def call(op: Operator, tensors: list, numbers: tuple, **extra):
    function = getattr(_ops, op.name)
    if op.name == "polygamma":
        return function(1, *tensors, **extra)
    return function(*tensors, *numbers, **extra)


def same(a, b) -> bool:
    if a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape):
        return False
    x, y = flat(a.tolist()), flat(b.tolist())
    return all(p == q or (p != p and q != q) for p, q in zip(x, y))


def flat(values) -> list:
    return [v for part in values for v in flat(part)] if isinstance(values, list) else [values]


def strided(t):
    """The same values in every second element of a larger tensor, dimensions in reversed memory order."""
    if t.dim() == 0:
        return t
    order = tuple(range(t.dim() - 1, -1, -1))
    wide = trt.empty(tuple(t.shape[d] for d in order[:-1]) + (t.shape[0] * 2,), dtype=t.dtype)
    view = wide[..., ::2].permute(order)
    view.copy_(t)
    return view


@declared
def test_variants_agree(op: Operator) -> None:
    """The method, out= and the in-place form give what the function gives."""
    for sample in draw(op.row["samples"]):
        tensors, numbers = tensors_of(op, sample), sample[1]
        expected = call(op, tensors, numbers)
        if "method" in op.variants:
            arguments = (1,) if op.name == "polygamma" else (*tensors[1:], *numbers)
            assert same(getattr(tensors[0], op.name)(*arguments), expected)
        if "out" in op.variants:
            out = trt.empty(0, dtype=expected.dtype)
            assert call(op, tensors, numbers, out=out) is out
            assert same(out, expected)
        if "inplace" in op.variants and tensors[0].shape == expected.shape and tensors[0].dtype == expected.dtype:
            target = tensors[0].clone()
            arguments = (1,) if op.name == "polygamma" else (*tensors[1:], *numbers)
            result = getattr(_ops, op.name + "_", None) or getattr(trt.Tensor, op.name + "_")
            assert result(target, *arguments) is target
            assert same(target, expected)


@declared
def test_layout_does_not_matter(op: Operator) -> None:
    """Strided inputs give the same bits as contiguous ones; every element equals the operator applied to it alone."""
    for sample in draw(op.row["samples"]):
        tensors, numbers = tensors_of(op, sample), sample[1]
        expected = call(op, tensors, numbers)
        assert same(call(op, [strided(t) for t in tensors], numbers), expected)
        if expected.numel() and expected.dim():
            spread = [t.expand(expected.shape).reshape(-1) for t in tensors]
            for i in range(0, expected.numel(), 7):
                alone = call(op, [t[i] for t in spread], numbers)
                assert same(alone, expected.reshape(-1)[i])


@declared
def test_meta_tells_shape_and_dtype(op: Operator) -> None:
    for sample in draw(op.row["samples"]):
        for kind in op.dtypes:
            tensors, numbers = tensors_of(op, sample, kind), sample[1]
            if kind not in FLOATS and op.name == "clamp":
                continue
            try:
                expected = call(op, tensors, numbers)
            except RuntimeError as error:
                assert any(words in str(error) for words in ("ZeroDivision", "unsigned type", "cannot be converted to type uint8_t without overflow"))
                continue
            described = call(op, [trt.empty(tuple(t.shape), dtype=t.dtype, device="meta") for t in tensors], numbers)
            assert described.device.type == "meta"
            assert described.dtype == expected.dtype
            assert tuple(described.shape) == tuple(expected.shape)


@declared
def test_types_without_a_loop_raise(op: Operator) -> None:
    sample = draw(op.row["samples"])[1]
    for kind in set(DTYPES) - set(op.dtypes):
        if "float" in str(op.row.get("promote", "")) and kind in ("b8", "u8", "i8", "i16", "i32", "i64"):
            continue
        if op.row.get("entry") == "manual" or "body" in op.row:
            continue
        with pytest.raises((RuntimeError, TypeError)):
            call(op, tensors_of(op, sample, kind), sample[1])


@pytest.mark.parametrize("op", [o for o in ROWS if o.backward and "f64" in o.dtypes], ids=lambda op: op.name)
def test_gradients(op: Operator) -> None:
    """First and second derivatives against finite differences, of the fused kernel and of the composed formula."""
    for sample in (draw(op.row["samples"])[2], draw(op.row["samples"])[-1]):
        tensors, numbers = tensors_of(op, sample), sample[1]
        if tensors[-1].numel() == 0:
            continue
        wanted = [a.name in op.backward for a in op.tensors]
        inputs = tuple(t.requires_grad_() if w and t.is_floating_point() else t for t, w in zip(tensors, wanted))

        def function(*arguments):
            return call(op, list(arguments), numbers)

        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


@declared
def test_agrees_with_pytorch(op: Operator) -> None:
    """Values and types in every dtype, beside PyTorch's function of the same name."""
    torch = pytest.importorskip("torch")
    name = op.row.get("reference", op.name)
    reference = next((getattr(s, name) for s in (torch, torch._C._nn, torch.nn.functional) if hasattr(s, name)), None)
    if name.startswith("special_"):
        reference = getattr(torch.special, name.removeprefix("special_"))
    if reference is None:
        pytest.skip(f"PyTorch has no function {name}")
    for sample in draw(op.row["samples"]):
        for kind in op.dtypes:
            tensors, numbers = tensors_of(op, sample, kind), sample[1]
            theirs = [torch.tensor(t.tolist(), dtype=getattr(torch, NAMES["b8" if t.dtype == trt.bool else kind])).reshape(tuple(t.shape)) for t in tensors]
            try:
                expected = reference(1, *theirs) if op.name == "polygamma" else reference(*theirs, *numbers)
            except (RuntimeError, TypeError):
                continue
            result = call(op, tensors, numbers)
            assert str(result.dtype) == str(expected.dtype), kind
            assert tuple(result.shape) == tuple(expected.shape)
            tolerance = {"f16": 4e-3, "bf16": 4e-2, "f32": 2e-5, "c64": 2e-5}.get(kind, 2e-5 if "float" in str(op.row.get("promote", "")) and kind not in ("f64", "c128") else 1e-10)
            if op.name == "polygamma":
                tolerance = max(tolerance, 1e-9)  # two different series, which agree to 5e-10
            if name.startswith(("special_bessel_", "special_airy_")):
                tolerance = max(tolerance, 1e-5)  # PyTorch's error in float64; the exact value is compared in tests/loops/test_special_math.py
            for a, b in zip(flat(result.tolist()), flat(expected.tolist())):
                assert a == b or (a != a and b != b) or math.isclose(abs(a - b), 0, abs_tol=tolerance * (1 + abs(b))), (kind, a, b)


@pytest.mark.parametrize("shape", [(3, 0, 0), (0, 0, 3), (2, 0, 3, 0)])
def test_reductions_over_several_empty_dimensions(shape):
    x = trt.zeros(shape)
    dims = tuple(i for i, n in enumerate(shape) if n == 0)
    assert x.sum(dims).tolist() == trt.zeros([n for n in shape if n]).tolist()
    assert x.prod().item() == 1 and x.mean(dims).isnan().all()
    assert x.sum_to_size([n or 1 for n in shape]).numel() == x.sum(dims).numel()
