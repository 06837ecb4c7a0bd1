"""Types without loops (float8, complex32, the wider unsigned integers): stored, moved, cast, viewed and printed as PyTorch does, bit for bit; operators
compute with them where PyTorch's do. tests/conformance/stored.py compares OpInfo's samples."""

from __future__ import annotations

import copy
import io
import pickle
import sys

import numpy as np
import pytest
import torch

import tensorrt_lite as trt
from tools.codegen import dtypes

STORAGE_ONLY = [row.name for row in dtypes.ALL if not row.has_loops]
FLOAT8 = [row.name for row in dtypes.ALL if not row.has_loops and row.category == "FLOAT"]
UNSIGNED = [row.name for row in dtypes.ALL if not row.has_loops and row.category == "INT"]
WITH_LOOPS = [row.name for row in dtypes.ALL if row.has_loops]
CARRIER = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def of(m, name):
    return getattr(m, name)


def ours_from(theirs):
    """PyTorch's tensor of any dtype, by its bytes."""
    if theirs.dtype is torch.complex128:
        return trt.from_numpy(theirs.numpy().copy())
    carrier = CARRIER[theirs.element_size()]
    return trt.from_numpy(theirs.contiguous().view(of(torch, carrier)).numpy().copy()).view(of(trt, str(theirs.dtype).rpartition(".")[2]))


def bits(t):
    carrier = CARRIER[min(t.element_size(), 8)]
    m = trt if isinstance(t, trt.Tensor) else torch
    return (m.view_as_real(t) if t.element_size() == 16 else t).contiguous().view(of(m, carrier)).numpy().tobytes()


def same_bits(ours, theirs):
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    assert bits(ours) == bits(theirs)


def test_the_table_lists_them():
    assert sorted(STORAGE_ONLY) == sorted(UNSIGNED + FLOAT8 + ["complex32"])
    assert len(UNSIGNED) == 3 and len(FLOAT8) == 5


# ---- casts ---------------------------------------------------------------------------------------------------------------


def every(name):
    """All elements of types of one and two bytes; of the others random bits, both ends, and for floats each value of the narrow types, each tie between two
    of them and the floats on both sides."""
    dtype, draw = of(torch, name), np.random.default_rng(0)
    if name == "bool":
        return torch.tensor([False, True])
    if dtype.is_complex:
        parts = torch.from_numpy(np.concatenate([draw.standard_normal(2000) * np.exp(draw.uniform(-40, 40, 2000)), [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519, 65520, 6e-8, 3e38]]))
        return torch.complex(parts, parts.flip(0)).to(dtype)
    if dtype.itemsize <= 2:
        return torch.from_numpy(np.arange(256**dtype.itemsize).astype(f"uint{8 * dtype.itemsize}")).view(of(torch, CARRIER[dtype.itemsize])).view(dtype)
    if not dtype.is_floating_point:
        info = np.iinfo(name)
        known = np.array([0, 1, info.min, info.max, info.max - 1, 127, 255, 448, 464, 57344, 61440, 65519, 65520, 16777217], dtype=name)
        return torch.from_numpy(np.concatenate([draw.integers(info.min, info.max, 5000, dtype=name, endpoint=True), known]))
    near = []
    for narrow in (*FLOAT8, "float16"):
        values = every(narrow).double()
        values = values[torch.isfinite(values)].unique()
        near += [values, (values[1:] + values[:-1]) / 2, values * 1.0625]
    x = torch.cat([*near, torch.tensor([464.0, 480.0, 61440.0, 65535.0, 65536.0, 1e30, float("inf"), float("nan"), 2.0**-10, 2.0**-17, 1e-45, 1e-40, 2.0**-126, 2.0**-127])]).float()
    x = torch.cat([x, -x])
    up, down = (torch.nextafter(x, torch.tensor(float(side))) for side in ("inf", "-inf"))
    return torch.cat([x, up, down, torch.from_numpy(draw.integers(0, 2**32, 50000, dtype=np.uint32).view(np.float32))]).to(dtype)


