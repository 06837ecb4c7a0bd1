"""What a graph keeps between the forward and the backward pass: which writes in place it refuses, and how many bytes it holds.

A write is refused where PyTorch takes it when an operator saves more than its gradients read, or something else than
PyTorch: programs that run there stop here. Both libraries count the write through `increment_version`, so nothing is
really written. Called by test_saved.py.
"""

from __future__ import annotations

import gc
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from . import opinfo
from .kinds import _determined
from .library import Library, Missing

# Samples looked at per operator and variant, and those of a new sort taken among them.
LOOKED_AT, TAKEN = 40, 6
# What a refusal says: of a saved tensor, and of a view whose history cannot be made again after the write.
REFUSALS = ("modified by an inplace operation", "has been modified inplace")


@dataclass
class Call:
    """One forward call of a library: the tensors that went in, the differentiable ones that came out."""

    inputs: list[Any]
    leaves: list[Any]
    outputs: list[Any]


@dataclass(frozen=True)
class Kept:
    """Bytes of the storages that a graph holds: all of them, and those that are neither an input's nor an output's."""

    total: int
    hidden: int
    what: str


def operators(module: Any, dtype: torch.dtype = torch.float64) -> dict[str, OpInfo]:
    """The differentiable operators of PyTorch's whole database that the library has, not only those of operators.txt, by key."""
    library = Library(module)
    return {opinfo.key(op): op for op in op_db if op.supports_autograd and op.supports_dtype(dtype, "cpu") and _is_there(library, op) and not _is_sparse(op)}


def _is_sparse(op: OpInfo) -> bool:
    """Whether its operands or results have no memory that could be counted or written to; tests/sparse compares them."""
    return op.name.startswith("sparse.") or op.name == "to_sparse"


def _is_there(library: Library, op: OpInfo) -> bool:
    try:
        library.function(op)
    except Missing:
        return False
    return True


def _method_is_there(library: Library, op: OpInfo) -> bool:
    try:
        library.method(op.inplace_variant)
    except (Missing, AttributeError):  # absent, or not a plain function
        return False
    return True


def selected_samples(op: OpInfo, inplace: bool, dtype: torch.dtype = torch.float64) -> Iterator[SampleInput]:
    """The first sample of every sort: which arguments are tensors and require grad, their dimensions, the names of options."""
    sorts = set()
    for sample in itertools.islice(opinfo.samples(op, dtype, requires_grad=True), LOOKED_AT):
        if inplace and (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor)):
            continue
        sort = tuple(_sort(value) for value in (sample.input, *sample.args, *sample.kwargs.items()))
        if sort not in sorts and len(sorts) < TAKEN:
            sorts.add(sort)
            yield sample


