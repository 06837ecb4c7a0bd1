"""repr of tensors is PyTorch's, character for character, for every dtype, size, option and suffix."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="printing is compared with PyTorch (extra `conformance`)")

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")


def pair(values: Any, dtype: str | None = None) -> tuple[Any, Any]:
    """The same tensor in both libraries, from numbers, a NumPy array or a PyTorch tensor."""
    theirs = values if isinstance(values, torch.Tensor) else torch.tensor(values)
    if dtype is not None:
        theirs = theirs.to(getattr(torch, dtype))
    if theirs.dtype == torch.bfloat16:
        mine = trt.from_numpy(theirs.contiguous().view(torch.int16).numpy().copy()).view(trt.bfloat16)
    else:
        mine = trt.from_numpy(np.array(theirs.numpy()))
    return mine, theirs


def text(value: Any) -> str:
    return repr(value).replace("tensorrt_lite.", "torch.")


def expected(value: Any) -> str:
    return torch._tensor_str._str(value)


@contextlib.contextmanager
def options(**kwargs: Any) -> Iterator[None]:
    with trt.printoptions(**kwargs), torch._tensor_str.printoptions(**kwargs):
        yield


def assert_prints_alike(values: Any, dtype: str | None = None) -> None:
    mine, theirs = pair(values, dtype)
    assert text(mine) == expected(theirs)


SHAPES = [(), (1,), (3,), (7,), (40,), (2, 3), (3, 40), (2, 2, 2), (2, 1, 3, 2), (1, 1, 1, 1, 2), (1000,), (1001,)]
LARGE = [(40, 30), (7, 1, 200), (6, 6, 40), (2, 7, 3, 50), (5000,), (4, 4, 4, 4, 8)]
EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX, "bool"])
@pytest.mark.parametrize("shape", SHAPES + LARGE + EMPTY, ids=str)
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(math.prod(shape))
    if dtype in COMPLEX:
        values = torch.complex(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator))
    elif dtype in FLOATS:
        values = torch.randn(shape, generator=generator)
    else:
        values = torch.randint(0, 100, shape, generator=generator)
        values = values > 50 if dtype == "bool" else values
    assert_prints_alike(values, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, 3.0],
        [1.0, 2.5],
        [0.0, -0.0],
        [0.0, 1e-5],
        [1e-4, 0.05],
        [1e-4, 0.11],
        [1.0, 1000.0],
        [1.0, 1001.0],
        [1e8],
        [1.1e8, 1e8],
        [-1.0, 12345.678],
        [1e30, 1e-30],
        [float("nan")],
        [float("inf"), -float("inf"), float("nan")],
        [float("inf"), 1.0],
        [float("nan"), 1.5, -2.25],
        [float("-inf"), 1e10],
        [float("nan"), 0.0],
        [123456.0, -7.0],
        [0.99999, 0.00001],
        [9.99995],
        [3.4e38],
        3.0,
        -0.0,
        float("nan"),
        1e-7,
        123456789.0,
    ],
    ids=str,
)
def test_notation_of_floats(values: Any, dtype: str) -> None:
    assert_prints_alike(values, dtype)


@pytest.mark.parametrize(
    "values",
    [
        1 + 2j,
        [1 + 2j, 3 - 4j],
        [1.5 - 0.0j, -0.0 + 1j],
        [complex(float("nan"), float("inf")), complex(1, -float("inf"))],
        [1e-8 + 1e8j, 1 + 1j],
        [[1 + 100j, 2.5j], [-3.25, 0]],
        [0j],
    ],
    ids=str,
)
def test_notation_of_complex_numbers(values: Any) -> None:
    assert_prints_alike(values, "complex64")
    assert_prints_alike(values, "complex128")


@pytest.mark.parametrize("values", [[0], [-1, 100], [2**62, -(2**63)], 7, -7, [[1, -20], [300, 4]]], ids=str)
def test_integers(values: Any) -> None:
    assert_prints_alike(values)


def test_extremes_of_a_dtype() -> None:
    for dtype in FLOATS:
        info = torch.finfo(getattr(torch, dtype))
        assert_prints_alike([info.max, info.tiny, info.eps], dtype)
        assert_prints_alike([info.min, info.smallest_normal / 4, 0.0], dtype)


@pytest.mark.parametrize("layout", ["transposed", "step", "expanded", "reversed_permute"])
def test_strided_tensors(layout: str) -> None:
    mine, theirs = pair(np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 3)
    views = {
        "transposed": lambda t: t.transpose(0, 2),
        "step": lambda t: t[:, ::2, 1::2],
        "expanded": lambda t: t[:1].expand(5, 3, 4),
        "reversed_permute": lambda t: t.permute(2, 1, 0)[1:],
    }
    view = views[layout]
    assert text(view(mine)) == expected(view(theirs))


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": 2},
        {"precision": 8},
        {"precision": 0},
        {"threshold": 5},
        {"threshold": 0},
        {"threshold": 5, "edgeitems": 1},
        {"threshold": 5, "edgeitems": 0},
        {"edgeitems": 0},
        {"edgeitems": 5, "threshold": 20},
        {"linewidth": 20},
        {"linewidth": 1},
        {"linewidth": 200},
        {"sci_mode": True},
        {"sci_mode": False},
        {"sci_mode": True, "precision": 1, "linewidth": 40},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "full", "precision": 6},
        {"profile": "default", "linewidth": 60},
    ],
    ids=str,
)
def test_print_options(settings: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(3)
    cases = [
        torch.randn(3, 9, generator=generator),
        torch.randn(40, 30, generator=generator) * 1e6,
        torch.randint(-1000, 1000, (25,), generator=generator),
        torch.tensor([1.0, 2.0, 30.0]),
        torch.randn(4, 3, dtype=torch.complex64, generator=generator),
        torch.randn(2, 8, 8, generator=generator) > 0,
        torch.tensor(3.25),
        torch.zeros(0, 4),
    ]
    with options(**settings):
        for case in cases:
            assert_prints_alike(case)


def test_options_are_kept_and_restored() -> None:
    before = trt.get_printoptions()
    assert before == torch._tensor_str.get_printoptions()
    with pytest.raises(KeyError), trt.printoptions(precision=9, sci_mode=True):
        assert trt.get_printoptions()["precision"] == 9
        raise KeyError
    assert trt.get_printoptions() == before
    trt.set_printoptions(sci_mode=True)
    trt.set_printoptions(threshold=10)
    try:
        # PyTorch resets sci_mode whenever it is not given.
        assert trt.get_printoptions() == {**before, "threshold": 10}
    finally:
        trt.set_printoptions(profile="default")
    assert trt.get_printoptions() == before


def suffixes(library: Any) -> list[str]:
    leaf = library.ones(2, requires_grad=True)
    wide = library.ones(3, 4, requires_grad=True)
    half = library.ones(12, dtype=library.float16, requires_grad=True)
    return [leaf, leaf * 2, (wide * 2).sum(), wide.exp(), half, half.double() + 1, leaf.detach(), wide[0], wide.t()]


def test_gradient_suffixes() -> None:
    for mine, theirs in zip(suffixes(trt), suffixes(torch), strict=True):
        assert text(mine) == expected(theirs)


def test_default_dtype_decides_what_is_named() -> None:
    try:
        trt.set_default_dtype(trt.float64)
        torch.set_default_dtype(torch.float64)
        for dtype in (*FLOATS, *COMPLEX, "int64", "bool"):
            assert_prints_alike(torch.ones(3), dtype)
            assert_prints_alike(torch.ones(0), dtype)
    finally:
        trt.set_default_dtype(trt.float32)
        torch.set_default_dtype(torch.float32)


def test_meta_tensors_print_without_elements() -> None:
    for dtype in ("float32", "int64"):
        mine = trt.empty(2, 3, dtype=getattr(trt, dtype), device="meta")
        assert text(mine) == expected(torch.empty(2, 3, dtype=getattr(torch, dtype), device="meta"))


def test_parameters_and_subclasses() -> None:
    mine, theirs = trt.nn.Parameter(trt.ones(2, 2)), torch.nn.Parameter(torch.ones(2, 2))
    assert text(mine) == repr(theirs)

    mine = trt.ones(3).as_subclass(type("Special", (trt.Tensor,), {}))
    theirs = torch.ones(3).as_subclass(type("Special", (torch.Tensor,), {}))
    with torch._C.DisableTorchFunctionSubclass():
        assert text(mine) == expected(theirs)


def test_str_and_format_are_the_same_text() -> None:
    mine, theirs = pair([1.5, 2.0])
    assert str(mine) == f"{mine}" == repr(mine) == expected(theirs)
    scalar, _ = pair(2.5)
    assert f"{scalar:.3f}" == "2.500"


def test_many_random_tensors_print_alike() -> None:
    source = random.Random(0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        shape = tuple(source.choice([1, 2, 3, 7, 13]) for _ in range(source.randrange(4)))
        dtype = source.choice([*FLOATS, *COMPLEX, *INTEGERS])
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * 10.0 ** source.randrange(-6, 9)
        if source.random() < 0.3:
            values = values.round()
        if source.random() < 0.3 and dtype not in INTEGERS:
            values = values.masked_fill(torch.rand(shape, generator=generator) < 0.2, source.choice([0.0, math.nan]))
        if dtype in INTEGERS:
            values = values.clamp(0, 100)
        settings = {"linewidth": source.choice([30, 80]), "precision": source.choice([2, 4, 6]), "threshold": 60}
        with options(**settings):
            assert_prints_alike(values, dtype)
