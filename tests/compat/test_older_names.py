"""Names that few programs use: storages by dtype, methods over Python functions, symbolic numbers in their eager meaning, what PyTorch removed."""

from __future__ import annotations

import warnings

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")

STORAGES = ["FloatStorage", "DoubleStorage", "HalfStorage", "BFloat16Storage", "LongStorage", "IntStorage", "ShortStorage", "CharStorage", "ByteStorage", "BoolStorage",
            "ComplexFloatStorage", "ComplexDoubleStorage"]  # fmt: skip


def outcome(m, call):
    """What a call gives as plain values, or its exception's type and text."""
    try:
        value = call(m)
    except Exception as error:
        return type(error).__name__, str(error)
    return plain(value)


def plain(value):
    if hasattr(value, "tolist"):
        return value.tolist(), str(value.dtype), tuple(getattr(value, "shape", ()))
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


@pytest.mark.parametrize("name", STORAGES)
def test_storage_classes(name):
    def story(m):
        kind = getattr(m, name)
        made = kind([1, 0, 1])
        same = kind(wrap_storage=made.untyped())
        made[1] = 1
        return (
            made.tolist(),
            same.tolist(),
            isinstance(made, kind),
            isinstance(made, m.ShortStorage),
            str(kind.dtype),
            repr(kind),
            made.type(),
            len(kind(4)),
            len(kind()),
        )

    assert outcome(trt, story) == outcome(torch, story)
    for refused in (lambda m: getattr(m, name)(2, 3), lambda m: getattr(m, name)(device="cpu"), lambda m: getattr(m, name)(dtype=m.int32)):
        assert outcome(trt, refused) == outcome(torch, refused)


CALLS = {
    "apply_": lambda m: m.arange(6.0).reshape(2, 3).t().apply_(lambda v: v * v + 1),
    "apply_ of int": lambda m: m.arange(4).apply_(lambda v: -v),
    "apply_ of bool": lambda m: m.tensor([True, False]).apply_(lambda v: not v),
    "apply_ of a str": lambda m: m.ones(2).apply_(lambda v: "x"),
    "apply_ of no callable": lambda m: m.ones(2).apply_(3),
    "apply_ with gradient": lambda m: m.ones(2, requires_grad=True).apply_(abs),
    "map_": lambda m: m.ones(2, 3).map_(m.arange(3.0), lambda a, b: a + 2 * b),
    "map_ of another dtype": lambda m: m.ones(3).map_(m.ones(3, dtype=m.float64), max),
    "map_ of another shape": lambda m: m.ones(3).map_(m.ones(2), max),
    "map2_": lambda m: m.ones(3).map2_(m.arange(3.0), m.ones(3), lambda a, b, c: a + b * 2 + c),
    "as_strided_": lambda m: m.as_strided_(m.arange(6.0), (2, 2), (3, 1), 1),
    "dequantize": lambda m: m.dequantize(m.ones(2, dtype=m.float16)),
    "slice_inverse": lambda m: m.slice_inverse(m.arange(6)[1:3], m.zeros(6, dtype=m.int64)),
    "is_distributed": lambda m: (m.is_distributed(m.ones(1)), m.ones(1).is_distributed()),
    "module_load": lambda m: (m.zeros(2).module_load(m.ones(2)), m.zeros(2).module_load(m.ones(3), assign=True)),
    "resize": lambda m: m.arange(6).resize(2, 3),
    "resize_as": lambda m: m.arange(6).resize_as(m.ones(3, 2)),
    "storage_type": lambda m: repr([m.empty(1, dtype=t).storage_type() for t in (m.int16, m.float8_e4m3fn, m.uint64)]),
    "const_data_ptr": lambda m: (lambda x: x.const_data_ptr() == x.data_ptr())(m.ones(3)),
    "flags": lambda m: [getattr(m.ones(1), f"is_{k}") for k in ("ipu", "maia", "mtia", "vulkan", "xla", "sparse_csr")],
    "name": lambda m: (m.ones(1).name, m.ones(1).volatile),
    "ipu": lambda m: m.ones(1).ipu(),
    "xpu": lambda m: m.ones(1).xpu(),
    "sym": lambda m: (m.sym_int(2.5), m.sym_float(2), m.sym_ite(True, 1, 2), m.sym_max(1, 2.0), m.sym_min(1, 2.0), m.sym_not(True), m.sym_sqrt(4), m.sym_sum([1, 2]), m.sym_sum(1, 2)),
    "sym_ite of two types": lambda m: m.sym_ite(True, 1, 2.0),
    "sym_sqrt of -1": lambda m: m.sym_sqrt(-1),
    "sym_constrain_range": lambda m: m.sym_constrain_range(3, min=1, max=4),
    "sym_constrain_range refuses": lambda m: m.sym_constrain_range(3, min=5, max=8),
    "sym_constrain_range_for_size": lambda m: m.sym_constrain_range_for_size(3, min=2, max=8),
    "classes of symbols": lambda m: [isinstance(3, c) for c in (m.SymInt, m.SymFloat, m.SymBool)],
    "cond": lambda m: [m.cond(p, lambda a: a + 1, lambda a: a - 1, (m.ones(2),)) for p in (True, m.tensor(False))],
    "tags": lambda m: [(k, int(v)) for k, v in m.Tag.__members__.items()],
    "anomaly": lambda m: (m.is_anomaly_enabled(), m.set_anomaly_enabled(True, False), m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled(), m.set_anomaly_enabled(False)),
    "warn always": lambda m: (m.is_warn_always_enabled(), m.set_warn_always(True), m.is_warn_always_enabled(), m.set_warn_always(False)),
    "facts": lambda m: (m.has_lapack, m.has_openmp, m.has_spectral, m.compiled_with_cxx11_abi(), m.is_vulkan_available(), m.legacy_contiguous_format == m.contiguous_format),
    "affine_grid_generator": lambda m: m.affine_grid_generator(m.eye(2, 3)[None], (1, 1, 2, 2), True),
    "exceptions": lambda m: [issubclass(e, RuntimeError) for e in (m.AcceleratorError, m.OutOfMemoryError, m.FatalError, m.JITException)],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree(name):
    ours, theirs = outcome(trt, CALLS[name]), outcome(torch, CALLS[name])
    assert ours == theirs


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_removed_functions_raise_pytorchs_message(name):
    arguments = 2 if name in ("lstsq", "solve") else 1

    def words(m, owner):
        with pytest.raises(RuntimeError) as raised:
            getattr(owner, name)(*[m.eye(2)] * arguments)
        return str(raised.value).split()

    for ours, theirs in ((trt, torch), (trt.Tensor, torch.Tensor)):
        if hasattr(theirs, name) and (name != "matrix_rank" or theirs is torch):
            mine, other = words(trt, ours), words(torch, theirs)
            assert mine == other


def test_apply_writes_nothing_where_a_call_fails():
    x = trt.arange(3.0)
    with pytest.raises(ZeroDivisionError):
        x.apply_(lambda v: 1 / (1 - v))
    assert x.tolist() == [0, 1, 2]


def test_while_loop():
    carried = trt.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (trt.tensor(0), trt.ones(2)))
    assert [v.tolist() for v in carried] == [5, [32, 32]]
    with pytest.raises(RuntimeError, match="2 values"):
        trt.while_loop(lambda i, x: True, lambda i, x: i, (trt.tensor(0), trt.ones(2)))


