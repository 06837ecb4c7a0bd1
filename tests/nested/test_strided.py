"""Nested tensors of the strided layout: construction, geometry, operators and gradients beside PyTorch's, files both ways, padding left out of encoders."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tensorrt_lite as trt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

SIZES = ((2, 3), (4, 3), (1, 3))
UNEVEN = ((2, 3), (4, 1), (1, 5))


def made(library, sizes=SIZES, requires_grad=True, seed=0, dtype="float64"):
    random = np.random.default_rng(seed)
    tensors = [library.tensor(random.standard_normal(size)).to(getattr(library, dtype)) for size in sizes]
    return library.nested.nested_tensor(tensors, requires_grad=requires_grad)


def plain(tensor):
    """Its numbers, to nine places."""
    return np.round(np.asarray(tensor.detach().tolist(), dtype=float), 9).tolist()


def described(value):
    """A result in plain numbers: of nested tensors the geometry, too."""
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    if isinstance(value, (torch.Tensor, trt.Tensor)):
        if value.is_nested:
            return {"sizes": value._nested_tensor_size().tolist(), "parts": [plain(part) for part in value.unbind()]}
        return plain(value)
    return value


OPERATORS = {
    "geometry": lambda m, x: (x.dim(), x.size(0), x.size(-1), x.numel(), x.is_contiguous(), x.is_nested, str(x.layout).rpartition(".")[2], x.transpose(1, 2).is_contiguous()),
    "strides": lambda m, x: (x.transpose(1, 2)._nested_tensor_strides(), x._nested_tensor_strides(), x._nested_tensor_storage_offsets()),
    "select": lambda m, x: (x[0], x[-1], x[0, 1]),
    "views": lambda m, x: (x.transpose(1, 2), x.transpose(-1, -2).contiguous(), x.view(3, -1, 3, 1), x.reshape(3, -1, 1, 3), x.unsqueeze(-1), x.unsqueeze(1).squeeze(1), x.unbind(), x.narrow(0, 1, 2)),
    "transposed and reshaped": lambda m, x: x.view(3, -1, 3, 1).transpose(1, 2).reshape(3, 3, -1),
    "chunk": lambda m, x: x.chunk(3, -1),
    "sum": lambda m, x: x.sum(-1, keepdim=True),
    "softmax": lambda m, x: (x.softmax(-1), x.softmax(1), m.softmax(x, 2)),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (3,), m.arange(3.0, dtype=m.float64), m.ones(3, dtype=m.float64)),
    "linear": lambda m, x: m.nn.functional.linear(x, m.arange(12.0, dtype=m.float64).reshape(4, 3), m.ones(4, dtype=m.float64)),
    "matmul": lambda m, x: (m.matmul(x, x.transpose(1, 2)), m.bmm(x.transpose(1, 2), x)),
    "padded": lambda m, x: (x.to_padded_tensor(0.0), x.to_padded_tensor(-1.0, (3, 6, 4)), m.nested.to_padded_tensor(x, 2.0)),
    "values": lambda m, x: x.values(),
    "clone": lambda m, x: (x.clone(), x.detach(), x.transpose(1, 2).clone()),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_pytorchs(name):
    call = OPERATORS[name]
    assert described(call(trt, made(trt))) == described(call(torch, made(torch)))


ANY_SIZES = ["softmax", "padded", "values", "matmul"]


@pytest.mark.parametrize("name", ANY_SIZES)
def test_parts_may_differ_in_all_sizes(name):
    call = OPERATORS[name] if name != "padded" else lambda m, x: (x.to_padded_tensor(0.0), x.to_padded_tensor(-1.0, (3, 6, 7)))
    assert described(call(trt, made(trt, UNEVEN))) == described(call(torch, made(torch, UNEVEN)))


# The same of a nested tensor as of each of its parts.
BY_PARTS = {
    "arithmetic": lambda m, x: (x + x, x - x * x, x * 2 + 1, 1 - x, x / (x * x + 1), -x, x**2, x * m.tensor(2.0, dtype=m.float64)),
    "comparisons": lambda m, x: (x == 1, x == x, x > 0, x >= 0, x.isnan(), x.isinf(), x.logical_not()),
    "functions": lambda m, x: (x.relu(), x.tanh(), x.sin(), x.cos(), x.exp(), (x * x + 1).sqrt(), x.abs(), x.sgn(), x.clamp(0, 1), m.nn.functional.gelu(x), m.nn.functional.silu(x)),
    "conversions": lambda m, x: (x.to(m.float32), x.half(), x.bool(), m.ones_like(x), m.zeros_like(x), m.full_like(x, 3.0)),
    "selection": lambda m, x: (x.masked_fill(x > 0, 7.0), m.where(x > 0, x, -x), m.where(x > 0, x, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("sizes", [SIZES, UNEVEN], ids=["ragged", "uneven"])
@pytest.mark.parametrize("name", BY_PARTS)
def test_element_by_element(name, sizes):
    ours, dense = made(trt, sizes), [part.detach().requires_grad_() for part in made(torch, sizes).unbind()]
    results, expected = BY_PARTS[name](trt, ours), [BY_PARTS[name](torch, part) for part in dense]
    for i, result in enumerate(results):
        assert described(result)["parts"] == described([of_part[i] for of_part in expected])
        assert str(result.dtype).rpartition(".")[2] == str(expected[0][i].dtype).rpartition(".")[2]
    if results[0].requires_grad:
        weighted_sum([r for r in results if r.requires_grad]).backward()
        sum(weighted_sum([r for r in of_part if r.requires_grad]) for of_part in expected).backward()
        assert described(ours.grad)["parts"] == described([part.grad for part in dense])


def test_attention_is_that_of_each_part():
    ours = made(trt)
    dense = [part.detach().requires_grad_() for part in made(torch).unbind()]
    heads = [t.reshape(3, -1, 1, 3).transpose(1, 2) for t in (ours, ours * 2, ours * 3)]
    attended = trt.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    expected = [torch.nn.functional.scaled_dot_product_attention(*(t.view(1, 1, -1, 3) for t in (p, p * 2, p * 3)), is_causal=True)[0] for p in dense]
    assert described(attended)["parts"] == described(expected)
    weighted_sum(attended).backward()
    weighted_sum(expected).backward()
    assert described(ours.grad)["parts"] == described([part.grad for part in dense])


DIFFERENTIABLE = ["sum", "softmax", "layer_norm", "linear", "matmul", "padded", "values", "select"]


def weighted_sum(value):
    if isinstance(value, (tuple, list)):
        return sum(weighted_sum(v) for v in value)
    return sum(weighted_sum(part) for part in value.unbind()) if value.is_nested else (value * value + value).sum()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_pytorchs(name):
    call = OPERATORS[name]
    theirs, ours = made(torch), made(trt)
    weighted_sum(call(torch, theirs)).backward()
    weighted_sum(call(trt, ours)).backward()
    assert described(ours.grad) == described(theirs.grad)


def test_gradients_reach_the_tensors_of_a_list():
    results = []
    for m in (torch, trt):
        parts = [m.ones(n, 2, dtype=m.float64, requires_grad=True) for n in (1, 3)]
        m.nested.as_nested_tensor(parts).transpose(1, 2).contiguous().to_padded_tensor(0.0).pow(3).sum().backward()
        results.append([p.grad.tolist() for p in parts])
    assert results[0] == results[1]


def test_writes_in_place_reach_the_buffer_and_views():
    results = []
    for m in (torch, trt):
        x = made(m, requires_grad=False)
        first = x[0]
        x.mul_(2).add_(x)
        seen = [first.tolist()]
        x.copy_(made(m, requires_grad=False, seed=3)).relu_()
        seen.append(described(x))
        first.zero_()
        seen.append(described(x))
        x.zero_()
        results.append([*seen, described(x)])
    assert results[0] == results[1]
    x.transpose(1, 2).fill_(5.0)
    assert x[1].tolist() == [[5.0] * 3] * 4, "also through views, which PyTorch refuses"


def test_printing():
    for requires_grad in (False, True):
        assert repr(made(trt, requires_grad=requires_grad, dtype="float32")) == repr(made(torch, requires_grad=requires_grad, dtype="float32"))
    assert repr(made(trt) * 2) == repr(made(torch) * 2)


def test_construction():
    for m in (torch, trt):
        assert described(m.nested.nested_tensor([[1.0, 2.0], [3.0]])) == {"sizes": [[2], [1]], "parts": [[1.0, 2.0], [3.0]]}
        assert m.nested.nested_tensor([[1, 2], [3]], dtype=m.float64).dtype == m.float64
        assert m.nested.nested_tensor([]).size(0) == 0
        assert described(m.nested.nested_tensor([m.tensor(1.0), m.tensor(2.0)]))["parts"] == [1.0, 2.0]
        assert described(m.nested.as_nested_tensor(m.ones(2, 3)))["sizes"] == [[3], [3]]
        with pytest.raises(RuntimeError, match="All Tensors given to nested_tensor must have the same dimension"):
            m.nested.nested_tensor([m.ones(2), m.ones(2, 3)])
        with pytest.raises(TypeError, match="Only lists"):
            m.nested.nested_tensor(m.ones(2, 3))
        assert described(m.nested.narrow(m.arange(12.0).reshape(4, 3), 0, 1, 2, layout=m.strided))["parts"] == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]


REFUSALS = [
    ("size", lambda m, x: x.size(1), RuntimeError), ("shape", lambda m, x: x.shape, RuntimeError), ("stride", lambda m, x: x.stride(), RuntimeError),
    ("batch transposed", lambda m, x: x.transpose(0, 1), RuntimeError), ("other sizes", lambda m, x: x + made(m, SIZES[::-1]), RuntimeError),
    ("index", lambda m, x: x[7], IndexError), ("unbind", lambda m, x: x.unbind(1), RuntimeError), ("softmax", lambda m, x: x.softmax(0), RuntimeError),
    ("view", lambda m, x: x.view(3, 5, 5), RuntimeError), ("view of a transposed one", lambda m, x: x.transpose(1, 2).view(3, -1), RuntimeError),
    ("truncation", lambda m, x: x.to_padded_tensor(0.0, (3, 1, 3)), RuntimeError), ("linear", lambda m, x: m.nn.functional.linear(x, m.ones(4, 5, dtype=m.float64)), RuntimeError),
    ("unsqueezed batch", lambda m, x: x.unsqueeze(0), RuntimeError), ("squeeze", lambda m, x: x.squeeze(), RuntimeError),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "error"), REFUSALS, ids=[name for name, *_ in REFUSALS])
def test_refusals_are_pytorchs(name, call, error):
    for m in (torch, trt):
        with pytest.raises(error):
            call(m, made(m))


def test_layouts_do_not_mix():
    x = made(trt)
    with pytest.raises(RuntimeError, match="strided and the jagged"):
        x + trt.nested.as_nested_tensor(list(x.unbind()), layout=trt.jagged)
    with pytest.raises(RuntimeError, match="Converting"):
        trt.nested.as_nested_tensor(x, layout=trt.jagged)
    with pytest.raises(NotImplementedError, match="differ in other sizes"):
        trt.cumsum(made(trt, UNEVEN), 1)


def test_operators_that_pytorch_lacks_go_through_the_jagged_layout():
    x = made(trt)
    for call in (lambda t: t.cumsum(0), lambda t: t.flip(0), lambda t: t.exp(), lambda t: trt.nn.functional.rms_norm(t, (3,))):
        shifted = {"cumsum": lambda: x.cumsum(1), "flip": lambda: x.flip(1)}
        name = next((n for n in shifted if n in call.__code__.co_names), None)
        whole = shifted[name]() if name else call(x)
        assert described(whole)["parts"] == [plain(call(part)) for part in x.unbind()]
    assert x.mean(1).shape == (3, 3) and x.sum().dim() == 0


def test_parts_are_indexed_behind_the_batch():
    # PyTorch's select along them reads memory that was never written
    x = made(trt)
    for chosen, index in ((x.select(-1, 1), (..., 1)), (x[..., 0], (..., 0)), (x[:, 0], (0,)), (x[:, :, 1:], (..., slice(1, None))), (x[1:], ())):
        parts = [part[index] if index else part for part in x.unbind()][-chosen.size(0) :]
        assert described(chosen)["parts"] == described(parts)


def test_copies_and_files_both_ways():
    for source in (trt, torch):
        x = made(source, requires_grad=False)
        for value in (x, x.transpose(1, 2)):
            file = io.BytesIO()
            source.save({"a": value, "b": value}, file)
            for target in (trt, torch):
                file.seek(0)
                read = target.load(file)
                assert described(read["a"]) == described(value) and read["a"] is read["b"]
    leaf = made(trt)
    for copied in (copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
        assert described(copied) == described(leaf) and copied.requires_grad and copied.is_leaf


def corrupt(**changes):
    """The bytes of a file whose nested tensor is made of other tensors."""
    good = {"buffer": trt.arange(6.0), "sizes": trt.tensor([[2], [4]]), "strides": trt.tensor([[1], [1]]), "offsets": trt.tensor([0, 2])}
    parts = tuple((good | changes).values())

    class Nested:
        def __reduce__(self):
            return torch._utils._rebuild_nested_tensor, parts

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save([Nested()], file) if all(isinstance(p, torch.Tensor) for p in parts) else trt.save([Nested()], file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": trt.tensor([0, 3])}, {"sizes": trt.tensor([[2], [1 << 60]])}, {"sizes": trt.tensor([[2], [-4]])}, {"strides": trt.tensor([[1], [1 << 62]])},
        {"offsets": trt.tensor([0])}, {"buffer": trt.ones(2, 3)}, {"sizes": trt.ones(2, 1)}, {"buffer": 3}, {"sizes": trt.tensor([1]).expand(100_000_000, 1), "strides": trt.tensor([1]).expand(100_000_000, 1), "offsets": trt.tensor([0]).expand(100_000_000)},
    ],
    ids=["beyond the buffer", "overflow", "negative", "strides overflow", "counts", "rank", "dtype", "no tensor", "many"],
)  # fmt: skip
def test_corrupt_files_are_refused(changes):
    with pytest.raises(pickle.UnpicklingError):
        trt.load(corrupt(**changes))


# ---- padding that encoders leave out ---------------------------------------------------------------------------------


def encoded(library, mask, training=False, gradients=False, **options):
    library.manual_seed(0)
    layer = library.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **{"batch_first": True, **options})
    encoder = library.nn.TransformerEncoder(layer, 2, norm=library.nn.LayerNorm(8)).train(training)
    x = library.arange(2 * 5 * 8.0).reshape(2, 5, 8) / 40
    with library.set_grad_enabled(gradients):
        return encoder(x, src_key_padding_mask=library.tensor(mask)).detach().tolist()


PADDING = {"behind": [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], "between": [[0, 0, 0, 1, 1], [0, 1, 0, 0, 1]], "none": [[0] * 5] * 2, "all": [[0, 0, 1, 1, 1], [1] * 5]}


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"norm_first": True}, {"bias": False}, {"training": True}, {"gradients": True}], ids=str)
def test_encoders_leave_padding_out_where_pytorchs_do(padding, options):
    mask = np.array(PADDING[padding], bool).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.array(encoded(torch, mask, **options))
    made = np.array(encoded(trt, mask, **options))
    known = ~np.isnan(expected)  # some of PyTorch's paths give NaN for a sequence of padding alone
    assert np.isfinite(made).all() and known[0].all()
    np.testing.assert_allclose(made[known], expected[known], rtol=0, atol=3e-6)


def test_padding_stays_where_the_fast_path_is_off():
    mask = np.array(PADDING["behind"], bool).tolist()
    results = []
    for m in (torch, trt):
        m.backends.mha.set_fastpath_enabled(False)
        try:
            results.append(encoded(m, mask))
        finally:
            m.backends.mha.set_fastpath_enabled(True)
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=3e-6)
    assert np.any(np.array(results[1])[0, 3:] != np.array(encoded(trt, mask))[0, 3:])
