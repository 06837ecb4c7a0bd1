"""Empirical neural tangent kernels two ways, and ensembles by stacked parameters under vmap."""

import copy

import torch
import torch.nn as nn
from torch.func import functional_call, jacrev, jvp, stack_module_state, vjp, vmap


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, (3, 3))
        self.conv2 = nn.Conv2d(8, 8, (3, 3))
        self.fc = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        x = self.conv1(x).relu()
        x = self.conv2(x).relu()
        return self.fc(x.flatten(1))


class MLP(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, classes)

    def forward(self, x):
        x = x.flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def main():
    torch.manual_seed(9)
    net = CNN()
    params = {k: v.detach() for k, v in net.named_parameters()}
    x1, x2 = torch.randn(6, 3, 8, 8), torch.randn(4, 3, 8, 8)

    def fnet_single(params, x):
        return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def by_jacobians(x1, x2, compute="full"):
        jac1 = [j.flatten(2) for j in vmap(jacrev(fnet_single), (None, 0))(params, x1).values()]
        jac2 = [j.flatten(2) for j in vmap(jacrev(fnet_single), (None, 0))(params, x2).values()]
        expression = {"full": "Naf,Mbf->NMab", "trace": "Naf,Maf->NM", "diagonal": "Naf,Maf->NMa"}[compute]
        return torch.stack([torch.einsum(expression, j1, j2) for j1, j2 in zip(jac1, jac2)]).sum(0)

    def by_products(x1, x2):
        def get_ntk(x1, x2):
            def func_x1(params):
                return fnet_single(params, x1)

            def func_x2(params):
                return fnet_single(params, x2)

            output, vjp_fn = vjp(func_x1, params)

            def get_ntk_slice(vec):
                return jvp(func_x2, (params,), vjp_fn(vec))[1]

            return vmap(get_ntk_slice)(torch.eye(output.numel()).view(output.numel(), -1))

        return vmap(vmap(get_ntk, (None, 0)), (0, None))(x1, x2)

    full, products = by_jacobians(x1, x2), by_products(x1, x2)
    print(tuple(full.shape), torch.allclose(full, products, atol=1e-4), f"{full.norm().item():.4f}")
    print("trace", torch.allclose(by_jacobians(x1, x2, "trace"), torch.einsum("NMKK->NM", full), rtol=1e-4))
    print("diagonal", f"{by_jacobians(x1, x2, 'diagonal').mean().item():.5f}")
    print("smallest eigenvalue", f"{torch.linalg.eigvalsh(by_jacobians(x1, x1, 'trace')).min().item():.4f}")

    models = [MLP() for _ in range(5)]
    minibatches, targets = torch.randn(5, 16, 1, 8, 8), torch.randint(0, 4, (80,))
    params, buffers = stack_module_state(models)
    base_model = copy.deepcopy(models[0]).to("meta")

    def fmodel(params, buffers, x):
        return functional_call(base_model, (params, buffers), (x,))

    print([tuple(p.size()) for p in params.values()])
    each = vmap(fmodel)(params, buffers, minibatches)
    assert torch.allclose(each, torch.stack([model(batch) for model, batch in zip(models, minibatches)]), atol=1e-3, rtol=1e-5)
    shared = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, minibatches[0])
    print(tuple(each.shape), tuple(shared.shape), f"{shared.std(0).mean().item():.5f}")
    optimizer = torch.optim.Adam(params.values(), lr=1e-2)
    for step in range(5):
        scores = vmap(fmodel)(params, buffers, minibatches)
        loss = vmap(nn.functional.cross_entropy)(scores, targets.view(5, 16))
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        print(step, [round(v, 5) for v in loss.tolist()])


if __name__ == "__main__":
    main()
