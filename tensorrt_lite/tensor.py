from tensorrt_lite._C.core.tensor import TensorBase, _register_types
from tensorrt_lite._size import Size


class Tensor(TensorBase):
    __slots__ = ()


class Parameter(Tensor):
    __slots__ = ()

_register_types(Tensor, Parameter, Size)
from tensorrt_lite._C.ops import arithmetic as A
Tensor.__add__ = A.add; Tensor.__mul__ = A.mul
