"""Two devices: tensors know where they lie when their storage is exchanged, and operators refuse to mix them."""

from __future__ import annotations

import copy
import io
import os
import pickle
from collections.abc import Callable

os.environ["CUEMU_DEVICES"] = "2"
DEVICES = 2

import tensorrt_lite as torch
from device_checks import raises

nn = torch.nn


def check_modules_move() -> None:
    """Parameters, buffers and gradients of a module, which exchanges their data."""
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to("cuda:0")
    net(torch.randn(5, 4, device="cuda:0")).sum().backward()
    assert net.to("cuda:1") is net
    raises(RuntimeError, "different device", setattr, net[0].weight, "grad", torch.ones(3, 4, device="cuda:0"))
    for t in [*net.parameters(), *net.buffers(), *(p.grad for p in net.parameters())]:
        assert t.device == torch.device("cuda:1") and t.get_device() == 1 and t.untyped_storage().device == t.device
    x = torch.randn(5, 4)
    expected = copy.deepcopy(net).to("cpu")(x)
    y = net(x.to("cuda:1"))
    assert torch.allclose(y.cpu(), expected, atol=1e-5)
    y.sum().backward()
    raises(RuntimeError, "same device", net, x.to("cuda:0"))
    net.cuda(0)
    assert {str(p.device) for p in net.parameters()} == {"cuda:0"}


