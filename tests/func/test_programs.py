"""Programs of nested transforms give what PyTorch's give: values and structures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")


def f(t: Any, x: Any) -> Any:
    return (x.sin() * x).sum()


def _mlp(t: Any, p: Any, x: Any) -> Any:
    return t.nn.functional.linear(t.tanh(t.nn.functional.linear(x, p["w1"], p["b1"])), p["w2"])


def _inplace(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0].mul_(2)
    y[1:] *= x[0]
    return (y**2).sum()


def _written(t: Any, x: Any) -> Any:
    out = t.zeros_like(x)
    out[0] = x[0] * 2
    out[1:] = x[1:] ** 2
    return out.cumsum(0).sum()


def _custom(t: Any) -> Any:
    class Scaled(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, w: Any) -> Any:
            return x * w

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w * 3, g * x  # three times the true one, to see that it is this that is called

        @staticmethod
        def jvp(ctx: Any, a: Any, b: Any) -> Any:
            x, w = ctx.saved_tensors
            return 3 * a * w + x * b

    return Scaled


def _with_rule(t: Any) -> Any:
    class Exponential(t.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return Exponential.apply(x), in_dims[0]

    return Exponential


V, W, M, N3, S = "v", "w", "m", "n", "s"  # vectors (4,), a matrix (4, 4), a batch (3, 4), a number
# name: (program(module, *arguments), the arguments)
PROGRAMS: dict[str, tuple[Any, str]] = {
    "dropout, different": (lambda t, m: _dropped(t, m, "different"), M),
    "dropout, same": (lambda t, m: _dropped(t, m, "same"), M),
    "grad": (lambda t, x: t.func.grad(lambda x: f(t, x))(x), V),
    "grad of grad": (lambda t, s: t.func.grad(t.func.grad(lambda x: x**4))(s), S),
    "third derivative": (lambda t, s: t.func.grad(t.func.grad(t.func.grad(lambda x: x.exp() * x)))(s), S),
    "grad argnums": (lambda t, x, y: t.func.grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(x, y), V + W),
    "grad has_aux": (lambda t, x: t.func.grad(lambda x: (f(t, x), x * 2), has_aux=True)(x), V),
    "grad_and_value": (lambda t, x: t.func.grad_and_value(lambda x: f(t, x))(x), V),
    "grad_and_value aux": (lambda t, x: t.func.grad_and_value(lambda x: (f(t, x), {"a": x}), has_aux=True)(x), V),
    "grad of dict": (lambda t, x, m: t.func.grad(lambda p: _mlp(t, p, x).sum())({"w1": m, "b1": x, "w2": m}), V + M),
    "grad unused": (lambda t, x, y: t.func.grad(lambda a, b: a.sum(), argnums=(0, 1))(x, y), V + W),
    "grad constant": (lambda t, x: t.func.grad(lambda a: t.tensor(1.0, dtype=t.float64))(x), V),
    "perturbation confusion": (lambda t, s: t.func.grad(lambda x: x * t.func.grad(lambda y: x + y)(t.ones_like(x)))(s), S),
    "perturbation confusion 2": (lambda t, s: t.func.grad(lambda x: t.func.grad(lambda y: x * y)(x * 3) * x)(s), S),
    "grad in place": (lambda t, x: t.func.grad(lambda x: _inplace(t, x))(x), V),
    "grad written": (lambda t, x: t.func.grad(lambda x: _written(t, x))(x), V),
    "grad no_grad inside": (lambda t, x: t.func.grad(lambda x: _no_grad(t, x))(x), V),
    "grad under no_grad": (lambda t, x: _under_no_grad(t, x), V),
    "grad detach": (lambda t, x: t.func.grad(lambda x: (x * x.detach()).sum())(x), V),
    "vmap": (lambda t, n: t.vmap(lambda x: x.cumsum(0) * 2)(n), N3),
    "vmap in_dims 1": (lambda t, m: t.vmap(lambda x: x.softmax(0), in_dims=1)(m), M),
    "vmap out_dims": (lambda t, n: t.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(n), N3),
    "vmap None": (lambda t, n, x: t.vmap(lambda a, b: a @ b, in_dims=(0, None))(n, x), N3 + V),
    "vmap negative": (lambda t, m, n: t.vmap(lambda a, b: t.outer(a, b), in_dims=(-1, 1))(m, n), M + N3),
    "vmap dict": (lambda t, n, x: t.vmap(lambda d: d["a"] + d["b"][0], in_dims=({"a": 0, "b": [None]},))({"a": n, "b": [x]}), N3 + V),
    "vmap chunks": (lambda t, m: t.vmap(lambda x: x.sort().values, chunk_size=3)(m), M),
    "vmap of vmap": (lambda t, n, m: t.vmap(t.vmap(t.dot, in_dims=(None, 0)), in_dims=(0, None))(n, m), N3 + M),
    "vmap out unbatched": (lambda t, n, x: t.vmap(lambda a: x)(n), N3 + V),
    "vmap in place": (lambda t, n: t.vmap(lambda a: a.clone().mul_(3).add_(a))(n), N3),
    "vmap index": (lambda t, m: t.vmap(lambda a: a[t.tensor([0, 2])] + a[1:3])(m), M),
    "vmap batched index": (lambda t, n, m: t.vmap(lambda a, i: a[i], in_dims=(0, 0))(n, t.tensor([[0, 1], [3, 2], [1, 1]])), N3 + M),
    "vmap setitem": (lambda t, n: t.vmap(lambda a: _written(t, a))(n), N3),
    "vmap where": (lambda t, n: t.vmap(lambda a: t.where(a > 0, a, -a).max())(n), N3),
    "vmap linalg": (lambda t, m: t.vmap(lambda a: t.linalg.solve(t.outer(a, a) + t.eye(4, dtype=t.float64), a))(m), M),
    "vmap of grad": (lambda t, n: t.vmap(t.func.grad(lambda x: f(t, x)))(n), N3),
    "per-sample gradients": (lambda t, n, m: t.vmap(t.func.grad(lambda w, x: (w @ x).tanh().sum()), in_dims=(None, 0))(m, n), N3 + M),
    "grad of vmap": (lambda t, n, x: t.func.grad(lambda w: t.vmap(lambda a: (a * w).sin().sum())(n).sum())(x), N3 + V),
    "grad of vmap of grad": (lambda t, n, x: t.func.grad(lambda w: t.vmap(t.func.grad(lambda a: (a * w).sin().sum()))(n).sum())(x), N3 + V),
    "vmap of vmap of grad": (lambda t, n, x: t.vmap(lambda y: t.vmap(t.func.grad(lambda a: (a * y).sin().sum()))(n))(t.stack([x, x * 2])), N3 + V),
    "vmap of in-place grad": (lambda t, n: t.vmap(t.func.grad(lambda x: _inplace(t, x)))(n), N3),
    "vjp": (lambda t, x, y: _vjp(t, lambda x: x.sin() * 2, (x,), y), V + W),
    "vjp two": (lambda t, x, y: _vjp(t, lambda a, b: (a * b).cumsum(0), (x, y), y), V + W),
    "vjp aux": (lambda t, x, y: t.func.vjp(lambda a: (a * 2, a.sum()), x, has_aux=True)[2], V + W),
    "vjp of tuple": (lambda t, x, y: t.func.vjp(lambda a: (a * 2, a.sum()), x)[1]((y, y.sum())), V + W),
    "vmap of vjp": (lambda t, x, m: t.vmap(t.func.vjp(lambda a: a.sin(), x)[1])(m), V + M),
    "grad of vjp": (lambda t, x, y: t.func.grad(lambda a: t.func.vjp(lambda b: b**3, a)[1](y)[0].sum())(x), V + W),
    "jvp": (lambda t, x, y: t.func.jvp(lambda x: x.sin() * x.sum(), (x,), (y,)), V + W),
    "jvp of jvp": (lambda t, x, y: t.func.jvp(lambda a: t.func.jvp(lambda b: b**3 * a, (a,), (y,))[1], (x,), (y,)), V + W),
    "jvp of grad": (lambda t, x, y: t.func.jvp(t.func.grad(lambda x: f(t, x)), (x,), (y,)), V + W),
    "grad of jvp": (lambda t, x, y: t.func.grad(lambda a: t.func.jvp(lambda x: f(t, x), (a,), (y,))[1])(x), V + W),
    "vmap of jvp": (lambda t, x, m: t.vmap(lambda v: t.func.jvp(lambda a: a.exp().sum() * a, (x,), (v,))[1])(m), V + M),
    "jvp of vmap": (lambda t, n: t.func.jvp(t.vmap(lambda a: a.softmax(0)), (n,), (n * 2,)), N3),
    "jvp aux": (lambda t, x, y: t.func.jvp(lambda a: (a * 2, a), (x,), (y,), has_aux=True), V + W),
    "jvp in place": (lambda t, x, y: t.func.jvp(lambda x: _inplace(t, x), (x,), (y,)), V + W),
    "jacrev": (lambda t, x: t.func.jacrev(lambda x: x.sin().cumsum(0))(x), V),
    "jacrev argnums": (lambda t, x, y: t.func.jacrev(lambda a, b: a * b, argnums=(0, 1))(x, y), V + W),
    "jacrev tree": (lambda t, x: t.func.jacrev(lambda x: (x.sum(), {"a": x**2}))(x), V),
    "jacrev aux": (lambda t, x: t.func.jacrev(lambda x: (x * 2, x), has_aux=True)(x), V),
    "jacrev chunks": (lambda t, x: t.func.jacrev(lambda x: x.sin(), chunk_size=3)(x), V),
    "jacfwd": (lambda t, x: t.func.jacfwd(lambda x: x.sin().cumsum(0))(x), V),
    "jacfwd argnums": (lambda t, x, y: t.func.jacfwd(lambda a, b: t.outer(a, b), argnums=(0, 1))(x, y), V + W),
    "jacfwd aux": (lambda t, x: t.func.jacfwd(lambda x: (x * 2, x), has_aux=True)(x), V),
    "jacfwd of jacrev": (lambda t, x: t.func.jacfwd(t.func.jacrev(lambda x: x.sin() * x.sum()))(x), V),
    "jacrev of jacrev": (lambda t, x: t.func.jacrev(t.func.jacrev(lambda x: x.sin() * x.sum()))(x), V),
    "jacrev of jacfwd": (lambda t, x: t.func.jacrev(t.func.jacfwd(lambda x: x.sin() * x.sum()))(x), V),
    "jacfwd of jacfwd": (lambda t, x: t.func.jacfwd(t.func.jacfwd(lambda x: x.sin() * x.sum()))(x), V),
    "hessian": (lambda t, x: t.func.hessian(lambda x: f(t, x))(x), V),
    "hessian argnums": (lambda t, x, y: t.func.hessian(lambda a, b: (a**2 * b).sum(), argnums=(0, 1))(x, y), V + W),
    "vmap of hessian": (lambda t, n: t.vmap(t.func.hessian(lambda x: f(t, x)))(n), N3),
    "vmap of jacrev": (lambda t, n: t.vmap(t.func.jacrev(lambda x: x.softmax(0)))(n), N3),
    "linearize": (lambda t, x, y: _linearized(t, x, y), V + W),
    "backward through grad": (lambda t, x: _outside(t, lambda a: t.func.grad(lambda x: f(t, x))(a).sum(), x), V),
    "backward through vmap": (lambda t, n: _outside(t, lambda a: t.vmap(lambda x: x.softmax(0) * x[0])(a).pow(2).sum(), n), N3),
    "backward through jacfwd": (lambda t, x: _outside(t, lambda a: t.func.jacfwd(lambda x: x.sin())(a).sum(), x), V),
    "backward through captured": (lambda t, x, n: _outside(t, lambda w: t.vmap(t.func.grad(lambda a: (a * w).sin().sum()))(n).sum(), x), V + N3),
    "Function generated": (lambda t, n, x: t.vmap(lambda a, w: _custom(t).apply(a, w), in_dims=(0, None))(n, x), N3 + V),
    "vmap of grad of Function": (lambda t, n, x: t.vmap(t.func.grad(lambda a, w: _custom(t).apply(a, w).sum(), argnums=(0, 1)), in_dims=(0, None))(n, x), N3 + V),
    "grad of vmap of Function": (lambda t, n, x: t.func.grad(lambda w: t.vmap(lambda a: _custom(t).apply(a, w))(n).sum())(x), N3 + V),
    "grad of grad of Function": (lambda t, s: t.func.grad(t.func.grad(lambda a: _custom(t).apply(a, a * a)))(s), S),
    "jvp of Function": (lambda t, x, y: t.func.jvp(lambda a: _custom(t).apply(a, y), (x,), (y,)), V + W),
    "Function with a rule": (lambda t, n: t.vmap(t.func.grad(lambda a: _with_rule(t).apply(a).sum()))(n), N3),
    "matrix_exp": (lambda t, m: t.func.hessian(lambda a: t.linalg.matrix_exp(a).sum())(m), M),
    "pinv": (lambda t, m: t.func.jacfwd(t.func.grad(lambda a: t.linalg.pinv(a).sum()))(m), M),
    "factorisations": (lambda t, m: t.vmap(t.func.grad(lambda a: t.linalg.eigvalsh(t.outer(a, a) + t.diag(t.arange(1.0, 5.0, dtype=t.float64))).pow(2).sum() + t.linalg.svdvals(t.outer(a, a)).sum()))(m), M),
    "jvp of a written number": (lambda t, x, y: t.func.jvp(lambda a: a.scatter(0, t.tensor([1]), 3.0) * a, (x,), (y,)), V + W),
    "module": (lambda t, n: _module(t, n), N3),
    "batched grad outputs": (lambda t, x, m: _batched_grads(t, x, m), V + M),
    "vectorised jacobian": (lambda t, x, y: t.autograd.functional.jacobian(lambda a, b: (a * b, a.sum()), (x, y), vectorize=True), V + W),
    "vectorised forward jacobian": (lambda t, x: t.autograd.functional.jacobian(lambda a: a.sin(), x, vectorize=True, strategy="forward-mode"), V),
    "vectorised hessian": (lambda t, x: t.autograd.functional.hessian(lambda a: f(t, a), x, vectorize=True), V),
}


def _no_grad(t: Any, x: Any) -> Any:
    with t.no_grad():
        c = x**2
    return (x * c).sum()


def _under_no_grad(t: Any, x: Any) -> Any:
    with t.no_grad():
        g = t.func.grad(lambda x: f(t, x))(x.clone().requires_grad_())
    assert not g.requires_grad
    return g


def _dropped(t: Any, x: Any, randomness: str) -> Any:
    """Dropout in each of its forms, and what is drawn next."""
    forms = (
        lambda a: t.nn.functional.dropout(a, 0.3),
        lambda a: t.nn.functional.dropout(a.clone(), 0.3, inplace=True),
        lambda a: t.nn.functional.scaled_dot_product_attention(a[None, None], a[None, None], a[None, None], dropout_p=0.3),
        lambda a: a + t.nn.functional.dropout(t.ones(x.shape[-1], dtype=t.float64), 0.3),
    )
    t.manual_seed(0)
    return [t.func.vmap(form, randomness=randomness)(x) for form in forms] + [t.rand(2)]


def _vjp(t: Any, function: Any, primals: Any, cotangent: Any) -> Any:
    y, pull_back = t.func.vjp(function, *primals)
    return y, pull_back(cotangent), pull_back(cotangent * 2)


def _linearized(t: Any, x: Any, y: Any) -> Any:
    value, push_forward = t.func.linearize(lambda a: a.sin() * a, x)
    return value, push_forward(y), push_forward(y * 2)


def _outside(t: Any, function: Any, x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    function(leaf).backward()
    return leaf.grad


def _module(t: Any, n: Any) -> Any:
    """Per-sample gradients of a small network, and an ensemble."""
    layer = t.nn.Sequential(t.nn.Linear(4, 5), t.nn.ReLU(), t.nn.LayerNorm(5), t.nn.Linear(5, 3)).double()
    for k, p in enumerate(layer.parameters()):
        p.data.copy_(t.linspace(-1, 1, p.numel(), dtype=t.float64).view(p.shape) + k / 10)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return t.nn.functional.cross_entropy(t.func.functional_call(layer, p, (x.unsqueeze(0),)), y.unsqueeze(0))

    gradients = t.vmap(t.func.grad(loss), in_dims=(None, 0, 0))(parameters, n, t.tensor([0, 2, 1]))
    stacked, buffers = t.func.stack_module_state([layer, layer])
    return gradients, t.vmap(lambda p, b, x: t.func.functional_call(layer, (p, b), (x,)), in_dims=(0, 0, None))(stacked, buffers, n)


def _batched_grads(t: Any, x: Any, m: Any) -> Any:
    leaf = x.clone().requires_grad_()
    return t.autograd.grad(leaf.sin().cumsum(0), leaf, m, is_grads_batched=True)


_NUMBERS = np.random.default_rng(0)
_ARGUMENTS = {V: _NUMBERS.normal(size=4), W: _NUMBERS.normal(size=4), M: _NUMBERS.normal(size=(4, 4)), N3: _NUMBERS.normal(size=(3, 4)), S: np.array(0.7)}


def _flat(value: Any) -> Any:
    """Structures with arrays in the place of tensors."""
    if isinstance(value, dict):
        return {k: _flat(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_flat(v) for v in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def _same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for k in a:
            _same(a[k], b[k])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            _same(x, y)
    else:
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program_gives_what_pytorchs_gives(name: str) -> None:
    import torch.func  # noqa: F401 (the attribute of the package)

    program, kinds = PROGRAMS[name]
    found, expected = (_flat(program(t, *(t.tensor(_ARGUMENTS[k]) for k in kinds))) for t in (trt, torch))
    _same(found, expected)


def test_there_are_sixty_programs() -> None:
    assert len(PROGRAMS) >= 60



NAMED_RESULTS: dict[str, Any] = {
    "sort": lambda t, x: x.sort(),
    "max": lambda t, x: x.max(0),
    "topk": lambda t, x: x.topk(2),
    "cummax": lambda t, x: x.cummax(0),
    "kthvalue": lambda t, x: x.kthvalue(2),
    "svd": lambda t, x: t.linalg.svd(x),
    "slogdet": lambda t, x: t.linalg.slogdet(x @ x.mT),
    "frexp": lambda t, x: t.frexp(x),
}
TRANSFORMS: dict[str, Any] = {
    "vmap": lambda t, f, x: t.func.vmap(f)(x),
    "jvp": lambda t, f, x: t.func.jvp(f, (x[0],), (x[0],))[0],
    "grad": lambda t, f, x: t.func.grad(lambda a: (a.sum(), f(a)), has_aux=True)(x[0])[1],
    "vjp": lambda t, f, x: t.func.vjp(f, x[0])[0],
    "tree": lambda t, f, x: t.utils._pytree.tree_map(lambda value: value * 2, f(x[0])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", NAMED_RESULTS)
def test_results_keep_their_names(name: str, transform: str) -> None:
    """Named tuples of operators are nodes of trees, and stay what they are at every level."""
    import torch.func  # noqa: F401

    found = []
    for t in (trt, torch):
        x = (t.arange(48, dtype=t.float64).reshape(3, 4, 4) * 0.37).sin()
        try:
            result = TRANSFORMS[transform](t, lambda a, t=t: NAMED_RESULTS[name](t, a), x)
            found.append((type(result).__name__, [(tuple(value.shape), str(value.dtype).rpartition(".")[2]) for value in result]))
        except RuntimeError as error:
            found.append((type(error).__name__, str(error).replace("tensorrt_lite.", "torch.")))
    assert found[0] == found[1]


def backward_of_its_argument(x):
    y = (x * x).sum()
    y.backward()
    return y


def marks_its_argument(x):
    x.requires_grad_()
    return (x * x).sum()


@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "vmap"])
@pytest.mark.parametrize("function", [backward_of_its_argument, marks_its_argument])
def test_transforms_refuse_what_pytorchs_refuse(function, transform):
    with pytest.raises(RuntimeError) as theirs:
        getattr(torch.func, transform)(function)(torch.ones(2, 2))
    with pytest.raises(RuntimeError) as ours:
        getattr(trt.func, transform)(function)(trt.ones(2, 2))
    assert str(ours.value) == str(theirs.value)


def test_leaves_are_made_inside_transforms():
    def function(x):
        w = trt.ones(2, requires_grad=True)
        p = trt.nn.Parameter(x)
        z = trt.zeros_like(x, requires_grad=True)
        return (x * x).sum() + w.sum() + (p + z).sum()

    assert trt.func.grad(function)(trt.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
    x = trt.ones(2, requires_grad=True)
    (x * 2).sum().backward()  # and nothing is left of the refusals
    assert x.grad.tolist() == [2, 2]
