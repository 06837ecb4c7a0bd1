"""What notebooks show: `_repr_html_` of tensors and modules, `_repr_pretty_` of tensors. Imported when a notebook or IPython asks."""

from __future__ import annotations

from html import escape
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_tensor_str = _LazyModule("tensorrt_lite._tensor_str")

_SHOWN_CHILDREN = 64


def tensor_html(tensor: Any) -> str:
    """The printed tensor under a line of its shape, dtype, device, whether it requires a gradient, and its size in memory."""
    facts = [" x ".join(map(str, tensor.shape)) or "no dimensions", str(tensor.dtype), str(tensor.device)]
    if tensor.requires_grad:
        facts.append(_tensor_str.name_of_history(tensor) or "requires grad")
    layout = str(tensor.layout)
    facts.append(_bytes(tensor.numel() * tensor.element_size()) if layout == "torch.strided" else layout)
    return f"<div><small>{escape(' · '.join(facts))}</small><pre>{escape(repr(tensor))}</pre></div>"


def module_html(module: Any, name: str = "") -> str:
    """The module's tree, each level folded, with the numbers of parameters and how many of them are trained."""
    count = sum(p.numel() for p in module.parameters())
    trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
    title = f"{f'({name}) ' if name else ''}<b>{escape(module._get_name())}</b>({escape(module.extra_repr())})"
    if count:
        title += f" <small>{count:,} parameters{'' if trained == count else f', {trained:,} trained'}</small>"
    children = list(module.named_children())
    if not children:
        return f"<div>{title}</div>"
    inside = "".join(module_html(child, escape(key)) for key, child in children[:_SHOWN_CHILDREN])
    if len(children) > _SHOWN_CHILDREN:
        inside += f"<div>... and {len(children) - _SHOWN_CHILDREN} more</div>"
    opened = " open" if not name else ""
    return f"<details{opened}><summary>{title}</summary><div style='margin-left: 1.5em'>{inside}</div></details>"


def tensor_pretty(tensor: Any, printer: Any, cycle: bool) -> None:
    """IPython's text: that of `repr`, its lines below where the tensor begins."""
    for i, line in enumerate((f"{type(tensor).__name__}(...)" if cycle else repr(tensor)).split("\n")):
        if i:
            printer.break_()
        printer.text(line)


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
