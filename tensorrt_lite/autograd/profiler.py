"""The profiler of autograd: what ran between two points, as a list of events.

``tensorrt_lite.profiler`` has the one with a schedule of steps; both record by ``_C.core.profiler``. A thread is recorded that starts the profiler or goes
on with its backward passes; others with ``_ExperimentalConfig(profile_all_threads=True)``. One profiler runs in a process at a time.
"""

from __future__ import annotations

import functools
import sys
import threading
from warnings import warn as _warn
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core import profiler as _core
from tensorrt_lite.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, MemRecordsAcc
from tensorrt_lite.profiler._types import DeviceType, ProfilerActivity

_cuda = LazyModule("tensorrt_lite.cuda")
_events = LazyModule("tensorrt_lite.profiler._events")
_module = LazyModule("tensorrt_lite.nn.modules.module")
_trace = LazyModule("tensorrt_lite.profiler._trace")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from tensorrt_lite.profiler._events import Profile

__all__ = ["DeviceType", "EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "MemRecordsAcc", "ProfilerActivity", "emit_itt",
           "emit_nvtx", "kineto_available", "load_nvprof", "parse_nvprof_trace", "profile", "record_function"]  # fmt: skip


def kineto_available() -> bool:
    """True: profiles have steps, traces and stacks."""
    return True


