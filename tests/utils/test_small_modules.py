"""Modules of `utils` and `nn.parallel` with a few functions each."""

from __future__ import annotations

import logging
import threading

import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn.parallel import comm
from tensorrt_lite.utils import debug_log, file_baton
from tensorrt_lite.utils.serialization import config


def test_a_baton_is_held_by_one(tmp_path):
    path = tmp_path / "lock"
    first, second = file_baton.FileBaton(path), file_baton.FileBaton(path, wait_seconds=0.01, warn_after_seconds=0.01)
    assert first.try_acquire() and not second.try_acquire()
    timer = threading.Timer(0.1, first.release)
    timer.start()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        second.wait()
    timer.join()
    assert not path.exists() and second.try_acquire()


def test_configuration_of_files_is_that_of_serialization(tmp_path):
    trt.save(trt.ones(5000), tmp_path / "f.pt")
    config.load.mmap = True
    try:
        assert not trt.load(tmp_path / "f.pt").untyped_storage().resizable()  # as mapped memory is
        assert trt.load(tmp_path / "f.pt", mmap=False).untyped_storage().resizable()
    finally:
        config.load.mmap = False
    config.save.compute_crc32 = False
    try:
        assert not trt.serialization.get_crc32_options()
    finally:
        config.save.compute_crc32 = True
    with pytest.raises(NotImplementedError, match="storage_alignment"):
        config.save.storage_alignment = 4096


def test_norms_of_gradients_are_logged(caplog):
    x, y = trt.ones(4, requires_grad=True), trt.ones(1, requires_grad=True)
    z = x * 2 + y * 3
    debug_log.debug_grad_log(x, y)
    with caplog.at_level(logging.INFO):
        z.sum().backward()
    assert caplog.messages == ["[rank 0][bwd] t0_grad_norm=4.0000 t1_grad_norm=12.0000"]


def test_tensors_are_cut_and_joined():
    x = trt.arange(6.0, requires_grad=True)
    parts = comm.scatter(x, ["cpu", "cpu"], chunk_sizes=[2, 4])
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3, 4, 5]]
    assert [p.tolist() for p in comm.scatter(x, ["cpu"] * 4)] == [[0, 1], [2, 3], [4, 5]]
    joined = comm.gather(parts, destination=-1)
    assert joined.tolist() == x.tolist()
    joined.sum().backward()
    assert x.grad.tolist() == [1] * 6
    out = [trt.empty(4), trt.empty(2)]
    assert [p.tolist() for p in comm.scatter(x.detach(), out=out)] == [[0, 1, 2, 3], [4, 5]] and comm.gather(out, out=trt.empty(6)).tolist() == x.tolist()


def test_tensors_are_broadcast_and_added():
    x = trt.ones(2)
    assert [t.tolist() for t in comm.broadcast(x, ["cpu", "cpu"])] == [[1, 1]] * 2
    assert comm.broadcast(x, out=[trt.empty(2)])[0].tolist() == [1, 1]
    assert [[t.tolist() for t in device] for device in comm.broadcast_coalesced([x, x * 2], ["cpu"])] == [[[1, 1], [2, 2]]]
    assert comm.reduce_add([x, x * 2], "cpu").tolist() == [3, 3]
    assert [t.tolist() for t in comm.reduce_add_coalesced([[x, x], [x, x * 3]], "cpu")] == [[2, 2], [4, 4]]
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        comm.reduce_add([x, trt.ones(3)], "cpu")
    with pytest.raises(RuntimeError, match="at least one input"):
        comm.reduce_add([])
    with pytest.raises(RuntimeError, match="exactly one of 'devices' and 'out'"):
        comm.broadcast(x)
    assert trt.cuda.comm.reduce_add is comm.reduce_add
