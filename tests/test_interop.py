"""Beside NumPy and PyTorch in one process: whose tensor an operation returns, and errors instead of endless hand-overs."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensorrt_lite as trt


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), np.sqrt(4)])
def test_a_numpy_scalar_on_the_left_leaves_a_tensor(scalar):
    x = trt.nn.Parameter(trt.tensor([1.0, 3.0]))
    for made, expected in ((scalar * x, [2.0, 6.0]), (scalar + x, [3.0, 5.0]), (scalar - x, [1.0, -1.0]), (scalar / x, [2.0, 2 / 3])):
        assert type(made) is trt.Tensor and made.requires_grad
        trt.testing.assert_close(made.detach(), trt.tensor(expected))
    assert type(scalar < x.detach()) is trt.Tensor


def test_functions_of_numpy_return_tensors():
    x = trt.tensor([0.0, 1.0])
    for made in (np.sin(x), np.add(x, 1), np.sum(x), np.isnan(x)):
        assert type(made) is trt.Tensor
    assert type(np.asarray(x)) is np.ndarray
    with pytest.raises(TypeError):
        np.ones(2) * x


@pytest.mark.parametrize(
    "call",
    [
        lambda ours, theirs: ours + theirs,
        lambda ours, theirs: theirs + ours,
        lambda ours, theirs: ours @ theirs,
        lambda ours, theirs: trt.where(ours > 0, theirs, ours),
        lambda ours, theirs: trt.nn.Linear(2, 2)(theirs),
        lambda ours, theirs: torch.nn.Linear(2, 2)(ours),
        lambda ours, theirs: torch.sin(ours),
        lambda ours, theirs: trt.add(ours, theirs),
    ],
)
def test_tensors_of_both_libraries_do_not_mix(call):
    with pytest.raises(TypeError):
        call(trt.ones(2, 2), torch.ones(2, 2))


@pytest.mark.parametrize("make", [trt.tensor, trt.as_tensor, trt.asarray])
def test_tensors_of_pytorch_are_converted(make):
    for theirs in (torch.arange(4.0).reshape(2, 2), torch.tensor(3), torch.ones(2, dtype=torch.bfloat16)):
        made = make(theirs)
        assert type(made) is trt.Tensor and made.tolist() == theirs.tolist() and str(made.dtype) == str(theirs.dtype)


def test_arrays_compare_elementwise_from_both_sides() -> None:
    np = pytest.importorskip("numpy")

    t, a = trt.arange(3), np.array([0, 5, 2])
    for made, expected in ((t == a, [True, False, True]), (a == t, [True, False, True]), (t != a, [False, True, False]), (a != t, [False, True, False])):
        assert isinstance(made, trt.Tensor) and made.tolist() == expected
    assert (t == np.array(["a"], dtype=object)) is False and (t == None) is False  # noqa: E711
