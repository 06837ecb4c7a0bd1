"""torch.utils._pytree: how dicts and lists are taken apart, for packages that register their own classes alike."""

from tensorrt_lite.utils._pytree import SUPPORTED_NODES

__all__: list[str] = []

_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict].flatten_fn, SUPPORTED_NODES[dict].unflatten_fn, SUPPORTED_NODES[dict].flatten_with_keys_fn
_list_flatten, _list_unflatten = SUPPORTED_NODES[list].flatten_fn, SUPPORTED_NODES[list].unflatten_fn
