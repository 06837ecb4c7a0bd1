"""Discrete Fourier transforms of one, two and all dimensions, of complex, real and Hermitian signals.

A signal is padded with zeros or cut to the lengths asked for. `norm`: "backward" (None; the inverse divides by the number n of elements transformed),
"forward" (the forward transform divides by n) or "ortho" (both divide by the root of n). Numbers of float32 and float64 and their complex types are
transformed; integers and bools as the default dtype. Half types raise RuntimeError, as on PyTorch's CPU. A wrong length, dimension or norm raises
RuntimeError or IndexError.

>>> import tensorrt_lite as trt
>>> trt.fft.rfft(trt.tensor([1.0, 0.0, 0.0])).real
tensor([1., 1.])
"""

# Every transform is of compiled `_fft_c2c`, `_fft_r2c` and `_fft_c2r` (cysrc/ops/fft/fft.yaml; Stockham's and Bluestein's algorithms).

from __future__ import annotations

from tensorrt_lite import _C
from tensorrt_lite._C.autograd.autocast import put_policies as _put_policies
from tensorrt_lite import _ops, _public
from tensorrt_lite._C.core.dtype import get_default_dtype as _default_dtype
from tensorrt_lite._C.ops.support import deliver_result, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorrt_lite import Tensor

    Sizes = int | Sequence[int] | None

__all__ = [
    "fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft", "ihfft", "hfft2", "ihfft2",
    "hfftn", "ihfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift",
]  # fmt: skip


def _mode(norm: str | None, forward: bool) -> int:
    """The operators' normalization: 0 none, 1 by the root of n, 2 by n."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _signal(x: Tensor, complex_only: bool) -> Tensor:
    """The tensor in a dtype that can be transformed."""
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(_default_dtype())
    if x.element_size() == 2:
        raise RuntimeError(f"Unsupported dtype {'BFloat16' if str(x.dtype).endswith('bfloat16') else 'Half'}")
    if complex_only and not x.is_complex():
        x = x.to(x.dtype.to_complex())
    return x


def _real_signal(name: str, x: Tensor) -> Tensor:
    if x.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype}")
    return _signal(x, False)


def _numbers(name: str, value: Sizes) -> list[int] | None:
    """A number or a sequence of numbers as a list."""
    if value is None or isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
        return None if value is None else list(value)
    if isinstance(value, int):
        return [value]
    raise TypeError(f"argument '{name}' must be tuple of ints, not {type(value).__name__}")


def _wrap(dim: int, ndim: int) -> int:
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def _resized(x: Tensor, dims: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Cut or padded with zeros at the end of each dimension."""
    for dim, length in zip(dims, lengths):
        size = x.size(dim)
        if length < size:
            x = x.narrow(dim, 0, length)
        elif length > size:
            shape = list(x.shape)
            shape[dim] = length - size
            x = _ops.cat([x, x.new_zeros(shape)], dim)
    return x


def _length(n: int | None, default: int) -> int:
    n = default if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _dims_and_lengths(x: Tensor, s: Sizes, dim: Sizes) -> tuple[list[int], list[int]]:
    """Dimensions, each once, and the lengths of the signal along them; -1 and None leave a length as it is."""
    dims = _numbers("dim", dim)
    if dims is not None:
        dims = [_wrap(d, x.dim()) for d in dims]
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
    lengths = _numbers("s", s)
    if lengths is not None:
        if dims is None:
            if len(lengths) > x.dim():
                raise RuntimeError(f"Got shape with {len(lengths)} values but input tensor only has {x.dim()} dimensions.")
            dims = list(range(x.dim() - len(lengths), x.dim()))
        elif len(lengths) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        lengths = [x.size(d) if n == -1 else n for d, n in zip(dims, lengths)]
    else:
        dims = list(range(x.dim())) if dims is None else dims
        lengths = [x.size(d) for d in dims]
    for n in lengths:
        _length(n, n)
    return dims, lengths


