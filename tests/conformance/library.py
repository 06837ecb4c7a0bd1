"""The library under test: finding an operator in it and carrying arguments and results between it and PyTorch.

A tensor crosses as bytes: its whole storage is copied once per call, and each tensor over it becomes an `as_strided`
view, so strides, storage offsets and aliasing between arguments survive. PyTorch's own side crosses the same way, so
both libraries start from equal memory and no call sees what another wrote. Called by `kinds`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

# What NumPy has no type for: such storages cross as integers of the same bits.
_NUMPY_CARRIER = {torch.bfloat16: torch.int16, torch.complex32: torch.int32} | dict.fromkeys(
    (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu), torch.uint8
)


class Missing(Exception):
    """The library has no function, method or attribute of that name."""


def attribute(root: Any, dotted: str) -> Any:
    """`root.a.b` for "a.b"; Missing when a part is absent."""
    try:
        return functools.reduce(getattr, dotted.split("."), root)
    except AttributeError as error:
        raise Missing(f"{getattr(root, '__name__', root)} has no {dotted}") from error


def bare_name(value: Any) -> str:
    """The last part of a value's name: torch.float32 gives "float32"; memory formats and layouts too."""
    return str(value).rpartition(".")[2]


class Library:
    """One of the two sides of a comparison; `module` is PyTorch or what shall equal it."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.Tensor = attribute(module, "Tensor")

    # ---- functions ----

    def function(self, op: OpInfo) -> Callable[..., Any]:
        """The function that OpInfo calls, as this library has it; Missing when it has none of that name."""
        for theirs, mine in ((torch, self.module), (torch.Tensor, self.Tensor)):
            try:
                known = attribute(theirs, op.name)
            except Missing:
                continue
            named = attribute(mine, op.name)
            # Some OpInfos state a lambda around the function of their name.
            return named if known is op.op else self.rebound(op.op)
        return self.rebound(op.op)

    def method(self, variant: Callable[..., Any]) -> Callable[..., Any]:
        """The Tensor method that is PyTorch's `variant`."""
        name = variant.__name__
        if getattr(torch.Tensor, name, None) is variant:
            return attribute(self.Tensor, name)
        return self.rebound(variant)

    def rebound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A Python function of PyTorch's test code in which `torch` means this library."""
        if self.module is torch:
            return function
        if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing."):
            names = dict(function.__globals__)
            names["torch"] = self.module
            names["wrapper_set_seed"] = self._call_seeded
            if "F" in names:
                names["F"] = self.module.nn.functional
            copy = types.FunctionType(
                function.__code__, names, function.__name__, function.__defaults__, function.__closure__
            )
            copy.__kwdefaults__ = function.__kwdefaults__
            return copy
        home = getattr(function, "__module__", "") or ""
        if home == "torch" or home.startswith("torch."):
            return attribute(self.module, f"{home}.{function.__name__}".partition(".")[2])
        name = getattr(function, "__name__", "")
        return attribute(self.Tensor, name) if hasattr(torch.Tensor, name) else attribute(self.module, name)

    def _call_seeded(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # PyTorch's helper of this name seeds with 42 as well, and restores the state afterwards.
        self.module.manual_seed(42)
        return function(*args, **kwargs)

    # ---- arguments ----

    def arguments(self, *values: Any) -> tuple[Any, ...]:
        """Fresh copies of PyTorch values as this library's; tensors that share a storage share it afterwards."""
        storages: dict[Any, Any] = {}
        seen: dict[int, Any] = {}
        return tuple(self._from_torch(value, storages, seen) for value in values)

    def sample(self, sample: SampleInput) -> tuple[Any, list[Any], dict[str, Any]]:
        """(input, args, kwargs) of a sample as this library's values."""
        first, args, kwargs = self.arguments(sample.input, list(sample.args), dict(sample.kwargs))
        return first, args, kwargs

    def _from_torch(self, value: Any, storages: dict[Any, Any], seen: dict[int, Any]) -> Any:
        convert = functools.partial(self._from_torch, storages=storages, seen=seen)
        if isinstance(value, torch.Tensor):
            if id(value) not in seen:
                seen[id(value)] = self._tensor(value, storages)
            return seen[id(value)]
        if isinstance(value, torch.Size):
            return attribute(self.module, "Size")(tuple(value))
        if isinstance(value, (list, tuple)):
            return type(value)(convert(item) for item in value)
        if isinstance(value, dict):
            return {name: convert(item) for name, item in value.items()}
        if isinstance(value, torch.nn.PairwiseDistance):
            return attribute(self.module, "nn.PairwiseDistance")(value.norm, value.eps, value.keepdim)
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            fields = {field.name: convert(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return attribute(self.module, "nn.LinearCrossEntropyOptions")(**fields)
        if isinstance(value, slice):
            return slice(convert(value.start), convert(value.stop), convert(value.step))
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return attribute(self.module, bare_name(value))
        if isinstance(value, torch.device):
            return attribute(self.module, "device")(str(value))
        if isinstance(value, torch.Generator):
            return attribute(self.module, "Generator")().manual_seed(value.initial_seed())
        return value

    def _tensor(self, value: torch.Tensor, storages: dict[Any, Any]) -> Any:
        source = value.detach().resolve_conj().resolve_neg()
        storage = source.untyped_storage()
        place = (storage.data_ptr(), source.dtype)
        flat, _ = storages.get(place, (None, None))
        if flat is None:
            flat = self._flat(source)
            # An empty storage has no address of its own, so it is never shared. The source is kept with the copy: it
            # may be a temporary, and the next one must not come to lie at the same address.
            if storage.nbytes():
                storages[place] = (flat, source)
        result = flat.as_strided(tuple(source.shape), source.stride(), source.storage_offset())
        return result.detach().requires_grad_() if value.requires_grad else result

    def _flat(self, source: torch.Tensor) -> Any:
        """The whole storage of `source` as a one-dimensional tensor of this library over new memory."""
        carrier = _NUMPY_CARRIER.get(source.dtype, source.dtype)
        count = source.untyped_storage().nbytes() // source.element_size()
        whole = source.as_strided((count,), (1,), 0).view(carrier)
        flat = self.module.from_numpy(whole.numpy().copy())
        return flat if carrier is source.dtype else flat.view(attribute(self.module, bare_name(source.dtype)))

    # ---- results ----

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.Tensor)

    def address(self, tensor: Any) -> int | None:
        """Where a tensor's storage lies; None when it has no memory."""
        return None if tensor.numel() == 0 or self._is_unstored_zero(tensor) else tensor.untyped_storage().data_ptr()

    def _is_unstored_zero(self, tensor: Any) -> bool:
        # Some of PyTorch's derivatives return a constant zero that has a shape and no storage.
        return self.module is torch and tensor._is_zerotensor()

    def to_torch(self, value: Any) -> Any:
        """A result with this library's tensors as PyTorch's (contiguous copies), other library values by their name."""
        if self.is_tensor(value) and self._is_unstored_zero(value):
            return torch.zeros(value.shape, dtype=value.dtype)
        if self.is_tensor(value):
            value = value.detach()
            if self.module is torch:
                value = value.resolve_conj().resolve_neg()
            dtype = getattr(torch, bare_name(value.dtype))
            carrier = _NUMPY_CARRIER.get(dtype)
            if carrier is not None:
                # clone() first: view(dtype) of a strided or zero-dimensional tensor has rules of its own.
                value = value.clone().view(attribute(self.module, bare_name(carrier)))
            array = np.array(value.numpy(), copy=True, order="C")
            tensor = torch.from_numpy(array)
            return tensor if carrier is None else tensor.view(dtype)
        if isinstance(value, (list, tuple)):
            return [self.to_torch(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.to_torch(item) for name, item in value.items()}
        return value

    def tensors(self, *values: Any) -> list[Any]:
        """All tensors within nested arguments or results, in order."""
        found = []
        for value in values:
            if self.is_tensor(value):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found += self.tensors(*value)
            elif isinstance(value, Mapping):
                found += self.tensors(*value.values())
        return found
