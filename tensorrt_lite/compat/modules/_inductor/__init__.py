"""torch._inductor: a compiler that is not there; its settings can be set."""

from tensorrt_lite.compat.modules._inductor import config as config
