"""Samplers and loaders yield PyTorch's batches in PyTorch's order, seed for seed."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import islice

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import data

torch = pytest.importorskip("torch")
reference = pytest.importorskip("torch.utils.data")

BOTH = ((trt, data), (torch, reference))


def ranged(lib, count=10):
    return lib.arange(count)


def as_lists(value):
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        return value.tolist()
    return [as_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def epochs(build, seed=0, count=2):
    """Batches of some epochs on each side, and the next draw of the global generator after them."""
    results = []
    for lib, module in BOTH:
        lib.manual_seed(seed)
        loader = build(lib, module)
        batches = [as_lists(list(loader)) for _ in range(count)]
        results.append((batches, lib.rand(3).tolist()))
    return results


@pytest.mark.parametrize("seed", [0, 1, 123])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 10, 16, None])
def test_order_and_draws(batch_size, shuffle, drop_last, seed):
    if batch_size is None and drop_last:
        pytest.skip("excluded combination")

    def build(lib, module):
        dataset = module.TensorDataset(ranged(lib), ranged(lib) * 2)
        return module.DataLoader(dataset, batch_size, shuffle=shuffle, drop_last=drop_last)

    ours, theirs = epochs(build, seed)
    assert ours == theirs


def test_own_generator_leaves_the_global_one_alone():
    def build(lib, module):
        generator = lib.Generator().manual_seed(3)
        return module.DataLoader(ranged(lib), 4, shuffle=True, generator=generator)

    ours, theirs = epochs(build)
    assert ours == theirs


def test_subset_of_tensors_and_plain_lists():
    def subset(lib, module):
        dataset = module.TensorDataset(ranged(lib) * 3)
        return module.DataLoader(module.random_split(dataset, [6, 4])[0], 4, shuffle=True)

    def plain(lib, module):
        return module.DataLoader([(i, float(i)) for i in range(7)], 3, shuffle=True)

    for build in (subset, plain):
        ours, theirs = epochs(build)
        assert ours == theirs


SAMPLERS = {
    "random": lambda lib, module: module.RandomSampler(range(10)),
    "random more": lambda lib, module: module.RandomSampler(range(10), num_samples=25),
    "random fewer": lambda lib, module: module.RandomSampler(range(10), num_samples=4),
    "replacement": lambda lib, module: module.RandomSampler(range(10), replacement=True, num_samples=70),
    "replacement 32": lambda lib, module: module.RandomSampler(range(10), replacement=True, num_samples=32),
    "subset": lambda lib, module: module.SubsetRandomSampler([9, 3, 5, 7]),
    "weighted": lambda lib, module: module.WeightedRandomSampler([0.1, 0.9, 3.0, 0.0], 12),
    "weighted once": lambda lib, module: module.WeightedRandomSampler([0.1, 0.9, 3.0, 0.5], 3, replacement=False),
    "sequential": lambda lib, module: module.SequentialSampler(range(4)),
    "batch": lambda lib, module: module.BatchSampler(module.RandomSampler(range(10)), 3, False),
    "batch drop": lambda lib, module: module.BatchSampler(module.SequentialSampler(range(10)), 3, True),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    ours, theirs = epochs(SAMPLERS[name], 11)
    assert ours == theirs
    assert len(SAMPLERS[name](trt, data)) == len(SAMPLERS[name](torch, reference))


@pytest.mark.parametrize("count", [10, 12, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_distributed_sampler(shuffle, drop_last, count):
    for rank in range(4):
        samplers = []
        for _, module in BOTH:
            sampler = module.DistributedSampler(range(count), 4, rank, shuffle, seed=7, drop_last=drop_last)
            epochs_of = [list(sampler)]
            sampler.set_epoch(3)
            samplers.append((*epochs_of, list(sampler), len(sampler)))
        assert samplers[0] == samplers[1]
    with pytest.raises(ValueError, match="Invalid rank 4"):
        data.DistributedSampler(range(count), 4, 4)
    for _, module in BOTH:
        for given in ({}, {"rank": 0}, {"num_replicas": 2}):
            with pytest.raises(ValueError, match="Default process group has not been initialized"):
                module.DistributedSampler(range(count), **given)


def test_given_samplers_and_collate_function():
    def with_sampler(lib, module):
        return module.DataLoader(ranged(lib), 4, sampler=module.SubsetRandomSampler([1, 3, 5, 7, 9]))

    def with_batches(lib, module):
        return module.DataLoader(ranged(lib), batch_sampler=[[0, 1], [5], [2, 9, 3]])

    def with_collate(lib, module):
        return module.DataLoader(module.TensorDataset(ranged(lib)), 4, collate_fn=lambda batch: [len(batch), batch[0]])

    for build in (with_sampler, with_batches, with_collate):
        ours, theirs = epochs(build)
        assert ours == theirs


@pytest.mark.parametrize("batch_size", [None, 1, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_iterable_dataset(batch_size, drop_last):
    if batch_size is None and drop_last:
        pytest.skip("excluded combination")

    def build(lib, module):
        class Stream(module.IterableDataset):
            def __iter__(self):
                return iter(range(10))

        return module.DataLoader(Stream(), batch_size, drop_last=drop_last)

    ours, theirs = epochs(build)
    assert ours == theirs


def test_length_of_a_stream_is_checked():
    class Liar(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 2

    loader = data.DataLoader(Liar(), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="reported to be 2"):
        assert list(loader) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("batch_size", "drop_last", "expected"), [(3, False, 4), (3, True, 3), (None, False, 10)])
def test_length(batch_size, drop_last, expected):
    loader = data.DataLoader(list(range(10)), batch_size, drop_last=drop_last)
    assert len(loader) == len(iter(loader)) == len(list(loader)) == expected


def test_whole_batches_are_asked_for_where_the_dataset_can():
    class Batched(data.Dataset):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

        def __len__(self):
            return 4

    assert as_lists(list(data.DataLoader(Batched(), 3))) == [[0, 10, 20], [30]]


def test_pin_memory_without_an_accelerator_only_warns():
    if trt.cuda.is_available():
        pytest.skip("an accelerator is there")
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert as_lists(list(data.DataLoader([1, 2], 2, pin_memory=True))) == [[1, 2]]


def test_worker_init_fn_is_not_called_in_process():
    loader = data.DataLoader([1], worker_init_fn=lambda worker: pytest.fail("called"))
    assert as_lists(list(loader)) == [[1]]
    assert data.get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"num_workers": -1}, ValueError, "should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, ValueError, "multiprocessing_context"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_size": True}, ValueError, "batch_size should be a positive integer"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"drop_last": 1}, ValueError, "drop_last should be a boolean value"),
        ({"sampler": [0], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
    ],
)
def test_bad_options(options, error, match):
    with pytest.raises(error, match=match):
        data.DataLoader([1, 2, 3], **options)


@pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
def test_streams_take_no_order(name):
    class Stream(data.IterableDataset):
        pass

    with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
        data.DataLoader(Stream(), **{name: True if name == "shuffle" else [0]})


def test_empty_data_cannot_be_shuffled():
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        data.DataLoader([], shuffle=True)
    assert list(data.DataLoader([])) == []


def test_loader_is_fixed_once_made():
    loader = data.DataLoader([1, 2])
    for name in ("batch_size", "sampler", "dataset", "drop_last"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, None)


def test_timeout_needs_workers():
    with pytest.raises(AssertionError, match="timeout"):
        iter(data.DataLoader([1], timeout=3))


def test_errors_of_the_dataset_pass_through():
    class Broken(data.Dataset):
        def __getitem__(self, index):
            raise OSError("gone")

        def __len__(self):
            return 2

    with pytest.raises(OSError, match="gone"):
        next(iter(data.DataLoader(Broken())))


def test_no_warning_without_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(data.DataLoader(data.TensorDataset(trt.arange(4)), 2, shuffle=True))


def test_replacement_is_drawn_as_it_is_asked_for():
    """PyTorch's stream, 10**10 indices of which a few are read, in a few kilobytes."""
    drawn = []
    for lib, module in BOTH:
        sampler = module.RandomSampler(range(10**6), replacement=True, num_samples=10**10, generator=lib.Generator().manual_seed(5))
        drawn.append(list(islice(sampler, 100)))
        assert len(sampler) == 10**10
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("make", [
    lambda m, g: m.RandomSampler(range(300_000), generator=g), lambda m, g: m.RandomSampler(range(300_000), num_samples=700_000, generator=g),
    lambda m, g: m.SubsetRandomSampler(range(300_000), generator=g), lambda m, g: m.WeightedRandomSampler(trt.ones(1000).tolist(), 300_000, generator=g),
    lambda m, g: m.DistributedSampler(range(1_000_000), 3, 1), lambda m, g: m.DistributedSampler(range(1_000_000), 3, 1, shuffle=False),
    lambda m, g: m.BatchSampler(m.RandomSampler(range(300_000), generator=g), 64, False), lambda m, g: m.SequentialSampler(range(10**12)),
])  # fmt: skip
def test_no_sampler_holds_a_list_of_its_indices(make):
    """Beyond the tensor of the order, in which an index takes 8 bytes, only some thousands of ints live."""
    expected = list(islice(make(reference, torch.Generator().manual_seed(5)), 5000))
    sampler = make(data, trt.Generator().manual_seed(5))
    tracemalloc.start()
    try:
        found = list(islice(sampler, 5000))
        assert found == expected
        assert tracemalloc.get_traced_memory()[1] < 4_000_000 + 100 * sum(len(f) if isinstance(f, list) else 1 for f in found)
    finally:
        tracemalloc.stop()
