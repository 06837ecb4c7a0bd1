"""Autograd saves no more than PyTorch's: every in-place write that PyTorch takes between forward and backward is taken, and a
graph holds no more bytes. Over the differentiable operators of PyTorch's whole database that exist here, plain and in place,
with all leaves requiring grad and with each one alone (a frozen weight, a frozen input)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import torch  # noqa: E402

import tensorrt_lite as trt  # noqa: E402

from . import saved  # noqa: E402

OPERATORS = saved.operators(trt)

# Writes refused here that PyTorch takes.
REFUSES_MORE = {
    "kron": "PyTorch misses the write, as its views are hidden from autograd, and differentiates with the overwritten values",
    "nn.functional.cross_entropy": "keeps the scores; PyTorch keeps their log-softmax beside them: docs/gaps.md",
    "nn.functional.batch_norm": "keeps an input without elements",
    "nn.functional.adaptive_avg_pool3d": "keeps the input, where PyTorch keeps that of a mean alone",
    "frexp": "keeps the input in place of the exponent",
    **dict.fromkeys(("masked.cumsum", "masked.cumprod", "masked.var", "masked.std"), "keep the mask as given, PyTorch its opposite or numbers made of it"),
    "nn.functional.linear_cross_entropy.chunked": "keeps the inputs, where PyTorch keeps their gradients and has none of second order",
    "special.ndtr": "keeps the input, where PyTorch keeps a multiple of it",
}
# Calls that keep more bytes than PyTorch's, in all or beside inputs and outputs.
KEEPS_MORE = {
    "addbmm": "batch1 in the product's order of elements in place of batch1",
    "combinations": "the coordinates of the mask, which are as many as the result's elements, in place of input and mask",
    "dist": "the difference in place of both operands",
    "index_fill": "a mask of the dimension in place of the index",
    "index_reduce.mean": "in place a copy of the value before the write and the result, copied into it",
    "index_reduce.prod": "as mean",
    "index_reduce.amin": "as mean",
    "index_reduce.amax": "as mean",
    "mvlgamma.mvlgamma_p_1": "the p arguments of lgamma in place of the input",
    "mvlgamma.mvlgamma_p_3": "as with p = 1",
    "mvlgamma.mvlgamma_p_5": "as with p = 1",
    "linalg.lstsq": "the solution before the dimensions that its shape loses",
    "linalg.lstsq.grad_oriented": "as lstsq",
    "linalg.lu": "the factors in one matrix and the pivots, half of what PyTorch keeps",
    "logcumsumexp": "the partial sums of a logarithmic number of passes",
    "native_group_norm": "the statistics of which the result holds copies",
    "nn.functional.adaptive_avg_pool3d": "as avg_pool3d",
    "nn.functional.avg_pool3d": "the means of the planes, whose depth is averaged then, beside the input",
    "nn.functional.cross_entropy": "the scores and a number for each row in place of the log-softmax",
    **dict.fromkeys(
        ("nn.functional.linear_cross_entropy", "nn.functional.linear_cross_entropy.chunked", "nn.functional.linear_cross_entropy.chunked_none"),
        "the scores and a number for each row in place of the log-softmax",
    ),
    "nn.functional.multi_margin_loss": "the margins in place of the scores",
    "nn.functional.multilabel_margin_loss": "the margins of all pairs of classes",
    "nn.functional.scaled_dot_product_attention": "double: the weights and scaled operands, there is no kernel for it on the CPU",
    "frexp": "the input in place of the exponents",
    "renorm": "a few numbers for each slice",
    "special.ndtr": "the input in place of a hidden multiple of it",
    "tensordot": "an operand in the product's order of elements in place of the operand",
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The samples are small, and idle threads of PyTorch spin."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_saves_no_more_than_pytorch(name):
    writes, kept = saved.differences(OPERATORS[name], trt)
    assert bool(writes) == (name in REFUSES_MORE), "\n".join(writes) or "is no exception any more"
    assert bool(kept) == (name in KEEPS_MORE), "\n".join(kept) or "is no exception any more"


def test_most_operators_are_compared():
    assert len(OPERATORS) > 400


@pytest.mark.parametrize("name", ["exp", "mul", "nn.functional.linear"])
def test_the_measure_sees_what_is_saved(name):
    """A library that saves its operands beside what is needed keeps more and refuses more."""
    op = OPERATORS[name]
    sample = next(saved.selected_samples(op, False))

    def make() -> saved.Call:
        return saved.forward(op, saved.Library(trt), sample, None, False)

    call = make()
    tensors = saved.saved_by_library(saved.Library(trt), call)
    assert saved.kept(call, tensors).total > 0
    assert any(saved.refused(saved.Library(trt), make, i) for i in range(len(call.inputs) + len(call.outputs)))
    _, theirs = saved.saved_by_torch(lambda: saved.forward(op, saved.Library(torch), sample, None, False))
    assert sum(t.nbytes for t in theirs) == saved.kept(call, tensors).total
