"""torch.utils._foreach_utils: lists of tensors by device and dtype, as the foreach forms of optimizers (pytorch_optimizer) want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorrt_lite as torch
from tensorrt_lite.compat.modules._C import _get_privateuse1_backend_name

_foreach_supported_types = [torch.Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", _get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", _get_privateuse1_backend_name()]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[torch.Tensor | None]], with_indices: bool = False
) -> dict[tuple[torch.device, torch.dtype], tuple[list[list[torch.Tensor | None]], list[int]]]:
    """{(device, dtype): (the lists, cut to the group, positions)}: the first list, without None, decides; an empty list stays empty."""
    groups: dict[Any, tuple[list[list[torch.Tensor | None]], list[int]]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError("Tensors of the first list provided must not be None")
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for column, group in zip(tensorlistlist, lists, strict=True):
            if column:
                group.append(column[index])
        if with_indices:
            indices.append(index)
    return groups


def _device_has_foreach_support(device: torch.device) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: Sequence[Any], device: torch.device) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) in _foreach_supported_types for t in tensors)
