"""Layers that take sizes from their first input, beside PyTorch's."""

from __future__ import annotations

import copy
import warnings

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

LAYERS = {
    "LazyLinear": ((5,), (3, 7)),
    "LazyConv1d": ((4, 3), (2, 3, 9)),
    "LazyConv2d": ((4, 3, 2, 1), (2, 3, 9, 8)),
    "LazyConv3d": ((4, 2), (1, 3, 5, 6, 4)),
    "LazyConvTranspose1d": ((4, 3), (2, 3, 9)),
    "LazyConvTranspose2d": ((4, 3, 2), (2, 3, 5, 6)),
    "LazyConvTranspose3d": ((4, 2), (1, 3, 4, 3, 2)),
    "LazyBatchNorm1d": ((), (4, 3)),
    "LazyBatchNorm2d": ((), (4, 3, 5, 5)),
    "LazyBatchNorm3d": ((), (4, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ((), (4, 3, 9)),
    "LazyInstanceNorm2d": ((), (4, 3, 5, 5)),
    "LazyInstanceNorm3d": ((), (4, 3, 2, 2, 3)),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    trt.manual_seed(0)


def make(lib, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(lib.nn, name)(*LAYERS[name][0])


@pytest.mark.parametrize("name", LAYERS)
def test_the_first_input_gives_the_sizes(name):
    shape = LAYERS[name][1]
    made, outputs = [], []
    x = torch.randn(shape)
    for lib, given in ((torch, x), (trt, trt.from_numpy(x.numpy()))):
        lib.manual_seed(3)
        layer = make(lib, name)
        assert layer.has_uninitialized_params() and repr(layer.weight) == "<UninitializedParameter>"
        outputs.append(layer(given))
        assert type(layer) is getattr(lib.nn, name.removeprefix("Lazy")) and not layer._forward_pre_hooks
        made.append(layer)
    theirs, ours = made
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
    assert repr(ours) == repr(theirs)
    trt.testing.assert_close(outputs[1].detach(), trt.from_numpy(outputs[0].detach().numpy()), rtol=1e-4, atol=1e-5)
    for name, buffer in theirs.named_buffers():
        trt.testing.assert_close(ours.get_buffer(name), trt.from_numpy(buffer.numpy()), rtol=1e-4, atol=1e-5)


def test_a_state_dict_gives_the_sizes_too():
    lazy, full = make(trt, "LazyLinear"), trt.nn.Linear(7, 5)
    lazy.load_state_dict(full.state_dict())
    assert tuple(lazy.weight.shape) == (5, 7)
    x = trt.randn(2, 7)
    assert trt.equal(lazy(x), full(x)) and type(lazy) is trt.nn.Linear and lazy.in_features == 7
    # what has no sizes yet is saved as it is
    empty = make(trt, "LazyConv2d").state_dict()
    assert all(isinstance(t, trt.nn.UninitializedParameter) for t in empty.values())
    make(trt, "LazyConv2d").load_state_dict(empty)
    with pytest.raises(RuntimeError, match="shape of an uninitialized parameter"):
        trt.nn.Linear(7, 5).load_state_dict(make(trt, "LazyLinear").state_dict())


def test_uninitialized_tensors_are_converted_and_refuse_the_rest():
    layer = make(trt, "LazyLinear").double()
    assert layer.weight.dtype is trt.float64 and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        _ = layer.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        layer.weight + 1
    twin = copy.deepcopy(layer)
    assert twin.weight is not layer.weight and isinstance(twin.weight, trt.nn.UninitializedParameter)
    assert layer(trt.randn(2, 3, dtype=trt.float64)).dtype is trt.float64
    buffer = trt.nn.UninitializedBuffer()
    buffer.materialize((2, 3), dtype=trt.int64)
    assert type(buffer) is trt.Tensor and buffer.dtype is trt.int64 and tuple(buffer.shape) == (2, 3)
    with pytest.raises(RuntimeError, match="Expected 3D"):
        make(trt, "LazyConv2d")(trt.zeros(2, 3))


def test_optimizers_and_networks_of_lazy_layers():
    trt.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = trt.nn.Sequential(trt.nn.LazyConv2d(4, 3), trt.nn.LazyBatchNorm2d(), trt.nn.ReLU(), trt.nn.Flatten(), trt.nn.LazyLinear(2))
    x, y = trt.randn(8, 1, 6, 6), trt.randint(0, 2, (8,))
    net(x)
    optimizer = trt.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = trt.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
