"""torch.testing._internal.optests.generate_tests: what tests of operators catch."""

from __future__ import annotations

from tensorrt_lite._declared.opcheck import OpCheckError
from tensorrt_lite.library import opcheck

__all__ = ["OpCheckError", "opcheck"]
