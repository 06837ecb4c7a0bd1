"""`cond` and `while_loop` in their eager meaning: the functions are called as Python would call them. Imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite.tensor import Tensor

__all__ = ["cond", "while_loop"]


def cond(
    pred: bool | int | float | Tensor, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """true_fn(*operands) where pred holds, else false_fn(*operands). pred: a number, or a tensor of one element. RuntimeError for other arguments.

    Parameters:
        pred (bool, number or Tensor): the condition, one element
        true_fn (function): what is called where it holds
        false_fn (function): what is called elsewhere
        operands (tuple or list, default ()): the arguments of both

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([1.0, 2.0])
        >>> trt.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 3.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}."
        )
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:
    """What body_fn has made of carried_inputs once cond_fn(*carried) is false. body_fn returns as many values as it takes (RuntimeError otherwise).

    Parameters:
        cond_fn (function): whether there is another step: a bool, or a tensor of one element
        body_fn (function): the step: as many values as it takes
        carried_inputs (tuple or list): the first values

    Example:
        >>> import tensorrt_lite as trt
        >>> start = trt.tensor(0), trt.tensor(1)
        >>> trt.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), start)
        (tensor(3), tensor(8))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of possibly nested dict/list/tuple of tensors, but got {carried_inputs}.")
    carried = tuple(carried_inputs)
    while True:
        going_on = cond_fn(*carried)
        if not isinstance(going_on, (bool, Tensor)) or isinstance(going_on, Tensor) and going_on.numel() != 1:
            raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {type(going_on)}")
        if not going_on:
            return carried
        result = body_fn(*carried)
        if not isinstance(result, (tuple, list)) or len(result) != len(carried):
            raise RuntimeError(f"body_fn should return {len(carried)} values, as many as it takes, but got {result}")
        carried = tuple(result)
