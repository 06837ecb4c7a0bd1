"""FlopCounterMode counts what PyTorch's counts, by module and operator, forward and backward."""

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils.flop_counter import FlopCounterMode

torch = pytest.importorskip("torch")
from torch.utils.flop_counter import FlopCounterMode as PytorchFlopCounterMode  # noqa: E402



def counted(library, mode, make, shape):
    """{module: {operator: operations}} of a step, and the total."""
    model = make(library.nn)
    x = library.ones(shape, requires_grad=True)
    with mode(display=False) as counter:
        model(x).sum().backward()
    found = {}
    for module, counts in counter.get_flop_counts().items():
        found[module] = {}
        for operator, count in counts.items():
            found[module][str(operator)] = count
    return found, counter.get_total_flops()


MODELS = {
    "perceptron": (lambda nn: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 4), nn.Tanh())), (5, 8)),
    "sequence": (lambda nn: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 3)), (2, 5, 8)),
    "convolutions": (lambda nn: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, stride=2), nn.Flatten(), nn.Linear(32, 5)), (2, 3, 7, 7)),
    "one dimension": (lambda nn: nn.Sequential(nn.Conv1d(3, 6, 3, dilation=2), nn.Conv1d(6, 2, 1, bias=False)), (2, 3, 12)),
}


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_pytorchs(name):
    make, shape = MODELS[name]
    assert counted(trt, FlopCounterMode, make, shape) == counted(torch, PytorchFlopCounterMode, make, shape)


def test_gradients_of_a_grouped_convolution_do_twice_its_work():
    # PyTorch counts the weight's gradient as if the groups were one
    counts, _ = counted(trt, FlopCounterMode, lambda nn: nn.Conv2d(8, 8, 3, groups=4), (2, 8, 5, 5))
    assert counts["Conv2d"] == {"aten.convolution": 2 * 2 * 8 * 9 * 2 * 9, "aten.convolution_backward": 2 * 2 * 2 * 8 * 9 * 2 * 9}


def test_the_table_names_modules_and_operators():
    model = trt.nn.Sequential(trt.nn.Conv2d(1, 2, 3), trt.nn.Flatten(), trt.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        model(trt.ones(1, 1, 4, 4))
    lines = counter.get_table().splitlines()
    assert [line.split()[0] for line in lines if "aten" not in line] == ["Module", "Global", "Sequential", "Sequential.0", "Sequential.2"]
    assert counter.get_flop_counts()["Sequential"][trt.ops.aten.convolution] == 2 * 2 * 4 * 9
