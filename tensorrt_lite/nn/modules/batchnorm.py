"""Batch normalisation, and the parameters and running statistics it shares with instance normalisation."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._own_init import own_init
from ._typed import TensorModule
from .module import Module


class _NormBase(TensorModule):
    """Weight, bias and running statistics of a normalisation over channels; version 2 added num_batches_tracked."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    weight: Parameter
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(trt.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        if track_running_stats:
            self.register_buffer("running_mean", trt.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", trt.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", trt.tensor(0, dtype=trt.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to zero, the variance to one, the batch count to zero."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the statistics; weight to one, bias to zero."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            counted = own is not None and not own.is_meta
            state_dict[key] = own if counted else trt.tensor(0, dtype=trt.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # The cumulative mean over all batches seen.
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


own_init(_BatchNorm)


class BatchNorm1d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over batch and length, then scales it by weight and adds bias.

    input: (N, C) or (N, C, L), output: the same shape, weight and bias: (C). Training uses the statistics of the batch, evaluation the running ones.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float or None, default 0.1): how fast running averages follow, from 0 to 1; None is the mean of all
            batches
        affine (bool, default True): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default True): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.BatchNorm1d(2, affine=False)
    >>> norm(trt.tensor([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    >>> norm.running_mean, norm.running_var
    (tensor([0.2000, 2.0000]), tensor([ 1.1000, 20.9000]))
    >>> norm.eval()(trt.zeros(1, 2))
    tensor([[-0.1907, -0.4375]])
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over batch and plane, then scales it by weight and adds bias.

    input: (N, C, H, W), output: the same shape, weight and bias: (C). Training uses the statistics of the batch, evaluation the running ones.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float or None, default 0.1): how fast running averages follow, from 0 to 1; None is the mean of all
            batches
        affine (bool, default True): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default True): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.BatchNorm2d(num_features=3)
    >>> y = norm(trt.randn(4, 3, 8, 8))
    >>> y.shape, norm.weight.shape, norm.num_batches_tracked.item()
    (torch.Size([4, 3, 8, 8]), torch.Size([3]), 1)
    >>> trt.allclose(y.mean(dim=(0, 2, 3)), trt.zeros(3), atol=1e-5)
    True
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over batch and volume, then scales it by weight and adds bias.

    input: (N, C, D, H, W), output: the same shape, weight and bias: (C). Training uses the statistics of the batch, evaluation the running ones.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float or None, default 0.1): how fast running averages follow, from 0 to 1; None is the mean of all
            batches
        affine (bool, default True): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default True): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.BatchNorm3d(2, affine=False)
    >>> norm(trt.randn(1, 2, 4, 6, 6)).shape
    torch.Size([1, 2, 4, 6, 6])
    >>> list(norm.state_dict())
    ['running_mean', 'running_var', 'num_batches_tracked']
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1, as BatchNorm1d to BatchNorm3d. input: (N, C, *), output: the same shape.

    The statistics are those of one process: where several train together, each normalises by its own batch, since there are no process groups.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float or None, default 0.1): how fast running averages follow, from 0 to 1; None is the mean of all
            batches
        affine (bool, default True): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default True): whether there are running averages of mean and variance, which
            evaluation uses
        process_group (default None): not used
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Sequential(trt.nn.Linear(4, 2), trt.nn.BatchNorm1d(2))
    >>> model = trt.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    >>> type(model[1]).__name__, model(trt.randn(3, 4)).shape
    ('SyncBatchNorm', torch.Size([3, 2]))
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm in the place of each BatchNorm below it, which shares its parameters and statistics."""
        made: Module = module
        if isinstance(module, _BatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            if module.affine:
                made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked = module.num_batches_tracked
            made.training = module.training
            if hasattr(module, "qconfig"):
                made.qconfig = module.qconfig
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
