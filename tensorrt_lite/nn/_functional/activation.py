"""Activation functions: the choice between in-place and fresh, and the deprecated implicit softmax dimension."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def relu(input: Any, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return _ops.relu_(input) if inplace else _ops.relu(input)


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return _ops.hardtanh_(input, 0, 6) if inplace else _ops.hardtanh(input, 0, 6)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def selu(input: Any, inplace: bool = False) -> Tensor:
    """The self-normalising ELU (Klambauer et al. 2017, section 2)."""
    return _ops.selu_(input) if inplace else _ops.selu(input)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return _ops.celu_(input, alpha) if inplace else _ops.celu(input, alpha)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    return _ops.leaky_relu_(input, negative_slope) if inplace else _ops.leaky_relu(input, negative_slope)


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU whose slope is drawn from U(lower, upper) per element in training, its mean otherwise."""
    for bound, which in ((lower, "lower"), (upper, "upper")):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound}")
    if not lower <= upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    return (_ops.rrelu_ if inplace else _ops.rrelu)(input, lower, upper, True)


def rrelu_(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return _ops.threshold_(input, threshold, value) if inplace else _ops.threshold(input, threshold, value)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x clamped to [min_val, max_val]; ValueError when min_val > max_val."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _ops.hardtanh_(input, min_val, max_val) if inplace else _ops.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2 clamped to [0, 1]."""
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6."""
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Any, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return _ops.mish_(input) if inplace else _ops.mish(input)


def glu(input: Any, dim: int = -1) -> Tensor:
    """a * sigmoid(b) of the two halves of `input` along `dim`; RuntimeError on a scalar."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _ops.glu(input, dim)


def tanhshrink(input: Any) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Any) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input: Any) -> Tensor:
    """tanh(x).

    Parameters:
        input (Tensor): any shape, (*)

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.functional.tanh(trt.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """
    return input.tanh()


def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x)).

    Parameters:
        input (Tensor): any shape, (*)

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.functional.sigmoid(trt.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2689, 0.5000, 0.7311])
    """
    return input.sigmoid()


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return _ops.softmax(input, dim) if dtype is None else _ops.softmax(input, dim, dtype=dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _ops.softmax(-input, dim) if dtype is None else _ops.softmax(-input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """x - log(sum(exp(x))) along `dim`, in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return _ops.log_softmax(input, dim) if dtype is None else _ops.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al. 2017); `hard`: one-hot with the soft gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -trt.empty_like(logits, memory_format=trt.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = trt.zeros_like(logits, memory_format=trt.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
