"""torch.distributed.rpc.api: the decorator of functions that need a started agent, of which there is none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises RuntimeError, as PyTorch's does before `init_rpc`."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return wrapper
