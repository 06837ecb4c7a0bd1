"""Indexing: against PyTorch over a product of keys, and against what the definitions say for gather and scatter."""

from __future__ import annotations

import itertools
import warnings

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops

KEYS = {
    "int": 1, "negative": -1, "all": slice(None), "slice": slice(0, 2), "step": slice(1, None, 2), "tail": slice(-2, None), "none": None, "ellipsis": ...,
    "true": True, "false": False, "vector": ("t", [0, 1]), "column": ("t", [[0], [-1]]), "scalar": ("t", 1), "list": [0, 1], "empty": ("t", []),
    "mask": ("m", [[True, False, True], [False, True, True]]), "int32": ("i", [0]), "range": range(2),
}  # fmt: skip


def made(key, module):
    """The key with its tensors made by a module (torch or tensorrt_lite)."""
    if isinstance(key, tuple) and key and key[0] in ("t", "m", "i"):
        return module.tensor(key[1], dtype={"t": module.int64, "m": module.bool, "i": module.int32}[key[0]])
    if isinstance(key, tuple):
        return tuple(made(k, module) for k in key)
    return key


def outcome(call):
    try:
        r = call()
    except Exception as error:
        return type(error).__name__
    return tuple(r.shape), r.tolist()


@pytest.mark.parametrize("names", [*((n,) for n in KEYS), *itertools.product(KEYS, KEYS)], ids="-".join)
def test_reading_agrees_with_pytorch(names):
    torch = pytest.importorskip("torch")
    key = tuple(KEYS[n] for n in names) if len(names) > 1 else KEYS[names[0]]
    x, y = torch.arange(120.0).reshape(2, 3, 4, 5), trt.tensor([float(v) for v in range(120)]).reshape(2, 3, 4, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcome(lambda: y[made(key, trt)]) == outcome(lambda: x[made(key, torch)])


@pytest.mark.parametrize("names", [*((n,) for n in KEYS), *itertools.product(list(KEYS)[::2], list(KEYS)[1::2])], ids="-".join)
@pytest.mark.parametrize("value", [7.0, True, [0.5], [[1.0], [2.0]]], ids=str)
def test_writing_agrees_with_pytorch(names, value):
    torch = pytest.importorskip("torch")
    key = tuple(KEYS[n] for n in names) if len(names) > 1 else KEYS[names[0]]

    def write(module):
        x = module.zeros(2, 3, 4, 5)
        x[made(key, module)] = module.tensor(value) if isinstance(value, list) else value
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcome(lambda: write(trt)) == outcome(lambda: write(torch))


def test_lists_are_the_model_of_one_dimension():
    values = list(range(10))
    x = trt.tensor(values)
    for start, stop, step in itertools.product((None, -3, 0, 4, 20), (None, -2, 7, 20), (None, 1, 3)):
        assert x[start:stop:step].tolist() == values[start:stop:step]


def test_basic_indexing_shares_memory():
    x = trt.zeros(3, 4)
    x[1:, ::2][0, 1] = 5.0
    assert x.tolist() == [[0, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0]]


def test_advanced_indexing_copies():
    x = trt.zeros(3)
    x[trt.tensor([0, 1])].fill_(1.0)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (1.5, IndexError, "only integers, slices"),
        (("t", [9]), IndexError, "index 9 is out of bounds for dimension 0 with size 2"),
        (("m", [True, False, True]), IndexError, "The shape of the mask"),
    ],
)
def test_bad_keys_name_what_is_wrong_and_write_nothing(key, error, text):
    x = trt.zeros(2, 3)
    with pytest.raises(error, match=text):
        x[made(key, trt)]
    with pytest.raises(error, match=text):
        x[made(key, trt)] = 1.0
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_out_of_range_indices_leave_the_tensor_as_it_was():
    x = trt.zeros(4)
    for write in (
        lambda: x.scatter_(0, trt.tensor([0, 9]), 1.0),
        lambda: x.index_add_(0, trt.tensor([0, 9]), trt.ones(2)),
        lambda: x.index_put_((trt.tensor([0, 9]),), trt.ones(2)),
        lambda: x.index_fill_(0, trt.tensor([0, -9]), 1.0),
        lambda: x.put_(trt.tensor([0, 9]), trt.ones(2)),
        lambda: x.scatter_add_(0, trt.tensor([0, -9]), trt.ones(2)),
        lambda: x.scatter_reduce_(0, trt.tensor([0, 9]), trt.ones(2), "amax", include_self=False),
    ):
        with pytest.raises((IndexError, RuntimeError), match="9"):
            write()
    assert x.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("bad", [-1, 4, 2**62, -(2**63)])
