"""Masked functions and tensors of sparse layouts beside PyTorch's."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import torch  # noqa: E402

import tensorrt_lite as trt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
DATA = [[1.0, 0.0, 3.0], [0.0, 5.0, -2.0], [0.0, 0.0, 0.0]]
MASK = [[True, True, False], [False, True, True], [False, False, True]]
LAYOUTS = ("to_sparse", "to_sparse_csr")


def both(call):
    """The results of a call with either library, or the type of its error."""
    found = []
    for m in (trt, torch):
        try:
            found.append(call(m))
        except Exception as error:
            found.append(type(error))
    return found


def same(call):
    """Equal layouts, shapes and elements, or errors of the same type."""
    mine, theirs = both(call)
    if theirs is NotImplementedError:  # extremes of integers in compressed rows: here they are
        assert mine.dtype == trt.int64
        return
    if isinstance(theirs, type):
        assert mine is theirs
        return
    assert str(mine.layout) == str(theirs.layout) and tuple(mine.shape) == tuple(theirs.shape) and str(mine.dtype) == str(theirs.dtype)
    assert dense(mine).tolist() == pytest.approx(dense(theirs).tolist(), rel=1e-6) if mine.dim() < 2 else dense(mine).tolist() == dense(theirs).tolist()


def dense(x):
    return x.to_dense() if "sparse" in str(x.layout) else x


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [0, 1, (0, 1), None])
def test_reductions(layout, name, dim):
    for dtype in ("float64", "float32", "int64"):
        for keepdim in (False, True):
            for mask in (None, "strided", "sparse"):

                def call(m, keepdim=keepdim, mask=mask, dtype=dtype):
                    chosen = m.tensor(MASK)
                    options = {} if mask is None else {"mask": chosen if mask == "strided" else getattr(chosen, layout)()}
                    return getattr(m.masked, name)(getattr(m.tensor(DATA, dtype=getattr(m, dtype)), layout)(), dim, keepdim=keepdim, **options)

                same(call)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "mean", "var", "argmax", "cumsum", "softmax"])
def test_strided_input_with_a_sparse_mask(layout, name):
    same(lambda m: getattr(m.masked, name)(m.tensor(DATA), 1, mask=getattr(m.tensor(MASK), layout)()).nan_to_num(7))


def test_other_functions_refuse_sparse_input():
    for name in ("var", "std", "argmax", "median", "logsumexp", "cumsum", "softmax", "log_softmax"):
        same(lambda m, n=name: getattr(m.masked, n)(m.tensor(DATA).to_sparse(), 0, mask=m.tensor(MASK).to_sparse()))


def test_hybrid_and_repeated_entries():
    def call(m):
        t = m.sparse_coo_tensor([[0, 2, 0], [1, 0, 1]], m.arange(6.0).reshape(3, 2), (3, 2, 2))
        return [m.masked.sum(t, d).to_dense().tolist() for d in (0, 1, 2, (0, 2))]

    mine, theirs = both(call)
    assert mine == theirs


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax"])
def test_gradients_are_those_of_strided_data(layout, name):
    x, mask = trt.tensor(DATA, dtype=trt.float64), trt.tensor(MASK)
    a, b = x.clone().requires_grad_(), getattr(x, layout)().requires_grad_()
    getattr(trt.masked, name)(a, 1, keepdim=True, mask=mask).square().sum().backward()
    getattr(trt.masked, name)(b, 1, keepdim=True, mask=mask).to_dense()[:2].square().sum().backward()
    kept = b.detach().to_dense() != 0
    if name == "sum":
        assert trt.equal(b.grad.to_dense()[kept], a.grad[kept])
    rows = a.grad[:2][kept[:2]]
    assert trt.allclose(b.grad.to_dense()[:2][kept[:2]], rows)


CALLS = {
    "sin": lambda t, m: t.sin(), "cos": lambda t, m: t.cos(), "neg": lambda t, m: -t, "add": lambda t, m: t + t, "mul": lambda t, m: t * t, "times": lambda t, m: t * 2,
    "sum": lambda t, m: t.sum(), "mean": lambda t, m: t.mean(), "amax": lambda t, m: t.amax(), "amin": lambda t, m: t.amin(), "prod": lambda t, m: t.prod(),
    "to_dense": lambda t, m: t.to_dense(), "clone": lambda t, m: t.clone(), "power": lambda t, m: t**2,
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_masked_tensors(layout, name):
    def call(m):
        t = m.masked.masked_tensor(getattr(m.tensor(DATA), layout)(), getattr(m.tensor(MASK), layout)())
        r = CALLS[name](t, m)
        return str(r.layout), dense(r.get_data()), dense(r.get_mask())

    mine, theirs = both(call)
    assert mine[0] == theirs[0]
    torch.testing.assert_close(torch.tensor(mine[1].tolist()), theirs[1])
    assert mine[2].tolist() == theirs[2].tolist()


def test_masked_tensors_between_layouts():
    for m in (trt, torch):
        t = m.masked.masked_tensor(m.tensor(DATA), m.tensor(MASK))
        for layout in LAYOUTS:
            r = getattr(t, layout)()
            assert r.get_data()._nnz() == 5 and r.get_mask().to_dense().tolist() == MASK and r.is_sparse
            assert r.to_dense().get_data().tolist() == [[1.0, 0.0, 0.0], [0.0, 5.0, -2.0], [0.0, 0.0, 0.0]]
            assert (r.is_sparse_coo(), r.is_sparse_csr()) == (layout == "to_sparse", layout == "to_sparse_csr")
            assert repr(r) == repr(t)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_masked_tensors(layout):
    t = trt.masked.masked_tensor(getattr(trt.tensor(DATA), layout)(), getattr(trt.tensor(MASK), layout)(), requires_grad=True)
    (t * t).sum().backward()
    assert t.grad.layout == t.layout and t.grad.get_data().to_dense().tolist() == [[2.0, 0.0, 0.0], [0.0, 10.0, -4.0], [0.0, 0.0, 0.0]]
    x = trt.tensor(DATA, requires_grad=True)
    (trt.masked.as_masked_tensor(x, trt.tensor(MASK)).to_sparse() * 3).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0, 0.0], [0.0, 3.0, 3.0], [0.0, 0.0, 3.0]]


def test_what_is_refused():
    data, mask = trt.tensor(DATA), trt.tensor(MASK)
    with pytest.raises(TypeError, match="same layout"):
        trt.masked.masked_tensor(data.to_sparse(), mask)
    with pytest.raises(TypeError, match="sparse_csc is not supported"):
        trt.masked.masked_tensor(data.to_sparse_csc(), mask.to_sparse_csc())
    t = trt.masked.masked_tensor(data.to_sparse(), mask.to_sparse())
    with pytest.raises(ValueError, match="masks must match"):
        t + trt.masked.masked_tensor(data.to_sparse(), trt.ones(3, 3).triu().bool().to_sparse())
    with pytest.raises(NotImplementedError, match="over dimensions"):
        t.sum(0)
    with pytest.raises(NotImplementedError, match="require a gradient"):
        trt.masked.masked_tensor(data.to_sparse(), mask.to_sparse(), requires_grad=True).mul_(2)
    assert t.sqrt_() is t and t.get_data().to_dense()[0, 0].item() == 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_functions_take_masked_tensors_of_sparse_data(layout, name):
    """As their data with their mask; `mean` has no sparse_coo form, as in PyTorch."""
    t = trt.masked.masked_tensor(getattr(trt.tensor(DATA), layout)(), getattr(trt.tensor(MASK), layout)())
    function = getattr(trt.masked, name)
    if name == "mean" and layout == "to_sparse":
        with pytest.raises(ValueError, match="sparse_csr"):
            function(t, 1, keepdim=True)
        return
    found, expected = function(t, 1, keepdim=True), function(t.get_data(), 1, keepdim=True, mask=t.get_mask())
    assert found.layout == expected.layout and found.to_dense().tolist() == expected.to_dense().tolist()
