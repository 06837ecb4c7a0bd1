"""The ways in which an operator is called, one generator of cases per kind.

A case is a label and a function that performs the call in a given library and returns what happened; `runner` performs
it in PyTorch and in the library under test and lets `compare` judge. A kind is asked for its cases only where `applies`
says that the operator has them.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_utils import noncontiguous_like
from torch.testing._internal.opinfo.core import gradcheck_wrapper_hermitian_input, gradcheck_wrapper_triangular_input
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from . import opinfo
from .compare import Leaf, Observed, observe, rank_positions
from .library import Library

# Operators of Python that OpInfo does not state for these.
_OPERATORS = {
    "div.no_rounding_mode": operator.truediv,
    "floor_divide": operator.floordiv,
}
_INPLACE_OPERATORS = {"div.no_rounding_mode": operator.itruediv, "floor_divide": operator.ifloordiv}
# Unusual out= arguments are tried on so many samples of each dtype.
_UNUSUAL_OUT_SAMPLES = 4
_TRIANGLES = (gradcheck_wrapper_hermitian_input, gradcheck_wrapper_triangular_input)
# Forward over reverse is tried on so many samples of each dtype.
_OVER_REVERSE_SAMPLES = 3


@dataclass(frozen=True)
class Case:
    """`exact` gives PyTorch's outcome on the same arguments in double precision."""

    label: str
    run: Callable[[Library], Observed]
    exact: Callable[[], Observed] | None = None


def _attempt(call: Callable[[], Observed]) -> Observed:
    try:
        return call()
    except Exception as error:  # whatever the library raises is the outcome to compare
        return Observed(error=error)


def _call_case(
    op: OpInfo, label: str, sample: SampleInput, resolve: Callable[[Library], Callable[..., Any]], extra: Any = None
) -> Case:
    """A case that calls `resolve(library)` on the sample; `extra` is given as out= when it is not None."""

    def run(library: Library) -> Observed:
        function = resolve(library)

        def call() -> Observed:
            first, args, kwargs, out = library.arguments(sample.input, list(sample.args), dict(sample.kwargs), extra)
            if out is not None:
                kwargs["out"] = out
            if op.name in opinfo.RANDOM:
                library.module.manual_seed(1234)
            result = function(first, *args, **kwargs)
            if op.name in opinfo.FREE_VECTORS:
                written = kwargs.pop("out", None)
                same = None if written is None else [a is b for a, b in zip(result, written, strict=True)]
                result = [_determined(sample, result), same]
            observed = observe(library, result, (first, args, kwargs))
            if (dim := opinfo.selected_dimension(op, sample)) is not None:
                rank_positions(observed, dim)
            return observed

        return _attempt(call)

    def exact() -> Observed:
        found = _call_case(op, label, sample.transform(functools.partial(_doubled, op)), resolve).run(Library(torch))
        if op.name in opinfo.EXACT and isinstance(found.result, Leaf):
            found.result.value = sample.input.double().apply_(lambda x: opinfo.EXACT[op.name](x, *sample.args))
        if extra is not None and found.error is None:
            # What the given outputs, the last of the arguments, should hold.
            leaves = found.result if isinstance(found.result, list) else [found.result]
            if op.name not in opinfo.FREE_VECTORS:
                found.arguments += [leaf.value for leaf in leaves]
        return found

    return Case(label, run, exact if op.name not in opinfo.RANDOM else None)


def _determined(sample: SampleInput, result: Any) -> Any:
    """What of a result does not depend on which of its vectors a library chose; PyTorch's samples know it."""
    return sample.output_process_fn_grad(result)


def _doubled(op: OpInfo, value: Any) -> Any:
    """A tensor of floating or complex numbers in double precision, of integers too where the operator makes floats of them; other values as they are."""
    counted = (getattr(op, "promotes_int_to_float", False) or op.name.startswith("special.")) and isinstance(value, torch.Tensor)
    if not isinstance(value, torch.Tensor) or not (counted or value.is_floating_point() or value.is_complex()):
        return value
    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)


