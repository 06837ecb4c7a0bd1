"""torch.types: the names of what functions take, for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

import tensorrt_lite as torch
from tensorrt_lite import Size, Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Device: TypeAlias = Union[torch.device, builtins.str, builtins.int, None]
FileLike: TypeAlias = Union[builtins.str, os.PathLike, IO[builtins.bytes]]
Number: TypeAlias = Union[builtins.int, builtins.float, builtins.bool]
IntLikeType = builtins.int
FloatLikeType = builtins.float
BoolLikeType = builtins.bool
py_sym_types: tuple[Any, ...] = ()
Storage = torch.UntypedStorage

_Number = (builtins.int, builtins.float, builtins.bool)
_int, _float, _bool, _complex, _str, _bytes = builtins.int, builtins.float, builtins.bool, builtins.complex, builtins.str, builtins.bytes
_dtype, _device, _layout = torch.dtype, torch.device, torch.layout
_size: TypeAlias = Union[Size, list[builtins.int], tuple[builtins.int, ...]]
_symsize = _size
_TensorOrTensors: TypeAlias = Union[Tensor, Sequence[Tensor]]
_TensorOrOptionalTensors: TypeAlias = Union[Tensor, Sequence[Union[Tensor, None]]]
