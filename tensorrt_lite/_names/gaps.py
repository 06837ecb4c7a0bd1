"""The command `tensorrt-lite missing`: what docs/gaps.md says, all of it or of one name. The build puts the file beside the core."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

import tensorrt_lite._names.missing as _missing
from tensorrt_lite._names.listing import root

_USAGE = """\
usage: tensorrt-lite missing [NAME | --all]

What of PyTorch is missing or different: an overview, all of it, or what is known of NAME (stft, nn.utils.prune, torch.export, quantize, lightning).
"""
# Published packages that were run unchanged and gave PyTorch's numbers (docs/running_programs.md).
_PACKAGES = """
accelerate backpack datasets einops ema-pytorch entmax geotorch gpytorch higher jaxtyping kornia lightning linear_operator nflows normflows opt_einsum peft pyro
pytorch-ignite pytorch-lightning pytorch-metric-learning pytorch-optimizer safetensors skorch timm torch-optimizer torchcde torchdiffeq torchinfo torchmetrics
torchsde torchsummary torchvision transformers unfoldNd vector-quantize-pytorch x-transformers zuko
""".split()  # fmt: skip


def text() -> str:
    """The list of what is missing, as Markdown."""
    from tensorrt_lite import _C

    return (Path(_C.__file__).parent / "gaps.md").read_text(encoding="utf-8")


def missing_paths(name: str) -> list[str]:
    """The dotted names that are known to be missing and end in `name`."""
    paths = [f"{module}.{n}".lstrip(".") for module, names in _missing._NAMES.items() for n in names.split()]
    return sorted(path for path in paths if f".{path}".endswith(f".{name}") or name.startswith(f"{path}."))


def with_heads(parts: list[str]) -> list[str]:
    """Rows of tables behind the heads of their tables."""
    found: list[str] = []
    for part in parts:
        if part.startswith("|"):
            table = re.search(r"\n(\|[^\n]*)\n\|[-| :]+\n(?:\|[^\n]*\n)*?" + re.escape(part), text())
            found += ["", table[1]] if table else []
        found.append(part)
    return found


def exists(name: str) -> bool:
    """Whether a dotted name of the package leads to something."""
    found: object = root()
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True


def homes(name: str) -> list[str]:
    """Where a name without a module is found in the modules that programs import."""
    modules = ("nn", "nn.functional", "optim", "optim.lr_scheduler", "linalg", "fft", "special", "utils.data", "distributions", "autograd", "func", "Tensor")
    return [f"{module}.{name}" for module in modules if exists(f"{module}.{name}")] if "." not in name else []


def paragraphs(name: str) -> list[str]:
    """The items and rows of the list that name `name`."""
    word = re.compile(rf"`[^`]*\b{re.escape(name)}\b[^`]*`")
    return [part for part in re.split(r"\n(?=- |\||\n)", text()) if word.search(part) and part.startswith(("- ", "|"))]


def rendered(markdown: str, width: int = 100) -> str:
    """Markdown as plain text for a terminal: without marks and links, a row of a table as a paragraph."""
    lines: list[str] = []
    head: list[str] = []
    for block in re.split(r"\n(?=- |\||#|\n)", markdown):
        flat = " ".join(line.strip() for line in block.strip().splitlines())
        flat = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", flat).replace("`", "").replace("**", "")
        if flat.startswith("|"):
            cells = [cell.strip() for cell in flat.strip("|").split("|")]
            if set(flat) <= set("|-: "):
                continue
            if not head:
                head = cells
                continue
            labels = head if len(head) == len(cells) else [""] * len(cells)
            rest = "; ".join(f"{label}: {cell}" if label else cell for label, cell in zip(labels[1:], cells[1:], strict=True) if cell)
            lines += textwrap.wrap(f"{cells[0]}: {rest}" if rest else cells[0], width, subsequent_indent="    ")
            continue
        head = []  # of the table that has ended
        if flat.startswith("#"):
            lines += ["", flat.lstrip("# ").upper(), ""]
        elif flat:
            lines += textwrap.wrap(flat, width, subsequent_indent="  " if flat.startswith("- ") else "")
        else:
            lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def overview(width: int = 100) -> str:
    """The modules of PyTorch's with what each lacks, and where more is said."""
    table = text().partition("### By module")[2].partition("\n### ")[0]
    sections = [line.lstrip("# ") for line in text().splitlines() if line.startswith("### ") and line != "### By module"]
    notes = "\n".join(textwrap.wrap("; ".join(sections), width - 2, initial_indent="  ", subsequent_indent="  "))
    return (
        "Missing, by module (`tensorrt-lite missing NAME` says what is known of one name):\n\n"
        f"{rendered(table, width)}\n`tensorrt-lite missing --all` prints what else is missing, different or slower:\n{notes}\n"
    )


def near_names(name: str) -> list[str]:
    """Missing names that resemble `name` or contain it."""
    paths = sorted({f"{module}.{n}".lstrip(".") for module, names in _missing._NAMES.items() for n in names.split()})
    last = name.rpartition(".")[2].lower()
    stem = re.sub(r"(ation|ed|e|s|ing|er)$", "", last) if len(last) > 5 else last
    return [path for path in paths if stem in path.lower()] or difflib.get_close_matches(name, paths, 5, 0.75)


def main(arguments: list[str]) -> int:
    """Print; the exit status: 0, or 1 for a name of which nothing is known."""
    wrong = len(arguments) > 1 or arguments[:1] and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--all")
    if wrong or arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="", file=sys.stderr if wrong else sys.stdout)
        return 2 if wrong else 0
    try:
        return _tell(arguments)
    except BrokenPipeError:  # `| head` has read enough; the interpreter must not meet the closed pipe again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _print(what: str) -> None:
    """Print, page by page on a terminal that is too short."""
    if sys.stdout.isatty() and what.count("\n") >= shutil.get_terminal_size().lines:
        import pydoc

        pydoc.pager(what)
    else:
        print(what, end="", flush=True)


def _tell(arguments: list[str]) -> int:
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    if not arguments or arguments == ["--all"]:
        _print(rendered(text(), width) if arguments else overview(width))
        return 0
    name = re.sub(r"^(torch|tensorrt_lite|trt)\.", "", arguments[0])
    known = missing_paths(name)
    here = [name] if name not in known and exists(name) else homes(name)
    # the list names members without their module; of a path that leads nowhere its last word says nothing
    said = paragraphs(name.rpartition(".")[2] if known or here else name)
    for path in here:
        print(f"{path}: is implemented" + (", except for what is said below" if said else ""))
    for path in known:
        print(f"{path}: not implemented" + (f", and so {name} is not" if name.startswith(f"{path}.") else ""))
    if said:
        print(rendered("\n".join(with_heads(said)), width), end="", flush=True)
    if known or here or said:
        return 0
    package = name.lower().replace("-", "_")
    if package in {known.lower().replace("-", "_") for known in _PACKAGES}:
        print(f"{name}: a package that runs unchanged under `tensorrt-lite run` (docs/running_programs.md, docs/how_to/packages.md)")
        return 0
    near = near_names(name)
    if near:
        print("\n".join(f"{path}: not implemented" for path in near))
        return 0
    print(f"tensorrt-lite: {arguments[0]!r} is not a name of PyTorch's that docs/gaps.md mentions, and it is not implemented", file=sys.stderr)
    return 1
