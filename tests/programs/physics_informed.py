"""Physics in a loss: second derivatives by grad of grad, Sobol points, L-BFGS, an inverse problem, implicit layers, matrix exponentials, an ODE solved backwards."""

import contextlib
import functools
import itertools

import torch
from torch import nn
from torch.autograd import grad
from torch.quasirandom import SobolEngine


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Sine(nn.Module):
    def __init__(self, w=1.0):
        super().__init__()
        self.w = nn.Parameter(torch.as_tensor(w))

    def forward(self, x):
        return torch.sin(self.w * x)


def mlp(*sizes, act):
    layers = itertools.chain.from_iterable((nn.Linear(a, b), act()) for a, b in zip(sizes, sizes[1:]))
    return nn.Sequential(*list(layers)[:-1])


def derivative(u, x, order=1):
    for _ in range(order):
        (u,) = grad(u, x, torch.ones_like(u), create_graph=True)
    return u


def oscillator():
    """u'' + mu u' + k u = 0 with mu unknown, from noisy points."""
    torch.manual_seed(1)
    d, w0 = 1.5, 8.0
    w = (w0**2 - d**2) ** 0.5
    truth = lambda t: torch.exp(-d * t) * torch.cos(w * t)  # noqa: E731
    seen = torch.linspace(0, 1, 30)[:, None]
    values = truth(seen) + 0.01 * torch.randn_like(seen)
    net = mlp(1, 24, 24, 1, act=nn.Tanh)
    mu = nn.Parameter(torch.zeros(()))
    inner = torch.linspace(0, 1, 40)[:, None].requires_grad_()
    adam = torch.optim.Adam([*net.parameters(), mu], lr=5e-3)
    for step in range(60):
        adam.zero_grad()
        u = net(inner)
        du = derivative(u, inner)
        residual = derivative(du, inner) + mu * du + w0**2 * u
        loss = 1e-4 * residual.square().mean() + (net(seen) - values).square().mean()
        loss.backward()
        adam.step()
        if step % 20 == 0:
            print(f"oscillator {step:3d} {loss.item():.6f} mu {mu.item():.6f}")
    lbfgs = torch.optim.LBFGS([*net.parameters(), mu], max_iter=15, history_size=10, line_search_fn="strong_wolfe", tolerance_grad=1e-9)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        lbfgs.zero_grad()
        u = net(inner)
        du = derivative(u, inner)
        loss = 1e-4 * (derivative(du, inner) + mu * du + w0**2 * u).pow(2).mean() + (net(seen) - values).pow(2).mean()
        loss.backward()
        return loss

    first = lbfgs.step(closure)
    print(f"lbfgs {first.item():.6f} -> {closure().item():.6f} in {calls} calls, {sorted(lbfgs.state[lbfgs._params[0]])[:4]}")


def poisson():
    """-laplace u = f on a square, u = 0 at its border built in."""
    points = SobolEngine(2, scramble=False).draw(65)[1:].double()
    net = nn.Sequential(nn.Linear(2, 20), Sine(2.0), nn.Linear(20, 20), Sine(1.0), nn.Linear(20, 1))
    xy = points.clone().requires_grad_(True)
    x, y = xy.unbind(1)
    f = 2 * torch.pi**2 * torch.sin(torch.pi * x) * torch.sin(torch.pi * y)
    opt = torch.optim.Rprop(net.parameters(), lr=1e-3)

    def u(points):
        x, y = points[..., 0], points[..., 1]
        return net(points)[..., 0] * x * (1 - x) * y * (1 - y)

    for step in range(30):
        opt.zero_grad(set_to_none=False)
        (g,) = grad(u(xy).sum(), xy, create_graph=True)
        laplace = sum(grad(g[:, i].sum(), xy, create_graph=True)[0][:, i] for i in range(2))
        loss = torch.mean((laplace + f.detach()) ** 2)
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"poisson {step} {loss.item():.5f}")
    hessian = torch.func.vmap(torch.func.hessian(u))(points[:4])
    print(
        torch.allclose(
            hessian.diagonal(dim1=-2, dim2=-1).sum(-1),
            sum(grad(grad(u(xy).sum(), xy, create_graph=True)[0][:, i].sum(), xy, retain_graph=True)[0][:, i] for i in range(2))[:4],
        )
    )
    jac = torch.autograd.functional.jacobian(lambda p: u(p), points[:3], vectorize=True)
    print(jac.shape, torch.count_nonzero(jac.abs() > 0).item())