def _sort(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dim(), value.requires_grad, value.dtype, value.numel() > 0
    if isinstance(value, (list, tuple)):
        return tuple(_sort(item) for item in value)
    return value if isinstance(value, (str, bool)) else type(value)


def subsets(sample: SampleInput) -> list[int | None]:
    """Which leaf alone requires grad; None: all that do."""
    leaves = [t for t in Library(torch).tensors(sample.input, list(sample.args), sample.kwargs) if t.requires_grad]
    return [None] if len(leaves) < 2 else [None, *range(min(len(leaves), 4))]


def forward(op: OpInfo, library: Library, sample: SampleInput, only: int | None, inplace: bool) -> Call:
    """Calls the operator with leaf number `only` requiring grad (None: every one)."""
    function = library.method(op.inplace_variant) if inplace else library.function(op)
    first, args, kwargs = library.sample(sample)
    inputs = list({id(t): t for t in library.tensors(first, args, kwargs)}.values())
    leaves = [t for t in inputs if t.requires_grad]
    if only is not None:
        for i, leaf in enumerate(leaves):
            leaf.requires_grad_(i == only)
        leaves = leaves[only : only + 1]
    if op.name in opinfo.RANDOM:
        library.module.manual_seed(1234)
    result = function(first.clone() if inplace else first, *args, **kwargs)
    if op.name in opinfo.FREE_VECTORS:
        result = _determined(sample, result)
    return Call(inputs, leaves, [t for t in library.tensors(result) if t.requires_grad])


def refused(library: Library, make: Callable[[], Call], number: int | None) -> bool:
    """Whether a write to tensor `number` (inputs, then outputs; None: to none) makes the backward pass of a new call raise."""
    call = make()
    module = library.module
    if number is not None:
        module.autograd.graph.increment_version((call.inputs + call.outputs)[number])
    try:
        module.autograd.grad(call.outputs, call.leaves, [module.ones_like(t) for t in call.outputs], allow_unused=True)
    except RuntimeError as error:
        if any(text in str(error) for text in REFUSALS):
            return True
        raise
    return False


class _Packed:
    """What PyTorch's graph holds in the place of a saved tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def saved_by_torch(make: Callable[[], Call]) -> tuple[Call, list[torch.Tensor]]:
    alive: weakref.WeakSet[_Packed] = weakref.WeakSet()

    def pack(tensor: torch.Tensor) -> _Packed:
        packed = _Packed(tensor.detach())
        alive.add(packed)
        return packed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed.tensor):
        call = make()
    return call, [packed.tensor for packed in alive]


def saved_by_library(library: Library, call: Call) -> list[Any]:
    """All tensors that the Nodes behind the outputs refer to, found as the garbage collector finds them."""
    node_type = library.module.autograd.graph.Node
    found, seen = [], set()
    pending = [t.grad_fn for t in call.outputs]
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if library.is_tensor(value):
            found.append(value)
        elif isinstance(value, types.FunctionType):
            pending += [value.__closure__, value.__defaults__]
        elif isinstance(value, node_type):
            # Edges hold leaves themselves until they are read, and accumulators from then on.
            if value.next_functions:
                pending += gc.get_referents(value)
        elif isinstance(value, (tuple, list, dict, types.CellType, types.MethodType)):
            pending += gc.get_referents(value)
    return found


def kept(call: Call, saved: list[Any]) -> Kept:
    known = {t.untyped_storage().data_ptr() for t in call.inputs + call.outputs}
    storages = {t.untyped_storage().data_ptr(): t for t in saved if t.untyped_storage().nbytes()}
    sizes = {address: t.untyped_storage().nbytes() for address, t in storages.items()}
    # A number is a tensor without dimensions here where PyTorch keeps a Scalar.
    hidden = sum(size for address, size in sizes.items() if address not in known and storages[address].dim())
    total = sum(size for address, size in sizes.items() if address in known or storages[address].dim())
    what = ", ".join(
        f"{'hidden ' if address not in known else ''}{str(t.dtype).rpartition('.')[2]}{list(t.shape)}" for address, t in storages.items()
    )
    return Kept(total, hidden, what)


def differences(op: OpInfo, module: Any, dtype: torch.dtype = torch.float64) -> tuple[list[str], list[str]]:
    """(writes refused here and taken by PyTorch, calls that keep more bytes than PyTorch's), a line for each."""
    reference, library = Library(torch), Library(module)
    writes: list[str] = []
    bytes_: list[str] = []
    variants = [False]
    if op.inplace_variant is not None and op.supports_inplace_autograd and _method_is_there(library, op):
        variants.append(True)
    for inplace in variants:
        for sample in selected_samples(op, inplace, dtype):
            for only in subsets(sample):
                label = f"{'in-place ' if inplace else ''}({opinfo.describe(sample)}){'' if only is None else f' grad of leaf {only} alone'}"
                for text in _compare(op, reference, library, sample, only, inplace):
                    (bytes_ if text.startswith("keeps") else writes).append(f"{label}: {text}")
    return writes, bytes_


def _compare(op: OpInfo, reference: Library, library: Library, sample: SampleInput, only: int | None, inplace: bool) -> Iterator[str]:
    def theirs() -> Call:
        return forward(op, reference, sample, only, inplace)

    def mine() -> Call:
        return forward(op, library, sample, only, inplace)

    try:
        call, saved = saved_by_torch(theirs)
    except RuntimeError:  # a sample without a gradient, such as an in-place write that autograd cannot follow
        return
    wanted = kept(call, saved)
    if not call.outputs:
        return
    try:
        own = mine()
    except Exception:  # what the library lacks or refuses is the other tests' matter
        return
    if not own.outputs:
        return
    held = kept(own, saved_by_library(library, own))
    if held.hidden > wanted.hidden or held.total > wanted.total:
        yield f"keeps {held.total} bytes, {held.hidden} hidden ({held.what}); PyTorch {wanted.total}, {wanted.hidden} hidden ({wanted.what})"
    for number in (None, *range(len(own.inputs) + len(own.outputs))):
        if refused(library, mine, number) and not refused(reference, theirs, number):
            if number is None:
                yield "the backward pass is refused without any write"
                return
            place = f"input {number}" if number < len(own.inputs) else f"output {number - len(own.inputs)}"
            yield f"a write to {place} is refused"
