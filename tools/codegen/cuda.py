"""The CUDA C++ of declared pointwise operators: their scalar expressions, from which cysrc/cuda/source.pyx renders kernels at first use."""

from __future__ import annotations

import pprint
from collections.abc import Iterable

from .expression import to_cuda
from .pointwise import loops_of
from .schema import Operator


def expressions_source(operators: Iterable[Operator]) -> str:
    """The Python module of all pointwise loops, forward and fused backward, from which kernels are rendered at first use:
    {name: (operands, parameters, operands that are bool, {dtypes: CUDA expression}, output: "same", "bool" or "real")}."""
    table = {}
    for op in operators:
        if op.kind != "pointwise":
            continue
        forward, fused = loops_of(op)
        for loop in (forward, *fused.values()):
            texts: dict[str, list[str]] = {}
            for dtype in loop.dtypes:
                texts.setdefault(to_cuda(loop.expression(dtype), dtype), []).append(dtype)
            output = "bool" if loop.bool_out else "real" if loop.real_out else "same"
            conditions = tuple(n for n in loop.operands if loop.operand_type(n, "f32") == "b8")
            table[loop.name] = (tuple(loop.operands), tuple(loop.params), conditions, {tuple(v): k for k, v in texts.items()}, output)
    text = pprint.pformat(table, width=160, compact=True, sort_dicts=False)
    return f'"""Generated from cysrc/ops/*/*.yaml: the scalar expressions of pointwise operators in CUDA C++."""\n\nEXPRESSIONS = {text}\n'
