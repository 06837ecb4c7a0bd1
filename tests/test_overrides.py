"""tensorrt_lite.overrides beside torch.overrides: modes, the order of asking, arguments as PyTorch hands them over."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
import pydoc
import threading

import pytest
import torch

import tensorrt_lite as trt
from tensorrt_lite import overrides
from tensorrt_lite.nn import functional as F
from tensorrt_lite.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Log(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        return [(overrides.resolve_name(call[0]) or f"autograd.{call[0].__name__}").removeprefix("tensorrt_lite.") for call in self.calls]


class Foreign:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


# ---- arguments -----------------------------------------------------------------------------------------------------


def test_methods_and_compiled_functions_hand_over_what_the_caller_wrote():
    f, x = Foreign(), trt.ones(2, 2)
    assert trt.sum(f, dim=None) == (trt.sum, (Foreign,), (f,), {"dim": None})
    func, _, args, _ = x.permute(f, 1)
    assert func is trt.Tensor.permute and args[1:] == (f, 1)
    assert trt.add(f, 1)[2:] == ((f, 1), {})
    assert F.linear(f, 1)[2:] == ((f, 1), {})
    assert trt.linalg.norm(f)[2:] == ((f,), {})


def test_functions_that_pytorch_has_in_python_hand_over_defaults_by_name():
    f = Foreign()
    assert F.relu(f) == (F.relu, (Foreign,), (f,), {"inplace": False})
    func, _, args, kwargs = F.cross_entropy(f, 1, reduction="sum")
    assert func is F.cross_entropy and args == (f, 1)
    assert kwargs == {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "sum", "label_smoothing": 0.0}
    assert trt.split(f, 3)[2:] == ((f, 3), {"dim": 0})
    assert trt.einsum("ij->i", f)[2:] == (("ij->i", f), {})
    assert F.pad(f, (1, 1))[2:] == ((f, (1, 1)), {"mode": "constant", "value": None})


def test_a_call_that_does_not_fit_is_handed_over_as_it_is():
    f = Foreign()
    assert F.relu(f, True, 3)[2:] == ((f, True, 3), {}) and F.relu(f, other=1)[2:] == ((f,), {"other": 1})
    assert F.cross_entropy(f)[2:] == ((f,), {}) and F.cross_entropy(target=1, input=f)[2] == (f, 1)


def test_handed_over_arguments_are_pytorchs():
    torch = pytest.importorskip("torch")
    import torch.nn.functional as TF

    def calls(library, functional):
        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, len(types), [a is other for a in args], {k: v is not other and v for k, v in (kwargs or {}).items()}

        other = Other()
        x = library.ones(2, 3)
        yield functional.dropout(other)
        yield functional.interpolate(other, scale_factor=2)
        yield functional.batch_norm(other, None, None, training=True)
        yield functional.layer_norm(other, (3,))
        yield functional.mse_loss(x, other)
        yield functional.softmax(other, dim=1)
        yield functional.embedding(other, x)
        yield functional.conv2d(other, x, stride=2)
        yield functional.gelu(other, approximate="tanh")
        yield functional.scaled_dot_product_attention(other, x, x)
        yield functional.one_hot(other)
        yield library.norm(other)
        yield library.stft(other, 4)
        yield library.meshgrid(other, x)
        yield library.tensordot(other, x)
        yield library.cdist(other, x)
        yield library.block_diag(other, x)
        yield library.unique(other)
        yield library.cat([x, other], dim=1)
        yield x.add(other, alpha=2)
        yield x + other
        yield other + x
        yield x.__rsub__(other)
        yield x @ other
        yield x.new_zeros(other)
        yield x.__getitem__(other)
        yield x < other

    for ours, theirs in zip(calls(trt, F), calls(torch, TF)):
        assert ours[0] == theirs[0] and ours[2:] == theirs[2:], (ours, theirs)


# ---- modes ---------------------------------------------------------------------------------------------------------


def test_a_mode_sees_factories_functions_methods_symbols_and_properties():
    with Log() as log:
        x = trt.zeros(2, 3) + 1
        x.grad = None
        _ = x.shape, x.T, x[0], -x, 2 / x, x == 1
        x += 1
        F.relu(x)
        trt.tensor([1.0])
        trt.randn(2), trt.arange(3)
    expected = "zeros Tensor.add Tensor.grad.__set__ Tensor.shape.__get__ Tensor.T.__get__ Tensor.__getitem__ Tensor.neg Tensor.__rdiv__ Tensor.__eq__"
    assert log.names == [*expected.split(), "Tensor.add_", "nn.functional.relu", "tensor", "randn", "arange"]


def test_calls_inside_a_mode_go_to_the_mode_around_it():
    with Log() as outer, Log() as inner:
        trt.ones(2)
    assert inner.names == outer.names == ["ones"]
    assert overrides._get_current_function_mode() is None


def test_a_mode_may_put_itself_back():
    class Deep(Log):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls.append((func, types, args, kwargs))
            if func is F.mse_loss:
                with self:
                    return (args[0] - args[1]).square().mean()
            return func(*args, **(kwargs or {}))

    with Deep() as mode:
        F.mse_loss(trt.ones(2), trt.zeros(2))
    assert mode.names == ["ones", "zeros", "nn.functional.mse_loss", "Tensor.sub", "Tensor.square", "Tensor.mean"]


def test_a_mode_is_back_after_an_error():
    class Broken(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with Broken() as mode:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                trt.ones(2)
            assert overrides._get_current_function_mode() is mode
    assert trt.ones(2).sum() == 2


def test_modes_are_the_threads_own():
    seen, ready, done = [], threading.Event(), threading.Event()

    def other():
        with Log() as log:
            ready.set()
            assert done.wait(10)
            trt.zeros(3)
        seen.append(log.names)

    thread = threading.Thread(target=other)
    thread.start()
    assert ready.wait(10)
    with Log() as log:
        trt.ones(2)
    done.set()
    thread.join()
    trt.ones(5)
    assert log.names == ["ones"] and seen == [["zeros"]]


def test_a_mode_that_declines_is_an_error_as_in_pytorch():
    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Declines(), pytest.raises(TypeError):
        trt.ones(2)


def test_the_base_mode_changes_nothing():
    with BaseTorchFunctionMode():
        assert (trt.ones(2) + 1).tolist() == [2, 2]
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        trt.ones(2)
    with pytest.warns(UserWarning, match="no longer necessary"):
        assert isinstance(BaseTorchFunctionMode.push(), BaseTorchFunctionMode)


def test_a_mode_comes_before_subclasses():
    order = []

    class Kind(trt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append("class")
            return super().__torch_function__(func, types, args, kwargs)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append("mode")
            return func(*args, **(kwargs or {}))

    x = trt.ones(2).as_subclass(Kind)
    with Mode():
        y = x + 1
    assert order == ["mode", "class"] and type(y) is Kind


def test_autograd_runs_under_a_mode():
    x = trt.ones(3, requires_grad=True)
    with Log() as log:
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert log.names == ["Tensor.mul", "Tensor.sum", "Tensor.backward"]
    y = (x * 2).sum()
    with Log() as log:
        trt.autograd.backward(y)
        trt.ones(1)
    assert log.names[0] == "autograd.backward" and log.names[-1] == "ones" and not {"Tensor.expand", "Tensor.to", "Tensor.mul"} & set(log.names)  # what Nodes do is not the program's


# ---- disabling -----------------------------------------------------------------------------------------------------


def test_disabling_subclasses_and_everything():
    class Kind(trt.Tensor):
        pass

    x = trt.ones(2).as_subclass(Kind)
    with trt._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is trt.Tensor
    assert type(x + 1) is Kind
    with Log() as log:
        with trt._C.DisableTorchFunctionSubclass():
            x + 1
        with trt._C.DisableTorchFunction():
            x * 1
            with trt._C.DisableTorchFunctionSubclass():
                x - 1
        x / 1
    assert log.names == ["Tensor.add", "Tensor.div"]


def test_parameters_override_nothing():
    p = trt.nn.Parameter(trt.ones(2))
    assert type(p + 1) is trt.Tensor and not overrides.has_torch_function((p,))

    class Mine(trt.nn.Parameter):
        pass

    assert type(Mine(trt.ones(2)) * 2) is trt.Tensor


# ---- classes -------------------------------------------------------------------------------------------------------


def test_subclasses_are_asked_before_their_bases():
    asked = []

    class Base(trt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError, match="no implementation found for 'tensorrt_lite.add'"):
        trt.add(trt.ones(2).as_subclass(Base), trt.ones(2).as_subclass(Derived))
    assert asked == ["Derived", "Base"]


def test_a_subclass_may_change_functions_by_identity():
    handled = {}

    class Diagonal(trt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return handled.get(func, super().__torch_function__)(*((args[0],) if func in handled else (func, types, args, kwargs)))

    for function in (trt.mean, trt.Tensor.mean, F.relu, trt.linalg.det, trt.Tensor.shape.__get__, trt.Tensor.mul):
        handled[function] = lambda x: "handled"
    x = trt.ones(2, 2).as_subclass(Diagonal)
    assert [trt.mean(x), x.mean(), F.relu(x), trt.linalg.det(x), x.shape, x * 2, 2 * x] == ["handled"] * 7
    assert type(x + 1) is Diagonal


def test_gradients_are_not_converted_twice():
    class Kind(trt.Tensor):
        pass

    x = trt.ones(2).as_subclass(Kind).detach().requires_grad_()
    (x * 2).sum().backward()
    assert isinstance(x.grad, trt.Tensor) and x.grad.tolist() == [2, 2]


def test_a_declined_symbol_tries_the_reflected_one():
    class Right:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

        def __radd__(self, other):
            return "reflected"

    assert trt.ones(2) + Right() == "reflected"


# ---- functions of the module ---------------------------------------------------------------------------------------


def test_user_functions_take_part():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def scaled(a, b=None):
        return a * 2

    f = Foreign()
    assert scaled(trt.ones(1)).item() == 2
    assert scaled(f, b=3) == (scaled, (Foreign,), (f,), {"b": 3})
    with Log() as log:
        scaled(trt.ones(1))
    assert [c[0] for c in log.calls] == [trt.ones, scaled]


def test_has_and_handle():
    f = Foreign()
    assert overrides.has_torch_function([1, f]) and overrides.has_torch_function_unary(f) and overrides.has_torch_function_variadic(1, f)
    assert not overrides.has_torch_function((trt.ones(1), 1, None, "x"))
    with BaseTorchFunctionMode():
        assert overrides.has_torch_function(())
    assert overrides.handle_torch_function(len, (f,), f, key=1) == (len, (Foreign,), (f,), {"key": 1})
    assert overrides.is_tensor_like(f) and overrides.is_tensor_like(trt.ones(1)) and not overrides.is_tensor_like(1)


def test_redispatch_skips_one_question():
    class Logging(trt.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            cls.seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = trt.tensor([3.0]).as_subclass(Logging)
    assert scaled(x, x).item() == 10
    assert Logging.seen == ["scaled", "mul"]


def test_lists_of_overridable_functions():
    functions = overrides.get_overridable_functions()
    assert trt.add in functions[trt] and F.relu in functions[F] and trt.Tensor.add in functions[trt.Tensor]
    assert functions[trt.Tensor.grad] == [trt.Tensor.grad.__get__]
    testing = overrides.get_testing_overrides()
    assert testing[trt.add](1, 2, alpha=3) == -1
    with pytest.raises(TypeError):
        testing[trt.add](1, 2, 3, 4)
    assert trt.is_tensor in overrides.get_ignored_functions() and trt.add not in overrides.get_ignored_functions()
    assert overrides.is_tensor_method_or_property(trt.Tensor.add) and overrides.is_tensor_method_or_property(trt.Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(trt.add)
    assert overrides.resolve_name(trt.Tensor.shape.__get__) == "tensorrt_lite.Tensor.shape.__get__" and overrides.resolve_name(len) is None


# ---- the public objects --------------------------------------------------------------------------------------------


def test_public_functions_behave_as_functions():
    assert trt.add.__name__ == "add" and trt.add.__module__ == "tensorrt_lite" and trt.Tensor.add.__qualname__ == "Tensor.add"
    assert trt.Tensor.add.__objclass__ is trt.Tensor and not hasattr(trt.add, "__objclass__")
    assert copy.deepcopy(trt.add) is trt.add and pickle.loads(pickle.dumps(F.relu)) is F.relu
    assert pickle.loads(pickle.dumps(trt.Tensor.add, 2)) is trt.Tensor.add
    assert str(inspect.signature(trt.Tensor.add)) == "(self, other, *, alpha=1)"
    assert str(inspect.signature(trt.add)) == "(input, other, *, alpha=1, out=None)"
    assert inspect.isroutine(trt.add) and trt.ones(2).add.__self__ is not None
    trt.add.note = 1
    del trt.add.note
    with pytest.raises(TypeError):
        trt.add()


@pytest.mark.parametrize("path", ["add", "zeros", "linalg.inv", "nn.functional.relu", "nn.functional.interpolate", "special.erf", "fft.fft", "Tensor.add", "Tensor.view"])
def test_help_and_inspect_take_public_functions_for_what_pytorch_s_are(path):
    torch = pytest.importorskip("torch")
    ours, theirs = (functools.reduce(getattr, path.split("."), package) for package in (trt, torch))
    text = pydoc.render_doc(ours, renderer=pydoc.plaintext).splitlines()
    head, wanted = text[0].rpartition(": ")[2], pydoc.render_doc(theirs, renderer=pydoc.plaintext).splitlines()[0].rpartition(": ")[2]
    kind = wanted.partition(" in module ")[0].removesuffix(" " + theirs.__name__)
    assert head == f"{kind}{'' if kind == 'method_descriptor' else ' ' + ours.__name__} in module {ours.__module__}"
    assert text[2] == f"{ours.__name__}{inspect.signature(ours)}" and text[3].strip() == ours.__doc__.splitlines()[0]
    for question in (inspect.isbuiltin, inspect.isfunction, inspect.isroutine, inspect.ismethod, inspect.isclass):
        assert question(ours) == question(theirs), question.__name__
    assert not inspect.iscoroutinefunction(ours) and inspect.unwrap(ours) is not None
    assert copy.deepcopy(ours) is ours and pickle.loads(pickle.dumps(ours)) is ours
    if inspect.isfunction(ours):
        assert inspect.getsource(ours).startswith("def ") and not hasattr(ours, "__self__")


def test_help_of_the_class_lists_compiled_methods_as_methods():
    kinds = {a.name: a.kind for a in inspect.classify_class_attrs(trt.Tensor)}
    assert kinds["add"] == kinds["view"] == kinds["backward"] == "method"
    assert trt.add.__self__ is trt and inspect.getmodule(trt.linalg.inv) is trt.linalg


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.permute(dims=(1, 0)),
        lambda x: trt.permute(x, dims=(1, 0)),
        lambda x: trt.permute(input=x, dims=(1, 0)),
        lambda x: x.reshape(shape=(3, 2)),
        lambda x: x.view(size=(3, 2)),
        lambda x: x[:1].t().expand(size=(3, 2)),
        lambda x: x[:, :1].repeat(repeats=(3, 1))[:3].expand(3, 2),
        lambda x: trt.tile(x[:1], dims=(2, 1)).t(),
        lambda x: x.new_zeros(size=(3, 2)),
        lambda x: x.new_ones(size=(3, 2), dtype=trt.int64),
        lambda x: trt.view_copy(x, size=(3, 2)),
        lambda x: trt.zeros(size=(3, 2)),
    ],
)
def test_sizes_by_keyword(call):
    assert call(trt.arange(6.0).reshape(2, 3)).shape == (3, 2)


def test_two_values_for_one_argument_are_refused():
    x = trt.ones(2, 3)
    for call in (lambda: x.permute(1, 0, dims=(1, 0)), lambda: trt.linalg.norm(A=x, input=x), lambda: x.reshape(shape=(6,), size=(6,))):
        with pytest.raises(TypeError):
            call()


def handed_over(library):
    """For each symbol, whether overrides get `Tensor`'s attribute of the symbol's name, and which of those they get."""
    seen = []

    class Mode(library.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Sub(library.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Other:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return 0

    kind = library.Tensor
    whole, other = library.ones(2, dtype=library.int64), Other()
    result = {}
    for name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul eq ne lt le gt ge iadd isub imul itruediv iand ior ixor".split():
        symbol, call = f"__{name.strip('_')}__", getattr(operator, name)
        made = whole if "and" in name or "or" in name or "shift" in name else library.ones(2)
        for form, pair in (("sub", (made.as_subclass(Sub), made)), ("other", (made, other)), ("left", (other, made))):
            seen.clear()
            call(*pair)
            result[symbol, form] = [getattr(kind, symbol, None) is f for f in seen], [getattr(kind, symbol.strip("_"), None) is f for f in seen]
        with Mode():
            seen.clear()
            call(made, made)
        result[symbol, "mode"] = [getattr(kind, symbol, None) is f for f in seen]
    for symbol, call in {"__neg__": operator.neg, "__pos__": operator.pos, "__abs__": abs, "__invert__": operator.invert, "__rdiv__": lambda x: 2 / x}.items():
        seen.clear()
        call(whole.as_subclass(Sub))
        result[symbol] = [getattr(kind, symbol) is f for f in seen]
    return result


def test_symbols_hand_over_the_objects_that_tables_have_under_their_names():
    ours, theirs = handed_over(trt), handed_over(torch)
    assert ours == theirs
    assert trt.Tensor.__neg__ is trt.Tensor.neg and trt.Tensor.__rdiv__ is trt.Tensor.__rtruediv__


def test_a_plain_method_gets_the_arguments_in_order_and_a_warning():
    class Plain:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self, func, args

    x = Plain()
    with pytest.warns(UserWarning, match="`__torch_function__` as a plain method is deprecated"):
        found, function, args = trt.add(x, 1)
    assert found is x and function is trt.add and args == (x, 1)


def test_a_static_method_gets_the_arguments_in_order():
    class Static:
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            return func, args

    x = Static()
    assert trt.add(x, 1) == (trt.add, (x, 1))
