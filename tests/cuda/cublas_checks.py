"""Products through cuBLASLt's interface: the real call path over the stand-in of tools/cuda_emulator/cublaslt, and the flags of backends.cuda."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.cuda_emulator import compiler

EMULATOR_ONLY = True
os.environ["TENSORRT_LITE_CUBLASLT"] = str(compiler.build_cublaslt(Path(os.environ["TENSORRT_LITE_CUDA_CACHE"]), ROOT / "cysrc" / "cuda" / "cublaslt.h"))
os.environ["CUBLASLT_CALLS"] = CALLS = tempfile.mkstemp()[1]

import tensorrt_lite as torch
from device_checks import agree, raises

MATMUL = torch.backends.cuda.matmul
randn = torch.randn


def calls() -> list[str]:
    """What the library was asked to multiply since the last question."""
    lines = Path(CALLS).read_text().splitlines()
    Path(CALLS).write_text("")
    return lines


def by_library(count: int, *arguments: object, **keywords: object) -> None:
    """The operator's result on the device is the CPU's, and the library made it."""
    calls()
    agree(*arguments, **keywords)
    assert len(calls()) == count, arguments[0]


def check_types() -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128):
        by_library(1, torch.mm, (randn(35, 70) / 4).to(dtype), (randn(70, 37) / 4).to(dtype))
    for dtype in (torch.int8, torch.int64):
        by_library(0, torch.mm, torch.randint(0, 9, (35, 40)).to(dtype), torch.randint(0, 9, (40, 37)).to(dtype))


def check_bias_alignment() -> None:
    """A bias whose address is no multiple of 16 is no epilogue's: the library may load it in vectors."""
    rows = randn(100)
    for start, epilogue in ((0, 4), (4, 4), (33, 1), (2, 1)):
        calls()
        a, b, bias = randn(20, 70), randn(70, 33), rows.cuda()[start : start + 33]
        assert torch.allclose(torch.addmm(bias, a.cuda(), b.cuda()).cpu(), torch.addmm(rows[start : start + 33], a, b), atol=1e-5)
        assert f" epilogue {epilogue} " in calls()[0], start


def check_layouts() -> None:
    """All transpositions, lines that are not dense, copies where there is no dense dimension, rows that repeat, results by columns."""
    m, n, k = 20, 33, 70
    for a in (randn(m, k), randn(k, m).t(), randn(m, k + 3)[:, 1 : k + 1], randn(m, 2 * k)[:, ::2], randn(1, k).expand(m, k), randn(m, 1).expand(m, k)):
        for b in (randn(k, n), randn(n, k).t(), randn(k + 1, 2 * n)[1:, ::2], randn(k, 1).expand(k, n)):
            by_library(1, torch.mm, a, b)
    by_library(1, torch.mm, randn(m, 1).expand(m, 2)[:, :1], randn(1, n))
    a, b = randn(m, k), randn(k, n)
    for out in (torch.empty(n, m, device="cuda").t(), torch.empty(m, n + 5, device="cuda")[:, 2 : n + 2]):
        calls()
        torch.mm(a.cuda(), b.cuda(), out=out)
        assert torch.allclose(out.cpu(), a @ b, atol=1e-5) and len(calls()) == 1
    strided = torch.empty(m, 2 * n, device="cuda")[:, ::2]
    torch.mm(a.cuda(), b.cuda(), out=strided)
    assert torch.allclose(strided.cpu(), a @ b, atol=1e-5) and not calls()
    by_library(0, torch.mv, randn(30, 40), randn(40))
    by_library(0, torch.mm, randn(3, 0), randn(0, 4))


def check_addends() -> None:
    """A row is the epilogue's bias, a matrix the third operand, the rest is copied; in place; alpha and beta."""
    for shape, epilogue in (((20, 33), 1), ((33,), 4), ((20, 1), 1), ((1, 33), 4), ((), 1)):
        calls()
        agree(torch.addmm, randn(shape).requires_grad_(), randn(20, 70).requires_grad_(), randn(70, 33).requires_grad_(), gradient=shape == (33,))
        assert f" epilogue {epilogue} " in calls()[0], shape
        by_library(1, torch.addmm, randn(shape), randn(20, 70), randn(70, 33), beta=0.5, alpha=2)
    by_library(1, torch.addmm, randn(33, dtype=torch.float64), randn(20, 70, dtype=torch.float64), randn(70, 33, dtype=torch.float64))
    by_library(1, torch.addmm, torch.full((33,), float("nan")), randn(20, 70), randn(70, 33), beta=0)
    by_library(1, torch.baddbmm, randn(3, 1, 20), randn(3, 10, 30), randn(3, 30, 20), beta=0.25)
    by_library(1, torch.baddbmm, randn(3, 10, 20), randn(3, 10, 30), randn(3, 30, 20))
    by_library(1, torch.bmm, randn(5, 20, 33).transpose(1, 2), randn(20, 5, 35).transpose(0, 1))
    by_library(1, torch.bmm, randn(1, 9, 20).expand(4, 9, 20), randn(4, 20, 8))
    by_library(1, lambda c, a, b: c.addmm_(a, b, beta=2), randn(20, 20), randn(20, 30), randn(30, 20))
    by_library(1, lambda c, a, b: c.addmm_(a, b), randn(20, 20).t(), randn(20, 30), randn(30, 20))
    by_library(1, torch.nn.functional.linear, randn(3, 5, 40), randn(66, 40), randn(66), gradient=False)
    by_library(1, torch.addmm, randn(20, 33, dtype=torch.complex64), randn(20, 7, dtype=torch.complex64), randn(7, 33, dtype=torch.complex64), beta=1j, alpha=2 - 1j)
    square = randn(40, 40).cuda()
    expected = square.cpu() @ square.cpu()
    assert torch.allclose(torch.mm(square, square, out=square).cpu(), expected, atol=1e-5)


