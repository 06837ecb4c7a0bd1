"""Products by whatever library there is and by the kernels here, beside the CPU: on hardware with nvidia-cublas this is cuBLASLt itself."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

flags = trt.backends.cuda
TOLERANCE = {trt.float64: 1e-12, trt.float32: 1e-5, trt.complex64: 1e-5, trt.float16: 4e-3, trt.bfloat16: 3e-2}


@pytest.fixture(params=["default", "own"])
def library(request):
    flags.preferred_blas_library(request.param)
    yield request.param
    flags.preferred_blas_library("default")


def close(result: trt.Tensor, expected: trt.Tensor, tolerance: float) -> bool:
    return (result.cpu() - expected).abs().max().item() <= tolerance * expected.abs().max().item()


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_products(library, dtype):
    trt.manual_seed(0)
    a, b, c = (trt.randn(s).to(dtype) for s in ((3, 33, 40), (3, 40, 24), (24,)))
    tolerance = TOLERANCE[dtype]
    for x in (a, a.transpose(1, 2).contiguous().transpose(1, 2)):
        for y in (b, b.transpose(1, 2).contiguous().transpose(1, 2)):
            u, v = x.cuda(), y.cuda()
            assert close(u @ v, x @ y, tolerance)
            assert close(u[1] @ v[1], x[1] @ y[1], tolerance)
            assert close(trt.addmm(c.cuda(), u[0], v[2], beta=1, alpha=0.5), trt.addmm(c, x[0], y[2], alpha=0.5), tolerance)
    assert close(trt.nn.functional.linear(a.cuda(), b[0].t().cuda(), c.cuda()), trt.nn.functional.linear(a, b[0].t(), c), tolerance)
    assert close(trt.baddbmm(a.cuda()[:, :, :24], a.cuda(), b.cuda(), beta=2), trt.baddbmm(a[:, :, :24], a, b, beta=2), tolerance)


def test_activations_and_integers(library):
    c, x, w = trt.randn(24), trt.randn(33, 40), trt.randn(40, 24)
    assert close(trt._addmm_activation(c.cuda(), x.cuda(), w.cuda()), trt._addmm_activation(c, x, w), 1e-5)
    expected = trt.nn.functional.gelu(trt.addmm(c, x, w), approximate="tanh")
    assert close(trt._addmm_activation(c.cuda(), x.cuda(), w.cuda(), use_gelu=True), expected, 1e-4)
    a, b = trt.randint(-128, 128, (32, 64)).to(trt.int8), trt.randint(-128, 128, (64, 48)).to(trt.int8)
    assert trt.equal(trt._int_mm(a.cuda(), b.cuda()).cpu(), trt._int_mm(a, b))


def test_tf32(library):
    a, b = trt.randn(128, 96), trt.randn(96, 64)
    exact = (a.double() @ b.double()).float()
    assert close(a.cuda() @ b.cuda(), exact, 1e-6)
    try:
        flags.matmul.allow_tf32 = True
        assert close(a.cuda() @ b.cuda(), exact, 2e-3)
        assert not trt.cuda.is_tf32_supported() or not close(a.cuda() @ b.cuda(), exact, 1e-6)
    finally:
        flags.matmul.allow_tf32 = False
