# Addresses for argument blocks, which kernels fill in for every device before they run a step.
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of

cdef inline char* memory_of(TensorBase t) noexcept:
    """Where t's first element lies; NULL of a meta tensor, which has none."""
    return NULL if t.storage.block == NULL else data_of(t)
