"""The devices' generators: a seed and an offset into the Philox stream of each thread, as PyTorch keeps them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite.random import Generator, _state_bytes
from tensorrt_lite import cuda as _cuda
from tensorrt_lite._root import tensor as _tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorrt_lite import Tensor

_MASK = (1 << 64) - 1
_UNSEEDED = 67280421310721  # the seed of a generator that nobody seeded, as in PyTorch


class DeviceGenerator(Generator):
    """``Generator(device="cuda")``. Its state is 16 bytes: the seed and the number of words that each thread has drawn."""

    def __new__(cls, device: Any = "cuda") -> DeviceGenerator:
        self = Generator.__new__(cls, "cpu")
        place = _device(device)
        self._place = place if place.index is not None else _device("cuda", _current())
        self._seed, self._offset = _UNSEEDED, 0
        self._state: Tensor | None = None  # on the device, while a graph records: the graph's replays write seed and offset there
        return self

    @property
    def device(self) -> _device:
        """Where the numbers are made."""
        return self._place

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """Restart the stream. RuntimeError while a graph records."""
        self._not_recorded("seeded")
        self._seed, self._offset = int(seed) & _MASK, 0
        return self

    def seed(self) -> int:
        """Seed with a number that differs in every call; returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The last seed."""
        return self._seed

    def get_offset(self) -> int:
        """The number of words that each thread has drawn."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Continue from a number of words, a multiple of 4."""
        if offset % 4:
            raise RuntimeError(f"offset must be a multiple of 4, got {offset}")
        self._not_recorded("set")
        self._offset = offset

    def get_state_bytes(self) -> bytes:
        """Seed and offset."""
        return self._seed.to_bytes(8, "little") + self._offset.to_bytes(8, "little")

    def set_state_bytes(self, data: bytes) -> None:
        """Continue where a state stood, here or in PyTorch."""
        if len(data) not in (8, 16):
            raise RuntimeError(f"RNG state is wrong size: expected 16 bytes, got {len(data)}")
        self._not_recorded("set")
        self._seed = int.from_bytes(data[:8], "little")
        self.set_offset(int.from_bytes(data[8:], "little"))

    def clone_state(self) -> DeviceGenerator:
        """A generator at the same point of the stream."""
        other = DeviceGenerator(self._place)
        other.set_state_bytes(self.get_state_bytes())
        return other

    def advance(self, words: int) -> tuple[int, int, int]:
        """The seed, the offset of the next `words` (a multiple of 4) of each thread, which are then spent, and 0; while a graph records: 0, the offset
        after the one at the replay, and the address of seed and offset on the device. RuntimeError for a generator that the graph does not know."""
        offset = self._offset
        if _recording:
            if self._state is not None:
                self._offset += words
                return 0, offset, self._state.data_ptr()
            from tensorrt_lite.cuda import device, is_current_stream_capturing

            with device(self._place.index):
                if is_current_stream_capturing():
                    raise RuntimeError("a generator draws inside a CUDA graph that does not know it: call CUDAGraph.register_generator_state before the capture")
        self._offset += words
        return self._seed, offset, 0

    def _not_recorded(self, what: str) -> None:
        if self._state is not None:
            raise RuntimeError(f"a generator cannot be {what} while a CUDA graph records its numbers")

    def _record(self, state: Tensor) -> int:
        """Draws are recorded from here on, relative to what `state` (two int64 on the device) holds at a replay. Returns what `_end_recording` takes."""
        global _recording
        self._not_recorded("recorded by a second graph")
        before, self._state, self._offset = self._offset, state, 0
        _recording += 1
        return before

    def _end_recording(self, before: int) -> int:
        """Continue from where the stream stood; the number of words that one replay draws."""
        global _recording
        drawn, self._state, self._offset = self._offset, None, before
        _recording -= 1
        return drawn

    def _replay(self, state: Tensor, drawn: int) -> None:
        """Give a graph the next `drawn` words."""
        seed = self._seed - (1 << 64) if self._seed >> 63 else self._seed
        state.copy_(_tensor([seed, self._offset], dtype=state.dtype), non_blocking=True)
        self._offset += drawn

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceGenerator, (self._place,), self.get_state_bytes()


def _current() -> int:
    return int(_cuda.current_device())


_recording = 0  # generators whose draws a graph records
_generators: dict[int, DeviceGenerator] = {}
_seed_for_all: int | None = None  # what devices that have not drawn yet begin with


def default_generator_of(index: int) -> DeviceGenerator:
    """The generator that operators on a device draw from unless they are given one."""
    found = _generators.get(index)
    if found is None:
        found = _generators[index] = DeviceGenerator(_device("cuda", index))
        if _seed_for_all is None:
            found.seed()
        else:
            found.manual_seed(_seed_for_all)
    return found


def generators_in_use() -> dict[int, DeviceGenerator]:
    """The default generators that something was drawn from, by device."""
    return _generators


def generator_for(index: int, generator: Any) -> DeviceGenerator:
    """What an operator draws from, given its `generator` argument."""
    if generator is None:
        return default_generator_of(index)
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}")
    if not isinstance(generator, DeviceGenerator):
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    return generator


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    place = _device(device)
    return place.index if place.index is not None else _current()


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device nothing happens, so that programs may seed before they look for one."""
    if _cuda.is_available():
        default_generator_of(_current()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices, also of those that are used later."""
    global _seed_for_all
    _seed_for_all = int(seed)
    for generator in _generators.values():
        generator.manual_seed(seed)


def seed() -> None:
    """Seed the current device's generator with a random number."""
    default_generator_of(_current()).seed()


def seed_all() -> None:
    """Seed the generators of all devices with one random number."""
    manual_seed_all(int.from_bytes(os.urandom(8), "little"))


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return default_generator_of(_current()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's generator: 16 bytes."""
    return _ops.frombuffer(bytearray(default_generator_of(_index(device)).get_state_bytes()), dtype=_dtype_by_name("uint8"))


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue a device's stream where a state stood."""
    default_generator_of(_index(device)).set_state_bytes(_state_bytes(new_state))


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices."""
    return [get_rng_state(i) for i in range(_cuda.device_count())]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue the streams of all devices."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(default_generator_of(i) for i in range(_cuda.device_count()))
    raise AttributeError(f"module 'tensorrt_lite.cuda.random' has no attribute '{name}'")
