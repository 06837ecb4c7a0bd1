"""Data pipes beside PyTorch's: elements, orders, lengths, errors, graphs, loaders."""

from __future__ import annotations

import gc
import json
import pickle
import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils import data

torch = pytest.importorskip("torch")
reference = pytest.importorskip("torch.utils.data")
pytest.importorskip("torch.utils.data.datapipes")

BOTH = ((trt, data), (torch, reference))
pytestmark = [pytest.mark.filterwarnings("ignore:(Lambda|Local) function is not supported"), pytest.mark.filterwarnings("ignore:.*routed_decode:FutureWarning")]


def plain(value):
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return [plain(v) for v in value] if isinstance(value, list) else value


def outcome(function, *arguments):
    """What a call gives, or how it fails. PyTorch appends the pipe to some texts, which is a note here; it says nothing of a demultiplexer's length."""
    try:
        return plain(function(*arguments))
    except Exception as error:
        text = str(error.args[0]) if error.args else "_DemultiplexerIterDataPipe instance doesn't have valid length"
        return type(error), text.split("\n")[0]


def agree(build, *, epochs=2):
    """The elements of a few iterations of a pipe (or of several), and its length."""
    found = []
    for lib, module in BOTH:
        lib.manual_seed(3)
        pipes = outcome(build, module.datapipes.iter, module.datapipes.map, lib)
        found.append(pipes)
        if not isinstance(pipes, tuple):
            pipes = pipes if isinstance(pipes, list) else [pipes]
            found[-1] = [([outcome(list, pipe) for _ in range(epochs)], outcome(len, pipe), str(pipe)[:4]) for pipe in pipes]
    assert found[0] == found[1]
    return found[0]


def even(x):
    return x % 2 == 0


def third(x):
    return x % 3


def square(x):
    return x * x


def rows(it):
    return it.IterableWrapper([(i, i + 10, i + 20) for i in range(5)])