class record_function:
    """A named range in a profile, as a context or a decorator of a function. Where nothing is profiled it costs a look.

    >>> with record_function("forward"):
    ...     pass
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._tokens: list[int] = []
        self.run_callbacks_on_exit = True

    def __enter__(self) -> record_function:
        self._tokens.append(_core.begin_range(self.name))
        return self

    def __exit__(self, exc_type: type[BaseException] | None = None, exc: BaseException | None = None, trace: TracebackType | None = None) -> None:
        _core.end_range(self._tokens.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = self.name

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            token = _core.begin_range(name)
            try:
                return function(*args, **kwargs)
            finally:
                _core.end_range(token)

        return recorded


class profile:
    """Records operators, backward passes and named ranges between entering and leaving.

    record_shapes: sizes of arguments; with_flops: floating-point operations by them; profile_memory: what the CPU's allocator gives and takes;
    with_stack: Python's frames; with_modules: calls of Modules as ranges; use_device="cuda": times between events on the device. RuntimeError where a
    profiler runs already.

    >>> import tensorrt_lite as trt
    >>> with trt.autograd.profiler.profile() as recorded:
    ...     y = trt.ones(3) + 1
    >>> [event.name for event in recorded.function_events]
    ['aten::ones', 'aten::add']
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False, with_flops: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
                 experimental_config: Any = None, acc_events: bool = False, custom_trace_id_callback: Callable[[], str] | None = None,
                 post_processing_timeout_s: float | None = None, activity_filters: Any = None) -> None:  # fmt: skip
        self.enabled = enabled
        self.use_device = "cuda" if use_cuda else use_device
        self.use_cuda = self.use_device == "cuda"
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.with_modules = profile_memory, with_stack, with_modules
        self.use_cpu, self.acc_events = use_cpu, acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self.entered = False
        if self.use_device is not None and self.use_device not in ("cuda",):
            raise NotImplementedError(f"profile(): times of the device '{self.use_device}' are not recorded (docs/gaps.md)")
        if self.use_cuda:

            if not _cuda.is_available():
                _warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
                self.use_device, self.use_cuda = None, False
        self._recording: _core.Recording | None = None
        self._events: EventList | None = None
        self._earlier: list[FunctionEvent] = []
        self._profile: Profile | None = None
        self._undo: list[Callable[[], None]] = []
        self._start_mark: Any = None

    # ---- recording

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        self.trace_id = self.custom_trace_id_callback() if self.custom_trace_id_callback is not None else _new_trace_id()

    def _start_trace(self) -> None:
        make_mark = None
        if self.use_cuda:

            def make_mark() -> Any:
                mark = _cuda.Event(enable_timing=True)
                mark.record()
                return mark

            _cuda.synchronize()
            self._start_mark = make_mark()
        self._recording = _core.Recording(arguments=self.record_shapes, stack=self.with_stack, memory=self.profile_memory, make_mark=make_mark)
        self._recording.start()
        if self.with_modules or self.with_stack:
            self._undo.append(_record_modules())
        if getattr(self.experimental_config, "profile_all_threads", False):
            self._undo.append(_record_new_threads())

    def __exit__(self, *exc: object) -> None:
        if not self.enabled:
            return
        self._stop_trace()

    def _stop_trace(self) -> None:
        if self._recording is None:
            raise RuntimeError("the profiler was not started")
        while self._undo:
            self._undo.pop()()
        self._recording.stop()
        if self._events is not None and self.acc_events:
            self._earlier = list(self._events)
        self._profile = self._events = None
        self.entered = False

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Go on or pause recording in this thread; activities: CPU must be among them, as all recording is the host's."""
        if ProfilerActivity.CPU not in set(activities):
            raise NotImplementedError("toggle_collection_dynamic(): the device's work is recorded with the host's (docs/gaps.md)")
        if enabled:
            _core.join_recording()
        else:
            _core.pause_recording()

    # ---- results

    def _ensure_function_events(self) -> Profile:
        if self._recording is None:
            raise RuntimeError("Profiler didn't finish running")
        if self._profile is None:
            if self.entered:
                raise RuntimeError("Profiler didn't finish running")
            if getattr(self.experimental_config, "trace_only", False) and sys._getframe(1).f_code.co_name != "export_chrome_trace":
                raise RuntimeError("events are not built where the profiler's configuration says trace_only")

            self._profile = _events.Profile(self._recording, shapes=self.record_shapes, flops=self.with_flops, memory=self.profile_memory, use_device=self.use_device,
                                    start_mark=self._start_mark)  # fmt: skip
            events = [*self._earlier, *self._profile.events] if self.acc_events else self._profile.events
            self._events = EventList(events, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops)
            self._events._trace = self._profile
        return self._profile

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began."""
        self._ensure_function_events()
        assert self._events is not None
        return self._events

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False) -> str:  # fmt: skip
        """The events as text (`EventList.table`)."""
        return self.function_events.table(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only)

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None, use_python_export: bool = False) -> None:
        """Write a trace for chrome://tracing or Perfetto, compressed where the path ends in ".gz"."""
        profile = self._ensure_function_events()
        assert self._events is not None
        _trace.write_chrome_trace(path, self._events, profile, {"trace_id": self.trace_id, "with_stack": int(self.with_stack), **(metadata or {})})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their time (`EventList.export_stacks`). AssertionError where none were recorded."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Sums by name (`EventList.key_averages`)."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Time in microseconds that the events account for."""
        return self.function_events.self_cpu_time_total

    def __repr__(self) -> str:
        return repr(self.function_events) if self._recording is not None and not self.entered else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._recording is not None and not self.entered else "<unfinished torch.autograd.profile>"


def _new_trace_id() -> str:
    from uuid import uuid4

    return uuid4().hex.upper()


def _record_modules() -> Callable[[], None]:
    """Make calls of Modules ranges; returns what ends it."""
    numbers: dict[str, dict[int, int]] = defaultdict(dict)
    open_ranges = threading.local()

    def begin(module: Any, args: Any) -> None:
        kind = type(module).__name__
        number = numbers[kind].setdefault(id(module), len(numbers[kind]))
        open_ranges.__dict__.setdefault("tokens", []).append(_core.begin_range(f"nn.Module: {kind}_{number}", True))

    def end(module: Any, args: Any, output: Any) -> None:
        tokens = open_ranges.__dict__.get("tokens")
        if tokens:
            _core.end_range(tokens.pop())

    handles = [_module.register_module_forward_pre_hook(begin), _module.register_module_forward_hook(end, always_call=True)]

    def undo() -> None:
        for handle in handles:
            handle.remove()

    return undo


def _record_new_threads() -> Callable[[], None]:
    """Have threads that begin from now on join the recording, and those there are where the interpreter can reach them (3.12)."""
    before = threading.getprofile()

    def join(*event: Any) -> None:
        sys.setprofile(before)
        _core.join_recording()

    if hasattr(threading, "setprofile_all_threads"):
        threading.setprofile_all_threads(join)
        sys.setprofile(before)
    else:
        threading.setprofile(join)
    return lambda: threading.setprofile(before)  # type: ignore[arg-type]


class emit_nvtx:
    """Hands every operator, Node and named range to NVIDIA's profilers as an NVTX range. RuntimeError where their library is missing, or a profiler runs."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False
        self._recording: _core.Recording | None = None

    def __enter__(self) -> emit_nvtx:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")

        nvtx = _cuda.nvtx
        nvtx.mark("emit_nvtx")  # the library is there, or this says that it is not
        self._recording = _core.Recording(push=nvtx.range_push, pop=nvtx.range_pop)
        self._recording.start()
        self.entered = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording is not None:
            self._recording.stop()
            self._recording = None
            self.entered = False


