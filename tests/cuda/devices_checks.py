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


def check_data_parallel() -> None:
    """A batch shared out to both devices: outputs come together, gradients go to the one module, errors name the device."""
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).to("cuda:0").eval()
    parallel = nn.DataParallel(net)
    assert parallel.device_ids == [0, 1]
    x = torch.randn(5, 3, device="cuda:0")
    y = parallel(x)
    assert y.device == torch.device("cuda:0") and torch.allclose(y, net(x), atol=1e-5)
    y.square().sum().backward()
    gradients = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).square().sum().backward()
    for mine, p in zip(gradients, net.parameters()):
        assert torch.allclose(mine, p.grad, atol=1e-4)
    with torch.no_grad():
        assert nn.DataParallel(net, [0, 1], output_device=1)(x).device == torch.device("cuda:1")
    raises(RuntimeError, "must have its parameters and buffers on device cuda:1", nn.DataParallel(net, [1, 0]), x)
    spread = nn.DataParallel(counting_module(), [0, 1])(x, scale=torch.ones(5, device="cuda:0"))
    assert spread["n"].tolist() == [3, 2] and len(spread["y"]) == 5


def counting_module() -> nn.Module:
    class Counting(nn.Module):
        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"n": torch.tensor(len(x), device=x.device), "y": x * scale[:, None]}

    return Counting()


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


def where(t: torch.Tensor) -> set[str]:
    """The device by all that knows it: the tensor's fields, its storage, and its dispatch keys, by which an operator chooses."""
    plain = t.detach()
    says = {str(t.device), str(t.untyped_storage().device), str((plain + 1).device), str(torch.empty_like(t).device)}
    return says | {{"cpu": "cpu", "meta": "meta"}.get(t.device.type, f"cuda:{t.get_device()}")}


def check_every_way_to_change_a_storage() -> None:
    """Whatever exchanges, replaces or grows a tensor's storage leaves one answer to where the tensor lies."""
    file = io.BytesIO()
    torch.save(torch.arange(3.0, device="cuda:1"), file)

    def loaded(place: str) -> torch.Tensor:
        file.seek(0)
        return torch.load(file, map_location=place)

    def data(t: torch.Tensor, place: str) -> torch.Tensor:
        t.data = torch.ones(5, device=place)
        return t

    def moved(t: torch.Tensor, place: str) -> torch.Tensor:
        module = nn.Module()
        module.p = nn.Parameter(t)
        return module.to(place).p

    def loaded_module(t: torch.Tensor, place: str) -> torch.Tensor:
        module = nn.Linear(2, 2, bias=False, device=place)
        module.load_state_dict({"weight": torch.ones(2, 2)}, assign=False)
        return module.weight

    def assigned_module(t: torch.Tensor, place: str) -> torch.Tensor:
        module = nn.Linear(2, 2, bias=False, device="cpu" if place != "cpu" else "cuda:0")
        module.load_state_dict({"weight": torch.ones(2, 2, device=place)}, assign=True)
        return module.weight

    ways: dict[str, Callable[[torch.Tensor, str], torch.Tensor]] = {
        "data": data, "module.to": moved, "load_state_dict": loaded_module, "load_state_dict(assign)": assigned_module, "load": lambda t, place: loaded(place),
        "set_ from meta": lambda t, place: torch.empty(5, device="meta").set_(torch.ones(5, device=place)),
        "set_ to meta": lambda t, place: torch.ones(5, device=place).set_(torch.empty(5, device="meta")),
        "set_(storage)": lambda t, place: torch.empty(0, device=place).set_(torch.ones(5, device=place).untyped_storage(), 1, (2,)),
        "resize_": lambda t, place: torch.ones(2, device=place).resize_(5000),
        "storage.resize_": lambda t, place: storage_resized(torch.ones(2, device=place)),
        "out=": lambda t, place: torch.add(torch.ones(9, device=place), 1, out=torch.empty(0, device=place)),
        "lazy clone": lambda t, place: torch._lazy_clone(torch.ones(4, device=place)),
        "lazy clone, written": lambda t, place: torch._lazy_clone(torch.ones(4, device=place)).add_(1),
        "subclass": lambda t, place: torch.ones(4, device=place).as_subclass(nn.Parameter),
        "parameter": lambda t, place: nn.Parameter(torch.ones(4, device=place)),
        "pickle": lambda t, place: pickle.loads(pickle.dumps(torch.ones(4, device=place))),
        "deepcopy": lambda t, place: copy.deepcopy(torch.ones(4, device=place)),
        "copy": lambda t, place: copy.copy(torch.ones(4, device=place)),
        "dlpack": lambda t, place: torch.from_dlpack(torch.ones(4, device=place)) if place != "meta" else torch.empty(1, device="meta"),
        "dtype": lambda t, place: torch.ones(4, device=place).view(torch.int32),
    }  # fmt: skip
    for way, change in ways.items():
        for first in ("cpu", "cuda:0", "cuda:1", "meta"):
            for place in ("cuda:1", "cuda:0", "cpu", "meta"):
                if place == "meta" and way.startswith(("load", "module")) or first == "meta" and way == "module.to":
                    continue
                t = change(torch.ones(5, device=first), place)
                expected = "meta" if way == "set_ to meta" else place
                assert where(t) == {expected}, (way, first, place, where(t))
                assert t.layout is torch.strided
    for place in ("cuda:0", "cuda:1"):
        assert torch.ones(2, device=place).share_memory_().device == torch.device(place)


