"""Dimensions counted from the end give the results and the gradients of those counted from the front, for every row with such an argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")

import tensorrt_lite as trt
from tools.codegen.schema import Argument, Operator, load

ROWS = load(Path(__file__).resolve().parents[2] / "cysrc" / "ops")
SHAPE = (3, 4, 5)
COUNT_ONE_MORE = {"stack", "unsqueeze", "unsqueeze_copy", "diag_embed"}  # dimensions of the result
OTHERS = {"tile", "norm_except_dim"}  # `dims` are repeats; -1 alone is negative
VALUES: dict[str, Any] = {"int": 2, "int[]": [1], "Scalar": 1.5, "float": 1.5, "bool": False, "str": "mean"}


def is_dimension(a: Argument) -> bool:
    return a.type in ("int", "int?", "int[]", "int[]?") and (a.name.startswith("dim") or a.name in ("axis", "axes", "source", "destination", "start_dim", "end_dim"))


CHOSEN = [op for op in ROWS if op.arguments and op.arguments[0].type in ("Tensor", "Tensor[]") and any(map(is_dimension, op.arguments)) and op.name not in OTHERS and not op.name.startswith("_")]


def called(op: Operator, function: Any, dimensions: tuple[int, int]) -> tuple[list[Any], list[Any]]:
    """(results, gradients of what requires them) with these dimensions."""
    trt.manual_seed(0)
    by_position, by_name, leaves = [], {}, []
    places = [a.name for a in op.arguments if is_dimension(a)]
    for a in op.arguments:
        if a.name in places:
            value: Any = dimensions[min(places.index(a.name), 1)]
            value = [value] if a.type.startswith("int[]") else value
        elif a.type in ("Tensor", "Tensor[]"):
            drawn = [trt.rand(SHAPE) > 0.5 if a.name == "mask" else trt.randint(0, 3, SHAPE) if "ind" in a.name else trt.randn(SHAPE, dtype=trt.float64).requires_grad_() for _ in range(2)]
            value = drawn if a.type == "Tensor[]" else drawn[0]
            leaves += [x for x in (drawn if a.type == "Tensor[]" else drawn[:1]) if x.requires_grad]
        elif a.default is not None:
            continue
        else:
            value = VALUES[a.type]
        if a.keyword or by_name or len(by_position) < op.arguments.index(a):
            by_name[a.name] = value
        else:
            by_position.append(value)
    result = function(*by_position, **by_name)
    results = [x for x in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(x, trt.Tensor)]
    sums = [(x.abs() * trt.linspace(1, 2, x.numel(), dtype=trt.float64).reshape(x.shape)).sum() for x in results if x.requires_grad]
    return [x.detach() for x in results], list(trt.autograd.grad(sum(sums[1:], sums[0]), leaves, allow_unused=True)) if sums else []


def test_dimensions_from_the_end() -> None:
    agreed, wrong = set(), []
    for op in CHOSEN:
        function = getattr(trt, op.name, None) or getattr(trt.Tensor, op.name, None) or getattr(trt.linalg, op.name.removeprefix("linalg_"), None)
        for dimensions in ((0, 1), (2, 1), (1, 2)) if function is not None else ():
            try:
                front = called(op, function, dimensions)
            except (KeyError, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue  # these arguments are none of the operator's
            count = len(SHAPE) + (op.name in COUNT_ONE_MORE)
            try:
                back = called(op, function, (dimensions[0] - count, dimensions[1] - count))
            except (RuntimeError, IndexError) as error:
                wrong.append(f"{op.name} {dimensions}: {error}")
                continue
            for x, y in zip(front[0] + front[1], back[0] + back[1], strict=True):
                if (x is None) != (y is None) or (x is not None and not (x.shape == y.shape and x.dtype == y.dtype and trt.allclose(x.double(), y.double(), equal_nan=True))):
                    wrong.append(f"{op.name} {dimensions} differs")
            agreed.add(op.name)
    assert not wrong, wrong
    assert len(agreed) >= 85, sorted(agreed)  # the others take other shapes or lists