def autocast(op: OpInfo) -> Iterator[Case]:
    """Samples of float32, and the same rounded to bfloat16, under autocast("cpu") with bfloat16: the dtypes of all results, and their values within
    bfloat16's precision of the largest of them."""
    for low in (False, True):
        if not op.supports_dtype(torch.float32, "cpu"):
            return
        for sample in opinfo.samples(op, torch.float32):
            given = sample.transform(_rounded) if low else sample
            label = _label(torch.bfloat16 if low else torch.float32, given)
            case = _autocast_case(op, label, given)
            if not low or _speaks_of_autocast(op, given, case):
                yield case


def _speaks_of_autocast(op: OpInfo, sample: SampleInput, case: Case) -> bool:
    """Whether a sample in bfloat16 is the operator's, or PyTorch computes it under autocast alone: empty tensors pass where there is no kernel."""
    reference = Library(torch)
    if case.run(reference).error is not None:
        return False
    return op.supports_dtype(torch.bfloat16, "cpu") or plain_result(op, sample, reference).error is not None


def _rounded(value: Any) -> Any:
    return value.detach().to(torch.bfloat16) if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


def _autocast_case(op: OpInfo, label: str, sample: SampleInput) -> Case:
    def resolve(library: Library) -> Callable[..., Any]:
        function = library.function(op)

        def call(*args: Any, **kwargs: Any) -> Any:
            with library.module.autocast("cpu", dtype=library.module.bfloat16):
                return function(*args, **kwargs)

        return call

    return _call_case(op, label, sample, resolve)


def _label(dtype: torch.dtype, sample: SampleInput, prefix: str = "") -> str:
    return f"{str(dtype).removeprefix('torch.')}: {prefix}({opinfo.describe(sample)})"


def forward(op: OpInfo, dtypes: list[torch.dtype] | None = None) -> Iterator[Case]:
    for dtype in opinfo.dtypes(op) if dtypes is None else dtypes:
        for sample in opinfo.samples(op, dtype):
            yield _call_case(op, _label(dtype, sample), sample, lambda library: library.function(op))


def method(op: OpInfo) -> Iterator[Case]:
    for dtype in opinfo.dtypes(op):
        for sample in opinfo.samples(op, dtype):
            yield _call_case(op, _label(dtype, sample), sample, lambda library: library.method(op.method_variant))


def inplace(op: OpInfo) -> Iterator[Case]:
    for dtype in opinfo.dtypes(op):
        for sample in opinfo.samples(op, dtype):
            yield _call_case(op, _label(dtype, sample), sample, lambda library: library.method(op.inplace_variant))


def operators(op: OpInfo) -> Iterator[Case]:
    """Python's operators: `a + b`, `a += b`, and `2 + b` for samples with a number."""
    name = opinfo.key(op)
    plain = op.operator_variant or _OPERATORS.get(name)
    augmented = op.inplace_operator_variant or _INPLACE_OPERATORS.get(name)
    for function in filter(None, (plain, augmented)):
        for dtype in opinfo.dtypes(op):
            for sample in opinfo.samples(op, dtype):
                if sample.kwargs:
                    continue
                label = _label(dtype, sample, f"operator.{function.__name__}")
                yield _call_case(op, label, sample, lambda library, function=function: function)
                number = sample.args[0] if len(sample.args) == 1 else None
                if function is plain and isinstance(number, (bool, int, float, complex)):
                    reflected = SampleInput(number, args=(sample.input,))
                    label = _label(dtype, reflected, f"operator.{function.__name__}")
                    yield _call_case(op, label, reflected, lambda library, function=function: function)


