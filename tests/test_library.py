"""User-defined operators: schemas, dispatch, fake kernels, gradients, checks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Optional

import pytest

import tensorrt_lite as trt
from tensorrt_lite import library

_numbers = itertools.count()


def fresh(name: str = "op") -> str:
    """A name that no other test defines."""
    return f"test::{name}{next(_numbers)}"


def scale(x: trt.Tensor, factor: float = 2.0, *, bias: Optional[trt.Tensor] = None) -> trt.Tensor:  # noqa: UP045
    return x * factor if bias is None else x * factor + bias


@pytest.mark.parametrize(
    "text",
    [
        "n::f(Tensor x, float s=2.0, Tensor? w=None, SymInt n=3, *, bool flag=False, ScalarType? d=None) -> Tensor",
        "n::f(Tensor(a!) x, Tensor[] xs, int[] sizes=[1, 2], str mode=\"a, (b\") -> ()",
        "n::f.out(Tensor?[] x, *, Tensor(a!) out) -> (Tensor, int)",
        "n::f() -> Tensor[]",
    ],
)
def test_schema_text(text: str) -> None:
    """What is read is written again, and understood the same way."""
    from tensorrt_lite._declared.schema import parse

    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("(Tenso x) -> Tensor", "unknown type specifier 'Tenso'"),
        ("(Tensor) -> Tensor", "expected an argument such as .* got 'Tensor'"),
        ("(Tensor x)", "expected a schema such as"),
        ("(Tensor x, int n=a) -> Tensor", "default 'a' .* is no literal"),
        ("(Tensor x, int x) -> Tensor", "two arguments have the same name"),
    ],
)
def test_schema_errors(schema: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        library.define(fresh(), schema)


def test_inference() -> None:
    def everything(x: Sequence[trt.Tensor], y: list[int], z: str = "a", q: trt.device = None, r: int | None = None, u: list[trt.Tensor | None] = None, n: int | float | bool = 1, *, d: trt.dtype = None) -> tuple[trt.Tensor, int]:  # noqa: RUF013
        raise NotImplementedError

    assert library.infer_schema(everything, mutates_args=()) == (
        '(Tensor[] x, SymInt[] y, str z="a", Device q=None, SymInt? r=None, Tensor?[] u=None, Scalar n=1, *, ScalarType d=None) -> (Tensor, SymInt)'
    )
    assert library.infer_schema(scale, mutates_args={"x"}) == "(Tensor(a0!) x, float factor=2.0, *, Tensor? bias=None) -> Tensor"
    assert library.infer_schema(scale, mutates_args="unknown").count("!") == 2
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="not found in the custom op's signature"):
        library.infer_schema(scale, mutates_args={"y"})

    def wrong(x: dict) -> trt.Tensor:
        raise NotImplementedError

    def nothing(x: trt.Tensor):  # noqa: ANN202
        raise NotImplementedError

    with pytest.raises(ValueError, match="Parameter x has unsupported type"):
        library.infer_schema(wrong, mutates_args=())
    with pytest.raises(ValueError, match="No return type annotation"):
        library.infer_schema(nothing, mutates_args=())


def test_calls_and_their_errors() -> None:
    name = fresh()
    op = library.custom_op(name, mutates_args=())(scale)
    x = trt.randn(3)
    assert trt.equal(op(x), x * 2) and trt.equal(op(x, 3), x * 3) and trt.equal(op(x, factor=1.5, bias=x), x * 1.5 + x)
    by_name = getattr(trt.ops.test, name.removeprefix("test::"))
    assert trt.equal(by_name(x), op(x)) and trt.equal(by_name.default(x), op(x)) and by_name.overloads() == ["default"]
    for call, message in (
        (lambda: op(), "missing value for argument 'x'"),
        (lambda: op(3), "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        (lambda: op(x, "a"), "type 'float' for argument 'factor'"),
        (lambda: op(x, True), "type 'float' for argument 'factor'"),
        (lambda: op(x, foo=3), "Unknown keyword argument 'foo'"),
        (lambda: op(x, 1.0, x), "takes 2 positional argument"),
        (lambda: op(x, 1.0, factor=1.0), "multiple values for argument 'factor'"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        trt.ops.test.nothing_of_this_name  # noqa: B018
    with pytest.raises(RuntimeError, match="multiple times"):
        library.define(name, "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="of form"):
        library.custom_op("scale", mutates_args=())(scale)
    assert trt.equal(trt.ops.aten.add(x, x), x + x)


def test_an_operator_of_a_library_without_a_meta_kernel_is_not_implemented_there() -> None:
    namespace = fresh().split("::")[0]
    part = library.Library(namespace, "FRAGMENT")
    name = fresh().split("::")[1]
    part.define(f"{name}(Tensor x) -> Tensor")
    part.impl(name, lambda x: x.clone(), "CPU")
    with pytest.raises(NotImplementedError, match="attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered"):
        getattr(getattr(trt.ops, namespace), name)(trt.ones(2, device="meta"))


def test_devices_and_fake_kernels() -> None:
    op = library.custom_op(fresh(), mutates_args=(), device_types="cpu")(scale)
    x = trt.randn(3, 4)
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        op(x.to("meta"))
    op.register_fake(lambda x, factor=2.0, *, bias=None: trt.empty_like(x))
    assert op(x.to("meta")).shape == (3, 4) and op(x.to("meta")).device.type == "meta"
    assert library.opcheck(op, (x,)) == dict.fromkeys(("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), "SUCCESS")
    with op.set_kernel_enabled("cpu", False), pytest.raises(NotImplementedError, match="Could not run .* from the 'CPU' backend"):
        op(x)
    assert trt.equal(op(x), x * 2)
    op.register_kernel("cpu")(lambda x, factor=2.0, *, bias=None: x - 1)
    assert trt.equal(op(x), x - 1)
    with pytest.raises(ValueError, match="expected devices"):
        op.register_kernel("gpu")


def test_results_are_checked() -> None:
    x = trt.randn(3)
    returning: dict[str, Callable[[trt.Tensor], object]] = {
        "may not alias": lambda x: x, "may not alias any": lambda x: x[1:], "a value of type 'Tensor'": lambda x: 3, "a value of type 'Tensor', got NoneType": lambda x: None,
    }  # fmt: skip
    for message, function in returning.items():
        op = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> Tensor")(function)
        with pytest.raises(RuntimeError, match=message):
            op(x)
    op = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)")(lambda x: (x + 1,))
    with pytest.raises(RuntimeError, match="expected the kernel to return 2 values, got 1"):
        op(x)
    op = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> ()")(lambda x: x)
    with pytest.raises(RuntimeError, match="returns nothing"):
        op(x)


def test_gradients() -> None:
    op = library.custom_op(fresh(), mutates_args=())(scale)
    x = trt.randn(3, dtype=trt.float64, requires_grad=True)
    y = op(x, 3.0)
    assert y.requires_grad and not op(x.detach()).requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((len(inputs), list(keyword_only_inputs), ctx.needs_input_grad))
        ctx.factor = inputs[1]

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor"):
        op.register_autograd(lambda ctx, g: (g, None), setup_context=setup)
    name = fresh()
    library.define(name, "(Tensor x, float factor, *, bool negative=False) -> Tensor")
    library.impl(name, "cpu", lambda x, factor, negative=False: x * (-factor if negative else factor))
    op = getattr(trt.ops.test, name.removeprefix("test::")).default
    assert op(x, 3.0).grad_fn is not None, "without a formula a defined operator's own operators record"
    library.register_autograd(op, lambda ctx, g: (g * ctx.factor, None), setup_context=setup)
    assert trt.autograd.gradcheck(lambda x: op(x, 3.0), (x,)) and trt.autograd.gradgradcheck(lambda x: op(x, 3.0), (x,))
    assert seen[0] == (2, ["negative"], (True, False))
    assert "op" in op(x, 3.0).grad_fn.name()
    library.register_autograd(op, lambda ctx, g: g, setup_context=setup)
    with pytest.raises(RuntimeError, match="expected backward to return 2 gradients"):
        op(x, 3.0).sum().backward()
    with trt.no_grad():
        assert op(x, 3.0).grad_fn is None


def test_gradients_of_lists_and_several_results() -> None:
    name = fresh()

    @library.custom_op(name, mutates_args=())
    def weighted(xs: list[trt.Tensor], w: trt.Tensor, skip: Optional[trt.Tensor] = None) -> tuple[trt.Tensor, list[trt.Tensor]]:  # noqa: UP045
        return sum(xs) * w, [x * x for x in xs]

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0], inputs[1])
        ctx.count = len(inputs[0])
        ctx.needs = ctx.needs_input_grad

    def backward(ctx, g, squares):
        *xs, w = ctx.saved_tensors
        assert ctx.needs == ([True, False], True, False) and len(squares) == ctx.count
        return [g * w + 2 * x * s for x, s in zip(xs, squares)], g * sum(xs), None

    weighted.register_autograd(backward, setup_context=setup)
    a, b, w = (trt.randn(4, dtype=trt.float64, requires_grad=i != 1) for i in range(3))

    def call(a, w):
        product, squares = weighted([a, b], w)
        assert isinstance(squares, list) and len(squares) == 2
        return product, *squares

    assert trt.autograd.gradcheck(call, (a, w))
    library.opcheck(weighted, ([a, b], w), test_utils=["test_schema", "test_autograd_registration"])


def test_written_arguments() -> None:
    @library.custom_op(fresh(), mutates_args={"x"})
    def accumulate(x: trt.Tensor, y: trt.Tensor) -> None:
        x.detach().add_(y)

    x, version = trt.zeros(3), None
    version = x._version
    assert accumulate(x, trt.ones(3)) is None and trt.equal(x, trt.ones(3)) and x._version > version
    with pytest.raises(RuntimeError, match="non-functional operator"):
        accumulate.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        accumulate(trt.zeros(3, requires_grad=True), trt.ones(3))
    library.opcheck(accumulate, (x, x.clone()), test_utils="test_schema")
    liar = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x.add_(1).clone())
    with pytest.raises(RuntimeError, match="Argument x is not defined as mutable but was mutated"):
        library.opcheck(liar, (x,))
    result = library.opcheck(liar, (x,), test_utils="test_schema", raise_exception=False)
    assert isinstance(result["test_schema"], RuntimeError) and "was mutated" in str(result["test_schema"])
    wrong = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x + 1)
    wrong.register_fake(lambda x: x.new_empty(1))
    with pytest.raises(RuntimeError, match="differs from the real one"):
        library.opcheck(wrong, (x,))
    # a value saved before the operator wrote to it is found
    w = trt.ones(3, requires_grad=True)
    product = w * x
    accumulate(x, trt.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_libraries() -> None:
    lib = library.Library("testlib", "DEF")
    assert lib.define("h(Tensor x) -> Tensor") == "h"
    lib.impl("h", lambda x: x + 1, "CPU")
    x = trt.ones(2, requires_grad=True)
    assert trt.equal(trt.ops.testlib.h(x), x + 1)
    lib.impl("h", lambda x: x * 5, "Autograd")
    assert trt.equal(trt.ops.testlib.h(x), x * 5) and trt.ops.testlib.h(x).requires_grad
    with trt.no_grad():
        assert trt.equal(trt.ops.testlib.h(x), x + 1)
    with pytest.raises(RuntimeError, match="Only a single"):
        library.Library("testlib", "DEF")
    more = library.Library("testlib", "FRAGMENT", "CompositeExplicitAutograd")
    more.define("k(Tensor x) -> Tensor")
    more.define("k.twice(Tensor x, int n) -> Tensor")
    more.impl("k", lambda x: x - 1)
    more.impl("k.twice", lambda x, n: x * n)
    assert trt.equal(trt.ops.testlib.k(x), x - 1) and trt.equal(trt.ops.testlib.k(x, 3), x * 3) and trt.ops.testlib.k.overloads() == ["default", "twice"]
    with pytest.raises(RuntimeError, match="no overload takes"):
        trt.ops.testlib.k(x, "a")
    with pytest.raises(RuntimeError, match="kind IMPL"):
        library.Library("testlib", "IMPL").define("z(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="does not exist"):
        library.impl("testlib::none", "cpu", lambda x: x)
    with pytest.raises(ValueError, match="expected a device"):
        library.impl("testlib::h", "gpu", lambda x: x)
    more._destroy()
    lib._destroy()
    with pytest.raises(AttributeError):
        trt.ops.testlib.h  # noqa: B018
    library.Library("testlib", "DEF")._destroy()


def test_classes_of_operators_and_what_a_schema_tells() -> None:
    from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

    with trt.compat.torch_alias():
        from torch._ops import OpOverload, OpOverloadPacket

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    op = library.custom_op(fresh(), mutates_args=())(scale)
    with Seen():
        op(trt.ones(3) + 1)
    assert len(seen) == 3 and all(isinstance(func, OpOverload) for func in seen)
    packets = (seen[2].overloadpacket, trt.ops.aten.add, trt.ops.aten.einsum)
    assert all(isinstance(p, OpOverloadPacket) and not isinstance(p, OpOverload) for p in packets) and isinstance(trt.ops.aten.einsum.default, OpOverload)
    assert seen[2].namespace == "test" and seen[2]._opname == seen[2].name().removeprefix("test::") and seen[2]._overloadname == "default"
    schema = trt.ops.aten.add.Tensor._schema
    assert repr(schema) == str(schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" and schema.overload_name == "Tensor"
    assert [(a.name, a.default_value, a.has_default_value()) for a in schema.arguments] == [("self", None, False), ("other", None, False), ("alpha", 1, True)]


def test_the_context_of_a_fake_kernel() -> None:
    contexts = []
    op = library.custom_op(fresh(), mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x.clone())
    op.register_fake(lambda x: contexts.append(library.get_ctx()) or trt.empty_like(x))
    op(trt.empty(3, device="meta"))
    assert library.get_ctx() is None
    with pytest.raises(NotImplementedError, match="no symbolic shapes"):
        contexts[0].new_dynamic_size()
