"""Operators by class of sizes and strides: expanded, transposed, channels_last, bfloat16, short and long rows, no elements.

Every declared pointwise operator with samples and the calls below, values and (of the calls) gradients. It is a search for rows that take longer than PyTorch's, so
its rows are small, timed in processor time, and only measured when the suite is named: `tensorrt-lite bench classes --against torch --threads 1 --above 1.2`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite._declared import declarations as _declarations

from ..rows import Row, gradient_of, of_operands
from .operators import _RANGES

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 1.2


def _expanded(lib: Any, draw: Callable[..., Any]) -> Any:
    return draw(256, 1).expand(256, 256)


def _transposed(lib: Any, draw: Callable[..., Any]) -> Any:
    return draw(256, 256).t()


def _bfloat16(lib: Any, draw: Callable[..., Any]) -> Any:
    return draw(256, 256).to(lib.bfloat16)


# of two dimensions, but for channels_last
CLASSES: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "expanded": _expanded,
    "transposed": _transposed,
    "bfloat16": _bfloat16,
    "short rows": lambda lib, draw: draw(8192, 8),
    "short rows of a slice": lambda lib, draw: draw(8192, 9)[:, 1:6],
    "long rows": lambda lib, draw: draw(4, 16384),
    "no elements": lambda lib, draw: draw(0, 64),
}
IMAGES: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "contiguous": lambda lib, draw: draw(4, 16, 28, 28),
    "channels_last": lambda lib, draw: draw(4, 16, 28, 28).contiguous(memory_format=lib.channels_last),
    "bfloat16": lambda lib, draw: draw(4, 16, 28, 28).to(lib.bfloat16),
    "bfloat16 channels_last": lambda lib, draw: draw(4, 16, 28, 28).to(lib.bfloat16).contiguous(memory_format=lib.channels_last),
    "expanded": lambda lib, draw: draw(1, 16, 28, 28).expand(4, 16, 28, 28),
    "narrow planes": lambda lib, draw: draw(64, 16, 7, 7),
}


def _places(lib: Any, x: Any, dim: int, like: Any = None) -> Any:
    """An index along dim: of x's shape, or for `like` "expanded" the same along the other dimension, for "vector" a vector."""
    n, other = max(1, x.shape[dim]), x.shape[1 - dim]
    if like == "vector":
        return lib.randint(0, n, (x.shape[dim],))
    if like == "expanded":
        return lib.randint(0, n, (x.shape[dim],)).unsqueeze(1 - dim).expand(*(x.shape if dim == 0 else (other, x.shape[1])))
    return lib.randint(0, n, tuple(x.shape))


