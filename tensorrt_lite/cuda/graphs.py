"""CUDA graphs: the work of a stream recorded once and submitted as one launch.

What is recorded runs on the same memory at every replay: inputs are copied into the tensors that were there during capture. Memory allocated
during a capture comes from a private pool that lives as long as a graph uses it. Random numbers differ in every replay: kernels read the generator's seed and
offset from device memory, which a replay writes first.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.cuda import caching as _caching
from tensorrt_lite._C.cuda import driver as _driver
from tensorrt_lite.cuda import _backend
from tensorrt_lite.cuda.streams import Stream, current_stream
from tensorrt_lite.cuda.streams import stream as _stream_context
from tensorrt_lite.cuda import is_initialized as _is_initialized
from tensorrt_lite.cuda import synchronize as _synchronize

_nn = LazyModule("tensorrt_lite.nn")
_memory = LazyModule("tensorrt_lite.cuda.memory")
_random = LazyModule("tensorrt_lite.cuda.random")

captures = 0  # that are going on
_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def is_current_stream_capturing() -> bool:
    """Whether the current stream records a graph."""
    if not _is_initialized():
        return False
    s = current_stream()
    return _driver.is_capturing(s.device_index, s.cuda_stream)


def graph_pool_handle() -> tuple[int, int]:
    """The name of a fresh memory pool, which several graphs may share that are replayed in the order of their capture."""
    return _caching.new_number(), 0


class CUDAGraph:
    """A recorded graph. `graph` is the usual way to record one."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = self._instance = 0
        self._pool: Any = None
        self._before: tuple[Any, int] = None, 0
        self._device = -1
        self._capturing: Stream | None = None
        self._keep = keep_graph
        self._generators: dict[Any, Any] = {}  # generator: its seed and offset on the device
        self._drawn: dict[Any, int] = {}  # words of each that a replay takes
        self._checked = 0  # calls of kernels that check indices, before the capture
        self._watch: Callable[[int, int], None] | None = None  # what is told of a replay of such kernels

    def register_generator_state(self, generator: Any) -> None:
        """Let the capture draw from this generator of the device, beside the default one: each replay then draws the numbers that follow."""
        if not isinstance(generator, _random.DeviceGenerator):
            raise RuntimeError("register_generator_state: expected a generator of a CUDA device")
        if self._capturing is not None:
            raise RuntimeError("register_generator_state: the capture has begun")
        if generator not in self._generators:

            # not zeros: nothing would order the capture stream's fill before what a replay on another stream writes there
            self._generators[generator] = trt.empty(2, dtype=trt.int64, device=generator.device)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record what the current stream, which must not be the default one, is given from here on. RuntimeError otherwise."""
        if self._graph or self._instance or self._capturing:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.")
        if capture_error_mode not in _MODES:
            raise RuntimeError(f"capture_error_mode should be one of {sorted(_MODES)}, got {capture_error_mode!r}")
        s = current_stream()
        if s.cuda_stream == 0:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on the default stream.)")
        from tensorrt_lite.cuda.random import default_generator_of

        global captures
        self.register_generator_state(default_generator_of(s.device_index))
        self._pool = _caching.pool_of(_caching.new_number() if pool is None else pool[0])
        self._pool.hold(1)
        self._device = s.device_index
        from tensorrt_lite._C.cuda import indexing

        self._checked = indexing._prepare(self._device)
        _caching._note_captures(1)
        try:
            _driver.capture_begin(s.device_index, s.cuda_stream, _MODES[capture_error_mode])
        except RuntimeError:
            _caching._note_captures(-1)
            raise
        self._before = _backend()._use_pool(self._pool, self._device)
        self._capturing = s
        captures += 1
        self._drawn = {generator: generator._record(state) for generator, state in self._generators.items()}

    def capture_end(self) -> None:
        """End the recording on the current stream."""
        if self._capturing is None:
            raise RuntimeError("capture_end called without capture_begin")
        global captures
        s, self._capturing = self._capturing, None
        captures -= 1
        self._drawn = {generator: generator._end_recording(before) for generator, before in self._drawn.items()}
        _backend()._use_pool(*self._before)
        from tensorrt_lite._C.cuda import indexing

        self._watch = indexing._watch if indexing._prepare(self._device) > self._checked else None
        try:
            try:
                self._graph = _driver.capture_end(s.device_index, s.cuda_stream)
            finally:
                _caching._note_captures(-1)
            if not self._keep:
                self.instantiate()
        except RuntimeError:
            self.reset()
            raise

    def instantiate(self) -> None:
        """Make the recorded graph ready to run."""
        if not self._graph:
            raise RuntimeError("Called CUDAGraph.instantiate without a preceding successful capture.")
        self._instance = _driver.graph_instantiate(self._device, self._graph)

    def replay(self) -> None:
        """Queue the recorded work on the current stream."""
        if not self._graph:
            raise RuntimeError("Called CUDAGraph.replay without a preceding successful capture.")
        if not self._instance:
            self.instantiate()
        s = current_stream(self._device)
        for generator, drawn in self._drawn.items():
            if drawn:
                generator._replay(self._generators[generator], drawn)
        _driver.graph_launch(self._device, self._instance, s.cuda_stream)
        if self._watch is not None:
            self._watch(self._device, s.cuda_stream)

    def reset(self) -> None:
        """Delete the recorded graph; its memory is cached like any other once its tensors are gone."""
        if self._graph or self._instance:
            _driver.synchronize_on(self._device)
            _driver.graph_destroy(self._graph, self._instance)
        if self._pool is not None:
            self._pool.hold(-1)
        self._graph = self._instance = 0
        self._pool = None
        self._generators, self._drawn = {}, {}

    def raw_cuda_graph(self) -> int:
        """The CUgraph. RuntimeError before a capture."""
        if not self._graph:
            raise RuntimeError("You cannot access the raw CUDAGraph_t instance until after capture_end() has been called")
        return self._graph

    def raw_cuda_graph_exec(self) -> int:
        """The CUgraphExec. RuntimeError before it is made."""
        if not self._instance:
            raise RuntimeError("You cannot access the raw CUDAGraphExec_t instance until instantiate() has been called")
        return self._instance

    def pool(self) -> tuple[int, int]:
        """The name of the graph's memory pool."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph.pool without a preceding capture.")
        return self._pool.number, 0

    def __del__(self) -> None:
        try:
            self.reset()
        except (RuntimeError, AttributeError, TypeError):  # the driver is gone at the interpreter's end
            pass


