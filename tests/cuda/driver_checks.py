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
        self.functions: dict[tuple[int | None, str], c_void_p] = {}
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

    def function(self, module: c_void_p, name: str) -> c_void_p:
        """A kernel of the module. Found once: a capture refuses its first use."""
        key = (module.value, name)
        if key not in self.functions:
            self.functions[key] = self.make("cuModuleGetFunction", module, name.encode())
        return self.functions[key]

    def launch(self, module: c_void_p, name: str, stream: c_void_p | None, *arguments: Any) -> None:
        """One block of N threads."""
        function = self.function(module, name)
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


def misaligned_accesses(path: str) -> None:
    """A 16-byte access at 4 bytes past such an address is an error, with the kernel and the thread."""
    driver = Driver()
    module, x, out, length = driver.load(path), driver.memory(list(range(N))), driver.memory(), N // 4
    function = driver.make("cuModuleGetFunction", module, b"copy_vectors")
    for offset, expected in ((0, 0), (1, 716), (4, 0)):
        values = (out, x, c_int(offset))
        pointers = (c_void_p * 3)(*(ctypes.cast(byref(v), c_void_p) for v in values))
        launch = (driver.cuLaunchKernel, function, 1, 1, 1, length - 1, 1, 1, 0, None, pointers, None)
        assert code_of(*launch) == expected, offset
    assert driver.read(out)[: N - 4] == list(range(4, N))


class Memcpy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        (end + name, kind)
        for end in ("from_", "to_")
        for name, kind in (
            ("x", c_size_t),
            ("y", c_size_t),
            ("type", c_int),
            ("host", c_void_p),
            ("device", c_uint64),
            ("array", c_void_p),
            ("pitch", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t)]


def rectangles(launched: str) -> None:
    """Copies of a part of each row, and the list of launched kernels, which no copy enters."""
    driver = Driver()
    x, out = driver.memory(list(range(N))), driver.pinned()
    # Rows of 16 integers: columns 4 to 11 of rows 2 to 4, to rows of 8.
    part = Memcpy2D(
        from_x=16, from_y=2, from_type=2, from_device=x.value, from_pitch=64, to_type=1, to_host=ctypes.addressof(out),
        to_pitch=32, width=32, height=3,
    )  # fmt: skip
    driver.cuMemcpy2D_v2(byref(part))
    assert out[:25] == [16 * row + column for row in (2, 3, 4) for column in range(4, 12)] + [0]
    part.from_y = 14
    assert code_of(driver.cuMemcpy2D_v2, byref(part)) == 1
    stream = driver.stream()
    back = Memcpy2D(
        from_type=1, from_host=ctypes.addressof(out), from_pitch=32, to_type=2, to_device=x.value, to_pitch=64, width=32,
        height=3,
    )  # fmt: skip
    driver.cuMemcpy2DAsync_v2(byref(back), stream)
    driver.cuStreamSynchronize(stream)
    assert driver.read(x)[:24] == [*range(36, 44), *range(8, 16), *range(52, 60)]
    assert not os.path.exists(launched)


def launched_kernels(path: str, launched: str) -> None:
    """CUEMU_LAUNCHED names each kernel once."""
    driver = Driver()
    module, x = driver.load(path), driver.memory()
    for name in ("set_value", "set_value"):
        driver.launch(module, name, None, x, 1, N)
    driver.launch(module, "multiply_add", None, x, x, 1, 1, N)
    with open(launched) as file:
        assert file.read().split() == ["set_value", "multiply_add"]


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


def graph_of(driver: Driver, stream: c_void_p, submit: Callable[[], None], mode: int = 1) -> c_void_p:
    """What `submit` submits to the stream, captured."""
    driver.cuStreamBeginCapture_v2(stream, mode)
    submit()
    graph = c_void_p()
    driver.cuStreamEndCapture(stream, byref(graph))
    return graph


def count_nodes(driver: Driver, graph: c_void_p) -> int:
    """The number of nodes of a graph."""
    count = c_size_t()
    driver.cuGraphGetNodes(graph, None, byref(count))
    return count.value


