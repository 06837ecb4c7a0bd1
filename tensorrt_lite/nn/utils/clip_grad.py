"""Clipping of gradients by their total norm or by value, in place, with the foreach operators."""

from __future__ import annotations

import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.autograd.grad_mode import no_grad


def _as_list(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, trt.Tensor) else list(tensors)


def _groups(tensors: list[Any]) -> list[list[Any]]:
    """The tensors grouped by device and dtype: what one foreach operator takes."""
    groups: dict[Any, list[Any]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return list(groups.values())


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of all tensors as if they were one vector.

    Raises RuntimeError with error_if_nonfinite when it is infinite or not a number.

    Parameters:
        tensors (iterable of Tensors): the tensors
        norm_type (float, default 2.0): the exponent of the norm
        error_if_nonfinite (bool, default False): whether a norm that is NaN or infinite raises an error
        foreach (bool or None, default None): whether all gradients are handled in one call; None lets the function
            choose

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.get_total_norm([trt.tensor([3.0]), trt.tensor([4.0])])
        tensor(5.)
    """
    with no_grad():
        tensors = _as_list(tensors)
        norm_type = float(norm_type)
        if not tensors:
            return trt.tensor(0.0)
        device = tensors[0].device
        norms: list[Any] = []
        for group in _groups(tensors):
            if foreach is False:
                norms.extend(linalg.vector_norm(tensor, norm_type) for tensor in group)
            else:
                norms.extend(trt._foreach_norm(group, norm_type))
        total = linalg.vector_norm(trt.stack([norm.to(device) for norm in norms]), norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                "`error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scales the gradients of `parameters` by min(1, max_norm / (total_norm + 1e-6)).

    Parameters:
        parameters (iterable of Tensors or Tensor): the parameters
        max_norm (float): the largest norm
        total_norm (Tensor): the norm of all gradients
        foreach (bool or None, default None): whether all gradients are handled in one call; None lets the function
            choose

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([3.0, 4.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> trt.nn.utils.clip_grads_with_norm_(x, 1.0, trt.tensor(10.0))
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    with no_grad():
        grads = [param.grad for param in _as_list(parameters) if param.grad is not None]
        if not grads:
            return
        # Multiplying by a tensor that may be one avoids waiting for its value on an accelerator.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for group in _groups(grads):
            if foreach is False:
                for grad in group:
                    grad.mul_(factor.to(grad.device))
            else:
                trt._foreach_mul_(group, factor.to(group[0].device))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scales the gradients so that their total norm is at most max_norm; returns the norm before.

    Parameters:
        parameters (iterable of Tensors or Tensor): the parameters
        max_norm (float): the largest norm
        norm_type (float, default 2.0): the exponent of the norm
        error_if_nonfinite (bool, default False): whether a norm that is NaN or infinite raises an error
        foreach (bool or None, default None): whether all gradients are handled in one call; None lets the function
            choose

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([3.0, 4.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> trt.nn.utils.clip_grad_norm_(x, max_norm=1.0)
        tensor(10.)
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    if not isinstance(parameters, trt.Tensor):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [param.grad for param in _as_list(parameters) if param.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The deprecated name of clip_grad_norm_.

    Parameters:
        parameters (iterable of Tensors or Tensor): the parameters
        max_norm (float): the largest norm
        norm_type (float, default 2.0): the exponent of the norm
        error_if_nonfinite (bool, default False): whether a norm that is NaN or infinite raises an error
        foreach (bool or None, default None): whether all gradients are handled in one call; None lets the function
            choose

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([3.0, 4.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> trt.nn.utils.clip_grad_norm_(x, max_norm=1.0)
        tensor(10.)
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    warnings.warn(
        "nn.utils.clip_grad_norm is now deprecated in favor of nn.utils.clip_grad_norm_.", FutureWarning, stacklevel=2
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every gradient to [-clip_value, clip_value].

    Parameters:
        parameters (iterable of Tensors or Tensor): the parameters
        clip_value (float): the largest magnitude
        foreach (bool or None, default None): whether all gradients are handled in one call; None lets the function
            choose

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([3.0, 0.1], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> trt.nn.utils.clip_grad_value_(x, 1.0)
        >>> x.grad
        tensor([1.0000, 0.2000])
    """
    clip_value = float(clip_value)
    with no_grad():
        grads = [param.grad for param in _as_list(parameters) if param.grad is not None]
        for group in _groups(grads):
            if foreach is False:
                for grad in group:
                    grad.clamp_(min=-clip_value, max=clip_value)
            else:
                trt._foreach_clamp_min_(group, -clip_value)
                trt._foreach_clamp_max_(group, clip_value)
