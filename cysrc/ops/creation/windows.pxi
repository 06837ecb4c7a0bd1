# Window functions of signal processing, computed in double. Part of creation.pyx.
cdef double TURN = 6.283185307179586

cdef enum:
    COSINES = 0
    BARTLETT = 1
    KAISER = 2


cdef double bessel_i0(double x) noexcept:
    """The modified Bessel function of order 0 by its power series, scaled by exp(-|x|)."""
    cdef double scale = c_exp(-fabs(x)), term = 1, sum = 1, q = x * x / 4
    cdef int k = 1
    if fabs(x) > 600:
        # the leading terms of the asymptotic series suffice here: exp(x) itself overflows
        return (1 + 1 / (8 * fabs(x)) + 9 / (128 * x * x) + 225 / (3072 * fabs(x) * x * x) + 11025 / (98304 * x * x * x * x)) / (TURN * fabs(x)) ** 0.5
    while term > 1e-18 * sum:
        term *= q / (<double>k * k)
        sum += term
        k += 1
    return scale * sum


cdef object window(function, str op, object window_length, object periodic, int kind, double a, double b, double c, object dtype, object layout, object device, object pin_memory, object requires_grad):
    """a - b cos(x) + c cos(2 x), a triangle, or Kaiser's window of parameter a over `window_length` points."""
    cdef Dims d
    cdef Options o
    cdef TensorBase r, w
    cdef double* p
    cdef int64_t i, n, last
    cdef double x, top
    factory_options(&o, op, dtype, device, layout, pin_memory, default_float_code())
    d.n = 1
    n = d.v[0] = parse_int(window_length, op, "window_length")
    if category[o.dtype] != CAT_FLOAT:
        raise RuntimeError(f"{op} expects floating point dtypes, got: {dtype_text(o.dtype)}")
    if n < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={n}")
    r = factory_tensor(&d, &o)
    if n == 0 or o.device == DEV_META:
        return finish_factory(r, requires_grad)
    w = empty_tensor(1, d.v, F64, DEV_CPU)
    p = <double*>data_of(w)
    last = n if parse_bool(periodic, op, "periodic") else n - 1
    top = bessel_i0(a)
    for i in range(n):
        if n == 1:
            p[i] = 1
        elif kind == COSINES:
            x = TURN * <double>i / <double>last
            p[i] = a - b * c_cos(x) + c * c_cos(2 * x)
        elif kind == BARTLETT:
            p[i] = 2.0 * i / last if 2 * i <= last else 2 - 2.0 * i / last
        else:
            x = 2.0 * i / last - 1
            x = a * (max(1 - x * x, 0.0)) ** 0.5
            # both values are scaled by exp(-argument)
            p[i] = bessel_i0(x) / top * c_exp(fabs(x) - fabs(a))
    copy_elements(r, w)
    return finish_factory(r, requires_grad)


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """sin^2(pi n / N) over window_length points; periodic: N = window_length, symmetric: window_length - 1."""
    return window(hann_window, "hann_window", window_length, periodic, COSINES, 0.5, 0.5, 0, dtype, layout, device, pin_memory, requires_grad)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """alpha - beta cos(2 pi n / N) over window_length points."""
    return window(hamming_window, "hamming_window", window_length, periodic, COSINES, parse_double(alpha, "hamming_window", "alpha"), parse_double(beta, "hamming_window", "beta"), 0,
                  dtype, layout, device, pin_memory, requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N) over window_length points."""
    return window(blackman_window, "blackman_window", window_length, periodic, COSINES, 0.42, 0.5, 0.08, dtype, layout, device, pin_memory, requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A triangle over window_length points."""
    return window(bartlett_window, "bartlett_window", window_length, periodic, BARTLETT, 0, 0, 0, dtype, layout, device, pin_memory, requires_grad)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Kaiser's window of shape parameter beta over window_length points."""
    return window(kaiser_window, "kaiser_window", window_length, periodic, KAISER, parse_double(beta, "kaiser_window", "beta"), 0, 0, dtype, layout, device, pin_memory, requires_grad)
