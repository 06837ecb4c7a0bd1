# cython: language_level=3
"""The CPU random generator: PyTorch's mt19937 engine, its seeds and its serialised state.

The state is held by value, so a fill needs no call back into Python; `state_of` hands it to the random operators.
The Python class `Generator` derives from GeneratorBase and adds tensors as states; it installs its own instance as
the default generator with `set_default_generator`.

Locking: every method runs, and every fill must run, with the GIL held or, where there is none, under the lock of the state: two threads
that draw from one generator interleave whole fills and never tear a state.
"""

from os import urandom

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from tensorrt_lite._C.core.free_threading cimport lock_of, mutex_lock, mutex_unlock

# The seed of a generator nobody has seeded, as in PyTorch.
DEFAULT_SEED = 67280421310721


cdef void lock_state(rs_state* state) noexcept:
    """Nobody else draws from it, reads or sets it until `unlock_state`. With the GIL that is so."""
    mutex_lock(lock_of(state))


cdef void unlock_state(rs_state* state) noexcept:
    mutex_unlock(lock_of(state))


cdef class GeneratorBase:
    """State of one random stream; `device` names where its numbers are made, "cpu" for this engine."""

    def __cinit__(self, object device="cpu", *args, **kwargs):
        self.device = str(device)
        rs_manual_seed(&self.state, DEFAULT_SEED)

    def manual_seed(self, seed):
        """Restarts the stream at `seed` in [-2^63, 2^64) and returns the generator; negative seeds wrap around.

        Raises RuntimeError when `seed` is not an integer, ValueError when it is out of range.
        """
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < (1 << 64):
            raise ValueError("Overflow when unpacking long long")
        lock_state(&self.state)
        rs_manual_seed(&self.state, <uint64_t>(seed & 0xFFFFFFFFFFFFFFFF))
        unlock_state(&self.state)
        return self

    def seed(self):
        """Seeds with 64 bits from the operating system and returns them."""
        value = int.from_bytes(urandom(8), "little")
        lock_state(&self.state)
        rs_manual_seed(&self.state, <uint64_t>value)
        unlock_state(&self.state)
        return value

    def initial_seed(self):
        """The last seed as an unsigned 64-bit integer."""
        return rs_initial_seed(&self.state)

    def get_state_bytes(self):
        """The state in the byte layout of PyTorch's CPU generator (5056 bytes)."""
        cdef bytes data = PyBytes_FromStringAndSize(NULL, RS_STATE_BYTES)
        lock_state(&self.state)
        rs_get_state(&self.state, <uint8_t *>PyBytes_AS_STRING(data))
        unlock_state(&self.state)
        return data

    def set_state_bytes(self, bytes data not None):
        """Continues where a state from `get_state_bytes` or from PyTorch stood.

        Raises RuntimeError when the length or the content is not that of a CPU generator; the stream is then unchanged.
        """
        cdef rs_state_status status
        lock_state(&self.state)
        status = rs_set_state(&self.state, <const uint8_t *>PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))
        unlock_state(&self.state)
        if status == RS_STATE_WRONG_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {RS_STATE_BYTES} "
                f"but found the input RNG state size to be {len(data)}"
            )
        if status != RS_STATE_OK:
            raise RuntimeError("Invalid mt19937 state")

    def clone_state(self):
        """A new generator of the same class at the same point of the stream."""
        cdef GeneratorBase other = type(self)(self.device)
        lock_state(&self.state)
        other.state = self.state
        unlock_state(&self.state)
        return other

    def get_offset(self):
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset):
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def __reduce__(self):
        return type(self), (self.device,), self.get_state_bytes()

    def __setstate__(self, state):
        self.set_state_bytes(state)


cdef GeneratorBase _default_generator = GeneratorBase()
# As in PyTorch, a program that sets no seed draws different numbers in every run.
_default_generator.seed()
default_generator = _default_generator


def set_default_generator(GeneratorBase generator not None):
    """Makes `generator` the one that operators without a `generator` argument draw from."""
    global _default_generator, default_generator
    _default_generator = generator
    default_generator = generator


cdef dict _device_generators = {}      # {(device type, index): the generator of a custom device}


def set_device_generator(int device_type, int index, GeneratorBase generator not None):
    """Makes `generator` the one that operators on a custom device draw from."""
    _device_generators[device_type, index] = generator


def device_generator(int device_type, int index):
    """The generator of a custom device; None where it has none."""
    return _device_generators.get((device_type, index))


def device_generators():
    """Return {(device type, index): generator} of the custom devices."""
    return dict(_device_generators)


def _swap_default_generator(generator):
    """Makes `generator` the default one for a call, None leaves it; returns the one before."""
    before = _default_generator
    if generator is not None:
        set_default_generator(generator)
    return before


cdef GeneratorBase generator_on(object generator, int device_type, int index):
    """A caller's generator, which must be of the device, or the device's own."""
    if generator is None:
        return _device_generators.get((device_type, index), _default_generator)
    return <GeneratorBase?>generator


cdef rs_state *state_of(object generator) except NULL:
    if generator is None:
        return &_default_generator.state
    if not isinstance(generator, GeneratorBase):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}")
    return &(<GeneratorBase>generator).state
