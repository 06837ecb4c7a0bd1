"""Functional transforms over sparse tensors: equal to the same functions of dense ones, and to PyTorch's where it has them."""

from __future__ import annotations

import pytest
import torch

import tensorrt_lite as trt

F = trt.nn.functional
LAYOUTS = ("coo", "csr", "csc")
torch.manual_seed(0)
DENSE = torch.randn(3, 4) * (torch.arange(12).reshape(3, 4) % 3 != 1)
X, V = torch.randn(5, 4, 2), torch.randn(5, 4)


def ours(x):
    return trt.from_numpy(x.numpy().copy())


def sparse(x, layout):
    return getattr(ours(x), "to_sparse" if layout == "coo" else f"to_sparse_{layout}")()


def close(got, wanted):
    got = got.to_dense() if got.layout is not trt.strided else got
    wanted = wanted.to_dense() if wanted.layout is not torch.strided else wanted
    torch.testing.assert_close(torch.from_numpy(got.detach().numpy().copy()), wanted.detach(), check_dtype=False)


# name: (function of the matrix and the other operand, which has this shape)
PRODUCTS = {
    "mm": (lambda s, a, t: t.sparse.mm(s, a) if s.layout is not t.strided else s @ a, X),
    "matmul": (lambda s, a, t: s @ a, X),
    "mv": (lambda s, a, t: s @ a, V),
    "addmm": (lambda s, a, t: t.addmm(t.ones(3, 2), s, a), X),
    "to_dense": (lambda s, a, t: a.sum() * s.to_dense(), V),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_batch_meets_a_sparse_matrix_that_is_the_same_for_all(name, layout):
    f, x = PRODUCTS[name]
    close(trt.vmap(lambda a: f(sparse(DENSE, layout), a, trt))(ours(x)), torch.vmap(lambda a: f(DENSE, a, torch))(x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("transform", ["grad", "vmap(grad)", "grad(vmap)", "grad(grad)", "jacrev", "autograd"])
def test_derivatives_by_the_dense_operand(name, layout, transform):
    f, x = PRODUCTS[name]

    def derivative(t, s, x):
        func = t.func

        def loss(a):
            return f(s, a, t).pow(3).sum()

        if transform == "grad":
            return func.grad(loss)(x[0])
        if transform == "vmap(grad)":
            return func.vmap(func.grad(loss))(x)
        if transform == "grad(vmap)":
            return func.grad(lambda b: func.vmap(loss)(b).sum())(x)
        if transform == "grad(grad)":
            return func.grad(lambda a: func.grad(loss)(a).pow(2).sum())(x[0])
        if transform == "jacrev":
            return func.jacrev(lambda a: f(s, a, t))(x[0])
        x = x.clone().requires_grad_()
        func.vmap(loss)(x).sum().backward()
        return x.grad

    close(derivative(trt, sparse(DENSE, layout), ours(x)), derivative(torch, DENSE, x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "f",
    [
        lambda s, t: (t.sparse.mm(s, t.ones(4, 2)) if s.layout is not t.strided else s @ t.ones(4, 2)).pow(2).sum(),
        lambda s, t: s.to_dense().sin().sum(),
        lambda s, t: (s + s * 2).to_dense().pow(2).sum(),
        lambda s, t: (s * t.ones(3, 4)).to_dense().pow(2).sum(),
        lambda s, t: (s.t() @ t.ones(3, 2)).pow(2).sum(),
        lambda s, t: (s @ s.t()).to_dense().pow(2).sum(),
    ],
)
def test_the_gradient_of_a_sparse_input_is_that_of_its_entries(f, layout):
    got = trt.func.grad(lambda s: f(s, trt))(sparse(DENSE, layout))
    assert got.layout is getattr(trt, f"sparse_{layout}")
    close(got, torch.func.grad(lambda s: f(s, torch))(DENSE) * (DENSE != 0))


def test_gradients_reach_captured_tensors_of_outer_levels():
    def run(t, s, x):
        s, a = s.requires_grad_(), x[0].clone().requires_grad_()
        t.func.grad(lambda b: (s @ b).pow(2).sum())(a).sum().backward()
        return s.grad, a.grad

    (got_s, got_a), (s, a) = run(trt, sparse(DENSE, "coo"), ours(X)), run(torch, DENSE.clone(), X)
    close(got_a, a)
    close(got_s, s * (DENSE != 0))


def test_a_captured_sparse_matrix_gets_the_sum_of_a_batchs_gradients():
    def run(t, s, x):
        s.requires_grad_()
        t.vmap(lambda a: s @ a)(x).pow(2).sum().backward()
        return s.grad

    close(run(trt, sparse(DENSE, "coo"), ours(X)), run(torch, DENSE.clone(), X) * (DENSE != 0))


@pytest.mark.parametrize("build", ["sparse_coo_tensor", "sparse_csr_tensor"])
@pytest.mark.parametrize("transform", ["vmap", "grad", "vmap(grad)"])
def test_sparse_tensors_made_inside(build, transform):
    values, crow, row, col = torch.randn(5, 3), [0, 1, 2, 3], [0, 1, 2], [1, 0, 3]

    def f(v):
        made = trt.sparse_coo_tensor([row, col], v, (3, 4)) if build == "sparse_coo_tensor" else trt.sparse_csr_tensor(crow, col, v, (3, 4))
        return (made @ ours(X[0])).pow(2).sum() + made.to_dense().sin().sum()

    def dense(v):
        made = torch.zeros(3, 4).index_put((torch.tensor(row), torch.tensor(col)), v)
        return (made @ X[0]).pow(2).sum() + made.sin().sum()

    if transform == "vmap":
        close(trt.vmap(f)(ours(values)), torch.vmap(dense)(values))
    elif transform == "grad":
        close(trt.func.grad(f)(ours(values[0])), torch.func.grad(dense)(values[0]))
    else:
        close(trt.vmap(trt.func.grad(f))(ours(values)), torch.vmap(torch.func.grad(dense))(values))


def test_a_sparse_result_with_batched_values_is_stacked():
    got = trt.vmap(lambda a: sparse(DENSE, "coo") * a)(ours(V.unsqueeze(1).expand(5, 3, 4)))
    assert got.layout is trt.sparse_coo
    close(got, DENSE * V.unsqueeze(1))


BATCHES = {
    "mm": lambda s, t: t.sparse.mm(s, t.ones(4, 2)),
    "addmm": lambda s, t: t.sparse.addmm(t.ones(3, 2), s, t.ones(4, 2)),
    "to_dense": lambda s, t: s.to_dense(),
    "sin": lambda s, t: s.sin(),
    "times a number": lambda s, t: s * 2,
    "sum of two": lambda s, t: s + s,
    "times dense": lambda s, t: s * t.ones(3, 4),
    "sparse.sum": lambda s, t: t.sparse.sum(s),
    "mul_": lambda s, t: s.clone().mul_(2),
    "as it is": lambda s, t: s,
    "zeros_like": lambda s, t: t.zeros_like(s),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BATCHES)
def test_batches_of_sparse_tensors(name):
    batch = torch.stack([DENSE, DENSE * 2, DENSE.flip(0)])
    f = BATCHES[name]
    got, wanted = trt.vmap(lambda s: f(s, trt))(ours(batch).to_sparse()), torch.vmap(lambda s: f(s, torch))(batch.to_sparse())
    assert (got.layout is trt.sparse_coo) == (wanted.layout is torch.sparse_coo)
    close(got, wanted)


def test_a_batch_of_sparse_tensors_has_no_values():
    with pytest.raises(RuntimeError, match="vmap"):
        trt.vmap(lambda s: s.values())(ours(torch.stack([DENSE, DENSE])).to_sparse())


def test_a_slice_of_a_sparse_batch_says_that_it_is_sparse():
    seen = []
    trt.vmap(lambda s: seen.append((s.is_sparse, s.layout)) or s.to_dense())(ours(torch.stack([DENSE, DENSE])).to_sparse())
    assert seen == [(True, trt.sparse_coo)]


@pytest.mark.parametrize("function", ["embedding", "embedding_bag"])
def test_sparse_gradients_of_embeddings(function):
    weight, indices = torch.randn(10, 4), torch.tensor([[1, 2, 2], [3, 4, 9]])

    def run(t, w, i, sparse):
        call = getattr(t.nn.functional, function)
        options = {"mode": "sum"} if function == "embedding_bag" else {}
        return t.func.grad(lambda w: call(i, w, sparse=sparse, **options).pow(2).sum())(w)

    got = run(trt, ours(weight), ours(indices), True)
    assert got.layout is trt.sparse_coo
    close(got, run(torch, weight, indices, True))
    per_sample = trt.vmap(lambda i: run(trt, ours(weight), i.unsqueeze(0), True))(ours(indices))
    close(per_sample, torch.vmap(lambda i: run(torch, weight, i.unsqueeze(0), False))(indices))


@pytest.mark.parametrize(
    "f",
    [
        lambda s, a: trt.func.jvp(lambda a: s @ a, (a,), (a,)),
        lambda s, a: trt.func.jvp(lambda s: s @ a, (s,), (s,)),
        lambda s, a: trt.func.jvp(lambda s: s.to_dense(), (s,), (s,)),
        lambda s, a: trt.func.jacfwd(lambda a: s @ a)(a),
        lambda s, a: trt.func.hessian(lambda a: (s @ a).pow(3).sum())(a),
        lambda s, a: trt.func.jvp(lambda b: trt.vmap(lambda a: s @ a)(b), (a[None],), (a[None],)),
        lambda s, a: trt.func.jvp(lambda a: trt.sparse_coo_tensor([[0, 1, 2, 0], [1, 0, 3, 2]], a.sum(1), (3, 4)).to_dense(), (a,), (a,)),
    ],
)
def test_forward_mode_is_refused_as_by_pytorch_not_taken_for_zero(f):
    with pytest.raises(NotImplementedError, match="forward AD"):
        f(sparse(DENSE, "coo"), ours(X[0]))


def test_dual_tensors_are_refused_in_products():
    with trt.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward AD"):
        _ = sparse(DENSE, "coo") @ trt.autograd.forward_ad.make_dual(ours(X[0]), ours(X[1]))


def test_writes_in_place():
    def doubled(s):
        t = s * 1
        t.mul_(2)
        return t.to_dense().pow(2).sum()

    close(trt.func.grad(doubled)(sparse(DENSE, "coo")), DENSE * 8)
    s = sparse(DENSE, "coo")
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        trt.func.grad(lambda a: (s.mul_(2) @ a).sum())(ours(X[0]))
    with pytest.raises(RuntimeError, match="same for all of the batch"):
        trt.vmap(lambda a: s.mul_(a).to_dense())(ours(V.unsqueeze(1).expand(5, 3, 4)))
    close(s, DENSE)


def test_dense_plus_sparse_by_its_symbol():
    close(ours(DENSE) + sparse(DENSE, "coo"), DENSE * 2)
    with pytest.raises(RuntimeError, match="add\\(sparse, dense\\) is not supported"):
        sparse(DENSE, "coo") + ours(DENSE)
