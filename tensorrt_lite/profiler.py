"""torch.profiler without a profiler: names of ranges are accepted, so that programs that mark them run, and recorded nowhere."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["record_function"]


class record_function(ContextDecorator):
    """A named range, as a context or a decorator. It has no effect: there is no profiler that could show it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def __getattr__(name: str) -> Any:
    from tensorrt_lite._missing import error

    raise error("profiler", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
