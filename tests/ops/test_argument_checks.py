"""Arguments that operators refuse, take or warn of as PyTorch does, and the geometry of what they return, beside PyTorch."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

Call = Callable[[Any], Any]
NAN, INF = float("nan"), float("inf")


def shown(m: Any, result: Any) -> Any:
    """What is compared: dtype, shape, strides and values of tensors."""
    if isinstance(result, m.Tensor):
        return str(result.dtype), tuple(result.shape), result.stride(), repr(result.tolist())
    if isinstance(result, (tuple, list)):
        return [shown(m, x) for x in result]
    return result


def outcome(m: Any, call: Call) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(m, call(m))
        except Exception as error:  # its type is what is compared
            return type(error)


REFUSED: dict[str, Call] = {
    "tensor_split at a fraction": lambda m: m.tensor_split(m.arange(3), [1.5]),
    "tensor_split by a fraction": lambda m: m.tensor_split(m.arange(3), 1.5),
    "tensor_split at a float tensor": lambda m: m.tensor_split(m.arange(3), m.tensor([1.7])),
    "tensor_split at int32": lambda m: m.tensor_split(m.arange(3), m.tensor([1], dtype=m.int32)),
    "tensor_split at uint8": lambda m: m.tensor_split(m.arange(3), m.tensor([1], dtype=m.uint8)),
    "tensor_split at bool": lambda m: m.tensor_split(m.arange(3), m.tensor([True])),
    "tensor_split at a matrix": lambda m: m.tensor_split(m.arange(3), m.tensor([[1]])),
    "hsplit at a fraction": lambda m: m.hsplit(m.arange(3), [1.5]),
    "hsplit by a fraction": lambda m: m.hsplit(m.arange(3), 1.5),
    "vsplit at a fraction": lambda m: m.vsplit(m.ones(2, 2), [1.5]),
    "dsplit at a fraction": lambda m: m.dsplit(m.ones(2, 2, 2), [1.5]),
    "take_along_dim int32": lambda m: m.take_along_dim(m.ones(2), m.tensor([0], dtype=m.int32), 0),
    "take_along_dim float": lambda m: m.take_along_dim(m.ones(2), m.tensor([0.0]), 0),
    "unravel_index float shape": lambda m: m.unravel_index(m.tensor(1), (2.0, 2)),
    "unravel_index tensor shape": lambda m: m.unravel_index(m.tensor(1), m.tensor([2, 2])),
    "unravel_index of tensors": lambda m: m.unravel_index(m.tensor(1), (m.tensor(2), 2)),
    "unravel_index negative": lambda m: m.unravel_index(m.tensor(1), (2, -2)),
    "adjoint of a vector": lambda m: m.adjoint(m.ones(2)),
    "multilabel_margin_loss below -1": lambda m: m.nn.functional.multilabel_margin_loss(m.ones(1, 3), m.tensor([[-2, 0, 0]])),
    "multilabel_margin_loss behind the end": lambda m: m.nn.functional.multilabel_margin_loss(m.ones(1, 3), m.tensor([[0, -1, -2]])),
    "multilabel_margin_loss too large": lambda m: m.nn.functional.multilabel_margin_loss(m.ones(1, 3), m.tensor([[3, 0, 0]])),
    "multilabel_margin_loss int32": lambda m: m.nn.functional.multilabel_margin_loss(m.ones(1, 3), m.tensor([[0, -1, -1]], dtype=m.int32)),
    "multilabel_margin_loss bool": lambda m: m.nn.functional.multilabel_margin_loss(m.ones(1, 3), m.tensor([[False, False, False]])),
    "multi_margin_loss int32": lambda m: m.nn.functional.multi_margin_loss(m.ones(1, 3), m.tensor([0], dtype=m.int32)),
    "multi_margin_loss float": lambda m: m.nn.functional.multi_margin_loss(m.ones(1, 3), m.tensor([0.0])),
    "polar of integers": lambda m: m.polar(m.tensor([1]), m.tensor([1])),
    "polar of bool": lambda m: m.polar(m.tensor([True]), m.tensor([True])),
    "polar of halves": lambda m: m.polar(m.ones(1).half(), m.ones(1).half()),
    "polar of bfloat16": lambda m: m.polar(m.ones(1).bfloat16(), m.ones(1).bfloat16()),
    "polar of two types": lambda m: m.polar(m.ones(1), m.ones(1).double()),
    "meshgrid of two devices": lambda m: m.meshgrid(m.ones(2), m.ones(2, device="meta"), indexing="ij"),
    "nanmean of integers": lambda m: m.nanmean(m.tensor([1])),
    "nanmean of bool": lambda m: m.nanmean(m.tensor([True])),
    "nanmean of integers in float32": lambda m: m.nanmean(m.tensor([1]), dtype=m.float32),
    "flip without dims": lambda m: m.flip(m.ones(2)),
    "flip() without dims": lambda m: m.ones(2).flip(),
    "randperm beyond uint8": lambda m: m.randperm(257, dtype=m.uint8),
    "randperm beyond int8": lambda m: m.randperm(129, dtype=m.int8),
    "circular padding of nothing": lambda m: m.nn.functional.pad(m.ones(2, 1, 0), (1, 1), "circular"),
    "interpolate to floats": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), size=(2.0, 2.0)),
    "interpolate to a float": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), size=2.0),
    "interpolate bilinear to floats": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), size=(2.0, 2.0), mode="bilinear"),
    "interpolate area to floats": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), size=(2.0, 2.0), mode="area"),
    "device cuda, -1": lambda m: m.device("cuda", -1),
    "device cuda:01": lambda m: m.device("cuda:01"),
    "device cuda, 1.0": lambda m: m.device("cuda", 1.0),
    "device cuda, True": lambda m: m.device("cuda", True),
    "device -1": lambda m: m.device(-1),
    "device True": lambda m: m.device(True),
    "device cuda:": lambda m: m.device("cuda:"),
    "attention of a query with a batch": lambda m: m.nn.MultiheadAttention(4, 2)(m.ones(2, 1, 4), m.ones(1, 4), m.ones(1, 4)),
    "attention of a query without a batch": lambda m: m.nn.MultiheadAttention(4, 2)(m.ones(2, 4), m.ones(2, 1, 4), m.ones(2, 1, 4)),
    "attention of a vector": lambda m: m.nn.MultiheadAttention(4, 2)(m.ones(4), m.ones(4), m.ones(4)),
    "attention, padding of three dimensions": lambda m: m.nn.MultiheadAttention(4, 2)(*[m.ones(2, 1, 4)] * 3, key_padding_mask=m.ones(2, 2, 2).bool()),
    "attention, mask of one dimension": lambda m: m.nn.MultiheadAttention(4, 2)(*[m.ones(2, 4)] * 3, attn_mask=m.ones(2).bool()),
    "attention, mask of integers": lambda m: m.nn.MultiheadAttention(4, 2)(*[m.ones(2, 1, 4)] * 3, attn_mask=m.ones(2, 2, dtype=m.int32)),
    "attention, padding of integers": lambda m: m.nn.MultiheadAttention(4, 2)(*[m.ones(2, 1, 4)] * 3, key_padding_mask=m.ones(1, 2, dtype=m.int32)),
    "pack_padded_sequence of nothing": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.zeros(0, 0), []),
    "pack_padded_sequence without lengths": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.zeros(1, 1), []),
    "pad_sequence of a number": lambda m: m.nn.utils.rnn.pad_sequence(5),
    "pad_sequence of numbers": lambda m: m.nn.utils.rnn.pad_sequence([1]),
    "max_unpool3d by two": lambda m: m.nn.functional.max_unpool3d(m.ones(1, 1, 1, 1, 1), m.zeros(1, 1, 1, 1, 1, dtype=m.int64), (2, 2)),
    "max_unpool2d by one": lambda m: m.nn.functional.max_unpool2d(m.ones(1, 1, 1, 1), m.zeros(1, 1, 1, 1, dtype=m.int64), []),
    "einsum of no operand": lambda m: m.einsum("", []),
    "einsum of nothing": lambda m: m.einsum(),
    "einsum of an equation": lambda m: m.einsum("ij"),
    "cross_entropy of float classes": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0.0, 1.0])),
    "cross_entropy of int32": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0, 1], dtype=m.int32)),
}
MESSAGES = {
    "cross_entropy of float classes": "expected target dtype to be Long or Byte, but got Float",
    "cross_entropy of int32": "expected target dtype to be Long or Byte, but got Int",
    "tensor_split at int32": "to have dtype of long, but got Int",
    "polar of integers": "Expected both inputs to be Half, Float or Double tensors but got Long and Long",
    "nanmean of integers": "expected input to have floating point or complex dtype but got Long",
    "multi_margin_loss int32": "expected scalar type Long but found Int",
    "device cuda, -1": "Device index must not be negative",
    "pad_sequence of a number": "Expected iterable for input sequences",
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_are_refused(name: str) -> None:
    expected = outcome(torch, REFUSED[name])
    assert isinstance(expected, type) and issubclass(expected, Exception)
    with pytest.raises(IndexError if expected is IndexError else expected, match=MESSAGES.get(name)) as caught:
        REFUSED[name](trt)
    assert caught.type is expected


TAKEN: dict[str, Call] = {
    "tensor_split at a tensor": lambda m: m.tensor_split(m.arange(5), m.tensor([1, 3])),
    "hsplit by a tensor": lambda m: m.hsplit(m.arange(3), m.tensor(1)),
    "adjoint of a number": lambda m: m.adjoint(m.tensor(1 + 2j)),
    "unravel_index of a number": lambda m: m.unravel_index(m.tensor(3), 4),
    "circular padding, no channels": lambda m: m.nn.functional.pad(m.ones(1, 0, 3), (1, 1), "circular"),
    "circular padding, no channels, no batch": lambda m: m.nn.functional.pad(m.ones(0, 3), (1, 1), "circular"),
    "circular padding, no images": lambda m: m.nn.functional.pad(m.ones(0, 2, 3, 3), (1, 1, 1, 1), "circular"),
    "circular padding, no channels of images": lambda m: m.nn.functional.pad(m.ones(2, 0, 3, 3), (1, 1, 1, 1), "circular"),
    "circular padding, no channels of volumes": lambda m: m.nn.functional.pad(m.ones(2, 0, 3, 3, 3), (1, 1, 1, 1, 1, 1), "circular"),
    "randperm of all of uint8": lambda m: m.randperm(256, dtype=m.uint8).sort()[0],
    "randperm of all of int8": lambda m: m.randperm(128, dtype=m.int8).sort()[0],
    "cat of empty vectors in dimension 1": lambda m: m.cat([m.empty(0), m.empty(0)], dim=1),
    "cat of empty vectors in dimension -2": lambda m: m.cat([m.empty(0), m.empty(0)], dim=-2),
    "cond of zeros": lambda m: m.linalg.cond(m.zeros(2, 2)),
    "cond(-2) of zeros": lambda m: m.linalg.cond(m.zeros(2, 2), -2),
    "cond(nuc) of zeros": lambda m: m.linalg.cond(m.zeros(2, 2), "nuc"),
    "cond(fro) of zeros": lambda m: m.linalg.cond(m.zeros(2, 2), "fro"),
    "cond(nuc) of singular matrices": lambda m: m.linalg.cond(m.stack([m.ones(2, 2), 2 * m.eye(2)]), "nuc"),
    "logcumsumexp of nan": lambda m: m.tensor([complex(NAN, 0), 1.0]).logcumsumexp(0),
    "logcumsumexp of -inf": lambda m: m.tensor([complex(-INF, 1), complex(-INF, 2)]).logcumsumexp(0),
    "logcumsumexp of an imaginary nan": lambda m: m.tensor([complex(1, NAN)]).logcumsumexp(0),
    "device cpu:1": lambda m: str(m.device("cpu:1")),
    "interpolate to a tensor": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), size=m.tensor(2)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_arguments_are_taken(name: str) -> None:
    assert outcome(trt, TAKEN[name]) == outcome(torch, TAKEN[name])


def dense(m: Any) -> Any:
    return m.arange(24.0).reshape(2, 3, 4).permute(2, 1, 0)


GEOMETRY: dict[str, Call] = {
    "expand by one": lambda m: m.ones(5).expand(1, 5),
    "expand by one, twice": lambda m: m.ones(5).expand(1, 1, 5),
    "expand by more": lambda m: m.ones(5).expand(3, 1, 5),
    "expand of a number": lambda m: m.tensor(1.0).expand(1, 3),
    "expand_as": lambda m: m.ones(5).expand_as(m.ones(1, 5)),
    "broadcast_to": lambda m: m.broadcast_to(m.ones(5), (1, 5)),
    "broadcast_tensors": lambda m: m.broadcast_tensors(m.ones(5), m.ones(1, 1)),
    "t_copy": lambda m: m.t_copy(m.ones(3, 4)),
    "transpose_copy": lambda m: m.transpose_copy(m.ones(3, 4), 0, 1),
    "permute_copy": lambda m: m.permute_copy(m.ones(3, 4), (1, 0)),
    "as_strided_copy": lambda m: m.as_strided_copy(m.ones(4, 3), (3, 4), (1, 3)),
    "narrow_copy": lambda m: m.narrow_copy(m.ones(3, 4).t(), 0, 0, 2),
    "resize_as_ keeps channels_last": lambda m: m.ones(480).resize_as_(m.ones(10, 3, 4, 4).contiguous(memory_format=m.channels_last), memory_format=m.preserve_format).stride(),
    "resize_as_ of another template": lambda m: m.ones(12).resize_as_(m.ones(4, 3).t(), memory_format=m.preserve_format).stride(),
    "a reshaped copy is no view": lambda m: (m.ones(2, 2).t().flatten()._is_view(), m.ones(2, 2).t().reshape(4)._is_view(), m.ones(2, 2).reshape(4)._is_view()),
    **{
        f"{name}(out=) of no elements": lambda m, name=name, args=args: getattr(m, name)(*[dense(m)] * args, out=m.empty(0))
        for name, args in {"add": 2, "abs": 1, "mul": 2, "addcmul": 3, "maximum": 2, "neg": 1}.items()
    },
    "eq(out=) of no elements": lambda m: m.eq(dense(m), dense(m), out=m.empty(0, dtype=m.bool)),
    "add(out=) of other elements": lambda m: m.add(dense(m), 1, out=m.empty(5)),
    "add(out=) of another type": lambda m: m.add(dense(m), 1, out=m.empty(0, dtype=m.float64)),
    "add(out=) of its shape": lambda m: m.add(dense(m), 1, out=m.empty(4, 3, 2)),
    "clamp(out=) of no elements": lambda m: m.clamp(dense(m), 0, 1, out=m.empty(0)),
    "where(out=) of no elements": lambda m: m.where(dense(m) > 0, dense(m), dense(m), out=m.empty(0)),
    "slice_scatter(out=)": lambda m: m.slice_scatter(m.zeros(3), m.ones(1), 0, 1, 2, out=m.empty(0)),
    "narrow_copy(out=)": lambda m: m.narrow_copy(m.arange(3.0), 0, 1, 2, out=m.empty(0)),
    "logcumsumexp(out=)": lambda m: m.logcumsumexp(m.zeros(3), 0, out=m.empty(0)).shape,
    "native_batch_norm(out=)": lambda m: m.native_batch_norm(
        m.ones(2, 3), None, None, m.zeros(3), m.ones(3), False, 0.1, 1e-5, out=(m.empty(0), m.empty(0), m.empty(0))
    )[0].shape,
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_results_have_the_geometry(name: str) -> None:
    expected = outcome(torch, GEOMETRY[name])
    assert not isinstance(expected, type)
    assert outcome(trt, GEOMETRY[name]) == expected


def test_avg_pool3d_writes_to_out() -> None:
    x = trt.arange(16.0).reshape(1, 2, 2, 2, 2)
    out = trt.empty(0)
    assert trt.ops.aten.avg_pool3d.out(x, 2, out=out) is out
    assert out.tolist() == torch.nn.functional.avg_pool3d(torch.arange(16.0).reshape(1, 2, 2, 2, 2), 2).tolist()


WARNINGS: dict[str, tuple[type[Warning], str, Call]] = {
    "affine_grid of one row": (UserWarning, "unit-size grids", lambda m: m.nn.functional.affine_grid(m.eye(2, 3)[None], [1, 1, 1, 2], align_corners=True)),
    "stateless.functional_call": (FutureWarning, "is deprecated as of PyTorch 2.0", lambda m: m.nn.utils.stateless.functional_call(m.nn.Linear(1, 1), {}, (m.ones(1),))),
    "normal into another size": (UserWarning, "An output with one or more elements was resized", lambda m: m.normal(m.zeros(3), m.ones(3), out=m.zeros(2))),
    "normal of deviations into another size": (UserWarning, "An output with one or more elements was resized", lambda m: m.normal(0.0, m.ones(3), out=m.zeros(2))),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_calls_are_warned_of(name: str) -> None:
    kind, text, call = WARNINGS[name]
    for m in (trt, torch):
        with pytest.warns(kind, match=text):
            call(m)


@pytest.mark.parametrize(
    ("call", "near", "signature"),
    [
        (lambda m: m.sum(m.ones(2), dims=0), "dim", "sum(input, dim=None"),
        (lambda m: m.ones(2).sum(dims=0), "dim", "sum(input, dim=None"),
        (lambda m: m.std(m.ones(2), dims=0), "dim", "std("),
        (lambda m: m.add(m.ones(2), 1, alfa=2), "alpha", "add(input, other, *, alpha=1"),
        (lambda m: m.nn.functional.softmax(m.ones(2), dims=0), "dim", "softmax("),
    ],
)
def test_a_wrong_keyword_names_the_nearest_and_the_signature(call: Call, near: str, signature: str) -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as caught:
        call(trt)
    (note,) = caught.value.__notes__
    assert note.startswith(f"Hint: did you mean '{near}'? The signature is {signature}")


def test_a_torch_function_that_is_a_plain_method_gets_its_arguments() -> None:
    def answers(m: Any) -> Any:
        class Plain:
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return type(self).__name__, func.__name__, len(args)

        class Static:
            @staticmethod
            def __torch_function__(func, types, args=(), kwargs=None):
                return func.__name__, len(args)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return m.add(Plain(), 1), m.add(m.ones(1), Plain()), m.add(Static(), 1), m.nn.functional.linear(Plain(), m.ones(1))

    assert answers(trt) == answers(torch)


@pytest.mark.parametrize("call", ["full((2,))", "tensor()", "linspace(0, 1)"])
def test_a_wrong_number_of_arguments_shows_the_signature(call):
    with pytest.raises(TypeError) as info:
        eval(f"trt.{call}", {"trt": trt})
    name = call.partition("(")[0]
    assert [note.startswith(f"Hint: The signature is {name}(") for note in info.value.__notes__] == [True]


def test_windows_whose_product_wraps_are_refused():
    """The product of such sizes is 0 or small in 64 bits: a division by zero, or places beyond the memory."""
    columns, image = trt.ones(8, 8), trt.ones(1, 2, 2)
    for kernel in (2**32, (2**32, 2**32), (2**33, 2**31), (2**32 + 1, 2**32 - 1)):
        with pytest.raises(RuntimeError):
            trt.nn.functional.fold(columns, (2, 7), kernel, stride=2)
        with pytest.raises(RuntimeError):
            trt.nn.functional.unfold(image, kernel, padding=2**31)
    for padding in (2**31, 2**32):
        with pytest.raises(RuntimeError):
            trt.nn.functional.fold(trt.ones(1, 1), (2, 2), 1, padding=padding)


TAKING_OUT = {
    "mm": [(3, 4), (4, 5)],
    "bmm": [(2, 3, 4), (2, 4, 5)],
    "mv": [(3, 4), (4,)],
    "addmm": [(3, 5), (3, 4), (4, 5)],
    "cat": [(3, 4), (2, 4)],
    "inner": [(3, 4), (2, 4)],
    "linalg.solve": [(4, 4), (4, 2)],
    "add": [(3, 4), (3, 4)],
    "cumsum": [(3, 4)],
    "amax": [(3, 4)],
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", TAKING_OUT)
def test_the_warning_about_out_comes_when_the_result_is_written(name, device):
    """It runs the program's code, which may move the operands: a kernel that went on with these ended the process."""
    function = functools.reduce(getattr, name.split("."), trt)
    for moved, _ in enumerate(TAKING_OUT[name]):
        operands = [trt.randn(size).to(device) for size in TAKING_OUT[name]]
        given = [operands] if name == "cat" else operands
        dim = {"cumsum": [1], "amax": [1]}.get(name, [])
        expected = function(*given, *dim)
        out = trt.ones([7] * 3, device=device)

        def show(*args, operand=operands[moved], **kwargs):
            operand.data = trt.ones(1, device="meta" if device == "cpu" else "cpu")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            function(*given, *dim, out=out)
        assert operands[moved].shape == (1,), "no warning came"
        assert out.shape == expected.shape
        assert device == "meta" or trt.equal(out, expected)
