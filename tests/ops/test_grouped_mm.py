"""grouped_mm and scaled_mm beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from torch_compare import ours, same, torch

F, TF = trt.nn.functional, torch.nn.functional


def test_groups():
    rng = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 16, 32, generator=rng), torch.randn(2, 32, 16, generator=rng)
    cases = [(a, b, None), (a[0], b, [4, 16]), (a, b[0], [5, 16]), (a[0], b[0], [8, 32]), (a[0], b, [0, 16])]
    for x, y, ends in cases:
        offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            expected = TF.grouped_mm(x.to(dtype), y.to(dtype), offs=offs)
            mine = F.grouped_mm(ours(x.to(dtype)), ours(y.to(dtype)), offs=None if offs is None else ours(offs))
            same(mine.float(), expected.float(), f"{ends} {dtype}", 1e-5 if dtype is torch.float32 else 0.1)
    leaf = ours(a[0]).requires_grad_()
    F.grouped_mm(leaf, ours(b), offs=trt.tensor([4, 16], dtype=trt.int32)).sum().backward()
    wanted = torch.cat([torch.ones(4, 16) @ b[0].T, torch.ones(12, 16) @ b[1].T])
    same(leaf.grad, wanted, "gradient", 1e-4)


def test_scaled_products():
    rng = torch.Generator().manual_seed(1)
    wide, tall = torch.randn(16, 32, generator=rng), torch.randn(32, 16, generator=rng)
    rows, columns = torch.rand(16, 1, generator=rng), torch.rand(1, 16, generator=rng)
    one, bias = torch.tensor(0.5), torch.randn(16, generator=rng)
    for a, b in ((rows, columns), (one, one)):
        for dtype in ("float32", "bfloat16", "float8_e4m3fn", None):
            if dtype is None and a is rows:
                continue
            found = []
            for lib, convert in ((torch, lambda t: t), (trt, ours)):
                x, y = convert(wide).to(lib.float8_e4m3fn), convert(tall.T.contiguous()).to(lib.float8_e4m3fn).t()
                kind = None if dtype is None else getattr(lib, dtype)
                extra = {"bias": convert(bias).to(kind)} if dtype == "bfloat16" else {}
                found.append(lib._scaled_mm(x, y, convert(a), convert(b), out_dtype=kind, **extra).float())
            same(found[1], found[0], f"{dtype}", 0.02 if dtype == "float32" else 0.1)
    x, y = ours(wide).to(trt.float8_e4m3fn), ours(tall.T.contiguous()).to(trt.float8_e4m3fn).t()
    result = F.scaled_mm(x, y, ours(rows).reshape(-1), F.ScalingType.RowWise, [ours(columns).reshape(-1)], [F.ScalingType.RowWise], output_dtype=trt.float32)
    assert trt.allclose(result, (x.float() @ y.float()) * ours(rows) * ours(columns), rtol=1e-5, atol=1e-5)


def test_errors():
    a, b = trt.zeros(2, 16, 32), trt.zeros(2, 32, 16)
    offs = trt.tensor([4, 16], dtype=trt.int32)
    cases = [
        (lambda: F.grouped_mm(a[0], b), RuntimeError, "Have to provide offsets"),
        (lambda: F.grouped_mm(a, b, offs=offs), RuntimeError, "no offset if both matrices are 3d"),
        (lambda: F.grouped_mm(a.double(), b.double()), RuntimeError, "got Double"),
        (lambda: F.grouped_mm(a[0], b, offs=offs.long()), RuntimeError, "Offsets have to be int32"),
        (lambda: F.grouped_mm(a, a), RuntimeError, "contraction dimension"),
        (lambda: F.grouped_mm(a, b, bias=trt.zeros(16)), RuntimeError, "Bias not supported"),
        (lambda: F.grouped_mm(a, b, out_dtype=trt.bfloat16), RuntimeError, "must match `mat_a` dtype"),
        (lambda: F.grouped_mm(a[0], b, offs=trt.tensor([4, 17], dtype=trt.int32)), RuntimeError, "stay within 16"),
        (lambda: trt._scaled_mm(a[0], b[0], trt.tensor(1.0), trt.tensor(1.0)), ValueError, "Invalid scaling configuration"),
        (lambda: F.scaled_mm(a, b, a, F.ScalingType.BlockWise1x32, b, F.ScalingType.BlockWise1x32), NotImplementedError, "scales of blocks"),
        (lambda: F.scaled_grouped_mm(a, b, a, None, b, None), NotImplementedError, "scaled_grouped_mm is not implemented"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
