"""Which types out= takes, where Python numbers stand for tensors, and what in-place forms refuse: PyTorch's rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops
from tensorrt_lite._C.ops.support import deliver_result
from tensorrt_lite.nn import functional as F

X = [[1.5, -2.25, 3.0], [-0.5, 0.75, 2.0]]


def refuses(call: Callable[..., object], out: trt.Tensor, error: type[Exception] = RuntimeError) -> None:
    """The call raises and leaves `out` as it was."""
    before = out.tolist()
    with pytest.raises(error):
        call(out)
    assert out.tolist() == before


@pytest.mark.parametrize("name", "neg abs sign floor ceil trunc sgn round frac nan_to_num conj_physical hardshrink bitwise_not".split())
def test_these_do_not_convert_to_out(name: str) -> None:
    x = trt.tensor([[1, -2], [3, 4]]) if name == "bitwise_not" else trt.tensor(X)
    function = getattr(_ops, name)
    same = function(x, out=trt.zeros(x.shape, dtype=x.dtype))
    assert same.tolist() == function(x).tolist()
    for dtype in (trt.float64, trt.int32, trt.bfloat16):
        refuses(lambda out: function(x, out=out), trt.ones(x.shape, dtype=dtype))


@pytest.mark.parametrize("name", ["gelu", "softplus", "softshrink"])
def test_activations_do_not_convert_to_out(name: str) -> None:
    x = trt.tensor(X)
    out = getattr(_ops, name)(x, out=trt.zeros(x.shape))
    assert out.tolist() == getattr(F, name)(x).tolist()
    refuses(lambda wide: getattr(_ops, name)(x, out=wide), trt.ones(x.shape, dtype=trt.float64))


@pytest.mark.parametrize("name", ["add", "mul", "exp", "sqrt", "eq"])
def test_others_convert_to_a_wider_out(name: str) -> None:
    x = trt.tensor(X).abs()
    arguments = (x, x) if name in ("add", "mul", "eq") else (x,)
    function = getattr(_ops, name)
    out = function(*arguments, out=trt.zeros(x.shape, dtype=trt.float64))
    assert out.tolist() == function(*arguments).to(trt.float64).tolist()


def test_absolute_values_of_complex_numbers_convert_to_out() -> None:
    z = trt.tensor([3 + 4j, -1j])
    assert trt.abs(z, out=trt.zeros(2, dtype=trt.float64)).tolist() == [5.0, 1.0]
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        z.abs_()
    assert z.tolist() == [3 + 4j, -1j]


def test_where_does_not_convert_to_out() -> None:
    x = trt.tensor(X)
    refuses(lambda out: trt.where(x > 0, x, -x, out=out), trt.ones(2, 3, dtype=trt.float64))
    assert trt.where(x > 0, x, -x, out=trt.zeros(2, 3)).tolist() == x.abs().tolist()


REDUCTIONS: list[tuple[str, Callable[..., object], trt.dtype]] = [
    ("argmax", lambda x, out: trt.argmax(x, 1, out=out), trt.int64),
    ("argmin", lambda x, out: trt.argmin(x, out=out), trt.int64),
    ("all", lambda x, out: trt.all(x, 1, out=out), trt.bool),
    ("any", lambda x, out: trt.any(x, out=out), trt.bool),
    ("norm", lambda x, out: trt.norm(x, 2, 1, out=out), trt.float32),
    ("softmax", lambda x, out: trt.softmax(x, 1, out=out), trt.float32),
    ("log_softmax", lambda x, out: trt.log_softmax(x, 1, out=out), trt.float32),
    ("cumsum", lambda x, out: trt.cumsum(x, 0, dtype=trt.float32, out=out), trt.float32),
    ("cumprod", lambda x, out: trt.cumprod(x, 0, dtype=trt.float32, out=out), trt.float32),
    ("tril", lambda x, out: trt.tril(x, out=out), trt.float32),
    ("triu", lambda x, out: trt.triu(x, out=out), trt.float32),
]


@pytest.mark.parametrize(("name", "call", "dtype"), REDUCTIONS, ids=[r[0] for r in REDUCTIONS])
def test_reductions_that_do_not_convert_to_out(name: str, call: Callable[..., object], dtype: trt.dtype) -> None:
    x = trt.tensor(X)
    out = trt.empty(0, dtype=dtype)
    assert call(x, out) is out
    for other in {trt.float64, trt.int32, trt.complex64} - {dtype}:
        refuses(lambda wrong: call(x, wrong), trt.ones(out.shape, dtype=other))


def test_extremes_with_indices_do_not_convert_to_out() -> None:
    x = trt.tensor(X)
    for function in (trt.max, trt.min):
        expected = function(x, 1)
        got = function(x, 1, out=(trt.empty(0), trt.empty(0, dtype=trt.int64)))
        assert [t.tolist() for t in got] == [t.tolist() for t in expected]
        with pytest.raises(RuntimeError, match="dtype"):
            function(x, 1, out=(trt.empty(0, dtype=trt.float64), trt.empty(0, dtype=trt.int64)))
        with pytest.raises(RuntimeError, match="dtype"):
            function(x, 1, out=(trt.empty(0), trt.empty(0, dtype=trt.int32)))


def test_the_extreme_of_all_elements_converts_to_out() -> None:
    x = trt.tensor(X)
    assert trt.max(x, out=trt.empty((), dtype=trt.float64)).item() == 3.0
    assert trt.min(x, out=trt.empty((), dtype=trt.complex64)).item() == -2.25
    with pytest.raises(RuntimeError):
        trt.max(x, out=trt.empty((), dtype=trt.int64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        trt.max(x.requires_grad_(), out=trt.empty((), dtype=trt.float64))


def test_all_writes_uint8() -> None:
    out = trt.all(trt.tensor(X), out=trt.empty((), dtype=trt.uint8))
    assert (out.item(), out.dtype) == (1, trt.uint8)


def test_sum_and_prod_need_dim_beside_out() -> None:
    x = trt.tensor(X)
    for function in (trt.sum, trt.prod):
        with pytest.raises(TypeError, match="out= needs dim"):
            function(x, out=trt.empty(()))
        assert function(x, 1, out=trt.empty(0)).tolist() == function(x, 1).tolist()
    assert trt.sum(x, None, out=trt.empty(())).item() == x.sum().item()
    assert trt.sum(x).item() == trt.sum(x, dim=None).item() == 4.5


def test_variance_is_computed_in_the_type_of_out() -> None:
    x = trt.tensor([1.0, 2.0, 4.0], dtype=trt.bfloat16)
    exact = x.to(trt.float64)
    for function in (trt.var, trt.std):
        out = function(x, 0, out=trt.empty((), dtype=trt.float64))
        assert out.item() == function(exact, 0).item()
        assert function(x, 0).item() != out.item()
        z = trt.complex(exact, exact * 3).to(trt.complex64)
        out = function(z, 0, out=trt.empty((), dtype=trt.float64))
        assert out.item() == pytest.approx(function(z.to(trt.complex128), 0).item(), rel=1e-12)


@pytest.mark.parametrize("function", [trt.var, trt.std, trt.var_mean, trt.std_mean])
def test_unbiased_is_a_bool(function: Callable[..., object]) -> None:
    x = trt.tensor(X)
    for wrong in ("x", None, 1, 0, 1.0, x):
        for call in (lambda w: function(x, unbiased=w), lambda w: function(x, 1, unbiased=w), lambda w: function(x, 1, w)):
            with pytest.raises(TypeError, match="argument 'unbiased' must be bool"):
                call(wrong)
    with pytest.raises(TypeError, match="argument 'keepdim' must be bool, not str"):
        function(x, 0, keepdim="x")
    with pytest.raises(TypeError, match="not both"):
        function(x, 0, unbiased=True, correction=1)


def test_logsumexp_is_computed_in_the_type_of_out() -> None:
    x = trt.tensor([1.0, 2.0, 4.0], dtype=trt.bfloat16)
    out = trt.logsumexp(x, 0, out=trt.empty((), dtype=trt.float64))
    assert out.item() == trt.logsumexp(x.to(trt.float64), 0).item()
    with pytest.raises(RuntimeError, match="floating point type for result"):
        trt.logsumexp(x, 0, out=trt.empty((), dtype=trt.int64))
    with pytest.raises(RuntimeError, match="can't be cast"):
        trt.logsumexp(trt.tensor([1j]), 0, out=trt.empty(()))


def test_mean_of_complex_numbers_into_a_real_out_warns() -> None:
    z = trt.tensor([1 + 2j, 3 + 4j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert trt.mean(z, 0, out=trt.empty(())).item() == 2.0
    with pytest.raises(RuntimeError, match="can't be cast"):
        trt.mean(z, out=trt.empty(()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trt.mean(z, 0, out=trt.empty((), dtype=trt.complex64)).item() == 2 + 3j


def test_joins_that_cannot_be_cast_are_type_errors() -> None:
    a = trt.tensor([1.5])
    for function in (trt.cat, trt.stack):
        refuses(lambda out: function([a, a], out=out), trt.ones(2, dtype=trt.int64), TypeError)
    assert trt.cat([a, a], out=trt.empty(0, dtype=trt.float64)).tolist() == [1.5, 1.5]


def test_nonzero_as_tuple_takes_no_out() -> None:
    x = trt.tensor([0.0, 1.0])
    with pytest.raises(TypeError, match="'out'"):
        trt.nonzero(x, as_tuple=True, out=(trt.empty(0, dtype=trt.int64),))
    with pytest.raises(RuntimeError, match="as_tuple"):
        trt.nonzero(x, as_tuple=True, out=trt.empty(0, dtype=trt.int64))


def test_gather_sees_overlap_that_resizing_makes() -> None:
    index = trt.tensor([1, 0])
    with pytest.raises(RuntimeError, match="unsupported operation"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trt.gather(trt.tensor([5, 6, 7]), 0, index, out=index[:1])


# ---- numbers in the place of tensors --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "fmod", "rsub", "clamp_min", "copysign"])
def test_the_first_operand_must_be_a_tensor(name: str) -> None:
    x = trt.tensor([1.0, 2.0])
    function = getattr(_ops, name)
    with pytest.raises(TypeError, match="must be Tensor"):
        function(2, x)
    assert function(x, 2).shape == x.shape


def test_two_numbers_make_a_tensor() -> None:
    assert trt.add(2, 3).tolist() == 5
    assert trt.add(2, 3).dtype == trt.int64
    assert trt.sub(2, 3.5).tolist() == -1.5
    assert trt.sub(2, 3.5).dtype == trt.float32
    assert trt.mul(2, 1j).tolist() == 2j
    assert trt.div(3, 2).tolist() == 1.5
    assert trt.floor_divide(7, 2).tolist() == 3
    assert trt.Tensor.__rsub__(2, 3) is NotImplemented
    for function in (trt.fmod, trt.maximum, trt.pow):
        with pytest.raises(TypeError):
            function(2, 3)


@pytest.mark.parametrize("symbol", ["__add__", "__radd__", "__rmul__", "__eq__", "__lt__"])
def test_operator_methods_need_a_tensor(symbol: str) -> None:
    x = trt.tensor([1.0])
    with pytest.raises(TypeError):
        getattr(trt.Tensor, symbol)(2, x)
    assert getattr(trt.Tensor, symbol)(x, 2).shape == x.shape


def test_interpolation_ends_are_tensors() -> None:
    x = trt.tensor([1.0])
    for arguments in ((x, 2.0, 0.5), (1.0, x, 0.5)):
        with pytest.raises(TypeError):
            trt.lerp(*arguments)
    assert trt.lerp(x, x + 2, 0.5).tolist() == [2.0]


# ---- other forms ----------------------------------------------------------------------------------------------------


def test_flip_takes_dims_by_name() -> None:
    x = trt.arange(6).reshape(2, 3)
    assert trt.flip(x, dims=(0, 1)).tolist() == trt.flip(x, (0, 1)).tolist() == x.flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert x.flip(dims=[1]).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert x.flip(dims=()).tolist() == x.tolist()
    with pytest.raises(TypeError):
        trt.flip(x, dims=0)
    with pytest.raises(TypeError):
        trt.flip(x, 0, dims=(1,))


def test_indices_of_nothing() -> None:
    with pytest.raises(IndexError, match="no dimensions"):
        trt.tensor(1).unbind(0)
    with pytest.raises(RuntimeError, match="0-dim integral"):
        trt.tensor([1, 2, 3]).narrow(0, trt.tensor(True), 1)


def test_a_copy_is_asked_for_by_position() -> None:
    x = trt.tensor([1.0])
    assert x.to(trt.float32, False, True) is not x
    assert x.to(trt.float32, True, False) is x
    assert x.to(trt.float32, False) is x


def test_conversions_lay_out_in_the_memory_format() -> None:
    x = trt.arange(16.0).reshape(1, 2, 2, 4)
    converted = x.float(memory_format=trt.channels_last)
    assert converted.is_contiguous(memory_format=trt.channels_last)
    assert converted.tolist() == x.tolist()
    assert converted.float(memory_format=trt.channels_last) is converted
    assert x.float() is x
    strided = trt.arange(16.0).reshape(2, 8)[:, ::2]
    assert strided.float(memory_format=trt.contiguous_format) is strided
    assert strided.to(memory_format=trt.contiguous_format) is strided
    assert converted.to(memory_format=trt.contiguous_format).is_contiguous()
    assert x.long().long(memory_format=trt.channels_last).is_contiguous(memory_format=trt.channels_last)


def test_a_gradient_that_passes_unchanged_is_passed_on() -> None:
    a, b = trt.tensor([1.0], requires_grad=True), trt.tensor([2.0], requires_grad=True)
    g = trt.tensor([3.0], requires_grad=True)
    first = trt.autograd.grad(trt.add(a, b), (a, b), g, create_graph=True)
    assert first[0] is g
    assert first[1] is g
    scaled = trt.autograd.grad(trt.add(a, b, alpha=2), (a, b), g, create_graph=True)
    assert scaled[1].tolist() == [6.0]
    assert trt.autograd.grad(scaled[1], g)[0].tolist() == [2.0]


def test_the_gradient_of_a_count_is_none() -> None:
    x = trt.tensor([1.0, 0.0], requires_grad=True)
    assert trt.autograd.grad(trt.norm(x, 0), x, allow_unused=True) == [None] or trt.autograd.grad(trt.norm(x, 0), x, allow_unused=True) == (None,)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32"])
def test_sums_to_a_size_and_closeness(dtype):
    torch = pytest.importorskip("torch")
    values = [[1, 0, 1], [1, 1, 0]]

    def both(call):
        ours, theirs = (call(m, m.tensor(values, dtype=getattr(m, dtype))) for m in (trt, torch))
        assert (str(ours.dtype).rpartition(".")[2], ours.tolist()) == (str(theirs.dtype).rpartition(".")[2], theirs.tolist())

    for size in ((2, 3), (1, 3), (3,), (2, 1), (1,), ()):
        both(lambda m, x: x.sum_to_size(size))
    both(lambda m, x: x[0, 0].sum_to_size(()))
    both(lambda m, x: m.isclose(x, x.flip(0)))
    both(lambda m, x: m.isclose(x, x, rtol=0, atol=0.5))


def test_aminmax_into_given_tensors():
    x = trt.arange(6.0).reshape(2, 3)
    low, high = trt.zeros(3), trt.zeros(3)
    result = trt.aminmax(x, dim=0, out=(low, high))
    assert result.min is low and result.max is high and low.tolist() == [0, 1, 2] and high.tolist() == [3, 4, 5]
    assert trt.aminmax(x, out=(trt.zeros(()), trt.zeros(()))).max.item() == 5
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        trt.aminmax(x, dim=0, out=(trt.zeros(3), trt.zeros(3, dtype=trt.float64)))


def test_names_of_what_is_missing_or_wrong():
    with pytest.raises(TypeError, match=r"ldexp\(\): argument 'input'"):
        trt.ldexp(2, trt.tensor([1, 2, 3]))
    with pytest.raises(RuntimeError, match="narrow_copy: dimension 3"):
        trt.narrow_copy(trt.ones(2, 3, 4), 3, 0, 0)


def test_what_is_delivered_must_be_a_tensor():
    for result in (-1.0, None, [1]):
        with pytest.raises(TypeError):
            deliver_result("name", result, trt.zeros(1))


MISTAKEN_TYPES = [
    lambda lib, x: lib.nn.functional.leaky_relu(x, lib.ones(1)),
    lambda lib, x: lib.nn.functional.threshold(x, 1.0, lib.ones(2)),
    lambda lib, x: lib.nn.functional.elu(x, lib.ones(1)),
    lambda lib, x: lib.nn.functional.elu(x, lib.tensor(1.0, requires_grad=True)),
    lambda lib, x: lib.add(x, x, alpha=lib.ones(1)),
    lambda lib, x: lib.addcmul(x, x, x, value=lib.ones(2)),
    lambda lib, x: lib.bincount(x),
    lambda lib, x: lib.zeros(2, requires_grad="x"),
    lambda lib, x: lib.tensor(2.0, requires_grad=1),
    lambda lib, x: x.requires_grad_("x"),
    lambda lib, x: lib.where(x > 0, "a", 0),
    lambda lib, x: x.to(np.float32),
    lambda lib, x: lib.nn.Linear(1, 1).to(np.float32),
    lambda lib, x: lib.func.hessian(lambda a: (a * a).sum())(x.long()),
    lambda lib, x: lib.func.jvp(lambda a: (a * a).sum(), (x.long(),), (x.long(),)),
]


@pytest.mark.parametrize("call", MISTAKEN_TYPES)
def test_mistaken_types_raise_pytorchs_errors(call):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as theirs:
        call(torch, torch.rand(3))
    with pytest.raises(theirs.type) as ours:
        call(trt, trt.rand(3))
    _, _, expected = str(theirs.value).partition("must be ")
    assert str(ours.value).endswith(expected)


@pytest.mark.parametrize("number", [2, 2.0, trt.tensor(2.0), np.float32(2)])
def test_what_is_a_number(number):
    assert F.leaky_relu(-trt.ones(1), number).item() == -2


def test_where_names_the_argument_that_is_no_tensor():
    with pytest.raises(TypeError, match=r"argument 'input' \(position 2\)"):
        trt.where(trt.ones(2) > 0, "a", 0)
    with pytest.raises(TypeError, match=r"argument 'other' \(position 3\)"):
        trt.where(trt.ones(2) > 0, 0, "a")
