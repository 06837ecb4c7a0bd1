"""Automatic differentiation: backward, grad, the grad modes, custom Functions.

>>> import tensorrt_lite as trt
>>> x = trt.tensor([1.0, 2.0], requires_grad=True)
>>> trt.autograd.grad((x ** 3).sum(), x)
(tensor([ 3., 12.]),)
"""

# The graph and the executor are compiled (``tensorrt_lite._C.autograd``); here arguments are checked and the first gradients
# are made. Parts that few programs use (functional, anomaly mode, graph) are imported on first access.

from __future__ import annotations

import warnings
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite import _ops
from tensorrt_lite._C.autograd.engine import begin_pass as _begin_pass, end_pass as _end_pass, run_backward as _run_backward
from tensorrt_lite._C.autograd.thread_snapshot import is_multithreading_enabled
from tensorrt_lite._C.core.hints import hinted as _hinted
from tensorrt_lite._C.core.overrides import call_overrides as _call_overrides, has_overrides as _has_overrides
from tensorrt_lite._C.core.sparse import is_sparse as _is_sparse
from tensorrt_lite._C.core.tensor import TensorBase as _TensorBase
from tensorrt_lite._C.core.transform import in_transform as _in_transform
from tensorrt_lite.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from tensorrt_lite.autograd.grad_mode import enforce_grad_layout_policy

__all__ = [
    "Function", "Variable", "backward", "grad", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled", "enforce_grad_layout_policy",
    "detect_anomaly", "set_detect_anomaly", "gradcheck", "gradgradcheck", "functional", "forward_ad", "graph",
]  # fmt: skip

_LAZY = {"functional", "forward_ad", "graph", "function", "anomaly_mode", "variable", "grad_mode", "profiler", "profiler_legacy", "profiler_util"}
_LAZY_NAMES = {
    "Function": "function", "Variable": "variable", "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
    "NestedIOFunction": "function", "kineto_available": "profiler", "ProfilerActivity": "profiler", "DeviceType": "profiler",
}  # fmt: skip


if TYPE_CHECKING:
    from tensorrt_lite.autograd import anomaly_mode, forward_ad, function, functional, grad_mode, graph, profiler, profiler_util, variable
    from tensorrt_lite.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from tensorrt_lite.autograd.function import Function, NestedIOFunction
    from tensorrt_lite.autograd.profiler import DeviceType, ProfilerActivity, kineto_available
    from tensorrt_lite.autograd.variable import Variable


def __getattr__(name: str) -> Any:
    if name in _LAZY_NAMES:
        value = getattr(_import_module(f"tensorrt_lite.autograd.{_LAZY_NAMES[name]}"), name)
    elif name in _LAZY:
        value = _import_module(f"tensorrt_lite.autograd.{name}")
    else:
        raise _missing.error("autograd", name)
    globals()[name] = value
    return value


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals(), [*_LAZY, *_LAZY_NAMES])


def _is_edge(x: Any) -> bool:
    """Whether x is a GradientEdge; none is before its module is imported."""
    module = globals().get("graph")
    return module is not None and isinstance(x, module.GradientEdge)


def _first_gradient_at(edge: Any, gradient: Any, i: int) -> _TensorBase:
    """`_first_gradient` of the output of a Node that an edge names."""
    known = edge.node._input_metadata
    found = known[edge.output_nr] if 0 <= edge.output_nr < len(known) else None
    if found is None:
        raise RuntimeError(f"element {i} of tensors: {edge.node.name()} has no output {edge.output_nr} with a gradient")
    return _first_gradient(_ops.empty_strided(found.shape, (0,) * len(found.shape), dtype=found.dtype, device=found.device), gradient, i)


def _first_gradient(output: _TensorBase, gradient, i: int) -> _TensorBase:
    """The gradient with which ``output`` enters the run: the caller's after checks, or ones for a single element."""
    if gradient is None:
        if output.numel() != 1:
            raise _hinted("scalar", RuntimeError("grad can be implicitly created only for scalar outputs"))
        if not output.is_floating_point():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
        return _ops.ones_like(output)
    if not isinstance(gradient, _TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.shape != output.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {gradient.shape} and output[{i}] has a shape of {output.shape}."
        )
    if gradient.device != output.device:
        if gradient.dim():
            raise RuntimeError(f"an invalid gradient was given at index {i} - expected device {output.device} but got {gradient.device}")
        gradient = gradient.to(output.device)
    if gradient.dtype is not output.dtype:
        if gradient.is_complex() != output.is_complex():
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                f"grad_output[{i}] has a dtype of {gradient.dtype} and output[{i}] has a dtype of {output.dtype}."
            )
        gradient = gradient.to(output.dtype)
    return gradient


def _as_tuple(x) -> tuple:
    return (x,) if isinstance(x, _TensorBase) or _is_edge(x) else tuple(x)


