"""The same seed and data in both libraries: equal weights and masks, equal gradients, losses that stay together.

float32 training of the digits CNN parts from PyTorch's, and PyTorch's from itself, where rounding turns a ReLU or the
choice of a max pool (docs/decisions/seed_parity.md). Until that step it is compared as it is; over all steps the
question is asked in float64, where no decision is so near, and of models without such decisions.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

import tensorrt_lite as trt
from tools.seed_parity import OURS, PYTORCH, Job, build, distance, first_kink, gradients, train


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads(), trt.get_num_threads()
    yield
    torch.set_num_threads(before[0])
    trt.set_num_threads(before[1])


@pytest.fixture(autouse=True)
def bernoulli_from_engine():
    """PyTorch with MKL, on Intel's processors only, takes dropout's masks from a stream of MKL's own."""
    generator = torch.Generator().manual_seed(1)
    torch.empty(10).bernoulli_(0.5, generator=generator)
    if int.from_bytes(bytes(generator.get_state()[16:24].tolist()), "little") == 1:
        pytest.skip("PyTorch takes bernoulli_ from MKL on this processor")


def largest_distance(task: str, dtype: str, steps: int = 50) -> float:
    ours, theirs = (train(Job(library, task, steps=steps, dtype=dtype)).losses for library in (OURS, PYTORCH))
    assert theirs[-1] < 0.9 * theirs[0]  # a model that learns nothing would agree too
    return max(distance(ours, theirs))


@pytest.mark.parametrize("task", ["cnn", "gpt-small"])
def test_initial_weights_and_batches_are_equal_to_the_bit(task):
    (ours, _, draw), (theirs, _, draw_theirs) = (build(lib, Job("", task)) for lib in (trt, torch))
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert np.array_equal(a.numpy(), b.numpy()), name
    # Each library has a stream of its own, which goes on where the weights ended.
    for a, b in zip(draw(), draw_theirs(), strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("task", ["cnn", "gpt-small"])
def test_gradients_of_the_first_step_are_equal(task, dtype, tolerance):
    """Relative to the norm of each parameter's gradient, in the layers' sums of up to 4,096 terms."""
    theirs = gradients(Job(PYTORCH, task, dtype=dtype))
    for name, ours in gradients(Job(OURS, task, dtype=dtype)).items():
        assert np.linalg.norm(ours - theirs[name]) <= tolerance * np.linalg.norm(theirs[name]), name


@pytest.mark.parametrize(("task", "steps"), [("cnn", 15), ("cnn-sgd", 15), ("gpt-small", 30)])
def test_float64_losses_are_equal(task, steps):
    assert largest_distance(task, "float64", steps) < 1e-10


@pytest.mark.parametrize("task", ["cnn-smooth", "gpt-small"])
def test_float32_losses_are_within_a_ten_thousandth_after_50_steps(task):
    assert largest_distance(task, "float32") < 1e-4


def test_the_digits_cnn_stays_with_pytorch_until_a_kink_is_decided_differently():
    step, apart = first_kink(Job(OURS, "cnn", seed=2))
    together = len(apart) if step is None else step + 1  # the loss of a step is from before its decisions
    assert together >= 5
    assert max(apart[:together]) < 1e-5
