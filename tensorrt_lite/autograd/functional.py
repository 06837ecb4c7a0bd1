"""Derivatives of functions: vjp, jvp, jacobian, hessian, vhp, hvp, by reverse mode once or twice; Jacobians by forward mode, too.

Inputs may be one tensor or a tuple; results have the same structure. Unless ``create_graph`` the results are detached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite.autograd import forward_ad, grad
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_batched_gradients = _LazyModule("tensorrt_lite._transforms.batched_gradients")
_derivatives = _LazyModule("tensorrt_lite._transforms.derivatives")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


def _as_tuple(x: Any, argument: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    single = isinstance(x, TensorBase)
    values = (x,) if single else x
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but the given {argument} has type {type(x)}.")
    for i, v in enumerate(values):
        if not isinstance(v, TensorBase):
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but the value at index {i} has type {type(v)}."
            )
    return not single, tuple(values)


def _prepare(inputs: tuple, create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs that require gradients: views of the caller's under create_graph (so that the graph reaches them), else fresh leaves."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _finish(values: tuple, was_tuple: bool, create_graph: bool) -> Any:
    if not create_graph:
        values = tuple(v.detach() for v in values)
    return values if was_tuple else values[0]


def _check_vector(v: tuple, like: tuple, function: str) -> None:
    if len(v) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            raise RuntimeError(f"v has invalid size in entry {i}: should be {b.shape} but got {a.shape}.")


def _vector(v: Any, like: tuple, function: str, single_text: str) -> tuple:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(single_text)
        return (_ops.ones_like(like[0]),)
    _, values = _as_tuple(v, "v", function)
    _check_vector(values, like, function)
    return tuple(values)


def _gradients(outputs: tuple, inputs: tuple, weights: tuple, strict: bool, create_graph: bool, what: str) -> tuple:
    """Weighted gradients; zeros (or RuntimeError when strict) for inputs that an output does not depend on."""
    used = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if not used:
        found: tuple = (None,) * len(inputs)
    else:
        found = grad([o for o, _ in used], inputs, [w for _, w in used], create_graph=create_graph, retain_graph=True, allow_unused=True)
    result = []
    for i, (g, x) in enumerate(zip(found, inputs)):
        if g is None:
            if strict:
                raise RuntimeError(f"{what} is independent of input {i}. This is not allowed in strict mode.")
            g = _ops.zeros_like(x)
        result.append(g)
    return tuple(result)


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), v^T J). v: the shapes of the outputs; not needed for one output of one element.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        v (Tensor, tuple of Tensors or None, default None): of the shapes of the outputs; None for one element
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error

    Example:
        >>> import tensorrt_lite as trt
        >>> x, v = trt.tensor([1.0, 2.0]), trt.tensor([1.0, 10.0])
        >>> trt.autograd.functional.vjp(lambda x: x ** 2, x, v)
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        was_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _prepare(inputs, create_graph)
        outputs_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "vjp")
        v = _vector(
            v, outputs, "vjp", "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
        )
        result = _gradients(outputs, inputs, v, strict, create_graph, "The output of the user-provided function")
    return _finish(outputs, outputs_tuple, create_graph), _finish(result, was_tuple, create_graph)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), J v), from two reverse passes. v: the shapes of the inputs; not needed for one input of one element.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        v (Tensor, tuple of Tensors or None, default None): of the shapes of the inputs; None for one element
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error

    Example:
        >>> import tensorrt_lite as trt
        >>> x, v = trt.tensor([1.0, 2.0]), trt.tensor([1.0, 10.0])
        >>> trt.autograd.functional.jvp(lambda x: x ** 2, x, v)
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        _, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _prepare(inputs, create_graph)
        v = _vector(v, inputs, "jvp", "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.")
        outputs_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jvp")
        # J^T u is linear in u, so its gradient with respect to u, weighted by v, is J v
        dummies = tuple(_ops.zeros_like(o).requires_grad_() for o in outputs)
        transposed = _gradients(outputs, inputs, dummies, strict, True, "The output of the user-provided function")
        result = _gradients(transposed, dummies, v, False, create_graph, "The Jacobian")
    return _finish(outputs, outputs_tuple, create_graph), _finish(result, outputs_tuple, create_graph)


def jacobian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """The Jacobian: output shape + input shape, nested in tuples over outputs and inputs where those are tuples.

    vectorize: all rows (columns, with strategy="forward-mode") in one pass, by vmap; it calls each operator once, and holds all of them at a time.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error
        vectorize (bool, default False): whether all rows are computed in one pass
        strategy (str, default 'reverse-mode'): 'reverse-mode' or 'forward-mode'

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.autograd.functional.jacobian(lambda x: x ** 2, trt.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    if strategy == "forward-mode":
        for name, asked, error in (("create_graph", create_graph, NotImplementedError), ("strict", strict, RuntimeError)):
            if asked:
                raise error(
                    f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported together (yet). Please either '
                    f'set `{name}=False` or `strategy="reverse-mode"`.'
                )
        return _mapped_forward_jacobian(func, inputs) if vectorize else _forward_jacobian(func, inputs)
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or "
            "`vectorize=False`."
        )
    with enable_grad():
        was_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _prepare(inputs, create_graph)
        outputs_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jacobian")
        if vectorize:
            found = tuple(_finish(tuple(row), was_tuple, create_graph) for row in _batched_gradients.jacobian_rows(outputs, inputs, create_graph))
            return found if outputs_tuple else found[0]
        rows = []
        for i, out in enumerate(outputs):
            if out.is_complex():
                raise RuntimeError(f"jacobian: grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            columns: list[list] = [[] for _ in inputs]
            flat = out.reshape(-1)
            for j in range(out.numel()):
                weight = _ops.ones_like(flat.select(0, j))
                parts = _gradients(
                    (flat.select(0, j),), inputs, (weight,), strict, create_graph, f"Output {i} of the user-provided function"
                )
                for column, part in zip(columns, parts):
                    column.append(part)
            row = []
            for x, column in zip(inputs, columns):
                shape = tuple(out.shape) + tuple(x.shape)
                row.append(_ops.stack(column, 0).view(shape) if column else x.new_zeros(shape))
            rows.append(_finish(tuple(row), was_tuple, create_graph))
    return tuple(rows) if outputs_tuple else rows[0]


def _mapped_forward_jacobian(func: Callable, inputs: Any) -> Any:
    """The Jacobian by forward mode, all columns in one pass."""
    was_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    outputs_tuple = False

    def call(*values: Any) -> Any:
        nonlocal outputs_tuple
        outputs_tuple, outputs = _as_tuple(func(*values), "outputs of the user-provided function", "jacobian")
        return outputs

    rows = _derivatives._jacfwd(call, tuple(range(len(inputs))), False, "error", real=False)(*inputs)
    found = tuple(_finish(tuple(row), was_tuple, False) for row in rows)
    return found if outputs_tuple else found[0]


def _forward_jacobian(func: Callable, inputs: Any) -> Any:
    """The Jacobian column by column: one call of `func` per element of the inputs, whatever the number of outputs."""
    was_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    by_input: list[list[list]] = []
    shapes: list = []
    outputs_tuple = False
    for i, x in enumerate(inputs):
        columns: list[list] = []
        for k in range(x.numel()):
            direction = _ops.zeros_like(x.detach(), memory_format=contiguous_format)
            direction.view(-1)[k] = 1
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(y, direction) if j == i else y for j, y in enumerate(inputs)]
                outputs_tuple, outputs = _as_tuple(func(*duals), "outputs of the user-provided function", "jacobian")
                pairs = [forward_ad.unpack_dual(out) for out in outputs]
            columns.append([p.tangent if p.tangent is not None else _ops.zeros_like(p.primal) for p in pairs])
            shapes = [p.primal for p in pairs]
        by_input.append(columns)
    if not shapes:
        outputs_tuple, shapes = _as_tuple(func(*inputs), "outputs of the user-provided function", "jacobian")
    rows = []
    for i, out in enumerate(shapes):
        row = tuple(
            _ops.stack([column[i] for column in columns], -1).reshape(tuple(out.shape) + tuple(x.shape)) if columns else out.new_zeros(tuple(out.shape) + tuple(x.shape))
            for x, columns in zip(inputs, by_input)
        )
        rows.append(row if was_tuple else row[0])
    return tuple(rows) if outputs_tuple else rows[0]


