"""Many short rows: reductions pack them into columns, softmax takes them a vector at a time, copies run across them."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as torch

SHAPES = [((3001, 3), 1), ((3001, 7), 1), ((1500, 48), 1), ((700, 5, 6), 1), ((700, 2, 15), 1), ((90, 40, 4), 1), ((40, 40, 8), 2)]
REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "var": lambda x, axis: np.var(x, axis, ddof=1),
    "any": np.any,
    "all": np.all,
    "count_nonzero": np.count_nonzero,
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_short_rows_agree_with_numpy(name: str, shape: tuple[int, ...], dim: int, dtype: str) -> None:
    if name in ("mean", "var", "logsumexp") and "float" not in dtype or dtype == "bool" and name.startswith("arg"):
        pytest.skip("not defined for the type")
    x = (torch.rand(shape, generator=torch.Generator().manual_seed(3)) * 3).to(getattr(torch, dtype))
    wide = x.double().numpy() if "float" in dtype else x.numpy()
    got = getattr(x, name)(dim)
    expected = REDUCTIONS[name](wide, axis=dim)
    if name.startswith("arg"):
        # bfloat16 has ties: any index of the extreme counts, and the first is what both choose
        assert got.tolist() == expected.tolist()
        return
    tolerance = {"bfloat16": 1e-2, "float64": 1e-12}.get(dtype, 1e-5)
    np.testing.assert_allclose(got.double().numpy(), np.asarray(expected, np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["sum", "var", "amax", "logsumexp"])
def test_short_rows_do_not_depend_on_threads(name: str) -> None:
    x, before = torch.randn(5005, 13), torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(getattr(x, name)(1).tolist() + getattr(x.reshape(-1, 13, 11).transpose(1, 2), name)(1).flatten().tolist())
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_max_of_short_rows_gives_values_and_positions() -> None:
    x = torch.randn(4000, 9)
    x[17, 4] = float("nan")
    values, positions = x.max(1)
    assert positions[17].item() == 4 and values[17].isnan().item()
    keep = [i for i in range(4000) if i != 17]
    assert positions.numpy()[keep].tolist() == x.numpy()[keep].argmax(1).tolist()
    assert values.numpy()[keep].tolist() == x.numpy()[keep].max(1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("n", [1, 2, 10, 24, 25])
def test_softmax_of_short_rows(n: int, dtype: str) -> None:
    x = (torch.randn(1003, n) * 5).to(getattr(torch, dtype))
    x[5, n - 1] = float("-inf")
    x[6, 0] = float("nan")
    x[7] = float("-inf")
    x[8, 0] = float("inf")
    wide = x.double().numpy()
    with np.errstate(invalid="ignore"):
        shifted = wide - wide.max(1, keepdims=True)
        sums = np.exp(shifted).sum(1, keepdims=True)
        expected = {"softmax": np.exp(shifted) / sums, "log_softmax": shifted - np.log(sums)}
    tolerance = {"bfloat16": 1e-2, "float16": 2e-3, "float64": 1e-12}.get(dtype, 2e-6)
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(x, name)(1).double().numpy(), values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "complex128"])
def test_copies_with_few_elements_along_the_fastest_dimension(dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = torch.arange(5000 * 6).reshape(5000, 6).to(kind)
    assert x[:, 2:5].contiguous().tolist() == x.numpy()[:, 2:5].tolist()
    assert x.repeat_interleave(3, 1).tolist() == x.numpy().repeat(3, 1).tolist()
    assert x.roll(2, 1).tolist() == np.roll(x.numpy(), 2, 1).tolist()
    assert x.flip(1).tolist() == x.numpy()[:, ::-1].tolist()
    assert torch.stack((x, x + 1), 2).tolist() == np.stack((x.numpy(), x.numpy() + 1), 2).tolist()
    assert x[:, ::2].to(torch.float64 if dtype != "complex128" else torch.complex64).tolist() == x.numpy()[:, ::2].tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_scatters_along_the_last_dimension(dtype: str) -> None:
    kind = getattr(torch, dtype)
    x, y = (torch.rand(60, 300) * 4).to(kind), (torch.rand(60, 900) * 4).to(kind)
    index = torch.randint(0, 300, (900,))
    expected = x.double().numpy().copy()
    for row, values in zip(expected, y.double().numpy(), strict=True):
        for i, v in zip(index.tolist(), values, strict=True):
            row[i] += v
    if dtype == "bool":
        expected = expected > 0
    tolerance = 0.1 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(x.index_add(1, index, y).double().numpy(), expected, rtol=tolerance)
    last = {i: k for k, i in enumerate(index.tolist())}
    copied = x.index_copy(1, index, y)
    for i, k in last.items():
        assert copied[:, i].tolist() == y[:, k].tolist()
    filled = x.index_fill(1, index, 1)
    assert (filled[:, sorted(last)] == 1).all().item()
    untouched = [i for i in range(300) if i not in last]
    assert filled[:, untouched].tolist() == x[:, untouched].tolist()


def test_the_conjugate_of_a_real_tensor_is_the_tensor() -> None:
    x = torch.randn(3)
    assert x.conj_physical() is x
    assert torch.conj_physical(x, out=torch.empty(3)).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_elements_repeated_in_a_row_end_where_they_end(dtype):
    """Rows of one element each are written past their ends, where the next rows follow, and nowhere else."""
    for count in (1, 2, 3, 5, 8, 16, 33):
        for n in (1, 2, 7, 100, 5000):
            x = torch.arange(2 * n).remainder(100).to(getattr(torch, dtype))
            for source in (x[:n], x[::2]):
                around = torch.full((n * count + 2,), 77, dtype=torch.int64).to(getattr(torch, dtype))
                around[1:-1].view(n, count).copy_(source.unsqueeze(1).expand(n, count))
                wanted = np.repeat(source.float().numpy() if dtype == "bfloat16" else source.numpy(), count)
                got = around.float().numpy() if dtype == "bfloat16" else around.numpy()
                assert np.array_equal(got[1:-1], wanted) and got[0] == got[-1] == (1 if dtype == "bool" else 77)
                assert torch.equal(source.repeat_interleave(count), around[1:-1])


def test_strided_rows_reduce_as_their_copies():
    """Rows of every second element, diagonals, columns: the bits of the same rows one after the other."""
    for dtype in (torch.float32, torch.float64, torch.int32, torch.complex64):
        whole = torch.randn(700, 30, dtype=torch.float64).mul(50).to(dtype)
        matrices = torch.randn(900, 3, 3, dtype=torch.float64).to(dtype)
        for x in (whole[:, ::2], whole[:40, ::10], whole[:, 1::7], matrices.diagonal(dim1=1, dim2=2), whole[:, :3].t().contiguous().t(), matrices[:20, :, ::2]):
            names = [n for n in REDUCTIONS if not (n in ("amax", "amin", "argmax", "argmin") and dtype.is_complex) and not (n in ("mean", "var") and dtype == torch.int32)]
            for name in names:
                got, want = getattr(x, name)(-1), getattr(x.contiguous(), name)(-1)
                assert torch.equal(got, want), (name, dtype, tuple(x.shape), x.stride())


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(40, 1, 3, 5), (7, 300, 1, 3), (301, 1, 8), (2, 1, 33), (1, 24)])
@pytest.mark.parametrize("times", [2, 3, 4, 100])
def test_copies_of_rows_that_repeat(times: int, shape: tuple[int, ...], dtype: str) -> None:
    x = (torch.randn(shape) * 50).to(getattr(torch, dtype))
    sizes = tuple(times if n == 1 else n for n in shape)
    expected = np.broadcast_to(x.numpy(), sizes)
    np.testing.assert_array_equal(x.expand(sizes).contiguous().numpy(), expected)
    wide = torch.zeros(*sizes[:-1], sizes[-1] + 3, dtype=x.dtype)
    wide[..., 1:-2] = x
    np.testing.assert_array_equal(wide.numpy()[..., 1:-2], expected)
    assert not wide[..., 0].any() and not wide[..., -2:].any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(1000, 8), (129, 3), (128, 1), (4096, 15), (640, 31), (2, 500, 7)])
def test_sums_down_a_few_columns(shape: tuple[int, ...], dtype: str) -> None:
    """Several rows of few columns are summed as one."""
    x = torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(getattr(torch, dtype))
    wide, dim = x.double().numpy(), len(shape) - 2
    tolerance = {"bfloat16": 1e-2, "float16": 2e-3, "float64": 1e-13}.get(dtype, 1e-6)
    np.testing.assert_allclose(x.sum(dim).double().numpy(), wide.sum(dim), rtol=tolerance)
    np.testing.assert_allclose(x.mean(dim).double().numpy(), wide.mean(dim), rtol=tolerance)
    np.testing.assert_allclose(x[..., 1:].sum(dim).double().numpy(), wide[..., 1:].sum(dim), rtol=tolerance)


def test_sums_down_a_few_columns_do_not_depend_on_threads() -> None:
    x, before, results = torch.randn(50001, 9), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(x.sum(0).tolist() + x.bfloat16().mean(0).tolist())
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32", "uint8"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (8, 1), (8, 2), (9, 4), (65, 3), (512, 4), (513, 4)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_short_rows_is_the_beginning_of_the_sorted_row(n: int, k: int, dtype: str, largest: bool) -> None:
    x = torch.randint(0, 5, (301, n), generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    if "float" in dtype:
        x[3, n // 2] = float("nan")
        x[4] = float("-inf")
        x[5, 0] = -0.0
    values, indices = x.topk(k, largest=largest)
    ordered, order = x.sort(descending=largest, stable=True)
    assert indices.tolist() == order[:, :k].tolist()
    assert torch.equal(values.nan_to_num(7), ordered[:, :k].nan_to_num(7))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64"])
def test_expanded_operands_give_what_their_copies_give(dtype: str) -> None:
    x, y = torch.randint(1, 9, (40, 1)).neg().to(getattr(torch, dtype)).expand(40, 33), torch.randint(1, 9, (40, 1)).to(getattr(torch, dtype)).expand(40, 33)
    calls = [torch.neg, torch.abs, torch.square, torch.reciprocal, torch.isfinite, torch.sigmoid, torch.sgn, lambda t: t * 2, lambda t: t == y, lambda t: t + y, lambda t: torch.where(t == y, t, y)]
    for call in calls:
        for operand in (x, x.t(), x[:, :70], x[None].expand(3, 40, 33)):
            if operand.shape != y.shape and call in calls[-3:]:
                continue
            assert torch.equal(call(operand), call(operand.contiguous()))
            out = torch.empty(0)
            if call in calls[:3]:
                assert torch.equal(call(operand, out=out.to(call(operand).dtype)), call(operand))


@pytest.mark.parametrize("n", [1, 2, 8, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
def test_order_statistics_of_short_rows(n: int, dtype: str) -> None:
    x = torch.randint(0, 6, (203, n), generator=torch.Generator().manual_seed(2)).to(getattr(torch, dtype))
    if "float" in dtype:
        x[7, n // 2] = float("nan")
    wide, ordered = x.double().numpy(), np.sort(x.double().numpy(), 1)
    middle = np.where(np.isnan(wide).any(1), np.nan, ordered[:, (n - 1) // 2])
    for values, places, expected in ((*x.median(1), middle), *((*x.kthvalue(k, 1), ordered[:, k - 1]) for k in {1, (n + 1) // 2, n})):
        np.testing.assert_array_equal(values.double().numpy(), expected)
        np.testing.assert_array_equal(wide[np.arange(203), places.numpy()], expected)


@pytest.mark.parametrize("descending", [False, True])
def test_rows_in_order_keep_it(descending: bool) -> None:
    x = torch.arange(300.0).div(7).floor().expand(5, 300)
    values, places = (x.flip(1) if descending else x).sort(1, descending=descending, stable=True)
    assert places.tolist() == [list(range(300))] * 5 and torch.equal(values, x.flip(1) if descending else x)
