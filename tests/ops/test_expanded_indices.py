"""gather, scatter and their kin with indices that `expand` repeats: rows are moved as one, and nothing of the index's nominal size is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt

from .torch_compare import KINDS, same

torch = pytest.importorskip("torch")

# the table's shape, dim, the index's compact shape, the shape that it is expanded to
GEOMETRIES = {
    "rows": ((11, 20), 0, (40, 1), (40, 20)),
    "short rows": ((11, 3), 0, (40, 1), (40, 3)),
    "fewer columns than the table": ((11, 20), 0, (40, 1), (40, 13)),
    "middle": ((3, 9, 20), 1, (3, 14, 1), (3, 14, 20)),
    "planes": ((9, 5, 4), 0, (14, 1, 1), (14, 5, 4)),
    "lines alike": ((6, 30), 1, (1, 25), (6, 25)),
    "all but the middle": ((4, 9, 5), 1, (1, 14, 1), (4, 14, 5)),
    "along dim itself": ((11, 6), 0, (1, 6), (15, 6)),
    "one element": ((11, 6), 0, (1, 1), (15, 6)),
    "last but one": ((5, 9, 4, 3), 1, (5, 7, 4, 1), (5, 7, 4, 3)),
}
REDUCTIONS = ("sum", "mean", "prod", "amax", "amin")
OPERATORS: dict[str, Callable[[Any, int, Any, Any], Any]] = {
    "gather": lambda x, d, i, s: x.gather(d, i),
    "scatter_add": lambda x, d, i, s: x.scatter_add(d, i, s),
    "scatter_add_": lambda x, d, i, s: x.clone().scatter_add_(d, i, s),
    "scatter a number": lambda x, d, i, s: x.scatter(d, i, 3),
    "scatter add": lambda x, d, i, s: x.scatter(d, i, s, reduce="add"),
    "scatter multiply": lambda x, d, i, s: x.scatter(d, i, s, reduce="multiply"),
}
for _name in REDUCTIONS:
    for _own in (True, False):
        OPERATORS[f"scatter_reduce {_name}{'' if _own else ' without self'}"] = lambda x, d, i, s, n=_name, own=_own: x.scatter_reduce(d, i, s, n, include_self=own)
DTYPES = ("float32", "bfloat16", "int64", "uint8")


def operands(geometry: str, dtype: str) -> tuple[Any, int, Any, Any, tuple[int, ...]]:
    """The table, dim, the compact index, the source and the index's expanded shape: PyTorch's; small whole numbers, so that sums are exact."""
    shape, dim, compact, expanded = GEOMETRIES[geometry]
    g = torch.Generator().manual_seed(5)
    low = 0 if dtype == "uint8" else -2
    x = torch.randint(low, 3, shape, generator=g).to(getattr(torch, dtype))
    s = torch.randint(low, 3, expanded, generator=g).to(getattr(torch, dtype))
    return x, dim, torch.randint(0, shape[dim], compact, generator=g), s, expanded


def ours(t: Any) -> Any:
    return trt.tensor(t.tolist(), dtype=getattr(trt, KINDS[t.dtype]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_values_are_those_of_pytorch(name: str, dtype: str) -> None:
    for geometry in GEOMETRIES:
        x, dim, index, s, expanded = operands(geometry, dtype)
        call = OPERATORS[name]
        want = call(x, dim, index.expand(expanded).contiguous(), s)
        same(call(ours(x), dim, ours(index).expand(expanded), ours(s)), want, geometry)
        same(call(ours(x), dim, ours(index).expand(expanded), ours(s.mT.contiguous()).mT), want, f"{geometry}, transposed source")
        same(call(ours(x.mT.contiguous()).mT, dim, ours(index).int().expand(expanded) if name == "gather" else ours(index).expand(expanded), ours(s)), want, f"{geometry}, transposed table")


@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in ("scatter add", "scatter multiply")])  # PyTorch has no gradient of those
def test_gradients_are_those_of_pytorch(name: str) -> None:
    for geometry in GEOMETRIES:
        x, dim, index, s, expanded = operands(geometry, "float64")
        x, s = x * 0.5 + 2.3, s * 0.25 + 1.9
        found = []
        for library, make in ((torch, lambda t: t.clone()), (trt, ours)):
            a, b, i = make(x).requires_grad_(), make(s).requires_grad_(), make(index).expand(expanded)
            y = OPERATORS[name](a, dim, i, b)
            grads = library.autograd.grad(y.square().sum(), [a, b], allow_unused=True)
            found.append(grads)
        same(found[1], found[0], geometry, 1e-12)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_index_out_of_range_is_refused_before_anything_is_written(name: str) -> None:
    for geometry in GEOMETRIES:
        x, dim, index, s, expanded = operands(geometry, "float32")
        index.view(-1)[-1] = x.shape[dim]
        table, bad = ours(x), ours(index).expand(expanded)
        with pytest.raises(RuntimeError, match="out of bounds"):
            OPERATORS[name](table, dim, bad, ours(s))
        if name == "scatter_add_":
            with pytest.raises(RuntimeError, match="out of bounds"):
                table.scatter_add_(dim, bad, ours(s))
            assert table.tolist() == x.tolist()


@pytest.mark.parametrize("name", [n for n in OPERATORS if "number" not in n])
def test_results_do_not_depend_on_threads(name: str) -> None:
    x, i, s = trt.randn(300, 40), trt.randint(0, 300, (5000, 1)).expand(-1, 40), trt.randn(5000, 40)
    y, j, t = trt.randn(3, 200, 7), trt.randint(0, 200, (3, 3000, 1)).expand(-1, -1, 7), trt.randn(3, 3000, 7)
    before, results = trt.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            trt.set_num_threads(threads)
            results.append((OPERATORS[name](x, 0, i, s), OPERATORS[name](y, 1, j, t)))
    finally:
        trt.set_num_threads(before)
    for other in results[1:]:
        assert all(trt.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_means_of_bfloat16_count_beyond_256() -> None:
    x, i = trt.zeros(2, 4, dtype=trt.bfloat16), trt.zeros(1000, 1, dtype=trt.int64)
    s = trt.zeros(1000, 4, dtype=trt.bfloat16)
    s[0] = 1000.0
    assert x.scatter_reduce(0, i.expand(-1, 4), s, "mean", include_self=False)[0].tolist() == [1.0] * 4
    assert x.scatter_reduce(0, i.expand(-1, 4).contiguous(), s, "mean", include_self=False)[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("name", ["gather", "scatter_add", "scatter_add_", "scatter_reduce mean without self", "scatter_reduce amax"])
def test_an_expanded_index_is_not_copied(name: str) -> None:
    x, s = trt.zeros(4, 1 << 12, dtype=trt.int8), trt.ones(256, 1 << 12, dtype=trt.int8)
    i = trt.randint(0, 4, (256, 1)).expand(-1, 1 << 12)  # nominally 8 MB
    OPERATORS[name](x, 0, i, s)
    trt.cpu.reset_peak_memory_stats()
    start = trt.cpu.memory_allocated()
    OPERATORS[name](x, 0, i, s)
    assert trt.cpu.max_memory_allocated() - start < 3 << 20