def _scalar_output(func: Callable, inputs: tuple, function: str) -> Tensor:
    was_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", function)
    if was_tuple or not isinstance(outputs[0], TensorBase):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outputs[0].reshape(())


def hessian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode"
) -> Any:
    """The Hessian of a function of one element: input shape + input shape, nested twice where the inputs are a tuple.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error
        vectorize (bool, default False): whether all rows are computed in one pass
        outer_jacobian_strategy (str, default 'reverse-mode'): 'reverse-mode' or 'forward-mode', of the second
            derivative

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.autograd.functional.hessian(lambda x: (x ** 3).sum(), trt.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    was_tuple, values = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs):
        if outer_jacobian_strategy == "forward-mode":
            for x in xs:
                if not x.requires_grad:
                    x.requires_grad = True  # requires_grad_() is refused inside transforms
        out = _scalar_output(func, xs, "hessian")
        found = _gradients((out,), xs, (_ops.ones_like(out),), strict, True, "The output of the user-provided function")
        return found if was_tuple else found[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), v^T H) for a function of one element. v: the shapes of the inputs.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        v (Tensor, tuple of Tensors or None, default None): of the shapes of the inputs; None for one element
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error

    Example:
        >>> import tensorrt_lite as trt
        >>> x, v = trt.tensor([1.0, 2.0]), trt.tensor([1.0, 10.0])
        >>> trt.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, v)
        (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        was_tuple, inputs = _as_tuple(inputs, "inputs", "vhp")
        inputs = _prepare(inputs, create_graph)
        v = _vector(v, inputs, "vhp", "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.")
        out = _scalar_output(func, inputs, "vhp")
        first = _gradients((out,), inputs, (_ops.ones_like(out),), strict, True, "The output of the user-provided function")
        result = _gradients(first, inputs, v, strict, create_graph, "The gradient of the user-provided function")
    return _finish((out,), False, create_graph), _finish(result, was_tuple, create_graph)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(*inputs), H v). The Hessian of a twice continuously differentiable function is symmetric, so this is vhp.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments of func
        v (Tensor, tuple of Tensors or None, default None): of the shapes of the inputs; None for one element
        create_graph (bool, default False): whether the gradients record themselves, for higher derivatives
        strict (bool, default False): whether an output that does not depend on an input raises an error

    Example:
        >>> import tensorrt_lite as trt
        >>> x, v = trt.tensor([1.0, 2.0]), trt.tensor([1.0, 10.0])
        >>> trt.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, v)
        (tensor(9.), tensor([  6., 120.]))
    """
    return vhp(func, inputs, v, create_graph, strict)
