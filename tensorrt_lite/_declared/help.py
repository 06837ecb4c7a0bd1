"""What help() shows below the text of a public function: its parameters one by one, and an example.

Types and defaults are those of the row, descriptions and examples of `_C/help.json`, which the first question reads. An example is written once for a
row; here it calls the form that was asked for: `trt.sum(x, dim=1)` is `x.sum(dim=1)` for the method.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from functools import cache
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _C
from tensorrt_lite._C.core.row_schema import split_arguments as split

if TYPE_CHECKING:
    from tensorrt_lite._declared.declarations import Declaration

IMPORT = ">>> import tensorrt_lite as trt\n"
_TYPES = {"ScalarType": "dtype", "Scalar": "number", "Layout": "layout", "Device": "device", "MemoryFormat": "memory_format"}
_LISTS = {"int": "ints", "float": "floats", "Tensor": "Tensors"}
# Lists of ints that one int may replace.
_ONE_FOR_ALL = frozenset("dim dilation kernel_size normalized_shape output_padding output_size padding s shifts stride".split())

_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_ONE = {"tuple of ints": "int", "int or tuple of ints": "int", "sequence of Tensors": "Tensor"}  # of what `*` gathers
# A description may begin with types that the schema cannot say: "(int or str) what it is".
_NAMED = re.compile(r"\(((?:Generator|None|Tensor|array|bool|callable|device|dict|dtype|float|function|int|list|number|object|sequence|str|tuple|type)\b[^)]*)\) ")


@cache
def _texts() -> dict[str, Any]:
    assert _C.__file__ is not None
    return json.loads((Path(_C.__file__).parent / "help.json").read_text(encoding="utf-8"))


def names(function: Any, parameter: str) -> tuple[str, ...]:
    """What a parameter is called: in the signature, and where the implementation calls it otherwise."""
    name = parameter.removesuffix("_")  # `from_`
    return name, (function.spellings or {}).get(name, name)


def source(row: Declaration, *called: str) -> tuple[str, str, str] | None:
    """Where the description of a parameter is: of the function, else of its family, else of all; (kind, of what, name)."""
    texts = _texts()
    for kind, of in (("functions", row.name), ("families", row.family), ("parameters", "")):
        said = texts[kind].get(of, {}) if of else texts[kind]
        for name in called:
            if name in said:
                return kind, of, name
    return None


def description(row: Declaration, *called: str) -> str:
    """What a parameter of a row means; "" where nothing says it."""
    found = source(row, *called)
    if found is None:
        return ""
    kind, of, name = found
    return str((_texts()[kind][of] if of else _texts()[kind])[name])


def parameters(function: Any, row: Declaration) -> str:
    """The list of parameters: name, type, default, meaning."""
    types = _types(row)
    lines = []
    for p in function.__signature__.parameters.values():
        if p.name == "self" and hasattr(function, "__objclass__"):
            text = _NAMED.sub("", description(row, "input", "self"), count=1)
            if text and text != _texts()["parameters"]["input"]:  # which says no more than the signature
                lines += _line(f"self (Tensor): {text}")
            continue
        name, ours = names(function, p.name)
        kind = types.get(name) or types.get(ours) or ("Tensor" if name in ("input", "out") else "")
        text = description(row, name, ours)
        if named := _NAMED.match(text):
            kind, text = named[1], text[named.end() :]
        if name == "out" and row.schema.endswith(")"):
            kind = "tuple of Tensors or None"
        elif p.default is None and kind in ("Tensor", "tuple of Tensors"):
            kind += " or None"
        if p.kind is Parameter.VAR_POSITIONAL and kind in _ONE:
            kind = _ONE[kind]
        default = "" if p.default is Parameter.empty else f"default {_shown(p.default)}"
        facts = ", ".join(filter(None, (kind, default)))
        stars = _STARS.get(p.kind, "")
        lines += _line(f"{stars}{p.name}{f' ({facts})' if facts else ''}: {text}")
    return "\n".join(["Parameters:", *lines]) if lines else ""


def _line(text: str) -> list[str]:
    return textwrap.wrap(text, 108, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)


def _shown(default: Any) -> str:
    return repr(default).removeprefix("tensorrt_lite.")


def _types(row: Declaration) -> dict[str, str]:
    """The types of a schema in words, by parameter; `input` is what rows call self."""
    numbers = re.search(r"((?:\w+ or )*\w+) may be a number", row.doc or "")
    may_be_numbers = numbers[1].split(" or ") if numbers else []
    found = {}
    for part in split(row.schema[row.schema.index("(") + 1 : row.schema.rindex(") ->")]):
        kind, _, rest = part.partition(" ")
        name, _, default = rest.partition("=")
        name = "input" if name.strip() == "self" else name.strip()
        kind = re.sub(r"\(\w!\)|\d", "", kind)
        optional = kind.endswith("?")
        words = " or ".join(dict.fromkeys(w for part in kind.split("|") if (w := _words(part, name, default))))
        if words and name in may_be_numbers:
            words += " or number"
        found[name] = f"{words.replace(' or ', ', ')} or None" if words and optional else words
    return found


def _words(kind: str, name: str, default: str) -> str:
    """A type of a schema in words, "" where it says nothing."""
    kind = kind.removesuffix("?")
    if not kind.endswith("[]"):
        return "" if kind == "PyObject" else _TYPES.get(kind, kind)
    element = kind.removesuffix("[]").removesuffix("?")
    words = f"{'sequence' if element == 'Tensor' else 'tuple'} of {_LISTS.get(element, element)}"
    return f"int or {words}" if element == "int" and (name in _ONE_FOR_ALL or default.strip().isdigit()) else words


def example(path: str, row: Declaration) -> str:
    """The example of a row with calls of the form at a public path, below the package's import; "" without one."""
    functions = _texts()["functions"]
    own = next((functions[p]["example"] for p in (path, f"Tensor.{path}") if "example" in functions.get(p, {}) and (p == path or path.endswith("_"))), None)
    text = own or functions.get(row.name, {}).get("example", "")
    if text and own is None:
        text = _of_form(text, path, row)
    return f"Example:\n{textwrap.indent(IMPORT + text.rstrip(), '    ')}" if text else ""


