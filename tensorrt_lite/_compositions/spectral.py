"""Short-time Fourier transforms, composed of framing, windows and the transforms of `tensorrt_lite.fft`.

`EXPORTS` names what `_ops` collects: f function of the package, m method of Tensor.
"""

from __future__ import annotations

import warnings

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_functional = _LazyModule("tensorrt_lite.nn.functional")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorrt_lite import Tensor

_ops = namespace()


def _pad_window(window: Tensor, n_fft: int) -> Tensor:
    """The window in the middle of n_fft elements, zeros on both sides."""
    left = (n_fft - window.size(0)) // 2
    return _ops.constant_pad_nd(window, (left, n_fft - window.size(0) - left)) if window.size(0) < n_fft else window


def _warn_without_window(name: str, window: Tensor | None, advice: str) -> None:
    if window is None:
        warnings.warn(f"{name}: A window was not provided. A rectangular window will be applied, {advice}", UserWarning, stacklevel=3)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of overlapping frames of n_fft elements, hop_length (n_fft // 4) apart, each multiplied by the window.

    input: (L,) or (B, L), real or complex -> (B, F, T): F = n_fft // 2 + 1 frequencies of a real signal unless onesided is False, else n_fft; T frames. window: (win_length,), placed in the
    middle of a frame; center: frame t is centred at t * hop_length, the ends padded by pad_mode. normalized: divided by the root of n_fft. return_complex=False (deprecated): a last
    dimension of real and imaginary parts. RuntimeError for lengths that do not fit.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    complex_frames = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_frames:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    elif not return_complex:
        if window is not None and window.is_complex():
            raise RuntimeError("Complex windows are incompatible with return_complex=False")

        warnings.warn("stft with return_complex=False is deprecated; view_as_real of the complex result has its format", UserWarning, stacklevel=2)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    _warn_without_window("stft", window, "which is known to cause spectral leakage. Pass another one, such as hann_window(n_fft), or ones(n_fft).")

    def refuse(text: str) -> RuntimeError:
        return RuntimeError(f"stft({input.dtype}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={length}): {text}")

    if not input.is_floating_point() and not input.is_complex():
        raise refuse("expected a tensor of floating point or complex values")
    if not 1 <= input.dim() <= 2:
        raise refuse("expected a 1D or 2D tensor")
    signal = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        signal = _functional.pad(signal.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    total = signal.size(1)
    if not 0 < n_fft <= total:
        raise refuse(f"expected 0 < n_fft <= {total}, but got n_fft={n_fft}")
    if hop <= 0:
        raise refuse(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise refuse(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and tuple(window.shape) != (length,):
        raise refuse(f"expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.shape)}")
    if onesided and complex_frames:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not center and align_to_window:
        left = (n_fft - length) // 2
        signal = _ops.constant_pad_nd(signal, (left, left))
    if window is None and length < n_fft:
        window = signal.new_ones(length)
    frames = signal.unfold(1, n_fft, hop)
    if window is not None:
        frames = frames * _pad_window(window, n_fft)
    mode = 1 if normalized else 0
    if frames.is_complex():
        spectrum = _ops._fft_c2c(frames, (2,), mode, True)
    else:
        spectrum = _ops._fft_r2c(frames, (2,), mode, onesided is None or onesided)
    spectrum = spectrum.transpose(1, 2)
    if input.dim() == 1:
        spectrum = spectrum.squeeze(0)
    return spectrum if return_complex else _ops.view_as_real(spectrum)


def _overlap_add(frames: Tensor, hop: int) -> Tensor:
    """Frames (B, T, N), each hop elements after the one before, added up. -> (B, (T - 1) * hop + N)"""
    if frames.is_complex():
        return _ops.complex(_overlap_add(_ops.real(frames), hop), _overlap_add(_ops.imag(frames), hop))
    count, size = frames.size(1), frames.size(2)
    return _ops.col2im(frames.transpose(1, 2), (1, (count - 1) * hop + size), (1, size), (1, 1), (0, 0), (1, hop)).flatten(1)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft is nearest to input in the least-squares sense (Griffin and Lim, 1984).

    input: complex (F, T) or (B, F, T) as stft gives it with the same arguments -> (L,) or (B, L), cut or padded to `length` where given. RuntimeError for shapes that do
    not fit, and for windows whose squares leave elements that no frame covers.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length

    def refuse(text: str) -> RuntimeError:
        return RuntimeError(f"istft({input.dtype}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={size}): {text}")

    _warn_without_window("istft", window, "pass the window that stft used to get its input back.")
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input.numel() == 0:
        raise refuse("input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        raise refuse(f"expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    if onesided and (return_complex or (window is not None and window.is_complex())):
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    spectrum = input if input.dim() == 3 else input.unsqueeze(0)
    half = n_fft // 2 + 1
    if onesided is None:
        onesided = spectrum.size(1) != n_fft
    if onesided and spectrum.size(1) != half:
        raise refuse(f"expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but got {spectrum.size(1)}")
    if not onesided and spectrum.size(1) != n_fft:
        raise refuse(f"expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got {spectrum.size(1)}")
    if not 0 < hop <= size:
        raise refuse("expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise refuse("expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (size,):
        raise refuse("Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise RuntimeError("cannot have onesided input if a complex signal is to be returned")
    if window is not None and window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    real = _ops.real(spectrum[:0])
    window = _pad_window(real.new_ones(size) if window is None else window, n_fft)
    mode = 1 if normalized else 2
    frames = spectrum.transpose(1, 2)
    if return_complex:
        frames = _ops._fft_c2c(frames, (2,), mode, False)
    else:
        frames = _ops._fft_c2r(frames if onesided else frames.narrow(2, 0, half), (2,), mode, n_fft)
    count = frames.size(1)
    signal = _overlap_add(frames * window, hop)
    covered = _overlap_add((window * window).expand(1, count, n_fft), hop)
    start = n_fft // 2 if center else 0
    whole = signal.size(1)
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    signal, covered = signal[:, start:end], covered[:, start:end]
    if covered.numel() and not bool(covered.abs().min() > 1e-11):
        raise refuse("window overlap add min: the window leaves elements that no frame covers")
    signal = signal / covered
    if end > whole:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail.", UserWarning, stacklevel=2)
        signal = _ops.constant_pad_nd(signal, (0, end - max(whole, start)))
    return signal if input.dim() == 3 else signal.squeeze(0)


EXPORTS = {"stft": "fm", "istft": "fm"}
