"""Rules of views, copies and conversions, and of factories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import transform
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._transforms.batching import to_front
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_rules_random = _LazyModule("tensorrt_lite._transforms.rules_random")

if TYPE_CHECKING:
    pass


# ---- factories -----------------------------------------------------------------------------------------------------

_LIKE = {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"}
_NEW = {"new_zeros", "new_ones", "new_empty", "new_full"}


def make(level: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A factory's call at a level of vmap. What is made like a batch is a batch; random numbers follow the level's randomness."""
    name = function.__name__
    value, dim = transform.unwrap(args[0], level) if args else (None, None)
    different = False
    random = "random" in _declarations.tags(name)
    if random:
        _rules_random.check_randomness(level)
        different = level.randomness == "different"
    if name in _LIKE and dim is not None:
        if random and not different:
            return function(to_front(value, dim)[0], *args[1:], **kwargs)
        kwargs.pop("memory_format", None)
        return transform.wrap(function(to_front(value, dim), *args[1:], **kwargs), level, 0)
    if name in _NEW and dim is not None:
        size, rest = _size_of(name, args[1:], kwargs)
        return transform.wrap(function(value, (level.batch_size, *size), *rest, **kwargs), level, 0)
    if name == "new_empty_strided" and dim is not None:
        size, strides = args[1], args[2]
        span = 1 + sum((n - 1) * s for n, s in zip(size, strides)) if all(size) else 0
        return transform.wrap(function(value, (level.batch_size, *size), (span, *strides), **kwargs), level, 0)
    if name in ("linspace", "logspace") and any(transform.belongs(x, level) for x in args):
        return _spaced(level, function, args, kwargs)
    if name == "new_tensor":
        return function(value, *args[1:], **kwargs)
    if name not in _LIKE | _NEW:
        args = tuple(x.item() if transform.belongs(x, level) else x for x in args)  # bounds of a range, which are numbers
    if not different:
        return NotImplemented
    if name == "randperm":
        return transform.wrap(trt.stack([function(*args, **kwargs) for _ in range(level.batch_size)]), level, 0)
    if name in _LIKE:
        kwargs.pop("memory_format", None)
        return transform.wrap(function(args[0].unsqueeze(0).expand(level.batch_size, *args[0].shape), *args[1:], **kwargs), level, 0)
    if name == "randint":
        low_high, args = [a for a in args if isinstance(a, int)], [a for a in args if not isinstance(a, int)]
        size = kwargs.pop("size", None) if "size" in kwargs else args.pop(0)
        return transform.wrap(function(*low_high, size=(level.batch_size, *size), **kwargs), level, 0)
    size, rest = _size_of("", args, kwargs)
    return transform.wrap(function((level.batch_size, *size), *rest, **kwargs), level, 0)


def _spaced(level: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Numbers between ends of which one differs within the batch."""
    rows = [function(*(transform.element(x, level, i) for x in args), **kwargs) for i in range(level.batch_size)]
    return transform.wrap(trt.stack(rows), level, 0)


def _size_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """(the sizes, other positional arguments) of a factory's call."""
    if "size" in kwargs:
        return tuple(kwargs.pop("size")), args
    if args and isinstance(args[0], (tuple, list)):
        return tuple(args[0]), args[1:]
    return tuple(args), ()


transform.set_factory_rule(make)
