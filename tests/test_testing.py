"""assert_close and make_tensor behave like torch.testing's, messages included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.testing import assert_close, make_tensor

torch = pytest.importorskip("torch", reason="compared with PyTorch (extra `conformance`)")

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """The exception's type and text, with the libraries' names alike."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error).replace("tensorrt_lite.", "torch.")
    return "passes", ""


NAN, INF = float("nan"), float("inf")

# Functions of the library that return (actual, expected).
CASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "equal": lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0])),
    "within tolerance": lambda t: (t.tensor([1.0, 2.000001]), t.tensor([1.0, 2.0])),
    "beyond tolerance": lambda t: (t.tensor([1.0, 2.001]), t.tensor([1.0, 2.0])),
    "float64 tolerance": lambda t: (t.tensor([1.000001], dtype=t.float64), t.tensor([1.0], dtype=t.float64)),
    "half": lambda t: (t.tensor([1.0, 1.004], dtype=t.float16), t.tensor([1.0, 1.0], dtype=t.float16)),
    "bfloat16": lambda t: (t.tensor([1.0, 1.01], dtype=t.bfloat16), t.tensor([1.0, 1.0], dtype=t.bfloat16)),
    "matrix": lambda t: (t.tensor([[1.0, 2.0], [3.0, 5.0]]), t.tensor([[1.0, 2.5], [3.0, 4.0]])),
    "zeros expected": lambda t: (t.tensor([0.5, 0.0]), t.tensor([0.0, 0.0])),
    "nan": lambda t: (t.tensor([NAN, 1.0]), t.tensor([NAN, 1.0])),
    "nan against number": lambda t: (t.tensor([NAN, 1.0]), t.tensor([2.0, 1.0])),
    "infinities": lambda t: (t.tensor([INF, -INF]), t.tensor([INF, INF])),
    "integers": lambda t: (t.tensor([1, 2, 3]), t.tensor([1, 2, 7])),
    "narrow integers": lambda t: (t.tensor([100, -100], dtype=t.int8), t.tensor([-100, 100], dtype=t.int8)),
    "bools": lambda t: (t.tensor([True, False]), t.tensor([True, True])),
    "complex": lambda t: (t.tensor([1 + 1j, 2.0]), t.tensor([1 + 2j, 2.0])),
    "scalar tensors": lambda t: (t.tensor(1.0), t.tensor(2.0)),
    "scalar nan": lambda t: (t.tensor(NAN), t.tensor(NAN)),
    "scalar integers": lambda t: (t.tensor(3), t.tensor(0)),
    "shapes": lambda t: (t.ones(2, 3), t.ones(3, 2)),
    "dtypes": lambda t: (t.ones(2), t.ones(2, dtype=t.float64)),
    "dtypes and values": lambda t: (t.tensor([1, 5]), t.tensor([1.0, 2.0])),
    "strides": lambda t: (t.ones(2, 3).t(), t.ones(3, 2)),
    "empty": lambda t: (t.ones(0, 3), t.ones(0, 3)),
    "requires grad": lambda t: (t.ones(2, requires_grad=True), t.zeros(2)),
    "numbers": lambda t: (1.0, 1.5),
    "close numbers": lambda t: (1.0, 1.0 + 1e-9),
    "integer numbers": lambda t: (1, 2),
    "number types": lambda t: (1, 1.0),
    "complex numbers": lambda t: (1j, 2j),
    "number nan": lambda t: (NAN, NAN),
    "expected zero": lambda t: (1, 0),
    "python bools": lambda t: (True, False),
    "none": lambda t: (None, None),
    "none against tensor": lambda t: (None, t.ones(1)),
    "number against tensor": lambda t: (1.0, t.ones(())),
    "sequences": lambda t: ([t.ones(2), 2.0], (t.ones(2), 2.0)),
    "nested": lambda t: ([t.ones(2), [t.zeros(1), {"a": t.ones(1)}]], [t.ones(2), [t.zeros(1), {"a": t.zeros(1)}]]),
    "lengths": lambda t: ([1, 2], [1]),
    "mappings": lambda t: ({"a": 1, "b": t.ones(2)}, {"b": t.zeros(2), "a": 1}),
    "keys": lambda t: ({"a": 1, "b": 2}, {"a": 1, "c": 2}),
    "numpy": lambda t: (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "numpy scalars": lambda t: (np.float64(1.0), np.float64(2.0)),
    "numpy bools": lambda t: (np.bool_(True), np.bool_(False)),
    "numpy against tensor": lambda t: (np.ones(2), t.ones(2)),
    "strings": lambda t: ("a", "a"),
    "parameter": lambda t: (t.nn.Parameter(t.ones(2)), t.ones(2)),
    "meta": lambda t: (t.empty(2, device="meta"), t.empty(2, device="meta")),
}

