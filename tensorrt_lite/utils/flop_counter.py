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

import tensorrt_lite as trt
from tensorrt_lite import _aten
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = trt.ops.aten


def _shape(x: Any) -> Any:
    return tuple(x.shape) if isinstance(x, trt.Tensor) else [_shape(y) for y in x] if isinstance(x, list) else x


def mm_flop(a: tuple[int, ...], b: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """(m, k) by (k, n): 2 m n k; also of batches."""
    return 2 * math.prod(a) * b[-1]


def addmm_flop(self: Any, a: tuple[int, ...], b: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; the addition is not counted."""
    return mm_flop(a, b)


def linear_flop(x: tuple[int, ...], weight: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """(*, in) by (out, in): 2 * rows * in * out."""
    return 2 * math.prod(x) * weight[0]


def vector_flop(a: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A matrix or a vector by a vector: two for each element."""
    return 2 * math.prod(a)


def conv_flop(x: tuple[int, ...], weight: tuple[int, ...], bias: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Two for each tap of each output element: of (n, c_in, *) and (c_out, c_in / groups, *kernel)."""
    return 2 * math.prod(out_shape) * math.prod(weight[1:])


def conv_input_flop(grad: tuple[int, ...], weight: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The gradient of the input does as much as the forward pass."""
    return 2 * math.prod(grad) * math.prod(weight[1:])


def conv_weight_flop(grad: tuple[int, ...], x: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The gradient of the weight does as much as the forward pass."""
    return 2 * math.prod(grad) * math.prod(out_shape[1:])


def attention_flop(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Scores and their product with the values."""
    batch = math.prod(q[:-2])
    return 2 * batch * q[-2] * k[-2] * (q[-1] + v[-1])


_FORMULAS: dict[str, tuple[Callable[..., int], bool]] = {}  # row's name: formula, whether it takes tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the formula counts for these operators. It gets shapes in the place of tensors and `out_shape` (with get_raw the tensors and `out_val`)."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            _FORMULAS[_row_of(target)] = (formula, get_raw)
        return formula

    return register


def _row_of(target: Any) -> str:
    return target._row if isinstance(target, _aten.OperatorPacket) else getattr(target, "_name", None) or str(target)


for _names, _formula in (
    (("mm", "bmm", "matmul"), mm_flop), (("addmm", "baddbmm"), addmm_flop), (("linear",), linear_flop), (("dot", "vdot", "mv"), vector_flop),
    (("_conv_forward",), conv_flop), (("_conv_input",), conv_input_flop), (("_conv_weight",), conv_weight_flop), (("_attention",), attention_flop),
):  # fmt: skip
    for _name in _names:
        _FORMULAS[_name] = (_formula, False)


class FlopCounterMode(TorchDispatchMode):
    """A mode that counts. mods: modules whose parts are told apart in the table. depth: levels of modules in the table. display: print it at the end.

    custom_mapping: {operator: formula} beside the registered ones.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Callable[..., int]] | None = None) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self._formulas = dict(_FORMULAS)
        for target, formula in (custom_mapping or {}).items():
            self._formulas[_row_of(target)] = (formula, bool(getattr(formula, "_get_raw", False)))
        self._parents = ["Global"]
        self._hooks: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        from tensorrt_lite.nn.modules import module

        self._names: dict[int, str] = {}
        self._hooks = [module.register_module_forward_pre_hook(self._enter_module), module.register_module_forward_hook(self._leave_module, always_call=True)]
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for hook in self._hooks:
            hook.remove()
        self._parents = ["Global"]
        if self.display:
            print(self.get_table(self.depth))

    def _enter_module(self, mod: Any, args: Any) -> None:
        parent = self._parents[-1]
        name = type(mod).__name__
        for candidate, child in getattr(self, "_current", mod).named_children() if hasattr(self, "_current") else ():
            if child is mod:
                name = candidate
        self._parents.append(name if parent == "Global" else f"{parent}.{name}")
        self._stack = [*getattr(self, "_stack", []), mod]
        self._current = mod

    def _leave_module(self, mod: Any, args: Any, output: Any) -> None:
        self._parents.pop()
        self._stack.pop()
        if self._stack:
            self._current = self._stack[-1]
        else:
            del self._current

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        found = self._formulas.get(getattr(func, "_name", str(func)))
        if found is not None:
            formula, raw = found
            count = formula(*args, **kwargs, out_val=out) if raw else formula(*map(_shape, args), **{k: _shape(v) for k, v in kwargs.items()}, out_shape=_shape(out))
            packet = _aten.packet_of(func)
            for parent in {"Global", *self._ancestors()}:
                self.flop_counts[parent][packet] += count
        return out

    def _ancestors(self) -> Iterable[str]:
        return self._parents

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
        for name, counts in self.flop_counts.items():
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
