"""Tensors as arrays of the array API standard: the namespace's inspection, dtype functions, indexing, operators, and the listed exceptions."""

from __future__ import annotations

import itertools
import operator

import pytest

np = pytest.importorskip("numpy", minversion="2.1")

import tensorrt_lite as trt

xp = trt.ones(1).__array_namespace__(api_version="2024.12")


def test_the_namespace_of_a_tensor():
    assert xp is trt.array_api and trt.nn.Parameter(trt.ones(2)).__array_namespace__() is xp
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert trt.ones(1).__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match="2031.12"):
        trt.ones(1).__array_namespace__(api_version="2031.12")


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert xp.ones((1,) * 64).ndim == 64
    assert info.default_device() == trt.device("cpu") and trt.device("cpu") in info.devices()
    assert all(xp.ones(1, device=device).device == device for device in info.devices())
    assert info.default_dtypes() == {"real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64}
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"] and len(info.dtypes()) == 13
    assert list(info.dtypes(kind=("bool", "complex floating"))) == ["bool", "complex64", "complex128"]
    for kind in ("signed integer", "unsigned integer", "integral", "numeric"):
        assert all(getattr(xp, name) == dtype and xp.isdtype(dtype, kind) for name, dtype in info.dtypes(kind=kind, device="cpu").items())
    with pytest.raises(ValueError, match="float"):
        info.dtypes(kind="float")


def test_default_dtypes_follow_the_default():
    trt.set_default_dtype(trt.float64)
    try:
        assert xp.__array_namespace_info__().default_dtypes()["complex floating"] == xp.complex128 and xp.asarray(1.0).dtype == xp.float64
    finally:
        trt.set_default_dtype(trt.float32)


def test_isdtype_and_can_cast():
    names = list(xp.__array_namespace_info__().dtypes())
    for name, kind in itertools.product(
        names, ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    ):
        assert xp.isdtype(getattr(xp, name), kind) == np.isdtype(np.dtype(name), kind), (name, kind)
    assert xp.isdtype(xp.int8, ("bool", xp.int8)) and not xp.isdtype(xp.int8, (xp.int16, "bool"))
    with pytest.raises(ValueError, match="float"):
        xp.isdtype(xp.int8, ("integral", "float"))
    for first, second in itertools.product(names[:9], repeat=2):
        assert xp.can_cast(getattr(xp, first), getattr(xp, second)) == np.can_cast(first, second), (first, second)
    assert xp.can_cast(xp.asarray(1.0), xp.float64) and not xp.can_cast(xp.float64, xp.float32)


def test_result_type_with_numbers():
    assert xp.result_type(xp.int8, 1000) == xp.int8 and xp.result_type(xp.float32, 1) == xp.float32
    assert xp.result_type(xp.float64, 1j) == xp.complex128 and xp.result_type(xp.uint16, xp.int16, True) == xp.int32
    assert xp.result_type(xp.ones(()), xp.float64) == xp.float64
    with pytest.raises(TypeError, match="result_type"):
        xp.result_type(1, 2.0)
    with pytest.raises(TypeError, match="no common dtype"):
        xp.result_type(xp.uint64, xp.int8)


def test_limits():
    for name in ("float32", "float64", "complex64", "complex128"):
        made, expected = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert (made.bits, made.eps, made.max, made.min, made.smallest_normal) == (
            expected.bits, expected.eps, expected.max, expected.min, expected.smallest_normal,
        )  # fmt: skip
        assert made.dtype == getattr(xp, expected.dtype.name) and isinstance(made.eps, float)
    for name in ("int8", "int64", "uint16", "uint64"):
        made, expected = xp.iinfo(xp.zeros(1, dtype=getattr(xp, name))), np.iinfo(name)
        assert (made.bits, made.max, made.min) == (expected.bits, expected.max, expected.min) and made.dtype == getattr(xp, name)


def test_default_dtypes_of_creation():
    for made, dtype in (
        (xp.zeros(2), xp.float32), (xp.arange(3), xp.int64), (xp.arange(3.0), xp.float32), (xp.full(2, 1), xp.int64), (xp.full(2, True), xp.bool),
        (xp.full(2, 1j), xp.complex64), (xp.linspace(0, 1, 3), xp.float32), (xp.linspace(0, 1j, 3), xp.complex64), (xp.asarray([1, 2]), xp.int64),
        (xp.asarray([1, 2.0]), xp.float32), (xp.asarray([1j]), xp.complex64), (xp.eye(2), xp.float32), (xp.fft.fftfreq(3), xp.float32),
        (xp.full(2, 2**63, dtype=xp.uint64), xp.uint64),
    ):  # fmt: skip
        assert made.dtype == dtype


def test_copies():
    x = xp.zeros(3)
    assert xp.asarray(x).data_ptr() == x.data_ptr() == xp.asarray(x, copy=False).data_ptr() and xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    for call in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(x, dtype=xp.float64, copy=False),
        lambda: xp.reshape(xp.zeros((2, 3)).T, (6,), copy=False),
    ):
        with pytest.raises(ValueError):
            call()
    assert xp.reshape(x, (3, 1), copy=True).data_ptr() != x.data_ptr() and xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32).data_ptr() != x.data_ptr()