OPTIONS: list[dict[str, Any]] = [
    {},
    {"equal_nan": True},
    {"rtol": 0, "atol": 0},
    {"rtol": 1e-2, "atol": 1e-1},
    {"rtol": 0.0, "atol": 10},
    {"rtol": 1e-3},
    {"atol": 1e-3},
    {"check_dtype": False},
    {"check_stride": True},
    {"allow_subclasses": False},
    {"msg": "the message"},
    {"msg": lambda text: f"<{text}>"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "defaults")
@pytest.mark.parametrize("name", CASES)
def test_assert_close_is_pytorchs(name: str, options: dict[str, Any]) -> None:
    mine = outcome(lambda: assert_close(*CASES[name](trt), **options))
    theirs = outcome(lambda: torch.testing.assert_close(*CASES[name](torch), **options))
    if "number against" in name or name == "numpy against tensor":
        # The texts name the classes of the two libraries.
        mine, theirs = mine[:1], theirs[:1]
    if name == "parameter" and "allow_subclasses" in options:
        mine, theirs = mine[:1], theirs[:1]
    assert mine == theirs


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "defaults")
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"])
def test_float8_tensors_are_compared_bit_by_bit_as_pytorchs(dtype: str, options: dict[str, Any]) -> None:
    pairs = [([[1.0, 2.0], [4.0, 8.0]], other) for other in ([[1.0, 2.0], [4.0, 8.0]], [[1.0, 2.0], [2.0, 4.0]], [[1.0, NAN], [4.0, 8.0]])]
    for pair in [*pairs, (1.0, 2.0), (NAN, NAN)]:

        def compared(t: Any) -> Any:
            return outcome(lambda: t.testing.assert_close(*[t.tensor(x).to(getattr(t, dtype)) for x in pair], **options))  # noqa: B023

        assert compared(trt) == compared(torch)


MATRIX = [[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 4.0, 5.0], [6.0, 0.0, 0.0, 0.0]]
# (row, column, value) that turns MATRIX into the other tensor of a pair.
CHANGES = {"none": (0, 0, 1.0), "value": (2, 3, 5.5), "element less": (3, 0, 0.0), "element more": (0, 1, 7.0), "nan": (1, 1, NAN)}
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "coo": lambda x: x.to_sparse(),
    "hybrid": lambda x: x.to_sparse(1),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


def changed(t: Any, change: str, moved: bool = False) -> Any:
    """The changed matrix; moved: with the element of the last row in another column."""
    row, column, value = CHANGES[change]
    matrix = t.tensor(MATRIX)
    matrix[row, column] = value
    if moved:
        matrix[3] = matrix[3].roll(1)
    return matrix


@pytest.mark.parametrize("options", [*OPTIONS, {"check_layout": False}], ids=lambda options: ",".join(options) or "defaults")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_tensors_are_compared_as_pytorchs(layout: str, change: str, options: dict[str, Any]) -> None:
    make = LAYOUTS[layout]
    for moved in (False, True):
        pairs: list[Callable[[Any], tuple[Any, Any]]] = [
            lambda t, moved=moved: (make(changed(t, change, moved)), make(changed(t, "none"))),
            lambda t, moved=moved: (make(changed(t, change, moved)), changed(t, "none")),
            lambda t, moved=moved: (make(changed(t, change, moved).to(t.float64)), make(changed(t, "none"))),
            lambda t, moved=moved: (
                make(changed(t, change, moved).nan_to_num(9).to(t.int64)),
                make(changed(t, "none").to(t.int64)),
            ),
        ]
        for pair in pairs:
            mine = outcome(lambda pair=pair: assert_close(*pair(trt), **options))  # type: ignore[misc]
            theirs = outcome(lambda pair=pair: torch.testing.assert_close(*pair(torch), **options))  # type: ignore[misc]
            assert mine == theirs


def twice(t: Any) -> Any:
    return t.sparse_coo_tensor(t.tensor([[0, 0, 1]]), t.tensor([1.0, 2.0, 3.0]), (3,))


def rows(t: Any, compressed: list[int], columns: list[int], dtype: str) -> Any:
    kind = getattr(t, dtype)
    return t.sparse_csr_tensor(t.tensor(compressed, dtype=kind), t.tensor(columns, dtype=kind), t.tensor([1.0, 2.0]), (2, 2))


