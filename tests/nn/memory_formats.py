"""Operators and layouts of test_memory_formats.py: each operator as a function of a library and an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operator = Callable[[Any, Any], Any]


def _functional(name: str, *args: Any, **options: Any) -> Operator:
    return lambda lib, x: getattr(lib.nn.functional, name)(x, *args, **options)


def _function(name: str, *args: Any, **options: Any) -> Operator:
    return lambda lib, x: getattr(lib, name)(x, *args, **options)


def _with(name: str, *shapes: tuple[int, ...], **options: Any) -> Operator:
    """A function whose further operands are contiguous tensors of given shapes."""

    def call(lib: Any, x: Any) -> Any:
        rest = [lib.full(shape, 0.5, dtype=x.dtype) for shape in shapes]
        return getattr(lib.nn.functional, name)(x, *rest, **options)

    return call


def _channels(x: Any) -> int:
    return int(x.shape[1])


def _conv(n: int, k: int, transposed: bool = False, last: bool = False, groups: bool = False) -> Operator:
    def call(lib: Any, x: Any) -> Any:
        c = _channels(x)
        shape = ((c, 1) if groups else (c, 4) if transposed else (4, c)) + (k,) * n
        weight = lib.full(shape, 0.5, dtype=x.dtype)
        if last:
            weight = weight.contiguous(memory_format=lib.channels_last if n == 2 else lib.channels_last_3d)
        name = f"conv_transpose{n}d" if transposed else f"conv{n}d"
        return getattr(lib.nn.functional, name)(x, weight, groups=c if groups else 1)

    return call


def _batch_norm(lib: Any, x: Any) -> Any:
    return lib.nn.functional.batch_norm(x, lib.zeros(_channels(x), dtype=x.dtype), lib.ones(_channels(x), dtype=x.dtype))


def _batch_norm_training(lib: Any, x: Any) -> Any:
    return lib.nn.functional.batch_norm(x, None, None, training=True)


def _unpool(n: int) -> Operator:
    def call(lib: Any, x: Any) -> Any:
        functional = lib.nn.functional
        y, at = getattr(functional, f"max_pool{n}d")(x, 2, return_indices=True)
        return getattr(functional, f"max_unpool{n}d")(y, at, 2)

    return call


def _unpool_plain(n: int) -> Operator:
    """max_unpool of the input itself."""

    def call(lib: Any, x: Any) -> Any:
        sizes = tuple(x.shape)
        count = 1
        for size in sizes[2:]:
            count *= size
        at = lib.arange(count).reshape(sizes[2:]).expand(sizes).clone()
        return getattr(lib.nn.functional, f"max_unpool{n}d")(x, at, 2)

    return call


def _resize(size: Any, mode: str, **options: Any) -> Operator:
    return lambda lib, x: lib.nn.functional.interpolate(x, size=size, mode=mode, **options)


def _grid(n: int, mode: str) -> Operator:
    def call(lib: Any, x: Any) -> Any:
        grid = lib.linspace(-1, 1, x.shape[0] * 3**n * n, dtype=x.dtype).reshape(x.shape[0], *((3,) * n), n)
        return lib.nn.functional.grid_sample(x, grid, mode=mode, align_corners=False)

    return call


def _index(lib: Any, x: Any) -> Any:
    return x[lib.tensor([0] * 3)]


def _index_channels(lib: Any, x: Any) -> Any:
    return x[:, lib.tensor([0] * 3)]


def _index_last(lib: Any, x: Any) -> Any:
    return x[..., lib.tensor([0, 1])]


def _index_pair(lib: Any, x: Any) -> Any:
    return x[lib.tensor([0]), :, lib.tensor([1])]


def _index_put(lib: Any, x: Any) -> Any:
    return x.index_put((lib.tensor([0]),), lib.ones((), dtype=x.dtype))


def _masked_fill(lib: Any, x: Any) -> Any:
    return x.masked_fill(x > 0.5, 0.0)


def _masked_fill_contiguous(lib: Any, x: Any) -> Any:
    return x.masked_fill(lib.ones(tuple(x.shape), dtype=lib.bool), 0.0)


def _dropout(name: str) -> Operator:
    return lambda lib, x: getattr(lib.nn.functional, name)(x, 0.5, training=True)


def _where(lib: Any, x: Any) -> Any:
    return lib.where(x > 0.5, x, lib.zeros((), dtype=x.dtype))


def _prelu(lib: Any, x: Any) -> Any:
    return lib.nn.functional.prelu(x, lib.full((_channels(x),), 0.25, dtype=x.dtype))


_POINTWISE = ["relu", "relu6", "elu", "selu", "celu", "leaky_relu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "softplus", "softsign", "tanhshrink",
              "logsigmoid", "softshrink", "hardshrink", "sigmoid", "tanh"]  # fmt: skip

ANY: dict[str, Operator] = {
    **{name: _functional(name) for name in _POINTWISE},
    "threshold": _functional("threshold", 0.5, 0.1),
    "rrelu": _functional("rrelu"),
    "rrelu training": _functional("rrelu", training=True),
    "prelu": _prelu,
    "glu": _functional("glu", 2),
    "softmax": _functional("softmax", 1),
    "softmax last": _functional("softmax", -1),
    "log_softmax": _functional("log_softmax", 1),
    "softmin": _functional("softmin", 1),
    "normalize": _functional("normalize"),
    "dropout": _dropout("dropout"),
    "alpha_dropout": _dropout("alpha_dropout"),
    "feature_alpha_dropout": _dropout("feature_alpha_dropout"),
    "dropout1d": _dropout("dropout1d"),
    "dropout2d": _dropout("dropout2d"),
    "dropout3d": _dropout("dropout3d"),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, tuple(x.shape[2:])),
    "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, (x.shape[-1],)),
    "group_norm": _functional("group_norm", 1),
    "group_norm affine": lambda lib, x: lib.nn.functional.group_norm(x, 1, lib.ones(_channels(x), dtype=x.dtype), lib.ones(_channels(x), dtype=x.dtype)),
    "instance_norm": _functional("instance_norm"),
    "batch_norm": _batch_norm,
    "batch_norm training": _batch_norm_training,
    "local_response_norm": _functional("local_response_norm", 2),
    "linear": lambda lib, x: lib.nn.functional.linear(x, lib.full((3, x.shape[-1]), 0.5, dtype=x.dtype)),
    "one more": lambda lib, x: x + 1,
    "plus itself": lambda lib, x: x + x,
    "plus contiguous": lambda lib, x: x + lib.ones(tuple(x.shape), dtype=x.dtype),
    "contiguous plus": lambda lib, x: lib.ones(tuple(x.shape), dtype=x.dtype) + x,
    "times channels": lambda lib, x: x * lib.ones((_channels(x),) + (1,) * (x.dim() - 2), dtype=x.dtype),
    "addcmul": lambda lib, x: lib.addcmul(x, x, x),
    "lerp": lambda lib, x: lib.lerp(x, x, 0.5),
    "clamp": _function("clamp", 0.2, 0.7),
    "clone": _function("clone"),
    "contiguous": lambda lib, x: x.contiguous(),
    "double": lambda lib, x: x.double().float(),
    "zeros_like": lambda lib, x: lib.zeros_like(x) + x,
    "cat": lambda lib, x: lib.cat([x, x], 1),
    "cat 0": lambda lib, x: lib.cat([x, x], 0),
    "cat one": lambda lib, x: lib.cat([x], 1),
    "cat with contiguous": lambda lib, x: lib.cat([x, lib.ones(tuple(x.shape), dtype=x.dtype)], 1),
    "stack": lambda lib, x: lib.stack([x, x], 0),
    "stack 1": lambda lib, x: lib.stack([x, x], 1),
    "index rows": _index,
    "index channels": _index_channels,
    "index columns": _index_last,
    "index pair": _index_pair,
    "index_put": _index_put,
    "index_select": lambda lib, x: lib.index_select(x, 1, lib.tensor([0, 0])),
    "index_add": lambda lib, x: x.index_add(0, lib.tensor([0]), lib.ones((1, *x.shape[1:]), dtype=x.dtype)),
    "index_fill": lambda lib, x: x.index_fill(0, lib.tensor([0]), 1.0),
    "index_copy": lambda lib, x: x.index_copy(0, lib.tensor([0]), lib.ones((1, *x.shape[1:]), dtype=x.dtype)),
    "gather": lambda lib, x: x.gather(1, lib.zeros(tuple(x.shape), dtype=lib.int64)),
    "scatter": lambda lib, x: x.scatter(1, lib.zeros(tuple(x.shape), dtype=lib.int64), 1.0),
    "scatter_add": lambda lib, x: x.scatter_add(1, lib.zeros(tuple(x.shape), dtype=lib.int64), lib.ones(tuple(x.shape), dtype=x.dtype)),
    "masked_fill": _masked_fill,
    "masked_fill contiguous mask": _masked_fill_contiguous,
    "masked_scatter": lambda lib, x: x.masked_scatter(x > 0.5, lib.ones(tuple(x.shape), dtype=x.dtype)),
    "where": _where,
    "renorm": _function("renorm", 2, 0, 0.5),
    "flip": _function("flip", (2,)),
    "roll": _function("roll", 1, 2),
    "repeat": lambda lib, x: x.repeat((1,) * (x.dim() - 1) + (2,)),
    "tril": lambda lib, x: x.tril(),
    "cumsum": _function("cumsum", 1),
    "cumprod": _function("cumprod", 1),
    "sort": lambda lib, x: lib.sort(x, 1)[0],
    "topk": lambda lib, x: lib.topk(x, 1, 1)[0],
    "sum": lambda lib, x: x.sum(1, keepdim=True),
    "sum of all but channels": lambda lib, x: x.sum(0),
    "mean": lambda lib, x: x.mean((-1, -2), keepdim=True),
    "amax": lambda lib, x: x.amax(1, keepdim=True),
    "max": lambda lib, x: x.max(1, keepdim=True)[0],
    "var": lambda lib, x: x.var(0, keepdim=True),
    "to half": lambda lib, x: x.half().float(),
    "pad constant": _functional("pad", (1, 1)),
    "pad constant all": lambda lib, x: lib.nn.functional.pad(x, (1, 1) * x.dim()),
    "pad nothing": _functional("pad", (0, 0)),
    "pad cut": _functional("pad", (-1, 0)),
}  # fmt: skip

TWO: dict[str, Operator] = {
    **{f"conv {k}x{k}{' last' * last}": _conv(2, k, last=last) for k in (1, 3) for last in (False, True)},
    "conv depthwise": _conv(2, 3, groups=True),
    "conv depthwise last": _conv(2, 3, last=True, groups=True),
    "conv transposed": _conv(2, 3, transposed=True),
    "conv transposed last": _conv(2, 3, transposed=True, last=True),
    "max_pool2d": _functional("max_pool2d", 2),
    "max_pool2d overlapping": _functional("max_pool2d", 3, 2, 1),
    "max_pool2d indices": lambda lib, x: lib.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": _functional("avg_pool2d", 2),
    "avg_pool2d overlapping": _functional("avg_pool2d", 3, 2, 1),
    "lp_pool2d": _functional("lp_pool2d", 2, 2),
    "adaptive_avg_pool2d": _functional("adaptive_avg_pool2d", (2, 3)),
    "adaptive_avg_pool2d one": _functional("adaptive_avg_pool2d", 1),
    "adaptive_max_pool2d": _functional("adaptive_max_pool2d", (2, 3)),
    "adaptive_max_pool2d one": _functional("adaptive_max_pool2d", 1),
    "adaptive_max_pool2d indices": lambda lib, x: lib.nn.functional.adaptive_max_pool2d(x, (2, 3), return_indices=True)[1],
    "fractional_max_pool2d": lambda lib, x: lib.nn.functional.fractional_max_pool2d(x, 2, (2, 2), _random_samples=lib.full((x.shape[0], x.shape[1], 2), 0.5, dtype=x.dtype)),
    "max_unpool2d": _unpool(2),
    "max_unpool2d of it": _unpool_plain(2),
    "nearest": _resize((7, 5), "nearest"),
    "nearest-exact": _resize((7, 5), "nearest-exact"),
    "bilinear": _resize((7, 5), "bilinear"),
    "bilinear corners": _resize((7, 5), "bilinear", align_corners=True),
    "bicubic": _resize((7, 5), "bicubic"),
    "bilinear antialias": _resize((3, 4), "bilinear", antialias=True),
    "bicubic antialias": _resize((3, 4), "bicubic", antialias=True),
    "area": _resize((3, 4), "area"),
    "bilinear same size": lambda lib, x: lib.nn.functional.interpolate(x, size=tuple(x.shape[2:]), mode="bilinear"),
    "nearest to one": _resize((1, 1), "nearest"),
    "pixel_shuffle": lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2 if x.shape[1] % 4 == 0 else 1),
    "pixel_unshuffle": lambda lib, x: lib.nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda lib, x: lib.nn.functional.channel_shuffle(x, 2 if x.shape[1] % 2 == 0 else 1),
    "unfold": _functional("unfold", 2),
    "fold": lambda lib, x: lib.nn.functional.fold(lib.nn.functional.unfold(x, 2), tuple(x.shape[2:]), 2),
    "grid_sample": _grid(2, "bilinear"),
    "grid_sample nearest": _grid(2, "nearest"),
    "grid_sample bicubic": _grid(2, "bicubic"),
    "pad reflect": _functional("pad", (1, 1, 1, 1), "reflect"),
    "pad replicate": _functional("pad", (1, 1, 1, 1), "replicate"),
    "pad circular": _functional("pad", (1, 1, 1, 1), "circular"),
    "rot90": _function("rot90", 1, (2, 3)),
}  # fmt: skip

THREE: dict[str, Operator] = {
    "conv3d": _conv(3, 3),
    "conv3d 1": _conv(3, 1),
    "conv3d last": _conv(3, 3, last=True),
    "conv_transpose3d": _conv(3, 3, transposed=True),
    "conv_transpose3d last": _conv(3, 3, transposed=True, last=True),
    "max_pool3d": _functional("max_pool3d", 2),
    "max_pool3d overlapping": _functional("max_pool3d", 3, 2, 1),
    "max_pool3d indices": lambda lib, x: lib.nn.functional.max_pool3d(x, 2, return_indices=True)[1],
    "avg_pool3d": _functional("avg_pool3d", 2),
    "avg_pool3d overlapping": _functional("avg_pool3d", 3, 2, 1),
    "lp_pool3d": _functional("lp_pool3d", 2, 2),
    "adaptive_avg_pool3d": _functional("adaptive_avg_pool3d", (2, 3, 2)),
    "adaptive_avg_pool3d one": _functional("adaptive_avg_pool3d", 1),
    "adaptive_max_pool3d": _functional("adaptive_max_pool3d", (2, 3, 2)),
    "adaptive_max_pool3d one": _functional("adaptive_max_pool3d", 1),
    "adaptive_max_pool3d indices": lambda lib, x: lib.nn.functional.adaptive_max_pool3d(x, (2, 3, 2), return_indices=True)[1],
    "fractional_max_pool3d": lambda lib, x: lib.nn.functional.fractional_max_pool3d(x, 2, (2, 2, 2), _random_samples=lib.full((x.shape[0], x.shape[1], 3), 0.5, dtype=x.dtype)),
    "max_unpool3d": _unpool(3),
    "max_unpool3d of it": _unpool_plain(3),
    "nearest": _resize((7, 5, 4), "nearest"),
    "nearest-exact": _resize((7, 5, 4), "nearest-exact"),
    "trilinear": _resize((7, 5, 4), "trilinear"),
    "trilinear corners": _resize((7, 5, 4), "trilinear", align_corners=True),
    "area": _resize((3, 4, 2), "area"),
    "grid_sample": _grid(3, "bilinear"),
    "pad reflect": _functional("pad", (1,) * 6, "reflect"),
    "pad replicate": _functional("pad", (1,) * 6, "replicate"),
    "pad circular": _functional("pad", (1,) * 6, "circular"),
}  # fmt: skip

ONE: dict[str, Operator] = {
    "conv": _conv(1, 3),
    "conv 1": _conv(1, 1),
    "conv transposed": _conv(1, 3, transposed=True),
    "max_pool1d": _functional("max_pool1d", 2),
    "avg_pool1d": _functional("avg_pool1d", 2),
    "lp_pool1d": _functional("lp_pool1d", 2, 2),
    "adaptive_avg_pool1d": _functional("adaptive_avg_pool1d", 2),
    "adaptive_max_pool1d": _functional("adaptive_max_pool1d", 2),
    "max_unpool1d": _unpool(1),
    "nearest": _resize(7, "nearest"),
    "nearest-exact": _resize(7, "nearest-exact"),
    "linear": _resize(7, "linear"),
    "area": _resize(3, "area"),
    "pad reflect": _functional("pad", (1, 1), "reflect"),
    "pad replicate": _functional("pad", (1, 1), "replicate"),
    "pad circular": _functional("pad", (1, 1), "circular"),
}

OPERATORS: dict[int, dict[str, Operator]] = {3: {**ANY, **ONE}, 4: {**ANY, **TWO}, 5: {**ANY, **THREE}}


def _base(lib: Any, shape: tuple[int, ...], dtype: str) -> Any:
    count = 1
    for size in shape:
        count *= size
    values = lib.arange(count) * 37 % 101
    return (values if dtype == "uint8" else values / 101.0).to(getattr(lib, dtype)).reshape(shape)


def _last(lib: Any, x: Any) -> Any:
    return x.contiguous(memory_format=lib.channels_last if x.dim() == 4 else lib.channels_last_3d)


def _layouts(ndim: int) -> dict[str, Callable[[Any, str], Any]]:
    shape = (2, 4, 8, 6, 4)[:ndim]
    spatial = shape[2:]
    inner = (slice(None), slice(None), *(slice(1, -1),) * (ndim - 2))

    def reordered(order: tuple[int, ...]) -> Callable[[Any, str], Any]:
        places = [order.index(i) for i in range(ndim)]
        return lambda lib, dtype: _base(lib, tuple(shape[i] for i in order), dtype).permute(places)

    found: dict[str, Callable[[Any, str], Any]] = {
        "contiguous": lambda lib, dtype: _base(lib, shape, dtype),
        "contiguous N=1": lambda lib, dtype: _base(lib, (1, *shape[1:]), dtype),
        "contiguous C=1": lambda lib, dtype: _base(lib, (2, 1, *spatial), dtype),
        "contiguous sliced": lambda lib, dtype: _base(lib, (2, 4, *(n + 2 for n in spatial)), dtype)[inner],
        "contiguous first channels": lambda lib, dtype: _base(lib, (2, 6, *spatial), dtype)[:, :4],
        "last two swapped": reordered((*range(ndim - 2), ndim - 1, ndim - 2)),
        "first two swapped": reordered((1, 0, *range(2, ndim))),
        "reversed": reordered(tuple(range(ndim - 1, -1, -1))),
        "expanded rows": lambda lib, dtype: _base(lib, (1, *shape[1:]), dtype).expand(2, *shape[1:]),
        "expanded channels": lambda lib, dtype: _base(lib, (2, 1, *spatial), dtype).expand(shape),
        "every other": lambda lib, dtype: _base(lib, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::2],
    }
    if ndim == 3:
        found["channels last"] = reordered((0, 2, 1))
        return found
    found |= {
        "channels_last": lambda lib, dtype: _last(lib, _base(lib, shape, dtype)),
        "channels_last sliced": lambda lib, dtype: _last(lib, _base(lib, (2, 4, *(n + 2 for n in spatial)), dtype))[inner],
        "channels_last first channels": lambda lib, dtype: _last(lib, _base(lib, (2, 6, *spatial), dtype))[:, :4],
        "channels_last one channel of six": lambda lib, dtype: _last(lib, _base(lib, (2, 6, *spatial), dtype))[:, :1],
        "channels_last every other row": lambda lib, dtype: _last(lib, _base(lib, (4, *shape[1:]), dtype))[::2],
        "channels_last N=1": lambda lib, dtype: _last(lib, _base(lib, (1, *shape[1:]), dtype)),
        "channels_last C=1": lambda lib, dtype: _last(lib, _base(lib, (2, 1, *spatial), dtype)),
        "channels_last x[0][None]": lambda lib, dtype: _last(lib, _base(lib, shape, dtype))[0][None],
        "channels_last x[0:1]": lambda lib, dtype: _last(lib, _base(lib, shape, dtype))[0:1],
        "channels_last expanded rows": lambda lib, dtype: _last(lib, _base(lib, (1, *shape[1:]), dtype)).expand(2, *shape[1:]),
    }
    return found


LAYOUTS: dict[int, dict[str, Callable[[Any, str], Any]]] = {n: _layouts(n) for n in (3, 4, 5)}

_MANY = frozenset(("channels_last", "channels_last sliced", "channels_last N=1", "channels_last C=1", "contiguous sliced", "reversed", "expanded rows"))


def layouts_of(ndim: int, operator: str) -> dict[str, Callable[[Any, str], Any]]:
    """All layouts for operators over planes and volumes, some for those that take any tensor."""
    return {name: make for name, make in LAYOUTS[ndim].items() if operator not in ANY or name in _MANY}


_COTANGENT_FIRST = "gradients have the cotangent's order of dimensions, PyTorch's that of the saved input (or the other way round)"
_DENSE = "PyTorch's result is contiguous whatever the input"
_COMPOSED = "gradients of views and copies are contiguous, PyTorch's channels_last"
_CHOICE = "PyTorch chooses a kernel by the size of the work"

# What differs in some layout, with the reason: the test fails when an entry does not differ any more.
DIFFERENT: dict[str, str] = {
    **dict.fromkeys(("relu", "leaky_relu", "threshold", "prelu", "clamp", "where", "dropout"), _COTANGENT_FIRST),
    "logsigmoid": _DENSE,
    "rrelu": _DENSE,
    "glu": "PyTorch's gradient is contiguous",
    "mean": "the gradient is an expanded view",
    "adaptive_avg_pool2d one": "PyTorch's is mean(), whose gradient is contiguous",
    "lp_pool2d": "powers of x[0][None] have its strides, in PyTorch those of channels_last",
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"), _COMPOSED),
    **dict.fromkeys(("conv3d", "conv3d 1", "conv3d last", "conv_transpose3d", "conv_transpose3d last"), _CHOICE),
}  # fmt: skip
