"""`tensor` and its kin of everything that Python programs hand in: sizes, dtypes, values and the types of errors are PyTorch's."""

from __future__ import annotations

import array
import collections
import decimal
import enum
import fractions
import re
import warnings

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


class Number(enum.IntEnum):
    THREE = 3
    FOUR = 4


class Flag(enum.IntFlag):
    X = 1
    Y = 2


class Colour(enum.Enum):
    RED = 1


class Index:
    def __index__(self):
        return 7


class Float:
    def __float__(self):
        return 7.5


class Items:
    """A sequence by protocol alone."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class OnlyGetitem:
    def __getitem__(self, i):
        return [1, 2][i]


DATA = {
    "one element": lambda m: [m.ones(1), m.ones(1) * 2],
    "no dimension": lambda m: [m.tensor(1.0), m.tensor(2.0)],
    "one element of several dimensions": lambda m: [[m.ones(1, 1, 1), m.ones(1)], [m.ones(()), 3]],
    "tensor, number": lambda m: [m.ones(1), 2],
    "number, tensor": lambda m: [2, m.ones(1)],
    "float, int tensor": lambda m: [2.5, m.ones(1, dtype=m.int64)],
    "double tensor, float": lambda m: [m.ones(1, dtype=m.float64), 1.5],
    "half tensor, int": lambda m: [m.ones((), dtype=m.float16), 3],
    "half tensor, float": lambda m: [m.ones((), dtype=m.float16), 1.5],
    "int8 tensor, int": lambda m: [m.ones((), dtype=m.int8), 3],
    "int8 tensor, bool": lambda m: [m.ones((), dtype=m.int8), True],
    "bool tensor, int": lambda m: [m.ones((), dtype=m.bool), 3],
    "complex tensor": lambda m: [m.ones(1, dtype=m.complex64), 2],
    "rotation": lambda m: [[m.ones(1) / 2, -m.ones(1), 0.0], [m.ones(1), m.ones(1), 0]],
    "with gradient": lambda m: [m.ones(1, requires_grad=True), 1],
    "two elements": lambda m: [m.ones(2), m.ones(2)],
    "one of two elements": lambda m: [m.ones(2), 1],
    "empty tensor": lambda m: [m.ones(0)],
    "IntEnum": lambda m: Number.THREE,
    "IntEnums": lambda m: [Number.THREE, Number.FOUR],
    "IntEnum, float": lambda m: [Number.THREE, 2.5],
    "IntFlag": lambda m: Flag.X | Flag.Y,
    "IntFlags": lambda m: [Flag.X],
    "Enum": lambda m: Colour.RED,
    "Enums": lambda m: [Colour.RED],
    "index": lambda m: Index(),
    "indices": lambda m: [Index()],
    "float object": lambda m: [Float(), 1],
    "Decimal": lambda m: decimal.Decimal("1.5"),
    "Decimals": lambda m: [decimal.Decimal("1.5")],
    "Fraction": lambda m: [fractions.Fraction(1, 2)],
    "None": lambda m: None,
    "Nones": lambda m: [None],
    "str": lambda m: "abc",
    "strs": lambda m: ["abc"],
    "number and str": lambda m: [1, "a"],
    "bytes": lambda m: b"abc",
    "array": lambda m: array.array("f", [1, 2]),
    "arrays": lambda m: [array.array("d", [1, 2])],
    "range": lambda m: range(4),
    "deque": lambda m: collections.deque([1, 2]),
    "set": lambda m: {1, 2},
    "generator": lambda m: (i for i in range(3)),
    "dict": lambda m: {0: 1},
    "set inside": lambda m: [[1, 2], {3, 4}],
    "items": lambda m: [Items(1, 2.5), Items(3, 4)],
    "no len": lambda m: OnlyGetitem(),
    "array inside": lambda m: [[1, 2], np.array([3, 4])],
    "too short": lambda m: [[1, 2], [3]],
    "too long": lambda m: [[1], [2, 3]],
    "empty and not": lambda m: [[], [1]],
    "number for a row": lambda m: [[1, 2], 3],
    "row for a number": lambda m: [1, [2, 3]],
    "empty": lambda m: [[], []],
    "bool, int": lambda m: [True, 2],
    "bool, float": lambda m: [True, 2.5],
    "complex": lambda m: [1, 2j, True],
    "beyond int64": lambda m: 2**63,
    "beyond int64 in a list": lambda m: [-(2**63) - 1],
    "beyond int64, float": lambda m: [2**70, 1.5],
    "float64 scalar": lambda m: np.float64(1.5),
    "float64 scalars": lambda m: [np.float64(1.5)],
    "float32 scalar, int": lambda m: [np.float32(1.5), 2],
    "float16 scalar, float": lambda m: [np.float16(1.5), 2.5],
    "int8 scalar, int": lambda m: [np.int8(3), 300],
    "uint8 scalar, int": lambda m: [np.uint8(3), 5],
    "bool scalars": lambda m: [np.bool_(True), np.bool_(False)],
    "arrays of two dtypes": lambda m: [np.ones((2, 2)), np.ones((2, 2), dtype="i4")],
    "object array": lambda m: np.array([1, 2], dtype=object),
    "dates": lambda m: [np.datetime64("2020-01-01")],
}


def outcome(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            t = call()
        except Exception as error:
            return type(error).__name__
    return str(t.dtype).rpartition(".")[2], tuple(t.shape), t.tolist(), t.requires_grad


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("function", ["tensor", "as_tensor", "asarray"])
def test_shape_dtype_and_values(function, name):
    assert outcome(lambda: getattr(trt, function)(DATA[name](trt))) == outcome(lambda: getattr(torch, function)(DATA[name](torch)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "bool", "int16"])
@pytest.mark.parametrize("name", [
    "one element", "number, tensor", "rotation", "two elements", "IntEnums", "IntFlag", "Enums", "float object", "Fraction", "None", "strs", "set", "set inside",
    "too short", "too long", "empty and not", "row for a number", "beyond int64", "int8 scalar, int", "items",
])  # fmt: skip
def test_with_a_dtype(name, dtype):
    if dtype in ("int16", "bool") and name in ("one element", "number, tensor", "rotation"):
        pytest.skip("PyTorch refuses tensors of floats in integer ones")
    ours = outcome(lambda: trt.tensor(DATA[name](trt), dtype=getattr(trt, dtype)))
    assert ours == outcome(lambda: torch.tensor(DATA[name](torch), dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("name", ["one element", "tensor, number", "two elements", "IntEnums", "too short", "deque", "None", "float object"])
@pytest.mark.parametrize("constructor", ["Tensor", "FloatTensor", "LongTensor"])
def test_constructors(constructor, name):
    if constructor == "LongTensor" and name in ("one element", "tensor, number"):
        pytest.skip("PyTorch refuses tensors of floats in integer ones")
    assert outcome(lambda: getattr(trt, constructor)(DATA[name](trt))) == outcome(lambda: getattr(torch, constructor)(DATA[name](torch)))


def test_losses_of_one_element_make_a_vector():
    losses = [trt.ones(1, requires_grad=True) * k for k in range(3)]
    assert trt.tensor(losses).shape == (3,)
    assert (trt.tensor(losses) - trt.zeros(3)).shape == (3,)


def test_asarray_keeps_what_a_tensor_requires():
    x = trt.ones(2, requires_grad=True)
    assert trt.asarray(x) is x and not trt.asarray(x, requires_grad=False).requires_grad and x.requires_grad
    assert trt.asarray(x * 2).grad_fn is not None and trt.asarray(x, copy=True).grad_fn is not None
    assert trt.asarray([1.0], requires_grad=True).is_leaf


def test_a_sequence_that_changes_meanwhile_is_refused():
    class Growing:
        def __init__(self):
            self.asked = 0

        def __len__(self):
            return 2

        def __getitem__(self, i):
            return 0.0

        def __iter__(self):
            self.asked += 1
            return iter([1.0] * (2 if self.asked < 3 else 50))

    with pytest.raises(ValueError, match="expected sequence of length 2 at dim 0"):
        trt.tensor(Growing())
    nested = []
    nested.append(nested)
    with pytest.raises(ValueError, match="too many dimensions"):
        trt.tensor(nested)


# ---- pandas

SERIES = {
    "float64": lambda pd: pd.Series([1.0, 2.0, 3.0]),
    "float32": lambda pd: pd.Series([1, 2, 3], dtype="float32"),
    "int32": lambda pd: pd.Series([1, 2, 3], dtype="int32"),
    "bool": lambda pd: pd.Series([True, False]),
    "list of series": lambda pd: [pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])],
    "nullable integers": lambda pd: pd.Series([1, 2], dtype="Int64"),
    "missing value": lambda pd: pd.Series([1, None], dtype="Int64"),
    "nullable floats": lambda pd: pd.Series([1, 2], dtype="Float64"),
    "objects": lambda pd: pd.Series([1, 2.5], dtype=object),
    "texts": lambda pd: pd.Series(["a", "b"]),
    "categories": lambda pd: pd.Series([1, 2], dtype="category"),
    "times": lambda pd: pd.Series(pd.to_datetime(["2020-01-01"])),
    "index": lambda pd: pd.Index([1, 2, 3]),
    "array": lambda pd: pd.array([1, 2]),
}


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("function", ["tensor", "as_tensor", "asarray"])
def test_pandas(function, name):
    pandas = pytest.importorskip("pandas", reason="the test reads pandas objects")
    data = SERIES[name](pandas)
    assert outcome(lambda: getattr(trt, function)(data)) == outcome(lambda: getattr(torch, function)(data))


def test_pandas_by_position():
    """Where PyTorch asks a Series for the label 0 and fails, its elements are taken in order; a DataFrame, which it refuses, is its values."""
    pandas = pytest.importorskip("pandas", reason="the test reads pandas objects")
    whole = pandas.Series([1.0, 2.0, 3.0])
    assert trt.tensor(whole[1:]).tolist() == [2.0, 3.0] and trt.tensor(whole[1:]).dtype == trt.float64
    assert trt.tensor(pandas.Series([1, 2], index=["a", "b"])).tolist() == [1, 2]
    x = trt.arange(10)
    assert x[pandas.Series([1, 2])].tolist() == [1, 2] and x[pandas.Series([True, False] * 5)].tolist() == [0, 2, 4, 6, 8]
    assert x.reshape(2, 5)[:, pandas.Series([4, 0])].tolist() == [[4, 0], [9, 5]]
    x[pandas.Series([0, 1], index=["a", "b"])] = 7
    assert trt.tensor(pandas.DataFrame({"a": [1, 2], "b": [3, 4]})).tolist() == [[1, 3], [2, 4]]
    assert x[:3].tolist() == [7, 7, 2] and x[collections.deque([3, 4])].tolist() == [3, 4]
    with pytest.raises(ValueError, match="could not determine the shape of object type 'DataFrame'"):
        trt.tensor([pandas.DataFrame({0: [1], 1: [2]})])


@pytest.mark.parametrize("copy", [True, False, None])
def test_asarray_copies_as_asked(copy):
    array, tensor = np.zeros(3, np.float32), trt.zeros(3)
    for source, address in ((array, array.ctypes.data), (tensor, tensor.data_ptr()), (bytearray(12), None)):
        made = trt.asarray(source, copy=copy)
        assert address is None or (made.data_ptr() == address) == (not copy)
        made.fill_(1)
        assert trt.asarray(source).tolist() == ([0.0] * 3 if copy else [1.0] * 3)


def test_asarray_without_a_copy_refuses_to_convert():
    for source in (trt.zeros(3), np.zeros(3, np.float32)):
        with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
            trt.asarray(source, dtype=trt.float64, copy=False)
        with pytest.raises(ValueError, match="can't alias tensor from device 'cpu' to 'meta'"):
            trt.asarray(source, device="meta", copy=False)
    with pytest.raises(ValueError, match="arbitrary sequence"):
        trt.asarray([1.0], copy=False)


def test_infinite_and_undefined_parts_of_complex_numbers_stay():
    numbers = [complex(a, b) for a in (1.0, float("inf"), float("nan")) for b in (float("-inf"), float("nan"), 2.0)]
    expected = [[z.real, z.imag] for z in numbers]
    for made in (trt.tensor(numbers), trt.stack([trt.full((), z) for z in numbers])):
        np.testing.assert_array_equal(trt.view_as_real(made).numpy(), np.array(expected, np.float32))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("number", [-1, -0.5, -1.0, -129, 1.5, 127.5, 128.0, 255.5, 300, 300.5, 1e10, 1e19, -(2.0**63), 2**16, 2**32, 2**63, 2**64, -(2**63) - 1, float("nan"), float("inf"), 1 + 1j])
def test_numbers_outside_of_an_integer_type_are_refused(dtype, number):
    """Negative integers wrap in unsigned types, but for uint64; floats are cut where they fit, and uint64 takes none."""
    for data in (number, [1, number]):
        try:
            wanted = torch.tensor(data, dtype=getattr(torch, dtype)).tolist()
        except Exception as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                trt.tensor(data, dtype=getattr(trt, dtype))
        else:
            assert trt.tensor(data, dtype=getattr(trt, dtype)).tolist() == wanted


def test_uint64_takes_integers_of_other_kinds():
    assert trt.tensor([np.uint64(2**64 - 1), np.int64(3), trt.tensor(4), True], dtype=trt.uint64).tolist() == [2**64 - 1, 3, 4, 1]


@pytest.mark.parametrize("dtype", ["complex32", "complex64", "complex128"])
@pytest.mark.parametrize("value", [2 + 0j, 1.5 - 0.0j, complex(float("nan"), 0), 1 + 1j, complex(1, float("nan")), 1e4j])
@pytest.mark.parametrize("number", [float, int])
def test_complex_tensors_as_real_numbers(dtype, value, number):
    theirs, mine = torch.tensor(value, dtype=getattr(torch, dtype)), trt.tensor(value, dtype=getattr(trt, dtype))
    try:
        wanted = number(theirs)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=re.escape(str(error))):
            number(mine)
    else:
        assert number(mine) == wanted or wanted != wanted
