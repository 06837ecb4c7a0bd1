"""Initialisation of parameters, in place and without recording gradients.

Every function draws from the generator exactly as PyTorch does, so that a seeded model starts from PyTorch's weights.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite import _public
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The recommended gain of a nonlinearity; `param` is the slope of leaky_relu. ValueError for an unknown name.

    Parameters:
        nonlinearity (str): the name of the function behind the layer, such as "relu"
        param (number or None, default None): the slope of leaky_relu

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.calculate_gain("relu")
        1.4142135623730951
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Draws from U(a, b).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        a (float, default 0.0): the lower bound
        b (float, default 1.0): the upper bound
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.uniform_(trt.empty(3))
        tensor([0.4963, 0.7682, 0.0885])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Draws from N(mean, std ** 2).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        mean (float, default 0.0): the mean
        std (float, default 1.0): the standard deviation
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.normal_(trt.empty(3), std=0.1)
        tensor([ 0.1541, -0.0293, -0.2179])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Draws from N(mean, std ** 2) conditioned on [a, b], by rejection: of normal draws where [a, b] holds more than
    0.3 of the distribution, of uniform draws where it holds less.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        mean (float, default 0.0): the mean
        std (float, default 1.0): the standard deviation
        a (float, default -2.0): the lower bound
        b (float, default 2.0): the upper bound
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.trunc_normal_(trt.empty(100)).abs().max() <= 2
        tensor(True)
    """

    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor
    with no_grad():
        if cdf((b - mean) / std) - cdf((a - mean) / std) > 0.3:
            return _reject_normal(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


def _reject_normal(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    """Redraws whole tensors from N(mean, std ** 2) and keeps what falls inside [a, b] where nothing has yet."""
    # The bounds as the tensor's dtype holds them, so that a value equal to a rounded bound is inside.
    low, high = (trt.tensor(bound, dtype=tensor.dtype).item() for bound in (a, b))
    tensor.normal_(mean, std, generator=generator)
    while bool((outside := (tensor < low) | (tensor > high)).any()):
        redraw = trt.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(trt.where(outside, redraw, tensor))
    return tensor


def _reject_uniform(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    """Draws from U(a, b) and accepts each value with its density relative to the highest in [a, b]."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    uniform = trt.empty_like(tensor)

    def rejected(values: Any) -> Any:
        log_density = values.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        return uniform.uniform_(generator=generator).log_() > log_density

    tensor.uniform_(a, b, generator=generator)
    pending = rejected(tensor)
    while bool(pending.any()):
        redraw = trt.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(trt.where(pending, redraw, tensor))
        pending = pending & rejected(redraw)
    return tensor


def constant_(tensor: Any, val: float) -> Any:
    """Fills with `val`.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        val (float): the number

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.constant_(trt.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fills with one.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.ones_(trt.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fills with zero.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.zeros_(trt.empty(2))
        tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> Any:
    """Makes a 2-D tensor the identity; ValueError otherwise.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.eye_(trt.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Makes a convolution weight (3 to 5 dimensions) pass its input channels through unchanged.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        groups (int, default 1): how many groups the output channels are split into

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.init.dirac_(trt.empty(2, 2, 3))[0]
        tensor([[0., 1., 0.],
                [0., 0., 0.]])
    """
    ndim = tensor.ndimension()
    if ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = 1
    for size in shape[2:]:
        receptive_field *= size
    return shape[1] * receptive_field, shape[0] * receptive_field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draws from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        gain (float, default 1.0): the factor of the standard deviation
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.xavier_uniform_(trt.empty(2, 3))
        tensor([[-0.0082,  0.5876, -0.9016],
                [-0.8062, -0.4219,  0.2938]])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draws from N(0, gain ** 2 * 2 / (fan_in + fan_out)) (Glorot and Bengio 2010).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        gain (float, default 1.0): the factor of the standard deviation
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.xavier_normal_(trt.empty(2, 3))
        tensor([[ 0.9746, -0.1856, -1.3780],
                [ 0.3595, -0.6859, -0.8845]])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _warn_if_empty(tensor: Any) -> bool:
    if 0 not in tensor.shape:
        return False

    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Draws from U(-b, b), b = gain * sqrt(3 / fan) (He et al. 2015).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        a (float, default 0): the slope of leaky_relu
        mode (str, default 'fan_in'): 'fan_in' keeps the variance forward, 'fan_out' backward
        nonlinearity (str, default 'leaky_relu'): the name of the function behind the layer, such as "relu"
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.kaiming_uniform_(trt.empty(2, 3), nonlinearity="relu")
        tensor([[-0.0106,  0.7586, -1.1640],
                [-1.0408, -0.5447,  0.3792]])
    """
    if _warn_if_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Draws from N(0, gain ** 2 / fan) (He et al. 2015).

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        a (float, default 0): the slope of leaky_relu
        mode (str, default 'fan_in'): 'fan_in' keeps the variance forward, 'fan_out' backward
        nonlinearity (str, default 'leaky_relu'): the name of the function behind the layer, such as "relu"
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.nn.init.kaiming_normal_(trt.empty(2, 3), nonlinearity="relu")
        tensor([[ 1.2582, -0.2396, -1.7790],
                [ 0.4641, -0.8855, -1.1419]])
    """
    if _warn_if_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fills with a random (semi-)orthogonal matrix (Saxe et al. 2013), trailing dimensions flattened.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        gain (float, default 1): the factor of the matrix
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> w = trt.nn.init.orthogonal_(trt.empty(2, 3))
        >>> trt.allclose(w @ w.t(), trt.eye(2), atol=1e-6)
        True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    q, r = linalg.qr(flat)
    # A uniform distribution needs the signs of R's diagonal (Mezzadri 2006, section 4).
    q *= r.diag(0).sign()
    if rows < cols:
        q.t_()
    with no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Draws a 2-D tensor from N(0, std ** 2), then zeroes the fraction `sparsity` of each column.

    Parameters:
        tensor (Tensor): the tensor, which is overwritten
        sparsity (float): which part of each column becomes zero
        std (float, default 0.01): the standard deviation of the others
        generator (Generator or None, default None): the source of random numbers; None is the default one

    Example:
        >>> import tensorrt_lite as trt
        >>> (trt.nn.init.sparse_(trt.empty(4, 2), sparsity=0.5) == 0).sum(0)
        tensor([2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[trt.randperm(rows)[:zeros], col] = 0
    return tensor


def _deprecated(function: Any) -> Any:
    """The name without underscore that PyTorch keeps for old programs, with its warning."""
    old, new = function.__name__[:-1], function.__name__

    def deprecated_init(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    deprecated_init.__name__ = old
    deprecated_init.__doc__ = f"Deprecated name of {new}."
    return deprecated_init


_public.publish(globals(), ("uniform_", "normal_", "constant_", "kaiming_uniform_"), by_name=True)  # the others ask by what they call

uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


def __dir__() -> list[str]:
    return _listing.public(globals())
