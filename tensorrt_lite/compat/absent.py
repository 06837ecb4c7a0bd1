"""What stands for a name of PyTorch's that is not here while the alias is in force: it can be imported, named in an annotation and be a base class, and
raises NotImplementedError when it is called."""

from __future__ import annotations

import dis
from abc import ABCMeta
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AbsentClass", "AbsentFunction", "AbsentModule", "AbsentOperator", "AbsentValue", "asked", "placeholder"]

# Instructions that use the name they look up; `hasattr` and `getattr` are calls, and are to hear that it is not there.
_IMPORTS = {"IMPORT_FROM", "IMPORT_STAR", "CALL_INTRINSIC_1"}
_LOADS = {"LOAD_ATTR", "LOAD_METHOD"}

# Of each name: False since it was handed out, True since it was used. Read by `report`.
used: dict[str, bool] = {}


def asked(frame: FrameType) -> str:
    """How a frame looks an attribute up: by "import", by "load", or as a "question" whether it is there."""
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return "import" if instruction in _IMPORTS else "load" if instruction in _LOADS else "question"


def refuse(name: str) -> NoReturn:
    """The error for the use of `name`, a full path."""
    used[name] = True
    raise NotImplementedError(f"{name}: it is not implemented (docs/gaps.md, or tensorrt-lite missing)")


class AbsentClass(ABCMeta):
    """The class of classes that are not here. ABCMeta, so that their subclasses may have abstract bases, too."""

    def __getattr__(cls, name: str) -> Any:
        path = cls.__dict__.get("_absent")
        if path is None or name.startswith("_"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return AbsentValue(f"{path}.{name}")


def _new(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    refuse(next(base.__dict__["_absent"] for base in cls.__mro__ if "_absent" in base.__dict__))


class AbsentFunction:
    """A function that is not here."""

    def __init__(self, path: str) -> None:
        self.__module__, _, self.__name__ = path.rpartition(".")
        self.__qualname__ = self.__name__
        self.__doc__ = "Not implemented."

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"{self.__module__}.{self.__name__}")

    def __repr__(self) -> str:
        return f"<absent function {self.__module__}.{self.__name__}>"


class AbsentValue:
    """A dtype, a layout, a constant or a member of a class that is not here: equal to itself alone."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        refuse(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self._path)

    def __bool__(self) -> bool:
        refuse(self._path)

    def __repr__(self) -> str:
        return self._path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsentValue) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)


class AbsentOperator(AbsentValue):
    """An operator of `torch.ops.aten` that is not here, or one of its overloads: tables of operators may name it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return AbsentOperator(f"{self._path}.{name}")


class AbsentModule(ModuleType):
    """A module of PyTorch's that is not here; `look_up(name)` gives what stands for a name of it, or raises AttributeError."""

    def __init__(self, name: str, look_up: Callable[[str], Any]) -> None:
        super().__init__(name, "A module of PyTorch's that is not implemented.")
        self.__path__: list[str] = []
        vars(self)["__getattr__"] = look_up


def placeholder(path: str, kind: str) -> Any:
    """What stands for torch.`path`, of a kind of `names.absent`."""
    used.setdefault(path, False)
    module, _, name = path.rpartition(".")
    if kind == "c":
        body = {"_absent": path, "__module__": module, "__new__": _new, "__class_getitem__": classmethod(lambda cls, item: cls)}
        return AbsentClass(name, (), body)
    return AbsentFunction(path) if kind == "f" else AbsentValue(path)