SPARSE_CASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "uncoalesced against coalesced": lambda t: (twice(t), twice(t).coalesce()),
    "uncoalesced": lambda t: (twice(t), twice(t)),
    "order": lambda t: (
        t.sparse_coo_tensor(t.tensor([[1, 0]]), t.tensor([1.0, 2.0]), (3,)),
        t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([2.0, 1.0]), (3,)),
    ),
    "stored zero": lambda t: (
        t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([1.0, 0.0]), (3,)),
        t.sparse_coo_tensor(t.tensor([[0]]), t.tensor([1.0]), (3,)),
    ),
    "sparse dimensions": lambda t: (t.tensor(MATRIX).to_sparse(1), t.tensor(MATRIX).to_sparse(2)),
    "widths of indices": lambda t: (rows(t, [0, 1, 2], [0, 1], "int32"), rows(t, [0, 1, 2], [0, 1], "int64")),
    "other columns": lambda t: (rows(t, [0, 1, 2], [0, 1], "int32"), rows(t, [0, 1, 2], [1, 1], "int64")),
    "other rows": lambda t: (rows(t, [0, 1, 2], [0, 1], "int32"), rows(t, [0, 0, 2], [0, 1], "int32")),
    "no elements": lambda t: (t.zeros(2, 2).to_sparse(), t.zeros(2, 2).to_sparse()),
    "zero-dimensional": lambda t: (t.tensor(1.0).to_sparse(), t.tensor(2.0).to_sparse()),
    "complex": lambda t: (t.tensor([0, 1j]).to_sparse(), t.tensor([0, 1 + 1j]).to_sparse()),
    "bools": lambda t: (t.tensor([True, False]).to_sparse(), t.tensor([False, True]).to_sparse()),
    "requires grad": lambda t: (t.ones(2).to_sparse().requires_grad_(), t.ones(2).to_sparse().requires_grad_()),
    "inside a list": lambda t: ([1, twice(t)], [1, twice(t) * 2]),
    "layouts": lambda t: (t.ones(2, 2).to_sparse(), t.ones(2, 2).to_sparse_csr()),
    "nested": lambda t: tuple(  # type: ignore[return-value]
        t.nested.nested_tensor_from_jagged(values, offsets)
        for offsets in [t.tensor([0, 2, 5])]
        for values in (t.arange(5.0), t.arange(5.0) * 2)
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPARSE_CASES)
def test_what_sparse_tensors_store_is_compared(name: str) -> None:
    case = SPARSE_CASES[name]
    assert outcome(lambda: assert_close(*case(trt))) == outcome(lambda: torch.testing.assert_close(*case(torch)))


def test_each_dtype_has_pytorchs_tolerance() -> None:
    for dtype in DTYPES[6:]:
        for step in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
            values = [100.0, 100.0 * (1 + step)]
            mine = trt.tensor(values, dtype=getattr(trt, dtype))
            theirs = torch.tensor(values, dtype=getattr(torch, dtype))
            passes = outcome(lambda mine=mine: assert_close(mine[0], mine[1]))[0]
            assert passes == outcome(lambda theirs=theirs: torch.testing.assert_close(theirs[0], theirs[1]))[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"low": 1, "high": 2},
        {"low": 0.5},
        {"noncontiguous": True},
        {"exclude_zero": True},
        {"requires_grad": True},
        {"low": 5, "high": 3},
        {"low": NAN},
        {"low": 1e40, "high": 1e41},
        {"low": -INF, "high": INF},
    ],
    ids=str,
)
def test_make_tensor_is_pytorchs_after_seeding(dtype: str, options: dict[str, Any]) -> None:
    def make(library: Any, function: Callable[..., Any]) -> tuple[Any, ...]:
        library.manual_seed(5)
        tensor = function((3, 4), dtype=getattr(library, dtype), device="cpu", **options)
        facts = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.requires_grad)
        return (*facts, str(tensor.dtype).rpartition(".")[2], tensor.detach().tolist())

    results: list[Any] = []

    def mine() -> None:
        results.append(make(trt, make_tensor))

    def theirs() -> None:
        results.append(make(torch, torch.testing.make_tensor))

    assert outcome(mine) == outcome(theirs)
    if results:
        assert results[0][:-1] == results[1][:-1]
        # Equal streams; the last bits of uniform_'s scaling may differ.
        np.testing.assert_allclose(np.array(results[0][-1]), np.array(results[1][-1]), rtol=1e-6, atol=1e-30)


def test_make_tensor_takes_sizes_as_numbers() -> None:
    assert tuple(make_tensor(2, 3, dtype=trt.float32, device="cpu").shape) == (2, 3)
    assert make_tensor((), dtype=trt.int64, device="cpu").dim() == 0


def test_make_tensor_rejects_two_layouts() -> None:
    options = {"noncontiguous": True, "memory_format": trt.contiguous_format}
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(4, dtype=trt.float32, device="cpu", **options)
