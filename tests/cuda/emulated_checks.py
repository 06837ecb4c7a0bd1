"""What tests/cuda/test_emulator.py runs in processes of their own, with the emulator as CUDA driver.

`python emulated_checks.py NAME ARGUMENTS...` calls the function of that name; a failed check is a failed assertion.
The driver library is chosen by TENSORRT_LITE_LIBCUDA; modules are the files in the arguments.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorrt_lite._C.cuda import driver

ORDERS = ("forward", "reverse", "random")


class DeviceArray:
    """A copy of a NumPy array in device memory."""

    def __init__(self, array: np.ndarray) -> None:
        """Copies the array's elements in C order."""
        self.shape, self.dtype = array.shape, array.dtype
        self.nbytes = array.nbytes
        self.pointer = driver.memory_allocate(max(array.nbytes, 1))
        if array.nbytes:
            driver.memory_copy_from_host(self.pointer, np.ascontiguousarray(array).view(np.uint8))

    def get(self) -> np.ndarray:
        """The elements, copied back."""
        out = np.empty(self.shape, self.dtype)
        if self.nbytes:
            driver.memory_copy_to_host(out.reshape(-1).view(np.uint8), self.pointer)
        return out


def pack(*arguments: Any) -> bytes:
    """Kernel arguments, naturally aligned: DeviceArray, int (32 bits), NumPy scalar, bytes (of 32-bit words)."""
    buffer = b""
    for argument in arguments:
        if isinstance(argument, DeviceArray):
            data, alignment = struct.pack("<Q", argument.pointer), 8
        elif isinstance(argument, bytes):
            data, alignment = argument, 4
        elif isinstance(argument, int):
            data, alignment = struct.pack("<i", argument), 4
        else:
            data, alignment = argument.tobytes(), argument.itemsize
        buffer += b"\0" * (-len(buffer) % alignment) + data
    return buffer


def load(path: str) -> driver.Module:
    """Loads the module from the bytes of the file."""
    with open(path, "rb") as file:
        return driver.Module(file.read())


def launch(
    module: driver.Module, name: str, grid: Sequence[int], block: Sequence[int], *arguments: Any, shared: int = 0
) -> None:
    """Launches kernel `name`."""
    sizes = [tuple([*extent, 1, 1][:3]) for extent in (grid, block)]
    module.get_function(name).launch(*sizes, pack(*arguments), shared)


def error_of(call: Any, *arguments: Any, **keywords: Any) -> str:
    """The message of the RuntimeError that the call must raise."""
    try:
        call(*arguments, **keywords)
    except RuntimeError as exception:
        return str(exception)
    raise AssertionError("no error was raised")


def block_sum(path: str) -> None:
    """Sums of any length and block size, in every thread order."""
    module, random = load(path), np.random.default_rng(0)
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for n, block in ((1, 32), (1000, 96), (20003, 256), (5000, 1024)):
            x = random.standard_normal(n).astype(np.float32)
            out = DeviceArray(np.zeros(1, np.float32))
            launch(module, "block_sum", (5,), (block,), out, DeviceArray(x), n)
            np.testing.assert_allclose(out.get()[0], x.sum(dtype=np.float64), rtol=1e-4, atol=1e-3)


