"""What NVIDIA's management library tells of a GPU: load, temperature, clocks. Needs the package nvidia-ml-py."""

from __future__ import annotations

from typing import Any

from tensorrt_lite.cuda import _driver, _index


def _handle(device: Any) -> tuple[Any, Any]:
    """(the module, the device's handle in it). ModuleNotFoundError without the package, RuntimeError without the library."""
    try:
        import pynvml
    except ModuleNotFoundError:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from None
    try:
        pynvml.nvmlInit()
        # by identity: CUDA may number devices in another order
        import uuid

        identity = f"GPU-{uuid.UUID(bytes=_driver.device_uuid(_index(device)))}"
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(identity.encode())
    except pynvml.NVMLError as error:
        raise RuntimeError(f"NVML: {error}") from None


def utilization(device: Any = None) -> int:
    """Percent of the last sample period in which a kernel ran."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).gpu


def memory_usage(device: Any = None) -> int:
    """Percent of the last sample period in which device memory was read or written."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).memory


def device_memory_used(device: Any = None) -> int:
    """Bytes of the device's memory in use by all processes."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetMemoryInfo(handle).used


def temperature(device: Any = None) -> int:
    """Degrees Celsius."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetTemperature(handle, 0)


def power_draw(device: Any = None) -> int:
    """Milliwatts."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device: Any = None) -> int:
    """MHz of the multiprocessors."""
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetClockInfo(handle, 1)


def processes(device: Any = None) -> list[tuple[int, int]]:
    """(process, bytes of device memory) of those that compute."""
    nvml, handle = _handle(device)
    return [(p.pid, p.usedGpuMemory or 0) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