def _of_form(text: str, path: str, row: Declaration) -> str:
    """An example whose calls are those of the form at a path; one that writes into its operand ends with the first call."""
    lines = text.rstrip().split("\n")
    called = [_called(line, path, row) for line in lines]
    if path.endswith("_") and not row.name.endswith("_"):
        changed = [i for i, line in enumerate(lines) if line != called[i]]
        following = [i for i, line in enumerate(called) if changed and i > changed[0] and line.startswith(">>> ")]
        called = called[: following[0]] if following else called
    return "\n".join(called)


def _called(line: str, path: str, row: Declaration) -> str:
    """A line of an example whose call of a row's function is that of another form: a method, the in-place form, an alias, a module's name."""
    if not line.startswith((">>> ", "... ")):
        return line
    code = line[4:]
    try:
        calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return line
    space, _, name = path.rpartition(".")
    for call in calls:
        callee = code[call.func.col_offset : call.func.end_col_offset]
        if callee not in _callees(row) or callee == f"trt.{path}":
            continue
        if space != "Tensor":
            return line[:4] + code[: call.func.col_offset] + f"trt.{path}" + code[call.func.end_col_offset :]
        if call.args and not isinstance(call.args[0], (ast.Starred, ast.List, ast.Tuple)):
            first = call.args[0]
            owner = code[first.col_offset : first.end_col_offset]
            if not isinstance(first, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
                owner = f"({owner})"
            others = [*call.args[1:], *(k.value for k in call.keywords)]
            rest = code[first.end_col_offset : call.end_col_offset].removeprefix(", ") if others else ")"
            return line[:4] + code[: call.col_offset] + f"{owner}.{name}({rest}" + code[call.end_col_offset :]
    return line


def _callees(row: Declaration) -> set[str]:
    """How an example may write the function of a row."""
    names = {row.name, *row.aliases}
    dotted = {n.replace("_", ".", 1) for n in names if n.startswith(("linalg_", "fft_", "special_"))}
    spaces = ("", "nn.functional.", "special.", "linalg.", "fft.")
    return {f"trt.{space}{n}" for n in names for space in spaces} | {f"trt.{n}" for n in dotted}


def described(text: str, function: Any, path: str, row: Declaration) -> str:
    """A docstring with parameters and example behind it."""
    return "\n\n".join(filter(None, (text.rstrip(), parameters(function, row), example(path, row))))
