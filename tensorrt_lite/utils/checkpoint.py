"""Trading computation for memory: what a function saves for its backward pass is thrown away and computed again when the pass gets there.

`use_reentrant=False` records the function once to learn which tensors its gradient goes to (its arguments and the leaves it uses), cuts the graph
off and puts one Node in its place; backward records the function again on detached arguments and asks for those gradients. So
`autograd.grad`, hooks on leaves and keyword arguments work. `use_reentrant=True` runs the function unrecorded and calls `backward` inside backward.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import tensorrt_lite as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.autograd.node import AccumulateGrad
from tensorrt_lite._C.core.python_key import innermost_transform
from tensorrt_lite.amp.autocast_mode import autocasts
from tensorrt_lite.autograd.function import Function
from tensorrt_lite.autograd.graph import _no_saved_tensors_hooks
from tensorrt_lite.random import default_generator, fork_rng

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorrt_lite import Tensor

    from ._selective_checkpoint import SAC_IGNORED_OPS, CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
    "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """The function did not do the same when it was run again."""


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The contexts of forward and recomputation that change nothing."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accepted for programs that turn early stopping off: a recomputation here always runs to the function's end."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """NotImplementedError for True, as for checkpoint(debug=True); otherwise without effect."""
    if enabled:
        raise NotImplementedError("checkpoint: debug is not implemented (docs/gaps.md)")
    yield


_SELECTIVE = ("CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts")


def __getattr__(name: str) -> object:
    if name in _SELECTIVE:
        from tensorrt_lite.utils import _selective_checkpoint

        return getattr(_selective_checkpoint, name)
    from tensorrt_lite._missing import error

    raise error("utils.checkpoint", name)


# ---- random numbers, structures of tensors


class _RandomState:
    """The default streams at one moment, of the CPU and of the devices in use."""

    def __init__(self) -> None:
        from tensorrt_lite.cuda.random import default_generator_of

        self._cpu = default_generator.get_state_bytes()
        count = trt.cuda.device_count() if trt.cuda.is_initialized() else 0
        self._devices = {i: default_generator_of(i).get_state_bytes() for i in range(count)}

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, the streams continue from that moment; afterwards from where they stood before."""
        from tensorrt_lite.cuda.random import default_generator_of

        with fork_rng():
            default_generator.set_state_bytes(self._cpu)
            for i, state in self._devices.items():
                default_generator_of(i).set_state_bytes(state)
            yield


class _Precision:
    """The state of autocast at the forward pass."""

    def __init__(self) -> None:
        self._contexts = autocasts()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, autocast is as it was at that moment."""
        with self._contexts[0], self._contexts[1]:
            yield


def _map(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same structure of tuples, lists and dicts, with each tensor replaced by what `change` gives for it; of a tensor made of dense ones, its differentiable part."""
    if isinstance(value, trt.Tensor):
        if not getattr(value, "_made_of_parts", False):
            return change(value)
        part = change(value._part)
        return value._with_part(part) if isinstance(part, trt.Tensor) else _Composite(value, part)
    kind = type(value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_map(v, change) for v in value)
    if kind in (tuple, list):
        return kind(_map(v, change) for v in value)
    if kind in (dict, OrderedDict):
        return kind((k, _map(v, change)) for k, v in value.items())
    return value