def storage_resized(t: torch.Tensor) -> torch.Tensor:
    t.untyped_storage().resize_(100000)
    return t


def check_types_without_loops() -> None:
    """Types that are stored, moved and cast: bits on the device, casts in every direction by kernels, operators in the type they compute in."""
    stored = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32", "uint16", "uint32", "uint64")
    for name in stored:
        dtype = getattr(torch, name)
        host = torch.arange(24).view(4, 6).to(dtype)
        product = host * host
        there = host.to("cuda:1")
        assert there.dtype is dtype and str(there.device) == "cuda:1" and there.tolist() == host.tolist()
        assert there.t().contiguous().cpu().tolist() == host.t().tolist() and there[1:, ::2].clone().tolist() == host[1:, ::2].tolist()
        for other in ("float32", "complex64", "int64", "bool", "float16", *stored):
            kind = getattr(torch, other)
            assert repr(there.to(kind).tolist()) == repr(host.to(kind).tolist()), (name, other)
            assert repr(there.t().to(kind).to(dtype).tolist()) == repr(host.t().to(kind).to(dtype).tolist()), (name, other)
        assert there[torch.tensor([2, 0], device="cuda:1")].tolist() == host[torch.tensor([2, 0])].tolist()
        assert there.to("cuda:0").tolist() == host.tolist() and torch.cat((there, there)).tolist() == torch.cat((host, host)).tolist()
        assert (there == there).all().item() and repr((there * there).tolist()) == repr(product.tolist())
        assert there.masked_fill(there == 0, 3).tolist() == host.masked_fill(host == 0, 3).tolist() and torch.zeros(2, dtype=dtype, device="cuda:1").tolist() == torch.zeros(2, dtype=dtype).tolist()
        assert torch.where(there == 0, there, there.flip(0)).tolist() == torch.where(host == 0, host, host.flip(0)).tolist()
        there[0] = 4
        there.view(-1)[20:].fill_(2)
        assert there[0].tolist() == [4] * 6 and there[3, 2:].tolist() == [2] * 4
        raises(NotImplementedError, "not implemented", lambda: there.cummax(0))
    bytes_ = torch.arange(256, dtype=torch.uint8)
    for name in stored[:5]:
        host = bytes_.view(getattr(torch, name))
        assert host.cuda().to(torch.float32).view(torch.int32).tolist() == host.to(torch.float32).view(torch.int32).tolist()
        x = torch.cat([host.float(), host.float() * 1.0625, torch.tensor([1e30, -1e30, float("inf"), float("nan"), 464.0, 61440.0, 1e-40])])
        assert x.cuda().to(host.dtype).view(torch.uint8).tolist() == x.to(host.dtype).view(torch.uint8).tolist()


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
