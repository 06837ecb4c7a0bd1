"""Trading computation for memory: what a function saves for its backward pass is thrown away and computed again when the pass gets there.

`use_reentrant=False` keeps the function's own graph, whose Nodes save placeholders in the place of tensors, by hooks on saved tensors. The first that is read in a
backward pass has the function run again, until all are there. So hooks, `autograd.grad`, `retain_grad` and higher derivatives are those of the plain call.
`use_reentrant=True` runs the function unrecorded and calls `backward` inside backward.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import OrderedDict
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import enable_grad
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite import autograd
from tensorrt_lite._C.autograd.engine import current_task_id
from tensorrt_lite._C.core.overrides import FunctionState
from tensorrt_lite._C.core.python_key import innermost_transform
from tensorrt_lite.amp.autocast_mode import autocasts
from tensorrt_lite.autograd.function import Function
from tensorrt_lite.autograd.graph import saved_tensors_hooks
from tensorrt_lite.random import default_generator, fork_rng
from tensorrt_lite._names.missing import error as _error
from tensorrt_lite._names.listing import public as _public

_cuda = LazyModule("tensorrt_lite.cuda")
_nn = LazyModule("tensorrt_lite.nn")
_python_dispatch = LazyModule("tensorrt_lite.utils._python_dispatch")
_random = LazyModule("tensorrt_lite.cuda.random")
_utils_selective_checkpoint = LazyModule("tensorrt_lite.utils._selective_checkpoint")

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


# What the contexts below say, for the calls of `checkpoint` inside of them: None leaves it to the call.
_early_stop: bool | None = None
_debug: bool | None = None


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether calls of `checkpoint` inside end their recomputations as soon as all that was saved is there (the default), whatever their early_stop says."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether calls of `checkpoint` inside have debug=True, whatever they say; None leaves it to them."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


_SELECTIVE = ("CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts")


def __getattr__(name: str) -> object:
    if name in _SELECTIVE:
        return getattr(_utils_selective_checkpoint, name)

    raise _error("utils.checkpoint", name)


# ---- random numbers, structures of tensors


class _RandomState:
    """The default streams at one moment, of the CPU and of the devices in use."""

    def __init__(self) -> None:
        self._cpu = default_generator.get_state_bytes()
        count = _cuda.device_count() if _cuda.is_initialized() else 0
        self._devices = {i: _random.default_generator_of(i).get_state_bytes() for i in range(count)}

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, the streams continue from that moment; afterwards from where they stood before."""
        with fork_rng():
            default_generator.set_state_bytes(self._cpu)
            for i, state in self._devices.items():
                _random.default_generator_of(i).set_state_bytes(state)
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
#
# A frame belongs to one call. While the function runs, hooks put a _Holder, which holds nothing, in the place of each tensor that the graph saves. The first
# holder that a backward pass reads has the function run again with other hooks: tensor number i goes to holder number i, and out of it when it is read. A pass has
# tensors of its own, as several may run over one graph.


class _Stop(Exception):
    """Ends a recomputation that has made all that was asked for."""


class _Holder:
    """The place of one saved tensor: what passes have recomputed for it, by the pass's number."""

    __slots__ = ("tensors", "__weakref__")

    def __init__(self) -> None:
        self.tensors: dict[Any, Tensor] = {}


