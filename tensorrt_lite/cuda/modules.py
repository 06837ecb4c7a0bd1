"""CUDA C++ of one's own: compiled at run time, launched on tensors.

    code = trt.cuda.compile_source('''
    extern "C" __global__ void scale(const float* x, float* out, float factor, long long n) {
        long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
        if (i < n) out[i] = x[i] * factor;
    }''')
    code.scale((blocks,), (256,), (x, out, 2.0, x.numel()))

Compiled code is kept on disk (`TENSORRT_LITE_CUDA_CACHE`) and loaded on each device at its first launch there. `tensorrt_lite.library` makes operators of
such kernels.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.cuda import _backend, current_device
from tensorrt_lite._C.cuda.driver import Module as _Module

_cuda = LazyModule("tensorrt_lite.cuda")
_compiler = LazyModule("tensorrt_lite.cuda._compiler")

__all__ = ["CompiledSource", "Kernel", "compile_source"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(')
# struct's letter of each type of a number
_NUMBERS = {
    "bool": "?", "char": "b", "signed char": "b", "unsigned char": "B", "short": "h", "unsigned short": "H", "int": "i", "unsigned": "I", "unsigned int": "I", "long": "q",
    "unsigned long": "Q", "long long": "q", "unsigned long long": "Q", "size_t": "Q", "int8_t": "b", "uint8_t": "B", "int16_t": "h", "uint16_t": "H", "int32_t": "i",
    "uint32_t": "I", "int64_t": "q", "uint64_t": "Q", "float": "f", "double": "d", "__half": "e", "half": "e",
}  # fmt: skip
# the dtype that a pointer's type asks for; pointers to other types take any
_DTYPES = {
    "bool": trt.bool, "char": trt.int8, "signed char": trt.int8, "int8_t": trt.int8, "unsigned char": trt.uint8, "uint8_t": trt.uint8, "short": trt.int16,
    "int16_t": trt.int16, "int": trt.int32, "int32_t": trt.int32, "long": trt.int64, "long long": trt.int64, "int64_t": trt.int64, "__half": trt.float16,
    "half": trt.float16, "__nv_bfloat16": trt.bfloat16, "float": trt.float32, "double": trt.float64,
}  # fmt: skip


def compile_source(source: str | Path, *, include: Sequence[str | Path] = ()) -> CompiledSource:
    """Compile CUDA C++: its text, or the path of a file. Every `extern "C" __global__` function is an attribute of the result.

    include: folders for `#include "..."`; the library's own headers (`iteration.cuh`, `reduce.cuh`, ...) are found without. It is compiled for the current
    device at once, by NVRTC or nvcc, and for others when they are used. RuntimeError with the compiler's output, or without a kernel.
    """
    folders = [Path(folder) for folder in include]
    if isinstance(source, Path):
        folders.insert(0, source.resolve().parent)
        source = source.read_text()
    return CompiledSource(source, folders)


class CompiledSource:
    """The kernels of a source, by name: `code.name` or `code["name"]`."""

    def __init__(self, source: str, include: list[Path]) -> None:
        self._source, self._include = source, include
        self._modules: dict[int, Any] = {}
        text = _COMMENT.sub(" ", source)
        self._kernels = {match[1]: Kernel(self, match[1], _parameters(text, match.end())) for match in _KERNEL.finditer(text)}
        if not self._kernels:
            raise RuntimeError('compile_source: the source has no kernel: a function declared `extern "C" __global__ void name(...)`')
        self._module(current_device())

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return list(self._kernels)

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __getattr__(self, name: str) -> Kernel:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise AttributeError(f"no kernel {name!r}; there are {', '.join(kernels)}")
        return kernels[name]

    def _module(self, device: int) -> Any:
        if device not in self._modules:
            image = _compiler.compile_unit(self._source, device, tuple(self._include))
            with _cuda.device(device):
                _backend()._enter_current()
                self._modules[device] = _Module(image)
        return self._modules[device]


class Kernel:
    """One kernel, launched by calling it."""

    def __init__(self, code: CompiledSource, name: str, parameters: list[str]) -> None:
        self._code, self.__name__, self.parameters = code, name, parameters
        self._forms = [_form(p) for p in parameters]
        self._functions: dict[int, Any] = {}

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.__name__}({', '.join(self.parameters)})>"

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any] = (), *, shared_mem: int = 0, stream: Any = None) -> None:
        """Queue the kernel.

        grid, block: numbers of blocks and threads, up to three each; args: a tensor for each pointer (or None for a null one), a number for each number, a
        ctypes structure for a structure; shared_mem: bytes of dynamic shared memory; stream: the current one by default. TypeError for arguments that do not
        fit the kernel's parameters, RuntimeError for tensors of several devices, or where the launch is refused.
        """
        if len(args) != len(self._forms):
            raise TypeError(f"{self.__name__}: expected {len(self._forms)} arguments ({', '.join(self.parameters)}), got {len(args)}")
        packed, device = bytearray(), None
        for position, (value, form) in enumerate(zip(args, self._forms)):
            if isinstance(value, trt.Tensor):
                if value.device.type != "cuda" or device not in (None, value.device.index):
                    raise RuntimeError(f"{self.__name__}: expected all tensors on one CUDA device, but argument {position} is on {value.device}")
                device = value.device.index
            self._pack(packed, position, value, *form)
        index = current_device() if device is None else device
        function = self._functions.get(index)
        if function is None:
            function = self._functions[index] = self._code._module(index).get_function(self.__name__)
        if stream is None:
            handle = _backend()._current_stream(index)
        else:
            handle = stream.cuda_stream
            if handle != _backend()._current_stream(index):
                for value in args:
                    if isinstance(value, trt.Tensor):
                        value.record_stream(stream)
        with _cuda.device(index):
            _backend()._enter_current()
            function.launch(_three(grid), _three(block), packed, shared_mem, handle)

    def _pack(self, packed: bytearray, position: int, value: Any, letter: str | None, dtype: Any, pointer: bool) -> None:
        what = f"{self.__name__}: argument {position} ({self.parameters[position]})"
        if pointer:
            if value is not None and not isinstance(value, trt.Tensor):
                raise TypeError(f"{what} takes a tensor or None, got {type(value).__name__}")
            if value is not None and dtype is not None and value.dtype is not dtype:
                raise TypeError(f"{what} takes a tensor of {dtype}, got {value.dtype}")
            raw, alignment = struct.pack("Q", 0 if value is None else value.data_ptr()), 8
        elif isinstance(value, (ctypes.Structure, ctypes.Array, ctypes._SimpleCData)):
            raw, alignment = bytes(value), ctypes.alignment(type(value))
        elif letter is None:
            raise TypeError(f"{what} takes a ctypes structure of its layout, got {type(value).__name__}")
        else:
            try:
                raw = struct.pack(letter, bool(value) if letter == "?" else float(value) if letter in "efd" else value)
            except (struct.error, TypeError, ValueError, OverflowError) as error:
                raise TypeError(f"{what} cannot take {value!r}: {error}") from None
            alignment = len(raw)
        packed.extend(bytes(-len(packed) % alignment) + raw)


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    given = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"expected one to three numbers of blocks or threads, got {given}")
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


def _parameters(text: str, start: int) -> list[str]:
    """The texts of a parameter list whose parenthesis was opened before `start`."""
    parts, depth, at = [], 0, start
    for i in range(start, len(text)):
        c = text[i]
        if c == ")" and depth == 0:
            parts.append(text[at:i])
            return [" ".join(p.split()) for p in parts if p.strip()]
        if c == "," and depth == 0:
            parts.append(text[at:i])
            at = i + 1
        depth += (c in "(<[{") - (c in ")>]}")
    raise RuntimeError("compile_source: a kernel's parameter list does not end")


def _form(parameter: str) -> tuple[str | None, Any, bool]:
    """struct's letter, a pointer's dtype, whether it is a pointer."""
    text = re.sub(r"\b(const|volatile|restrict|__restrict__|__restrict)\b", " ", parameter.partition("=")[0])
    pointer = "*" in text or "[" in text
    words = re.sub(r"[*&]|\[.*?\]", " ", text).split()
    kind = " ".join(words[:-1] if len(words) > 1 and " ".join(words) not in _NUMBERS else words)
    return (None, _DTYPES.get(kind) if text.count("*") <= 1 else None, True) if pointer else (_NUMBERS.get(kind), None, False)
