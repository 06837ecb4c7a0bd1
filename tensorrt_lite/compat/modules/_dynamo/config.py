"""torch._dynamo.config: settings of a compiler that is not there."""

from tensorrt_lite.compat.modules._settings import become_settings

become_settings(__name__)
