"""torch.nn.modules.module: what packages that read state dicts take of it."""

from tensorrt_lite.nn.modules._state import _EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX
from tensorrt_lite.nn.modules._state import _IncompatibleKeys

__all__ = ["_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys"]
