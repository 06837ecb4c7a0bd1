"""gradcheck and gradgradcheck of sparse inputs, at the elements that they store."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")
LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def sparse(m, layout, dtype="float64"):
    x = m.arange(16, dtype=getattr(m, dtype)).view(4, 4) * (m.arange(16) % 3 == 0).view(4, 4)
    return getattr(x, "to_sparse" + ("" if layout == "coo" else f"_{layout}"))(*((2, 2),) if layout[0] == "b" else ()).requires_grad_()


FUNCTIONS = {
    "to_dense": lambda m: lambda s: s.to_dense(),
    "product": lambda m: lambda s: s @ m.arange(8, dtype=m.float64).view(4, 2),
    "sparse result": lambda m: lambda s: s * 2,
    "two results": lambda m: lambda s: (s.to_dense().sum(), s.to_dense() ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fast", [False, True])
def test_gradients_at_stored_elements(name, layout, fast):
    assert gradcheck(FUNCTIONS[name](trt), (sparse(trt, layout),), masked=True, fast_mode=fast)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pytorch_agrees(layout):
    assert torch.autograd.gradcheck(FUNCTIONS["to_dense"](torch), (sparse(torch, layout),), masked=True)
    assert gradcheck(FUNCTIONS["to_dense"](trt), sparse(trt, layout), masked=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_inputs_beside_sparse_ones(layout):
    dense = trt.rand(4, 2, dtype=trt.float64, requires_grad=True)
    assert gradcheck(lambda s, d: s @ d, (sparse(trt, layout), dense), masked=True)
    assert gradgradcheck(lambda s, d: (s.to_dense() ** 2) @ d, (sparse(trt, layout), dense), masked=True)


def test_wrong_gradients_are_seen():
    class Wrong(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 2

    for function in (lambda s: Wrong.apply(s.to_dense()), lambda s: Wrong.apply(s).to_dense()):
        with pytest.raises(RuntimeError):
            gradcheck(function, (sparse(trt, "coo"),), masked=True)
        assert not gradcheck(function, (sparse(trt, "coo"),), masked=True, raise_exception=False)


@pytest.mark.parametrize("masked", [None, False])
def test_without_masked_they_are_refused(masked):
    with pytest.raises(NotImplementedError, match="masked=True"):
        gradcheck(lambda s: s.to_dense(), (sparse(trt, "coo"),), masked=masked)
