"""What a profile consists of: events, lists of them, averages, and the table that they are printed as.

Times are microseconds since the profile began. An event's parent is the one of its thread in whose time it lies; what is left of an event's time
or memory when that of its children is taken away is its own ("self").
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_trace = _LazyModule("tensorrt_lite.profiler._trace")
_types = _LazyModule("tensorrt_lite.profiler._types")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorrt_lite.profiler._types import DeviceType

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel", "MemRecordsAcc", "StringTable"]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
_METRICS = {"self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total", "self_device_time_total"}


class Interval:
    """start and end in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it lasts."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device that an event started; duration in microseconds."""

    name: str
    device: int
    duration: float


class StringTable(defaultdict):  # type: ignore[type-arg]
    """Names as they are, by themselves."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records, found by their time. mem_records: pairs of an object with `start_ns()` and something else."""

    def __init__(self, mem_records: list[Any]) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterable[Any]:
        """Those that began from start_ns to end_ns."""
        yield from self._records[bisect.bisect_left(self._starts, start_ns) : bisect.bisect_right(self._starts, end_ns)]


def _format_time(time_us: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


def _format_memory(nbytes: float) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class FormattedTimesMixin:
    """Averages by call, and times as text."""

    count: int
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """Of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Of one call."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time
    cpu_time_str = property(lambda self: _format_time(self.cpu_time))
    device_time_str = property(lambda self: _format_time(self.device_time))
    cpu_time_total_str = property(lambda self: _format_time(self.cpu_time_total))
    device_time_total_str = property(lambda self: _format_time(self.device_time_total))
    self_cpu_time_total_str = property(lambda self: _format_time(self.self_cpu_time_total))
    self_device_time_total_str = property(lambda self: _format_time(self.self_device_time_total))


def _cpu() -> DeviceType:
    return _types.DeviceType.CPU


class FunctionEvent(FormattedTimesMixin):
    """One range: an operator's call, a Node of a backward pass, what the program has named."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: Any = None,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        input_dtypes: list[Any] | None = None,
    ) -> None:
        self.id, self.node_id, self.name, self.overload_name = id, node_id, name, overload_name or ""
        self.trace_name = trace_name if trace_name is not None else name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes if input_shapes is not None else []
        self.concrete_inputs = concrete_inputs if concrete_inputs is not None else []
        self.input_dtypes = input_dtypes if input_dtypes is not None else []
        self.kwinputs = kwinputs if kwinputs is not None else {}
        self.stack = stack if stack is not None else []
        self.scope, self.use_device = scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr = sequence_nr
        self.device_type = _cpu() if device_type is None else device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.flops = flops
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.activity_type = activity_type
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Work on a device that the event started."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """An event in whose time it lies has this one as parent."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """The event in whose time this one lies."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What calls are grouped by."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """With its children."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Without its children."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """With its children."""
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """Of what it started itself."""
        return sum(kernel.duration for kernel in self.kernels)

    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that it took less those that it gave back, without its children."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The same on the device."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    self_cuda_memory_usage = self_device_memory_usage

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} cpu_children={[child.id for child in self.cpu_children]} "
            f"{self.use_device}_time={self.device_time_str} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {self.use_device}_memory_usage={self.device_memory_usage} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of events with one key."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.cpu_time_total = self.device_time_total = 0.0
        self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = _cpu()
        self.flops = 0

    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or another sum with the same key."""
        if self.key is None:
            for name in ("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes", "stack", "scope", "device_type",
                         "is_legacy", "use_device", "is_user_annotation"):  # fmt: skip
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"events of different keys do not add up: {self.key} and {other.key}")
        for name in ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage", "device_memory_usage",
                     "self_cpu_memory_usage", "self_device_memory_usage", "count"):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
            f"self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):  # type: ignore[type-arg]
    """Events, or averages of them, that print as a table."""

    def __init__(self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._trace: Any = None  # what the profiler has beside the events, for exports

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Of all events, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text. sort_by: a number that they have, such as "self_cpu_time_total", "count", "cpu_memory_usage"; row_limit: rows printed, -1 for
        all; time_unit: "s", "ms" or "us" for all times. ValueError for other units."""
        return _build_table(self, sort_by, header, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, self._with_flops,
                            self._profile_memory, top_level_events_only, time_unit)  # fmt: skip

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show."""
        _trace.write_chrome_trace(path, self, self._trace)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` takes."""
        return sorted(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write lines "frame;frame;... number" for tools that draw flame graphs, the outermost frame first. ValueError for another metric."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        attribute = "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total"
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, attribute))
                if event.stack and value > 0:
                    file.write(";".join(_stack_word(entry) for entry in reversed(event.stack)) + f" {value}\n")

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Sums of the events of one name; of one name and the same shapes, of the same innermost n frames of the stack, where asked for."""
        sums: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
                event.overload_name if group_by_overload_name else "",
            )  # fmt: skip
            sums.setdefault(key, FunctionEventAvg()).add(event)
        averages = EventList(sums.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops)
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key if total.key is not None else None
            total.add(event)
        total.key = "Total"
        return total


def _stack_word(entry: str) -> str:
    return entry.translate(str.maketrans(" ;\t\n", "____"))


# ---- the table


class _Column(NamedTuple):
    header: str
    width: int
    value: Callable[[Any], str]


def _columns(events: EventList, shown: list[Any], total_cpu: float, total_device: float, widths: tuple[int, int, int], with_flops: bool, memory: bool,
             time: Callable[[float], str]) -> list[_Column]:  # fmt: skip
    src_width, name_width, shapes_width = widths
    device = events._use_device
    label = (device or "").upper()
    has_device = device is not None and any(event.self_device_time_total > 0 for event in events)
    columns = [
        _Column("Name", min(max((len(e.key) for e in shown), default=8) + 4, name_width), lambda e: _clip(e.key, name_width)),
        _Column("Self CPU %", 12, lambda e: _format_time_share(e.self_cpu_time_total, total_cpu)),
        _Column("Self CPU", 12, lambda e: time(e.self_cpu_time_total)),
        _Column("CPU total %", 12, lambda e: _format_time_share(e.cpu_time_total, total_cpu)),
        _Column("CPU total", 12, lambda e: time(e.cpu_time_total)),
        _Column("CPU time avg", 12, lambda e: time(e.cpu_time)),
    ]
    if has_device:
        columns += [
            _Column(f"Self {label}", 12, lambda e: time(e.self_device_time_total)),
            _Column(f"Self {label} %", 12, lambda e: _format_time_share(e.self_device_time_total, total_device)),
            _Column(f"{label} total", 12, lambda e: time(e.device_time_total)),
            _Column(f"{label} time avg", 12, lambda e: time(e.device_time)),
        ]
    if memory:
        columns += [_Column("CPU Mem", 12, lambda e: _format_memory(e.cpu_memory_usage)), _Column("Self CPU Mem", 12, lambda e: _format_memory(e.self_cpu_memory_usage))]
        if device is not None and any(event.device_memory_usage for event in events):
            columns += [
                _Column(f"{label} Mem", 12, lambda e: _format_memory(e.device_memory_usage)),
                _Column(f"Self {label} Mem", 12, lambda e: _format_memory(e.self_device_memory_usage)),
            ]
    columns.append(_Column("# of Calls", 12, lambda e: str(e.count)))
    if any(event.overload_name for event in events):
        columns.append(_Column("Overload Name", 20, lambda e: e.overload_name or ""))
    if any(event.input_shapes for event in events):
        width = min(max(len(str(e.input_shapes)) for e in shown) + 4, shapes_width)
        columns.append(_Column("Input Shapes", width, lambda e: _clip(str(e.input_shapes), shapes_width)))
    if any(event.stack for event in events):
        width = min(max(max((len(entry) for entry in e.stack), default=0) for e in shown) + 4, src_width)
        columns.append(_Column("Source Location", width, lambda e: _clip_left(e.stack[0], src_width) if e.stack else ""))
    if with_flops:
        most = max((e.flops or 0 for e in shown), default=0)
        unit, scale = next(((unit, 1e3**power) for power, unit in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K")) if most >= 1e3**power), ("", 1.0))
        columns.append(_Column(f"Total {unit}FLOPs", 12, lambda e: f"{e.flops / scale:.3f}" if e.flops else "--"))
    return columns


def _clip(text: str, width: int) -> str:
    return text if len(text) < width else text[: width - 4] + "..."


def _clip_left(text: str, width: int) -> str:
    return text if len(text) < width else "..." + text[len(text) - width + 4 :]


def _build_table(events: EventList, sort_by: str | None = None, header: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
                 max_name_column_width: int = 55, max_shapes_column_width: int = 80, with_flops: bool = False, profile_memory: bool = False,
                 top_level_events_only: bool = False, time_unit: str | None = None) -> str:  # fmt: skip
    if not events:
        return ""
    if time_unit not in (None, "s", "ms", "us"):
        raise ValueError(f"time_unit must be 's', 'ms' or 'us', not {time_unit!r}")
    size = {"s": 1e6, "ms": 1e3, "us": 1.0, None: 1.0}[time_unit]
    time = _format_time if time_unit is None else (lambda us: f"{us / size:.3f}{time_unit}")
    total_cpu, total_device = events.self_cpu_time_total, sum(event.self_device_time_total for event in events)
    rows = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    if sort_by is not None:
        key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        if rows and not hasattr(rows[0], key):
            raise AttributeError(f"'{type(rows[0]).__name__}' object has no attribute '{sort_by}'")
        rows.sort(key=lambda event: getattr(event, key), reverse=True)
    shown = rows if row_limit < 0 else rows[:row_limit]
    columns = _columns(events, shown, total_cpu, total_device, (max_src_column_width, max_name_column_width, max_shapes_column_width), with_flops, profile_memory, time)
    rule = "  ".join("-" * column.width for column in columns) + "  "
    lines = [] if header is None else ["=" * len(rule), header]
    lines += [rule, "  ".join(column.header.rjust(column.width) for column in columns) + "  ", rule]
    for event in shown:
        lines.append("  ".join(column.value(event).rjust(column.width) for column in columns) + "  ")
        for entry in event.stack[1:5] if events and any(column.header == "Source Location" for column in columns) else ():
            lines.append("  ".join((_clip_left(entry, max_src_column_width) if column.header == "Source Location" else "").rjust(column.width) for column in columns) + "  ")
    lines += [rule, f"Self CPU time total: {time(total_cpu)}"]
    if any(column.header.startswith("Self ") and column.header.endswith(" %") and column.header != "Self CPU %" for column in columns):
        lines.append(f"Self {(events._use_device or '').upper()} time total: {time(total_device)}")
    return "\n".join(lines) + "\n"