def noncontiguous(op: OpInfo) -> Iterator[Case]:
    """Every tensor strided with a storage offset, then every tensor with its dimensions in reversed memory order."""

    def reverse(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() < 2:
            return value
        order = tuple(reversed(range(value.dim())))
        return value.detach().permute(order).contiguous().permute(order).requires_grad_(value.requires_grad)

    def spread(value: Any) -> Any:
        return noncontiguous_like(value) if isinstance(value, torch.Tensor) else value

    for name, transform in (("spread ", spread), ("reversed ", reverse)):
        for dtype in opinfo.dtypes(op):
            for sample in opinfo.samples(op, dtype):
                changed = sample.transform(transform)
                label = _label(dtype, changed, name)
                yield _call_case(op, label, changed, lambda library: library.function(op))


def out(op: OpInfo) -> Iterator[Case]:
    """out= holding garbage of the right shape, empty, strided; on some samples of wrong shape, dtype, or with grad."""
    reference = Library(torch)
    for dtype in opinfo.dtypes(op):
        for i, sample in enumerate(opinfo.samples(op, dtype)):
            plain = plain_result(op, sample, reference)
            leaves = plain.result if isinstance(plain.result, list) else [plain.result]
            if plain.error is not None or not leaves or not all(isinstance(leaf, Leaf) for leaf in leaves):
                continue
            for name, makers in _OUT_MAKERS.items():
                if name in _UNUSUAL_OUT and i >= _UNUSUAL_OUT_SAMPLES:
                    continue
                made = [makers(leaf) for leaf in leaves]
                if any(tensor is None for tensor in made):
                    continue
                target = tuple(made) if isinstance(plain.result, list) else made[0]
                label = _label(dtype, sample, f"out={name} ")
                yield _call_case(op, label, sample, lambda library: library.function(op), target)


def plain_result(op: OpInfo, sample: SampleInput, reference: Library) -> Observed:
    """What PyTorch returns, vectors as they are."""

    def call() -> Observed:
        first, args, kwargs = reference.sample(sample)
        return observe(reference, reference.function(op)(first, *args, **kwargs), (first, args, kwargs))

    return _attempt(call)


def garbage(leaf: Leaf, dtype: torch.dtype | None = None, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    dtype = dtype or leaf.dtype
    value: Any = float("nan") if dtype.is_floating_point or dtype.is_complex else 1
    return torch.full(leaf.shape if shape is None else shape, value, dtype=dtype)


_OUT_MAKERS: dict[str, Callable[[Leaf], torch.Tensor | None]] = {
    "garbage": garbage,
    "empty": lambda leaf: torch.empty(0, dtype=leaf.dtype),
    "strided": lambda leaf: noncontiguous_like(garbage(leaf)),
    "other shape": lambda leaf: garbage(leaf, shape=(*leaf.shape, 2)),
    "double": lambda leaf: garbage(leaf, dtype=torch.float64),
    "int": lambda leaf: garbage(leaf, dtype=torch.int32),
    "bool": lambda leaf: garbage(leaf, dtype=torch.bool),
    "requires grad": lambda leaf: garbage(leaf).requires_grad_() if leaf.dtype.is_floating_point else None,
}
_UNUSUAL_OUT = {"other shape", "double", "int", "bool", "requires grad"}


def errors(op: OpInfo) -> Iterator[Case]:
    for sample in opinfo.error_samples(op):
        label = f"({opinfo.describe(sample)})"
        if sample.kwargs.get("out") is not None or op.variant_test_name != "in_place":
            yield _call_case(op, label, sample, lambda library: library.function(op))
        else:
            yield _call_case(op, label, sample, lambda library: library.method(op.inplace_variant))


def grad(op: OpInfo) -> Iterator[Case]:
    """First derivatives by autograd.grad in float64 with random cotangents, also through the in-place variant."""
    yield from _derivative_cases(op, 1)


def gradgrad(op: OpInfo) -> Iterator[Case]:
    """Derivatives of first derivatives with respect to inputs and cotangents, in float64."""
    yield from _derivative_cases(op, 2)


def _derivative_cases(op: OpInfo, order: int) -> Iterator[Case]:
    dtype = torch.float64
    through = [("", lambda library: library.function(op))]
    if op.inplace_variant is not None and op.supports_inplace_autograd:
        through.append(("in-place ", lambda library: library.method(op.inplace_variant)))
    for name, resolve in through:
        for sample in opinfo.samples(op, dtype, requires_grad=True):
            inplace = bool(name)
            if inplace and (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor)):
                continue
            yield _derivative_case(op, _label(dtype, sample, name), sample, resolve, order, inplace)


def _derivative_case(
    op: OpInfo,
    label: str,
    sample: SampleInput,
    resolve: Callable[[Library], Callable[..., Any]],
    order: int,
    inplace: bool,
) -> Case:
    def run(library: Library) -> Observed:
        function = resolve(library)
        return _attempt(lambda: derivatives(op, library, function, sample, order, inplace))

    return Case(label, run)


def derivatives(
    op: OpInfo, library: Library, function: Callable[..., Any], sample: SampleInput, order: int, inplace: bool
) -> Observed:
    """autograd.grad of all differentiable outputs to all leaves; with `order` 2 the gradient of that."""
    first, args, kwargs = library.sample(sample)
    leaves = [tensor for tensor in library.tensors(first, args, kwargs) if tensor.requires_grad]
    leaves = list({id(tensor): tensor for tensor in leaves}.values())
    if op.name in opinfo.RANDOM:
        library.module.manual_seed(1234)
    # An in-place operator must not write to a leaf.
    result = function(first.clone() if inplace else first, *args, **kwargs)
    if op.name in opinfo.FREE_VECTORS:
        result = _determined(sample, result)
    outputs = [tensor for tensor in library.tensors(result) if tensor.requires_grad]
    if not outputs or not leaves:
        return Observed(result=[bool(outputs), bool(leaves)])
    differentiate = library.module.autograd.grad
    random = torch.Generator().manual_seed(7)
    cotangents = _cotangents(library, outputs, random, requires_grad=order > 1)
    grads = differentiate(outputs, leaves, cotangents, create_graph=order > 1, allow_unused=True)
    if order == 1:
        return observe(library, [tensor.detach() if tensor is not None else None for tensor in grads], ())
    # Which of the first derivatives hang on a graph is each library's choice (a constant zero may or may not), so an
    # absent second derivative counts as zero.
    targets = leaves + cotangents
    second: list[Any] = [None] * len(targets)
    # Drawn for every leaf, whatever its derivative is, so that both libraries draw alike.
    draws = _cotangents(library, leaves, random, requires_grad=False)
    pairs = [(g, d) for g, d in zip(grads, draws, strict=True) if g is not None and g.requires_grad]
    if pairs:
        second = list(differentiate([g for g, _ in pairs], targets, [d for _, d in pairs], allow_unused=True))
    zeros = library.module.zeros_like
    filled = [zeros(target).detach() if value is None else value for value, target in zip(second, targets, strict=True)]
    return observe(library, [tensor.detach() for tensor in filled], ())


def forward_ad(op: OpInfo) -> Iterator[Case]:
    """Tangents of the results for random tangents of the inputs, in float64 and complex128, also through the in-place
    variant; and, for some samples, the tangents of the gradients (forward over reverse)."""
    for dtype in (torch.float64, torch.complex128):
        if not op.supports_dtype(dtype, "cpu"):
            continue
        through = [("", lambda library: library.function(op))]
        if op.inplace_variant is not None and op.supports_inplace_autograd and dtype is torch.float64:
            through.append(("in-place ", lambda library: library.method(op.inplace_variant)))
        for name, resolve in through:
            for i, sample in enumerate(opinfo.samples(op, dtype, requires_grad=True)):
                if name and (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor)):
                    continue
                yield _tangent_case(op, _label(dtype, sample, name), sample, resolve, bool(name), False)
                if i < _OVER_REVERSE_SAMPLES and op.supports_gradgrad:
                    yield _tangent_case(op, _label(dtype, sample, f"{name}over reverse "), sample, resolve, bool(name), True)


