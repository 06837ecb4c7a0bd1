"""What tests expect of an interpreter without the GIL."""

import sys

import pytest

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()
OBJECT_HEADER = 32 if FREE_THREADED else 16  # bytes that Python begins an object with

# Threads that change a tensor's geometry or memory while others use it: a data race there (docs/safety.md).
needs_gil = pytest.mark.skipif(FREE_THREADED, reason="threads must not change what a tensor is without the GIL")

# Devices have threads for backward passes only where the GIL guards what those share (cysrc/autograd/workers.pyx).
devices_have_threads = pytest.mark.skipif(FREE_THREADED, reason="backward passes stay in the calling thread without the GIL")
