"""The flat namespace of operators, collected from the extension modules of all families and from the modules of compositions.

``FUNCTIONS`` are public as ``trt.name``, ``METHODS`` on Tensor, ``SYMBOLS`` its operators (``__add__``); an operator that PyTorch has only under
``torch.nn.functional`` is here and nowhere else.
"""

from __future__ import annotations

from importlib import import_module

import tensorrt_lite._C as _C
from tensorrt_lite._C.core.overrides import NOT_ASKED, PublicFunction
from tensorrt_lite._C import FACTORIES, FAMILIES
from tensorrt_lite._C.autograd.autocast import put_policies
from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.ops import recording as _recording  # noqa: F401  # what the families' kernels record and hold with
from tensorrt_lite._C.ops import support as _support
from tensorrt_lite._C.ops.entry import Entry
from tensorrt_lite._compositions import MODULES as COMPOSED

FUNCTIONS: dict = {}
METHODS: dict = {}
SYMBOLS: dict = {}
_namespace = namespace()


def exports(module: str, contents: dict) -> dict:
    """{name: f function of the package, m method of Tensor} of a module: what its rows say of the functions that it defines, and `EXPORTS`, which has
    those without a row."""
    room, _, family = module.rpartition(".")
    rows = _C.COMPOSED.get(family, {}) if room == "_compositions" else {}
    defined = {name: flags for name, flags in rows.items() if name in contents}
    return defined | contents.get("EXPORTS", {})


def _collect() -> None:
    space = globals()
    for family in (*(f"_C.ops.{f}" for f in FAMILIES), *(f"_compositions.{f}" for f in COMPOSED)):
        module = import_module(f"tensorrt_lite.{family}")
        contents = vars(module)
        exported = exports(family, contents)
        for name in exported:
            if not isinstance(function := contents[name], Entry):
                _support.take_numpy_names(getattr(function, "impl", function))
        with_policies = put_policies(contents, exported, _C.AUTOCAST, ("", "nn.functional."))
        for name, flags in exported.items():
            function = contents[name]
            # the package's own calls are no calls of the user's: overrides are not asked, modes below autograd are
            called = PublicFunction(function, name, "tensorrt_lite", opaque=NOT_ASKED, factory=True) if name in FACTORIES else function
            space[name] = called
            setattr(_namespace, name, called)
            if "f" in flags:
                FUNCTIONS[name] = function
            if "m" in flags:
                METHODS[name] = function
        aliases = {n: with_policies.get(id(f), f) for n, f in contents.get("FUNCTION_ALIASES", {}).items()}
        METHODS.update({n: with_policies.get(id(f), f) for n, f in contents.get("METHOD_ALIASES", {}).items()})
        SYMBOLS.update(contents.get("SYMBOLS", ()))
        FUNCTIONS.update(aliases)
        for name, function in aliases.items():
            space.setdefault(name, function)


_collect()


def __getattr__(name: str) -> object:
    if name in ("OpOverload", "OpOverloadPacket"):  # PyTorch has a module of this name
        return getattr(import_module("tensorrt_lite.compat.modules._ops"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