class FixedPoint(nn.Module):
    """z = tanh(W z + x), differentiated through the solution alone."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(size, size) / size**0.5)

    def step(self, z, x):
        return torch.tanh(z @ self.weight.T + x)

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for i in range(100):
                z, before = self.step(z, x), z
                if torch.linalg.vector_norm(z - before, float("inf")) < 1e-12:
                    break
        z = self.step(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.step(z0, x)

        def backward_hook(g):
            y = g
            for _ in range(60):
                y = grad(f0, z0, y, retain_graph=True)[0] + g
            return y

        if z.requires_grad:
            z.register_hook(backward_hook)
        return z


def implicit():
    torch.manual_seed(2)
    layer = FixedPoint(4)
    x = torch.randn(3, 4, requires_grad=True)
    print(torch.autograd.gradcheck(layer, x, atol=1e-6, check_undefined_grad=False), f"{layer(x).sum().item():.10f}")
    layer(x).pow(2).sum().backward()
    z = layer(x).detach()
    d = torch.diag_embed(1 - z**2)
    exact = torch.linalg.solve(torch.eye(4) - d @ layer.weight.detach(), d).transpose(1, 2) @ (2 * z)[..., None]
    print(torch.allclose(exact[..., 0], x.grad, atol=1e-9))


class Adjoint(torch.autograd.Function):
    """Runge-Kutta forward; the adjoint equation, solved backwards, for gradients."""

    @staticmethod
    def forward(ctx, f, y0, t, *parameters):
        with torch.no_grad():
            ys = odeint(f, y0, t)
        ctx.f, ctx.t = f, t
        ctx.save_for_backward(ys, *parameters)
        return ys

    @staticmethod
    def backward(ctx, grads):
        ys, *parameters = ctx.saved_tensors
        a = grads[-1].clone()
        total = [torch.zeros_like(p) for p in parameters]
        for i in range(len(ctx.t) - 1, 0, -1):
            h = ctx.t[i - 1] - ctx.t[i]

            def augmented(state):
                y, a = state[0].detach().requires_grad_(), state[1]
                with torch.enable_grad():
                    out = ctx.f(y)
                da, *dp = grad(out, (y, *parameters), -a, allow_unused=True)
                return [out.detach(), da, *[torch.zeros_like(p) if d is None else d for d, p in zip(dp, parameters)]]

            state = rk4(augmented, [ys[i], a, *total], h)
            a, total = state[1] + grads[i - 1], state[2:]
        return None, a, None, *total


def rk4(f, state, h):
    move = lambda s, k, c: [x + c * y for x, y in zip(s, k)]  # noqa: E731
    k1 = f(state)
    k2 = f(move(state, k1, h / 2))
    k3 = f(move(state, k2, h / 2))
    k4 = f(move(state, k3, h))
    return [s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4)]


def odeint(f, y, t):
    ys = [y]
    for a, b in zip(t, t[1:]):
        ys.append(rk4(lambda s: [f(s[0])], [ys[-1]], b - a)[0])
    return torch.stack(ys)


def neural_ode():
    torch.manual_seed(4)
    a = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0, 2, 21)
    truth = torch.stack([torch.linalg.matrix_exp(a * s) @ torch.tensor([2.0, 0.0]) for s in t])
    print(torch.dist(truth, odeint(functools.partial(torch.matmul, a), torch.tensor([2.0, 0.0]), t)).item() < 1e-3)
    f = mlp(2, 16, 2, act=nn.Softplus)
    plain = odeint(f, truth[0], t)
    by_graph = grad((plain - truth).square().mean(), list(f.parameters()))
    by_adjoint = grad((Adjoint.apply(f, truth[0], t, *f.parameters()) - truth).square().mean(), list(f.parameters()))
    print(max((p - q).abs().max().item() for p, q in zip(by_graph, by_adjoint)) < 1e-3)
    opt = torch.optim.Adamax(f.parameters(), lr=0.02)
    for step in range(12):
        opt.zero_grad()
        loss = nn.functional.smooth_l1_loss(Adjoint.apply(f, truth[0], t, *f.parameters()), truth, beta=0.5)
        loss.backward()
        opt.step()
    print(f"ode {loss.item():.8f}")


def main():
    oscillator()
    with default_dtype(torch.float64):
        torch.manual_seed(0)
        poisson()
        implicit()
        neural_ode()
    print(torch.get_default_dtype())


if __name__ == "__main__":
    main()
