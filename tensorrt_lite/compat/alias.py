"""The alias: while it is in force, `torch` and `torch.x.y` are names of this package's own modules.

One finder on `sys.meta_path` answers for all of them. A module of PyTorch's is, in this order: the module of that name here, the same object; a
thin module of `compat/modules`; a stand-in, whose names raise when they are used. Whatever this package lacks of a module that it has is
answered in the same way, by a `__getattr__` that the alias puts into the module. Everything that it changes (entries of `sys.modules`,
`__module__` of classes, `__version__`) is undone by `_Alias.end`, in reverse order.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LookUp
from tensorrt_lite.compat import absent, children, names
from tensorrt_lite.compat.metadata import VERSION, find_distributions
from tensorrt_lite.compat.modules.torch_version import TorchVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["VERSION", "install", "is_installed", "torch_alias"]

_HERE, _THERE = "tensorrt_lite", "torch"
_THIN = "tensorrt_lite.compat.modules"
_NOTHING = object()

_WHOLE = {"optim"}  # modules whose `__dict__` programs go through: what is imported on first use is there from the beginning
observers: list[Callable[[ModuleType], object]] = []  # called with each module that gets a name of PyTorch's
_current: _Alias | None = None
_depth = 0


def _path(module: str) -> str:
    """A module's name without the package's."""
    return module.partition(".")[2]


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _importing() -> bool:
    """Whether an import statement asks the finder, and not `find_spec`."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            break
        if frame.f_code.co_name == "_find_and_load_unlocked":
            return True
        frame = frame.f_back
    return False


class _Existing:
    """The loader of a module that exists under another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        if self._spec is not None:
            module.__spec__ = self._spec  # which importlib has replaced


class _Bound:
    """The loader of a module of this package that is imported while the alias is in force."""

    def __init__(self, loader: Any, alias: _Alias) -> None:
        self._loader, self._alias = loader, alias

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._alias.bind(module)


class _Fallback:
    """The `__getattr__` of a module under the alias: the module's own, then what stands for the names that it lacks."""

    def __init__(self, alias: _Alias, path: str, own: Callable[[str], Any] | None = None) -> None:
        self._alias, self._path, self._own = alias, path, own

    def __call__(self, name: str) -> Any:
        error: AttributeError | None = None
        frame: FrameType | None = None
        try:
            if self._own is not None:
                try:
                    return self._own(name)
                except AttributeError as own:
                    error = own
            frame = sys._getframe(1)
            if frame.f_code.co_name == "__getattribute__" and frame.f_back is not None:
                frame = frame.f_back  # of a module that `report` watches
            value = _NOTHING if name.startswith("__") and name != "__all__" else self._alias.stand_in(self._path, name, frame)
            if value is _NOTHING:
                raise error or AttributeError(f"module '{_joined(_THERE, self._path)}' has no attribute '{name}'", name=name, obj=sys.modules.get(_joined(_THERE, self._path)))
            return value
        finally:
            # an error that a frame holds whose traceback holds the frame keeps all callers, and what they have, until a collection
            error = frame = None


