"""`trt.ops.aten`: the library's own operators as objects, by PyTorch's names.

A row is one operator where PyTorch has several overloads (`sum` with and without `dim`), so every overload's name of a packet gives the same
object, but for forms that write: `add.out` and the packet `add_`.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core import python_key

Operator = python_key.Operator
_FRESH, _OUT, _INPLACE = 0, 1, 2


class OperatorPacket:
    """All forms of one name: `ops.aten.add`. A call is the public function's."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._row = name
        self._mode = _FRESH
        if python_key.operator_object(name) is None and name.endswith("_"):
            self._row, self._mode = name[:-1], _INPLACE

    def _form(self, overload: str) -> Any:
        written = overload == "out" or overload.endswith("_out")
        return python_key.operator_object(self._row, _OUT if written and self._mode == _FRESH else self._mode)

    def overloads(self) -> list[str]:
        """The names of the forms: the one that returns fresh results, and `out` where results may be given."""
        forms = (self._form("default"), self._form("out"))
        return [form.overload for form in dict.fromkeys(forms) if form is not None]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        form = self._form(name)
        if form is None:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        form.__dict__.setdefault("overloadpacket", self)
        setattr(self, name, form)
        return form

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function = _ops.FUNCTIONS.get(self.__name__)
        return (self._form("out" if "out" in kwargs else "default") if function is None else function)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return packet, (self.__name__,)


_packets: dict[str, OperatorPacket] = {}


def packet(name: str) -> OperatorPacket | None:
    """The packet of a name, None where neither a row nor a public function has it."""
    found = _packets.get(name)
    if found is None:
        made = OperatorPacket(name)
        if python_key.operator_object(made._row) is None and name not in _ops.FUNCTIONS:
            return None
        found = _packets.setdefault(name, made)
    return found


def packet_of(operator: Any) -> OperatorPacket | None:
    """The packet that an operator object belongs to."""
    return packet(operator._name)
