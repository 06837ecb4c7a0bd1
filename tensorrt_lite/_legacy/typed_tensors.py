"""The typed tensor classes (`FloatTensor`, `cuda.HalfTensor`, `sparse.LongTensor`, ...) and the constructor that they share with Tensor.

They are names of a dtype on a kind of device, and of a layout, strided or sparse_coo: `isinstance(x, trt.LongTensor)` asks for those, `x.type(trt.LongTensor)` converts,
calling one makes an ordinary Tensor. Nothing is an instance by class, and none can be a base class.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._names.listing import root as _public_root
from tensorrt_lite import _ops
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.warning import warn_once
from tensorrt_lite._size import Size
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda = _LazyModule("tensorrt_lite.cuda")
_sparse = _LazyModule("tensorrt_lite.sparse")
_cuda_sparse = _LazyModule("tensorrt_lite.cuda.sparse")

# "ComplexFloatTensor" and "ComplexDoubleTensor" are names of types, not of classes.
NAMES = {f"{name}Tensor": dtype for dtype, name in trt._type_names.items() if not name.startswith(("Complex", "UInt", "Float8"))}
SPARSE_NAMES = {name: dtype for name, dtype in NAMES.items() if name != "BoolTensor"}  # PyTorch has no torch.sparse.BoolTensor

_SPARSE_FORMS = """expected one of:
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def _is_sequence(x: Any) -> bool:
    """Whether instances, and not only their class (an Enum's), have items."""
    return any("__getitem__" in c.__dict__ for c in type(x).__mro__)


def _check_place(place: Any, device: str) -> None:
    if place is not None and trt.device(place).type != device:
        raise RuntimeError(f"legacy constructor expects device type: {device} but device type: {trt.device(place).type} was passed")


def _sparse_deprecated(old: str, new: str) -> None:
    warn_once(f"torch.sparse.SparseTensor({old}) is deprecated.  Please use torch.sparse_coo_tensor({new}).")


def construct_sparse(args: tuple, kwargs: dict, dtype: Any, device: str = "cpu") -> Any:
    """What `sparse.FloatTensor(...)` makes: a sparse_coo tensor of (indices, values[, size]), or of sizes alone without entries.

    The values keep their own dtype, as in PyTorch. TypeError for other arguments, RuntimeError for indices that are not int64 (sparse_dim, nnz).
    """
    _check_place(kwargs.pop("device", None), device)
    names = ("indices", "values", "size")
    if unknown := [name for name in kwargs if name not in names]:
        raise TypeError(f"new() got an unexpected keyword argument '{unknown[0]}'")
    if all(type(size) is int for size in args) and not kwargs:
        _sparse_deprecated("shape, *, device=", "shape, dtype=, device=")
        return trt.sparse_coo_tensor(Size(args or (0,)), dtype=dtype, device=device)
    if len(args) > 3:
        raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
    given = dict(zip(names, args))
    if twice := [name for name in given if name in kwargs]:
        raise TypeError(f"new() got multiple values for argument '{twice[0]}'")
    if len(args) == 1 and not kwargs and not isinstance(args[0], TensorBase):
        given = {"size": args[0]}
    given.update(kwargs)
    if set(given) == {"size"} and isinstance(given["size"], (tuple, list)):
        if len(args) == 1 and not isinstance(args[0], Size):
            raise TypeError(
                "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided tensor "
                "and convert it to sparse via to_sparse."
            )
        _sparse_deprecated("shape, *, device=", "shape, dtype=, device=")
        return trt.sparse_coo_tensor(Size(given["size"]), dtype=dtype, device=device)
    indices, values = given.get("indices"), given.get("values")
    if not (isinstance(indices, TensorBase) and isinstance(values, TensorBase) and isinstance(given.get("size", ()), (tuple, list))):
        kinds = ", ".join([type(a).__name__ for a in args] + [f"{name}={type(value).__name__}" for name, value in kwargs.items()])
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}), but {_SPARSE_FORMS}")
    if indices.dim() == 2 and indices.dtype is not trt.int64:
        raise RuntimeError(f"expected scalar type Long but found {trt._type_names[indices.dtype]}")
    shape = "shape, " if "size" in given else ""
    _sparse_deprecated(f"indices, values, {shape}*, device=", f"indices, values, {shape}dtype=, device=")
    return trt.sparse_coo_tensor(indices, values, *([Size(given["size"])] if "size" in given else []), device=device)


