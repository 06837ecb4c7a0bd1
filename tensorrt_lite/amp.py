"""torch.amp switched off: `autocast(enabled=False)` and `GradScaler(enabled=False)`, which programs that offer mixed precision use without it.

Switched on, both raise NotImplementedError: computing in float32 under `autocast` would be another result than the one asked for.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["GradScaler", "autocast", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """False, for every device."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False, for every device."""
    return False


class autocast(ContextDecorator):
    """A context or decorator without effect. NotImplementedError unless enabled is False."""

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if enabled:
            raise NotImplementedError("autocast is not implemented, except with enabled=False (docs/gaps.md)")
        self.device_type, self.dtype = device_type, dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class GradScaler:
    """A scaler that scales nothing, as PyTorch's with enabled=False. NotImplementedError unless enabled is False."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled:
            raise NotImplementedError("GradScaler is not implemented, except with enabled=False (docs/gaps.md)")

    def is_enabled(self) -> bool:
        return False

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        pass

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """What `optimizer.step(*args, **kwargs)` returns."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        pass

    def get_scale(self) -> float:
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass


def __getattr__(name: str) -> Any:
    from tensorrt_lite._missing import error

    raise error("amp", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
