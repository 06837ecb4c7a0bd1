"""The API reference: a page for each public module, from signatures, docstrings and the rows of operators.

What a docstring says is text, not Markdown: entries are written as HTML, in which only names in backticks and examples are set apart.
"""

from __future__ import annotations

import html
import inspect
import re
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

# Public modules in the order of the site's table of contents.
MODULES = (
    "", "Tensor", "nn", "nn.functional", "nn.init", "nn.attention", "nn.attention.bias", "nn.attention.flex_attention", "nn.parallel", "nn.parameter",
    "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "autograd.profiler", "func", "linalg", "fft",
    "special", "signal.windows", "distributions", "distributions.constraints", "distributions.transforms", "amp", "sparse", "utils", "utils.data",
    "utils.checkpoint", "utils.benchmark", "utils.cpp_extension", "utils.dlpack", "utils.flop_counter", "utils.safetensors", "utils.tensorboard",
    "serialization", "random", "profiler", "cuda", "cpu", "accelerator", "array_api", "array_api.fft", "array_api.linalg", "backend", "backends",
    "compat", "compiler", "distributed", "futures", "hub", "jit", "library", "masked", "monitor", "multiprocessing", "nested", "onnx", "overrides",
    "testing",
)  # fmt: skip


def contents() -> list[tuple[str, str]]:
    """The pages of the reference: file name without suffix, title."""
    return [("index", "Overview"), *((_page(name), _title(name)) for name in MODULES)]


def _page(name: str) -> str:
    return name or "tensorrt_lite"


def _title(name: str) -> str:
    return name or "tensorrt_lite"


def module(name: str) -> Any:
    """The module of a page, or the class Tensor."""
    import tensorrt_lite

    return tensorrt_lite.Tensor if name == "Tensor" else import_module(f"tensorrt_lite.{name}" if name else "tensorrt_lite")


def public_names(name: str) -> list[str]:
    """What the page of a module describes: its `__all__`, else what `dir` offers, without modules."""
    owner = module(name)
    names = getattr(owner, "__all__", None) if isinstance(owner, ModuleType) else None
    listed = dir(owner) if names is None else names
    return sorted({n for n in listed if not n.startswith("_") and not inspect.ismodule(getattr(owner, n, None))}, key=lambda n: (n.lower(), n))


def own_documentation(value: Any) -> str:
    """The docstring of an object itself, not one that a class inherits; empty where there is none."""
    if isinstance(value, type):
        said = vars(value).get("__doc__")
        return inspect.cleandoc(said) if isinstance(said, str) else inspect.cleandoc(inspect.getdoc(value) or "") if _builtin(value) else ""
    said = getattr(value, "__doc__", None)
    return inspect.cleandoc(said) if isinstance(said, str) and said != type(value).__doc__ else ""


def _builtin(kind: type) -> bool:
    return not kind.__flags__ & (1 << 9)  # a class of C or Cython, whose docstring may be a descriptor


def undocumented(name: str) -> list[str]:
    """Functions, classes and public methods of a module that say nothing of themselves."""
    found = []
    owner = module(name)
    for n in public_names(name):
        value = getattr(owner, n)
        if not callable(value) or n != getattr(value, "__name__", n) and isinstance(value, type):
            continue  # numbers and dtypes; other names of a class are documented under the first
        if (getattr(value, "__module__", None) or "tensorrt_lite").partition(".")[0] not in ("tensorrt_lite", "torch"):
            continue  # handed on from Python's library
        if not own_documentation(value) and not inspect.getdoc(value):
            found.append(n)
        elif isinstance(value, type) and not own_documentation(value) and value.__module__.startswith("tensorrt_lite"):
            found.append(n)
    return found


