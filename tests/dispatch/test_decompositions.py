"""What a TorchDispatchMode sees of fused operators: PyTorch's operators, forward and backward, each of which can be issued again."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
import tensorrt_lite.nn.functional
from tensorrt_lite.utils import _python_dispatch

torch = pytest.importorskip("torch")
torch_modes = pytest.importorskip("torch.utils._python_dispatch")

ASIDE = {"detach", "empty", "lift_fresh", "tensor", "alias", "scalar_tensor"}  # what differs in how tensors are made and saved
LIBRARIES = {trt: _python_dispatch.TorchDispatchMode, torch: torch_modes.TorchDispatchMode}


def recorder(lib):
    """A mode that notes the calls it sees, with copies of what they get and return."""

    class Recorder(LIBRARIES[lib]):
        def __init__(self):
            super().__init__()
            self.calls = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            given = copied(lib, args), copied(lib, kwargs)
            result = function(*args, **kwargs)
            self.calls.append((function, *given, copied(lib, result)))
            return result

        @property
        def names(self):
            names = [str(function).removeprefix("aten.").rpartition(".")[0] for function, *_ in self.calls]
            return [name for name in names if name not in ASIDE]

    return Recorder()


def copied(lib, x):
    if isinstance(x, lib.Tensor):
        return x.detach().clone(memory_format=lib.preserve_format)
    if isinstance(x, (list, tuple)):
        return type(x)(copied(lib, y) for y in x) if type(x) in (list, tuple) else tuple(copied(lib, y) for y in x)
    return {k: copied(lib, y) for k, y in x.items()} if isinstance(x, dict) else x


def drawn(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def of(lib, x):
    """A tensor of PyTorch's in the library, floating ones with a gradient."""
    y = x.detach().clone() if lib is torch else trt.from_numpy(x.detach().numpy().copy())
    return y.requires_grad_() if x.is_floating_point() else y


def first(result):
    return result[0] if isinstance(result, (tuple, list)) else result


def run(lib, function, inputs, recorded=True):
    """(names forward, names backward, result, gradients, the recorded calls) of a call and its backward pass."""
    given = [of(lib, x) for x in inputs]
    forward, backward = recorder(lib), recorder(lib)
    if not recorded:
        result = first(function(lib, *given))
    else:
        with forward:
            result = first(function(lib, *given))
    wanted = [x for x in given if x.requires_grad]
    grads = ()
    if result.requires_grad:
        one = lib.ones(result.shape, dtype=result.dtype)
        if not recorded:
            grads = lib.autograd.grad(result, wanted, one, allow_unused=True)
        else:
            with backward:
                grads = lib.autograd.grad(result, wanted, one, allow_unused=True)
    return forward.names, backward.names, result, grads, forward.calls + backward.calls


CLASSES = torch.tensor([1, 2])
LOSSES = {
    "cross_entropy": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t), [*drawn((2, 5)), CLASSES]),
    "cross_entropy of a sample": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t), [*drawn((5,)), CLASSES[0]]),
    "cross_entropy of rows": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t), [*drawn((2, 5, 3)), torch.ones(2, 3, dtype=torch.int64)]),
    "cross_entropy of images": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t), [*drawn((2, 5, 3, 2)), torch.ones(2, 3, 2, dtype=torch.int64)]),
    "cross_entropy, none": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t, reduction="none"), [*drawn((2, 5)), CLASSES]),
    "cross_entropy, smoothed": (lambda lib, x, t: lib.nn.functional.cross_entropy(x, t, label_smoothing=0.1, reduction="none"), [*drawn((2, 5)), CLASSES]),
    "nll_loss": (lambda lib, x, t: lib.nn.functional.nll_loss(x, t), [*drawn((2, 5)), CLASSES]),
    "nll_loss of images": (lambda lib, x, t: lib.nn.functional.nll_loss(x, t), [*drawn((2, 5, 3, 2)), torch.ones(2, 3, 2, dtype=torch.int64)]),
    "softmax": (lambda lib, x: lib.softmax(x, -1), drawn((3, 4))),
    "log_softmax": (lambda lib, x: lib.log_softmax(x, 1), drawn((3, 4))),
}
PAIR = drawn((2, 5), (2, 5), seed=1)
PROBABILITIES = [x.sigmoid() for x in PAIR]


