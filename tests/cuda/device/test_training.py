"""Training on a device follows training on the CPU."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn

OPTIMIZERS = {
    "SGD": (trt.optim.SGD, {"lr": 0.1}),
    "SGD with momentum": (trt.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "Adam": (trt.optim.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    "AdamW": (trt.optim.AdamW, {"lr": 0.01, "maximize": False}),
    "RMSprop": (trt.optim.RMSprop, {"lr": 0.01}),
    "Adagrad": (trt.optim.Adagrad, {"lr": 0.01}),
}


def losses(device: str, optimizer, options, dtype=trt.float32, steps: int = 4) -> list[float]:
    trt.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 33), nn.GELU(), nn.Linear(33, 5)).to(device, dtype)
    # more tensors than one launch takes, and one of them of several blocks
    extra = [nn.Parameter(trt.ones(3, device=device, dtype=dtype)) for _ in range(40)] + [nn.Parameter(trt.ones(20_000, device=device, dtype=dtype))]
    step = optimizer([*model.parameters(), *extra], **options)
    trt.manual_seed(1)
    x, y = trt.randn(20, 7).to(device, dtype), trt.randint(0, 5, (20,)).to(device)
    found = []
    for _ in range(steps):
        step.zero_grad()
        loss = nn.functional.cross_entropy(model(x).float(), y) + sum(((p - 0.5) ** 2).mean() for p in extra).float()
        loss.backward()
        step.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_follow_the_cpu(name):
    optimizer, options = OPTIMIZERS[name]
    assert losses("cuda", optimizer, options) == pytest.approx(losses("cpu", optimizer, options), rel=1e-5)


@pytest.mark.parametrize("dtype", [trt.float64, trt.bfloat16, trt.float16])
def test_dtypes_of_parameters(dtype):
    options = {"lr": 0.01}
    tolerance = 1e-12 if dtype == trt.float64 else 2e-2
    assert losses("cuda", trt.optim.AdamW, options, dtype) == pytest.approx(losses("cpu", trt.optim.AdamW, options, dtype), rel=tolerance)


def test_a_module_moves_and_its_checkpoint_crosses_devices(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).cuda()
    assert all(t.is_cuda for t in (*model.parameters(), *model.buffers()))
    trt.save(model.state_dict(), tmp_path / "model.pt")
    on_cpu = trt.load(tmp_path / "model.pt", map_location="cpu")
    assert all(t.is_cpu for t in on_cpu.values())
    there = trt.load(tmp_path / "model.pt")
    assert all(t.is_cuda for t in there.values())
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other.load_state_dict(there)
    assert all(t.is_cpu for t in other.state_dict().values())
    assert all(trt.equal(a, b.cpu()) for a, b in zip(on_cpu.values(), there.values()))


def test_parameters_on_two_devices_step_where_they_are():
    weights = [nn.Parameter(trt.ones(2)), nn.Parameter(trt.ones(2, device="cuda"))]
    for p in weights:
        p.grad = trt.ones_like(p)
    trt.optim.SGD(weights, lr=0.5).step()
    assert [p.device.type for p in weights] == ["cpu", "cuda"] and all(p.tolist() == [0.5, 0.5] for p in weights)
    # one fused step works on one kind of device
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        trt._ops._fused_sgd_(
            [p.detach() for p in weights], [p.grad for p in weights], [], weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0, nesterov=False,
            maximize=False, is_first_step=False,
        )  # fmt: skip
