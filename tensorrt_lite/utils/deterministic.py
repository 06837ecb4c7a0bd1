"""torch.utils.deterministic: what `use_deterministic_algorithms` does to memory that nothing was written to."""

from __future__ import annotations

import sys
from types import ModuleType

from tensorrt_lite import _config


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and its kin shall give NaN and the largest integers in deterministic mode. Kept and reported: their memory is as it was."""
        return _config._fill_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _config._fill_memory = mode


sys.modules[__name__].__class__ = _Deterministic
