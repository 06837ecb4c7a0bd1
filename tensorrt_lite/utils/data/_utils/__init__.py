"""What loaders are made of, under PyTorch's names: how samples are fetched, collated, pinned, and how worker processes do it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper

from . import collate, fetch, pin_memory, worker

__all__ = ["ExceptionWrapper", "HAS_NUMPY", "IS_WINDOWS", "MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]

IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = find_spec("numpy") is not None
MP_STATUS_CHECK_INTERVAL = worker.CHECK_SECONDS
