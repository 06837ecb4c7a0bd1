"""Schemas of user-defined operators: their text ("(Tensor x, float s=1.0, *, int[] dims) -> Tensor") read, inferred from a function's annotations, and
arguments bound and checked by them. The grammar is PyTorch's; used by `tensorrt_lite.library`."""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from dataclasses import dataclass
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.row_schema import split_arguments as _split

MISSING = inspect.Parameter.empty
_TYPES_OF_ROWS = ("PyObject", "Tensors", "Ints", "Generator", "Storage", "Stream", "Dimname")  # of the library's own operators alone
_BASE_TYPES = ("Tensor", "int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "Layout", "MemoryFormat")
# name, then (a) or (a!) for aliased and written tensors, then any of ? [] [n] after each other
_TYPE = re.compile(r"(?P<base>\w+)(?:\((?P<alias>\w+)(?P<written>!?)(?:\s*->\s*[\w|*]+)?\))?(?P<suffix>(?:\?|\[\d*\])*)")


@dataclass(frozen=True)
class Type:
    """`base`, then its suffixes in order: "Tensor?[]" is ("Tensor", ("?", "[]"))."""

    base: str
    suffixes: tuple[str, ...] = ()
    alias: str | None = None
    written: bool = False

    def __str__(self) -> str:
        return self.base + (f"({self.alias}{'!' if self.written else ''})" if self.alias else "") + "".join(self.suffixes)

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_list(self) -> bool:
        return "[]" in self.suffixes

    def accepts(self, value: Any) -> bool:
        """Whether an argument may be this value."""
        return self._accepts(value, len(self.suffixes))

    def _accepts(self, value: Any, depth: int) -> bool:
        if depth:
            suffix = self.suffixes[depth - 1]
            if suffix == "?":
                return value is None or self._accepts(value, depth - 1)
            return isinstance(value, (list, tuple)) and all(self._accepts(v, depth - 1) for v in value)
        kind = self.base
        if kind == "Tensor":
            return isinstance(value, trt.Tensor)
        if kind in ("int", "SymInt"):
            return isinstance(value, int) and not isinstance(value, bool)
        if kind == "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "bool":
            return isinstance(value, bool)
        if kind == "str":
            return isinstance(value, str)
        if kind == "Scalar":
            return isinstance(value, (int, float, complex, bool))
        if kind == "ScalarType":
            return isinstance(value, trt.dtype)
        if kind == "Device":
            return isinstance(value, (trt.device, str))
        return True


@dataclass(frozen=True)
class Argument:
    name: str
    type: Type
    default: Any = MISSING
    kwarg_only: bool = False

    @property
    def default_value(self) -> Any:
        """The default, None where there is none, too."""
        return None if self.default is MISSING else self.default

    def has_default_value(self) -> bool:
        return self.default is not MISSING

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + ("" if self.default is MISSING else f"={_literal(self.default)}")


class Schema:
    """An operator's name, arguments and returns. `str(schema)` and `repr(schema)` are its text."""

    def __init__(self, name: str, arguments: list[Argument], returns: list[Type], text: str | None = None) -> None:
        self.name, self.arguments, self.returns, self._text = name, arguments, returns, text
        self.positional = [a for a in arguments if not a.kwarg_only]
        self.by_name = {a.name: i for i, a in enumerate(arguments)}
        if len(self.by_name) != len(arguments):
            raise RuntimeError(f"{name}: two arguments have the same name")
        self.tensors = [i for i, a in enumerate(arguments) if a.type.is_tensor]
        self.written = [i for i in self.tensors if arguments[i].type.written]

    @property
    def is_mutable(self) -> bool:
        return bool(self.written)

    @property
    def overload_name(self) -> str:
        """What stands behind the point of the name, or ""."""
        return self.name.partition(".")[2]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        parts: list[str] = []
        for a in self.arguments:
            if a.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(str(a))
        returns = ", ".join(map(str, self.returns))
        return f"{self.name}({', '.join(parts)}) -> {returns if len(self.returns) == 1 else f'({returns})'}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The values of all arguments in order. RuntimeError where one is missing, unknown, given twice or of another type."""
        if len(args) > len(self.positional):
            raise RuntimeError(f"{self.name}() takes {len(self.positional)} positional argument(s) but {len(args)} was/were given.  Declaration: {self}")
        values = [*args, *(a.default for a in self.arguments[len(args) :])]
        for name, value in kwargs.items():
            position = self.by_name.get(name)
            if position is None:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
            if position < len(args):
                raise RuntimeError(f"{self.name}() got multiple values for argument '{name}'. Declaration: {self}")
            values[position] = value
        for position, (argument, value) in enumerate(zip(self.arguments, values)):
            if value is argument.default and value is not MISSING:
                continue
            if value is MISSING:
                raise RuntimeError(f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}")
            if not argument.type.accepts(value):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead found type '{type(value).__name__}'.\n"
                    f"Position: {position}\nDeclaration: {self}"
                )
        return values


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    return f'"{value}"' if isinstance(value, str) else "[" + ", ".join(map(_literal, value)) + "]" if isinstance(value, (list, tuple)) else str(value)


# ---- from text


