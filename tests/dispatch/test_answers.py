"""What a TorchDispatchMode answers in an operator's place: wrong types and numbers are refused as in PyTorch, wrong shapes by the backward pass."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode


def answering(answer, kinds=(tuple, list)):
    """A mode that answers the first call whose result is of these kinds with what `answer` makes of it."""

    class Answering(TorchDispatchMode):
        answered = False

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if self.answered or not isinstance(result, kinds):
                return result
            self.answered = True
            return answer(result)

    return Answering()


class Liar(tuple):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter((1, "two"))


SQUARE, CLASSES = (8, 8), trt.zeros(8, dtype=trt.int64)
SEVERAL = {
    "topk": lambda x: x.topk(3), "sort": lambda x: x.sort(), "median": lambda x: x.median(0), "max": lambda x: x.max(0), "cummax": lambda x: x.cummax(0), "lstsq": lambda x: trt.linalg.lstsq(x, x),
    "svd": lambda x: trt.linalg.svd(x), "inv": lambda x: trt.linalg.inv(x), "layer_norm": lambda x: F.layer_norm(x, (8,)), "unique": lambda x: x.unique(),
    "nll_loss": lambda x: F.nll_loss(x, CLASSES), "cross_entropy": lambda x: F.cross_entropy(x, CLASSES),
    "split": lambda x: x.split(2), "unbind": lambda x: x.unbind(),
}  # fmt: skip
ONE = {"exp": lambda x: x.exp(), "sum": lambda x: x.sum(0), "view": lambda x: x.view(64), "matmul": lambda x: x @ x, "add_": lambda x: x.detach().add_(1)}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", SEVERAL)
def test_what_is_no_tuple_of_tensors_is_refused_for_several_results(name, grad):
    for answer in (trt.zeros(1000), 3, None, "ab", range(2), {}, (trt.zeros(3), 3), (None, None, None), Liar((trt.zeros(3), trt.zeros(3)))):
        x = trt.rand(SQUARE, requires_grad=grad)
        with answering(lambda result, answer=answer: answer), pytest.raises(RuntimeError, match="a kernel must return"):
            SEVERAL[name](x)


@pytest.mark.parametrize("name", [n for n in SEVERAL if n not in ("split", "unbind")])
def test_another_number_of_results_is_refused(name):
    for answer in ((), (trt.zeros(3),), (trt.zeros(3),) * 900):
        x = trt.rand(SQUARE, requires_grad=True)
        with answering(lambda result, answer=answer: answer), pytest.raises(RuntimeError, match="a kernel must return . tensors, not"):
            SEVERAL[name](x)


@pytest.mark.parametrize("name", ONE)
def test_what_is_no_tensor_is_refused_for_one_result(name):
    for answer in (3, "ab", (), (trt.zeros(3),), range(2), {}):
        x = trt.rand(SQUARE, requires_grad=True)
        with answering(lambda result, answer=answer: answer, trt.Tensor), pytest.raises(RuntimeError, match="a kernel must return a Tensor, not"):
            ONE[name](x)


# Operators whose backward kernels read what the forward pass returned beside its result.
KEPT = {
    "nll_loss": lambda x: F.nll_loss(x, trt.zeros(8, dtype=trt.int64)),
    "cross_entropy": lambda x: F.cross_entropy(x, trt.zeros(8, dtype=trt.int64)),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool2d": lambda x: F.max_pool2d(x.detach()[None].requires_grad_(), 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x.detach()[None].requires_grad_(), 2),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.detach()[None, None].requires_grad_() for _ in range(3)]),
    "lstm": lambda x: trt.lstm(x[None], [trt.zeros(1, 8, 3)] * 2, [trt.rand(12, 8), trt.rand(12, 3)], False, 1, 0.0, True, False, False)[0],
    "ctc_loss": lambda x: F.ctc_loss(x[:, None], trt.tensor([[1]]), [8], [1]),
}
OTHERS = {
    "empty": lambda t: trt.zeros(0, dtype=t.dtype), "scalar": lambda t: trt.zeros((), dtype=t.dtype), "long": lambda t: trt.zeros(1000, dtype=t.dtype), "bytes": lambda t: trt.zeros(t.shape, dtype=trt.uint8),
    "expanded": lambda t: trt.zeros((), dtype=t.dtype).expand(t.shape), "meta": lambda t: trt.zeros(t.shape, dtype=t.dtype, device="meta"),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", KEPT)
def test_results_of_another_shape_or_type_end_in_a_gradient_or_an_error(name, other):
    """Of each result in turn; memory stays inside, which tools/guard.py shows for random answers."""
    for k in range(4):
        x = trt.rand(SQUARE, requires_grad=True)

        def changed(result, k=k):
            return result if k >= len(result) else (*result[:k], OTHERS[other](result[k]), *result[k + 1 :])

        try:
            with answering(changed):
                KEPT[name](x).sum().backward()
        except (RuntimeError, TypeError, NotImplementedError, IndexError):
            pass
        assert x.grad is None or x.grad.shape == x.shape


def test_an_argument_in_a_tuple_of_results_keeps_its_own_history():
    x = trt.rand(SQUARE, requires_grad=True)
    with answering(lambda result: (x, result[1])):
        values, _ = x.sort()
    assert x.is_leaf and x.grad_fn is None and values is not x


@pytest.mark.parametrize("operator", ["cdist", "pdist", "embedding_bag"])
def test_the_backward_pass_refuses_saved_results_of_another_size(operator):
    """A mode's answer for distances or places of maxima is too short for the gradient's kernel."""

    class Shortens(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if str(function).split(".")[1] in ("_cdist_forward", "_pdist_forward"):
                return trt.zeros(1)
            if "_embedding_bag_largest" in str(function):
                return result[0], trt.zeros(0, dtype=trt.int64)
            return result

    x = trt.rand(300, 3, requires_grad=True)
    calls = {
        "cdist": lambda: trt.cdist(x, x.detach(), p=1.0),
        "pdist": lambda: F.pdist(x, 1.0),
        "embedding_bag": lambda: F.embedding_bag(trt.zeros(600, dtype=trt.int64), x, trt.arange(600), mode="max"),
    }
    with Shortens():
        y = calls[operator]()
    with pytest.raises(RuntimeError, match="backward pass expects"):
        y.sum().backward()


def test_named_results_keep_their_names_below_a_mode():
    class Passes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    x = trt.rand(SQUARE, requires_grad=True)
    with Passes():
        assert x.topk(2).values.shape == (8, 2) and type(x.sort()).__name__ == "sort" and x.max(0).indices.shape == (8,)