def defined(values, target):
    """Those whose conversion C defines: integers hold them."""
    dtype = of(torch, target)
    if not (values.dtype.is_floating_point or values.dtype.is_complex) or dtype.is_floating_point or dtype.is_complex or target == "bool":
        return values
    info = torch.iinfo(dtype)
    wide = values.to(torch.complex128).real if values.dtype.is_complex else values.double()
    fits = torch.isfinite(wide) & (wide >= max(info.min, -(2**31))) & (wide < min(info.max, 2.0**63))
    if values.dtype.itemsize > 4 or values.dtype is torch.float32:
        return values[fits]
    return values.view(of(torch, CARRIER[values.dtype.itemsize]))[fits].view(values.dtype)


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_every_element_to_and_from_every_type(name):
    for other in (*WITH_LOOPS, *STORAGE_ONLY):
        for source, target in ((name, other), (other, name)):
            theirs = defined(every(source), target)
            ours, wanted = ours_from(theirs), theirs.to(of(torch, target))
            same_bits(ours.to(of(trt, target)), wanted)
            same_bits(ours.view(-1, 1).expand(-1, 2)[:, 0].to(of(trt, target)), wanted)


@pytest.mark.parametrize("name", STORAGE_ONLY)
@pytest.mark.parametrize("other", [*WITH_LOOPS, *STORAGE_ONLY])
def test_casts_in_both_directions(name, other):
    whole = torch.tensor([0, 1, 2, 3, 5, 7, 11, 96, 120, 100, 64])
    for source, target in ((name, other), (other, name)):
        theirs = whole.to(of(torch, source))
        for view in (lambda t: t, lambda t: t[::2], lambda t: t.view(-1, 1).expand(-1, 3)):
            same_bits(view(ours_from(theirs)).to(of(trt, target)), view(theirs).to(of(torch, target)))


@pytest.mark.parametrize("name", UNSIGNED)
def test_large_and_negative_integers(name):
    row = next(r for r in dtypes.ALL if r.name == name)
    top = 2**row.digits - 1
    ours = trt.tensor([0, 1, top - 1, top], dtype=of(trt, name))
    assert ours.tolist() == [0, 1, top - 1, top]
    same_bits(ours, torch.tensor([0, 1, top - 1, top], dtype=of(torch, name)))
    for target in ("float32", "float64", "int32", "int64", "int8", "bool"):
        same_bits(ours.to(of(trt, target)), torch.tensor([0, 1, top - 1, top], dtype=of(torch, name)).to(of(torch, target)))
    negative = torch.tensor([-1, -2, -100])
    same_bits(ours_from(negative).to(of(trt, name)), negative.to(of(torch, name)))


# ---- making, moving, viewing ---------------------------------------------------------------------------------------------

MAKERS = {
    "zeros": lambda m, d: m.zeros(3, dtype=d), "ones": lambda m, d: m.ones(2, 2, dtype=d), "full": lambda m, d: m.full((3,), 2, dtype=d), "tensor": lambda m, d: m.tensor([[1, 2], [3, 4]], dtype=d),
    "scalar": lambda m, d: m.tensor(3, dtype=d), "zeros_like": lambda m, d: m.zeros_like(m.ones(3, dtype=d)), "ones_like": lambda m, d: m.ones_like(m.ones(3), dtype=d), "full_like": lambda m, d: m.full_like(m.ones(3, dtype=d), 5),
    "new_zeros": lambda m, d: m.ones(1, dtype=d).new_zeros(2), "new_full": lambda m, d: m.ones(1, dtype=d).new_full((2,), 4), "as_tensor": lambda m, d: m.as_tensor([1, 2], dtype=d), "empty": lambda m, d: m.empty(3, dtype=d).fill_(6),
    "clone": lambda m, d: m.tensor([1, 2, 3], dtype=d).clone(), "lazy clone": lambda m, d: m._lazy_clone(m.tensor([1, 2, 3], dtype=d)), "frombuffer": lambda m, d: m.frombuffer(bytearray(range(16)), dtype=d),
    "contiguous": lambda m, d: m.tensor([[1, 2], [3, 4]], dtype=d).t().contiguous(), "reshape": lambda m, d: m.tensor([[1, 2], [3, 4]], dtype=d).t().reshape(4), "slice": lambda m, d: m.tensor([1, 2, 3, 4], dtype=d)[1::2],
    "integer array": lambda m, d: m.tensor([1, 2, 3], dtype=d)[m.tensor([2, 0])], "mask": lambda m, d: m.tensor([1, 2, 3], dtype=d)[m.tensor([True, False, True])], "index_select": lambda m, d: m.tensor([1, 2, 3], dtype=d).index_select(0, m.tensor([1])),
    "cat": lambda m, d: m.cat([m.ones(2, dtype=d), m.zeros(1, dtype=d)]), "stack": lambda m, d: m.stack([m.ones(2, dtype=d), m.zeros(2, dtype=d)]), "flip": lambda m, d: m.tensor([1, 2, 3], dtype=d).flip(0), "split": lambda m, d: m.tensor([1, 2, 3], dtype=d).split(2)[0],
    "unbind": lambda m, d: m.tensor([1, 2, 3], dtype=d).unbind()[2], "permute": lambda m, d: m.tensor([[1, 2], [3, 4]], dtype=d).permute(1, 0), "detach": lambda m, d: m.tensor([1], dtype=d).detach(),
    "bytes": lambda m, d: m.tensor([1, 2], dtype=d).view(m.uint8).view(d), "large": lambda m, d: m.ones(70000, dtype=d).view(700, 100).t().contiguous(),
}  # fmt: skip