class _Alias:
    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self._stand_ins: dict[str, Any] = {}
        self._bound: set[str] = set()  # paths of modules that have their names

    # -- what it changes, and how that is undone

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        before = vars(owner).get(name, _NOTHING)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is _NOTHING else setattr(owner, name, before))

    def begin(self) -> None:
        outer = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in (_THERE, "functorch")}
        for name in outer:
            del sys.modules[name]

        def put_back() -> None:
            for name in [n for n in sys.modules if n.partition(".")[0] in (_THERE, "functorch")]:
                del sys.modules[name]
            sys.modules.update(outer)

        self._undo.append(put_back)
        sys.meta_path.insert(0, self)
        self._undo.append(lambda: sys.meta_path.remove(self))
        package = sys.modules[_HERE]
        self.set_attribute(package, "__version__", TorchVersion(VERSION))
        for name, module in list(sys.modules.items()):
            if (name == _HERE or name.startswith(_HERE + ".")) and module is not None:
                self.bind(module)
        self._undo.append(children.begin())

    def end(self) -> None:
        while self._undo:
            self._undo.pop()()
        importlib.invalidate_caches()

    def bind(self, module: ModuleType) -> None:
        """Give a module of this package its name under `torch`, the names it lacks, and its classes PyTorch's `__module__`."""
        path = _path(module.__name__)
        if path.startswith(("_C.", "compat")) or path in self._bound:
            return
        self._bound.add(path)
        is_pytorchs = names.is_module(path)
        homes = names.class_homes()
        for value in list(vars(module).values()):
            if isinstance(value, type) and getattr(value, "__module__", None) == module.__name__:
                home = homes.get((module.__name__, value.__qualname__)) or (_joined(_THERE, path) if is_pytorchs else None)
                if home is not None and value.__flags__ & 1 << 9:  # a class made at run time: others keep their names
                    self.set_attribute(value, "__module__", home)
        if not is_pytorchs:
            return
        sys.modules[_joined(_THERE, path)] = module
        self.set_attribute(module, "__name__", _joined(_THERE, path))
        if path == "version":
            self.set_attribute(module, "__version__", VERSION)
        if not hasattr(module, "__path__") and path in names.packages():
            self.set_attribute(module, "__path__", [])
        self.set_attribute(module, "__getattr__", LookUp(_Fallback(self, path, vars(module).get("__getattr__"))))
        for observe in observers:
            observe(module)
        if path in _WHOLE:
            for name in module.__all__:
                getattr(module, name)

    # -- what it answers

    find_distributions = staticmethod(find_distributions)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname == _THERE or fullname.startswith(_THERE + "."):
            module = self._module(_path(fullname))
            if module is not None:
                sys.modules.pop(fullname, None)  # what `bind` put there would make importlib take the module's own spec, and load it again
                return ModuleSpec(fullname, _Existing(module), is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]
            if _importing():
                raise ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)
            return None
        if fullname == "functorch":  # a package of its own in PyTorch's distribution
            return ModuleSpec(fullname, _Existing(importlib.import_module(f"{_HERE}.compat.functorch")))  # type: ignore[arg-type]
        if fullname.startswith(_HERE + ".") and not fullname.startswith((f"{_HERE}._C.", f"{_HERE}.compat")):
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and spec.loader is not None:
                spec.loader = _Bound(spec.loader, self)  # type: ignore[assignment]
            return spec
        return None

    def _module(self, path: str) -> ModuleType | None:
        """The module that answers for torch.`path`."""
        if not names.is_module(path) and not _exists(_joined(_THIN, path)):
            return None
        for base in (_HERE, _THIN):
            name = _joined(base, path)
            if _exists(name):
                module = importlib.import_module(name)
                if base == _THIN and "__getattr__" not in vars(module):
                    vars(module)["__getattr__"] = LookUp(_Fallback(self, path))
                    self._undo.append(lambda: delattr(module, "__getattr__"))
                    if not hasattr(module, "__path__"):
                        self.set_attribute(module, "__path__", [])
                return self._attached(path, module)
        return self._attached(path, absent.AbsentModule(_joined(_THERE, path), _Fallback(self, path)))

    def _attached(self, path: str, module: ModuleType) -> ModuleType:
        """The module; importlib is about to make it an attribute of its parent, which stays so no longer than the alias."""
        parent, _, name = path.rpartition(".")
        owner = sys.modules.get(_joined(_THERE, parent))
        if path and owner is not None and vars(owner).get(name) is not module:
            before = vars(owner).get(name, _NOTHING)
            self._undo.append(lambda: vars(owner).pop(name, None) if before is _NOTHING else setattr(owner, name, before))
        return module

    def stand_in(self, path: str, name: str, frame: FrameType) -> Any:
        """What answers for an attribute that the module torch.`path` does not have, for the instruction that `frame` is at."""
        full = _joined(path, name)
        thin = _joined(_THIN, path)
        if _exists(thin):
            supplement = importlib.import_module(thin)
            value = vars(supplement).get(name, _NOTHING)
            if value is not _NOTHING and not (isinstance(value, ModuleType) and value.__name__.startswith(_THIN)):
                return value
        if names.is_module(full) or _exists(_joined(_THIN, full)):
            return importlib.import_module(_joined(_THERE, full))
        absent_names = names.absent(path)
        if name == "__all__":
            return (
                [n for n, kind in absent_names.items() if kind[0] in "cf=" and not n.startswith("_")]
                if not _exists(_joined(_HERE, path))
                else _NOTHING
            )
        kind = absent_names.get(name)
        if kind is None:
            return _NOTHING
        if kind.startswith("="):
            return _resolved(kind[1:])
        how = absent.asked(frame)
        if how == "question" or how == "load" and kind == "v" and _exists(_joined(_HERE, path)):
            return _NOTHING
        if full not in self._stand_ins:
            self._stand_ins[full] = absent.placeholder(_joined(_THERE, full), kind)
        return self._stand_ins[full]


@cache
def _exists(name: str) -> bool:
    """Whether a module of this package can be imported. Its parents are imported for the answer."""
    parent = name.rpartition(".")[0]
    if not parent:
        return name == _HERE
    if not _exists(parent):
        return False
    package = importlib.import_module(parent)
    return name in sys.modules or PathFinder.find_spec(name, getattr(package, "__path__", None) or []) is not None


def _resolved(path: str) -> Any:
    """The object of a public path of this package."""
    found: Any = sys.modules[_HERE]
    for part in path.split("."):
        found = getattr(found, part)
    return found


def install() -> None:
    """Put the alias in force for the rest of the process."""
    global _current, _depth
    _depth += 1
    if _current is None:
        _current = _Alias()
        _current.begin()


def is_installed() -> bool:
    """Whether the alias is in force."""
    return _current is not None


@contextmanager
def torch_alias() -> Iterator[ModuleType]:
    """The alias for a block of code, and for all threads meanwhile; gives the module. What `torch` was before is it again afterwards.

    Modules that were imported inside go on using this package. Blocks nest.
    """
    global _current, _depth
    install()
    try:
        yield sys.modules[_HERE]
    finally:
        _depth -= 1
        if _depth == 0 and _current is not None:
            _current.end()
            _current = None