def _tangent_case(
    op: OpInfo, label: str, sample: SampleInput, resolve: Callable[[Library], Callable[..., Any]], inplace: bool, over: bool
) -> Case:
    def run(library: Library) -> Observed:
        function = resolve(library)
        call = over_reverse if over else tangents
        found = _attempt(lambda: call(op, library, function, sample, inplace))
        if library.Tensor is torch.Tensor and isinstance(found.error, (NotImplementedError, RuntimeError)):
            # PyTorch has no rule for some: the transposed gradient says what it would be.
            found = _attempt(lambda: transposed(op, library, function, sample, inplace, over))
        return found

    return Case(label, run)


def _drawn(library: Library, op: OpInfo, sample: SampleInput, inplace: bool) -> tuple[Any, list[Any], list[Any]]:
    """(a call of a function on tensors in the place of the sample's leaves, these leaves, a random tangent of each)."""
    first, args, kwargs = library.sample(sample)
    leaves = [tensor for tensor in library.tensors(first, args, kwargs) if tensor.requires_grad]
    leaves = list({id(tensor): tensor for tensor in leaves}.values())
    directions = _cotangents(library, leaves, torch.Generator().manual_seed(11), requires_grad=False)

    def call(function: Callable[..., Any], given: list[Any]) -> list[Any]:
        places = {id(leaf): value for leaf, value in zip(leaves, given, strict=True)}

        def placed(value: Any) -> Any:
            if library.is_tensor(value):
                return places.get(id(value), value)
            if isinstance(value, (list, tuple)):
                return type(value)(placed(item) for item in value)
            return {name: placed(item) for name, item in value.items()} if isinstance(value, dict) else value

        if op.name in opinfo.RANDOM:
            library.module.manual_seed(1234)
        start = placed(first)
        if inplace:  # must not write to a leaf
            result = function(start.clone(), *placed(args), **placed(kwargs))
        else:
            # Where an operator reads one triangle alone, PyTorch's samples make the matrix from it or its two halves alike.
            wrapper = op.gradcheck_wrapper if op.gradcheck_wrapper in _TRIANGLES else lambda f, *a, **k: f(*a, **k)
            result = wrapper(function, start, *placed(args), **placed(kwargs))
        result = _determined(sample, result)
        return [t for t in library.tensors(result) if t.dtype.is_floating_point or t.dtype.is_complex]

    return call, leaves, directions


