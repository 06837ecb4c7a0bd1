"""The profiler with a schedule: which steps of a training loop are recorded, and what is done with each trace."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any
from warnings import warn

from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.autograd import profiler as _autograd_profiler
from tensorrt_lite.profiler._types import ProfilerAction, ProfilerActivity, _ExperimentalConfig

_cuda = LazyModule("tensorrt_lite.cuda")
_flame = LazyModule("tensorrt_lite.profiler._flame")
_listing = LazyModule("tensorrt_lite._names.listing")
_memory = LazyModule("tensorrt_lite.profiler._memory")
_missing = LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorrt_lite.autograd.profiler_util import EventList

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]


def supported_activities() -> set[ProfilerActivity]:
    """CPU, and CUDA where there is a device."""

    found = {ProfilerActivity.CPU}
    if _cuda.is_available():
        found.add(ProfilerActivity.CUDA)
    return found


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Steps of a cycle: `wait` without recording, `warmup` recorded and dropped, `active` recorded; `repeat` cycles (0: without end) after `skip_first` steps.

    skip_first_wait: where not zero, the first cycle begins without its wait. AssertionError for negative numbers and for active=0.

    >>> [schedule(wait=1, warmup=1, active=1)(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False) -> Callable[[Any], None]:
    """What `on_trace_ready` may be: writes each trace to the folder, by the name that TensorBoard's profiler plugin looks for."""

    def write(recorded: _KinetoProfile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + str(dir_name)) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        recorded.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"))

    return write


def _activities(given: Iterable[Any] | None) -> set[ProfilerActivity]:
    if given is None:
        return supported_activities()
    found: set[ProfilerActivity] = set()
    for activity in given:
        found.update(activity if isinstance(activity, dict) else (activity,))
    if not found:
        raise AssertionError("No valid profiler activities found")
    for activity in found:
        if not isinstance(activity, ProfilerActivity):
            raise AssertionError(f"No valid profiler activities found: activities must be ProfilerActivity, not {type(activity).__name__}")
    return found


