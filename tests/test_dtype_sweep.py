"""`tools.dtype_sweep` on some operators: those whose kernels are chosen from tables by hand. All of them: `python -m tools.dtype_sweep --ops database`."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the samples are PyTorch's (extra `conformance`)")

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = (
    "scatter_reduce", "index_reduce", "scatter", "index_add", "gather", "sort", "topk", "cumsum", "searchsorted", "bincount", "unique",
    "nn.functional.max_pool2d", "nn.functional.grid_sample", "nn.functional.interpolate", "nn.functional.conv2d", "nn.functional.layer_norm", "softmax", "median", "cross", "tril",
    "nn.functional.embedding_bag", "amax", "logcumsumexp", "histc", "fft.fft", "matmul", "linalg.solve",
)  # fmt: skip


def test_no_element_type_ends_the_process():
    ran = subprocess.run(
        [sys.executable, "-m", "tools.dtype_sweep", "--samples", "1", "--ops", ",".join(OPERATORS)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ", 0 ended their process or were not run" in ran.stdout
