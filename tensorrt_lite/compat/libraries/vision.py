"""torchvision's operators (`torchvision::nms`, `roi_align`, ...) over ours: what detection models need.

Regions (rois) are (K, 5): the image's number in the batch and x1, y1, x2, y2 in the image's pixels; `spatial_scale` takes them to the feature map's. Gradients
flow to feature maps, as in torchvision, and not to regions. Formulas: Ren 2015 (RoI pooling), He 2017 (RoIAlign), Dai 2016 (position-sensitive),
Zhu 2019 (deformable convolution with masks).
"""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt
from tensorrt_lite.library import Library
from tensorrt_lite.nn import functional as F

__all__ = ["deform_conv2d", "nms", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool"]

_ROWS = 256  # candidates whose overlaps are computed at once


def _check(name: str, input: Any, rois: Any) -> None:
    if input.dim() != 4 or rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"torchvision::{name}: expected input (N, C, H, W) and rois (K, 5), got {tuple(input.shape)} and {tuple(rois.shape)}")
    if input.dtype != rois.dtype:
        raise RuntimeError(f"torchvision::{name}: expected input and rois of one type, got {input.dtype} and {rois.dtype}")
    numbers = rois[:, 0]
    if rois.shape[0] and not bool(((numbers >= 0) & (numbers < input.shape[0])).all()):
        raise IndexError(f"torchvision::{name}: rois name images outside of the batch of {input.shape[0]}")


def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Indices of boxes that no better box overlaps by more than the threshold, the best first. dets: (N, 4) as x1, y1, x2, y2; scores: (N,) -> (M,) int64."""
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"torchvision::nms: boxes should be a 2d tensor of size (N, 4), got {tuple(dets.shape)}")
    if scores.dim() != 1 or scores.shape[0] != dets.shape[0]:
        raise RuntimeError(f"torchvision::nms: boxes and scores should have the same number of elements, got {dets.shape[0]} and {tuple(scores.shape)}")
    order = scores.sort(stable=True, descending=True).indices
    x1, y1, x2, y2 = dets.detach()[order].unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    count = order.shape[0]
    suppressed = trt.zeros(count, dtype=trt.bool, device=dets.device)
    kept: list[int] = []
    for begin in range(0, count, _ROWS):
        rows = slice(begin, min(begin + _ROWS, count))

        def overlap(low: Any, high: Any, rows: slice = rows, begin: int = begin) -> Any:
            return (trt.minimum(high[rows, None], high[begin:]) - trt.maximum(low[rows, None], low[begin:])).clamp_min(0)

        inner = overlap(x1, x2) * overlap(y1, y2)
        over = inner / (areas[rows, None] + areas[begin:] - inner) > iou_threshold
        rest = suppressed[begin:]
        for row in range(rows.stop - begin):
            if not rest[row]:
                kept.append(begin + row)
                rest |= over[row]
    return order[trt.tensor(kept, dtype=trt.int64, device=dets.device)]


def _bilinear_means(input: Any, rois: Any, spatial_scale: float, height: int, width: int, sampling_ratio: int, offset: float, least: float | None) -> Any:
    """Means of bilinear samples of each bin: (K, C, height, width).

    A bin has `sampling_ratio` samples a side, or as many as it has pixels where that is not positive, so regions are worked on by image and number of samples.
    """
    boxes = rois[:, 1:].detach() * spatial_scale - offset
    x1, y1 = boxes[:, 0], boxes[:, 1]
    sizes = boxes[:, 2:] - boxes[:, :2]
    if least is not None:
        sizes = sizes.clamp_min(least)
    bin_width, bin_height = sizes[:, 0] / width, sizes[:, 1] / height
    if sampling_ratio > 0:
        samples = [(sampling_ratio, sampling_ratio)] * rois.shape[0]
    else:
        samples = list(zip(*(trt.ceil(size.double()).to(trt.int64).tolist() for size in (bin_height, bin_width)), strict=True))
    groups: dict[tuple[int, int, int], list[int]] = {}
    for index, image in enumerate(rois[:, 0].to(trt.int64).tolist()):
        groups.setdefault((image, *samples[index]), []).append(index)
    parts, places = [], []
    for (image, down, across), members in groups.items():
        chosen = trt.tensor(members, device=rois.device)
        places.append(chosen)
        if down <= 0 or across <= 0:  # regions without an extent have no samples
            parts.append(input.new_zeros(len(members), input.shape[1], height, width))
            continue
        y = _sample_places(y1[chosen], bin_height[chosen], height, down)
        x = _sample_places(x1[chosen], bin_width[chosen], width, across)
        values = _sampled(input[image], y, x)  # (C, members, height * down, width * across)
        parts.append(values.unflatten(2, (height, down)).unflatten(4, (width, across)).mean((3, 5)).transpose(0, 1))
    if not parts:
        return input.new_zeros(0, input.shape[1], height, width) + input.sum() * 0
    return trt.cat(parts)[trt.argsort(trt.cat(places))]


def _sample_places(start: Any, step: Any, bins: int, samples: int) -> Any:
    """Coordinates of the samples along one dimension: (K, bins * samples)."""
    inside = (trt.arange(bins * samples, dtype=start.dtype, device=start.device) + 0.5) / samples
    return start[:, None] + step[:, None] * inside


def _sampled(image: Any, y: Any, x: Any) -> Any:
    """Bilinear samples at all pairs of y and x, 0 beyond one pixel of the edge. image: (C, H, W), y: (K, P), x: (K, Q) -> (C, K, P, Q)."""
    height, width = image.shape[1:]
    inside = ((y >= -1) & (y <= height)).to(y.dtype)[:, :, None] * ((x >= -1) & (x <= width)).to(x.dtype)[:, None, :]
    unit_y = y * (2 / max(height - 1, 1)) - 1
    unit_x = x * (2 / max(width - 1, 1)) - 1
    grid = trt.stack(trt.broadcast_tensors(unit_x[:, None, :], unit_y[:, :, None]), -1)
    values = F.grid_sample(image[None], grid.flatten(0, 1)[None], padding_mode="border", align_corners=True)[0]
    return values.unflatten(1, (y.shape[0], y.shape[1])) * inside


def roi_align(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int, aligned: bool) -> Any:
    """Means of bilinear samples in each bin of each region. input: (N, C, H, W), rois: (K, 5) -> (K, C, pooled_height, pooled_width)."""
    _check("roi_align", input, rois)
    return _bilinear_means(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, 0.5 if aligned else 0.0, None if aligned else 1.0)


def ps_roi_align(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int) -> tuple[Any, Any]:
    """As roi_align, each bin from channels of its own: the result, and those channels. input: (N, C * ph * pw, H, W) -> (K, C, ph, pw), twice."""
    _check("ps_roi_align", input, rois)
    means = _bilinear_means(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, 0.5, None)
    return _own_channels("ps_roi_align", means, pooled_height, pooled_width)


def _own_channels(name: str, bins: Any, height: int, width: int) -> tuple[Any, Any]:
    """Of each bin the values of its channels: (K, C * height * width, height, width) -> (K, C, height, width), with the channels' numbers."""
    channels = bins.shape[1]
    if channels % (height * width):
        raise RuntimeError(f"torchvision::{name}: input channels must be a multiple of pooling height * pooling width, got {channels} and {height} * {width}")
    numbers = trt.arange(channels, dtype=trt.int32, device=bins.device).view(1, -1, height, width)
    own = numbers.expand(bins.shape[0], -1, -1, -1)
    return bins.view(bins.shape[0], -1, height * width, height * width).diagonal(dim1=2, dim2=3).unflatten(2, (height, width)), own.contiguous()


