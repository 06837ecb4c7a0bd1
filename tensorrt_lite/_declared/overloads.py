"""Which overloads of PyTorch's stand for a row, with their schemas, and how the arguments of one are those of the other.

A row has one kernel where PyTorch has several overloads: `sum` and `sum.dim_IntList`, `add.Tensor` and `add.Scalar`. Its `overloads` are PyTorch's
schemas; forms that write follow from them by rule (`add_.Tensor`, `add.out`), unless the row lists them, too. Arguments go together by
name; `forms` of the row says what names don't tell. Read when an operator object or a mode asks first.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from tensorrt_lite import _root
from tensorrt_lite._C.core import python_key
from tensorrt_lite._C.core.python_key import kind_of
from tensorrt_lite._C.core.row_schema import required, schema
from tensorrt_lite._declared import declarations as _declarations

FRESH, OUT, INPLACE = python_key.FORMS
SAME, CONSTANT, ONE, NONE_OF_EMPTY, EMPTY_OF_NONE, ITEM, GATHER, SIZES, CALL = python_key.TAKES
EQUAL, NUMBER, TENSOR, ONLY, ONLY_OR_NONE, ANY, LENGTH, DIMENSIONS = python_key.NEEDS


class Form(NamedTuple):
    """A schema that stands for a row in one of its forms."""

    row: str
    mode: int
    text: str
    outs: tuple[str, ...]


def full_name(text: str) -> tuple[str, str]:
    """("sum", "dim_IntList") of a schema's text, ("sum", "default") of one without an overload."""
    name, _, overload = text.partition("(")[0].strip().partition(".")
    return name, overload or "default"


def written_text(text: str) -> str:
    """The schema of the form in place."""
    name, overload = full_name(text)
    inside = text[text.index("(") + 1 : text.rindex(") ->")]
    kind, _, rest = inside.partition(" ")
    return f"{name}_{'' if overload == 'default' else '.' + overload}({kind.partition('(')[0]}(a!) {rest}) -> Tensor(a!)"


def out_text(text: str) -> str:
    """The schema of the form that writes to given results."""
    name, overload = full_name(text)
    inside, returned = text[text.index("(") + 1 : text.rindex(") ->")], text[text.rindex(") ->") + 4 :].strip()
    results = _results(returned)
    names = ["out"] if len(results) == 1 else [r.split()[1] if " " in r else f"out{i}" for i, r in enumerate(results)]
    marks = [f"{r.split()[0].partition('(')[0]}({chr(ord('a') + i)}!)" for i, r in enumerate(results)]
    star = "" if "*, " in inside else ", *" if inside else "*"
    if results == ["Tensor[]"]:
        return f"{name}.{'out' if overload in ('default', 'Tensor') else f'{overload}_out'}({inside}{star}, Tensor(a!)[] out) -> ()"
    given = ", ".join(f"{m} {n}" for m, n in zip(marks, names))
    back = marks[0] if len(marks) == 1 else "(" + ", ".join(f"{m} {n}" if " " in r else m for m, n, r in zip(marks, names, results)) + ")"
    new = "out" if overload in ("default", "Tensor") else f"{overload}_out"
    return f"{name}.{new}({inside}{star}, {given}) -> {back}"


def _results(returned: str) -> list[str]:
    return [r.strip() for r in returned[1:-1].split(",")] if returned.startswith("(") else [returned]


def _declared(row: str) -> _declarations.Declaration | None:
    names = _declarations.names()
    found = [_declarations.of(name) for name in (row, row + "_") if name in names]
    with_kernel = [one for one in found if one.kind not in ("composed", "factory")]  # `normal_` has one, `normal` is composed
    return next(iter(with_kernel or found), None)


def functional(row: _declarations.Declaration, text: str) -> list[str]:
    """The schemas of a row's forms with fresh results."""
    return [t for t in row.overloads or (text,) if not _is_written(row, t) and not is_out(t)]


def _is_written(row: _declarations.Declaration, text: str) -> bool:
    name = full_name(text)[0]
    return name.endswith("_") and not name.endswith("__") and "inplace" in row.variants


def is_out(text: str) -> bool:
    """Whether the results are given."""
    arguments, _, returned = text.rpartition(") ->")
    return "!)" in arguments and ("!)" in returned or returned.strip() == "()") and not full_name(text)[0].endswith("_")