def graphs(path: str) -> None:
    """Capture, replay with new contents, forks and joins, updates, graphs in graphs."""
    driver = Driver()
    module, a, b = driver.load(path), driver.stream(), driver.stream(0)
    driver.function(module, "multiply_add")
    x, y, z = driver.memory([1] * N), driver.memory([0] * N), driver.memory([0] * N)
    host, size = driver.pinned(), c_size_t(4 * N)

    # A chain. Nothing runs during the capture; each launch reads what is there then.
    def chain() -> None:
        driver.launch(module, "multiply_add", a, y, x, 2, 1, N)
        driver.cuMemsetD32Async(z, 9, c_size_t(N), a)
        driver.cuMemcpyDtoHAsync_v2(host, y, size, a)

    graph = graph_of(driver, a, chain)
    assert count_nodes(driver, graph) == 3
    kinds, nodes = [], (c_void_p * 3)()
    driver.cuGraphGetNodes(graph, nodes, byref(c_size_t(3)))
    for node in nodes:
        kind = c_int()
        driver.cuGraphNodeGetType(c_void_p(node), byref(kind))
        kinds.append(kind.value)
    assert kinds == [0, 2, 1]
    assert driver.read(y) == [0] * N
    executable = driver.make("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    driver.cuGraphDestroy(graph)
    for value in (1, 20):
        driver.cuMemsetD32Async(x, value, c_size_t(N), a)
        driver.cuGraphLaunch(executable, a)
        driver.cuStreamSynchronize(a)
        assert list(host) == [2 * value + 1] * N and driver.read(z) == [9] * N
    other = graph_of(driver, a, lambda: (chain(), None)[1])
    driver.cuGraphExecUpdate_v2(executable, other, (c_uint64 * 3)())
    shorter = graph_of(driver, a, lambda: driver.cuMemsetD32Async(z, 9, c_size_t(N), a))
    assert code_of(driver.cuGraphExecUpdate_v2, executable, shorter, (c_uint64 * 3)()) == 910

    # A fork and a join; without the join's edge the result would depend on the order.
    fork, join = driver.event(), driver.event()

    def forked() -> None:
        driver.cuMemsetD32Async(x, 3, c_size_t(N), a)
        driver.cuEventRecord(fork, a)
        driver.cuStreamWaitEvent(b, fork, 0)
        driver.launch(module, "multiply_add", b, y, x, 10, 0, N)
        driver.launch(module, "multiply_add", a, z, x, 100, 0, N)
        driver.cuEventRecord(join, b)
        driver.cuStreamWaitEvent(a, join, 0)
        driver.launch(module, "multiply_add", a, z, y, 1, 5, N)

    graph = graph_of(driver, a, forked)
    edges = c_size_t()
    driver.cuGraphGetEdges(graph, None, None, byref(edges))
    assert (count_nodes(driver, graph), edges.value) == (4, 4)
    executable = driver.make("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    for _ in trials(10):
        driver.cuMemsetD32Async(y, 0, c_size_t(N), a)
        driver.cuGraphLaunch(executable, a)
        driver.cuStreamSynchronize(a)
        assert driver.read(z) == [35] * N and driver.read(y) == [30] * N
    # Branches of a graph run in any order where streams are late.
    def racing() -> None:
        driver.cuEventRecord(fork, a)
        driver.cuStreamWaitEvent(b, fork, 0)
        driver.launch(module, "multiply_add", b, y, x, 10, 0, N)
        driver.launch(module, "multiply_add", a, z, y, 1, 5, N)
        driver.cuEventRecord(join, b)
        driver.cuStreamWaitEvent(a, join, 0)

    racy, results = driver.make("cuGraphInstantiateWithFlags", graph_of(driver, a, racing), c_uint64(0)), set()
    for _ in trials():
        driver.cuMemsetD32Async(y, 0, c_size_t(N), a)
        driver.cuGraphLaunch(racy, a)
        driver.cuStreamSynchronize(a)
        results |= set(driver.read(z))
    assert results == ({5, 35} if os.environ["CUEMU_STREAMS"] == "late" else {35}), results
    # The streams work as before, and a launch can itself be captured.
    driver.cuMemsetD32Async(z, 0, c_size_t(N), b)
    driver.cuStreamSynchronize(b)
    outer = graph_of(driver, b, lambda: driver.cuGraphLaunch(executable, b))
    nested = driver.make("cuGraphInstantiateWithFlags", outer, c_uint64(0))
    driver.cuGraphExecDestroy(executable)
    driver.cuGraphLaunch(nested, b)
    driver.cuGraphExecDestroy(nested)
    driver.cuStreamSynchronize(b)
    assert driver.read(z) == [35] * N


def capture_errors(path: str) -> None:
    """The codes of what a capture forbids, and that the capture is invalid afterwards."""
    import threading

    driver = Driver()
    module, a, b, blocking = driver.load(path), driver.stream(), driver.stream(), driver.stream(0)
    driver.function(module, "set_value")
    x, out, graph, status = driver.memory([1] * N), c_uint64(), c_void_p(), c_int()
    event, earlier = driver.event(), driver.event()
    driver.cuEventRecord(earlier, b)
    driver.cuStreamSynchronize(b)

    def submit(stream: c_void_p | None) -> None:
        driver.launch(module, "set_value", stream, x, 5, N)

    def fork() -> None:
        driver.cuEventRecord(event, a)
        driver.cuStreamWaitEvent(b, event, 0)

    def elsewhere(call: Callable[..., None], *arguments: Any) -> int:
        codes: list[int] = []
        thread = threading.Thread(target=lambda: (driver.use(0), codes.append(code_of(call, *arguments))))
        thread.start()
        thread.join()
        return codes[0]

    def attempt(call: Callable[[], Any], mode: int = 1, stream: c_void_p = a) -> tuple[int, int]:
        """(code of the call, code of the end) with the call in a capture that has a node."""
        driver.cuStreamBeginCapture_v2(stream, mode)
        submit(stream)
        result = call()
        code = result if isinstance(result, int) else 0
        return code, code_of(driver.cuStreamEndCapture, stream, byref(graph))

    allocate = (driver.cuMemAlloc_v2, byref(out), c_size_t(4))
    for name, expected, arguments in (
        ("synchronize", (900, 901), (lambda: code_of(driver.cuStreamSynchronize, a),)),
        ("query", (900, 901), (lambda: code_of(driver.cuStreamQuery, a),)),
        ("synchronize the context", (900, 901), (lambda: code_of(driver.cuCtxSynchronize), 2)),
        ("work on the default stream", (0, 0), (lambda: code_of(submit, None),)),
        ("the default stream, blocking", (906, 901), (lambda: code_of(submit, None), 1, blocking)),
        ("event of the capture", (907, 901), (lambda: (fork(), code_of(driver.cuEventQuery, event))[1],)),
        ("event from before", (905, 901), (lambda: code_of(driver.cuStreamWaitEvent, a, earlier, 0),)),
        ("unjoined", (0, 904), (lambda: (fork(), submit(b), 0)[2],)),
        ("forked without work", (0, 0), (lambda: (fork(), 0)[1],)),
        ("end in the other stream", (903, 901), (lambda: (fork(), code_of(driver.cuStreamEndCapture, b, byref(graph)))[1],)),
        ("end in another thread", (908, 0), (lambda: elsewhere(driver.cuStreamEndCapture, a, byref(graph)),)),
        ("begin twice", (401, 0), (lambda: code_of(driver.cuStreamBeginCapture_v2, a, 1),)),
        ("allocate, thread-local", (900, 901), (lambda: code_of(*allocate), 1)),
        ("allocate, global", (900, 901), (lambda: code_of(*allocate), 0)),
        ("allocate, relaxed", (0, 0), (lambda: code_of(*allocate), 2)),
        ("allocate elsewhere, thread-local", (0, 0), (lambda: elsewhere(*allocate), 1)),
        ("allocate elsewhere, global", (900, 901), (lambda: elsewhere(*allocate), 0)),
        ("blocking copy", (900, 901), (lambda: code_of(driver.read, x),)),
    ):
        codes = attempt(*arguments)
        assert codes == expected, (name, codes)
        for stream in (a, b, blocking):  # none of them is captured any more
            driver.cuStreamIsCapturing(stream, byref(status))
            assert status.value == 0, name
            driver.cuStreamSynchronize(stream)

    assert code_of(driver.cuStreamBeginCapture_v2, None, 1) == 900
    assert code_of(driver.cuStreamEndCapture, a, byref(graph)) == 401
    # Two captures do not merge.
    driver.cuStreamBeginCapture_v2(a, 1)
    driver.cuStreamBeginCapture_v2(b, 1)
    driver.cuEventRecord(event, a)
    driver.cuStreamIsCapturing(b, byref(status))
    assert status.value == 1
    assert code_of(driver.cuStreamWaitEvent, b, event, 0) == 902
    driver.cuStreamIsCapturing(b, byref(status))
    assert status.value == 2
    assert code_of(submit, a) == 901
    assert [code_of(driver.cuStreamEndCapture, s, byref(graph)) for s in (a, b)] == [901, 901] and not graph
    # A thread may allow itself what captures forbid.
    mode = c_int(2)
    driver.cuThreadExchangeStreamCaptureMode(byref(mode))
    assert mode.value == 0 and attempt(lambda: code_of(*allocate), 0) == (0, 0)
    driver.cuThreadExchangeStreamCaptureMode(byref(mode))
    assert mode.value == 2 and attempt(lambda: code_of(*allocate), 0) == (900, 901)


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [("type", c_int), ("handles", c_int), ("place", c_int * 2), ("meta", c_void_p), ("rest", c_uint * 2)]


def virtual_memory(path: str) -> None:
    """Reserved addresses that grow by mapping memory, as an allocator's expandable segments do."""
    driver = Driver()
    module, chunk = driver.load(path), 2 << 20
    properties, access = AllocationProperties(1, 1, (1, 0)), (c_int * 3)(1, 0, 3)
    granularity, free, total, start = c_size_t(), c_size_t(), c_size_t(), c_uint64()
    driver.cuMemGetAllocationGranularity(byref(granularity), byref(properties), 0)
    assert granularity.value == chunk

    def available() -> int:
        driver.cuMemGetInfo_v2(byref(free), byref(total))
        return free.value

    all_free = available()
    driver.cuMemAddressReserve(byref(start), c_size_t(8 * chunk), c_size_t(0), c_uint64(0), c_uint64(0))
    at = [c_uint64(start.value + k * chunk) for k in range(8)]
    handles = [driver.make("cuMemCreate", c_size_t(chunk), byref(properties), c_uint64(0)) for _ in range(2)]
    assert available() == all_free - 2 * chunk
    assert code_of(driver.make, "cuMemCreate", c_size_t(total.value), byref(properties), c_uint64(0)) == 2
    assert code_of(driver.make, "cuMemCreate", c_size_t(5), byref(properties), c_uint64(0)) == 1
    for k in range(2):
        driver.cuMemMap(at[k], c_size_t(chunk), c_size_t(0), handles[k], c_uint64(0))
    assert code_of(driver.cuMemMap, at[1], c_size_t(chunk), c_size_t(0), handles[1], c_uint64(0)) == 1
    middle = c_uint64(at[1].value - 2 * N)  # a quarter of the array's bytes lies before the border
    assert code_of(driver.launch, module, "set_value", None, middle, 3, N) == 700
    assert code_of(driver.read, middle) == 1
    driver.cuMemSetAccess(start, c_size_t(2 * chunk), access, c_size_t(1))
    assert driver.read(middle) == [-1] * N
    driver.launch(module, "set_value", None, middle, 3, N)
    assert driver.read(middle) == [3] * N
    # The contents belong to the memory, not to the addresses.
    driver.cuMemUnmap(at[1], c_size_t(chunk))
    assert code_of(driver.launch, module, "set_value", None, middle, 4, N) == 700
    driver.cuMemMap(at[5], c_size_t(chunk), c_size_t(0), handles[1], c_uint64(0))
    driver.cuMemSetAccess(at[5], c_size_t(chunk), access, c_size_t(1))
    assert driver.read(at[5])[: N // 2] == [3] * (N // 2)
    assert code_of(driver.cuMemAddressFree, start, c_size_t(8 * chunk)) == 1
    for handle in handles:
        driver.cuMemRelease(handle)
    assert code_of(driver.cuMemRelease, handles[0]) == 1
    assert available() == all_free - 2 * chunk
    for k in (0, 5):
        driver.cuMemUnmap(at[k], c_size_t(chunk))
    assert available() == all_free
    driver.cuMemAddressFree(start, c_size_t(8 * chunk))


def share_memory(path: str) -> None:
    """Another process reads and writes an allocation of this one."""
    import subprocess

    driver = Driver()
    x, neighbour = driver.memory([7] * N), driver.memory([1] * N)
    handle, event_handle = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    driver.cuIpcGetMemHandle(handle, x)
    event = driver.event(6)
    driver.cuEventRecord(event, None)
    driver.cuIpcGetEventHandle(event_handle, event)
    assert code_of(driver.cuIpcGetEventHandle, event_handle, driver.event()) == 400
    arguments = [sys.executable, "-S", __file__, "use_shared_memory", path, handle.raw.hex(), event_handle.raw.hex()]
    result = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert driver.read(x) == [15] * N and driver.read(neighbour) == [1] * N
    driver.cuMemFree_v2(x)
    assert driver.read(driver.memory([2] * N)) == [2] * N


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle, which is passed by value."""

    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def use_shared_memory(path: str, handle: str, event_handle: str) -> None:
    """The other process of share_memory."""
    driver = Driver()
    module, address, again = driver.load(path), c_uint64(), c_uint64()
    event = driver.make("cuIpcOpenEventHandle", IpcHandle.from_buffer_copy(bytes.fromhex(event_handle)))
    driver.cuStreamWaitEvent(None, event, 0)
    memory = IpcHandle.from_buffer_copy(bytes.fromhex(handle))
    driver.cuIpcOpenMemHandle_v2(byref(address), memory, 1)
    driver.cuIpcOpenMemHandle_v2(byref(again), memory, 1)
    assert again.value == address.value
    assert driver.read(address) == [7] * N
    driver.launch(module, "multiply_add", None, address, address, 2, 1, N)
    assert driver.read(address) == [15] * N
    for _ in range(2):
        driver.cuIpcCloseMemHandle(address)
    assert code_of(driver.cuIpcCloseMemHandle, address) == 1
    assert code_of(driver.read, address) == 1


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
