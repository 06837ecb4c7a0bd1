"""Tensors, storages and modules between processes: one memory, whoever sends it and however it is sent, and nothing left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

import tensorrt_lite as trt
import tensorrt_lite.multiprocessing as mp


def run(tmp_path, program, *arguments, **environment):
    """A program of several processes in a file of its own, as spawned processes import it; what it prints."""
    path = tmp_path / "program.py"
    path.write_text("import gc, os, sys, time, tensorrt_lite as trt\nimport tensorrt_lite.multiprocessing as mp\n" + textwrap.dedent(program))
    result = subprocess.run([sys.executable, str(path), *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def files_in_memory():
    return {name for name in os.listdir("/dev/shm") if name.startswith("tensorrt_lite_")}


def in_child(function):
    """The exit status of a forked child that runs the function."""
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("named", [False, True])
def test_a_storage_moves_with_all_its_tensors(named, monkeypatch):
    if named:
        mp.set_sharing_strategy("file_system")
    try:
        x = trt.arange(12.0).reshape(3, 4)
        row, parameter = x[1], trt.nn.Parameter(x.t())
        assert not x.is_shared() and not x.untyped_storage().is_shared()
        assert x.share_memory_() is x
        assert x.is_shared() and row.is_shared() and parameter.is_shared() and x.untyped_storage().is_shared()
        assert in_child(lambda: row.mul_(100)) == 0
        assert x.tolist() == [[0, 1, 2, 3], [400, 500, 600, 700], [8, 9, 10, 11]]
        assert (x.untyped_storage().filename is not None) == named and len(files_in_memory()) == named
        assert x.share_memory_().data_ptr() == row.data_ptr() - 16
        assert not x.clone().is_shared()
        empty = trt.empty(0).share_memory_()
        assert empty.is_shared() and empty.tolist() == []
        made = trt.UntypedStorage._new_shared(5)
        assert made.is_shared() and made.tolist() == [0] * 5
    finally:
        mp.set_sharing_strategy("file_descriptor")
    x = row = parameter = empty = made = None
    assert not files_in_memory()


def test_shared_memory_is_written_read_only_and_resized_like_any_other():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(3.0)
    array.flags.writeable = False
    with warnings.catch_warnings(action="ignore"):
        x = trt.from_numpy(array).share_memory_()
    x.add_(1)
    assert x.tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]
    clone = x._lazy_clone()
    clone.zero_()
    assert x.tolist() == [1, 2, 3]
    x = trt.tensor([1, 2, 3]).share_memory_()
    x.resize_(2)
    assert x.is_shared()
    x.resize_(5000)
    assert not x.is_shared() and x[:3].tolist() == [1, 2, 3]
    lazy = trt.ones(4)
    other = lazy._lazy_clone()
    lazy.share_memory_().fill_(7)
    assert other.tolist() == [1] * 4


def test_what_cannot_be_shared():
    with pytest.raises(RuntimeError, match="only available on CPU"):
        trt.zeros(3, device="meta").share_memory_()
    with pytest.raises(RuntimeError, match="unable to allocate shared memory"):
        trt.UntypedStorage._new_shared(1 << 45)
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        mp.reductions.reduce_tensor(trt.ones(2, requires_grad=True) * 2)
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage; try pickling a meta tensor instead"):
        mp.reductions.reduce_storage(trt.zeros(2, device="meta").untyped_storage())
    small = trt.zeros(2).untyped_storage().share_memory_()
    with pytest.raises(RuntimeError, match="the file has .* bytes, 100 are to be mapped"):
        trt.UntypedStorage._new_shared_fd_cpu(small._share_fd_cpu_()[0], 100)
    open_files = len(os.listdir("/proc/self/fd"))
    for size in (-1, -(1 << 62)):
        with pytest.raises(RuntimeError, match="must not be negative"):
            trt.UntypedStorage._new_shared_fd_cpu(small._share_fd_cpu_()[0], size)
        with pytest.raises(RuntimeError, match="must not be negative"):
            trt.UntypedStorage._new_shared(size)
    assert len(os.listdir("/proc/self/fd")) == open_files
    with pytest.raises(RuntimeError, match="the storage has not been initialised"):
        trt.UntypedStorage.__new__(trt.UntypedStorage).share_memory_()
    with pytest.raises(RuntimeError, match="unable to open shared memory object </no_such>"):
        trt.UntypedStorage._new_shared_filename_cpu(b"", b"/no_such", 8)


def test_mapped_files_tell_their_name(tmp_path):
    storage = trt.UntypedStorage.from_file(tmp_path / "data", True, 16)
    assert storage.is_shared() and storage.filename == str(tmp_path / "data") and not storage.resizable()
    assert trt.UntypedStorage.from_file(tmp_path / "data", False, 16).filename is None  # whose writes no other process sees


def test_modules_share_what_they_learn():
    model = trt.nn.Sequential(trt.nn.Linear(2, 3), trt.nn.BatchNorm1d(3))
    assert model.share_memory() is model
    assert all(t.is_shared() for t in model.state_dict().values())

    def train():
        model(trt.ones(4, 2)).sum().backward()
        with trt.no_grad():
            for p in model.parameters():
                p.fill_(5)

    assert in_child(train) == 0
    assert all((p == 5).all() for p in model.parameters()) and model[1].num_batches_tracked == 1
    assert all(p.grad is None for p in model.parameters())


EXCHANGE = """
    class Point:
        def __init__(self, x):
            self.x = x

    def child(inbox, outbox):
        x, column, again, parameter, storage, typed, empty, meta, point, weights = inbox.get()
        assert x.is_shared() and column.stride() == (4,) and column.storage_offset() == 1 and x.dtype == trt.float32
        assert x.untyped_storage() is column.untyped_storage() is storage is typed.untyped() and again is x
        assert isinstance(parameter, trt.nn.Parameter) and parameter.requires_grad and parameter.name_of_mine == "w" and parameter.grad is None
        assert empty.shape == (0, 3) and meta.is_meta and meta.stride() == (1, 2) and point.x.untyped_storage() is storage
        assert weights.bfloat16.tolist() == [1.5] and weights.complex.tolist() == [1 - 2j]
        x.mul_(2)
        outbox.put((x, trt.full((3,), 7.0)))
        assert inbox.get() == "stop"

    class Weights:
        def __init__(self):
            self.bfloat16, self.complex = trt.tensor([1.5], dtype=trt.bfloat16), trt.tensor([1 + 2j]).conj()

    if __name__ == "__main__":
        if len(sys.argv) > 2:
            mp.set_sharing_strategy(sys.argv[2])
        context = mp.get_context(sys.argv[1])
        inbox, outbox = context.Queue(), context.SimpleQueue()
        x = trt.arange(12.0).reshape(3, 4)
        parameter = trt.nn.Parameter(trt.ones(2))
        parameter.name_of_mine, parameter.grad = "w", trt.ones(2)
        process = context.Process(target=child, args=(inbox, outbox))
        process.start()
        storage = x.untyped_storage()
        inbox.put((x, x[:, 1], x, parameter, storage, x.storage(), trt.zeros(0, 3), trt.zeros(3, 2, device="meta").t(), Point(x[0]), Weights()))
        back, fresh = outbox.get()
        assert back.untyped_storage() is storage and x.tolist()[1] == [8, 10, 12, 14] and fresh.tolist() == [7, 7, 7]
        inbox.put("stop")
        process.join()
        assert process.exitcode == 0
        print("exchanged")
