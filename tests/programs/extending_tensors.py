"""Extending: __torch_function__ on classes and subclasses, modes, __torch_dispatch__ logging, custom operators of torch.library, opcheck."""

import functools

import numpy as np
import torch
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

HANDLED_FUNCTIONS = {}


def implements(torch_function):
    def decorator(func):
        functools.update_wrapper(func, torch_function)
        HANDLED_FUNCTIONS[torch_function] = func
        return func

    return decorator


class ScalarTensor:
    def __init__(self, N, value):
        self._N, self._value = N, value

    def __repr__(self):
        return f"ScalarTensor(N={self._N}, value={self._value})"

    def tensor(self):
        return self._value * torch.eye(self._N)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED_FUNCTIONS or not all(issubclass(t, torch.Tensor | ScalarTensor) for t in types):
            return NotImplemented
        return HANDLED_FUNCTIONS[func](*args, **(kwargs or {}))


@implements(torch.mean)
def mean(input):
    return float(input._value) / input._N


@implements(torch.add)
def add(input, other):
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
        return ScalarTensor(input._N, input._value + other._value)
    return torch.add(*(t.tensor() if isinstance(t, ScalarTensor) else t for t in (input, other)))


class MetadataTensor(torch.Tensor):
    @staticmethod
    def __new__(cls, data, metadata=None, **kwargs):
        return torch.as_tensor(data, **kwargs).as_subclass(cls)

    def __init__(self, data, metadata=None, **kwargs):
        self.metadata = metadata

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        found = [a.metadata for a in args if isinstance(a, cls) and hasattr(a, "metadata")]
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, cls) and found:
            out.metadata = found[0]
        return out


class LoggingTensor(torch.Tensor):
    """Holds a tensor and notes every operator that reaches the dispatcher."""

    log = []

    @staticmethod
    def __new__(cls, elem):
        r = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), dtype=elem.dtype, layout=elem.layout, device=elem.device, requires_grad=elem.requires_grad
        )
        r.elem = elem.detach()
        return r

    def __repr__(self):
        return f"LoggingTensor({self.elem.tolist()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrap = lambda t: t.elem if isinstance(t, cls) else t  # noqa: E731
        wrap = lambda t: cls(t) if isinstance(t, torch.Tensor) else t  # noqa: E731
        cls.log.append(str(func))
        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))


class CountFunctions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class CountOperators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[str(func)] = self.counts.get(str(func), 0) + 1
        return func(*args, **(kwargs or {}))


@torch.library.custom_op("tutorial::numpy_sort", mutates_args=())
def numpy_sort(x: torch.Tensor, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    order = np.argsort(-x.numpy() if descending else x.numpy(), axis=-1, kind="stable")
    return torch.from_numpy(np.take_along_axis(x.numpy(), order, -1)), torch.from_numpy(order)


@numpy_sort.register_fake
def _(x, descending=False):
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)


numpy_sort.register_autograd(
    lambda ctx, grad, _: (torch.zeros_like(grad).scatter(-1, ctx.saved_tensors[0], grad), None),
    setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(output[1]), ctx.mark_non_differentiable(output[1])) and None,
)


@torch.library.custom_op("tutorial::scale_", mutates_args={"x"})
def scale_(x: torch.Tensor, by: float) -> None:
    x.numpy()[...] *= by


def tutorial_norm(x):
    if has_torch_function((x,)):
        return handle_torch_function(tutorial_norm, (x,), x)
    return x.norm()


def main():
    torch.manual_seed(14)
    s = ScalarTensor(5, 2)
    print(s, torch.mean(s), torch.add(s, s), torch.add(s, torch.ones(5, 5)).sum().item())
    try:
        torch.mul(s, 3)
    except TypeError as error:
        print("TypeError", "no implementation found for 'torch.mul'" in str(error), "ScalarTensor" in str(error))
    m = MetadataTensor([[1.0, 2.0], [3.0, 4.0]], metadata={"owner": "ministry"})
    t = (m + 1).sin().mT @ m
    print(type(t).__name__, t.metadata, type(m[0]).__name__, type(torch.stack([m, m])).__name__, type(m.tolist()).__name__)
    x = LoggingTensor(torch.randn(3, 4))
    y = torch.nn.functional.relu(x @ torch.randn(4, 2)) + 1
    print(type(y).__name__, tuple(y.shape), LoggingTensor.log)
    with CountFunctions() as functions:
        torch.ones(3).add(2).sum(0, keepdim=True)
    print(functions.names)
    layer = torch.nn.Linear(3, 2)
    with CountOperators() as operators:
        layer(torch.ones(5, 3)).sum().backward()
    print({"aten.ones.default", "aten.mm.default", "aten.expand.default"} <= operators.counts.keys(), sum(operators.counts.values()) > 5)
    print(tutorial_norm(torch.ones(4)).item())
    values = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, -1.0]], requires_grad=True)
    out, order = numpy_sort(values, descending=True)
    (out * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    print(out.tolist(), order.tolist(), values.grad.tolist(), torch.ops.tutorial.numpy_sort(values.detach())[0].tolist())
    print(numpy_sort(torch.empty(2, 7, device="meta"))[1].dtype, torch.ops.tutorial.numpy_sort.default)
    print(
        sorted(
            torch.library.opcheck(
                numpy_sort, (torch.randn(3, 4, requires_grad=True),), test_utils=("test_schema", "test_autograd_registration", "test_faketensor")
            ).values()
        )
    )
    z = torch.ones(3)
    scale_(z, 2.5)
    print(z.tolist(), z._version)
    with torch.library._scoped_library("tutorial2", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
        print(torch.ops.tutorial2.twice(torch.tensor([1, 2])).tolist())


if __name__ == "__main__":
    main()
