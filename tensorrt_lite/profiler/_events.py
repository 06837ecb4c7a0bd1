"""From what the core has recorded (``_C.core.profiler.Recording``) to events: the tree of each thread, memory, device time, floating-point operations."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_lite.autograd.profiler_util import MEMORY_EVENT_NAME, FunctionEvent
from tensorrt_lite.profiler._flops import flops_of
from tensorrt_lite.profiler._types import RecordScope

if TYPE_CHECKING:
    from tensorrt_lite._C.core.profiler import Recording

_PACKAGE = Path(__file__).parents[1]
_OWN = tuple(str(Path(_PACKAGE.name, path)) + "(" for path in ("autograd/profiler.py", "profiler/profiler.py"))  # frames of the profiler itself
_ACTIVITIES = {
    "operator": "cpu_op", "function": "cpu_op", "node": "cpu_op", "pass": "cpu_op", "range": "user_annotation", "module": "python_function",
    "frame": "python_function",
}  # fmt: skip
_SHORT = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


class Memory:
    """One change of the memory in use. time_us since the profile began, nbytes negative where memory came back, in_use after it."""

    __slots__ = ("address", "event", "in_use", "nbytes", "thread", "time_us")

    def __init__(self, time_us: float, address: int, nbytes: int, in_use: int, thread: int, event: FunctionEvent | None) -> None:
        self.time_us, self.address, self.nbytes, self.in_use, self.thread, self.event = time_us, address, nbytes, in_use, thread, event


class Profile:
    """Events of one recording in the order in which they began, and what exports need besides."""

    def __init__(self, recording: Recording, *, shapes: bool, flops: bool, memory: bool, use_device: str | None, start_mark: Any = None) -> None:
        self.shapes, self.memory_profiled, self.flops, self.use_device = shapes, memory, flops, use_device
        self.base_ns, self.end_ns = recording.span
        self.dropped = recording.dropped
        self.events: list[FunctionEvent] = []
        self.memory: list[Memory] = []
        self.threads: list[int] = []
        self.device_ranges: list[tuple[FunctionEvent, float, float]] = []  # event, begin and end in microseconds since the profile began
        marks = recording.marks
        if marks:
            marks[0].synchronize()
            for mark in marks:
                if mark is not None:
                    mark.synchronize()
        for thread, _, records in recording.records(_folders_of_modules()):
            self.threads.append(thread)
            self._read_thread(thread, records, marks, start_mark)
        self.events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        for number, event in enumerate(self.events):
            event.id = number
        self._link_backward()

    def _read_thread(self, thread: int, records: list[tuple[Any, ...]], marks: list[Any], start_mark: Any) -> None:
        open_events: list[FunctionEvent] = []
        marked: list[tuple[FunctionEvent, int]] = []
        for kind, name, begin, end, sequence, after, arguments, stack, mark, device in records:
            begin, end = begin / 1e3, end / 1e3
            while open_events and open_events[-1].time_range.end <= begin:
                open_events.pop()
            if kind == "frame" and name.startswith(_OWN):
                continue
            if kind == "range":  # a context manager's function may return before the range that it has begun ends
                while open_events and open_events[-1].activity_type == "python_function" and open_events[-1].time_range.end < end:
                    open_events.pop()
            parent = open_events[-1] if open_events else None
            if kind == "memory":
                self._read_memory(begin, name, sequence, after, thread, open_events)
                continue
            if parent is not None:  # one that was left open, or closed late, ends with what it lies in
                end = min(end, parent.time_range.end)
            event = self._event(kind, name, thread, begin, end, sequence, after, arguments, stack)
            if parent is not None:
                event.set_cpu_parent(parent)
                parent.append_cpu_child(event)
                if self.flops and parent.name == "aten::conv" + parent.name[-2:] and event.name == "aten::convolution":
                    parent.flops, event.flops = event.flops, None  # PyTorch counts them there
            open_events.append(event)
            self.events.append(event)
            if mark >= 0 and marks[mark + 1] is not None:
                event.use_device = self.use_device
                marked.append((event, mark))
        for event, mark in marked:
            begin = 1e3 * start_mark.elapsed_time(marks[mark])
            end = begin + 1e3 * marks[mark].elapsed_time(marks[mark + 1])
            event.append_kernel(event.name, 0, end - begin)
            self.device_ranges.append((event, begin, end))
        for event, _ in reversed(marked):  # those below have the rest of theirs
            inner = sum(child.device_time_total for child in event.cpu_children)
            event.kernels = [event.kernels[0]._replace(duration=max(0.0, event.kernels[0].duration - inner))]

    def _event(self, kind: str, name: str, thread: int, begin: float, end: float, sequence: int, after: int, arguments: Any, stack: Any) -> FunctionEvent:
        forward = kind in ("operator", "function")
        number = (sequence + 1 if after > sequence else -1) if forward else sequence if kind == "node" and sequence else -1
        step = kind == "range" and name.startswith("ProfilerStep#")
        event = FunctionEvent(
            0, "ProfilerStep*" if step else name, thread, begin, end,
            trace_name=name,
            stack=[frame for frame in stack if not frame.startswith(_OWN)] if stack else None,
            scope=RecordScope.BACKWARD_FUNCTION if kind == "node" else RecordScope.USER_SCOPE if kind == "range" else RecordScope.FUNCTION,
            sequence_nr=number,
            use_device=self.use_device,
            is_user_annotation=kind == "range",
            is_python_function=kind in ("module", "frame"),
            activity_type=_ACTIVITIES[kind],
        )  # fmt: skip
        if arguments is not None:
            if self.shapes:
                event.input_shapes = [_sizes(argument) for argument in arguments]
                event.concrete_inputs = [argument[1] if argument and argument[0] == "value" else None for argument in arguments]
                event.input_dtypes = [_type_name(argument) for argument in arguments]
            if self.flops and kind == "operator":
                event.flops = flops_of(name, arguments)
        return event

    def _read_memory(self, time: float, address: int, nbytes: int, in_use: int, thread: int, open_events: list[FunctionEvent]) -> None:
        inner = None
        for event in open_events:
            if event.time_range.end >= time:
                event.cpu_memory_usage += nbytes
                inner = event
        self.memory.append(Memory(time, address, nbytes, in_use, thread, inner))
        if inner is None:
            event = FunctionEvent(0, MEMORY_EVENT_NAME, thread, time, time, cpu_memory_usage=nbytes, use_device=self.use_device, activity_type="cpu_instant_event")
            self.events.append(event)

    def _link_backward(self) -> None:
        """A Node has the stack of the call that made it, whose thread it names."""
        self.links: list[tuple[FunctionEvent, FunctionEvent]] = []
        makers: dict[int, FunctionEvent] = {}
        for event in self.events:
            if event.sequence_nr > 0 and event.scope == RecordScope.FUNCTION:
                makers[event.sequence_nr] = event  # the innermost is met last
        for event in self.events:
            maker = makers.get(event.sequence_nr) if event.scope == RecordScope.BACKWARD_FUNCTION else None
            if maker is not None:
                event.fwd_thread = maker.thread
                self.links.append((maker, event))
                if maker.stack:
                    event.stack = maker.stack


def _folders_of_modules() -> tuple[str, ...]:
    """Where modules are imported from, inner folders before those that hold them: profiles name files from there, as PyTorch's do."""
    folders = [*sys.path, *site.getsitepackages(), site.getuserbase(), site.getusersitepackages(), str(_PACKAGE.parent)]
    return tuple(sorted({os.path.join(os.path.abspath(folder), "") for folder in folders}, reverse=True))


def _sizes(argument: Any) -> list[Any]:
    if isinstance(argument, tuple) and argument[0] != "value":
        return argument[0]
    return [sizes for sizes, _ in argument] if isinstance(argument, list) else []


def _type_name(argument: Any) -> str:
    if argument is None:
        return ""
    if isinstance(argument, list):
        return "TensorList"
    if argument[0] == "value":
        return "ScalarList" if isinstance(argument[1], list) else "Scalar"
    name = argument[1].rpartition(".")[2]
    return _SHORT.get(name, name)