def _bin_edges(start: Any, size: Any, bins: int, limit: int) -> tuple[list[list[int]], list[list[int]]]:
    """First pixels, and those behind the last, of each region's bins along one dimension."""
    steps = trt.arange(bins, dtype=size.dtype, device=size.device)
    step = size[:, None] / bins
    begin = (trt.floor(steps * step) + start[:, None]).clamp(0, limit)
    end = (trt.ceil((steps + 1) * step) + start[:, None]).clamp(0, limit)
    return begin.to(trt.int64).tolist(), end.to(trt.int64).tolist()


def roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> tuple[Any, Any]:
    """Maxima of each bin of each region, and their places in the map (-1 in empty bins). input: (N, C, H, W) -> (K, C, ph, pw), twice."""
    _check("roi_pool", input, rois)
    channels, height, width = input.shape[1:]
    boxes = _rounded(rois[:, 1:].detach() * spatial_scale)
    across = _bin_edges(boxes[:, 0], (boxes[:, 2] - boxes[:, 0] + 1).clamp_min(1), pooled_width, width)
    down = _bin_edges(boxes[:, 1], (boxes[:, 3] - boxes[:, 1] + 1).clamp_min(1), pooled_height, height)
    places = trt.full((rois.shape[0], channels, pooled_height, pooled_width), -1, dtype=trt.int64, device=input.device)
    for k, image in enumerate(rois[:, 0].to(trt.int64).tolist()):
        for i, (top, bottom) in enumerate(zip(down[0][k], down[1][k], strict=True)):
            for j, (left, right) in enumerate(zip(across[0][k], across[1][k], strict=True)):
                if bottom > top and right > left:
                    inner = input.detach()[image, :, top:bottom, left:right].flatten(1).argmax(1)
                    places[k, :, i, j] = (inner // (right - left) + top) * width + inner % (right - left) + left
    maps = input.flatten(2)[rois[:, 0].to(trt.int64)]
    values = maps.gather(2, places.flatten(2).clamp_min(0)).view(places.shape)
    return trt.where(places >= 0, values, 0.0), places.to(trt.int32)


def _rounded(x: Any) -> Any:
    """The nearest integers, halves away from zero, as C rounds."""
    return trt.sign(x) * trt.floor(x.abs() + 0.5)


def ps_roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> tuple[Any, Any]:
    """Means of each bin's pixels in channels of its own, and those channels. input: (N, C * ph * pw, H, W) -> (K, C, ph, pw), twice."""
    _check("ps_roi_pool", input, rois)
    channels, height, width = input.shape[1:]
    boxes = _rounded(rois[:, 1:].detach() * spatial_scale)
    edges = []
    # torchvision's forward pass leaves out the map's last row and column; its numbers are what models were trained with
    for i, bins, limit in ((0, pooled_width, width - 1), (1, pooled_height, height - 1)):
        begin, end = _bin_edges(boxes[:, i], (boxes[:, i + 2] - boxes[:, i]).clamp_min(1), bins, limit)
        edges.append((trt.tensor(begin).view(-1, bins), trt.tensor(end).view(-1, bins)))
    # the mean over a rectangle is a product with the indicators of its rows and columns
    rows, columns = (
        ((trt.arange(limit) >= begin[..., None]) & (trt.arange(limit) < end[..., None])).to(input.device, input.dtype)
        for (begin, end), limit in zip((edges[1], edges[0]), (height, width), strict=True)
    )
    area = (rows.sum(2)[:, :, None] * columns.sum(2)[:, None, :]).clamp_min(1)
    parts = [rows[k] @ input[image] @ columns[k].T for k, image in enumerate(rois[:, 0].to(trt.int64).tolist())]
    sums = trt.stack(parts) if parts else input.new_zeros(0, channels, pooled_height, pooled_width) + input.sum() * 0
    return _own_channels("ps_roi_pool", sums / area[:, None], pooled_height, pooled_width)


def deform_conv2d(
    input: Any, weight: Any, offset: Any, mask: Any, bias: Any, stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
    groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    """A convolution whose taps are moved by offsets (and weighted by a mask).

    input: (N, C, H, W), weight: (O, C / groups, kh, kw), offset: (N, 2 * offset_groups * kh * kw, oh, ow) as y, x of each tap,
    mask: (N, offset_groups * kh * kw, oh, ow), bias: (O,) -> (N, O, oh, ow).
    """
    batch, channels, height, width = input.shape
    out_channels, _, kh, kw = weight.shape
    oh = (height + 2 * pad_h - dilation_h * (kh - 1) - 1) // stride_h + 1
    ow = (width + 2 * pad_w - dilation_w * (kw - 1) - 1) // stride_w + 1
    taps = kh * kw
    if offset.shape != (batch, 2 * offset_groups * taps, oh, ow):
        raise RuntimeError(f"torchvision::deform_conv2d: expected offset {(batch, 2 * offset_groups * taps, oh, ow)}, got {tuple(offset.shape)}")
    if use_mask and mask.shape != (batch, offset_groups * taps, oh, ow):
        raise RuntimeError(f"torchvision::deform_conv2d: expected mask {(batch, offset_groups * taps, oh, ow)}, got {tuple(mask.shape)}")
    if channels % offset_groups or channels % groups or out_channels % groups:
        raise RuntimeError(f"torchvision::deform_conv2d: {channels} and {out_channels} channels in {groups} groups and {offset_groups} groups of offsets")
    kind = {"dtype": offset.dtype, "device": offset.device}
    tap_y = (trt.arange(kh, **kind) * dilation_h - pad_h)[:, None].expand(kh, kw).reshape(1, 1, taps, 1, 1)
    tap_x = (trt.arange(kw, **kind) * dilation_w - pad_w).expand(kh, kw).reshape(1, 1, taps, 1, 1)
    moved = offset.view(batch, offset_groups, taps, 2, oh, ow)
    y = moved[:, :, :, 0] + tap_y + (trt.arange(oh, **kind) * stride_h)[:, None]
    x = moved[:, :, :, 1] + tap_x + trt.arange(ow, **kind) * stride_w
    # grid_sample's units, with corners at pixel centres; a map of one pixel has no width to divide by, and gets a second one of zeros
    if height == 1 or width == 1:
        input = F.pad(input, (0, int(width == 1), 0, int(height == 1)))
    grid = trt.stack((x * (2 / (input.shape[3] - 1)) - 1, y * (2 / (input.shape[2] - 1)) - 1), -1)
    maps = input.reshape(batch * offset_groups, channels // offset_groups, input.shape[2], input.shape[3])
    columns = F.grid_sample(maps, grid.view(batch * offset_groups, taps * oh, ow, 2), padding_mode="zeros", align_corners=True)
    columns = columns.view(batch, offset_groups, channels // offset_groups, taps, oh * ow)
    if use_mask:
        columns = columns * mask.view(batch, offset_groups, 1, taps, oh * ow)
    columns = columns.reshape(batch, groups, channels // groups * taps, oh * ow)
    result = (weight.reshape(1, groups, out_channels // groups, -1) @ columns).reshape(batch, out_channels, oh, ow)
    return result + bias.view(1, -1, 1, 1)


def _map_gradient(forward: Any, grad: Any, sizes: tuple[int, ...]) -> Any:
    """The gradient for a feature map of these sizes: all of the operators above are linear in it, so its values do not matter."""
    with trt.enable_grad():
        zeros = trt.zeros(sizes, dtype=grad.dtype, device=grad.device, requires_grad=True)
        return trt.autograd.grad(forward(zeros), zeros, grad)[0]


def _roi_align_backward(grad: Any, rois: Any, spatial_scale: float, ph: int, pw: int, n: int, c: int, h: int, w: int, sampling_ratio: int, aligned: bool) -> Any:
    return _map_gradient(lambda x: roi_align(x, rois, spatial_scale, ph, pw, sampling_ratio, aligned), grad, (n, c, h, w))


def _ps_roi_align_backward(grad: Any, rois: Any, mapping: Any, spatial_scale: float, ph: int, pw: int, sampling_ratio: int, n: int, c: int, h: int, w: int) -> Any:
    return _map_gradient(lambda x: ps_roi_align(x, rois, spatial_scale, ph, pw, sampling_ratio)[0], grad, (n, c, h, w))


def _ps_roi_pool_backward(grad: Any, rois: Any, mapping: Any, spatial_scale: float, ph: int, pw: int, n: int, c: int, h: int, w: int) -> Any:
    return _map_gradient(lambda x: ps_roi_pool(x, rois, spatial_scale, ph, pw)[0], grad, (n, c, h, w))


def _roi_pool_backward(grad: Any, rois: Any, argmax: Any, spatial_scale: float, ph: int, pw: int, n: int, c: int, h: int, w: int) -> Any:
    images = (rois[:, 0].to(trt.int64)[:, None] * c + trt.arange(c, device=rois.device)) * (h * w)
    places = images[:, :, None] + argmax.flatten(2).clamp_min(0)
    values = trt.where(argmax >= 0, grad, 0.0)
    return grad.new_zeros(n * c * h * w).index_add(0, places.flatten(), values.flatten()).view(n, c, h, w)


def _deform_conv2d_backward(grad: Any, input: Any, weight: Any, offset: Any, mask: Any, bias: Any, *numbers: Any) -> tuple[Any, ...]:
    tensors = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
    with trt.enable_grad():
        found = trt.autograd.grad(deform_conv2d(*tensors, *numbers), tensors, grad, allow_unused=True)
    return tuple(trt.zeros_like(t) if g is None else g for t, g in zip(tensors, found, strict=True))


_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SCHEMAS = {
    "nms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms),
    "roi_align": (f"(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor", roi_align),
    "roi_pool": (f"(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", roi_pool),
    "ps_roi_align": (f"(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)", ps_roi_align),
    "ps_roi_pool": (f"(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", ps_roi_pool),
    "_roi_align_backward": (f"(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor", _roi_align_backward),
    "_ps_roi_align_backward": (f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, int sampling_ratio, {_SIZES}) -> Tensor", _ps_roi_align_backward),
    "_roi_pool_backward": (f"(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor", _roi_pool_backward),
    "_ps_roi_pool_backward": (f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES}) -> Tensor", _ps_roi_pool_backward),
    "deform_conv2d": (
        "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
        "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
        deform_conv2d,
    ),
    "_deform_conv2d_backward": (
        "(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
        "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        _deform_conv2d_backward,
    ),
    "box_iou_rotated": ("(Tensor boxes1, Tensor boxes2) -> Tensor", None),
    "qnms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", None),
    "qroi_align": (f"(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor", None),
    "_cuda_version": ("() -> int", lambda: -1),
}  # fmt: skip


def _refusal(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchvision::{name} is a C++ kernel of torchvision's; tensorrt_lite has no operator in its place (docs/gaps.md)")

    return refuse


def _register() -> Library:
    library = Library("torchvision", "DEF")
    for name, (schema, function) in _SCHEMAS.items():
        library.define(name + schema)
        library.impl(name, function or _refusal(name), "CompositeImplicitAutograd")
    return library


_library = _register()
