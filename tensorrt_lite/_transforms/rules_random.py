"""Rules of operators that draw random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import transform
from tensorrt_lite._declared import declarations
from tensorrt_lite._transforms.batching import Call, Plain, padded, rule, to_front, writer

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

def _random_operators() -> list[str]:
    """The operators that draw: those with a generator, and masks."""
    rows = (declarations.of(name) for name in declarations.names())
    return ["_keep_mask", *(r.name.removesuffix("_") for r in rows if r.kind == "function" and "generator" in r.schema)]


transform.set_random_operators(_random_operators())


def check_randomness(level: Any) -> None:
    """RuntimeError where vmap was called with randomness="error"."""
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the "
            "randomness operation out of vmap"
        )


def _repeat(call: Call, drawn: Tensor) -> Tensor:
    """One draw for all of the batch."""
    return drawn.unsqueeze(0).expand(call.size, *drawn.shape)


@writer()
def fill(call: Call) -> None:
    check_randomness(call.level)
    target, dim = transform.unwrap(call.target, call.level)
    varying = any(d is not None for d in call.dims[1:])
    if dim is None:
        if call.level.randomness == "different" or varying:
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this is necessary for your "
                "usage, please file an issue with functorch."
            )
        transform.call_row(call.place, call.values, target, call.mode)
        return
    x = to_front(target, dim)
    rank = x.dim() - 1
    rest = [padded(to_front(v, d), rank) if d is not None else v for v, d in zip(call.values[1:], call.dims[1:])]
    if call.level.randomness == "different" or varying:
        transform.call_row(call.place, [x, *rest], x, call.mode)
        return
    one = x[:1].clone() if call.size else x
    transform.call_row(call.place, [one, *rest], one, call.mode)
    x.copy_(one)


def sample(call: Call) -> Any:
    check_randomness(call.level)
    tensors = [i for i, v in enumerate(call.values) if isinstance(v, trt.Tensor)]
    varying = [i for i in tensors if call.dims[i] is not None]
    values = list(call.values)
    rank = max(values[i].dim() - (call.dims[i] is not None) for i in tensors)
    if call.level.randomness == "same":
        if varying:
            raise RuntimeError("vmap: random operators of batched parameters cannot draw the same numbers for all of the batch; use randomness='different'")
        return Plain(call.run(*values))
    for i in tensors:
        values[i] = padded(call.expanded(values[i], call.dims[i]), rank).contiguous()
    return call.run(*values)


@rule("_sample_normal")
def _sample_normal(call: Call) -> Any:
    check_randomness(call.level)
    mean, std, mean_value, std_value, generator = call.values
    shapes = [x for x in (mean, std) if x is not None]
    rank = max(x.dim() - (d is not None) for x, d in zip(call.values[:2], call.dims[:2]) if x is not None)
    given = [None if x is None else padded(to_front(x, d), rank) if d is not None else x for x, d in zip(call.values[:2], call.dims[:2])]
    if call.level.randomness == "different":
        given = [None if x is None else x if d is not None else padded(call.expanded(x, None), rank) for x, d in zip(given, call.dims[:2])]
        return call.run(*given, mean_value, std_value, generator)
    if all(d is None for d in call.dims[:2]):
        return Plain(call.run(*call.values))
    shape = trt.broadcast_shapes(*(x.shape[1:] if d is not None else x.shape for x, d in zip(given, call.dims[:2]) if x is not None))
    noise = trt.empty(shape, dtype=shapes[0].dtype, device=shapes[0].device).normal_(generator=generator)
    return noise * (std_value if given[1] is None else given[1]) + (mean_value if given[0] is None else given[0])


@rule("_keep_mask")
def _keep_mask(call: Call) -> Any:
    """A mask depends on the shape of its input alone, so all of the batch can have the same."""
    check_randomness(call.level)
    x = call.expanded(call.values[0], call.dims[0]).contiguous()
    if call.level.randomness == "same" and call.size:
        return Plain(call.run(x[0], *call.values[1:]))
    return call.run(x, *call.values[1:])


@rule("rrelu_with_noise")
def _rrelu_with_noise(call: Call) -> Tensor:
    """In training the noise is drawn, and written to its tensor."""
    x, noise = call.front("self"), call.front("noise")
    if not call["training"]:
        return call.run(self=x, noise=noise)
    check_randomness(call.level)
    if call.level.randomness == "same":
        raise RuntimeError("vmap: rrelu in training draws as many numbers as there are positive elements; use randomness='different'")
    drawn = noise.contiguous()
    result = call.run(self=x.contiguous(), noise=drawn)
    if call.batched("noise") and drawn is not noise:
        noise.copy_(drawn)
    return result


def draw_multinomial(input: Any, num_samples: int, replacement: bool, generator: Any) -> Any:
    """multinomial at the innermost level."""
    level = transform.innermost()
    value, dim = transform.unwrap(input, level)
    with transform.lowered():
        if level.kind != "vmap":
            return transform.wrap(trt.multinomial(value, num_samples, replacement, generator=generator), level)
        check_randomness(level)
        if level.randomness == "same":
            if dim is not None:
                raise RuntimeError("vmap: random operators of batched parameters cannot draw the same numbers for all of the batch; use randomness='different'")
            return trt.multinomial(value, num_samples, replacement, generator=generator)
        x = value.unsqueeze(0).expand(level.batch_size, *value.shape) if dim is None else to_front(value, dim)
        rows = trt.multinomial(x.reshape(-1, x.shape[-1]), num_samples, replacement, generator=generator)
        return transform.wrap(rows.reshape(*x.shape[:-1], num_samples), level, 0)


transform.set_rule("multinomial", draw_multinomial)
