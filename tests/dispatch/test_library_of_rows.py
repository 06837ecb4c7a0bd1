"""`torch.library` over the library's own operators: kernels for Autograd and Autocast, redispatch below a key, what is registered, as PyTorch answers."""

from __future__ import annotations

from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite import library
from tensorrt_lite.compat.modules import _C

torch = pytest.importorskip("torch")

ADD = trt.ops.aten.add.Tensor
EXP = trt.ops.aten.exp.default
SUM = trt.ops.aten.sum.dim_IntList


@pytest.fixture
def lib() -> Any:
    with library._scoped_library("aten", "IMPL") as made:
        yield made


def test_a_kernel_for_autograd_runs_where_a_tensor_requires_grad(lib) -> None:
    calls = []

    class Twice(trt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with _C._AutoDispatchBelowAutograd():
                return EXP(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    def kernel(x: Any) -> Any:
        calls.append(x)
        return Twice.apply(x)

    lib.impl("exp", kernel, "Autograd")
    x = trt.tensor([0.0, 1.0], requires_grad=True)
    y = x.exp()
    y.sum().backward()
    assert len(calls) == 1 and x.grad.tolist() == [2, 2]
    assert trt.equal(y, trt.tensor([0.0, 1.0]).exp()) and len(calls) == 1
    lib._destroy()
    x.grad = None
    x.exp().sum().backward()
    assert trt.allclose(x.grad, x.detach().exp()) and len(calls) == 1


@pytest.mark.parametrize("call, op", [(lambda x: x + x, "add.Tensor"), (lambda x: x.sum(0), "sum.dim_IntList"), (lambda x: trt.mm(x, x), "mm")], ids=["add", "sum", "mm"])
def test_a_kernel_goes_on_below_its_key_by_redispatch(lib, call, op) -> None:
    seen = []
    packet, _, overload = op.partition(".")
    operator = getattr(getattr(trt.ops.aten, packet), overload or "default")

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(keyset)
        return operator.redispatch(keyset & _C._after_autograd_keyset, *args, **kwargs)

    lib.impl(op, kernel, "Autograd", with_keyset=True)
    x = trt.eye(2, requires_grad=True)
    y = call(x)
    assert len(seen) == 1 and seen[0].has(_C.DispatchKey.AutogradCPU)
    assert not y.requires_grad and trt.equal(y, call(trt.eye(2)))


def test_a_kernel_for_autocast_runs_below_autocast_of_its_device(lib) -> None:
    calls = []

    def kernel(a: Any, b: Any) -> Any:
        calls.append(a.dtype)
        with trt.autocast("cpu", enabled=False):
            return trt.mm(a.double(), b.double())

    lib.impl("mm", kernel, "AutocastCPU")
    x = trt.eye(2)
    assert trt.mm(x, x).dtype == trt.float32 and not calls
    with trt.autocast("cpu"):
        assert trt.mm(x, x).dtype == trt.float64
    assert calls == [trt.float32]


def test_fallthrough_passes_by_autograd(lib) -> None:
    x = trt.ones(2, requires_grad=True)
    lib.impl("sin", library.fallthrough_kernel, "Autograd")
    assert not x.sin().requires_grad
    lib._destroy()
    assert x.sin().requires_grad


def test_a_written_operand_counts_one_version(lib) -> None:
    def kernel(x: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return trt.ops.aten.exp_.default(x)

    lib.impl("exp_", kernel, "Autograd")
    x = (trt.ones(2, requires_grad=True) * 1)
    before = x._version
    x.exp_()
    assert x._version == before + 1


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_fake_and_a_device_kernel_of_a_row(lib, device) -> None:
    library.register_kernel("aten::cosh", device if device != "meta" else "meta", lambda x: x + 7, lib=lib) if device != "meta" else library.register_fake("aten::cosh", lambda x: x.new_empty(5), lib=lib)
    x = trt.zeros(2, device=device)
    assert x.cosh().tolist() == [7, 7] if device == "cpu" else x.cosh().shape == (5,)


def test_a_fallback_for_a_device() -> None:
    library.define("rows_test::lonely", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel is registered"):
        trt.ops.rows_test.lonely(trt.ones(2))
    with library._scoped_library("_", "IMPL") as lib:
        lib.fallback(lambda op, *args: args[0] + len(op.name()), "CPU")
        assert trt.ops.rows_test.lonely(trt.zeros(1)).tolist() == [len("rows_test::lonely")]
    with pytest.raises(NotImplementedError, match="no kernel is registered"):
        trt.ops.rows_test.lonely(trt.ones(2))
    with pytest.raises(RuntimeError, match="global namespace"):
        library.Library("rows_test", "IMPL").fallback(lambda op: None, "CPU")


@pytest.mark.parametrize("make", [lambda t: t.ones(2), lambda t: t.ones(2, requires_grad=True), lambda t: t.ones(2, device="meta")], ids=["cpu", "recorded", "meta"])
def test_keys_of_tensors_are_pytorchs(make) -> None:
    ours, theirs = _C._dispatch_keys(make(trt)), torch._C._dispatch_keys(make(torch))
    assert str(ours) == str(theirs)
    assert ours.highestPriorityTypeId().name == str(theirs.highestPriorityTypeId()).rpartition(".")[2]


QUERIES = [
    ("aten::add.Tensor", "CPU"), ("aten::add.Tensor", "Autograd"), ("aten::add.Tensor", "AutogradCPU"), ("aten::add.Tensor", "CompositeImplicitAutograd"), ("aten::chunk", "CompositeImplicitAutograd"),
    ("aten::mm", "CUDA"), ("aten::sum.dim_IntList", "Meta"),
]  # fmt: skip


@pytest.mark.parametrize("name, key", QUERIES)
def test_what_is_registered_is_what_pytorch_answers(name, key) -> None:
    if key == "CUDA" and not torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
        pytest.skip("this PyTorch has no CUDA")
    assert _C._dispatch_has_kernel(name) and not _C._dispatch_has_kernel("aten::no_such")
    assert _C._dispatch_has_kernel_for_dispatch_key(name, key) == torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


@pytest.mark.parametrize("ask", [lambda C: C._dispatch_has_kernel_for_dispatch_key("aten::no_such", "CPU"), lambda C: C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "Nope"), lambda C: C._get_schema("aten::add", "Nope")])
def test_unknown_names_raise_as_in_pytorch(ask) -> None:
    for C in (_C, torch._C):
        with pytest.raises(RuntimeError, match="does not exist|could not parse|no matching schema"):
            ask(C)


def test_schemas() -> None:
    assert str(_C._get_schema("aten::add", "Tensor")) == str(torch._C._get_schema("aten::add", "Tensor"))
    assert {"aten::add.Tensor", "aten::add.Scalar"} <= {s.name if "." in s.name else s.name for s in _C._jit_get_schemas_for_operator("aten::add")}
    everything = [s.name for s in _C._jit_get_all_schemas()]
    assert len(everything) > 1500 and "aten::sum.dim_IntList" in everything
    names = _C._dispatch_get_registrations_for_dispatch_key("CPU")
    assert "aten::add.Tensor" in names and "aten::chunk" not in names
    assert "aten::chunk" in _C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    assert "registered" in _C._dispatch_dump("aten::add.Tensor")


def test_a_composed_operator_takes_no_kernel(lib) -> None:
    with pytest.raises(NotImplementedError, match="aten::chunk is composed"):
        lib.impl("chunk", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="does not exist"):
        lib.impl("no_such", lambda x: x, "CPU")