def _at(dim: int, like: Any, call: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A call of (lib, x, index, values of x's shape)."""
    return (lambda lib, x: (_places(lib, x, dim, like), x.detach().clone() + 0)), call


def _alone(call: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (lambda lib, x: ()), call


def _weights(call: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A call of (lib, x, a vector as long as the rows)."""
    return (lambda lib, x: (lib.rand(x.shape[-1]).to(x.dtype),)), call


# name: (what it takes besides x, the call); values of floating types have gradients, too
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{f"{name}({dim})": _alone(lambda lib, x, name=name, dim=dim: getattr(lib, name)(x, dim))
       for name in ("sum", "mean", "prod", "amax", "var", "logsumexp", "cumsum", "cumprod", "softmax", "log_softmax", "argmax") for dim in (0, 1)},
    **{name: _alone(lambda lib, x, name=name: getattr(lib, name)(x)) for name in ("sum", "mean", "amax", "std", "norm", "nonzero", "count_nonzero", "tril", "isnan", "unique")},
    "max(1)": _alone(lambda lib, x: lib.max(x, 1)[0]),
    "cummax(1)": _alone(lambda lib, x: lib.cummax(x, 1)[0]),
    "cummax(0)": _alone(lambda lib, x: lib.cummax(x, 0)[0]),
    "logcumsumexp(1)": _alone(lambda lib, x: lib.logcumsumexp(x, 1)),
    "median(1)": _alone(lambda lib, x: lib.median(x, 1)[0]),
    "sort(1)": _alone(lambda lib, x: lib.sort(x, 1)[0]),
    "sort(0)": _alone(lambda lib, x: lib.sort(x, 0)[0]),
    "argsort(1)": _alone(lambda lib, x: lib.argsort(x, 1)),
    "topk(2)": _alone(lambda lib, x: lib.topk(x, min(2, x.shape[1]))[0]),
    "kthvalue(1)": _alone(lambda lib, x: lib.kthvalue(x, 1)[0]),
    "copy": _alone(lambda lib, x: x.contiguous() if not x.is_contiguous() else x.clone()),
    "transposed copy": _alone(lambda lib, x: x.t().contiguous()),
    "flip(1)": _alone(lambda lib, x: lib.flip(x, (1,))),
    "roll(3, 1)": _alone(lambda lib, x: lib.roll(x, 3, 1)),
    "repeat(2, 2)": _alone(lambda lib, x: x.repeat(2, 2)),
    "repeat_interleave(2, 0)": _alone(lambda lib, x: lib.repeat_interleave(x, 2, 0)),
    "cat along 0": _alone(lambda lib, x: lib.cat((x, x), 0)),
    "cat along 1": _alone(lambda lib, x: lib.cat((x, x), 1)),
    "stack": _alone(lambda lib, x: lib.stack((x, x), 1)),
    "diff": _alone(lambda lib, x: lib.diff(x)),
    "unfold(1, 4, 2)": _alone(lambda lib, x: x.unfold(1, 4, 2)),
    "unfold(1, 4, 4)": _alone(lambda lib, x: x.unfold(1, 4, 4)),
    "slice": _alone(lambda lib, x: x[1:, ::2]),
    "pad(1, 1)": _alone(lambda lib, x: lib.nn.functional.pad(x, (1, 1))),
    "to float32": _alone(lambda lib, x: x.to(lib.float32) if x.dtype != lib.float32 else x.to(lib.float64)),
    "where": (lambda lib, x: (lib.rand(*x.shape) > 0.5,), lambda lib, x, m: lib.where(m, x, 0.0)),
    "masked_fill": (lambda lib, x: (lib.rand(*x.shape) > 0.5,), lambda lib, x, m: x.masked_fill(m, 0.0)),
    "x[mask]": (lambda lib, x: (lib.rand(*x.shape) > 0.5,), lambda lib, x, m: x[m]),
    "add a row": _weights(lambda lib, x, w: x + w),
    "layer_norm": _weights(lambda lib, x, w: lib.nn.functional.layer_norm(x, (x.shape[1],), w, w)),
    "rms_norm": _weights(lambda lib, x, w: lib.nn.functional.rms_norm(x, (x.shape[1],), w)),
    "x @ v": _weights(lambda lib, x, w: x @ w),
    "normalize": _alone(lambda lib, x: lib.nn.functional.normalize(x)),
    "cross_entropy": (lambda lib, x: (lib.randint(0, max(1, x.shape[1]), (x.shape[0],)),), lambda lib, x, t: lib.nn.functional.cross_entropy(x, t)),
    "x[i]": _at(0, "vector", lambda lib, x, i, y: x[i]),
    "index_select(1)": _at(1, "vector", lambda lib, x, i, y: lib.index_select(x, 1, i)),
    "index_add(0)": _at(0, "vector", lambda lib, x, i, y: lib.index_add(x, 0, i, y)),
    "index_add(1)": _at(1, "vector", lambda lib, x, i, y: lib.index_add(x, 1, i, y)),
    "index_copy(0)": _at(0, "vector", lambda lib, x, i, y: lib.index_copy(x, 0, i, y)),
    **{f"gather({dim}){' by an expanded index' if like else ''}": _at(dim, like, lambda lib, x, i, y, dim=dim: lib.gather(x, dim, i)) for dim in (0, 1) for like in (None, "expanded")},
    **{f"scatter_add({dim}){' by an expanded index' if like else ''}": _at(dim, like, lambda lib, x, i, y, dim=dim: lib.scatter_add(x, dim, i, y)) for dim in (0, 1) for like in (None, "expanded")},
    **{f"scatter_reduce({reduce}) by an expanded index": _at(0, "expanded", lambda lib, x, i, y, reduce=reduce: lib.scatter_reduce(x, 0, i, y, reduce, include_self=False))
       for reduce in ("mean", "amax", "prod")},
    "searchsorted": (lambda lib, x: (lib.randn(1000).sort()[0].to(x.dtype),), lambda lib, x, s: lib.searchsorted(s, x.detach())),
    "dropout": _alone(lambda lib, x: lib.nn.functional.dropout(x, 0.5)),
}  # fmt: skip

IMAGE_CALLS: dict[str, Callable[..., Any]] = {
    "avg_pool2d(2)": lambda lib, x: lib.nn.functional.avg_pool2d(x, 2),
    "max_pool2d(3, 2)": lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2),
    "adaptive_avg_pool2d(1)": lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1),
    "adaptive_avg_pool2d(3)": lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d(1)": lambda lib, x: lib.nn.functional.adaptive_max_pool2d(x, 1),
    "interpolate nearest": lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2),
    "interpolate bilinear": lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "interpolate antialias": lambda lib, x: lib.nn.functional.interpolate(x, size=(5, 5), mode="bilinear", antialias=True),
    "pad constant": lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1)),
    "pad reflect": lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "batch_norm": lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True),
    "group_norm": lambda lib, x: lib.nn.functional.group_norm(x, 4),
    "sum of planes": lambda lib, x: x.sum((2, 3)),
    "mean of channels": lambda lib, x: x.mean(1),
    "sum to channels": lambda lib, x: x.sum((0, 2, 3)),
    "cat of channels": lambda lib, x: lib.cat((x, x), 1),
    "softmax of channels": lambda lib, x: lib.softmax(x, 1),
    "flatten": lambda lib, x: x.flatten(1) * 1,
    "permute copy": lambda lib, x: x.permute(0, 2, 3, 1).contiguous(),
    "pixel_shuffle": lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2),
    "unfold": lambda lib, x: lib.nn.functional.unfold(x, 3),
    "relu": lambda lib, x: lib.relu(x),
    "x * scale": lambda lib, x: x * lib.ones(1, x.shape[1], 1, 1, dtype=x.dtype),
}


def _operands(make: Callable[[Any, Callable[..., Any]], Any], rest: Callable[..., Any], requires_grad: bool) -> Callable[[Any], tuple[Any, ...]]:
    def operands(lib: Any) -> tuple[Any, ...]:
        x = make(lib, lib.randn)
        if requires_grad:
            x = x.detach().requires_grad_()
        return (x, *rest(lib, x))

    return operands


def _differentiable(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call; a result without a gradient means that there is nothing to time."""

    def checked(lib: Any, *operands: Any) -> Any:
        y = call(lib, *operands)
        if not getattr(y, "requires_grad", False):
            raise NotImplementedError("the result has no gradient")
        return y

    return checked


def _pointwise(name: str, kind: str, make: Callable[[Any, Callable[..., Any]], Any]) -> Any:
    count, low, high = _RANGES[kind]

    def build(lib: Any, threads: int) -> Any:
        f = next(g for g in (getattr(lib, name, None), getattr(lib.nn.functional, name, None), getattr(lib.nn.functional, name.replace("_", ""), None)) if g)
        operands = [make(lib, lambda *shape: lib.empty(*shape).uniform_(low, high)) for _ in range(count)]
        f(*operands)
        return lambda: f(*operands)

    return build


def rows() -> list[Row]:
    found = []

    def add(name: str, build: Any) -> None:
        found.append(Row(name, "classes", build, limit=LIMIT, processor=True))

    for name, kind in sorted(_declarations.samples().items()):
        if kind in _RANGES and name not in CALLS:
            for label, make in {**CLASSES, "channels_last": IMAGES["channels_last"]}.items():
                add(f"{name}, {label}", _pointwise(name, kind, make))
    for name, (rest, call) in CALLS.items():
        for label, make in CLASSES.items():
            add(f"{name}, {label}", of_operands(_operands(make, rest, False), call))
            add(f"{name} gradient, {label}", gradient_of(_operands(make, rest, True), _differentiable(call)))
    for name, image_call in IMAGE_CALLS.items():
        for label, make in IMAGES.items():
            add(f"{name}, {label} images", of_operands(_operands(make, lambda lib, x: (), False), image_call))
            add(f"{name} gradient, {label} images", gradient_of(_operands(make, lambda lib, x: (), True), _differentiable(image_call)))
    return found
