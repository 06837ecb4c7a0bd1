"""Sets of current devices and streams that threads have had, by number: a Node keeps the number of its forward call's, and its gradients are computed there.

Number 0 is the set of default streams on the first devices. Sets stay for as long as the process, as Nodes and streams of a program repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt_lite._C.core import custom as _custom
from tensorrt_lite.backend.streams import Stream
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_device = _LazyModule("tensorrt_lite.backend.device")

if TYPE_CHECKING:
    from tensorrt_lite.backend.device import Device
    from tensorrt_lite.tensor import Tensor

__all__ = ["hand_over", "join", "keep_for", "note", "use"]

# of a device type its code, the current device, and (device, handle) of streams that are not the default ones
_Set = tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
_sets: list[_Set] = [()]
_numbers: dict[_Set, int] = {(): 0}


def _devices() -> list[Device]:
    return _device.registered()


def note() -> None:
    """The calling thread's current devices or streams have changed."""
    found: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for device in _devices():
        thread = device._thread
        streams = tuple(sorted((index, stream.stream_id) for index, stream in thread.streams.items() if stream.stream_id))
        if thread.index or streams:
            found.append((device.code, thread.index, streams))
    number = _numbers.setdefault(tuple(found), len(_sets))
    if number == len(_sets):
        _sets.append(tuple(found))
    _custom._note_streams(number, len(_sets) - 1)


def use(number: int) -> None:
    """Make a set the calling thread's."""
    wanted = {code: (index, dict(streams)) for code, index, streams in _sets[number]}
    for device in _devices():
        index, streams = wanted.get(device.code, (0, {}))
        thread = device._thread
        for place in streams.keys() | thread.streams.keys():
            handle = streams.get(place, 0)
            if handle != (thread.streams[place].stream_id if place in thread.streams else 0):
                thread.streams[place] = Stream._make(device, place, handle)
                device.interface.set_current_stream(place, handle)
        if index != thread.index:
            thread.index = index
            device.interface.set_current(index)
    _custom._note_streams(number, len(_sets) - 1)


def _handle(number: int, code: int, index: int) -> int:
    return next((dict(streams).get(index, 0) for other, _, streams in _sets[number] if other == code), 0)


def _order(device: Device, index: int, before: int, after: int) -> None:
    """Work queued from now on in one stream runs after what another has been given."""
    event = device.interface.record_event(index, before, None, False)
    device.interface.wait_event(index, after, event)
    device.interface.destroy_event(index, event)


def hand_over(tensor: Tensor, producer: int, consumer: int) -> None:
    """Before one set's streams use what another's have queued the making of."""
    device, index = _device.device_of(tensor), tensor.get_device()
    before, after = _handle(producer, device.code, index), _handle(consumer, device.code, index)
    if before != after:
        _order(device, index, before, after)
        keep_for(tensor, consumer)


def keep_for(tensor: Tensor, consumer: int) -> None:
    """A tensor's memory is not given out again before the set's work with it has run."""
    device, index = _device.device_of(tensor), tensor.get_device()
    device.record_stream(tensor, Stream._make(device, index, _handle(consumer, device.code, index)))


def join(producer: int, consumer: int) -> None:
    """One set's streams wait for all that another's have been given."""
    for device in _devices():
        for index in range(device.device_count()):
            before, after = _handle(producer, device.code, index), _handle(consumer, device.code, index)
            if before != after:
                _order(device, index, before, after)
