"""`library.opcheck`: what its tests find and what they let pass, PyTorch's verdicts."""

from __future__ import annotations

from itertools import count

import pytest

import tensorrt_lite as trt
from tensorrt_lite import library

ALL = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")
_numbers = count()


def operator(backward=None):
    op = library.custom_op(f"opcheck::op{next(_numbers)}", mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x * 2)
    op.register_fake(lambda x: trt.empty_like(x))
    if backward is not None:
        op.register_autograd(backward)
    return op


def test_an_operator_without_a_gradient():
    op, x = operator(), trt.randn(3, requires_grad=True)
    assert library.opcheck(op, (x,), test_utils=ALL[:3]) == dict.fromkeys(ALL[:3], "SUCCESS")
    assert library.opcheck(op, (x.detach(),), test_utils="ALL") == dict.fromkeys(ALL, "SUCCESS")
    for name in ALL[3:]:
        with pytest.raises(RuntimeError, match=f"{name} failed with .*no autograd formula was registered") as caught:
            library.opcheck(op, (x,), test_utils=name)
        assert type(caught.value).__name__ == "OpCheckError" and isinstance(caught.value.__cause__, RuntimeError)


def test_gradients_are_run_on_functional_and_fake_tensors():
    x = trt.randn(3, requires_grad=True)
    assert set(library.opcheck(operator(lambda ctx, g: g * trt.tensor(2.0) * trt.ones(3)), (x,)).values()) == {"SUCCESS"}
    for backward, error in (
        (lambda ctx, g: trt.from_numpy(g.numpy() * 2), "numpy"),
        (lambda ctx, g: g.sum(), "invalid gradient"),
        (lambda ctx, g: g * g.sum().item(), "elements"),
    ):
        result = library.opcheck(operator(backward), (x,), raise_exception=False)
        assert [v for v in result.values() if v == "SUCCESS"] == ["SUCCESS"] * 3
        assert error in str(result["test_aot_dispatch_dynamic"])


def test_writes_and_random_numbers():
    @library.custom_op("opcheck::scale_", mutates_args=("x",))
    def scale_(x: trt.Tensor, factor: float) -> None:
        x.mul_(factor)

    noisy = library.custom_op("opcheck::noisy", mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: trt.randn_like(x))
    noisy.register_fake(lambda x: trt.empty_like(x))
    state, x = trt.get_rng_state(), trt.ones(3)
    assert set(library.opcheck(scale_, (x, 3.0), test_utils="ALL").values()) == {"SUCCESS"} and x.tolist() == [1.0] * 3
    assert set(library.opcheck(noisy, (x,), test_utils="test_aot_dispatch_static").values()) == {"SUCCESS"}
    assert trt.equal(trt.get_rng_state(), state)


def test_a_gradient_recorded_by_a_backends_kernel_is_none_of_the_operators():
    lib = library.Library("opcheck_keys", "FRAGMENT")
    try:
        for name, key in (("eager", "CPU"), ("composite", "CompositeImplicitAutograd")):
            lib.define(f"{name}(Tensor x) -> Tensor")
            lib.impl(name, lambda x: x * 2, key)
        x = trt.ones(3, requires_grad=True)
        result = library.opcheck(trt.ops.opcheck_keys.eager, (x,), test_utils="test_autograd_registration", raise_exception=False)
        assert "autograd kernel" in str(result["test_autograd_registration"])
        assert set(library.opcheck(trt.ops.opcheck_keys.composite, (x,)).values()) == {"SUCCESS"}
    finally:
        lib._destroy()


def test_refused_arguments():
    op, x = operator(), trt.ones(3)
    with pytest.raises(ValueError, match="expected test_utils to be subset"):
        library.opcheck(op, (x,), test_utils="test_none")
    with pytest.raises(ValueError, match="must specify both"):
        library.opcheck(op, (x,), rtol=1e-3)


def test_the_error_has_pytorchs_place_under_the_alias():
    with trt.compat.torch_alias():
        from torch.testing._internal.optests.generate_tests import OpCheckError

    with pytest.raises(OpCheckError):
        library.opcheck(operator(), (trt.ones(3, requires_grad=True),))
