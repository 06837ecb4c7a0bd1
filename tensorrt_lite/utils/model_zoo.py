"""torch.utils.model_zoo: the older name of `hub.load_state_dict_from_url`."""

from tensorrt_lite.hub import load_state_dict_from_url as load_url
from tensorrt_lite.hub import tqdm

__all__ = ["load_url", "tqdm"]
