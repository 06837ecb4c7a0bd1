"""The harness itself: PyTorch agrees with PyTorch, and each sort of fault in a library is found.

The library under test is PyTorch with one attribute replaced by a faulty one.
"""

from __future__ import annotations

import os
import signal
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from . import opinfo, runner  # noqa: E402
from .__main__ import main  # noqa: E402


class Overlay(types.ModuleType):
    """`base` with some attributes replaced (dotted names reach into namespaces) and some absent."""

    def __init__(self, base: Any, replaced: dict[str, Any], absent: frozenset[str] = frozenset()) -> None:
        super().__init__(getattr(base, "__name__", "overlay"))
        self._base = base
        self._absent = absent
        for name, value in replaced.items():
            head, _, rest = name.partition(".")
            setattr(self, head, Overlay(getattr(base, head), {rest: value}) if rest else value)

    def __getattr__(self, name: str) -> Any:
        if name in self._absent:
            raise AttributeError(name)
        return getattr(self._base, name)


class _FaultyMeta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def __getattr__(cls, name: str) -> Any:
        return getattr(torch.Tensor, name)


def faulty_tensor(**methods: Callable[..., Any]) -> Any:
    """A stand-in for torch.Tensor with other methods."""
    return _FaultyMeta("Tensor", (), {name: staticmethod(method) for name, method in methods.items()})


def report(name: str, kind: str, replaced: dict[str, Any], absent: frozenset[str] = frozenset()) -> runner.Report:
    return runner.run(opinfo.entries([name])[name], kind, Overlay(torch, replaced, absent))


def fails_with(found: runner.Report, level: str) -> None:
    assert found.status == "failed"
    assert found.passed < found.total
    assert any(f": {level}: " in line for line in found.failures), found.failures


@pytest.mark.parametrize("kind", list(runner.KINDS))
@pytest.mark.parametrize("name", ["add", "scatter", "max.reduction_with_dim", "nn.functional.gelu", "normal"])
def test_pytorch_agrees_with_itself(name: str, kind: str) -> None:
    found = report(name, kind, {})
    assert found.failures == []
    assert (found.passed, found.status, found.strides) == (found.total, "ok", 0)


def test_every_listed_operator_has_samples() -> None:
    for name, op in opinfo.entries().items():
        assert any(True for dtype in opinfo.dtypes(op) for _ in opinfo.samples(op, dtype)), name


def test_finds_a_wrong_value() -> None:
    fails_with(report("exp", "forward", {"exp": lambda x, **kw: torch.exp(x, **kw) * (1 + 2e-5)}), "value")