@pytest.mark.parametrize("at", [0, 20_000])
def test_operators_with_a_result_of_their_own_refuse_a_bad_index_wherever_it_stands(bad, at):
    x, index = trt.ones(4, 3), trt.zeros(20_001, dtype=trt.int64)
    index[at] = bad
    lines, out = index[:, None].expand(-1, 3), trt.full((20_001, 3), 7.0)
    calls = [
        lambda: x.gather(0, lines), lambda: trt.gather(x, 0, lines, out=out), lambda: x.gather(0, lines[:, :1]), lambda: x[:, 0].gather(0, index),
        lambda: x.scatter(0, lines, out), lambda: x.scatter_add(0, lines, out), lambda: x.scatter_reduce(0, lines, out, "amin"),
        lambda: x.index_select(0, index), lambda: x.index_add(0, index, out), lambda: trt.nn.functional.embedding(index, x),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
            call()
    assert bool((out == 7).all())
    if bad != -1:
        for call in (
            lambda: x.reshape(-1)[:4].take(index),
            lambda: x.t()[:2, :2].take(index),
            lambda: x[index],
            lambda: x.index_put((index, index * 0), trt.ones(())),
        ):
            with pytest.raises(IndexError, match="out of"):
                call()


def test_take_counts_negative_positions_from_the_end_at_any_length_and_stride():
    x = trt.arange(12.0).reshape(3, 4)
    index = trt.arange(-12, 12).repeat(1000)
    for source in (x, x.t(), x[:, 1:3]):
        flat = source.reshape(-1).tolist()
        index_ = index.clamp(-len(flat), len(flat) - 1)
        assert source.take(index_).tolist() == [flat[i] for i in index_.tolist()]


def test_amax_and_amin_of_lines_keep_nan():
    nan = float("nan")
    x, y = trt.tensor([1.0, nan, 3.0, 4.0]), trt.tensor([nan, 5.0, 2.0, 9.0])
    assert str(x.scatter_reduce(0, trt.arange(4), y, "amax").tolist()) == "[nan, nan, 3.0, 9.0]"
    assert str(x.scatter_reduce(0, trt.arange(4), y, "amin").tolist()) == "[nan, nan, 2.0, 4.0]"


def test_an_index_that_shares_memory_with_the_target_is_refused():
    x = trt.tensor([3, 2, 1, 0])
    with pytest.raises(RuntimeError, match="single memory location"):
        x.scatter_(0, x, trt.tensor([9, 9, 9, 9]))


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter_follow_their_definition(dtype):
    d = getattr(trt, dtype)
    x = trt.tensor([[1, 0, 1], [0, 1, 1]]).to(d)
    index = [[0, 2], [1, 1]]
    rows = x.tolist()
    assert x.gather(1, trt.tensor(index)).tolist() == [[rows[i][j] for j in index[i]] for i in range(2)]
    result = trt.zeros(2, 3, dtype=d).scatter_add(1, trt.tensor([[0, 2], [1, 0]]), x[:, :2])
    assert result.tolist() == trt.tensor([[1, 0, 0], [1, 0, 0]]).to(d).tolist()


def test_repeated_indices_add_up_and_the_last_write_stays():
    x = trt.zeros(3)
    i = trt.tensor([1, 1, 2])
    assert x.index_put((i,), trt.tensor([1.0, 2.0, 4.0]), True).tolist() == [0, 3, 4]
    assert x.index_put((i,), trt.tensor([1.0, 2.0, 4.0])).tolist() == [0, 2, 4]


@pytest.mark.usefixtures("split_small_work")
def test_sums_do_not_depend_on_the_number_of_threads():
    n = 200_000
    index = (trt.tensor(list(range(n))) * 7919) % 97
    values = (trt.tensor(list(range(n))) % 1000).to(trt.float32) / 7
    threads = trt.get_num_threads()
    results = []
    try:
        for k in (1, 2, 3):
            trt.set_num_threads(k)
            results.append([trt.zeros(97).index_add(0, index, values).tolist(), trt.zeros(97).scatter_add(0, index, values).tolist(),
                            trt.zeros(97).index_put((index,), values, True).tolist()])  # fmt: skip
    finally:
        trt.set_num_threads(threads)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("key", [1, slice(1, None), ("t", [0, 0, 1]), (slice(None), ("t", [1, 1])), ("m", [True, False, True])], ids=str)
def test_gradient_of_reading_counts_the_reads(key):
    x = trt.ones(3, 2, requires_grad=True)
    x[made(key, trt)].sum().backward()
    count = [[0.0, 0.0] for _ in range(3)]
    numbers = trt.tensor(list(range(6))).reshape(3, 2)[made(key, trt)].reshape(-1).tolist()
    for n in numbers:
        count[n // 2][n % 2] += 1
    assert x.grad.tolist() == count


def test_gradient_of_writing_goes_to_the_value_and_not_to_what_was_overwritten():
    x = trt.ones(3, requires_grad=True)
    v = trt.tensor([2.0], requires_grad=True)
    y = x * 3
    y[trt.tensor([0, 2])] = v
    y.sum().backward()
    assert x.grad.tolist() == [0, 3, 0] and v.grad.tolist() == [2]


def test_second_derivative_through_an_index():
    x = trt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x[trt.tensor([0, 0, 2])] ** 3).sum()
    (g,) = trt.autograd.grad(y, x, create_graph=True)
    (h,) = trt.autograd.grad(g.sum(), x)
    assert h.tolist() == [12, 0, 18]


def test_embedding_gradient_skips_the_padding_row_and_divides_by_frequency():
    weight = trt.ones(4, 2, requires_grad=True)
    index = trt.tensor([[1, 1], [2, 3]])
    _ops.embedding(weight, index, 3, True, False).sum().backward()
    assert weight.grad.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]


