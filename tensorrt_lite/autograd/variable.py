"""Variable: the old name of Tensor, kept because isinstance checks and annotations still use it."""

from __future__ import annotations

from tensorrt_lite._C.autograd import engine as _engine
from tensorrt_lite.tensor import Tensor


class _ExecutionEngine:
    """What programs ask of the executor by its private name."""

    @staticmethod
    def queue_callback(callback) -> None:
        """Call something after the last Node of the backward pass that runs. RuntimeError outside of one."""
        _engine.queue_callback(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Variable(data, requires_grad=False): ``data`` itself, set to require a gradient as asked."""

    _execution_engine = _ExecutionEngine()

    def __new__(cls, data, requires_grad: bool = False):
        return data.detach().requires_grad_(requires_grad) if requires_grad or data.requires_grad else data