def check_activations() -> None:
    """relu and gelu as epilogues, and by the kernels here; their gradients."""
    for library, count in (("default", 1), ("own", 0)):
        torch.backends.cuda.preferred_blas_library(library)
        for bias in (randn(33), randn(20, 33)):
            x, w = randn(20, 70) / 8, randn(70, 33)
            by_library(count, torch._addmm_activation, bias, x, w)
            calls()
            got = torch._addmm_activation(bias.cuda(), x.cuda(), w.cuda(), use_gelu=True)
            assert len(calls()) == count
            assert torch.allclose(got.cpu(), torch.nn.functional.gelu(torch.addmm(bias, x, w), approximate="tanh"), atol=1e-5)
    torch.backends.cuda.preferred_blas_library("default")
    agree(torch._addmm_activation, randn(5, requires_grad=True), randn(3, 7, requires_grad=True), randn(7, 5, requires_grad=True), beta=0.5, alpha=2)
    for device in ("cpu", "cuda"):
        b, x, w = (randn(*s, dtype=torch.float64, device=device, requires_grad=True) for s in ((5,), (3, 7), (7, 5)))
        got = torch.autograd.grad(torch._addmm_activation(b, x, w, use_gelu=True).sum(), (b, x, w))
        expected = torch.autograd.grad(torch.nn.functional.gelu(torch.addmm(b, x, w), approximate="tanh" if device == "cuda" else "none").sum(), (b, x, w))
        assert all(torch.allclose(g, e, atol=1e-12) for g, e in zip(got, expected))


def check_integers() -> None:
    """int8 summed in int32 by the library where it takes the sizes, in its orders, and here where it does not."""
    for (m, k, n), count in (((17, 64, 32), 1), ((17, 7, 5), 0)):
        a, b = torch.randint(-128, 128, (m, k)).to(torch.int8), torch.randint(-128, 128, (k, n)).to(torch.int8)
        for x in (a, a.t().contiguous().t()):
            for y in (b, b.t().contiguous().t()):
                by_library(count, torch._int_mm, x, y, exact=True)
    assert torch.equal(torch._int_mm(a, b), a.int() @ b.int())


def check_flags() -> None:
    """tf32, sums in half, reductions in half, the choice of the library."""
    a, b = randn(64, 64).cuda(), randn(64, 64).cuda()
    exact, fast = a @ b, None
    try:
        MATMUL.allow_tf32 = True
        calls()
        fast = a @ b
        assert " compute 77 " in calls()[0]
        assert torch.allclose(fast, exact, rtol=1e-2, atol=1e-2) and not torch.allclose(fast, exact, rtol=1e-5, atol=1e-5)
        torch.backends.cuda.preferred_blas_library("own")
        assert torch.allclose(a @ b, fast, atol=1e-4) and not calls()
        torch.set_float32_matmul_precision("highest")
        assert torch.allclose(a @ b, exact, atol=1e-5) and not calls()
        torch.backends.cuda.preferred_blas_library("cublaslt")
        MATMUL.allow_fp16_accumulation = True
        MATMUL.allow_bf16_reduced_precision_reduction = False
        agree(torch.addmm, randn(20, dtype=torch.float16), randn(16, 24, dtype=torch.float16), randn(24, 20, dtype=torch.float16), alpha=0.5)
        a.bfloat16() @ b.bfloat16()
        half, bfloat16 = calls()
        assert " compute 64 " in half and "reduction 7" in half and " compute 68 " in bfloat16 and "reduction 2" in bfloat16
    finally:
        MATMUL.allow_tf32 = MATMUL.allow_fp16_accumulation = False
        MATMUL.allow_bf16_reduced_precision_reduction = True
        torch.backends.cuda.preferred_blas_library("default")


def check_plans() -> None:
    """A shape is planned once; the library's scratch memory is within its limit, and without it the kernels here compute."""
    from tensorrt_lite._C.cuda import cublas

    assert cublas._version() == 130000
    a, b = randn(20, 70).cuda(), randn(70, 33).cuda()
    a @ b
    count = cublas._plan_count()
    for _ in range(3):
        assert torch.allclose((a @ b).cpu(), a.cpu() @ b.cpu(), atol=1e-5)
    assert cublas._plan_count() == count
    torch.backends.cuda.cublaslt_workspace_size(0)
    calls()
    assert torch.allclose((a @ b).cpu(), a.cpu() @ b.cpu(), atol=1e-5) and not calls()
    torch.backends.cuda.cublaslt_workspace_size(1 << 20)
    a @ b
    assert len(calls()) == 1
    raises(RuntimeError, "0 or more bytes", torch.backends.cuda.cublaslt_workspace_size, -1)


def check_streams_and_graphs() -> None:
    """Products run on the current stream, late as well, and are part of a graph."""
    os.environ["CUEMU_STREAMS"] = "late"
    try:
        a, b = randn(20, 70).cuda(), randn(70, 33).cuda()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            c = torch.addmm(b[0], a, b)
        torch.cuda.current_stream().wait_stream(side)
        assert torch.allclose(c.cpu(), torch.addmm(b[0].cpu(), a.cpu(), b.cpu()), atol=1e-5)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            c = a @ b
        a.copy_(randn(20, 70))
        graph.replay()
        assert torch.allclose(c.cpu(), a.cpu() @ b.cpu(), atol=1e-5)
    finally:
        os.environ["CUEMU_STREAMS"] = "eager"
