"""Rules of convolution, pooling, resampling, normalisation, attention and losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._transforms.batching import Call, flattened, loop, padded, rule, to_front

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite import Tensor


def fold(x: Tensor) -> Tensor:
    """(B, N, ...) -> (B N, ...)"""
    return flattened(x, 0, 2)


def unfold(x: Any, size: int) -> Any:
    """(B N, ...) -> (B, N, ...), of each tensor."""
    if isinstance(x, trt.Tensor):
        return x.reshape(size, x.shape[0] // size if size else 0, *x.shape[1:])
    return tuple(unfold(y, size) for y in x)


# ---- convolution -----------------------------------------------------------------------------------------------------


def beside_channels(x: Tensor) -> Tensor:
    """(B, N, C, ...) -> (N, B C, ...)"""
    moved = x.movedim(0, 1)
    return flattened(moved, 1, 2)


def from_channels(x: Tensor, size: int) -> Tensor:
    """(N, B C, ...) -> (B, N, C, ...)"""
    return x.reshape(x.shape[0], size, x.shape[1] // size if size else 0, *x.shape[2:]).movedim(1, 0)


@rule("convolution")
def _convolution(call: Call) -> Tensor:
    bias = call["bias"]
    if not call.batched("weight"):
        if bias is not None and call.batched("bias"):
            result = unfold(call.run(input=fold(call.front("input")), bias=None), call.size) if call.batched("input") else call.run(bias=None).unsqueeze(0)
            return result + _of_channels(call.front("bias"), result)
        return unfold(call.run(input=fold(call.front("input"))), call.size)
    weight, groups = call.front("weight"), call["groups"]
    if not call.batched("input") and groups == 1 and not call["transposed"]:
        result = call.run(weight=fold(weight), bias=None)
    else:
        result = call.run(input=beside_channels(call.front("input")), weight=fold(weight), bias=None, groups=groups * call.size)
    result = from_channels(result, call.size)
    if bias is None:
        return result
    return result + (_of_channels(call.front("bias"), result) if call.batched("bias") else bias.reshape(-1, *[1] * (result.dim() - 3)))


def _of_channels(bias: Tensor, result: Tensor) -> Tensor:
    """(B, C) beside (B, N, C, ...)"""
    return bias.reshape(bias.shape[0], 1, -1, *[1] * (result.dim() - 3))


@rule("convolution_backward")
def _convolution_backward(call: Call) -> Any:
    """The input's gradient folds where one weight is for all; that of a batch of weights is one of groups."""
    by_input, by_weight, by_bias = call["output_mask"]
    grad, x = call.front("grad_output"), call.front("input")
    weight = bias = None
    if by_bias:
        bias = grad.sum([1, *range(3, grad.dim())])
    if by_weight or call.batched("weight"):
        given = {"grad_output": beside_channels(grad), "input": beside_channels(x), "weight": fold(call.front("weight"))}
        wanted = [by_input and call.batched("weight"), by_weight, False]
        input, weight, _ = call.run(**given, groups=call["groups"] * call.size, output_mask=wanted)
        weight = None if weight is None else unfold(weight, call.size)
        input = None if input is None else from_channels(input, call.size)
    if by_input and not call.batched("weight"):
        input = unfold(call.run(grad_output=fold(grad), input=fold(x), output_mask=[True, False, False])[0], call.size)
    return input if by_input else None, weight, bias


# ---- operators on images --------------------------------------------------------------------------------------------


def by_images(spatial: int, tensors: tuple[str, ...], size: str | None = None, several: tuple[str, ...] = ()) -> Callable[[Call], Any]:
    """The rule of an operator on (N, C, spatial dimensions) or (C, spatial dimensions) of `tensors`.

    size: an argument with the shape of a batch of images. several: tensors that have N also beside a single image.
    """

    def run(call: Call) -> Any:
        values = list(call.values)
        single = call.rank(tensors[0]) == spatial + 1
        for name in (*tensors, *several):
            x = call.front(name)
            values[call.position(name)] = x if single and name not in several else fold(x)
        if size is not None:
            i = call.position(size)
            given = list(values[i])
            if len(given) == spatial + 2:
                given[0] *= call.size
            elif single and len(given) == spatial + 1:
                given = [call.size, *given]
            values[i] = given
        result = call.run(*values)
        return result if single else unfold(result, call.size)

    return run


# ---- normalisation -------------------------------------------------------------------------------------------------


@rule("native_layer_norm")
def _layer_norm(call: Call) -> Any:
    x = call.front("input")
    if not call.batched("weight") and not call.batched("bias"):
        return call.run(input=x)
    rank = call.rank("input")
    y, mean, rstd = call.run(input=x, weight=None, bias=None)
    return _affine(call, y, rank), mean, rstd


