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


def check_graphs() -> None:
    """A training step recorded once and replayed follows eager steps: capturable optimizers, rates that change, dropout's masks."""
    O = torch.optim
    cases: list[tuple[Any, dict[str, Any]]] = [
        (O.Adam, {"amsgrad": True}), (O.AdamW, {"fused": True}), (O.SGD, {"momentum": 0.9}), (O.NAdam, {}), (O.RAdam, {}), (O.Adamax, {}), (O.Adadelta, {}),
        (O.RMSprop, {"momentum": 0.9}), (O.Rprop, {}), (O.ASGD, {"t0": 2}),
    ]  # fmt: skip
    x, y = torch.randn(16, 6).cuda(), torch.randn(16, 3).cuda()
    for kind, options in cases:
        results = []
        settings = options if kind is O.SGD or "fused" in options else options | {"capturable": True}
        for recorded in (False, True):
            torch.manual_seed(5)
            model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)).cuda()
            rate = torch.tensor(0.01, device="cuda")
            optimizer = kind(model.parameters(), lr=rate, **settings)

            def step(model: Any = model, optimizer: Any = optimizer) -> torch.Tensor:
                optimizer.zero_grad(set_to_none=False)
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                return loss

            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                losses = [step().item() for _ in range(2)]
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            if recorded:
                with torch.cuda.graph(graph):
                    loss = step()
            for i in range(5):
                rate.fill_(0.01 * (i + 1))
                if recorded:
                    graph.replay()
                else:
                    loss = step()
                losses.append(loss.item())
            results.append((losses, [p.detach().cpu() for p in model.parameters()]))
        assert len(set(results[0][0])) == 7 and results[0][0] == results[1][0], (kind, results)
        assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1])), kind
    optimizer = O.Adam(model.parameters(), lr=0.1)
    optimizer.step()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            optimizer.step()
    except RuntimeError as error:
        assert "capturable is False" in str(error)
    else:
        raise AssertionError("a step that is not capturable was recorded")


def check_device_counters() -> None:
    """fused=True counts on the device: more counters than one launch takes, none for a skipped step, state dicts from and to the CPU."""
    start, grads = [torch.randn(3) for _ in range(300)], [torch.randn(3) for _ in range(300)]
    results = []
    for device in ("cpu", "cuda"):
        params = [p.clone().to(device).requires_grad_() for p in start]
        optimizer = torch.optim.Adam(params, lr=0.1, fused=True, weight_decay=0.1)
        for inf in (0.0, 1.0, 0.0):
            for p, g in zip(params, grads):
                p.grad = g.to(device) * 4
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0, device=device), torch.tensor(inf, device=device)
            optimizer.step()
        counters = [optimizer.state[p]["step"] for p in params]
        assert all(c.device.type == device and c.item() == 2 for c in counters)
        results.append([p.detach().cpu() for p in params])
        saved = optimizer.state_dict()
        again = torch.optim.Adam([p.detach().clone().requires_grad_() for p in params], capturable=True)
        again.load_state_dict(saved)
        assert again.state[again.param_groups[0]["params"][0]]["step"].device.type == device
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(*results))
    p = torch.ones(3, device="cuda", requires_grad=True)
    p.grad = torch.ones(3, device="cuda")
    optimizer = torch.optim.SGD([p], lr=1.0, momentum=0.9, fused=True)
    for inf in (1.0, 0.0):
        optimizer.found_inf = torch.tensor(inf, device="cuda")
        optimizer.step()
    assert (p == 0).all(), "a skipped first step leaves momentum of zero"


def check_scales_of_losses() -> None:
    """The operators of GradScaler beside the CPU's: gradients of all types and layouts, an infinity in one of them, the scale over many steps, a whole training step."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for bad in (1.0, float("inf"), float("nan")):
            start = [torch.randn(5), torch.randn(20_000), torch.randn(4, 6).t(), torch.empty(0), torch.randn(9, 9)[::2]]
            start[1][17_000] = bad
            start = [g.to(dtype) for g in start]
            results = []
            for device in ("cpu", "cuda"):
                grads = [g.to(device, copy=True) for g in start]
                found, factor = torch.zeros((), device=device), torch.tensor(0.25, device=device)
                torch._amp_foreach_non_finite_check_and_unscale_(grads, found, factor)
                results.append(([g.cpu() for g in grads], found.item()))
            assert results[0][1] == results[1][1] == (bad != 1.0)
            assert all(torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) for a, b in zip(results[0][0], results[1][0])), (dtype, bad)
    states = []
    for device in ("cpu", "cuda"):
        scale, tracker = torch.tensor(2.0**126, device=device), torch.zeros((), dtype=torch.int32, device=device)
        states.append([])
        for step in range(12):
            torch._amp_update_scale_(scale, tracker, torch.tensor(float(step in (4, 5)), device=device), 2.0, 0.5, 3)
            states[-1].append((scale.item(), tracker.item()))
    assert states[0] == states[1] and states[0][2][0] == 2.0**127
    layer = torch.nn.Linear(8, 8).cuda()
    optimizer, scaler = torch.optim.SGD(layer.parameters(), lr=0.1), torch.amp.GradScaler("cuda", init_scale=2.0**120)
    before = layer.weight.detach().clone()
    for factor in (1e30, 1.0):
        scaler.scale(layer(torch.randn(4, 8, device="cuda")).square().sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update(1.0 if factor > 1 else None)
        assert torch.equal(before, layer.weight.detach()) == (factor > 1)
        optimizer.zero_grad()
