"""A profile as a Chrome trace: JSON in the trace event format, which chrome://tracing, Perfetto and TensorBoard's profiler plugin show."""

from __future__ import annotations

import gzip
import json
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorrt_lite.autograd.profiler_util import EventList, FunctionEvent
    from tensorrt_lite.profiler._events import Profile

DEVICE_PROCESS = 0  # in place of a process's number: what runs on the device


def write_chrome_trace(path: str, events: EventList, profile: Profile | None, metadata: dict[str, Any] | None = None) -> None:
    """Write the trace, compressed where the path ends in ".gz". metadata: members that the file has beside the events."""
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        "host_name": socket.gethostname(),
        "traceName": str(path),
        **(metadata or {}),
    }
    if profile is not None:
        head.update(record_shapes=int(profile.shapes), profile_memory=int(profile.memory_profiled), with_flops=int(profile.flops))
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        separator = ""
        for entry in _entries(events, profile):
            file.write(separator + json.dumps(entry))
            separator = ",\n"
        file.write("\n]}\n")


def _entries(events: EventList, profile: Profile | None) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    base = profile.base_ns / 1e3 if profile is not None else 0.0
    threads = profile.threads if profile is not None else sorted({event.thread for event in events})
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": base, "args": {"name": "python"}}
    yield {"ph": "M", "name": "process_labels", "pid": process, "tid": 0, "ts": base, "args": {"labels": "CPU"}}
    for number, thread in enumerate(threads):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "ts": base, "args": {"name": f"thread {thread} (python)"}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "ts": base, "args": {"sort_index": number}}
    for event in events:
        if event.activity_type == "cpu_instant_event":
            continue
        yield {
            "ph": "X", "cat": event.activity_type or "cpu_op", "name": event.trace_name, "pid": process, "tid": event.thread,
            "ts": base + event.time_range.start, "dur": event.time_range.elapsed_us(), "args": _arguments(event),
        }  # fmt: skip
    if profile is None:
        return
    for number, (maker, node) in enumerate(profile.links, 1):
        begin = {"cat": "fwdbwd", "name": "fwdbwd", "pid": process, "id": number}
        yield {**begin, "ph": "s", "tid": maker.thread, "ts": base + maker.time_range.start}
        yield {**begin, "ph": "f", "bp": "e", "tid": node.thread, "ts": base + node.time_range.start}
    if profile.device_ranges:
        yield {"ph": "M", "name": "process_name", "pid": DEVICE_PROCESS, "tid": 0, "ts": base, "args": {"name": f"{profile.use_device} 0"}}
        for event, start, end in profile.device_ranges:
            yield {
                "ph": "X", "cat": "kernel", "name": event.name, "pid": DEVICE_PROCESS, "tid": 0, "ts": base + start, "dur": end - start,
                "args": {"External id": event.id, "device": 0},
            }  # fmt: skip
    for change in profile.memory:
        yield {
            "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": process, "tid": change.thread, "ts": base + change.time_us,
            "args": {"Total Allocated": change.in_use, "Bytes": change.nbytes, "Addr": change.address, "Device Id": -1, "Device Type": 0},
        }  # fmt: skip
        yield {"ph": "C", "name": "memory in use", "pid": process, "tid": 0, "ts": base + change.time_us, "args": {"bytes": change.in_use}}


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    found: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        found["Sequence number"] = event.sequence_nr
    if event.fwd_thread is not None:
        found["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        found["Input Dims"] = event.input_shapes
        found["Input type"] = event.input_dtypes
        found["Concrete Inputs"] = ["" if value is None else str(value) for value in event.concrete_inputs]
    if event.stack:
        found["Call stack"] = ";".join(event.stack)
    if event.flops:
        found["flops"] = event.flops
    if event.cpu_memory_usage:
        found["Bytes"] = event.cpu_memory_usage
    return found
