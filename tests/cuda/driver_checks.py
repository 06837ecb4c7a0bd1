"""What tests/cuda/test_emulator_driver.py runs in processes of their own: the emulator's driver API, through ctypes.

`python driver_checks.py NAME ARGUMENTS...` calls the function of that name with the driver of TENSORRT_LITE_LIBCUDA.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

N = 256  # elements of the arrays, and threads of a block


class DriverError(RuntimeError):
    """A call's error; `code` is the CUresult."""

    def __init__(self, code: int, text: str) -> None:
        """`text` is cuGetErrorString's."""
        super().__init__(text)
        self.code = code


class Driver:
    """The driver's calls as methods that raise DriverError, and shorthands for what the checks do all the time."""

    def __init__(self) -> None:
        """Opens the library, with the primary context of device 0 current."""
        self.library = ctypes.CDLL(os.environ["TENSORRT_LITE_LIBCUDA"])
        self.cuInit(0)
        self.contexts: dict[int, c_void_p] = {}
        self.use(0)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """The call of this name."""
        function = getattr(self.library, name)

        def call(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                text = c_char_p()
                self.library.cuGetErrorString(code, byref(text))
                raise DriverError(code, (text.value or b"").decode())

        return call

    def use(self, device: int) -> None:
        """Makes a device's primary context current."""
        if device not in self.contexts:
            self.contexts[device] = c_void_p()
            self.cuDevicePrimaryCtxRetain(byref(self.contexts[device]), device)
        self.cuCtxSetCurrent(self.contexts[device])

    def make(self, name: str, *arguments: Any) -> c_void_p:
        """A handle from a call whose first argument receives it."""
        handle = c_void_p()
        getattr(self, name)(byref(handle), *arguments)
        return handle

    def stream(self, flags: int = 1) -> c_void_p:
        """A stream; by default one that the default stream does not wait for."""
        return self.make("cuStreamCreate", flags)

    def event(self, flags: int = 2) -> c_void_p:
        """An event, by default without timing."""
        return self.make("cuEventCreate", flags)

    def memory(self, values: list[int] | None = None) -> c_uint64:
        """N 32-bit integers on the device."""
        pointer = c_uint64()
        self.cuMemAlloc_v2(byref(pointer), c_size_t(4 * N))
        if values is not None:
            self.cuMemcpyHtoD_v2(pointer, (c_int * N)(*values), c_size_t(4 * N))
        return pointer

    def pinned(self, value: int = 0) -> Any:
        """N page-locked integers, as a ctypes array."""
        pointer = self.make("cuMemHostAlloc", c_size_t(4 * N), 0)
        array = (c_int * N).from_address(pointer.value or 0)
        array[:] = [value] * N
        return array

    def read(self, pointer: c_uint64) -> list[int]:
        """The integers, by a blocking copy."""
        out = (c_int * N)()
        self.cuMemcpyDtoH_v2(out, pointer, c_size_t(4 * N))
        return list(out)

    def load(self, path: str) -> c_void_p:
        """The module of kernels.cu."""
        return self.make("cuModuleLoad", path.encode())

    def launch(self, module: c_void_p, name: str, stream: c_void_p | None, *arguments: Any) -> None:
        """One block of N threads."""
        function = self.make("cuModuleGetFunction", module, name.encode())
        values = [c_int(a) if isinstance(a, int) else a for a in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.cast(byref(a), c_void_p) for a in values))
        self.cuLaunchKernel(function, 1, 1, 1, N, 1, 1, 0, stream, pointers, None)


def code_of(call: Callable[..., None], *arguments: Any) -> int:
    """The CUresult of a call; 0 for success."""
    try:
        call(*arguments)
    except DriverError as error:
        return error.code
    return 0


def trials(count: int = 40) -> Iterator[int]:
    """Repetitions, in which late streams run in different orders."""
    yield from range(count)


