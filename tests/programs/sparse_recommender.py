"""Recommendations: sparse gradients and two optimizers, bags of history, negative samples, a user graph by sparse products, ranks, a cold start by least squares, ALS."""

import itertools
from collections import defaultdict
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Batch(NamedTuple):
    user: torch.Tensor
    item: torch.Tensor
    rating: torch.Tensor


def events(users, items, count, g):
    taste, kind = torch.randn(users, 3, generator=g), torch.randn(items, 3, generator=g)
    user = torch.multinomial(torch.arange(1.0, users + 1).reciprocal(), count, replacement=True, generator=g)
    item = torch.randint(items, (count,), generator=g)
    rating = ((taste[user] * kind[item]).sum(1) + 0.3 * torch.randn(count, generator=g)).mul(2).round().clamp(-5, 5)
    seen = torch.unique(torch.stack([user, item]), dim=1, return_inverse=True)[1]
    first = torch.full((int(seen.max()) + 1,), count).scatter_reduce_(0, seen, torch.arange(count), "amin")
    keep = first.sort().values
    return Batch(user[keep], item[keep], rating[keep])


class Factors(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim, sparse=True), nn.Embedding(items, dim, sparse=True)
        self.history = nn.EmbeddingBag(items, dim, mode="sum", sparse=True, include_last_offset=True)
        self.bias = nn.Parameter(torch.zeros(items))
        self.mix = nn.Bilinear(dim, dim, 1, bias=False)
        for e in (self.user, self.item, self.history):
            nn.init.trunc_normal_(e.weight, std=0.1, a=-0.2, b=0.2)

    def forward(self, user, item, flat, offsets, weights):
        u = self.user(user) + self.history(flat, offsets, per_sample_weights=weights)
        return (u * self.item(item)).sum(-1) + self.bias[item] + self.mix(u, self.item(item)).squeeze(-1)


def histories(batch, users):
    of = defaultdict(list)
    for u, i in zip(batch.user.tolist(), batch.item.tolist()):
        of[u].append(i)
    return [torch.tensor(of[u][:8], dtype=torch.long) for u in range(users)]


def bags(history, users):
    chosen = [history[u] for u in users.tolist()]
    sizes = torch.tensor([0] + [len(c) for c in chosen])
    weights = torch.cat([torch.full((len(c),), 1 / max(len(c), 1) ** 0.5) for c in chosen])
    return torch.cat(chosen), sizes.cumsum(0), weights


def ndcg(scores, relevant, k=5):
    top = scores.topk(k).indices
    gains = relevant.gather(1, top) / torch.log2(torch.arange(k) + 2.0)
    ideal = relevant.sort(dim=1, descending=True).values[:, :k] / torch.log2(torch.arange(k) + 2.0)
    return (gains.sum(1) / ideal.sum(1).clamp(min=1e-9))[relevant.sum(1) > 0].mean()


def als(matrix, mask, dim=3, rounds=6, ridge=0.5):
    g = torch.Generator().manual_seed(5)
    v = torch.randn(matrix.shape[1], dim, generator=g, dtype=torch.float64)
    for _ in range(rounds):
        for side in range(2):
            m, w = (matrix, mask) if side == 0 else (matrix.T, mask.T)
            other = v if side == 0 else u  # noqa: F821
            gram = torch.einsum("ij,jk,jl->ikl", w, other, other) + ridge * torch.eye(dim, dtype=torch.float64)
            solved = torch.linalg.solve(gram, torch.einsum("ij,jk->ik", m * w, other))
            u, v = (solved, v) if side == 0 else (u, solved)  # noqa: F821
    return ((u @ v.T - matrix)[mask > 0] ** 2).mean().sqrt()


