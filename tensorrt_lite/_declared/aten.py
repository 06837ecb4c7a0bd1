"""`trt.ops.aten`: the library's own operators as objects, by PyTorch's names; `trt.ops.trtl`: those that PyTorch lacks (rows `trtl_NAME`).

A row is one operator where PyTorch has several overloads (`sum` with and without `dim`), so every overload's name of a packet gives the same
object, but for forms that write: `add.out` and the packet `add_`. Composed rows have objects, too; modes below Autograd see what they are made of.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as tensorrt_lite
from tensorrt_lite import _ops
from tensorrt_lite._C import FACTORIES
from tensorrt_lite._C.core import python_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite._declared.declarations import Declaration

Operator = python_key.Operator
_FRESH, _OUT, _INPLACE = 0, 1, 2


class ComposedOperator:
    """A composed row as an object, `ops.aten.chunk.default`: a call is the public function's."""

    namespace = "aten"

    def __init__(self, row: Declaration, overload: str, function: Callable[..., Any]) -> None:
        self.declaration, self.overload, self.function = row, overload, function
        self._name = row.name
        self.__name__ = f"{row.name}.{overload}"

    @property
    def overloadpacket(self) -> OperatorPacket | None:
        """``ops.aten.chunk``"""
        return packet_of(self)

    def name(self) -> str:
        """``aten::chunk``"""
        return f"aten::{self._name}" + ("" if self.overload == "default" else f".{self.overload}")

    @property
    def tags(self) -> frozenset[str]:
        """What the row says of it."""
        return self.declaration.tags

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload='{self.overload}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (packet(self._name), self.overload)


class OperatorPacket:
    """All forms of one name: `ops.aten.add`. A call is the public function's."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._row = name
        self._mode = _FRESH
        if python_key.operator_object(name) is None and name.endswith("_"):
            self._row, self._mode = name[:-1], _INPLACE

    def _form(self, overload: str) -> Any:
        row = composed_row(self.__name__)
        if row is not None and row.kind == "composed":
            return ComposedOperator(row, overload, row.function) if overload in overloads_of(row) else None
        if self.__name__ in FACTORIES:

            function = getattr(tensorrt_lite, self.__name__, None) or getattr(tensorrt_lite.Tensor, self.__name__, None)
            return None if function is None else python_key.factory_object(function)
        written = overload == "out" or overload.endswith("_out")
        return python_key.operator_object(self._row, _OUT if written and self._mode == _FRESH else self._mode)

    def overloads(self) -> list[str]:
        """PyTorch's names of the forms, with `out` where results may be given."""
        row = composed_row(self.__name__)
        if row is not None and row.kind == "composed":
            return overloads_of(row)
        declared = declared_row(self._row)
        if declared is not None and declared.overloads:
            return [name for name in overloads_of(declared) if name != "out" or self._mode == _FRESH]
        forms = (self._form("default"), self._form("out"))
        return [form.overload for form in dict.fromkeys(forms) if form is not None]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        form = self._form(name)
        if form is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        setattr(self, name, form)
        return form

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        row = composed_row(self.__name__)
        function = _ops.FUNCTIONS.get(self.__name__) if row is None else row.function
        return (self._form("out" if "out" in kwargs else "default") if function is None else function)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"trtl.{self.__name__[5:]}" if self.__name__.startswith("trtl_") else f"aten.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return packet, (self.__name__,)


def composed_row(name: str) -> Declaration | None:
    """The row of an operator without a kernel of its own, None of others."""
    import tensorrt_lite._declared.declarations as _declarations

    found = _declarations.find(name) if python_key.operator_object(name) is None else None
    return found[0] if found is not None and found[0].name == name and found[0].kind in ("composed", "factory") else None


def declared_row(name: str) -> Declaration | None:
    """The row of this name."""
    import tensorrt_lite._declared.declarations as _declarations

    return _declarations.of(name) if name in _declarations.names() else None


def overloads_of(row: Declaration) -> list[str]:
    """PyTorch's names of a row's overloads."""
    names = [schema.partition("(")[0].partition(".")[2] or "default" for schema in row.overloads or (row.schema,)]
    return [*names, "out"] if "out" in row.variants else names


_packets: dict[str, OperatorPacket] = {}


def packet(name: str) -> OperatorPacket | None:
    """The packet of a name, None where neither a row nor a public function has it."""
    found = _packets.get(name)
    if found is None:
        made = OperatorPacket(name)
        if python_key.operator_object(made._row) is None and name not in _ops.FUNCTIONS and name not in FACTORIES and composed_row(name) is None:
            return None
        found = _packets.setdefault(name, made)
    return found


def schema_of(operator: Any) -> Any:
    """The schema of an operator object, taken apart."""
    import tensorrt_lite._declared.declarations as _declarations
    import tensorrt_lite._declared.schema as _schema

    if isinstance(operator, Operator):
        text = operator.schema.removeprefix("trtl_")
    else:
        found = _declarations.find(operator._name)
        if found is None:
            raise AttributeError(f"{operator} has no schema")
        text = found[0].schema
    text = re.sub(r"Tensor\?(\(\w+!?\))", r"Tensor\1?", text)  # rows write the ? first
    return _schema.parse(f"{operator.namespace}::{text}")


def packet_of(operator: Any) -> OperatorPacket | None:
    """The packet that an operator object belongs to."""
    return packet(operator.row_name if isinstance(operator, Operator) else operator._name)