def devices(path: str) -> None:
    """Two devices: attributes, memory of their own, contexts, peer copies and peer access, multi-device mistakes."""
    driver = Driver()
    count, value = c_int(), c_int()
    driver.cuDeviceGetCount(byref(count))
    assert count.value == 2
    for attribute, expected in ((75, 8), (76, 0), (10, 32), (1, 1024), (8, 49152), (97, 166912), (16, 4), (1 << 20, 0)):
        driver.cuDeviceGetAttribute(byref(value), attribute, 1)
        assert value.value == expected, attribute
    assert code_of(driver.cuDeviceGetAttribute, byref(value), 75, 2) == 101
    uuids = [ctypes.create_string_buffer(16) for _ in range(2)]
    for device, uuid in enumerate(uuids):
        driver.cuDeviceGetUuid(uuid, device)
    assert uuids[0].raw != uuids[1].raw
    total, free = c_size_t(), c_size_t()
    driver.cuDeviceTotalMem_v2(byref(total), 1)
    assert total.value == 64 << 20

    driver.use(1)
    there = driver.memory(list(range(N)))
    driver.cuMemGetInfo_v2(byref(free), byref(total))
    assert free.value == total.value - 4 * N
    driver.use(0)
    driver.cuMemGetInfo_v2(byref(free), byref(total))
    assert free.value == total.value
    here = driver.memory([0] * N)
    driver.cuMemcpyPeerAsync(here, driver.contexts[0], there, driver.contexts[1], c_size_t(4 * N), None)
    assert driver.read(here) == list(range(N))
    for pointer, owner in ((here, 0), (there, 1)):
        driver.cuPointerGetAttribute(byref(value), 9, pointer)
        assert value.value == owner
        driver.cuPointerGetAttribute(byref(value), 2, pointer)
        assert value.value == 2
    host = driver.pinned()
    address = c_uint64(ctypes.addressof(host) + 8)
    driver.cuPointerGetAttribute(byref(value), 2, address)
    assert value.value == 1
    unknown = c_uint64(ctypes.addressof(value))
    assert code_of(driver.cuPointerGetAttribute, byref(value), 2, unknown) == 1
    kind, ordinal = c_int(7), c_int(7)
    outputs = (c_void_p * 2)(*(ctypes.cast(byref(a), c_void_p) for a in (kind, ordinal)))
    driver.cuPointerGetAttributes(2, (c_int * 2)(2, 9), outputs, unknown)
    assert (kind.value, ordinal.value) == (0, -2)

    # A kernel reaches the other device's memory only with peer access.
    module = driver.load(path)
    driver.cuDeviceCanAccessPeer(byref(value), 0, 1)
    assert value.value == 1
    assert code_of(driver.launch, module, "set_value", None, there, 3, N) == 700
    driver.cuCtxEnablePeerAccess(driver.contexts[1], 0)
    assert code_of(driver.cuCtxEnablePeerAccess, driver.contexts[1], 0) == 704
    driver.launch(module, "set_value", None, there, 3, N)
    assert driver.read(there) == [3] * N
    driver.cuCtxDisablePeerAccess(driver.contexts[1])
    assert code_of(driver.launch, module, "set_value", None, there, 3, N) == 700
    # A function of one device on the stream of another, an event recorded on the wrong device.
    event = driver.event()
    driver.use(1)
    assert code_of(driver.launch, module, "set_value", None, there, 3, N) == 400
    assert code_of(driver.cuEventRecord, event, None) == 400
    active, flags = c_int(), c_uint()
    driver.cuDevicePrimaryCtxGetState(1, byref(flags), byref(active))
    assert active.value == 1