def _hermitian_dims(x: Tensor, s: Sizes, dim: Sizes) -> tuple[list[int], list[int]]:
    """As _dims_and_lengths for a half spectrum; the last length is the real signal's, 2 * (size - 1) where it is not given."""
    dims, lengths = _dims_and_lengths(x, s, dim)
    if not dims:
        raise RuntimeError("the transform of a Hermitian signal must transform at least one axis")
    if s is None or (_numbers("s", s) or [-1])[-1] == -1:
        lengths[-1] = _length(None, 2 * (x.size(dims[-1]) - 1))
    return dims, lengths


def _deliver(name: str, made: Tensor, out: Tensor | None, is_complex: bool = True) -> Tensor:
    if out is not None and (not out.is_complex() if is_complex else not out.is_floating_point()):
        kind = "complex" if is_complex else "floating point"
        raise RuntimeError(f"{name.removeprefix('fft_').replace('2', 'n')} expects a {kind} output tensor, but got {type_name(out.dtype)}")
    return deliver_result(name, made, out)


def _transform(name: str, x: Tensor, dims: list[int], lengths: list[int], norm: str | None, forward: bool, out: Tensor | None) -> Tensor:
    mode = _mode(norm, forward)
    x = _signal(_resized(x, dims, lengths), not dims)
    if x.is_complex():
        return _deliver(name, _ops._fft_c2c(x, dims, mode, forward), out)
    spectrum = _ops._fft_r2c(x, dims, mode, False)
    return _deliver(name, spectrum if forward else spectrum.conj_physical_(), out)


def _real_transform(name: str, x: Tensor, dims: list[int], lengths: list[int], norm: str | None, forward: bool, out: Tensor | None) -> Tensor:
    mode = _mode(norm, forward)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _resized(x, dims, lengths)
    if forward:
        return _deliver(name, _ops._fft_r2c(x, dims, mode, True), out)
    spectrum = _ops._fft_r2c(x, dims[-1:], mode, True).conj_physical_()
    return _deliver(name, _ops._fft_c2c(spectrum, dims[:-1], mode, False) if len(dims) > 1 else spectrum, out)