class _Inputs(Function):
    """Keeps the tensors among a call's arguments, as any Node keeps what it saves: with their versions, and through the hooks outside of the call."""

    @staticmethod
    def forward(ctx: Any, link: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return link.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise AssertionError("checkpoint: no gradient goes to the arguments' keeper")


def _metadata(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _Frame:
    """One call of `checkpoint`: runs the function, and runs it again for the tensors that its graph has saved."""

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, preserve: bool, contexts: tuple[Any, Any], check: bool, early_stop: bool, log: _Log | None
    ) -> None:
        self.function = function
        tensors = _tensors((args, kwargs))
        numbers = iter(range(len(tensors)))
        # tensors give way to their numbers, so that the keeper's Node and hooks on saved tensors alone decide how they are kept
        self.arguments = _map((args, kwargs), lambda _: _Slot(next(numbers)))
        self.keeper = _Inputs.apply(trt.empty(0, requires_grad=True), *tensors).grad_fn
        self.random = _RandomState() if preserve else None
        self.precision, self.functions = _Precision(), FunctionState()
        self.forward_context, self.again_context = contexts
        self.check, self.early_stop, self.log = check, early_stop, log
        self.completed = False
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadata: list[Any] = []
        self.recomputed: set[Any] = set()  # passes

    def run(self, args: Any, kwargs: Any) -> Any:
        """The function's result, whose graph saves holders."""
        with saved_tensors_hooks(self.hold, self.read), self.forward_context:
            result = self.function(*args, **kwargs)
        self.completed = True
        return result

    def hold(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.metadata.append(_metadata(tensor) if self.check else None)
        return holder

    def read(self, holder: _Holder) -> Tensor:
        task: Any = current_task_id()
        if task < 0:  # no pass: somebody looks at a Node's tensors
            task = object()
        if task not in self.recomputed:
            self.recompute(task)
        if task not in holder.tensors:
            raise CheckpointError(
                "checkpoint: a saved tensor is read a second time in one backward pass, but it was given away at the first. Read ctx.saved_tensors once in backward."
            )
        return holder.tensors.pop(task)

    def recompute(self, task: Any) -> None:
        """Run the function again and give its holders the tensors that it saves. CheckpointError when they are not those of the forward pass."""
        args, kwargs = _fill(self.arguments, self.keeper.saved_tensors)
        count = 0
        partial = not self.completed  # the pass runs inside of the function

        def keep(tensor: Tensor) -> Tensor:
            nonlocal count
            number, count = count, count + 1
            if number < len(self.holders):
                holder = self.holders[number]()
                if holder is not None:
                    holder.tensors[task] = _map(tensor, trt.Tensor.detach)
                if self.early_stop and count == len(self.holders):
                    raise _Stop
            return _map(tensor, trt.Tensor.detach)

        try:
            with (
                enable_grad(),
                self.functions,
                self.precision.restored(),
                self.random.restored() if self.random else nullcontext(),
                saved_tensors_hooks(keep, lambda tensor: tensor),
                self.again_context,
            ):
                self.function(*args, **kwargs)
        except _Stop:
            pass
        self.recomputed.add(task)
        if not partial:
            self.compare(task, count)

    def compare(self, task: Any, count: int) -> None:
        if count != len(self.holders):
            self.refuse(
                f"checkpoint: a different number of tensors was saved during the forward pass and the recomputation: {len(self.holders)}, then {count}. The "
                "function must do the same each time."
            )
        if not self.check:
            return
        for number, (reference, before) in enumerate(zip(self.holders, self.metadata, strict=True)):
            holder = reference()
            if holder is not None and before != (after := _metadata(holder.tensors[task])):
                self.refuse(f"checkpoint: recomputed tensors differ from the forward pass's: number {number} was {before}, then {after} (shape, dtype, device)")

    def refuse(self, message: str) -> None:
        raise CheckpointError(message if self.log is None else f"{message}\n{self.log.text()}")


class _Log:
    """For debug=True: the operators of the forward pass and of the recomputation, with where they were called."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

        class Recorder(_python_dispatch.TorchDispatchMode):
            def __init__(recorder, calls: list[str]) -> None:
                super().__init__()
                recorder.calls = calls

            def __torch_dispatch__(recorder, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                import traceback

                caller = next((f for f in reversed(traceback.extract_stack()) if "tensorrt_lite" not in f.filename), None)
                shapes = ", ".join(str(_metadata(t)) for t in _tensors((args, kwargs)))
                recorder.calls.append(f"{func}({shapes})" + ("" if caller is None else f"  at {caller.filename}:{caller.lineno}"))
                return func(*args, **(kwargs or {}))

        self.contexts = (self._recorder(Recorder), self._recorder(Recorder))

    @contextmanager
    def _recorder(self, mode: Any) -> Iterator[None]:
        self.runs.append([])
        with mode(self.runs[-1]):
            yield

    def text(self) -> str:
        names = ("forward pass", "recomputation")
        return "\n".join(f"Operators of the {n}:\n" + "\n".join(f"  {i}: {c}" for i, c in enumerate(calls)) for n, calls in zip(names, self.runs))


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
        with enable_grad(), ctx.precision.restored(), ctx.random.restored() if ctx.random else nullcontext():
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
    return devices, [_cuda.get_rng_state(d) for d in devices]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Give the generators of CUDA devices their states back."""
    for device, state in zip(devices, states):
        _cuda.set_rng_state(state, device)


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
    shapes, types and devices of what the graph saves are compared; early_stop: whether a recomputation ends when it has made all that is needed; debug: whether
    the error for a recomputation that differs lists the operators of both runs.

    Raises in backward CheckpointError when the recomputation differs, or when a Node reads a saved tensor twice in one pass; ValueError for arguments that
    do not go together.

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
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    log = None
    if debug if _debug is None else _debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = _Log()
    contexts = context_fn() if log is None else log.contexts
    if not trt.is_grad_enabled():
        return function(*args, **kwargs)
    stop = early_stop if _early_stop is None else _early_stop
    return _Frame(function, args, kwargs, preserve_rng_state, contexts, determinism_check == "default", stop, log).run(args, kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True, **kwargs: Any
) -> Any:
    """Functions (or a Sequential's layers) one after another, in `segments` parts: all but the last are checkpointed.

    Parameters:
        functions: (Sequential or list of functions) what is called in order
        segments (int): how many parts
        input (Tensor): the argument of the first one
        use_reentrant (bool, default None): whether a part runs its own backward pass
        preserve_rng_state (bool, default True): whether the recomputation draws the same random numbers
        **kwargs: not used

    Example:
        >>> import tensorrt_lite as trt
        >>> layers = trt.nn.Sequential(trt.nn.Linear(3, 3), trt.nn.ReLU(), trt.nn.Linear(3, 1))
        >>> x = trt.ones(2, 3, requires_grad=True)
        >>> trt.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False).shape
        torch.Size([2, 1])
    """
    if use_reentrant is None:
        warnings.warn("checkpoint_sequential: pass use_reentrant explicitly; False is recommended, and without it True is taken", stacklevel=2)
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children() if isinstance(functions, _nn.Sequential) else functions)

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
    return _public(globals())