class emit_itt:
    """Ranges for Intel's VTune, whose library is not used here: entering raises RuntimeError."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_itt:
        if self.enabled:
            raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class EnforceUnique:
    """Tells where something comes twice."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """RuntimeError for what it has seen."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Steps that several parts of a program count: the profiler's is the largest."""

    _steps: dict[str, int] = {}
    _current = 0

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for somebody, at the current step."""
        cls._steps[requester] = cls._current

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget somebody's count; whether there was one."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step; returns the current one."""
        if requester not in cls._steps:
            cls.init_step_count(requester)
        cls._steps[requester] += 1
        cls._current = max(cls._current, *cls._steps.values())
        return cls._current

    @classmethod
    def current_step(cls) -> int:
        """The current one."""
        return cls._current


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """Events of a file that nvprof wrote: the ranges of `emit_nvtx` with the kernels that ran in them."""
    import sqlite3

    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    names = {row["id"]: row["value"] for row in connection.execute("SELECT _id_ AS id, value FROM StringTable")}
    unique = EnforceUnique()
    found: dict[int, FunctionEvent] = {}
    ranges = connection.execute(
        "SELECT begun.id AS id, begun.name AS name, begun.timestamp AS start, ended.timestamp AS stop FROM CUPTI_ACTIVITY_KIND_MARKER AS begun "
        "JOIN CUPTI_ACTIVITY_KIND_MARKER AS ended ON begun.id = ended.id WHERE begun.name != 0 AND ended.name = 0"
    )
    for row in ranges:
        unique.see(row["id"])
        found[row["id"]] = FunctionEvent(row["id"], names[row["name"]], 0, row["start"] / 1e3, row["stop"] / 1e3)
    kernels = connection.execute(
        "SELECT marker.id AS marker, kernel.name AS name, kernel.start AS start, kernel.end AS stop FROM CUPTI_ACTIVITY_KIND_MARKER AS marker "
        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS runtime ON marker.timestamp < runtime.start JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel "
        "ON kernel.correlationId = runtime.correlationId JOIN CUPTI_ACTIVITY_KIND_MARKER AS ended ON ended.id = marker.id AND ended.name = 0 "
        "WHERE marker.name != 0 AND runtime.end < ended.timestamp"
    )
    for row in kernels:
        found[row["marker"]].append_kernel(names.get(row["name"], str(row["name"])), 0, (row["stop"] - row["start"]) / 1e3)
    connection.close()
    return sorted(found.values(), key=lambda event: event.time_range.start)


def load_nvprof(path: str) -> EventList:
    """`parse_nvprof_trace` as an EventList."""
    return EventList(parse_nvprof_trace(path), use_device="cuda")
