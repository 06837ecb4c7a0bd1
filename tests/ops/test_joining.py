"""Joining, repeating, reordering and padding: against Python lists and, where there are many cases, PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops


def numbers(*shape):
    n = 1
    for s in shape:
        n *= s
    return trt.tensor(list(range(n)), dtype=trt.float32).reshape(shape)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("strided", [False, True])
def test_cat_agrees_with_pytorch(dim, strided):
    torch = pytest.importorskip("torch")
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][dim] = 1

    def result(module):
        given = []
        for s in shapes:
            t = module.tensor(list(range(s[0] * s[1] * s[2]))).reshape(s)
            given.append(t.transpose(0, 2).contiguous().transpose(0, 2) if strided else t)
        return module.cat(given, dim)

    assert result(trt).tolist() == result(torch).tolist()


def test_cat_promotes_and_skips_empty_vectors():
    r = trt.cat([trt.tensor([]), trt.ones(2, 1, dtype=trt.int64), trt.ones(2, 2)], 1)
    assert r.dtype == trt.float32 and r.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_cat_keeps_channels_last():
    x = numbers(2, 3, 4, 5).contiguous(memory_format=trt.channels_last)
    r = trt.cat([x, x + 1], 1)
    assert r.is_contiguous(memory_format=trt.channels_last)
    assert r.tolist() == [a + b for a, b in zip(x.tolist(), (x + 1).tolist())]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: trt.cat([]), ValueError, "non-empty list"),
        (lambda: trt.cat([trt.ones(2, 3), trt.ones(2)]), RuntimeError, "same number of dimensions"),
        (lambda: trt.cat([trt.ones(2, 3), trt.ones(2, 4)]), RuntimeError, "Expected size 3 but got size 4 for tensor number 1"),
        (lambda: trt.cat([trt.tensor(1.0)]), RuntimeError, "zero-dimensional"),
        (lambda: trt.stack([trt.ones(2), trt.ones(3)]), RuntimeError, r"\[2\] at entry 0 and \[3\] at entry 1"),
        (lambda: trt.ones(2).flip(0, 0), RuntimeError, "appears multiple times"),
        (lambda: trt.ones(2).tril(), RuntimeError, "at least 2 dimensions"),
        (lambda: _ops.pad(trt.ones(2, 3), [3, 0], "reflect"), RuntimeError, "less than the corresponding input dimension"),
        (lambda: trt.ones(2).repeat(-1), RuntimeError, "negative dimension"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_cat_refuses_an_output_that_is_an_input():
    x = trt.ones(4)
    with pytest.raises(RuntimeError, match="single memory location"):
        trt.cat([x[:2], x[2:]], out=x)


@pytest.mark.usefixtures("split_small_work")
@pytest.mark.parametrize("dtype", [trt.uint8, trt.float16, trt.float32, trt.complex128], ids=str)
@pytest.mark.parametrize("widths", [(2, 1), (3, 0, 5, 1), (7, 7, 2), (16, 17, 64), (1, 130)], ids=str)
def test_cat_of_narrow_columns(widths, dtype):
    parts = [(numbers(301, n) * 7).to(dtype) for n in widths]
    rows = zip(*(p.tolist() for p in parts), strict=True)
    assert trt.cat(parts, -1).tolist() == [sum(row, []) for row in rows]


@pytest.mark.usefixtures("split_small_work")
def test_large_cat_is_the_same_with_any_number_of_threads():
    a, b = numbers(300, 700), numbers(300, 333)
    threads = trt.get_num_threads()
    try:
        for k in (1, 2, 3):
            trt.set_num_threads(k)
            r = trt.cat([a, b], 1)
            assert (r[:, :700] == a).all() and (r[:, 700:] == b).all()
    finally:
        trt.set_num_threads(threads)


def test_gradients_of_joining():
    a, b = trt.ones(2, requires_grad=True), trt.ones(3, requires_grad=True)
    (trt.cat([a, b]) * trt.tensor([0, 1, 2, 3, 4])).sum().backward()
    assert a.grad.tolist() == [0, 1] and b.grad.tolist() == [2, 3, 4]
    c = trt.ones(2, requires_grad=True)
    (trt.stack([c, c * 2]) ** 2).sum().backward()
    assert c.grad.tolist() == [10, 10]


def test_repeating_and_reordering_of_lists():
    x = trt.tensor([1, 2, 3])
    assert x.repeat(2).tolist() == [1, 2, 3] * 2
    assert x.repeat(2, 1).tolist() == [[1, 2, 3]] * 2
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3]
    assert x.repeat_interleave(trt.tensor([0, 2, 1])).tolist() == [2, 2, 3]
    assert x.flip(0).tolist() == [3, 2, 1]
    assert x.roll(1).tolist() == [3, 1, 2]
    assert x.tile(2).tolist() == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_triangles(k, dtype):
    x = trt.ones(3, 4, dtype=getattr(trt, dtype))
    low = [[1 if j <= i + k else 0 for j in range(4)] for i in range(3)]
    assert x.tril(k).tolist() == low
    assert x.triu(k + 1).tolist() == [[1 - v for v in row] for row in low]
    y = x.t().clone().t()
    assert y.tril_(k) is y and y.tolist() == low


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("margins", [(1, 2), (1, 1, 2, 0), (-1, 1)])
def test_padding_and_its_gradient_agree_with_pytorch(mode, margins):
    torch = pytest.importorskip("torch")

    def result(module, function):
        x = module.tensor(list(range(24)), dtype=module.float64).reshape(1, 2, 3, 4)
        x = x if len(margins) == 4 else x[0]
        x = x.detach().requires_grad_()
        y = function(x, margins, mode)
        (y * module.tensor(list(range(y.numel()))).reshape(y.shape)).sum().backward()
        return y.tolist(), x.grad.tolist()

    assert result(trt, _ops.pad) == result(torch, torch.nn.functional.pad)


def moved(module, made, change):
    """Elements that no two positions share, in some layout, changed."""
    shape, dtype, layout = made
    n = 1
    for size in shape:
        n *= size
    x = (module.arange(n) % 251).reshape(shape).to(getattr(module, dtype))
    if layout == "channels_last":
        x = x.to(memory_format=module.channels_last)
    elif layout == "transposed":
        x = x.transpose(-1, -2)
    elif layout == "steps":
        x = x[..., ::2]
    elif layout == "expanded":
        x = x[:, :1].expand(-1, 3, *shape[2:])
    y = change(module, x)
    return y.tolist(), y.stride()


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed", "steps", "expanded"])
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (1, 2, 40, 300), (3, 2, 1, 4)])
def test_what_consists_of_pieces_agrees_with_pytorch_in_every_layout(shape, dtype, layout):
    torch = pytest.importorskip("torch")
    made, pad = (shape, dtype, layout), {torch: torch.nn.functional.pad, trt: trt.nn.functional.pad}
    changes = [
        lambda m, x: x.flip(-1), lambda m, x: x.flip(0, 2), lambda m, x: x.flip(1, 3), lambda m, x: x.roll(3), lambda m, x: x.roll(1, -1),
        lambda m, x: x.roll((2, -5, 1), (0, 3, 3)), lambda m, x: pad[m](x, (3, 0, -1, 2, 1, 1), value=7), lambda m, x: pad[m](x, (-9, 4), value=1)
        if x.shape[-1] > 9 else x,
    ]  # fmt: skip
    if dtype not in ("uint8",):
        changes += [
            lambda m, x: pad[m](x, (2, 1, 0, -1 if x.shape[2] > 1 else 0), "reflect") if x.shape[-1] > 2 else x,
            lambda m, x: pad[m](x, (2, 9, 1, 1), "replicate"),
        ]
        changes += [lambda m, x: pad[m](x, (1, 2, 0, 1), "circular") if x.shape[-1] > 2 else x]
    for k, change in enumerate(changes):
        theirs = moved(torch, made, change)
        ours = moved(trt, made, change)
        assert ours[0] == theirs[0], k
        if layout in ("contiguous", "channels_last") and shape[2] > 1 and k != 5:  # of several rolls PyTorch keeps the format in some cases
            assert ours[1] == theirs[1], k


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("last", [False, True])
def test_gradients_of_margins_of_images_agree_with_pytorch(mode, dtype, last):
    torch = pytest.importorskip("torch")

    def result(module):
        x = (module.arange(2 * 3 * 40 * 50) % 3).reshape(2, 3, 40, 50).to(getattr(module, dtype))
        x = (x.to(memory_format=module.channels_last) if last else x).requires_grad_()
        y = module.nn.functional.pad(x, (5, 7, 1, 2), mode)
        weight = (module.arange(y.numel()) % 4).reshape(y.shape).to(y.dtype)
        (grad,) = module.autograd.grad(y, x, weight)
        return grad.tolist()

    assert result(trt) == result(torch)


def test_second_derivatives_and_tangents_of_pieces():
    x = trt.randn(2, 3, 4, 5, dtype=trt.float64).requires_grad_()
    for change in (
        lambda x: x.roll((1, 2), (0, 3)) ** 2,
        lambda x: trt.nn.functional.pad(x, (1, 2, 3, 0), "reflect") ** 2,
        lambda x: trt.nn.functional.pad(x, (1, -2, 0, 1), "circular") ** 2,
    ):
        assert trt.autograd.gradcheck(change, (x,), check_forward_ad=True)
        assert trt.autograd.gradgradcheck(change, (x,))


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5, 17])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
def test_stacking_along_a_new_last_dimension(parts, dtype):
    for n in (1, 7, 30_000):
        x = [(trt.arange(n) * k % 113).to(getattr(trt, dtype)) for k in range(1, parts + 1)]
        r = trt.stack(x, 1)
        assert r.shape == (n, parts) and all(bool((r[:, k] == x[k]).all()) for k in range(parts))


def test_margins_that_do_not_fit_are_refused_wherever_they_come_from():
    x = trt.zeros(1, 2, 4)
    for call in (
        lambda: _ops.pad(x, (4, 0), "reflect"),
        lambda: _ops.pad(x, (5, 0), "circular"),
        lambda: _ops.pad(x, (4, -1), "circular"),
        lambda: _ops._pad_margins(x, (0, 4), 0),
        lambda: _ops._pad_margins(x, (1,), 0),
        lambda: _ops._pad_margins(x, (1, 1), 3),
        lambda: _ops._pad_margins(x, (2**62, 2**62), 1),
        lambda: _ops._pad_margins_backward(x, (1, 2, 4), (1, 1), 0),
        lambda: _ops._pad_margins_backward(x, (1, 2, 3, 4), (0, 0), 0),
        lambda: _ops._pad_margins_backward(x, (1, 2, 4), (-5, 5), 1),
    ):
        with pytest.raises((RuntimeError, MemoryError)):
            call()


def test_windows_and_their_adjoint_agree_with_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.arange(2 * 3 * 5 * 6.0).reshape(2, 3, 5, 6)
    ours = _ops.im2col(trt.tensor(x.tolist()), (2, 3), (1, 2), (1, 0), (2, 1))
    theirs = torch.nn.functional.unfold(x, (2, 3), (1, 2), (1, 0), (2, 1))
    assert ours.tolist() == theirs.tolist()
    back = _ops.col2im(ours, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1))
    assert back.tolist() == torch.nn.functional.fold(theirs, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1)).tolist()


@pytest.mark.parametrize("sizes", [(3, 2), (3,), (3, None), (None, 3), (3, None, 2), (2, 3, 4), (None, None)])
@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(sizes, indexing):
    torch = pytest.importorskip("torch")
    from torch_compare import compare

    given = [torch.tensor(7) if n is None else torch.arange(n) for n in sizes]
    compare(lambda *ts: trt.meshgrid(*ts, indexing=indexing), lambda *ts: torch.meshgrid(*ts, indexing=indexing), *given)


@pytest.mark.parametrize("parts", [1, 65, 400])
def test_lists_of_any_length(parts):
    """Nothing that takes a list is limited to the number of dimensions."""
    torch = pytest.importorskip("torch")
    from torch_compare import ours, same

    x = torch.arange(2.0 * parts).reshape(parts, 2)
    mine = ours(x)
    sizes = [1] * (parts - 1) + [1]
    for call in (
        lambda m, t: m.split(t, sizes), lambda m, t: t.split_with_sizes(sizes), lambda m, t: m.split(t, 1), lambda m, t: t.chunk(parts), lambda m, t: t.unbind(),
        lambda m, t: t.tensor_split(parts), lambda m, t: t.tensor_split(list(range(1, parts))), lambda m, t: m.vsplit(t, parts),
        lambda m, t: m.cat(t.unbind()), lambda m, t: m.stack(t.unbind()), lambda m, t: m.hstack(t.unbind()), lambda m, t: m.vstack(t.unbind()),
        lambda m, t: m.dstack(t.unbind()), lambda m, t: m.column_stack(t.unbind()), lambda m, t: m.block_diag(*t.unbind()),
        lambda m, t: m.split_with_sizes_copy(t, sizes),
    ):  # fmt: skip
        same(call(trt, mine), call(torch, x))
    mine = mine.clone().requires_grad_()
    sum(k * p.sum() for k, p in enumerate(mine.split(sizes))).backward()
    assert mine.grad.tolist() == [[float(k)] * 2 for k in range(parts)]


def test_sizes_of_splits_are_checked():
    x = trt.arange(4)
    for sizes, text in (([1, 2], "sum exactly to 4"), ([5, -1], "non-negative"), ([2**63 - 1, 2**63 - 1, 6], "sum exactly to 4"), ([1, 1, 3], "sum exactly to 4")):
        with pytest.raises(RuntimeError, match=text):
            x.split_with_sizes(sizes)
    with pytest.raises(TypeError):
        x.split_with_sizes(None)
    assert [p.tolist() for p in x.split_with_sizes((0, 4))] == [[], [0, 1, 2, 3]] and len(x.split_with_sizes(4)) == 1


@pytest.mark.parametrize("call", [
    lambda: trt.ones(3).tensor_split(2**31 - 1), lambda: trt.empty(0).chunk(2**31), lambda: trt.ones(1).expand(2**31).unbind(),
    lambda: trt.ones(1).expand(2**31).split(1), lambda: trt.ones(2**20, 1).expand(2**20, 2**31).unbind(1),
], ids=["tensor_split", "chunk", "unbind", "split", "unbind 1"])
def test_more_views_than_memory_holds_are_refused_before_the_first(call):
    with pytest.raises(MemoryError, match=r"(2147483647|2147483648) views of a tensor of shape"):
        call()