def matmul(path: str) -> None:
    """Tiled matmul is right in every order; without its second barrier it is wrong in every order."""
    module, random = load(path), np.random.default_rng(1)
    M, N, K = 19, 26, 33
    a, b = random.standard_normal((M, K)).astype(np.float32), random.standard_normal((K, N)).astype(np.float32)
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for name, correct in (("matmul_tiled", True), ("matmul_missing_barrier", False)):
            out = DeviceArray(np.zeros((M, N), np.float32))
            arguments = (out, DeviceArray(a), DeviceArray(b), M, N, K)
            launch(module, name, ((N + 7) // 8, (M + 7) // 8), (8, 8), *arguments, shared=512)
            assert np.allclose(out.get(), a @ b, rtol=1e-4, atol=1e-4) == correct, (name, order)


def reverse_block(path: str) -> None:
    """Deleting the barrier between writing and reading shared memory gives a wrong result in every order."""
    module, x = load(path), np.arange(4 * 256, dtype=np.int32)
    expected = x.reshape(4, 256)[:, ::-1].reshape(-1)
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for staged in (1, 0):
            out = DeviceArray(np.zeros_like(x))
            launch(module, "reverse_block", (4,), (256,), out, DeviceArray(x), staged)
            assert np.array_equal(out.get(), expected) == bool(staged), (order, staged)


def divergent_collectives(path: str) -> None:
    """Warp collectives under sub-masks and after early exits."""
    module = load(path)
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for block, grid in ((64, 3), (256, 2), (1024, 1)):
            n = block * grid - 32
            out = DeviceArray(np.full((block * grid, 4), -1, np.int32))
            launch(module, "divergent_collectives", (grid,), (block,), out, n)
            result = out.get()
            i = np.arange(n)
            lane = i % 32
            shuffled = np.where(lane < 16, i ^ 3, np.where(lane % 16 + 2 < 16, i + 2, i))
            live = np.bincount(i // block)[i // block]
            bit = np.where(lane < 16, 2, 4)
            half = i - i % 16
            ballot = sum((((half + k) >> bit) & 1) << ((half + k) % 32) for k in range(16)).astype(np.uint32)
            assert np.array_equal(result[:n, 0], shuffled), order
            assert np.array_equal(result[:n, 1], live // 2 * 10000 + live), order
            assert np.array_equal(result[:n, 2], ballot.view(np.int32)), order
            assert np.array_equal(result[:n, 3], 2 * (i - i % 8 + 5) + 1), order
            assert (result[n:] == -1).all(), order


def half_types(path: str) -> None:
    """Rounding to half equals NumPy's; rounding to bfloat16 equals rounding the upper 16 bits to nearest even."""
    module, random = load(path), np.random.default_rng(2)
    bits = random.integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32)
    # Every half, the midpoints between neighbours, and their float neighbours: all ties and all subnormals.
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (halves[:-1] + halves[1:]) / 2
    near = [np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))]
    edges = np.array([65519.996, 65520.0, np.inf, np.nan], np.float32)
    x = np.concatenate([bits.view(np.float32), halves, middle, *near, edges])
    x = np.concatenate([x, -x])
    with np.errstate(over="ignore", invalid="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    word = x.view(np.uint32).astype(np.uint64)
    rounded = ((word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    bfloat16 = np.where(np.isnan(x), np.float32(np.nan), rounded)
    for name, expected in (("round_half", half), ("round_bfloat16", bfloat16)):
        out = DeviceArray(np.zeros_like(x))
        launch(module, name, ((x.size + 255) // 256,), (256,), out, DeviceArray(x), int(x.size))
        np.testing.assert_array_equal(out.get(), expected)


def barrier_errors(path: str) -> None:
    """Mismatched barriers and divergent warps are named errors; the device works afterwards."""
    module = load(path)
    out = DeviceArray(np.zeros(64, np.float32))
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for name, words in (
            ("barrier_in_two_branches", ("mismatched barriers", "kernels.cu:")),
            ("barrier_against_shuffle", ("mismatched barriers", "warp collectives")),
            ("shuffle_with_exited_lane", ("exited",)),
        ):
            message = error_of(launch, module, name, (1,), (32,), out)
            assert message.startswith("CUDA error: ") and name in message, message
            assert all(word in message for word in words), message
    os.environ["CUEMU_ORDER"] = "forward"
    block_sum(path)


def illegal_address(path: str) -> None:
    """A wild pointer in a kernel is an error that names kernel and thread, not the end of the process."""
    module = load(path)
    out = DeviceArray(np.zeros(64, np.float32))
    message = error_of(launch, module, "global_index", (1,), (32,), out, np.int64(1 << 44))
    assert "an illegal memory access was encountered" in message and "global_index" in message, message
    assert not out.get().any()


def out_of_bounds(path: str, name: str, offset: str) -> None:
    """Runs an index kernel in bounds, then `offset` elements further: the sanitizer ends the process."""
    module = load(path)
    out = DeviceArray(np.zeros(32, np.float32))
    index = np.int64 if name == "global_index" else int
    launch(module, name, (1,), (32,), out, index(0), shared=128 if "dynamic" in name else 0)
    print("in bounds", flush=True)
    launch(module, name, (1,), (32,), out, index(int(offset)), shared=128 if "dynamic" in name else 0)


def host_access() -> None:
    """Host code that follows a device pointer ends in a fault."""
    import ctypes

    pointer = DeviceArray(np.ones(4, np.float32)).pointer
    print("before", flush=True)
    print(ctypes.c_float.from_address(pointer).value)


def memory(path: str) -> None:
    """Sizes, statistics, ranges and errors of device memory; fill patterns; module and launch errors."""
    free, total = driver.memory_info()
    x = np.arange(1000, dtype=np.float64)
    a = DeviceArray(x)
    assert driver.memory_info() == (free - 8000, total)
    np.testing.assert_array_equal(a.get(), x)
    b = driver.memory_allocate(8000)
    fresh = np.zeros(1000)
    driver.memory_copy_to_host(fresh.view(np.uint8), b)
    assert np.isnan(fresh).all(), "fresh memory must be NaN"
    driver.memory_copy_on_device(b, a.pointer, 8000)
    driver.memory_fill(b, 0, 800)
    driver.memory_copy_to_host(fresh.view(np.uint8), b)
    assert not fresh[:100].any() and np.array_equal(fresh[100:], x[100:])
    assert "not inside one device allocation" in error_of(driver.memory_copy_on_device, b + 8, a.pointer, 8000)
    driver.memory_free(b)
    assert "not the start of a live allocation" in error_of(driver.memory_free, b)
    assert "out of memory" in error_of(driver.memory_allocate, total)
    driver.memory_free(a.pointer)
    assert driver.memory_info() == (free, total)
    # Blocks that were given back in any order merge again.
    pointers = [driver.memory_allocate(size) for size in (1, 513, 4096, 100_000, 7)]
    for k in (3, 0, 4, 1, 2):
        driver.memory_free(pointers[k])
    assert driver.memory_allocate(100_000) == pointers[0]

    assert "no kernel named missing" in error_of(load(path).get_function, "missing")
    assert "device kernel image is invalid" in error_of(driver.Module, b"not a module" * 10)
    out = DeviceArray(np.zeros(4, np.float32))
    assert "invalid argument" in error_of(launch, load(path), "block_sum", (1,), (2048,), out, out, 4)
    assert "invalid argument" in error_of(launch, load(path), "block_sum", (1,), (32,), out)
    driver.push_context(0)
    driver.pop_context()
    driver.synchronize()
    assert driver.available() and driver.device_count() == 1 and driver.driver_version() == 13000
    assert "emulator" in driver.device_name()
    assert "invalid device ordinal" in error_of(driver.set_device, 1)


def driver_interface(path: str) -> None:
    """What other users of the library call: arguments by pointer, streams, events, page-locked memory, missing calls."""
    import ctypes
    from ctypes import byref, c_float, c_int, c_uint64, c_void_p

    library = ctypes.CDLL(os.environ["TENSORRT_LITE_LIBCUDA"])

    def call(name: str, *arguments: Any) -> None:
        status = getattr(library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            assert library.cuGetErrorString(status, byref(text)) == 0
            raise RuntimeError((text.value or b"").decode())

    context, module, function, stream = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    events = [c_void_p(), c_void_p()]
    assert "no context is current" in error_of(call, "cuCtxSynchronize")
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", byref(context), 0)
    call("cuCtxPushCurrent_v2", context)
    call("cuStreamCreate", byref(stream), 1)
    for event in events:
        call("cuEventCreate", byref(event), 0)
    call("cuModuleLoad", byref(module), path.encode())
    call("cuModuleGetFunction", byref(function), module, b"reverse_block")

    host, out, device = c_void_p(), np.zeros(512, np.int32), [c_uint64(), c_uint64()]
    call("cuMemHostAlloc", byref(host), 2048, 0)
    numbers = np.ctypeslib.as_array((c_int * 512).from_address(host.value or 0))
    numbers[:] = np.arange(512)
    for pointer in device:
        call("cuMemAlloc_v2", byref(pointer), ctypes.c_size_t(2048))
    call("cuMemcpyHtoDAsync_v2", device[1], host, ctypes.c_size_t(2048), stream)
    call("cuEventRecord", events[0], stream)
    staged = c_int(1)
    pointers = (c_void_p * 3)(*(ctypes.cast(byref(a), c_void_p) for a in (*device, staged)))
    call("cuLaunchKernel", function, 2, 1, 1, 256, 1, 1, 0, stream, pointers, None)
    call("cuEventRecord", events[1], stream)
    call("cuStreamWaitEvent", None, events[1], 0)
    call("cuMemcpyDtoH_v2", out.ctypes.data_as(c_void_p), device[0], ctypes.c_size_t(2048))
    assert np.array_equal(out, np.arange(512).reshape(2, 256)[:, ::-1].reshape(-1))
    elapsed = c_float(-1)
    call("cuEventElapsedTime", byref(elapsed), *events)
    assert elapsed.value > 0
    assert "no parameters given" in error_of(call, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
    assert "cuArrayCreate_v2 is not provided" in error_of(call, "cuArrayCreate_v2", byref(c_void_p()), 0)
    call("cuStreamDestroy_v2", stream)
    assert "not a live stream" in error_of(call, "cuStreamSynchronize", stream)
    call("cuMemFreeHost", host)
    call("cuModuleUnload", module)


def _bfloat16(x: np.ndarray) -> np.ndarray:
    word = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint16)


def scalar_functions(path: str, kind: str) -> None:
    """Each function of scalar_math.cuh against its reference in scalar_cases.py."""
    from scalar_cases import INTEGER, REAL

    module, random = load(path), np.random.default_rng(4)
    n = 500
    if kind == "real":
        for suffix, dtype, tolerance in (("f32", np.float32, 5e-6), ("f64", np.float64, 1e-12)):
            for name, case in REAL.items():
                inputs = [random.uniform(case.low, case.high, n).astype(dtype) for _ in range(case.nin)]
                out = DeviceArray(np.zeros(n, dtype))
                arrays = [DeviceArray(x) for x in inputs]
                launch(module, f"case_{name}_{suffix}", (2,), (128,), out, *arrays, np.uint64(n))
                expected = case.reference(*(x.astype(np.float64) for x in inputs))
                limit = max(tolerance, case.tolerance)
                np.testing.assert_allclose(out.get(), expected, rtol=limit, atol=limit, err_msg=f"{name} {suffix}")
        return
    for suffix, dtype in (("u8", np.uint8), ("i8", np.int8), ("i32", np.int32), ("i64", np.int64)):
        info = np.iinfo(dtype)
        small = random.integers(max(-20, info.min), 20, 2 * n)
        extremes = np.array([info.min, info.max, 0, 1, info.max - 1, 0 if info.min == 0 else -1])
        for name, case in INTEGER.items():
            x, y = small[:n].astype(dtype), small[n:].astype(dtype)
            if name not in ("lcm", "gcd"):  # not defined for the smallest value, whose magnitude does not fit
                x[: extremes.size**2] = np.repeat(extremes, extremes.size)
                y[: extremes.size**2] = np.tile(extremes, extremes.size)
            inputs = [x, y][: case.nin]
            out = DeviceArray(np.zeros(n, dtype))
            launch(module, f"case_{name}_{suffix}", (2,), (128,), out, *map(DeviceArray, inputs), np.uint64(n))
            with np.errstate(over="ignore"):
                expected = case.reference(*inputs)
            np.testing.assert_array_equal(out.get(), expected, err_msg=f"{name} {suffix}")


def absent_driver() -> None:
    """Without a driver: available() is False, the count 0, every use one clear error."""
    assert driver.available() is False and driver.device_count() == 0
    for call, *arguments in ((driver.memory_allocate, 4), (driver.synchronize,), (driver.Module, b"x")):
        message = error_of(call, *arguments)
        assert message.startswith("CUDA error: no NVIDIA driver found"), message


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