class graph:
    """``with graph(g):`` records what happens inside on a side stream into the CUDAGraph g."""

    default_capture_stream: Stream | None = None

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global") -> None:
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.mode, self.capture_stream = cuda_graph, pool, capture_error_mode, stream
        self._context = _stream_context(stream)

    def __enter__(self) -> None:
        # what garbage still holds on the device must not be freed into the recording
        _synchronize()
        gc.collect()
        _memory.empty_cache()
        self.capture_stream.wait_stream(current_stream())
        self._context.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.mode)

    def __exit__(self, kind: Any, *exception: object) -> None:
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if kind is None:
                raise
        finally:
            self._context.__exit__()


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Callable[..., Any] | tuple[Callable[..., Any], ...]:
    """Functions or modules whose forward and backward pass are graphs.

    callables: one, or a tuple in the order in which they will be called; sample_args: its tuple of tensors, or one for each, of the shapes,
    types and requires_grad that all later calls have. Returned functions take and return tensors; a module keeps its class and calls its
    graph while its training mode is what it was here.
    """

    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    for function, arguments in zip(functions, samples):
        if not all(isinstance(a, trt.Tensor) for a in arguments):
            raise TypeError("make_graphed_callables: sample_args must be tensors")
        if isinstance(function, _nn.Module) and (function._backward_hooks or function._forward_hooks or function._forward_pre_hooks):
            raise RuntimeError("Modules must not have hooks registered at the time they are passed. However, registering hooks on modules after passing them through make_graphed_callables is allowed.")
    mempool = graph_pool_handle() if pool is None else pool
    side = Stream()
    side.wait_stream(current_stream())
    parameters = [tuple(f.parameters()) if isinstance(f, _nn.Module) else () for f in functions]
    with _stream_context(side):
        for function, arguments, weights in zip(functions, samples, parameters):
            for _ in range(num_warmup_iters):
                outputs = _flat(function(*arguments))
                wanted = [o for o in outputs if o.requires_grad]
                if wanted:
                    inputs = [t for t in (*arguments, *weights) if t.requires_grad]
                    autograd.grad(wanted, inputs, [trt.empty_like(o) for o in wanted], allow_unused=allow_unused_input)
    current_stream().wait_stream(side)
    forwards = []
    for function, arguments in zip(functions, samples):
        g = CUDAGraph()
        with graph(g, pool=mempool):
            result = function(*arguments)
        forwards.append((g, result))
    backwards = []
    for (_, result), arguments, weights in reversed(list(zip(forwards, samples, parameters))):
        wanted = [o for o in _flat(result) if o.requires_grad]
        inputs = [t for t in (*arguments, *weights) if t.requires_grad]
        g = CUDAGraph()
        incoming = [trt.empty_like(o) for o in wanted]
        grads: tuple[Any, ...] = ()
        if wanted and inputs:
            with graph(g, pool=mempool):
                grads = autograd.grad(wanted, inputs, incoming, allow_unused=allow_unused_input)
        backwards.append((g, incoming, grads))
    backwards.reverse()
    made = [
        _graphed(function, arguments, weights, forward, backward)
        for function, arguments, weights, forward, backward in zip(functions, samples, parameters, forwards, backwards)
    ]
    return made[0] if single else tuple(made)


def _flat(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _graphed(function: Any, arguments: tuple[Any, ...], weights: tuple[Any, ...], forward: Any, backward: Any) -> Callable[..., Any]:
    forward_graph, result = forward
    backward_graph, incoming, grads = backward
    outputs = _flat(result)

    class Graphed(autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            for place, given in zip(arguments, inputs):
                if place.data_ptr() != given.data_ptr():
                    place.detach().copy_(given)
            forward_graph.replay()
            return tuple(o.detach() for o in outputs)

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            wanted = [g for g, o in zip(given, outputs) if o.requires_grad]
            for place, g in zip(incoming, wanted):
                if g is not None:
                    place.copy_(g)
            backward_graph.replay()
            found = iter(grads)
            each = (next(found) if t.requires_grad else None for t in (*arguments, *weights))
            return tuple(g if g is None else g.detach() for g in each)

    def call(*inputs: Any) -> Any:
        values = Graphed.apply(*inputs, *weights)
        return type(result)(values) if isinstance(result, (tuple, list)) else values[0]

    if not isinstance(function, _nn.Module):
        return call
    eager, training = function.forward, function.training

    def module_forward(*inputs: Any) -> Any:
        return call(*inputs) if function.training == training else eager(*inputs)

    function.forward = module_forward
    return function
