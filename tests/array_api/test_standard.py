"""The array API standard, function by function: tests made from the table standard_2024_12.yaml, with values from NumPy.

Presence, signatures, dtypes of results over all allowed dtypes and pairs of them (also with arrays of no dimensions and Python numbers), values,
special cases. EXCEPTIONS lists what deviates.
"""

from __future__ import annotations

import inspect
import itertools
import math
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", minversion="2.1")
yaml = pytest.importorskip("yaml")

import tensorrt_lite as trt

xp = trt.ones(1).__array_namespace__()
TABLE = yaml.safe_load((Path(__file__).parent / "standard_2024_12.yaml").read_text())

# In what the namespace and its arrays deviate from the standard (docs/interop.md); each has its test in test_array_object.py.
EXCEPTIONS = {
    "operators promote as PyTorch's: an array of no dimensions by kind, @ not at all, uint16, uint32 and uint64 have few operators",
    "slices with negative steps are refused",
    "sqrt of complex numbers with an infinite real part is C99's (0 + inf j of -inf, inf + 0j of inf)",
    "Tensor.size is a method; math.prod(x.shape) or x.numel() is the number of elements",
}

KINDS = {
    "bool": ["bool"],
    "integral": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex": ["complex64", "complex128"],
}
KINDS["integral bool"] = KINDS["bool"] + KINDS["integral"]
KINDS["real"] = KINDS["integral"] + KINDS["real floating"]
KINDS["floating"] = KINDS["real floating"] + KINDS["complex"]
KINDS["numeric"] = KINDS["integral"] + KINDS["floating"]
KINDS["all"] = KINDS["bool"] + KINDS["numeric"]


def promoted(first: str, second: str) -> str | None:
    """The standard's tables of promotion; None where they are empty."""
    same_kind = any(first in KINDS[kind] and second in KINDS[kind] for kind in ("bool", "integral", "floating"))
    if not same_kind or "uint64" in (first, second) and "int" in (first[:3], second[:3]):
        return None
    return np.promote_types(first, second).name


def result_dtype(rule: str | None, dtype: str) -> str:
    if rule == "bool":
        return "bool"
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype) if rule == "real" else dtype


