"""torch._dynamo.config: settings of a compiler that is not there, which programs set."""

from __future__ import annotations

import contextlib
from typing import Any

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
optimize_ddp: Any = True
verbose = False
disable = False
inline_inbuilt_nn_modules = True


class patch(contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """Other settings for a block or a function: no effect on anything."""

    def __init__(self, arg: Any = None, arg2: Any = None, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
