"""torch.utils.hooks: the handle that every register_*hook returns."""

from tensorrt_lite._C.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