def test_from_file(tmp_path):
    for m in (trt, torch):
        path = str(tmp_path / m.__name__)
        x = m.from_file(path, shared=True, size=3, dtype=m.int32)
        x.copy_(m.tensor([1, 2, 3]))
        assert m.from_file(path, size=2, dtype=m.int32).tolist() == [1, 2]
        with pytest.raises(RuntimeError, match="unable to open file"):
            m.from_file(str(tmp_path / "absent"), size=1)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims):
    def story(m):
        m.manual_seed(0)
        x, w = m.randn(2, 4, *[6] * dims), m.randn(6, 2, *[3] * dims)
        y = getattr(m.nn.functional, f"conv{dims}d")(x, w, None, 2, 1, 1, 2)
        grad = m.randn(y.shape)
        options = (2, 1, 1, 2)
        return getattr(m.nn.grad, f"conv{dims}d_input")(x.shape, w, grad, *options), getattr(m.nn.grad, f"conv{dims}d_weight")(
            x, w.shape, grad, *options
        )

    for ours, theirs in zip(story(trt), story(torch), strict=True):
        torch.testing.assert_close(torch.tensor(ours.tolist()), theirs, rtol=1e-5, atol=1e-5)
    w = trt.randn(1, 1, *[2] * dims, dtype=trt.float64, requires_grad=True)
    g = trt.randn(1, 1, *[2] * dims, dtype=trt.float64, requires_grad=True)
    assert trt.autograd.gradcheck(lambda w, g: getattr(trt.nn.grad, f"conv{dims}d_input")((1, 1, *[3] * dims), w, g), (w, g))


def test_thread_safe_generator():
    assert trt.thread_safe_generator() is None is torch.thread_safe_generator()

    class Numbers(trt.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            generator = trt.thread_safe_generator()
            assert isinstance(generator, trt.Generator)
            return trt.rand(1, generator=generator)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = trt.utils.data.DataLoader(Numbers(), num_workers=2, worker_threads=True)
        assert len({round(x.item(), 6) for x in loader}) == 4


@pytest.mark.parametrize(
    "call",
    [
        lambda m, v, e: m.add(v, 2, v),
        lambda m, v, e: v.clone().add_(0.5, v),
        lambda m, v, e: v.clone().sub_(3, v),
        lambda m, v, e: m.addcmul(v, 0.5, v, v),
        lambda m, v, e: v.clone().addcmul_(0.5, v, v),
        lambda m, v, e: v.clone().addcdiv_(-2, v, v + 1),
        lambda m, v, e: m.addmm(2, e, e, e),
        lambda m, v, e: m.addmm(2, e, 3, e, e),
        lambda m, v, e: e.clone().addmm_(2, e, e),
        lambda m, v, e: e.clone().addmm_(2, 3, e, e),
        lambda m, v, e: v.addmv(2, e, v),
        lambda m, v, e: v.addmv(2, 3, e, v),
        lambda m, v, e: e[None].baddbmm(2, 3, e[None], e[None]),
    ],
)
def test_deprecated_signatures_with_numbers_first(call):
    assert outcome(trt, lambda m: call(m, m.arange(1.0, 4), m.eye(3))) == outcome(torch, lambda m: call(m, m.arange(1.0, 4), m.eye(3)))


@pytest.mark.parametrize("call", [lambda v: v.add(v, v, 2), lambda v: v.add("2", v), lambda v: v.addcmul(1, 2, v, v), lambda v: v.mul(2, v)])
def test_other_calls_with_too_many_arguments_are_errors(call):
    for m in (trt, torch):
        with pytest.raises(TypeError):
            call(m.ones(2))


def test_new_of_a_sparse_tensor():
    def results(m):
        t = m.eye(2).to_sparse()
        made = [t.new(), t.new(2, 3), t.new(m.tensor([[0], [1]]), m.tensor([5.0])), t.new(t._indices(), t._values(), t.size())]
        return [(str(s.layout), str(s.dtype), tuple(s.shape), s._nnz(), s.to_dense().tolist()) for s in made]

    assert results(trt) == results(torch)
