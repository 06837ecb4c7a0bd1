"""`trt.ops.aten`: the library's own operators as objects, by PyTorch's names; `trt.ops.trtl`: those that PyTorch lacks (rows `trtl_NAME`).

There is one object per overload, `sum.default` and `sum.dim_IntList`, with its own schema; a packet has all overloads of a name. Composed rows
and factories have objects, too; modes below Autograd see what composed operators are made of.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite import _root as tensorrt_lite
from tensorrt_lite._declared import overloads as _overloads
from tensorrt_lite._C import FACTORIES
from tensorrt_lite._C.core import python_key
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_declared_schema = _LazyModule("tensorrt_lite._declared.schema")

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite._declared.declarations import Declaration

Operator = python_key.Operator


class ComposedOperator:
    """A composed row's overload as an object, `ops.aten.chunk.default`: a call is the public function's."""

    namespace = "aten"

    def __init__(self, row: Declaration, overload: str, schema: str, function: Callable[..., Any]) -> None:
        self.declaration, self.overload, self.schema, self.function = row, overload, schema, function
        self._name = self._opname = row.name
        self._overloadname = overload
        self.__name__ = f"{row.name}.{overload}"

    @property
    def overloadpacket(self) -> OperatorPacket | None:
        """``ops.aten.chunk``"""
        return packet_of(self)

    _overloadpacket = overloadpacket

    @property
    def _schema(self) -> Any:
        return schema_of(self)

    def name(self) -> str:
        """``aten::chunk``"""
        return f"aten::{self._name}" + ("" if self.overload == "default" else f".{self.overload}")

    @property
    def tags(self) -> list[Any]:
        """PyTorch's tags of the overload."""
        return tags_of(self)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload='{self.overload}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (packet(self._name), self.overload)


class OperatorPacket:
    """All overloads of one name: `ops.aten.add`. A call is the public function's where there is one, else that of the overload that takes the arguments."""

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__ = name
        self.namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self._key = name if namespace == "aten" else f"{namespace}_{name}"
        self._forms: dict[str, Any] = {}

    def _form(self, overload: str) -> Any:
        if overload not in self._forms:
            found = self._made(overload)
            if found is None:
                return None
            self._forms.setdefault(overload, found)
        return self._forms[overload]

    def _made(self, overload: str) -> Any:
        found = python_key.overload_object(self._key, overload)
        if found is not None or self.namespace != "aten":
            return found
        row = composed_row(self.__name__)
        if row is not None and row.kind == "composed":
            text = composed_schemas(row).get(overload)
            return None if text is None else ComposedOperator(row, overload, text, row.function)
        if self.__name__ in FACTORIES and overload in (*factory_overloads(self.__name__), "default"):
            function = getattr(tensorrt_lite, self.__name__, None) or getattr(tensorrt_lite.Tensor, self.__name__, None)
            return None if function is None else python_key.factory_object(function)
        return None

    def overloads(self) -> list[str]:
        """PyTorch's names of the overloads."""
        found = dict.fromkeys(_overloads.index().get(self._key, ()))
        row = composed_row(self.__name__) if self.namespace == "aten" else None
        if row is not None:
            found |= dict.fromkeys(composed_schemas(row) if row.kind == "composed" else ["default"])
        return list(found)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        form = self._form(name)
        if form is None:
            raise AttributeError(f"The underlying op of '{self.namespace}.{self.__name__}' has no overload name '{name}'")
        setattr(self, name, form)
        return form

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.overloads()]

    def __iter__(self) -> Any:
        return iter(self.overloads())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        row = composed_row(self.__name__)
        function = None if self.namespace != "aten" else _ops.FUNCTIONS.get(self.__name__) if row is None else row.function
        if function is not None:
            return function(*args, **kwargs)
        errors = []
        for overload in self.overloads():
            form = self._form(overload)
            if fits(form, args, kwargs):
                return form(*args, **kwargs)
            errors.append(f"  {form._schema}")
        raise RuntimeError(f"{self._qualified_op_name}: no overload takes these arguments:\n" + "\n".join(errors))

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return packet, (self.__name__, self.namespace)