def signature(value: Any) -> str:
    """The parameters of a call in parentheses, without annotations, which say less than the text; empty where they are unknown."""
    try:
        stated = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in stated.parameters.values() if p.name not in ("self", "cls")]
    try:
        text = str(stated.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    except ValueError:
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


_SECTION = re.compile(r"(Parameters|Example):\n(.*)", re.S)


def _code(text: str) -> str:
    """An example as HTML."""
    return f'<pre class="example"><code>{html.escape(textwrap.dedent(text).strip())}</code></pre>'


def _list(text: str) -> str:
    """The parameters of a docstring as an HTML list, one by one."""
    items = []
    for item in re.split(r"\n(?=\S)", textwrap.dedent(text).strip()):
        name, _, said = re.sub(r"\n\s+", " ", item).partition(" " if re.match(r"\S+ \(", item) else ": ")
        items.append(f"<li><code>{html.escape(name)}</code> {html.escape(said, quote=False)}</li>")
    return '<ul class="parameters">' + "".join(items) + "</ul>"


def prose(text: str) -> str:
    """A docstring as HTML without empty lines: paragraphs, examples, names in backticks."""
    blocks = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if not part.strip():
            continue
        if section := _SECTION.match(part):
            blocks.append(_list(section[2]) if section[1] == "Parameters" else _code(section[2]))
            continue
        lead, _, example = part.partition(">>> ") if part.lstrip().startswith(">>> ") else (part, "", "")
        if example:
            blocks.append(_code(part))
            continue
        before, mark, rest = lead.partition("\n>>> ") if "\n>>> " in lead else (lead, "", "")
        lines = html.escape(before, quote=False).replace("``", "`")
        lines = re.sub(r"\n\s*- ", "<br>- ", lines)
        lines = re.sub(r"`([^`]+)`", r"<code>\1</code>", lines)
        first, newline, others = lines.partition("\n")
        pause = "<br>" if first.rstrip().endswith(".") else " "  # behind a summary, not in the middle of a sentence
        blocks.append(f"<p>{first.strip()}{pause}{others.strip()}</p>" if newline else f"<p>{first.strip()}</p>")
        if mark:
            blocks.append(_code(">>> " + rest))
    return re.sub(r"\n{2,}", "\n", "\n".join(blocks))


def _row(path: str) -> str:
    """What the row of an operator adds to its docstring: schema, whether it has a gradient."""
    from tensorrt_lite._declared.declarations import find

    found = find(path)
    if found is None:
        return ""
    row = found[0]
    facts = [f"<code>{html.escape(row.schema)}</code>"]
    if row.dtypes:
        facts.append("loops for " + html.escape(" ".join(row.dtypes)))
    facts.append("differentiable" if row.derivatives else "a view of its argument" if row.view else "")
    return f'<p class="row">{"; ".join(fact for fact in facts if fact)}.</p>'


def _described(owner: Any, name: str, n: str) -> tuple[str, str, str]:
    """Kind, signature and body of an entry."""
    value = getattr(owner, n)
    path = f"{name}.{n}".lstrip(".")
    if isinstance(value, type):
        said = own_documentation(value) or inspect.getdoc(value) or ""
        return "class", signature(value), prose(said) + _members(value)
    if callable(value) or name == "Tensor":
        said = inspect.getdoc(value) or ""
        return (
            ("method" if name == "Tensor" else "function") if callable(value) else "attribute",
            signature(value) if callable(value) else "",
            prose(said) + _row(path),
        )
    return "constant", "", f"<p>{html.escape(type(value).__name__)} <code>{html.escape(repr(value))[:200]}</code></p>"


def _members(kind: type) -> str:
    """The public methods and properties that a class defines itself, where they say something."""
    lines = []
    for n, value in sorted(vars(kind).items()):
        if n.startswith("_") or n == "forward":
            continue
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        said = own_documentation(plain)
        if said and (callable(plain) or isinstance(plain, property) or inspect.isdatadescriptor(plain)):
            call = signature(plain) if callable(plain) else ""
            lines.append(f"<dt><code>{html.escape(n + call)}</code></dt>\n<dd>{prose(said)}</dd>")
    return "\n<dl>\n" + "\n".join(lines) + "\n</dl>" if lines else ""


def _groups(name: str) -> list[tuple[str, list[str]]]:
    """The entries of a page under headings: operators of the package and methods of tensors by family, classes and functions elsewhere."""
    from tensorrt_lite._declared.declarations import find

    owner = module(name)
    groups: dict[str, list[str]] = {}
    for n in public_names(name):
        value = getattr(owner, n)
        found = find(f"{name}.{n}".lstrip(".")) if name in ("", "Tensor") else None
        if found is not None:
            heading = f"Operators: {found[0].family}"
        elif isinstance(value, type):
            heading = "Classes"
        elif callable(value):
            heading = "Functions" if name != "Tensor" else "Methods"
        else:
            heading = "Attributes" if name == "Tensor" else "Constants"
        groups.setdefault(heading, []).append(n)
    order = ("Classes", "Functions", "Methods", "Attributes", "Constants")
    return sorted(groups.items(), key=lambda item: (order.index(item[0]) if item[0] in order else len(order), item[0]))


def page(name: str) -> str:
    """The page of a module."""
    owner = module(name)
    full = f"tensorrt_lite.{name}" if name else "tensorrt_lite"
    lines = [f"# {full}", "", f"<div>{prose(inspect.getdoc(owner) or '')}</div>", ""]
    for heading, names in _groups(name):
        lines += [f"## {heading}", ""]
        for n in names:
            kind, call, body = _described(owner, name, n)
            lines += [
                f"### `{n}` {{ #{full}.{n} }}",
                "",
                f'<div class="entry"><p class="signature"><em>{kind}</em> <code>{full}.{n}{html.escape(call)}</code></p>',
                body,
                "</div>",
                "",
            ]
    return "\n".join(lines)


def index() -> str:
    """The list of all modules with the first sentence of each."""
    lines = ["# API reference", "", "Written from the docstrings and the rows of operators when the site is built; `help()` says the same.", ""]
    lines += ["| module | what it has | names |", "|---|---|---|"]
    for name in MODULES:
        said = (inspect.getdoc(module(name)) or "").split("\n")[0].replace("|", "\\|")
        lines.append(f"| [`{_title(name)}`]({_page(name)}.md) | {html.escape(said, quote=False)} | {len(public_names(name))} |")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text(index(), encoding="utf-8")
    for name in MODULES:
        (folder / f"{_page(name)}.md").write_text(page(name), encoding="utf-8")
