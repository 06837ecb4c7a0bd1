"""Fourier transforms on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree
from tensorrt_lite._C.cuda import fft as _fft

# powers, products of the passes' primes, primes within and beyond them
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31, 32, 34, 37, 60, 97, 121, 128, 210, 256, 391, 1009)


def check_lengths() -> None:
    """Every kind of length, contiguous lines and columns, complex and real, both directions."""
    for n in LENGTHS:
        for shape, dim in ((n,), 0), ((3, n), 1), ((n, 11), 0):
            z = torch.randn(*shape, dtype=torch.complex128)
            agree(torch.fft.fft, z, dim=dim)
            agree(torch.fft.ifft, z, dim=dim, norm="ortho")
            agree(torch.fft.rfft, z.real, dim=dim)
            agree(torch.fft.fft, z.real, dim=dim)
            agree(torch.fft.ihfft, z.real, dim=dim)
            agree(torch.fft.irfft, z, n, dim=dim)
            agree(torch.fft.hfft, z, n, dim=dim)


def check_single(order: str) -> None:
    """float32, lines that fill a block several times."""
    for shape in ((70, 8), (5, 600), (2, 30, 9)):
        z = torch.randn(*shape, dtype=torch.complex64)
        agree(torch.fft.fft, z)
        agree(torch.fft.irfft, z)
        agree(torch.fft.fftn, z)


def check_long() -> None:
    """Lines in passes through device memory: two passes, three, a convolution; of doubles, of columns, of more lines than the scratch memory holds."""
    for n, dtype in ((4096, torch.complex64), (3000, torch.complex128), (50000, torch.complex128), (2003, torch.complex64), (1999, torch.complex128)):
        z = torch.randn(2, n, dtype=dtype) / n**0.5
        agree(torch.fft.fft, z)
        agree(torch.fft.ifft, z, norm="forward")
        agree(torch.fft.rfft, z.real)
        agree(torch.fft.irfft, z[:, : n // 2 + 1], n, norm="ortho")
    z = torch.randn(4000, 3, dtype=torch.complex128)
    agree(torch.fft.fft, z, dim=0)
    before = _fft._limit_scratch(2 * 16 * 4000)
    agree(torch.fft.fft, z.real, dim=0)
    agree(torch.fft.fft, torch.randn(3, 1999, dtype=torch.complex128))
    _fft._limit_scratch(before)


def check_dimensions_and_gradients() -> None:
    """Several dimensions, cut and padded signals, gradients and second ones through the same kernels."""
    x = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    z = torch.randn(4, 5, 6, dtype=torch.complex128, requires_grad=True)
    agree(torch.fft.rfftn, x)
    agree(torch.fft.rfft2, x, (7, 3))
    agree(torch.fft.fftn, z, dim=(0, 2), norm="ortho")
    agree(torch.fft.irfftn, z, (5, 8), (0, 1))
    agree(torch.fft.hfft, z, 9, dim=1)
    agree(torch.fft.fft, z.transpose(0, 2), dim=1)
    signal, window = torch.randn(2, 400, dtype=torch.float64, requires_grad=True), torch.hann_window(64, dtype=torch.float64)
    agree(lambda s, w: torch.stft(s, 64, 16, window=w, return_complex=True), signal, window)
    spectrum = torch.stft(signal.detach(), 64, 16, window=window, return_complex=True).requires_grad_()
    agree(lambda s, w: torch.istft(s, 64, 16, window=w), spectrum, window)


def check_special_values() -> None:
    """A NaN stays in its line; a Hermitian half's meaningless parts are ignored; one tensor after another finds kept tables."""
    x = torch.randn(9, 24).cuda()
    clean = torch.fft.rfft(x)
    x[4, 3] = float("nan")
    dirty = torch.fft.rfft(x)
    others = [i for i in range(9) if i != 4]
    assert torch.equal(dirty[others], clean[others]) and dirty[4].isnan().all()
    z = torch.randn(3, 9, dtype=torch.complex64).cuda()
    changed = z.clone()
    changed[:, 0] += 5j
    changed[:, -1] += 7j
    assert torch.equal(torch.fft.irfft(changed, 16), torch.fft.irfft(z, 16))
