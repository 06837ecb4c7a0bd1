"""Module, the base class of every layer and model.

A module owns parameters, buffers and child modules in three ordered registries. Each registry mirrors its entries
into the instance's `__dict__`, so that `self.weight` is a plain attribute read (25 ns) and not a failed lookup
followed by `__getattr__` (300 ns); the registries stay the truth about order and membership. Classes that override
`__getattr__` have registries that mirror nothing. A module without hooks is called through one flag check; the hook
tables are created when somebody first asks for them.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule

from tensorrt_lite._C.core.hints import hinted

from ..parameter import Parameter
import tensorrt_lite.nn.modules._conversion as _conversion
import tensorrt_lite.nn.modules._hooks as _hooks
from ._hooks import RemovableHandle
from ._state import StateDictMixin, _WrappedHook  # noqa: F401 (files of PyTorch's name it here)

_utils = LazyModule("tensorrt_lite.utils")
_compiler = LazyModule("tensorrt_lite.compiler")
_rich_display = LazyModule("tensorrt_lite._interop.rich_display")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T", bound="Module")

_REGISTRIES = ("_parameters", "_buffers", "_modules")
_MIXED_HOOKS = "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
# Values of these types are never registered: they skip the instance checks of __setattr__.
_PLAIN = frozenset((int, float, bool, str, tuple, list, dict))


class _Registry(dict):
    """A dict of one module's parameters, buffers or children that keeps the module's `__dict__` in step.

    It refers to the module weakly, so that a module is freed by reference count alone.
    """

    __slots__ = ("_owner",)
    _pytree_dict = True  # utils._pytree takes it for a dict

    def __init__(self, owner: Module, items: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        if items:
            self.update(items)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None:
            owner.__dict__[name] = value

    def _forget(self, name: str) -> None:
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._forget(name)

    def pop(self, name: str, *default: Any) -> Any:
        present = name in self
        value = super().pop(name, *default)
        if present:
            self._forget(name)
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = super().popitem()
        self._forget(name)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: Any) -> _Registry:  # type: ignore[override,misc]
        self.update(other)
        return self

    def move_to_end(self, name: str) -> None:
        self[name] = super().pop(name)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is a plain dict; Module.__setstate__ gives it its owner.
        return dict, (), None, None, iter(self.items())

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        from copy import deepcopy

        result: dict[str, Any] = {}
        memo[id(self)] = result
        for name, value in self.items():
            result[name] = deepcopy(value, memo)
        return result


def _new_registry(owner: Module, items: dict[str, Any] | None = None) -> dict[str, Any]:
    """The registry of a module; a class with a `__getattr__` of its own, which expects to be asked for every entry, has a plain dict."""
    if type(owner).__getattr__ is Module.__getattr__:
        return _Registry(owner, items)
    return dict(items) if items else {}


def _type_name(value: Any) -> str:
    """The name of a value's type; classes and functions have their own, as they are given where an instance was meant."""
    if isinstance(value, trt.Tensor):
        return value.type()
    kind = value if isinstance(value, type) or hasattr(value, "__qualname__") and hasattr(value, "__module__") else type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _takes_persistent(function: Callable[..., Any]) -> bool:
    import inspect

    return "persistent" in inspect.signature(function).parameters


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line for line in rest])