def _hermitian_transform(name: str, x: Tensor, dims: list[int], lengths: list[int], norm: str | None, forward: bool, out: Tensor | None) -> Tensor:
    mode = _mode(norm, forward)
    x = _signal(_resized(x, dims, [*lengths[:-1], lengths[-1] // 2 + 1]), True)
    if forward:
        x = _ops._fft_c2c(x, dims[:-1], mode, True).conj_physical_() if len(dims) > 1 else x.conj()
        return _deliver(name, _ops._fft_c2r(x, dims[-1:], mode, lengths[-1]), out, False)
    return _deliver(name, _ops._fft_c2r(x, dims, mode, lengths[-1]), out, False)


# ---- one dimension -------------------------------------------------------------------------------------------------


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The spectrum along dim: X[k] = sum over j of input[j] exp(-2 pi i j k / n). input: (*, m, *) -> complex (*, n, *)."""
    dim = _wrap(dim, input.dim())
    return _transform("fft_fft", input, [dim], [_length(n, input.size(dim))], norm, True, out)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fft. input: (*, m, *) -> complex (*, n, *)."""
    dim = _wrap(dim, input.dim())
    return _transform("fft_ifft", input, [dim], [_length(n, input.size(dim))], norm, False, out)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first n // 2 + 1 frequencies of a real signal; the others are their conjugates. input: real (*, m, *) -> complex (*, n // 2 + 1, *)."""
    dim = _wrap(dim, input.dim())
    return _real_transform("fft_rfft", _real_signal("rfft", input), [dim], [_length(n, input.size(dim))], norm, True, out)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfft: a real signal of n elements, 2 * (m - 1) where n is not given. input: (*, m, *) -> real (*, n, *)."""
    dim = _wrap(dim, input.dim())
    return _hermitian_transform("fft_irfft", input, [dim], [_length(n, 2 * (input.size(dim) - 1))], norm, False, out)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real spectrum of a Hermitian signal, given as its first half. input: (*, m, *) -> real (*, n, *), n = 2 * (m - 1) where not given."""
    dim = _wrap(dim, input.dim())
    return _hermitian_transform("fft_hfft", input, [dim], [_length(n, 2 * (input.size(dim) - 1))], norm, True, out)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of hfft: the first half of a Hermitian signal. input: real (*, m, *) -> complex (*, n // 2 + 1, *)."""
    dim = _wrap(dim, input.dim())
    return _real_transform("fft_ihfft", _real_signal("ihfft", input), [dim], [_length(n, input.size(dim))], norm, False, out)


# ---- several dimensions --------------------------------------------------------------------------------------------


def fftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fft over several dimensions: those of dim, else the last len(s), else all. s: lengths."""
    dims, lengths = _dims_and_lengths(input, s, dim)
    return _transform("fft_fftn", input, dims, lengths, norm, True, out)


def ifftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fftn."""
    dims, lengths = _dims_and_lengths(input, s, dim)
    return _transform("fft_ifftn", input, dims, lengths, norm, False, out)


def rfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fftn of a real signal; the last of the dimensions keeps its first n // 2 + 1 frequencies."""
    dims, lengths = _dims_and_lengths(input, s, dim)
    return _real_transform("fft_rfftn", _real_signal("rfftn", input), dims, lengths, norm, True, out)


def irfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfftn: a real signal, whose last length is 2 * (m - 1) where s does not tell it."""
    return _hermitian_transform("fft_irfftn", input, *_hermitian_dims(input, s, dim), norm, False, out)


def hfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real spectrum of a signal that is Hermitian in the last of the dimensions, given as its first half."""
    return _hermitian_transform("fft_hfftn", input, *_hermitian_dims(input, s, dim), norm, True, out)


def ihfftn(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of hfftn: the first half of a Hermitian signal."""
    dims, lengths = _dims_and_lengths(input, s, dim)
    return _real_transform("fft_ihfftn", _real_signal("ihfftn", input), dims, lengths, norm, False, out)


def fft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fftn over two dimensions, the last ones where dim is not given."""
    return fftn(input, s, dim, norm, out=out)


def ifft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """ifftn over two dimensions."""
    return ifftn(input, s, dim, norm, out=out)


def rfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """rfftn over two dimensions."""
    return rfftn(input, s, dim, norm, out=out)


def irfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """irfftn over two dimensions."""
    return irfftn(input, s, dim, norm, out=out)


def hfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """hfftn over two dimensions."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """ihfftn over two dimensions."""
    return ihfftn(input, s, dim, norm, out=out)


# ---- frequencies and their order -----------------------------------------------------------------------------------


def fftfreq(n: int, d: float = 1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Frequencies of fft's n results, in cycles per unit of the sample spacing d: 0, 1, ..., -2, -1 over n * d. -> (n,)"""
    result = _ops.arange(n, dtype=dtype or _default_dtype(), layout=layout, device=device, pin_memory=pin_memory)
    if n:
        result[(n + 1) // 2 :] -= n
    return _frequencies("fft_fftfreq", result, n * d, out, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Frequencies of rfft's n // 2 + 1 results. -> (n // 2 + 1,)"""
    result = _ops.arange(n // 2 + 1, dtype=dtype or _default_dtype(), layout=layout, device=device, pin_memory=pin_memory)
    return _frequencies("fft_rfftfreq", result, n * d, out, requires_grad)


def _frequencies(name: str, result: Tensor, span: float, out: Tensor | None, requires_grad: bool) -> Tensor:
    if not result.is_floating_point() and not result.is_complex():
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    result = deliver_result(name, result.mul_(1.0 / span if span else float("inf")), out, True)
    return result.requires_grad_() if requires_grad else result


def _shift(x: Tensor, dim: Sizes, inverse: bool) -> Tensor:
    dims = list(range(x.dim())) if dim is None else _numbers("dim", dim)
    if not dims:
        return x.clone()
    return x.roll([(x.size(d) + inverse) // 2 for d in dims], dims)


def fftshift(input: Tensor, dim: Sizes = None) -> Tensor:
    """The zero frequency moved to the middle of the given dimensions, all where none are given."""
    return _shift(input, dim, False)


def ifftshift(input: Tensor, dim: Sizes = None) -> Tensor:
    """The inverse of fftshift."""
    return _shift(input, dim, True)


def __dir__() -> list[str]:
    return sorted(__all__)


_put_policies(globals(), __all__, _C.AUTOCAST, ("fft_",))
_public.publish(globals(), __all__)
