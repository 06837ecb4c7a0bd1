"""torch._functorch: settings of transforms and of a tracer."""

from tensorrt_lite.compat.modules._functorch import config as config
