"""`func.functionalize` beside the plain function and beside PyTorch: results, inputs that are written to, what lies below sees."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.func import functional_call, functionalize, grad, vmap
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

torch = pytest.importorskip("torch")
CHOICES = ["mutations", "mutations_and_views"]


def views(library, x):
    y = x.view(-1)
    y.add_(1)
    z = x[0]
    z.mul_(2)
    out = library.empty(2, 3)
    library.add(x, 1, out=out)
    return y, z, out.t()


def chains(library, x):
    x.t()[1:, 0].sub_(1)
    x.unsqueeze(0).permute(2, 0, 1)[2].copy_(library.zeros(1, 2))
    a, b = x.split(1)
    a.fill_(5)
    b[:, ::2].mul_(b[:, 1:2] + 2)
    x.diagonal().zero_()
    x.flatten().clamp_(max=4)
    return x * 2, a, x.sum()


def steps(library, x):
    for column in x.unbind(1):
        column.add_(column.flip(0))
    x[:, -1] = 7
    x.mul_(library.where(x > 6, 0.5, 1.0))
    x.index_add_(0, library.tensor([1]), x[:1].clone())
    x += x.mean()
    return x.expand(2, 2, 3).sum(0), x[library.tensor([1, 0])]


def complex_parts(library, x):
    z = library.view_as_complex(x[:, :2].contiguous())
    z.mul_(1j)
    library.view_as_real(z)[0].neg_()
    return library.view_as_real(z)


def addressed(library, x):
    """Memory by its addresses, of a value that a write replaced."""
    y = x.t()
    y[1:].mul_(y[:1])
    part = x.as_strided((2,), (1,), x.storage_offset() + 1)
    part.add_(1)
    return part, y.as_strided((2, 2), (1, 2)), y[1:].storage_offset() - x.storage_offset()


def written_view(library, y):
    y = y.clone()
    y[1:].mul_(y[:-1].clone())
    y.view(2, 3)[1].add_(y.view(3, 2)[0, 1])
    return (y * y).sum()


def in_both(function, remove):
    """(arguments and results of PyTorch's plain function, of its functionalize, of ours)"""
    found = []
    for library, transform in (
        (torch, lambda f: f),
        (torch, lambda f: torch.func.functionalize(f, remove=remove)),
        (trt, lambda f: functionalize(f, remove=remove)),
    ):
        x = library.arange(8.0)[2:].reshape(2, 3)
        result = transform(lambda x, library=library: function(library, x))(x)
        found.append([t.tolist() if hasattr(t, "tolist") else t for t in (x, *(result if isinstance(result, tuple) else [result]))])
    return found


@pytest.mark.parametrize("remove", CHOICES)
@pytest.mark.parametrize("function", [views, chains, steps, complex_parts, addressed])
def test_results_and_inputs_are_pytorchs(function, remove):
    plain, theirs, ours = in_both(function, remove)
    assert ours == plain
    if function not in (complex_parts, addressed):  # without views PyTorch writes to the argument there; it loses where its tensors begin
        assert theirs == plain


class Names(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func) + ("(out=)" if kwargs and "out" in kwargs else ""))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("function", [views, chains, steps])
def test_modes_outside_see_functional_operators(function):
    """The one write is that of the argument's new value at the end."""
    with Names() as seen:
        functionalize(lambda x: function(trt, x))(trt.arange(6.0).reshape(2, 3))
    writes = [name for name in seen.names if name.partition(".")[2].partition(".")[0].endswith("_") or "out" in name]
    assert writes == ["aten.copy_.default"] == seen.names[-1:], seen.names


def test_results_share_memory_as_asked():
    f = lambda x: (x.view(-1), x + 1)
    x = trt.ones(2, 3)
    assert functionalize(f)(x)[0].data_ptr() == x.data_ptr()
    assert functionalize(f, remove="mutations_and_views")(x)[0].data_ptr() != x.data_ptr()
    assert functionalize(lambda x: x)(x) is x


@pytest.mark.parametrize("remove", CHOICES)
@pytest.mark.parametrize("transform", ["grad", "hessian", "jvp"])
def test_derivatives_of_writes_through_views(transform, remove):
    """Autograd and forward mode inside take a view to lie where it would without functionalize."""
    found = []
    for library in (trt, torch):
        x = library.arange(1.0, 9.0, dtype=library.float64)[2:]
        f = lambda x, library=library: written_view(library, x)
        derivative = {
            "grad": library.func.grad(f),
            "hessian": library.func.hessian(f),
            "jvp": lambda x, library=library, f=f: library.func.jvp(f, (x,), (x.sin(),))[1],
        }[transform]
        if library is trt:
            found.append(functionalize(derivative, remove=remove)(x).tolist())
        found.append(derivative(x).tolist())
    assert found[0] == found[1] == pytest.approx(found[2]) if transform == "jvp" else found[0] == found[1] == found[2]