class Module(StateDictMixin):
    """Base class of all layers and models. Subclasses assign parameters, buffers and modules as attributes in
    `__init__` (after `super().__init__()`) and define `forward`.

    >>> import tensorrt_lite as trt
    >>> class Scale(trt.nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.factor = trt.nn.Parameter(trt.full((size,), 2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale(3)(trt.tensor([1.0, 2.0, 3.0])).tolist()
    [2.0, 4.0, 6.0]
    >>> dict(Scale(3).state_dict())
    {'factor': tensor([2., 2., 2.])}
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    # True once a call may have to run hooks; on the class when a global hook was ever registered.
    _has_hooks: bool = False
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = _new_registry(self)
        state["_buffers"] = _new_registry(self)
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = _new_registry(self)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:
        forward: Callable[..., Any]  # of a subclass: any signature
    else:

        def forward(self, *input: Any) -> Any:
            """The computation done at every call; each subclass defines it."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_hooks:
            return _hooks.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)

    # -- attributes ---------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Reached only when the instance and class dicts lack the name: hook tables on first use, entries that were
        # written behind the registry's back, and errors.
        state = self.__dict__
        if name in _hooks.TABLES and "_parameters" in state:
            if name in _hooks.CALL_TABLES:
                state["_has_hooks"] = True
            table = state[name] = _hooks.TABLES[name]()
            return table
        for registry in _REGISTRIES:
            entries = state.get(registry)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if type(value) in _PLAIN and (
            parameters is None
            or not (name in parameters or name in state["_modules"] or name in state["_buffers"] or name in _REGISTRIES)
        ):
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            if parameters is None:
                raise hinted("init first", AttributeError("cannot assign parameters before Module.__init__() call"))
            self._remove_from("_parameters", name)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            modules = state.get("_modules")
            if modules is None:
                raise hinted("init first", AttributeError("cannot assign module before Module.__init__() call"))
            self._remove_from("_modules", name)
            for hook in _hooks.global_registration["module"].values():
                output = hook(self, name, value)
                if output is not None:
                    value = output
            modules[name] = value
        elif parameters is None:
            if isinstance(value, trt.Tensor) and getattr(value, "_is_buffer", False):
                raise hinted("init first", AttributeError("cannot assign buffer before Module.__init__() call"))
            object.__setattr__(self, name, value)
        elif name in state["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            for hook in _hooks.global_registration["module"].values():
                output = hook(self, name, value)
                if output is not None:
                    value = output
            state["_modules"][name] = value
        elif isinstance(value, trt.Tensor) and getattr(value, "_is_buffer", False):
            self._register_assigned(name, value)
        elif name in state["_buffers"]:
            if value is not None and not isinstance(value, trt.Tensor):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            for hook in _hooks.global_registration["buffer"].values():
                output = hook(self, name, value)
                if output is not None:
                    value = output
            state["_buffers"][name] = value
        elif name in _REGISTRIES:
            for old in state[name]:
                state.pop(old, None)
            state[name] = _new_registry(self, value)
        elif name == "__class__":
            object.__setattr__(self, name, value)
            for registry in _REGISTRIES:
                setattr(self, registry, state[registry])
        else:
            object.__setattr__(self, name, value)

    def _register_assigned(self, name: str, buffer: Any) -> None:
        """A Buffer that was assigned, by `register_buffer`, which subclasses may have overridden without the argument `persistent`."""
        if type(self).register_buffer is Module.register_buffer or _takes_persistent(self.register_buffer):
            self.register_buffer(name, buffer, buffer.persistent)
        elif buffer.persistent:
            self.register_buffer(name, buffer)
        else:
            raise RuntimeError(
                f"Registering a non-persistent buffer on {type(self).__name__}, whose register_buffer() has no argument `persistent`, is not allowed."
            )

    def _remove_from(self, keep: str, name: str) -> None:
        """Removes `name` from the instance and from every registry but `keep`, before it is registered anew."""
        state = self.__dict__
        for registry in _REGISTRIES:
            if registry != keep and registry in state:
                state[registry].pop(name, None)
        if keep != "_buffers":
            state["_non_persistent_buffers_set"].discard(name)
        state.pop(name, None)

    def __delattr__(self, name: str) -> None:
        for registry in _REGISTRIES:
            entries = self.__dict__[registry]
            if name in entries:
                del entries[name]
                self.__dict__.pop(name, None)
                if registry == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _check_name(self, kind: str, name: str, registry: str) -> None:
        """Raises unless `name` may be registered as a `kind` ("parameter", "buffer" or "module")."""
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None reserves the name. Raises KeyError or TypeError as PyTorch does."""
        if "_parameters" not in self.__dict__:
            raise hinted("init first", AttributeError("cannot assign parameter before Module.__init__() call"))
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        for hook in _hooks.global_registration["parameter"].values():
            output = hook(self, name, param)
            if output is not None:
                param = output
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Adds a tensor that is state but not trained; it stays outside the state dict if not persistent."""
        if "_buffers" not in self.__dict__:
            raise hinted("init first", AttributeError("cannot assign buffer before Module.__init__() call"))
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, trt.Tensor):
            raise TypeError(f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        for hook in _hooks.global_registration["buffer"].values():
            output = hook(self, name, tensor)
            if output is not None:
                tensor = output
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        for hook in _hooks.global_registration["module"].values():
            output = hook(self, name, module)
            if output is not None:
                module = output
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of add_module."""
        self.add_module(name, module)

    # -- lookup by dotted path ----------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The descendant at dotted path `target` ("" is self); AttributeError when it is absent or not a Module."""
        module: Any = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{type(module).__name__} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts `module` at dotted path `target`; with strict the path must exist already."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        prefix, _, name = target.rpartition(".")
        parent = self.get_submodule(prefix)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at dotted path `target`; AttributeError when absent."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Any:
        """The buffer at dotted path `target`; AttributeError when absent."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # -- iteration ----------------------------------------------------------------------------------------------

    def _named_members(
        self,
        get_members: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        # Tensors are told apart by identity; their ids stay valid because the modules hold them.
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            if module_prefix:
                module_prefix += "."
            for name, value in get_members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield module_prefix + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of this module and, with recurse, of all descendants, in registration order."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(name, buffer) of this module and, with recurse, of all descendants."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct children, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(dotted name, module) of this module (named `prefix`) and all descendants, depth first."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all descendants, depth first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # -- modes, gradients, conversion ---------------------------------------------------------------------------

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls `fn` on every descendant, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode here and below; raises ValueError unless mode is a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Sets evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets requires_grad of every parameter."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradient of every parameter, or zeroes it in place."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def _apply(self: T, fn: Callable[[Any], Any], recurse: bool = True) -> T:
        """Replaces the data of every parameter, gradient and buffer by fn of it. Parameters keep their identity, so
        that an optimizer made before a conversion still holds them; the flags of `torch.__future__` choose otherwise."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        overwrites, swaps = _conversion.overwrites, _conversion.swaps
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                # fn gets the parameter itself, so that what it writes in place counts as a write
                data, grad = fn(param), param.grad
                if swaps:
                    _swap_converted(self, name, param, data, grad, fn)
                elif data.is_meta == param.is_meta and not overwrites:
                    if data is not param:
                        param.data = data
                    if grad is not None:
                        converted = fn(grad)
                        if converted is not grad:
                            grad.data = converted
                else:
                    # A meta tensor has no storage that could be exchanged, so the parameter is made anew.
                    self._parameters[name] = Parameter(data, param.requires_grad)
                    if grad is not None:
                        self._parameters[name].grad = fn(grad).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def cpu(self: T) -> T:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to Intel's GPUs, which are not here: the error of `Tensor.to("xpu")` where there is one to move."""
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def mtia(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to Meta's accelerators, which are not here: the error of `Tensor.to("mtia")` where there is one to move."""
        return self._apply(lambda t: t.to("mtia" if device is None else device))

    def ipu(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to Graphcore's processors, which are not here: the error of `Tensor.to("ipu")` where there is one to move."""
        return self._apply(lambda t: t.to("ipu" if device is None else device))

    def type(self: T, dst_type: Any) -> T:
        """Converts all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: T) -> T:
        """Converts floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: T) -> T:
        """Converts floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: T) -> T:
        """Converts floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: T) -> T:
        """Converts floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves to `device` without copying values."""
        return self._apply(lambda t: trt.empty_like(t, device=device), recurse)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing but a warning, once in a process: there is no compiler, calls run as they did. Arguments as those of `torch.compile`."""
        _compiler.warn_uncompiled(2)

    def share_memory(self: T) -> T:
        """Move all parameters and buffers to memory that other processes can be given (`Tensor.share_memory_`)."""
        return self._apply(lambda t: t.share_memory_())

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """to(device, dtype, non_blocking), to(dtype, non_blocking), to(tensor, non_blocking), memory_format=: in
        place. Only floating-point and complex values change dtype; TypeError for another target dtype."""
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules might not work as expected "
                "when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t: Any) -> Any:
            target = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else t.dtype
            where = t.device if device is None else device
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(where, target, non_blocking, memory_format=memory_format)
            return t.to(where, target, non_blocking)

        return self._apply(convert)

    # -- hooks --------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) -> None or new args, before every forward; with_kwargs: hook(module, args, kwargs) ->
        None or (args, kwargs)."""
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """hook(module, args, output) -> None or new output, after every forward; with_kwargs: hook(module, args,
        kwargs, output). always_call: also when forward raised."""
        tables = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle(self._forward_hooks, extra_dict=tables)
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            tables[0][handle.id] = True
        if always_call:
            tables[1][handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) -> None or new grad_input, when the gradients with respect to the
        module's inputs are known."""
        if self.__dict__.get("_is_full_backward_hook") is False:
            raise RuntimeError(_MIXED_HOOKS)
        self.__dict__["_is_full_backward_hook"] = True
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, grad_input, grad_output) -> None or new grad_input, at the last Node of the module's first result: grad_input are the gradients
        of that Node's inputs, not of the module's. Deprecated (a warning at the call says so): `register_full_backward_hook`."""
        if self.__dict__.get("_is_full_backward_hook") is True:
            raise RuntimeError(_MIXED_HOOKS)
        self.__dict__["_is_full_backward_hook"] = False
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) -> None or new grad_output, before the module's gradients are computed."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    # -- copy, pickle, print ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for registry in _REGISTRIES:
            for name in state.get(registry, ()):
                state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for registry in _REGISTRIES:
            self.__dict__[registry] = _new_registry(self, self.__dict__.get(registry))
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("training", True)
        if any(self.__dict__.get(table) for table in _hooks.CALL_TABLES):
            self.__dict__["_has_hooks"] = True  # PyTorch's instances have no such mark

    def __copy__(self: T) -> T:
        # The copy has its own tables, so that registering on one does not show on the other; entries are shared.
        result = type(self).__new__(type(self))
        state = self.__getstate__()
        for name, value in state.items():
            if name in _REGISTRIES:
                state[name] = dict(value)
            elif name in _hooks.TABLES or name == "_non_persistent_buffers_set":
                state[name] = value.copy()
        result.__setstate__(state)
        return result

    def _replicate_for_data_parallel(self: T) -> T:
        """A copy without parameters, into which `nn.parallel.replicate` puts those of its device."""
        result = self.__copy__()
        result._parameters = {}  # type: ignore[assignment]
        result.__dict__["_is_replica"] = True
        return result

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the printed module; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): " + _addindent(repr(child), 2) for name, child in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + child_lines
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        return _rich_display.module_html(self)


def _swap_converted(module: Module, name: str, param: Any, data: Any, grad: Any, fn: Callable[[Any], Any]) -> None:
    """Let a parameter and its gradient become what they were converted to: the objects stay, whatever their classes."""
    if data is not param:
        param.grad = None
        try:
            _utils.swap_tensors(param, Parameter(data, param.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from error
    if grad is not None:
        converted = fn(grad)
        if converted is not grad:
            _utils.swap_tensors(grad, converted.requires_grad_(grad.requires_grad))
        param.grad = grad


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """(device, dtype, non_blocking, memory_format) of the arguments of Module.to."""
    memory_format = kwargs.pop("memory_format", None)
    if memory_format is not None and not isinstance(memory_format, trt.memory_format):
        raise TypeError(f"to() received an invalid combination of arguments - got (memory_format={type(memory_format).__name__})")
    if "copy" in kwargs:
        raise RuntimeError(".to() does not accept copy argument")
    if "tensor" in kwargs:
        args = (kwargs.pop("tensor"), *args)
    if args and isinstance(args[0], trt.Tensor):
        other = args[0]
        names: tuple[str, ...] = ("device", "dtype", "non_blocking")
        args = (other.device, other.dtype, *args[1:])
    elif args and isinstance(args[0], trt.dtype):
        names = ("dtype", "non_blocking")
    else:
        names = ("device", "dtype", "non_blocking")
    if len(args) == len(names) + 1 and isinstance(args[-1], bool):  # Tensor.to has it there
        raise RuntimeError(".to() does not accept copy argument")
    if len(args) > len(names):
        raise TypeError(f"to() takes at most {len(names)} positional arguments ({len(args)} given)")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in ("device", "dtype", "non_blocking") or name in given:
            raise TypeError(f"to() received an invalid combination of arguments: '{name}'")
        given[name] = value
    device, dtype, non_blocking = given.get("device"), given.get("dtype"), given.get("non_blocking", False)
    if not isinstance(non_blocking, bool):
        raise TypeError(f"to() received an invalid combination of arguments: non_blocking must be bool, not {type(non_blocking).__name__}")
    if device is not None:
        if not isinstance(device, (str, int, trt.device)):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(device).__name__}), but expected a dtype "
                "of this library (float32, not a NumPy type), a device or a Tensor"
            )
        device = trt.device(device)
    if dtype is not None and not isinstance(dtype, trt.dtype):
        raise TypeError(f"to() received an invalid combination of arguments: dtype={dtype!r}")
    return device, dtype, non_blocking, memory_format


register_module_forward_pre_hook = _hooks.global_registrar("forward_pre", Module)
register_module_forward_hook = _hooks.global_registrar("forward", Module)
register_module_full_backward_pre_hook = _hooks.global_registrar("backward_pre", Module)
register_module_full_backward_hook = _hooks.global_registrar("backward", Module)
register_module_backward_hook = _hooks.global_registrar("non_full_backward", Module)
register_module_parameter_registration_hook = _hooks.registration_registrar("parameter")
register_module_buffer_registration_hook = _hooks.registration_registrar("buffer")
register_module_module_registration_hook = _hooks.registration_registrar("module")
