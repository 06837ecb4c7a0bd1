"""The tests of `library.opcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite import random
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.random import manual_seed
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.library import _tensors_of

_func = LazyModule("tensorrt_lite.func")
_testing = LazyModule("tensorrt_lite.testing")
_fake_tensor = LazyModule("tensorrt_lite._subclasses.fake_tensor")

if TYPE_CHECKING:
    from tensorrt_lite.library import Operator

__all__ = ["OpCheckError", "TESTS"]


class OpCheckError(RuntimeError):
    """An operator failed a test of `opcheck`; `__cause__` is what it raised. PyTorch's `torch.testing._internal.optests.generate_tests.OpCheckError`."""


def _copied(value: Any) -> Any:
    if isinstance(value, trt.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return type(value)(_copied(v) for v in value) if isinstance(value, (list, tuple)) else value


def _bound(op: Operator, args: Any, kwargs: Any) -> list[Any]:
    """The values of all arguments, tensors copied."""
    return op._schema.bind(_copied(args), {k: _copied(v) for k, v in kwargs.items()})


def _call(op: Operator, values: list[Any]) -> Any:
    positional, keywords = op._given(values)
    return op(*positional, **keywords)


def _results(result: Any) -> list[Any]:
    return [t for part in (result if isinstance(result, tuple) else (result,)) for t in _tensors_of(part)]


def _check_schema(op: Operator, args: Any, kwargs: Any, **tolerances: Any) -> None:
    values = _bound(op, args, kwargs)
    before = [[t.detach().clone() for t in _tensors_of(v)] for v in values]
    with no_grad():
        _call(op, values)
    for i, (value, old) in enumerate(zip(values, before)):
        for t, was in zip(_tensors_of(value), old):
            if i not in op._schema.written and not trt.equal(t.detach().nan_to_num(), was.nan_to_num()):
                raise RuntimeError(f"Argument {op._schema.arguments[i].name} is not defined as mutable but was mutated")


def _check_autograd(op: Operator, args: Any, kwargs: Any, **tolerances: Any) -> None:
    values = _bound(op, args, kwargs)
    given = [t for v in values for t in _tensors_of(v)]
    if not any(t.requires_grad for t in given):
        return
    if op._opaque or op._backward is not None or any(key.startswith("Autograd") or key == "CompositeImplicitAutograd" for key in op._kernels):
        return
    if any(t.requires_grad and not any(t is x for x in given) for t in _results(_call(op, values))):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have an autograd kernel defined at an autograd "
            "key (e.g. DispatchKey::Autograd): its gradient is recorded by the operators of a backend's kernel. Please use register_autograd, or register a kernel "
            "of differentiable operators as CompositeImplicitAutograd."
        )


def _check_fake(op: Operator, args: Any, kwargs: Any, **tolerances: Any) -> None:
    def meta(value: Any) -> Any:
        if isinstance(value, trt.Tensor):
            return value.detach().to("meta")
        return type(value)(meta(v) for v in value) if isinstance(value, (list, tuple)) else value

    with no_grad():
        real = op(*_copied(args), **{k: _copied(v) for k, v in kwargs.items()})
        fake = op(*meta(args), **{k: meta(v) for k, v in kwargs.items()})
    for r, f in zip(_results(real), _results(fake), strict=True):
        if (r.shape, r.dtype, r.stride()) != (f.shape, f.dtype, f.stride()):
            raise RuntimeError(f"the fake kernel's result {tuple(f.shape)}, {f.dtype}, strides {f.stride()} differs from the real one {tuple(r.shape)}, {r.dtype}, strides {r.stride()}")


def _run(op: Operator, values: list[Any], call: Callable[[list[Any]], Any]) -> dict[str, list[Any]]:
    """Outputs, gradients, and arguments after the call, which draws the same random numbers each time."""
    with random.fork_rng():
        manual_seed(0)
        outputs = _results(call(values))
        inputs = [t for v in values for t in _tensors_of(v) if t.requires_grad]
        roots = [t for t in outputs if t.requires_grad]
        gradients = autograd.grad(roots, inputs, [trt.ones_like(t) for t in roots], allow_unused=True) if roots and inputs else ()
    return {"outputs": [t.detach() for t in outputs], "gradients": list(gradients), "arguments": [t.detach() for v in values for t in _tensors_of(v)]}


def _check_traced(op: Operator, args: Any, kwargs: Any, **tolerances: Any) -> None:
    """What a compiler's front end does with an operator, as far as there is one without a compiler: run it and its backward on functional tensors, where the
    results must be those of eager mode, and on fake ones, which have no elements to look at."""
    def functionally(values: list[Any]) -> Any:
        return _func.functionalize(lambda given: _call(op, given))(values)

    eager = _run(op, _bound(op, args, kwargs), lambda values: _call(op, values))
    functional = _run(op, _bound(op, args, kwargs), functionally)
    for what, expected in eager.items():
        difference = partial("{} of the operator are different in eager mode and under functionalize: {}".format, what.capitalize())
        _testing.assert_close(functional[what], expected, equal_nan=True, msg=difference, **tolerances)
    copies, mode = _bound(op, args, kwargs), _fake_tensor.FakeTensorMode()
    with mode:

        def fake(value: Any) -> Any:
            if isinstance(value, trt.Tensor):
                return mode.from_tensor(value)
            return type(value)(fake(v) for v in value) if isinstance(value, (list, tuple)) else value

        found = _run(op, [fake(v) for v in copies], lambda values: _call(op, values))
    if not found["gradients"]:  # no formula: a fake result has no graph of the operators that a kernel is made of
        return
    for real, made in zip(eager["gradients"], found["gradients"], strict=True):
        if (real is None) != (made is None) or real is not None and (real.shape, real.dtype) != (made.shape, made.dtype):
            raise AssertionError("Gradients of the operator on fake tensors are not those of eager mode in shape or dtype")


TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _check_schema, "test_autograd_registration": _check_autograd, "test_faketensor": _check_fake,
    "test_aot_dispatch_static": _check_traced, "test_aot_dispatch_dynamic": _check_traced,
}  # fmt: skip


def check(op: Operator, args: Any, kwargs: Any, test_utils: str | Sequence[str], raise_exception: bool, tolerances: dict[str, float | None]) -> dict[str, Any]:
    names = tuple(TESTS) if test_utils == "ALL" else (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= set(TESTS):
        raise ValueError(f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(TESTS)} but it was not")
    results: dict[str, Any] = {}
    for name in names:
        try:
            TESTS[name](op, args, kwargs, **tolerances)
            results[name] = "SUCCESS"
        except Exception as error:  # whatever the operator raised is its test's result
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)") from error
            results[name] = error
    return results
