"""Parametrizations (symmetric, skew, orthogonal, spectral norm), cached; pruning by magnitude, in groups, globally, by a method of one's own."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
import torch.nn.utils.prune as prune


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(16 * 4 * 4, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.view(-1, int(x.nelement() / x.shape[0])))))


def main():
    torch.manual_seed(10)
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    print(layer)
    print(torch.allclose(layer.weight, layer.weight.T), parametrize.is_parametrized(layer), list(dict(layer.named_parameters())))
    layer.weight = torch.arange(9.0).view(3, 3)
    print(layer.weight.tolist())
    layer_orthogonal = nn.Linear(4, 4)
    parametrize.register_parametrization(layer_orthogonal, "weight", Skew())
    parametrize.register_parametrization(layer_orthogonal, "weight", MatrixExponential())
    X = layer_orthogonal.weight
    print(torch.dist(X.T @ X, torch.eye(4)).item() < 1e-5, layer_orthogonal.parametrizations.weight)
    with parametrize.cached():
        print(layer_orthogonal.weight is layer_orthogonal.weight)
    seq = nn.Sequential(
        nn.utils.parametrizations.orthogonal(nn.Linear(6, 6)),
        nn.Tanh(),
        nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)),
        nn.utils.parametrizations.weight_norm(nn.Linear(6, 2)),
    )
    optimizer = torch.optim.SGD(seq.parameters(), lr=0.1)
    x, y = torch.randn(32, 6), torch.randint(2, (32,))
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(seq(x), y)
        loss.backward()
        optimizer.step()
    Q = seq[0].weight
    print(f"loss {loss.item():.5f}", torch.allclose(Q @ Q.T, torch.eye(6), atol=1e-5), sorted(seq.state_dict()))
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
    print(type(layer), list(dict(layer.named_parameters())))

    model = LeNet()
    module = model.conv1
    prune.random_unstructured(module, name="weight", amount=0.3)
    prune.l1_unstructured(module, name="bias", amount=3)
    print(sorted(n for n, _ in module.named_parameters()), sorted(n for n, _ in module.named_buffers()), len(module._forward_pre_hooks))
    prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
    print("zeros", int((module.weight == 0).sum()), [int(c) for c in (module.weight.flatten(1) == 0).sum(1)])
    for hook in module._forward_pre_hooks.values():
        if hook._tensor_name == "weight":
            print([type(h).__name__ for h in hook])
    out = model(torch.randn(2, 1, 28, 28))
    out.sum().backward()
    print(f"{module.weight_orig.grad.norm().item():.5f}", sorted(model.state_dict())[:4])
    prune.remove(module, "weight")
    print(sorted(n for n, _ in module.named_parameters()))
    model = LeNet()
    to_prune = tuple((m, "weight") for m in (model.conv1, model.conv2, model.fc1, model.fc2))
    prune.global_unstructured(to_prune, pruning_method=prune.L1Unstructured, amount=0.2)
    print("sparsity", [round(100.0 * float(torch.sum(m.weight == 0)) / float(m.weight.nelement()), 2) for m, _ in to_prune])
    EveryOther.apply(model.fc2, "bias")
    print(model.fc2.bias_mask.tolist(), prune.is_pruned(model))


if __name__ == "__main__":
    main()
