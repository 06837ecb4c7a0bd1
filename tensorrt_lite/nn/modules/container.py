"""Modules that hold other modules or parameters in order or by name."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from ..parameter import Parameter
from .module import Module, _addindent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self, overload


def _index(position: Any, length: int, name: str = "index") -> int:
    """`position` counted from the front; IndexError when outside."""
    position = operator.index(position)
    if not -length <= position < length:
        raise IndexError(f"{name} {position} is out of range")
    return position + length if position < 0 else position


class Container(Module):
    """The deprecated container of named modules.

    >>> import tensorrt_lite as trt
    >>> class Pair(trt.nn.Container):
    ...     def forward(self, x):
    ...         return self.second(self.first(x))
    >>> Pair(first=trt.nn.Flatten(), second=trt.nn.Linear(4, 3))(trt.randn(5, 2, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Children named "0", "1", ... in order."""

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        for position, module in enumerate(modules):
            self._modules[str(position)] = module

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, position: int) -> Module: ...
        @overload
        def __getitem__(self, position: slice) -> Self: ...

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return self._sliced(position)
        return self._modules[str(_index(position, len(self)))] if self._is_numbered() else self._at(position)

    def _is_numbered(self) -> bool:
        return True

    def _at(self, position: Any) -> Any:
        return list(self._modules.values())[_index(position, len(self))]

    def _sliced(self, position: slice) -> Any:
        return type(self)(list(self._modules.values())[position])

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Numbered):
    """Calls its modules in order, each on the output of the one before.

    Made from modules or from one OrderedDict of names and modules.

    >>> import tensorrt_lite as trt
    >>> model = trt.nn.Sequential(trt.nn.Linear(4, 8), trt.nn.ReLU(), trt.nn.Linear(8, 2))
    >>> model(trt.randn(3, 4)).shape
    torch.Size([3, 2])
    >>> len(model), model[-1]
    (3, Linear(in_features=8, out_features=2, bias=True))
    >>> list(model.state_dict())
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _is_numbered(self) -> bool:
        return False

    def _sliced(self, position: slice) -> Any:
        return type(self)(OrderedDict(list(self._modules.items())[position]))

    def __setitem__(self, position: int, module: Module) -> None:
        setattr(self, list(self._modules)[_index(position, len(self))], module)

    def __delitem__(self, position: Any) -> None:
        names = list(self._modules)
        for name in names[position] if isinstance(position, slice) else [names[_index(position, len(self))]]:
            delattr(self, name)
        # A gap in the numbering would break append.
        self._renumber(self._modules.values())

    def pop(self, key: Any) -> Module:
        """Removes and returns the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Adds a module before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index + n if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_factor(other)
        modules = list(self)
        for _ in range(other - 1):
            self.extend(modules)
        return self

    @staticmethod
    def _check_factor(other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {Sequential}")


class ModuleList(_Numbered):
    """A list of modules that are registered as children.

    Parameters:
        modules (iterable of Modules or None, default None): the modules

    >>> import tensorrt_lite as trt
    >>> layers = trt.nn.ModuleList(trt.nn.Linear(4, 4) for _ in range(3))
    >>> x = trt.randn(2, 4)
    >>> for layer in layers:
    ...     x = layer(x).relu()
    >>> len(list(layers.parameters()))
    6
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __setitem__(self, position: int, module: Module) -> None:
        setattr(self, str(_index(position, len(self))), module)

    def __delitem__(self, position: Any) -> None:
        modules = list(self._modules.values())
        if not isinstance(position, slice):
            position = _index(position, len(self))
        del modules[position]
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def append(self, module: Module | None) -> ModuleList:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules at the end; TypeError unless iterable."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before position `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def pop(self, key: Any) -> Module:
        """Removes and returns the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def __repr__(self) -> str:
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        # Runs of equal modules are printed once, with their range.
        runs: list[list[Any]] = []
        for position, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = position
            else:
                runs.append([position, position, text])
        lines = [
            _addindent(f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}", 2)
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules that are registered as children, in insertion order.

    Parameters:
        modules (dict, sequence of pairs or None, default None): modules by name

    >>> import tensorrt_lite as trt
    >>> heads = trt.nn.ModuleDict({"label": trt.nn.Linear(8, 3), "box": trt.nn.Linear(8, 4)})
    >>> features = trt.randn(2, 8)
    >>> {name: head(features).shape for name, head in heads.items()}
    {'label': torch.Size([2, 3]), 'box': torch.Size([2, 4])}
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes and returns the module under `key`."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a mapping or from (name, module) pairs; TypeError or ValueError otherwise."""
        for key, module in _pairs(modules, "ModuleDict", "update"):
            self[key] = module


def _pairs(values: Any, kind: str, method: str) -> Iterator[tuple[str, Any]]:
    """(key, value) of a mapping or an iterable of pairs, with errors that name the container's method."""
    if not hasattr(values, "__iter__"):
        raise TypeError(
            f"{kind}.{method} should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )
    if hasattr(values, "items"):
        yield from values.items()
        return
    for position, pair in enumerate(values):
        if not hasattr(pair, "__iter__"):
            raise TypeError(f"{kind} update sequence element #{position} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{position} has length {len(pair)}; 2 is required")
        yield pair


def _describe(value: Any) -> str:
    """How a parameter container prints one entry."""
    if not isinstance(value, trt.Tensor):
        return f"Object of type: {type(value).__name__}"
    sizes = "x".join(str(size) for size in value.size())
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{{}} of size {sizes}{device}]"


class ParameterList(Module):
    """A list of parameters (tensors become parameters) and of other values.

    Parameters:
        values (iterable or None, default None): the parameters

    >>> import tensorrt_lite as trt
    >>> scales = trt.nn.ParameterList([trt.ones(2), trt.zeros(3)])
    >>> len(scales), type(scales[0]).__name__
    (2, 'Parameter')
    >>> [name for name, _ in scales.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return type(self)([self[i] for i in range(*position.indices(len(self)))])
        return getattr(self, str(_index(position, len(self))))

    def __setitem__(self, position: int, value: Any) -> None:
        if isinstance(value, trt.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, str(_index(position, len(self))), value)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end."""
        position = self._size
        self._size += 1
        self[position] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end; TypeError unless iterable and not a tensor."""
        if not hasattr(values, "__iter__") or isinstance(values, trt.Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        lines = []
        for position, value in enumerate(self):
            text = _describe(value)
            if isinstance(value, trt.Tensor):
                text = text.format(value.dtype)
            lines.append(f"  ({position}): {text}")
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters (tensors become parameters) and of other values, in insertion order.

    Parameters:
        parameters (dict, sequence of pairs or None, default None): parameters by name

    >>> import tensorrt_lite as trt
    >>> weights = trt.nn.ParameterDict({"left": trt.ones(2), "right": trt.zeros(2, 3)})
    >>> {name: tuple(weight.shape) for name, weight in weights.items()}
    {'left': (2,), 'right': (2, 3)}
    >>> weights["left"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        self._keys[key] = None
        if isinstance(value, trt.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> ParameterDict:
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same entries."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under `key`, set to `default` when absent."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all entries."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes and returns the value under `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last (key, value)."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict with `default` under every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """(key, value) pairs."""
        return iter([(key, self[key]) for key in self._keys])

    def values(self) -> Iterator[Any]:
        """The values."""
        return iter([self[key] for key in self._keys])

    def update(self, parameters: Any) -> None:
        """Adds entries from a mapping (a plain dict in sorted order) or from pairs."""
        if isinstance(parameters, dict) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in _pairs(parameters, "ParameterDict", "update"):
            self[key] = value

    def extra_repr(self) -> str:
        lines = []
        for key, value in self.items():
            text = _describe(value)
            if isinstance(value, trt.Tensor):
                text = text.format(value.type())
            lines.append(f"  ({key}): {text}")
        return "\n".join(lines)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
