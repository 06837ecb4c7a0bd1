"""FloatTensor, LongTensor and the others: names of a dtype on a device, for isinstance, annotations, conversion and construction."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

NAMES = ["FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor"]


@pytest.mark.parametrize("name", NAMES)
def test_is_a_class_of_one_dtype(name):
    ours, theirs = getattr(trt, name), getattr(torch, name)
    assert isinstance(ours, type) and (ours.__name__, str(ours.dtype), ours.is_cuda) == (theirs.__name__, str(theirs.dtype), False)
    assert repr(ours) == repr(theirs)
    for other in NAMES:
        x = trt.zeros(1, dtype=getattr(trt, other).dtype)
        assert isinstance(x, ours) == (other == name)
    assert not isinstance(3, ours) and not issubclass(ours, trt.Tensor)
    assert getattr(trt.cuda, name) is not ours and not isinstance(trt.zeros(1, dtype=ours.dtype), getattr(trt.cuda, name))


def test_parameters_and_annotations():
    assert isinstance(trt.nn.Parameter(trt.ones(1)), trt.FloatTensor)

    def forward(ids: trt.LongTensor | None = None, x: trt.FloatTensor = None) -> trt.BoolTensor: ...

    assert eval("trt.LongTensor | None", {"trt": trt}) == trt.LongTensor | None
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (trt.FloatTensor,), {})


CONSTRUCTED = {
    "nothing": lambda m: m.FloatTensor(),
    "sequence": lambda m: m.FloatTensor([1, 2]),
    "tuple": lambda m: m.FloatTensor((2, 3)),
    "floats": lambda m: m.LongTensor([1.5, -1.5]),
    "data": lambda m: m.FloatTensor(data=[1]),
    "nested": lambda m: m.DoubleTensor([[1, 2], [3, 4]]),
    "storage": lambda m: m.FloatTensor(m.ones(2).untyped_storage()),
    "tensor": lambda m: m.FloatTensor(m.ones(2)),
    "other dtype": lambda m: m.LongTensor(m.ones(2)),
    "Tensor of any dtype": lambda m: m.Tensor(m.ones(2, dtype=m.int64)),
    "Tensor of a storage": lambda m: m.Tensor(m.ones(2).untyped_storage()),
    "number": lambda m: m.FloatTensor(3.5),
    "bool": lambda m: m.FloatTensor(True),
    "None": lambda m: m.FloatTensor(None),
    "str": lambda m: m.FloatTensor("abc"),
    "Tensor of a number": lambda m: m.Tensor(3.5),
    "Tensor of None": lambda m: m.Tensor(None),
    "negative": lambda m: m.FloatTensor(-1),
    "list of sizes": lambda m: m.FloatTensor(2, [3]),
    "new": lambda m: m.ones(1, dtype=m.int32).new([1, 2]),
    "other device": lambda m: m.FloatTensor(2, device="meta"),
}
SIZES = {
    "sizes": lambda m: m.FloatTensor(2, 3),
    "Size": lambda m: m.IntTensor(m.Size([2, 3])),
    "size=": lambda m: m.FloatTensor(size=(2,)),
    "device": lambda m: m.FloatTensor(2, device="cpu"),
    "Tensor": lambda m: m.Tensor(2, 0),
    "new": lambda m: m.ones(1, dtype=m.int32).new(3, 1),
    "new of nothing": lambda m: m.ones(1, dtype=m.int32).new(),
}


def outcome(call, m, values=True):
    try:
        t = call(m)
    except Exception as error:
        return type(error).__name__
    return str(t.dtype).rpartition(".")[2], tuple(t.shape), t.tolist() if values else None


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_construction(name):
    assert outcome(CONSTRUCTED[name], trt) == outcome(CONSTRUCTED[name], torch)


@pytest.mark.parametrize("name", SIZES)
def test_construction_from_sizes(name):
    assert outcome(SIZES[name], trt, values=False) == outcome(SIZES[name], torch, values=False)


def test_a_tensor_and_a_storage_are_shared():
    x = trt.ones(2)
    trt.FloatTensor(x)[0] = 5
    trt.FloatTensor(x.untyped_storage())[1] = 6
    assert x.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("wanted", [
    lambda m: m.LongTensor, lambda m: "torch.LongTensor", lambda m: m.float64, lambda m: m.Tensor, lambda m: "LongTensor", lambda m: float, lambda m: 3,
    lambda m: "torch.NoTensor",
])  # fmt: skip
def test_type(wanted):
    assert outcome(lambda m: m.tensor([1, 2], dtype=m.int32).type(wanted(m)), trt) == outcome(lambda m: m.tensor([1, 2], dtype=m.int32).type(wanted(m)), torch)


def test_type_strings():
    for name in NAMES:
        x = trt.ones(1).type(getattr(trt, name))
        assert x.type() == f"torch.{name}" and x.type(x.type()).dtype == x.dtype
    assert trt.ones(1, device="meta").type() == torch.ones(1, device="meta").type()


def test_cuda_class_without_a_device():
    if trt.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(TypeError, match=r"type torch.cuda.FloatTensor not available"):
        trt.cuda.FloatTensor(2)


SPARSE_NAMES = [name for name in NAMES if name != "BoolTensor"]


@pytest.mark.parametrize("name", SPARSE_NAMES)
def test_sparse_class(name):
    ours, theirs = getattr(trt.sparse, name), getattr(torch.sparse, name)
    assert repr(ours) == repr(theirs) and [str(ours.dtype), str(ours.layout), ours.is_sparse, ours.is_cuda] == [str(theirs.dtype), str(theirs.layout), True, False]
    assert repr(getattr(trt.cuda.sparse, name)) == repr(getattr(torch.cuda.sparse, name)) and getattr(trt.cuda.sparse, name).is_cuda
    x = trt.ones(2, 2).to(ours.dtype).to_sparse()
    assert isinstance(x, ours) and not isinstance(x.to_dense(), ours) and not isinstance(x.to_sparse_csr(), ours)
    assert not isinstance(x, getattr(trt, name)) and x.type() == f"torch.sparse.{name}"
    assert name in dir(trt.sparse)
    assert [isinstance(x, getattr(trt.sparse, other)) for other in SPARSE_NAMES].count(True) == 1
    converted = trt.eye(2).to_sparse().type(ours)
    assert converted.dtype == ours.dtype == trt.eye(2).to_sparse().type(f"torch.sparse.{name}").dtype and converted.is_sparse


def parts(m, dtype="float32"):
    return m.tensor([[0, 1], [1, 0]]), m.tensor([1, 2]).to(getattr(m, dtype))


SPARSE_CALLS = {
    "nothing": lambda m: m.sparse.FloatTensor(),
    "entries": lambda m: m.sparse.FloatTensor(*parts(m)),
    "entries and Size": lambda m: m.sparse.FloatTensor(*parts(m), m.Size([2, 3])),
    "entries and list": lambda m: m.sparse.FloatTensor(*parts(m), [3, 2]),
    "by name": lambda m: m.sparse.FloatTensor(indices=parts(m)[0], values=parts(m)[1], size=(4, 4)),
    "values of another dtype": lambda m: m.sparse.FloatTensor(*parts(m, "int16")),
    "sizes": lambda m: m.sparse.LongTensor(2, 3),
    "Size": lambda m: m.sparse.HalfTensor(m.Size([2, 3])),
    "size=": lambda m: m.sparse.DoubleTensor(size=(2, 2)),
    "device": lambda m: m.sparse.DoubleTensor(2, 3, device="cpu"),
    "other device": lambda m: m.sparse.FloatTensor(2, 3, device="meta"),
    "sequence": lambda m: m.sparse.FloatTensor([2, 3]),
    "sizes apart": lambda m: m.sparse.FloatTensor(*parts(m), 2, 3),
    "float indices": lambda m: m.sparse.FloatTensor(parts(m)[0].float(), parts(m)[1]),
    "one dimension of indices": lambda m: m.sparse.FloatTensor(parts(m)[1], parts(m)[1]),
    "a tensor": lambda m: m.sparse.FloatTensor(m.ones(2, 2)),
    "number": lambda m: m.sparse.FloatTensor(2.5),
    "str": lambda m: m.sparse.FloatTensor("a"),
    "dtype": lambda m: m.sparse.FloatTensor(*parts(m), dtype=m.float64),
    "twice": lambda m: m.sparse.FloatTensor(*parts(m), values=parts(m)[1]),
    "negative size": lambda m: m.sparse.FloatTensor(-1),
}


@pytest.mark.parametrize("name", SPARSE_CALLS)
@pytest.mark.filterwarnings("ignore")
def test_sparse_construction(name):
    def made(m):
        try:
            x = SPARSE_CALLS[name](m)
        except Exception as error:
            return type(error).__name__
        return str(x.dtype).rpartition(".")[2], tuple(x.shape), x.is_coalesced(), x._indices().tolist(), x._values().tolist()

    assert made(trt) == made(torch)


def test_sparse_class_keeps_gradients():
    values = trt.tensor([1.0, 2.0], requires_grad=True)
    (trt.sparse.FloatTensor(parts(trt)[0], values, trt.Size([2, 2])) @ trt.tensor([[3.0], [5.0]])).sum().backward()
    assert values.grad.tolist() == [5.0, 3.0]


def test_sparse_classes_are_no_defaults():
    for kind in (trt.sparse.FloatTensor, "torch.sparse.FloatTensor"):
        with pytest.raises(TypeError, match="only dense types"):
            trt.set_default_tensor_type(kind)
    with pytest.raises(AttributeError, match="BoolTensor"):
        trt.sparse.BoolTensor  # noqa: B018
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (trt.sparse.FloatTensor,), {})


def test_default_tensor_type():
    try:
        trt.set_default_tensor_type(trt.DoubleTensor)
        assert trt.tensor(1.5).dtype == trt.float64 == trt.Tensor(2).dtype
        trt.set_default_tensor_type("torch.HalfTensor")
        assert trt.tensor(1.5).dtype == trt.float16
        for wrong in (trt.LongTensor, trt.float64, 3):
            with pytest.raises(TypeError, match="only floating-point types"):
                trt.set_default_tensor_type(wrong)
    finally:
        trt.set_default_tensor_type(trt.FloatTensor)
    assert trt.tensor(1.5).dtype == trt.float32


FLUSH = """
import tensorrt_lite as trt
x = trt.tensor([1e-40])
def halved(): return (x * 0.5).tolist()[0]
assert halved() > 0
assert trt.set_flush_denormal(True) is True and halved() == 0
assert trt.set_flush_denormal(False) is True and halved() > 0
try: trt.set_flush_denormal(1)
except TypeError: pass
else: raise AssertionError
"""


def test_flush_denormal():
    assert subprocess.run([sys.executable, "-c", FLUSH], capture_output=True).returncode == 0
