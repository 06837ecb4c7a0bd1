"""Fake tensors: the shapes, dtypes, strides and devices that the program would have, and no memory."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite._subclasses import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException
from tensorrt_lite.utils.flop_counter import FlopCounterMode

F = trt.nn.functional


def test_a_program_larger_than_the_machine():
    with FakeTensorMode():
        x = trt.empty(1 << 20, 1 << 20)
        y = (x @ x + 1).relu().sum(1)
    assert isinstance(y, FakeTensor)
    assert y.shape == (1 << 20,) and y.dtype is trt.float32 and y.device.type == "cpu"


def test_a_device_that_is_not_there():
    with FakeTensorMode():
        x = trt.randn(4, 5, device="cuda")
        y = nn.functional.softmax(x * 2, dim=1)
        assert y.device == trt.device("cuda", 0) or y.device.type == "cuda"
        assert y.to("cpu").device.type == "cpu" and y.to(trt.float16).dtype is trt.float16
        with pytest.raises(RuntimeError, match="found two different devices"):
            y + trt.ones(4, 5)
        assert (y + trt.tensor(1.0)).device.type == "cuda"


def test_a_model_runs_forward_and_backward():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10)).eval()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x = mode.from_tensor(trt.randn(2, 3, 8, 8))
        y = model(x)
        assert isinstance(y, FakeTensor) and y.shape == (2, 10)
        assert mode.from_tensor(model[0].weight) is mode.from_tensor(model[0].weight)


def test_errors_are_the_real_ones():
    with FakeTensorMode(), pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        trt.ones(2, 3).mm(trt.ones(2, 3))


def test_what_depends_on_elements_raises():
    with FakeTensorMode():
        x = trt.ones(3)
        with pytest.raises(DataDependentOutputException):
            x[0].item()
        with pytest.raises(DataDependentOutputException):
            bool(x.sum() > 0)
        with pytest.raises(DynamicOutputShapeException):
            x.nonzero()


def test_real_tensors_are_refused_unless_allowed():
    real = trt.ones(3)
    with FakeTensorMode(), pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors"):
        real + trt.ones(3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(real + trt.ones(3), FakeTensor)
    assert real.tolist() == [1, 1, 1]


def test_gradients_are_fake():
    with FakeTensorMode():
        w = trt.ones(4, 3, requires_grad=True)
        (trt.ones(2, 3) @ w.t()).pow(2).sum().backward()
        assert isinstance(w.grad, FakeTensor) and w.grad.shape == (4, 3)


def test_a_real_tensor_is_made_fake_inside_the_mode():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(trt.ones(3))
        assert not isinstance(x.meta, FakeTensor) and (x * trt.arange(3)).shape == (3,)


def test_views_and_writes():
    with FakeTensorMode():
        x = trt.zeros(2, 6)
        y = x.view(3, 4).t()
        assert y.shape == (4, 3) and y.stride() == (1, 4)
        assert x.add_(1) is x and x._version == 1


def test_operations_are_counted_on_fakes():
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        trt.empty(1000, 2000) @ trt.empty(2000, 3000)
    assert counter.get_total_flops() == 2 * 1000 * 2000 * 3000


def test_deep_copies_are_fake():
    import copy

    with FakeTensorMode() as mode:
        layer = trt.nn.Linear(2, 3)
        copied = copy.deepcopy(layer)
        assert type(copied.weight) is FakeTensor
        assert isinstance(copied.weight, trt.nn.Parameter)
        assert copied.weight.fake_mode is mode
        assert copied(trt.ones(1, 2)).shape == (1, 3)
    outside = copy.deepcopy({"a": layer.weight, "b": layer.weight})
    assert outside["a"] is outside["b"] is not layer.weight
    assert outside["a"].requires_grad


OPTIMIZERS = [
    (trt.optim.SGD, {}), (trt.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), (trt.optim.SGD, {"momentum": 0.9, "fused": True}), (trt.optim.Adam, {}),
    (trt.optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}), (trt.optim.Adam, {"fused": True}), (trt.optim.Adam, {"foreach": True}), (trt.optim.Adam, {"capturable": True}),
    (trt.optim.AdamW, {}), (trt.optim.RMSprop, {"centered": True, "momentum": 0.9}), (trt.optim.Adagrad, {}), (trt.optim.Adadelta, {}), (trt.optim.NAdam, {}), (trt.optim.RAdam, {}),
    (trt.optim.Adamax, {}), (trt.optim.Rprop, {}), (trt.optim.ASGD, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS, ids=lambda x: x.__name__ if isinstance(x, type) else "-".join(x))
def test_optimizers_take_steps(kind, options):
    def steps():
        parameters = [nn.Parameter(trt.ones(4, 3)), nn.Parameter(trt.ones(3))]
        optimizer = kind(parameters, **options)
        for _ in range(2):
            optimizer.zero_grad()
            (parameters[0].sum(1).outer(parameters[1])).pow(2).sum().backward()
            optimizer.step()
        return {name: (x.shape, x.stride(), x.dtype, x.device) for state in optimizer.state.values() for name, x in state.items() if isinstance(x, trt.Tensor)}, parameters

    expected, _ = steps()
    with FakeTensorMode():
        found, parameters = steps()
    assert found == expected
    assert all(isinstance(p, FakeTensor) and isinstance(p.grad, FakeTensor) for p in parameters)


def test_a_step_of_a_model_on_a_device_that_is_not_there():
    with FakeTensorMode():
        model = nn.Sequential(nn.Conv2d(3, 8, 3, device="cuda"), nn.BatchNorm2d(8, device="cuda"), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 36, 10, device="cuda"))
        optimizer = trt.optim.AdamW(model.parameters(), capturable=True)
        loss = F.cross_entropy(model(trt.randn(2, 3, 8, 8, device="cuda")), trt.tensor([1, 2], device="cuda"))
        loss.backward()
        optimizer.step()
        assert loss.device.type == "cuda" and {p.grad.device.type for p in model.parameters()} == {"cuda"}
        assert {x.device.type for state in optimizer.state.values() for x in state.values()} == {"cuda"}


def test_numbers_that_the_program_wrote_are_known():
    with FakeTensorMode():
        count = trt.tensor(2.0)
        count += 1
        assert count.item() == 3 and float(count * 2) == 6 and bool(count > 2)
        assert not isinstance(count.item(), trt.Tensor)
        count.add_(trt.ones(3).sum())
        with pytest.raises(DataDependentOutputException):
            count.item()


def test_a_constant_that_was_written_through_a_view_is_unknown():
    with FakeTensorMode():
        x = trt.tensor([1.0])
        y = x.view(())
        assert y.item() == 1
        x.copy_(trt.rand(1))
        with pytest.raises(DataDependentOutputException):
            y.item()


def test_fakes_of_tensors_over_one_storage_share_one():
    base = trt.zeros(3, 4)
    mode = FakeTensorMode()
    a, b, c = (mode.from_tensor(x) for x in (base, base[1:], trt.zeros(3)))
    assert a.untyped_storage() is b.untyped_storage() is not c.untyped_storage()
    assert b.storage_offset() == 4 and b.stride() == (4, 1)
    assert a.untyped_storage().nbytes() == 48


def test_views_know_their_base_and_count_writes_with_it():
    with FakeTensorMode():
        x = trt.zeros(2, 6)
        y = x.t()[1:]
        assert y._is_view() and y._base is x
        y.add_(1)
        assert x._version == y._version == 1
        assert x.detach()._base is None and x.detach()._version == 1


def test_writes_through_views_are_recorded():
    with FakeTensorMode():
        w = trt.ones(3, requires_grad=True)
        x = trt.zeros(2, 3)
        x[1] = w
        x.sum().backward()
        assert isinstance(w.grad, FakeTensor) and w.grad.shape == (3,)


def test_shapes_change_in_place():
    with FakeTensorMode():
        x = trt.zeros(2, 1, 3)
        assert x.squeeze_(1) is x and x.shape == (2, 3)
        assert x.t_().shape == (3, 2) and x.stride() == (1, 3)
        assert x.unsqueeze_(0) is x
        assert x.shape == (1, 3, 2)
        assert x.resize_(4, 5).shape == (4, 5) and x.add(1).shape == (4, 5)


def test_functions_of_autograd_see_and_give_fakes():
    class Square(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert isinstance(x, FakeTensor) and isinstance(y, FakeTensor)
            return 2 * g * x

    with FakeTensorMode():
        x = trt.ones(3, requires_grad=True)
        Square.apply(x).sum().backward()
        assert isinstance(x.grad, FakeTensor)


def test_what_has_no_strides_is_refused():
    sparse = trt.eye(2).to_sparse()
    with pytest.raises(UnsupportedFakeTensorException, match="sparse"):
        FakeTensorMode().from_tensor(sparse)


@pytest.mark.parametrize(("make", "shape"), [(lambda: nn.LazyLinear(3), (2, 4)), (lambda: nn.LazyConvTranspose1d(3, 2), (2, 4, 5))], ids=["linear", "conv_transpose"])
def test_lazy_modules_get_fake_parameters(make, shape):
    with FakeTensorMode():
        layer = make()
        layer(trt.ones(shape)).sum().backward()
        assert all(isinstance(p, FakeTensor) and isinstance(p, nn.Parameter) and isinstance(p.grad, FakeTensor) and p.device.type == "cpu" for p in layer.parameters())


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: trt.histc(x, 5), (5,)), (lambda x: trt.histogram(x, 4).hist, (4,)), (lambda x: trt.matrix_exp(trt.outer(x, x)), (3, 3)), (lambda x: trt.unravel_index(x.long(), (2, 3))[0], (3,)),
        (lambda x: x.take_along_dim(x.long(), 0), (3,)), (lambda x: trt.nonzero_static(x, size=2), (2, 1)), (lambda x: trt.normal(0.0, 1.0, (2, 3)), (2, 3)), (lambda x: F.max_pool3d(x.expand(1, 3, 3, 3), 2), (1, 1, 1, 1)),
        (lambda x: F.one_hot(x.long(), 4), (3, 4)), (lambda x: F.dropout(x), (3,)), (lambda x: trt.zeros(3).index_put((x > 0,), x), (3,)),
    ],
)  # fmt: skip
def test_operators_that_look_at_elements_have_shapes_without(function, shape):
    with FakeTensorMode():
        y = function(trt.ones(3))
        assert isinstance(y, FakeTensor) and y.shape == shape


def test_two_modes_do_not_mix():
    with FakeTensorMode():
        x = trt.ones(2)
    with FakeTensorMode() as other, pytest.raises(AssertionError, match="Mixing fake modes"):
        other.from_tensor(x)


def test_parameters_and_gradients_are_converted():
    p = nn.Parameter(trt.ones(2))
    p.grad = trt.zeros(2)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(p)
    assert isinstance(fake, nn.Parameter) and isinstance(fake.grad, FakeTensor) and fake.is_leaf and fake.requires_grad
