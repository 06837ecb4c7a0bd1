"""Loaders with workers: PyTorch's batches in PyTorch's order from PyTorch's seeds; errors, deaths, shutdown, memory."""

from __future__ import annotations

import collections
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import data

torch = pytest.importorskip("torch")
reference = pytest.importorskip("torch.utils.data")

BOTH = ((trt, data), (torch, reference))
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def as_lists(value):
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {k: as_lists(v) for k, v in value.items()}
    return [as_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def on_both(build, epochs=2, seed=7):
    """Batches of some epochs on each side, and the next draw of the global generator."""
    results = []
    for lib, module in BOTH:
        lib.manual_seed(seed)
        loader = build(lib, module)
        batches = [as_lists(list(loader)) for _ in range(epochs)]
        results.append((batches, lib.rand(2).tolist()))
    return results


def fds():
    return len(os.listdir("/proc/self/fd"))


point = collections.namedtuple("point", "x y")


class Drawing:
    """Draws of all three generators, and who makes them."""

    def __init__(self, lib, module, count=10):
        self.lib, self.module, self.count = lib, module, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        info = self.module.get_worker_info()
        return (index, info.id, info.num_workers, info.seed, random.randrange(10**9), int(np.random.randint(10**9)), self.lib.randint(10**9, ()))


@pytest.mark.parametrize("options", [
    {"num_workers": 1}, {"num_workers": 2, "batch_size": 3}, {"num_workers": 3, "batch_size": 2, "shuffle": True}, {"num_workers": 2, "batch_size": None},
    {"num_workers": 2, "batch_size": 4, "drop_last": True, "prefetch_factor": 1}, {"num_workers": 2, "batch_size": 4, "persistent_workers": True, "shuffle": True},
    {"num_workers": 4, "batch_size": 8}, {"num_workers": 2, "prefetch_factor": 5, "in_order": False, "batch_size": 100},
])  # fmt: skip
def test_order_seeds_and_draws(options):
    ours, theirs = on_both(lambda lib, module: module.DataLoader(Drawing(lib, module), **options))
    assert ours == theirs


def test_own_generator_and_unshuffled_orders():
    ours, theirs = on_both(lambda lib, module: module.DataLoader(Drawing(lib, module), 4, True, num_workers=2, generator=lib.Generator().manual_seed(3)))
    assert ours == theirs
    ours, theirs = on_both(lambda lib, module: module.DataLoader(lib.arange(9), num_workers=2, batch_sampler=[[0, 1], [5], [2, 8, 3]]))
    assert ours == theirs


def test_numpy_state_is_numpys_own_spreading_of_the_seed():
    from torch.utils.data._utils.worker import _generate_state as reference_state

    from tensorrt_lite.utils.data._utils.worker import _generate_state

    for seed, worker in ((0, 0), (5, 3), (2**62 + 12345, 7), (2**32, 1)):
        assert _generate_state(seed, worker) == reference_state(seed, worker)


def test_numpy_that_a_worker_loads_later_is_seeded_too():
    program = textwrap.dedent("""
        import sys
        import tensorrt_lite as trt
        from tensorrt_lite.utils.data import DataLoader

        class Late:
            def __len__(self):
                return 2

            def __getitem__(self, index):
                assert index or "numpy.random" not in sys.modules
                import numpy
                return int(numpy.random.randint(10**9))

        trt.manual_seed(1)
        print([b.tolist() for b in DataLoader(Late(), num_workers=1)])
        print([b.tolist() for b in DataLoader(Late(), num_workers=1)])
    """)
    path = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    torch.manual_seed(1)

    class Late:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return int(np.random.randint(10**9))

    theirs = [[b.tolist() for b in reference.DataLoader(Late(), num_workers=1)] for _ in range(2)]
    assert path.stdout.split("\n")[:2] == [str(t) for t in theirs]


def test_structures_types_and_views_arrive_whole():
    big = trt.arange(100_000.0)

    def collate(batch):
        return {
            "large": trt.full((300, 300), 2.5), "small": trt.arange(3), "view": big[5:8], "columns": trt.arange(6).reshape(2, 3).t(), "half": trt.ones(40_000, dtype=trt.bfloat16),
            "empty": trt.empty(0, 3), "meta": trt.zeros(2, 3, device="meta"), "parameter": trt.nn.Parameter(trt.ones(20_000)), "numpy": np.arange(4), "text": "abc", "point": point(1, trt.ones(2)),
            "twice": [big, big[1:]], "leaf": trt.ones(3, requires_grad=True), "complex": trt.tensor([1 + 2j]), "large view": trt.zeros(400, 400)[::2, ::2],
        }  # fmt: skip

    (batch,) = data.DataLoader([0], num_workers=1, collate_fn=collate)
    assert batch["large"].is_shared() and batch["large"].sum() == 225_000 and batch["small"].tolist() == [0, 1, 2]
    assert batch["view"].tolist() == [5, 6, 7] and batch["view"].untyped_storage().nbytes() == 12
    assert batch["columns"].stride() == (1, 3) and batch["columns"].tolist() == [[0, 3], [1, 4], [2, 5]] and batch["half"].dtype is trt.bfloat16
    assert batch["empty"].shape == (0, 3) and batch["meta"].is_meta and isinstance(batch["parameter"], trt.nn.Parameter) and batch["parameter"].sum() == 20_000
    assert batch["numpy"].tolist() == [0, 1, 2, 3] and batch["text"] == "abc" and type(batch["point"]).__name__ == "point" and batch["point"].y.tolist() == [1, 1]
    assert batch["twice"][0].untyped_storage() is batch["twice"][1].untyped_storage() and batch["twice"][1][0] == 1
    assert batch["leaf"].requires_grad and batch["leaf"].grad_fn is None and batch["complex"].tolist() == [1 + 2j]
    assert batch["large view"].shape == (200, 200) and batch["large view"].stride() == (800, 2)
    batch["large"].add_(1)


def test_default_batches_are_those_without_workers():
    images = [(trt.full((3, 40, 40), float(i)), np.full((30, 30), i), i, {"label": float(i), "name": str(i)}) for i in range(7)]
    plain, loaded = (list(data.DataLoader(images, 3, num_workers=n)) for n in (0, 2))
    assert as_lists(plain) == as_lists(loaded)
    tensors = data.TensorDataset(trt.arange(40_000.0).reshape(4, 10_000), trt.arange(4))
    for dataset in (tensors, data.Subset(tensors, [3, -1, 0])):
        plain, loaded = (list(data.DataLoader(dataset, 2, num_workers=n)) for n in (0, 1))
        assert as_lists(plain) == as_lists(loaded)
    assert loaded[0][0].is_shared() and loaded[0][1].is_shared()  # above and below what travels as bytes


@pytest.mark.parametrize("persistent", [False, True])
def test_a_dropped_iterator_ends_its_workers(persistent):
    """By reference count alone: nothing waits for the garbage collector."""
    gc.disable()
    try:
        iterator = iter(data.DataLoader(range(100), 2, num_workers=1, persistent_workers=persistent))
        next(iterator)
        workers = list(iterator._workers)
        del iterator
        assert not any(worker.is_alive() for worker in workers)
    finally:
        gc.enable()


def test_small_tensors_of_a_batch_are_independent():
    def collate(batch):
        return [trt.full((n,), float(n)) for n in (1, 17, 3)]

    (batch,) = data.DataLoader([0], num_workers=1, collate_fn=collate)
    assert all(t.is_shared() and t.data_ptr() % 64 == 0 for t in batch)
    batch[1].fill_(-1)
    assert batch[0].tolist() == [1] and batch[2].tolist() == [3] * 3
    kept = batch[2]
    del batch
    assert kept.tolist() == [3] * 3


def test_shared_datasets_are_not_copied():
    """Memory that the program has shared is handed on as it is: the worker's view of it, and the loader's."""
    table = trt.arange(200_000.0).share_memory_()

    class Rows:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return table[50_000 * index : 50_000 * (index + 1)]

    rows = list(data.DataLoader(Rows(), batch_size=None, num_workers=2))
    assert [row[0].item() for row in rows] == [0, 50_000, 100_000, 150_000]
    rows[1].fill_(-1)
    assert table[50_000] == -1 and len({row.untyped_storage()._cdata for row in rows}) == 1


class Stream:
    def __iter__(self):
        info = self.module.get_worker_info()
        return iter(range(info.id, self.count, info.num_workers))


def stream(module, count):
    kind = type("Sharded", (Stream, module.IterableDataset), {"module": module, "count": count})
    return kind()


@pytest.mark.parametrize("options", [
    {"num_workers": 2}, {"num_workers": 3, "batch_size": 4}, {"num_workers": 2, "batch_size": None}, {"num_workers": 2, "batch_size": 4, "drop_last": True},
    {"num_workers": 2, "batch_size": 3, "persistent_workers": True}, {"num_workers": 5, "batch_size": 7, "prefetch_factor": 1},
])  # fmt: skip
@pytest.mark.parametrize("count", [10, 1])
def test_streams_in_shares(options, count):
    ours, theirs = on_both(lambda lib, module: module.DataLoader(stream(module, count), **options))
    assert ours == theirs


def test_streams_that_are_not_shared_out_exceed_their_promised_length():
    class Whole(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 3

    loader = data.DataLoader(Whole(), num_workers=2)
    assert len(loader) == 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert sorted(b.item() for b in loader) == [0, 0, 1, 1, 2, 2]
    texts = [str(w.message) for w in caught]
    assert len(texts) == 3 and "was reported to be 3(when accessing len(dataloader)), but 4 samples have been fetched." in texts[0] and "replica at each worker" in texts[0]


def failing(kind, *, at=2):
    class Failing:
        def __len__(self):
            return 6

        def __getitem__(self, index):
            if index == at:
                raise kind("gone")
            return index

    return Failing()


class Peculiar(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Telling(Exception):
    message = "none"

    def __init__(self, message):
        super().__init__(message)
        self.message = message


@pytest.mark.parametrize(("kind", "raised"), [(OSError, OSError), (KeyError, KeyError), (Telling, Telling), (ZeroDivisionError, ZeroDivisionError), (StopIteration, StopIteration)])
def test_errors_carry_the_worker_s_traceback(kind, raised):
    texts = []
    for _, module in BOTH:
        loader = iter(module.DataLoader(failing(kind), num_workers=2))
        assert [next(loader).item(), next(loader).item()] == [0, 1]
        with pytest.raises(raised, match="Caught") as caught:
            next(loader)
        assert [b.item() for b in loader] == [3, 4, 5]  # the loader goes on
        texts.append(str(caught.value).splitlines())
    assert texts[0][0] == texts[1][0] == f"Caught {kind.__name__} in DataLoader worker process 0."
    assert texts[0][1] == texts[1][1] == "Original Traceback (most recent call last):"
    assert texts[0][-1] == texts[1][-1] and "in __getitem__" in "".join(texts[0])


def test_errors_that_cannot_be_made_from_a_message_or_pickled():
    class Local(Exception):
        pass

    def peculiar(batch):
        raise Peculiar(1, 2)

    def local(batch):
        raise Local("here")

    for function, match in ((peculiar, r"Caught Peculiar in DataLoader worker process 0"), (local, "Local: here"), (lambda batch: threading.Lock(), "cannot pickle '_thread.lock'")):
        with pytest.raises((RuntimeError, TypeError), match=match):
            next(iter(data.DataLoader([1], num_workers=1, collate_fn=function)))


def test_init_functions():
    seen = trt.zeros(3, dtype=trt.int64).share_memory_()

    def init(worker):
        info = data.get_worker_info()
        assert info.id == worker and info.num_workers == 3 and info.worker_method == "multiprocessing" and trt.get_num_threads() == 1
        seen[worker] = 1 + worker

    assert len(list(data.DataLoader(range(6), num_workers=3, worker_init_fn=init))) == 6
    assert seen.tolist() == [1, 2, 3] and data.get_worker_info() is None
    with pytest.raises(ZeroDivisionError, match="Caught ZeroDivisionError in DataLoader worker process 0"):
        list(data.DataLoader(range(6), num_workers=2, worker_init_fn=lambda worker: 1 // 0))


class Slow:
    def __init__(self, seconds, at=0, then=None):
        self.seconds, self.at, self.then = seconds, at, then

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == self.at:
            time.sleep(self.seconds)
            if self.then:
                self.then()
        return index


def test_timeout():
    loader = iter(data.DataLoader(Slow(60), num_workers=2, timeout=0.2))
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.2 seconds"):
        next(loader)
    for worker in loader._workers:
        worker.kill()


def test_batches_in_order_and_as_they_come():
    for module in (data, reference):
        assert [b.item() for b in module.DataLoader(Slow(0.3), num_workers=2)] == [0, 1, 2, 3]
        assert [b.item() for b in module.DataLoader(Slow(0.3), num_workers=2, in_order=False)][0] == 1


@pytest.mark.parametrize("how", ["signal", "exit"])
def test_a_worker_that_dies_is_noticed(how):
    end = (lambda: os.kill(os.getpid(), signal.SIGKILL)) if how == "signal" else (lambda: os._exit(3))
    loader = iter(data.DataLoader(Slow(0.05, 2, end), num_workers=2))
    assert next(loader).item() == 0
    victim = loader._workers[0].pid
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) {victim}\) exited unexpectedly") as caught:
        list(loader)
    assert time.monotonic() - began < 5
    assert list(loader) == []
    text = str(caught.value.__cause__)
    assert text.startswith(f"DataLoader worker (pid {victim}) ") and ("killed by signal: Killed" if how == "signal" else "with exit code 3") in text


def test_a_worker_that_is_killed_while_nothing_is_asked_for():
    for persistent in (False, True):
        loader = data.DataLoader(range(50), num_workers=2, persistent_workers=persistent)
        batches = iter(loader)
        next(batches)
        os.kill(batches._workers[1].pid, signal.SIGKILL)
        batches._workers[1].join()
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(batches)
        assert len(list(loader)) == 50  # by new workers


def test_persistent_workers_go_on_and_epochs_may_be_left_early():
    loader = data.DataLoader(trt.arange(40), 2, num_workers=2, persistent_workers=True)
    pids = set()
    for _ in range(4):
        for batch in loader:
            assert batch.tolist() == [0, 1]
            break
        pids |= {w.pid for w in loader._iterator._workers}
    assert [b.tolist() for b in loader] == [[i, i + 1] for i in range(0, 40, 2)]
    assert len(pids) == 2
    workers = loader._iterator._workers
    del loader
    gc.collect()
    assert not any(w.is_alive() for w in workers)


def test_workers_end_with_their_iterator_and_leave_no_descriptor():
    before = fds()
    for _ in range(3):
        loader = data.DataLoader(trt.zeros(20, 100, 100), 2, num_workers=2)
        assert len(list(loader)) == 10
        early = iter(loader)
        next(early)
        workers = early._workers
        del early
        assert not any(w.is_alive() for w in workers)
    del loader, workers
    gc.collect()
    assert fds() == before


def test_batches_that_are_kept_take_no_open_files():
    before = fds()
    kept = list(data.DataLoader(trt.zeros(60, 100, 100), 1, num_workers=1))
    assert len(kept) == 60 and all(b.is_shared() for b in kept) and fds() == before
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("tensorrt_lite")]


def test_a_batch_can_be_shared_again():
    import tensorrt_lite.multiprocessing as mp

    (batch,) = data.DataLoader(trt.zeros(1, 100, 100), num_workers=1)
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.get().add_(1))
    process.start()
    queue.put(batch)
    process.join()
    assert batch.sum() == 10_000


def test_two_loaders_and_a_forked_child_do_not_disturb_each_other():
    one, two = (iter(data.DataLoader(trt.arange(10), num_workers=2)) for _ in range(2))
    taken = [next(one).item(), next(two).item()]
    child = os.fork()
    if child == 0:
        del one, two
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert taken + [b.item() for b in one] + [b.item() for b in two] == [0, 0, *range(1, 10), *range(1, 10)]


def test_large_messages_in_both_directions():
    """Lists of indices and batches that no socket's buffer holds: neither side waits for the other for ever."""
    batches = [list(range(100_000))] * 8
    loader = data.DataLoader(range(100_000), batch_sampler=batches, num_workers=2, collate_fn=lambda samples: [str(s) for s in samples], prefetch_factor=4)
    assert [len(b) for b in loader] == [100_000] * 8
    many = data.DataLoader([0], num_workers=1, collate_fn=lambda _: [trt.full((10_000,), float(i)) for i in range(300)])
    assert [t[0].item() for t in next(iter(many))] == list(range(300))


@pytest.mark.parametrize("persistent", [False, True])
def test_thread_workers(persistent):
    found = set()

    class Threaded:
        def __init__(self):
            self.lock = threading.Lock()  # cannot be sent to a process

        def __len__(self):
            return 8

        def __getitem__(self, index):
            info = data.get_worker_info()
            found.add(threading.current_thread().name)
            assert info.worker_method == "thread" and info.dataset is dataset and info.seed == info.rng.torch_generator.initial_seed()
            return trt.rand((), generator=info.rng.torch_generator) + 0 * info.rng.random_generator.random(), info.rng.numpy_generator.random()

    dataset = Threaded()
    trt.manual_seed(0)
    loader = data.DataLoader(dataset, 2, num_workers=2, worker_threads=True, persistent_workers=persistent)
    first, second = as_lists(list(loader)), as_lists(list(loader))
    trt.manual_seed(0)
    assert as_lists(list(data.DataLoader(dataset, 2, num_workers=2, worker_threads=True))) == first != second
    assert found == {"data_worker_0", "data_worker_1"} and data.get_worker_info() is None
    with pytest.raises(OSError, match="Caught OSError in DataLoader worker thread 0"):
        list(data.DataLoader(failing(OSError), num_workers=2, worker_threads=True))
    del loader
    gc.collect()
    assert not [t for t in threading.enumerate() if t.name.startswith("data_worker")]


def test_options():
    with pytest.raises(ValueError, match="worker_threads option needs num_workers > 0"):
        data.DataLoader([1], worker_threads=True)
    with pytest.raises(ValueError, match="should specify a valid start method in .*but got multiprocessing_context='x'"):
        data.DataLoader([1], num_workers=1, multiprocessing_context="x")
    with pytest.raises(TypeError, match="should be a valid context object or a string"):
        data.DataLoader([1], num_workers=1, multiprocessing_context=3)
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(data.DataLoader([1], num_workers=1, prefetch_factor=0))
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        iter(data.DataLoader([1])).__getstate__()
    loader = data.DataLoader([1], num_workers=1, multiprocessing_context="spawn")
    assert loader.multiprocessing_context.get_start_method() == "spawn" and loader.prefetch_factor == 2 and loader.worker_threads is False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data.DataLoader([1], num_workers=10_000)
    assert "This DataLoader will create 10000 worker processes in total. Our suggested max number" in str(caught[0].message) and caught[0].filename == __file__


PROGRAM = """
    import os, signal, sys, time
    import {package} as torch
    from {package}.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

    class Squares(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            assert "torch" in type(torch.ones(1)).__module__ or "{package}" != "torch"
            return torch.full((100, 100), float(index)) ** 2, get_worker_info().seed

    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(get_worker_info().id, 5, 2))

    def init(worker):
        assert get_worker_info().id == worker and "tensorrt_lite" in sys.modules

    if __name__ == "__main__":
        method = sys.argv[1]
        torch.manual_seed(0)
        loader = DataLoader(Squares(), 2, num_workers=2, multiprocessing_context=method, worker_init_fn=init, persistent_workers=True)
        for epoch in range(2):
            squares, seeds = zip(*loader)
            assert [s[:, 0, 0].tolist() for s in squares] == [[0, 1], [4, 9], [16, 25]], squares
            assert seeds[0][0] == seeds[2][0] == seeds[1][0] - 1
        print(sorted(b.item() for b in DataLoader(Numbers(), num_workers=2, multiprocessing_context=method)))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("alias", [False, True])
def test_start_methods(tmp_path, method, alias):
    """The program as it is, and written for PyTorch under the alias, which spawned workers have as well."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM.format(package="torch" if alias else "tensorrt_lite")))
    command = [sys.executable, "-m", "tensorrt_lite", "run", str(path)] if alias else [sys.executable, str(path)]
    done = subprocess.run([*command, method], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 1, 2, 3, 4]"


def test_workers_of_a_killed_program_end(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent("""
        import os, signal
        import tensorrt_lite as trt
        from tensorrt_lite.utils.data import DataLoader
        other = iter(DataLoader(trt.zeros(100, 100, 100), num_workers=1))
        loader = iter(DataLoader(trt.zeros(100, 100, 100), num_workers=2))
        next(loader)
        print(*[w.pid for w in [*loader._workers, *other._workers]], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=60)
    workers = [int(pid) for pid in done.stdout.split()]
    assert done.returncode == -9 and len(workers) == 3
    end = time.monotonic() + 15
    while alive := [pid for pid in workers if os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read().split()[2]]:
        assert time.monotonic() < end, alive
        time.sleep(0.02)


def test_iterators_that_live_to_the_end_of_the_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent("""
        import tensorrt_lite as trt
        from tensorrt_lite.utils.data import DataLoader
        loader = DataLoader(trt.zeros(100, 100, 100), num_workers=2, persistent_workers=True)
        batches, threads = iter(loader), iter(DataLoader(range(100), num_workers=2, worker_threads=True))
        next(batches), next(threads)
        print("last line")
    """))
    began = time.monotonic()
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "last line\n", "") and time.monotonic() - began < 20
