"""What the rows of all operators say, for those who ask at run time: names, schemas, expressions, derivatives, docstrings.

The table is `_C/declarations.py`, generated from cysrc/ops; nothing imports it before the first question. `of("add")` is a row by its
name, `find("Tensor.add_")` by a public path with the form that stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, KeysView, Mapping
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from tensorrt_lite._names import listing as _listing
from tensorrt_lite import _ops
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_declarations = _LazyModule("tensorrt_lite._C.declarations")
_expression = _LazyModule("tensorrt_lite._C.expression")
_help = _LazyModule("tensorrt_lite._declared.help")
_shapes = _LazyModule("tensorrt_lite._declared.shapes")

if TYPE_CHECKING:
    import ast

FUNCTION, METHOD, INPLACE = "function", "method", "inplace"
_SPACES = ("", "Tensor", "nn.functional", "linalg", "fft", "special")  # where rows are public


class Declaration:
    """A row. Attributes that it does not have are empty.

    name, family; kind: pointwise, structured, function, composed or factory; schema: in PyTorch's notation; overloads: PyTorch's schemas where they are
    several; variants; aliases: other public names; doc: the docstring of the function, None where the body has it; view: whether results
    share memory. Of pointwise rows dtypes; expressions: {"": Python's syntax over the arguments, or "integer", "complex", "bool" for those
    dtypes}; promote. derivatives: {argument: formula}; forward: how tangents pass; autocast; samples: what the tests draw; symbol: `add`
    of `+`; dims: which dimension of which operand goes where; shape, dtype, require, let: sizes and dtypes of the results (tools/codegen/shapes.py). by_name, opaque, spellings, starred: how calls are written and handed to
    overrides; forms: by overload what its arguments are of the row's, where names don't tell; wraps: Tensor overloads take Python numbers; manual: the entry is written by hand.
    """

    name: str
    kind: str
    family: str
    schema: str
    overloads: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    view = manual = by_name = opaque = wraps = False
    starred: str | None = None
    dtypes: tuple[str, ...] = ()
    promote: str = "same"
    symbol = samples = node = dims = ""
    autocast: str | dict[str, str] | None = None
    tagged: tuple[str, ...] = ()
    selects: str = ""
    shape: str | tuple[str, ...] = ""
    dtype: str | tuple[str, ...] = ""

    def __init__(self, name: str, what: dict[str, Any]) -> None:
        self.name = name
        self.expressions: dict[str, str] = {}
        self.derivatives: dict[str, str] = {}
        self.forward: str | dict[str, str] = {}
        self.spellings: dict[str, str] = {}
        self.forms: dict[str, dict[str, Any]] = {}
        self.__dict__.update({key: tuple(value) if isinstance(value, list) else value for key, value in what.items()})

    def __repr__(self) -> str:
        return f"<{self.kind} {self.schema}>"

    def tree(self, kind: str = "") -> ast.expr:
        """The syntax tree of a pointwise operator's element, in the notation of `_C/expression.py`. kind: one of `expressions`, else the general one."""
        return _expression.parse(self.expressions.get(kind, self.expressions[""]))

    @property
    def function(self) -> Any:
        """The function that a composed row is public as."""
        trt = _listing.root()
        if "." in self.name:
            return reduce(getattr, self.name.split("."), trt)
        short = self.name.partition("_")[2]
        places: dict[str, tuple[Any, str]] = {
            FUNCTION: (trt, self.name), METHOD: (trt.Tensor, self.name), "linalg": (trt.linalg, short), "fft": (trt.fft, short), "special": (trt.special, short), "nn": (trt.nn.functional, self.name),
        }  # fmt: skip
        owner, name = next(place for variant, place in places.items() if variant in self.variants)
        return getattr(owner, name)

    @property
    def body(self) -> str:
        """Where what runs in the end is defined: `tensorrt_lite._compositions.joining.hstack`."""
        found = self.function
        while hasattr(found, "impl"):
            found = found.impl
        found = getattr(found, "__wrapped__", found)
        return f"{found.__module__}.{found.__qualname__}"

    def _rule(self, which: int) -> Any:
        found = _shapes.rules().get(self.name) or _shapes.rules().get(self.name.removesuffix("_"))
        return found and found[which]

    @property
    def shape_rule(self) -> Any:
        """The function of the row's arguments that gives the sizes of its results; a tensor is its sizes, or has `shape`. None where they depend on elements."""
        return self._rule(0)

    @property
    def dtype_rule(self) -> Any:
        """The function of the row's arguments that gives the dtypes of its results."""
        return self._rule(1)

    @property
    def tags(self) -> frozenset[str]:
        """What a pass over operators asks first: the row's tags (tools/codegen/schema.py), `view`, `inplace`, `out`, `factory`, `composed`, and PyTorch's
        `nondeterministic_seeded` of what draws random numbers. A tag of one overload is `core.Tensor`."""
        found = {self.kind} - {FUNCTION} | {INPLACE, "out"} & set(self.variants) | set(self.tagged)
        if self.name.endswith("_") and not self.name.startswith("_"):
            found.add(INPLACE)
        return frozenset(found | ({"view"} if self.view else set()) | ({"nondeterministic_seeded"} if "random" in found else set()))


