"""Layer, group, root-mean-square and local response normalisation."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._typed import TensorModule


class LocalResponseNorm(TensorModule):
    """x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta. input: (N, C, *).

    Parameters:
        size (int): how many neighbouring channels are summed
        alpha (float, default 0.0001): the factor
        beta (float, default 0.75): the exponent
        k (float, default 1.0): the constant beside the sum

    >>> import tensorrt_lite as trt
    >>> x = trt.ones(1, 4, 2)
    >>> trt.nn.LocalResponseNorm(size=3, alpha=3.0, beta=1.0)(x)[0, :, 0]  # 1 / (1 + channels in the window)
    tensor([0.3333, 0.2500, 0.2500, 0.3333])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(TensorModule):
    """LocalResponseNorm of images: input (N, C, H, W).

    Parameters:
        size (int): how many neighbouring channels are summed
        alpha (float, default 0.0001): the factor
        beta (float, default 0.75): the exponent
        k (float, default 1): the constant beside the sum

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([1.0, 2.0]).reshape(1, 2, 1, 1)
    >>> trt.nn.CrossMapLRN2d(size=3, alpha=3.0, beta=1.0)(x).flatten()  # x / (1 + 1 ** 2 + 2 ** 2)
    tensor([0.1667, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(TensorModule):
    """Normalises the last dimensions to mean 0 and variance 1, then scales them by weight and adds bias.

    input: (*, *normalized_shape), output: the same shape, weight and bias: normalized_shape.

    Parameters:
        normalized_shape (int or tuple of ints): the shape of the last dimensions, over which is normalised
        eps (float, default 1e-05): added to the variance
        elementwise_affine (bool, default True): whether each element has a weight, and a bias, which are learned
        bias (bool, default True): whether there is a bias beside the weight
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> trt.nn.LayerNorm(4, elementwise_affine=False)(trt.tensor([1.0, 1.0, 3.0, 3.0]))
    tensor([-1.0000, -1.0000,  1.0000,  1.0000])
    >>> norm = trt.nn.LayerNorm((4, 5), bias=False)
    >>> norm(trt.randn(2, 3, 4, 5)).shape, norm.weight.shape
    (torch.Size([2, 3, 4, 5]), torch.Size([4, 5]))
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    weight: Parameter
    bias: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = Parameter(trt.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to one and bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(TensorModule):
    """Normalises each group of channels of each sample to mean 0 and variance 1.

    input: (N, C, *), output: the same shape, weight and bias: (C).

    Parameters:
        num_groups (int): how many groups the channels are split into; divides num_channels
        num_channels (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        affine (bool, default True): whether each channel has a weight and a bias, which are learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias, which is learned

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.GroupNorm(num_groups=2, num_channels=4, affine=False)
    >>> norm(trt.tensor([[1.0, 3.0, 10.0, 30.0]]))
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    >>> trt.nn.GroupNorm(3, 6)(trt.randn(2, 6, 8, 8)).shape
    torch.Size([2, 6, 8, 8])
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]
    weight: Parameter
    bias: Any

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(trt.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to one and bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(TensorModule):
    """x / sqrt(mean(x ** 2) + eps) * weight over the trailing dimensions. input: (N, *normalized_shape).

    Parameters:
        normalized_shape (int or tuple of ints): the shape of the last dimensions, over which is normalised
        eps (float or None, default None): added to the mean of squares; None is the smallest step of the dtype at 1
        elementwise_affine (bool, default True): whether each element has a weight, which is learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.RMSNorm(2, eps=0.0, elementwise_affine=False)
    >>> norm(trt.tensor([[1.0, 7.0], [-3.0, 3.0]]))
    tensor([[ 0.2000,  1.4000],
            [-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    weight: Parameter

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(trt.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Any) -> Any:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
