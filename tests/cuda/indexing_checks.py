"""Indexing, joining, sequences on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, assert_same, raises
from tensorrt_lite.nn import functional as F


def randn(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape).requires_grad_(grad)


def indices(high: int, *shape: int, low: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape)


def check_select(order: str) -> None:
    """index_select, index_add, index_copy, index_fill along every dimension; rows of 16 bytes and odd ones; strided operands."""
    for shape in ((33, 8), (33, 7, 3), (40,)):
        for dim in range(len(shape)):
            n = shape[dim]
            i = indices(n, 31)
            agree(lambda x, i, d=dim: x.index_select(d, i), randn(*shape, grad=True), i)
            source = torch.randn([31 if d == dim else s for d, s in enumerate(shape)])
            agree(lambda x, i, s, d=dim: x.index_add(d, i, s, alpha=2), randn(*shape, grad=True), i, source.clone().requires_grad_())
            agree(lambda x, i, s, d=dim: x.index_copy(d, i, s), randn(*shape), i, source)
            agree(lambda x, i, d=dim: x.index_fill(d, i, 2.5), randn(*shape, grad=True), i)
    agree(lambda x, i, s: x.index_add_(1, i, s), randn(5, 12)[:, ::2], indices(6, 2000), randn(5, 4000)[:, ::2])
    agree(lambda x, i: x.index_select(0, i), randn(6, 5).t(), torch.tensor([4, 0, 0]))
    agree(lambda x, i: x.index_select(0, i), randn(6, 5), torch.zeros(0, dtype=torch.int64))
    agree(lambda x, i: x.index_select(0, i), torch.tensor(3.0), torch.tensor([0]))


def check_getitem() -> None:
    """x[...] and x[...] = v with tensors, masks and slices."""
    x, i, j = randn(9, 10, 11, grad=True), indices(9, 4, 1, low=-9), indices(10, 3)
    for key in ((i,), (slice(None), j), (i, j), (i, slice(2, 7), j), (Ellipsis, j), (None, j, 2)):
        agree(lambda x, *k, key=key: x[tuple(next(k) if isinstance(v, torch.Tensor) else v for k in [iter(k)] for v in key)],
              x, *[v for v in key if isinstance(v, torch.Tensor)])
    agree(lambda x: x[x > 0.5], x)
    agree(lambda x: x[:, x[0, :, 0] > 0], x)
    agree(lambda x, i: x[i.cpu() if i.is_cuda else i], x, j.clamp(max=8))

    def put(x: torch.Tensor, i: torch.Tensor, v: object) -> torch.Tensor:
        x = x.clone()
        x[i] = v
        return x

    agree(put, x, torch.tensor([1, 4, 1]), randn(3, 10, 11, grad=True))
    agree(put, x, torch.tensor([1, 4]), 7.0)
    agree(put, randn(30), randn(30) > 0, 1.0)
    agree(lambda x, i, v: x.index_put((i,), v, accumulate=True), randn(50), indices(50, 3000), randn(3000, grad=True))
    agree(lambda x, i, v: x.index_put((i,), v, accumulate=True), torch.zeros(50, dtype=torch.int64), indices(50, 3000), indices(9, 3000))


def check_lines(order: str) -> None:
    """gather, scatter and its reductions along every dimension."""
    for dim in (0, 1, 2):
        i = indices(5, 5, 6, 7) if dim == 0 else indices(6, 5, 6, 7) if dim == 1 else indices(7, 5, 6, 7)
        agree(lambda x, i, d=dim: x.gather(d, i), randn(5, 6, 7, grad=True), i)
        agree(lambda x, i, s, d=dim: x.scatter(d, i, s), randn(5, 6, 7, grad=True), i, randn(5, 6, 7), gradient=False)
        agree(lambda x, i, s, d=dim: x.scatter_add(d, i, s), randn(5, 6, 7, grad=True), i, randn(5, 6, 7, grad=True))
    i = indices(4, 3, 900)
    for reduce in ("sum", "prod", "mean", "amin", "amax"):
        for include in (True, False):
            agree(lambda x, i, s, r=reduce, n=include: x.scatter_reduce(1, i, s, r, include_self=n), randn(3, 4), i, randn(3, 900).sign() if reduce == "prod" else randn(3, 900))
    agree(lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), torch.zeros(4, dtype=torch.int32), indices(4, 50), indices(99, 50).int())
    agree(lambda x, i: x.scatter(1, i, 3.0), randn(3, 900), i)
    agree(lambda x, i: x.scatter(1, i, 2.0, reduce="multiply"), randn(3, 9), i[:, :2])
    agree(lambda x, i: x.gather(1, i), randn(900, 3).t(), i)
    agree(lambda x, i: x.gather(0, i), randn(9), torch.tensor(3))
    agree(lambda x, i, s: x.half().scatter_add(1, i, s.half()), randn(3, 4), i[:, :30], randn(3, 30), gradient=False)


def check_masks() -> None:
    """nonzero, masked_select, masked_scatter, masked_fill; take and put; more elements than a block's."""
    for n in (0, 1, 31, 2049, 10000):
        x = randn(n).clamp(min=0)
        agree(torch.nonzero, x)
        agree(torch.masked_select, x, x > 0.5)
    x = randn(13, 17, grad=True)
    agree(torch.nonzero, (x > 0).detach())
    agree(lambda m: torch.nonzero(m, as_tuple=True), (x > 0).detach())
    agree(torch.masked_select, x, x.detach() > 0)
    agree(lambda x, m, s: x.masked_scatter(m, s), x, x.detach() > 0, randn(300, grad=True))
    agree(lambda x, m: x.masked_fill(m, -1.0), x, x.detach()[0] > 0)
    agree(lambda x, m, v: x.masked_fill_(m, v), randn(5, 6).t(), randn(6, 1) > 0, torch.tensor(2.0))
    agree(torch.take, x, indices(221, 5, 5, low=-221))
    agree(torch.take, randn(5, 6).t(), indices(30, 5))
    agree(lambda x, i, s: x.put(i, s), randn(5, 6), indices(30, 4), randn(4))
    agree(lambda x, i, s: x.put_(i, s, accumulate=True), randn(5, 6).t(), indices(30, 40), randn(40))


