"""Operator objects are PyTorch's: one per overload, with its own schema, and a mode gets the one that PyTorch's gets."""

from __future__ import annotations

import pickle

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

torch = pytest.importorskip("torch")
aten = trt.ops.aten


def seen_by(library, call):
    """[(overload, its arguments)] that a mode sees of call(library, x, y)."""
    found = []

    def plain(x):
        if isinstance(x, library.Tensor):
            return "T"
        if isinstance(x, (list, tuple)):
            return [plain(y) for y in x]
        return str(x).replace("tensorrt_lite", "torch") if isinstance(x, (library.dtype, library.memory_format)) else x

    class Log(library.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found.append((str(func), plain(args), {k: plain(v) for k, v in (kwargs or {}).items()}))
            return func(*args, **(kwargs or {}))

    x, y = library.rand(3, 4), library.rand(3, 4)
    with Log():
        call(library, x, y)
    return found


CALLS = {
    "x + y": lambda t, x, y: x + y,
    "x + 1": lambda t, x, y: x + 1,
    "x.add_(1)": lambda t, x, y: x.add_(1),
    "add alpha": lambda t, x, y: t.add(x, y, alpha=2),
    "add out": lambda t, x, y: t.add(x, 1, out=y),
    "x * 2": lambda t, x, y: x * 2,
    "x // 2": lambda t, x, y: x // 2,
    "x == 1": lambda t, x, y: x == 1,
    "x < y": lambda t, x, y: x < y,
    "x ** 2": lambda t, x, y: x**2,
    "x ** y": lambda t, x, y: x**y,
    "x % 2": lambda t, x, y: x % 2,
    "1 - x": lambda t, x, y: 1 - x,
    "x & 1": lambda t, x, y: y.copy_(x),
    "div trunc": lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
    "sum": lambda t, x, y: x.sum(),
    "sum dim": lambda t, x, y: x.sum(1),
    "sum out": lambda t, x, y: t.sum(x, 1, out=y.new_empty(3)) if 0 else t.sum(x, 1),
    "mean": lambda t, x, y: x.mean(),
    "mean dim": lambda t, x, y: x.mean((0, 1), keepdim=True),
    "prod": lambda t, x, y: x.prod(),
    "prod dim": lambda t, x, y: x.prod(1),
    "all": lambda t, x, y: x.all(),
    "all dim": lambda t, x, y: x.all(1),
    "any dims": lambda t, x, y: x.any((0, 1)),
    "amax": lambda t, x, y: x.amax(),
    "amin dim": lambda t, x, y: x.amin(1, keepdim=True),
    "max dim": lambda t, x, y: x.max(1),
    "min dim": lambda t, x, y: x.min(0, keepdim=True),
    "median": lambda t, x, y: x.median(),
    "nanmedian dim": lambda t, x, y: x.nanmedian(1),
    "squeeze": lambda t, x, y: x.squeeze(),
    "squeeze dim": lambda t, x, y: x.squeeze(0),
    "squeeze dims": lambda t, x, y: x.squeeze((0, 1)),
    "sort": lambda t, x, y: x.sort(),
    "sort stable": lambda t, x, y: x.sort(stable=True),
    "topk": lambda t, x, y: x.topk(2),
    "clamp": lambda t, x, y: x.clamp(0, 1),
    "clamp min": lambda t, x, y: x.clamp(min=0),
    "clamp max": lambda t, x, y: x.clamp_(max=0.5),
    "clamp tensor": lambda t, x, y: x.clamp(min=y),
    "gelu": lambda t, x, y: t.nn.functional.gelu(x),
    "gelu tanh": lambda t, x, y: t.nn.functional.gelu(x, approximate="tanh"),
    "lerp": lambda t, x, y: x.lerp(y, 0.5),
    "lerp tensor": lambda t, x, y: x.lerp(y, y),
    "logit": lambda t, x, y: x.logit(),
    "logit eps": lambda t, x, y: x.logit(0.25),
    "round": lambda t, x, y: x.round(),
    "polygamma": lambda t, x, y: x.polygamma(1),
    "view dtype": lambda t, x, y: x.view(t.int32),
    "transpose": lambda t, x, y: x.transpose(0, 1),
    "softmax": lambda t, x, y: x.softmax(0),
    "log_softmax": lambda t, x, y: x.log_softmax(1),
    "slice": lambda t, x, y: x[:, 1:3],
    "pad reflect": lambda t, x, y: t.nn.functional.pad(x[None], (1, 1), "reflect"),
    "pad replicate": lambda t, x, y: t.nn.functional.pad(x[None, None], (1, 1, 2, 0), "replicate"),
    "qr": lambda t, x, y: t.linalg.qr(x),
    "count_nonzero": lambda t, x, y: x.count_nonzero(),
    "fmod": lambda t, x, y: x.fmod(2),
    "leaky_relu": lambda t, x, y: t.nn.functional.leaky_relu(x, 0.25),
    "index_select": lambda t, x, y: x.index_select(0, t.tensor([1])),
    "round decimals": lambda t, x, y: x.round(decimals=2),
    "svd": lambda t, x, y: t.linalg.svd(x, full_matrices=False),
    "unique": lambda t, x, y: x.unique(),
    "unique inverse": lambda t, x, y: x.unique(return_inverse=True, return_counts=True),
    "unique dim": lambda t, x, y: x.unique(dim=1),
    "unique_consecutive": lambda t, x, y: x.unique_consecutive(return_counts=True),
    "uniform_": lambda t, x, y: x.uniform_(0.0, 2.0),
    "random_": lambda t, x, y: x.random_(),
    "random_ to": lambda t, x, y: x.random_(5),
    "random_ from": lambda t, x, y: x.random_(2, 5),
    "interpolate nearest": lambda t, x, y: t.nn.functional.interpolate(x[None, None], (6, 8)),
    "interpolate scales": lambda t, x, y: t.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
    "interpolate linear": lambda t, x, y: t.nn.functional.interpolate(x[None], 6, mode="linear", align_corners=True),
    "interpolate bicubic": lambda t, x, y: t.nn.functional.interpolate(x[None, None], (6, 8), mode="bicubic", antialias=True),
    "grid_sample": lambda t, x, y: t.nn.functional.grid_sample(x[None, None], y.reshape(1, 3, 2, 2), align_corners=False),
    "pdist": lambda t, x, y: t.nn.functional.pdist(x),
    "roll": lambda t, x, y: x.roll(1, 0),
}
IGNORED = {"aten.lift_fresh.default", "aten.detach.default", "aten.tensor.default", "aten.alias.default"}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_gets_the_overload_that_pytorchs_gets(name):
    ours, theirs = ([call for call in seen_by(library, CALLS[name]) if call[0] not in IGNORED] for library in (trt, torch))
    assert ours == theirs


def test_there_is_one_object_per_overload():
    assert aten.sum.default is not aten.sum.dim_IntList and aten.sum.dim_IntList is aten.sum.dim_IntList
    assert aten.add.Tensor is not aten.add.Scalar and aten.add.out is not aten.add.Tensor
    got = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            got.append(func)
            return func(*args, **(kwargs or {}))

    with Log():
        trt.ones(2).sum()
        trt.ones(2).sum(0)
    assert got[1] is aten.sum.default and got[3] is aten.sum.dim_IntList


def test_a_mode_gets_the_overload_that_was_called():
    x = trt.ones(2, 3)
    for func, args in ((aten.add.Scalar, (x, 1)), (aten.add.Tensor, (x, 1)), (aten.sum.dim_IntList, (x, None)), (aten.squeeze.dims, (x, [1])), (aten.div.Tensor_mode, (x, x))):
        kwargs = {"rounding_mode": "floor"} if func is aten.div.Tensor_mode else {}
        got = []

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None, got=got):
                got.append(func)
                return func(*args, **(kwargs or {}))

        with Log(), Log():
            func(*args, **kwargs)
        assert got == [func, func]


