"""A graph convolutional network on a made network of friends: it learns everybody's group from four members of each and from who knows whom."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _common import Progress, finish, parse_options, plot_losses
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor, nn


def make_graph(groups: int = 4, size: int = 60, features: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """A stochastic block model: features `(N, features)`, edges in both directions `(2, E)`, groups `(N,)`.

    Members of a group know each other with probability 0.12, others with 0.01. Features are a weak hint at the group in strong noise.
    """
    labels = torch.arange(groups).repeat_interleave(size)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    known = torch.rand(len(labels), len(labels)) < torch.where(same, 0.12, 0.01)
    edges = torch.triu(known, diagonal=1).nonzero().T
    hint = torch.randn(groups, features)
    return 0.4 * hint[labels] + torch.randn(len(labels), features), torch.cat([edges, edges.flip(0)], dim=1), labels


class GraphConvolution(nn.Module):
    """The mean over neighbours weighted by degrees, times a matrix (Kipf and Welling 2016); `x: (N, inputs)` to `(N, outputs)`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        source, target = edges
        messages = self.linear(x)[source] * weights.unsqueeze(1)
        return torch.zeros(len(x), self.bias.shape[0]).index_add(0, target, messages) + self.bias


class GraphNetwork(nn.Module):
    """Logits of the groups, `(N, groups)`, from features `(N, inputs)` and edges."""

    def __init__(self, inputs: int, width: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([GraphConvolution(inputs, width), GraphConvolution(width, groups)])

    def forward(self, x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        first, second = self.layers
        hidden: Tensor = F.relu(first(x, edges, weights))
        logits: Tensor = second(F.dropout(hidden, 0.5, self.training), edges, weights)
        return logits


def normalise(edges: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The edges with a loop at every node, and the weight of each: 1 / sqrt(degree of source * degree of target)."""
    edges = torch.cat([edges, torch.arange(count).expand(2, -1)], dim=1)
    degrees = torch.bincount(edges[1], minlength=count).float()
    return edges, degrees[edges].rsqrt().prod(dim=0)


def arrange(edges: Tensor, count: int, rounds: int = 60) -> Tensor:
    """A place in the plane for every node, `(count, 2)`: nodes repel each other, edges pull (Fruchterman and Reingold 1991)."""
    ideal, places = count**-0.5, torch.rand(count, 2)
    for step in range(rounds):
        apart = places.unsqueeze(1) - places.unsqueeze(0)
        distance = apart.norm(dim=2, keepdim=True).clamp(min=1e-3)
        force = (apart * (ideal / distance).square()).sum(dim=1)
        pull = apart[edges[0], edges[1]] * distance[edges[0], edges[1]] / ideal
        force = force.index_add(0, edges[0], -pull)
        places = places + F.normalize(force, dim=1) * force.norm(dim=1, keepdim=True).clamp(max=0.1 * (1 - step / rounds))
    return places


def main() -> None:
    options = parse_options(__file__, __doc__, steps=300)
    torch.manual_seed(options.seed)
    features, edges, labels = make_graph()
    groups, size = 4, 60
    shown = torch.cat([torch.randperm(size)[:4] + group * size for group in range(groups)])
    hidden = torch.ones(len(labels), dtype=torch.bool).index_fill(0, shown, False)
    looped, weights = normalise(edges, len(labels))
    print(f"{len(labels)} nodes, {edges.shape[1] // 2} edges, the groups of {len(shown)} nodes are known")

    model = GraphNetwork(features.shape[1], width=32, groups=groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    progress = Progress(options.steps)
    for _ in progress:
        logits = model(features, looped, weights)
        loss = F.cross_entropy(logits[shown], labels[shown])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.record(loss.item())

    model.eval()
    with torch.no_grad():
        guesses = model(features, looped, weights).argmax(dim=1)
    accuracy = (guesses == labels)[hidden].float().mean().item()

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.3])
    plot_losses(left, progress.losses, "cross entropy of the known nodes")
    places = arrange(edges, len(labels))
    right.add_collection(LineCollection(list(places[edges.T].numpy()), colors="lightgrey", linewidths=0.4, zorder=0))
    right.scatter(places[:, 0].numpy(), places[:, 1].numpy(), c=guesses.numpy(), cmap="tab10", vmax=9, s=18)
    right.scatter(places[shown, 0].numpy(), places[shown, 1].numpy(), facecolors="none", edgecolors="black", s=60)
    wrong = (guesses != labels).nonzero().squeeze(1)
    right.scatter(places[wrong, 0].numpy(), places[wrong, 1].numpy(), marker="x", color="red", s=30)
    right.set(title="found groups; circles: known, crosses: wrong", xticks=[], yticks=[])
    finish(options, progress, figure, "accuracy on the other nodes", accuracy)


if __name__ == "__main__":
    main()