def test_indexing():
    a = np.arange(24).reshape(2, 3, 4)
    x = xp.asarray(a)
    for key in ((0,), (..., 1), (None, 0), (slice(1, None), ..., slice(None, None, 2)), (-1, -1, -1), (Ellipsis,), (0, None, slice(0, 2)), ()):
        assert x[key].tolist() == a[key].tolist()
    for array in (np.array([1, 0, 1]), np.array([[1], [-1]])):
        assert x[xp.asarray(array)].tolist() == a[array].tolist()
    assert x[xp.asarray([0, 1]), 1, xp.asarray([3, 2])].tolist() == a[[0, 1], 1, [3, 2]].tolist()
    assert x[x > 7].tolist() == a[a > 7].tolist() and x[xp.asarray(True)].shape == (1, 2, 3, 4)
    x[x > 7] = 0
    x[0, ..., 1:3] = xp.asarray([5, 6])
    a[a > 7] = 0
    a[0, ..., 1:3] = [5, 6]
    assert x.tolist() == a.tolist()
    with pytest.raises(IndexError):
        x[2]


BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
}
BITS = {"and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
ORDER = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}


@pytest.mark.parametrize(("symbol", "name"), [*BINARY.items(), *BITS.items(), *ORDER.items()])
def test_operators(symbol, name):
    dtypes = ("int8", "int64", "uint8") if symbol in BITS else ("int8", "int64", "uint8", "float32", "float64")
    method = symbol.rstrip("_")
    for first, second in itertools.product(dtypes, repeat=2):
        if (first[0] == "f") != (second[0] == "f") or symbol == "truediv" and first[0] != "f" or symbol == "matmul" and first != second:
            continue
        x, y = xp.asarray([[5, 7], [1, 2]], dtype=getattr(xp, first)), xp.asarray([[2, 3], [1, 1]], dtype=getattr(xp, second))
        expected = getattr(xp, name)(x, y)
        for made in (getattr(operator, symbol)(x, y), getattr(x, f"__{method}__")(y)):
            assert made.dtype == expected.dtype and bool(xp.all(made == expected))
        if symbol in ORDER:
            continue
        if symbol != "matmul":
            made = getattr(x, f"__r{method}__")(2)
            assert made.dtype == x.dtype and bool(xp.all(made == getattr(xp, name)(2, x)))
        if expected.dtype == x.dtype and symbol != "matmul":
            target = xp.asarray(x, copy=True)
            made = getattr(operator, f"i{method}")(target, y)
            assert made is target and bool(xp.all(target == expected))


def test_unary_operators_and_numbers():
    x = xp.asarray([-2, 3])
    assert (-x).tolist() == [2, -3] and (+x).tolist() == [-2, 3] and abs(x).tolist() == [2, 3] and (~x).tolist() == [1, -4]
    assert (
        bool(xp.asarray(3))
        and int(xp.asarray(3)) == 3
        and float(xp.asarray(3.5)) == 3.5
        and complex(xp.asarray(1j)) == 1j
        and operator.index(xp.asarray(3)) == 3
    )
    assert len(xp.zeros((2, 3))) == 2


def test_attributes():
    x = xp.zeros((2, 3, 4))
    assert x.shape == (2, 3, 4) and isinstance(x.shape, tuple) and x.ndim == 3 and x.dtype == xp.float32 and x.device == trt.device("cpu")
    assert x.mT.shape == (2, 4, 3) and x[0].T.shape == (4, 3)
    assert x.to_device(x.device) is x and x.to_device("meta").device == trt.device("meta")
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


def test_gradients_go_through_the_namespace():
    x = trt.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=trt.float64, requires_grad=True)
    for function in (
        lambda x: xp.sum(xp.multiply(x, 2)), lambda x: xp.cumulative_sum(x, axis=0), lambda x: xp.vecdot(x, x), lambda x: xp.clip(x, -0.75, 1.0),
        lambda x: xp.take(x, xp.asarray([1, -1]), axis=1), lambda x: xp.linalg.solve(x, x[0]), lambda x: xp.where(x > 0, x, 1.0), lambda x: xp.hypot(x, 3.0),
        lambda x: xp.std(x, correction=1), lambda x: xp.sign(x) * xp.square(x),
    ):  # fmt: skip
        assert trt.autograd.gradcheck(function, (x,))