def main():
    torch.manual_seed(12)
    g = torch.Generator().manual_seed(4)
    users, items = 40, 25
    data = events(users, items, 600, g)
    print(len(data.user), data.rating.unique(return_counts=True)[1].tolist(), data._fields)
    history = histories(data, users)
    model = Factors(users, items, 6)
    sparse = torch.optim.SparseAdam([p for n, p in model.named_parameters() if n.endswith(".weight") and "mix" not in n], lr=0.02)
    dense = torch.optim.Adagrad([model.bias, *model.mix.parameters()], lr=0.05, lr_decay=1e-3, initial_accumulator_value=0.1)
    popularity = torch.bincount(data.item, minlength=items).float().pow(0.75)
    for epoch in range(4):
        order = torch.randperm(len(data.user), generator=g)
        total = 0.0
        for rows in order.chunk(10):
            b = Batch(*(t[rows] for t in data))
            flat, offsets, weights = bags(history, b.user)
            negative = torch.multinomial(popularity, len(rows), replacement=True, generator=g)
            good = model(b.user, b.item, flat, offsets, weights)
            bad = model(b.user, negative, flat, offsets, weights)
            loss = F.mse_loss(good, b.rating) + 0.3 * F.softplus(bad - good)[b.rating > 0].mean()
            sparse.zero_grad()
            dense.zero_grad()
            loss.backward()
            sparse.step()
            dense.step()
            total += loss.item() * len(rows)
        print(
            f"epoch {epoch} loss {total / len(data.user):.5f}", model.user.weight.grad.is_sparse, model.user.weight.grad.coalesce().indices().shape[1]
        )
    with torch.no_grad():
        grid = torch.cartesian_prod(torch.arange(users), torch.arange(items))
        flat, offsets, weights = bags(history, grid[:, 0])
        scores = model(grid[:, 0], grid[:, 1], flat, offsets, weights).view(users, items)
        relevant = torch.zeros(users, items).index_put_((data.user, data.item), data.rating.clamp(min=0))
        print(f"ndcg {ndcg(scores, relevant).item():.4f}", scores.argsort(1, descending=True)[0, :3].shape)
    adjacency = torch.sparse_coo_tensor(torch.stack([data.user, data.item]), (data.rating > 0).float(), (users, items)).coalesce()
    degree = torch.sparse.sum(adjacency, 1).to_dense().clamp(min=1)
    common = torch.sparse.mm(adjacency, adjacency.t().coalesce())
    print(adjacency._nnz(), degree.max().item(), common.is_sparse, common.to_dense().diagonal().sum().item())
    csr = adjacency.to_sparse_csr()
    print(
        csr.crow_indices()[:5].tolist(),
        torch.allclose(csr @ model.item.weight.detach(), adjacency.to_dense() @ model.item.weight.detach(), atol=1e-5),
    )
    spread = model.item.weight.detach().clone()
    for _ in range(3):
        to_users = torch.sparse.mm(adjacency, spread) / degree[:, None]
        spread = torch.addmm(0.5 * spread, adjacency.to_dense().T, to_users, alpha=0.1)
    print(f"{spread.norm().item():.5f}", f"{torch.sparse.softmax(adjacency, 1).to_dense().sum().item():.3f}")
    matrix, mask = (torch.zeros(users, items, dtype=torch.float64) for _ in range(2))
    matrix[data.user, data.item], mask[data.user, data.item] = data.rating.double(), 1.0
    print(f"als {als(matrix, mask).item():.6f}")
    cold = torch.linalg.lstsq(model.item.weight.detach()[:10], data.rating[:10, None])
    print(cold.solution.shape, f"{cold.solution.norm().item():.4f}", torch.linalg.matrix_rank(model.item.weight.detach()).item())
    pairs = torch.combinations(torch.arange(4), 2)
    print(
        pairs.T.tolist(),
        torch.tensor(list(itertools.accumulate([1, 2, 3]))),
        torch.bucketize(torch.tensor([0.5, 2.5]), torch.arange(4.0), right=True),
    )


if __name__ == "__main__":
    main()
