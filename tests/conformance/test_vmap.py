"""vmap equals a loop for operators of each family (one sample; `python -m tests.conformance.vmap` takes all operators, and more of their samples)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from . import opinfo, vmap  # noqa: E402

OPERATORS = [
    "add", "where", "lerp", "clamp", "sum", "var", "argmax", "cumsum", "sort", "topk", "softmax", "gather", "scatter_add", "index_put", "index_select", "take", "masked_fill", "reshape", "transpose", "unfold",
    "cat", "stack", "roll", "tril", "nn.functional.pad", "fft.rfft2", "matmul", "bmm", "addmm", "nn.functional.linear", "linalg.solve", "linalg.svd", "linalg.cholesky", "linalg.det", "linalg.pinv", "matrix_exp",
    "nn.functional.conv2d", "nn.functional.conv_transpose1d", "nn.functional.max_pool2d", "nn.functional.interpolate", "nn.functional.batch_norm", "nn.functional.layer_norm",
    "nn.functional.group_norm", "nn.functional.cross_entropy", "nn.functional.nll_loss", "nn.functional.embedding", "nn.functional.scaled_dot_product_attention", "nn.functional.grid_sample", "searchsorted", "einsum",
]  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_vmap_equals_a_loop(name: str) -> None:
    listed = vmap.incomplete()
    for key, op in opinfo.entries([name]).items():
        report = vmap.run(op, 1)
        assert key in listed or report.ok, report.failures
        assert report.passed or report.refused or key in listed


def test_the_list_names_operators() -> None:
    assert set(vmap.incomplete()) <= set(opinfo.entries(["database"]))
