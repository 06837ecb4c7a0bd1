"""Datasets, splits and collation give PyTorch's samples."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import data

torch = pytest.importorskip("torch")
reference = pytest.importorskip("torch.utils.data")

Point = namedtuple("Point", "x y")


class Squares(data.Dataset):
    def __init__(self, count, start=0):
        self.count, self.start = count, start

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return (self.start + index) ** 2

    def __len__(self):
        return self.count


class Batched(Squares):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Stream(data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def described(value):
    """A nested value with tensors as (dtype, list), for comparing the two libraries."""
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        return str(value.dtype).split(".")[1], value.tolist()
    if isinstance(value, (dict, UserDict)):
        return type(value).__name__, {k: described(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(v) for v in value]
    return value


def test_tensor_dataset():
    x, y = trt.arange(6).view(3, 2), trt.arange(3)
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 3
    assert described(dataset[1]) == ("tuple", [("int64", [2, 3]), ("int64", 1)])
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(x, trt.arange(2))


def test_concatenation():
    both = Squares(3) + Squares(2, start=10)
    assert isinstance(both, data.ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 100, 121]
    assert both[-1] == 121
    assert both.cumulative_sizes == [3, 5]
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-6]
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(AssertionError, match="empty iterable"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Stream(2)])


def test_chain_of_streams():
    chained = Stream(2) + Stream(3)
    assert list(chained) == [0, 1, 0, 1, 2]
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(data.ChainDataset([Squares(2)]))


@pytest.mark.parametrize("kind", [Squares, Batched])
def test_stack(kind):
    pairs = data.StackDataset(kind(3), Squares(3, start=1))
    assert pairs[2] == (4, 9)
    assert pairs.__getitems__([0, 2]) == [(0, 1), (4, 9)]
    named = data.StackDataset(a=kind(3), b=Squares(3, start=1))
    assert named[1] == {"a": 1, "b": 4}
    assert named.__getitems__([1]) == [{"a": 1, "b": 4}]
    assert len(named) == 3
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        data.StackDataset(Squares(2), Squares(3))
    with pytest.raises(ValueError, match="both types are given"):
        data.StackDataset(Squares(2), b=Squares(2))
    with pytest.raises(ValueError, match="At least one dataset"):
        data.StackDataset()


@pytest.mark.parametrize("kind", [Squares, Batched])
def test_subset(kind):
    subset = data.Subset(kind(5), [4, 0, 2])
    assert [subset[i] for i in range(len(subset))] == [16, 0, 4]
    assert subset.__getitems__([2, 0]) == [4, 16]

    class Wrong(data.Subset):
        def __getitem__(self, index):
            return 0

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Wrong(kind(5), [0])


@pytest.mark.parametrize("lengths", [[3, 7], [0.5, 0.5], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3]])
def test_random_split_draws_pytorchs_parts(lengths):
    trt.manual_seed(5)
    ours = data.random_split(Squares(10), lengths)
    torch.manual_seed(5)
    theirs = reference.random_split(range(10), lengths)
    assert [part.indices for part in ours] == [part.indices for part in theirs]
    ours = data.random_split(Squares(10), lengths, generator=trt.Generator().manual_seed(9))
    theirs = reference.random_split(range(10), lengths, generator=torch.Generator().manual_seed(9))
    assert [part.indices for part in ours] == [part.indices for part in theirs]


def test_random_split_refuses_wrong_lengths():
    with pytest.raises(ValueError, match="does not equal the length"):
        data.random_split(Squares(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0"):
        data.random_split(Squares(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(Squares(1), [0.9, 0.1])


def test_base_classes_name_what_is_missing():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.IterableDataset())

    class Typed(data.Dataset[int]):
        pass

    assert isinstance(Typed(), data.Dataset)


SAMPLES = [
    lambda lib: [lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])],
    lambda lib: [1, 2, 3],
    lambda lib: [1.5, 2.5],
    lambda lib: [True, False],
    lambda lib: ["a", "b"],
    lambda lib: [b"a", b"b"],
    lambda lib: [(lib.tensor(1), 2.0, "x"), (lib.tensor(3), 4.0, "y")],
    lambda lib: [[1, 2], [3, 4]],
    lambda lib: [{"a": 1, "b": (1.0, 2)}, {"a": 2, "b": (3.0, 4)}],
    lambda lib: [OrderedDict(a=1), OrderedDict(a=2)],
    lambda lib: [UserDict(a=1), UserDict(a=2)],
    lambda lib: [Point(1, 2.0), Point(3, 4.0)],
    lambda lib: [((1, 2), [lib.ones(2)]), ((3, 4), [lib.zeros(2)])],
]


@pytest.mark.parametrize("samples", SAMPLES)
def test_default_collate(samples):
    assert described(data.default_collate(samples(trt))) == described(reference.default_collate(samples(torch)))


@pytest.mark.parametrize("samples", SAMPLES)
def test_default_convert(samples):
    assert described(data.default_convert(samples(trt))) == described(reference.default_convert(samples(torch)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_numpy_samples_become_tensors(dtype):
    numpy = pytest.importorskip("numpy")
    arrays = [numpy.ones((2, 3), dtype), numpy.zeros((2, 3), dtype)]
    scalars = [numpy.dtype(dtype).type(1), numpy.dtype(dtype).type(0)]
    for batch in (arrays, scalars, [{"x": arrays[0]}, {"x": arrays[1]}]):
        assert described(data.default_collate(batch)) == described(reference.default_collate(batch))
        assert described(data.default_convert(batch)) == described(reference.default_convert(batch))
    with pytest.raises(TypeError, match="batch must contain tensors"):
        data.default_collate([numpy.array(["a"]), numpy.array(["b"])])


def test_collate_refuses_what_it_cannot_batch():
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1, 2], [1]])
    with pytest.raises(TypeError, match="batch must contain tensors.*object"):
        data.default_collate([object(), object()])
