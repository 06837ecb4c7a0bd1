"""Per-sample gradients with torch.func: grad under vmap against a loop, clipped and noised as differential privacy does; Jacobians, Hessians, vjp."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, 3, 1)
        self.fc1 = nn.Linear(8 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def main():
    torch.manual_seed(7)
    data, targets = torch.randn(16, 1, 12, 12), torch.randint(0, 10, (16,))
    model = SimpleCNN()

    def compute_grad(sample, target):
        loss = F.nll_loss(model(sample.unsqueeze(0)), target.unsqueeze(0))
        return torch.autograd.grad(loss, list(model.parameters()))

    loop = [torch.stack(shards) for shards in zip(*[compute_grad(data[i], targets[i]) for i in range(16)])]
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
        return F.nll_loss(predictions, target.unsqueeze(0))

    each = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
    for by_loop, by_vmap in zip(loop, each.values()):
        assert torch.allclose(by_loop, by_vmap, atol=3e-3, rtol=1e-5)
    for name, value in each.items():
        print(name, tuple(value.shape), f"{value.flatten(1).norm(dim=1).mean():.6f}")
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()], 1).norm(dim=1)
    scale = (1.0 / norms).clamp(max=1.0)
    generator = torch.Generator().manual_seed(1)
    noised = {k: torch.einsum("b,b...->...", scale, g) + 0.1 * torch.randn(g.shape[1:], generator=generator) for k, g in each.items()}
    print("noised", f"{sum(g.square().sum() for g in noised.values()).sqrt():.5f}")

    weight, bias, x = torch.randn(6, 6), torch.randn(6), torch.randn(6)
    predict = lambda weight, bias, x: F.linear(x, weight, bias).tanh()  # noqa: E731
    forward, reverse = jacfwd(predict, argnums=2)(weight, bias, x), jacrev(predict, argnums=2)(weight, bias, x)
    print("jacobians", torch.allclose(forward, reverse), f"{forward.norm():.5f}")
    batched = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, torch.randn(5, 6))
    print(tuple(batched.shape), f"{batched.norm():.5f}")
    hess = hessian(lambda x: predict(weight, bias, x).sum())(x)
    print("hessian", torch.allclose(hess, hess.T, atol=1e-6), f"{hess.trace():.5f}")
    output, pull = vjp(lambda x: predict(weight, bias, x), x)
    print("vjp", [round(v, 5) for v in pull(torch.ones(6))[0].tolist()])
    _, tangent = jvp(lambda x: predict(weight, bias, x), (x,), (torch.ones(6),))
    print("jvp", [round(v, 5) for v in tangent.tolist()])
    _, hvp = jvp(grad(lambda x: predict(weight, bias, x).pow(3).sum()), (x,), (torch.ones(6),))
    print("hvp", [round(v, 5) for v in hvp.tolist()])
    value, aux = grad(lambda x: (x.sin().sum(), x.cos()), has_aux=True)(x)
    print(torch.equal(value, x.cos()), torch.equal(aux, x.cos()))
    chunked = vmap(grad(compute_loss), in_dims=(None, None, 0, 0), chunk_size=5, randomness="error")(params, buffers, data, targets)
    print("chunks", max((a - b).abs().max().item() for a, b in zip(chunked.values(), each.values())) < 1e-6)


if __name__ == "__main__":
    main()
