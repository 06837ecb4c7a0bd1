"""Questions about dtypes: result_type and can_cast. Imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.dtype import can_cast_types, get_default_dtype, promote_types
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.tensor import TensorBase

if TYPE_CHECKING:
    from tensorrt_lite import dtype


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of arithmetic between two tensors or numbers. TypeError for anything else."""
    for value in (tensor1, tensor2):
        if not isinstance(value, (TensorBase, bool, int, float, complex)):
            raise TypeError(f"result_type() takes tensors and numbers, but got ({type(tensor1).__name__}, {type(tensor2).__name__})")
    if isinstance(tensor1, TensorBase) or isinstance(tensor2, TensorBase):
        return _ops.mul(*map(_stand_in, (tensor1, tensor2))).dtype if isinstance(tensor1, TensorBase) else result_type(tensor2, tensor1)
    return promote_types(_dtype_of_number(tensor1), _dtype_of_number(tensor2))


def _stand_in(value: Any) -> Any:
    """A tensor of the same dtype on the meta device, where multiplying costs nothing; with dimensions if the value has some."""
    return _ops.empty((1,) if value.dim() else (), dtype=value.dtype, device="meta") if isinstance(value, TensorBase) else value


def _dtype_of_number(value: Any) -> dtype:
    if isinstance(value, bool):
        return _dtype_by_name("bool")
    if isinstance(value, int):
        return _dtype_by_name("int64")
    default = get_default_dtype()
    return promote_types(default, _dtype_by_name("complex64")) if isinstance(value, complex) else default


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch's rules let a result of dtype `from_` be written to `to`: never to a lower kind (float to int, complex to float, any to bool).

    Parameters:
        from_ (dtype): the type of the values
        to (dtype): the type in which they are written

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.can_cast(trt.int64, trt.float32), trt.can_cast(trt.float32, trt.int64)
        (True, False)
    """
    return bool(can_cast_types(from_, to))
