"""Autocast on a device: PyTorch's own lists of operators (those of its tests), operator by operator, and training with the scaler."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.autocast_test_lists import AutocastTestLists

import tensorrt_lite as trt

LISTS = AutocastTestLists("cpu")
# (list, where its operators are, the dtype that the list promises; None: each case has its own)
PROMISED = [("torch_fp16", "", "float16"), ("torch_fp32", "", "float32"), ("torch_need_autocast_promote", "", "float32"), ("nn_fp16", "nn.functional", "float16"),
            ("nn_fp32", "nn.functional", "float32"), ("methods_fp16", "Tensor", "float16"), ("methods_fp32", "Tensor", "float32"),
            ("torch_expect_builtin_promote", "", None), ("methods_expect_builtin_promote", "Tensor", None)]  # fmt: skip
# Not public, or without a tensor to look at; calls that the functional form refuses; the last takes the emulator 12 s.
LEFT_OUT = {"_convolution", "cudnn_convolution", "cudnn_convolution_transpose", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "nll_loss2d", "__div__",
            "equal", "einsum", "margin_ranking_loss", "conv_transpose3d"}  # fmt: skip
CASES = [(place, case[0], case[1], case[2] if len(case) > 2 else None, promised)
         for table, place, promised in PROMISED for case in getattr(LISTS, table) if case[0] not in LEFT_OUT]  # fmt: skip


def name(dtype):
    return str(dtype).rpartition(".")[2]


def converted(value):
    if isinstance(value, torch.Tensor):
        flat = trt.tensor(value.detach().double().reshape(-1).tolist(), dtype=getattr(trt, name(value.dtype)))
        return flat.reshape(tuple(value.shape)).cuda()
    return type(value)(map(converted, value)) if isinstance(value, (list, tuple)) else value


def found(place, operator):
    owner = trt
    for part in filter(None, place.split(".")):
        owner = getattr(owner, part)
    return getattr(owner, operator) if hasattr(owner, operator) else getattr(trt.nn.functional, operator)


@pytest.mark.parametrize(("place", "operator", "arguments", "extra", "promised"), CASES, ids=[f"{case[0]}.{case[1]}".lstrip(".") for case in CASES])
def test_operators_of_pytorchs_lists(place, operator, arguments, extra, promised):
    keywords = extra if isinstance(extra, dict) else {}
    with trt.autocast("cuda"):
        result = found(place, operator)(*converted(tuple(arguments)), **keywords)
    assert name(result.dtype) == (promised or name(extra))


@pytest.mark.parametrize("call", [
    lambda x: trt.einsum("ij,jk->ik", x, x), lambda x: trt.linalg.vecdot(x, x), lambda x: trt.linalg.multi_dot([x, x, x]),
    lambda x: trt.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]), lambda x: trt.nn.GRU(4, 4).cuda()(x)[0],
])  # fmt: skip
def test_compositions_in_the_lower_precision(call):
    with trt.autocast("cuda"):
        assert call(trt.rand(4, 4).cuda()).dtype is trt.float16


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "nearest-exact"])
def test_interpolation_in_float32(mode):
    with trt.autocast("cuda"):
        assert trt.nn.functional.interpolate(trt.rand(1, 1, 4, 4).cuda().half(), scale_factor=2.0, mode=mode).dtype is trt.float32


def test_binary_cross_entropy_is_refused():
    x = trt.rand(3, 3).cuda()
    with trt.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        trt.nn.functional.binary_cross_entropy(x.half(), x)


def test_devices_are_told_apart():
    x = trt.rand(3, 3)
    with trt.autocast("cuda", dtype=trt.bfloat16):
        assert ((x @ x).dtype, (x.cuda() @ x.cuda()).dtype) == (trt.float32, trt.bfloat16)
        with trt.autocast("cpu", dtype=trt.float16):
            assert ((x @ x).dtype, (x.cuda() @ x.cuda()).dtype) == (trt.float16, trt.bfloat16)
        assert (x @ x).dtype is trt.float32
    assert trt.get_autocast_dtype("cuda") is trt.float16


def test_training_skips_steps_that_overflow():
    trt.manual_seed(0)
    model = trt.nn.Sequential(trt.nn.Linear(8, 16), trt.nn.Tanh(), trt.nn.Linear(16, 1)).cuda()
    optimizer, scaler = trt.optim.SGD(model.parameters(), lr=0.2), trt.amp.GradScaler(init_scale=2.0**24)
    x = trt.randn(32, 8).cuda()
    y = x.sum(1, keepdim=True).tanh()
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        with trt.autocast("cuda"):
            output = model(x)
            loss = trt.nn.functional.mse_loss(output, y)
        assert (output.dtype, loss.dtype) == (trt.float16, trt.float32)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert scaler.get_scale() < 2.0**24
    assert losses[-1] < 0.5 * losses[0]
