"""Untyped storages: copies that stay shared, slices over the same memory, addresses, sizes; tensors set beyond their end."""

from __future__ import annotations

import copy
import sys

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("size", [0, 1, 5, 5000])
@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_copies_have_bytes_of_their_own(size, copier):
    storage = trt.arange(size, dtype=trt.uint8).untyped_storage()
    copied = copier(storage)
    assert type(copied) is trt.UntypedStorage
    assert copied.tolist() == storage.tolist()
    if size:
        storage[0] = 9
        assert copied[0] == 0


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_deep_copies_stay_shared(typed, device):
    x = trt.ones(4, device=device)
    storage = x.storage() if typed else x.untyped_storage()
    for given in ({"s": storage, "x": x, "again": x.untyped_storage(), "row": x[1:]}, {"x": x, "row": x[1:], "s": storage, "again": x.untyped_storage()}):
        copied = copy.deepcopy(given)
        base = copied["x"].untyped_storage()
        assert copied["row"].untyped_storage()._cdata == base._cdata == copied["again"]._cdata
        assert (copied["s"]._untyped_storage if typed else copied["s"])._cdata == base._cdata
        assert base._cdata != x.untyped_storage()._cdata


def test_modules_with_a_storage_are_copied():
    module = trt.nn.Linear(2, 2)
    module.held = module.weight.data.untyped_storage()
    copied = copy.deepcopy(module)
    assert copied.held.tolist() == module.held.tolist()
    copied.held.fill_(0)
    assert module.held.tolist() != copied.held.tolist()


@pytest.mark.parametrize("part", [slice(1, 3), slice(None), slice(3, 1), slice(-2, None), slice(2, 100), slice(0, 0)])
def test_slices_view_the_bytes(part):
    ours, theirs = (m.arange(6, dtype=m.uint8).untyped_storage() for m in (trt, torch))
    a, b = ours[part], theirs[part]
    assert type(a) is trt.UntypedStorage
    assert a.tolist() == b.tolist()
    for whole in (ours, theirs):
        whole.fill_(7)
    assert a.tolist() == b.tolist()
    if len(a):
        a[0] = 1
        b[0] = 1
    assert ours.tolist() == theirs.tolist()
    assert not a.resizable()


def test_a_slice_outlives_its_storage():
    storage = trt.arange(64, dtype=trt.uint8).untyped_storage()
    part = storage[10:20]
    storage.resize_(1 << 20)
    storage.fill_(0)
    del storage
    junk = [trt.zeros(64, dtype=trt.uint8) for _ in range(20)]
    assert part.tolist() == list(range(10, 20))
    del junk


def test_slices_leave_lazy_clones_alone_and_keep_read_only_memory():
    x = trt.arange(6, dtype=trt.uint8)
    other = trt._lazy_clone(x) if hasattr(trt, "_lazy_clone") else x.clone()
    x.untyped_storage()[1:3].fill_(9)
    assert other.tolist() == [0, 1, 2, 3, 4, 5]
    fixed = trt.frombuffer(b"abcd", dtype=trt.uint8)
    with pytest.raises(RuntimeError, match="read-only"):
        fixed.untyped_storage()[1:].fill_(0)


def test_slices_with_steps_are_refused():
    for m in (trt, torch):
        with pytest.raises(RuntimeError, match="step"):
            m.ones(2).untyped_storage()[::2]


def test_addresses_and_sizes():
    for m in (trt, torch):
        assert m.UntypedStorage(0).data_ptr() == 0
        assert m.empty(0).untyped_storage().data_ptr() == 0
        for typed in (False, True):
            of = lambda n, typed=typed, m=m: m.ones(n).storage() if typed else m.ones(n).untyped_storage()
            assert sys.getsizeof(of(101)) - sys.getsizeof(of(1)) == 400
    assert trt.UntypedStorage(3, device="meta").device == trt.device("meta")
    assert trt.UntypedStorage([1, 2, 3]).tolist() == torch.UntypedStorage([1, 2, 3]).tolist()


GEOMETRIES = [(0, (5,), None), (1, (2, 3), None), (0, (2, 2), (100, 1)), (3, (0,), None), (0, (), None)]


@pytest.mark.parametrize(("offset", "size", "stride"), GEOMETRIES)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64"])
@pytest.mark.parametrize("source", ["storage", "tensor"])
def test_set_enlarges_the_storage(offset, size, stride, dtype, source):
    found = []
    for m in (trt, torch):
        base = m.ones(2, dtype=getattr(m, dtype))
        given = base.untyped_storage() if source == "storage" else base
        y = m.empty(0, dtype=getattr(m, dtype)).set_(given, offset, size, *(() if stride is None else (stride,)))
        found.append((tuple(y.shape), y.stride(), y.storage_offset(), base.untyped_storage().nbytes(), base.tolist()))
    assert found[0] == found[1]


def test_set_refuses_what_cannot_be():
    x = trt.empty(0)
    for offset, size, stride in ((-1, (2,), (1,)), (0, (2,), (-1,)), (0, (-2,), (1,)), (0, (1 << 40, 1 << 40), (1 << 40, 1)), (1 << 62, (4,), (1 << 61,))):
        with pytest.raises(RuntimeError):
            x.set_(trt.ones(2).untyped_storage(), offset, size, stride)
    with pytest.raises(RuntimeError):
        x.set_(trt.frombuffer(bytearray(8), dtype=trt.uint8).untyped_storage(), 0, (5,))
    assert x.shape == (0,)
