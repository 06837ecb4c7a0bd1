"""Every public name that has a call here gives PyTorch's result; every module has enough of them, and of PyTorch's signatures."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")

import tensorrt_lite as trt  # noqa: E402

from . import compare, surface  # noqa: E402


@pytest.mark.parametrize("module", surface.MODULES)
def test_results_agree(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differing = {
            name: found for name in compare.callable_names(module) if (found := compare.run(trt, module, name)) and name not in compare.known(module)
        }
    assert not differing, "\n".join(f"{module}.{name}: {text}" for name, text in differing.items())
