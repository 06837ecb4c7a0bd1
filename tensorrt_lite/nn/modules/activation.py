"""Activation layers and multi-head attention."""

from __future__ import annotations

import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

from .. import functional as F
from ..init import constant_, xavier_normal_, xavier_uniform_
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from ._typed import TensorModule
from .module import Module


class _Inplace(TensorModule):
    """An activation whose only argument is whether to overwrite its input."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(0, x).

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([-1.0, 0.0, 2.0])
    >>> trt.nn.ReLU()(x)
    tensor([0., 0., 2.])
    >>> trt.nn.ReLU(inplace=True)(x) is x, x.tolist()
    (True, [0.0, 0.0, 2.0])
    """

    def forward(self, input: Any) -> Any:
        return _ops.relu_(input) if self.inplace else _ops.relu(input)


class SELU(_Inplace):
    """The self-normalising ELU (Klambauer et al. 2017).

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.SELU()(trt.tensor([-100.0, -1.0, 0.0, 1.0]))
    tensor([-1.7581, -1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """x * sigmoid(x).

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.SiLU()(trt.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x)).

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.Mish()(trt.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class Hardswish(_Inplace):
    """x * relu6(x + 3) / 6.

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.Hardswish()(trt.tensor([-1.5, 0.0, 1.5, 3.0]))
    tensor([-0.3750,  0.0000,  1.1250,  3.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardsigmoid(_Inplace):
    """x / 6 + 1 / 2 clamped to [0, 1].

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.Hardsigmoid()(trt.tensor([-3.0, 0.0, 1.5, 4.0]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(TensorModule):
    """x where x > threshold, else value.

    Parameters:
        threshold (float): inputs up to it are replaced
        value (float): the number in their place
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.Threshold(threshold=1.0, value=-5.0)(trt.tensor([0.5, 1.0, 1.5]))
    tensor([-5.0000, -5.0000,  1.5000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(TensorModule):
    """Leaky ReLU whose slope is drawn from U(lower, upper) in training, their mean in evaluation.

    Parameters:
        lower (float, default 0.125): the smallest slope of negative inputs
        upper (float, default 0.3333333333333333): the largest slope of negative inputs
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> rrelu = trt.nn.RReLU(lower=0.25, upper=0.5)
    >>> -4 <= rrelu(trt.tensor(-8.0)).item() <= -2
    True
    >>> rrelu.eval()(trt.tensor([-8.0, 8.0]))
    tensor([-3.,  8.])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(TensorModule):
    """x clamped to [min_val, max_val].

    Parameters:
        min_val (float, default -1.0): the smallest value of the result
        max_val (float, default 1.0): the largest value of the result
        inplace (bool, default False): whether the input is overwritten with the result
        min_value (float or None, default None): the older name of min_val
        max_value (float or None, default None): the older name of max_val

    >>> import tensorrt_lite as trt
    >>> trt.nn.Hardtanh()(trt.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    >>> trt.nn.Hardtanh(min_val=0.0, max_val=2.0)(trt.tensor([-3.0, 0.5, 3.0]))
    tensor([0.0000, 0.5000, 2.0000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, value, new in (("min_value", min_value, "min_val"), ("max_value", max_value, "max_val")):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(0, x), 6).

    Parameters:
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.ReLU6()(trt.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Alpha(TensorModule):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """x where x > 0, else alpha * (exp(x) - 1).

    Parameters:
        alpha (float, default 1.0): the value that large negative inputs approach is -alpha
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.ELU(alpha=0.5)(trt.tensor([-100.0, -1.0, 2.0]))
    tensor([-0.5000, -0.3161,  2.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    Parameters:
        alpha (float, default 1.0): the value that large negative inputs approach is -alpha
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.CELU(alpha=2.0)(trt.tensor([-100.0, -1.0, 2.0]))
    tensor([-2.0000, -0.7869,  2.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(TensorModule):
    """x where x > 0, else negative_slope * x.

    Parameters:
        negative_slope (float, default 0.01): the slope of negative inputs
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> trt.nn.LeakyReLU(negative_slope=0.1)(trt.tensor([-2.0, 0.0, 2.0]))
    tensor([-0.2000,  0.0000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Sigmoid(TensorModule):
    """1 / (1 + exp(-x)).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> trt.nn.Sigmoid()(trt.tensor([-2.0, 0.0, 2.0]))
    tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Any) -> Any:
        return input.sigmoid()


class Tanh(TensorModule):
    """tanh(x).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> trt.nn.Tanh()(trt.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Any) -> Any:
        return input.tanh()


class LogSigmoid(TensorModule):
    """log(1 / (1 + exp(-x))).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> trt.nn.LogSigmoid()(trt.tensor([-100.0, 0.0, 1.0]))
    tensor([-100.0000,   -0.6931,   -0.3133])
    """

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(TensorModule):
    """x / (1 + |x|).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> trt.nn.Softsign()(trt.tensor([-3.0, 0.0, 1.0]))
    tensor([-0.7500,  0.0000,  0.5000])
    """

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(TensorModule):
    """x - tanh(x).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> trt.nn.Tanhshrink()(trt.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2384,  0.0000,  0.2384])
    """

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class GELU(TensorModule):
    """x * Phi(x), Phi the normal distribution function; approximate="tanh" uses its tanh form.

    Parameters:
        approximate (str, default 'none'): 'none', or 'tanh' for the approximation by tanh

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([-1.0, 0.0, 1.0])
    >>> trt.nn.GELU()(x)
    tensor([-0.1587,  0.0000,  0.8413])
    >>> trt.nn.GELU(approximate="tanh")(x)
    tensor([-0.1588,  0.0000,  0.8412])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(TensorModule):
    """a * sigmoid(b) of the two halves of the input along `dim`.

    Parameters:
        dim (int, default -1): the dimension that is split in two halves

    >>> import tensorrt_lite as trt
    >>> trt.nn.GLU(dim=-1)(trt.tensor([[3.0, 4.0, 0.0, 100.0]]))
    tensor([[1.5000, 4.0000]])
    >>> trt.nn.GLU(dim=1)(trt.randn(2, 6, 5)).shape
    torch.Size([2, 3, 5])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(TensorModule):
    """x where |x| > lambd, else 0.

    Parameters:
        lambd (float, default 0.5): values within [-lambd, lambd] become 0

    >>> import tensorrt_lite as trt
    >>> trt.nn.Hardshrink(lambd=1.0)(trt.tensor([-2.0, 0.5, 3.0]))
    tensor([-2.,  0.,  3.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(TensorModule):
    """x moved towards zero by lambd.

    Parameters:
        lambd (float, default 0.5): how far values move to 0; those within [-lambd, lambd] become 0

    >>> import tensorrt_lite as trt
    >>> trt.nn.Softshrink(lambd=1.0)(trt.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.,  0.,  2.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softplus(TensorModule):
    """log(1 + exp(beta * x)) / beta, the identity where beta * x > threshold.

    Parameters:
        beta (float, default 1.0): the sharpness; the greater it is, the nearer is the result to ReLU
        threshold (float, default 20.0): above threshold / beta the result is the input

    >>> import tensorrt_lite as trt
    >>> trt.nn.Softplus()(trt.tensor([-1.0, 0.0, 1.0]))
    tensor([0.3133, 0.6931, 1.3133])
    >>> trt.nn.Softplus(beta=2.0, threshold=10.0)(trt.tensor([0.0, 6.0]))
    tensor([0.3466, 6.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(TensorModule):
    """x where x > 0, else weight * x; weight: (1) or (C), learned.

    Parameters:
        num_parameters (int, default 1): 1, or the number of channels
        init (float, default 0.25): the first slope
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> prelu = trt.nn.PReLU(num_parameters=2, init=0.5)  # a slope for each of two channels
    >>> prelu(trt.tensor([[-2.0, -4.0], [1.0, 3.0]])).tolist()
    [[-1.0, -2.0], [1.0, 3.0]]
    >>> prelu.weight.shape
    torch.Size([2])
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(trt.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets every slope to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax(TensorModule):
    """exp(x) / sum(exp(x)) along `dim`.

    Parameters:
        dim (int or None, default None): the dimension along which the result sums to 1

    >>> import tensorrt_lite as trt
    >>> logits = trt.tensor([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]]).log()
    >>> trt.nn.Softmax(dim=1)(logits)
    tensor([[0.1250, 0.2500, 0.6250],
            [0.2500, 0.2500, 0.5000]])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(TensorModule):
    """Softmax of -x along `dim`.

    Parameters:
        dim (int or None, default None): the dimension along which the result sums to 1

    >>> import tensorrt_lite as trt
    >>> trt.nn.Softmin(dim=-1)(-trt.tensor([1.0, 2.0, 5.0]).log())
    tensor([0.1250, 0.2500, 0.6250])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(TensorModule):
    """log of Softmax along `dim`.

    Parameters:
        dim (int or None, default None): the dimension along which exp(result) sums to 1

    >>> import tensorrt_lite as trt
    >>> log_probs = trt.nn.LogSoftmax(dim=-1)(trt.tensor([1.0, 2.0, 5.0]).log())
    >>> log_probs.exp()
    tensor([0.1250, 0.2500, 0.6250])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(TensorModule):
    """Softmax over the channels of input (N, C, H, W) or (C, H, W).

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> scores = trt.randn(1, 3, 4, 4)  # three classes for each pixel
    >>> trt.allclose(trt.nn.Softmax2d()(scores).sum(dim=1), trt.ones(1, 4, 4))
    True
    """

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class MultiheadAttention(Module):
    """Lets each query attend to keys and takes the mean of their values, in several heads (Vaswani et al. 2017).

    query: (L, N, E), key: (S, N, kdim), value: (S, N, vdim); N first with batch_first; without N for one sample.
    Returns (output like query, weights (N, L, S) or None).

    Parameters:
        embed_dim (int): E, the number of features
        num_heads (int): how many heads; divides embed_dim
        dropout (float, default 0.0): the probability that an attention weight is dropped in training
        bias (bool, default True): whether the projections have biases
        add_bias_kv (bool, default False): whether a learned key and value are added to the others
        add_zero_attn (bool, default False): whether a key and a value of zeros are added
        kdim (int or None, default None): the number of features of the key; None is embed_dim
        vdim (int or None, default None): the number of features of the value; None is embed_dim
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> attention = trt.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> query, memory = trt.randn(4, 5, 8), trt.randn(4, 7, 8)
    >>> output, weights = attention(query, memory, memory)
    >>> output.shape, weights.shape
    (torch.Size([4, 5, 8]), torch.Size([4, 5, 7]))
    """

    __constants__ = ["batch_first"]
    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.add_zero_attn = add_zero_attn

        def parameter(*shape: int) -> Parameter:
            return Parameter(trt.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            absent: tuple[str, ...] = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            absent = ("in_proj_weight",)
        for name in absent:
            self.register_parameter(name, None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k: Any = parameter(1, 1, embed_dim)
            self.bias_v: Any = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier-uniform projections, zero biases, Xavier-normal bias_k and bias_v."""
        if self._qkv_same_embed_dim:
            xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        batched = query.dim() == 3
        nested = getattr(type(query), "_made_of_parts", False)
        if nested and not self.batch_first:
            raise RuntimeError("MultiheadAttention: nested tensors need batch_first=True")
        if self.batch_first and batched and not nested:
            # Identity is kept, so that self-attention stays one projection.
            same_kv, same_q = key is value, query is key
            query = query.transpose(0, 1)
            key = query if same_q else key.transpose(0, 1)
            value = key if same_kv else value.transpose(0, 1)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if self.batch_first and batched and not nested else output, weights
