"""Hooks on saved tensors, over the differentiable operators of PyTorch's whole database: they see no more tensors than in PyTorch, hooks that
change nothing change no gradient, and a Node's saved tensors have PyTorch's names."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import torch  # noqa: E402
from torch.testing._internal.opinfo.core import OpInfo  # noqa: E402

import tensorrt_lite as trt  # noqa: E402

from . import opinfo, saved  # noqa: E402
from .library import Library  # noqa: E402

OPERATORS = saved.operators(trt)
SAMPLES = 3

# Operators of which more tensors are packed than in PyTorch.
PACKS_MORE = {
    "aminmax": "the results of amin and amax, of which it is made",
    "cov": "made of smaller operators",
    "nn.functional.avg_pool3d": "the means of the planes beside the input",
    "nn.functional.adaptive_avg_pool3d": "as avg_pool3d",
    "cross": "made of products and rolls",
    "linalg.cross": "as cross",
    "nn.functional.linear_cross_entropy.chunked": "inputs and chunks' results; PyTorch computes gradients in the forward pass and has none of second order",
    "logcumsumexp": "the partial sums of a logarithmic number of passes",
    "native_group_norm": "the statistics, of which the results are copies",
    "nn.functional.cosine_similarity": "made of smaller operators",
    "nn.functional.glu": "both halves",
    "nn.functional.multi_margin_loss": "made of smaller operators",
    "renorm": "made of smaller operators",
}
# Saved tensors of a Node of PyTorch's name that PyTorch does not have under that name.
OTHER_NAMES = {
    "frexp": "the input in place of the exponents",
    "nn.functional.glu": "the halves in place of the input",
    "nn.functional.margin_ranking_loss": "clamp_min takes its bound as a tensor, whatever was given",
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Packed:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def gradients(library: Library, make: Callable[[], saved.Call], hooked: bool) -> tuple[list[Any], int, saved.Call]:
    """(gradients of the leaves, tensors packed, the call)."""
    module, count = library.module, 0

    def pack(tensor: Any) -> Packed:
        nonlocal count
        count += 1
        return Packed(tensor.detach())

    if hooked:
        with module.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed.tensor):
            call = make()
    else:
        call = make()
    if not call.outputs:
        return [], 0, call
    result = module.autograd.grad(call.outputs, call.leaves, [module.ones_like(t) for t in call.outputs], allow_unused=True, retain_graph=True)
    return list(result), count, call


def calls(op: OpInfo) -> list[tuple[Callable[[], saved.Call], Callable[[], saved.Call], str]]:
    reference, library = Library(torch), Library(trt)
    return [
        (lambda s=sample: saved.forward(op, library, s, None, False), lambda s=sample: saved.forward(op, reference, s, None, False), opinfo.describe(sample))
        for sample in itertools.islice(saved.selected_samples(op, False), SAMPLES)
    ]


def equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return trt.equal(a.isnan(), b.isnan()) and trt.equal(a.nan_to_num(), b.nan_to_num())


def saved_names(node: Any, tensor_type: type) -> set[str]:
    """Of the tensors that a Node has saved."""
    names = set()
    for name in dir(node):
        if name.startswith("_raw_saved_"):
            value = getattr(node, name.removeprefix("_raw"))
            if isinstance(value, tensor_type) or isinstance(value, tuple) and any(isinstance(v, tensor_type) for v in value):
                names.add(name.removeprefix("_raw_saved_"))
    return names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_hooks(name: str) -> None:
    op = OPERATORS[name]
    more, names = [], []
    for mine, theirs, what in calls(op):
        try:
            _, expected, wanted = gradients(Library(torch), theirs, True)
            plain, _, _ = gradients(Library(trt), mine, False)
        except (RuntimeError, TypeError, AttributeError):  # a sample without gradient, a reference that takes PyTorch's tensors alone: the other tests' matter
            continue
        hooked, count, call = gradients(Library(trt), mine, True)
        assert len(plain) == len(hooked) and all(equal(a, b) for a, b in zip(plain, hooked)), f"the hooks change the gradient of {what}"
        if count > expected:
            more.append(f"({what}): {count}, PyTorch {expected}")
        for a, b in zip(call.outputs, wanted.outputs):
            if type(a.grad_fn).__name__ == type(b.grad_fn).__name__:
                known = {n.removeprefix("_raw_saved_") for n in dir(b.grad_fn) if n.startswith("_raw_saved_")}
                if unknown := saved_names(a.grad_fn, trt.Tensor) - known:
                    names.append(f"({what}): {type(a.grad_fn).__name__} has {sorted(unknown)}, PyTorch {sorted(known)}")
    assert bool(more) == (name in PACKS_MORE), "packs more: " + "\n".join(more) or "is no exception any more"
    assert bool(names) == (name in OTHER_NAMES), "other names: " + "\n".join(names) or "is no exception any more"