def parse(text: str) -> Schema:
    """The schema in a text. RuntimeError that shows what was not understood."""
    match = re.fullmatch(r"\s*(?P<name>[\w:.]+)\s*\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+?)\s*", text, re.DOTALL)
    if match is None:
        raise RuntimeError(f"expected a schema such as \"name(Tensor x) -> Tensor\", got {text!r}")
    arguments: list[Argument] = []
    only_keywords = False
    for part in _split(match["arguments"]):
        if part == "*":
            only_keywords = True
            continue
        arguments.append(_argument(part, only_keywords, text))
    returns = match["returns"]
    inside = returns[1:-1] if returns.startswith("(") and returns.endswith(")") else None
    types_ = [_type(part.split()[0], text) for part in _split(inside) if part] if inside is not None else [_type(returns.split()[0], text)]
    return Schema(match["name"], arguments, types_, text if match["name"].startswith(("aten::", "trtl::")) else None)


def _type(text: str, schema: str) -> Type:
    match = _TYPE.fullmatch(text)
    if "|" in text and "->" not in text and schema.startswith(("aten::", "trtl::")):  # several types, of rows alone
        return Type(text)
    if match is None or match["base"] not in _BASE_TYPES and not (schema.startswith(("aten::", "trtl::")) and match["base"] in _TYPES_OF_ROWS):
        raise RuntimeError(f"unknown type specifier {text!r} in {schema!r}. Valid types: {', '.join(_BASE_TYPES)}, with ? for optional and [] for lists")
    suffixes = tuple("?" if s == "?" else "[]" for s in re.findall(r"\?|\[\d*\]", match["suffix"]))
    return Type(match["base"], suffixes, match["alias"], match["written"] == "!")


def _argument(part: str, only_keywords: bool, schema: str) -> Argument:
    match = re.fullmatch(r"(?P<type>\S+(?:\s*->\s*\S+)?)\s+(?P<name>\w+)\s*(?:=\s*(?P<default>.+))?", part, re.DOTALL)
    if match is None:
        raise RuntimeError(f"expected an argument such as \"Tensor x\" or \"int n=3\", got {part!r} in {schema!r}")
    return Argument(match["name"], _type(match["type"], schema), MISSING if match["default"] is None else _value(match["default"].strip(), schema), only_keywords)


def _value(text: str, schema: str) -> Any:
    import ast

    try:
        value = text if text.startswith("torch.") else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise RuntimeError(f"the default {text!r} in {schema!r} is no literal") from None
    return list(value) if isinstance(value, tuple) else value


# ---- from annotations


def infer(function: Any, mutates_args: Any, name: str = "") -> str:
    """The schema text of an annotated function, without a name unless one is given. ValueError naming the parameter that has no type or a wrong one."""

    def refuse(why: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {why} Got func with signature {signature})")

    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        refuse(f"an annotation cannot be read: {error}.")
    unknown = mutates_args == "unknown"
    mutated = set() if unknown else {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    parts, count = [], 0
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            refuse(f"We do not support positional-only args, varargs, or varkwargs: {parameter.name}.")
        if parameter.name not in hints:
            refuse(f"Parameter {parameter.name} must have a type annotation.")
        kind = _annotation(hints[parameter.name])
        if kind is None:
            refuse(f"Parameter {parameter.name} has unsupported type {hints[parameter.name]}.")
        if parameter.name in mutated or unknown and kind.startswith("Tensor"):
            if not kind.startswith("Tensor"):
                refuse(f"Parameter {parameter.name} is in mutates_args but is not a Tensor or list of Tensors.")
            kind = kind.replace("Tensor", f"Tensor(a{count}!)", 1)
        count += 1
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.default is not parameter.empty and not isinstance(parameter.default, (int, float, bool, str, list, tuple, type(None))):
            refuse(f"Parameter {parameter.name} has an unsupported default value {parameter.default!r}.")
        parts.append(f"{kind} {parameter.name}" + ("" if parameter.default is parameter.empty else f"={_literal(parameter.default)}"))
    missing = mutated - set(signature.parameters)
    if missing:
        refuse(f"{missing} in mutates_args were not found in the custom op's signature.")
    if "return" not in hints:
        refuse("No return type annotation was provided. Please add one.")
    returned = hints["return"]
    if returned is type(None):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        kinds = [_annotation(t) for t in typing.get_args(returned)]
        if None in kinds:
            refuse(f"Return has unsupported type {returned}.")
        result = f"({', '.join(typing.cast(list[str], kinds))})"
    else:
        one = _annotation(returned)
        if one is None:
            refuse(f"Return has unsupported type {returned}.")
        result = one
    return f"{name}({', '.join(parts)}) -> {result}"


def _annotation(hint: Any) -> str | None:
    """The schema type of a Python annotation; None for others."""
    base = {trt.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar", trt.dtype: "ScalarType", trt.device: "Device"}
    if isinstance(hint, type) and hint in base:
        return base[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if set(arguments) == {int, float, bool}:
            return "Scalar"
        inner = [a for a in arguments if a is not type(None)]
        if len(inner) == len(arguments):
            return None
        kind = _annotation(typing.Union[tuple(inner)])
        return None if kind is None else kind + "?"
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1:
        kind = _annotation(arguments[0])
        return None if kind is None or kind.endswith("[]") else kind + "[]"
    return None