@cache
def forms_of_row(row: str, mode: int, text: str) -> tuple[Form, ...]:
    """All schemas of a row with a kernel in one form. text: the row's own schema."""
    declared = _declared(row)
    if declared is None or declared.kind in ("composed", "factory"):
        fresh, written, outs = [text], [], []
    else:
        fresh = functional(declared, text)
        written = [t for t in declared.overloads if _is_written(declared, t)]
        outs = [t for t in declared.overloads if is_out(t)]
    if mode == INPLACE:
        found = written or [written_text(t) for t in fresh or [text]]
    elif mode == OUT:
        found = outs or [out_text(t) for t in fresh]
    else:
        found = fresh or [text]
    return tuple(Form(row, mode, t, _out_names(t) if mode == OUT else ()) for t in found)


def _out_names(text: str) -> tuple[str, ...]:
    parts = text[text.index("(") + 1 : text.rindex(") ->")].split(", ")
    return tuple(part.split()[1] for part in parts if "!)" in part.split()[0])


def names_of_row(row: str, mode: int, text: str) -> list[tuple[str, str]]:
    """The overloads that stand for calls of a row, as the row lists them."""
    forms = [f for f in forms_of_row(row, mode, text) if _way(row, text, f) is not None]
    for form in forms:  # also those that are not public
        _asked.setdefault(full_name(form.text), []).append((row, mode))
    return [full_name(f.text) for f in forms]


_asked: dict[tuple[str, str], list[tuple[str, int]]] = {}


@cache
def index() -> dict[str, dict[str, list[tuple[str, int]]]]:
    """{operator's name: {overload: [(row with a kernel, form)]}}."""
    found: dict[str, dict[str, list[tuple[str, int]]]] = {}
    for name in _declarations.names():
        declared = _declarations.of(name)
        if declared.kind in ("composed", "factory"):
            continue
        row = name if python_key.row_schema(name) is not None else name[:-1]
        text = python_key.row_schema(row)
        modes = [FRESH, *([INPLACE] if "inplace" in declared.variants else []), *([OUT] if "out" in declared.variants else [])]
        for mode in modes if text is not None else ():
            if mode == FRESH and not functional(declared, text):
                continue  # there is no functional form
            for form in forms_of_row(row, mode, text):
                if _way(row, text, form) is None:
                    continue
                base, overload = full_name(form.text)
                found.setdefault(base, {}).setdefault(overload, []).append((row, mode))
    return found


def ways_of(name: str, overload: str) -> list[tuple[Any, ...]]:
    """What `python_key.overload_object` makes of a name: for each row that computes the overload its name, the form, the schema, the names
    of results that are given, and the way between the arguments."""
    if name.startswith("trtl_") and python_key.row_schema(name) is None:  # a row under its own name
        row, mode = name.removeprefix("trtl_"), ("default", "out", "inplace").index(overload)
        text = python_key.row_schema(row)
        own = f"{row}({text.partition('(')[2]}"
        own = {FRESH: own, INPLACE: written_text(own), OUT: out_text(own)}[mode]
        return [(row, mode, own, _out_names(own) if mode == OUT else (), None, None, (), ())]
    rows = [*index().get(name, {}).get(overload, ()), *_asked.get((name, overload), ())]
    found = []
    for row, mode in dict.fromkeys(rows):
        text = python_key.row_schema(row)
        for form in forms_of_row(row, mode, text):
            if full_name(form.text) == (name, overload):
                ways = [_way(row, text, form, which) for which in range(_alternatives(row, form))]
                found += [(row, mode, form.text, form.outs, *way) for way in ways if way is not None]
    return sorted(found, key=lambda way: (-len(way[-1]), way[0] != name))  # those that want constants first


def _said(row: str, form: Form) -> list[dict[str, Any]]:
    """What the row's `forms` say of an overload, by alternatives."""
    declared = _declared(row)
    forms: dict[str, Any] = declared.forms if declared is not None else {}
    base, overload = full_name(form.text)
    own = forms.get(base if overload == "default" else f"{base}.{overload}", {})
    return [{**forms.get("all", {}), **one} for one in (own if isinstance(own, (list, tuple)) else [own])]


def _alternatives(row: str, form: Form) -> int:
    return len(_said(row, form))


def _function(text: str) -> tuple[str, Any]:
    """(argument, function of it) of `= 10.0 ** abs(decimals)`."""
    argument = next(word for word in re.findall(r"[a-z_]+", text) if word != "abs")
    return argument, eval(f"lambda {argument}: {text.removeprefix('=')}", {"abs": abs, "__builtins__": {}})  # noqa: S307 of the package's own rows