def test_finds_one_wrong_element() -> None:
    def spoiled(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = torch.cumsum(x, *args, **kwargs).clone()
        if result.dim() and result.numel():
            result.view(-1)[-1] += 1
        return result

    fails_with(report("cumsum", "forward", {"cumsum": spoiled}), "value")


def test_finds_nan_instead_of_a_number() -> None:
    fails_with(report("sqrt", "forward", {"sqrt": lambda x: torch.sqrt(x) * float("nan")}), "value")


def rounded_once(x: Any, dim: int, dtype: Any = None, out: Any = None) -> Any:
    """log_softmax in double precision; PyTorch's rounds bfloat16 in between."""
    value = torch.log_softmax(x.to(torch.float64), dim).to(dtype or x.dtype)
    return value if out is None else out.resize_(value.shape).copy_(value)


def test_accepts_what_is_nearer_to_the_exact_value_than_pytorch() -> None:
    found = report("log_softmax", "forward", {"log_softmax": lambda x, dim, **kw: rounded_once(x, dim, **kw)})
    assert found.status == "ok"
    assert found.nearer > 0
    assert report("log_softmax", "forward", {}).nearer == 0


def test_finds_a_wrong_value_in_low_precision() -> None:
    def off(x: Any, dim: int, **kwargs: Any) -> Any:
        return rounded_once(x, dim, **kwargs) * (1.03 if x.dtype == torch.bfloat16 else 1)

    found = report("log_softmax", "forward", {"log_softmax": off})
    fails_with(found, "value")
    assert any(line.startswith("bfloat16") for line in found.failures)


def test_leaves_out_what_pytorch_has_no_implementation_for() -> None:
    def complete(x: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            return torch.var(x, *args, out=out, **kwargs)
        except RuntimeError as error:
            if "Unsupported dtype" not in str(error):
                raise
            return out.resize_(()).copy_(torch.var(x.to(out.dtype), *args, **kwargs))

    found = report("var", "out", {"var": complete})
    assert (found.status, found.refused > 0) == ("ok", True)
    assert found.total + found.refused == report("var", "out", {}).total


def test_derivatives_without_memory_are_zero() -> None:
    from .kinds import gradgrad
    from .library import Library

    for case in gradgrad(opinfo.entries(["abs"])["abs"]):
        assert case.run(Library(torch)).error is None


def test_second_derivatives_do_not_depend_on_which_first_ones_are_one_object() -> None:
    apart = {"add": lambda a, b, **kw: torch.add(a * 1, b, **kw)}
    assert report("add", "gradgrad", apart).status == "ok"


def test_finds_a_wrong_dtype() -> None:
    fails_with(report("sum", "forward", {"sum": lambda x, *a, **kw: torch.sum(x, *a, **kw).double()}), "dtype")


def test_finds_a_wrong_shape() -> None:
    fails_with(report("sum", "forward", {"sum": lambda x, *a, **kw: torch.sum(x, *a, **kw).unsqueeze(0)}), "shape")


def test_finds_a_sequence_of_wrong_length() -> None:
    fails_with(report("unbind", "forward", {"unbind": lambda x, *a, **kw: torch.unbind(x, *a, **kw)[:1]}), "structure")


def test_finds_a_copy_where_pytorch_returns_a_view() -> None:
    fails_with(report("permute", "forward", {"permute": lambda x, dims: torch.permute(x, dims).clone()}), "aliases")


def test_finds_a_changed_argument() -> None:
    fails_with(report("neg", "forward", {"neg": lambda x: x.neg_().clone()}), "mutation")


def test_counts_other_strides_apart() -> None:
    def column_major(a: Any, b: Any) -> Any:
        return torch.mm(a, b).t().contiguous().t()

    found = report("mm", "forward", {"mm": column_major})
    assert found.status == "ok"
    assert found.strides > 0


def test_finds_a_wrong_gradient() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].cos() * 1.001

    replaced = {"sin": lambda x: Wrong.apply(x) if x.requires_grad else torch.sin(x)}
    assert report("sin", "forward", replaced).status == "ok"
    fails_with(report("sin", "grad", replaced), "value")


def test_finds_a_wrong_second_derivative() -> None:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].sin()

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * Inner.apply(ctx.saved_tensors[0])

    replaced = {"sin": lambda x: Outer.apply(x) if x.requires_grad else torch.sin(x)}
    assert report("sin", "grad", replaced).status == "ok"
    fails_with(report("sin", "gradgrad", replaced), "value")


def test_finds_a_wrong_tangent() -> None:
    def wrong(x: Any) -> Any:
        primal, tangent = torch.autograd.forward_ad.unpack_dual(torch.sin(x))
        return primal if tangent is None else torch.autograd.forward_ad.make_dual(primal, tangent * 1.001)

    assert report("sin", "forward_ad", {}).status == "ok"
    fails_with(report("sin", "forward_ad", {"sin": wrong}), "value")


def test_finds_a_detached_result() -> None:
    replaced = {"exp": lambda x: torch.exp(x.detach())}
    fails_with(report("exp", "grad", replaced), "structure")