def check_embedding(order: str) -> None:
    """Rows and their gradient, with padding and with frequent indices."""
    agree(F.embedding, indices(50, 7, 9), randn(50, 16, grad=True))
    agree(lambda i, w: F.embedding(i, w, padding_idx=3), indices(5, 900), randn(5, 33, grad=True))
    agree(lambda i, w: F.embedding(i, w), indices(5, 9).int(), randn(5, 8, grad=True).double())


def check_bags() -> None:
    """Sums and means of bags, one of them empty, with factors and padding, and their gradients."""
    starts = torch.tensor([0, 3, 3, 30])
    for convert in (torch.Tensor.long, torch.Tensor.int):
        i, ends = convert(indices(9, 40)), convert(starts)
        agree(lambda i, w, e, s: F.embedding_bag(i, w, e, mode="sum", per_sample_weights=s, padding_idx=3), i, randn(9, 5, grad=True), ends, randn(40, grad=True))
        agree(lambda i, w, e: F.embedding_bag(i, w, e, mode="mean"), i, randn(9, 5, grad=True), ends)


def check_search() -> None:
    """searchsorted with rows, both sides, a sorter; bucketize; one_hot."""
    s, v = torch.randn(4, 33).sort(1)[0], torch.randn(4, 10)
    agree(torch.searchsorted, s, v)
    agree(lambda s, v: torch.searchsorted(s, v, right=True, out_int32=True), s, s[:, ::3].contiguous())
    agree(torch.bucketize, randn(100), torch.tensor([-1.0, 0.0, 0.5]))
    agree(torch.searchsorted, torch.tensor([1, 3, 5]), torch.tensor([0, 1, 2, 5, 6]))
    agree(lambda i: F.one_hot(i, 7), indices(7, 5))
    agree(lambda i: F.one_hot(i), indices(7, 5))


def check_joining() -> None:
    """cat, stack, flip, roll, triangles, margins."""
    for dim in (0, 1, -1):
        agree(lambda a, b, c, d=dim: torch.cat([a, b, c], d), *[randn(3, 4, 5, grad=True) for _ in range(3)])
        agree(lambda a, b, d=dim: torch.stack([a, b], d), randn(3, 4, grad=True), randn(4, 3, grad=True).t())
    agree(lambda a, b: torch.cat([a, b]), randn(3, 4), torch.ones(2, 4, dtype=torch.int64))
    agree(lambda a, b: torch.cat([a, b], 1), randn(2, 3, 4, 4).to(memory_format=torch.channels_last), randn(2, 5, 4, 4).to(memory_format=torch.channels_last))
    agree(lambda x: x.flip(0, 2), randn(3, 4, 5, grad=True))
    agree(lambda x: x.flip(1), randn(4, 3).t())
    agree(lambda x: x.roll((1, -2), (0, 1)), randn(5, 6, grad=True))
    for k in (-2, 0, 1):
        agree(lambda x, k=k: x.tril(k), randn(2, 5, 7, grad=True))
        agree(lambda x, k=k: x.triu_(k), randn(7, 5).t())
    agree(lambda x: F.pad(x, (1, 2, -1, 3), value=0.5), randn(2, 5, 6, grad=True))
    agree(lambda x: F.pad(x.to(torch.complex128), (0, 0, 0, 0, 0, 1)), randn(4, 5, 6))
    for mode in ("reflect", "replicate", "circular"):
        agree(lambda x, m=mode: F.pad(x, (2, 1), mode=m), randn(2, 3, 5, grad=True))
        agree(lambda x, m=mode: F.pad(x, (2, 1, 0, 3), mode=m), randn(2, 3, 5, 6, grad=True))
    agree(lambda x: x.repeat(2, 3), randn(3, 4, grad=True), gradient=False)


