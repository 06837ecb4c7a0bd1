"""Dispatch keys by PyTorch's names, sets of them, and what operators have registered under them: what programs ask of `torch._C`.

The numbers are core/dispatch.pyx's; PyTorch has a key of Autograd and Autocast for each device where this dispatcher has one for all.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core import python_key
from tensorrt_lite._C.core.hints import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterable

_library = LazyModule("tensorrt_lite.library")
_aten = LazyModule("tensorrt_lite._declared.aten")
_overloads = LazyModule("tensorrt_lite._declared.overloads")

DEVICES = ("CPU", "CUDA", "Meta", "PrivateUse1")
NUMBERS = {name: number for number, name in enumerate(_dispatch.key_names_in_order())}
_OF_ALL_DEVICES = ("Autograd", "Autocast")
_FUNCTIONAL = ("FuncTorchBatched", "FuncTorchGradWrapper", "FuncTorchVmapMode", "FuncTorchDynamicLayerFrontMode")
_ALIASES = ("Autograd", "CompositeExplicitAutograd", "CompositeImplicitAutograd")

# From the lowest to the highest, then the aliases.
DispatchKey = enum.Enum(  # type: ignore[misc]
    "DispatchKey",
    [
        "Undefined", *DEVICES, "SparseCPU", "SparseCUDA", "BackendSelect", "Python", "Functionalize", "ADInplaceOrView", *(f"Autograd{d}" for d in ("Other", *DEVICES)), "Tracer",
        "AutocastCPU", "AutocastXPU", "AutocastCUDA", "AutocastPrivateUse1", *_FUNCTIONAL, "PythonTLSSnapshot", "PythonDispatcher", *_ALIASES,
    ],
    module=__name__,
)  # fmt: skip
DispatchKey.__doc__ = "A dispatch key by PyTorch's name."


def number_of(key: str) -> int | None:
    """This dispatcher's number of a key, None of one that it lacks."""
    family = next((f for f in _OF_ALL_DEVICES if key.startswith(f)), "FuncTorch" if key in _FUNCTIONAL else "Sparse" if key.startswith("Sparse") else key)
    return NUMBERS.get(family)


def parsed(key: Any) -> Any:
    """A key by name, or the key itself. RuntimeError for an unknown name."""
    if isinstance(key, DispatchKey):
        return key
    if key not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {key}")
    return DispatchKey[key]


class DispatchKeySet:
    """A set of keys. `a | b`, `a & b` and `a - b` are sets again; the text lists them from the lowest to the highest."""

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(parsed(k) for k in keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self) -> Any:
        return iter(sorted(self._keys, key=lambda k: k.value))

    def has(self, key: Any) -> bool:
        """Whether the key is in the set."""
        return parsed(key) in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one key more."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(*self._keys - {parsed(key)})

    def highestPriorityTypeId(self) -> Any:  # noqa: N802 (PyTorch's name)
        """The key whose kernel a call would take."""
        return max(self._keys, key=lambda k: k.value, default=DispatchKey.Undefined)

    def raw_repr(self) -> int:
        """The set as a number, a bit for each key."""
        return sum(1 << k.value for k in self._keys)

    @property
    def left_out(self) -> int:
        """The bits of this dispatcher's keys above the backends that the set does not have."""
        there = {number_of(k.name) for k in self._keys}
        wanted = {NUMBERS[name] for name in ("Python", "Autograd", "ForwardAD", "Autocast", "FuncTorch")}
        if NUMBERS["Autograd"] in there:
            there.add(NUMBERS["ForwardAD"])
        return sum(1 << number for number in wanted - there)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(k.name for k in self)})"


def keys_of(tensor: Any) -> DispatchKeySet:
    """The keys that a tensor has in PyTorch, which are those that decide a call here."""
    device = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(tensor.device.type, "PrivateUse1")
    backend = device if tensor.layout is trt.strided else f"Sparse{device}"
    keys = [backend] if backend in DispatchKey.__members__ else [device]
    if not tensor.is_inference():
        keys += ["ADInplaceOrView", f"Autograd{device}"]
    if device != "Meta":
        keys.append(f"Autocast{device}")
    if python_key.has_key(tensor) and type(tensor) is not trt.Tensor:
        keys += ["Python", "PythonTLSSnapshot"]
    return DispatchKeySet(*keys)


def after_autograd() -> DispatchKeySet:
    """The keys below Autograd."""
    return DispatchKeySet(*(k for k in DispatchKey if DispatchKey.Undefined.value < k.value <= DispatchKey.ADInplaceOrView.value))