def fits(form: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call's arguments are of the types in the schema."""
    try:
        form._schema.bind(args, dict(kwargs))
    except RuntimeError:
        return False
    return True


def composed_row(name: str) -> Declaration | None:
    """The row of an operator without a kernel of its own, None of others."""
    found = _declarations.find(name) if python_key.row_schema(name) is None else None
    return found[0] if found is not None and found[0].name == name and found[0].kind in ("composed", "factory") else None


def composed_schemas(row: Declaration) -> dict[str, str]:
    """{overload: schema} of a composed row."""
    texts = list(row.overloads or (row.schema,))
    if "out" in row.variants and not any(_overloads.is_out(text) for text in texts):
        texts += [_overloads.out_text(text) for text in texts]
    return {_overloads.full_name(text)[1]: text for text in texts}


def factory_overloads(name: str) -> list[str]:
    """PyTorch's names of a factory's overloads, which are one object."""
    row = composed_row(name)
    return [] if row is None else [_overloads.full_name(text)[1] for text in row.overloads or (row.schema,)]


_packets: dict[tuple[str, str], OperatorPacket] = {}


def packet(name: str, namespace: str = "aten") -> OperatorPacket | None:
    """The packet of a name, None where neither a row nor a public function has it."""
    if name.startswith("trtl_"):
        name, namespace = name.removeprefix("trtl_"), "trtl"
    found = _packets.get((name, namespace))
    if found is None:
        made = OperatorPacket(name, namespace)
        if made._key not in _overloads.index() and (namespace != "aten" or name not in _ops.FUNCTIONS and name not in FACTORIES and composed_row(name) is None):
            return None
        found = _packets.setdefault((name, namespace), made)
    return found


def schema_of(operator: Any) -> Any:
    """The schema of an operator object, taken apart."""
    text = getattr(operator, "schema", None) if isinstance(operator, (Operator, ComposedOperator)) else None
    if text is None:
        found = _declarations.find(operator._name)
        if found is None:
            raise AttributeError(f"{operator} has no schema")
        texts = found[0].overloads or (found[0].schema,)
        text = next((t for t in texts if _overloads.full_name(t)[1] == operator.overload), texts[0])
    text = re.sub(r"Tensor\?(\(\w+!?\))", r"Tensor\1?", text)  # rows may write the ? first
    return _declared_schema.parse(f"{operator.namespace}::{text.removeprefix('trtl_')}")


def declarations_of(operator: Any) -> list[Declaration]:
    """The rows that an overload is a call of."""
    if isinstance(operator, ComposedOperator):
        return [operator.declaration]
    if isinstance(operator, Operator):
        rows = dict.fromkeys([operator.row_name, *(way.row_name for way in operator.ways)])
        public = [name if name in _declarations.names() else f"{name}_" for name in rows]  # of a row in place alone
        return [_declarations.of(name) for name in public if name in _declarations.names()]
    found = _declarations.find(operator._name)
    return [] if found is None else [found[0]]


_OF_ALL_FORMS = ("data_dependent_output", "dynamic_output_shape", "nondeterministic_seeded", "pointwise", "reduction")


def tags_of(operator: Any) -> list[Any]:
    """PyTorch's tags of an overload, by what its rows say."""
    return list(_known_tags(operator))


@cache
def _known_tags(operator: Any) -> tuple[Any, ...]:
    from tensorrt_lite._functions.package_facts import Tag

    overload = operator.overload
    said = set[str]()
    for row in declarations_of(operator):
        said |= {tag.partition(".")[0] for tag in row.tags if "." not in tag or tag.partition(".")[2] == overload}
    writes = getattr(operator, "mode", 0)
    in_place = writes == 2 or operator._name.endswith("_") and not operator._name.startswith("_")
    out = writes == 1 or overload == "out" or overload.endswith("_out")
    found = {tag for tag in _OF_ALL_FORMS if tag in said} | {"pt2_compliant_tag"}
    if "core" in said and not in_place and not out:
        found.add("core")
    if in_place:
        found |= {"inplace"} | {"inplace_view"} & said
    if out:
        found.add("out")
    return tuple(sorted(Tag[name] for name in found))


def packet_of(operator: Any) -> OperatorPacket | None:
    """The packet that an operator object belongs to."""
    return packet(operator._name, operator.namespace)
