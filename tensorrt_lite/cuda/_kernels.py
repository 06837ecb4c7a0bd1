"""Loads what puts tensors on CUDA: the backend, which gives the core its device hooks, and the operator families' kernels."""

from __future__ import annotations

import os

from tensorrt_lite import _C
from tensorrt_lite._C.cuda import driver

driver.require()  # before modules are made that could not be made a second time
import tensorrt_lite.cuda._settings as _settings  # noqa: E402

_settings.configure()
os.register_at_fork(after_in_child=driver._after_fork)
from tensorrt_lite._C.autograd import workers as _workers  # noqa: E402
from tensorrt_lite._C.core.device import device as _device  # noqa: E402
from tensorrt_lite._C.cuda import backend, random  # noqa: E402
from tensorrt_lite.cuda.random import DeviceGenerator, generator_for, generators_in_use  # noqa: E402

for _name in _C.CUDA_FAMILIES:
    __import__(f"tensorrt_lite._C.cuda.{_name}")
random._use_generators(DeviceGenerator, generator_for, generators_in_use())
backend._install()
_workers.use_workers(_device("cuda").code, backend._set_device, backend._uses_default_pool)

from tensorrt_lite.backends import cuda as _flags  # noqa: E402

_flags._apply()