class _KinetoProfile:
    """A profiler without a schedule: `start`, `stop`, and what `profile` has to show the result."""

    def __init__(self, *, activities: Iterable[Any] | None = None, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, with_modules: bool = False, experimental_config: _ExperimentalConfig | None = None,
                 execution_trace_observer: Any = None, acc_events: bool = False, custom_trace_id_callback: Callable[[], str] | None = None,
                 post_processing_timeout_s: float | None = None) -> None:  # fmt: skip
        if execution_trace_observer is not None:
            raise NotImplementedError("profile(): execution_trace_observer is not implemented (docs/gaps.md)")
        self.activities = _activities(activities)
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.with_modules, self.acc_events = with_stack, with_modules, acc_events
        self.experimental_config = experimental_config
        self.execution_trace_observer = None
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: _autograd_profiler.profile | None = None
        self.use_device = "cuda" if ProfilerActivity.CUDA in self.activities else None
        self._metadata: dict[str, Any] = {}
        self._preset: dict[str, Any] = {}

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End it."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Make what `start_trace` starts."""
        earlier = self.profiler
        self.profiler = _autograd_profiler.profile(
            use_device=self.use_device, record_shapes=self.record_shapes, with_flops=self.with_flops, profile_memory=self.profile_memory,
            with_stack=self.with_stack, with_modules=self.with_modules, experimental_config=self.experimental_config, acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
        )  # fmt: skip
        if self.acc_events and earlier is not None and earlier._recording is not None:
            self.profiler._earlier = list(earlier.function_events)
        self.profiler._prepare_trace()
        self._metadata = dict(self._preset)

    def start_trace(self) -> None:
        """Begin to record. AssertionError before `prepare_trace`."""
        self._need("starting trace")._start_trace()

    def stop_trace(self) -> None:
        """End the recording. AssertionError before `start_trace`."""
        self._need("stopping trace").__exit__(None, None, None)

    def _need(self, action: str) -> _autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {action}")
        return self.profiler

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write a trace for chrome://tracing, Perfetto or TensorBoard, compressed where the path ends in ".gz"."""
        self._need("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their time, for tools that draw flame graphs. RuntimeError where none were recorded."""
        self._need("exporting stacks").export_stacks(path, metric)

    def export_flame_graph(self, path: str) -> None:
        """Write a flame graph as one SVG file, with Python's frames where `with_stack` recorded them."""
        _flame.write_flame_graph(path, self._need("exporting a flame graph").function_events)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory in use over time: an .html page that draws it, .json or .json.gz with times and bytes, .raw.json.gz with every change.
        ValueError where memory was not recorded."""
        if not self.profile_memory:
            raise ValueError("profile_memory=True required for memory profiling.")
        if device not in (None, "cpu"):
            raise NotImplementedError(f"export_memory_timeline(): the memory of '{device}' is not recorded, see cuda.memory._snapshot (docs/gaps.md)")
        _memory.write_memory_timeline(path, self._need("exporting the memory timeline")._ensure_function_events())

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause recording, or go on with it, between start and stop."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Sums of the events of one name; of one name and shape, or one name and innermost n frames, where asked for."""
        return self._need("getting key averages").key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def events(self) -> EventList:
        """The events, in the order in which they began. AssertionError before a trace was started."""
        return self._need("getting events").function_events

    def add_metadata(self, key: str, value: str) -> None:
        """A text that the trace file has."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A value, given as JSON, that the trace file has."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same for traces that are still to be started."""
        self._preset[key] = json.loads(value)

    def _memory_profile(self) -> Any:
        raise NotImplementedError("_memory_profile() is not implemented; export_memory_timeline() writes the memory in use (docs/gaps.md)")


class profile(_KinetoProfile):
    """Records operators, backward passes, named ranges, memory and devices' times over the steps that a schedule names.

    activities: what is recorded, all that is supported by default; schedule: the action of each step (`schedule`), all are recorded without one;
    on_trace_ready: called with the profiler when a trace is complete; record_shapes, with_flops, profile_memory, with_stack, with_modules: what events
    know besides times. `step()` says that the next step begins.

    >>> import tensorrt_lite as trt
    >>> with profile(record_shapes=True) as recorded:
    ...     y = trt.ones(2, 3) @ trt.ones(3, 4)
    >>> recorded.events()[-1].name, recorded.events()[-1].input_shapes
    ('aten::mm', [[2, 3], [3, 4]])
    """

    def __init__(self, *, activities: Iterable[Any] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, with_modules: bool = False, experimental_config: _ExperimentalConfig | None = None,
                 execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: bool | None = None,
                 custom_trace_id_callback: Callable[[], str] | None = None, post_processing_timeout_s: float | None = None) -> None:  # fmt: skip
        activities = _activities(activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            (activities.add if use_cuda else activities.discard)(ProfilerActivity.CUDA)
            if not activities:
                raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack, with_flops=with_flops,
            with_modules=with_modules, experimental_config=experimental_config, execution_trace_observer=execution_trace_observer, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )  # fmt: skip
        self.schedule = schedule if schedule is not None else _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(self.step_num)
        if not isinstance(self.current_action, ProfilerAction):
            raise TypeError(f"a schedule returns a ProfilerAction, not {type(self.current_action).__name__}")
        self.step_rec_fn: _autograd_profiler.record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        _autograd_profiler.KinetoStepTracker.erase_step_count("ProfilerStep")

    def start(self) -> None:
        """Begin with the current step."""
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the last step; a trace that was being recorded is complete."""
        self._end_step()
        self._transit_action(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit_action(before, self.current_action)
        _autograd_profiler.KinetoStepTracker.increment_step("ProfilerStep")
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = _autograd_profiler.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """What names the next traces."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the trace, None before the first."""
        return self.profiler.trace_id if self.profiler is not None else None

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """A trace is prepared in a warm-up, recorded from the first step to be recorded, and complete after RECORD_AND_SAVE or with the last step."""
        recorded = before in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        records = after in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recorded and (not records or before is ProfilerAction.RECORD_AND_SAVE):
            if before is ProfilerAction.RECORD and after is not None:
                warn("Incorrect schedule: a recorded step that does not save is followed by one that is not recorded", stacklevel=3)
            self.stop_trace()
            self._trace_ready()
            recorded = False
        if records and not recorded:
            if before is not ProfilerAction.WARMUP or self.profiler is None or not self.profiler.entered:
                self.prepare_trace()
            self.start_trace()
        elif after is ProfilerAction.WARMUP and before is not ProfilerAction.WARMUP:
            self.prepare_trace()
        elif before is ProfilerAction.WARMUP and not records and self.profiler is not None:
            self.profiler.entered = False  # prepared and never started


def __getattr__(name: str) -> Any:
    raise _missing.error("profiler", name)


def __dir__() -> list[str]:
    return _listing.public(globals())