def _tensors(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _map(value, found.append)
    return found


# ---- without reentrance


class _Record:
    """What one recorded run left behind: the names of its Nodes in their order, the leaves it used, its edges into older Nodes."""

    def __init__(self, outputs: list[Tensor], start: int) -> None:
        self.leaves: dict[int, Tensor] = {}
        self.foreign: set[tuple[int, int]] = set()
        nodes: dict[int, tuple[int, str]] = {}
        pending: list[Any] = []

        def follow(node: Any, number: int) -> None:
            if isinstance(node, AccumulateGrad):
                self.leaves[id(node.variable)] = node.variable
            elif node._sequence_nr() <= start:
                self.foreign.add((id(node), number))
            elif id(node) not in nodes:
                nodes[id(node)] = (node._sequence_nr(), node.name())
                pending.append(node)

        for output in outputs:
            if output.grad_fn is None:
                self.leaves[id(output)] = output
            else:
                follow(output.grad_fn, output.output_nr)
        while pending:
            for node, number in pending.pop().next_functions:
                if node is not None:
                    follow(node, number)
        self.names = [name for _, name in sorted(nodes.values())]


def _sequence_number() -> int:
    """The number of a Node made now: older ones have smaller numbers."""
    with trt.enable_grad():
        return int(trt.empty(0, requires_grad=True).view(0).grad_fn._sequence_nr())  # type: ignore[union-attr]


def _edge(tensor: Tensor) -> tuple[int, int]:
    return id(tensor.grad_fn), tensor.output_nr


def _metadata(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _Checkpoint(Function):
    """The Node in place of a function's graph. Inputs: the call, its recorded outputs, then the tensors that gradients go to."""

    @staticmethod
    def forward(ctx: Any, call: _Call, outputs: list[Tensor], *targets: Tensor) -> tuple[Tensor, ...]:
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*call.tensors)
        call.tensors = []
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return None, None, *ctx.call.gradients(ctx.saved_tensors, gradients)


class _Gate(Function):
    """Passes an argument to a recomputation that is differentiated again; gradients go back through it once that one's own have been taken."""

    @staticmethod
    def forward(ctx: Any, state: dict[str, bool], tensor: Tensor) -> Tensor:
        ctx.state = state
        ctx.set_materialize_grads(False)
        return tensor.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        return None, gradient if ctx.state["open"] else None


class _Call:
    """One call of `checkpoint`: runs the function, and runs it again for its gradients."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, preserve: bool, contexts: tuple[Any, Any], check: bool) -> None:
        self.function = function
        self.tensors = _tensors((args, kwargs))
        numbers = iter(range(len(self.tensors)))
        # tensors give way to their numbers, so that Node and hooks on saved tensors alone decide how they are kept
        self.arguments = _map((args, kwargs), lambda _: _Slot(next(numbers)))
        self.random = _RandomState() if preserve else None
        self.precision = _Precision()
        self.forward_context, self.again_context = contexts
        self.check = check

    def run(self, args: Any, kwargs: Any) -> Any:
        """The function's result; tensors that need a gradient hang on one Node."""
        tensors = self.tensors
        versions = [t._version for t in tensors]
        edges = {_edge(t) for t in tensors if t.grad_fn is not None}
        start = _sequence_number()
        with self.forward_context, _no_saved_tensors_hooks():
            result = self.function(*args, **kwargs)
        outputs = [t for t in _tensors(result) if t.requires_grad]
        if not outputs:
            return result
        record = _Record(outputs, start)
        if any(t._version != version for t, version in zip(tensors, versions, strict=True)):
            raise RuntimeError("checkpoint: the function writes to one of its arguments in place, so it cannot be run again on what they were")
        if record.foreign - edges:
            warnings.warn(
                "checkpoint: the function uses a tensor with a history that is not among its arguments: its graph is kept whole and no memory is saved. "
                "Pass the tensor as an argument.",
                stacklevel=3,
            )
            return result
        self.names, self.metadata = record.names, [_metadata(t) for t in outputs]
        self.leaves = list(record.leaves.values())
        self.needed = [t.requires_grad for t in tensors]
        finished = iter(_Checkpoint.apply(self, outputs, *(t for t in tensors if t.requires_grad), *self.leaves))
        return _map(result, lambda t: next(finished) if t.requires_grad else t)

    def gradients(self, tensors: Sequence[Tensor], gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of arguments and leaves, by running the function again. CheckpointError when it does something else."""
        if all(gradient is None for gradient in gradients):
            return (None,) * (sum(self.needed) + len(self.leaves))
        again = trt.is_grad_enabled()  # create_graph: the gradients are differentiated, too, so arguments keep their history
        gate = {"open": False}
        inputs = [
            t.detach() if not needed else _Gate.apply(gate, t) if again else t.detach().requires_grad_()
            for t, needed in zip(tensors, self.needed, strict=True)
        ]
        args, kwargs = _fill(self.arguments, inputs)
        start = _sequence_number()
        with trt.enable_grad(), self.precision.restored(), self.random.restored() if self.random else nullcontext(), self.again_context, _no_saved_tensors_hooks():
            outputs = [t for t in _tensors(self.function(*args, **kwargs)) if t.requires_grad]
        self._compare(outputs, start)
        pairs = [(output, gradient) for output, gradient in zip(outputs, gradients, strict=True) if gradient is not None]
        targets = [t for t in inputs if t.requires_grad] + self.leaves
        result = autograd.grad([o for o, _ in pairs], targets, [g for _, g in pairs], create_graph=again, allow_unused=True)
        gate["open"] = True
        return result

    def _compare(self, outputs: list[Tensor], start: int) -> None:
        names = _Record(outputs, start).names
        if len(names) != len(self.names) or len(outputs) != len(self.metadata):
            raise CheckpointError(
                "checkpoint: a different number of operations was recorded during the forward pass and the recomputation: "
                f"{len(self.names)} with {len(self.metadata)} outputs, then {len(names)} with {len(outputs)}. The function must do the same each time."
            )
        if not self.check:
            return
        for kind, before, after in (("operations", self.names, names), ("outputs", self.metadata, [_metadata(t) for t in outputs])):
            for i, (first, second) in enumerate(zip(before, after, strict=True)):
                if first != second:
                    raise CheckpointError(f"checkpoint: recomputed {kind} differ from the forward pass's: number {i} was {first}, then {second}")


class _Slot:
    """Stands in the arguments of a call for one of its tensors."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Composite:
    """Stands in the arguments of a call for a tensor made of dense ones (a nested one): its structure, and the slot of its part."""

    __slots__ = ("rebuild", "part")

    def __init__(self, value: Any, part: Any) -> None:
        self.rebuild = value._with_part(value._part.detach())._with_part
        self.part = part


def _fill(value: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(value, _Slot):
        return tensors[value.number]
    if isinstance(value, _Composite):
        return value.rebuild(_fill(value.part, tensors))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_fill(v, tensors) for v in value)
    if type(value) in (tuple, list):
        return type(value)(_fill(v, tensors) for v in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((k, _fill(v, tensors)) for k, v in value.items())
    return value


# ---- reentrant


def _asks_for_inputs() -> bool:
    """Whether the backward pass that runs now is of `autograd.grad` or of `backward(inputs=...)`."""
    import sys

    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is autograd.grad.__code__:
            return True
        if frame.f_code is autograd.backward.__code__:
            return frame.f_locals["inputs"] is not None
        frame = frame.f_back  # type: ignore[assignment]
    return False


class CheckpointFunction(Function):
    """The reentrant form: forward unrecorded, in backward recorded and differentiated by an inner `backward`."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run_function = run_function
        ctx.random = _RandomState() if preserve_rng_state else None
        ctx.precision = _Precision()
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, trt.Tensor)]
        ctx.rest = [None if isinstance(a, trt.Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        if _asks_for_inputs():
            raise RuntimeError(
                "checkpoint: with use_reentrant=True neither autograd.grad nor backward(inputs=...) can be used: gradients of what the function uses "
                "are accumulated by an inner backward(). Pass use_reentrant=False."
            )
        args = list(ctx.rest)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with trt.enable_grad(), ctx.precision.restored(), ctx.random.restored() if ctx.random else nullcontext():
            outputs = ctx.run_function(*args)
        outputs = (outputs,) if isinstance(outputs, trt.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if isinstance(o, trt.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *(a.grad if isinstance(a, trt.Tensor) else None for a in args)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple without their history, with their requires_grad, and everything else as it is. RuntimeError for anything but a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, trt.Tensor) else t for t in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warns when none of the inputs requires gradients."""
    if not any(t.requires_grad for t in inputs if isinstance(t, trt.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The CUDA devices of the tensors among the arguments, nested ones too, and the states of their generators."""
    devices = list(dict.fromkeys(t.get_device() for t in _tensors(args) if t.device.type == "cuda"))
    return devices, [trt.cuda.get_rng_state(d) for d in devices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Give the generators of CUDA devices their states back."""
    for device, state in zip(devices, states):
        trt.cuda.set_rng_state(state, device)


# ---- the functions


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose intermediate results are computed again in the backward pass instead of being kept.

    use_reentrant: False is recommended; None warns and means True. preserve_rng_state: draw the same random numbers again. The rest is for
    use_reentrant=False alone: context_fn gives two context managers, for the run and for the recomputation; determinism_check ("default" or "none"): whether
    names of operations and outputs' shapes are compared, too; early_stop has no effect: recomputation runs to the end.

    Raises in backward CheckpointError when the recomputation differs; ValueError for arguments that do not go together, NotImplementedError for
    debug=True.

    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.utils.checkpoint import checkpoint
    >>> x = trt.ones(3, requires_grad=True)
    >>> checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad.tolist() == (2 * x * (x * x).exp()).tolist()
    True
    """
    if use_reentrant is None:
        warnings.warn("checkpoint: pass use_reentrant explicitly; False is recommended, and without it True is taken", stacklevel=2)
        use_reentrant = True
    if innermost_transform() is not None:
        return function(*args, **kwargs)  # whose intermediate results are the transforms' to keep
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if trt.is_grad_enabled() and not any(isinstance(a, trt.Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if debug:
        raise NotImplementedError("checkpoint: debug=True is not implemented (docs/gaps.md)")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    contexts = context_fn()
    if not trt.is_grad_enabled():
        with contexts[0]:
            return function(*args, **kwargs)
    return _Call(function, args, kwargs, preserve_rng_state, contexts, determinism_check == "default").run(args, kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True, **kwargs: Any
) -> Any:
    """Functions (or a Sequential's layers) one after another, in `segments` parts: all but the last are checkpointed."""
    if use_reentrant is None:
        warnings.warn("checkpoint_sequential: pass use_reentrant explicitly; False is recommended, and without it True is taken", stacklevel=2)
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children() if isinstance(functions, trt.nn.Sequential) else functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for f in functions[start:end]:
                x = f(x)
            return x

        return run

    size = len(functions) // segments
    last = size * (segments - 1)
    for start in range(0, last, size) if size else ():
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return part(last, len(functions))(input)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
