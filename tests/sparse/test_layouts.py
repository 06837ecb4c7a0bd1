"""Sparse tensors: construction, conversion, printing, files, and what they refuse, beside PyTorch."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch")

import tensorrt_lite as trt  # noqa: E402

from sparse_compare import LAYOUTS, check, ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
BLOCKS = {"sparse_bsr": (2, 3), "sparse_bsc": (2, 3)}


def matrix(rows=4, columns=6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    d = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return (d * (torch.rand(rows, columns, generator=generator) < 0.4)).to(dtype)


def converted(d, layout, lib):
    return d.to_sparse(layout=getattr(lib, layout), **({"blocksize": BLOCKS[layout]} if layout in BLOCKS else {}))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversion_to_and_from_each_layout(layout):
    d = matrix()
    theirs, mine = converted(d, layout, torch), converted(ours(d), layout, trt)
    check(mine, theirs)
    assert repr(mine) == repr(theirs)
    check(mine.to_dense(), d)
    for other in LAYOUTS:
        if layout in BLOCKS and other not in (layout, "sparse_coo"):
            check(converted(mine, other, trt).to_dense(), d)  # PyTorch converts blocks to coordinates alone
        else:
            check(converted(mine, other, trt), converted(theirs, other, torch))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_and_dense_dimensions(layout):
    d = torch.stack([matrix().unsqueeze(-1).expand(4, 6, 2)] * 3).contiguous()
    options = {"dense_dim": 1} if layout != "sparse_coo" else {}
    arguments = ((3,) if layout == "sparse_coo" else ()) + (() if layout not in BLOCKS else (BLOCKS[layout],))
    name = "to_sparse" if layout == "sparse_coo" else f"to_{layout}"
    theirs, mine = getattr(d, name)(*arguments, **options), getattr(ours(d), name)(*arguments, **options)
    check(mine, theirs)
    assert repr(mine) == repr(theirs)
    check(mine.to_dense(), d)


def test_coalesce_adds_entries_of_equal_indices():
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int8, torch.bool, torch.complex64, torch.bfloat16):
        i = torch.randint(0, 5, (2, 40), generator=generator)
        v = (torch.randn(40, 3, generator=generator) * 4).to(dtype)
        theirs = torch.sparse_coo_tensor(i, v, (5, 6, 3)).coalesce()
        mine = trt.sparse_coo_tensor(ours(i), ours(v), (5, 6, 3))
        assert not mine.is_coalesced()
        mine = mine.coalesce()
        assert mine.is_coalesced() and mine.indices().tolist() == theirs.indices().tolist()
        check(mine, theirs, rtol=2e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-5)


def test_sizes_are_inferred():
    check(trt.sparse_coo_tensor([[0, 4], [2, 1]], [1.0, 2.0]), torch.sparse_coo_tensor([[0, 4], [2, 1]], [1.0, 2.0]))
    check(trt.sparse_coo_tensor((2, 3)), torch.sparse_coo_tensor((2, 3)))
    check(trt.sparse_csr_tensor([0, 1, 3], [1, 0, 2], [1.0, 2.0, 3.0]), torch.sparse_csr_tensor([0, 1, 3], [1, 0, 2], [1.0, 2.0, 3.0]))


BAD = {
    "counts": lambda lib: lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)),
    "dimensions": lambda lib: lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 4)),
    "outside": lambda lib: lib.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True),
    "negative": lambda lib: lib.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True),
    "negative_without_size": lambda lib: lib.sparse_coo_tensor([[0, -1]], [1.0, 2.0]),
    "not_coalesced": lambda lib: lib.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,), check_invariants=True, is_coalesced=True),
    "crow_length": lambda lib: lib.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2), check_invariants=True),
    "crow_end": lambda lib: lib.sparse_csr_tensor([0, 1, 5], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True),
    "col_outside": lambda lib: lib.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], (2, 2), check_invariants=True),
    "col_order": lambda lib: lib.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "three_sparse_dimensions": lambda lib: lib.ones(2, 2, 2).to_sparse().to_sparse_csr(),
    "blocks": lambda lib: lib.ones(3, 4).to_sparse_bsr((2, 2)),
    "indices_of_uncoalesced": lambda lib: lib.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,)).indices(),
    "crow_of_coo": lambda lib: lib.ones(2, 2).to_sparse().crow_indices(),
    "coalesce_strided": lambda lib: lib.ones(2, 2).coalesce(),
    "values_strided": lambda lib: lib.ones(2, 2).values(),
    "numpy": lambda lib: lib.ones(2, 2).to_sparse().numpy(),
    "storage": lambda lib: lib.ones(2, 2).to_sparse().untyped_storage(),
    "data_ptr": lambda lib: lib.ones(2, 2).to_sparse().data_ptr(),
    "cos": lambda lib: lib.ones(2, 2).to_sparse().cos(),
    "exp_csr": lambda lib: lib.ones(2, 2).to_sparse_csr().exp_(),
    "view": lambda lib: lib.ones(2, 2).to_sparse().reshape(4),
    "sort": lambda lib: lib.sort(lib.ones(2, 2).to_sparse()),
    "inverse": lambda lib: lib.linalg.inv(lib.ones(2, 2).to_sparse()),
    "sparse_plus_number": lambda lib: lib.ones(2, 2).to_sparse() + 1,
    "sparse_plus_dense": lambda lib: lib.ones(2, 2).to_sparse() + lib.ones(2, 2),
    "quotient": lambda lib: lib.ones(2, 2).to_sparse() / lib.ones(2, 2).to_sparse(),
    "equal_elements": lambda lib: lib.ones(2, 2).to_sparse() == lib.ones(2, 2).to_sparse(),
    "sizes": lambda lib: lib.sparse.mm(lib.ones(2, 2).to_sparse(), lib.ones(3, 2)),
    "shrink": lambda lib: lib.ones(2, 2).to_sparse().sparse_resize_((1, 2), 2, 0),
    "copy": lambda lib: lib.ones(2, 2).copy_(lib.ones(2, 2).to_sparse()),
    "nbytes": lambda lib: lib.ones(2, 2).to_sparse().nbytes,
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_refusals_have_the_type_of_pytorchs(case):
    with pytest.raises(Exception) as theirs:
        BAD[case](torch)
    with pytest.raises(type(theirs.value)):
        BAD[case](trt)


def test_wrong_indices_never_reach_memory():
    wild = trt.sparse_coo_tensor([[0, 10**9], [1, -5]], [1.0, 2.0], (3, 4))
    for use in (trt.Tensor.to_dense, lambda t: t @ trt.ones(4, 2), lambda t: t.to_sparse_csr().to_dense(), lambda t: trt.ones(3, 4).sparse_mask(t)):
        with pytest.raises((RuntimeError, IndexError)):
            use(wild)
    rows = trt.sparse_csr_tensor([0, 50, 2], [0, 10**12], [1.0, 2.0], (2, 2))
    for use in (trt.Tensor.to_dense, lambda t: t @ trt.ones(2, 2), lambda t: trt.sparse.sampled_addmm(t, trt.ones(2, 2), trt.ones(2, 2))):
        with pytest.raises((RuntimeError, IndexError)):
            use(rows)


def test_invariants_can_be_switched():
    assert not trt.sparse.check_sparse_tensor_invariants.is_enabled()
    with trt.sparse.check_sparse_tensor_invariants():
        assert trt.sparse.check_sparse_tensor_invariants.is_enabled()
        with pytest.raises(RuntimeError, match="found index 5"):
            trt.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
    trt.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_go_both_ways(layout):
    d = matrix()
    for writer, reader in ((torch, trt), (trt, torch), (trt, trt)):
        source = d if writer is torch else ours(d)
        x = converted(source, layout, writer)
        file = io.BytesIO()
        writer.save({"x": x}, file)
        file.seek(0)
        y = reader.load(file)["x"]
        assert repr(y) == repr(x)
    mine = converted(ours(d), layout, trt)
    for again in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), copy.copy(mine), mine.clone()):
        assert trt.equal(again, mine) and type(again) is type(mine)


def test_a_file_with_wrong_indices_is_refused():
    bad = torch.sparse_coo_tensor([[0, 50]], [1.0, 2.0], (3,))
    file = io.BytesIO()
    torch.save(bad, file)
    file.seek(0)
    with pytest.raises(Exception, match="found index 50"):
        trt.load(file)


def test_types_and_devices():
    t, m = converted(matrix(), "sparse_coo", torch), converted(ours(matrix()), "sparse_coo", trt)
    check(m.to(trt.float32), t.to(torch.float32))
    check(m.float(), t.float())
    check(m.to_sparse_csr().half(), t.to_sparse_csr().half())
    assert m.to(trt.float64) is m and m.cpu() is m and m.is_cpu and not m.is_meta and m.device == trt.device("cpu")
    assert m.type() == t.type() and m.is_sparse and not m.is_sparse_csr and m.to_sparse_csr().is_sparse_csr
    assert m.stride() == t.stride() and m.storage_offset() == 0 and not m.is_contiguous() and isinstance(m, trt.Tensor)


def test_resizing():
    for size, sparse, dense in (((7, 6), 2, 0), ((4, 9), 2, 0)):
        t, m = converted(matrix(), "sparse_coo", torch), converted(ours(matrix()), "sparse_coo", trt)
        check(m.sparse_resize_(size, sparse, dense), t.sparse_resize_(size, sparse, dense))
        check(m.sparse_resize_and_clear_((2, 3, 4), 1, 2), t.sparse_resize_and_clear_((2, 3, 4), 1, 2))


def test_masks():
    d, other = matrix(), torch.arange(24.0, dtype=torch.float64).reshape(4, 6)
    for layout in ("sparse_coo", "sparse_csr", "sparse_csc"):
        check(ours(other).sparse_mask(converted(ours(d), layout, trt)), other.sparse_mask(converted(d, layout, torch)))
    check(ours(other).to_sparse().sparse_mask(ours(d).to_sparse()), other.to_sparse().sparse_mask(d.to_sparse()))


def test_scipy_both_ways():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    d = ours(matrix())
    for layout in LAYOUTS:
        m = converted(d, layout, trt)
        s = trt.sparse.to_scipy(m)
        assert (s.toarray() == d.numpy()).all()
        back = trt.sparse.from_scipy(s)
        assert trt.equal(back.to_dense(), d)
    assert trt.equal(trt.sparse.from_scipy(scipy_sparse.dok_array(d.numpy())).to_dense(), d)
    with pytest.raises(TypeError):
        trt.sparse.from_scipy([1, 2])


def test_spdiags():
    generator = torch.Generator().manual_seed(5)
    for offsets in ([0], [-1, 2], [3, 0, -2]):
        v = torch.randn(len(offsets), 5, generator=generator)  # wider than the matrix, PyTorch makes indices outside of it
        for shape in ((4, 5), (6, 7)):
            for layout in (None, "sparse_csr", "sparse_csc"):
                theirs = torch.sparse.spdiags(v, torch.tensor(offsets), shape, layout=None if layout is None else getattr(torch, layout))
                check(
                    trt.sparse.spdiags(ours(v), trt.tensor(offsets), shape, layout=None if layout is None else getattr(trt, layout)),
                    theirs,
                    pattern=False,
                )


def test_targets_and_strange_arguments_are_refused():
    d, s = trt.ones(2, 2), trt.ones(2, 2).to_sparse()
    for use in (
        lambda: trt.sub(d, d, out=s), lambda: trt.add(s, s, out=d), lambda: trt.mul(d, d, out=s), lambda: trt.mm(d, d, out=s), lambda: trt.multinomial(s, 1),
        lambda: trt.bernoulli(s), lambda: d.add_(s, alpha=s), lambda: s.set_(d), lambda: d.set_(s), lambda: s.resize_(3), lambda: trt.stack([d, s]), lambda: trt.where(s, d, d),
        lambda: setattr(d, "data", s),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            use()
    with pytest.raises(TypeError):
        s @ 2
    assert d.tolist() == [[1, 1], [1, 1]] and s.to_dense().tolist() == [[1, 1], [1, 1]]
    target = trt.sparse_coo_tensor((2, 2))
    assert trt.equal(trt.add(s, s, out=target), s * 2) and trt.equal(target, s * 2)


def test_parameters():
    t, m = torch.nn.Parameter(matrix().to_sparse()), trt.nn.Parameter(ours(matrix()).to_sparse())
    assert repr(m) == repr(t) and m.requires_grad and m.is_sparse
    for again in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), copy.copy(m)):
        assert isinstance(again, trt.nn.Parameter) and repr(again) == repr(m)
    (m @ trt.ones(6, 2, dtype=trt.float64)).sum().backward()
    assert m.grad.is_sparse
    module = trt.nn.Module()
    module.weight = m
    file = io.BytesIO()
    trt.save(module.state_dict(), file)
    file.seek(0)
    assert trt.equal(trt.load(file)["weight"].to_dense(), m.detach().to_dense())
    file = io.BytesIO()
    trt.save(m, file)
    file.seek(0)
    assert repr(torch.load(file)) == repr(t)


@pytest.mark.parametrize("shape", [(0, 0, 0), (2, 0, 2), (2, 2, 0)])
@pytest.mark.parametrize("make", ["sparse_bsr_tensor", "sparse_bsc_tensor"])
def test_blocks_without_elements_are_refused(make: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="must be divisible with blocksize"):
        getattr(trt, make)([0, 1], [0], trt.zeros(shape), (2, 2))