def test_finds_a_missing_error() -> None:
    def lenient(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        try:
            return torch.amax(x, dim, keepdim)
        except (RuntimeError, IndexError):
            return torch.zeros(())

    fails_with(report("amax", "errors", {"amax": lenient}), "error")


def test_finds_an_error_of_another_type() -> None:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("no")

    found = report("amax", "errors", {"amax": raises})
    fails_with(found, "error")
    assert found.passed == 0


def test_accepts_a_subclass_of_the_error_type() -> None:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("also a RuntimeError")

    found = report("dot", "errors", {"dot": raises})
    assert (found.status, found.total > 0) == ("ok", True)


def test_finds_an_error_where_pytorch_computes() -> None:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no")

    found = report("exp", "forward", {"exp": raises})
    fails_with(found, "error")
    assert found.passed == 0


def test_finds_an_inplace_variant_that_returns_a_copy() -> None:
    replaced = {"Tensor": faulty_tensor(neg_=lambda x: x.neg())}
    fails_with(report("neg", "inplace", replaced), "aliases")
    replaced = {"Tensor": faulty_tensor(neg_=lambda x: x.neg_().view(x.shape))}
    fails_with(report("neg", "inplace", replaced), "identity")


def test_finds_a_faulty_method_beside_a_sound_function() -> None:
    replaced = {"Tensor": faulty_tensor(neg=lambda x: x.clone())}
    assert report("neg", "forward", replaced).status == "ok"
    fails_with(report("neg", "method", replaced), "value")


def test_finds_an_ignored_out() -> None:
    def ignores(x: Any, out: Any = None) -> Any:
        return torch.exp(x)

    fails_with(report("exp", "out", {"exp": ignores}), "identity")


def test_finds_an_out_that_is_filled_wrongly_when_strided() -> None:
    def spoiled(x: Any, out: Any = None) -> Any:
        if out is None or out.is_contiguous() or out.dim() == 0:
            return torch.exp(x, out=out)
        out.copy_(torch.exp(x).flip(0))
        return out

    fails_with(report("exp", "out", {"exp": spoiled}), "value")


def test_finds_strides_taken_for_contiguous() -> None:
    def reads_memory_in_order(x: Any) -> Any:
        return torch.exp(x.as_strided(x.shape, torch.empty(x.shape).stride(), x.storage_offset()))

    replaced = {"exp": lambda x: torch.exp(x) if x.numel() < 2 else reads_memory_in_order(x)}
    assert report("exp", "forward", replaced).status == "ok"
    fails_with(report("exp", "noncontig", replaced), "value")


def test_random_operators_compare_values_after_seeding() -> None:
    def other_stream(*args: Any, **kwargs: Any) -> Any:
        torch.rand(())
        return torch.randn(*args, **kwargs)

    fails_with(report("randn", "forward", {"randn": other_stream}), "value")


def test_uninitialised_memory_compares_shape_and_dtype_only() -> None:
    replaced = {"empty": lambda *a, **kw: torch.full(a[0] if isinstance(a[0], (tuple, list)) else a, 1, **kw)}
    assert not any(": value:" in line for line in report("empty", "forward", replaced).failures)
    replaced = {"empty": lambda *a, **kw: torch.empty(*a, **kw).unsqueeze(0)}
    fails_with(report("empty", "forward", replaced), "shape")


def test_missing_operators_are_reported_as_missing() -> None:
    # Tensor.exp is there, but it is not the function.
    assert report("exp", "forward", {}, absent=frozenset({"exp"})).status == "missing"
    assert report("exp", "method", {}, absent=frozenset({"exp"})).status == "ok"


def test_crash_and_hang_are_results() -> None:
    def crash() -> runner.Report:
        os.kill(os.getpid(), signal.SIGKILL)
        return runner.Report()

    def hang() -> runner.Report:
        time.sleep(60)
        return runner.Report()

    assert runner.isolated(crash, timeout=30.0).status == "crashed"
    assert runner.isolated(hang, timeout=0.2).status == "timeout"
    good = runner.Report(passed=1, total=1)
    assert runner.isolated(lambda: good, timeout=30.0) == good
    calls = [((name, at), call) for name in "ab" for at, call in enumerate((lambda: good, crash, lambda: good, hang, lambda: good))]
    reports = dict(runner.run_isolated(calls, timeout=1.0, jobs=2, together=lambda name: name[0]))
    assert [reports["a", at].status for at in range(5)] == ["ok", "crashed", "ok", "timeout", "ok"]
    assert sorted(reports) == sorted(name for name, _ in calls)


def test_comparison_with_a_saved_run(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "run.json"
    arguments = ["--module", "torch", "--ops", "neg", "--kinds", "forward,grad", "--jobs", "2"]
    assert main([*arguments, "--json", str(saved)]) == 0
    assert main([*arguments, "--compare", str(saved)]) == 0
    capsys.readouterr()
    assert main([*arguments, "--max-samples", "1", "--compare", str(saved)]) == 1
    lost = [line for line in capsys.readouterr().out.splitlines() if "in the saved run" in line]
    assert [line.split()[:2] for line in lost] == [["neg", "forward:"], ["neg", "grad:"]]