def name_of(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def numbers(dtype: str, role: str = "") -> np.ndarray:
    """Values of a dtype, its limits among them; role: which ones a second operand may have."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        if role == "shift":
            return np.array([0, 1, 3, limits.bits - 1], kind)
        if role == "exponent":
            return np.array([0, 1, 2, 3, 5], kind)
        values = [0, 1, 2, 3, 7, limits.max - 1, limits.max, limits.max // 2 + 1] + ([-1, -2, -7, limits.min + 1] if limits.min else [])
        if role == "nonzero":
            values = [v for v in values if v]
        return np.array(values, kind)
    values = [-3.0, -1.5, -0.5, 0.25, 0.5, 1.0, 1.25, 2.0, 7.0] + ([] if role else [0.0])
    if kind.kind == "c":
        return np.array([complex(a, b) for a in values[::2] for b in values[1::2]], kind)
    return np.array(values, kind)


def ours(a: np.ndarray) -> trt.Tensor:
    return xp.asarray(a.copy())


def assert_same(actual, expected, what: str = "") -> None:
    """Equal dtype, shape and values (to some digits for floating-point ones), or tuples of such."""
    if isinstance(expected, (tuple, list)):
        assert isinstance(actual, tuple) and len(actual) == len(expected), what
        for one, other in zip(actual, expected):
            assert_same(one, other, what)
        return
    expected = np.asarray(expected)
    assert isinstance(actual, trt.Tensor), what
    assert name_of(actual.dtype) == expected.dtype.name, what
    assert tuple(actual.shape) == expected.shape, what
    values = actual.resolve_conj().numpy()
    if expected.dtype.kind in "fc":
        tolerance = 2e-5 if expected.dtype.name in ("float32", "complex64") else 1e-11
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(values, expected, err_msg=what)


# ---- presence and signatures

ELEMENTWISE = {**{name: "(x, /)" for name in TABLE["unary"]}, **{name: "(x1, x2, /)" for name in TABLE["binary"]}}
SIGNATURES = [
    *((xp, name, signature) for name, signature in ELEMENTWISE.items()),
    *((xp, name, row["signature"]) for name, row in TABLE["calls"].items()),
    *((xp.linalg, name, row["signature"]) for name, row in TABLE["linalg"].items()),
    *((xp.fft, name, row["signature"]) for name, row in TABLE["fft"].items()),
]


def parameters(function) -> list:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(("space", "name", "signature"), SIGNATURES, ids=lambda v: v if isinstance(v, str) and v[0] != "(" else "")
def test_signature(space, name, signature):
    scope: dict = {}
    exec(f"def function{signature}: pass", scope)
    assert parameters(getattr(space, name)) == parameters(scope["function"])
    assert name in space.__all__ and inspect.getdoc(getattr(space, name))


def test_the_table_is_complete():
    assert len(TABLE["unary"]) + len(TABLE["binary"]) == 66 and len(TABLE["calls"]) == 68 and len(TABLE["linalg"]) == 23 and len(TABLE["fft"]) == 14
    assert len(EXCEPTIONS) <= 5
    constants = {"e", "inf", "nan", "newaxis", "pi"}
    rest = set(xp.__all__) - {name for space, name, _ in SIGNATURES if space is xp} - constants - set(KINDS["all"])
    assert rest == {"linalg", "fft", "__array_api_version__"}
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
    assert xp.__array_api_version__ == "2024.12"


# ---- elementwise functions: dtypes and values


@pytest.mark.parametrize("name", TABLE["unary"])
def test_unary(name):
    row = TABLE["unary"][name]
    for dtype in KINDS[row["x"]]:
        x = numbers(dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        if row.get("result") != "bool":
            expected = expected.astype(result_dtype(row.get("result"), dtype))
        assert_same(getattr(xp, name)(ours(x)), expected, f"{name} of {dtype}")
        assert_same(getattr(xp, name)(ours(x[1])), expected[1], f"{name} of {dtype} without dimensions")


@pytest.mark.parametrize("name", TABLE["binary"])
def test_binary(name):
    row = TABLE["binary"][name]
    function = getattr(xp, name)
    for first, second in itertools.product(KINDS[row["x"]], repeat=2):
        common = promoted(first, second)
        if common is None:
            continue
        what = f"{name} of {first} and {second}"
        a, b = numbers(first), numbers(second, row.get("x2", ""))
        if row.get("x2") == "shift":
            b = b[b < np.iinfo(common).bits]
            b = b[b < np.iinfo(first).bits]
        if row.get("x2") == "exponent" and common[0] in "iu":
            a, b = a[:5], b
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a.astype(common)[:, None], b.astype(common)[None, :])
        expected = expected.astype(result_dtype(row.get("result"), common))
        made = function(ours(a)[:, None], ours(b)[None, :])
        assert_same(made, expected, what)
        # arrays of no dimensions promote as any others
        assert_same(function(ours(a), ours(b[1])), expected[:, 1], what)
        assert_same(function(ours(a[1]), ours(b)), expected[1], what)
        if first == second:
            assert_same(function(ours(a), b[1].item()), expected[:, 1], what)
            assert_same(function(a[1].item(), ours(b)), expected[1], what)


@pytest.mark.parametrize("name", TABLE["binary"])
def test_binary_refuses(name):
    function, x = getattr(xp, name), xp.ones(2, dtype=xp.bool if TABLE["binary"][name]["x"] == "bool" else xp.int8)
    for operands in ((1, 2), (x, "1"), (None, x), (x, [1])):
        with pytest.raises(TypeError, match=name):
            function(*operands)
    if TABLE["binary"][name]["x"] in ("numeric", "real", "integral"):
        with pytest.raises(TypeError, match=f"{name}.*uint64"):
            function(xp.ones(2, dtype=xp.uint64), x)


@pytest.mark.parametrize("name", [name for name, row in TABLE["binary"].items() if row["x"] in ("numeric", "floating")])
def test_a_real_array_and_a_complex_number(name):
    for dtype, common in (("float32", "complex64"), ("float64", "complex128")):
        assert name_of(getattr(xp, name)(ours(numbers(dtype)), 1j).dtype) == common


# ---- special cases

CLASSES = {
    "finite": [-3.5, -1.0, -0.0, 0.0, 1.0, 3.5],
    "nonzero": [-3.5, -1.0, 1.0, 3.5],
    "positive": [0.5, 1.0, 3.5],
    "negative": [-0.5, -1.0, -3.5],
    "any": [-math.inf, -3.5, -1.0, -0.0, 0.0, 1.0, 3.5, math.inf],
    ">0": [0.5, 1.0, math.inf],
    "<0": [-0.5, -1.0, -math.inf],
    ">1": [1.5, 7.0, math.inf],
    "<1": [0.5, 0.0, -7.0, -math.inf],
    "<-1": [-1.5, -math.inf],
}


def special_values(words: str) -> list[float]:
    values: list[float] = []
    for word in words.split("|"):
        values += CLASSES[word.strip()] if word.strip() in CLASSES else [float(word)]
    return values


def expected_part(text: str, scope: dict) -> float | bool:
    # the integer -0 has no sign
    value = eval("-0.0" if text == "-0" else text, scope)
    return value if isinstance(value, bool) else float(value)


def special_cases(text: str):
    """(operands, expected parts) of each line for each choice of values."""
    for line in text.strip().splitlines():
        if line[0] == "#":
            continue
        operands, _, result = line.partition("->")
        for values in itertools.product(*map(special_values, operands.split(","))):
            scope = dict(zip("ab", values), pi=math.pi, inf=math.inf, nan=math.nan, cos=math.cos, sin=math.sin, log=math.log)
            scope |= dict(zip(("x1", "x2"), values))
            parts = [(part.strip()[0] == "±", expected_part(part.strip().lstrip("±"), scope)) for part in result.split(",")]
            yield line, values, parts


def assert_part(actual: float, expected, either_sign: bool, what: str) -> None:
    if isinstance(expected, bool):
        assert bool(actual) is expected, what
    elif math.isnan(expected):
        assert math.isnan(actual), what
    else:
        assert math.isclose(abs(actual), abs(expected), rel_tol=1e-6, abs_tol=1e-30), what
        assert either_sign or math.copysign(1, actual) == math.copysign(1, expected), what


SPECIAL = [(kind, name) for kind in ("unary", "binary") for name, row in TABLE[kind].items() if "special" in row]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "name"), SPECIAL, ids=lambda v: v)
def test_special_cases(kind, name, dtype):
    cases = list(special_cases(TABLE[kind][name]["special"]))
    columns = [xp.asarray([values[i] for _, values, _ in cases], dtype=getattr(xp, dtype)) for i in range(len(cases[0][1]))]
    made = getattr(xp, name)(*columns).tolist()
    for (line, values, parts), actual in zip(cases, made):
        assert_part(actual, parts[0][1], parts[0][0], f"{name}{values} is {actual}, but {line}")


def array_of(parts: list[tuple[float, float]], dtype: str) -> trt.Tensor:
    return trt.view_as_complex(trt.tensor(parts, dtype=trt.float64)).to(getattr(xp, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [name for name, row in TABLE["unary"].items() if "complex" in row])
def test_special_cases_of_complex_numbers(name, dtype):
    cases = list(special_cases(TABLE["unary"][name]["complex"]))
    made = getattr(xp, name)(array_of([(a, b) for _, (a, b), _ in cases], dtype)).tolist()
    # f(conj(x)) is conj(f(x))
    mirrored = getattr(xp, name)(array_of([(a, -b) for _, (a, b), _ in cases], dtype)).tolist()
    for (line, values, parts), actual, mirror in zip(cases, made, mirrored):
        what = f"{name}{values} is {actual}, of the conjugate {mirror}, but {line}"
        if len(parts) == 1:
            assert_part(actual, parts[0][1], parts[0][0], what)
            continue
        for sign, value in ((1, actual), (-1, mirror)):
            assert_part(value.real, parts[0][1], parts[0][0], what)
            assert_part(value.imag, sign * parts[1][1], parts[1][0], what)


ROTATED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*ROTATED, "cos"])
def test_special_cases_by_another_function(name, dtype):
    """sin(x) is -1j * sinh(x * 1j), and so for the others; cos(x) is cosh(x * 1j)."""
    parts = list(itertools.product([*CLASSES["any"], math.nan], repeat=2))
    made = getattr(xp, name)(array_of(parts, dtype)).tolist()
    turned = getattr(xp, ROTATED.get(name, "cosh"))(array_of([(-b, a) for a, b in parts], dtype)).tolist()
    for (a, b), actual, other in zip(parts, made, turned):
        expected = other if name == "cos" else complex(other.imag, -other.real)
        for one, two in ((actual.real, expected.real), (actual.imag, expected.imag)):
            # beside NaN and for zeros the standard leaves some signs open
            assert_part(one, two, one == 0 or math.isnan(actual.real + actual.imag), f"{name}({a}, {b}) is {actual}, not {expected}")


def test_special_cases_of_reductions():
    x = xp.asarray([1.0, 3.0, 6.0])
    for correction in (3, 4.5):
        assert xp.isnan(xp.var(x, correction=correction)).item() and xp.isnan(xp.std(x, correction=correction, axis=0)).item()
    for name in ("mean", "var", "std"):
        assert xp.isnan(getattr(xp, name)(x[:0])).item()
    assert (
        xp.all(xp.asarray([math.nan, math.inf])).item()
        and xp.any(xp.asarray([math.nan])).item()
        and xp.count_nonzero(xp.asarray([math.nan, 0.0])).item() == 1
    )
    assert xp.sum(x[:0]).item() == 0 and xp.prod(x[:0]).item() == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_special_cases_of_sets(dtype):
    x = xp.asarray([math.nan, 0.0, 2.0, -0.0, math.nan], dtype=getattr(xp, dtype))
    values, indices, inverse, counts = xp.unique_all(x)
    assert values.shape == (4,) and sorted(counts.tolist()) == [1, 1, 1, 2] and xp.unique_values(x).shape == (4,)
    found = {str(v): (i, n) for v, i, n in zip(values.tolist(), indices.tolist(), counts.tolist()) if v == v}
    assert list(found.values()) == [(1, 2), (2, 1)] and bool(xp.all((values[inverse] == x) | xp.isnan(x)))


def test_special_cases_of_clip():
    x = xp.asarray([math.nan, 1.0, 1.0])
    made = xp.clip(x, xp.asarray([0.0, math.nan, 0.0]), xp.asarray([2.0, 2.0, math.nan]))
    assert bool(xp.all(xp.isnan(made)))


@pytest.mark.parametrize("name", ["max", "min", "mean", "prod", "std", "sum", "var"])
def test_reductions_hand_nan_on(name):
    x = xp.asarray([[1.0, math.nan], [2.0, 3.0]])
    assert xp.isnan(getattr(xp, name)(x, axis=1)).tolist() == [True, False]
    assert xp.isnan(getattr(xp, name)(x)).item()


# ---- all other functions


def rows(dtype: str) -> dict[str, np.ndarray]:
    """The arrays that the table's expressions are about."""
    if dtype == "bool":
        x = np.array([[True, False, True], [False, False, True]])
        return {"x": x, "m": np.eye(3, dtype=bool), "v": np.stack([np.eye(3, dtype=bool)] * 2), "h": np.eye(3, dtype=bool)}
    x = np.array([[3, 1, 2], [0, 3, 1]]).astype(dtype)
    m = np.array([[4, 1, 0], [1, 3, 2], [0, 1, 5]]).astype(dtype)
    if dtype.startswith("complex"):
        x, m = x + np.array([1j, 0, 2j], dtype), m + 1j * np.triu(m)
    if dtype.startswith(("float", "complex")):
        x = x / 2
    h = m @ m.conj().T + np.eye(3, dtype=dtype)
    return {"x": x.astype(dtype), "m": m.astype(dtype), "v": np.stack([m, m.T]).astype(dtype), "h": h.astype(dtype)}


CALLS = [(section, name) for section in ("calls", "linalg", "fft") for name, row in TABLE[section].items() if "calls" in row]


@pytest.mark.parametrize(("section", "name"), CALLS, ids=lambda v: v)
def test_function(section, name):
    row = TABLE[section][name]
    for dtype in KINDS[row["x"]]:
        arrays = rows(dtype)
        for call in row["calls"]:
            with np.errstate(all="ignore"):  # numpy imports its module fft when it is asked for
                expected = eval(row.get("numpy", {}).get(call, call), {**vars(np), "fft": np.fft, **arrays, "dtype": getattr(np, dtype)})
            actual = eval(call, {**vars(xp), **{key: ours(value) for key, value in arrays.items()}, "dtype": getattr(xp, dtype)})
            assert_same(actual, expected, f"{call} of {dtype}")


SEVERAL = [
    "concat([x, y])",
    "stack([x, y])",
    "where(x == x, x, y)",
    "matmul(x, y.T)",
    "tensordot(x, y)",
    "vecdot(x, y)",
    "linalg.outer(x[0], y[0])",
    "linalg.cross(x, y)",
    "result_type(x, y)",
]


@pytest.mark.parametrize("call", SEVERAL)
def test_promotion_of_other_functions(call):
    for first, second in itertools.product(KINDS["numeric"], repeat=2):
        common = promoted(first, second)
        if common is None:
            continue
        x, y = rows(first)["x"], rows(second)["x"]
        if call.startswith("result_type"):
            assert name_of(xp.result_type(ours(x), ours(y)[0, 0])) == common
            continue
        expected = eval(call, {**vars(np), "x": x.astype(common), "y": y.astype(common)})
        assert_same(eval(call, {**vars(xp), "x": ours(x), "y": ours(y)}), expected, f"{call} of {first}, {second}")
