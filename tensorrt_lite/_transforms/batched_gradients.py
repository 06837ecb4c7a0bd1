"""Backward passes of many cotangents at once: vmap over a graph that was recorded outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._transforms.mapping import vmap

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def check_batched(outputs: tuple[Any, ...], cotangents: tuple[Any, ...]) -> None:
    """RuntimeError unless each cotangent is a batch of tensors of its output's shape."""
    for i, (output, g) in enumerate(zip(outputs, cotangents)):
        if g is None:
            raise RuntimeError("grad: is_grads_batched=True needs a tensor for each of grad_outputs")
        shape = output.node._input_metadata[output.output_nr].shape if isinstance(output, tuple) else output.shape  # of a GradientEdge
        if g.dim() == 0 or g.shape[1:] != shape:
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining dimensions are expected to match "
                f"the shape of corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {shape}. If you only want some "
                "tensors in `grad_output` to be considered batched, consider using vmap."
            )


def batched_grad(outputs: tuple[Any, ...], inputs: tuple[Any, ...], cotangents: tuple[Any, ...], retain_graph: bool | None, create_graph: bool, allow_unused: bool) -> list[Any]:
    """autograd.grad with a batch of cotangents for each output: a batch of gradients, None where an input was not used."""
    check_batched(outputs, cotangents)
    used: list[bool] = []

    def one(*given: Tensor) -> tuple[Any, ...]:
        found = autograd.grad(outputs, inputs, given, retain_graph=create_graph if retain_graph is None else retain_graph, create_graph=create_graph, allow_unused=allow_unused)
        used[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    rows = iter(vmap(one)(*cotangents))
    return [next(rows) if is_used else None for is_used in used]


def jacobian_rows(outputs: tuple[Any, ...], inputs: tuple[Any, ...], create_graph: bool) -> list[list[Any]]:
    """For each output and each input the Jacobian (*output, *input), zeros where there is no dependence."""
    found = []
    for y in outputs:
        n = y.numel()
        if not y.requires_grad or not n:
            found.append([x.new_zeros((*y.shape, *x.shape)) for x in inputs])
            continue
        basis = trt.eye(n, dtype=y.dtype, device=y.device).view(n, *y.shape)
        rows = batched_grad((y,), inputs, (basis,), True, create_graph, True)
        found.append([x.new_zeros((*y.shape, *x.shape)) if g is None else g.reshape((*y.shape, *x.shape)) for g, x in zip(rows, inputs)])
    return found
