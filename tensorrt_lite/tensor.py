from tensorrt_lite._C.core.tensor import TensorBase, _register_types
from tensorrt_lite._size import Size


class Tensor(TensorBase):
    __slots__ = ()

_register_types(Tensor, None, Size)