@pytest.mark.parametrize("name", ["add.Tensor", "add_.Scalar", "add.out", "sum.dim_IntList", "max.dim_max", "view.default", "chunk.default"])
def test_names_and_schemas_are_pytorchs(name):
    packet, overload = name.split(".")
    ours, theirs = getattr(getattr(aten, packet), overload), getattr(getattr(torch.ops.aten, packet), overload)
    assert str(ours._schema) == str(theirs._schema) and ours.name() == theirs.name() and str(ours) == str(theirs) and repr(ours) == repr(theirs)
    assert (ours._overloadname, ours._opname, ours.namespace, ours.__name__) == (theirs._overloadname, theirs._opname, theirs.namespace, theirs.__name__)
    assert ours.overloadpacket is getattr(aten, packet) and str(ours.overloadpacket) == str(theirs.overloadpacket)
    assert [a.name for a in ours._schema.arguments] == [a.name for a in theirs._schema.arguments]
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_packets_have_pytorchs_overloads():
    for name in ("add", "add_", "sum", "mean", "max", "pow", "clamp", "sort", "where", "div", "squeeze", "all", "median"):
        unknown = set(getattr(aten, name).overloads()) - set(getattr(torch.ops.aten, name).overloads())
        assert not unknown, name
    with pytest.raises(AttributeError, match="has no overload name 'no_such'"):
        aten.add.no_such  # noqa: B018


def test_an_overload_refuses_what_its_row_cannot_compute():
    x = trt.ones(2)
    with pytest.raises(TypeError, match=r"aten.sum.dim_IntList: missing the argument 'dim'"):
        aten.sum.dim_IntList(x)
    with pytest.raises(TypeError, match=r"aten.sum.default: takes 1 positional"):
        aten.sum.default(x, 1)
    with pytest.raises(NotImplementedError, match=r"aten.gelu.default: approximate='other' is not implemented"):
        aten.gelu.default(x, approximate="other")