@pytest.mark.parametrize("name", STORAGE_ONLY)
@pytest.mark.parametrize("maker", MAKERS)
def test_making_moving_and_viewing(name, maker):
    ours = MAKERS[maker](trt, of(trt, name))
    try:
        theirs = MAKERS[maker](torch, of(torch, name))
    except NotImplementedError:  # what PyTorch does not move is what it moves in int64
        assert ours.dtype is of(trt, name)
        theirs = MAKERS[maker](torch, torch.int64).to(of(torch, name))
    same_bits(ours, theirs)


WRITERS = {
    "setitem": lambda m, t: t.__setitem__(0, 4), "slice": lambda m, t: t.__setitem__(slice(1, 3), m.ones(2, dtype=t.dtype)), "integers": lambda m, t: t.__setitem__(m.tensor([0, 2]), m.ones(2, dtype=t.dtype)), "copy_": lambda m, t: t.copy_(m.tensor([3.0, 2.0, 1.0, 5.0])),
    "fill_": lambda m, t: t.fill_(7), "zero_": lambda m, t: t.zero_(), "index_put_": lambda m, t: t.index_put_((m.tensor([1]),), m.ones(1, dtype=t.dtype)),
}  # fmt: skip


@pytest.mark.parametrize("name", STORAGE_ONLY)
@pytest.mark.parametrize("writer", WRITERS)
def test_writing(name, writer):
    ours, theirs = (m.tensor([1, 2, 3, 4], dtype=of(m, name)) for m in (trt, torch))
    WRITERS[writer](trt, ours)
    try:
        WRITERS[writer](torch, theirs)
    except NotImplementedError:
        ours, theirs = ours.to(trt.int64), theirs.to(torch.int64)
        WRITERS[writer](torch, theirs)
    same_bits(ours, theirs)


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_numbers_out_printing_and_info(name):
    ours, theirs = (m.tensor([[1, 2], [96, 4]], dtype=of(m, name)) for m in (trt, torch))
    assert ours.tolist() == theirs.tolist() and ours[0, 1].item() == theirs[0, 1].item() and type(ours[0, 1].item()) is type(theirs[0, 1].item())
    assert repr(ours) == repr(theirs) and ours.type() == theirs.type() and str(ours.dtype) == str(theirs.dtype)
    info, expected = (m.iinfo(of(m, name)) if name in UNSIGNED else m.finfo(of(m, name)) for m in (trt, torch))
    fields = ("bits", "min", "max", "dtype") + (() if name in UNSIGNED else ("eps", "tiny", "smallest_normal", "resolution"))
    assert [getattr(info, f) for f in fields] == [getattr(expected, f) for f in fields] and repr(info) == repr(expected)
    if name in FLOAT8:
        odd = torch.arange(256, dtype=torch.uint8).view(of(torch, name))[: 255 if name == "float8_e8m0fnu" else 256]  # whose NaN is finite to PyTorch
        assert repr(ours_from(odd)) == repr(odd)


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_saved_and_loaded(name):
    theirs = torch.tensor([[1, 2], [96, 4]], dtype=of(torch, name))
    ours = trt.tensor([[1, 2], [96, 4]], dtype=of(trt, name))
    file = io.BytesIO()
    trt.save({"x": ours, "row": ours[1]}, file)
    file.seek(0)
    same_bits(trt.load(file)["row"], theirs[1])
    file.seek(0)
    same_bits(ours, torch.load(file)["x"])
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    same_bits(trt.load(file), theirs)
    same_bits(pickle.loads(pickle.dumps(ours)), theirs)
    same_bits(copy.deepcopy(ours), theirs)


