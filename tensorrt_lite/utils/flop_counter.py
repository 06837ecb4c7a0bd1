"""Counts the floating-point operations of a program as it runs: PyTorch's `torch.utils.flop_counter`.

    with FlopCounterMode(model, display=False) as counter:
        model(x).sum().backward()
    counter.get_total_flops()

Counted are products of matrices, convolutions and attention, two operations a multiply-add, forward and backward, by module.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tensorrt_lite import library as _library
from tensorrt_lite import _root as trt
import tensorrt_lite._declared.aten as _aten
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode
from tensorrt_lite.utils.module_tracker import ModuleTracker


if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = _library.ops.aten


def _shape(x: Any) -> Any:
    return tuple(x.shape) if isinstance(x, trt.Tensor) else [_shape(y) for y in x] if isinstance(x, list) else x


def mm_flop(a: tuple[int, ...], b: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """(m, k) by (k, n): 2 m n k; also of batches."""
    return 2 * math.prod(a) * b[-1]


def addmm_flop(self: Any, a: tuple[int, ...], b: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; the addition is not counted."""
    return mm_flop(a, b)


def vector_flop(a: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A matrix or a vector by a vector: two for each element."""
    return 2 * math.prod(a)


def conv_flop(
    x: tuple[int, ...], weight: tuple[int, ...], bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Two for each tap of each output element, transposed of each input element: of (n, c_in, *) and (c_out, c_in / groups, *kernel)."""
    return 2 * math.prod(x if transposed else out_shape) * math.prod(weight[1:])


def conv_backward_flop(
    grad: tuple[int, ...], x: tuple[int, ...], weight: tuple[int, ...], bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any, **kwargs: Any
) -> int:
    """The gradients of the input and of the weight each do as much as the forward pass."""
    return 2 * math.prod(x if transposed else grad) * math.prod(weight[1:]) * (args[2][0] + args[2][1])


def attention_flop(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Scores and their product with the values."""
    batch = math.prod(q[:-2])
    return 2 * batch * q[-2] * k[-2] * (q[-1] + v[-1])


def attention_backward_flop(grad: tuple[int, ...], q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The scores once more, and four products: of the weights' gradient and those of query, key and value."""
    batch = math.prod(q[:-2])
    return 2 * batch * q[-2] * k[-2] * (3 * q[-1] + 2 * v[-1])


_FORMULAS: dict[str, tuple[Callable[..., int], bool]] = {}  # row's name: formula, whether it takes tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the formula counts for these operators. It gets shapes in the place of tensors and `out_shape` (with get_raw the tensors and `out_val`)."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            _FORMULAS[_row_of(target)] = (formula, get_raw)
        return formula

    return register


def _row_of(target: Any) -> str:
    return target.__name__ if isinstance(target, _aten.OperatorPacket) else getattr(target, "_name", None) or str(target)


for _names, _formula in (
    (("mm", "bmm", "matmul"), mm_flop), (("addmm", "baddbmm"), addmm_flop), (("dot", "vdot", "mv"), vector_flop), (("convolution",), conv_flop),
    (("convolution_backward",), conv_backward_flop), (("_scaled_dot_product_flash_attention_for_cpu",), attention_flop),
    (("_scaled_dot_product_flash_attention_for_cpu_backward",), attention_backward_flop),
):  # fmt: skip
    for _name in _names:
        _FORMULAS[_name] = (_formula, False)


class FlopCounterMode(TorchDispatchMode):
    """A mode that counts, forward and backward, for each module that runs. mods: without effect. depth: levels of modules in the table. display: print
    it at the end.

    custom_mapping: {operator: formula} beside the registered ones.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Callable[..., int]] | None = None) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self._formulas = dict(_FORMULAS)
        for target, formula in (custom_mapping or {}).items():
            self._formulas[_row_of(target)] = (formula, bool(getattr(formula, "_get_raw", False)))
        self._tracker = ModuleTracker()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        found = self._formulas.get(getattr(func, "_name", str(func)))
        if found is not None:
            formula, raw = found
            count = formula(*args, **kwargs, out_val=out) if raw else formula(*map(_shape, args), **{k: _shape(v) for k, v in kwargs.items()}, out_shape=_shape(out))
            counted = _aten.packet(func._name)
            for parent in self._tracker.parents:
                self.flop_counts[parent][counted] += count
        return out

    def get_total_flops(self) -> int:
        """All operations that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module's path: {operator: operations}}; "Global" is everything."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table by module and operator, with shares of the total."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for name, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            rows.append((" " * level + name, _text(sum(counts.values())), f"{100 * sum(counts.values()) / total:.2f}%"))
            rows += [(" " * (level + 1) + f"- {packet}", _text(count), f"{100 * count / total:.2f}%") for packet, count in counts.items()]
        width = max(len(row[0]) for row in rows)
        return "\n".join(f"{a:<{width}}  {b:>10}  {c:>8}" for a, b, c in rows)


def _text(count: int) -> str:
    for limit, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= limit:
            return f"{count / limit:.3f}{suffix}"
    return str(count)
