"""torch._C: the few names of PyTorch's compiled module that packages written in Python use."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorrt_lite as torch
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from tensorrt_lite._declared import dispatch_keys
from tensorrt_lite._declared.dispatch_keys import DispatchKey, DispatchKeySet
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


class _ExcludeDispatchKeyGuard(contextlib.ExitStack):
    """Keys that operators do not go through in a block. Those of Autocast turn it off there for their device."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()
        self._devices = [device for device in ("cpu", "cuda") if keys.has(DispatchKey[f"Autocast{device.upper()}"])]
        self._keys = DispatchKeySet(*(k for k in keys if not k.name.startswith("Autocast")))

    def __enter__(self) -> _ExcludeDispatchKeyGuard:
        self.enter_context(dispatch_keys.ExcludeKeys(self._keys))
        for device in self._devices:
            if torch.is_autocast_enabled(device):
                self.enter_context(torch.autocast(device, enabled=False))
        return super().__enter__()


_AutoDispatchBelowAutograd = dispatch_keys.below_autograd
_after_autograd_keyset = _after_ADInplaceOrView_keyset = dispatch_keys.after_autograd()
_dispatch_keys = dispatch_keys.keys_of
_dispatch_has_kernel = dispatch_keys.has_kernel
_dispatch_has_kernel_for_dispatch_key = dispatch_keys.has_kernel_for_dispatch_key
_dispatch_has_kernel_for_any_dispatch_key = dispatch_keys.has_kernel_for_any_dispatch_key
_dispatch_has_computed_kernel_for_dispatch_key = dispatch_keys.has_computed_kernel_for_dispatch_key
_dispatch_get_registrations_for_dispatch_key = dispatch_keys.registrations_for_dispatch_key
_dispatch_get_all_op_names = dispatch_keys.all_names
_dispatch_key_parse = dispatch_keys.parsed
_dispatch_dump = dispatch_keys.dump
_get_schema = dispatch_keys.schema
_jit_get_all_schemas = dispatch_keys.all_schemas
_jit_get_schemas_for_operator = dispatch_keys.schemas_of


def _dispatch_key_name(key: DispatchKey) -> str:
    """A key's name."""
    return key.name


def _jit_off(*args: Any) -> bool:
    """False: there is no such compiler, and a switch of it stays off."""
    return False


_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_off
_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_off
_jit_set_bailout_depth = _jit_off