ITER = {
    "wrapper": lambda it, mp, lib: it.IterableWrapper(range(5)),
    "wrapper no length": lambda it, mp, lib: it.IterableWrapper((i for i in range(3)), deepcopy=False).map(square),
    "map": lambda it, mp, lib: it.IterableWrapper(range(5)).map(square),
    "map column": lambda it, mp, lib: rows(it).map(square, 1),
    "map columns": lambda it, mp, lib: rows(it).map(lambda a, b: a + b, [2, 0]),
    "map out": lambda it, mp, lib: rows(it).map(square, 1, 0),
    "map append": lambda it, mp, lib: rows(it).map(lambda a, b: a * b, (0, 1), -1),
    "map dict": lambda it, mp, lib: it.IterableWrapper([{"a": 1, "b": 2}, {"a": 3, "b": 4}]).map(square, "b", "c"),
    "map wrong": lambda it, mp, lib: rows(it).map(square, [0, 1]),
    "map output alone": lambda it, mp, lib: rows(it).map(square, None, 1),
    "map outputs": lambda it, mp, lib: rows(it).map(square, 1, [1, 2]),
    "collate": lambda it, mp, lib: it.IterableWrapper(range(6)).batch(2).collate(),
    "collate own": lambda it, mp, lib: it.IterableWrapper(range(6)).batch(2).collate(collate_fn=sum),
    "filter": lambda it, mp, lib: it.IterableWrapper(range(7)).filter(even),
    "filter column": lambda it, mp, lib: rows(it).filter(even, 1),
    "filter columns": lambda it, mp, lib: rows(it).filter(lambda a, b: a + b > 32, [0, 2]),
    "filter no bool": lambda it, mp, lib: it.IterableWrapper(range(7)).filter(third),
    "batch": lambda it, mp, lib: it.IterableWrapper(range(7)).batch(3),
    "batch drop": lambda it, mp, lib: it.IterableWrapper(range(7)).batch(3, drop_last=True),
    "batch none": lambda it, mp, lib: it.IterableWrapper(range(7)).batch(0),
    "unbatch": lambda it, mp, lib: it.IterableWrapper([[0, [1, 2]], [[3], 4]]).unbatch(),
    "unbatch all": lambda it, mp, lib: it.IterableWrapper([[0, [1, 2]], [[3], 4]]).unbatch(-1),
    "unbatch too deep": lambda it, mp, lib: it.IterableWrapper([[0, [1, 2]]]).unbatch(2),
    "unbatch wrong": lambda it, mp, lib: it.IterableWrapper([[0, [1, 2]]]).unbatch(-2),
    "groupby": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(third),
    "groupby keys": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(third, keep_key=True, group_size=2),
    "groupby small": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(third, buffer_size=4),
    "groupby guaranteed": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(third, buffer_size=4, group_size=3, guaranteed_group_size=2),
    "groupby fails": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(int, buffer_size=3, group_size=2),
    "groupby drops": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(int, buffer_size=3, group_size=2, drop_remaining=True),
    "groupby wrong": lambda it, mp, lib: it.IterableWrapper(range(10)).groupby(third, group_size=4, buffer_size=3),
    "shuffle": lambda it, mp, lib: it.IterableWrapper(range(20)).shuffle(),
    "shuffle small": lambda it, mp, lib: it.IterableWrapper(range(20)).shuffle(buffer_size=4),
    "shuffle seed": lambda it, mp, lib: it.IterableWrapper(range(20)).shuffle().set_seed(5),
    "shuffle not": lambda it, mp, lib: it.IterableWrapper(range(5)).shuffle().set_shuffle(False),
    "shuffle unbatch": lambda it, mp, lib: it.IterableWrapper([[0, 1], [2, 3]]).shuffle(unbatch_level=1),
    "shuffle none": lambda it, mp, lib: it.IterableWrapper(range(5)).shuffle(buffer_size=0),
    "sampler": lambda it, mp, lib: it.Sampler(it.IterableWrapper(range(5))),
    "sampler of nothing": lambda it, mp, lib: it.Sampler(it.IterableWrapper(range(5)).filter(even)),
    "concat": lambda it, mp, lib: it.IterableWrapper(range(3)).concat(it.IterableWrapper("ab")),
    "concat wrong": lambda it, mp, lib: it.IterableWrapper(range(3)).concat([1]),
    "concat nothing": lambda it, mp, lib: it.Concater(),
    "zip": lambda it, mp, lib: it.IterableWrapper(range(3)).zip(it.IterableWrapper("ab")),
    "zip wrong": lambda it, mp, lib: it.Zipper([1]),
    "mux": lambda it, mp, lib: it.IterableWrapper(range(3)).mux(it.IterableWrapper("ab"), it.IterableWrapper(range(10, 20))),
    "shard": lambda it, mp, lib: it.IterableWrapper(range(7)).sharding_filter(),
    "fork": lambda it, mp, lib: list(it.IterableWrapper(range(4)).fork(3)),
    "fork one": lambda it, mp, lib: it.IterableWrapper(range(4)).fork(1),
    "fork none": lambda it, mp, lib: it.IterableWrapper(range(4)).fork(0),
    "fork overflow": lambda it, mp, lib: it.IterableWrapper(range(9)).fork(2, buffer_size=3)[0],
    "fork copy": lambda it, mp, lib: it.IterableWrapper(range(9)).fork(2, copy="odd"),
    "demux": lambda it, mp, lib: list(it.IterableWrapper(range(9)).demux(3, third)),
    "demux none": lambda it, mp, lib: list(it.IterableWrapper(range(9)).demux(2, lambda x: None if x == 4 else x % 2, drop_none=True)),
    "demux wrong": lambda it, mp, lib: list(it.IterableWrapper(range(9)).demux(2, third)),
    "demux overflow": lambda it, mp, lib: list(it.IterableWrapper(range(9)).demux(2, lambda x: int(x > 5), buffer_size=2))[1],
    "chain": lambda it, mp, lib: it.IterableWrapper(range(30)).shuffle().filter(even).map(square).batch(4).map(sum),
    "seq": lambda it, mp, lib: mp.SequenceWrapper(range(5)).map(square),
    "map shuffle": lambda it, mp, lib: mp.SequenceWrapper(range(9)).shuffle(),
    "map shuffle indices": lambda it, mp, lib: mp.SequenceWrapper({"a": 1, "b": 2}).shuffle(indices=["a", "b"]),
    "map shuffle not": lambda it, mp, lib: mp.SequenceWrapper(range(9)).shuffle().set_shuffle(False).set_seed(1),
    "map batch": lambda it, mp, lib: mp.SequenceWrapper(range(5)).batch(2),
    "map batch drop": lambda it, mp, lib: mp.SequenceWrapper(range(5)).batch(2, drop_last=True),
    "map concat": lambda it, mp, lib: mp.SequenceWrapper(range(3)).concat(mp.SequenceWrapper("ab")),
    "map zip": lambda it, mp, lib: mp.SequenceWrapper(range(3)).zip(mp.SequenceWrapper("abcd")),
    "map zip wrong": lambda it, mp, lib: mp.Zipper(range(3)),
    "map zip nothing": lambda it, mp, lib: mp.Zipper(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Some child DataPipes")
@pytest.mark.parametrize("name", ITER)
def test_elements_lengths_and_errors(name):
    agree(ITER[name])


def test_children_read_side_by_side():
    for lib, module in BOTH:
        one, two = module.datapipes.iter.IterableWrapper(range(6)).fork(2)
        assert [a + b for a, b in zip(one, two, strict=True)] == [0, 2, 4, 6, 8, 10]
        first = iter(one)
        assert [next(first), next(first)] == [0, 1] and list(two) == list(range(6))
        with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
            again = iter(one)
        with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
            next(first)
        assert list(again) == list(range(6))
        with pytest.warns(UserWarning, match="Unlimited buffer size is set for `fork`"):
            module.datapipes.iter.IterableWrapper([]).fork(2, buffer_size=-1)
        lists = module.datapipes.iter.IterableWrapper([[1]]).fork(2, copy="deep")
        next(iter(lists[0])).append(2)
        assert list(lists[1]) == [[1]], lib


def test_a_stream_has_one_iterator():
    texts = []
    for _, module in BOTH:
        pipe = module.datapipes.iter.IterableWrapper(range(3)).map(square)
        first = iter(pipe)
        assert next(first) == 0
        second = iter(pipe)
        assert list(second) == [0, 1, 4]
        with pytest.raises(RuntimeError, match="invalidated") as error:
            next(first)
        texts.append(str(error.value).split(":")[0])
    assert texts[0] == texts[1]


def test_pipes_of_one_s_own():
    for _, module in BOTH:
        name = "doubled_for_a_test"

        class Doubler(module.IterDataPipe):
            def __init__(self, source, by=2):
                self.source, self.by, self.resets = source, by, 0

            def __iter__(self):
                for x in self.source:
                    yield x * self.by

            def reset(self):
                self.resets += 1

        class Counter(module.IterDataPipe):
            def __init__(self):
                self.at = 0

            def reset(self):
                self.at = 0

            def __next__(self):
                self.at += 1
                if self.at > 3:
                    raise StopIteration
                return self.at

        assert module.functional_datapipe(name)(Doubler) is Doubler
        try:
            pipe = Counter().doubled_for_a_test(by=3)
            assert list(pipe) == [3, 6, 9] == list(pipe) and pipe.resets == 2 and name in dir(pipe)
            with pytest.raises(Exception, match="already taken"):
                module.functional_datapipe(name)(Doubler)
        finally:
            del module.IterDataPipe.functions[name]
        with pytest.raises(AttributeError, match="has no attribute 'doubled_for_a_test"):
            Counter().doubled_for_a_test()
        assert module.functional_datapipe(name)(dict) is dict and name not in module.IterDataPipe.functions
        with pytest.raises(TypeError):
            module.functional_datapipe(name)(3)
        random = module.non_deterministic(Doubler)
        assert isinstance(random([1]), Doubler)
        sometimes = module.non_deterministic(lambda source, by=2: by > 2)(Doubler)
        with module.guaranteed_datapipes_determinism():
            assert list(sometimes([1])) == [2]
            for make, when in ((random, ""), (lambda source: sometimes(source, 5), " with the inputs")):
                with pytest.raises(TypeError, match=f"Doubler is non-deterministic{when}, but you set 'guaranteed_datapipes_determinism'"):
                    make([1])
        assert list(sometimes([1], 5)) == [5]


def test_files(tmp_path):
    from PIL import Image

    (tmp_path / "sub").mkdir()
    for name, content in (("b.txt", b"beta"), ("a.json", json.dumps({"x": [1]}).encode()), ("c.cls", b"7"), ("sub/d.txt", b"delta\nlines"), ("e.bin", b"raw")):
        (tmp_path / name).write_bytes(content)
    Image.new("RGB", (3, 2), (255, 51, 0)).save(tmp_path / "f.png")
    root = str(tmp_path)
    for build in (
        lambda it, mp, lib: it.FileLister(root), lambda it, mp, lib: it.FileLister(root, "*.txt", recursive=True, length=2), lambda it, mp, lib: it.FileLister([root], ["a*", "*.cls"]),
        lambda it, mp, lib: it.FileLister(root, recursive=True).open_files("b").read_from_stream(), lambda it, mp, lib: it.FileLister(root, "*.txt").open_files().read_from_stream(3),
        lambda it, mp, lib: it.FileLister(root, recursive=True).open_files("rb").routed_decode(), lambda it, mp, lib: it.FileOpener([], mode="w"),
        lambda it, mp, lib: it.FileOpener([], mode="rb", encoding="utf-8"), lambda it, mp, lib: it.IterableWrapper([3]).open_files(),
    ):  # fmt: skip
        agree(build)
    from tensorrt_lite.utils.data.datapipes.utils.common import StreamWrapper

    (pair,) = data.datapipes.iter.FileOpener([str(tmp_path / "b.txt")])
    opened = pair[1].file_obj
    assert isinstance(pair[1], StreamWrapper) and not opened.closed and pair[1].read() == "beta"
    del pair
    gc.collect()
    assert opened.closed


@pytest.mark.parametrize("spec", ["l8", "rgb", "torch", "torchrgba8", "torchrgb", "pil", "pill"])
def test_images(spec):
    import io

    from PIL import Image
    from torch.utils.data.datapipes.utils import decoder as theirs

    from tensorrt_lite.utils.data.datapipes.utils import decoder as ours

    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), (255, 51, 0)).save(buffer, "png")
    results = [handlers.imagehandler(spec)("png", buffer.getvalue()) for handlers in (ours, theirs)]
    found, expected = ((r.shape, r.tolist(), str(r.dtype)) if hasattr(r, "shape") else (r.mode, r.size, r.tobytes()) for r in results)
    assert found == expected
    assert ours.imagehandler(spec)("txt", b"") is None
    with pytest.raises(AssertionError, match="unknown image specification: x"):
        ours.imagehandler("x")


