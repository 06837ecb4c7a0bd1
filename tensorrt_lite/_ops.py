"""The flat namespace of compiled operators, collected from the extension modules of all families.

``FUNCTIONS`` are public as ``trt.name``, ``METHODS`` on Tensor, ``SYMBOLS`` its operators (``__add__``); an operator that PyTorch has only under
``torch.nn.functional`` is here and nowhere else.
"""

from __future__ import annotations

from importlib import import_module

from tensorrt_lite._C import FAMILIES
from tensorrt_lite._C.ops import support as _support

FUNCTIONS: dict = {}
METHODS: dict = {}
SYMBOLS: dict = {}
_namespace = _support.namespace()


def _collect() -> None:
    space = globals()
    for family in FAMILIES:
        module = import_module(f"tensorrt_lite._C.ops.{family}")
        contents = vars(module)
        for name, flags in contents["EXPORTS"].items():
            function = contents[name]
            space[name] = function
            setattr(_namespace, name, function)
            if "f" in flags:
                FUNCTIONS[name] = function
            if "m" in flags:
                METHODS[name] = function
        METHODS.update(contents.get("METHOD_ALIASES", ()))
        SYMBOLS.update(contents.get("SYMBOLS", ()))
        FUNCTIONS.update(contents.get("FUNCTION_ALIASES", ()))
        for name, function in contents.get("FUNCTION_ALIASES", {}).items():
            space.setdefault(name, function)


_collect()
