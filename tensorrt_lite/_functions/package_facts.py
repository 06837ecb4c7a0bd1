"""What the package answers about itself, exceptions and tags by their public names, and other small functions of `torch`. Imported on first use."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.device import contiguous_format as legacy_contiguous_format
from tensorrt_lite._C.core.warning import warn_always
from tensorrt_lite.tensor import UntypedStorage as _UntypedStorage
from tensorrt_lite._root import get_default_dtype as _get_default_dtype
from tensorrt_lite._C.core.parallel import get_num_threads as _get_num_threads
from tensorrt_lite._C.core.parallel import set_num_threads as _set_num_threads

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = [
    "AcceleratorError", "FatalError", "JITException", "Tag", "classproperty", "compiled_with_cxx11_abi", "from_file", "get_file_path",
    "has_lapack", "has_mkl", "has_openmp", "has_spectral", "init_num_threads", "is_vulkan_available", "is_warn_always_enabled", "legacy_contiguous_format",
    "set_warn_always",
]  # fmt: skip

has_lapack = True
has_mkl = False
has_openmp = True
has_spectral = True


class AcceleratorError(RuntimeError):
    """An error of a device's runtime."""


class FatalError(Exception):
    """An error after which the process cannot go on. Nothing here raises it."""


class JITException(Exception):
    """An error inside of scripted code. Nothing here raises it."""

    __name__ = "Error"


class Tag(enum.IntEnum):
    """What is known of an operator, as `library.define` takes it."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


def classproperty(func: Callable[[Any], Any]) -> Any:
    """A property of the class: reading it calls `func(cls)`.

    Parameters:
        func (function): called with the class

    Example:
        >>> import tensorrt_lite as trt
        >>> class Layer:
        ...     @trt.classproperty
        ...     def kind(cls):
        ...         return cls.__name__.lower()
        >>> Layer.kind
        'layer'
    """

    class Property:
        def __get__(self, instance: Any, owner: type) -> Any:
            return func(owner)

    return Property()


def compiled_with_cxx11_abi() -> bool:
    """True, as programs expect that choose flags for C++ by it; no part of the core is C++.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.compiled_with_cxx11_abi()
        True
    """
    return True


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package lies in: get_file_path("torch", "x") is x in the package's folder.

    Parameters:
        *path_components (str): "torch", and what follows below the folder

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_file_path("torch", "nn").endswith("nn")
        True
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if path_components[:1] in (("torch",), ("tensorrt_lite",)):
        return os.path.join(package, *path_components[1:])
    return os.path.join(os.path.dirname(package), *path_components)


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A CPU tensor of `size` elements over a mapped file: (size). shared: what is written goes to the file, which is made where it is not there. RuntimeError
    for a file that cannot be opened or is too short.

    Parameters:
        filename (str): the file's path
        shared (bool or None, default None): whether what is written to the tensor goes to the file
        size (int, default 0): how many elements
        dtype (dtype or None, default None): the type of the elements; None is the default
        layout (layout or None, default None): strided
        device (device or None, default None): must be the CPU
        pin_memory (bool, default False): whether the memory is page-locked, which needs CUDA
        requires_grad (bool, default False): whether the result records gradients

    Example:
        >>> import tensorrt_lite as trt
        >>> import tempfile
        >>> file = tempfile.NamedTemporaryFile()
        >>> count = file.write(bytes([1, 2, 3])), file.flush()
        >>> trt.from_file(file.name, size=3, dtype=trt.uint8)
        tensor([1, 2, 3], dtype=torch.uint8)
    """
    dtype = _get_default_dtype() if dtype is None else dtype
    if size < 0:
        raise RuntimeError(f"from_file(): size must not be negative (got {size})")
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    storage = _UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return _ops.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,)).requires_grad_(requires_grad)


def init_num_threads() -> None:
    """Let operators use as many threads as at the start of the process.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.init_num_threads()
        >>> trt.get_num_threads() > 0
        True
    """
    _set_num_threads(_get_num_threads())


def is_vulkan_available() -> bool:
    """False: there is no such device.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_vulkan_available()
        False
    """
    return False


def is_warn_always_enabled() -> bool:
    """Whether warnings that come once in a process come at each occasion.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_warn_always_enabled()
        False
    """
    return warn_always()


def set_warn_always(b: bool, /) -> None:
    """Have warnings that come once in a process come at each occasion, or no longer. TypeError for what is no bool.

    Parameters:
        b (bool): whether they come at each occasion

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_warn_always(False)
        >>> trt.is_warn_always_enabled()
        False
    """
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warn_always(b)
