"""`utils.data.distributed`, the module name under which PyTorch programs import DistributedSampler."""

from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
