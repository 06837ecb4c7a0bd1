"""The deprecated spelling of `tensorrt_lite.amp.GradScaler("cuda", ...)`."""

from __future__ import annotations

import warnings

from tensorrt_lite import amp
from tensorrt_lite._names.listing import public_name
from tensorrt_lite.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """Deprecated: ``tensorrt_lite.amp.GradScaler("cuda", ...)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            f"`{public_name()}.cuda.amp.GradScaler(args...)` is deprecated. Please use `{public_name()}.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
