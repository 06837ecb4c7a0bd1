"""Decorators of data pipes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .datapipe import IterDataPipe, MapDataPipe

__all__ = ["functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"]


class functional_datapipe:  # noqa: N801 (PyTorch's name)
    """Make a class of pipes a method of all pipes of its kind: ``@functional_datapipe("double")`` and then ``pipe.double()``.

    A class that is no pipe stays as it is, as in PyTorch; TypeError for what is no class. enable_df_api_tracing concerns data frames, which are not traced here.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        target = cls.cls if isinstance(cls, non_deterministic) else getattr(getattr(cls, "__self__", None), "cls", cls)
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(target, type) and issubclass(target, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        if not isinstance(cls, type):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        return cls


_determinism = False


class guaranteed_datapipes_determinism:  # noqa: N801 (PyTorch's name)
    """A context in which pipes that are marked as not deterministic cannot be made."""

    def __init__(self) -> None:
        global _determinism
        self.prev, _determinism = _determinism, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:  # noqa: N801 (PyTorch's name)
    """Mark a class of streams as not deterministic: always, or (given a function) where the function of the same arguments says so."""

    cls: Any = None

    def __init__(self, arg: Any) -> None:
        self.deterministic_fn: Callable[..., bool] | None = None
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found")
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            return self._made(True, "", args, kwargs)
        cls = args[0]
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {getattr(cls, '__name__', cls)} is found")
        self.cls = cls
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class. TypeError where it must not be made."""
        assert self.deterministic_fn is not None
        random = self.deterministic_fn(*args, **kwargs)
        if not isinstance(random, bool):
            raise TypeError(f"deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but {type(random)} is found")
        return self._made(random, " with the inputs", args, kwargs)

    def _made(self, random: bool, when: str, args: Any, kwargs: Any) -> Any:
        if random and _determinism:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic{when}, but you set 'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe "
                "if that is acceptable for your application"
            )
        return self.cls(*args, **kwargs)
