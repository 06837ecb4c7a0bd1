"""torch._ops: the classes of operators, for `isinstance` in dispatch modes. tensorrt_lite/_ops.py, which bears the name, hands them out."""

from __future__ import annotations

from abc import ABC

from tensorrt_lite import library
from tensorrt_lite._declared.aten import ComposedOperator, OperatorPacket
from tensorrt_lite._C.core import python_key

__all__ = ["OpOverload", "OpOverloadPacket"]


class OpOverload(ABC):  # noqa: B024 (the classes that are registered have no base in common)
    """One overload of an operator, the library's or a program's."""


class OpOverloadPacket(ABC):  # noqa: B024
    """The overloads of one name."""


for _kind in (python_key.Operator, python_key.Factory, ComposedOperator, library.Operator):
    OpOverload.register(_kind)
for _kind in (OperatorPacket, library._Packet):
    OpOverloadPacket.register(_kind)