def tangents(op: OpInfo, library: Library, function: Callable[..., Any], sample: SampleInput, inplace: bool) -> Observed:
    """The tangent of each result, zeros where there is none."""
    call, leaves, directions = _drawn(library, op, sample, inplace)
    forward = library.module.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(leaf.detach(), way) for leaf, way in zip(leaves, directions, strict=True)]
        pairs = [forward.unpack_dual(tensor) for tensor in call(function, duals)]
        found = [_or_zeros(library, pair.tangent, pair.primal) for pair in pairs]
        return observe(library, found, ())


def over_reverse(
    op: OpInfo, library: Library, function: Callable[..., Any], sample: SampleInput, inplace: bool
) -> Observed:
    """The tangent of the gradient of each leaf."""
    call, leaves, directions = _drawn(library, op, sample, inplace)
    forward = library.module.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(leaf, way) for leaf, way in zip(leaves, directions, strict=True)]
        outputs = [tensor for tensor in call(function, duals) if tensor.requires_grad]
        if not outputs or not leaves:
            return Observed(result=[bool(outputs), bool(leaves)])
        weights = _cotangents(library, outputs, torch.Generator().manual_seed(7), requires_grad=False)
        grads = library.module.autograd.grad(outputs, duals, weights, allow_unused=True)
        pairs = [None if grad is None else forward.unpack_dual(grad).tangent for grad in grads]
        found = [_or_zeros(library, value, leaf) for value, leaf in zip(pairs, leaves, strict=True)]
        return observe(library, found, ())


