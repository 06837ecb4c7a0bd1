"""PyTorch's database of operators: the first sparse samples of every operator that takes a layout, values and gradients (float64, tensors of up to 1,000 elements).

SPARSE_SAMPLES=1000 takes all of them (minutes)."""

from __future__ import annotations

import os
from itertools import islice

import pytest

torch = pytest.importorskip("torch")
methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")

import tensorrt_lite as trt  # noqa: E402

from sparse_compare import LAYOUTS, check, dense_of, name_of, ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
KIND = torch.float64
MOST = 1000
SAMPLES = int(os.environ.get("SPARSE_SAMPLES", "6"))


def samples(op, layout):
    """The sparse samples; of functions of elements, which have none, the dense ones in the layout."""
    try:
        yield from op.sample_inputs_sparse(layout, "cpu", KIND, requires_grad=op.supports_autograd)
        return
    except NotImplementedError:
        pass
    except Exception as error:
        if type(error).__name__ != "SkipTest":
            raise
        return
    for s in op.sample_inputs("cpu", KIND):
        x = s.input
        if not isinstance(x, torch.Tensor) or x.dim() < 2 or not 0 < x.numel() <= MOST:
            continue
        blocks = {"blocksize": tuple(1 if n % 2 else 2 for n in x.shape[-2:])} if "bs" in name_of(layout) else {}
        try:
            s.input = x.to_sparse(layout=layout, **blocks).detach().requires_grad_()
        except RuntimeError:
            continue
        yield s


def function_of(name):
    if name == "to_sparse":
        return trt.Tensor.to_sparse
    found = trt
    for part in name.split("."):
        found = getattr(found, part)
    return found


def gradients(result, inputs, lib):
    dense = result.to_dense() if name_of(result.layout) != "strided" else result
    return lib.autograd.grad((dense * dense).sum(), inputs)


def leaves(*found, kind):
    return [x for x in found if isinstance(x, kind) and x.requires_grad]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples(layout):
    compared = differentiated = 0
    for op in methods.op_db:
        if not op.supports_sparse_layout(getattr(torch, layout)) or op.name.startswith("masked.") or KIND not in op.dtypes:
            continue
        for s in islice(samples(op, getattr(torch, layout)), SAMPLES):
            tensors = (s.input, *s.args, *s.kwargs.values())
            if any(isinstance(x, torch.Tensor) and x.numel() > MOST for x in tensors):
                continue
            try:
                want = op.op(s.input, *s.args, **s.kwargs)
            except (RuntimeError, NotImplementedError):
                continue  # PyTorch refuses its own sample
            i, a, k = ours(s.input, True), ours(s.args, True), ours(s.kwargs, True)
            got = function_of(op.name)(i, *a, **k)
            compared += 1
            if op.name == "randn_like":
                assert (got.layout, tuple(got.shape), got._nnz()) == (ours(want.layout), tuple(want.shape), want._nnz())
                continue
            check(got, want)
            if not want.requires_grad:
                continue
            try:
                expected = [dense_of(g) for g in gradients(want, leaves(*tensors, kind=torch.Tensor), torch)]
            except (RuntimeError, NotImplementedError):
                continue  # nor has it a gradient
            for mine, theirs in zip(gradients(got, leaves(i, *a, *k.values(), kind=trt.Tensor), trt), expected):
                check(mine, theirs, exact_layout=False)
            differentiated += 1
    assert compared > 40 and (differentiated > 2 or layout not in ("sparse_coo", "sparse_csr"))