"""


@pytest.mark.parametrize(("method", "strategy"), [("fork", "file_descriptor"), ("spawn", "file_descriptor"), ("forkserver", "file_descriptor"), ("fork", "file_system")])
def test_queues_pass_tensors_by_reference(tmp_path, method, strategy):
    assert run(tmp_path, EXCHANGE, method, strategy).splitlines()[-1] == "exchanged"
    assert not files_in_memory()


def test_a_program_that_imports_multiprocessing_alone_shares_as_well(tmp_path):
    """PyTorch registers with multiprocessing's pickler when it is imported; here the first tensor that is sent does."""
    path = tmp_path / "plain.py"
    path.write_text(textwrap.dedent("""
        import multiprocessing as mp
        import tensorrt_lite as trt

        def child(queue, x):
            x.add_(queue.get())
            queue.put("done")

        if __name__ == "__main__":
            context = mp.get_context("spawn")
            queue, x, y = context.Queue(), trt.zeros(3), trt.nn.Parameter(trt.ones(3))
            process = context.Process(target=child, args=(queue, x))
            process.start()
            queue.put(y.detach())
            process.join()
            print(x.tolist(), x.is_shared(), y.is_shared())
    """))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[1.0, 1.0, 1.0] True True", done.stderr


def test_pools_and_pipes(tmp_path):
    out = run(tmp_path, """
        from tensorrt_lite.multiprocessing.pool import Pool

        def double(x):
            return x * 2, x.is_shared()

        if __name__ == "__main__":
            for make in (mp.get_context("fork").Pool, Pool):
                with make(2) as pool:
                    results = pool.map(double, [trt.full((2,), float(i)) for i in range(5)])
                assert [x.tolist() for x, _ in results] == [[2.0 * i] * 2 for i in range(5)]
                assert all(shared and x.is_shared() for x, shared in results)
            a, b = mp.Pipe()
            x = trt.ones(3)
            a.send(x)
            y = b.recv()
            y.add_(1)
            assert x.tolist() == [2, 2, 2] and y.untyped_storage() is x.untyped_storage()
            print("done")
    """)  # fmt: skip
    assert out.splitlines()[-1] == "done"


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_nothing_is_left_of_processes_that_are_killed(tmp_path, strategy):
    """The sender is killed with tensors on their way, the receiver with tensors mapped, then the whole program."""
    path = tmp_path / "killed.py"
    path.write_text(textwrap.dedent(f"""
        import os, signal, time
        import tensorrt_lite as trt
        import tensorrt_lite.multiprocessing as mp
        mp.set_sharing_strategy("{strategy}")

        def child(inbox, outbox):
            kept = inbox.get()
            outbox.put(trt.ones(1000))
            outbox.put("sent")
            time.sleep(60)

        context = mp.get_context("fork")
        inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
        process = context.Process(target=child, args=(inbox, outbox))
        process.start()
        inbox.put([trt.ones(1000) for _ in range(5)])
        x = outbox.get()
        assert outbox.get() == "sent"
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert x.sum() == 1000
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    process = subprocess.Popen([sys.executable, str(path)], stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate(timeout=60)  # the resource tracker has this stderr, too, and ends after its work
    assert process.returncode == -9 and "Error" not in errors, errors
    assert not files_in_memory()


def test_descriptors_are_closed():
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    tensors = [trt.ones(10).share_memory_() for _ in range(20)]
    assert count() == before + 20
    del tensors
    assert count() == before


SPAWNED = """
    import signal

    def works(rank, queue, x):
        x[rank] = rank + 1
        queue.put(rank)

    def raises(rank):
        if rank == 1:
            raise ValueError("of rank 1")
        time.sleep(60)

    def exits(rank):
        sys.exit(3 if rank == 0 else 0)

    def killed(rank):
        os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        method = sys.argv[1]
        x, queue = trt.zeros(3).share_memory_(), mp.get_context(method).SimpleQueue()
        assert mp.start_processes(works, (queue, x), 3, start_method=method) is None
        assert x.tolist() == [1, 2, 3] and {queue.get() for _ in range(3)} == {0, 1, 2}
        try:
            mp.start_processes(raises, nprocs=2, start_method=method)
        except mp.ProcessRaisedException as error:
            assert error.error_index == 1 and error.pid > 0 and "ValueError: of rank 1" in str(error) and "-- Process 1 terminated" in str(error)
        context = mp.start_processes(exits, nprocs=1, join=False, start_method=method)
        assert len(context.pids()) == 1 and isinstance(context, mp.ProcessContext)
        try:
            while not context.join(timeout=10):
                pass
            raise SystemError
        except mp.ProcessExitedException as error:
            assert error.exit_code == 3 and str(error) == "process 0 terminated with exit code 3"
        try:
            mp.start_processes(killed, start_method=method)
            raise SystemError
        except mp.ProcessExitedException as error:
            assert error.signal_name == "SIGKILL" and str(error) == "process 0 terminated with signal SIGKILL"
        print("done")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_groups_of_processes(tmp_path, method):
    assert run(tmp_path, SPAWNED, method).splitlines()[-1] == "done"


def test_errors_of_groups_travel():
    import pickle

    for error in (mp.ProcessRaisedException("text", 1, 22), mp.ProcessExitedException("text", 1, 22, 3, "SIGTERM")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and vars(again) == vars(error)
    with pytest.warns(UserWarning, match="SpawnContext is renamed"):
        mp.SpawnContext([], [])


def test_hogwild_training_converges(tmp_path):
    """Processes update shared weights without a lock, and all of them learn."""
    out = run(tmp_path, """
        from tensorrt_lite import nn

        def loss_of(model, x):
            return nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))

        def train(rank, model):
            trt.manual_seed(rank)
            optimizer = trt.optim.SGD(model.parameters(), lr=0.05)
            for step in range(300):
                optimizer.zero_grad()
                loss_of(model, trt.randn(32, 4)).backward()
                optimizer.step()

        if __name__ == "__main__":
            trt.manual_seed(0)
            model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).share_memory()
            x = trt.randn(256, 4)
            before = loss_of(model, x).item()
            mp.start_processes(train, (model,), 2, start_method="fork")
            after = loss_of(model, x).item()
            assert after < 0.05 * before, (before, after)
            print("converged")
    """)  # fmt: skip
    assert out.splitlines()[-1] == "converged"


def test_default_dtype_is_the_process_s_and_default_device_the_threads():
    torch = pytest.importorskip("torch")
    found = []

    def ask():
        for library in (trt, torch):
            found.append((str(library.get_default_dtype()), str(library.get_default_device()), str(library.zeros(1).device)))
            library.set_default_device("meta")
            with library.device("cpu"):
                found.append(str(library.zeros(1).device))
            found.append(str(library.zeros(1).device))

    for library in (trt, torch):
        library.set_default_dtype(library.float64)
        library.set_default_device("meta")
    try:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert [str(library.get_default_device()) for library in (trt, torch)] == ["meta", "meta"]
    finally:
        for library in (trt, torch):
            library.set_default_dtype(library.float32)
            library.set_default_device(None)  # of PyTorch's "cpu" a mode would stay, under which Tensor.dim_order forgets its argument
    ours, theirs = found[:3], found[3:]
    assert ours == [(theirs[0][0], "cpu", "cpu"), *theirs[1:]] and ours[0][0] == "torch.float64"


def test_import_alone_does_not_load_multiprocessing():
    program = "import sys, tensorrt_lite as trt; trt.ones(2); print([m for m in sys.modules if 'multiprocessing' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert Path(mp.__file__).parent.name == "multiprocessing"
