"""Optimizers and learning rate schedules with PyTorch's arguments, numbers and state dicts.

>>> import tensorrt_lite as trt
>>> x = trt.tensor([1.0], requires_grad=True)
>>> optimizer = trt.optim.SGD([x], lr=0.1)
>>> (x ** 2).sum().backward()
>>> optimizer.step()
>>> round(x.item(), 3)
0.8
"""

# `FusedOptimizer` subclasses (SGD, Adam, AdamW) make one compiled call per step; the others update tensor by tensor and
# are, like the schedules, imported on first use: most programs need one optimizer, and all of them pay for imports.

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from . import optimizer
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from . import lr_scheduler, swa_utils
    from ._adafactor import Adafactor
    from ._muon import Muon
    from .adadelta import Adadelta
    from .adagrad import Adagrad
    from .adamax import Adamax
    from .asgd import ASGD
    from .lbfgs import LBFGS
    from .nadam import NAdam
    from .radam import RAdam
    from .rmsprop import RMSprop
    from .rprop import Rprop
    from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "optimizer",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

_MODULE_OF = {
    "Adafactor": "_adafactor",
    "Muon": "_muon",
    "Adadelta": "adadelta",
    "Adagrad": "adagrad",
    "RMSprop": "rmsprop",
    "ASGD": "asgd",
    "Rprop": "rprop",
    "LBFGS": "lbfgs",
    "Adamax": "adamax",
    "NAdam": "nadam",
    "RAdam": "radam",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}


def __getattr__(name: str) -> Any:
    if name in ("lr_scheduler", "swa_utils"):
        return _import_module(f"{__package__}.{name}")
    if name in _MODULE_OF:
        value = getattr(_import_module(f"{__package__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    raise _missing.error("optim", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
