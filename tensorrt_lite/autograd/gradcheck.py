"""Derivatives checked against finite differences: `gradcheck`, `gradgradcheck` (`torch.autograd.gradcheck`).

The arithmetic of the check is done with Python numbers, so that a wrong operator cannot vouch for itself: of tensors it
needs only autograd, indexing, `fill_`, `tolist` and the creation of cotangents. A complex number counts as its two real
parts: the gradient of a real function is d/dRe + i d/dIm, and a complex output is two real outputs.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.core.hints import LazyModule

_func = LazyModule("tensorrt_lite.func")
_random = LazyModule("tensorrt_lite.random")
_transforms_mapping = LazyModule("tensorrt_lite._transforms.mapping")
_sparse = LazyModule("tensorrt_lite.sparse")
_testing = LazyModule("tensorrt_lite.testing")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

# A Jacobian as lists: one row per input element, one column per output element.
_Jacobian = list[list[complex]]


class GradcheckError(RuntimeError):
    """Raised when a gradient fails the check."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` agree with central differences of step `eps`: |a - n| <= atol + rtol * |n|.

    func: takes `inputs`, returns a tensor or a tuple of them. inputs: a tensor or a tuple, at least one of float64 or
    complex128 with `requires_grad` and no dimension of stride 0; they are perturbed in place and restored.
    nondet_tol: how far two runs of backward may differ. check_undefined_grad: backward must accept absent output
    gradients. check_forward_ad: tangents are compared, too; check_backward_ad: gradients are. fast_mode: compares one random projection of each Jacobian in place of all elements. check_batched_grad, check_batched_forward_grad: vmap over
    cotangents, over tangents, gives what a loop over them does. masked: sparse inputs are perturbed and differentiated at the
    elements that they store; NotImplementedError for sparse inputs without it.
    GradcheckError when a check fails, or False with `raise_exception=False`; ValueError when no input requires grad;
    RuntimeError for a stride of 0.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments, of float64 or complex128
        eps (float, default 1e-06): the step of the differences
        atol (float, default 1e-05): the absolute tolerance
        rtol (float, default 0.001): the relative tolerance
        raise_exception (bool, default True): whether a difference raises an error; else the result is False
        nondet_tol (float, default 0.0): how far two runs of backward may differ
        check_undefined_grad (bool, default True): whether backward must accept absent gradients
        check_grad_dtypes (bool, default False): whether gradients must have the dtype of their inputs
        check_batched_grad (bool, default False): whether vmap over cotangents is compared with a loop
        check_batched_forward_grad (bool, default False): whether vmap over tangents is compared with a loop
        check_forward_ad (bool, default False): whether tangents are compared, too
        check_backward_ad (bool, default True): whether gradients are compared
        fast_mode (bool, default False): whether one random projection of each Jacobian is compared, not all elements
        masked (bool or None, default None): whether only stored entries of sparse tensors count

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([0.5, 1.0], dtype=trt.float64, requires_grad=True)
        >>> trt.autograd.gradcheck(trt.sin, x)
        True
    """
    if any(map(_is_sparse, _as_tuple(inputs))):
        options = {name: value for name, value in locals().items() if name not in ("func", "inputs")}
        return _at_stored_elements(gradcheck, func, inputs, options)
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        check = _Check(func, _as_tuple(inputs), eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            if fast_mode:
                check.forward_direction()
            else:
                check.forward_jacobians()
            if check_batched_forward_grad:
                check.batched_tangents()
        if check_backward_ad:
            if fast_mode:
                check.projections()
            else:
                check.jacobians()
            if check_batched_grad:
                check.batched_cotangents()
            check.zero_cotangents()
            if check_undefined_grad:
                check.undefined_cotangents()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradients of `func`, with respect to its inputs and to the cotangents `grad_outputs`.

    check_rev_over_rev, check_fwd_over_rev: the second derivative by backward mode, by forward mode.
    grad_outputs: one tensor per differentiable output; drawn from [-1, 1) when None, as strided tensors with
    `gen_non_contig_grad_outputs`. The other arguments and the exceptions are those of `gradcheck`.

    Parameters:
        func (function): takes tensors and returns tensors
        inputs (Tensor or tuple of Tensors): the arguments, of float64 or complex128
        grad_outputs (Tensor, sequence of Tensors or None, default None): the cotangents; None draws them
        eps (float, default 1e-06): the step of the differences
        atol (float, default 1e-05): the absolute tolerance
        rtol (float, default 0.001): the relative tolerance
        gen_non_contig_grad_outputs (bool, default False): whether drawn cotangents are strided
        raise_exception (bool, default True): whether a difference raises an error; else the result is False
        nondet_tol (float, default 0.0): how far two runs of backward may differ
        check_undefined_grad (bool, default True): whether backward must accept absent gradients
        check_grad_dtypes (bool, default False): whether gradients must have the dtype of their inputs
        check_batched_grad (bool, default False): whether vmap over cotangents is compared with a loop
        check_fwd_over_rev (bool, default False): whether the second derivative by forward mode is compared
        check_rev_over_rev (bool, default True): whether that by backward mode is compared
        fast_mode (bool, default False): whether one random projection of each Jacobian is compared, not all elements
        masked (bool, default False): whether only stored entries of sparse tensors count

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([0.5, 1.0], dtype=trt.float64, requires_grad=True)
        >>> trt.autograd.gradgradcheck(trt.sin, x)
        True
    """
    if any(map(_is_sparse, _as_tuple(inputs))):
        options = {name: value for name, value in locals().items() if name not in ("func", "inputs")}
        if grad_outputs is not None:
            options["grad_outputs"] = tuple(g.to_dense() if _is_sparse(g) else g for g in _as_tuple(grad_outputs))
        return _at_stored_elements(gradgradcheck, func, inputs, options)
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = [tensor for tensor in _as_tuple(func(*inputs)) if tensor.requires_grad]
        cotangents = tuple(_random_cotangent(tensor, gen_non_contig_grad_outputs) for tensor in outputs)
    else:
        cotangents = _as_tuple(grad_outputs)
    wanted = [i for i, value in enumerate(inputs) if _differentiable(value)]

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        values, given = arguments[: len(inputs)], arguments[len(inputs) :]
        outputs = [tensor for tensor in _as_tuple(func(*values)) if tensor.requires_grad]
        targets = [values[i] for i in wanted]
        grads = autograd.grad(outputs, targets, given, create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        gradients,
        inputs + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad and check_rev_over_rev,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


class _Check:
    """One function at one point; every method raises GradcheckError on what it finds wrong."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        check_grad_dtypes: bool,
    ) -> None:
        _check_inputs(inputs)
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.nondet_tol, self.check_grad_dtypes = nondet_tol, check_grad_dtypes
        self.targets: list[Tensor] = [value for value in inputs if _differentiable(value)]
        returned = _as_tuple(func(*inputs))
        # Positions within what func returns, since a perturbed call is asked for the same outputs.
        self.places = [i for i, value in enumerate(returned) if _differentiable(value)]
        self.outputs: list[Tensor] = [returned[i] for i in self.places]
        if not self.places:
            self._expect_constant(returned)

    # ---- finite differences ----

    def _call(self, places: list[int]) -> list[Tensor]:
        returned = _as_tuple(self.func(*self.inputs))
        return [returned[i].detach() for i in places]

    def _difference(self, places: list[int], move: Callable[[float], None]) -> list[list[complex]]:
        """(f(x + eps d) - f(x - eps d)) / 2 eps for each output, flat; `move(s)` puts the inputs at x + s d."""
        sides = []
        try:
            for step in (-self.eps, self.eps):
                move(step)
                sides.append([(tensor.shape, tensor.dtype, _flat(tensor)) for tensor in self._call(places)])
        finally:
            move(0.0)
        columns = []
        for (shape, dtype, low), (other_shape, other_dtype, high) in zip(*sides, strict=True):
            for name, mine, theirs in (("shape", shape, other_shape), ("dtype", dtype, other_dtype)):
                if mine != theirs:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {name} when inputs are perturbed by "
                        f"{self.eps}, but got: {name}s {mine} and {theirs}."
                    )
            columns.append([(b - a) / (2 * self.eps) for a, b in zip(low, high, strict=True)])
        return columns

    def _numerical(self, target: Tensor, places: list[int]) -> list[tuple[_Jacobian, _Jacobian]]:
        """For each output the Jacobians of its real and of its imaginary part."""
        found: list[tuple[_Jacobian, _Jacobian]] = [([], []) for _ in places]
        for entry in _entries(target):
            origin = entry.item()

            def move(step: float, entry: Tensor = entry, origin: complex = origin, unit: complex = 1) -> None:
                # Zero steps restore the very value.
                entry.fill_(origin + step * unit if step else origin)

            along = self._difference(places, move)
            if _is_complex(target):
                across = self._difference(places, functools.partial(move, unit=1j))
            else:
                across = [[0.0] * len(column) for column in along]
            for (real, imag), by_x, by_y in zip(found, along, across, strict=True):
                real.append([_pack(x.real, y.real) for x, y in zip(by_x, by_y, strict=True)])
                imag.append([_pack(x.imag, y.imag) for x, y in zip(by_x, by_y, strict=True)])
        return found

    def _expect_constant(self, returned: tuple[Any, ...]) -> None:
        places = [i for i, value in enumerate(returned) if _is_inexact(value)]
        for target in self.targets:
            for pair in self._numerical(target, places):
                if any(value != 0 for jacobian in pair for row in jacobian for value in row):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    # ---- backward ----

    def _backward(self, output: Tensor, cotangent: Tensor) -> list[list[complex]]:
        """The gradient of each target, flat, zeros where there is none."""
        grads = autograd.grad(output, self.targets, cotangent, retain_graph=True, allow_unused=True)
        rows = []
        for target, grad in zip(self.targets, grads, strict=True):
            if grad is None:
                rows.append([0.0] * target.numel())
                continue
            if grad.shape != target.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: {tuple(grad.shape)} for an input of {tuple(target.shape)}"
                )
            if self.check_grad_dtypes and grad.dtype != target.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: {grad.dtype} for an input of {target.dtype}")
            rows.append(_flat(grad.detach()))
        return rows

    def _backward_twice(self, output: Tensor, cotangent: Tensor) -> list[list[complex]]:
        first, second = self._backward(output, cotangent), self._backward(output, cotangent)
        for mine, theirs in zip(first, second, strict=True):
            # Infinities and NaN differ from nothing here; the comparison with the differences finds them.
            if any(abs(a - b) > self.nondet_tol for a, b in zip(mine, theirs, strict=True)):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient. "
                    f"The tolerance for nondeterminism was {self.nondet_tol}."
                )
        return first

    def _analytical(self, output: Tensor, unit: complex) -> list[_Jacobian]:
        """For each target the Jacobian of the part of `output` that the cotangent `unit` selects."""
        columns = []
        for k in range(output.numel()):
            cotangent = trt.zeros(output.numel(), dtype=output.dtype, device=output.device)
            cotangent[k] = unit
            columns.append(self._backward_twice(output, cotangent.reshape(output.shape)))
        return [
            [[column[i][row] for column in columns] for row in range(target.numel())]
            for i, target in enumerate(self.targets)
        ]

    # ---- forward ----

    def _tangents(self, i: int, direction: list[complex]) -> list[list[complex]]:
        """For each output, flat, the derivative along a direction in which target i moves."""
        forward = autograd.forward_ad
        tangent = trt.tensor(direction, dtype=self.targets[i].dtype, device=self.targets[i].device)
        tangent = tangent.reshape(self.targets[i].shape)
        with forward.dual_level():
            dual = forward.make_dual(self.targets[i], tangent)
            returned = _as_tuple(self.func(*(dual if value is self.targets[i] else value for value in self.inputs)))
            found = []
            for place in self.places:
                value = forward.unpack_dual(returned[place]).tangent
                if value is not None and value.shape != returned[place].shape:
                    raise GradcheckError(
                        f"Forward gradient has incorrect size: {tuple(value.shape)} for an output of {tuple(returned[place].shape)}"
                    )
                found.append([0.0] * returned[place].numel() if value is None else _flat(value.detach()))
            return found

    def forward_jacobians(self) -> None:
        """All elements of all Jacobians by forward mode, one row at a time."""
        for i, target in enumerate(self.targets):
            numerical = self._numerical(target, self.places)
            analytical: list[tuple[_Jacobian, _Jacobian]] = [([], []) for _ in self.places]
            for k in range(target.numel()):
                unit = [1.0 * (k == other) for other in range(target.numel())]
                along = self._tangents(i, unit)
                across = self._tangents(i, [1j * u for u in unit]) if _is_complex(target) else [[0.0] * len(a) for a in along]
                for (real, imag), by_x, by_y in zip(analytical, along, across, strict=True):
                    real.append([_pack(x.real, y.real) for x, y in zip(by_x, by_y, strict=True)])
                    imag.append([_pack(x.imag, y.imag) for x, y in zip(by_x, by_y, strict=True)])
            for j, output in enumerate(self.outputs):
                for part in range(len(_units(output))):
                    self._compare(analytical[j][part], numerical[j][part], i, j, part, "computed with forward mode ")

    def forward_direction(self) -> None:
        """J u for each Jacobian J, with a random direction u; on a mismatch, all elements."""
        random = _random.Generator().manual_seed(0)
        for i, target in enumerate(self.targets):
            direction = _direction(target, random)
            along = self._difference(self.places, _mover(target, direction))
            atol = self.atol * max(1.0, sum(map(abs, direction)))
            for j, (mine, theirs) in enumerate(zip(self._tangents(i, direction), along, strict=True)):
                for a, n in zip(mine, theirs, strict=True):
                    if not _close(a, n, self.rtol, atol):
                        self.forward_jacobians()
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {j} with respect to input {i},\n"
                            f"numerical:{n}\nanalytical:{a}\n"
                            "along a random direction (fast mode), although all elements pass in slow mode."
                        )

    # ---- checks ----

    def batched_cotangents(self) -> None:
        """Two cotangents at once by vmap, and one after the other."""
        for output in self.outputs:
            batch = trt.stack([_random_cotangent(output, False) for _ in range(2)])
            alone = [autograd.grad(output, self.targets, g, retain_graph=True, allow_unused=True) for g in batch.unbind(0)]
            try:
                together = autograd.grad(output, self.targets, batch, retain_graph=True, allow_unused=True, is_grads_batched=True)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            for i, (mine, *theirs) in enumerate(zip(together, *alone, strict=True)):
                if (mine is None) != (theirs[0] is None) or mine is not None and not trt.allclose(mine, trt.stack(theirs), rtol=self.rtol, atol=self.atol):
                    raise GradcheckError(f"The batched gradient with respect to input {i} is not that of the cotangents one by one: {mine} and {theirs}")

    def batched_tangents(self) -> None:
        """Two tangents at once by vmap, and one after the other."""
        for i, target in enumerate(self.targets):

            def derivative(tangent: Tensor, target: Tensor = target) -> tuple[Tensor, ...]:
                def call(value: Tensor) -> tuple[Tensor, ...]:
                    returned = _as_tuple(self.func(*(value if given is target else given for given in self.inputs)))
                    return tuple(returned[place] for place in self.places)

                return _func.jvp(call, (target.detach(),), (tangent,))[1]

            batch = trt.stack([_random_cotangent(target, False) for _ in range(2)])
            alone = [derivative(t) for t in batch.unbind(0)]
            try:
                together = _transforms_mapping.vmap(derivative)(batch)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                raise GradcheckError(f"While computing batched forward gradients, got: {error}") from error
            for j, (mine, *theirs) in enumerate(zip(together, *alone, strict=True)):
                if not trt.allclose(mine, trt.stack(theirs), rtol=self.rtol, atol=self.atol):
                    raise GradcheckError(f"The batched forward gradient of output {j} with respect to input {i} is not that of the tangents one by one: {mine} and {theirs}")

    def jacobians(self) -> None:
        """All elements of all Jacobians."""
        numerical = [self._numerical(target, self.places) for target in self.targets]
        for j, output in enumerate(self.outputs):
            for part, unit in enumerate(_units(output)):
                analytical = self._analytical(output, unit)
                for i in range(len(self.targets)):
                    self._compare(analytical[i], numerical[i][j][part], i, j, part)

    def _compare(
        self, analytical: _Jacobian, numerical: _Jacobian, i: int, j: int, part: int, how: str = ""
    ) -> None:
        for mine, theirs in zip(analytical, numerical, strict=True):
            for a, n in zip(mine, theirs, strict=True):
                if not _close(a, n, self.rtol, self.atol):
                    raise GradcheckError(
                        f"{self._part(j, part)}Jacobian {how}mismatch for output {j} with respect to input {i},\n"
                        f"numerical:{trt.tensor(numerical, dtype=self._jacobian_dtype(i))}\n"
                        f"analytical:{trt.tensor(analytical, dtype=self._jacobian_dtype(i))}\n"
                    )

    def _part(self, j: int, part: int) -> str:
        if not _is_complex(self.outputs[j]):
            return ""
        return f"While considering the {('real', 'imaginary')[part]} part of complex outputs only, "

    def _jacobian_dtype(self, i: int) -> Any:
        return trt.complex128 if _is_complex(self.targets[i]) else trt.float64

    def projections(self) -> None:
        """One number v J u for each Jacobian J, with random directions u and v; on a mismatch, all elements."""
        # Seeded apart from the user's generator, so that a check neither disturbs it nor fails at random.
        random = _random.Generator().manual_seed(0)
        directions = [_direction(target, random) for target in self.targets]
        for i, target in enumerate(self.targets):
            along = self._difference(self.places, _mover(target, directions[i]))
            for j, output in enumerate(self.outputs):
                for part, unit in enumerate(_units(output)):
                    weights = _direction(output, random, real=True)
                    cotangent = trt.tensor([weight * unit for weight in weights], dtype=output.dtype)
                    cotangent = cotangent.to(output.device).reshape(output.shape)
                    grads = self._backward_twice(output, cotangent)[i]
                    # The derivative of a real function along u is Re(conj(gradient) u).
                    a = sum((g.conjugate() * u).real for g, u in zip(grads, directions[i], strict=True))
                    values = [(value.real, value.imag)[part] for value in along[j]]
                    n = sum(weight * value for weight, value in zip(weights, values, strict=True))
                    # An error of atol in every element may add up to this.
                    atol = self.atol * sum(map(abs, directions[i])) * sum(weights)
                    if not _close(a, n, self.rtol, atol):
                        self.jacobians()
                        raise GradcheckError(
                            f"{self._part(j, part)}Jacobian mismatch for output {j} with respect to input {i},\n"
                            f"numerical:{n}\nanalytical:{a}\n"
                            "in a random projection (fast mode), although all elements pass in slow mode."
                        )

    def zero_cotangents(self) -> None:
        """Backward must be linear in the cotangent: zero gives zero, of the inputs' dtype, device and size."""
        if not self.outputs:
            return
        zeros = [trt.zeros_like(output) for output in self.outputs]
        grads = autograd.grad(self.outputs, self.targets, zeros, allow_unused=True)
        for grad, target in zip(grads, self.targets, strict=True):
            if grad is None:
                continue
            if any(value != 0 for value in _flat(grad.detach())):
                raise GradcheckError("backward not multiplied by grad_output")
            for name, mine, theirs in (
                ("type", grad.dtype, target.dtype),
                ("device", grad.device, target.device),
                ("size", grad.shape, target.shape),
            ):
                if mine != theirs:
                    raise GradcheckError(f"grad is incorrect {name}")

    def undefined_cotangents(self) -> None:
        """Absent output gradients, all or one at a time, must act as zeros."""
        count = len(self.outputs)
        absent = [set(range(count)), *({j} for j in range(count) if count > 1)]
        for chosen in absent if count else []:
            returned = _as_tuple(self.func(*self.inputs))
            outputs = [returned[i] for i in self.places]
            ends = [_undefine(output) if j in chosen else output for j, output in enumerate(outputs)]
            zeros = [trt.zeros_like(output) for output in outputs]
            try:
                grads = autograd.grad(ends, self.targets, zeros, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError("Expected backward function to handle undefined output grads.") from error
            if any(value != 0 for grad in grads if grad is not None for value in _flat(grad.detach())):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
                )


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    found = False
    for i, value in enumerate(inputs):
        if not _differentiable(value):
            continue
        found = True
        if value.dtype not in (trt.float64, trt.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _is_sparse(value: Any) -> bool:
    return isinstance(value, trt.Tensor) and value.layout is not trt.strided and not value.is_nested


def _at_stored_elements(check: Callable[..., bool], func: Callable[..., Any], inputs: Any, options: dict[str, Any]) -> bool:
    """A check of the function of the values that sparse inputs store."""
    if not options["masked"]:
        raise NotImplementedError(
            f"{check.__name__} of sparse inputs is not implemented without masked=True (docs/gaps.md): gradients are those of stored entries"
        )

    return bool(_sparse.as_sparse_gradcheck(check)(func, inputs, **{**options, "masked": True}))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable(value: Any) -> bool:
    return isinstance(value, trt.Tensor) and value.requires_grad


def _is_complex(tensor: Tensor) -> bool:
    return bool(tensor.dtype.is_complex)


def _is_inexact(value: Any) -> bool:
    return isinstance(value, trt.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def _flat(tensor: Tensor) -> list[Any]:
    return tensor.reshape(-1).tolist()


def _pack(by_x: float, by_y: float) -> complex:
    """A derivative by the real and by the imaginary part of an input, as PyTorch writes a gradient."""
    return complex(by_x, by_y) if by_y else by_x


def _close(a: complex, n: complex, rtol: float, atol: float) -> bool:
    difference = abs(a - n)
    return a == n or (math.isfinite(difference) and difference <= atol + rtol * abs(n))


def _units(output: Tensor) -> Sequence[complex]:
    """The cotangents that select an element's real and, of complex outputs, imaginary part."""
    return (1, 1j) if _is_complex(output) else (1,)


def _entries(tensor: Tensor) -> Iterator[Tensor]:
    """Zero-dimensional views of all elements; writing to them reaches neither the graph nor the version counter."""
    data = tensor.data
    if data.dim() == 0:
        yield data
        return
    for index in product(*(range(size) for size in data.shape)):
        yield data[index]


def _mover(target: Tensor, direction: list[complex]) -> Callable[[float], None]:
    entries = list(_entries(target))
    origins = [entry.item() for entry in entries]

    def move(step: float) -> None:
        for entry, origin, slope in zip(entries, origins, direction, strict=True):
            entry.fill_(origin + step * slope if step else origin)

    return move


def _direction(tensor: Tensor, random: Any, real: bool = False) -> list[Any]:
    """A random unit vector with the tensor's number of elements."""
    count = tensor.numel()
    values: list[Any] = trt.rand(count, dtype=trt.float64, generator=random).tolist()
    if _is_complex(tensor) and not real:
        other = trt.rand(count, dtype=trt.float64, generator=random).tolist()
        values = [complex(x, y) for x, y in zip(values, other, strict=True)]
    length = math.sqrt(sum(abs(value) ** 2 for value in values)) or 1.0
    return [value / length for value in values]


def _random_cotangent(output: Tensor, strided: bool) -> Tensor:
    return _testing.make_tensor(
        tuple(output.shape),
        dtype=output.dtype,
        device=output.device,
        low=-1,
        high=1,
        requires_grad=True,
        noncontiguous=strided,
    )


def _undefine(output: Tensor) -> Tensor:
    """The same values behind a node that hands no gradient on."""
    return _undefined_class().apply(output)


@functools.cache
def _undefined_class() -> Any:
    # Made on first use: this module may be imported while tensorrt_lite.autograd is.
    class UndefinedGrad(autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, tensor: Tensor) -> Tensor:
            return tensor.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> None:
            return None

    return UndefinedGrad
