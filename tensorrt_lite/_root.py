"""Names of the root module that are there from the start: public operators, dtypes, memory formats, sizes, a few functions over them.

Modules of the package import this one, never the root itself, whose other names lead to all of them. `_ops` and `tensor` are on its floor.
"""

# ruff: noqa: F401 (what is imported here is public)

from __future__ import annotations

from tensorrt_lite import _ops, _public
from tensorrt_lite.tensor import _TYPE_NAMES as _type_names
from tensorrt_lite.tensor import Tensor, UntypedStorage

from tensorrt_lite._C.core.device import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    get_default_device,
    jagged,
    layout,
    memory_format,
    preserve_format,
    set_default_device,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tensorrt_lite._C.core.dispatch import is_grad_enabled, is_inference_mode_enabled
from tensorrt_lite._C.core.dtype import dtype, get_default_dtype, promote_types, set_default_dtype
from tensorrt_lite._C.core.dtype import _dtype_by_name as _by_name
from tensorrt_lite._C.core.dtype import labels as _labels
from tensorrt_lite._C.core.parallel import get_num_threads, set_num_threads
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule
from tensorrt_lite._size import Size, broadcast_shapes
from tensorrt_lite._size import refuse_sizes as _refuse_sizes

_typed_storage = _LazyModule("tensorrt_lite._legacy.typed_storage")
globals().update(_public.functions(_ops.FUNCTIONS, "tensorrt_lite"))

bool = _by_name("bool")
uint8 = _by_name("uint8")
int8 = _by_name("int8")
int16 = short = _by_name("int16")
int32 = int = _by_name("int32")
int64 = long = _by_name("int64")
float16 = half = _by_name("float16")
bfloat16 = _by_name("bfloat16")
float32 = float = _by_name("float32")
float64 = double = _by_name("float64")
complex64 = cfloat = _by_name("complex64")
complex128 = cdouble = _by_name("complex128")
complex32 = chalf = _by_name("complex32")
inf = 1e400
nan = inf - inf
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None

_type_names.update(_labels())
globals().update({kind.name: kind for kind in _type_names})


def is_tensor(obj) -> type(True):
    """Whether obj is a Tensor.

    Parameters:
        obj (object): any object

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_tensor(trt.ones(2)), trt.is_tensor([1.0, 1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj) -> type(True):
    """Whether obj is a storage.

    Parameters:
        obj (object): any object

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_storage(trt.ones(2).untyped_storage())
        True
    """
    return isinstance(obj, UntypedStorage) or type(obj).__name__ == "TypedStorage" and isinstance(obj, _typed_storage.TypedStorage)


def numel(input) -> type(0):
    """The number of elements."""
    return input.numel()


def is_floating_point(input) -> type(True):
    return input.is_floating_point()


def is_complex(input) -> type(True):
    return input.is_complex()


def typename(obj) -> str:
    """A tensor's type as type() names it ("torch.FloatTensor"), the qualified name of other objects' class.

    Parameters:
        obj (object): any object

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.typename(trt.ones(2))
        'torch.FloatTensor'
    """
    return obj.type() if isinstance(obj, Tensor) else f"{type(obj).__module__}.{type(obj).__qualname__}"


def broadcast_tensors(*tensors):
    """The tensors, those of another shape as views expanded to the common one."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    try:
        shape = broadcast_shapes(*(t.shape for t in tensors))
    except RuntimeError:
        _refuse_sizes(*(t.shape for t in tensors))
        raise
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


for _name in ("numel", "is_floating_point", "is_complex", "broadcast_tensors"):
    globals()[_name] = _public.function(globals()[_name], _name, "tensorrt_lite")
for _function in (is_tensor, is_storage, typename, broadcast_shapes):
    _function.__module__ = "tensorrt_lite"
