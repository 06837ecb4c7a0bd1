"""NumPy's names of arguments: axis for dim, keepdims for keepdim, x, a and x1 for input, x2 for other."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

X = trt.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "by_numpy, by_torch",
    [
        (lambda: X.sum(axis=1), lambda: X.sum(dim=1)),
        (lambda: trt.mean(X, axis=0, keepdims=True), lambda: trt.mean(X, dim=0, keepdim=True)),
        (lambda: trt.softmax(X, axis=-1), lambda: trt.softmax(X, dim=-1)),
        (lambda: trt.cat((X, X), axis=1), lambda: trt.cat((X, X), dim=1)),
        (lambda: X.max(axis=1).indices, lambda: X.max(dim=1).indices),
        (lambda: trt.std(x=X, axis=0), lambda: trt.std(X, dim=0)),
        (lambda: trt.sum(a=X), lambda: trt.sum(X)),
        (lambda: trt.add(x1=X, x2=X, alpha=2), lambda: trt.add(X, X, alpha=2)),
        (lambda: trt.argsort(X, axis=0), lambda: trt.argsort(X, dim=0)),  # compositions in Python
        (lambda: X.diff(axis=0), lambda: X.diff(dim=0)),
        (lambda: trt.quantile(a=X, q=0.5, axis=1, keepdims=True), lambda: trt.quantile(X, 0.5, dim=1, keepdim=True)),
        (lambda: X.unsqueeze(axis=1), lambda: X.unsqueeze(1)),
        (lambda: X.argmax(**{"".join(("ax", "is")): 0}), lambda: X.argmax(0)),
    ],
)
def test_both_names_give_the_same(by_numpy, by_torch):
    assert trt.equal(by_numpy(), by_torch())


@pytest.mark.parametrize("call", [lambda: X.sum(axis=1, dim=1), lambda: X.sum(axes=1), lambda: X.flip(axis=1), lambda: X.sum(1, axis=1), lambda: X.exp(axis=0)])
def test_names_that_a_function_does_not_have_are_refused(call):
    with pytest.raises(TypeError, match="argument|keyword"):
        call()


def test_a_function_keeps_arguments_of_such_names():
    a, b = trt.ones(2, 3), trt.ones(3, 2)
    assert trt.equal(trt.tensordot(a=a, b=b, dims=1), a @ b)