def entries(path: str) -> None:
    """Streams with priorities, pools, occupancy, module variables, cuLaunchKernelEx, cuGetProcAddress, limits."""
    driver = Driver()
    value, least, greatest, address, size = c_int(), c_int(), c_int(), c_uint64(), c_size_t()
    driver.cuCtxGetStreamPriorityRange(byref(least), byref(greatest))
    assert greatest.value < least.value == 0
    stream = driver.make("cuStreamCreateWithPriority", 1, -100)
    driver.cuStreamGetPriority(stream, byref(value))
    assert value.value == greatest.value
    context = c_void_p()
    driver.cuStreamGetCtx(stream, byref(context))
    assert context.value == driver.contexts[0].value
    driver.cuStreamDestroy_v2(stream)
    assert code_of(driver.cuStreamQuery, stream) == 400
    stream = driver.stream()

    pool, used = driver.make("cuDeviceGetDefaultMemPool", 0), c_uint64()
    driver.cuMemAllocAsync(byref(address), c_size_t(4 * N), stream)
    driver.cuMemPoolGetAttribute(pool, 7, byref(used))
    assert used.value == 4 * N
    driver.cuMemsetD32Async(address, 77, c_size_t(N), stream)
    driver.cuStreamSynchronize(stream)
    assert driver.read(address) == [77] * N
    driver.cuMemsetD2D8Async(address, c_size_t(8), 1, c_size_t(4), c_size_t(N // 2), stream)
    driver.cuStreamSynchronize(stream)
    assert driver.read(address) == [0x01010101, 77] * (N // 2)
    driver.cuMemFreeAsync(address, stream)
    driver.cuStreamSynchronize(stream)
    driver.cuMemPoolGetAttribute(pool, 7, byref(used))
    assert used.value == 0
    assert code_of(driver.cuMemFreeAsync, address, stream) == 1
    for width, call in ((8, "cuMemsetD8Async"), (16, "cuMemsetD16Async")):
        x = driver.memory()
        getattr(driver, call)(x, 3, c_size_t(32 * N // width), stream)
        driver.cuStreamSynchronize(stream)
        assert driver.read(x) == [0x03030303 if width == 8 else 0x00030003] * N

    host, flags = driver.pinned(), c_uint()
    driver.cuMemHostGetFlags(byref(flags), host)
    block = (c_int * N)()
    driver.cuMemHostRegister_v2(block, c_size_t(4 * N), 1)
    assert code_of(driver.cuMemHostRegister_v2, block, c_size_t(8), 0) == 712
    driver.cuMemHostGetFlags(byref(flags), block)
    assert flags.value == 1
    driver.cuMemHostUnregister(block)
    assert code_of(driver.cuMemHostUnregister, block) == 713
    assert code_of(driver.cuMemFreeHost, block) == 1

    module = driver.load(path)
    function = driver.make("cuModuleGetFunction", module, b"set_value")
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(value), function, 256, c_size_t(0))
    assert value.value == 8
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(value), function, 32, c_size_t(40000))
    assert value.value == 4
    grid = c_int()
    driver.cuOccupancyMaxPotentialBlockSize(byref(grid), byref(value), function, None, c_size_t(0), 0)
    assert (grid.value, value.value) == (8, 1024)
    driver.cuFuncGetAttribute(byref(value), 0, function)
    assert value.value == 1024
    driver.cuFuncSetAttribute(function, 8, 100_000)
    driver.cuFuncGetAttribute(byref(value), 8, function)
    assert value.value == 100_000
    assert code_of(driver.cuFuncSetAttribute, function, 8, 200_000) == 1

    out = driver.memory([0] * N)
    driver.cuModuleGetGlobal_v2(byref(address), byref(size), module, b"counter")
    assert size.value == 4
    driver.cuMemsetD32_v2(address, 40, c_size_t(1))
    driver.launch(module, "use_variables", None, out)
    counted = c_int()
    driver.cuMemcpyDtoH_v2(byref(counted), address, c_size_t(4))
    assert counted.value == 40 + N
    driver.cuModuleGetGlobal_v2(byref(address), byref(size), module, b"table")
    driver.cuMemcpyHtoD_v2(address, (c_float * 3)(7, 8, 9), c_size_t(12))
    driver.launch(module, "use_variables", None, out)
    assert bytes((c_int * 3)(*driver.read(out)[:3])) == bytes((c_float * 3)(7, 8, 9))
    assert code_of(driver.cuModuleGetGlobal_v2, byref(address), byref(size), module, b"missing") == 500

    class Config(ctypes.Structure):
        _fields_ = [("shape", c_uint * 7), ("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint)]

    config = Config((1, 1, 1, N, 1, 1, 0), stream, None, 0)
    values = (out, c_int(12), c_int(N))
    pointers = (c_void_p * 3)(*(ctypes.cast(byref(a), c_void_p) for a in values))
    driver.cuLaunchKernelEx(byref(config), function, pointers, None)
    driver.cuStreamSynchronize(stream)
    assert driver.read(out) == [12] * N

    found, status = c_void_p(), c_int()
    for name, version, symbol in (
        (b"cuMemAlloc", 12000, "cuMemAlloc_v2"),
        (b"cuLaunchKernel", 12000, "cuLaunchKernel"),
        (b"cuCtxSynchronize", 12000, "cuCtxSynchronize"),
        (b"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"),
        (b"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"),
        (b"cuArrayCreate", 12000, "cuArrayCreate_v2"),
    ):
        driver.cuGetProcAddress_v2(name, byref(found), version, c_uint64(0), byref(status))
        expected = ctypes.cast(getattr(driver.library, symbol), c_void_p).value
        assert (found.value, status.value) == (expected, 0), name
    assert code_of(driver.cuGetProcAddress_v2, b"cuNothing", byref(found), 12000, c_uint64(0), byref(status)) == 500
    driver.cuCtxSetLimit(0, c_size_t(4096))
    driver.cuCtxGetLimit(byref(size), 0)
    assert size.value == 4096
    assert code_of(driver.cuCtxGetLimit, byref(size), 99) == 215


def host_functions() -> None:
    """They run in stream order, without the driver's lock, and may not call the driver."""
    import threading

    driver = Driver()
    stream, seen = driver.stream(), []
    x = driver.memory([5] * N)
    host = driver.pinned()

    @ctypes.CFUNCTYPE(None, c_void_p)
    def function(data: int) -> None:
        seen.append((data, host[0], driver.library.cuStreamQuery(None)))
        other = threading.Thread(target=lambda: (driver.use(0), seen.append(driver.read(x)[0])))
        other.start()
        other.join(20)
        assert not other.is_alive()

    driver.cuMemcpyDtoHAsync_v2(host, x, c_size_t(4 * N), stream)
    driver.cuLaunchHostFunc(stream, function, c_void_p(9))
    driver.cuMemsetD32Async(x, 6, c_size_t(N), stream)
    driver.cuStreamSynchronize(stream)
    assert seen == [(9, 5, 800), 5], seen
    assert driver.read(x) == [6] * N


def late_streams(path: str) -> None:
    """What a missing synchronisation looks like, and that a present one is enough."""
    driver = Driver()
    module, a, b = driver.load(path), driver.stream(), driver.stream()
    size = c_size_t(4 * N)

    # The host reads page-locked memory before and after the copy.
    host, x = driver.pinned(1), driver.memory([2] * N)
    driver.cuMemcpyDtoHAsync_v2(host, x, size, a)
    assert list(host) == [1] * N and code_of(driver.cuStreamQuery, a) in (0, 600)
    driver.cuStreamSynchronize(a)
    assert list(host) == [2] * N

    # Page-locked memory is read when the copy runs, other memory at once; into other memory the call waits.
    for source, expected in ((driver.pinned(3), 4), ((c_int * N)(*[3] * N), 3)):
        driver.cuMemcpyHtoDAsync_v2(x, source, size, a)
        source[:] = [4] * N
        driver.cuStreamSynchronize(a)
        assert driver.read(x) == [expected] * N
    pageable = (c_int * N)()
    driver.cuMemcpyDtoHAsync_v2(pageable, x, size, a)
    assert list(pageable) == [3] * N

    # Parameters are copied when a kernel is submitted.
    function = driver.make("cuModuleGetFunction", module, b"set_value")
    values = (x, c_int(8), c_int(N))
    pointers = (c_void_p * 3)(*(ctypes.cast(byref(v), c_void_p) for v in values))
    driver.cuLaunchKernel(function, 1, 1, 1, N, 1, 1, 0, a, pointers, None)
    values[1].value = 9
    driver.cuStreamSynchronize(a)
    assert driver.read(x) == [8] * N

    # A kernel of another stream, with and without waiting for the event.
    y = driver.memory([0] * N)
    for waits in (True, False):
        results = set()
        for _ in trials():
            event = driver.event()
            driver.cuMemsetD32Async(x, 1, c_size_t(N), a)
            driver.cuStreamSynchronize(a)
            driver.launch(module, "set_value", a, x, 2, N)
            driver.cuEventRecord(event, a)
            if waits:
                driver.cuStreamWaitEvent(b, event, 0)
            driver.launch(module, "multiply_add", b, y, x, 10, 1, N)
            driver.cuEventDestroy_v2(event)
            driver.cuStreamSynchronize(b)
            results |= set(driver.read(y))
        assert results == ({21} if waits else {11, 21}), (waits, results)

    # The default stream and a blocking stream wait for each other; a non-blocking one does not take part.
    blocking = driver.stream(0)
    for stream, expected in ((blocking, {(2, 30)}), (a, {(1, 10), (1, 20), (1, 30), (2, 10), (2, 20), (2, 30)})):
        results = set()
        for _ in trials():
            driver.cuMemsetD32_v2(x, 1, c_size_t(N))
            driver.cuMemsetD32_v2(y, 10, c_size_t(N))
            driver.cuCtxSynchronize()
            driver.launch(module, "set_value", stream, x, 2, N)
            driver.launch(module, "multiply_add", None, y, x, 10, 0, N)
            driver.launch(module, "multiply_add", stream, y, y, 1, 10, N)
            driver.cuStreamSynchronize(stream)
            host_x, host_y = driver.pinned(), driver.pinned()
            driver.cuMemcpyDtoHAsync_v2(host_x, x, size, stream)
            driver.cuMemcpyDtoHAsync_v2(host_y, y, size, stream)
            driver.cuStreamSynchronize(stream)
            results.add((host_x[0], host_y[0]))
            driver.cuCtxSynchronize()
        if stream is blocking:
            assert results == expected, results
        else:
            assert len(results) > 1, results

    # Memory that one stream frees while another still uses it.
    results = set()
    for _ in trials():
        z = c_uint64()
        driver.cuMemAllocAsync(byref(z), size, a)
        driver.launch(module, "set_value", a, z, 5, N)
        driver.cuMemcpyDtoHAsync_v2(host, z, size, a)
        driver.cuMemFreeAsync(z, b)
        code = code_of(driver.cuCtxSynchronize)
        results.add(host[0] if code == 0 else code)
    assert 5 in results and len(results) > 1, results

    # Queries make progress, events measure time.
    start, end = driver.event(0), driver.event(0)
    driver.cuEventRecord(start, a)
    driver.launch(module, "set_value", a, x, 1, N)
    driver.cuEventRecord(end, a)
    milliseconds = c_float(-1)
    assert code_of(driver.cuEventElapsedTime, byref(milliseconds), start, end) == 600
    answers = [code_of(driver.cuEventQuery, end) for _ in trials(5)]
    assert answers[0] == 600 and answers[-1] == 0, answers
    driver.cuEventElapsedTime(byref(milliseconds), start, end)
    assert milliseconds.value > 0
    # A destroyed stream ends its work.
    driver.launch(module, "set_value", a, x, 17, N)
    driver.cuStreamDestroy_v2(a)
    driver.cuCtxSynchronize()
    assert driver.read(x) == [17] * N


def late_errors(path: str, sticky: str) -> None:
    """A fault is reported by what waits for it; where errors are sticky, by everything after it."""
    driver = Driver()
    module, stream = driver.load(path), driver.stream()
    x = driver.memory([1] * (N - 1) + [-1])
    driver.launch(module, "assert_positive", stream, x)
    try:
        driver.cuStreamSynchronize(stream)
        raise AssertionError("no error")
    except DriverError as error:
        assert error.code == 710 and "assert_positive" in str(error) and "255" in str(error), error
    later = [code_of(driver.cuStreamSynchronize, stream), code_of(driver.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4))]
    assert later == ([710, 710] if int(sticky) else [0, 0]), later


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
