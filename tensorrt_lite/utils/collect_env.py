"""torch.utils.collect_env: a report of the machine and the packages for the one who is asked about a problem (`python -m tensorrt_lite.utils.collect_env`).

`tensorrt-lite info` tells more of what is this package's own.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from tensorrt_lite import _C

__all__ = ["SystemEnv", "get_env_info", "get_pip_packages", "get_pretty_env_info", "main", "pretty_str", "run"]

_PACKAGES = ("torch", "tensorrt", "numpy", "scipy", "triton", "mypy", "onnx", "optree", "einops", "safetensors", "transformers", "accelerate", "timm")


class SystemEnv(NamedTuple):
    """What the report says; None where it could not be found."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    pip_version: str
    pip_packages: str
    cpu_info: str | None


def run(command: str | list[str]) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command, without a shell; 127 where there is none of its name."""
    words = shlex.split(command) if isinstance(command, str) else command
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _first(command: str, pattern: str) -> str | None:
    status, output, _ = run(command)
    found = re.search(pattern, output) if status == 0 else None
    return found.group(1) if found else None


def _system() -> str:
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            found = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.MULTILINE)
    except OSError:
        found = None
    return f"{found.group(1) if found else platform.platform()} ({platform.machine()})"


def get_pip_packages(run_lambda: Callable[[str], tuple[int, str, str]] = run, patterns: tuple[str, ...] | None = None) -> tuple[str, str]:
    """("pip3", lines "name==version") of the installed packages whose names have one of the patterns in them."""
    from importlib.metadata import distributions

    wanted = _PACKAGES if patterns is None else patterns
    found = {f"{d.metadata['Name']}=={d.version}" for d in distributions() if any(p in (d.metadata["Name"] or "").lower() for p in wanted)}
    return "pip3", "\n".join(sorted(found, key=str.lower))


def get_env_info() -> SystemEnv:
    """The facts, found anew."""
    import tensorrt_lite as trt

    pip, packages = get_pip_packages()
    available = trt.cuda.is_available()
    return SystemEnv(
        torch_version=trt.__version__,
        is_debug_build=str(bool(_C.DEBUG)),
        cuda_compiled_version=None,
        gcc_version=_first("gcc --version", r"gcc (.*)"),
        clang_version=_first("clang --version", r"clang version (.*)"),
        cmake_version=_first("cmake --version", r"cmake (.*)"),
        os=_system(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=platform.platform(),
        is_cuda_available=str(available),
        cuda_runtime_version=_first("nvcc --version", r"release .+ V(.*)"),
        cuda_module_loading=os.environ.get("CUDA_MODULE_LOADING", "LAZY") if available else "N/A",
        nvidia_driver_version=_first("nvidia-smi", r"Driver Version: (.*?) "),
        nvidia_gpu_models=(lambda found: found[1] if found[0] == 0 and found[1] else None)(run("nvidia-smi -L")),
        pip_version=pip,
        pip_packages=packages,
        cpu_info=(lambda found: found[1] if found[0] == 0 else None)(run("lscpu")),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """The report's text."""
    said = {name: "Could not collect" if value is None else value for name, value in envinfo._asdict().items()}
    said["nvidia_gpu_models"] = ("\n" if "\n" in said["nvidia_gpu_models"] else "") + said["nvidia_gpu_models"]
    packages = "\n".join(f"[{said['pip_version']}] {line}" for line in said["pip_packages"].splitlines()) or "No relevant packages"
    rows = [
        ("PyTorch version", "torch_version"), ("Is debug build", "is_debug_build"), ("CUDA used to build PyTorch", "cuda_compiled_version"), None,
        ("OS", "os"), ("GCC version", "gcc_version"), ("Clang version", "clang_version"), ("CMake version", "cmake_version"), ("Libc version", "libc_version"),
        None, ("Python version", "python_version"), ("Python platform", "python_platform"), ("Is CUDA available", "is_cuda_available"),
        ("CUDA runtime version", "cuda_runtime_version"), ("CUDA_MODULE_LOADING set to", "cuda_module_loading"),
        ("GPU models and configuration", "nvidia_gpu_models"), ("Nvidia driver version", "nvidia_driver_version"), None,
    ]  # fmt: skip
    lines = ["" if row is None else f"{row[0]}: {said[row[1]]}" for row in rows]
    return "\n".join([*lines, "CPU:", said["cpu_info"], "", "Versions of relevant libraries:", packages])


def get_pretty_env_info() -> str:
    """The report's text, found anew."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
