"""From a list of samples to a batch: tensors are stacked, numbers become tensors, containers keep their structure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .worker import batch_memory

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_MESSAGE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_numpy(kind: type) -> bool:
    # By name, since importing NumPy to ask would cost more than most programs' batches.
    return kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_", "bytes_")


def _holds_text(array: Any) -> bool:
    return array.dtype.kind in "SaUO"


def _rebuilt_mapping(elem: Any, values: dict[Any, Any]) -> Any:
    """A mapping of elem's type with new values; a plain dict where the type cannot be built from one."""
    try:
        if isinstance(elem, MutableMapping):
            clone = copy.copy(elem)
            clone.update(values)
            return clone
        return type(elem)(values)
    except TypeError:
        return values


def _rebuilt_sequence(elem: Any, values: list[Any]) -> Any:
    """A sequence of elem's type with new items; a list where the type cannot be built from one."""
    try:
        if isinstance(elem, MutableSequence):
            clone = copy.copy(elem)
            for index, value in enumerate(values):
                clone[index] = value
            return clone
        return type(elem)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays and scalars inside containers into tensors; anything else stays as it is."""
    kind = type(data)
    if isinstance(data, trt.Tensor):
        return data
    if _is_numpy(kind):
        return data if kind.__name__ == "ndarray" and _holds_text(data) else trt.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*map(default_convert, data))
    if isinstance(data, tuple):
        return list(map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt_sequence(data, list(map(default_convert, data)))
    return data


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Batch samples by the function that the map has for their type, or by structure for containers.

    Raises TypeError for types that are neither, RuntimeError for sequences of unequal size.
    """
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((fn for base, fn in collate_fn_map.items() if isinstance(elem, base)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
        if _is_numpy(kind) and trt.Tensor in collate_fn_map:  # the default map, or one made of it; NumPy's classes are no keys, which would import it
            return (collate_numpy_array_fn if kind.__name__ == "ndarray" else collate_numpy_scalar_fn)(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(elem, Mapping):
        return _rebuilt_mapping(elem, {key: inner([sample[key] for sample in batch]) for key in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*map(inner, zip(*batch, strict=False)))
    if isinstance(elem, Sequence):
        if any(len(sample) != len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [inner(samples) for samples in zip(*batch, strict=True)]
        return columns if isinstance(elem, tuple) else _rebuilt_sequence(elem, columns)
    raise TypeError(_MESSAGE.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    elem = batch[0]
    same = all(type(t) is trt.Tensor and t.dtype is elem.dtype and t.shape == elem.shape and not t.requires_grad for t in batch)
    return trt.stack(list(batch), 0, out=batch_memory(elem, (len(batch), *elem.shape)) if same else None)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return trt.tensor(batch, dtype=trt.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return trt.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    if _holds_text(batch[0]):
        raise TypeError(_MESSAGE.format(batch[0].dtype))
    return collate([trt.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return trt.as_tensor(batch)


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    trt.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Batch a list of samples: tensors and arrays of equal shape (...) become (N, ...), numbers (N,), text a list.

    Raises TypeError for other types, RuntimeError for sequences of unequal size.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