def f(name, **options):
    """A function of nn.functional with these options."""
    return lambda lib, *inputs: getattr(lib.nn.functional, name)(*inputs, **options)


PAIRS = {
    **{f"{name}, {reduction}": (f(name, reduction=reduction), PAIR) for name in ("mse_loss", "smooth_l1_loss", "huber_loss") for reduction in ("mean", "sum", "none")},
    "soft_margin_loss": (lambda lib, x: lib.nn.functional.soft_margin_loss(x, lib.ones(2, 5)), PAIR[:1]),
    "binary_cross_entropy_with_logits": (lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x, lib.ones(2, 5) / 2), PAIR[:1]),
    "binary_cross_entropy": (lambda lib, x: lib.nn.functional.binary_cross_entropy(x, lib.ones(2, 5) / 2), PROBABILITIES[:1]),
}
CONVOLUTIONS = {
    "conv1d": (f("conv1d", stride=2, padding=1), drawn((2, 3, 8), (4, 3, 3), (4,))),
    "conv2d": (f("conv2d"), drawn((2, 3, 6, 6), (4, 3, 3, 3), (4,))),
    "conv2d, no bias": (f("conv2d", padding="same"), drawn((2, 3, 6, 6), (4, 3, 3, 3))),
    "conv2d, odd padding": (f("conv2d", padding="same"), drawn((2, 3, 6, 6), (4, 3, 2, 2))),
    "conv2d, groups": (f("conv2d", groups=2, dilation=2), drawn((2, 4, 6, 6), (4, 2, 2, 2), (4,))),
    "conv3d": (f("conv3d"), drawn((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), (3,))),
    "conv_transpose2d": (f("conv_transpose2d", stride=2, output_padding=1), drawn((2, 3, 4, 4), (3, 4, 3, 3), (4,))),
}
NORMS = {
    "batch_norm": (lambda lib, x, w, b: lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), w, b, True), drawn((2, 3, 4, 4), (3,), (3,))),
    "batch_norm, running": (lambda lib, x, w, b: lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), w, b, False), drawn((2, 3, 4, 4), (3,), (3,))),
    "layer_norm": (lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (8,), w, b), drawn((2, 3, 8), (8,), (8,))),
    "layer_norm, plain": (lambda lib, x: lib.nn.functional.layer_norm(x, (3, 8)), drawn((2, 3, 8))),
    "group_norm": (lambda lib, x, w, b: lib.nn.functional.group_norm(x, 2, w, b), drawn((2, 4, 5), (4,), (4,))),
}
POOLS = {
    "max_pool2d": (f("max_pool2d", kernel_size=2), drawn((2, 3, 8, 8))),
    "avg_pool2d": (f("avg_pool2d", kernel_size=2, padding=1, count_include_pad=False), drawn((2, 3, 8, 8))),
    "adaptive_avg_pool2d": (f("adaptive_avg_pool2d", output_size=(2, 3)), drawn((2, 3, 8, 8))),
    "adaptive_max_pool2d": (f("adaptive_max_pool2d", output_size=(2, 3)), drawn((2, 3, 8, 8))),
}
PRODUCTS = {
    "linear": (f("linear"), drawn((2, 3), (4, 3), (4,))),
    "linear of a batch": (f("linear"), drawn((2, 5, 3), (4, 3), (4,))),
    "linear, no bias": (f("linear"), drawn((2, 3), (4, 3))),
    "mm": (lambda lib, a, b: a @ b, drawn((2, 3), (3, 4))),
    "bmm": (lambda lib, a, b: lib.bmm(a, b), drawn((2, 3, 4), (2, 4, 5))),
    "addmm": (lambda lib, c, a, b: lib.addmm(c, a, b), drawn((2, 4), (2, 3), (3, 4))),
    "baddbmm": (lambda lib, c, a, b: lib.baddbmm(c, a, b), drawn((2, 3, 5), (2, 3, 4), (2, 4, 5))),
}
HEADS = drawn((2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 6, 8))
ATTENTION = {
    "attention": (f("scaled_dot_product_attention"), HEADS),
    "causal attention": (f("scaled_dot_product_attention", is_causal=True), HEADS),
    "shared heads": (f("scaled_dot_product_attention", enable_gqa=True), [HEADS[0], HEADS[1][:, :2], HEADS[2][:, :2]]),
}
FAMILIES = {
    "losses": LOSSES, "pairs": PAIRS, "convolutions": CONVOLUTIONS, "norms": NORMS, "pools": POOLS, "products": PRODUCTS, "attention": ATTENTION,
}  # fmt: skip
CALLS = {f"{family}: {name}": call for family, calls in FAMILIES.items() for name, call in calls.items()}


