"""The calls of tests/names give PyTorch's results, and enough of each module's names have one.

The operators of PyTorch's database are left to tests/conformance, which runs all their samples; `python -m tools.name_report` runs everything.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch")

import tensorrt_lite as trt  # noqa: E402

from . import compare, surface, written  # noqa: E402

# Parts of a module's names that are here and have a call; what `torch` lacks, docs/names.md lists: quantized tensors and other libraries' kernels most of all.
LEAST = dict.fromkeys(surface.MODULES, 0.95) | {"torch": 0.85}


@pytest.mark.parametrize("module", surface.MODULES)
def test_results_agree(module):
    names = [name for owner, name in written.CASES if owner == module and hasattr(surface.owner(trt, module), name)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differing = {name: text for name in names if (text := compare.run(trt, module, name))}
    assert not differing, "\n".join(f"{module}.{name}: {text}" for name, text in differing.items())


@pytest.mark.parametrize("module", surface.MODULES)
def test_enough_names_are_here(module):
    counted, _ = surface.names(torch, module)
    space = surface.owner(trt, module)
    assert len([n for n in compare.callable_names(module) if hasattr(space, n)]) >= LEAST[module] * len(counted)


def test_a_difference_is_found():
    assert surface.difference(torch.ones(2), torch.ones(2)) == ""
    for actual, expected in ((1.0, 1.1), (torch.ones(2), torch.zeros(2)), (torch.ones(2), torch.ones(2, dtype=torch.float64)), ([1], [1, 2]), (1, 1.5), (float("nan"), 1.0)):
        assert surface.difference(actual, expected)