@pytest.mark.parametrize("name", UNSIGNED)
def test_numpy_and_dlpack(name):
    array = np.array([1, 2, 60000], dtype=name)
    x = trt.from_numpy(array)
    assert x.dtype is of(trt, name) and x.numpy().dtype == array.dtype and x.tolist() == array.tolist()
    assert trt.from_dlpack(array).tolist() == np.from_dlpack(x).tolist() == array.tolist()
    array[0] = 9
    assert x[0].item() == 9


@pytest.mark.parametrize("name", [*FLOAT8, "complex32"])
def test_numpy_has_no_float8(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="unsupported ScalarType"):
        trt.zeros(2, dtype=of(trt, name)).numpy()
    x = torch.tensor([1.0, 2.0]).to(of(torch, name))
    same_bits(trt.from_dlpack(x), x)
    same_bits(trt.ones(3, dtype=of(trt, name)), torch.from_dlpack(trt.ones(3, dtype=of(trt, name))))


# ---- what computes -------------------------------------------------------------------------------------------------------

COMPUTING = {
    "add": lambda m, t: t + t, "add a number": lambda m, t: t + 1, "mul_": lambda m, t: t.mul_(2), "exp": lambda m, t: t.exp(), "sum": lambda m, t: t.sum(), "max": lambda m, t: t.max(), "matmul": lambda m, t: t @ t, "mm": lambda m, t: m.mm(t, t),
    "softmax": lambda m, t: t.softmax(0), "cumsum": lambda m, t: t.cumsum(0), "sort": lambda m, t: t.sort(), "out": lambda m, t: m.add(m.ones(2, 2), 1, out=t), "sum to it": lambda m, t: m.sum(m.ones(2, 2), 0, dtype=t.dtype), "arange": lambda m, t: m.arange(3, dtype=t.dtype),
    "rand": lambda m, t: m.rand(3, dtype=t.dtype), "uniform_": lambda m, t: t.uniform_(), "linear": lambda m, t: m.nn.functional.linear(t, t), "conv": lambda m, t: m.nn.functional.conv1d(t[None], t[None]), "layer_norm": lambda m, t: m.nn.functional.layer_norm(t, (2,)),
    "scatter_add": lambda m, t: t.scatter_add(0, m.zeros(2, 2, dtype=m.int64), t), "index_add": lambda m, t: t.index_add(0, m.tensor([0]), t[:1]), "accumulate": lambda m, t: t.index_put((m.tensor([0]),), t[0], accumulate=True), "cat of two types": lambda m, t: m.cat([t, m.ones(2, 2)]),
    "einsum": lambda m, t: m.einsum("ij,jk->ik", t, t), "svd": lambda m, t: m.linalg.svd(t), "fft": lambda m, t: m.fft.fft(t), "cross_entropy": lambda m, t: m.nn.functional.cross_entropy(t, m.zeros(2, dtype=m.int64)),
    "adam": lambda m, t: step(m, t), "masked_fill": lambda m, t: t.masked_scatter(m.ones(2, 2, dtype=m.bool), t), "promote_types": lambda m, t: m.promote_types(t.dtype, m.float32),
}  # fmt: skip


def step(m, t):
    p = m.nn.Parameter(t, requires_grad=False)
    p.grad = m.ones_like(t)
    m.optim.Adam([p]).step()
    return p