def _roots(outputs: tuple, gradients: tuple) -> tuple[list, list]:
    if len(outputs) != len(gradients):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    first = []
    for i, output in enumerate(outputs):
        if isinstance(output, _TensorBase):
            if not output.requires_grad:
                raise _hinted("no graph", RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn"))
            first.append(_first_gradient(output, gradients[i], i))
        elif _is_edge(output):
            first.append(_first_gradient_at(output, gradients[i], i))
        else:
            raise TypeError(f"element {i} of tensors must be a Tensor, got {type(output).__name__}")
    return list(outputs), first


def _parts(tensors: tuple) -> tuple:
    """The tensors, nested and masked ones as the dense part of them that is differentiated; the tuple itself where there are none."""
    for t in tensors:
        if getattr(t, "_made_of_parts", False):
            return tuple(t._part if getattr(t, "_made_of_parts", False) else t for t in tensors)
    return tensors


def _others(tensors: tuple) -> tuple:
    """The tensors without those of the package's own classes, which are differentiated as they are."""
    return tuple(t for t in tensors if not getattr(t, "_made_of_parts", False) and not _is_sparse(t))


def _targets(inputs: tuple) -> list:
    for x in inputs:
        if isinstance(x, _TensorBase):
            if not x.requires_grad:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
        elif not _is_edge(x):
            raise TypeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
    return list(inputs)


def _check_materialized(result, targets: list) -> None:
    if any(g is None and _is_edge(x) for g, x in zip(result, targets)):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None) -> None:
    """Add the gradients of the tensors or GradientEdges (weighted by ``grad_tensors``) to ``grad`` of the leaves, or of ``inputs`` alone.

    Parameters:
        tensors (Tensor or sequence of Tensors): the results
        grad_tensors (Tensor, sequence of Tensors or None, default None): the gradients of them; None is 1 where there
            is one element
        retain_graph (bool or None, default None): whether the graph stays for another pass; None is create_graph
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        grad_variables (default None): deprecated; use grad_tensors
        inputs (Tensor, sequence of Tensors or None, default None): which tensors get a grad; None is all leaves

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([1.0, 2.0], requires_grad=True)
        >>> trt.autograd.backward((x ** 2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    overridable = _as_tuple(tensors) if inputs is None else _as_tuple(tensors) + _as_tuple(inputs)
    if _has_overrides(overridable) and _has_overrides(overridable := _others(overridable)):
        options = {"grad_tensors": grad_tensors, "retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs}
        return _call_overrides(backward, overridable, (tensors,), options)
    if _in_transform():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead "
            "or call backward() outside of functorch transforms."
        )
    token = _begin_pass()
    try:
        if inputs is not None:
            inputs = _as_tuple(inputs)
            if len(inputs) == 0:
                raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
            inputs = _targets(_parts(inputs))
        outputs = _parts(_as_tuple(tensors))
        gradients = (None,) * len(outputs) if grad_tensors is None else _parts(_as_tuple(grad_tensors))
        roots, first = _roots(outputs, gradients)
        if create_graph:
            from tensorrt_lite._C.core.warning import warn_once

            warn_once(
                "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. "
                "We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields "
                "of your parameters to None after use to break the cycle and avoid the leak."
            )
        _run_backward(roots, first, create_graph if retain_graph is None else retain_graph, create_graph, inputs, True, True, token != -1)
    finally:
        if token != -1:
            _end_pass(token)


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None, is_grads_batched=False,
    materialize_grads=False,
) -> tuple:  # fmt: skip
    """The gradients of the outputs (weighted by ``grad_outputs``) with respect to each of ``inputs``; None (or zeros) where unused.

    outputs, inputs: tensors or `graph.GradientEdge`s.

    is_grads_batched: each of grad_outputs has one more dimension in front, and so has each gradient: a pass for all of them, by vmap.

    Parameters:
        outputs (Tensor or sequence of Tensors): the results
        inputs (Tensor or sequence of Tensors): with respect to what
        grad_outputs (Tensor, sequence of Tensors or None, default None): the gradients of the outputs; None is 1 where
            there is one element
        retain_graph (bool or None, default None): whether the graph stays for another pass; None is create_graph
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        only_inputs (bool, default True): not used; must be True
        allow_unused (bool or None, default None): whether the gradient of an input that is not used is None, not an
            error; None is materialize_grads
        is_grads_batched (bool, default False): whether grad_outputs have a dimension in front, for many passes at once
        materialize_grads (bool, default False): whether the gradient of an input that is not used is zeros

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([1.0, 2.0], requires_grad=True)
        >>> trt.autograd.grad((x ** 3).sum(), x)
        (tensor([ 3., 12.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    results, wholes = _as_tuple(outputs), _as_tuple(inputs)  # once: they may be generators
    overridable = results + wholes
    if _has_overrides(overridable) and _has_overrides(overridable := _others(overridable)):
        return _call_overrides(
            grad, overridable, (outputs if isinstance(outputs, _TensorBase) else results, inputs if isinstance(inputs, _TensorBase) else wholes),
            {"grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph, "only_inputs": only_inputs,
             "allow_unused": allow_unused, "is_grads_batched": is_grads_batched, "materialize_grads": materialize_grads},
        )  # fmt: skip
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True)", FutureWarning, stacklevel=2)
    outputs = _parts(results)
    parts = _parts(wholes)
    targets = _targets(parts)
    gradients = (None,) * len(outputs) if grad_outputs is None else _parts(_as_tuple(grad_outputs))
    if is_grads_batched:
        result = _batched_gradients.batched_grad(outputs, tuple(targets), gradients, retain_graph, create_graph, allow_unused)
        size = gradients[0].shape[0]
        if materialize_grads:
            _check_materialized(result, targets)
            result = [_ops.zeros((size, *x.shape), dtype=x.dtype, device=x.device) if g is None else g for g, x in zip(result, targets)]
        return tuple(result)
    roots, first = _roots(outputs, gradients)
    result = _run_backward(roots, first, create_graph if retain_graph is None else retain_graph, create_graph, targets, allow_unused, False)
    if materialize_grads:
        _check_materialized(result, targets)
        result = [_ops.zeros_like(x, requires_grad=create_graph) if g is None else g for g, x in zip(result, targets)]
    if parts is not wholes:
        result = [g if g is None or part is whole else whole._with_part(g) for g, part, whole in zip(result, targets, wholes)]
    return tuple(result)


# Last and not lazily: the function has the name of its module, and an import of the module would replace it.
from tensorrt_lite.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_batched_gradients = _LazyModule("tensorrt_lite._transforms.batched_gradients")
_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
