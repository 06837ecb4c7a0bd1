"""Instance normalisation: each channel of each sample by itself."""

from __future__ import annotations

import warnings
from typing import Any

from .. import functional as F
from .batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """Each channel of each sample normalised by itself."""

    _dims = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Any) -> None:
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

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
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if stale:
                names = " and ".join(f'"{name}"' for name in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {type(self).__name__} does not track running stats by default since 0.4.0. Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for name in stale:
                    state_dict.pop(name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        channel_dim = input.dim() - self._dims - 1
        if input.size(channel_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channel_dim)}."
                )

            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        batched = input if input.dim() == self._dims + 2 else input.unsqueeze(0)
        output = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return output if batched is input else output.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample by itself to mean 0 and variance 1.

    input: (N, C, L) or (C, L), output: the same shape.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float, default 0.1): how fast running averages follow, from 0 to 1
        affine (bool, default False): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default False): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([[[1.0, 3.0], [10.0, 30.0]]])
    >>> trt.nn.InstanceNorm1d(2)(x)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample by itself to mean 0 and variance 1.

    input: (N, C, H, W) or (C, H, W), output: the same shape.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float, default 0.1): how fast running averages follow, from 0 to 1
        affine (bool, default False): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default False): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.InstanceNorm2d(3, affine=True)
    >>> norm(trt.randn(2, 3, 8, 8)).shape
    torch.Size([2, 3, 8, 8])
    >>> {name: tuple(p.shape) for name, p in norm.named_parameters()}
    {'weight': (3,), 'bias': (3,)}
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample by itself to mean 0 and variance 1.

    input: (N, C, D, H, W) or (C, D, H, W), output: the same shape.

    Parameters:
        num_features (int): C, the number of channels
        eps (float, default 1e-05): added to the variance
        momentum (float, default 0.1): how fast running averages follow, from 0 to 1
        affine (bool, default False): whether each channel has a weight and a bias, which are learned
        track_running_stats (bool, default False): whether there are running averages of mean and variance, which
            evaluation uses
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        bias (bool, default True): whether there is a bias beside the weight

    >>> import tensorrt_lite as trt
    >>> norm = trt.nn.InstanceNorm3d(3, track_running_stats=True)
    >>> norm(trt.randn(2, 3, 4, 8, 8)).shape
    torch.Size([2, 3, 4, 8, 8])
    >>> list(norm.state_dict())
    ['running_mean', 'running_var', 'num_batches_tracked']
    """

    _dims = 3
