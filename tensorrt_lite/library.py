"""Operators of one's own: defined by a schema, with kernels per device, a fake kernel for meta tensors and a gradient; PyTorch's `torch.library`.

    @trt.library.custom_op("mine::scale", mutates_args=())
    def scale(x: trt.Tensor, factor: float) -> trt.Tensor:
        return x * factor

    @scale.register_kernel("cuda")       # another implementation for one device
    @scale.register_fake                 # shapes and dtypes, for meta tensors
    scale.register_autograd(backward, setup_context=setup_context)

A call checks its arguments by the schema and goes to the kernel of its tensors' device; `trt.ops.mine.scale` is the operator by name. Names belong
to the process: `custom_op` replaces an operator of its name, `define` refuses it. examples/custom_operator.py has a CUDA kernel of one's own,
examples/extension operators in C++.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, overload

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule
import tensorrt_lite._declared.schema as _schema
from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core import python_key as _python_key
from tensorrt_lite._names.listing import alias_in_force
from tensorrt_lite._declared.schema import Schema
from tensorrt_lite._names.listing import public as _public

_amp_state = LazyModule("tensorrt_lite.amp._state")
_absent = LazyModule("tensorrt_lite.compat.absent")
_autocast_mode = LazyModule("tensorrt_lite.amp.autocast_mode")
_declared_aten = LazyModule("tensorrt_lite._declared.aten")
_keys = LazyModule("tensorrt_lite._declared.dispatch_keys")
_functions = LazyModule("tensorrt_lite._transforms.functions")
_graph = LazyModule("tensorrt_lite.autograd.graph")
_opcheck = LazyModule("tensorrt_lite._declared.opcheck")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Generic, ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake", "register_vmap",
           "register_kernel"]  # fmt: skip

_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd"}
_DISPATCH_KEYS = {"PrivateUse1", "CPU", "CUDA", "Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"}
# XPU: packages register for it beside the others; no tensor is on such a device.
_AUTOCAST_KEYS = {"AutocastCPU", "AutocastCUDA", "AutocastXPU"}
_NUMBERS = {name: number for number, name in enumerate(_dispatch.key_names_in_order())}
_ROW_KEYS = {name: _NUMBERS[name] for name in ("Meta", "CPU", "CUDA", "PrivateUse1")}
_PYTHON, _AUTOGRAD, _AUTOCAST, _TRANSFORM = (_NUMBERS[name] for name in ("Python", "Autograd", "Autocast", "FuncTorch"))
_ALL = len(_NUMBERS)
_row_kernels: dict[str, dict[str, Callable[..., Any]]] = {}  # of the library's own operators, by row: what was registered by key
_fallbacks: dict[str, Callable[..., Any]] = {}  # by key: f(operator, *args, **kwargs)
_operators: dict[str, dict[str, dict[str, Operator]]] = {}  # namespace, name, overload


class Operator:
    """One overload of an operator: callable, checked by its schema, and dispatched by the table that all operators are in."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._function: Any = None
        self._opaque = False  # of custom_op: gradients need a formula, results are no views
        self._disabled: set[str] = set()
        self._autocast: dict[str, Any] = {}  # {key of a device: the dtype that autocast casts to}
        self._row = _dispatch.DefinedOperator(schema.name)
        self._fill_backends()
        for number, kernel in ((_PYTHON, self._run_in_python), (_AUTOGRAD, self._run_autograd), (_TRANSFORM, self._run_transformed)):
            self._row.set_kernel(number, kernel)
        self.__name__ = self.name().split("::")[1]

    def name(self) -> str:
        """namespace::name, with the overload behind a point."""
        return self._schema.name

    @property
    def namespace(self) -> str:
        """What stands before the name."""
        return self.name().partition("::")[0]

    @property
    def _opname(self) -> str:
        return _split_name(self.name())[1]

    @property
    def _overloadname(self) -> str:
        return _split_name(self.name())[2]

    @property
    def overloadpacket(self) -> _Packet:
        """All overloads of the name."""
        namespace, name, _ = _split_name(self.name())
        return _Packet(namespace, name, _operators[namespace][name])

    def __repr__(self) -> str:
        name = self.name().replace("::", ".")
        return f"<Operator {name if '.' in self.name() else name + '.default'}: {self._schema}>"

    def __str__(self) -> str:
        name = self.name().replace("::", ".")
        return name if "." in self.name() else name + ".default"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        values = self._schema.bind(args, kwargs)
        # a kernel of its own for Autograd is asked whether or not a tensor requires grad
        return self._row.call(self._tensors(values), values, _ALL, 1 << _AUTOGRAD)

    def redispatch(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The call with the keys of a set alone, what a kernel goes on with below its own key."""
        before = _dispatch._exclude_keys(0)
        _dispatch._exclude_keys(before | keyset.left_out)
        try:
            return self(*args, **kwargs)
        finally:
            _dispatch._exclude_keys(before)

    def _tensors(self, values: list[Any]) -> list[Any]:
        return [t for i in self._schema.tensors for t in _tensors_of(values[i])]

    def _below(self, key: int, values: list[Any]) -> Any:
        """Go on with the keys below one, as its kernel does."""
        return self._row.call(self._tensors(values), values, key)

    # ---- kernels by key

    def _run_autocast(self, values: list[Any]) -> Any:
        device_type = self._key(self._tensors(values)).lower()
        own = self._kernels.get("Autocast" + device_type.upper())
        if own is not None and _amp_state.is_autocast_enabled(device_type):
            positional, keywords = self._given(values)
            return own(*positional, **keywords)
        if device_type.upper() in self._autocast and _amp_state.is_autocast_enabled(device_type):
            return self._call_cast(device_type, values)
        return self._row.call(self._tensors(values), values, _AUTOCAST, 1 << _AUTOGRAD)

    def _run_autograd(self, values: list[Any]) -> Any:
        tensors = self._tensors(values)
        if trt.is_grad_enabled():
            key = self._key(tensors)
            own = self._kernels.get("Autograd" + key) or self._kernels.get("Autograd")
            if own is not None:
                positional, keywords = self._given(values)
                return own(*positional, **keywords)
            if any(t.requires_grad for t in tensors) and (self._opaque or self._backward is not None):
                return self._record(values)
        return self._below(_AUTOGRAD, values)

    def _run_transformed(self, values: list[Any]) -> Any:
        return _functions.run_operator(self, values)

    def _record_at(self, level: Any, values: list[Any]) -> Any:
        """Go on to Autograd, whose Nodes are a level's."""
        return self._row.call(self._tensors(values), values, _TRANSFORM, 1 << _AUTOGRAD)

    def _run_in_python(self, values: list[Any]) -> Any:
        if _python_key.is_transformed(self._tensors(values)):
            return _functions.run_below_level(self, values)
        args, kwargs = self._given(values)
        return self._checked(_python_key.dispatch_object(self, tuple(args), kwargs), values)

    def _call_cast(self, device_type: str, values: list[Any]) -> Any:
        """The call with autocast off, floating-point tensors of the device in the registered dtype."""
        with _autocast_mode.autocast(device_type, enabled=False):
            positional, keywords = self._given(_autocast_mode._cast(values, device_type, self._autocast[device_type.upper()]))
            return self(*positional, **keywords)

    @staticmethod
    def _key(tensors: list[Any]) -> str:
        found = {t.device.type for t in tensors}
        for device in ("meta", "cuda", "cpu"):
            if device in found:
                return _KEYS[device]
        return "CPU" if not found else found.pop().upper()

    def _given(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        count = len(self._schema.positional)
        return values[:count], {a.name: v for a, v in zip(self._schema.arguments[count:], values[count:])}

    def _fill_backends(self) -> None:
        """Put what was registered under the backends' keys: a device's own kernel, or else one for all devices. A custom_op has no such for meta tensors."""
        for key, number in _ROW_KEYS.items():
            if key == "Meta" and self._opaque and not self._schema.returns and "Meta" not in self._kernels:
                self._row.set_kernel(number, functools.partial(self._compute, lambda *args, **kwargs: None))  # meta tensors have nothing to write to
                continue
            candidates = (key,) if key == "Meta" and self._opaque else (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
            found = [self._kernels[c] for c in candidates if c in self._kernels and c not in self._disabled]
            if found and key == "Meta":
                found[0] = functools.partial(_in_fake_kernel, found[0])
            self._row.set_kernel(number, functools.partial(self._compute, found[0]) if found else functools.partial(self._refuse, key))

    def _refuse(self, key: str, values: list[Any]) -> Any:
        if key == "Meta":
            if self._opaque:
                raise RuntimeError(f"There was no fake impl registered for {self.name()}: meta tensors need one. Please use register_fake to add it.")
            raise NotImplementedError(
                f"{self.name()}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. "
                "Please use library.register_fake to add one."
            )
        if key in _fallbacks:
            positional, keywords = self._given(values)
            return _fallbacks[key](self, *positional, **keywords)
        there = ", ".join(sorted(k for k in self._kernels if k not in self._disabled)) or "none"
        raise NotImplementedError(f"Could not run '{self.name()}' with arguments from the '{key}' backend: no kernel is registered for it. Registered: {there}.")

    def _compute(self, kernel: Callable[..., Any], values: list[Any]) -> Any:
        """A backend's kernel, which finds versions counted and its results checked. That of a custom_op records nothing."""
        schema = self._schema
        args, kwargs = self._given(values)
        stop_recording = self._opaque and _python_key.records()
        if schema.written and trt.is_grad_enabled():
            for i in schema.written:
                for t in _tensors_of(values[i]):
                    if t.requires_grad and (t.is_leaf or self._opaque):
                        kind = "leaf Variable" if t.is_leaf else "tensor"
                        raise RuntimeError(f"{self.name()}: a {kind} that requires grad is being used in an in-place operation, which has no gradient.")
        if stop_recording:
            with no_grad():
                result = kernel(*args, **kwargs)
        else:
            result = kernel(*args, **kwargs)
        if schema.written:
            for i in schema.written:
                for t in _tensors_of(values[i]):
                    _graph.increment_version(t)
        return self._checked(result, values)

    def _checked(self, result: Any, values: list[Any]) -> Any:
        returns = self._schema.returns
        if not returns:
            if result is not None:
                raise RuntimeError(f"{self.name()}: the schema returns nothing, but the kernel returned {type(result).__name__}")
            return None
        parts = (result,) if len(returns) == 1 else result
        if not isinstance(parts, (tuple, list)) or len(parts) != len(returns):
            found = f"{len(parts)} values" if isinstance(parts, (tuple, list)) else type(parts).__name__
            raise RuntimeError(f"{self.name()}: expected the kernel to return {len(returns)} values, got {found}. Schema: {self._schema}")
        for kind, part in zip(returns, parts):
            if not kind.accepts(part):
                raise RuntimeError(f"{self.name()}: expected the kernel to return a value of type '{kind}', got {type(part).__name__}. Schema: {self._schema}")
        if self._opaque:
            seen = {_address(t) for i in self._schema.tensors for t in _tensors_of(values[i])}
            for kind, part in zip(returns, parts):
                for t in _tensors_of(part) if kind.is_tensor else ():
                    address = _address(t)
                    if address in seen and address[1]:
                        raise RuntimeError(
                            f"{self.name()}: The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias any "
                            "inputs to this custom operator or other returns. Return a clone of the tensor, or do not return it."
                        )
                    seen.add(address)
        return tuple(parts) if len(returns) > 1 else result

    def _record(self, values: list[Any]) -> Any:
        if self._schema.is_mutable:
            return self._below(_AUTOGRAD, values)
        if self._function is None:
            self._function = _make_function(self)
        args, kwargs = self._given(values)
        flat: list[Any] = []
        for argument, value in zip(self._schema.positional, args):
            flat.extend(value) if argument.type.is_tensor and argument.type.is_list and value is not None else flat.append(value)
        call = _Call(args, kwargs)
        outputs = self._function.apply(*flat, call)
        return call.nest(outputs if isinstance(outputs, tuple) else (outputs,))


class FakeImplCtx:
    """What `get_ctx` gives inside of a fake kernel."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """NotImplementedError: a size that only data tells is a symbolic one, which there is none of."""
        raise NotImplementedError("get_ctx().new_dynamic_size(): there are no symbolic shapes; a fake kernel must know its results' sizes (docs/gaps.md)")


_fake_context: ContextVar[FakeImplCtx | None] = ContextVar("fake_context", default=None)


def _in_fake_kernel(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    token = _fake_context.set(FakeImplCtx())
    try:
        return kernel(*args, **kwargs)
    finally:
        _fake_context.reset(token)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake kernel that runs, None outside of one."""
    return _fake_context.get()


class _Call:
    """What one recorded call passes from its forward to its result: arguments as given, the shape of the outputs."""

    def __init__(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.shape: Any = None

    def flatten(self, result: Any) -> tuple[Any, ...]:
        parts = result if isinstance(result, tuple) else (result,)
        self.shape = isinstance(result, tuple), [len(p) if isinstance(p, (list, tuple)) else None for p in parts]
        return tuple(t for p in parts for t in (p if isinstance(p, (list, tuple)) else (p,)))

    def nest(self, flat: Sequence[Any]) -> Any:
        many, sizes = self.shape
        at, parts = 0, []
        for size in sizes:
            parts.append(flat[at] if size is None else list(flat[at : at + size]))
            at += 1 if size is None else size
        return tuple(parts) if many else parts[0]


def _make_function(op: Operator) -> Any:
    """The autograd.Function of an operator. Its inputs are the positional arguments with lists of tensors spread, and the call."""
    arguments = op._schema.positional

    def nested(flat: Sequence[Any], call: _Call) -> tuple[Any, ...]:
        at, result = 0, []
        for argument, value in zip(arguments, call.args):
            if argument.type.is_tensor and argument.type.is_list and value is not None:
                result.append(list(flat[at : at + len(value)]))
                at += len(value)
            else:
                result.append(flat[at])
                at += 1
        return tuple(result)

    def forward(ctx: Any, *flat: Any) -> Any:
        call = flat[-1]
        ctx._call = call
        result = op._below(_AUTOGRAD, [*call.args, *call.kwargs.values()])
        outputs = call.flatten(result)
        if op._setup is not None:
            if call.kwargs:
                op._setup(ctx, tuple(call.args), call.kwargs, result)
            else:
                op._setup(ctx, tuple(call.args), result)
        return outputs if len(outputs) != 1 else outputs[0]

    def backward(ctx: Any, *grads: Any) -> Any:
        if op._backward is None:
            raise RuntimeError(f"Trying to backward through {op.name()} but no autograd formula was registered. Please use register_autograd to add one.")
        call = ctx._call
        given = call.nest(grads)
        result = op._backward(ctx, *(given if call.shape[0] else (given,)))
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(arguments):
            raise RuntimeError(f"{op.name()}: expected backward to return {len(arguments)} gradients, one for each positional argument, got {len(result)}")
        flat: list[Any] = []
        for argument, value, grad in zip(arguments, call.args, result):
            if argument.type.is_tensor and argument.type.is_list and value is not None:
                if grad is not None and len(grad) != len(value):
                    raise RuntimeError(f"{op.name()}: expected {len(value)} gradients of '{argument.name}', got {len(grad)}")
                flat.extend([None] * len(value) if grad is None else grad)
            else:
                flat.append(grad)
        return (*flat, None)

    made = type(op.__name__, (autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), "_below_transform": True})
    node = made._backward_cls  # type: ignore[attr-defined]
    needs = node.needs_input_grad
    # by argument, as the user's functions see them; a list for a list
    node.needs_input_grad = property(lambda ctx: nested(needs.__get__(ctx), ctx._call))
    return made


def _tensors_of(value: Any) -> list[Any]:
    return [value] if isinstance(value, trt.Tensor) else [t for t in value if isinstance(t, trt.Tensor)] if isinstance(value, (list, tuple)) else []


def _address(t: Any) -> tuple[str, int]:
    return str(t.device), t.untyped_storage().data_ptr()


# ---- by name


class _Packet:
    """The overloads of one name; a call takes the first whose schema the arguments fit."""

    def __init__(self, namespace: str, name: str, overloads: dict[str, Operator]) -> None:
        self._qualified, self._overloads = f"{namespace}::{name}", overloads
        self.__name__ = name

    def overloads(self) -> list[str]:
        """The names of the overloads; "default" is the one without."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("__") or name not in self._overloads:
            raise AttributeError(f"The underlying op of '{self._qualified}' has no overload name '{name}'")
        return self._overloads[name]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if len(self._overloads) == 1:
            return next(iter(self._overloads.values()))(*args, **kwargs)
        errors = []
        for op in self._overloads.values():
            try:
                op._schema.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            return op(*args, **kwargs)
        raise RuntimeError(f"{self._qualified}: no overload takes these arguments:\n" + "\n".join(errors))

    def __repr__(self) -> str:
        return self._qualified.replace("::", ".")


class _Namespace:
    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if self.__name__ in ("aten", "trtl") and not name.startswith("__"):
            found = _declared_aten.packet(name if self.__name__ == "aten" else f"trtl_{name}")
            if found is not None:
                return found
        overloads = _operators.get(self.__name__, {}).get(name)
        if not overloads and self.__name__ == "aten" and not name.startswith("__") and alias_in_force():
            if _absent.asked(sys._getframe(1)) == "load":
                return _absent.AbsentOperator(f"torch.ops.aten.{name}")
        if not overloads:
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        return _Packet(self.__name__, name, overloads)

    def __dir__(self) -> list[str]:
        return sorted(_operators.get(self.__name__, {}))


class _Ops:
    """`trt.ops`: operators as `trt.ops.<namespace>.<name>`; `aten` has the library's own."""

    def __init__(self) -> None:
        self.loaded_libraries: set[str] = set()

    def load_library(self, path: Any) -> None:
        """Load a shared library that registers operators through tensorrt_lite.h (docs/extensions.md). OSError for one that does not, as those of PyTorch's
        C++ operators."""
        import tensorrt_lite._extension as _extension

        _extension.load_library(path)
        self.loaded_libraries.add(str(path))

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Namespace(name)


ops = _Ops()
_waiting_fakes: dict[str, Callable[..., Any]] = {}  # by the name of an operator that is not defined yet


def _split_name(qualname: str) -> tuple[str, str, str]:
    namespace, separator, rest = qualname.partition("::")
    name, _, overload = rest.partition(".")
    if not separator or not namespace or not name:
        raise ValueError(f"Expected qualname to be of form `{{namespace}}::{{name}}`, got {qualname}.")
    return namespace, name, overload or "default"


def _define(schema: Schema) -> Operator:
    namespace, name, overload = _split_name(schema.name)
    overloads = _operators.setdefault(namespace, {}).setdefault(name, {})
    if overload in overloads or namespace == "aten" and name in trt._ops.FUNCTIONS:
        raise RuntimeError(f"Tried to register an operator ({schema}) with the same name and overload name multiple times: it is {overloads.get(overload, 'built in')}")
    op = overloads[overload] = Operator(schema)
    fake = _waiting_fakes.pop(f"{namespace}::{name}", None)
    if fake is not None:
        impl(op, "Meta", fake)
    return op


def _replace(schema: Schema) -> Operator:
    """Define an operator; one of the name that the program has defined before becomes the new one, for those who hold it, too."""
    namespace, name, overload = _split_name(schema.name)
    before = _operators.get(namespace, {}).get(name, {}).pop(overload, None)
    if before is not None:
        before._row.release()
    op = _define(schema)
    if before is not None:
        before.__dict__ = op.__dict__
    return op


def _find(op: Any) -> Operator:
    if isinstance(op, CustomOpDef):
        return op._op
    if isinstance(op, Operator):
        return op
    if isinstance(op, _Packet):
        return op.default
    if not isinstance(op, str):
        raise ValueError(f"Expected an operator or the name of one, got {type(op).__name__}")
    namespace, name, overload = _split_name(op)
    try:
        return _operators[namespace][name][overload]
    except KeyError:
        raise RuntimeError(f"operator {op} does not exist") from None


# ---- definitions


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator: `define("mine::scale", "(Tensor x, float factor) -> Tensor")`. RuntimeError where the name is taken or the schema not understood.

    tags are accepted and say nothing here.
    """
    op = _define(_schema.parse(qualname + schema))
    if lib is not None:
        lib._defined.append(op)


def impl(qualname: Any, types: str | Sequence[str], func: Callable[..., Any] | None = None, *, lib: Library | None = None) -> Any:
    """Register the kernel of an operator for devices ("cpu", "cuda", "meta", "default" for all) or dispatch keys ("CPU", "Autograd", ...); a decorator
    without `func`. A kernel for "Autograd" is called while gradients are recorded, one for "AutocastCPU" or "AutocastCUDA" below autocast of that device: it
    turns autocast off before it calls the operator again."""
    keys = [types] if isinstance(types, str) else list(types)
    for key in keys:
        if key not in _KEYS and key not in _DISPATCH_KEYS | _AUTOCAST_KEYS:
            raise ValueError(f"impl: expected a device of {sorted(_KEYS)} or a dispatch key of {sorted(_DISPATCH_KEYS | _AUTOCAST_KEYS)}, got {key!r}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        row = _row_named(qualname)
        if row is not None:
            for key in keys:
                _replace_row_kernel(row, _KEYS.get(key, key), function)
                if lib is not None:
                    lib._implemented.append((row, _KEYS.get(key, key), function))  # type: ignore[arg-type]
            return function
        if isinstance(qualname, str) and qualname.startswith("aten::") and _keys.has_kernel(qualname):
            raise NotImplementedError(f"impl: {qualname} is composed of other operators: register kernels for those (docs/gaps.md)")
        op = _find(qualname)
        for key in keys:
            key = _KEYS.get(key, key)
            op._kernels[key] = function
            if lib is not None:
                lib._implemented.append((op, key, function))
        if _AUTOCAST_KEYS.intersection(keys):
            op._row.set_kernel(_AUTOCAST, op._run_autocast)
        op._fill_backends()
        return function

    if func is None:
        return register
    register(func)
    return None


def _row_named(qualname: Any) -> Any:
    """The library's own operator of a name like "aten::add.Tensor", None of others."""
    if isinstance(qualname, _python_key.Operator):
        return qualname
    if not isinstance(qualname, str) or not qualname.startswith(("aten::", "trtl::")):
        return None

    namespace, name, overload = _split_name(qualname)
    packet = _declared_aten.packet(name if namespace == "aten" else f"trtl_{name}")
    form = None if packet is None else packet._form(overload)
    return form if isinstance(form, _python_key.Operator) else None


def _replace_row_kernel(row: Any, key: str, function: Callable[..., Any] | None) -> None:
    """Put a kernel in the place of the library's own, None: back. It gets the schema's arguments; results that are given are copied to.

    A kernel for Autograd is called where a tensor requires grad, one for Autocast of a device below autocast there. One for CompositeImplicitAutograd or
    CompositeExplicitAutograd is what devices without a kernel would take: the library's own operators have kernels for all."""
    registered = _row_kernels.setdefault(row.row_name, {})
    if function is None:
        registered.pop(key, None)
    else:
        registered[key] = function
    if key in ("CompositeImplicitAutograd", "CompositeExplicitAutograd"):
        return
    family = next((f for f in ("Autograd", "Autocast") if key.startswith(f)), None)
    number = _NUMBERS[family] if family is not None else _ROW_KEYS[key]
    if family is not None:
        of_family = {k: f for k, f in registered.items() if k.startswith(family)}
        _dispatch.skip_row_key(row.row_name, number, fallthrough_kernel in of_family.values())
        if fallthrough_kernel in of_family.values():
            return
        function = functools.partial(_run_of_device, row, family, of_family) if of_family else None
    elif function is fallthrough_kernel:
        raise NotImplementedError(f"impl: {key} is a backend of {row.name()}: there is nothing below it to fall through to")

    def kernel(*arguments: Any) -> Any:
        out = arguments[count] if len(arguments) > count else None
        args, kwargs = _python_key.split_arguments_of_row(row, arguments[:count])
        result = function(*args, **kwargs)  # type: ignore[misc]
        return result if out is None or result is out else out.copy_(result)

    count = len(_python_key.row_arguments(row.row_name))
    _dispatch.register_row_kernel(row.row_name, number, None if function is None else kernel)


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """What `impl` is given in a kernel's place to have calls go on below the key. NotImplementedError where it is called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _run_of_device(row: Any, family: str, kernels: dict[str, Callable[..., Any]], *args: Any, **kwargs: Any) -> Any:
    """The kernel of Autograd or Autocast for the arguments' device. Where there is none for it, the call goes on below the key."""
    key = Operator._key([t for value in (*args, *kwargs.values()) for t in _tensors_of(value)])
    own = kernels.get(family + key) or kernels.get(family)
    enabled = family == "Autograd" or _amp_state.is_autocast_enabled(key.lower())
    if own is not None and enabled:
        return own(*args, **kwargs)
    if family == "Autograd" and trt.is_grad_enabled():
        raise NotImplementedError(f"{row.name()}: a kernel was registered for {sorted(kernels)}, which tensors of {key} that require grad do not have (docs/gaps.md)")
    with _keys.ExcludeKeys(_keys.DispatchKeySet(family + key)):
        return row(*args, **kwargs)


class Library:
    """Definitions or kernels of one namespace: kind "DEF" (the only one that defines it), "FRAGMENT" (defines further operators) or "IMPL" (kernels only).

    dispatch_key: of kernels that do not name one. They last as long as the process, or until `_destroy()`.
    """

    _defining: set[str] = set()

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported library kind: {kind}")
        if ns in ("prim", "prims", "aten") and kind == "DEF":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if ns in self._defining:
                raise RuntimeError(f"Only a single library of kind DEF can be used to register the namespace {ns}; use FRAGMENT for further definitions.")
            self._defining.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[Operator] = []
        self._fallen: list[str] = []
        self._implemented: list[tuple[Operator, str, Any]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define "name(...) -> ..." in this namespace; returns the name."""
        if self.kind == "IMPL":
            raise RuntimeError(f"{self!r} is of kind IMPL: it defines no operators")
        op = _define(_schema.parse(f"{self.ns}::{schema.strip()}"))
        self._defined.append(op)
        return schema.strip().partition("(")[0]

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False) -> None:
        """Register a kernel; dispatch_key as `impl` takes it, the library's where it is empty, CompositeImplicitAutograd where both are."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name if not isinstance(op_name, str) or "::" in op_name else f"{self.ns}::{op_name}"
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        impl(name, key, functools.partial(_with_keyset, fn) if with_keyset and fn is not fallthrough_kernel else fn, lib=self)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """What operators of the program without a kernel for a device call: fn(operator, *args, **kwargs). For libraries of the namespace "_".

        dispatch_key: "CPU", "CUDA", "Meta" or "PrivateUse1", the library's where it is empty. The library's own operators have kernels for all devices.
        """
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(f"Fallback can only be registered using library fragment on the global namespace \"_\" but it is {self.ns}")
        if key not in _ROW_KEYS:
            raise NotImplementedError(f"fallback: expected a key of {sorted(_ROW_KEYS)}, got {key!r} (docs/gaps.md)")
        if fn is fallthrough_kernel:
            raise NotImplementedError(f"fallback: there is nothing below {key} to fall through to")
        _fallbacks[key] = functools.partial(_fallback_with_keyset, fn) if with_keyset else fn
        self._fallen.append(key)

    def _destroy(self) -> None:
        """Take back what was defined and registered."""
        for op, key, function in self._implemented:
            if isinstance(op, _python_key.Operator):
                _replace_row_kernel(op, key, None)
            elif op._kernels.get(key) is function:
                del op._kernels[key]
                op._fill_backends()
        for op in self._defined:
            namespace, name, overload = _split_name(op.name())
            overloads = _operators.get(namespace, {}).get(name, {})
            if overloads.get(overload) is op:  # and not one that replaced it
                del overloads[overload]
                op._row.release()
            if not overloads:
                _operators.get(namespace, {}).pop(name, None)
        if self.kind == "DEF":
            self._defining.discard(self.ns)
        for key in self._fallen:
            _fallbacks.pop(key, None)
        self._implemented, self._defined, self._fallen = [], [], []


def _with_keyset(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call with the tensors' keys as its first argument."""
    keys = _keys.DispatchKeySet()
    for t in [t for value in (*args, *kwargs.values()) for t in _tensors_of(value)]:
        keys |= _keys.keys_of(t)
    return function(keys, *args, **kwargs)


def _fallback_with_keyset(function: Callable[..., Any], op: Operator, *args: Any, **kwargs: Any) -> Any:
    return _with_keyset(lambda keys, *given, **named: function(keys, op, *given, **named), *args, **kwargs)


# ---- custom operators


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """`Library(...)` for a block of code, after which what it defined and registered is taken back."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None, tags: Any = ()) -> str:
    """The schema of an annotated function: "(Tensor x, float s=2.0) -> Tensor". ValueError naming a parameter without a type the schema knows."""
    return _schema.infer(prototype_function, mutates_args, op_name or "")


@overload
def custom_op(
    name: str, fn: Callable[_P, _R], /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None, schema: str | None = None,
    tags: Any = None,
) -> _Defined[_P, _R]: ...  # fmt: skip


@overload
def custom_op(
    name: str, fn: None = None, /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None, schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[_P, _R]], _Defined[_P, _R]]: ...  # fmt: skip


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make an operator of a function with annotated parameters; a decorator where `fn` is not given.

    name: "namespace::name"; mutates_args: the names of the tensors it writes, or "unknown"; device_types: "cpu", "cuda" or several, of the tensors that
    `fn` takes (all by default); schema: "(Tensor x) -> Tensor" in place of the annotations. Results must be fresh tensors. One of the same name is
    replaced. ValueError for parameters without a type.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema if schema is not None else _schema.infer(function, mutates_args)
        parsed = _schema.parse(name + text)
        if schema is not None:
            wanted = {a.name for a in parsed.arguments if a.type.written}
            told = wanted if mutates_args == "unknown" else {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
            if told != wanted:
                raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}`: the schema says that {sorted(wanted)} are written")
        op = _replace(parsed)
        op._opaque = True
        return CustomOpDef(op, function, device_types)

    return make if fn is None else make(fn)


class CustomOpDef:
    """The operator that `custom_op` made: callable, and where kernels, the fake kernel and the gradient are registered."""

    def __init__(self, op: Operator, function: Callable[..., Any], device_types: Any) -> None:
        self._op, self._init_fn = op, function
        self._opoverload = op
        functools.update_wrapper(self, function)
        self.register_kernel(device_types)(function)

    @property
    def _qualname(self) -> str:
        return self._op.name()

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._op.name()})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Another implementation for "cpu", "cuda", a list of them or (None) every device; a decorator without `fn`."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What the result looks like: called with meta tensors, returns meta tensors of its shapes and dtypes."""
        return register_fake(self, fn)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """The gradient; see `library.register_autograd`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """What autocast casts to; see `library.register_autocast`."""
        register_autocast(self, device_type, cast_inputs)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """The rule for vmap, func(info, in_dims, *args) -> (output, out_dims); also as a decorator. See `library.register_vmap`."""
        return register_vmap(self, func)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> _Restore:
        """Switch a device's kernel off or on; also a context manager that restores it. Without it the one for all devices is used."""
        key = _KEYS.get(device_type, device_type)
        before = key not in self._op._disabled
        (self._op._disabled.discard if enabled else self._op._disabled.add)(key)
        self._op._fill_backends()
        return _Restore(self, device_type, before)


if TYPE_CHECKING:

    class _Defined(CustomOpDef, Generic[_P, _R]):
        """What `custom_op` gives, for checkers: it is called like the function."""

        def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


class _Restore:
    def __init__(self, op: CustomOpDef, device_type: str, before: bool) -> None:
        self._arguments = op, device_type, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        op, device_type, before = self._arguments
        op.set_kernel_enabled(device_type, before)


def register_kernel(op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Register an operator's implementation for devices, None for all; a decorator without `func`."""
    wanted: Any = "default" if device_types is None else [device_types] if isinstance(device_types, str) else list(device_types)
    for device in wanted if isinstance(wanted, list) else ():
        if device not in _KEYS:
            raise ValueError(f"register_kernel: expected devices of {sorted(_KEYS)}, got {device!r}")
    found = _row_named(op) or _find(op)
    if func is None:
        return impl(found, wanted, lib=lib)
    impl(found, wanted, func, lib=lib)
    return func


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None, allow_override: bool = True) -> Any:
    """Register what meta tensors get: a function with the operator's arguments that returns tensors of the result's shapes and dtypes. For the name of
    an operator that is not defined yet it waits for the definition (libraries of operators that could not be loaded register theirs)."""
    if func is None:
        return lambda function: register_fake(op, function, lib=lib)
    row = _row_named(op)
    if row is not None:
        impl(row, "Meta", func, lib=lib)
        return func
    if isinstance(op, str) and _split_name(op)[1] not in _operators.get(_split_name(op)[0], {}) and _split_name(op)[0] != "aten":
        _waiting_fakes[op] = func
        return func
    impl(_find(op), "Meta", func, lib=lib)
    return func


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Library | None = None) -> None:
    """Register an operator's gradient.

    backward(ctx, *grads) returns a gradient (or None) for each positional argument, a list for a list of tensors. setup_context(ctx, inputs, output), with
    keyword_only_inputs before output where there are such, keeps what backward needs: ctx.save_for_backward and attributes. RuntimeError for
    operators that write to their arguments. Both are made of differentiable operators where second derivatives are wanted.
    """
    found = _find(op)
    if found._schema.is_mutable:
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator {found.name()} with schema {found._schema}. Please create a functional operator and register an autograd formula for that.")
    for argument in found._schema.arguments:
        if argument.kwarg_only and argument.type.is_tensor:
            raise NotImplementedError(f"register_autograd with kwarg-only Tensor args: {argument.name} of {found.name()}")
    found._backward, found._setup = backward, setup_context


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Have autocast on a device type, "cpu" or "cuda", call the operator with its floating-point tensors (no float64) cast to the dtype `cast_inputs`.

    The operator's kernels and its gradient then run with autocast off. ValueError for another device type.
    """
    if not isinstance(device_type, str) or device_type not in ("cpu", "cuda"):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    found = _find(op)
    found._autocast[device_type.upper()] = cast_inputs
    found._row.set_kernel(_AUTOCAST, found._run_autocast)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Register the rule for vmap of an operator: func(info, in_dims, *args, **kwargs) -> (output, out_dims). Without func, a decorator.

    info.batch_size is the batch's size, info.randomness what vmap was told. in_dims: for each of args the batch's dimension, None where it is the same for all of the
    batch. An operator without a rule is called once for each element of the batch.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _find(op)._vmap = function
        return function

    return register if func is None else register(func)


# ---- checks


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
    test_utils: str | Sequence[str] = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
    raise_exception: bool = True, atol: float | None = None, rtol: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Check that an operator does what it says for these arguments: {test: "SUCCESS" or the exception}.

    test_schema: nothing is written but what the schema names. test_autograd_registration: what results require a gradient get it from what was registered for
    it. test_faketensor: the fake kernel's shapes and dtypes are the result's. test_aot_dispatch_static and test_aot_dispatch_dynamic, which are one test here:
    results and gradients are the same where writes become new values, and the operator and its backward run on fake tensors. "ALL": all of them.
    OpCheckError, a RuntimeError, at the first that fails unless raise_exception is False. ValueError for other tests, or for atol without rtol.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")

    return _opcheck.check(_find(op), args, kwargs or {}, test_utils, raise_exception, {"rtol": rtol, "atol": atol})


def __dir__() -> list[str]:
    return _public(globals())
