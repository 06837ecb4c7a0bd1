"""capturable=True: counters and rates as tensors give the steps that numbers give."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import optim

CASES = [
    (optim.Adam, {"amsgrad": True, "weight_decay": 0.1}), (optim.AdamW, {}), (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}), (optim.RAdam, {"weight_decay": 0.1}),
    (optim.Adamax, {}), (optim.Adadelta, {"weight_decay": 0.1}), (optim.RMSprop, {"momentum": 0.9, "centered": True}), (optim.RMSprop, {}), (optim.Rprop, {}),
    (optim.ASGD, {"t0": 4, "lambd": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_steps_agree(kind, options, as_tensor):
    """Twelve steps, which pass RAdam's threshold and ASGD's t0, with a rate that changes."""
    shapes = [(7,), (3, 4), ()]
    start = [trt.randn(s, dtype=trt.float64) for s in shapes] + [trt.randn(3, dtype=trt.complex128)]
    results = []
    for capturable in (False, True):
        params = [p.clone().requires_grad_() for p in start]
        lr = trt.tensor(0.02) if as_tensor and capturable else 0.02
        optimizer = kind(params, lr=lr, capturable=capturable, **options)
        generator = trt.Generator().manual_seed(1)
        for step in range(12):
            for p in params:
                p.grad = trt.view_as_complex(trt.randn(3, 2, dtype=trt.float64, generator=generator)) if p.is_complex() else trt.randn(p.shape, dtype=trt.float64, generator=generator)
            if step == 5:
                if as_tensor and capturable:
                    lr.fill_(0.05)
                else:
                    optimizer.param_groups[0]["lr"] = 0.05
            optimizer.step()
        assert {s.item() for s in (entry.get("step") for entry in optimizer.state.values()) if s is not None} <= {12.0}
        results.append(params)
    for plain, captured in zip(*results):
        assert trt.allclose(plain, captured, rtol=1e-5 if as_tensor else 1e-6, atol=1e-7), kind
