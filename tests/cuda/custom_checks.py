"""A custom device beside CUDA: copies between the two, and operators that must not mix them; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as trt
from device_checks import on_device

from tensorrt_lite import backend

npu = backend.register_backend("npu")


def check_copies_go_both_ways() -> None:
    x = trt.arange(6.0).reshape(2, 3).npu()
    y = on_device(x.cpu())
    assert x.to("cuda").tolist() == y.tolist()
    assert y.is_cuda and y.t().npu().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.copy_(y + 1).tolist() == [[1, 2, 3], [4, 5, 6]] and y.copy_(x[0]).tolist() == [[1, 2, 3], [1, 2, 3]]
    assert y.half().to("npu", trt.int64).tolist() == [[1, 2, 3], [1, 2, 3]]


def check_they_do_not_mix() -> None:
    try:
        trt.ones(2, device="npu") + trt.ones(2, device="cuda")
    except RuntimeError as e:
        assert "same device" in str(e) and "npu" in str(e) and "cuda" in str(e), e
    else:
        raise AssertionError("npu + cuda")


def check_gradients_cross() -> None:
    npu.fall_back_to_cpu()
    x = trt.ones(3, device="npu", requires_grad=True)
    (x.cuda() * 2).sum().backward()
    assert x.grad.is_npu and x.grad.tolist() == [2, 2, 2]


def check_bare_indices_mean_the_custom_device() -> None:
    assert str(trt.device(0)) == "npu:0" and str(trt.accelerator.current_accelerator()) == "npu" and str(trt.ones(1).cuda().device) == "cuda:0"