# What moves elements takes every type here, where PyTorch has kernels for some; of float8 there are products of tensors, none with numbers.
MORE = {"masked_fill", "index_add", "mul_", "einsum", "accumulate"}


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_what_computes_is_pytorchs_or_raises(name):
    for call, function in COMPUTING.items():
        ours, theirs = (m.ones(2, 2, dtype=of(m, name)) for m in (trt, torch))
        try:
            wanted = function(torch, theirs)
        except (RuntimeError, TypeError) as error:
            if call not in MORE:
                with pytest.raises((type(error), NotImplementedError, RuntimeError, TypeError), match="not implemented|not supported|Promotion|only|must|expected|Expected|type|dtype|can't|complex"):
                    function(trt, ours)
            assert ours.to(trt.float32).tolist() == [[1, 1], [1, 1]]
            continue
        found = function(trt, ours)
        for a, b in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else ((found, wanted),):
            if isinstance(b, torch.Tensor) and call not in ("rand", "uniform_", "adam"):
                assert str(a.dtype) == str(b.dtype) and trt.allclose(a.to(trt.complex128), trt.tensor(b.tolist(), dtype=trt.complex128)), call


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_no_default_type(name):
    for m in (trt, torch):
        with pytest.raises(TypeError):
            m.set_default_dtype(of(m, name))


def test_gradients_pass_through_a_cast():
    ours, theirs = (m.tensor([1.0, 2.0, 3.3], requires_grad=True) for m in (trt, torch))
    for m, x in ((trt, ours), (torch, theirs)):
        (x.to(m.float8_e5m2).to(m.float32) * m.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert ours.grad.tolist() == theirs.grad.tolist()


PROMOTED = [row.name for row in dtypes.ALL]


def answer(call):
    try:
        return str(call())
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error)


def test_promotion_of_all_pairs_is_pytorchs():
    """promote_types, result_type by tensors with and without dimensions and by numbers, can_cast: types and errors with their text."""
    shapes = [((), ()), ((), (2,)), ((2,), ()), ((2,), (2,))]
    for a in PROMOTED:
        found, wanted = [], []
        for m, answers in ((trt, found), (torch, wanted)):
            x = of(m, a)
            for b in PROMOTED:
                y = of(m, b)
                answers += [(b, m.can_cast(x, y)), answer(lambda: m.promote_types(x, y))]  # noqa: B023
                answers += [answer(lambda: m.result_type(m.zeros(s, dtype=x), m.zeros(t, dtype=y))) for s, t in shapes]  # noqa: B023
            answers += [(n, answer(lambda: m.result_type(m.zeros(s, dtype=x), n))) for n in (1, 1.5, True, 1j) for s in ((), (2,))]  # noqa: B023
            answers += [answer(x.to_complex), answer(x.to_real), x.is_floating_point, x.is_complex, x.is_signed, x.itemsize]
        assert found == wanted, a


def test_half_complex_numbers():
    for m in (trt, torch):
        half = m.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=m.float16)
        x = m.view_as_complex(half)
        assert str(x.dtype) == "torch.complex32" and x.tolist() == [1 + 2j, 3 - 4j]
        assert m.view_as_real(x).tolist() == half.tolist() and x.real.tolist() == [1, 3] and x.imag.tolist() == [2, -4]
        assert str(half.chalf().dtype) == str(m.complex(half, half).dtype) == str((half * 1j).dtype) == "torch.complex32"
        assert x.abs().tolist()[1] == 5 and str(x.abs().dtype) == "torch.float16" and x.conj().tolist() == [1 - 2j, 3 + 4j]
        assert ((x + x) * x - x).tolist() == [-7 + 6j, -17 - 44j]
        x = x.clone().requires_grad_()
        (x * x * m.tensor(0.5, dtype=m.float16)).backward(m.ones(2, dtype=m.complex32))
        assert x.grad.tolist() == [1 - 2j, 3 + 4j]


def test_unsigned_integers_beyond_int64():
    values = [0, 1, 2**63, 2**64 - 1, 5, 2**63 - 1]
    ours, theirs = (m.tensor(values, dtype=m.uint64) for m in (trt, torch))
    assert ours.tolist() == theirs.tolist() == values
    for call in (lambda x: x.sort()[0], lambda x: x.sort(descending=True)[1], lambda x: x.unique(), lambda x: x * x, lambda x: x * 3, lambda x: x & x.flip(0) if len(x) == 0 else x & 7,
                 lambda x: x == x[2], lambda x: x.double(), lambda x: x.sum(), lambda x: x.prod(), lambda x: x.sqrt()):
        a, b = call(ours), call(theirs)
        assert str(a.dtype) == str(b.dtype) and a.tolist() == b.tolist()


