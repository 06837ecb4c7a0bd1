"""torch._refs.nn: functions of modules."""

from tensorrt_lite.compat.modules._refs.nn import functional as functional
