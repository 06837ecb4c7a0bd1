"""Functions of one's own with several outputs, in place, without outputs' gradients, with second derivatives, batched, and trained through."""

from typing import Any, Tuple

import torch
from torch import Tensor, nn
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class PolarFn(Function):
    """(x, y) -> (radius, angle); two outputs, either of which may stay unused."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
        r = torch.hypot(x, y)
        ctx.save_for_backward(x, y, r)
        ctx.set_materialize_grads(False)
        return r, torch.atan2(y, x)

    @staticmethod
    def backward(ctx, gr, ga):
        x, y, r = ctx.saved_tensors
        gx = gy = None
        if gr is not None:
            gx, gy = gr * x / r, gr * y / r
        if ga is not None:
            dx, dy = -ga * y / r**2, ga * x / r**2
            gx, gy = (dx, dy) if gx is None else (gx + dx, gy + dy)
        return gx if ctx.needs_input_grad[0] else None, gy if ctx.needs_input_grad[1] else None


class SortWithIndex(Function):
    @staticmethod
    def forward(x, dim, scale=1.0):
        values, index = torch.sort(x, dim=dim)
        return values * scale, index

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, dim, scale = inputs
        _, index = output
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(index)
        ctx.dim, ctx.scale = dim, scale

    @staticmethod
    def backward(ctx, grad, _):
        (index,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(ctx.dim, index, grad * ctx.scale), None, None

    @staticmethod
    def vmap(info, in_dims, x, dim, scale):
        x = x.movedim(in_dims[0], 0)
        return SortWithIndex.apply(x, dim + 1 if dim >= 0 else dim, scale), (0, 0)


class ScaleInPlace(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.mark_dirty(x)
        return x.mul_(factor)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.factor, None


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x, levels):
        return (x * levels).round() / levels

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-1, 1), None


class ReverseGradient(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Cubed(Function):
    """Second derivatives by an intermediate that is an output, too."""

    @staticmethod
    def forward(x):
        square = x**2
        return x * square, square

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(inputs[0], outputs[1])

    @staticmethod
    def backward(ctx, grad_cube, grad_square):
        x, square = ctx.saved_tensors
        return grad_cube * 3 * square + grad_square * 2 * x


class SumOfMany(Function):
    @staticmethod
    def forward(ctx, scale, *tensors):
        ctx.count, ctx.scale = len(tensors), scale
        return sum(tensors) * scale

    @staticmethod
    def backward(ctx, grad):
        return (None, *[grad * ctx.scale * (i + 1) for i in range(ctx.count)])


class Quantized(nn.Module):
    def __init__(self, inside, outside, levels):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outside, inside))
        self.bias = nn.Parameter(torch.zeros(outside))
        self.levels = levels
        nn.init.uniform_(self.weight, -0.3, 0.3)

    def forward(self, x):
        return LinearFunction.apply(x, StraightThrough.apply(self.weight, self.levels), self.bias)

    def extra_repr(self):
        return f"{self.weight.shape[1]} -> {self.weight.shape[0]}, levels={self.levels}"


def domain_adversarial():
    torch.manual_seed(3)
    feature, label, domain = Quantized(6, 12, 16), nn.Linear(12, 2), nn.Linear(12, 2)
    everything = nn.ModuleDict({"feature": feature, "label": label, "domain": domain})
    print(everything)
    opt = torch.optim.SGD(everything.parameters(), lr=0.3, momentum=0.9, dampening=0.1, weight_decay=1e-4)
    x = torch.randn(64, 6)
    y, d = (x[:, 0] * x[:, 1] > 0).long(), (x[:, 2] > 0).long()
    for step in range(20):
        opt.zero_grad()
        h = torch.tanh(feature(x))
        loss = nn.functional.cross_entropy(label(h), y) + nn.functional.cross_entropy(domain(ReverseGradient.apply(h, 0.1 * step / 20)), d)
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(f"step {step:2d} loss {loss.item():.5f} |g| {feature.weight.grad.norm():.5f}")


def main():
    torch.manual_seed(0)
    x = torch.randn(5, dtype=torch.double, requires_grad=True)
    y = torch.randn(5, dtype=torch.double, requires_grad=True)
    print(gradcheck(PolarFn.apply, (x, y)), gradgradcheck(Cubed.apply, (x,)), gradcheck(Cubed.apply, (x,)))
    r, a = PolarFn.apply(x, y)
    print(r.grad_fn.name(), r.grad_fn is a.grad_fn, a.output_nr)
    (gx,) = torch.autograd.grad(r.sum(), x, retain_graph=True)
    print(gx, torch.autograd.grad(a.sum(), [x, y], grad_outputs=None)[1])
    values, index = SortWithIndex.apply(x.reshape(1, 5) * torch.tensor([[1.0], [-1.0]], dtype=torch.double), 1, 2.0)
    print(index, index.requires_grad, values.requires_grad)
    (values * torch.arange(5)).sum().backward()
    print(x.grad)
    print(torch.vmap(lambda t: SortWithIndex.apply(t, 0, 1.0)[0])(torch.tensor([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])))
    z = torch.ones(3, requires_grad=True)
    w = z.clone()
    out = ScaleInPlace.apply(w, 4.0)
    print(out is w, w._version, w.grad_fn.name())
    w.sum().backward()
    print(z.grad)
    try:
        (g,) = torch.autograd.grad(ScaleInPlace.apply(z.clone(), 2.0).sum(), z, create_graph=True)
        g.sum().backward()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    parts = [torch.ones(2, requires_grad=True) for _ in range(4)]
    SumOfMany.apply(0.5, *parts).sum().backward()
    print([p.grad[0].item() for p in parts])
    try:
        ScaleInPlace.apply(z, 2.0)
    except RuntimeError as error:
        print(str(error))

    class Wrong(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g

    try:
        Wrong.apply(x, y).sum().backward()
    except RuntimeError as error:
        print(str(error))

    class NoGradient(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    try:
        NoGradient.apply(x).sum().backward()
    except NotImplementedError as error:
        print(str(error))
    domain_adversarial()
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        t = torch.zeros(2, requires_grad=True)
        try:
            (t.sqrt() * 0).sum().backward()
        except RuntimeError as error:
            print(str(error))


if __name__ == "__main__":
    main()