def test_ml_dtypes_arrays():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in (*FLOAT8, "bfloat16"):
        x = trt.tensor([1.0, 2.0, 4.0]).to(of(trt, name))
        array = x.numpy()
        assert array.dtype == getattr(ml_dtypes, name) and array.astype(np.float32).tolist() == [1, 2, 4]
        array[0] = 8
        back = trt.from_numpy(array)
        assert back.dtype is x.dtype and back.float().tolist() == x.float().tolist() == [8, 2, 4]


def test_whole_numbers_are_drawn_from_pytorchs_stream():
    for name in ("uint16", "uint32", "uint64"):
        drawn = []
        for lib in (trt, torch):
            lib.manual_seed(5)
            dtype = getattr(lib, name)
            x = lib.zeros(4, dtype=dtype)
            drawn.append([lib.randint(3, 60000, (9,), dtype=dtype).tolist(), lib.randint_like(x, 9).tolist(), x.random_(7).tolist()])
        assert drawn[0] == drawn[1]
    with pytest.raises(RuntimeError, match="out of bounds"):
        trt.randint(0, 2**17, (3,), dtype=trt.uint16)


@pytest.mark.parametrize("draw", ["bernoulli", "normal", "normal_sizes", "multinomial"])
def test_random_functions_refuse_types_that_are_only_stored(draw):
    """Under the guard allocator the first three wrote through a table that ends before the type, and the last read float32."""
    p = trt.rand(3, 4).to(trt.float8_e4m3fn)
    out = trt.empty(3, 4, dtype=trt.float8_e4m3fn)
    calls = {"bernoulli": lambda: trt.bernoulli(p, out=out), "normal": lambda: trt.normal(p, 1.0, out=out), "normal_sizes": lambda: trt.normal(0.0, 1.0, (3, 4), out=out), "multinomial": lambda: p.multinomial(2)}
    with pytest.raises(NotImplementedError, match="not implemented for"):
        calls[draw]()


@pytest.mark.parametrize("name", [row.name for row in dtypes.ALL])
def test_refused_outputs_are_named_as_pytorch_names_them(name):
    """The C++ name of every type is known (a table that ended before the newest types made this a crash)."""
    for call in (lambda m, out: m.t_copy(m.ones(3, dtype=m.complex64), out=out), lambda m, out: m.linalg.cross(m.ones(3, 3, dtype=m.complex64), m.ones(3, 3, dtype=m.complex64), out=out)):
        found, wanted = (answer(lambda m=m: call(m, m.zeros(3, 3, dtype=of(m, name)))) for m in (trt, torch))
        if isinstance(wanted, tuple):
            assert found[0] == wanted[0] and wanted[1].removesuffix(" instead") in found[1]


WRITES = {
    "masked_fill by a tensor": lambda m, x, i, k: x.masked_fill(k, m.tensor(2)), "masked_fill by another type": lambda m, x, i, k: x.masked_fill(k, m.tensor(2, dtype=m.int16)),
    "masked_fill": lambda m, x, i, k: x.masked_fill(k, 2), "masked_fill_": lambda m, x, i, k: x.clone().masked_fill_(k, 2), "scatter": lambda m, x, i, k: x.scatter(0, i, x[:1]),
    "scatter of a number": lambda m, x, i, k: x.scatter(0, i, 2), "gather": lambda m, x, i, k: x.gather(0, i), "take": lambda m, x, i, k: x.take(i), "put": lambda m, x, i, k: x.put(i[0], x[1]),
    "masked_scatter": lambda m, x, i, k: x.masked_scatter(k, x), "masked_select": lambda m, x, i, k: x.masked_select(k), "index_copy": lambda m, x, i, k: x.index_copy(0, i[0], x), "index_fill": lambda m, x, i, k: x.index_fill(0, i[0, :1], 3),
    "pad": lambda m, x, i, k: m.nn.functional.pad(x, (1, 0), value=2), "tril": lambda m, x, i, k: x.tril(), "roll": lambda m, x, i, k: x.roll(1, 0), "where": lambda m, x, i, k: m.where(k, x, 2), "embedding": lambda m, x, i, k: m.nn.functional.embedding(i, x),
    "mask": lambda m, x, i, k: assigned(x, k, 2), "element": lambda m, x, i, k: assigned(x, (0, 1), 2), "rows": lambda m, x, i, k: assigned(x, i[0], 2), "fill_diagonal_": lambda m, x, i, k: x.clone().fill_diagonal_(2),
}  # fmt: skip