def test_errors():
    x = xp.zeros((2, 3))
    for kind, call in (
        (ValueError, lambda: xp.squeeze(x, 0)), (IndexError, lambda: xp.squeeze(x, 5)), (IndexError, lambda: xp.expand_dims(x, 4)),
        (ValueError, lambda: xp.nonzero(xp.asarray(1))), (ValueError, lambda: xp.take(x, xp.asarray([0]))), (IndexError, lambda: xp.take(x, xp.asarray([3]), axis=1)),
        (ValueError, lambda: xp.concat([xp.asarray(1), xp.asarray(2)])), (ValueError, lambda: xp.matmul(x, xp.asarray(1.0))),
        (ValueError, lambda: xp.linalg.cross(x[:, :2], x[:, :2])), (ValueError, lambda: xp.cumulative_sum(x)), (ValueError, lambda: xp.vecdot(x, x[:, :2])),
        (ValueError, lambda: xp.meshgrid(x[0], indexing="yx")), (ValueError, lambda: xp.meshgrid(x[0], xp.asarray([1]))), (TypeError, lambda: xp.sin([1.0])),
        (TypeError, lambda: xp.sum(1.0)), (ValueError, lambda: xp.arange(3, step=0)), (TypeError, lambda: xp.clip(xp.asarray([1]), 0.5)),
        (RuntimeError, lambda: xp.broadcast_to(x, (3, 3))), (ValueError, lambda: xp.linalg.qr(x, mode="raw")), (ValueError, lambda: xp.searchsorted(x[0], x, side="up")),
    ):  # fmt: skip
        with pytest.raises(kind):
            call()


# ---- EXCEPTIONS of test_standard.py


def test_exception_promotion_of_operators():
    x, scalar = xp.zeros(3, dtype=xp.int8), xp.asarray(1, dtype=xp.int64)
    assert (x + scalar).dtype == xp.int8 and xp.add(x, scalar).dtype == xp.int64
    with pytest.raises(NotImplementedError):
        xp.ones(2, dtype=xp.uint16) + xp.ones(2, dtype=xp.uint16)
    with pytest.raises(RuntimeError, match="dtype"):
        x @ xp.zeros(3, dtype=xp.int16)


def test_exception_negative_steps():
    with pytest.raises(ValueError, match="step"):
        xp.arange(3)[::-1]
    assert xp.flip(xp.arange(3)).tolist() == [2, 1, 0]


def test_exception_roots_of_infinite_numbers():
    assert xp.sqrt(xp.asarray([complex(xp.inf, 1), complex(-xp.inf, 1)])).tolist() == [complex(xp.inf, 0), complex(0, xp.inf)]


def test_exception_size_is_a_method():
    assert callable(xp.zeros((2, 3)).size) and xp.zeros((2, 3)).numel() == 6


# ---- libraries for several array types


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat")
    x = xp.asarray([[3.0, 1.0], [2.0, 4.0]])
    assert compat.array_namespace(x, x[0], 1.0) is xp and compat.is_array_api_obj(x)
    assert compat.device(x) == x.device and compat.size(x) == 4 and compat.to_device(x, "cpu") is x


def test_array_api_extra_computes_with_tensors():
    extra = pytest.importorskip("array_api_extra")
    a = np.array([[3.0, 1.0, 2.0], [2.0, 4.0, 0.5]])
    x = xp.asarray(a)
    for made, expected in (
        (extra.cov(x), np.cov(a)), (extra.kron(x, x), np.kron(a, a)), (extra.create_diagonal(x[0]), np.diag(a[0])), (extra.expand_dims(x, axis=(0, 3)), a[None, ..., None]),
        (extra.sinc(x), np.sinc(a)), (extra.atleast_nd(x, ndim=3), a[None]), (extra.nunique(x), np.asarray(5)), (extra.pad(x, 1), np.pad(a, 1)),
        (extra.one_hot(xp.asarray([0, 2]), 3), np.eye(3)[[0, 2]]), (extra.isclose(x, x + 1e-9), np.ones((2, 3))), (extra.at(x)[0, :].set(7.0), np.vstack([[7] * 3, a[1]])),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "floor_divide", "remainder", "bitwise_right_shift", "pow", "maximum", "hypot", "equal"])
def test_results_beside_array_api_strict(name):
    strict = pytest.importorskip("array_api_strict")
    pairs = [("int8", "uint8"), ("uint16", "int16"), ("uint32", "int8"), ("uint64", "uint8"), ("float32", "float64")]
    for first, second in pairs:
        if name == "hypot" and first[0] != "f" or name.startswith("bitwise") and first[0] == "f":
            continue
        ours = getattr(xp, name)(xp.asarray([5, 7, 100], dtype=getattr(xp, first)), xp.asarray([2, 3, 1], dtype=getattr(xp, second)))
        theirs = getattr(strict, name)(
            strict.asarray([5, 7, 100], dtype=getattr(strict, first)), strict.asarray([2, 3, 1], dtype=getattr(strict, second))
        )
        assert str(ours.dtype).removeprefix("torch.") == str(theirs.dtype).rpartition(".")[2] and ours.tolist() == [
            v.item() for v in np.asarray(theirs)
        ]
