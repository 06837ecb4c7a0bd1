"""Sobol' sequences have PyTorch's points, state and scrambling."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.quasirandom import SobolEngine

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("scramble", [{}, {"scramble": True, "seed": 5}], ids=["plain", "scrambled"])
@pytest.mark.parametrize("dimension", [1, 2, 7, 300])
def test_points_are_pytorchs(dimension, scramble):
    ours, theirs = SobolEngine(dimension, **scramble), torch.quasirandom.SobolEngine(dimension, **scramble)
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist() and repr(ours) == repr(theirs)
    for n in (1, 5, 16):
        assert ours.draw(n).tolist() == theirs.draw(n).tolist()
        assert (ours.quasi.tolist(), ours.num_generated) == (theirs.quasi.tolist(), theirs.num_generated)
    for engine in (ours, theirs):
        engine.fast_forward(9)
    assert ours.draw(3, dtype=trt.float64).tolist() == theirs.draw(3, dtype=torch.float64).tolist()
    assert ours.reset().draw_base2(3).tolist() == theirs.reset().draw_base2(3).tolist()
    assert ours.reset().fast_forward(4).draw(2).tolist() == theirs.reset().fast_forward(4).draw(2).tolist()


def test_all_dimensions():
    ours, theirs = SobolEngine(21201), torch.quasirandom.SobolEngine(21201)
    assert trt.from_numpy(theirs.sobolstate.numpy()).equal(ours.sobolstate)
    assert trt.from_numpy(theirs.draw(3).numpy()).equal(ours.draw(3))


def test_without_a_seed_the_default_generator_scrambles():
    trt.manual_seed(3)
    torch.manual_seed(3)
    assert SobolEngine(4, scramble=True).draw(5).tolist() == torch.quasirandom.SobolEngine(4, scramble=True).draw(5).tolist()


def test_out_and_refusals():
    out = trt.empty(0, dtype=trt.float64)
    assert SobolEngine(2).draw(3, out=out, dtype=trt.float64) is out and out.shape == (3, 2)
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(1)
    with pytest.raises(ValueError, match="2\\*\\*30 points"):
        engine.draw(1 << 30)
