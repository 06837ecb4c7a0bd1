"""Optimizer steps and whole training steps on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import copy
from typing import Any

import tensorrt_lite as torch
from device_checks import on_device

F = torch.nn.functional
SETTINGS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
]


def check_steps(order: str) -> None:
    """Many parameters of several types and layouts, more than one launch takes, an empty one among them."""
    shapes = [(3,), (4097,), (5, 7), (0,), (1,)] + [(2, i % 5 + 1) for i in range(60)]
    for kind, options in SETTINGS if order == "forward" else SETTINGS[1:4:2]:
        start = [torch.randn(*shape, dtype=torch.float64 if i == 1 else torch.float32) for i, shape in enumerate(shapes)]
        grads = [[torch.randn_like(p) for p in start] for _ in range(3)]
        results = []
        for device in ("cpu", "cuda"):
            params = [(on_device(p) if device == "cuda" else p.clone()).requires_grad_() for p in start]
            params[2] = start[2].to(device).t().clone().t().detach().requires_grad_()
            optimizer = kind(params, **options)
            for step in grads:
                for p, g in zip(params, step):
                    p.grad = g.to(device)
                optimizer.step()
            results.append([p.detach().cpu() for p in params])
        assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(*results)), (kind, options)


def check_training_step() -> None:
    """A network's losses, gradients and parameters over three steps."""
    nn = torch.nn
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 5))
    x, y, results = torch.randn(9, 12), torch.randint(0, 5, (9,)), []
    for device in ("cpu", "cuda"):
        net = copy.deepcopy(model).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append((torch.tensor(losses), [p.detach().cpu() for p in net.parameters()]))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-5), results
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(results[0][1], results[1][1]))


def check_scaled_step() -> None:
    """The gradient scaler's division, and the step that an overflow skips."""
    for value in (8.0, float("inf")):
        results = []
        for device in ("cpu", "cuda"):
            p = torch.ones(5).to(device).requires_grad_()
            optimizer = torch.optim.SGD([p], lr=0.1, fused=True)
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0).to(device), torch.tensor(float(value == float("inf"))).to(device)
            p.grad = torch.full((5,), value).to(device)
            optimizer.step()
            results.append(p.detach().cpu())
        assert torch.equal(*results)
