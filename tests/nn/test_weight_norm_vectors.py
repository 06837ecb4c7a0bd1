"""Weight norms of vectors: each number is a slice of its own, beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 3)])
def test_the_norm_of_a_slice_along_the_dimension(shape) -> None:
    for dim in (0, -1):
        got, wanted = (lib.norm_except_dim(lib.arange(1.0, 1 + 6 if len(shape) > 1 and shape[1] > 1 else 4).reshape(shape), 2, dim) for lib in (trt, torch))
        assert got.reshape(-1).tolist() == pytest.approx(wanted.reshape(-1).tolist(), rel=1e-6)


def test_weight_norm_of_a_layer_norm() -> None:
    def run(lib):
        layer = lib.nn.utils.parametrizations.weight_norm(lib.nn.LayerNorm(3))
        with lib.no_grad():
            layer.parametrizations.weight.original0.copy_(lib.tensor([2.0, 3.0, 4.0]))
        (layer.weight * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
        parts = layer.parametrizations.weight
        return layer.weight.tolist(), parts.original0.grad.tolist(), parts.original1.grad.tolist()

    assert run(trt) == run(torch)
