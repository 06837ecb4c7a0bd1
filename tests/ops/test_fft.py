"""Fourier transforms beside NumPy's in double precision: lengths of every kind, strides, threads; PyTorch's database does the rest."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt

# every length to 40, powers, products of the passes' primes, primes within and beyond them, products with those, lengths that split
LENGTHS = [*range(1, 41), 49, 61, 62, 64, 96, 97, 121, 125, 127, 128, 210, 243, 256, 289, 391, 512, 529, 961, 1009, 1024, 2018, 3000, 4096, 8192, 10007]
LIMIT = {"float32": 3e-7, "float64": 2e-15}  # relative error of a vector


def error(made: trt.Tensor, expected: np.ndarray) -> float:
    assert tuple(made.shape) == expected.shape
    difference = np.linalg.norm(made.numpy() - expected)
    return float(difference / (np.linalg.norm(expected) or 1.0))


@pytest.fixture(scope="module")
def draw():
    return np.random.default_rng(0).standard_normal


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lines", [(), (3,), (37,)], ids=str)
@pytest.mark.parametrize("across", [False, True], ids=["along", "across"])
def test_every_length(draw, dtype, lines, across):
    """One line, fewer lines than lanes, more; contiguous lines and the columns of a matrix."""
    limit = LIMIT[dtype]
    for n in LENGTHS:
        if n * (lines or (1,))[0] > 70000 or (across and not lines):
            continue
        shape, axis = ((n, *lines), 0) if across else ((*lines, n), -1)
        real = trt.from_numpy(draw(shape).astype(dtype))
        z = trt.complex(real, real.flip(axis))
        exact, exact_real = z.numpy().astype(complex), real.numpy().astype(float)
        spectrum = np.fft.fft(exact, axis=axis)
        assert error(trt.fft.fft(z, dim=axis), spectrum) < limit, n
        assert error(trt.fft.ifft(z, dim=axis, norm="forward"), np.fft.ifft(exact, axis=axis, norm="forward")) < limit, n
        assert error(trt.fft.fft(real, dim=axis), np.fft.fft(exact_real, axis=axis)) < limit, n
        half = np.fft.rfft(exact_real, axis=axis)
        assert error(trt.fft.rfft(real, dim=axis), half) < limit, n
        assert error(trt.fft.ihfft(real, dim=axis, norm="forward"), half.conj()) < limit, n
        given = trt.from_numpy(half.astype("complex64" if dtype == "float32" else "complex128"))
        assert error(trt.fft.irfft(given, n, dim=axis), exact_real) < 2 * limit, n
        assert error(trt.fft.hfft(given, n, dim=axis), np.fft.hfft(half, n, axis=axis)) < 2 * limit, n


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("across", [False, True], ids=["along", "across"])
def test_many_short_lines(draw, dtype, across):
    """More groups of lines than run side by side, and arrays large enough that the next ones are fetched."""
    axis = 0 if across else -1
    for lines, n in (*((531, n) for n in range(1, 34)), (20003, 15), (140001, 2), (9001, 30), (20003, 13), (3001, 62), (5001, 49), (2003, 128), (701, 256)):
        real = trt.from_numpy(draw((n, lines) if across else (lines, n)).astype(dtype))
        z = trt.complex(real, real.flip(0))
        assert error(trt.fft.fft(z, dim=axis), np.fft.fft(z.numpy().astype(complex), axis=axis)) < LIMIT[dtype], (lines, n)
        spectrum = trt.fft.rfft(real, dim=axis)
        assert error(spectrum, np.fft.rfft(real.numpy().astype(float), axis=axis)) < LIMIT[dtype], (lines, n)
        assert error(trt.fft.irfft(spectrum, n, dim=axis), real.numpy()) < 2 * LIMIT[dtype], (lines, n)


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="NumPy 1 transforms in double alone")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_error_beside_numpy(draw, dtype):
    """At most twice NumPy's in the same precision: its factor of norm="forward" is of the input's type, without one it computes float32 in double."""
    single = dtype == "float32"
    wider = {"float32": np.float64, "float64": np.longdouble}[dtype]
    for n in (8, 30, 64, 105, 127, 243, 256, 1000, 1009, 1024, 2401, 3000, 4096, 10007, 65536):
        x = draw((max(1, 4000 // n), n)).astype(dtype)
        z = (x + 1j * x[:, ::-1]).astype("complex64" if single else "complex128")
        for name, given in (("fft", z), ("ifft", z), ("rfft", x), ("irfft", np.fft.rfft(x).astype(z.dtype))):
            more = (n,) if name == "irfft" else ()
            exact = getattr(np.fft, name)(given.astype(np.result_type(wider, given.dtype)), *more, norm="forward")
            theirs = getattr(np.fft, name)(given, *more, norm="forward" if name[0] != "i" else "ortho")
            if name[0] == "i":
                theirs = theirs * np.sqrt(n).astype(dtype)
            mine = getattr(trt.fft, name)(trt.from_numpy(given), *more, norm="forward").numpy()
            scale = np.linalg.norm(exact.astype(complex))
            own, other = (float(np.linalg.norm((made - exact).astype(complex)) / scale) for made in (mine, theirs))
            assert own < 2 * other + np.finfo(dtype).eps / 8, (name, n, own, other)


def test_any_strides_and_dimensions(draw):
    x = trt.from_numpy(draw((4, 6, 5, 10)))[:, ::2, :, 1::3].transpose(0, 3)
    expected = x.numpy()
    for dims in ((0,), (1, 2), (3, 0, 1), (0, 1, 2, 3)):
        assert error(trt.fft.fftn(x, dim=dims), np.fft.fftn(expected, axes=dims)) < 1e-15
        assert error(trt.fft.rfftn(x, dim=dims), np.fft.rfftn(expected, axes=dims)) < 1e-15
        lengths = [expected.shape[d] for d in dims]
        assert error(trt.fft.irfftn(trt.fft.rfftn(x, dim=dims), lengths, dims), expected) < 1e-15
    assert trt.fft.fft2(x.to("meta")).shape == trt.fft.fft2(x).shape


def test_a_line_does_not_depend_on_its_neighbours(draw):
    """Lines share vectors, never arithmetic: what is not finite in one stays there, and bits are those of the line in any batch of its kind."""
    for n in (12, 64, 1009):
        x = trt.from_numpy(draw((33, n)))
        clean = trt.fft.rfft(x)
        x[7, 3] = float("nan")
        x[8, 2] = float("inf")
        others = [i for i in range(33) if i not in (7, 8)]
        assert trt.equal(trt.fft.rfft(x)[others], clean[others])
        assert trt.fft.rfft(x)[7].isnan().all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_line_does_not_depend_on_its_neighbours(draw, dtype):
    """Lines that share a vector, a transposition or a group: any order of the lines gives their bits, in groups that are full and in the last one."""
    for n in (2, 7, 8, 10, 12, 15, 16, 32, 60, 64, 128, 256, 512, 1024):
        x = trt.from_numpy((draw((37, n)) + 1j * draw((37, n))).astype(dtype))
        order = trt.from_numpy(np.random.default_rng(n).permutation(37))
        for transform in (trt.fft.fft, trt.fft.ifft):
            clean = transform(x)
            assert trt.equal(transform(x[order]), clean[order]), n
            spoiled = x.clone()
            spoiled[11, 1] = float("nan")
            assert trt.equal(transform(spoiled)[12:], clean[12:]) and trt.equal(transform(spoiled)[:11], clean[:11]), n
            spoiled[11:13] = x[11:13]
            out = spoiled[1:36]
            assert trt.equal(transform(out, out=out), transform(x[1:36])), n


def test_results_do_not_depend_on_threads(draw):
    before = trt.get_num_threads()
    try:
        for shape in ((64, 1000), (100, 17, 96), (8, 10007)):
            x = trt.from_numpy(draw(shape).astype("float32"))
            made = []
            for threads in (1, 2, 5):
                trt.set_num_threads(threads)
                made.append(trt.fft.fftn(x, dim=(0, -1)))
            assert trt.equal(made[0], made[1]) and trt.equal(made[0], made[2])
    finally:
        trt.set_num_threads(before)


def test_imaginary_parts_that_a_hermitian_signal_cannot_have_are_ignored(draw):
    for n in (8, 9, 128, 129):
        x = trt.fft.rfft(trt.from_numpy(draw((3, n))))
        changed = x.clone()
        changed[:, 0] += 5j
        if n % 2 == 0:
            changed[:, -1] -= 3j
        assert trt.equal(trt.fft.irfft(changed, n), trt.fft.irfft(x, n))


def test_many_lengths_evict_plans(draw):
    for _ in range(2):
        for n in range(40, 140):
            x = draw(n)
            assert error(trt.fft.fft(trt.from_numpy(x)), np.fft.fft(x)) < 2e-15


def test_gradients():
    x = trt.randn(3, 6, 5, dtype=trt.complex128, requires_grad=True)
    real = trt.randn(3, 6, 5, dtype=trt.float64, requires_grad=True)
    for f, t in (
        (lambda t: trt.fft.fft(t, norm="ortho"), x),
        (lambda t: trt.fft.ifftn(t, dim=(1, 0)), x),
        (lambda t: trt.fft.irfft2(t, (4, 7)), x),
        (lambda t: trt.fft.hfft(t, 8), x),
        (lambda t: trt.fft.rfft(t, 8, dim=1), real),
        (lambda t: trt.fft.ihfftn(t), real),
        (lambda t: trt.fft.fft(t), real),
    ):
        assert trt.autograd.gradcheck(f, t, check_forward_ad=True)
        assert trt.autograd.gradgradcheck(f, t)


def test_errors_name_what_is_wrong():
    x = trt.zeros(3, 4)
    for call, kind, text in (
        (lambda: trt.fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\)"),
        (lambda: trt.fft.fft(x, dim=2), IndexError, "Dimension out of range"),
        (lambda: trt.fft.fft(x, norm="other"), RuntimeError, 'Invalid normalization mode: "other"'),
        (lambda: trt.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda: trt.fft.fftn(x, (1, 2), (0,)), RuntimeError, "same length"),
        (lambda: trt.fft.rfft(x + 0j), RuntimeError, "real input tensor"),
        (lambda: trt.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda: trt.fft.fft2(x, out=trt.empty(3, 4)), RuntimeError, "fftn expects a complex output tensor, but got Float"),
        (lambda: trt.fft.irfft(x, out=trt.empty(3, 6) + 0j), RuntimeError, "irfft expects a floating point output tensor, but got ComplexFloat"),
        (lambda: trt._ops._fft_c2r(x + 0j, (1,), 0, 20), RuntimeError, "expected 11 frequencies"),
        (lambda: trt._ops._fft_c2c(x, (1,), 0, True), RuntimeError, "complex tensor"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_a_signal_comes_back_from_its_frames():
    x = trt.randn(2, 400, dtype=trt.float64)
    for n_fft, hop, length, normalized, onesided in ((64, 16, 64, False, True), (50, 10, 40, True, False)):
        window = trt.hann_window(length, dtype=trt.float64)
        frames = trt.stft(x, n_fft, hop, length, window, normalized=normalized, onesided=onesided, return_complex=True)
        back = trt.istft(frames, n_fft, hop, length, window, normalized=normalized, onesided=onesided, length=400)
        trt.testing.assert_close(back, x)
    with pytest.raises(RuntimeError, match="no frame covers"):
        trt.istft(frames, n_fft, hop, length, trt.zeros(length, dtype=trt.float64), onesided=False)
    with pytest.raises(RuntimeError, match="return_complex parameter"):
        trt.stft(x, 64)
