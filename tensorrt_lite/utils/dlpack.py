"""DLPack under PyTorch's module path: ``utils.dlpack.from_dlpack`` and ``to_dlpack``."""

from __future__ import annotations

from enum import IntEnum

from tensorrt_lite._interop.dlpack import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """DLPack's numbers of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLExtDev = 12
