"""torch._C: the few names of PyTorch's compiled module that packages written in Python use."""

from __future__ import annotations

import contextlib
import enum
from typing import Any

import tensorrt_lite as torch
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from tensorrt_lite.random import Generator
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_device = _LazyModule("tensorrt_lite._C.core.device")

_TensorBase = TensorBase
_TensorMeta = type(torch.Tensor)
_VariableFunctions = torch

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "TensorBase"]


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is ever being traced."""


def _is_tracing() -> bool:
    """False."""
    return False


def _are_functorch_transforms_active() -> bool:
    """False: there are no such transforms."""
    return False


def _get_accelerator(check: Any = None) -> Any:
    """The device of the accelerator, the CPU where there is none."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def _get_privateuse1_backend_name() -> str:
    """The name under which programs find the custom device."""
    return getattr(_device, "_privateuse1_name", lambda: "privateuseone")()


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """No effect: products inside attention accumulate in float32."""


class DispatchKey(enum.Enum):
    """Keys by name, for guards that exclude them."""

    CPU = enum.auto()
    CUDA = enum.auto()
    Meta = enum.auto()
    Autograd = enum.auto()
    AutogradCPU = enum.auto()
    AutogradCUDA = enum.auto()
    ADInplaceOrView = enum.auto()
    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()
    Python = enum.auto()
    CompositeImplicitAutograd = enum.auto()
    CompositeExplicitAutograd = enum.auto()


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys


class _ExcludeDispatchKeyGuard(contextlib.ExitStack):
    """Keys that operators do not go through in a block. Those of Autocast turn it off there; the others are not keys of this dispatcher and have no effect."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()
        self._devices = [device for device in ("cpu", "cuda") if keys.has(DispatchKey[f"Autocast{device.upper()}"])]

    def __enter__(self) -> _ExcludeDispatchKeyGuard:
        for device in self._devices:
            if torch.is_autocast_enabled(device):
                self.enter_context(torch.autocast(device, enabled=False))
        return super().__enter__()


def _jit_off(*args: Any) -> bool:
    """False: there is no such compiler, and a switch of it stays off."""
    return False


_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_off
_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_off
_jit_set_bailout_depth = _jit_off
