"""Gradient clipping, parameter vectors, modules without initialisation and calls with other parameters."""

from . import rnn, stateless
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "skip_init",
    "stateless",
    "vector_to_parameters",
]


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("nn.utils", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
