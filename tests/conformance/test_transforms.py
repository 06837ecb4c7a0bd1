"""Derivatives inside of vmap equal a loop's for operators of each family (one sample; `python -m tests.conformance.transforms` takes all operators)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from . import opinfo, transforms  # noqa: E402

OPERATORS = [
    "mul", "where", "sum", "prod", "cumprod", "median", "linalg.norm", "var", "kthvalue", "softmax", "gather", "masked_select", "masked_scatter", "index_put", "matmul", "linalg.det", "linalg.slogdet", "linalg.solve",
    "linalg.svdvals", "nn.functional.linear", "nn.functional.conv2d", "nn.functional.layer_norm", "nn.functional.cross_entropy", "nn.functional.binary_cross_entropy", "nn.functional.max_pool2d",
    "nn.functional.scaled_dot_product_attention", "nn.functional.embedding",
]  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_derivatives_in_a_batch_equal_a_loops(name: str) -> None:
    listed = transforms.incomplete()
    for key, op in opinfo.entries([name]).items():
        report = transforms.run(op, 1)
        assert key in listed or report.ok, report.failures
        assert report.passed or report.refused or key in listed or not op.supports_autograd


def test_the_list_names_operators() -> None:
    assert set(transforms.incomplete()) <= set(opinfo.entries(["database"]))