def check_exchanged_storages() -> None:
    """`data`, `set_`, constructors, copies and pickles."""
    p = nn.Parameter(torch.ones(2))
    version = p._version
    for place in ("cuda:1", "cuda:0", "cpu", "cuda:1", "meta", "cpu"):
        p.data = torch.ones(2, device=place)
        assert str(p.device) == place and (p + 1).device == p.device and p._version > version, place
        version = p._version
    x = torch.arange(4.0).to("cuda:1")
    meta = torch.empty(4, device="meta")
    assert meta.set_(x).device == x.device and meta.tolist() == [0, 1, 2, 3]
    meta = torch.empty(4, device="meta")
    assert meta.set_(x.untyped_storage(), 1, (2,)).device == x.device and meta.tolist() == [1, 2]
    for source in (x, x.untyped_storage()):
        raises(RuntimeError, "a different device", torch.ones(4, device="cuda:0").set_, source)
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), nn.Parameter(x), x.data, x.detach(), x.view(2, 2), x.as_subclass(nn.Parameter), torch.Tensor(x)):
        assert other.device == x.device and other.get_device() == 1, other
    file = io.BytesIO()
    torch.save({"x": x}, file)
    for place in ("cuda:0", "cuda:1", "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=place)["x"]
        assert str(loaded.device) == place and loaded.tolist() == [0, 1, 2, 3]


def check_mixtures_are_refused() -> None:
    """Operands, results and indices on another device: RuntimeError and nothing written, in place and with `out`."""
    here, there = torch.device("cuda:0"), torch.device("cuda:1")
    x, y = torch.rand(4, 4, device=here) + 1, torch.rand(4, 4, device=there) + 1
    i, j = torch.tensor([0, 2], device=here), torch.tensor([0, 2], device=there)
    bool_there = torch.ones(4, 4, dtype=torch.bool, device=there)
    inplace: list[Callable[[], object]] = [
        lambda: x.add_(y), lambda: x.mul_(y), lambda: x.addcmul_(x, y), lambda: x.lerp_(y, 0.5), lambda: x.masked_fill_(bool_there, 0), lambda: x.index_add_(0, i, y[:2]),
        lambda: x.index_add_(0, j, x[:2].clone()), lambda: x.index_copy_(0, j, x[:2].clone()), lambda: x.index_fill_(0, j, 0.0), lambda: x.scatter_(0, j[None], 1.0), lambda: x.scatter_add_(0, i[None], y),
        lambda: x.addmm_(x, y), lambda: x.addmv_(y, x[0]), lambda: x.addr_(x[0], y[0]), lambda: x.baddbmm_(x, y) if x.ndim == 3 else x[None].baddbmm_(x[None], y[None]),
        lambda: x.clamp_(min=y), lambda: x.where(bool_there, x), lambda: x.pow_(y), lambda: x.copysign_(y), lambda: x.masked_scatter_(bool_there, x), lambda: x.index_put_((i,), y[0]),
        lambda: x.bernoulli_(y / 3),
    ]  # fmt: skip
    plain: list[Callable[[], object]] = [
        lambda: x + y, lambda: x @ y, lambda: torch.bmm(x[None], y[None]), lambda: torch.mv(x, y[0]), lambda: torch.dot(x[0], y[0]), lambda: torch.cat((x, y)), lambda: torch.stack((x, y)),
        lambda: x.index_select(0, j), lambda: x.gather(0, j[None]), lambda: x.take(j), lambda: torch.where(bool_there, x, x), lambda: torch.cdist(x, y), lambda: torch.searchsorted(x[0].sort()[0], y[0]),
        lambda: nn.functional.linear(x, y), lambda: nn.functional.embedding(j, x), lambda: nn.functional.conv1d(x[None], y[:, :, None]), lambda: nn.functional.layer_norm(x, (4,), y[0]),
        lambda: nn.functional.batch_norm(x, y[0], y[0]), lambda: nn.functional.mse_loss(x, y), lambda: nn.functional.cross_entropy(x, torch.zeros(4, dtype=torch.int64, device=there)),
        lambda: nn.functional.scaled_dot_product_attention(x[None], y[None], x[None]), lambda: torch.linalg.solve(x, y), lambda: torch.equal(x, y), lambda: torch.allclose(x, y),
        lambda: nn.functional.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2, device=there), align_corners=False), lambda: nn.functional.binary_cross_entropy(x / 3, y / 3), lambda: torch.outer(x[0], y[0]),
        lambda: x[bool_there], lambda: nn.functional.prelu(x, y[0]), lambda: torch.bucketize(x, y[0].sort()[0]),
    ]  # fmt: skip
    out: list[Callable[..., object]] = [
        lambda out: torch.add(x, x, out=out), lambda out: torch.exp(x, out=out), lambda out: torch.mm(x, x, out=out), lambda out: torch.addmm(x, x, x, out=out), lambda out: torch.cat((x[:2], x[2:]), out=out),
        lambda out: torch.cumsum(x, 0, out=out), lambda out: torch.softmax(x, 0, out=out), lambda out: torch.index_select(x, 0, torch.arange(4, device=here), out=out),
        lambda out: torch.gather(x, 0, torch.zeros(4, 4, dtype=torch.int64, device=here), out=out), lambda out: torch.where(x > 0, x, x, out=out), lambda out: torch.sum(x[None], 0, out=out),
        lambda out: torch.amax(x[None], 0, out=out), lambda out: torch.mean(x[None], 0, out=out), lambda out: torch.clamp(x, 0, 1, out=out), lambda out: torch.pow(x, 2, out=out), lambda out: torch.tril(x, out=out),
        lambda out: torch.linalg.inv(x + 9 * torch.eye(4, device=here), out=out), lambda out: torch.sort(x, out=(out, torch.empty(4, 4, dtype=torch.int64, device=here))), lambda out: torch.stack(list(x), out=out),
        lambda out: torch.kron(x[:2, :2], x[:2, :2], out=out), lambda out: torch.square(x, out=out), lambda out: torch.msort(x, out=out), lambda out: torch.diag(x[0], out=out),
        lambda out: torch.max(x, 0, out=(out[0].clone(), torch.empty(4, dtype=torch.int64, device=here))), lambda out: torch.median(x, 0, out=(torch.empty(4, device=here), torch.empty(4, dtype=torch.int64, device=there))),
        lambda out: torch.topk(x, 2, out=(out[:, :2].clone(), torch.empty(4, 2, dtype=torch.int64, device=here))), lambda out: torch.linalg.qr(x, out=(out.clone(), torch.empty(4, 4, device=here))),
        lambda out: torch.std(x[None], 0, out=out), lambda out: torch.lerp(x, x, 0.5, out=out), lambda out: torch.bmm(x[None], x[None], out=out[None]), lambda out: torch.take(x, torch.arange(16, device=here).view(4, 4), out=out),
    ]  # fmt: skip
    accepted = []
    before, other = x.tolist(), y.tolist()
    for k, call in enumerate(inplace):
        accepted += refused(call, f"in place {k}")
    for k, call in enumerate(plain):
        accepted += refused(call, f"plain {k}")
    for k, call in enumerate(out):
        accepted += refused(lambda call=call: call(y), f"out {k}")
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    assert not accepted, accepted
    assert x.tolist() == before and y.tolist() == other
    x.copy_(y)
    assert x.tolist() == other and x.device == here


def refused(call: Callable[[], object], what: str) -> list[str]:
    """Empty where the call raises RuntimeError about devices."""
    try:
        call()
    except RuntimeError as error:
        return [] if "device" in str(error) else [f"{what}: {error}"]
    return [what]


def check_mapped_memory_is_accessible_to_peers() -> None:
    """Expandable segments: copies between the devices, from memory that both may reach."""
    import ctypes

    from tensorrt_lite._C.cuda import driver

    class Location(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]

    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    try:
        x = torch.arange(3_000_000.0).to("cuda:0")
        assert torch.equal(x.to("cuda:1").cpu(), x.cpu())
        if os.environ.get("TENSORRT_LITE_CUDA") == "emulate":
            from tensorrt_lite.cuda._compiler import emulator_library

            flags, library = ctypes.c_ulonglong(), ctypes.CDLL(emulator_library())
            assert driver.driver_version() and library.cuMemGetAccess(ctypes.byref(flags), ctypes.byref(Location(1, 1)), ctypes.c_ulonglong(x.data_ptr())) == 0
            assert flags.value == 3
    finally:
        torch.cuda.memory._set_allocator_settings("expandable_segments:False")