def assigned(x, index, value):
    x = x.clone()
    x[index] = value
    return x


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_index_writes_are_those_of_float32(name):
    """Values are what would be written to float32, whatever carries the bits."""
    x, i, k = trt.tensor([[1, 2], [4, 8]]), trt.tensor([[0, 1]]), trt.tensor([[True, False], [False, True]])
    for call, function in WRITES.items():
        found = function(trt, x.to(of(trt, name)), i, k)
        assert found.dtype is of(trt, name) and found.to(trt.float32).tolist() == function(trt, x.float(), i, k).to(of(trt, name)).to(trt.float32).tolist(), call
    stored = x.to(of(trt, name))
    for refused in (lambda: stored.scatter(0, i, stored, reduce="add"), lambda: stored.put(i[0], stored[0], accumulate=True), lambda: stored.scatter(0, i, x[:1].to(trt.int16))):
        with pytest.raises((NotImplementedError, RuntimeError)):
            refused()


def test_operands_of_two_types_are_refused():
    x = trt.ones(1, 1, 4, dtype=trt.complex32)
    for call in (lambda: trt.nn.functional.conv1d(x, trt.ones(1, 1, 2, dtype=trt.complex64)), lambda: trt.mm(x[0].real.to(trt.float8_e5m2), trt.ones(4, 1)), lambda: x.index_add(0, trt.tensor([0]), trt.ones(1, 1, 4, dtype=trt.complex64))):
        with pytest.raises(RuntimeError):
            call()


BITS_OF_ANOTHER = {
    "tril": lambda m, x, u: m.tril(x, out=u),
    "take": lambda m, x, u: m.take(x, m.tensor([0, 3]), out=u),
    "gather": lambda m, x, u: m.gather(x, 0, m.zeros(1, 2, dtype=m.int64), out=u),
    "index_select": lambda m, x, u: m.index_select(x, 0, m.tensor([0, 1]), out=u),
    "scatter": lambda m, x, u: x.scatter(0, m.zeros(2, 2, dtype=m.int64), u),
    "masked_scatter": lambda m, x, u: x.masked_scatter(m.ones(2, 2, dtype=m.bool), u),
    "put": lambda m, x, u: x.put(m.tensor([0, 1, 2, 3]), u),
    "index_copy": lambda m, x, u: x.index_copy(0, m.tensor([0, 1]), u),
}


@pytest.mark.parametrize("name", BITS_OF_ANOTHER)
@pytest.mark.parametrize("stored", ["uint16", "uint64", "float8_e4m3fn", "complex32"])
def test_bits_of_one_type_do_not_become_another(name, stored):
    """Where only a later argument or `out` had the stored type, its width was taken for that of what was computed: memory behind it was read."""
    for dtype in (trt.bool, trt.int8, trt.float32):
        x, u = trt.ones(2, 2).to(dtype), trt.ones(2, 2).to(getattr(trt, stored))
        with pytest.raises((RuntimeError, TypeError), match="dtype|type"):
            BITS_OF_ANOTHER[name](trt, x, u)


def test_one_value_of_another_type_is_converted():
    x, mask = trt.ones(2, dtype=trt.uint16), trt.tensor([True, False])
    assert trt.where(mask, x, trt.tensor(7)).tolist() == [1, 7] and trt.where(mask, x, trt.tensor(7)).dtype is trt.uint16
    assert x.masked_fill(mask, trt.tensor(7)).tolist() == [7, 1]
    assert trt.where(mask, x, trt.tensor(0.5)).tolist() == [1, 0.5]
    with pytest.raises(RuntimeError):
        trt.ones(2, dtype=trt.int8).masked_fill(mask, trt.tensor(7, dtype=trt.uint64))


@pytest.mark.parametrize("value", [1e6, -1e6, 70000, 1 + 1e6j, complex(-1e6, 3e38), float("inf")])
def test_what_complex32_cannot_hold_is_infinite(value):
    for fill in (lambda m: m.full((2,), value, dtype=m.complex32), lambda m: m.zeros(2, dtype=m.complex32).fill_(value)):
        assert fill(trt).tolist() == fill(torch).tolist()


@pytest.mark.parametrize("value", [1e39, complex(1, 1e300)])
def test_what_complex64_cannot_hold_complex32_refuses(value):
    for m in (trt, torch):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            m.full((2,), value, dtype=m.complex32)
