"""Writes in place to sparse tensors whose history is recorded, beside PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import tensorrt_lite as trt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
LAYOUTS = ("to_sparse", "to_sparse_csr")
COO_ALONE = ("sub_", "div_")  # in PyTorch
WRITES = {
    "add_": lambda y, z: y.add_(z), "add_alpha": lambda y, z: y.add_(z, alpha=2), "iadd": lambda y, z: y.__iadd__(z), "sub_": lambda y, z: y.sub_(z), "mul_": lambda y, z: y.mul_(2),
    "mul_sparse": lambda y, z: y.mul_(z), "div_": lambda y, z: y.div_(2), "neg_": lambda y, z: y.neg_(), "relu_": lambda y, z: y.relu_(), "t_": lambda y, z: y.t_(),
    "zero_": lambda y, z: y.zero_(), "copy_": lambda y, z: y.copy_(z), "twice": lambda y, z: y.mul_(z).add_(z),
}  # fmt: skip


def dense(t):
    return t if "strided" in str(t.layout) else t.to_dense()


def outcome(m, layout, write):
    """What a write leaves, and the gradients of the tensor that was written to and of the one that was read."""
    x, z = (getattr(m.tensor(values), layout)().requires_grad_() for values in ([[1.0, 0, 3], [0, 5, -2]], [[2.0, 0, 6], [0, 10, -4]]))
    y = x * 3 if layout == "to_sparse" else -x
    version = y._version
    assert write(y, z) is y and y.requires_grad and not y.is_leaf and y._version > version
    (dense(y) ** 2).sum().backward()
    return [None if t is None else dense(t).tolist() for t in (y.detach(), x.grad, z.grad)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_recorded(layout, name):
    if name == "copy_" and layout == "to_sparse":  # PyTorch's derivative fails
        assert outcome(trt, layout, WRITES[name])[1:] == [[[0.0] * 3] * 2, [[4.0, 0.0, 12.0], [0.0, 20.0, -8.0]]]
    elif name == "t_" and layout == "to_sparse_csr":
        with pytest.raises(NotImplementedError, match="t_"):
            outcome(trt, layout, WRITES[name])
    elif name in COO_ALONE and layout == "to_sparse_csr":
        assert outcome(trt, layout, WRITES[name]) == outcome(trt, "clone", WRITES[name])
    else:
        mine, theirs = (outcome(m, layout, WRITES[name]) for m in (trt, torch))
        assert mine == theirs


def test_a_tensor_without_history_gets_one():
    for m in (trt, torch):
        x = m.tensor([[1.0, 0.0]]).to_sparse().requires_grad_()
        y = m.tensor([[0.0, 2.0]]).to_sparse()
        y.add_(x)
        assert y.requires_grad and y._version == 1
        (y.to_dense() ** 2).sum().backward()
        assert x.grad.to_dense().tolist()[0][0] == 2.0


def test_second_derivatives():
    x = trt.tensor([[1.0, 0.0, 3.0]], dtype=trt.float64).to_sparse().requires_grad_()
    y = x * x
    y.mul_(x)
    (g,) = trt.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = trt.autograd.grad(g.sum(), x)
    assert g.to_dense().tolist() == [[3.0, 0.0, 27.0]] and h.to_dense().tolist() == [[6.0, 0.0, 18.0]]


def test_what_is_refused():
    for m in (trt, torch):
        x = m.tensor([[1.0, 2.0]]).to_sparse().requires_grad_()
        for write in (lambda: x.mul_(2), lambda: x.add_(x), lambda: x.zero_()):
            with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
                write()
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            m.mul(x, 2, out=m.tensor([[1.0, 2.0]]).to_sparse())
        y = x * 2
        z = y * y
        y.add_(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.to_dense().sum().backward()
        with m.no_grad():
            assert x.mul_(2) is x and x.requires_grad and x.to_dense().tolist() == [[2.0, 4.0]]


def test_copies_between_sparse_tensors_take_no_memory_of_the_source():
    for m in (trt, torch):
        x, y = m.tensor([[1.0, 2.0]]).to_sparse(), m.tensor([[0.0, 2.0]]).to_sparse()
        assert x.copy_(y) is x and x.to_dense().tolist() == [[0.0, 2.0]]
        y._values().fill_(7)
        assert x.to_dense().tolist() == [[0.0, 2.0]]


@pytest.mark.parametrize("layout", ("to_sparse", "to_sparse_csr"))
@pytest.mark.parametrize("index", [(0, 0), 0, slice(None), ...])
def test_elements_cannot_be_assigned(layout, index):
    for m in (torch, trt):
        t = getattr(m.eye(3), layout)()
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            t[index] = 9.0
        assert t.to_dense().tolist() == m.eye(3).tolist()
