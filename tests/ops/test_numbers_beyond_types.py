"""Numbers as arguments beside tensors of every dtype: what a type can't hold is refused, and what it can is taken, as in PyTorch. One sweep over all rows with numbers."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite._declared import declarations as declarations

torch = pytest.importorskip("torch")

Call = Callable[[Any, Any, Any], Any]
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex32",
)  # fmt: skip
NUMBERS = {
    "300": 300, "-1": -1, "True": True, "0.5": 0.5, "70000.0": 70000.0, "1e39": 1e39, "-1e39": -1e39, "inf": math.inf, "nan": math.nan,
    "2**63": 2**63, "2**64": 2**64, "-2**63": -(2**63), "10**400": 10**400, "1+2j": 1 + 2j, "1+0j": 1 + 0j,
}  # fmt: skip


def square(m: Any, x: Any) -> Any:
    return m.stack([x, x])


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


# "row.parameter": a call of (module, vector of two elements, number); further forms of the row behind a space
CALLS: dict[str, Call] = {
    "add.alpha": lambda m, x, v: m.add(x, x, alpha=v),
    "add.alpha in place": lambda m, x, v: x.add_(m.ones_like(x), alpha=v),
    "add.other": lambda m, x, v: x + v,
    "add.other in place": lambda m, x, v: x.add_(v),
    "sub.alpha": lambda m, x, v: m.sub(x, x, alpha=v),
    "sub.other": lambda m, x, v: x - v,
    "sub.other in place": lambda m, x, v: x.sub_(v),
    "rsub.alpha": lambda m, x, v: m.rsub(x, x, alpha=v),
    "rsub.other": lambda m, x, v: v - x,
    "mul.other": lambda m, x, v: x * v,
    "mul.other in place": lambda m, x, v: x.mul_(v),
    "div.other": lambda m, x, v: x / v,
    "div.other in place": lambda m, x, v: x.div_(v),
    "div.other floor": lambda m, x, v: m.div(x, v, rounding_mode="floor"),
    "true_divide.other": lambda m, x, v: m.true_divide(x, v),
    "true_divide_.other": lambda m, x, v: x.true_divide_(v),
    "floor_divide.other": lambda m, x, v: x // v,
    "fmod.other": lambda m, x, v: m.fmod(x, v),
    "remainder.other": lambda m, x, v: x % v,
    "remainder.self": lambda m, x, v: v % x,
    "pow.exponent": lambda m, x, v: x**v,
    "pow.exponent in place": lambda m, x, v: x.pow_(v),
    "pow.self": lambda m, x, v: v**x,
    "float_power.exponent": lambda m, x, v: m.float_power(x, v),
    "float_power.self": lambda m, x, v: m.float_power(v, x),
    "float_power_.exponent": lambda m, x, v: x.float_power_(v),
    **{f"{op}.other": lambda m, x, v, op=op: getattr(m, op)(x, v) for op in ("eq", "ne", "lt", "le", "gt", "ge", "copysign", "xlogy")},
    "eq.other in place": lambda m, x, v: x.eq_(v),
    "xlogy.self": lambda m, x, v: m.xlogy(v, x),
    **{f"bitwise_{op}.other": lambda m, x, v, op=op: getattr(m, f"bitwise_{op}")(x, v) for op in ("and", "or", "xor", "left_shift", "right_shift")},
    **{f"bitwise_{op}.self": lambda m, x, v, op=op: getattr(m, f"bitwise_{op}")(v, x) for op in ("and", "or", "xor", "left_shift", "right_shift")},
    "clamp.min": lambda m, x, v: m.clamp(x, v, v),
    "clamp.max": lambda m, x, v: m.clamp(x, max=v),
    "clamp.min alone": lambda m, x, v: m.clamp(x, min=v),
    "clamp.min in place": lambda m, x, v: x.clamp_(v),
    "clamp_min.min": lambda m, x, v: m.clamp_min(x, v),
    "clamp_max.max": lambda m, x, v: m.clamp_max(x, v),
    "clamp.min clip": lambda m, x, v: m.clip(x, v),
    "addcmul.value": lambda m, x, v: m.addcmul(x, x, x, value=v),
    "addcmul.value in place": lambda m, x, v: x.addcmul_(m.ones_like(x), m.ones_like(x), value=v),
    "addcdiv.value": lambda m, x, v: m.addcdiv(x, x, x, value=v),
    "lerp.weight": lambda m, x, v: m.lerp(x, x, v),
    "lerp.weight in place": lambda m, x, v: x.lerp_(m.ones_like(x), v),
    "threshold.threshold": lambda m, x, v: m.threshold(x, v, 0),
    "threshold.value": lambda m, x, v: m.threshold(x, 0, v),
    "nn.functional.threshold.threshold": lambda m, x, v: m.nn.functional.threshold(x, v, 0),
    "nn.functional.threshold.value": lambda m, x, v: m.nn.functional.threshold(x, 1, v, inplace=True),
    "hardtanh.max_val": lambda m, x, v: m.nn.functional.hardtanh(x, 0, v),
    "hardtanh.min_val": lambda m, x, v: m.nn.functional.hardtanh(x, v, v),
    "leaky_relu.negative_slope": lambda m, x, v: m.nn.functional.leaky_relu(x, v),
    "elu.alpha": lambda m, x, v: m.nn.functional.elu(x, v),
    "celu.alpha": lambda m, x, v: m.celu(x, v),
    "softplus.beta": lambda m, x, v: m.nn.functional.softplus(x, v),
    "softplus.threshold": lambda m, x, v: m.nn.functional.softplus(x, 1, v),
    "softshrink.lambd": lambda m, x, v: m.nn.functional.softshrink(x, v),
    "hardshrink.lambd": lambda m, x, v: m.hardshrink(x, v),
    "rrelu.lower": lambda m, x, v: m.rrelu(x, v, v),
    "rrelu.upper": lambda m, x, v: m.rrelu(x, 0, v, True).shape,
    "where.self": lambda m, x, v: m.where(x != 0, v, x),
    "where.other": lambda m, x, v: m.where(x != 0, x, v),
    "constant_pad_nd.value": lambda m, x, v: m.constant_pad_nd(x, (1, 0), v),
    "constant_pad_nd.value by pad": lambda m, x, v: m.nn.functional.pad(x, (1, 1), value=v),
    "masked_fill.value": lambda m, x, v: m.masked_fill(x, x != 0, v),
    "masked_fill.value in place": lambda m, x, v: x.masked_fill_(m.tensor([True, True]), v),
    "masked_fill.value as a tensor": lambda m, x, v: m.masked_fill(x, x != 0, m.tensor(v)),
    "index_fill.value": lambda m, x, v: m.index_fill(x, 0, m.tensor([0]), v),
    "index_fill.value as a tensor": lambda m, x, v: m.index_fill(x, 0, m.tensor([0]), m.tensor(v)),
    "fill.value": lambda m, x, v: m.fill(x, v),
    "fill.value in place": lambda m, x, v: x.fill_(v),
    "fill.value as a tensor": lambda m, x, v: x.fill_(m.tensor(v)),
    "fill.value of one element": lambda m, x, v: x[:1].fill_(v),
    "fill.value of no dimensions": lambda m, x, v: x[0].fill_(v),
    "fill.value of no elements": lambda m, x, v: x[:0].fill_(v),
    "fill.value by constant_": lambda m, x, v: m.nn.init.constant_(x, v),
    "fill.value by x[0]": lambda m, x, v: assigned(x, 0, v),
    "fill.value by x[:]": lambda m, x, v: assigned(x, slice(None), v),
    "fill.value by x[mask]": lambda m, x, v: assigned(x, m.tensor([True, False]), v),
    "fill.value by x[index]": lambda m, x, v: assigned(x, m.tensor([1]), v),
    "fill_diagonal_.fill_value": lambda m, x, v: square(m, x).fill_diagonal_(v),
    "full.fill_value": lambda m, x, v: m.full((2,), v, dtype=x.dtype),
    "full.fill_value of one element": lambda m, x, v: m.full((1, 1), v, dtype=x.dtype),
    "full.fill_value of no dimensions": lambda m, x, v: m.full((), v, dtype=x.dtype),
    "full.fill_value of no elements": lambda m, x, v: m.full((0,), v, dtype=x.dtype),
    "full.fill_value without dtype": lambda m, x, v: m.full((2,), v),
    "full_like.fill_value": lambda m, x, v: m.full_like(x, v),
    "new_full.fill_value": lambda m, x, v: x.new_full((2,), v),
    "new_full.fill_value of one element": lambda m, x, v: x.new_full((1,), v),
    "scalar_tensor.s": lambda m, x, v: m.scalar_tensor(v, dtype=x.dtype),
    "scatter.value": lambda m, x, v: m.scatter(x, 0, m.tensor([0]), v),
    "scatter.value in place": lambda m, x, v: x.scatter_(0, m.tensor([0]), v),
    "index_add.alpha": lambda m, x, v: m.index_add(x, 0, m.tensor([0]), x[:1], alpha=v),
    "addmm.alpha": lambda m, x, v: m.addmm(x, square(m, x), square(m, x), alpha=v),
    "addmm.beta": lambda m, x, v: m.addmm(x, square(m, x), square(m, x), beta=v),
    "addmv.alpha": lambda m, x, v: m.addmv(x, square(m, x), x, alpha=v),
    "addmv.beta": lambda m, x, v: m.addmv(x, square(m, x), x, beta=v),
    "addr.alpha": lambda m, x, v: m.addr(square(m, x), x, x, alpha=v),
    "addr.beta": lambda m, x, v: m.addr(square(m, x), x, x, beta=v),
    "addr_.alpha": lambda m, x, v: square(m, x).addr_(x, x, alpha=v),
    "addr_.beta": lambda m, x, v: square(m, x).addr_(x, x, beta=v),
    "addbmm.alpha": lambda m, x, v: m.addbmm(square(m, x), square(m, x)[None], square(m, x)[None], alpha=v),
    "addbmm.beta": lambda m, x, v: m.addbmm(square(m, x), square(m, x)[None], square(m, x)[None], beta=v),
    "addbmm_.alpha": lambda m, x, v: square(m, x).addbmm_(square(m, x)[None], square(m, x)[None], alpha=v),
    "addbmm_.beta": lambda m, x, v: square(m, x).addbmm_(square(m, x)[None], square(m, x)[None], beta=v),
    "baddbmm.alpha": lambda m, x, v: m.baddbmm(square(m, x)[None], square(m, x)[None], square(m, x)[None], alpha=v),
    "baddbmm.beta": lambda m, x, v: m.baddbmm(square(m, x)[None], square(m, x)[None], square(m, x)[None], beta=v),
    "renorm.maxnorm": lambda m, x, v: m.renorm(square(m, x), 2, 0, v),
    "renorm.p": lambda m, x, v: m.renorm(square(m, x), v, 0, 1),
    "renorm_.maxnorm": lambda m, x, v: square(m, x).renorm_(2, 0, v),
    "renorm_.p": lambda m, x, v: square(m, x).renorm_(v, 0, 1),
    "dist.p": lambda m, x, v: m.dist(x, x, v),
    "norm.p": lambda m, x, v: m.norm(x, v),
    "linalg_norm.ord": lambda m, x, v: m.linalg.norm(x, v),
    "linalg_vector_norm.ord": lambda m, x, v: m.linalg.vector_norm(x, v),
    "linalg_matrix_norm.ord": lambda m, x, v: m.linalg.matrix_norm(square(m, x), v),
    "linalg_cond.p": lambda m, x, v: m.linalg.cond(m.stack([x, 1 - x]), v),
    "histc.min": lambda m, x, v: m.histc(x, 2, v, 2),
    "histc.max": lambda m, x, v: m.histc(x, 2, 0, v),
    "trapezoid.dx": lambda m, x, v: m.trapezoid(x, dx=v),
    "cumulative_trapezoid.dx": lambda m, x, v: m.cumulative_trapezoid(x, dx=v),
    "std.correction": lambda m, x, v: m.std(x, 0, correction=v),
    "std_mean.correction": lambda m, x, v: m.std_mean(x, 0, correction=v)[0],
    "var.correction": lambda m, x, v: m.var(x, 0, correction=v),
    "var_mean.correction": lambda m, x, v: m.var_mean(x, 0, correction=v)[0],
    "segment_reduce.initial": lambda m, x, v: m.segment_reduce(x, "sum", lengths=m.tensor([2]), initial=v),
    "polygamma.n": lambda m, x, v: m.polygamma(v, x),
    "nn.functional.multi_margin_loss.margin": lambda m, x, v: m.nn.functional.multi_margin_loss(x, m.tensor(0), margin=v),
    "nn.functional.multi_margin_loss.p": lambda m, x, v: m.nn.functional.multi_margin_loss(x, m.tensor(0), p=v),
    "arange.start": lambda m, x, v: m.arange(v, v, dtype=x.dtype),
    "arange.end": lambda m, x, v: m.arange(v, v),
    "arange.step": lambda m, x, v: m.arange(0, 2, v, dtype=x.dtype),
    "linspace.start": lambda m, x, v: m.linspace(v, 0, 2, dtype=x.dtype),
    "linspace.end": lambda m, x, v: m.linspace(0, v, 2, dtype=x.dtype),
    "logspace.start": lambda m, x, v: m.logspace(v, 0, 2, dtype=x.dtype),
    "logspace.end": lambda m, x, v: m.logspace(0, v, 2, dtype=x.dtype),
    "isin.test_element": lambda m, x, v: m.isin(x, v),
    "isin.element": lambda m, x, v: m.isin(v, x),
    "bucketize.self": lambda m, x, v: m.bucketize(v, m.sort(x)[0]),
    "searchsorted.self": lambda m, x, v: m.searchsorted(m.sort(x)[0], v),
    "special_zeta.other": lambda m, x, v: m.special.zeta(x, v),
    "special_zeta.self": lambda m, x, v: m.special.zeta(v, x),
    "special_xlog1py.other": lambda m, x, v: m.special.xlog1py(x, v),
    "special_xlog1py.self": lambda m, x, v: m.special.xlog1py(v, x),
    "gradient.spacing": lambda m, x, v: m.gradient(x, spacing=v)[0],
    "result_type.other": lambda m, x, v: str(m.result_type(x, v)),
    "nan": lambda m, x, v: m.nan_to_num(x, v),
    "nan infinities": lambda m, x, v: m.nan_to_num(x, 0, v, v),
    "logit": lambda m, x, v: m.logit(x, v),
}
# rows whose numbers reach no element by themselves, or that another call here runs
ELSEWHERE = {
    "nn.functional.celu": "celu", "nn.functional.elu": "elu", "nn.functional.hardtanh": "hardtanh", "nn.functional.leaky_relu": "leaky_relu", "nn.functional.rrelu": "rrelu",
    "rrelu_": "rrelu", "rrelu_with_noise": "rrelu: its bounds are drawn from", "range": "arange", "saddmm": "addmm, sparse", "sspaddmm": "addmm, sparse",
}  # fmt: skip
PARAMETERS_ELSEWHERE = {"elu.scale": "elu.alpha", "elu.input_scale": "elu.alpha", "result_type.scalar": "other", "result_type.scalar1": "other", "result_type.scalar2": "other"}


def outcome(m: Any, call: Call, dtype: str, number: Any) -> tuple[Any, ...]:
    x = m.tensor([1, 0]).to(getattr(m, dtype))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(m, x, number)
    except Exception as error:  # what is refused, and by which type, is what is compared
        return "refused", type(error).__name__, str(error).partition("\n")[0]
    if not isinstance(result, m.Tensor):
        return "value", "", str(result)
    wide = m.complex128 if result.is_complex() else m.float64 if result.is_floating_point() else m.int64
    return "value", str(result.dtype), result.to(wide).tolist() if result.dtype != m.uint64 else result.tolist()


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, complex) and isinstance(b, complex):
        return close(a.real, b.real) and close(a.imag, b.imag)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or a != a and b != b or math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=1e-2)
    return bool(a == b)


def rows_with_numbers() -> set[str]:
    found = set()
    for name in declarations.names():
        row = declarations.of(name)
        if name.startswith(("_", "trtl_")) or name in ELSEWHERE or "polynomial" in name:
            continue
        schemas = [row.schema, *(schema for schema in row.overloads if schema.partition("(")[0].partition(".")[0] == name)]
        found |= {f"{name}.{p}" for schema in schemas for p in re.findall(r"(?<!\|)\bScalar\??(?!Type) (\w+)", schema)}
    return found - set(PARAMETERS_ELSEWHERE)


def test_the_sweep_has_every_row_with_a_number() -> None:
    assert rows_with_numbers() - {name.partition(" ")[0] for name in CALLS} == set()


def differing(name: str) -> dict[str, list[str]]:
    """{number: dtypes} for which the call is refused on one side alone or gives another value. What PyTorch has no kernel for does not count."""
    found: dict[str, list[str]] = {}
    for dtype in DTYPES:
        for label, number in NUMBERS.items():
            theirs = outcome(torch, CALLS[name], dtype, number)
            if theirs[0] == "refused" and ("not implemented for" in theirs[2] or "INTERNAL ASSERT" in theirs[2]):
                continue
            ours = outcome(trt, CALLS[name], dtype, number)
            if ours[0] != theirs[0] or ours[0] == "value" and not (ours[1] == theirs[1] and close(ours[2], theirs[2])):
                found.setdefault(label, []).append(dtype)
    return found


STORED = {"uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex32"}
COMPLEX = {"complex64", "complex128", "complex32"}
BEYOND = {"2**63", "-2**63", "2**64"}
# What differs on purpose: the reason, rows (a pattern), numbers and dtypes (None: all)
EXCEPTIONS: list[tuple[str, str, set[str] | None, set[str] | None]] = [
    ("complex32 is computed in complex64 and rounded once", ".*", None, {"complex32"}),
    ("types without loops: more of them take the number, or compare it unwrapped", "eq|ne|pow.exponent|clamp|hardtanh|constant_pad_nd|isin", None, STORED),
    ("PyTorch negates alpha, and -2**63 has no negative", "r?sub.alpha", {"2**63", "-2**63"}, None),
    ("PyTorch takes 1+0j for a real number, here most operators refuse complex ones", ".*", {"1+0j"}, None),
    ("a number to a complex power is rounded less", "pow.self|float_power.self", None, COMPLEX),
    ("parameters that are doubles here hold integers from 2**64 on", "renorm|rrelu|dist|norm|linalg_|histc|.*trapezoid|std|var|gradient", BEYOND, None),
    ("orders of norms are doubles", "dist|norm|linalg_.*norm", {"1e39", "-1e39"}, None),
    ("the order of factors decides whether an infinite one meets a zero", "add(b|)mm_?.alpha", {"inf"}, None),
    ("2.0**63 is beyond int64", "constant_pad_nd", {"2**63"}, {"int64"}),
    ("PyTorch reads NaN as no margin, and of zeta as infinity", ".*multi_margin_loss.margin|special_zeta", {"nan"}, None),
    ("infinite powers of complex numbers are NaN in their imaginary parts", "logspace", None, COMPLEX),
    ("isin takes bool and complex numbers", "isin", None, None),
    ("gradient takes uint8", "gradient", None, {"uint8"}),
    ("bool masks and indices: a complex number is true", "scatter.value", {"1+2j"}, {"bool"}),
]


def unexplained(name: str) -> dict[str, list[str]]:
    left = {}
    for number, dtypes in differing(name).items():
        for _, rows, numbers, types in EXCEPTIONS:
            if re.match(rows, name) and (numbers is None or number in numbers):
                dtypes = [d for d in dtypes if types is not None and d not in types]
        if dtypes:
            left[number] = dtypes
    return left


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_refused_and_taken_as_by_pytorch(name: str) -> None:
    assert unexplained(name) == {}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.where(m.tensor([True]), 300, m.ones(1, dtype=m.uint8)), "uint8_t"),
        (lambda m: m.where(m.tensor([True]), 1e39, m.ones(1)), "float"),
        (lambda m: m.nn.functional.pad(m.ones(1, dtype=m.uint8), (1, 1), value=-1), "uint8_t"),
        (lambda m: m.clamp(m.ones(1, dtype=m.int8), 300, 400), "int8_t"),
        (lambda m: m.clamp_min(m.ones(1, dtype=m.int8), 300), "int8_t"),
        (lambda m: m.add(m.ones(2), 1, alpha=1e39), "float"),
        (lambda m: m.lerp(m.ones(1), m.ones(1), 1e39), "float"),
        (lambda m: m.nn.functional.hardtanh(m.ones(1).half(), 0, 70000), "c10::Half"),
    ],
)
def test_the_error_names_the_type(call: Callable[[Any], Any], text: str) -> None:
    for m in (trt, torch):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {text} without overflow"):
            call(m)


def test_what_is_refused_writes_nothing() -> None:
    x = trt.tensor([1, 2], dtype=trt.uint8)
    for call in (lambda: x.clamp_(300), lambda: x.add_(1, alpha=300), lambda: x.fill_(300), lambda: x.index_add_(0, trt.tensor([0]), x[1:], alpha=300)):
        with pytest.raises(RuntimeError):
            call()
    assert x.tolist() == [1, 2]


def test_integers_of_uint64_are_numbers_beside_tensors() -> None:
    for m in (trt, torch):
        assert (m.ones(2, dtype=m.float64) * 2**63).tolist() == [2.0**63] * 2
        assert (m.tensor([1.5]) + (2**64 - 1)).tolist() == [2.0**64]
        assert (m.ones(1, dtype=m.int64) * 2**63).tolist() == [-(2**63)]
        with pytest.raises(OverflowError):
            m.ones(1) + 2**64
