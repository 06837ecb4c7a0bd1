"""torch.nn: modules, parameters, losses, initialisation and their functional forms."""

from . import attention, functional, init, modules, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _module_names
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "attention", "functional", "init", "modules", "utils", *_module_names]


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("nn", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
