"""Every declared pointwise operator on 1M float32 elements: a row of `cysrc/ops/*.yaml` with samples is a row here, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite._declared import declarations as _declarations

from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Builder, Work

SIDE = 1024

# samples: how many tensors and the range their elements are drawn from; other kinds of samples take numbers and are left out
_RANGES = {
    "unary": (1, -4.0, 4.0),
    "unary_float": (1, -2.2, 2.2),
    "unary_positive": (1, 0.2, 5.0),
    "unary_nonzero": (1, 0.5, 4.0),
    "unary_unit": (1, -0.9, 0.9),
    "unary_unit_positive": (1, 0.1, 0.9),
    "unary_above_one": (1, 1.2, 6.0),
    "binary": (2, -4.0, 4.0),
    "binary_positive": (2, 0.3, 3.0),
    "binary_nonzero": (2, 0.7, 2.0),
    "ternary": (3, -2.0, 2.0),
    "ternary_nonzero": (3, 0.5, 2.0),
}


def _builder(name: str, kind: str) -> Builder:
    tensors, low, high = _RANGES[kind]

    def build(lib: Any, threads: int) -> Work:
        f = next(g for g in (getattr(lib, name, None), getattr(lib.nn.functional, name, None), getattr(lib.nn.functional, name.replace("_", ""), None)) if g)
        operands = [lib.empty(SIDE, SIDE).uniform_(low, high) for _ in range(tensors)]
        f(*operands)  # an operator that refuses float32 says so before the clock runs
        return lambda: f(*operands)

    return build


def rows() -> list[Row]:
    return [Row(f"{name} 1M", "operators", _builder(name, kind), slow=True) for name, kind in sorted(_declarations.samples().items()) if kind in _RANGES]
