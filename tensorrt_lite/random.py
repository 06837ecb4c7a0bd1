"""Random state: Generator, the default generator, seeds.

The streams are PyTorch's: with the same seed every random operator draws PyTorch's numbers. Operators draw under the
GIL, so threads that share a generator interleave whole tensors; for reproducible threads give each its own Generator.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core import device as _names
from tensorrt_lite._C.core import random as _core
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_backend = _LazyModule("tensorrt_lite.backend")
_data = _LazyModule("tensorrt_lite.utils.data")
_listing = _LazyModule("tensorrt_lite._names.listing")
_random = _LazyModule("tensorrt_lite.cuda.random")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from tensorrt_lite import Tensor

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator",
]  # fmt: skip


class Generator(_core.GeneratorBase):
    """A stream of random numbers of its own, for the ``generator`` argument of random operators.

    >>> import tensorrt_lite as trt
    >>> g = trt.Generator().manual_seed(0)
    >>> trt.randperm(5, generator=g).tolist()
    [4, 0, 1, 3, 2]
    """

    def __new__(cls, device: Any = "cpu") -> Self:
        place = _device(device)
        if place.type == "cuda" and cls is Generator:
            return _random.DeviceGenerator(place)
        if place.code in _names.BUILT_IN and place.type != "cpu":
            raise RuntimeError(f"Device type {place.type.upper()} is not supported for torch.Generator() api.")
        if place.type != "cpu" and place.index is None:
            place = _device(place.type, _backend.device_of(place).current_device())
        return super().__new__(cls, place)

    @property
    def device(self) -> _device:
        """Where the numbers are made: on the CPU, for a custom device that has no kernel for it on the host."""
        return _device(super().device)

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor of 5056 bytes, PyTorch's layout."""
        return _ops.frombuffer(bytearray(self.get_state_bytes()), dtype=_dtype_by_name("uint8"))

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue where a state from ``get_state`` (here or in PyTorch) stood. TypeError, RuntimeError for anything else."""
        self.set_state_bytes(_state_bytes(new_state))
        return self

    def graphsafe_get_state(self) -> Generator:
        """A generator at the same point of the stream."""
        return self.clone_state()

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Continue where another generator stands."""
        self.set_state_bytes(state.get_state_bytes())
        return self


def _state_bytes(state: Any) -> bytes:
    if not isinstance(state, TensorBase):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if str(state.dtype).rpartition(".")[2] != "uint8" or not state.is_cpu:
        raise TypeError("RNG state must be a torch.ByteTensor")
    return bytes(state.contiguous().tolist())


default_generator = Generator()
default_generator.set_state_bytes(_core.default_generator.get_state_bytes())
_core.set_default_generator(default_generator)


def manual_seed(seed: int) -> Generator:
    """Restart the default stream at ``seed`` in [-2^63, 2^64); returns the default generator.

    Parameters:
        seed (int): from -2^63 to 2^64 - 1

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> trt.rand(3)
        tensor([0.4963, 0.7682, 0.0885])
    """
    _random.manual_seed_all(int(seed))
    for generator in _core.device_generators().values():
        generator.manual_seed(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default stream with a number that differs in every call; returns it.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.seed() == trt.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream.

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(7)
        >>> trt.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream as a uint8 tensor.

    Example:
        >>> import tensorrt_lite as trt
        >>> state = trt.get_rng_state()
        >>> x = trt.rand(3)
        >>> trt.set_rng_state(state)
        >>> trt.equal(trt.rand(3), x)
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default stream where a state stood.

    Parameters:
        new_state (Tensor): what get_rng_state() returned

    Example:
        >>> import tensorrt_lite as trt
        >>> state = trt.get_rng_state()
        >>> x = trt.rand(3)
        >>> trt.set_rng_state(state)
        >>> trt.equal(trt.rand(3), x)
        True
    """
    default_generator.set_state(new_state)


def thread_safe_generator() -> Generator | None:
    """The Generator of the DataLoader's worker thread that calls, None elsewhere: what `generator=` of a random operator takes.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.thread_safe_generator() is None
        True
    """
    worker = _data.get_worker_info()
    return None if worker is None or worker.rng is None else worker.rng.torch_generator


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Whatever is drawn inside leaves the default streams outside where they were, on devices too; also a decorator.

    Parameters:
        devices (iterable or None, default None): the GPUs whose streams are kept; None is all
        enabled (bool, default True): whether streams are kept
        device_type (str, default 'cuda'): the kind of the devices

    Example:
        >>> import tensorrt_lite as trt
        >>> _ = trt.manual_seed(0)
        >>> with trt.random.fork_rng():
        ...     x = trt.rand(3)
        >>> trt.equal(trt.rand(3), x)
        True
    """
    if not enabled:
        yield
        return

    state = default_generator.get_state_bytes()
    on_devices = {i: g.get_state_bytes() for i, g in _random.generators_in_use().items()}
    custom = [(g, g.get_state_bytes()) for g in _core.device_generators().values()]
    try:
        yield
    finally:
        default_generator.set_state_bytes(state)
        for i, device_state in on_devices.items():
            _random.default_generator_of(i).set_state_bytes(device_state)
        for generator, device_state in custom:
            generator.set_state_bytes(device_state)


def __dir__() -> list[str]:
    return _listing.public(globals())