def test_graphs():
    shapes = []
    for _, module in BOTH:
        graph = __import__(f"{module.__name__}.graph", fromlist=["graph"])
        settings = __import__(f"{module.__name__}.graph_settings", fromlist=["graph"])
        source = module.datapipes.iter.IterableWrapper(range(4))
        one, two = source.map(square).fork(2)
        end = one.shuffle().zip(two)

        def shape(part):
            return {type(pipe).__name__.replace("Pipe", "").strip("_")[:5]: shape(inner) for pipe, inner in part.values()}

        shapes.append((shape(graph.traverse_dps(end)), len(settings.get_all_graph_pipes(graph.traverse_dps(end)))))
        with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`"):
            graph.traverse_dps([1])
        with pytest.warns(FutureWarning, match="`traverse` function is deprecated"):
            graph.traverse(source, only_datapipe=True)
        with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
            settings.apply_sharding(source.sharding_filter().map(square).sharding_filter(), 2, 0)
        sharded = source.sharding_filter()
        settings.apply_sharding(sharded, 3, 1)
        assert (list(sharded), len(sharded)) == ([1], 1)
        with pytest.raises(ValueError, match=r"instance_id\(3\) should be smaller than num_of_instances\(3\)"):
            sharded.apply_sharding(3, 3)
        with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
            assert type(settings.apply_shuffle_settings(source, True)).__name__ == "ShufflerIterDataPipe"
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("options", [
    {}, {"shuffle": True}, {"shuffle": False}, {"num_workers": 2}, {"num_workers": 2, "shuffle": True}, {"num_workers": 2, "persistent_workers": True, "batch_size": 3},
])  # fmt: skip
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.filterwarnings("ignore:Length of IterableDataset:UserWarning")
def test_loaders_of_streams(options, sharded):
    found = []
    for lib, module in BOTH:
        lib.manual_seed(5)
        pipe = module.datapipes.iter.IterableWrapper(range(12)).shuffle()
        loader = module.DataLoader((pipe.sharding_filter() if sharded else pipe).map(square), **options)
        found.append(([plain(list(loader)) for _ in range(2)], lib.rand(1).tolist()))
    assert found[0] == found[1]
    if sharded:
        assert sorted(x for batch in found[0][0][0] for x in batch) == [i * i for i in range(12)]


def test_loaders_of_maps_and_by_threads():
    for _, module in BOTH:
        pipe = module.datapipes.map.SequenceWrapper(range(5)).map(square)
        assert plain(list(module.DataLoader(pipe, 2, num_workers=2))) == [[0, 1], [4, 9], [16]]
    pipe = data.datapipes.iter.IterableWrapper(range(12)).shuffle().sharding_filter()
    batches = plain(list(data.DataLoader(pipe, 3, num_workers=2, worker_threads=True)))
    assert sorted(x for b in batches for x in b) == list(range(12))


def test_pipes_pickle():
    pipe = data.datapipes.iter.IterableWrapper(range(6)).shuffle().map(square).batch(2)
    trt.manual_seed(0)
    expected = list(pipe)
    trt.manual_seed(0)
    assert list(pickle.loads(pickle.dumps(pipe))) == expected
    one, two = (pickle.loads(pickle.dumps(p)) for p in data.datapipes.iter.IterableWrapper(range(3)).fork(2))
    assert list(one) == list(two) == [0, 1, 2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data.datapipes.iter.IterableWrapper([1]).map(lambda x: x)
    assert "Lambda function is not supported by pickle" in str(caught[0].message) and caught[0].filename == __file__


def test_pipes_are_loaded_when_they_are_used():
    import subprocess
    import sys

    program = "import sys; from tensorrt_lite.utils.data import DataLoader; list(DataLoader([1])); print([m for m in sys.modules if 'pipe' in m and 'tensorrt' in m])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