class _Table(Mapping[str, Declaration]):
    """All rows by name, each made when it is first asked for: a program that asks for a dozen does not pay for nine hundred."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self._rows, self._made = rows, dict[str, Declaration]()

    def __getitem__(self, name: str) -> Declaration:
        made = self._made.get(name)
        return made if made is not None else self._made.setdefault(name, Declaration(name, self._rows[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows


@cache
def _table() -> _Table:
    return _Table(_declarations.ROWS)


def names() -> KeysView[str]:
    """The names of all rows."""
    return _table().keys()


def of(name: str) -> Declaration:
    """The row of this name. KeyError without one."""
    return _table()[name]


def tags(path: str) -> frozenset[str]:
    """The tags of the row behind a public path; none without a row."""
    found = find(path)
    return frozenset() if found is None else found[0].tags


def samples() -> dict[str, str]:
    """The kind of sample inputs of each public pointwise operator that names one."""
    return {row.name: row.samples for row in _table().values() if row.kind == "pointwise" and row.samples and {FUNCTION, "nn"} & set(row.variants)}


@cache
def _by_alias() -> dict[str, str]:
    found = {alias: name for name, what in _declarations.ROWS.items() for alias in what.get("aliases", ())}
    found["logsigmoid"] = "log_sigmoid"  # nn.functional calls it so
    return found | {"special_expit": "sigmoid", "special_gammainc": "igamma", "special_gammaincc": "igammac", "special_gammaln": "lgamma", "special_multigammaln": "mvlgamma", "special_psi": "digamma"}


@cache
def _by_symbol() -> dict[str, str]:
    return {row.symbol: row.name for row in _table().values() if row.symbol}


def find(path: str) -> tuple[Declaration, str] | None:
    """The row behind a public path and the form that stands there: function, method or inplace. None without a row."""
    table, aliases = _table(), _by_alias()
    space, _, name = path.rpartition(".")
    form = METHOD if space == "Tensor" else FUNCTION
    if space not in _SPACES:
        return None
    for candidate in (path, *([f"{space}_{name}"] if space in ("linalg", "fft", "special") else []), name):
        row = table.get(candidate) or table.get(aliases.get(candidate, ""))
        if row is not None:
            return row, form
    base = name[:-1] if name.endswith("_") else ""
    row = table.get(base) or table.get(aliases.get(base, ""))
    return (row, INPLACE) if row is not None and INPLACE in row.variants else None


def path_of(function: Any) -> str:
    """The public path of a PublicFunction: `Tensor.add`, `linalg.norm`."""
    owner = getattr(function, "__objclass__", None)
    space = owner.__name__ if owner is not None else function.__module__.removeprefix("tensorrt_lite").removeprefix(".")
    return f"{space}.{function.__name__}" if space else function.__name__


def documentation_of(function: Any) -> str | None:
    """The docstring of a public function: its row's, or that of its body, with the parameters and an example."""
    path = path_of(function)
    found = find(path)
    if found is None:
        symbol = function.__name__.strip("_")
        operator = _by_symbol().get(symbol) or _by_symbol().get(symbol[1:], "")
        return f"The operator of {operator}() in Python's notation." if operator else function.impl.__doc__
    row, form = found
    name = function.__name__
    text, head, own = row.doc, "", row.doc is not None
    if text is None:
        text = function.impl.__doc__
        base = re.sub("_copy$|_$", "", row.name)
        if base != row.name and base in _table():
            text, own = of(base).doc or _body_doc(base), True
            head = f"{base}() with copies in place of views." if row.name.endswith("_copy") else _in_place(base, of(base))
    elif form == INPLACE:
        head = _in_place(row.name, row)
    if not text:
        return _help.described(head, function, path, row) if head else None
    if name != row.name and name.rstrip("_") in row.aliases and not head:
        head = f"The same as {row.name}()."
    if own and hasattr(function, "__objclass__"):
        text = re.sub(r"\binput\b", "self", text)
    return _help.described(f"{head}\n\n{text}" if head else text, function, path, row)


def _in_place(base: str, row: Declaration) -> str:
    what = "the tensor's shape and strides change, its memory stays" if row.view else "the result is written into the tensor, RuntimeError where it does not fit"
    return f"In-place form of {base}(): {what}. Returns the tensor."


def _body_doc(name: str) -> str | None:
    return getattr(getattr(_ops, name, None), "__doc__", None)
