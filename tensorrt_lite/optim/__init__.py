"""Optimizers and learning rate schedules with PyTorch's arguments, numbers and state dicts.

`FusedOptimizer` subclasses (SGD, Adam, AdamW) make one compiled call per step; the others update tensor by tensor.
"""

from typing import Any

from . import lr_scheduler
from ._adafactor import Adafactor
from .accumulating import Adadelta, Adagrad, RMSprop
from .adam import Adam, AdamW
from .batch import ASGD, Rprop
from .lbfgs import LBFGS
from .moments import Adamax, NAdam, RAdam
from .optimizer import Optimizer
from .sgd import SGD

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
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> Any:
    if name == "swa_utils":
        from importlib import import_module

        return import_module(f"{__name__}.swa_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
