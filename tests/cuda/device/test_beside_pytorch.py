"""On a card that PyTorch uses, too: a seed's numbers are PyTorch's, those of its second and third call as well."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(trt.cuda.get_device_name().startswith("CUDA emulator") or not torch.cuda.is_available(), reason="needs a card that PyTorch uses")

# Sizes below and above what one grid draws at once.
SIZES = (5, 1000, 3_000_001)
DRAWS = {
    "rand": lambda lib, n: lib.rand(n, device="cuda"),
    "rand of float64": lambda lib, n: lib.rand(n, device="cuda", dtype=lib.float64),
    "randn": lambda lib, n: lib.randn(n, device="cuda"),
    "randn of float16": lambda lib, n: lib.randn(n, device="cuda", dtype=lib.float16),
    "randint": lambda lib, n: lib.randint(0, 1000, (n,), device="cuda"),
    "randint of 64 bits": lambda lib, n: lib.randint(-(1 << 40), 1 << 40, (n,), device="cuda"),
    "randperm": lambda lib, n: lib.randperm(n, device="cuda"),
    "uniform_": lambda lib, n: lib.empty(n, device="cuda").uniform_(-2, 3),
    "normal_": lambda lib, n: lib.empty(n, device="cuda").normal_(2, 3),
    "exponential_": lambda lib, n: lib.empty(n, device="cuda").exponential_(0.5),
    "geometric_": lambda lib, n: lib.empty(n, device="cuda").geometric_(0.3),
    "cauchy_": lambda lib, n: lib.empty(n, device="cuda").cauchy_(),
    "log_normal_": lambda lib, n: lib.empty(n, device="cuda").log_normal_(),
    "random_": lambda lib, n: lib.empty(n, device="cuda", dtype=lib.int32).random_(),
    "bernoulli_": lambda lib, n: lib.empty(n, device="cuda").bernoulli_(0.3),
    "bernoulli": lambda lib, n: lib.bernoulli(lib.arange(n, device="cuda") % 7 / 7),
    "dropout": lambda lib, n: lib.nn.functional.dropout(lib.ones(n, device="cuda"), 0.4),
    "rrelu": lambda lib, n: lib.nn.functional.rrelu(-lib.ones(n, device="cuda"), training=True),
    "multinomial": lambda lib, n: lib.multinomial(lib.arange(1, min(n, 1000) + 1, device="cuda").float(), 3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_give_the_same_numbers(name):
    for n in SIZES:
        found = []
        for lib in (trt, torch):
            lib.manual_seed(20)
            found.append([DRAWS[name](lib, n).cpu().numpy() for _ in range(3)])
        for ours, theirs in zip(*found):
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=2e-3 if ours.dtype == np.float16 else 1e-5, atol=1e-5, err_msg=f"{n}")
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=f"{n}")