def _affine(call: Call, y: Tensor, rank: int, shape: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """y * weight + bias of parameters that may be batched."""
    for name in ("weight", "bias"):
        p = call[name] if "weight" == name or name in _with_bias(call) else None
        if p is None:
            continue
        p = call.front(name)
        p = padded(p, rank) if shape is None else shape(p)
        y = (y * p if name == "weight" else y + p).to(y.dtype)
    return y


def _with_bias(call: Call) -> tuple[str, ...]:
    return () if call.name == "_fused_rms_norm" else ("bias",)


@rule("_fused_rms_norm")
def _rms_norm(call: Call) -> Any:
    x = call.front("input")
    if not call.batched("weight"):
        return call.run(input=x)
    y, rstd = call.run(input=x, weight=None)
    return _affine(call, y, call.rank("input")), rstd


@rule("native_group_norm")
def _group_norm(call: Call) -> Any:
    x = call.front("input")
    batch = call["N"] * call.size
    if not call.batched("weight") and not call.batched("bias"):
        return unfold(call.run(input=fold(x), N=batch), call.size)
    y, mean, rstd = unfold(call.run(input=fold(x), N=batch, weight=None, bias=None), call.size)
    return _affine(call, y, 0, lambda p: p.reshape(p.shape[0], 1, -1, *[1] * (x.dim() - 3))), mean, rstd


@rule("native_batch_norm")
def _batch_norm(call: Call) -> Any:
    """The batch's elements side by side as channels; their statistics are apart."""
    if call.rank("input") < 2:
        return loop(call)
    x = call.front("input")
    training, size = call["training"], call.size
    statistics = {}
    for name in ("running_mean", "running_var"):
        if call[name] is None:
            continue
        if training and not call.batched(name):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not batched.\nIf you are using a "
                "module and do not need eval mode, please set `track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please see "
                "the functorch website for resources on how to patch your module to work with vmap"
            )
        statistics[name] = call.front(name).reshape(-1).contiguous()
    wide = beside_channels(x) if x.dim() > 2 else x.reshape(1, -1)
    y, mean, rstd = call.run(input=wide, weight=None, bias=None, **statistics)
    if training:
        for name, value in statistics.items():
            i = call.position(name)
            to_front(call.values[i].detach(), call.dims[i]).copy_(value.detach().view(size, -1))
    y = from_channels(y, size)
    y = _affine(call, y, 0, lambda p: p.reshape(p.shape[0], 1, -1, *[1] * (x.dim() - 3)))
    return (y, mean.view(size, -1), rstd.view(size, -1)) if training else (y, mean.view(1, 0).expand(size, 0), rstd.view(1, 0).expand(size, 0))


# ---- losses --------------------------------------------------------------------------------------------------------


_NONE, _MEAN, _SUM = 0, 1, 2


@rule("nll_loss_forward", "nll_loss2d_forward", "trtl_cross_entropy")
def _class_loss(call: Call) -> Any:
    """Each element's own sum or mean: rows are folded and reduced apart."""
    if call.batched("weight"):
        return loop(call)
    x, target, reduction = call.front("self"), call.front("target"), call["reduction"]
    ignored = call["ignore_index"]
    if call.rank("self") == 1:
        flat_x, flat_target = x, target.reshape(call.size)
    else:
        flat_x, flat_target = fold(x), fold(target)
    results = call.run(self=flat_x, target=flat_target, reduction=_NONE)
    rows = results[0].reshape(call.size, *target.shape[1:])
    counted = flat_target != ignored
    weight = call["weight"]
    shares = counted.to(x.dtype) if weight is None else weight[flat_target.clamp(0, weight.shape[0] - 1).to(trt.int64)].to(x.dtype) * counted
    total = shares.reshape(call.size, shares.numel() // max(call.size, 1)).sum(1)
    if reduction == _NONE:
        loss = rows
    else:
        loss = flattened(rows, 1, rows.dim() - 1).sum(1)
        if reduction == _MEAN:
            loss = loss / total
    if call.name != "trtl_cross_entropy":
        return loss, total.to(results[1].dtype)
    return loss, results[1].reshape(call.size, results[1].numel() // max(call.size, 1)), total.to(results[2].dtype)


@rule("nll_loss_backward", "nll_loss2d_backward")
def _class_loss_backward(call: Call) -> Any:
    if call.batched("weight"):
        return loop(call)
    x, target, grad, reduction = call.front("self"), call.front("target"), call.front("grad_output"), call["reduction"]
    if reduction == _MEAN:
        grad = grad / call.front("total_weight").to(grad.dtype)
    if reduction != _NONE:
        grad = padded(grad, target.dim() - 1).expand(target.shape)
    single = call.rank("self") == 1
    given = {"self": x if single else fold(x), "target": target.reshape(call.size) if single else fold(target)}
    total = call["total_weight"] if not call.batched("total_weight") else call.front("total_weight")[0]
    result = call.run(grad_output=grad.reshape(given["target"].shape), total_weight=total, reduction=_NONE, **given)
    return result if single else unfold(result, call.size)


_PAIRS = ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy")


def _aligned(call: Call, names: tuple[str, ...]) -> dict[str, Any]:
    """Operands that broadcast, with the batch in front of dimensions of one number."""
    given = {name: call[name] for name in names if call[name] is not None}
    rank = max(call.rank(name) for name in given)
    return {name: padded(call.front(name), rank) for name in given}


@rule(*_PAIRS, "binary_cross_entropy_with_logits")
def _pair_loss(call: Call) -> Tensor:
    names = ("self", "target", "weight", "pos_weight")[: 2 if call.name in _PAIRS[:-1] else 3 if call.name in _PAIRS else 4]
    rows = call.run(reduction=_NONE, **_aligned(call, names))
    if call["reduction"] == _NONE:
        return rows
    rows = rows.reshape(call.size, rows.numel() // max(call.size, 1))
    return rows.mean(1) if call["reduction"] == _MEAN else rows.sum(1)


@rule(*(f"{name}_backward" for name in _PAIRS))
def _pair_loss_backward(call: Call) -> Tensor:
    names = ("self", "target", "weight") if call.name == "binary_cross_entropy_backward" else ("self", "target")
    given = _aligned(call, names)
    shape = trt.broadcast_shapes(given["self"].shape, given["target"].shape)
    grad = call.front("grad_output")
    if call["reduction"] == _MEAN:
        grad = grad / math.prod(shape[1:])
    grad = padded(grad, len(shape) - 1).expand(shape)
    return call.run(grad_output=grad, reduction=_NONE, **given).reshape(call.size, *call.front("self").shape[1:])