def construct(args: tuple, kwargs: dict, dtype: Any = None, device: str = "cpu") -> Any:
    """What `FloatTensor(...)` or, without a dtype, `Tensor(...)` makes of a tensor, a storage, a sequence or sizes.

    A tensor and a storage are shared, sizes give undefined contents. TypeError for other data and for a tensor of another dtype.
    """
    if "device" in kwargs and args and isinstance(args[0], TensorBase):
        raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or torch.as_tensor(...) instead.")
    _check_place(kwargs.pop("device", None), device)
    if len(kwargs) == 1 and not args and next(iter(kwargs)) in ("data", "size", "other", "storage"):
        args = (Size(kwargs["size"]),) if "size" in kwargs else tuple(kwargs.values())
    elif kwargs:
        raise TypeError(f"new() received an invalid combination of arguments - got ({', '.join(kwargs)})")
    wanted = trt.get_default_dtype() if dtype is None else dtype
    if not args:
        return _ops.empty(0, dtype=wanted, device=device)
    data = args[0]
    if len(args) > 1 or isinstance(data, Size) or type(data) is int:
        return _ops.empty(*args, dtype=wanted, device=device)
    if isinstance(data, TensorBase):
        if dtype is not None and (data.dtype != dtype or data.device.type != device):
            raise TypeError(f"expected a tensor of {dtype} on {device} (got {data.dtype} on {data.device})")
        return data.view_as(data)
    if isinstance(data, trt.UntypedStorage) or hasattr(data, "untyped"):
        return _ops.empty(0, dtype=wanted, device=device).set_(data)
    if _is_sequence(data) and not getattr(data, "ndim", 1) == 0:
        return _ops.tensor(data, dtype=wanted, device=device)
    if isinstance(data, bool) or not hasattr(type(data), "__index__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return _ops.empty(data.__index__(), dtype=wanted, device=device)


class tensortype(type):  # noqa: N801 (PyTorch's name)
    """The class of the typed tensor classes."""

    dtype: Any
    is_cuda: bool
    is_sparse = False
    layout = trt.strided

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.is_cuda and not _cuda.is_available():
            raise TypeError(f"type {cls.__module__}.{cls.__name__} not available: there is no CUDA device.")
        make = construct_sparse if cls.is_sparse else construct
        return make(args, kwargs, cls.dtype, "cuda" if cls.is_cuda else "cpu")

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance.dtype == cls.dtype
            and instance.layout is cls.layout
            and instance.device.type == ("cuda" if cls.is_cuda else "cpu")
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls


def _not_a_base(cls: type, **kwargs: Any) -> None:
    raise TypeError("type 'torch.tensortype' is not an acceptable base type")


def typed_class(name: str, cuda: bool = False, sparse: bool = False) -> tensortype:
    """The class of a name in NAMES, or in SPARSE_NAMES."""
    place = "CUDA" if cuda else "the CPU"
    makes = "sparse_coo tensor of indices, values and sizes" if sparse else "Tensor of a sequence, or one of undefined contents of sizes"
    said = f"""{"Sparse tensors" if sparse else "Tensors"} of {str(NAMES[name]).rpartition(".")[2]} on {place}: `isinstance` asks for them, `x.type()` converts to them.

    A call makes an ordinary {makes}. TypeError for other data.
    """
    module = ".".join(["torch", *(["cuda"] if cuda else []), *(["sparse"] if sparse else [])])
    body = {"__doc__": said, "dtype": NAMES[name], "is_cuda": cuda, "__module__": module, "__init_subclass__": classmethod(_not_a_base)}
    if sparse:
        body |= {"is_sparse": True, "layout": trt.sparse_coo}
    return tensortype(name, (), body)


def class_named(name: str) -> tensortype | None:
    """The class that a type's string ("torch.cuda.FloatTensor", "torch.sparse.FloatTensor") names, None for what is no such string."""
    package, _, last = name.rpartition(".")
    package = package.replace("tensorrt_lite", "torch", 1)
    places = {"torch": _public_root(), "torch.cuda": _cuda, "torch.sparse": _sparse, "torch.cuda.sparse": _cuda_sparse}
    if package not in places or last not in (SPARSE_NAMES if package.endswith("sparse") else NAMES):
        return None
    return getattr(places[package], last)


def type_string(t: Any) -> str:
    """`x.type()`: PyTorch's name of the tensor's type."""
    kind = "" if t.device.type == "cpu" else f"{t.device.type}."
    return f"torch.{kind}{trt._type_names[t.dtype]}Tensor"


def converted(t: Any, dtype: Any, non_blocking: bool) -> Any:
    """`x.type(dtype)` for a dtype, a typed tensor class, its string, or Tensor, which stands for the default type."""
    wanted = dtype
    if isinstance(dtype, str):
        dtype = class_named(dtype)
        if dtype is None:
            raise ValueError(f"invalid type: '{wanted}'")
    if isinstance(dtype, tensortype):
        return t.to(device="cuda" if dtype.is_cuda else "cpu", dtype=dtype.dtype, non_blocking=non_blocking)
    if dtype is trt.Tensor:
        return t.to(device="cpu", dtype=trt.get_default_dtype(), non_blocking=non_blocking)
    if isinstance(dtype, trt.dtype):
        return t.to(dtype=dtype, non_blocking=non_blocking)
    if isinstance(dtype, type):
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    raise TypeError("dtype must be a type, str, or dtype object")


def set_default_tensor_type(t: Any) -> None:
    """The default dtype and device of new tensors by a typed tensor class of floating-point numbers, or its string.

    Parameters:
        t (type or str): such as FloatTensor, or "torch.DoubleTensor"

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_default_tensor_type("torch.DoubleTensor")
        >>> trt.tensor([1.5]).dtype
        torch.float64
        >>> trt.set_default_tensor_type("torch.FloatTensor")
    """
    kind = class_named(t) if isinstance(t, str) else t
    if isinstance(kind, tensortype) and kind.is_sparse:
        raise TypeError("only dense types are supported as the default type")
    if not isinstance(kind, tensortype) or not kind.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type" if isinstance(kind, tensortype)
                        else f"invalid type object {t!r}: only floating-point types are supported as the default type")
    trt.set_default_dtype(kind.dtype)
    trt.set_default_device("cuda" if kind.is_cuda else None)
