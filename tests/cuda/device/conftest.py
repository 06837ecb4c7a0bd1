"""Tests of tensors on a device: a real one, or the emulator with TENSORRT_LITE_CUDA=emulate (`make test-cuda`). Left out elsewhere."""

from __future__ import annotations

import tensorrt_lite as trt

if not trt.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]