def transposed(
    op: OpInfo, library: Library, function: Callable[..., Any], sample: SampleInput, inplace: bool, over: bool
) -> Observed:
    """What `tangents` or `over_reverse` state, by differentiating the gradient with respect to its cotangents."""
    call, leaves, directions = _drawn(library, op, sample, inplace)
    differentiate = library.module.autograd.grad
    results = call(function, leaves)
    outputs = [tensor for tensor in results if tensor.requires_grad]
    if not outputs or not leaves:
        zeros = [_or_zeros(library, None, tensor) for tensor in results]
        return Observed(result=[bool(outputs), bool(leaves)]) if over else observe(library, zeros, ())
    if over:
        weights = _cotangents(library, outputs, torch.Generator().manual_seed(7), requires_grad=False)
        grads = differentiate(outputs, leaves, weights, create_graph=True, allow_unused=True)
        outputs = [grad for grad in grads if grad is not None and grad.requires_grad]
        results = [leaf if grad is None else grad for grad, leaf in zip(grads, leaves, strict=True)]
    cotangents = [library.module.zeros_like(tensor.detach()).requires_grad_() for tensor in outputs]
    found: dict[int, Any] = {}
    if outputs:
        grads = differentiate(outputs, leaves, cotangents, create_graph=True, allow_unused=True)
        used = [(g, way) for g, way in zip(grads, directions, strict=True) if g is not None and g.requires_grad]
        if used:
            values = differentiate([g for g, _ in used], cotangents, [way for _, way in used], allow_unused=True)
            found = {id(tensor): value for tensor, value in zip(outputs, values, strict=True)}
    return observe(library, [_or_zeros(library, found.get(id(tensor)), tensor) for tensor in results], ())


def _or_zeros(library: Library, value: Any, like: Any) -> Any:
    return library.module.zeros_like(like.detach()) if value is None else value.detach()


def _cotangents(library: Library, tensors: list[Any], random: torch.Generator, requires_grad: bool) -> list[Any]:
    drawn = []
    for tensor in tensors:
        dtype = getattr(torch, str(tensor.dtype).rpartition(".")[2])
        value = torch.randn(tuple(tensor.shape), dtype=dtype, generator=random)
        drawn.append(value.requires_grad_(requires_grad))
    return list(library.arguments(*drawn))


def dispatch(op: OpInfo) -> Iterator[Case]:
    """Forward in double precision and gradients with a TorchDispatchMode that issues every operator again, forward, backward and in between."""
    for case in itertools.chain(forward(op, [torch.float64]) if op.supports_dtype(torch.float64, "cpu") else (), grad(op) if applies(op, "grad") else ()):
        yield Case(case.label, functools.partial(_reissued, case), case.exact)


def _reissued(case: Case, library: Library) -> Observed:
    if library.module is torch:
        return case.run(library)
    from tensorrt_lite.utils._python_dispatch import BaseTorchDispatchMode

    with BaseTorchDispatchMode():
        return case.run(library)


KINDS: dict[str, Callable[[OpInfo], Iterator[Case]]] = {
    "forward": forward,
    "method": method,
    "inplace": inplace,
    "operators": operators,
    "out": out,
    "noncontig": noncontiguous,
    "grad": grad,
    "gradgrad": gradgrad,
    "forward_ad": forward_ad,
    "errors": errors,
    "dispatch": dispatch,
    "autocast": autocast,
}


def applies(op: OpInfo, kind: str) -> bool:
    """Whether the operator has any case of this kind."""
    if kind == "method":
        return op.method_variant is not None
    if kind == "inplace":
        return op.inplace_variant is not None
    if kind == "operators":
        tables = (_OPERATORS, _INPLACE_OPERATORS)
        stated = op.operator_variant is not None or op.inplace_operator_variant is not None
        return stated or any(opinfo.key(op) in table for table in tables)
    if kind == "out":
        return op.supports_out or op.name in opinfo.OUT_WITHOUT_FLAG
    if kind in ("grad", "gradgrad"):
        differentiable = op.supports_autograd and op.supports_dtype(torch.float64, "cpu")
        return differentiable and (kind == "grad" or op.supports_gradgrad)
    if kind == "forward_ad":
        return op.supports_autograd and op.supports_dtype(torch.float64, "cpu")
    if kind == "dispatch":
        return op.supports_dtype(torch.float64, "cpu") or applies(op, "grad")
    if kind == "autocast":
        return op.supports_dtype(torch.float32, "cpu")
    if kind == "errors":
        # Some state a function that yields nothing.
        return op.error_inputs_func is not None and any(True for _ in opinfo.error_samples(op))
    return True
