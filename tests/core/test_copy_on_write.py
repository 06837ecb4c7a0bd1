"""Copy-on-write storage: a lazy clone shares memory until somebody writes, and nobody can tell but by the memory it takes."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
import torch

import tensorrt_lite as trt
from tensorrt_lite._C.core.storage import is_lazy
from tests.conformance import opinfo
from tests.core.test_read_only import writes_of

BIG = 1 << 16  # floats: a block of its own, and operators hand kernels copies of the operands' geometry


def shares(*tensors):
    return [is_lazy(t.untyped_storage()) for t in tensors]


def allocated():
    return trt.cpu.memory.memory_stats()["allocated_bytes.current"]


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:], lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0, 0], lambda x: x.expand(2, 3, 4)],
                         ids=["whole", "rows", "transposed", "strided", "element", "expanded"])  # fmt: skip
def test_values_and_geometry_are_pytorchs(view):
    ours, theirs = (view(m.arange(12.0).reshape(3, 4)) for m in (trt, torch))
    ours, theirs = trt._lazy_clone(ours), torch._lazy_clone(theirs)
    assert ours.tolist() == theirs.tolist() and tuple(ours.stride()) == theirs.stride() and ours.storage_offset() == theirs.storage_offset()
    assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes() and not ours._is_view()


def test_memory_is_shared_until_one_writes():
    x = trt.ones(BIG)
    before = allocated()
    clones = [x._lazy_clone() for _ in range(3)]
    assert allocated() == before and shares(x, *clones) == [True] * 4
    clones[0].add_(1)
    assert allocated() > before and shares(x, *clones) == [True, False, True, True]
    one_copy = allocated() - before
    del clones[1:]
    x.add_(1)  # nobody else holds the block any more
    assert allocated() - before == one_copy and shares(x) == [False]
    assert x.sum().item() == clones[0].sum().item() == 2 * BIG


def test_views_follow_their_storage():
    x = trt.zeros(4)
    before = x[1:3]
    y = x._lazy_clone()
    after, detached = x[1:3], x.detach()
    before.fill_(5)
    assert x.tolist() == detached.tolist() == [0, 5, 5, 0] and after.tolist() == [5, 5] and y.tolist() == [0, 0, 0, 0]
    z = y._lazy_clone()
    y[0] = 1
    assert (x.tolist(), y.tolist(), z.tolist()) == ([0, 5, 5, 0], [1, 0, 0, 0], [0, 0, 0, 0])


def raw_write(t):
    import ctypes

    (ctypes.c_float * 1).from_address(t.data_ptr())[0] = 9


def through_numpy(t):
    t.numpy()[0] = 9


def through_dlpack(t):
    np.from_dlpack(t)[0] = 9


def through_file(t):
    from tensorrt_lite._C.core.storage import exported

    exported(t.untyped_storage(), True)[:4] = np.float32(9).tobytes()


def accumulate(t):
    leaf = trt.zeros(t.shape, requires_grad=True)
    leaf.grad = t
    leaf.sum().backward()


def optimizer_step(t):
    p = trt.nn.Parameter(t)
    p.grad = trt.ones(t.shape)
    for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
        trt.optim.AdamW([p], lr=0.1, **options).step()


def running_statistics(t):
    trt.nn.functional.batch_norm(trt.randn(4, t.numel()), t, trt.ones(t.numel()), training=True)


WRITES = {
    "fill_": lambda t: t.fill_(9), "zero_": lambda t: t.zero_(), "add_": lambda t: t.add_(1), "copy_": lambda t: t.copy_(trt.full(t.shape, 9.0)), "setitem": lambda t: t.__setitem__(0, 9),
    "mask": lambda t: t.__setitem__(t == t, 9), "index_put_": lambda t: t.index_put_((trt.tensor([0]),), trt.tensor(9.0)), "uniform_": lambda t: t.uniform_(2, 3), "out": lambda t: trt.add(trt.ones(t.shape), 8, out=t),
    "out, reduction": lambda t: trt.sum(trt.ones(9, *t.shape), 0, out=t), "out, matrix product": lambda t: trt.mv(trt.eye(t.numel()), trt.full(t.shape, 9.0), out=t), "out, resized": lambda t: trt.add(trt.ones(2 * t.numel()), 8, out=t),
    "cumsum_": lambda t: t.add_(1).cumsum_(0), "view": lambda t: t.view(-1)[:1].fill_(9), "bytes": lambda t: t.view(trt.uint8).fill_(9), "data": lambda t: t.data.fill_(9), "foreach": lambda t: trt._foreach_add_([t], 1.0),
    "storage[...]": lambda t: t.untyped_storage().__setitem__(3, 64), "storage.fill_": lambda t: t.untyped_storage().fill_(9), "storage.copy_": lambda t: t.untyped_storage().copy_((t + 1).untyped_storage()),
    "numpy": through_numpy, "dlpack": through_dlpack, "data_ptr": raw_write, "file": through_file, "gradient": accumulate, "optimizer": optimizer_step, "running mean": running_statistics,
    "resize_": lambda t: t.resize_(4 * t.numel()).fill_(9), "storage.resize_": lambda t: t.untyped_storage().resize_(4) and t[:1].fill_(9),
    "set_": lambda t: t.set_(trt.ones(3)), "data=": lambda t: setattr(t, "data", trt.ones(3)), "inference": lambda t: in_inference_mode(t), "parameter": lambda t: trt.nn.init.ones_(trt.nn.Parameter(t)),
    "load_state_dict": lambda t: load_into(t),
}  # fmt: skip


def in_inference_mode(t):
    with trt.inference_mode():
        t.mul_(2).add_(1)


def load_into(t):
    module = trt.nn.Module()
    module.register_buffer("b", t)
    file = io.BytesIO()
    trt.save({"b": trt.full(t.shape, 9.0)}, file)
    file.seek(0)
    module.load_state_dict(trt.load(file))


@pytest.mark.parametrize("n", [4, BIG], ids=["small", "held"])
@pytest.mark.parametrize("way", WRITES)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_every_way_to_write_leaves_the_others_alone(way, n):
    if way == "out, matrix product" and n == BIG:
        n = 200
    for writer in (0, 1):
        values = trt.arange(float(n)) % 7
        expected = values.tolist()
        pair = [values, values._lazy_clone()]
        WRITES[way](pair[writer])
        assert pair[1 - writer].tolist() == expected
        if way not in ("set_", "data=", "storage.resize_"):
            assert pair[writer].tolist()[:n] != expected
        pair[1 - writer].fill_(3)
        assert pair[writer].flatten()[:2].tolist() != [3, 3]


@pytest.mark.filterwarnings("ignore")
def test_census_of_operators_that_write():
    wrong, compared = [], 0
    for name, op in opinfo.entries().items():
        for how, call, results in writes_of(op):
            plain, lazy = [r.clone() for r in results], [r.detach().clone() for r in results]
            others = [t._lazy_clone() for t in lazy]
            before = [bytes(t.untyped_storage().tobytes()) for t in others]
            trt.manual_seed(0)
            try:
                call(plain)
            except Exception:
                continue
            trt.manual_seed(0)
            call(lazy)
            compared += 1
            if [bytes(t.untyped_storage().tobytes()) for t in others] != before:
                wrong.append(f"{name} {how}: the lazy clone was written to")
            if any(not trt.equal(trt.nan_to_num(a), trt.nan_to_num(b)) for a, b in zip(plain, lazy, strict=True)) and name not in ("empty_like", "new_empty"):
                wrong.append(f"{name} {how}: another result")
    assert not wrong, "\n".join(wrong)
    assert compared > 200


def test_memory_that_others_can_write_to_is_copied_at_once():
    a = np.zeros(3, np.float32)
    exposed, seen, packed = trt.zeros(3), trt.zeros(3), trt.zeros(3)
    view, keep = seen.numpy(), np.from_dlpack(packed)
    exposed.data_ptr()
    for x in (trt.from_numpy(a), exposed, seen, packed):
        y = x._lazy_clone()
        assert shares(x, y) == [False, False]
        x.fill_(1)
        assert y.tolist() == [0, 0, 0]
    assert a.tolist() == view.tolist() == keep.tolist() == [1, 1, 1]


def test_meta():
    assert trt.empty(3, device="meta")._lazy_clone().is_meta


def test_shrinking_keeps_the_clones_bytes():
    """A storage that shrinks gives whole pages back; not those that a lazy clone reads."""
    x = trt.ones(1 << 20)
    y = x._lazy_clone()
    x.untyped_storage().resize_(4)
    assert y.sum().item() == 1 << 20
    x.untyped_storage().resize_(4 << 20)
    x.fill_(2)
    assert y.sum().item() == 1 << 20


def test_gradients_and_versions():
    x = trt.ones(3, requires_grad=True)
    y = x._lazy_clone()
    assert type(y.grad_fn).__name__ == type(torch._lazy_clone(torch.ones(3, requires_grad=True)).grad_fn).__name__
    saved = y * y
    (y * 1).add_(1)
    assert y._version == x._version == 0
    saved.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    z = trt.ones(3)
    w = z._lazy_clone()
    w.add_(1)
    assert (z._version, w._version) == (0, 1)
    with trt.autograd.forward_ad.dual_level():
        dual = trt._lazy_clone(trt.autograd.forward_ad.make_dual(trt.ones(3), trt.full((3,), 2.0)))
        assert trt.autograd.forward_ad.unpack_dual(dual).tangent.tolist() == [2, 2, 2]


def test_threads_clone_and_write():
    base = trt.arange(float(BIG))
    expected, wrong, start = base.sum().item(), [], threading.Barrier(4)

    def work(k):
        start.wait()
        for i in range(50):
            mine = base._lazy_clone()
            other = mine._lazy_clone()
            mine.fill_(k)
            if other[1].item() != 1 or mine[1].item() != k or i % 10 == 0 and other.sum().item() != expected:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k + 2,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and base.sum().item() == expected


# ---- what shares memory with what, as in PyTorch -----------------------------------------------------------------------

ALIASES = {
    "reshape, a view": lambda x: x.reshape(4, 3), "reshape, a copy": lambda x: x.t().reshape(12), "reshape of what is sliced": lambda x: x[:, 1:3].reshape(6), "flatten": lambda x: x.flatten(),
    "contiguous": lambda x: x.contiguous(), "contiguous, a copy": lambda x: x.t().contiguous(), "to nothing new": lambda x: x.to(x.dtype), "to, copy": lambda x: x.to(x.dtype, copy=True), "clone": lambda x: x.clone(),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIASES)
def test_reshape_and_to_share_what_they_share_in_pytorch(name):
    outcomes = []
    for m in (trt, torch):
        x = m.arange(12.0).reshape(3, 4)
        y = ALIASES[name](x)
        x.add_(100)
        after_x = y.tolist()
        y.mul_(2)
        outcomes.append((after_x, x.tolist(), y.tolist()))
    assert outcomes[0] == outcomes[1]
