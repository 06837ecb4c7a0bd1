"""Forward-mode differentiation: dual tensors, modules, a custom Function with jvp; double backward through custom Functions, checked numerically."""

import torch
import torch.autograd.forward_ad as fwAD
from torch import nn


class Sinh(torch.autograd.Function):
    """Saves an intermediate result, which it returns for double backward."""

    @staticmethod
    def forward(ctx, x):
        expx, expnegx = torch.exp(x), torch.exp(-x)
        ctx.save_for_backward(expx, expnegx)
        return (expx - expnegx) / 2, expx, expnegx

    @staticmethod
    def backward(ctx, grad_out, grad_expx, grad_expnegx):
        expx, expnegx = ctx.saved_tensors
        return grad_out * (expx + expnegx) / 2 + grad_expx * expx - grad_expnegx * expnegx


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,), (_, dx) = inputs, output
        ctx.save_for_backward(x, dx)
        ctx.save_for_forward(x, dx)

    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        x, dx = ctx.saved_tensors
        return grad_output * dx + grad_dx * 6 * x

    @staticmethod
    def jvp(ctx, x_t):
        x, dx = ctx.saved_tensors
        return x_t * dx, 6 * x * x_t


class LegendrePolynomial3(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(input):
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


def main():
    torch.manual_seed(8)
    primal, tangent = torch.randn(6), torch.randn(6)
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        print(fwAD.unpack_dual(dual).tangent is tangent, fwAD.unpack_dual(primal).tangent is None)
        out = fwAD.unpack_dual((dual.sin() * dual).cumsum(0))
        print([round(v, 5) for v in out.tangent.tolist()])
    print("level", fwAD._current_level)

    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 3), nn.Softmax(-1))
    x = torch.randn(7, 5)
    tangents = {name: torch.rand_like(p) for name, p in model.named_parameters()}
    with fwAD.dual_level():
        for name, p in list(model.named_parameters()):
            module, _, attribute = name.rpartition(".")
            owner = model.get_submodule(module)
            delattr(owner, attribute)
            setattr(owner, attribute, fwAD.make_dual(p, tangents[name]))
        jvp = fwAD.unpack_dual(model(x)).tangent
    print("through modules", tuple(jvp.shape), f"{jvp.norm().item():.6f}")

    def sinh(x):
        return Sinh.apply(x)[0]

    def cube(x):
        return Cube.apply(x)[0]

    x = torch.rand(3, 3, requires_grad=True, dtype=torch.double)
    print(torch.autograd.gradcheck(sinh, x), torch.autograd.gradgradcheck(sinh, x))
    print(torch.autograd.gradcheck(cube, x, check_forward_ad=True), torch.autograd.gradgradcheck(cube, x))
    out = sinh(x)
    (grad_x,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad_x.sum(), x)
    print(torch.allclose(second, out), out.grad_fn.name(), type(out.grad_fn).__name__)
    print(torch.func.vmap(torch.func.grad(LegendrePolynomial3.apply))(torch.linspace(-1, 1, 5)).tolist())

    coefficients = [torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3)]
    a, b, c, d = coefficients
    grid = torch.linspace(-torch.pi, torch.pi, 200)
    for t in range(60):
        y = a + b * LegendrePolynomial3.apply(c + d * grid)
        loss = (y - torch.sin(grid)).pow(2).sum()
        if t % 20 == 19:
            print(t, f"{loss.item():.5f}")
        loss.backward()
        with torch.no_grad():
            for w in coefficients:
                w -= 5e-6 * w.grad
                w.grad = None
    print(f"y = {a.item():.4f} + {b.item():.4f} * P3({c.item():.4f} + {d.item():.4f} x)")


if __name__ == "__main__":
    main()
