"""Programs of nested transforms, harder than those of test_programs.py, give what PyTorch's give: values, structures, random numbers, texts."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")
PROGRAMS: dict[str, Any] = {}


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


def data(t: Any, *shape: int, seed: int = 0) -> Any:
    return t.tensor(np.random.default_rng(seed + sum(shape)).normal(size=shape))


def net(t: Any, norm: bool = True, conv: bool = False) -> Any:
    nn = t.nn
    if conv:
        m = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.GroupNorm(1, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2))
    else:
        m = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6) if norm else nn.Identity(), nn.Linear(6, 2))
    m = m.double()
    for k, p in enumerate(m.parameters()):
        p.data.copy_((t.arange(p.numel(), dtype=t.float64) * 0.7 + k).sin().view(p.shape))
    return m


def cube(t: Any) -> Any:
    class Cube(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, power):
            return x**power, x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.power = inputs
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, _):
            (x,) = ctx.saved_tensors
            return g * ctx.power * x ** (ctx.power - 1), None

        @staticmethod
        def jvp(ctx, tangent, _):
            (x,) = ctx.saved_tensors
            return tangent * ctx.power * x ** (ctx.power - 1), None

    return Cube


@program
def vmap_grad_vmap(t):
    x = data(t, 5, 3, 4)
    w = data(t, 4)
    return t.vmap(t.func.grad(lambda w, b: t.vmap(lambda r: (r * w).sin().sum())(b).pow(2).sum()), in_dims=(None, 0))(w, x)


@program
def jvp_of_vjp(t):
    x, v, c = data(t, 4), data(t, 4, seed=1), data(t, 4, seed=2)

    def pull(x):
        return t.func.vjp(lambda a: a.exp() * a.sum(), x)[1](c)[0]

    return t.func.jvp(pull, (x,), (v,))


@program
def vjp_of_jvp(t):
    x, v, c = data(t, 4), data(t, 4, seed=1), data(t, 4, seed=2)
    out, pull = t.func.vjp(lambda x, v: t.func.jvp(lambda a: a.tanh() * a.prod(), (x,), (v,)), x, v)
    return out, pull((c, c * 2))


@program
def hessian_of_module_by_key(t):
    m = net(t)
    x = data(t, 3, 4)
    params = {k: v.detach() for k, v in m.named_parameters()}
    return t.func.jacfwd(t.func.jacrev(lambda w: t.func.functional_call(m, {**params, "0.weight": w}, (x,)).sum()))(params["0.weight"])


@program
def trees_in_out(t):
    x = data(t, 3, 5)
    y = data(t, 5, 3)

    def f(args):
        a, (b, c) = args["a"], args["rest"]
        return {"sum": a + b, "pair": (a * 2, [b.sum(), c["k"]])}

    return t.vmap(f, in_dims=({"a": 0, "rest": (1, {"k": None})},), out_dims={"sum": 1, "pair": (0, [0, None])})(
        {"a": x, "rest": (y, {"k": data(t, 2)})}
    )


@program
def out_dims_prefix(t):
    return t.vmap(lambda a: (a, (a * 2, a * 3)), out_dims=(0, 1))(data(t, 3, 4))


@program
def out_dims_single_for_tuple(t):
    return t.vmap(lambda a: (a, a * 2), out_dims=1)(data(t, 3, 4))


@program
def in_dims_prefix(t):
    return t.vmap(lambda a, b: a[0] + a[1] * b, in_dims=(1, 0))((data(t, 3, 4), data(t, 2, 4)[0:1].expand(3, 4)), data(t, 4))


@program
def random_different(t):
    t.manual_seed(3)
    return t.vmap(lambda a: a + t.randn(4, dtype=t.float64), randomness="different")(data(t, 3, 4)), t.rand(2)


@program
def random_same(t):
    t.manual_seed(3)
    return t.vmap(lambda a: a + t.randn(4, dtype=t.float64) * t.bernoulli(t.full((4,), 0.4, dtype=t.float64)), randomness="same")(
        data(t, 3, 4)
    ), t.rand(2)


@program
def random_batched_probabilities(t):
    t.manual_seed(3)
    return t.vmap(lambda a: t.bernoulli(a.sigmoid()), randomness="different")(data(t, 3, 4))


@program
def random_many(t):
    t.manual_seed(3)

    def f(a):
        return (
            t.rand_like(a),
            t.randint(0, 9, (2,)),
            t.randperm(5),
            t.normal(a, 1.0),
            t.multinomial(a.softmax(0), 2),
            a.clone().exponential_(),
        )

    return t.vmap(f, randomness="different")(data(t, 3, 4))


@program
def random_nested(t):
    t.manual_seed(5)
    return t.vmap(t.vmap(lambda a: a + t.rand(2, dtype=t.float64), randomness="same"), randomness="different")(data(t, 2, 3, 2))


@program
def random_chunks(t):
    t.manual_seed(5)
    return t.vmap(lambda a: a * t.rand((), dtype=t.float64), randomness="different", chunk_size=2)(data(t, 5)), t.rand(1)


@program
def chunk_sizes(t):
    x = data(t, 7, 3)
    return [t.vmap(lambda a: (a.sum(), a), chunk_size=c, out_dims=(0, 1))(x) for c in (1, 2, 3, 7, 100)]


@program
def function_generated_nondiff(t):
    C = cube(t)
    return t.vmap(t.func.grad(lambda a: C.apply(a, 3)[0].sum()))(data(t, 3, 4)), t.vmap(lambda a: C.apply(a, 2))(data(t, 3, 4))


@program
def function_hessian(t):
    C = cube(t)
    return t.func.jacrev(t.func.grad(lambda a: C.apply(a, 3)[0].sum()))(data(t, 4))


@program
def function_vmap_static(t):
    class S(t.autograd.Function):
        @staticmethod
        def forward(x, dim):
            return x.sort(dim).values, x.argsort(dim)

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.dim = inputs[1]
            ctx.save_for_backward(outputs[1])
            ctx.mark_non_differentiable(outputs[1])

        @staticmethod
        def backward(ctx, g, _):
            (i,) = ctx.saved_tensors
            return t.zeros_like(g).scatter(ctx.dim, i, g), None

        @staticmethod
        def vmap(info, in_dims, x, dim):
            assert info.batch_size == 3 and info.randomness in ("error", "same", "different")
            x = x.movedim(in_dims[0], 0)
            return S.apply(x, dim + 1 if dim >= 0 else dim), (0, 0)

    f = lambda x: (S.apply(x, 0)[0] * t.arange(4, dtype=t.float64)).sum()
    return t.vmap(t.func.grad(f))(data(t, 3, 4)), t.vmap(lambda a: S.apply(a, -1), in_dims=1)(data(t, 4, 3))


@program
def function_once_differentiable_like(t):
    class D(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, i, o):
            ctx.save_for_backward(*i)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return (g * y if ctx.needs_input_grad[0] else None), (g * x if ctx.needs_input_grad[1] else None)

    x, y = data(t, 3), data(t, 3, seed=4)
    return t.func.grad(lambda a: D.apply(a, y).sum())(x), t.func.jacrev(lambda a, b: D.apply(a, b), argnums=(0, 1))(x, y)


@program
def linearize_tree(t):
    x, y = data(t, 4), data(t, 4, seed=1)
    out, push = t.func.linearize(lambda a, b: {"s": (a * b).sum(), "l": [a.sin(), b.cos()]}, x, y)
    return out, push(y, x), push(x * 2, y)


@program
def linearize_matches_jvp_vmapped(t):
    x = data(t, 4)
    out, push = t.func.linearize(lambda a: a.softmax(0) * a, x)
    return t.vmap(push)(t.eye(4, dtype=t.float64))


@program
def jacfwd_jacrev_aux(t):
    x = data(t, 4)

    def g(a):
        j, aux = t.func.jacrev(lambda b: (b.sin() * b.sum(), {"b": b * 2}), has_aux=True)(a)
        return j, (aux, a)

    return t.func.jacfwd(g, has_aux=True)(x)


@program
def jacrev_argnums_tree(t):
    return t.func.jacrev(lambda p, q: {"o": p["a"] * q, "r": (p["b"].sum() * q[0],)}, argnums=(0, 1))(
        {"a": data(t, 3), "b": data(t, 2)}, data(t, 3, seed=2)
    )


@program
def jacfwd_randomness(t):
    t.manual_seed(0)
    return t.func.jacfwd(lambda a: t.nn.functional.dropout(a, 0.5), randomness="same")(data(t, 6))


@program
def functionalize_like(t):
    def f(x):
        y = x.clone()
        v = y[1:]
        v.add_(1)
        v.mul_(x[:-1])
        y[0] = y.sum()
        return y.sum()

    return t.func.functionalize(f)(data(t, 4)), t.func.functionalize(t.func.grad(f))(data(t, 4)), t.func.functionalize(t.vmap(f))(data(t, 3, 4))


@program
def ensembles(t):
    models = [net(t) for _ in range(3)]
    for k, m in enumerate(models):
        for p in m.parameters():
            p.data.mul_(1 + k / 5)
    params, buffers = t.func.stack_module_state(models)
    base = models[0]
    x, y = data(t, 5, 4), t.tensor([0, 1, 1, 0, 1])

    def loss(p, b, x, y):
        return t.nn.functional.cross_entropy(t.func.functional_call(base, (p, b), (x,)), y)

    grads = t.vmap(t.func.grad(loss), in_dims=(0, 0, None, None))(params, buffers, x, y)
    each = t.vmap(t.vmap(t.func.grad(loss), in_dims=(None, None, 0, 0)), in_dims=(0, 0, None, None))(params, buffers, x.unsqueeze(1), y.unsqueeze(1))
    out = t.vmap(lambda p, b, x: t.func.functional_call(base, (p, b), (x,)), in_dims=(0, 0, 0))(params, buffers, data(t, 3, 5, 4))
    return grads, each, out, [p.requires_grad for p in params.values()]


@program
def ensemble_backward(t):
    models = [net(t) for _ in range(2)]
    params, buffers = t.func.stack_module_state(models)
    out = t.vmap(lambda p, b, x: t.func.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, data(t, 5, 4))
    out.pow(2).sum().backward()
    return {k: p.grad for k, p in params.items()}


@program
def conv_per_sample(t):
    m = net(t, conv=True)
    p = {k: v.detach() for k, v in m.named_parameters()}
    x, y = data(t, 3, 2, 4, 4), t.tensor([0, 1, 1])

    def loss(p, x, y):
        return t.nn.functional.cross_entropy(t.func.functional_call(m, p, (x[None],)), y[None])

    return t.vmap(t.func.grad_and_value(loss), in_dims=(None, 0, 0))(p, x, y)


@program
def conv_hessian_vector(t):
    m = net(t, conv=True)
    p = {k: v.detach() for k, v in m.named_parameters()}
    x = data(t, 3, 2, 4, 4)
    v = {k: a.cos() for k, a in p.items()}
    return t.func.jvp(t.func.grad(lambda p: t.func.functional_call(m, p, (x,)).tanh().sum()), (p,), (v,))


@program
def ntk(t):
    m = net(t)
    p = {k: v.detach() for k, v in m.named_parameters()}
    f = lambda p, x: t.func.functional_call(m, p, (x[None],))[0]

    def kernel(x1, x2):
        j1 = t.vmap(t.func.jacrev(f), (None, 0))(p, x1)
        j2 = t.vmap(t.func.jacrev(f), (None, 0))(p, x2)
        return sum(t.einsum("Naf,Maf->NMa", a.flatten(2), b.flatten(2)) for a, b in zip(j1.values(), j2.values()))

    return kernel(data(t, 3, 4), data(t, 2, 4))


@program
def ntk_vjp(t):
    m = net(t)
    p = {k: v.detach() for k, v in m.named_parameters()}
    f = lambda p, x: t.func.functional_call(m, p, (x[None],))[0]

    def one(x1, x2):
        out, pull = t.func.vjp(lambda p: f(p, x1), p)
        return t.vmap(lambda v: t.func.jvp(lambda p: f(p, x2), (p,), pull(v))[1])(t.eye(2, dtype=t.float64))

    return t.vmap(t.vmap(one, (None, 0)), (0, None))(data(t, 3, 4), data(t, 2, 4))


@program
def maml(t):
    m = net(t, norm=False)
    p = {k: v.detach() for k, v in m.named_parameters()}
    x, y = data(t, 4, 5, 4), data(t, 4, 5, 2)

    def loss(p, x, y):
        return (t.func.functional_call(m, p, (x,)) - y).pow(2).mean()

    def adapted(p, x, y):
        g = t.func.grad(loss)(p, x, y)
        return loss({k: p[k] - 0.1 * g[k] for k in p}, x, y)

    return t.func.grad_and_value(lambda p: t.vmap(adapted, (None, 0, 0))(p, x, y).mean())(p)


@program
def mlp_jacfwd_over_params(t):
    m = net(t)
    p = {k: v.detach() for k, v in m.named_parameters()}
    return t.func.jacfwd(lambda p: t.func.functional_call(m, p, (data(t, 2, 4),)))(p)


@program
def functional_call_kwargs(t):
    class M(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = t.nn.Parameter(data(t, 3))
            self.register_buffer("b", t.zeros(3, dtype=t.float64))

        def forward(self, x, scale=1.0):
            self.b.add_(1)
            return self.w * x * scale + self.b

    m = M()
    nb = t.ones(3, dtype=t.float64)
    return t.func.functional_call(m, [{"w": data(t, 3, seed=3)}, {"b": nb}], (data(t, 3),), {"scale": 2.0}), nb, m.b


@program
def escaped_grad(t):
    kept = []
    t.func.grad(lambda a: (kept.append(a * 2), a.sum())[1])(data(t, 3))
    return kept[0] * 2


@program
def jvp_structure(t):
    return t.func.jvp(lambda a, b: a["x"] * b, ({"x": data(t, 3)}, data(t, 3, seed=1)), ({"x": data(t, 3, seed=2)}, data(t, 3, seed=3)))


@program
def vmap_attention(t):
    q = data(t, 2, 3, 4, 5)
    F = t.nn.functional.scaled_dot_product_attention
    return t.vmap(lambda a, b: F(a, b, b, is_causal=True), (0, None))(q, data(t, 3, 4, 5)), t.vmap(t.func.grad(lambda a: F(a, a, a).sin().sum()))(q)


@program
def vmap_embedding(t):
    w = data(t, 7, 3)
    i = t.tensor([[0, 1], [5, 6], [2, 2]])
    f = lambda w, i: t.nn.functional.embedding(i, w).pow(2).sum()
    return t.vmap(t.func.grad(f), (None, 0))(w, i)


@program
def vmap_scatter_gather(t):
    x = data(t, 3, 5)
    i = t.tensor([[0, 4], [1, 1], [2, 3]])
    return t.vmap(
        lambda a, i: (
            a.gather(0, i),
            a.scatter_add(0, i, a[:2]),
            a.index_add(0, i, a[:2]),
            a.index_select(0, i),
            a.index_put((i,), a[:2], accumulate=True),
        )
    )(x, i)


@program
def vmap_einsum_bilinear(t):
    return t.vmap(lambda a, b: t.einsum("ij,jk,k->i", a, a, b), (2, None))(data(t, 3, 3, 4), data(t, 3)), t.vmap(
        lambda a: t.nn.functional.bilinear(a, a, data(t, 2, 3, 3))
    )(data(t, 5, 3))


@program
def vmap_fft(t):
    return t.vmap(lambda a: (t.fft.rfft(a).abs(), t.fft.fft2(a.outer(a)).real, t.fft.fftshift(a)))(data(t, 3, 6))


@program
def vmap_linalg(t):
    x = data(t, 4, 3, 3)
    s = lambda a: a @ a.mT + t.eye(3, dtype=t.float64)
    return t.vmap(
        lambda a: (
            t.linalg.det(a),
            t.linalg.inv(s(a)),
            t.linalg.cholesky(s(a)),
            t.linalg.eigvalsh(s(a)),
            t.linalg.norm(a, 2),
            t.linalg.matrix_power(a, 3),
            t.linalg.slogdet(a),
            t.linalg.lstsq(a, a).solution,
        )
    )(x)


@program
def grad_of_eigh_vmapped(t):
    s = lambda a: a @ a.mT + t.diag(t.arange(3.0, dtype=t.float64))
    return t.vmap(t.func.grad(lambda a: (t.linalg.eigh(s(a)).eigenvectors[0] ** 2 * t.arange(3.0, dtype=t.float64)).sum()))(data(t, 4, 3, 3))


@program
def jvp_of_eigh(t):
    x = data(t, 3, 3)
    return t.func.jvp(lambda a: t.linalg.svdvals(a), (x,), (x.mT,)), t.func.jvp(lambda a: t.linalg.qr(a), (x,), (x.mT,))


@program
def vmap_with_custom_pytree(t):
    NT = namedtuple("NT", "a b")
    r = t.vmap(lambda n: NT(n.a + n.b, n.b))(NT(data(t, 3), data(t, 3, seed=1)))
    return type(r).__name__, tuple(r), t.vmap(lambda d: OrderedDict(z=d["z"] * 2))(OrderedDict(z=data(t, 3)))


@program
def grads_under_inference_and_no_grad(t):
    x = data(t, 3)
    with t.no_grad():
        a = t.func.grad(lambda x: x.pow(3).sum())(x)
        b = t.func.jvp(lambda x: x.pow(3), (x,), (x,))
    with t.inference_mode():
        c = t.func.grad(lambda x: x.pow(3).sum())(data(t, 3))
    return a, b, c


@program
def mixed_with_autograd(t):
    w = data(t, 3).requires_grad_()
    g = t.func.vjp(lambda a: a.sin() * w, data(t, 3, seed=1))[1](data(t, 3, seed=2))[0]
    h = t.vmap(t.func.grad(lambda a: (a * w).pow(3).sum()))(data(t, 2, 3))
    (g.sum() + h.sum()).backward()
    return w.grad, g.requires_grad


@program
def autograd_grad_inside_grad(t):
    def f(x):
        (g,) = t.autograd.grad(x.pow(3).sum(), x, create_graph=True)
        return g.sum()

    return t.func.grad(f)(data(t, 3))


@program
def hooks_in_grad(t):
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 10)
        return y.sum()

    return t.func.grad(f)(data(t, 3)), seen, t.vmap(t.func.grad(f))(data(t, 2, 3)), seen


@program
def complex_grads(t):
    z = t.complex(data(t, 3), data(t, 3, seed=1))
    return (
        t.func.grad(lambda z: (z * z.conj()).real.sum())(z),
        t.func.vjp(lambda z: z**2, z)[1](z)[0],
        t.func.jvp(lambda z: z.exp(), (z,), (z,)),
        t.vmap(lambda z: z.abs())(z),
    )


@program
def autocast_in_vmap(t):
    w, x = data(t, 4, 4).float(), data(t, 3, 4).float()
    with t.autocast("cpu", dtype=t.bfloat16):
        g = t.vmap(t.func.grad(lambda w, x: (w @ x).float().sum()), (None, 0))(w, x)
        y = t.vmap(lambda x: w @ x)(x)
    return g, y.float()


@program
def hvp_forms(t):
    f = lambda x: (x.sin() * x.roll(1)).sum().exp()
    x, v = data(t, 4), data(t, 4, seed=1)
    return (
        t.func.jvp(t.func.grad(f), (x,), (v,))[1],
        t.func.vjp(t.func.grad(f), x)[1](v)[0],
        t.func.grad(lambda x: t.func.jvp(f, (x,), (v,))[1])(x),
        t.func.grad(lambda x: (t.func.grad(f)(x) * v).sum())(x),
        t.func.hessian(f)(x) @ v,
        t.autograd.functional.hvp(f, x, v)[1],
    )


@program
def laplacian(t):
    f = lambda x: (x**3).sum() * x.prod()

    def lap(x):
        return t.vmap(lambda v: t.dot(v, t.func.jvp(t.func.grad(f), (x,), (v,))[1]))(t.eye(3, dtype=t.float64)).sum()

    return t.vmap(lap)(data(t, 5, 3)), t.func.grad(lap)(data(t, 3))


@program
def pinn(t):
    m = net(t, norm=False)
    p = {k: v.detach() for k, v in m.named_parameters()}
    u = lambda p, x: t.func.functional_call(m, p, (t.stack([x, x * 2, x.sin(), x.cos()])[None],))[0, 0]
    uxx = t.func.grad(t.func.grad(u, argnums=1), argnums=1)
    loss = lambda p, xs: (t.vmap(uxx, (None, 0))(p, xs) + t.vmap(u, (None, 0))(p, xs)).pow(2).mean()
    return t.func.grad(loss)(p, data(t, 6))


@program
def print_wrappers(t):
    seen = []
    t.vmap(lambda a: seen.append(repr(a)) or a)(t.tensor([1.0, 2.0]))
    t.func.grad(lambda a: seen.append(repr(a)) or a.sum())(t.tensor([1.0, 2.0]))
    return seen


@program
def cond_where_nan(t):
    f = lambda x: t.where(x > 0, x.sqrt(), t.zeros_like(x)).sum()
    return t.vmap(t.func.grad(f))(data(t, 3, 4).abs() + 0.1), t.func.grad(lambda x: t.nan_to_num(x.log()).sum())(data(t, 3))


@program
def vmap_new_tensors(t):
    return t.vmap(
        lambda a: (
            a.new_zeros(2) + a.sum(),
            t.zeros_like(a),
            t.arange(3) + a.sum(),
            a.new_tensor([1.0]) * a[0],
            t.full((2,), 3.0) + a.sum(),
            t.eye(2) * a.max(),
        )
    )(data(t, 3, 4))


@program
def vmap_views(t):
    return t.vmap(
        lambda a: (
            a.view(4),
            a.reshape(4, 1),
            a.t(),
            a.permute(1, 0),
            a.unfold(0, 2, 1),
            a.diagonal(),
            a.expand(3, 2, 2),
            a.as_strided((2,), (1,)),
            a.split(1),
            a.chunk(2, 1),
            a.unbind(),
            a.squeeze(),
            a[..., None],
            a.flip(0),
            a.movedim(0, 1),
            a.stride(),
            a.is_contiguous(),
        )[:-2]
    )(data(t, 3, 2, 2))


@program
def vmap_strides(t):
    seen = []
    t.vmap(lambda a: seen.append((tuple(a.shape), a.stride(), a.dim(), a.numel(), a.is_contiguous(), len(a))) or a, in_dims=1)(data(t, 3, 2, 2))
    return seen


@program
def grad_through_vmap_inplace_view(t):
    def f(x):
        y = x.clone()
        z = y.view(2, 2)
        z[0].mul_(x[0])
        y[3] = 5.0
        return (y * x).sum()

    return t.vmap(t.func.grad(f))(data(t, 3, 4)), t.func.hessian(f)(data(t, 4)), t.func.jacfwd(f)(data(t, 4))


@program
def higher_forward(t):
    f = lambda x: x.sin() * x**2
    d = f
    out = []
    for k in range(4):
        g = d
        d = lambda x, g=g: t.func.jvp(g, (x,), (t.ones_like(x),))[1]
        out.append(d(data(t, 3)))
    return out


@program
def losses_per_sample(t):
    F = t.nn.functional
    x, y = data(t, 4, 3, 5), t.tensor([[0, 1, 4], [3, 2, 1], [0, 0, 0], [4, 4, 1]])
    return [
        t.vmap(t.func.grad(f))(x, y)
        for f in (
            lambda a, b: F.cross_entropy(a, b, label_smoothing=0.1),
            lambda a, b: F.nll_loss(a.log_softmax(1), b, reduction="sum"),
            lambda a, b: F.multi_margin_loss(a, b),
        )
    ] + [
        t.vmap(t.func.grad(f))(x, x.flip(0))
        for f in (
            F.mse_loss,
            F.smooth_l1_loss,
            F.huber_loss,
            lambda a, b: F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"),
            lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()),
            lambda a, b: F.cosine_embedding_loss(a, b, t.ones(3)),
            lambda a, b: F.triplet_margin_loss(a, b, b * 2),
        )
    ]


@program
def interpolate_pad_unfold(t):
    F = t.nn.functional
    x = data(t, 3, 1, 2, 4, 4)
    return t.vmap(
        lambda a: (
            F.interpolate(a, scale_factor=2, mode="bilinear"),
            F.pad(a, (1, 1, 2, 0), mode="reflect"),
            F.unfold(a, 2),
            F.avg_pool2d(a, 2),
            F.adaptive_max_pool2d(a, 2),
            F.grid_sample(a, t.zeros(1, 2, 2, 2, dtype=t.float64)),
            F.pixel_shuffle(a.repeat(1, 2, 1, 1), 2),
        )
    )(x)


@program
def keywords_are_handed_on_whole(t):
    return t.vmap(lambda a, *, b: a * b)(data(t, 3, 4), b=data(t, 3, 4, seed=1))


@program
def products_with_zeros(t):
    x = data(t, 3, 4)
    x[1, 2] = 0
    functions = (lambda a: a.prod(), lambda a: a.cumprod(0).sum(), lambda a: a.view(2, 2).prod(1).sum(), lambda a: a.amax() * a.median())
    return [(t.vmap(t.func.grad(f))(x), t.vmap(lambda a, f=f: t.func.jvp(f, (a,), (a,))[1])(x)) for f in functions] + [
        t.vmap(t.func.hessian(functions[0]))(x)
    ]


@program
def determinants(t):
    x = data(t, 3, 2, 2)
    functions = (t.linalg.det, lambda a: t.linalg.slogdet(a)[1], lambda a: t.linalg.solve(a, a[0]).sum())
    return [[t.func.hessian(f)(x[0]), t.func.jacrev(t.func.grad(f))(x[1]), t.vmap(t.func.grad(f))(x)] for f in functions]


@program
def masks(t):
    x, m, s = data(t, 3, 4), data(t, 3, 4, seed=1) > 0, data(t, 3, 4, seed=2)
    per_sample = t.func.grad(lambda x, m, s: x.masked_scatter(m, s).sin().sum(), argnums=(0, 2))
    return (
        t.vmap(per_sample)(x, m, s),
        t.vmap(lambda a: a.masked_select(m[0]))(x),
        t.vmap(t.func.grad(lambda a: a.masked_select(m[0]).pow(2).sum()))(x),
    )


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _flat(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_flat(v) for v in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def _same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            _same(a[k], b[k])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            _same(x, y)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape and a.dtype == b.dtype
        tolerance = 1e-9 if a.dtype in (np.float64, np.complex128) else 1e-5
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 100)
    else:
        assert a == b


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program_gives_what_pytorchs_gives(name: str) -> None:
    import torch.func  # noqa: F401 (the attribute of the package)

    found, expected = (_flat(PROGRAMS[name](t)) for t in (trt, torch))
    _same(found, expected)


def test_second_derivatives_of_scans_and_norms_agree_with_differences() -> None:
    """Where PyTorch's own are wrong: cumprod around a zero (forward over forward), parameters of a norm beside those below it."""
    x = data(trt, 4)
    x[2] = 0
    f = lambda a: a.cumprod(0).sum()
    m = net(trt)
    parameters = {k: v.detach() for k, v in m.named_parameters()}
    inputs = data(trt, 3, 4)
    loss = lambda w, scale: trt.func.functional_call(m, {**parameters, "0.weight": w, "2.weight": scale}, (inputs,)).pow(2).mean()
    given = parameters["0.weight"], parameters["2.weight"]
    step, unit = 1e-5, trt.zeros(6, 4, dtype=trt.float64)
    unit[1, 2] = step
    slope = trt.func.grad(loss, argnums=1)
    mixed = trt.func.jacfwd(slope, argnums=0)(*given)[:, 1, 2]
    assert trt.allclose(mixed, (slope(given[0] + unit, given[1]) - slope(given[0] - unit, given[1])) / (2 * step), atol=1e-8)
    second = trt.func.jacfwd(trt.func.jacfwd(f))(x)
    rows = [(trt.func.grad(f)(x + e) - trt.func.grad(f)(x - e)) / (2 * step) for e in trt.eye(4, dtype=trt.float64) * step]
    assert trt.allclose(second, trt.stack(rows), atol=1e-8)


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_hessians_of_determinants_in_a_batch(name: str) -> None:
    """Those of each element (PyTorch's are of the first one's factors)."""
    x = data(trt, 3, 2, 2)
    f = trt.linalg.det if name == "det" else lambda a: trt.linalg.slogdet(a)[1]
    assert trt.allclose(trt.vmap(trt.func.hessian(f))(x), trt.stack([trt.func.hessian(f)(a) for a in x]))


def test_what_outlives_a_transform() -> None:
    """A tensor kept from inside grad is its value; one kept from inside vmap stands for nothing."""
    kept: list[Any] = []
    trt.func.grad(lambda a: (kept.append(a * 2), a.sum())[1])(trt.ones(2))
    assert (kept[0] + 1).tolist() == [3.0, 3.0]
    trt.vmap(lambda a: kept.append(a) or a)(trt.ones(2))
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        kept[1] + 1


def test_a_plain_tensor_is_read_and_written_at_batched_indices():
    x, i = trt.tensor([10, 11, 12, 13]), trt.tensor([[0, 1], [3, 3]])
    assert trt.func.vmap(lambda t: x[t])(i).tolist() == x[i].tolist()
    assert trt.func.vmap(lambda t, y: y.clone().index_put_((t,), t))(i, x.expand(2, 4)).tolist() == [[0, 1, 12, 13], [10, 11, 12, 3]]