@pytest.mark.parametrize("name", CALLS)
def test_modes_see_pytorchs_operators(name):
    function, inputs = CALLS[name]
    ours, theirs = run(trt, function, inputs), run(torch, function, inputs)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_without_a_mode(name):
    function, inputs = CALLS[name]
    trt.manual_seed(0)
    _, _, result, grads, _ = run(trt, function, inputs)
    trt.manual_seed(0)
    _, _, plain, plain_grads, _ = run(trt, function, inputs, recorded=False)
    trt.testing.assert_close(result, plain)
    for g, p in zip(grads, plain_grads, strict=True):
        trt.testing.assert_close(g, p)


@pytest.mark.parametrize("name", CALLS)
def test_recorded_calls_can_be_issued_again(name):
    function, inputs = CALLS[name]
    for operator, args, kwargs, result in run(trt, function, inputs)[-1]:
        if "generator" in operator.schema:
            continue
        again = operator(*copied(trt, args), **copied(trt, kwargs))
        for x, y in zip(result if isinstance(result, (tuple, list)) else (result,), again if isinstance(again, (tuple, list)) else (again,), strict=True):
            assert x is y is None or not isinstance(x, trt.Tensor) or trt.equal(x.nan_to_num(7), y.nan_to_num(7)), operator


def test_a_row_without_a_name_in_aten_has_a_namespace_and_runs_whole_without_a_mode():
    cross_entropy = trt.ops.trtl.cross_entropy.default
    x, target = trt.randn(3, 4, requires_grad=True), trt.tensor([0, 1, 3])
    assert str(cross_entropy) == "trtl.cross_entropy.default"
    assert cross_entropy.name() == "trtl::cross_entropy"
    loss = cross_entropy(x, target, None, 1, -100, 0.0)[0]
    assert type(loss.grad_fn).__name__ == "CrossEntropyBackward0"
    with recorder(trt) as mode:
        again = cross_entropy(x, target, None, 1, -100, 0.0)[0]
    assert mode.names == ["_log_softmax", "nll_loss_forward"]
    assert type(again.grad_fn).__name__ == "NllLossBackward0"
    trt.testing.assert_close(loss, again)


def test_a_fused_row_called_by_a_mode_is_taken_apart_for_the_mode_outside():
    x, target = trt.randn(2, 5), trt.tensor([0, 1])

    class Replacing(_python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return trt.nn.functional.cross_entropy(args[0], target)

    with recorder(trt) as outer, Replacing():
        x.exp()
    assert outer.names == ["_log_softmax", "nll_loss_forward"]


def test_subclasses_see_the_pieces_of_a_fused_row():
    seen = []

    class Watched(trt.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            seen.append(str(function))
            result = super().__torch_dispatch__(function, types, args, kwargs)
            return result.as_subclass(cls) if isinstance(result, trt.Tensor) else result

    trt.nn.functional.cross_entropy(trt.randn(2, 5).as_subclass(Watched), trt.tensor([0, 1]))
    assert seen == ["aten._log_softmax.default", "aten.nll_loss_forward.default"]


def test_products_of_a_wrapper_whose_batch_broadcasts():
    """Such a product asks whether its operand records."""

    class Wrapper(trt.Tensor):
        @staticmethod
        def __new__(cls, elements):
            made = trt.Tensor._make_wrapper_subclass(cls, elements.shape, dtype=elements.dtype)
            made.elements = elements
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[x.elements if isinstance(x, Wrapper) else x for x in args], **(kwargs or {})))

    a, b = trt.randn(2, 3, 4), trt.randn(1, 4, 5)
    assert trt.equal((Wrapper(a) @ Wrapper(b)).elements, a @ b)
