"""Parameters as one flat vector and back."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt


def _check_device(param: Any, device: Any) -> Any:
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters: Any) -> Any:
    """All elements of all parameters, in order, as one vector; TypeError when devices differ.

    Parameters:
        parameters (iterable of Tensors or Tensor): the parameters

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.parameters_to_vector([trt.ones(2), trt.zeros(1, 2)])
        tensor([1., 1., 0., 0.])
    """
    device = None
    parts = []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.reshape(-1))
    return trt.cat(parts)


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Gives the parameters views of consecutive slices of `vec` as their data; TypeError unless vec is a tensor.

    Parameters:
        vec (Tensor): the values, of one dimension
        parameters (iterable of Tensors or Tensor): the parameters

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.Linear(2, 1, bias=False)
        >>> trt.nn.utils.vector_to_parameters(trt.tensor([1.0, 2.0]), linear.parameters())
        >>> linear.weight.tolist()
        [[1.0, 2.0]]
    """
    if not isinstance(vec, trt.Tensor):
        raise TypeError(f"expected a Tensor, but got: {type(vec).__name__}")
    device = None
    start = 0
    for param in parameters:
        device = _check_device(param, device)
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
