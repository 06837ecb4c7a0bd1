"""torch.utils.deterministic: what `use_deterministic_algorithms` does to memory that nothing was written to."""

from __future__ import annotations

import sys
from types import ModuleType

import tensorrt_lite._functions.settings as _config


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and its kin, and the elements that `resize_` adds, are NaN, the largest integer or true in deterministic mode."""
        return _config._fill_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _config._fill_memory = mode
        _config._set_filling()


sys.modules[__name__].__class__ = _Deterministic