def test_autograd_around_and_transforms_inside():
    def f(x):
        y = x * 1
        y[0].mul_(3)
        y.t()[1].add_(x[0])
        return y.square()

    x = trt.randn(2, 2, dtype=trt.float64, requires_grad=True)
    assert trt.autograd.gradcheck(functionalize(f), (x,))
    (ours,) = trt.autograd.grad(functionalize(f)(x).sum(), x)
    (plain,) = trt.autograd.grad(f(x).sum(), x)
    assert trt.equal(ours, plain)
    double = lambda x: x.clone().mul_(2)
    assert functionalize(grad(lambda x: double(x).sum()))(trt.ones(3)).tolist() == [2.0] * 3
    assert functionalize(vmap(double))(trt.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    with pytest.raises(NotImplementedError, match="inside of vmap"):
        vmap(functionalize(double))(trt.ones(2, 3))


def test_a_model_with_buffers():
    """Statistics of a norm are written: among the arguments they are updated, from outside that is refused, as in PyTorch."""
    trt.manual_seed(0)
    model = trt.nn.Sequential(trt.nn.Linear(3, 3), trt.nn.ReLU(inplace=True), trt.nn.BatchNorm1d(3))
    x = trt.randn(4, 3)
    state = {name: t.detach().clone() for name, t in (*model.named_parameters(), *model.named_buffers())}
    ours = functionalize(lambda state, x: functional_call(model, state, (x,)))(state, x)
    with pytest.raises(RuntimeError, match="outside of the function"):
        functionalize(model)(x)
    expected = model(x)
    assert trt.equal(ours, expected.detach()) and trt.equal(state["2.running_mean"], model[2].running_mean)


def test_numbers_and_random_numbers_come_out():
    def f(x):
        x.add_(1)
        return x.sum().item() + (1 if x[0] > 0 else 0), x.clone().normal_()

    trt.manual_seed(0)
    expected = trt.ones(3).normal_()
    trt.manual_seed(0)
    number, drawn = functionalize(f)(trt.zeros(3))
    assert number == 4 and trt.equal(drawn, expected)


def test_custom_operators_write_to_copies():
    @trt.library.custom_op("functionalized::grow", mutates_args={"x"})
    def grow(x: trt.Tensor, by: float) -> None:
        x.add_(by)

    def f(x):
        grow(x[0], 2.0)
        return x * 1

    x = trt.zeros(2, 2)
    assert functionalize(f)(x).tolist() == x.tolist() == [[2.0, 2.0], [0.0, 0.0]]


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
        functionalize(lambda x: x, remove="x")
    with pytest.raises(NotImplementedError, match="changed the shape or the strides"):
        functionalize(lambda x: x.t_())(trt.ones(2, 3))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        functionalize(lambda x: x.expand(2, 3).add_(1))(trt.ones(1, 3))
    kept = []
    functionalize(lambda x: kept.append(x * 1))(trt.ones(2))
    with pytest.raises(RuntimeError, match="was kept beyond its end"):
        kept[0] + 1
    outside = trt.zeros(2)
    with pytest.raises(RuntimeError, match="outside of the function"):
        functionalize(lambda x: outside.add_(x))(trt.ones(2))
    assert outside.tolist() == [0.0, 0.0] and (trt.ones(1) + 1).tolist() == [2.0]


def test_custom_operators():
    number = trt.library.custom_op("functionalized::number", mutates_args=(), schema="(Tensor x) -> Tensor")(lambda x: x * 2)
    number.register_autograd(lambda ctx, g: g * 2)

    @trt.library.custom_op("functionalized::write_", mutates_args=("x",))
    def write(x: trt.Tensor, by: float) -> None:
        x.mul_(by)

    x = trt.ones(3, requires_grad=True)
    functionalize(lambda x: number(x))(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3

    def through_a_view(x):
        write(x.view(3), 3.0)
        return x + 1

    x = trt.ones(3)
    assert functionalize(through_a_view)(x).tolist() == [4.0] * 3 and x.tolist() == [3.0] * 3
