"""Sparse tensors as text, character for character as PyTorch prints them."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.dtype import _dtype_by_name, get_default_dtype
from tensorrt_lite._sparse.parts import COO, has_rows, nnz, parts
from tensorrt_lite._tensor_str import _elements, _join

_PREFIX = "tensor("


def _named_parts(t: Any) -> list[tuple[str, Any]]:
    p = parts(t)
    if p.layout == COO:
        return [("indices", p.indices.detach()), ("values", p.values.detach())]
    first, second = ("crow_indices", "col_indices") if has_rows(p.layout) else ("ccol_indices", "row_indices")
    return [(first, p.compressed.detach()), (second, p.plain.detach()), ("values", p.values.detach())]


def sparse_repr(t: Any) -> str:
    """The text of `repr(t)`."""
    lines = []
    for name, part in _named_parts(t):
        opening = f"{name}=tensor("
        text = _elements(part, len(_PREFIX) + len(opening)) if part.numel() else f"[], size={tuple(part.shape)}"
        lines.append(f"{opening}{text})")
    default = get_default_dtype()
    suffixes = [] if t.is_cpu else [f"device='{t.device}'"]
    suffixes += [f"size={tuple(t.shape)}", f"nnz={nnz(t)}"]
    if t.dtype not in (
        default,
        _dtype_by_name("complex128" if default is _dtype_by_name("float64") else "complex64"),
        _dtype_by_name("int64"),
        _dtype_by_name("bool"),
    ):
        suffixes.append(f"dtype={t.dtype}")
    suffixes.append(f"layout={t.layout}")
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(t.grad_fn).__name__}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    space = ",\n" + " " * len(_PREFIX)
    text = _PREFIX + space.join(lines)
    if t.is_sparse:
        text, suffixes = text + space + suffixes[0], suffixes[1:]
    return _join(text, suffixes, len(_PREFIX))
