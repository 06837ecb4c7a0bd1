"""Rules of views, copies and conversions, and of factories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import transform
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._transforms.batching import Call, padded, refuse_inplace, rule, to_front, writer
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_rules_random = _LazyModule("tensorrt_lite._transforms.rules_random")

if TYPE_CHECKING:

    from tensorrt_lite import Tensor

@rule("_to_copy")
def _to_copy(call: Call) -> Tensor:
    if call["memory_format"] in (trt.channels_last, trt.channels_last_3d):
        return _in_format(call, call.run(self=call.front("self"), memory_format=None), call["memory_format"])
    return call.run(self=call.front("self"))


@rule("clone")
def _clone(call: Call) -> Tensor:
    return _in_format(call, call.front("self"), call["memory_format"])


@rule("contiguous")
def _contiguous(call: Call) -> Tensor:
    return _in_format(call, call.front("self"), call["memory_format"])


def _in_format(call: Call, x: Tensor, memory_format: Any) -> Tensor:
    """A copy whose elements have the format, which names the order of four or five dimensions."""
    if memory_format in (trt.channels_last, trt.channels_last_3d):
        order = [0, 1, *range(3, x.dim()), 2]
        back = [0, 1, x.dim() - 1, *range(2, x.dim() - 1)]
        return x.permute(order).clone(memory_format=trt.contiguous_format).permute(back)
    return call.run(x, memory_format) if call.name == "clone" else x.clone(memory_format=trt.contiguous_format)


@rule("t")
def _t(call: Call) -> Tensor:
    x, rank = call.front("self"), call.rank("self")
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return x.transpose(1, 2) if rank == 2 else x.view(x.shape)


@rule("as_strided")
def _as_strided(call: Call) -> Tensor:
    """Strides and offset are those of an element in its memory, as a wrapper has them."""
    x, offset = call.front("self"), call["storage_offset"]
    return x.as_strided((call.size, *call["size"]), (x.stride(0), *call["stride"]), x.storage_offset() if offset is None else offset)


@writer("copy")
def _copy(call: Call) -> None:
    target, dim = transform.unwrap(call.target, call.level)
    source, source_dim = call.values[1], call.dims[1]
    if dim is None:
        refuse_inplace("copy")
    x = to_front(target, dim)
    x.copy_(source if source_dim is None else padded(to_front(source, source_dim), x.dim() - 1))


@writer("zero")
def _zero(call: Call) -> None:
    transform.unwrap(call.target, call.level)[0].zero_()


@writer("fill")
def _fill(call: Call) -> Any:
    if call.mode:
        transform.unwrap(call.target, call.level)[0].fill_(call["value"])
        return None
    return call.run(call.front("self"), call["value"])


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