class ExcludeKeys:
    """A block whose calls leave out keys: `with ExcludeKeys(DispatchKeySet("AutogradCPU")):`."""

    def __init__(self, keys: DispatchKeySet) -> None:
        numbers = {n for k in keys if (n := number_of(k.name)) is not None}
        if NUMBERS["Autograd"] in numbers:
            numbers.add(NUMBERS["ForwardAD"])
        self._bits, self._before = sum(1 << n for n in numbers), list[int]()

    def __enter__(self) -> ExcludeKeys:
        before = _dispatch._exclude_keys(0)
        _dispatch._exclude_keys(before | self._bits)
        self._before.append(before)
        return self

    def __exit__(self, *exception: object) -> None:
        _dispatch._exclude_keys(self._before.pop())


def below_autograd() -> ExcludeKeys:
    """PyTorch's `_AutoDispatchBelowAutograd`: a block whose calls record nothing and go to kernels below Autograd."""
    return ExcludeKeys(DispatchKeySet("Autograd"))


# ---- what is registered


def _operator_of(name: str) -> Any:
    """The overload of a name like "aten::add.Tensor", None without one."""
    namespace, _, rest = name.partition("::")
    name, _, overload = rest.partition(".")
    packet = _aten.packet(name, namespace) if namespace in ("aten", "trtl") else None
    found = packet._form(overload or "default") if packet is not None else None
    return found if found is not None else _library._operators.get(namespace, {}).get(name, {}).get(overload or "default")


def _kernels_of(operator: Any) -> set[str]:
    """The names of the keys, aliases among them, under which an operator has a kernel."""
    if isinstance(operator, python_key.Operator):
        found = set(_dispatch.row_keys(operator.row_name))
        return {key for key in found if key in DispatchKey.__members__} | set(_library._row_kernels.get(operator.row_name, {}))
    if isinstance(operator, _library.Operator):
        return set(operator._kernels)
    return {"CompositeImplicitAutograd"}


def has_kernel(name: str) -> bool:
    """Whether there is an operator of the name, "aten::add.Tensor"."""
    return _operator_of(name) is not None


def _existing(name: str) -> Any:
    found = _operator_of(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def has_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether a kernel was registered for the operator under a key itself. RuntimeError for an unknown operator or key."""
    return parsed(key).name in _kernels_of(_existing(name))


def has_kernel_for_any_dispatch_key(name: str, keys: DispatchKeySet) -> bool:
    """Whether one was registered under any of the keys."""
    return any(k.name in _kernels_of(_existing(name)) for k in keys)


def has_computed_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether a call with the key would find a kernel: its own, or one for all devices."""
    there, wanted = _kernels_of(_existing(name)), parsed(key).name
    alias = "Autograd" if wanted.startswith("Autograd") else "CompositeExplicitAutograd"
    return wanted in there or alias in there or "CompositeImplicitAutograd" in there


def all_names() -> list[str]:
    """The names of all operators: "aten::add.Tensor"."""
    return [_full_name(namespace, name, overload) for namespace, name, overload in _all_overloads()]


def _full_name(namespace: str, name: str, overload: str) -> str:
    return f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")


def _all_overloads() -> Iterable[tuple[str, str, str]]:
    import tensorrt_lite._declared.declarations as _declarations

    names = dict.fromkeys(_overloads.index()) | dict.fromkeys(n for n in _declarations.names() if "." not in n)
    for key in names:
        packet = _aten.packet(key)
        for overload in () if packet is None else packet.overloads():
            yield packet.namespace, packet.__name__, overload
    for namespace, packets in _library._operators.items():
        for name, overloads in packets.items():
            for overload in overloads:
                yield namespace, name, overload


def registrations_for_dispatch_key(key: str = "") -> list[str]:
    """The names of the operators with a kernel under a key, of all without one."""
    if not key:
        return all_names()
    wanted = parsed(key).name
    return [name for name in all_names() if wanted in _kernels_of(_operator_of(name))]


def schema(name: str, overload: str = "") -> Any:
    """The schema of an overload: `schema("aten::add", "Tensor")`. RuntimeError without one."""
    found = _operator_of(name + ("" if overload in ("", "default") else f".{overload}"))
    if found is None:
        raise RuntimeError("Found no matching schema")
    return found._schema


def schemas_of(name: str) -> list[Any]:
    """The schemas of all overloads of "aten::add", none of an unknown name."""
    namespace, _, bare = name.partition("::")
    if namespace in ("aten", "trtl"):
        packet = _aten.packet(bare, namespace)
        return [] if packet is None else [packet._form(o)._schema for o in packet.overloads() if packet._form(o) is not None]
    return [op._schema for op in _library._operators.get(namespace, {}).get(bare, {}).values()]


def all_schemas() -> list[Any]:
    """The schemas of all operators."""
    return [found._schema for name in all_names() if (found := _operator_of(name)) is not None]


def dump(name: str) -> str:
    """The operator's schema and the keys under which it has kernels, a line each."""
    found = _existing(name)
    return "\n".join([f"name: {name}", f"schema: {found._schema}", *(f"{key}: registered" for key in sorted(_kernels_of(found)))]) + "\n"
