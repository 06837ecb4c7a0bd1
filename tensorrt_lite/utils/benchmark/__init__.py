"""Timing of statements, tables of such times, random arguments.

>>> from tensorrt_lite.utils.benchmark import Timer
>>> Timer("x + x", "x = torch.ones(4)").timeit(100).number_per_run
100
"""

from .utils.common import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .utils.compare import Colorize, Compare
from .utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from .utils.timer import Language, Timer, timer
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "Colorize", "Compare", "FuzzedParameter", "FuzzedTensor", "Fuzzer", "Language", "Measurement", "ParameterAlias", "TaskSpec", "Timer", "ordered_unique",
    "select_unit", "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise _missing.error("utils.benchmark", name)
