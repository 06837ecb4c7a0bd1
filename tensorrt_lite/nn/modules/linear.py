"""Affine layers."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._typed import TensorModule
from .module import Module


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    Parameters:
        *args: anything; not used
        **kwargs: anything; not used

    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Sequential(trt.nn.Linear(4, 4), trt.nn.ReLU())
    >>> model[1] = trt.nn.Identity()  # removes the ReLU
    >>> trt.nn.Identity(4, unused=True)(trt.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(TensorModule):
    """Multiplies by a matrix and adds a bias: y = x W' + b.

    input: (*, in_features), output: (*, out_features), weight: (out_features, in_features), bias: (out_features).

    Parameters:
        in_features (int): the number of features of the input
        out_features (int): the number of features of the result
        bias (bool, default True): whether there is a bias, which is learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.Linear(3, 2)
    >>> layer(trt.randn(5, 4, 3)).shape
    torch.Size([5, 4, 2])
    >>> layer.weight.shape, layer.bias.shape
    (torch.Size([2, 3]), torch.Size([2]))
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Parameter
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(trt.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(trt.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1 / sqrt(in_features), 1 / sqrt(in_features))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(TensorModule):
    """y = x1' A x2 + b. inputs: (*, in1_features), (*, in2_features), output: (*, out_features).

    Parameters:
        in1_features (int): the number of features of the first input
        in2_features (int): the number of features of the second input
        out_features (int): the number of features of the result
        bias (bool, default True): whether there is a bias, which is learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.Bilinear(in1_features=3, in2_features=5, out_features=2)
    >>> layer(trt.randn(4, 3), trt.randn(4, 5)).shape
    torch.Size([4, 2])
    >>> layer.weight.shape
    torch.Size([2, 3, 5])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(trt.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(trt.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1 / sqrt(in1_features), 1 / sqrt(in1_features))."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention: a Linear under the name PyTorch prints."""