@cache
def _way(row: str, text: str, form: Form, which: int = 0) -> tuple[Any, ...] | None:
    """(take, give, needs, fixed) of `python_key.Way`; None where the row cannot compute the overload."""
    declared, ours, theirs = _declared(row), schema(text), schema(form.text)
    names = theirs.names[: len(theirs.names) - len(form.outs)]
    said = dict(_said(row, form)[which])
    extra: list[tuple[Any, ...]] = []
    for key, kind in (("length", LENGTH), ("dimensions", DIMENSIONS)):
        extra += [(ours.names.index(r), kind, n) for r, n in said.pop(key, {}).items()]
    if names == ours.names and not said and not extra and all(kind_of(a) == kind_of(b) for a, b in zip(ours.types, theirs.types)) and not _several(declared, form, text):
        return None, None, (), ()
    items = {a: m for a in names if isinstance(said.get(a), str) and (m := re.fullmatch(r"(\w+)\[(\d+)\]", said[a]))}
    sizes = {a: m for a in names if isinstance(said.get(a), str) and (m := re.fullmatch(r"sizes\((\w+)\)\[(\d+):\]", said[a]))}
    gathered = {m[1]: tuple(names.index(a) for a, other in items.items() if other[1] == m[1]) for m in items.values()}
    kernel = {a: said[a] if said.get(a) in ours.names else a for a in names if said.get(a) in ours.names or a in ours.names and a not in said}
    back = {r: a for a, r in kernel.items()}
    scalars = _scalar_places(declared, form, text)
    take, needs = [], []
    for i, r in enumerate(ours.names):
        if r in back:
            j = names.index(back[r])
            mine, other = kind_of(ours.types[i]), kind_of(theirs.types[j])
            if mine in ("int", "int?") and other.startswith("int[]") or mine == "Scalar" and other == "Tensor":
                return None
            if mine == "int[]?" and other == "int[]" and theirs.defaults[j] == ():
                take.append((j, NONE_OF_EMPTY, None))
                continue
            one = mine.startswith("int[]") and other in ("int", "int?")
            take.append((j, ONE if one else SAME, None))
            if one:
                needs.append((i, ONLY if other == "int" else ONLY_OR_NONE, None))
            elif "|" in mine:
                needs.append((i, TENSOR if other.startswith("Tensor") else NUMBER, None))
            elif mine.startswith("Tensor") and other.startswith("Scalar"):
                needs.append((i, NUMBER, None))
            elif mine == "Tensor" and other == "Tensor" and back[r] in scalars:
                needs.append((i, TENSOR, None))
            elif mine.endswith("?") and not other.endswith("?"):
                needs.append((i, ANY, None))
        elif r in gathered:
            take.append((-1, GATHER, gathered[r]))
        elif isinstance(said.get(r), str) and said[r].startswith("="):
            argument, function = _function(said[r])
            take.append((names.index(argument), CALL, function))
        else:
            constant = _constant(ours.types[i], said[r]) if r in said else None if ours.defaults[i] is required() else ours.defaults[i]
            take.append((-1, CONSTANT, constant))
            needs.append((i, EQUAL, constant))
    give, fixed = [], []
    for j, a in enumerate(names):
        if a in kernel:
            i = ours.names.index(kernel[a])
            if kind_of(ours.types[i]) == "int[]?" and kind_of(theirs.types[j]) == "int[]" and theirs.defaults[j] == ():
                give.append((i, EMPTY_OF_NONE, None))
                continue
            one = kind_of(ours.types[i]).startswith("int[]") and kind_of(theirs.types[j]) in ("int", "int?")
            give.append((i, ONE if one else SAME, None))
        elif a in items:
            give.append((ours.names.index(items[a][1]), ITEM, int(items[a][2])))
        elif a in sizes:
            give.append((ours.names.index(sizes[a][1]), SIZES, int(sizes[a][2])))
        else:
            constant = said.get(a, None if theirs.defaults[j] is required() else theirs.defaults[j])
            give.append((-1, CONSTANT, constant))
            if a != "non_blocking":  # how to copy, not what
                fixed.append((j, constant))
    return tuple(take), tuple(give), (*needs, *extra), tuple(fixed)


def _constant(kind: str, value: Any) -> Any:
    if kind.startswith("ScalarType") and isinstance(value, str):
        return getattr(_root, value)
    return value


def _several(declared: _declarations.Declaration | None, form: Form, text: str) -> bool:
    return bool(_scalar_places(declared, form, text))


def _scalar_places(declared: _declarations.Declaration | None, form: Form, text: str) -> set[str]:
    """Tensors of this schema in whose place another schema of the row has a Scalar, but for operators that take numbers for tensors."""
    if declared is None or declared.wraps:
        return set()
    mine = schema(form.text)
    found = set()
    for other in forms_of_row(form.row, form.mode, text):
        if other.text != form.text:
            kinds = dict(zip(schema(other.text).names, schema(other.text).types))
            found |= {n for n, t in zip(mine.names, mine.types) if kind_of(t) == "Tensor" and kind_of(kinds.get(n, "")).startswith("Scalar")}
    return found
