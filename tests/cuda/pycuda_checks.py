"""What tests/cuda/test_emulator_pycuda.py runs: PyCUDA as it comes, with the emulator as its libcuda.so.1.

`python pycuda_checks.py MODULE`, MODULE being kernels.cu compiled for the emulator.
"""

from __future__ import annotations

import atexit
import sys

import numpy as np
import pycuda.driver as cuda


def main(path: str) -> None:
    """Contexts, memory, launches of both kinds, streams, events, page-locked memory, rectangles, module variables."""
    cuda.init()
    device = cuda.Device(0)
    assert "emulator" in device.name() and device.compute_capability() == (8, 0)
    context = device.retain_primary_context()
    context.push()
    atexit.register(context.pop)

    module = cuda.module_from_file(path)
    function = module.get_function("multiply_add")
    x = np.arange(256, dtype=np.int32)
    source, target = cuda.mem_alloc(x.nbytes), cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod(source, x)
    stream, start, end = cuda.Stream(1), cuda.Event(), cuda.Event()
    host = cuda.pagelocked_zeros(256, np.int32)
    start.record(stream)
    launch = {"block": (256, 1, 1), "grid": (1, 1), "stream": stream}
    function(target, source, np.int32(3), np.int32(4), np.int32(256), **launch)
    end.record(stream)
    cuda.memcpy_dtoh_async(host, target, stream)
    stream.synchronize()
    assert (host == 3 * x + 4).all() and end.time_since(start) >= 0 and stream.is_done()

    function.prepare("PPiii")
    function.prepared_async_call((1, 1), (256, 1, 1), stream, target, source, 5, 6, 256)
    stream.synchronize()
    out = np.empty_like(x)
    cuda.memcpy_dtoh(out, target)
    assert (out == 5 * x + 6).all()

    rectangle = cuda.Memcpy2D()
    rectangle.set_src_device(source)
    rectangle.set_dst_host(out)
    rectangle.src_pitch, rectangle.dst_pitch, rectangle.width_in_bytes, rectangle.height = 64, 32, 32, 8
    rectangle(aligned=True)
    assert (out[:64].reshape(8, 8) == x[:128].reshape(8, 16)[:, :8]).all()
    assert module.get_global("table")[1] == 12
    free, total = cuda.mem_get_info()
    assert total - free == 2 * x.nbytes
    assert cuda.mem_get_ipc_handle(source)


if __name__ == "__main__":
    main(sys.argv[1])
