"""Layers that take the sizes of their parameters from their first input."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad

from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from ._own_init import own_init
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module


class LazyModuleMixin:
    """Before a Module's class: its parameters may be uninitialized until the first call, or until a state dict is loaded.

    A subclass defines initialize_parameters(*input), which materializes them, and `cls_to_become`, the class that the module has afterwards. Make an optimizer after
    the first call; what was made before holds tensors without a shape.
    """

    cls_to_become: ClassVar[type | None] = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        # an uninitialized tensor has no data to detach
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Give uninitialized tensors the shapes that the state dict has."""
        for name, own in [*self._parameters.items(), *self._buffers.items()]:
            given = state_dict.get(prefix + name)
            if own is not None and given is not None and is_lazy(own) and not is_lazy(given):
                with no_grad():
                    own.materialize(given.shape)

    def initialize_parameters(self: Any, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters by what the module is called with."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer of the module itself waits for its shape."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self: Any) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly initialize the modules"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """Linear with in_features of its first input.

    >>> import tensorrt_lite as trt
    >>> layer = trt.nn.LazyLinear(out_features=4)
    >>> layer(trt.randn(2, 7)).shape
    torch.Size([2, 4])
    >>> layer
    Linear(in_features=7, out_features=4, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Linear's, once the parameters are there."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Materialize the parameters for input (*, in_features)."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """A convolution with in_channels of its first input."""

    dimensions: ClassVar[int]

    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)

    def _make_lazy(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        """The convolution's, once the parameters are there."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Any, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for input (N, in_channels, *) or (in_channels, *)."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        pair = (self.in_channels, self.out_channels // self.groups) if self.transposed else (self.out_channels, self.in_channels // self.groups)
        with no_grad():
            self.weight.materialize((*pair, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _channels_of(self: Any, input: Any) -> int:
        unbatched = self.dimensions + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise RuntimeError(
                f"Expected {unbatched}D (unbatched) or {unbatched + 1}D (batched) input to {type(self).__name__}, but got input of size: {input.shape}"
            )
        return int(input.shape[1] if input.dim() == unbatched + 1 else input.shape[0])


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super(_LazyConv, self).__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyNorm(LazyModuleMixin):
    """A normalisation with num_features of its first input."""

    def __init__(
        self: Any,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = trt.tensor(0, dtype=trt.int64, device=device)

    def reset_parameters(self: Any) -> None:
        """The normalisation's, once the parameters are there."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Any) -> None:
        """Materialize parameters and statistics for input (N, num_features, *)."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class _LazyInstanceNorm(_LazyNorm):
    def __init__(
        self: Any, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)


def _lazy(layer: type[Module], mixin: type, example: str, **attributes: Any) -> Any:
    name = f"Lazy{layer.__name__}"
    taken = "num_features" if "Norm" in name else "in_channels"
    doc = f"{layer.__name__} that takes {taken} from its first input; the other parameters are those of {layer.__name__}.\n{example}"
    return type(name, (mixin, layer), {"cls_to_become": layer, "__doc__": doc, "__module__": __name__, "__qualname__": name, **attributes})


LazyConv1d = _lazy(
    Conv1d,
    _LazyConv,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConv1d(8, kernel_size=3)
    >>> conv(trt.randn(2, 5, 20)).shape
    torch.Size([2, 8, 18])
    >>> conv.in_channels, type(conv).__name__
    (5, 'Conv1d')
    """,
    dimensions=1,
)
LazyConv2d = _lazy(
    Conv2d,
    _LazyConv,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConv2d(8, kernel_size=3, padding=1)
    >>> conv(trt.randn(1, 3, 16, 16)).shape
    torch.Size([1, 8, 16, 16])
    >>> conv.weight.shape
    torch.Size([8, 3, 3, 3])
    """,
    dimensions=2,
)
LazyConv3d = _lazy(
    Conv3d,
    _LazyConv,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConv3d(4, kernel_size=2, groups=2)
    >>> conv(trt.randn(1, 6, 5, 8, 8)).shape
    torch.Size([1, 4, 4, 7, 7])
    >>> conv.weight.shape
    torch.Size([4, 3, 2, 2, 2])
    """,
    dimensions=3,
)
LazyConvTranspose1d = _lazy(
    ConvTranspose1d,
    _LazyConvTranspose,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConvTranspose1d(2, kernel_size=2, stride=2)
    >>> conv(trt.randn(1, 6, 10)).shape
    torch.Size([1, 2, 20])
    >>> conv.in_channels
    6
    """,
    dimensions=1,
)
LazyConvTranspose2d = _lazy(
    ConvTranspose2d,
    _LazyConvTranspose,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConvTranspose2d(3, kernel_size=2, stride=2)
    >>> conv(trt.randn(1, 8, 7, 7)).shape
    torch.Size([1, 3, 14, 14])
    >>> conv.weight.shape
    torch.Size([8, 3, 2, 2])
    """,
    dimensions=2,
)
LazyConvTranspose3d = _lazy(
    ConvTranspose3d,
    _LazyConvTranspose,
    """
    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.LazyConvTranspose3d(1, kernel_size=3)
    >>> conv(trt.randn(4, 2, 6, 6)).shape  # one sample
    torch.Size([1, 4, 8, 8])
    >>> conv.in_channels
    4
    """,
    dimensions=3,
)
LazyBatchNorm1d = _lazy(
    BatchNorm1d,
    _LazyNorm,
    """
    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Sequential(trt.nn.LazyLinear(6), trt.nn.LazyBatchNorm1d())
    >>> model(trt.randn(4, 3)).shape
    torch.Size([4, 6])
    >>> model[1].num_features
    6
    """,
)
LazyBatchNorm2d = _lazy(
    BatchNorm2d,
    _LazyNorm,
    """
    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.LazyBatchNorm2d()
    >>> norm.has_uninitialized_params()
    True
    >>> norm(trt.randn(2, 3, 8, 8)).shape, norm.running_mean.shape
    (torch.Size([2, 3, 8, 8]), torch.Size([3]))
    """,
)
LazyBatchNorm3d = _lazy(
    BatchNorm3d,
    _LazyNorm,
    """
    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.LazyBatchNorm3d(affine=False)
    >>> norm(trt.randn(1, 2, 4, 6, 6)).shape
    torch.Size([1, 2, 4, 6, 6])
    >>> norm.num_features, type(norm).__name__
    (2, 'BatchNorm3d')
    """,
)
LazyInstanceNorm1d = _lazy(
    InstanceNorm1d,
    _LazyInstanceNorm,
    """
    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.LazyInstanceNorm1d()
    >>> norm(trt.randn(2, 5, 20)).shape
    torch.Size([2, 5, 20])
    >>> norm.weight.shape, norm.running_var.shape
    (torch.Size([5]), torch.Size([5]))
    """,
)
LazyInstanceNorm2d = _lazy(
    InstanceNorm2d,
    _LazyInstanceNorm,
    """
    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.LazyInstanceNorm2d(track_running_stats=False)
    >>> norm(trt.randn(2, 3, 8, 8)).shape
    torch.Size([2, 3, 8, 8])
    >>> list(norm.state_dict())
    ['weight', 'bias']
    """,
)
LazyInstanceNorm3d = _lazy(
    InstanceNorm3d,
    _LazyInstanceNorm,
    """
    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.LazyInstanceNorm3d(affine=False)
    >>> norm(trt.randn(2, 4, 3, 6, 6)).shape
    torch.Size([2, 4, 3, 6, 6])
    >>> norm.num_features
    4
    """,
)


own_init(LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d)