def test_positions_of_non_zeros():
    x = trt.tensor([[0.0, -0.0, 2.0], [float("nan"), 0.0, 1.0]])
    assert x.nonzero().tolist() == [[0, 2], [1, 0], [1, 2]]
    assert [t.tolist() for t in x.nonzero(as_tuple=True)] == [[0, 1, 1], [2, 0, 2]]
    assert trt.tensor(3.0).nonzero().shape == (1, 0)


def test_masked_operators_broadcast_the_mask():
    x = trt.zeros(2, 3)
    mask = trt.tensor([True, False, True])
    assert x.masked_fill(mask, 1.0).tolist() == [[1, 0, 1], [1, 0, 1]]
    assert x.masked_scatter(mask, trt.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [[1, 0, 2], [3, 0, 4]]
    assert trt.tensor([[1, 2, 3]]).masked_select(mask).tolist() == [1, 3]


def test_searching_sorted_rows_matches_bisect():
    import bisect

    edges = [1.0, 3.0, 3.0, 5.0]
    values = [0.0, 1.0, 3.0, 4.0, 9.0]
    assert trt.searchsorted(trt.tensor(edges), trt.tensor(values)).tolist() == [bisect.bisect_left(edges, v) for v in values]
    assert trt.bucketize(trt.tensor(values), trt.tensor(edges), right=True).tolist() == [bisect.bisect_right(edges, v) for v in values]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_take_along_dim_counts_from_the_end(dim):
    torch = pytest.importorskip("torch")
    x = torch.arange(12.0).reshape(3, 4)
    n = x.size(dim)
    places = torch.randint(-n, n, (3, 4))
    mine = trt.tensor(x.tolist(), requires_grad=True)
    found = trt.take_along_dim(mine, trt.tensor(places.tolist()), dim)
    assert found.tolist() == torch.take_along_dim(x, places, dim).tolist()
    found.sum().backward()
    assert mine.grad.sum().item() == 12
    for wrong in (n, -n - 1):
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            trt.take_along_dim(mine, trt.full((3, 4), wrong), dim)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_unravelled_positions_are_int64(dtype):
    torch = pytest.importorskip("torch")
    found = trt.unravel_index(trt.tensor([1, 2, 5], dtype=getattr(trt, dtype)), (2, 3))
    expected = torch.unravel_index(torch.tensor([1, 2, 5], dtype=getattr(torch, dtype)), (2, 3))
    assert [(str(f.dtype).rpartition(".")[2], f.tolist()) for f in found] == [(str(e.dtype).rpartition(".")[2], e.tolist()) for e in expected]


def test_one_value_for_a_mask_is_converted():
    for kind, value, expected in ((trt.float32, trt.tensor(1), [1, 0, 1]), (trt.int64, trt.tensor(1.5), [1, 0, 1]), (trt.float64, trt.tensor([2.0]), [2, 0, 2])):
        x = trt.zeros(3, dtype=kind)
        x[trt.tensor([True, False, True])] = value
        assert x.tolist() == expected
    with pytest.raises(RuntimeError, match="dtypes match"):
        trt.zeros(3)[trt.tensor([0, 1])] = trt.tensor([1, 2])


@pytest.mark.parametrize(("name", "expected"), [("max", [3.0, 5.0, 1.0]), ("min", [2.0, 4.0, 1.0])])
def test_scatter_reduce_takes_max_and_min(name, expected):
    index, source = trt.tensor([0, 0, 1, 1]), trt.tensor([2.0, 3.0, 4.0, 5.0])
    assert trt.ones(3).scatter_reduce(0, index, source, name, include_self=False).tolist() == expected
    assert trt.ones(3).scatter_reduce_(0, index, source, name, include_self=False).tolist() == expected
    for call in (trt.Tensor.index_reduce, trt.Tensor.index_reduce_):  # which PyTorch's refuses, too
        with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin"):
            call(trt.ones(3), 0, index, source, name)
    x, s = trt.ones(3, requires_grad=True), source.clone().requires_grad_()
    with trt.no_grad():
        wanted = trt.ones(3).scatter_reduce(0, index, source, "a" + name)
    x.scatter_reduce(0, index, s, name).sum().backward()
    assert x.scatter_reduce(0, index, s, name).tolist() == wanted.tolist()
    assert (x.grad.tolist(), s.grad.tolist()) == (([0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]) if name == "max" else ([1.0, 1.0, 1.0], [0.0] * 4))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("reduce", ["amin", "amax"])
def test_complex_numbers_have_no_extremes(reduce, dtype):
    # there is no kernel of them, and nothing is written before that is found
    x = trt.ones(3, dtype=getattr(trt, dtype))
    index, source = trt.tensor([0, 1]), trt.zeros(2, dtype=x.dtype)
    for include_self in (True, False):
        for call in (x.scatter_reduce, x.scatter_reduce_, x.index_reduce, x.index_reduce_):
            with pytest.raises(NotImplementedError, match="Complex"):
                call(0, index, source, reduce, include_self=include_self)
    with pytest.raises(NotImplementedError, match="Complex"):
        trt.masked.amax(x.to_sparse(), 0, mask=trt.ones(3, dtype=trt.bool).to_sparse())
    assert x.tolist() == [1, 1, 1]


NUMBERS_BEYOND = [(trt.int8, 300), (trt.int8, float("inf")), (trt.uint8, 256), (trt.int32, 2**40), (trt.float32, 1e39), (trt.complex64, 1e39), (trt.float32, 1j)]


@pytest.mark.parametrize(("dtype", "number"), NUMBERS_BEYOND, ids=str)
def test_a_number_that_the_type_cannot_hold_is_refused(dtype, number):
    """Nothing wraps and nothing becomes infinite: of halves an assigned number does, as in PyTorch."""
    x = trt.zeros(3, dtype=dtype)
    for write in (
        lambda: x.__setitem__(0, number), lambda: x.__setitem__(slice(None), number), lambda: x.__setitem__(x == 0, number), lambda: x.__setitem__([0, 1], number),
        lambda: x.masked_fill(x == 0, number), lambda: x.masked_fill_(x == 0, number), lambda: x.index_fill(0, trt.tensor([1]), number),
        lambda: x.scatter(0, trt.tensor([1]), number), lambda: x.fill_(number),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow|Converting complex Scalar to non-complex"):
            write()
    assert not x.any()
    h = trt.zeros(2, dtype=trt.float16)
    h[0] = 1e5
    assert h.tolist() == [float("inf"), 0.0]
    with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
        h.masked_fill(h == 0, -1e9)


@pytest.mark.parametrize("shape", [(), (5,), (300, 200), (4, 0), (3, 40, 50)])
@pytest.mark.parametrize("dtype", [trt.float32, trt.bool, trt.int8])
def test_coordinates_take_no_room_beside_the_result(shape, dtype):
    x = trt.ones(shape, dtype=dtype)
    for call in (lambda: [x.nonzero()], lambda: list(trt.where(x)), lambda: list(x.nonzero(as_tuple=True))):
        expected = [x.numpy().reshape(-1 if not shape else shape).nonzero()]
        call()
        trt.cpu.reset_peak_memory_stats()
        before = trt.cpu.memory_allocated()
        found = call()
        assert trt.cpu.max_memory_allocated() - before <= x.numel() * max(1, len(shape)) * 8 + 4096
        columns = [f.tolist() for f in found] if len(found) > 1 or found[0].dim() == 1 else found[0].t().tolist()
        assert columns == [c.tolist() for c in expected[0]][: len(columns)]
