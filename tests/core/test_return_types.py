"""Classes of operators' named results beside PyTorch's: names, fields, pickling."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite import return_types

X = trt.arange(12, dtype=trt.float64).reshape(3, 4).sin()
RESULTS: dict[str, Any] = {
    "sort": lambda: X.sort(),
    "topk": lambda: trt.topk(X, 2),
    "max": lambda: X.max(0),
    "cummax": lambda: X.cummax(0),
    "mode": lambda: X.mode(),
    "linalg_svd": lambda: trt.linalg.svd(X),
    "linalg_lstsq": lambda: trt.linalg.lstsq(X, X),
    "slogdet": lambda: trt.slogdet(X @ X.T),
    "histogram": lambda: trt.histogram(X, 3),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_their_class_and_pickle(name: str) -> None:
    result = RESULTS[name]()
    assert type(result) is getattr(return_types, name)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert all(a.equal(b) for a, b in zip(again, result))


def test_names_and_fields_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")
    theirs = {kind.__name__: [name for name, value in vars(kind).items() if type(value).__name__ == "member_descriptor"] for kind in torch.return_types.all_return_types}
    public = {name: fields for name, fields in theirs.items() if not name.startswith("_")}
    assert {name: list(getattr(return_types, name)._fields) for name in public} == public
    assert {name for name in dir(return_types) if not name.startswith("_")} <= {*theirs, "all_return_types"}


def test_an_absent_class_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="return_types' has no attribute 'sum'"):
        _ = return_types.sum