def check_sequences() -> None:
    """arange, linspace, logspace, eye on the device."""
    for call in (
        lambda d: torch.arange(1000, device=d), lambda d: torch.arange(-3, 9, 2, dtype=torch.int16, device=d), lambda d: torch.arange(0, 1, 0.07, device=d),
        lambda d: torch.arange(5, dtype=torch.float16, device=d), lambda d: torch.linspace(-1, 3, 101, device=d), lambda d: torch.linspace(0, 1, 1, dtype=torch.float64, device=d),
        lambda d: torch.linspace(0, 10, 7, dtype=torch.int64, device=d), lambda d: torch.linspace(0, 1, 9, dtype=torch.bfloat16, device=d),
        lambda d: torch.logspace(-2, 2, 13, device=d), lambda d: torch.eye(5, 7, device=d), lambda d: torch.full((3, 4), 2.5, device=d), lambda d: torch.ones(0, device=d),
    ):  # fmt: skip
        assert_same(call("cuda"), call("cpu"), "a sequence")


def check_faults() -> None:
    """An index out of range is an IndexError of the next wait, and nothing is written or read there."""
    x = torch.arange(6.0, device="cuda")
    for call in (
        lambda i: x.index_select(0, i), lambda i: x.gather(0, i), lambda i: x[i], lambda i: torch.zeros(6, device="cuda").scatter_add_(0, i, torch.ones(3, device="cuda")),
        lambda i: torch.zeros(6, device="cuda").index_copy_(0, i, torch.ones(3, device="cuda")), lambda i: F.embedding(i, x.reshape(6, 1)),
    ):  # fmt: skip
        result = call(torch.tensor([1, 6, 2], device="cuda"))
        raises(IndexError, "index 6 is out of bounds for a dimension of size 6", result.cpu)
        assert result.cpu().isfinite().all()
    for wait in (torch.cuda.synchronize, torch.cuda.current_stream().synchronize):
        x.gather(0, torch.tensor([7], device="cuda"))
        raises(IndexError, "gather(): index 7", wait)
        wait()
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def out_of_bounds(call: object) -> str:
    """What the IndexError says that a call raises."""
    try:
        call()
    except IndexError as error:
        return str(error)
    raise AssertionError("no IndexError was raised")


def check_faults_in_graphs() -> None:
    """The first checked index of a process may be recorded: other work is not accused, replays are checked and take nothing from others' notes."""
    x, i, graph = torch.arange(10.0).cuda(), torch.tensor([1, 2]).cuda(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x[i]
    assert x.sum().item() == 45
    graph.replay()
    assert y.tolist() == [1, 2]
    i.copy_(torch.tensor([3, 77]))
    graph.replay()
    assert "index 77 is out of bounds" in out_of_bounds(torch.cuda.synchronize)
    i.copy_(torch.tensor([3, 4]))
    x[torch.tensor([88]).cuda()]
    graph.replay()
    assert "index 88 is out of bounds" in out_of_bounds(y.tolist)
    assert y.tolist() == [3, 4]


def check_faults_of_streams() -> None:
    """A stream's fault is raised to whoever waits for that stream, and waiting for another one loses nothing."""
    x, i = torch.arange(10.0).cuda(), torch.tensor([55]).cuda()
    streams = [torch.cuda.Stream() for _ in range(18)]
    torch.cuda.synchronize()
    with torch.cuda.stream(streams[0]):
        x[i - 55]
        y = x[i]
    # the note may be seen by now or not (late streams): exactly one of the two waits raises
    raised = 0
    for wait in (torch.cuda.current_stream().synchronize, streams[0].synchronize):
        try:
            wait()
        except IndexError as error:
            assert "index 55" in str(error)
            raised += 1
    assert raised == 1
    for stream in streams:  # more than are told apart
        with torch.cuda.stream(stream):
            x[i - 55]
    with torch.cuda.stream(streams[3]):
        y = x[i + 1]
    assert "index 56" in out_of_bounds(torch.cuda.synchronize)
    torch.cuda.synchronize()
    assert y.tolist() == [0]
