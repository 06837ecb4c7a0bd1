"""What `__array_namespace_info__()` answers about the namespace."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.array_api._dtypes import ALL, KINDS

_cuda = LazyModule("tensorrt_lite.cuda")


class __array_namespace_info__:
    """Inspection of the namespace: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """What arrays here are capable of: 'boolean indexing', 'data-dependent shapes', 'max dimensions'."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of arrays that are made without one."""
        return trt.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays that are made without one, by kind: 'real floating', 'complex floating', 'integral', 'indexing'."""
        floating = trt.get_default_dtype()
        return {"real floating": floating, "complex floating": floating.to_complex(), "integral": trt.int64, "indexing": trt.int64}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes by name, all or those of a kind (as `isdtype` takes) or of several. ValueError for an unknown kind."""
        if kind is None:
            return dict(ALL)
        names: dict[str, Any] = {}
        for one in kind if isinstance(kind, tuple) else (kind,):
            if one not in KINDS:
                raise ValueError(f"dtypes(): unknown kind {one!r}; there are {', '.join(map(repr, KINDS))}")
            names.update(KINDS[one])
        return {name: dtype for name, dtype in ALL.items() if name in names}

    def devices(self) -> list[Any]:
        """The devices on which arrays can be made: the CPU and the CUDA devices in reach."""
        return [trt.device("cpu"), *(trt.device("cuda", i) for i in range(_cuda.device_count() if _cuda.is_available() else 0))]
